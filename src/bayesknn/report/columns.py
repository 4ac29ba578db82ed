"""What each column of a training table is, decided once and told in words.

A column of numbers is numeric, and so are dates, as days; one of text or truth values is
categorical; and the others say nothing about the classes or cannot be compared:

- a column with one value, or none, is left out;
- a column of row numbers (whole, all different, without a name or in order), one that is called an
  identifier and mostly differs, or one of words that are almost all different is an identifier
  and is left out;
- a column of numbers with a few words in it is refused, as is an infinite or absurdly large one;
- dates are refused where it is not known which part is the day and which the month;
- a missing value is refused, unless values are to be filled in.

Rows without a class are left out, and so are those of a class that no other row has. What makes
results look better than they are is warned about: columns that give the class away, classes that
differ in spelling, copies of rows, classes that change with time.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from bayesknn._utils.checks import LARGEST, category_name
from bayesknn.report import reading
from bayesknn.report.reading import Table, as_table, split_names
from bayesknn.report.words import (
    MAX_LISTED,
    count,
    free_name,
    join,
    merge_notes,
    say_of_columns,
    shorten,
)

if TYPE_CHECKING:
    import pandas

# The kinds of column (``reading``) that distances measure; the others they compare.
NUMERIC = ("number", "date")
# One-hot indicators a categorical column may have; rarer categories share the last one.
MAX_CATEGORIES = 20
# A shorter column of distinct values may be distinct by chance.
_MIN_ROWS_OF_IDENTIFIER = 20
_CALLED_IDENTIFIER = re.compile(r"(?:^|[_ .-])(?i:id)$|^(?i:id)[_ .-]|[a-z](?:Id|ID)$")
# Options that leave columns out, and what is then said of them.
_LEFT_OUT = {
    "--drop": "as you asked",
    "--group": "it names groups of rows, as you said",
    "--id": "it is an identifier, as you said",
}


@dataclass
class ColumnPlan:
    """Which columns are used, and how.

    Attributes
    ----------
    target : str
        The column that holds the classes.
    kinds : dict of str to str
        The columns in use, in the order of the table: ``"number"``, ``"date"``, ``"truth"`` or
        ``"text"``.
    dropped : dict of str to str
        The columns left out, and why.
    identifiers : list of str
        Those of them that tell rows apart.
    messages : list of str
        What a user should know, in sentences.
    """

    target: str
    kinds: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    identifiers: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def numeric(self) -> list[str]:
        """The columns of numbers and dates."""
        return [name for name, kind in self.kinds.items() if kind in NUMERIC]

    @property
    def categorical(self) -> list[str]:
        """The columns of words and truth values."""
        return [name for name, kind in self.kinds.items() if kind not in NUMERIC]

    @property
    def used(self) -> list[str]:
        """The columns that the classifier sees."""
        return [*self.numeric, *self.categorical]


def plan_columns(
    table: Table | pandas.DataFrame,
    target: str,
    *,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    group: str = "",
    impute: bool = False,
    max_categories: int | None = MAX_CATEGORIES,
) -> ColumnPlan:
    """Decide from the training table what each of its columns is.

    Parameters
    ----------
    table : Table or pandas.DataFrame
        The training table. Rows without a class count only where identifiers are looked for.
    target : str
        The column that holds the classes.
    categorical : sequence of str
        Columns whose numbers are mere codes, and which were read as text.
    drop : sequence of str
        Columns to leave out.
    keep : sequence of str
        Columns to use although they look like identifiers.
    identifiers : sequence of str
        Columns that tell rows apart: they are left out and stand beside the predictions.
    group : str
        A column that says which rows belong together: it is left out, since new rows are of other
        groups.
    impute : bool, default=False
        Whether missing values will be filled in; they are refused otherwise.
    max_categories : int, optional
        Above this a message says that rare categories share an indicator; None is silent.

    Returns
    -------
    ColumnPlan
    """
    table = as_table(table)
    frame = table.frame
    asked = {
        option: split_names(names, frame.columns)
        for option, names in {
            "--categorical": categorical, "--drop": drop, "--keep": keep, "--id": identifiers,
            "--group": [group] if group else [],
        }.items()
    }  # fmt: skip
    _check_asked(frame, target, asked)
    plan = ColumnPlan(target)
    notes: list[tuple[str, str]] = []
    rows = frame[find_column(frame, target).notna()]
    for name in frame.columns.drop(target):
        if why := [_LEFT_OUT[option] for option in _LEFT_OUT if name in asked[option]]:
            plan.dropped[name] = why[0]
            plan.identifiers += [name] * (name in asked["--id"])
            continue
        column = rows[name]
        kind = "text" if name in asked["--categorical"] else table.kinds[name]
        if kind == "text" and name not in asked["--categorical"]:
            _refuse_dates(column)
            _refuse_words(column)
        reason = _reason_to_drop(column, kind)
        if not reason and name not in asked["--keep"]:
            reason = _find_identifier(frame[name], kind)
            plan.identifiers += [name] * bool(reason)
        if reason:
            plan.dropped[name] = reason
            notes.append((name, f"is left out: {reason}"))
            continue
        if kind == "number":
            _check_finite(column)
        plan.kinds[name] = kind
        message = _describe_use(column, kind, max_categories, name in asked["--categorical"])
        if message and not (name in asked["--keep"] and kind == "number"):
            notes.append((name, message))
    plan.messages += merge_notes(notes)
    _check_missing(rows[plan.used], impute)
    if not plan.used:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in plan.dropped.items())
        raise ValueError(f"no column is left to classify by: {reasons or 'there is no other'}")
    return plan


def _check_asked(frame: pandas.DataFrame, target: str, asked: dict[str, list[str]]) -> None:
    """Refuse columns that are not there, and options that contradict each other."""
    for names in asked.values():
        for name in names:
            find_column(frame, name)
            if name == target:
                raise ValueError(f"{name!r} is the target; it cannot be a feature as well")
    for out, used in product(_LEFT_OUT, ("--categorical", "--keep")):
        if both := [name for name in asked[used] if name in asked[out]]:
            raise ValueError(f"{both[0]!r} is named by {out} and by {used}; take one away")


def take_classes(
    table: Table, target: str, rare: str
) -> tuple[pandas.DataFrame, np.ndarray, list[str]]:
    """Take the rows that have a class that can be learned, and their classes.

    Parameters
    ----------
    table : Table
    target : str
    rare : {"drop", "merge", "error"}
        What becomes of classes with a single row: leave their rows out, make them one class, or
        refuse the table.

    Returns
    -------
    frame : pandas.DataFrame
        The rows, the target column included.
    classes : ndarray of shape (n,)
        int64 where all of them are whole numbers, str otherwise.
    notes : list of str
        What was left out.
    """
    column, notes = find_column(table.frame, target), []
    there = column.notna()
    if not there.any():
        raise ValueError(f"the target {target!r} has no value in any row")
    frame, classes = table.frame[there], _as_classes(column[there], table.kinds[target])
    if without := column.index[~there].tolist():
        left_out = f"{count(len(without), 'row')} without a value in {target!r} left out"
        notes.append(f"{left_out}: {join(without, 5)}")
    names, labels, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    is_alone = sizes[labels] == 1
    alone = [str(name) for name in names[sizes == 1].tolist()]
    if not alone:
        return frame, classes, notes
    similar = find_similar_names(map(str, names.tolist()))
    hints = "".join(f"; {_list(group)} differ only in case or spaces" for group in similar)
    what = f"{count(len(alone), 'class', 'classes')} of {target!r} with one row, {_list(alone)},"
    if rare == "error":
        raise ValueError(
            f"there {'is' if len(alone) == 1 else 'are'} {what} and every class needs two: --rare "
            f"drop leaves such rows out, --rare merge makes them one class{hints}"
        )
    if rare == "merge" and len(alone) > 1:
        other = free_name("other", names.astype(str).tolist())
        merged = np.where(is_alone, other, classes.astype(str))
        return frame, merged, [*notes, f"{what} are one class, {other!r}"]
    done = "is left out (--rare error refuses it)"
    if len(alone) > 1:
        done = "are left out (--rare merge makes them one class)"
    return frame[~is_alone], classes[~is_alone], [*notes, f"{what} {done}{hints}"]


def _as_classes(column: pandas.Series, kind: str) -> np.ndarray:
    """Return classes as whole numbers or as text; refuse what measures rather than names."""
    target, n = f"the target {str(column.name)!r}", len(column)
    regression = (
        "this looks like regression, and bayesknn classifies; cut the target into classes first"
    )
    if kind in ("date", "other"):
        held = "dates" if kind == "date" else str(column.dtype)
        raise ValueError(f"{target} holds {held}, which names no classes")
    if kind != "number":
        if column.nunique() == n:
            raise ValueError(f"{target} is different in every row: it names no classes")
        return column.to_numpy(dtype=object).astype(str)
    values = column.to_numpy()
    if values.dtype.kind not in "iu":  # whole numbers beyond 2**53 would lose digits
        values = values.astype(np.float64)
    whole = np.isfinite(values) & (values == np.floor(values))
    if not whole.all():
        raise ValueError(f"{target} holds {values[~whole][0]:.10g}, a decimal number: {regression}")
    too_large = np.abs(values.astype(np.float64)) >= 2.0**63
    if too_large.any():
        raise ValueError(
            f"{target} holds {values[too_large][0]:g}: a whole number that names a class has at "
            "most 18 digits"
        )
    if (n_classes := len(np.unique(values))) > max(50, n**0.5):
        raise ValueError(f"{target} has {n_classes:,} different values in {n:,} rows: {regression}")
    return values.astype(np.int64)


def find_column(frame: pandas.DataFrame, name: str) -> pandas.Series:
    """Return a column, or say which there are."""
    if name in frame.columns:
        return frame[name]
    # Whatever the case: the most common error of all.
    lower = {str(column).lower(): column for column in frame.columns}
    close = [lower[each] for each in get_close_matches(name.lower(), list(lower), 1)]
    hint = f"; did you mean {close[0]!r}?" if close else "."
    shown = join(list(map(repr, frame.columns))) + reading.question_header(frame.columns)
    raise ValueError(f"there is no column {name!r}{hint} The columns are {shown}")


@contextmanager
def naming_file(file: str) -> Iterator[None]:
    """Name the file that a table was read from, if it was, in errors about it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{file}: {error}" if file else str(error)) from None


