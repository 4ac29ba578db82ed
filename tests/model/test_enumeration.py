"""The listed law against its definition."""

import itertools

import numpy as np
import pytest
from hypothesis import given

from bayesknn.model import agreement
from tests.model.enumeration import (
    enumerate_expected_agreement,
    enumerate_log_normalizer,
    exact_law,
    list_states,
    state_index,
)
from tests.model.graphs import random_graph, ring, small_models


def test_states_are_listed_as_itertools_lists_them():
    states = list_states(4, 3)
    assert states.tolist() == [list(state) for state in itertools.product(range(3), repeat=4)]
    assert np.array_equal(state_index(states, 3), np.arange(81))


@given(small_models(max_states=300))
def test_the_law_is_what_the_definition_says(model):
    graph, beta, k, n_classes, weights = model
    states, probabilities = exact_law(graph, beta, k, n_classes, weights)
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)
    log_z = enumerate_log_normalizer(graph, beta, k, n_classes, weights)
    totals = agreement(graph, states, k, weights)
    np.testing.assert_allclose(np.log(probabilities), beta / k * totals - log_z, atol=1e-10)
    mean = enumerate_expected_agreement(graph, beta, k, n_classes, weights)
    assert mean == pytest.approx(probabilities @ totals, rel=1e-12)


def test_arrays_of_beta():
    graph = random_graph(np.random.default_rng(1), n=5, k_max=2)
    betas = np.array([[0.0, 1.0], [2.0, 3.0]])
    for function in (enumerate_log_normalizer, enumerate_expected_agreement):
        values = function(graph, betas, 2, 3)
        assert values.shape == (2, 2)
        assert values[1, 0] == pytest.approx(function(graph, 2.0, 2, 3), rel=1e-14)


def test_two_points_each_the_others_neighbour():
    """The example of Section 2.1: Z = 2 (1 + exp(2 beta))."""
    beta = 1.3
    log_z = enumerate_log_normalizer(ring(2), beta, 1, 2)
    assert log_z == pytest.approx(np.log(2 * (1 + np.exp(2 * beta))), rel=1e-14)
