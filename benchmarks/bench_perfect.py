"""Times of perfect draws: against the paper's coupling, over (beta, G) and as n grows."""

import time

import numpy as np

from bayesknn._utils.random import spawn_keys
from bayesknn.datasets import load_ripley
from bayesknn.exceptions import CoalescenceError
from bayesknn.graph import NeighborGraph
from bayesknn.labels import perfect_labels
from bayesknn.model import BoltzmannModel
from bayesknn.paper.perfect_sampling import perfect_labels_by_sites
from benchmarks.harness import Report, interleave

# k, beta and the times of a draw on another machine in milliseconds: coupling of labels with two
# classes, coupling of bonds with two and with four classes.
CELLS = [
    (13, 1.0, 0.20, 0.19, 0.15),
    (13, 1.45, 4.8, 0.55, 0.61),
    (13, 2.0, None, 0.36, 1.65),
    (13, 4.0, None, 0.19, 0.45),
    (53, 1.0, 0.50, 0.63, 0.33),
    (53, 1.3, 82.0, 0.99, 0.82),
    (53, 2.0, None, 0.56, 2.5),
    (53, 4.0, None, 0.35, 0.86),
]
KEY = spawn_keys(0, 1)[0]


def run(report: Report) -> None:
    ripley = NeighborGraph.from_points(load_ripley().X_train, k_max=125)
    _compare_couplings(report, ripley)
    _tabulate(report, ripley)
    _count_failures(report, ripley)
    _grow(report)


def _drawer(graph, beta, k, n_classes, n_draws, draw=perfect_labels):
    """Return a function without arguments that makes ``n_draws`` draws, equal at every call."""
    model = BoltzmannModel(graph, n_classes)
    return lambda: draw(model, beta, k, n_draws=n_draws, key=KEY)


def _compare_couplings(report, graph) -> None:
    report.section("Perfect draws on Ripley's graph: coupled bonds against coupled labels, G = 2")
    for k, beta, n_draws, target in ((13, 1.0, 400, None), (13, 1.45, 200, 8), (53, 1.3, 20, None)):
        seconds = interleave(
            {
                "bonds": _drawer(graph, beta, k, 2, n_draws),
                "sites": _drawer(graph, beta, k, 2, n_draws, perfect_labels_by_sites),
            },
            repeats=5,
        )
        report.line(
            f"speed of coupled bonds, k={k}, beta={beta}",
            seconds["sites"] / seconds["bonds"],
            at_least=target,
            against=f"single-site coupling from the past, {1e3 * seconds['sites'] / n_draws:.3g} ms"
            f" a draw (bonds {1e3 * seconds['bonds'] / n_draws:.3g})",
        )


def _tabulate(report, graph) -> None:
    report.section("Milliseconds a perfect draw on Ripley's graph, one thread")
    for k, beta, of_sites, of_two, of_four in CELLS:
        functions = {
            "bonds, G = 2": (_drawer(graph, beta, k, 2, 200), 200, of_two),
            "bonds, G = 4": (_drawer(graph, beta, k, 4, 200), 200, of_four),
        }
        if of_sites is not None:
            n_draws = 100 if of_sites < 10 else 10
            slow = _drawer(graph, beta, k, 2, n_draws, perfect_labels_by_sites)
            functions["sites, G = 2"] = (slow, n_draws, of_sites)
        for name, (draw, n_draws, measured) in functions.items():
            seconds = min(_core_seconds(draw) for _ in range(3))
            report.line(
                f"{name}, k={k}, beta={beta:g}",
                1e3 * seconds / n_draws,
                "ms",
                against=f"{measured:g} ms on another machine",
            )


def _count_failures(report, graph) -> None:
    report.section("Perfect draws on Ripley's graph, beta = 0, 0.1, ..., 4, five values of k")
    for n_classes in range(2, 7):
        n_failures, longest, start = 0, 0, time.perf_counter()
        for k in (1, 5, 13, 53, 125):
            for beta in np.linspace(0.0, 4.0, 41):
                try:
                    _, info = _drawer(graph, beta, k, n_classes, 5)()
                    longest = max(longest, int(info.n_sweeps.max()))
                except CoalescenceError:
                    n_failures += 1
        report.line(
            f"times that draws failed in 205 settings, G = {n_classes}, 5 draws each",
            n_failures,
            at_most=0,
            against=f"a past of 65,536 sweeps; the longest needed was {longest}, and all took "
            f"{time.perf_counter() - start:.1f} s",
        )


def _grow(report) -> None:
    report.section("One perfect draw as n grows: 2-D mixture, k = 20, two classes, one thread")
    per_point = {}
    for n in (10**3, 10**4, 10**5, 10**6):
        graph = _mixture_graph(n, k=20)
        for beta in (1.5,) if n == 10**6 else (1.4, 1.5, 1.6):
            draw = _drawer(graph, beta, 20, 2, 1)
            draw()
            seconds = min(_core_seconds(draw) for _ in range(1 if n == 10**6 else 3))
            report.line(
                f"n = {n:,}, beta = {beta}",
                seconds,
                "s",
                against=f"{1e9 * seconds / n:.0f} ns a point",
            )
            per_point[n, beta] = seconds / n
    report.line(
        "a point of a draw at n = 1e5, beta = 1.5",
        per_point[10**5, 1.5] / per_point[10**3, 1.5],
        at_most=6.0,
        against="n = 1e3",
    )


def _core_seconds(function) -> float:
    """Return the CPU time in seconds; draws use one thread, and the machine may be shared."""
    start = time.thread_time()
    function()
    return time.thread_time() - start


def _mixture_graph(n: int, k: int) -> NeighborGraph:
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.normal(size=(8, 2))
    X = centres[rng.integers(8, size=n)] + 0.7 * rng.normal(size=(n, 2))
    return NeighborGraph.from_points(X, k)
