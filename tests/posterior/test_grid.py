"""The posterior by quadrature: against sums over exact likelihoods, and on Ripley's data."""

import functools

import numpy as np
import pytest
from scipy.special import comb, logsumexp
from scipy.stats import chisquare

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_glass, load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.labels import sample_labels
from bayesknn.likelihood import CoherentLikelihood, ExactLikelihood, PseudoLikelihood
from bayesknn.model import ArrayPrior, UniformPrior
from bayesknn.posterior import grid_posterior
from tests.model.graphs import ripley_graph
from tests.posterior.toy import simulated_posterior
from tests.statistical import check, p_value_of_z, rejects

BETA_MAX = 3.0


@functools.cache
def small_data(n_classes=2, n=60, k_max=4, beta=1.2, weighted=False):
    """Points in the plane with labels from the model itself, narrow enough for exact log Z."""
    points = np.random.default_rng(11).normal(size=(n, 2))
    graph = NeighborGraph.from_points(points, k_max=k_max)
    weights = np.linspace(0.7, 1.3, n_classes) if weighted else None
    labels = sample_labels(graph, beta, 3, n_classes, random_state=12, class_weight=weights)[0]
    return graph, labels, n_classes, weights


@functools.cache
def exact_posterior(*arguments):
    return grid_posterior(ExactLikelihood(*small_data(*arguments)), beta_max=BETA_MAX)


def p_value_of_ridge(*arguments, shift=0.0):
    """Scores of E beta, E k and the evidence over repeated seeds, by their own errors."""
    exact = exact_posterior(*arguments)
    likelihood = CoherentLikelihood(*small_data(*arguments))

    def p_value(n_seeds, seed):
        runs = [
            simulated_posterior(
                likelihood,
                beta_max=BETA_MAX,
                random_state=np.random.SeedSequence([seed, s]),
                tolerance=0.1,
            )
            for s in range(n_seeds)
        ]
        z = []
        for name in ("beta_mean", "k_mean", "log_evidence"):
            values = np.array([getattr(run, name) for run in runs])
            claimed = np.sqrt(np.mean([getattr(run, f"{name}_error") ** 2 for run in runs]))
            # The trapezium rule's own error is allowed a tenth of the Monte Carlo error of a run.
            away = abs(values.mean() + shift * exact.beta_sd - getattr(exact, name))
            z.append(max(0.0, away - 0.1 * claimed) / (claimed / np.sqrt(n_seeds)))
        return p_value_of_z(z)

    return p_value


# In the last two chains stand at some k only, and their draws speak for the others.
@pytest.mark.parametrize(
    "arguments", [(2,), (3,), (2, 60, 4, 1.2, True), (2, 16, 12), (3, 11, 9, 1.2, True)]
)
def test_the_ridge_agrees_with_exact_log_z(arguments):
    check(p_value_of_ridge(*arguments), 12)


@pytest.mark.mutant
def test_a_shifted_answer_is_rejected():
    assert rejects(p_value_of_ridge(2, shift=0.2), 12)


@functools.cache
def run_ridge(arguments, seed, at):
    """One of the runs that judge the errors claimed, and the mutant of them as well."""
    likelihood = CoherentLikelihood(*small_data(*arguments))
    seeds = np.random.SeedSequence([seed, at])
    return simulated_posterior(likelihood, beta_max=BETA_MAX, random_state=seeds)


def p_value_of_errors(*arguments, factor=1.0):
    """Score of the errors claimed, times a factor, against the spread over repeated seeds."""

    def p_value(n_seeds, seed):
        runs = [run_ridge(arguments, seed, s) for s in range(n_seeds)]
        z = []
        for name in ("beta_mean", "k_mean", "log_evidence"):
            spread = np.std([getattr(run, name) for run in runs], ddof=1)
            claimed = np.sqrt(np.mean([getattr(run, f"{name}_error") ** 2 for run in runs]))
            # A run knows its own error to some 20 %, and a fifth either way is let pass.
            away = max(0.0, abs(np.log(factor * claimed / spread)) - np.log(1.2))
            z.append(away * np.sqrt(2 * (n_seeds - 1)) / 1.1)
        return p_value_of_z(z)

    return p_value


@pytest.mark.parametrize("arguments", [(2,), (2, 16, 12)])
def test_errors_of_the_ridge_are_its_spread(arguments):
    check(p_value_of_errors(*arguments), 24)


