"""Coupling from the past on bonds: invariance, the reference, the past, the order, mutants."""

import itertools
import math
from functools import partial

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bayesknn import reference
from bayesknn._utils.random import key_of_sweep
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.labels.perfect import (
    _colour_clusters,
    _run_bonds,
    _sure_fraction,
    _sweep_bonds,
    _update_bond,
    are_connected,
    connect,
    draw_perfectly,
    find_root,
    new_bond_workspace,
    new_forest,
    random_cluster,
)
from bayesknn.model import BoltzmannModel
from tests.labels.cases import bits, small_graphs, sweep_key
from tests.model.enumeration import exact_law, state_index
from tests.statistical import check, p_value_of_counts, rejects

COMPLETE = NeighborGraph.from_neighbors([[1, 2, 0], [2, 0, 1]])
CHAIN = NeighborGraph.from_neighbors([[1, 0, 1, 2], [2, 2, 0, 1]])
KEYS = st.integers(0, 2**64 - 1).map(np.uint64)


def draw_bonds(graph, beta, k, n_classes, class_weight, key, draw, n_start=1, max_sweeps=2**16):
    law = random_cluster(BoltzmannModel(graph, n_classes, class_weight), beta, k)
    labels = np.full(graph.n_points, 99, np.uint8)
    n_sweeps, n_apart = draw_perfectly(
        law, np.uint64(key), np.uint64(draw), n_start, max_sweeps,
        new_bond_workspace(graph.n_points), labels,
    )  # fmt: skip
    return labels, n_sweeps, n_apart


def uniform(key, draw, sweep, site):
    return (bits(sweep_key(key, (draw << 32) | sweep), site) >> 11) * 2.0**-53


def list_bonds(graph, beta, k, n_classes, class_weight=None):
    """Return the ends of every bond, its p, and the class that a ghost, point n, stands for.

    Class weights that differ pull the points to the heavier class by a bond to the ghost.
    """
    n = graph.n_points
    law = random_cluster(BoltzmannModel(graph, n_classes, class_weight), beta, k)
    edges = [(i, int(graph.neighbors[r, i])) for i in range(n) for r in range(k)]
    strengths = [law.rate] * len(edges) + list(law.pull)
    edges += [(i, n) for i in range(len(law.pull))]
    return np.array(edges), -np.expm1(-np.array(strengths)), law


def replay(law, p, n_edges, key, draw, back):
    """Return the kernel's numbers of one sweep, a number for each bond: 1 if it cannot open.

    The kernel leaps from one bond that can open to the next, and draws a share of p there.
    """
    u, counter, bond = np.ones(len(p)), 0, 0
    while law.rate > 0:
        # Infinite at the smallest of rates.
        gap = -math.log(1 - uniform(key, draw, back, counter)) / law.rate
        if bond + gap >= n_edges:
            break
        bond += math.floor(gap)
        u[bond] = uniform(key, draw, back, counter + 1) * p[bond]
        bond, counter = bond + 1, counter + 2
    for b in range(n_edges, len(p)):
        u[b] = uniform(key, draw, back, 2 * n_edges + 2 + b - n_edges)
    return u


def draw_by_reference(graph, beta, k, n_classes, class_weight, key, draw):
    n = graph.n_points
    edges, p, law = list_bonds(graph, beta, k, n_classes, class_weight)
    u = partial(replay, law, p, n * k, int(key), draw)
    is_open = reference.perfect_bonds(edges, p, n_classes, u)
    priority = new_forest(n + 1)[1::2] >> np.uint64(32)
    labels = np.empty(n + 1, int)
    for part in clusters(n + 1, edges[is_open]):
        root = max(part, key=lambda i: priority[i])
        colour = math.floor(uniform(int(key), draw, 0, root) * n_classes)
        labels[part] = law.heavier if n in part else colour
    return labels[:-1]


