"""A million points on one machine: fit, memory, and predictions in blocks.

Each fit has an interpreter of its own, so that its peak memory is its own. Half the processor time
stands beside the clock: what two idle cores would take at best, whatever else the machine does.
"""

import json
import subprocess
import sys

import numpy as np

from benchmarks.harness import Report

N, P, K = 1_000_000, 10, 50
N_NEW = (25_000, 100_000)
# How often the processor time of a tenth of the points a fit may take. The tree skips less and less
# in ten dimensions: 23 times was seen.
GROWTH = 40

_ONE = """
import json, resource, time
import numpy as np
from bayesknn import BayesianKNeighborsClassifier
from benchmarks.bench_large import K, N, N_NEW, P, mixture

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

def fit(n):
    clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=K, n_jobs=2, random_state=0)
    return clf.fit(*mixture(n, P))

# On enough points for the tree.
fit(2000).predict_proba(mixture(100, P)[0])
few = time.process_time()
fit(N // 10)
few = time.process_time() - few
data = mixture(N, P)
wall, cpu = time.perf_counter(), time.process_time()
clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=K, n_jobs=2, random_state=0)
clf.fit(*data)
found = dict(wall=time.perf_counter() - wall, cpu=time.process_time() - cpu, few=few, peak=peak())
found["predict"] = []
for m in N_NEW:
    new = mixture(m, P, seed=1)[0]
    start = time.process_time()
    clf.predict_proba(new)
    found["predict"].append((m, time.process_time() - start, peak()))
print(json.dumps(found))
"""


def mixture(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten clouds of three classes, a tenth of the labels at random."""
    centres = np.random.default_rng(0).normal(0.0, 2.0, size=(10, p))
    rng = np.random.default_rng(seed)
    cloud = rng.integers(10, size=n)
    labels = np.where(rng.random(n) < 0.1, rng.integers(3, size=n), cloud % 3)
    return centres[cloud] + rng.normal(size=(n, p)), labels


def run(report: Report) -> None:
    report.section(f"A million points (n = {N:,}, p = {P}, K = {K}), pseudo-likelihood, 2 threads")
    command = [sys.executable, "-c", _ONE]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    fit = json.loads(done.stdout)
    what = f"fit, exact neighbours; half the processor time is {fit['cpu'] / 2:.0f} s"
    report.line(what, fit["wall"], "s")
    report.line(
        "processor time of the fit", fit["cpu"] / fit["few"], at_most=GROWTH,
        against=f"n = {N // 10:,}, {fit['few']:.1f} s",
    )  # fmt: skip
    report.line(
        f"peak memory of the fit ({fit['peak']:.2f} GiB)",
        fit["peak"] * 2**30 / (N * (4 * K + 8 * P)),
        at_most=8.0,
        against="points and neighbour lists",
    )
    for m, cpu, peak in fit["predict"]:
        report.line(f"{m:,} predictions, processor time each", 1e6 * cpu / m, "us")
        report.line(
            f"peak memory with {m:,} predictions",
            peak / fit["peak"],
            at_most=1.2,
            against="that of the fit",
        )
