"""Every pair is measured: any metric, and distances that the user has computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.checks import is_sparse
from bayesknn.graph.metrics import Metric
from bayesknn.graph.ordering import _NOBODY, _rank_rows
from bayesknn.graph.precomputed import rank_sparse
from bayesknn.graph.reach import Reach
from bayesknn.graph.reverse import assemble, reverse_in_rows, reverse_in_sparse
from bayesknn.graph.search.search_index import Advance, Lists, Reverse, SearchIndex
from bayesknn.graph.threads import run_in_threads
from bayesknn.graph.ties import TieOrder

# A chunk of distances holds about this many, 16 MB.
CHUNK = 2**21


class BruteSearch(SearchIndex):
    """Measures every pair, a chunk of rows at a time."""

    name = "brute"
    keeps_points = True
    _points: np.ndarray

    def _build(self, points: np.ndarray) -> None:
        self._points = points

    @property
    def points(self) -> np.ndarray:
        """The training points."""
        return self._points

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Rank every row of the matrix of distances."""
        own = np.arange(self.n_points, dtype=np.uint32)
        return self.rank(self._points, own, k, None, n_jobs, advance)[0]

    def query(
        self, rows: Any, k: int, reach: Reach | None, n_jobs: int | None = None
    ) -> tuple[Lists, Reverse | None]:
        """Rank the distances of new points, and look for those below the lists' ends."""
        return self.rank(rows, np.full(rows.shape[0], _NOBODY), k, reach, n_jobs)

    def rank(
        self,
        rows: np.ndarray,
        own: np.ndarray,
        k: int,
        reach: Reach | None,
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
            if reach is not None:
                parts[start // chunk] = reverse_in_rows(found, reach.lists)

        run_in_threads(measure, m, chunk, n_jobs, advance)
        reverse = None if reach is None else assemble(parts, np.arange(m))
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
        self, rows: Any, k: int, reach: Reach | None, n_jobs: int | None = None
    ) -> tuple[Lists, Reverse | None]:
        """Rank the rows of distances; what a sparse one does not store is out of reach."""
        if not is_sparse(rows):
            return super().query(rows, k, reach, n_jobs)
        forward = rank_sparse(rows, k, self.ties, is_self=False)
        if reach is None:
            return forward, None
        part = reverse_in_sparse(
            rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data, reach.lists
        )
        return forward, assemble([part], np.arange(rows.shape[0]))

    def _arrange(self) -> None:
        return None


def rank_some(
    metric: Metric,
    points: np.ndarray,
    ties: TieOrder,
    which: np.ndarray,
    neighbors: Any,
    ranked: Any,
) -> None:
    """Measure every pair of a few rows."""
    if len(which) == 0:
        return
    arranged = metric.arrange(points)
    chunk = max(1, CHUNK // len(points))
    for start in range(0, len(which), chunk):
        own = which[start : start + chunk]
        near = np.empty((len(neighbors), len(own)), np.uint32)
        far = np.empty(near.shape)
        _rank_rows(metric.distances(points[own], arranged), ties, own, 0, near, far)
        neighbors[:, own], ranked[:, own] = near, far
