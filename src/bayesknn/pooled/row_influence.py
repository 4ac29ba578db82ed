"""The training rows that move a point: what each adds to the pool's log odds of its own class.

A row of class g adds a soft count v to U_g, and so ``b_1 log[(1/G + U_g) / (1/G + U_g - v)]`` to
the log odds of g against every other class; over the k of a member and over the members these
add up with their weights. The distances to the classes belong to no single row and are left out.
"""

from __future__ import annotations

import numpy as np

from bayesknn.pooled.features import Neighborhoods, tricube
from bayesknn.pooled.member import Member


def find_influence(space: Neighborhoods, member: Member, rows: np.ndarray) -> np.ndarray:
    """Return what all training rows add, in one member, to the log odds of new points, (m, n)."""
    labels = space.labels.astype(np.int64)
    truth = np.eye(len(space.classes))[labels]
    influence = np.zeros((len(rows), len(labels)))
    for part, near, far, _ in space.search(rows):
        at = np.arange(len(near))[:, None]
        for t, k in enumerate(space.k_values):
            votes = np.zeros((len(near), len(labels)))
            votes[at, near] = _weigh_distances(far, far[:, [k]])
            votes[at, near] += _weigh_distances(far, space.reach[near, t])
            votes *= space.weights
            total = (1 / len(space.classes) + votes @ truth)[:, labels]
            influence[part] += (
                member.k_weights[t] * member.b[t, 0] * np.log(total / (total - votes))
            )
    return influence


def _weigh_distances(distance: np.ndarray, reach: np.ndarray) -> np.ndarray:
    return tricube(np.divide(distance, reach, np.ones_like(distance), where=distance < reach))


def take_largest(influence: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of largest influence and that influence, (m, n_neighbors); -1 for none.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.pooled.row_influence import take_largest
    >>> take_largest(np.array([[0.0, 0.2, 0.7]]), 3)
    (array([[ 2,  1, -1]]), array([[0.7, 0.2, 0. ]]))
    """
    first = np.argsort(-influence, axis=1, kind="stable")[:, :n_neighbors]
    values = np.take_along_axis(influence, first, axis=1)
    missing = (0, 0), (0, n_neighbors - first.shape[1])
    indices = np.pad(np.where(values > 0, first, -1), missing, constant_values=-1)
    return indices, np.pad(values, missing)
