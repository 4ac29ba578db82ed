"""Distances between points (the 'distance' of the paper's Section 1.1), one class per family.

Every metric has the same shape. ``fit`` takes the training points, keeps what it must know of
them and returns them as numbers; ``transform`` does the same to new points; ``distances`` is the
one place where a distance is computed, pair by pair in a fixed order of operations, so that its
bits do not depend on which other points it is computed along with.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import numpy as np

from bayesknn._utils.checks import (
    LARGEST,
    Column,
    as_numbers,
    category_codes,
    category_name,
    check_finite,
    check_n_features,
    check_names,
    check_points,
    check_units,
    column_names,
    is_missing,
    is_sparse,
    read_columns,
    refuse_missing,
    show,
)
from bayesknn._utils.jit import kernel
from bayesknn.graph.precomputed import check_distances, check_symmetric

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

    def decode(self, numbers: np.ndarray) -> list[Any]:
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

    def _names(self) -> list[Any]:
        return self.feature_names_ or list(range(self.n_features_))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Euclidean(Metric):
    """Square root of the sum, in the order of the features, of squared differences."""

    name = "euclidean"
    is_euclidean = True

    def fit(self, X: Any) -> np.ndarray:
        """Return the training points, or say which number is too large to be squared."""
        return check_units(super().fit(X), self._names())

    def transform(self, X: Any) -> np.ndarray:
        """Return new points, or say which number is too large to be squared."""
        return check_units(super().transform(X), self._names(), is_new=True)

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


class NanEuclidean(Metric):
    """Euclidean distance over the columns that two points both have, scaled up to all columns.

    As in scikit-learn: the squared distance over the common columns is multiplied by the number of
    columns over the number of common ones, and two points without a common column are no
    neighbours: their distance is infinite. A point becomes its values, 0 where one is missing, and
    an indicator of 1 for each value that is known.
    """

    name = "nan_euclidean"

    def fit(self, X: Any) -> np.ndarray:
        """Return the values of the training points and which of them are known."""
        points = check_points(X, may_miss=True)
        self.n_features_ = points.shape[1]
        self.feature_names_ = column_names(X)
        return self._split(points, is_new=False)

    def transform(self, X: Any) -> np.ndarray:
        """Return the values of new points and which of them are known."""
        check_names(X, self.feature_names_, "NeighborGraph")
        points = check_points(X, may_miss=True)
        check_n_features(points.shape[1], self.n_features_, "NeighborGraph")
        return self._split(points, is_new=True)

    def _split(self, points: np.ndarray, is_new: bool) -> np.ndarray:
        known = ~np.isnan(points)
        values = check_units(np.where(known, points, 0.0), self._names(), is_new)
        return np.hstack([values, known])

    def arrange(self, points: np.ndarray) -> np.ndarray:
        """Column by column."""
        return np.ascontiguousarray(points.T)

    def distances(self, rows: np.ndarray, arranged: np.ndarray) -> np.ndarray:
        """Distances of shape (m, n) from new rows to arranged training points."""
        return _nan_euclidean(rows, arranged)

    def decode(self, numbers: np.ndarray) -> list[Any]:
        """Return the values, NaN where one is missing."""
        values, known = np.split(numbers, 2)
        return np.where(known > 0, values, np.nan).tolist()

    def _n_numbers(self) -> int:
        return 2 * self.n_features_


class Mahalanobis(Euclidean):
    """Euclidean distance after whitening by the covariance of the training points.

    Parameters
    ----------
    V : array of shape (p, p), optional
        A covariance to use in place of the training points' own.
    VI : array of shape (p, p), optional
        The inverse of a covariance, as scikit-learn takes it.
    """

    name = "mahalanobis"
    _by_feature = ("centre_", "whitening_")

    def __init__(self, V: Any = None, VI: Any = None):
        if V is not None and VI is not None:
            raise ValueError("metric 'mahalanobis' takes V or VI, not both")
        self.V = V
        self.VI = VI

    def fit(self, X: Any) -> np.ndarray:
        """Learn the whitening and return the whitened points."""
        points = super().fit(X)
        p = points.shape[1]
        is_constant = (points == points[0]).all(axis=0)
        # The mean of equal numbers may be off by a rounding.
        self.centre_: np.ndarray = np.where(is_constant, points[0], points.mean(axis=0))
        if self.VI is not None:
            values, axes = np.linalg.eigh(_check_form(self.VI, "VI", p))
            keep = values > values.max(initial=0.0) * p * np.finfo(float).eps
            self.whitening_ = axes[:, keep] * np.sqrt(values[keep])
        elif self.V is not None:
            self.whitening_ = self._invert_root(_check_form(self.V, "V", p), "the covariance V")
        else:
            if len(points) < 2:
                raise ValueError("metric 'mahalanobis' needs at least 2 points for a covariance")
            covariance = np.atleast_2d(np.cov(points, rowvar=False))
            covariance[is_constant] = covariance[:, is_constant] = 0.0
            self.whitening_ = self._invert_root(covariance, "the covariance of the training points")
        return self._whiten(points)

    def transform(self, X: Any) -> np.ndarray:
        """Whiten new points as the training points were."""
        return self._whiten(super().transform(X), is_new=True)

    def _whiten(self, points: np.ndarray, is_new: bool = False) -> np.ndarray:
        axes = [f"whitened {j}" for j in range(self._n_numbers())]
        return check_units(whiten_rows(points, self.centre_, self.whitening_), axes, is_new)

    def decode(self, numbers: np.ndarray) -> list[Any]:
        """Return the centre, which stands for any point."""
        return self.centre_.tolist()

    def _n_numbers(self) -> int:
        return self.whitening_.shape[1]

    def _invert_root(self, covariance: np.ndarray, what: str) -> np.ndarray:
        p = len(covariance)
        smallest = p * np.finfo(float).eps
        scale = np.sqrt(np.diag(covariance))
        # Rank is judged on the correlations, which do not change with the units of a column.
        if np.all(scale > 0):
            values, axes = np.linalg.eigh(covariance / np.outer(scale, scale))
            if values.min() > smallest:
                return axes / scale[:, None] / np.sqrt(values)
        # The pseudo-inverse does depend on the units.
        values, axes = np.linalg.eigh(covariance)
        keep = values > values.max(initial=0.0) * max(smallest, 1e-14)
        constant = np.flatnonzero(scale == 0)
        why = f"; column {self._names()[constant[0]]!r} is constant" if len(constant) else ""
        if not keep.any():
            raise ValueError(f"{what} is zero: all points are equal{why}")
        warnings.warn(
            f"{what} is singular (rank {int(keep.sum())} of {p}){why}; "
            "the pseudo-inverse is used in place of the inverse",
            UserWarning,
            stacklevel=2,
        )
        axes[constant] = 0.0
        return axes[:, keep] / np.sqrt(values[keep])


class Gower(Metric):
    """Gower's distance for mixed columns.

    A numeric column contributes ``|x - y| / range``, with the range of the training points; a
    category contributes 0 where the two are equal and 1 where they differ; the distance is the
    (weighted) mean over the columns. A numeric column that is constant in training contributes 0.

    Frames of pandas and polars say themselves which columns are categories: category dtypes,
    strings and truth values are. In an unnamed table a column of strings or truth values is one.
    A category that training did not see differs from all of training, with a warning; a category
    that the dtype declares counts as seen.

    Parameters
    ----------
    categorical : sequence of str or int, optional
        Further columns, by name or position, whose numbers are mere codes.
    weights : array of shape (p,), optional
        Weight of each column in the mean; finite, >= 0, not all 0.
    """

    name = "gower"
    _by_feature = ("is_category_", "ranges_", "weights_", "categories_")

    def __init__(self, categorical: Any = (), weights: Any = None):
        self.categorical = categorical
        self.weights = weights

    def fit(self, X: Any) -> np.ndarray:
        """Learn ranges and categories; return numbers and category codes."""
        columns = read_columns(X)
        self.n_features_ = p = len(columns)
        self.feature_names_ = column_names(X)
        said = {self._position(label) for label in self.categorical}
        self.is_category_ = np.array([c.is_category or j in said for j, c in enumerate(columns)])
        self.categories_: list[list[Any]] = [
            _find_categories(column) if is_category else []
            for column, is_category in zip(columns, self.is_category_, strict=True)
        ]
        self.weights_ = self._check_weights(p)
        points = self._encode(columns)
        # A range is used as a divisor: 0 would be a constant column, which inf makes count nothing.
        spread = np.ptp(points, axis=0)
        self.ranges_ = np.where(spread > 0, spread, np.inf)
        return points

    def transform(self, X: Any) -> np.ndarray:
        """Encode new points by the categories of training."""
        check_names(X, self.feature_names_, "NeighborGraph")
        columns = read_columns(X)
        check_n_features(len(columns), self.n_features_, "NeighborGraph")
        if self.feature_names_ is not None:
            columns = [
                c._replace(label=n) for c, n in zip(columns, self.feature_names_, strict=True)
            ]
        points = self._encode(columns)
        for j in np.flatnonzero(self.is_category_):
            if len(rows := np.flatnonzero(points[:, j] < 0)):
                warnings.warn(
                    f"column {columns[j].label!r} holds categories that training did not see in "
                    f"{len(rows):,} of {len(points):,} rows, such as "
                    f"{show(columns[j].values[rows[0]])}: they differ from all others",
                    UserWarning,
                    stacklevel=2,
                )
        return points

    def arrange(self, points: np.ndarray) -> np.ndarray:
        """Column by column."""
        return np.ascontiguousarray(points.T)

    def distances(self, rows: np.ndarray, arranged: np.ndarray) -> np.ndarray:
        """Distances of shape (m, n) from new rows to arranged training points."""
        return _gower(rows, arranged, self.is_category_, self.ranges_, self.weights_)

    def decode(self, numbers: np.ndarray) -> list[Any]:
        """Return numbers, and categories in place of their codes."""
        return [
            categories[int(number)] if is_category else float(number)
            for number, categories, is_category in zip(
                numbers, self.categories_, self.is_category_, strict=True
            )
        ]

    def _encode(self, columns: list[Column]) -> np.ndarray:
        points = np.empty((len(columns[0].values), self.n_features_))
        for j, column in enumerate(columns):
            if self.is_category_[j]:
                codes = category_codes(self.categories_[j])
                points[:, j] = [
                    _code_of(value, codes, row, column.label)
                    for row, value in enumerate(column.values.tolist())
                ]
            else:
                points[:, j] = as_numbers(column)
        labels = [column.label for column in columns]
        check_finite(points, labels)
        return check_units(points, labels, is_new=True)

    def _position(self, label: Any) -> int:
        names = self.feature_names_ or []
        if isinstance(label, str) and label in names:
            return names.index(label)
        if isinstance(label, int | np.integer) and 0 <= label < self.n_features_:
            return int(label)
        raise ValueError(f"metric 'gower': there is no column {label!r} to take as categorical")

    def _check_weights(self, p: int) -> np.ndarray:
        if self.weights is None:
            return np.ones(p)
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (p,):
            raise ValueError(f"metric 'gower': {p} columns need {p} weights, got {weights.shape}")
        bad = ~((weights >= 0) & (weights <= LARGEST))
        if bad.any():
            j = int(np.argmax(bad))
            raise ValueError(f"metric 'gower': weight {j} is {weights[j]}, must be finite and >= 0")
        if not weights.any():
            raise ValueError("metric 'gower': all weights are 0")
        return weights


class ScikitLearnMetric(Metric):
    """Any metric that scikit-learn knows by name, or a Python function of two rows.

    Parameters
    ----------
    metric : str or callable
        A callable takes two 1-D arrays and returns a number.
    **params
        Passed to the metric.
    """

    def __init__(self, metric: str | Callable[..., Any], **params: Any):
        self.metric = metric
        self.params = params
        self.name = metric if isinstance(metric, str) else getattr(metric, "__name__", "callable")

    def fit(self, X: Any) -> np.ndarray:
        """Check the points and that the metric accepts its parameters."""
        points = super().fit(X)
        if not callable(self.metric):
            check_units(points, self._names())
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
            distances = np.array(
                [[float(self.metric(a, b, **self.params)) for b in arranged] for a in rows]
            ).reshape(len(rows), len(arranged))
        elif self.metric in _names("ball_tree"):
            distances = self._compiled().pairwise(rows, arranged)
        else:
            from scipy.spatial.distance import cdist

            # Rounding can take these a hair below zero for parallel rows.
            distances = np.maximum(cdist(rows, arranged, self.metric, **self.params), 0.0)
        is_distance = (distances >= 0) & (distances < np.inf)
        if not is_distance.all():
            a, b = np.argwhere(~is_distance)[0]
            raise ValueError(
                f"metric {self.name!r} gives {distances[a, b]} between the points "
                f"{rows[a].tolist()} and {arranged[b].tolist()}; distances must be finite and >= 0"
            )
        return distances

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


class Precomputed(Metric):
    """Distances given as a matrix: (n, n) for training, (m, n) for new points."""

    name = "precomputed"

    def fit(self, X: Any) -> Any:
        """Check the training distances; a sparse graph comes back as CSR."""
        distances = check_distances(X)
        if distances.shape[0] != distances.shape[1]:
            raise ValueError(
                f"the distance matrix has shape {distances.shape}, it must be square: one row and "
                "one column per training point"
            )
        self.n_features_ = distances.shape[1]
        if not is_sparse(distances):
            check_symmetric(distances)
        elif len(distances.data) and (distances.data == 1).all():
            warnings.warn(
                "every stored entry of the sparse graph is 1, as with mode='connectivity'; "
                "distances are needed: mode='distance'",
                UserWarning,
                stacklevel=2,
            )
        return distances

    def transform(self, X: Any) -> Any:
        """Check the distances of new points (rows) to every training point (columns)."""
        distances = check_distances(X)
        check_n_features(distances.shape[1], self.n_features_, "NeighborGraph")
        return distances

    def distances(self, rows: np.ndarray, arranged: Any) -> np.ndarray:
        """Return the rows: they are the distances."""
        return rows

    def check_saved(self, points: Any, n_points: int) -> None:
        """Refuse a saved number of training points that new distances do not go with."""
        if self.n_features_ != n_points:
            raise ValueError(f"there are {n_points} points, and distances to {self.n_features_}")


def make_metric(metric: Any, metric_params: dict[str, Any] | None = None) -> Metric:
    """Turn what users pass as ``metric`` into a :class:`Metric` that is not yet fitted.

    Parameters
    ----------
    metric : str or callable
        ``"euclidean"``, ``"nan_euclidean"``, ``"mahalanobis"``, ``"gower"``, ``"precomputed"``, any
        metric name of scikit-learn, or a function of two rows.
    metric_params : dict, optional
        Parameters of the metric, as in scikit-learn.
    """
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
    package_metrics: dict[str, Callable[..., Metric]] = {
        "euclidean": Euclidean,
        "l2": Euclidean,
        "nan_euclidean": NanEuclidean,
        "mahalanobis": Mahalanobis,
        "gower": Gower,
        "precomputed": Precomputed,
    }
    if isinstance(metric, str) and metric in package_metrics:
        try:
            return package_metrics[metric](**params)
        except TypeError:
            raise ValueError(
                f"metric {metric!r} does not take all of metric_params, {sorted(params)}"
            ) from None
    # scikit-learn is slow to import and asked only where its names are meant.
    known = {*package_metrics, *_names("brute"), *_names("ball_tree")}
    if not isinstance(metric, str) or metric not in known:
        raise ValueError(
            f"unknown metric {metric!r}; known are {', '.join(sorted(known))}, or pass a callable"
        )
    return ScikitLearnMetric(metric, **params)


@cache
def _names(algorithm: str) -> frozenset[str]:
    from sklearn.neighbors import VALID_METRICS

    # These names stand for classes of this module.
    other = {"nan_euclidean", "precomputed", "pyfunc", "mahalanobis"}
    return frozenset(VALID_METRICS[algorithm]) - other


def _check_form(matrix: Any, name: str, p: int) -> np.ndarray:
    name = f"metric 'mahalanobis': {name}"
    try:
        form = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not a matrix of numbers: {error}") from None
    if form.shape != (p, p):
        raise ValueError(f"{name} has shape {form.shape}, the points have {p} features")
    if not np.isfinite(form).all():
        row, column = np.argwhere(~np.isfinite(form))[0]
        raise ValueError(f"{name} has {form[row, column]} at [{row}, {column}]")
    if not np.allclose(form, form.T, rtol=1e-8, atol=1e-12 * np.abs(form).max()):
        row, column = np.unravel_index(np.argmax(np.abs(form - form.T)), form.shape)
        raise ValueError(
            f"{name} is not symmetric: {form[row, column]} at [{row}, {column}] but "
            f"{form[column, row]} at [{column}, {row}]"
        )
    lowest = float(np.linalg.eigvalsh(form).min())
    if lowest < -1e-10 * np.abs(form).max():
        raise ValueError(f"{name} is not positive semi-definite: it has the eigenvalue {lowest:g}")
    return form


def _find_categories(column: Column) -> list[Any]:
    """Return the column's categories, sorted where they can be."""
    values = column.values.tolist()
    for row, value in enumerate(values):
        if is_missing(value):
            refuse_missing("NaN", row, column.label)
    texts = [isinstance(value, str | bytes) for value in values]
    if any(texts) and not all(texts):
        row = texts.index(True)
        raise ValueError(
            f"column {column.label!r} mixes numbers and strings: {values[row]!r} in row {row}; "
            "make it all numbers or all strings"
        )
    return sorted({category_name(value) for value in (*values, *column.declared)}, key=str)


