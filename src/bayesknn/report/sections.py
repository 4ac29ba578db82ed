"""The numbers and figures of each section of the report, for the template to lay out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binomtest

from bayesknn.plots.style import COLOURS
from bayesknn.report import figures
from bayesknn.report.analysis import Analysis
from bayesknn.report.columns import as_measured
from bayesknn.report.comparison import BASELINE
from bayesknn.report.explanation import (
    find_contributions,
    find_effects,
    find_influential,
    rank_columns,
)
from bayesknn.report.per_class import tell_majority
from bayesknn.report.predictions import LEAVE_ONE_OUT
from bayesknn.report.reading import KINDS
from bayesknn.report.scores import score, score_rows
from bayesknn.report.words import join, percent, shorten, shorten_all

# Classes whose colours can be told apart among points, and in lines of a plot and parts of a bar.
_MAX_COLOURED = 20
_MAX_PARTS = 8
# Rows of a kind that are listed.
_MAX_CASES = 10


def make_headline(analysis: Analysis, thresholds: dict[str, Any] | None) -> dict[str, Any]:
    """Say how good the predictions are, beside the class frequencies and the best other model."""
    test, training = analysis.test, analysis.training
    tested = test is not None and len(test.judged) > 1
    judged: Any = test if tested else training
    labels = judged.actual[judged.judged]
    probabilities = judged.probabilities[judged.judged]
    shares = np.bincount(training.actual, minlength=len(training.classes)) / len(training.rows)
    baseline = score(np.broadcast_to(shares, probabilities.shape), labels)
    n_wrong = round(score(probabilities, labels).error * len(labels))
    low, high = binomtest(n_wrong, len(labels)).proportion_ci(method="wilson")
    losses = score_rows(probabilities, labels)[:, 1]
    losses = losses[~np.isnan(losses)]
    measures = [
        (
            "rows predicted wrong",
            [_show_interval(n_wrong / len(labels), low, high), percent(baseline.error, 1)],
        ),
        (
            f"typical probability of the true class (log-loss {show_score(losses.mean())})",
            [_show_interval(*_typical(losses)), percent(np.exp(-baseline.log_loss), 1)],
        ),
    ]
    if thresholds:
        area, error = thresholds["area"], 1.96 * thresholds["area_error"]
        shown = f"{area:.3f}"
        if np.isfinite(error):
            shown += f" ({max(area - error, 0.0):.3f} to {min(area + error, 1.0):.3f})"
        measures.insert(1, ("AUC", [shown, "0.500"]))
    groups = [{"rows": f"{len(labels):,} {judged.words}", "measures": measures}]
    for rows, found in analysis.apart.items():
        about = f"{found.n:,} {rows}, predicted from the others"
        wrong = ("rows predicted wrong", [percent(found.error, 1), ""])
        groups.append({"rows": about, "measures": [wrong]})
    if analysis.comparison:
        groups.append(_summarise_comparison(analysis.comparison))
    doubts = []
    if baseline.error <= high:
        majority = tell_majority(analysis, labels)
        doubts.append(f"the error is not clearly smaller than the baseline's: {majority}")
    return {
        "groups": groups,
        "has_area": bool(thresholds),
        "other": analysis.comparison.best_other if analysis.comparison else "",
        "classes": join([shorten(name) for name in training.names], 5),
        "decided": analysis.predictions.tell_decided(analysis.level),
        "doubts": doubts,
    }


def _summarise_comparison(comparison: Any) -> dict[str, Any]:
    """Give error and typical probability of this model, the baseline and the best other one."""
    names = (comparison.own, BASELINE, comparison.best_other)
    scores = [comparison.found[name].scores if name in comparison.found else None for name in names]
    errors = [percent(each.error, 1) if each else "" for each in scores]
    typical = [percent(np.exp(-each.log_loss), 1) if each else "" for each in scores]
    folds = f"in {comparison.n_folds}-fold cross-validation"
    if comparison.n_folds == 1:
        folds = "predicted from the rows before"
    measures = [
        ("rows predicted wrong", errors),
        ("typical probability of the true class", typical),
    ]
    n = comparison.found[comparison.own].scores.n
    return {"rows": f"{n:,} rows {folds}", "measures": measures}


def _typical(losses: np.ndarray) -> tuple[float, float, float]:
    """Return exp(-log-loss) with its 95 % interval, NaN where that is not known."""
    with np.errstate(invalid="ignore"):
        error = 1.96 * losses.std(ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else np.nan
        mean = losses.mean() if len(losses) else np.nan
        return np.exp(-mean), np.exp(-mean - error), np.exp(-mean + error)


def _show_interval(value: float, low: float, high: float) -> str:
    if not np.isfinite([value, low, high]).all():
        return percent(value, 1) if np.isfinite(value) else ""
    return f"{percent(value, 1)} ({100 * low:.1f} to {100 * min(high, 1.0):.1f})"


def make_zones(analysis: Analysis, ranked: list[str], colours: list[str]) -> dict[str, Any]:
    """Show which rows are decided, over two columns: those given or the most important numbers."""
    training, plan = analysis.training, analysis.plan
    names = analysis.axes or tuple(name for name in ranked if name in plan.numeric)[:2]
    labels, few = training.actual, len(colours) <= _MAX_COLOURED
    if not few:
        labels, colours = (training.winners == labels).astype(int), [COLOURS[1], COLOURS[0]]
    figure = ""
    if len(names) == 2:
        measured = as_measured(analysis.frame, {name: plan.kinds[name] for name in names})
        points = measured.to_numpy(dtype=np.float64, na_value=np.nan)
        points = np.where(np.isnan(points), np.nanmedian(points, axis=0), points)
        figure = figures.draw_zones(points, labels, colours, names, training.zones)
    return {
        "names": names,
        "few": few,
        "n_drawn": min(len(labels), figures.MAX_POINTS),
        "figure": figure,
    }


def make_scores(analysis: Analysis) -> dict[str, Any]:
    """Judge the probabilities, beside the class frequencies."""
    training, name = analysis.training, analysis.model.about.name
    table = [(name, basis, found) for basis, found in analysis.scores().items()]
    frequencies = np.bincount(training.actual, minlength=len(training.classes)) / len(training.rows)
    baseline = score(np.broadcast_to(frequencies, training.probabilities.shape), training.actual)
    table.append(("baseline: class frequencies", "training rows", baseline))
    judged = analysis.evaluated()
    return {
        "table": table,
        "reliability": figures.draw_reliability(judged.probabilities, judged.labels),
        "basis": judged.words[:1].upper() + judged.words[1:],
    }


def make_cases(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any]:
    """List misclassified and undecided rows, and the most influential training rows of each."""
    found, frame = analysis.predictions, analysis.predicted_frame
    wrong, undecided = found.find_misclassified(), found.find_undecided()
    at = np.r_[wrong[:_MAX_CASES], undecided[:_MAX_CASES]]
    why = ["misclassified"] * len(wrong[:_MAX_CASES]) + ["undecided"] * len(undecided[:_MAX_CASES])
    influential, contributions = find_influential(analysis, at, 3), find_contributions(analysis, at)
    # A wider table would leave the screen.
    first, columns = analysis.plan.used[:3], [] if any(contributions) else analysis.plan.used[:5]
    rows = []
    for i, reason, sides, each in zip(at, why, influential, contributions, strict=True):
        g, probabilities = found.winners[i], found.probabilities[i]
        parts = np.argsort(-probabilities, kind="stable")[:_MAX_PARTS]
        rows.append(
            {
                "number": found.rows[i],
                "why": reason,
                "contributions": [
                    (f"{shorten(name, 20)} = {shorten(_show(frame[name].iloc[i]), 12)}", value)
                    for name, value in each
                ],
                "class": classes[g],
                "parts": [(classes[c], probabilities[c]) for c in parts],
                "interval": found.intervals[i, g],
                "actual": "" if found.actual_names is None else shorten(found.actual_names[i]),
                "values": _show_row(frame, i, columns),
                "sides": [
                    {
                        "class": classes[side.label],
                        "share": probabilities[side.label],
                        "rows": [
                            (analysis.training.rows[r], x, _show_row(analysis.frame, r, first))
                            for r, x in zip(side.rows, side.influence, strict=True)
                        ],
                    }
                    for side in sides
                ],
            }
        )
    return {
        "left_out": found.basis == LEAVE_ONE_OUT,
        "many": len(classes) > _MAX_PARTS,
        "n_more": len(analysis.plan.used) - len(columns),
        "n_wrong": len(wrong),
        "n_undecided": len(undecided),
        "rows": rows,
        "columns": shorten_all(columns),
        "first": shorten_all(first),
        "known": found.actual_names is not None,
        "explained": any(contributions),
    }


def make_importance(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Show how much the log-loss grows when a column is permuted, and effects of the first ones."""
    found = rank_columns(analysis)
    if found is None:
        return None
    effects = find_effects(analysis, found.names[:3])
    if len(classes) == 2:
        shown = [analysis.rarer_class]
    else:
        # Those that the columns change most.
        ranges = sum(np.ptp(effect.probabilities, axis=0) for effect in effects)
        shown = np.sort(np.argsort(-ranges, kind="stable")[:_MAX_PARTS]).tolist()
    colours = [c["colour"] for c in classes]
    return {
        "found": found,
        "columns": list(zip(shorten_all(found.names), found.mean, found.error, strict=True)),
        "effects": [
            (effect, figures.draw_effect(effect, shown, colours, i))
            for i, effect in enumerate(effects)
        ],
        "effect_classes": [classes[g] for g in shown],
    }


