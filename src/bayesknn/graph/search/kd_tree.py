"""Exact Euclidean k-nearest neighbours with a KD-tree, forward and reverse.

Leaves are blocks of 64 points, laid out feature by feature. Queries come in groups of a few blocks
of 64 that lie together, so that a leaf that is fetched from memory serves them all. Leaves are
visited from the nearest on. Each query keeps a buffer of candidates and a limit, a (distance, rank
among ties) that k of them do not exceed; when the buffer is full it is cut back to about the k best
and the limit falls. A squared distance is the sum over features, in order, of squared differences:
order and distances are those of measuring every pair, to the bit.

Single precision sees that most points are too far. With u = 2^-24 and coordinates, less a centre,
scaled to at most 1, a coordinate is rounded by at most u, the difference of two by u more of
itself, and a sum of p squares by (p + 1) u: where the distance is at most D, the computed square is
at most ``(D (1 + 2 u) + 2 u (|x| + sqrt p))^2 (1 + (p + 2) u)``, x the query. Whoever is above that
is not looked at again; all others are measured in double precision. Rounding is monotone, so the
box around rounded points is the rounded box, and the same holds for the gaps between a query and a
box.

A reverse neighbour of a new point is a training point that would have it among its own k nearest
(Section 2.3). It is found by leaves that know how far the lists of their points reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import inline_kernel, kernel
from bayesknn._utils.threads import run_in_threads
from bayesknn.graph.search.brute import assemble, rank_reverse
from bayesknn.graph.search.search_index import Advance, Lists, Reverse, SearchIndex
from bayesknn.graph.ties import (
    NO_POINT,
    SortWorkspace,
    TieOrder,
    cut_back,
    new_sort_workspace,
    select_nth,
    sort_pairs,
)

_LEAF = 64
# Blocks of queries in a group: more share what is fetched, and need room in the processor's cache.
_GROUP = 4
# Blocks of queries that a thread takes at a time.
_TASK = 16
UNIT_ROUNDOFF = 2.0**-24
# Distances are compared after the square root, which may send neighbouring squares to one value:
# those above a square by at most this factor must still be looked at.
_SAME_ROOT = 1.0 + 2.0**-50
# Pairs of a new point and one that reaches it that there is room for at first.
_FULL = _GROUP * _LEAF * _LEAF


class KDTree(NamedTuple):
    """Points in leaves of 64; every leaf but the last is full.

    Attributes
    ----------
    order : ndarray of shape (n,), dtype uint32
        Original index of each point in tree order: leaf b holds entries ``64 * b : 64 * (b + 1)``.
    ranks : ndarray of shape (n,), dtype uint32
        Place of each point in the order of ties, in tree order; rising within a leaf.
    rows : ndarray of shape (n,), dtype uint32
        Original index of the point at each place in the order of ties.
    blocks : ndarray of shape (n_leaves, p, 64)
        Coordinates by leaf and feature; what is missing from the last leaf repeats its last point.
    single : ndarray of shape (n_leaves, p, 64), dtype float32
        The same less the centre, scaled and rounded.
    low, high : ndarray of shape (p, n_leaves), dtype float32
        The boxes around them.
    centre : ndarray of shape (p,)
    scale : float
        A power of two.
    """

    order: np.ndarray
    ranks: np.ndarray
    rows: np.ndarray
    blocks: np.ndarray
    single: np.ndarray
    low: np.ndarray
    high: np.ndarray
    centre: np.ndarray
    scale: float

    def in_order(self) -> np.ndarray:
        """Return the points in tree order, (n, p)."""
        return _by_row(self.blocks, len(self.order))

    def single_in_order(self) -> np.ndarray:
        """Return the rounded points in tree order, (n, p), float32."""
        return np.ascontiguousarray(_by_row(self.single, len(self.order)))

    def points(self) -> np.ndarray:
        """Return the points the tree was built from, in their own order, (n, p)."""
        points = np.empty((len(self.order), self.blocks.shape[1]))
        points[self.order] = self.in_order()
        return points


class Queries(NamedTuple):
    """New points in the order of a tree of their own; attributes as in :class:`KDTree`."""

    order: np.ndarray
    blocks: np.ndarray


class TreeRadii(NamedTuple):
    """How far the lists of a tree's points reach, for finding reverse neighbours.

    Attributes
    ----------
    lists : ndarray of shape (n, n_k)
        Each point's sorted distances to its neighbours, in tree order.
    squares : ndarray of shape (n_leaves, 64)
        Squares beyond which a point cannot be reached, by leaf; -1 for what pads the last.
    single : ndarray of shape (n_leaves, 64), dtype float32
        The largest distances, scaled and rounded up.
    """

    lists: np.ndarray
    squares: np.ndarray
    single: np.ndarray


def _by_row(blocks: np.ndarray, n: int) -> np.ndarray:
    return blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])[:n]


def build_tree(points: np.ndarray, ties: TieOrder | None = None) -> KDTree:
    """Split at the median of the widest feature, down to leaves of 64 points.

    Parameters
    ----------
    points : ndarray of shape (n, p), dtype float64
    ties : TieOrder, optional
        Which of two points comes first at equal distance; by default the lower index.

    Returns
    -------
    KDTree

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.search.kd_tree import build_tree
    >>> tree = build_tree(np.arange(100.0)[::-1, None])
    >>> tree.blocks.shape, int(tree.order[0]), int(tree.order[99])
    ((2, 1, 64), 36, 35)
    >>> tree = build_tree(np.array([[1.0], [2.0], [5.0]]))
    >>> tree.single[0, 0, :3].tolist(), tree.centre.tolist(), tree.scale
    ([-0.5, -0.25, 0.5], [3.0], 0.25)
    """
    rows = np.arange(len(points), dtype=np.uint32) if ties is None else ties.rows
    rows.flags.writeable = False
    ranks, blocks = _arrange(points[rows])
    least, most = blocks.min(axis=(0, 2)), blocks.max(axis=(0, 2))
    centre = least + (most - least) / 2
    largest = np.maximum(most - centre, centre - least).max()
    scale = float(2.0 ** -np.frexp(largest)[1])
    single = np.empty(blocks.shape, np.float32)
    for start in range(0, len(blocks), 256):
        part = slice(start, start + 256)
        single[part] = (blocks[part] - centre[:, None]) * scale
    low, high = (np.ascontiguousarray(end(axis=2).T) for end in (single.min, single.max))
    return KDTree(rows[ranks], ranks, rows, blocks, single, low, high, centre, scale)


def arrange_queries(points: np.ndarray) -> Queries:
    """Bring new points into the order of a tree of their own."""
    return Queries(*_arrange(points))


def measure_radii(tree: KDTree, distances: np.ndarray) -> TreeRadii:
    """Arrange the distances of a tree's points to their neighbours, of shape (n_k, n)."""
    lists = np.ascontiguousarray(distances.T[tree.order])
    squares = np.full((len(tree.blocks), _LEAF), -1.0)
    squares.ravel()[: len(lists)] = lists[:, -1] * lists[:, -1] * _SAME_ROOT
    single = np.sqrt(np.maximum(squares, 0.0)) * tree.scale * (1 + 8 * UNIT_ROUNDOFF)
    return TreeRadii(lists, squares, single.astype(np.float32))