def accept_rows(
    table: Table | pandas.DataFrame, kinds: Mapping[str, str], *, impute: bool = False
) -> pandas.DataFrame:
    """Return a new table's rows, or refuse what lacks a column or is not of the training's kind.

    Parameters
    ----------
    table : Table or pandas.DataFrame
        Read with these kinds (:func:`read_table`).
    kinds : mapping of str to str
        The columns of training and their kinds.
    impute : bool, default=False
        Whether missing values will be filled in; they are refused otherwise.

    Returns
    -------
    pandas.DataFrame
        With the further columns of the table, and categories called as in training.
    """
    table = as_table(table)
    frame = table.frame
    for name, kind in kinds.items():
        column = find_column(frame, name)
        if kind in NUMERIC and table.kinds[name] != kind and column.notna().any():
            odd = column[_find_words(column)] if table.kinds[name] == "text" else column.dropna()
            example = odd if len(odd) else column.dropna()
            raise ValueError(
                f"column {name!r} held {kind}s in training; here it holds "
                f"{_quote(example.iloc[0])} in row {example.index[0]}"
            )
        if kind == "number":
            _check_finite(column)
    _check_missing(frame[list(kinds)], impute)
    return name_categories(frame, kinds)


def as_measured(frame: pandas.DataFrame, kinds: Mapping[str, str]) -> pandas.DataFrame:
    """Return the columns in use, dates as days since the beginning of 1970."""
    import pandas

    columns = frame[list(kinds)]
    dates = [name for name, kind in kinds.items() if kind == "date"]
    epoch, day = pandas.Timestamp(0, tz="UTC"), pandas.Timedelta(days=1)
    days = {name: (pandas.to_datetime(columns[name], utc=True) - epoch) / day for name in dates}
    return columns.assign(**days) if dates else columns


