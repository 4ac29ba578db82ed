"""Every pair is measured, or those that a tree of scikit-learn proposes: any metric.

Reverse neighbours of a new point, the training points that would have it among their own nearest
(Section 2.3), come from the same distances. Those of any search are brought into one layout here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.checks import is_sparse
from bayesknn._utils.jit import kernel
from bayesknn._utils.threads import run_in_threads
from bayesknn.graph.metrics import Metric
from bayesknn.graph.precomputed import rank_sparse
from bayesknn.graph.search.search_index import Advance, Lists, Reverse, SearchIndex
from bayesknn.graph.ties import _NOBODY, TieOrder, _rank_rows

# A chunk of distances holds about this many, 16 MB.
CHUNK = 2**21
# An entry is a rank above this bit and the index of a training point below.
_SHIFT = np.uint64(32)


class BruteSearch(SearchIndex):
    """Measures every pair, a chunk of rows at a time."""

    name = "brute"
    keeps_points = True

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Rank every row of the matrix of distances."""
        own = np.arange(self.n_points, dtype=np.uint32)
        return self.rank(self._points, own, k, None, n_jobs, advance)[0]

    def query(
        self, rows: Any, k: int, radii: Any, n_jobs: int | None = None
    ) -> tuple[Lists, Reverse | None]:
        """Rank the distances of new points, and look for those below the lists' ends."""
        return self.rank(rows, np.full(rows.shape[0], _NOBODY), k, radii, n_jobs)

    def rank(
        self,
        rows: np.ndarray,
        own: np.ndarray,
        k: int,
        radii: Any,
        n_jobs: int | None,
        advance: Advance | None = None,
    ) -> tuple[Lists, Reverse | None]:
        """Rank the training points around some rows, each without the point that it is."""
        m, ties = rows.shape[0], self.ties
        neighbors, distances = np.empty((k, m), np.uint32), np.empty((k, m))
        arranged = self._arrange()
        chunk = max(1, CHUNK // self.n_points)
        parts: list[Any] = [None] * -(-m // chunk)

        def measure(start: int, stop: int) -> None:
            found = self.metric.distances(rows[start:stop], arranged)
            _rank_rows(found, ties, own[start:stop], start, neighbors, distances)
            if radii is not None:
                parts[start // chunk] = _reverse_in_rows(found, radii)

        run_in_threads(measure, m, chunk, n_jobs, advance)
        reverse = None if radii is None else assemble(parts, np.arange(m))
        return (neighbors, distances), reverse

    def _arrange(self) -> Any:
        return self.metric.arrange(self._points)


class PrecomputedSearch(BruteSearch):
    """Distances given as a matrix, dense or sparse."""

    name = "precomputed"
    keeps_points = False

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
            return rank_sparse(self._points, k, self.ties, is_self=True)
        return super().neighbors(k, n_jobs, advance)

    def query(
        self, rows: Any, k: int, radii: Any, n_jobs: int | None = None
    ) -> tuple[Lists, Reverse | None]:
        """Rank the rows of distances; what a sparse one does not store is too far."""
        if not is_sparse(rows):
            return super().query(rows, k, radii, n_jobs)
        forward = rank_sparse(rows, k, self.ties, is_self=False)
        if radii is None:
            return forward, None
        part = reverse_among_stored(
            rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data, radii
        )
        return forward, assemble([part], np.arange(rows.shape[0]))

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
        left = []
        for start in range(0, n, CHUNK // k):
            rows = points[start : start + CHUNK // k]
            # The point itself is one of the k + 1. All that lie as far as the last are wanted,
            # since the tree settles ties in an order of its own. Rounding in its arithmetic is far
            # below a billionth.
            radius = tree.query(rows, k + 1)[0][:, -1] * (1.0 + 1e-9)
            is_trusted = _is_trusted(metric, radius)
            for q, near in enumerate(tree.query_radius(rows, np.where(is_trusted, radius, 0.0))):
                i, candidates = start + q, near.astype(np.uint32)
                own = np.flatnonzero(candidates == i).astype(np.uint32)
                if not is_trusted[q] or len(candidates) <= k or len(own) == 0:
                    left.append(i)
                    continue
                found = metric.distances(rows[q : q + 1], metric.arrange(points[candidates]))
                some = TieOrder(self.ties.rows, self.ties.ranks[candidates])
                # As all others are: one compiled kernel serves them.
                some.ranks.flags.writeable = False
                _rank_rows(found, some, own, i, neighbors, distances)
            if advance is not None:
                advance(len(rows))
        rest = np.array(left, dtype=np.uint32)
        (neighbors[:, rest], distances[:, rest]), _ = self.rank(points[rest], rest, k, None, n_jobs)
        return neighbors, distances


class ScikitLearnKDTreeSearch(BallTreeSearch):
    """scikit-learn's KD-tree, for distances that grow with every coordinate's difference."""

    name = "kd_tree"


def _is_trusted(metric: Metric, radius: np.ndarray) -> np.ndarray:
    """Whether the tree could tell distances near these apart: no power of them under- or overflows.

    At distance 0 there is nothing to tell, but what underflows looks the same.
    """
    p = float(getattr(metric, "params", {}).get("p", 2))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        power = radius ** (max(p, 2.0) if np.isfinite(p) else 2.0)
    return (power > 1e-280) & (power < 1e280)


def assemble(
    parts: list[tuple[np.ndarray, np.ndarray]], order: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join the parts, whose queries come in ``order``, into one CSR layout by query.

    A part is the number of entries of each query and the entries, packed.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.search.brute import assemble
    >>> entries = np.array([(2 << 32) + 7, (1 << 32) + 5], dtype=np.uint64)
    >>> starts, points, ranks = assemble([(np.array([1, 1]), entries)], np.array([1, 0]))
    >>> starts.tolist(), points.tolist(), ranks.tolist()
    ([0, 1, 2], [5, 7], [1, 2])
    """
    counts = np.concatenate([part[0] for part in parts])
    entries = np.concatenate([part[1] for part in parts])
    sizes = np.empty(len(order), np.int64)
    sizes[order] = counts
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    points = np.empty(len(entries), np.uint32)
    ranks = np.empty(len(entries), np.uint32)
    _unpack(counts, entries, order.astype(np.int64), starts, points, ranks)
    return starts, points, ranks


@kernel
def _reverse_in_rows(rows, lists):
    """Find reverse neighbours from full rows of distances; ``lists`` has those of the lists."""
    m, n = rows.shape
    k_max = lists.shape[1]
    counts = np.zeros(m, np.int64)
    entries = np.empty(m * k_max, np.uint64)
    members, distances, places = np.empty(n, np.uint64), np.empty(n), np.empty(n, np.uint64)
    total = 0
    for q in range(m):
        size = 0
        for i in range(n):
            if rows[q, i] < lists[i, k_max - 1]:
                members[size], distances[size] = np.uint64(i), rows[q, i]
                size += 1
        entries = _grow(entries, total + size)
        _pack(lists, members, distances, size, places, entries[total : total + size])
        counts[q] = size
        total += size
    return counts, entries[:total].copy()


@kernel
def reverse_among_stored(starts, indices, data, lists):
    """Find reverse neighbours among the stored entries of a CSR matrix of distances."""
    m, n = starts.shape[0] - 1, lists.shape[0]
    k_max = lists.shape[1]
    counts = np.zeros(m, np.int64)
    entries = np.empty(data.shape[0], np.uint64)
    members, distances, places = np.empty(n, np.uint64), np.empty(n), np.empty(n, np.uint64)
    total = 0
    for q in range(m):
        size = 0
        for e in range(starts[q], starts[q + 1]):
            if data[e] < lists[indices[e], k_max - 1]:
                members[size], distances[size] = np.uint64(indices[e]), data[e]
                size += 1
        _pack(lists, members, distances, size, places, entries[total : total + size])
        counts[q] = size
        total += size
    return counts, entries[:total].copy()


@kernel
def _pack(lists, members, distances, size, places, entries):
    """Write the entries of one query, by rank."""
    _enter(lists, members, distances, size, places)
    for h in range(size):
        entries[h] = ((places[h] + np.uint64(1)) << _SHIFT) | members[h]
    entries.sort()


@kernel
def _enter(lists, members, distances, size, places):
    """Fill in how many of each member's sorted list come before a new point at its distance.

    Members take each step of the search together, so that none waits for another's list to come
    from memory; and there is no branch to guess wrong: the part that may hold the place is halved.
    """
    one = np.uint64(1)
    n_hits = np.uint64(size)
    for h in range(n_hits):
        places[h] = 0
    rest = np.uint64(lists.shape[1])
    while rest > one:
        half = rest >> one
        for h in range(n_hits):
            further = places[h] + half
            is_before = lists[members[h], further - one] <= distances[h]
            places[h] = further if is_before else places[h]
        rest -= half
    for h in range(n_hits):
        places[h] += np.uint64(lists[members[h], places[h]] <= distances[h])


@kernel
def _grow(entries, needed):
    if needed <= entries.shape[0]:
        return entries
    longer = np.empty(max(needed, 2 * entries.shape[0]), np.uint64)
    for e in range(entries.shape[0]):
        longer[e] = entries[e]
    return longer


@kernel
def _unpack(counts, entries, order, starts, points, ranks):
    source = 0
    for t in range(order.shape[0]):
        target = starts[order[t]]
        for e in range(counts[t]):
            points[target + e] = np.uint32(entries[source] & np.uint64(0xFFFFFFFF))
            ranks[target + e] = np.uint32(entries[source] >> _SHIFT)
            source += 1
