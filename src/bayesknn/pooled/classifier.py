"""The pooled neighbours classifier: columns, metrics, features, members and pool, connected."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesknn._estimator import (
    CallbackSupportMixin,
    DecisionMixin,
    check_new_points,
    check_training,
    follow_stages,
    with_callbacks,
)
from bayesknn._utils.blocks import by_blocks
from bayesknn._utils.checks import check_choice, check_count, check_n_jobs, check_verbose, show
from bayesknn._utils.progress import progress
from bayesknn._utils.random import as_seed_sequence
from bayesknn._utils.saving import VersionMixin
from bayesknn.graph import describe_search
from bayesknn.pooled.columns import Columns
from bayesknn.pooled.features import Neighborhoods, check_range
from bayesknn.pooled.folds import assign_folds, honest_features
from bayesknn.pooled.member import fit_member
from bayesknn.pooled.metrics import METRICS
from bayesknn.pooled.pool import fit_weights, pool_proba
from bayesknn.pooled.pool_sureness import PoolSureness
from bayesknn.pooled.row_influence import add_influence, take_largest
from bayesknn.predictive import Summary, check_level, log_score

_N_K = 10
# Lists reach to k = n / 2 while they hold no more entries than this in all, n about 3,000, and to
# k = 64 beyond.
_MAX_ENTRIES = 4_500_000
_LONG_LIST = 64
# Rows that are enough to know how far probabilities are off.
_JUDGED_ROWS = 10_000
# Influences of all rows on some points that are held at a time.
_CHUNK = 2**22


class PooledNeighborsClassifier(
    VersionMixin, CallbackSupportMixin, DecisionMixin, ClassifierMixin, BaseEstimator
):
    """Class probabilities from neighbours in several metrics, pooled by leave-one-out.

    Where the aim is the best probabilities rather than inference about k and beta, this is the
    estimator to use. Each metric has a member: soft counts of the neighbours' classes and the
    distances to each class, linked to probabilities by a regression and averaged over k. The
    members' probabilities are multiplied with weights that maximise the leave-one-out log score.

    Parameters
    ----------
    metrics : sequence of str, default=("robust", "within", "discriminant", "relevance", "evidence")
        Which members: city-block distance of normal scores (never sees the labels); Euclidean
        after whitening within classes; the same stretched along the class means; normal scores
        weighted by the importance of each column to randomised trees; class shares along each
        column, for additive truth.
    n_folds : int, default=5
        Metrics that see the labels are judged in so many stratified folds.
    max_neighbors : int, optional
        Largest k. By default n / 2 up to about 3,000 rows, falling to 64 beyond.
    search : str, default="auto"
        How neighbours are found, see :meth:`bayesknn.graph.NeighborGraph.from_points`; one that
        serves Euclidean and city-block distances. All but ``"faiss-hnsw"`` and ``"faiss-ivf"``
        give the same answer; those two say in ``diagnostics_`` what they found.
    search_params : dict, optional
        Parameters of the search.
    n_jobs : int, optional
        Threads, -1 for all cores. No result depends on it.
    random_state : None, int, SeedSequence, Generator or RandomState
        For the folds and the trees. Nothing is drawn at prediction.
    verbose : int, default=0
        Above 0, a fit that takes more than two seconds shows its progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    pool_weights_ : dict of str to float
        The exponent of each metric's member in the pool.
    k_values_ : ndarray of int
    k_probabilities_ : dict of str to ndarray
        How much each of ``k_values_`` counts in each metric's member.
    loo_proba_ : ndarray of shape (n, n_classes)
        Probabilities of the training points that owe nothing to their own labels: metrics, and the
        weights of the pool, come from the other folds.
    loo_log_score_ : float
        Mean log probability that ``loo_proba_`` gives to the true labels.
    member_log_scores_ : dict of str to float
        The same of each member by itself.
    residual_correlation_ : ResidualCorrelation
        Of near neighbours, with its error: what the width of the intervals comes from.
    diagnostics_ : dict
        ``search``: for each metric how its neighbours were found, ``name``, ``exact`` and, of an
        approximate search, ``recall`` and ``recall_error``; ``warnings`` in words.
    feature_relevance_ : ndarray of shape (n_features_in_,)
        Share of each column in what the trees of the ``"relevance"`` metric see, 0 for a column
        that does not beat permuted ones; only if that metric is in use.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If X had names that are all strings.

    See Also
    --------
    BayesianKNeighborsClassifier : The paper's model, with the posterior of beta and k.

    Notes
    -----
    X may hold numbers and categories, with missing values: a missing number counts as the mean, a
    missing category is a category of its own, and a category that training did not have is none
    of those it had. Frames of pandas and polars say which columns are categories.

    Examples
    --------
    >>> from bayesknn import PooledNeighborsClassifier
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> clf = PooledNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
    >>> clf.score(ripley.X_test, ripley.y_test) > 0.9
    True
    >>> sorted(clf.pool_weights_)
    ['discriminant', 'evidence', 'relevance', 'robust', 'within']
    """

    def __init__(
        self,
        metrics: Any = ("robust", "within", "discriminant", "relevance", "evidence"),
        *,
        n_folds: int = 5,
        max_neighbors: int | None = None,
        search: str = "auto",
        search_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.metrics = metrics
        self.n_folds = n_folds
        self.max_neighbors = max_neighbors
        self.search = search
        self.search_params = search_params
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any) -> PooledNeighborsClassifier:
        """Fit every metric and its member, and weigh them.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Training points: numbers, categories, missing values.
        y : array-like of shape (n,)
            Their labels: at least two classes of at least two points.

        Returns
        -------
        PooledNeighborsClassifier
            Itself.
        """
        names = _check_metrics(self.metrics)
        n_folds = check_count(self.n_folds, "n_folds", 2)
        check_n_jobs(self.n_jobs)
        check_verbose(self.verbose)
        classes, labels = check_training(X, y)
        n_classes = len(classes)
        k_values = self._choose_k(len(labels))
        columns = Columns()
        table = columns.fit(X)
        fold_seed, *seeds = as_seed_sequence(self.random_state).generate_state(1 + len(METRICS))
        seed_of = dict(zip(METRICS, map(int, seeds), strict=True))
        folds = assign_folds(labels, n_folds, np.random.default_rng(fold_seed))
        search = {"search": self.search, "search_params": self.search_params}
        # Errors are judged on so many folds: all of them, on a table of ordinary size.
        judged = folds < -(-n_folds * _JUDGED_ROWS // len(labels))
        fitted, spaces, members, loo, apart, spreads = {}, {}, {}, [], [], {}
        with (
            follow_stages(self, X, y, n_stages=len(names)) as stage,
            progress("Pooling neighbours", len(names), verbose=self.verbose) as advance,
        ):
            for name in names:
                with stage(name):
                    kind, seed = METRICS[name], seed_of[name]
                    metric = kind().fit(table, labels, n_classes, seed)
                    points = metric.transform(table)
                    space = Neighborhoods(
                        points, labels, n_classes, k_values, metric.norm, self.n_jobs, search
                    )
                    in_folds = honest_features(
                        kind, table, labels, n_classes, k_values, folds, seed, self.n_jobs, search,
                        slice(None) if kind.sees_labels else judged,
                    )  # fmt: skip
                    if kind.sees_labels:
                        member, proba = fit_member(in_folds, labels, self.n_jobs)
                        apart.append(proba[judged])
                        spreads[name] = member.proba(in_folds)[1]
                    else:
                        features = space.training_features(self.n_jobs)
                        member, proba = fit_member(features, labels, self.n_jobs)
                        apart.append(member.proba(in_folds)[0])
                        spreads[name] = member.proba(features)[1]
                    fitted[name], spaces[name], members[name] = metric, space, member
                    loo.append(proba)
                advance(1)
        member_proba = np.array(loo)
        weights = fit_weights(member_proba, labels)
        leader = names[int(np.argmax(weights))]
        sureness = PoolSureness(
            spaces[leader],
            float(members[leader].k_weights @ spaces[leader].k_values),
            pool_proba(weights, np.array(apart)),
            folds,
            judged,
            self.n_jobs,
        )
        reached = spaces[leader].graph.distances
        assert reached is not None
        # Last, so that a fitted classifier is still whole when its next fit is refused: from here
        # on nothing can fail but the names of the columns, which are looked at before any is kept.
        validate_data(self, X, skip_check_array=True)
        self.classes_ = classes
        self._columns, self._metrics, self._spaces = columns, fitted, spaces
        self._members, self._weights = members, weights
        self._leader, self._sureness = leader, sureness
        self._left_out = (spreads[leader], reached[sureness.k - 1])
        self.residual_correlation_ = sureness.correlation
        self.k_values_ = k_values
        self.pool_weights_ = dict(zip(names, weights.tolist(), strict=True))
        self.k_probabilities_ = {name: member.k_weights for name, member in members.items()}
        self.member_log_scores_ = {
            name: log_score(proba, labels) for name, proba in zip(names, loo, strict=True)
        }
        self.loo_proba_ = _cross_pool(member_proba, labels, folds)
        self.loo_log_score_ = log_score(self.loo_proba_, labels)
        found = {name: describe_search(space.graph) for name, space in spaces.items()}
        self.diagnostics_ = {
            "search": {name: how for name, (how, _) in found.items()},
            "warnings": [f"{name}: {w}" for name, (_, doubts) in found.items() for w in doubts],
        }
        self.__dict__.pop("feature_relevance_", None)
        if "relevance" in fitted:
            self.feature_relevance_ = np.bincount(
                table.source, fitted["relevance"].relevance_, self.n_features_in_
            )
        return self

    @by_blocks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the pool's class probabilities, in the order of ``classes_``.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)

        Returns
        -------
        ndarray of shape (m, n_classes)
        """
        return self._look_around(X)[0]

    @by_blocks
    def predict_interval(self, X: Any, level: float = 0.95, of: str = "probability") -> np.ndarray:
        """Return an interval for each true class probability.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
        level : float, default=0.95
            Share of points whose interval is to hold the true probability.
        of : {"probability"}, default="probability"
            As on :class:`BayesianKNeighborsClassifier`; there is no posterior of parameters here.

        Returns
        -------
        ndarray of shape (m, n_classes, 2)
            Lower and upper ends; [0, 1] where the neighbours are farther than any training
            point's.
        """
        return self.predict_summary(X, level, of).intervals

    def predict_summary(self, X: Any, level: float = 0.95, of: str = "probability") -> Summary:
        """Return probabilities, intervals and typicality from one search for neighbours.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
        level, of
            As in :meth:`predict_interval`.

        Returns
        -------
        Summary
            With ``probabilities``, ``intervals`` and ``typicality``: what
            :meth:`predict_proba`, :meth:`predict_interval` and :meth:`predict_typicality` return.
        """
        check_choice(of, "of", ("probability",))
        level = check_level(level)
        probabilities, variances, distances = self._look_around(X)
        intervals = self._sureness.intervals(probabilities, variances, distances, level)
        return Summary(probabilities, intervals, self._sureness.scale.typicality(distances))

    def loo_interval(self, level: float = 0.95, of: str = "probability") -> np.ndarray:
        """Return an interval of each true class probability of the training points, left out.

        Parameters
        ----------
        level, of
            As in :meth:`predict_interval`.

        Returns
        -------
        ndarray of shape (n, n_classes, 2)
            Lower and upper ends, around ``loo_proba_``.
        """
        check_is_fitted(self)
        check_choice(of, "of", ("probability",))
        variances, distances = self._left_out
        return self._sureness.intervals(self.loo_proba_, variances, distances, check_level(level))

    @by_blocks
    def predict_zone(
        self,
        X: Any,
        level: float = 0.95,
        uncertain: Any = "uncertain",
        of: str = "probability",
        unfamiliar: float = 0.0,
    ) -> np.ndarray:
        """Return the class whose interval lies above that of every other, or ``uncertain``.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
        level : float, default=0.95
            Of the intervals.
        uncertain : object, default="uncertain"
            What to say where no class is sure; none of ``classes_``.
        of : {"probability"}, default="probability"
            Of what the intervals are.
        unfamiliar : float, default=0.0
            Points with a typicality below it are ``"unfamiliar"``, see
            :meth:`predict_typicality`; at 0 no point is.

        Returns
        -------
        ndarray of shape (m,), dtype object
        """
        return self._name_zones(X, level, uncertain, of, unfamiliar)

    @by_blocks
    def predict_typicality(self, X: Any) -> np.ndarray:
        """Return how usual the places of new points are.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)

        Returns
        -------
        ndarray of shape (m,)
            The share of training points that lie at least as far from their neighbours as the
            point from its own, in the metric that weighs most: 0 for a point farther out than any.
        """
        return self.predict_summary(X).typicality

    def predict_influence(self, X: Any, n_neighbors: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """Return the training rows that move the log odds of new points most, and how much.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
        n_neighbors : int, default=10
            How many rows.

        Returns
        -------
        indices : ndarray of shape (m, n_neighbors)
            Numbers of training rows, the most influential first; -1 where no other row has any
            influence.
        influence : ndarray of shape (m, n_neighbors)
            What the row adds, through its soft counts in all metrics, to the log odds of its own
            class against every other.
        """
        n_neighbors = check_count(n_neighbors, "n_neighbors")
        check_new_points(self, X)
        table = self._columns.transform(X)
        m, n = len(table.points), len(self.loo_proba_)
        indices, influence = [], []
        for start in range(0, m, max(1, _CHUNK // n)):
            part = table.take(slice(start, start + max(1, _CHUNK // n)))
            found = np.zeros((len(part.points), n))
            for name, metric in self._metrics.items():
                rows = np.ascontiguousarray(metric.transform(part))
                weight = self.pool_weights_[name]
                add_influence(self._spaces[name], self._members[name], weight, rows, found)
            largest = take_largest(found, n_neighbors)
            indices.append(largest[0])
            influence.append(largest[1])
        return np.concatenate(indices), np.concatenate(influence)

    def _look_around(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return probabilities, variances over k and distances in the metric that weighs most."""
        check_new_points(self, X)
        table = self._columns.transform(X)
        found = []
        variances = distances = np.empty(0)
        for name, metric in self._metrics.items():
            space, rows = self._spaces[name], metric.transform(table)
            proba, spread = self._members[name].proba(space.new_features(rows, self.n_jobs))
            found.append(proba)
            if name == self._leader:
                variances = spread
                distances = space.distances(rows, self._sureness.k, self.n_jobs)
        return pool_proba(self._weights, np.array(found)), variances, distances

    def _choose_k(self, n: int) -> np.ndarray:
        """Return ten geometric k from 2 to the largest."""
        if self.max_neighbors is not None:
            top = check_count(self.max_neighbors, "max_neighbors", 1, n - 1)
        else:
            top = min(n // 2, max(_LONG_LIST, _MAX_ENTRIES // n))
        spread = np.geomspace(min(2, top), top, _N_K)
        return np.unique(np.round(spread).astype(np.int64))

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if hasattr(self, "_sureness"):
            check_range("k", self._sureness.k, 1, self._spaces[self._leader].graph.k_max)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _check_metrics(metrics: Any) -> list[str]:
    if isinstance(metrics, str) or not hasattr(metrics, "__iter__"):
        raise ValueError(f"metrics must be a sequence of {', '.join(METRICS)}, got {show(metrics)}")
    names = [check_choice(name, "each of metrics", METRICS) for name in metrics]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"metrics must name at least one metric, and none twice, got {names}")
    return names


def _cross_pool(probabilities: np.ndarray, labels: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Pool each fold by weights that the other folds chose."""
    found = np.empty(probabilities.shape[1:])
    for fold in np.unique(folds):
        own = folds == fold
        weights = fit_weights(probabilities[:, ~own], labels[~own])
        found[own] = pool_proba(weights, probabilities[:, own])
    return found
