"""Likelihoods that are products of conditionals, one for each point (eqs. jointHA and psudoL).

The pseudo-likelihood is the product of the model's full conditionals (Section 3.2, eq. psudoL). The
counts of class g around i take in the k nearest neighbours of i and the points that have i among
their k nearest; mutual neighbours count twice. It is the leave-one-out score of the predictive
rule, cheap and well behaved in prediction, but as a distribution of (beta, k) it differs from that
of the model: on Ripley's data its k is three times as large.

The product of Holmes and Adams (2002) is here for comparison (Section 2.1, eq. jointHA). Each
factor is the softmax of ``beta / k`` times the class counts among the k nearest neighbours of i,
and no others: forward neighbours only. The factors are not the conditionals of any joint
distribution, and the product is not normalised: over all labels of two points it adds up to ``2 (1
+ e^(2 beta / k)) / (1 + e^(beta / k))^2``. Its predictive rule is the same softmax of the counts
among the k nearest training points of x: ``class_probabilities``.

The log of such a product is concave in beta (each factor is a normalised exponential family), so
for each k Newton's method, kept within a bracket, finds its maximum. Whether there is one is known
beforehand: as beta grows, the derivative in ``beta / k`` tends to minus the shortfall of
``deficits.py``, hence the product rises for ever exactly when no point is outvoted by its
neighbours.
"""

from __future__ import annotations

import math
import warnings
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bayesknn._utils.checks import check_positive
from bayesknn._utils.jit import kernel
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.base import Likelihood
from bayesknn.likelihood.deficits import Deficits, tabulate_deficits

# Stands for an infinite strength, which would make nan of a deficit of zero.
_HUGE = 1e300
# The relative rounding error of a sum over many points.
_ROUNDING = 1e-12


class Maximum(NamedTuple):
    """Where a likelihood is largest.

    Attributes
    ----------
    k : int
    beta : float
    log_value : float
        The log-likelihood there.
    at_bound : bool
        The likelihood still rises at ``beta_max``: ``beta`` is that bound, not a maximum. This is
        what happens when no point is outvoted by its neighbours. Without a bound ``beta`` is then
        infinite and ``log_value`` is the limit.
    """

    k: int
    beta: float
    log_value: float
    at_bound: bool = False


class Maxima(NamedTuple):
    """Where a likelihood is largest for each k; entry k - 1 of each array belongs to k.

    Attributes
    ----------
    beta, log_value : ndarray of shape (k_max,)
    at_bound : ndarray of shape (k_max,), dtype bool
        As in :class:`Maximum`.
    """

    beta: np.ndarray
    log_value: np.ndarray
    at_bound: np.ndarray


