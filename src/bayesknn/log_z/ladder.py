"""log Z at one k for every beta, from both ends (Section 3.3, path sampling).

``log Z(0) = n log G``, and at the far end log Z is known again. Pairs of chains stand between, near
enough to each other that log Z can be bridged. What the bridges miss at the far end is the closure
error, and is spread over them in proportion to their variances: that is least squares. At one beta
alone E[S] / k, the slope of log Z, is integrated from 0, and no far end is needed.

At the far end most components of the graph have one class. Call a labelling plain if every
connected component of the graph of k has. The plain labellings weigh
``W(beta) = prod over components c of sum over g of exp(beta a_g n_c)`` together, so
``log Z = log W - log P(plain)`` at every beta, with no limit taken. Given the clusters of a
Swendsen-Wang sweep the colours are independent, and the probability that the labelling is plain is
known: ``G ** (components - clusters)`` without class weights. Its average is an estimate of
P(plain) that is precise once there are only a few clusters too many. The path can therefore stop
there: no tail is cut off.

At a first-order transition chains do not cross between disordered and ordered labels in any
reasonable time. There the labels are divided by their agreement with the nearest neighbours, and
``Z = Z_disordered + Z_ordered``: each part is a law of its own, within which chains mix fast, the
first is bridged to beta = 0 and the second to the far end, so that nothing has to cross.

Where pairs stand, how far apart their records are and how much each is trusted is decided by
pilots, which are then forgotten: decisions made on the records from which log Z is computed would
bias it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator
from scipy.special import logsumexp

from bayesknn._utils.random import Purpose
from bayesknn.graph import find_components
from bayesknn.labels.mixing import autocorrelation_time
from bayesknn.log_z.bridge import ENOUGH, add_up, bridge
from bayesknn.log_z.chains import N_CHAINS, ChainPair, Setting, Window, find_inflation
from bayesknn.log_z.curve import Coexistence, Curve
from bayesknn.log_z.resampling import N_REPLICATES, find_error, join
from bayesknn.log_z.simulation import Pilot, Simulation
from bayesknn.model import BoltzmannModel

# Pilots stand on a lattice of which so many places reach beta_max, finer than any will be needed;
# each k starts with so few, and has so many at most: time against steps that do not overlap.
_COARSE = 8
TOP = _COARSE * 2**9
_MAX_PILOTS = 200
# How noisy a record of P(plain) may be, as log(1 + relative variance): more is a shorter path with
# a noisier end.
_MAX_LOG_SPREAD = 0.7
# Phases are told apart by the agreement with so many nearest neighbours: fewer tell them apart
# less well, more are slow to count after every sweep.
_WINDOW_RANK = 16
# Phases are divided halfway between these quantiles of S of the pilots there: further out they are
# noisier, further in they may lie in one phase.
_PHASES = (0.02, 0.98)
# A phase whose share of Z is exp(-14) is nothing; pairs within one stand two deviations apart: more
# of both is fewer pairs that overlap less.
_DEPTH, _SPACING = 14.0, 2.0
# Sweeps of a batch, in memories and at least, and batches of each chain in a first run: short
# batches show too little error, few of them show it badly.
_MEMORIES_PER_BATCH, _MIN_BATCH_SWEEPS, _FIRST_BATCHES = 10.0, 24, 12
# Sweeps from one record to the next, at most: so that a first run of slow chains has an end.
_MAX_THIN = 256
# By how much a count of records grows at once, and how many there may be: more at once rests on
# noise that is not known well yet, less takes more rounds.
_MAX_GROWTH, _MAX_RECORDS = 8.0, 200_000
# The path from beta = 0 to a given pair: its first steps, and sweeps of each chain at least.
# Shorter steps cost sweeps, longer ones may pass over a bend.
_FIRST_STEP, _PATH_SWEEPS = 0.25, 64
# Share of the allowed error that the step from a ladder to the k between may take: longer runs of
# some pairs against fewer of the others.
_LINK_SHARE = 0.6


class Rung(NamedTuple):
    """A pair of chains of a ladder, and what the pilot there told.

    Attributes
    ----------
    pair : ChainPair
    noise : float
        The variance of the mean of S_k / k times the number of sweeps.
    """

    pair: ChainPair
    noise: float


class Ladder:
    """Pairs of chains at one k that carry log Z from beta = 0 to the far end.

    Parameters
    ----------
    simulation : Simulation
    pilots : dict of int to Pilot
        By place on the lattice, from :func:`place_pilots`.
    columns : sequence of int
        The k of which it is to tell log Z, its own among them.
    beta_max : float
    max_sweeps : float
        About how many sweeps the first run may make in all.
    divide : bool
        Divide the labels in two where chains are slow too, not only where they stay apart.
    """

    def __init__(
        self,
        simulation: Simulation,
        pilots: dict[int, Pilot],
        columns: Sequence[int] | np.ndarray,
        beta_max: float,
        max_sweeps: float = np.inf,
        divide: bool = False,
    ):
        self.simulation, self.beta_max = simulation, beta_max
        most = max(max_sweeps / (4 * len(pilots)), _PATH_SWEEPS)
        self.columns = np.asarray(columns)
        self.k = pilots[0].pair.k
        # The even grid that holds every pilot.
        self.n_steps = TOP // int(np.gcd.reduce([TOP, *pilots]))
        apart = [p for p in pilots.values() if p.is_split or (divide and p.is_slow)]
        self.has_transition = bool(apart)
        every = [_settle(simulation, pilot, self.columns, most=most) for pilot in pilots.values()]
        if self.has_transition:
            betas = [pilot.pair.beta for pilot in pilots.values()]
            self.branches = _divide(simulation, betas, apart, every, self.columns, most)
        else:
            self.branches = [every]
        self._steps: dict[int, tuple] = {}

    @property
    def rungs(self) -> list[Rung]:
        """Those of all branches."""
        return [rung for branch in self.branches for rung in branch]

    def _bridge(self, branch: list[Rung]) -> np.ndarray:
        steps = []
        for before, after in pairwise(branch):
            made_of = (before.pair.n_sweeps, after.pair.n_sweeps)
            key = id(after.pair)
            if key not in self._steps or self._steps[key][0] != made_of:
                self._steps[key] = made_of, bridge(before.pair, after.pair)
            steps.append(self._steps[key][1])
        return add_up(steps)

    def _heights(self) -> list[np.ndarray]:
        """Return log Z at every rung of every branch, in every replicate."""
        model = self.simulation.model
        start = model.n_points * np.log(model.n_classes)
        rises = [self._bridge(branch) for branch in self.branches]
        missing = self._find_missing(rises[-1])
        if self.has_transition:
            return [start + rises[0], start + missing[:, None] + rises[1]]
        variances = np.append(self._variances(self.branches[0]), self._end_variance())
        shares = (np.cumsum(variances) - variances / 2)[:-1] / variances.sum()
        shares[0] = 0.0
        return [start + rises[0] + np.outer(missing, shares)]

    def _variances(self, branch: list[Rung]) -> np.ndarray:
        """Return about what each rung adds to the variance of log Z along its branch."""
        betas = np.array([rung.pair.beta for rung in branch])
        reach = np.append(betas[1:], betas[-1]) - np.append(betas[0], betas[:-1])
        noise = [rung.noise / (rung.pair.n_records * rung.pair.thin) for rung in branch]
        # The cluster estimator is exact at beta = 0.
        return (reach / 2) ** 2 * np.array(noise) / 2

    def _end_variance(self) -> float:
        pair = self.branches[-1][-1].pair
        return float(np.expm1(clusters_too_many(pair)) + 1e-3) / pair.n_records

    def closure(self) -> float:
        """Return what the bridges miss at the far end in standard errors; NaN at a transition."""
        if self.has_transition:
            return float("nan")
        missing = self._find_missing(self._bridge(self.branches[0]))
        return float(missing[0] / max(find_error(missing), 1e-12))

    def _find_missing(self, rises: np.ndarray) -> np.ndarray:
        """Return what the last branch misses at the far end if it begins at log Z(0)."""
        model = self.simulation.model
        end = log_z_from_plain(self.branches[-1][-1].pair)
        return end - rises[:, -1] - model.n_points * np.log(model.n_classes)

    def curve(self) -> Curve | Coexistence:
        """Return log Z of every column, of leading shape (n_replicates, n_columns)."""
        curves = []
        for branch, heights in zip(self.branches, self._heights(), strict=True):
            found = [rung.pair.reweighted for rung in branch]
            ratios, means, slopes = (np.stack(part, axis=-1) for part in zip(*found, strict=True))
            at = np.searchsorted(branch[0].pair.columns, self.columns)
            ratios, means, slopes = ratios[:, at], means[:, at], slopes[:, at]
            betas = np.array([rung.pair.beta for rung in branch])
            values = heights[:, None] + ratios
            if betas[0] == 0.0:
                values[:, :, 0] = heights[0, 0]
            curves.append(Curve(betas, values, means, slopes))
        return Coexistence(*curves) if self.has_transition else curves[0]

    def first_work(self) -> list[tuple[ChainPair, int]]:
        """Return how many records each pair begins with."""
        return [(rung.pair, _FIRST_BATCHES * rung.pair.length) for rung in self.rungs]

    def plan(self, allowed: Callable[[np.ndarray], np.ndarray]) -> list[tuple[ChainPair, int]]:
        """Plan what brings the errors down to what is allowed.

        Parameters
        ----------
        allowed : callable
            ``allowed(beta)``: the error allowed at these beta; infinite where it does not matter.

        Returns
        -------
        list of (ChainPair, int)
            Which pair is to have how many more records; empty if all is well.
        """
        work = []
        curve = self.curve()
        for branch in self.branches:
            betas = np.array([rung.pair.beta for rung in branch])
            limits, between = allowed(betas), allowed((betas[1:] + betas[:-1]) / 2)
            limits[1:] = np.minimum(limits[1:], between)
            limits[:-1] = np.minimum(limits[:-1], between)
            matters = np.flatnonzero(np.isfinite(limits))
            if len(matters) == 0:
                continue
            own = curve.select((slice(None), int(np.searchsorted(self.columns, self.k))))
            excess = float(np.max(find_error(own(betas)) / limits)) ** 2
            counts = np.array([float(rung.pair.n_records) for rung in branch])
            wanted = counts.copy()
            if excess > 1.0:
                wanted = self._share_out(branch, counts, excess, matters)
            for at, rung in enumerate(branch):
                ratios = find_error(rung.pair.reweighted.log_ratio) ** 2
                columns = np.searchsorted(rung.pair.columns, self.columns)
                link = counts[at] * ratios[columns].max() / (_LINK_SHARE * limits[at]) ** 2
                most = min(max(wanted[at], link), _MAX_GROWTH * counts[at], _MAX_RECORDS)
                if most > 1.02 * counts[at]:
                    work.append((rung.pair, int(np.ceil(most - counts[at]))))
        return work

    def _share_out(
        self, branch: list[Rung], counts: np.ndarray, excess: float, matters: np.ndarray
    ) -> np.ndarray:
        """Return the records by which the variance falls by ``excess`` at the least cost.

        They are proportional to the noise of a record divided by the square root of what it costs.
        """
        noise = self._variances(branch) * counts
        if branch is self.branches[-1]:
            noise[-1] += self._end_variance() * counts[-1]
        # From either end, but from one only where that is as good.
        index = np.arange(len(branch))
        sides = [index <= matters[-1], index >= matters[0]]
        if self.has_transition:
            used = sides[0] if branch is self.branches[0] else sides[1]
        else:
            efforts = [np.sqrt(noise[side]).sum() for side in sides]
            used = sides[int(np.argmin(efforts))]
            if min(efforts) > np.sqrt(noise).sum() / 2:
                used = np.ones(len(branch), bool)
        cost = np.array([rung.pair.columns[-1] / 16 + rung.pair.thin for rung in branch])
        shape = np.sqrt(noise / cost) * used
        goal = (noise / counts)[used].sum() / excess
        low, high = 0.0, 4 * _MAX_GROWTH * float(np.max(counts[used] / shape[used]))
        for _ in range(40):
            middle = (low + high) / 2
            left = (noise / np.maximum(counts, middle * shape))[used].sum()
            low, high = (middle, high) if left > goal else (low, middle)
        return np.maximum(counts, high * shape)


def place_pilots(simulation: Simulation, k: int, k_last: int, beta_max: float) -> dict[int, Pilot]:
    """Run pilots at k: an even grid, what lies beyond beta_max, then halves of what is too long.

    Pilots look at k and at those up to ``k_last``.
    """
    components = find_components(simulation.model.graph.neighbors[:k])
    rank = min(k, _WINDOW_RANK)
    columns = np.unique([rank, *range(k, k_last + 1)])

    def run(place: int) -> tuple[int, Pilot]:
        setting = Setting.at(place * beta_max / TOP, k)
        pilot = simulation.pilot(
            setting, columns, (k, place), whole=columns,
            components=components if place >= TOP else None,
        )  # fmt: skip
        return place, pilot

    step = TOP // _COARSE
    pilots = dict(simulation.each(run, range(0, TOP + 1, step)))
    n_beyond = 0
    while clusters_too_many(pilots[max(pilots)].pair) > _MAX_LOG_SPREAD:
        pilots |= [run(max(pilots) + step)]
        n_beyond += 1
        step *= 1 + (n_beyond % 2 == 0)
    good: set[tuple[int, int]] = set()
    while len(pilots) < _MAX_PILOTS:
        pilots = dict(sorted(pilots.items()))
        halves = []
        for before, after in pairwise(pilots):
            if (before, after) in good or after - before < 2:
                continue
            here, there = pilots[before], pilots[after]
            if (
                here.is_split
                or there.is_split
                or bridge(here.pair, there.pair).overlap > 2 * ENOUGH
            ):
                good.add((before, after))
            else:
                halves.append((before + after) // 2)
        if not halves:
            break
        pilots |= dict(simulation.each(run, halves))
    return pilots


def _settle(
    simulation: Simulation,
    pilot: Pilot,
    columns: np.ndarray,
    beta: float | None = None,
    window: Window | None = None,
    most: float = np.inf,
) -> Rung:
    """Make the pair that is recorded where a pilot stood, or at another beta from there on.

    Its batches are long beside the memory, but for a bound on its first sweeps.
    """
    pair = pilot.pair
    thin = int(np.clip(pilot.memory / 2, 1 + columns[-1] // 16, _MAX_THIN))
    sweeps = max(_MIN_BATCH_SWEEPS, _MEMORIES_PER_BATCH * pilot.memory)
    sweeps = min(sweeps, most / _FIRST_BATCHES)
    inflation = find_inflation(pilot.memory, sweeps)
    setting = pair.setting if beta is None else Setting.at(beta, pair.k)
    name = _name(setting.beta)
    labels = pair.labels if window is None else None
    settled = simulation.pair(
        setting, columns, (pair.k, name, 1 if window is None else 2 + int(window.low > 0)),
        initial=labels, thin=thin, length=int(np.ceil(sweeps / thin)), inflation=inflation,
        window=window, components=pair.components if pair.components.size else None,
    )  # fmt: skip
    return Rung(settled, pilot.noise)


def _divide(
    simulation: Simulation,
    betas: list[float],
    split: list[Pilot],
    every: list[Rung],
    columns: np.ndarray,
    most: float,
) -> list[list[Rung]]:
    """Divide the labels in two where pilots are split: the rungs of disordered and ordered ones."""
    k, rank = split[0].pair.k, int(split[0].pair.whole[0])
    order = np.concatenate([pilot.pair.series(rank).ravel() for pilot in split])
    middle = float(np.mean(np.quantile(order, _PHASES)))
    windows = [Window(rank, -np.inf, middle), Window(rank, middle, np.inf)]
    slope = np.concatenate([pilot.pair.series(k).ravel() / k for pilot in split])
    parts = [slope[order < middle], slope[order >= middle]]
    gap = abs(parts[1].mean() - parts[0].mean())
    low = split[0].pair.beta - _DEPTH / gap
    high = split[-1].pair.beta + _DEPTH / gap
    first = max((b for b in betas if b <= low), default=0.0)
    last = min((b for b in betas if b >= high), default=betas[-1])
    branches = []
    for at, (window, part) in enumerate(zip(windows, parts, strict=True)):
        n_steps = max(int(np.ceil((last - first) * part.std() / _SPACING)), 4)
        inner = np.linspace(first, last, n_steps + 1)
        memory = max(_memory_within(pilot, window) for pilot in split)
        source = split[0]._replace(memory=memory)
        made = simulation.each(
            lambda beta, s=source, w=window: _settle(simulation, s, columns, beta, w, most),
            inner[1:] if at == 0 else inner[:-1],
        )
        rest = [
            rung for rung in every
            if (rung.pair.beta <= first if at == 0 else rung.pair.beta >= last)
        ]  # fmt: skip
        branches.append(rest + made if at == 0 else made + rest)
    return branches


def _memory_within(pilot: Pilot, window: Window) -> float:
    """Return the memory of a chain that stays in a window, from the part of a pilot inside it."""
    pair, times = pilot.pair, [1.0]
    for order, series in zip(pair.series(window.rank), pair.series(pair.k), strict=True):
        inside = series[(order >= window.low) & (order < window.high)]
        if len(inside) >= 50:
            times.append(autocorrelation_time(inside))
    return pair.thin * float(np.nanmax(times))


def log_z_from_zero(
    simulation: Simulation,
    last: ChainPair,
    tolerance: float,
    max_sweeps: float,
    key: tuple[int, ...],
    may_be_slow: bool = True,
) -> np.ndarray | None:
    """Return log Z at a pair of chains by integration from beta = 0, in every replicate.

    With as many pairs between as the bends of E[S] need, which run until the error meets the
    tolerance or ``max_sweeps`` are made; what the integral leaves to doubt is part of the error.
    None if a first-order transition lies on the way, or chains that may be at one: they cross so
    rarely that their means are off by more than their errors say.
    """
    model, k = simulation.model, last.k
    # Two classes without weights have a continuous transition: slow chains cross all the same.
    may_be_slow |= model.n_classes == 2 and model.class_weight is None
    start = model.n_points * np.log(model.n_classes)
    if last.beta == 0.0:
        return np.full(N_REPLICATES, start)

    def run(beta: float) -> Pilot:
        return simulation.pilot(Setting.at(beta, k), [k], (*key, k, _name(beta)), length=4)

    before = simulation.n_sweeps
    n_steps = max(2, int(np.ceil(last.beta / _FIRST_STEP)))
    path = simulation.each(run, np.linspace(0.0, last.beta, n_steps + 1)[:-1])
    while True:
        if any(pilot.is_split or (pilot.is_slow and not may_be_slow) for pilot in path):
            return None
        pairs = [*(pilot.pair for pilot in path), last]
        total, doubts = _integrate(pairs)
        is_smooth = doubts.sum() < max(tolerance, float(find_error(total))) / 2
        if is_smooth or simulation.n_sweeps - before > max_sweeps:
            break
        # The worst first.
        bent = np.flatnonzero(doubts > doubts.max() / 4)
        new = simulation.each(run, [(pairs[at].beta + pairs[at + 1].beta) / 2 for at in bent])
        path = sorted([*path, *new], key=lambda pilot: pilot.pair.beta)
    left = max_sweeps - (simulation.n_sweeps - before)
    if find_error(total) > tolerance / 2 and left > 0:
        most = max(left / (2 * len(path)), _PATH_SWEEPS)
        pairs = [_settle(simulation, pilot, np.array([k]), most=most).pair for pilot in path]
        n_records = [max(int(most / 2 / pair.thin), pair.length) for pair in pairs]
        before = simulation.n_sweeps
        while True:
            simulation.advance(zip(pairs, n_records, strict=True))
            total, doubts = _integrate([*pairs, last])
            excess = (find_error(total) / tolerance) ** 2
            if excess <= 1.0 or 2 * (simulation.n_sweeps - before) > left:
                break
            growth = float(np.clip(excess - 1, 0.25, 1.0))
            n_records = [int(np.ceil(growth * pair.n_records)) for pair in pairs]
    noise = np.random.default_rng([int(last.keys[-1]), 3]).normal(size=N_REPLICATES)
    noise[0] = 0.0
    return start + total + doubts.sum() * noise


def _integrate(pairs: list[ChainPair]) -> tuple[np.ndarray, np.ndarray]:
    """Integrate E[S_k] / k along beta from each pair to the next, by a spline through the means.

    Variances, which are its slopes, are much noisier on many points.

    Returns
    -------
    total : ndarray of shape (n_replicates,)
    doubts : ndarray of shape (n_pairs - 1,)
        By how much a stiffer curve through the same means differs in each interval.
    """
    betas = np.array([pair.beta for pair in pairs])
    means = np.array([pair.resample(pair.cluster_series(pair.k) / pair.k) for pair in pairs])
    smooth = CubicSpline(betas, means).antiderivative()(betas)
    stiff = PchipInterpolator(betas, means[:, 0]).antiderivative()(betas)
    return smooth[-1], np.abs(np.diff(smooth[:, 0]) - np.diff(stiff))


def log_z_at(
    simulation: Simulation, pair: ChainPair, beta_max: float, tolerance: float, max_sweeps: float
) -> np.ndarray:
    """Return log Z at a pair of chains: from beta = 0, or from both ends past a transition.

    Past chains that are slow, too, if there are sweeps for a ladder. It has at most so many rungs
    because the square of the integral of the standard deviation of S / k is at most beta times that
    of the variance, by which E[S] / k grows.
    """
    model, k = simulation.model, pair.k
    growth = pair.mean(k) / k - model.n_points * model.weights.mean() / model.n_classes
    n_rungs = np.sqrt(pair.beta * max(growth, 0.0)) / _SPACING
    found = log_z_from_zero(
        simulation, pair, tolerance, max_sweeps, (Purpose.LOG_Z,),
        may_be_slow=n_rungs * N_CHAINS * _FIRST_BATCHES * _MIN_BATCH_SWEEPS > max_sweeps,
    )  # fmt: skip
    if found is not None:
        return found
    _, curve = climb(
        simulation, k, beta_max, max_sweeps, lambda curve, beta: np.full(beta.shape, tolerance)
    )
    return curve(np.array([pair.beta]))[:, 0]


def climb(
    simulation: Simulation,
    k: int,
    beta_max: float,
    max_sweeps: float,
    allow: Callable[[Curve | Coexistence, np.ndarray], np.ndarray],
) -> tuple[Ladder, Curve | Coexistence]:
    """Run a ladder at one k, divided in two where chains are slow, and return its curve too.

    Until the errors are what ``allow(curve, beta)`` says, or about ``max_sweeps`` are made.
    """
    pilots = place_pilots(simulation, k, k, beta_max)
    before = simulation.n_sweeps
    ladder = Ladder(simulation, pilots, [k], beta_max, max_sweeps, divide=True)
    work = ladder.first_work()
    while work:
        simulation.advance(work)
        curve = ladder.curve().select((slice(None), 0))
        if simulation.n_sweeps - before > max_sweeps:
            break
        work = ladder.plan(partial(allow, curve))
    return ladder, curve


def _name(beta: float) -> int:
    """Return a number that stands for a beta in the keys of random numbers."""
    return round(beta * 2**40)


def log_plain_weight(model: BoltzmannModel, components: np.ndarray, beta: float) -> float:
    """Return log W(beta), the total weight of the plain labellings."""
    sizes = np.bincount(components)
    return float(logsumexp(beta * np.outer(sizes, model.weights), axis=1).sum())


def clusters_too_many(pair: ChainPair) -> float:
    """Return about log(1 + relative variance) of a record of P(plain).

    It comes from the mean number of clusters too many, as if that were Poisson: where a few
    records dominate the others, their own variance does not show it.
    """
    return float(pair.plain[:, :, 1].mean() * (1 - 1 / pair.model.n_classes) ** 2)


def log_z_from_plain(pair: ChainPair) -> np.ndarray:
    """Return log Z at a pair that records P(plain), in every replicate."""
    chance = pair.plain[:, :, 0]
    averages = pair.resample(chance)
    averages += averages[0] * pair.unseen(1)
    weight = log_plain_weight(pair.model, pair.components, pair.beta)
    # The log of a mean is on average too low by half the mean's relative variance.
    batches = join(pair.batch(chance))
    bias = batches.var(ddof=1) / len(batches) / averages[0] ** 2 / 2
    return weight - np.log(np.maximum(averages, averages[0] / 20)) - bias
