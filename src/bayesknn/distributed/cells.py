"""Neighbours among points that lie in several cells, the blocks of a KD split of a sample.

Points that are close in space lie in one cell, so that most neighbours are found there; only cells
that the lists reach are searched as well. Two lists are merged by (distance, key of the row in the
whole table), so that the result is that of one search over all points to the bit (Section 1.1).

The edge from i to its neighbour j at rank r counts for i, whose cell has the list, and for j: it is
sent to the cell of j. A cell that has received its edges knows the counts around its points for
every k, in both directions (Section 2.2). Every function here is a pure function of its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import random_bits
from bayesknn.graph import NeighborQuery
from bayesknn.graph.neighbor_graph import add_edges
from bayesknn.graph.search import (
    LEAF,
    KDTree,
    Queries,
    TreeRadii,
    arrange_queries,
    build_tree,
    measure_radii,
    nearest_in_tree,
    reverse_in_tree,
)
from bayesknn.graph.ties import order_some_ties

# Squared distances are compared with bounds that are rounded otherwise.
_SLACK = 1.0 + 1e-12
# A KD split: the number of a cell, or (feature, value, split below, split from the value on).
Split = Any


class Cell(NamedTuple):
    """Training points that are close in space.

    Attributes
    ----------
    rows : ndarray of shape (n,), dtype uint32
        Their rows in the whole table, rising.
    tree : KDTree
        Over the points; ties are broken as in the whole table.
    """

    rows: np.ndarray
    tree: KDTree


class Box(NamedTuple):
    """Number of points of a cell, and the smallest and largest value of each feature."""

    n_points: int
    low: np.ndarray
    high: np.ndarray


class Lists(NamedTuple):
    """The nearest points of some rows, as far as cells were searched.

    Attributes
    ----------
    neighbors : ndarray of shape (k, m), dtype uint32
        Rows of the whole table.
    cells : ndarray of shape (k, m), dtype uint16
        The cells that they are in.
    distances : ndarray of shape (k, m)
        Infinite where fewer than k points were seen.
    """

    neighbors: np.ndarray
    cells: np.ndarray
    distances: np.ndarray


class Edges(NamedTuple):
    """Edges that end in one cell, sorted by rank.

    Attributes
    ----------
    starts : ndarray of shape (k + 1,), dtype int64
        Those of rank r + 1 are ``starts[r] : starts[r + 1]``.
    targets, sources : ndarray, dtype uint32
        Rows of the whole table; targets are positions in the cell once it has received them.
    """

    starts: np.ndarray
    targets: np.ndarray
    sources: np.ndarray


def plan_cells(sample: np.ndarray, n_cells: int) -> tuple[Split, int]:
    """Split a sample into cells of about equal size, at quantiles of the widest feature.

    Returns
    -------
    split : Split
    n_cells : int
        Fewer than wanted where points coincide.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.distributed.cells import plan_cells
    >>> plan_cells(np.arange(8.0)[:, None], 3)
    ((0, 5.0, (0, 2.0, 0, 1), 2), 3)
    """
    n_made = 0

    def split(points: np.ndarray, size: int) -> Split:
        nonlocal n_made
        if size > 1 and len(points) > 1:
            feature = int(np.argmax(points.std(axis=0)))
            values = points[:, feature]
            n_left = (size + 1) // 2
            value = float(np.sort(values)[len(values) * n_left // size])
            # The smallest value would leave nothing below.
            if value == values.min() < values.max():
                value = float(values[values > value].min())
            is_below = values < value
            if 0 < is_below.sum() < len(points):
                parts = (points[is_below], n_left), (points[~is_below], size - n_left)
                return (feature, value, *(split(*part) for part in parts))
        n_made += 1
        return n_made - 1

    return split(sample, n_cells), n_made


def divide(points: np.ndarray, split: Split) -> dict[int, np.ndarray]:
    """Return the points in each cell that has any."""
    members: dict[int, np.ndarray] = {}

    def walk(rows: np.ndarray, split: Split) -> None:
        if isinstance(split, int):
            members[split] = rows
        elif len(rows):
            feature, value, below, above = split
            is_below = points[rows, feature] < value
            walk(rows[is_below], below)
            walk(rows[~is_below], above)

    walk(np.arange(len(points)), split)
    return members


def split_block(points: np.ndarray, first: int, split: Split, n_cells: int) -> list[Any]:
    """Return, for each cell, the rows of a block that belong to it and their points."""
    members, none = divide(points, split), np.empty(0, np.int64)
    some = [members.get(c, none) for c in range(n_cells)]
    return [((first + rows).astype(np.uint32), points[rows]) for rows in some]


def make_cell(pieces: Sequence[tuple[np.ndarray, np.ndarray]]) -> Cell:
    """Put the pieces of all blocks together."""
    rows, points = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return Cell(rows, build_tree(points, order_some_ties(rows)))


def bound_cell(cell: Cell) -> Box:
    """Return the box around a cell."""
    return Box(len(cell.rows), cell.tree.low.min(axis=1), cell.tree.high.max(axis=1))


def search_own(cell: Cell, number: int, k: int) -> Lists:
    """Return the lists of a cell's points among themselves."""
    limits = np.full(len(cell.rows), np.inf)
    neighbors, distances = nearest_in_tree(cell.tree, None, k, limits=limits)
    return Lists(cell.rows[neighbors], np.full(neighbors.shape, number, np.uint16), distances)