def _code_of(value: Any, codes: dict[Hashable, int], row: int, label: str | int) -> int:
    if is_missing(value):
        refuse_missing("NaN", row, label)
    return codes.get(category_name(value), -1)


@kernel
def _euclidean(rows, columns):
    m, p = rows.shape
    n = columns.shape[1]
    distances = np.empty((m, n))
    for q in range(m):
        row = distances[q]
        row[:] = 0.0
        for f in range(p):
            x, column = rows[q, f], columns[f]
            for i in range(n):
                row[i] += (x - column[i]) * (x - column[i])
        for i in range(n):
            row[i] = np.sqrt(row[i])
    return distances


@kernel
def _nan_euclidean(rows, columns):
    """Return distances of shape (m, n), infinity where two points have no column in common.

    A row holds p values, then p indicators that are 1 where the value is known.
    """
    m, p = rows.shape[0], rows.shape[1] // 2
    n = columns.shape[1]
    distances = np.empty((m, n))
    common = np.empty(n)
    for q in range(m):
        row = distances[q]
        row[:] = 0.0
        common[:] = 0.0
        for f in range(p):
            if rows[q, p + f] > 0.0:
                x, column, known = rows[q, f], columns[f], columns[p + f]
                for i in range(n):
                    row[i] += known[i] * (x - column[i]) * (x - column[i])
                    common[i] += known[i]
        for i in range(n):
            row[i] = np.sqrt(row[i] / common[i] * p) if common[i] > 0.0 else np.inf
    return distances


