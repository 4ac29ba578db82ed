"""Times and errors of the log Z table on Ripley's graph, with Monte Carlo error 0.05."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, path_table
from bayesknn.model import UniformPrior
from bayesknn.posterior import grid_posterior
from benchmarks.harness import Report

K_MAX, BETA_MAX, TOLERANCE = 125, 4.0, 0.05


def measure(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of a function, its elapsed time and its CPU time in seconds."""
    clock, work = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - clock, time.process_time() - work


def run(report: Report) -> None:
    data = load_ripley()
    graph = NeighborGraph.from_points(data.X_train, k_max=K_MAX)
    labels = np.asarray(data.y_train)
    # This call compiles the kernels before anything is timed.
    path_table(NeighborGraph.from_points(data.X_train[:40], k_max=12), 2, random_state=0)
    betas = np.linspace(0.0, BETA_MAX, 81)

    report.section("Table of log Z, k = 1..125 and beta in [0, 4], 2 threads")
    for what, given in (("where the posterior is not small", labels), ("everywhere", None)):
        table, clock, work = measure(
            lambda given=given: path_table(
                graph, 2, beta_max=BETA_MAX, labels=given, tolerance=TOLERANCE,
                random_state=0, n_jobs=2,
            )
        )  # fmt: skip
        report.line(f"error .05 {what}: elapsed time", clock, "s")
        report.line(f"error .05 {what}: CPU time", work, "s")
        report.line(f"error .05 {what}: sweeps", table.n_sweeps / 1e6, "million")
        report.line(f"error .05 {what}: closure, root mean square", _rms(table.closure), "errors")
        if given is None:
            worst = max(table.error(betas, k).max() for k in range(1, K_MAX + 1))
            against = f"the tolerance, {TOLERANCE}"
            report.line("largest error of log Z", worst / TOLERANCE, at_most=1.5, against=against)
            continue
        probable = np.flatnonzero(table.k_probabilities > 1e-3) + 1
        errors = [_error_at_mode(table, graph, labels, int(k)) for k in probable]
        report.line(
            "largest error of log Z, P(k) > .001", max(errors) / TOLERANCE,
            at_most=1.5, against=f"the tolerance, {TOLERANCE}",
        )  # fmt: skip
        report.line("largest error of P(k)", table.k_probabilities_error.max(), "")
        likelihood = CoherentLikelihood(graph, labels, table=table)
        posterior, clock, _ = measure(
            lambda likelihood=likelihood: grid_posterior(likelihood, UniformPrior(K_MAX, BETA_MAX))
        )
        report.line("posterior from the table, elapsed time", clock, "s")
        report.line("E beta", posterior.beta_mean, "", against="1.457 (independent value)")
        report.line("E k", posterior.k_mean, "", against="15.0 (independent value)")


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.nanmean(values**2)))


def _error_at_mode(table, graph, labels, k: int) -> float:
    """Return the standard error of log Z at the posterior mode of beta given k."""
    likelihood = CoherentLikelihood(graph, labels, table=table)
    betas = np.linspace(0.0, BETA_MAX, 401)
    mode = betas[np.argmax(likelihood.log_density(betas, k))]
    return float(table.error(mode, k))
