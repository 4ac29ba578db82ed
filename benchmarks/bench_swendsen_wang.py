"""Times of Swendsen-Wang sweeps: as k grows, against a textbook loop in C, and as n grows."""

import ctypes
import itertools
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bayesknn._utils.random import spawn_keys
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.labels.clamped import clamped_labels, free_edges
from bayesknn.labels.sampling import sample_labels
from bayesknn.labels.swendsen_wang import swendsen_wang_labels
from bayesknn.model import BoltzmannModel
from benchmarks.harness import Report, interleave

FLAGS = ["-O3", "-march=native"]
SETTINGS = [
    (1, 1.0, 2), (5, 1.0, 2), (5, 1.5, 2), (5, 4.0, 2), (13, 1.45, 2), (13, 1.45, 4), (53, 1.3, 2),
    (125, 1.0, 2), (125, 1.5, 2), (125, 1.5, 6), (125, 4.0, 2),
]  # fmt: skip


def run(report: Report) -> None:
    graph = NeighborGraph.from_points(load_ripley().X_train, 125)
    compare_k(report, graph)
    compare_with_textbook(report, graph)
    list_settings(report, graph)
    compare_draws(report)
    compare_fixed(report)
    grow(report)


def sweeps(
    graph: NeighborGraph,
    k: int,
    beta: float,
    n_classes: int,
    n_sweeps: int,
    class_weight: np.ndarray | None = None,
) -> Callable[[], None]:
    """Return a function that runs ``n_sweeps`` more sweeps of one chain."""
    model = BoltzmannModel(graph, n_classes, class_weight)
    # Each call uses new random numbers. If the numbers were repeated, the branch predictor of the
    # processor would learn them, and the measured time would be too short.
    keys = itertools.cycle(spawn_keys(1, 10_000))
    labels = swendsen_wang_labels(model, beta, k, key=next(keys))[0][0]

    def more() -> None:
        schedule = {"n_warmup": n_sweeps - 1, "recorded_k": 1, "initial": labels}
        labels[:] = swendsen_wang_labels(model, beta, k, key=next(keys), **schedule)[0][0]

    return more


def compare_k(report: Report, graph: NeighborGraph) -> None:
    report.section("Swendsen-Wang sweep on Ripley's graph (n = 250) at k = 125 against k = 5")
    for beta in (1.0, 1.5, 2.0, 4.0):
        times = interleave({f"k = {k}": sweeps(graph, k, beta, 2, 200) for k in (5, 125)}, 200)
        report.line(
            f"time of a sweep at k = 125, beta = {beta}, G = 2",
            times["k = 125"] / times["k = 5"],
            at_most=2.5,
            against=f"k = 5 at the same beta, {times['k = 5'] / 200 * 1e6:.2f} µs",
        )


def compare_with_textbook(report: Report, graph: NeighborGraph) -> None:
    report.section("Swendsen-Wang sweep against the textbook loop over all edges in C")
    with tempfile.TemporaryDirectory() as folder:
        library = compile_textbook(Path(folder))
        for k, beta in ((5, 1.5), (13, 1.45), (125, 1.5), (125, 4.0)):
            times = interleave(
                {
                    "textbook": textbook_sweeps(library, graph, k, beta, 2, 100),
                    "bayesknn": sweeps(graph, k, beta, 2, 100),
                },
                repeats=20,
            )
            report.line(
                f"speed of a sweep at k = {k}, beta = {beta}, G = 2",
                times["textbook"] / times["bayesknn"],
                at_least=12.0 if (k, beta) == (125, 1.5) else None,
                against=f"gcc {' '.join(FLAGS)}, {times['textbook'] / 100 * 1e6:.1f} µs",
            )


