"""The auxiliary-variable chains: against exact posteriors, their twin, and mutants of it."""

import re
import warnings

import numpy as np
import pytest

from bayesknn._utils.random import spawn_keys
from bayesknn.exceptions import MixingWarning
from bayesknn.likelihood import PseudoLikelihood
from bayesknn.model import UniformPrior
from bayesknn.posterior import auxiliary
from bayesknn.posterior.mcmc.runner import run_chains
from tests.posterior.label_chain_cases import (
    AUXILIARY_CASES,
    K_MAX,
    PRIOR,
    assert_same_chains,
    first_key,
    make_likelihood,
    make_sampler,
    p_value_of,
    p_value_of_means,
)
from tests.posterior.label_chain_twins import log_auxiliary, run_auxiliary_twin
from tests.statistical import check, rejects

KEY = spawn_keys(7, 1)[0]
ADAPTED = {"plug_in": (2.4, 4), "updates": (25, 50, 100)}


@pytest.mark.parametrize(("label_sampler", "n_classes", "weighted"), AUXILIARY_CASES)
def test_chains_agree_with_the_exact_posterior(label_sampler, n_classes, weighted):
    likelihood = make_likelihood(n_classes=n_classes, weighted=weighted)
    n_draws = 1000 if label_sampler == "gibbs" else 3000
    check(p_value_of(make_sampler(likelihood, label_sampler, **ADAPTED)), n_draws)


@pytest.mark.parametrize(
    "plug_in", [(0.8, 2), (1.5, 1), pytest.param((0.4, 4), marks=pytest.mark.slow)]
)
def test_any_plug_in_gives_the_same_posterior(plug_in):
    check(p_value_of_means(make_sampler(plug_in=plug_in, n_refresh=3)), 600)


@pytest.mark.parametrize(
    ("plug_in", "moves"),
    [
        ((1.2, 2), {"scheme": "joint", "tau": 1.0, "r": 2}),
        ((1.5, 1), {}),
        pytest.param((1.2, 2), {}, marks=pytest.mark.slow),
        pytest.param((1.8, 4), {}, marks=pytest.mark.slow),
    ],
)
def test_the_paper_without_refreshed_labels(plug_in, moves):
    # Below the posterior's own beta a plug-in makes stands too long for any test of this size.
    sampler = make_sampler(plug_in=plug_in, n_refresh=0, n_warmup=400, **moves)
    check(p_value_of_means(sampler), 1600)


@pytest.mark.parametrize(("label_sampler", "n_classes", "weighted"), AUXILIARY_CASES)
@pytest.mark.parametrize("n_refresh", [0, 2])
def test_compiled_moves_are_those_of_the_twin(label_sampler, n_classes, weighted, n_refresh):
    likelihood = make_likelihood(n_classes=n_classes, weighted=weighted)
    sampler = make_sampler(
        likelihood, label_sampler, thin=1, n_warmup=150, n_refresh=n_refresh, **ADAPTED
    )
    draws = run_chains(sampler, 1, 250, random_state=7).draws
    beta, k, plug_ins = run_auxiliary_twin(sampler, first_key(sampler, 7), 250)
    np.testing.assert_array_equal(draws["k"][0], k)
    np.testing.assert_allclose(draws["beta"][0], beta, rtol=1e-12)
    found = np.column_stack([draws["plug_in_beta"][0], draws["plug_in_k"][0]])
    np.testing.assert_allclose(found, plug_ins, rtol=1e-12)
    assert len(np.unique(found, axis=0)) == 4


def leaves_out_the_plug_in(model, plug_in, beta, k, to, z, drawn):
    beta_hat, k_hat = plug_in
    wrong = beta_hat / k_hat * (model.agreement(drawn, k_hat) - model.agreement(z, k_hat))
    return log_auxiliary(model, plug_in, beta, k, to, z, drawn) - wrong


def forgets_the_kept_labels(model, plug_in, beta, k, to, z, drawn):
    """Take the term of the present labels from the labels drawn, as in the exchange."""
    wrong = beta / k * (model.agreement(drawn, k) - model.agreement(z, k))
    return log_auxiliary(model, plug_in, beta, k, to, z, drawn) + wrong


def proposes_at_the_old_k(model, plug_in, beta, k, to, z, drawn):
    wrong = to.beta / to.k * (model.agreement(drawn, k) - model.agreement(drawn, to.k))
    return log_auxiliary(model, plug_in, beta, k, to, z, drawn) - wrong


@pytest.mark.mutant
@pytest.mark.parametrize(
    ("mutant", "plug_in", "n_refresh"),
    [
        ({"log_ratio": leaves_out_the_plug_in}, (2.4, 4), 1),
        ({"log_ratio": forgets_the_kept_labels}, (1.2, 2), 1),
        ({"log_ratio": proposes_at_the_old_k}, (1.2, 2), 1),
        ({"keeps_labels": False}, (2.4, 4), 0),
        ({"refreshes_at_plug_in": False}, (2.4, 4), 3),
    ],
    ids=["no plug-in", "labels not kept", "old k", "labels not replaced", "refreshed elsewhere"],
)
def test_mutants_are_rejected(mutant, plug_in, n_refresh):
    sampler = make_sampler(thin=2, plug_in=plug_in, n_refresh=n_refresh)

    def run(key, n_moves):
        return run_auxiliary_twin(sampler, key, n_moves, **mutant)[:2]

    assert rejects(p_value_of(sampler, run), 800)


