"""Residuals of leave-one-out probabilities: their correlation, and the columns they depend on.

Given the feature values the labels are independent. So where p_i and p_j use neither y_i nor y_j,
the expected product of the residuals y_i - p_i and y_j - p_j is that of the errors P_i - p_i and
P_j - p_j, and for near neighbours i and j the errors are about the same: such products estimate the
mean squared error of the probabilities, as a part kappa of p (1 - p). Near neighbours are those by
the distance, and those along a single column where that shows more: where many columns do not
matter, neighbours by the distance are not near in the one that does, and its name says what the
distance misses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bayesknn._utils.jit import kernel

# The squared error is at most this part of p (1 - p).
MAX_BOUND = 0.5
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
    levels = level_of(probabilities).ravel()
    n_wrong, n = (
        np.cumsum(np.bincount(levels, each.ravel(), _N_LEVELS)[::-1])[::-1]
        for each in (wrong, every)
    )
    return np.minimum.accumulate((n_wrong + 2.0) / (n + 2.0))


def level_of(probabilities: np.ndarray) -> np.ndarray:
    """Return j where a probability is within 2^-j of 0 or 1, but not within 2^-(j + 1)."""
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
    >>> from bayesknn.sureness.residuals import find_misfit
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
    >>> from bayesknn.sureness.residuals import effective_part
    >>> effective_part(np.array([2.0, 2.0])), effective_part(np.array([3.0, 1.0]))
    (1.0, 0.8)
    """
    return float(weight.mean() ** 2 / (weight**2).mean())
