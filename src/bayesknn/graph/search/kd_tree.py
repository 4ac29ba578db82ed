"""Exact Euclidean k-nearest neighbours with a KD-tree, forward and reverse.

Leaves are blocks of 64 points, laid out feature by feature, and so are queries: those of a block
lie together. Leaves are visited from the nearest on. Each query keeps candidates and a limit, a
(distance, rank among ties) that k of them do not exceed; where they become many they are cut back
to about the k best and the limit falls. A squared distance is the sum over features, in order, of
squared differences: order and distances are those of measuring every pair, to the bit. Rounding is
monotone, so that the gap between a query and a box, summed in the same order, bounds the computed
squares of all points in the box.

A reverse neighbour of a new point is a training point that would have it among its own k nearest
(Section 2.3). It is found by leaves that know how far the lists of their points reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel, run_in_threads
from bayesknn.graph.search.brute import assemble, rank_reverse
from bayesknn.graph.search.search_index import Advance, Lists, Reverse, SearchIndex
from bayesknn.graph.ties import (
    NO_POINT,
    TieOrder,
    cut_back,
    new_sort_workspace,
    select_nth,
    sort_pairs,
)

# Points of a leaf.
LEAF = 64
# Distances are compared after the square root, which may send neighbouring squares to one value:
# those above a square by at most this factor must still be looked at.
_SAME_ROOT = 1.0 + 2.0**-50


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
    low, high : ndarray of shape (p, n_leaves)
        The boxes around them.
    """

    order: np.ndarray
    ranks: np.ndarray
    rows: np.ndarray
    blocks: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def in_order(self) -> np.ndarray:
        """Return the points in tree order, (n, p)."""
        return self.blocks.transpose(0, 2, 1).reshape(-1, self.blocks.shape[1])[: len(self.order)]

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
    """

    lists: np.ndarray
    squares: np.ndarray


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
    """
    rows = np.arange(len(points), dtype=np.uint32) if ties is None else ties.rows
    rows.flags.writeable = False
    ranks, blocks = _arrange(points[rows])
    low, high = (np.ascontiguousarray(end(axis=2).T) for end in (blocks.min, blocks.max))
    return KDTree(rows[ranks], ranks, rows, blocks, low, high)


def arrange_queries(points: np.ndarray) -> Queries:
    """Bring new points into the order of a tree of their own."""
    return Queries(*_arrange(points))


def measure_radii(tree: KDTree, distances: np.ndarray) -> TreeRadii:
    """Arrange the distances of a tree's points to their neighbours, of shape (n_k, n)."""
    lists = np.ascontiguousarray(distances.T[tree.order])
    squares = np.full((len(tree.blocks), LEAF), -1.0)
    squares.ravel()[: len(lists)] = lists[:, -1] * lists[:, -1] * _SAME_ROOT
    return TreeRadii(lists, squares)


