"""The exchange chains: against exact posteriors, their twin, and mutants of it."""

import numpy as np
import pytest

from bayesknn._utils.random import spawn_keys
from bayesknn.exceptions import CoalescenceError, MixingWarning
from bayesknn.likelihood import PseudoLikelihood
from bayesknn.model import ArrayPrior, FunctionPrior, UniformPrior
from bayesknn.posterior import exchange
from bayesknn.posterior.mcmc.runner import run_chains
from tests.posterior.label_chain_cases import (
    BETA_MAX,
    EXCHANGE_CASES,
    K_MAX,
    PRIOR,
    assert_same_chains,
    first_key,
    make_likelihood,
    make_sampler,
    p_value_of,
)
from tests.posterior.label_chain_twins import log_exchange, run_exchange_twin
from tests.statistical import check, rejects


@pytest.mark.parametrize(("label_sampler", "n_classes", "weighted"), EXCHANGE_CASES)
def test_chains_agree_with_the_exact_posterior(label_sampler, n_classes, weighted):
    likelihood = make_likelihood(n_classes=n_classes, weighted=weighted)
    n_draws = 1000 if label_sampler == "gibbs" else 3000
    check(p_value_of(make_sampler(likelihood, label_sampler)), n_draws)


def test_joint_moves_and_another_prior():
    density = np.outer([1.0, 0.0, 3.0, 1.0], [0.2, 1.0, 2.0, 0.0])
    check(p_value_of(make_sampler(prior=ArrayPrior(density, BETA_MAX))), 3000)
    check(p_value_of(make_sampler(scheme="joint", tau=1.0, r=2)), 3000)
    check(p_value_of(make_sampler(prior=UniformPrior(1, BETA_MAX))), 2000)


@pytest.mark.parametrize(("label_sampler", "n_classes", "weighted"), EXCHANGE_CASES)
def test_compiled_moves_are_those_of_the_twin(label_sampler, n_classes, weighted):
    likelihood = make_likelihood(n_classes=n_classes, weighted=weighted)
    sampler = make_sampler(likelihood, label_sampler, thin=1, n_warmup=100)
    draws = run_chains(sampler, 1, 200, random_state=7).draws
    beta, k = run_exchange_twin(sampler, first_key(sampler, 7), 200)
    np.testing.assert_array_equal(draws["k"][0], k)
    np.testing.assert_allclose(draws["beta"][0], beta, rtol=1e-12)


def forgets_the_old_k(model, beta, k, to, z):
    """Take S of the labels drawn at k' for the old setting as well."""
    wrong = beta / k * (model.agreement(z, to.k) - model.agreement(z, k))
    return log_exchange(model, beta, k, to, z) + wrong


def divides_by_the_old_k(model, beta, k, to, z):
    wrong = (to.beta / k - to.beta / to.k) * model.agreement(z, to.k)
    return log_exchange(model, beta, k, to, z) - wrong


@pytest.mark.mutant
@pytest.mark.parametrize(
    "mutant",
    [
        {"log_ratio": forgets_the_old_k},
        {"log_ratio": divides_by_the_old_k},
        {"hastings": False},
        {"draws_at_proposal": False},
    ],
    ids=["old k forgotten", "old k divides", "no Hastings term", "labels of the old setting"],
)
def test_mutants_are_rejected(mutant):
    sampler = make_sampler(thin=2, r=1)

    def run(key, n_moves):
        return run_exchange_twin(sampler, key, n_moves, **mutant)

    assert rejects(p_value_of(sampler, run), 800)


@pytest.mark.parametrize("label_sampler", ["swendsen-wang", "perfect", "gibbs"])
def test_rounds_and_workers_do_not_matter(label_sampler):
    sampler = make_sampler(label_sampler=label_sampler)
    whole = run_chains(sampler, 3, 120, random_state=0, round_size=120)
    for options in ({"round_size": 7}, {"round_size": 50, "n_jobs": 2}, {"n_jobs": 3}):
        assert_same_chains(run_chains(sampler, 3, 120, random_state=0, **options), whole)


def test_a_thinned_chain_is_every_so_manieth_move():
    # Joint moves do not adapt, so that the length of warm-up does not matter.
    thinned = run_chains(make_sampler(scheme="joint", thin=5), 2, 60, random_state=0).draws
    every = run_chains(make_sampler(scheme="joint", thin=1), 2, 300, random_state=0).draws
    np.testing.assert_array_equal(thinned["beta"], every["beta"][:, 4::5])
    shares = every["accepted"].reshape(2, 60, 5).mean(axis=2)
    np.testing.assert_allclose(thinned["accepted"], shares)


