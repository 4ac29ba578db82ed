"""The pool on 10,000 and 100,000 rows of ten columns, in a process of its own.

Processor times of one thread are compared with a fit of scikit-learn's
HistGradientBoostingClassifier (300 rounds) to the same rows in the same run, which a busy machine
slows down alike; threads that wait for each other would count as work.
"""

import json
import subprocess
import sys

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
times = [
    measure(lambda: boosting.fit(X[:n], y[:n])),
    measure(lambda: clf.fit(X[:n], y[:n])),
    measure(lambda: clf.predict_proba(X[n:])),
]
lines = pathlib.Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(json.dumps([*times, peak / 2**20]))
"""
# Rows, and how many fits of boosted trees a fit and 10,000 predictions may take. Found on a busy
# machine: 7.8 and 2.2; 22.5 and 0.7. Of 100,000 rows half of the time is the search for each in
# five metrics.
_SIZES = ((10_000, 10, 2.5), (100_000, 25, 2))


def run(report: Report) -> None:
    for n, most_fit, most_predict in _SIZES:
        report.section(f"The pool, n = {n:,}, p = 10")
        command = [sys.executable, "-c", _FIT, str(n)]
        found = subprocess.run(command, capture_output=True, check=True)
        boosting, fit, predict, peak = json.loads(found.stdout)
        against = f"boosted trees of 300 rounds, {boosting:.1f} s"
        report.line(f"fit ({fit:.1f} s)", fit / boosting, at_most=most_fit, against=against)
        report.line(
            f"10,000 predictions ({predict:.1f} s)", predict / boosting, at_most=most_predict
        )
        report.line("peak memory", peak, "GiB", at_most=4)
