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
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.threads import one_blas_thread, run_in_threads
from bayesknn.graph.metrics import _measure_listed
from bayesknn.graph.search.brute import BruteSearch
from bayesknn.graph.search.kd_tree import _UNIT, KDTree, TreeSearch
from bayesknn.graph.search.search_index import Advance, Lists
from bayesknn.graph.ties import _make_spare, _select, _sort

# Points in a tile and in what a thread takes of it: 16 MB of products, and enough to multiply fast.
_TILE, _STRIP = 2048, 256


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
    >>> from bayesknn.graph.search.products import nearest_by_products
    >>> from bayesknn.graph.search.kd_tree import build_tree
    >>> from bayesknn.graph.ties import order_ties
    >>> points = np.array([[0.0], [1.0], [1.0], [5.0]])
    >>> nearest_by_products(build_tree(points, order_ties(4)), 2)[0].T.tolist()
    [[2, 1], [2, 0], [1, 0], [2, 1]]
    """
    points = tree.in_order()
    n = len(points)
    if tree.scale == 0.0:
        return np.empty((k, 0), np.uint32), np.empty((k, 0)), np.arange(n)
    single = tree.single_in_order()
    held = _make_candidates(single, k)
    products = np.empty((min(_TILE, n), min(_TILE, n)), np.float32)

    def visit(first: Any, second: Any) -> None:
        rows, columns = min(_TILE, n - first), min(_TILE, n - second)

        def by_rows(start: Any, stop: Any) -> None:
            strip = products[start:stop, :columns]
            np.matmul(
                single[first + start : first + stop], single[second : second + columns].T, out=strip
            )
            _collect_rows(strip, first + start, second, k, held)

        def by_columns(start: Any, stop: Any) -> None:
            _collect_columns(products, rows, start, stop, first, second, k, held)

        run_in_threads(by_rows, rows, _STRIP, n_jobs)
        if first != second:
            run_in_threads(by_columns, columns, _STRIP, n_jobs)

    neighbors, distances = np.empty((k, n), np.uint32), np.empty((k, n))

    def finish(start: Any, stop: Any) -> None:
        _rank(points, tree, start, stop, held, neighbors, distances)

    tiles = range(0, n, _TILE)
    # Threads are ours: each calls the BLAS by itself.
    with one_blas_thread():
        for apart in range(len(tiles)):
            for first, second in zip(tiles, tiles[apart:], strict=False):
                visit(first, second)
            # Where single precision cannot tell the neighbours of so many apart, a tree is faster.
            if np.count_nonzero(held.n_found < 0) > n / 8:
                return neighbors, distances, np.arange(n)
            if advance is not None:
                # The pairs that are this far apart, as a part of all.
                advance(n * 2 * (len(tiles) - apart) / (len(tiles) * (len(tiles) + 1)))
    run_in_threads(finish, n, _STRIP, n_jobs)
    return neighbors, distances, tree.order[held.n_found < 0].astype(np.int64)


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
    >>> from bayesknn.graph.search.products import is_worth_products
    >>> from bayesknn.graph.search.kd_tree import build_tree
    >>> rng = np.random.default_rng(0)
    >>> points = {p: rng.normal(size=(3000, p)) for p in (2, 100)}
    >>> [is_worth_products(build_tree(points[p]), 10) for p in (2, 100)]
    [False, True]
    """
    n, p = len(tree.order), tree.blocks.shape[1]
    # On few points or features a tree is fast enough; so many candidates would take a gigabyte.
    if n < 2000 or p < 16 or n * _capacity(k) > 2**27:
        return False
    sample = tree.single[:: -(-len(tree.single) // 16), :, 0]
    squares = (tree.single**2).sum(axis=1)[:, None] - 2 * sample @ tree.single
    squares = squares.transpose(1, 0, 2).reshape(len(sample), -1)
    nearest = np.partition(squares, k, axis=1)[:, k] + (sample**2).sum(axis=1)
    is_near = [
        (np.maximum(np.maximum(tree.low.T - x, x - tree.high.T), 0.0) ** 2).sum(axis=1) <= square
        for x, square in zip(sample, nearest, strict=True)
    ]
    # Nanoseconds for a pair of points, by the tree, which skips some, and by products. Timed at
    # n = 1e4, 3e4 and 6e4 with 20 to 784 features.
    return bool(np.mean(is_near) * 0.17 * p > 2.5 + 0.021 * p)


class ProductSearch(TreeSearch):
    """Matrix products among all points, where a tree can skip nothing; the tree for new ones."""

    name = "blocked"

    @classmethod
    def from_tree(cls, search: TreeSearch) -> ProductSearch:
        """Take over a tree that is built."""
        other = cls.__new__(cls)
        other.__dict__.update(vars(search))
        return other

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Measure candidates from products, or walk the tree where they tell too few apart."""
        neighbors, distances, left = nearest_by_products(self.tree, k, n_jobs, advance)
        if len(left) == self.n_points:
            return super().neighbors(k, n_jobs, advance)
        if len(left) > 0:
            points, rows = self.points, left.astype(np.uint32)
            brute = BruteSearch(points, self.metric, self._ties)
            (neighbors[:, rows], distances[:, rows]), _ = brute.rank(
                points[rows], rows, k, None, n_jobs
            )
        return neighbors, distances


def _capacity(k: int) -> int:
    """Candidates held for a point before they are cut back."""
    return k + 128 + k // 2


class Candidates(NamedTuple):
    """What all points hold while products are looked through.

    Attributes
    ----------
    halves : ndarray of shape (n,)
        Half of the points' squares.
    lowered : ndarray of shape (n,), dtype float32
        The same less the margin.
    margin : float
        See ``find_margin``.
    keys, members : ndarray of shape (n, capacity)
        Candidates of each point and lower bounds of half their squared distances, less what is the
        same for the whole list.
    n_found : ndarray of shape (n,), dtype int64
        How many they are; -1 where too many cannot be told apart.
    limits : ndarray of shape (n,), dtype float32
        Keys beyond which nobody is a candidate.
    """

    halves: np.ndarray
    lowered: np.ndarray
    margin: float
    keys: np.ndarray
    members: np.ndarray
    n_found: np.ndarray
    limits: np.ndarray


def _make_candidates(single: np.ndarray, k: int) -> Candidates:
    n, p = single.shape
    margin, capacity = find_margin(p), _capacity(k)
    halves = 0.5 * np.einsum("ij,ij->i", single, single, dtype=np.float64)
    return Candidates(
        halves,
        ((1 - margin) * halves).astype(np.float32),
        margin,
        np.empty((n, capacity), np.float32),
        np.empty((n, capacity), np.uint32),
        np.zeros(n, np.int64),
        np.full(n, np.inf, np.float32),
    )


@kernel
def _collect_rows(products, first, second, k, held):
    """Add to each row of a strip those of its columns that may be among its k nearest."""
    lowered, limits = held.lowered, held.limits
    n_columns = np.uint64(products.shape[1])
    start, width = np.uint64(second), np.uint64(64)
    largest = held.halves[second : second + products.shape[1]].max()
    hits = np.empty(65, np.uint64)
    for q in range(np.uint64(products.shape[0])):
        i = np.uint64(first) + q
        if limits[i] == np.inf and products.shape[1] > k + 1:
            limits[i] = _round_up(
                _find_first_limit(products, q, lowered, start, k + 1)
                + 2 * held.margin * (held.halves[i] + largest)
            )
        block = np.uint64(0)
        while block < n_columns and held.n_found[i] >= 0:
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
                    _add(i, there + j, key, k, held)
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
    """Round to single precision, and up.

    2^-100 is far more than what single precision loses by underflow, and less than it can tell.
    """
    return np.float32(limit + abs(limit) * (4 * _UNIT) + 2.0**-100)


@kernel
def _collect_columns(products, n_rows, start, stop, first, second, k, held):
    """Add to columns ``start:stop`` those rows of a tile that may be among their k nearest."""
    limits, lowered, n_found = held.limits, held.lowered, held.n_found
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
                        _add(there + j, i, key, k, held)
        block += width


@kernel
def _add(i, j, key, k, held):
    """Make point j a candidate of point i; give up on i where too many cannot be told apart."""
    keys, members, n_found, limits = held.keys, held.members, held.n_found, held.limits
    if i == j or n_found[i] < 0 or key > limits[i]:
        return
    at, capacity = n_found[i], keys.shape[1]
    keys[i, np.uint64(at)] = key
    members[i, np.uint64(at)] = np.uint32(j)
    at += 1
    if at == capacity:
        at, limits[i] = _cut_back(i, at, k, held)
        if at > capacity - capacity // 8:
            at, limits[i] = -1, -np.inf
    n_found[i] = at


@kernel
def _cut_back(i, n, k, held):
    """Keep those that may be among the k nearest; return their number and the limit for others."""
    keys, points, halves = held.keys[i], held.members[i], held.halves
    _select(keys, points, 0, n, k - 1)
    limit = -np.inf
    for r in range(k):
        limit = max(limit, keys[r] + 2 * held.margin * (halves[i] + halves[points[r]]))
    limit = _round_up(limit)
    left = 0
    for r in range(n):
        if keys[r] <= limit:
            keys[left], points[left] = keys[r], points[r]
            left += 1
    return left, limit


@kernel
def _rank(points, tree, start, stop, held, neighbors, distances):
    """Measure the candidates of points ``start:stop`` and write the k nearest, in order."""
    k, capacity = neighbors.shape[0], held.keys.shape[1]
    members, order, ranks, rows = held.members, tree.order, tree.ranks, tree.rows
    lengths, places = np.empty(capacity), np.empty(capacity, np.uint32)
    spare = _make_spare(capacity)
    for t in range(start, stop):
        i, size = np.uint64(t), held.n_found[t]
        if size < 0:
            continue
        if size > k:
            size, _ = _cut_back(i, size, k, held)
        _measure_listed(points, i, points, members[i], size, False, lengths)
        for r in range(size):
            places[r] = ranks[members[i, r]]
        _sort(lengths, places, size, spare)
        for r in range(k):
            neighbors[r, order[i]] = rows[places[r]]
            distances[r, order[i]] = lengths[r]