def clusters(n, edges):
    """List the points of each cluster."""
    root = reference.find_clusters(n, np.array(list(edges), int).reshape(-1, 2))
    return [np.flatnonzero(root == r).tolist() for r in np.unique(root)]


# Invariance, without random numbers.


def enumerate_kernel(graph, beta, k, n_classes, class_weight):
    """List the bonds with their probabilities, and all configurations with their law."""
    n = graph.n_points
    edges, p, random_clusters = list_bonds(graph, beta, k, n_classes, class_weight)
    ends = [tuple(edge) for edge in edges.tolist()]
    states = list(itertools.product((0, 1), repeat=len(ends)))
    weights = np.empty(len(states))
    for s, state in enumerate(states):
        n_clusters = len(clusters(n + 1, itertools.compress(ends, state)))
        chances = [q if is_open else 1 - q for q, is_open in zip(p, state, strict=True)]
        weights[s] = np.prod(chances) * float(n_classes) ** n_clusters
    return ends, p, states, weights / weights.sum(), random_clusters.heavier


def opens_in_between(ends, state, b):
    """Whether the compiled update opens bond b when its number depends on the others."""
    n = max(max(e) for e in ends) + 1
    workspace, length, now = new_bond_workspace(n), len(ends), 1000 + b
    since = np.uint64(now - length + 1)
    # Bonds before b were refreshed in this sweep, those from b on in the last one.
    times = {c: 1000 + c - (length if c >= b else 0) for c in range(length) if state[c]}
    for c, time in sorted(times.items(), key=lambda item: item[1]):
        i, j = np.uint64(ends[c][0]), np.uint64(ends[c][1])
        for forest in (workspace.lower, workspace.upper):
            connect(forest, i, j, np.uint64(time), np.uint64(1))
    i, j = np.uint64(ends[b][0]), np.uint64(ends[b][1])
    apart = _update_bond(workspace, i, j, np.uint64(now), since, 0.99, 0.5, False, True)
    assert not apart
    opened = [are_connected(forest, i, j, np.uint64(now)) for forest in workspace[:2]]
    assert opened[0] == opened[1]
    return opened[0]


@pytest.mark.parametrize(
    ("graph", "n_classes", "class_weight"),
    [
        (COMPLETE, 3, None),
        (CHAIN, 2, None),
        (NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]]), 3, None),
        (NeighborGraph.from_neighbors([[1, 0, 1, 1, 3]]), 5, None),
        (NeighborGraph.from_neighbors([[1, 0, 1]]), 2, np.array([0.7, 1.9])),
        (NeighborGraph.from_neighbors([[1, 2, 0, 1]]), 2, np.array([1.4, 0.3])),
    ],
)
@pytest.mark.parametrize("beta", [0.3, 1.6])
def test_heat_bath_keeps_the_law_and_colours_give_the_model(graph, n_classes, class_weight, beta):
    k, n = graph.k_max, graph.n_points
    ends, p, states, law, heavier = enumerate_kernel(graph, beta, k, n_classes, class_weight)
    index = {state: s for s, state in enumerate(states)}
    pushed = law.copy()
    for b in range(len(ends)):
        sure = _sure_fraction(p[b], n_classes)
        after = np.zeros_like(pushed)
        for s, state in enumerate(states):
            chance = p[b] if opens_in_between(ends, state, b) else p[b] * sure
            after[index[(*state[:b], 1, *state[b + 1 :])]] += chance * pushed[s]
            after[index[(*state[:b], 0, *state[b + 1 :])]] += (1 - chance) * pushed[s]
        pushed = after
    np.testing.assert_allclose(pushed, law, rtol=0, atol=1e-12)

    labels, expected = exact_law(graph, beta, k, n_classes, class_weight)
    coloured = np.zeros(len(labels))
    for state, probability in zip(states, law, strict=True):
        parts = clusters(n + 1, itertools.compress(ends, state))
        free = [part for part in parts if n not in part]
        pulled = [i for part in parts if n in part for i in part if i < n]
        fits = np.all(labels[:, pulled] == heavier, axis=1)
        for part in free:
            fits &= np.all(labels[:, part] == labels[:, part[:1]], axis=1)
        coloured += fits * probability / float(n_classes) ** len(free)
    np.testing.assert_allclose(coloured, expected, rtol=0, atol=1e-12)


