"""log Z where the posterior is: along the ridge beta_hat(k) (Section 3.3 done backwards).

Only differences of log Z near the ridge matter to the posterior. Chains stand at some k only, the
anchors, which a race has chosen (:mod:`bayesknn.posterior.race`): one pair on the ridge, from which
log Z is bridged to the next anchor, and others around it in beta. What an anchor's draws say of a
k nearby is exact but for noise (:mod:`bayesknn.log_z.reweighting`); a k between two anchors takes
the average of what both say. Where k differ much, every k is an anchor. Chains run
until the posterior is precise; errors come from resampled batches of every pair, carried through
to the end.

Where a first-order transition lies among the k that matter, every anchor stands in each of two
phases of the labels, and log Z is that of both together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from bayesknn._utils.random import Purpose
from bayesknn.log_z.bridge import (
    MAX_PARTS,
    Step,
    add_up,
    add_up_doubt,
    between,
    bridge_all,
    bridge_along,
)
from bayesknn.log_z.chains import WARMUP, ChainPair, Setting, find_inflation
from bayesknn.log_z.curve import Curve
from bayesknn.log_z.resampling import find_error
from bayesknn.log_z.simulation import Pilot, Simulation
from bayesknn.posterior.race import BEHIND, MAX_REACH, Division, Look, find_behind
from bayesknn.posterior.ridge_target import LogPosterior, Profile

# Recorded sweeps of a pair on the ridge, and of the others, before the first judgement; sweeps of a
# batch, at least, and in memories of the chain.
_RIDGE_SWEEPS, _OTHER_SWEEPS = 384, 128
_MIN_BATCH_SWEEPS, _MEMORIES_PER_BATCH = 12, 6.0
_FEWEST_BATCHES = 8
# First runs of the pairs of one anchor take about a third of its part of all sweeps.
_FIRST_SHARE = 30
# Pairs stand this far apart in beta at most, in posterior standard deviations, and where posterior
# mass is within this depth.
_SPACING, _DEPTH = 2.0, 4.5
# Shares of k, relative to the largest, below which no further work is done for it.
_MATTERS = 1e-3
# Lever, relative to the longest, from which on a k moves the mean.
_COUNTS = 0.02
# Chains stop when their errors look small, which is more often than not when they look too small.
_STOPPING = 1.05
# Growth of the records from one round to the next.
_GROWTH = (0.25, 1.0)
_MAX_ROUNDS, _MAX_TURNS = 12, 10


@dataclass
class Anchor:
    """Pairs of chains at one k, in one phase of the labels.

    Attributes
    ----------
    pilot : Pilot
        Of the race.
    top : float
        Where the ridge is.
    columns, whole : ndarray of int
        The k that it speaks for, and those of itself and of the anchors beside it.
    centre : ChainPair
        The one of its pairs that is on the ridge.
    pairs : list of ChainPair
        In increasing beta.
    between : list of ChainPair
        Those on the way from the anchor before.
    """

    pilot: Pilot
    top: float
    columns: np.ndarray
    whole: np.ndarray
    centre: ChainPair
    pairs: list[ChainPair]
    between: list[ChainPair] = field(default_factory=list)

    @property
    def k(self) -> int:
        """The anchor's own k."""
        return self.pilot.pair.k

    @property
    def sd(self) -> float:
        """Posterior standard deviation of beta at this k if the prior is flat."""
        return float(self.k / np.sqrt(max(self.centre.variance(self.k), 1e-12)))


class Estimate(NamedTuple):
    """The posterior of k as far as the records tell.

    Attributes
    ----------
    profiles : list of Profile
        log Z of each k.
    score : ndarray of shape (n_replicates, n_k)
        The log posterior of each k, up to a constant.
    heights : ndarray of shape (n_phases, n_replicates, n_anchors)
        log Z of each phase at the centres, up to a common constant.
    doubt : ndarray of shape (n_anchors,)
        What bridges leave to doubt on the way from the first anchor to each.
    steps : list of list of Step
        The bridges of each phase.
    """

    profiles: list[Profile]
    score: np.ndarray
    heights: np.ndarray
    doubt: np.ndarray
    steps: list[list[Step]]

    def behind(self, shares: np.ndarray, n_errors: int = 0) -> np.ndarray:
        """Return how far each k is behind the best, at least."""
        return find_behind(self.score, self.doubt @ shares, n_errors)


