"""Read the packaged CSV files, refusing any whose SHA-256 is not the recorded one.

The exact numbers of the paper's tables hold for exactly these bytes.
"""

from __future__ import annotations

import csv
import hashlib
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from bayesknn._utils.extras import require

SHA256 = {
    "glass.csv": "fa0cdb81803dde0ac803bdebe73a9e4f8939d32d6535a15fe8481ccd5fb4edc1",
    "pima_test.csv": "82e31e1c892e64211a38b692320158268b422cf466dc92b1e25de948b829ac7f",
    "pima_train.csv": "900cade0b87a7d6cd13330585c049e096b7393604802a94acba017e2fbfe3081",
    "ripley_test.csv": "8d023cd6613ece33be6e51a1e5084119a174208290517dde38cf3f782300344d",
    "ripley_train.csv": "ae9da22671c9bd8c7f8387ffbdf3f6bf2356dc23705d3a8b6952ed687a7db48e",
}


class Table(NamedTuple):
    """The numeric columns of a file, its last column, and the names of the numeric ones."""

    X: np.ndarray
    labels: np.ndarray
    feature_names: list[str]


def read_table(name: str) -> Table:
    """Read one packaged file whose last column is the label.

    Parameters
    ----------
    name : str
        A key of ``SHA256``.

    Returns
    -------
    Table
        ``X`` of float64, ``labels`` of strings as they stand in the file.

    Examples
    --------
    >>> from bayesknn.datasets._files import read_table
    >>> table = read_table("ripley_train.csv")
    >>> table.X.shape, table.feature_names
    ((250, 2), ['x1', 'x2'])
    """
    content = resources.files("bayesknn.datasets").joinpath("data", name).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise ValueError(
            f"{name} was changed: its SHA-256 is {found}, not {SHA256[name]}; reinstall bayesknn"
        )
    header, *rows = csv.reader(content.decode("ascii").splitlines())
    X = np.array([row[:-1] for row in rows], dtype=np.float64)
    return Table(X, np.array([row[-1] for row in rows]), header[:-1])


def bunch(train: Table, test: Table, descr: str, as_frame: bool) -> Bunch:
    """Put a training and a test table together as the loaders return them."""
    parts: dict[str, Any] = {
        "X_train": train.X,
        "y_train": train.labels,
        "X_test": test.X,
        "y_test": test.labels,
    }
    target_names = np.unique(np.concatenate([train.labels, test.labels]))
    if as_frame:
        pd = require("pandas", "as_frame=True needs", "report")
        for part in ("train", "test"):
            X = parts[f"X_{part}"]
            parts[f"X_{part}"] = pd.DataFrame(X, columns=train.feature_names)
            parts[f"y_{part}"] = pd.Series(parts[f"y_{part}"], name="label")
    return Bunch(
        **parts, feature_names=list(train.feature_names), target_names=target_names, DESCR=descr
    )
