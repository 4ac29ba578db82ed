"""From a table to a fitted model and its predictions: what ``bayesknn fit`` does first."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import column_names, read_columns
from bayesknn._utils.fingerprint import fingerprint
from bayesknn.report.columns import (
    MAX_CATEGORIES,
    NUMERIC,
    ColumnPlan,
    as_measured,
    check_new_rows,
    find_column,
    find_kinds,
    find_problems,
    name_categories,
    naming_file,
    number_rows,
    plan_columns,
    settle_rare,
    split_target,
)
from bayesknn.report.comparison import Comparison, compare
from bayesknn.report.described import describe
from bayesknn.report.pipeline import Model, build_pipeline, find_ranges, keep_table
from bayesknn.report.predictions import (
    Predictions,
    predict_left_out,
    predict_new,
)
from bayesknn.report.reading import kind_of
from bayesknn.report.scores import Scores
from bayesknn.report.words import count

if TYPE_CHECKING:
    import pandas

# Above this many rows the pseudo-likelihood stands in for the coherent one, unless it is asked
# for by name.
MAX_COHERENT_ROWS = 5000
_TOO_FEW = "the smallest class has too few rows to compare other classifiers on"


class Evaluated(NamedTuple):
    """Rows of a known class, to judge probabilities on.

    Attributes
    ----------
    frame : pandas.DataFrame
    probabilities : ndarray of shape (m, n_classes)
        Predicted without the row's own class.
    labels : ndarray of shape (m,)
        Class numbers.
    on_test : bool
        Whether they are test rows.
    words : str
        What they are.
    """

    frame: pandas.DataFrame
    probabilities: np.ndarray
    labels: np.ndarray
    on_test: bool
    words: str


@dataclass
class Analysis:
    """A table, the model fitted to it, and what the model says.

    Attributes
    ----------
    frame : pandas.DataFrame
        The training rows in use; the index counts the rows of the file from 1.
    plan : ColumnPlan
    model : Model
    training : Predictions
        Of the training rows, each by leave-one-out.
    test : Predictions or None
        Of the test rows.
    test_frame : pandas.DataFrame or None
    level : float
        Of the credible intervals.
    axes : tuple of two str or None
        Columns to draw the rows over.
    seconds : float
        How long the fit took.
    comparison : Comparison or None
        Other classifiers on the same rows.
    apart : dict of str to Scores
        Scores on whole groups, or on the last rows, in cross-validation.
    messages : list of str
        What was done to the table and what was chosen, in sentences.
    warnings : list of str
        What a reader must know before trusting the result.
    """

    frame: pandas.DataFrame
    plan: ColumnPlan
    model: Model
    training: Predictions
    test: Predictions | None
    test_frame: Any
    level: float
    axes: tuple[str, str] | None
    seconds: float
    comparison: Comparison | None = None
    apart: dict[str, Scores] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def predictions(self) -> Predictions:
        """What goes into ``predictions.csv``: the test rows if there are any."""
        return self.training if self.test is None else self.test

    @property
    def classifier(self) -> Any:
        """The fitted classifier."""
        return self.model.classifier

    @property
    def predicted_frame(self) -> pandas.DataFrame:
        """The rows of ``predictions``."""
        return self.frame if self.test is None else self.test_frame

    @property
    def level_name(self) -> str:
        """The level in per cent."""
        return f"{100 * self.level:g}\xa0%"

    @property
    def rarer_class(self) -> int:
        """Number of the rarer of two classes, of the second if they are equally common."""
        return int(2 * np.sum(self.training.actual == 1) <= len(self.training.rows))

    def evaluated(self) -> Evaluated:
        """Return the rows to judge the probabilities on.

        These are the test rows of a known class if there are several, else the training rows,
        each left out in turn.
        """
        found, frame = self.training, self.frame
        if self.test is not None and len(self.test.known) > 1:
            found, frame = self.test, self.test_frame
        rows = found.known
        return Evaluated(
            frame.iloc[rows],
            found.probabilities[rows],
            found.actual[rows],
            found is self.test,
            f"the {len(rows):,} {found.words}",
        )

    def scores(self) -> dict[str, Scores]:
        """Score the leave-one-out probabilities, the test's if classes are known, and groups."""
        both = {"leave-one-out": self.training, "test": self.test}
        found = {basis: each.scores for basis, each in both.items() if each and each.scores}
        return found | self.apart


