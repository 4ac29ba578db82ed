"""Criticism of a fitted model: checks, comparison, sensitivity and coverage (beyond the paper).

Are the labels like draws of the model? Which metric or which columns have the larger evidence?
Would another prior have changed the answer? How often do intervals hold the true probability on
this table, at most? Are draws of beta from the posterior that they claim to be of?
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayesknn._estimator import check_training, params_of_fit
from bayesknn._utils.checks import check_count, check_level
from bayesknn._utils.extras import require
from bayesknn._utils.progress import progress
from bayesknn._utils.random import as_seed_sequence
from bayesknn._utils.saving import fingerprint
from bayesknn.classifier import BayesianKNeighborsClassifier
from bayesknn.labels import sample_labels
from bayesknn.likelihood import LIKELIHOODS, CoherentLikelihood
from bayesknn.model import BoltzmannModel, FunctionPrior, Prior
from bayesknn.model.frequencies import frequencies_of_others
from bayesknn.posterior.mcmc.diagnostics import mean_error

if TYPE_CHECKING:
    import pandas

NULL = "class frequencies alone"


class Statistic(NamedTuple):
    """A number that the labels have, beside the same number of labels drawn from the model."""

    observed: float
    drawn: np.ndarray

    def __str__(self) -> str:
        n = len(self.drawn)
        below, above = np.sum(self.drawn < self.observed), np.sum(self.drawn > self.observed)
        for part, word in ((below, "larger"), (above, "smaller")):
            if part == n:
                return f"{word} than each of the {n:,} draws"
            if part > 0.9 * n:
                return f"{word} than {100 * part // n}\xa0% of the draws"
        return f"like the draws: {100 * above / n:.0f}\xa0% of them are larger"


def predictive_statistics(
    clf: BayesianKNeighborsClassifier, n_draws: int = 500, random_state: Any = None
) -> dict[str, Statistic]:
    """Compare the labels with labels drawn from the fitted model.

    Parameters
    ----------
    clf : BayesianKNeighborsClassifier
        Fitted by the coherent likelihood.
    n_draws : int, default=500
    random_state : None, int, SeedSequence, Generator or RandomState
        As :meth:`BayesianKNeighborsClassifier.sample_predictive` takes them.

    Returns
    -------
    dict of str to Statistic
        The proportion of neighbours that share their point's class, for three k and in each class;
        the number of points of each class and of the largest one, the classes being alike to the
        model; and the number of pieces that the graph of the most
        probable k falls into when only points of one class stay connected.

    Examples
    --------
    >>> from bayesknn import BayesianKNeighborsClassifier
    >>> from bayesknn.criticism import predictive_statistics
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> clf = BayesianKNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
    >>> statistics = predictive_statistics(clf, n_draws=50, random_state=0)
    >>> statistics["points of class 0"].observed
    125.0
    """
    tree = clf.sample_predictive(n_draws, random_state)
    drawn = np.asarray(tree["posterior_predictive"]["labels"])[0]
    labels = np.vstack([clf._labels, drawn]).astype(np.int64)
    best = int(np.argmax(clf.k_probabilities_)) + 1
    ks = np.unique([1, best, clf.k_values_[-1]])
    model = BoltzmannModel(clf.graph_, len(clf.classes_))
    agreeing = model.agreement(labels)[:, ks - 1] / (ks * labels.shape[1])
    counts, within, pieces = _look_closer(clf.graph_.neighbors[:best], labels, len(clf.classes_))
    columns = {
        **{f"same class among {k} nearest": agreeing[:, j] for j, k in enumerate(ks)},
        f"pieces of one class at k = {best}": pieces,
        "points of the largest class": counts.max(axis=1),
        **{f"points of class {name}": counts[:, g] for g, name in enumerate(clf.classes_)},
        **{f"same class around class {name}": within[:, g] for g, name in enumerate(clf.classes_)},
    }
    # A class that a draw does not have says nothing about its neighbours.
    return {
        name: Statistic(float(values[0]), values[1:][~np.isnan(values[1:])])
        for name, values in columns.items()
    }


def compare_evidence(fits: Mapping[str, BayesianKNeighborsClassifier]) -> pandas.DataFrame:
    """Compare fits to the same labels by their evidence, with class frequencies alone as a row.

    Parameters
    ----------
    fits : mapping of str to BayesianKNeighborsClassifier
        Fitted by a grid, with the same labels, prior and likelihood: they differ in metric or
        columns. Give ``max_neighbors`` and ``beta_max``, which depend on the metric by default.

    Returns
    -------
    pandas.DataFrame
        By name, the largest evidence first: ``log_evidence`` and its Monte Carlo ``error``;
        ``bayes_factor``, the evidence divided by the largest one, of the coherent likelihood
        only; and ``loo_log_score``, the mean log probability of a label given all others. Class
        frequencies alone have a uniform prior. The pseudo-likelihood and that of Holmes and Adams
        are products of conditionals, not distributions of the labels: their ``log_evidence``
        orders fits, and its differences are no Bayes factors. The row of the class frequencies is
        such a product then.

    Examples
    --------
    >>> from bayesknn import BayesianKNeighborsClassifier, compare_evidence
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> clf = BayesianKNeighborsClassifier("pseudo", beta_max=4.0, random_state=0)
    >>> fits = {
    ...     "both": clf.fit(ripley.X_train, ripley.y_train),
    ...     "second": clone(clf).fit(ripley.X_train[:, 1:], ripley.y_train),
    ... }
    >>> compare_evidence(fits).index.tolist()
    ['both', 'second', 'class frequencies alone']
    """
    pandas = require("pandas", "the table of evidence needs", "report")
    if not fits:
        raise ValueError("there is nothing to compare: pass {name: fitted classifier}")
    first_name, first = next(iter(fits.items()))
    rows = {}
    for name, clf in fits.items():
        check_is_fitted(clf)
        if not np.isfinite(getattr(clf, "log_evidence_", np.nan)):
            raise ValueError(f"{name!r} has no evidence: fit it with inference='grid'")
        if reason := _find_difference(first, clf):
            raise ValueError(f"{first_name!r} and {name!r} cannot be compared: {reason}")
        rows[name] = (clf.log_evidence_, clf.log_evidence_error_, clf.loo_log_score_)
    sizes = np.bincount(first._labels)
    likelihood = LIKELIHOODS[first.diagnostics_["likelihood"]]
    log_evidence = likelihood.log_evidence_without_neighbors(sizes)
    score = float(np.average(np.log(frequencies_of_others(sizes)), weights=sizes))
    rows[NULL] = log_evidence, 0.0, score
    columns = ["log_evidence", "error", "loo_log_score"]
    table = pandas.DataFrame.from_dict(rows, orient="index", columns=columns)
    if likelihood.coherent:
        factor = np.exp(table["log_evidence"] - table["log_evidence"].max())
        table.insert(2, "bayes_factor", factor)
    return table.sort_values("log_evidence", ascending=False)


def sensitivity(
    clf: BayesianKNeighborsClassifier, X: Any = None, priors: Mapping[str, Prior] | None = None
) -> pandas.DataFrame:
    """Say what other priors would have made of the same fit, by reweighting its grid.

    Parameters
    ----------
    clf : BayesianKNeighborsClassifier
        Fitted by a grid.
    X : array-like of shape (m, p), optional
        Points whose class probabilities are compared; by default the training points, left out.
    priors : mapping of str to Prior, optional
        By default that of the fit with K halved, with k less probable as 1/k, and with ``beta_max``
        halved and enlarged by half.

    Returns
    -------
    pandas.DataFrame
        A row for each prior, that of the fit first: the most probable ``k``, ``k_mean``,
        ``beta_mean``, ``log_evidence``, ``loo_log_score``, ``largest_change`` of a class
        probability, the number ``n_changed`` of points with another most probable class, and a
        ``note`` where the grid does not reach. For more see
        :meth:`BayesianKNeighborsClassifier.reweight`.

    Examples
    --------
    >>> from bayesknn import BayesianKNeighborsClassifier, sensitivity
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> clf = BayesianKNeighborsClassifier("pseudo", random_state=0)
    >>> table = sensitivity(clf.fit(ripley.X_train, ripley.y_train))
    >>> table.index.tolist()
    ['as fitted', 'K halved', 'prior 1/k', 'beta_max halved', 'beta_max + 50 %']
    >>> bool(table["largest_change"].max() < 0.2)
    True
    """
    pandas = require("pandas", "the table of priors needs", "report")
    check_is_fitted(clf)
    before = clf.loo_proba_ if X is None else clf.predict_proba(X)
    rows = {"as fitted": _sum_up(clf.reweight(clf.prior_), before, before)}
    for name, prior in (_change(clf.prior_) if priors is None else priors).items():
        try:
            other = clf.reweight(prior)
        except ValueError as error:
            rows[name] = {"note": str(error)}
            continue
        after = other.loo_proba_ if X is None else other.predict_proba(X)
        rows[name] = _sum_up(other, before, after)
    return pandas.DataFrame.from_dict(rows, orient="index")


class Coverage(NamedTuple):
    """Proportion of intervals that hold the probabilities with which labels were drawn.

    An upper bound, up to ``error``, of the proportion that hold the true P(y | x): the labels are
    drawn from the fit itself, and what the fit misses is not in them.

    Attributes
    ----------
    coverage, error : float
        The proportion of points and classes, and its standard error over the repetitions.
    level : float
        The level of the intervals.
    """

    coverage: float
    error: float
    level: float

    def __str__(self) -> str:
        return (
            f"at most {100 * self.coverage:.1f} ± {100 * self.error:.1f} % of "
            f"{100 * self.level:g} % intervals hold the true probability"
        )


def check_intervals(
    clf: Any, X: Any, y: Any, *, n_repeats: int = 20, level: float = 0.95, random_state: Any = None,
    verbose: int = 1,
) -> Coverage:  # fmt: skip
    """Bound the proportion of intervals that hold the true probability on a table of one's own.

    Labels are drawn from the leave-one-out probabilities of the fit, as if these were true, and the
    classifier is fitted to the drawn labels, with the weights of the rows. A classifier with the
    coherent likelihood is fitted with the pseudo-likelihood, which has the same intervals and takes
    far less time. Predicted probabilities are smoother than the true ones, and the drawn labels
    have none of the structure that the fit misses. The result is therefore an upper bound of the
    coverage of the true probability. Where P depends on one of many columns, the coverage can be
    far below this bound.

    Parameters
    ----------
    clf : BayesianKNeighborsClassifier or PooledNeighborsClassifier
        Fitted to X and y.
    X, y
        The training table.
    n_repeats : int, default=20
        How many times; at least 2.
    level : float, default=0.95
        Of the intervals.
    random_state : None, int, SeedSequence, Generator or RandomState
    verbose : int, default=1
        Above 0, progress and the time that remains are shown.

    Returns
    -------
    Coverage
        Rows count by their weights.

    Examples
    --------
    >>> from bayesknn import BayesianKNeighborsClassifier, check_intervals
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> clf = BayesianKNeighborsClassifier("pseudo", random_state=0)
    >>> clf = clf.fit(ripley.X_train, ripley.y_train)
    >>> result = check_intervals(clf, ripley.X_train, ripley.y_train, n_repeats=4, random_state=0,
    ...                          verbose=0)
    >>> bool(0.8 < result.coverage <= 1)
    True
    """
    check_is_fitted(clf)
    n_repeats, level = check_count(n_repeats, "n_repeats", 2), check_level(level)
    params = params_of_fit(clf)
    if params["class_prior"] is not None:
        raise ValueError("labels have the frequencies of the table: fit without class_prior")
    classes, labels, _ = check_training(X, y)
    # Classes whose rows all have weight 0 are not among classes_.
    is_same = np.isin(clf.classes_, classes).all()
    if not is_same or clf.diagnostics_["training"] != fingerprint(X, labels):
        raise ValueError("X and y must be the table that the classifier was fitted to")
    truth = clf.loo_proba_
    other = clone(clf).set_params(**(params | {"verbose": 0}))
    if LIKELIHOODS[params.get("likelihood", "pseudo")].coherent:
        other.set_params(likelihood="pseudo", inference="grid")
    given, is_fitted = {"groups": clf.groups_}, np.ones(len(truth), bool)
    if hasattr(clf, "_weights"):
        given["sample_weight"] = clf._weights
        is_fitted = clf._weights > 0
    least = np.minimum(np.bincount(clf._labels[is_fitted]), 2)
    seeds, held = as_seed_sequence(random_state).spawn(n_repeats), []
    with progress("Fitting to drawn labels", n_repeats, verbose=verbose) as advance:
        for seed in seeds:
            of_labels, of_fit = seed.spawn(2)
            labels = _draw_labels(truth, np.random.default_rng(of_labels), is_fitted, least)
            other.set_params(random_state=of_fit).fit(X, clf.classes_[labels], **given)
            low, high = np.moveaxis(other.loo_interval(level), -1, 0)
            is_held = ((low <= truth) & (truth <= high)).mean(axis=1)
            held.append(np.average(is_held, weights=clf._score_weights))
            advance(1)
    error = np.std(held, ddof=1) / np.sqrt(n_repeats)
    return Coverage(float(np.mean(held)), float(error), level)


class Bartlett(NamedTuple):
    """Mean of s^2 + s1 over draws of beta, 0 under the posterior (second Bartlett identity).

    Attributes
    ----------
    value, error : float
        The mean, and its Monte Carlo error.
    information : float
        The mean of -s1, which the value is to be compared with.
    """

    value: float
    error: float
    information: float

    def __str__(self) -> str:
        return (
            f"E[s^2 + s1] = {self.value:.3g} ± {self.error:.2g}, "
            f"{self.value / self.information:+.2f} ± {self.error / self.information:.2f} of E[-s1]"
        )


def second_bartlett(
    likelihood: CoherentLikelihood, beta: Any, k: Any, prior: Prior | None = None, *,
    n_points: int = 200, n_sweeps: int = 400, random_state: Any = None,
) -> Bartlett:  # fmt: skip
    """Measure how far draws of beta are from the coherent posterior (arXiv 2109.05121).

    With s the derivative of the log posterior in beta, and s1 that of s, the posterior mean of
    s^2 + s1 is the slope of the posterior density at beta_max less that at 0: it vanishes where the
    posterior has no mass at the ends of the prior. This holds for each k, so that the draws of k
    are not examined. Of labels drawn at (beta, k) the mean and variance of S_k enter: they are
    estimated by two Swendsen-Wang chains, and s^2 is the product of one s from each, without bias.

    Parameters
    ----------
    likelihood : CoherentLikelihood
    beta, k : array-like of shape (n_chains, n_draws)
        Draws, by whatever approximation.
    prior : Prior, optional
        Uniform in beta by default.
    n_points : int, default=200
        Number of draws of each chain that are used, evenly spaced.
    n_sweeps : int, default=400
        Number of labels drawn at each of them.
    random_state : None, int, SeedSequence, Generator or RandomState

    Returns
    -------
    Bartlett

    Examples
    --------
    >>> from bayesknn.criticism import second_bartlett
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import CoherentLikelihood, ExactLikelihood
    >>> from bayesknn.posterior import grid_posterior
    >>> ring = NeighborGraph.from_neighbors([[(i + 1) % 30 for i in range(30)]])
    >>> labels = np.arange(30) // 4 % 2
    >>> exact = grid_posterior(ExactLikelihood(ring, labels), beta_max=8.0)
    >>> draws = exact.draw(2, 100, random_state=0)
    >>> coherent = CoherentLikelihood(ring, labels)
    >>> result = second_bartlett(coherent, draws["beta"], draws["k"], random_state=0)
    >>> abs(result.value) < 4 * result.error
    True
    """
    beta, k = np.atleast_2d(beta), np.atleast_2d(k)
    rows = np.linspace(0, beta.shape[1] - 1, min(n_points, beta.shape[1])).round().astype(np.int64)
    beta, k = beta[:, rows], k[:, rows]
    squares, slopes = np.zeros((2, *beta.shape))
    seeds = as_seed_sequence(random_state).spawn(beta.size)
    for at, seed in zip(np.ndindex(beta.shape), seeds, strict=True):
        b, one_k = float(beta[at]), int(k[at])
        _, info = sample_labels(
            likelihood.model, b, one_k, n_draws=n_sweeps, thin=1, random_state=seed,
            return_info=True,
        )  # fmt: skip
        chains = info.agreement.reshape(2, -1) / one_k
        of_prior = _slopes(prior, b, one_k)
        scores = likelihood.agreement[one_k - 1] / one_k - chains.mean(axis=1) + of_prior[0]
        squares[at], slopes[at] = np.prod(scores), of_prior[1] - chains.var()
    total = squares + slopes
    return Bartlett(float(total.mean()), mean_error(total), float(-slopes.mean()))


def _slopes(prior: Prior | None, beta: float, k: int) -> tuple[float, float]:
    """Return the first two derivatives of the log prior in beta, by finite differences."""
    if prior is None:
        return 0.0, 0.0
    step = 1e-4 * prior.beta_max
    middle = min(max(beta, step), prior.beta_max - step)
    low, here, high = prior.log_density(middle + step * np.arange(-1, 2), k)
    return (high - low) / (2 * step), (high - 2 * here + low) / step**2


def _look_closer(
    neighbors: np.ndarray, labels: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the class counts, the agreement around each class, and the number of pieces."""
    (n_draws, n), (k, _) = labels.shape, neighbors.shape
    own = np.broadcast_to(np.arange(n), neighbors.shape)
    counts, same_class = np.zeros((2, n_draws, n_classes))
    pieces = np.zeros(n_draws)
    for d, row in enumerate(labels):
        same = row[neighbors] == row
        edges = own[same], neighbors[same].astype(np.int64)
        graph = coo_array((np.ones(len(edges[0])), edges), shape=(n, n))
        pieces[d] = connected_components(graph, directed=False, return_labels=False)
        counts[d] = np.bincount(row, minlength=n_classes)
        same_class[d] = np.bincount(row, same.sum(axis=0), minlength=n_classes)
    with np.errstate(invalid="ignore"):
        return counts, same_class / (k * counts), pieces


