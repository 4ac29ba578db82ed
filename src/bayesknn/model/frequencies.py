"""What the class frequencies alone say about the labels: the null model, without neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln


def log_evidence_of_frequencies(class_sizes: Any) -> float:
    """Return the log probability of the labels if they depend on class frequencies only.

    Labels are independent, with unknown frequencies that are uniform on the simplex: the evidence
    is ``(G - 1)! prod(n_g!) / (n + G - 1)!``.

    Examples
    --------
    Two labels: equal in two cases of three.

    >>> import numpy as np
    >>> from bayesknn.model import log_evidence_of_frequencies
    >>> round(float(np.exp(log_evidence_of_frequencies([2, 0]))), 6)
    0.333333
    """
    sizes = np.asarray(class_sizes)
    return float(gammaln(len(sizes)) + gammaln(sizes + 1).sum() - gammaln(sizes.sum() + len(sizes)))


def frequencies_of_others(class_sizes: Any) -> np.ndarray:
    """Return the probability of a label of each class given all others, in the same model.

    It is ``n_g / (n + G - 1)``. Their log, summed over the points, is what a pseudo-likelihood or a
    leave-one-out log score has to beat.

    Examples
    --------
    >>> from bayesknn.model.frequencies import frequencies_of_others
    >>> frequencies_of_others([2, 1]).tolist()
    [0.5, 0.25]
    """
    sizes = np.asarray(class_sizes)
    return sizes / (sizes.sum() + len(sizes) - 1)
