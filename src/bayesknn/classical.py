"""The classical k-nearest-neighbour rule with leave-one-out choice of k (Section 1.2).

A new point takes the most common class among its k nearest training points; "whenever ties occur,
they are resolved by decreasing the number k of neighbours until the problem disappears".

Decreasing k until one class leads alone leads back to the last vote that was decided. So one pass
outwards over the ranks, which remembers that vote, knows the decision at every k, and the whole
leave-one-out curve costs one reading of the neighbour lists.
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
    """Vote of the k nearest neighbours, k given or chosen by leave-one-out error.

    Ties are resolved by decreasing k until the vote is decided. Neighbours are ordered by
    (distance, key of the row), so nothing depends on the search structure.

    Parameters
    ----------
    n_neighbors : int or "loo", default="loo"
        The number k of neighbours, at most n - 1; or ``"loo"``: the smallest k with the least
        leave-one-out error among 1..``max_neighbors``.
    metric : str or callable, default="euclidean"
        Any metric of :meth:`bayesknn.graph.NeighborGraph.from_points`.
    metric_params : dict, optional
        Parameters of the metric.
    max_neighbors : int, optional
        Largest k of the leave-one-out curve, at most n - 1. By default it is ``n_neighbors``
        where that is a number; for ``"loo"`` as in :class:`BayesianKNeighborsClassifier`.
    n_jobs : int, optional
        Threads for the neighbour search, -1 for all cores. The result does not depend on it.

    Attributes
    ----------
    n_neighbors_ : int
        The k in use.
    k_ : int
        The same, by its short name.
    loo_errors_ : ndarray of shape (max_neighbors,)
        Entry k - 1 is the leave-one-out error rate on the training points at k.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    graph_ : NeighborGraph
        The training points' neighbours.
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names that are all strings.

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
        """Sort the training points' neighbours and compute the leave-one-out errors.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Training points; distances of shape (n, n) for ``metric="precomputed"``.
        y : array-like of shape (n,)
            Their labels: at least two classes, one of them of at least two points. A class of one
            point votes, and does not count in the errors.
        groups : array-like of shape (n,), optional
            Rows that belong together, such as the visits of a patient, where new rows come from new
            groups: no row votes for another one of its group. A class of one group alone does not
            count in the errors.

        Returns
        -------
        ClassicalKNeighborsClassifier
            Itself.
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
        # Last, so that a fitted classifier is still whole when its next fit is refused: from here
        # on nothing can fail but the names of the columns, which are looked at before any is kept.
        check_column_names(self, X)
        # argmin takes the first, that is the smallest k.
        k = int(np.argmin(errors)) + 1 if self._is_loo() else int(self.n_neighbors)
        self.classes_: np.ndarray = classes
        self._labels = labels
        self._params_of_fit = self.get_params(deep=False)
        self.graph_ = graph
        # The graph of this k alone, so that predicting does not search up to k_max.
        assert graph.distances is not None
        self._voters = NeighborGraph(graph.neighbors[:k], graph.distances[:k], graph.index)
        self.loo_errors_: np.ndarray = errors
        self.n_neighbors_ = k
        return self

    @property
    def k_(self) -> int:
        """The k in use, as ``n_neighbors_``."""
        return self.n_neighbors_

    @by_blocks
    def predict(self, X: Any) -> np.ndarray:
        """Class that wins the vote, ties resolved by decreasing k.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
            New points; distances of shape (m, n) for ``metric="precomputed"``.

        Returns
        -------
        ndarray of shape (m,)
        """
        winners = self._count_votes(X).argmax(axis=1)
        return self.classes_[winners]

    @by_blocks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Each class's proportion of the votes that decided, in the order of ``classes_``.

        These are the proportions among the k nearest neighbours or, where those are tied, among the
        largest smaller number of neighbours that is not: the vote that :meth:`predict` counts.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
            New points; distances of shape (m, n) for ``metric="precomputed"``.

        Returns
        -------
        ndarray of shape (m, n_classes)
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
            raise ValueError(f'{error} (X has {n} rows); or "loo"') from None
        if k_max is not None and k_max < k:
            raise ValueError(f"max_neighbors is {k_max}, less than n_neighbors, which is {k}")
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
    """Yield the votes for each class at rising k, once ties are resolved.

    Parameters
    ----------
    neighbors : ndarray of shape (k, m)
    labels : ndarray of shape (n,)
        Class numbers of the training points.
    n_classes : int

    Yields
    ------
    ndarray of shape (m, n_classes)
        One array, updated in place: of the k nearest, or of the last number that was no tie.
    """
    rows = np.arange(neighbors.shape[1])
    counts, decided = np.zeros((2, len(rows), n_classes), np.uint32)
    for near in neighbors:
        counts[rows, labels[near]] += 1
        is_top = counts == counts.max(axis=1, keepdims=True)
        leads_alone = is_top.sum(axis=1) == 1
        decided[leads_alone] = counts[leads_alone]
        yield decided