def nearest_in_tree(
    tree: KDTree,
    queries: Queries | None,
    k: int,
    n_jobs: int | None = None,
    advance: Callable[[float], object] | None = None,
    limits: np.ndarray | None = None,
) -> Lists:
    """Find the k nearest points of a tree, ordered by (distance, rank among ties).

    Parameters
    ----------
    tree : KDTree
        The points searched.
    queries : Queries or None
        The points searched for; None for the points of ``tree`` themselves, each without itself.
    k : int
        At most the number of points, or one less when ``queries`` is None.
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on it.
    advance : callable, optional
        Is told how many points are done.
    limits : ndarray of shape (m,), optional
        Distances beyond which nobody is wanted, infinite ones included; there may then be fewer
        than k points to find.

    Returns
    -------
    neighbors : ndarray of shape (k, m), dtype uint32
    distances : ndarray of shape (k, m)
        Infinite where fewer than k points are within the limit.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.search.kd_tree import build_tree, nearest_in_tree
    >>> from bayesknn.graph.ties import order_ties
    >>> tree = build_tree(np.array([[0.0], [1.0], [1.0], [5.0]]), order_ties(4))
    >>> nearest_in_tree(tree, None, 2)[0].T.tolist()
    [[2, 1], [2, 0], [1, 0], [2, 1]]
    """
    asked = Queries(tree.order, tree.blocks) if queries is None else queries
    m = len(asked.order)
    neighbors, distances = np.empty((k, m), np.uint32), np.empty((k, m))
    limits = np.empty(0) if limits is None else limits

    def search(start: Any, stop: Any) -> None:
        _search(tree, asked, queries is None, limits, start, stop, neighbors, distances)

    def count(leaves: float) -> None:
        if advance is not None:
            advance(_LEAF * leaves)

    run_in_threads(search, len(asked.blocks), _TASK, n_jobs, count)
    return neighbors, distances


