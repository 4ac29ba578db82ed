"""From a table to a fitted model and its predictions: what ``bayesknn fit`` does first."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas

from bayesknn._utils.checks import column_names, read_columns
from bayesknn._utils.saving import fingerprint
from bayesknn._version import __version__
from bayesknn.evaluation.comparison import MIN_CLASS, Comparison, compare
from bayesknn.evaluation.folds import Folds
from bayesknn.evaluation.scores import Scores, score
from bayesknn.report import columns
from bayesknn.report.model import Model, adapt, build_pipeline
from bayesknn.report.predictions import Predictions, predict_left_out, predict_new
from bayesknn.report.reading import KINDS, Table, as_table
from bayesknn.report.words import count, free_name, join, percent, shorten


@dataclass
class Choices:
    """What a user decides about an analysis, beside the classifier's own parameters.

    Attributes
    ----------
    level : float
        Of the credible intervals.
    scale, impute : bool
        See :func:`build_pipeline`.
    compared : bool
        Whether to compare it with other classifiers (:func:`compare`).
    group : str
        A column that says which rows belong together, such as the patient: the classifier is also
        judged by whole groups that it has not seen, and the column is left out.
    time : str
        A column of dates or numbers: the classifier is also judged by the last fifth of the rows,
        fitted to those before.
    rare : {"drop", "merge", "error"}
        What becomes of classes with one row (:func:`take_classes`).
    categorical, drop, keep, identifiers : sequence of str
        Columns, see :func:`plan_columns`.
    """

    level: float = 0.95
    scale: bool = True
    impute: bool = False
    compared: bool = False
    group: str = ""
    time: str = ""
    rare: str = "drop"
    categorical: Sequence[str] = ()
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    identifiers: Sequence[str] = ()


@dataclass
class Analysis:
    """A table, the model fitted to it, and what the model says.

    Attributes
    ----------
    plan : ColumnPlan
    model : Model
    training : Predictions
        Of the training rows in use, each by leave-one-out.
    test : Predictions or None
        Of the test rows.
    choices : Choices
    comparison : Comparison or None
        Other classifiers on the same rows.
    apart : dict of str to Scores
        Scores on whole groups, or on the last rows, in cross-validation.
    messages : list of str
        What was done to the table and what was chosen, in sentences.
    warnings : list of str
        What a reader must know before trusting the result.
    seconds : float
        How long the fit took.
    """

    plan: columns.ColumnPlan
    model: Model
    training: Predictions
    test: Predictions | None = None
    choices: Choices = field(default_factory=Choices)
    comparison: Comparison | None = None
    apart: dict[str, Scores] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def classifier(self) -> Any:
        """The fitted classifier."""
        return self.model.classifier

    @property
    def predictions(self) -> Predictions:
        """What goes into ``predictions.csv``: the test rows if there are any."""
        return self.training if self.test is None else self.test

    @property
    def judged(self) -> Predictions:
        """What the model is judged by: test rows of a known class, if there are several."""
        return self.test if self.test is not None and len(self.test.known) > 1 else self.training

    @property
    def class_sizes(self) -> np.ndarray:
        """How many training rows each class has."""
        return np.bincount(self.training.actual, minlength=len(self.training.classes))

    @property
    def class_frequencies(self) -> np.ndarray:
        """Weighted frequencies of the classes in training, those of ``class_prior`` if given."""
        training = self.training
        sums = np.bincount(training.actual, training.weights, len(training.classes))
        return sums / sums.sum()

    @property
    def rarer_class(self) -> int:
        """Number of the rarer of two classes, of the second if they are equally common."""
        return int(self.class_sizes[1] <= self.class_sizes[0])

    @property
    def scores(self) -> dict[str, Scores]:
        """Of the leave-one-out probabilities, the test's if classes are known, and groups."""
        both = {"leave-one-out": self.training, "test": self.test}
        scores = {basis: each.scores for basis, each in both.items() if each and each.scores}
        return scores | self.apart

    def score_frequencies(self, predictions: Predictions) -> Scores:
        """Score the frequencies of the classes in training on rows whose class is known."""
        rows = predictions.judged
        frequencies = np.tile(self.class_frequencies, (len(rows), 1))
        return score(frequencies, predictions.actual[rows], predictions.weights[rows])

    def describe_majority(self, predictions: Predictions) -> str:
        """Return the error of always predicting the most frequent class of training, in words."""
        most, rows = int(self.class_frequencies.argmax()), predictions.judged
        is_other = predictions.actual[rows] != most
        wrong = percent(np.average(is_other, weights=predictions.weights[rows]), 1)
        return f"always predicting {shorten(self.training.names[most], 20)} errs in {wrong}"

    def describe_rare(self, below: float = np.inf) -> str:
        """Return how many left-out rows are found of each class of few rows, empty if none is.

        Those are classes of fewer than a quarter of the mean number of rows, whose recall is less
        than ``below``. Rows of weight 0 do not count.
        """
        training, rows = self.training, self.training.judged
        labels, is_right = training.actual[rows], (training.winners == training.actual)[rows]
        sizes = np.bincount(labels, minlength=len(training.classes))
        hits = np.bincount(labels, is_right, len(sizes)).astype(int)
        counts = [
            f"{hits[g]:,} of {sizes[g]:,} rows of {shorten(name)}"
            for g, name in enumerate(training.names)
            if sizes[g] < 0.25 * sizes.mean() and hits[g] < below * sizes[g]
        ]
        return f"recall: {join(counts)} found" if counts else ""


