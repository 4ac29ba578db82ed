"""Perfect draws on Ripley's graph, for every number of classes and every strength.

None fails, and the mean of S agrees with variable elimination where that is possible and with long
Swendsen-Wang chains, half of them started from one class, half from independent labels, elsewhere.
Agreement means within four Monte Carlo errors; a setting beyond is run once more, with four times
the draws and other keys, and has to be within four then. For the 120 settings together a false
alarm has a probability of about 1e-6, or 2e-5 if all the error were that of the chains.
"""

import math

import numpy as np
import pytest

from bayesknn._utils.random import spawn_keys
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.model import expected_agreement_exact
from tests.labels.samplers import perfect_labels, swendsen_wang_labels

CLASSES = (2, 3, 4, 6)
NEIGHBOURS = (1, 5, 13, 53, 125)
BETAS = (0.5, 1.0, 1.45, 2.0, 3.0, 4.0)
N_CHAINS = 32
# Near a first-order transition a chain changes phase once in thousands of sweeps.
SLOW_CHAINS = {(6, 53, 2.0), (6, 125, 2.0), (4, 125, 2.0), (4, 53, 2.0)}


@pytest.fixture(scope="module")
def ripley():
    return NeighborGraph.from_points(load_ripley().X_train, k_max=125)


def sequence(beta, k, n_classes, seed, sampler):
    """Seed each setting on its own, because perfect draws from one key go up and down together."""
    return np.random.SeedSequence([seed, sampler, n_classes, k, round(100 * beta)])


def mean_of_perfect(graph, beta, k, n_classes, n_draws, seed):
    key = spawn_keys(sequence(beta, k, n_classes, seed, 0), 1)[0]
    _, info = perfect_labels(graph, beta, k, n_classes, n_draws=n_draws, key=key)
    return info.agreement.mean(), info.agreement.std(ddof=1) / math.sqrt(n_draws)


def mean_of_chains(graph, beta, k, n_classes, scale, seed):
    """Mean over chains from both ends, and its error from how the chains differ."""
    thin = 40 if (n_classes, k, beta) in SLOW_CHAINS else 2
    means = []
    keys = spawn_keys(sequence(beta, k, n_classes, seed, 1), N_CHAINS)
    for c, key in enumerate(keys):
        initial = np.full(graph.n_points, c % n_classes) if c % 2 else None
        _, info = swendsen_wang_labels(
            graph, beta, k, n_classes, n_draws=1000 * scale, n_warmup=1000 * thin, thin=thin,
            initial=initial, key=key,
        )  # fmt: skip
        means.append(info.cluster_agreement.mean())
    return np.mean(means), np.std(means, ddof=1) / math.sqrt(N_CHAINS)


def standard_score(graph, beta, k, n_classes, exact, n_draws, seed):
    scale = 1 if seed == 0 else 4
    mean, error = mean_of_perfect(graph, beta, k, n_classes, scale * n_draws, seed)
    if exact is None:
        exact, chain_error = mean_of_chains(graph, beta, k, n_classes, scale, seed)
        error = math.hypot(error, chain_error)
    # Where all draws agree everywhere the difference is still compared, with one edge as its unit.
    return (mean - exact) / max(error, 1.0 / (scale * n_draws))


def check_mean(graph, beta, k, n_classes, exact, n_draws):
    score = standard_score(graph, beta, k, n_classes, exact, n_draws, seed=0)
    if abs(score) > 4:
        again = standard_score(graph, beta, k, n_classes, exact, n_draws, seed=1)
        assert abs(again) <= 4, f"beta {beta}, k {k}, G {n_classes}: {score:.1f}, then {again:.1f}"


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("k", NEIGHBOURS)
def test_none_fails(ripley, k, n_classes):
    for beta in BETAS:
        labels, _ = perfect_labels(ripley, beta, k, n_classes, n_draws=4, key=spawn_keys(0, 1)[0])
        assert labels.max() < n_classes


@pytest.mark.parametrize(("k", "n_classes"), [(1, 2), (1, 3), (1, 4), (1, 6), (5, 2)])
def test_mean_agrees_with_elimination(ripley, k, n_classes):
    exact = expected_agreement_exact(ripley, BETAS, k, n_classes)
    for beta, value in zip(BETAS, exact, strict=True):
        check_mean(ripley, beta, k, n_classes, value, n_draws=2000)


@pytest.mark.parametrize(
    ("beta", "k", "n_classes"),
    [(1.45, 13, 2), (1.0, 125, 2), (1.45, 13, 3), (2.0, 5, 4), (1.45, 53, 6)],
)
def test_mean_agrees_with_swendsen_wang(ripley, beta, k, n_classes):
    check_mean(ripley, beta, k, n_classes, None, n_draws=1000)


@pytest.mark.mutant
@pytest.mark.parametrize(
    ("beta", "wrong"), [(1.45, 1.5), (2.0, 1.9)], ids=["beta too large", "beta too small"]
)
def test_a_wrong_beta_is_noticed(ripley, beta, wrong):
    exact = expected_agreement_exact(ripley, beta, 5, 2)
    assert abs(standard_score(ripley, wrong, 5, 2, exact, n_draws=2000, seed=0)) > 4


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("k", [5, 13, 53, 125])
def test_every_mean_agrees_with_swendsen_wang(ripley, k, n_classes):
    for beta in BETAS:
        check_mean(ripley, beta, k, n_classes, None, n_draws=1000)
