"""The posterior of (beta, k) where log f(y | beta, k) is concave in beta (eqs. jointHA and psudoL).

A product of conditionals and a flat prior go in, log masses at nodes of beta come out. A product of
conditionals has one peak in beta for each k, found in a few steps of Newton's method. Around it log
f is so smooth that a Chebyshev series of low degree gives it at any node. A k whose peak is too low
for all of the prior's mass to matter costs the search for its peak alone.

Where classes are separated log f rises to a plateau, and under a wide prior no such series follows
both. Then plain panels are used instead, which are halved where that is needed. That would serve
everywhere, at 10 to 100 times the evaluations.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import Chebyshev

from bayesknn.likelihood.conditionals import ConditionalProduct
from bayesknn.model.integration import N_PANELS, integrate
from bayesknn.model.prior import Mass

# What is left out, in all, beside the best k: exp(-22) for each k, and as much for the tails. More
# costs k and range that hold nothing.
NEGLIGIBLE = 22.0


def weigh_peaks(
    likelihood: ConditionalProduct, masses: dict[int, Mass]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return each k that matters, panels over its mass, and the log masses at their nodes.

    None if log f of some k is no series of a degree that is worth its evaluations.

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
        # To a hundredth of a peak's width.
        peaks[k] = likelihood.find_peak(k, beta, beta_max, 0.01)
        beta = peaks[k][0] or beta
    # What the log mass of a k cannot exceed.
    bounds = {k: peaks[k][1] + mass.log_mass for k, mass in masses.items()}
    best, weighed = -np.inf, {}
    for k in sorted(bounds, key=lambda k: bounds[k], reverse=True):
        if bounds[k] < best - NEGLIGIBLE:
            break
        log_f = _fit(likelihood, k, peaks[k], beta_max)
        if log_f is None:
            return None
        edges = np.linspace(log_f.domain[0], log_f.domain[1], N_PANELS + 1)
        log_mass = integrate(log_f, edges)[1] + masses[k].log_top
        weighed[k] = edges, log_mass
        best = max(best, float(np.logaddexp.reduce(log_mass)))
    kept = sorted(weighed)
    panels, log_masses = zip(*(weighed[k] for k in kept), strict=True)
    return np.array(kept), np.array(panels), np.array(log_masses)


def _fit(
    likelihood: ConditionalProduct, k: int, peak: tuple[float, float, float], beta_max: float
) -> Chebyshev | None:
    """Return log f over the range that matters, or None where the highest degree is too low.

    The range reaches to where log f is far below its peak, or to the ends of the prior.
    """
    beta, height, width = peak

    def evaluate(points: np.ndarray) -> np.ndarray:
        return likelihood.differentiate(points, k)[0] - height

    # By the curvature at the peak; a tail that falls more slowly is followed further.
    ends, widths = np.array([0.0, beta_max]), np.full(2, math.sqrt(2 * NEGLIGIBLE) * width)
    while True:
        domain = np.clip(beta + widths * [-1, 1], 0.0, beta_max)
        # Beyond a little less than what is negligible there is as little.
        is_short = (evaluate(domain) > -0.85 * NEGLIGIBLE) & (domain != ends)
        if not is_short.any():
            break
        widths[is_short] *= 1.5
    # None of these is a point of interpolation: where all of those lie on a plateau, they show it.
    others = np.array([domain[0], beta, domain[1]])
    for degree in (32, 64):
        series = Chebyshev.interpolate(evaluate, degree, domain)
        error = np.abs(series(others) - evaluate(others)).max()
        if max(error, np.abs(series.coef[-degree // 4 :]).max()) <= 1e-8:
            return series + height
    return None
