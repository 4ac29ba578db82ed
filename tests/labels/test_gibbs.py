"""Gibbs: invariance by enumeration, and the sweeps of the reference."""

import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn import reference
from bayesknn.labels import gibbs
from bayesknn.labels.gibbs import list_edges
from tests.labels.cases import (
    betas,
    graphs,
    keys,
    random_graph,
    star,
    start_labels,
    uniforms,
)
from tests.labels.samplers import gibbs_labels
from tests.model.enumeration import as_reference, exact_law, state_index

KEY = np.uint64(2024)


def sweep_by_reference(graph, beta, k, n_classes, key, n_sweeps, class_weight=None):
    """Return the labels after every sweep of the reference with the kernel's numbers."""
    near, a = as_reference(graph, n_classes, class_weight)
    labels = np.array(start_labels(key, range(graph.n_points), n_classes))
    states = []
    for sweep in range(n_sweeps):
        u = uniforms(key, sweep, graph.n_points)
        # Of two classes the kernel gives the low numbers to class 1.
        labels = reference.gibbs_sweep(near, a, labels, beta, k, 1 - u if n_classes == 2 else u)
        states.append(labels)
    return np.array(states)


def measured_conditional(decide, n_classes):
    """Probability of each class: where the label that ``decide(bits)`` gives jumps as bits grow."""
    jumps = [0]
    for g in range(1, n_classes):
        low, high = jumps[-1], 2**64
        while low < high:
            middle = (low + high) // 2
            if decide(np.uint64(middle)) >= g:
                high = middle
            else:
                low = middle + 1
        jumps.append(low)
    return np.diff([*jumps, 2**64]) / 2.0**64


def site_kernels_two(graph, beta, k, class_weight):
    """Conditionals by (state, site, class), from the compiled table, slots and decision."""
    edges = list_edges(graph, k)
    weighted = class_weight is not None
    weights = np.array(class_weight if weighted else [1.0, 1.0])
    table, bases = gibbs.threshold_table(beta / k, weights, edges.degrees, weighted)
    states, law = exact_law(graph, beta, k, 2, class_weight)
    conditionals = np.empty((*states.shape, 2))
    for s, state in enumerate(states.astype(np.uint8)):
        slots = bases + gibbs._count_ones(state, edges)
        for i, slot in enumerate(slots.astype(np.uint64)):
            # Low words choose class 1, so what grows with the word is the choice of class 0.
            conditionals[s, i, ::-1] = measured_conditional(
                lambda word, slot=slot: not word < table[slot], 2
            )
    return states, law, conditionals


def site_kernels_many(graph, beta, k, n_classes, class_weight, largest_exponent=600.0):
    edges = list_edges(graph, k)
    weights = np.ones(n_classes) if class_weight is None else np.array(class_weight)
    table, logarithmic, stride = gibbs._weight_table(
        beta / k, weights, class_weight is not None, int(edges.degrees.max()), largest_exponent
    )
    states, law = exact_law(graph, beta, k, n_classes, class_weight)
    conditionals = np.empty((*states.shape, n_classes))
    sums = np.empty(n_classes)
    for s, state in enumerate(states.astype(np.uint8)):
        slots = gibbs._first_slots(state, n_classes, stride, edges)
        for i in range(graph.n_points):
            first = np.uint64(i * n_classes)

            def decide(word, first=first, slots=slots):
                return gibbs._choose_of_many(table, logarithmic, slots, first, sums, word)

            conditionals[s, i] = measured_conditional(decide, n_classes)
    return states, law, conditionals


def push(states, law, conditionals):
    """Take the law through one systematic scan."""
    n_classes = conditionals.shape[2]
    for i in range(states.shape[1]):
        after = np.zeros_like(law)
        for g in range(n_classes):
            moved = states.copy()
            moved[:, i] = g
            np.add.at(after, state_index(moved, n_classes), law * conditionals[:, i, g])
        law = after
    return law


@pytest.mark.parametrize("class_weight", [None, (0.6, 1.7)])
def test_two_classes_leave_the_law_invariant(class_weight):
    graph = random_graph(5, 3, seed=1)
    states, law, conditionals = site_kernels_two(graph, 1.3, 2, class_weight)
    np.testing.assert_allclose(push(states, law, conditionals), law, rtol=0, atol=1e-12)


@pytest.mark.parametrize("class_weight", [None, (0.6, 1.7, 0.9)])
@pytest.mark.parametrize("largest_exponent", [600.0, 0.0])
def test_three_classes_leave_the_law_invariant(class_weight, largest_exponent):
    graph = random_graph(5, 3, seed=1)
    states, law, conditionals = site_kernels_many(graph, 1.3, 2, 3, class_weight, largest_exponent)
    np.testing.assert_allclose(push(states, law, conditionals), law, rtol=0, atol=1e-12)


