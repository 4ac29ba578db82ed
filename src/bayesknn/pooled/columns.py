"""Tables of numbers and categories as the coordinates that the metrics start from.

Numbers are standardised on the training rows and what is missing becomes the mean. A category has
one indicator a level, ``(1[x = l] - p_l) / sqrt(1 - sum p^2)``, so that the column has variance 1
in all; missing is a level. Columns that are constant in training say nothing and are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import Column, as_numbers, is_missing, read_columns, refuse_missing

# Further out than this many standard deviations is as good as this far: squares stay finite.
_FARTHEST = 1e6
_MISSING = "missing"


class Table(NamedTuple):
    """Rows in two forms: coordinates, and one value for each column that varies.

    Attributes
    ----------
    points : ndarray of shape (n, p)
        Standardised numbers and scaled indicators.
    is_indicator : ndarray of shape (p,), dtype bool
    source : ndarray of shape (p,), dtype int64
        The input column that each coordinate comes from.
    values : ndarray of shape (n, q)
        A standardised number or the number of a level; -1 for a level that training had not.
    is_category : ndarray of shape (q,), dtype bool
    """

    points: np.ndarray
    is_indicator: np.ndarray
    source: np.ndarray
    values: np.ndarray
    is_category: np.ndarray

    def take(self, rows: np.ndarray | slice) -> Table:
        """Return some of the rows."""
        return self._replace(points=self.points[rows], values=self.values[rows])


class Columns:
    """What a table's columns were like in training.

    Examples
    --------
    >>> from bayesknn.pooled.columns import Columns
    >>> table = Columns().fit([[1.0, "a", 7], [2.0, "b", 7], [3.0, None, 7]])
    >>> table.points.shape, table.source.tolist()
    ((3, 4), [0, 1, 1, 1])
    """

    def fit(self, X: Any) -> Table:
        """Learn means, spreads and levels, and return the training rows."""
        self.parts = [_learn(column) for column in read_columns(X)]
        return self.transform(X)

    def transform(self, X: Any) -> Table:
        """Return rows of a table with the same columns."""
        columns = read_columns(X)
        points: list[np.ndarray] = []
        values, is_indicator, source, is_category = [], [], [], []
        for j, (part, column) in enumerate(zip(self.parts, columns, strict=True)):
            if part is None:
                _encode(None, column)  # refuses what is not finite
                continue
            levels, spread = part["levels"], part["spread"]
            value = _encode(part, column)
            values.append(value)
            is_category.append(levels is not None)
            if levels is None:
                points.append(value)
            else:
                shares = part["shares"]
                points += [((value == code) - p) / spread for code, p in enumerate(shares)]
            n_new = 1 if levels is None else len(shares)
            is_indicator += [levels is not None] * n_new
            source += [j] * n_new
        if not values:  # Every column is constant: all points are in one place.
            values = points = [np.zeros(len(columns[0].values))]
            is_category, is_indicator, source = [False], [False], [0]
        return Table(
            np.column_stack(points),
            np.array(is_indicator),
            np.array(source),
            np.column_stack(values),
            np.array(is_category),
        )


def _learn(column: Column) -> dict[str, Any] | None:
    """Return what coding a column needs, or None for one that is constant."""
    if column.is_category:
        keys = _read_levels(column)
        levels = sorted(set(keys), key=str)
        if len(levels) == 1:
            return None
        code = {level: number for number, level in enumerate(levels)}
        shares = np.bincount([code[key] for key in keys], minlength=len(levels)) / len(keys)
        return {"levels": levels, "shares": shares, "spread": float(np.sqrt(1 - shares @ shares))}
    numbers = _read_numbers(column)
    there = numbers[~np.isnan(numbers)]
    if len(there) == 0 or (there == there[0]).all():
        return None
    # By a power of two first, which changes no bit: squares of huge numbers would overflow.
    unit = float(np.ldexp(1.0, int(np.frexp(np.abs(there).max())[1]) - 1))
    mean = float((there / unit).mean())
    filled = np.where(np.isnan(numbers), mean, numbers / unit)
    return {"levels": None, "unit": unit, "mean": mean, "spread": float(filled.std())}


def _encode(part: dict[str, Any] | None, column: Column) -> np.ndarray:
    if part is None:
        return np.zeros(0) if column.is_category else _read_numbers(column)
    if part["levels"] is not None:
        code = {level: number for number, level in enumerate(part["levels"])}
        return np.array([code.get(key, -1) for key in _read_levels(column)], dtype=np.float64)
    with np.errstate(over="ignore"):
        scaled = (_read_numbers(column) / part["unit"] - part["mean"]) / part["spread"]
    return np.clip(np.where(np.isnan(scaled), 0.0, scaled), -_FARTHEST, _FARTHEST)


def _read_levels(column: Column) -> list[Any]:
    """Values as levels; what is missing is the level of that name, kept apart by its type."""
    return [(_MISSING,) if is_missing(value) else value for value in column.values.tolist()]


def _read_numbers(column: Column) -> np.ndarray:
    """Numbers with NaN where one is missing; infinities are refused."""
    values = column.values
    if values.dtype == object:
        there = np.array([not is_missing(value) for value in values])
        values = np.full(len(values), np.nan)
        some = column._replace(values=column.values[there])
        values[there] = as_numbers(some)
    values = values.astype(np.float64)
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        refuse_missing(str(values[row]), row, column.label)
    return values
