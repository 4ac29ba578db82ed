"""A table as it was read: its cells, where they come from, and its rows that have a class."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesknn._utils.checks import category_name, column_names, read_columns
from bayesknn._utils.words import count, free_name, join, shorten
from bayesknn.tables.kinds import NUMBER, Number, Text, Truth, as_text, is_text, learn_kinds
from bayesknn.tables.remarks import WARNING, Remark, on_table

if TYPE_CHECKING:
    import pandas

# Classes that stand for a value that nobody knows.
_UNKNOWN = re.compile(r"(?i)\s*(?:\?+|-+|\.|n[./]?a\.?|#n/a|unknown|not known|missing|nan)\s*")


@dataclass
class Table:
    """Cells of a table.

    Attributes
    ----------
    frame : pandas.DataFrame
        Its index counts the rows below the header from 1, blank lines not counted. The names of
        columns are distinct strings.
        Cells are text, NaN where they are empty, or of the types that the file or frame has.
    file : str
        Name of the file, empty if there is none.
    reads_numbers : bool
        Whether cells of text may be numbers: not where a file or a frame has types.
    has_semicolons : bool
        Whether semicolons separate the fields of the file.
    missing : tuple of str
        Further words for a missing value, which are NaN in ``frame``.
    remarks : list of Remark
        What of the file is read, and what is not.
    target : str
        The column of the classes, once it was split off; empty before.
    target_kind : Kind or None
        Kind of that column.
    merged : dict of str to str
        Names of classes with one row that became one class, and the name of that class.
    """

    frame: pandas.DataFrame
    file: str = ""
    reads_numbers: bool = False
    has_semicolons: bool = False
    missing: tuple[str, ...] = ()
    remarks: list[Remark] = field(default_factory=list)
    target: str = ""
    target_kind: Any = None
    merged: dict[str, str] = field(default_factory=dict)

    def split(self, target: str, rare: str = "drop") -> tuple[Table, Any, list[Remark]]:
        """Return the rows that have a class that can be learned, and their classes.

        Parameters
        ----------
        target : str
            The column that holds the classes.
        rare : {"drop", "merge", "error"}
            What becomes of classes with a single row: leave their rows out, make them one class,
            or raise ValueError.

        Returns
        -------
        X : Table
            The rows, without the target column.
        y : pandas.Series
            Their classes, int64 where all of them are whole numbers, str otherwise.
        remarks : list of Remark
            On the file, on rows that are left out and on classes that may be mistakes. ``X`` has
            them too.
        """
        import pandas

        with naming_file(self.file):
            column = find_column(self.frame, target)
            kinds, remarks = learn_kinds(
                column.to_frame(),
                reads_numbers=self.reads_numbers,
                has_semicolons=self.has_semicolons,
            )
            classes, merged, about = _take_classes(column, kinds[target], rare)
        frame = self.frame.loc[classes.index].drop(columns=target)
        remarks = [*self.remarks, *remarks, *about]
        kept = {"target": target, "target_kind": kinds[target], "merged": merged}
        table = replace(self, frame=frame, remarks=remarks, **kept)
        return table, pandas.Series(classes, name=target), remarks


def as_table(data: Any, missing: Sequence[str] = ()) -> Table:
    """Return a table, frame, array or list of rows as a table, which it may be already.

    Parameters
    ----------
    data : Table, frame, array or list of rows
        Columns of an array are called ``x0``, ``x1``, ...
    missing : sequence of str
        Words for a missing value, in addition to those of the table.
    """
    import pandas

    if not isinstance(data, Table):
        if not isinstance(data, pandas.DataFrame):
            names = column_names(data)
            columns = (
                {name: np.asarray(data[name]) for name in names}
                if names
                else {f"x{column.label}": column.values for column in read_columns(data)}
            )
            # Columns of a mixed array are all objects, of which some hold numbers alone.
            data = pandas.DataFrame(columns).infer_objects()
        names = [str(name) for name in data.columns]
        if doubled := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two columns are called {doubled[0]!r}; rename one of them")
        frame = data.set_axis(range(1, len(data) + 1), axis=0).set_axis(names, axis=1)
        data = Table(frame)
    more = tuple(word for word in missing if word not in data.missing)
    if not more:
        return data
    return replace(data, frame=mask(data.frame, more), missing=(*data.missing, *more))


def mask(frame: pandas.DataFrame, missing: Sequence[str]) -> pandas.DataFrame:
    """Return a frame without the cells that stand for a missing value.

    A number stands for its value however it is written: ``-999`` for ``-999.0``.
    """
    import pandas

    values = pandas.to_numeric(pandas.Series(missing, dtype=object), errors="coerce").dropna()
    hidden = frame.isin([*missing, *values])
    for name in frame if len(values) else ():
        column = frame[name]
        if is_text(column) and column.dtype.kind != "b":
            hidden[name] |= pandas.to_numeric(as_text(column), errors="coerce").isin(values)
    return frame.mask(hidden)


@contextmanager
def naming_file(file: str) -> Iterator[None]:
    """Name the file that a table was read from, if it was, in errors about it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{file}: {error}" if file else str(error)) from None


