"""Intervals that cover the true P(y | x), bias of smoothing included, and calibrated probabilities.

Given the feature values the labels are independent. So where p_i and p_j use neither y_i nor y_j,
the expected product of the residuals y_i - p_i and y_j - p_j is that of the errors P_i - p_i and
P_j - p_j, and for near neighbours i and j the errors are about the same: such products estimate the
mean squared error of the probabilities, as a part kappa of p (1 - p). Near neighbours are those by
the distance, and those along a single column where that shows more: where many columns do not
matter, neighbours by the distance are not near in the one that does, and its name says what the
distance misses. An interval is cut from the
Beta distribution of that variance, wider where neighbours are far, and is [0, 1] where they are
farther than any training point's. What training rows of the very same values leave open is taken
if it is less. The constants are empirical; ``docs/intervals.md`` says where they hold. Both kappa
and the calibration are learned from the training points, each left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri

from bayesknn._utils.jit import kernel
from bayesknn.predictive.averages import RawPrediction, include
from bayesknn.predictive.calibration import (
    Calibration,
    DistanceScale,
    fit_calibration,
    local_share,
    pool_with_share,
    safe_log,
)
from bayesknn.predictive.nodes import PosteriorNodes

# Of the true probability, or of what (beta, k) leave open.
KINDS_OF_INTERVAL = ("probability", "parameters")
# The squared error is at most this part of p (1 - p).
MAX_BOUND = 0.5


class Summary(NamedTuple):
    """What users are told about m points.

    Attributes
    ----------
    probabilities : ndarray of shape (m, n_classes)
    intervals : ndarray of shape (m, n_classes, 2)
    typicality : ndarray of shape (m,)
    """

    probabilities: np.ndarray
    intervals: np.ndarray
    typicality: np.ndarray


@dataclass(frozen=True)
class Calibrator:
    """How to calibrate probabilities, and how far off they are.

    Build one with :meth:`from_leave_one_out`.

    Attributes
    ----------
    calibration : Calibration
    spread : ndarray of shape (n_classes,) or None
        The weights of the distance, where classes differ in spread.
    correlation : ResidualCorrelation
    scale : DistanceScale
    n_effective : float
        How many votes the local shares are worth.
    """

    calibration: Calibration
    spread: np.ndarray | None
    correlation: ResidualCorrelation
    scale: DistanceScale
    n_effective: float

    @classmethod
    def from_leave_one_out(
        cls,
        left_out: RawPrediction,
        labels: np.ndarray,
        neighbors: np.ndarray,
        nodes: PosteriorNodes,
        class_weight: np.ndarray,
        *,
        reverse: bool = True,
        columns: np.ndarray | None = None,
    ) -> Calibrator:
        """Learn from the training points, each predicted without its label.

        Parameters
        ----------
        left_out : RawPrediction
            Of the training points.
        labels : ndarray of shape (n,)
            Their class numbers.
        neighbors : ndarray of shape (k_max, n)
            Their neighbours by rank.
        nodes : PosteriorNodes
        class_weight : ndarray of shape (n_classes,)
            The weights a_g inside the likelihood. Where they are not 1 its probabilities are meant
            for other class frequencies than the sample's: each point counts a_g here, too.
        reverse : bool
            Whether a neighbour votes in both directions.
        columns : ndarray of shape (n, p), optional
            The feature values, along which residuals are looked at too.

        Returns
        -------
        Calibrator
        """
        n_classes = left_out.probabilities.shape[1]
        weight = class_weight[labels]
        by_rank = nodes.votes_by_rank
        n_effective = float(by_rank.sum() ** 2 / max((by_rank**2).sum(), 1e-300))
        scale = DistanceScale.from_distances(left_out.distances)
        z = scale.standardise(left_out.distances)
        share = local_share(left_out.votes, n_effective)
        calibration, spread = fit_calibration(left_out.probabilities, share, labels, z, weight)
        log_loo, log_share = safe_log(left_out.probabilities), safe_log(share)
        # One row for each class: what a neighbour of that class says.
        vote_matrix = np.diag(class_weight)
        doubled = 2.0 if reverse else 1.0

        def predict_without_pair(i: np.ndarray, j: np.ndarray, rank: int) -> np.ndarray:
            vote = doubled * by_rank[rank - 1] * vote_matrix[labels[j]]
            less = vote.sum(axis=1, keepdims=True) / n_classes
            share = local_share(np.maximum(left_out.votes[i] - vote, 0.0), n_effective)
            return pool_with_share(
                log_loo[i] - (vote - less), safe_log(share), calibration, spread, z[i]
            )

        n_ranks = min(int(np.clip(int(nodes.k_mean / 5), 3, 15)), len(by_rank), len(neighbors))
        pooled = pool_with_share(log_loo, log_share, calibration, spread, z)
        correlation = correlate_residuals(
            labels, neighbors[:n_ranks], predict_without_pair, pooled, nodes.k_mean, weight
        )
        if columns is not None:
            # Ranks whose votes are a hundredth of the first's count as none.
            n_voters = np.count_nonzero(by_rank > 0.01 * by_rank[0])
            misfit = find_misfit(labels, pooled, columns, weight, voters=neighbors[:n_voters])
            correlation = correlation.allow_for(misfit)
        return cls(calibration, spread, correlation, scale, n_effective)

    def calibrate(self, raw: RawPrediction) -> np.ndarray:
        """Return the calibrated probabilities, of shape (m, n_classes)."""
        return pool_with_share(
            safe_log(raw.probabilities),
            safe_log(local_share(raw.votes, self.n_effective)),
            self.calibration,
            self.spread,
            self.scale.standardise(raw.distances),
        )

    def intervals(self, raw: RawPrediction, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return intervals for the true probabilities, and the calibrated ones inside them."""
        inside = self.calibrate(raw)
        return find_probability_intervals(inside, raw, self.correlation, self.scale, level), inside


