"""Tables of numbers and categories as the coordinates that the members start from.

Numbers are standardised on the training rows and what is missing becomes the mean. A category has
one indicator a level, ``(1[x = l] - p_l) / sqrt(1 - sum p^2)``, so that the column has variance 1
in all; missing is a level. Of a column with many levels the frequent ones are kept and the others
are one level. Columns that are constant in training say nothing and are left out.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from bayesknn._utils.checks import (
    MISSING,
    Column,
    as_numbers,
    category_codes,
    category_name,
    check_finite,
    is_missing,
    read_columns,
    show,
)
from bayesknn.sureness.groups import find_scored

# Further out than this many standard deviations is as good as this far: squares stay finite.
_FARTHEST = 1e6
# With more levels than this the rarest are one level, and so are those of fewer rows than these:
# a level costs a coordinate, and of a few rows nothing can be learned.
_MANY_LEVELS, _FEW_ROWS = 30, 5
_RARE = ("rare",)
# Of a table whose columns are all constant.
_NOTHING = {"levels": None, "is_ordered": False}


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
    is_category, is_ordered : ndarray of shape (q,), dtype bool
    value_source : ndarray of shape (q,), dtype int64
        The input column that each value comes from.
    """

    points: np.ndarray
    is_indicator: np.ndarray
    source: np.ndarray
    values: np.ndarray
    is_category: np.ndarray
    is_ordered: np.ndarray
    value_source: np.ndarray

    def take(self, rows: np.ndarray | slice) -> Table:
        """Return some of the rows."""
        return self._replace(points=self.points[rows], values=self.values[rows])

    def in_order(self) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates for trees and the column of each: ordered levels by their numbers."""
        has_order = ~self.is_category | self.is_ordered
        others = np.isin(self.source, self.value_source[~has_order])
        return (
            np.hstack([self.values[:, has_order], self.points[:, others]]),
            np.concatenate([self.value_source[has_order], self.source[others]]),
        )


class Sample(NamedTuple):
    """Training rows with their class numbers and weights.

    Attributes
    ----------
    table : Table
    labels : ndarray of shape (n,), dtype intp
    weights : ndarray of shape (n,)
        Of mean 1; a row of weight 2 votes as two rows do.
    n_classes : int
    groups : ndarray of shape (n,) or None
        Group numbers of rows that belong together.
    """

    table: Table
    labels: np.ndarray
    weights: np.ndarray
    n_classes: int
    groups: np.ndarray | None = None

    @property
    def class_shares(self) -> np.ndarray:
        """Weighted frequencies of the classes."""
        return np.bincount(self.labels, self.weights, self.n_classes) / self.weights.sum()

    def take(self, rows: np.ndarray) -> Sample:
        """Return some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        taken = self.table.take(rows), self.labels[rows], self.weights[rows]
        return Sample(*taken, self.n_classes, groups)

    @property
    def judged_weights(self) -> np.ndarray:
        """Weights (n,) in all that compares probabilities with labels.

        They are 0 for rows that are alone in their class, or of a class of one group alone, which
        no probability can foresee.
        """
        return self.weights * find_scored(self.labels, self.groups)

    def know_without(self, rows: np.ndarray) -> np.ndarray:
        """Return a mask of the rows that are known without some, which are given by a mask.

        Rows whose weight in scores is 0 stay: every class has a row.
        """
        return ~rows | (self.judged_weights == 0)


class Settings(NamedTuple):
    """What a fit is told beside the rows.

    Attributes
    ----------
    k_values : ndarray of int
    seed : int
    n_jobs : int or None
    search : str
        As :meth:`bayesknn.graph.NeighborGraph.from_points` takes it.
    estimator : object or None
        The classifier of a member that the user gave.
    """

    k_values: np.ndarray
    seed: int
    n_jobs: int | None
    search: str
    estimator: Any = None


