"""The numbers and figures of each section of the report, for the template to lay out."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.plots.style import COLOURS
from bayesknn.report import figures
from bayesknn.report.analysis import Analysis
from bayesknn.report.explanation import find_effects, find_influential, rank_columns
from bayesknn.report.per_class import tell_majority
from bayesknn.report.plane import View
from bayesknn.report.predictions import LEAVE_ONE_OUT
from bayesknn.report.reading import KINDS
from bayesknn.report.scores import Scores, score
from bayesknn.report.words import MAX_LISTED, count, join, percent, shorten, shorten_all

# Classes whose colours can be told apart among points, and in lines of a plot and parts of a bar.
_MAX_COLOURED = 20
_MAX_PARTS = 8


def tell_lead(analysis: Analysis, rare: dict[str, str] | None) -> str:
    """Say in a few sentences what was found; of the rare classes first, if there are any."""
    training = analysis.training
    error = analysis.scores()[LEAVE_ONE_OUT].error
    text = f"{rare['words']} " if rare else ""
    text += (
        f"{count(len(training.rows), 'row')} of {count(len(analysis.plan.used), 'column')} and "
        f"{count(len(training.classes), 'class', 'classes')}. Each left out in turn, "
        f"{percent(1 - error, 1)} of the rows are classified right. At the {analysis.level_name} "
        f"level, {percent(training.share_sure)} of the rows are decided"
    )
    if (sure := training.zones >= 0).any():
        wrong = np.mean(training.winners[sure] != training.actual[sure])
        text += f", that is, have a clear leading class; {percent(wrong, 1)} of these are wrong"
    return f"{text}."


def make_cards(analysis: Analysis, rare: dict[str, str] | None) -> list[dict[str, str]]:
    """Give the headline numbers."""
    cards = [{"value": rare["value"], "label": rare["label"]}] if rare else []
    for basis, found in analysis.scores().items():
        rows: Any = analysis.training if basis == LEAVE_ONE_OUT else analysis.test
        which = f"{basis} error" if basis == LEAVE_ONE_OUT else f"error on {found.n:,} test rows"
        majority = tell_majority(analysis, rows.actual[rows.judged])
        cards += [
            {"value": percent(found.error, 1), "label": f"{which}; {majority}"},
            {"value": f"{found.log_loss:.3f}", "label": f"{basis} log-loss"},
        ]
    cards.append(
        {
            "value": percent(analysis.training.share_sure),
            "label": f"of the training rows are decided at the {analysis.level_name} level",
        }
    )
    if analysis.comparison is not None:
        others, n_folds, own, _ = analysis.comparison
        other = analysis.comparison.best_other
        cards.append(
            {
                "value": f"{others[other].scores.log_loss:.3f}",
                "label": f"log-loss of the best other classifier ({other}); this one has "
                f"{others[own].scores.log_loss:.3f} in the same {n_folds} folds",
            }
        )
    return cards + analysis.model.about.make_cards()


def make_zones(analysis: Analysis, view: View, colours: list[str]) -> dict[str, Any]:
    """Show the rows in a plane, and which of them have a clear leading class."""
    training = analysis.training
    labels, few = training.actual, len(colours) <= _MAX_COLOURED
    decided, wrong = training.zones >= 0, training.winners != labels
    tinted = view.plane is not None and few
    if not few:
        labels, colours = (~wrong).astype(int), [COLOURS[1], COLOURS[0]]
    found: dict[str, Any] = {
        "level": analysis.level_name,
        "share": percent(training.share_sure),
        "n_decided": f"{decided.sum():,}" if decided.any() else "",
        "names": view.names,
        "view": view.words,
        "tinted": tinted,
        "few": few,
        "n_drawn": min(len(view.points), figures.MAX_POINTS),
        "n": len(view.points),
        "figure": figures.draw_zones(
            view.points,
            labels,
            colours,
            view.names,
            zones=None if tinted else training.zones,
            plane=view.plane if tinted else None,
            plane_zones=view.zones,
        ),
    }
    if decided.any():
        found["expected"] = percent(training.expected_loss[decided].mean(), 1)
        found["observed"] = percent(wrong[decided].mean(), 1)
    return found


def make_scores(analysis: Analysis) -> dict[str, Any]:
    """Judge the probabilities, beside the class frequencies."""
    training, name = analysis.training, analysis.model.about.name
    table = [_score_row(name, found, basis, own=True) for basis, found in analysis.scores().items()]
    shares = np.bincount(training.actual, minlength=len(training.classes)) / len(training.rows)
    baseline = score(np.broadcast_to(shares, training.probabilities.shape), training.actual)
    table.append(_score_row("baseline: class frequencies", baseline, "training rows"))
    judged = analysis.evaluated()
    return {
        "table": table,
        "reliability": figures.draw_reliability(judged.probabilities, judged.labels),
        "basis": judged.words[:1].upper() + judged.words[1:],
    }


def make_cases(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any]:
    """List the rows about which the least is known, and the most influential training rows."""
    found, frame = analysis.predictions, analysis.predicted_frame
    columns = analysis.plan.used[:5]  # a wider table would leave the screen
    at = found.find_uncertain(MAX_LISTED)
    influential = find_influential(analysis, at, 3)
    rows = []
    for i, sides in zip(at, influential, strict=True):
        g = found.winners[i]
        low, high = found.intervals[i, g]
        parts = np.argsort(-found.probabilities[i], kind="stable")[:_MAX_PARTS]
        shares = [(classes[c], found.probabilities[i, c]) for c in parts]
        rows.append(
            classes[g]
            | {
                "number": f"{found.rows[i]:,}",
                "words": "; ".join(f"{c['name']} {percent(share)}" for c, share in shares),
                "parts": [
                    {"width": f"{100 * share:.2f}", "colour": c["colour"]} for c, share in shares
                ],
                "interval": f"{low:.2f} to {high:.2f}",
                "actual": "" if found.actual_names is None else shorten(found.actual_names[i]),
                "values": [shorten(_show(frame[name].iloc[i])) for name in columns],
                "sides": [
                    classes[side.label]
                    | {
                        "probability": percent(found.probabilities[i, side.label]),
                        "influential": [
                            {
                                "number": f"{analysis.training.rows[j]:,}",
                                "influence": f"{influence:.2g}",
                            }
                            for j, influence in zip(side.rows, side.influence, strict=True)
                        ],
                    }
                    for side in sides
                ],
            }
        )
    more = len(analysis.plan.used) - len(columns)
    return {
        "left_out": found.basis == LEAVE_ONE_OUT,
        "level": analysis.level_name,
        "many": len(classes) > _MAX_PARTS,
        "more": count(more, "further column") if more else "",
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
    top = max(float(found.mean[0]), np.finfo(float).tiny)
    named = zip(shorten_all(found.names), found.mean, found.error, strict=True)
    return {
        "n_rows": f"{found.n_rows:,}",
        "on_test": found.on_test,
        "columns": [
            {
                "name": name,
                "width": f"{100 * max(mean, 0.0) / top:.1f}",
                "loss": f"{round(mean, 3) + 0.0:.3f} ± {error:.3f}",  # not -0.000
            }
            for name, mean, error in named
        ],
        "effects": [
            {"figure": figures.draw_effect(effect, shown, colours, i), "name": effect.name}
            for i, effect in enumerate(effects)
        ],
        "effect_classes": [classes[g] for g in shown],
        "effect_rows": f"{effects[0].n_rows:,}",
    }


def make_comparison(analysis: Analysis) -> dict[str, Any] | None:
    """Show how the classifier fares beside others on the same rows."""
    if analysis.comparison is None:
        return None
    found, n_folds, own, curve = analysis.comparison
    n, n_rows = next(iter(found.values())).scores.n, len(analysis.training.rows)
    other = analysis.comparison.best_other
    best = other if found[other].scores.log_loss < found[own].scores.log_loss else own
    table = [
        _score_row(name, each.scores, own=name == own, errors=each.standard_errors)
        | {"best": name == best}
        for name, each in found.items()
    ]
    return {
        "n": f"{n:,}",
        "n_rows": f"{n_rows:,}" if n < n_rows else "",
        "n_folds": n_folds,
        "share": percent(1 - 1 / n_folds),
        "table": table,
        "other": other,
        "excess": (found[other].excess, found[other].excess_error),
        "infinite": any(row["log_loss"] == "∞" for row in table),
        "learning": curve and figures.draw_learning(*curve[:3]),
        "curve": curve,
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
        names = {"name": short, "whole": name, "short": short == name}
        found.append({**names, "values": _sum_up(column), **told})
    return found


def _score_row(
    name: str, found: Scores, basis: str = "", own: bool = False, errors: Scores | None = None
) -> dict[str, Any]:
    def show(value: float, spread: float | None) -> str:
        if not np.isfinite(value):
            return "" if np.isnan(value) else "∞"
        return f"{value:.3f}" + ("" if spread is None else f" ± {spread:.3f}")

    wrong = percent(found.error, 1)
    return {
        "name": name,
        "basis": basis,
        "own": own,
        "n": f"{found.n:,}",
        "error": wrong if errors is None else f"{wrong} ± {100 * errors.error:.1f}",
        "log_loss": show(found.log_loss, errors and errors.log_loss),
        "brier": show(found.brier, errors and errors.brier),
    }


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
    return str(value)
