"""The report: one HTML page that needs nothing beside itself.

Functions here make the numbers and figures of each section; the template has its sentences. Names
of classes and columns come from the data, so everything that enters the page is escaped but the
figures, whose text matplotlib escapes. The page has no script, and its content policy forbids one,
as well as any request.
"""

from __future__ import annotations

import platform
import re
import warnings
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from bayesknn._utils.words import MAX_LISTED, count, join, percent, shorten, shorten_all
from bayesknn._version import __version__
from bayesknn.evaluation import explanation
from bayesknn.evaluation.comparison import BASELINE, name_classifier
from bayesknn.evaluation.scores import average, bound_proportion, measure_area, score_rows
from bayesknn.model import UniformPrior
from bayesknn.model_file.predictions import LEAVE_ONE_OUT, Predictions
from bayesknn.plots.maps import plane_around
from bayesknn.predictive.decisions import find_zones, occlude_columns
from bayesknn.report import figures
from bayesknn.report.analysis import Analysis
from bayesknn.report.fitted import analyse_fitted
from bayesknn.tables.encoder import MAX_CATEGORIES

# Rows drawn on a map; more hide the colours below them.
_MAX_POINTS = 400
# Classes whose colours can be told apart among lines of a plot and parts of a bar.
_MAX_PARTS = 8
# Of each class what the page shows: its name, cut where it is not short, its whole one, its mark
# and its colour.
Classes = list[dict[str, Any]]


def write_report(
    model: Any,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    out: str | Path = "report.html",
    level: float = 0.95,
    compare: bool = True,
    groups: Any = None,
    time: Any = None,
) -> Path:
    """Write the report that ``bayesknn fit`` writes, about a classifier fitted from Python.

    Scores have the weights of the fit: rows their ``sample_weight``, a row of weight 0 being in no
    score, and classes the proportions of ``class_prior``, which the first paragraph then says.
    Test rows have the proportions of ``class_prior`` too, whatever their own are. In the
    comparison the other classifiers are fitted with the same weights if they take any, and the odds
    that they predict are moved to the same proportions.

    Parameters
    ----------
    model : BayesianKNeighborsClassifier, PooledNeighborsClassifier, Pipeline or TableModel
        Fitted to X and y; a pipeline or table model ends with one of the first two.
    X : array-like or frame of shape (n, p)
        The rows that it was fitted to, in their order. Others raise ValueError: every value is
        compared. A pipeline transforms X first; one whose steps draw random numbers needs their
        ``random_state``.
    y : array-like of shape (n,)
        Their classes.
    X_test, y_test : array-like or frame, optional
        Further rows, and their classes if these are known.
    out : str or Path, default="report.html"
        The file to write; an earlier one is replaced.
    level : float, default=0.95
        Of the intervals.
    compare : bool, default=True
        Whether to compare with other classifiers, in cross-validation.
    groups : array-like of shape (n,), optional
        The groups of rows that the classifier was fitted with; others raise ValueError. The name of
        a Series is what groups are called.
    time : array-like of shape (n,), optional
        Dates or numbers: the classifier is also judged by the last fifth of the rows, fitted to
        those before.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bayesknn import BayesianKNeighborsClassifier
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.report import write_report
    >>> ripley = load_ripley(as_frame=True)
    >>> clf = BayesianKNeighborsClassifier("pseudo", random_state=0)
    >>> clf = clf.fit(ripley.X_train, ripley.y_train)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(clf, ripley.X_train, ripley.y_train,
    ...                         out=pathlib.Path(folder) / "report.html", compare=False)
    ...     "confusion matrix" in path.read_text(encoding="utf-8")
    True
    """
    with warnings.catch_warnings():
        # The page warns of new rows; a classifier would do it again for each of its sections.
        warnings.simplefilter("ignore", UserWarning)
        analysis = analyse_fitted(
            model, X, y, X_test, y_test, groups, time, level=level, compared=compare
        )
        page = render_report(
            analysis,
            source=f"{len(analysis.training.rows):,} rows of {type(X).__name__}",
            command=f"model = {model!r}.fit(X, y)\nwrite_report(model, X, y)",
            predict_command="model.predict_summary(X_new)",
            files={},
        )
    path = Path(out)
    path.write_text(page, encoding="utf-8", newline="")
    return path


