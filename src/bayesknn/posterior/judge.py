"""Whether the posterior of k is precise enough, and if not, where to work (KERNELS, the race)."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

# Lever, relative to the longest, from which on a k moves the mean.
_COUNTS = 0.02


def judge(ks: np.ndarray, score: np.ndarray, tolerance: float) -> tuple[float, np.ndarray]:
    """Compare the errors with what is allowed, given the log posterior of k in every replicate.

    Returns
    -------
    excess : float
        The largest of the errors of log posterior and mean of k, as a multiple of what is allowed.
    imprecise : ndarray of int
        The places of the k that more work should be done for.
    """
    shares = softmax(score, axis=1)
    share = shares[0]
    # An error common to all k changes nothing, and one on a small share little.
    error = (score - score @ share[:, None]).std(axis=0) * np.sqrt(share / share.max())
    means = shares @ ks
    sd = np.sqrt(share @ (ks - means[0]) ** 2)
    of_mean = means.std() / (max(sd, 1.0) / 3)
    imprecise = error > tolerance / 2
    if of_mean > tolerance:
        # A long tail moves the mean more than its share tells.
        lever = share * np.abs(ks - means[0])
        imprecise |= lever > _COUNTS * lever.max()
    return float(max(error.max(), of_mean) / tolerance), np.flatnonzero(imprecise)
