"""The posterior predictive of new labels (Section 2.3, eqs. knn-pred, trupred and MCpred).

For a new point x the count of class g at k is the number of its members among the k nearest
training points of x, plus the number of its members that would have x among their own k nearest.
The rule at (beta, k) is the softmax of ``beta / k a_g count_g``, averaged over the posterior of
(beta, k). A training point's probabilities given the other labels come from the same rule with the
counts of the graph.

Holmes and Adams' rule (eq. knn-intuit) is the one with forward neighbours alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from functools import partial
from typing import Any, cast

import numpy as np

from bayesknn._utils.checks import check_choice, check_count, check_level, count_rows
from bayesknn._utils.progress import progress
from bayesknn.graph.queries import DIRECTIONS
from bayesknn.model import BoltzmannModel, as_model
from bayesknn.predictive.averages import (
    CountsAtNodes,
    RawPrediction,
    include,
    join_predictions,
    take_rows,
)
from bayesknn.predictive.nodes import PosteriorNodes, condense

# Memory that the neighbours and counts of a block of points may take.
_BLOCK_BYTES = 2**24
# Each block of training points walks over the whole graph, so these are larger.
_LOO_BLOCK_BYTES = 2**26


class PredictiveRule:
    """Eq. trupred for counts of the classes around points, wherever the counts come from.

    Parameters
    ----------
    nodes : PosteriorNodes
    class_weight : ndarray of shape (n_classes,)
        Factors of the counts.
    n_relatives : int
        Number of training points in the largest group.

    Attributes
    ----------
    k_values : ndarray of int
        The k, rising, at which counts are wanted.
    rank : int
        Rank of the neighbour whose distance tells how usual a place is: the mean of k, rounded.
    """

    def __init__(self, nodes: PosteriorNodes, class_weight: np.ndarray, n_relatives: int = 1):
        self.nodes = nodes
        self.class_weight = class_weight
        steepness = float(class_weight.max())
        self._condensed = condense(nodes, steepness)
        # The labels of a group change the odds as much as so many together do.
        self._for_groups = condense(nodes, steepness * n_relatives)
        self.k_values = self._condensed.k_values
        self.rank = round(nodes.k_mean)

    def predict(
        self,
        counts: np.ndarray,
        distances: np.ndarray,
        labels: np.ndarray | None = None,
        level: float | None = None,
        n_jobs: int | None = None,
        blocks: np.ndarray | None = None,
    ) -> tuple[RawPrediction, np.ndarray]:
        """Predict at points.

        Parameters
        ----------
        counts : ndarray of shape (n_k, m, n_classes), dtype int32
            For each of ``k_values``.
        distances : ndarray of shape (m,)
            To the neighbours at ``rank``.
        labels : ndarray of shape (m,), optional
            Of training points, which are predicted given the labels of all others.
        level : float, optional
            Of credible intervals, widened to hold the means; none without it.
        n_jobs : int, optional
            Threads. The result does not depend on it.
        blocks : ndarray of shape (n_blocks + 1,), optional
            Training points ``blocks[b] : blocks[b + 1]`` are a group, whose labels are left out
            together; by default every point's alone.

        Returns
        -------
        prediction : RawPrediction
        effective : ndarray of shape (m,)
            Part of the posterior that the reweighted nodes of each point are worth.
        """
        each_alone = np.arange(counts.shape[1] + 1)
        labels = np.empty(0, np.uint32) if labels is None else labels.astype(np.uint32)
        at_nodes, at_condensed = (
            CountsAtNodes(
                counts,
                each.starts,
                each.strengths,
                each.weight,
                self.class_weight,
                labels,
                each_alone if blocks is None else blocks,
            )
            for each in (self.nodes, self._condensed if blocks is None else self._for_groups)
        )
        means, variances, effective = at_condensed.average(n_jobs)
        intervals = None
        if level is not None:
            intervals = include(at_nodes.credible_intervals(level, n_jobs), means)
        votes = at_condensed.sum_votes()
        return RawPrediction(means, variances, votes, distances, intervals), effective


def take_largest(
    influences: Iterable[tuple[np.ndarray, np.ndarray]], n_neighbors: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of largest influence on each point, -1 where no more have any, and that.

    Of each point its rows and their influence are given.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive.predictive import take_largest
    >>> take_largest([(np.array([5, 6, 8]), np.array([0.0, 0.2, 0.7]))], 3)
    (array([[ 8,  6, -1]]), array([[0.7, 0.2, 0. ]]))
    """
    indices, largest = [], []
    for rows, influence in influences:
        first = np.argsort(-influence, kind="stable")[:n_neighbors]
        first = first[influence[first] > 0]
        rest = (0, n_neighbors - first.size)
        indices.append(np.pad(rows[first].astype(np.int64), rest, constant_values=-1))
        largest.append(np.pad(influence[first], rest))
    return np.array(indices), np.array(largest)


