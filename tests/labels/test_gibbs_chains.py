"""Many Gibbs chains on one graph: each is the single chain, with numbers of its own."""

import numpy as np
import pytest

from bayesknn._utils.random import spawn_keys
from tests.labels.exact import enumerate_law, index_of, random_graph, ring
from tests.labels.samplers import gibbs_chains, gibbs_labels
from tests.statistical import check, p_value_of_counts, p_value_of_z, rejects

KEY = np.uint64(77)
GRAPH = random_graph(5, 3, seed=1)
K = 2


@pytest.mark.parametrize(
    ("n_classes", "class_weight"), [(2, None), (3, None), (2, [0.7, 1.4]), (3, [0.5, 1.0, 1.5])]
)
def test_each_chain_is_the_single_chain(n_classes, class_weight):
    graph, betas = random_graph(40, 6, seed=4), [0.0, 0.7, 2.0]
    labels, agreement = gibbs_chains(
        graph, betas, 4, n_classes, n_sweeps=6, n_warmup=5, key=KEY, class_weight=class_weight
    )
    for at, (beta, key) in enumerate(zip(betas, spawn_keys(int(KEY), 3), strict=True)):
        draws, info = gibbs_labels(
            graph, beta, 4, n_classes, n_draws=6, n_warmup=5, key=key, class_weight=class_weight
        )
        np.testing.assert_array_equal(labels[at], draws[-1])
        np.testing.assert_array_equal(agreement[:, at], info.agreement)


def test_company_does_not_change_a_chain():
    betas = np.linspace(0.1, 3.0, 9)
    labels, agreement = gibbs_chains(GRAPH, betas, K, 2, n_sweeps=20, n_warmup=5, key=KEY)
    fewer, series = gibbs_chains(GRAPH, betas[:4], K, 2, n_sweeps=20, n_warmup=5, key=KEY)
    np.testing.assert_array_equal(labels[:4], fewer)
    np.testing.assert_array_equal(agreement[:, :4], series)


def test_law():
    _, _, law = enumerate_law(GRAPH, 1.0, K, 3)

    def p_value(n_draws, seed):
        key = spawn_keys(seed, 1)[0]
        labels, _ = gibbs_chains(GRAPH, np.ones(n_draws), K, 3, n_sweeps=1, n_warmup=60, key=key)
        counts = np.bincount(index_of(labels, 3), minlength=len(law))
        return p_value_of_counts(counts, law)

    check(p_value, 10_000)


def p_value_of_means(factor=1.0):
    """P-value function: each chain's mean of S at its own beta, from sweeps 40 apart."""
    betas = np.linspace(0.0, 1.2, 20)
    moments = []
    for beta in betas:
        _, agreement, law = enumerate_law(GRAPH, beta, K, 2)
        moments.append((law @ agreement, np.sqrt(law @ agreement**2 - (law @ agreement) ** 2)))
    means, deviations = np.array(moments).T

    def p_value(n_draws, seed):
        key = spawn_keys(seed, 1)[0]
        _, series = gibbs_chains(GRAPH, factor * betas, K, 2, n_sweeps=40 * n_draws, key=key)
        apart = series[::40]
        return p_value_of_z((apart.mean(axis=0) - means) / deviations * np.sqrt(len(apart)))

    return p_value


def test_each_chain_has_its_own_beta():
    check(p_value_of_means(), 1500)
    assert rejects(p_value_of_means(factor=1.1), 1500)


def p_value_of_independence(run):
    """P-value function: correlations between the S of every pair of chains."""

    def p_value(n_draws, seed):
        apart = run(40 * n_draws, spawn_keys(seed, 1)[0])[::40]
        scores = (apart - apart.mean(axis=0)) / apart.std(axis=0)
        correlations = (scores.T @ scores / len(apart))[np.triu_indices(apart.shape[1], 1)]
        return p_value_of_z(np.arctanh(np.clip(correlations, -0.999, 0.999)) * len(apart) ** 0.5)

    return p_value


def test_chains_are_independent():
    def run(n_sweeps, key):
        return gibbs_chains(GRAPH, np.full(30, 0.8), K, 2, n_sweeps=n_sweeps, key=key)[1]

    check(p_value_of_independence(run), 1000)


def test_chains_that_share_numbers_are_rejected():
    def run(n_sweeps, key):
        alone = [gibbs_chains(GRAPH, [b], K, 2, n_sweeps=n_sweeps, key=key)[1] for b in (0.7, 0.8)]
        return np.hstack(alone)

    assert rejects(p_value_of_independence(run), 1000)


def test_initial_labels():
    graph = random_graph(30, 6, seed=4)
    labels, agreement = gibbs_chains(
        graph, [900.0, 900.0], 4, 3, n_sweeps=3, n_warmup=0, initial=np.ones(30, int), key=KEY
    )
    assert np.all(labels == 1) and np.all(agreement == 4 * 30)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"betas": [-1.0]}, "betas"),
        ({"betas": [np.nan]}, "betas"),
        ({"betas": []}, "betas is empty"),
        ({"k": 0}, "k must be"),
        ({"n_sweeps": 0}, "n_sweeps"),
        ({"n_warmup": -1}, "n_warmup"),
        ({"initial": [9, 0, 0, 0, 0]}, "labels"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {
        "betas": [1.0], "k": 1, "n_classes": 3, "n_sweeps": 2, "key": np.uint64(1), **change
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        gibbs_chains(ring(5), **arguments)
