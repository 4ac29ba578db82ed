"""What draws of labels at one k say of another k (Section 3.3; importance sampling).

Draws at (beta, k) give ``log Z(beta, k') - log Z(beta, k) = log E[exp(D)]`` with
``D = beta / k' * S_k' - beta / k * S_k``, and by the same weights exp(D) the moments of S_k'.
Means are taken given the clusters, which has less noise; what exp(D) adds to its mean comes from
the labels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel

# Series that are averaged for every k: S / k given the clusters, S / k, and exp(D) times 1, S / k
# and its square.
N_SERIES = 5
# Draws that are so far from another k say nothing of it; this keeps them from overflowing.
_MAX_EXPONENT = 300.0


class Reweighted(NamedTuple):
    """What the draws say of each k, in every replicate: arrays of shape (n_replicates, n_columns).

    Attributes
    ----------
    log_ratio : ndarray
        log Z at this k less that at the draws' own, at the same beta.
    mean, variance : ndarray
        Of S_k / k.
    """

    log_ratio: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


def average_reweighted(
    of_labels: np.ndarray,
    of_clusters: np.ndarray,
    columns: np.ndarray,
    centre: np.ndarray,
    own: int,
    beta: float,
    n_batches: int,
) -> np.ndarray:
    """Average the series that :func:`read_reweighted` needs over batches of records.

    Parameters
    ----------
    of_labels, of_clusters : ndarray of shape (n_chains, n_records, n_columns)
        S of the labels, and given the clusters.
    columns : ndarray of shape (n_columns,)
        The k of each column.
    centre : ndarray of shape (n_columns,)
        Constants near S_k / k, for the sake of rounding.
    own : int
        The column of the draws' own k.
    beta : float
    n_batches : int
        A divisor of the number of records.

    Returns
    -------
    ndarray of shape (n_chains, n_batches, n_columns, N_SERIES)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.reweighting import average_reweighted
    >>> records = np.array([[[6.0, 9.0], [4.0, 8.0]]])
    >>> args = np.array([1, 2]), np.array([5.0, 4.0]), 0, 1.0
    >>> average_reweighted(records, records, *args, n_batches=1)[0, 0, :, :2].tolist()
    [[0.0, 0.0], [0.25, 0.25]]
    """
    batches = np.zeros((len(of_labels), n_batches, len(columns), N_SERIES))
    _average(of_labels, of_clusters, columns, centre, own, beta, batches)
    return batches


def read_reweighted(averages: np.ndarray, own: int, beta: float, centre: np.ndarray) -> Reweighted:
    """Turn averages of shape (n_replicates, n_columns, N_SERIES) into moments.

    Examples
    --------
    The own k is not reweighted:

    >>> import numpy as np
    >>> from bayesknn.log_z.reweighting import read_reweighted
    >>> averages = np.array([[[0.5, 0.4, 1.0, 0.4, 1.0]]])
    >>> found = read_reweighted(averages, own=0, beta=1.0, centre=np.array([7.0]))
    >>> [round(float(part[0, 0]), 6) for part in found]
    [0.0, 7.5, 0.84]
    """
    of_clusters, x, ratio, weighted, weighted_square = np.moveaxis(averages, -1, 0)
    first = averages[0, :, 2]
    # Replicates enter to first order around row 0: an inflated one may make a ratio or a variance
    # negative, and its logarithm or quotient would then say nothing of the error.
    d_ratio = (ratio - first) / first
    cleared = centre + of_clusters - x
    log_ratio = np.log(first) + d_ratio + beta * (cleared - cleared[:, [own]])
    mean0, square0 = weighted[0] / first, weighted_square[0] / first
    d_mean = weighted / first - mean0 * (1 + d_ratio)
    d_square = weighted_square / first - square0 * (1 + d_ratio)
    variance = square0 - mean0**2 + d_square - 2 * mean0 * d_mean
    return Reweighted(log_ratio, cleared + mean0 + d_mean, variance)


@kernel
def _average(of_labels, of_clusters, columns, centre, own, beta, batches):
    n_chains, n_records, n_columns = of_labels.shape
    length = n_records // batches.shape[1]
    for chain in range(n_chains):
        for t in range(length * batches.shape[1]):
            batch = batches[chain, t // length]
            row, cluster_row = of_labels[chain, t], of_clusters[chain, t]
            of_own = row[own] / columns[own] - centre[own]
            for c in range(n_columns):
                x = row[c] / columns[c] - centre[c]
                ratio = 1.0 if c == own else math.exp(min(beta * (x - of_own), _MAX_EXPONENT))
                batch[c, 0] += cluster_row[c] / columns[c] - centre[c]
                batch[c, 1] += x
                batch[c, 2] += ratio
                batch[c, 3] += ratio * x
                batch[c, 4] += ratio * x * x
    batches /= length
