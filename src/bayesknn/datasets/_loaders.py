"""Ripley's data, the Pima women and the glass fragments (Sections 1.2 and 4).

The loaders raise if the SHA-256 of a file differs from the recorded one, because the numbers of the
paper are reproduced exactly only from unchanged files.
"""

from __future__ import annotations

import csv
import hashlib
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch, check_random_state

from bayesknn._utils.extras import require

SHA256 = {
    "glass.csv": "fa0cdb81803dde0ac803bdebe73a9e4f8939d32d6535a15fe8481ccd5fb4edc1",
    "pima_test.csv": "82e31e1c892e64211a38b692320158268b422cf466dc92b1e25de948b829ac7f",
    "pima_train.csv": "900cade0b87a7d6cd13330585c049e096b7393604802a94acba017e2fbfe3081",
    "ripley_test.csv": "8d023cd6613ece33be6e51a1e5084119a174208290517dde38cf3f782300344d",
    "ripley_train.csv": "ae9da22671c9bd8c7f8387ffbdf3f6bf2356dc23705d3a8b6952ed687a7db48e",
}
# Number of training rows of the glass data: the paper's 89 of 185 rows, and the same proportion of
# all 214 rows.
_N_TRAIN = {"merged": 89, "raw": 103}


def load_ripley(*, as_frame: bool = False) -> Bunch:
    """Load Ripley's synthetic data, the running example of the paper.

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas objects instead of arrays.

    Returns
    -------
    sklearn.utils.Bunch
        ``X_train`` (250, 2), ``y_train``, ``X_test`` (1000, 2), ``y_test``, ``feature_names``,
        ``target_names`` and ``DESCR``. Labels are the integers 0 and 1.

    Examples
    --------
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> ripley.X_train.shape, ripley.X_test.shape
    ((250, 2), (1000, 2))
    """
    train, test = (read_table(f"ripley_{part}.csv") for part in ("train", "test"))
    train, test = (table._replace(labels=table.labels.astype(int)) for table in (train, test))
    return _bunch(train, test, "ripley", as_frame)


def load_pima(*, as_frame: bool = False) -> Bunch:
    """Load the Pima diabetes data with the paper's split into training and test rows.

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas objects instead of arrays.

    Returns
    -------
    sklearn.utils.Bunch
        ``X_train`` (200, 7), ``y_train``, ``X_test`` (332, 7), ``y_test``, ``feature_names``,
        ``target_names`` and ``DESCR``. Labels are the strings 'No' and 'Yes'.

    Examples
    --------
    >>> from bayesknn.datasets import load_pima
    >>> pima = load_pima()
    >>> int((pima.y_train == "Yes").sum()), int((pima.y_test == "Yes").sum())
    (68, 109)
    """
    train, test = (read_table(f"pima_{part}.csv") for part in ("train", "test"))
    return _bunch(train, test, "pima", as_frame)


def load_glass(
    random_state: int | np.random.RandomState | np.random.Generator | None = 0,
    *,
    classes: str = "merged",
    as_frame: bool = False,
) -> Bunch:
    """Load the forensic glass data with a random partition into training and test rows.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=0
        Source of the random partition. An int gives the same partition in every call, ``None`` a
        new one each time.
    classes : {"merged", "raw"}, default="merged"
        ``"merged"``: the paper's four classes WinF, WinNF, Veh and Con+Tabl, without the 29
        Head rows, split into 89 training and 96 test rows. ``"raw"``: all six classes and 214
        rows, split into 103 and 111.
    as_frame : bool, default=False
        Return pandas objects instead of arrays.

    Returns
    -------
    sklearn.utils.Bunch
        ``X_train``, ``y_train``, ``X_test``, ``y_test``, ``feature_names``, ``target_names``,
        ``DESCR``, and ``train_rows`` and ``test_rows``, the indices of these rows among all 214.
        Like the paper's, the partition is not stratified by class.

    Examples
    --------
    >>> from bayesknn.datasets import load_glass
    >>> glass = load_glass(random_state=1)
    >>> glass.X_train.shape, glass.X_test.shape
    ((89, 9), (96, 9))
    >>> glass.target_names.tolist()
    ['Con+Tabl', 'Veh', 'WinF', 'WinNF']
    """
    if classes not in _N_TRAIN:
        raise ValueError(f"classes must be 'merged' or 'raw', got {classes!r}")
    table = read_table("glass.csv")
    labels, rows = table.labels, np.arange(len(table.labels))
    if classes == "merged":
        rows = np.flatnonzero(labels != "Head")
        labels = np.where(np.isin(labels, ["Con", "Tabl"]), "Con+Tabl", labels)
    # An int seeds a RandomState, because NumPy guarantees its stream: the same seed gives the same
    # partition with every version of NumPy.
    if isinstance(random_state, np.random.Generator):
        rng: np.random.Generator | np.random.RandomState = random_state
    else:
        rng = check_random_state(random_state)
    rows = rng.permutation(rows)
    # Sorting keeps the rows of each part in the order of the file.
    parts = np.sort(rows[: _N_TRAIN[classes]]), np.sort(rows[_N_TRAIN[classes] :])
    train, test = (Table(table.X[part], labels[part], table.feature_names) for part in parts)
    result = _bunch(train, test, f"glass_{classes}", as_frame)
    result.train_rows, result.test_rows = parts
    return result


class Table(NamedTuple):
    """Content of a packaged file: the numeric columns, the labels and the names of the columns."""

    X: np.ndarray
    labels: np.ndarray
    feature_names: list[str]


def read_table(name: str) -> Table:
    """Read a packaged CSV file whose last column is the label.

    Parameters
    ----------
    name : str
        File name, a key of ``SHA256``.

    Returns
    -------
    Table
        ``X`` has dtype float64, ``labels`` holds the strings of the file unchanged.
    """
    content = _read(name)
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256[name]:
        raise ValueError(
            f"{name} has changed since it was packaged: its SHA-256 is {digest}, not "
            f"{SHA256[name]}; reinstall bayesknn"
        )
    header, *rows = csv.reader(content.decode("ascii").splitlines())
    X = np.array([row[:-1] for row in rows], dtype=np.float64)
    return Table(X, np.array([row[-1] for row in rows]), header[:-1])


def _bunch(train: Table, test: Table, name: str, as_frame: bool) -> Bunch:
    """Return a Bunch of a training and a test table and the description in the file ``name``."""
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
    description = _read(f"{name}.txt").decode("ascii")
    return Bunch(
        **parts,
        feature_names=list(train.feature_names),
        target_names=target_names,
        DESCR=description,
    )


def _read(name: str) -> bytes:
    return resources.files("bayesknn.datasets").joinpath("data", name).read_bytes()