# So far below, or so many, that it is plain at once, without four times as many.
@pytest.mark.parametrize(
    ("factor", "n_seeds"), [(0.25, 24), pytest.param(0.4, 60, marks=pytest.mark.slow)]
)
def test_errors_that_are_far_below_the_spread_are_rejected(factor, n_seeds):
    assert rejects(p_value_of_errors(2, factor=factor), n_seeds)


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 10))]
)
def test_ripley_comes_out_as_in_spec(seed):
    likelihood = CoherentLikelihood(ripley_graph(), load_ripley().y_train)
    posterior = simulated_posterior(likelihood, beta_max=4.0, random_state=seed)
    assert abs(posterior.beta_mean - 1.457) < 0.01
    assert abs(posterior.beta_sd - 0.098) < 0.006
    assert abs(posterior.k_mean - 15.0) < 0.3
    assert abs(posterior.k_sd - 3.9) < 0.3
    assert abs(posterior.k_probabilities[13] - 0.28) < 0.04
    assert np.argmax(posterior.k_probabilities) == 13
    assert posterior.k_probabilities.shape == (125,)


def test_pseudo_likelihood_on_ripley_comes_out_as_in_spec():
    likelihood = PseudoLikelihood(ripley_graph(), load_ripley().y_train)
    posterior = simulated_posterior(likelihood, beta_max=4.0)
    assert abs(posterior.beta_mean - 2.447) < 0.001
    assert abs(posterior.beta_sd - 0.429) < 0.001
    assert abs(posterior.k_mean - 55.1) < 0.05
    assert abs(posterior.k_sd - 11.5) < 0.05
    assert np.all(posterior.k_probabilities_error == 0)


def test_four_classes_with_the_mass_on_small_k():
    glass = load_glass()
    _, labels = np.unique(glass.y_train, return_inverse=True)
    graph = NeighborGraph.from_points(glass.X_train, k_max=4)
    exact = grid_posterior(ExactLikelihood(graph, labels), beta_max=6.0)
    simulated = simulated_posterior(CoherentLikelihood(graph, labels), beta_max=6.0, random_state=0)
    # Five errors and a little for the rule of integration.
    allowed = 5 * simulated.k_probabilities_error + 0.02
    assert np.all(np.abs(simulated.k_probabilities - exact.k_probabilities) < allowed)
    assert abs(simulated.beta_mean - exact.beta_mean) < 5 * simulated.beta_mean_error + 0.02


def test_evidence_and_mean_are_plain_sums():
    likelihood = ExactLikelihood(*small_data())
    prior = UniformPrior(likelihood.k_max, BETA_MAX)
    posterior = simulated_posterior(likelihood, prior)
    betas = np.linspace(0, BETA_MAX, 4001)
    table = likelihood.log_density_grid(betas) + np.log(betas[1])
    table[:, [0, -1]] -= np.log(2)
    log_evidence = logsumexp(table) - np.log(prior.k_max * BETA_MAX)
    weights = np.exp(table - logsumexp(table))
    assert np.isclose(posterior.log_evidence, log_evidence, atol=1e-5)
    assert np.allclose(posterior.k_probabilities, weights.sum(axis=1), atol=1e-6)
    assert np.isclose(posterior.beta_mean, (weights @ betas).sum(), atol=1e-6)


def test_another_prior_moves_the_posterior():
    likelihood = CoherentLikelihood(*small_data())
    only_k_2 = ArrayPrior([0.0, 1.0, 0.0, 0.0], BETA_MAX)
    posterior = simulated_posterior(likelihood, only_k_2, random_state=0)
    assert np.allclose(posterior.k_probabilities, [0, 1, 0, 0])


def test_the_result_depends_on_the_seed_and_not_on_threads():
    likelihood = CoherentLikelihood(*small_data())
    runs = [
        simulated_posterior(likelihood, beta_max=BETA_MAX, random_state=seed, n_jobs=n_jobs)
        for seed, n_jobs in ((1, 1), (1, 2), (2, 1))
    ]
    assert np.array_equal(runs[0].weights, runs[1].weights)
    assert runs[0].log_evidence == runs[1].log_evidence
    assert not np.array_equal(runs[0].weights, runs[2].weights)


