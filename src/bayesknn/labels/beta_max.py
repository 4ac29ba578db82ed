"""The phase transition, and the beta_max beyond which almost all neighbours agree (Section 3).

For large beta all neighbours agree, and the labels no longer tell one beta from another. What is
followed is the proportion of directed edges whose ends agree, ``E[S_k] / (n k)``: it rises from
``1 / G`` at beta = 0 to 1. Neighbours count as agreeing at k where that proportion has gone
98 % of the way, which for two classes is where one edge in a hundred disagrees. Not all points have
one class there: the graph of a small k is in pieces, and at beta = 4.8 on Ripley's data the larger
class has 55 % of the points at k = 1, 67 % at k = 2, and all at k = 15. beta_max is the
smallest beta beyond which this holds for every k, rounded up to two digits: the prior is one
rectangle for all k, so the slowest k decides. As a rule that is k = 2, whose graph is long chains
and small pieces hanging together by single edges.

The 98 % is a convention, not a result. It was set so that Ripley's data get a range like the
paper's, which settled on 4 by trial and error: exact curves there give 3.6, 4.2, 4.7 and 5.6 at
95, 97, 98 and 99 %, each time with k = 2 decisive. Agreement with the paper is thus no evidence
for the rule. ``threshold`` changes it.

The proportion grows with beta, since its derivative is a variance. Near the threshold disagreements
are isolated and become rarer exponentially, so the crossing is interpolated in their logarithm.
With class weights the proportion is still the plain count of edges that agree: weights say which
colour wins, not whether there is one colour. The proportions come from Swendsen-Wang runs that
start from one class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_part
from bayesknn._utils.random import seeds_for
from bayesknn.graph import NeighborGraph
from bayesknn.graph.queries import check_k_values
from bayesknn.labels.swendsen_wang import swendsen_wang_labels
from bayesknn.model import BoltzmannModel, as_model

# Draws times points of a first look, and of a run where the proportion of disagreements is off the
# threshold by less than a factor of 2: on fewer points a proportion varies more, and sweeps are
# cheaper. On 250 points a crossing is then known to .02, on 1,000 as well as those stand for more.
_FIRST_LOOK, _LONG_RUN = 2**15, 2**18
# From how many points on, and on how many of them, the curves are looked for. The graph of k looks
# the same around each point however many there are, and so does the proportion of edges that agree.
_MOST_POINTS, _ENOUGH_POINTS, ENOUGH_NEIGHBORS = 2000, 1000, 100

Simulate = Callable[[float, int], tuple[float, float]]


class PhaseTransition(NamedTuple):
    """Where almost all neighbours agree, at each k.

    Attributes
    ----------
    beta_max : float
        The largest crossing, rounded up to two digits.
    k_values : ndarray of int
        The k that were simulated.
    crossings : ndarray of the shape of ``k_values``
        The beta at which each k reaches the threshold; but for the slowest k, a guess.
    """

    beta_max: float
    k_values: np.ndarray
    crossings: np.ndarray


def find_beta_max(
    graph: NeighborGraph | BoltzmannModel,
    n_classes: int | None = None,
    *,
    k_values: Any = None,
    class_weight: Any = None,
    threshold: float = 0.98,
    random_state: Any = None,
) -> PhaseTransition:
    """Find the smallest beta beyond which, for every k, almost all neighbours agree.

    On more than 2,000 points the graph of 1,000 of them, drawn at random, stands for the whole: to
    two digits, to which beta_max is rounded, the proportions are the same.

    Parameters
    ----------
    graph, n_classes, class_weight, random_state
        As in :func:`bayesknn.labels.sample_labels`.
    k_values : iterable of int, optional
        The k to look at; 1, 2, 3 and some larger ones up to ``graph.k_max`` by default, on more
        than 2,000 points up to 100.
    threshold : float
        The part of the way from ``1 / n_classes`` to 1 that the proportion of agreeing neighbours
        must have gone; see :mod:`bayesknn.labels.beta_max`.

    Returns
    -------
    PhaseTransition
        ``beta_max``, and where each k crosses the threshold.

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
    threshold = check_part(threshold, "threshold")
    if k_values is not None:
        k_values = check_k_values(k_values, model.k_max)
    rows = choose_rows(model.n_points, random_state)
    if rows is None:
        model = replace(model, graph=model.graph.gather())
    else:
        k_max = min(model.k_max, ENOUGH_NEIGHBORS) if k_values is None else max(k_values)
        some = model.graph.take(rows, k_max) if k_max <= model.graph.most_among(rows) else None
        if some is not None:
            model = BoltzmannModel(some, model.n_classes, model.class_weight)
    seeds = seeds_for(random_state, "beta_max", model.fingerprint)
    level = (1 - threshold) * (1 - 1 / model.n_classes)

    def simulate(beta: float, k: int) -> tuple[float, float]:
        key = seeds.spawn(1)[0].generate_state(1, np.uint64)[0]
        mean, error = _simulate_agreement(model, beta, k, key, _FIRST_LOOK)
        if level / 2 < 1 - mean < level * 2:
            return _simulate_agreement(model, beta, k, key, _LONG_RUN)
        return mean, error

    ks = choose_k_values(model.k_max) if k_values is None else k_values
    return locate_beta_max(simulate, ks, model.n_classes, threshold)


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


