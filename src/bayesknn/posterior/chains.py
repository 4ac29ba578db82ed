"""Several Markov chains on (beta, k): in parallel, interruptible, resumable (DESIGN, 'Rules').

An algorithm is a :class:`Sampler`: ``init`` makes a state from a chain's key and ``advance`` makes
iterations ``first..last - 1``. All its randomness is a function of (key, iteration), so a run may
be cut into rounds anywhere, by a clock, by Ctrl-C or by a checkpoint, and be spread over any
number of workers, and gives the same bits. All chains make a round before any makes the next:
what is finished always has equal lengths.
"""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from bayesknn._utils.checks import check_count
from bayesknn._utils.extras import require
from bayesknn._utils.progress import progress
from bayesknn._utils.random import seeds_for, spawn_keys
from bayesknn.exceptions import MixingWarning, SamplingInterrupted
from bayesknn.model import Prior
from bayesknn.model.boltzmann import fingerprint
from bayesknn.model.prior import draw_from_prior
from bayesknn.posterior.checkpoint import (
    Checkpoint,
    check_identity,
    read_checkpoint,
    restore_state,
    write_checkpoint,
)
from bayesknn.posterior.diagnostics import diagnose
from bayesknn.posterior.proposals import SCHEDULES, Tuning, Walk, disperse
from bayesknn.posterior.trees import make_tree, require_xarray

if TYPE_CHECKING:
    import xarray

# A round lasts about this long: Ctrl-C loses no more, and a checkpoint is never older.
_ROUND_SECONDS = 2.0
_FIRST_ROUND = 1
_MAX_GROWTH = 10.0
_MAX_STARTS = 1000
_N_PROBES = 64


@dataclass(frozen=True)
class Sampler:
    """One algorithm with its prior and its moves: what a chain is made of.

    A state is a named tuple of numbers, arrays and further named tuples. Among its fields are
    ``theta``, ``k`` and ``tuning``, a :class:`bayesknn.posterior.proposals.Tuning`. A sampler is
    sent to the workers, so it must pickle. An algorithm adds ``name``, ``start``, ``advance`` and
    what stands for its data.

    Attributes
    ----------
    prior : Prior
    walk : Walk
    tuning : Tuning
    thin : int
        Moves of one iteration.
    """

    prior: Prior
    walk: Walk
    tuning: Tuning
    thin: int
    name: ClassVar[str]
    # Joblib's hint: "threads" where compiled code does the work.
    prefer: ClassVar[str | None] = None

    @property
    def n_warmup(self) -> int:
        """Iterations that come first, adapt the tuning and are not part of the posterior."""
        return self.walk.n_warmup // self.thin

    @property
    def scheme(self) -> str:
        """What the moves are called."""
        return next(name for name, code in SCHEDULES.items() if code == self.walk.schedule)

    @property
    def labels(self) -> np.ndarray | None:
        """The observed labels, where the algorithm knows them."""
        return None

    def start(self, theta: float, k: int) -> Any:
        """Return the state at (theta, k), or None where the target is zero or not a number."""
        raise NotImplementedError

    def advance(
        self, state: Any, key: np.uint64, first: int, last: int
    ) -> tuple[Any, dict[str, np.ndarray]]:
        """Make iterations ``first..last - 1``.

        Returns the new state and, for each iteration, ``beta``, ``k``, ``accepted`` and whatever
        else is worth keeping: arrays of ``last - first``.
        """
        raise NotImplementedError

    def describe_data(self, points: list[tuple[float, int]]) -> str:
        """Return a text that stands for the data; ``points`` are some values of (beta, k)."""
        raise NotImplementedError

    def init(self, key: np.uint64) -> Any:
        """Return the first of the dispersed starts where the target is positive.

        Spread over all (beta, k), or over the prior's mass where that is narrow.
        """
        for attempt in range(_MAX_STARTS):
            state = self.start(*disperse(self.walk, key, attempt))
            if state is not None:
                return state
        for beta, k in draw_from_prior(self.prior, _MAX_STARTS, np.random.default_rng(int(key))):
            state = self.start(math.log(beta / (self.walk.beta_max - beta)), k)
            if state is not None:
                return state
        raise ValueError(
            f"no start found: the posterior is zero or not a number at {_MAX_STARTS} points drawn "
            f"from k in 1..{self.walk.k_max}, beta in [0, {self.walk.beta_max:g}]; check the prior"
        )

    def settings(self) -> str:
        """Describe what a checkpoint must agree in."""
        walk, tuning = self.walk, self.tuning
        tau = "adapted" if walk.adapts_tau else f"{math.exp(tuning.log_tau):.9g}"
        r = "adapted" if walk.adapts_r else f"{math.exp(tuning.log_r):.9g}"
        return f"scheme={self.scheme}, tau={tau}, r={r}, thin={self.thin}"

    def identity(self) -> dict[str, str]:
        """Return what checkpoints must agree in: texts for ``data``, ``prior``, ``settings``.

        Functions have nothing in common but their values, so some of those stand for the prior:
        to nine digits, because machines differ in the last ones.
        """
        rng = np.random.default_rng(0)
        betas = rng.uniform(0, self.walk.beta_max, _N_PROBES).tolist()
        ks = rng.integers(1, self.walk.k_max, _N_PROBES, endpoint=True).tolist()
        points = list(zip(betas, ks, strict=True))
        prior = [f"{float(self.prior.log_density(*point)):.9g}" for point in points]
        return {
            "data": self.describe_data(points),
            "prior": fingerprint([self.walk.beta_max, self.walk.k_max], prior),
            "settings": self.settings(),
        }

    def attrs(self) -> dict[str, Any]:
        """Return what the result should tell about the run."""
        return {
            "scheme": self.scheme,
            "thin": self.thin,
            "beta_max": self.walk.beta_max,
            "k_max": self.walk.k_max,
        }

    def doubts(self, tree: xarray.DataTree) -> list[str]:
        """Say what may be wrong with the draws beside mixing, in sentences."""
        return []