class Columns:
    """What a table's columns were like in training.

    Parameters
    ----------
    categorical : sequence of str, of int or of bool, optional
        Columns that hold categories whatever their type: by name, by position or as a mask.

    Examples
    --------
    >>> from bayesknn.pooled.columns import Columns
    >>> table = Columns().fit([[1.0, "a", 7], [2.0, "b", 7], [3.0, None, 7]])
    >>> table.points.shape, table.source.tolist()
    ((3, 4), [0, 1, 1, 1])
    """

    def __init__(self, categorical: Any = None):
        self.categorical = categorical

    def read(self, X: Any) -> list[Column]:
        """Return the columns of a table, those that are said to be categories as categories."""
        columns = read_columns(X)
        at = _find_columns(self.categorical, columns)
        return [
            column._replace(is_category=True) if j in at else column
            for j, column in enumerate(columns)
        ]

    def fit(self, X: Any) -> Table:
        """Learn means, spreads and levels, and return the training rows."""
        columns = self.read(X)
        return self.learn(columns, np.arange(len(columns[0].values)), np.arange(len(columns)))

    def learn(self, columns: list[Column], rows: np.ndarray, order: np.ndarray) -> Table:
        """Learn from some rows, columns in another order, and return these rows.

        Parameters
        ----------
        columns : list of Column
            As :meth:`read` returns them.
        rows, order : ndarray of int64
            Positions of rows and of all columns.

        Returns
        -------
        Table
        """
        declared = _find_columns(self.categorical, columns)
        for j, column in enumerate(columns):
            if j not in declared:
                _reject_numbers_as_text(column)
        # By position from now on: new rows may come without names.
        self.categorical = [j for j, column in enumerate(columns) if column.is_category]
        self.order = order
        self.parts = [_learn(columns[j].take(rows)) for j in order]
        return self.encode(columns, rows)

    def transform(self, X: Any) -> Table:
        """Return rows of a table with the same columns."""
        columns = self.read(X)
        return self.encode(columns, slice(None))

    def make_central(self, n: int) -> Table:
        """Return n equal rows: the mean of each number, and the first level of each category."""
        return self._arrange([np.zeros(n)] * len(self.parts), n)

    def encode(self, columns: list[Column], rows: np.ndarray | slice) -> Table:
        """Return some rows of columns that :meth:`read` returned."""
        taken = [columns[j].take(rows) for j in self.order]
        # Also those that are constant: what is not finite is refused.
        encoded = [_encode(*pair) for pair in zip(self.parts, taken, strict=True)]
        return self._arrange(encoded, len(taken[0].values))

    def _arrange(self, encoded: list[np.ndarray], n: int) -> Table:
        """Return n rows of a table, given the values of each column."""
        kept = [(j, part) for j, part in enumerate(self.parts) if part is not None]
        if not kept:  # Every column is constant: all points are in one place.
            kept, encoded = [(0, _NOTHING)], [np.zeros(n)]
        points = [_spread_out(part, encoded[j][:, None]) for j, part in kept]
        widths = [each.shape[1] for each in points]
        is_category = np.array([part["levels"] is not None for _, part in kept])
        value_source = self.order[[j for j, _ in kept]]
        return Table(
            np.hstack(points),
            np.repeat(is_category, widths),
            np.repeat(value_source, widths),
            np.column_stack([encoded[j] for j, _ in kept]),
            is_category,
            np.array([part["is_ordered"] for _, part in kept]),
            value_source,
        )


def _find_columns(wanted: Any, columns: list[Column]) -> list[int]:
    """Return the positions of columns that are given by name, by position or as a mask."""
    if wanted is None:
        return []
    if isinstance(wanted, str) or not hasattr(wanted, "__iter__"):
        raise ValueError(
            "categorical_features must be a sequence of names, of positions or of truth values, "
            f"got {show(wanted)}"
        )
    given = list(wanted)
    if given and all(isinstance(each, bool | np.bool_) for each in given):
        if len(given) != len(columns):
            raise ValueError(
                f"categorical_features is a mask of {len(given)} columns, X has {len(columns)}"
            )
        return np.flatnonzero(given).tolist()
    names = {column.label: j for j, column in enumerate(columns)}
    names |= {j: j for j in range(len(columns))}
    for each in given:
        if not isinstance(each, str | int | np.integer) or each not in names:
            raise ValueError(f"categorical_features names {show(each)}, a column that X has not")
    return [names[each] for each in given]


def _reject_numbers_as_text(column: Column) -> None:
    """Raise ValueError for a column of text that holds numbers, as of an array of strings.

    Whole numbers in a column that has a name may be codes.
    """
    texts = [value for value in column.values.tolist() if not is_missing(value)]
    if column.values.dtype != object or column.declared or not texts:
        return
    try:
        numbers = [float(text) if isinstance(text, str) else np.nan for text in texts]
    except ValueError:
        return
    is_code = isinstance(column.label, str) and all(map(float.is_integer, numbers))
    if not is_code and np.isfinite(numbers).all():
        raise ValueError(
            f"column {column.label!r} holds numbers as text, such as {texts[0]!r}: convert them to "
            "numbers, or name the column in categorical_features"
        )