def _find_difference(
    first: BayesianKNeighborsClassifier, second: BayesianKNeighborsClassifier
) -> str | None:
    """Say why the evidence of two fits is not of the same thing, if it is not."""
    likelihoods = [clf.diagnostics_["likelihood"] for clf in (first, second)]
    if first.diagnostics_["training"]["labels"] != second.diagnostics_["training"]["labels"]:
        return "they were fitted to different labels"
    if likelihoods[0] != likelihoods[1]:
        return f"their likelihoods differ, {likelihoods[0]} and {likelihoods[1]}; give likelihood"
    one, other = first.prior_, second.prior_
    if one.k_max != other.k_max:
        return f"k goes up to {one.k_max} and {other.k_max}; give both the same max_neighbors"
    if one.beta_max != other.beta_max:
        return f"beta goes up to {one.beta_max:g} and {other.beta_max:g}; give the same beta_max"
    return None if one == other else "their priors differ; give both the same prior"


def _change(prior: Prior) -> dict[str, Prior]:
    def changed(k_part: float, beta_part: float, power: int = 0) -> Prior:
        def density(beta: Any, k: Any) -> Any:
            # Beyond its range the prior goes on as it ends.
            return np.exp(prior.log_density(np.minimum(beta, prior.beta_max), k)) / k**power

        return FunctionPrior(density, max(1, int(k_part * prior.k_max)), beta_part * prior.beta_max)

    return {
        "K halved": changed(0.5, 1.0),
        "prior 1/k": changed(1.0, 1.0, power=1),
        "beta_max halved": changed(1.0, 0.5),
        "beta_max + 50 %": changed(1.0, 1.5),
    }


def _sum_up(
    clf: BayesianKNeighborsClassifier, before: np.ndarray, after: np.ndarray
) -> dict[str, Any]:
    return {
        "k": int(np.argmax(clf.k_probabilities_)) + 1,
        "k_mean": float(clf.k_values_ @ clf.k_probabilities_),
        "beta_mean": clf.beta_mean_,
        "log_evidence": clf.log_evidence_,
        "loo_log_score": clf.loo_log_score_,
        "largest_change": float(np.abs(after - before).max()),
        "n_changed": int(np.sum(np.argmax(after, axis=1) != np.argmax(before, axis=1))),
        "note": "",
    }


def _draw_labels(
    truth: np.ndarray, rng: np.random.Generator, is_fitted: np.ndarray, least: np.ndarray
) -> np.ndarray:
    """Draw labels with these probabilities, again while a class has too few rows to be fitted."""
    upper = np.cumsum(truth, axis=1)
    for _ in range(1000):
        drawn = np.sum(rng.random((len(truth), 1)) * upper[:, -1:] >= upper[:, :-1], axis=1)
        if np.all(np.bincount(drawn[is_fitted], minlength=len(least)) >= least):
            return drawn
    raise ValueError("a class is so improbable everywhere that it is hardly ever drawn")