class Chains(NamedTuple):
    """Finished iterations of several chains.

    Attributes
    ----------
    draws : dict of str to ndarray of shape (n_chains, n_iterations)
        Warm-up included.
    states : list
        Of each chain, after its last iteration.
    identity : dict of str to str
        What a checkpoint of the run is recognised by.
    """

    draws: dict[str, np.ndarray]
    states: list[Any]
    identity: dict[str, str]


def sample_posterior(
    sampler: Sampler,
    *,
    n_chains: int = 4,
    n_draws: int = 5000,
    random_state: Any = None,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike | None = None,
    verbose: int = 0,
) -> xarray.DataTree:
    """Run the chains of an algorithm and lay out, judge and describe what they give.

    Parameters
    ----------
    sampler : Sampler
    n_chains, n_draws : int
        Draws are counted per chain and after warm-up.
    random_state : None, int, SeedSequence, Generator or RandomState
    n_jobs : int, optional
        As in joblib; the result is the same for any number.
    checkpoint : path, optional
        Written about every two seconds; a run with the same arguments goes on from it, and a
        larger ``n_draws`` extends it. The file stays when the run is complete.
    verbose : int
        0 for silence.

    Returns
    -------
    xarray.DataTree

    Raises
    ------
    SamplingInterrupted
        If Ctrl-C ended the run early; it holds the draws finished by then.

    Warns
    -----
    MixingWarning
        If R-hat, effective sample sizes or acceptance rates are bad, or the algorithm has doubts.
    """
    n_draws = check_count(n_draws, "n_draws")
    # Before hours of work and not after.
    require_xarray()
    require("arviz_stats", "chains need", "posterior", "arviz-stats")
    chains = run_chains(
        sampler,
        check_count(n_chains, "n_chains"),
        sampler.n_warmup + n_draws,
        random_state=random_state,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        verbose=verbose,
    )
    tree = lay_out_chains(sampler, chains)
    diagnose(tree).warn(stacklevel=4)
    sentences = sampler.doubts(tree)
    tree.attrs["doubts"] = json.dumps(sentences)
    if sentences:
        warnings.warn("; ".join(sentences), MixingWarning, stacklevel=3)
    return tree


def lay_out_chains(sampler: Sampler, chains: Chains) -> xarray.DataTree:
    """Return finished iterations as a DataTree, with what is to be known of the run."""
    tunings = [state.tuning for state in chains.states]
    tuning = {
        "tau": [float(np.exp(tuning.log_tau)) for tuning in tunings],
        "r": [max(round(float(np.exp(tuning.log_r))), 1) for tuning in tunings],
        "slope": [float(tuning.slope) for tuning in tunings],
    }
    attrs = {**chains.identity, "tuning": tuning, **sampler.attrs()}
    return make_tree(chains.draws, sampler.n_warmup, labels=sampler.labels, attrs=attrs)