def find_column(frame: pandas.DataFrame, name: str) -> pandas.Series:
    """Return a column, or raise ValueError with the columns that there are."""
    if name in frame.columns:
        return frame[name]
    # Compared ignoring upper and lower case, the most common mistake.
    lower = {str(column).lower(): column for column in frame.columns}
    close = [lower[each] for each in get_close_matches(name.lower(), list(lower), 1)]
    hint = f"; did you mean {close[0]!r}?" if close else "."
    shown = join(list(map(repr, frame.columns))) + question_header(frame.columns)
    raise ValueError(f"there is no column {name!r}{hint} The columns are {shown}")


def split_names(given: Iterable[str], columns: Any) -> list[str]:
    """Return the names of columns among words that hold one, or several with commas between.

    Examples
    --------
    >>> from bayesknn.tables.table import split_names
    >>> split_names(["a,b", "weight, kg"], ["a", "b", "weight, kg"])
    ['a', 'b', 'weight, kg']
    """
    names: list[str] = []
    for word in given:
        parts = [word] if word in columns else [part.strip() for part in word.split(",")]
        names += [part for part in parts if part]
    return names


def question_header(names: Iterable[str]) -> str:
    """Return a question, for the end of a sentence, if column names look like a row of values.

    Examples
    --------
    >>> from bayesknn.tables.table import question_header
    >>> question_header(["5.1", "3.5", "setosa"])
    "; the column names look like values ('5.1', '3.5'): is the header missing?"
    >>> question_header(["town", "2019", "2020", "2021"])
    ''
    """
    names = list(names)
    numbers = [name for name in names if re.fullmatch(NUMBER, name)]
    values = [float(name) for name in numbers if re.fullmatch(r"\s*[+-]?\d*\.?\d+\s*", name)]
    # Years and the positions of a picture's pixels are names, in equal steps.
    steps = {after - before for before, after in pairwise(values)}
    whole = all(value % 1 == 0 for value in values)
    if not numbers or (whole and (2 * len(numbers) < len(names) or len(steps) == 1)):
        return ""
    examples = ", ".join(repr(shorten(name)) for name in numbers[:2])
    return f"; the column names look like values ({examples}): is the header missing?"


def name_classes(column: pandas.Series, kind: Any) -> pandas.Series:
    """Return the classes of rows as text, as the classes of training are written."""
    if isinstance(kind, Number):
        try:
            return as_text(kind.read(column))
        except ValueError:
            return as_text(column)
    return kind.name_cells(column) if isinstance(kind, Truth) else as_text(column)


def find_similar_names(names: Iterable[str]) -> list[list[str]]:
    """Return the groups of names that differ only in case or spaces.

    Examples
    --------
    >>> from bayesknn.tables.table import find_similar_names
    >>> find_similar_names(["Yes", "no", "yes ", "YES"])
    [['Yes', 'yes ', 'YES']]
    """
    groups = defaultdict(list)
    for name in names:
        groups["".join(name.split()).casefold()].append(name)
    return [group for group in groups.values() if len(group) > 1]


def list_names(names: Sequence[str]) -> str:
    """Return names with quotation marks, as they stand in a sentence."""
    return join([repr(shorten(name)) for name in names])


