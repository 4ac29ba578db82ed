"""log Z is exact where that is cheap: at all k, or at the first of them, which tie the others."""

import numpy as np
import pytest

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, ExactLikelihood
from bayesknn.log_z.log_z import find_exact
from bayesknn.model import BoltzmannModel
from bayesknn.posterior import grid_posterior
from tests.posterior.toy import simulated_posterior


def make_points(n):
    return np.random.default_rng(4).normal(size=(n, 2)) + 1.5 * (np.arange(n) % 2)[:, None]


def make_data(n, k_max):
    return NeighborGraph.from_points(make_points(n), k_max), np.arange(n) % 2


def test_nine_points_have_an_exact_evidence():
    data = make_data(9, 8)
    exact = grid_posterior(ExactLikelihood(*data), beta_max=4.0)
    for seed in range(2):
        posterior = grid_posterior(CoherentLikelihood(*data), beta_max=4.0, random_state=seed)
        assert posterior.log_evidence == exact.log_evidence
        assert posterior.log_evidence_error == 0.0
        np.testing.assert_array_equal(posterior.k_probabilities, exact.k_probabilities)
    clf = BayesianKNeighborsClassifier(max_neighbors=8, beta_max=4.0, random_state=0)
    clf.fit(make_points(9), data[1])
    assert clf.log_evidence_error_ == 0.0
    assert clf.log_evidence_ == pytest.approx(exact.log_evidence, abs=1e-9)


def test_a_prior_of_small_k_is_exact_on_a_wide_graph():
    graph, labels = make_data(40, 20)
    prior = np.repeat([1.0, 0.0], [6, 14])
    likelihood = CoherentLikelihood(graph, labels)
    assert 6 <= len(find_exact(likelihood.model, range(1, 21))) < 20
    posterior = grid_posterior(likelihood, prior, beta_max=3.0, random_state=0)
    assert posterior.log_evidence_error == 0.0 and posterior.k_values.max() <= 6


def test_sums_of_more_terms_than_floats_hold_are_not_cheap():
    graph, _ = make_data(500, 480)
    assert find_exact(BoltzmannModel(graph, 5), [480]) == []


@pytest.fixture
def few_terms(monkeypatch):
    monkeypatch.setattr("bayesknn.log_z.log_z._FEW_TERMS", 2000)


def test_simulated_k_are_tied_to_exact_ones(few_terms):
    data = make_data(30, 8)
    assert 2 < len(find_exact(CoherentLikelihood(*data).model, range(1, 9))) < 8
    exact = grid_posterior(ExactLikelihood(*data), beta_max=4.0)
    z, errors = [], []
    for seed in range(6):
        tied = grid_posterior(CoherentLikelihood(*data), beta_max=4.0, random_state=seed)
        z.append((tied.log_evidence - exact.log_evidence) / tied.log_evidence_error)
        z.append((tied.beta_mean - exact.beta_mean) / tied.beta_mean_error)
        z.append((tied.k_mean - exact.k_mean) / tied.k_mean_error)
        errors.append(tied.log_evidence_error)
    assert np.abs(z).max() < 6 and np.sqrt(np.mean(np.square(z))) < 2
    free = simulated_posterior(CoherentLikelihood(*data), beta_max=4.0, random_state=0)
    assert free.log_evidence_error > 2 * np.median(errors)
