"""Files of table models: written, checked and read."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Collection
from copy import copy
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from bayesknn._utils.extras import require
from bayesknn._utils.paths import find_model
from bayesknn.model_file import schema


def save_model(model: Any, path: str | Path) -> None:
    """Write a fitted model to a file that no reader has to unpickle (skops).

    How many threads fitted it and whether it showed its progress is not kept. A digest of the parts
    is kept with them: it shows that a file was damaged, not that someone has forged it.

    Parameters
    ----------
    model : TableModel
    path : str or Path
    """
    skops = require("skops.io", "saved models need", "persist")
    kept = copy(model)
    for name in ("classifier", "classifier_"):
        if (classifier := getattr(model, name)) is not None:
            setattr(kept, name, copy(classifier).set_params(n_jobs=None, verbose=0))
    skops.dump(kept, path)
    # Opened here: if it cannot be opened, zipfile would begin an empty file in its place.
    with open(path, "r+b") as file, zipfile.ZipFile(file, "a") as archive:
        archive.comment = schema.seal(archive)


def load_model(path: str | Path, trusted: Collection[str] = ()) -> Any:
    """Read a model that ``bayesknn fit`` or :func:`save_model` wrote.

    The file may hold arrays, numbers, text and one type of object; any other type is rejected by
    name before anything is built. The parts are checked against each other, and two rows are
    predicted. A digest finds damage. Whoever writes a file on purpose can write a digest too, and a
    model that predicts what they want, so a model is still to be taken only from people whose
    software one would install.

    Parameters
    ----------
    path : str or Path
        The file, or the folder that ``bayesknn fit`` wrote.
    trusted : collection of str
        Names of other types that the file may hold, such as
        ``"sklearn.linear_model._logistic.LogisticRegression"``, where the pool has a member of the
        user's own. Without them the error names all that are needed. Objects of these types can
        run code when they are built.

    Returns
    -------
    TableModel
        It predicts frames and other tables.
    """
    skops = require("skops.io", "saved models need", "persist")
    if isinstance(trusted, str):
        raise ValueError(f"trusted must be a list of names of types, got {trusted!r}")
    path = find_model(path)
    try:
        schema.check_file(path, trusted)
        model = skops.load(path, trusted=[*schema.TRUSTED, *trusted])
        _check_model(model)
        return model
    except ValueError as error:
        raise ValueError(f"{path} is refused: {' '.join(str(error).split())[:500]}") from None
    except Exception as error:
        # A damaged or hostile file fails in as many ways as there are; none of them is ours.
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{path} is not a model of bayesknn fit: {reason}") from None


def _check_model(model: Any) -> None:
    """Raise an exception if a model that was read is none, or cannot predict two rows.

    The rows hold the ends of each column's range, and two of its categories.
    """
    import pandas

    from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
    from bayesknn.model_file.table_model import TableModel
    from bayesknn.tables.encoder import ColumnEncoder, Scale
    from bayesknn.tables.kinds import KINDS
    from bayesknn.tables.preparer import TablePreparer

    if type(model) is not TableModel or type(model.preparer_) is not TablePreparer:
        raise ValueError("it does not hold a model that bayesknn fit wrote")
    if type(model.classifier_) not in (BayesianKNeighborsClassifier, PooledNeighborsClassifier):
        raise ValueError("it does not hold a classifier that bayesknn fit wrote")
    preparer = model.preparer_
    if type(preparer.encoder_) is not ColumnEncoder:
        raise ValueError("it does not hold an encoder of columns")
    columns: dict[str, Any] = {}
    for name, learned in preparer.columns_.items():
        if learned.reason:
            continue
        kind = learned.kind
        names = {each.name for each in fields(kind)}
        if type(kind) is not KINDS.get(kind.name) or vars(kind).keys() != names:
            raise ValueError(f"its column {name!r} is of no kind")
        if isinstance(preparer.encoder_.parts_[name], Scale) != kind.is_measured:
            raise ValueError(f"its column {name!r} is encoded as another kind")
        if kind.is_measured:
            columns[name] = ends = np.array([learned.low, learned.high], dtype=np.float64)
            if not np.isfinite(ends).all():
                raise ValueError(f"the range of its column {name!r} is not finite")
            kind.show(float(ends[0]))
        else:
            columns[name] = kind.read(pandas.Series((kind.levels * 2)[:2], dtype=object))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points = model.arrange(pandas.DataFrame(columns))
        summary = model.classifier_.predict_summary(points, 0.95)
    if not all(np.isfinite(each).all() for each in summary):
        raise ValueError("its predictions are not finite")
