"""Distances between points (the 'distance' of the paper's Section 1.1), one class per family.

Every metric has the same shape. ``fit`` takes the training points, keeps what it must know of
them and returns them as numbers; ``transform`` does the same to new points; ``distances`` is the
one place where a distance is computed, pair by pair in a fixed order of operations, so that its
bits do not depend on which other points it is computed along with.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bayesknn._utils.checks import check_n_features, check_names, check_points, column_names, show
from bayesknn._utils.jit import kernel

# scikit-learn's ball tree also takes distances that break the triangle inequality (Bray-Curtis,
# Dice, functions of any kind) and then misses neighbours.
_TRIANGULAR = frozenset(
    "euclidean l2 manhattan cityblock l1 chebyshev infinity seuclidean canberra hamming jaccard "
    "haversine".split()
)


class Metric:
    """What every metric has in common; also the default, plain numbers in plain columns.

    Attributes
    ----------
    name : str
        As users write it.
    is_euclidean : bool
        Whether ``distances`` is Euclidean on what ``fit`` and ``transform`` return.
    n_features_ : int
    feature_names_ : list of str or None
        Columns of the training points; queries must have the same.
    """

    name = ""
    is_euclidean = False
    n_features_: int
    feature_names_: list[str] | None = None
    # What is fitted with an entry for each feature.
    _by_feature: tuple[str, ...] = ()

    def fit(self, X: Any) -> np.ndarray:
        """Learn from the training points and return them as numbers."""
        points = check_points(X)
        self.n_features_ = points.shape[1]
        self.feature_names_ = column_names(X)
        return points

    def transform(self, X: Any) -> np.ndarray:
        """Return new points as numbers, or say what they lack."""
        check_names(X, self.feature_names_, "NeighborGraph")
        points = check_points(X)
        check_n_features(points.shape[1], self.n_features_, "NeighborGraph")
        return points

    def arrange(self, points: np.ndarray) -> Any:
        """Bring training points into the layout that ``distances`` reads fastest."""
        return points

    def distances(self, rows: np.ndarray, arranged: Any) -> np.ndarray:
        """Distances of shape (m, n) from new rows to arranged training points."""
        raise NotImplementedError

    def candidate_tree(self, kind: str, points: np.ndarray) -> Any:
        """Return a scikit-learn tree over the points, or None where the metric has none."""
        return None

    def decode(self, numbers: np.ndarray) -> list:
        """Return a row that ``transform`` takes, from the numbers of a point."""
        return numbers.tolist()

    def check_saved(self, points: Any, n_points: int) -> None:
        """Refuse a fitted metric and points, read from a file, that do not fit each other."""
        shape, p = (n_points, self._n_numbers()), self.n_features_
        is_table = isinstance(points, np.ndarray) and points.dtype == np.float64
        if not is_table or points.shape != shape or not np.isfinite(points).all():
            raise ValueError(f"the saved points are not {shape[0]} rows of {shape[1]} numbers")
        for name in self._by_feature:
            if len(getattr(self, name)) != p:
                raise ValueError(f"the saved metric {self.name!r} needs {p} entries in {name}")

    def _n_numbers(self) -> int:
        """Return how many numbers a point becomes."""
        return self.n_features_

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Euclidean(Metric):
    """Square root of the sum, in the order of the features, of squared differences.

    Examples
    --------
    >>> from bayesknn.graph.metrics import Euclidean
    >>> metric = Euclidean()
    >>> points = metric.fit([[0.0, 0.0], [3.0, 4.0]])
    >>> metric.distances(points[:1], metric.arrange(points))
    array([[0., 5.]])
    """

    name = "euclidean"
    is_euclidean = True

    def arrange(self, points: np.ndarray) -> np.ndarray:
        """Feature by feature."""
        return np.ascontiguousarray(points.T)

    def distances(self, rows: np.ndarray, arranged: np.ndarray) -> np.ndarray:
        """Distances of shape (m, n) from new rows to arranged training points."""
        return _euclidean(rows, arranged)

    def candidate_tree(self, kind: str, points: np.ndarray) -> Any:
        """Return a scikit-learn ball tree over the points; the KD-tree is the package's own."""
        from sklearn.neighbors import BallTree

        return BallTree(points)