def reverse_in_tree(
    tree: KDTree, radii: TreeRadii, queries: Queries, n_jobs: int | None = None
) -> Reverse:
    """Find the training points that would have a new point among their nearest.

    A new point x takes rank ``r = 1 + #{neighbours j of l : d(l, j) <= d(l, x)}`` in training point
    l's list: at equal distance the training point keeps its place. x is then among the k nearest of
    l for every k >= r, which is the condition ``d(l, x) < d_(k)(l)``.

    Returns
    -------
    starts : ndarray of shape (m + 1,), dtype int64
        New point q's entries are ``starts[q] : starts[q + 1]``.
    points : ndarray, dtype uint32
        Training points, by (rank, index), so that those of any k are a prefix.
    ranks : ndarray, dtype uint32
        Rank, from 1, that the new point takes in their lists.
    """
    parts: list[Any] = []

    def search(start: Any, stop: Any) -> None:
        reached = _find_reached(tree, radii, queries, start, stop)
        parts.append(rank_reverse(*reached, radii.lists, tree.order))

    run_in_threads(search, len(queries.blocks), _TASK, n_jobs)
    return assemble(parts, len(queries.order))


class TreeSearch(SearchIndex):
    """The package's KD-tree, which also holds the points."""

    name = "kd_tree"
    tree: KDTree

    def _build(self, points: np.ndarray) -> None:
        self.tree = build_tree(points, self.ties)

    @property
    def points(self) -> np.ndarray:
        """The training points, taken out of the tree."""
        return self.tree.points()

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Walk the tree, a group of points that lie together at a time."""
        return nearest_in_tree(self.tree, None, k, n_jobs, advance)

    def arrange_radii(self, distances: np.ndarray) -> TreeRadii:
        """Arrange the distances of the training points to their neighbours by leaf."""
        return measure_radii(self.tree, distances)

    def query(
        self, rows: Any, k: int, radii: Any, n_jobs: int | None = None
    ) -> tuple[Lists, Reverse | None]:
        """Walk the tree for new points, which come in the order of a tree of their own."""
        queries = arrange_queries(rows)
        forward = nearest_in_tree(self.tree, queries, k, n_jobs)
        if radii is None:
            return forward, None
        return forward, reverse_in_tree(self.tree, radii, queries, n_jobs)


@kernel
def _arrange(points):
    """Return the points' order in a tree over them, and their blocks; they come in tie order."""
    n, p = points.shape
    n_blocks = (n + _LEAF - 1) // _LEAF
    order = np.arange(n).astype(np.uint32)
    keys = np.empty(n)
    below, above = np.empty(p), np.empty(p)
    # Nodes that wait to be split: their first leaf and how many they have.
    first_leaf, n_leaves = np.zeros(64, np.int64), np.full(64, n_blocks)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        first, size = first_leaf[waiting], n_leaves[waiting]
        start, stop = first * _LEAF, min(n, (first + size) * _LEAF)
        if size == 1:
            order[start:stop] = np.sort(order[start:stop])
            continue
        below[:] = np.inf
        above[:] = -np.inf
        for t in range(start, stop):
            for f in range(p):
                value = points[order[t], f]
                below[f], above[f] = min(below[f], value), max(above[f], value)
        widest = 0
        for f in range(1, p):
            if above[f] - below[f] > above[widest] - below[widest]:
                widest = f
        for t in range(start, stop):
            keys[t] = points[order[t], widest]
        # Equal coordinates are split by the order of ties: with many duplicates the left child
        # then holds the earlier ones, which are those a search wants first.
        n_left = (size + 1) // 2
        select_nth(keys, order, start, stop, start + n_left * _LEAF)
        first_leaf[waiting], n_leaves[waiting] = first, n_left
        first_leaf[waiting + 1], n_leaves[waiting + 1] = first + n_left, size - n_left
        waiting += 2
    blocks = np.empty((n_blocks, p, _LEAF))
    for b in range(n_blocks):
        for f in range(p):
            for j in range(_LEAF):
                blocks[b, f, j] = points[order[min(b * _LEAF + j, n - 1)], f]
    return order, blocks


