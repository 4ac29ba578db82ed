"""The pooled neighbours classifier: columns, views, members and pool, connected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayesknn._estimator import (
    CallbackSupportMixin,
    DecisionMixin,
    check_column_names,
    check_new_points,
    check_training,
    follow_stages,
    with_callbacks,
)
from bayesknn._utils.blocks import by_blocks
from bayesknn._utils.checks import (
    check_choice,
    check_count,
    check_level,
    check_n_jobs,
    check_verbose,
    show,
)
from bayesknn._utils.progress import progress
from bayesknn._utils.random import as_seed_sequence
from bayesknn._utils.saving import VersionMixin, fingerprint
from bayesknn.graph import describe_search
from bayesknn.model import class_weights
from bayesknn.pooled.agreement import check_parts
from bayesknn.pooled.columns import Columns, Sample, Settings, Table
from bayesknn.pooled.interval_model import find_pool_intervals
from bayesknn.pooled.member import fit_member, fit_weights, pool_proba
from bayesknn.pooled.metrics import METRICS
from bayesknn.pooled.views import (
    VIEWS,
    WITH_IMPORTANCES,
    NeighborView,
    assign_folds,
    leave_folds_out,
)
from bayesknn.predictive import log_score
from bayesknn.predictive.averages import RawPrediction
from bayesknn.predictive.predictive import take_largest
from bayesknn.sureness.calibration import shift_probabilities
from bayesknn.sureness.counts import counts_of_probabilities
from bayesknn.sureness.intervals import KINDS_OF_INTERVAL


class PooledNeighborsClassifier(
    VersionMixin, CallbackSupportMixin, DecisionMixin, ClassifierMixin, BaseEstimator
):
    """Class probabilities from neighbours in several metrics, pooled by leave-one-out.

    Where the aim is the best probabilities rather than inference about k and beta, this is the
    estimator to use. Five members look at neighbours, each in a metric of its own: soft counts of
    the neighbours' classes and the distances to each class, linked to probabilities by a
    regression and averaged over k. Two companions look at no neighbours: an additive regression and
    boosted trees. The members' probabilities are multiplied with exponents that maximise the
    leave-one-out log score.

    Parameters
    ----------
    members : sequence of str
        Which members, all by default. Neighbours: ``"robust"``, city-block distance of normal
        scores (never sees the labels); ``"within"``, Euclidean after whitening within classes;
        ``"discriminant"``, the same stretched along the class means; ``"relevance"``, normal scores
        weighted by the importance of each column to randomised trees; ``"evidence"``, class shares
        along each column. Without neighbours: ``"additive"``, ridge logistic regression on the
        class shares along each column, on numbers and their squares; ``"boosted"``,
        gradient-boosted trees.
    class_prior : array-like of shape (n_classes,) or dict, optional
        Class frequencies where the classifier is used, if they are not those of training: the
        predicted odds of class g are multiplied by ``p_g n / n_g``.
    categorical_features : sequence of str, of int or of bool, optional
        Columns that hold categories though they are numbers: names, positions or a mask. Text,
        truth values and category dtypes are categories anyway.
    n_folds : int, default=5
        Members are judged in this many stratified folds. More take longer, are less pessimistic
        about members that see more rows in the end, and make ``random_state`` matter less.
    max_neighbors : int, optional
        Largest k. By default n / 2 on small tables, falling to 64 on large ones.
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
        The exponent of each member in the pool; they need not add up to 1.
    neighbor_share_ : float
        Share of the members that look at neighbours in the pool's log odds, in absolute value, over
        the training points.
    k_values_ : ndarray of int
    k_probabilities_ : dict of str to ndarray
        How much each of ``k_values_`` counts in each member; of ``"additive"`` each penalty, of
        ``"boosted"`` each number of rounds.
    loo_proba_ : ndarray of shape (n, n_classes)
        Probabilities of the training points that owe nearly nothing to their own labels: members,
        and the weights of the pool, come from the other folds, but a label has its part in those.
        Turning one label around moved its own probability by .01 on average and .08 at most.
        With the offset of ``class_prior``.
    loo_log_score_ : float
        Mean log probability that ``loo_proba_`` gives to the true labels, rows weighted by
        ``sample_weight``.
    member_log_scores_ : dict of str to float
        The same of each member by itself.
    residual_correlation_, residual_correlation_error_ : float
        Correlation of the residuals of near rows and its standard error; NaN where folds are too
        small to have pairs. Intervals are made from it.
    diagnostics_ : dict
        ``search``: for each metric that is in use how its neighbours were found, ``name``,
        ``exact`` and, of an approximate search, ``recall`` and ``recall_error``;
        ``misfit_column``, the one on which the residuals still depend, or None; ``misfit_rows``,
        the number of rows on which columns were examined, at most 20,000; ``warnings`` in words;
        ``training``: a fingerprint of X and y.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in what the members ``"relevance"``, ``"additive"`` and ``"boosted"``
        see, averaged by their weights in the pool; only if one of them is in use.
    feature_relevance_ : ndarray of shape (n_features_in_,)
        The same of ``"relevance"`` alone, 0 for a column that does not beat permuted ones.
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
    of those it had. Frames of pandas and polars say which columns are categories; ordered ones of
    pandas keep their order in the boosted trees. Of a column with more than 30 categories those of
    fewer than five rows, and the rarest, count as one.

    Examples
    --------
    >>> from bayesknn import PooledNeighborsClassifier
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> clf = PooledNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
    >>> clf.score(ripley.X_test, ripley.y_test) > 0.9
    True
    >>> sorted(clf.pool_weights_)
    ['additive', 'boosted', 'discriminant', 'evidence', 'relevance', 'robust', 'within']
    """

    classes_: np.ndarray
    k_values_: np.ndarray
    k_probabilities_: dict[str, np.ndarray]
    member_log_scores_: dict[str, float]
    loo_proba_: np.ndarray
    loo_log_score_: float
    neighbor_share_: float
    feature_importances_: np.ndarray
    feature_relevance_: np.ndarray
    diagnostics_: dict[str, Any]

    def __init__(
        self,
        members: Any = tuple(VIEWS),
        *,
        class_prior: Any = None,
        categorical_features: Any = None,
        n_folds: int = 5,
        max_neighbors: int | None = None,
        search: str = "auto",
        search_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.members = members
        self.class_prior = class_prior
        self.categorical_features = categorical_features
        self.n_folds = n_folds
        self.max_neighbors = max_neighbors
        self.search = search
        self.search_params = search_params
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # There is no posterior of parameters.
    _kinds_of_interval = KINDS_OF_INTERVAL[:1]

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PooledNeighborsClassifier:
        """Fit every member and weigh them.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Training points: numbers, categories, missing values.
        y : array-like of shape (n,)
            Their labels: at least two classes of at least two points, because a class without its
            only point could not be judged.
        sample_weight : array-like of shape (n,), optional
            Positive weights: of the votes, in every regression, in the trees and in the mean of
            the leave-one-out scores. They are relative: only their ratios matter. Unequal weights
            are worth fewer rows, ``(sum w)^2 / sum w^2``, and intervals are wider.

        Returns
        -------
        PooledNeighborsClassifier
            Itself.
        """
        names = _check_members(self.members)
        n_folds = check_count(self.n_folds, "n_folds", 2)
        check_n_jobs(self.n_jobs)
        check_verbose(self.verbose)
        classes, labels = check_training(X, y)
        weights = _check_weights(sample_weight, len(labels))
        columns = Columns(self.categorical_features)
        sample = Sample(columns.fit(X), labels, weights, len(classes))
        ratios = self._find_odds_ratios(sample, classes)
        folds, settings = self._set_up(labels, n_folds)
        members, loo, spread, reach = {}, {}, {}, {}
        with (
            follow_stages(self, X, y, n_stages=len(names)) as stage,
            progress("Pooling neighbours", len(names), verbose=self.verbose) as advance,
        ):
            for name in names:
                with stage(name):
                    features, reach[name] = leave_folds_out(name, sample, settings[name], folds)
                    members[name], loo[name] = fit_member(features, labels, weights, self.n_jobs)
                    spread[name] = members[name].proba(features)[1]
                advance(1)
        member_proba = np.array(list(loo.values()))
        exponents = fit_weights(member_proba, labels, weights)
        pool_weights = dict(zip(names, exponents.tolist(), strict=True))
        # Intervals and typicality need distances: of the metric that weighs most, or of one that
        # needs no labels if no member has any.
        metrics = [name for name in names if name in METRICS]
        leader = max(metrics, key=lambda name: pool_weights[name], default="robust")
        if leader not in members:
            reach[leader] = leave_folds_out(leader, sample, settings[leader], folds)[1]
        views = {
            name: VIEWS[name](sample, settings[name], reach[name])
            for name in reach
            # Who has no weight is not asked.
            if name in (leader, *WITH_IMPORTANCES) or pool_weights[name] > 0
        }
        apart = pool_proba(exponents, member_proba)
        interval_model, reach_at = find_pool_intervals(
            views[leader].space, members.get(leader), apart, folds, sample.table.values, self.n_jobs
        )
        left_out = _cross_pool(member_proba, sample, folds)
        variances = spread.get(leader, np.zeros_like(left_out))
        # Last, so that a fitted classifier is still whole when its next fit is refused: from here
        # on nothing can fail but the names of the columns, which are looked at before any is kept.
        check_column_names(self, X)
        self.classes_, self._ratios = classes, ratios
        self._params_of_fit = self.get_params(deep=False)
        self._labels, self._score_weights = labels, weights
        self._columns, self._views, self._members = columns, views, members
        self._leader, self._interval_model, self._reach_at = leader, interval_model, reach_at
        self._left_out = left_out, variances, views[leader].space.reach[:, reach_at]
        self.k_values_ = settings[leader].k_values
        self.pool_weights_ = pool_weights
        self.k_probabilities_ = {name: member.k_weights for name, member in members.items()}
        self.member_log_scores_ = {name: log_score(loo[name], labels, weights) for name in names}
        self.loo_proba_ = shift_probabilities(left_out, ratios)
        self.loo_log_score_ = log_score(self.loo_proba_, labels, weights)
        self.neighbor_share_ = _find_neighbor_share(names, exponents, member_proba)
        self._describe_columns()
        self._diagnose(sample.table.value_source)
        self.diagnostics_["training"] = fingerprint(X, labels)
        return self

    def _set_up(self, labels: np.ndarray, n_folds: int) -> tuple[np.ndarray, dict[str, Settings]]:
        """Return the folds and the settings of every view."""
        seeds = as_seed_sequence(self.random_state).generate_state(1 + len(VIEWS)).tolist()
        k_values = self._choose_k(len(labels))
        search = {"search": self.search, "search_params": self.search_params}
        views = zip(VIEWS, seeds[1:], strict=True)
        settings = {name: Settings(k_values, seed, self.n_jobs, search) for name, seed in views}
        return assign_folds(labels, n_folds, np.random.default_rng(seeds[0])), settings

    def _find_odds_ratios(self, sample: Sample, classes: np.ndarray) -> np.ndarray | None:
        """Return what ``class_prior`` multiplies the odds of each class by."""
        if self.class_prior is None:
            return None
        ratios = class_weights(sample.labels, self.class_prior, classes.tolist())
        counted = np.bincount(sample.labels) / len(sample.labels)
        return ratios * counted / sample.class_shares

    def _describe_columns(self) -> None:
        """Say how much each column matters to the members that weigh columns."""
        for name in ("feature_relevance_", "feature_importances_"):
            self.__dict__.pop(name, None)
        shares = {}
        for name, view in self._views.items():
            if name in WITH_IMPORTANCES:
                sizes, source = view.importances(self._members[name].k_weights)
                by_column = np.bincount(source, sizes, self.n_features_in_)
                shares[name] = by_column / (by_column.sum() or 1.0)
        if "relevance" in shares:
            self.feature_relevance_ = shares["relevance"]
        if shares:
            weights = np.array([self.pool_weights_[name] for name in shares])
            weights = weights if weights.any() else np.ones(len(weights))
            self.feature_importances_ = np.average(list(shares.values()), 0, weights)

    def _diagnose(self, source: np.ndarray) -> None:
        """Say how neighbours were found, and on which column residuals still depend."""
        searches = {
            name: describe_search(*view.space.classes)
            for name, view in self._views.items()
            if isinstance(view, NeighborView)
        }
        self.diagnostics_ = {
            "search": {name: how for name, (how, _) in searches.items()},
            "warnings": [f"{name}: {w}" for name, (_, doubts) in searches.items() for w in doubts],
        }
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        self._describe_misfit(names[source].tolist(), "the pool")

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
        return shift_probabilities(self._predict_members(self._read(X))[0], self._ratios)

    def _describe_new(self, X: Any, level: float | None) -> RawPrediction:
        table, known = self._read(X), self._interval_model.copies
        features, reach = self._views[self._leader].search(table, self.n_jobs)
        probabilities, variances = self._predict_members(table, {self._leader: features})
        copies = None if known is None else known.count_new(table.values)
        distances = reach[:, self._reach_at]
        return RawPrediction(probabilities, variances, None, distances, copies=copies)

    def _describe_left_out(self, level: float | None) -> RawPrediction:
        known, space = self._interval_model.copies, self._views[self._leader].space
        copies = None if known is None else known.count_others(space.labels, space.weights)
        probabilities, variances, distances = self._left_out
        return RawPrediction(probabilities, variances, None, distances, copies=copies)

    @property
    def _odds_ratio(self) -> np.ndarray | None:
        return self._ratios

    def predict_counts(
        self, X: Any, level: float = 0.9, prevalence: str = "training"
    ) -> np.ndarray:
        """Return how many points of a batch belong to each class: mean and interval.

        The sum of :meth:`predict_proba` and what leave-one-out shows about its error.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
        level : float, default=0.9
            Probability inside the interval, half of the rest on either side.
        prevalence : {"training"}, default="training"
            The batch has the class frequencies of training, or those of ``class_prior``. For a
            batch whose frequencies are free, :class:`BayesianKNeighborsClassifier` has joint draws.

        Returns
        -------
        ndarray of shape (n_classes, 3)
            Mean, low and high of the number of points in each class, in the order of
            ``classes_``.
        """
        check_is_fitted(self)
        level = check_level(level)
        check_choice(prevalence, "prevalence", ("training", "free"))
        if prevalence == "free":
            raise ValueError(
                'prevalence="free" needs joint draws, which the pool has not: use '
                'BayesianKNeighborsClassifier("pseudo").predict_counts(X, prevalence="free")'
            )
        space = self._views[self._leader].space
        weights = space.weights
        if self._ratios is not None:
            weights = weights * self._ratios[space.labels]
        proba = np.asarray(self.predict_proba(X))
        return counts_of_probabilities(proba, self.loo_proba_, space.labels, level, weights)

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
        _, reach = self._views[self._leader].search(self._read(X), self.n_jobs)
        return self._interval_model.scale.typicality(reach[:, self._reach_at])

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
            class against every other. Rows have no part of their own in the additive regression and
            the boosted trees: ``neighbor_share_`` says how much neighbours count in all.
        """
        n_neighbors = check_count(n_neighbors, "n_neighbors")
        return take_largest(self._find_influences(self._read(X)), n_neighbors)

    def _find_influences(self, table: Table) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield all training rows, and the influence of each on each new point."""
        n = len(self.loo_proba_)
        # Influences of all rows on some points are held at a time.
        step = max(1, 2**22 // n)
        for start in range(0, len(table.points), step):
            part = table.take(slice(start, start + step))
            influence = np.zeros((len(part.points), n))
            for name, weight in self.pool_weights_.items():
                if weight > 0 and name in METRICS:
                    influence += weight * self._views[name].influence(part, self._members[name])
            yield from ((np.arange(n), each) for each in influence)

    def _read(self, X: Any) -> Table:
        check_new_points(self, X)
        return self._columns.transform(X)

    def _predict_members(
        self, table: Table, known: dict[str, np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return pooled probabilities, before ``class_prior``, and the leader's variances over k.

        Members of weight 0 are not asked, and no features are looked for that are ``known``.
        """
        variances = np.zeros((len(table.points), len(self.classes_)))
        weights = {name: weight for name, weight in self.pool_weights_.items() if weight > 0}
        probabilities = np.empty((len(weights), *variances.shape))
        for place, name in enumerate(weights):
            features = (known or {}).get(name)
            if features is None:
                features = self._views[name].features(table, self.n_jobs)
            probabilities[place], spread = self._members[name].proba(features)
            if name == self._leader:
                variances = spread
        return pool_proba(np.array(list(weights.values())), probabilities), variances

    def _choose_k(self, n: int) -> np.ndarray:
        """Return ten geometric k from 2 to the largest."""
        if self.max_neighbors is not None:
            top = check_count(self.max_neighbors, "max_neighbors", 1, n - 1)
        else:
            # Up to 3,000 rows lists reach to k = n / 2; beyond, k falls as n^-1.5, down to 64.
            # Longer ones gain .005 in log-loss on 5,000 rows where classes follow smoothly from
            # products of columns, next to nothing elsewhere, and take 2.5 times as long.
            top = min(n // 2, max(64, round(3_000**2.5 / (2 * n**1.5))))
        spread = np.geomspace(min(2, top), top, 10)
        return np.unique(np.round(spread).astype(np.int64))

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if hasattr(self, "_interval_model"):
            check_parts(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags


def _check_members(members: Any) -> list[str]:
    if isinstance(members, str) or not hasattr(members, "__iter__"):
        raise ValueError(f"members must be a sequence of {', '.join(VIEWS)}, got {show(members)}")
    names = [check_choice(name, "each of members", VIEWS) for name in members]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"members must name at least one member, and none twice, got {names}")
    return names


def _check_weights(sample_weight: Any, n: int) -> np.ndarray:
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    bad = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
    if len(bad):
        raise ValueError(
            f"sample_weight is {weights[bad[0]]:g} in row {bad[0]}; weights must be above zero: "
            "leave out rows, and classes, that are not to count"
        )
    # Of mean 1, so that nothing depends on their scale; by the largest first, lest sums overflow.
    # Single precision drops the rounding error of that scale, which decides between equal splits.
    weights = (weights / weights.max()).astype(np.float32).astype(np.float64)
    return weights / weights.mean()


def _find_neighbor_share(names: list[str], weights: np.ndarray, probabilities: np.ndarray) -> float:
    """Return the part of the absolute log odds that neighbours give, over all rows and classes."""
    logs = np.log(np.maximum(probabilities, 1e-300))
    sizes = weights * np.abs(logs - logs.mean(axis=2, keepdims=True)).mean(axis=(1, 2))
    is_neighbor = np.array([name in METRICS for name in names])
    return float(sizes[is_neighbor].sum() / sizes.sum()) if sizes.sum() > 0 else 0.0


def _cross_pool(probabilities: np.ndarray, sample: Sample, folds: np.ndarray) -> np.ndarray:
    """Pool each fold by weights that the other folds chose."""
    pooled = np.empty(probabilities.shape[1:])
    for fold in np.unique(folds):
        train = folds != fold
        weights = fit_weights(probabilities[:, train], sample.labels[train], sample.weights[train])
        pooled[~train] = pool_proba(weights, probabilities[:, ~train])
    return pooled
