"""From the columns of a table to points between which a distance makes sense.

By default every numeric column is standardised and every category becomes indicators of 0 and 1.
The two scales agree: two independent rows differ by 2 on average in the square of a standardised
column, and two different categories differ by 2 in the square of their indicators. Above
``MAX_CATEGORIES`` the rarer categories share one indicator, as do categories that training did
not see. With Gower's distance columns are compared as they are.

What is saved is a scikit-learn ``Pipeline`` of these steps and the classifier.
"""

from __future__ import annotations

import hashlib
import math
import warnings
import zipfile
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesknn._utils.extras import require
from bayesknn.report.columns import (
    MAX_CATEGORIES,
    NUMERIC,
    ColumnPlan,
    as_measured,
    check_new_rows,
    name_categories,
)
from bayesknn.report.described import describe
from bayesknn.report.reading import KINDS, find_model
from bayesknn.report.words import count, say_of_columns, shorten

if TYPE_CHECKING:
    import pandas
    from sklearn.pipeline import Pipeline

# What a saved model may hold beside the types that skops knows by itself.
TRUSTED = (
    "bayesknn.classifier.BayesianKNeighborsClassifier",
    "bayesknn.pooled.classifier.PooledNeighborsClassifier",
    # What SimpleImputer keeps of the columns it was fitted to: read as an empty array's.
    "numpy.dtype",
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    # For columns that pass as they are. A function in it would be a type to refuse by itself.
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
)


def build_pipeline(
    plan: ColumnPlan, classifier: Any, *, scale: bool = True, impute: bool = False
) -> Pipeline:
    """Put the preparation of the columns before a classifier.

    Parameters
    ----------
    plan : ColumnPlan
        Which columns are numeric and which are categorical.
    classifier : estimator
        Its ``metric`` decides how categories are compared; a pool takes the columns as they are.
    scale : bool, default=True
        Whether numeric columns are standardised.
    impute : bool, default=False
        Whether a missing number becomes the column's median and a missing category one of its
        own.

    Returns
    -------
    sklearn.pipeline.Pipeline
    """
    from sklearn.base import clone
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    about = describe(classifier)
    takes_all = about.takes_categories
    numbers: list[tuple[str, Any]] = []
    words: list[tuple[str, Any]] = []
    if impute and not about.filled:
        numbers.append(("fill", SimpleImputer(strategy="median")))
        words.append(("fill", SimpleImputer(strategy="constant", fill_value="(missing)")))
    if scale and not takes_all:
        numbers.append(("standardise", StandardScaler()))
    if not takes_all:
        encoder = OneHotEncoder(
            max_categories=MAX_CATEGORIES,
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
        )
        words.append(("indicate", encoder))
    parts = []
    for kind, part in KINDS.items():
        if columns := [name for name, its in plan.kinds.items() if its == kind]:
            steps = numbers if kind in NUMERIC else words
            parts.append((part, clone(Pipeline(steps)) if steps else "passthrough", columns))
    transformer = ColumnTransformer(parts, verbose_feature_names_out=False)
    if takes_all:
        # A frame, by which they know the categories from the numbers.
        transformer.set_output(transform="pandas")
    return Pipeline([("columns", transformer), ("classifier", classifier)])


