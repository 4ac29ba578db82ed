"""The Bayesian k-nearest-neighbour classifier (the paper, Sections 2 to 4).

The labels of the training points are a Markov random field on the symmetrised neighbour graph,
with a strength beta and a number k of neighbours that are both unknown; class probabilities are
averaged over their posterior. This module turns parameters into parts and connects them: ``graph``,
``posterior`` and ``predictive`` do the work.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayesknn._estimator import (
    CallbackSupportMixin,
    DecisionMixin,
    check_column_names,
    check_new_points,
    check_training,
    choose_k_max,
    choose_prior,
    follow_stages,
    params_of_fit,
    with_callbacks,
)
from bayesknn._utils.blocks import by_blocks
from bayesknn._utils.checks import (
    as_codes,
    check_choice,
    check_count,
    check_indices,
    check_level,
    check_n_jobs,
    check_verbose,
    count_rows,
    read_columns,
    show,
)
from bayesknn._utils.random import as_seed_sequence
from bayesknn._utils.saving import VersionMixin, fingerprint
from bayesknn.graph import NeighborGraph
from bayesknn.labels import find_beta_max
from bayesknn.labels.sampling import METHODS as LABEL_SAMPLERS
from bayesknn.labels.sampling import draw_each
from bayesknn.likelihood import LIKELIHOODS
from bayesknn.model import BoltzmannModel, Prior, as_prior, class_weights
from bayesknn.posterior.quadrature.grid import GridPosterior
from bayesknn.posterior.routes import (
    FittedPosterior,
    Schedule,
    Target,
    choose_inference,
    compute_posterior,
    reweight_posterior,
)
from bayesknn.posterior.trees import add_predictive, restore_tree
from bayesknn.predictive import PosteriorNodes, Predictive, draw_jointly, log_score
from bayesknn.predictive.averages import RawPrediction
from bayesknn.predictive.joint import counts_of_draws
from bayesknn.sureness.calibration import MOST_PAIRS, Calibration, Calibrator
from bayesknn.sureness.copies import Copies
from bayesknn.sureness.counts import counts_of_probabilities
from bayesknn.sureness.groups import find_scored, name_unscored
from bayesknn.sureness.intervals import IntervalModel, fit_interval_model

if TYPE_CHECKING:
    import xarray


class Rows(NamedTuple):
    """Training rows as intervals need them.

    Attributes
    ----------
    columns : ndarray of shape (n, p) or None
        Feature values and category codes; None of precomputed distances.
    labels : list of str or int
        Names or positions of the columns.
    copies : Copies or None
        Rows of equal values.
    examined : ndarray or None
        Rows of which ``columns`` holds the values, None if these are all.
    """

    columns: np.ndarray | None
    labels: list[str | int]
    copies: Copies | None
    examined: np.ndarray | None = None


class Learned(NamedTuple):
    """Predictions of the training rows, each left out, and all that follows from them.

    Attributes
    ----------
    predictive : Predictive
    left_out : RawPrediction
    effective : ndarray of shape (n,)
        As :meth:`Predictive.leave_one_out` returns it.
    interval_model : IntervalModel
    """

    predictive: Predictive
    left_out: RawPrediction
    effective: np.ndarray
    interval_model: IntervalModel


class BayesianKNeighborsClassifier(
    VersionMixin, CallbackSupportMixin, DecisionMixin, ClassifierMixin, BaseEstimator
):
    """k-nearest-neighbour classification with k and its strength beta averaged over.

    Parameters
    ----------
    likelihood : {"coherent", "pseudo", "holmes-adams"}, default="coherent"
        The likelihood used: the paper's model, its pseudo-likelihood, or the product of Holmes and
        Adams (2002).
    inference : {"auto", "grid", "metropolis", "auxiliary", "exchange"}, default="auto"
        How the posterior is computed. ``"grid"`` sums over a grid of (beta, k) and knows its error;
        the others are Markov chains. ``"auto"`` is the grid. ``"auxiliary"`` and ``"exchange"``
        are for the coherent likelihood.
    label_sampler : {"swendsen-wang", "perfect", "gibbs"}, default="swendsen-wang"
        How those two draw labels; with ``"perfect"`` they are exact.
    metric : str or callable, default="euclidean"
        Any metric of :meth:`bayesknn.graph.NeighborGraph.from_points`, ``"mahalanobis"``,
        ``"gower"`` (numbers and categories) and ``"precomputed"`` among them.
    metric_params : dict, optional
        Parameters of the metric.
    search : str, default="auto"
        How neighbours are found, see :meth:`bayesknn.graph.NeighborGraph.from_points`. All
        searches give the same answer.
    search_params : None
        No search has parameters now.
    max_neighbors : int, optional
        Largest k, K. By default the size of the smallest class, as in the paper, unless classes
        are rare or many: then half of ``sum(n_g^2) / n``, the mean size of a point's class, or
        ``min(2 sqrt(n), (n - 80) / 8)``, whichever is largest. At most n - 1, 500 and 2e7 / n, and
        no more than a sparse precomputed graph stores. ``diagnostics_`` warns where the posterior
        lies at this limit.
    beta_max : float or "auto", default="auto"
        Largest beta. ``"auto"`` is the beta beyond which, for every k, almost all neighbours agree
        under the model, see :func:`bayesknn.labels.find_beta_max`; twice that for Holmes and
        Adams.
    prior : None, array-like, callable or Prior, default=None
        On (beta, k): uniform on {1..K} x [0, beta_max]; or as :func:`bayesknn.model.as_prior`
        takes it. A Prior has a ``k_max`` and a ``beta_max`` of its own, which ``max_neighbors``
        and ``beta_max`` must not contradict.
    class_prior : array-like of shape (n_classes,) or dict, optional
        The classes' true frequencies where those of the sample differ (unbalanced sampling), in
        the order of ``classes_`` or by class: a_g = p_g n / n_g.
    class_prior_as : {"offset", "weights"}, default="offset"
        What ``class_prior`` does. As an offset, the predicted odds of class g are multiplied by
        a_g, which is better by far in test log-loss. As weights, the paper's way, each same-label
        edge of class g counts a_g. Where these weights differ much, ``beta_max="auto"`` is small
        and the coherent posterior may hold beta near 0; the other likelihoods, with a ``beta_max``
        given, do not suffer so.
    calibrate : bool, default=False
        Combine the probabilities with the proportion of each class among the neighbours, by
        exponents that leave-one-out chooses (``calibration_``). The model's own link is fixed, so
        that its probabilities need not tend to the true ones; the calibrated ones are nearer as a
        rule.
    n_chains, n_draws, n_warmup : int, default=4, 5000, 1000
        Chains, draws of each that are kept, and draws before them that are not. From a grid as
        many independent draws are made for ``posterior_``; predictions use the grid itself.
    n_jobs : int, optional
        As in joblib, -1 for all cores; not 0. No result depends on it.
    random_state : None, int, SeedSequence, Generator or RandomState
        The same one gives the same posterior. Nothing is drawn at prediction.
    verbose : int, default=0
        Above 0, work that takes more than two seconds shows its progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    posterior_ : xarray.DataTree
        In ArviZ's layout: ``posterior`` with beta and k over (chain, draw), ``sample_stats`` and
        ``observed_data``. There is no group ``log_likelihood`` for ``arviz_stats.loo``, whose
        smoothed importance sampling fails where a label has one probability in all draws: compare
        fits by ``loo_log_score_``, and row by row by ``loo_proba_``.
    k_values_, k_probabilities_ : ndarray of shape (K,)
        1..K, and their posterior probabilities.
    k_probabilities_error_ : ndarray of shape (K,)
        Monte Carlo errors of those.
    beta_mean_, beta_sd_ : float
        Posterior mean and standard deviation of beta.
    log_evidence_, log_evidence_error_ : float
        Log of the likelihood's integral under the prior (grid only). Of the coherent likelihood
        it is the log probability of the labels; the other two are products of conditionals, not
        distributions, and theirs compares such products only. ``diagnostics_`` says so where it
        is below that of the class frequencies alone.
    beta_max_ : float
        Largest beta in use.
    prior_ : Prior
        The prior in use.
    grid_ : GridPosterior or None
        The posterior on its grid, where it was computed so; None in a saved classifier.
    class_weight_ : ndarray of shape (n_classes,) or None
        The a_g that ``class_prior`` gives.
    calibration_ : (t, s)
        Exponents of the probability and of the local proportion, see ``calibrate``.
    calibration_spread_ : ndarray of shape (n_classes,) or None
        Where classes differ in spread, what the log odds gain with the distance to neighbours.
    residual_correlation_, residual_correlation_error_ : float
        Correlation of the residuals of near neighbours and its standard error: the mean squared
        error of the probabilities as a part of p (1 - p), from which intervals for the true
        probability are made.
    diagnostics_ : dict
        ``inference`` and ``reason``; ``ess``, ``rhat`` and ``mcse`` of beta and k;
        ``acceptance`` of each chain; ``log_normalizer_error``; ``boundary_ties``: points whose
        last neighbour, at the most probable k, is no nearer than one left out; ``search``:
        ``name`` and ``exact``, which is True; ``misfit_column``, the one on which the
        residuals still depend, or None; ``misfit_rows``, the number of rows on which columns were
        examined, at most 20,000; ``warnings`` in words; ``training``: a fingerprint of X and y.
    loo_proba_ : ndarray of shape (n, n_classes)
        Class probabilities of each training point given the labels of all others: the posterior
        is reweighted to what it were without the point's own label, exactly for the coherent
        likelihood and nearly so for the others. As ``predict_proba`` would say, calibrated if
        ``calibrate`` and with the offset of ``class_prior``. ``diagnostics_`` names the rows, if
        any, that alone move the posterior so much that only a refit without them would tell.
    loo_log_score_ : float
        Mean log probability that ``loo_proba_`` gives to the true labels.
    graph_ : NeighborGraph
        The training points' neighbours up to K.
    groups_ : ndarray of shape (n,) or None
        Numbers of the groups of the training points, in the order in which these come first; None
        where no two points belong together.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If X had names that are all strings.

    See Also
    --------
    ClassicalKNeighborsClassifier : The vote of the k nearest, with k chosen by leave-one-out.

    Notes
    -----
    Equal distances are ordered by a fixed pseudo-random key of the row, so that a file sorted by
    class favours none. Duplicated points are ordinary points at distance 0: they are each other's
    nearest neighbours, and k of them in one place see nobody else in a graph of k - 1.

    ``predict_interval`` is for the true P(y | x) and covers it at its level on average over x, not
    at every x, and not where P varies within a neighbourhood; ``of="parameters"`` carries the
    uncertainty about beta and k and nothing else.

    Examples
    --------
    >>> from bayesknn import BayesianKNeighborsClassifier
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> clf = BayesianKNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
    >>> bool(abs(clf.beta_mean_ - 1.457) < 0.02)
    True
    >>> clf.predict_proba(ripley.X_test[:2]).shape
    (2, 2)
    >>> clf.predict_zone([[0.4, 0.9], [-0.4, 0.1]]).tolist()
    [1, 0]
    """

    classes_: np.ndarray
    graph_: NeighborGraph
    class_weight_: np.ndarray | None
    prior_: Prior
    beta_max_: float
    grid_: GridPosterior | None
    loo_proba_: np.ndarray
    loo_log_score_: float
    k_values_: np.ndarray
    k_probabilities_: np.ndarray
    k_probabilities_error_: np.ndarray
    beta_mean_: float
    beta_sd_: float
    log_evidence_: float
    log_evidence_error_: float
    diagnostics_: dict[str, Any]

    def __init__(
        self,
        likelihood: str = "coherent",
        inference: str = "auto",
        label_sampler: str = "swendsen-wang",
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        search: str = "auto",
        search_params: None = None,
        max_neighbors: int | None = None,
        beta_max: float | str = "auto",
        prior: Any = None,
        class_prior: Any = None,
        class_prior_as: str = "offset",
        calibrate: bool = False,
        n_chains: int = 4,
        n_draws: int = 5000,
        n_warmup: int = 1000,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.likelihood = likelihood
        self.inference = inference
        self.label_sampler = label_sampler
        self.metric = metric
        self.metric_params = metric_params
        self.search = search
        self.search_params = search_params
        self.max_neighbors = max_neighbors
        self.beta_max = beta_max
        self.prior = prior
        self.class_prior = class_prior
        self.class_prior_as = class_prior_as
        self.calibrate = calibrate
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    _left_out: RawPrediction
    _interval_model: IntervalModel
    # For reweight; not kept in a copy or a file.
    _known: Rows
    _seeds: np.random.SeedSequence
    _tree: xarray.DataTree | None

    @with_callbacks
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> BayesianKNeighborsClassifier:
        """Compute the posterior of (beta, k) given the labels of the training points.

        Parameters that :meth:`set_params` changes after a fit take effect at the next one, except
        ``n_jobs`` and ``verbose``, on which no result depends.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (n, p)
            Training points; distances of shape (n, n) for ``metric="precomputed"``, for instance
            those of scikit-learn's ``KNeighborsTransformer``.
        y : array-like of shape (n,)
            Their labels: at least two classes, one of them of at least two points. A class of one
            point is fitted with the others, and counts in no score.
        groups : array-like of shape (n,), optional
            Rows that belong together, such as the visits of a patient, where new rows come from new
            groups: no row is a neighbour of another one of its group, and what is left out is left
            out with its group. A class of one group alone is fitted, and counts in no score.

        Returns
        -------
        BayesianKNeighborsClassifier
            Itself.
        """
        schedule = self._check_settings()
        classes, labels, groups = self._check_training(X, y, groups)
        # Before any work: some routes are refused.
        inference, reason = choose_inference(self.likelihood, self.inference, len(labels))
        seeds = as_seed_sequence(self.random_state).spawn(2)
        ratios = None
        if self.class_prior is not None:
            ratios = class_weights(labels, self.class_prior, classes.tolist())
        is_offset = self.class_prior_as == "offset"
        with follow_stages(self, X, y, n_stages=4) as stage:
            with stage("neighbours"):
                graph = self._find_graph(X, labels, groups)
            model = BoltzmannModel(graph, len(classes), None if is_offset else ratios)
            with stage("beta_max"):
                find = partial(find_beta_max, model, random_state=seeds[0])
                prior = choose_prior(self.prior, self.beta_max, graph.k_max, self.likelihood, find)
            target = Target(self.likelihood, model, labels, prior)
            with stage("posterior"):
                route = compute_posterior(
                    target,
                    inference,
                    self.label_sampler,
                    schedule,
                    random_state=seeds[1],
                    n_jobs=self.n_jobs,
                    verbose=self.verbose,
                )
            with stage("leave-one-out"):
                known = self._describe_rows(X, model, labels)
                learned = self._leave_out(route, target, known)
        # Last, so that a fitted classifier is still whole when its next fit is refused: from here
        # on nothing can fail but the names of the columns, which are looked at before any is kept.
        self._keep_names(X)
        self.classes_, self.graph_, self.class_weight_ = classes, graph, ratios
        self._labels = labels
        self._is_offset, self._is_calibrated = is_offset, bool(self.calibrate)
        self._params_of_fit = self.get_params(deep=False)
        self._known, self._seeds = known, seeds[1]
        about = {"reason": reason, "training": self._take_fingerprint(X, labels)}
        self._keep(route, prior, learned, **about)
        for warning in name_unscored(classes, labels, groups):
            warnings.warn(warning, UserWarning, stacklevel=2)
        return self

    def reweight(self, prior: Any) -> BayesianKNeighborsClassifier:
        """Return the classifier as another prior would have made it, on the graph of the fit.

        The two products of conditionals are computed again under the other prior. Of the coherent
        likelihood the values on the grid of the fit are reweighted, which simulates nothing: the
        other prior can reach no further than the grid, but for larger beta where the posterior had
        no mass near ``beta_max_``. The prior of the fit gives the fit again, intervals, diagnostics
        and warnings included. :func:`bayesknn.sensitivity` does this for a few priors.

        Parameters
        ----------
        prior : None, array-like, callable or Prior
            As at the fit, on the same range unless it is a Prior, which has its own.

        Returns
        -------
        BayesianKNeighborsClassifier
            Another one, fitted.

        Raises
        ------
        ValueError
            If the graph, or the grid of the coherent likelihood, does not reach; or if there is no
            grid: chains have none, nor has a classifier that was saved and loaded.

        Examples
        --------
        >>> from bayesknn import BayesianKNeighborsClassifier
        >>> from bayesknn.datasets import load_ripley
        >>> from bayesknn.model import UniformPrior
        >>> ripley = load_ripley()
        >>> clf = BayesianKNeighborsClassifier("pseudo", beta_max=4.0, random_state=0)
        >>> clf = clf.fit(ripley.X_train, ripley.y_train)
        >>> other = clf.reweight(UniformPrior(k_max=30, beta_max=4.0))
        >>> len(clf.k_values_), len(other.k_values_)
        (125, 30)
        """
        check_is_fitted(self)
        if self.grid_ is None:
            raise ValueError("there is no grid: fit again, with inference='grid'")
        if not isinstance(prior, Prior):
            prior = as_prior(prior, int(self.k_values_[-1]), self.beta_max_)
        schedule = Schedule(*self._draws["groups"]["posterior"]["k"].shape)
        target = Target(self.diagnostics_["likelihood"], self._make_model(), self._labels, prior)
        route = reweight_posterior(self.grid_, self.prior_, target, schedule, self._seeds)
        changes = {"prior": prior, "max_neighbors": None, "beta_max": "auto"}
        other = copy(self).set_params(**changes)
        other._params_of_fit = params_of_fit(self) | changes
        other._known, other._seeds = self._known, self._seeds
        about = {name: self.diagnostics_[name] for name in ("reason", "training")}
        other._keep(route, prior, self._leave_out(route, target, self._known), **about)
        return other

    def sample_predictive(self, n_draws: int = 500, random_state: Any = None) -> xarray.DataTree:
        """Draw labels of all training points from the fitted model, to hold the real ones against.

        Each draw has a (beta, k) of the posterior and labels drawn given it: exactly, by coupling
        from the past, or where that does not end for each of them all by Swendsen-Wang.

        Parameters
        ----------
        n_draws : int, default=500
        random_state : None, int, SeedSequence, Generator or RandomState
            The same one gives the same draws; by default each call draws anew.

        Returns
        -------
        xarray.DataTree
            ``posterior_`` with the draws, as class numbers, in its group ``posterior_predictive``,
            in place of earlier ones. The group's attributes say which ``label_sampler`` drew them
            and with how many sweeps, and how many standard errors ``disagreement`` there is
            between draws that started from random and from equal labels.

        Warns
        -----
        MixingWarning
            If that disagreement is large.

        Examples
        --------
        >>> from bayesknn import BayesianKNeighborsClassifier
        >>> from bayesknn.datasets import load_ripley
        >>> ripley = load_ripley()
        >>> clf = BayesianKNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
        >>> tree = clf.sample_predictive(n_draws=20, random_state=0)
        >>> tree["posterior_predictive"]["labels"].shape
        (1, 20, 250)
        """
        check_is_fitted(self)
        likelihood, model = self.diagnostics_["likelihood"], self._make_model()
        if not LIKELIHOODS[likelihood].coherent:
            raise ValueError(
                f"the {likelihood} likelihood is a product over points and no distribution of all "
                "labels together, so that there is nothing to draw from: fit with "
                "likelihood='coherent'"
            )
        n_draws, seeds = check_count(n_draws, "n_draws"), as_seed_sequence(random_state).spawn(2)
        draws = self._draws["groups"]["posterior"]
        chosen = np.random.default_rng(seeds[0]).integers(draws["k"].size, size=n_draws)
        beta, k = draws["beta"].ravel()[chosen], draws["k"].ravel()[chosen]
        drawn = draw_each(model, beta, k, seeds[1], check_verbose(self.verbose))
        add_predictive(self.posterior_, *drawn)
        return self.posterior_

    @by_blocks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities averaged over the posterior, in the order of ``classes_``.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (m, p)

        Returns
        -------
        ndarray of shape (m, n_classes)
        """
        check_is_fitted(self)
        return self._adjust(self._predict_raw(X))

    @by_blocks
    def predict_typicality(self, X: Any) -> np.ndarray:
        """Return how typical the feature values of new points are.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (m, p)

        Returns
        -------
        ndarray of shape (m,)
            The proportion of training points that lie at least as far from their neighbours as the
            point from its own, at the posterior mean of k: 0 for a point farther out than any.
        """
        return self._interval_model.scale.typicality(self._predict_raw(X).distances)

    def predict_influence(self, X: Any, n_neighbors: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """Return the training rows that move the log odds of new points most, and how much.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (m, p)
        n_neighbors : int, default=10
            How many rows.

        Returns
        -------
        indices : ndarray of shape (m, n_neighbors)
            Numbers of training rows, the most influential first; -1 where no other row has any
            influence.
        influence : ndarray of shape (m, n_neighbors)
            What the row adds to the log odds of its own class against every other, averaged over
            (beta, k): as a neighbour of the point, and by having the point among its own.
        """
        n_neighbors = check_count(n_neighbors, "n_neighbors")
        return self._get_predictive(X).influence(X, n_neighbors)

    def sample_labels(self, X: Any, n_draws: int = 1000, random_state: Any = None) -> np.ndarray:
        """Draw the classes of a whole batch of new points together.

        :meth:`predict_proba` takes each new point as if it came alone. Here the batch joins the
        training points in one neighbour graph, k grows with the number of points, and the labels
        of the batch are drawn given those of the training points, averaged over the posterior of
        (beta, k). What the draws are for is what depends on several labels at once, such as
        :meth:`predict_counts`; how often a class is drawn at one point of a large batch need not
        be its ``predict_proba``. For one point it is.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
            Not for ``metric="precomputed"``, which does not know the distances among new points.
        n_draws : int, default=1000
        random_state : None, int, SeedSequence, Generator or RandomState
            The same one gives the same draws; by default each call draws anew.

        Returns
        -------
        ndarray of shape (n_draws, m)
            Each row is one draw of all m classes.

        Warns
        -----
        MixingWarning
            If chains from different starts disagree, so that the labels are frozen, or if fewer
            than a fifth of all points are labelled.

        Notes
        -----
        Under ``likelihood="holmes-adams"`` a new point counts its own neighbours alone, and of
        the edges between two new points each counts one half. ``class_prior`` as an offset
        multiplies the odds of each new point at every (beta, k), where ``predict_proba`` multiplies
        those of the average, which differs little. ``calibrate`` does not enter: the draws are the
        model's.

        Examples
        --------
        >>> from bayesknn import BayesianKNeighborsClassifier
        >>> from bayesknn.datasets import load_ripley
        >>> ripley = load_ripley()
        >>> clf = BayesianKNeighborsClassifier("pseudo", random_state=0)
        >>> clf = clf.fit(ripley.X_train, ripley.y_train)
        >>> clf.sample_labels(ripley.X_test[::10], n_draws=20, random_state=0).shape
        (20, 100)
        """
        return self.classes_[self._draw_jointly(X, n_draws, random_state)]

    def predict_counts(
        self, X: Any, level: float = 0.9, prevalence: str = "training", random_state: Any = None
    ) -> np.ndarray:
        """Return how many points of a batch belong to each class: mean and interval.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
        level : float, default=0.9
            Probability inside the interval, half of the rest on either side.
        prevalence : {"training", "free"}, default="training"
            ``"training"`` takes the batch to have the class frequencies of the training points, or
            of ``class_prior``: under the pseudo-likelihood and that of Holmes and Adams the sum of
            :meth:`predict_proba`, corrected by the mean leave-one-out residual, which says how far
            such sums are off; under the coherent likelihood 1000 draws of :meth:`sample_labels`.
            ``"free"`` takes these draws for every likelihood: they follow a batch whose class
            frequencies differ, and are less exact where they do not.
        random_state : None, int, SeedSequence, Generator or RandomState
            For the draws.

        Returns
        -------
        ndarray of shape (n_classes, 3)
            Mean, low and high of the number of points in each class, in the order of
            ``classes_``.

        Examples
        --------
        >>> from bayesknn import BayesianKNeighborsClassifier
        >>> from bayesknn.datasets import load_ripley
        >>> ripley = load_ripley()
        >>> clf = BayesianKNeighborsClassifier("pseudo", random_state=0)
        >>> clf = clf.fit(ripley.X_train, ripley.y_train)
        >>> mean, low, high = clf.predict_counts(ripley.X_test[::10])[1]
        >>> bool(low < 50 < high), int(sum(ripley.y_test[::10]))
        (True, 50)
        """
        check_is_fitted(self)
        level = check_level(level)
        check_choice(prevalence, "prevalence", ("training", "free"))
        if prevalence == "free" or LIKELIHOODS[self.diagnostics_["likelihood"]].coherent:
            draws = self._draw_jointly(X, 1000, random_state)
            return counts_of_draws(draws, len(self.classes_), level)
        weights = np.ones(len(self.classes_)) if self.class_weight_ is None else self.class_weight_
        return counts_of_probabilities(
            np.asarray(self.predict_proba(X)),
            np.asarray(self.loo_proba_),
            self._labels,
            level,
            weights[self._labels] * self._score_weights,
            self.graph_.groups,
        )

    @property
    def groups_(self) -> np.ndarray | None:
        """Numbers of the groups of the training points, None where there are none."""
        check_is_fitted(self)
        return self.graph_.groups

    @property
    def calibration_(self) -> Calibration:
        """Exponents (t, s) of the probability and of the local proportion."""
        return self._calibrator.calibration

    @property
    def calibration_spread_(self) -> np.ndarray | None:
        """Weights of the distance to neighbours, None where classes do not differ in spread."""
        return self._calibrator.spread

    @property
    def _calibrator(self) -> Calibrator:
        check_is_fitted(self)
        return cast("Calibrator", self._interval_model.calibrator)

    @property
    def posterior_(self) -> xarray.DataTree:
        """Draws of beta and k in ArviZ's layout."""
        check_is_fitted(self)
        if self._tree is None:
            self._tree = restore_tree(self._draws)
        return self._tree

    @property
    def _score_weights(self) -> np.ndarray:
        """Weight of each training row in scores, before ``class_prior``."""
        return find_scored(self._labels, self.graph_.groups)

    @property
    def _odds_ratio(self) -> np.ndarray | None:
        """What the predicted odds are multiplied by."""
        return self.class_weight_ if self._is_offset else None

    def _describe_new(self, X: Any, level: float | None) -> RawPrediction:
        raw, copies = self._predict_raw(X, level), self._interval_model.copies
        if copies is None:
            return raw
        return raw._replace(copies=copies.count_new(cast("Any", self.graph_.metric).transform(X)))

    def _describe_left_out(self, level: float | None) -> RawPrediction:
        raw, labels, copies = self._left_out, self._labels, self._interval_model.copies
        if copies is not None:
            weights = self._make_model().weights[labels]
            raw = raw._replace(copies=copies.count_others(labels, weights))
        if level is None:
            return raw
        return raw._replace(intervals=self._predictive.leave_one_out(level)[0].intervals)

    def _get_predictive(self, X: Any) -> Predictive:
        check_new_points(self, X)
        # As set_params may have left them since the fit.
        return self._predictive.using(check_n_jobs(self.n_jobs), check_verbose(self.verbose))

    def _predict_raw(self, X: Any, level: float | None = None) -> RawPrediction:
        """Predict new points before calibration and offset."""
        return self._get_predictive(X).predict(X, level)

    def _draw_jointly(self, X: Any, n_draws: int, random_state: Any) -> np.ndarray:
        """Draw class numbers of a batch."""
        n_draws, predictive = check_count(n_draws, "n_draws"), self._get_predictive(X)
        field = None
        if self._odds_ratio is not None:
            field = np.tile(np.log(self._odds_ratio), (count_rows(X), 1))
        return draw_jointly(predictive, X, n_draws, random_state, field)

    def _compare_with_frequencies(self, likelihood: str) -> list[str]:
        """Say so if the labels are as probable without any neighbours."""
        sizes = np.bincount(self._labels)
        null = LIKELIHOODS[likelihood].log_evidence_without_neighbors(sizes)
        if self.log_evidence_ + self.log_evidence_error_ >= null:
            return []
        return [
            "neighbours say no more about the labels than the class frequencies do: the log "
            f"evidence is {self.log_evidence_:.1f}, that of the frequencies alone {null:.1f}; "
            "where classes are unequal, beta is above 0 for their frequencies only"
        ]

    def _count_ties(self) -> None:
        """Count the lists that end among equals at the most probable k; say so if they are many."""
        k = int(np.argmax(self.k_probabilities_)) + 1
        n = self.graph_.n_points
        n_tied = self.diagnostics_["boundary_ties"] = self.graph_.count_boundary_ties(k)
        if n_tied > 0.1 * n:
            self.diagnostics_["warnings"].append(
                f"{n_tied:,} of {n:,} rows have tied neighbours (equal distances) at k = {k}. Ties "
                "were broken at random; results could change slightly with another order. Use a "
                "metric that ties less, or average over shuffled rows with scikit-learn's "
                "VotingClassifier"
            )

    def _check_settings(self) -> Schedule:
        """Return how long chains run, and refuse settings that need no data to be wrong."""
        check_n_jobs(self.n_jobs)
        check_verbose(self.verbose)
        check_choice(self.label_sampler, "label_sampler", LABEL_SAMPLERS)
        check_choice(self.class_prior_as, "class_prior_as", ("offset", "weights"))
        if not isinstance(self.calibrate, bool | np.bool_):
            raise ValueError(f"calibrate must be True or False, got {show(self.calibrate)}")
        return Schedule(
            check_count(self.n_chains, "n_chains"),
            check_count(self.n_draws, "n_draws"),
            check_count(self.n_warmup, "n_warmup", 0),
        )

    _check_training = staticmethod(check_training)
    _keep_names = check_column_names
    _take_fingerprint = staticmethod(fingerprint)

    def _describe_rows(self, X: Any, model: BoltzmannModel, labels: np.ndarray) -> Rows:
        """Return columns and duplicates of the training rows, which intervals allow for."""
        columns = [] if self._is_precomputed else read_columns(X)
        labels_of_columns = [column.label for column in columns]
        return Rows(as_codes(columns), labels_of_columns, self._find_copies(model, labels))

    def _find_copies(self, model: BoltzmannModel, labels: np.ndarray) -> Copies | None:
        """Return the training rows of equal values, if there are any and values are known."""
        points = None if model.graph.index is None else model.graph.index.points
        if points is None:
            return None
        return Copies.from_rows(points, labels, model.weights[labels], model.n_classes)

    def _find_graph(self, X: Any, labels: np.ndarray, groups: np.ndarray | None) -> NeighborGraph:
        """Find the neighbours up to K."""
        graph = X if self._is_precomputed else None
        k_max = choose_k_max(self.max_neighbors, self.prior, np.bincount(labels), graph, groups)
        return NeighborGraph.from_points(
            X,
            k_max,
            metric=self.metric,
            metric_params=self.metric_params,
            search=self.search,
            search_params=self.search_params,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            groups=groups,
        )

    def _make_model(self) -> BoltzmannModel:
        """Return the model of the training points' labels."""
        weight = None if self._is_offset else self.class_weight_
        return BoltzmannModel(self.graph_, len(self.classes_), weight)

    def _make_predictive(
        self, likelihood: str, model: BoltzmannModel, labels: np.ndarray, nodes: PosteriorNodes
    ) -> Predictive:
        """Return what predicts under this likelihood."""
        return Predictive(
            model,
            labels,
            nodes,
            direction=LIKELIHOODS[likelihood].direction,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _leave_out(self, route: FittedPosterior, target: Target, rows: Rows) -> Learned:
        """Predict every training row without its label, and learn from it."""
        if route.grid is None:
            nodes = PosteriorNodes.from_draws(route.beta, route.k)
        else:
            nodes = PosteriorNodes.from_grid(route.grid)
        _, model, labels, _ = target
        predictive = self._make_predictive(*target[:3], nodes)
        left_out, effective = predictive.leave_one_out()
        graph, both = model.graph, predictive.direction == "both"
        groups = graph.groups
        near = graph.get_neighbors(
            graph.k_max if groups is not None else min(MOST_PAIRS, graph.k_max)
        )
        weights = model.weights[labels]
        scored = weights * find_scored(labels, groups)
        calibrator = Calibrator.fit(left_out, labels, nodes.votes_by_rank, scored)
        pairs = calibrator.find_pairs(
            left_out,
            labels,
            near,
            nodes.k_mean,
            model.weights,
            both,
            groups,
            graph.incidence if both and groups is not None else None,
        )
        voters = calibrator.list_voters(graph.get_neighbors(graph.k_max, rows.examined))
        interval_model = fit_interval_model(
            left_out,
            labels,
            pairs=pairs._replace(voters=voters),
            n_votes=nodes.k_mean,
            columns=rows.columns,
            copies=rows.copies,
            weights=weights,
            groups=groups,
            calibrator=calibrator,
        )
        return Learned(predictive, left_out, effective, interval_model)

    def _keep(self, route: FittedPosterior, prior: Prior, learned: Learned, **about: Any) -> None:
        """Set the attributes that follow from the posterior, and warn of what is doubtful.

        ``about`` are entries of ``diagnostics_``.
        """
        predictive, left_out, effective, interval_model = learned
        self.prior_, self.beta_max_, self.grid_ = prior, float(prior.beta_max), route.grid
        self._draws, self._tree = route.draws, None
        self._predictive, self._left_out = predictive, left_out
        self._interval_model = interval_model
        left_out_proba = self._adjust(left_out)
        self.loo_proba_ = left_out_proba
        self.loo_log_score_ = log_score(left_out_proba, self._labels, self._score_weights)
        self.k_values_ = np.arange(1, prior.k_max + 1)
        self.k_probabilities_, self.k_probabilities_error_ = route.k_marginal(prior.k_max)
        self.beta_mean_, self.beta_sd_ = route.beta_moments()
        # What an earlier fit by the grid may have left.
        self.__dict__.pop("log_evidence_", None)
        self.__dict__.pop("log_evidence_error_", None)
        self.diagnostics_ = route.report.describe(**about)
        if route.grid is not None:
            self.log_evidence_ = route.grid.log_evidence
            self.log_evidence_error_ = route.grid.log_evidence_error
            compared = self._compare_with_frequencies(route.report.likelihood)
            self.diagnostics_["warnings"] += compared
        self.diagnostics_["search"] = {"name": self.graph_.search_name, "exact": True}
        groups = self.graph_.groups
        self.diagnostics_["warnings"] += [
            *_check_leave_one_out(effective, route, groups is not None),
            *name_unscored(self.classes_, self._labels, groups),
        ]
        self._count_ties()
        advice = "; select columns, or use PooledNeighborsClassifier"
        self._describe_misfit(self._known.labels, "the distance over all columns", advice)

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        if "_predictive" in state:
            state["_nodes"] = state.pop("_predictive").nodes
            # Rows of equal values are found again among the points of the graph, and the values of
            # the columns are for reweight, which a saved classifier has not.
            state["_interval_model"] = replace(state["_interval_model"], copies=None)
            state["_known"] = state["_seeds"] = None
            # The replicates of a grid are megabytes.
            state["_tree"] = state["grid_"] = None
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        nodes = state.pop("_nodes", None)
        super()._restore(state)
        if nodes is not None:
            # That of the fit: set_params may have changed the parameter before it was saved.
            likelihood = self.diagnostics_["likelihood"]
            model = self._make_model()
            # Made anew, so that numbers which were changed in a file are refused.
            nodes = replace(nodes)
            self._predictive = self._make_predictive(likelihood, model, self._labels, nodes)
            _check_sizes(self)
            copies = self._find_copies(model, self._labels)
            if copies is not None:
                within = self._interval_model.correlation.within
                weights = model.weights[self._labels]
                copies = copies.among_groups(weights, self.graph_.groups, within)
            self._interval_model = replace(self._interval_model, copies=copies)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise, tags.input_tags.sparse = self._is_precomputed, True
        tags.input_tags.allow_nan = isinstance(self.metric, str) and self.metric == "nan_euclidean"
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"


def _check_sizes(clf: Any) -> None:
    """Raise ValueError if parts of a classifier that was read from a file do not fit its graph.

    ``sample_predictive`` hands the draws of (beta, k) to compiled code, which does not check where
    it reads.
    """
    draws, left_out = clf._draws["groups"]["posterior"], clf._left_out
    rows, n_draws = (clf.graph_.n_points, len(clf.classes_)), np.shape(draws["k"])
    n_k = (len(check_indices(clf.k_values_, "k_values_", clf.graph_.k_max, 1)),)
    check_indices(draws["k"], "the draws of k", clf.graph_.k_max, 1)
    for name, array, shape in (
        ("loo_proba_", clf.loo_proba_, rows),
        *(
            (name, getattr(left_out, name), rows)
            for name in ("probabilities", "variances", "votes")
        ),
        ("distances", left_out.distances, rows[:1]),
        ("k_probabilities_", clf.k_probabilities_, n_k),
        ("k_probabilities_error_", clf.k_probabilities_error_, n_k),
        ("the draws of beta", draws["beta"], n_draws),
    ):
        if np.shape(array) != shape or np.asarray(array).dtype.kind not in "fiu":
            raise ValueError(f"the saved model was changed: {name} must be {shape} numbers")
    if not np.all((draws["beta"] >= 0) & (draws["beta"] < np.inf)):
        raise ValueError("the saved model was changed: beta must be finite and at least 0")


def _check_leave_one_out(
    effective: np.ndarray, route: FittedPosterior, is_grouped: bool
) -> list[str]:
    """Say which training points' reweighted nodes are too few to trust, if any are."""
    # Part of the posterior, and independent draws of a chain, below which nodes are too few.
    least = 0.02
    if route.grid is None:
        least = max(least, 50 / min(route.report.ess.values()))
    rows = np.flatnonzero(effective < least)
    if rows.size == 0:
        return []
    what = "rows' groups" if is_grouped else "labels"
    named = ", ".join(map(str, rows[np.argsort(effective[rows], kind="stable")][:5]))
    return [
        f"leave-one-out of {rows.size} row{'' if rows.size == 1 else 's'} ({named}"
        f"{', ...' if rows.size > 5 else ''}) rests on {100 * effective.min():.2g} % of the "
        f"posterior or less than chains of this length can tell: each of these {what} moves the "
        "posterior much by itself; fit without it to know its probability"
    ]
