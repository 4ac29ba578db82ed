"""The k nearest points in many dimensions: candidates by matrix products in single precision.

Where a tree can skip nothing, all pairs must be looked at, and no code does this faster than the
matrix product of a BLAS: ``|a - b|^2 = |a|^2 + |b|^2 - 2 a.b``. In single precision it is off by a
little, and by how little is known: with centred points a and b rounded to single precision, u =
2^-24 and p features, the computed square differs from the true one by at most
``c (|a|^2 + |b|^2)``, c = p u / (1 - p u) + 12 u, whatever the order of the sum (p u / (1 - p u)
bounds the product, 4 u the rounding of the points, the rest that of the few operations around).
Whoever may be among the k nearest by this bound is a candidate. Candidates, a few more than k, are
measured again by the one formula of the metric and ordered by (distance, rank among ties), so that
the lists are those of the tree to the bit. Points come in the order of a KD-tree: those that lie
beside a point in it set the limit beyond which nobody is a candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.threads import one_blas_thread, run_in_threads
from bayesknn.graph.metrics import measure_listed
from bayesknn.graph.search.brute import BruteSearch
from bayesknn.graph.search.kd_tree import UNIT_ROUNDOFF, KDTree, TreeSearch
from bayesknn.graph.search.search_index import Advance, Lists
from bayesknn.graph.ties import new_sort_workspace, select_nth, sort_pairs

# Products that a thread holds at a time, 16 MB, and those at which a point's limit starts.
_STRIP, _FIRST = 2**22, 2048


def nearest_blocked(
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
        Called with the number of points done since the last call.

    Returns
    -------
    neighbors : ndarray of shape (k, n), dtype uint32
    distances : ndarray of shape (k, n)
    left : ndarray of int64
        Points whose lists were not found, because too many others are as near as single precision
        can tell.
    """
    points, single = tree.in_order(), tree.single_in_order()
    n, p = points.shape
    neighbors, distances = np.empty((k, n), np.uint32), np.empty((k, n))
    is_left = np.ones(n, np.bool_)
    halves = 0.5 * np.einsum("ij,ij->i", single, single, dtype=np.float64)
    margin = rounding_margin(p)
    bounds = Bounds(halves, ((1 - margin) * halves).astype(np.float32), margin)

    def search(start: int, stop: int) -> None:
        products = single[start:stop] @ single.T
        _rank_strip(products, start, points, tree, bounds, neighbors, distances, is_left)

    # Threads are ours: each calls the BLAS by itself.
    with one_blas_thread():
        run_in_threads(search, n, max(16, _STRIP // n), n_jobs, advance)
    return neighbors, distances, tree.order[is_left].astype(np.int64)


def rounding_margin(p: int) -> float:
    """Return c: a computed square is off by at most this part of the two points' squares."""
    return p * UNIT_ROUNDOFF / (1 - p * UNIT_ROUNDOFF) + 12 * UNIT_ROUNDOFF


def is_worth_blocking(tree: KDTree, k: int) -> bool:
    """Return whether products are likely faster than the tree, which must be able to skip.

    How much it can skip is measured on a few points: the leaves whose boxes come nearer than their
    k-th neighbours must be searched.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.search.blocked import is_worth_blocking
    >>> from bayesknn.graph.search.kd_tree import build_tree
    >>> rng = np.random.default_rng(0)
    >>> points = {p: rng.normal(size=(3000, p)) for p in (2, 100)}
    >>> [is_worth_blocking(build_tree(points[p]), 10) for p in (2, 100)]
    [False, True]
    """
    n, p = len(tree.order), tree.blocks.shape[1]
    # On few points or features a tree is fast enough.
    if n < 2000 or p < 16:
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


class BlockedSearch(TreeSearch):
    """Matrix products among all points, where a tree can skip nothing; the tree for new ones."""

    name = "blocked"

    @classmethod
    def from_tree(cls, search: TreeSearch) -> BlockedSearch:
        """Take over a tree that is built."""
        other = cls.__new__(cls)
        other.__dict__.update(vars(search))
        return other

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Measure candidates from products, or walk the tree where they tell too few apart."""
        neighbors, distances, left = nearest_blocked(self.tree, k, n_jobs, advance)
        if len(left) > self.n_points / 8:
            return super().neighbors(k, n_jobs)
        if len(left) > 0:
            points, rows = self.points, left.astype(np.uint32)
            brute = BruteSearch(points, self.metric, self._ties)
            (neighbors[:, rows], distances[:, rows]), _ = brute.rank(
                points[rows], rows, k, None, n_jobs
            )
        return neighbors, distances


class Bounds(NamedTuple):
    """What squares in single precision say of the true ones.

    Attributes
    ----------
    halves : ndarray of shape (n,)
        Half of the points' squares.
    lowered : ndarray of shape (n,), dtype float32
        The same less the margin.
    margin : float
        See ``rounding_margin``.
    """

    halves: np.ndarray
    lowered: np.ndarray
    margin: float


@kernel
def _rank_strip(products, start, points, tree, bounds, neighbors, distances, is_left):
    """Write the k nearest, in order, of the points from ``start`` on whose products are given."""
    k, order, ranks, rows = neighbors.shape[0], tree.order, tree.ranks, tree.rows
    capacity = k + 128 + k // 2
    keys, members = np.empty(capacity, np.float32), np.empty(capacity, np.uint32)
    lengths, places = np.empty(capacity), np.empty(capacity, np.uint32)
    workspace = new_sort_workspace(capacity)
    for q in range(np.uint64(products.shape[0])):
        i = np.uint64(start) + q
        size = _find_candidates(products, q, i, k, bounds, keys, members)
        if size < 0:
            continue
        is_left[i] = False
        measure_listed(points, i, points, members, size, lengths)
        for r in range(size):
            places[r] = ranks[members[r]]
        sort_pairs(lengths, places, size, workspace)
        for r in range(k):
            neighbors[r, order[i]] = rows[places[r]]
            distances[r, order[i]] = lengths[r]


@kernel
def _find_candidates(products, q, i, k, bounds, keys, members):
    """Fill in who may be among the k nearest of point i; -1 where too many cannot be told apart.

    ``keys`` are lower bounds of half their squared distances, less what is the same for all.
    """
    lowered, capacity = bounds.lowered, np.uint64(keys.size)
    limit = _find_first_limit(products, q, i, k, bounds)
    n, width = np.uint64(lowered.size), np.uint64(64)
    n_found = np.uint64(0)
    for first in range(np.uint64(0), n, width):
        last = min(first + width, n)
        n_hits = np.uint32(0)
        for j in range(first, last):
            n_hits += np.uint32(lowered[j] - products[q, j] <= limit)
        if n_hits == np.uint32(0):
            continue
        for j in range(first, last):
            key = lowered[j] - products[q, j]
            if key > limit or j == i:
                continue
            keys[n_found], members[n_found] = key, np.uint32(j)
            n_found += np.uint64(1)
            if n_found == capacity:
                n_found, limit = _cut_back(i, n_found, k, bounds, keys, members)
                if n_found > capacity - capacity // np.uint64(8):
                    return -1
    if n_found > np.uint64(k):
        n_found, _ = _cut_back(i, n_found, k, bounds, keys, members)
    return np.int64(n_found)


@kernel
def _find_first_limit(products, q, i, k, bounds):
    """Return a key that k others or a few more do not exceed, by halving.

    Whole passes that only count are quick: there is no branch to guess wrong.
    """
    lowered, n = bounds.lowered, bounds.lowered.size
    size = np.uint64(min(max(_FIRST, 2 * k), n))
    first = np.uint64(max(min(np.int64(i) - np.int64(size) // 2, n - np.int64(size)), 0))
    low, high, largest = np.float32(np.inf), np.float32(-np.inf), 0.0
    for j in range(first, first + size):
        key = lowered[j] - products[q, j]
        low, high = min(low, key), max(high, key)
        largest = max(largest, bounds.halves[j])
    # The point itself is one of them.
    wanted = np.uint32(k + 1)
    for _ in range(24):
        middle = np.float32(0.5) * (low + high)
        n_below = np.uint32(0)
        for j in range(first, first + size):
            n_below += np.uint32(lowered[j] - products[q, j] <= middle)
        if n_below < wanted:
            low = middle
        else:
            high = middle
            if n_below <= wanted + np.uint32(16):
                break
    return _round_up(high + 2 * bounds.margin * (bounds.halves[i] + largest))


@kernel
def _cut_back(i, n, k, bounds, keys, members):
    """Keep those that may be among the k nearest; return their number and the limit for others."""
    select_nth(keys, members, 0, np.int64(n), k - 1)
    limit = -np.inf
    for r in range(k):
        more = 2 * bounds.margin * (bounds.halves[i] + bounds.halves[members[r]])
        limit = max(limit, keys[r] + more)
    limit = _round_up(limit)
    left = np.uint64(0)
    for r in range(n):
        if keys[r] <= limit:
            keys[left], members[left] = keys[r], members[r]
            left += np.uint64(1)
    return left, limit


@kernel
def _round_up(limit):
    """Round to single precision, and up.

    2^-100 is far more than what single precision loses by underflow, and less than it can tell.
    """
    return np.float32(limit + abs(limit) * (4 * UNIT_ROUNDOFF) + 2.0**-100)