def analyse(
    frame: pandas.DataFrame,
    target: str,
    test_frame: pandas.DataFrame | None = None,
    *,
    scale: bool = True,
    impute: bool = False,
    level: float = 0.95,
    axes: tuple[str, str] | None = None,
    model: str = "bayesian",
    compared: bool = False,
    group: str = "",
    time: str = "",
    rare: str = "drop",
    settings: Mapping[str, Any] | None = None,
    **columns: Sequence[str],
) -> Analysis:
    """Fit the classifier to a table and predict.

    Parameters
    ----------
    frame : pandas.DataFrame
        The training table, as :func:`read_table` gives it.
    target : str
        The column that holds the classes.
    test_frame : pandas.DataFrame, optional
        Rows to predict, with or without the target.
    scale, impute : bool
        See :func:`build_pipeline`.
    level : float, default=0.95
        Of the credible intervals.
    axes : tuple of two str, optional
        Numeric columns to draw the rows over.
    model : {"bayesian", "pooled"}, default="bayesian"
        :class:`BayesianKNeighborsClassifier` or :class:`PooledNeighborsClassifier`.
    compared : bool, default=False
        Whether to compare it with other classifiers (:func:`compare`).
    group : str
        A column that says which rows belong together, such as the patient: the classifier is also
        judged by whole groups that it has not seen, and the column is left out.
    time : str
        A column of dates or numbers: the classifier is also judged by the last fifth of the rows,
        fitted to those before.
    rare : {"drop", "merge", "error"}, default="drop"
        What becomes of classes with one row (:func:`settle_rare`).
    settings : mapping, optional
        Parameters of the classifier; of the Bayesian one ``likelihood="auto"`` is the coherent
        likelihood up to ``MAX_COHERENT_ROWS`` rows and the pseudo-likelihood above.
    **columns : sequence of str
        ``categorical``, ``drop``, ``keep`` and ``identifiers``, see :func:`plan_columns`.

    Returns
    -------
    Analysis
    """
    numbered = number_rows(frame)
    with naming_file(numbered.attrs.get("file", "")):
        frame, classes, without = split_target(numbered, target)
        frame, classes, dropped = settle_rare(frame, classes, target, rare)
        classifier, chosen = _make_classifier(model, classes, **(settings or {}))
        about = describe(classifier)
        filled = impute or bool(about.filled)
        plan = plan_columns(
            numbered, target, impute=filled, group=group, **columns,
            max_categories=None if about.takes_categories else MAX_CATEGORIES,
        )  # fmt: skip
        order = _find_order(frame, time) if time else None
    if axes is not None:
        plan.check_axes(axes)
    messages = [*numbered.attrs.get("notes", ()), *_tell_without_class(without, target)]
    messages += [*dropped, *plan.messages, *chosen]
    frame = name_categories(frame, plan.kinds)
    measured = as_measured(frame, plan.kinds)
    problems = find_problems(measured, plan, classes, ordered=bool(group or time))
    if test_frame is not None:
        # Before the fit: a test table that cannot be read is detected at once.
        test_frame = _check_test(test_frame, plan, filled, messages)
    pipeline = build_pipeline(plan, classifier, scale=scale, impute=impute)
    seconds, caught = _fit(pipeline, measured, classes)
    fitted = keep_table(pipeline, plan, measured)
    messages += fitted.tell_gaps(measured)
    labels, test = np.searchsorted(classifier.classes_, classes), None
    training = predict_left_out(fitted, frame, labels, level)
    problems += _doubt_success(training, problems)
    if test_frame is not None:
        test = _predict_test(fitted, test_frame, level, messages, problems)
    judged = f"whole groups of {group}" if group else f"last rows by {time}" * bool(time)
    comparison = None
    if compared or judged:
        comparison = compare(
            measured, classes, plan, pipeline, scale=scale, others=compared,
            groups=frame[group] if group else None, order=order,
        )  # fmt: skip
        messages += [_TOO_FEW] * (comparison is None)
    return Analysis(
        frame, plan, fitted, training, test, test_frame, level, axes, seconds,
        comparison if compared else None, _score_apart(comparison, judged),
        messages, [*problems, *_name_column(pipeline, _collect_warnings(classifier, caught))],
    )  # fmt: skip


def _check_test(
    frame: pandas.DataFrame, plan: ColumnPlan, filled: bool, messages: list[str]
) -> pandas.DataFrame:
    """Return the test table with its rows numbered, or say what is wrong with it."""
    messages += [f"{note} (test table)" for note in frame.attrs.get("notes", ())]
    frame = name_categories(number_rows(frame), plan.kinds)
    with naming_file(frame.attrs.get("file", "")):
        check_new_rows(frame, plan.kinds, impute=filled)
    return frame


