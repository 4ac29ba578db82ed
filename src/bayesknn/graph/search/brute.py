"""Every pair is measured, or those that a tree of scikit-learn proposes: any metric.

Reverse neighbours of a new point, the training points that would have it among their own nearest
(Section 2.3), come from the same distances. Those of any search are brought into one layout here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array

from bayesknn._utils.checks import is_sparse
from bayesknn._utils.jit import kernel, run_in_threads
from bayesknn.graph.precomputed import rank_sparse
from bayesknn.graph.search.search_index import Advance, Lists, Reverse, SearchIndex
from bayesknn.graph.ties import NO_POINT, rank_rows

# Distances that are ranked together, 4 MB. Ranking holds about five arrays of that size in each
# thread; larger ones leave the processor's cache.
CHUNK = 2**19
# An entry is a rank above this bit and the index of a training point below.
_SHIFT = np.uint64(32)


class BruteSearch(SearchIndex):
    """Measures every pair, a chunk of rows at a time."""

    name = "brute"

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Rank every row of the matrix of distances."""
        return self.rank(self._points, self.group_of_points, k, None, n_jobs, advance)[0]

    def query(
        self, rows: Any, k: int, radii: Any, n_jobs: int | None = None
    ) -> tuple[Lists, Reverse | None]:
        """Rank the distances of new points, and look for those below the lists' ends."""
        return self.rank(rows, np.full(rows.shape[0], NO_POINT), k, radii, n_jobs)

    def rank(
        self,
        rows: np.ndarray,
        own: np.ndarray,
        k: int,
        radii: Any,
        n_jobs: int | None,
        advance: Advance | None = None,
    ) -> tuple[Lists, Reverse | None]:
        """Rank the training points around some rows, each without those of its own group."""
        m, order = rows.shape[0], self.ties.rows
        groups = self.group_of_points[order]
        neighbors, distances = np.empty((k, m), np.uint32), np.empty((k, m))
        arranged, names = self._arrange(), np.arange(self.n_points, dtype=np.uint32)
        ends = None if radii is None else radii[:, -1].copy()
        parts: list[Any] = []

        def measure(start: int, stop: int) -> None:
            measured = self.metric.distances(rows[start:stop], arranged)
            ranked = measured[:, order]
            ranked[groups == own[start:stop, None]] = np.inf
            near, lengths = rank_rows(ranked, order, k)
            neighbors[:, start:stop], distances[:, start:stop] = near.T, lengths.T
            if radii is not None:
                near = np.flatnonzero(measured < ends)
                queries, members = np.divmod(near, self.n_points)
                lengths = measured.ravel()[near]
                parts.append(rank_reverse(start + queries, members, lengths, radii, names))

        run_in_threads(measure, m, max(1, CHUNK // self.n_points), n_jobs, advance)
        return (neighbors, distances), None if radii is None else assemble(parts, m)

    def _arrange(self) -> Any:
        return self.metric.arrange(self._points)


class PrecomputedSearch(BruteSearch):
    """Distances given as a matrix, dense or sparse."""

    name = "precomputed"

    @property
    def points(self) -> Any:
        """None: distances are all that is known."""
        return None

    @property
    def given(self) -> Any:
        """The distances among training points; None once saved, since nobody asks for them."""
        return self._points

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Rank the given rows."""
        if is_sparse(self._points):
            return rank_sparse(self._points, k, self.ties, self.group_of_points)
        return super().neighbors(k, n_jobs, advance)

    def query(
        self, rows: Any, k: int, radii: Any, n_jobs: int | None = None
    ) -> tuple[Lists, Reverse | None]:
        """Rank the rows of distances; what a sparse one does not store is too far."""
        if not is_sparse(rows):
            return super().query(rows, k, radii, n_jobs)
        forward = rank_sparse(rows, k, self.ties)
        if radii is None:
            return forward, None
        return forward, assemble([reverse_of_stored(rows, radii)], rows.shape[0])

    def _arrange(self) -> None:
        return None


class BallTreeSearch(BruteSearch):
    """scikit-learn's ball tree, for distances that keep the triangle inequality.

    It proposes, by arithmetic of its own, and the metric's formula decides. New points are measured
    against every training point.
    """

    name = "ball_tree"

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Let the tree propose, then order by the metric's own distances."""
        metric, points, n, search = self.metric, self._points, self.n_points, self.name
        tree = metric.candidate_tree(search, points)
        if tree is None:
            why = ", which is not known to keep the triangle inequality" * (search == "ball_tree")
            raise ValueError(
                f"search={search!r} does not serve metric {metric.name!r}{why}; use 'brute'"
            )
        neighbors, distances = np.empty((k, n), np.uint32), np.empty((k, n))
        left: list[int] = []
        groups, proposed = self.group_of_points, k + self.n_relatives
        for start in range(0, n, CHUNK // proposed):
            rows = points[start : start + CHUNK // proposed]
            # The point itself is among them, and its whole group. All that lie as far as the last
            # are wanted, since the tree breaks ties in an order of its own. Rounding in its
            # arithmetic is far below a billionth, but at distance 0.
            radius = tree.query(rows, proposed)[0][:, -1] * (1.0 + 1e-9)
            some, candidates = [], []
            for i, near in enumerate(tree.query_radius(rows, radius), start):
                others = near[groups[near] != groups[i]]
                if radius[i - start] > 0 and k <= len(others) < len(near):
                    some.append(i)
                    candidates.append(others)
                else:
                    left.append(i)
            measured = measure_candidates(self, points[some], candidates)
            neighbors[:, some], distances[:, some] = rank_sparse(measured, k, self.ties)
            if advance is not None:
                advance(len(rows))
        rest = np.array(left, dtype=np.uint32)
        nearest, _ = self.rank(points[rest], groups[rest], k, None, n_jobs)
        neighbors[:, rest], distances[:, rest] = nearest
        return neighbors, distances


class ScikitLearnKDTreeSearch(BallTreeSearch):
    """scikit-learn's KD-tree, for distances that grow with every coordinate's difference."""

    name = "kd_tree"


def measure_candidates(search: SearchIndex, rows: np.ndarray, candidates: list[Any]) -> Any:
    """Return the distances of each row to its candidates as a sparse graph, (m, n)."""
    from scipy.sparse import csr_array

    metric, points = search.metric, search.points
    assert points is not None
    measured = [
        metric.distances(rows[q : q + 1], metric.arrange(points[some]))[0]
        for q, some in enumerate(candidates)
    ]
    starts = np.append(0, np.cumsum([len(some) for some in candidates]))
    lengths, members = (np.concatenate([[], *each]) for each in (measured, candidates))
    return csr_array((lengths, members.astype(np.int64), starts), (len(rows), search.n_points))


def reverse_of_stored(graph: Any, lists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find reverse neighbours among the stored entries of a CSR matrix of distances."""
    m, n = graph.shape
    near = graph.data < lists[graph.indices, -1]
    queries = np.repeat(np.arange(m), np.diff(graph.indptr))[near]
    members = graph.indices[near].astype(np.int64)
    return rank_reverse(queries, members, graph.data[near], lists, np.arange(n, dtype=np.uint32))


def assemble(parts: list[tuple[np.ndarray, np.ndarray]], m: int) -> Reverse:
    """Bring what :func:`rank_reverse` returned into one CSR layout by query.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.search.brute import assemble
    >>> entries = np.array([(2 << 32) + 7, (1 << 32) + 5], dtype=np.uint64)
    >>> starts, points, ranks = assemble([(np.array([1, 0]), entries)], 2)
    >>> starts.tolist(), points.tolist(), ranks.tolist()
    ([0, 1, 2], [5, 7], [1, 2])
    """
    queries, entries = (np.concatenate(each) for each in zip(*parts, strict=True))
    ends = queries, entries.astype(np.int64)
    # SciPy sorts the entries of each row, an eighth of the time of a sort of all of them.
    by_query = coo_array((np.ones(len(entries), bool), ends), shape=(m, 2**62)).tocsr()
    entries = by_query.indices.astype(np.uint64)
    starts = by_query.indptr.astype(np.int64)
    return starts, entries.astype(np.uint32), (entries >> _SHIFT).astype(np.uint32)


@kernel
def rank_reverse(queries, members, distances, lists, names):
    """Enter new points into the sorted lists of training points at these distances.

    At equal distance the training point keeps its place. Returns the queries that find a place, and
    packed, the rank that they take above the name of the list's point.
    """
    k_max = np.uint64(lists.shape[1])
    entered, entries = np.empty(members.size, np.int64), np.empty(members.size, np.uint64)
    n_entered = np.uint64(0)
    for h in range(np.uint64(members.size)):
        i = np.uint64(members[h])
        low, high = np.uint64(0), k_max
        while low < high:
            middle = (low + high) >> np.uint64(1)
            if lists[i, middle] <= distances[h]:
                low = middle + np.uint64(1)
            else:
                high = middle
        rank = low + np.uint64(1)
        if rank <= k_max:
            entered[n_entered], entries[n_entered] = (
                queries[h],
                rank << _SHIFT | np.uint64(names[i]),
            )
            n_entered += np.uint64(1)
    return entered[:n_entered], entries[:n_entered]
