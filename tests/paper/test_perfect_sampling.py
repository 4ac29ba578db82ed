"""Tests of perfect sampling by coupled Gibbs sweeps."""

import contextlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn import reference
from bayesknn.datasets import load_ripley
from bayesknn.exceptions import CoalescenceError
from bayesknn.graph import NeighborGraph
from bayesknn.model import BoltzmannModel
from bayesknn.paper.perfect_sampling import perfect_labels_by_sites
from tests.labels.cases import small_graphs, uniforms
from tests.model.enumeration import as_reference, exact_law, state_index
from tests.statistical import check, p_value_of_counts, rejects

RING = NeighborGraph.from_neighbors([[1, 2, 3, 4, 5, 0]])
CHAIN = NeighborGraph.from_neighbors([[1, 0, 1, 2], [2, 2, 0, 1]])
# A graph of two components. Points 2 and 5 are neighbour of no other point.
PARTS = NeighborGraph.from_neighbors([[1, 0, 1, 4, 3, 4]])
WEIGHTS = np.array([1.0, 1.6])
KEYS = st.integers(0, 2**64 - 1).map(np.uint64)


def replay(key, draw, n):
    """Return u(t) of one draw for the reference, where large numbers give class 1, not small."""
    return lambda t: 1 - uniforms(key, (draw << 32) | t, n)


@given(graph=small_graphs(), beta=st.floats(0, 1.5), weighted=st.booleans(), key=KEYS)
def test_same_labels_as_the_reference(graph, beta, weighted, key):
    class_weight, k = WEIGHTS if weighted else None, graph.k_max
    model = BoltzmannModel(graph, 2, class_weight)
    labels, _ = perfect_labels_by_sites(model, beta, k, key=key, n_draws=3)
    near, a = as_reference(graph, 2, class_weight)
    for draw, drawn in enumerate(labels):
        u = replay(key, draw, graph.n_points)
        expected = reference.perfect_labels_of_two_classes(near, a, beta, k, u)
        np.testing.assert_array_equal(drawn, expected)


@given(
    graph=small_graphs(),
    beta=st.floats(0, 1.5),
    key=KEYS,
    further=st.integers(0, 20),
    start=st.integers(0, 2**32 - 1),
)
def test_further_back_is_the_same_draw(graph, beta, key, further, start):
    n, k = graph.n_points, graph.k_max
    model = BoltzmannModel(graph, 2, WEIGHTS)
    (labels,), (n_sweeps,) = perfect_labels_by_sites(model, beta, k, key=key)
    near, a = as_reference(graph, 2, WEIGHTS)
    # The start is an arbitrary label vector instead of all 0 or all 1.
    y, u = (start >> np.arange(n)) % 2, replay(key, 0, n)
    for t in range(n_sweeps + further, 0, -1):
        y = reference.gibbs_sweep(near, a, y, beta, k, u(t))
    np.testing.assert_array_equal(labels, y)


@pytest.fixture(scope="module")
def ripley():
    return NeighborGraph.from_points(load_ripley().X_train, k_max=13)


def test_same_labels_as_the_reference_on_ripley(ripley):
    (labels,), (n_sweeps,) = perfect_labels_by_sites(
        BoltzmannModel(ripley, 2, WEIGHTS), 1.0, 13, key=np.uint64(7)
    )
    assert n_sweeps >= 8
    # The reference also asserts that every sweep preserves the order of the two chains.
    near, a = as_reference(ripley, 2, WEIGHTS)
    u = replay(np.uint64(7), 0, 250)
    expected = reference.perfect_labels_of_two_classes(near, a, 1.0, 13, u)
    np.testing.assert_array_equal(labels, expected)


# Mutants of the sampler.