def find_reached(cell: Cell, lists: Lists, boxes: Sequence[Box]) -> list[int]:
    """Return the cells that the lists of a cell's points reach, the nearest first."""
    gaps = [_gaps_of_leaves(cell, box) for box in boxes]
    radii = _radii_of_leaves(cell, lists)
    return sorted(
        (d for d, gap in enumerate(gaps) if (gap <= radii).any()), key=lambda d: gaps[d].min()
    )


def search_other(cell: Cell, other: Cell, number: int, box: Box, lists: Lists) -> Lists:
    """Add what another cell holds to the lists of a cell's points.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.distributed.cells import bound_cell, make_cell, search_other, search_own
    >>> left = make_cell([(np.array([0, 3], np.uint32), np.array([[0.0], [1.0]]))])
    >>> right = make_cell([(np.array([1, 2], np.uint32), np.array([[1.5], [9.0]]))])
    >>> lists = search_own(left, 0, 1)
    >>> search_other(left, right, 1, bound_cell(right), lists).neighbors.tolist()
    [[3, 1]]
    """
    tree, k = cell.tree, len(lists.neighbors)
    leaves = np.flatnonzero(_gaps_of_leaves(cell, box) <= _radii_of_leaves(cell, lists))
    at = (leaves[:, None] * LEAF + np.arange(LEAF)).ravel()
    columns = tree.order[at[at < len(tree.order)]]
    order = np.arange(len(columns), dtype=np.uint32)
    limits = lists.distances[-1][columns]
    queries = Queries(order, np.ascontiguousarray(tree.blocks[leaves]))
    rows, distances = nearest_in_tree(other.tree, queries, k, limits=limits)
    return merge(lists, columns, other.rows[rows], number, distances)


def merge(
    lists: Lists, columns: np.ndarray, neighbors: np.ndarray, number: int, distances: np.ndarray
) -> Lists:
    """Return lists with the points that another cell has for some of their columns."""
    merged = Lists(*(part.copy() for part in lists))
    _merge(merged, columns, neighbors, np.uint16(number), distances)
    return merged


def finish_lists(lists: Lists, k: int) -> tuple[Lists, np.ndarray]:
    """Return lists of k, and whether a point left out is as near as the last one in them."""
    tied = (lists.distances[k:] == lists.distances[k - 1]).any(axis=0)
    return Lists(*(part[:k].copy() for part in lists)), tied


def send_edges(cell: Cell, lists: Lists, reached: Sequence[int]) -> list[Edges]:
    """Sort a cell's edges by the cell that they end in."""
    k, m = lists.neighbors.shape
    # A stable sort keeps the order of ranks.
    order = np.argsort(lists.cells.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(lists.cells.ravel(), minlength=max(reached) + 1))
    sent = []
    for d in reached:
        at = order[(ends[d - 1] if d else 0) : ends[d]]
        starts = np.searchsorted(at, np.arange(k + 1) * m)
        sent.append(Edges(starts, lists.neighbors.ravel()[at], cell.rows[at % m]))
    return sent


def receive_edges(cell: Cell, sent: Sequence[Edges]) -> Edges:
    """Put the edges that end in a cell together, rank by rank."""
    k = len(sent[0].starts) - 1
    every = np.arange(k, dtype=np.uint16)
    ranks = np.concatenate([np.repeat(every, np.diff(each.starts)) for each in sent])
    order = np.argsort(ranks, kind="stable")
    targets = np.concatenate([each.targets for each in sent])[order]
    sources = np.concatenate([each.sources for each in sent])[order]
    starts = np.append(0, np.cumsum(np.bincount(ranks, minlength=k)))
    return Edges(starts, np.searchsorted(cell.rows, targets).astype(np.uint32), sources)


def walk_counts(
    lists: Lists,
    received: Edges | None,
    labels: np.ndarray,
    n_classes: int,
    k_values: Sequence[int],
) -> Iterator[np.ndarray]:
    """Yield the class counts around a cell's points for rising k.

    Parameters
    ----------
    lists : Lists
    received : Edges or None
        None where reverse neighbours do not count.
    labels : ndarray of shape (n_points,), unsigned
        Class indices of all training points.
    n_classes : int
    k_values : sequence of int
        Rising.

    Yields
    ------
    ndarray of shape (m, n_classes), dtype int32
        One array, updated in place.
    """
    counts = np.zeros((lists.neighbors.shape[1], n_classes), np.int32)
    own, done = np.arange(len(counts), dtype=np.uint32), 0
    for k in k_values:
        for neighbors in lists.neighbors[done:k]:
            add_edges(own, labels[neighbors], counts)
        if received is not None:
            new = slice(received.starts[done], received.starts[k])
            add_edges(received.targets[new], labels[received.sources[new]], counts)
        done = k
        yield counts


