"""The coherent likelihood with its exact normalising constant (Section 2.2, eq. knn).

``log f(y | beta, k) = beta / k * S_k(y) - log Z(beta, k)``, with log Z by variable elimination:
for graphs whose width allows it, such as small ones, or real ones at small k. It is what the
samplers of the posterior are tested against, so log Z is kept for reuse: for each k it is
interpolated in beta by Chebyshev polynomials on [0, 1], [1, 2], [2, 4], [4, 8], ..., each computed
when it is first asked for. log Z is analytic in beta, so a modest degree reaches rounding error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate

from bayesknn._utils.jit import kernel
from bayesknn.graph import NeighborGraph, find_components
from bayesknn.likelihood.base import BaseLikelihood
from bayesknn.model import expected_agreement_exact, log_normalizer_exact
from bayesknn.model.checks import check_betas

# The degree is doubled until the last coefficients are as small as the rounding of log Z.
_FIRST_DEGREE = 32
_LAST_DEGREE = 1024
_ROUNDING = 1e-14


class ExactLikelihood(BaseLikelihood):
    """The coherent likelihood of one set of labels, for every k of the graph.

    Parameters
    ----------
    graph : NeighborGraph
        Its induced width must allow exact elimination at every k that is asked for; the error
        message tells the width where it does not.
    labels : array-like of shape (n,)
        Integers in ``0..n_classes - 1``.
    n_classes : int, optional
        By default the largest label plus one.
    class_weight : array-like of shape (n_classes,), optional
        The weights a_g: a directed edge within class g counts a_g in place of 1.

    Examples
    --------
    On a ring of n points and one neighbour, ``Z = (e^beta + 1)^n + (e^beta - 1)^n``:

    >>> from math import e, log
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import ExactLikelihood
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> likelihood = ExactLikelihood(ring, [0, 0, 0, 1, 1])
    >>> round(likelihood.log_density(1.0, 1), 6)
    -3.587164
    >>> round(3 - log((e + 1) ** 5 + (e - 1) ** 5), 6)
    -3.587164
    """

    coherent = True

    def __init__(
        self,
        graph: NeighborGraph,
        labels: Any,
        n_classes: int | None = None,
        class_weight: Any = None,
    ):
        super().__init__(graph, labels, n_classes, class_weight)
        self._agreement = self.model.agreement(self.labels).tolist()
        self._panels: dict[tuple[int, int], np.ndarray] = {}

    def log_normalizer(self, beta: Any, k: int) -> Any:
        """Return log Z(beta, k) of the graph, from what is kept.

        Parameters
        ----------
        beta : float or array-like
        k : int

        Returns
        -------
        float, or ndarray of the shape of ``beta``
        """
        betas = check_betas(beta)
        k = self._check_k(k)
        values = np.array([self._log_normalizer_at(b, k) for b in betas.ravel().tolist()])
        return float(values[0]) if betas.ndim == 0 else values.reshape(betas.shape)

    def _log_normalizer_at(self, beta: float, k: int) -> float:
        # beta = m * 2**panel with m in [1/2, 1), so that panel 1 is [1, 2).
        panel = max(math.frexp(beta)[1], 0)
        coefficients = self._panels.get((k, panel))
        if coefficients is None:
            coefficients = self._panels[k, panel] = self._interpolate(k, panel)
        low, high = _ends(panel)
        return _sum_chebyshev(coefficients, (2.0 * beta - low - high) / (high - low))

    def _log_density_at(self, beta: float, k: int) -> float:
        return beta / k * self._agreement[k - 1] - self._log_normalizer_at(beta, k)

    def _log_density_curve(self, betas: np.ndarray, k: int) -> np.ndarray:
        return np.array([self._log_density_at(beta, k) for beta in betas.tolist()])

    def _interpolate(self, k: int, panel: int) -> np.ndarray:
        """Return the Chebyshev coefficients of log Z on a panel."""
        low, high = _ends(panel)

        def log_z(x: Any) -> Any:
            betas = 0.5 * (low + high + (high - low) * x)
            return log_normalizer_exact(self.graph, betas, k, self.n_classes, self.class_weight)

        degree = _FIRST_DEGREE
        while True:
            coefficients = chebinterpolate(log_z, degree)
            tail = np.abs(coefficients[-4:]).max()
            if tail <= _ROUNDING * np.abs(coefficients).max() or degree >= _LAST_DEGREE:
                return coefficients
            degree *= 2

    def _climb_each_k(self, upper: float) -> Iterator[tuple[float, float, bool]]:
        for k in range(1, self.k_max + 1):
            yield self._climb(k, upper)

    def _climb(self, k: int, upper: float) -> tuple[float, float, bool]:
        """Return (beta, log value, at the bound): where E[S_k] at beta is the observed S_k."""
        from scipy.optimize import brentq

        def slope(beta: float) -> float:
            mean = expected_agreement_exact(
                self.graph, beta, k, self.n_classes, class_weight=self.class_weight
            )
            return self._agreement[k - 1] - mean

        if slope(0.0) <= 0.0:
            return 0.0, self._log_density_at(0.0, k), False
        heaviest = 1.0 if self.class_weight is None else self.class_weight.max()
        if self._agreement[k - 1] >= self.n_points * k * heaviest * (1.0 - _ROUNDING):
            if upper == math.inf:
                return upper, -self._log_modes(k), True
            return upper, self._log_density_at(upper, k), True
        high = min(1.0, upper)
        while slope(high) > 0.0:
            if high == upper:
                return upper, self._log_density_at(upper, k), True
            high = min(2.0 * high, upper)
        beta = brentq(slope, 0.0, high, xtol=1e-12, rtol=1e-12)
        return beta, self._log_density_at(beta, k), False

    def _log_modes(self, k: int) -> float:
        """Return the log of the number of labellings that share the largest S_k."""
        n_components = int(find_components(self.graph.neighbors[:k]).max()) + 1
        n_heaviest = self.n_classes
        if self.class_weight is not None:
            n_heaviest = int(np.sum(self.class_weight == self.class_weight.max()))
        return n_components * math.log(n_heaviest)


def _ends(panel: int) -> tuple[float, float]:
    return (0.0, 1.0) if panel == 0 else (2.0 ** (panel - 1), 2.0**panel)


@kernel
def _sum_chebyshev(coefficients, x):
    """Sum the series at x in [-1, 1] by Clenshaw's recurrence."""
    last = 0.0
    before = 0.0
    for degree in range(coefficients.size - 1, 0, -1):
        last, before = coefficients[degree] + 2.0 * x * last - before, last
    return coefficients[0] + x * last - before
