"""The moves that draw labels, without randomness: the exact law goes through the enumerated kernel.

On four points every labelling z can be listed, so that the probability of each move is a sum, and
the kernel on a few settings of (beta, k) is a matrix that must give back the posterior.
"""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from bayesknn.graph import NeighborGraph
from bayesknn.posterior.mcmc.label_chains import PlugIn, _log_auxiliary, _log_exchange
from bayesknn.posterior.mcmc.proposals import acceptance_probability

N_CLASSES = 3
SETTINGS = [(0.3, 1), (1.4, 2), (0.9, 3), (2.2, 3)]
LOG_PRIOR = np.log([0.1, 0.4, 0.2, 0.3])
PLUG_IN = PlugIn(1.1, 2, np.zeros(3, np.int64), np.zeros(3))
GRAPH = NeighborGraph.from_points([[0.0], [1.0], [2.2], [2.9]], k_max=3)
LABELLINGS = np.array(list(product(range(N_CLASSES), repeat=4)))
OBSERVED = LABELLINGS.tolist().index([0, 0, 1, 2])


def count_agreement(weights):
    """S_k of every labelling: row k - 1 belongs to k."""
    near = GRAPH.neighbors.astype(int)
    same = LABELLINGS[:, near] == LABELLINGS[:, None, :]
    by_rank = (same * np.asarray(weights)[LABELLINGS][:, None, :]).sum(axis=2)
    return np.cumsum(by_rank, axis=1).T


def law(agreement, beta, k):
    return softmax(beta / k * agreement[k - 1])


def log_posterior(agreement):
    values = [
        beta / k * agreement[k - 1, OBSERVED] - logsumexp(beta / k * agreement[k - 1])
        for beta, k in SETTINGS
    ]
    return np.array(values) + LOG_PRIOR


def exchange_kernel(agreement, log_ratio=_log_exchange):
    """Propose each setting with the same probability; what is not accepted stays."""
    observed, m = agreement[:, OBSERVED], len(SETTINGS)
    kernel = np.zeros((m, m))
    for one, other in product(range(m), repeat=2):
        (beta, k), (to_beta, to_k) = SETTINGS[one], SETTINGS[other]
        for z, probability in enumerate(law(agreement, to_beta, to_k)):
            drawn = agreement[k - 1, z], agreement[to_k - 1, z]
            value = log_ratio(observed, beta, k, to_beta, to_k, *drawn)
            accepted = acceptance_probability(value + LOG_PRIOR[other] - LOG_PRIOR[one])
            kernel[one, other] += probability * accepted / m
    kernel[np.diag_indices(m)] += 1 - kernel.sum(axis=1)
    return kernel


def auxiliary_kernel(agreement, log_ratio=_log_auxiliary):
    """Do the same on pairs of a setting and auxiliary labels."""
    observed, m, n = agreement[:, OBSERVED], len(SETTINGS), len(LABELLINGS)
    kernel = np.zeros((m, n, m, n))
    for one, other in product(range(m), repeat=2):
        (beta, k), (to_beta, to_k) = SETTINGS[one], SETTINGS[other]
        proposed = law(agreement, to_beta, to_k)
        for z, drawn in product(range(n), repeat=2):
            kept = agreement[k - 1, z], agreement[PLUG_IN.k - 1, z]
            new = agreement[to_k - 1, drawn], agreement[PLUG_IN.k - 1, drawn]
            value = log_ratio(observed, PLUG_IN, beta, k, to_beta, to_k, kept, new)
            accepted = acceptance_probability(value + LOG_PRIOR[other] - LOG_PRIOR[one])
            kernel[one, z, other, drawn] = proposed[drawn] * accepted / m
    kernel = kernel.reshape(m * n, m * n)
    kernel[np.diag_indices(m * n)] += 1 - kernel.sum(axis=1)
    return kernel


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [0.5, 1.0, 1.6]])
def test_exchange_moves_leave_the_posterior_as_it_is(weights):
    agreement = count_agreement(weights)
    posterior = softmax(log_posterior(agreement))
    np.testing.assert_allclose(posterior @ exchange_kernel(agreement), posterior, atol=1e-13)


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [0.5, 1.0, 1.6]])
def test_auxiliary_moves_leave_the_posterior_and_the_plug_in_law_as_they_are(weights):
    agreement = count_agreement(weights)
    joint = np.outer(
        softmax(log_posterior(agreement)), law(agreement, PLUG_IN.beta, PLUG_IN.k)
    ).ravel()
    np.testing.assert_allclose(joint @ auxiliary_kernel(agreement), joint, atol=1e-13)


def forgets_the_labels(observed, beta, k, to_beta, to_k, drawn_k, drawn_to_k):
    """Leave out the labels drawn: the ratio of the likelihoods without Z."""
    return to_beta / to_k * observed[to_k - 1] - beta / k * observed[k - 1]


def forgets_the_old_k(observed, beta, k, to_beta, to_k, drawn_k, drawn_to_k):
    return _log_exchange(observed, beta, k, to_beta, to_k, drawn_to_k, drawn_to_k)


@pytest.mark.parametrize("mutant", [forgets_the_labels, forgets_the_old_k])
def test_mutants_of_the_exchange_change_the_posterior(mutant):
    agreement = count_agreement([1.0, 1.0, 1.0])
    posterior = softmax(log_posterior(agreement))
    assert np.abs(posterior @ exchange_kernel(agreement, mutant) - posterior).max() > 1e-3


def forgets_the_plug_in(observed, plug_in, beta, k, to_beta, to_k, kept, drawn):
    return _log_auxiliary(
        observed, plug_in, beta, k, to_beta, to_k, (kept[0], 0.0), (drawn[0], 0.0)
    )


@pytest.mark.mutant
def test_a_mutant_of_the_auxiliary_scheme_changes_the_posterior():
    agreement = count_agreement([1.0, 1.0, 1.0])
    posterior = softmax(log_posterior(agreement))
    joint = np.outer(posterior, law(agreement, PLUG_IN.beta, PLUG_IN.k)).ravel()
    after = (joint @ auxiliary_kernel(agreement, forgets_the_plug_in)).reshape(len(SETTINGS), -1)
    assert np.abs(after.sum(axis=1) - posterior).max() > 1e-3
