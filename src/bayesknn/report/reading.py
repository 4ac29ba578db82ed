r"""Tables as people have them: CSV and Parquet files, read into pandas frames or refused in a line.

A CSV file is UTF-8 with or without a byte-order mark; fields are separated by commas, semicolons,
tabs or bars, whichever cuts its lines into equally many fields. Its first line holds the names of
the columns, each of them once. An empty cell, ``NA``, ``N/A``, ``NaN``, ``nan``, ``null`` and
``NULL`` are missing values; ``None`` is a word like any other. Words that stand alone below the
table, in a column of numbers or as ``Source: ...``, are a footer and no row.

Every column is of one of four kinds, by what stands in all of its cells:

- number: whole or decimal. Codes with leading zeros, ``01``, are words;
- date: the year first, as in ``2024-03-31`` or ``2024-03-31 17:05``; read as pandas' dates;
- truth: ``TRUE``, ``true`` or ``True`` and their opposites; read as the words ``True`` and
  ``False``;
- text: anything else, as it is written.

A table that is read for a model has the kinds of the model's training table: a category that
happens to be a number stays a category.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesknn._utils.extras import require

if TYPE_CHECKING:
    import pandas

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
# In order of preference where two of them cut the lines equally well.
_SEPARATORS = (";", "\t", "|", ",")
_LINES_TRIED = 100
_NUMBER = r"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[iI]nf(?:inity)?)\s*"
_PADDED = r"\s*[+-]?0\d"
_DATE = (
    r"[12]\d{3}(?:[-/.]\d{1,2}){1,2}"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s?(?:Z|[+-]\d{2}:?\d{2})?)?"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
# What a person would call a date, whether or not the order of its parts is known.
DATE_OF_ANY_KIND = (
    rf"(?i)(?:{_DATE}|\d{{1,2}}([-/.])\d{{1,2}}\1\d{{4}}|\d{{1,2}}/\d{{1,2}}/\d{{2}}"
    rf"|\d{{1,2}}[- .]{{0,2}}{_MONTH}[- ,]{{0,2}}\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}})\b.*"
)
_FOOTER = re.compile(r"\s*(?:sources?|notes?|footnotes?|copyright|generated|\*|#|©)\b", re.I)


def check_readable(path: Path) -> None:
    """Refuse, before anything heavy is imported, a file that cannot be read."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the file in it")
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise _unreadable(path, error) from None


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
) -> pandas.DataFrame:
    r"""Read a CSV or Parquet file.

    Parameters
    ----------
    path : str or Path
        The file; Parquet is known by its first bytes, anything else is CSV.
    encoding : str, optional
        Of a CSV file; UTF-8 by default.
    separator : str, optional
        Between the fields of a CSV file; found out by default.
    text : sequence of str
        Columns to read as text even if they look like numbers, one or several (``"a,b"``) in each
        string; those that are not there are passed over.
    kinds : mapping of str to str, optional
        ``"number"``, ``"date"``, ``"truth"`` or ``"text"`` for each column of an earlier table.
        A column whose cells are not all of its kind is left as text.

    Returns
    -------
    pandas.DataFrame
        At least one row; the names of the columns are distinct strings. Its
        ``attrs["notes"]`` says in sentences what of the file is not in it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bayesknn.report import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "table.csv"
    ...     _ = path.write_text("age;sex\n41,5;f\n27,0;m\n", encoding="utf-8-sig")
    ...     read_table(path).to_dict("list")
    {'age': [41.5, 27.0], 'sex': ['f', 'm']}
    """
    path = Path(path)
    check_readable(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    known = dict(kinds or {})
    notes: list[str] = []
    if content.startswith(b"PAR1"):
        frame = _parse_parquet(path, content)
        known.update(dict.fromkeys(split_names(text, frame.columns), "text"))
    else:
        frame = _parse_csv(path, _decode(path, content, encoding), separator, text, known, notes)
    if len(frame) == 0:
        raise ValueError(f"{path} has a header but no rows")
    for name in frame.columns:
        frame[name] = _read_as(frame[name], known.get(name))
    frame.attrs["notes"] = notes
    return frame


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


def _read_as(column: pandas.Series, kind: str | None) -> pandas.Series:
    """Return a column as what it is, or as what it is known to be."""
    if kind in ("text", "truth") or _is_category(column):
        column = _as_text(column)
    if kind == "truth":
        truths = column.str.lower().map({"true": "True", "false": "False"})
        return truths.fillna(column).astype("str")
    if kind in (None, "date") and is_text(column):
        return _as_dates(column)
    return column


def is_text(column: pandas.Series) -> bool:
    """Whether a column holds words."""
    import pandas

    return isinstance(column.dtype, pandas.StringDtype)


def _is_category(column: pandas.Series) -> bool:
    import pandas

    if isinstance(column.dtype, pandas.CategoricalDtype) or pandas.api.types.is_bool_dtype(column):
        return True
    if column.dtype != object:
        return is_text(column)
    return all(isinstance(value, str | bool) for value in column[column.notna()])


def _as_text(column: pandas.Series) -> pandas.Series:
    import pandas

    if is_text(column):
        return column.astype("str")
    there = column.notna()
    if column.dtype.kind == "f" and (column[there] % 1 == 0).all():
        column = column.astype("Int64")  # whole numbers beside a missing one: 1, not 1.0
    words = pandas.Series(pandas.NA, index=column.index, dtype="str")
    words[there] = column[there].map(str).astype("str")
    return words


def _as_dates(column: pandas.Series) -> pandas.Series:
    """Return a column of dates if every word in it is one, or the column as it is."""
    import pandas

    words = column.dropna()
    if not len(words) or not words.str.fullmatch(_DATE).all():
        return column
    plain = column.str.replace(r"(?<=\d)[/.](?=\d+(?:\D|$))", "-", n=2, regex=True)
    dates = pandas.to_datetime(plain, format="ISO8601", utc=True, errors="coerce")
    if dates.isna().sum() > column.isna().sum():
        return column
    return dates.dt.tz_localize(None)


def _decode(path: Path, content: bytes, encoding: str | None) -> str:
    if encoding is None and content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path} is UTF-16, not UTF-8: pass --encoding utf-16")
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
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(f"{path} is not a CSV file: it holds a zero byte in line {line}")
    return text