class Ridge(NamedTuple):
    """log Z around the ridge for the values of k that matter.

    Attributes
    ----------
    profiles : list of Profile
        log Z(beta, k) for each of them, less the average of log Z at the anchors it came from.
    offsets : ndarray of shape (n_replicates, n_k)
        That average, up to a common constant; row 0 is the estimate.
    excess : float
        The largest of the errors of log posterior and mean of k, as a multiple of what is allowed.
    reference : ChainPair
        One on the ridge, near the best k.
    reference_height : ndarray of shape (n_replicates,)
        log Z there, up to the same constant.
    is_divided : bool
        There are two phases; then the constant is 0: log Z itself is known.
    """

    profiles: list[Profile]
    offsets: np.ndarray
    excess: float
    reference: ChainPair
    reference_height: np.ndarray
    is_divided: bool = False


class Anchors:
    """Measures log Z at the anchors and between them.

    Parameters
    ----------
    simulation : Simulation
    target : LogPosterior
    looks : list of Look
        One for each anchor, in increasing k.
    max_sweeps : float
        About how many sweeps may be made in all.
    division : Division, optional
        The two phases, if there are two.
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
        self.division = division
        self.own = np.array([look.k for look in looks])
        self.ks = target.ks[(target.ks >= self.own[0]) & (target.ks <= self.own[-1])]
        self.shares = _share(self.own, self.ks)
        # The anchors of every phase.
        self.rows: list[list[Anchor]] = [[] for _ in looks[0].pilots]
        for at, look in enumerate(looks):
            beside = self.own[max(at - 1, 0) : at + 2]
            columns = np.union1d(self.ks[self.shares[at] > 0], beside)
            for row, pilot in zip(self.rows, look.pilots, strict=True):
                pair = pilot.pair
                row.append(Anchor(pilot, look.top, columns, beside, pair, [pair]))
        self._n_made = 0
        # What was computed from which numbers of records.
        self._known: dict[tuple, tuple] = {}

    def measure(self, tolerance: float) -> Ridge:
        """Add pairs and records for every k that matters until the posterior is precise."""
        state = self._weigh()
        near = state.behind(self.shares, 4) < BEHIND
        self._settle(self._serving(state.behind(self.shares, 3) < -np.log(_MATTERS)))
        # Those at the ends are dropped.
        first, last = np.flatnonzero(near)[[0, -1]]
        self.ks, self.shares = self.ks[first : last + 1], self.shares[:, first : last + 1]
        turns = rounds = 0
        while True:
            state = self._weigh()
            turns += 1
            serving = self._serving(state.behind(self.shares) < -np.log(_MATTERS))
            if turns < _MAX_TURNS and self._grow(serving, state):
                continue
            excess, imprecise = judge(self.ks, state.score, tolerance)
            is_over = rounds == _MAX_ROUNDS or self.simulation.n_sweeps > self.max_sweeps
            if is_over or excess <= 1.0:
                break
            serving = self._serving(imprecise)
            # From the best k to any other leads a chain of bridges, and all of it must be precise.
            ends = [*serving, *self._serving([int(np.argmax(state.score[0]))])]
            way = range(min(ends), max(ends) + 1)
            pairs = []
            for row in self.rows:
                pairs += [pair for at in serving for pair in row[at].pairs]
                pairs += [row[at].centre for at in way if at not in serving]
                pairs += [pair for at in way[1:] for pair in row[at].between]
            growth = float(np.clip(excess**2 - 1.0, *_GROWTH))
            self.simulation.advance((pair, int(np.ceil(growth * pair.n_records))) for pair in pairs)
            rounds += 1
        heights = state.heights[0]
        at = int(np.argmax(self.shares[:, np.argmax(state.score[0])]))
        return Ridge(
            state.profiles, heights @ self.shares, excess, self.rows[0][at].centre, heights[:, at],
            self.division is not None,
        )  # fmt: skip

    def _serving(self, which: np.ndarray | list[int]) -> list[int]:
        """Return the places of the anchors that speak for these k."""
        return np.flatnonzero((self.shares[:, which] > 0).any(axis=1)).tolist()

    def _remember(self, key: tuple, pairs: list[ChainPair], compute: Callable[[], Any]) -> Any:
        """Compute something, unless it is known from the same records."""
        made_of = [(id(pair), pair.n_sweeps) for pair in pairs]
        if key not in self._known or self._known[key][0] != made_of:
            self._known[key] = made_of, compute()
        return self._known[key][1]

    def _weigh(self) -> Estimate:
        """Weigh the posterior at each k with what the records say now."""
        curves, steps = [], []
        for phase, row in enumerate(self.rows):
            curves.append([
                self._remember((phase, "curve", at), anchor.pairs, partial(_curve, anchor))
                for at, anchor in enumerate(row)
            ])  # fmt: skip
            path = []
            for at, (before, after) in enumerate(pairwise(row)):
                pairs = [before.centre, *after.between, after.centre]
                path.append(
                    self._remember((phase, "step", at), pairs, partial(bridge_along, pairs))
                )
            steps.append(path)
        heights = np.array([add_up(path) for path in steps])
        if self.division is not None:
            at = int(np.searchsorted(self.own, self.division.pairs[0].k))
            heights = self.division.tie(self.own, [row[at].centre for row in self.rows], heights)
        found = []
        for at, k in enumerate(self.ks.tolist()):
            serving = self._serving([at])
            # With two phases a profile depends on how high they stand, too.
            pairs = [pair for place in serving for pair in self.rows[0][place].pairs]
            if self.division is not None:
                pairs = [pair for row in self.rows for anchor in row for pair in anchor.pairs]
            rises = tuple((heights - heights[0]) @ self.shares[:, at])
            found.append(
                self._remember(
                    ("k", k), pairs,
                    partial(self._profile, at, k, serving, curves, rises),
                )
            )  # fmt: skip
        profiles, masses = (list(part) for part in zip(*found, strict=True))
        doubt = add_up_doubt(steps)
        score = np.column_stack(masses) - heights[0] @ self.shares
        return Estimate(profiles, score, heights, doubt, steps)

    def _profile(
        self,
        at: int,
        k: int,
        serving: list[int],
        curves: list[list[Curve]],
        rises: tuple[np.ndarray, ...],
    ) -> tuple[Profile, np.ndarray]:
        shares = tuple(self.shares[serving, at].tolist())
        phases = []
        for row, of_row in zip(self.rows, curves, strict=True):
            columns = [(p, int(np.searchsorted(row[p].columns, k))) for p in serving]
            phases.append(tuple(of_row[p].select((slice(None), c)) for p, c in columns))
        centre = sum(
            share * self.rows[0][p].centre.beta for p, share in zip(serving, shares, strict=True)
        )
        sd = min(self.rows[0][p].sd for p in serving)
        profile = Profile(k, tuple(phases), shares, rises, centre, sd)
        return profile, profile.log_total(self.target, profile.find_panels(self.target))

    def _plan(self, memory: float, thin: int, sweeps: int) -> tuple[dict, int]:
        """Return how to record chains of this memory, and how many records to begin with.

        No more than a share of the sweeps that may be made in all, even if batches are then
        shorter than they should be.
        """
        length = max(_MIN_BATCH_SWEEPS, _MEMORIES_PER_BATCH * memory)
        n_anchors = len(self.rows) * len(self.own)
        most = max(sweeps, self.max_sweeps / (_FIRST_SHARE * n_anchors))
        length = int(np.ceil(min(length, most / _FEWEST_BATCHES) / thin))
        options = {
            "length": length,
            "inflation": _STOPPING * find_inflation(memory, length * thin),
            "n_warmup": int(np.clip(4 * memory, WARMUP, max(WARMUP, most / 4))),
        }
        return options, max(-(-sweeps // thin), _FEWEST_BATCHES * length)

    def _make(
        self, anchor: Anchor, beta: float, initial: np.ndarray | None = None
    ) -> tuple[ChainPair, int]:
        """Make a pair at an anchor's k, and say how many records to begin with."""
        self._n_made += 1
        sweeps = _OTHER_SWEEPS if initial is None else _RIDGE_SWEEPS
        thin = 1 + int(anchor.columns[-1]) // 16
        options, n_records = self._plan(anchor.pilot.memory, thin, sweeps)
        pair = self.simulation.pair(
            Setting.at(beta, anchor.k), anchor.columns, (Purpose.RIDGE, anchor.k, self._n_made),
            whole=anchor.whole, initial=initial, window=anchor.pilot.pair.window, **options,
        )  # fmt: skip
        return pair, n_records

    def _settle(self, places: list[int]) -> None:
        """Put pairs on and beside the ridge of the anchors that may matter; forget the pilots."""
        simulation, work = self.simulation, []
        for anchor in (row[at] for row in self.rows for at in places):
            labels = anchor.pilot.pair.labels
            sd = anchor.sd
            centre = self._make(anchor, anchor.top, labels)
            made = [self._make(anchor, beta) for beta in self._beside(anchor, centre[0].beta, sd)]
            anchor.centre = centre[0]
            anchor.pairs = sorted([centre[0], *(pair for pair, _ in made)], key=_beta)
            work += [centre, *made]
        simulation.advance(work)

    def _beside(self, anchor: Anchor, beta: float, sd: float) -> list[float]:
        limits = self.target.limits[anchor.k]
        step = min(_SPACING * sd, (limits[1] - limits[0]) / 2, MAX_REACH)
        outer = np.clip([beta - step, beta + step], *limits)
        return [float(b) for b in outer if abs(b - beta) > step / 4 + 1e-9]

    def _grow(self, places: list[int], state: Estimate) -> bool:
        """Add the pairs that anchors and the bridges between them still lack, if any."""
        work = []
        for phase, row in enumerate(self.rows):
            for at in places:
                anchor = row[at]
                made = [self._make(anchor, beta) for beta in self._find_gaps(phase, at, state)]
                anchor.pairs = sorted([*anchor.pairs, *(pair for pair, _ in made)], key=_beta)
                work += made
            for at in range(places[0] + 1, places[-1] + 1):
                before, after = row[at - 1 : at + 1]
                n_parts = len(after.between) + 1
                wanted = min(n_parts * state.steps[phase][at - 1].n_parts, MAX_PARTS)
                if wanted > n_parts:
                    made = self._make_between(before, after, wanted)
                    after.between = [pair for pair, _ in made]
                    work += made
        self.simulation.advance(work)
        return bool(work)

    def _make_between(
        self, before: Anchor, after: Anchor, n_parts: int
    ) -> list[tuple[ChainPair, int]]:
        ks = [before.k, after.k]
        memory = max(before.pilot.memory, after.pilot.memory)
        options, n_records = self._plan(memory, 1 + ks[-1] // 16, _RIDGE_SWEEPS)
        made = []
        for setting in between(before.centre.setting, after.centre.setting, n_parts):
            self._n_made += 1
            pair = self.simulation.pair(
                setting, ks, (Purpose.RIDGE, after.k, self._n_made), initial=before.centre.labels,
                window=after.pilot.pair.window, **options,
            )  # fmt: skip
            made.append((pair, n_records))
        return made

    def _find_gaps(self, phase: int, at: int, state: Estimate) -> list[float]:
        """Say where pairs are missing, for a posterior that lies within its span.

        They are missing between pairs that do not overlap, and beyond the outer ones where a
        parabola would have to carry posterior mass.
        """
        anchor = self.rows[phase][at]
        limits = self.target.limits[anchor.k]
        if len(anchor.pairs) == 1:
            return self._beside(anchor, anchor.centre.beta, anchor.sd)
        column = int(np.searchsorted(anchor.columns, anchor.k))
        own = [self._known[p, "curve", at][1] for p in range(len(self.rows))]
        own = [curve.select((slice(None), column)) for curve in own]
        rises = tuple((state.heights - state.heights[0])[:, :, at])
        profile = Profile(
            anchor.k, tuple((c,) for c in own), (1.0,), rises, anchor.centre.beta, anchor.sd
        )
        _, low, high = profile.find_range(self.target, profile.find_panels(self.target), _DEPTH)
        betas, slopes = own[phase].betas, np.maximum(own[phase].slopes[0], 1e-12)
        reach = np.minimum(_SPACING / np.sqrt(slopes), MAX_REACH)
        steps = np.diff(betas)
        wide = steps > 1.6 * np.minimum(reach[1:], reach[:-1])
        wide &= (betas[1:] > low) & (betas[:-1] < high)
        gaps = ((betas[1:] + betas[:-1]) / 2)[wide].tolist()
        if betas[0] - low > reach[0]:
            gaps.append(max(betas[0] - 1.5 * reach[0], limits[0]))
        if high - betas[-1] > reach[-1]:
            gaps.append(min(betas[-1] + 1.5 * reach[-1], limits[1]))
        return gaps


def _curve(anchor: Anchor) -> Curve:
    """Return log Z of the anchor's columns less that of its own k at the centre."""
    heights = add_up(bridge_all(anchor.pairs))
    heights = heights - heights[:, [anchor.pairs.index(anchor.centre)]]
    parts = []
    for pair in anchor.pairs:
        at = np.searchsorted(pair.columns, anchor.columns)
        parts.append([part[:, at] for part in pair.reweighted])
    ratios, means, slopes = (np.stack(part, axis=-1) for part in zip(*parts, strict=True))
    betas = np.array([pair.beta for pair in anchor.pairs])
    return Curve(betas, heights[:, None] + ratios, means, slopes)


def judge(ks: np.ndarray, score: np.ndarray, tolerance: float) -> tuple[float, np.ndarray]:
    """Compare the errors with what is allowed, given the log posterior of k in every replicate.

    Returns
    -------
    excess : float
        The largest of the errors of log posterior and mean of k, as a multiple of what is allowed.
    imprecise : ndarray of int
        The places of the k that more work should be done for.
    """
    shares = softmax(score, axis=1)
    share = shares[0]
    # An error common to all k changes nothing, and one on a small share little.
    error = find_error(score - score @ share[:, None]) * np.sqrt(share / share.max())
    means = shares @ ks
    sd = np.sqrt(share @ (ks - means[0]) ** 2)
    of_mean = find_error(means) / (max(sd, 1.0) / 3)
    imprecise = error > tolerance / 2
    if of_mean > tolerance:
        # A long tail moves the mean more than its share tells.
        lever = share * np.abs(ks - means[0])
        imprecise |= lever > _COUNTS * lever.max()
    return float(max(error.max(), of_mean) / tolerance), np.flatnonzero(imprecise)


def _beta(pair: ChainPair) -> float:
    return pair.beta


def _share(own: np.ndarray, ks: np.ndarray) -> np.ndarray:
    """Say how much each anchor counts for each k: of the two beside it, the nearer one more."""
    shares = np.zeros((len(own), len(ks)))
    after = np.minimum(np.searchsorted(own, ks), len(own) - 1)
    before = np.maximum(after - 1, 0)
    distance = np.maximum(own[after] - own[before], 1)
    weight = (own[after] - ks) / distance
    columns = np.arange(len(ks))
    shares[before, columns] += weight
    shares[after, columns] += 1 - weight
    return shares
