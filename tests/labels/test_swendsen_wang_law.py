"""Swendsen-Wang draws against exact laws and closed forms, with mutants that must be caught."""

import numpy as np
import pytest
from scipy import stats

from bayesknn._utils.random import key_of_sweep, spawn_keys
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.labels.swendsen_wang import draw_poisson
from bayesknn.model import expected_agreement_exact
from tests.labels import swendsen_wang_twin as twin
from tests.labels.samplers import swendsen_wang_labels
from tests.model.enumeration import exact_law, state_index
from tests.statistical import check, p_value_of_counts, rejects

# Two mutual pairs, one point that nobody has as a first neighbour.
SMALL = np.array([[1, 0, 1, 2], [2, 2, 0, 1], [3, 3, 3, 0]])
SWEEPS = 4


def many_copies(n_copies):
    """Build a graph of independent copies of the small one, so that one chain is many."""
    offsets = 4 * np.repeat(np.arange(n_copies), 4)
    return NeighborGraph.from_neighbors(np.tile(SMALL, n_copies) + offsets)


def p_value_of_law(sampler, beta, k, n_classes, class_weight=None):
    """Start every copy at an exact draw, make a few sweeps, compare with the exact law."""

    def p_value(n_copies, seed):
        small = NeighborGraph.from_neighbors(SMALL)
        states, law = exact_law(small, beta, k, n_classes, class_weight)
        start = np.random.default_rng(seed).choice(len(law), n_copies, p=law)
        key = spawn_keys(seed, 1)[0]
        initial = states[start].ravel()
        labels = sampler(many_copies(n_copies), beta, k, n_classes, class_weight, key, initial)
        index = state_index(labels.reshape(n_copies, 4), n_classes)
        return p_value_of_counts(np.bincount(index, minlength=len(law)), law)

    return p_value


def kernel(graph, beta, k, n_classes, class_weight, key, initial):
    labels, _ = swendsen_wang_labels(
        graph, beta, k, n_classes,
        key=key, n_warmup=0, thin=SWEEPS, initial=initial, class_weight=class_weight,
    )  # fmt: skip
    return labels[0]


def broken(mutant):
    def sampler(graph, beta, k, n_classes, class_weight, key, labels):
        for sweep in range(SWEEPS):
            labels, _ = twin.sweep_labels(
                graph, k, beta, n_classes, class_weight, key, sweep, labels, mutant
            )
        return labels

    return sampler


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize(
    ("beta", "k"), [(0.0, 1), (1.0, 3), (1.5, 3), (0.5, 1), (4.0, 1), (3.0, 2)]
)
def test_law_of_the_labels(beta, k, n_classes):
    check(p_value_of_law(kernel, beta, k, n_classes), 50_000)


@pytest.mark.parametrize("class_weight", [[0.5, 1.0, 1.5], [0.5, 1.3, 1.3]])
@pytest.mark.parametrize(("beta", "k"), [(0.0, 2), (1.0, 3), (2.5, 2)])
def test_law_of_the_labels_with_class_weights(beta, k, class_weight):
    check(p_value_of_law(kernel, beta, k, 3, class_weight), 50_000)


@pytest.mark.mutant
@pytest.mark.parametrize("mutant", twin.MUTANTS)
def test_broken_sweeps_are_caught(mutant):
    assert rejects(p_value_of_law(broken(mutant), 1.5, 3, 2), 1_500)


@pytest.mark.mutant
@pytest.mark.parametrize("mutant", twin.WEIGHT_MUTANTS)
def test_broken_weights_are_caught(mutant):
    assert rejects(p_value_of_law(broken(mutant), 1.0, 3, 3, [0.5, 1.0, 1.5]), 4_000)


def p_value_of_mean(estimate, graph, beta, k, n_classes, exact, class_weight=None):
    """Mean of one estimate of E[S] over independent chains, by a t test."""

    def p_value(n_draws, seed):
        means = []
        for key in spawn_keys(seed, 32):
            _, info = swendsen_wang_labels(
                graph, beta, k, n_classes, key=key, n_draws=n_draws, class_weight=class_weight
            )
            means.append(getattr(info, estimate).mean())
        if np.ptp(means) < 1e-9 * exact:
            return float(abs(means[0] - exact) < 1e-9 * exact)
        return float(stats.ttest_1samp(means, exact).pvalue)

    return p_value


ESTIMATES = ["agreement", "cluster_agreement"]


def ring_expectation(n, beta, q):
    """E[S] on a ring: log Z is log((e^b + q - 1)^n + (q - 1) (e^b - 1)^n), differentiated."""
    e = np.exp(beta)
    first, second = (e + q - 1) ** n, (q - 1) * (e - 1) ** n
    return n * e * (first / (e + q - 1) + second / (e - 1)) / (first + second)


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize(("beta", "n_classes"), [(0.5, 3), (2.0, 2)])
def test_mean_agreement_on_a_ring(estimate, beta, n_classes):
    ring = NeighborGraph.from_neighbors([np.roll(np.arange(30), -1)])
    exact = ring_expectation(30, beta, n_classes)
    check(p_value_of_mean(estimate, ring, beta, 1, n_classes, exact), 2_000)
    # An expectation that is one in twenty off is seen.
    assert rejects(p_value_of_mean(estimate, ring, beta, 1, n_classes, 1.05 * exact), 2_000)


@pytest.fixture(scope="module")
def ripley():
    return NeighborGraph.from_points(load_ripley().X_train, 5)


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_mean_agreement_on_ripley(ripley, estimate, beta):
    exact = expected_agreement_exact(ripley, beta, 3, 2)
    check(p_value_of_mean(estimate, ripley, beta, 3, 2, exact), 1_000)


def test_mean_agreement_on_ripley_with_class_weights(ripley):
    weights = [0.8, 1.2]
    exact = expected_agreement_exact(ripley, 1.5, 3, 2, weights)
    for estimate in ESTIMATES:
        check(p_value_of_mean(estimate, ripley, 1.5, 3, 2, exact, weights), 1_000)


def poisson_numbers(mean, n_draws, seed):
    key = spawn_keys(seed, 1)[0]
    streams = [np.uint64(key_of_sweep(key, np.uint64(s))) for s in range(n_draws)]
    return np.array([draw_poisson(mean, stream, 3) for stream in streams])


@pytest.mark.parametrize("mean", [0.0, 0.3, 4.0, 9.99, 10.0, 40.0, 1500.0])
def test_number_of_candidates_is_poisson(mean):
    def p_value(n_draws, seed, shift=0):
        numbers = poisson_numbers(mean, n_draws, seed) + shift
        low, high = stats.poisson.ppf([1e-12, 1 - 1e-12], mean).astype(int)
        cells = np.arange(max(low, 0), high + 2)
        law = stats.poisson.pmf(cells, mean)
        counts = np.bincount(np.clip(numbers, cells[0], cells[-1]) - cells[0], minlength=law.size)
        return p_value_of_counts(counts, law)

    check(p_value, 20_000)
    off = max(1, round(np.sqrt(mean) / 5))
    assert rejects(lambda n_draws, seed: p_value(n_draws, seed, shift=off), 20_000)
