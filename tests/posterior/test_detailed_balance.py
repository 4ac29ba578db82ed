"""The moves that draw labels, without randomness: the exact law goes through the enumerated kernel.

On four points every labelling z can be listed, so that the probability of each move is a sum, and
the kernel on a few settings of (beta, k) is a matrix that must give back the posterior. The ratios
are the reference's, which the compiled moves have too: ``test_exchange.py``, ``test_auxiliary.py``.
"""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from bayesknn import reference
from bayesknn.graph import NeighborGraph
from tests.model.enumeration import as_reference

N_CLASSES = 3
SETTINGS = [(0.3, 1), (1.4, 2), (0.9, 3), (2.2, 3)]
LOG_PRIOR = np.log([0.1, 0.4, 0.2, 0.3])
PLUG_IN = (1.1, 2)
GRAPH = NeighborGraph.from_points([[0.0], [1.0], [2.2], [2.9]], k_max=3)
LABELLINGS = np.array(list(product(range(N_CLASSES), repeat=4)))
OBSERVED = LABELLINGS.tolist().index([0, 0, 1, 2])


def tabulate_potential(weights):
    """Return beta / k S_k of every labelling, by (beta, k)."""
    lists = as_reference(GRAPH, N_CLASSES, np.array(weights))
    return {at: reference.potential(*lists, LABELLINGS, *at) for at in (*SETTINGS, PLUG_IN)}


def as_function(table):
    """Return the potential of a labelling, which is named by its place."""
    return lambda z, beta, k: table[beta, k][z]


def log_posterior(table):
    return LOG_PRIOR + [table[at][OBSERVED] - logsumexp(table[at]) for at in SETTINGS]


def exchange_kernel(table, log_ratio=reference.log_exchange_ratio):
    """Propose each setting with the same probability; what is not accepted stays."""
    h, m = as_function(table), len(SETTINGS)
    kernel = np.zeros((m, m))
    for one, other in product(range(m), repeat=2):
        at, to = SETTINGS[one], SETTINGS[other]
        for z, probability in enumerate(softmax(table[to])):
            value = log_ratio(h, OBSERVED, z, at, to) + LOG_PRIOR[other] - LOG_PRIOR[one]
            kernel[one, other] += probability * np.exp(min(value, 0.0)) / m
    kernel[np.diag_indices(m)] += 1 - kernel.sum(axis=1)
    return kernel


def auxiliary_kernel(table, log_ratio=reference.log_auxiliary_ratio):
    """Do the same on pairs of a setting and auxiliary labels."""
    h, m, n = as_function(table), len(SETTINGS), len(LABELLINGS)
    kernel = np.zeros((m, n, m, n))
    for one, other in product(range(m), repeat=2):
        at, to = SETTINGS[one], SETTINGS[other]
        proposed = softmax(table[to])
        for z, drawn in product(range(n), repeat=2):
            value = log_ratio(h, OBSERVED, z, drawn, at, to, PLUG_IN)
            value += LOG_PRIOR[other] - LOG_PRIOR[one]
            kernel[one, z, other, drawn] = proposed[drawn] * np.exp(min(value, 0.0)) / m
    kernel = kernel.reshape(m * n, m * n)
    kernel[np.diag_indices(m * n)] += 1 - kernel.sum(axis=1)
    return kernel


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [0.5, 1.0, 1.6]])
def test_exchange_moves_leave_the_posterior_as_it_is(weights):
    table = tabulate_potential(weights)
    posterior = softmax(log_posterior(table))
    np.testing.assert_allclose(posterior @ exchange_kernel(table), posterior, atol=1e-13)


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [0.5, 1.0, 1.6]])
def test_auxiliary_moves_leave_the_posterior_and_the_plug_in_law_as_they_are(weights):
    table = tabulate_potential(weights)
    joint = np.outer(softmax(log_posterior(table)), softmax(table[PLUG_IN])).ravel()
    np.testing.assert_allclose(joint @ auxiliary_kernel(table), joint, atol=1e-13)


def forgets_the_labels(h, y, z, at, to):
    """Leave out the labels drawn: the ratio of the likelihoods without Z."""
    return h(y, *to) - h(y, *at)


def divides_by_the_old_k(h, y, z, at, to):
    """Give the labels drawn to (beta, k') in place of (beta, k)."""
    return h(y, *to) - h(y, *at) + at[0] / to[0] * h(z, *to) - h(z, *to)


@pytest.mark.parametrize("mutant", [forgets_the_labels, divides_by_the_old_k])
def test_mutants_of_the_exchange_change_the_posterior(mutant):
    table = tabulate_potential([1.0, 1.0, 1.0])
    posterior = softmax(log_posterior(table))
    assert np.abs(posterior @ exchange_kernel(table, mutant) - posterior).max() > 1e-3


def forgets_the_plug_in(h, y, z, z_to, at, to, plug_in):
    return h(y, *to) - h(y, *at) + h(z, *at) - h(z_to, *to)


@pytest.mark.mutant
def test_a_mutant_of_the_auxiliary_scheme_changes_the_posterior():
    table = tabulate_potential([1.0, 1.0, 1.0])
    posterior = softmax(log_posterior(table))
    joint = np.outer(posterior, softmax(table[PLUG_IN])).ravel()
    after = (joint @ auxiliary_kernel(table, forgets_the_plug_in)).reshape(len(SETTINGS), -1)
    assert np.abs(after.sum(axis=1) - posterior).max() > 1e-3
