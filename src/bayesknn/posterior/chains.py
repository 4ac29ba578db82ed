"""Several Markov chains on (beta, k): in parallel, interruptible, resumable (DESIGN, 'Rules').

An algorithm is a :class:`Sampler`: ``init`` makes a state from a chain's key and ``advance`` makes
iterations ``first..last - 1``. All its randomness is a function of (key, iteration), so a run may
be cut into rounds anywhere, by a clock, by Ctrl-C or by a checkpoint, and be spread over any
number of workers, and gives the same bits. All chains make a round before any makes the next:
what is finished always has equal lengths.
"""

from __future__ import annotations

import os
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed

from bayesknn._progress import progress
from bayesknn._validation import check_count
from bayesknn.labels.random import spawn_keys
from bayesknn.posterior.checkpoint import (
    Checkpoint,
    check_identity,
    read_checkpoint,
    restore_state,
    write_checkpoint,
)
from bayesknn.posterior.diagnostics import diagnose
from bayesknn.posterior.output import make_tree

if TYPE_CHECKING:
    import xarray

# A round lasts about this long: Ctrl-C loses no more, and a checkpoint is never older.
_ROUND_SECONDS = 2.0
_FIRST_ROUND = 10
_MAX_GROWTH = 10.0


class Sampler(Protocol):
    """One algorithm with its data: what a chain is made of.

    A state is a named tuple of numbers, arrays and further named tuples. One of its fields is
    ``tuning``, a :class:`bayesknn.posterior.proposals.Tuning`. A sampler is sent to the workers,
    so it must pickle.
    """

    @property
    def name(self) -> str:
        """What the algorithm is called."""
        ...

    @property
    def n_warmup(self) -> int:
        """Iterations that come first, adapt the tuning and are not part of the posterior."""
        ...

    @property
    def prefer(self) -> str | None:
        """Joblib's hint: ``"threads"`` where compiled code does the work, otherwise None."""
        ...

    def init(self, key: np.uint64) -> Any:
        """Return the state before iteration 0, dispersed over the parameters."""
        ...

    def advance(
        self, state: Any, key: np.uint64, first: int, last: int
    ) -> tuple[Any, dict[str, np.ndarray]]:
        """Make iterations ``first..last - 1``.

        Returns the new state and, for each iteration, ``beta``, ``k``, ``accepted`` and whatever
        else is worth keeping: arrays of ``last - first``.
        """
        ...

    def identity(self) -> dict[str, str]:
        """Return what checkpoints must agree in: texts for ``data``, ``prior``, ``settings``."""
        ...


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
    labels: Any = None,
    attrs: dict[str, Any] | None = None,
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
    labels : array-like, optional
        For the group ``observed_data``.
    attrs : dict, optional
        Further attributes of the result.

    Returns
    -------
    xarray.DataTree

    Warns
    -----
    MixingWarning
        If R-hat, effective sample sizes or acceptance rates are bad.
    UserWarning
        If Ctrl-C ended the run early: the draws finished by then are returned.
    """
    n_draws = check_count(n_draws, "n_draws")
    chains = run_chains(
        sampler,
        check_count(n_chains, "n_chains"),
        sampler.n_warmup + n_draws,
        random_state=random_state,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        verbose=verbose,
    )
    n_kept = chains.draws["k"].shape[1] - sampler.n_warmup
    if n_kept < n_draws:
        if n_kept < 1:
            raise KeyboardInterrupt("interrupted before the end of warm-up: no draws to return")
        hint = "" if checkpoint is None else "; the same call goes on from the checkpoint"
        warnings.warn(
            f"interrupted: each chain has {n_kept} of {n_draws} draws{hint}", stacklevel=3
        )
    tunings = [state.tuning for state in chains.states]
    tree = make_tree(
        chains.draws,
        sampler.n_warmup,
        labels=labels,
        attrs={
            **chains.identity,
            "tuning": {
                "tau": [float(np.exp(tuning.log_tau)) for tuning in tunings],
                "r": [max(round(float(np.exp(tuning.log_r))), 1) for tuning in tunings],
                "slope": [float(tuning.slope) for tuning in tunings],
            },
            **(attrs or {}),
        },
    )
    diagnose(tree).warn(stacklevel=4)
    return tree


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
    """Make ``n_iterations`` of each chain, or as many whole rounds as Ctrl-C allows.

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
        With fewer than ``n_iterations`` if interrupted.
    """
    identity, keys, finished = _open_run(sampler, n_chains, random_state, checkpoint)
    size = round_size or _FIRST_ROUND
    try:
        with (
            progress("Sampling", total=n_chains * n_iterations, verbose=verbose) as advance,
            Parallel(n_jobs=n_jobs, prefer=sampler.prefer) as pool,
        ):
            advance(min(finished.n_done, n_iterations) * n_chains)
            while finished.n_done < n_iterations:
                began = time.monotonic()
                first, last = finished.n_done, min(finished.n_done + size, n_iterations)
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
                    write_checkpoint(
                        checkpoint,
                        Checkpoint(identity, last, finished.states, finished.parts[0]),
                    )
                advance((last - first) * n_chains)
                if round_size is None:
                    size = _next_size(size, time.monotonic() - began)
    except KeyboardInterrupt:
        if not finished.parts:
            raise
    draws = {name: values[:, :n_iterations] for name, values in _join(finished.parts).items()}
    return Chains(draws, finished.states, identity)


class _Finished(NamedTuple):
    """Whole rounds, as they stood at one moment."""

    n_done: int
    states: list[Any]
    parts: list[dict[str, np.ndarray]]


def _open_run(
    sampler: Sampler, n_chains: int, random_state: Any, checkpoint: str | os.PathLike | None
) -> tuple[dict[str, str], np.ndarray, _Finished]:
    """Return the identity of a run, the keys of its chains, and what is finished of it."""
    saved = None if checkpoint is None else read_checkpoint(checkpoint)
    if saved is not None and random_state is None:
        keys = np.array([int(text, 16) for text in saved.identity["keys"].split()], np.uint64)
    else:
        keys = spawn_keys(random_state, n_chains)
    identity = {
        "algorithm": sampler.name,
        **sampler.identity(),
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
