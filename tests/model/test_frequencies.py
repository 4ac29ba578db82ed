"""The null model: labels that depend on their frequencies alone."""

from itertools import product

import numpy as np

from bayesknn.model import log_evidence_of_frequencies
from bayesknn.model.frequencies import frequencies_of_others


def log_probability(labels):
    return log_evidence_of_frequencies(np.bincount(labels, minlength=3))


def test_it_is_a_distribution_with_these_conditionals():
    labels = [list(each) for each in product(range(3), repeat=5)]
    assert abs(np.exp([log_probability(each) for each in labels]).sum() - 1) < 1e-12
    for each in labels[::17]:
        others = np.logaddexp.reduce([log_probability([g, *each[1:]]) for g in range(3)])
        expected = np.exp(log_probability(each) - others)
        assert (
            abs(frequencies_of_others(np.bincount(each, minlength=3))[each[0]] - expected) < 1e-12
        )
