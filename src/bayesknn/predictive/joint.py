"""The labels of a whole batch of new points: joint draws, and the number of each class.

``Predictive`` predicts each new point as if it came alone. Together they are one random field
on the neighbour graph of training and new points, the training labels fixed, and Swendsen-Wang
with fixed labels draws from it: the new points' errors are dependent, and counts of classes need
to know. The posterior of (beta, k) is that of the fit; k grows with the number of points to
``round(k N / n)``, so that a neighbourhood keeps its size. With one new point the draws have the
probabilities of ``Predictive``.

Chains start from the nearest training labels and from each class alone, and walk along the same
values of (beta, k). Where their counts of classes do not agree the labels are frozen.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bayesknn._utils.checks import as_floats, check_count, count_rows
from bayesknn._utils.progress import progress
from bayesknn._utils.random import as_seed_sequence, spawn_keys
from bayesknn.exceptions import MixingWarning
from bayesknn.labels.clamped import FreeEdges, clamped_labels, free_edges
from bayesknn.model import BoltzmannModel
from bayesknn.model.boltzmann import FREE
from bayesknn.predictive.predictive import Predictive

# Neighbours in all lists together: 3 GB of memory.
_MOST_EDGES = 2**28


def draw_jointly(
    predictive: Predictive,
    X: Any,
    n_draws: int,
    random_state: Any = None,
    field: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the labels of new points together, averaged over the posterior of (beta, k).

    Warns with :class:`~bayesknn.exceptions.MixingWarning` where chains of different starts do not
    agree, and where few of all points are labelled.

    Parameters
    ----------
    predictive : Predictive
    X : array or frame of shape (m, p)
    n_draws : int
    random_state : None, int, SeedSequence, Generator or RandomState
    field : ndarray of shape (m, n_classes), optional
        Added to the log weights of each new point's classes.

    Returns
    -------
    ndarray of shape (n_draws, m)
        Class numbers; the draws are in random order.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import BoltzmannModel
    >>> from bayesknn.predictive import PosteriorNodes, Predictive, draw_jointly
    >>> ripley = load_ripley()
    >>> graph = NeighborGraph.from_points(ripley.X_train, k_max=14)
    >>> nodes = PosteriorNodes([14], [1.46], [1.0])
    >>> predictive = Predictive(BoltzmannModel(graph, 2), ripley.y_train, nodes)
    >>> draws = draw_jointly(predictive, ripley.X_test[::10], n_draws=500, random_state=0)
    >>> draws.shape, bool(draws.sum(axis=1).std() > 3.4)
    ((500, 100), True)
    """
    n_draws = check_count(n_draws, "n_draws")
    nodes, n_classes, n = predictive.nodes, predictive.n_classes, len(predictive.labels)
    edges = joint_edges(predictive, X)
    m = len(edges.free)
    if field is not None:
        field = as_floats(field, "field")
        if field.shape != (m, n_classes) or not np.isfinite(field).all():
            raise ValueError(f"field must hold finite numbers of shape {(m, n_classes)}")
    near = predictive.graph.query(X, predictive.n_jobs, direction="forward").neighbors[0]
    starts = [predictive.labels[near], *(np.full(m, g) for g in range(n_classes))]
    seeds = as_seed_sequence(random_state).spawn(2)
    rng = np.random.default_rng(seeds[0])
    # Chains of fewer draws could not be compared.
    n_each = max(-(-n_draws // len(starts)), 25)
    # Evenly spaced in weight along the nodes, so that one draw is close to the next.
    at = (np.arange(n_each) + rng.random()) / n_each
    chosen = np.searchsorted(np.cumsum(nodes.weight)[:-1], at, side="right")
    beta, k = nodes.beta[chosen], scale_k(nodes.k[chosen], n, n + m)
    # Fewer sweeps would leave the start in the draws, more take longer. What does not mix in so
    # many shows in the comparison of chains.
    n_sweeps = np.full(n_each, 10)
    n_sweeps[0] += 100
    keys = spawn_keys(seeds[1], len(starts))
    n_all = len(starts) * int(n_sweeps.sum())
    with progress("Drawing labels", total=n_all, verbose=predictive.verbose) as advance:
        chains = [
            clamped_labels(
                edges, beta, k, n_sweeps, key=key, initial=start, field=field, advance=advance
            )
            for start, key in zip(starts, keys, strict=True)
        ]
    _warn(chains, n, m, n_classes)
    draws = np.concatenate(chains)
    return draws[rng.permutation(len(draws))[:n_draws]]


def counts_of_draws(draws: np.ndarray, n_classes: int, level: float) -> np.ndarray:
    """Return mean, low and high of the number of each class in joint draws, (n_classes, 3).

    The interval is equal-tailed, and its ends are numbers that were drawn.
    """
    counts = count_classes(np.asarray(draws), n_classes)
    tails = [(1.0 - level) / 2, (1.0 + level) / 2]
    ends = np.quantile(counts, tails, axis=0, method="inverted_cdf")
    return np.column_stack([counts.mean(axis=0), *ends])


def count_classes(draws: np.ndarray, n_classes: int) -> np.ndarray:
    """Count each class in each draw, (n_draws, n_classes)."""
    return np.stack([np.sum(draws == g, axis=1) for g in range(n_classes)], axis=1)


def joint_edges(predictive: Predictive, X: Any) -> FreeEdges:
    """Join new points to the training points, whose labels are fixed."""
    n, m = len(predictive.labels), count_rows(X)
    k_max = int(scale_k(predictive.nodes.k[-1], n, n + m))
    if k_max * (n + m) > _MOST_EDGES:
        raise ValueError(
            f"{m} new points beside {n} training points need lists of {k_max} neighbours each, "
            "more than fit in memory; pass them in parts"
        )
    graph = predictive.graph.join(X, k_max, predictive.n_jobs)
    fixed = np.append(predictive.labels.astype(np.int64), np.full(m, FREE))
    model = BoltzmannModel(graph, predictive.n_classes, predictive.model.class_weight, fixed)
    return free_edges(model, predictive.direction)


def scale_k(k: Any, n: int, total: int) -> np.ndarray:
    """Return k for more points: the same share of all of them."""
    return np.rint(np.asarray(k) * (total / n)).astype(np.int64)


def _warn(chains: list[np.ndarray], n: int, m: int, n_classes: int) -> None:
    counts = np.stack([count_classes(draws, n_classes) for draws in chains])
    rhat = largest_rhat(counts)
    # The means of the chains' counts then differ by about half of their standard deviation.
    if rhat > 1.1:
        means = counts.mean(axis=1)
        g = int(np.argmax(np.ptp(means, axis=0)))
        warnings.warn(
            f"the labels of this batch are frozen: chains started from different labels put "
            f"{means[:, g].min():.0f} to {means[:, g].max():.0f} of its {m} points in class number "
            f"{g} on average (R-hat {rhat:.2f}); pass fewer points at a time, or use a likelihood "
            "with a smaller beta (the coherent one)",
            MixingWarning,
            stacklevel=5,
        )
    elif n < 0.2 * (n + m):
        warnings.warn(
            f"only {n} of {n + m} points are labelled: below a fifth joint draws say more about "
            "the model than about the data, and chains may freeze unseen; pass fewer points at a "
            "time",
            MixingWarning,
            stacklevel=5,
        )


def largest_rhat(counts: np.ndarray) -> float:
    """Return the largest R-hat over the classes, of counts (n_chains, n_draws, n_classes)."""
    counts = np.asarray(counts, dtype=np.float64)
    within = counts.var(axis=1, ddof=1).mean(axis=0)
    between = counts.mean(axis=1).var(axis=0, ddof=1)
    apart = between > 0
    if not apart.any():
        return 1.0
    with np.errstate(divide="ignore"):
        return float(np.sqrt(1.0 + np.max(between[apart] / within[apart])))
