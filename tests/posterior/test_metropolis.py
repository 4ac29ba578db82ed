"""Chains against quadrature on likelihoods small enough to enumerate, and mutants caught."""

import math

import numpy as np
import pytest
from arviz_stats.base import array_stats

from bayesknn._utils.random import spawn_keys
from bayesknn.exceptions import MixingWarning
from bayesknn.likelihood import CoherentLikelihood, ExactLikelihood, path_table
from bayesknn.model import ArrayPrior, UniformPrior
from bayesknn.posterior import grid_posterior, metropolis
from bayesknn.posterior.mcmc import metropolis as metropolis_module
from bayesknn.posterior.mcmc.metropolis import HybridGibbsSampler, MetropolisSampler
from bayesknn.posterior.mcmc.proposals import plan_walk, propose
from bayesknn.posterior.mcmc.runner import run_chains
from tests.posterior.label_chain_cases import make_likelihood
from tests.posterior.label_chain_twins import beta_of, log_jacobian
from tests.posterior.toy import (
    BETA_MAX,
    EnumeratedLikelihood,
    NormalRidge,
    exact_moments,
    standard_scores,
)
from tests.statistical import check, p_value_of_z, rejects

N_WARMUP = 500


def make_sampler(likelihood, prior=None, scheme="alternating", tau=None, r=None, n_warmup=N_WARMUP):
    prior = prior or UniformPrior(likelihood.k_max, BETA_MAX)
    walk, tuning = plan_walk(prior.beta_max, prior.k_max, scheme, n_warmup, tau, r)
    cls = HybridGibbsSampler if scheme == "hybrid-gibbs" else MetropolisSampler
    return cls(prior, walk, tuning, 1, likelihood)


def p_value_of(sampler):
    exact = exact_moments(sampler.likelihood, sampler.prior)

    def p_value(n_draws, seed):
        chains = run_chains(sampler, 4, N_WARMUP + n_draws, random_state=seed)
        return p_value_of_z(standard_scores(chains.draws, N_WARMUP, exact))

    return p_value


@pytest.mark.parametrize("scheme", ["alternating", "joint", "hybrid-gibbs"])
def test_chains_agree_with_quadrature_on_an_enumerated_likelihood(scheme):
    tau = 1.5 if scheme == "joint" else None
    check(p_value_of(make_sampler(EnumeratedLikelihood(3), scheme=scheme, tau=tau)), 3000)


def test_three_classes_and_a_prior_with_a_gap():
    # k = 2 is impossible, so that steps of one in k would never leave k = 1.
    likelihood = EnumeratedLikelihood(5, n_points=6, k_max=4, n_classes=3)
    density = np.outer([1.0, 0.0, 3.0, 1.0], [0.0, 1.0, 2.0, 1.0])
    check(p_value_of(make_sampler(likelihood, ArrayPrior(density, BETA_MAX))), 3000)


def test_the_papers_path_sampling_chain_agrees_with_exact_log_z():
    # A simulated table of log Z, then a random walk on it.
    exact_likelihood = make_likelihood(ExactLikelihood, n_points=30)
    graph, labels = exact_likelihood.graph, exact_likelihood.labels
    prior = UniformPrior(exact_likelihood.k_max, BETA_MAX)
    exact = exact_moments(exact_likelihood, prior)

    def p_value(n_draws, seed):
        table = path_table(graph, 2, beta_max=BETA_MAX, exact=False, random_state=seed)
        likelihood = CoherentLikelihood(graph, labels, table=table)
        of_table = grid_posterior(likelihood, prior)
        chains = run_chains(
            make_sampler(likelihood, prior), 4, N_WARMUP + n_draws, random_state=seed
        )
        draws = {name: values[:, N_WARMUP:] for name, values in chains.draws.items()}
        z = []
        for values, truth, error in (
            (draws["beta"], exact[0], of_table.beta_mean_error),
            (draws["k"] == 1, exact[2], of_table.k_probabilities_error[0]),
            (draws["k"] == 3, exact[4], of_table.k_probabilities_error[2]),
        ):
            own = array_stats.mcse(values.astype(float))
            z.append((values.mean() - truth) / np.hypot(own, error))
        return p_value_of_z(z)

    check(p_value, 3000)


def test_prior_smaller_than_the_likelihood_and_a_single_k():
    likelihood = EnumeratedLikelihood(4)
    check(p_value_of(make_sampler(likelihood, UniformPrior(2, 1.5))), 3000)
    check(p_value_of(make_sampler(likelihood, UniformPrior(1, BETA_MAX))), 2000)


def without_hastings(walk, tuning, theta, k, key, iteration):
    to = propose(walk, tuning, theta, k, key, iteration)
    jacobian = log_jacobian(to.theta) - log_jacobian(theta)
    return to._replace(log_correction=jacobian)


def without_jacobian(walk, tuning, theta, k, key, iteration):
    to = propose(walk, tuning, theta, k, key, iteration)
    jacobian = log_jacobian(to.theta) - log_jacobian(theta)
    return to._replace(log_correction=to.log_correction - jacobian)


def one_way_ridge(walk, tuning, theta, k, key, iteration):
    """Shift theta up whichever way k goes, which the way back does not undo."""
    to = propose(walk, tuning._replace(slope=0.0), theta, k, key, iteration)
    shifted = to.theta + (0.5 if to.k != k else 0.0)
    correction = to.log_correction + log_jacobian(shifted) - log_jacobian(to.theta)
    beta = beta_of(shifted, walk.beta_max)
    return to._replace(theta=shifted, beta=beta, log_correction=correction)


