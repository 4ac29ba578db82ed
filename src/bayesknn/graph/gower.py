"""Gower's distance between rows of numbers and categories.

A numeric column contributes ``|x - y| / range``, with the range of the training points; a
category contributes 0 where the two are equal and 1 where they differ; the distance is the
(weighted) mean over the columns. A numeric column that is constant in training contributes 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.checks import (
    Column,
    as_numbers,
    check_n_features,
    check_names,
    column_names,
    is_missing,
    read_columns,
    refuse_missing,
)
from bayesknn._utils.jit import kernel
from bayesknn.graph.metrics import Metric


class Gower(Metric):
    """Gower's distance for mixed columns.

    Frames of pandas and polars say themselves which columns are categories: category dtypes,
    strings and truth values are. In an unnamed table a column of strings or truth values is one.
    A new point with a category that training did not see is refused; a category that the dtype
    declares counts as seen.

    Parameters
    ----------
    categorical : sequence of str or int, optional
        Further columns, by name or position, whose numbers are mere codes.
    weights : array of shape (p,), optional
        Weight of each column in the mean; finite, >= 0, not all 0.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesknn.graph.gower import Gower
    >>> metric = Gower()
    >>> points = metric.fit(pd.DataFrame({"age": [20.0, 30.0, 60.0], "sex": ["f", "m", "m"]}))
    >>> metric.distances(points[:1], metric.arrange(points))
    array([[0.   , 0.625, 1.   ]])
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
        self.categories_: list[list] = [
            _find_categories(column) if is_category else []
            for column, is_category in zip(columns, self.is_category_, strict=True)
        ]
        self.weights_ = self._check_weights(p)
        points = self._encode(columns)
        # A range is used as a divisor: 0 would be a constant column, which inf makes count nothing.
        with np.errstate(over="ignore"):
            spread = np.ptp(points, axis=0)
        for j in np.flatnonzero(np.isinf(spread)):
            column = points[:, j]
            raise ValueError(
                f"column {columns[j].label!r} reaches from {column.min()} to {column.max()}, a "
                "range that overflows; rescale it"
            )
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
        return self._encode(columns)

    def arrange(self, points: np.ndarray) -> np.ndarray:
        """Column by column."""
        return np.ascontiguousarray(points.T)

    def distances(self, rows: np.ndarray, arranged: np.ndarray) -> np.ndarray:
        """Distances of shape (m, n) from new rows to arranged training points."""
        return _gower(rows, arranged, self.is_category_, self.ranges_, self.weights_)

    def decode(self, numbers: np.ndarray) -> list:
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
                codes = {category: code for code, category in enumerate(self.categories_[j])}
                points[:, j] = [
                    _code_of(value, codes, row, column.label)
                    for row, value in enumerate(column.values.tolist())
                ]
            else:
                points[:, j] = as_numbers(column)
                bad = np.flatnonzero(~np.isfinite(points[:, j]))
                if len(bad):
                    value = points[bad[0], j]
                    refuse_missing(
                        "NaN" if np.isnan(value) else str(value), int(bad[0]), column.label
                    )
        return points

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
        bad = ~(np.isfinite(weights) & (weights >= 0))
        if bad.any():
            j = int(np.argmax(bad))
            raise ValueError(f"metric 'gower': weight {j} is {weights[j]}, must be finite and >= 0")
        with np.errstate(over="ignore"):
            total = weights.sum()
        if total == 0:
            raise ValueError("metric 'gower': all weights are 0")
        if np.isinf(total):
            raise ValueError("metric 'gower': the sum of the weights overflows; rescale them")
        return weights


def _find_categories(column: Column) -> list:
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
    seen = {*values, *column.declared}
    try:
        return sorted(seen)
    except TypeError:
        return sorted(seen, key=repr)


def _code_of(value: Any, codes: dict, row: int, label: str | int) -> int:
    if is_missing(value):
        refuse_missing("NaN", row, label)
    if value not in codes:
        raise ValueError(
            f"column {label!r} holds the category {value!r} in row {row}, which is not among the "
            "training points"
        )
    return codes[value]


@kernel
def _gower(rows, columns, is_category, ranges, weights):
    m, p = rows.shape
    n = columns.shape[1]
    total = weights.sum()
    found = np.empty((m, n))
    for q in range(m):
        row = found[q]
        row[:] = 0.0
        for f in range(p):
            x, column, weight, spread = rows[q, f], columns[f], weights[f], ranges[f]
            if weight == 0.0 or spread == np.inf and not is_category[f]:
                continue  # Where the difference overflows, 0 times it would not be 0.
            if is_category[f]:
                for i in range(n):
                    row[i] += weight if x != column[i] else 0.0
            else:
                for i in range(n):
                    row[i] += weight * (abs(x - column[i]) / spread)
        for i in range(n):
            row[i] /= total
    return found