def test_a_prior_in_python_gives_the_same_chain_as_its_table():
    """The density depends on k: compiled blocks read a table of it, single moves are given it."""
    table = np.array([4.0, 1.0, 0.2, 3.0])
    function = FunctionPrior(lambda beta, k: table[np.int64(k) - 1] + 0 * beta, K_MAX, BETA_MAX)
    draws = [
        run_chains(make_sampler(prior=prior), 1, 300, random_state=3).draws
        for prior in (ArrayPrior(table, BETA_MAX), function)
    ]
    np.testing.assert_array_equal(draws[0]["k"], draws[1]["k"])
    np.testing.assert_allclose(draws[0]["beta"], draws[1]["beta"], rtol=1e-9)


def test_a_prior_in_python_is_obeyed():
    prior = FunctionPrior(lambda beta, k: (beta < 1.0) * np.exp(-beta), K_MAX, BETA_MAX)
    draws = run_chains(make_sampler(prior=prior), 4, 200, random_state=0).draws
    assert draws["beta"].max() < 1.0
    assert len(np.unique(draws["k"])) == K_MAX


def test_tables_interpolate_as_the_priors_do():
    # The twin asks the prior itself.
    rng = np.random.default_rng(0)
    for values in (rng.random(K_MAX), rng.random((K_MAX, 5)) * (rng.random((K_MAX, 5)) > 0.3)):
        sampler = make_sampler(prior=ArrayPrior(values, BETA_MAX), thin=1, n_warmup=100)
        draws = run_chains(sampler, 1, 400, random_state=7).draws
        beta, k = run_exchange_twin(sampler, first_key(sampler, 7), 400)
        np.testing.assert_array_equal(draws["k"][0], k)
        np.testing.assert_allclose(draws["beta"][0], beta, rtol=1e-12)
        assert len(np.unique(beta)) > 50


def run_exchange(likelihood=None, prior=PRIOR, **options):
    options = {"n_draws": 600, "n_warmup": 100, "random_state": 0, **options}
    return exchange(likelihood or make_likelihood(), prior, **options)


def test_the_tree_tells_what_was_done():
    tree = run_exchange(label_sampler="perfect", thin=4)
    assert dict(tree["posterior"].sizes) == {"chain": 4, "draw": 600}
    assert dict(tree["warmup_posterior"].sizes) == {"chain": 4, "draw": 100}
    assert set(tree["sample_stats"].data_vars) == {"accepted", "acceptance"}
    assert tree["observed_data"]["labels"].size == 9
    attrs = tree.attrs
    assert (attrs["algorithm"], attrs["label_sampler"], attrs["thin"]) == ("exchange", "perfect", 4)
    assert attrs["label_sampler"] == "perfect"
    assert tree.identical(run_exchange(label_sampler="perfect", thin=4, n_jobs=2))


def test_too_few_sweeps_are_noticed():
    likelihood = make_likelihood(n_points=40, apart=2.0)
    with pytest.warns(MixingWarning, match="2 gibbs sweeps are too few at beta=.*use label_s"):
        run_exchange(likelihood, label_sampler="gibbs", n_sweeps=2)
    enough = make_sampler(likelihood, "gibbs").label_sampler
    assert enough.find_bias(1.0, 3, spawn_keys(0, 256)) == []


def test_perfect_draws_that_do_not_meet_are_an_error(monkeypatch):
    monkeypatch.setattr("bayesknn.labels.sampling.MAX_PAST", 1)
    with pytest.raises(CoalescenceError, match="a perfect draw at beta=.*lower beta_max"):
        run_exchange(make_likelihood(n_points=40), label_sampler="perfect")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label_sampler": "metropolis"}, "label_sampler must be one of swendsen-wang, perfect"),
        ({"n_sweeps": 0}, "n_sweeps must be an integer >= 1"),
        ({"n_sweeps": 5, "label_sampler": "perfect"}, "n_sweeps has no use with perfect draws"),
        ({"thin": 0}, "thin must be an integer >= 1"),
        ({"scheme": "hybrid-gibbs"}, "scheme must be one of alternating, joint"),
        ({"tau": -1.0}, "tau must be a positive number"),
        (
            {
                "likelihood": make_likelihood(n_classes=3, weighted=True),
                "label_sampler": "perfect",
            },
            "class weights that differ need two classes, got 3",
        ),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        run_exchange(**options)


def test_another_likelihood_is_refused():
    with pytest.raises(ValueError, match="pass a CoherentLikelihood, not PseudoLikelihood"):
        run_exchange(make_likelihood(PseudoLikelihood))
