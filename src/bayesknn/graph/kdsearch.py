"""The k nearest points by KD-tree, a group of queries that lie together at a time.

Leaves are visited from the nearest on, by all queries of a group. Each keeps a buffer of candidates
and a limit, a (distance, rank among ties) that k of them do not exceed; when the buffer is full it
is cut back to about the k best and the limit falls. Boxes and points beyond it are left out by
single precision (:mod:`bayesknn.graph.rounded`), the rest is measured in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph.kdtree import _LEAF, KDTree, _box_bound, _is_left_nearer, _square_distances
from bayesknn.graph.ordering import _NOBODY, _cut, _sort
from bayesknn.graph.rounded import (
    _GROUP,
    Rounded,
    _bound_points,
    _find_limit,
    _load,
    _make_group,
    _square_distance,
    _square_singles,
    round_tree,
)
from bayesknn.graph.threads import run_in_threads

_LEAVES_A_TASK = 16
# Distances are compared after the square root, which may send neighbouring squares to one value:
# those above a square by at most this factor must still be looked at.
_SAME_ROOT = 1.0 + 2.0**-50
# With more hits than this in a leaf all of its points are measured: whole leaves are quicker.
_MANY_HITS = 12


def nearest_in_tree(
    tree: KDTree,
    queries: KDTree | None,
    k: int,
    n_jobs: int | None = None,
    advance: Callable[[float], object] | None = None,
    limits: np.ndarray | None = None,
    rounded: Rounded | None = None,
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
    rounded : Rounded, optional
        The tree in single precision, where it is known already.

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
    rows = np.empty_like(tree.order)
    rows[tree.ranks] = tree.order
    limits = np.empty(0) if limits is None else limits
    rounded = round_tree(tree) if rounded is None else rounded

    def search(start: Any, stop: Any) -> None:
        _search(
            tree.ranks, *tree[1:6], rounded, rows, asked.order, asked.blocks,
            is_self, limits, start, stop, neighbors, distances,
        )  # fmt: skip

    def count(leaves: float) -> None:
        if advance is not None:
            advance(_LEAF * leaves)

    run_in_threads(search, len(asked.blocks), _LEAVES_A_TASK, n_jobs, count)
    return neighbors, distances


@kernel
def _search(
    ranks, first_leaf, n_leaves, low, high, blocks, rounded, rows,
    query_order, query_blocks, is_self, limits, start, stop, neighbors, distances,
):  # fmt: skip
    m, k = query_order.shape[0], neighbors.shape[0]
    group = _make_group(blocks.shape[1], blocks.shape[0])
    held = _make_candidates(k, blocks.shape[0])
    keys, points = held.keys, held.points
    capacity = keys.shape[1]
    spare_keys, spare_points = np.empty(capacity), np.empty(capacity, np.uint32)
    slots = np.empty(capacity + 1, np.int64)
    for b in range(start, stop, _GROUP):
        first = b * _LEAF
        size = min(_LEAF * min(_GROUP, stop - b), m - first)
        _load(query_blocks, b, size, rounded, group)
        _gather(
            ranks, first_leaf, n_leaves, low, high, blocks, rounded,
            query_order, is_self, limits, first, size, k, group, held,
        )  # fmt: skip
        for q in range(size):
            n_found = min(k, held.n_found[q])
            _sort(keys[q], points[q], held.n_found[q], spare_keys, spare_points, slots)
            i = query_order[first + q]
            for r in range(n_found):
                neighbors[r, i] = rows[points[q, r]]
                distances[r, i] = keys[q, r]
            for r in range(n_found, k):
                neighbors[r, i] = 0
                distances[r, i] = np.inf


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
    gaps, spare_gaps : ndarray of shape (n_leaves,)
        How far the leaves lie from the group; only decides who is visited first.
    leaves, spare_leaves : ndarray of shape (n_leaves,), dtype uint32
    slots : ndarray of shape (n_leaves + 1,), dtype int64
    """

    keys: np.ndarray
    points: np.ndarray
    n_found: np.ndarray
    limit_key: np.ndarray
    limit_point: np.ndarray
    limit_square: np.ndarray
    limit_single: np.ndarray
    gaps: np.ndarray
    spare_gaps: np.ndarray
    leaves: np.ndarray
    spare_leaves: np.ndarray
    slots: np.ndarray


@kernel
def _make_candidates(k, n_leaves):
    size, capacity = _GROUP * _LEAF, k + 64 + k // 4
    return Candidates(
        np.empty((size, capacity)),
        np.empty((size, capacity), np.uint32),
        np.empty(size, np.int64),
        np.empty(size),
        np.empty(size, np.uint32),
        np.empty(size),
        np.empty(size, np.float32),
        np.empty(n_leaves),
        np.empty(n_leaves),
        np.empty(n_leaves, np.uint32),
        np.empty(n_leaves, np.uint32),
        np.empty(n_leaves + 1, np.int64),
    )


