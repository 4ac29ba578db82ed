r"""Tables as people have them, read into pandas frames or refused in a line.

Files are CSV, also compressed (``.csv.gz``), Excel (``.xlsx``) and Parquet; what a file is, its
first bytes say. A CSV file is UTF-8 with or without a byte-order mark; its fields are separated by
commas, semicolons, tabs or bars, whichever cuts its lines into equally many fields. The first line
holds the names of the columns, each of them once. An empty cell, ``NA``, ``N/A``, ``NaN``,
``nan``, ``null`` and ``NULL`` are missing values; ``None`` is a word like any other. Words that
stand alone below the table, in a column of numbers or as ``Source: ...``, are a footer and no row.

Every column is of one of four kinds, by what stands in all of its cells:

- number: ``-1.5``, ``2e-3``, ``12,345.67``, ``1.065,20``, ``$123.45``, ``(12.50)`` (read as -12.5),
  ``12.5%`` (read as 12.5), in the digits of any script.
  Codes with leading zeros, ``01``, are words. ``1,234`` could be two numbers: it is read as the
  other columns of the file are, or else as 1234 (as 1.234 between semicolons), and a note says so;
- date: ``2024-03-31``, ``31.3.2024`` or ``3/31/2024``, with a time or not, where it is clear which
  part is the day; read as pandas' dates;
- truth: ``TRUE``, ``true`` or ``True`` and their opposites; read as the words ``True`` and
  ``False``;
- text: anything else, as it is written.

A table that is read for a model has the kinds of the model's training table: a category that
happens to be a number stays a category.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesknn._utils.extras import require
from bayesknn.report.words import free_name, join, merge_notes, shorten

if TYPE_CHECKING:
    import pandas

# What the kinds of column are called in sentences.
KINDS = {"number": "numbers", "date": "dates", "text": "categories", "truth": "truth values"}
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
# In order of preference where two of them cut the lines equally well.
_SEPARATORS = (";", "\t", "|", ",")
# Bytes of text, or cells, to which a file of any size may unpack, and those beyond for each byte of
# the file. A table of numbers unpacks to 2 bytes for each in CSV and to 17 in Excel; one of 0 and 1
# in which 1 % of the cells are 1, to 56 in CSV.
_MOST_UNPACKED, _MOST_PER_BYTE = 100_000_000, 100
# Rows of a footer that have a note each.
_MOST_NOTED = 10
# Rows of an Excel sheet.
_MOST_ROWS = 2**20
# A code with leading zeros.
PADDED = r"\s*[+-]?0\d"


def _number(point: str, thousands: str) -> str:
    """Return the pattern of a number whose decimals and thousands are set off by these."""
    currency = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF)"
    sign, money = r"[+−-]?", rf"(?:{currency}\s*)?"
    whole = rf"\d{{1,3}}(?:[{thousands}'’ \xa0\u2009\u202f]\d{{3}})+|\d+"
    after = rf"(?:[eE][+-]?\d+)?\s*(?:%|{currency})?\s*"
    number = rf"(?:(?:{whole})(?:{point}\d*)?|{point}\d+){after}"
    # Accountants put a number below 0 into brackets.
    return rf"\s*(?:{sign}\s*{money}{sign}{number}|{money}\(\s*{money}{number}\)\s*)"


_POINT, _COMMA = _number(r"\.", ","), _number(",", ".")
# A number in any style.
NUMBER = rf"(?:{_POINT})|(?:{_COMMA})|\s*[+-]?[iI]nf(?:inity)?\s*"
_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s?(?:Z|[+-]\d{2}:?\d{2})?)?"
_DATE = rf"[12]\d{{3}}(?:[-/.]\d{{1,2}}){{1,2}}{_TIME}"
_YEAR_LAST = rf"(\d{{1,2}})[-/.](\d{{1,2}})[-/.]([12]\d{{3}})({_TIME})"
# What a person would call a date, whether or not the order of its parts is known.
DATE_OF_ANY_KIND = (
    rf"(?i)(?:{_DATE}|\d{{1,2}}([-/.])\d{{1,2}}\1\d{{4}}|\d{{1,2}}/\d{{1,2}}/\d{{2}}"
    r"|(?:\d{1,2}[- .]{0,2})?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
    r"[- ,]{0,2}(?:\d{1,2},? )?\d{2,4})\b.*"
)


class TooLargeError(ValueError):
    """A table that unpacks to far more than its file holds."""


@dataclass
class Table:
    """A table as it was read.

    Attributes
    ----------
    frame : pandas.DataFrame
        Its index counts the rows of the file from 1; the names of columns are distinct strings.
    kinds : dict of str to str
        ``"number"``, ``"date"``, ``"truth"`` or ``"text"`` for each column, ``"other"`` for what
        is none of them.
    notes : list of str
        What of the file is not in the table, and how numbers and dates were read that could be
        read otherwise, in sentences.
    file : str
        Its name, empty where there is none.
    """

    frame: pandas.DataFrame
    kinds: dict[str, str]
    notes: list[str] = field(default_factory=list)
    file: str = ""


def as_table(frame: pandas.DataFrame | Table) -> Table:
    """Return a frame as a table, which it may be already."""
    if isinstance(frame, Table):
        return frame
    frame = frame.set_axis(range(1, len(frame) + 1), axis=0)
    return Table(frame, {str(name): kind_of(column) for name, column in frame.items()})


def check_readable(path: Path) -> None:
    """Refuse, before anything heavy is imported, a file that cannot be read."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the file in it")
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ValueError(f"{path} cannot be read: {reason}") from None


