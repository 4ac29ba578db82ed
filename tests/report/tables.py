"""Tables for the tests, and quick settings to fit them with."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
from click.testing import CliRunner

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.cli import main
from bayesknn.tables.files import read_table
from bayesknn.tables.kinds import Date, Text, learn_kinds
from bayesknn.tables.preparer import TablePreparer
from bayesknn.tables.remarks import tell
from bayesknn.tables.table import as_table

SCRIPT = "<script>alert(1)</script>"
# A posterior good enough to look at, in well under a second.
QUICK = {
    "likelihood": "pseudo", "max_neighbors": 25, "beta_max": 4.0, "n_draws": 200, "random_state": 0,
}  # fmt: skip
QUICK_OPTIONS = (
    "--model", "pseudo", "--max-neighbors", "25", "--beta-max", "4", "--draws", "200",
    "--no-compare",
)  # fmt: skip
PSEUDO = BayesianKNeighborsClassifier("pseudo", max_neighbors=8, beta_max=4.0, random_state=0)


def run(*words):
    """Run the command line, and return what it said."""
    return CliRunner().invoke(main, [str(word) for word in words])


def mixed_table(n=90, seed=0, n_towns=3):
    """Return numbers, categories, a class that is a script, and a column name that is a tag."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centres = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])
    points = rng.normal(size=(n, 2)) + centres[y]
    towns = np.where(rng.random(n) < 0.7, y, rng.integers(0, n_towns, n))
    return pd.DataFrame(
        {
            "length": points[:, 0],
            "<b>width</b>": points[:, 1],
            "town": [f"town {town}" for town in towns],
            "kind": np.array(["plain", SCRIPT, "$\\frac{a"])[y],
        }
    )


def two_columns(n=80, seed=0):
    """Return two numbers and two classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    points = rng.normal(size=(n, 2)) + 2.0 * y[:, None]
    return pd.DataFrame({"x": points[:, 0], "z": points[:, 1], "y": y})


def draw_visits(n_patients=30, size=5, noise=0.05, seed=0):
    """Return visits that are alike in x and z, and whose class belongs to the patient."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), size)
    x, z = rng.normal(size=(2, n_patients))[:, patient] + noise * rng.normal(size=(2, len(patient)))
    y = rng.permutation(np.arange(n_patients) % 2)[patient]
    codes = rng.permutation(1000)
    return pd.DataFrame({"x": x, "z": z, "patient": codes[patient], "y": y})


def plan_columns(table, target, **options):
    """Return a preparer that learned the columns of a table beside the target."""
    X, _, _ = as_table(table).split(target)
    return TablePreparer(**options).fit(X)


def notes(preparer):
    """Return what there is to know about the columns, in sentences."""
    return tell(preparer.remarks_, "note")


def used(preparer):
    """Return the columns in use."""
    return list(preparer.kinds_)


def read_cells(path, encoding=None, *, known=None, text=(), **options):
    """Return all columns of a file as they are read, their kinds and notes.

    Columns are read by the ``known`` kinds of another file, or by those that are learned.
    """
    table = read_table(path, encoding, **options)
    kinds, remarks = learn_kinds(
        table.frame, reads_numbers=table.reads_numbers, has_semicolons=table.has_semicolons,
        as_categories=[name for name in text if name in table.frame],
    )  # fmt: skip
    kinds = kinds if known is None else known
    columns = {}
    for name, kind in kinds.items():
        column = table.frame[name]
        columns[name] = kind.name_cells(column) if isinstance(kind, Text) else kind.read(column)
        if isinstance(kind, Date):
            days = pd.to_timedelta(columns[name], unit="D").dt.round("s")
            columns[name] = pd.Timestamp(0) + days
    frame = pd.DataFrame(columns).reset_index(drop=True)
    return SimpleNamespace(frame=frame, kinds=kinds, notes=tell([*table.remarks, *remarks], "note"))
