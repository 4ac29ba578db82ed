"""Times of the model: S_k for every k in one pass, and exact log Z as k grows."""

import time

import numpy as np

from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.model import (
    BoltzmannModel,
    expected_agreement_exact,
    log_normalizer_exact,
    plan_elimination,
)
from benchmarks.harness import Report, interleave


def run(report: Report) -> None:
    graph = NeighborGraph.from_points(load_ripley().X_train, k_max=125)
    _measure_agreement(report, graph)
    _measure_exact(report, graph)


def _measure_agreement(report, graph):
    report.section("S_k(y) for k = 1..125 on Ripley's graph, n = 250")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 250).astype(np.uint8)
    batch = rng.integers(0, 2, (1000, 250)).astype(np.uint8)
    neighbors, model = np.array(graph.neighbors), BoltzmannModel(graph, 2)

    def in_numpy():
        return np.cumsum([np.sum(labels == labels[row]) for row in neighbors])

    def one_k_at_a_time():
        return [model.agreement(labels, k) for k in range(1, 126)]

    times = interleave(
        {
            "one pass": lambda: model.agreement(labels),
            "numpy": in_numpy,
            "each k": one_k_at_a_time,
            "batch": lambda: model.agreement(batch),
        },
        repeats=20,
    )
    report.line("one label vector, every k", 1e6 * times["one pass"], "us")
    report.line("one of 1000 label vectors, every k", 1e3 * times["batch"], "us")
    report.line(
        "speed of one pass", times["numpy"] / times["one pass"], against="numpy, rank by rank"
    )
    report.line(
        "speed of one pass",
        times["each k"] / times["one pass"],
        against="model.agreement(labels, k) for each k",
    )


def _measure_exact(report, graph):
    report.section("Exact log Z by variable elimination on Ripley's graph, n = 250, G = 2")
    log_normalizer_exact(graph, 1.0, 1, 2)
    expected_agreement_exact(graph, 1.0, 1, 2)
    for k in (1, 3, 5, 8, 10):
        plan = plan_elimination(graph, k, 2)
        repeats = 5 if k < 8 else 1
        times = {
            "plan": _best(lambda k=k: plan_elimination(graph, k, 2), repeats),
            "log Z": _best(lambda k=k: log_normalizer_exact(graph, 1.0, k, 2), repeats),
            "E[S]": _best(lambda k=k: expected_agreement_exact(graph, 1.0, k, 2), repeats),
        }
        report.line(
            f"log Z at k = {k}: induced width {plan.width}, {8e-6 * plan.peak_entries:.3g} MB; "
            f"including {times['plan']:.2g} s for the order; E[S] {times['E[S]']:.2g} s",
            times["log Z"],
            "s",
        )
    betas = np.linspace(0, 4, 50)
    seconds = _best(lambda: log_normalizer_exact(graph, betas, 5, 2), 3)
    report.line("a curve of 50 beta at k = 5", seconds, "s")


def _best(function, repeats):
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best
