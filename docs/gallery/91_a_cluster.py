"""
Distributed fitting with Dask
=============================

``DistributedNeighborsClassifier`` fits Dask arrays and frames that may be larger than the memory of
one machine. The points are brought into cells that are close in space. Neighbours are searched in
the cells that they can lie in, and the terms of the likelihood are summed over the cells. The
results equal those of a fit in memory up to rounding error.

The cluster of this example is two processes on this machine; a ``Client`` of any other cluster can
be used instead. Worker processes import the script that starts them. Therefore a script needs the
line with ``__main__``; a notebook does not.
"""

# %%
# The data are a sample like Ripley's in four blocks. Predictions are Dask arrays, which are
# computed block by block when their values are needed. A classifier that was fitted in memory can
# predict Dask collections too.

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.distributed import DistributedNeighborsClassifier


def sample(n, seed):
    """Draw n points of two classes, each a mixture of two normal distributions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    return centres[y, rng.integers(2, size=n)] + 0.17 * rng.normal(size=(n, 2)), y


if __name__ == "__main__":
    X, y = sample(4000, seed=0)
    new, y_new = sample(1000, seed=1)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        with Client(cluster):
            points, labels = da.from_array(X, chunks=(1000, 2)), da.from_array(y, chunks=1000)
            clf = DistributedNeighborsClassifier(max_neighbors=100, random_state=0)
            clf.fit(points, labels)
            print(f"beta {clf.beta_mean_:.3f}, k {clf.k_values_ @ clf.k_probabilities_:.1f}")

            batch = da.from_array(new, chunks=(250, 2))
            proba = clf.predict_proba(batch)
            print(proba)
            print("accuracy:", float((clf.predict(batch) == y_new).mean().compute()))
            print("first interval:", clf.predict_interval(batch)[0, 1].compute().round(3))

            local = BayesianKNeighborsClassifier("pseudo", max_neighbors=100, random_state=0)
            local.fit(X, y)
            gap = np.abs(proba.compute() - local.predict_proba(new)).max()
            print(f"largest difference from the fit in memory: {gap:.0e}")
            same = np.array_equal(local.predict_proba(batch).compute(), local.predict_proba(new))
            print("fit in memory: equal predictions for blocks and for the whole array:", same)