def _fit(pipeline: Any, X: Any, classes: np.ndarray) -> tuple[float, list[Any]]:
    """Fit; return the seconds it took, and what was warned of."""
    begin = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipeline.fit(X, classes)
    return perf_counter() - begin, caught


def _predict_test(
    model: Model, frame: pandas.DataFrame, level: float, messages: list[str], problems: list[str]
) -> Predictions:
    """Predict the test rows, and add what there is to say of them."""
    with naming_file(frame.attrs.get("file", "")):
        test = predict_new(model, frame, level)
    messages += model.tell_gaps(frame, " of the test table")
    problems += model.find_shifts(frame, " of the test table")
    problems += test.find_doubts(model.target, "test row")
    if test.actual is not None:
        messages += _tell_no_class(test, model.target)
    return test


def _score_apart(comparison: Comparison | None, judged: str) -> dict[str, Scores]:
    """Return the classifier's scores on rows that were judged together, by what they are."""
    if comparison is None or not judged:
        return {}
    return {judged: comparison.found[comparison.own].scores}


def _find_order(frame: pandas.DataFrame, time: str) -> pandas.Series:
    """Return the column that orders the rows."""
    column = find_column(frame, time)
    if kind_of(column) not in NUMERIC:
        raise ValueError(f"--time: column {time!r} holds neither dates nor numbers")
    return column


def _doubt_success(training: Predictions, known: Sequence[str]) -> list[str]:
    """Warn of results that are too good for most tables, unless the reason was found."""
    scores: Any = training.scores
    easy = np.bincount(training.actual).max() > 0.95 * len(training.rows)
    if easy or scores.error > 0.005 or scores.log_loss > 0.02 or any("alone" in k for k in known):
        return []
    return [
        f"the leave-one-out error is {100 * scores.error:.1f} %, almost nothing: check for a "
        "column that is known only after the class is"
    ]


def _make_classifier(model: str, classes: np.ndarray, **options: Any) -> tuple[Any, list[str]]:
    """Return the classifier with its parameters, and what was chosen for the user."""
    from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier

    options["class_prior"] = _by_class(options.get("class_prior"), classes)
    if model == "pooled":
        return PooledNeighborsClassifier(**options), []
    if options.get("metric") == "precomputed":
        raise ValueError("metric 'precomputed' takes distances, not a table of columns")
    chosen = []
    if options.setdefault("likelihood", "auto") == "auto":
        options["likelihood"] = "coherent"
        is_chain = options.get("inference") in ("auxiliary", "exchange")
        if len(classes) > MAX_COHERENT_ROWS and not is_chain:
            options["likelihood"] = "pseudo"
            chosen.append(
                f"{len(classes):,} rows: the pseudo-likelihood stands in for the coherent one, "
                f"which takes long above {MAX_COHERENT_ROWS:,} (--likelihood coherent insists)"
            )
    return BayesianKNeighborsClassifier(**options), chosen


