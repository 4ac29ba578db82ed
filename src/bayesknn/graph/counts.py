"""Class counts around each training point: the sums of the full conditionals (Section 2.2).

For point i, k and class g the count is the number of members of g among the k nearest of i, plus
the number of members of g that have i among their k nearest. Leave-one-out scores, the
pseudo-likelihood and the conditionals of the model are functions of these counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph.arguments import check_class_numbers, check_direction, check_k_values

if TYPE_CHECKING:
    from bayesknn.graph.neighbor_graph import NeighborGraph


def iterate_counts(
    graph: NeighborGraph, labels: Any, n_classes: int, k_values: Any = None, direction: str = "both"
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (k, counts) for rising k; see :meth:`NeighborGraph.iterate_counts`."""
    labels = check_class_numbers(labels, graph.n_points, n_classes)
    wanted = np.sort(check_k_values(k_values, graph.k_max))
    check_direction(direction)
    return _walk(graph.neighbors, labels, n_classes, wanted, direction)


def _walk(neighbors: Any, labels: Any, n_classes: Any, wanted: Any, direction: Any) -> Any:
    counts = np.zeros((neighbors.shape[1], n_classes), np.int32)
    reached = 0
    for k in wanted.tolist():
        _add_ranks(
            neighbors, labels, reached, k, direction != "reverse", direction != "forward", counts
        )
        reached = k
        yield k, counts


@kernel
def _add_ranks(neighbors, labels, start, stop, is_forward, is_reverse, counts):
    """Add the edges at ranks start + 1 .. stop to both of their ends."""
    n = neighbors.shape[1]
    for r in range(start, stop):
        row = neighbors[r]
        if is_forward:
            for i in range(n):
                counts[i, labels[row[i]]] += np.int32(1)
        if is_reverse:
            for i in range(n):
                counts[row[i], labels[i]] += np.int32(1)
