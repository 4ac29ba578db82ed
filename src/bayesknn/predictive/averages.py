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

Where rows belong to groups, and none has a neighbour of its own, the labels of a group are
independent given all others: w_j is divided by the product of ``p_j(y_i)`` over the group.

A label that its neighbours contradict moves the posterior most; the part of it that the reweighted
nodes are worth (Kish) says how far the identity can be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel, run_in_threads


class RawPrediction(NamedTuple):
    """What the neighbours of m points say, before calibration.

    Attributes
    ----------
    probabilities : ndarray of shape (m, n_classes)
        Averaged over the posterior of (beta, k).
    variances : ndarray of shape (m, n_classes)
        Of the probabilities over that posterior.
    votes : ndarray of shape (m, n_classes) or None
        The mean of ``beta / k`` times the count of each class; the pool has no such votes.
    distances : ndarray of shape (m,)
        To the neighbour at the mean of k, rounded.
    intervals : ndarray of shape (m, n_classes, 2) or None
        Credible ones, if a level was given.
    copies : ndarray of shape (m, n_classes) or None
        Training rows of the very same values, by class.
    """

    probabilities: np.ndarray
    variances: np.ndarray
    votes: Any
    distances: np.ndarray
    intervals: np.ndarray | None = None
    copies: np.ndarray | None = None


class Summary(NamedTuple):
    """Class probabilities, their intervals and the typicality of m points.

    Attributes
    ----------
    probabilities : ndarray of shape (m, n_classes)
    intervals : ndarray of shape (m, n_classes, 2)
    typicality : ndarray of shape (m,)
    """

    probabilities: np.ndarray
    intervals: np.ndarray
    typicality: np.ndarray


def join_predictions(parts: Sequence[RawPrediction]) -> RawPrediction:
    """Put blocks of points together."""
    joined: list[Any] = [
        None if column[0] is None else np.concatenate(column) for column in zip(*parts, strict=True)
    ]
    return RawPrediction(*joined)


def take_rows(raw: RawPrediction, rows: np.ndarray) -> RawPrediction:
    """Return what is said of some points, in this order."""
    parts: list[Any] = [None if part is None else part[rows] for part in raw]
    return RawPrediction(*parts)


