"""The posterior of (beta, k) where log f(y | beta, k) is concave in beta (eqs. jointHA and psudoL).

A product of conditionals and a flat prior go in, log masses at nodes of beta come out. A product of
conditionals has one peak in beta for each k, found in a few steps of Newton's method. Around it log
f is so smooth that a polynomial gives it at any node: one that has its value, slope and curvature
at a handful of Chebyshev points, twice as many until the last coefficients vanish. A k costs five
or nine evaluations of the likelihood, and none but the search for its peak where the height of its
peak, times all of the prior's mass, is still too small to matter.

Where classes are separated log f rises to a plateau, and under a wide prior no polynomial follows
both. Then plain panels are used instead, which are halved where that is needed.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.polynomial.chebyshev import chebder, chebvander

from bayesknn.likelihood.conditionals import ConditionalProduct
from bayesknn.model.integration import N_PANELS, place_nodes
from bayesknn.model.prior import Mass

# What is left out, in all, beside the best k: exp(-22) for each k, and as much for the tails.
NEGLIGIBLE = 22.0
# Error of a peak's place in units of its width, and error allowed on log f.
_PRECISION, _TOLERANCE = 0.01, 1e-8
# Part of the drop that must be reached: the tails beyond hold little.
_SLACK = 0.85
# Intervals between Chebyshev points, first and last.
_FEWEST, _MOST = 4, 32


def weigh_peaks(
    likelihood: ConditionalProduct, masses: dict[int, Mass]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return each k that matters, panels over its mass, and the log masses at their nodes.

    None if log f of some k is no polynomial of a degree that is worth its evaluations.

    Parameters
    ----------
    likelihood : ConditionalProduct
    masses : dict of int to Mass
        Of a prior that is flat in beta at every k.

    Returns
    -------
    k_values : ndarray of shape (n_k,)
    edges : ndarray of shape (n_k, n_panels + 1)
    log_mass : ndarray of shape (n_k, 8 * n_panels)
    """
    beta_max = next(iter(masses.values())).high
    peaks, beta = {}, min(1.0, beta_max / 2)
    for k in masses:
        peaks[k] = likelihood.find_peak(k, beta, beta_max, _PRECISION)
        beta = peaks[k][0] or beta
    # What the log mass of a k cannot exceed.
    bounds = {k: peaks[k][1] + mass.log_mass for k, mass in masses.items()}
    best, weighed = -np.inf, {}
    for k in sorted(bounds, key=lambda k: bounds[k], reverse=True):
        if bounds[k] < best - NEGLIGIBLE:
            break
        low, high, coefficients = _fit(likelihood, k, peaks[k], beta_max)
        if coefficients is None:
            return None
        edges = np.linspace(low, high, N_PANELS + 1)
        log_f = peaks[k][1] + coefficients @ _basis(len(coefficients))
        log_mass = log_f + np.log(place_nodes(edges)[1]) + masses[k].log_top
        weighed[k] = edges, log_mass
        best = max(best, float(np.logaddexp.reduce(log_mass)))
    kept = sorted(weighed)
    panels, log_masses = zip(*(weighed[k] for k in kept), strict=True)
    return np.array(kept), np.array(panels), np.array(log_masses)


def _fit(
    likelihood: ConditionalProduct, k: int, peak: tuple[float, float, float], beta_max: float
) -> tuple[float, float, np.ndarray | None]:
    """Return a range of beta, and Chebyshev coefficients there of log f beside its peak.

    The range reaches to where log f is far below its peak, or to the ends of the prior. There are
    no coefficients where the most are too few.
    """
    beta, height, width = peak

    def evaluate(points: np.ndarray) -> np.ndarray:
        """Return log f beside its peak and two derivatives, at points of [0, 1]."""
        values = likelihood.differentiate(low + (high - low) * points, k)
        values[0] -= height
        # Derivatives on [-1, 1], where the polynomial lives.
        return values * ((high - low) / 2) ** np.arange(3)[:, None]

    # By the curvature at the peak; a tail that falls more slowly is followed further.
    below = above = min(math.sqrt(2 * NEGLIGIBLE) * width, beta_max)
    while True:
        low, high = max(beta - below, 0.0), min(beta + above, beta_max)
        values = evaluate(_chebyshev(_FEWEST))
        if low > 0.0 and values[0, 0] > -_SLACK * NEGLIGIBLE:
            below *= 1.5
        elif high < beta_max and values[0, -1] > -_SLACK * NEGLIGIBLE:
            above *= 1.5
        else:
            break
    n = _FEWEST
    while True:
        coefficients = _fit_matrix(n) @ values.ravel()
        if np.abs(coefficients[-max(2, len(coefficients) // 4) :]).max() <= _TOLERANCE:
            return low, high, coefficients
        if n == _MOST:
            return low, high, None
        n, known = 2 * n, values
        values = np.empty((3, n + 1))
        values[:, ::2], values[:, 1::2] = known, evaluate(_chebyshev(n)[1::2])


@cache
def _chebyshev(n: int) -> np.ndarray:
    """Chebyshev's points of the second kind on [0, 1], rising; those of n are among those of 2n."""
    points = (1 - np.cos(np.pi * np.arange(n + 1) / n)) / 2
    points[[0, -1]] = 0.0, 1.0
    return points


@cache
def _fit_matrix(n: int) -> np.ndarray:
    """Return what gives Chebyshev's coefficients from values, slopes and curvatures at the points.

    All values come first, then all slopes; the polynomial has one coefficient for each of them.
    """
    x, size = 2 * _chebyshev(n) - 1, 3 * (n + 1)
    return np.linalg.inv(
        np.vstack([chebvander(x, size - 1 - m) @ chebder(np.eye(size), m) for m in range(3)])
    )


@cache
def _basis(size: int) -> np.ndarray:
    """Return Chebyshev's polynomials, a row each, at the nodes of even panels of [-1, 1]."""
    return chebvander(place_nodes(np.linspace(-1.0, 1.0, N_PANELS + 1))[0], size - 1).T
