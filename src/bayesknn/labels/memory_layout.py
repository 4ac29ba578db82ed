"""Near points near in memory: the graph relabelled along a space-filling order, for large n.

A sweep reads the labels of a point and of its neighbours. While they all fit the fastest caches
their order does not matter; beyond, points that are near in space should be near in memory.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph import NeighborGraph

# Measured: below, relabelling gains nothing.
_RELABEL_FROM = 20_000


class MemoryLayout(NamedTuple):
    """The graph as the kernels walk it.

    Attributes
    ----------
    neighbors : ndarray of shape (at least n_ranks, n), dtype uint32
        As ``NeighborGraph.neighbors``, between positions. Read-only.
    order : ndarray of shape (n,), dtype uint32
        The point at each position.
    """

    neighbors: np.ndarray
    order: np.ndarray


_layouts: WeakKeyDictionary[NeighborGraph, MemoryLayout] = WeakKeyDictionary()


def lay_out_in_memory(graph: NeighborGraph, n_ranks: int) -> MemoryLayout:
    """Return the first ``n_ranks`` ranks of the graph, relabelled if that is worth it.

    The relabelled copy is kept for as long as the graph lives.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.memory_layout import lay_out_in_memory
    >>> lay_out_in_memory(NeighborGraph.from_neighbors([[1, 2, 0]]), n_ranks=1).order
    array([0, 1, 2], dtype=uint32)
    """
    n = graph.n_points
    if n < _RELABEL_FROM:
        return MemoryLayout(graph.neighbors, np.arange(n, dtype=np.uint32))
    layout = _layouts.get(graph)
    if layout is None or layout.neighbors.shape[0] < n_ranks:
        order = np.ascontiguousarray(graph.locality_order(), dtype=np.uint32)
        positions = np.empty(n, np.uint32)
        positions[order] = np.arange(n, dtype=np.uint32)
        neighbors = _relabel(graph.neighbors, n_ranks, order, positions)
        neighbors.flags.writeable = False
        layout = _layouts[graph] = MemoryLayout(neighbors, order)
    return layout


@kernel
def _relabel(neighbors, n_ranks, order, positions):
    relabelled = np.empty((n_ranks, order.size), np.uint32)
    for rank in range(n_ranks):
        old, new = neighbors[rank], relabelled[rank]
        for i in range(np.uint64(order.size)):
            new[i] = positions[old[order[i]]]
    return relabelled