def include(intervals: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Widen intervals (m, n_classes, 2), in place, until they hold these values (m, n_classes)."""
    np.minimum(intervals[..., 0], inside, out=intervals[..., 0])
    np.maximum(intervals[..., 1], inside, out=intervals[..., 1])
    return intervals


class CountsAtNodes(NamedTuple):
    """Class counts around points, and the points of (beta, k) over which their rule is averaged.

    Attributes
    ----------
    counts : ndarray of shape (n_k, m, n_classes), dtype int32
        For each k of the nodes; of a training point without itself.
    starts : ndarray of shape (n_k + 1,)
        Nodes ``starts[t] : starts[t + 1]`` belong to ``counts[t]``.
    strengths, weights : ndarray of shape (n_nodes,)
        beta / k, and the weight of each node.
    class_weight : ndarray of shape (n_classes,)
        Factors of the counts.
    own_labels : ndarray of shape (m,), dtype uint32
        The points' own class numbers, which the nodes are then reweighted to have not seen; empty
        for new points.
    blocks : ndarray of shape (n_blocks + 1,), dtype int64
        Points ``blocks[b] : blocks[b + 1]`` are left out together: one point each, or a group.
    """

    counts: np.ndarray
    starts: np.ndarray
    strengths: np.ndarray
    weights: np.ndarray
    class_weight: np.ndarray
    own_labels: np.ndarray
    blocks: np.ndarray

    def average(self, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Average class probabilities over the nodes.

        Threads as in joblib; no result here depends on them.

        Returns
        -------
        probabilities : ndarray of shape (m, n_classes)
        variances : ndarray of shape (m, n_classes)
            Of the probabilities over the nodes.
        effective : ndarray of shape (m,)
            Part of the posterior that the reweighted nodes are worth, 1 where nothing changed.
        """
        means, squares = np.zeros((2, *self.counts.shape[1:]))
        effective = np.ones(len(means))
        add = _average_two if self._is_plain_pair() else _average_any
        self._run(lambda first, last: add(self, first, last, means, squares, effective), n_jobs)
        # Rounding may add up to a last digit above one, or take a variance below zero.
        np.minimum(means, 1.0, out=means)
        return means, np.maximum(squares - means**2, 0.0), effective

    def sum_votes(self) -> np.ndarray:
        """Average ``beta / k`` times the counts over the nodes, (m, n_classes)."""
        strengths = np.add.reduceat(self.weights * self.strengths, self.starts[:-1])
        return np.einsum("k,kig->ig", strengths, self.counts) * self.class_weight

    def credible_intervals(self, level: float, n_jobs: int | None = None) -> np.ndarray:
        """Return the equal-tailed interval of each class probability, (m, n_classes, 2).

        All nodes are wanted, since condensed ones know means but not tails.
        """
        intervals = np.empty((*self.counts.shape[1:], 2))
        # Weights that add up to a tail but for rounding are enough; without any tail, values of no
        # weight are still left out.
        tail = max((1.0 - level) / 2 - 1e-12, 1e-300)
        self._run(lambda first, last: _cut_all(self, tail, first, last, intervals), n_jobs)
        if intervals.shape[1] == 2:
            intervals[:, 1] = 1.0 - intervals[:, 0, ::-1]
        return intervals

    def _is_plain_pair(self) -> bool:
        """Whether the difference of two counts says all."""
        return self.own_labels.size == 0 and np.array_equal(self.class_weight, [1.0, 1.0])

    def _run(self, add: Callable[[int, int], None], n_jobs: int | None) -> None:
        run_in_threads(add, len(self.blocks) - 1, 1024, n_jobs)


@kernel
def _average_two(rule, first, last, means, squares, effective):  # noqa: ARG001 - as _average_any
    counts, starts, strengths, weights, _, _, _ = rule
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
            means[q, ahead] += row[0]
            means[q, 1 - ahead] += row[1]
            squares[q, ahead] += row[2]
            squares[q, 1 - ahead] += row[3]


@kernel
def _average_any(rule, first, last, means, squares, effective):
    counts, starts, strengths, weights, scale, _, blocks = rule
    n_classes = np.uint64(counts.shape[2])
    deficits = np.empty(n_classes)
    probabilities = np.empty(n_classes)
    reweighted = weights.copy()
    for b in range(first, last):
        part = _leave_block_out(rule, b, deficits, probabilities, reweighted)
        for q in range(np.uint64(blocks[b]), np.uint64(blocks[b + 1])):
            effective[q] = part
            for t in range(np.uint64(counts.shape[0])):
                _fill_deficits(counts[t, q], scale, deficits)
                for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                    _softmax(deficits, strengths[j], probabilities)
                    for g in range(n_classes):
                        part_of_class = reweighted[j] * probabilities[g]
                        means[q, g] += part_of_class
                        squares[q, g] += part_of_class * probabilities[g]


@kernel
def _leave_block_out(rule, b, deficits, probabilities, reweighted):
    """Fill in the weights of the nodes without the labels of a block, if it has any.

    Returns the part of the posterior that these weights are worth.
    """
    counts, starts, strengths, weights, scale, own_labels, blocks = rule
    if own_labels.size == 0:
        return 1.0
    reweighted[:] = 0.0
    for q in range(np.uint64(blocks[b]), np.uint64(blocks[b + 1])):
        for t in range(np.uint64(counts.shape[0])):
            _fill_deficits(counts[t, q], scale, deficits)
            for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                total = _softmax(deficits, strengths[j], probabilities)
                # log 1 / p_j(y), which unlike 1 / p_j(y) never overflows.
                reweighted[j] += math.log(total) + strengths[j] * deficits[own_labels[q]]
    largest = reweighted.max()
    size = 0.0
    for j in range(np.uint64(weights.size)):
        reweighted[j] = weights[j] * math.exp(reweighted[j] - largest)
        size += reweighted[j]
    kish = 0.0
    for j in range(np.uint64(weights.size)):
        reweighted[j] /= size
        if weights[j] > 0.0:
            kish += reweighted[j] * reweighted[j] / weights[j]
    return min(1.0 / kish, 1.0)


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
def _cut_all(rule, tail, first, last, intervals):
    counts, starts, strengths, weights, scale, _, blocks = rule
    n_classes = np.uint64(counts.shape[2])
    deficits = np.empty(n_classes)
    probabilities = np.empty(n_classes)
    values = np.empty((n_classes, np.uint64(strengths.size)))
    reweighted = weights.copy()
    for b in range(first, last):
        _leave_block_out(rule, b, deficits, probabilities, reweighted)
        for q in range(np.uint64(blocks[b]), np.uint64(blocks[b + 1])):
            for t in range(np.uint64(counts.shape[0])):
                _fill_deficits(counts[t, q], scale, deficits)
                for j in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                    _softmax(deficits, strengths[j], probabilities)
                    for g in range(n_classes):
                        values[g, j] = probabilities[g]
            # With two classes the second interval mirrors the first.
            for g in range(1 if n_classes == 2 else n_classes):
                ranked = np.argsort(values[g])
                intervals[q, g, 0] = values[g, _cut_tail(ranked, reweighted, tail)]
                intervals[q, g, 1] = values[g, _cut_tail(ranked[::-1], reweighted, tail)]


@kernel
def _cut_tail(ranked, weights, tail):
    """Return the first of the ranked nodes up to which there is a tail's weight."""
    total = 0.0
    for j in ranked:
        total += weights[j]
        if total >= tail:
            return j
    return ranked[-1]
