"""The pooled neighbours classifier: columns, views, members and pool, connected."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
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
    Column,
    check_choice,
    check_count,
    check_groups,
    check_level,
    check_n_jobs,
    check_search_params,
    check_verbose,
    show,
)
from bayesknn._utils.jit import one_blas_thread
from bayesknn._utils.progress import progress
from bayesknn._utils.random import as_seed_sequence
from bayesknn._utils.saving import VersionMixin, fingerprint
from bayesknn.model import class_weights
from bayesknn.pooled.agreement import check_parts
from bayesknn.pooled.columns import Columns, Sample, Settings, Table
from bayesknn.pooled.interval_model import find_pool_intervals
from bayesknn.pooled.member import fit_member, fit_weights, pool_proba
from bayesknn.pooled.metrics import METRICS
from bayesknn.pooled.order import Order, find_order
from bayesknn.pooled.views import (
    REMOVED,
    VIEWS,
    WITH_IMPORTANCES,
    NeighborView,
    accepts,
    assign_folds,
    build_view,
    leave_folds_out,
)
from bayesknn.predictive import log_score
from bayesknn.predictive.averages import RawPrediction
from bayesknn.predictive.predictive import take_largest
from bayesknn.sureness.calibration import shift_probabilities
from bayesknn.sureness.counts import counts_of_probabilities
from bayesknn.sureness.groups import find_scored, name_unscored
from bayesknn.sureness.intervals import KINDS_OF_INTERVAL

# Rows that are predicted between two steps of the progress bar. Fewer are searched slower.
_ROWS_AT_A_TIME = 2**15


class PooledNeighborsClassifier(
    VersionMixin, CallbackSupportMixin, DecisionMixin, ClassifierMixin, BaseEstimator
):
    """Class probabilities from neighbours in several metrics, pooled by leave-one-out.

    Where the aim is the best probabilities rather than inference about k and beta, this is the
    estimator to use. Three members look at neighbours, each in a metric of its own: soft counts of
    the neighbours' classes and the distances to each class, linked to probabilities by a
    regression and averaged over k. Three companions look at no neighbours: an additive regression,
    boosted trees and a smooth regression. The members' probabilities are multiplied with exponents
    that maximise the leave-one-out log score.

    Parameters
    ----------
    members : sequence of str or of (str, classifier)
        Which members, all by default. Neighbours: ``"discriminant"``, Euclidean after whitening
        within classes, stretched along the class means; ``"relevance"``, normal scores weighted by
        the importance of each column to randomised trees; ``"evidence"``, class shares along each
        column. Without neighbours: ``"additive"``, ridge logistic regression on the
        class shares along each column, on numbers and their squares; ``"boosted"``,
        gradient-boosted trees; ``"smooth"``, ridge logistic regression on smooth functions of all
        columns together, squares and products among them. ``("name", classifier)`` is a member of
        your own, any classifier of scikit-learn's form with ``predict_proba``: clones are fitted
        in the pool's folds to standardised numbers and indicators of categories, with class
        indices as labels, and with ``sample_weight`` and ``groups`` if ``fit`` takes them. A
        ``random_state`` of None is set by the pool's.
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
        serves Euclidean distances. All searches give the same answer.
    search_params : None
        No search has parameters now.
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
        Weight of each of ``k_values_`` in each member; of ``"additive"`` and ``"smooth"`` of each
        penalty, of ``"boosted"`` of each number of rounds.
    loo_proba_ : ndarray of shape (n, n_classes)
        Probabilities of the training points that owe nearly nothing to their own labels: members,
        and the weights of the pool, come from the other folds, but a label has its part in those.
        Turning one label around moved its own probability by .01 on average and .08 at most.
        What is left out is given back to its class, so that class totals stay. Rows of
        ``sample_weight`` 0, and rows alone in their class, are predicted as new rows. With the
        offset of ``class_prior``.
    groups_ : ndarray of shape (n,) or None
        Numbers of the groups of the training points, in the order in which these come first; None
        where no two points belong together.
    loo_log_score_ : float
        Mean log probability that ``loo_proba_`` gives to the true labels, rows weighted by
        ``sample_weight``.
    member_log_scores_ : dict of str to float
        The same of each member by itself.
    residual_correlation_, residual_correlation_error_ : float
        Correlation of the residuals of near rows and its standard error; NaN where folds are too
        small to have pairs. Intervals are made from it.
    diagnostics_ : dict
        ``search``: for each metric that is in use how its neighbours were found, ``name``
        and ``exact``;
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
    ['additive', 'boosted', 'discriminant', 'evidence', 'relevance', 'smooth']
    """

    classes_: np.ndarray
    k_values_: np.ndarray
    k_probabilities_: dict[str, np.ndarray]
    member_log_scores_: dict[str, float]
    loo_proba_: np.ndarray
    loo_log_score_: float
    groups_: np.ndarray | None
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
        search_params: None = None,
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
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> PooledNeighborsClassifier:
        """Fit every member and weigh them.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Training points: numbers, categories, missing values.
        y : array-like of shape (n,)
            Their labels: at least two classes, and two points of one of them. A point that is alone
            in its class takes part in the fit, but without it nothing would be known of the class:
            ``loo_proba_`` predicts it as a new point, and no score uses it.
        sample_weight : array-like of shape (n,), optional
            Weights of the votes, in every regression, in the trees and in the mean of the
            leave-one-out scores. They are relative: only their ratios matter. Unequal weights
            are worth fewer rows, ``(sum w)^2 / sum w^2``, and intervals are wider. A row of weight
            0 is left out: ``loo_proba_`` predicts it as a new row, and a class without other rows
            is not among ``classes_``.
        groups : array-like of shape (n,), optional
            Rows that belong together, such as the visits of a patient, where new rows come from new
            groups: what is fitted to labels is left out by whole groups, and no row is a neighbour
            of another one of its group. A class of one group alone is as one of a single row.

        Returns
        -------
        PooledNeighborsClassifier
            Itself.
        """
        given = _check_members(self.members)
        names = list(given)
        n_folds = check_count(self.n_folds, "n_folds", 2)
        check_n_jobs(self.n_jobs)
        check_verbose(self.verbose)
        given_classes, given_labels, groups = check_training(X, y, groups)
        weights = _check_weights(sample_weight, len(given_labels))
        classes, labels = _keep_weighted_classes(given_classes, given_labels, weights)
        columns = Columns(self.categorical_features)
        cells = columns.read(X)
        order = find_order(cells, labels, weights, groups)
        table = columns.learn(cells, order.rows, order.columns)
        sample = _arrange_sample(table, order, labels, weights, groups)
        ratios = self._find_odds_ratios(sample, order, classes)
        folds, settings = self._set_up(sample, n_folds, given)
        # On matrices of this size threads of the BLAS mostly wait for each other.
        with follow_stages(self, X, y, n_stages=len(names)) as stage, one_blas_thread():
            members, loo, variances, shared = self._fit_members(
                names, sample, settings, folds, stage
            )
        member_proba = np.array(list(loo.values()))
        exponents = fit_weights(member_proba, sample.labels, sample.judged_weights)
        pool_weights = dict(zip(names, exponents.tolist(), strict=True))
        leader, views = _build_views(pool_weights, sample, settings, folds, shared)
        interval_model, reach_at = find_pool_intervals(
            views[leader].space,
            members.get(leader),
            order.by_class(pool_proba(exponents, member_proba)),
            order.classes[sample.labels],
            folds,
            sample.table.values,
            self.n_jobs,
            sample.groups,
        )
        left_out = order.by_class(_cross_pool(member_proba, sample, folds))
        # Last, so that a fitted classifier is still whole when its next fit is refused: from here
        # on nothing can fail but the names of the columns, which are looked at before any is kept.
        check_column_names(self, X)
        self.classes_, self._ratios = classes, ratios
        self._params_of_fit = self.get_params(deep=False)
        self._columns, self._order, self._views, self._members = columns, order, views, members
        self._leader, self._interval_model, self._reach_at = leader, interval_model, reach_at
        self.k_values_ = settings[leader].k_values
        self.pool_weights_ = pool_weights
        self.k_probabilities_ = {name: member.k_weights for name, member in members.items()}
        self.member_log_scores_ = {
            name: log_score(loo[name], sample.labels, sample.judged_weights) for name in names
        }
        self.neighbor_share_ = _find_neighbor_share(names, exponents, member_proba)
        self._labels, self._weights, self._score_weights = labels, weights, np.zeros(len(labels))
        self.groups_ = groups
        self._score_weights[order.rows] = sample.judged_weights
        spread = order.by_class(variances[leader]) if leader in members else 0.0 * left_out
        self._keep_left_out(left_out, spread, cells)
        self._describe_columns()
        self._diagnose(sample.table.value_source)
        self.diagnostics_["training"] = fingerprint(X, given_labels)
        self._warn_of_rows(given_classes, given_labels, weights, given)
        return self

    def _set_up(
        self, sample: Sample, n_folds: int, given: dict[str, Any]
    ) -> tuple[np.ndarray, dict[str, Settings]]:
        """Return the folds and the settings of every view, the given members last."""
        estimators = dict.fromkeys(VIEWS) | given
        seeds = as_seed_sequence(self.random_state).generate_state(1 + len(estimators)).tolist()
        k_values = self._choose_k(len(sample.labels))
        check_search_params(self.search_params)
        settings = {
            name: Settings(k_values, seed, self.n_jobs, self.search, estimators[name])
            for name, seed in zip(estimators, seeds[1:], strict=True)
        }
        rng = np.random.default_rng(seeds[0])
        folds = assign_folds(sample.labels, n_folds, rng, sample.groups)
        if len(folds) - np.bincount(folds).max() < 2:
            raise ValueError(
                "one row alone lies outside the largest group or fold: members are fitted without "
                "each fold, to two rows at least"
            )
        return folds, settings

    def _fit_members(
        self,
        names: list[str],
        sample: Sample,
        settings: dict[str, Settings],
        folds: np.ndarray,
        stage: Callable[[str], Any],
    ) -> tuple[dict[str, Any], ...]:
        """Return members, left-out probabilities, their variances over k, and shared parts.

        A shared part is what ``leave_folds_out`` returns for the view of all rows.
        """
        members, loo, variances, shared = {}, {}, {}, {}
        n, n_columns = sample.table.values.shape
        what = f"Fitting {n:,} rows, {n_columns:,} columns and {sample.n_classes} classes"
        with progress(what, len(names), verbose=self.verbose) as advance:
            for name in names:
                with stage(name):
                    features, shared[name] = leave_folds_out(name, sample, settings[name], folds)
                    members[name], loo[name] = fit_member(
                        features, sample.labels, sample.judged_weights, self.n_jobs, sample.groups
                    )
                    variances[name] = members[name].proba(features)[1]
                advance(1)
        return members, loo, variances, shared

    def _find_odds_ratios(
        self, sample: Sample, order: Order, classes: np.ndarray
    ) -> np.ndarray | None:
        """Return the factors (n_classes,) by which ``class_prior`` multiplies the odds."""
        if self.class_prior is None:
            return None
        labels = order.classes[sample.labels]
        ratios = class_weights(labels, self.class_prior, classes.tolist())
        counted = np.bincount(labels) / len(labels)
        return ratios * counted / order.by_class(sample.class_shares)

    def _keep_left_out(
        self, probabilities: np.ndarray, variances: np.ndarray, cells: list[Column]
    ) -> None:
        """Keep what is predicted of each row of X; rows that are in no score are new rows."""
        known, space = self._interval_model.copies, self._views[self._leader].space
        rows, others = self._order.rows, np.flatnonzero(self._score_weights == 0)
        copies = None if known is None else known.count_others(self._labels[rows], space.weights)
        average = self._order.average_equal_rows
        distances = average(space.reach[:, self._reach_at])
        raw = RawPrediction(
            average(probabilities), average(variances), None, distances, copies=copies
        )
        parts = [(rows, raw)]
        if len(others) > 0:
            parts.append((others, self._describe_rows(self._columns.encode(cells, others))))
        self._left_out = _put_back(parts, len(self._labels))
        self.loo_proba_ = shift_probabilities(self._left_out.probabilities, self._ratios)
        self.loo_log_score_ = log_score(self.loo_proba_, self._labels, self._score_weights)

    def _warn_of_rows(
        self,
        classes: np.ndarray,
        labels: np.ndarray,
        weights: np.ndarray,
        given: dict[str, Any],
    ) -> None:
        """Warn of classes that are in no score, of weight 0, and of members without weights."""
        counted = weights > 0
        groups = None if self.groups_ is None else self.groups_[counted]
        sizes = np.bincount(labels[counted], minlength=len(classes))
        sentences = name_unscored(classes, labels[counted], groups) + [
            f"all rows of class {show(name)} have weight 0: it is left out of classes_"
            for name in classes[sizes == 0]
        ]
        if np.ptp(weights[counted]) > 0:
            sentences += [
                f"the fit of member {name!r} takes no sample_weight: its rows have equal weights"
                for name, estimator in given.items()
                if estimator is not None and not accepts(estimator, "sample_weight")
            ]
        for sentence in sentences:
            self.diagnostics_["warnings"].append(sentence)
            warnings.warn(sentence, UserWarning, stacklevel=3)

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
        self.diagnostics_ = {
            "search": {
                name: {"name": view.space.searched.index.name, "exact": True}
                for name, view in self._views.items()
                if isinstance(view, NeighborView)
            },
            "warnings": [],
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
        probabilities = self._predict_in_parts(self._read(X), self._predict_members)[0]
        return shift_probabilities(probabilities, self._ratios)

    def _describe_new(self, X: Any, level: float | None) -> RawPrediction:
        return self._describe_rows(self._read(X))

    def _describe_rows(self, table: Table) -> RawPrediction:
        """Return what is predicted of new rows."""

        def describe(part: Table) -> tuple[np.ndarray, ...]:
            features, reach = self._views[self._leader].search(part, self.n_jobs)
            predicted = self._predict_members(part, {self._leader: features})
            return *predicted, reach[:, self._reach_at]

        probabilities, variances, distances = self._predict_in_parts(table, describe)
        known = self._interval_model.copies
        copies = None if known is None else known.count_new(table.values)
        return RawPrediction(probabilities, variances, None, distances, copies=copies)

    def _predict_in_parts(
        self, table: Table, predict: Callable[[Table], tuple[np.ndarray, ...]]
    ) -> list[np.ndarray]:
        """Return the arrays that a function gives of all rows, and show progress."""
        n, parts = len(table.points), []
        with progress(f"Predicting {n:,} rows", n, verbose=self.verbose) as advance:
            for start in range(0, n, _ROWS_AT_A_TIME):
                part = table.take(slice(start, start + _ROWS_AT_A_TIME))
                parts.append(predict(part))
                advance(len(part.points))
        return [np.concatenate(each) for each in zip(*parts, strict=True)]

    def _describe_left_out(self, level: float | None) -> RawPrediction:
        return self._left_out

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
        weights = self._score_weights
        if self._ratios is not None:
            weights = weights * self._ratios[self._labels]
        proba = np.asarray(self.predict_proba(X))
        return counts_of_probabilities(
            proba, self.loo_proba_, self._labels, level, weights, self.groups_
        )

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
            point from its own: 0 for a point farther out than any. Distances are those of
            ``discriminant``, or without it of the metric that weighs most.
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
            class against every other. Rows have no part of their own in the members without
            neighbours: ``neighbor_share_`` says how much neighbours count in all.
        """
        n_neighbors = check_count(n_neighbors, "n_neighbors")
        return take_largest(self._find_influences(self._read(X)), n_neighbors)

    def _find_influences(self, table: Table) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield all training rows, and the influence of each on each new point."""
        rows = self._order.rows
        n = len(rows)
        # Influences of all rows on some points are held at a time.
        step = max(1, 2**22 // n)
        for start in range(0, len(table.points), step):
            part = table.take(slice(start, start + step))
            influence = np.zeros((len(part.points), n))
            for name, weight in self.pool_weights_.items():
                if weight > 0 and name in METRICS:
                    influence += weight * self._views[name].influence(part, self._members[name])
            yield from ((rows, each) for each in influence)

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
        pooled = pool_proba(np.array(list(weights.values())), probabilities)
        return self._order.by_class(pooled), self._order.by_class(variances)

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


def _check_members(members: Any) -> dict[str, Any]:
    """Return the name of each member, and its classifier if the user gave one."""
    if isinstance(members, str) or not hasattr(members, "__iter__"):
        raise ValueError(f"members must be a sequence of {', '.join(VIEWS)}, got {show(members)}")
    for name in REMOVED:
        if name in members:
            raise ValueError(
                f"the member {name!r} was removed, because pools without it predict as well: use "
                f"the default members, or {tuple(METRICS)} for neighbours alone"
            )
    pairs = [_check_member(member) for member in members]
    names = [name for name, _ in pairs]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"members must name at least one member, and none twice, got {names}")
    return dict(pairs)


def _check_member(member: Any) -> tuple[str, Any]:
    """Return a member's name and its classifier, None for one of ours."""
    if not isinstance(member, tuple):
        return check_choice(member, "each of members", VIEWS), None
    name, estimator = member if len(member) == 2 else (None, None)
    is_estimator = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    if not isinstance(name, str) or not is_estimator:
        raise ValueError(
            f"a member of your own must be (name, classifier of scikit-learn), got {show(member)}"
        )
    if name in VIEWS or name in REMOVED:
        raise ValueError(f"{name!r} is the name of a member of bayesknn: choose another one")
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(f"member {name!r} has no predict_proba: {show(estimator)}")
    return name, estimator


