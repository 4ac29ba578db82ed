"""The pseudo-likelihood against the reference, its maximum against scipy, and known values."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from bayesknn import reference
from bayesknn.datasets import load_pima, load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import (
    HolmesAdamsLikelihood,
    PseudoLikelihood,
    log_pseudo_likelihood,
)
from bayesknn.likelihood.deficits import tabulate_deficits
from bayesknn.model import BoltzmannModel
from tests.likelihood.problems import problems, random_graph
from tests.model.enumeration import as_reference

PRODUCTS = [PseudoLikelihood, HolmesAdamsLikelihood]
REFERENCES = {
    PseudoLikelihood: reference.log_pseudo_likelihood,
    HolmesAdamsLikelihood: reference.log_holmes_adams,
}


@pytest.fixture(scope="module")
def ripley():
    data = load_ripley()
    graph = NeighborGraph.from_points(data.X_train, k_max=125)
    return PseudoLikelihood(graph, data.y_train)


@pytest.mark.parametrize("product", PRODUCTS)
@given(problem=problems(), beta=st.floats(0.0, 20.0))
def test_value_is_that_of_the_reference(product, problem, beta):
    graph, labels, n_classes, weights = problem
    likelihood = product(graph, labels, n_classes, weights)
    near, a = as_reference(graph, n_classes, weights)
    for k in range(1, graph.k_max + 1):
        expected = REFERENCES[product](near, a, labels, beta, k)
        assert likelihood.log_density(beta, k) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_dropping_the_reverse_neighbours_is_noticed():
    rng = np.random.default_rng(1)
    graph, labels = random_graph(rng, 12, 3), rng.integers(2, size=12)
    mutant = HolmesAdamsLikelihood(graph, labels, 2).log_density(1.0, 3)
    both = reference.log_pseudo_likelihood(*as_reference(graph, 2), labels, 1.0, 3)
    assert mutant != pytest.approx(both, rel=1e-3)


@given(problem=problems(), betas=st.lists(st.floats(0.0, 8.0), min_size=1, max_size=5))
def test_every_k_at_once_equals_each_k(problem, betas):
    graph, labels, n_classes, weights = problem
    likelihood = PseudoLikelihood(graph, labels, n_classes, weights)
    grid = likelihood.log_density_grid(betas)
    each = [[likelihood.log_density(b, k + 1) for b in betas] for k in range(graph.k_max)]
    np.testing.assert_array_equal(grid, each)
    every = log_pseudo_likelihood(graph, labels, betas[0], None, n_classes, weights)
    np.testing.assert_array_equal(every, grid[:, 0])
    one = log_pseudo_likelihood(graph, labels, betas[0], 1, n_classes, weights)
    assert one == grid[0, 0]


def test_beta_and_k_broadcast(ripley):
    assert (ripley.n_points, ripley.n_classes, ripley.k_max) == (250, 2, 125)
    betas, ks = np.array([0.5, 1.0, 2.0]), np.array([[1], [53], [125], [53]])
    values = ripley.log_density(betas, ks)
    assert values.shape == (4, 3)
    np.testing.assert_array_equal(values, ripley.log_density_grid(betas)[ks[:, 0] - 1])
    for beta, k in [(1, 53), (1.0, np.int64(53)), (np.float64(1.0), np.uint8(53)), (1.0, 53.0)]:
        value = ripley.log_density(beta, k)
        assert isinstance(value, float)
        assert value == values[1, 1]
    assert ripley.log_density_grid(np.ones((2, 3))).shape == (125, 2, 3)
    assert ripley.log_density_grid([]).shape == (125, 0)
    assert ripley.log_density(1.0, []).shape == (0,)


def test_beta_zero_ignores_the_neighbours(ripley):
    np.testing.assert_allclose(ripley.log_density_grid(0.0), -250 * math.log(2), rtol=1e-14)


def test_ripley_maximum(ripley):
    maximum = ripley.maximize()
    assert maximum.k == 53
    assert maximum.beta == pytest.approx(2.2805, abs=5e-5)
    assert maximum.log_value == pytest.approx(-71.7523, abs=5e-5)
    assert not maximum.at_bound
    assert ripley.maximize(beta_max=4.0) == pytest.approx(maximum, rel=1e-9)


def test_pima_maximum():
    data = load_pima()
    labels = np.unique(data.y_train, return_inverse=True)[1]
    maximum = PseudoLikelihood(NeighborGraph.from_points(data.X_train, k_max=68), labels).maximize()
    assert maximum.k == 50
    assert maximum.beta == pytest.approx(1.3379, abs=5e-5)
    assert maximum.log_value == pytest.approx(-102.384, abs=5e-4)


def test_ripley_posterior_by_quadrature(ripley):
    betas = (np.arange(800) + 0.5) / 200
    log_values = ripley.log_density_grid(betas)
    weights = np.exp(log_values - log_values.max())
    weights /= weights.sum()
    ks = np.arange(1, 126)
    for values, marginal, mean, sd in [
        (betas, weights.sum(axis=0), 2.447, 0.429),
        (ks, weights.sum(axis=1), 55.1, 11.5),
    ]:
        found = marginal @ values
        assert found == pytest.approx(mean, rel=1e-3)
        assert math.sqrt(marginal @ (values - found) ** 2) == pytest.approx(sd, rel=2e-3)


@pytest.mark.parametrize("product", PRODUCTS)
@given(problem=problems(max_points=20), beta_max=st.sampled_from([0.5, 4.0, 50.0]))
def test_maximum_is_that_of_scipy(product, problem, beta_max):
    graph, labels, n_classes, weights = problem
    likelihood = product(graph, labels, n_classes, weights)
    maxima = likelihood.maximize_each_k(beta_max)
    for k in range(1, graph.k_max + 1):
        found = minimize_scalar(
            lambda beta, k=k: -likelihood.log_density(float(beta), k),
            bounds=(0.0, beta_max),
            method="bounded",
            options={"xatol": 1e-9},
        )
        best = max(-found.fun, *likelihood.log_density(np.array([0.0, beta_max]), k))
        beta = maxima.beta[k - 1]
        assert maxima.log_value[k - 1] >= best - 1e-9
        assert maxima.log_value[k - 1] == likelihood.log_density(beta, k)
        # Concave, so a zero slope inside or an outward slope at an end is the maximum.
        step = 1e-4
        here, up = likelihood.log_density(np.array([beta, beta + step]), k)
        if beta > step:
            down = likelihood.log_density(beta - step, k)
            assert here >= down - 1e-12
        if maxima.at_bound[k - 1]:
            assert beta == beta_max
            assert up >= here
        else:
            assert here >= up - 1e-12
    top = likelihood.maximize(beta_max)
    assert top.log_value == maxima.log_value.max()
    assert top.k == 1 + int(np.argmax(maxima.log_value))


@given(problem=problems())
def test_log_value_is_concave_in_beta(problem):
    graph, labels, n_classes, weights = problem
    values = PseudoLikelihood(graph, labels, n_classes, weights).log_density_grid(
        np.linspace(0.0, 10.0, 41)
    )
    assert np.diff(values, n=2, axis=1).max() <= 1e-11


@given(problem=problems(max_points=20))
def test_unbounded_maximum_is_a_zero_of_the_slope_or_infinite(problem):
    graph, labels, n_classes, weights = problem
    likelihood = PseudoLikelihood(graph, labels, n_classes, weights)
    maxima = likelihood.maximize_each_k()
    unweighted = np.ones(n_classes) if weights is None else weights
    for at, (beta, log_value, at_bound) in enumerate(zip(*maxima, strict=True)):
        fields = unweighted * graph.counts(likelihood.labels, n_classes, at + 1)
        own = fields[np.arange(graph.n_points), labels]
        outvoted = own < fields.max(axis=1)
        if at_bound:
            assert beta == math.inf
            assert not outvoted.any()
            limit = likelihood.log_density(1e6, at + 1)
            assert log_value == pytest.approx(limit, rel=1e-9, abs=1e-9)
        else:
            # The expected own field equals the observed one, or falls short of it already at 0.
            law = softmax(beta / (at + 1) * fields, axis=1)
            slope = (own - (law * fields).sum(axis=1)).sum()
            assert slope <= 1e-7 if beta == 0.0 else abs(slope) <= 1e-7


def test_maximum_at_zero_is_reached_though_the_slope_there_is_rounded():
    # On each ring of four as many edges agree as not, whatever the weights: the slope at 0 is 0.
    n = 400
    ring = np.arange(n).reshape(-1, 4)
    graph = NeighborGraph.from_neighbors(np.roll(ring, -1, axis=1).reshape(1, n))
    labels = np.tile([0, 0, 1, 1], n // 4)
    for weights in np.random.default_rng(0).uniform(0.3, 2.0, (200, 2)):
        likelihood = PseudoLikelihood(graph, labels, 2, weights)
        for beta_max in (None, 4.0):
            assert likelihood.maximize(beta_max).beta == pytest.approx(0.0, abs=1e-9)


def test_separable_labels_run_off_to_the_bound():
    graph = NeighborGraph.from_points([[0.0], [1.0], [2.0], [50.0], [51.0], [52.0]], k_max=2)
    likelihood = PseudoLikelihood(graph, [0, 0, 0, 1, 1, 1])
    capped = likelihood.maximize(beta_max=4.0)
    assert (capped.beta, capped.at_bound) == (4.0, True)
    assert capped.log_value == likelihood.log_density(4.0, capped.k)
    free = likelihood.maximize()
    assert (free.beta, free.log_value, free.at_bound) == (math.inf, 0.0, True)


def test_labels_that_repel_have_their_maximum_at_zero():
    ring = NeighborGraph.from_neighbors([[1, 2, 3, 0]])
    maximum = PseudoLikelihood(ring, [0, 1, 0, 1]).maximize()
    assert maximum == (1, 0.0, pytest.approx(-4 * math.log(2)), False)
    # Each point has one neighbour of either class, so beta does not matter.
    level = PseudoLikelihood(ring, [0, 0, 1, 1]).maximize()
    assert level == (1, 0.0, pytest.approx(-4 * math.log(2)), False)


def test_no_beta_is_too_large(ripley):
    for likelihood in (ripley, PseudoLikelihood(ripley.graph, ripley.labels, 3, [0.5, 1.0, 2.0])):
        values = likelihood.log_density(np.array([1e3, 1e6, 1e300]), 53)
        assert np.all(np.isfinite(values))
        assert np.all(np.diff(values) < 0)


def test_two_classes_leave_a_histogram(ripley):
    for k, deficits in enumerate(ripley._deficits, start=1):
        largest = k + ripley.graph.incidence.in_degree[k - 1].max()
        assert len(deficits.rows) <= largest + 1
        assert len(np.unique(deficits.rows)) == len(deficits.rows)
        assert deficits.multiplicity.sum() == 250


def test_a_hub_needs_more_than_two_bytes():
    n = 70_000
    near = np.zeros(n, np.uint32)
    near[0] = 1
    graph = NeighborGraph.from_neighbors(near[None, :])
    labels = np.arange(n) % 3
    labels[:-100] = 0
    likelihood = PseudoLikelihood(graph, labels, 3)
    beta = 1e-3
    counts = np.bincount(labels[1:], minlength=3).astype(float)
    counts[labels[1]] += 1
    hub = beta * counts[labels[0]] - np.log(np.exp(beta * counts).sum())
    others = np.where(labels == labels[0], beta, 0.0) - math.log(math.exp(beta) + 2)
    # Point 1 is the hub's own neighbour as well.
    second = 2 * beta * (labels[1] == labels[0]) - math.log(math.exp(2 * beta) + 2)
    expected = hub + second + others[2:].sum()
    assert likelihood.log_density(beta, 1) == pytest.approx(expected, rel=1e-12)
    assert likelihood._deficits[0].rows.dtype == np.uint32


def test_hundreds_of_classes():
    rng = np.random.default_rng(3)
    graph, labels = random_graph(rng, 30, 4), rng.integers(300, size=30)
    labels[0] = 299
    value = log_pseudo_likelihood(graph, labels, 2.0, 4)
    expected = reference.log_pseudo_likelihood(*as_reference(graph, 300), labels, 2.0, 4)
    assert value == pytest.approx(expected, rel=1e-12)


@given(problem=problems(), beta=st.floats(0.0, 10.0))
def test_likelihood_is_the_product_of_its_conditionals(problem, beta):
    graph, labels, n_classes, weights = problem
    k = graph.k_max
    likelihood = PseudoLikelihood(graph, labels, n_classes, weights)
    law = likelihood.model.conditional(labels, beta, k)
    np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=1e-14)
    own = law[np.arange(graph.n_points), labels]
    assert likelihood.log_density(beta, k) == pytest.approx(np.log(own).sum(), rel=1e-10, abs=1e-10)


@given(problem=problems(), direction=st.sampled_from(["both", "forward"]))
def test_merged_rows_are_the_points(problem, direction):
    graph, labels, n_classes, weights = problem
    labels = labels.astype(np.uint8)
    scale = np.ones(n_classes) if weights is None else weights
    table = tabulate_deficits(BoltzmannModel(graph, n_classes, weights), labels, direction)
    for k, deficits in enumerate(table, start=1):
        fields = scale * graph.counts(labels, n_classes, k, direction)
        best = fields.max(axis=1, keepdims=True)
        expected = np.sort(best - fields, axis=1)[:, 1:]
        merged = np.repeat(deficits.rows.astype(float), deficits.multiplicity, axis=0)
        assert sorted(map(tuple, merged)) == sorted(map(tuple, expected))
        assert len({tuple(row) for row in deficits.rows}) == len(deficits.rows)
        own = fields[np.arange(graph.n_points), labels]
        assert deficits.shortfall == pytest.approx((best[:, 0] - own).sum(), abs=1e-12)


def test_pickled_likelihood_gives_the_same_bits(ripley):
    copy = pickle.loads(pickle.dumps(ripley))
    assert copy.log_density(1.5, 15) == ripley.log_density(1.5, 15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0, 1]}, "one label for each of the 4 points, got 2"),
        ({"labels": [0, 1, -1, 0]}, "got -1 at position 2"),
        ({"labels": [0, 1, 2, 0], "n_classes": 2}, "got 2 at position 2"),
        ({"labels": [0, 0, 0, 0]}, "pass n_classes"),
        ({"labels": ["a", "b", "a", "b"]}, "labels must be integers"),
        ({"n_classes": 1}, "n_classes must be an integer >= 2"),
        ({"class_weight": [1.0, 0.0]}, "class_weight must be finite and positive"),
        ({"class_weight": [1.0]}, "one for each class"),
        ({"beta": -0.5}, "beta must be at least 0, got -0.5"),
        ({"beta": math.nan}, "beta must be finite, got nan"),
        ({"beta": [1.0, math.inf]}, "beta must be finite, got inf"),
        ({"beta": "much"}, "beta must be numeric"),
        ({"k": 0}, "k must be an integer in 1..2"),
        ({"k": 3}, "k must be an integer in 1..2"),
        ({"k": 1.5}, "k must be an integer in 1..2"),
        ({"k": [1, 2, 3], "beta": 1.0}, "k must be an integer in 1..2"),
        ({"k": [1, 2], "beta": [1.0, 2.0, 3.0]}, "cannot be broadcast"),
    ],
)
def test_bad_input_is_refused(change, message):
    graph = NeighborGraph.from_points([[0.0], [1.0], [3.0], [7.0]], k_max=2)
    good = {"labels": [0, 0, 1, 1], "beta": 1.0, "k": 1}
    with pytest.raises(ValueError, match=message):
        log_pseudo_likelihood(graph, **{**good, **change})


@pytest.mark.parametrize("beta_max", [0.0, -1.0, math.nan, math.inf, "large"])
def test_bad_bound_is_refused(ripley, beta_max):
    with pytest.raises(ValueError, match="beta_max must be"):
        ripley.maximize(beta_max)


def test_a_peak_that_was_not_found_is_told(ripley):
    # The search grows fourfold a step at most, and gives up before it is near.
    with pytest.warns(ConvergenceWarning, match="at k = 53"):
        ripley.find_peak(53, 1e-300, math.inf, 0.0)
