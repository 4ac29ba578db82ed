"""Times of the likelihoods of (beta, k): maxima for all k at large n, and single values."""

import numpy as np
from scipy.special import logsumexp

from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import ExactLikelihood, HolmesAdamsLikelihood, PseudoLikelihood
from benchmarks.harness import Report, interleave

K_MAX = 100
N_CALLS = 2000


def mixture(n: int, n_classes: int) -> tuple[NeighborGraph, np.ndarray]:
    """Return graph and labels of overlapping normal classes in the plane, with two centres each."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(2 * n_classes, 2))
    component = rng.integers(2 * n_classes, size=n)
    points = centres[component] + rng.normal(size=(n, 2))
    return NeighborGraph.from_points(points, k_max=K_MAX), component % n_classes


def run(report: Report) -> None:
    report.section("Maximum of the pseudo-likelihood for every k <= 100, without the graph")
    for n_classes in (2, 4):
        seconds = {}
        for n in (10_000, 100_000):
            graph, labels = mixture(n, n_classes)

            def maximize(graph=graph, labels=labels):
                return PseudoLikelihood(graph, labels).maximize_each_k()

            seconds[n] = interleave({"every k": maximize}, repeats=5)["every k"]
        report.line(f"n = 1e5, {n_classes} classes", seconds[100_000], "s")
        report.line(
            f"time at n = 1e5 over time at 1e4, {n_classes} classes",
            seconds[100_000] / seconds[10_000],
            at_most=20.0,
            against="10 for an algorithm linear in n",
        )
        tables = PseudoLikelihood(graph, labels)._deficits
        n_bytes = sum(part.rows.nbytes + part.multiplicity.nbytes for part in tables)
        report.line(
            f"memory kept at n = 1e5, {n_classes} classes",
            n_bytes / graph.neighbors.nbytes,
            at_most=2.0,
            against="the neighbour lists",
        )

    report.section("One value of log f(y | beta, k) on Ripley's data (n = 250), as chains need it")
    ripley = load_ripley()
    graph = NeighborGraph.from_points(ripley.X_train, k_max=125)
    narrow = NeighborGraph.from_points(ripley.X_train, k_max=5)
    labels = np.asarray(ripley.y_train)
    fields = graph.counts(labels, 2, 53).astype(float)
    observed = np.take_along_axis(fields, labels[:, None], axis=1).sum()

    def by_numpy(beta, k):
        return beta / k * observed - logsumexp(beta / k * fields, axis=1).sum()

    calls = {
        "pseudo-likelihood": (PseudoLikelihood(graph, labels).log_density, 53),
        "pseudo-likelihood, 4 classes": (
            PseudoLikelihood(graph, np.arange(250) % 4).log_density,
            53,
        ),
        "Holmes-Adams": (HolmesAdamsLikelihood(graph, labels).log_density, 53),
        "exact, k = 5": (ExactLikelihood(narrow, labels).log_density, 5),
        "numpy": (by_numpy, 53),
    }

    def repeat(function, k):
        for beta in np.linspace(0.5, 4.0, N_CALLS).tolist():
            function(beta, k)

    best = interleave(
        {name: lambda call=call: repeat(*call) for name, call in calls.items()}, repeats=5
    )
    reference = best.pop("numpy")
    for name, seconds_each in best.items():
        report.line(
            f"{name} ({1e6 * seconds_each / N_CALLS:.1f} us)",
            seconds_each / reference,
            at_most=0.5,
            against="the pseudo-likelihood by scipy's logsumexp, from given class counts",
        )
