"""New points against a graph: their neighbours, and the training points they would join.

The predictive distribution (Section 2.3) of a new point needs, for each class and each k, its
members among the point's k nearest and those training points of the class that would have the
point among their own k nearest. Both kinds are sorted by rank here, so any k is a prefix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.checks import check_choice, check_count, check_k, check_label_vector
from bayesknn._utils.jit import kernel

DIRECTIONS = ("both", "forward", "reverse")


class NeighborQuery:
    """Neighbours of m new points among n training points, in both directions.

    Attributes
    ----------
    neighbors : ndarray of shape (k_max, m), dtype uint32
        ``neighbors[r, q]`` is the training point at rank r + 1 from new point q.
    distances : ndarray of shape (k_max, m)
    reverse_starts : ndarray of shape (m + 1,), dtype int64
    reverse_points, reverse_ranks : ndarray, dtype uint32
        Entries ``reverse_starts[q] : reverse_starts[q + 1]`` are the training points that would
        have q among their k nearest for every k from ``reverse_ranks`` on, sorted by (rank, index).
        A query with ``direction="forward"`` did not look for them and says so when asked.
    n_points : int
        Number of training points, n.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0], [7.0]], k_max=2)
    >>> query = graph.query([[2.1]])
    >>> query.neighbors.T.tolist(), query.reverse_points.tolist(), query.reverse_ranks.tolist()
    ([[2, 1]], [2, 0, 1, 3], [1, 2, 2, 2])
    >>> query.counts([0, 0, 1, 1], n_classes=2).tolist()
    [[[0, 2]], [[3, 3]]]
    """

    def __init__(
        self,
        neighbors: np.ndarray,
        distances: np.ndarray,
        reverse: tuple[np.ndarray, np.ndarray, np.ndarray] | None,
        n_points: int,
    ):
        self.neighbors = neighbors
        self.distances = distances
        self.n_points = n_points
        self._reverse = reverse

    @property
    def reverse_starts(self) -> np.ndarray:
        """Where each new point's reverse neighbours start."""
        return self._require_reverse()[0]

    @property
    def reverse_points(self) -> np.ndarray:
        """Training points that would have a new point among their nearest."""
        return self._require_reverse()[1]

    @property
    def reverse_ranks(self) -> np.ndarray:
        """Rank that the new point would take in their lists."""
        return self._require_reverse()[2]

    def _require_reverse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self._reverse is None:
            raise ValueError(
                "this query was made with direction='forward' and knows no reverse neighbours; "
                "ask the graph again with direction='both'"
            )
        return self._reverse

    @property
    def n_queries(self) -> int:
        """Number of new points, m."""
        return self.neighbors.shape[1]

    @property
    def k_max(self) -> int:
        """Largest k served."""
        return self.neighbors.shape[0]

    def counts(
        self, labels: Any, n_classes: int, k_values: Any = None, direction: str = "both"
    ) -> np.ndarray:
        """Count each class among the neighbours of each new point, for many k at once.

        Parameters
        ----------
        labels : array of shape (n,)
            Class numbers 0..n_classes-1 of the training points.
        n_classes : int
        k_values : sequence of int, optional
            The k wanted, in any order; every k in 1..k_max by default.
        direction : {"both", "forward", "reverse"}
            Whether to count the nearest training points of the new point (forward), the training
            points that would have it among their nearest (reverse), or both.

        Returns
        -------
        ndarray of shape (n_k, m, n_classes), dtype int32
        """
        check_count(n_classes, "n_classes")
        labels = check_label_vector(labels, self.n_points, n_classes).astype(np.uint32)
        wanted = check_k_values(k_values, self.k_max)
        check_choice(direction, "direction", DIRECTIONS)
        order = np.argsort(wanted, kind="stable")
        counts = np.empty((len(wanted), self.n_queries, n_classes), np.int32)
        none = np.empty(0, np.uint32)
        reverse = np.zeros(self.n_queries + 1, np.int64), none, none
        if direction != "forward":
            reverse = self._require_reverse()
        _count(self.neighbors, reverse, labels, wanted, order, direction != "reverse", counts)
        return counts

    def __repr__(self) -> str:
        return f"NeighborQuery(n_queries={self.n_queries}, k_max={self.k_max})"


def check_k_values(k_values: Any, k_max: int) -> np.ndarray:
    """Return the wanted k as an int64 array; None stands for every k in 1..k_max.

    Examples
    --------
    >>> from bayesknn.graph.queries import check_k_values
    >>> check_k_values([3, 1], 5).tolist()
    [3, 1]
    """
    if k_values is None:
        return np.arange(1, k_max + 1)
    values = [
        check_k(k, k_max, "the graph") for k in (k_values if np.iterable(k_values) else [k_values])
    ]
    if not values:
        raise ValueError("k_values is empty")
    return np.array(values, dtype=np.int64)


@kernel
def _count(neighbors, reverse, labels, wanted, order, is_forward, counts):
    m = neighbors.shape[1]
    starts, points, ranks = reverse
    n_classes = counts.shape[2]
    current = np.empty(n_classes, np.int32)
    for q in range(m):
        for g in range(n_classes):
            current[g] = np.int32(0)
        r = 0
        e, end = starts[q], starts[q + 1]
        for t in range(wanted.shape[0]):
            k = wanted[order[t]]
            if is_forward:
                while r < k:
                    current[labels[neighbors[r, q]]] += np.int32(1)
                    r += 1
            while e < end and ranks[e] <= k:
                current[labels[points[e]]] += np.int32(1)
                e += 1
            for g in range(n_classes):
                counts[order[t], q, g] = current[g]
