"""The Bayesian k-nearest-neighbour classifier (the paper, Sections 2 to 4).

The labels of the training points are a Markov random field on the symmetrised neighbour graph,
with a strength beta and a number k of neighbours that are both unknown; class probabilities are
averaged over their posterior. This module only connects the parts: ``graph``, ``posterior`` and
``predictive`` do the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesknn._estimator import (
    CallbackSupportMixin,
    check_new_points,
    check_training,
    follow_stages,
    with_callbacks,
)
from bayesknn._packing import pack, unpack
from bayesknn._wiring import (
    check_settings,
    choose_k_max,
    choose_prior,
    find_nodes,
    make_predictive,
)
from bayesknn.graph import NeighborGraph
from bayesknn.labels.random import as_seed_sequence
from bayesknn.model import class_weights
from bayesknn.posterior.output import restore_tree
from bayesknn.posterior.routes import Route, Target, choose_inference, find_posterior
from bayesknn.predictive import Predictive, decide, find_zones, log_score

if TYPE_CHECKING:
    import xarray


class BayesianKNeighborsClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """k-nearest-neighbour classification with k and its strength beta averaged over.

    Parameters
    ----------
    likelihood : {"coherent", "pseudo", "holmes-adams"}, default="coherent"
        What is targeted: the paper's model, its pseudo-likelihood, or the product of Holmes and
        Adams (2002).
    inference : {"auto", "grid", "metropolis", "auxiliary", "exchange"}, default="auto"
        How the posterior is reached. ``"grid"`` sums over a grid of (beta, k) and knows its error;
        the others are Markov chains. ``"auto"`` chooses by size, and ``diagnostics_`` says what
        and why. ``"auxiliary"`` and ``"exchange"`` are for the coherent likelihood.
    label_sampler : {"swendsen-wang", "perfect", "gibbs"}, default="swendsen-wang"
        How those two draw labels; with ``"perfect"`` they are exact.
    metric : str or callable, default="euclidean"
        Any metric of :meth:`bayesknn.graph.NeighborGraph.from_points`, ``"mahalanobis"``,
        ``"gower"`` (numbers and categories) and ``"precomputed"`` among them.
    metric_params : dict, optional
        Parameters of the metric.
    max_neighbors : int, optional
        Largest k, K. By default the size of the smallest class, as in the paper, at most n - 1
        and 2e7 / n, and no more than a sparse precomputed graph stores.
    beta_max : float or "auto", default="auto"
        Largest beta. ``"auto"`` is where the model becomes black or white for every k, see
        :func:`bayesknn.labels.find_beta_max`; twice that for Holmes and Adams.
    prior : None, array-like, callable or Prior, default=None
        On (beta, k): uniform on {1..K} x [0, beta_max]; or as :func:`bayesknn.model.as_prior`
        takes it.
    class_prior : array-like of shape (n_classes,) or dict, optional
        The classes' true frequencies where those of the sample differ (unbalanced sampling), in
        the order of ``classes_`` or by class. Each same-label edge of class g then counts
        p_g n / n_g. Where these weights differ much, a field of the heaviest class alone soon
        outweighs all others: ``beta_max="auto"`` is small then, and the coherent posterior may
        hold beta near 0. The two other likelihoods, with a ``beta_max`` given, do not suffer so.
    n_chains, n_draws, n_warmup : int, default=4, 5000, 1000
        Chains, draws of each that are kept, and draws before them that are not. From a grid as
        many independent draws are made for ``posterior_``; predictions use the grid itself.
    n_jobs : int, optional
        As in joblib, -1 for all cores. No result depends on it.
    random_state : None, int, SeedSequence, Generator or RandomState
        The same one gives the same posterior. Nothing is drawn at prediction.
    verbose : int, default=0
        Above 0, work that takes more than two seconds shows its progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    posterior_ : xarray.DataTree
        In ArviZ's layout: ``posterior`` with beta and k over (chain, draw), ``sample_stats``,
        ``observed_data``.
    k_values_, k_probabilities_ : ndarray of shape (K,)
        1..K, and their posterior probabilities.
    k_probabilities_error_ : ndarray of shape (K,)
        Monte Carlo errors of those.
    beta_mean_, beta_sd_ : float
        Posterior mean and standard deviation of beta.
    log_evidence_, log_evidence_error_ : float
        Log probability of the labels under model and prior (grid only).
    beta_max_ : float
        Largest beta in use.
    class_weight_ : ndarray of shape (n_classes,) or None
        The weights that ``class_prior`` gives.
    diagnostics_ : dict
        ``inference`` and ``reason``; ``ess``, ``rhat`` and ``mcse`` of beta and k;
        ``acceptance`` of each chain; ``log_normalizer_error``; ``warnings`` in words.
    loo_proba_ : ndarray of shape (n, n_classes)
        Class probabilities of each training point given the labels of all others.
    loo_log_score_ : float
        Mean log probability that ``loo_proba_`` gives to the true labels.
    graph_ : NeighborGraph
        The training points' neighbours up to K.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If X had names that are all strings.

    See Also
    --------
    ClassicalKNeighborsClassifier : The vote of the k nearest, with k chosen by leave-one-out.

    Notes
    -----
    Equal distances are settled by the lower row number, and duplicated points are ordinary points
    at distance 0: they are each other's nearest neighbours, and k of them in one place see nobody
    else in a graph of k - 1.

    A credible interval here carries the uncertainty about beta and k, and nothing else: it is not
    an interval that covers the true P(y | x) at its level.

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

    def __init__(
        self,
        likelihood: str = "coherent",
        inference: str = "auto",
        label_sampler: str = "swendsen-wang",
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        max_neighbors: int | None = None,
        beta_max: float | str = "auto",
        prior: Any = None,
        class_prior: Any = None,
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
        self.max_neighbors = max_neighbors
        self.beta_max = beta_max
        self.prior = prior
        self.class_prior = class_prior
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y) -> BayesianKNeighborsClassifier:
        """Compute the posterior of (beta, k) given the labels of the training points.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (n, p)
            Training points; distances of shape (n, n) for ``metric="precomputed"``, for instance
            those of scikit-learn's ``KNeighborsTransformer``.
        y : array-like of shape (n,)
            Their labels: at least two classes of at least two points.

        Returns
        -------
        BayesianKNeighborsClassifier
            Itself.
        """
        schedule = check_settings(self)
        classes, labels = check_training(X, y)
        choose_inference(self.likelihood, self.inference, len(labels))
        seeds = as_seed_sequence(self.random_state).spawn(2)
        with follow_stages(self, X, y, n_stages=4) as stage:
            with stage("neighbours"):
                graph = NeighborGraph.from_points(
                    X,
                    choose_k_max(self, X, labels),
                    metric=self.metric,
                    metric_params=self.metric_params,
                    n_jobs=self.n_jobs,
                )
            weights = None
            if self.class_prior is not None:
                weights = class_weights(labels, self.class_prior, classes.tolist())
            with stage("beta_max"):
                prior = choose_prior(self, graph, len(classes), weights, seeds[0])
            target = Target(self.likelihood, graph, labels, len(classes), weights, prior)
            with stage("posterior"):
                route = find_posterior(
                    target,
                    self.inference,
                    self.label_sampler,
                    schedule,
                    random_state=seeds[1],
                    n_jobs=self.n_jobs,
                    verbose=self.verbose,
                )
            with stage("leave-one-out"):
                predictive = make_predictive(
                    self.likelihood, graph, labels, len(classes), find_nodes(route), weights,
                    n_jobs=self.n_jobs, verbose=self.verbose,
                )  # fmt: skip
                loo_proba = predictive.loo_probabilities()
        # Last, so that a fitted classifier is still whole when its next fit is refused: from here
        # on nothing can fail but the names of the columns, which are looked at before any is kept.
        validate_data(self, X, skip_check_array=True)
        self.classes_, self.graph_, self.class_weight_ = classes, graph, weights
        self.beta_max_ = float(prior.beta_max)
        self._labels, self._predictive = labels, predictive
        self._draws = route.draws
        self._tree: xarray.DataTree | None = None
        self._describe(route, prior.k_max)
        self.loo_proba_ = loo_proba
        self.loo_log_score_ = log_score(loo_proba, labels)
        return self

    def predict(self, X) -> np.ndarray:
        """Return the most probable class, the first in ``classes_`` where several are.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (m, p)
            New points; distances of shape (m, n) for ``metric="precomputed"``.

        Returns
        -------
        ndarray of shape (m,)
        """
        winners = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[winners]

    def predict_proba(self, X) -> np.ndarray:
        """Return class probabilities averaged over the posterior, in the order of ``classes_``.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (m, p)

        Returns
        -------
        ndarray of shape (m, n_classes)
        """
        return self._check_and_connect(X).probabilities(X)

    def predict_interval(self, X, level: float = 0.95) -> np.ndarray:
        """Return a credible interval of each class probability.

        It carries the uncertainty about beta and k.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (m, p)
        level : float, default=0.95
            Posterior probability inside, half of the rest on either side.

        Returns
        -------
        ndarray of shape (m, n_classes, 2)
            Lower and upper ends.
        """
        return self._check_and_connect(X).intervals(X, level)

    def predict_zone(self, X, level: float = 0.95, uncertain: Any = "uncertain") -> np.ndarray:
        """Return the class whose interval lies above that of every other, or ``uncertain``.

        With two classes this is the paper's rule: a class is sure where the interval of its
        probability lies above one half.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (m, p)
        level : float, default=0.95
            Of the intervals.
        uncertain : object, default="uncertain"
            What to say where no class is sure.

        Returns
        -------
        ndarray of shape (m,), dtype object
        """
        zones = find_zones(self.predict_interval(X, level))
        names = np.empty(len(self.classes_) + 1, dtype=object)
        names[:-1] = self.classes_.tolist()
        # Entry -1, which is what find_zones says where nothing is sure.
        names[-1] = uncertain
        return names[zones]

    def predict_decision(self, X, loss: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the class with the least expected loss, and that loss.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (m, p)
        loss : array-like of shape (n_classes, n_classes), optional
            ``loss[a][g]`` is the loss of deciding for class a when g is true, in the order of
            ``classes_``. By default 1 for every error, so that the expected loss is the
            probability of being wrong.

        Returns
        -------
        decisions : ndarray of shape (m,)
        expected_loss : ndarray of shape (m,)
        """
        decisions, expected = decide(self.predict_proba(X), loss)
        return self.classes_[decisions], expected

    def loo_interval(self, level: float = 0.95) -> np.ndarray:
        """Return a credible interval of each entry of ``loo_proba_``.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        ndarray of shape (n, n_classes, 2)
            Lower and upper ends.
        """
        check_is_fitted(self)
        return self._predictive.loo_intervals(level)

    @property
    def posterior_(self) -> xarray.DataTree:
        """Draws of beta and k in ArviZ's layout."""
        check_is_fitted(self)
        tree = self._tree
        if tree is None:
            tree = self._tree = restore_tree(self._draws)
        return tree

    def _check_and_connect(self, X: Any) -> Predictive:
        check_new_points(self, X)
        # As set_params may have left them since the fit.
        self._predictive.n_jobs, self._predictive.verbose = self.n_jobs, self.verbose
        return self._predictive

    def _describe(self, route: Route, k_max: int) -> None:
        """Set the attributes that sum the posterior up."""
        self.k_values_ = np.arange(1, k_max + 1)
        self.k_probabilities_, self.k_probabilities_error_ = route.law_of_k(k_max)
        self.beta_mean_, self.beta_sd_ = route.moments_of_beta()
        # What an earlier fit by the grid may have left.
        self.__dict__.pop("log_evidence_", None)
        self.__dict__.pop("log_evidence_error_", None)
        if route.grid is not None:
            self.log_evidence_ = route.grid.log_evidence
            self.log_evidence_error_ = route.grid.log_evidence_error
        self.diagnostics_ = {"likelihood": self.likelihood, **route.report}

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_predictive" in state:
            state["_nodes"] = state.pop("_predictive").nodes
            state["_tree"] = None
        return pack(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = unpack(state)
        nodes = state.pop("_nodes", None)
        super().__setstate__(state)
        if nodes is not None:
            # That of the fit: set_params may have changed the parameter before it was saved.
            likelihood = self.diagnostics_["likelihood"]
            self._predictive = make_predictive(
                likelihood, self.graph_, self._labels, len(self.classes_), nodes,
                self.class_weight_, n_jobs=self.n_jobs, verbose=self.verbose,
            )  # fmt: skip

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        is_precomputed = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.input_tags.pairwise = is_precomputed
        tags.input_tags.sparse = is_precomputed
        return tags
