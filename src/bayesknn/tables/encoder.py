"""Measured columns as the columns that a classifier takes.

For classifiers that compare numbers and categories as they are, columns pass. For others every
number is standardised and every category becomes indicators of 0 and 1. The two scales agree: two
independent rows differ by 2 on average in the square of a standardised column, and two different
categories differ by 2 in the square of their indicators. Above ``MAX_CATEGORIES`` the rarer
categories share one indicator, also with categories that training did not see; without such an
indicator these have 0 in all.

A time stamp also becomes its hour and its weekday, and a number that is often missing also becomes
an indicator of that. Which columns do is decided without labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from bayesknn._utils.words import free_name

if TYPE_CHECKING:
    import pandas

# Indicators a column may have; rarer categories share the last one.
MAX_CATEGORIES = 20
MISSING = "(missing)"
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Scale(NamedTuple):
    """A column of numbers: what takes the place of a missing one, and mean and unit of the others.

    ``fill`` is None where missing numbers stay.
    """

    fill: float | None
    mean: float
    unit: float


class Levels(NamedTuple):
    """A column of categories: those that have an indicator, and whether the others share one."""

    levels: tuple[str, ...]
    has_other: bool
    names: tuple[str, ...]


class ColumnEncoder(TransformerMixin, BaseEstimator):
    """Columns as numbers, or numbers and categories with fixed levels.

    Parameters
    ----------
    indicators : bool, default=True
        Whether categories become indicators, and numbers are scaled.
    scale : bool, default=True
        Whether numbers are standardised, where categories become indicators.
    impute : bool, default=True
        Whether a missing number becomes the median of its column, and a missing category one of
        its own. Otherwise they stay missing.
    stamps : sequence of str
        Columns of time stamps, in days, of which hour and weekday are columns too.
    gaps : sequence of str
        Columns of numbers of which an indicator of missing values is a column too.

    Attributes
    ----------
    parts_ : dict of str to Scale or Levels
        By column, in the order of the columns.
    """

    def __init__(
        self,
        *,
        indicators: bool = True,
        scale: bool = True,
        impute: bool = True,
        stamps: Sequence[str] = (),
        gaps: Sequence[str] = (),
    ):
        self.indicators = indicators
        self.scale = scale
        self.impute = impute
        self.stamps = stamps
        self.gaps = gaps

    def fit(self, X: pandas.DataFrame, y: Any = None) -> ColumnEncoder:
        """Learn medians, means, units and the most common categories.

        Parameters
        ----------
        X : pandas.DataFrame
            Numbers as float64 and categories as Categorical, as :class:`TablePreparer` measures
            them.
        y : ignored

        Returns
        -------
        ColumnEncoder
            Itself.
        """
        columns = self._add_columns(X)
        self.parts_: dict[str, Scale | Levels] = {}
        taken = set(columns)
        for name, column in columns.items():
            if column.dtype.kind in "iuf":
                self.parts_[name] = self._learn_scale(column.to_numpy(dtype=np.float64))
            else:
                self.parts_[name] = self._learn_levels(name, column, taken)
        return self

    def transform(self, X: pandas.DataFrame) -> pandas.DataFrame:
        """Return the columns as a classifier takes them, as a frame.

        Parameters
        ----------
        X : pandas.DataFrame
            As in :meth:`fit`.

        Returns
        -------
        pandas.DataFrame
            Its index counts rows from 0.
        """
        import pandas

        encoded: dict[str, Any] = {}
        for name, column in self._add_columns(X).items():
            part = self.parts_[name]
            if isinstance(part, Scale):
                numbers = column.to_numpy(dtype=np.float64)
                if part.fill is not None:
                    numbers = np.where(np.isnan(numbers), part.fill, numbers)
                encoded[name] = (numbers - part.mean) / part.unit
            elif self.indicators:
                words = _as_words(column).to_numpy()
                known = [words == level for level in part.levels]
                if part.has_other:
                    known.append(~np.any(known, axis=0))
                each = zip(part.names, known, strict=True)
                encoded |= {called: values.astype(np.float64) for called, values in each}
            else:
                if self.impute:
                    column = column.cat.add_categories([MISSING]).fillna(MISSING)
                encoded[name] = column.reset_index(drop=True)
        return pandas.DataFrame(encoded)

    def _add_columns(self, X: pandas.DataFrame) -> dict[str, Any]:
        """Return the columns by name, with those that follow from others beside them."""
        import pandas

        columns: dict[str, Any] = {}
        for name, column in X.items():
            columns[name] = column
            if name in self.stamps:
                hours = (column - np.floor(column)) * 24.0
                columns[free_name(f"{name}: hour", X)] = hours
                # The first of January 1970 was a Thursday.
                day = ((np.floor(column) + 3) % 7).fillna(-1).astype(int)
                days = pandas.Categorical.from_codes(day.to_numpy(), list(_WEEKDAYS))
                columns[free_name(f"{name}: weekday", X)] = pandas.Series(days, X.index)
            if name in self.gaps:
                columns[free_name(f"{name}: missing", X)] = column.isna().astype(np.float64)
        return columns

    def _learn_scale(self, numbers: np.ndarray) -> Scale:
        there = numbers[~np.isnan(numbers)]
        fill = float(np.median(there)) if self.impute and len(there) else None
        if fill is not None:
            there = np.where(np.isnan(numbers), fill, numbers)
        if not (self.indicators and self.scale) or len(there) == 0 or np.ptp(there) == 0:
            mean = float(there[0]) if self.indicators and self.scale and len(there) else 0.0
            return Scale(fill, mean, 1.0)
        return Scale(fill, float(there.mean()), float(there.std()))

    def _learn_levels(self, name: str, column: pandas.Series, taken: set[str]) -> Levels:
        """Return the levels that have an indicator; of too many, the most common ones."""
        words = _as_words(column)
        counts = words.value_counts().sort_index().sort_values(ascending=False, kind="stable")
        has_other = len(counts) > MAX_CATEGORIES
        levels = sorted(counts.index[: MAX_CATEGORIES - 1] if has_other else counts.index)
        names = []
        for level in [*levels, *["(other)"] * has_other]:
            # An indicator may be called as another column is: "town_a" of "town".
            names.append(free_name(f"{name}_{level}", taken))
            taken.add(names[-1])
        return Levels(tuple(levels), has_other, tuple(names))


def _as_words(column: pandas.Series) -> pandas.Series:
    """Return categories of any type as text, with a name for a missing one."""
    return column.astype(object).map(str).where(column.notna(), MISSING)
