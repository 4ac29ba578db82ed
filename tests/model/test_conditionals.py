"""Full conditionals against the reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn import reference
from bayesknn.model import BoltzmannModel
from tests.model.enumeration import as_reference
from tests.model.graphs import random_graph, ring, small_models


@given(small_models(), st.data())
def test_conditionals_are_those_of_the_reference(model, data):
    graph, beta, k, n_classes, weights = model
    values = st.integers(0, n_classes - 1)
    labels = data.draw(st.lists(values, min_size=graph.n_points, max_size=graph.n_points))
    fast = BoltzmannModel(graph, n_classes, weights).conditional(labels, beta, k)
    near, a = as_reference(graph, n_classes, weights)
    slow = reference.conditional(near, a, np.array(labels), beta, k)
    np.testing.assert_allclose(fast, slow, rtol=1e-9)


def test_fields_for_every_k():
    rng = np.random.default_rng(3)
    graph = random_graph(rng, n=30, k_max=12)
    labels = rng.integers(0, 4, 30)
    for k in range(1, 13):
        A = reference.adjacency(as_reference(graph, 4)[0], k)
        expected = reference.count_classes(A + A.T, labels, 4)
        np.testing.assert_array_equal(graph.counts(labels, 4, k), expected)


def test_large_beta_does_not_overflow():
    probabilities = BoltzmannModel(ring(3), 2).conditional([0, 0, 1], 1e6, 1)
    np.testing.assert_array_equal(probabilities, [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta": -1.0}, "beta must be at least 0"),
        ({"k": 3}, "k must be"),
        ({"n_classes": 1}, "n_classes must be an integer >= 2"),
        ({"labels": [0, 1, 2]}, r"lie in 0..1 \(2 classes\), got 2 at position 2"),
        ({"class_weight": [1.0, 2.0, 3.0]}, "must hold 2 numbers"),
    ],
)
def test_bad_arguments(arguments, message):
    how = {"labels": [0, 1, 1], "beta": 1.0, "k": 1, "n_classes": 2, "class_weight": None}
    how |= arguments
    with pytest.raises(ValueError, match=message):
        model = BoltzmannModel(ring(3), how["n_classes"], how["class_weight"])
        model.conditional(how["labels"], how["beta"], how["k"])
