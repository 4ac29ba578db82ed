"""Leave-one-out class probabilities without fitting anew (eq. knn-cond, reweighted).

At one (beta, k) the probabilities of point i given all other labels are its full conditional. The
law of (beta, k) has seen the label y_i, too, so each node j counts ``w_j / p_j(y_i)`` in place of
w_j, which takes y_i's factor out again: exactly for the coherent model, and up to its part in the
neighbours' factors for a product of conditionals. The odds of class g against y_i are then the
posterior mean of the odds::

    p(g | y_-i) / p(y_i | y_-i) = sum_j w_j exp(b_j (a_g count_g - a_y count_y)),   b = beta / k

A label that its neighbours contradict moves the law of (beta, k) most; the share of the posterior
that its reweighted nodes are worth (Kish) says how far the identity can be trusted.
"""

from __future__ import annotations

import math

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.threads import run_in_threads
from bayesknn.predictive.averages import POINTS_A_TASK, _rank_classes, weights_or_ones
from bayesknn.predictive.nodes import PosteriorNodes

# Squared odds up to here neither over- nor underflow.
_MOST_EXPONENT = 150.0


def leave_one_out(
    counts: np.ndarray,
    labels: np.ndarray,
    nodes: PosteriorNodes,
    class_weight: np.ndarray | None,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Average class probabilities over nodes that have not seen the point's own label.

    Parameters
    ----------
    counts : ndarray of shape (n_k, m, n_classes), dtype int32
        Around training points, themselves left out, for each k of the nodes.
    labels : ndarray of shape (m,)
        The points' own class numbers.
    nodes : PosteriorNodes
        Of the posterior given all labels.
    class_weight : ndarray of shape (n_classes,) or None
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on it.

    Returns
    -------
    probabilities : ndarray of shape (m, n_classes)
    variances : ndarray of shape (m, n_classes)
        Of the probabilities over the reweighted nodes.
    share : ndarray of shape (m,)
        Part of the posterior that the reweighted nodes are worth, 1 where nothing was reweighted.

    Examples
    --------
    Two nodes, equally probable given all labels. That the point is of class 1, against three of
    four neighbours, has spoken for the weaker beta: the stronger counts more without its label.

    >>> import numpy as np
    >>> from bayesknn.predictive import PosteriorNodes
    >>> from bayesknn.predictive.leave_one_out import leave_one_out
    >>> nodes = PosteriorNodes([4, 4], [1.0, 3.0], [0.5, 0.5])
    >>> counts = np.array([[[3, 1]]], dtype=np.int32)
    >>> leave_one_out(counts, np.array([1]), nodes, None)[0].round(4).tolist()
    [[0.754, 0.246]]
    """
    from joblib import effective_n_jobs

    _, m, n_classes = counts.shape
    found, squares, share = np.zeros((m, n_classes)), np.zeros((m, n_classes)), np.empty(m)
    scale = weights_or_ones(class_weight, n_classes)
    starts, strengths = nodes.starts, nodes.strengths
    strongest = np.maximum.reduceat(strengths, starts[:-1])
    own = labels.astype(np.uint32)
    if n_classes == 2 and class_weight is None:
        # A table over the difference of the counts is made anew in each thread.
        ahead = np.subtract(counts[..., 0], counts[..., 1], dtype=np.int32)
        largest = np.abs(ahead).max(axis=1)
        if float(np.max(strongest * largest)) < _MOST_EXPONENT:
            kish = np.zeros(m)
            run_in_threads(
                lambda first, last: _reweigh_two(
                    ahead, own, starts, strengths, nodes.weight, first, last, found, squares, kish
                ),
                m, max(POINTS_A_TASK, -(-m // effective_n_jobs(n_jobs))), n_jobs,
            )  # fmt: skip
            total = found.sum(axis=1)
            found /= total[:, None]
            squares /= total[:, None]
            share = np.minimum(total**2 / kish, 1.0)
            return found, np.maximum(squares - found**2, 0.0), share
    run_in_threads(
        lambda first, last: _reweigh(
            counts, own, starts, strengths, strongest, nodes.weight, scale, first, last,
            found, squares, share,
        ),
        m, POINTS_A_TASK, n_jobs,
    )  # fmt: skip
    return found, np.maximum(squares - found**2, 0.0), share


@kernel
def _reweigh(
    counts, own, starts, strengths, strongest, weights, scale, first, last, found, squares, share
):  # fmt: skip
    n_classes = np.uint64(counts.shape[2])
    deficits = np.empty(n_classes)
    order = np.empty(n_classes, np.uint64)
    odds = np.empty(n_classes)
    for q in range(np.uint64(first), np.uint64(last)):
        y = own[q]
        # The largest exponent, so that nothing overflows: it cancels.
        largest = 0.0
        for t in range(np.uint64(counts.shape[0])):
            _rank_classes(counts[t, q], scale, deficits, order)
            largest = max(largest, strongest[t] * deficits[y])
        kish = 0.0
        for t in range(np.uint64(counts.shape[0])):
            _rank_classes(counts[t, q], scale, deficits, order)
            for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                # In the order of size, so that renaming the classes changes no bit.
                total = 0.0
                for s in range(n_classes):
                    g = order[s]
                    odds[g] = math.exp(strengths[j] * (deficits[y] - deficits[g]) - largest)
                    total += odds[g]
                kish += weights[j] * total * total
                for g in range(n_classes):
                    found[q, g] += weights[j] * odds[g]
                    if total > 0.0:
                        squares[q, g] += weights[j] * odds[g] * (odds[g] / total)
        total = np.sort(found[q]).sum()
        share[q] = min(total * total / kish, 1.0)
        for g in range(n_classes):
            found[q, g] /= total
            squares[q, g] /= total


@kernel
def _reweigh_two(ahead, own, starts, strengths, weights, first, last, found, squares, kish):
    """Add up what depends on the difference of two counts alone, k by k, from tables over it."""
    for t in range(np.uint64(ahead.shape[0])):
        largest = 0
        for q in range(np.uint64(first), np.uint64(last)):
            largest = max(largest, abs(ahead[t, q]))
        # For the odds of the other class, which leads by d - largest: their mean, the Kish sum,
        # and the mean squares of the own probability and of the other.
        table = np.zeros((2 * largest + 1, 4))
        total = 0.0
        for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
            total += weights[j]
            for d in range(largest + 1):
                low = math.exp(-strengths[j] * d)
                for sign in range(2 if d > 0 else 1):
                    odds = low if sign == 0 else 1.0 / low
                    row = table[largest - d if sign == 0 else largest + d]
                    own_probability = 1.0 / (1.0 + odds)
                    row[0] += weights[j] * odds
                    row[1] += weights[j] * (1.0 + odds) * (1.0 + odds)
                    row[2] += weights[j] * own_probability
                    row[3] += weights[j] * odds * (odds * own_probability)
        for q in range(np.uint64(first), np.uint64(last)):
            y = own[q]
            lead = -ahead[t, q] if y == 0 else ahead[t, q]
            row = table[largest + lead]
            found[q, y] += total
            found[q, 1 - y] += row[0]
            kish[q] += row[1]
            squares[q, y] += row[2]
            squares[q, 1 - y] += row[3]
