"""Two classes: ROC and precision-recall curves, and what follows from each threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from bayesknn.report import figures
from bayesknn.report.analysis import Analysis
from bayesknn.report.scores import percent

_THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def make_thresholds(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Show the curves and a table of thresholds; None unless there are two classes."""
    from sklearn import metrics

    if len(classes) != 2:
        return None
    probabilities, labels, basis = analysis.evaluated()
    positive = int(np.bincount(analysis.training.actual)[1] <= len(analysis.training.actual) / 2)
    truth, found = labels == positive, probabilities[:, positive]
    if truth.all() or not truth.any():
        return None
    name = classes[positive]["name"]
    false_rate, recall, _ = metrics.roc_curve(truth, found)
    precision, recalled, _ = metrics.precision_recall_curve(truth, found)
    area = metrics.roc_auc_score(truth, found)
    average = metrics.average_precision_score(truth, found)
    roc, pr = figures.draw_curves(false_rate, recall, recalled, precision, truth.mean())
    return {
        "words": f"A row is predicted as {name}, the rarer class, if its probability of {name} "
        f"reaches the threshold. Rows: {basis}.",
        "name": name,
        "roc": Markup(roc),
        "roc_caption": f"ROC curve, area {area:.3f}: 0.5 is guessing, 1 is perfect. Dashed: "
        "guessing.",
        "pr": Markup(pr),
        "pr_caption": f"Precision-recall curve, average precision {average:.3f}. Dashed: "
        f"guessing, {percent(truth.mean(), 1)} of the rows being {name}.",
        "rows": [_evaluate(threshold, found, truth) for threshold in _THRESHOLDS],
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
