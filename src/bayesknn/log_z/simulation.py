"""One computation of log Z: a model, seeds and threads go in, pairs of chains come out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from joblib import effective_n_jobs

from bayesknn.exceptions import MixingWarning
from bayesknn.log_z.chains import RANKS_PER_SWEEP, WARMUP, ChainPair
from bayesknn.log_z.records import N_CHAINS, Setting, error_inflation
from bayesknn.model import BoltzmannModel

# A pilot goes on until it has made so many times the autocorrelation time of its chains: longer
# costs sweeps, shorter leaves that time unknown.
_PILOT_TIMES = 20.0
# Each chain of a pilot may make so many, however few are left: shorter ones do not tell slow chains
# from others.
FEWEST_PILOT_SWEEPS = 1024
# Sweeps of each chain before the first judgement, and where sweeps are few or a k hardly matters. A
# larger number makes first rounds that were not needed, a smaller one leaves errors unknown.
SWEEPS, FEW_SWEEPS = 192, 64
# Batches of each chain, at least, and autocorrelation times in a batch: few batches show the error
# badly, short ones too little of it.
_FEWEST_BATCHES, _TIMES_PER_BATCH = 8, 6.0
# Growth of the number of records from one round to the next, smallest and largest. A smaller growth
# costs rounds, a larger one overshoots an error that is itself only estimated.
_GROWTH = (0.25, 3.0)
# Sweeps of one path along beta if there is no other limit, some 10 seconds on tens of points. A
# larger number lets a call whose tolerance is out of reach run for longer, a smaller one ends paths
# that would reach it.
MAX_SWEEPS = 4e6


class Pilot(NamedTuple):
    """A first run at a setting, from which it is decided where and how long to run.

    Attributes
    ----------
    pair : ChainPair
    is_split : bool
        Chains from one class and from random labels stay apart: there is a first-order transition.
    is_slow : bool
        The chains cross too rarely to be compared with others, if at all.
    """

    pair: ChainPair
    is_split: bool
    is_slow: bool


# Pairs of chains, and the number of records to add to each.
Work = list[tuple[ChainPair, int]]


class Design(Protocol):
    """Decides which chains run next, from what all chains recorded so far."""

    def plan(self) -> Work:
        """Return pairs of chains and how many records to add to each; nothing ends the run."""
        ...


class Simulation:
    """Makes chains and runs them in threads. To be used in a ``with`` statement.

    Parameters
    ----------
    model : BoltzmannModel
    seeds : numpy.random.SeedSequence
    n_jobs : int, optional
        Threads. No result depends on them.
    advance : callable, optional
        ``advance(1)`` is called after every piece of work, for a progress bar.
    """

    def __init__(
        self,
        model: BoltzmannModel,
        seeds: np.random.SeedSequence,
        n_jobs: int | None = None,
        advance: Callable[[float], Any] = lambda steps: None,
    ):
        self.model, self.seeds, self.advance = model, seeds, advance
        # Two classes without weights have a continuous transition: slow chains cross all the same.
        self.is_continuous = model.n_classes == 2 and model.class_weight is None
        # Sweeps of all chains, whatever they were for.
        self.n_sweeps = 0
        self._count_lock = Lock()
        n_threads = effective_n_jobs(n_jobs)
        self.pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        self._is_busy = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[..., Any], arguments: Iterable[Any]) -> list[Any]:
        """Call a function for each argument, in threads."""

        def call(argument: Any) -> Any:
            result = function(argument)
            self.advance(1)
            return result

        arguments = list(arguments)
        # One alone leaves the threads to what it calls; what is called in a thread makes no others.
        if self.pool is None or self._is_busy or len(arguments) == 1:
            return [call(argument) for argument in arguments]
        self._is_busy = True
        try:
            return list(self.pool.map(call, arguments))
        finally:
            self._is_busy = False

    def pair(
        self,
        setting: Setting,
        columns: Sequence[int] | np.ndarray,
        key: tuple[int, ...],
        **options: Any,
    ) -> ChainPair:
        """Make a pair of chains whose random numbers depend on the key alone."""
        seeds = np.random.SeedSequence(self.seeds.entropy, spawn_key=(*self.seeds.spawn_key, *key))
        return ChainPair(self.model, setting, columns, seeds, **options)

    def pilot(
        self,
        setting: Setting,
        columns: Sequence[int] | np.ndarray,
        key: tuple[int, ...],
        max_sweeps: float = np.inf,
        **options: Any,
    ) -> Pilot:
        """Run a pair of chains until its autocorrelation time is known, or known to be long.

        ``max_sweeps`` is about how many each chain may make; a first run is made in any case.
        """
        pair = self.pair(setting, columns, key, **options)
        # Hundredths of a second on small data, a second on large.
        fewest = 1024 if self.is_continuous else 512
        most = np.clip(1.5e6 / self.model.n_points, fewest, 16_384)
        # One that had to end sooner is called slow only if it is slower than that.
        times = _PILOT_TIMES if most <= max_sweeps else _PILOT_TIMES / 4
        most = min(most, max_sweeps)
        n_records = max(int(np.ceil(64 / pair.thin)), 16)
        while True:
            self.add_records([(pair, n_records)])
            pair.time, n_sweeps = pair.autocorrelation_time(), pair.n_records * pair.thin
            is_split = pair.is_split
            is_long = n_sweeps >= _PILOT_TIMES * pair.time and not is_split
            if n_sweeps >= most or is_long:
                if np.isnan(pair.time):
                    warnings.warn(
                        f"the autocorrelation time of chains at beta={setting.beta:.3g}, "
                        f"k={setting.ks[-1]} is unknown: S is the same after each of {n_sweeps} "
                        "sweeps; errors of log Z there may be too small",
                        MixingWarning,
                        stacklevel=2,
                    )
                    pair.time = float(n_sweeps)
                pair.inflation = pair.error_inflation(pair.time)
                return Pilot(pair, is_split, is_split or n_sweeps < times * pair.time)
            # What is missing, as far as the autocorrelation time is known by now.
            is_measured = not (is_split or np.isnan(pair.time))
            missing = (_PILOT_TIMES * pair.time if is_measured else most) - n_sweeps
            missing = min(max(missing, n_sweeps / 4), most - n_sweeps)
            n_records = min(3 * pair.n_records, int(np.ceil(missing / pair.thin)))

    def new_chain_pair(
        self,
        setting: Setting,
        columns: Sequence[int] | np.ndarray,
        key: tuple[int, ...],
        time: float,
        n_sweeps: float = SWEEPS,
        max_sweeps: float = np.inf,
        **options: Any,
    ) -> tuple[ChainPair, int]:
        """Make the chains from which log Z is computed, and say how many records to begin with.

        Batches are long beside the autocorrelation time, as far as ``max_sweeps`` of each chain
        allow. That time, and where chains stand, comes from pilots: decisions made on the records
        from which log Z is computed would bias it.
        """
        most = max(n_sweeps, max_sweeps)
        thin = max(1 + int(columns[-1]) // RANKS_PER_SWEEP, int(time / 2))
        length = min(max(12, _TIMES_PER_BATCH * time), most / _FEWEST_BATCHES)
        length = int(np.ceil(length / thin))
        # By 5 % more because chains stop when errors look small (optional stopping).
        inflation = 1.05 * error_inflation(time, length * thin)
        pair = self.pair(
            setting, columns, key, thin=thin, length=length, time=time, inflation=inflation,
            n_warmup=int(np.clip(4 * time, WARMUP, max(WARMUP, most / 4))), **options,
        )  # fmt: skip
        return pair, max(int(np.ceil(n_sweeps / thin)), _FEWEST_BATCHES * length)

    def run(self, design: Design) -> None:
        """Run the chains that a design plans until it plans nothing more."""
        while work := design.plan():
            self.add_records(work)

    def extend(self, pairs: Sequence[ChainPair], excess: float, n_left: float) -> Work:
        """Plan more records for all of some pairs.

        Parameters
        ----------
        pairs : sequence of ChainPair
        excess : float
            The largest error as a multiple of what is allowed; up to 1 nothing is planned.
        n_left : float
            About how many sweeps may still be made.
        """
        if excess <= 1.0 or n_left <= 0:
            return []
        made = N_CHAINS * sum(pair.n_records * pair.thin for pair in pairs)
        growth = float(np.clip(min(excess**2 - 1.0, n_left / made), *_GROWTH))
        return [(pair, int(np.ceil(growth * pair.n_records))) for pair in pairs]

    def add_records(self, work: Iterable[tuple[ChainPair, int]]) -> None:
        """Add so many records to each pair; every chain is a piece of work for the threads."""
        work = [(pair, n_records) for pair, n_records in work if n_records > 0]
        tasks = [(pair, n, chain) for pair, n in work for chain in range(N_CHAINS)]
        records = self.map(lambda task: task[0].run(task[2], task[1]), tasks)
        for at, (pair, _) in enumerate(work):
            before = pair.sweeps_per_chain
            pair.add(records[N_CHAINS * at : N_CHAINS * (at + 1)])
            with self._count_lock:
                self.n_sweeps += N_CHAINS * (pair.sweeps_per_chain - before)