def render_report(
    analysis: Analysis,
    *,
    source: str,
    command: str,
    files: Mapping[str, str],
    predict_command: str = "bayesknn predict model.skops NEW.csv --out predictions.csv",
) -> str:
    """Write the report of an analysis.

    Parameters
    ----------
    analysis : Analysis
    source : str
        What the training table is called.
    command : str
        The command that does it again.
    files : mapping of str to str
        Tables that were read, and the SHA-256 of each.
    predict_command : str
        What predicts new rows.

    Returns
    -------
    str
        The page. The same analysis gives the same bytes.
    """
    clf, training = analysis.classifier, analysis.training
    packages = (f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "numba"))
    X, y = analysis.model.arrange(training.measured), clf.classes_[training.actual]
    return _open_template().render(
        version=__version__,
        versions=", ".join([f"Python {platform.python_version()}", *packages]),
        source=source,
        max_listed=MAX_LISTED,
        max_categories=MAX_CATEGORIES,
        count=count,
        show=partial(_show_cells, analysis),
        exp=np.exp,
        analysis=analysis,
        names=mark_classes(analysis),
        headline=make_headline(analysis),
        lead_classes=join([shorten(name) for name in training.names], 5),
        confusion=make_confusion(analysis),
        weighting=training.weighting,
        class_prior=analysis.model.adapter.class_prior,
        map=make_map(analysis),
        thresholds=make_thresholds(analysis),
        scores=make_scores(analysis),
        comparison=make_comparison(analysis),
        uncertain=make_cases(analysis),
        importance=make_importance(analysis),
        posterior=figures.draw_posterior(clf) if hasattr(clf, "posterior_") else None,
        is_uniform=isinstance(analysis.model.adapter.params.get("prior"), UniformPrior | None),
        criticism=analysis.model.adapter.criticise(X, y),
        columns=describe_columns(analysis),
        command=command,
        predict_command=predict_command,
        files=files,
    )


def mark_classes(analysis: Analysis) -> Classes:
    """Give each class a short name, a colour and a mark."""
    names = analysis.training.names
    # Colours, of which there are as many as classes, end it.
    colours = figures.class_colours(len(names))
    each = zip(shorten_all(names), names, cycle(figures.GLYPHS), colours, strict=False)
    return [dict(zip(("name", "whole", "mark", "colour"), part, strict=True)) for part in each]


def make_headline(analysis: Analysis) -> dict[str, Any]:
    """Say how good the predictions are, beside the class frequencies."""
    judged: Any = analysis.judged
    left_out: Any = analysis.training.scores
    scores, baseline = judged.scores, analysis.score_frequencies(judged)
    rows, known = judged.judged, judged.known
    wrong = judged.winners[rows] != judged.actual[rows]
    error, low, high = bound_proportion(wrong, judged.weights[rows], judged.groups_of(rows))
    losses = score_rows(judged.probabilities[known], judged.actual[known])[:, 1]
    with np.errstate(invalid="ignore"):
        loss, loss_error = average(losses, judged.weights[known], judged.groups_of(known))
        typical = np.exp(-loss + 1.96 * loss_error * np.array([0, -1, 1]))
    doubts = []
    if baseline.error <= high:
        majority = analysis.describe_majority(judged)
        doubts.append(f"the error is not clearly smaller than the baseline's: {majority}")
    # A rare class that is found as often as the others is nothing to beware of.
    if recall := analysis.describe_rare(below=1 - left_out.error):
        doubts.append(f"the error hardly depends on rare classes; {recall} when left out")
    doubts += analysis.advise_rare()
    return {
        "rows": f"{scores.n:,} {judged.words}",
        "error": (error, low, high),
        "typical": typical,
        "log_loss": scores.log_loss,
        "baseline": baseline,
        "doubts": doubts,
    }


def make_confusion(analysis: Analysis) -> dict[str, Any]:
    """Return recall and precision of each class, and the matrix of actual and predicted classes.

    Recall and precision use leave-one-out predictions of the training rows and are weighted. The
    matrices count rows: test rows if there are any, and training rows. The classes of lowest
    recall come first where there are many.
    """
    training, classes = analysis.training, mark_classes(analysis)
    rows, sizes = [], analysis.class_sizes
    scored = training.judged
    zones, weights = training.zones[scored], training.weights[scored]
    for g, about in enumerate(classes):
        mine, called = training.actual[scored] == g, training.winners[scored] == g
        counts = {"n": sizes[g], "recall": _average(called, weights, mine)}
        counts["precision"] = _average(mine, weights, called)
        rows.append(about | counts | {"decided": _average(zones >= 0, weights, mine)})
    if len(rows) > MAX_LISTED:
        rows.sort(key=lambda row: 1.0 if row["recall"] is None else row["recall"])
    counted = [each for each in (analysis.test, training) if each is not None and len(each.known)]
    return {"classes": rows, "tables": [_count_pairs(each, classes) for each in counted]}


