"""Graphs with known constants, and random ones, for the tests of the model."""

import functools

import numpy as np
from hypothesis import strategies as st

from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph


@functools.cache
def ripley_graph():
    return NeighborGraph.from_points(load_ripley().X_train, k_max=125)


def random_graph(rng, n, k_max):
    """Every point's neighbours drawn at random: nothing is symmetric about it."""
    neighbors = np.empty((k_max, n), int)
    for i in range(n):
        others = np.delete(np.arange(n), i)
        neighbors[:, i] = rng.permutation(others)[:k_max]
    return NeighborGraph.from_neighbors(neighbors)


def ring(n):
    return NeighborGraph.from_neighbors([np.roll(np.arange(n), -1)])


def complete(n):
    return NeighborGraph.from_neighbors([np.roll(np.arange(n), -s) for s in range(1, n)])


@st.composite
def small_models(draw, max_states=4096):
    """Draw a graph, (beta, k), a number of classes and weights or None, few enough to list."""
    n_classes = draw(st.integers(2, 4))
    n = draw(st.integers(2, int(np.log(max_states) / np.log(n_classes) + 1e-9)))
    k_max = draw(st.integers(1, n - 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    graph = random_graph(rng, n, k_max)
    k = draw(st.integers(1, k_max))
    beta = draw(st.floats(0, 8))
    weights = draw(st.none() | st.lists(st.floats(0.1, 3), min_size=n_classes, max_size=n_classes))
    return graph, beta, k, n_classes, weights
