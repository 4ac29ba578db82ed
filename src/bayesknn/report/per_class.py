"""Recall of each class, the rare ones first, confusions, and thresholds of two classes."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np

from bayesknn.report import figures
from bayesknn.report.analysis import Analysis
from bayesknn.report.predictions import Predictions
from bayesknn.report.scores import measure_area
from bayesknn.report.words import MAX_LISTED, percent, shorten_all


def find_rare(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the numbers of the rare classes, the rarest first."""
    counts = np.bincount(labels, minlength=n_classes)
    # With less than a quarter of an even share: the error hardly depends on it.
    rare = np.flatnonzero(counts < 0.25 * len(labels) / n_classes)
    return rare[np.argsort(counts[rare], kind="stable")]


def name_classes(analysis: Analysis, colours: list[str]) -> list[dict[str, Any]]:
    """Give each class's name, cut where it is not short, its whole one, its colour and its mark."""
    names = analysis.training.names
    # Colours, of which there are as many as classes, end it.
    each = zip(shorten_all(names), names, cycle(figures.GLYPHS), colours, strict=False)
    return [dict(zip(("name", "whole", "mark", "colour"), part, strict=True)) for part in each]


def tell_majority(analysis: Analysis, labels: np.ndarray) -> str:
    """Say how often the most common class of the training rows would be wrong."""
    training = analysis.training
    most = int(np.bincount(training.actual).argmax())
    name = shorten_all(training.names, 20)[most]
    return f"always predicting {name} errs in {percent(np.mean(labels != most), 1)}"


def make_rare(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Count how many rows of the rare classes are found, if there are such classes.

    With them, for each class, how many rows to inspect for more of it.
    """
    training = analysis.training
    labels, winners = training.actual, training.winners
    rare = find_rare(labels, len(classes))
    if not len(rare):
        return None
    mine, called = np.isin(labels, rare), np.isin(winners, rare)
    n_right = int(np.sum(mine & (winners == labels)))
    return {
        "n_classes": len(rare),
        "n": int(mine.sum()),
        "n_right": n_right,
        "n_called": int(called.sum()),
        "name": classes[rare[0]]["name"],
        "majority": tell_majority(analysis, labels),
        "rows": [classes[g] | count_rare(training, g) for g in rare[:MAX_LISTED]],
    }


def count_rare(training: Predictions, g: int) -> dict[str, int]:
    """Count the rows of a class, those found, those called so, and those to inspect for more."""
    mine, called = training.actual == g, training.winners == g
    ranks = np.flatnonzero(mine[np.argsort(-training.probabilities[:, g], kind="stable")]) + 1
    half, most = (ranks[int(np.ceil(part * len(ranks))) - 1] for part in (0.5, 0.9))
    return {
        "n": mine.sum(),
        "found": np.sum(mine & called),
        "called": called.sum(),
        "half": half,
        "most": most,
    }


def make_classes(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any]:
    """Count the rows of each class, and how many of them are found."""
    training = analysis.training
    rows = []
    for g, about in enumerate(classes):
        mine = training.actual == g
        recall, decided = np.mean(training.winners[mine] == g), np.mean(training.zones[mine] >= 0)
        called = training.winners == g
        precision = np.mean(mine[called]) if called.any() else None
        counts = {"n": mine.sum(), "recall": recall, "precision": precision, "decided": decided}
        rows.append(about | counts)
    if len(rows) > MAX_LISTED:
        rows = sorted(rows, key=lambda row: row["recall"])
    return {"rows": rows[:MAX_LISTED], "more": rows[MAX_LISTED:]}


def make_confusion(analysis: Analysis, classes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Count actual against predicted classes, of the test rows if there are any, and left out."""
    both = (analysis.test, analysis.training)
    return [_count_pairs(each, classes) for each in both if each is not None and len(each.known)]


def _count_pairs(found: Predictions, classes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the whole matrix or, of many classes, the largest confusions."""
    from sklearn.metrics import confusion_matrix

    n, known = len(classes), found.known
    counts = confusion_matrix(found.actual[known], found.winners[known], labels=range(n))
    wrong = counts * (1 - np.eye(n, dtype=np.int64))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_LISTED]
    pairs = [(*divmod(int(at), n), wrong.flat[at]) for at in order if wrong.flat[at]]
    return {
        "about": f"{len(known):,} {found.words}",
        "matrix": counts if n <= MAX_LISTED else None,
        "n_listed": sum(pair[2] for pair in pairs),
        "n_wrong": wrong.sum(),
        "pairs": [(classes[g], classes[h], n, n / counts[g].sum()) for g, h, n in pairs],
    }


def make_thresholds(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Show the curves and a table of thresholds; None unless there are two classes."""
    from sklearn import metrics

    if len(classes) != 2:
        return None
    judged, positive = analysis.evaluated(), analysis.rarer_class
    truth, found = judged.labels == positive, judged.probabilities[:, positive]
    if truth.all() or not truth.any():
        return None
    area, error = measure_area(truth, found)
    return {
        "name": classes[positive]["name"],
        "is_rarer": np.mean(analysis.training.actual == positive) < 0.5,
        "basis": judged.words,
        "figures": figures.draw_curves(truth, found),
        "area": area,
        "area_error": error,
        "precision": metrics.average_precision_score(truth, found),
        "share": truth.mean(),
        "rows": [_evaluate(each, found, truth) for each in (0.05, *np.arange(1, 10) / 10)],
    }


def _evaluate(threshold: float, probabilities: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    called = probabilities >= threshold
    hits = np.sum(called & truth)
    return {
        "threshold": threshold,
        "called": called.sum(),
        "recall": hits / truth.sum(),
        "precision": hits / called.sum() if called.any() else None,
        "false": np.mean(called[~truth]),
        "error": np.mean(called != truth),
    }
