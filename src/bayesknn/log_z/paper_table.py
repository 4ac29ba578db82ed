"""The paper's own table of log Z(beta, k): Gibbs sampling on a coarse grid (Section 3.3).

E[S_k] / k is estimated by a systematic-scan Gibbs sampler, 10,000 sweeps after 500, at 50 equally
spaced beta and k = 1, 10, 20, ..., 110, 125, integrated over beta by the trapezium rule and
interpolated linearly in both directions. (The text calls the grid 50 x 12; the caption of Figure
constappro2 names these 13 values of k.) The chains do not converge at large beta: log Z(4, k) on
Ripley's graph comes out too small by 7 to 21 (see ``bayesknn paper``), which the error
below does not know of. It is here to reproduce the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.labels import gibbs_chains, spawn_keys
from bayesknn.log_z.resampling import N_REPLICATES, resample
from bayesknn.model import BoltzmannModel, expected_agreement_at_zero

_N_BATCHES = 32


class PaperGrid(NamedTuple):
    """log Z on the paper's grid, for every k by interpolation; see :class:`PathTable`."""

    betas: np.ndarray
    log_normalizers: np.ndarray
    means: np.ndarray
    n_sweeps: int


def run_paper_grid(
    graph: NeighborGraph,
    n_classes: int,
    class_weight: np.ndarray | None,
    k_max: int,
    beta_max: float,
    seeds: np.random.SeedSequence,
    *,
    grid_shape: tuple[int, int | None],
    n_sweeps: int,
    n_warmup: int,
    each: Callable,
) -> PaperGrid:
    """Estimate E[S_k] / k on the grid and integrate it.

    Parameters
    ----------
    graph, n_classes, class_weight, k_max, beta_max
        As in :func:`~bayesknn.likelihood.path_table`, checked.
    seeds : numpy.random.SeedSequence
    grid_shape : (int, int or None)
        How many beta and how many k; None for those of the paper.
    n_sweeps, n_warmup : int
    each : callable
        ``each(function, arguments)`` calls a function for each argument, in threads.

    Returns
    -------
    PaperGrid
    """
    n_betas, n_k = grid_shape
    betas = np.linspace(0.0, beta_max, n_betas)
    ks = choose_k(k_max, n_k)
    keys = spawn_keys(seeds, len(ks) + 1)
    model = BoltzmannModel(graph, n_classes, class_weight)

    def estimate(at: int) -> np.ndarray:
        k = int(ks[at])
        _, agreement = gibbs_chains(
            model, betas[1:], k, n_sweeps=n_sweeps, n_warmup=n_warmup, key=keys[at]
        )
        at_zero = expected_agreement_at_zero(graph.n_points, k, n_classes, class_weight)
        length = max(1, n_sweeps // _N_BATCHES)
        used = agreement[n_sweeps % length :]
        batches = used.reshape(1, -1, length, n_betas - 1).mean(axis=2)
        # Chains are independent, so each is resampled on its own.
        chains = enumerate(np.moveaxis(batches, -1, 0))
        rows = np.stack([resample(each, (int(keys[-1]), at, j)) for j, each in chains], axis=1)
        return np.column_stack([np.full(N_REPLICATES, at_zero), rows]) / k

    of_grid = np.stack(each(estimate, range(len(ks))), axis=1)
    means = interpolate(ks, of_grid, k_max)
    rises = np.diff(betas) * (means[..., :-1] + means[..., 1:]) / 2
    start = np.full((*means.shape[:-1], 1), graph.n_points * np.log(n_classes))
    values = start + np.concatenate([np.zeros_like(start), np.cumsum(rises, axis=-1)], axis=-1)
    total = len(ks) * (n_betas - 1) * (n_warmup + n_sweeps)
    return PaperGrid(betas, values, means, total)


def choose_k(k_max: int, n_k: int | None = None) -> np.ndarray:
    """Return ``n_k`` evenly spaced values, or those of the paper.

    Examples
    --------
    >>> from bayesknn.log_z.paper_table import choose_k
    >>> choose_k(45).tolist()
    [1, 10, 20, 30, 45]
    >>> choose_k(45, 3).tolist()
    [1, 23, 45]
    """
    if n_k is not None:
        return np.unique(np.rint(np.linspace(1, k_max, n_k)).astype(int))
    # 125 follows 110 in the paper: a multiple of ten too near the end is left out.
    return np.unique([1, *range(10, k_max - 9, 10), k_max])


def interpolate(ks: np.ndarray, rows: np.ndarray, k_max: int) -> np.ndarray:
    """Interpolate linearly in k, from ``ks`` along the second axis to every k up to ``k_max``.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.paper_table import interpolate
    >>> interpolate(np.array([1, 3]), np.array([[[2.0], [6.0]]]), 3).ravel()
    array([2., 4., 6.])
    """
    if len(ks) == 1:
        return np.repeat(rows, k_max, axis=1)
    every = np.arange(1, k_max + 1)
    at = np.clip(np.searchsorted(ks, every, side="right") - 1, 0, len(ks) - 2)
    share = ((every - ks[at]) / (ks[at + 1] - ks[at]))[:, None]
    return (1 - share) * rows[:, at] + share * rows[:, at + 1]
