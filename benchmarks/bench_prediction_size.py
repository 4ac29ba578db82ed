"""The pool on 10,000 and 100,000 rows of ten columns, in a process of its own.

Processor times of one thread are compared with a fit of scikit-learn's
HistGradientBoostingClassifier (300 rounds) to the same rows in the same run, which a busy machine
slows down alike; threads that wait for each other would count as work. What shorter lists cost in
log-loss is measured against lists of half the rows, where the true probabilities are known.
"""

import json
import subprocess
import sys

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from bayesknn import PooledNeighborsClassifier
from benchmarks.harness import Report

_FIT = """
import json, pathlib, sys, time
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits
from bayesknn import PooledNeighborsClassifier

n = int(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(n + 10_000, 10))
y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 0).astype(int)

def measure(function):
    cpu = time.process_time()
    with threadpool_limits(1):
        function()
    return time.process_time() - cpu

clf = PooledNeighborsClassifier(random_state=0)
clf.fit(X[:1500], y[:1500]).predict_proba(X[:50])
boosting = HistGradientBoostingClassifier(max_iter=300, early_stopping=False)
# The yardstick before, between and after: one fit alone varies by a fifth.
yards = [measure(lambda: boosting.fit(X[:n], y[:n]))]
times = []
for work in (lambda: clf.fit(X[:n], y[:n]), lambda: clf.predict_proba(X[n:])):
    times.append(measure(work))
    yards.append(measure(lambda: boosting.fit(X[:n], y[:n])))
times.insert(0, np.mean(yards))
lines = pathlib.Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(json.dumps([*times, peak / 2**20]))
"""
# Rows, and how many fits of boosted trees a fit and 10,000 predictions may take. Of 100,000 rows
# half of the time is the search for each in five metrics: 30 to 38 fits were seen.
_SIZES = ((10_000, 10, 2.5), (100_000, 45, 2))
# Rows on which lists are shortened, and what that may cost. Found: 0.0005 and less. Where the log
# odds are a smooth sum of products, which no other member can follow, it is 0.004 to 0.007, and
# lists that long take two and a half times as long: the price is told, and not paid.
_SHORTENED, _MOST_LOSS = 5_000, 1.003
_NOT_BOUNDED = "products, 6 columns"


def run(report: Report) -> None:
    report.section(f"Log-loss of the pool's lists, n = {_SHORTENED:,}")
    for number, (name, (n_columns, chance)) in enumerate(_LAWS.items()):
        rng = np.random.default_rng([number, 2026])
        X = rng.normal(size=(_SHORTENED + 4000, n_columns))
        p = chance(X)
        y = (rng.random(len(X)) < p).astype(int)
        losses = [
            _find_loss(X, y, p, PooledNeighborsClassifier(max_neighbors=k, random_state=0))
            for k in (None, _SHORTENED // 2)
        ]
        bound = {} if name == _NOT_BOUNDED else {"at_most": _MOST_LOSS}
        report.line(name, losses[0] / losses[1], **bound, against="lists of n / 2")
    for n, most_fit, most_predict in _SIZES:
        report.section(f"The pool, n = {n:,}, p = 10")
        command = [sys.executable, "-c", _FIT, str(n)]
        found = subprocess.run(command, capture_output=True, check=True)
        boosting, fit, predict, peak = json.loads(found.stdout)
        against = f"boosted trees of 300 rounds, {boosting:.1f} s"
        report.line(f"fit ({fit:.1f} s)", fit / boosting, at_most=most_fit, against=against)
        report.line(
            f"10,000 predictions ({predict:.1f} s)", predict / boosting,
            at_most=most_predict, against=against,
        )  # fmt: skip
        report.line("peak memory", peak, "GiB")


def _find_loss(X, y, p, clf) -> float:
    """Return the expected log-loss at the rows beyond those of training."""
    with threadpool_limits(1):
        chances = clf.fit(X[:_SHORTENED], y[:_SHORTENED]).predict_proba(X[_SHORTENED:])
    logs = np.log(np.maximum(chances, 1e-5))
    true = p[_SHORTENED:]
    return float(-((1 - true) * logs[:, 0] + true * logs[:, 1]).mean())


# Columns, and P(class 1) at normal points.
_LAWS = {
    "quadratic, 10 columns": (10, lambda X: expit(0.5 * ((X**2).sum(axis=1) - 10))),
    "quadratic, 5 columns": (5, lambda X: expit(0.3 * (X**2).sum(axis=1) - 2)),
    "linear, 10 columns": (10, lambda X: expit(2 * X.mean(axis=1) * np.sqrt(10))),
    "board, 2 columns": (2, lambda X: np.where(np.floor(2 * X).sum(axis=1) % 2 == 0, 0.9, 0.1)),
    _NOT_BOUNDED: (6, lambda X: expit(1.5 * (X[:, ::2] * X[:, 1::2]).sum(axis=1))),
}
