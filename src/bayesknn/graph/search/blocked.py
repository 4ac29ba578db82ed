"""The k nearest points in many dimensions: candidates by matrix products in single precision.

Where a tree can skip nothing, all pairs must be looked at, and no code does this faster than the
matrix product of a BLAS: ``|a - b|^2 = |a|^2 + |b|^2 - 2 a.b``. In single precision it is off by a
little, and by how little is known: with centred points a and b rounded to single precision, u =
2^-24 and p features, the computed square differs from the true one by at most
``c (|a|^2 + |b|^2)``, c = p u / (1 - p u) + 12 u, whatever the order of the sum (p u / (1 - p u)
bounds the product, 4 u the rounding of the points, the rest that of the few operations around).
Whoever may be among the k nearest by this bound is a candidate. Candidates, a few more than k, are
measured again by the one formula of the metric and ordered by (distance, rank among ties), so that
the lists are those of the tree to the bit. A product serves both of its points. Points come in the
order of a KD-tree, and tiles of near ones first, so that few others remain candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph.kdtree import KDTree
from bayesknn.graph.ordering import _select, _sort
from bayesknn.graph.threads import run_in_threads

# Points in a tile and in what a thread takes of it: 16 MB of products, and enough to multiply fast.
_TILE, _STRIP = 2048, 256
# Below these a tree is fast enough; above this number candidates would take a gigabyte.
_FEW_POINTS, _FEW_FEATURES, _MANY_CANDIDATES = 2000, 16, 2**27
# Points by which is measured how much a tree can skip.
_SAMPLE = 16
# Nanoseconds for a pair of points that are compared, and more for each feature: by the tree, which
# skips some, and by products. Timed at n = 1e4, 3e4 and 6e4 with 20 to 784 features.
_TREE, _PRODUCT = (0.0, 0.17), (2.5, 0.021)
# Where single precision cannot tell this part of the points' neighbours apart, a tree is faster.
_MANY_LEFT = 0.125
# Squares of what is much smaller or larger under- or overflow in double precision, too.
_SMALLEST, _LARGEST = 1e-130, 1e150
_UNIT = 2.0**-24
# Far more than what single precision loses by underflow, far less than what it can tell.
_TINY = 2.0**-100


def nearest_by_products(
    tree: KDTree,
    k: int,
    n_jobs: int | None = None,
    advance: Callable[[float], object] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find every point's k nearest others by Euclidean distance.

    Parameters
    ----------
    tree : KDTree
        Over the points, with their order of ties.
    k : int
        At most n - 1.
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on it.
    advance : callable, optional
        Is told how many points are done.

    Returns
    -------
    neighbors : ndarray of shape (k, n), dtype uint32
    distances : ndarray of shape (k, n)
    left : ndarray of int64
        Points whose lists were not found, because too many others are as near as single precision
        can tell.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.search.blocked import nearest_by_products
    >>> from bayesknn.graph.kdtree import build_tree
    >>> from bayesknn.graph.ties import order_ties
    >>> points = np.array([[0.0], [1.0], [1.0], [5.0]])
    >>> nearest_by_products(build_tree(points, order_ties(4)), 2)[0].T.tolist()
    [[2, 1], [2, 0], [1, 0], [2, 1]]
    """
    points = tree.in_order()
    n, p = points.shape
    scale = find_scale(points, tree)
    if scale is None:
        return np.empty((k, 0), np.uint32), np.empty((k, 0)), np.arange(n)
    single = round_points(points, *scale)
    halves = 0.5 * np.einsum("ij,ij->i", single, single, dtype=np.float64)
    margin = find_margin(p)
    lowered = ((1 - margin) * halves).astype(np.float32)
    capacity = _capacity(k)
    keys = np.empty((n, capacity), np.float32)
    members = np.empty((n, capacity), np.uint32)
    n_found = np.zeros(n, np.int64)
    limits = np.full(n, np.inf, np.float32)
    held = (lowered, halves, margin, k, keys, members, n_found, limits)
    products = np.empty((min(_TILE, n), min(_TILE, n)), np.float32)

    def visit(first: Any, second: Any) -> None:
        rows, columns = min(_TILE, n - first), min(_TILE, n - second)

        def by_rows(start: Any, stop: Any) -> None:
            strip = products[start:stop, :columns]
            np.matmul(
                single[first + start : first + stop], single[second : second + columns].T, out=strip
            )
            _collect_rows(strip, first + start, second, *held)

        def by_columns(start: Any, stop: Any) -> None:
            _collect_columns(products, rows, start, stop, first, second, *held)

        run_in_threads(by_rows, rows, _STRIP, n_jobs)
        if first != second:
            run_in_threads(by_columns, columns, _STRIP, n_jobs)

    neighbors, distances = np.empty((k, n), np.uint32), np.empty((k, n))
    rows = np.empty_like(tree.order)
    rows[tree.ranks] = tree.order

    def finish(start: Any, stop: Any) -> None:
        _rank(
            points, tree.order, tree.ranks, rows, start, stop, halves, margin, k,
            keys, members, n_found, neighbors, distances,
        )  # fmt: skip

    tiles = range(0, n, _TILE)
    with _one_thread_a_product():
        for apart in range(len(tiles)):
            for first, second in zip(tiles, tiles[apart:], strict=False):
                visit(first, second)
            if np.count_nonzero(n_found < 0) > _MANY_LEFT * n:
                return neighbors, distances, np.arange(n)
            if advance is not None:
                # The pairs that are this far apart, as a part of all.
                advance(n * 2 * (len(tiles) - apart) / (len(tiles) * (len(tiles) + 1)))
    run_in_threads(finish, n, _STRIP, n_jobs)
    return neighbors, distances, tree.order[n_found < 0].astype(np.int64)


