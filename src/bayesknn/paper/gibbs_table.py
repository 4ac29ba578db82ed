"""The paper's own path sampling on Ripley's graph: Gibbs, trapezium, bilinear (Section 3.3).

E[S_k] / k is estimated at equally spaced beta in [0, 4] for k = 1, 10, 20, ..., 110, 125 by
systematic-scan Gibbs sampling from random labels, 10,000 sweeps after 500. At beta = 0 it is known,
n / G. log Z = n log G + the integral, by the trapezium rule; between grid points it is bilinear.
The text calls the grid 50 x 12, the caption of Figure constappro2 names these 13 values of k. The
chains do not converge at large beta, which is one of the things to see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.integrate import cumulative_trapezoid

from bayesknn.graph import NeighborGraph
from bayesknn.labels import gibbs_labels, spawn_keys
from bayesknn.model import BoltzmannModel
from bayesknn.paper.setting import BETA_MAX, Setting

PAPER_K = (1, *range(10, 111, 10), 125)


@dataclass(frozen=True)
class BilinearTable:
    """log Z on a grid, linear in between.

    Attributes
    ----------
    betas : ndarray of shape (n_betas,)
    log_normalizers : ndarray of shape (k_max, n_betas)
        At every k, those between the paper's already interpolated.
    """

    betas: np.ndarray
    log_normalizers: np.ndarray

    @property
    def k_max(self) -> int:
        """Largest k served."""
        return len(self.log_normalizers)

    @property
    def beta_max(self) -> float:
        """Largest beta served."""
        return float(self.betas[-1])

    def log_normalizer(self, beta: Any, k: int) -> Any:
        """Return log Z(beta, k)."""
        return np.interp(beta, self.betas, self.log_normalizers[k - 1])


def gibbs_expectations(setting: Setting) -> dict[str, np.ndarray]:
    """Estimate E[S_k] / k on the paper's grid of Ripley's graph.

    Returns
    -------
    dict
        ``betas``, and ``mean`` of shape (n_k, n_betas).
    """
    study, budget = setting.ripley, setting.budget

    def make() -> dict[str, Any]:
        betas = np.linspace(0.0, BETA_MAX, budget.n_path_betas)
        mean = gibbs_means(
            study.graph, study.n_classes, betas, PAPER_K, budget.path_sweeps,
            setting.seeds("gibbs-path"), setting.n_jobs,
        )  # fmt: skip
        return {"betas": betas, "mean": mean}

    return setting.keep("gibbs-path", make)


def gibbs_means(
    graph: NeighborGraph,
    n_classes: int,
    betas: np.ndarray,
    ks: Sequence[int],
    n_sweeps: tuple[int, int],
    seeds: Any,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Estimate E[S_k] / k by one Gibbs chain for each beta and k.

    Parameters
    ----------
    graph : NeighborGraph
    n_classes : int
    betas : ndarray of shape (n_betas,)
        The first is 0, where the expectation is known.
    ks : sequence of int
    n_sweeps : (int, int)
        Before counting, and counted.
    seeds : int or SeedSequence
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of shape (n_k, n_betas)
    """
    model = BoltzmannModel(graph, n_classes)
    n_warmup, n_counted = n_sweeps

    def estimate(k: int, key: np.uint64) -> np.ndarray:
        means = [graph.n_points / n_classes]
        for beta, own in zip(betas[1:], spawn_keys(int(key), len(betas) - 1), strict=True):
            _, info = gibbs_labels(model, beta, k, n_draws=n_counted, n_warmup=n_warmup, key=own)
            means.append(info.agreement.mean() / k)
        return np.array(means)

    calls = (delayed(estimate)(*task) for task in zip(ks, spawn_keys(seeds, len(ks)), strict=True))
    return np.array(Parallel(n_jobs=n_jobs, require="sharedmem")(calls))


def gibbs_table(setting: Setting) -> BilinearTable:
    """Return the paper's table of log Z on Ripley's graph."""
    found = gibbs_expectations(setting)
    study = setting.ripley
    at_zero = study.graph.n_points * np.log(study.n_classes)
    rows = at_zero + cumulative_trapezoid(found["mean"], found["betas"], initial=0.0)
    every_k = np.arange(1, study.k_max + 1)
    columns = [np.interp(every_k, PAPER_K, column) for column in rows.T]
    return BilinearTable(found["betas"], np.array(columns).T)
