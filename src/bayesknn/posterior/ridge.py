"""log Z where the posterior is: along the ridge beta_hat(k) (Section 3.3 done backwards; KERNELS).

Only differences of log Z near the ridge matter to the posterior. Chains stand at some k only, the
anchors, which a race has chosen (:mod:`bayesknn.posterior.race`): one pair on the ridge, from which
log Z is bridged to the next anchor, and others around it in beta. What an anchor's draws say of a
k nearby is exact but for noise (:mod:`bayesknn.log_z.reweighting`); a k between two anchors takes
the average of what both say. On many points k differ more, and every k is an anchor. Chains run
until the posterior is precise; errors come from resampled batches of every pair, carried through
to the end.

Where a first-order transition lies among the k that matter, differences along the ridge mean
nothing, and log Z comes from both ends of every path instead (:mod:`bayesknn.log_z.ladder`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from bayesknn.log_z.bridge import Step, add_up, between, bridge_all
from bayesknn.log_z.chains import WARMUP, ChainPair, Setting
from bayesknn.log_z.curve import Curve
from bayesknn.log_z.ladder import Ladder, log_z_at, place_pilots
from bayesknn.log_z.resampling import N_REPLICATES
from bayesknn.log_z.simulation import Simulation
from bayesknn.posterior.race import BEHIND, MAX_REACH, Look, find_behind
from bayesknn.posterior.ridge_target import Profile, Target
from bayesknn.posterior.support import Limits

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
# Log Z itself is known less well than its differences along the ridge.
_ROUGH = 4.0
# A ladder has some dozens of pairs: it may take a quarter of all sweeps.
_LADDER_SHARE = 4
_MAX_ROUNDS, _MAX_TURNS, _MAX_PARTS = 12, 10, 16


@dataclass
class Anchor:
    """Pairs of chains at one k.

    Attributes
    ----------
    look : Look
        Of the race.
    columns, whole : ndarray of int
        The k that it speaks for, and those of itself and of the anchors beside it.
    pairs : list of ChainPair
        In increasing beta.
    centre : ChainPair
        The one of them on the ridge.
    between : list of ChainPair
        Those on the way from the anchor before.
    """

    look: Look
    columns: np.ndarray
    whole: np.ndarray
    centre: ChainPair
    pairs: list[ChainPair]
    between: list[ChainPair] = field(default_factory=list)

    @property
    def k(self) -> int:
        """The anchor's own k."""
        return self.look.pair.k

    @property
    def sd(self) -> float:
        """Posterior standard deviation of beta at this k if the prior is flat."""
        return float(self.k / np.sqrt(max(self.centre.variance(self.k), 1e-12)))


class Ridge(NamedTuple):
    """log Z around the ridge for the values of k that matter.

    Attributes
    ----------
    profiles : list of Profile
        log Z(beta, k) for each of them, less the average of log Z at the anchors it came from.
    spans : list of (float, float)
        Where the posterior of beta lies at each of them.
    offsets : ndarray of shape (n_replicates, n_k)
        That average, up to a common constant; row 0 is the estimate.
    excess : float
        The largest of the errors of log posterior and mean of k, as a multiple of what is allowed.
    reference : ChainPair
        One on the ridge, near the best k.
    reference_height : ndarray of shape (n_replicates,)
        log Z there, up to the same constant.
    is_absolute : bool
        Whether the constant is 0: log Z itself is known.
    """

    profiles: list[Profile]
    spans: list[Limits]
    offsets: np.ndarray
    excess: float
    reference: ChainPair
    reference_height: np.ndarray
    is_absolute: bool = False


def measure(
    simulation: Simulation, target: Target, looks: list[Look], tolerance: float, max_sweeps: float
) -> Ridge:
    """Measure log Z around the ridge, at the k that a race has left."""
    if not any(look.pilot.is_split for look in looks):
        return Anchors(simulation, target, looks, max_sweeps).measure(tolerance)
    return _measure_absolutely(simulation, target, looks, tolerance, max_sweeps)