# The kernels below take whole arrays and a position: a slice would count references, and threads
# that share an array would wait for each other's counting.


def _square_all(blocks, leaf, coordinates, q, squares):  # type: ignore[no-untyped-def]
    """Squared distances from query q to the 64 points of a leaf.

    Two features a pass, added in their order, so that the sum is the one of a plain loop.
    """
    b, one, size = np.uint64(leaf), np.uint64(1), np.uint64(_LEAF)
    p = np.uint64(blocks.shape[1])
    f = p & one
    if f == one:
        x0 = coordinates[q, 0]
        for j in range(size):
            d0 = x0 - blocks[b, 0, j]
            squares[j] = d0 * d0
    else:
        for j in range(size):
            squares[j] = 0.0
    while f < p:
        g = f + one
        x0, x1 = coordinates[q, f], coordinates[q, g]
        for j in range(size):
            d0, d1 = x0 - blocks[b, f, j], x1 - blocks[b, g, j]
            squares[j] = squares[j] + d0 * d0 + d1 * d1
        f = g + one


_square_leaf = kernel(_square_all)
# In single precision products may be added without rounding: the bound holds all the more.
_square_singles: Any = kernel(fastmath={"contract"})(_square_all)  # type: ignore[call-arg]


@kernel
def _square_point(blocks, leaf, j, coordinates, q):
    """Squared distance from query q to one point of a leaf: the sum of ``_square_leaf``."""
    b = np.uint64(leaf)
    total = 0.0
    for f in range(np.uint64(blocks.shape[1])):
        gap = coordinates[q, f] - blocks[b, f, j]
        total += gap * gap
    return total


class Group(NamedTuple):
    """Queries of up to ``_GROUP`` neighbouring blocks.

    Attributes
    ----------
    coordinates : ndarray of shape (n_queries, p)
    single : ndarray of shape (n_queries, p), dtype float32
        As the rounded points are.
    blocks : ndarray of shape (n_blocks, p, 64), dtype float32
        The same by block and feature.
    slack : ndarray of shape (n_queries,)
        What rounding may add to a scaled distance.
    bounds : ndarray of shape (n_blocks, n_leaves), dtype float32
        Lower bounds of the squares from a block's queries to the points of a leaf.
    """

    coordinates: np.ndarray
    single: np.ndarray
    blocks: np.ndarray
    slack: np.ndarray
    bounds: np.ndarray


@kernel
def _make_group(tree):
    n_leaves, p = tree.blocks.shape[0], tree.blocks.shape[1]
    size = _GROUP * _LEAF
    return Group(
        np.empty((size, p)),
        np.empty((size, p), np.float32),
        np.empty((_GROUP, p, _LEAF), np.float32),
        np.empty(size),
        np.empty((_GROUP, n_leaves), np.float32),
    )


@kernel
def _load(tree, queries, first, stop, group):
    """Fill in the queries of the blocks from ``first`` on; return how many they are."""
    coordinates, single, blocks, slack, bounds = group
    given, low, high, centre, scale = queries.blocks, tree.low, tree.high, tree.centre, tree.scale
    p = coordinates.shape[1]
    size = min(_LEAF * min(_GROUP, stop - first), queries.order.shape[0] - first * _LEAF)
    n_blocks = (size + _LEAF - 1) // _LEAF
    for s in range(n_blocks):
        for f in range(p):
            for j in range(_LEAF):
                # What is missing from the last block repeats its last query.
                x = given[first + s, f, j]
                coordinates[s * _LEAF + j, f] = x
                blocks[s, f, j] = (x - centre[f]) * scale
                single[s * _LEAF + j, f] = blocks[s, f, j]
        _bound_leaves(low, high, blocks, s, bounds)
    for q in range(n_blocks * _LEAF):
        length = 0.0
        for f in range(p):
            scaled = (coordinates[q, f] - centre[f]) * scale
            length += scaled * scaled
        slack[q] = 2 * UNIT_ROUNDOFF * (np.sqrt(length) + np.sqrt(p))
    return size