class Predictive:
    """Class probabilities of new points, averaged over the posterior of (beta, k).

    Parameters
    ----------
    model : BoltzmannModel
        On the graph of the training points, up to at least the largest k of ``nodes``.
    labels : array-like of shape (n,)
        Class numbers 0..n_classes-1 of the training points.
    nodes : PosteriorNodes
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
    >>> from bayesknn.model import BoltzmannModel
    >>> from bayesknn.predictive import PosteriorNodes, Predictive
    >>> ripley = load_ripley()
    >>> model = BoltzmannModel(NeighborGraph.from_points(ripley.X_train, k_max=53), n_classes=2)
    >>> nodes = PosteriorNodes([53], [2.2805], [1.0])
    >>> predictive = Predictive(model, ripley.y_train, nodes)
    >>> predictive.probabilities(ripley.X_test[:2]).round(3).tolist()
    [[0.978, 0.022], [0.984, 0.016]]
    """

    def __init__(
        self,
        model: BoltzmannModel,
        labels: Any,
        nodes: PosteriorNodes,
        *,
        direction: str = "both",
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        model = as_model(model)
        self.direction: str = check_choice(direction, "direction", DIRECTIONS[:2])
        self.labels: np.ndarray = model.check_labels(labels)
        self.model: BoltzmannModel = model
        self.n_classes: int = model.n_classes
        self.class_weight: np.ndarray = model.weights
        self.nodes = nodes
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.graph: Any = model.graph.up_to(int(nodes.k[-1]))
        groups = self.graph.groups
        largest = 1 if groups is None else int(np.bincount(groups).max())
        self._rule = PredictiveRule(nodes, self.class_weight, largest)

    def using(self, n_jobs: int | None, verbose: int) -> Predictive:
        """Return the same with other threads and another progress bar."""
        other = copy(self)
        other.n_jobs, other.verbose = n_jobs, verbose
        return other

    def probabilities(self, X: Any) -> np.ndarray:
        """Average each class's probability over the posterior of (beta, k).

        Parameters
        ----------
        X : array or frame of shape (m, p)
            New points, as :meth:`bayesknn.graph.NeighborGraph.query` takes them.

        Returns
        -------
        ndarray of shape (m, n_classes)
        """
        return self.predict(X).probabilities

    def intervals(self, X: Any, level: float = 0.95) -> np.ndarray:
        """Find a credible interval of each class probability over the posterior of (beta, k).

        The interval is equal-tailed, and widened where the posterior is so extreme that its mean
        lies outside: it always contains what :meth:`probabilities` returns.

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
        return cast("np.ndarray", self.predict(X, check_level(level)).intervals)

    def predict(self, X: Any, level: float | None = None) -> RawPrediction:
        """Search the neighbours of new points once, for all that follows from them.

        Parameters
        ----------
        X : array or frame of shape (m, p)
        level : float, optional
            Of credible intervals, which take longer than the rest; none without it.

        Returns
        -------
        RawPrediction
        """
        if level is not None:
            level = check_level(level)
        parts = [
            self._rule.predict(counts, distances, None, level, self.n_jobs)[0]
            for counts, distances in self._count_new(X)
        ]
        return join_predictions(parts)

    def leave_one_out(self, level: float | None = None) -> tuple[RawPrediction, np.ndarray]:
        """Describe each training point given the labels of all the others.

        Nothing is fitted again: the nodes are reweighted to what they were without its label, or
        without the labels of its group.

        Parameters
        ----------
        level : float, optional
            As in :meth:`predict`.

        Returns
        -------
        prediction : RawPrediction
        effective : ndarray of shape (n,)
            Part of the posterior that the reweighted nodes of each point are worth.
        """
        if level is not None:
            level = check_level(level)
        ks = self._rule.k_values
        parts = self.graph.map_counts(
            partial(_predict_part, self._rule, level, self.n_jobs),
            self.labels,
            self.n_classes,
            ks,
            self.direction,
            max(_LOO_BLOCK_BYTES // (4 * ks.size * self.n_classes), 64),
            self.verbose,
            "Leaving one out",
        )
        order = np.concatenate([rows for rows, _ in parts])
        described, effective = zip(*(value for _, value in parts), strict=True)
        back = np.argsort(order)
        joined = take_rows(join_predictions(described), back)
        distances = self.graph.get_distances(self._rule.rank)
        return joined._replace(distances=distances), np.concatenate(effective)[back]

    @property
    def _row_weight(self) -> np.ndarray:
        return self.class_weight[self.labels]

    def influence(self, X: Any, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the training rows that move the log odds of new points most.

        In the rule of eq. knn-pred a training row of class g adds ``a_g beta / k`` to the log odds
        of g for each direction in which it and the point are neighbours at k. Over the posterior
        that is ``a_g (A[r] + A[s])``: r the row's rank from the point, s the point's rank from the
        row, and A[r] the mean of ``beta / k`` over the k that reach rank r.

        Parameters
        ----------
        X : array or frame of shape (m, p)
        n_neighbors : int

        Returns
        -------
        indices : ndarray of shape (m, n_neighbors), dtype int64
            Largest influence first, the lower row number among equals; -1 where no row is left that
            has any.
        influence : ndarray of shape (m, n_neighbors)
        """
        return take_largest(self._find_influences(X), check_count(n_neighbors, "n_neighbors"))

    def _find_influences(self, X: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the training rows that have influence on each new point, and how much."""
        row_weight, by_rank = self._row_weight, self.nodes.votes_by_rank
        chunks = self.graph.query_chunks(X, n_jobs=self.n_jobs, direction=self.direction)
        for _, query in chunks:
            for q in range(query.n_queries):
                rows, votes = query.neighbors[:, q], by_rank
                if self.direction == "both":
                    back = slice(*query.reverse_starts[q : q + 2])
                    rows = np.append(rows, query.reverse_points[back])
                    votes = np.append(votes, by_rank[query.reverse_ranks[back] - 1])
                some, place = np.unique(rows, return_inverse=True)
                yield some, np.bincount(place, votes * row_weight[rows])

    def _count_new(self, X: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the class counts of new points, block by block, and how far neighbours are."""
        ks = self._rule.k_values
        a_point = 20 * self.graph.k_max + 4 * self.n_classes * ks.size
        size = max(_BLOCK_BYTES // a_point, 64)
        chunks = self.graph.query_chunks(X, size, self.n_jobs, self.direction)
        with progress("Predicting", total=count_rows(X), verbose=self.verbose) as advance:
            for _, query in chunks:
                counts = query.counts(self.labels, self.n_classes, ks, self.direction)
                # A copy: a view would keep the distances of every block.
                yield counts, query.distances[self._rule.rank - 1].copy()
                advance(query.n_queries)


def _predict_part(
    rule: PredictiveRule,
    level: float | None,
    n_jobs: int | None,
    walk: Iterator[np.ndarray],
    labels: np.ndarray,
    starts: np.ndarray | None,
) -> tuple[RawPrediction, np.ndarray]:
    """Predict some training points, each left out; their distances are filled in afterwards."""
    counts = np.stack([each.copy() for each in walk])
    return rule.predict(counts, np.zeros(len(labels)), labels, level, n_jobs, starts)
