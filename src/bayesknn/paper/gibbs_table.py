"""The paper's own path sampling on Ripley's graph: Gibbs, trapezium, bilinear (Section 3.3).

E[S_k] / k is estimated at equally spaced beta in [0, 4] for k = 1, 10, 20, ..., 110, 125 by
systematic-scan Gibbs sampling from random labels, 10,000 sweeps after 500. At beta = 0 it is known,
n / G. log Z = n log G + the integral, by the trapezium rule; between grid points it is bilinear.
The text calls the grid 50 x 12, the caption of Figure constappro2 names these 13 values of k. The
chains do not converge at large beta, which is one of the things to see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.labels import swendsen_wang_labels
from bayesknn.likelihood import path_table
from bayesknn.model import BoltzmannModel
from bayesknn.paper.setting import BETA_MAX, Setting

PAPER_K = (1, *range(10, 111, 10), 125)


@dataclass(frozen=True)
class BilinearTable:
    """log Z on a grid, linear in between.

    Attributes
    ----------
    betas : ndarray of shape (n_betas,)
    heights : ndarray of shape (k_max, n_betas)
        log Z at every k, those between the paper's already interpolated.
    """

    betas: np.ndarray
    heights: np.ndarray

    @property
    def k_max(self) -> int:
        """Largest k served."""
        return len(self.heights)

    @property
    def beta_max(self) -> float:
        """Largest beta served."""
        return float(self.betas[-1])

    def log_normalizer(self, beta: Any, k: int) -> Any:
        """Return log Z(beta, k)."""
        return np.interp(beta, self.betas, self.heights[k - 1])


def gibbs_expectations(setting: Setting) -> dict[str, np.ndarray]:
    """Estimate E[S_k] / k on the paper's grid.

    Returns
    -------
    dict
        ``betas``, ``ks``, and ``mean`` of shape (n_k, n_betas).
    """
    study, budget = setting.ripley, setting.budget
    n_warmup, n_sweeps = budget.path_sweeps

    def make() -> dict[str, Any]:
        table = path_table(
            study.graph, study.n_classes, beta_max=BETA_MAX, grid="paper",
            grid_shape=(budget.n_path_betas, None), n_sweeps=n_sweeps, n_warmup=n_warmup,
            random_state=setting.seeds("gibbs-path"), n_jobs=setting.n_jobs,
        )  # fmt: skip
        ks = np.array(PAPER_K)
        return {"betas": table.betas, "ks": ks, "mean": table.means[0, ks - 1]}

    return setting.keep("gibbs-path", make)


def gibbs_table(setting: Setting) -> BilinearTable:
    """Return the paper's table of log Z on Ripley's graph."""
    found = gibbs_expectations(setting)
    study = setting.ripley
    at_zero = study.graph.n_points * np.log(study.n_classes)
    rows = at_zero + integrate(found["betas"], found["mean"])
    every_k = np.arange(1, study.k_max + 1)
    heights = [np.interp(every_k, found["ks"], column) for column in rows.T]
    return BilinearTable(found["betas"], np.array(heights).T)


def integrate(betas: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Integrate from the first beta on by the trapezium rule, along the last axis.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.paper.gibbs_table import integrate
    >>> integrate(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])).tolist()
    [0.0, 0.5, 2.0]
    """
    steps = np.diff(betas) * (slopes[..., 1:] + slopes[..., :-1]) / 2
    first = np.zeros((*slopes.shape[:-1], 1))
    return np.concatenate([first, np.cumsum(steps, axis=-1)], axis=-1)


def true_expectation(
    graph: NeighborGraph, beta: float, k: int, n_classes: int, key: np.uint64, n_sweeps: int
) -> tuple[float, float]:
    """Estimate E[S_k] / k by Swendsen-Wang from the clusters; also return the error.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels import spawn_keys
    >>> from bayesknn.paper.gibbs_table import true_expectation
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> mean, error = true_expectation(ring, 0.0, 1, 2, spawn_keys(0, 1)[0], 20)
    >>> mean
    2.5
    """
    model = BoltzmannModel(graph, n_classes)
    _, info = swendsen_wang_labels(model, beta, k, n_draws=n_sweeps, key=key)
    values = info.cluster_agreement / k
    # Autocorrelation is at most a few sweeps: means of 20 batches are nearly independent.
    batches = np.array([batch.mean() for batch in np.array_split(values, 20)])
    return float(values.mean()), float(batches.std(ddof=1) / np.sqrt(len(batches)))
