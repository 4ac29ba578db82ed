"""From one k to the next: log Z against exact elimination, with and without stations between."""

import functools

import numpy as np
import pytest

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.nodes import Node, lay_out
from bayesknn.model import log_normalizer_exact
from bayesknn.posterior.links import integrate_link, place_stations
from tests.statistical import check, p_value_of_z, rejects

BEFORE, AFTER = (1.6, 1), (1.3, 3)


@functools.cache
def graph():
    return NeighborGraph.from_points(np.random.default_rng(4).normal(size=(120, 2)), k_max=3)


def run_link(n_parts, seed, weights=None, n_records=300, mutant=False):
    """Integrate from BEFORE to AFTER; the mutant samples other models than it says."""
    field = lay_out(graph(), 2, weights)
    seeds = np.random.SeedSequence(seed).spawn(n_parts + 2)
    before, after = (
        Node(field, beta, k, [1, 3], seeds[-at])
        for at, (beta, k) in enumerate((BEFORE, AFTER), start=1)
    )
    for node in (before, after):
        node.advance(n_records, 50)
    between = place_stations(before, after, n_parts, seeds[:n_parts])
    for station in between:
        if mutant:
            ks, rates = station.node.layers
            station.node.layers = ks, rates * n_parts / (n_parts + 1)
        station.node.advance(n_records, 50)
    return integrate_link(before, after, 64, between)


def p_value_of_link(n_parts, weights=None, mutant=False):
    exact = log_normalizer_exact(graph(), *AFTER, 2, weights)
    exact -= log_normalizer_exact(graph(), *BEFORE, 2, weights)

    def p_value(n_runs, seed):
        links = [
            run_link(n_parts, 1000 * seed + at, weights, mutant=mutant) for at in range(n_runs)
        ]
        values = np.array([link.value[0] for link in links])
        errors = np.array([link.value.std() for link in links])
        bias = abs(values.mean() - exact) / (values.std(ddof=1) / np.sqrt(n_runs))
        # The log of a ratio of spreads: claimed against seen, each run's scatter being normal.
        ratio = np.log(np.sqrt(np.mean(errors**2)) / values.std(ddof=1))
        return p_value_of_z([bias, ratio * np.sqrt(2 * (n_runs - 1)) / 1.5])

    return p_value


@pytest.mark.parametrize("weights", [None, (0.8, 1.2)])
def test_a_path_in_parts_is_exact_and_knows_its_error(weights):
    weights = None if weights is None else np.array(weights)
    check(p_value_of_link(8, weights), 20)


def test_without_stations_the_link_says_that_it_needs_them():
    # The variance of D at both ends is about 30, in between more; 8 parts leave less than 10.
    assert run_link(1, 0).n_parts > 1
    assert run_link(8, 0).n_parts == 1


def test_stations_of_another_model_are_rejected():
    assert rejects(p_value_of_link(8, mutant=True), 20)
