"""The far end of a path: P(monochrome) against enumeration."""

import numpy as np
import pytest

from bayesknn.graph import NeighborGraph, find_components
from bayesknn.log_z import estimate
from bayesknn.log_z.chains import ChainPair
from bayesknn.log_z.records import Setting
from bayesknn.model import BoltzmannModel
from tests.model.enumeration import enumerate_log_normalizer, exact_law
from tests.statistical import check, p_value_of_z, rejects

# Two components, of 5 and of 3 points.
GRAPH = NeighborGraph.from_neighbors([[1, 0, 1, 2, 3, 6, 5, 6], [2, 2, 4, 4, 2, 7, 7, 5]])
BETA = 2.0
WEIGHTS = [None, np.array([1.2, 1.2, 1.2]), np.array([0.6, 1.0, 1.4])]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_weight_over_chance_is_the_constant(weights):
    components = find_components(GRAPH.neighbors[:2])
    states, law = exact_law(GRAPH, BETA, 2, 3, weights)
    alike = np.all([np.ptp(states[:, components == c], axis=1) == 0 for c in (0, 1)], axis=0)
    model = BoltzmannModel(GRAPH, 3, weights)
    found = estimate.log_monochrome_weight(model, components, BETA) - np.log(law[alike].sum())
    assert found == pytest.approx(enumerate_log_normalizer(GRAPH, BETA, 2, 3, weights))


def p_value_of_ends(weights):
    exact = enumerate_log_normalizer(GRAPH, BETA, 2, 3, weights)

    def p_value(n_ends, seed):
        model = BoltzmannModel(GRAPH, 3, weights)
        scores = []
        for at in range(n_ends):
            pair = ChainPair(
                model, Setting.at(BETA, 2), [2], np.random.SeedSequence([seed, at]),
                length=20, components=find_components(GRAPH.neighbors[:2]),
            )  # fmt: skip
            pair.advance(2000)
            values = estimate.log_z_from_monochrome(pair)
            scores.append((values[0] - exact) / values[1:].std())
        return p_value_of_z(np.sum(scores) / np.sqrt(n_ends) / 1.1)

    return p_value


@pytest.mark.parametrize("weights", WEIGHTS)
def test_estimate_is_unbiased(weights):
    check(p_value_of_ends(weights), 20)


def test_components_taken_for_one_are_rejected(monkeypatch):
    # The chance is that of two monochrome components, the weight that of one.
    monkeypatch.setattr(
        estimate,
        "log_monochrome_weight",
        lambda model, components, beta: beta * len(components) + np.log(3),
    )
    assert rejects(p_value_of_ends(None), 20)
