"""A neighbour graph whose points and lists stay with the workers of a Dask cluster.

It is built in rounds, each of which is waited for: points are brought into cells that are close in
space; each cell is searched for its own points' neighbours; the cells that these lists reach are
searched as well, others are never looked at; edges are sent to the cells that they end in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any

import numpy as np

from bayesknn._utils.checks import check_indices
from bayesknn._utils.progress import progress
from bayesknn.distributed.cells import (
    Box,
    Cell,
    Edges,
    Lists,
    add_radii,
    bound_cell,
    find_reached,
    finish_lists,
    finish_search,
    make_cell,
    plan_cells,
    receive_edges,
    search_cell,
    search_other,
    search_own,
    send_edges,
    split_block,
    start_search,
    walk_counts,
)
from bayesknn.graph import Graph, NeighborGraph, NeighborQuery
from bayesknn.graph.base import Summarise, map_parts
from bayesknn.graph.metrics import Euclidean, Metric
from bayesknn.graph.queries import check_k_values
from bayesknn.graph.search import build_index, build_tree

# Rows of a cell where there are more blocks than _FEW_CELLS. Larger cells need more memory on a
# worker, about 14 K + 16 p bytes a row; smaller ones cost Dask's overhead for each pair of cells.
_CELL_ROWS = 25_000
# Up to as many cells there is one for each block, so that a few workers all have work.
_FEW_CELLS = 8
# Rows of the sample for each cell. More cost memory on the client, fewer make cells uneven.
_ROWS_FOR_CELL = 256
# Rows of a block from which the sample is taken.
SAMPLE_ROWS = 1024


class BlockGraph(Graph):
    """Neighbours of training points that lie in the blocks of a Dask collection.

    Build one with :meth:`from_blocks`. It has no groups, and its distances are Euclidean. Pickled,
    it becomes the :class:`~bayesknn.graph.NeighborGraph` of :meth:`gather`.

    Attributes
    ----------
    n_searched : int
        Number of pairs of cells that were searched, each with itself included.
    boxes : list of Box
        Around the cells.
    """

    groups = None
    search_name = "cells"
    metric: Metric

    def __init__(
        self, n_points: int, k_max: int, metric: Metric, boxes: list[Box], n_searched: int,
        parts: list[tuple[Any, Any, Any, Any]], sample: np.ndarray, verbose: int = 0,
    ):  # fmt: skip
        self.n_points, self.k_max, self.metric = n_points, k_max, metric
        self.boxes, self.n_searched, self.sample, self.verbose = boxes, n_searched, sample, verbose
        # Dask's delayed values of each cell: its points, their lists, ties beyond these, and the
        # edges that end in the cell.
        self._parts = parts

    @classmethod
    def from_blocks(
        cls,
        blocks: Sequence[Any],
        sizes: Sequence[int],
        samples: Sequence[np.ndarray],
        k_max: int,
        *,
        names: Any = None,
        both: bool = True,
        verbose: int = 0,
    ) -> BlockGraph:
        """Find every point's ``k_max`` nearest others.

        Parameters
        ----------
        blocks : sequence of delayed values
            Arrays of shape (n_b, p), dtype float64, checked.
        sizes : sequence of int
            Number of rows in each block.
        samples : sequence of ndarray of shape (s_b, p)
            Some rows of each block, ``SAMPLE_ROWS`` or all.
        k_max : int
        names : list of str, optional
            Names of the columns.
        both : bool
            Whether reverse neighbours will be counted.
        verbose : int
            Above 0, work that takes more than two seconds shows its progress.

        Returns
        -------
        BlockGraph
        """
        n = int(sum(sizes))
        firsts = (np.cumsum(sizes) - sizes).tolist()
        n_cells = min(len(blocks), max(_FEW_CELLS, -(-n // _CELL_ROWS)))
        run = partial(run_tasks, verbose=verbose)
        # The sample has rows of each block in proportion to its size.
        wanted = [-(-_ROWS_FOR_CELL * n_cells * size // n) for size in sizes]
        sample = np.concatenate([*map(take_evenly, samples, wanted)])
        metric = Euclidean()
        metric.fit(sample)
        metric.feature_names_ = names
        split, n_cells = plan_cells(sample, n_cells)
        pieces = [
            later(split_block, x, first, split, n_cells)
            for x, first in zip(blocks, firsts, strict=True)
        ]
        cells = [later(make_cell, [piece[c] for piece in pieces]) for c in range(n_cells)]
        cells = run(cells, "Bringing points into cells")
        boxes = compute([later(bound_cell, cell) for cell in cells])
        # One more neighbour shows whether the last is tied with points that are left out.
        k = min(k_max + 1, n - 1)
        own = [later(search_own, cell, c, k) for c, cell in enumerate(cells)]
        own = run(own, "Finding neighbours within cells")
        held = hold(boxes)
        pairs = zip(cells, own, strict=True)
        reached = compute([later(find_reached, *each, held) for each in pairs])
        finished = []
        for c, lists in enumerate(own):
            for d in reached[c]:
                if d != c:
                    lists = later(search_other, cells[c], cells[d], d, boxes[d], lists)
            finished.append(later(finish_lists, lists, k_max))
        finished = run(finished, "Finding neighbours in other cells")
        lists, tied = ([each[i] for each in finished] for i in range(2))
        edges: list[Any] = [None] * n_cells
        if both:
            ends = [sorted({c, *reached[c]}) for c in range(n_cells)]
            sent = [later(send_edges, *each) for each in zip(cells, lists, ends, strict=True)]
            received = [
                [sent[c][ends[c].index(d)] for c in range(n_cells) if d in ends[c]]
                for d in range(n_cells)
            ]
            edges = [later(receive_edges, *each) for each in zip(cells, received, strict=True)]
            edges = run(edges, "Sending edges")
        parts = list(zip(cells, lists, tied, edges, strict=True))
        n_searched = sum(len({c, *each}) for c, each in enumerate(reached))
        return cls(n, k_max, metric, boxes, n_searched, parts, sample, verbose)

    @property
    def identity(self) -> np.ndarray:
        """Nearest neighbours and their distances."""
        return np.vstack([self.get_neighbors(1)[0], self.get_distances(1)])

    def up_to(self, k: int) -> BlockGraph:
        """Return the graph of at most k neighbours, so that nothing searches further."""
        return BlockGraph(
            self.n_points, self.check_k(k), self.metric, self.boxes, self.n_searched, self._parts,
            self.sample, self.verbose,
        )  # fmt: skip

    def gather(self) -> NeighborGraph:
        """Return the same graph in memory."""
        index = build_index(self.get_points(np.arange(self.n_points)), self.metric)
        distances = self._collect("distances", slice(self.k_max))
        tied = self._collect("tied")
        return NeighborGraph(self.get_neighbors(self.k_max), distances.T, index, tied)

    def __reduce__(self) -> Any:
        return _as_it_is, (self.gather(),)

    def take(self, rows: Any, k_max: int) -> NeighborGraph:
        """Return the graph of some of the training points, as if there were no others."""
        rows = check_indices(rows, "rows", self.n_points - 1)
        return NeighborGraph.from_points(self.get_points(rows), k_max)

    def most_among(self, rows: Any) -> int:
        """Return the largest k_max of a graph of some of the training points alone."""
        return len(rows) - 1

    def get_points(self, rows: np.ndarray) -> np.ndarray:
        """Return the feature values of some points."""
        return self._collect("points", rows=rows)

    def get_neighbors(self, k: int, rows: Any = None) -> np.ndarray:
        """Return the k nearest of all points, or of some, of shape (k, n_rows)."""
        return np.ascontiguousarray(self._collect("neighbors", slice(self.check_k(k)), rows).T)

    def get_distances(self, k: int) -> np.ndarray:
        """Return the distance of every point to its k-th neighbour, (n,)."""
        return self._collect("distances", self.check_k(k) - 1)

    def count_boundary_ties(self, k: int) -> int:
        """Count the points whose k-th neighbour is no nearer than one that is left out."""
        k = self.check_k(k)
        return sum(compute([later(_count_ties, *part[1:3], k) for part in self._parts]))

    def map_counts(
        self,
        summarise: Summarise,
        labels: np.ndarray,
        n_classes: int,
        k_values: Any = None,
        direction: str = "both",
        max_rows: int | None = None,
        verbose: int = 0,
        words: str = "Counting classes",
    ) -> list[tuple[np.ndarray, Any]]:
        """Apply a function to the class counts around parts of the training points.

        See :meth:`Graph.map_counts`. Every worker receives the labels.
        """
        ks = np.sort(check_k_values(k_values, self.k_max)).tolist()
        about = hold((summarise, labels, n_classes, ks, direction == "both", max_rows))
        tasks = [
            later(_map_cell, cell, lists, edges, about) for cell, lists, _, edges in self._parts
        ]
        parts = compute(run_tasks(tasks, words, verbose or self.verbose))
        return [each for part in parts for each in part]

    def query_blocks(self, blocks: Sequence[Any], direction: str) -> list[Any]:
        """Return the neighbours of new points in blocks, each a delayed ``NeighborQuery``.

        Parameters
        ----------
        blocks : sequence of delayed values
            Arrays of shape (m_b, p), dtype float64, checked.
        direction : {"both", "forward"}

        Returns
        -------
        list of delayed values
        """
        both = direction == "both"
        radii = self._radii if both else [None] * len(self._parts)
        sample = hold(build_tree(self.sample))
        queries = []
        for block in blocks:
            new = later(start_search, block, sample, self.k_max)
            for (cell, *_), radius, box in zip(self._parts, radii, self.boxes, strict=True):
                new = later(search_cell, new, cell, radius, box)
            queries.append(later(finish_search, new, self.n_points, both))
        return queries

    def example_query(self) -> NeighborQuery:
        """Return an answer about one made-up point."""
        lists, none = np.zeros((self.k_max, 1)), np.empty(0, np.uint32)
        reverse = np.zeros(2, np.int64), none, none
        return NeighborQuery(lists.astype(np.uint32), lists, reverse, self.n_points)

    @cached_property
    def _radii(self) -> list[Any]:
        """Distances to which the lists of each cell reach, kept with the workers."""
        tasks = [later(add_radii, cell, lists, self.k_max) for cell, lists, *_ in self._parts]
        return run_tasks(tasks, "Measuring radii", self.verbose)

    def _collect(self, what: str, ranks: Any = None, rows: np.ndarray | None = None) -> np.ndarray:
        """Return values of all training points, or of some, in their order."""
        held = hold(None if rows is None else np.unique(rows))
        parts = compute([later(_take, what, ranks, held, *part[:3]) for part in self._parts])
        members, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(members)
        if rows is None:
            return values[order]
        return values[order[np.searchsorted(members[order], rows)]]

    def __repr__(self) -> str:
        return (
            f"BlockGraph(n_points={self.n_points}, k_max={self.k_max}, n_cells={len(self.boxes)})"
        )


class AnsweredGraph(Graph):
    """Neighbours of one batch of new points, in place of a graph that searches for them."""

    groups = None

    def __init__(self, metric: Any, answer: NeighborQuery):
        self.n_points, self.k_max, self.metric = answer.n_points, answer.k_max, metric
        self.answer = answer

    def query_chunks(
        self, X: Any, chunk_size: int, n_jobs: int | None = None, direction: str = "both"
    ) -> Iterator[tuple[slice, NeighborQuery]]:
        """Yield the answer in parts."""
        for start in range(0, len(X), chunk_size):
            rows = slice(start, min(start + chunk_size, len(X)))
            yield rows, take_queries(self.answer, rows, direction)


def take_queries(answer: NeighborQuery, rows: slice, direction: str) -> NeighborQuery:
    """Return the answer about some of the new points."""
    reverse = None
    if direction == "both":
        starts = answer.reverse_starts[rows.start : rows.stop + 1]
        ends = slice(starts[0], starts[-1])
        reverse = starts - starts[0], answer.reverse_points[ends], answer.reverse_ranks[ends]
    lists = answer.neighbors[:, rows].copy(), answer.distances[:, rows].copy()
    return NeighborQuery(*lists, reverse, answer.n_points)


def later(function: Any, *arguments: Any) -> Any:
    """Return a call that Dask makes later."""
    from dask import delayed

    return delayed(function, pure=False)(*arguments)


def hold(value: Any) -> Any:
    """Return a value that many tasks share as a task of its own, not searched for further ones."""
    from dask import delayed

    return delayed(value, traverse=False, pure=False)


def compute(parts: Sequence[Any]) -> list[Any]:
    """Return the values of delayed calls."""
    import dask

    with _without_size_warning():
        return list(dask.compute(*parts))


def _without_size_warning() -> Any:
    """Return a context in which Dask accepts large graphs: labels are one value for all tasks."""
    import dask

    # Dask's own import of distributed inside the context would lose its defaults at the end.
    with suppress(ImportError):
        import distributed  # noqa: F401
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"})


def run_tasks(parts: Sequence[Any], words: str, verbose: int = 0) -> list[Any]:
    """Start the work on what is to stay with the workers, and wait for it."""
    import dask

    with _without_size_warning():
        started = list(dask.persist(*parts))
    with progress(words, len(parts), verbose=verbose) as advance:
        for _ in _wait_for_each(started):
            advance(1)
    return started


def _wait_for_each(started: list[Any]) -> Any:
    """Yield once for each part that is done."""
    try:
        from distributed import as_completed, futures_of
    except ImportError:
        return started
    futures = futures_of(started)
    # The parts are computed already if there is no client.
    return as_completed(futures) if futures else started


def _as_it_is(graph: NeighborGraph) -> NeighborGraph:
    return graph


def take_evenly(points: np.ndarray, n_rows: int) -> np.ndarray:
    """Return some rows in even steps, or all if there are no more."""
    n = len(points)
    return points[np.arange(n_rows) * n // n_rows] if n_rows < n else points


def _take(
    what: str, ranks: Any, wanted: np.ndarray | None, cell: Cell, lists: Lists, tied: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the wanted rows of a cell and their points, ties or entries of lists."""
    if what in ("points", "tied"):
        values = tied if what == "tied" else cell.tree.points()
    else:
        values = getattr(lists, what)[ranks].T
    some: Any = slice(None) if wanted is None else np.isin(cell.rows, wanted)
    return cell.rows[some], values[some]


def _count_ties(lists: Lists, tied: np.ndarray, k: int) -> int:
    beyond = lists.distances[k] == lists.distances[k - 1] if k < len(lists.distances) else tied
    return int(np.count_nonzero(beyond))


def _map_cell(cell: Cell, lists: Lists, edges: Edges | None, about: Any) -> list[Any]:
    summarise, labels, n_classes, k_values, both, max_rows = about

    def walk() -> Iterator[np.ndarray]:
        return walk_counts(lists, edges if both else None, labels, n_classes, k_values)

    parts = map_parts(summarise, walk, labels[cell.rows], None, max_rows)
    return [(cell.rows[rows], value) for rows, value in parts]
