"""Features of the training points that owe nothing to their own labels.

Plain leave-one-out flatters a view that saw the labels: it knows the label that is left out. Every
view is fitted anew without each of several stratified folds, and the fold's points are treated as
new; k shrinks with the number of points.
"""

from __future__ import annotations

import numpy as np

from bayesknn.pooled.columns import Sample, Settings
from bayesknn.pooled.features import Reach
from bayesknn.pooled.views import VIEWS


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


def leave_folds_out(
    name: str, sample: Sample, settings: Settings, folds: np.ndarray
) -> tuple[np.ndarray, Reach | None]:
    """Return features (n_settings, n, n_classes, n_features) of the training points.

    Each is seen by the other folds. How far the points' lists reach comes second, if there are any.
    """
    known = [sample.take(folds != fold) for fold in range(folds.max() + 1)]
    return VIEWS[name].leave_out(known, sample, settings, folds)
