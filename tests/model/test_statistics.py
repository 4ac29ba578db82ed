"""S_k(y) against a loop over the edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn.model import agreement
from tests.model.graphs import complete, random_graph, ring, ripley_graph, small_models


def count_agreement(graph, labels, k, class_weight=None):
    """Count edge by edge, straight from the definition: the slow, obvious twin."""
    total = 0
    for i in range(graph.n_points):
        for neighbor in graph.neighbors[:k, i]:
            if labels[i] == labels[neighbor]:
                total += 1 if class_weight is None else class_weight[labels[i]]
    return total


@given(small_models(), st.data())
def test_agreement_is_what_the_definition_says(model, data):
    graph, _, k, n_classes, weights = model
    values = st.integers(0, n_classes - 1)
    labels = data.draw(st.lists(values, min_size=graph.n_points, max_size=graph.n_points))
    expected = [count_agreement(graph, labels, r + 1, weights) for r in range(graph.k_max)]
    np.testing.assert_allclose(agreement(graph, labels, class_weight=weights), expected, rtol=1e-13)
    assert agreement(graph, labels, k, weights) == pytest.approx(expected[k - 1], rel=1e-13)


def test_a_batch_is_counted_row_by_row():
    rng = np.random.default_rng(0)
    graph = random_graph(rng, n=40, k_max=9)
    batch = rng.integers(0, 3, (7, 40))
    weights = [0.5, 1.0, 2.5]
    assert np.array_equal(agreement(graph, batch), [agreement(graph, row) for row in batch])
    assert np.array_equal(agreement(graph, batch, k=4), [agreement(graph, row, 4) for row in batch])
    np.testing.assert_array_equal(
        agreement(graph, batch, class_weight=weights),
        [agreement(graph, row, class_weight=weights) for row in batch],
    )
    assert agreement(graph, batch[:0]).shape == (0, 9)


def test_shapes_and_types():
    graph = ring(5)
    assert agreement(graph, [0] * 5).dtype == np.int64
    assert agreement(graph, [0] * 5, class_weight=[1, 2]).dtype == np.float64
    assert type(agreement(graph, [0] * 5, k=1)) is int
    assert type(agreement(graph, [0] * 5, k=1, class_weight=[1, 2])) is float
    assert agreement(graph, [[0] * 5], k=1).shape == (1,)


def test_one_colour_agrees_everywhere():
    graph = ripley_graph()
    assert np.array_equal(agreement(graph, np.zeros(250, int)), 250 * np.arange(1, 126))


def test_more_than_256_classes():
    graph = complete(300)
    assert agreement(graph, np.arange(300), k=299) == 0
    assert agreement(graph, np.arange(300) // 2, k=299) == 300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [0, 1]}, "one label for each of the 4 points, got 2"),
        ({"labels": [0, 1, 2, 3], "class_weight": [1, 2]}, r"lie in 0..1 \(2 classes\), got 2"),
        ({"labels": [0, 1, 0, 1], "class_weight": [1, -2]}, "positive, got -2.0 for class 1"),
        ({"labels": [0, 1, 0, 1], "k": 2}, "k must be"),
        ({"labels": [0, 1, 0, 1], "k": 0}, "k must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        agreement(ring(4), **arguments)
