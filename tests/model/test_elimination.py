"""Exact log Z and E[S]: known values, closed forms, and enumeration as the slow twin."""

import math

import numpy as np
import pytest
from hypothesis import given

from bayesknn.graph import NeighborGraph
from bayesknn.model import (
    expected_agreement_exact,
    log_normalizer_exact,
)
from tests.model.enumeration import (
    enumerate_expected_agreement,
    enumerate_log_normalizer,
)
from tests.model.graphs import complete, random_graph, ring, ripley_graph, small_models

# Computed independently: log Z at beta = 1, 2, 4.
RIPLEY = {
    1: (343.41246357, 567.41240750, 1055.79773501),
    3: (320.67087178, 521.41875105, 1003.37011407),
    5: (314.17766595, 511.46919279, 1001.05894886),
}


@pytest.mark.parametrize("k", RIPLEY)
def test_log_z_on_ripley_to_all_printed_digits(k):
    values = log_normalizer_exact(ripley_graph(), [1.0, 2.0, 4.0], k, n_classes=2)
    np.testing.assert_allclose(values, RIPLEY[k], rtol=0, atol=1e-8)


@given(small_models())
def test_elimination_equals_enumeration(model):
    graph, beta, k, n_classes, weights = model
    exact = log_normalizer_exact(graph, beta, k, n_classes, weights)
    listed = enumerate_log_normalizer(graph, beta, k, n_classes, weights)
    assert exact == pytest.approx(listed, abs=1e-9, rel=0)
    exact = expected_agreement_exact(graph, beta, k, n_classes, weights)
    listed = enumerate_expected_agreement(graph, beta, k, n_classes, weights)
    assert exact == pytest.approx(listed, abs=1e-9, rel=0)


def test_wide_tables_equal_enumeration():
    """Scopes of many points, which small graphs do not have."""
    rng = np.random.default_rng(2)
    for n, k, n_classes in [(15, 9, 2), (10, 7, 3), (8, 7, 4)]:
        graph = random_graph(rng, n, k)
        weights = rng.uniform(0.5, 2, n_classes)
        exact = log_normalizer_exact(graph, [0.7, 2.0], k, n_classes, weights)
        listed = enumerate_log_normalizer(graph, [0.7, 2.0], k, n_classes, weights)
        np.testing.assert_allclose(exact, listed, rtol=0, atol=1e-9)
        exact = expected_agreement_exact(graph, [0.7, 2.0], k, n_classes, weights)
        listed = enumerate_expected_agreement(graph, [0.7, 2.0], k, n_classes, weights)
        np.testing.assert_allclose(exact, listed, rtol=0, atol=1e-9)


@pytest.mark.parametrize("q", [2, 3, 5, 40])
@pytest.mark.parametrize("n", [3, 8, 65])
def test_the_ring(n, q):
    for beta in (0.0, 0.3, 1.0, 2.5):
        grown, shrunk = np.exp(beta) + q - 1, np.exp(beta) - 1
        expected = n * np.log(grown) + np.log1p((q - 1) * (shrunk / grown) ** n)
        assert log_normalizer_exact(ring(n), beta, 1, q) == pytest.approx(expected, rel=1e-12)


def compositions(n, parts):
    if parts == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, parts - 1):
            yield (first, *rest)


