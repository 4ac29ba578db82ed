"""The pool on 100,000 rows of ten columns: time and memory of a fit in a process of its own.

The clock means something on two idle cores only, so that processor time is also compared with that
of one exact neighbour graph of the same points, which a busy machine slows down alike.
"""

import json
import subprocess
import sys

from benchmarks.harness import Report

_FIT = """
import json, pathlib, time
import numpy as np
from bayesknn import PooledNeighborsClassifier
from bayesknn.graph import NeighborGraph

rng = np.random.default_rng(0)
X = rng.normal(size=(100_000, 10))
y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 0).astype(int)

def measure(function):
    clock, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - clock, time.process_time() - cpu

clf = PooledNeighborsClassifier(random_state=0, n_jobs=2)
clf.fit(X[:300], y[:300])
graph = measure(lambda: NeighborGraph.from_points(X, 65, n_jobs=2))
fit = measure(lambda: clf.fit(X, y))
lines = pathlib.Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(json.dumps([*fit, graph[1], peak / 2**20]))
"""


def run(report: Report) -> None:
    report.section("The pool, n = 1e5, p = 10, two threads")
    found = subprocess.run([sys.executable, "-c", _FIT], capture_output=True, check=True)
    clock, cpu, graph, peak = json.loads(found.stdout)
    report.line("fit, by the clock", clock, "s", at_most=180)
    report.line("fit, peak memory", peak, "GiB", at_most=4)
    report.line(
        f"fit, processor time ({cpu:.0f} s)",
        cpu / graph,
        at_most=30,
        against=f"one exact graph with k_max = 65, {graph:.1f} s",
    )
