"""Class probabilities over points of (beta, k): means, quantiles, leave-one-out (eq. trupred).

At one (beta, k) the rule of eq. knn-pred is a softmax of ``beta / k`` times the class counts. With
two classes and no weights it depends on the difference of the counts alone, a small integer: for
each k the average over beta is tabulated over it, and a point costs one look-up for each k.

The probability of a class at x is a function of (beta, k), hence has a posterior distribution of
its own (Figure levelset). Its equal-tailed interval is cut from the weights of the nodes: the lower
end is the smallest value with at least a tail's weight up to it, the upper end the largest with at
least a tail's weight from it on, so that with two classes the two intervals are mirror images.

A training point's probabilities given all other labels are its full conditional (eq. knn-cond). The
posterior has seen the label y_i, too, so each node j counts ``w_j / p_j(y_i)`` in place of w_j,
which takes y_i's factor out again: exactly for the coherent model, and up to its part in the
neighbours' factors for a product of conditionals. The odds of class g against y_i are then the
posterior mean of the odds::

    p(g | y_-i) / p(y_i | y_-i) = sum_j w_j exp(b_j (a_g count_g - a_y count_y)),   b = beta / k

A label that its neighbours contradict moves the posterior most; the part of it that the reweighted
nodes are worth (Kish) says how far the identity can be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.threads import run_in_threads
from bayesknn.predictive.nodes import PosteriorNodes

# Points at a time in a thread.
POINTS_A_TASK = 1024


class RawPrediction(NamedTuple):
    """What the neighbours of m points say, before calibration.

    Attributes
    ----------
    probabilities : ndarray of shape (m, n_classes)
        Averaged over the posterior of (beta, k).
    variances : ndarray of shape (m, n_classes)
        Of the probabilities over that posterior.
    votes : ndarray of shape (m, n_classes)
        The mean of ``beta / k`` times the count of each class.
    distances : ndarray of shape (m,)
        To the neighbour at the mean of k, rounded.
    intervals : ndarray of shape (m, n_classes, 2) or None
        Credible ones, if a level was given.
    copies : ndarray of shape (m, n_classes) or None
        Training rows of the very same values, by class.
    """

    probabilities: np.ndarray
    variances: np.ndarray
    votes: np.ndarray
    distances: np.ndarray
    intervals: np.ndarray | None = None
    copies: np.ndarray | None = None


def join_predictions(parts: Sequence[RawPrediction]) -> RawPrediction:
    """Put blocks of points together."""
    joined: list[Any] = [
        None if column[0] is None else np.concatenate(column) for column in zip(*parts, strict=True)
    ]
    return RawPrediction(*joined)


def include(intervals: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Widen intervals (m, n_classes, 2), in place, until they hold these values (m, n_classes)."""
    np.minimum(intervals[..., 0], inside, out=intervals[..., 0])
    np.maximum(intervals[..., 1], inside, out=intervals[..., 1])
    return intervals


