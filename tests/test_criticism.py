"""Checks, comparison, sensitivity and coverage, against enumeration and refits."""

import itertools
import pickle
import re
import sys

import numpy as np
import pytest
from scipy.special import gammaln, softmax
from sklearn.base import clone

from bayesknn import (
    BayesianKNeighborsClassifier,
    PooledNeighborsClassifier,
    check_intervals,
    compare_evidence,
    reference,
    sensitivity,
)
from bayesknn.criticism import Statistic, second_bartlett
from bayesknn.exceptions import MixingWarning
from bayesknn.graph import NeighborGraph
from bayesknn.labels.sampling import draw_each
from bayesknn.likelihood import CoherentLikelihood, ExactLikelihood
from bayesknn.model import ArrayPrior, BoltzmannModel, FunctionPrior, UniformPrior
from bayesknn.plots import PredictiveCheckDisplay
from bayesknn.posterior import grid_posterior
from tests.statistical import check, p_value_of_counts, rejects

BETA_MAX = 3.0


def make_table(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.r_[np.tile(np.arange(n_classes), 2), rng.integers(0, n_classes, n - 2 * n_classes)]
    X[:, 0] += 2 * y
    return X, y


@pytest.fixture(scope="module")
def toy():
    """Fit to seven points of two classes, whose 128 labellings can be listed."""
    X, y = make_table(7, 2)
    return fit(X, y), X, y


def fit(X, y, **settings):
    options = {"max_neighbors": 4, "beta_max": BETA_MAX, "random_state": 0, **settings}
    return BayesianKNeighborsClassifier(**options).fit(X, y)


def enumerate_fit(clf, y, density=lambda beta, k: np.ones_like(beta), k_max=4, beta_max=BETA_MAX):
    """Return log evidence, P(k), E beta and the predictive distribution, all by listing labels."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    beta, width = beta_max * (nodes + 1) / 2, beta_max * weights / 2
    n_classes = len(clf.classes_)
    is_weighted = clf.class_prior_as == "weights" and clf.class_weight_ is not None
    near, a = clf.graph_.neighbors.T, clf.class_weight_ if is_weighted else np.ones(n_classes)
    every = reference.labellings(len(y), n_classes)
    prior = np.array([density(beta, k) * width for k in range(1, k_max + 1)])
    prior /= prior.sum()
    laws = []
    for k in range(1, k_max + 1):
        sums = reference.agreement(near, a, every, k)
        laws.append(softmax(beta[:, None] / k * sums, axis=1))
    laws = np.array(laws)
    joint = prior * laws[..., index_of(y, n_classes)]
    evidence = joint.sum()
    posterior = joint / evidence
    drawn = np.einsum("kb,kbs->s", posterior, laws)
    return np.log(evidence), posterior.sum(axis=1), float(np.sum(posterior * beta)), drawn


def index_of(labels, n_classes):
    """Row of ``reference.labellings`` at which labels stand."""
    return labels @ n_classes ** np.arange(labels.shape[-1])[::-1]


def count_states(labels, n_classes):
    return np.bincount(index_of(labels, n_classes), minlength=n_classes ** labels.shape[1])


def draw_states(clf, n_draws, seed):
    tree = clf.sample_predictive(n_draws, random_state=seed)
    return count_states(tree["posterior_predictive"]["labels"].values[0], len(clf.classes_))


def test_predictive_draws_have_the_exact_distribution(toy):
    clf, _, y = toy
    exact = enumerate_fit(clf, y)[3]
    check(lambda n, seed: p_value_of_counts(draw_states(clf, n, seed), exact), 2000)

    def p_value_at_the_mean(n, seed):
        at = np.full(n, clf.beta_mean_), np.full(n, np.argmax(clf.k_probabilities_) + 1)
        labels, _ = draw_each(BoltzmannModel(clf.graph_, 2), *at, seed)
        return p_value_of_counts(count_states(labels, 2), exact)

    assert rejects(p_value_at_the_mean, 2000)


def test_draws_by_swendsen_wang_where_there_are_no_perfect_ones():
    X, y = make_table(6, 3)
    prior = {0: 0.2, 1: 0.3, 2: 0.5}
    settings = {"class_prior": prior, "class_prior_as": "weights", "max_neighbors": 3}
    clf = fit(X, y, **settings)
    exact = enumerate_fit(clf, y, k_max=3)[3]
    check(lambda n, seed: p_value_of_counts(draw_states(clf, n, seed), exact), 2000)
    about = clf.posterior_["posterior_predictive"].attrs
    assert about["label_sampler"] == "swendsen-wang"
    assert about["disagreement"] < 6


@pytest.mark.slow
def test_where_perfect_chains_do_not_meet_all_draws_are_by_swendsen_wang_and_it_says_so():
    # Thirty classes on a complete graph have a first-order transition, where both phases last.
    points = np.random.default_rng(0).normal(size=(80, 2))
    model = BoltzmannModel(NeighborGraph.from_points(points, 79), 30)
    with pytest.warns(MixingWarning, match="trust them little"):
        labels, info = draw_each(model, np.full(60, 3.75), np.full(60, 79), 0)
    assert info["label_sampler"] == "swendsen-wang"
    assert labels.shape == (60, 80)
    assert info["disagreement"] > 6


def test_draws_are_laid_out_as_arviz_expects(toy):
    clf, _, y = toy
    tree = clf.sample_predictive(5, random_state=1)
    assert tree is clf.posterior_
    drawn, observed = tree["posterior_predictive"]["labels"], tree["observed_data"]["labels"]
    assert drawn.dims == ("chain", "draw", "point")
    assert drawn.shape == (1, 5, len(y))
    assert observed.dims == ("point",)
    again = clf.sample_predictive(5, random_state=1)["posterior_predictive"]["labels"]
    assert np.array_equal(again, drawn)


@pytest.mark.parametrize("likelihood", ["pseudo", "holmes-adams"])
def test_products_of_conditionals_have_no_draws(toy, likelihood):
    _, X, y = toy
    with pytest.raises(ValueError, match="likelihood='coherent'"):
        fit(X, y, likelihood=likelihood).sample_predictive(5)


def test_statistics_are_those_of_the_labels(toy):
    clf, _, y = toy
    found = PredictiveCheckDisplay.from_estimator(clf, n_draws=20, random_state=2).statistics
    drawn = clf.posterior_["posterior_predictive"]["labels"].values[0]
    best = int(np.argmax(clf.k_probabilities_)) + 1
    near = clf.graph_.neighbors[:best].astype(int)
    for labels, pick in [(y, lambda s: s.observed), (drawn[3], lambda s: s.drawn[3])]:
        same = labels[near] == labels
        assert pick(found[f"same class among {best} nearest"]) == pytest.approx(same.mean())
        assert pick(found["points of class 1"]) == np.sum(labels == 1)
        assert pick(found["points of the largest class"]) == np.bincount(labels).max()
        groups = {i: {i} for i in range(len(labels))}
        for rank, i in itertools.product(range(best), range(len(labels))):
            if same[rank, i]:
                together = groups[i] | groups[near[rank, i]]
                groups.update(dict.fromkeys(together, together))
        pieces = len({min(group) for group in groups.values()})
        assert pick(found[f"pieces of one class at k = {best}"]) == pieces
    around = (y[near] == y)[:, y == 1].mean()
    assert found["same class around class 1"].observed == pytest.approx(around)


def test_tails_in_words():
    drawn = np.arange(1000.0)
    assert str(Statistic(-1.0, drawn)) == "smaller than each of the 1,000 draws"
    assert str(Statistic(998.5, drawn)) == "larger than 99\xa0% of the draws"
    assert str(Statistic(300.0, drawn)) == "like the draws: 70\xa0% of them are larger"


def test_evidence_differences_are_those_of_enumeration(toy):
    clf, X, y = toy
    fits = {"both": clf, "second": fit(X[:, 1:], y)}
    table = compare_evidence(fits)
    exact = {name: enumerate_fit(one, y)[0] for name, one in fits.items()}
    # log Z of so few points is exact.
    difference = table["log_evidence"]["both"] - table["log_evidence"]["second"]
    assert table["error"]["both"] == table["error"]["second"] == 0
    assert difference == pytest.approx(exact["both"] - exact["second"], abs=4e-4)
    sizes = np.bincount(y)
    null = gammaln(2) + gammaln(sizes + 1).sum() - gammaln(len(y) + 2)
    assert table["log_evidence"]["class frequencies alone"] == pytest.approx(null)
    rates = np.random.default_rng(0).random((10**5, 1))
    simulated = np.mean(rates[:, 0] ** sizes[1] * (1 - rates[:, 0]) ** sizes[0])
    assert np.log(simulated) == pytest.approx(null, abs=0.05)
    best = table["log_evidence"].iloc[0]
    assert table["bayes_factor"].tolist() == pytest.approx(np.exp(table["log_evidence"] - best))
    assert table["loo_log_score"]["both"] == clf.loo_log_score_


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"max_neighbors": 3}, "max_neighbors"),
        ({"beta_max": 2.5}, "beta_max"),
        ({"likelihood": "pseudo"}, "likelihood"),
        ({"prior": [1, 2, 3, 4]}, "prior"),
        ({"inference": "metropolis", "likelihood": "pseudo", "n_draws": 100}, "inference='grid'"),
    ],
)
@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
def test_what_cannot_be_compared_says_which_argument(toy, settings, named):
    clf, X, y = toy
    with pytest.raises(ValueError, match=named):
        compare_evidence({"one": clf, "other": fit(X, y, **settings)})


def test_equal_array_priors_can_be_compared_without_xarray(toy, monkeypatch):
    _, X, y = toy
    clf = fit(X, y, likelihood="pseudo", prior=ArrayPrior([5, 4, 3, 2], BETA_MAX), beta_max="auto")
    fits = {"one": clf, "other": clone(clf).fit(X[:, 1:], y)}
    monkeypatch.setitem(sys.modules, "xarray", None)
    table = compare_evidence(fits)
    assert sorted(table.index) == ["class frequencies alone", "one", "other"]
    assert hash(clf.prior_) == hash(fits["other"].prior_)
    with pytest.raises(ValueError, match="their priors differ"):
        compare_evidence({"one": clf, "other": fit(X, y, likelihood="pseudo", prior=[5, 4, 3, 1])})


def test_a_product_of_conditionals_has_no_bayes_factor(toy):
    clf, X, y = toy
    assert "bayes_factor" in compare_evidence({"coherent": clf})
    for likelihood in ("pseudo", "holmes-adams"):
        table = compare_evidence({"one": fit(X, y, likelihood=likelihood)})
        assert list(table.columns) == ["log_evidence", "error", "loo_log_score"]


def test_other_labels_cannot_be_compared(toy):
    clf, X, y = toy
    with pytest.raises(ValueError, match="different labels"):
        compare_evidence({"one": clf, "other": fit(X, y[::-1])})


def test_the_null_of_a_product_of_conditionals_is_one(toy):
    _, X, y = toy
    table = compare_evidence({"pseudo": fit(X, y, likelihood="pseudo")})
    sizes = np.bincount(y)
    left_out = np.log(sizes[y] / (len(y) + 1))
    assert table["log_evidence"]["class frequencies alone"] == pytest.approx(left_out.sum())
    assert table["loo_log_score"]["class frequencies alone"] == pytest.approx(left_out.mean())


PRIORS = {
    "K halved": (UniformPrior(2, BETA_MAX), lambda beta, k: 1.0 + 0 * beta),
    "prior 1/k": (ArrayPrior(1 / np.arange(1, 5), BETA_MAX), lambda beta, k: 1 / k + 0 * beta),
    "beta_max halved": (UniformPrior(4, BETA_MAX / 2), lambda beta, k: 1.0 + 0 * beta),
    "falling": (FunctionPrior(lambda beta, k: np.exp(-beta) / k, 4, BETA_MAX),
                lambda beta, k: np.exp(-beta) / k),
}  # fmt: skip


@pytest.mark.parametrize("name", PRIORS)
def test_reweighted_is_enumerated_and_refitted(toy, name):
    clf, _, y = toy
    prior, density = PRIORS[name]
    likelihood = ExactLikelihood(clf.graph_, y)
    grid = grid_posterior(likelihood, clf.prior_).reweight(clf.prior_, prior)
    exact = enumerate_fit(clf, y, density, prior.k_max, prior.beta_max)
    # A cell of the grid that beta_max cuts is taken to be flat.
    for found in (grid, grid_posterior(likelihood, prior)):
        assert found.log_evidence == pytest.approx(exact[0], abs=2e-4)
        assert found.k_probabilities == pytest.approx(exact[1], abs=1e-4)
        assert found.beta_mean == pytest.approx(exact[2], abs=2e-4)
    assert clf.reweight(prior).log_evidence_ == pytest.approx(exact[0], abs=2e-4)


@pytest.mark.parametrize("name", PRIORS)
def test_a_reweighted_classifier_is_a_refitted_one(toy, name):
    _, X, y = toy
    prior = PRIORS[name][0]
    clf = fit(X, y, likelihood="pseudo")
    settings = {"prior": prior, "max_neighbors": None, "beta_max": "auto"}
    refitted = clone(clf).set_params(**settings).fit(X, y)
    other = clf.reweight(prior)
    assert other.log_evidence_ == pytest.approx(refitted.log_evidence_, abs=2e-4)
    assert other.beta_mean_ == pytest.approx(refitted.beta_mean_, abs=2e-4)
    assert other.k_probabilities_ == pytest.approx(refitted.k_probabilities_, abs=1e-4)
    assert other.loo_proba_ == pytest.approx(refitted.loo_proba_, abs=1e-4)
    assert other.predict_proba(X) == pytest.approx(refitted.predict_proba(X), abs=1e-4)
    assert other.beta_max_ == prior.beta_max
    assert clf.beta_max_ == BETA_MAX


def test_sensitivity_has_a_row_for_each_prior(toy):
    clf, X, _ = toy
    table = sensitivity(clf)
    for name, (prior, _) in list(PRIORS.items())[:3]:
        other = clf.reweight(prior)
        assert table["log_evidence"][name] == pytest.approx(other.log_evidence_)
        assert table["beta_mean"][name] == pytest.approx(other.beta_mean_)
        change = np.abs(other.loo_proba_ - clf.loo_proba_).max()
        assert table["largest_change"][name] == pytest.approx(change)
    assert table["largest_change"]["as fitted"] == 0
    at = sensitivity(clf, X[:3], {"K halved": PRIORS["K halved"][0]})
    other = clf.reweight(PRIORS["K halved"][0])
    change = np.abs(other.predict_proba(X[:3]) - clf.predict_proba(X[:3])).max()
    assert at["largest_change"]["K halved"] == pytest.approx(change)


@pytest.fixture(scope="module")
def strong():
    """Fit to two distant clusters, whose beta leans on beta_max."""
    X, y = np.arange(40.0)[:, None], np.repeat([0, 1], 20)
    return fit(X, y, beta_max=1.0), X, y


def test_it_says_where_the_grid_does_not_reach(strong):
    clf, X, y = strong
    table = sensitivity(clf, priors={
        "more neighbours": UniformPrior(9, 1.0),
        "larger beta": UniformPrior(4, 1.5),
        "smaller beta": UniformPrior(4, 0.5),
    })  # fmt: skip
    assert "k = 4" in table["note"]["more neighbours"]
    assert "does not reach" in table["note"]["larger beta"]
    assert np.isnan(table["log_evidence"]["larger beta"])
    refitted, pseudo = fit(X, y, beta_max=0.5), fit(X, y, likelihood="pseudo", beta_max=1.0)
    reweighted = table["log_evidence"]["smaller beta"]
    assert reweighted == pytest.approx(refitted.log_evidence_, abs=4e-4)
    # A product of conditionals is computed again.
    assert sensitivity(pseudo, priors={"larger beta": UniformPrior(4, 1.5)})["note"].iloc[1] == ""
    assert table["note"]["smaller beta"] == ""


def test_a_larger_beta_max_is_reached_where_the_posterior_ends_before(toy):
    _, X, y = toy
    clf = fit(X, y, beta_max=12.0)
    other, refitted = clf.reweight(UniformPrior(4, 18.0)), fit(X, y, beta_max=18.0)
    assert other.log_evidence_ == pytest.approx(refitted.log_evidence_, abs=0.01)


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
def test_without_a_grid_there_is_nothing_to_reweight(toy):
    clf, X, y = toy
    loaded = pickle.loads(pickle.dumps(clf))
    chains = fit(X, y, likelihood="pseudo", inference="metropolis", n_draws=100)
    for one in (loaded, chains):
        with pytest.raises(ValueError, match="no grid"):
            sensitivity(one)


def test_reweighting_keeps_the_calibration(toy):
    _, X, y = toy
    clf = fit(X, y, likelihood="pseudo", calibrate=True)
    other = clf.reweight(PRIORS["prior 1/k"][0])
    settings = {"prior": PRIORS["prior 1/k"][0], "max_neighbors": None, "beta_max": "auto"}
    assert other.loo_proba_ == pytest.approx(clone(clf).set_params(**settings).fit(X, y).loo_proba_)


def test_coverage_counts_the_intervals_that_hold():
    X, y = make_table(60, 2)
    clf = fit(X, y, max_neighbors=20)
    result = check_intervals(clf, X, y, n_repeats=3, random_state=0)
    assert 0.7 < result.coverage <= 1
    wide = check_intervals(clf, X, y, n_repeats=3, level=0.999, random_state=0, verbose=0)
    narrow = check_intervals(clf, X, y, n_repeats=3, level=0.1, random_state=0, verbose=0)
    assert narrow.coverage < result.coverage <= wide.coverage
    assert re.fullmatch(r"at most \d+\.\d ± \d+\.\d % of 95 % intervals hold .*", str(result))


def test_coverage_of_the_pool():
    X, y = make_table(60, 3)
    clf = PooledNeighborsClassifier(random_state=0).fit(X, y)
    result = check_intervals(clf, X, y, n_repeats=2, random_state=0, verbose=0)
    assert result.level == 0.95
    assert 0.5 < result.coverage <= 1


def test_coverage_of_the_pool_keeps_the_weights_of_the_rows():
    """Weights of a pattern that no unweighted fit has: rows of weight near 0 hardly count."""
    X, y = make_table(60, 3)
    weights = np.where(np.arange(60) % 3 == 0, 1.0, 1e-3)
    clf = PooledNeighborsClassifier(("evidence",), random_state=0)
    plain = check_intervals(clf.fit(X, y), X, y, n_repeats=2, random_state=0, verbose=0)
    weighted = clf.fit(X, y, sample_weight=weights)
    found = check_intervals(weighted, X, y, n_repeats=2, random_state=0, verbose=0)
    # By hand, from the same seeds.
    held = []
    for seed in np.random.SeedSequence(0).spawn(2):
        of_labels, of_fit = seed.spawn(2)
        upper = np.cumsum(weighted.loo_proba_, axis=1)
        u = np.random.default_rng(of_labels).random((60, 1))
        labels = np.sum(u * upper[:, -1:] >= upper[:, :-1], axis=1)
        again = clone(weighted).set_params(random_state=of_fit)
        again.fit(X, weighted.classes_[labels], sample_weight=weights)
        low, high = np.moveaxis(again.loo_interval(0.95), -1, 0)
        held.append(
            weights @ ((low <= weighted.loo_proba_) & (weighted.loo_proba_ <= high)).mean(axis=1)
        )
    assert found.coverage == pytest.approx(np.mean(held) / weights.sum())
    assert found.coverage != plain.coverage


def test_coverage_refuses_other_tables(toy):
    clf, X, y = toy
    for other, named in ((y[:-1], "X has 7 rows but y has 6"), (y[::-1], "fitted to")):
        with pytest.raises(ValueError, match=named):
            check_intervals(clf, X, other, verbose=0)
    with pytest.raises(ValueError, match="class_prior"):
        check_intervals(fit(X, y, class_prior=[0.5, 0.5]), X, y, verbose=0)


def ring_likelihoods():
    """One model of 40 points on a ring, k up to 2: with exact log Z and with none."""
    site = np.arange(40)
    lists = [(site + 1) % 40, (site + 2) % 40]
    labels = site // 5 % 2
    graph = NeighborGraph.from_neighbors(lists)
    return [kind(graph, labels) for kind in (ExactLikelihood, CoherentLikelihood)]


def test_second_bartlett_identity_holds_for_draws_of_the_exact_posterior():
    exact, coherent = ring_likelihoods()
    prior = FunctionPrior(lambda beta, k: np.exp(-5 * (beta - 1.2) ** 2), 2, 8.0)
    draws = grid_posterior(exact, prior).draw(2, 100, random_state=0)
    result = second_bartlett(coherent, draws["beta"], draws["k"], prior, random_state=0)
    assert abs(result.value) < 4.5 * result.error < result.information
    # Without the prior's part it does not hold: the test would notice that it was forgotten.
    other = second_bartlett(coherent, draws["beta"], draws["k"], random_state=0)
    assert abs(other.value) > 6 * other.error


def test_second_bartlett_identity_notices_draws_of_another_posterior():
    exact, coherent = ring_likelihoods()
    posterior = grid_posterior(exact, beta_max=8.0)
    draws = posterior.draw(2, 150, random_state=0)
    shifted = draws["beta"] + 2 * posterior.beta_sd
    result = second_bartlett(coherent, shifted, draws["k"], random_state=0)
    assert result.value > 6 * result.error
    assert "of E[-s1]" in str(result)


@pytest.mark.filterwarnings("ignore:class 'c' has one row", "ignore:all rows of class 'd'")
def test_intervals_of_a_pool_with_a_class_of_one_row_and_one_without_weight():
    """The refits weigh rows as the fit did; drawn labels hold every class in a row of weight."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 20)
    X = rng.normal(size=(40, 2)) + 0.5 * (y == "b")[:, None]
    y[[3, 30, 31]] = "c", "d", "d"
    weights = np.where(y == "d", 0.0, 1.0)
    clf = PooledNeighborsClassifier(members=("evidence",), random_state=0).fit(X, y, weights)
    result = check_intervals(clf, X, y, n_repeats=3, random_state=0, verbose=0)
    assert 0.5 < result.coverage <= 1.0
    with pytest.raises(ValueError, match="must be the table that the classifier was fitted to"):
        check_intervals(clf, X, np.where(y == "a", "z", y), n_repeats=3, verbose=0)
