"""Models between two k: one layer is the plain sweep, two have the law that enumeration gives."""

import numpy as np
import pytest

from bayesknn.graph import NeighborGraph
from bayesknn.labels.swendsen_wang import new_workspace, sweep_clusters, sweep_layers
from bayesknn.model import BoltzmannModel
from tests.model.enumeration import exact_law
from tests.model.graphs import random_graph
from tests.statistical import check, p_value_of_z, rejects

GRAPH = random_graph(np.random.default_rng(5), n=6, k_max=3)
KEY = np.uint64(7)


@pytest.mark.parametrize("weights", [None, np.array([0.6, 1.0, 1.3])])
@pytest.mark.parametrize("capacity", [0, 50])
def test_one_layer_is_the_plain_sweep(weights, capacity):
    points = np.random.default_rng(1).normal(size=(2500, 2))
    neighbors = NeighborGraph.from_points(points, k_max=8).neighbors
    start = np.random.default_rng(2).integers(3, size=2500).astype(np.uint8)
    plain, layered = start.copy(), start.copy()
    workspace = new_workspace(start, 3, weights is not None, capacity)
    for sweep in np.arange(3, dtype=np.uint64):
        sweep_clusters(neighbors, 8, 1.6, 3, weights, KEY, sweep, plain, workspace)
        sweep_layers(
            neighbors, np.array([8]), np.array([0.2]), 3, weights, KEY, sweep, layered, workspace
        )
        assert np.array_equal(plain, layered)
    assert not np.array_equal(plain, start)


def p_value_of_layers(weights=None, scale=1.0):
    """Scores of the means of S_1, S_2, S_3 and their squares under a model of S_1 and S_3."""
    ks, rates = np.array([1, 3]), np.array([0.5, 0.3])
    states, uniform = exact_law(GRAPH, 0.0, 1, 3)
    assert np.allclose(uniform, uniform[0])
    model = BoltzmannModel(GRAPH, 3, weights)
    s = model.agreement(states)
    law = np.exp(s[:, ks - 1] @ rates)
    law /= law.sum()
    exact = np.concatenate([law @ s, law @ s**2])

    def p_value(n_chains, seed):
        rows = []
        for place in range(n_chains):
            labels = np.zeros(6, np.uint8)
            workspace = new_workspace(labels, 3, weights is not None)
            key = np.random.SeedSequence([seed, place]).generate_state(1, np.uint64)[0]
            draws = []
            for sweep in np.arange(300, dtype=np.uint64):
                sweep_layers(
                    GRAPH.neighbors, ks, scale * rates, 3, weights, key, sweep, labels, workspace
                )
                draws.append(labels.copy())
            drawn = model.agreement(np.array(draws[50:]))
            rows.append(np.concatenate([drawn.mean(axis=0), (drawn**2).mean(axis=0)]) - exact)
        rows = np.array(rows)
        return p_value_of_z(rows.mean(axis=0) / (rows.std(axis=0, ddof=1) / np.sqrt(n_chains)))

    return p_value


@pytest.mark.parametrize("weights", [None, np.array([0.5, 1.0, 1.4])])
def test_two_layers_have_the_law_of_their_sum(weights):
    check(p_value_of_layers(weights), 80)


def test_other_rates_are_rejected():
    assert rejects(p_value_of_layers(scale=1.15), 80)