def run_chains(
    sampler: Sampler,
    n_chains: int,
    n_iterations: int,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike | None = None,
    verbose: int = 0,
    round_size: int | None = None,
) -> Chains:
    """Make ``n_iterations`` of each chain.

    Parameters
    ----------
    sampler : Sampler
    n_chains, n_iterations : int
        Iterations include warm-up.
    random_state, n_jobs, checkpoint, verbose
        As in :func:`sample_posterior`.
    round_size : int, optional
        Iterations of each chain between two checkpoints; by default what two seconds allow. No
        result depends on it.

    Returns
    -------
    Chains

    Raises
    ------
    SamplingInterrupted
        On Ctrl-C, with the whole rounds that are finished.
    """
    identity, keys, finished = _open_run(sampler, n_chains, random_state, checkpoint)
    size = round_size or _FIRST_ROUND
    # Other threads and processes run kernels whatever this one hears.
    is_alone = effective_n_jobs(n_jobs) == 1
    try:
        with (
            progress("Sampling", total=n_chains * n_iterations, verbose=verbose) as advance,
            Parallel(n_jobs=n_jobs, prefer=sampler.prefer) as pool,
        ):
            advance(min(finished.n_done, n_iterations) * n_chains)
            while finished.n_done < n_iterations:
                began = time.monotonic()
                first, last = finished.n_done, min(finished.n_done + size, n_iterations)
                with _hold_interrupts() if is_alone else nullcontext():
                    results = pool(
                        delayed(sampler.advance)(state, key, first, last)
                        for state, key in zip(finished.states, keys, strict=True)
                    )
                # One assignment: Ctrl-C finds either the round before or this one, whole.
                finished = _Finished(
                    n_done=last,
                    states=[state for state, _ in results],
                    parts=[*finished.parts, _stack([block for _, block in results])],
                )
                if checkpoint is not None:
                    finished = finished._replace(parts=[_join(finished.parts)])
                    with _hold_interrupts():
                        write_checkpoint(
                            checkpoint,
                            Checkpoint(identity, last, finished.states, finished.parts[0]),
                        )
                advance((last - first) * n_chains)
                if round_size is None:
                    size = _next_size(size, time.monotonic() - began)
    except KeyboardInterrupt:
        n_kept = finished.n_done - sampler.n_warmup
        if n_kept < 1:
            raise
        hint = "" if checkpoint is None else "; the same call goes on from the checkpoint"
        raise SamplingInterrupted(
            f"interrupted: each chain has {n_kept} of {n_kept + n_iterations - finished.n_done} "
            f"draws{hint}",
            lay_out_chains(sampler, finished.chains(identity, n_iterations)),
        ) from None
    return finished.chains(identity, n_iterations)


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait for the end of a round or of a checkpoint; a second one does not wait.

    Where Python hears it while a kernel hands over its result, numba crashes; and zipfile, while a
    file is written, turns it into another error.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    held: list[tuple[int, Any]] = []

    def hold(number: int, frame: Any) -> None:
        held.append((number, frame))
        if len(held) > 1:
            before(number, frame)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        before(*held[0])


class _Finished(NamedTuple):
    """Whole rounds, as they stood at one moment."""

    n_done: int
    states: list[Any]
    parts: list[dict[str, np.ndarray]]

    def chains(self, identity: dict[str, str], n_iterations: int) -> Chains:
        """Return them as one run."""
        draws = {name: values[:, :n_iterations] for name, values in _join(self.parts).items()}
        return Chains(draws, self.states, identity)


def _open_run(
    sampler: Sampler, n_chains: int, random_state: Any, checkpoint: str | os.PathLike | None
) -> tuple[dict[str, str], np.ndarray, _Finished]:
    """Return the identity of a run, the keys of its chains, and what is finished of it."""
    saved = None if checkpoint is None else read_checkpoint(checkpoint)
    parts = sampler.identity()
    if saved is not None and random_state is None:
        keys = np.array([int(text, 16) for text in saved.identity["keys"].split()], np.uint64)
    else:
        seeds = seeds_for(random_state, sampler.name, parts["data"])
        keys = spawn_keys(seeds, n_chains)
    identity = {
        "algorithm": sampler.name,
        **parts,
        "keys": " ".join(f"{int(key):016x}" for key in keys),
    }
    identity["settings"] += f", n_chains={n_chains}, n_warmup={sampler.n_warmup}"
    if saved is not None and checkpoint is not None:
        check_identity(checkpoint, saved.identity, identity)
    states = [sampler.init(key) for key in keys]
    if saved is None:
        return identity, keys, _Finished(0, states, [])
    states = [restore_state(*pair) for pair in zip(states, saved.states, strict=True)]
    return identity, keys, _Finished(saved.n_done, states, [saved.draws])


def _next_size(size: int, seconds: float) -> int:
    growth = min(_ROUND_SECONDS / max(seconds, 1e-3), _MAX_GROWTH)
    return max(int(size * growth), 1)


def _stack(blocks: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.stack([block[name] for block in blocks]) for name in blocks[0]}


def _join(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