@kernel
def measure_pairs(rows, points, starts, members):
    """Distances from row q to the points ``members[starts[q] : starts[q + 1]]``, for every row."""
    distances = np.empty(members.size)
    for q in range(np.uint64(rows.shape[0])):
        for e in range(starts[q], starts[q + np.uint64(1)]):
            i, square = np.uint64(members[e]), 0.0
            for f in range(np.uint64(rows.shape[1])):
                square += (rows[q, f] - points[i, f]) * (rows[q, f] - points[i, f])
            distances[e] = np.sqrt(square)
    return distances


@kernel
def whiten_rows(points, centre, whitening):
    """Return ``(points - centre) @ whitening``, each row computed by itself.

    A matrix product may add in another order for another number of rows, and a training point
    that is asked about again would then not be at distance 0 from itself.
    """
    n, p = points.shape
    rank = whitening.shape[1]
    white = np.zeros((n, rank))
    for i in range(n):
        for f in range(p):
            x = points[i, f] - centre[f]
            for c in range(rank):
                white[i, c] += x * whitening[f, c]
    return white


@kernel
def _gower(rows, columns, is_category, ranges, weights):
    m, p = rows.shape
    n = columns.shape[1]
    total = weights.sum()
    distances = np.empty((m, n))
    for q in range(m):
        row = distances[q]
        row[:] = 0.0
        for f in range(p):
            x, column, weight, spread = rows[q, f], columns[f], weights[f], ranges[f]
            if is_category[f]:
                for i in range(n):
                    row[i] += weight if x != column[i] else 0.0
            else:
                for i in range(n):
                    row[i] += weight * (abs(x - column[i]) / spread)
        for i in range(n):
            row[i] /= total
    return distances
