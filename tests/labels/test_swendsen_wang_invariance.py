"""Invariance without randomness: the exact law goes through one enumerated sweep unchanged.

Five points, three classes. For every label vector every set of open edges is listed, and every
colouring of its clusters, with the probability of an open edge that the kernels use themselves.
"""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from bayesknn import reference
from bayesknn.graph import NeighborGraph
from bayesknn.labels.swendsen_wang import open_probability
from tests.labels.swendsen_wang_twin import find_roots
from tests.model.enumeration import exact_law

N, G = 5, 3
MOST_EVENTS = 80
# Points 0 and 1 are mutual neighbours at rank 1, and 0 and 2 across ranks.
GRAPH = NeighborGraph.from_neighbors([[1, 0, 1, 2, 3], [2, 2, 0, 1, 0]])


def push(law, states, k, beta, class_weight, mutant=None):
    """Send a law over the states through one sweep."""
    rate = beta / (1 if mutant == "beta not divided by k" else k)
    edges = [(i, int(j)) for row in GRAPH.neighbors[:k] for i, j in enumerate(row)]
    if mutant == "each pair bound once":
        edges = [(i, j) for i, j in edges if i < j or (j, i) not in edges]
    open_chances, mixed_laws = class_laws(rate, class_weight, mutant)
    after = np.zeros((G,) * N)
    for probability, labels in zip(law, states, strict=True):
        agreeing = [(i, j) for i, j in edges if labels[i] == labels[j]]
        if mutant == "bonds without agreement":
            agreeing = edges
        for choice in product([False, True], repeat=len(agreeing)):
            bonds = [edge for edge, is_open in zip(agreeing, choice, strict=True) if is_open]
            p = probability
            for (i, _), is_open in zip(agreeing, choice, strict=True):
                p_open = open_chances[labels[i]]
                p *= p_open if is_open else 1.0 - p_open
            roots = find_roots(N, bonds)
            recoloured = p
            names = sorted(set(roots))
            for root in names:
                n_open = sum(roots[i] == root for i, _ in bonds)
                recoloured = np.multiply.outer(recoloured, mixed_laws[labels[root]][n_open])
            for colours in product(range(G), repeat=len(names)):
                after[tuple(colours[names.index(root)] for root in roots)] += recoloured[colours]
    return after.ravel()


def class_laws(rate, class_weight, mutant):
    """Probability that an edge is open, and law of the new colour given the open edges.

    Both by the class before; the number of bonds given that so many edges are open is a sum of
    positive Poisson numbers, over which the law of the colour is averaged.
    """
    if class_weight is None or mutant == "colours whatever the bonds":
        uniform = np.full((11, G), 1.0 / G)
        weights = np.ones(G) if class_weight is None else class_weight
        return [open_probability(rate * a) for a in weights], [uniform] * G
    colour_laws = reference.softmax(np.arange(MOST_EVENTS + 1)[:, None] * np.log(class_weight))
    thinned = rate * class_weight
    if mutant == "weights without thinning":
        thinned[:] = rate * class_weight.max()
    return -np.expm1(-thinned), [average_over_events(s, colour_laws) for s in thinned]


def average_over_events(strength, colour_laws):
    events = stats.poisson.pmf(np.arange(MOST_EVENTS + 1), strength)
    events[0] = 0.0
    events /= events.sum()
    total, averaged = np.eye(1, MOST_EVENTS + 1)[0], []
    for _ in range(11):
        averaged.append(total @ colour_laws)
        total = np.convolve(total, events)[: MOST_EVENTS + 1]
    return np.array(averaged)


CASES = [
    (k, beta, class_weight)
    for k, beta in [(1, 0.0), (1, 0.5), (1, 2.0), (2, 0.9), (2, 3.0)]
    for class_weight in [None, np.array([0.6, 1.1, 1.3])]
    if beta > 0 or class_weight is None
]


@pytest.mark.parametrize(("k", "beta", "class_weight"), CASES)
def test_the_law_is_invariant(k, beta, class_weight):
    states, law = exact_law(GRAPH, beta, k, G, class_weight)
    after = push(law, states, k, beta, class_weight)
    np.testing.assert_allclose(after, law, rtol=0, atol=1e-12)


@pytest.mark.mutant
@pytest.mark.parametrize(
    ("mutant", "k", "class_weight"),
    [
        ("each pair bound once", 2, None),
        ("beta not divided by k", 2, None),
        ("bonds without agreement", 1, None),
        ("colours whatever the bonds", 2, np.array([0.6, 1.1, 1.3])),
        ("weights without thinning", 2, np.array([0.6, 1.1, 1.3])),
    ],
)
def test_mutants_move_the_law(mutant, k, class_weight):
    states, law = exact_law(GRAPH, 0.5, k, G, class_weight)
    after = push(law, states, k, 0.5, class_weight, mutant)
    assert np.abs(after.sum() - 1.0) < 1e-9
    assert np.abs(after - law).max() > 1e-4