def p_value_of_means(data, prior, **expected):
    """Scores of posterior means over repeated seeds, against (mean, standard deviation) of each."""
    likelihood = CoherentLikelihood(*data)

    def p_value(n_seeds, seed):
        z = []
        runs = [
            simulated_posterior(
                likelihood, prior, evidence=False, random_state=np.random.SeedSequence([seed, s])
            )
            for s in range(n_seeds)
        ]
        for name, (mean, sd) in expected.items():
            values = np.array([getattr(run, f"{name}_mean") for run in runs])
            # A hundredth of a posterior standard deviation is left to the rule of integration.
            away = max(0.0, abs(values.mean() - mean) - 0.01 * sd)
            error = np.sqrt(np.mean([getattr(run, f"{name}_mean_error") ** 2 for run in runs]))
            z.append(away / (error / np.sqrt(n_seeds)))
        return p_value_of_z(z)

    return p_value


def log_z_of_clique(beta, n):
    """Log Z where each of n points has all others as neighbours, k = n - 1: by class counts."""
    m = np.arange(n + 1)
    s = m * (m - 1) + (n - m) * (n - m - 1)
    return logsumexp(np.log(comb(n, m)) + np.multiply.outer(beta / (n - 1), s), axis=-1)


def beta_moments(n_agreeing, log_z, beta_max=4.0):
    """Mean and standard deviation of beta at one k, by the plain sum."""
    betas = np.linspace(0, beta_max, 4001)
    weights = np.exp(betas * n_agreeing - log_z(betas))
    weights[[0, -1]] /= 2
    mean = np.average(betas, weights=weights)
    return mean, np.sqrt(np.average((betas - mean) ** 2, weights=weights))


def at_largest_k(k_max):
    return ArrayPrior([0.0] * (k_max - 1) + [1.0], 4.0)


def test_labels_without_structure_put_the_mass_at_small_beta():
    # Of 40 points who are all neighbours half have either label: S is as small as it gets.
    graph = NeighborGraph.from_points(np.random.default_rng(0).normal(size=(40, 2)), k_max=39)
    data = graph, np.random.default_rng(1).permutation(np.arange(40) % 2)
    mean, sd = beta_moments(40 * 19 / 39, lambda beta: log_z_of_clique(beta, 40))
    assert mean + sd < 1.0
    check(p_value_of_means(data, at_largest_k(39), beta=(mean, sd)), 8)


def test_labels_without_structure_are_told_from_the_graph_of_every_k():
    graph, labels, *_ = small_data()
    data = graph, np.random.default_rng(1).permutation(labels)
    exact = grid_posterior(ExactLikelihood(*data), beta_max=BETA_MAX)
    expected = {"beta": (exact.beta_mean, exact.beta_sd), "k": (exact.k_mean, exact.k_sd)}
    # The same labels in their places speak for a beta well above, and are found out.
    structured = exact_posterior()
    assert exact.beta_mean + exact.beta_sd < structured.beta_mean
    prior = UniformPrior(graph.k_max, BETA_MAX)
    check(p_value_of_means(data, prior, **expected), 10)
    assert rejects(p_value_of_means((graph, labels), prior, **expected), 10)


def two_clouds(k_max, n_flipped=0):
    """Two clouds far apart, with so many labels of the first changed to the second's."""
    labels = np.repeat([0, 1], 30)
    points = np.random.default_rng(0).normal(size=(60, 2)) + 100 * labels[:, None]
    labels[:n_flipped] = 1
    return NeighborGraph.from_points(points, k_max), labels


# Each cloud has its own Z; a posterior with the Z of one is the mutant.
@pytest.mark.parametrize(("n_factors", "is_right"), [(2, True), (1, False)])
def test_separated_classes_put_the_mass_at_large_beta(n_factors, is_right):
    mean, sd = beta_moments(60.0, lambda beta: n_factors * log_z_of_clique(beta, 30))
    assert mean > 2.5
    p_value = p_value_of_means(two_clouds(29), at_largest_k(29), beta=(mean, sd))
    if is_right:
        check(p_value, 8)
    else:
        assert rejects(p_value, 8)


@pytest.mark.parametrize("n_flipped", [0, 1])
def test_where_labels_freeze_the_ridge_still_agrees_with_exact_log_z(n_flipped):
    # Every label as its neighbours': the posterior of beta is flat up to beta_max.
    data = two_clouds(5, n_flipped)
    exact = grid_posterior(ExactLikelihood(*data), beta_max=10.0)
    expected = {"beta": (exact.beta_mean, exact.beta_sd), "k": (exact.k_mean, exact.k_sd)}
    check(p_value_of_means(data, UniformPrior(5, 10.0), **expected), 10)


