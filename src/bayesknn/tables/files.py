r"""Files as people have them, read into cells or rejected in a line.

Files are CSV, also compressed (``.csv.gz``), Excel (``.xlsx``) and Parquet; what a file is, its
first bytes say. A CSV file is UTF-8 with or without a byte-order mark; its fields are separated by
commas, semicolons, tabs or bars, whichever cuts its lines into equally many fields. The first line
holds the names of the columns, each of them once. An empty cell, ``NA``, ``N/A``, ``NaN``,
``nan``, ``null`` and ``NULL`` are missing values; ``None`` is a word like any other. Words that
stand alone below the table, in a column of numbers or as ``Source: ...``, are a footer and no row.
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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesknn._utils.extras import require
from bayesknn._utils.paths import check_readable
from bayesknn._utils.words import free_name, join, shorten
from bayesknn.tables.kinds import MEASURED, as_text, text_dtype
from bayesknn.tables.remarks import Remark, on_table
from bayesknn.tables.table import Table, mask, question_header

if TYPE_CHECKING:
    import pandas

# Records of a CSV file: the number of the line in which each ends, and its fields.
Records = list[tuple[int, list[str]]]
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
# First rows of a file that may be a title above the names of the columns.
_MOST_TITLES = 20
_NO_HEADER = "{} has no row {} with the names of columns"


class TooLargeError(ValueError):
    """A table that unpacks to far more than its file holds."""


def read_table(
    path: str | Path,
    encoding: str | None = None,
    *,
    separator: str | None = None,
    sheet: str | None = None,
    missing: Sequence[str] = (),
    header_row: int | None = None,
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
    sheet : str, optional
        Of an Excel file; the first by default.
    missing : sequence of str
        What else stands for a missing value, such as ``"?"``. A number stands for its value:
        ``"-999"`` also for ``-999.0``.
    header_row : int, optional
        The row of a CSV or Excel file that holds the names of the columns, counted from 1; rows
        above it are left out. The first row that is not empty by default.

    Returns
    -------
    Table
        At least one row. :meth:`Table.split` takes the classes off it.
    """
    path = Path(path)
    check_readable(path)
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = _decompress(path, content)
    _reject_other_files(path, content)
    remarks: list[Remark] = []
    is_parquet = content.startswith(b"PAR1")
    if is_parquet:
        frame = _parse_parquet(path, content)
    elif content.startswith(b"PK\x03\x04"):
        frame = _parse_excel(path, content, remarks, sheet, header_row)
    else:
        decoded = _decode(path, content, encoding)
        decoded = "\n".join(decoded.split("\n")[(header_row or 1) - 1 :])
        if not decoded.strip():
            raise ValueError(_NO_HEADER.format(path, header_row))
        records = {each: _first_records(decoded, each) for each in {*_SEPARATORS, separator or ","}}
        separator = separator or _find_separator(records)
        if header_row is None:
            _reject_titles(path, records)
        frame = _parse_csv(path, decoded, separator, records[separator], remarks)
    if len(frame) == 0:
        raise ValueError(f"{path} has a header but no rows")
    frame = frame.set_axis(range(1, len(frame) + 1), axis=0)
    frame = mask(frame, missing) if missing else frame
    semicolons = separator == ";"
    return Table(frame, path.name, not is_parquet, semicolons, tuple(missing), remarks)


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


def _reject_other_files(path: Path, content: bytes) -> None:
    """Raise ValueError that names what a file is, if it is no table of ours."""
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
        # Windows' code page has the euro sign, which Latin-1 turns into a control character, and
        # gives no character to five bytes.
        windows = not any(byte in content for byte in b"\x81\x8d\x8f\x90\x9d")
        likely = "cp1252" if windows else "latin-1"
        raise ValueError(
            f"{path} is not {called}: byte 0x{content[error.start]:02x} in line "
            f"{line}; save it as UTF-8 or pass its encoding, for instance --encoding {likely}"
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
    path: Path, content: str, separator: str, records: Records, remarks: list[Remark]
) -> pandas.DataFrame:
    """Read a CSV file as words; remarks tell what is left out."""
    import pandas

    if not records:
        raise ValueError(
            f"the header of {path} cannot be read: it has a name of more than "
            f"{csv.field_size_limit():,} characters, or a quotation mark that is not closed"
        )
    names = _check_names(path, records[0][1], remarks)
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
    return _cut_footer(frame, path.name, remarks)


def _find_separator(records: Mapping[str, Records]) -> str:
    """Return what cuts most of the first lines into as many fields as the header, and into most."""

    def judge(separator: str) -> tuple[float, int]:
        lengths = [len(record) for _, record in records[separator]] or [1]
        return (lengths.count(lengths[0]) / len(lengths), lengths[0]) if lengths[0] > 1 else (0, 1)

    best = max(_SEPARATORS, key=judge)
    return best if judge(best)[1] > 1 else ","