class ScikitLearnMetric(Metric):
    """Any metric that scikit-learn knows by name, or a Python function of two rows.

    Parameters
    ----------
    metric : str or callable
        A callable takes two 1-D arrays and returns a number.
    **params
        Passed to the metric.

    Examples
    --------
    >>> from bayesknn.graph.metrics import ScikitLearnMetric
    >>> metric = ScikitLearnMetric("manhattan")
    >>> points = metric.fit([[0.0, 0.0], [3.0, 4.0]])
    >>> metric.distances(points[:1], metric.arrange(points))
    array([[0., 7.]])
    """

    def __init__(self, metric: str | Callable, **params: Any):
        self.metric = metric
        self.params = params
        self.name = metric if isinstance(metric, str) else getattr(metric, "__name__", "callable")

    def fit(self, X: Any) -> np.ndarray:
        """Check the points and that the metric accepts its parameters."""
        points = super().fit(X)
        if self.metric == "seuclidean" and "V" not in self.params:
            # Fixed here, so that queries are measured by the training points' variances.
            self.params = {"V": points.var(axis=0, ddof=1)}
        try:
            self.distances(points[:1], points[:1])
        except (TypeError, ValueError) as error:
            if callable(self.metric):
                if self.params and isinstance(error, TypeError):
                    words = f"metric {self.name!r} does not take metric_params: {error}"
                    raise TypeError(words) from error
                raise
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"metric {self.name!r} does not work on this data: {reason}") from None
        return points

    def distances(self, rows: np.ndarray, arranged: np.ndarray) -> np.ndarray:
        """Distances of shape (m, n) from new rows to training points."""
        if callable(self.metric):
            found = np.array(
                [[float(self.metric(a, b, **self.params)) for b in arranged] for a in rows]
            ).reshape(len(rows), len(arranged))
        elif self.metric in _names("ball_tree"):
            found = self._compiled().pairwise(rows, arranged)
        else:
            from scipy.spatial.distance import cdist

            # Rounding can take these a hair below zero for parallel rows.
            found = np.maximum(cdist(rows, arranged, self.metric, **self.params), 0.0)
        if not (found >= 0).all():
            a, b = np.argwhere(~(found >= 0))[0]
            raise ValueError(
                f"metric {self.name!r} gives {found[a, b]} between the points "
                f"{rows[a].tolist()} and {arranged[b].tolist()}; distances must be >= 0"
            )
        return found

    def _compiled(self) -> Any:
        from sklearn.metrics import DistanceMetric

        return DistanceMetric.get_metric(self.metric, **self.params)

    def candidate_tree(self, kind: str, points: np.ndarray) -> Any:
        """Return a scikit-learn tree over the points, or None where the metric has none."""
        from sklearn import neighbors

        if kind == "kd_tree":
            known = self.metric in _names("kd_tree")
            return neighbors.KDTree(points, metric=self._compiled()) if known else None
        known = self._is_triangular() and self.metric in _names("ball_tree")
        return neighbors.BallTree(points, metric=self._compiled()) if known else None

    def _is_triangular(self) -> bool:
        """Whether the triangle inequality is known to hold, by which a ball tree skips."""
        if self.metric in ("minkowski", "p"):
            return self.params.get("p", 2) >= 1
        return self.metric in _TRIANGULAR

    def __repr__(self) -> str:
        return f"ScikitLearnMetric({self.metric!r})"


def make_metric(metric: str | Callable | Metric, metric_params: dict | None = None) -> Metric:
    """Turn what users pass as ``metric`` into a :class:`Metric` that is not yet fitted.

    Parameters
    ----------
    metric : str or callable
        ``"euclidean"``, ``"mahalanobis"``, ``"gower"``, ``"precomputed"``, any metric name of
        scikit-learn, or a function of two rows.
    metric_params : dict, optional
        Parameters of the metric, as in scikit-learn.

    Examples
    --------
    >>> from bayesknn.graph.metrics import make_metric
    >>> make_metric("minkowski", {"p": 1})
    ScikitLearnMetric('minkowski')
    >>> make_metric("euclidian")
    Traceback (most recent call last):
    ...
    ValueError: unknown metric 'euclidian'; known are braycurtis, canberra, chebyshev, ...
    """
    from bayesknn.graph.gower import Gower
    from bayesknn.graph.mahalanobis import Mahalanobis
    from bayesknn.graph.precomputed import Precomputed

    if not isinstance(metric_params, dict | None):
        raise ValueError(f"metric_params must be a dict or None, got {show(metric_params)}")
    params = dict(metric_params or {})
    if isinstance(metric, Metric):
        if params:
            raise ValueError(f"metric_params does not go with {metric!r}, which has its own")
        return copy.copy(metric)  # Fitting the caller's own would change graphs that hold it.
    if callable(metric):
        return ScikitLearnMetric(metric, **params)
    if metric == "minkowski" and (unknown := sorted(map(str, set(params) - {"p", "w"}))):
        raise ValueError(f"metric 'minkowski' does not take the parameter {unknown[0]!r}")
    # scikit-learn's default is called minkowski with p = 2.
    if metric == "minkowski" and params.get("w") is None and params.get("p", 2) == 2:
        return Euclidean()
    own: dict[str, Callable[..., Metric]] = {
        "euclidean": Euclidean,
        "l2": Euclidean,
        "mahalanobis": Mahalanobis,
        "gower": Gower,
        "precomputed": Precomputed,
    }
    if isinstance(metric, str) and metric in own:
        try:
            return own[metric](**params)
        except TypeError:
            raise ValueError(
                f"metric {metric!r} does not take all of metric_params, {sorted(params)}"
            ) from None
    # scikit-learn is slow to import and asked only where its names are meant.
    known = {*own, *_names("brute"), *_names("ball_tree")}
    if not isinstance(metric, str) or metric not in known:
        raise ValueError(
            f"unknown metric {metric!r}; known are {', '.join(sorted(known))}, or pass a callable"
        )
    return ScikitLearnMetric(metric, **params)


@cache
def _names(algorithm: str) -> frozenset[str]:
    from sklearn.neighbors import VALID_METRICS

    # Missing values are refused, and these names stand for something else here.
    other = {"nan_euclidean", "precomputed", "pyfunc", "mahalanobis"}
    return frozenset(VALID_METRICS[algorithm]) - other


@kernel
def _euclidean(rows, columns):
    m, p = rows.shape
    n = columns.shape[1]
    found = np.empty((m, n))
    for q in range(m):
        row = found[q]
        row[:] = 0.0
        for f in range(p):
            x, column = rows[q, f], columns[f]
            for i in range(n):
                row[i] += (x - column[i]) * (x - column[i])
        for i in range(n):
            row[i] = np.sqrt(row[i])
    return found