class NoisyTable:
    """Exact log Z, and replicates of it that are off by a known amount at each k."""

    beta_max = BETA_MAX

    def __init__(self, likelihood, offsets):
        self.likelihood, self.offsets = likelihood, offsets
        self.k_max = likelihood.k_max
        self.agreement = CoherentLikelihood(*small_data()).agreement

    def log_normalizer(self, beta, k):
        log_density = self.likelihood.log_density(beta, np.full(np.shape(beta), k))
        return beta / k * self.agreement[k - 1] - log_density

    def replicates(self, beta, k):
        return self.log_normalizer(beta, k) + self.offsets[:, k - 1, None]


def test_a_table_hands_on_its_monte_carlo_error():
    exact = exact_posterior(2)
    offsets = np.random.default_rng(3).normal(0.0, 0.1, size=(40, 4))
    offsets[0] = 0.0
    table = NoisyTable(ExactLikelihood(*small_data()), offsets)
    runs = [
        simulated_posterior(CoherentLikelihood(*small_data(), table=table), beta_max=BETA_MAX)
        for _ in range(2)
    ]
    assert np.array_equal(runs[0].replicates, runs[1].replicates)
    assert np.allclose(runs[0].k_probabilities, exact.k_probabilities)
    shares = exact.k_probabilities * np.exp(-offsets)
    # The estimate, row 0, is not one of those that were resampled.
    shares = shares[1:] / shares[1:].sum(axis=1, keepdims=True)
    assert np.allclose(runs[0].k_probabilities_error, shares.std(axis=0))
    assert np.isclose(runs[0].k_mean_error, (shares @ np.arange(1, 5)).std())
    evidence = np.log((exact.k_probabilities * np.exp(-offsets[1:])).sum(axis=1))
    assert np.isclose(runs[0].log_evidence_error, evidence.std())
    assert exact.log_evidence_error == 0.0


def test_many_points_with_a_posterior_narrower_than_the_first_grid():
    class Narrow:
        """Log-likelihoods in beta with tops between the points of the first grid."""

        k_max = 3
        tops, sd = np.array([1.012, 1.50, 2.013]), 0.0015

        def log_density(self, beta, k):
            k = np.asarray(k)
            height = np.array([0.0, -10.0, np.log(3.0)])[k - 1]
            return height - ((beta - self.tops[k - 1]) / self.sd) ** 2 / 2

    posterior = simulated_posterior(Narrow(), beta_max=4.0)
    assert np.allclose(posterior.k_probabilities[[0, 2]], [0.25, 0.75], atol=1e-4)
    assert np.isclose(posterior.beta_mean, 0.25 * 1.012 + 0.75 * 2.013, atol=1e-3)


def cut_posterior():
    """Return a posterior that beta_max cuts in the middle, and its density."""
    graph, labels, *_ = small_data()
    likelihood = PseudoLikelihood(graph, labels)
    prior = UniformPrior(likelihood.k_max, 0.8)
    posterior = simulated_posterior(likelihood, prior)
    assert posterior.cells.max() == 0.8

    def log_density(beta, k):
        return likelihood.log_density(beta, k) + prior.log_density(beta, k) - posterior.log_evidence

    return posterior, log_density


def test_draws_near_a_cut_end_are_as_many_as_they_should():
    """Weights of a rule with ends of its own were taken for masses: .62, 1.40, .62, 1.24 of it."""
    posterior, log_density = cut_posterior()
    edges = np.append(np.linspace(0.0, 0.78, 5), np.linspace(0.78, 0.8, 9)[1:])
    fine = np.linspace(edges[:-1], edges[1:], 2001, axis=1)
    density = np.exp(sum_over_k(posterior, log_density, fine))
    expected = np.trapezoid(density, fine, axis=1)
    assert expected.sum() == pytest.approx(1.0, abs=1e-6)

    def p_value(n_draws, seed):
        beta, _ = posterior.sample(n_draws, random_state=seed)
        counts, _ = np.histogram(beta, edges)
        return chisquare(counts, n_draws * expected / expected.sum()).pvalue

    check(p_value, 200_000)


def sum_over_k(posterior, log_density, beta):
    return logsumexp([log_density(beta, k) for k in posterior.k_values.tolist()], axis=0)