def _first_records(content: str, separator: str) -> Records:
    """Cut the first hundred lines into fields; return them with the numbers of the lines."""
    records: Records = []
    reader = csv.reader(io.StringIO(content), delimiter=separator)
    with suppress(csv.Error):  # what was read until there has to do; pandas will say what is wrong
        records.extend((reader.line_num, record) for record in islice(filter(None, reader), 101))
    return records


def _reject_titles(path: Path, records: Mapping[str, Records]) -> None:
    """Raise ValueError if lines above the names of the columns are a title."""
    if any(len(each[0][1]) > 1 for each in records.values() if each):
        return
    for separator in _SEPARATORS:
        sizes = [(line, len(record)) for line, record in records[separator]]
        lengths = [n for _, n in sizes]
        common = max(set(lengths), key=lengths.count, default=0)
        if common > 1 and len(sizes) > 2:
            _check_header(path, [(i, n) for i, n in sizes if n in (1, common)])


def _check_header(path: Path, sizes: list[tuple[int, int]]) -> None:
    """Raise ValueError if the first row fills few columns, and names the row that fills them all.

    ``sizes`` are numbers of rows and how many cells of each are filled.
    """
    width = max((n for _, n in sizes), default=0)
    first = next(((i, n) for i, n in sizes[:_MOST_TITLES] if n == width), None)
    if first is None or 2 * sizes[0][1] >= width:
        return
    raise ValueError(
        f"{path} has a title: its row {sizes[0][0]} fills {sizes[0][1]} of {width} columns, and "
        f"row {first[0]} has the names: pass --header-row {first[0]}"
    )


def _cut_footer(frame: pandas.DataFrame, file: str, remarks: list[Remark]) -> pandas.DataFrame:
    """Take words off that stand alone below the table, and remark on each with its row."""
    first, others = frame.iloc[:, 0], frame.iloc[:, 1:].notna().any(axis=1)
    above = first[others].dropna()[:100]
    no_words = len(above) > 0 and above.str.fullmatch(MEASURED).all()
    is_footer = re.compile(r"(?i)\s*(?:sources?|notes?|footnotes?|copyright|generated|\*|#|©)\b")
    n = len(frame)
    while n > 1 and frame.shape[1] > 1 and not others[n - 1] and isinstance(first[n - 1], str):
        # Below words it may be a row whose other cells are missing, unless it says what it is.
        if re.fullmatch(MEASURED, first[n - 1]) or not (no_words or is_footer.match(first[n - 1])):
            break
        n -= 1
    told = [
        f"row {i + 1:,} of {file} is a footer and left out: {shorten(first[i], 60)!r}"
        for i in range(n, min(len(frame), n + _MOST_NOTED))
    ]
    if (n_more := len(frame) - n - _MOST_NOTED) > 0:
        told.append(f"{n_more:,} more rows at the end of {file} are a footer and left out")
    remarks += [on_table("file", text) for text in told]
    return frame[:n]


def _parse_excel(
    path: Path,
    content: bytes,
    remarks: list[Remark],
    wanted: str | None,
    header_row: int | None,
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
        text = f"the sheet {names[0]!r} of {path.name} is read, not {others}"
        remarks.append(on_table("file", f"{text} (--sheet reads another)"))
    if not rows:
        raise ValueError(f"{path} is empty")
    if header_row is None:
        _check_header(
            path, [(number, sum(each is not None for each in row)) for number, row in rows]
        )
    cells = [row for number, row in rows if number >= (header_row or 1)]
    if not cells:
        raise ValueError(_NO_HEADER.format(path, header_row))
    sheet = pandas.DataFrame(cells, dtype=object).fillna(math.nan).dropna(how="all", axis=1)
    header = ["" if value != value else str(value) for value in sheet.iloc[0]]
    names = _check_names(path, header, remarks)
    frame = sheet.iloc[1:].set_axis(names, axis=1).reset_index(drop=True).infer_objects()
    return frame.apply(lambda each: as_text(each) if each.dtype == object else each)


def _read_rows(path: Path, content: bytes, sheet: Any) -> list[tuple[int, list[Any]]]:
    """Return number and cells, up to the last in use, of the rows of a sheet that have any."""
    rows: list[tuple[int, list[Any]]] = []
    width = 0
    sheet.reset_dimensions()  # what a file says of them may be wrong
    for number, cells in enumerate(sheet.rows, 1):
        if number > _MOST_ROWS:
            raise TooLargeError(f"{path} has more than {_MOST_ROWS:,} rows, the most in Excel")
        row = list(map(_read_cell, cells))
        while row and row[-1] is None:
            row.pop()
        if row:
            rows.append((number, row))
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


def _check_names(path: Path, names: list[str], remarks: list[Remark]) -> list[str]:
    """Return names of columns, after its position where one has none; reject equal names."""
    question = question_header(names)
    if question:
        text = f"{path.name}{question}".replace("; the", ": the", 1)
        remarks.append(on_table("header", text))
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