def nearest_in_tree(
    tree: KDTree,
    queries: Queries | None,
    k: int,
    n_jobs: int | None = None,
    advance: Callable[[float], object] | None = None,
    limits: np.ndarray | None = None,
    groups: np.ndarray | None = None,
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
    groups : ndarray of shape (n,), dtype uint32, optional
        Of the points of ``tree``, where these are searched for: each is searched for without those
        of its group.

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
    limits, own = np.empty(0) if limits is None else limits, np.empty(0, np.uint32)
    if queries is None:
        own = np.arange(m, dtype=np.uint32) if groups is None else groups[tree.order]

    def search(start: Any, stop: Any) -> None:
        blocks = start // LEAF, -(-stop // LEAF)
        _search(tree, asked, own, limits, *blocks, neighbors, distances)

    run_in_threads(search, m, 16 * LEAF, n_jobs, advance)
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

    run_in_threads(search, len(queries.blocks), 16, n_jobs)
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
        """Walk the tree, a block of points that lie together at a time."""
        return nearest_in_tree(self.tree, None, k, n_jobs, advance, groups=self.groups)

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
    n_blocks = (n + LEAF - 1) // LEAF
    order = np.arange(n).astype(np.uint32)
    keys = np.empty(n)
    below, above = np.empty(p), np.empty(p)
    # Nodes that wait to be split: their first leaf and how many they have.
    first_leaf, n_leaves = np.zeros(64, np.int64), np.full(64, n_blocks)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        first, size = first_leaf[waiting], n_leaves[waiting]
        start, stop = first * LEAF, min(n, (first + size) * LEAF)
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
        select_nth(keys, order, start, stop, start + n_left * LEAF)
        first_leaf[waiting], n_leaves[waiting] = first, n_left
        first_leaf[waiting + 1], n_leaves[waiting + 1] = first + n_left, size - n_left
        waiting += 2
    blocks = np.empty((n_blocks, p, LEAF))
    for b in range(n_blocks):
        for f in range(p):
            for j in range(LEAF):
                blocks[b, f, j] = points[order[min(b * LEAF + j, n - 1)], f]
    return order, blocks


# The kernels below take whole arrays and a position: a slice would count references, and threads
# that share an array would wait for each other's counting.


@kernel
def _square_leaf(tree_blocks, leaf, query_blocks, b, q, squares):
    """Squared distances from query q of block b to the 64 points of a leaf."""
    size = np.uint64(LEAF)
    for j in range(size):
        squares[j] = 0.0
    for f in range(np.uint64(tree_blocks.shape[1])):
        x = query_blocks[b, f, q]
        for j in range(size):
            gap = x - tree_blocks[leaf, f, j]
            squares[j] += gap * gap


@kernel
def _bound_leaves(tree, query_blocks, b, bounds):
    """Lower bounds of the squares from the box of block b to those of all leaves."""
    low, high = tree.low, tree.high
    n_leaves = np.uint64(low.shape[1])
    for leaf in range(n_leaves):
        bounds[leaf] = 0.0
    for f in range(np.uint64(low.shape[0])):
        below = above = query_blocks[b, f, 0]
        for j in range(np.uint64(LEAF)):
            below, above = min(below, query_blocks[b, f, j]), max(above, query_blocks[b, f, j])
        for leaf in range(n_leaves):
            gap = max(max(low[f, leaf] - above, below - high[f, leaf]), 0.0)
            bounds[leaf] += gap * gap


@kernel
def _find_near(low, high, leaf, query_blocks, b, limits, bounds, near):
    """List the queries of block b whose squares to the box of a leaf are within their limits."""
    size = np.uint64(LEAF)
    for j in range(size):
        bounds[j] = 0.0
    for f in range(np.uint64(low.shape[0])):
        below, above = low[f, leaf], high[f, leaf]
        for j in range(size):
            gap = max(max(below - query_blocks[b, f, j], query_blocks[b, f, j] - above), 0.0)
            bounds[j] += gap * gap
    n_near = np.uint64(0)
    for j in range(size):
        near[n_near] = j
        n_near += np.uint64(bounds[j] <= limits[j])
    return n_near


class Candidates(NamedTuple):
    """What the 64 queries of a block hold while they are searched for.

    Attributes
    ----------
    keys, points : ndarray of shape (64, capacity)
        Distances of the candidates of each query and their ranks among ties, in no order.
    sizes : ndarray of shape (64,), dtype int64
        How many they are.
    limit_keys, limit_points, limit_squares : ndarray of shape (64,)
        A pair that k candidates do not exceed, and the largest square that may still do so.
    """

    keys: np.ndarray
    points: np.ndarray
    sizes: np.ndarray
    limit_keys: np.ndarray
    limit_points: np.ndarray
    limit_squares: np.ndarray


@kernel
def _search(tree, queries, groups, limits, start, stop, neighbors, distances):
    """Write the lists of the queries of some blocks.

    ``groups``, in tree order, is for queries that are the points of the tree, and empty for others.
    """
    k, m, n_leaves = neighbors.shape[0], neighbors.shape[1], tree.blocks.shape[0]
    # A leaf adds up to 64. Cutting back leaves k and at most a quarter of those beyond, which is
    # (24 + 64) / 4 or less than k // 4: there is always room for the next leaf.
    capacity = k + max(24, k // 4) + LEAF
    held = Candidates(
        np.empty((LEAF, capacity)),
        np.empty((LEAF, capacity), np.uint32),
        np.empty(LEAF, np.int64),
        np.empty(LEAF),
        np.empty(LEAF, np.uint32),
        np.empty(LEAF),
    )
    bounds, leaves = np.empty(n_leaves), np.empty(n_leaves + 1, np.uint32)
    of_leaves, of_queries = new_sort_workspace(n_leaves), new_sort_workspace(capacity)
    squares, near = np.empty(LEAF), np.empty(LEAF + 1, np.uint64)
    # Fields that loops read are taken out of their tuples first, which counts references once.
    rows, order, blocks = tree.rows, queries.order, queries.blocks
    keys, points, sizes = held.keys, held.points, held.sizes
    for b in range(start, stop):
        first = b * LEAF
        size = min(LEAF, m - first)
        sizes[:] = 0
        held.limit_points[:] = NO_POINT
        # Nobody comes in for queries that are not there.
        held.limit_squares[:] = -1.0
        for q in range(size):
            limit = limits[order[first + q]] if limits.shape[0] > 0 else np.inf
            held.limit_keys[q], held.limit_squares[q] = limit, limit * limit * _SAME_ROOT
        _bound_leaves(tree, blocks, b, bounds)
        # The leaf that they are in or near to first: the limits fall at once.
        home = b if groups.size > 0 else np.argmin(bounds)
        _scan(tree, home, blocks, b, groups, k, held, squares, near)
        n_near, widest = np.uint64(0), held.limit_squares.max()
        for leaf in range(np.uint32(n_leaves)):
            leaves[n_near], bounds[n_near] = leaf, bounds[leaf]
            n_near += np.uint64(bounds[leaf] <= widest) & np.uint64(leaf != home)
        if n_near > np.uint64(0):
            sort_pairs(bounds, leaves, np.int64(n_near), of_leaves)
        for t in range(n_near):
            if bounds[t] > held.limit_squares.max():
                break
            _scan(tree, leaves[t], blocks, b, groups, k, held, squares, near)
        for q in range(size):
            n_found = min(k, sizes[q])
            sort_pairs(keys[q], points[q], sizes[q], of_queries)
            i = order[first + q]
            for r in range(n_found):
                neighbors[r, i] = rows[points[q, r]]
                distances[r, i] = keys[q, r]
            for r in range(n_found, k):
                neighbors[r, i] = 0
                distances[r, i] = np.inf


@kernel
def _scan(tree, leaf, query_blocks, b, groups, k, held, squares, near):
    """Add what a leaf offers to the candidates of a block of queries, but for their own groups."""
    keys, points, sizes = held.keys, held.points, held.sizes
    limit_keys, limit_points, limit_squares = held.limit_keys, held.limit_points, held.limit_squares
    blocks, ranks = tree.blocks, tree.ranks
    at, first = np.uint64(leaf), np.uint64(leaf) * np.uint64(LEAF)
    own = np.uint64(b) * np.uint64(LEAF)
    size = np.uint64(min(LEAF, ranks.shape[0] - np.int64(first)))
    enough = keys.shape[1] - LEAF
    n_near = _find_near(tree.low, tree.high, at, query_blocks, b, limit_squares, squares, near)
    hits = np.empty(LEAF + 1, np.uint64)
    for e in range(n_near):
        q = near[e]
        # Among duplicates only a lower rank gets in, and a leaf's first is its lowest.
        if limit_keys[q] == 0.0 and ranks[first] > limit_points[q]:
            continue
        _square_leaf(blocks, at, query_blocks, b, q, squares)
        limit, n_hits = limit_squares[q], np.uint64(0)
        for j in range(size):
            hits[n_hits] = j
            n_hits += np.uint64(squares[j] <= limit)
        n_held = sizes[q]
        for h in range(n_hits):
            j = hits[h]
            i, key = ranks[first + j], np.sqrt(squares[j])
            if key > limit_keys[q] or (key == limit_keys[q] and i > limit_points[q]):
                continue
            if groups.size > 0 and groups[first + j] == groups[own + q]:
                continue
            keys[q, n_held], points[q, n_held] = key, i
            n_held += 1
        # There must be room for what the next leaf offers.
        if n_held > enough:
            n_held, key, limit_points[q] = cut_back(keys[q], points[q], n_held, k)
            limit_keys[q], limit_squares[q] = key, key * key * _SAME_ROOT
        sizes[q] = n_held


@kernel
def _find_reached(tree, radii, queries, start, stop):
    """Find the pairs of a query of some blocks and a training point whose list may reach it.

    Returns the numbers of the queries, the points by their place in the tree, and the distances
    between them. The lists may be a little too short: the square let a pair pass.
    """
    n_leaves = tree.blocks.shape[0]
    order, blocks, reached = queries.order, queries.blocks, radii.squares
    bounds, limits, squares = np.empty(n_leaves), np.empty(LEAF), np.empty(LEAF)
    near, hits = np.empty(LEAF + 1, np.uint64), np.empty(LEAF + 1, np.uint64)
    room = LEAF * LEAF
    asked, members, distances = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    n_pairs = np.uint64(0)
    for b in range(start, stop):
        size = min(LEAF, order.shape[0] - b * LEAF)
        _bound_leaves(tree, blocks, b, bounds)
        for leaf in range(np.uint64(n_leaves)):
            furthest = reached[leaf].max()
            if bounds[leaf] > furthest:
                continue
            if n_pairs + np.uint64(room) > np.uint64(asked.size):
                # To twice the room.
                asked, members = np.append(asked, asked), np.append(members, members)
                distances = np.append(distances, distances)
            limits[:size], limits[size:] = furthest, -1.0
            n_near = _find_near(tree.low, tree.high, leaf, blocks, b, limits, squares, near)
            for e in range(n_near):
                q = near[e]
                _square_leaf(tree.blocks, leaf, blocks, b, q, squares)
                n_hits = np.uint64(0)
                for j in range(np.uint64(LEAF)):
                    hits[n_hits] = j
                    n_hits += np.uint64(squares[j] <= reached[leaf, j])
                for h in range(n_hits):
                    asked[n_pairs] = order[np.uint64(b * LEAF) + q]
                    members[n_pairs] = leaf * np.uint64(LEAF) + hits[h]
                    distances[n_pairs] = np.sqrt(squares[hits[h]])
                    n_pairs += np.uint64(1)
    return asked[:n_pairs], members[:n_pairs], distances[:n_pairs]
