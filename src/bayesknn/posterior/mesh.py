"""log Z where the posterior is, from chains that stand around the ridge beta_hat(k) (Section 3.3).

Only differences of log Z near the ridge matter to the posterior. A race has chosen some k
(:mod:`bayesknn.posterior.race`); pairs of chains stand on both sides of the ridge of each, and all
their draws together give log Z at every (beta, k) that they reach (:mod:`bayesknn.log_z.mbar`), at
the k between them too. Where posterior mass rests on few draws, chains are added; then all run
until the posterior is precise.

Where a first-order transition lies among the k that matter, there is a mesh in each of two phases
of the labels, and log Z is that of both together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline
from scipy.special import logsumexp, softmax

from bayesknn._utils.random import Purpose
from bayesknn.log_z.chains import N_CHAINS, WARMUP, ChainPair, Setting, find_inflation
from bayesknn.log_z.mbar import REACH, Sampled, combine
from bayesknn.log_z.resampling import find_error
from bayesknn.log_z.simulation import Pilot, Simulation
from bayesknn.model.integration import place_nodes
from bayesknn.posterior.race import BEHIND, Division, Look
from bayesknn.posterior.ridge_target import LogPosterior, Profile

# Recorded sweeps of chains before the first judgement, and where k hardly matters: more make first
# rounds that were not needed, fewer make errors that are not known.
_SWEEPS, _FEW_SWEEPS = 192, 64
# Sweeps of a batch, at least, and in memories of the chain; batches of each chain, at least. Short
# batches show too little error, few of them show it badly.
_MIN_BATCH_SWEEPS, _MEMORIES_PER_BATCH, _FEWEST_BATCHES = 12, 6.0, 8
# Share of all sweeps that first runs may take, where batches as long as slow chains need would take
# more: errors that are known badly against rounds that cannot be made.
_FIRST_SHARE = 1 / 3
# In posterior standard deviations of beta: how far from the ridge chains stand, how far apart the
# nodes of a curve of log Z are, and how far out they go. Wider is less work and rests on fewer
# draws in between.
_ASIDE, _STEP, _OUT = 1.3, 0.7, 4.2
# Variance of the difference of log weights up to which two chains need no other between them, and
# how many there may be: fewer chains against draws that do not overlap.
_MAX_VARIANCE, _MAX_PARTS = 4.0, 16
# Posterior mass rests on few independent draws if there are fewer than this, and so much may: fewer
# chains against an error that is itself not known.
_FEW_DRAWS, _LITTLE = 20.0, 2e-3
# Depth in log posterior at which the curve of a k may end, and by which a k may be behind before it
# is not worked on any more: a thousandth of the mass is left out or known less well.
_DEPTH = 7.0
# Chains stop when their errors look small, which is more often than not when they look too small.
_STOPPING = 1.05
# Growth of the records from one round to the next: less costs rounds, more overshoots.
_GROWTH = (0.25, 3.0)
# Rounds of growth, and of adding chains, at most: an end where errors do not fall as they should.
_MAX_ROUNDS, _MAX_TURNS = 12, 10


class Weighed(NamedTuple):
    """The posterior as far as the records tell.

    Attributes
    ----------
    profiles : list of Profile
        Of each k, with log Z up to a common constant.
    panels : list of ndarray
        Where the posterior of beta is at each k.
    score : ndarray of shape (n_replicates, n_k)
        The log posterior of each k, up to a constant.
    values : list of ndarray of shape (n_phases, n_nodes)
        log Z of each phase at the nodes of each k.
    n_effective : list of ndarray of shape (n_phases, n_nodes)
        Independent draws at the nodes.
    of_sampled : ndarray of shape (n_replicates, n_sampled)
        log Z at the chains of the first phase, up to the same constant.
    """

    profiles: list[Profile]
    panels: list[np.ndarray]
    score: np.ndarray
    values: list[np.ndarray]
    n_effective: list[np.ndarray]
    of_sampled: np.ndarray


class Ridge(NamedTuple):
    """log Z around the ridge for the values of k that matter.

    Attributes
    ----------
    profiles : list of Profile
        The posterior of beta at each of them, log Z being known up to a constant.
    excess : float
        The largest of the errors of log posterior and mean of k, as a multiple of what is allowed.
    reference : ChainPair
        One near the ridge of the best k.
    reference_height : ndarray of shape (n_replicates,)
        log Z there, up to the same constant.
    is_divided : bool
        There are two phases; then the constant is 0: log Z itself is known.
    """

    profiles: list[Profile]
    excess: float
    reference: ChainPair
    reference_height: np.ndarray
    is_divided: bool


class Mesh:
    """Chains around the ridge, in every phase of the labels.

    Parameters
    ----------
    simulation : Simulation
    target : LogPosterior
    looks : list of Look
        At the k that the race has chosen, in increasing order.
    max_sweeps : float
        About how many sweeps may be made in all.
    division : Division, optional
        The two phases, if there are two.

    Attributes
    ----------
    ks : ndarray of int
        All k that may matter.
    nodes : dict of int to ndarray
        By k, where log Z is computed.
    phases : list of list of Sampled
        The chains.
    """

    def __init__(
        self,
        simulation: Simulation,
        target: LogPosterior,
        looks: list[Look],
        max_sweeps: float,
        division: Division | None = None,
    ):
        self.simulation, self.target, self.max_sweeps = simulation, target, max_sweeps
        self.division, self.looks = division, looks
        own = np.array([look.k for look in looks])
        ks = target.ks[(target.ks >= own[0]) & (target.ks <= own[-1])]
        # Between two k of the race all is taken to change evenly.
        self.ks = ks[np.interp(ks, own, [look.behind for look in looks]) < BEHIND]
        self.columns = np.union1d(self.ks, own)
        tops = np.interp(self.ks, own, [look.top for look in looks])
        sds = np.interp(self.ks, own, [look.sd for look in looks])
        self.nodes = {
            k: _place_nodes(top, sd, target.limits[k])
            for k, top, sd in zip(self.ks.tolist(), tops.tolist(), sds.tolist(), strict=True)
        }
        self.phases: list[list[Sampled]] = [[] for _ in looks[0].pilots]
        self._starts: list[np.ndarray | None] = [None] * len(self.phases)
        work = []
        for phase in range(len(self.phases)):
            for at, look in enumerate(looks):
                work += self._settle(phase, look)
                if at:
                    work += self._join(phase, looks[at - 1], look)
        simulation.advance(work)

    def _settle(self, phase: int, look: Look) -> list[tuple[ChainPair, int]]:
        """Put chains on both sides of a ridge."""
        low, high = self.target.limits[look.k]
        pilot = look.pilots[phase]
        aside = min(_ASIDE * look.sd, (high - low) / 2)
        betas = np.unique(np.clip([look.top - aside, look.top + aside], low, high))
        sweeps = _SWEEPS if look.behind < _DEPTH else _FEW_SWEEPS
        return [self._make(phase, Setting.at(beta, look.k), pilot, sweeps) for beta in betas]

    def _join(self, phase: int, before: Look, after: Look) -> list[tuple[ChainPair, int]]:
        """Put chains between two k that are so different that their draws do not overlap."""
        ks, rates = (before.k, after.k), (before.top / before.k, after.top / after.k)
        pilots = [look.pilots[phase] for look in (before, after)]
        variances = [
            (rates[1] * pair.series(ks[1]) - rates[0] * pair.series(ks[0])).var()
            for pair in (pilot.pair for pilot in pilots)
        ]
        n_parts = min(int(np.ceil(np.sqrt(max(variances) / _MAX_VARIANCE))), _MAX_PARTS)
        slower = max(pilots, key=lambda pilot: pilot.memory)
        return [
            self._make(phase, Setting(ks, (rates[0] * (1 - share), rates[1] * share)), slower)
            for share in np.arange(1, n_parts) / n_parts
        ]

    def _make(
        self, phase: int, setting: Setting, pilot: Pilot, sweeps: int = _SWEEPS
    ) -> tuple[ChainPair, int]:
        """Make chains at a setting near a pilot, and say how many records to begin with.

        No more than a share of the sweeps that may be made in all, even if batches are then
        shorter than they should be.
        """
        thin = max(1 + int(self.columns[-1]) // 16, int(pilot.memory / 2))
        length = max(_MIN_BATCH_SWEEPS, _MEMORIES_PER_BATCH * pilot.memory)
        n_first = 4 * len(self.phases) * len(self.looks)
        most = max(sweeps, _FIRST_SHARE * self.max_sweeps / n_first)
        length = int(np.ceil(min(length, most / _FEWEST_BATCHES) / thin))
        n_made = sum(map(len, self.phases))
        pair = self.simulation.pair(
            setting, self.columns, (Purpose.RIDGE, setting.ks[-1], n_made), whole=self.columns,
            initial=pilot.pair.labels, window=pilot.pair.window, length=length, thin=thin,
            inflation=_STOPPING * find_inflation(pilot.memory, length * thin),
            n_warmup=int(np.clip(4 * pilot.memory, WARMUP, max(WARMUP, most / 4))),
        )  # fmt: skip
        self.phases[phase].append(Sampled(pair, pilot.memory))
        return pair, max(-(-sweeps // thin), _FEWEST_BATCHES * length)

    def measure(self, tolerance: float) -> Ridge:
        """Add chains where they are missing, then records until the posterior is precise."""
        turns = rounds = 0
        while True:
            state = self._weigh()
            turns += 1
            if turns < _MAX_TURNS and self._grow(state):
                continue
            excess = judge(self.ks, state.score, tolerance)
            is_over = rounds == _MAX_ROUNDS or self.simulation.n_sweeps > self.max_sweeps
            if is_over or excess <= 1.0:
                break
            matters = self.ks[state.score[0] > state.score[0].max() - _DEPTH]
            pairs = [
                each.pair
                for phase in self.phases
                for each in phase
                if matters[0] <= each.pair.k <= matters[-1]
            ]
            made = N_CHAINS * sum(pair.n_records * pair.thin for pair in pairs)
            left = (self.max_sweeps - self.simulation.n_sweeps) / made
            growth = float(np.clip(min(excess**2 - 1.0, left), *_GROWTH))
            self.simulation.advance((pair, int(np.ceil(growth * pair.n_records))) for pair in pairs)
            rounds += 1
        best = int(self.ks[np.argmax(state.score[0])])
        away = [
            abs(each.pair.k - best) + (len(each.pair.setting.ks) - 1) for each in self.phases[0]
        ]
        at = int(np.argmin(away))
        return Ridge(
            state.profiles, excess, self.phases[0][at].pair, state.of_sampled[:, at],
            self.division is not None,
        )  # fmt: skip

    def _weigh(self) -> Weighed:
        """Weigh the posterior at each k with what the records say now."""
        targets = [Setting.at(beta, k) for k in self.nodes for beta in self.nodes[k].tolist()]
        ends = np.cumsum([len(nodes) for nodes in self.nodes.values()])
        values, n_effective, of_sampled = [], [], []
        for at, phase in enumerate(self.phases):
            # Where log Z is known, in two phases; anywhere, in one.
            tie = phase[0].pair if self.division is None else self.division.pairs[at]
            found = combine(phase, [*targets, tie.setting], self._starts[at])
            self._starts[at] = found.of_sampled[0]
            constant = -found.of_targets[:, -1:]
            if self.division is not None:
                constant = constant + self.division.log_z[at][:, None]
            values.append(np.split(found.of_targets + constant, ends, axis=1))
            n_effective.append(np.split(found.n_effective, ends))
            of_sampled.append(found.of_sampled + constant)
        profiles, panels, scores = [], [], []
        for at, (k, nodes) in enumerate(self.nodes.items()):
            edges = np.clip(self.target.masses[k].panels(2), nodes[0], nodes[-1])
            log_z = _interpolate(nodes, [part[at] for part in values])
            profiles.append(Profile(self.target, k, log_z, np.union1d(nodes, edges)))
            panels.append(profiles[at].find_panels())
            scores.append(logsumexp(profiles[at].weigh(panels[at]), axis=1))
        return Weighed(
            profiles,
            panels,
            np.column_stack(scores),
            [np.array([part[at][0] for part in values]) for at in range(len(self.ks))],
            [np.array([part[at] for part in n_effective]) for at in range(len(self.ks))],
            of_sampled[0],
        )

    def _grow(self, state: Weighed) -> bool:
        """Let curves go on that end too early, and add chains where mass rests on few draws."""
        work, is_longer = [], False
        score = state.score[0]
        for at in np.flatnonzero(score > score.max() - _DEPTH).tolist():
            k, values = int(self.ks[at]), state.values[at]
            nodes, log_z = self.nodes[k], logsumexp(values, axis=0)
            fine, widths = place_nodes(state.panels[at])
            log_posterior = state.profiles[at].log_posterior(fine, slice(1))[0]
            # The mass around each node, as a share of all.
            mass = np.exp(log_posterior - log_posterior.max()) * widths
            nearest = np.searchsorted((nodes[1:] + nodes[:-1]) / 2, fine)
            mass = np.bincount(nearest, mass / mass.sum(), len(nodes))
            share = np.exp(score[at] - logsumexp(score))
            for phase, (part, n_draws) in enumerate(
                zip(values, state.n_effective[at], strict=True)
            ):
                rare = np.where(n_draws < _FEW_DRAWS, share * mass * np.exp(part - log_z), 0.0)
                if rare.sum() > _LITTLE:
                    setting = Setting.at(nodes[int(np.argmax(rare))], k)
                    look = self.looks[int(np.argmin([abs(look.k - k) for look in self.looks]))]
                    work.append(self._make(phase, setting, look.pilots[phase]))
            # What the posterior could be beyond the ends, with the most that the prior has.
            log_f = nodes / k * self.target.observed[k - 1] - log_z
            log_top = log_f + self.target.masses[k].log_top
            goes_on = log_top[[0, -1]] > log_posterior.max() - _DEPTH
            goes_on |= log_f[[0, -1]] > log_f[[1, -2]]
            self.nodes[k] = _add_nodes(
                nodes, log_z, mass > np.exp(-_DEPTH), goes_on, self.target.limits[k]
            )
            is_longer |= len(self.nodes[k]) > len(nodes)
        self.simulation.advance(work)
        return is_longer or bool(work)


def _place_nodes(top: float, sd: float, limits: tuple[float, float]) -> np.ndarray:
    low, high = max(top - _OUT * sd, limits[0]), min(top + _OUT * sd, limits[1])
    return np.linspace(low, high, max(int(np.ceil((high - low) / (_STEP * sd))), 5) + 1)


def _add_nodes(
    nodes: np.ndarray,
    log_z: np.ndarray,
    matters: np.ndarray,
    goes_on: np.ndarray,
    limits: tuple[float, float],
) -> np.ndarray:
    """Add nodes where they are too far apart for the curvature of log Z, and beyond the ends."""
    steps = np.diff(nodes)
    bends = np.diff(np.diff(log_z) / steps) / ((steps[1:] + steps[:-1]) / 2)
    sds = 1 / np.sqrt(np.maximum(bends, 1e-12))
    sds = np.minimum(np.concatenate([sds[:1], sds, sds[-1:]]), REACH)
    wide = steps > np.minimum(sds[1:], sds[:-1])
    wide &= matters[1:] | matters[:-1]
    more = [nodes, nodes[:-1][wide] + steps[wide] / 2]
    for end, sign in ((0, -1), (-1, 1)):
        if goes_on[end]:
            more.append(nodes[end] + sign * _STEP * sds[end] * np.arange(1, 5))
    longer = np.sort(np.clip(np.concatenate(more), *limits))
    return longer[np.append(True, np.diff(longer) > 1e-6 * steps.min())]


def _interpolate(
    nodes: np.ndarray, phases: list[np.ndarray]
) -> Callable[[np.ndarray, slice], np.ndarray]:
    """Return log Z of all phases together, through its replicates at the nodes."""
    splines = [make_interp_spline(nodes, values.T, k=min(5, len(nodes) - 1)) for values in phases]

    def log_z(beta: np.ndarray, rows: slice) -> np.ndarray:
        parts = [BSpline.construct_fast(s.t, s.c[:, rows], s.k)(beta).T for s in splines]
        return parts[0] if len(parts) == 1 else np.logaddexp(*parts)

    return log_z


def judge(ks: np.ndarray, score: np.ndarray, tolerance: float) -> float:
    """Return the largest of the errors of log posterior and mean of k, beside what is allowed."""
    shares = softmax(score, axis=1)
    share = shares[0]
    # An error common to all k changes nothing, and one on a small share little.
    error = find_error(score - score @ share[:, None]) * np.sqrt(share / share.max())
    means = shares @ ks
    sd = np.sqrt(share @ (ks - means[0]) ** 2)
    of_mean = find_error(means) / (max(sd, 1.0) / 3)
    return float(max(error.max(), of_mean) / tolerance)
