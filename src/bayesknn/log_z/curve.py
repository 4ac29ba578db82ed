"""log Z as a function of beta at one k, in every replicate (Section 3.3).

Values at nodes go in, a function of beta comes out. Where chains do not cross between disordered
and ordered labels, ``Z`` is the sum of the two phases, each of which is smooth: a quintic spline
goes through log Z of each at its own nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline
from scipy.special import logsumexp


class Curve:
    """log Z along beta, through its values at nodes in each phase.

    Parameters
    ----------
    phases : sequence of (ndarray of shape (n_nodes,), ndarray of shape (n_replicates, n_nodes))
        Increasing beta, and log Z there.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.curve import Curve
    >>> beta = np.linspace(0.0, 2.0, 9)
    >>> Curve([(beta, beta[None] ** 3)])(np.array([0.3, 1.0])).round(6).tolist()
    [[0.027, 1.0]]
    """

    def __init__(self, phases: Sequence[tuple[np.ndarray, np.ndarray]]):
        self.phases = [
            make_interp_spline(nodes, values.T, k=min(5, len(nodes) - 1))
            for nodes, values in phases
        ]

    def __call__(self, beta: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Return log Z in some replicates, of shape (n_rows, n_betas)."""
        parts = [self.of_phase(at, beta, rows) for at in range(len(self.phases))]
        return parts[0] if len(parts) == 1 else np.logaddexp(*parts)

    def of_phase(self, at: int, beta: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Return log Z of one phase; beyond its nodes it goes on as a straight line.

        There it is next to nothing: the slope of the disordered phase is the smaller one.
        """
        spline = self.phases[at]
        spline = BSpline.construct_fast(spline.t, spline.c[:, rows], spline.k)
        inside = np.clip(beta, spline.t[0], spline.t[-1])
        values = spline(inside)
        if np.any(inside != beta):
            values = values + (beta - inside)[:, None] * spline(inside, 1)
        return values.T

    def derivatives(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return log Z and its first two derivatives within the nodes, (n_replicates, n_betas)."""
        log_z = np.array([self.of_phase(at, beta) for at in range(len(self.phases))])
        total = logsumexp(log_z, axis=0)
        inside = [np.clip(beta, spline.t[0], spline.t[-1]) for spline in self.phases]
        first, second = (
            np.array([s(at, order).T for s, at in zip(self.phases, inside, strict=True)])
            for order in (1, 2)
        )
        share = np.exp(log_z - total)
        mean = (share * first).sum(axis=0)
        return total, mean, (share * (second + (first - mean) ** 2)).sum(axis=0)
