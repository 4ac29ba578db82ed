"""Make a table of log Z(beta, k), or log Z at one k, by path sampling (Section 3.3, sec:path)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bayesknn._progress import progress
from bayesknn._validation import check_count
from bayesknn.exceptions import MixingWarning, PhaseTransitionWarning
from bayesknn.graph import NeighborGraph
from bayesknn.labels.random import as_seed_sequence
from bayesknn.likelihood.path.adaptive import PathSampler
from bayesknn.likelihood.path.curve import Curve
from bayesknn.likelihood.path.focus import find_focus
from bayesknn.likelihood.path.paper import run_paper_grid
from bayesknn.likelihood.path.table import PathTable, take_fingerprint
from bayesknn.model import agreement
from bayesknn.model.checks import (
    check_beta,
    check_betas,
    check_class_weight,
    check_label_vector,
    check_n_classes,
)


def path_table(
    graph: NeighborGraph,
    n_classes: int,
    *,
    k_max: int | None = None,
    beta_max: float = 4.0,
    grid: str = "adaptive",
    labels: Any = None,
    class_weight: Any = None,
    tolerance: float = 0.05,
    exact: bool = True,
    grid_shape: tuple[int, int | None] = (50, None),
    n_sweeps: int = 10_000,
    n_warmup: int = 500,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> PathTable:
    """Compute log Z(beta, k) for k = 1..k_max and beta in [0, beta_max].

    Parameters
    ----------
    graph : NeighborGraph
    n_classes : int
    k_max : int, optional
        By default that of the graph.
    beta_max : float
    grid : {"adaptive", "paper"}
        ``"adaptive"``: Swendsen-Wang chains, run until ``tolerance`` is met. ``"paper"``: Gibbs
        sampling on a grid of fixed size, whatever the tolerance. Its chains do not converge at
        large beta, where log Z comes out too small by several units that its error does not know
        of; it is there to reproduce the paper.
    labels : array-like of shape (n,), optional
        Where the posterior of (beta, k) given these labels is, ``tolerance`` is met; elsewhere
        log Z is known less well, as :meth:`PathTable.error` tells. Without labels the tolerance
        is met everywhere.
    class_weight : array-like of shape (n_classes,), optional
        The weights a_g: a directed edge within class g counts a_g in place of 1.
    tolerance : float
        Standard error of log Z that is asked for.
    exact : bool
        Whether to compute log Z exactly at those small k where that is cheap.
    grid_shape : (int, int or None)
        With ``grid="paper"``: how many beta and how many k, both evenly spaced; None for the k of
        the paper, 1, 10, 20, ... and ``k_max``.
    n_sweeps, n_warmup : int
        With ``grid="paper"``: sweeps of each chain that count, and those before.
    random_state : None, int, SeedSequence, Generator or RandomState
    n_jobs : int, optional
        Threads, as in joblib. The table does not depend on them.
    verbose : int
        Above 0, a count of the runs made is shown once two seconds have passed.

    Returns
    -------
    PathTable

    Warns
    -----
    PhaseTransitionWarning
        If chains started from one class and from random labels stay apart.
    MixingWarning
        If the tolerance was not reached.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import path_table
    >>> graph = NeighborGraph.from_points(np.random.default_rng(0).normal(size=(40, 2)), k_max=6)
    >>> table = path_table(graph, n_classes=3, random_state=0)
    >>> table.log_normalizer([0.0, 1.0], k=4).round(1).tolist()
    [43.9, 59.9]
    >>> table.error(1.0, k=6) < 0.06
    True
    """
    n_classes = check_n_classes(n_classes)
    k_max = graph.k_max if k_max is None else graph.check_k(k_max)
    beta_max = check_beta(beta_max, "beta_max")
    if beta_max == 0.0:
        raise ValueError("beta_max must be positive, got 0.0")
    if grid not in ("adaptive", "paper"):
        raise ValueError(f"grid must be 'adaptive' or 'paper', got {grid!r}")
    weights = check_class_weight(class_weight, n_classes)
    observed = None
    if labels is not None:
        labels = check_label_vector(labels, graph.n_points, n_classes)
        observed = np.asarray(agreement(graph, labels, class_weight=weights), dtype=np.float64)
    seeds = _own(random_state)
    shared: dict[str, Any] = {
        "n_points": graph.n_points,
        "n_classes": n_classes,
        "beta_max": beta_max,
        "class_weight": weights,
        "grid": grid,
        "fingerprint": take_fingerprint(graph, k_max, n_classes, weights),
    }
    with progress("Following the path", verbose=verbose) as report:
        sampler = PathSampler(
            graph, n_classes, weights, beta_max, _check_tolerance(tolerance), seeds, n_jobs, report
        )
        if grid == "paper":
            found = run_paper_grid(
                graph, n_classes, weights, k_max, beta_max, seeds,
                grid_shape=_check_shape(grid_shape),
                n_sweeps=check_count(n_sweeps, "n_sweeps", 2),
                n_warmup=check_count(n_warmup, "n_warmup", 0),
                each=sampler.each,
            )  # fmt: skip
            return PathTable(
                **shared,
                betas=found.betas,
                log_normalizers=found.log_normalizers,
                means=found.means,
                slopes=np.zeros_like(found.means),
                closure=np.full(k_max, np.nan),
                is_exact=np.zeros(k_max, bool),
                n_sweeps=found.n_sweeps,
            )
        if exact:
            sampler.eliminate(k_max)
        curves, doubts = _simulate(sampler, 1 + len(sampler.known), k_max, observed)
    if observed is not None:
        probabilities = find_focus(curves, observed, beta_max).k_probabilities()
        shared["k_probabilities"] = probabilities[0]
        shared["k_probabilities_error"] = probabilities[1:].std(axis=0)
    closure = np.full(k_max, np.nan)
    for k, ladder in sampler.ladders.items():
        closure[k - 1] = ladder.closure()
    every = [curves[k] for k in range(1, k_max + 1)]
    return PathTable(
        **shared,
        betas=every[0].betas,
        log_normalizers=np.stack([curve.values for curve in every], axis=1),
        means=np.stack([curve.means for curve in every], axis=1),
        slopes=np.stack([curve.slopes for curve in every], axis=1),
        closure=closure,
        is_exact=np.isin(np.arange(1, k_max + 1), list(sampler.known)),
        n_sweeps=sampler.n_sweeps,
        warnings=tuple(doubts),
    )


def log_normalizer_path(
    graph: NeighborGraph,
    beta: Any,
    k: int,
    n_classes: int,
    class_weight: Any = None,
    *,
    tolerance: float = 0.05,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> tuple[Any, Any]:
    """Estimate log Z(beta, k) at one k by path sampling.

    Parameters
    ----------
    graph : NeighborGraph
    beta : float or array-like
        All values are served by one path, up to the largest.
    k : int
    n_classes : int
    class_weight : array-like of shape (n_classes,), optional
    tolerance : float
        Standard error that is asked for.
    random_state : None, int, SeedSequence, Generator or RandomState
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on them.

    Returns
    -------
    value, error : float, or ndarray of the shape of ``beta``

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood.path import log_normalizer_path
    >>> ring = NeighborGraph.from_neighbors([np.roll(np.arange(50), -1)])
    >>> value, error = log_normalizer_path(ring, 2.0, k=1, n_classes=2, random_state=0)
    >>> bool(abs(value - 50 * np.log(np.e**2 + 1)) < 6 * error)
    True
    """
    n_classes, k = check_n_classes(n_classes), graph.check_k(k)
    weights = check_class_weight(class_weight, n_classes)
    betas = check_betas(beta)
    beta_max = float(betas.max(initial=0.0))
    tolerance = _check_tolerance(tolerance)
    if beta_max == 0.0:
        values, errors = np.full(betas.shape, graph.n_points * np.log(n_classes)), 0.0 * betas
    else:
        sampler = PathSampler(
            graph, n_classes, weights, beta_max, tolerance, _own(random_state), n_jobs
        )
        curve = _simulate(sampler, k, k, None)[0][k]
        replicates = curve.move_to(betas).values
        values, errors = replicates[0], replicates[1:].std(axis=0)
    return (float(values), float(errors)) if betas.ndim == 0 else (values, errors)


def _simulate(
    sampler: PathSampler, first: int, last: int, observed: np.ndarray | None
) -> tuple[dict[int, Curve], list[str]]:
    """Run a sampler from one k to another, and warn of what went wrong, if anything did."""
    doubts: list[str] = []
    if first <= last:
        sampler.build(first, last)
        doubts = sampler.refine(observed)
    for words in doubts:
        kind = PhaseTransitionWarning if "transition" in words else MixingWarning
        warnings.warn(words, kind, stacklevel=3)
    return sampler.curves(), doubts


def _own(random_state: Any) -> np.random.SeedSequence:
    # A child of its own, so that a sequence shared with other calls is never used twice.
    return as_seed_sequence(random_state).spawn(1)[0]


def _check_tolerance(tolerance: Any) -> float:
    if isinstance(tolerance, int | float | np.number) and np.isfinite(tolerance) and tolerance > 0:
        return float(tolerance)
    raise ValueError(f"tolerance must be a positive number, got {tolerance!r}")


def _check_shape(grid_shape: Any) -> tuple[int, int | None]:
    try:
        n_betas, n_k = grid_shape
    except (TypeError, ValueError):
        raise ValueError(
            f"grid_shape must be two integers, how many beta and how many k, got {grid_shape!r}"
        ) from None
    n_betas = check_count(n_betas, "grid_shape[0]", 2)
    return n_betas, None if n_k is None else check_count(n_k, "grid_shape[1]", 1)
