"""Gibbs draws against exact laws, and the broken kernels that the same tests reject.

Draws are so many sweeps apart that they count as independent: the second eigenvalue of a sweep
on these graphs of five points, raised to that power, is below one in a million.
"""

import numpy as np
import pytest
from scipy import stats

from bayesknn import reference
from bayesknn._utils.jit import kernel
from bayesknn._utils.random import as_uniform, key_of_sweep, random_bits, spawn_keys
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.model import expected_agreement_exact
from tests.labels.cases import random_graph, ring, ring_mean_agreement
from tests.labels.samplers import gibbs_labels
from tests.model.enumeration import as_reference, exact_law, state_index
from tests.statistical import check, p_value_of_counts, rejects

GRAPH = random_graph(5, 3, seed=1)
K = 2
BETA = {2: 0.9, 3: 1.1}
WEIGHTS = {2: np.array([0.7, 1.4]), 3: np.array([0.6, 1.5, 0.9])}
# 1 where j is among the k nearest of i, and the symmetric weights w_ij.
FORWARD = reference.adjacency(as_reference(GRAPH, 2)[0], K)
WEIGHT_MATRIX = FORWARD + FORWARD.T
THIN = 40
N_DRAWS = 20_000


def p_value_of_law(n_classes, class_weight=None):
    """P-value function: counts of every label vector against enumeration."""
    beta = BETA[n_classes]
    _, law = exact_law(GRAPH, beta, K, n_classes, class_weight)

    def p_value(n_draws, seed):
        key = spawn_keys(seed, 1)[0]
        draws, _ = gibbs_labels(
            GRAPH, beta, K, n_classes, n_draws=n_draws, thin=THIN, key=key,
            class_weight=class_weight,
        )  # fmt: skip
        counts = np.bincount(state_index(draws, n_classes), minlength=len(law))
        return p_value_of_counts(counts, law)

    return p_value


def p_value_of_mean(n, beta, n_classes, claimed=None):
    """P-value function: mean of S on a ring against its closed form, by batch means."""
    exact = ring_mean_agreement(n, beta if claimed is None else claimed, n_classes)
    n_batches = 50

    def p_value(n_draws, seed):
        key = spawn_keys(seed, 1)[0]
        _, info = gibbs_labels(ring(n), beta, 1, n_classes, n_draws=n_draws, key=key)
        return stats.ttest_1samp(info.agreement.reshape(n_batches, -1).mean(axis=1), exact).pvalue

    return p_value


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_sweeps_between_draws_suffice(n_classes, weighted):
    class_weight = WEIGHTS[n_classes] if weighted else None
    states, _ = exact_law(GRAPH, 0.0, K, n_classes)
    weights, a = WEIGHT_MATRIX, np.ones(n_classes) if class_weight is None else class_weight
    sweep = np.eye(len(states))
    for i in range(GRAPH.n_points):
        fields = np.stack([(states == g) @ weights[i] for g in range(n_classes)], axis=1)
        conditional = np.exp(BETA[n_classes] / K * a * fields)
        conditional /= conditional.sum(axis=1, keepdims=True)
        step = np.zeros_like(sweep)
        for g in range(n_classes):
            moved = states.copy()
            moved[:, i] = g
            step[np.arange(len(states)), state_index(moved, n_classes)] += conditional[:, g]
        sweep = sweep @ step
    second = np.sort(np.abs(np.linalg.eigvals(sweep)))[-2]
    assert second**THIN < 1e-6


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_law(n_classes, weighted):
    check(p_value_of_law(n_classes, WEIGHTS[n_classes] if weighted else None), N_DRAWS)


@pytest.mark.parametrize(("n", "beta", "n_classes"), [(60, 1.0, 2), (25, 1.5, 3), (40, 0.5, 6)])
def test_mean_on_a_ring(n, beta, n_classes):
    check(p_value_of_mean(n, beta, n_classes), 20_000)


@pytest.mark.parametrize(("n_classes", "beta"), [(2, 1.0), (3, 0.8)])
def test_mean_on_ripleys_graph(n_classes, beta):
    graph = NeighborGraph.from_points(load_ripley().X_train, 3)
    exact = expected_agreement_exact(graph, beta, 3, n_classes)

    def p_value(n_draws, seed):
        key = spawn_keys(seed, 1)[0]
        _, info = gibbs_labels(graph, beta, 3, n_classes, n_draws=n_draws, key=key)
        return stats.ttest_1samp(info.agreement.reshape(50, -1).mean(axis=1), exact).pvalue

    check(p_value, 20_000)


@kernel
def _chain(weights, strength, class_weight, key, thin, labels, draws, stale, reuse):
    """Run a plain Gibbs chain on a matrix of weights, sound unless told to be otherwise."""
    n_classes = len(class_weight)
    sums, fields = np.empty(n_classes), np.empty(n_classes)
    seen = labels.copy()
    for draw in range(len(draws)):
        for t in range(thin):
            sweep = t if reuse else draw * thin + t
            stream = key_of_sweep(key, np.uint64(sweep))
            seen[:] = labels
            for i in range(len(labels)):
                fields[:] = 0.0
                for j in range(len(labels)):
                    fields[seen[j] if stale else labels[j]] += weights[i, j]
                total = 0.0
                for g in range(n_classes):
                    total += np.exp(strength * class_weight[g] * fields[g])
                    sums[g] = total
                target = as_uniform(random_bits(stream, np.uint64(i))) * total
                labels[i] = 0
                for g in range(n_classes - 1):
                    labels[i] += sums[g] <= target
        draws[draw] = labels


def p_value_of_chain(
    n_classes, weights=None, factor=1.0, weighted=False, use_weights=True, stale=False, reuse=False
):
    """P-value function of the plain chain, with a part of it broken on request."""
    class_weight = WEIGHTS[n_classes] if weighted else np.ones(n_classes)
    _, law = exact_law(GRAPH, BETA[n_classes], K, n_classes, class_weight)
    weights = WEIGHT_MATRIX if weights is None else weights
    used = class_weight if use_weights else np.ones(n_classes)

    def p_value(n_draws, seed):
        draws = np.empty((n_draws, GRAPH.n_points), np.int64)
        labels = np.zeros(GRAPH.n_points, np.int64)
        strength, key = factor * BETA[n_classes] / K, spawn_keys(seed, 1)[0]
        _chain(weights, strength, used, key, THIN, labels, draws, stale, reuse)
        counts = np.bincount(state_index(draws, n_classes), minlength=len(law))
        return p_value_of_counts(counts, law)

    return p_value


MUTANTS = {
    "no reverse neighbours": dict(weights=FORWARD),
    "mutual neighbours count once": dict(weights=np.minimum(WEIGHT_MATRIX, 1)),
    "beta not divided by k": dict(factor=float(K)),
    "beta divided by k twice": dict(factor=1.0 / K),
    "class weights forgotten": dict(weighted=True, use_weights=False),
    "stale fields": dict(stale=True),
    "numbers reused from draw to draw": dict(reuse=True),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_plain_chain_passes(n_classes, weighted):
    check(p_value_of_chain(n_classes, weighted=weighted), N_DRAWS)


@pytest.mark.mutant
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_rejected(mutant, n_classes):
    assert rejects(p_value_of_chain(n_classes, **MUTANTS[mutant]), N_DRAWS)


def test_wrong_mean_on_a_ring_is_rejected():
    # Five per cent too weak.
    assert rejects(p_value_of_mean(60, 0.95, 2, claimed=1.0), 20_000)