def name_categories(frame: pandas.DataFrame, kinds: Mapping[str, str]) -> pandas.DataFrame:
    """Return a table whose categories have one name each, however they are written or typed."""
    columns = [name for name, kind in kinds.items() if kind not in NUMERIC and name in frame]
    return frame.assign(
        **{
            name: reading.as_text(frame[name].map(category_name, na_action="ignore"))
            for name in columns
        }
    )


def as_words(columns: pandas.DataFrame) -> pandas.DataFrame:
    """Return measured columns with categories of any type as text, which encoders take."""
    mixed = columns[[name for name in columns if columns[name].dtype == object]]
    return columns.assign(**mixed.map(str).where(mixed.notna(), np.nan))


def _describe_use(column: pandas.Series, kind: str, max_categories: int | None, asked: bool) -> str:
    """Say what a user may not expect of a column in use, or nothing."""
    n_values = column.nunique()
    if kind == "date":
        return "holds dates: they are measured in days"
    if _CALLED_IDENTIFIER.search(str(column.name)) and n_values > _MIN_ROWS_OF_IDENTIFIER:
        return (
            "is named like an identifier and is used: pass --drop to leave it out, or --group if "
            "rows of the same value belong together"
        )
    if kind == "number":
        return ""
    text = ""
    if not asked and kind == "text" and not _find_words(column).any():
        zeros = "with leading zeros" if column.str.match(reading.PADDED).any() else "as text"
        text = f"holds numbers {zeros}: they are taken as categories"
    if max_categories is not None and n_values > max_categories:
        text += "; it " * bool(text) + (
            f"has {n_values:,} categories: the {max_categories - 1} most common ones keep an "
            "indicator of their own, the others share one"
        )
    return text