def _parse_csv(
    path: Path,
    content: str,
    separator: str | None,
    text: Sequence[str],
    kinds: dict[str, str],
    notes: list[str],
) -> pandas.DataFrame:
    """Read a CSV file; columns asked for as text join the kinds, what is left out the notes."""
    separator = separator or _find_separator(content)
    try:
        header = next(csv.reader(io.StringIO(content), delimiter=separator))
    except csv.Error as error:
        raise ValueError(f"the header of {path} cannot be read: {error}") from None
    names = _check_names(path, header)
    kinds.update(dict.fromkeys(split_names(text, names), "text"))
    content = _cut_footer(path, content, separator, notes)
    # A semicolon is mostly chosen because the comma is taken by the decimals.
    comma = separator == ";" and re.search(r"(?:^|;)-?\d+,\d+\s*(?:;|$)", content, re.MULTILINE)
    options: dict[str, Any] = {"sep": separator, "decimal": "," if comma else ".", "names": names}
    as_text = {name for name in names if kinds.get(name) in ("text", "truth")}
    frame = _parse_fields(path, content, options, as_text)
    numbers = {name for name in names if name not in kinds and frame[name].dtype.kind in "iuf"}
    cell = rf"(?:^|{re.escape(separator)})\s*\"?{_PADDED}"
    if numbers and re.search(cell, content, re.MULTILINE):
        # Numbers have lost their leading zeros: once more, as they are written.
        words = _parse_fields(path, content, options, numbers)
        for name in numbers:
            if words[name].str.match(_PADDED, na=False).any():
                frame[name] = words[name]
                kinds[name] = "text"
    return frame


def _parse_fields(
    path: Path, content: str, options: Mapping[str, Any], as_text: Collection[str]
) -> pandas.DataFrame:
    import pandas

    with warnings.catch_warnings():
        # pandas drops the fields that exceed the header with no more than this warning.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        try:
            return pandas.read_csv(
                io.StringIO(content),
                header=0,
                index_col=False,
                dtype=dict.fromkeys(as_text, "str"),
                keep_default_na=False,
                na_values=list(MISSING),
                low_memory=False,
                **options,
            )
        except pandas.errors.ParserWarning:
            raise ValueError(
                f"{path} has rows of more fields than the {len(options['names'])} names in its "
                "header"
            ) from None
        except pandas.errors.ParserError as error:
            reason = str(error).replace("Error tokenizing data. C error:", "")
            raise ValueError(f"{path} is not a CSV file: {' '.join(reason.split())}") from None


