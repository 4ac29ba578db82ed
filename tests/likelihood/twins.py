"""The slow, obvious forms that the likelihoods are compared with, and graphs to compare them on."""

import math

import numpy as np
from hypothesis import strategies as st

from bayesknn.graph import NeighborGraph


def log_product(graph, labels, beta, k, n_classes, class_weight=None, reverse=True):
    """Return the log of eq. psudoL, or with ``reverse=False`` of eq. jointHA, written out."""
    n = graph.n_points
    weights = [1.0] * n_classes if class_weight is None else class_weight
    near = [{int(graph.neighbors[r, i]) for r in range(k)} for i in range(n)]
    total = 0.0
    for i in range(n):
        counts = [0] * n_classes
        for j in range(n):
            counts[labels[j]] += (j in near[i]) + (reverse and i in near[j])
        fields = [beta / k * a * c for a, c in zip(weights, counts, strict=True)]
        largest = max(fields)
        total += fields[labels[i]] - largest
        total -= math.log(sum(math.exp(f - largest) for f in fields))
    return total


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