def make_criticism(analysis: Analysis) -> dict[str, Any] | None:
    """Check the model and its prior."""
    X = analysis.model.transform(as_measured(analysis.frame, analysis.plan.kinds))
    y = analysis.classifier.classes_[analysis.training.actual]
    return analysis.model.about.criticise(X, y)


def make_comparison(analysis: Analysis) -> dict[str, Any] | None:
    """Show how the classifier fares beside others on the same rows."""
    if analysis.comparison is None:
        return None
    found, own = analysis.comparison.found, analysis.comparison.own
    losses = {name: each.scores.log_loss for name, each in found.items()}
    other = analysis.comparison.best_other
    excess, error = found[other].excess, found[other].excess_error
    loses = excess < -2 * error
    than = "larger" if excess > 0 else "smaller"
    which = "is better here" if loses else "is as good within chance"
    if excess > 2 * error:
        which = "is worse here"
    return {
        "best": min((own, *losses), key=lambda name: losses[name]),
        "is_infinite": not np.isfinite([*losses.values()]).all(),
        "loses": loses,
        "verdict": f"{other}, the best other classifier, {which}: row by row, its log-loss is "
        f"{abs(excess):.3f} ± {error:.3f} {than} than that of this one",
    }


def describe_columns(analysis: Analysis) -> list[dict[str, Any]]:
    """Tell what each column holds and what became of it."""
    plan, frame, about = analysis.plan, analysis.frame, analysis.model.about
    found = []
    others = [name for name in frame.columns if name != plan.target]
    for name, short in zip(others, shorten_all(others), strict=True):
        column, kind = frame[name], plan.kinds.get(name)
        if kind is None:
            told = {"kind": "left out", "use": plan.dropped[name], "out": True}
        else:
            n_categories = column.nunique() if name in plan.categorical else 0
            use = about.tell_use(n_categories, analysis.model.standardises)
            told = {
                "kind": KINDS.get(kind, "categories"),
                "use": "days, " * (kind == "date") + use,
                "out": False,
            }
        found.append({"name": short, "whole": name, "values": _sum_up(column), **told})
    return found