# Levels of how near to 0 or 1 a probability is, each half as far as the one before.
_N_LEVELS = 40


class ResidualCorrelation(NamedTuple):
    """Correlation of the residuals of near neighbours.

    Attributes
    ----------
    value, error : float
        The estimate and its standard error.
    bound : float
        What intervals use: the estimate and one error more, within reason.
    n_votes : float
        How many votes a probability rests on.
    column : int or None
        That on which the residuals still depend.
    error_rates : ndarray of shape (n_levels,)
        How often leave-one-out probabilities at least so near to 0 or 1 are wrong: entry j is of
        those within 2^-j.
    """

    value: float
    error: float
    bound: float
    n_votes: float = float("inf")
    column: int | None = None
    error_rates: np.ndarray = np.ones(_N_LEVELS)

    def allow_for(self, misfit: ResidualCorrelation | None) -> ResidualCorrelation:
        """Return it with a bound that allows for what one column shows."""
        if misfit is None:
            return self
        bound = min(max(self.bound, misfit.bound), MAX_BOUND)
        return self._replace(bound=bound, column=misfit.column)


def _variances(probabilities: np.ndarray) -> np.ndarray:
    """Return what the squares of residuals are expected to add up to, (n,)."""
    return (probabilities * (1.0 - probabilities)).sum(axis=1)


def correlate_residuals(
    labels: np.ndarray,
    neighbors: np.ndarray,
    predict_without_pair: Callable[[np.ndarray, np.ndarray, int], np.ndarray],
    probabilities: np.ndarray,
    k_mean: float,
    weight: np.ndarray,
) -> ResidualCorrelation:
    """Estimate how far probabilities are off from the residuals of near neighbours.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Class numbers.
    neighbors : ndarray of shape (n_ranks, n)
        ``neighbors[r, i]`` is the neighbour of i at rank r + 1.
    predict_without_pair : callable
        ``predict_without_pair(i, j, rank)`` are the leave-one-out probabilities of the points i
        that do not use the labels of the points j either, of shape (n, n_classes); j stands at
        that rank from i, or i from j.
    probabilities : ndarray of shape (n, n_classes)
        Leave-one-out probabilities.
    k_mean : float
        How many neighbours vote on average.
    weight : ndarray of shape (n,)
        How much each point counts: a pair counts the product of its two.

    Returns
    -------
    ResidualCorrelation
    """
    n, n_classes = probabilities.shape
    points = np.arange(n)
    truth, variances = np.eye(n_classes)[labels], _variances(probabilities)
    total = squares = scale = 0.0
    for r, j in enumerate(neighbors, start=1):
        ours = truth - predict_without_pair(points, j, r)
        theirs = truth[j] - predict_without_pair(j, points, r)
        both = weight * weight[j]
        products = both * (ours * theirs).sum(axis=1)
        total += products.sum()
        squares += (products**2).sum()
        scale += both @ variances
    scale = max(scale, 1e-300)
    value, error = np.clip(total / scale, -1.0, 1.0), np.sqrt(2.0 * squares) / scale
    votes = k_mean * effective_part(weight)
    # Products that cannot tell the error from 0 leave that of so many votes' mean.
    bound = min(max(1.5 / votes, value + error), MAX_BOUND)
    rates = _error_rates(truth, probabilities, weight)
    return ResidualCorrelation(float(value), float(error), float(bound), votes, error_rates=rates)