class ConditionalProduct(Likelihood):
    """log prod_i P(y_i | the labels around i; beta, k).

    Everything about the labels is counted once, when a value is first asked for.
    """

    is_concave: bool = True

    @cached_property
    def _deficits(self) -> list[Deficits]:
        return tabulate_deficits(self.model, self.labels, self.direction)

    def _log_density_at(self, beta: float, k: int) -> float:
        return _differentiate(self._deficits[k - 1], beta / k)[0]

    def _log_density_curve(self, betas: np.ndarray, k: int) -> np.ndarray:
        return self.differentiate(betas, k)[0]

    def differentiate(self, betas: np.ndarray, k: int) -> np.ndarray:
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
        return _differentiate_each(self._deficits[k - 1], betas / k, 1.0 / k)

    def find_peak(
        self, k: int, start: float, upper: float, precision: float
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

        Returns
        -------
        beta, log_value, width : float
            ``width`` is one over the square root of the curvature.
        """
        strength, value, curvature = self._search(k, start, upper, 0.0, precision)
        width = k / math.sqrt(curvature) if curvature > 0.0 else math.inf
        return min(strength * k, upper), value, width

    def _search(
        self, k: int, start: float, upper: float, small: float, precision: float
    ) -> tuple[float, float, float]:
        """Return the strength beta / k of the maximum, its height and its curvature."""
        *peak, converged = _find_peak(self._deficits[k - 1], start / k, upper / k, small, precision)
        if not converged:
            warnings.warn(
                f"Newton's method did not find the largest likelihood at k = {k}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return peak

    def maximize_each_k(self, beta_max: float | None = None) -> Maxima:
        """Return the maximum over beta in [0, beta_max] for every k.

        Parameters
        ----------
        beta_max : float, optional
            Without it there is no bound; ``beta`` is then infinite where there is no maximum.

        Returns
        -------
        Maxima
        """
        if beta_max is not None:
            beta_max = check_positive(beta_max, "beta_max")
        upper = math.inf if beta_max is None else beta_max
        start, maxima = 1.0, []
        for k, deficits in enumerate(self._deficits, start=1):
            # Newton's error after so small a step is far below the rounding of the derivative.
            strength, *_ = self._search(k, start, upper, 1e-9, 0.0)
            at_bound = strength >= upper / k
            beta = upper if at_bound else strength * k
            maxima.append((beta, _differentiate(deficits, min(beta / k, _HUGE))[0], at_bound))
            # The maxima of neighbouring k are close to each other.
            if 0.0 < beta < math.inf:
                start = beta
        return Maxima(*map(np.array, zip(*maxima, strict=True)))

    def maximize(self, beta_max: float | None = None) -> Maximum:
        """Return the maximum over every k and beta in [0, beta_max], the smallest k of equal ones.

        Parameters
        ----------
        beta_max : float, optional
            Without it there is no bound; ``beta`` is then infinite where there is no maximum.

        Returns
        -------
        Maximum
            ``at_bound`` tells that the likelihood still rises there.
        """
        beta, log_value, at_bound = self.maximize_each_k(beta_max)
        at = int(np.argmax(log_value))
        return Maximum(at + 1, float(beta[at]), float(log_value[at]), bool(at_bound[at]))


class PseudoLikelihood(ConditionalProduct):
    """The pseudo-likelihood of one set of labels, for every k of the graph.

    Parameters
    ----------
    graph, labels, n_classes, class_weight
        As in :class:`~bayesknn.likelihood.Likelihood`.

    Examples
    --------
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import PseudoLikelihood
    >>> ripley = load_ripley()
    >>> graph = NeighborGraph.from_points(ripley.X_train, k_max=125)
    >>> likelihood = PseudoLikelihood(graph, ripley.y_train)
    >>> maximum = likelihood.maximize()
    >>> maximum.k, round(maximum.beta, 4), round(maximum.log_value, 4)
    (53, 2.2805, -71.7523)
    >>> round(likelihood.log_density(1.5, 15), 4)
    -79.0863
    """

    name = "pseudo"
    description = (
        "The product of each row's probability given all others stands for the likelihood (the "
        "pseudo-likelihood), which is the leave-one-out log score of the rule."
    )
    direction = "both"


def log_pseudo_likelihood(
    graph: NeighborGraph,
    labels: Any,
    beta: Any,
    k: Any = None,
    n_classes: int | None = None,
    class_weight: Any = None,
) -> np.ndarray | float:
    """Compute the log pseudo-likelihood at (beta, k), or at beta for every k.

    For many values on the same labels build a :class:`PseudoLikelihood` once.

    Parameters
    ----------
    graph, labels, n_classes, class_weight
        As in :class:`~bayesknn.likelihood.Likelihood`.
    beta : float or array-like
    k : int or array-like, optional
        Broadcast against ``beta``. Without it, every k from 1 to ``graph.k_max``.

    Returns
    -------
    float, or ndarray of the common shape of ``beta`` and ``k``
        Without ``k`` of shape ``(k_max,) + shape of beta``, entry k - 1 for k.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import log_pseudo_likelihood
    >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0], [7.0]], k_max=2)
    >>> round(log_pseudo_likelihood(graph, [0, 0, 0, 1], beta=1.0, k=2), 4)
    -1.843
    >>> log_pseudo_likelihood(graph, [0, 0, 0, 1], beta=1.0).round(4)
    array([-2.1819, -1.843 ])
    """
    likelihood = PseudoLikelihood(graph, labels, n_classes, class_weight)
    return likelihood.log_density_grid(beta) if k is None else likelihood.log_density(beta, k)


class HolmesAdamsLikelihood(ConditionalProduct):
    """The 2002 product likelihood of one set of labels, for every k of the graph.

    Parameters are those of :class:`PseudoLikelihood`.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import HolmesAdamsLikelihood
    >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0], [7.0]], k_max=2)
    >>> round(HolmesAdamsLikelihood(graph, [0, 0, 0, 1]).log_density(1.0, 2), 4)
    -2.253
    """

    name = "holmes-adams"
    description = (
        "The likelihood is Holmes and Adams' product, which is not the joint distribution of the "
        "labels under any model."
    )
    direction = "forward"
    # It counts k neighbours where the coherent model counts 2k on average, so that the same
    # strength of agreement is a beta twice as large.
    beta_scale: float = 2.0


@kernel
def _differentiate(deficits, strength):
    """Return the log product, its derivative in beta / k, and minus the second derivative."""
    rows, multiplicity, shortfall, largest = deficits
    decay = _tabulate_decay(rows, largest, strength)
    value = strength * shortfall
    derivative = -shortfall
    curvature = 0.0
    for m in range(np.uint64(rows.shape[0])):
        others = 0.0
        mean = 0.0
        square = 0.0
        for g in range(np.uint64(rows.shape[1])):
            deficit = float(rows[m, g])
            weight = _decay(rows[m, g], largest, strength, decay)
            others += weight
            weight *= deficit
            mean += weight
            square += weight * deficit
        value += multiplicity[m] * math.log1p(others)
        mean /= 1.0 + others
        derivative += multiplicity[m] * mean
        curvature += multiplicity[m] * (square / (1.0 + others) - mean * mean)
    return -value, derivative, curvature


@kernel
def _differentiate_each(deficits, strengths, scale):
    """Return the log product and its two derivatives in ``strength / scale``."""
    values = np.empty((3, strengths.size))
    for b in range(strengths.size):
        value, derivative, curvature = _differentiate(deficits, strengths[b])
        values[0, b] = value
        values[1, b] = scale * derivative
        values[2, b] = -scale * scale * curvature
    return values


@kernel
def _tabulate_decay(rows, largest, strength):
    """Tabulate ``exp(-strength * deficit)`` over the integers, where these are the fewer."""
    size = 0
    # A comparison with None is decided when the function is compiled.
    if largest is not None and largest < rows.size:
        size = largest + 1
    decay = np.empty(size)
    for d in range(size):
        decay[d] = math.exp(-strength * d)
    return decay


@kernel
def _decay(deficit, largest, strength, decay):
    """Read ``exp(-strength * deficit)`` from the table if there is one."""
    if largest is None:
        return math.exp(-strength * deficit)
    return decay[deficit] if decay.size > 0 else math.exp(-strength * deficit)


@kernel
def _find_peak(deficits, start, upper, small, precision):
    """Return the maximum over strengths in [0, upper], its height, its curvature, and if it is one.

    The search ends with a step below ``small`` times the strength, or below ``precision`` times
    the width of the peak, or with a slope that is zero but for rounding: so is every slope near a
    maximum at 0, where no step is small beside the strength.
    """
    low = 0.0
    high = upper
    low_is_known = high_is_known = False
    if deficits.shortfall == 0.0:
        # Nobody is outvoted: it rises for ever, if at all.
        _, derivative, _ = _differentiate(deficits, 0.0)
        strength = upper if derivative > 0.0 else 0.0
        bounded = min(strength, _HUGE)
        value, _, curvature = _differentiate(deficits, bounded)
        return strength, value, curvature, True
    strength = min(start, 0.5 * upper)
    value = derivative = curvature = 0.0
    for _ in range(200):
        value, derivative, curvature = _differentiate(deficits, strength)
        if derivative > 0.0:
            if strength >= upper:
                return upper, value, curvature, True
            low = strength
            low_is_known = True
        else:
            if strength <= 0.0:
                return 0.0, value, curvature, True
            high = strength
            high_is_known = True
        # Where the curvature vanishes Newton's step leaves the bracket.
        ceiling = high if high < math.inf else 4.0 * strength
        if curvature > 0.0:
            proposal = strength + derivative / curvature
        else:
            proposal = math.inf if derivative > 0.0 else -math.inf
        if proposal <= low and not low_is_known:
            proposal = 0.0
        elif proposal >= ceiling and not high_is_known:
            proposal = ceiling
        elif not low <= proposal <= ceiling:
            proposal = 0.5 * (low + ceiling)
        step = abs(proposal - strength)
        small_step = step <= small * strength or step * math.sqrt(curvature) <= precision
        if small_step or abs(derivative) <= _ROUNDING * deficits.shortfall:
            # What the step would still add, to second order.
            return proposal, value + 0.5 * abs(derivative) * step, curvature, True
        strength = proposal
    return strength, value, curvature, False
