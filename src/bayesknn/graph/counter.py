"""Class counts around new points, without keeping their lists (Section 2.3).

The predictive distribution needs the neighbours of a new point, in both directions, only as
counts of each class at the k that carry weight. So what a search finds is tallied at once, by the
first of these k that it belongs to, and forgotten; the counts are running sums of the tally. A
reverse neighbour is looked up in the distances at these k alone, and never sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesknn._utils.checks import check_count
from bayesknn._utils.jit import kernel
from bayesknn.graph.arguments import check_class_numbers, check_k_values
from bayesknn.graph.kdsearch import _gather, _make_candidates
from bayesknn.graph.kdtree import _LEAF, KDTree, build_tree
from bayesknn.graph.ordering import _sort
from bayesknn.graph.query import (
    NeighborQuery,
    check_query,
    check_query_direction,
    cut_queries,
)
from bayesknn.graph.reach import Reach, _find_reached, _make_hits
from bayesknn.graph.rounded import _GROUP, Rounded, _load, _make_group
from bayesknn.graph.threads import run_in_threads

if TYPE_CHECKING:
    from bayesknn.graph.neighbor_graph import NeighborGraph

_LEAVES_A_TASK = 16


class NeighborCounter:
    """Counts each class among the neighbours of new points, at chosen values of k.

    Its counts are those of :meth:`bayesknn.graph.query.NeighborQuery.counts`, found faster.

    Parameters
    ----------
    graph : NeighborGraph
        Of the training points.
    labels : array of shape (n,)
        Class numbers 0..n_classes-1 of the training points.
    n_classes : int
    k_values : sequence of int, optional
        The k wanted, in any order; every k in 1..k_max by default.
    direction : {"both", "forward"}
        Whether to count the training points that would have the new point among their nearest
        along with its own nearest, or these alone.
    rank : int, optional
        Rank of the neighbour whose distance :meth:`count_chunks` tells; the largest k by default.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.graph.counter import NeighborCounter
    >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0], [7.0]], k_max=2)
    >>> NeighborCounter(graph, [0, 0, 1, 1], n_classes=2).count([[2.1]]).tolist()
    [[[0, 2]], [[3, 3]]]
    """

    def __init__(
        self,
        graph: NeighborGraph,
        labels: Any,
        n_classes: int,
        k_values: Any = None,
        direction: str = "both",
        rank: int | None = None,
    ):
        check_query_direction(direction)
        self.graph = graph
        self.labels = check_class_numbers(labels, graph.n_points, n_classes)
        self.n_classes = n_classes
        self.k_values = check_k_values(k_values, graph.k_max)
        self.direction = direction
        largest = int(self.k_values.max())
        self.rank = largest if rank is None else check_count(rank, "rank", 1, largest)

    def count(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Count each class around each new point.

        Parameters
        ----------
        X : array or frame of shape (m, p)
            As :meth:`bayesknn.graph.NeighborGraph.query` takes it.
        n_jobs : int, optional
            Threads, as in joblib. The result does not depend on it.

        Returns
        -------
        ndarray of shape (n_k, m, n_classes), dtype int32
        """
        return self._count_rows(self._check(X), n_jobs)[0]

    def count_chunks(
        self, X: Any, chunk_size: int, n_jobs: int | None = None
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield the counts of ``chunk_size`` new points at a time, and which rows of X they are.

        Parameters
        ----------
        X, n_jobs
            As in :meth:`count`; X is checked as a whole before the first chunk.
        chunk_size : int

        Yields
        ------
        rows : slice
        counts : ndarray of shape (n_k, size, n_classes), dtype int32
        distances : ndarray of shape (size,)
            From the new points to their neighbours at ``rank``.
        """
        rows = self._check(X)
        parts = cut_queries(rows.shape[0], chunk_size)
        return ((part, *self._count_rows(rows[part], n_jobs)) for part in parts)

    def _check(self, X: Any) -> Any:
        return check_query(self.graph, X, self.direction, int(self.k_values.max()))

    @cached_property
    def _reach(self) -> Reach:
        """How far the lists reach, at the k that are wanted alone; built on the first count."""
        assert self.graph.distances is not None and self.graph.index is not None
        return Reach(self.graph.distances[np.sort(self.k_values) - 1], self.graph.index.tree)

    def _count_rows(self, rows: Any, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
        index = self.graph.index
        assert index is not None
        if index.tree is not None and index.rounded is not None:
            return self._count_in_tree(index.tree, index.rounded, build_tree(rows), n_jobs)
        wanted = np.sort(self.k_values)
        reach = self._reach if self.direction == "both" else None
        forward, reverse = index.query(rows, int(wanted[-1]), reach, n_jobs)
        if reverse is not None:
            # Lists are known at these k alone: who comes t-th in them is a neighbour from there on.
            starts, points, places = reverse
            reverse = starts, points, wanted[places - 1].astype(np.uint32)
        query = NeighborQuery(*forward, reverse, self.graph.n_points)
        counts = query.counts(self.labels, self.n_classes, self.k_values, self.direction)
        return counts, query.distances[self.rank - 1]

    def _count_in_tree(
        self, tree: KDTree, rounded: Rounded, queries: KDTree, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.k_values, kind="stable")
        found = np.empty((len(order), len(queries.order), self.n_classes), np.int32)
        distances = np.empty(len(queries.order))
        is_reverse = self.direction == "both"
        lists, squares, radii = np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0), np.float32)
        if is_reverse:
            reach = self._reach
            assert reach.squares is not None
            lists, squares, radii = reach.lists, reach.squares, reach.radii(rounded)
        in_tree = self.labels[tree.order]
        by_rank = np.empty_like(in_tree)
        by_rank[tree.ranks] = in_tree

        def search(start: Any, stop: Any) -> None:
            _tally(
                tree.ranks, *tree[1:6], rounded, lists, squares, radii,
                queries.order, queries.blocks, start, stop, by_rank, in_tree,
                self.k_values[order], order, is_reverse, self.rank, found, distances,
            )  # fmt: skip

        run_in_threads(search, len(queries.blocks), _LEAVES_A_TASK, n_jobs)
        return found, distances

    def __getstate__(self) -> dict[str, Any]:
        # As large as the graph, and quick to rebuild.
        return {name: value for name, value in vars(self).items() if name != "_reach"}


@kernel
def _tally(
    ranks, first_leaf, n_leaves, low, high, blocks, rounded, lists, reach, radii,
    query_order, query_blocks, start, stop,
    labels_by_rank, labels_in_tree, wanted, columns, is_reverse, rank, found, distances,
):  # fmt: skip
    """Write the counts at ``wanted``, which rises, to rows ``columns`` of ``found``.

    And the distances to the neighbours at ``rank`` to ``distances``.
    """
    m, n_k = query_order.shape[0], wanted.shape[0]
    group = _make_group(blocks.shape[1], blocks.shape[0])
    held = _make_candidates(wanted[-1], blocks.shape[0])
    keys, points, n_found = held.keys, held.points, held.n_found
    capacity = keys.shape[1]
    spare_keys, spare_points = np.empty(capacity), np.empty(capacity, np.uint32)
    slots = np.empty(capacity + 1, np.int64)
    hits = _make_hits()
    queries, members, places = hits.queries, hits.members, hits.places
    # The last row takes who turns out to be beyond the largest k.
    tally = np.empty((_GROUP * _LEAF, n_k + 1, found.shape[2]), np.int32)
    no_limits = np.empty(0)
    for b in range(start, stop, _GROUP):
        first = b * _LEAF
        size = min(_LEAF * min(_GROUP, stop - b), m - first)
        _load(query_blocks, b, size, rounded, group)
        _gather(
            ranks, first_leaf, n_leaves, low, high, blocks, rounded,
            query_order, False, no_limits, first, size, wanted[-1], group, held,
        )  # fmt: skip
        tally[:] = 0
        for q in range(size):
            _sort(keys[q], points[q], n_found[q], spare_keys, spare_points, slots)
            distances[query_order[first + q]] = keys[q, rank - 1]
            r = 0
            for t in range(n_k):
                while r < wanted[t]:
                    tally[q, t, labels_by_rank[points[q, r]]] += np.int32(1)
                    r += 1
        leaf = 0 if is_reverse else blocks.shape[0]
        while leaf < blocks.shape[0]:
            n_hits, leaf = _find_reached(
                blocks, rounded, lists, reach, radii, group, size, leaf, hits
            )
            for h in range(n_hits):
                tally[queries[h], places[h], labels_in_tree[members[h]]] += np.int32(1)
        for q in range(size):
            for g in range(found.shape[2]):
                total = np.int32(0)
                for t in range(n_k):
                    total += tally[q, t, g]
                    found[columns[t], query_order[first + q], g] = total
