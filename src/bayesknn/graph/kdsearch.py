"""The k nearest points by KD-tree, a block of 64 queries at a time.

Queries that lie together share one walk down the tree. Each keeps a buffer of candidates and a
limit, a (distance, rank among ties) that k of them do not exceed; when the buffer is full it is cut
back to about the k best and the limit falls.

Most points of a leaf are too far, and single precision shows it in half the time. With u = 2^-24
and coordinates, less a centre, scaled to at most 1, a coordinate is rounded by at most u, the
difference of two by u more of itself, and a sum of p squares by (p + 1) u: where the distance is at
most D, the computed square is at most ``(D (1 + 2 u) + 2 u (|x| + sqrt p))^2 (1 + (p + 2) u)``, x
the query. Whoever is above that is not looked at again; all others are measured in double
precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesknn._jit import kernel
from bayesknn.graph.kdtree import (
    _LEAF,
    KDTree,
    _box_bound,
    _is_left_nearer,
    _point_bounds,
    _square_distances,
)
from bayesknn.graph.ordering import _NOBODY, _cut, _sort
from bayesknn.graph.threads import run_in_threads

_LEAVES_A_TASK = 16
# Distances are compared after the square root, which may send neighbouring squares to one value:
# those above a square by at most this factor must still be looked at.
_SAME_ROOT = 1.0 + 2.0**-50
_UNIT = 2.0**-24
# With more hits than this in a leaf all of its points are measured: whole leaves are quicker.
_MANY_HITS = 12
# Squares of what is much smaller or larger under- or overflow, in double precision, too.
_SMALLEST, _LARGEST = 1e-130, 1e150
# Rounding all points is worth it where so many of them, as a part, are searched for.
_WORTH = 1 / 64


class Rounded(NamedTuple):
    """The points of a tree in single precision.

    Attributes
    ----------
    blocks : ndarray of shape (n_leaves, p, 64), dtype float32
        As those of the tree, less the centre and scaled; no leaves where it is not worth it.
    centre : ndarray of shape (p,)
    scale : float
        A power of two.
    """

    blocks: np.ndarray
    centre: np.ndarray
    scale: float


def round_tree(tree: KDTree, n_queries: int) -> Rounded:
    """Round a tree's points, unless few are searched for or their squares leave the range."""
    _, p, width = tree.blocks.shape
    low, high = tree.low[0], tree.high[0]
    is_worth = n_queries >= _WORTH * len(tree.order) and p > 2
    if not (is_worth and _SMALLEST < (high - low).max() < _LARGEST):
        return Rounded(np.empty((0, p, width), np.float32), low, 1.0)
    centre = low + (high - low) / 2
    scale = float(2.0 ** -np.frexp(np.maximum(high - centre, centre - low).max())[1])
    blocks = np.empty(tree.blocks.shape, np.float32)
    for start in range(0, len(blocks), 256):
        part = slice(start, start + 256)
        blocks[part] = (tree.blocks[part] - centre[:, None]) * scale
    return Rounded(blocks, centre, scale)


