"""Graphs and labels on which the likelihoods are compared with the reference."""

import numpy as np
from hypothesis import strategies as st

from bayesknn.graph import NeighborGraph


def random_graph(rng, n, k_max):
    """Every point lists others in random order: no geometry, no symmetry."""
    lists = [rng.permutation([j for j in range(n) if j != i])[:k_max] for i in range(n)]
    return NeighborGraph.from_neighbors(np.array(lists).T)


@st.composite
def problems(draw, max_points=12, max_classes=4, max_k=6):
    """(graph, labels, n_classes, class_weight or None) with every class allowed to be empty."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, max_points))
    n_classes = draw(st.integers(2, max_classes))
    k_max = draw(st.integers(1, min(n - 1, max_k)))
    weights = rng.uniform(0.3, 2.0, n_classes) if draw(st.booleans()) else None
    return random_graph(rng, n, k_max), rng.integers(n_classes, size=n), n_classes, weights