@pytest.mark.parametrize(("n", "n_classes"), [(12, 2), (8, 3), (6, 4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_complete_graph_by_class_counts(n, n_classes, weighted):
    weights = np.linspace(0.6, 1.7, n_classes) if weighted else np.ones(n_classes)
    for beta in (0.5, 1.0, 3.0):
        terms = []
        for sizes in compositions(n, n_classes):
            ways = math.lgamma(n + 1) - sum(math.lgamma(size + 1) for size in sizes)
            total = sum(a * size * (size - 1) for a, size in zip(weights, sizes, strict=True))
            terms.append(ways + beta / (n - 1) * total)
        expected = np.logaddexp.reduce(terms)
        value = log_normalizer_exact(
            complete(n), beta, n - 1, n_classes, weights if weighted else None
        )
        assert value == pytest.approx(expected, rel=1e-12)


def test_both_ends_of_the_path():
    graph = ripley_graph()
    weights = [0.7, 1.9]
    for k in (1, 2, 4):
        assert log_normalizer_exact(graph, 0.0, k, 3) == pytest.approx(250 * np.log(3))
        mean = expected_agreement_exact(graph, 0.0, k, 2, weights)
        assert mean == pytest.approx(250 * k * np.mean(weights) / 2)
    # The graph of k = 5 is connected: log Z - n beta tends to log G.
    for beta in (60.0, 1e4, 1e8):
        value = log_normalizer_exact(graph, beta, 5, 2) - 250 * beta
        assert value == pytest.approx(np.log(2), abs=1e-9 + 1e-15 * 250 * beta * 250)
        assert expected_agreement_exact(graph, beta, 5, 2) == pytest.approx(1250)
    # With weights the heaviest class takes all.
    value = log_normalizer_exact(graph, 60.0, 5, 2, weights)
    assert value == pytest.approx(1.9 * 250 * 60, rel=1e-12)


def test_components_add_up():
    rng = np.random.default_rng(7)
    one, other = random_graph(rng, 6, 2), random_graph(rng, 9, 2)
    both = NeighborGraph.from_neighbors(np.hstack([one.neighbors, other.neighbors + 6]))
    for function in (log_normalizer_exact, expected_agreement_exact):
        total = function(one, 1.3, 2, 3) + function(other, 1.3, 2, 3)
        assert function(both, 1.3, 2, 3) == pytest.approx(total, rel=1e-13)


@pytest.mark.parametrize("k", [1, 4, 6])
def test_the_mean_is_the_derivative_of_log_z(k):
    graph = ripley_graph()
    step = 1e-3
    betas = 1.7 + step * np.array([-2, -1, 1, 2])
    log_z = log_normalizer_exact(graph, betas, k, 2, [0.8, 1.2])
    slope = (log_z[0] - 8 * log_z[1] + 8 * log_z[2] - log_z[3]) / (12 * step)
    mean = expected_agreement_exact(graph, 1.7, k, 2, [0.8, 1.2])
    assert mean == pytest.approx(k * slope, rel=1e-8)


def test_a_curve_is_the_same_as_its_points():
    graph = ripley_graph()
    betas = np.linspace(0, 4, 6).reshape(2, 3)
    for function in (log_normalizer_exact, expected_agreement_exact):
        curve = function(graph, betas, 4, 2)
        assert curve.shape == (2, 3)
        assert curve[1, 2] == pytest.approx(function(graph, 4.0, 4, 2), rel=1e-12)
        assert isinstance(function(graph, 4.0, 4, 2), float)


def test_it_refuses_when_it_would_not_fit():
    graph = ripley_graph()
    message = (
        r"exact elimination at k=20 has induced width 3\d, a table of 2\^3\d entries: "
        r"\d\S* GB of memory in all where 2.15 are allowed; use a smaller k"
    )
    with pytest.raises(ValueError, match=message):
        log_normalizer_exact(graph, 1.0, 20, 2)
    with pytest.raises(ValueError, match=r"k=5 has induced width 1\d, .* where 1e-06 are allowed"):
        log_normalizer_exact(graph, 1.0, 5, 2, max_bytes=1000)


def test_the_mean_needs_twice_the_room():
    assert log_normalizer_exact(ring(5), 1.0, 1, 2, max_bytes=16 * 8) > 0
    with pytest.raises(ValueError, match="2.56e-07 GB of memory in all where 1.28e-07 are"):
        expected_agreement_exact(ring(5), 1.0, 1, 2, max_bytes=16 * 8)


@pytest.mark.parametrize("function", [log_normalizer_exact, expected_agreement_exact])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, 1, 2), "beta must be at least 0, got -1.0"),
        (([0.0, np.inf], 1, 2), "beta must be finite, got inf"),
        ((1.0, 2, 2), "k must be"),
        ((1.0, 0, 2), "k must be"),
        ((1.0, 1, 1), "n_classes must be an integer >= 2, got 1"),
        ((1.0, 1, 2, [1.0, 1.0, 1.0]), "class_weight must hold 2 numbers"),
        ((1.0, 1, 2, [1.0, 0.0]), "class_weight must be finite and positive"),
    ],
)
def test_bad_arguments(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(ring(4), *arguments)
