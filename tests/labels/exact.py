"""Slow, obvious twins shared by the tests of the Gibbs samplers.

Random numbers in Python integers, weights w_ij from the neighbour lists alone, the exact law by
listing every label vector, and sweeps that compute every conditional afresh.
"""

import itertools
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


def weights_of(graph, k):
    """Build the symmetric weights w_ij from their definition."""
    n = graph.n_points
    weights = np.zeros((n, n), dtype=int)
    for i in range(n):
        for j in graph.neighbors[:k, i]:
            weights[i, j] += 1
            weights[j, i] += 1
    return weights


def agreement_of(graph, labels, k, class_weight=None):
    total = 0.0
    for i in range(graph.n_points):
        for j in graph.neighbors[:k, i]:
            if labels[i] == labels[j]:
                total += 1.0 if class_weight is None else class_weight[labels[i]]
    return total


def enumerate_law(graph, beta, k, n_classes, class_weight=None):
    """Every label vector in lexicographic order, its S_k and its probability."""
    states = list(itertools.product(range(n_classes), repeat=graph.n_points))
    agreement = np.array([agreement_of(graph, y, k, class_weight) for y in states])
    weights = np.exp(beta / k * (agreement - agreement.max()))
    return np.array(states), agreement, weights / weights.sum()


def index_of(labels, n_classes):
    """Row of ``enumerate_law`` at which label vectors stand."""
    labels = np.asarray(labels, dtype=int)
    return labels @ n_classes ** np.arange(labels.shape[-1])[::-1]


def ring_mean_agreement(n, beta, n_classes):
    """E[S] on the ring from Z = (e^b + q - 1)^n + (q - 1) (e^b - 1)^n."""
    e, q = math.exp(beta), n_classes
    z = (e + q - 1) ** n + (q - 1) * (e - 1) ** n
    return n * e * ((e + q - 1) ** (n - 1) + (q - 1) * (e - 1) ** (n - 1)) / z


def threshold(log_odds):
    """How many of the 2**64 words choose class 1."""
    rarer = int(2.0**64 / (1.0 + math.exp(min(abs(log_odds), 700.0))))
    if log_odds <= 0:
        return rarer
    return min(WORD - rarer, WORD - 1)


def choose(fields, strength, class_weight, word, by_threshold):
    """Class of a site by 64 random bits, from its local fields."""
    logs = [strength * a * c for a, c in zip(class_weight, fields, strict=True)]
    if by_threshold:
        return int(word < threshold(logs[1] - logs[0]))
    sums = np.cumsum([math.exp(log - max(logs)) for log in logs])
    target = (word >> 11) * 2.0**-53 * sums[-1]
    return int(np.sum(sums[:-1] <= target))


def gibbs_twin(
    graph, beta, k, n_classes, labels, word_of, n_sweeps, class_weight=None, by_threshold=None
):
    """Systematic scan that computes every field afresh; ``word_of(sweep, site)`` are the numbers.

    Two classes are chosen by a threshold, more by their cumulated weights, unless told otherwise.
    """
    by_threshold = n_classes == 2 if by_threshold is None else by_threshold
    weights, labels = weights_of(graph, k), np.array(labels)
    class_weight = [1.0] * n_classes if class_weight is None else class_weight
    states = []
    for sweep in range(n_sweeps):
        for i in range(graph.n_points):
            fields = [int(weights[i] @ (labels == g)) for g in range(n_classes)]
            word = word_of(sweep, i)
            labels[i] = choose(fields, beta / k, class_weight, word, by_threshold)
        states.append(labels.copy())
    return np.array(states).reshape(n_sweeps, graph.n_points)


@st.composite
def graphs(draw, max_points=9):
    """Draw a small graph and one of its k."""
    n = draw(st.integers(2, max_points))
    k_max = draw(st.integers(1, n - 1))
    graph = random_graph(n, k_max, draw(st.integers(0, 2**32 - 1)))
    return graph, draw(st.integers(1, k_max))


def betas():
    """Strengths of every size, zero and far beyond the transition included."""
    return st.one_of(
        st.sampled_from([0.0, 1e-9, 30.0, 2000.0]), st.floats(0.0, 6.0, allow_subnormal=False)
    )


keys = st.integers(0, 2**64 - 1).map(np.uint64)