@kernel
def _bound_leaves(low, high, query_blocks, s, bounds):
    """Lower bounds of the squares from the box of block s to those of all leaves."""
    n_leaves, zero = np.uint64(low.shape[1]), np.float32(0.0)
    for leaf in range(n_leaves):
        bounds[s, leaf] = zero
    for f in range(low.shape[0]):
        below = above = query_blocks[s, f, 0]
        for j in range(1, _LEAF):
            x = query_blocks[s, f, j]
            below, above = min(below, x), max(above, x)
        for leaf in range(n_leaves):
            gap = max(max(low[f, leaf] - above, below - high[f, leaf]), zero)
            bounds[s, leaf] += gap * gap


@kernel
def _bound_points(query_blocks, s, low, high, leaf, bounds):
    """Lower bounds of the squares from the 64 queries of block s to the box of a leaf."""
    size, zero = np.uint64(_LEAF), np.float32(0.0)
    for j in range(size):
        bounds[j] = zero
    for f in range(np.uint64(low.shape[0])):
        below, above = low[f, leaf], high[f, leaf]
        for j in range(size):
            gap = max(max(below - query_blocks[s, f, j], query_blocks[s, f, j] - above), zero)
            bounds[j] += gap * gap


class Candidates(NamedTuple):
    """What a group of queries holds while it is searched for.

    Attributes
    ----------
    keys, points : ndarray of shape (n_queries, capacity)
        Distances of the candidates of each query and their ranks among ties, in no order.
    n_found : ndarray of shape (n_queries,), dtype int64
        How many they are.
    limit_key, limit_point, limit_square : ndarray of shape (n_queries,)
        A pair that k candidates do not exceed, and the largest square that may still do so.
    limit_single : ndarray of shape (n_queries,), dtype float32
        The largest square in single precision that may still be within the limit.
    widest : ndarray of shape (n_blocks,), dtype float32
        The largest of these in each block.
    """

    keys: np.ndarray
    points: np.ndarray
    n_found: np.ndarray
    limit_key: np.ndarray
    limit_point: np.ndarray
    limit_square: np.ndarray
    limit_single: np.ndarray
    widest: np.ndarray


class Workspace(NamedTuple):
    """Workspace for one leaf and for the order of all leaves, used again and again."""

    squares: np.ndarray
    singles: np.ndarray
    bounds: np.ndarray
    near: np.ndarray
    hits: np.ndarray
    gaps: np.ndarray
    leaves: np.ndarray
    homes: np.ndarray
    sorting: SortWorkspace


@kernel
def _make_candidates(k):
    size, capacity = _GROUP * _LEAF, k + 64 + k // 4
    return Candidates(
        np.empty((size, capacity)),
        np.empty((size, capacity), np.uint32),
        np.empty(size, np.int64),
        np.empty(size),
        np.empty(size, np.uint32),
        np.empty(size),
        np.empty(size, np.float32),
        np.empty(_GROUP, np.float32),
    )


@kernel
def _new_workspace(n_leaves):
    return Workspace(
        np.empty(_LEAF),
        np.empty(_LEAF, np.float32),
        np.empty(_LEAF, np.float32),
        np.empty(_LEAF + 1, np.uint64),
        np.empty(_LEAF + 1, np.uint64),
        np.empty(n_leaves),
        np.empty(n_leaves + 1, np.uint32),
        np.empty(_GROUP * _LEAF, np.int64),
        new_sort_workspace(n_leaves),
    )


