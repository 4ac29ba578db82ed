"""Residuals of rows that are next to each other along one column.

Where many columns do not matter, neighbours by the distance are not near in the one that does, and
their errors have little in common. Rows that are near along that column alone still show them, and
its name says what the distance misses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bayesknn._utils.jit import kernel


class ColumnMisfit(NamedTuple):
    """The column along which residuals are most surely alike.

    Attributes
    ----------
    column : int
    value, error : float
        Correlation of the residuals, and its standard error.
    """

    column: int
    value: float
    error: float


def find_misfit(
    residuals: np.ndarray,
    variances: np.ndarray,
    columns: np.ndarray,
    weight: np.ndarray,
    *,
    folds: np.ndarray | None = None,
    voters: np.ndarray | None = None,
    max_gap: int = 3,
) -> ColumnMisfit | None:
    """Find the column on which residuals still depend, if there is one.

    Parameters
    ----------
    residuals : ndarray of shape (n, n_classes)
        Of leave-one-out probabilities.
    variances : ndarray of shape (n,)
        What the squares of the residuals are expected to add up to.
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
    ColumnMisfit or None
        None if no column is significant at 5 % after their number.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive.column_pairs import find_misfit
    >>> x = np.random.default_rng(0).random((200, 2))
    >>> residuals = np.where(x[:, 1] > 0.5, 0.5, -0.5)[:, None] * [1, -1]
    >>> find_misfit(residuals, np.full(200, 0.5), x, np.ones(200)).column
    1
    """
    n, p = columns.shape
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
            best = ColumnMisfit(c, float(total / scale), float(np.sqrt(squares) / scale))
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
