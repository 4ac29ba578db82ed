"""Times of the first call: loading kernels from the cache on disk, and compiling them.

numba's events record which functions are compiled. Because compilers and processors differ, the
target is a ratio to the time in which numba compiles NumPy's sort in the same process.
"""

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.harness import Report

_FIRST_CALL = """
import time
start = time.perf_counter()
import numba
imported = time.perf_counter() - start
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.labels import sample_labels
graph = NeighborGraph.from_points(load_ripley().X_train, k_max=20)
times = []
for _ in range(3):
    start = time.perf_counter()
    sample_labels(graph, 1.4, 14, {n_classes}, "{method}", random_state=0)
    times.append(time.perf_counter() - start)
print((times[0] - min(times)) / imported)
"""
_COMPILE = """
import json, sys, time
from collections import defaultdict
import numba
import numpy as np
from numba.core import event
from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.datasets import load_ripley

class Clock(event.Listener):
    def __init__(self):
        self.under_way, self.seconds = [], defaultdict(float)

    def on_start(self, event):
        self.under_way.append([time.process_time(), 0.0])

    def on_end(self, event):
        start, within = self.under_way.pop()
        seconds = time.process_time() - start
        if self.under_way:
            self.under_way[-1][1] += seconds
        function = event.data["dispatcher"].py_func
        self.seconds[f"{{function.__module__}}.{{function.__qualname__}}"] += seconds - within

def listen(work):
    with event.install_listener("numba:compile", Clock()) as clock:
        work()
    return dict(clock.seconds)

ripley = load_ripley()
clf = {classifier}
fit = listen(lambda: clf.fit(ripley.X_train, ripley.y_train))
predict = listen(lambda: clf.predict_interval(ripley.X_test))
sort = listen(lambda: numba.njit(lambda values: np.sort(values))(np.ones(3)))
print(json.dumps([fit, predict, sort]))
"""
# Classifiers, with the largest allowed ratio of compilation time of a fit to that of the sort.
_CLASSIFIERS = {
    "BayesianKNeighborsClassifier(random_state=0)": 8.0,
    "PooledNeighborsClassifier(random_state=0)": 8.0,
}


def run(report: Report) -> None:
    measure_first_call(report)
    measure_compilation(report)


def measure_first_call(report: Report) -> None:
    report.section("First call in a new process, compiled kernels on the disk: what it adds")
    for method in ("gibbs", "swendsen-wang", "perfect"):
        for n_classes in (2, 4):
            code = _FIRST_CALL.format(method=method, n_classes=n_classes)
            # The first run fills the cache.
            ratios = [float(_run(code)) for _ in range(4)][1:]
            what = f"{method}, G = {n_classes}"
            report.line(what, min(ratios), at_most=0.5, against="import numba")


def measure_compilation(report: Report) -> None:
    for classifier, at_most in _CLASSIFIERS.items():
        report.section(f"CPU seconds of compilation after installing: {classifier}")
        with tempfile.TemporaryDirectory() as folder:
            code = _COMPILE.format(classifier=classifier)
            fit, predict, sort = json.loads(_run(code, NUMBA_CACHE_DIR=folder))
        for name, seconds in sorted(fit.items(), key=lambda item: -item[1])[:8]:
            report.line(f"of it {name}", seconds, "s")
        report.line(f"the fit, {len(fit)} functions", sum(fit.values()), "s")
        report.line(f"the first intervals, {len(predict)} functions", sum(predict.values()), "s")
        yardstick = sum(sort.values())
        against = f"a sort compiled by numba, {yardstick:.2f} s"
        ratio = sum(fit.values()) / yardstick
        report.line("the fit", ratio, at_most=at_most, against=against)


def _run(code: str, **environment: str) -> str:
    environment = {**os.environ, **environment}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=environment
    ).stdout