@kernel
def _search(tree, queries, is_self, limits, start, stop, neighbors, distances):
    k = neighbors.shape[0]
    group, held = _make_group(tree), _make_candidates(k)
    workspace = _new_workspace(tree.blocks.shape[0])
    # Fields that loops read are taken out of their tuples first, which counts references once.
    rows, order = tree.rows, queries.order
    keys, points, n_held = held.keys, held.points, held.n_found
    sorting = new_sort_workspace(keys.shape[1])
    for b in range(start, stop, _GROUP):
        first, size = b * _LEAF, _load(tree, queries, b, stop, group)
        _set_limits(tree, order, limits, first, size, group, held)
        _gather(tree, is_self, first, size, k, group, held, workspace)
        for q in range(size):
            n_found = min(k, n_held[q])
            sort_pairs(keys[q], points[q], n_held[q], sorting)
            i = order[first + q]
            for r in range(n_found):
                neighbors[r, i] = rows[points[q, r]]
                distances[r, i] = keys[q, r]
            for r in range(n_found, k):
                neighbors[r, i] = 0
                distances[r, i] = np.inf


@kernel
def _set_limits(tree, order, limits, first, size, group, held):
    """Start with no candidates, and with the given limits where there are any."""
    held.n_found[:] = 0
    held.limit_key[:] = np.inf
    held.limit_point[:] = NO_POINT
    held.limit_square[:] = np.inf
    # Nobody comes in for queries that are not there.
    held.limit_single[:] = -1.0
    held.widest[:] = -1.0
    for q in range(size):
        if limits.shape[0] > 0:
            held.limit_key[q] = limits[order[first + q]]
        _find_limits(tree, group, held, q)
        s = q // _LEAF
        held.widest[s] = max(held.widest[s], held.limit_single[q])


@kernel
def _find_limits(tree, group, held, q):
    """Find the squares that belong to the limit of query q, in double and in single precision."""
    square = held.limit_key[q] * held.limit_key[q] * _SAME_ROOT
    held.limit_square[q] = square
    longest = np.sqrt(square) * tree.scale * (1 + 4 * UNIT_ROUNDOFF) + group.slack[q]
    stretch = 1 + (tree.blocks.shape[1] + 4) * UNIT_ROUNDOFF
    held.limit_single[q] = np.float32(longest * longest * stretch)


@kernel
def _gather(tree, is_self, first, size, k, group, held, workspace):
    """Fill ``held`` with candidates of a group of queries, the k nearest of each among them.

    Where they are the tree's own points, ``first`` is the place of the first of them.
    """
    n_blocks = (size + _LEAF - 1) // _LEAF
    homes = workspace.homes
    if not is_self:
        _find_homes(tree, group, n_blocks, workspace)
    held.widest[:] = -1.0
    for t in range(size):
        # The leaf that it is in or near to first: the limit falls at once.
        q, s, own = np.uint64(t), t // _LEAF, NO_POINT
        if is_self:
            own, homes[q] = tree.ranks[first + t], first // _LEAF + s
        _scan(tree, homes[q], own, q, k, np.uint32(_LEAF), group, held, workspace)
        if held.n_found[q] > k:
            _lower(tree, q, k, group, held)
        held.widest[s] = max(held.widest[s], held.limit_single[q])
    limit_key, limit_point = held.limit_key, held.limit_point
    limit_single, widest = held.limit_single, held.widest
    singles, bounds = workspace.singles, workspace.bounds
    near, leaves = workspace.near, workspace.leaves
    blocks, rounded, of_queries, box_bounds = tree.single, group.single, group.blocks, group.bounds
    ranks, low, high = tree.ranks, tree.low, tree.high
    for t in range(_sort_leaves(tree, group, n_blocks, held, workspace)):
        leaf = np.int64(leaves[t])
        lowest = ranks[leaf * _LEAF]
        for s in range(n_blocks):
            if box_bounds[s, leaf] > widest[s]:
                continue
            _bound_points(of_queries, s, low, high, leaf, bounds)
            start, n_near = np.uint64(s * _LEAF), np.uint64(0)
            for j in range(np.uint64(_LEAF)):
                near[n_near] = start + j
                n_near += np.uint64(bounds[j] <= limit_single[start + j])
            for e in range(n_near):
                q = near[e]
                if leaf == homes[q]:
                    continue
                # Among duplicates only a lower rank gets in, and a leaf's first is its lowest.
                if limit_key[q] == 0.0 and lowest > limit_point[q]:
                    continue
                _square_singles(blocks, leaf, rounded, q, singles)
                n_hits = np.uint32(0)
                limit = limit_single[q]
                for j in range(np.uint64(_LEAF)):
                    n_hits += np.uint32(singles[j] <= limit)
                if n_hits > np.uint32(0):
                    _scan(tree, leaf, NO_POINT, q, k, n_hits, group, held, workspace)
            if n_near > np.uint64(0):
                widest[s] = -1.0
                for j in range(np.uint64(_LEAF)):
                    widest[s] = max(widest[s], limit_single[start + j])


