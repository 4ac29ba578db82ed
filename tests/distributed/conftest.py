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
        # A process that takes the place of a killed one can be closed only once it has started.
        client.wait_for_workers(2)