def _find_separator(content: str) -> str:
    """Return what cuts most of the first lines into as many fields as the header, and into most."""
    best, found = (0.0, 1), ","
    for separator in _SEPARATORS:
        records = _first_records(content, separator)
        n_fields = len(records[0]) if records else 1
        if n_fields > 1:
            share = sum(len(record) == n_fields for record in records) / len(records)
            if (share, n_fields) > best:
                best, found = (share, n_fields), separator
    return found


def _first_records(content: str, separator: str) -> list[list[str]]:
    records: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(content), delimiter=separator):
            if record:
                records.append(record)
            if len(records) > _LINES_TRIED:
                break
    except csv.Error:
        pass  # what was read until there has to do; pandas will say what is wrong
    return records


def _cut_footer(path: Path, content: str, separator: str, notes: list[str]) -> str:
    """Take words off that stand alone below the table, and note them with their line."""
    header, *records = _first_records(content, separator)
    rows = [record for record in records if any(cell not in MISSING for cell in record[1:])]
    above = [row[0] for row in rows if row[0] not in MISSING]
    measured = f"{_NUMBER}|{_DATE}"
    no_words = bool(above) and all(re.fullmatch(measured, cell) for cell in above)
    lines = content.rstrip("\n").split("\n")
    footers: list[str] = []
    while len(header) > 1 and len(lines) > 2 and lines[-1].count('"') % 2 == 0:
        word, *others = next(csv.reader([lines[-1]], delimiter=separator), [""])
        if word in MISSING or any(cell not in MISSING for cell in others):
            break
        # Below words it may be a row whose other cells are missing, unless it says what it is.
        if re.fullmatch(measured, word) or not (no_words or _FOOTER.match(word)):
            break
        footers.append(
            f"line {len(lines):,} of {path.name} is a footer and left out: {_shorten(word)!r}"
        )
        lines.pop()
        while lines and not lines[-1].strip():
            lines.pop()
    if not footers:
        return content
    notes += footers[::-1]
    return "\n".join([*lines, ""])


def _shorten(word: str, length: int = 60) -> str:
    return word if len(word) <= length else f"{word[: length - 1]}…"


def _unreadable(path: Path, error: OSError) -> ValueError:
    reason = (error.strerror or type(error).__name__).lower()
    return ValueError(f"{path} cannot be read: {reason}")


def _parse_parquet(path: Path, content: bytes) -> pandas.DataFrame:
    pyarrow = require("pyarrow", "Parquet files need", "report")
    parquet = require("pyarrow.parquet", "Parquet files need", "report")
    try:
        table = parquet.read_table(pyarrow.BufferReader(content))
    except (pyarrow.ArrowException, OSError) as error:
        reason = (str(error).splitlines() or ["damaged"])[0]
        raise ValueError(f"{path} is not a readable Parquet file: {reason}") from None
    # The index of the frame it was written from is not a column of the table.
    indices = [name for name in table.column_names if name.startswith("__index_level_")]
    frame = table.drop_columns(indices).to_pandas(ignore_metadata=True)
    frame.columns = _check_names(path, list(frame.columns))
    return frame


def _check_names(path: Path, names: list[str]) -> list[str]:
    """Refuse a name that stands twice; a column without one is called after its position."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, 1):
        if name.strip() and name in seen:
            raise ValueError(
                f"{path} has two columns called {name!r}, the {_ordinal(seen[name])} and the "
                f"{_ordinal(position)}; rename one of them"
            )
        seen[name] = position
    given = {name for name in names if name.strip()}
    made: list[str] = []
    for position, name in enumerate(names, 1):
        if not name.strip():
            name = f"column {position}"
            while name in given:
                name += "'"
        made.append(name)
    return made


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if number % 100 in (11, 12, 13) else endings.get(number % 10, "th")
    return f"{number}{ending}"