def find_model(path: Path) -> Path:
    """Return the file of a saved model, which is named or in the folder that is named."""
    file = path / "model.skops" if path.is_dir() else path
    if not file.is_file():
        raise ValueError(f"there is no model at {file}")
    return file


def read_table(
    path: str | Path,
    encoding: str | None = None,
    *,
    separator: str | None = None,
    text: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    sheet: str | None = None,
    missing: Sequence[str] = (),
) -> Table:
    r"""Read a CSV, Excel or Parquet file.

    Parameters
    ----------
    path : str or Path
        The file.
    encoding : str, optional
        Of a CSV file; UTF-8 by default.
    separator : str, optional
        Between the fields of a CSV file; detected by default.
    text : sequence of str
        Columns to read as text even if they look like numbers, one or several (``"a,b"``) in each
        string; those that are not there are passed over.
    kinds : mapping of str to str, optional
        ``"number"``, ``"date"``, ``"truth"`` or ``"text"`` for each column of an earlier table.
        A column whose cells are not all of its kind is left as text.
    sheet : str, optional
        Of an Excel file; the first by default.
    missing : sequence of str
        What else stands for a missing value, such as ``"?"``.

    Returns
    -------
    Table
        At least one row.
    """
    import pandas

    path = Path(path)
    check_readable(path)
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = _decompress(path, content)
    _refuse_other_files(path, content)
    notes: list[str] = []
    has_commas: bool | None = False
    if content.startswith(b"PAR1"):
        frame, has_commas = _parse_parquet(path, content), None
    elif content.startswith(b"PK\x03\x04"):
        frame = _parse_excel(path, content, notes, sheet)
    else:
        decoded = _decode(path, content, encoding)
        records = {each: _first_records(decoded, each) for each in {*_SEPARATORS, separator or ","}}
        separator = separator or _find_separator(records)
        has_commas = separator == ";"
        frame = _parse_csv(path, decoded, separator, records[separator], notes)
    if len(frame) == 0:
        raise ValueError(f"{path} has a header but no rows")
    if missing:
        numbers = pandas.to_numeric(pandas.Series(missing), errors="coerce").dropna()
        frame = frame.mask(frame.isin([*missing, *numbers]))
    known = {**(kinds or {}), **dict.fromkeys(split_names(text, frame.columns), "text")}
    table = _read_columns(frame, known, has_commas)
    table.notes[:0], table.file = notes, path.name
    return table


def _decompress(path: Path, content: bytes) -> bytes:
    most = max(_MOST_UNPACKED, _MOST_PER_BYTE * len(content))
    try:
        with gzip.open(io.BytesIO(content)) as file:
            unpacked = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be decompressed: {error}") from None
    _check_size(path, content, len(unpacked))
    return unpacked


def _check_size(path: Path, content: bytes, n_unpacked: int) -> None:
    """Raise TooLargeError if a table has too many bytes or cells for the bytes of its file."""
    most = max(_MOST_UNPACKED, _MOST_PER_BYTE * len(content))
    if n_unpacked > most:
        raise TooLargeError(
            f"{path} has {len(content):,} bytes and unpacks to more than {most:,} bytes or cells: "
            "if that is meant, save the table as a .csv file that is not compressed"
        )