def moments(
    counts: np.ndarray,
    nodes: PosteriorNodes,
    class_weight: np.ndarray | None,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Find mean and variance of class probabilities over the nodes.

    Parameters
    ----------
    counts : ndarray of shape (n_k, m, n_classes), dtype int32
        For each k of the nodes.
    nodes : PosteriorNodes
    class_weight : ndarray of shape (n_classes,) or None
        Factors of the counts.
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on it.

    Returns
    -------
    means, variances : ndarray of shape (m, n_classes)
    """
    _, m, n_classes = counts.shape
    found, squares = np.zeros((m, n_classes)), np.zeros((m, n_classes))
    rule = _bundle(counts, nodes, class_weight)
    add = _average_two if n_classes == 2 and class_weight is None else _average_any
    run_in_threads(
        lambda first, last: add(rule, first, last, found, squares), m, POINTS_A_TASK, n_jobs
    )
    # Rounding may add up to a last digit above one, or take a variance below zero.
    np.minimum(found, 1.0, out=found)
    return found, np.maximum(squares - found**2, 0.0)


def sum_votes(
    counts: np.ndarray, nodes: PosteriorNodes, class_weight: np.ndarray | None
) -> np.ndarray:
    """Average ``beta / k`` times the counts over the nodes.

    Parameters
    ----------
    counts, nodes, class_weight
        As in :func:`moments`.

    Returns
    -------
    ndarray of shape (m, n_classes)
    """
    found = np.zeros(counts.shape[1:])
    strengths = np.add.reduceat(nodes.weight * nodes.strengths, nodes.starts[:-1])
    for strength, at_k in zip(strengths, counts, strict=True):
        found += strength * at_k
    return found if class_weight is None else found * class_weight


class _Rule(NamedTuple):
    """What a kernel averages: nodes ``starts[t] : starts[t + 1]`` belong to ``counts[t]``."""

    counts: np.ndarray
    starts: np.ndarray
    strengths: np.ndarray
    weights: np.ndarray
    scale: np.ndarray


def _bundle(counts: np.ndarray, nodes: PosteriorNodes, class_weight: np.ndarray | None) -> _Rule:
    scale = weights_or_ones(class_weight, counts.shape[2])
    return _Rule(counts, nodes.starts, nodes.strengths, nodes.weight, scale)


def weights_or_ones(class_weight: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Return the factors of the counts."""
    return np.ones(n_classes) if class_weight is None else class_weight


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
    nodes, class_weight, n_jobs
        As in :func:`moments`; the nodes are those of the posterior given all labels.

    Returns
    -------
    probabilities : ndarray of shape (m, n_classes)
    variances : ndarray of shape (m, n_classes)
        Of the probabilities over the reweighted nodes.
    effective : ndarray of shape (m,)
        Part of the posterior that the reweighted nodes are worth, 1 where nothing was reweighted.
    """
    _, m, n_classes = counts.shape
    found, squares, effective = np.zeros((m, n_classes)), np.zeros((m, n_classes)), np.empty(m)
    rule, own = _bundle(counts, nodes, class_weight), labels.astype(np.uint32)
    run_in_threads(
        lambda first, last: _reweigh(rule, own, first, last, found, squares, effective),
        m, POINTS_A_TASK, n_jobs,
    )  # fmt: skip
    return found, np.maximum(squares - found**2, 0.0), effective


def find_credible_intervals(
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
    counts, nodes, class_weight, n_jobs
        As in :func:`moments`; all nodes, since condensed ones know means but not tails.
    level : float
    labels : ndarray of shape (m,), optional
        The points' own labels, for training points: the nodes are reweighted so that they have
        not seen them, as in :func:`leave_one_out`.

    Returns
    -------
    ndarray of shape (m, n_classes, 2)
    """
    _, m, n_classes = counts.shape
    found = np.empty((m, n_classes, 2))
    rule = _bundle(counts, nodes, class_weight)
    # Weights that add up to a tail but for rounding are enough; without any tail, values of no
    # weight are still left out.
    tail = max((1.0 - level) / 2 - 1e-12, 1e-300)
    own = np.empty(0, np.uint32) if labels is None else labels.astype(np.uint32)
    run_in_threads(
        lambda first, last: _cut_all(rule, own, tail, first, last, found),
        m, POINTS_A_TASK // 4, n_jobs,
    )  # fmt: skip
    if n_classes == 2:
        found[:, 1] = 1.0 - found[:, 0, ::-1]
    return found


@kernel
def _average_two(rule, first, last, found, squares):
    counts, starts, strengths, weights, _ = rule
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
def _average_any(rule, first, last, found, squares):
    counts, starts, strengths, weights, scale = rule
    n_classes = np.uint64(counts.shape[2])
    deficits = np.empty(n_classes)
    probabilities = np.empty(n_classes)
    for t in range(np.uint64(counts.shape[0])):
        for q in range(np.uint64(first), np.uint64(last)):
            _fill_deficits(counts[t, q], scale, deficits)
            for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                _softmax(deficits, strengths[j], probabilities)
                for g in range(n_classes):
                    part = weights[j] * probabilities[g]
                    found[q, g] += part
                    squares[q, g] += part * probabilities[g]


@kernel
def _fill_deficits(counts, scale, deficits):
    """Fill in how far each class is behind the leader."""
    top = scale[0] * counts[0]
    for g in range(np.uint64(counts.shape[0])):
        deficits[g] = scale[g] * counts[g]
        top = max(top, deficits[g])
    for g in range(np.uint64(counts.shape[0])):
        deficits[g] = top - deficits[g]


@kernel
def _softmax(deficits, strength, probabilities):
    """Fill in the probabilities, and return the inverse of the leader's."""
    total = 0.0
    for g in range(np.uint64(deficits.shape[0])):
        probabilities[g] = math.exp(-strength * deficits[g])
        total += probabilities[g]
    for g in range(np.uint64(deficits.shape[0])):
        probabilities[g] /= total
    return total


@kernel
def _reweigh(rule, own, first, last, found, squares, effective):
    counts, starts, strengths, weights, scale = rule
    n_classes = np.uint64(counts.shape[2])
    deficits = np.empty(n_classes)
    odds = np.empty(n_classes)
    for q in range(np.uint64(first), np.uint64(last)):
        y = own[q]
        # The largest exponent, so that nothing overflows: it cancels.
        largest = 0.0
        for t in range(np.uint64(counts.shape[0])):
            _fill_deficits(counts[t, q], scale, deficits)
            for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                largest = max(largest, strengths[j] * deficits[y])
        kish = 0.0
        for t in range(np.uint64(counts.shape[0])):
            _fill_deficits(counts[t, q], scale, deficits)
            for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                total = 0.0
                for g in range(n_classes):
                    odds[g] = math.exp(strengths[j] * (deficits[y] - deficits[g]) - largest)
                    total += odds[g]
                kish += weights[j] * total * total
                for g in range(n_classes):
                    found[q, g] += weights[j] * odds[g]
                    if total > 0.0:
                        squares[q, g] += weights[j] * odds[g] * (odds[g] / total)
        total = found[q].sum()
        effective[q] = min(total * total / kish, 1.0)
        for g in range(n_classes):
            found[q, g] /= total
            squares[q, g] /= total


@kernel
def _cut_all(rule, own, tail, first, last, found):
    counts, starts, strengths, weights, scale = rule
    n_classes = np.uint64(counts.shape[2])
    deficits = np.empty(n_classes)
    probabilities = np.empty(n_classes)
    values = np.empty((n_classes, np.uint64(strengths.size)))
    reweighted = weights.copy()
    for q in range(np.uint64(first), np.uint64(last)):
        for t in range(np.uint64(counts.shape[0])):
            _fill_deficits(counts[t, q], scale, deficits)
            for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                total = _softmax(deficits, strengths[j], probabilities)
                for g in range(n_classes):
                    values[g, j] = probabilities[g]
                if own.size:
                    # log 1 / p_j(y), which unlike 1 / p_j(y) never overflows.
                    reweighted[j] = math.log(total) + strengths[j] * deficits[own[q]]
        if own.size:
            reweighted = weights * np.exp(reweighted - reweighted.max())
            reweighted /= reweighted.sum()
        # With two classes the second interval mirrors the first.
        for g in range(1 if n_classes == 2 else n_classes):
            ranked = np.argsort(values[g])
            found[q, g, 0] = values[g, _cut_tail(ranked, reweighted, tail)]
            found[q, g, 1] = values[g, _cut_tail(ranked[::-1], reweighted, tail)]


@kernel
def _cut_tail(ranked, weights, tail):
    """Return the first of the ranked nodes up to which there is a tail's weight."""
    total = 0.0
    for j in ranked:
        total += weights[j]
        if total >= tail:
            return j
    return ranked[-1]
