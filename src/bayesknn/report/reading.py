"""Tables as people have them: CSV and Parquet files, read into pandas frames or refused in a line.

A CSV file is UTF-8 with or without a byte-order mark; fields are separated by commas, or by
semicolons or tabs where the header has no comma. Its first line holds the names of the columns,
each of them once. An empty cell, ``NA``, ``N/A``, ``NaN``, ``nan``, ``null`` and ``NULL`` are
missing values; ``None`` is a word like any other. Truth values are read as the words ``True`` and
``False``, so that a category is always text.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")


def read_table(
    path: str | Path, encoding: str | None = None, *, text: Sequence[str] = ()
) -> pandas.DataFrame:
    r"""Read a CSV or Parquet file.

    Parameters
    ----------
    path : str or Path
        The file; Parquet is known by its first bytes, anything else is CSV.
    encoding : str, optional
        Of a CSV file; UTF-8 by default.
    text : sequence of str
        Columns to read as text even if they look like numbers; those that are not there are
        passed over.

    Returns
    -------
    pandas.DataFrame
        At least one row; the names of the columns are distinct strings.

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
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the file in it")
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ValueError(f"{path} cannot be read: {reason}") from None
    if content.startswith(b"PAR1"):
        frame = _parse_parquet(path, content)
    else:
        frame = _parse_csv(path, _decode(path, content, encoding), text)
    if len(frame) == 0:
        raise ValueError(f"{path} has a header but no rows")
    for name in frame.columns:
        if name in text or _is_category(frame[name]):
            frame[name] = _as_text(frame[name])
    return frame


def _is_category(column: pandas.Series) -> bool:
    import pandas

    if isinstance(column.dtype, pandas.CategoricalDtype) or pandas.api.types.is_bool_dtype(column):
        return True
    if column.dtype != object:
        return False
    return all(isinstance(value, str | bool) for value in column[column.notna()])


def _as_text(column: pandas.Series) -> pandas.Series:
    import pandas

    if isinstance(column.dtype, pandas.StringDtype):
        return column.astype("str")
    there = column.notna()
    words = pandas.Series(pandas.NA, index=column.index, dtype="str")
    words[there] = column[there].map(str).astype("str")
    return words


def _decode(path: Path, content: bytes, encoding: str | None) -> str:
    if encoding is None and content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path} is UTF-16, not UTF-8: pass --encoding utf-16")
    try:
        text = content.decode(encoding or "utf-8")
    except LookupError:
        raise ValueError(f"there is no encoding called {encoding!r}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path} is not {error.encoding.upper()}: byte 0x{content[error.start]:02x} in line "
            f"{line}; save it as UTF-8 or pass its encoding, for instance --encoding latin-1"
        ) from None
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise ValueError(f"{path} is empty")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(f"{path} is not a CSV file: it holds a zero byte in line {line}")
    return text


def _parse_csv(path: Path, content: str, text: Sequence[str]) -> pandas.DataFrame:
    import pandas

    first = content.split("\n", 1)[0]
    separator = next((s for s in (",", ";", "\t") if s in first), ",")
    try:
        header = next(csv.reader(io.StringIO(content), delimiter=separator))
    except csv.Error as error:
        raise ValueError(f"the header of {path} cannot be read: {error}") from None
    names = _check_names(path, header)
    # A semicolon is mostly chosen because the comma is taken by the decimals.
    comma = separator == ";" and re.search(r"(?:^|;)-?\d+,\d+\s*(?:;|$)", content, re.MULTILINE)
    with warnings.catch_warnings():
        # pandas drops the fields that exceed the header with no more than this warning.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        try:
            return pandas.read_csv(
                io.StringIO(content),
                sep=separator,
                decimal="," if comma else ".",
                header=0,
                names=names,
                index_col=False,
                dtype={name: "str" for name in text if name in names},
                keep_default_na=False,
                na_values=list(MISSING),
                low_memory=False,
            )
        except pandas.errors.ParserWarning:
            raise ValueError(
                f"{path} has rows of more fields than the {len(names)} names in its header"
            ) from None
        except pandas.errors.ParserError as error:
            reason = str(error).replace("Error tokenizing data. C error:", "")
            raise ValueError(f"{path} is not a CSV file: {' '.join(reason.split())}") from None


def _parse_parquet(path: Path, content: bytes) -> pandas.DataFrame:
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Parquet files need pyarrow, which is not installed: pip install 'bayesknn[report]'"
        ) from None
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
