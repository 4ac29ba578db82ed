"""Times and memory of the ensemble on wide tables and many classes, and times of its boosted trees.

CPU times of one thread are compared with RandomForestClassifier(300) on the same rows. Each shape
of table is measured in a separate process, so that its peak memory can be measured. The boosted
trees are compared with scikit-learn's at the same settings, on a table of few rows and with six
fits, as the ensemble needs them: CPU time, and log-loss on new rows.
"""

import json
import subprocess
import sys

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from bayesknn.pooled.boosting import add_trees, grow_trees
from benchmarks.harness import Report, interleave

_FIT = """
import json, pathlib, sys, time
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits
from bayesknn import PooledNeighborsClassifier
from benchmarks.bench_prediction_shape import draw

clf = PooledNeighborsClassifier(random_state=0)
clf.fit(*draw(200, 5, 3)).predict_proba(draw(50, 5, 3)[0])
X, y = draw(*map(int, sys.argv[1:]))
results = []
with threadpool_limits(1):
    for each in (RandomForestClassifier(300, random_state=0), clf):
        start = time.process_time()
        each.fit(X, y)
        seconds = time.process_time() - start
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
        peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
        results += [seconds, peak / 2**20]
print(json.dumps(results))
"""
# Rows, columns, classes, and the largest allowed ratio of the time of a fit to that of the forest.
_SHAPES = (
    (1_000, 10, 2, 2.5),
    (1_000, 216, 10, 12),
    (60, 7_000, 4, 30),
    (2_000, 2, 50, 20),
    (5_000, 20, 200, 60),
)
# Number of fits of each kind of tree in the ensemble, and rows of the table on which trees are
# compared.
_N_FITS, _TREE_ROWS = 6, 300


def run(report: Report) -> None:
    for n, p, n_classes, most in _SHAPES:
        report.section(f"The pool, {n:,} rows, {p:,} columns, {n_classes} classes")
        command = [sys.executable, "-c", _FIT, str(n), str(p), str(n_classes)]
        done = subprocess.run(command, capture_output=True, check=True)
        forest, forest_peak, fit, peak = json.loads(done.stdout)
        against = f"a forest of 300 trees, {forest:.2f} s"
        report.line(f"fit ({fit:.1f} s)", fit / forest, at_most=most, against=against)
        report.line(
            f"peak memory ({peak:.2f} GiB)", peak / forest_peak, at_most=4.0,
            against=f"the process with the forest alone, {forest_peak:.2f} GiB",
        )  # fmt: skip
    report.section(f"Trees: six fits to {_TREE_ROWS} rows, 10 columns, 3 classes")
    with threadpool_limits(1):
        _compare_trees(report)


def _compare_trees(report: Report) -> None:
    X, y = draw(_TREE_ROWS + 4_000, 10, 3)
    known, labels, weights = X[:_TREE_ROWS], y[:_TREE_ROWS], np.ones(_TREE_ROWS)
    boosting = HistGradientBoostingClassifier(
        max_leaf_nodes=8, min_samples_leaf=10, l2_regularization=1.0, early_stopping=False
    )
    seconds = interleave(
        {
            "ours": lambda: [grow_trees(known, labels, weights, 3, 100) for _ in range(_N_FITS)],
            "theirs": lambda: [boosting.fit(known, labels) for _ in range(_N_FITS)],
        },
        repeats=3,
    )
    start, trees, _ = grow_trees(known, labels, weights, 3, 100)
    odds = np.exp(add_trees(X[_TREE_ROWS:], start, trees, np.array([100]))[0])
    losses = [
        -np.log(p[np.arange(4_000), y[_TREE_ROWS:]]).mean()
        for p in (odds / odds.sum(axis=1, keepdims=True), boosting.predict_proba(X[_TREE_ROWS:]))
    ]
    report.line(
        "HistGradientBoosting's time over that of our boosted trees",
        seconds["theirs"] / seconds["ours"],
        at_least=3,
        against=f"ours {seconds['ours']:.2f} s",
    )
    report.line("log-loss of ours", losses[0] / losses[1], at_most=1.02, against="theirs")


def draw(n: int, p: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw normal classes whose means differ in two columns, or in about 20 columns."""
    rng = np.random.default_rng([n, p, n_classes])
    y = np.concatenate([np.repeat(np.arange(n_classes), 2), rng.integers(n_classes, size=n)])[:n]
    if p == 2:
        return rng.uniform(-1, 1, (n_classes, 2))[y] * n_classes**0.5 + rng.normal(size=(n, 2)), y
    means = rng.normal(size=(n_classes, p)) * (rng.random(p) < 20 / p)
    common = rng.normal(size=(n, 30)) @ rng.normal(size=(30, p)) * 0.3
    return means[y] + rng.normal(size=(n, p)) + common, y
