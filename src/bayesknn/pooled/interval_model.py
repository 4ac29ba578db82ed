"""How sure the pool is: intervals for the true probabilities, and how usual a place is.

The method is that of :mod:`bayesknn.sureness.intervals`, which needs probabilities of two
neighbours that use neither's label. Points of one fold are predicted without each other's labels,
so the pairs are nearest neighbours within a fold, in the metric that weighs most.
"""

from __future__ import annotations

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.pooled.features import Neighborhoods
from bayesknn.pooled.member import Member
from bayesknn.predictive.averages import RawPrediction
from bayesknn.sureness.calibration import DistanceScale
from bayesknn.sureness.copies import Copies
from bayesknn.sureness.intervals import find_probability_intervals
from bayesknn.sureness.residuals import (
    MAX_BOUND,
    ResidualCorrelation,
    correlate_residuals,
    find_misfit,
)


class IntervalModel:
    """What intervals and typicality need to know of the training points.

    Parameters
    ----------
    space : Neighborhoods
        Of the metric that weighs most.
    member : Member or None
        Of that metric; None if no member of the pool has a metric.
    probabilities : ndarray of shape (n, n_classes)
        Pooled ones, that do not use the labels of the same fold.
    folds : ndarray of shape (n,)
    columns : ndarray of shape (n, p)
        The feature values, along which residuals are looked at too.
    n_jobs : int, optional
    """

    def __init__(
        self,
        space: Neighborhoods,
        member: Member | None,
        probabilities: np.ndarray,
        folds: np.ndarray,
        columns: np.ndarray,
        n_jobs: int | None = None,
    ):
        k_mean = float(np.median(space.k_values))
        if member is not None:
            k_mean = float(member.k_weights @ space.k_values)
        self.place = int(np.argmin(np.abs(space.k_values - k_mean)))
        self.scale = DistanceScale.from_distances(space.reach[:, self.place])
        # More pairs make the estimate surer and the intervals narrower, but farther ones have less
        # of their errors in common: up to sqrt(k) / 2 too few points are covered where P is smooth.
        n_ranks = max(round(np.sqrt(k_mean) / 4), 1)
        pairs = _pair_within_folds(space.points, space.norm, folds, n_ranks, n_jobs)
        self.copies = Copies.from_rows(columns, space.labels, space.weights, probabilities.shape[1])
        # Where folds are too small to have pairs: the most that it can be.
        unknown = ResidualCorrelation(float("nan"), float("nan"), MAX_BOUND)
        self.correlation = unknown._replace(n_votes=k_mean)
        if pairs is not None:
            correlation = correlate_residuals(
                space.labels,
                pairs,
                lambda i, j, rank: probabilities[i],
                probabilities,
                k_mean,
                space.weights,
            )
            bound = _find_bound(correlation, probabilities, pairs)
            misfit = find_misfit(space.labels, probabilities, columns, space.weights, folds=folds)
            self.correlation = correlation._replace(bound=bound).allow_for(misfit)

    def intervals(self, raw: RawPrediction, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return intervals for the true probabilities, and the pooled ones inside them."""
        inside = raw.probabilities
        return find_probability_intervals(inside, raw, self.correlation, self.scale, level), inside


def _find_bound(
    correlation: ResidualCorrelation, probabilities: np.ndarray, pairs: np.ndarray
) -> float:
    """Return the squared error that intervals allow for, where pairs stand apart.

    Smoothing is off in proportion to how P differs from its mean, so that the errors of two points
    are about as much alike as their probabilities are: in many dimensions products of residuals
    show a part of the squared error alone, and are divided by that likeness. The error is then no
    larger than the variance of the probabilities, which is small where P is flat. An estimate below
    0 is chance, and would cut the intervals short.
    """
    away = probabilities - probabilities.mean(axis=0)
    signal = (away**2).sum()
    likeness = np.mean([(away * away[j]).sum() for j in pairs]) / max(signal, 1e-300)
    plain = max(correlation.value, 0.0) + correlation.error
    # Pairs that are less alike than a quarter say too little to be scaled up by it.
    scaled = plain / max(likeness, 0.25)
    most = signal / max((probabilities * (1.0 - probabilities)).sum(), 1e-300)
    return float(min(max(correlation.bound, plain, min(scaled, most)), MAX_BOUND))


def _pair_within_folds(
    points: np.ndarray, norm: str, folds: np.ndarray, n_ranks: int, n_jobs: int | None
) -> np.ndarray | None:
    """Return each point's nearest in its own fold, (n_ranks, n); None if a fold has one point."""
    n_ranks = min(n_ranks, int(np.bincount(folds)[np.unique(folds)].min()) - 1)
    if n_ranks < 1:
        return None
    pairs = np.empty((n_ranks, len(folds)), np.int64)
    for fold in np.unique(folds):
        rows = np.flatnonzero(folds == fold)
        graph = NeighborGraph.from_points(points[rows], n_ranks, metric=norm, n_jobs=n_jobs)
        pairs[:, rows] = rows[graph.neighbors]
    return pairs