# The reference, the past and the order.


@given(
    graph=small_graphs(),
    beta=st.floats(0, 4),
    n_classes=st.integers(2, 5),
    weighted=st.booleans(),
    key=KEYS,
    draw=st.integers(0, 2**31 - 1),
)
@example(CHAIN, 5e-324, 2, False, np.uint64(0), 0)
def test_same_labels_as_the_reference(graph, beta, n_classes, weighted, key, draw):
    class_weight = np.array([0.6, 1.7]) if weighted else None
    n_classes = 2 if weighted else n_classes
    k = graph.k_max
    labels, _, n_apart = draw_bonds(graph, beta, k, n_classes, class_weight, key, draw)
    assert n_apart == 0
    expected = draw_by_reference(graph, beta, k, n_classes, class_weight, key, draw)
    np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_hundred_draws_are_those_of_the_reference(n_classes):
    """A wrong part of the bonds moves a few draws of a hundred, and hardly one of a kind."""
    points = np.random.default_rng(n_classes).normal(size=(8, 2))
    graph = NeighborGraph.from_points(points, k_max=3)
    for draw in range(100):
        labels, _, _ = draw_bonds(graph, 2.0, 3, n_classes, None, 11, draw)
        expected = draw_by_reference(graph, 2.0, 3, n_classes, None, 11, draw)
        np.testing.assert_array_equal(labels, expected)


@given(graph=small_graphs(), beta=st.floats(0, 4), key=KEYS, n_start=st.integers(1, 40))
def test_further_back_is_the_same_draw(graph, beta, key, n_start):
    k = graph.k_max
    once = draw_bonds(graph, beta, k, 3, None, key, 0)[0]
    again = draw_bonds(graph, beta, k, 3, None, key, 0, n_start=n_start)[0]
    np.testing.assert_array_equal(once, again)


@pytest.fixture(scope="module")
def ripley():
    return NeighborGraph.from_points(load_ripley().X_train, k_max=53)


@pytest.mark.parametrize(("beta", "k", "n_classes"), [(1.45, 13, 2), (2.0, 13, 4), (1.3, 53, 3)])
def test_further_back_on_ripley(ripley, beta, k, n_classes):
    for draw in range(10):
        labels, n_sweeps, _ = draw_bonds(ripley, beta, k, n_classes, None, 7, draw)
        for n_start in (n_sweeps + 1, 2 * n_sweeps, 5 * n_sweeps):
            further = draw_bonds(ripley, beta, k, n_classes, None, 7, draw, n_start)
            assert further[1] == n_start
            np.testing.assert_array_equal(further[0], labels)


@pytest.mark.parametrize("class_weight", [None, np.array([1.0, 1.01])])
def test_order_never_breaks_on_ripley(ripley, class_weight):
    n, k = ripley.n_points, 13
    law = random_cluster(BoltzmannModel(ripley, 2, class_weight), 1.45, k)
    workspace = new_bond_workspace(n)
    length = n * k + len(law.pull)
    n_clusters = []
    for sweep in range(30):
        start = np.uint64((sweep + 1) * length + 1)
        sweep_key = np.uint64(key_of_sweep(np.uint64(3), np.uint64(sweep)))
        _sweep_bonds(law, sweep_key, start, sweep == 0, True, workspace)
        lower = np.array([find_root(workspace.lower, np.uint64(i), start) for i in range(n + 1)])
        upper = np.array([find_root(workspace.upper, np.uint64(i), start) for i in range(n + 1)])
        # Points of one cluster of the lower chain are in one cluster of the upper chain.
        np.testing.assert_array_equal(upper, upper[lower])
        n_clusters.append((len(set(lower)), len(set(upper))))
    assert n_clusters[0][0] > n_clusters[0][1]
    assert n_clusters[-1][0] == n_clusters[-1][1]