class NewPoints(NamedTuple):
    """New points and their neighbours in the cells searched so far.

    Attributes
    ----------
    points : ndarray of shape (m, p)
    limits : ndarray of shape (m,)
        Upper bound of the distance to the last neighbour.
    lists : Lists
    reverse : list of (queries, points, ranks)
        Training points that would have a new point among their nearest, and its rank.
    """

    points: np.ndarray
    limits: np.ndarray
    lists: Lists
    reverse: list[Any]


def start_search(points: np.ndarray, sample: KDTree, k: int) -> NewPoints:
    """Return new points without neighbours; a sample of training points bounds their distances."""
    m, limits = len(points), np.full(len(points), np.inf)
    if len(sample.order) >= k:
        limits = nearest_in_tree(sample, arrange_queries(points), k)[1][-1]
    zeros, far = np.zeros((k, m), np.uint32), np.full((k, m), np.inf)
    return NewPoints(points, limits, Lists(zeros, zeros.astype(np.uint16), far), [])


def search_cell(new: NewPoints, cell: Cell, radii: TreeRadii | None, box: Box) -> NewPoints:
    """Search one more cell for new points; without radii not for reverse neighbours."""
    points, lists, reverse = new.points, new.lists, new.reverse
    gaps = (np.maximum(np.maximum(box.low - points, points - box.high), 0.0) ** 2).sum(axis=1)
    limits = np.minimum(new.limits, lists.distances[-1])
    near = np.flatnonzero(gaps <= limits**2 * _SLACK)
    if len(near):
        queries = arrange_queries(points[near])
        k = len(lists.neighbors)
        rows, distances = nearest_in_tree(cell.tree, queries, k, limits=limits[near])
        lists = merge(lists, near, cell.rows[rows], 0, distances)
    near = np.flatnonzero(gaps <= (-1.0 if radii is None else radii.squares.max() * _SLACK))
    if radii is not None and len(near):
        starts, members, ranks = reverse_in_tree(cell.tree, radii, arrange_queries(points[near]))
        asked = np.repeat(near, np.diff(starts))
        reverse = [*reverse, (asked, cell.rows[members], ranks)]
    return NewPoints(points, new.limits, lists, reverse)


def finish_search(new: NewPoints, n_points: int, both: bool) -> NeighborQuery:
    """Return the answer of a graph in memory about new points."""
    reverse = None
    if both:
        none = np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint32)
        parts = zip(none, *new.reverse, strict=True)
        asked, members, ranks = (np.concatenate(each) for each in parts)
        order = np.lexsort((members, ranks, asked))
        starts = np.append(0, np.cumsum(np.bincount(asked, minlength=len(new.points))))
        reverse = starts, members[order], ranks[order]
    return NeighborQuery(new.lists.neighbors, new.lists.distances, reverse, n_points)


def add_radii(cell: Cell, lists: Lists, k: int) -> TreeRadii:
    """Return the distances that finding reverse neighbours needs."""
    return measure_radii(cell.tree, lists.distances[:k])


def _gaps_of_leaves(cell: Cell, box: Box) -> np.ndarray:
    """Return the squared distance of each leaf of a cell to a box."""
    low, high = box.low[:, None], box.high[:, None]
    gaps = np.maximum(np.maximum(low - cell.tree.high, cell.tree.low - high), 0.0)
    return (gaps**2).sum(axis=0)


def _radii_of_leaves(cell: Cell, lists: Lists) -> np.ndarray:
    """Return the largest squared distance, in each leaf of a cell, to a last neighbour."""
    last = np.zeros(len(cell.tree.blocks) * LEAF)
    last[: len(cell.rows)] = lists.distances[-1][cell.tree.order]
    return last.reshape(-1, LEAF).max(axis=1) ** 2 * _SLACK


@kernel
def _merge(lists, columns, far_rows, number, far):
    near_rows, near_cells, near = lists
    k = near.shape[0]
    rows, cells, distances = np.empty(k, np.uint32), np.empty(k, np.uint16), np.empty(k)
    for c in range(columns.size):
        if far[0, c] == np.inf:
            continue
        q = columns[c]
        a = b = 0
        for r in range(k):
            x, y = near[a, q], far[b, c]
            is_near = x < y
            if x == y:
                # The keys of ties, as :func:`bayesknn.graph.ties.key_of_rows` has them.
                one = random_bits(np.uint64(0), np.uint64(near_rows[a, q]))
                is_near = x == np.inf or one <= random_bits(np.uint64(0), np.uint64(far_rows[b, c]))
            if is_near:
                rows[r], cells[r], distances[r] = near_rows[a, q], near_cells[a, q], x
                a += 1
            else:
                rows[r], cells[r], distances[r] = far_rows[b, c], number, y
                b += 1
        for r in range(k):
            near_rows[r, q], near_cells[r, q], near[r, q] = rows[r], cells[r], distances[r]