def _average(values: np.ndarray, weights: np.ndarray, where: np.ndarray) -> float | None:
    """Return the weighted mean of some of the values, None of no values."""
    return float(np.average(values[where], weights=weights[where])) if where.any() else None


def _count_pairs(predictions: Predictions, classes: Classes) -> dict[str, Any]:
    """Return the whole matrix or, of many classes, the largest confusions."""
    from sklearn.metrics import confusion_matrix

    n, known = len(classes), predictions.known
    actual, winners = predictions.actual[known], predictions.winners[known]
    counts = confusion_matrix(actual, winners, labels=range(n))
    wrong = counts * (1 - np.eye(n, dtype=np.int64))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_LISTED]
    pairs = [(*divmod(int(at), n), wrong.flat[at]) for at in order if wrong.flat[at]]
    return {
        "about": f"{len(known):,} {predictions.words}",
        "matrix": counts if n <= MAX_LISTED else None,
        "n_listed": sum(pair[2] for pair in pairs),
        "n_wrong": wrong.sum(),
        "pairs": [(classes[g], classes[h], n, n / counts[g].sum()) for g, h, n in pairs],
    }


def make_thresholds(analysis: Analysis) -> dict[str, Any] | None:
    """Show the curves and a table of thresholds; None unless there are two classes."""
    from sklearn.metrics import average_precision_score

    judged, positive = analysis.judged, analysis.rarer_class
    truth, weights = judged.actual[judged.known] == positive, judged.weights[judged.known]
    if len(judged.classes) != 2 or truth.all() or not truth.any():
        return None
    probabilities = judged.probabilities[judged.known, positive]
    area, error = measure_area(truth, probabilities, weights, judged.groups_of(judged.known))
    rows = []
    for threshold in (0.05, *np.arange(1, 10) / 10):
        called = probabilities >= threshold
        rows.append(
            {
                "threshold": threshold,
                "called": called.sum(),
                "recall": _average(called, weights, truth),
                "precision": _average(truth, weights, called),
                "false": _average(called, weights, ~truth),
                "error": np.average(called != truth, weights=weights),
            }
        )
    return {
        "name": mark_classes(analysis)[positive]["name"],
        "is_rarer": np.ptp(analysis.class_sizes) > 0,
        "basis": f"the {len(truth):,} {judged.words}",
        "figures": figures.draw_curves(truth, probabilities, weights),
        "area": (area, max(area - 1.96 * error, 0.0), min(area + 1.96 * error, 1.0)),
        "precision": average_precision_score(truth, probabilities, sample_weight=weights),
        "share": np.average(truth, weights=weights),
        "rows": rows,
    }


def make_map(analysis: Analysis) -> str | None:
    """Draw probabilities and zones over the columns if these are two numbers; else return None."""
    model, training, names = analysis.model, analysis.training, list(analysis.preparer.kinds_)
    if [*analysis.preparer.kinds_.values()] != ["number"] * 2 or len(training.classes) > 7:
        return None
    rows = training.draw(_MAX_POINTS)[0]
    points = training.measured.iloc[rows].to_numpy(dtype=np.float64)
    is_whole = np.isfinite(points).all(axis=1)
    rows, points = rows[is_whole], points[is_whole]
    if not len(rows):
        return None
    side = int(np.clip(np.sqrt(_count_affordable(analysis, 1)), 25, 60))
    x, y, grid, _, _ = plane_around(None, points, side, "the map")
    grid = model.arrange(type(training.frame)(grid, columns=names))
    summary = model.classifier_.predict_summary(grid, analysis.level)
    zones = find_zones(summary.intervals)
    return figures.draw_map(
        (x, y), summary.probabilities, zones, points, training.actual[rows], names
    )


def make_scores(analysis: Analysis) -> dict[str, Any]:
    """Judge the probabilities, beside the class frequencies."""
    training, judged = analysis.training, analysis.judged
    name, known = name_classifier(analysis.classifier), judged.known
    table = [(name, basis, each) for basis, each in analysis.scores.items()]
    return {
        "table": [*table, (BASELINE, "training rows", analysis.score_frequencies(training))],
        "basis": f"The {len(known):,} {judged.words}",
        "reliability": figures.draw_reliability(
            judged.probabilities[known], judged.actual[known], judged.weights[known]
        ),
    }


