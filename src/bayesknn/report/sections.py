"""The numbers and figures of each section of the report, for the template to lay out."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.plots.style import COLOURS
from bayesknn.report import figures
from bayesknn.report.analysis import Analysis
from bayesknn.report.columns import as_measured
from bayesknn.report.explanation import find_effects, find_influential, rank_columns
from bayesknn.report.per_class import tell_majority
from bayesknn.report.plane import View
from bayesknn.report.predictions import LEAVE_ONE_OUT
from bayesknn.report.reading import KINDS
from bayesknn.report.scores import score
from bayesknn.report.words import count, join, percent, shorten, shorten_all

# Classes whose colours can be told apart among points, and in lines of a plot and parts of a bar.
_MAX_COLOURED = 20
_MAX_PARTS = 8
# Rows of a kind that are listed.
_MAX_CASES = 10


def make_cards(analysis: Analysis, rare: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Give the headline numbers, and what they are."""
    cards = []
    if rare:
        whose = rare["name"] if rare["n_classes"] == 1 else f"{rare['n_classes']} rare classes"
        label = f"recall of the {rare['n']:,} rows of {whose}"
        cards.append((percent(rare["n_right"] / rare["n"]), label))
    for basis, found in analysis.scores().items():
        if basis not in (LEAVE_ONE_OUT, "test"):
            cards.append((percent(found.error, 1), f"error on {basis}, predicted from the others"))
            continue
        rows: Any = analysis.training if basis == LEAVE_ONE_OUT else analysis.test
        which = f"{basis} error" if basis == LEAVE_ONE_OUT else f"error on {found.n:,} test rows"
        majority = tell_majority(analysis, rows.actual[rows.judged])
        cards.append((percent(found.error, 1), f"{which}; {majority}"))
        cards.append((f"{found.log_loss:.3f}", f"{basis} log-loss"))
    label = f"of the training rows are decided at the {analysis.level_name} level"
    cards.append((percent(analysis.training.share_decided), label))
    if analysis.comparison is not None:
        others, n_folds, own, _ = analysis.comparison
        other = analysis.comparison.best_other
        label = (
            f"log-loss of the best other classifier ({other}); this one has "
            f"{others[own].scores.log_loss:.3f} in the same "
            f"{count(n_folds, 'fold')}"
        )
        cards.append((f"{others[other].scores.log_loss:.3f}", label))
    return cards + analysis.model.about.make_cards()


def make_zones(analysis: Analysis, view: View, colours: list[str]) -> dict[str, Any]:
    """Show the rows in a plane, and which of them are decided."""
    training = analysis.training
    labels, few = training.actual, len(colours) <= _MAX_COLOURED
    if not few:
        labels, colours = (training.winners == labels).astype(int), [COLOURS[1], COLOURS[0]]
    return {
        "view": view,
        "few": few,
        "n_drawn": min(len(view.points), figures.MAX_POINTS),
        "figure": figures.draw_zones(view.points, labels, colours, view.names, training.zones),
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
    columns = analysis.plan.used[:5]  # a wider table would leave the screen
    wrong, undecided = found.find_misclassified(), found.find_undecided()
    at = np.r_[wrong[:_MAX_CASES], np.setdiff1d(undecided, wrong, assume_unique=True)[:_MAX_CASES]]
    influential = find_influential(analysis, at, 3)
    rows = []
    for i, sides in zip(at, influential, strict=True):
        g, probabilities = found.winners[i], found.probabilities[i]
        parts = np.argsort(-probabilities, kind="stable")[:_MAX_PARTS]
        rows.append(
            {
                "number": found.rows[i],
                "why": "misclassified" if i in wrong else "undecided",
                "class": classes[g],
                "parts": [(classes[c], probabilities[c]) for c in parts],
                "interval": found.intervals[i, g],
                "actual": "" if found.actual_names is None else shorten(found.actual_names[i]),
                "values": [shorten(_show(frame[name].iloc[i])) for name in columns],
                "sides": [
                    {
                        "class": classes[side.label],
                        "share": probabilities[side.label],
                        "rows": zip(analysis.training.rows[side.rows], side.influence, strict=True),
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
        "known": found.actual_names is not None,
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
    return {
        "best": min((own, *losses), key=lambda name: losses[name]),
        "is_infinite": not np.isfinite([*losses.values()]).all(),
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


def _show(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value).removesuffix(" 00:00:00")  # a day
