"""The posterior predictive law of new labels (Section 2.3, eqs. knn-pred, trupred and MCpred).

For a new point x the count of class g at k is the number of its members among the k nearest
training points of x, plus the number of its members that would have x among their own k nearest.
The rule at (beta, k) is the softmax of ``beta / k a_g count_g``, and the law of (beta, k) averages
it. A training point's probabilities given the other labels come from the same rule with the
counts of the graph, see ``leave_one_out.py``.

Holmes and Adams' rule (eq. knn-intuit) is the one with forward neighbours alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from bayesknn._progress import progress
from bayesknn.graph import NeighborGraph
from bayesknn.graph.counter import NeighborCounter
from bayesknn.model.checks import check_class_weight, check_label_vector, check_n_classes
from bayesknn.predictive.averages import average, average_replicates
from bayesknn.predictive.intervals import find_intervals
from bayesknn.predictive.leave_one_out import leave_one_out
from bayesknn.predictive.nodes import PosteriorNodes
from bayesknn.predictive.quadrature import condense

_DIRECTIONS = ("both", "forward")
# Memory that the neighbours and counts of a block of points may take.
_BLOCK_BYTES = 2**24
# Each block of training points walks over the whole graph, so these are larger.
_LOO_BLOCK_BYTES = 2**26


class Predictive:
    """Class probabilities of new points, averaged over the law of (beta, k).

    Parameters
    ----------
    graph : NeighborGraph
        Of the training points, up to at least the largest k of ``nodes``.
    labels : array-like of shape (n,)
        Class numbers 0..n_classes-1 of the training points.
    n_classes : int
    nodes : PosteriorNodes
    class_weight : array-like of shape (n_classes,), optional
        The weights a_g of the model that was fitted.
    direction : {"both", "forward"}
        Neighbours in both directions, as the coherent model has it, or forward ones alone, which
        is the predictive rule of Holmes and Adams.
    n_jobs : int, optional
        Threads, as in joblib. No result depends on it.
    verbose : int
        Above 0, a bar is shown once two seconds have passed.

    Examples
    --------
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.predictive import PosteriorNodes, Predictive
    >>> ripley = load_ripley()
    >>> graph = NeighborGraph.from_points(ripley.X_train, k_max=53)
    >>> nodes = PosteriorNodes([53], [2.2805], [1.0])
    >>> predictive = Predictive(graph, ripley.y_train, 2, nodes)
    >>> predictive.probabilities(ripley.X_test[:2]).round(3).tolist()
    [[0.978, 0.022], [0.984, 0.016]]
    """

    def __init__(
        self,
        graph: NeighborGraph,
        labels: Any,
        n_classes: int,
        nodes: PosteriorNodes,
        *,
        class_weight: Any = None,
        direction: str = "both",
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        if direction not in _DIRECTIONS:
            raise ValueError(
                f"direction must be one of {', '.join(_DIRECTIONS)}, got {direction!r}"
            )
        self.n_classes = check_n_classes(n_classes)
        self.labels = check_label_vector(labels, graph.n_points, self.n_classes)
        self.class_weight = check_class_weight(class_weight, self.n_classes)
        self.direction = direction
        self.nodes = nodes
        self.n_jobs = n_jobs
        self.verbose = verbose
        k_max = graph.check_k(int(nodes.k[-1]))
        # The graph of the largest k alone, so that nothing searches further.
        distances = None if graph.distances is None else graph.distances[:k_max]
        self.graph = NeighborGraph(graph.neighbors[:k_max], distances, graph.index)
        steepness = 1.0 if self.class_weight is None else float(self.class_weight.max())
        self._rule = condense(nodes, steepness)
        self._counter = NeighborCounter(
            self.graph, self.labels, self.n_classes, self._rule.k_values, direction
        )

    def probabilities(self, X: Any) -> np.ndarray:
        """Average each class's probability over the law of (beta, k).

        Parameters
        ----------
        X : array or frame of shape (m, p)
            New points, as :meth:`bayesknn.graph.NeighborGraph.query` takes them.

        Returns
        -------
        ndarray of shape (m, n_classes)
        """
        return np.concatenate([self._average(counts) for counts in self._count_new(X)])

    def probabilities_and_errors(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the probabilities and the Monte Carlo error that log Z gives them.

        Parameters
        ----------
        X : array or frame of shape (m, p)

        Returns
        -------
        probabilities, errors : ndarray of shape (m, n_classes)
            Errors are zero where the nodes have no replicates.
        """
        means, errors = [], []
        for counts in self._count_new(X):
            means.append(self._average(counts))
            if len(self._rule.replicates) == 0:
                errors.append(np.zeros_like(means[-1]))
                continue
            found = average_replicates(counts, self._rule, self.class_weight, self.n_jobs)
            errors.append(found.std(axis=2))
        return np.concatenate(means), np.concatenate(errors)

    def intervals(self, X: Any, level: float = 0.95) -> np.ndarray:
        """Find a credible interval of each class probability over the law of (beta, k).

        The interval is equal-tailed. Where the law is so extreme that its mean lies outside, the
        interval is widened to include it: it always contains what :meth:`probabilities` returns.

        Parameters
        ----------
        X : array or frame of shape (m, p)
        level : float
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (m, n_classes, 2)
            Lower and upper ends.
        """
        level = _check_level(level)
        return np.concatenate(
            [self._cut(counts, level, self._average(counts)) for counts in self._count_new(X)]
        )

    def loo_probabilities(self) -> np.ndarray:
        """Find each training point's class probabilities given the labels of all the others.

        Nothing is fitted again: the nodes are reweighted to what they were without its label.

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        return self.loo_probabilities_and_shares()[0]

    def loo_probabilities_and_shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return :meth:`loo_probabilities` and what they rest on.

        Returns
        -------
        probabilities : ndarray of shape (n, n_classes)
        share : ndarray of shape (n,)
            Part of the posterior that the reweighted nodes of each point are worth.
        """
        parts = [
            leave_one_out(counts, self.labels[rows], self._rule, self.class_weight, self.n_jobs)
            for rows, counts in self._count_training()
        ]
        probabilities, shares = zip(*parts, strict=True)
        return np.concatenate(probabilities), np.concatenate(shares)

    def loo_intervals(self, level: float = 0.95) -> np.ndarray:
        """Find the intervals of :meth:`loo_probabilities`, as :meth:`intervals` does.

        Parameters
        ----------
        level : float

        Returns
        -------
        ndarray of shape (n, n_classes, 2)
        """
        level = _check_level(level)
        found = []
        for rows, counts in self._count_training():
            own = self.labels[rows]
            mean, _ = leave_one_out(counts, own, self._rule, self.class_weight, self.n_jobs)
            found.append(self._cut(counts, level, mean, own))
        return np.concatenate(found)

    def _average(self, counts: np.ndarray) -> np.ndarray:
        return average(counts, self._rule, self.class_weight, self.n_jobs)

    def _cut(
        self, counts: np.ndarray, level: float, mean: np.ndarray, own: np.ndarray | None = None
    ) -> np.ndarray:
        found = find_intervals(counts, self.nodes, self.class_weight, level, self.n_jobs, own)
        np.minimum(found[..., 0], mean, out=found[..., 0])
        np.maximum(found[..., 1], mean, out=found[..., 1])
        return found

    def _count_new(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the class counts of new points, (n_k, block, n_classes), block by block."""
        ks = self._rule.k_values
        a_point = 20 * self.graph.k_max + self.n_classes * (
            4 * ks.size + 8 * len(self._rule.replicates)
        )
        size = max(_BLOCK_BYTES // a_point, 64)
        chunks = self._counter.count_chunks(X, size, self.n_jobs)
        n_new = _num_samples(X)
        with progress("Predicting", total=n_new, verbose=self.verbose) as advance:
            for _, counts in chunks:
                yield counts
                advance(counts.shape[1])

    def _count_training(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the class counts of training points, themselves left out, and which these are."""
        ks, n = self._rule.k_values, self.graph.n_points
        size = max(_LOO_BLOCK_BYTES // (4 * ks.size * self.n_classes), 64)
        with progress("Leaving one out", total=n, verbose=self.verbose) as advance:
            for start in range(0, n, size):
                walk = self.graph.iterate_counts(self.labels, self.n_classes, ks, self.direction)
                rows = slice(start, start + size)
                yield rows, np.stack([counts[rows].copy() for _, counts in walk])
                advance(size)


def _check_level(level: Any) -> float:
    if isinstance(level, float | np.floating) and 0.0 < level < 1.0:
        return float(level)
    raise ValueError(f"level must lie between 0 and 1, got {level!r}")
