"""Priors narrower than any grid over [0, beta_max]: every route integrates where their mass is."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.likelihood import (
    CoherentLikelihood,
    ExactLikelihood,
    HolmesAdamsLikelihood,
    PseudoLikelihood,
    path_table,
)
from bayesknn.model import ArrayPrior, FunctionPrior
from bayesknn.posterior import exchange, metropolis
from bayesknn.posterior.quadrature.log_posterior import LogPosterior
from bayesknn.posterior.quadrature.which_k import bound_posterior
from tests.posterior.test_grid import small_data
from tests.posterior.toy import simulated_posterior

BETA_MAX = 4.0
COLUMNS = np.zeros((4, 4001))
COLUMNS[:, 1101] = 1.0
COLUMNS[1, 2202] = 3.0


def flat(beta, k):
    return 1.0 * ((beta >= 1.03) & (beta <= 1.045))


def normal(beta, k):
    return norm.pdf(beta, 1.0, 0.001)


def apart(beta, k):
    return norm.pdf(beta, 0.5, 0.003) + norm.pdf(beta, 2.0, 0.0005) / k


def another_for_each_k(beta, k):
    return norm.pdf(beta, 1.1 + 0.05 * (k % 2), 0.002)


# What is integrated, and a range that holds it.
PRIORS = {
    "flat": (FunctionPrior(flat, 4, BETA_MAX), (1.03, 1.045)),
    "normal": (FunctionPrior(normal, 4, BETA_MAX), (0.99, 1.01)),
    "apart": (FunctionPrior(apart, 4, BETA_MAX), (0.47, 2.01)),
    "another for each k": (FunctionPrior(another_for_each_k, 4, BETA_MAX), (1.08, 1.17)),
    "columns": (ArrayPrior(COLUMNS, BETA_MAX), (1.1, 2.203)),
}


def sum_densely(likelihood, name):
    """Evidence, P(k) and the mean of beta by the trapezium rule; the prior is normalised there."""
    prior, ends = PRIORS[name]
    betas = np.linspace(*ends, 40_001)
    log_prior = prior.log_density(betas, np.arange(1, 5)[:, None])
    log_prior -= np.log(np.trapezoid(np.exp(log_prior), betas, axis=1).sum())
    table = likelihood.log_density_grid(betas) + log_prior + np.log(betas[1] - betas[0])
    table[:, [0, -1]] -= np.log(2)
    evidence = logsumexp(table)
    mass = np.exp(table - evidence)
    return evidence, mass.sum(axis=1), (mass @ betas).sum()


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("cls", [PseudoLikelihood, HolmesAdamsLikelihood, ExactLikelihood])
def test_a_likelihood_that_can_be_computed(cls, prior):
    likelihood = cls(*small_data(2))
    evidence, k_probabilities, beta_mean = sum_densely(likelihood, prior)
    found = simulated_posterior(likelihood, PRIORS[prior][0])
    assert found.log_evidence == pytest.approx(evidence, abs=1e-4)
    np.testing.assert_allclose(found.k_probabilities, k_probabilities, atol=1e-4)
    assert found.beta_mean == pytest.approx(beta_mean, abs=1e-4)


@pytest.mark.parametrize("prior", PRIORS)
def test_the_coherent_model(prior):
    evidence, k_probabilities, beta_mean = sum_densely(ExactLikelihood(*small_data(2)), prior)
    found = simulated_posterior(
        CoherentLikelihood(*small_data(2)), PRIORS[prior][0], random_state=0
    )
    # Six errors.
    assert abs(found.log_evidence - evidence) < 6 * found.log_evidence_error
    assert np.all(np.abs(found.k_probabilities - k_probabilities) < 6 * found.k_probabilities_error)
    assert abs(found.beta_mean - beta_mean) < 6 * found.beta_mean_error + 1e-4


def test_a_table_is_refined_where_the_mass_is():
    graph, labels, n_classes, _ = small_data(2)
    prior, _ = PRIORS["normal"]
    table = path_table(
        graph, n_classes, beta_max=BETA_MAX, labels=labels, prior=prior, exact=False, random_state=0
    )
    _, k_probabilities, _ = sum_densely(ExactLikelihood(*small_data(2)), "normal")
    allowed = 6 * table.k_probabilities_error
    assert np.all(np.abs(table.k_probabilities - k_probabilities) < allowed)
    likelihood = CoherentLikelihood(graph, labels, n_classes, table=table)
    found = simulated_posterior(likelihood, prior)
    np.testing.assert_allclose(found.k_probabilities, table.k_probabilities, atol=1e-3)


def test_the_bound_without_simulation_is_one_under_a_narrow_prior():
    likelihood = CoherentLikelihood(*small_data(2))
    exact = ExactLikelihood(*small_data(2))
    for name, (prior, _) in PRIORS.items():
        evidence, k_probabilities, _ = sum_densely(exact, name)
        target = LogPosterior(likelihood, prior)
        for k in range(1, 5):
            truth = evidence + np.log(k_probabilities[k - 1])
            assert truth < bound_posterior(target, k) + 1e-6, (name, k)


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
@pytest.mark.parametrize(
    ("function", "cls"), [(metropolis, PseudoLikelihood), (exchange, CoherentLikelihood)]
)
def test_chains_start_where_the_mass_is(function, cls):
    # One in four thousand of the points that are spread over all beta would do.
    prior = FunctionPrior(lambda beta, k: 1.0 * ((beta >= 1.03) & (beta <= 1.031)), 4, BETA_MAX)
    for seed in range(5):
        tree = function(
            cls(*small_data(2)), prior, n_chains=2, n_draws=20, n_warmup=20, random_state=seed
        )
        beta = tree["posterior"]["beta"].values
        assert np.all((beta >= 1.03) & (beta <= 1.031))


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
def test_the_error_of_log_z_is_that_at_the_mode():
    points = np.random.default_rng(11).normal(size=(60, 2))
    clf = BayesianKNeighborsClassifier(
        inference="metropolis", max_neighbors=4, prior=PRIORS["flat"][0], n_draws=500,
        random_state=0,
    ).fit(points, small_data(2)[1])  # fmt: skip
    assert 0.0 <= clf.diagnostics_["log_normalizer_error"] < 0.1