def _reason_to_drop(column: pandas.Series, kind: str) -> str:
    if column.isna().all():
        return "it has no value in any row"
    if kind == "other":
        raise ValueError(
            f"column {column.name!r} holds {column.dtype} values, neither numbers nor categories: "
            f"pass --drop {column.name!r} to leave it out"
        )
    return "it has the same value in every row" if column.nunique(dropna=False) == 1 else ""


def _find_identifier(column: pandas.Series, kind: str) -> str:
    """Say why a column looks like an identifier of rows, or nothing."""
    nevertheless = "(--keep uses it nevertheless)"
    n, n_values = len(column), column.nunique()
    many = n >= _MIN_ROWS_OF_IDENTIFIER
    if kind == "text" and many and n_values > 0.9 * n:
        return f"nearly all of its values differ, as those of an identifier do {nevertheless}"
    if kind != "number":
        return ""
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.all(np.floor(values) == values):  # nor is a missing one
        return ""
    if n_values == n:
        # In order, perhaps with gaps where rows were taken out.
        in_order = np.all(np.diff(values) > 0) and np.ptp(values) < 2 * n
        # What it is called: nothing, by the writer of a table or by us.
        nameless = r"(?i)column \d+'*|unnamed: \d+|level_0|index|row[_ ]?(?:names?|num(?:ber)?)?"
        if re.fullmatch(nameless, str(column.name)) or (many and in_order):
            return f"it is a row number {nevertheless}"
    if _CALLED_IDENTIFIER.search(str(column.name)) and many and n_values > 0.5 * n:  # some repeat
        return f"it is named like an identifier, and most of its values differ {nevertheless}"
    return ""


