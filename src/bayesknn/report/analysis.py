"""From a table to a fitted model and its predictions: what ``bayesknn fit`` does first."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from bayesknn._utils.words import count, join, percent, shorten
from bayesknn._version import __version__
from bayesknn.evaluation.comparison import MIN_CLASS, Compared, Comparison, compare
from bayesknn.evaluation.folds import Folds, FoldsError
from bayesknn.evaluation.scores import Scores, average, score, score_rows
from bayesknn.model_file.predictions import Predictions, predict_left_out, predict_new
from bayesknn.model_file.table_model import TableModel
from bayesknn.tables.kinds import KINDS
from bayesknn.tables.preparer import TablePreparer
from bayesknn.tables.remarks import (
    NOTE,
    SKIPPED,
    WARNING,
    Remark,
    leave_out,
    on_table,
    tell,
    to_json,
)
from bayesknn.tables.table import Table, as_table, naming_file


@dataclass
class Analysis:
    """A table, the model fitted to it, and what the model predicts.

    Attributes
    ----------
    model : TableModel
    training : Predictions
        Of the training rows in use, each by leave-one-out.
    test : Predictions or None
        Of the test rows.
    level : float
        Of the intervals.
    comparison : Comparison or None
        Other classifiers on the same rows.
    apart : dict of str to Compared
        The last rows, predicted from those before.
    remarks : list of Remark
        What there is to know about the tables and the fit.
    seconds : float
        How long the fit took.
    """

    model: Any
    training: Predictions
    test: Predictions | None = None
    level: float = 0.95
    comparison: Comparison | None = None
    apart: dict[str, Compared] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def messages(self) -> list[str]:
        """Sentences on what was done to the table and what was chosen."""
        return tell(self.remarks, NOTE)

    @property
    def warnings(self) -> list[str]:
        """Sentences on what a reader must know before trusting the result."""
        return tell(self.remarks, WARNING)

    @property
    def skipped(self) -> list[str]:
        """Sentences on checks that do not apply."""
        return tell(self.remarks, SKIPPED)

    @property
    def preparer(self) -> TablePreparer:
        """What was learned of the columns."""
        return self.model.preparer_

    @property
    def classifier(self) -> Any:
        """The fitted classifier."""
        return self.model.classifier_

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
        """Of the leave-one-out probabilities, the test's if classes are known, the last rows'."""
        both = {"leave-one-out": self.training, "test": self.test}
        scores = {basis: each.scores for basis, each in both.items() if each and each.scores}
        return scores | {basis: each.scores for basis, each in self.apart.items()}

    @property
    def newness(self) -> str:
        """For which rows the model predicts, where training rows belong to groups."""
        training = self.training
        return "" if training.groups is None else f"rows of new {training.group}"

    @property
    def n_rows(self) -> str:
        """How many training rows there are, in rows and in groups."""
        return count(len(self.training.rows), "row") + self.training.of_groups

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
        sizes, hits, rare = self._count_rare()
        counts = [
            f"{hits[g]:,} of {sizes[g]:,} rows of {shorten(self.training.names[g])}"
            for g in rare
            if hits[g] < below * sizes[g]
        ]
        return f"recall: {join(counts)} found" if counts else ""

    def advise_rare(self) -> list[str]:
        """Return for each rare class that is hardly ever predicted what to do about it.

        Those are rare classes of which no left-out row is decided and less than half are found. The
        threshold named is the class's frequency. It gives the least expected cost where a missed
        row costs as many false alarms as there are other rows for each of the class.
        """
        training, rows = self.training, self.training.judged
        labels, advice = training.actual[rows], []
        sizes, hits, rare = self._count_rare()
        for g in rare:
            if hits[g] >= 0.5 * sizes[g] or (training.zones[rows][labels == g] == g).any():
                continue
            name, threshold = shorten(training.names[g]), float(f"{self.class_frequencies[g]:.2g}")
            is_above = training.probabilities[rows, g] >= threshold
            mine, others = is_above[labels == g], is_above[labels != g]
            words = ["--threshold", f"{training.names[g]}={threshold:g}"]
            how = shlex.join(words) if len(sizes) == 2 else "--loss costs.csv"
            advice.append(
                f"no row of {name} ({percent(threshold, 1)} of the rows) is decided. Where missing "
                f"one costs more than a false alarm, decide by costs: bayesknn predict {how}. From "
                f"a probability of {threshold:g} on, the best choice if one missed costs as much "
                f"as {1 / threshold - 1:.0f} false alarms, {mine.sum():,} of {sizes[g]:,} rows of "
                f"{name} are found and {others.sum():,} of {len(others):,} others are taken for "
                f"it. If {name} is more frequent where the model is used, fit with --class-prior"
            )
        return advice

    def _count_rare(self) -> tuple[np.ndarray, np.ndarray, list[int]]:
        """Return the left-out rows of each class, those found, and which classes are rare."""
        training, rows = self.training, self.training.judged
        labels, is_right = training.actual[rows], (training.winners == training.actual)[rows]
        sizes = np.bincount(labels, minlength=len(training.classes))
        hits = np.bincount(labels, is_right, len(sizes)).astype(int)
        return sizes, hits, np.flatnonzero((sizes > 0) & (sizes < 0.25 * sizes.mean())).tolist()


def analyse(
    train: Any,
    target: str,
    test: Any = None,
    *,
    model: str = "coherent",
    settings: Mapping[str, Any] | None = None,
    level: float = 0.95,
    compared: bool = False,
    time: str = "",
    rare: str = "drop",
    **columns: Any,
) -> Analysis:
    """Fit a classifier to a table, predict, and look for what is wrong.

    Parameters
    ----------
    train : Table or frame
        The training table, as :func:`read_table` gives it.
    target : str
        The column that holds the classes.
    test : Table or frame, optional
        Rows to predict, with or without the target.
    model : {"pooled", "coherent", "pseudo", "holmes-adams"}, default="coherent"
        :class:`PooledNeighborsClassifier`, or the likelihood of
        :class:`BayesianKNeighborsClassifier`.
    settings : mapping, optional
        Parameters of the classifier.
    level : float
        Of the intervals.
    compared : bool
        Whether to compare it with other classifiers (:func:`compare`).
    time : str
        A column of dates or numbers: the classifier is also evaluated on the last fifth of the
        rows, fitted to those before.
    rare : {"drop", "merge", "error"}
        What becomes of classes with one row (:meth:`Table.split`).
    **columns
        Parameters of :class:`TablePreparer`. The classifier is fitted with the rows' ``group`` and
        ``weights``.

    Returns
    -------
    Analysis
    """
    preparer = TablePreparer(**columns)
    X, y, _ = as_table(train, preparer.missing).split(target, rare)
    with naming_file(X.file):
        classifier = _make_classifier(model, y.to_numpy(), **(settings or {}))
    fitted = TableModel(preparer, classifier)
    measured, options = fitted.learn(X, y, is_ordered=bool(time))
    order = fitted.preparer_.read_numbers(X, time, "--time")
    remarks = list(fitted.preparer_.remarks_)
    new = None
    if test is not None:
        # Before the fit: a test table that cannot be read is detected at once.
        test = as_table(test, fitted.preparer_.missing_)
        remarks += [each._replace(text=f"{each.text} (test table)") for each in test.remarks]
        new = test, fitted.preparer_.measure(test)
    begin = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted.fit_measured(measured, y, **options)
    seconds = perf_counter() - begin
    if preparer.group and fitted.classifier_.groups_ is None:
        text = f"--group: {preparer.group!r} differs in every row: the fit is the same without it"
        remarks.append(on_table("groups", text, WARNING))
    labels = np.searchsorted(fitted.classes_, y.to_numpy())
    training = predict_left_out(fitted, X.frame.assign(**{target: y}), measured, labels, level)
    analysis = Analysis(fitted, training, level=level, remarks=remarks, seconds=seconds)
    folds = Folds(fitted.classifier_.groups_, order, f" by {time}")
    return conclude(analysis, new, folds, compared, caught)


def conclude(
    analysis: Analysis,
    test: tuple[Table, Any] | None,
    folds: Folds,
    compared: bool,
    caught: Sequence[Any] = (),
) -> Analysis:
    """Predict the test rows, look for what is wrong with the results, and compare with others.

    Parameters
    ----------
    analysis : Analysis
        With its training rows.
    test : tuple of (Table, pandas.DataFrame) or None
        The test rows, as they were read and measured.
    folds : Folds
        Which rows are predicted together.
    compared : bool
        Whether to compare with other classifiers.
    caught : sequence of warnings.WarningMessage
        What the fit warned of.
    """
    model, level, preparer = analysis.model, analysis.level, analysis.preparer
    remarks = analysis.remarks
    remarks += _doubt_error(analysis)
    if test is not None:
        table, measured = test
        analysis.test = predictions = predict_new(model, table, level, measured=measured)
        remarks += predictions.examine(model, table, "of the test table ", "test row")
        n = len(table.frame)
        if predictions.actual_names is not None and len(predictions.judged) < n:
            without = f"{n - len(predictions.judged):,} of {count(n, 'test row')} without a value"
            text = f"{without} in {model.target_!r}: predicted and not scored"
            remarks.append(on_table("classes-unlabelled", text))
    remarks += _collect_warnings(analysis.classifier, caught)
    _compare(analysis, folds, compared)
    remarks += _doubt_order(analysis)
    analysis.remarks = leave_out(remarks, preparer.ignore)
    return analysis


def _doubt_error(analysis: Analysis) -> list[Remark]:
    """Return a warning if the leave-one-out error is too small to be true."""
    scores: Any = analysis.training.scores
    has_leak = any(each.code == "leak" and each.column for each in analysis.remarks)
    is_easy = analysis.class_sizes.max() > 0.95 * len(analysis.training.rows)
    if is_easy or has_leak or scores.error > 0.005 or scores.log_loss > 0.02:
        return []
    text = (
        f"the leave-one-out error is {100 * scores.error:.1f} %, almost nothing: check for a "
        "column that is known only after the class is"
    )
    return [on_table("error-too-small", text, WARNING)]


def _compare(analysis: Analysis, folds: Folds, compared: bool) -> None:
    """Evaluate the last rows, and other classifiers, as far as it is asked for."""
    training, model = analysis.training, analysis.model
    # Distances cannot be divided into folds as the columns of a table can.
    is_distance = getattr(analysis.classifier, "metric", None) == "precomputed"
    if not (compared or folds.name) or is_distance:
        return
    scored, unit = training.judged, "row"
    labels, groups = training.actual[scored], training.groups_of(scored)
    if groups is not None:
        labels, unit = np.unique([labels, groups], axis=1)[0], "group"
    sizes = np.bincount(labels, minlength=len(training.classes))
    try:
        if sizes.min() < MIN_CLASS:
            rarest, fewest = training.names[sizes.argmin()], count(int(sizes.min()), unit)
            raise FoldsError(
                f"class {shorten(rarest)!r} has {fewest}; cross-validation needs {MIN_CLASS} of "
                "each"
            )
        comparison = compare(
            training.measured,
            analysis.classifier.classes_[training.actual],
            model.own_pipeline,
            folds,
            prepare=model.pipeline_for,
            weights=model.adapter.score_weights,
            class_prior=model.adapter.class_prior,
            others=compared,
        )
    except FoldsError as error:
        if folds.name:
            text = f"there is no evaluation on {folds.name}: {error}"
            analysis.remarks.append(on_table("comparison-skipped", text, WARNING))
        if compared:
            text = f"there is no comparison with other classifiers: {error}"
            analysis.remarks.append(on_table("comparison-skipped", text))
        return
    if folds.name:
        order = np.asarray(folds.order)[scored]
        # A missing value differs from itself.
        if n := int(np.sum(order != order)):
            text = f"the evaluation on {folds.name} leaves out {count(n, 'row')} without a value"
            analysis.remarks.append(on_table("comparison-skipped", text))
        analysis.apart = {folds.name: comparison.results[comparison.own]}
    analysis.comparison = comparison if compared else None


def _doubt_order(analysis: Analysis) -> list[Remark]:
    """Return a warning if the last rows are predicted worse than left-out ones, beyond chance."""
    if not analysis.apart:
        return []
    training, rows = analysis.training, analysis.training.judged
    ((name, last),) = analysis.apart.items()
    left_out: Any = training.scores
    each = score_rows(training.probabilities[rows], training.actual[rows])
    errors = average(each, training.weights[rows], training.groups_of(rows))[1]
    gaps = np.array(last.scores[1:]) - np.array(left_out[1:])
    spreads = np.hypot(errors, last.standard_errors[1:])
    # The log-loss tells more than the error; of one that is infinite no more is known.
    at = 1 if np.isfinite(spreads[1]) else 0
    if not gaps[at] > 2 * spreads[at]:
        return []
    text = (
        f"the {name} are predicted worse than left-out rows, by more than "
        f"chance: error {100 * last.scores.error:.1f} % against {100 * left_out.error:.1f} %, "
        f"log-loss {last.scores.log_loss:.3f} against {left_out.log_loss:.3f}: for later rows go "
        "by the former"
    )
    return [on_table("trend", text, WARNING)]


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


def _collect_warnings(classifier: Any, caught: Sequence[Any]) -> list[Remark]:
    """Return what the classifier knows about itself and what its fit warned of, each once."""
    texts = list(classifier.diagnostics_.get("warnings", []))
    future = DeprecationWarning | PendingDeprecationWarning
    texts += [
        " ".join(str(each.message).split())
        for each in caught
        if not issubclass(each.category, future)
    ]
    return [on_table("fit", text, WARNING) for text in dict.fromkeys(texts)]


def summarise(analysis: Analysis) -> dict[str, Any]:
    """Sum a fit up for a machine to read: numbers, text, lists and dictionaries, as JSON has."""
    preparer, training, adapter = analysis.preparer, analysis.training, analysis.model.adapter
    results = analysis.comparison.results if analysis.comparison else {}
    prior = None if adapter.class_prior is None else adapter.class_prior.tolist()
    return {
        "version": __version__,
        "target": analysis.model.target_,
        "rows": len(training.rows),
        "predicts": analysis.newness or "new rows",
        "groups": None if training.groups is None else {training.group: training.n_groups},
        "numeric": preparer.numeric_,
        "categorical": preparer.categorical_,
        "kinds": preparer.kinds_,
        "dropped": preparer.dropped_,
        "classes": dict(zip(training.names, analysis.class_sizes.tolist(), strict=True)),
        "class_prior": None if prior is None else dict(zip(training.names, prior, strict=True)),
        "weights": training.weighting,
        "model": adapter.model,
        "search": analysis.classifier.diagnostics_["search"],
        **adapter.summarise(),
        "scores": {basis: each.to_json() for basis, each in analysis.scores.items()},
        "comparison": {name: each.scores.to_json() for name, each in results.items()},
        "decided": analysis.predictions.share_decided,
        **to_json(analysis.remarks),
        "seconds": round(analysis.seconds, 3),
    }


def describe(analysis: Analysis) -> list[str]:
    """Sum a fit up in a few lines for a person to read."""
    preparer, training, sizes = analysis.preparer, analysis.training, analysis.class_sizes
    by_kind = {
        kind.plural: [name for name, each in preparer.kinds_.items() if each == kind.name]
        for kind in KINDS.values()
    }
    by_kind["left out"] = list(preparer.dropped_)
    used = [f"{word}: {join(names)}" for word, names in by_kind.items() if names]
    listed = [f"{training.names[g]} ({sizes[g]:,})" for g in np.argsort(-sizes, kind="stable")]
    majority = analysis.describe_majority(training).replace("\xa0", " ")
    model = [analysis.model.adapter.title, training.weighting]
    results = []
    for basis, scores in analysis.scores.items():
        predictions = {"leave-one-out": training, "test": analysis.test}.get(basis)
        of = "" if predictions is None else predictions.of_groups
        how = f"left out by whole {training.group}" if of and predictions is training else basis
        results.append(f"{how}: {str(scores).replace(' rows', f' rows{of}', 1)}")
    return [
        *([f"For: {analysis.newness}, fitted to {analysis.n_rows}"] if analysis.newness else []),
        f"Model: {'; '.join(filter(None, model))}",
        f"Columns: {'; '.join(used)}",
        f"Classes: {join(listed)}",
        f"Baseline: {majority}",
        *(
            text[:1].upper() + text[1:].replace("\xa0", " ")
            for text in (analysis.describe_rare(), *analysis.advise_rare(), *results)
            if text
        ),
        analysis.predictions.describe_decided(analysis.level),
        "predictions.csv: class is the most probable one; probability, low and high give the "
        "probability of each class and its interval; zone is the class of a decided row",
        analysis.model.adapter.format_line(),
    ]
