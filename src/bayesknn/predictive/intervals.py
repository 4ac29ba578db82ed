"""Credible intervals of class probabilities over the law of (beta, k) (Figure levelset).

The probability of a class at x is a function of (beta, k), hence has a law of its own under their
posterior. Its equal-tailed interval is cut from the weights of the nodes: the lower end is the
smallest value with at least a tail's weight up to it, the upper end the largest with at least a
tail's weight from it on, so that with two classes the two intervals are mirror images.
"""

from __future__ import annotations

import math

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.threads import run_in_threads
from bayesknn.predictive.averages import (
    POINTS_A_TASK,
    _rank_classes,
    _soften,
    weights_or_ones,
)
from bayesknn.predictive.nodes import PosteriorNodes

_N_BUCKETS = 256
# Weights that add up to a tail but for rounding are enough.
_SLACK = 1e-12
# A tail of no weight at all would end in a bucket without values.
_SMALLEST = 1e-300


def find_intervals(
    counts: np.ndarray,
    nodes: PosteriorNodes,
    class_weight: np.ndarray | None,
    level: float,
    n_jobs: int | None = None,
    labels: np.ndarray | None = None,
) -> np.ndarray:
    """Find the equal-tailed interval of each class probability.

    Parameters
    ----------
    counts : ndarray of shape (n_k, m, n_classes), dtype int32
        For each k of the nodes.
    nodes : PosteriorNodes
        All of them; condensed ones know means but not tails.
    class_weight : ndarray of shape (n_classes,) or None
    level : float
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on it.
    labels : ndarray of shape (m,), optional
        The points' own labels, for training points: the nodes are reweighted so that they have
        not seen them, as in ``leave_one_out.py``.

    Returns
    -------
    ndarray of shape (m, n_classes, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive import PosteriorNodes
    >>> from bayesknn.predictive.intervals import find_intervals
    >>> nodes = PosteriorNodes([4, 4], [1.0, 2.0], [0.5, 0.5])
    >>> find_intervals(np.array([[[3, 1]]], dtype=np.int32), nodes, None, 0.95).round(4).tolist()
    [[[0.6225, 0.7311], [0.2689, 0.3775]]]
    """
    _, m, n_classes = counts.shape
    found = np.empty((m, n_classes, 2))
    scale = weights_or_ones(class_weight, n_classes)
    tail = max((1.0 - level) / 2 - _SLACK, _SMALLEST)
    points = nodes.starts, nodes.strengths, nodes.weight
    own = np.empty(0, np.uint32) if labels is None else labels.astype(np.uint32)
    run_in_threads(
        lambda first, last: _cut_all(counts, *points, own, scale, tail, first, last, found),
        m, POINTS_A_TASK // 4, n_jobs,
    )  # fmt: skip
    return found


@kernel
def _cut_all(counts, starts, strengths, weights, own, scale, tail, first, last, found):
    n_classes = np.uint64(counts.shape[2])
    deficits = np.empty(n_classes)
    order = np.empty(n_classes, np.uint64)
    probabilities = np.empty(n_classes)
    values = np.empty((n_classes, np.uint64(strengths.size)))
    members = np.empty(strengths.size)
    shares = np.empty(strengths.size)
    reweighted = weights.copy()
    for q in range(np.uint64(first), np.uint64(last)):
        for t in range(np.uint64(counts.shape[0])):
            _rank_classes(counts[t, q], scale, deficits, order)
            for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                total = _soften(deficits, order, strengths[j], probabilities)
                for g in range(n_classes):
                    values[g, j] = probabilities[g]
                if own.size:
                    # log 1 / p_j(y), which unlike 1 / p_j(y) never overflows.
                    reweighted[j] = math.log(total) + strengths[j] * deficits[own[q]]
        if own.size:
            reweighted = weights * np.exp(reweighted - reweighted.max())
            reweighted /= reweighted.sum()
        for g in range(n_classes):
            low, high = _cut_tails(values[g], reweighted, tail, members, shares)
            found[q, g, 0] = low
            found[q, g, 1] = high


@kernel
def _cut_tails(values, weights, tail, members, shares):
    """Return the two ends; only the values near an end are sorted."""
    least, most = values.min(), values.max()
    # A spread that is nearly nothing would overflow: then all values share one bucket.
    per_unit = _N_BUCKETS / (most - least) if most - least > 1e-290 else 0.0
    mass = np.zeros(_N_BUCKETS)
    for j in range(np.uint64(values.size)):
        mass[_bucket(values[j], least, per_unit)] += weights[j]
    at, below = 0, 0.0
    while at < _N_BUCKETS - 1 and below + mass[at] < tail:
        below += mass[at]
        at += 1
    n = _gather(values, weights, least, per_unit, at, members, shares)
    ranked = np.argsort(members[:n])
    s = 0
    while s < n - 1 and below + shares[ranked[s]] < tail:
        below += shares[ranked[s]]
        s += 1
    low = members[ranked[s]]
    at, above = _N_BUCKETS - 1, 0.0
    while at > 0 and above + mass[at] < tail:
        above += mass[at]
        at -= 1
    n = _gather(values, weights, least, per_unit, at, members, shares)
    ranked = np.argsort(members[:n])
    s = n - 1
    while s > 0 and above + shares[ranked[s]] < tail:
        above += shares[ranked[s]]
        s -= 1
    return low, members[ranked[s]]


@kernel
def _bucket(value, least, per_unit):
    return min(int((value - least) * per_unit), _N_BUCKETS - 1)


@kernel
def _gather(values, weights, least, per_unit, at, members, shares):
    n = 0
    for j in range(np.uint64(values.size)):
        if _bucket(values[j], least, per_unit) == at:
            members[n] = values[j]
            shares[n] = weights[j]
            n += 1
    return n