def _measure_absolutely(simulation, target, looks, tolerance, max_sweeps) -> Ridge:
    """Measure log Z itself: along the ridge where chains cross, and by ladders where they do not.

    Every stretch of the ridge between two transitions is placed by log Z at one of its k.
    """
    own = np.array([look.pair.k for look in looks])
    spent = simulation.n_sweeps
    share = max(max_sweeps - spent, max_sweeps / 3) / len(looks)
    profiles, spans, offsets, references = [], [], [], []
    for is_split, group in groupby(range(len(looks)), lambda at: looks[at].pilot.is_split):
        places = list(group)
        if not is_split:
            here = [looks[at] for at in places]
            most = spent + share * len(places)
            ridge = Anchors(simulation, target, here, most).measure(tolerance)
            pair = ridge.reference
            log_z = log_z_at(simulation, pair, target.beta_max, _ROUGH * tolerance, share)
            profiles += ridge.profiles
            spans += ridge.spans
            offsets += list((ridge.offsets + (log_z - ridge.reference_height)[:, None]).T)
            references.append((pair, log_z))
        for at in places if is_split else []:
            # The ladder speaks for its own k and those up to the next look.
            before = own[at - 1] if at and not looks[at - 1].pilot.is_split else own[at] - 1
            after = own[at + 1] if at + 1 < len(own) else own[at] + 1
            columns = target.ks[(target.ks > before) & (target.ks < after)]
            most = max(share, max_sweeps / _LADDER_SHARE)
            found = _climb(simulation, target, looks[at], columns, _ROUGH * tolerance, most)
            profiles += found
            spans += [profile.find_span(target) for profile in found]
            offsets += [np.zeros(N_REPLICATES)] * len(found)
            at_top = found[int(np.searchsorted(columns, own[at]))].log_z(np.array([looks[at].top]))
            references.append((looks[at].pair, at_top[:, 0]))
        spent = simulation.n_sweeps
    masses = [
        profile.log_total(target, span) for profile, span in zip(profiles, spans, strict=True)
    ]
    score = np.column_stack(masses) - np.column_stack(offsets)
    excess = judge(np.array([profile.k for profile in profiles]), score, tolerance)[0]
    best = profiles[int(np.argmax(score[0]))].k
    pair, log_z = min(references, key=lambda reference: abs(reference[0].k - best))
    return Ridge(profiles, spans, np.column_stack(offsets), excess, pair, log_z, True)


def _climb(simulation, target, look, columns, tolerance, max_sweeps) -> list[Profile]:
    """Return log Z of these k, where one of them is at a transition, from both ends of its path."""
    k, before = look.pair.k, simulation.n_sweeps
    pilots = place_pilots(simulation, k, int(columns[-1]), target.beta_max)
    ladder = Ladder(simulation, pilots, columns, target.beta_max, max_sweeps)
    work = ladder.first_work()
    while work:
        simulation.advance(work)
        curve = ladder.curve()
        profiles = [
            Profile(int(each), (curve.select((slice(None), at)),), (1.0,), look.top, look.error)
            for at, each in enumerate(columns)
        ]
        if simulation.n_sweeps - before > max_sweeps:
            break
        low, high = profiles[int(np.searchsorted(columns, k))].find_span(target)
        work = ladder.plan(
            lambda beta, a=low, b=high: np.where((beta >= a) & (beta <= b), tolerance, np.inf)
        )
    return profiles