@dataclass
class Model:
    """A fitted pipeline and what it expects of a table.

    Attributes
    ----------
    pipeline : sklearn.pipeline.Pipeline
    target : str
        The column that held the classes.
    kinds : dict of str to str
        The columns it reads, and the kind of each in training; :func:`read_table` takes it.
    categories : dict of str to list of str
        Of each column that has some, those of training.
    identifiers : list of str
        Columns that told the rows of the training table apart.
    fills : str
        What takes the place of missing numbers, ``"mean"`` or ``"median"``; empty if a missing
        value is an error.
    ranges : dict of str to list of two floats
        The least and the largest number of each numeric column in training, dates in days.
    """

    pipeline: Pipeline
    target: str
    kinds: dict[str, str]
    categories: dict[str, list[str]]
    identifiers: list[str]
    fills: str
    ranges: dict[str, list[float]] = field(default_factory=dict)

    @property
    def classifier(self) -> Any:
        """The last step."""
        return self.pipeline[-1]

    @property
    def about(self) -> Any:
        """What is to be known of the classifier."""
        return describe(self.classifier)

    @property
    def standardises(self) -> bool:
        """Whether numbers are standardised."""
        return _has_step(self.pipeline, "standardise")

    def prepare(self, frame: pandas.DataFrame) -> Any:
        """Return a table's rows as points, or say what is wrong with it.

        Parameters
        ----------
        frame : pandas.DataFrame
            Further columns are passed over.

        Returns
        -------
        points : ndarray or pandas.DataFrame
            What the classifier takes.
        """
        if self.categories:
            frame = name_categories(frame, self.kinds)
        check_new_rows(frame, self.kinds, impute=bool(self.fills))
        columns = as_measured(frame, self.kinds)
        if self.about.is_gower:
            self._refuse_unseen(columns)
        return self.transform(columns)

    def transform(self, columns: pandas.DataFrame) -> Any:
        """Return measured columns as points, which are known to be of the right kinds."""
        with warnings.catch_warnings():
            # Unseen categories are counted and told by column.
            warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
            return self.pipeline[:-1].transform(columns)

    def tell_gaps(self, frame: pandas.DataFrame, table: str = "") -> list[str]:
        """Say how many values of a table are filled in, and how many categories are new to it.

        Parameters
        ----------
        frame : pandas.DataFrame
            With categories as in training (:func:`name_categories`).
        table : str
            What the table is called, as in ``" of the test table"``.
        """
        gaps = {name: int(frame[name].isna().sum()) for name in self.kinds}
        told = []
        for is_number, filled in ((True, f"its {self.fills}"), (False, "a category of its own")):
            where = {
                name: f"in {count(n, 'row')}"
                for name, n in gaps.items()
                if n and (self.kinds[name] in NUMERIC) == is_number
            }
            told += say_of_columns(where, f"{table} has no value", f": filled with {filled}")
        return told + self._tell_unseen(frame, table, mostly=False)

    def find_shifts(self, frame: pandas.DataFrame, table: str = "") -> list[str]:
        """Say which columns of a table mostly hold other values than those of training.

        Parameters
        ----------
        frame, table
            As in :meth:`tell_gaps`.
        """
        measured = as_measured(frame, self.kinds)
        where = {}
        for name, ends in self.ranges.items():
            values = measured[name].dropna()
            outside = values[~values.between(*ends)]
            # A few new rows lie beyond those of training by chance.
            if len(outside) > 0.1 * len(values):
                example, low, high = (
                    _show_number(each, self.kinds[name]) for each in (outside.iloc[0], *ends)
                )
                where[name] = (
                    f"in {len(outside):,} of {count(len(values), 'row')}, such as {example} "
                    f"(training: {low} to {high})"
                )
        beyond = say_of_columns(where, f"{table} holds values outside the range of training")
        return beyond + self._tell_unseen(frame, table, mostly=True)

    def _tell_unseen(self, frame: pandas.DataFrame, table: str, mostly: bool) -> list[str]:
        """Tell of the columns most of whose categories are new, or of the other columns."""
        where = {}
        for name in self.categories:
            new = frame[name][self._find_unseen(frame, name)]
            if len(new) and (2 * len(new) > frame[name].count()) == mostly:
                examples = " and ".join(repr(shorten(each)) for each in new.unique()[:2])
                where[name] = f"in {count(len(new), 'row')}, such as {examples}"
        what = f"{table} holds categories that training did not see"
        return say_of_columns(where, what, f": {self.about.unseen}")

    def _find_unseen(self, frame: pandas.DataFrame, name: str) -> Any:
        known = self.categories.get(name)
        return frame[name].notna() & (known is not None) & ~frame[name].isin(known or [])

    def _refuse_unseen(self, columns: pandas.DataFrame) -> None:
        for name in self.kinds:
            if (unseen := self._find_unseen(columns, name)).any():
                raise ValueError(
                    f"column {name!r} holds the category {columns[name][unseen].iloc[0]!r}, which "
                    "training did not see and Gower's distance cannot compare"
                )


def find_ranges(frame: pandas.DataFrame, kinds: Mapping[str, str]) -> dict[str, list[float]]:
    """Return the least and the largest number of each numeric column of measured rows."""
    numeric = frame[[name for name, kind in kinds.items() if kind in NUMERIC]]
    return {
        str(name): [float(column.min()), float(column.max())] for name, column in numeric.items()
    }


def _show_number(value: float, kind: str) -> str:
    import pandas

    if kind == "date":
        return str((pandas.Timestamp(0) + pandas.Timedelta(days=value)).date())
    return f"{value:.5g}"


def keep_table(pipeline: Pipeline, plan: ColumnPlan, frame: pandas.DataFrame) -> Model:
    """Write on a fitted pipeline what it expects of a table, to be saved with it.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        As :func:`build_pipeline` makes them, fitted.
    plan : ColumnPlan
    frame : pandas.DataFrame
        The training rows, measured.
    """
    filled = _has_step(pipeline, "fill")
    pipeline.table_ = {
        "target": plan.target,
        "kinds": plan.kinds,
        "categories": {
            name: sorted(map(str, frame[name].dropna().unique())) for name in plan.categorical
        },
        "identifiers": plan.identifiers,
        "fills": "median" if filled else describe(pipeline[-1]).filled,
        "ranges": find_ranges(frame, plan.kinds),
    }
    return as_model(pipeline)