@pytest.mark.mutant
@pytest.mark.parametrize("mutant", [without_hastings, without_jacobian, one_way_ridge])
def test_mutants_are_rejected(mutant, monkeypatch):
    monkeypatch.setattr(metropolis_module, "propose", mutant)
    assert rejects(p_value_of(make_sampler(EnumeratedLikelihood(3), r=2)), 3000)


def test_adapted_chains_mix_where_a_fixed_step_hardly_moves():
    # The posterior sits on k = 2 and 3; from one to the other beta moves by four of its standard
    # deviations, and the paper's step is fifty of them.
    centres = 1.6 + 0.016 * np.arange(20)
    likelihood = NormalRidge(centres, 0.004, [-9.0, 0.0, 0.3, *(-9.0 * np.arange(1, 18))])
    prior = UniformPrior(20, BETA_MAX)
    changes, acceptance = {}, {}
    for scheme in ("joint", "alternating"):
        sampler = make_sampler(likelihood, prior, scheme, n_warmup=1000)
        draws = run_chains(sampler, 4, 4000, random_state=1).draws
        # Effective sizes of chains that hardly move are noise: how often k changes is not.
        changes[scheme] = int((np.diff(draws["k"][:, 1000:], axis=1) != 0).sum())
        acceptance[scheme] = draws["accepted"][:, 1000:].mean()
    assert acceptance["joint"] < 0.01 and acceptance["alternating"] > 0.1
    assert changes["alternating"] > 2 * changes["joint"]


def test_chains_that_did_not_mix_say_so():
    likelihood = NormalRidge([1.0, 3.0], 0.002, [0.0, 0.0])
    with pytest.warns(
        MixingWarning, match="beta .*; few moves were accepted after warm-up .*chain 0"
    ):
        metropolis(likelihood, UniformPrior(2, BETA_MAX), scheme="joint", n_draws=200)


def test_a_step_is_a_pure_function():
    sampler = make_sampler(EnumeratedLikelihood(0))
    key = spawn_keys(0, 1)[0]
    state = sampler.init(key)
    assert sampler.init(key) == state
    assert sampler.step(state, key, 3) == sampler.step(state, key, 3)
    assert sampler.step(state, key, 3) != sampler.step(state, key, 5)


def test_recorded_log_posterior_is_that_of_the_draw():
    likelihood = EnumeratedLikelihood(0)
    prior = UniformPrior(3, BETA_MAX)
    for scheme in ("alternating", "hybrid-gibbs"):
        sampler = make_sampler(likelihood, prior, scheme)
        draws = run_chains(sampler, 2, 100, random_state=0).draws
        expected = likelihood.log_density(draws["beta"], draws["k"]) + prior.log_density(1.0, 1)
        np.testing.assert_allclose(draws["log_posterior"], expected, atol=1e-12)
        assert draws["k"].max() <= 3 and draws["k"].dtype == np.int64


def test_a_likelihood_that_is_not_a_number_somewhere_is_never_entered():
    class Holed(EnumeratedLikelihood):
        def log_density(self, beta, k):
            values = np.asarray(super().log_density(beta, k), float)
            return np.where((beta > 1) & (beta < 2), math.nan, values)

    sampler = make_sampler(Holed(0))
    draws = run_chains(sampler, 4, 500, random_state=0).draws
    assert np.isfinite(draws["log_posterior"]).all()
    assert not ((draws["beta"] > 1) & (draws["beta"] < 2)).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_draws": 0}, "n_draws must be an integer >= 1, got 0"),
        ({"n_draws": 2.5}, "n_draws must be an integer"),
        ({"n_chains": 0}, "n_chains must be an integer >= 1, got 0"),
        ({"n_warmup": -1}, "n_warmup must be an integer >= 0"),
        ({"tau": 0.0}, "tau must be a positive number"),
        ({"tau": "wide"}, "tau must be a positive number"),
        ({"tau": math.nan}, "tau must be a positive number"),
        ({"r": 0}, "r must be an integer >= 1"),
        ({"r": 1.5}, "r must be an integer >= 1"),
        ({"scheme": "gibbs"}, "scheme must be one of alternating, joint, hybrid-gibbs"),
        ({"scheme": "hybrid-gibbs", "r": 3}, "r has no use"),
        ({"random_state": -1}, "random_state must be >= 0"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        metropolis(EnumeratedLikelihood(0), UniformPrior(5, BETA_MAX), **options)


def test_a_prior_out_of_reach_is_refused():
    with pytest.raises(ValueError, match="reaches k=6, but k is at most 5"):
        metropolis(EnumeratedLikelihood(0), UniformPrior(6, BETA_MAX))

    class Broken:
        k_max, beta_max = 5, -1.0

        def log_density(self, beta, k):
            return 0.0

    with pytest.raises(ValueError, match="beta_max must be a positive number, got -1.0"):
        metropolis(EnumeratedLikelihood(0), Broken())
    Broken.beta_max = 4.0
    Broken.log_density = lambda self, beta, k: -math.inf
    with pytest.raises(ValueError, match="no start found"):
        metropolis(EnumeratedLikelihood(0), Broken())
