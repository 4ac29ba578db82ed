"""The product likelihood of Holmes and Adams: forward neighbours only, and not normalised.

Its values, maxima and conditionals are computed by the code that ``test_pseudo.py`` checks with
the reverse neighbours off; here stand the properties that are its own.
"""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from bayesknn import reference
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import (
    HolmesAdamsLikelihood,
    PseudoLikelihood,
)
from tests.likelihood.problems import random_graph
from tests.model.enumeration import as_reference


def total_over_labels(graph, beta, k, n_classes):
    every = product(range(n_classes), repeat=graph.n_points)
    return sum(
        math.exp(HolmesAdamsLikelihood(graph, y, n_classes).log_density(beta, k)) for y in every
    )


@given(beta=st.floats(0.0, 30.0))
@settings(max_examples=20)
def test_the_papers_example_of_two_points(beta):
    pair = NeighborGraph.from_neighbors([[1, 0]])
    expected = 2 * (1 + math.exp(2 * beta)) / (1 + math.exp(beta)) ** 2
    assert total_over_labels(pair, beta, 1, 2) == pytest.approx(expected, rel=1e-12)


def test_only_beta_zero_is_normalised():
    graph = random_graph(np.random.default_rng(0), 5, 2)
    assert total_over_labels(graph, 0.0, 2, 2) == pytest.approx(1.0, rel=1e-12)
    assert abs(total_over_labels(graph, 2.0, 2, 2) - 1.0) > 0.01
    assert abs(total_over_labels(graph, 2.0, 2, 3) - 1.0) > 0.01


def test_every_k_and_one_k():
    rng = np.random.default_rng(5)
    graph, labels = random_graph(rng, 15, 5), rng.integers(3, size=15)
    likelihood = HolmesAdamsLikelihood(graph, labels, 3)
    every = likelihood.log_density_grid(1.5)
    near, a = as_reference(graph, 3)
    each = [reference.log_holmes_adams(near, a, labels, 1.5, k) for k in range(1, 6)]
    np.testing.assert_allclose(every, each, rtol=1e-12)
    assert likelihood.log_density(1.5, 4) == every[3]


def test_a_symmetric_graph_gives_the_pseudo_likelihood_at_half_the_strength():
    n = 12
    steps = [np.roll(np.arange(n), s) for s in (1, -1, 2, -2)]
    graph = NeighborGraph.from_neighbors(steps)
    labels = np.random.default_rng(2).integers(3, size=n)
    forward = HolmesAdamsLikelihood(graph, labels, 3)
    both = PseudoLikelihood(graph, labels, 3)
    for k in (2, 4):
        assert forward.log_density(2.0, k) == pytest.approx(both.log_density(1.0, k), rel=1e-13)


def test_ripley():
    ripley = load_ripley()
    graph = NeighborGraph.from_points(ripley.X_train, k_max=125)
    likelihood = HolmesAdamsLikelihood(graph, ripley.y_train)
    maximum = likelihood.maximize()
    near, a = as_reference(graph, 2)
    expected = reference.log_holmes_adams(near, a, ripley.y_train, maximum.beta, maximum.k)
    assert maximum.log_value == pytest.approx(expected, rel=1e-12)
    for k in (maximum.k - 1, maximum.k + 1):
        assert likelihood.log_density(maximum.beta, k) < maximum.log_value
    counts = np.zeros((250, 2), int)
    for rank in range(maximum.k):
        counts[np.arange(250), ripley.y_train[graph.neighbors[rank]]] += 1
    law = likelihood.model.conditional(ripley.y_train, maximum.beta, maximum.k, "forward")
    expected = softmax(maximum.beta / maximum.k * counts, axis=1)
    np.testing.assert_allclose(law, expected, rtol=1e-13)


def test_probabilities_from_counts():
    # Of the four neighbours of the last point three have class 0 and one class 1.
    graph = NeighborGraph.from_neighbors((np.arange(5) + np.arange(1, 5)[:, None]) % 5)
    labels = [0, 0, 0, 1, 2]
    model = HolmesAdamsLikelihood(graph, labels, 3, [1.0, 2.0, 0.5]).model
    expected = np.exp([1.5, 1.0, 0.0])
    law = model.conditional(labels, 2.0, 4, "forward")
    np.testing.assert_allclose(law[4], expected / expected.sum(), rtol=1e-14)
    np.testing.assert_array_equal(model.conditional(labels, 1e9, 4)[4], [1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="beta must be at least 0"):
        model.conditional(labels, -1.0, 4)
