"""log Z along beta at one k, with its derivatives, in every replicate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn.likelihood.path.hermite import differentiate, evaluate, quintic

# The estimate itself, and resampled versions of it whose spread is the Monte Carlo error.
N_REPLICATES = 1 + 64


class Curve(NamedTuple):
    """log Z at the nodes of one k; row 0 of each array is the estimate, the others replicates.

    Attributes
    ----------
    betas : ndarray of shape (n_nodes,)
        Increasing, from 0.
    values, means, slopes : ndarray of shape (n_replicates, n_nodes)
        log Z, its derivative E[S_k] / k, and the derivative of that, Var[S_k] / k**2.
    """

    betas: np.ndarray
    values: np.ndarray
    means: np.ndarray
    slopes: np.ndarray

    def move_to(self, betas: np.ndarray) -> Curve:
        """Return the same curve on other nodes.

        On any nodes that contain the old ones it is the same curve, to rounding.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesknn.likelihood.path.curve import Curve
        >>> x = np.array([0.0, 2.0])
        >>> curve = Curve(x, *(derivative[None] for derivative in (x**3, 3 * x**2, 6 * x)))
        >>> curve.move_to(np.array([0.0, 1.0])).values
        array([[0., 1.]])
        """
        coefficients = quintic(self.betas, self.values, self.means, self.slopes)
        derivatives = []
        for _ in range(3):
            derivatives.append(evaluate(self.betas, coefficients, betas))
            coefficients = differentiate(self.betas, coefficients)
        return Curve(betas, *derivatives)

    def error(self) -> np.ndarray:
        """Return the standard error of log Z at the nodes, or next to them where it is larger."""
        x, m, v = (rows[1:] for rows in self[1:])
        step = np.diff(self.betas)
        middle = (x[:, :-1] + x[:, 1:]) / 2 + 5 * step * (m[:, :-1] - m[:, 1:]) / 32
        middle += step**2 * (v[:, :-1] + v[:, 1:]) / 64
        between = middle.std(axis=0)
        around = np.maximum(np.append(0.0, between), np.append(between, 0.0))
        return np.maximum(x.std(axis=0), around)


def mix(left: Curve, right: Curve, share: float) -> Curve:
    """Return ``(1 - share) * left + share * right``, two estimates of one curve on equal nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.likelihood.path.curve import Curve, mix
    >>> low, high = (Curve(np.zeros(1), *np.full((3, 1, 1), value)) for value in (1.0, 2.0))
    >>> mix(low, high, 0.25).values
    array([[1.25]])
    """
    rows = ((1 - share) * a + share * b for a, b in zip(left[1:], right[1:], strict=True))
    return Curve(left.betas, *rows)
