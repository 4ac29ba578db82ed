"""A cluster of two processes that tests share."""

import dask
import dask.array
import numpy as np
import pytest
from distributed import Client, LocalCluster

from bayesknn.distributed import DistributedNeighborsClassifier


@pytest.fixture(scope="package")
def client():
    # Compiled here once, not by each process: they find the machine code on disk.
    labels = np.arange(40) % 2
    points = np.random.default_rng(0).normal(size=(40, 2)) + labels[:, None]
    X, y = (dask.array.from_array(each, chunks=20) for each in (points, labels))
    with dask.config.set(scheduler="synchronous"):
        DistributedNeighborsClassifier(random_state=0).fit(X, y).predict_proba(X).compute()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client
        # A process that takes the place of a killed one can be closed only once it has started.
        client.wait_for_workers(2)