@kernel
def _find_homes(tree, group, n_blocks, workspace):
    """Fill in a leaf near each query: of those nearest to its block, by their centres."""
    leaves, homes, low, high = workspace.leaves, workspace.homes, tree.low, tree.high
    bounds, single = group.bounds, group.single
    for s in range(n_blocks):
        least = bounds[s].min()
        n_near = np.uint64(0)
        for leaf in range(np.uint32(low.shape[1])):
            leaves[n_near] = leaf
            n_near += np.uint64(bounds[s, leaf] <= least)
        for q in range(s * _LEAF, (s + 1) * _LEAF):
            nearest = np.inf
            homes[q] = leaves[0]
            for t in range(n_near):
                total = 0.0
                for f in range(low.shape[0]):
                    gap = low[f, leaves[t]] + high[f, leaves[t]] - 2 * single[q, f]
                    total += gap * gap
                if total < nearest:
                    nearest, homes[q] = total, leaves[t]


@kernel
def _sort_leaves(tree, group, n_blocks, held, workspace):
    """Fill in the leaves that some block of queries may need, the nearest first."""
    leaves, gaps, low, high = workspace.leaves, workspace.gaps, tree.low, tree.high
    bounds, single, widest = group.bounds, group.single, held.widest
    n_near = np.uint64(0)
    for leaf in range(np.uint32(low.shape[1])):
        is_near = False
        for s in range(n_blocks):
            is_near |= bounds[s, leaf] <= widest[s]
        leaves[n_near] = leaf
        n_near += np.uint64(is_near)
    for t in range(n_near):
        gaps[t] = 0.0
    size = n_blocks * _LEAF
    for f in range(low.shape[0]):
        middle = 0.0
        for q in range(size):
            middle += 2 * single[q, f] / size
        for t in range(n_near):
            gap = low[f, leaves[t]] + high[f, leaves[t]] - middle
            gaps[t] += gap * gap
    if n_near > np.uint64(0):
        sort_pairs(gaps, leaves, np.int64(n_near), workspace.sorting)
    return n_near


@kernel
def _lower(tree, q, k, group, held):
    """Cut query q's candidates back to about the k best."""
    left, key, point = cut_back(held.keys[q], held.points[q], held.n_found[q], k)
    held.n_found[q], held.limit_key[q], held.limit_point[q] = left, key, point
    _find_limits(tree, group, held, q)


@inline_kernel
def _scan(tree, leaf, own, q, k, n_near, group, held, workspace):
    """Add to query q's candidates what a leaf offers within its limit, but for ``own``.

    ``n_near`` is how many of its points single precision leaves; ``workspace.singles`` has their
    squares where these are few.
    """
    keys, points, n_found = held.keys, held.points, held.n_found
    limit_key, limit_point = held.limit_key, held.limit_point
    limit_square, limit_single = held.limit_square, held.limit_single
    squares, singles, hits = workspace.squares, workspace.singles, workspace.hits
    ranks = tree.ranks
    size = np.uint64(min(_LEAF, ranks.shape[0] - leaf * _LEAF))
    n_hits = np.uint64(0)
    # With more hits than a few all points of the leaf are measured: whole leaves are quicker.
    if n_near <= np.uint32(12):
        bound = limit_single[q]
        for j in range(size):
            hits[n_hits] = j
            n_hits += np.uint64(singles[j] <= bound)
        for h in range(n_hits):
            squares[hits[h]] = _square_point(tree.blocks, leaf, hits[h], group.coordinates, q)
    else:
        _square_leaf(tree.blocks, leaf, group.coordinates, q, squares)
        limit = limit_square[q]
        for j in range(size):
            hits[n_hits] = j
            n_hits += np.uint64(squares[j] <= limit)
    first = np.uint64(leaf * _LEAF)
    n_held = np.uint64(n_found[q])
    for h in range(n_hits):
        i = ranks[first + hits[h]]
        if i == own:
            continue
        key = np.sqrt(squares[hits[h]])
        if key > limit_key[q] or (key == limit_key[q] and i > limit_point[q]):
            continue
        keys[q, n_held] = key
        points[q, n_held] = i
        n_held += np.uint64(1)
        if n_held == np.uint64(keys.shape[1]):
            n_found[q] = np.int64(n_held)
            _lower(tree, q, k, group, held)
            n_held = np.uint64(n_found[q])
    n_found[q] = np.int64(n_held)


