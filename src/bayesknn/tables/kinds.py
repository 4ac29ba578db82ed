r"""Kinds of columns: each tries to read the cells of a column, and remembers how it did.

A kind is a small immutable value. ``learn_kinds`` finds the kind of every column of a training
table, and the kind then reads the same column of any other table in the same way, or raises an
error that names the row:

- number: ``-1.5``, ``2e-3``, ``12,345.67``, ``1.065,20``, ``$123.45``, ``(12.50)`` (read as -12.5),
  ``12.5%`` (read as 12.5), in the digits of any script. The kind remembers the decimal mark.
  Codes with leading zeros, ``01``, are categories. ``1,234`` could be two numbers: it is read as
  the other columns of the file are, or else as 1234 (as 1.234 between semicolons), with a remark;
- date: ``2024-03-31``, ``31.3.2024``, ``3/31/2024`` or ``Oct 25 2002``, with a time or not, where
  it is clear which part is the day. The kind remembers the order;
- time of day: ``12:30``, ``9:05:10`` or ``9:05 pm``, in hours;
- truth: ``TRUE``, ``true`` or ``True`` and their opposites;
- text: anything else, as categories. The kind remembers the categories of training, which
  ``Text.learn`` gets once it is known which columns are used.

Numbers are read as float64 (columns of whole numbers stay integers), dates as days since the
beginning of 1970, and categories as pandas' Categorical with the categories of training and one
for all others.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from bayesknn._utils.checks import category_name
from bayesknn._utils.words import count, free_name, join, shorten
from bayesknn.tables.remarks import WARNING, Remark, on_column, on_table

if TYPE_CHECKING:
    import pandas

# A code with leading zeros.
PADDED = r"\s*[+-]?0\d"
_CURRENCY = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF)"


def _number(point: str, thousands: str) -> str:
    """Return the pattern of a number with this decimal mark and this thousands separator."""
    sign, money = r"[+−-]?", rf"(?:{_CURRENCY}\s*)?"
    whole = rf"\d{{1,3}}(?:[{thousands}'’ \xa0\u2009\u202f]\d{{3}})+|\d+"
    after = rf"(?:[eE][+-]?\d+)?\s*(?:%|{_CURRENCY})?\s*"
    number = rf"(?:(?:{whole})(?:{point}\d*)?|{point}\d+){after}"
    # Accountants put a number below 0 into brackets.
    return rf"\s*(?:{sign}\s*{money}{sign}{number}|{money}\(\s*{money}{number}\)\s*)"


_POINT, _COMMA = _number(r"\.", ","), _number(",", ".")
# A number in any style.
NUMBER = rf"(?:{_POINT})|(?:{_COMMA})|\s*[+-]?[iI]nf(?:inity)?\s*"
# Three groups of digits, which may be one number or a code such as a telephone number.
_GROUPS = r"\s*\d{1,3} \d{3} \d{3}(?: \d{3})*\s*"
_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s?(?:Z|[+-]\d{2}:?\d{2})?)?"
_DATE = rf"[12]\d{{3}}(?:[-/.]\d{{1,2}}){{1,2}}{_TIME}"
_YEAR_LAST = rf"(\d{{1,2}})[-/.](\d{{1,2}})[-/.]([12]\d{{3}})({_TIME})"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<month>(?i:{'|'.join(_MONTHS)}))[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = rf"(?P<year>[12]\d{{3}})(?P<time>{_TIME})"
_NAMED_MONTHS = (rf"{_MONTH}[ -]{_DAY},?[ -]{_YEAR}", rf"{_DAY}\.?[ -]?{_MONTH},?[ -]?{_YEAR}")
# What stands alone below a table and is a value, not a footer.
MEASURED = rf"{NUMBER}|{_DATE}|{_YEAR_LAST}"
# What a person would call a date, whether or not the order of its parts is known.
_DATE_OF_ANY_KIND = (
    rf"(?i)(?:{_DATE}|\d{{1,2}}([-/.])\d{{1,2}}\1\d{{4}}|\d{{1,2}}/\d{{1,2}}/\d{{2}}"
    rf"|(?:\d{{1,2}}[- .]{{0,2}})?(?:{'|'.join(_MONTHS)})[a-z]*\.?"
    r"[- ,]{0,2}(?:\d{1,2},? )?\d{2,4})\b.*"
)
_CLOCK = r"(?i)\s*(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s?([ap]\.?m\.?)?\s*"


@dataclass(frozen=True)
class Number:
    """A column of numbers.

    Attributes
    ----------
    decimal : str
        ``"."`` or ``","``; empty if the training table does not tell.
    units : tuple of str
        Currencies and ``"%"`` beside the numbers.
    has_groups : bool
        Whether three groups of digits with spaces between are one number.
    """

    decimal: str = ""
    units: tuple[str, ...] = ()
    has_groups: bool = False

    name: ClassVar[str] = "number"
    plural: ClassVar[str] = "numbers"
    is_measured: ClassVar[bool] = True

    def read(self, column: pandas.Series) -> pandas.Series:
        """Return numbers, NaN where one is missing; raise ValueError for other cells.

        Columns of whole numbers stay integers.
        """
        import pandas

        if column.notna().sum() == 0:
            return pandas.Series(math.nan, column.index, name=column.name)
        if not is_text(column):
            if kind_of(column) is not Number:
                raise _wrong(column, column.notna(), self.plural)
            # Whole numbers stay: beyond 2**53 they would lose digits, which class names need.
            return pandas.to_numeric(column) if column.dtype == object else column
        words = column.dropna()
        comma = self.decimal == "," or (
            self.decimal == "" and _all_match(words, _COMMA) and not _all_match(words, _POINT)
        )
        odd = ~words.str.fullmatch(_COMMA if comma else _POINT)
        if not comma:
            odd &= _not_plain(words)
        if not self.has_groups:
            odd |= words.str.fullmatch(_GROUPS)
        mark = {",": " with a decimal comma", ".": " with a decimal point"}.get(self.decimal, "")
        is_other_mark = odd.any() and words[odd].str.fullmatch(NUMBER).any()
        if odd.any():
            raise _wrong(column, odd, self.plural + mark * bool(is_other_mark))
        if comma or _not_plain(words).any():
            return _to_numbers(column, comma)
        return pandas.to_numeric(column)

    def show(self, value: float) -> str:
        """Return a value as it stands in a sentence."""
        return f"{value:.5g}"


@dataclass(frozen=True)
class Date:
    """A column of dates or time stamps.

    Attributes
    ----------
    order : {"", "year", "month", "day"}
        Which part comes first; empty if the training table does not tell.
    has_time : bool
        Whether the time of day differs between rows.
    """

    order: str = ""
    has_time: bool = False

    name: ClassVar[str] = "date"
    plural: ClassVar[str] = "dates"
    is_measured: ClassVar[bool] = True

    def read(self, column: pandas.Series) -> pandas.Series:
        """Return days since the beginning of 1970; raise ValueError for other cells."""
        import pandas

        if is_text(column) and column.notna().any():
            stamps = _parse_dates(column, self.order or _find_order(column.dropna()) or "year")
            odd = column.notna() & stamps.isna()
            if odd.any():
                called = {"month": "the month", "day": "the day"}.get(self.order)
                raise _wrong(column, odd, f"dates, {called} first," if called else self.plural)
        else:
            if column.notna().any() and kind_of(column) is not Date:
                raise _wrong(column, column.notna(), self.plural)
            stamps = pandas.to_datetime(column, utc=True)
        return (stamps - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(days=1)

    def show(self, value: float) -> str:
        """Return a number of days as a date."""
        return str(np.datetime64(math.floor(value), "D"))


@dataclass(frozen=True)
class Time:
    """A column of times of day, without a date."""

    name: ClassVar[str] = "time"
    plural: ClassVar[str] = "times of day"
    is_measured: ClassVar[bool] = True

    def read(self, column: pandas.Series) -> pandas.Series:
        """Return hours from 0 to 24; raise ValueError for other cells."""
        hours = as_text(column).str.extract(_CLOCK)
        numbers = hours[[0, 1, 2]].astype("float64").fillna({2: 0.0})
        half = hours[3].str.lower().str[0]
        hour = numbers[0].where(half.isna(), numbers[0] % 12) + 12.0 * (half == "p")
        is_time = (numbers[0] < 24) & (numbers[1] < 60) & (numbers[2] < 60)
        is_time &= half.isna() | numbers[0].between(1, 12)
        if (odd := column.notna() & ~is_time).any():
            raise _wrong(column, odd, self.plural)
        return hour + numbers[1] / 60 + numbers[2] / 3600

    def show(self, value: float) -> str:
        """Return hours as a time."""
        minutes = round(60 * value)
        return f"{minutes // 60}:{minutes % 60:02d}"


@dataclass(frozen=True)
class Text:
    """A column of categories.

    Attributes
    ----------
    levels : tuple of str
        Those of training, in order.
    is_ordered : bool
        Whether they are listed from low to high.
    """

    levels: tuple[str, ...] = ()
    is_ordered: bool = False

    name: ClassVar[str] = "text"
    plural: ClassVar[str] = "categories"
    is_measured: ClassVar[bool] = False

    @property
    def unseen(self) -> str:
        """The name of all categories that training did not see."""
        return free_name("(new)", self.levels)

    def name_cells(self, column: pandas.Series) -> pandas.Series:
        """Return the names of categories as text, the same however they are written or typed."""
        return as_text(_map_distinct(column, category_name))

    def learn(self, column: pandas.Series) -> Text:
        """Return the same kind with the categories of a training column."""
        declared = getattr(column.dtype, "categories", None)
        names = set(self.name_cells(column).dropna().unique().tolist())
        if declared is None or not column.dtype.ordered:
            return replace(self, levels=tuple(sorted(names)))
        order = [str(category_name(each)) for each in declared]
        levels = tuple(each for each in order if each in names)
        return replace(self, levels=levels, is_ordered=True)

    def read(self, column: pandas.Series) -> pandas.Series:
        """Return the categories of training, and ``unseen`` for others, as a Categorical."""
        import pandas

        names = self.name_cells(column)
        other = names.notna() & ~names.isin(self.levels)
        dtype = pandas.CategoricalDtype([*self.levels, self.unseen], ordered=self.is_ordered)
        return names.mask(other, self.unseen).astype(dtype)


@dataclass(frozen=True)
class Truth(Text):
    """A column of booleans, as categories ``True`` and ``False``."""

    name: ClassVar[str] = "truth"
    plural: ClassVar[str] = "truth values"

    def name_cells(self, column: pandas.Series) -> pandas.Series:
        """Return ``True`` and ``False``; other words stay as they are."""
        words = as_text(column)
        return _truths(words).fillna(words.str.strip()).astype(text_dtype())


@dataclass(frozen=True)
class Other:
    """A column of what distances neither measure nor compare."""

    name: ClassVar[str] = "other"
    plural: ClassVar[str] = "other values"
    is_measured: ClassVar[bool] = False


Kind = Number | Date | Time | Text
# By name, in the order in which columns are listed.
KINDS: dict[str, type[Any]] = {each.name: each for each in (Number, Date, Time, Text, Truth)}


def learn_kinds(
    frame: pandas.DataFrame,
    *,
    reads_numbers: bool = True,
    has_semicolons: bool = False,
    as_categories: Any = (),
    as_numbers: Any = (),
    date_order: str = "",
) -> tuple[dict[str, Any], list[Remark]]:
    """Find the kind of every column of a training table, and how its numbers and dates are written.

    Parameters
    ----------
    frame : pandas.DataFrame
        Cells as text, or typed columns.
    reads_numbers : bool
        Whether text may hold numbers; not where a file or a frame has types.
    has_semicolons : bool
        Whether semicolons separate the fields of the file, so that a comma may be a decimal mark.
    as_categories, as_numbers : collection of str
        Columns whose kind the user gives.
    date_order : {"", "year", "month", "day"}
        Order of dates that can be read in two ways.

    Returns
    -------
    kinds : dict of str to Kind
    remarks : list of Remark
    """
    kinds: dict[str, Any] = {}
    remarks: list[Remark] = []
    text = {}
    for name, column in frame.items():
        if name in as_categories:
            kinds[name] = Truth() if _is_truth(column) else Text()
        elif is_text(column):
            text[name] = as_text(column)
        else:
            kinds[name] = kind_of(column)()
            if kinds[name].name == "date":
                kinds[name] = Date(has_time=_has_time(column))
    for name in as_numbers:
        if name in text and not text[name].dropna().str.fullmatch(NUMBER).all():
            odd = ~text[name].str.fullmatch(NUMBER, na=True)
            raise ValueError(f"--numeric: {_wrong(text[name], odd, 'numbers', '')}")
    unread = {n: c for n, c in text.items() if reads_numbers or n in as_numbers}
    kinds |= _learn_numbers(unread, has_semicolons, set(as_numbers), remarks)
    for name, column in text.items():
        if name not in kinds:
            kinds[name] = _learn_words(column, date_order, remarks)
    return {name: kinds[name] for name in frame}, remarks


def _learn_words(column: pandas.Series, date_order: str, remarks: list[Remark]) -> Any:
    """Return the kind of a column of text that holds no numbers."""
    if _is_truth(column):
        return Truth()
    words = column.dropna()
    if not len(words):
        return Text()
    if _all_match(words, _CLOCK):
        try:
            Time().read(column)
        except ValueError:
            return Text()
        return Time()
    order = _find_order(words) or (date_order if _all_match(words, _YEAR_LAST) else "")
    if order:
        stamps = _parse_dates(column, order)
        if stamps.count() == len(words):
            if order != "year" and _all_match(words, _YEAR_LAST):
                what = f"holds dates such as {words.iloc[0]!r}: the {order} is first"
                remarks.append(on_column("dates", str(column.name), what))
            return Date("" if order == "name" else order, _has_time(stamps))
    return Text()


def kind_of(column: pandas.Series) -> type[Any]:
    """Return the kind of a typed column: Number, Date, Time, Text, Truth or Other."""
    from pandas.api import types

    if types.is_datetime64_any_dtype(column) or types.infer_dtype(column) in ("date", "datetime"):
        return Date
    if types.infer_dtype(column) == "time":
        return Time
    if is_text(column):
        return Truth if _is_truth(column) else Text
    is_number = types.is_numeric_dtype(column) and not types.is_complex_dtype(column)
    is_number |= types.infer_dtype(column) in ("integer", "floating", "mixed-integer-float")
    return Number if is_number else Other


def is_text(column: pandas.Series) -> bool:
    """Whether a column holds text, booleans, declared categories, or nothing but missing values."""
    from pandas.api import types

    return types.infer_dtype(column) in ("string", "boolean", "categorical", "empty")


def text_dtype() -> Any:
    """Return the type of text: pandas 3 has one in which what is missing is NaN."""
    import pandas

    return object if pandas.__version__.startswith("2.") else "str"


def as_text(column: pandas.Series) -> pandas.Series:
    """Return a column as text, whole numbers without a point."""
    import pandas

    if isinstance(column.dtype, pandas.StringDtype):
        return column.astype(text_dtype())
    there = column.notna()
    is_whole = column.dtype.kind == "f" and (column[there] % 1 == 0).all()
    if is_whole and (column[there].abs() < 2.0**63).all():
        column = column.astype("Int64")  # whole numbers beside a missing one: 1, not 1.0
    words = pandas.Series(math.nan, column.index, text_dtype(), column.name)
    words[there] = column[there].map(str).astype(text_dtype())
    return words


def show_cell(value: object) -> str:
    """Return a cell as it stands in a message: of a long text both ends."""
    if isinstance(value, datetime.datetime):
        return str(value).removesuffix(" 00:00:00")
    return repr(shorten(value) if isinstance(value, str) else value)


def check_words(column: pandas.Series) -> None:
    """Raise ValueError if a column of text mostly holds dates or numbers: the others are mistakes.

    Parameters
    ----------
    column : pandas.Series of str
    """
    words, name = column.dropna(), column.name
    if not len(words):
        return
    like = words.str.fullmatch(_DATE_OF_ANY_KIND)
    if like.sum() > len(words) / 2:
        odd = words[~like] if not like.all() else words
        order = "pass --date-order day or --date-order month, " * _all_match(words, _YEAR_LAST)
        raise ValueError(
            f"column {name!r} holds dates that cannot be read, such as {show_cell(odd.iloc[0])} in "
            f"row {odd.index[0]}: write them as 2024-03-31, {order}or pass --drop {name!r} or "
            f"--categorical {name!r}"
        )
    is_number = words.str.fullmatch(NUMBER)
    others = words[~is_number]
    if 0 < len(others) < len(words) / 2:
        _reject_few(str(name), others, "words")
    if len(others) or words.str.match(PADDED).any():
        return
    marks = {"point": words.str.fullmatch(_POINT), "comma": words.str.fullmatch(_COMMA)}
    most, least = sorted(marks, key=lambda mark: -marks[mark].sum())
    if marks["point"].all() and words.str.fullmatch(_GROUPS).all():
        raise ValueError(
            f"column {name!r} holds groups of digits such as {show_cell(words.iloc[0])}, which may "
            f"be numbers or codes: pass --numeric {name!r} or --categorical {name!r}"
        )
    odd = words[~marks[most]]
    if 0 < len(odd) and not _all_match(words[marks[most]], r"\s*[+-]?\d+\s*"):
        _reject_few(str(name), odd, f"numbers with a decimal {least}")


def _reject_few(name: str, odd: pandas.Series, called: str) -> None:
    """Raise ValueError about a few cells of a column of numbers."""
    import shlex

    word = odd.iloc[0]
    missing = f", pass {shlex.join(['--na', word])} if it is a missing value" * (len(word) < 9)
    raise ValueError(
        f"column {name!r} holds numbers and, in {count(len(odd), 'row')}, {called} such as "
        f"{show_cell(word)} in row {odd.index[0]}: correct them, empty the cells{missing}, or pass "
        f"--categorical {name!r}"
    )


def describe_categories(column: pandas.Series) -> str:
    """Return what numbers in a column of text are taken for, empty if there are none."""
    words = column.dropna()
    if not len(words) or not words.str.fullmatch(NUMBER).all():
        return ""
    zeros = "with leading zeros" if words.str.match(PADDED).any() else "as text"
    return f"holds numbers {zeros}: they are taken as categories"


def _wrong(column: pandas.Series, odd: Any, expected: str, when: str = " in training") -> Exception:
    """Return the error about the first cell of a column that is not of its kind."""
    cells = column[odd.reindex(column.index, fill_value=False)]
    return ValueError(
        f"column {column.name!r} held {expected}{when}; here it holds {show_cell(cells.iloc[0])} "
        f"in row {cells.index[0]}"
    )


# Numbers -------------------------------------------------------------------------------------


class _Style(NamedTuple):
    """How the numbers of a column may be read: cells that are not plain, and by which marks."""

    odd: Any
    point: bool
    comma: bool


def _learn_numbers(
    columns: Mapping[str, pandas.Series],
    semicolons: bool,
    wanted: set[str],
    remarks: list[Remark],
) -> dict[str, Number]:
    """Return the kinds of the columns of text that are all numbers, with remarks on doubts."""
    styles: dict[str, _Style] = {}
    for name, column in columns.items():
        words = column.dropna()
        odd = words[_not_plain(words)]
        point = not len(odd) or _all_match(words, _POINT)
        comma = _all_match(words, _COMMA)
        is_code = words.str.match(PADDED).any() or _all_match(words, _GROUPS)
        if (point or comma) and (not is_code or name in wanted):
            styles[name] = _Style(odd, point, comma)
    # Columns that can be read in one way tell how the others of the file are meant.
    clear = {style.comma for style in styles.values() if style.point != style.comma}
    default = "" if len(clear) != 1 else "," if clear == {True} else "."
    numbers, examples = {}, []
    for name, (odd, point, comma) in styles.items():
        words = columns[name].dropna()
        marked = words[words.str.contains("[.,]")]
        in_doubt = point and comma and len(marked) > 0
        if in_doubt:
            comma = clear == {True} if len(clear) == 1 else semicolons and "," in marked.iloc[0]
        comma &= not point or in_doubt
        has_mark = len(marked) > 0
        decimal = "," if comma else "." if has_mark else default
        signs = set(words.str.findall(f"%|{_CURRENCY}").map("".join)) if len(odd) else set()
        units = tuple(sorted(signs - {""}))
        has_groups = _all_match(words, _GROUPS) or bool(words.str.fullmatch(_GROUPS).any())
        numbers[name] = Number(decimal, units, has_groups)
        _doubt_units(name, units, "" in signs, remarks)
        _doubt_codes(name, words, remarks)
        if not (comma or len(odd)):
            continue
        expected = comma and semicolons and not _not_plain(odd.str.replace(",", ".")).any()
        if in_doubt or not expected:
            one = (marked if in_doubt else odd)[:1]
            value = _to_numbers(one, comma).iloc[0]
            doubt = f", not as {_to_numbers(one, not comma).iloc[0]:.10g}" if in_doubt else ""
            examples.append((name, f"({one.iloc[0]!r} as {value:.10g}{doubt})", in_doubt))
    if examples:
        listed = join([f"{name!r} {how}" for name, how, _ in examples], 5)
        text = f"numbers were read in the column{'s' * (len(examples) > 1)} {listed}"
        code = "ambiguous-number" if any(doubt for *_, doubt in examples) else "numbers"
        remarks.append(on_table(code, text))
    return numbers


def _doubt_units(name: str, units: tuple[str, ...], has_bare: bool, remarks: list[Remark]) -> None:
    """Add a warning if the numbers of a column have several units."""
    if len(units) > 1 or (has_bare and "%" in units):
        listed = " and ".join(map(repr, units)) + " and no unit" * has_bare
        what = f"mixes numbers with {listed}"
        remarks.append(on_column("units", name, what, then=": convert them", severity=WARNING))


def _doubt_codes(name: str, words: pandas.Series, remarks: list[Remark]) -> None:
    """Add a warning if numbers look like codes (3E5) or dates (20240131)."""
    powers = words[words.str.fullmatch(r"\d+[eE]\d+")]
    then = f": if it is a code, pass --categorical {name!r}"
    if len(powers) and _all_match(words, r"\d+(?:[eE]\d+)?"):
        what = f"holds {powers.iloc[0]!r} in row {powers.index[0]}, which is read as a number"
        remarks.append(on_column("codes", name, what, then=then, severity=WARNING))
    if len(words) and _all_match(words, r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"):
        what = f"holds {words.iloc[0]!r}, which is read as a number and looks like a date"
        then = ": write dates as 2024-03-31"
        remarks.append(on_column("codes", name, what, then=then, severity=WARNING))


def _all_match(words: pandas.Series, pattern: str) -> bool:
    """Whether all words match a pattern; most columns that do not differ in the first."""
    starts = all(re.fullmatch(pattern, word) for word in words[:1])
    return starts and bool(words.str.fullmatch(pattern).all())


def _not_plain(words: pandas.Series) -> pandas.Series:
    """Mark the words that are no numbers as computers write them."""
    import pandas

    return words.notna() & pandas.to_numeric(words, errors="coerce").isna()


def _to_numbers(words: pandas.Series, comma: bool) -> pandas.Series:
    """Return words that are numbers as such; decimals follow a comma, or a point."""
    import pandas

    # Currencies, per cent and what sets thousands off go; an exponent stays.
    bare = words.str.replace(rf"EUR|[^-+−\d{',' if comma else '.'}eE]", "", regex=True)
    plain = bare.str.replace("−", "-").str.replace(",", ".")
    plain = plain.mask(words.str.contains("(", regex=False, na=False), "-" + plain)
    # The pattern of a number takes the digits of any script, as float does; pandas does not.
    is_plain = all(word.isascii() for word in plain.dropna())
    return pandas.to_numeric(plain if is_plain else plain.map(float, na_action="ignore"))


# Dates ---------------------------------------------------------------------------------------


def _find_order(words: pandas.Series) -> str:
    """Return which part of dates comes first, "name" with names of months, empty if unclear."""
    if _all_match(words, _DATE):
        return "year"
    if any(_all_match(words, pattern) for pattern in _NAMED_MONTHS):
        return "name"
    if not _all_match(words, _YEAR_LAST):
        return ""
    large = [(words.str.extract(_YEAR_LAST)[i].astype(int) > 12).any() for i in (0, 1)]
    if large[0] == large[1]:  # it is not clear, or never right, which is the month
        return ""
    return "day" if large[0] else "month"


def _parse_dates(column: pandas.Series, order: str) -> pandas.Series:
    """Return time stamps, NaT where a cell is no date of this order or with the year first."""
    import pandas

    text = column
    if order in ("day", "month"):
        parts = r"\3-\2-\1\4" if order == "day" else r"\3-\1-\2\4"
        text = text.str.replace(f"^{_YEAR_LAST}$", parts, regex=True)
    for pattern in _NAMED_MONTHS:
        if text.str.fullmatch(pattern, na=False).any():
            parts = text.str.extract(f"^{pattern}$")
            month = parts["month"].str.lower().map({m: f"-{i}-" for i, m in enumerate(_MONTHS, 1)})
            named = parts["year"] + month + parts["day"] + parts["time"].fillna("")
            text = named.fillna(text)
    text = text.str.replace(r"(?<=\d)[/.](?=\d+(?:\D|$))", "-", n=2, regex=True)
    text = text.where(text.str.fullmatch(_DATE, na=False))
    return pandas.to_datetime(text, format="ISO8601", utc=True, errors="coerce")


def _has_time(stamps: pandas.Series) -> bool:
    """Whether the time of day differs between the time stamps of a column."""
    import pandas

    times = pandas.to_datetime(stamps, utc=True).dropna()
    return bool((times - times.dt.normalize()).nunique() > 1)


# Categories ----------------------------------------------------------------------------------


def _truths(words: pandas.Series) -> pandas.Series:
    return words.str.strip().str.lower().map({"true": "True", "false": "False"})


def _is_truth(column: pandas.Series) -> bool:
    """Whether a column holds booleans, or their names, and nothing else but missing values."""
    from pandas.api import types

    if types.infer_dtype(column) == "boolean":
        return True
    if types.infer_dtype(column) not in ("string", "categorical"):
        return False
    words = as_text(column)
    return bool(0 < _truths(words).count() == words.count())


def _map_distinct(column: pandas.Series, function: Any) -> pandas.Series:
    """Return a function of each cell, called once for each distinct value."""
    import pandas

    codes, values = pandas.factorize(column)
    names = np.array([*map(function, values.tolist()), math.nan], dtype=object)
    return pandas.Series(names[codes], column.index, name=column.name)
