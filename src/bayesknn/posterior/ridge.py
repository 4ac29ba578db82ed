"""log Z where the posterior is: along the ridge beta_hat(k) (Section 3.3 done backwards; KERNELS).

Only differences of log Z near the ridge matter to the posterior. For each k the ridge is where
E[S_k] equals the observed S_k. Neighbouring k are so alike that chains at one of them, tilted,
speak for those around it: chains stand at some k only, the pillars
(:mod:`bayesknn.posterior.pillars`). On many points k differ more, and every k is a pillar.

Here the values of k are raced: a short look at a few of them shows which are far behind, and
pillars are put between the others until neighbours are alike. Those that matter are then measured
until the error is small enough. Errors come from resampled batches of every node, carried through
to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Self

import numpy as np
from joblib import effective_n_jobs
from scipy.interpolate import PchipInterpolator

from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.likelihood.nodes import BATCHES_PER_CHAIN, N_CHAINS, Field, Node, lay_out
from bayesknn.posterior.bounds import find_possible
from bayesknn.posterior.curves import Curve, Profile, integrate_from_zero
from bayesknn.posterior.judge import find_behind
from bayesknn.posterior.links import Link, integrate_link
from bayesknn.posterior.pillars import (
    BEHIND,
    N_REPLICATES,
    PILOT_SWEEPS,
    WARMUP,
    Pillars,
    Pilot,
    Ridge,
    add_up,
    add_up_doubts,
    weigh,
)
from bayesknn.posterior.support import find_limits

_COARSE_RATIO = 1.35
# Variance of D from one pillar to the next up to which tilted draws speak for the k between them.
_MAX_APART = 2.0
# Steps of the search for the ridge: records taken at each.
_SEARCH: tuple[int, ...] = (4, 4, 8)
_MAX_SEARCH = 16
_MAX_STEP = 0.5
_SETTLE = 10
# The step, as a share of beta_max, over which the prior's slope is taken.
_NUDGE = 1e-3
# Values of beta at which priors of two k are compared.
_N_COMPARED = 33


class RidgeWalk:
    """Finds the ridge and integrates along it. To be used in a ``with`` statement.

    Parameters
    ----------
    likelihood : CoherentLikelihood
    k_max : int
    beta_max : float
    seeds : numpy.random.SeedSequence
    n_jobs : int, optional
        Threads. The result does not depend on them.
    report : callable, optional
        Told after every piece of work, for a progress bar.
    """

    def __init__(
        self,
        likelihood: CoherentLikelihood,
        k_max: int,
        beta_max: float,
        seeds: np.random.SeedSequence,
        n_jobs: int | None = None,
        report: Callable[[float], None] = lambda steps: None,
    ):
        self.report = report
        self.likelihood, self.k_max, self.beta_max = likelihood, k_max, beta_max
        self.seeds = seeds
        self.field: Field = self._lay_out(n_ranks=0)
        self.observed = likelihood.agreement
        self.stage = 0
        # Sweeps of every piece of work; nodes themselves are let go of when done with.
        self.spent: list[int] = []
        n_threads = effective_n_jobs(n_jobs)
        self.pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)

    def each(self, function: Callable, *arguments: Iterable) -> list:
        """Call a function for each set of arguments, in threads."""

        def call(*row):
            result = function(*row)
            self.report(1)
            return result

        return list((map if self.pool is None else self.pool.map)(call, *arguments))

    def advance(
        self,
        nodes: list[Node],
        n_sweeps: int | None = None,
        n_warmup: int = 0,
        growth: float = 1.0,
    ) -> None:
        """Add the records of so many sweeps, or ``growth`` times as many records as each node has.

        Every chain is a piece of work of its own for the threads. At large k records are far
        apart; there are never so few that a batch would have none.
        """

        def run(node, chain):
            if n_sweeps is None:
                return node.run(chain, int(np.ceil(growth * node.n_records)), n_warmup)
            return node.run(chain, max(-(-n_sweeps // node.thin), BATCHES_PER_CHAIN), n_warmup)

        pairs = [(node, chain) for node in nodes for chain in range(N_CHAINS)]
        records = self.each(lambda pair: run(*pair), pairs)
        for at, node in enumerate(nodes):
            before = node.n_sweeps
            node.add(records[N_CHAINS * at : N_CHAINS * (at + 1)], n_warmup)
            self.spent.append(N_CHAINS * (node.n_sweeps - before))

    def node(self, beta: float, k: int, columns: Iterable[int], place: int, initial=None) -> Node:
        """Make a node whose random numbers depend on its place alone."""
        return Node(self.field, beta, k, columns, self.seed(k, place), initial)

    def settle_on(self, k_last: int) -> None:
        """From now on look at k up to this one, often.

        Then their neighbours are worth laying out anew: sweeps over many points take an eighth
        less time. Not worth it is a copy of more than half of all lists.
        """
        if 2 * k_last <= self.likelihood.graph.k_max:
            self.field = self._lay_out(k_last)

    def _lay_out(self, n_ranks: int) -> Field:
        likelihood = self.likelihood
        return lay_out(likelihood.graph, likelihood.n_classes, likelihood.class_weight, n_ranks)

    def seed(self, k: int, place: int) -> np.random.SeedSequence:
        """Return the seed sequence of a place."""
        spawn_key = (*self.seeds.spawn_key, self.stage, k, place)
        return np.random.SeedSequence(self.seeds.entropy, spawn_key=spawn_key)

    def find_ridge(self, k: int, beta: float, steps: tuple[int, ...]) -> float:
        """Find the top of the posterior at k, by Newton steps kept within a bracket.

        Where the prior is flat, that is where E[S_k] is the observed S_k.

        To within about a posterior standard deviation of beta; nothing later needs more.
        """
        low, high = self.limits[k]
        beta, initial = float(np.clip(beta, low, high)), self.likelihood.labels
        for turn in range(_MAX_SEARCH):
            node = self.node(beta, k, [k], turn, initial)
            node.advance(steps[min(turn, len(steps) - 1)], n_warmup=_SETTLE)
            self.spent.append(N_CHAINS * node.n_sweeps)
            mean, variance = node.mean()[0] / k, max(node.variance()[0] / k**2, 1e-9)
            margin = 0.5 / np.sqrt(variance)
            target = self.target(k, beta)
            if mean < target:
                low = max(low, beta - margin)
            else:
                high = min(high, beta + margin)
            step = (target - mean) / variance
            proposal = beta + float(np.clip(step, -_MAX_STEP, _MAX_STEP))
            beta = proposal if low <= proposal <= high else (low + high) / 2
            initial = node.labels
            if turn + 1 >= len(steps) and abs(step) < 2 * margin:
                break
        return float(np.clip(beta, *self.limits[k]))

    def walk(self, log_prior: Callable, tolerance: float, max_sweeps: float = np.inf) -> Ridge:
        """Race the values of k, then measure those that matter to ``tolerance``."""
        return self.raise_pillars(log_prior).measure(tolerance, max_sweeps)

    def raise_pillars(self, log_prior: Callable) -> Pillars:
        """Race the values of k that a prior allows, and choose the pillars."""
        self.log_prior = log_prior
        self.limits = find_limits(log_prior, self.k_max, self.beta_max)
        every = np.array(list(self.limits))
        return Pillars(self, self._race(every), every)

    def _race(self, every: np.ndarray) -> list[Pilot]:
        """Choose the pillars among all k: those not far behind, and near enough to each other."""
        max_apart = _MAX_APART if self._is_product(every) else 0.0
        pilots: dict[int, Pilot] = {}
        links: dict[tuple[int, int], Link] = {}
        possible: tuple[int, int] | None = None
        ks, steps = _thin_out(every), _SEARCH
        new, guesses = ks, np.ones(len(ks))
        while True:
            betas = self.each(lambda k, b, steps=steps: self.find_ridge(k, b, steps), new, guesses)
            pilots |= self._send_pilots(new, betas, ks, every)
            here = [pilots[k] for k in ks.tolist()]
            for before, after in pairwise(here):
                pair = (before.node.k, after.node.k)
                if pair not in links:
                    links[pair] = integrate_link(before.node, after.node, N_REPLICATES)
            between = [links[pair] for pair in pairwise(ks.tolist())]
            score = np.column_stack([pilot.mass for pilot in here]) - add_up(between)
            behind = find_behind(score, add_up_doubts(between), n_errors=4)
            near = np.flatnonzero(behind < BEHIND)
            first, last = max(near[0] - 1, 0), min(near[-1] + 1, len(ks) - 1)
            if not possible:
                possible = find_possible(self, here, score[0])
                first, last = possible or (first, last)
            self.stage += 1
            apart = [link.variance for link in between[first:last]]
            wanted = _fill_in(ks[first : last + 1], apart, every, max_apart)
            new = wanted[~np.isin(wanted, ks)]
            if len(new) == 0:
                return here[first : last + 1]
            guesses = _interpolate(ks, np.array([pilot.top for pilot in here]), new)
            pilots = {pilot.node.k: pilot for pilot in here[first : last + 1]}
            # On many points the labels of those that are dropped take memory.
            del here
            ks, steps = wanted, _SEARCH[-1:]

    def _send_pilots(self, new, betas, ks, every) -> dict[int, Pilot]:
        """Look at the k that are new among ``ks``, near their ridges."""
        before, after = np.append(ks[0], ks[:-1]), np.append(ks[1:], ks[-1])
        nodes = []
        for k, beta in zip(new.tolist(), betas, strict=True):
            at = np.searchsorted(ks, k)
            columns = every[(every >= before[at]) & (every <= after[at])]
            nodes.append(self.node(beta, k, columns, 100))
        self.advance(nodes, PILOT_SWEEPS, WARMUP)
        pilots = {}
        for node in nodes:
            curve = Curve.through([node], node, N_REPLICATES)
            top = curve.find_top(self.target(node.k, node.beta), self.limits[node.k])
            pilots[node.k] = Pilot(node, top, weigh(Profile((curve,)), self)[0])
        return pilots

    def _is_product(self, ks: np.ndarray) -> bool:
        """Whether the prior of beta is the same at every k, so that neighbours are alike."""
        if len(set(self.limits.values())) > 1:
            return False
        beta = np.linspace(*self.limits[ks[0]], _N_COMPARED)
        heights = self.log_prior(beta, ks[:, None])
        return np.allclose(heights - heights[:, :1], heights[0] - heights[0, 0], atol=1e-6)

    def target(self, k: int, beta: float) -> float:
        """Return what E[S_k] / k is where the posterior at k has its top, as seen from beta."""
        nudge = _NUDGE * self.beta_max
        ends = np.clip([beta - nudge, beta + nudge], *self.limits[k])
        heights = self.log_prior(ends, k)
        pull = np.diff(heights)[0] / np.diff(ends)[0] if np.isfinite(heights).all() else 0.0
        return float(self.observed[k - 1] / k + pull)

    def log_weight(self, k: int) -> Callable:
        """Return the log posterior at k, but for log Z, as a function of beta."""
        return lambda beta: beta / k * self.observed[k - 1] + self.log_prior(beta, k)

    def from_zero(self, ridge: Ridge, tolerance: float) -> np.ndarray:
        """Return log Z itself at the anchor of a ridge, in every replicate."""
        self.stage += 1
        max_sweeps = ridge.n_sweeps / 8
        return integrate_from_zero(ridge.anchor, self, tolerance, max_sweeps, N_REPLICATES)[0]


def _thin_out(ks: np.ndarray) -> np.ndarray:
    """Choose values that are about a third apart, the first and the last among them."""
    n_steps = int(np.ceil(np.log(ks[-1] / ks[0]) / np.log(_COARSE_RATIO))) + 1
    places = np.searchsorted(ks, np.geomspace(ks[0], ks[-1], n_steps) - 1e-9)
    return ks[np.unique(np.minimum(places, len(ks) - 1))]


def _fill_in(ks: np.ndarray, apart: list[float], every: np.ndarray, max_apart: float) -> np.ndarray:
    """Put more k between those that are further apart than allowed, as variances of D."""
    places = np.searchsorted(every, ks)
    filled = [places[:1]]
    for before, after, variance in zip(places, places[1:], apart, strict=False):
        n_between = after - before
        if max_apart > 0:
            # The variance of D grows at least as fast as the distance, at most as its square, and
            # is zero where labels are frozen.
            n_between = min(n_between, max(int(np.ceil(np.sqrt(variance / max_apart))), 1))
        filled.append(np.linspace(before, after, n_between + 1)[1:].round().astype(np.int64))
    return every[np.concatenate(filled)]


def _interpolate(ks: np.ndarray, betas: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    if len(ks) == 1:
        return np.full(len(wanted), betas[0])
    return PchipInterpolator(np.log(ks), betas, extrapolate=True)(np.log(wanted))
