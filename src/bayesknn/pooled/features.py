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
from bayesknn.pooled.columns import Sample, Settings


class Neighborhoods:
    """Training points under one metric, with all that the features of new points need.

    Parameters
    ----------
    points : ndarray of shape (n, p)
    sample : Sample
        Their labels and weights.
    norm : {"euclidean", "manhattan"}
    settings : Settings
    """

    def __init__(self, points: np.ndarray, sample: Sample, norm: str, settings: Settings):
        k_values, n_jobs, self.search = settings.k_values, settings.n_jobs, settings.search
        self.n_classes = sample.n_classes
        self.norm = norm
        self.labels = sample.labels.astype(np.uint32)
        self.weights = sample.weights
        self.points = np.ascontiguousarray(points)
        k_max = min(int(k_values[-1]) + 1, len(points) - 1)
        self.graph = NeighborGraph.from_points(points, k_max, norm, n_jobs=n_jobs, **self.search)
        # A list of k + 1 is needed, and has at most n - 1.
        self.k_values = np.minimum(k_values, self.graph.k_max - 1)
        assert self.graph.distances is not None
        self.epsilon = _find_epsilon(self.graph.distances.T)
        self.classes = _index_classes(self.points, self.labels, self.n_classes, norm, self.search)

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
        # Refuse numbers that kernels would take for places outside their arrays.
        check_indices(self.labels, "labels", self.n_classes - 1)
        check_indices(self.k_values, "k_values", self.graph.k_max - 1, 1)
        n_found = len(np.unique(self.labels))
        if not (len(self.labels) == len(self.weights) == len(self.points)) or (
            n_found != self.n_classes
        ):
            raise ValueError("the saved model was changed: it has not a label for each point")
        if "classes" not in state:
            self.classes = _index_classes(
                self.points, self.labels, self.n_classes, self.norm, self.search
            )

    def new_features(self, rows: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Features of new points.

        Returns
        -------
        ndarray of shape (n_k, m, n_classes, 2)
        """
        rows = np.ascontiguousarray(rows)
        found = np.zeros((len(self.k_values), len(rows), self.n_classes, 2))
        for part, query in self.graph.query_chunks(rows, n_jobs=n_jobs):
            votes = found[:, part, :, 0]
            near, far = query.neighbors.T.copy(), query.distances.T.copy()
            _vote(near, far, self.labels, self.weights, self.k_values, votes)
            _vote_back(
                query.reverse_starts, query.reverse_points, query.reverse_ranks,
                self.graph.distances, self.labels, self.weights, self.points, rows[part],
                self.norm == "manhattan", self.k_values, votes,
            )  # fmt: skip
        found[..., 1] = _measure_classes(self.classes, rows, self.k_values, n_jobs)
        return _take_logs(found, self.epsilon)

    def distances(self, rows: np.ndarray, k: int, n_jobs: int | None = None) -> np.ndarray:
        """Distances of new points to their k-th neighbours."""
        parts = self.graph.query_chunks(rows, n_jobs=n_jobs, direction="forward")
        return np.concatenate([query.distances[k - 1] for _, query in parts])


def left_out_features(
    points: list[np.ndarray], sample: Sample, norm: str, settings: Settings, folds: np.ndarray
) -> np.ndarray:
    """Features of the training points, each by the rows outside its own fold.

    A point's list holds its nearest in the other folds, by the coordinates that were learned
    without its own fold. These also measure how near it is to those that have it in their lists;
    how far their lists reach, h_j, is known from when j itself was left out, so that no fold needs
    lists of all the others.

    Parameters
    ----------
    points : list of ndarray of shape (n, p)
        All rows in the coordinates that were learned without each fold.
    sample, norm, settings
        As in :class:`Neighborhoods`; k shrinks with the number of points.
    folds : ndarray of shape (n,)
        Numbers of the folds, as in ``points``.

    Returns
    -------
    ndarray of shape (n_k, n, n_classes, 2)
    """
    n, n_known = len(folds), len(folds) - int(np.bincount(folds).max())
    k_values = np.round(settings.k_values * (n_known / n)).astype(np.int64)
    k_values = np.clip(k_values, 1, n_known - 1)
    labels, n_classes = sample.labels.astype(np.uint32), sample.n_classes
    k_max = int(k_values[-1]) + 1
    neighbors = np.empty((n, k_max), np.uint32)
    distances = np.empty(neighbors.shape)
    found = np.zeros((len(k_values), n, n_classes, 2))
    for fold, places in enumerate(points):
        own = folds == fold
        known = np.flatnonzero(~own)
        rows, others = places[own], places[known]
        index = build_index(others, make_metric(norm), **settings.search)
        (near, far), _ = index.query(rows, k_max, None, settings.n_jobs)
        neighbors[own], distances[own] = known[near.T], far.T
        classes = _index_classes(others, labels[known], n_classes, norm, settings.search)
        found[..., 1][:, own] = _measure_classes(classes, rows, k_values, settings.n_jobs)
    votes = found[..., 0]
    _vote(neighbors, distances, labels, sample.weights, k_values, votes)
    for fold, places in enumerate(points):
        _vote_back_left_out(
            neighbors, distances, labels, sample.weights, np.ascontiguousarray(places), folds, fold,
            norm == "manhattan", k_values, votes,
        )  # fmt: skip
    return _take_logs(found, _find_epsilon(distances))


def _find_epsilon(distances: np.ndarray) -> float:
    few = distances[:, :5]
    positive = few[few > 0]
    return 1e-3 * float(np.median(positive)) if len(positive) else 1.0


def _index_classes(
    points: np.ndarray, labels: np.ndarray, n_classes: int, norm: str, search: dict[str, Any]
) -> list[SearchIndex]:
    return [build_index(points[labels == g], make_metric(norm), **search) for g in range(n_classes)]


def _measure_classes(
    classes: list[SearchIndex], rows: np.ndarray, k_values: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """Return mean distances (n_k, m, n_classes) to the nearest of each class."""
    counts = -(-k_values // len(classes))
    found = np.empty((len(k_values), len(rows), len(classes)))
    for g, index in enumerate(classes):
        # All but one of a small class, so that it does not look poorer to its own members.
        reach = min(max(index.n_points - 1, 1), int(counts[-1]))
        (_, distances), _ = index.query(np.ascontiguousarray(rows), reach, None, n_jobs)
        sums = np.cumsum(distances, axis=0)
        taken = np.minimum(counts, reach)
        found[:, :, g] = sums[taken - 1] / taken[:, None]
    return found


def _take_logs(found: np.ndarray, epsilon: float) -> np.ndarray:
    found[..., 0] = np.log(1 / found.shape[2] + found[..., 0])
    found[..., 1] = -np.log(found[..., 1] + epsilon)
    return found


@inline_kernel
def tricube(u):
    """Return the weight of a neighbour whose distance is u times the list's reach."""
    rest = 1.0 - u * u * u
    return rest * rest * rest


@inline_kernel
def _measure(a, b, is_manhattan):
    d = 0.0
    for f in range(np.uint64(a.shape[0])):
        gap = a[f] - b[f]
        d += abs(gap) if is_manhattan else gap * gap
    return d if is_manhattan else np.sqrt(d)


@kernel
def _vote(neighbors, distances, labels, weights, k_values, votes):
    """Add the votes of the neighbours in each point's list, (m, k)."""
    for q in range(np.uint64(neighbors.shape[0])):
        for t in range(k_values.shape[0]):
            k = np.uint64(k_values[t])
            h = distances[q, k]
            for r in range(k):
                if distances[q, r] < h:
                    j = neighbors[q, r]
                    votes[t, q, labels[j]] += weights[j] * tricube(distances[q, r] / h)


@kernel
def _vote_back(
    starts, reverse_points, reverse_ranks, training_distances, labels, weights, points, rows,
    is_manhattan, k_values, votes,
):  # fmt: skip
    """Add the votes of the training points that would have a new point in their lists."""
    for q in range(np.uint64(rows.shape[0])):
        for e in range(starts[q], starts[q + np.uint64(1)]):
            j = reverse_points[e]
            d = _measure(rows[q], points[j], is_manhattan)
            for t in range(k_values.shape[0]):
                k = k_values[t]
                if reverse_ranks[e] <= k:
                    h = training_distances[np.uint64(k - 1), j]
                    if d < h:
                        votes[t, q, labels[j]] += weights[j] * tricube(d / h)


@kernel
def _vote_back_left_out(
    neighbors, distances, labels, weights, points, folds, fold, is_manhattan, k_values, votes
):
    """Add the votes of the training points that have a point of this fold in their lists."""
    last = k_values.shape[0] - 1
    for j in range(np.uint64(neighbors.shape[0])):
        if folds[j] == fold:
            continue
        for r in range(np.uint64(neighbors.shape[1])):
            i = neighbors[j, r]
            if folds[i] != fold:
                continue
            d = _measure(points[i], points[j], is_manhattan)
            for t in range(last, -1, -1):
                h = distances[j, np.uint64(k_values[t])]
                if d >= h:
                    break
                votes[t, i, labels[j]] += weights[j] * tricube(d / h)