@kernel
def _find_reached(tree, radii, queries, start, stop):
    """Find the pairs of a query of some blocks and a training point whose list may reach it.

    Returns the numbers of the queries, the points by their place in the tree, and the distances
    between them. The lists may be a little too short: the square let a pair pass.
    """
    n_leaves, p = tree.blocks.shape[0], tree.blocks.shape[1]
    group, workspace = _make_group(tree), _new_workspace(n_leaves)
    stretch = np.float32(1 + (p + 16) * UNIT_ROUNDOFF)
    limits, slacks = np.empty(_LEAF, np.float32), np.empty(_GROUP, np.float32)
    # Fields that loops read are taken out of their tuples first, which counts references once.
    singles, bounds, near = workspace.singles, workspace.bounds, workspace.near
    kth_squares, longest, order = radii.squares, radii.single, queries.order
    blocks, rounded, low, high = tree.blocks, tree.single, tree.low, tree.high
    coordinates, single, of_queries, slack, box_bounds = group
    asked, members, distances = (
        np.empty(_FULL, np.int64),
        np.empty(_FULL, np.int64),
        np.empty(_FULL),
    )
    n_pairs = np.uint64(0)
    for b in range(start, stop, _GROUP):
        size = _load(tree, queries, b, stop, group)
        slacks[:] = 0.0
        for q in range(size):
            slacks[q // _LEAF] = max(
                slacks[q // _LEAF], np.float32(slack[q] * (1 + 8 * UNIT_ROUNDOFF))
            )
        for leaf in range(n_leaves):
            at = np.uint64(leaf)
            width = np.uint64(min(_LEAF, tree.ranks.shape[0] - leaf * _LEAF))
            furthest = np.float32(0.0)
            for j in range(width):
                furthest = max(furthest, longest[at, j])
            for s in range((size + _LEAF - 1) // _LEAF):
                widest = (furthest + slacks[s]) * (furthest + slacks[s]) * stretch
                if box_bounds[s, at] > widest:
                    continue
                if n_pairs + np.uint64(_LEAF * _LEAF) > np.uint64(asked.size):
                    asked, members, distances = _grow(asked), _grow(members), _grow(distances)
                _bound_points(of_queries, s, low, high, leaf, bounds)
                n_near = np.uint64(0)
                for j in range(np.uint64(min(_LEAF, size - s * _LEAF))):
                    near[n_near] = j
                    n_near += np.uint64(bounds[j] <= widest)
                for j in range(np.uint64(_LEAF)):
                    limit = longest[at, j] + slacks[s]
                    limits[j] = limit * limit * stretch
                for e in range(n_near):
                    q = np.uint64(s * _LEAF) + near[e]
                    _square_singles(rounded, leaf, single, q, singles)
                    n_hits = np.uint32(0)
                    for j in range(np.uint64(_LEAF)):
                        n_hits += np.uint32(singles[j] <= limits[j])
                    if n_hits == np.uint32(0):
                        continue
                    for j in range(width):
                        if singles[j] <= limits[j]:
                            square = _square_point(blocks, leaf, j, coordinates, q)
                            asked[n_pairs] = order[np.uint64(b * _LEAF) + q]
                            members[n_pairs] = at * np.uint64(_LEAF) + j
                            distances[n_pairs] = np.sqrt(square)
                            n_pairs += np.uint64(square <= kth_squares[at, j])
    return asked[:n_pairs], members[:n_pairs], distances[:n_pairs]


@kernel
def _grow(array):
    longer = np.empty(2 * array.size, array.dtype)
    longer[: array.size] = array
    return longer
