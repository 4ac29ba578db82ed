"""What each wrong decision costs, as people write it down: a small table with a row for each truth.

The header names the decisions, the first column the true classes, in any order::

    truth,no relapse,relapse
    no relapse,0,1
    relapse,10,0

Here it costs 10 to decide "no relapse" where there is a relapse. ``predictive.decide`` has the
decisions as rows, so the table is turned on its way there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesknn.report.reading import read_table

if TYPE_CHECKING:
    import pandas


def read_losses(path: str | Path, names: list[str], encoding: str | None = None) -> np.ndarray:
    r"""Read a table of losses, and check that it has a row and a column for each class.

    Parameters
    ----------
    path : str or Path
        A CSV or Parquet file.
    names : list of str
        The classes.
    encoding : str, optional
        Of a CSV file; UTF-8 by default.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        ``loss[a, g]`` is the loss of decision a where the truth is g, in the order of ``names``.
    """
    first = read_table(path, encoding).columns[0]
    # Once more, with the classes as they are written: 01 is not 1.
    table = read_table(path, encoding, text=[first])
    listing = f"the classes are {', '.join(names)}"
    for name in table.columns[1:]:
        if name not in names:
            raise ValueError(f"{path}: column {name!r} is not a class of the model; {listing}")
    for name in names:
        if name not in table.columns[1:]:
            raise ValueError(
                f"{path} has no column {name!r}: after the column of the true classes, one for "
                f"each decision is needed; {listing}"
            )
    truths = table[first].fillna("").tolist()
    for row, name in enumerate(truths, 1):
        if name not in names:
            raise ValueError(
                f"{path}: column {first!r} holds {name!r} in row {row}, which is not a class of "
                f"the model; {listing}"
            )
        if name in truths[: row - 1]:
            raise ValueError(f"{path}: column {first!r} holds {name!r} twice")
    for name in names:
        if name not in truths:
            raise ValueError(f"{path}: column {first!r} lacks the class {name!r}; {listing}")
    rows = table.set_index(first).loc[names]
    return np.array([_read_column(path, rows[name]) for name in names])


def _read_column(path: str | Path, column: pandas.Series) -> np.ndarray:
    """Return the losses of one decision, or name the first that is not a finite number."""
    import pandas

    values = pandas.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    for truth, text, value in zip(column.index, column.tolist(), values, strict=True):
        if not np.isfinite(value):
            what = "nothing" if pandas.isna(text) else repr(text)
            raise ValueError(
                f"{path}: column {column.name!r} holds {what} where the truth is {truth!r}; a loss "
                "is a finite number"
            )
    return values
