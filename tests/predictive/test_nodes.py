"""The law of (beta, k) in few points: collapsed draws, thinned grids, Gauss rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn.likelihood import CoherentLikelihood, PseudoLikelihood
from bayesknn.posterior import grid_posterior
from bayesknn.predictive import PosteriorNodes
from bayesknn.predictive.nodes import condense
from tests.predictive.problems import problem, random_nodes


def draws(n, seed, n_k=6, law="normal"):
    rng = np.random.default_rng(seed)
    k = 10 + rng.binomial(n_k, 0.4, size=n)
    if law == "normal":
        beta = np.abs(rng.normal(1.5 + 0.02 * k, 0.3, size=n))
    elif law == "skewed":
        beta = rng.gamma(1.5, 0.5, size=n)
    else:
        beta = rng.uniform(0, 4, size=n)
    return beta, k


def smooth(beta, k, slope):
    """Do as the predictive rule does with (beta, k): a logistic whose slope turns with k."""
    return 1 / (1 + np.exp(-slope * np.cos(k / 5) * beta))


def collapse_error(beta, k, nodes, slope):
    plain = smooth(beta, k, slope)
    collapsed = nodes.weight @ smooth(nodes.beta, nodes.k, slope)
    monte_carlo = plain.std() / np.sqrt(beta.size)
    return abs(plain.mean() - collapsed) / monte_carlo


@pytest.mark.parametrize("law", ["normal", "skewed", "uniform"])
@pytest.mark.parametrize("slope", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("n", [2_000, 100_000])
def test_collapsed_draws_average_like_the_draws(law, slope, n):
    beta, k = draws(n, seed=1, law=law)
    assert collapse_error(beta, k, PosteriorNodes.from_draws(beta, k), slope) < 0.01


def test_bins_represented_by_their_means_alone_are_rejected():
    """A named mutant of the collapse: one point a bin, ten of them, loses the variance within."""
    beta, k = draws(100_000, seed=1, law="skewed")
    beta = beta[k == 12]
    bins = np.array_split(np.sort(beta), 10)
    nodes = PosteriorNodes(np.full(10, 12), [b.mean() for b in bins], np.full(10, 0.1))
    assert collapse_error(beta, np.full(beta.size, 12), nodes, 4.0) > 0.05


@given(st.integers(0, 2**32 - 1), st.integers(1, 3000))
def test_collapsed_draws_keep_weights_and_moments(seed, n):
    rng = np.random.default_rng(seed)
    beta, k = draws(n, seed, law=rng.choice(["normal", "skewed", "uniform"]))
    if rng.random() < 0.5:  # a chain that often stays where it is
        beta = np.repeat(beta[: -(-n // 3)], 3)[:n]
        k = np.repeat(k[: -(-n // 3)], 3)[:n]
    nodes = PosteriorNodes.from_draws(beta, k)
    values, counts = np.unique(nodes.k, return_counts=True)
    assert np.array_equal(values, np.unique(k))
    assert counts.max() <= 256
    assert np.isclose(nodes.weight.sum(), 1) and np.all(nodes.weight >= 0)
    for value in values:
        own, own_nodes = beta[k == value], nodes.k == value
        weight = nodes.weight[own_nodes]
        assert np.isclose(weight.sum(), own.size / n)
        for power in (1, 2, 3):
            mean = weight @ nodes.beta[own_nodes] ** power / weight.sum()
            assert np.isclose(mean, (own**power).mean(), rtol=1e-9)
        assert own.min() - 1e-12 <= nodes.beta[own_nodes].min()
        assert nodes.beta[own_nodes].max() <= own.max() + 1e-12


def test_few_draws_are_kept_as_they_are():
    nodes = PosteriorNodes.from_draws([[1.0, 2.0], [1.0, 3.0]], [[5, 5], [5, 2]])
    assert nodes.k.tolist() == [2, 5, 5]
    assert nodes.beta.tolist() == [3.0, 1.0, 2.0]
    assert nodes.weight.tolist() == [0.25, 0.5, 0.25]


def test_the_number_of_nodes_does_not_grow_with_the_draws():
    few, many = (PosteriorNodes.from_draws(*draws(n, seed=2)) for n in (20_000, 400_000))
    assert many.n_nodes < 1.1 * few.n_nodes
    assert condense(many).n_nodes < 200


def test_order_and_shape_of_draws_do_not_matter():
    beta, k = draws(4000, seed=3)
    shuffled = np.random.default_rng(0).permutation(4000)
    first = PosteriorNodes.from_draws(beta, k)
    second = PosteriorNodes.from_draws(beta[shuffled].reshape(4, -1), k[shuffled].reshape(4, -1))
    assert np.array_equal(first.beta, second.beta)
    assert np.array_equal(first.weight, second.weight)


@pytest.mark.parametrize("likelihood", [CoherentLikelihood, PseudoLikelihood])
def test_a_grid_loses_nothing_that_matters(likelihood):
    graph, _, labels, _ = problem(2, n=80, k_max=20)
    posterior = grid_posterior(
        likelihood(graph, labels), beta_max=4.0, random_state=0, tolerance=0.3, evidence=False
    )
    nodes = PosteriorNodes.from_grid(posterior)
    rule = condense(nodes)
    assert np.isclose(nodes.weight.sum(), 1)
    assert nodes.n_nodes < posterior.weights.size
    assert rule.n_nodes < nodes.n_nodes / 2
    k = np.broadcast_to(posterior.k_values[:, None], posterior.betas.shape)
    for slope in (0.5, 1.0, 2.0):
        mean = posterior.mean(smooth(posterior.betas, k, slope))[0]
        on_nodes = smooth(nodes.beta, nodes.k, slope)
        on_rule = smooth(rule.beta, rule.k, slope)
        assert abs(nodes.weight @ on_nodes - mean) < 1e-7
        assert abs(rule.weight @ on_rule - mean) < 1e-7


@pytest.mark.parametrize("law", ["normal", "skewed", "uniform"])
def test_gauss_rules_agree_with_the_nodes(law):
    beta, k = draws(20_000, seed=4, law=law)
    nodes = PosteriorNodes.from_draws(beta, k)
    rule = condense(nodes)
    assert np.all(rule.weight >= 0) and np.isclose(rule.weight.sum(), 1)
    assert rule.starts[-1] == rule.n_nodes < nodes.n_nodes / 2
    for t, k in enumerate(rule.k_values):
        part = slice(rule.starts[t], rule.starts[t + 1])
        assert np.all(rule.k[part] == k)
        own = nodes.k == k
        for slope in (0.3, 1.1, 2.7):
            exact = nodes.weight[own] @ smooth(nodes.beta[own], k, slope)
            found = rule.weight[part] @ smooth(rule.beta[part], k, slope)
            assert abs(exact - found) < 1e-7 * nodes.weight[own].sum()
        for slope in (0.7, 1.9):
            exact = nodes.weight[own] @ np.exp(slope * nodes.beta[own])
            found = rule.weight[part] @ np.exp(slope * rule.beta[part])
            assert abs(exact - found) < 1e-4 * exact


def test_a_law_that_no_small_rule_can_integrate_keeps_its_nodes():
    beta = np.linspace(0, 400, 60)
    nodes = PosteriorNodes(np.full(60, 3), beta, np.full(60, 1 / 60))
    assert np.array_equal(condense(nodes).strengths, beta / 3)


def test_few_nodes_are_not_condensed():
    nodes = random_nodes(k_max=30, n_nodes=50)
    for name, values in vars(nodes).items():
        assert np.array_equal(getattr(condense(nodes), name), values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1.0], [1.0]), "three vectors of one length"),
        (([0], [1.0], [1.0]), "at least 1"),
        (([1.5], [1.0], [1.0]), "k must hold integers"),
        (([1], [-1.0], [1.0]), "beta must be at least 0"),
        (([1], [np.nan], [1.0]), "beta must be finite"),
        (([1], [1.0], [0.5]), "sum to one"),
        (([1, 2], [1.0, 1.0], [1.5, -0.5]), "not be negative"),
        (([], [], []), "k must hold integers|three vectors"),
    ],
)
def test_bad_nodes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        PosteriorNodes(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "k must hold integers|no draws"),
        (([1.0, 2.0], [1]), "one shape"),
    ],
)
def test_bad_draws_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        PosteriorNodes.from_draws(*arguments)
