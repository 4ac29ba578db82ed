"""Graphs to draw labels on, and the kernels' random numbers in Python integers.

With these numbers the reference makes the same labels as the kernels.
"""

import math

import numpy as np
from hypothesis import strategies as st

from bayesknn.graph import NeighborGraph

WORD = 2**64
GOLDEN = 0x9E3779B97F4A7C15
SWEEP = 0xD1342543DE82EF95


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WORD
    return z ^ (z >> 31)


def sweep_key(key, sweep):
    return mix((int(key) + (sweep + 1) * SWEEP) % WORD)


def bits(stream, site):
    return mix((stream + (site + 1) * GOLDEN) % WORD)


def uniforms(key, sweep, n):
    """Return the numbers in [0, 1) of the first n sites of a sweep."""
    stream = sweep_key(key, sweep)
    return np.array([(bits(stream, site) >> 11) * 2.0**-53 for site in range(n)])


def start_labels(key, places, n_classes):
    """Labels that a chain starts from: the stream of the sweep before the first."""
    stream = sweep_key(key, -1)
    return [((bits(stream, place) >> 32) * n_classes) >> 32 for place in places]


def ring(n):
    return NeighborGraph.from_neighbors([[(i + 1) % n for i in range(n)]])


def random_graph(n, k_max, seed):
    """Neighbour lists in random order: not a geometric graph, with every kind of degree."""
    rng = np.random.default_rng(seed)
    lists = [rng.permutation([j for j in range(n) if j != i])[:k_max] for i in range(n)]
    return NeighborGraph.from_neighbors(np.transpose(lists))


def star(n):
    """Everyone's neighbour is point 0, whose degree is n."""
    return NeighborGraph.from_neighbors([[1] + [0] * (n - 1)])


def ring_mean_agreement(n, beta, n_classes):
    """E[S] on the ring from Z = (e^b + q - 1)^n + (q - 1) (e^b - 1)^n."""
    e, q = math.exp(beta), n_classes
    z = (e + q - 1) ** n + (q - 1) * (e - 1) ** n
    return n * e * ((e + q - 1) ** (n - 1) + (q - 1) * (e - 1) ** (n - 1)) / z


@st.composite
def graphs(draw, max_points=9):
    """Draw a small graph and one of its k."""
    n = draw(st.integers(2, max_points))
    k_max = draw(st.integers(1, n - 1))
    graph = random_graph(n, k_max, draw(st.integers(0, 2**32 - 1)))
    return graph, draw(st.integers(1, k_max))


@st.composite
def small_graphs(draw, largest=6):
    """Draw any neighbour lists, of points that need not lie in a space."""
    n = draw(st.integers(2, largest))
    k_max = draw(st.integers(1, min(3, n - 1)))
    others = [draw(st.permutations([j for j in range(n) if j != i])) for i in range(n)]
    return NeighborGraph.from_neighbors(np.array(others)[:, :k_max].T)


def betas():
    """Strengths of every size, zero and far beyond the transition included."""
    return st.one_of(
        st.sampled_from([0.0, 1e-9, 30.0, 2000.0]), st.floats(0.0, 6.0, allow_subnormal=False)
    )


keys = st.integers(0, 2**64 - 1).map(np.uint64)