def _has_step(pipeline: Pipeline, step: str) -> bool:
    """Whether the preparation of some columns has a step."""
    parts = getattr(pipeline[0], "named_transformers_", {}).values()
    return any(step in getattr(part, "named_steps", ()) for part in parts)


def as_model(pipeline: Any) -> Model:
    """Read off a fitted pipeline which columns it expects.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        As :func:`build_pipeline` makes them, fitted.

    Returns
    -------
    Model
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier

    if not (
        isinstance(pipeline, Pipeline)
        and list(pipeline.named_steps) == ["columns", "classifier"]
        and isinstance(pipeline[0], ColumnTransformer)
        and hasattr(pipeline[0], "transformers_")
        and isinstance(pipeline[1], BayesianKNeighborsClassifier | PooledNeighborsClassifier)
        and hasattr(pipeline[1], "classes_")
    ):
        raise ValueError("it does not hold a model that bayesknn fit wrote")
    if not hasattr(pipeline, "table_"):
        raise ValueError("an older version of bayesknn wrote it: fit it again")
    return Model(pipeline, **pipeline.table_)


def save_model(pipeline: Pipeline, path: Path) -> None:
    """Write a fitted pipeline to a file that no reader has to unpickle (skops).

    How many threads fitted it and whether it talked meanwhile is not kept. A digest of the parts
    is kept with them: it shows that a file was damaged, not that someone has forged it.
    """
    skops = _require_skops()
    silent = copy(pipeline)
    silent.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], copy(pipeline[-1]))]
    skops.dump(silent.set_params(classifier__n_jobs=None, classifier__verbose=0), path)
    # Opened here: where it cannot be, zipfile would begin an empty one in its place.
    with open(path, "r+b") as file, zipfile.ZipFile(file, "a") as archive:
        archive.comment = _seal(archive)


def load_model(path: Path) -> Model:
    """Read a model that ``bayesknn fit`` wrote.

    It may hold arrays, numbers, text, and the estimators of scikit-learn and of ours that are
    listed here; any other type is refused by name, before it is loaded. A damaged file is found
    out by its digest. Whoever writes a file on purpose can write a digest too, so a model is still
    to be taken only from people whose software one would install.

    Parameters
    ----------
    path : Path
        The file, or the folder that ``bayesknn fit`` wrote.

    Returns
    -------
    Model
    """
    skops = _require_skops()
    path = find_model(path)
    try:
        _check_members(path)
        strange = sorted(set(skops.get_untrusted_types(file=path)) - set(TRUSTED))
        if strange:
            raise ValueError(f"it holds {strange[0]}, a type that no model of ours has")
        with zipfile.ZipFile(path) as archive:
            if archive.comment != _seal(archive):
                raise ValueError(
                    "it does not hold a model that bayesknn fit wrote, or was damaged since"
                )
        return as_model(skops.load(path, trusted=list(TRUSTED)))
    except ValueError as error:
        raise ValueError(f"{path} is refused: {error}") from None
    except Exception as error:
        # A damaged or hostile file fails in as many ways as there are; none of them is ours.
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{path} is not a model of bayesknn fit: {reason}") from None


def _seal(archive: zipfile.ZipFile) -> bytes:
    """Digest of the members by name, length and checksum: it shows damage, not malice."""
    members = sorted((each.filename, each.file_size, each.CRC) for each in archive.infolist())
    return hashlib.sha256(repr(members).encode()).hexdigest().encode()


def _check_members(path: Path) -> None:
    """Refuse a file that holds more than a model, before any of it is read into memory.

    The schema is text that grows with the number of parts, not of rows; every other member is an
    array, whose header says how long it is.
    """
    from numpy.lib import format

    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > 100 * path.stat().st_size:
            raise ValueError("it unpacks to far more than it holds")
        for member in members:
            if member.filename == "schema.json":
                # Ten times that of a model of 20,000 categories and classes.
                fits = member.file_size <= 50_000_000
            else:
                with archive.open(member) as file:
                    format.read_magic(file)
                    shape, _, dtype = format.read_array_header_1_0(file)
                    fits = member.file_size == file.tell() + math.prod(shape) * dtype.itemsize
            if not fits:
                raise ValueError(f"its member {member.filename!r} is longer than it should be")


def _require_skops() -> Any:
    return require("skops.io", "saved models need", "persist")
