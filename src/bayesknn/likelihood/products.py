"""A likelihood that is a product of conditionals, one for each point (eqs. jointHA and psudoL).

The log of such a product is concave in beta (each factor is a normalised exponential family), so
for each k Newton's method, kept within a bracket, finds its maximum. Whether there is one is known
beforehand: as beta grows, the slope in ``beta / k`` tends to minus the shortfall of
``deficits.py``, hence the product rises for ever exactly when no point is outvoted by its
neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.base import BaseLikelihood
from bayesknn.likelihood.deficits import tabulate_deficits
from bayesknn.model import BoltzmannModel

_MAX_STEPS = 200
# Newton's error after a step of this relative size is far below the rounding of the slope.
_SMALL_STEP = 1e-9
# Stands for an infinite strength, which would make nan of a deficit of zero.
_HUGE = 1e300


class ConditionalProduct(BaseLikelihood):
    """log prod_i P(y_i | the labels around i; beta, k).

    Subclasses say in ``direction`` whether the labels around i include those of the points that
    have i among their k nearest ("both") or not ("forward"). Everything about the labels is
    counted once, on construction.
    """

    direction: str
    log_z_source = "none"

    def __init__(
        self,
        graph: NeighborGraph | BoltzmannModel,
        labels: Any,
        n_classes: int | None = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
    ):
        super().__init__(graph, labels, n_classes, class_weight)
        self._deficits = tabulate_deficits(self.model, self.labels, self.direction, n_jobs)

    def conditional(self, beta: float, k: int) -> np.ndarray:
        """Return every point's class probabilities given the labels around it.

        The likelihood is the product of the probabilities of the points' own labels.

        Parameters
        ----------
        beta : float
        k : int

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        return self.model.conditional(self.labels, beta, k, self.direction)

    def _log_density_at(self, beta: float, k: int) -> float:
        rows, multiplicity, shortfall, largest = self._deficits[k - 1]
        return _log_product(rows, multiplicity, shortfall, largest, beta / k)

    def _log_density_curve(self, betas: np.ndarray, k: int) -> np.ndarray:
        return _log_products(*self._deficits[k - 1], betas / k)

    def expand(self, betas: np.ndarray, k: int) -> np.ndarray:
        """Return log f(y | beta, k), its first and its second derivative in beta.

        Arguments are not checked.

        Parameters
        ----------
        betas : ndarray of shape (m,)
        k : int

        Returns
        -------
        ndarray of shape (3, m)
        """
        return _expand_each(*self._deficits[k - 1], betas / k, 1.0 / k)

    def climb(
        self, k: int, start: float, upper: float, precision: float, floor: float
    ) -> tuple[float, float, float]:
        """Find the maximum over beta in [0, upper] at one k, arguments unchecked.

        Parameters
        ----------
        k : int
        start : float
            A beta to start from.
        upper : float
        precision : float
            Allowed error of the maximum, in units of the width of the peak.
        floor : float
            Where the tangents show that nothing reaches this log density, the search is given up.

        Returns
        -------
        beta, log_value, width : float
            ``width`` is one over the square root of the curvature. ``log_value`` is minus infinity
            where the search was given up.
        """
        strength, value, curvature = _climb(
            *self._deficits[k - 1], start / k, upper / k, 0.0, precision, floor
        )
        width = k / math.sqrt(curvature) if curvature > 0.0 else math.inf
        return min(strength * k, upper), value, width

    def _climb_each_k(self, upper: float) -> Iterator[tuple[float, float, bool]]:
        start = 1.0
        for k, deficits in enumerate(self._deficits, start=1):
            strength, *_ = _climb(*deficits, start / k, upper / k, _SMALL_STEP, 0.0, -math.inf)
            at_bound = strength >= upper / k
            beta = upper if at_bound else strength * k
            yield beta, _log_product(*deficits, min(beta / k, _HUGE)), at_bound
            # The maxima of neighbouring k are close to each other.
            if 0.0 < beta < math.inf:
                start = beta


@kernel
def _log_product(rows, multiplicity, shortfall, largest, strength):
    # Comparisons with None are settled when the function is compiled.
    if largest is not None:
        decay = _tabulate_decay(largest, strength)
    total = strength * shortfall
    for m in range(np.uint64(rows.shape[0])):
        others = 0.0
        for g in range(np.uint64(rows.shape[1])):
            if largest is None:
                others += math.exp(-strength * rows[m, g])
            else:
                others += decay[rows[m, g]]
        total += multiplicity[m] * math.log1p(others)
    return -total


