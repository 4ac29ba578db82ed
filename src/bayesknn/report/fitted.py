"""A report about a classifier that was fitted from Python, and not through a table model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn._utils.checks import check_groups, check_labels
from bayesknn._utils.saving import fingerprint
from bayesknn._utils.words import count, free_name
from bayesknn.evaluation.folds import Folds
from bayesknn.model_file.adapters import adapt
from bayesknn.model_file.predictions import predict_left_out
from bayesknn.model_file.table_model import TableModel
from bayesknn.report.analysis import Analysis, conclude
from bayesknn.tables.checks import check_table
from bayesknn.tables.encoder import ColumnEncoder
from bayesknn.tables.preparer import TablePreparer
from bayesknn.tables.table import Table, as_table, find_column


class GivenModel(TableModel):
    """A fitted classifier or pipeline in the form of a table model, for the report.

    Parameters
    ----------
    fitted : classifier or Pipeline
    frame : pandas.DataFrame
        The training rows.
    target : str
        What the classes are called.
    """

    def __init__(self, fitted: Any, frame: pandas.DataFrame, target: str):
        is_pipeline = isinstance(fitted, Pipeline) and len(fitted) > 1
        self.classifier_ = last = fitted[-1] if isinstance(fitted, Pipeline) else fitted
        self.target_ = target
        self.preparer_ = TablePreparer.of_given(frame, ("in by the pipeline",) * 2 * is_pipeline)
        as_given = None if hasattr(last, "feature_names_in_") else np.asarray
        self.preparer_.encoder_ = fitted[:-1] if is_pipeline else FunctionTransformer(as_given)

    def measure(self, X: Any) -> pandas.DataFrame:
        """Return the columns of training as they are given, dates as days."""
        columns, frame = {}, as_table(X).frame
        for name, learned in self.preparer_.columns_.items():
            column = find_column(frame, name)
            columns[name] = learned.kind.read(column) if learned.kind.name == "date" else column
        return pandas.DataFrame(columns, index=frame.index)

    def pipeline_for(self, classifier: Any) -> Pipeline:
        """Return a pipeline, not fitted, of the given columns for another classifier."""
        encoder = ColumnEncoder(**adapt(classifier).encoding())
        return Pipeline([("columns", encoder), ("classifier", classifier)])


def analyse_fitted(
    classifier: Any,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    groups: Any = None,
    time: Any = None,
    level: float = 0.95,
    compared: bool = False,
) -> Analysis:
    """Describe a classifier that was fitted from Python; arguments as of :func:`write_report`."""
    last = classifier[-1] if isinstance(classifier, Pipeline) else classifier
    if isinstance(classifier, TableModel):
        last = classifier.classifier_
    if not isinstance(last, BayesianKNeighborsClassifier | PooledNeighborsClassifier):
        raise ValueError(
            "the report is about a BayesianKNeighborsClassifier or a PooledNeighborsClassifier, or "
            f"a pipeline or a table model that ends with one; got a {type(last).__name__}"
        )
    check_is_fitted(last)
    names, numbers = check_labels(y)
    classes = names[numbers]
    if time is not None:
        time = np.asarray(time)
        if time.shape != classes.shape or pandas.isna(time).all():
            held = count(int(np.sum(~pandas.isna(time))), "value")
            raise ValueError(
                f"time must have a date or a number for each of the {count(len(classes), 'row')}; "
                f"its shape is {time.shape}, with {held}"
            )
    folds = Folds(_check_same_groups(last, groups, classes), time)
    table = _with_classes(X, "X", classes)
    target = free_name(str(getattr(y, "name", None) or "class"), list(table.frame), "{}_")
    model: Any = classifier
    if isinstance(classifier, TableModel):
        target, measured = model.target_, model.measure(table)
        points, remarks = model.arrange(measured), list(model.preparer_.remarks_)
        labels = _check_same_rows(last, points, classes)
    else:
        labels = _check_same_rows(classifier, X, classes)
        model = GivenModel(classifier, table.frame, target)
        measured = model.measure(table)
        remarks = check_table(
            model.preparer_,
            measured,
            classes,
            target,
            is_ordered=bool(folds.name),
            is_grouped=folds.groups is not None,
        )
        remarks += model.preparer_.examine(table, measured)
    test = None
    if X_test is not None:
        new = _with_classes(X_test, "X_test", None if y_test is None else np.asarray(y_test))
        test = new, model.measure(new)
        if y_test is not None:
            new.frame = new.frame.assign(**{target: np.asarray(y_test)})
    frame = table.frame.assign(**{target: classes})
    training = predict_left_out(model, frame, measured, labels, level)
    if name := getattr(groups, "name", None):
        training.group = str(name)
    analysis = Analysis(model, training, level=level, remarks=remarks)
    return conclude(analysis, test, folds, compared)


def _check_same_groups(classifier: Any, groups: Any, classes: np.ndarray) -> np.ndarray | None:
    """Return the groups of a fit; raise ValueError if others are given."""
    fitted, given = classifier.groups_, groups
    if groups is not None:
        given = check_groups(groups, len(classes))
    if groups is not None and not np.array_equal(given, fitted):
        how = "with other groups" if fitted is not None else "without groups"
        raise ValueError(
            f"the classifier was fitted {how}: its numbers are not for rows of new groups; fit it "
            "with fit(X, y, groups=groups), or leave groups out here"
        )
    return fitted


def _with_classes(X: Any, name: str, classes: Any) -> Table:
    """Return rows from Python as a table; raise ValueError if it has not as many classes."""
    table = as_table(X)
    if classes is not None and len(classes) != len(table.frame):
        n = len(table.frame)
        raise ValueError(f"{name} has {n:,} rows and its classes are {len(classes)}")
    return table


def _check_same_rows(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Return the class numbers of the rows that a classifier or a pipeline was fitted to.

    Raise ValueError if X and y are other rows, or the same in another order.
    """
    classifier, steps = model, None
    if isinstance(model, Pipeline):
        classifier, steps = model[-1], model[:-1] if len(model) > 1 else None
    numbers = {name: g for g, name in enumerate(classifier.classes_.tolist())}
    labels = np.array([numbers.get(name, -1) for name in classes.tolist()])
    n, fitted = len(classifier.loo_proba_), classifier.diagnostics_["training"]
    other = "is not what the model was fitted to, or in another order"
    if len(labels) != n:
        problem = f"X and y have {count(len(labels), 'row')}, the model was fitted to {n:,}"
    else:
        given = fingerprint(X if steps is None else steps.transform(X), labels)
        if steps is not None and given["rows"] != fitted["rows"]:
            # Some transformers return other numbers from `fit_transform` than from `transform`.
            # Fitted to X again, they must also transform X as the fitted ones do.
            again = clone(steps)
            points = again.fit_transform(X, classes)
            if fingerprint(again.transform(X), labels) == given:
                given = fingerprint(points, labels)
        if given == fitted:
            return labels
        problem = f"y {other}" if given["labels"] != fitted["labels"] else f"X {other}"
        if steps is not None and problem[0] == "X":
            problem += ", or a step of the pipeline draws random numbers without a random_state"
    raise ValueError(f"{problem}: pass the training rows as X and y, others as X_test and y_test")