def nearest_in_tree(
    tree: KDTree,
    queries: KDTree | None,
    k: int,
    n_jobs: int | None = None,
    advance: Callable[[float], object] | None = None,
    limits: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the k nearest points of a tree, ordered by (distance, rank among ties).

    Parameters
    ----------
    tree : KDTree
        The points searched.
    queries : KDTree or None
        The points searched for, as a tree of their own; None for the points of ``tree``
        themselves, each without itself.
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
    >>> from bayesknn.graph.kdtree import build_tree
    >>> from bayesknn.graph.kdsearch import nearest_in_tree
    >>> from bayesknn.graph.ties import order_ties
    >>> tree = build_tree(np.array([[0.0], [1.0], [1.0], [5.0]]), order_ties(4))
    >>> nearest_in_tree(tree, None, 2)[0].T.tolist()
    [[2, 1], [2, 0], [1, 0], [2, 1]]
    """
    is_self = queries is None
    asked = tree if queries is None else queries
    m = len(asked.order)
    neighbors = np.empty((k, m), np.uint32)
    distances = np.empty((k, m))
    boxes = np.flatnonzero(asked.n_leaves == 1)
    low, high = asked.low[boxes], asked.high[boxes]

    rows = np.empty_like(tree.order)
    rows[tree.ranks] = tree.order

    limits = np.empty(0) if limits is None else limits
    rounded = round_tree(tree, m)

    def search(start: Any, stop: Any) -> None:
        _search(
            tree.ranks, *tree[1:6], rows, asked.order, asked.blocks, low, high,
            is_self, limits, rounded, start, stop, neighbors, distances,
        )  # fmt: skip

    def count(leaves: float) -> None:
        if advance is not None:
            advance(_LEAF * leaves)

    run_in_threads(search, len(asked.blocks), _LEAVES_A_TASK, n_jobs, count)
    return neighbors, distances


@kernel
def _search(
    ranks, first_leaf, n_leaves, low, high, blocks, rows,
    query_order, query_blocks, query_low, query_high, is_self, limits, rounded,
    start, stop, neighbors, distances,
):  # fmt: skip
    m, k = query_order.shape[0], neighbors.shape[0]
    held = _make_candidates(k, blocks.shape[1])
    keys, points = held.keys, held.points
    capacity = keys.shape[1]
    spare_keys, spare_points = np.empty(capacity), np.empty(capacity, np.uint32)
    slots = np.empty(capacity + 1, np.int64)
    for b in range(start, stop):
        _gather(
            ranks, first_leaf, n_leaves, low, high, blocks,
            query_order, query_blocks, query_low, query_high, is_self, limits, rounded, b, k, held,
        )  # fmt: skip
        for q in range(min(_LEAF, m - b * _LEAF)):
            size = min(k, held.n_found[q])
            _sort(keys[q], points[q], held.n_found[q], spare_keys, spare_points, slots)
            i = query_order[b * _LEAF + q]
            for r in range(size):
                neighbors[r, i] = rows[points[q, r]]
                distances[r, i] = keys[q, r]
            for r in range(size, k):
                neighbors[r, i] = 0
                distances[r, i] = np.inf


class Candidates(NamedTuple):
    """What a block of 64 queries holds while it is searched for.

    Attributes
    ----------
    keys, points : ndarray of shape (64, capacity)
        Distances of the candidates of each query and their ranks among ties, in no order.
    n_found : ndarray of shape (64,), dtype int64
        How many they are.
    limit_key, limit_point, limit_square : ndarray of shape (64,)
        A pair that k candidates do not exceed, and the largest square that may still do so.
    coordinates : ndarray of shape (64, p)
        The queries.
    single : ndarray of shape (64, p), dtype float32
        The queries as the rounded points are.
    slack : ndarray of shape (64,)
        What rounding may add to a scaled distance.
    limit_single : ndarray of shape (64,), dtype float32
        The largest square in single precision that may still be within the limit.
    """

    keys: np.ndarray
    points: np.ndarray
    n_found: np.ndarray
    limit_key: np.ndarray
    limit_point: np.ndarray
    limit_square: np.ndarray
    coordinates: np.ndarray
    single: np.ndarray
    slack: np.ndarray
    limit_single: np.ndarray


@kernel
def _make_candidates(k, p):
    capacity = k + 64 + k // 4
    return Candidates(
        np.empty((_LEAF, capacity)),
        np.empty((_LEAF, capacity), np.uint32),
        np.empty(_LEAF, np.int64),
        np.empty(_LEAF),
        np.empty(_LEAF, np.uint32),
        np.empty(_LEAF),
        np.empty((_LEAF, p)),
        np.empty((_LEAF, p), np.float32),
        np.empty(_LEAF),
        np.empty(_LEAF, np.float32),
    )


@kernel
def _gather(
    ranks, first_leaf, n_leaves, low, high, blocks,
    query_order, query_blocks, query_low, query_high, is_self, limits, rounded, b, k, held,
):  # fmt: skip
    """Fill ``held`` with candidates of block b, the k nearest of each query among them."""
    keys, points, n_found, limit_key, limit_point, limit_square = held[:6]
    coordinates, single, slack, limit_single = held[6:]
    rounded_blocks, centre, scale = rounded
    is_rounded = rounded_blocks.shape[0] > 0
    own = np.full(_LEAF, _NOBODY)
    home = np.empty(_LEAF, np.int64)
    squares = np.empty(_LEAF)
    singles = np.empty(_LEAF, np.float32)
    bounds = np.empty(_LEAF)
    hits = np.empty(_LEAF, np.uint64)
    # At most one waiting node for each level of the tree.
    stack = np.empty(128, np.int64)
    stack_bound = np.empty(128)
    size = min(_LEAF, query_order.shape[0] - b * _LEAF)
    n_found[:] = 0
    limit_key[:] = np.inf
    limit_point[:] = _NOBODY
    limit_square[:] = np.inf
    for q in range(size):
        length = 0.0
        for f in range(blocks.shape[1]):
            coordinates[q, f] = query_blocks[b, f, q]
            scaled = (coordinates[q, f] - centre[f]) * scale
            single[q, f] = scaled
            length += scaled * scaled
        slack[q] = 2 * _UNIT * (np.sqrt(length) + np.sqrt(blocks.shape[1]))
        if limits.shape[0] > 0:
            limit_key[q] = limits[query_order[b * _LEAF + q]]
            limit_square[q] = limit_key[q] * limit_key[q] * _SAME_ROOT
        limit_single[q] = _find_limit(limit_square[q], blocks.shape[1], scale, slack[q])
        if is_self:
            own[q] = ranks[b * _LEAF + q]
            home[q] = b
        else:
            home[q] = _find_leaf(first_leaf, n_leaves, low, high, coordinates, q)
        # Its own leaf first: the limit falls at once.
        _scan(
            blocks, scale, ranks, home[q], coordinates, own[q], q, k,
            keys, points, n_found, limit_key, limit_point, limit_square, slack, limit_single,
            squares, singles, np.uint32(_LEAF), hits,
        )  # fmt: skip
    widest = np.inf
    stack[0] = 0
    stack_bound[0] = 0.0
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        if stack_bound[top] > widest:
            continue
        if n_leaves[node] > 1:
            left, right = node + 1, node + 2 * ((n_leaves[node] + 1) // 2)
            to_left = _box_bound(low, high, left, query_low, query_high, b)
            to_right = _box_bound(low, high, right, query_low, query_high, b)
            # What is pushed last is searched first.
            if _is_left_nearer(low, high, left, right, to_left, to_right, query_low, query_high, b):
                left, right = right, left
                to_left, to_right = to_right, to_left
            stack[top], stack_bound[top] = left, to_left
            stack[top + 1], stack_bound[top + 1] = right, to_right
            top += 2
            continue
        leaf = first_leaf[node]
        lowest = ranks[leaf * _LEAF]
        _point_bounds(query_blocks, b, low, high, node, bounds)
        for q in range(size):
            if bounds[q] > limit_square[q] or leaf == home[q]:
                continue
            # At the limit itself only a lower rank gets in, and a leaf's first is its lowest.
            if lowest > limit_point[q] and np.sqrt(bounds[q]) >= limit_key[q]:
                continue
            n_near = np.uint32(_LEAF)
            if is_rounded:
                # Not in ``_scan``: a call with that many arrays takes as long as this.
                _square_singles(rounded_blocks, leaf, single, q, singles)
                n_near = _count_near(singles, limit_single[q])
                if n_near == np.uint32(0):
                    continue
            _scan(
                blocks, scale, ranks, leaf, coordinates, own[q], q, k,
                keys, points, n_found, limit_key, limit_point, limit_square, slack, limit_single,
                squares, singles, n_near, hits,
            )  # fmt: skip
        widest = 0.0
        for q in range(size):
            widest = max(widest, limit_square[q])


@kernel
def _find_leaf(first_leaf, n_leaves, low, high, coordinates, q):
    """Walk to the leaf whose box is nearest, or to one of the nearest."""
    node = 0
    while n_leaves[node] > 1:
        left, right = node + 1, node + 2 * ((n_leaves[node] + 1) // 2)
        to_left = _box_bound(low, high, left, coordinates, coordinates, q)
        to_right = _box_bound(low, high, right, coordinates, coordinates, q)
        nearer = _is_left_nearer(
            low, high, left, right, to_left, to_right, coordinates, coordinates, q
        )
        node = left if nearer else right
    return first_leaf[node]


@kernel
def _find_limit(limit_square, p, scale, slack):
    """Return what the square in single precision does not exceed within a limit."""
    longest = np.sqrt(limit_square) * scale * (1 + 4 * _UNIT) + slack
    return np.float32(longest * longest * (1 + (p + 4) * _UNIT))


@kernel
def _scan(
    blocks, scale, ranks, leaf, coordinates, own, q, k,
    keys, points, n_found, limit_key, limit_point, limit_square, slack, limit_single,
    squares, singles, n_near, hits,
):  # fmt: skip
    """Add to query q's candidates what a leaf offers within its limit."""
    size = np.uint64(min(_LEAF, ranks.shape[0] - leaf * _LEAF))
    n_hits = np.uint64(0)
    if n_near <= np.uint32(_MANY_HITS):
        bound = limit_single[q]
        for j in range(size):
            hits[n_hits] = j
            n_hits += np.uint64(singles[j] <= bound)
        for h in range(n_hits):
            squares[hits[h]] = _square_distance(blocks, leaf, hits[h], coordinates, q)
    else:
        _square_distances(blocks, leaf, coordinates, q, squares)
        limit = limit_square[q]
        n_near = np.uint32(0)
        for j in range(np.uint64(_LEAF)):
            n_near += np.uint32(squares[j] <= limit)
        if n_near == np.uint32(0):
            return
        for j in range(size):
            hits[n_hits] = j
            n_hits += np.uint64(squares[j] <= limit)
    first = np.uint64(leaf * _LEAF)
    found = np.uint64(n_found[q])
    row = np.uint64(q)
    for h in range(n_hits):
        i = ranks[first + hits[h]]
        if i == own:
            continue
        key = np.sqrt(squares[hits[h]])
        if key > limit_key[q] or (key == limit_key[q] and i > limit_point[q]):
            continue
        keys[row, found] = key
        points[row, found] = i
        found += np.uint64(1)
        if found == np.uint64(keys.shape[1]):
            left, limit_key[q], limit_point[q] = _cut(keys[q], points[q], keys.shape[1], k)
            found = np.uint64(left)
            limit_square[q] = limit_key[q] * limit_key[q] * _SAME_ROOT
            limit_single[q] = _find_limit(limit_square[q], blocks.shape[1], scale, slack[q])
    n_found[q] = np.int64(found)


@kernel
def _count_near(singles, bound):
    n_near = np.uint32(0)
    for j in range(np.uint64(_LEAF)):
        n_near += np.uint32(singles[j] <= bound)
    return n_near


@kernel
def _square_distance(blocks, leaf, j, coordinates, q):
    """Squared distance to one point of a leaf: the sum of ``_square_distances``."""
    b = np.uint64(leaf)
    total = 0.0
    for f in range(np.uint64(blocks.shape[1])):
        gap = coordinates[q, f] - blocks[b, f, j]
        total += gap * gap
    return total


# Products may be added without rounding first: the bound holds all the more.
@kernel(fastmath={"contract"})  # type: ignore[call-arg]
def _square_singles(blocks, leaf, coordinates, q, squares):  # type: ignore[no-untyped-def]
    """Squares in single precision, two features a pass."""
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
            squares[j] = np.float32(0.0)
    while f < p:
        g = f + one
        x0, x1 = coordinates[q, f], coordinates[q, g]
        for j in range(size):
            d0, d1 = x0 - blocks[b, f, j], x1 - blocks[b, g, j]
            squares[j] = squares[j] + d0 * d0 + d1 * d1
        f = g + one
