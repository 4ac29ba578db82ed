"""Arguments of :func:`bayesknn.sureness.intervals.fit_interval_model` for the pool.

Intervals need probabilities of two near rows that use neither's label. Rows of one fold are
predicted without each other's labels, so the pairs are nearest neighbours within a fold, in one of
the metrics.
"""

from __future__ import annotations

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.pooled.features import Neighborhoods
from bayesknn.pooled.member import Member
from bayesknn.predictive.averages import RawPrediction
from bayesknn.sureness.copies import Copies
from bayesknn.sureness.intervals import IntervalModel, fit_interval_model
from bayesknn.sureness.residuals import Pairs


def find_pool_intervals(
    space: Neighborhoods,
    member: Member | None,
    probabilities: np.ndarray,
    labels: np.ndarray,
    folds: np.ndarray,
    columns: np.ndarray,
    n_jobs: int | None = None,
    groups: np.ndarray | None = None,
) -> tuple[IntervalModel, int]:
    """Learn from the pool's left-out probabilities how far off they may be.

    Parameters
    ----------
    space : Neighborhoods
        Of the metric whose distances intervals and typicality use.
    member : Member or None
        Of that metric; None if no member of the pool has a metric.
    probabilities : ndarray of shape (n, n_classes)
        Pooled ones, that do not use the labels of the same fold.
    labels : ndarray of shape (n,)
        Class indices, in the order of the probabilities.
    folds : ndarray of shape (n,)
    columns : ndarray of shape (n, p)
        The feature values.
    n_jobs : int, optional
    groups : ndarray of shape (n,), optional
        Group numbers of rows that belong together, whose fold is the same.

    Returns
    -------
    interval_model : IntervalModel
    at : int
        Index of the k such that intervals and typicality use the distance to the k-th neighbour.
    """
    n_votes = float(np.median(space.k_values))
    if member is not None:
        n_votes = float(member.k_weights @ space.k_values)
    at, n_classes = int(np.argmin(np.abs(space.k_values - n_votes))), probabilities.shape[1]
    # More pairs make the estimate surer and the intervals narrower, but farther ones have less
    # of their errors in common: up to sqrt(k) / 2 too few points are covered where P is smooth.
    n_ranks = max(round(np.sqrt(n_votes) / 4), 1)
    points, nearest = space.points, None
    near = _pair_within_folds(points, space.searched.norm, folds, n_ranks, n_jobs, groups)
    if groups is not None:
        # How often voters are of one group shows among ten of them as well as among all.
        most = min(int(np.clip(n_votes, 2, 10)), len(folds) - int(np.bincount(groups).max()))
        nearest = NeighborGraph.from_points(
            points, most, metric=space.searched.norm, n_jobs=n_jobs, groups=groups
        ).neighbors
    pairs = None
    if near is not None:
        pairs = Pairs(near, lambda i, j, rank: probabilities[i], folds=folds, nearest=nearest)
    interval_model = fit_interval_model(
        RawPrediction(probabilities, np.zeros_like(probabilities), None, space.reach[:, at]),
        labels,
        pairs=pairs,
        n_votes=n_votes,
        columns=columns,
        copies=Copies.from_rows(columns, labels, space.weights, n_classes),
        weights=space.weights,
        groups=groups,
        calibrator=None,
    )
    return interval_model, at


def _pair_within_folds(
    points: np.ndarray,
    norm: str,
    folds: np.ndarray,
    n_ranks: int,
    n_jobs: int | None,
    groups: np.ndarray | None,
) -> np.ndarray | None:
    """Return each point's nearest in its own fold, (n_ranks, n); None if there are none.

    With groups, the nearest of other groups. A point that has not so many is its own pair, which
    counts nothing then.
    """
    if groups is None:
        n_ranks = min(n_ranks, int(np.bincount(folds)[np.unique(folds)].min()) - 1)
    pairs = np.tile(np.arange(len(folds)), (max(n_ranks, 0), 1))
    for fold in np.unique(folds):
        rows = np.flatnonzero(folds == fold)
        own = None if groups is None else groups[rows]
        n_others = len(rows) - (1 if own is None else int(np.bincount(own).max()))
        size = min(n_ranks, n_others)
        if size > 0:
            graph = NeighborGraph.from_points(
                points[rows], size, metric=norm, n_jobs=n_jobs, groups=own
            )
            pairs[:size, rows] = rows[graph.neighbors]
    return pairs if np.any(pairs != np.arange(len(folds))) else None
