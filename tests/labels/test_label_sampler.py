"""Labels drawn within a chain are, to the bit, those of the public samplers."""

import numpy as np
import pytest

from bayesknn._utils.random import spawn_keys
from bayesknn.graph import NeighborGraph
from bayesknn.labels.sampling import LabelSampler, draw_labels
from bayesknn.likelihood import CoherentLikelihood
from tests.labels.samplers import gibbs_labels, perfect_labels, swendsen_wang_labels

KEYS = spawn_keys(5, 6)
SETTINGS = [(0.4, 1), (1.3, 3), (2.0, 8), (0.0, 5), (1.1, 2), (3.0, 4)]


def make_likelihood(n_points=60, n_classes=2, class_weight=None):
    rng = np.random.default_rng(n_points)
    graph = NeighborGraph.from_points(rng.normal(size=(n_points, 2)), k_max=8)
    return CoherentLikelihood(graph, np.arange(n_points) % n_classes, n_classes, class_weight)


def draw_as_public(likelihood, method, beta, k, key, n_sweeps):
    common = {"key": key, "n_draws": 1, "class_weight": likelihood.class_weight}
    at = (likelihood.graph, beta, k, likelihood.n_classes)
    if method == "perfect":
        return perfect_labels(*at, **common)[0][0]
    common["n_warmup"] = n_sweeps - 1
    if method == "gibbs":
        return gibbs_labels(*at, **common)[0][0]
    return swendsen_wang_labels(*at, initial=likelihood.labels, **common)[0][0]


@pytest.mark.parametrize(
    ("method", "n_points", "n_classes", "class_weight"),
    [
        ("swendsen-wang", 60, 2, None),
        ("swendsen-wang", 60, 4, [0.5, 1.0, 1.5, 2.0]),
        ("swendsen-wang", 60, 2, [1.5, 1.5]),
        ("perfect", 60, 2, None),
        ("perfect", 60, 5, None),
        ("perfect", 60, 2, [0.6, 1.4]),
        ("perfect", 60, 3, [0.8, 0.8, 0.8]),
        ("gibbs", 60, 2, None),
        ("gibbs", 1200, 2, None),
        ("gibbs", 60, 2, [0.6, 1.4]),
        ("gibbs", 60, 4, None),
        ("gibbs", 60, 3, [0.6, 1.0, 1.4]),
        ("gibbs", 60, 3, [1.4, 1.4, 1.4]),
    ],
)
def test_draws_are_those_of_the_public_samplers(method, n_points, n_classes, class_weight):
    likelihood = make_likelihood(n_points, n_classes, class_weight)
    n_sweeps = None if method == "perfect" else 7
    drawer = LabelSampler(likelihood.model, likelihood.labels, method, n_sweeps).compiled()
    # One drawer for all, so that what it keeps between draws would show.
    for key, (beta, k) in zip(KEYS, SETTINGS, strict=True):
        assert draw_labels(drawer, beta, k, key) == 0
        expected = draw_as_public(likelihood, method, beta, k, key, n_sweeps)
        np.testing.assert_array_equal(drawer.labels, expected)


def test_very_strong_gibbs_draws_do_not_overflow():
    likelihood = make_likelihood(60, 3)
    draws = LabelSampler(likelihood.model, likelihood.labels, "gibbs", 20)
    drawer = draws.compiled()
    assert draw_labels(drawer, 2000.0, 2, KEYS[0]) == 0
    expected = draw_as_public(likelihood, "gibbs", 2000.0, 2, KEYS[0], 20)
    np.testing.assert_array_equal(drawer.labels, expected)
