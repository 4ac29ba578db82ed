"""beta_max: simulated curves against exact ones, and what it is on the paper's data."""

import numpy as np
import pytest

from bayesknn.graph import NeighborGraph
from bayesknn.labels import find_beta_max
from bayesknn.labels.beta_max import locate_beta_max
from bayesknn.model import expected_agreement_exact
from tests.model.graphs import ripley_graph


def test_ripley_gets_a_range_like_the_papers():
    curve = find_beta_max(ripley_graph(), 2, random_state=0)
    assert 3.5 < curve.beta_max < 5.0
    assert curve.k_values.tolist() == [1, 2, 3, 19, 125]
    assert np.argmax(curve.crossings) == 1


def test_the_same_seed_gives_the_same_curve():
    first, second = (find_beta_max(ripley_graph(), 3, random_state=seed) for seed in (0, 0))
    assert np.array_equal(first.crossings, second.crossings)


def test_class_weights_change_the_strength_not_the_measure():
    plain = find_beta_max(ripley_graph(), 2, k_values=[3], random_state=0)
    halved = find_beta_max(ripley_graph(), 2, k_values=[3], class_weight=[0.5, 0.5], random_state=0)
    assert np.isclose(halved.crossings[0], 2 * plain.crossings[0], rtol=0.02)
    uneven = find_beta_max(ripley_graph(), 2, k_values=[3], class_weight=[0.8, 1.2], random_state=0)
    assert 2 < uneven.beta_max < plain.beta_max


def test_weights_of_one_are_no_weights():
    points = np.random.default_rng(0).normal(size=(60, 2))
    graph = NeighborGraph.from_points(points, k_max=20)
    plain = find_beta_max(graph, 3, random_state=0)
    weighted = find_beta_max(graph, 3, class_weight=np.ones(3), random_state=0)
    np.testing.assert_array_equal(weighted.crossings, plain.crossings)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_crossing_is_that_of_the_exact_curve(n_classes):
    graph = ripley_graph()

    def exact_share(beta, k):
        return expected_agreement_exact(graph, beta, k, n_classes) / (graph.n_points * k), 0.0

    exact = locate_beta_max(exact_share, [1, 2, 3], n_classes)
    found = find_beta_max(graph, n_classes, k_values=[1, 2, 3], random_state=0)
    assert np.argmax(found.crossings) == np.argmax(exact.crossings) == 1
    # The error is about .02, and beta_max is rounded up to tenths.
    assert abs(found.crossings.max() - exact.crossings.max()) < 0.1
    assert abs(found.beta_max - exact.beta_max) < 0.11


@pytest.mark.parametrize(("n_features", "n_classes"), [(2, 2), (2, 4), (10, 2)])
def test_some_of_many_points_find_the_same_place(monkeypatch, n_features, n_classes):
    points = np.random.default_rng(0).normal(size=(6000, n_features))
    graph = NeighborGraph.from_points(points, k_max=20)
    some = find_beta_max(graph, n_classes, random_state=0)
    monkeypatch.setattr("bayesknn.labels.beta_max._MOST_POINTS", 6000)
    whole = find_beta_max(graph, n_classes, random_state=0)
    assert not np.array_equal(some.crossings, whole.crossings)
    # A standard deviation of 1,000 points is .07 or so; both are rounded up to tenths.
    assert abs(some.beta_max - whole.beta_max) < 0.35


def test_k_values_may_be_an_iterator_on_many_points_too():
    graph = NeighborGraph.from_points(np.random.default_rng(0).normal(size=(2100, 2)), k_max=3)
    from_list, from_iterator = (
        find_beta_max(graph, 2, k_values=k_values, random_state=0)
        for k_values in ([1, 3], iter([1, 3]))
    )
    np.testing.assert_array_equal(from_iterator.k_values, [1, 3])
    np.testing.assert_array_equal(from_iterator.crossings, from_list.crossings)