def compile_textbook(folder: Path) -> ctypes.CDLL:
    source, library = Path(__file__).with_suffix(".c"), folder / "textbook.so"
    command = ["gcc", *FLAGS, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def textbook_sweeps(library, graph, k, beta, n_classes, n_sweeps) -> Callable[[], None]:
    n = graph.n_points
    labels = np.random.default_rng(0).integers(0, n_classes, n).astype(np.uint8)
    roots = np.empty(n, np.uint32)
    arrays = [ctypes.c_void_p(a.ctypes.data) for a in (graph.neighbors, labels, roots)]
    seed = itertools.count(1)

    def more() -> None:
        library.swendsen_wang_textbook(
            n, n_classes, ctypes.c_double(beta), k, *arrays, n_sweeps, ctypes.c_uint64(next(seed))
        )
        assert (
            labels.max() < n_classes
        )  # This use keeps the arrays from being freed before the call.

    return more


def list_settings(report: Report, graph: NeighborGraph) -> None:
    report.section("Swendsen-Wang sweep on Ripley's graph, n = 250")
    times = interleave({s: sweeps(graph, *s, 500) for s in SETTINGS}, 20)
    for (k, beta, n_classes), seconds in times.items():
        report.line(f"k = {k}, beta = {beta}, G = {n_classes}", seconds / 500 * 1e6, "µs")
    weights = np.array([0.8, 1.2])
    times = interleave({k: sweeps(graph, k, 1.5, 2, 500, weights) for k in (5, 125)}, 20)
    for k, seconds in times.items():
        what = f"k = {k}, beta = 1.5, G = 2, class weights .8 and 1.2"
        report.line(what, seconds / 500 * 1e6, "µs")


def compare_draws(report: Report) -> None:
    report.section("sample_labels without information: time of a draw by k")
    graph = mixture_graph(2_000, 500)

    def draws(k, return_info=False):
        return lambda: sample_labels(
            graph, 1.0, k, 2, n_draws=400, thin=1, n_warmup=0, random_state=0,
            return_info=return_info,
        )  # fmt: skip

    times = interleave(
        {"k = 500": draws(500), "k = 5": draws(5), "with info": draws(500, True)}, repeats=5
    )
    report.line(
        "time of a draw at n = 2000, k = 500, one sweep each",
        times["k = 500"] / times["k = 5"],
        at_most=2.0,
        against=f"k = 5, {times['k = 5'] / 400 * 1e6:.0f} µs",
    )
    report.line(
        "time of a draw with information, k = 500",
        times["with info"] / times["k = 500"],
        against="without",
    )


def compare_fixed(report: Report) -> None:
    report.section("Swendsen-Wang with fixed labels: 500 free points, beta = 1.5, G = 2")
    graphs = {n: mixture_graph(n, 100) for n in (2_500, 20_500)}

    def sweeps_of(n, k):
        labels = np.arange(n) % 2
        labels[-500:] = -1
        edges = free_edges(BoltzmannModel(graphs[n], 2, None, labels))
        keys = itertools.count()
        return lambda: clamped_labels(
            edges, [1.5], [k], [200], key=np.uint64(next(keys)), initial=np.zeros(500, int)
        )

    times = interleave({"few": sweeps_of(2_500, 100), "many": sweeps_of(20_500, 100),
                        "k = 5": sweeps_of(2_500, 5)}, repeats=10)  # fmt: skip
    base = f"{times['few'] / 200 * 1e6:.0f} µs a sweep"
    report.line(
        "time of a sweep with 20,000 fixed labels, k = 100", times["many"] / times["few"],
        at_most=1.5, against=f"2,000 fixed labels, {base}",
    )  # fmt: skip
    report.line(
        "time of a sweep at k = 100", times["few"] / times["k = 5"],
        at_most=1.5, against=f"k = 5, {times['k = 5'] / 200 * 1e6:.0f} µs a sweep",
    )  # fmt: skip


def grow(report: Report) -> None:
    report.section("Swendsen-Wang sweep as n grows: 2-D mixture, k = 20, beta = 1.5, G = 2")
    per_site = {}
    for n in (10**3, 10**4, 10**5, 10**6):
        graph = mixture_graph(n, 20)
        # Many short runs are timed, because other processes would interrupt long ones.
        n_sweeps = max(10, 10**5 // n)
        more = sweeps(graph, 20, 1.5, 2, n_sweeps)
        seconds = interleave({"sweep": more}, 100 if n < 10**6 else 20)["sweep"] / n_sweeps
        report.line(
            f"time of a sweep for each site at n = {n:.0e} ({seconds * 1e3:.3g} ms a sweep)",
            seconds / n * 1e9,
            "ns",
        )
        per_site[n] = seconds / n
    report.line(
        "time of a sweep for each site at n = 1e5", per_site[10**5] / per_site[10**3],
        at_most=4.0, against="n = 1e3, which fits the cache",
    )  # fmt: skip


def mixture_graph(n: int, k_max: int) -> NeighborGraph:
    """Return the graph of points in two normal clouds in the plane."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, 2)) + 2.0 * rng.integers(0, 2, n)[:, None]
    return NeighborGraph.from_points(points, k_max)