def test_the_log_posterior_of_draws_is_the_density():
    """In the last half cell it was too low by log 2."""
    posterior, log_density = cut_posterior()
    draws = posterior.draw(4, 5000, random_state=0)
    beta, k, found = (draws[name].ravel() for name in ("beta", "k", "log_posterior"))
    # Within a cell the density is taken to be the same.
    off = np.abs(found - log_density(beta, k))
    assert off.max() < 0.15
    assert off[beta > 0.795].max() < 0.05 and np.sum(beta > 0.795) > 100
    outside = posterior.log_density(np.array([0.9, 0.5]), np.array([1, 99]))
    assert np.all(outside == -np.inf)


def test_draws_as_a_tree():
    tree = exact_posterior(2).to_tree(3, 50, labels=small_data()[1], random_state=0)
    beta, k = exact_posterior(2).sample(150, random_state=0)
    assert np.array_equal(tree["posterior/beta"].values.ravel(), beta)
    assert np.array_equal(tree["posterior/k"].values.ravel(), k)
    assert tree["posterior/k"].dims == ("chain", "draw")
    log_posterior = exact_posterior(2).log_density(beta, k)
    assert np.array_equal(tree["sample_stats/log_posterior"].values.ravel(), log_posterior)
    assert np.array_equal(tree["observed_data/labels"].values, small_data()[1])
    assert tree.attrs["log_evidence"] == exact_posterior(2).log_evidence
    with pytest.raises(ValueError, match="n_chains must be an integer >= 1, got 0"):
        exact_posterior(2).to_tree(0, 5)


def test_draws_follow_the_weights():
    posterior = exact_posterior(2)

    def p_value(n_draws, seed):
        beta, k = posterior.sample(n_draws, random_state=seed)
        z_beta = (beta.mean() - posterior.beta_mean) / posterior.beta_sd * np.sqrt(n_draws)
        z_k = (k.mean() - posterior.k_mean) / posterior.k_sd * np.sqrt(n_draws)
        return p_value_of_z([z_beta, z_k])

    check(p_value, 20_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "beta_max must be given"),
        ({"beta_max": 0.0}, "beta_max must be a positive number"),
        ({"beta_max": -1.0}, "beta_max must be a positive number"),
        ({"beta_max": 4.0, "tolerance": 0.0}, "tolerance must be a positive number"),
        ({"beta_max": 4.0, "prior": [1.0, -1.0, 1.0, 1.0]}, "not negative"),
        ({"beta_max": 4.0, "prior": [0.0] * 4}, "zero everywhere"),
        ({"beta_max": 4.0, "prior": [1.0] * 3}, "4 rows"),
        ({"prior": UniformPrior(9, 4.0)}, "reaches k=9"),
        ({"prior": UniformPrior(4, 4.0), "beta_max": 3.0}, "beta_max=3.0 contradicts the prior"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        simulated_posterior(CoherentLikelihood(*small_data()), **arguments)


def test_no_draws_is_an_error():
    with pytest.raises(ValueError, match="n_draws must be an integer >= 1, got 0"):
        exact_posterior(2).sample(0)


def test_the_largest_error_of_a_posterior_over_very_many_k():
    # Two clouds of which k reaches most: no k has a hundredth of it.
    labels = np.arange(400) % 2
    points = np.random.default_rng(0).normal(size=(400, 2)) + 20.0 * labels[:, None]
    clf = BayesianKNeighborsClassifier(max_neighbors=199, beta_max=4.6, random_state=0)
    clf.fit(points, labels)
    p, error = clf.k_probabilities_, clf.k_probabilities_error_
    assert 0 < p.max() < 0.01
    matters = p > 0.01 * p.max()
    largest = np.max(error[matters] / p[matters])
    assert clf.diagnostics_["log_normalizer_error"] == pytest.approx(largest, rel=0.2)


def test_beta_below_a_value_is_the_share_of_draws_there():
    grid = exact_posterior()
    beta, _ = grid.sample(200_000, 0)
    ends = np.array([0.0, 0.9, 1.2, 1.5, 1e9])
    shares = np.mean(beta[:, None] <= ends, axis=0)
    # Five errors of a share of so many draws.
    np.testing.assert_allclose(grid.beta_cdf(ends), shares, atol=5 * 0.5 / np.sqrt(200_000))
    assert grid.beta_cdf(1e9) == pytest.approx(1.0)
