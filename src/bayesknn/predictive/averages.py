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

from bayesknn._jit import kernel
from bayesknn.graph.threads import run_in_threads
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
    _, m, n_classes = counts.shape
    found = np.zeros((m, n_classes))
    if n_classes == 2 and class_weight is None:
        points = nodes.starts, nodes.strengths, nodes.weight
        run_in_threads(
            lambda first, last: _average_two(counts, *points, first, last, found),
            m, POINTS_A_TASK, n_jobs,
        )  # fmt: skip
    else:
        sums = found[:, :, None]
        _average_columns(counts, nodes, nodes.weight[:, None], class_weight, sums, n_jobs)
    # Rounding may add up to a last digit above one.
    return np.minimum(found, 1.0, out=found)


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
    columns = np.ascontiguousarray(nodes.replicates.T)
    _average_columns(counts, nodes, columns, class_weight, found, n_jobs)
    return found


def _average_columns(counts, nodes, columns, class_weight, found, n_jobs) -> None:
    scale = weights_or_ones(class_weight, counts.shape[2])
    points = nodes.starts, nodes.strengths, columns
    run_in_threads(
        lambda first, last: _average_any(counts, *points, scale, first, last, found),
        counts.shape[1], POINTS_A_TASK, n_jobs,
    )  # fmt: skip


def weights_or_ones(class_weight: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Return the factors of the counts."""
    return np.ones(n_classes) if class_weight is None else class_weight


@kernel
def _average_two(counts, starts, strengths, weights, first, last, found):
    for t in range(np.uint64(counts.shape[0])):
        largest = 0
        for q in range(np.uint64(first), np.uint64(last)):
            largest = max(largest, abs(counts[t, q, 0] - counts[t, q, 1]))
        leading = np.zeros(largest + 1)
        trailing = np.zeros(largest + 1)
        for d in range(largest + 1):
            for j in range(starts[t], starts[t + 1]):
                odds = math.exp(-strengths[j] * d)
                leading[d] += weights[j] / (1.0 + odds)
                trailing[d] += weights[j] * (odds / (1.0 + odds))
        for q in range(np.uint64(first), np.uint64(last)):
            d = counts[t, q, 0] - counts[t, q, 1]
            if d >= 0:
                found[q, 0] += leading[d]
                found[q, 1] += trailing[d]
            else:
                found[q, 0] += trailing[-d]
                found[q, 1] += leading[-d]


@kernel
def _average_any(counts, starts, strengths, weights, scale, first, last, found):
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
