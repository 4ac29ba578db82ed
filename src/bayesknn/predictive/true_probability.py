"""Intervals that cover the true P(y | x), bias of smoothing included.

Given the places the labels are independent. So where p_i and p_j use neither y_i nor y_j, the
expected product of the residuals y_i - p_i and y_j - p_j is that of the errors P_i - p_i and
P_j - p_j, and for near neighbours i and j the errors are about the same: such products estimate the
mean squared error of the probabilities, as a part kappa of p (1 - p). An interval is cut from the
Beta law of that variance, wider where neighbours are far, and is [0, 1] where they are farther than
any training point's. The constants are empirical; see ``docs/intervals.md`` for where they hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# The most that the error may be of p (1 - p).
_LARGEST = 0.5
# Products that cannot tell the error from 0 leave that of so many votes' mean.
_LEAST = 1.5
# Neighbours whose residuals are multiplied: a fifth of k, not fewer nor more than these.
_PART_OF_K, _FEWEST, _MOST = 5, 3, 15


class ResidualCorrelation(NamedTuple):
    """Correlation of the residuals of near neighbours.

    Attributes
    ----------
    value, error : float
        The estimate and its standard error.
    bound : float
        What intervals use: the estimate and one error more, within reason.
    """

    value: float
    error: float
    bound: float


def choose_n_neighbors(k_mean: float) -> int:
    """Return how many neighbours' residuals are multiplied where k neighbours vote.

    Examples
    --------
    >>> from bayesknn.predictive.true_probability import choose_n_neighbors
    >>> choose_n_neighbors(4.0), choose_n_neighbors(55.1), choose_n_neighbors(400.0)
    (3, 11, 15)
    """
    return int(np.clip(int(k_mean / _PART_OF_K), _FEWEST, _MOST))


def correlate_residuals(
    labels: np.ndarray,
    neighbors: np.ndarray,
    without: Callable[[np.ndarray, np.ndarray, int], np.ndarray],
    probabilities: np.ndarray,
    k_mean: float,
    weight: np.ndarray | None = None,
) -> ResidualCorrelation:
    """Estimate how far probabilities are off from the residuals of near neighbours.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Class numbers.
    neighbors : ndarray of shape (n_ranks, n)
        ``neighbors[r, i]`` is the neighbour of i at rank r + 1.
    without : callable
        ``without(i, j, rank)`` are the leave-one-out probabilities of the points i that do not use
        the labels of the points j either, of shape (n, n_classes); j stands at that rank from i,
        or i from j.
    probabilities : ndarray of shape (n, n_classes)
        Leave-one-out probabilities.
    k_mean : float
        How many neighbours vote on average.
    weight : ndarray of shape (n,), optional
        How much each point counts.

    Returns
    -------
    ResidualCorrelation
    """
    n, n_classes = probabilities.shape
    points = np.arange(n)
    truth = np.eye(n_classes)[labels]
    total = squares = 0.0
    for r, j in enumerate(neighbors, start=1):
        ours = truth - without(points, j, r)
        theirs = truth[j] - without(j, points, r)
        products = (ours * theirs).sum(axis=1)
        if weight is not None:
            products *= weight * weight[j]
        total += products.sum()
        squares += (products**2).sum()
    variances = (probabilities * (1.0 - probabilities)).sum(axis=1)
    if weight is not None:
        variances = variances * weight
    scale = max(len(neighbors) * variances.sum(), 1e-300)
    value, error = total / scale, np.sqrt(2.0 * squares) / scale
    bound = min(max(_LEAST / k_mean, value + error), _LARGEST)
    return ResidualCorrelation(float(value), float(error), float(bound))


def find_probability_intervals(
    probabilities: np.ndarray,
    variances: np.ndarray,
    correlation: float,
    relative_distances: np.ndarray,
    is_far: np.ndarray,
    level: float,
    n_points: int,
) -> np.ndarray:
    """Find an interval for each true class probability.

    Parameters
    ----------
    probabilities : ndarray of shape (m, n_classes)
        Calibrated ones.
    variances : ndarray of shape (m, n_classes)
        Of the probabilities over the law of (beta, k).
    correlation : float
        ``ResidualCorrelation.bound``.
    relative_distances : ndarray of shape (m,)
        Distance to the k-th neighbour over the training points' median.
    is_far : ndarray of shape (m,), dtype bool
        Where nothing is known.
    level : float
    n_points : int
        Number of training points, n.

    Returns
    -------
    ndarray of shape (m, n_classes, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive.true_probability import find_probability_intervals
    >>> found = find_probability_intervals(np.array([[0.5, 0.5]]), np.zeros((1, 2)), 0.04,
    ...                                    np.ones(1), np.zeros(1, bool), 0.95, 250)
    >>> found.round(3).tolist()
    [[[0.306, 0.694], [0.306, 0.694]]]
    """
    n_classes = probabilities.shape[1]
    tail = 1.0 - level
    stretch = 0.5 * correlation * (1.0 + relative_distances[:, None] ** 2)
    found = np.empty((*probabilities.shape, 2))
    # With two classes the second interval mirrors the first.
    for g in range(1 if n_classes == 2 else n_classes):
        p = (n_points * probabilities[:, g] + 1.0 / n_classes) / (n_points + 1.0)
        spread = p * (1.0 - p)
        size = np.maximum(spread / (stretch[:, 0] * spread + variances[:, g]) - 1.0, 1.0)
        found[:, g] = _cut_beta(p, size, tail)
    found[is_far] = (0.0, 1.0)
    if n_classes == 2:
        found[:, 1] = 1.0 - found[:, 0, ::-1]
    return found


def _cut_beta(p: np.ndarray, size: np.ndarray, tail: float) -> np.ndarray:
    from scipy.special import betaincinv

    low = betaincinv(size * p, size * (1.0 - p), tail * p)
    high = betaincinv(size * p, size * (1.0 - p), 1.0 - tail * (1.0 - p))
    return np.stack([np.minimum(low, p), np.maximum(high, p)], axis=-1)
