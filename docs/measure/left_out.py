"""Bias of the ensemble's leave-one-out scores and of cross-validation, relative to new rows.

``python docs/measure left_out`` writes left_out.json in about ten minutes on one core. The log odds
depend linearly on one of five columns, or on none. Class sizes are fixed, and the same proportions
in training and test rows. Two of nine tables are also cross-validated, with ten stratified folds
and a fit of the whole ensemble in each.
"""

import json
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from bayesknn import PooledNeighborsClassifier
from kept import HERE, describe_age, describe_measurement

FILE = HERE / "left_out.json"
# Slopes of the log odds between consecutive classes.
SIGNALS = {"none": 0.0, "weak": 0.3, "moderate": 0.6, "strong": 1.2}
# Numbers of rows, numbers of classes, and class sizes: equal, or the first class three times as
# large as each of the others.
CELLS = list(product((60, 100, 200), (2, 3), ("equal", "3 to 1")))
# Number of tables for each signal and cell, number of these that are cross-validated, and number of
# test rows.
N_TABLES, N_CROSSED, N_TEST = 9, 2, 600
SCORES = ("error", "AUC", "log-loss")


def draw(
    slope: float, n: int, n_classes: int, sizes: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw n rows of five columns, and labels with fixed class sizes."""
    proportions = np.ones(n_classes)
    proportions[0] = 3.0 if sizes == "3 to 1" else 1.0
    class_sizes = np.floor(n * proportions / proportions.sum()).astype(int)
    class_sizes[0] += n - class_sizes.sum()
    X = rng.normal(size=(20 * n, 5))
    coefficients = np.arange(n_classes) - (n_classes - 1) / 2
    p = softmax(slope * X[:, :1] * coefficients, axis=1)
    y = (rng.random(len(X))[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    rows = np.concatenate([np.flatnonzero(y == g)[:size] for g, size in enumerate(class_sizes)])
    rows = rng.permutation(rows)
    return X[rows], y[rows]


def score(p: np.ndarray, y: np.ndarray) -> list[float]:
    """Return error rate, AUC (the mean over classes against the others) and log-loss."""
    p = p / p.sum(axis=1, keepdims=True)
    area = roc_auc_score(y, p[:, 1] if p.shape[1] == 2 else p, multi_class="ovr")
    loss = -np.log(p[np.arange(len(y)), y]).mean()
    return [float(np.mean(p.argmax(axis=1) != y)), float(area), float(loss)]


def measure_table(signal: str, cell: tuple[int, int, str], seed: int) -> dict[str, Any]:
    """Return the scores of one table: leave-one-out, on new rows, and cross-validated or None."""
    n, n_classes, sizes = cell
    rng = np.random.default_rng([seed, CELLS.index(cell), *signal.encode()])
    X, y = draw(SIGNALS[signal], n, n_classes, sizes, rng)
    X_test, y_test = draw(SIGNALS[signal], N_TEST, n_classes, sizes, rng)
    clf, crossed = PooledNeighborsClassifier(random_state=seed), None
    if seed < N_CROSSED:
        folds = StratifiedKFold(10, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            crossed = score(cross_val_predict(clf, X, y, cv=folds, method="predict_proba"), y)
    clf.fit(X, y)
    scores = {"left out": score(clf.loo_proba_, y), "crossed": crossed}
    scores["new"] = score(clf.predict_proba(X_test), y_test)
    return {"signal": signal, "n_classes": n_classes, **scores}


def measure_tables(seeds: range) -> Iterator[dict[str, Any]]:
    """Yield the scores of all tables with these seeds."""
    for seed, signal, cell in product(seeds, SIGNALS, CELLS):
        yield measure_table(signal, cell, seed)


def summarise(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Return mean differences from scores on new rows, by signal, with their standard errors.

    The summary also has the largest leave-one-out error rate on two classes without signal.
    """
    summary: dict[str, Any] = {}
    for signal in SIGNALS:
        chosen = [table for table in tables if table["signal"] == signal]
        summary[signal] = {
            "new": np.mean([table["new"] for table in chosen], axis=0).round(4).tolist()
        }
        for way in ("left out", "crossed"):
            pairs = [(table[way], table["new"]) for table in chosen if table[way]]
            gaps = np.array([np.subtract(*pair) for pair in pairs])
            summary[signal][way] = {
                "n_tables": len(gaps),
                "bias": gaps.mean(axis=0).round(4).tolist(),
                "error": (gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps))).round(4).tolist(),
                "distance": np.abs(gaps).mean(axis=0).round(4).tolist(),
            }
    noise = [t for t in tables if t["signal"] == "none" and t["n_classes"] == 2]
    summary["largest error of noise, two classes"] = max(t["left out"][0] for t in noise)
    return summary


def run(out: Path) -> dict[str, str]:
    """Write the table of differences and return the numbers of the text."""
    kept = json.loads(FILE.read_text())["signals"]
    lines = ["| signal | | error | AUC | log-loss |", "|---|---|---|---|---|"]
    for signal in SIGNALS:
        for way, name in (("left out", "leave-one-out"), ("crossed", "ten folds")):
            each = kept[signal][way]
            gaps = zip(each["bias"], each["error"], strict=True)
            cells = " | ".join(f"{bias:+.3f} ({error:.3f})" for bias, error in gaps)
            lines.append(f"| {signal} | {name}, {each['n_tables']} tables | {cells} |")
    (out / "left_out.md").write_text("\n".join(lines) + "\n")
    largest = kept["largest error of noise, two classes"]
    return {"left_out_largest": f"{largest:.2f}", "left_out_measured": describe_age(FILE.name)}


def write() -> None:
    """Measure all tables and store the summary."""
    measured = describe_measurement()
    summary = summarise(list(measure_tables(range(N_TABLES))))
    about = {"measured": measured, "scores": list(SCORES), "signals": summary}
    FILE.write_text(json.dumps(about, indent=1) + "\n")
