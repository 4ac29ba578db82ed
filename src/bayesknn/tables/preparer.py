"""What each column of a training table is, decided once and used for every other table.

A column of numbers is measured, and so are dates, in days, and times of day, in hours; one of text
or booleans is compared; and the others tell nothing about the classes or cannot be compared:

- a column with one value, or none, is left out;
- a column is left out as an identifier if its name says so and most of its values differ, or if it
  counts the rows by one;
- a column of numbers with a few words in it is rejected, as is an infinite or absurdly large one;
- dates are rejected if it is not known which part is the day and which the month;
- a missing value is rejected, unless values are to be filled in or the classifier takes them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from bayesknn._estimator import DOCUMENTATION, DocumentedMixin
from bayesknn._utils.checks import LARGEST
from bayesknn._utils.words import count, join, percent, shorten
from bayesknn.tables.encoder import MAX_CATEGORIES, ColumnEncoder, Levels
from bayesknn.tables.kinds import (
    Date,
    Number,
    Text,
    Truth,
    as_text,
    check_words,
    describe_categories,
    kind_of,
    learn_kinds,
)
from bayesknn.tables.remarks import NOTE, WARNING, Remark, check_codes, leave_out, on_column
from bayesknn.tables.table import Table, as_table, find_column, naming_file, split_names

if TYPE_CHECKING:
    import pandas

# A shorter column of distinct values may be distinct by chance.
MIN_ROWS = 20
# Rows with and rows without a number that an indicator of missing values needs. Fewer teach
# nothing; more leave columns out of which a classifier could learn.
_MIN_GAPS = 20
_CALLED_IDENTIFIER = re.compile(
    r"(?:^|[_ .-])(?i:id)$|^(?i:id)[_ .-]|[a-z](?:Id|ID)$|^(?i:name|uuid|guid)$"
)
# What a column of row numbers is called: nothing, by the writer of a table or by us.
_NAMELESS = r"(?i)column \d+'*|unnamed: \d+|level_0|index|row[_ ]?(?:names?|num(?:ber)?)?"
_NEVERTHELESS = "(--keep uses it nevertheless)"
# Options that leave columns out, and the reason that is then given.
_LEFT_OUT = {
    "--drop": "as you asked",
    "--group": "it names groups of rows, as you said",
    "--weights": "it holds the weights of the rows, as you said",
    "--id": "it is an identifier, as you said",
}


class Learned(NamedTuple):
    """What was learned of a column of the training table.

    Attributes
    ----------
    kind : Kind
    reason : str
        Why it is left out; empty for a column in use.
    low, high : float
        The least and the largest number, dates in days; 0 of categories.
    values : str
        Its values, summed up for people.
    n_values : int
        How many values differ.
    """

    kind: Any
    reason: str
    low: float
    high: float
    values: str
    n_values: int


class TablePreparer(DocumentedMixin, TransformerMixin, BaseEstimator):
    """Turn tables of any types and formats into what a classifier takes.

    ``fit`` learns the kind, format, categories and range of each column, and ``transform`` reads
    any other table in the same way, or raises ValueError with the column and the row.

    Parameters
    ----------
    drop : sequence of str
        Columns to leave out.
    keep : sequence of str
        Columns to use although they look like identifiers.
    categorical : sequence of str
        Columns of numbers that are mere codes.
    numeric : sequence of str
        Columns of text, such as codes with leading zeros, to read as numbers.
    identifiers : sequence of str
        Columns that tell rows apart: they are left out and stand beside the predictions.
    group, weights : str
        Columns that name groups of rows and that hold weights of rows: they are left out, and
        :class:`TableModel` fits with them. New rows are scored by whole groups, and without the
        column of weights.
    date_order : {"", "year", "month", "day"}
        What comes first in dates that can be read in two ways.
    missing : sequence of str
        Further words for a missing value.
    impute : bool, default=False
        Whether missing values are filled in, numbers with the median. They are rejected otherwise,
        unless ``keeps_missing``.
    keeps_missing : bool, default=False
        Whether missing values are handed on.
    indicators, scale : bool
        See :class:`ColumnEncoder`. A :class:`TableModel` sets ``indicators`` and ``keeps_missing``
        by its classifier, whatever is given here.
    ignore : sequence of str
        Codes of remarks that are not made.

    Attributes
    ----------
    columns_ : dict of str to Learned
        Every column but the target, in the order of the table.
    identifiers_ : list of str
        Columns that tell the rows apart.
    remarks_ : list of Remark
        What there is to know about the training table.
    encoder_ : ColumnEncoder
    target_ : str
        The column of the classes, empty if the table has none.
    target_kind_ : Kind or None
    merged_ : mapping of str to str
        Names of classes with one row that became one class, and the name of that class.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesknn.tables.preparer import TablePreparer
    >>> train = pd.DataFrame({"day": ["31.12.2024", "1.1.2025"], "x": [0.5, 1.5]})
    >>> preparer = TablePreparer().fit(train)
    >>> preparer.transform(pd.DataFrame({"x": [2.0], "day": ["2.1.2025"]}))
           day    x
    0  20090.0  2.0
    """

    _doc_link_template = f"{DOCUMENTATION}/api/bayesknn.report.{{estimator_name}}.html"
    # The value for classifiers that were fitted without a preparer, and for earlier saved models.
    merged_: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        *,
        drop: Sequence[str] = (),
        keep: Sequence[str] = (),
        categorical: Sequence[str] = (),
        numeric: Sequence[str] = (),
        identifiers: Sequence[str] = (),
        group: str = "",
        weights: str = "",
        date_order: str = "",
        missing: Sequence[str] = (),
        impute: bool = False,
        keeps_missing: bool = False,
        indicators: bool = False,
        scale: bool = True,
        ignore: Sequence[str] = (),
    ):
        self.drop = drop
        self.keep = keep
        self.categorical = categorical
        self.numeric = numeric
        self.identifiers = identifiers
        self.group = group
        self.weights = weights
        self.date_order = date_order
        self.missing = missing
        self.impute = impute
        self.keeps_missing = keeps_missing
        self.indicators = indicators
        self.scale = scale
        self.ignore = ignore

    def fit(self, X: Any, y: Any = None) -> TablePreparer:
        """Learn what each column is.

        Parameters
        ----------
        X : Table, frame, array or list of rows
            The training rows, without their classes.
        y : ignored

        Returns
        -------
        TablePreparer
            Itself.
        """
        self.learn(X)
        return self

    def learn(self, X: Any) -> pandas.DataFrame:
        """Learn what each column is, and return the training rows as :meth:`measure` does."""
        table = as_table(X, self.missing)
        ignored = check_codes(self.ignore)
        with naming_file(table.file):
            asked = self._read_options(table)
            kinds, about = learn_kinds(
                table.frame,
                reads_numbers=table.reads_numbers,
                has_semicolons=table.has_semicolons,
                as_categories=asked["--categorical"],
                as_numbers=asked["--numeric"],
                date_order=self.date_order,
            )
            self.target_, self.target_kind_ = table.target, table.target_kind
            self.missing_, self.merged_ = table.missing, table.merged
            self.fills_: tuple[str, ...] = ()
            self.identifiers_: list[str] = []
            remarks, reasons = self._judge_columns(table.frame, kinds, asked)
            used = {
                name: kind.learn(table.frame[name]) if isinstance(kind, Text) else kind
                for name, kind in kinds.items()
                if name not in reasons
            }
            about = [each for each in about if not each.column or each.column in used]
            measured = self._read(table.frame, used)
            self.columns_ = _sum_up_columns(table.frame, kinds | used, reasons, measured)
            _check_missing(measured, self.impute or self.keeps_missing)
            if not used:
                listed = "; ".join(f"{name!r}: {reason}" for name, reason in reasons.items())
                raise ValueError(
                    f"no column is left to classify by: {listed or 'there is no other'}"
                )
        n_missing = measured[self.numeric_].isna().sum()
        is_gap = n_missing.between(_MIN_GAPS, len(measured) - _MIN_GAPS)
        self.encoder_ = ColumnEncoder(
            indicators=self.indicators,
            scale=self.scale,
            impute=self.impute,
            stamps=[n for n, k in used.items() if isinstance(k, Date) and k.has_time],
            gaps=n_missing.index[is_gap].tolist(),
        ).fit(measured)
        gaps = self._describe_gaps(measured, "")
        self.remarks_ = leave_out([*table.remarks, *about, *remarks, *gaps], ignored)
        return measured

    @classmethod
    def of_given(cls, frame: pandas.DataFrame, fills: tuple[str, ...]) -> TablePreparer:
        """Return a description of columns that a classifier was fitted to without a preparer.

        Parameters
        ----------
        frame : pandas.DataFrame
            The training rows.
        fills : tuple of two str or empty
            What takes the place of missing numbers and categories, in words.
        """
        preparer = cls(keeps_missing=True, scale=False)
        preparer.identifiers_, preparer.remarks_, preparer.missing_ = [], [], ()
        preparer.target_, preparer.target_kind_, preparer.fills_ = "", None, fills
        # Whatever is neither a number nor a date is a category here.
        kinds: dict[str, Any] = {}
        for name, column in frame.items():
            kind = kind_of(column)()
            if kind.name not in ("number", "date"):
                kind = (kind if kind.name == "truth" else Text()).learn(column)
            kinds[name] = kind
        measured = frame.assign(
            **{name: k.read(frame[name]) for name, k in kinds.items() if k.is_measured}
        )
        preparer.columns_ = _sum_up_columns(frame, kinds, {}, measured)
        return preparer

    def measure(self, X: Any) -> pandas.DataFrame:
        """Return the columns in use: numbers, dates as days, and categories with fixed levels.

        Parameters
        ----------
        X : Table, frame, array or list of rows
            With the columns of training, in any order, and possibly others.

        Returns
        -------
        pandas.DataFrame
            Its index counts the rows from 1. Raise ValueError for a column that is not there, or a
            cell that is not of the kind of its column.
        """
        table = as_table(X, self.missing_)
        kinds = {name: each.kind for name, each in self.columns_.items() if not each.reason}
        with naming_file(table.file):
            measured = self._read(table.frame, kinds)
            _check_missing(measured, self.impute or self.keeps_missing)
        return measured

    def read_left_out(self, X: Any) -> dict[str, pandas.Series]:
        """Return the columns of the training table that are left out, numbers apart from text."""
        frame = as_table(X, self.missing_).frame
        kinds = {name: self.columns_[name].kind for name in self.dropped_}
        return {
            name: kind.read(frame[name]) if kind.name == "number" else as_text(frame[name])
            for name, kind in kinds.items()
            if kind.name in ("number", "text")
        }

    def read_fit_options(self, X: Any) -> dict[str, Any]:
        """Return the groups and weights of the training rows by argument of ``fit``, if any."""
        read: dict[str, Any] = {}
        if self.group:
            table = as_table(X, self.missing_)
            names = as_text(find_column(table.frame, self.group))
            if (gaps := names.index[names.isna()]).size:
                with naming_file(table.file):
                    raise ValueError(
                        f"--group: column {self.group!r} has no value in "
                        f"{count(len(gaps), 'row')} (first in row {gaps[0]}): give a row that "
                        "belongs to no other a name of its own"
                    )
            read["groups"] = names.to_numpy(dtype=object)
        if self.weights:
            read["sample_weight"] = self.read_numbers(X, self.weights, "--weights")
        return read

    def read_numbers(self, X: Any, name: str, option: str) -> np.ndarray | None:
        """Return the numbers of a training column that an option names; None without a name."""
        if not name:
            return None
        table = as_table(X, self.missing_)
        with naming_file(table.file):
            column, kind = find_column(table.frame, name), self.columns_[name].kind
            if not kind.is_measured:
                held = "neither dates nor numbers" if option == "--time" else "no numbers"
                raise ValueError(f"{option}: column {name!r} holds {held}")
            return kind.read(column).to_numpy(dtype=np.float64)

    def transform(self, X: Any) -> pandas.DataFrame:
        """Return the rows of a table as the classifier takes them.

        Parameters
        ----------
        X : Table, frame, array or list of rows
            As in :meth:`measure`.

        Returns
        -------
        pandas.DataFrame
        """
        return self.encoder_.transform(self.measure(X))

    def examine(self, X: Any, measured: pandas.DataFrame, which: str = "") -> list[Remark]:
        """Return remarks on new rows: missing values, other categories, other ranges.

        Parameters
        ----------
        X : Table, frame, array or list of rows
        measured : pandas.DataFrame
            The same rows (:meth:`measure`).
        which : str
            What the table is called, as in ``"of the test table "``.

        Returns
        -------
        list of Remark
        """
        frame = as_table(X, self.missing_).frame
        remarks = self._describe_gaps(measured, which) + self._describe_shifts(measured, which)
        for name in self.categorical_:
            kind = self.columns_[name].kind
            # A classifier without a preparer is given the cells as they are.
            is_new = (kind.read(frame[name]) == kind.unseen).to_numpy()
            if is_new.any():
                names = kind.name_cells(frame[name][is_new]).unique()[:2]
                examples = " and ".join(repr(shorten(each)) for each in names)
                where = f"in {count(int(is_new.sum()), 'row')}, such as {examples}"
                is_most = 2 * is_new.sum() > measured[name].notna().sum()
                what = f"{which}holds categories that training did not see"
                severity = WARNING if is_most else NOTE
                part = self.encoder_.parts_[name] if self.indicators else None
                is_rare = isinstance(part, Levels) and part.has_other
                then = f": they count as {'rare ones' if is_rare else 'none of the known ones'}"
                remarks.append(on_column("unseen", name, what, where, then, severity))
        return leave_out(remarks, self.ignore)

    @property
    def kinds_(self) -> dict[str, str]:
        """Names of the kinds of the columns in use."""
        return {name: each.kind.name for name, each in self.columns_.items() if not each.reason}

    @property
    def dropped_(self) -> dict[str, str]:
        """Columns left out, and why."""
        return {name: each.reason for name, each in self.columns_.items() if each.reason}

    @property
    def numeric_(self) -> list[str]:
        """Columns that are measured."""
        return [name for name in self.kinds_ if self.columns_[name].kind.is_measured]

    @property
    def categorical_(self) -> list[str]:
        """Columns that are compared."""
        return [name for name in self.kinds_ if not self.columns_[name].kind.is_measured]

    def _read_options(self, table: Table) -> dict[str, list[str]]:
        """Return the columns named by each option; reject others and options that contradict."""
        frame = table.frame
        asked = {
            option: split_names(names, frame.columns)
            for option, names in {
                "--categorical": self.categorical,
                "--numeric": self.numeric,
                "--drop": self.drop,
                "--keep": self.keep,
                "--id": self.identifiers,
                "--group": [self.group] if self.group else [],
                "--weights": [self.weights] if self.weights else [],
            }.items()
        }
        for names in asked.values():
            for name in names:
                if name == table.target and name not in frame:
                    raise ValueError(f"{name!r} is the target; it cannot be a feature as well")
                find_column(frame, name)
        pairs = [*product(_LEFT_OUT, ("--categorical", "--keep", "--numeric"))]
        for out, used in [*pairs, ("--numeric", "--categorical")]:
            if both := [name for name in asked[used] if name in asked[out]]:
                raise ValueError(f"{both[0]!r} is named by {out} and by {used}; take one away")
        return asked

    def _judge_columns(
        self, frame: pandas.DataFrame, kinds: dict[str, Any], asked: dict[str, list[str]]
    ) -> tuple[list[Remark], dict[str, str]]:
        """Return remarks, and why columns are left out; keep those that identify rows."""
        remarks: list[Remark] = []
        reasons: dict[str, str] = {}
        is_called = {name for option in ("--categorical", "--keep") for name in asked[option]}
        for name, column in frame.items():
            kind, reason = kinds[name], ""
            if why := [_LEFT_OUT[option] for option in _LEFT_OUT if name in asked[option]]:
                reason = why[0]
                self.identifiers_ += [name] * (name in asked["--id"])
            else:
                if isinstance(kind, Text) and name not in asked["--categorical"]:
                    check_words(as_text(column))
                reason = _reason_to_drop(column, kind)
                if not reason and name not in asked["--keep"]:
                    reason = _find_identifier(column, kind)
                    self.identifiers_ += [name] * bool(reason)
                if reason:
                    what = f"is left out: {reason}"
                    remarks.append(on_column("column-dropped", name, what))
            if reason:
                reasons[name] = reason
                continue
            remarks += self._describe_use(column, kind, name in asked["--keep"], name in is_called)
        return remarks, reasons

    def _describe_use(
        self, column: pandas.Series, kind: Any, is_kept: bool, is_asked: bool
    ) -> list[Remark]:
        """Return remarks on what a user may not expect of a column in use."""
        name, n_values = str(column.name), column.nunique()
        if isinstance(kind, Date):
            return [on_column("dates", name, "holds dates: they are measured in days")]
        if _CALLED_IDENTIFIER.search(name) and n_values > MIN_ROWS:
            what = (
                "is named like an identifier and is used: pass --drop to leave it out, or --group "
                "if rows of the same value belong together"
            )
            is_told = not (is_kept and kind.is_measured)
            return [on_column("identifier", name, what)] if is_told else []
        if not isinstance(kind, Text) or isinstance(kind, Truth):
            return []
        remarks = []
        if not is_asked and (what := describe_categories(as_text(column))):
            remarks.append(on_column("numbers-as-categories", name, what))
        if not is_asked and len(column) >= MIN_ROWS and n_values > 0.9 * len(column):
            what = "holds text that differs in nearly every row, which tells nothing about new rows"
            then = ": pass --id to have it beside the predictions, or --drop"
            remarks.append(on_column("text-differs", name, what, then=then, severity=WARNING))
        elif self.indicators and n_values > MAX_CATEGORIES:
            what = (
                f"has {n_values:,} categories: the {MAX_CATEGORIES - 1} most common ones keep an "
                "indicator of their own, the others share one"
            )
            remarks.append(on_column("categories-merged", name, what))
        return remarks

    def _read(self, frame: pandas.DataFrame, kinds: dict[str, Any]) -> pandas.DataFrame:
        """Return the columns of these kinds, measured."""
        import pandas

        columns = {}
        for name, kind in kinds.items():
            column = find_column(frame, name)
            columns[name] = kind.read(column)
            if isinstance(kind, Number):
                columns[name] = columns[name].astype(np.float64)
                _check_finite(columns[name])
        return pandas.DataFrame(columns, index=frame.index)

    def _describe_gaps(self, measured: pandas.DataFrame, which: str) -> list[Remark]:
        """Return remarks on missing values, those of numbers first."""
        fills: tuple[str, ...] = ("with its median", "with a category of its own")
        if self.keeps_missing:
            fills = self.fills_ or ("with its mean", "with a category of its own")
        gaps = measured.isna().sum()
        remarks = []
        for names, fill in zip((self.numeric_, self.categorical_), fills, strict=True):
            for name in names:
                if not gaps[name]:
                    continue
                if gaps[name] == len(measured):
                    what = f"{which}has no value in any row and had some in training"
                    then = ": check that it is the same column"
                    remarks.append(on_column("column-empty", name, what, "", then, WARNING))
                    continue
                where = f"in {count(int(gaps[name]), 'row')}"
                remarks.append(
                    on_column("gaps", name, f"{which}has no value", where, f": filled {fill}")
                )
        return remarks

    def _describe_shifts(self, measured: pandas.DataFrame, which: str) -> list[Remark]:
        """Return remarks on columns that hold many values outside the range of training."""
        remarks = []
        for name in self.numeric_:
            learned, values = self.columns_[name], measured[name].dropna()
            outside = values[~values.between(learned.low, learned.high)]
            # A few new rows lie beyond those of training by chance.
            if len(outside) > 0.1 * len(values):
                one, low, high = map(
                    learned.kind.show, (outside.iloc[0], learned.low, learned.high)
                )
                where = f"in {len(outside):,} of {count(len(values), 'row')}, such as {one}"
                where += f" (training: {low} to {high})"
                what = f"{which}holds values outside the range of training"
                remarks.append(on_column("column-shifted", name, what, where, "", WARNING))
        return remarks


def _reason_to_drop(column: pandas.Series, kind: Any) -> str:
    """Return why a column cannot be used, empty if it can; reject what is neither."""
    if column.isna().all():
        return "it has no value in any row"
    if kind.name == "other":
        raise ValueError(
            f"column {column.name!r} holds {column.dtype} values, neither numbers nor categories: "
            f"pass --drop {column.name!r} to leave it out"
        )
    return "it has the same value in every row" if column.nunique(dropna=False) == 1 else ""


def _find_identifier(column: pandas.Series, kind: Any) -> str:
    """Return why a column looks like an identifier of rows, empty if it does not."""
    n, n_values = len(column), column.nunique()
    many, name = n >= MIN_ROWS, str(column.name)
    if isinstance(kind, Number) and not column.hasnans:
        values = kind.read(column).to_numpy(dtype=np.float64)
        if n_values == n and np.all(np.floor(values) == values):
            steps = np.diff(values)
            # Of rows that were taken out there are gaps.
            counts_by_one = np.all(steps > 0) and np.sum(steps == 1) > 0.9 * len(steps)
            counts_rows = np.ptp(values - column.index.to_numpy()) == 0
            if re.fullmatch(_NAMELESS, name) or (many and (counts_by_one or counts_rows)):
                return f"it is a row number {_NEVERTHELESS}"
        elif not np.all(np.floor(values) == values):
            return ""
    elif not isinstance(kind, Text) or isinstance(kind, Truth):
        return ""
    if _CALLED_IDENTIFIER.search(name) and many and n_values > 0.5 * n:  # some repeat
        return f"it is named like an identifier, and most of its values differ {_NEVERTHELESS}"
    return ""


def _check_finite(column: pandas.Series) -> None:
    far = column[column.abs() > LARGEST]
    if len(far):
        raise ValueError(
            f"column {column.name!r} holds {far.iloc[0]:g} in row {far.index[0]}, too large to "
            "measure distances by; correct it, or divide the column"
        )


def _check_missing(measured: pandas.DataFrame, may_miss: bool) -> None:
    """Raise ValueError about missing values, all columns that have some at once."""
    gaps = {name: measured.index[measured[name].isna()] for name in measured}
    gaps = {name: rows for name, rows in gaps.items() if len(rows)}
    if may_miss or not gaps:
        return
    apart = any("," in name for name in gaps)
    drop = drop_options(gaps if apart else [",".join(gaps)])
    listing = "; ".join(
        f"{name!r} in {len(rows):,} of {len(measured):,} rows (first in row {rows[0]})"
        for name, rows in gaps.items()
    )
    raise ValueError(
        f"{count(len(gaps), 'column has', 'columns have')} missing values: {listing}: fill them "
        f"in, pass {drop}, or pass --impute when fitting"
    )


def drop_options(names: Iterable[str]) -> str:
    """Return the options that leave columns out, for a shell, in one line whatever their names."""
    words = shlex.join(f"--drop={name}" for name in names)
    # Within quotes, where all letters stand that a shell or a terminal could take for more.
    return "".join(c if c.isprintable() else f"'$'{ascii(c)[1:-1]}''" for c in words)


def _sum_up_columns(
    frame: pandas.DataFrame,
    kinds: dict[str, Any],
    reasons: dict[str, str],
    measured: pandas.DataFrame,
) -> dict[str, Learned]:
    """Return the ranges of the columns in use, and the values of all, for people."""
    columns = {}
    for name, kind in kinds.items():
        low, high, n_values = 0.0, 0.0, 0
        if reason := reasons.get(name, ""):
            values = _sum_up_words(as_text(frame[name]))
        else:
            n_values = measured[name].nunique()
            if kind.is_measured:
                low, high = float(measured[name].min()), float(measured[name].max())
                values = _sum_up(measured[name], kind)
            else:
                values = _sum_up_words(kind.name_cells(frame[name]))
        columns[name] = Learned(kind, reason, low, high, values, n_values)
    return columns


def _sum_up(numbers: pandas.Series, kind: Any) -> str:
    """Return the range and median of a column that is measured."""
    there = numbers.dropna()
    missing = f"; {len(numbers) - len(there):,} missing" if len(there) < len(numbers) else ""
    if isinstance(kind, Number):
        # Of halves, since the sum of two large values may be too large.
        ends = (there.min(), 2 * (there / 2).median(), there.max())
        low, middle, high = (f"{each:.4g}" for each in ends)
        return (f"{low} to {high}, median {middle}" if low != high else low) + missing
    return f"{kind.show(there.min())} to {kind.show(there.max())}{missing}"


def _sum_up_words(words: pandas.Series) -> str:
    """Return the most common values of a column and their proportions."""
    there = words.dropna()
    if len(there) == 0:
        return "none"
    counts = there.value_counts()
    common = [f"{shorten(name)} ({percent(n / len(there))})" for name, n in counts[:3].items()]
    more = f" and {len(counts) - 3:,} more" if len(counts) > 3 else ""
    missing = f"; {len(words) - len(there):,} missing" if len(there) < len(words) else ""
    return join(common) + more + missing