def _error_rates(truth: np.ndarray, probabilities: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return how often probabilities at each level or nearer to 0 or 1 are wrong.

    One more error is added, which shows in two classes, so that few rows say little. Where they are
    few, those that are less sure stand for them. See :class:`ResidualCorrelation`.
    """
    wrong = weight[:, None] * np.where(probabilities > 0.5, 1.0 - truth, truth)
    every = np.broadcast_to(weight[:, None], wrong.shape)
    levels = _level_of(probabilities).ravel()
    n_wrong, n = (
        np.cumsum(np.bincount(levels, each.ravel(), _N_LEVELS)[::-1])[::-1]
        for each in (wrong, every)
    )
    return np.minimum.accumulate((n_wrong + 2.0) / (n + 2.0))


def _level_of(probabilities: np.ndarray) -> np.ndarray:
    far = np.maximum(np.minimum(probabilities, 1.0 - probabilities), 2.0**-_N_LEVELS)
    return np.clip(-np.log2(far), 0, _N_LEVELS - 1).astype(np.int64)


def find_misfit(
    labels: np.ndarray,
    probabilities: np.ndarray,
    columns: np.ndarray,
    weight: np.ndarray,
    *,
    folds: np.ndarray | None = None,
    voters: np.ndarray | None = None,
    max_gap: int = 3,
) -> ResidualCorrelation | None:
    """Find the column on which residuals still depend, if there is one.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Class numbers.
    probabilities : ndarray of shape (n, n_classes)
        Leave-one-out probabilities.
    columns : ndarray of shape (n, p)
        Numbers, or numbers of categories.
    weight : ndarray of shape (n,)
        How much each row counts.
    folds : ndarray of shape (n,), optional
        Rows of different folds are no pair.
    voters : ndarray of shape (n_ranks, n), optional
        Rows that have a part in each row's probabilities, with which it is no pair.
    max_gap : int, default=3
        Pairs are up to so many rows apart in the order of the column.

    Returns
    -------
    ResidualCorrelation or None
        With that column; None if no column is significant at 5 % after their number.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive.intervals import find_misfit
    >>> x = np.random.default_rng(0).random((200, 2))
    >>> labels, even = (x[:, 1] > 0.5).astype(int), np.full((200, 2), 0.5)
    >>> find_misfit(labels, even, x, np.ones(200)).column
    1
    """
    n, p = columns.shape
    residuals = np.eye(probabilities.shape[1])[labels] - probabilities
    variances = _variances(probabilities)
    folds = np.zeros(n, np.int64) if folds is None else folds
    # Equal values come in an order that owes nothing to the labels: a file may be sorted by them.
    shuffled = np.random.default_rng(0).permutation(n)
    best, most = None, ndtri(1 - 0.05 / max(p, 1))
    for c in range(p):
        order = shuffled[np.lexsort((columns[shuffled, c], folds[shuffled]))]
        votes = np.zeros((max_gap, n), np.bool_)
        if voters is not None:
            place = np.empty(n, np.int64)
            place[order] = np.arange(n)
            _mark_voters(voters, place, votes)
        total = squares = scale = 0.0
        for apart in range(1, min(max_gap, n - 1) + 1):
            i, j = order[:-apart], order[apart:]
            taken = (folds[i] == folds[j]) & ~votes[apart - 1, :-apart]
            i, j = i[taken], j[taken]
            both = weight[i] * weight[j]
            products = both * (residuals[i] * residuals[j]).sum(axis=1)
            total += products.sum()
            squares += (products**2).sum()
            scale += both @ (variances[i] + variances[j]) / 2
        if total > most * np.sqrt(squares):
            most = total / np.sqrt(squares)
            value, error = float(total / scale), float(np.sqrt(squares) / scale)
            best = ResidualCorrelation(value, error, value + error, column=c)
    return best


@kernel
def _mark_voters(voters, place, votes):
    """Mark the pairs, by how far apart they are and where the first stands in the order."""
    for r in range(voters.shape[0]):
        for i in range(voters.shape[1]):
            gap = place[voters[r, i]] - place[i]
            if 0 < gap <= votes.shape[0]:
                votes[gap - 1, place[i]] = True
            elif 0 < -gap <= votes.shape[0]:
                votes[-gap - 1, place[i] + gap] = True


def effective_part(weight: np.ndarray) -> float:
    """Return the effective number of weighted rows, (sum w)^2 / sum w^2, over their number.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive.intervals import effective_part
    >>> effective_part(np.array([2.0, 2.0])), effective_part(np.array([3.0, 1.0]))
    (1.0, 0.8)
    """
    return float(weight.mean() ** 2 / (weight**2).mean())


def find_probability_intervals(
    probabilities: np.ndarray,
    raw: RawPrediction,
    correlation: ResidualCorrelation,
    scale: DistanceScale,
    level: float,
) -> np.ndarray:
    """Find an interval for each true class probability.

    Parameters
    ----------
    probabilities : ndarray of shape (m, n_classes)
        Calibrated ones, which their intervals hold.
    raw : RawPrediction
        Of which variances, distances and copies are used.
    correlation : ResidualCorrelation
    scale : DistanceScale
        Of the training points.
    level : float

    Returns
    -------
    ndarray of shape (m, n_classes, 2)
    """
    n_classes, votes = probabilities.shape[1], correlation.n_votes
    stretch = 0.5 * correlation.bound * (1.0 + scale.relative(raw.distances) ** 2)
    is_far = raw.distances > scale.sorted_distances[-1]
    intervals = np.empty((*probabilities.shape, 2))
    # With two classes the second interval mirrors the first.
    for g in range(1 if n_classes == 2 else n_classes):
        p = _shrink(probabilities[:, g], scale.sorted_distances.size, n_classes)
        spread = p * (1.0 - p)
        size = np.maximum(spread / (stretch * spread + raw.variances[:, g]) - 1.0, 1.0)
        # Near 0 and 1 that Beta distribution is a spike, while votes that all agree leave P open.
        of_votes = _cut(_shrink(probabilities[:, g], votes, n_classes), votes + 1.0, level)
        # They leave it no wider open than errors among rows that are as sure: a part 1 - level of
        # them at most can have a P that is 1 / (1 - level) times as far off as all on average.
        most = correlation.error_rates[_level_of(probabilities[:, g])] / (1.0 - level)
        is_high = probabilities[:, g] > 0.5
        lowest, highest = np.where(is_high, 1.0 - most, 0.0), np.where(is_high, 1.0, most)
        of_votes = [np.clip(end, lowest, highest) for end in of_votes]
        intervals[:, g] = _hull(*_cut(p, size, level), *of_votes)
        intervals[is_far, g] = (0.0, 1.0)
        if raw.copies is not None:
            n = raw.copies.sum(axis=1)
            rows = np.flatnonzero(n > 0)
            narrow = _cut_by_copies(
                probabilities[rows, g], raw.copies[rows, g], n[rows], n_classes, level
            )
            rest = np.ptp(narrow, axis=1) < np.ptp(intervals[rows, g], axis=1)
            intervals[rows[rest], g] = narrow[rest]
    if n_classes == 2:
        intervals[:, 1] = 1.0 - intervals[:, 0, ::-1]
    return include(intervals, probabilities)


def _cut_by_copies(
    p: np.ndarray, of_class: np.ndarray, n: np.ndarray, n_classes: int, level: float
) -> np.ndarray:
    """Cut what so many copies leave open, about their share and halfway from it to p; p is inside.

    Halfway, since the share alone covers too little where it is taken for being narrow.
    """
    share = _shrink(of_class / n, n, n_classes)
    halfway = (share + _shrink(p, n, n_classes)) / 2.0
    return _hull(p, *_cut(share, n + 1.0, level), *_cut(halfway, n + 1.0, level))


def _hull(*ends: np.ndarray) -> np.ndarray:
    return np.stack([np.min(ends, axis=0), np.max(ends, axis=0)], axis=-1)


def _shrink(probabilities: np.ndarray, n_votes: np.ndarray | float, n_classes: int) -> np.ndarray:
    """Return what one vote more, for all classes alike, makes of so many votes."""
    kept = 1.0 - 1.0 / (n_votes + 1.0)
    return kept * probabilities + (1.0 - kept) / n_classes


def _cut(p: np.ndarray, size: np.ndarray | float, level: float) -> list[np.ndarray]:
    """Cut the Beta distribution of mean p, more of the tail off where it is longer; p is inside."""
    tails = (1.0 - level) * p, 1.0 - (1.0 - level) * (1.0 - p)
    return [p, *(betaincinv(size * p, size * (1.0 - p), tail) for tail in tails)]
