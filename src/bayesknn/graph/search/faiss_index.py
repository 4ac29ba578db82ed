"""Candidates by faiss (extra ``ann``), measured again by the metric's formula.

``"faiss-hnsw"`` (Malkov and Yashunin, 2020) and ``"faiss-ivf"`` (an inverted file) look at a part
of the points only. What they return is ordered by exact distances, but neighbours may be missing;
reverse neighbours of a new point are looked for among its ``n_candidates`` nearest.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bayesknn._utils.extras import require
from bayesknn.graph.metrics import is_city_block
from bayesknn.graph.precomputed import rank_sparse
from bayesknn.graph.search.brute import BruteSearch, assemble, measure_candidates, reverse_of_stored
from bayesknn.graph.search.search_index import Advance, Lists, Recall, Reverse

# Rows at a time.
_ROWS = 8192


def import_faiss(name: str) -> Any:
    """Return faiss, or say which extra brings it."""
    return require("faiss", f"search={name!r} needs", "ann")


def _threads(n_jobs: int | None) -> Any:
    """Return a context in which faiss uses as many threads."""
    from joblib import effective_n_jobs
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=effective_n_jobs(n_jobs), user_api="openmp")


class ApproximateSearch(BruteSearch):
    """An index of faiss over the points in single precision.

    Parameters, beside those of each kind:

    n_candidates : int
        Nearest points of a new one among which its reverse neighbours are looked for; 0 for four
        times k.
    """

    exact = False
    defaults: ClassVar[dict[str, int]] = {"n_candidates": 0}
    _index: Any

    def _build(self, points: np.ndarray) -> None:
        import_faiss(self.name)
        super()._build(points)
        # faiss is not asked about squares that single precision cannot hold.
        self._centre = points.mean(axis=0)
        largest = np.abs(points - self._centre).max()
        self._scale = 1.0 if largest == 0 else float(2.0 ** -np.frexp(largest)[1])
        self._index = None

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Search for every point, and judge the answer on a sample, ties counted as found."""
        neighbors, distances = super().neighbors(k, n_jobs, advance)
        # Enough points for an error of recall below .01 at any k.
        sample = self.ties.rows[:200]
        own = self.group_of_points[sample]
        near, _ = super().rank(self._points[sample], own, k, None, n_jobs)
        recalls = (distances[:, sample] <= near[1][-1]).mean(axis=0)
        error = recalls.std(ddof=1) / np.sqrt(len(recalls)) if len(recalls) > 1 else 0.0
        self.recall = Recall(float(recalls.mean()), float(error), len(recalls))
        return neighbors, distances

    def rank(
        self,
        rows: np.ndarray,
        own: np.ndarray,
        k: int,
        radii: Any,
        n_jobs: int | None,
        advance: Advance | None = None,
    ) -> tuple[Lists, Reverse | None]:
        """Rank what faiss proposes; reverse neighbours are looked for among more of the nearest."""
        index, m, n = self._open(n_jobs), len(rows), self.n_points
        # The point's own group is among those beyond k, and others show where ties end.
        asked, groups = k + 15 + self.n_relatives, self.group_of_points
        if radii is not None:
            asked = max(asked, self.params["n_candidates"] or 4 * k)
        neighbors, distances = np.empty((k, m), np.uint32), np.empty((k, m))
        parts: list[Any] = []
        left = np.zeros(m, np.bool_)
        for start in range(0, m, _ROWS):
            part = slice(start, min(start + _ROWS, m))
            with _threads(n_jobs):
                _, proposed = index.search(self._round(rows[part]), min(asked, n))
            is_there = (proposed >= 0) & (groups[proposed] != own[part, None])
            candidates = [some[here] for some, here in zip(proposed, is_there, strict=True)]
            graph = measure_candidates(self, rows[part], candidates)
            left[part] = is_there.sum(axis=1) < k
            some = np.flatnonzero(~left[part])
            near = rank_sparse(graph[some], k, self.ties)
            neighbors[:, start + some], distances[:, start + some] = near
            if radii is not None:
                queries, entries = reverse_of_stored(graph, radii)
                parts.append((start + queries, entries))
            if advance is not None:
                advance(part.stop - part.start)
        if left.any():
            # Too few lists of an inverted file were opened, so that k points were not even seen.
            near, _ = super().rank(rows[left], own[left], k, None, n_jobs)
            neighbors[:, left], distances[:, left] = near
        return (neighbors, distances), None if radii is None else assemble(parts, m)

    def _round(self, rows: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return ((rows - self._centre) * self._scale).astype(np.float32)

    def _open(self, n_jobs: int | None) -> Any:
        """Return the index of faiss, built on first use."""
        if self._index is None:
            faiss = import_faiss(self.name)
            self._index = self._fill(faiss, self._round(self._points), n_jobs)
        return self._index

    def _fill(self, faiss: Any, single: np.ndarray, n_jobs: int | None) -> Any:
        raise NotImplementedError

    def _norm(self, faiss: Any) -> int:
        return faiss.METRIC_L1 if is_city_block(self.metric) else faiss.METRIC_L2


class HNSWSearch(ApproximateSearch):
    """Hierarchical navigable small worlds: ``n_links``, ``ef_construction``, ``ef_search``.

    The graph is built by one thread: with several its links depend on who comes first.
    """

    name = "faiss-hnsw"
    defaults: ClassVar[dict[str, int]] = {
        **ApproximateSearch.defaults, "n_links": 32, "ef_construction": 80, "ef_search": 128,
    }  # fmt: skip

    def _fill(self, faiss: Any, single: np.ndarray, n_jobs: int | None) -> Any:
        index = faiss.IndexHNSWFlat(single.shape[1], self.params["n_links"], self._norm(faiss))
        index.hnsw.efConstruction = self.params["ef_construction"]
        index.hnsw.efSearch = self.params["ef_search"]
        with _threads(1):
            index.add(single)
        return index


class IVFSearch(ApproximateSearch):
    """An inverted file: ``n_lists`` cells around centroids, ``n_probes`` of them are searched.

    0 lists are about four times the square root of n.
    """

    name = "faiss-ivf"
    defaults: ClassVar[dict[str, int]] = {
        **ApproximateSearch.defaults, "n_lists": 0, "n_probes": 32,
    }  # fmt: skip

    def _fill(self, faiss: Any, single: np.ndarray, n_jobs: int | None) -> Any:
        n, p = single.shape
        n_lists = self.params["n_lists"] or int(4 * np.sqrt(n))
        # faiss warns of fewer than 39 points to a centroid.
        n_lists = max(1, min(n_lists, n // 39))
        norm = self._norm(faiss)
        centroids = faiss.IndexFlat(p, norm)
        index = faiss.IndexIVFFlat(centroids, p, n_lists, norm)
        # The index outlives the centroids' Python name only if it owns them.
        centroids.this.disown()
        index.own_fields = True
        index.nprobe = self.params["n_probes"]
        with _threads(n_jobs):
            index.train(single)
            index.add(single)
        return index
