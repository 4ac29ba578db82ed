"""What draws at one k say of another: a plain twin, and exact values by enumeration."""

import numpy as np
import pytest
from scipy.special import logsumexp

from bayesknn.likelihood.nodes import Node, lay_out
from bayesknn.likelihood.tilt import average_tilted, read_tilt
from bayesknn.model import log_normalizer_exact
from bayesknn.model.statistics import agreement
from tests.model.enumeration import exact_law
from tests.model.graphs import random_graph
from tests.statistical import check, p_value_of_z, rejects

GRAPH = random_graph(np.random.default_rng(5), n=6, k_max=3)
BETA, K = 1.1, 2


def twin(of_labels, of_clusters, columns, own, beta):
    """Return log ratio, mean and variance at each k from all records, as the docstring says."""
    x, of_clusters = of_labels / columns, (of_clusters / columns).mean(axis=(0, 1))
    d = beta * (x - x[:, :, [own]])
    log_ratio = logsumexp(d, axis=(0, 1)) - np.log(d.shape[0] * d.shape[1])
    weight = np.exp(d - log_ratio) / (d.shape[0] * d.shape[1])
    mean = (weight * x).sum(axis=(0, 1))
    variance = (weight * (x - mean) ** 2).sum(axis=(0, 1))
    noise = x.mean(axis=(0, 1)) - of_clusters
    return log_ratio - beta * (noise - noise[own]), mean - noise, variance


@pytest.mark.parametrize("n_batches", [1, 4, 6])
def test_averages_are_those_of_the_twin(n_batches):
    rng = np.random.default_rng(n_batches)
    columns, own = np.array([3, 5, 9]), 1
    of_labels = rng.normal(50, 3, size=(2, 14, 3)) * columns
    of_clusters = of_labels + rng.normal(0, 2, size=of_labels.shape)
    centre = np.array([50.0, 49.0, 51.0])
    batches = average_tilted(of_labels, of_clusters, columns, centre, own, 0.7, n_batches)
    assert batches.shape == (2, n_batches, 3, 6)
    found = read_tilt(batches.mean(axis=(0, 1))[None], own, 0.7, centre)
    # Records that do not fill the batches are left out at the beginning.
    used = slice(14 % n_batches, None)
    for ours, theirs in zip(
        found, twin(of_labels[:, used], of_clusters[:, used], columns, own, 0.7), strict=True
    ):
        assert np.allclose(ours[0], theirs)
    # Constants that are taken away for the sake of rounding change nothing.
    moved = average_tilted(of_labels, of_clusters, columns, centre + 0.3, own, 0.7, n_batches)
    again = read_tilt(moved.mean(axis=(0, 1))[None], own, 0.7, centre + 0.3)
    assert all(np.allclose(a, b) for a, b in zip(found, again, strict=True))


def p_value_of_tilt(weights=None, n_classes=3, scale=1.0):
    """Scores of nodes at k = 2 for k = 1, 2, 3 against exact values; ``scale`` makes a mutant."""
    exact = {"log_ratio": [], "mean": [], "variance": []}
    own = log_normalizer_exact(GRAPH, BETA, K, n_classes, weights)
    for k in (1, 2, 3):
        states, law = exact_law(GRAPH, BETA, k, n_classes, weights)
        s = agreement(GRAPH, states, class_weight=weights)[:, k - 1] / k
        exact["log_ratio"].append(log_normalizer_exact(GRAPH, BETA, k, n_classes, weights) - own)
        exact["mean"].append(law @ s)
        exact["variance"].append(law @ (s - law @ s) ** 2)

    def p_value(n_nodes, seed):
        rows = []
        for place in range(n_nodes):
            seeds = np.random.SeedSequence([seed, place])
            node = Node(lay_out(GRAPH, n_classes, weights), scale * BETA, K, [1, 2, 3], seeds)
            node.advance(4096, n_warmup=50)
            node.beta = BETA
            tilt = node.tilt(2)
            rows.append([getattr(tilt, name)[0] - exact[name] for name in exact])
        rows = np.array(rows)
        spread = rows.std(axis=0, ddof=1)
        # The log of a mean is off by half its variance, 4096 records make that small.
        away = np.maximum(np.abs(rows.mean(axis=0)) - 0.05 * spread, 0.0)
        z = away / np.maximum(spread / np.sqrt(n_nodes), 1e-12)
        return p_value_of_z(z.ravel())

    return p_value


@pytest.mark.parametrize("weights", [None, np.array([0.5, 1.0, 1.4]), np.array([1.3, 1.3, 1.3])])
def test_tilted_draws_know_the_other_k(weights):
    check(p_value_of_tilt(weights), 40)


def test_draws_at_another_beta_are_rejected():
    assert rejects(p_value_of_tilt(scale=1.1), 40)
