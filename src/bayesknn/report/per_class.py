"""Recall of each class, the rare ones first, confusions, and thresholds of two classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.report import figures
from bayesknn.report.analysis import Analysis
from bayesknn.report.predictions import Predictions
from bayesknn.report.words import MAX_LISTED, count, percent, shorten_all


def find_rare(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the numbers of the rare classes, the rarest first.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.report.per_class import find_rare
    >>> find_rare(np.repeat([0, 1, 2], [90, 3, 7]), 3).tolist()
    [1, 2]
    """
    counts = np.bincount(labels, minlength=n_classes)
    # With less than a quarter of an even share: the error hardly depends on it.
    rare = np.flatnonzero(counts < 0.25 * len(labels) / n_classes)
    return rare[np.argsort(counts[rare], kind="stable")]


def name_classes(analysis: Analysis, colours: list[str]) -> list[dict[str, Any]]:
    """Give each class's name, cut where it is not short, its whole one, its colour and its mark."""
    names = analysis.training.names
    return [
        {
            "name": name,
            "whole": whole,
            "short": name == whole,
            "colour": colour,
            "mark": figures.GLYPHS[g % len(figures.GLYPHS)],
        }
        for g, (name, whole, colour) in enumerate(
            zip(shorten_all(names), names, colours, strict=True)
        )
    ]


def tell_majority(analysis: Analysis, labels: np.ndarray) -> str:
    """Say how often the most common class of the training rows would be wrong."""
    training = analysis.training
    most = int(np.bincount(training.actual).argmax())
    name = shorten_all(training.names, 20)[most]
    return f"always predicting {name} errs in {percent(np.mean(labels != most), 1)}"


def make_rare(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Give recall and precision of the rare classes, if there are any.

    With them, for each class, how many rows to inspect for more of it.
    """
    training = analysis.training
    labels, winners = training.actual, training.winners
    rare = find_rare(labels, len(classes))
    if not len(rare):
        return None
    mine, called = np.isin(labels, rare), np.isin(winners, rare)
    n, found = mine.sum(), np.sum(mine & (winners == labels))
    share = f"{n:,} of {len(labels):,} rows ({percent(n / len(labels), 1)})"
    if len(rare) == 1:
        name = classes[rare[0]]["name"]
        who, whose = f"Only {share} are {name}.", f"rows of {name}"
    else:
        who = f"{len(rare)} of {len(classes)} classes are rare, with {share} in all."
        name, whose = "one of them", f"rows of {len(rare)} rare classes"
    words = f"{who} Each row left out in turn, {found:,} of these {n:,} are found (recall "
    words += f"{percent(found / n)})"
    if called.any():
        right, n_called = int(np.sum(winners[called] == labels[called])), int(called.sum())
        predicted = f"{count(n_called, 'row')} predicted as {name}"
        words += f"; {right or 'none'} of the {predicted} {'are' if right != 1 else 'is'} right "
        words += f"(precision {percent(right / n_called)})"
    words += f". Baseline: {tell_majority(analysis, labels)} of all rows."
    return {
        "words": words,
        "value": percent(found / n),
        "label": f"recall of the {n:,} {whose}",
        "rows": [classes[g] | _count_rare(training, g) for g in rare[:MAX_LISTED]],
        "n_more": max(len(rare) - MAX_LISTED, 0),
    }


def _count_rare(training: Predictions, g: int) -> dict[str, str]:
    mine, called = training.actual == g, training.winners == g
    ranks = np.flatnonzero(mine[np.argsort(-training.probabilities[:, g], kind="stable")]) + 1
    half, most = (ranks[int(np.ceil(part * len(ranks))) - 1] for part in (0.5, 0.9))
    return {
        "n": f"{mine.sum():,}",
        "found": f"{np.sum(mine & called):,}",
        "called": f"{called.sum():,}",
        "half": f"{half:,}",
        "most": f"{most:,}",
    }


def make_classes(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any]:
    """Count the rows of each class, and how many of them are found."""
    training = analysis.training
    shares = np.zeros(len(classes))
    rows = []
    for g, about in enumerate(classes):
        mine = training.actual == g
        shares[g] = np.mean(training.winners[mine] == g)
        rows.append(
            about
            | {
                "n": f"{mine.sum():,}",
                "share": percent(mine.mean(), 1),
                "found": percent(shares[g], 1),
                "decided": percent(np.mean(training.zones[mine] >= 0)),
            }
        )
    if len(rows) <= MAX_LISTED:
        return {"rows": rows, "more": [], "words": ""}
    rows = [rows[g] for g in np.argsort(shares, kind="stable")]
    words = "The classes with the lowest recall come first. "
    return {"rows": rows[:MAX_LISTED], "more": rows[MAX_LISTED:], "words": words}


def make_confusion(analysis: Analysis, classes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Count actual against predicted classes, of the test rows if there are any, and left out."""
    both = (analysis.test, analysis.training)
    return [_count_pairs(each, classes) for each in both if each is not None and len(each.known)]


def _count_pairs(found: Predictions, classes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the whole matrix or, of many classes, the largest confusions."""
    n, known = len(classes), found.known
    counts = np.zeros((n, n), dtype=np.int64)
    np.add.at(counts, (found.actual[known], found.winners[known]), 1)
    about = f"{len(known):,} {found.words}"
    if n <= MAX_LISTED:
        matrix = [[f"{cell:,}" if cell else "·" for cell in row] for row in counts]
        return {"about": about, "matrix": matrix, "pairs": []}
    wrong = counts * (1 - np.eye(n, dtype=np.int64))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_LISTED]
    pairs = [(*divmod(int(at), n), int(wrong.flat[at])) for at in order if wrong.flat[at]]
    return {
        "about": about,
        "n_listed": f"{sum(pair[2] for pair in pairs):,}",
        "n_wrong": f"{wrong.sum():,}",
        "matrix": None,
        "pairs": [
            {
                "actual": classes[g],
                "predicted": classes[h],
                "n": f"{count:,}",
                "share": percent(count / counts[g].sum()),
            }
            for g, h, count in pairs
        ],
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
    false_rate, recall, _ = metrics.roc_curve(truth, found)
    precision, recalled, _ = metrics.precision_recall_curve(truth, found)
    roc, pr = figures.draw_curves(false_rate, recall, recalled, precision, truth.mean())
    return {
        "name": classes[positive]["name"],
        "is_rarer": np.mean(analysis.training.actual == positive) < 0.5,
        "basis": judged.words,
        "roc": roc,
        "area": metrics.roc_auc_score(truth, found),
        "pr": pr,
        "precision": metrics.average_precision_score(truth, found),
        "share": percent(truth.mean(), 1),
        "rows": [_evaluate(each, found, truth) for each in (0.05, *np.arange(1, 10) / 10)],
    }


def _evaluate(threshold: float, probabilities: np.ndarray, truth: np.ndarray) -> dict[str, str]:
    called = probabilities >= threshold
    hits = np.sum(called & truth)
    return {
        "threshold": f"{threshold:g}",
        "called": f"{called.sum():,}",
        "recall": percent(hits / truth.sum()),
        "precision": percent(hits / called.sum()) if called.any() else "none predicted",
        "false": percent(np.mean(called[~truth])),
        "error": percent(np.mean(called != truth), 1),
    }