def find_leaking_columns(
    frame: pandas.DataFrame, kinds: Mapping[str, str], labels: np.ndarray
) -> list[str]:
    """Name the columns each of which alone predicts the class all but perfectly.

    A row is given the most common class among the other rows of the same value or, where it has no
    such, of the nearest number or of all rows that have a word. Having no value is a value, too.

    Parameters
    ----------
    frame : pandas.DataFrame
        Its columns, dates as numbers (:func:`as_measured`).
    kinds : mapping of str to str
    labels : ndarray of shape (n,)
        Class numbers.
    """
    import pandas

    n, sizes = len(labels), np.bincount(labels)
    # Errors of one row in a hundred, or where a class ends and the next begins, if always saying
    # the most common class errs ten times as often.
    allowed = min(max(0.01 * n, len(sizes) - 1), 0.1 * (n - sizes.max()))
    leaking = []
    for name in kinds if n >= _MIN_ROWS_OF_IDENTIFIER else ():
        # What is missing is a value like others: the cause of death of those who live.
        at, values = pandas.factorize(frame[name], sort=True, use_na_sentinel=False)
        counts = np.zeros((len(values), len(sizes)))
        np.add.at(counts, (at, labels), 1)
        others = counts[at]
        others[np.arange(n), labels] -= 1
        guess = others.argmax(axis=1)
        alone = ~others.any(axis=1)
        if kinds[name] in NUMERIC and len(values) > 1:
            # Missing values stand last, and are near to none.
            below = np.diff(np.asarray(values, dtype=np.float64), prepend=-np.inf)
            below[np.isnan(below)] = np.inf
            nearest = np.arange(len(values)) + np.where(
                below <= np.append(below[1:], np.inf), -1, 1
            )
            guess[alone] = counts[nearest[at[alone]]].argmax(axis=1)
        else:  # as any row that has a value
            there = frame[name].notna().to_numpy()
            guess[alone] = np.bincount(labels[there], minlength=1).argmax()
        if n - np.sum(guess == labels) <= allowed:
            leaking.append(name)
    return leaking


def _find_trends(
    frame: pandas.DataFrame, kinds: Mapping[str, str], labels: np.ndarray
) -> list[str]:
    """Name the dates and the columns that grow with the row along which class frequencies change.

    Between fifths of the rows, by more than chance and by more than next to nothing.
    """
    import pandas
    from scipy.stats import chi2_contingency

    trends = []
    for name, kind in kinds.items():
        column = frame[name]
        grows = kind == "number" and column.is_monotonic_increasing and column.nunique() >= 5
        if (kind == "date" or grows) and column.count() >= 50:
            fifths = np.ceil(5 * column.rank(pct=True))
            counts = pandas.crosstab(fifths, labels).to_numpy()
            if min(counts.shape) > 1:
                test = chi2_contingency(counts)
                size = test.statistic / (counts.sum() * (min(counts.shape) - 1))
                trends += [name] * bool(test.pvalue < 0.001 and size > 0.01)
    return trends


def find_problems(
    frame: pandas.DataFrame,
    plan: ColumnPlan,
    classes: np.ndarray,
    leaking: Sequence[str],
    *,
    ordered: bool = False,
) -> list[str]:
    """Return warnings about what makes results look too good, and about classes spelt in two ways.

    Parameters
    ----------
    frame : pandas.DataFrame
        The rows with a class, as columns in use (:func:`as_measured`).
    plan : ColumnPlan
    classes : ndarray of shape (n,)
    leaking : sequence of str
        The columns that give the class away (:func:`find_leaking_columns`).
    ordered : bool
        Whether the last rows are predicted from those before, which shows a change along time.
    """
    names, labels = np.unique(classes, return_inverse=True)
    problems = []
    for alike in find_similar_names(map(str, names.tolist())):
        n = np.isin(classes.astype(str), alike).sum()
        problems.append(
            f"the classes {_list(alike)} of {plan.target!r} differ only in case or spaces: "
            f"they are taken as {len(alike)} classes; as one it would have {n:,} rows"
        )
    problems += say_of_columns(
        dict.fromkeys(leaking, ""),
        f" alone predicts {plan.target!r} all but perfectly",
        ": make sure that it is known before the class is, or pass " + _drop(leaking[:MAX_LISTED]),
    )
    for name in _find_trends(frame, plan.kinds, labels):
        if name not in leaking and not ordered:
            problems.append(
                f"the classes of {plan.target!r} change along {name!r}, which gives the rows an "
                "order: leave-one-out results may be too good for later rows; pass "
                f"{shlex.join([f'--time={name}'])} (time=... in write_report) to be judged by the "
                "last ones"
            )
    whole = frame.set_axis(range(frame.shape[1]), axis=1).assign(label=labels)
    n_copies = int(whole.duplicated().sum())
    # Where columns have few values, rows are equal by chance.
    n_places = math.prod(int(frame[name].nunique()) for name in frame)
    if n_copies and n_places >= (len(frame) - n_copies) ** 2:
        problems.append(
            f"{n_copies:,} of {len(frame):,} rows {'is a copy' if n_copies == 1 else 'are copies'} "
            "of another row, class included: leave-one-out results are too good if a row was "
            "entered more than once"
        )
    return problems


