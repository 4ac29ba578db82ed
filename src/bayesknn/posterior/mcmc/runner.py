"""Several Markov chains on (beta, k): in parallel, and interruptible.

A sampler and lengths go in, arrays of draws come out; :func:`sample_posterior` makes a tree of
them, for users. An algorithm is a :class:`Sampler`: ``init`` makes a state from a chain's key and
``advance`` makes iterations ``first..last - 1``. All its randomness is a function of (key,
iteration), so a run may be cut into rounds anywhere, by a clock or by Ctrl-C, and be spread over
any number of workers, and gives the same bits. All chains make a round before any makes the next:
what is finished always has equal lengths.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from bayesknn._utils.checks import check_count
from bayesknn._utils.extras import require
from bayesknn._utils.jit import hold_interrupts
from bayesknn._utils.progress import progress
from bayesknn._utils.random import seeds_for, spawn_keys
from bayesknn.exceptions import MixingWarning, SamplingInterrupted
from bayesknn.model import Prior
from bayesknn.model.prior import draw_from_prior
from bayesknn.posterior.mcmc.diagnostics import Diagnostics, diagnose_draws
from bayesknn.posterior.mcmc.proposals import SCHEDULES, Tuning, Walk, draw_start
from bayesknn.posterior.trees import lay_out_draws, require_xarray, restore_tree

if TYPE_CHECKING:
    import xarray

# A round lasts about this long: Ctrl-C loses no more, and waits no longer.
_ROUND_SECONDS, _MAX_GROWTH = 2.0, 10.0
# Places that are tried for a start, at random and by the prior, before it is given up.
_MAX_STARTS = 1000


class State(NamedTuple):
    """What the next move needs.

    Attributes
    ----------
    theta : float
        logit(beta / beta_max).
    k : int
    log_density : float
        Log of what the target is at (beta, k): likelihood times prior, or the prior alone where
        labels are drawn in place of computing a likelihood.
    tuning : Tuning
    """

    theta: float
    k: int
    log_density: float
    tuning: Tuning


@dataclass(frozen=True)
class Sampler:
    """One algorithm with its prior and its moves: what a chain is made of.

    A sampler is sent to the workers, so it must pickle. An algorithm adds ``name``, ``start``,
    ``advance`` and what stands for its data.

    Attributes
    ----------
    prior : Prior
    walk : Walk
    tuning : Tuning
    thin : int
        Moves of one iteration.
    likelihood : object
        What the chain is about; its labels, if it has any, are kept beside the draws.
    """

    prior: Prior
    walk: Walk
    tuning: Tuning
    thin: int
    likelihood: Any
    name: ClassVar[str]
    # Joblib's hint: "threads" where compiled code does the work.
    prefer: ClassVar[str | None] = None

    @property
    def n_warmup(self) -> int:
        """Iterations that come first, adapt the tuning and are not part of the posterior."""
        return self.walk.n_warmup // self.thin

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

    def describe_data(self) -> str:
        """Return a text that stands for the data, so that no two data sets share random numbers."""
        raise NotImplementedError

    def init(self, key: np.uint64) -> Any:
        """Return the first of the dispersed starts where the target is positive.

        Spread over all (beta, k), or over the prior's mass where that is narrow.
        """
        for attempt in range(_MAX_STARTS):
            state = self.start(*draw_start(self.walk, key, attempt))
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

    def attrs(self) -> dict[str, Any]:
        """Return what the result should tell about the run."""
        return {
            "scheme": list(SCHEDULES)[self.walk.schedule],
            "thin": self.thin,
            "beta_max": self.walk.beta_max,
            "k_max": self.walk.k_max,
        }

    def find_problems(self, draws: Mapping[str, np.ndarray], keys: np.ndarray) -> list[str]:
        """Return sentences about faults of the draws after warm-up, in addition to slow mixing.

        ``keys`` are those of the chains.
        """
        return []


class Chains(NamedTuple):
    """Finished iterations of several chains.

    Attributes
    ----------
    draws : dict of str to ndarray of shape (n_chains, n_iterations)
        Warm-up included.
    states : list
        Of each chain, after its last iteration.
    keys : ndarray of uint64
        Of the random numbers of each chain.
    """

    draws: dict[str, np.ndarray]
    states: list[Any]
    keys: np.ndarray

    @property
    def n_done(self) -> int:
        """Iterations of each chain."""
        return self.draws["k"].shape[1] if self.draws else 0

    def extend(self, results: list[tuple[Any, dict[str, np.ndarray]]]) -> Chains:
        """Return these and one more round, as the new state and the block of each chain."""
        states, blocks = zip(*results, strict=True)
        parts = [self.draws] if self.draws else []
        parts.append({name: np.stack([block[name] for block in blocks]) for name in blocks[0]})
        draws = {name: np.concatenate([part[name] for part in parts], axis=1) for name in blocks[0]}
        return Chains(draws, list(states), self.keys)


class ChainPosterior(NamedTuple):
    """A posterior by chains.

    Attributes
    ----------
    draws : dict
        As :func:`bayesknn.posterior.trees.lay_out_draws` returns it.
    diagnostics : Diagnostics
        Its messages include what :meth:`Sampler.find_problems` returned.
    """

    draws: dict[str, Any]
    diagnostics: Diagnostics


def sample_posterior(sampler: Sampler, *lengths: int, **how: Any) -> xarray.DataTree:
    """Return the draws of :func:`run_sampler`, which has the same arguments, as a tree."""
    return restore_tree(run_sampler(sampler, *lengths, **how).draws)


def run_sampler(
    sampler: Sampler,
    n_chains: int = 4,
    n_draws: int = 5000,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> ChainPosterior:
    """Run the chains of an algorithm, and diagnose the draws.

    Parameters
    ----------
    sampler : Sampler
    n_chains, n_draws : int
        Draws are counted per chain and after warm-up.
    random_state : None, int, SeedSequence, Generator or RandomState
    n_jobs : int, optional
        As in joblib; the result is the same for any number.
    verbose : int
        0 for silence.

    Returns
    -------
    ChainPosterior

    Raises
    ------
    SamplingInterrupted
        If Ctrl-C ended the run early; it holds the draws finished by then.

    Warns
    -----
    MixingWarning
        If R-hat, effective sample sizes or acceptance rates are bad, or the algorithm found a
        problem.
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
        verbose=verbose,
    )
    kept = {name: values[:, sampler.n_warmup :] for name, values in chains.draws.items()}
    diagnostics = diagnose_draws(kept)
    problems = sampler.find_problems(kept, chains.keys)
    diagnostics.messages.extend(problems)
    if diagnostics.messages:
        warnings.warn("; ".join(diagnostics.messages), MixingWarning, stacklevel=4)
    return ChainPosterior(lay_out_chains(sampler, chains, warnings=problems), diagnostics)


