"""Tests of the joint posterior with missing classes against enumeration of all labels."""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

from bayesknn.graph import NeighborGraph
from bayesknn.model import BoltzmannModel
from bayesknn.paper.missing_classes import fit_missing_classes, score_sequence

BETAS = np.linspace(0.0, 3.0, 16)
N_RUNS = 20


@pytest.fixture(scope="module")
def small():
    """Fit seven points of three classes, four of them labelled, by chains and by enumeration."""
    X = np.random.default_rng(3).normal(size=(7, 2))
    fixed = np.array([0, -1, 1, -1, 2, 0, -1])
    model = BoltzmannModel(NeighborGraph.from_points(X, 3), 3, fixed=fixed)
    fit = fit_missing_classes(model, [1, 2, 3], BETAS, n_sweeps=120, n_runs=N_RUNS, random_state=0)
    every = np.array(list(product(range(3), repeat=7)))
    agrees = (every[:, fixed >= 0] == fixed[fixed >= 0]).all(axis=1)
    energies = model.agreement(every)[:, :, None] / np.arange(1, 4)[:, None] * BETAS
    log_f = logsumexp(energies[agrees], axis=0) - logsumexp(energies, axis=0)
    return fit, log_f, np.exp(energies[agrees]), every[agrees][:, fixed < 0]


def assert_near(runs, exact):
    """Assert that the mean of independent runs is within five standard errors of exact values.

    With ``N_RUNS`` - 1 degrees of freedom a correct value fails with probability 5e-5. The values
    of one call are strongly correlated.
    """
    error = runs.std(axis=0, ddof=1) / N_RUNS**0.5
    assert np.all(np.abs(runs.mean(axis=0) - exact) < 5 * error + 1e-3)


def test_the_likelihood_of_the_known_labels_is_the_sum_over_the_others(small):
    fit, log_f, *_ = small
    assert_near(fit.log_likelihood[:, :, [5, 10, 15]], log_f[:, [5, 10, 15]])
    np.testing.assert_allclose(fit.log_likelihood[:, :, 0], -4 * np.log(3))
    # Small errors keep the comparison above from passing by chance: at most 0.1 in log f.
    assert (fit.log_likelihood.std(axis=0) / N_RUNS**0.5).max() < 0.1


def test_the_posterior_of_parameters_and_classes_is_that_of_the_sum(small):
    fit, log_f, joint, free = small
    cells = np.full(len(BETAS), BETAS[1])
    cells[[0, -1]] /= 2
    weights = np.exp(log_f) * cells
    weights /= weights.sum()
    assert_near(fit.weights.sum(axis=2), weights.sum(axis=1))
    assert_near(fit.weights.sum(axis=1) @ BETAS, weights.sum(axis=0) @ BETAS)
    given = joint / joint.sum(axis=0)
    for point in range(3):
        for g in range(3):
            exact = np.sum(weights * given[free[:, point] == g].sum(axis=0))
            assert_near(fit.probabilities[:, point, g], exact)


def test_scores_of_a_sequence_do_not_use_what_comes_later():
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    X = rng.normal(size=(40, 2)) + 2 * labels[:, None]
    scores, evidence = score_sequence(X, labels, 36, seed=0)
    other = labels.copy()
    other[-1] = 1 - other[-1]
    changed, _ = score_sequence(X, other, 36, seed=0)
    np.testing.assert_array_equal(changed[:-1], scores[:-1])
    assert np.exp(changed[-1]) + np.exp(scores[-1]) == pytest.approx(1)
    assert np.isfinite(evidence.value) and evidence.error >= 0