def _check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return weights whose mean is 1 over the rows that have any."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    bad = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if len(bad):
        raise ValueError(
            f"sample_weight is {weights[bad[0]]:g} in row {bad[0]}; weights must not be negative"
        )
    if not weights.any():
        raise ValueError("sample_weight is zero in every row: no row is left to fit")
    # Of mean 1, so that nothing depends on their scale; by the largest first, lest sums overflow.
    # Single precision drops the rounding error of that scale, which decides between equal splits.
    weights = (weights / weights.max()).astype(np.float32).astype(np.float64)
    # Added up in the order of their sizes, so that another order of the rows gives the same bits.
    return weights / np.sort(weights[weights > 0]).mean()


def _arrange_sample(
    table: Table,
    order: Order,
    labels: np.ndarray,
    weights: np.ndarray,
    groups: np.ndarray | None,
) -> Sample:
    """Return the rows of a table that is in the order of the fit."""
    if groups is not None:
        groups = check_groups(groups[order.rows], len(order.rows))
    own_labels = np.argsort(order.classes)[labels[order.rows]]
    return Sample(table, own_labels, weights[order.rows], len(order.classes), groups)


def _keep_weighted_classes(
    classes: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes that have a row of positive weight, and class indices among them.

    The index of a row of another class, which has weight 0, is 0.
    """
    sizes = np.bincount(labels[weights > 0], minlength=len(classes))
    kept = np.flatnonzero(sizes > 0)
    if len(kept) < 2:
        raise ValueError(
            f"only class {show(classes[kept[0]])} has rows of positive sample_weight; "
            "classification needs at least two classes"
        )
    # Raises ValueError if no class has two rows of positive weight.
    find_scored(labels[weights > 0], None)
    indices = np.zeros(len(classes), np.intp)
    indices[kept] = np.arange(len(kept))
    return classes[kept], indices[labels]


def _put_back(parts: list[tuple[np.ndarray, RawPrediction]], n: int) -> RawPrediction:
    """Return one prediction of n rows, given some rows and what is predicted of them."""

    def join(field: str) -> Any:
        if getattr(parts[0][1], field) is None:
            return None
        joined = np.empty((n, *getattr(parts[0][1], field).shape[1:]))
        for rows, predicted in parts:
            joined[rows] = getattr(predicted, field)
        return joined

    return RawPrediction(*map(join, RawPrediction._fields))


def _build_views(
    weights: dict[str, float],
    sample: Sample,
    settings: dict[str, Settings],
    folds: np.ndarray,
    shared: dict[str, Any],
) -> tuple[str, dict[str, Any]]:
    """Return the metric of intervals and the views of all rows that predictions need, by name.

    Intervals and typicality need distances that grow without bound, so that a row far outside the
    range of training is far from all rows: those of ``discriminant``, or if the pool has other
    metrics alone, of the one that weighs most.
    """
    metrics = [name for name in weights if name in METRICS]
    leader = "discriminant"
    if metrics and leader not in metrics:
        leader = max(metrics, key=lambda name: weights[name])
    if leader not in shared:
        shared[leader] = leave_folds_out(leader, sample, settings[leader], folds)[1]
    return leader, {
        name: build_view(name, sample, settings[name], shared[name])
        for name in shared
        # Members of weight 0 predict nothing.
        if name in (leader, *WITH_IMPORTANCES) or weights[name] > 0
    }


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
        weights = fit_weights(
            probabilities[:, train], sample.labels[train], sample.judged_weights[train]
        )
        pooled[~train] = pool_proba(weights, probabilities[:, ~train])
    return pooled