def choose_k_values(k_max: int) -> np.ndarray:
    """Choose a few k that stand for all of 1..k_max: 1, 2, 3, then two larger ones.

    The small ones differ most from each other, and one of them is usually the slowest.
    """
    spaced = np.geomspace(min(3, k_max), k_max, 3).round()
    values = np.unique(np.concatenate([[1, 2, 3], spaced])).astype(np.int64)
    return values[values <= k_max]


def _simulate_agreement(
    model: BoltzmannModel, beta: float, k: int, key: np.uint64, n_labels: int
) -> tuple[float, float]:
    """Mean and error of the proportion of agreeing edges, from ``n_labels`` labels in all."""
    n_batches = 8
    n_draws = n_batches * max(1, n_labels // (n_batches * model.n_points))
    labels, info = swendsen_wang_labels(
        model, beta, k, n_draws=n_draws, n_warmup=40, initial=0, key=key
    )
    # The plain count of edges, whatever they weigh.
    if model.unequal_weight is None:
        series = info.cluster_agreement / model.common_weight
    else:
        series = BoltzmannModel(model.graph, model.n_classes).agreement(labels, k)
    batches = series.reshape(n_batches, -1).mean(axis=1) / (model.n_points * k)
    return min(float(batches.mean()), 1.0), float(batches.std(ddof=1) / np.sqrt(n_batches))


def locate_beta_max(
    simulate: Simulate, k_values: Iterable[int], n_classes: int, threshold: float = 0.98
) -> PhaseTransition:
    """Find the smallest beta beyond which, for every k, almost all neighbours agree.

    Parameters
    ----------
    simulate : callable
        ``simulate(beta, k)`` returns the mean proportion of directed edges whose ends agree,
        E[S_k] / (n k) without class weights in S, and its Monte Carlo error, 0 if it is exact.
    k_values : iterable of int
        A few k that stand for the range of the prior, see :func:`choose_k_values`.
    n_classes : int
    threshold : float
        As in :func:`find_beta_max`.

    Returns
    -------
    PhaseTransition
    """
    curves = [_Curve(simulate, k, n_classes, 1 - threshold) for k in sorted(set(k_values))]
    _bracket(curves)
    # Between far points a crossing is a guess: those that may be the slowest get a point there. A
    # k that has crossed where another has not is none of them.
    guesses = [curve.find_crossing() for curve in curves]
    latest = max(curve.last_below() for curve in curves)
    for curve, guess in zip(curves, guesses, strict=True):
        if guess > 0.7 * max(guesses) and curve.first_above() > latest:
            curve.add(guess)
    for _ in range(4):
        slowest = max(curves, key=_Curve.find_crossing)
        slowest.add(slowest.find_crossing())
    crossings = np.array([curve.find_crossing() for curve in curves])
    ks = np.array([curve.k for curve in curves])
    return PhaseTransition(_round_up(float(crossings.max())), ks, crossings)


class _Curve:
    """What has been simulated of one k so far, and what it says about the crossing."""

    def __init__(self, simulate: Simulate, k: int, n_classes: int, level: float):
        self.simulate, self.k, self.level = simulate, k, level
        self.scale = n_classes / (n_classes - 1)
        # Beta, the part of the way left to go, and its error; beta = 0 is known.
        self.points = [(0.0, 1.0, 0.0)]

    def add(self, beta: float) -> bool:
        """Simulate one beta more; return whether it is below the threshold."""
        mean, error = self.simulate(beta, self.k)
        left = (1 - mean) * self.scale
        self.points.append((beta, left, error * self.scale))
        return left > self.level

    def last_below(self) -> float:
        """Return the largest beta that was seen below the threshold."""
        return max(beta for beta, left, _ in self.points if left > self.level)

    def first_above(self) -> float:
        """Return the smallest beta that was seen above the threshold."""
        return min(beta for beta, left, _ in self.points if left <= self.level)

    def find_crossing(self) -> float:
        """Return the beta at which the threshold is crossed."""
        # Imported here because it takes longer to import than all of this package.
        from scipy.optimize import isotonic_regression

        beta, left, error = np.array(sorted(self.points, key=lambda point: point[0])).T
        # The truth decreases in beta; the simulations need not. Errors and disagreements below
        # what shows in so few draws are not told apart.
        weights = np.maximum(error, 1e-4) ** -2.0
        fitted = isotonic_regression(left, weights=weights, increasing=False).x
        return float(np.interp(-np.log(self.level), -np.log(np.maximum(fitted, 1e-6)), beta))


def _bracket(curves: list[_Curve]) -> None:
    """Simulate every k below and above its threshold, doubling or halving beta from 4."""
    top = 4.0
    below = [curve for curve in curves if curve.add(top)]
    if not below:
        for _ in range(12):
            top /= 2
            is_below = [curve.add(top) for curve in curves]
            if any(is_below):
                break
        return
    for _ in range(12):
        top *= 2
        below = [curve for curve in below if curve.add(top)]
        if not below:
            return
    raise ValueError(
        f"at k={below[0].k} neighbours still disagree at beta={top:g}: "
        "the labels do not become equal, so beta_max must be given"
    )


def _round_up(value: float) -> float:
    """Round up to two significant digits."""
    exponent = int(np.floor(np.log10(value))) - 1
    digits = np.ceil(value * 10.0**-exponent - 1e-9)
    return float(digits * 10.0**exponent) if exponent >= 0 else float(digits / 10.0**-exponent)