@kernel
def _gather(
    ranks, first_leaf, n_leaves, low, high, blocks, rounded,
    query_order, is_self, limits, first, size, k, group, held,
):  # fmt: skip
    """Fill ``held`` with candidates of a group of queries, the k nearest of each among them.

    They are ``query_order[first : first + size]``.
    """
    keys, points, n_found, limit_key, limit_point, limit_square, limit_single = held[:7]
    leaves = held.leaves
    coordinates, single, query_blocks, slack, bounds = group
    rounded_blocks, rounded_low, rounded_high, _, scale = rounded
    p = blocks.shape[1]
    own = np.full(_GROUP * _LEAF, _NOBODY)
    home = np.empty(_GROUP * _LEAF, np.int64)
    squares = np.empty(_LEAF)
    singles = np.empty(_LEAF, np.float32)
    point_bounds = np.empty(_LEAF, np.float32)
    near = np.empty(_LEAF + 1, np.uint64)
    hits = np.empty(_LEAF + 1, np.uint64)
    n_found[:] = 0
    limit_key[:] = np.inf
    limit_point[:] = _NOBODY
    limit_square[:] = np.inf
    # Nobody comes in for queries that are not there.
    limit_single[:] = -1.0
    widest = np.full(_GROUP, -1.0, np.float32)
    for q in range(size):
        if limits.shape[0] > 0:
            limit_key[q] = limits[query_order[first + q]]
            limit_square[q] = limit_key[q] * limit_key[q] * _SAME_ROOT
        limit_single[q] = _find_limit(limit_square[q], p, scale, slack[q])
        if is_self:
            own[q] = ranks[first + q]
            home[q] = (first + q) // _LEAF
        else:
            home[q] = _find_leaf(first_leaf, n_leaves, low, high, coordinates, q)
        # Its own leaf first: the limit falls at once.
        _scan(
            blocks, scale, ranks, home[q], coordinates, own[q], q, k,
            keys, points, n_found, limit_key, limit_point, limit_square, slack, limit_single,
            squares, singles, np.uint32(_LEAF), hits,
        )  # fmt: skip
        if n_found[q] > k:
            _lower(
                scale, p, q, k, keys, points, n_found,
                limit_key, limit_point, limit_square, slack, limit_single,
            )  # fmt: skip
        widest[q // _LEAF] = max(widest[q // _LEAF], limit_single[q])
    n_blocks = (size + _LEAF - 1) // _LEAF
    for t in range(_sort_leaves(rounded_low, rounded_high, group, widest, n_blocks, held)):
        leaf = np.int64(leaves[t])
        lowest = ranks[leaf * _LEAF]
        for s in range(n_blocks):
            if bounds[s, leaf] > widest[s]:
                continue
            _bound_points(query_blocks, s, rounded_low, rounded_high, leaf, point_bounds)
            start = np.uint64(s * _LEAF)
            n_near = np.uint64(0)
            for j in range(np.uint64(_LEAF)):
                near[n_near] = start + j
                n_near += np.uint64(point_bounds[j] <= limit_single[start + j])
            for e in range(n_near):
                q = near[e]
                if leaf == home[q]:
                    continue
                # Among duplicates only a lower rank gets in, and a leaf's first is its lowest.
                if limit_key[q] == 0.0 and lowest > limit_point[q]:
                    continue
                # Not in ``_scan``: a call with that many arrays takes as long as this.
                _square_singles(rounded_blocks, leaf, single, q, singles)
                n_hits = _count_near(singles, limit_single[q])
                if n_hits == np.uint32(0):
                    continue
                _scan(
                    blocks, scale, ranks, leaf, coordinates, own[q], q, k,
                    keys, points, n_found, limit_key, limit_point, limit_square, slack,
                    limit_single, squares, singles, n_hits, hits,
                )  # fmt: skip
            if n_near > np.uint64(0):
                widest[s] = -1.0
                for j in range(np.uint64(_LEAF)):
                    widest[s] = max(widest[s], limit_single[start + j])


@kernel
def _sort_leaves(low, high, group, widest, n_blocks, held):
    """Fill in the leaves that some block of queries may need, the nearest first."""
    single, bounds, leaves, gaps = group.single, group.bounds, held.leaves, held.gaps
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
        _sort(gaps, leaves, np.int64(n_near), held.spare_gaps, held.spare_leaves, held.slots)
    return n_near


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
def _lower(
    scale, p, q, k, keys, points, n_found,
    limit_key, limit_point, limit_square, slack, limit_single,
):  # fmt: skip
    """Cut query q's candidates back to about the k best."""
    n_found[q], limit_key[q], limit_point[q] = _cut(keys[q], points[q], n_found[q], k)
    limit_square[q] = limit_key[q] * limit_key[q] * _SAME_ROOT
    limit_single[q] = _find_limit(limit_square[q], p, scale, slack[q])


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
            n_found[q] = np.int64(found)
            _lower(
                scale, blocks.shape[1], q, k, keys, points, n_found,
                limit_key, limit_point, limit_square, slack, limit_single,
            )  # fmt: skip
            found = np.uint64(n_found[q])
    n_found[q] = np.int64(found)


@kernel
def _count_near(singles, bound):
    n_near = np.uint32(0)
    for j in range(np.uint64(_LEAF)):
        n_near += np.uint32(singles[j] <= bound)
    return n_near