def test_no_past_long_enough_leaves_labels_alone(ripley):
    labels, n_sweeps, n_apart = draw_bonds(ripley, 1.45, 13, 2, None, 1, 0, max_sweeps=3)
    assert (n_sweeps, n_apart > 0) == (3, True)
    assert np.all(labels == 99)


# The law, and named mutants.


def broken_sweep(mutant, edges, p, n_classes, is_open, u):
    """Sweep as the reference does, with a mistake."""
    before, is_open = is_open, is_open.copy()
    if mutant == "closed at the start of the sweep":
        is_open &= u < p
    for b, (i, j) in enumerate(edges):
        others = (before if mutant == "stale connectivity" else is_open).copy()
        others[b] &= mutant == "own bond counts"
        sure = 1.0 if mutant == "always p" else 1 / (p[b] + (1 - p[b]) * n_classes)
        is_open[b] = u[b] < p[b] and (
            u[b] < p[b] * sure or reference.is_connected(i, j, edges[others])
        )
    return is_open


def p_value_of_sweep(mutant):
    beta, n_classes = 2.0, 6
    _, law = exact_law(COMPLETE, beta, 2, n_classes)
    edges, p, _ = list_bonds(COMPLETE, beta * (1 + (mutant == "beta not divided by k")), 2, 6)
    if mutant == "one bond per pair":
        edges, p = edges[edges[:, 0] < edges[:, 1]], p[:3]
    closed = np.zeros(len(edges), bool)

    def draw(u):
        is_open = reference.couple_from_the_past(
            lambda state, t: broken_sweep(mutant, edges, p, n_classes, state, u(t)), closed, ~closed
        )
        root = reference.find_clusters(3, edges[is_open])
        return (u(0)[root] * n_classes).astype(int)

    def p_value(n_draws, seed):
        seeds = range(n_draws * seed, n_draws * (seed + 1))
        draws = [draw(reference.replayable(one, len(p))) for one in seeds]
        return p_value_of_counts(np.bincount(state_index(draws, 6), minlength=len(law)), law)

    return p_value


def test_a_sweep_without_a_mistake_has_the_law():
    check(p_value_of_sweep(None), n_draws=600)


@pytest.mark.mutant
@pytest.mark.parametrize(
    "mutant",
    [
        "one bond per pair",
        "beta not divided by k",
        "always p",
        "stale connectivity",
        "own bond counts",
        "closed at the start of the sweep",
    ],
)
def test_mutants_are_rejected(mutant):
    assert rejects(p_value_of_sweep(mutant), n_draws=600)


@numba.njit
def _lengthen(law, fresh, key, workspace, labels):
    """Draws whose past grows sweep by sweep, with the same or, wrongly, with fresh numbers."""
    for d in range(labels.shape[0]):
        n_sweeps = 1
        while True:
            stream = key + np.uint64(n_sweeps if fresh else 0)
            if _run_bonds(law, stream, np.uint64(d), n_sweeps, workspace) == 0:
                break
            n_sweeps += 1
        _colour_clusters(law, key, np.uint64(d), workspace.roots, labels[d])


def p_value_of_past(fresh):
    _, law = exact_law(CHAIN, 2.0, 2, 3)

    def p_value(n_draws, seed):
        labels = np.empty((n_draws, 4), np.uint8)
        key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        bonds = random_cluster(BoltzmannModel(CHAIN, 3), 2.0, 2)
        _lengthen(bonds, fresh, key, new_bond_workspace(4), labels)
        return p_value_of_counts(np.bincount(state_index(labels, 3), minlength=81), law)

    return p_value


@pytest.mark.mutant
def test_fresh_numbers_are_rejected():
    check(p_value_of_past(fresh=False), n_draws=20_000)
    assert rejects(p_value_of_past(fresh=True), n_draws=20_000)
