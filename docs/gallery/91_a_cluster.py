"""
Distributed fitting with Dask
=============================

``DistributedNeighborsClassifier`` fits Dask arrays and frames whose rows need not fit in one
machine's memory. Points stay in their blocks: every block is searched by every other, edges are
sent to the blocks that they end in, and what the likelihood needs is added up. The answer is that
of the classifier in memory, to rounding.

Here the cluster is two processes on this machine; a ``Client`` of any other cluster does as well.
Worker processes import the script that starts them, hence the line with ``__main__``: scripts need
it, notebooks do not.
"""

# %%
# Four blocks of a sample like Ripley's. Predictions are Dask arrays: nothing is computed until
# they are asked for, and then block by block. A classifier that was fitted in memory predicts Dask
# collections in the same way.

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.distributed import DistributedNeighborsClassifier


def sample(n, seed):
    """Draw points of two classes, each a mixture of two clouds."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    return centres[y, rng.integers(2, size=n)] + 0.17 * rng.normal(size=(n, 2)), y


if __name__ == "__main__":
    X, y = sample(4000, seed=0)
    new, truth = sample(1000, seed=1)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        with Client(cluster):
            points, labels = da.from_array(X, chunks=(1000, 2)), da.from_array(y, chunks=1000)
            clf = DistributedNeighborsClassifier(max_neighbors=100, random_state=0)
            clf.fit(points, labels)
            print(f"beta {clf.beta_mean_:.3f}, k {clf.k_values_ @ clf.k_probabilities_:.1f}")

            batch = da.from_array(new, chunks=(250, 2))
            proba = clf.predict_proba(batch)
            print(proba)
            print("right:", float((clf.predict(batch) == truth).mean().compute()))
            print("first interval:", clf.predict_interval(batch)[0, 1].compute().round(3))

            home = BayesianKNeighborsClassifier("pseudo", max_neighbors=100, random_state=0)
            home.fit(X, y)
            apart = np.abs(proba.compute() - home.predict_proba(new)).max()
            print(f"largest difference from the fit in memory: {apart:.0e}")
            same = np.array_equal(home.predict_proba(batch).compute(), home.predict_proba(new))
            print("the fit in memory predicts blocks as it predicts the whole:", same)