def find_margin(p: int) -> float:
    """Return c: a computed square is off by at most this part of the two points' squares."""
    return p * _UNIT / (1 - p * _UNIT) + 12 * _UNIT


def is_worth_products(tree: KDTree, k: int) -> bool:
    """Return whether products are likely faster than the tree, which must be able to skip.

    How much it can skip is measured on a few points: the leaves whose boxes come nearer than their
    k-th neighbours must be searched.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.search.blocked import is_worth_products
    >>> from bayesknn.graph.kdtree import build_tree
    >>> rng = np.random.default_rng(0)
    >>> points = {p: rng.normal(size=(3000, p)) for p in (2, 100)}
    >>> [is_worth_products(build_tree(points[p]), 10) for p in (2, 100)]
    [False, True]
    """
    n, p = len(tree.order), tree.blocks.shape[1]
    if n < _FEW_POINTS or p < _FEW_FEATURES or n * _capacity(k) > _MANY_CANDIDATES:
        return False
    sample = tree.blocks[:: -(-len(tree.blocks) // _SAMPLE), :, 0]
    squares = (tree.blocks**2).sum(axis=1)[:, None] - 2 * sample @ tree.blocks
    squares = squares.transpose(1, 0, 2).reshape(len(sample), -1)
    reach = np.partition(squares, k, axis=1)[:, k] + (sample**2).sum(axis=1)
    is_leaf = tree.n_leaves == 1
    low, high = tree.low[is_leaf], tree.high[is_leaf]
    is_near = [
        (np.maximum(np.maximum(low - x, x - high), 0.0) ** 2).sum(axis=1) <= square
        for x, square in zip(sample, reach, strict=True)
    ]
    tree_cost, product_cost = (pair + p * feature for pair, feature in (_TREE, _PRODUCT))
    return bool(np.mean(is_near) * tree_cost > product_cost)


def _capacity(k: int) -> int:
    """Candidates held for a point before they are cut back."""
    return k + 128 + k // 2


def find_scale(points: np.ndarray, tree: KDTree) -> tuple[np.ndarray, float] | None:
    """Return the centre and a power of two by which squares neither over- nor underflow.

    None where they do so in double precision, too.
    """
    if not _SMALLEST < (tree.high[0] - tree.low[0]).max() < _LARGEST:
        return None
    centre = points.mean(axis=0)
    largest = max((tree.high[0] - centre).max(), (centre - tree.low[0]).max())
    return centre, float(2.0 ** -np.frexp(largest)[1])


def round_points(points: np.ndarray, centre: np.ndarray, scale: float) -> np.ndarray:
    """Centre, scale and round to single precision."""
    single = np.empty(points.shape, np.float32)
    for start in range(0, len(points), _STRIP):
        strip = slice(start, start + _STRIP)
        single[strip] = (points[strip] - centre) * scale
    return single


def _one_thread_a_product() -> Any:
    """Threads are ours: each calls the BLAS by itself."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")


@kernel
def _collect_rows(
    products, first, second, lowered, halves, margin, k, keys, members, n_found, limits
):
    """Add to each row of a strip those of its columns that may be among its k nearest.

    A key is a lower bound of half a squared distance, less what is the same for the whole list.
    """
    n_columns = np.uint64(products.shape[1])
    start, width = np.uint64(second), np.uint64(64)
    largest = halves[second : second + products.shape[1]].max()
    hits = np.empty(65, np.uint64)
    for q in range(np.uint64(products.shape[0])):
        i = np.uint64(first) + q
        if limits[i] == np.inf and products.shape[1] > k + 1:
            limits[i] = _round_up(
                _find_first_limit(products, q, lowered, start, k + 1)
                + 2 * margin * (halves[i] + largest)
            )
        block = np.uint64(0)
        while block < n_columns and n_found[i] >= 0:
            size, there = min(width, n_columns - block), start + block
            limit = limits[i]
            n_hits = np.uint32(0)
            for j in range(size):
                n_hits += np.uint32(lowered[there + j] - products[q, block + j] <= limit)
            if n_hits > np.uint32(0):
                at = np.uint64(0)
                for j in range(size):
                    hits[at] = j
                    at += np.uint64(lowered[there + j] - products[q, block + j] <= limit)
                for h in range(at):
                    j = hits[h]
                    key = lowered[there + j] - products[q, block + j]
                    _add(i, there + j, key, halves, margin, k, keys, members, n_found, limits)
            block += width


@kernel
def _find_first_limit(products, q, lowered, start, wanted):
    """Return a key that ``wanted`` or a few more of a row do not exceed, by halving.

    Whole passes that only count are quick: there is no branch to guess wrong.
    """
    n_columns = np.uint64(products.shape[1])
    low, high = np.float32(np.inf), np.float32(-np.inf)
    for j in range(n_columns):
        key = lowered[start + j] - products[q, j]
        low, high = min(low, key), max(high, key)
    enough = np.uint32(wanted + 16)
    for _ in range(24):
        middle = np.float32(0.5) * (low + high)
        n_below = np.uint32(0)
        for j in range(n_columns):
            n_below += np.uint32(lowered[start + j] - products[q, j] <= middle)
        if n_below < np.uint32(wanted):
            low = middle
        else:
            high = middle
            if n_below <= enough:
                break
    return high


@kernel
def _round_up(limit):
    """Round to single precision, and up."""
    return np.float32(limit + abs(limit) * (4 * _UNIT) + _TINY)


@kernel
def _collect_columns(
    products, n_rows, start, stop, first, second,
    lowered, halves, margin, k, keys, members, n_found, limits,
):  # fmt: skip
    """Add to columns ``start:stop`` those rows of a tile that may be among their k nearest."""
    width = np.uint64(64)
    block, last = np.uint64(start), np.uint64(stop)
    while block < last:
        size, there = min(width, last - block), np.uint64(second) + block
        for q in range(np.uint64(n_rows)):
            i = np.uint64(first) + q
            low = lowered[i]
            n_hits = np.uint32(0)
            for j in range(size):
                n_hits += np.uint32(low - products[q, block + j] <= limits[there + j])
            if n_hits > np.uint32(0):
                for j in range(size):
                    key = low - products[q, block + j]
                    if key <= limits[there + j] and n_found[there + j] >= 0:
                        _add(there + j, i, key, halves, margin, k, keys, members, n_found, limits)
        block += width


@kernel
def _add(i, j, key, halves, margin, k, keys, members, n_found, limits):
    """Make point j a candidate of point i; give up on i where too many cannot be told apart."""
    if i == j or n_found[i] < 0 or key > limits[i]:
        return
    at, capacity = n_found[i], keys.shape[1]
    keys[i, np.uint64(at)] = key
    members[i, np.uint64(at)] = np.uint32(j)
    at += 1
    if at == capacity:
        at, limits[i] = _cut_back(keys[i], members[i], at, halves, margin, i, k)
        if at > capacity - capacity // 8:
            at, limits[i] = -1, -np.inf
    n_found[i] = at


@kernel
def _cut_back(keys, points, n, halves, margin, own, k):
    """Keep those that may be among the k nearest; return their number and the limit for others."""
    _select(keys, points, 0, n, k - 1)
    limit = -np.inf
    for r in range(k):
        limit = max(limit, keys[r] + 2 * margin * (halves[own] + halves[points[r]]))
    limit = _round_up(limit)
    left = 0
    for r in range(n):
        if keys[r] <= limit:
            keys[left], points[left] = keys[r], points[r]
            left += 1
    return left, limit


@kernel
def _rank(
    points, order, ranks, rows, start, stop, halves, margin, k,
    keys, members, n_found, neighbors, distances,
):  # fmt: skip
    """Measure the candidates of points ``start:stop`` and write the k nearest, in order."""
    capacity = keys.shape[1]
    lengths = np.empty(capacity)
    places = np.empty(capacity, np.uint32)
    spare_keys, spare_points = np.empty(capacity), np.empty(capacity, np.uint32)
    slots = np.empty(capacity + 1, np.int64)
    for i in range(start, stop):
        size = n_found[i]
        if size < 0:
            continue
        if size > k:
            size, _ = _cut_back(keys[i], members[i], size, halves, margin, np.uint64(i), k)
        _measure(points, np.uint64(i), members[i], size, lengths)
        for r in range(size):
            places[r] = ranks[members[i, r]]
        _sort(lengths, places, size, spare_keys, spare_points, slots)
        for r in range(k):
            neighbors[r, order[i]] = rows[places[r]]
            distances[r, order[i]] = lengths[r]


@kernel
def _measure(coordinates, i, members, size, found):
    """Distances from point i to members, each summed over the features in their order.

    Four sums at a time, which do not wait for each other.
    """
    p = np.uint64(coordinates.shape[1])
    last = size - 1
    for r in range(0, size, 4):
        a, b = np.uint64(members[r]), np.uint64(members[min(r + 1, last)])
        c, d = np.uint64(members[min(r + 2, last)]), np.uint64(members[min(r + 3, last)])
        to_a, to_b, to_c, to_d = 0.0, 0.0, 0.0, 0.0
        for f in range(p):
            x = coordinates[i, f]
            to_a += (x - coordinates[a, f]) * (x - coordinates[a, f])
            to_b += (x - coordinates[b, f]) * (x - coordinates[b, f])
            to_c += (x - coordinates[c, f]) * (x - coordinates[c, f])
            to_d += (x - coordinates[d, f]) * (x - coordinates[d, f])
        found[r] = np.sqrt(to_a)
        found[min(r + 1, last)] = np.sqrt(to_b)
        found[min(r + 2, last)] = np.sqrt(to_c)
        found[min(r + 3, last)] = np.sqrt(to_d)
