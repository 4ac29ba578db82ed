"""Intervals that cover the true P(y | x), bias of smoothing included.

The mean squared error of the probabilities, as a part kappa of p (1 - p), comes from the residuals
of leave-one-out, see :mod:`bayesknn.sureness.residuals`. An interval is cut from the Beta
distribution of that variance, wider where neighbours are far, and is [0, 1] where they are farther
than any training point's. The interval that training rows of the very same values leave is taken if
it is narrower. The constants are empirical; ``docs/intervals.md`` says where they hold.

``fit_interval_model`` is the only way to make intervals: the Bayesian classifier, its ``reweight``,
the pool and the classifier on Dask collections call it, and it has no optional argument.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from bayesknn.predictive.averages import RawPrediction, include
from bayesknn.sureness.calibration import Calibrator, DistanceScale
from bayesknn.sureness.copies import Copies
from bayesknn.sureness.groups import find_scored
from bayesknn.sureness.residuals import Pairs, ResidualCorrelation, correlate_residuals, level_of

# Intervals for the true probability, or credible intervals from the posterior of (beta, k) alone.
KINDS_OF_INTERVAL = ("probability", "parameters")


@dataclass(frozen=True)
class IntervalModel:
    """What intervals, calibration and typicality need of the training rows.

    Build one with :func:`fit_interval_model`.

    Attributes
    ----------
    correlation : ResidualCorrelation
    scale : DistanceScale
        Of the training rows.
    copies : Copies or None
        Training rows of equal values; None if all are distinct or values are not known.
    calibrator : Calibrator or None
        None where the probabilities are calibrated already, as the pool's are.
    """

    correlation: ResidualCorrelation
    scale: DistanceScale
    copies: Copies | None
    calibrator: Calibrator | None

    def calibrate(self, raw: RawPrediction) -> np.ndarray:
        """Return the calibrated probabilities, of shape (m, n_classes)."""
        return raw.probabilities if self.calibrator is None else self.calibrator.calibrate(raw)

    def intervals(self, raw: RawPrediction, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return intervals for the true probabilities, and the calibrated probabilities."""
        inside = self.calibrate(raw)
        return find_probability_intervals(inside, raw, self.correlation, self.scale, level), inside


def fit_interval_model(
    left_out: RawPrediction,
    labels: np.ndarray,
    *,
    pairs: Pairs | None,
    n_votes: float,
    columns: np.ndarray | None,
    copies: Copies | None,
    weights: np.ndarray,
    groups: np.ndarray | None,
    calibrator: Calibrator | None,
) -> IntervalModel:
    """Learn from leave-one-out predictions how far probabilities may be off.

    Parameters
    ----------
    left_out : RawPrediction
        Of the training rows, each predicted without its label.
    labels : ndarray of shape (n,)
        Class indices.
    pairs : Pairs or None
        None where no two rows can be predicted without each other's labels: intervals are then as
        wide as ``MAX_BOUND`` makes them.
    n_votes : float
        Mean number of neighbours that vote.
    columns : ndarray of shape (n, p) or None
        Feature values or category codes. None, where they are not known, leaves dependence of the
        residuals on single columns unseen: intervals may be too narrow.
    copies : Copies or None
        Training rows of equal values. Without them, intervals at values that many training rows
        have are wider than need be.
    weights : ndarray of shape (n,)
        Weights of the rows.
    groups : ndarray of shape (n,) or None
        Rows that belong together: ``left_out`` uses no label of a row's own group.
    calibrator : Calibrator or None
        None where ``left_out`` is calibrated already.

    Returns
    -------
    IntervalModel
    """
    scale, stated = DistanceScale.from_distances(left_out.distances), left_out.probabilities
    if calibrator is not None:
        scale, stated = calibrator.scale, calibrator.calibrate(left_out)
    correlation = correlate_residuals(
        stated,
        labels,
        pairs,
        n_votes,
        columns=columns,
        weights=weights * find_scored(labels, groups),
        groups=groups,
    )
    if copies is not None:
        copies = copies.among_groups(weights, groups, correlation.within)
    return IntervalModel(correlation, scale, copies, calibrator)


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
