"""Nodes: E[S] and Var[S] against exact values, and the sign of a first-order transition."""

import numpy as np
import pytest

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.nodes import Node, lay_out
from bayesknn.model.statistics import agreement
from tests.model.enumeration import enumerate_expected_agreement, exact_law
from tests.model.graphs import random_graph, ripley_graph
from tests.statistical import check, p_value_of_z, rejects

GRAPH = random_graph(np.random.default_rng(5), n=6, k_max=3)


def p_value_of_moments(beta=1.1, weights=None, shift=0.0):
    states, law = exact_law(GRAPH, 1.1, 2, 3, weights)
    exact = agreement(GRAPH, states, class_weight=weights)[:, [0, 1, 2]].astype(float)
    mean = law @ exact
    variance = law @ (exact - mean) ** 2

    def p_value(n_nodes, seed):
        # Many short nodes: their averages are normal whatever a single one is.
        rows = []
        for place in range(n_nodes):
            seeds = np.random.SeedSequence([seed, place])
            node = Node(lay_out(GRAPH, 3, weights), beta, 2, [1, 2, 3], seeds)
            node.advance(64, n_warmup=50)
            of_labels = node.of_labels.mean(axis=(0, 1))
            squares = ((node.of_labels - mean) ** 2).mean(axis=(0, 1))
            rows.append(
                np.concatenate([node.mean() + shift - mean, of_labels - mean, squares - variance])
            )
        rows = np.array(rows)
        return p_value_of_z(rows.mean(axis=0) / (rows.std(axis=0, ddof=1) / np.sqrt(n_nodes)))

    return p_value


@pytest.mark.parametrize("weights", [None, np.array([0.5, 1.0, 1.4]), np.array([1.3, 1.3, 1.3])])
def test_moments_are_exact(weights):
    check(p_value_of_moments(weights=weights), 200)


def test_another_beta_is_rejected():
    assert rejects(p_value_of_moments(beta=1.3), 200)


def test_exact_mean_is_what_enumeration_says():
    states, law = exact_law(GRAPH, 1.1, 2, 3)
    assert np.isclose(
        law @ agreement(GRAPH, states, 2), enumerate_expected_agreement(GRAPH, 1.1, 2, 3)
    )


def test_replicates_spread_like_repeated_nodes():
    field = lay_out(ripley_graph(), 2, None)
    nodes = [Node(field, 1.0, 10, [10], np.random.SeedSequence([3, s])) for s in range(60)]
    for node in nodes:
        node.advance(256, n_warmup=50)
    spread = np.std([node.mean()[0] for node in nodes], ddof=1)
    claimed = np.sqrt(np.mean([10**2 * node.tilt(64).mean[1:, 0].var() for node in nodes]))
    assert 0.6 < claimed / spread < 1.6


def test_replicates_are_those_of_all_records_so_far():
    node = Node(lay_out(ripley_graph(), 2, None), 1.0, 10, [10], np.random.SeedSequence(3))
    node.advance(64, n_warmup=20)
    first = node.tilt(64)
    assert node.tilt(64) is first
    assert len(node.tilt(8).mean) == 8
    node.advance(64)
    assert not np.array_equal(node.tilt(64).mean, first.mean)
    assert np.isclose(10 * node.tilt(64).mean[0, 0], node.mean()[0])


def test_a_combination_of_columns_is_that_of_its_series():
    node = Node(lay_out(ripley_graph(), 2, None), 1.0, 10, [8, 10, 12], np.random.SeedSequence(3))
    node.advance(64, n_warmup=20)
    weights = np.array([0.2, -0.5, 1.0])
    mean, variance = node.combine(weights, 64)
    assert np.isclose(mean[0], weights @ node.mean())
    assert np.isclose(variance[0], (node.of_labels @ weights).var())
    # One column alone is what tilting at the node's own k says, in every replicate.
    mean, variance = node.combine(np.array([0.0, 0.1, 0.0]), 64)
    assert np.allclose(mean, node.tilt(64).mean[:, 1])
    assert np.allclose(variance, node.tilt(64).variance[:, 1])


def test_a_k_that_is_not_recorded_is_refused():
    node = Node(lay_out(GRAPH, 3, None), 1.0, 2, [1, 3], np.random.SeedSequence(0))
    with pytest.raises(KeyError, match="S at k=2 is not recorded"):
        node.column(2)


def test_a_first_order_transition_shows():
    # KERNELS: dense, high-dimensional graphs and many classes; hot and cold chains stay apart.
    points = np.random.default_rng(0).normal(size=(1000, 10))
    field = lay_out(NeighborGraph.from_points(points, k_max=100), 10, None)
    split = Node(field, 2.4, 100, [100], np.random.SeedSequence(1))
    split.advance(64, n_warmup=20)
    assert split.is_split()
    met = Node(field, 1.0, 100, [100], np.random.SeedSequence(1))
    met.advance(64, n_warmup=20)
    assert not met.is_split()
