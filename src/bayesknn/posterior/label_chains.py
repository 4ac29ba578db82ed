"""What the exchange and the auxiliary-variable chains have in common (Section 3.4).

Both draw labels at every proposed (beta, k), in compiled blocks of moves; ``thin`` moves make one
iteration of :mod:`bayesknn.posterior.chains`. The random numbers of a move are a function of
(key, move), so that blocks may be cut anywhere.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesknn.exceptions import CoalescenceError, MixingWarning
from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.model import Prior
from bayesknn.model.boltzmann import fingerprint
from bayesknn.posterior.auxiliary_labels import LabelDraws
from bayesknn.posterior.compiled_prior import tabulate_prior
from bayesknn.posterior.drawer import Drawer
from bayesknn.posterior.proposals import (
    FREE_SLOT,
    SCHEDULES,
    Tuning,
    Walk,
    _beta_of,
    _propose,
    disperse,
)

if TYPE_CHECKING:
    import xarray

DRAW_SLOT, REFRESH_SLOT = FREE_SLOT, FREE_SLOT + 1
_MAX_STARTS = 1000
_N_PROBES = 64
# How many draws look for a bias of the labels: this share of those of the run, within limits.
_PROBE_SHARE, _N_DOUBTS = 0.01, (64, 1024)


class Moves(NamedTuple):
    """Where each move of a block ended, and how it went."""

    beta: np.ndarray
    k: np.ndarray
    accepted: np.ndarray
    acceptance: np.ndarray


class Problem(NamedTuple):
    """What stays the same for all moves of a run, as compiled code takes it.

    Attributes
    ----------
    observed : ndarray of shape (k_max,)
        S_k of the data.
    table : ndarray
        The prior; see :func:`bayesknn.posterior.compiled_prior.tabulate_prior`.
    walk : Walk
    """

    observed: np.ndarray
    table: np.ndarray
    walk: Walk


@dataclass(frozen=True)
class LabelChain:
    """A chain that draws labels; see :class:`bayesknn.posterior.chains.Sampler`.

    An algorithm adds ``name``, ``start`` and ``run``.
    """

    likelihood: CoherentLikelihood
    prior: Prior
    label_draws: LabelDraws
    walk: Walk
    tuning: Tuning
    thin: int
    name = "labels"
    prefer = "threads"

    @property
    def n_warmup(self) -> int:
        """Iterations that adapt."""
        return self.walk.n_warmup // self.thin

    @property
    def scheme(self) -> str:
        """What the moves are called."""
        return next(name for name, code in SCHEDULES.items() if code == self.walk.schedule)

    def new_moves(self, size: int) -> Any:
        """Allocate the record of so many moves."""
        real = np.empty((3, size))
        return Moves(real[0], np.empty(size, np.int64), real[1], real[2])

    def start(self, theta: float, k: int, log_prior: float) -> Any:
        """Return the state at (theta, k)."""
        raise NotImplementedError

    def run(
        self, state: Any, key: np.uint64, first: int, last: int, problem: Problem,
        given: np.ndarray, drawer: Drawer, moves: Any,
    ) -> tuple[Any, int]:  # fmt: skip
        """Make the moves ``first..last - 1``; return the state and how many points are apart.

        ``given`` is empty or holds the log prior of the only proposal.
        """
        raise NotImplementedError

    def init(self, key: np.uint64) -> Any:
        """Return the first of the dispersed starts where the prior is positive."""
        for attempt in range(_MAX_STARTS):
            theta, k = disperse(self.walk, key, attempt)
            log_prior = float(self.prior.log_density(_beta_of(theta, self.walk.beta_max), k))
            if math.isfinite(log_prior):
                return self.start(theta, k, log_prior)
        raise ValueError(
            f"no start found: the prior is zero or not a number at {_MAX_STARTS} values of "
            f"(beta, k) drawn from 1..{self.walk.k_max} x [0, {self.walk.beta_max:g}]; check it"
        )

    def advance(
        self, state: Any, key: np.uint64, first: int, last: int
    ) -> tuple[Any, dict[str, np.ndarray]]:
        """Make iterations ``first..last - 1``, of ``thin`` moves each."""
        first, last = first * self.thin, last * self.thin
        moves = self.new_moves(last - first)
        drawer = self.label_draws.drawer()
        table = tabulate_prior(self.prior)
        if table is not None:
            problem = Problem(self.likelihood.agreement, table, self.walk)
            state = self._run(state, key, first, last, problem, np.empty(0), drawer, moves)
        else:
            problem = Problem(self.likelihood.agreement, np.empty((0, 0)), self.walk)
            for move in range(first, last):
                to = _propose(self.walk, state.tuning, state.theta, state.k, key, move)
                given = np.full(1, self.prior.log_density(to.beta, to.k), np.float64)
                part = type(moves)(*(values[move - first : move - first + 1] for values in moves))
                state = self._run(state, key, move, move + 1, problem, given, drawer, part)
        kept = {
            name: values[self.thin - 1 :: self.thin] for name, values in moves._asdict().items()
        }
        for name in ("accepted", "acceptance"):
            kept[name] = getattr(moves, name).reshape(-1, self.thin).mean(axis=1)
        return state, kept

    def _run(self, state, key, first, last, problem, given, drawer, moves):
        state, n_apart = self.run(state, key, first, last, problem, given, drawer, moves)
        if n_apart:
            past, n_points = drawer.perfect.max_past, self.likelihood.n_points
            beta = _beta_of(state.theta, self.walk.beta_max)
            raise CoalescenceError(
                f"a perfect draw at beta={beta:g}, k={state.k}: {n_apart} of {n_points} points "
                f"were still apart after a past of {past} sweeps; lower beta_max, or use "
                "label_sampler='swendsen-wang', which needs no past but is approximate",
                past,
                n_apart,
            )
        return state

    def settings(self) -> str:
        """Describe what a checkpoint must agree in."""
        walk, tuning = self.walk, self.tuning
        tau = "adapted" if walk.adapts_tau else f"{math.exp(tuning.log_tau):.9g}"
        r = "adapted" if walk.adapts_r else f"{math.exp(tuning.log_r):.9g}"
        moves = f"scheme={self.scheme}, tau={tau}, r={r}, thin={self.thin}"
        return f"{moves}, {self.label_draws.describe()}"

    def identity(self) -> dict[str, str]:
        """Return what stands for the run in checkpoints."""
        likelihood, walk = self.likelihood, self.walk
        rng = np.random.default_rng(0)
        beta = rng.uniform(0, walk.beta_max, _N_PROBES)
        k = rng.integers(1, walk.k_max, _N_PROBES, endpoint=True)
        prior = [f"{value:.9g}" for value in self.prior.log_density(beta, k)]
        weights = np.empty(0) if likelihood.class_weight is None else likelihood.class_weight
        return {
            "data": fingerprint(
                likelihood.graph.neighbors[: walk.k_max],
                likelihood.labels,
                likelihood.n_classes,
                weights,
            ),
            "prior": fingerprint([walk.beta_max, walk.k_max], prior),
            "settings": self.settings(),
        }

    def attrs(self) -> dict[str, Any]:
        """Return what the result should tell about the run."""
        return {
            "scheme": self.scheme,
            "label_sampler": self.label_draws.method,
            "thin": self.thin,
            "beta_max": self.walk.beta_max,
            "k_max": self.walk.k_max,
        }

    def doubts(self, tree: xarray.DataTree) -> list[str]:
        """Say whether the labels were drawn well enough where the posterior is."""
        beta, k = (np.asarray(tree["posterior"][name].values) for name in ("beta", "k"))
        n_probes = int(np.clip(_PROBE_SHARE * beta.size * self.thin, *_N_DOUBTS))
        seeds = np.random.SeedSequence([int(key, 16) for key in tree.attrs["keys"].split()])
        mode = int(np.bincount(k.ravel()).argmax())
        centre = float(beta[k == mode].mean())
        return self.label_draws.doubts(centre, mode, seeds.generate_state(n_probes, np.uint64))

    def warn(self, tree: xarray.DataTree) -> None:
        """Issue one warning, to whoever called the public function, if there is a doubt.

        The sentences stay with the result, as the attribute ``doubts``.
        """
        sentences = self.doubts(tree)
        tree.attrs["doubts"] = json.dumps(sentences)
        if sentences:
            warnings.warn("; ".join(sentences), MixingWarning, stacklevel=3)