def analyse_fitted(
    classifier: Any,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    level: float,
    compared: bool,
    groups: Any = None,
    time: Any = None,
) -> Analysis:
    """Describe a classifier that was fitted from Python; arguments as of :func:`write_report`."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer
    from sklearn.utils.validation import check_is_fitted

    from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier

    last = classifier[-1] if isinstance(classifier, Pipeline) else classifier
    if not isinstance(last, BayesianKNeighborsClassifier | PooledNeighborsClassifier):
        raise ValueError(
            "the report is about a BayesianKNeighborsClassifier or a PooledNeighborsClassifier, or "
            f"a pipeline that ends with one; got a {type(last).__name__}"
        )
    check_is_fitted(last)
    classes = np.asarray(y)
    target = str(getattr(y, "name", None) or "class")
    frame = _as_frame(X, "X", len(classes))
    while target in frame.columns:
        target = f"{target}_"
    plan = ColumnPlan(target, find_kinds(frame))
    pipeline = classifier
    if not isinstance(classifier, Pipeline):
        given = hasattr(classifier, "feature_names_in_")
        as_given = FunctionTransformer(None if given else np.asarray)
        pipeline = Pipeline([("columns", as_given), ("classifier", classifier)])
    labels = _check_same_rows(last, None if pipeline is classifier else X, classes)
    measured = as_measured(frame, plan.kinds)
    ranges = find_ranges(measured, plan.kinds)
    model = Model(pipeline, target, plan.kinds, {}, [], fills="mean", ranges=ranges)
    training = predict_left_out(model, frame, labels, level)
    judged = "whole groups" * (groups is not None) or "last rows" * (time is not None)
    problems = find_problems(measured, plan, classes, ordered=bool(judged))
    problems += _doubt_success(training, problems)
    test = test_frame = None
    if X_test is not None:
        test_frame = _as_frame(X_test, "X_test", None if y_test is None else len(y_test))
        if y_test is not None:
            test_frame[target] = np.asarray(y_test)
        test = predict_new(model, test_frame, level)
        problems += model.find_shifts(test_frame, " of X_test")
        problems += test.find_doubts(target, "test row")
    comparison = None
    # Distances cannot be cut into folds as the columns of a table can.
    if (compared or judged) and getattr(last, "metric", None) != "precomputed":
        comparison = compare(
            measured, classes, plan, pipeline, groups=groups, order=time, others=compared
        )
    return Analysis(
        frame.assign(**{target: classes}), plan, model, training, test, test_frame, level, None,
        0.0, comparison if compared else None, _score_apart(comparison, judged), [],
        [*problems, *_collect_warnings(last, ())],
    )  # fmt: skip


def _check_same_rows(classifier: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Return the class numbers of the rows that the classifier was fitted to, or refuse others.

    X is None where the classifier was fitted to what a pipeline made of it.
    """
    numbers = {name: g for g, name in enumerate(classifier.classes_.tolist())}
    labels = np.array([numbers.get(name, -1) for name in classes.tolist()])
    fitted, given = classifier.diagnostics_.get("training"), fingerprint(X, labels)
    n = len(classifier.loo_proba_)
    if len(labels) != n:
        problem = f"X and y have {count(len(labels), 'row')}, the model was fitted to {n:,}"
    elif labels.min() < 0 or (fitted and fitted["labels"] != given["labels"]):
        problem = "y is not what the model was fitted to, or in another order"
    elif fitted and fitted["rows"] != given["rows"] and X is not None:
        problem = "X is not what the model was fitted to, or in another order"
    else:
        return labels
    raise ValueError(f"{problem}: pass the training rows as X and y, others as X_test and y_test")


def _as_frame(X: Any, name: str, n: int | None) -> pandas.DataFrame:
    """Return a table of one's own as a frame whose index counts the rows from 1."""
    import pandas

    columns = column_names(X)
    if columns is None:
        frame = pandas.DataFrame({f"x{c.label}": c.values for c in read_columns(X)})
    else:
        frame = pandas.DataFrame({each: np.asarray(X[each]) for each in columns})
    # Columns of a mixed array are all objects, of which some hold numbers alone.
    frame = frame.infer_objects()
    if n is not None and n != len(frame):
        raise ValueError(f"{name} has {len(frame):,} rows and its classes are {n:,}")
    return number_rows(frame)


def _by_class(given: Mapping[str, float] | None, classes: np.ndarray) -> dict[Any, float] | None:
    """Return frequencies by class, which were given by name."""
    if not given:
        return None
    found = {str(value): value for value in np.unique(classes).tolist()}
    return {found.get(name, name): p for name, p in given.items()}


def _tell_no_class(test: Predictions, target: str) -> list[str]:
    n, judged = len(test.rows), len(test.judged)
    told = []
    if not judged:
        told.append(f"no test row has a value in {target!r}: there is no test score")
    elif without := n - judged:
        told.append(
            f"{without:,} of {n:,} test rows {'has' if without == 1 else 'have'} no value in "
            f"{target!r}: {'it is' if without == 1 else 'they are'} predicted, and the test score "
            f"is of the other {judged:,}"
        )
    return told


def _tell_without_class(rows: list[int], target: str) -> list[str]:
    if not rows:
        return []
    named = ", ".join(map(str, rows[:5])) + ", ..." * (len(rows) > 5)
    many = len(rows) > 1
    return [
        f"{count(len(rows), 'row has', 'rows have')} no value in {target!r} and "
        f"{'are' if many else 'is'} left out (row{'s' * many} {named})"
    ]


def _name_column(pipeline: Any, sentences: list[str]) -> list[str]:
    """Call the column on which residuals depend by its name, where the classifier saw an array."""
    at = pipeline[-1].diagnostics_.get("misfit_column")
    if not isinstance(at, int | np.integer):
        return sentences
    name = str(pipeline[:-1].get_feature_names_out()[at]).rpartition("__")[2]
    return [text.replace(f"column '{at}'", f"column {name!r}") for text in sentences]


def _collect_warnings(classifier: Any, caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Merge what the classifier knows about itself with what was warned about, each once."""
    found = list(getattr(classifier, "diagnostics_", {}).get("warnings", []))
    for warning in caught:
        if not issubclass(warning.category, DeprecationWarning | PendingDeprecationWarning):
            text = " ".join(str(warning.message).split())
            if not any(text in known or known in text for known in found):
                found.append(text)
    return found