def _read_columns(
    frame: pandas.DataFrame, known: Mapping[str, str], has_commas: bool | None
) -> Table:
    """Read cells as what they are; ``has_commas`` is None where a file has types."""
    from pandas.api import types

    words = ("string", "boolean", "categorical", "empty")
    as_words = {n: as_text(each) for n, each in frame.items() if types.infer_dtype(each) in words}
    table = as_table(frame.assign(**as_words))
    columns, kinds = dict(table.frame.items()), table.kinds
    if has_commas is not None:
        unread = {n: columns[n] for n in as_words if known.get(n, "number") == "number"}
        columns |= (numbers := _read_numbers(unread, has_commas, table.notes))
        kinds |= dict.fromkeys(numbers, "number")
    dates: list[tuple[str, str]] = []
    for name, kind in ((name, known.get(name)) for name in columns):
        if kind in ("text", "truth"):
            columns[name], kinds[name] = as_text(columns[name]), kind
        if kinds[name] in ("text", "truth") and kind in (None, "truth"):
            truths = columns[name].str.lower().map({"true": "True", "false": "False"})
            if kind == "truth" or truths.count() == columns[name].count() > 0:
                columns[name] = truths.fillna(columns[name]).astype(text_dtype())
                kinds[name] = "truth"
        if kinds[name] == "text" and kind in (None, "date"):
            columns[name] = _as_dates(columns[name], dates)
            kinds[name] = "date" if columns[name].dtype.kind == "M" else "text"
    table.notes += merge_notes(dates)
    table.frame = type(frame)(columns)
    return table


def split_names(given: Iterable[str], columns: Collection[Any]) -> list[str]:
    """Return the names of columns among words that hold one, or several with commas between.

    Examples
    --------
    >>> from bayesknn.report.reading import split_names
    >>> split_names(["a,b", "weight, kg"], ["a", "b", "weight, kg"])
    ['a', 'b', 'weight, kg']
    """
    names: list[str] = []
    for word in given:
        parts = [word] if word in columns else [part.strip() for part in word.split(",")]
        names += [part for part in parts if part]
    return names


def kind_of(column: pandas.Series) -> str:
    """Return ``"number"``, ``"date"``, ``"truth"``, ``"text"``, or ``"other"`` for what is none."""
    from pandas.api import types

    if types.infer_dtype(column) in ("string", "empty"):
        return "truth" if set(column.dropna().unique()) <= {"True", "False"} else "text"
    if types.is_datetime64_any_dtype(column):
        return "date"
    # Truth values are text by now; what is left of this kind is not for distances.
    if types.is_numeric_dtype(column) and not types.is_complex_dtype(column):
        return "number"
    return "other"


def text_dtype() -> Any:
    """Return the type of words: pandas 3 has one in which what is missing is NaN."""
    import pandas

    return object if pandas.__version__.startswith("2.") else "str"


def as_text(column: pandas.Series) -> pandas.Series:
    """Return a column as words, whole numbers without a point."""
    import pandas

    if isinstance(column.dtype, pandas.StringDtype):
        return column.astype(text_dtype())
    there = column.notna()
    if column.dtype.kind == "f" and (column[there] % 1 == 0).all():
        column = column.astype("Int64")  # whole numbers beside a missing one: 1, not 1.0
    words = pandas.Series(math.nan, column.index, text_dtype(), column.name)
    words[there] = column[there].map(str).astype(text_dtype())
    return words