def broken_draw(mutant, beta, a, u):
    """Return a draw by coupling from the past with the mistake ``mutant`` in its Gibbs sweeps."""
    A = reference.adjacency(as_reference(CHAIN, 2)[0], 2)
    weights = A if mutant == "no reverse neighbours" else A + A.T
    strength = beta if mutant == "beta not divided by k" else beta / 2
    a = a[::-1] if mutant == "weights of the other class" else a

    def sweep(y, t):
        y = y.copy()
        for i in range(4):
            p = reference.softmax(strength * a * reference.count_classes(weights[i], y, 2))
            y[i] = reference.choose(p, u(t)[i])
            if mutant == "tie-break through |h|" and p[1] >= p[0]:
                y[i] = 1 - reference.choose(p[::-1], u(t)[i])
        return y

    zeros = np.zeros(4, int)
    return reference.couple_from_the_past(sweep, zeros, zeros + 1)


def p_value_of_draw(mutant):
    _, distribution = exact_law(CHAIN, 0.5, 2, 2, WEIGHTS)

    def p_value(n_draws, seed):
        draws = [
            broken_draw(mutant, 0.5, WEIGHTS, reference.replayable(n_draws * seed + draw, 4))
            for draw in range(n_draws)
        ]
        return p_value_of_counts(np.bincount(state_index(draws, 2), minlength=16), distribution)

    return p_value


def test_a_draw_without_a_mistake_has_the_distribution():
    check(p_value_of_draw(None), n_draws=400)


@pytest.mark.mutant
@pytest.mark.parametrize(
    "mutant", ["beta not divided by k", "no reverse neighbours", "weights of the other class"]
)
def test_mutants_are_rejected(mutant):
    assert rejects(p_value_of_draw(mutant), n_draws=400)


def test_tie_break_through_the_field_breaks_the_order():
    with pytest.raises(AssertionError, match="not monotone"):
        for draw in range(20):
            u = reference.replayable(draw, 4)
            broken_draw("tie-break through |h|", 0.5, np.ones(2), u)


def draw_with_fresh_numbers(model, beta, key):
    """Return a biased draw: every restart of the chains uses new random numbers."""
    for n_sweeps in itertools.count(1):
        stream = np.uint64((int(key) + n_sweeps) % 2**64)
        with contextlib.suppress(CoalescenceError):
            return perfect_labels_by_sites(model, beta, 1, key=stream, max_sweeps=n_sweeps)[0][0]
    return None


def p_value_of_past(fresh):
    _, distribution = exact_law(RING, 1.2, 1, 2)
    model = BoltzmannModel(RING, 2)

    def p_value(n_draws, seed):
        if fresh:
            keys = np.random.SeedSequence(seed).generate_state(n_draws, np.uint64)
            labels = np.array([draw_with_fresh_numbers(model, 1.2, key) for key in keys])
        else:
            key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
            labels, _ = perfect_labels_by_sites(model, 1.2, 1, key=key, n_draws=n_draws)
        return p_value_of_counts(np.bincount(state_index(labels, 2), minlength=64), distribution)

    return p_value


@pytest.mark.mutant
def test_fresh_numbers_are_rejected():
    check(p_value_of_past(fresh=False), n_draws=100_000)
    assert rejects(p_value_of_past(fresh=True), n_draws=100_000)


# The function perfect_labels_by_sites.


def p_value_of_labels(beta, class_weight, drawn=None):
    _, distribution = exact_law(CHAIN, beta, 2, 2, class_weight)
    model = BoltzmannModel(CHAIN, 2, class_weight if drawn is None else drawn)

    def p_value(n_draws, seed):
        key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        labels, _ = perfect_labels_by_sites(model, beta, 2, key=key, n_draws=n_draws)
        return p_value_of_counts(np.bincount(state_index(labels, 2), minlength=16), distribution)

    return p_value


@pytest.mark.parametrize("class_weight", [None, WEIGHTS])
def test_perfect_labels_have_the_distribution(class_weight):
    check(p_value_of_labels(1.2, class_weight), n_draws=4000)
    assert rejects(p_value_of_labels(1.2, class_weight, drawn=[1.6, 1.0]), n_draws=4000)


def test_too_few_sweeps_raise(ripley):
    key = np.uint64(1)
    with pytest.raises(CoalescenceError, match="labels still differ after 64") as caught:
        perfect_labels_by_sites(BoltzmannModel(ripley, 2), 2.0, 13, key=key, max_sweeps=64)
    assert caught.value.n_sweeps == 64 and 0 < caught.value.n_apart <= 250