class Anchors:
    """Measures log Z at the anchors and between them.

    Parameters
    ----------
    simulation : Simulation
    target : Target
    looks : list of Look
        One for each anchor, in increasing k.
    max_sweeps : float
        About how many sweeps may be made in all.
    """

    def __init__(
        self, simulation: Simulation, target: Target, looks: list[Look], max_sweeps: float
    ):
        self.simulation, self.target, self.max_sweeps = simulation, target, max_sweeps
        own = np.array([look.pair.k for look in looks])
        self.ks = target.ks[(target.ks >= own[0]) & (target.ks <= own[-1])]
        self.shares = _share(own, self.ks)
        self.anchors = []
        for at, look in enumerate(looks):
            beside = own[max(at - 1, 0) : at + 2]
            columns = np.union1d(self.ks[self.shares[at] > 0], beside)
            self.anchors.append(Anchor(look, columns, beside, look.pair, [look.pair]))
        self._n_made = 0
        # What was computed from which numbers of records.
        self._known: dict[tuple, tuple] = {}

    def measure(self, tolerance: float) -> Ridge:
        """Add pairs and records for every k that matters until the posterior is precise."""
        _, _, masses, steps = self._weigh()
        near = self._behind(masses, steps, 4) < BEHIND
        matters = self._behind(masses, steps, 3) < -np.log(_MATTERS)
        self._settle(self._serving(matters))
        # Those at the ends are dropped.
        first, last = np.flatnonzero(near)[[0, -1]]
        self.ks, self.shares = self.ks[first : last + 1], self.shares[:, first : last + 1]
        turns = rounds = 0
        while True:
            profiles, spans, masses, steps = self._weigh()
            score = masses - add_up(steps) @ self.shares
            turns += 1
            matters = self._behind(masses, steps) < -np.log(_MATTERS)
            if turns < _MAX_TURNS and self._grow(self._serving(matters), steps):
                continue
            excess, imprecise = judge(self.ks, score, tolerance)
            is_over = rounds == _MAX_ROUNDS or self.simulation.n_sweeps > self.max_sweeps
            if is_over or excess <= 1.0:
                break
            serving = self._serving(imprecise)
            # From the best k to any other leads a chain of bridges, and all of it must be precise.
            ends = [*serving, *self._serving([int(np.argmax(score[0]))])]
            way = range(min(ends), max(ends) + 1)
            pairs = [pair for at in serving for pair in self.anchors[at].pairs]
            pairs += [self.anchors[at].centre for at in way if at not in serving]
            pairs += [pair for at in way[1:] for pair in self.anchors[at].between]
            growth = float(np.clip(excess**2 - 1.0, *_GROWTH))
            self.simulation.advance((pair, int(np.ceil(growth * pair.n_records))) for pair in pairs)
            rounds += 1
        heights = add_up(steps)
        at = int(np.argmax(self.shares[:, np.argmax(score[0])]))
        return Ridge(
            profiles, spans, heights @ self.shares, excess, self.anchors[at].centre, heights[:, at]
        )

    def _behind(self, masses: np.ndarray, steps: list[Step], n_errors: int = 0) -> np.ndarray:
        """Return how far each k is behind the best, at least."""
        doubt = np.cumsum([0.0] + [step.doubt for step in steps])
        score = masses - add_up(steps) @ self.shares
        return find_behind(score, doubt @ self.shares, n_errors)

    def _serving(self, which) -> list[int]:
        """Return the places of the anchors that speak for these k."""
        return np.flatnonzero((self.shares[:, which] > 0).any(axis=1)).tolist()

    def _remember(self, key: tuple, pairs: list[ChainPair], compute):
        """Compute something, unless it is known from the same records."""
        made_of = [(id(pair), pair.n_sweeps) for pair in pairs]
        if key not in self._known or self._known[key][0] != made_of:
            self._known[key] = made_of, compute()
        return self._known[key][1]

    def _weigh(self):
        """Return profile, span and log posterior of each k but for its offset, and the bridges."""
        curves = [
            self._remember(("curve", at), anchor.pairs, lambda a=anchor: self._curve(a))
            for at, anchor in enumerate(self.anchors)
        ]
        found = []
        for at, k in enumerate(self.ks.tolist()):
            serving = self._serving([at])
            pairs = [pair for place in serving for pair in self.anchors[place].pairs]
            found.append(
                self._remember(
                    ("k", k), pairs, lambda a=at, k=k, s=serving: self._profile(a, k, s, curves)
                )
            )
        profiles, spans, masses = (list(part) for part in zip(*found, strict=True))
        steps = []
        for at, (before, after) in enumerate(pairwise(self.anchors)):
            path = [before.centre, *after.between, after.centre]
            steps.append(self._remember(("step", at), path, lambda p=path: _bridge_along(p)))
        return profiles, spans, np.column_stack(masses), steps

    def _curve(self, anchor: Anchor) -> Curve:
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

    def _profile(self, at: int, k: int, serving: list[int], curves: list[Curve]):
        shares = tuple(self.shares[serving, at].tolist())
        chosen, centre, sd = [], 0.0, np.inf
        for place, share in zip(serving, shares, strict=True):
            anchor = self.anchors[place]
            chosen.append(
                curves[place].select((slice(None), int(np.searchsorted(anchor.columns, k))))
            )
            centre, sd = centre + share * anchor.centre.beta, min(sd, anchor.sd)
        profile = Profile(k, tuple(chosen), shares, centre, sd)
        span = profile.find_span(self.target)
        return profile, span, profile.log_total(self.target, span)

    def _plan(self, memory: float, thin: int, sweeps: int) -> tuple[dict, int]:
        """Return how to record chains of this memory, and how many records to begin with.

        No more than a share of the sweeps that may be made in all, even if batches are then
        shorter than they should be.
        """
        length = max(_MIN_BATCH_SWEEPS, _MEMORIES_PER_BATCH * memory)
        most = max(sweeps, self.max_sweeps / (_FIRST_SHARE * len(self.anchors)))
        length = int(np.ceil(min(length, most / _FEWEST_BATCHES) / thin))
        options = {
            "length": length,
            "inflation": _STOPPING * float(np.sqrt(max(1.0, memory / (length * thin)))),
            "n_warmup": int(np.clip(4 * memory, WARMUP, max(WARMUP, most / 4))),
        }
        return options, max(-(-sweeps // thin), _FEWEST_BATCHES * length)

    def _make(self, anchor: Anchor, beta: float, initial=None) -> tuple[ChainPair, int]:
        """Make a pair at an anchor's k, and say how many records to begin with."""
        self._n_made += 1
        options, n_records = self._plan(
            anchor.look.pilot.memory, 1 + int(anchor.columns[-1]) // 16,
            _OTHER_SWEEPS if initial is None else _RIDGE_SWEEPS,
        )  # fmt: skip
        pair = self.simulation.pair(
            Setting.at(beta, anchor.k), anchor.columns, (5000, anchor.k, self._n_made),
            whole=anchor.whole, initial=initial, **options,
        )  # fmt: skip
        return pair, n_records

    def _settle(self, places: list[int]) -> None:
        """Put pairs on and beside the ridge of the anchors that may matter; forget the pilots."""
        simulation, work = self.simulation, []
        simulation.lay_out(max(int(anchor.columns[-1]) for anchor in self.anchors))
        for at in places:
            anchor = self.anchors[at]
            labels = anchor.look.pair.labels[:, simulation.layout.order]
            sd = anchor.sd
            centre = self._make(anchor, anchor.look.top, labels)
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

    def _grow(self, places: list[int], steps: list[Step]) -> bool:
        """Add the pairs that anchors and the bridges between them still lack, if any."""
        work = []
        for at in places:
            anchor = self.anchors[at]
            made = [self._make(anchor, beta) for beta in self._find_gaps(at)]
            anchor.pairs = sorted([*anchor.pairs, *(pair for pair, _ in made)], key=_beta)
            work += made
        for at in range(places[0] + 1, places[-1] + 1):
            before, after = self.anchors[at - 1 : at + 1]
            n_parts = len(after.between) + 1
            wanted = min(n_parts * steps[at - 1].n_parts, _MAX_PARTS)
            if wanted > n_parts:
                made = self._make_between(before, after, wanted)
                after.between = [pair for pair, _ in made]
                work += made
        self.simulation.advance(work)
        return bool(work)

    def _make_between(self, before: Anchor, after: Anchor, n_parts: int):
        ks = [before.k, after.k]
        memory = max(before.look.pilot.memory, after.look.pilot.memory)
        options, n_records = self._plan(memory, 1 + ks[-1] // 16, _RIDGE_SWEEPS)
        made = []
        for setting in between(before.centre.setting, after.centre.setting, n_parts):
            self._n_made += 1
            pair = self.simulation.pair(
                setting, ks, (5000, after.k, self._n_made), initial=before.centre.labels, **options
            )
            made.append((pair, n_records))
        return made

    def _find_gaps(self, at: int) -> list[float]:
        """Say where pairs are missing, for a posterior that lies within its span.

        They are missing between pairs that do not overlap, and beyond the outer ones where a
        parabola would have to carry posterior mass.
        """
        anchor = self.anchors[at]
        limits = self.target.limits[anchor.k]
        if len(anchor.pairs) == 1:
            return self._beside(anchor, anchor.centre.beta, anchor.sd)
        curve = self._known["curve", at][1]
        own = curve.select((slice(None), int(np.searchsorted(anchor.columns, anchor.k))))
        profile = Profile(anchor.k, (own,), (1.0,), anchor.centre.beta, anchor.sd)
        low, high = profile.find_span(self.target, _DEPTH)
        betas, slopes = own.betas, np.maximum(own.slopes[0], 1e-12)
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
    error = (score - score @ share[:, None]).std(axis=0) * np.sqrt(share / share.max())
    means = shares @ ks
    sd = np.sqrt(share @ (ks - means[0]) ** 2)
    of_mean = means.std() / (max(sd, 1.0) / 3)
    imprecise = error > tolerance / 2
    if of_mean > tolerance:
        # A long tail moves the mean more than its share tells.
        lever = share * np.abs(ks - means[0])
        imprecise |= lever > _COUNTS * lever.max()
    return float(max(error.max(), of_mean) / tolerance), np.flatnonzero(imprecise)


def _bridge_along(path: list[ChainPair]) -> Step:
    """Bridge from the first to the last of these pairs, by way of those between."""
    steps = bridge_all(path)
    return Step(
        np.sum([step.value for step in steps], axis=0),
        min(step.overlap for step in steps),
        max(step.doubt for step in steps),
        max(step.variance for step in steps),
    )


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
