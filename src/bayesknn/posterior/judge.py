"""Which k are behind, and whether the posterior of the others is precise (KERNELS, the race)."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

# Lever, relative to the longest, from which on a k moves the mean.
_COUNTS = 0.02


def find_behind(score: np.ndarray, doubt: np.ndarray, n_errors: int = 0) -> np.ndarray:
    """Return how far each k is behind the best in log posterior, at least.

    Parameters
    ----------
    score : ndarray of shape (n_replicates, n_k)
        The log posterior of k up to a constant; row 0 is the estimate.
    doubt : ndarray of shape (n_k,)
        What links leave to doubt on the way from some k to each: differences of it count.
    n_errors : int
        How many Monte Carlo errors to allow for.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.posterior.judge import find_behind
    >>> find_behind(np.array([[0.0, -5.0]]), doubt=np.array([0.0, 2.0])).tolist()
    [0.0, 3.0]
    """
    best = int(np.argmax(score[0]))
    error = (score - score[:, [best]]).std(axis=0)
    return score[0, best] - score[0] - n_errors * error - np.abs(doubt - doubt[best])


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
