"""Cutting, spreading and interrupting a run changes no bit of it."""

import signal
from dataclasses import dataclass

import joblib
import numpy as np
import pytest

from bayesknn.exceptions import SamplingInterrupted
from bayesknn.model import UniformPrior
from bayesknn.posterior import metropolis
from bayesknn.posterior.mcmc.metropolis import MetropolisSampler
from bayesknn.posterior.mcmc.proposals import plan_walk
from bayesknn.posterior.mcmc.runner import run_chains
from tests.posterior.toy import BETA_MAX, EnumeratedLikelihood

PRIOR = UniformPrior(5, BETA_MAX)


def make_sampler(cls=MetropolisSampler, seed=3, n_warmup=100, **options):
    walk, tuning = plan_walk(BETA_MAX, 5, "alternating", n_warmup, **options)
    return cls(PRIOR, walk, tuning, 1, EnumeratedLikelihood(seed))


@dataclass(frozen=True)
class Interrupted(MetropolisSampler):
    """Press Ctrl-C in the iteration 250."""

    def advance(self, state, key, first, last):
        if first <= 250 < last:
            signal.raise_signal(signal.SIGINT)
        return super().advance(state, key, first, last)


def assert_same(one, other):
    assert one.draws.keys() == other.draws.keys()
    for name in one.draws:
        np.testing.assert_array_equal(one.draws[name], other.draws[name])
    assert one.states == other.states


@pytest.mark.parametrize("round_size", [7, 100, 1000, None])
def test_rounds_do_not_matter(round_size):
    expected = run_chains(make_sampler(), 3, 300, random_state=0, round_size=300)
    found = run_chains(make_sampler(), 3, 300, random_state=0, round_size=round_size)
    assert_same(found, expected)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_do_not_matter(backend):
    expected = run_chains(make_sampler(), 3, 200, random_state=0)
    with joblib.parallel_config(backend=backend):
        found = run_chains(make_sampler(), 3, 200, random_state=0, n_jobs=2)
    assert_same(found, expected)


def test_a_chain_does_not_depend_on_how_many_there_are():
    one = run_chains(make_sampler(), 1, 100, random_state=5).draws["beta"]
    many = run_chains(make_sampler(), 4, 100, random_state=5).draws["beta"]
    np.testing.assert_array_equal(one[0], many[0])
    assert len({chain[50] for chain in many}) > 1


def test_ctrl_c_keeps_the_finished_rounds():
    whole = run_chains(make_sampler(), 3, 400, random_state=0)
    with pytest.raises(SamplingInterrupted, match="each chain has 140 of 300 draws") as stopped:
        run_chains(make_sampler(Interrupted), 3, 400, random_state=0, round_size=30)
    cut = stopped.value.posterior
    for name in ("beta", "k"):
        np.testing.assert_array_equal(cut["posterior"][name], whole.draws[name][:, 100:240])
        np.testing.assert_array_equal(cut["warmup_posterior"][name], whole.draws[name][:, :100])


def test_ctrl_c_is_not_swallowed(monkeypatch):
    """An interrupted run must not look like a complete one: it was returned, with a warning."""
    monkeypatch.setattr("bayesknn.posterior.mcmc.runner._MAX_GROWTH", 1.0)
    monkeypatch.setattr("bayesknn.posterior.mcmc.metropolis.MetropolisSampler", Interrupted)
    likelihood = EnumeratedLikelihood(3)
    with pytest.raises(KeyboardInterrupt, match="150 of 300 draws") as stopped:
        metropolis(likelihood, PRIOR, n_warmup=100, n_draws=300, random_state=0)
    assert dict(stopped.value.posterior["posterior"].sizes) == {"chain": 4, "draw": 150}
    # In warm-up there is nothing to keep.
    with pytest.raises(KeyboardInterrupt) as stopped:
        metropolis(likelihood, PRIOR, n_warmup=260, n_draws=300, random_state=0)
    assert not isinstance(stopped.value, SamplingInterrupted)


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
def test_metropolis_gives_the_same_tree_for_any_n_jobs():
    options = {"n_draws": 1500, "n_warmup": 200, "random_state": 11}
    likelihood = EnumeratedLikelihood(3)
    one = metropolis(likelihood, PRIOR, **options)
    with joblib.parallel_config(backend="threading"):
        two = metropolis(likelihood, PRIOR, n_jobs=2, verbose=1, **options)
    assert one.identical(two)
