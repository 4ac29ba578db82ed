"""log Z along beta between pairs of chains: quintic splines in every replicate (Section 3.3).

``d log Z / d beta`` is ``E[S_k] / k`` and its derivative is ``Var[S_k] / k**2``, so that each node
knows value, slope and curvature of log Z: six numbers for an interval, as many as a quintic has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import BPoly, PPoly


class Curve:
    """log Z as a function of beta, for any number of replicates and k at once.

    Parameters
    ----------
    betas : ndarray of shape (n_nodes,)
        Increasing.
    values, means, slopes : ndarray of shape (..., n_nodes)
        log Z, its derivative E[S_k] / k, and the derivative of that, Var[S_k] / k**2.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.curve import Curve
    >>> x = np.array([0.0, 2.0])
    >>> Curve(x, x**3, 3 * x**2, 6 * x)(np.array([0.0, 1.0]))
    array([0., 1.])
    """

    def __init__(
        self, betas: np.ndarray, values: np.ndarray, means: np.ndarray, slopes: np.ndarray
    ):
        self.betas, self.values = betas, values
        derivatives = np.moveaxis(np.stack([values, means, slopes]), -1, 0)
        # Powers are evaluated several times as fast as Bernstein's basis.
        self.spline = PPoly.from_bernstein_basis(BPoly.from_derivatives(betas, derivatives))

    def select(self, index: Any) -> Curve:
        """Return the curve of some replicates or k, an index into the leading axes."""
        chosen = object.__new__(Curve)
        chosen.betas, chosen.values = self.betas, self.values[index]
        index = index if isinstance(index, tuple) else (index,)
        coefficients = self.spline.c[(slice(None), slice(None), *index)]
        chosen.spline = PPoly.construct_fast(coefficients, self.betas)
        return chosen

    def __call__(self, beta: np.ndarray) -> np.ndarray:
        """Return log Z, of shape (..., n_betas); beyond the nodes that of the nearest."""
        return self.derivatives(beta, 1)[0]

    def derivatives(self, beta: np.ndarray, n: int = 3) -> list[np.ndarray]:
        """Return log Z and the first of its derivatives, each of shape (..., n_betas)."""
        inside = np.clip(beta, self.betas[0], self.betas[-1])
        return [np.moveaxis(self.spline(inside, nu), 0, -1) for nu in range(n)]


class Coexistence:
    """log Z = log(Z_disordered + Z_ordered) where chains do not cross from one to the other.

    Parameters
    ----------
    disordered, ordered : Curve
        Each in its own range of beta; beyond it, that part of Z is nothing.
    """

    def __init__(self, disordered: Curve, ordered: Curve):
        self.branches = (disordered, ordered)

    def select(self, index: Any) -> Coexistence:
        """Return the curve of some replicates or k, an index into the leading axes."""
        return Coexistence(*(branch.select(index) for branch in self.branches))

    def __call__(self, beta: np.ndarray) -> np.ndarray:
        """Return log Z, of shape (..., n_betas)."""
        return self.derivatives(beta, 1)[0]

    def derivatives(self, beta: np.ndarray, n: int = 3) -> list[np.ndarray]:
        """Return log Z and the first of its derivatives, each of shape (..., n_betas)."""
        low, high = (branch.derivatives(beta, n) for branch in self.branches)
        low[0] = np.where(beta > self.branches[0].betas[-1], -np.inf, low[0])
        high[0] = np.where(beta < self.branches[1].betas[0], -np.inf, high[0])
        total = np.logaddexp(low[0], high[0])
        share = np.exp(low[0] - total)
        mixed = [share * a + (1 - share) * b for a, b in zip(low[1:], high[1:], strict=True)]
        if n > 2:
            mixed[1] = mixed[1] + share * (1 - share) * (low[1] - high[1]) ** 2
        return [total, *mixed]
