"""``TableModel``: a preparer of tables and a classifier that are fitted and used as one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesknn._estimator import DOCUMENTATION, DocumentedMixin
from bayesknn._utils.checks import check_labels
from bayesknn._utils.saving import VersionMixin, fingerprint
from bayesknn._utils.words import free_name
from bayesknn.model_file.adapters import adapt
from bayesknn.predictive.decisions import occlude_columns
from bayesknn.tables.checks import check_table
from bayesknn.tables.preparer import TablePreparer
from bayesknn.tables.remarks import WARNING, tell


def _forward(name: str) -> Any:
    """Return a method that prepares rows and calls the classifier's method of the same name."""

    def method(self: TableModel, X: Any, *args: Any, **options: Any) -> Any:
        points = self.prepare(X)
        return getattr(self.classifier_, name)(points, *args, **options)

    def has_method(self: TableModel) -> bool:
        return hasattr(getattr(self, "classifier_", self.classifier), name)

    method.__name__ = name
    method.__doc__ = f"Return what ``{name}`` of the classifier returns for the rows of a table."
    return available_if(has_method)(method)


class TableModel(DocumentedMixin, VersionMixin, ClassifierMixin, BaseEstimator):
    """A classifier of the rows of tables, whatever their types and formats.

    Parameters
    ----------
    preparer : TablePreparer, optional
        What is known of the columns; by default everything is learned.
    classifier : estimator, optional
        :class:`PooledNeighborsClassifier` by default. One that does not compare categories is given
        indicators and standardised numbers. Any classifier can be fitted and predict;
        :meth:`predict_table`, :func:`save_model` and the report need one of ours.

    Attributes
    ----------
    preparer_ : TablePreparer
        As fitted; ``preparer_.remarks_`` has what there is to know about the training table.
    classifier_ : estimator
        As fitted.
    classes_ : ndarray of shape (n_classes,)
    target_ : str
        The column of the classes.

    Examples
    --------
    >>> from bayesknn import PooledNeighborsClassifier
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.report import TableModel
    >>> ripley = load_ripley(as_frame=True)
    >>> model = TableModel(classifier=PooledNeighborsClassifier(("discriminant",), random_state=0))
    >>> model = model.fit(ripley.X_train, ripley.y_train)
    >>> model.predict(ripley.X_test[:2].astype(str)).tolist()
    [0, 0]
    """

    _doc_link_template = f"{DOCUMENTATION}/api/bayesknn.report.{{estimator_name}}.html"

    def __init__(self, preparer: Any = None, classifier: Any = None):
        self.preparer = preparer
        self.classifier = classifier

    def fit(self, X: Any, y: Any, **options: Any) -> TableModel:
        """Learn what the columns are, and fit the classifier to them.

        Parameters
        ----------
        X : Table, frame, array or list of rows
            The training rows without their classes; :meth:`Table.split` gives both.
        y : array-like of shape (n,)
            Their classes.
        **options
            Passed to the ``fit`` of the classifier: ``sample_weight``, ``groups``, by default the
            columns that the preparer names.

        Returns
        -------
        TableModel
            Itself.
        """
        given = {name: each for name, each in options.items() if each is not None}
        measured, read = self.learn(X, y, is_grouped="groups" in given)
        return self.fit_measured(measured, y, **read | given)

    def learn(
        self, X: Any, y: Any, *, is_ordered: bool = False, is_grouped: bool = False
    ) -> tuple[Any, dict[str, Any]]:
        """Learn what the columns are; return the training rows, measured, and options of the fit.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        is_ordered : bool
            Whether rows are evaluated in an order, so that classes may change along it.
        is_grouped : bool
            Whether the fit will have ``groups``.
        """
        from bayesknn.pooled import PooledNeighborsClassifier

        preparer = TablePreparer() if self.preparer is None else clone(self.preparer)
        default = PooledNeighborsClassifier(random_state=0)
        self.classifier_ = default if self.classifier is None else clone(self.classifier)
        needs = adapt(self.classifier_)
        self.preparer_ = preparer.set_params(
            keeps_missing=needs.takes_missing, **needs.encoding(preparer.impute)
        )
        measured, read = preparer.learn(X), preparer.read_fit_options(X)
        # A feature may be called as the classes are, which new rows must not be scored by.
        name = str(getattr(y, "name", None) or "class")
        self.target_ = preparer.target_ or free_name(name, preparer.columns_, "{}_")
        classes, labels = check_labels(y, len(measured))
        preparer.remarks_ += check_table(
            preparer,
            measured,
            classes[labels],
            self.target_,
            is_ordered=is_ordered,
            is_grouped=bool(preparer.group) or is_grouped,
            others=preparer.read_left_out(X),
        )
        return measured, read

    def fit_measured(self, measured: Any, y: Any, **options: Any) -> TableModel:
        """Fit the classifier to rows that :meth:`learn` returned."""
        self.classifier_.fit(self.arrange(measured), np.asarray(y), **options)
        self.n_features_in_ = len(self.preparer_.columns_)
        return self

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of the columns of ``predict_proba``."""
        return self.classifier_.classes_

    @property
    def adapter(self) -> Any:
        """What the report asks of the classifier."""
        return adapt(self.classifier_)

    def measure(self, X: Any) -> Any:
        """Return the columns in use of new rows (:meth:`TablePreparer.measure`)."""
        return self.preparer_.measure(X)

    def arrange(self, measured: Any) -> Any:
        """Return measured rows as the classifier takes them."""
        return self.preparer_.encoder_.transform(measured)

    def prepare(self, X: Any) -> Any:
        """Return rows as the classifier takes them, with one warning about columns that differ.

        Parameters
        ----------
        X : Table, frame, array or list of rows
            With the columns of training.
        """
        check_is_fitted(self, "classifier_")
        measured = self.measure(X)
        if doubts := tell(self.preparer_.examine(X, measured), WARNING):
            warnings.warn("; ".join(doubts), UserWarning, stacklevel=3)
        return self.arrange(measured)

    def proba_of_measured(self, measured: Any) -> np.ndarray:
        """Return class probabilities of measured rows."""
        return self.classifier_.predict_proba(self.arrange(measured))

    def pipeline_for(self, classifier: Any) -> Pipeline:
        """Return a pipeline, not fitted, of measured rows: what a classifier needs, and itself."""
        encoder = clone(self.preparer_.encoder_).set_params(**adapt(classifier).encoding())
        return Pipeline([("columns", encoder), ("classifier", classifier)])

    @property
    def own_pipeline(self) -> Pipeline:
        """The same model as a pipeline of measured rows, which may be cloned and fitted."""
        steps = [("columns", self.preparer_.encoder_), ("classifier", self.classifier_)]
        return Pipeline(steps)

    def is_fitted_to(self, points: Any) -> bool:
        """Whether these points are those of training, in the same order."""
        known = self.classifier_.diagnostics_.get("training", {})
        if len(points) != len(self.classifier_.loo_proba_):
            return False
        return fingerprint(points, np.zeros(len(points)))["rows"] == known.get("rows")

    def predict_table(self, path: str | Path, level: float = 0.95, **form: Any) -> Any:
        """Return the predictions of a file, as ``bayesknn predict`` writes them.

        Parameters
        ----------
        path : str or Path
            A CSV, Excel or Parquet file.
        level : float, default=0.95
            Level of the intervals.
        **form
            How to read it, as :func:`read_table` takes it.

        Returns
        -------
        pandas.DataFrame
            A row for each row of the file. A warning tells what differs from training.
        """
        from bayesknn.model_file.predictions import predict_new
        from bayesknn.tables.files import read_table

        table = read_table(path, **form)
        predictions = predict_new(self, table, level)
        if doubts := tell(predictions.examine(self, table), WARNING):
            warnings.warn("; ".join(doubts), UserWarning, stacklevel=2)
        return predictions.to_frame()

    def predict_contributions(
        self, X: Any, background: Any = None, n_background: int = 20
    ) -> np.ndarray:
        """Return what each column in use contributes to the log odds of each row's class.

        Parameters
        ----------
        X, background : Table, frame, array or list of rows
            ``background`` has the other rows, such as those of training; X itself by default.
        n_background : int, default=20
            How many of them are used.

        Returns
        -------
        ndarray of shape (m, p)
            In the order of ``preparer_.kinds_``.
        """
        rows = self.measure(X)
        others = rows if background is None else self.measure(background)
        return occlude_columns(self.proba_of_measured, rows, others, n_background)

    predict = _forward("predict")
    predict_proba = _forward("predict_proba")
    predict_log_proba = _forward("predict_log_proba")
    predict_interval = _forward("predict_interval")
    predict_zone = _forward("predict_zone")
    predict_summary = _forward("predict_summary")
    predict_typicality = _forward("predict_typicality")
    predict_influence = _forward("predict_influence")
    predict_counts = _forward("predict_counts")
    predict_decision = _forward("predict_decision")
    sample_labels = _forward("sample_labels")