def lay_out_chains(sampler: Sampler, chains: Chains, **attrs: Any) -> dict[str, Any]:
    """Return finished iterations with attributes of the run, for :func:`restore_tree`."""
    tunings = [state.tuning for state in chains.states]
    tuning = {
        "tau": [float(np.exp(tuning.log_tau)) for tuning in tunings],
        "r": [max(round(float(np.exp(tuning.log_r))), 1) for tuning in tunings],
        "slope": [float(tuning.slope) for tuning in tunings],
    }
    keys = " ".join(f"{int(key):016x}" for key in chains.keys)
    about = {"algorithm": sampler.name, "keys": keys, "tuning": tuning, **sampler.attrs(), **attrs}
    labels = getattr(sampler.likelihood, "labels", None)
    return lay_out_draws(chains.draws, sampler.n_warmup, labels=labels, attrs=about)


def run_chains(
    sampler: Sampler,
    n_chains: int,
    n_iterations: int,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    round_size: int | None = None,
) -> Chains:
    """Make ``n_iterations`` of each chain.

    Parameters
    ----------
    sampler : Sampler
    n_chains, n_iterations : int
        Iterations include warm-up.
    random_state, n_jobs, verbose
        As in :func:`run_sampler`.
    round_size : int, optional
        Iterations of each chain in a round; by default what two seconds allow. No result depends
        on it.

    Returns
    -------
    Chains

    Raises
    ------
    SamplingInterrupted
        On Ctrl-C, with the whole rounds that are finished.
    """
    seeds = seeds_for(random_state, sampler.name, sampler.describe_data())
    keys = spawn_keys(seeds, n_chains)
    chains = Chains({}, [sampler.init(key) for key in keys], keys)
    size = round_size or 1
    try:
        with (
            progress("Sampling", total=n_chains * n_iterations, verbose=verbose) as advance,
            Parallel(n_jobs=n_jobs, prefer=sampler.prefer) as pool,
        ):
            while chains.n_done < n_iterations:
                began = time.monotonic()
                first, last = chains.n_done, min(chains.n_done + size, n_iterations)
                results = pool(
                    delayed(_advance)(sampler, state, key, first, last)
                    for state, key in zip(chains.states, keys, strict=True)
                )
                # One assignment: Ctrl-C finds either the round before or this one, whole.
                chains = chains.extend(results)
                advance((last - first) * n_chains)
                if round_size is None:
                    seconds = max(time.monotonic() - began, 1e-3)
                    size = max(int(size * min(_ROUND_SECONDS / seconds, _MAX_GROWTH)), 1)
    except KeyboardInterrupt:
        n_kept = chains.n_done - sampler.n_warmup
        if n_kept < 1:
            raise
        raise SamplingInterrupted(
            f"interrupted: each chain has {n_kept} of {n_iterations - sampler.n_warmup} draws",
            restore_tree(lay_out_chains(sampler, chains)),
        ) from None
    return chains


def _advance(sampler: Sampler, state: Any, key: np.uint64, first: int, last: int) -> Any:
    with hold_interrupts():
        return sampler.advance(state, key, first, last)
