"""How the Bayesian classifier's parameters become the parts it connects: K, a prior, a predictive.

``classifier.py`` holds what users see of it; what both classifiers share is in ``_estimator.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._estimator import affordable_neighbors
from bayesknn._validation import check_choice, check_count, is_sparse
from bayesknn.graph import NeighborGraph
from bayesknn.graph.precomputed import count_stored
from bayesknn.labels import find_beta_max
from bayesknn.model import Prior, as_prior
from bayesknn.posterior.routes import LABEL_SAMPLERS, Route, Schedule
from bayesknn.predictive import PosteriorNodes, Predictive

# Holmes and Adams count k neighbours where the coherent model counts 2k on average, so that the
# same strength of agreement is a beta twice as large.
_HOLMES_ADAMS_SCALE = 2.0


def check_settings(estimator: Any) -> Schedule:
    """Return how long chains run, and refuse settings that need no data to be wrong."""
    check_choice(estimator.label_sampler, "label_sampler", LABEL_SAMPLERS)
    return Schedule(
        check_count(estimator.n_chains, "n_chains"),
        check_count(estimator.n_draws, "n_draws"),
        check_count(estimator.n_warmup, "n_warmup", 0),
    )


def choose_k_max(estimator: Any, X: Any, labels: np.ndarray) -> int:
    """Return K: as asked for, as the prior has it, or as many as the data afford."""
    if estimator.max_neighbors is not None:
        return check_count(estimator.max_neighbors, "max_neighbors", 1, len(labels) - 1)
    if isinstance(estimator.prior, Prior):
        return check_count(estimator.prior.k_max, "k_max of the prior", 1, len(labels) - 1)
    k_max = affordable_neighbors(labels)
    if is_sparse(X) and X.shape[0] == X.shape[1]:
        k_max = max(1, min(k_max, count_stored(X)))
    return k_max


def choose_prior(
    estimator: Any,
    graph: NeighborGraph,
    n_classes: int,
    class_weight: np.ndarray | None,
    seed: np.random.SeedSequence,
) -> Prior:
    """Return the prior on (beta, k), with ``beta_max="auto"`` looked for on the graph."""
    if isinstance(estimator.prior, Prior):
        return as_prior(estimator.prior, graph.k_max, estimator.prior.beta_max)
    beta_max = estimator.beta_max
    if isinstance(beta_max, str):
        if beta_max != "auto":
            raise ValueError(f"beta_max must be a positive number or 'auto', got {beta_max!r}")
        found = find_beta_max(
            graph, n_classes, class_weight=class_weight, n_betas=0, random_state=seed
        )
        scale = _HOLMES_ADAMS_SCALE if estimator.likelihood == "holmes-adams" else 1.0
        beta_max = scale * found.beta_max
    return as_prior(estimator.prior, graph.k_max, beta_max)


def find_nodes(route: Route) -> PosteriorNodes:
    """Return the posterior as the weighted points that predictions average over."""
    if route.grid is not None:
        return PosteriorNodes.from_grid(route.grid)
    return PosteriorNodes.from_draws(route.beta, route.k)


def make_predictive(
    likelihood: str,
    graph: NeighborGraph,
    labels: np.ndarray,
    n_classes: int,
    nodes: PosteriorNodes,
    class_weight: np.ndarray | None,
    *,
    n_jobs: int | None,
    verbose: int,
) -> Predictive:
    """Return what predicts under this likelihood: Holmes and Adams look forward only."""
    return Predictive(
        graph,
        labels,
        n_classes,
        nodes,
        class_weight=class_weight,
        direction="forward" if likelihood == "holmes-adams" else "both",
        n_jobs=n_jobs,
        verbose=verbose,
    )
