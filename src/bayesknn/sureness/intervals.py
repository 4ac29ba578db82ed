"""Intervals that cover the true P(y | x), bias of smoothing included.

The mean squared error of the probabilities, as a part kappa of p (1 - p), comes from the residuals
of leave-one-out, see :mod:`bayesknn.sureness.residuals`. An interval is cut from the
Beta distribution of that variance, wider where neighbours are far, and is [0, 1] where they are
farther than any training point's. What training rows of the very same values leave open is taken
if it is less. The constants are empirical; ``docs/intervals.md`` says where they hold. Both kappa
and the calibration are learned from the training points, each left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from bayesknn.predictive.averages import RawPrediction, include
from bayesknn.predictive.nodes import PosteriorNodes
from bayesknn.sureness.calibration import (
    Calibration,
    DistanceScale,
    fit_calibration,
    local_share,
    pool_with_share,
    safe_log,
)
from bayesknn.sureness.residuals import (
    ResidualCorrelation,
    correlate_residuals,
    find_misfit,
    level_of,
)

# Of the true probability, or of what (beta, k) leave open.
KINDS_OF_INTERVAL = ("probability", "parameters")


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
        most = correlation.error_rates[level_of(probabilities[:, g])] / (1.0 - level)
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
