"""The classical k-nearest-neighbour rule with leave-one-out choice of k (Section 1.2).

A new point takes the most common class among its k nearest training points; "whenever ties occur,
they are resolved by decreasing the number k of neighbours until the problem disappears".

Decreasing k until one class leads gives the vote of the largest k' <= k at which there is no tie.
:func:`walk_votes` therefore adds one neighbour after another and keeps the last vote without a tie:
a single pass over the neighbour lists gives the decision at every k, and with it the whole
leave-one-out curve.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from bayesknn._estimator import (
    ContributionsMixin,
    check_column_names,
    check_new_points,
    check_training,
    choose_k_max,
)
from bayesknn._utils.blocks import by_blocks
from bayesknn._utils.checks import check_count, check_label_vector, check_n_jobs
from bayesknn._utils.saving import VersionMixin
from bayesknn.graph import NeighborGraph
from bayesknn.sureness.groups import find_scored, name_unscored


class ClassicalKNeighborsClassifier(
    VersionMixin, ContributionsMixin, ClassifierMixin, BaseEstimator
):
    """Majority vote of the k nearest neighbours, with k given or chosen by leave-one-out error.

    A tied vote is resolved by decreasing k until one class leads. Equally distant neighbours are
    ordered by a fixed pseudo-random key of their row, so that the result does not depend on the
    algorithm of the neighbour search.

    Parameters
    ----------
    n_neighbors : int or "loo", default="loo"
        The number k of neighbours, at most n - 1. ``"loo"`` chooses the smallest k that minimises
        the leave-one-out error over 1..``max_neighbors``.
    metric : str or callable, default="euclidean"
        Any metric of :meth:`bayesknn.graph.NeighborGraph.from_points`.
    metric_params : dict, optional
        Parameters of the metric.
    max_neighbors : int, optional
        Largest k of the leave-one-out curve, at most n - 1. The default is ``n_neighbors`` if
        that is a number, and otherwise the default of :class:`BayesianKNeighborsClassifier`.
    n_jobs : int, optional
        Number of threads for the neighbour search, -1 for all cores. The result does not depend
        on it.

    Attributes
    ----------
    n_neighbors_ : int
        The k used for prediction.
    k_ : int
        Short name of ``n_neighbors_``.
    loo_errors_ : ndarray of shape (max_neighbors,)
        Leave-one-out error rates on the training points; entry k - 1 is the rate at k.
    classes_ : ndarray of shape (n_classes,)
        The distinct labels in increasing order.
    graph_ : NeighborGraph
        Neighbours of the training points up to the largest k of the curve.
    n_features_in_ : int
        Number of columns of the X passed to ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names of the X passed to ``fit``, if all of them are strings.

    Examples
    --------
    >>> from bayesknn import ClassicalKNeighborsClassifier
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> clf = ClassicalKNeighborsClassifier().fit(ripley.X_train, ripley.y_train)
    >>> clf.n_neighbors_, round(float(clf.loo_errors_[16]), 3)
    (17, 0.116)
    >>> round(1 - clf.score(ripley.X_test, ripley.y_test), 3)
    0.087
    """

    def __init__(
        self,
        n_neighbors: int | str = "loo",
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        max_neighbors: int | None = None,
        n_jobs: int | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.max_neighbors = max_neighbors
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> ClassicalKNeighborsClassifier:
        """Find the neighbours of the training points and compute the leave-one-out errors.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Training points; distances of shape (n, n) for ``metric="precomputed"``.
        y : array-like of shape (n,)
            Labels of the training points. At least two classes are required, one of them with at
            least two points. The only point of a class votes, but is omitted from the error rates,
            because leave-one-out can never predict its class.
        groups : array-like of shape (n,), optional
            Group of each row, such as the patient of a visit, if new rows will come from new
            groups. Rows of one group are no neighbours of each other. A class that occurs in one
            group only is omitted from the error rates.

        Returns
        -------
        ClassicalKNeighborsClassifier
            The fitted classifier itself.
        """
        check_n_jobs(self.n_jobs)
        classes, labels, groups = check_training(X, y, groups)
        k_max, scored = self._choose_max(X, labels, groups), find_scored(labels, groups) > 0
        graph = NeighborGraph.from_points(
            X,
            k_max,
            metric=self.metric,
            metric_params=self.metric_params,
            n_jobs=self.n_jobs,
            groups=groups,
        )
        walk = walk_votes(graph.neighbors, labels, len(classes))
        errors = np.array([np.mean((votes.argmax(axis=1) != labels)[scored]) for votes in walk])
        for warning in name_unscored(classes, labels, groups):
            warnings.warn(warning, stacklevel=2)
        # This check is the last statement that can raise. Attributes are set after it, so that a
        # fitted classifier keeps its previous fit if a new call of fit raises.
        check_column_names(self, X)
        # np.argmin returns the first minimum, hence the smallest k.
        k = int(np.argmin(errors)) + 1 if self._is_loo() else int(self.n_neighbors)
        self.classes_: np.ndarray = classes
        self._labels = labels
        self._params_of_fit = self.get_params(deep=False)
        self.graph_ = graph
        # The graph for prediction has only the first k ranks, so that queries search k neighbours
        # of a new point instead of k_max.
        self._voters = graph.up_to(k)
        self.loo_errors_: np.ndarray = errors
        self.n_neighbors_ = k
        return self

    @property
    def k_(self) -> int:
        """Number of neighbours used for prediction, equal to ``n_neighbors_``."""
        return self.n_neighbors_

    @by_blocks
    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the most votes for each point, with ties resolved by decreasing k.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
            New points; distances of shape (m, n) for ``metric="precomputed"``.

        Returns
        -------
        ndarray of shape (m,)
            Predicted labels.
        """
        winners = self._count_votes(X).argmax(axis=1)
        return self.classes_[winners]

    @by_blocks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class proportions among the neighbours that decide the vote.

        These are the k nearest neighbours. If their vote is tied, they are the k' nearest ones for
        the largest k' < k without a tie, as in :meth:`predict`.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
            New points; distances of shape (m, n) for ``metric="precomputed"``.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Class proportions, with columns in the order of ``classes_``.
        """
        counts = self._count_votes(X)
        return counts / counts.sum(axis=1, keepdims=True)

    def _count_votes(self, X: Any) -> np.ndarray:
        check_new_points(self, X)
        queries = self._voters.query_chunks(X, n_jobs=self.n_jobs, direction="forward")
        votes = (walk_votes(q.neighbors, self._labels, len(self.classes_)) for _, q in queries)
        return np.concatenate([deque(walk, maxlen=1)[0] for walk in votes])

    def _is_loo(self) -> bool:
        return isinstance(self.n_neighbors, str) and self.n_neighbors == "loo"

    def _choose_max(self, X: Any, labels: np.ndarray, groups: np.ndarray | None) -> int:
        n, k_max = len(labels), self.max_neighbors
        most = n - (1 if groups is None else int(np.bincount(groups).max()))
        if k_max is not None:
            k_max = check_count(k_max, "max_neighbors", 1, most)
        if self._is_loo():
            graph = X if self._is_precomputed else None
            return k_max or choose_k_max(None, None, np.bincount(labels), graph, groups)
        try:
            k = check_count(self.n_neighbors, "n_neighbors", 1, most)
        except ValueError as error:
            raise ValueError(f'{error} (X has {n} rows); it may also be "loo"') from None
        if k_max is not None and k_max < k:
            raise ValueError(f"max_neighbors must be at least n_neighbors ({k}), got {k_max}")
        return k_max or k

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if hasattr(self, "graph_"):
            n, n_classes = self.graph_.n_points, len(self.classes_)
            self._labels = check_label_vector(self._labels, n, n_classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise, tags.input_tags.sparse = self._is_precomputed, True
        tags.input_tags.allow_nan = isinstance(self.metric, str) and self.metric == "nan_euclidean"
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"


def walk_votes(neighbors: np.ndarray, labels: np.ndarray, n_classes: int) -> Iterator[np.ndarray]:
    """Yield the class counts that decide the vote, for k = 1, 2, ... neighbours.

    Parameters
    ----------
    neighbors : ndarray of shape (k_max, m)
        Training rows nearest to each of m points, the nearest first.
    labels : ndarray of shape (n,)
        Class indices of the training points.
    n_classes : int

    Yields
    ------
    ndarray of shape (m, n_classes)
        Votes for each class among the k nearest neighbours of each point or, if these are tied,
        among the k' nearest for the largest k' < k without a tie. It is the same array each time,
        updated in place.
    """
    rows = np.arange(neighbors.shape[1])
    counts, decisive = np.zeros((2, len(rows), n_classes), np.uint32)
    for near in neighbors:
        counts[rows, labels[near]] += 1
        is_largest = counts == counts.max(axis=1, keepdims=True)
        has_winner = is_largest.sum(axis=1) == 1
        decisive[has_winner] = counts[has_winner]
        yield decisive