def show_score(value: float, spread: float | None = None) -> str:
    """Return a score with its standard error, if it is known; nothing for one that is not."""
    if not np.isfinite(value):
        return "" if np.isnan(value) else "∞"
    return f"{value:.3f}" + ("" if spread is None else f" ± {spread:.3f}")


def _sum_up(column: Any) -> str:
    there = column.dropna()
    missing = f"; {len(column) - len(there):,} missing" if len(there) < len(column) else ""
    if len(there) == 0:
        return "none"
    if column.dtype.kind == "M":
        return f"{there.min():%Y-%m-%d} to {there.max():%Y-%m-%d}{missing}"
    if column.dtype.kind in "iuf":
        # Of halves, since the sum of two large values may be too large.
        middle = 2 * (there / 2).median()
        low, middle, high = map(_show, (there.min(), middle, there.max()))
        return (f"{low} to {high}, median {middle}" if low != high else low) + missing
    counts = there.astype(str).value_counts()
    told = [f"{shorten(name)} ({percent(n / len(there))})" for name, n in counts.items()]
    return join(told, 3) + missing


def _show_row(frame: Any, i: int, columns: list[str]) -> list[str]:
    return [shorten(_show(frame[name].iloc[i])) for name in columns]


def _show(value: Any) -> str:
    if value != value or value is None:
        return "–"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value).removesuffix(" 00:00:00")  # a day
