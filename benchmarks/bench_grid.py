"""Times and memory of the posterior of (beta, k) by quadrature, on Ripley's data and as n grows.

Half the CPU time is printed next to the elapsed time, as the least time on two idle cores. The
targets concern growth with n, memory and errors; ``bench_classifier`` compares the time of a fit
with that of a grid search.
"""

import time
import tracemalloc
import warnings

import numpy as np
from sklearn.datasets import make_blobs

from bayesknn import BayesianKNeighborsClassifier, PhaseTransitionWarning
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.model import UniformPrior
from bayesknn.posterior import grid_posterior
from benchmarks.harness import Report

BETA_MAX, K_MAX = 4.0, 50
N_JOBS = 2


def mixture(n: int, n_dims: int) -> CoherentLikelihood:
    """Return the likelihood of points of two overlapping classes, each with two centres."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, n_dims)) * (1.0 if n_dims == 2 else 0.8)
    component = rng.integers(4, size=n)
    points = centres[component] + rng.normal(size=(n, n_dims))
    return CoherentLikelihood(NeighborGraph.from_points(points, k_max=K_MAX), component % 2)


def measure(likelihood: CoherentLikelihood) -> tuple[float, float, int]:
    """Return the elapsed time and CPU time in seconds and the peak memory in bytes of a posterior.

    Tracing memory slows down a run with few points, so that such a run is timed without it first.
    """
    prior = UniformPrior(likelihood.k_max, BETA_MAX)
    is_short = likelihood.graph.n_points < 100_000
    if is_short:
        wall, cpu = _time(likelihood, prior)
    tracemalloc.start()
    times = _time(likelihood, prior)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return *((wall, cpu) if is_short else times), peak


def _time(likelihood: CoherentLikelihood, prior: UniformPrior) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    grid_posterior(likelihood, prior, random_state=0, n_jobs=N_JOBS)
    return time.perf_counter() - wall, time.process_time() - cpu


def time_ripley(report: Report) -> None:
    report.section("The default grid on Ripley's data (n = 250, k <= 125), 2 threads, caches warm")
    data = load_ripley()
    graph = NeighborGraph.from_points(data.X_train, k_max=125)
    likelihood = CoherentLikelihood(graph, np.asarray(data.y_train))
    prior = UniformPrior(125, BETA_MAX)
    wall, cpu = [], []
    for seed in range(-1, 5):
        start = time.perf_counter(), time.process_time()
        posterior = grid_posterior(likelihood, prior, random_state=seed % 5, n_jobs=N_JOBS)
        if seed >= 0:
            wall.append(time.perf_counter() - start[0])
            cpu.append(time.process_time() - start[1])
    report.line("median of 5 seeds", float(np.median(wall)), "s")
    report.line("half of the CPU time", float(np.median(cpu)) / 2, "s")
    report.line("E beta, last seed", posterior.beta_mean, "", against="1.457 (independent value)")
    report.line("E k, last seed", posterior.k_mean, "", against="15.0 (independent value)")


def time_growth(report: Report) -> None:
    report.section(f"Growth with n: k_max = {K_MAX}, without the graph, 2 threads, with evidence")
    memory, work = {}, {}
    cases = ((250, 2), (1000, 2), (10_000, 2), (10_000, 10), (100_000, 2), (100_000, 10))
    for n, n_dims in cases:
        wall, cpu, peak = measure(mixture(n, n_dims))
        work[n, n_dims] = cpu
        report.line(f"n = {n:,}, {n_dims}-D", wall, "s")
        report.line(f"n = {n:,}, {n_dims}-D, half of the CPU time", cpu / 2, "s")
        memory[n, n_dims] = peak / (4 * n * K_MAX)
    for (n, n_dims), ratio in memory.items():
        report.line(
            f"peak memory at n = {n:,}, {n_dims}-D",
            ratio,
            at_most=6.0 if n >= 10_000 else None,
            against="the neighbour lists, n * k_max numbers of 4 bytes",
        )
    for n_dims in (2, 10):
        report.line(
            f"growth of CPU time from n = 1e4 to 1e5, {n_dims}-D",
            work[100_000, n_dims] / work[10_000, n_dims],
            at_most=30.0,
            against="10 if it is linear in n",
        )
        report.line(
            f"growth of memory from n = 1e4 to 1e5, {n_dims}-D",
            10 * memory[100_000, n_dims] / memory[10_000, n_dims],
            # From 20,000 points on, a copy of the lists is sorted for better use of the caches.
            at_most=15.0,
            against="10 if it is linear in n * k_max",
        )


def five_classes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and labels of five overlapping classes, for which label chains mix slowly."""
    if n == 5000:
        return make_blobs(5000, centers=5, cluster_std=3.0, random_state=2)
    rng = np.random.default_rng(5)
    centres, labels = 1.5 * rng.normal(size=(5, 2)), rng.integers(5, size=n)
    return centres[labels] + rng.normal(size=(n, 2)), labels


def time_classes(report: Report) -> None:
    report.section("Fits of five overlapping classes, at first-order transitions, 2 threads")
    for n in (250, 1000, 5000):
        points, labels = five_classes(n)
        fits = []
        for seed in range(2):
            wall, cpu = time.perf_counter(), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PhaseTransitionWarning)
                fits.append(
                    BayesianKNeighborsClassifier(random_state=seed, n_jobs=N_JOBS).fit(
                        points, labels
                    )
                )
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        report.line(f"n = {n:,}", wall, "s")
        report.line(f"n = {n:,}, half of the CPU time", cpu / 2, "s")
        first, second = (fitted.k_probabilities_ for fitted in fits)
        error = np.hypot(*(fitted.k_probabilities_error_ for fitted in fits))
        report.line(
            f"n = {n:,}, largest difference of P(k) between two seeds",
            float(np.max(np.abs(first - second) / (error + 1e-3))),
            at_most=4.0,
            against="its Monte Carlo error",
        )


def run(report: Report) -> None:
    time_ripley(report)
    time_classes(report)
    time_growth(report)