def analyse(
    train: Table | pandas.DataFrame,
    target: str,
    test: Table | pandas.DataFrame | None = None,
    *,
    model: str = "coherent",
    settings: Mapping[str, Any] | None = None,
    **choices: Any,
) -> Analysis:
    """Fit the classifier to a table and predict.

    Parameters
    ----------
    train : Table or pandas.DataFrame
        The training table, as :func:`read_table` gives it.
    target : str
        The column that holds the classes.
    test : Table or pandas.DataFrame, optional
        Rows to predict, with or without the target.
    model : {"pooled", "coherent", "pseudo", "holmes-adams"}, default="coherent"
        :class:`PooledNeighborsClassifier`, or the likelihood of
        :class:`BayesianKNeighborsClassifier`.
    settings : mapping, optional
        Parameters of the classifier.
    **choices
        See :class:`Choices`.

    Returns
    -------
    Analysis
    """
    options = Choices(**choices)
    train, order = as_table(train), None
    with columns.naming_file(train.file):
        frame, classes, messages = columns.take_classes(train, target, options.rare)
        adapter = adapt(_make_classifier(model, classes, **(settings or {})))
        fills = adapter.fills or "median" * options.impute
        plan = columns.plan_columns(
            train, target, impute=bool(fills), group=options.group, drop=options.drop,
            keep=options.keep, categorical=options.categorical, identifiers=options.identifiers,
            max_categories=None if adapter.takes_categories else columns.MAX_CATEGORIES,
        )  # fmt: skip
        if options.time:
            order = columns.find_column(frame, options.time)
            if train.kinds[options.time] not in columns.NUMERIC:
                raise ValueError(f"--time: column {options.time!r} holds neither dates nor numbers")
    messages = [*train.notes, *messages, *plan.messages]
    frame = columns.name_categories(frame, plan.kinds)
    measured = columns.as_measured(frame, plan.kinds)
    if test is not None:
        # Before the fit: a test table that cannot be read is detected at once.
        test = as_table(test)
        messages += [f"{note} (test table)" for note in test.notes]
        with columns.naming_file(test.file):
            rows = columns.accept_rows(test, plan.kinds, impute=bool(fills))
        test = replace(test, frame=rows)
    classifier = adapter.classifier
    pipeline = build_pipeline(plan, classifier, scale=options.scale, impute=options.impute)
    begin = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipeline.fit(measured, classes)
    seconds = perf_counter() - begin
    fitted = Model.of_table(pipeline, plan, measured, fills)
    labels = np.searchsorted(classifier.classes_, classes)
    groups = frame[options.group] if options.group else None
    by = f" of {options.group}" if options.group else f" by {options.time}"
    training = predict_left_out(fitted, frame, labels, options.level)
    analysis = Analysis(plan, fitted, training, choices=options, messages=messages, seconds=seconds)
    return _conclude(analysis, test, Folds(groups, order, by), caught)


