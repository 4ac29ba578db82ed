"""The two features of a point for each class and k, from neighbour lists.

``log(1/G + U_g)``: U_g adds, over the members j of class g, ``v(d/h_i) + v(d/h_j)``, a neighbour
seen from either side as in the paper, with the tricube ``v(u) = (1 - u^3)^3`` and h the distance
to the (k+1)-th neighbour. A new point would push one of j's neighbours out, so that its h_j is
the distance to the k-th: j's list in the folds without it, k smaller by as much, says how far that
is, so that no point is searched for twice. j is looked for in the point's own longest list, which
holds nearly all whose h_j reaches the point at smaller k.

``-log(mean distance to the ceil(k/G) nearest of class g + epsilon)``, with epsilon a thousandth of
the median of the points' five smallest distances.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import inline_kernel, kernel
from bayesknn.graph.metrics import make_metric
from bayesknn.graph.search import SearchIndex, build_index
from bayesknn.pooled.columns import Sample, Settings

# Neighbours of new points that are held at a time, 25 MB: few rows at a time search slower, and
# many leave the processor's cache.
_CHUNK = 2**21


class SearchedPoints:
    """Training points that are searched all together, and class by class where that is needed.

    Parameters
    ----------
    points : ndarray of shape (n, p)
    labels : ndarray of shape (n,)
        Class indices.
    n_classes : int
    norm : {"euclidean", "manhattan"}
    search : str
        Name of the search, as :func:`bayesknn.graph.search.build_index` takes it.
    """

    def __init__(
        self,
        points: np.ndarray,
        labels: np.ndarray,
        n_classes: int,
        norm: str,
        search: str,
    ):
        self.norm, self.search, self.n_classes = norm, search, n_classes
        self.labels = labels.astype(np.uint32)
        self.index = self._build_index(points)

    @cached_property
    def classes(self) -> list[SearchIndex]:
        """The points of each class."""
        points = np.asarray(self.index.points)
        return [self._build_index(points[self.labels == g]) for g in range(self.n_classes)]

    def __getstate__(self) -> dict[str, Any]:
        # A file holds each point once.
        return {name: value for name, value in vars(self).items() if name != "classes"}

    def find_nearest(
        self, rows: np.ndarray, k_values: np.ndarray, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the nearest points to new ones, their distances, and mean distances to classes.

        The list of all classes gives most of the means. Where a class has too few points in it,
        that class is searched.

        Returns
        -------
        near, far : ndarray of shape (m, max(k_values) + 1)
        means : ndarray of shape (n_k, m, n_classes)
            To the ceil(k / n_classes) nearest of each class.
        """
        (points, distances), _ = self.index.query(rows, int(k_values[-1]) + 1, None, n_jobs)
        near, far = np.ascontiguousarray(points.T), np.ascontiguousarray(distances.T)
        # All but one of a small class, so that it does not look poorer to its own members.
        most = np.maximum(np.bincount(self.labels, minlength=self.n_classes) - 1, 1)
        counts = np.minimum(-(-k_values[:, None] // self.n_classes), most)
        means = np.full((len(k_values), len(rows), self.n_classes), np.nan)
        _average(near, far, self.labels, counts, means)
        for g, size in enumerate(counts[-1].tolist()):
            few = np.flatnonzero(np.isnan(means[-1, :, g]))
            if len(few):
                some = np.ascontiguousarray(rows[few])
                (_, distances), _ = self.classes[g].query(some, size, None, n_jobs)
                sums = np.cumsum(distances, axis=0)[counts[:, g] - 1]
                means[:, few, g] = sums / counts[:, [g]]
        return near, far, means

    def _build_index(self, points: np.ndarray) -> SearchIndex:
        return build_index(points, make_metric(self.norm), self.search)


class Reach(NamedTuple):
    """What new points need to know of the training points' own lists.

    Attributes
    ----------
    distances : ndarray of shape (n, n_k)
        How far their lists of k go, in the folds without the point.
    epsilon : float
        What is added to distances before their logs.
    """

    distances: np.ndarray
    epsilon: float


class Neighborhoods:
    """Training points under one metric, with all that the features of new points need.

    Parameters
    ----------
    points : ndarray of shape (n, p)
    sample : Sample
        Their labels and weights.
    norm : {"euclidean", "manhattan"}
    settings : Settings
    reach : Reach
    """

    def __init__(
        self, points: np.ndarray, sample: Sample, norm: str, settings: Settings, reach: Reach
    ):
        self.searched = SearchedPoints(
            points, sample.labels, sample.n_classes, norm, settings.search
        )
        self.weights = sample.weights
        self.reach, self.epsilon = reach
        # A list of k + 1 is needed, and has at most n - 1.
        self.k_values = np.minimum(settings.k_values, len(points) - 2)

    @property
    def labels(self) -> np.ndarray:
        """The class indices of the training points, (n,)."""
        return self.searched.labels

    @property
    def points(self) -> np.ndarray:
        """The training points, (n, p)."""
        return np.asarray(self.searched.index.points)

    def new_features(
        self, rows: np.ndarray, n_jobs: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Features of new points.

        Returns
        -------
        features : ndarray of shape (n_k, m, n_classes, 2)
        reach : ndarray of shape (m, n_k)
            Distances to the k-th neighbours.
        """
        reach = np.empty((len(rows), len(self.k_values)))
        features = np.zeros((len(self.k_values), len(rows), self.searched.n_classes, 2))
        for part, near, far, means in self.search(rows, n_jobs):
            votes = features[:, part, :, 0]
            features[:, part, :, 1] = means
            reach[part] = far[:, self.k_values - 1]
            _vote(near, far, self.reach, self.labels, self.weights, self.k_values, votes)
        return _take_logs(features, self.epsilon), reach

    def search(
        self, rows: np.ndarray, n_jobs: int | None = None
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield some of the new points at a time, as ``SearchedPoints.find_nearest`` finds them."""
        step = max(_CHUNK // (int(self.k_values[-1]) + 1), 1)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            some = np.ascontiguousarray(rows[part])
            yield part, *self.searched.find_nearest(some, self.k_values, n_jobs)


def leave_out(
    points: list[np.ndarray], sample: Sample, norm: str, settings: Settings, folds: np.ndarray
) -> tuple[np.ndarray, Reach]:
    """Features of the training points, each by the rows outside its own fold.

    A point's list holds its nearest in the other folds, by the coordinates that were learned
    without its own fold. How far the list of one of them reaches, h_j, is known from when j itself
    was left out, so that no fold needs lists of all the others.

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
    features : ndarray of shape (n_k, n, n_classes, 2)
    reach : Reach
    """
    n, n_known = len(folds), len(folds) - int(np.bincount(folds).max())
    k_values = np.round(settings.k_values * (n_known / n)).astype(np.int64)
    k_values = np.clip(k_values, 1, n_known - 1)
    labels, n_classes = sample.labels.astype(np.uint32), sample.n_classes
    k_max = int(k_values[-1]) + 1
    neighbors = np.empty((n, k_max), np.uint32)
    distances = np.empty(neighbors.shape)
    features = np.zeros((len(k_values), n, n_classes, 2))
    for fold, places in enumerate(points):
        in_fold = folds == fold
        known = np.flatnonzero(sample.know_without(in_fold))
        searched = SearchedPoints(places[known], labels[known], n_classes, norm, settings.search)
        rows = np.ascontiguousarray(places[in_fold])
        near, distances[in_fold], features[..., 1][:, in_fold] = searched.find_nearest(
            rows, k_values, settings.n_jobs
        )
        neighbors[in_fold] = known[near]
    listed = np.ascontiguousarray(distances[:, k_values])
    _vote(neighbors, distances, listed, labels, sample.weights, k_values, features[..., 0])
    few = distances[:, :5]
    epsilon = 1e-3 * float(np.median(few[few > 0])) if few.any() else 1.0
    reach = Reach(np.ascontiguousarray(distances[:, k_values - 1]), epsilon)
    return _take_logs(features, reach.epsilon), reach


def _take_logs(features: np.ndarray, epsilon: float) -> np.ndarray:
    features[..., 0] = np.log(1 / features.shape[2] + features[..., 0])
    features[..., 1] = -np.log(features[..., 1] + epsilon)
    return features


@inline_kernel
def tricube(u):
    """Return the weight of a neighbour whose distance is u times the list's reach."""
    rest = 1.0 - u * u * u
    return rest * rest * rest


@kernel
def _average(near, far, labels, counts, means):
    """Write mean distances to the ``counts[t, g]`` nearest of each class, where so many are listed.

    ``counts`` (n_k, n_classes) does not fall with t. What a list is too short for is not written.
    """
    n_k, n_classes = counts.shape
    sizes, sums, at = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes, np.int64)
    for q in range(near.shape[0]):
        for g in range(n_classes):
            sizes[g], sums[g], at[g] = 0.0, 0.0, 0
        for r in range(near.shape[1]):
            g = labels[near[q, r]]
            sizes[g] += 1.0
            sums[g] += far[q, r]
            while at[g] < n_k and counts[at[g], g] == sizes[g]:
                means[at[g], q, g] = sums[g] / sizes[g]
                at[g] += 1


@kernel
def _vote(neighbors, distances, reach, labels, weights, k_values, votes):
    """Add the votes of the neighbours in each point's list, (m, k), seen from either side.

    ``reach`` (n, n_k) is how far the lists of the training points go at each k.
    """
    last = k_values.shape[0] - 1
    for q in range(np.uint64(neighbors.shape[0])):
        for t in range(last + 1):
            k = np.uint64(k_values[t])
            h = distances[q, k]
            for r in range(k):
                if distances[q, r] < h:
                    j = neighbors[q, r]
                    votes[t, q, labels[j]] += weights[j] * tricube(distances[q, r] / h)
        for r in range(np.uint64(neighbors.shape[1])):
            j = neighbors[q, r]
            d = distances[q, r]
            for t in range(last, -1, -1):
                h = reach[j, np.uint64(t)]
                if d >= h:
                    break
                votes[t, q, labels[j]] += weights[j] * tricube(d / h)
