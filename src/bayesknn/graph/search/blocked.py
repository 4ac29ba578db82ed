"""The k nearest points in many dimensions: candidates by matrix products in single precision.

Where a tree can skip nothing, all pairs must be looked at, and no code does this faster than the
matrix product of a BLAS: ``|a - b|^2 = |a|^2 + |b|^2 - 2 a.b``. In single precision it is off by a
little, and by how little is known: with centred points a and b rounded to single precision, u =
2^-24 and p features, the computed square differs from the true one by at most
``c (|a|^2 + |b|^2)``, c = p u / (1 - p u) + 12 u, whatever the order of the sum (p u / (1 - p u)
bounds the product, 4 u the rounding of the points, the rest that of the few operations around).
The k-th smallest of the upper bounds is a limit: whoever has a lower bound beyond it is not among
the k nearest. Candidates, a few more than k, are measured again by the one formula of the metric
and ordered by (distance, rank among ties), so that the lists are those of the tree to the bit.
"""

from __future__ import annotations

import numpy as np

from bayesknn._utils.jit import one_blas_thread, run_in_threads
from bayesknn.graph.metrics import measure_pairs
from bayesknn.graph.precomputed import rank_sparse
from bayesknn.graph.search.kd_tree import KDTree, TreeSearch
from bayesknn.graph.search.search_index import Advance, Lists

_UNIT_ROUNDOFF = 2.0**-24
# Products that a thread holds at a time, 8 MB.
_STRIP = 2**21


def round_points(points: np.ndarray) -> np.ndarray:
    """Return points less their centre, scaled to at most 1 and rounded to single precision."""
    low, high = points.min(axis=0), points.max(axis=0)
    centred = points - (low + (high - low) / 2)
    return (centred * 2.0 ** -np.frexp(np.abs(centred).max())[1]).astype(np.float32)


def rounding_margin(p: int) -> float:
    """Return c: a computed square is off by at most this part of the two points' squares."""
    return p * _UNIT_ROUNDOFF / (1 - p * _UNIT_ROUNDOFF) + 12 * _UNIT_ROUNDOFF


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
    from scipy.spatial.distance import cdist

    n, p = len(tree.order), tree.blocks.shape[1]
    # On few points or features a tree is fast enough.
    if n < 2000 or p < 16:
        return False
    sample = tree.blocks[:: -(-len(tree.blocks) // 16), :, 0]
    nearest = np.partition(cdist(sample, tree.in_order(), "sqeuclidean"), k, axis=1)[:, k]
    is_near = [
        (np.maximum(np.maximum(tree.low.T - x, x - tree.high.T), 0.0) ** 2).sum(axis=1) <= square
        for x, square in zip(sample, nearest, strict=True)
    ]
    # Nanoseconds for a pair of points, by the tree, which skips some, and by products. Timed with
    # 20 to 200 features.
    return bool(np.mean(is_near) * 0.085 * p > 2.5 + 0.021 * p)


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
        """Measure those that products leave, a strip of points at a time."""
        from scipy.sparse import csr_array

        points, n, groups = self.points, self.n_points, self.group_of_points
        by_group = np.argsort(groups, kind="stable")
        ends = np.searchsorted(groups[by_group], np.arange(n + 1))
        single, margin = round_points(points), rounding_margin(points.shape[1])
        halves = 0.5 * np.einsum("ij,ij->i", single, single, dtype=np.float64)
        lowered, raised = (((1 + sign * margin) * halves).astype(np.float32) for sign in (-1, 1))
        neighbors, distances = np.empty((k, n), np.uint32), np.empty((k, n))

        def search(start: int, stop: int) -> None:
            # Half the squares, less what is the same for all.
            products = single[start:stop] @ single.T
            upper = raised - products
            # Pairs of one group: a point and itself among them.
            own = groups[start:stop]
            here = np.repeat(np.arange(stop - start), ends[own + 1] - ends[own])
            there = np.concatenate([by_group[ends[g] : ends[g + 1]] for g in own])
            upper[here, there] = np.inf
            upper.partition(k - 1, axis=1)
            limit = upper[:, k - 1] + 2 * margin * halves[start:stop]
            # Up to single precision, by more than it loses by underflow.
            limit = limit + np.abs(limit) * (4 * _UNIT_ROUNDOFF) + 2.0**-100
            lower = np.subtract(lowered, products, out=products)
            is_near = lower <= limit.astype(np.float32)[:, None]
            is_near[here, there] = False
            starts = np.append(0, np.cumsum(np.count_nonzero(is_near, axis=1)))
            members = np.flatnonzero(is_near) % n
            lengths = measure_pairs(points[start:stop], points, starts, members)
            near = csr_array((lengths, members, starts), (stop - start, n))
            neighbors[:, start:stop], distances[:, start:stop] = rank_sparse(near, k, self.ties)

        # Threads are ours: each calls the BLAS by itself.
        with one_blas_thread():
            run_in_threads(search, n, max(16, _STRIP // n), n_jobs, advance)
        return neighbors, distances