def make_cases(analysis: Analysis) -> dict[str, Any]:
    """List misclassified and undecided rows, and the most influential training rows of each."""
    predictions, classes = analysis.predictions, mark_classes(analysis)
    by_reason = {
        "misclassified": predictions.find_misclassified(),
        "undecided": predictions.find_undecided(),
    }
    listed = [(i, why) for why, rows in by_reason.items() for i in rows[:10]]
    at = np.array([i for i, _ in listed], dtype=np.intp)
    influential = list_influential(analysis, at, 3)
    contributions = list_contributions(analysis, at)
    rows = [
        {
            "at": i,
            "why": why,
            "class": classes[predictions.winners[i]],
            "parts": [
                (classes[c], predictions.probabilities[i, c])
                for c in np.argsort(-predictions.probabilities[i], kind="stable")[:_MAX_PARTS]
            ],
            "sides": sides,
            "contributions": contributed,
        }
        for (i, why), sides, contributed in zip(listed, influential, contributions, strict=True)
    ]
    return {
        "left_out": predictions.basis == LEAVE_ONE_OUT,
        "many": len(classes) > _MAX_PARTS,
        "n_wrong": len(by_reason["misclassified"]),
        "n_undecided": len(by_reason["undecided"]),
        "rows": rows,
        "known": predictions.actual_names is not None,
        "explained": any(contributions),
    }


def list_influential(
    analysis: Analysis, at: np.ndarray, n_rows: int
) -> list[list[tuple[int, np.ndarray, np.ndarray]]]:
    """List the most influential training rows of predicted rows (:func:`find_influential`).

    Parameters
    ----------
    analysis : Analysis
    at : ndarray of shape (m,)
        Positions in ``analysis.predictions``.
    n_rows : int
        At most how many rows for each of the two likeliest classes.
    """
    if not len(at):
        return []
    predictions = analysis.predictions
    return explanation.find_influential(
        analysis.classifier,
        analysis.model.arrange(predictions.measured.iloc[at]),
        predictions.probabilities[at],
        analysis.training.actual,
        n_rows,
        at if analysis.test is None else None,
        analysis.training.groups,
    )


def list_contributions(analysis: Analysis, at: np.ndarray) -> list[list[tuple[str, float]]]:
    """List the four columns that contribute most to the class of predicted rows, and how much.

    Empty lists where there are more than ``MAX_IMPORTANCE_COLUMNS`` columns.

    Parameters
    ----------
    analysis : Analysis
    at : ndarray of shape (m,)
        Positions in ``analysis.predictions``.
    """
    kinds = analysis.preparer.kinds_
    if len(kinds) > explanation.MAX_IMPORTANCE_COLUMNS or not len(at):
        return [[] for _ in at]
    n_background = min(max(_count_affordable(analysis, len(at) * len(kinds)), 5), 20)
    contributions = occlude_columns(
        analysis.model.proba_of_measured,
        analysis.predictions.measured.iloc[at],
        analysis.training.measured,
        n_background,
    )
    names = list(kinds)
    return [
        [(names[j], float(each[j])) for j in np.argsort(-np.abs(each), kind="stable")[:4]]
        for each in contributions
    ]


