"""Which training rows influence a point, and how much.

In the rule of eq. knn-pred a training row of class g adds ``a_g beta / k`` to the log odds of g for
each direction in which it and the point are neighbours at k. Over the posterior that is
``a_g (A[r] + A[s])``: r the row's rank from the point, s the point's rank from the row, and A[r]
the mean of ``beta / k`` over the k that reach rank r.
"""

from __future__ import annotations

import numpy as np

from bayesknn._utils.jit import kernel


def find_influence(
    neighbors: np.ndarray,
    reverse: tuple[np.ndarray, np.ndarray, np.ndarray],
    votes_by_rank: np.ndarray,
    row_weight: np.ndarray,
    n_neighbors: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the training rows that move the log odds of each point most.

    Parameters
    ----------
    neighbors : ndarray of shape (k_max, m)
        Training rows by rank from the points.
    reverse : (starts, rows, ranks)
        Rows ``starts[q] : starts[q + 1]`` would have point q among their nearest, at these ranks.
    votes_by_rank : ndarray of shape (k_max,)
        The A[r].
    row_weight : ndarray of shape (n,)
        The weight a_g of each row's class.
    n_neighbors : int

    Returns
    -------
    indices : ndarray of shape (m, n_neighbors), dtype int64
        Largest influence first, the lower row number among equals; -1 where no row is left that
        has any.
    influence : ndarray of shape (m, n_neighbors)
    """
    m = neighbors.shape[1]
    indices = np.full((m, n_neighbors), -1)
    influence = np.zeros((m, n_neighbors))
    _collect(neighbors, *reverse, votes_by_rank, row_weight, indices, influence)
    return indices, influence


@kernel
def _collect(neighbors, starts, rows, ranks, votes, weight, indices, influence):
    total = np.zeros(weight.size)
    # A row whose votes are 0 looks new in either direction.
    touched = np.empty(2 * weight.size, np.int64)
    for q in range(neighbors.shape[1]):
        n_touched = 0
        for r in range(min(neighbors.shape[0], votes.size)):
            j = neighbors[r, q]
            touched[n_touched] = j
            n_touched += 1
            total[j] = votes[r] * weight[j]
        for e in range(starts[q], starts[q + 1]):
            if ranks[e] > votes.size:
                continue
            j = rows[e]
            if total[j] == 0.0:
                touched[n_touched] = j
                n_touched += 1
            total[j] += votes[ranks[e] - 1] * weight[j]
        for t in range(n_touched):
            j = touched[t]
            _insert(indices[q], influence[q], j, total[j])
            total[j] = 0.0


@kernel
def _insert(indices, values, row, value):
    """Keep the largest values, in falling order, and the lower row first among equals."""
    at = values.size
    while at > 0 and (
        value > values[at - 1]
        or (value == values[at - 1] and value > 0.0 and row < indices[at - 1])
    ):
        at -= 1
    if at == values.size:
        return
    for s in range(values.size - 1, at, -1):
        values[s] = values[s - 1]
        indices[s] = indices[s - 1]
    values[at] = value
    indices[at] = row
