"""beta_max from simulation: where the model becomes black or white (Section 3).

The rule and the search are in :mod:`bayesknn.model.phase`; here they are given the curves of
Swendsen-Wang runs that start from one class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.random import seeds_for
from bayesknn.graph import NeighborGraph
from bayesknn.labels.swendsen_wang import swendsen_wang_labels
from bayesknn.model import (
    BoltzmannModel,
    PhaseCurve,
    agreement,
    as_model,
    choose_k_values,
    locate_beta_max,
)

# Draws times points of a first look, and of a run where the share of disagreements is off the
# threshold by less than the factor: on fewer points a share varies more, and sweeps are cheaper.
# On 250 points a crossing is then known to .02, on 1,000 as well as those stand for more.
_FIRST_LOOK, _LONG_RUN, _NEAR = 2**15, 2**18, 2.0
_N_BATCHES, _WARMUP = 8, 40
# From how many points on, and on how many of them, the curves are looked for. The graph of k looks
# the same around each point however many there are, and so does the share of edges that agree.
_MOST_POINTS, _ENOUGH_POINTS, ENOUGH_NEIGHBORS = 2000, 1000, 100


def find_beta_max(
    graph: NeighborGraph | BoltzmannModel,
    n_classes: int | None = None,
    *,
    k_values: Any = None,
    class_weight: Any = None,
    threshold: float = 0.98,
    n_betas: int = 12,
    random_state: Any = None,
) -> PhaseCurve:
    """Find the smallest beta beyond which the model is black or white for every k.

    On more than 2,000 points the graph of 1,000 of them, drawn at random, stands for the whole: to
    two digits, to which beta_max is rounded, the curves are the same.

    Parameters
    ----------
    graph : NeighborGraph or BoltzmannModel
        With a model, which has its classes and weights, ``n_classes`` is left out.
    n_classes : int
    k_values : iterable of int, optional
        The k to look at; 1, 2, 3 and some larger ones up to ``graph.k_max`` by default, on more
        than 2,000 points up to 100.
    class_weight : array-like of shape (n_classes,), optional
    threshold : float
        The part of the way from ``1 / n_classes`` to 1 that the share of agreeing neighbours must
        have gone; see :mod:`bayesknn.model.phase`.
    n_betas : int
        How many points of each k's curve to add for plotting; beta_max does not depend on them.
    random_state : None, int, SeedSequence, Generator or RandomState

    Returns
    -------
    PhaseCurve
        ``beta_max``, and the simulated curves for plotting.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels import find_beta_max
    >>> graph = NeighborGraph.from_points(np.random.default_rng(0).normal(size=(60, 2)), k_max=20)
    >>> 3.0 < find_beta_max(graph, n_classes=2, random_state=0).beta_max < 7.0
    True
    """
    model = as_model(graph, n_classes, class_weight)
    k_values = None if k_values is None else list(k_values)
    rows = choose_rows(model.n_points, random_state)
    if rows is not None:
        k_max = min(model.k_max, ENOUGH_NEIGHBORS) if k_values is None else max(k_values)
        some = model.graph.take(rows, k_max) if k_max < len(rows) else None
        if some is not None:
            model = BoltzmannModel(some, model.n_classes, model.class_weight)
    seeds = seeds_for(random_state, "beta_max", model.fingerprint)
    ks = choose_k_values(model.k_max) if k_values is None else k_values
    level = (1 - threshold) * (1 - 1 / model.n_classes)

    def simulate(betas: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        keys = [child.generate_state(1, np.uint64)[0] for child in seeds.spawn(len(betas))]
        shares = [
            _simulate_share(model, beta, k, key, level)
            for beta, key in zip(betas, keys, strict=True)
        ]
        means, errors = np.array(shares).T
        return means, errors

    return locate_beta_max(simulate, ks, model.n_classes, threshold=threshold, n_betas=n_betas)


def choose_rows(n_points: int, random_state: Any) -> np.ndarray | None:
    """Return the points on which beta_max is looked for; None where that is all of them.

    Examples
    --------
    >>> from bayesknn.labels.beta_max import choose_rows
    >>> choose_rows(10_000, random_state=0).shape, choose_rows(250, random_state=0)
    ((1000,), None)
    """
    if n_points <= _MOST_POINTS:
        return None
    rng = np.random.default_rng(seeds_for(random_state, "rows for beta_max", str(n_points)))
    return np.sort(rng.choice(n_points, _ENOUGH_POINTS, replace=False))


def _simulate_share(
    model: BoltzmannModel, beta: float, k: int, key: np.uint64, level: float
) -> tuple[float, float]:
    """Mean and error of the share of edges that agree; short where that is far from ``level``."""
    mean, error = _run(model, beta, k, key, _FIRST_LOOK)
    if level / _NEAR < 1 - mean < level * _NEAR:
        return _run(model, beta, k, key, _LONG_RUN)
    return mean, error


def _run(
    model: BoltzmannModel, beta: float, k: int, key: np.uint64, n_labels: int
) -> tuple[float, float]:
    """Mean and error of the share from a chain that draws so many labels."""
    n_draws = _N_BATCHES * max(1, n_labels // (_N_BATCHES * model.n_points))
    labels, info = swendsen_wang_labels(
        model, beta, k, n_draws=n_draws, n_warmup=_WARMUP,
        initial=np.zeros(model.n_points, np.int64), key=key,
    )  # fmt: skip
    series = info.cluster_agreement
    if model.class_weight is not None:
        # The plain count of edges, whatever they weigh.
        series = np.asarray(agreement(model.graph, labels, k), dtype=np.float64)
    batches = series.reshape(_N_BATCHES, -1).mean(axis=1) / (model.n_points * k)
    return min(float(batches.mean()), 1.0), float(batches.std(ddof=1) / np.sqrt(_N_BATCHES))
