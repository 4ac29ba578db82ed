"""Cutting, spreading, interrupting and resuming a run changes no bit of it."""

import signal
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pytest

from bayesknn.exceptions import SamplingInterrupted
from bayesknn.model import ArrayPrior, UniformPrior
from bayesknn.posterior import metropolis
from bayesknn.posterior.chains import _hold_interrupts, run_chains, sample_posterior
from bayesknn.posterior.checkpoint import read_checkpoint, write_checkpoint
from bayesknn.posterior.metropolis_hastings import MetropolisSampler
from bayesknn.posterior.proposals import plan_walk
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


def test_ctrl_c_waits_for_the_end_of_a_round_but_only_once():
    """While a kernel hands over its result numba crashes of it."""
    done = []
    with pytest.raises(KeyboardInterrupt), _hold_interrupts():
        signal.raise_signal(signal.SIGINT)
        done.append("the round")
    assert done == ["the round"]
    with pytest.raises(KeyboardInterrupt), _hold_interrupts():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("not this one")
    assert done == ["the round"]


def test_ctrl_c_is_not_swallowed(monkeypatch):
    """An interrupted run must not look like a complete one: it was returned, with a warning."""
    monkeypatch.setattr("bayesknn.posterior.chains._FIRST_ROUND", 30)
    monkeypatch.setattr("bayesknn.posterior.chains._MAX_GROWTH", 1.0)
    with pytest.raises(KeyboardInterrupt, match="140 of 300 draws") as stopped:
        sample_posterior(make_sampler(Interrupted), n_draws=300, random_state=0)
    assert dict(stopped.value.posterior["posterior"].sizes) == {"chain": 4, "draw": 140}
    # In warm-up there is nothing to keep.
    with pytest.raises(KeyboardInterrupt) as stopped:
        sample_posterior(make_sampler(Interrupted, n_warmup=260), n_draws=300, random_state=0)
    assert not isinstance(stopped.value, SamplingInterrupted)


def test_interrupted_and_resumed_equals_uninterrupted(tmp_path):
    path = tmp_path / "run.npz"
    whole = run_chains(make_sampler(), 3, 400, random_state=0)
    with pytest.raises(SamplingInterrupted, match="goes on from the checkpoint"):
        run_chains(
            make_sampler(Interrupted), 3, 400, random_state=0, round_size=30, checkpoint=path
        )
    assert_same(run_chains(make_sampler(), 3, 400, random_state=0, checkpoint=path), whole)
    # Complete: read, not run again; and a longer run goes on from here, without the seed as well.
    assert_same(run_chains(make_sampler(Interrupted), 3, 400, checkpoint=path), whole)
    longer = run_chains(make_sampler(), 3, 500, checkpoint=path)
    assert_same(longer, run_chains(make_sampler(), 3, 500, random_state=0))
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


def test_resumed_within_warmup(tmp_path):
    path = tmp_path / "run.npz"
    run_chains(make_sampler(), 2, 50, random_state=0, checkpoint=path)
    whole = run_chains(make_sampler(), 2, 300, random_state=0)
    assert_same(run_chains(make_sampler(), 2, 300, random_state=0, checkpoint=path), whole)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 4}, "is from another data set"),
        ({"n_warmup": 90}, "was made with other settings .*n_warmup=100; now .*n_warmup=90"),
        ({"tau": 0.3}, "was made with other settings .*tau=adapted"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change, message):
    path = tmp_path / "run.npz"
    run_chains(make_sampler(), 2, 20, random_state=0, checkpoint=path)
    with pytest.raises(ValueError, match=f"run.npz {message}"):
        run_chains(make_sampler(**change), 2, 20, random_state=0, checkpoint=path)


def test_other_seeds_chains_and_priors_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    run_chains(make_sampler(), 2, 20, random_state=0, checkpoint=path)
    with pytest.raises(ValueError, match="was made with another random_state"):
        run_chains(make_sampler(), 2, 20, random_state=1, checkpoint=path)
    with pytest.raises(ValueError, match="n_chains=2.*n_chains=3"):
        run_chains(make_sampler(), 3, 20, checkpoint=path)
    other = replace(make_sampler(), prior=ArrayPrior([1.0, 2.0, 3.0, 4.0, 5.0], BETA_MAX))
    with pytest.raises(ValueError, match="is for another prior"):
        run_chains(other, 2, 20, random_state=0, checkpoint=path)


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a checkpoint")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        run_chains(make_sampler(), 2, 20, checkpoint=path)
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    with pytest.raises(ValueError, match="is not a checkpoint"):
        run_chains(make_sampler(), 2, 20, checkpoint=tmp_path / "other.npz")
    with pytest.raises(ValueError, match="is not a folder"):
        run_chains(make_sampler(), 2, 20, checkpoint=tmp_path / "missing" / "run.npz")


def test_a_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    run_chains(make_sampler(), 2, 20, random_state=0, checkpoint=path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(len(whole) - 300, size=40):
        broken = bytearray(whole)
        broken[at : at + 200] = rng.bytes(200)
        path.write_bytes(bytes(broken))
        with pytest.raises(ValueError, match="is not a checkpoint .* or it is damaged"):
            run_chains(make_sampler(), 2, 20, random_state=0, checkpoint=path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    run_chains(make_sampler(), 2, 20, random_state=0, checkpoint=path)
    before = path.read_bytes()
    saved = read_checkpoint(path)

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        write_checkpoint(path, saved)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
def test_metropolis_gives_the_same_tree_for_any_n_jobs(tmp_path):
    options = {"n_draws": 1500, "n_warmup": 200, "random_state": 11}
    likelihood = EnumeratedLikelihood(3)
    one = metropolis(likelihood, PRIOR, **options)
    with joblib.parallel_config(backend="threading"):
        two = metropolis(
            likelihood, PRIOR, n_jobs=2, checkpoint=tmp_path / "run.npz", verbose=1, **options
        )
    assert one.identical(two)
