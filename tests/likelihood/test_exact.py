"""The coherent likelihood with exact log Z: against enumeration, closed forms and known values."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn import reference
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import ExactLikelihood, log_normalizer
from bayesknn.model import log_normalizer_exact
from tests.likelihood.problems import problems, random_graph
from tests.model.enumeration import as_reference, enumerate_log_normalizer, exact_law

small = problems(max_points=7, max_classes=4, max_k=4)


@given(problem=small, betas=st.lists(st.floats(0.0, 20.0), min_size=1, max_size=4))
def test_value_is_that_of_the_reference(problem, betas):
    graph, labels, n_classes, weights = problem
    likelihood = ExactLikelihood(graph, labels, n_classes, weights)
    near, a = as_reference(graph, n_classes, weights)
    for k in range(1, graph.k_max + 1):
        for beta in betas:
            expected = reference.log_likelihood(near, a, labels, beta, k)
            assert likelihood.log_density(beta, k) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 1.5]])
def test_it_is_a_law_of_the_labels(weights):
    graph = random_graph(np.random.default_rng(4), 5, 2)
    states, probabilities = exact_law(graph, 1.3, 2, 3, weights)
    found = [
        math.exp(ExactLikelihood(graph, y, 3, weights).log_density(1.3, 2)) for y in states[::7]
    ]
    np.testing.assert_allclose(found, probabilities[::7], rtol=1e-10)


def test_grid_and_broadcasting():
    rng = np.random.default_rng(8)
    graph, labels = random_graph(rng, 8, 3), rng.integers(2, size=8)
    likelihood = ExactLikelihood(graph, labels)
    betas = np.linspace(0.0, 4.0, 9)
    grid = likelihood.log_density_grid(betas)
    assert grid.shape == (3, 9)
    np.testing.assert_array_equal(grid, likelihood.log_density(betas, np.array([[1], [2], [3]])))
    np.testing.assert_allclose(grid[:, 0], -8 * math.log(2), rtol=1e-13)
    assert isinstance(likelihood.log_density(1.0, 2), float)
    copy = pickle.loads(pickle.dumps(likelihood))
    assert copy.log_density(1.0, 2) == likelihood.log_density(1.0, 2)
    with pytest.raises(ValueError, match="k must be an integer in 1..3"):
        likelihood.log_density(1.0, 4)
    with pytest.raises(ValueError, match="beta must be finite"):
        likelihood.log_density(math.nan, 1)


@pytest.fixture(scope="module")
def ripley():
    data = load_ripley()
    return ExactLikelihood(NeighborGraph.from_points(data.X_train, k_max=5), data.y_train)


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (1, [343.41246357, 567.41240750, 1055.79773501]),
        (3, [320.67087178, 521.41875105, 1003.37011407]),
        (5, [314.17766595, 511.46919279, 1001.05894886]),
    ],
)
def test_ripley_normalizer(ripley, k, expected):
    value, error = log_normalizer(ripley.graph, [1.0, 2.0, 4.0], k, 2, method="exact")
    np.testing.assert_allclose(value, expected, atol=1e-8)
    np.testing.assert_array_equal(error, 0.0)
    for beta, log_z in zip([1.0, 2.0, 4.0], expected, strict=True):
        assert ripley.log_z.log_normalizer(beta, k) == pytest.approx(log_z, abs=1e-8)


@pytest.mark.parametrize("k", [2, 5])
def test_interpolation_loses_nothing(ripley, k):
    betas = np.concatenate([np.linspace(0.0, 9.0, 37), [0.999999, 3.999, 40.0, 700.0]])
    direct = log_normalizer_exact(ripley.graph, betas, k, 2)
    np.testing.assert_allclose(ripley.log_z.log_normalizer(betas, k), direct, rtol=1e-13)


def test_normalizer_front():
    ring = NeighborGraph.from_neighbors([np.roll(np.arange(9), -1)])
    value, error = log_normalizer(ring, 0.7, 1, 3)
    e = math.exp(0.7)
    assert value == pytest.approx(math.log((e + 2) ** 9 + 2 * (e - 1) ** 9), rel=1e-13)
    assert error == 0.0
    weighted = log_normalizer(ring, 0.7, 1, 3, class_weight=[0.5, 1.0, 2.0])
    expected = enumerate_log_normalizer(ring, 0.7, 1, 3, [0.5, 1.0, 2.0])
    assert weighted.value == pytest.approx(expected, rel=1e-13)
    with pytest.raises(ValueError, match="method must be one of exact, path, got 'guess'"):
        log_normalizer(ring, 0.7, 1, 3, method="guess")
    with pytest.raises(ValueError, match="k must be an integer in 1..1"):
        log_normalizer(ring, 0.7, 2, 3)
    with pytest.raises(ValueError, match="beta must be at least 0"):
        log_normalizer(ring, -0.7, 1, 3)
