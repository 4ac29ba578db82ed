"""Features of the training points that owe nothing to their own labels.

Plain leave-one-out flatters a metric that saw the labels: the metric knows the label that is left
out. Such a metric is fitted anew without each of several stratified folds, and the fold's points
are treated as new; k shrinks with the number of points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.pooled.columns import Table
from bayesknn.pooled.features import Neighborhoods


def assign_folds(labels: np.ndarray, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """Deal the shuffled points of each class out to the folds in turn.

    The next class goes on where the last one stopped, so that folds are of equal size, and every
    class of at least two points has one outside each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.pooled.folds import assign_folds
    >>> fold = assign_folds(np.array([0, 0, 0, 1, 1]), 5, np.random.default_rng(0))
    >>> sorted(fold.tolist())
    [0, 1, 2, 3, 4]
    """
    shuffled = rng.permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    folds = np.empty(len(labels), np.int64)
    folds[order] = np.arange(len(labels)) % n_folds
    return folds


def honest_features(
    metric: Any,
    table: Table,
    labels: np.ndarray,
    n_classes: int,
    k_values: np.ndarray,
    folds: np.ndarray,
    seed: int,
    n_jobs: int | None = None,
    search: dict | None = None,
    asked: np.ndarray | slice = slice(None),
) -> np.ndarray:
    """Return features of the training points by metrics fitted without them.

    Returns
    -------
    ndarray of shape (n_k, n_asked, n_classes, 2)
        Of the rows in ``asked``, which are whole folds.
    """
    n = len(labels)
    found = np.empty((len(k_values), n, n_classes, 2))
    for fold in np.unique(folds[asked]):
        is_new = folds == fold
        known = table.take(~is_new)
        seen = labels[~is_new]
        fitted = metric().fit(known, seen, n_classes, seed)
        fewer = np.maximum(np.round(k_values * (len(seen) / n)).astype(np.int64), 1)
        space = Neighborhoods(
            fitted.transform(known), seen, n_classes, fewer, fitted.norm, n_jobs, search
        )
        found[:, is_new] = space.new_features(fitted.transform(table.take(is_new)), n_jobs)
    return found[:, asked]