def _learn(column: Column) -> dict[str, Any] | None:
    """Return what coding a column needs, or None for one that is constant."""
    if column.is_category:
        keys = _read_levels(column)
        counts = Counter(keys)
        # By first row, which owes nothing to their names.
        levels = sort_levels(column, counts) if column.is_ordered else list(counts)
        # Levels that have no coordinate of their own, and that new rows may have.
        known = [name for name in map(category_name, column.declared) if name not in counts]
        is_capped = len(levels) > _MANY_LEVELS
        if is_capped:
            often = sorted(levels, key=lambda level: -counts[level])[:_MANY_LEVELS]
            often = [level for level in often if counts[level] >= _FEW_ROWS]
            known += [level for level in levels if level not in often]
            levels = [*often, _RARE]
        if len(levels) == 1:
            return None
        code = {level: number for number, level in enumerate(levels)}
        shares = np.bincount([code.get(key, len(levels) - 1) for key in keys]) / len(keys)
        spread = float(np.sqrt(1 - shares @ shares))
        is_ordered = column.is_ordered and not is_capped
        return {
            "levels": levels, "known": known, "shares": shares, "spread": spread,
            "is_ordered": is_ordered,
        }  # fmt: skip
    numbers = _read_numbers(column)
    there = numbers[~np.isnan(numbers)]
    if len(there) == 0 or (there == there[0]).all():
        return None
    # By a power of two first, which changes no bit: squares of huge numbers would overflow.
    unit = float(np.ldexp(1.0, int(np.frexp(np.abs(there).max())[1]) - 1))
    mean = float((there / unit).mean())
    spread = float(np.where(np.isnan(numbers), mean, numbers / unit).std())
    return {"levels": None, "unit": unit, "mean": mean, "spread": spread, "is_ordered": False}


def sort_levels(column: Column, levels: Iterable[Any]) -> list[Any]:
    """Return levels as their dtype orders them, or by name."""
    place = category_codes(column.declared) if column.is_ordered else {}
    return sorted(levels, key=lambda level: (place.get(level, len(place)), str(level)))


def rank_values(column: Column) -> np.ndarray:
    """Return the rank (n,) of each value among the distinct values of a column, from 0.

    Missing numbers rank last, levels as :func:`sort_levels` returns them.

    Examples
    --------
    >>> from bayesknn._utils.checks import read_columns
    >>> from bayesknn.pooled.columns import rank_values
    >>> [rank_values(each).tolist() for each in read_columns([[2.5, "b"], [0.5, "a"], [2.5, "b"]])]
    [[1, 0, 1], [1, 0, 1]]
    """
    if not column.is_category:
        return np.unique(_read_numbers(column), return_inverse=True)[1]
    keys = _read_levels(column)
    code = {level: number for number, level in enumerate(sort_levels(column, set(keys)))}
    return np.array([code[key] for key in keys])


def _encode(part: dict[str, Any] | None, column: Column) -> np.ndarray:
    if part is None:
        return np.zeros(0) if column.is_category else _read_numbers(column)
    if part["levels"] is not None:
        codes = category_codes(part["levels"])
        keys, other = _read_levels(column), codes.get(_RARE, -1)
        values = np.array([codes.get(key, other) for key in keys], dtype=np.float64)
        known = category_codes(part["known"])
        unseen = [key for key in keys if key not in codes and key not in known]
        _warn_of_unseen(column, unseen, part["shares"][other] if other >= 0 else 0)
        return values
    with np.errstate(over="ignore"):
        scaled = (_read_numbers(column) / part["unit"] - part["mean"]) / part["spread"]
    return np.clip(np.where(np.isnan(scaled), 0.0, scaled), -_FARTHEST, _FARTHEST)


def _spread_out(part: dict[str, Any], value: np.ndarray) -> np.ndarray:
    """Return a number as it is, and a level as scaled indicators of all levels."""
    if part["levels"] is None:
        return value
    return ((value == np.arange(len(part["shares"]))) - part["shares"]) / part["spread"]


def _read_levels(column: Column) -> list[Any]:
    """Values as levels; what is missing is the level of that name, kept apart by its type."""
    return [category_name(value) for value in column.values.tolist()]


def _warn_of_unseen(column: Column, unseen: list[Any], usual: float) -> None:
    """Warn if most levels are new, of a column where ``usual`` is the proportion of rare ones."""
    n, n_unseen = len(column.values), len(unseen)
    # One row says nothing of a column. By chance as many would be rare ones once in a thousand.
    if 2 * n_unseen > max(n, 2) and binom.sf(n_unseen - 1, n, usual) < 0.001:
        first = list(dict.fromkeys(unseen))[:2]
        examples = " and ".join("a missing value" if key == MISSING else show(key) for key in first)
        warnings.warn(
            f"column {column.label!r} holds categories that training did not see in "
            f"{n_unseen:,} of {n:,} rows, such as {examples}: they count as "
            f"{'rare ones' if usual else 'none of the known ones'}",
            UserWarning,
            stacklevel=2,
        )


def _read_numbers(column: Column) -> np.ndarray:
    """Numbers with NaN where one is missing; infinities are refused."""
    numbers = as_numbers(column, may_miss=True)
    check_finite(numbers[:, None], [column.label], may_miss=True)
    return numbers
