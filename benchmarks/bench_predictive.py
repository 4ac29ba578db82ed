"""Times and memory of prediction: against scikit-learn, and as draws and points grow in number."""

import subprocess
import sys

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, HolmesAdamsLikelihood, PseudoLikelihood
from bayesknn.model import BoltzmannModel
from bayesknn.posterior import grid_posterior
from bayesknn.predictive import PosteriorNodes, Predictive
from benchmarks.harness import Report, interleave

K_MAX = 125

# Code of a separate process that prints the additional peak memory of a prediction. It predicts a
# few points first, which allocates everything that later predictions share, and then resets the
# peak that Linux records.
MEMORY = """
import gc
import pathlib
import numpy as np
from bayesknn.graph import NeighborGraph
from bayesknn.model import BoltzmannModel
from bayesknn.predictive import PosteriorNodes, Predictive

def read(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(name))

rng = np.random.default_rng(0)
X, labels = rng.normal(size=(10_000, 2)), rng.integers(3, size=10_000)
graph = NeighborGraph.from_points(X, k_max=125)
k = np.repeat(np.arange(20, 126), 50)
nodes = PosteriorNodes.from_draws(rng.gamma(50.0, 0.04, size=k.size), k)
predictive = Predictive(BoltzmannModel(graph, 3), labels, nodes)
new = rng.normal(size=({m}, 2))
predictive.probabilities(new[:100])
gc.collect()
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = read("VmRSS")
p = predictive.probabilities(new)
print(read("VmHWM") - before, p.nbytes / 2**20)
"""


def run(report: Report) -> None:
    measure_ripley(report)
    measure_intervals(report)
    measure_draws(report)
    measure_memory(report)


def measure_ripley(report: Report) -> None:
    report.section("1,000 points on Ripley, the query included")
    ripley = load_ripley()
    graph = NeighborGraph.from_points(ripley.X_train, k_max=K_MAX)
    model = BoltzmannModel(graph, 2)
    theirs = KNeighborsClassifier(K_MAX).fit(ripley.X_train, ripley.y_train)
    functions = {"theirs": lambda: theirs.predict_proba(ripley.X_test)}
    fitted = {}
    for name, likelihood, beta_max, direction in (
        ("coherent", CoherentLikelihood, 4.0, "both"),
        ("pseudo-likelihood", PseudoLikelihood, 4.0, "both"),
        ("Holmes-Adams", HolmesAdamsLikelihood, 12.0, "forward"),
    ):
        posterior = grid_posterior(
            likelihood(graph, ripley.y_train), beta_max=beta_max, evidence=False, random_state=0
        )
        nodes = PosteriorNodes.from_grid(posterior)
        fitted[name] = Predictive(model, ripley.y_train, nodes, direction=direction)
        functions[name] = lambda p=fitted[name]: p.probabilities(ripley.X_test)
    best = interleave(functions, repeats=20)
    against = f"scikit-learn's KNeighborsClassifier({K_MAX}).predict_proba"
    report.line("theirs", 1e3 * best["theirs"], "ms")
    for name in fitted:
        ratio = best[name] / best["theirs"]
        report.line(f"probabilities, {name} posterior", ratio, at_most=3.0, against=against)
    intervals = {name: lambda p=p: p.intervals(ripley.X_test) for name, p in fitted.items()}
    for name, seconds in interleave(intervals, repeats=3).items():
        report.line(f"intervals, {name} posterior", 1e3 * seconds, "ms")
    report.line(
        "leave-one-out probabilities",
        1e3 * interleave({"loo": fitted["pseudo-likelihood"].leave_one_out})["loo"],
        "ms",
    )


def measure_intervals(report: Report) -> None:
    report.section("10,000 points at n = 1,000: intervals of the true probability")
    for n_classes in (2, 4):
        rng = np.random.default_rng(n_classes)
        centres = 2.0 * rng.normal(size=(n_classes, 2))
        y, new = rng.integers(n_classes, size=1_000), rng.integers(n_classes, size=10_000)
        X, new = (centres[g] + rng.normal(size=(len(g), 2)) for g in (y, new))
        clf = BayesianKNeighborsClassifier("pseudo", random_state=0).fit(X, y)
        clf.predict_interval(new[:1])
        best = interleave(
            {
                "probabilities": lambda clf=clf, new=new: clf.predict_proba(new),
                "intervals": lambda clf=clf, new=new: clf.predict_interval(new),
            },
            repeats=5,
        )
        report.line(
            f"predict_interval, {n_classes} classes", best["intervals"] / best["probabilities"],
            at_most=3, against="predict_proba",
        )  # fmt: skip


def measure_draws(report: Report) -> None:
    report.section("1,000 points on Ripley against the number of draws")
    ripley = load_ripley()
    graph = NeighborGraph.from_points(ripley.X_train, k_max=K_MAX)
    model = BoltzmannModel(graph, 2)
    posterior = grid_posterior(PseudoLikelihood(graph, ripley.y_train), beta_max=4.0)
    functions, sizes = {}, (2_000, 20_000, 200_000)
    for n_draws in sizes:
        # The draws of k have equal ranges, so that every rule searches equally many neighbours.
        beta, k = posterior.sample(n_draws, random_state=1)
        nodes = PosteriorNodes.from_draws(beta, np.clip(k, 30, 80))
        predictive = Predictive(model, ripley.y_train, nodes)
        functions[n_draws] = lambda p=predictive: p.probabilities(ripley.X_test)
    best = interleave(functions, repeats=20)
    for n_draws in sizes[1:]:
        ratio = best[n_draws] / best[sizes[0]]
        report.line(f"{n_draws:,} draws", ratio, at_most=1.3, against=f"{sizes[0]:,} draws")


def measure_memory(report: Report) -> None:
    report.section("Peak memory of probabilities, n = 10,000, three classes, k = 20..125")
    extra = {}
    for m in (10_000, 100_000):
        ran = subprocess.run(
            [sys.executable, "-c", MEMORY.format(m=m)], check=True, capture_output=True, text=True
        )
        extra[m], answer = map(float, ran.stdout.split())
        report.line(f"m = {m:,}, of which the answer takes {answer:.1f}", extra[m], "MB")
    report.line("m = 100,000", extra[100_000] / extra[10_000], at_most=2, against="m = 10,000")