def _take_classes(
    column: pandas.Series, kind: Any, rare: str
) -> tuple[Any, dict[str, str], list[Remark]]:
    """Return the classes of the rows that are kept, by row; classes that were merged; remarks."""
    import pandas

    target, there = str(column.name), column.notna()
    if not there.any():
        raise ValueError(f"the target {target!r} has no value in any row")
    classes = pandas.Series(_as_classes(column[there], kind), column.index[there])
    remarks = []
    if without := column.index[~there].tolist():
        left_out = f"{count(len(without), 'row')} without a value in {target!r} left out"
        text, severity = f"{left_out}: {join(without, 5)}", "note"
        if len(without) > len(column) / 2:
            text = f"{left_out}, {100 * len(without) / len(column):.0f} % of the table: the model "
            text += "describes the others only"
            severity = WARNING
        remarks.append(on_table("classes-unlabelled", text, severity))
    sizes = classes.value_counts()
    alone = sorted(sizes.index[sizes == 1].tolist())
    names = [str(name) for name in np.unique(classes.to_numpy()).tolist()]
    unknown = [name for name in names if _UNKNOWN.fullmatch(name)]
    if unknown:
        n = int(classes.astype(str).isin(unknown).sum())
        text = (
            f"{list_names(unknown)} of {target!r} is taken as a class and looks like a missing "
            f"value, in {count(n, 'row')}: pass --na {shorten(unknown[0])!r} to leave them out"
        )
        remarks.append(on_table("class-unknown", text, WARNING))
    if not alone:
        return classes, {}, remarks
    similar = find_similar_names(names)
    hints = "".join(f"; {list_names(group)} differ only in case or spaces" for group in similar)
    singles = list_names([str(name) for name in alone])
    what = f"{count(len(alone), 'class', 'classes')} of {target!r} with one row, {singles},"
    if rare == "error":
        raise ValueError(
            f"there {'is' if len(alone) == 1 else 'are'} {what} and every class needs two: --rare "
            f"drop leaves such rows out, --rare merge makes them one class{hints}"
        )
    if rare == "merge" and len(alone) > 1:
        other = free_name("other", names)
        merged = {str(name): other for name in alone}
        remarks.append(on_table("classes-rare", f"{what} are one class, {other!r}"))
        return classes.astype(str).replace(merged), merged, remarks
    done = "is left out (--rare error rejects it)"
    if len(alone) > 1:
        done = "are left out (--rare merge makes them one class)"
    remarks.append(on_table("classes-rare", f"{what} {done}{hints}"))
    return classes[~classes.isin(alone)], {}, remarks


def _as_classes(column: pandas.Series, kind: Any) -> np.ndarray:
    """Return classes as whole numbers or as text; reject what measures rather than names."""
    target, n = f"the target {str(column.name)!r}", len(column)
    regression = (
        "this looks like regression, and bayesknn classifies; cut the target into classes first"
    )
    if isinstance(kind, Text):
        # As they are written: " a" and "a" are two classes, with a remark.
        names = kind.name_cells(column) if isinstance(kind, Truth) else as_text(column)
        if names.nunique() == n:
            raise ValueError(f"{target} is different in every row: it names no classes")
        return names.to_numpy(dtype=object).astype(str)
    if not isinstance(kind, Number):
        held = kind.plural if kind.is_measured else str(column.dtype)
        raise ValueError(f"{target} holds {held}, which names no classes")
    values = kind.read(column).to_numpy()
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


def match_classes(
    column: pandas.Series, kind: Any, classes: np.ndarray, merged: Mapping[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the class index of each row, -1 for another class, and the classes as text.

    Rows without a class have an empty text. Those of a ``merged`` class have the class that it
    became part of.
    """
    texts = name_classes(column, kind).fillna("").replace(merged).to_numpy(dtype=object)
    # Classes may be floats, which are whole.
    names = [f"{each:.0f}" if isinstance(each, float) else str(each) for each in classes.tolist()]
    # Those that are written alike, spaces aside, after those that are the same.
    numbers = {category_name(name): g for g, name in enumerate(names)}
    numbers |= {name: g for g, name in enumerate(names)}
    actual = [numbers.get(text, numbers.get(category_name(text), -1)) for text in texts]
    return np.array(actual, dtype=np.intp), texts