def analyse_fitted(
    classifier: Any,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    groups: Any = None,
    time: Any = None,
    **choices: Any,
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
    table = _as_table(X, "X", len(classes))
    target = free_name(str(getattr(y, "name", None) or "class"), table.kinds, "{}_")
    # Whatever is neither a number nor a date is a category here.
    kinds = {name: "text" if kind == "other" else kind for name, kind in table.kinds.items()}
    plan, pipeline = columns.ColumnPlan(target, kinds), classifier
    if not isinstance(classifier, Pipeline):
        given = hasattr(classifier, "feature_names_in_")
        as_given = FunctionTransformer(None if given else np.asarray)
        pipeline = Pipeline([("columns", as_given), ("classifier", classifier)])
    labels = _check_same_rows(classifier, X, classes)
    fills = "mean" if pipeline is not classifier else "pipeline"
    model = Model.of_table(pipeline, plan, columns.as_measured(table.frame, kinds), fills)
    # Its own warnings name categories that it has not seen.
    model.categories, test, options = {}, None, Choices(**choices)
    if X_test is not None:
        test = _as_table(X_test, "X_test", None if y_test is None else len(y_test))
        for name in kinds:
            columns.find_column(test.frame, name)
        if y_test is not None:
            test.frame[target] = np.asarray(y_test)
    frame = table.frame.assign(**{target: classes})
    training = predict_left_out(model, frame, labels, options.level)
    return _conclude(Analysis(plan, model, training, choices=options), test, Folds(groups, time))


def _conclude(
    analysis: Analysis, test: Table | None, folds: Folds, caught: Sequence[Any] = ()
) -> Analysis:
    """Predict the test rows, look for what is wrong with the tables, and compare with others."""
    model, level = analysis.model, analysis.choices.level
    analysis.messages += model.describe_gaps(analysis.training.frame)
    if test is not None:
        with columns.naming_file(test.file):
            analysis.test = predictions = predict_new(model, test.frame, level)
        where, n = " of the test table", len(test.frame)
        analysis.messages += model.describe_gaps(test.frame, where)
        analysis.warnings += model.describe_shifts(test.frame, where)
        analysis.warnings += predictions.describe_doubts(model.target, "test row")
        if predictions.actual_names is not None and len(predictions.judged) < n:
            without = f"{n - len(predictions.judged):,} of {count(n, 'test row')} without a value"
            analysis.messages.append(f"{without} in {model.target!r}: predicted and not scored")
    plan, training, compared = analysis.plan, analysis.training, analysis.choices.compared
    measured = columns.as_measured(training.frame, plan.kinds)
    classes = analysis.classifier.classes_[training.actual]
    leaking = columns.find_leaking_columns(measured, plan.kinds, training.actual)
    problems = columns.find_problems(measured, plan, classes, leaking, ordered=bool(folds.name))
    scores: Any = training.scores
    easy = analysis.class_sizes.max() > 0.95 * len(training.rows)
    if not (easy or leaking) and scores.error <= 0.005 and scores.log_loss <= 0.02:
        problems.append(
            f"the leave-one-out error is {100 * scores.error:.1f} %, almost nothing: check for a "
            "column that is known only after the class is"
        )
    analysis.warnings[:0] = problems
    analysis.warnings += _collect_warnings(analysis.classifier, caught)
    # Distances cannot be cut into folds as the columns of a table can.
    is_distance = getattr(analysis.classifier, "metric", None) == "precomputed"
    if not (compared or folds.name) or is_distance:
        return analysis
    sizes = np.bincount(training.actual[training.judged], minlength=len(training.classes))
    if sizes.min() < MIN_CLASS:
        rarest, rows = training.names[sizes.argmin()], count(int(sizes.min()), "row")
        few = f"class {shorten(rarest)!r} has {rows}; cross-validation needs {MIN_CLASS} of each"
        if folds.name:
            analysis.warnings.append(f"there is no evaluation on {folds.name}: {few}")
        if compared:
            analysis.messages.append(f"there is no comparison with other classifiers: {few}")
        return analysis
    adapter = analysis.model.adapter
    comparison = compare(
        columns.as_words(measured), classes, analysis.model.pipeline, folds,
        prepare=lambda clf: build_pipeline(plan, clf, scale=analysis.choices.scale, impute=True),
        weights=adapter.score_weights, class_prior=adapter.class_prior, others=compared,
    )  # fmt: skip
    if folds.name:
        analysis.apart = {folds.name: comparison.results[comparison.own].scores}
    analysis.comparison = comparison if compared else None
    return analysis


def _make_classifier(model: str, classes: np.ndarray, **settings: Any) -> Any:
    """Return the classifier with its parameters; frequencies of classes are given by name."""
    from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier

    if prior := settings.pop("class_prior", None):
        names = {str(value): value for value in np.unique(classes).tolist()}
        settings["class_prior"] = {names.get(name, name): p for name, p in prior.items()}
    if model == "pooled":
        return PooledNeighborsClassifier(**settings)
    if settings.get("metric") == "precomputed":
        raise ValueError("metric 'precomputed' takes distances, not a table of columns")
    return BayesianKNeighborsClassifier(**{"likelihood": model, **settings})


def _check_same_rows(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Return the class numbers of the rows that a classifier or a pipeline was fitted to.

    Raise ValueError if X and y are other rows, or the same in another order.
    """
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline

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
        found = fingerprint(X if steps is None else steps.transform(X), labels)
        if steps is not None and found["rows"] != fitted["rows"]:
            # Some transformers return other numbers from `fit_transform` than from `transform`.
            # Fitted to X again, they must also transform X as the fitted ones do.
            again = clone(steps)
            points = again.fit_transform(X, classes)
            if fingerprint(again.transform(X), labels) == found:
                found = fingerprint(points, labels)
        if found == fitted:
            return labels
        problem = f"y {other}" if found["labels"] != fitted["labels"] else f"X {other}"
        if steps is not None and problem[0] == "X":
            problem += ", or a step of the pipeline draws random numbers without a random_state"
    raise ValueError(f"{problem}: pass the training rows as X and y, others as X_test and y_test")


def _as_table(X: Any, name: str, n: int | None) -> Table:
    """Return rows from Python as a table."""
    names = column_names(X)
    if names is None:
        frame = pandas.DataFrame({f"x{c.label}": c.values for c in read_columns(X)})
    else:
        frame = pandas.DataFrame({each: np.asarray(X[each]) for each in names})
    if n is not None and n != len(frame):
        raise ValueError(f"{name} has {len(frame):,} rows and its classes are {n:,}")
    # Columns of a mixed array are all objects, of which some hold numbers alone.
    return as_table(frame.infer_objects())


def _collect_warnings(classifier: Any, caught: Sequence[Any]) -> list[str]:
    """Merge what the classifier knows about itself with what was warned about, each once."""
    texts = list(classifier.diagnostics_.get("warnings", []))
    for warning in caught:
        if not issubclass(warning.category, DeprecationWarning | PendingDeprecationWarning):
            text = " ".join(str(warning.message).split())
            if not any(text in known or known in text for known in texts):
                texts.append(text)
    return texts


def summarise(analysis: Analysis) -> dict[str, Any]:
    """Sum a fit up for a machine to read: numbers, text, lists and dictionaries, as JSON has."""
    plan, training, adapter = analysis.plan, analysis.training, analysis.model.adapter
    results = analysis.comparison.results if analysis.comparison else {}
    prior = None if adapter.class_prior is None else adapter.class_prior.tolist()
    return {
        "version": __version__,
        "target": plan.target,
        "rows": len(training.rows),
        "numeric": plan.numeric,
        "categorical": plan.categorical,
        "kinds": plan.kinds,
        "dropped": plan.dropped,
        "classes": dict(zip(training.names, analysis.class_sizes.tolist(), strict=True)),
        "class_prior": None if prior is None else dict(zip(training.names, prior, strict=True)),
        "weights": training.weighting,
        "model": adapter.model,
        "search": analysis.classifier.diagnostics_["search"],
        **adapter.summarise(),
        "scores": {basis: each.to_json() for basis, each in analysis.scores.items()},
        "comparison": {name: each.scores.to_json() for name, each in results.items()},
        "decided": analysis.predictions.share_decided,
        "messages": analysis.messages,
        "warnings": analysis.warnings,
        "seconds": round(analysis.seconds, 3),
    }


def describe(analysis: Analysis) -> list[str]:
    """Sum a fit up in a few lines for a person to read."""
    plan, training, sizes = analysis.plan, analysis.training, analysis.class_sizes
    by_kind = {
        word: [name for name, each in plan.kinds.items() if each == kind]
        for kind, word in KINDS.items()
    }
    by_kind["left out"] = list(plan.dropped)
    used = [f"{word}: {join(names)}" for word, names in by_kind.items() if names]
    listed = [f"{training.names[g]} ({sizes[g]:,})" for g in np.argsort(-sizes, kind="stable")]
    majority = analysis.describe_majority(training).replace("\xa0", " ")
    model = [analysis.model.adapter.title, training.weighting]
    results = [f"{basis}: {scores}" for basis, scores in analysis.scores.items()]
    return [
        f"Model: {'; '.join(filter(None, model))}",
        f"Columns: {'; '.join(used)}",
        f"Classes: {join(listed)}",
        f"Baseline: {majority}",
        *(text[:1].upper() + text[1:] for text in (analysis.describe_rare(), *results) if text),
        analysis.predictions.describe_decided(analysis.choices.level),
        "predictions.csv: class is the most probable one; probability, low and high give the "
        "probability of each class and its interval; zone is the class of a decided row",
        analysis.model.adapter.format_line(),
    ]
