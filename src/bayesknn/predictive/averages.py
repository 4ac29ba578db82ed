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

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import run_in_threads

# Probabilities that are held at a time. More of them leave the processor's cache; fewer take more
# calls.
_NUMBERS_PER_CALL = 2**15


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
        effective = np.ones(self.counts.shape[1])
        if self._is_plain_pair():
            means, squares = self._average_pairs()
        else:
            means, squares = np.empty((2, *self.counts.shape[1:]))

            def average(points: slice, first: int, last: int) -> None:
                probabilities, weights, effective[points] = self._at_nodes(points, first, last)
                weighted = weights[..., None] * probabilities
                means[points] = weighted.sum(axis=0)
                squares[points] = np.einsum("jqg,jqg->qg", weighted, probabilities)

            self._run(average, n_jobs)
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

        def cut(points: slice, first: int, last: int) -> None:
            probabilities, weights, _ = self._at_nodes(points, first, last)
            # The second interval of two classes mirrors the first.
            for g in range(1 if intervals.shape[1] == 2 else intervals.shape[1]):
                order = np.argsort(probabilities[..., g], axis=0)
                ranked = np.take_along_axis(probabilities[..., g], order, axis=0)
                mass = np.take_along_axis(weights, order, axis=0)
                for end in (0, 1):
                    at = np.argmax(np.cumsum(mass, axis=0) >= tail, axis=0)
                    intervals[points, g, end] = np.take_along_axis(ranked, at[None], axis=0)[0]
                    ranked, mass = ranked[::-1], mass[::-1]

        self._run(cut, n_jobs)
        if intervals.shape[1] == 2:
            intervals[:, 1] = 1.0 - intervals[:, 0, ::-1]
        return intervals

    def _is_plain_pair(self) -> bool:
        """Whether the difference of two counts says all."""
        return self.own_labels.size == 0 and np.array_equal(self.class_weight, [1.0, 1.0])

    def _average_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return means and mean squares of the probabilities of two classes of equal weight."""
        differences = self.counts[..., 0] - self.counts[..., 1]
        means, squares = np.zeros((2, differences.shape[1], 2))
        for t, difference in enumerate(differences):
            nodes = slice(self.starts[t], self.starts[t + 1])
            largest = int(np.abs(difference).max(initial=0))
            odds = np.exp(-np.outer(self.strengths[nodes], np.arange(largest + 1)))
            leading = 1.0 / (1.0 + odds)
            # The first class by its lead, from -largest to largest.
            first = np.hstack([(odds * leading)[:, :0:-1], leading])
            # Not by the BLAS, whose last digit of one column depends on how many there are.
            weighted = self.weights[nodes, None] * first
            of_lead = weighted.sum(axis=0), (weighted * first).sum(axis=0)
            for g, lead in enumerate((difference, -difference)):
                means[:, g] += of_lead[0][lead + largest]
                squares[:, g] += of_lead[1][lead + largest]
        return means, squares

    def _at_nodes(
        self, points: slice, first: int, last: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return class probabilities at each node, around the points of some blocks.

        Returns
        -------
        probabilities : ndarray of shape (n_nodes, m, n_classes)
        weights : ndarray of shape (n_nodes, m)
            Of the nodes, without the labels of the point's block, if it has any.
        effective : ndarray of shape (m,)
            Part of the posterior that these weights are worth.
        """
        fields = self.counts[:, points] * self.class_weight
        deficits = fields.max(axis=2, keepdims=True) - fields
        deficits = np.repeat(deficits, np.diff(self.starts), axis=0)
        deficits *= self.strengths[:, None, None]
        probabilities = np.exp(-deficits)
        totals = probabilities.sum(axis=2)
        probabilities /= totals[..., None]
        if self.own_labels.size == 0:
            shape = totals.shape
            return probabilities, np.broadcast_to(self.weights[:, None], shape), np.ones(shape[1])
        own = self.own_labels[points].astype(np.int64)[None, :, None]
        # log 1 / p_j(y), which unlike 1 / p_j(y) never overflows.
        log_factors = np.log(totals) + np.take_along_axis(deficits, own, axis=2)[..., 0]
        blocks = self.blocks[first : last + 1]
        log_factors = np.add.reduceat(log_factors, blocks[:-1] - blocks[0], axis=1)
        reweighted = self.weights[:, None] * np.exp(log_factors - log_factors.max(axis=0))
        reweighted /= reweighted.sum(axis=0)
        has_weight = self.weights > 0.0
        kish = np.sum(reweighted[has_weight] ** 2 / self.weights[has_weight, None], axis=0)
        sizes = np.diff(blocks)
        effective = np.repeat(np.minimum(1.0 / kish, 1.0), sizes)
        return probabilities, np.repeat(reweighted, sizes, axis=1), effective

    def _run(self, work: Callable[[slice, int, int], None], n_jobs: int | None) -> None:
        """Call ``work(points, first, last)`` for the points of blocks from first to last - 1."""

        def run(first: int, last: int) -> None:
            work(slice(self.blocks[first], self.blocks[last]), first, last)

        chunk = _NUMBERS_PER_CALL // max(1, len(self.weights) * len(self.class_weight))
        run_in_threads(run, len(self.blocks) - 1, min(1024, max(1, chunk)), n_jobs)