def test_invariance_would_notice_another_beta():
    graph = random_graph(5, 3, seed=1)
    states, _, conditionals = site_kernels_many(graph, 1.3 * 2, 2, 3, None)
    _, law = exact_law(graph, 1.3, 2, 3)
    assert np.abs(push(states, law, conditionals) - law).max() > 1e-3


@given(
    graphs(), betas(), st.integers(2, 5), keys, st.booleans(), st.integers(0, 3), st.integers(1, 3)
)
def test_same_labels_as_the_reference(graph_and_k, beta, n_classes, key, weighted, n_warmup, thin):
    graph, k = graph_and_k
    class_weight = np.linspace(0.5, 1.5, n_classes) if weighted else None
    draws, info = gibbs_labels(
        graph, beta, k, n_classes, n_draws=3, n_warmup=n_warmup, thin=thin,
        class_weight=class_weight, key=key,
    )  # fmt: skip
    states = sweep_by_reference(graph, beta, k, n_classes, key, info.n_sweeps, class_weight)
    np.testing.assert_array_equal(draws, states[n_warmup + thin - 1 :: thin])
    near, a = as_reference(graph, n_classes, class_weight)
    expected = reference.agreement(near, a, draws, k)
    np.testing.assert_allclose(info.agreement, expected, rtol=1e-12)


def test_many_classes_need_wider_labels():
    graph = random_graph(40, 3, seed=3)
    draws, _info = gibbs_labels(graph, 2.0, 3, 300, n_draws=2, n_warmup=1, key=KEY)
    assert draws.dtype == np.uint32
    states = sweep_by_reference(graph, 2.0, 3, 300, KEY, 3)
    np.testing.assert_array_equal(draws, states[1:])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_hub_of_large_degree(n_classes):
    graph = star(400)
    draws, _ = gibbs_labels(graph, 0.7, 1, n_classes, n_draws=3, n_warmup=0, key=KEY)
    states = sweep_by_reference(graph, 0.7, 1, n_classes, KEY, 3)
    np.testing.assert_array_equal(draws, states)


def test_edges_are_the_definition():
    graph = random_graph(30, 8, seed=5)
    for k in (1, 5, 8):
        starts, points, degrees = list_edges(graph, k)
        weights = np.zeros((30, 30))
        for i in range(30):
            np.add.at(weights[i], points[starts[i] : starts[i] + degrees[i]], 1)
        A = reference.adjacency(as_reference(graph, 2)[0], k)
        np.testing.assert_array_equal(weights, A + A.T)


def test_start_is_kept_where_nothing_can_move():
    graph = random_graph(30, 8, seed=5)
    for label in (0, 1):
        draws, _ = gibbs_labels(graph, 500.0, 4, 2, n_draws=2, initial=np.full(30, label), key=KEY)
        assert np.all(draws == label)


def test_info_counts_sweeps():
    graph = random_graph(10, 3, seed=5)
    _, info = gibbs_labels(graph, 1.0, 2, 3, n_draws=7, n_warmup=11, thin=4, key=KEY)
    assert info.n_sweeps == 11 + 28


def test_threads_do_not_change_the_draws():
    graph = random_graph(50, 5, seed=6)
    graph.incidence  # noqa: B018 - built before the threads start

    def run(key):
        return gibbs_labels(graph, 1.2, 4, 3, n_draws=3, n_warmup=20, key=np.uint64(key))[0]

    alone = [run(key) for key in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, range(8)))
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_ctrl_c_is_heard_between_the_calls_of_a_long_run(monkeypatch, n_classes):
    graph, run, calls = random_graph(30, 4, 0), gibbs.run_gibbs, []
    options = {"n_draws": 40, "n_warmup": 20, "key": KEY}
    whole = gibbs_labels(graph, 0.8, 3, n_classes, **options)[0]

    def interrupt(*arguments):
        calls.append(run(*arguments))
        if answer:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(gibbs, "run_gibbs", interrupt)
    monkeypatch.setattr("bayesknn.labels.mixing._OPERATIONS_PER_CALL", 1e3)
    answer = False
    assert np.array_equal(gibbs_labels(graph, 0.8, 3, n_classes, **options)[0], whole)
    assert len(calls) > 10
    calls.clear()
    answer = True
    with pytest.raises(KeyboardInterrupt):
        gibbs_labels(graph, 0.8, 3, n_classes, **options)
    assert len(calls) == 1
