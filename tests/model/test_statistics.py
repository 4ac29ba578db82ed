"""S_k(y) against the definition in the reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn import reference
from bayesknn.model import BoltzmannModel
from tests.model.enumeration import as_reference
from tests.model.graphs import complete, random_graph, ring, ripley_graph, small_models


@given(small_models(), st.data())
def test_agreement_is_what_the_definition_says(case, data):
    graph, _, k, n_classes, weights = case
    values = st.integers(0, n_classes - 1)
    labels = data.draw(st.lists(values, min_size=graph.n_points, max_size=graph.n_points))
    near, a = as_reference(graph, n_classes, weights)
    model = BoltzmannModel(graph, n_classes, weights)
    expected = [reference.agreement(near, a, np.array(labels), r + 1) for r in range(graph.k_max)]
    np.testing.assert_allclose(model.agreement(labels), expected, rtol=1e-13)
    assert model.agreement(labels, k) == pytest.approx(expected[k - 1], rel=1e-13)


@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 2.5]])
def test_a_batch_is_counted_row_by_row(weights):
    rng = np.random.default_rng(0)
    model = BoltzmannModel(random_graph(rng, n=40, k_max=9), 3, weights)
    batch = rng.integers(0, 3, (7, 40))
    for k in (None, 4):
        rows = [model.agreement(row, k) for row in batch]
        np.testing.assert_array_equal(model.agreement(batch, k), rows)
    assert model.agreement(batch[:0]).shape == (0, 9)
    assert model.agreement(batch[:0], 1).shape == (0,)


def test_one_colour_agrees_everywhere():
    model = BoltzmannModel(ripley_graph(), 2)
    assert np.array_equal(model.agreement(np.zeros(250, int)), 250 * np.arange(1, 126))


def test_more_than_256_classes():
    model = BoltzmannModel(complete(300), 301)
    assert model.agreement(np.arange(300), k=299) == 0
    assert model.agreement(np.arange(300) // 2, k=299) == 300
    assert BoltzmannModel(ring(3), 301).agreement([44, 300, 0], 1) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [0, 1]}, "one label for each of the 4 points, got 2"),
        ({"labels": [0, 1, 2, 3]}, r"lie in 0..1 \(2 classes\), got 2"),
        ({"labels": [0, -1, 0, 0]}, r"lie in 0..1 \(2 classes\), got -1 at position 1"),
        ({"labels": [[0, 1, 0, 1], [7, 0, 0, 0]]}, "got 7 at position 0 of draw 1"),
        ({"labels": np.zeros((1, 1, 4), int)}, r"must have shape \(4,\) or \(n_draws, 4\)"),
        ({"labels": [0, 1, 0, 1], "k": 2}, "k must be"),
        ({"labels": [0, 1, 0, 1], "k": 0}, "k must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        BoltzmannModel(ring(4), 2).agreement(**arguments)
