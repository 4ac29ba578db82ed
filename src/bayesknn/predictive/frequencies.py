"""Class frequencies that differ from the sample's: an offset of the log odds.

Where class g makes up p_g of what is to be predicted and n_g / n of the sample, its odds are
multiplied by ``a_g = p_g n / n_g``, which is Bayes' rule for places that are distributed alike
within each class. The paper puts the same a_g inside the likelihood instead.
"""

from __future__ import annotations

import numpy as np


def shift_probabilities(probabilities: np.ndarray, ratios: np.ndarray | None) -> np.ndarray:
    """Multiply the odds of each class.

    Parameters
    ----------
    probabilities : ndarray of shape (m, n_classes)
    ratios : ndarray of shape (n_classes,) or None
        The a_g.

    Returns
    -------
    ndarray of shape (m, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive.frequencies import shift_probabilities
    >>> shift_probabilities(np.array([[0.5, 0.5]]), np.array([1.8, 0.2])).tolist()
    [[0.9, 0.1]]
    """
    if ratios is None:
        return probabilities
    shifted = probabilities * ratios
    shifted /= shifted.sum(axis=-1, keepdims=True)
    return shifted


def shift_intervals(
    intervals: np.ndarray, probabilities: np.ndarray, ratios: np.ndarray | None
) -> np.ndarray:
    """Move the ends of intervals on the logit scale as the probabilities inside them move.

    Against all other classes together, whose mean ratio is r_g, the odds of class g are multiplied
    by a_g / r_g. With more than two classes that is not a_g alone.

    Parameters
    ----------
    intervals : ndarray of shape (m, n_classes, 2)
    probabilities : ndarray of shape (m, n_classes)
        Before the shift, inside the intervals.
    ratios : ndarray of shape (n_classes,) or None

    Returns
    -------
    ndarray of shape (m, n_classes, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive.frequencies import shift_intervals
    >>> ends, p = np.array([[[0.25, 0.75], [0.25, 0.75]]]), np.array([[0.5, 0.5]])
    >>> shift_intervals(ends, p, np.array([1.8, 0.2])).round(4).tolist()
    [[[0.75, 0.9643], [0.0357, 0.25]]]
    """
    if ratios is None:
        return intervals
    others = (probabilities @ ratios)[..., None] - ratios * probabilities
    rest = np.maximum(1.0 - probabilities, 0.0)
    mean_ratio = np.divide(others, rest, out=np.ones_like(rest), where=rest > 1e-12)
    # An empty rest has no ratio of its own; its odds are infinite either way.
    factor = (ratios / np.maximum(mean_ratio, 1e-300))[..., None]
    return factor * intervals / (factor * intervals + (1.0 - intervals))