def _read_numbers(
    columns: Mapping[str, pandas.Series], semicolons: bool, notes: list[str]
) -> dict[str, pandas.Series]:
    """Return the columns of words that are all numbers as numbers, and note how they were read."""
    import pandas

    # By name: what is not plain, and whether all are numbers if decimals follow a point or a comma.
    styles: dict[str, tuple[pandas.Series, bool, bool]] = {}
    for name, column in columns.items():
        words = column.dropna()
        odd = words[_not_plain(words)]
        point = not len(odd) or _all_match(words, _POINT)
        comma = _all_match(words, _COMMA)
        if (point or comma) and not words.str.match(PADDED).any():
            styles[name] = (odd, point, comma)
    # Columns that can be read in one way say how the others of the file are meant.
    clear = {comma for _, point, comma in styles.values() if point != comma}
    numbers, examples = {}, []
    for name, (odd, point, comma) in styles.items():
        words = columns[name]
        marked = words[words.str.contains("[.,]", na=False)]
        in_doubt = point and comma and len(marked) > 0
        if in_doubt:
            comma = clear == {True} if len(clear) == 1 else semicolons and "," in marked.iloc[0]
        comma &= not point or in_doubt
        if not (comma or len(odd)):
            numbers[name] = pandas.to_numeric(words)
            continue
        numbers[name] = _to_numbers(words, comma)
        expected = comma and semicolons and not _not_plain(odd.str.replace(",", ".")).any()
        if in_doubt or not expected:
            one = (marked if in_doubt else odd)[:1]
            other = f", not as {_to_numbers(one, not comma).iloc[0]:.10g}" if in_doubt else ""
            value = numbers[name][one.index[0]]
            examples.append(f"{name!r} ({one.iloc[0]!r} as {value:.10g}{other})")
    if examples:
        many = "s" * (len(examples) > 1)
        notes.append(f"numbers were read in the column{many} {join(examples, 5)}")
    return numbers


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


def _as_dates(column: pandas.Series, notes: list[tuple[str, str]]) -> pandas.Series:
    """Return a column of dates if every word in it is one, or the column as it is."""
    import pandas

    words, plain, first = column.dropna(), column, ""
    if not len(words):
        return column
    if not _all_match(words, _DATE):
        if not _all_match(words, _YEAR_LAST):
            return column
        large = [(words.str.extract(_YEAR_LAST)[i].astype(int) > 12).any() for i in (0, 1)]
        if large[0] == large[1]:  # it is not clear, or never right, which is the month
            return column
        first, order = ("day", r"\3-\2-\1\4") if large[0] else ("month", r"\3-\1-\2\4")
        plain = column.str.replace(f"^{_YEAR_LAST}$", order, regex=True)
    plain = plain.str.replace(r"(?<=\d)[/.](?=\d+(?:\D|$))", "-", n=2, regex=True)
    dates = pandas.to_datetime(plain, format="ISO8601", utc=True, errors="coerce")
    if dates.count() < len(words):
        return column
    if first:
        text = f"holds dates such as {words.iloc[0]!r}: the {first} is first"
        notes.append((str(column.name), text))
    return dates.dt.tz_localize(None)


def _refuse_other_files(path: Path, content: bytes) -> None:
    """Refuse a file that is no table of ours by saying what it is."""
    start = content[:64].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for magic, called in (
        (b"\xd0\xcf\x11\xe0", "an old Excel file (.xls)"),
        (b"%pdf", "a PDF document"),
        (b"<stata_dta>", "a Stata file (.dta)"),
        (b"$fl2", "an SPSS file (.sav)"),
        (b"@relation", "an ARFF file (of Weka)"),
        ((b"<!doctype html", b"<html"), "a web page (HTML)"),
        (b"<?xml", "an XML document"),
        ((b"{", b"["), "JSON"),
    ):
        if start.startswith(magic):
            raise ValueError(
                f"{path} is {called}, which is not read: save the table as .csv, .xlsx or .parquet"
            )


def _decode(path: Path, content: bytes, encoding: str | None) -> str:
    if encoding is None and content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path} is UTF-16, not UTF-8: pass --encoding utf-16")
    if encoding is None and b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise ValueError(
            f"{path} holds a zero byte in line {line}, so it is not a CSV file: save the table as "
            ".csv, .xlsx or .parquet"
        )
    try:
        text = content.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        called = (encoding or "utf-8").upper()
        raise ValueError(
            f"{path} is not {called}: byte 0x{content[error.start]:02x} in line "
            f"{line}; save it as UTF-8 or pass its encoding, for instance --encoding latin-1"
        ) from None
    except UnicodeError:
        raise ValueError(f"{path} is not {str(encoding).upper()}; pass its encoding") from None
    except (LookupError, ValueError):  # a name with a zero byte is none at all
        raise ValueError(f"there is no encoding called {encoding!r}") from None
    # Line ends of Unix, of Windows and of the first Macintosh.
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise ValueError(f"{path} is empty")
    if "\0" in text:
        raise ValueError(f"{path} holds a zero byte, so it is not {str(encoding).upper()}")
    return text


