"""The k nearest points by KD-tree, a block of 64 queries at a time.

Queries that lie together share one walk down the tree. Each keeps a buffer of candidates and a
limit, a (distance, rank among ties) that k of them do not exceed; when the buffer is full it is cut
back to about the k best and the limit falls.
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

    def search(start: Any, stop: Any) -> None:
        _search(
            tree.ranks, *tree[1:6], rows, asked.order, asked.blocks, low, high,
            is_self, limits, start, stop, neighbors, distances,
        )  # fmt: skip

    def count(leaves: float) -> None:
        if advance is not None:
            advance(_LEAF * leaves)

    run_in_threads(search, len(asked.blocks), _LEAVES_A_TASK, n_jobs, count)
    return neighbors, distances


@kernel
def _search(
    ranks, first_leaf, n_leaves, low, high, blocks, rows,
    query_order, query_blocks, query_low, query_high, is_self, limits,
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
            query_order, query_blocks, query_low, query_high, is_self, limits, b, k, held,
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
    """

    keys: np.ndarray
    points: np.ndarray
    n_found: np.ndarray
    limit_key: np.ndarray
    limit_point: np.ndarray
    limit_square: np.ndarray
    coordinates: np.ndarray


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
    )


@kernel
def _gather(
    ranks, first_leaf, n_leaves, low, high, blocks,
    query_order, query_blocks, query_low, query_high, is_self, limits, b, k, held,
):  # fmt: skip
    """Fill ``held`` with candidates of block b, the k nearest of each query among them."""
    keys, points, n_found, limit_key, limit_point, limit_square, coordinates = held
    own = np.full(_LEAF, _NOBODY)
    home = np.empty(_LEAF, np.int64)
    squares = np.empty(_LEAF)
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
        for f in range(blocks.shape[1]):
            coordinates[q, f] = query_blocks[b, f, q]
        if limits.shape[0] > 0:
            limit_key[q] = limits[query_order[b * _LEAF + q]]
            limit_square[q] = limit_key[q] * limit_key[q] * _SAME_ROOT
        if is_self:
            own[q] = ranks[b * _LEAF + q]
            home[q] = b
        else:
            home[q] = _find_leaf(first_leaf, n_leaves, low, high, coordinates, q)
        # Its own leaf first: the limit falls at once.
        _scan(
            blocks, ranks, home[q], coordinates, own[q], q, k,
            keys, points, n_found, limit_key, limit_point, limit_square, squares, hits,
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
            _scan(
                blocks, ranks, leaf, coordinates, own[q], q, k,
                keys, points, n_found, limit_key, limit_point, limit_square, squares, hits,
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
def _scan(
    blocks, ranks, leaf, coordinates, own, q, k,
    keys, points, n_found, limit_key, limit_point, limit_square, squares, hits,
):  # fmt: skip
    """Add to query q's candidates what a leaf offers within its limit."""
    _square_distances(blocks, leaf, coordinates, q, squares)
    limit = limit_square[q]
    n_hits = np.uint64(0)
    for j in range(_LEAF):
        n_hits += np.uint64(squares[j] <= limit)
    if n_hits == np.uint64(0):
        return
    first = np.uint64(leaf * _LEAF)
    n_hits = np.uint64(0)
    for j in range(np.uint64(min(_LEAF, ranks.shape[0] - leaf * _LEAF))):
        hits[n_hits] = j
        n_hits += np.uint64(squares[j] <= limit)
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
    n_found[q] = np.int64(found)
