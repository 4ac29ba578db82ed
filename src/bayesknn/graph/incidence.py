"""The symmetrised graph of every k: the weights w_ij of the model (Section 2.2).

``w_ij`` counts the directed edges between i and j, so mutual neighbours have weight 2. Each
point's incident edges, in either direction, are sorted by rank, and those of any k are a prefix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel


class Incidence(NamedTuple):
    """Directed edges that touch each point, in either direction, sorted by rank.

    The edges of point i in the graph of k are the entries
    ``starts[i] : starts[i] + k + in_degree[k - 1, i]`` of ``points``; a mutual neighbour stands
    there twice, which is its weight 2.

    Attributes
    ----------
    starts : ndarray of shape (n + 1,), dtype int64
    points : ndarray of shape (2 * n * k_max,), dtype uint32
        The other end of each edge.
    in_degree : ndarray of shape (k_max, n), dtype uint32
        Entry [k - 1, i]: how many points have i among their k nearest.
    """

    starts: np.ndarray
    points: np.ndarray
    in_degree: np.ndarray


def build_incidence(neighbors: np.ndarray) -> Incidence:
    """List the edges that touch each point.

    Parameters
    ----------
    neighbors : ndarray of shape (k_max, n), dtype uint32

    Returns
    -------
    Incidence

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.incidence import build_incidence
    >>> ring = build_incidence(np.array([[1, 2, 0]], dtype=np.uint32))
    >>> ring.points.reshape(3, 2).tolist(), ring.in_degree.tolist()
    ([[1, 2], [0, 2], [1, 0]], [[1, 1, 1]])
    """
    k_max = neighbors.shape[0]
    in_degree = _count_in_degrees(neighbors)
    degrees = k_max + in_degree[-1].astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(degrees)])
    return Incidence(starts, _list_incident(neighbors, starts), in_degree)


@kernel
def _count_in_degrees(neighbors):
    k_max, n = neighbors.shape
    counts = np.zeros((k_max, n), np.uint32)
    for r in range(k_max):
        if r > 0:
            counts[r] = counts[r - 1]
        for i in range(n):
            counts[r, neighbors[r, i]] += np.uint32(1)
    return counts


@kernel
def _list_incident(neighbors, starts):
    k_max, n = neighbors.shape
    points = np.empty(starts[n], np.uint32)
    ends = starts[:n].copy()
    # Rank by rank, so that every prefix of a point's list is the list of a smaller k.
    for r in range(k_max):
        for i in range(n):
            j = neighbors[r, i]
            points[ends[i]] = j
            ends[i] += 1
            points[ends[j]] = np.uint32(i)
            ends[j] += 1
    return points