def _parse_csv(
    path: Path, content: str, separator: str, records: list[list[str]], notes: list[str]
) -> pandas.DataFrame:
    """Read a CSV file as words; what is left out joins the notes."""
    import pandas

    if not records:
        raise ValueError(
            f"the header of {path} cannot be read: it has a name of more than "
            f"{csv.field_size_limit():,} characters, or a quotation mark that is not closed"
        )
    names = _check_names(path, records[0], notes)
    with warnings.catch_warnings():
        # pandas drops the fields that exceed the header with no more than this warning.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        try:
            frame = pandas.read_csv(
                io.StringIO(content),
                sep=separator,
                header=0,
                names=names,
                index_col=False,
                dtype=text_dtype(),
                keep_default_na=False,
                na_values=list(MISSING),
            )
        except pandas.errors.ParserWarning:
            raise ValueError(
                f"{path} has rows of more fields than the {len(names)} names in its header"
            ) from None
        except pandas.errors.ParserError as error:
            reason = str(error).replace("Error tokenizing data. C error:", "")
            raise ValueError(f"{path} is not a CSV file: {' '.join(reason.split())}") from None
    return _cut_footer(frame, path.name, notes)


def _find_separator(records: Mapping[str, list[list[str]]]) -> str:
    """Return what cuts most of the first lines into as many fields as the header, and into most."""

    def judge(separator: str) -> tuple[float, int]:
        lengths = [len(record) for record in records[separator]] or [1]
        return (lengths.count(lengths[0]) / len(lengths), lengths[0]) if lengths[0] > 1 else (0, 1)

    best = max(_SEPARATORS, key=judge)
    return best if judge(best)[1] > 1 else ","


def _first_records(content: str, separator: str) -> list[list[str]]:
    """Cut the first hundred lines into fields."""
    records: list[list[str]] = []
    reader = csv.reader(io.StringIO(content), delimiter=separator)
    with suppress(csv.Error):  # what was read until there has to do; pandas will say what is wrong
        for record in islice(filter(None, reader), 101):
            records.append(record)
    return records


def _cut_footer(frame: pandas.DataFrame, file: str, notes: list[str]) -> pandas.DataFrame:
    """Take words off that stand alone below the table, and note them with their row."""
    first, others = frame.iloc[:, 0], frame.iloc[:, 1:].notna().any(axis=1)
    above = first[others].dropna()[:100]
    measured = f"{NUMBER}|{_DATE}|{_YEAR_LAST}"
    no_words = len(above) > 0 and above.str.fullmatch(measured).all()
    is_footer = re.compile(r"(?i)\s*(?:sources?|notes?|footnotes?|copyright|generated|\*|#|©)\b")
    n = len(frame)
    while n > 1 and frame.shape[1] > 1 and not others[n - 1] and isinstance(first[n - 1], str):
        # Below words it may be a row whose other cells are missing, unless it says what it is.
        if re.fullmatch(measured, first[n - 1]) or not (no_words or is_footer.match(first[n - 1])):
            break
        n -= 1
    notes += [
        f"row {i + 1:,} of {file} is a footer and left out: {shorten(first[i], 60)!r}"
        for i in range(n, min(len(frame), n + _MOST_NOTED))
    ]
    if (n_more := len(frame) - n - _MOST_NOTED) > 0:
        notes.append(f"{n_more:,} more rows at the end of {file} are a footer and left out")
    return frame[:n]


def _parse_excel(
    path: Path, content: bytes, notes: list[str], wanted: str | None
) -> pandas.DataFrame:
    """Read a sheet of an Excel file; cells of several kinds in a column become words."""
    import pandas

    openpyxl = require("openpyxl", "Excel files need", "excel")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and other things that are not read
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                _check_size(path, content, sum(each.file_size for each in archive.infolist()))
            book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
            names = [str(each.title) for each in book.worksheets]
            place = names.index(wanted) if wanted in names else 0
            rows = _read_rows(path, content, book.worksheets[place])
        except TooLargeError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(
                f"{path} is an archive, and no readable Excel file: {reason}"
            ) from None
    if wanted not in (None, *names):
        raise ValueError(f"{path} has no sheet {wanted!r}; it has {join(list(map(repr, names)))}")
    if wanted is None and len(names) > 1:
        others = join(list(map(repr, names[1:])))
        notes.append(
            f"the sheet {names[0]!r} of {path.name} is read, not {others} (--sheet reads another)"
        )
    if not rows:
        raise ValueError(f"{path} is empty")
    sheet = pandas.DataFrame(rows, dtype=object).fillna(math.nan).dropna(how="all", axis=1)
    header = ["" if value != value else str(value) for value in sheet.iloc[0]]
    names = _check_names(path, header, notes)
    frame = sheet.iloc[1:].set_axis(names, axis=1).reset_index(drop=True).infer_objects()
    return frame.apply(lambda each: as_text(each) if each.dtype == object else each)


