"""Where the posterior of (beta, k) is, and how well log Z must be known there.

Under a uniform prior ``log P(k | y)`` is the log of the integral of
``exp(beta / k * S_k(y) - log Z(beta, k))`` over beta, up to a constant. An error in log Z matters
in proportion to the share of the posterior that it moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from bayesknn.likelihood.path.curve import Curve
from bayesknn.likelihood.path.hermite import evaluate, quintic

_N_BETAS = 201
# A value of beta this far below the best of its k in log posterior does not matter.
_DEPTH = 8.0
# From this far behind the best k on, larger errors are allowed.
_BEHIND = 5.0


class Focus(NamedTuple):
    """The posterior as far as log Z is known.

    Attributes
    ----------
    scores : ndarray of shape (n_replicates, n_k)
        log P(k | y) up to a constant; row 0 is the estimate.
    low, high : ndarray of shape (n_k,)
        Between which beta the mass of each k is.
    """

    scores: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def k_probabilities(self) -> np.ndarray:
        """Return P(k | y) for each k, in every replicate."""
        return np.exp(self.scores - logsumexp(self.scores, axis=1, keepdims=True))

    def allow(self, at: int, betas: np.ndarray, tolerance: float) -> np.ndarray:
        """Return the error allowed at each of these beta, for the k that stands at ``at``."""
        first = np.searchsorted(betas, self.low[at], side="right") - 1
        last = np.searchsorted(betas, self.high[at], side="left")
        behind = self.scores[0].max() - self.scores[0, at]
        allowed = np.full(len(betas), np.inf)
        allowed[max(first, 0) : last + 1] = tolerance * np.exp(
            np.clip((behind - _BEHIND) / 2, 0, 50)
        )
        return allowed


def find_focus(curves: dict[int, Curve], observed: np.ndarray, beta_max: float) -> Focus:
    """Compute the posterior under a uniform prior from log Z as it is known so far.

    Parameters
    ----------
    curves : dict of int to Curve
        By k.
    observed : ndarray of shape (k_max,)
        S_k of the labels.
    beta_max : float

    Returns
    -------
    Focus
        Columns are in the order of ``curves``.
    """
    scores, low, high = [], [], []
    for k, curve in curves.items():
        coefficients = quintic(*curve)
        slope = observed[k - 1] / k
        betas = np.linspace(0.0, beta_max, _N_BETAS)
        for _ in range(3):
            # Each time a finer grid over the cells that hold the mass.
            height = slope * betas - evaluate(curve.betas, coefficients[0], betas)
            heavy = np.flatnonzero(height > height.max() - _DEPTH)
            first, last = betas[max(heavy[0] - 1, 0)], betas[min(heavy[-1] + 1, _N_BETAS - 1)]
            betas = np.linspace(first, last, _N_BETAS)
        height = slope * betas - evaluate(curve.betas, coefficients, betas)
        scores.append(logsumexp(height, axis=1) + np.log(betas[1] - betas[0]))
        low.append(first)
        high.append(last)
    return Focus(np.array(scores).T, np.array(low), np.array(high))