def find_similar_names(names: Iterable[str]) -> list[list[str]]:
    """Return the groups of names that differ only in case or spaces.

    Examples
    --------
    >>> from bayesknn.report.columns import find_similar_names
    >>> find_similar_names(["Yes", "no", "yes ", "YES"])
    [['Yes', 'yes ', 'YES']]
    """
    groups = defaultdict(list)
    for name in names:
        groups["".join(name.split()).casefold()].append(name)
    return [group for group in groups.values() if len(group) > 1]


def _list(names: Sequence[str]) -> str:
    return join([_quote(name) for name in names])


def _check_finite(column: pandas.Series) -> None:
    far = column[column.astype("float64").abs() > LARGEST]
    if len(far):
        raise ValueError(
            f"column {column.name!r} holds {far.iloc[0]:g} in row {far.index[0]}, too large to "
            "measure distances by; correct it, or divide the column"
        )


def _check_missing(frame: pandas.DataFrame, impute: bool) -> None:
    """Refuse missing values, all columns that have some at once."""
    gaps = {name: frame.index[frame[name].isna()] for name in frame if frame[name].hasnans}
    if impute or not gaps:
        return
    apart = any("," in name for name in gaps)
    drop = _drop(gaps if apart else [",".join(gaps)])
    listing = "; ".join(
        f"{name!r} in {len(rows):,} of {len(frame):,} rows (first in row {rows[0]})"
        for name, rows in gaps.items()
    )
    raise ValueError(
        f"{count(len(gaps), 'column has', 'columns have')} missing values: {listing}: fill them "
        f"in, pass {drop}, or pass --impute when fitting"
    )


def _drop(names: Iterable[str]) -> str:
    """Return the options that leave columns out, for a shell, in one line whatever their names."""
    words = shlex.join(f"--drop={name}" for name in names)
    # Within quotes, where all letters stand that a shell or a terminal could take for more.
    return "".join(c if c.isprintable() else f"'$'{ascii(c)[1:-1]}''" for c in words)


def _quote(value: object) -> str:
    """Return a value from a table as it stands in a message: of a long text both ends."""
    return repr(shorten(value) if isinstance(value, str) else value)


def _refuse_words(column: pandas.Series) -> None:
    """Refuse a text column that is mostly numbers: the words in it are mistakes."""
    words = column[_find_words(column)]
    if 0 < len(words) < column.count() / 2:
        word = words.iloc[0]
        missing = f", pass {shlex.join(['--na', word])} if it is a missing value" * (len(word) < 9)
        raise ValueError(
            f"column {column.name!r} holds numbers and, in {count(len(words), 'row')}, "
            f"words such as {_quote(word)} in row {words.index[0]}: correct them, "
            f"empty the cells{missing}, or pass --categorical {column.name!r}"
        )


def _refuse_dates(column: pandas.Series) -> None:
    """Refuse a text column that is mostly dates: some are not, or none has the year first."""
    words = column.dropna()
    like = words.str.fullmatch(reading.DATE_OF_ANY_KIND)
    if like.sum() > len(words) / 2:
        odd = words[~like] if not like.all() else words
        raise ValueError(
            f"column {column.name!r} holds dates that cannot be read, such as "
            f"{_quote(odd.iloc[0])} in row {odd.index[0]}: write them as 2024-03-31, or pass "
            f"--drop {column.name!r} or --categorical {column.name!r}"
        )


def _find_words(column: pandas.Series) -> np.ndarray:
    """Mark the rows that hold a word and not a number."""
    return (column.notna() & ~column.str.fullmatch(reading.NUMBER, na=True)).to_numpy()