def _count_affordable(analysis: Analysis, n_each: int) -> int:
    """Return how many rows may each be predicted ``n_each`` times in a few seconds."""
    most = 2_400_000 if analysis.model.adapter.is_slow else 24_000_000
    return int(most // (n_each * len(analysis.training.rows)))


def make_importance(analysis: Analysis) -> dict[str, Any] | None:
    """Show how much the log-loss grows when a column is permuted, and effects of the first ones."""
    names, classes = list(analysis.preparer.kinds_), mark_classes(analysis)
    if len(names) > explanation.MAX_IMPORTANCE_COLUMNS:
        return None
    judged, affordable = analysis.judged, _count_affordable(analysis, 5 * len(names))
    rows, weights = judged.draw(max(50, min(affordable, 300)))
    X = judged.measured.iloc[rows]
    n_repeats = 5 if affordable >= 50 else 3
    ranked = explanation.rank_columns(
        analysis.model.own_pipeline, X, judged.actual[rows], weights, n_repeats
    )
    effects = _find_effects(analysis, [names[j] for j, _, _ in ranked[:3]])
    shown = [analysis.rarer_class]
    if len(classes) > 2:
        # Those that the columns change most.
        ranges = sum(np.ptp(effect.probabilities, axis=0) for effect in effects)
        shown = np.sort(np.argsort(-ranges, kind="stable")[:_MAX_PARTS]).tolist()
    colours = [each["colour"] for each in classes]
    return {
        "columns": [(names[j], mean, error) for j, mean, error in ranked],
        "n_rows": len(rows),
        "on_test": judged is analysis.test,
        "names": shorten_all([names[j] for j, _, _ in ranked]),
        "effects": [
            (effect, figures.draw_effect(effect, shown, colours, i))
            for i, effect in enumerate(effects)
        ],
        "effect_classes": [classes[g] for g in shown],
    }


def _find_effects(analysis: Analysis, names: list[str]) -> list[explanation.Effect]:
    """Return the partial dependence on some columns, over some of the training rows."""
    kinds = analysis.preparer.kinds_
    measured = analysis.training.measured
    affordable = _count_affordable(analysis, 15 * len(names))
    drawn, weights = analysis.training.draw(min(max(affordable, 50), 100))
    effects = []
    for name in names:
        effect = explanation.find_effect(
            analysis.model.proba_of_measured, measured.iloc[drawn], weights, measured[name]
        )
        if kinds[name] == "date":
            days = np.round(effect.values).astype("timedelta64[D]")
            effect = effect._replace(values=np.datetime64(0, "D") + days)
        effects.append(effect)
    return effects


def make_comparison(analysis: Analysis) -> dict[str, Any] | None:
    """Show how the classifier fares beside others on the same rows."""
    comparison = analysis.comparison
    if comparison is None:
        return None
    results, own, other = comparison.results, comparison.own, comparison.best_other
    losses = {name: each.scores.log_loss for name, each in results.items()}
    excess, error = results[other].excess, results[other].excess_error
    verdict = "worse here" if excess > 2 * error else "as good within chance"
    return {
        "headline": [results[n].scores if n in results else None for n in (own, BASELINE, other)],
        "best": min((own, *losses), key=lambda name: losses[name]),
        "is_infinite": not np.isfinite([*losses.values()]).all(),
        "verdict": "better here" if excess < -2 * error else verdict,
    }


def describe_columns(analysis: Analysis) -> list[dict[str, Any]]:
    """Return what each column holds and what became of it."""
    learned = analysis.preparer.columns_
    return [
        {
            "name": short,
            "whole": name,
            "kind": "left out" if each.reason else each.kind.plural,
            "is_date": not each.reason and each.kind.name == "date",
            "n_categories": 0 if each.reason or each.kind.is_measured else each.n_values,
            "dropped": each.reason,
            "values": each.values,
        }
        for (name, each), short in zip(learned.items(), shorten_all(list(learned)), strict=True)
    ]


def _show_cells(analysis: Analysis, predictions: Predictions, at: int) -> dict[str, str]:
    """Return the values of a row by column, as they stand in a table."""
    row, shown = predictions.measured.iloc[at], {}
    for name, value in row.items():
        kind = analysis.preparer.columns_[name].kind
        if value != value or value is None:
            shown[name] = "–"
        elif kind.is_measured:
            shown[name] = f"{value:.4g}" if kind.name == "number" else kind.show(value)
        else:
            shown[name] = str(predictions.frame[name].iloc[at])
    return shown


def show_score(value: float, spread: float | None = None) -> str:
    """Return a score with its standard error, if it is known; nothing for one that is not."""
    if not np.isfinite(value):
        return "" if np.isnan(value) else "∞"
    return f"{value:.3f}" + ("" if spread is None else f" ± {spread:.3f}")


def _show_interval(ends: tuple[float, float, float]) -> str:
    """Return a share and its interval in per cent, without what is not known."""
    value, low, high = ends
    shown = percent(value, 1) if np.isfinite(value) else ""
    both = np.isfinite([value, low, high]).all()
    return shown + (f" ({100 * low:.1f}\xa0to\xa0{100 * min(high, 1.0):.1f})" if both else "")


def _open_template() -> Any:
    """Return the page without its content; whatever is put into it is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "sentence": lambda text: f"{text[:1].upper()}{text[1:]}.",
        "shorten": shorten,
        "percent": percent,
        "interval": _show_interval,
        "score": show_score,
        "commas": "{:,}".format,
        # An option is not broken in two.
        "options": lambda text: Markup(
            re.sub(r"--[\w-]+", r'<span class="nowrap">\g<0></span>', escape(text))
        ),
    }
    return environment.get_template("report.html.jinja")
