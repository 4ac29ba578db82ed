"""The symmetric weights w_ij of one k, in the forms that single-site sweeps want (Section 2.2).

``w_ij = 1[j in N_k(i)] + 1[i in N_k(j)]`` is 0, 1 or 2. Where the lists of the graph hold a
mutual neighbour twice, here every neighbour stands once, the mutual ones first, so that a sweep
touches about half as many points at large k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph import NeighborGraph

_ONE = np.uint64(1)


class Couplings(NamedTuple):
    """The neighbours of each point in the graph of one k, with weight 2 or 1.

    Attributes
    ----------
    starts : ndarray of shape (n + 1,), dtype uint64
        The neighbours of i are the entries ``starts[i] : starts[i + 1]`` of ``points``.
    single_starts : ndarray of shape (n,), dtype uint64
        Entries from ``starts[i]`` up to here have weight 2, those from here on weight 1.
    points : ndarray, dtype uint32
    degrees : ndarray of shape (n,), dtype uint32
        The sum over j of w_ij, that is k plus the number of points that have i as neighbour.
    """

    starts: np.ndarray
    single_starts: np.ndarray
    points: np.ndarray
    degrees: np.ndarray


def list_couplings(graph: NeighborGraph, k: int) -> Couplings:
    """List each point's neighbours in either direction, once each, mutual ones first.

    Parameters
    ----------
    graph : NeighborGraph
    k : int

    Returns
    -------
    Couplings

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.couplings import list_couplings
    >>> graph = NeighborGraph.from_neighbors([[1, 0, 1]])
    >>> couplings = list_couplings(graph, 1)
    >>> couplings.points.tolist(), couplings.degrees.tolist()
    ([1, 0, 2, 1], [2, 3, 1])
    """
    incidence = graph.incidence
    degrees = np.uint32(k) + incidence.in_degree[k - 1]
    starts, single_starts, points = _list_once(incidence.starts, incidence.points, degrees)
    return Couplings(starts, single_starts, points, degrees)


@kernel
def _list_once(incident_starts, incident, degrees):
    n = len(degrees)
    starts = np.zeros(n + 1, np.uint64)
    single_starts = np.zeros(n, np.uint64)
    points = np.empty(np.int64(degrees.sum()) + 1, np.uint32)
    # sight[j] = 2i + 1 once i has met j, 2i + 2 once it has met j in the other direction too.
    # Written without branches, which could not be predicted: every point is put at the end of
    # the list, and the end moves on only if the point belongs there.
    sight = np.zeros(n, np.uint64)
    end = np.uint64(0)
    for i in range(np.uint64(n)):
        once = np.uint64(2) * i + _ONE
        first = np.uint64(incident_starts[i])
        last = first + np.uint64(degrees[i])
        for e in range(first, last):
            j = incident[e]
            points[end] = j
            again = np.uint64(sight[j] == once)
            end += again
            sight[j] = once + again
        single_starts[i] = end
        for e in range(first, last):
            j = incident[e]
            points[end] = j
            end += np.uint64(sight[j] == once)
        starts[i + _ONE] = end
    return starts, single_starts, points[: np.int64(end)].copy()


@kernel
def _dense_rows(starts, single_starts, points):
    """Write the weights as a matrix, whose rows compiled code adds in vectors."""
    n = len(single_starts)
    rows = np.zeros((n, n), np.uint16)
    for i in range(np.uint64(n)):
        for e in range(starts[i], starts[i + _ONE]):
            rows[i, points[e]] = 2 if e < single_starts[i] else 1
    return rows