@kernel
def _log_products(rows, multiplicity, shortfall, largest, strengths):
    values = np.empty(strengths.size)
    for b in range(strengths.size):
        values[b] = _log_product(rows, multiplicity, shortfall, largest, strengths[b])
    return values


@kernel
def _expand(rows, multiplicity, shortfall, largest, strength):
    """Return the log product, its derivative in beta / k, and minus the second derivative."""
    if largest is not None:
        decay = _tabulate_decay(largest, strength)
    value = strength * shortfall
    slope = -shortfall
    curvature = 0.0
    for m in range(np.uint64(rows.shape[0])):
        others = 0.0
        mean = 0.0
        square = 0.0
        for g in range(np.uint64(rows.shape[1])):
            deficit = float(rows[m, g])
            if largest is None:
                weight = math.exp(-strength * deficit)
            else:
                weight = decay[rows[m, g]]
            others += weight
            weight *= deficit
            mean += weight
            square += weight * deficit
        value += multiplicity[m] * math.log1p(others)
        mean /= 1.0 + others
        slope += multiplicity[m] * mean
        curvature += multiplicity[m] * (square / (1.0 + others) - mean * mean)
    return -value, slope, curvature


@kernel
def _expand_each(rows, multiplicity, shortfall, largest, strengths, scale):
    """Return the log product and its two derivatives in ``strength / scale``."""
    found = np.empty((3, strengths.size))
    for b in range(strengths.size):
        value, slope, curvature = _expand(rows, multiplicity, shortfall, largest, strengths[b])
        found[0, b] = value
        found[1, b] = scale * slope
        found[2, b] = -scale * scale * curvature
    return found


@kernel
def _tabulate_decay(largest, strength):
    decay = np.empty(largest + 1)
    for d in range(largest + 1):
        decay[d] = math.exp(-strength * d)
    return decay


@kernel
def _climb(rows, multiplicity, shortfall, largest, start, upper, small, precision, floor):
    """Return the maximum over strengths in [0, upper], its height and its curvature.

    The search ends with a step below ``small`` times the strength, or below ``precision`` times
    the width of the peak; or where the tangents stay below ``floor``, with minus infinity.
    """
    low = 0.0
    high = upper
    low_is_known = high_is_known = False
    if shortfall == 0.0:
        # Nobody is outvoted: it rises for ever, if at all.
        _, slope, _ = _expand(rows, multiplicity, shortfall, largest, 0.0)
        strength = upper if slope > 0.0 else 0.0
        bounded = min(strength, _HUGE)
        value, _, curvature = _expand(rows, multiplicity, shortfall, largest, bounded)
        return strength, value, curvature
    strength = min(start, 0.5 * upper)
    value = slope = curvature = 0.0
    for _ in range(_MAX_STEPS):
        value, slope, curvature = _expand(rows, multiplicity, shortfall, largest, strength)
        if slope > 0.0:
            if strength >= upper:
                return upper, value, curvature
            low = strength
            low_is_known = True
            bound = value + slope * (high - strength)
        else:
            if strength <= 0.0:
                return 0.0, value, curvature
            high = strength
            high_is_known = True
            bound = value + slope * (low - strength)
        if bound < floor:
            return strength, -math.inf, curvature
        # Where the curvature vanishes Newton's step leaves the bracket.
        ceiling = high if high < math.inf else 4.0 * strength
        if curvature > 0.0:
            proposal = strength + slope / curvature
        else:
            proposal = math.inf if slope > 0.0 else -math.inf
        if proposal <= low and not low_is_known:
            proposal = 0.0
        elif proposal >= ceiling and not high_is_known:
            proposal = ceiling
        elif not low <= proposal <= ceiling:
            proposal = 0.5 * (low + ceiling)
        step = abs(proposal - strength)
        if step <= small * strength or step * math.sqrt(curvature) <= precision:
            # What the step would still add, to second order.
            return proposal, value + 0.5 * abs(slope) * step, curvature
        strength = proposal
    return strength, value, curvature
