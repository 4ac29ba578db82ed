"""Bounds on the posterior of k that need no simulation (Section 3.3; Jensen's inequality).

log Z is at least that of one class everywhere, ``beta * n * a``, and at least ``n log G`` plus beta
times the mean of S_k / k over uniform labels. So the posterior of k is at most that of the larger
of the two. At a first-order transition, where chains stay on one side and log Z between
neighbouring k cannot be simulated, that is close enough to the truth to tell which k cannot win.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from bayesknn.posterior.curves import integrate_from_zero
from bayesknn.posterior.pillars import BEHIND, N_REPLICATES, Pilot

if TYPE_CHECKING:
    from bayesknn.posterior.ridge import RidgeWalk

_N_BETAS = 801
# Chains from one class and from random labels that are further apart than this share of the edges
# after a short run either have a transition between them or are slow.
_APART = 0.1
# Of log Z at the k that the others are compared with, the error that will do.
_ROUGH = 2.0


def bound_posterior(walk: RidgeWalk, k: int) -> float:
    """Return an upper bound on the log of the posterior of k, not normalised."""
    field = walk.field
    n = field.neighbors.shape[1]
    weights = field.class_weight
    if weights is None:
        weights = np.full(field.n_classes, field.unit)
    beta = np.linspace(*walk.limits[k], _N_BETAS)
    alike = beta * n * weights.max()
    mixed = n * np.log(field.n_classes) + beta * n * weights.mean() / field.n_classes
    log_posterior = walk.log_weight(k)(beta) - np.maximum(alike, mixed)
    return float(logsumexp(log_posterior) + np.log(beta[1] - beta[0]))


def find_possible(
    walk: RidgeWalk, pilots: list[Pilot], score: np.ndarray
) -> tuple[int, int] | None:
    """Say which pilots may still win where some of them seem to be at a first-order transition.

    Parameters
    ----------
    walk : RidgeWalk
    pilots : list of Pilot
        In increasing k.
    score : ndarray of shape (n_pilots,)
        Their log posterior up to a constant. Beyond a pilot at a transition it tells nothing.

    Returns
    -------
    first, last : int, or None
        Places of the first and the last of them; None if no transition was seen, or if it lies on
        the way from beta = 0 as well.
    """
    split = np.array([pilot.node.distance() > _APART for pilot in pilots])
    if not split.any() or split.all():
        return None
    bounds = np.array([bound_posterior(walk, pilot.node.k) for pilot in pilots])
    start = int(np.argmax(np.where(split, -np.inf, bounds)))
    # As far as no transition lies between.
    walls = np.flatnonzero(split)
    low = max(walls[walls < start], default=-1) + 1
    high = min(walls[walls > start], default=len(pilots))
    best = low + int(np.argmax(score[low:high]))
    anchor = pilots[best]
    log_z, is_split = integrate_from_zero(
        anchor.node, walk, _ROUGH, float(sum(walk.spent)), N_REPLICATES
    )
    if is_split:
        return None
    log_posterior = anchor.mass - log_z
    possible = np.flatnonzero(bounds > log_posterior[0] - BEHIND - 4 * log_posterior.std())
    return min(int(possible[0]), best), max(int(possible[-1]), best)
