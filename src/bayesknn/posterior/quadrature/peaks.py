"""The posterior of (beta, k) where log f(y | beta, k) is concave in beta (eqs. jointHA and psudoL).

A product of conditionals and a flat prior go in, log masses at nodes of beta come out. A product of
conditionals has one peak in beta for each k, found in a few steps of Newton's method. The nodes of
Gauss rules are placed around it, on panels that are short relative to its width. A k whose peak is
too low for all of the prior's mass to matter costs the search for its peak alone.

Where classes are separated log f rises to a plateau, and under a wide prior panels of equal length
do not follow both. Then panels are halved where that is needed, as for any other prior, which takes
several times the evaluations.
"""

from __future__ import annotations

import math

import numpy as np

from bayesknn.likelihood.conditionals import ConditionalProduct
from bayesknn.model.integration import N_PANELS, find_rough, place_nodes
from bayesknn.model.prior import Mass

# What is left out, in all, beside the best k: exp(-22) for each k, and as much for the tails. More
# costs k and range that hold nothing.
NEGLIGIBLE = 22.0
# Longest panel, in units of beta. However wide the prior is, likelihoods change over lengths of
# about one: longer panels step over that, shorter ones send more posteriors the slow way.
_LONGEST = 1.0


def weigh_peaks(
    likelihood: ConditionalProduct, masses: dict[int, Mass]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return each k that matters, panels over its mass, and the log masses at their nodes.

    None if the panels of some k would have to be halved.

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
        edges = _place_panels(likelihood, k, peaks[k], beta_max)
        nodes, widths = place_nodes(edges)
        log_density = likelihood.differentiate(nodes, k)[0] + masses[k].log_top
        if edges[1] - edges[0] > _LONGEST or find_rough(log_density, edges).any():
            return None
        weighed[k] = edges, log_density + np.log(widths)
        best = max(best, float(np.logaddexp.reduce(weighed[k][1])))
    kept = sorted(weighed)
    panels, log_masses = zip(*(weighed[k] for k in kept), strict=True)
    return np.array(kept), np.array(panels), np.array(log_masses)


def _place_panels(
    likelihood: ConditionalProduct, k: int, peak: tuple[float, float, float], beta_max: float
) -> np.ndarray:
    """Return the edges of panels over the range that matters.

    The range reaches to where log f is far below its peak, or to the ends of the prior.
    """
    beta, height, width = peak
    # By the curvature at the peak; a tail that falls more slowly is followed further.
    ends, widths = np.array([0.0, beta_max]), np.full(2, math.sqrt(2 * NEGLIGIBLE) * width)
    while True:
        domain = np.clip(beta + widths * [-1, 1], 0.0, beta_max)
        # Beyond a little less than what is negligible there is as little.
        heights = likelihood.differentiate(domain, k)[0] - height
        is_short = (heights > -0.85 * NEGLIGIBLE) & (domain != ends)
        if not is_short.any():
            return np.linspace(domain[0], domain[1], N_PANELS + 1)
        widths[is_short] *= 1.5
