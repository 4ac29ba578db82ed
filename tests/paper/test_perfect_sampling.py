"""Single-site coupling from the past."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn import reference
from bayesknn.datasets import load_ripley
from bayesknn.exceptions import CoalescenceError
from bayesknn.graph import NeighborGraph
from bayesknn.model import BoltzmannModel
from bayesknn.paper.perfect_sampling import (
    draw_by_sites,
    perfect_labels_by_sites,
    run_both,
    site_tables,
)
from tests.labels.cases import small_graphs, uniforms
from tests.model.enumeration import as_reference, exact_law, state_index
from tests.statistical import check, p_value_of_counts, rejects

RING = NeighborGraph.from_neighbors([[1, 2, 3, 4, 5, 0]])
CHAIN = NeighborGraph.from_neighbors([[1, 0, 1, 2], [2, 2, 0, 1]])
# Two components, of which one has a point that nobody has as neighbour.
PARTS = NeighborGraph.from_neighbors([[1, 0, 1, 4, 3, 4]])
WEIGHTS = np.array([1.0, 1.6])
KEYS = st.integers(0, 2**64 - 1).map(np.uint64)


def draw_sites(graph, beta, k, class_weight, key, draw, n_start=1, max_sweeps=2**16):
    tables = site_tables(BoltzmannModel(graph, 2, class_weight), beta, k)
    return draw_by_sites(tables, np.uint64(key), draw, n_start, max_sweeps)


@pytest.mark.parametrize("class_weight", [None, WEIGHTS, np.array([2.0, 0.3])])
@pytest.mark.parametrize("beta", [0.0, 0.7, 2.5])
def test_heat_bath_keeps_the_law(beta, class_weight):
    graph = NeighborGraph.from_neighbors([[1, 0, 1, 1, 3], [2, 2, 0, 4, 0]])
    states, law = exact_law(graph, beta, 2, 2, class_weight)
    tables = site_tables(BoltzmannModel(graph, 2, class_weight), beta, 2)
    pushed = law.copy()
    for i in range(graph.n_points):
        starts, points, degrees = tables.edges
        ones = states[:, points[starts[i] : starts[i] + degrees[i]]].sum(axis=1, dtype=int)
        thresholds = tables.table[tables.bases[i] + ones]
        # The last number stands for all of the 2**64.
        chance = thresholds.astype(float) / 2.0**64
        without = pushed + pushed[np.arange(len(states)) ^ (1 << (graph.n_points - 1 - i))]
        pushed = np.where(states[:, i] == 1, chance, 1 - chance) * without
    np.testing.assert_allclose(pushed, law, rtol=0, atol=1e-12)


@given(
    graph=small_graphs(),
    beta=st.floats(0, 1.5),
    weighted=st.booleans(),
    key=KEYS,
    draw=st.integers(0, 2**31 - 1),
)
def test_same_labels_as_the_reference(graph, beta, weighted, key, draw):
    class_weight = WEIGHTS if weighted else None
    k = graph.k_max
    labels, _, n_apart = draw_sites(graph, beta, k, class_weight, key, draw)
    assert n_apart == 0
    near, a = as_reference(graph, 2, class_weight)
    expected = reference.perfect_labels_of_two_classes(
        # The kernel gives the low numbers to class 1.
        near, a, beta, k, lambda t: 1 - uniforms(key, (draw << 32) | t, graph.n_points)
    )  # fmt: skip
    np.testing.assert_array_equal(labels, expected)


@given(graph=small_graphs(), beta=st.floats(0, 1.5), key=KEYS, n_start=st.integers(1, 40))
def test_further_back_is_the_same_draw(graph, beta, key, n_start):
    once = draw_sites(graph, beta, graph.k_max, WEIGHTS, key, 0)[0]
    again = draw_sites(graph, beta, graph.k_max, WEIGHTS, key, 0, n_start=n_start)[0]
    np.testing.assert_array_equal(once, again)


@pytest.fixture(scope="module")
def ripley():
    return NeighborGraph.from_points(load_ripley().X_train, k_max=13)


def test_further_back_on_ripley(ripley):
    for draw in range(5):
        labels, n_sweeps, _ = draw_sites(ripley, 1.2, 13, None, 7, draw)
        further = draw_sites(ripley, 1.2, 13, None, 7, draw, n_start=3 * n_sweeps)
        assert further[1] == 3 * n_sweeps
        np.testing.assert_array_equal(further[0], labels)


@pytest.mark.parametrize("class_weight", [None, WEIGHTS])
def test_order_never_breaks_on_ripley(ripley, class_weight):
    tables = site_tables(BoltzmannModel(ripley, 2, class_weight), 1.45, 13)
    lower, upper = np.empty((2, ripley.n_points), np.uint8)
    for n_sweeps in range(1, 200):
        run_both(tables, np.uint64(5), np.uint64(0), n_sweeps, lower, upper)
        assert np.all(lower <= upper)


def test_a_past_too_short_is_told(ripley):
    _, n_sweeps, n_apart = draw_sites(ripley, 2.0, 13, None, 1, 0, max_sweeps=100)
    assert (n_sweeps, n_apart > 0) == (100, True)


# Named mutants.


def broken_draw(mutant, beta, a, u):
    """Draw perfectly as the reference does, by sweeps with a mistake."""
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
    _, law = exact_law(CHAIN, 0.5, 2, 2, WEIGHTS)

    def p_value(n_draws, seed):
        draws = [
            broken_draw(mutant, 0.5, WEIGHTS, reference.replayable(n_draws * seed + draw, 4))
            for draw in range(n_draws)
        ]
        return p_value_of_counts(np.bincount(state_index(draws, 2), minlength=16), law)

    return p_value


def test_a_draw_without_a_mistake_has_the_law():
    check(p_value_of_draw(None), n_draws=400)


@pytest.mark.mutant
@pytest.mark.parametrize(
    "mutant", ["beta not divided by k", "no reverse neighbours", "weights of the other class"]
)
def test_mutants_are_rejected(mutant):
    assert rejects(p_value_of_draw(mutant), n_draws=400)


def test_tie_break_through_the_field_breaks_the_order():
    with pytest.raises(AssertionError, match="order of the chains broke"):
        for draw in range(20):
            u = reference.replayable(draw, 4)
            broken_draw("tie-break through |h|", 0.5, np.ones(2), u)


def lengthen(tables, key, draw, fresh):
    """Draw with a past that grows sweep by sweep, with the same or, wrongly, with fresh numbers."""
    lower, upper = np.empty((2, len(tables.bases)), np.uint8)
    n_sweeps = 0
    while n_sweeps == 0 or (lower != upper).any():
        n_sweeps += 1
        stream = (int(key) + (n_sweeps if fresh else 0)) % 2**64
        run_both(tables, np.uint64(stream), np.uint64(draw), n_sweeps, lower, upper)
    return lower


def p_value_of_past(fresh):
    _, law = exact_law(RING, 1.2, 1, 2)
    tables = site_tables(BoltzmannModel(RING, 2), 1.2, 1)

    def p_value(n_draws, seed):
        key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        labels = np.array([lengthen(tables, key, d, fresh) for d in range(n_draws)])
        return p_value_of_counts(np.bincount(state_index(labels, 2), minlength=64), law)

    return p_value


@pytest.mark.mutant
def test_fresh_numbers_are_rejected():
    check(p_value_of_past(fresh=False), n_draws=20_000)
    assert rejects(p_value_of_past(fresh=True), n_draws=20_000)


# The front.


def p_value_of_front(beta, class_weight, drawn=None):
    _, law = exact_law(CHAIN, beta, 2, 2, class_weight)
    model = BoltzmannModel(CHAIN, 2, class_weight if drawn is None else drawn)

    def p_value(n_draws, seed):
        key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        labels, _ = perfect_labels_by_sites(model, beta, 2, key=key, n_draws=n_draws)
        return p_value_of_counts(np.bincount(state_index(labels, 2), minlength=16), law)

    return p_value


@pytest.mark.parametrize("class_weight", [None, WEIGHTS])
def test_the_front_has_the_law(class_weight):
    check(p_value_of_front(1.2, class_weight), n_draws=4000)
    assert rejects(p_value_of_front(1.2, class_weight, drawn=[1.6, 1.0]), n_draws=4000)


def test_the_front_refuses_a_past_too_short(ripley):
    key = np.uint64(1)
    with pytest.raises(
        CoalescenceError, match="points were still apart after a past of 64"
    ) as caught:
        perfect_labels_by_sites(BoltzmannModel(ripley, 2), 2.0, 13, key=key, max_sweeps=64)
    assert caught.value.n_sweeps == 64 and 0 < caught.value.n_apart <= 250
