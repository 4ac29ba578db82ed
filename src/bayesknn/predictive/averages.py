"""Averages of the predictive rule over points of (beta, k) (eqs. knn-pred and trupred).

At one (beta, k) the rule is a softmax of ``beta / k`` times the class counts. With two classes
and no weights it depends on the difference of the counts alone, a small integer: for each k the
average over beta is tabulated over it, and a new point costs one look-up for each k.

Exponentials are added up in the order of their size, so that renaming the classes permutes the
results to the bit.
"""

from __future__ import annotations

import math

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.threads import run_in_threads
from bayesknn.predictive.nodes import PosteriorNodes

# Points at a time in a thread.
POINTS_A_TASK = 1024


def average(
    counts: np.ndarray,
    nodes: PosteriorNodes,
    class_weight: np.ndarray | None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Average class probabilities over the nodes.

    Parameters
    ----------
    counts : ndarray of shape (n_k, m, n_classes), dtype int32
        For each k of the nodes.
    nodes : PosteriorNodes
    class_weight : ndarray of shape (n_classes,) or None
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on it.

    Returns
    -------
    ndarray of shape (m, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive import PosteriorNodes
    >>> from bayesknn.predictive.averages import average
    >>> nodes = PosteriorNodes([4], [2.0], [1.0])
    >>> average(np.array([[[3, 1]]], dtype=np.int32), nodes, None).round(4).tolist()
    [[0.7311, 0.2689]]
    """
    return moments(counts, nodes, class_weight, n_jobs)[0]


def moments(
    counts: np.ndarray,
    nodes: PosteriorNodes,
    class_weight: np.ndarray | None,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Find mean and variance of class probabilities over the nodes.

    Parameters
    ----------
    counts, nodes, class_weight, n_jobs
        As in :func:`average`.

    Returns
    -------
    means, variances : ndarray of shape (m, n_classes)
    """
    _, m, n_classes = counts.shape
    found, squares = np.zeros((m, n_classes)), np.zeros((m, n_classes))
    points = nodes.starts, nodes.strengths, nodes.weight
    if n_classes == 2 and class_weight is None:
        run_in_threads(
            lambda first, last: _average_two(counts, *points, first, last, found, squares),
            m, POINTS_A_TASK, n_jobs,
        )  # fmt: skip
    else:
        scale = weights_or_ones(class_weight, n_classes)
        run_in_threads(
            lambda first, last: _average_any(counts, *points, scale, first, last, found, squares),
            m, POINTS_A_TASK, n_jobs,
        )  # fmt: skip
    # Rounding may add up to a last digit above one, or take a variance below zero.
    np.minimum(found, 1.0, out=found)
    return found, np.maximum(squares - found**2, 0.0)


def sum_votes(
    counts: np.ndarray, nodes: PosteriorNodes, class_weight: np.ndarray | None
) -> np.ndarray:
    """Average ``beta / k`` times the counts over the nodes: what speaks for each class.

    Parameters
    ----------
    counts, nodes, class_weight
        As in :func:`average`.

    Returns
    -------
    ndarray of shape (m, n_classes)
    """
    found = np.zeros(counts.shape[1:])
    strengths = np.add.reduceat(nodes.weight * nodes.strengths, nodes.starts[:-1])
    for strength, at_k in zip(strengths, counts, strict=True):
        found += strength * at_k
    return found if class_weight is None else found * class_weight


def average_replicates(
    counts: np.ndarray,
    nodes: PosteriorNodes,
    class_weight: np.ndarray | None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Average class probabilities in every replicate of the weights.

    Parameters
    ----------
    counts, nodes, class_weight, n_jobs
        As in :func:`average`.

    Returns
    -------
    ndarray of shape (m, n_classes, R)
    """
    found = np.zeros((*counts.shape[1:], len(nodes.replicates)))
    scale = weights_or_ones(class_weight, counts.shape[2])
    points = nodes.starts, nodes.strengths, np.ascontiguousarray(nodes.replicates.T)
    run_in_threads(
        lambda first, last: _average_columns(counts, *points, scale, first, last, found),
        counts.shape[1], POINTS_A_TASK, n_jobs,
    )  # fmt: skip
    return found


def weights_or_ones(class_weight: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Return the factors of the counts."""
    return np.ones(n_classes) if class_weight is None else class_weight


@kernel
def _average_two(counts, starts, strengths, weights, first, last, found, squares):
    for t in range(np.uint64(counts.shape[0])):
        largest = 0
        for q in range(np.uint64(first), np.uint64(last)):
            largest = max(largest, abs(counts[t, q, 0] - counts[t, q, 1]))
        # Mean and mean square of the class that leads by d, and of the one behind.
        table = np.zeros((largest + 1, 4))
        for d in range(largest + 1):
            for j in range(starts[t], starts[t + 1]):
                odds = math.exp(-strengths[j] * d)
                leading = 1.0 / (1.0 + odds)
                trailing = odds * leading
                table[d, 0] += weights[j] * leading
                table[d, 1] += weights[j] * trailing
                table[d, 2] += weights[j] * leading * leading
                table[d, 3] += weights[j] * trailing * trailing
        for q in range(np.uint64(first), np.uint64(last)):
            d = counts[t, q, 0] - counts[t, q, 1]
            row = table[abs(d)]
            ahead = 0 if d >= 0 else 1
            found[q, ahead] += row[0]
            found[q, 1 - ahead] += row[1]
            squares[q, ahead] += row[2]
            squares[q, 1 - ahead] += row[3]


@kernel
def _average_any(counts, starts, strengths, weights, scale, first, last, found, squares):
    n_classes = np.uint64(counts.shape[2])
    deficits = np.empty(n_classes)
    order = np.empty(n_classes, np.uint64)
    probabilities = np.empty(n_classes)
    for t in range(np.uint64(counts.shape[0])):
        for q in range(np.uint64(first), np.uint64(last)):
            _rank_classes(counts[t, q], scale, deficits, order)
            for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                _soften(deficits, order, strengths[j], probabilities)
                for g in range(n_classes):
                    part = weights[j] * probabilities[g]
                    found[q, g] += part
                    squares[q, g] += part * probabilities[g]


@kernel
def _average_columns(counts, starts, strengths, weights, scale, first, last, found):
    n_classes = np.uint64(counts.shape[2])
    deficits = np.empty(n_classes)
    order = np.empty(n_classes, np.uint64)
    probabilities = np.empty(n_classes)
    for t in range(np.uint64(counts.shape[0])):
        for q in range(np.uint64(first), np.uint64(last)):
            _rank_classes(counts[t, q], scale, deficits, order)
            for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                _soften(deficits, order, strengths[j], probabilities)
                for g in range(n_classes):
                    for r in range(np.uint64(weights.shape[1])):
                        found[q, g, r] += weights[j, r] * probabilities[g]


@kernel
def _rank_classes(counts, scale, deficits, order):
    """Fill in how far each class is behind the leader, and the classes from leader to last."""
    one = np.uint64(1)
    top = scale[0] * counts[0]
    for g in range(np.uint64(counts.shape[0])):
        top = max(top, scale[g] * counts[g])
    for g in range(np.uint64(counts.shape[0])):
        deficits[g] = top - scale[g] * counts[g]
        at = np.uint64(g)
        while at > np.uint64(0) and deficits[order[at - one]] > deficits[g]:
            order[at] = order[at - one]
            at -= one
        order[at] = g


@kernel
def _soften(deficits, order, strength, probabilities):
    """Fill in the probabilities, and return the inverse of the leader's."""
    total = 0.0
    for s in range(np.uint64(order.shape[0])):
        g = order[s]
        probabilities[g] = math.exp(-strength * deficits[g])
        total += probabilities[g]
    for g in range(np.uint64(order.shape[0])):
        probabilities[g] /= total
    return total