def _read_rows(path: Path, content: bytes, sheet: Any) -> list[list[Any]]:
    """Return the cells of the rows of a sheet that are not empty, up to the last cell in use."""
    rows: list[list[Any]] = []
    width = 0
    sheet.reset_dimensions()  # what a file says of them may be wrong
    for number, cells in enumerate(sheet.rows, 1):
        if number > _MOST_ROWS:
            raise TooLargeError(f"{path} has more than {_MOST_ROWS:,} rows, the most in Excel")
        row = list(map(_read_cell, cells))
        while row and row[-1] is None:
            row.pop()
        if row:
            rows.append(row)
            width = max(width, len(row))
            _check_size(path, content, width * len(rows))
    return rows


def _read_cell(cell: Any) -> Any:
    """Return the value of a cell, whole numbers as such; None if it is missing or an error."""
    value = cell.value
    if value in MISSING or cell.data_type == "e":
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _parse_parquet(path: Path, content: bytes) -> pandas.DataFrame:
    pyarrow = require("pyarrow", "Parquet files need", "report")
    parquet = require("pyarrow.parquet", "Parquet files need", "report")
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(content))
        _check_size(path, content, file.metadata.num_rows * file.metadata.num_columns)
        batches, n_bytes = [], 0
        for batch in file.iter_batches(1024):
            batches.append(batch)
            n_bytes += batch.nbytes
            # A number takes eight bytes in memory, and may take none in the file.
            _check_size(path, content, n_bytes // 8)
        table = pyarrow.Table.from_batches(batches, file.schema_arrow)
    except (pyarrow.ArrowException, OSError) as error:
        reason = (str(error).splitlines() or ["damaged"])[0]
        raise ValueError(f"{path} is not a readable Parquet file: {reason}") from None
    # The index of the frame it was written from is not a column of the table.
    indices = [name for name in table.column_names if name.startswith("__index_level_")]
    frame = table.drop_columns(indices).to_pandas(ignore_metadata=True)
    frame.columns = _check_names(path, list(frame.columns), [])
    return frame


def question_header(names: Iterable[str]) -> str:
    """Ask, at the end of a sentence, whether names that look like values are a first row.

    Examples
    --------
    >>> from bayesknn.report.reading import question_header
    >>> question_header(["5.1", "3.5", "setosa"])
    "; the column names look like values ('5.1', '3.5'): is the header missing?"
    >>> question_header(["town", "2019", "2020", "2021"])
    ''
    """
    names = list(names)
    numbers = [name for name in names if re.fullmatch(NUMBER, name)]
    values = [float(name) for name in numbers if re.fullmatch(r"\s*[+-]?\d*\.?\d+\s*", name)]
    # Years and the places of a picture's points are names, in equal steps.
    steps = {after - before for before, after in pairwise(values)}
    whole = all(value % 1 == 0 for value in values)
    if not numbers or (whole and (2 * len(numbers) < len(names) or len(steps) == 1)):
        return ""
    examples = ", ".join(repr(shorten(name)) for name in numbers[:2])
    return f"; the column names look like values ({examples}): is the header missing?"


def _check_names(path: Path, names: list[str], notes: list[str]) -> list[str]:
    """Refuse a name that stands twice; a column without one is called after its position."""
    question = question_header(names)
    notes += [f"{path.name}{question}".replace("; the", ": the", 1)] * bool(question)
    for position, name in enumerate(names):
        if name.strip() and name in names[:position]:
            raise ValueError(
                f"{path} has two columns called {name!r}, columns {names.index(name) + 1} and "
                f"{position + 1}; rename one of them{question}"
            )
    return [
        name if name.strip() else free_name(f"column {position}", names, "{}'")
        for position, name in enumerate(names, 1)
    ]
