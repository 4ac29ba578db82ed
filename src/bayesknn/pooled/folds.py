"""Features of the training points that owe nothing to their own labels.

Plain leave-one-out flatters a view that saw the labels: it knows the label that is left out. Such
a view is fitted anew without each of several stratified folds, and the fold's points are treated
as new; k shrinks with the number of points.
"""

from __future__ import annotations

import numpy as np

from bayesknn.pooled.columns import Sample
from bayesknn.pooled.views import VIEWS, Settings


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
    name: str,
    sample: Sample,
    settings: Settings,
    folds: np.ndarray,
    asked: np.ndarray | slice = slice(None),
) -> np.ndarray:
    """Return features of the training points by views fitted without them.

    Returns
    -------
    ndarray of shape (n_settings, n_asked, n_classes, 2)
        Of the rows in ``asked``, which are whole folds.
    """
    parts = {}
    for fold in np.unique(folds[asked]):
        known = sample.take(folds != fold)
        shrunk = np.round(settings.k_values * (len(known.labels) / len(folds))).astype(np.int64)
        view = VIEWS[name](name, known, settings._replace(k_values=np.maximum(shrunk, 1)))
        parts[fold] = view.features(sample.table.take(folds == fold), settings.n_jobs)
    found = np.empty((len(parts[fold]), len(folds), sample.n_classes, 2))
    for fold, part in parts.items():
        found[:, folds == fold] = part
    return found[:, asked]
