"""The two features of a point for each class and k, from neighbour lists.

``log(1/G + U_g)``: U_g adds, over the members j of class g, ``v(d/h_i) + v(d/h_j)``, a neighbour
seen from either side as in the paper, with the tricube ``v(u) = (1 - u^3)^3`` and h the distance
to the (k+1)-th neighbour. A new point would push one of j's neighbours out, so that its h_j is
the distance to the k-th.

``-log(mean distance to the ceil(k/G) nearest of class g + epsilon)``, with epsilon a thousandth of
the median of the points' five smallest distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.checks import check_indices
from bayesknn._utils.jit import inline_kernel, kernel
from bayesknn.graph import NeighborGraph
from bayesknn.graph.metrics import make_metric
from bayesknn.graph.search import SearchIndex, build_index

_NEAREST = 5


class Neighborhoods:
    """Training points under one metric, with all that the features of any point need.

    Parameters
    ----------
    points : ndarray of shape (n, p)
    labels : ndarray of shape (n,)
    n_classes : int
    k_values : ndarray of int
        Rising.
    norm : {"euclidean", "manhattan"}
    weights : ndarray of shape (n,)
        How many votes a row has.
    n_jobs : int, optional
        Threads. No result depends on it.
    search : dict, optional
        ``search`` and ``search_params`` of :meth:`bayesknn.graph.NeighborGraph.from_points`.
    """

    def __init__(
        self,
        points: np.ndarray,
        labels: np.ndarray,
        n_classes: int,
        k_values: np.ndarray,
        norm: str,
        weights: np.ndarray,
        n_jobs: int | None = None,
        search: dict | None = None,
    ):
        n = len(points)
        search = search or {}
        self.n_classes = n_classes
        self.norm = norm
        self.labels = labels.astype(np.uint32)
        self.weights = weights
        self.points = np.ascontiguousarray(points)
        k_max = min(int(k_values[-1]) + 1, n - 1)
        self.graph = NeighborGraph.from_points(points, k_max, norm, n_jobs=n_jobs, **search)
        # A list of k + 1 is needed, and has at most n - 1.
        self.k_values = np.minimum(k_values, self.graph.k_max - 1)
        assert self.graph.distances is not None
        few = self.graph.distances[:_NEAREST]
        positive = few[few > 0]
        self.epsilon = 1e-3 * float(np.median(positive)) if len(positive) else 1.0
        wanted = max(-(-int(self.k_values[-1]) // n_classes), 1)
        self.search = search
        self.classes = self._index_classes()
        # All but one of a small class, so that it does not look poorer to its own members.
        sizes = np.bincount(labels, minlength=n_classes)
        self.reach = np.clip(sizes - 1, 1, wanted).tolist()

    def _index_classes(self) -> list[SearchIndex]:
        return [
            build_index(self.points[self.labels == g], make_metric(self.norm), **self.search)
            for g in range(self.n_classes)
        ]

    def __getstate__(self) -> dict[str, Any]:
        # The graph has the points, and where no index is approximate they give the classes'.
        state = {name: part for name, part in vars(self).items() if name != "points"}
        if all(each.exact for each in self.classes):
            del state["classes"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        index = self.graph.index
        assert index is not None
        assert index.points is not None
        self.points = index.points
        self._check()
        if "classes" not in state:
            self.classes = self._index_classes()

    def _check(self) -> None:
        """Refuse numbers that kernels would take for places outside their arrays."""
        check_indices(self.labels, "labels", self.n_classes - 1)
        check_indices(self.k_values, "k_values", self.graph.k_max - 1, 1)
        sizes = [int(np.count_nonzero(self.labels == g)) for g in range(len(self.reach))]
        for reach, size in zip(self.reach, sizes, strict=True):
            check_indices(reach, "reach", max(size - 1, 1), 1)
        n = self.graph.n_points
        if not (len(self.labels) == len(self.weights) == n and len(self.reach) == self.n_classes):
            raise ValueError("the saved model was changed: it has not a label for each point")

    def training_features(self, n_jobs: int | None = None) -> np.ndarray:
        """Features of the training points, each left out of its own.

        Returns
        -------
        ndarray of shape (n_k, n, n_classes, 2)
        """
        n = len(self.labels)
        found = np.zeros((len(self.k_values), n, self.n_classes, 2))
        graph = self.graph
        _vote_training(
            graph.neighbors, graph.distances, self.labels, self.weights, self.k_values,
            found[..., 0],
        )  # fmt: skip
        for g, reach in enumerate(self.reach):
            # A member of the class is its own nearest, which is left out.
            nearest = self._nearest(g, self.points, n_jobs, reach + 1)
            nearest = np.where(self.labels == g, nearest[1:], nearest[:-1])
            self._average(nearest, found[:, :, g, 1])
        return self._take_logs(found)

    def new_features(self, rows: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Features of new points.

        Returns
        -------
        ndarray of shape (n_k, m, n_classes, 2)
        """
        rows = np.ascontiguousarray(rows)
        found = np.zeros((len(self.k_values), len(rows), self.n_classes, 2))
        for part, query in self.graph.query_chunks(rows, n_jobs=n_jobs):
            _vote_new(
                query.neighbors, query.distances,
                query.reverse_starts, query.reverse_points, query.reverse_ranks,
                self.graph.distances, self.labels, self.weights, self.points, rows[part],
                self.norm == "manhattan", self.k_values, found[:, part, :, 0],
            )  # fmt: skip
        for g in range(self.n_classes):
            self._average(self._nearest(g, rows, n_jobs, self.reach[g]), found[:, :, g, 1])
        return self._take_logs(found)

    def distances(self, rows: np.ndarray, k: int, n_jobs: int | None = None) -> np.ndarray:
        """Distances of new points to their k-th neighbours."""
        parts = self.graph.query_chunks(rows, n_jobs=n_jobs, direction="forward")
        return np.concatenate([query.distances[k - 1] for _, query in parts])

    def _nearest(self, g: int, rows: np.ndarray, n_jobs: int | None, k: int) -> np.ndarray:
        """Distances to the k nearest of class g, (k, m)."""
        (_, distances), _ = self.classes[g].query(rows, k, None, n_jobs)
        return distances

    def _average(self, nearest: np.ndarray, found: np.ndarray) -> None:
        sums = np.cumsum(nearest, axis=0)
        for t, k in enumerate(self.k_values):
            count = min(max(-(-int(k) // self.n_classes), 1), len(nearest))
            found[t] = sums[count - 1] / count

    def _take_logs(self, found: np.ndarray) -> np.ndarray:
        found[..., 0] = np.log(1 / self.n_classes + found[..., 0])
        found[..., 1] = -np.log(found[..., 1] + self.epsilon)
        return found


@inline_kernel
def _tricube(u):
    rest = 1.0 - u * u * u
    return rest * rest * rest


@kernel
def _vote_training(neighbors, distances, labels, weights, k_values, votes):
    """Add each pair's weight to both: forward to one, reverse to the other."""
    n = neighbors.shape[1]
    for t in range(k_values.shape[0]):
        k = np.uint64(k_values[t])
        for i in range(np.uint64(n)):
            h = distances[k, i]
            for r in range(k):
                if distances[r, i] < h:
                    j = neighbors[r, i]
                    v = _tricube(distances[r, i] / h)
                    votes[t, i, labels[j]] += v * weights[j]
                    votes[t, j, labels[i]] += v * weights[i]


@kernel
def _vote_new(
    neighbors, distances, starts, reverse_points, reverse_ranks,
    training_distances, labels, weights, points, rows, is_manhattan, k_values, votes,
):  # fmt: skip
    for q in range(np.uint64(rows.shape[0])):
        for t in range(k_values.shape[0]):
            k = np.uint64(k_values[t])
            h = distances[k, q]
            for r in range(k):
                if distances[r, q] < h:
                    j = neighbors[r, q]
                    votes[t, q, labels[j]] += weights[j] * _tricube(distances[r, q] / h)
        for e in range(starts[q], starts[q + np.uint64(1)]):
            j = reverse_points[e]
            d = 0.0
            for f in range(np.uint64(rows.shape[1])):
                gap = rows[q, f] - points[j, f]
                d += abs(gap) if is_manhattan else gap * gap
            if not is_manhattan:
                d = np.sqrt(d)
            for t in range(k_values.shape[0]):
                k = k_values[t]
                if reverse_ranks[e] <= k:
                    h = training_distances[np.uint64(k - 1), j]
                    if d < h:
                        votes[t, q, labels[j]] += weights[j] * _tricube(d / h)
