"""A cluster of two processes that tests share."""

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="package")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client