@pytest.mark.parametrize("label_sampler", ["swendsen-wang", "perfect", "gibbs"])
def test_rounds_and_workers_do_not_matter(label_sampler):
    sampler = make_sampler(label_sampler=label_sampler, **ADAPTED)
    whole = run_chains(sampler, 3, 120, random_state=0, round_size=120)
    for options in ({"round_size": 7}, {"round_size": 50, "n_jobs": 2}, {"n_jobs": 3}):
        assert_same_chains(run_chains(sampler, 3, 120, random_state=0, **options), whole)


def test_a_state_is_left_as_it_was():
    sampler = make_sampler(**ADAPTED)
    state = sampler.init(KEY)
    later, _ = sampler.advance(state, KEY, 0, 40)
    assert not np.array_equal(later.labels, sampler.likelihood.labels)
    np.testing.assert_equal(sampler.advance(state, KEY, 0, 40)[0], later)
    np.testing.assert_array_equal(state.labels, sampler.likelihood.labels)
    assert state.plug_in.counts.sum() == 0


def run_auxiliary(likelihood=None, prior=PRIOR, **options):
    defaults = {"n_draws": 600, "n_warmup": 100, "n_first_stage": 60, "random_state": 0}
    return auxiliary(likelihood or make_likelihood(), prior, **{**defaults, **options})


def test_the_plug_in_starts_at_the_pseudo_likelihood_and_moves_in_the_first_stage():
    likelihood = make_likelihood(n_points=30)
    best = PseudoLikelihood(likelihood.graph, likelihood.labels).maximize(PRIOR.beta_max)
    # So many draws that the chains mix with any seed.
    options = {"thin": 4, "n_plug_ins": 2, "n_draws": 1200}
    tree = run_auxiliary(likelihood, **options)
    warmup, stats = tree["warmup_sample_stats"], tree["sample_stats"]
    assert dict(tree["warmup_posterior"].sizes) == {"chain": 4, "draw": 160}
    assert dict(tree["posterior"].sizes) == {"chain": 4, "draw": 1200}
    for chain in range(4):
        found = np.column_stack(
            [warmup[name].values[chain] for name in ("plug_in_beta", "plug_in_k")]
        )
        changes = np.flatnonzero(np.any(np.diff(found, axis=0) != 0, axis=1))
        # Replaced by the move that ends draw 30 and the one that ends draw 60.
        assert changes.tolist() == [28, 58]
        assert tuple(found[0]) == (best.beta, best.k)
        final = np.unique(stats["plug_in_beta"].values[chain])
        assert final.tolist() == [found[-1, 0]]
    assert tree.identical(run_auxiliary(likelihood, **options, n_jobs=2))


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
def test_a_prior_that_stops_short_bounds_the_plug_in():
    likelihood = make_likelihood(n_points=30)
    tree = run_auxiliary(likelihood, UniformPrior(2, 0.1), thin=1, n_plug_ins=1, n_draws=20)
    first = [tree["warmup_sample_stats"][f"plug_in_{name}"].values[:, 0] for name in ("beta", "k")]
    best = PseudoLikelihood(likelihood.graph, likelihood.labels).maximize_each_k(0.1).log_value
    assert np.all(first[0] <= 0.1)
    assert np.all(first[1] == 1 + np.argmax(best[:2]))


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
@pytest.mark.parametrize(
    ("n_moves", "n_plug_ins", "updates"),
    [(50, 6, [1, 3, 6, 12, 25, 50]), (50, 1, [50]), (3, 6, [1, 3])],
)
def test_updates_come_at_halves(n_moves, n_plug_ins, updates):
    options = {"thin": 1, "n_first_stage": n_moves, "n_plug_ins": n_plug_ins, "n_draws": 20}
    likelihood = make_likelihood(n_points=30)
    warmup = run_auxiliary(likelihood, **options)["warmup_sample_stats"]
    best = PseudoLikelihood(likelihood.graph, likelihood.labels).maximize(PRIOR.beta_max)
    betas = warmup["plug_in_beta"].values
    changed = np.diff(betas, prepend=best.beta, axis=1) != 0
    assert (np.flatnonzero(changed.any(axis=0)) + 1).tolist() == updates


def test_a_given_plug_in_is_kept_and_needs_no_first_stage():
    tree = run_auxiliary(plug_in=(0.9, 3), label_sampler="swendsen-wang")
    assert tree["warmup_posterior"].sizes["draw"] == 100
    assert np.all(tree["sample_stats"]["plug_in_beta"] == 0.9)
    assert np.all(tree["sample_stats"]["plug_in_k"] == 3)


def test_a_stuck_chain_is_said_in_words():
    likelihood = make_likelihood(n_points=60, apart=2.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run_auxiliary(likelihood, plug_in=(0.05, 4), n_refresh=0, thin=1, n_draws=2000)
    assert all(one.category is MixingWarning and one.filename == __file__ for one in said)
    text = "; ".join(str(one.message) for one in said)
    assert re.search(r"stood still for \d+ of its 2000 draws: its auxiliary labels suit", text)
    assert "plug-in (beta=0.05, k=4)" in text and "use exchange, which needs none" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plug_in": 1.5}, r"plug_in must be a pair \(beta, k\), got 1.5"),
        ({"plug_in": (-1.0, 3)}, "beta of plug_in must be at least 0"),
        ({"plug_in": (1.0, K_MAX + 1)}, "k must be"),
        ({"n_first_stage": 0}, "n_first_stage must be an integer >= 1"),
        ({"n_plug_ins": 0}, "n_plug_ins must be an integer >= 1"),
        ({"n_refresh": -1}, "n_refresh must be an integer >= 0"),
        ({"n_warmup": -1}, "n_warmup must be an integer >= 0"),
        ({"label_sampler": "slice"}, "label_sampler must be one of"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        run_auxiliary(**options)
