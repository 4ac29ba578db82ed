"""Which k can matter to the posterior: a first look at some of them.

For each k the ridge is where E[S_k] equals the observed S_k. Pilots stand near the ridge of a few
k, log Z is bridged from each to the next, and k that are far behind are dropped; more are put
between the others until neighbours are alike.

Where chains are slow there is a first-order transition, or something near to one, and their
bridges mean little. Such a k is given up at once only if a bound without any simulation says so:
log Z is at least that of independent labels with the same class probabilities p at every point,
``n H(p) + beta * n * sum over g of a_g p_g**2`` for any p (Gibbs and Bogoliubov), which on graphs
with many neighbours is all but an equality. If slow k are left, the race is run in two phases: the
labels are divided by their agreement with the nearest neighbours, the same for all k, chains mix
fast within each part, and log Z is bridged from k to k within it. What one part weighs beside the
other comes from both ends of the path in beta at one k (:mod:`bayesknn.log_z.ladder`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator, UnivariateSpline
from scipy.special import entr, logsumexp

from bayesknn._utils.random import Purpose
from bayesknn.log_z.bridge import add_up, add_up_doubt, bridge
from bayesknn.log_z.chains import ChainPair, Setting, Window
from bayesknn.log_z.curve import Curve
from bayesknn.log_z.ladder import Ladder, log_z_from_zero, place_pilots
from bayesknn.log_z.resampling import N_REPLICATES, find_error
from bayesknn.log_z.simulation import Pilot, Simulation
from bayesknn.model.integration import N_PANELS, find_panels, integrate
from bayesknn.posterior.ridge_target import LogPosterior, Profile

# Values of k this far behind in log posterior are dropped.
BEHIND = 12.0
# From one k of the first looks to the next: fewer looks against a best k that hides between two.
_COARSE_RATIO = 1.35
# Variance of D from one anchor to the next up to which reweighting speaks for the k between them.
_MAX_APART = 2.0
# Steps of the search for the ridge: records taken at each.
_SEARCH: tuple[int, ...] = (4, 4, 8)
_MAX_SEARCH, _MAX_STEP, _SETTLE = 16, 0.5, 10
# A pilot further from the ridge than this, in posterior standard deviations and in beta, is made
# anew, so often at most.
_NEAR, _CLOSE, _MAX_TURNS = 2.0, 0.03, 8
# Where labels freeze, E[S] changes over about one unit of beta.
MAX_REACH = 1.0
# Of log Z at the k that the others are compared with, the error that will do, and the sweeps that
# may be made for it.
_ROUGH, _MAX_SWEEPS = 1.0, 4e4
# A ladder has some dozens of pairs: the share of all sweeps that it may take.
_LADDER_SHARE = 1 / 8
# Looks in phases that turn out to be off the ridge are moved, by so much at most and then by half
# of it.
_MAX_MOVE = 0.12


class Look(NamedTuple):
    """A first look at one k.

    Attributes
    ----------
    pilots : tuple of Pilot
        Near the ridge, one for each phase.
    top, error : float
        Where the ridge is, as far as the pilots tell, and how far off that may be.
    """

    pilots: tuple[Pilot, ...]
    top: float
    error: float

    @property
    def pair(self) -> ChainPair:
        """The chains of the first pilot."""
        return self.pilots[0].pair

    @property
    def k(self) -> int:
        """The k that is looked at."""
        return self.pair.k

    @property
    def is_slow(self) -> bool:
        """Whether chains cross too rarely for bridges to mean much."""
        return any(pilot.is_slow for pilot in self.pilots)

    def profile(self, rises: tuple[np.ndarray, ...]) -> Profile:
        """Return log Z around the pilots, less that of the first phase at the first pilot."""
        k, phases = self.k, []
        for pair in (pilot.pair for pilot in self.pilots):
            at = int(np.searchsorted(pair.columns, k))
            _, mean, variance = (part[:, [at]] for part in pair.reweighted)
            phases.append((Curve(np.array([pair.beta]), np.zeros_like(mean), mean, variance),))
        sd = 1 / np.sqrt(max(phases[0][0].slopes[0, 0], 1e-12))
        return Profile(k, tuple(phases), (1.0,), rises, self.pair.beta, float(sd))


class Division(NamedTuple):
    """The labels in two phases, and log Z itself in each at some pairs of chains.

    Attributes
    ----------
    windows : tuple of Window
    pairs : tuple of ChainPair
        One in each phase, all at one k.
    log_z : ndarray of shape (n_phases, n_replicates)
        At the pairs.
    """

    windows: tuple[Window, ...]
    pairs: tuple[ChainPair, ...]
    log_z: np.ndarray

    def tie(self, ks: np.ndarray, pairs: Sequence[ChainPair], heights: np.ndarray) -> np.ndarray:
        """Return log Z at pairs at these k, from what it is up to a constant in each phase.

        ``pairs`` stand in the phases at the k of the division, one of ``ks``.
        """
        at = int(np.searchsorted(ks, self.pairs[0].k))
        links = [
            0.0 if own is other else bridge(own, other).value
            for own, other in zip(self.pairs, pairs, strict=True)
        ]
        constant = self.log_z + np.array(np.broadcast_arrays(*links, self.log_z[0])[:-1])
        return heights + (constant - heights[:, :, at])[:, :, None]


class Standing(NamedTuple):
    """How k compare, as far as their pilots tell.

    Attributes
    ----------
    score : ndarray of shape (n_replicates, n_k)
        The log posterior of each k, up to a constant.
    masses : ndarray of shape (n_replicates, n_k)
        The same but for log Z of the first phase at its pilot.
    heights : ndarray of shape (n_phases, n_replicates, n_k)
        log Z of each phase at the pilots, up to a common constant.
    doubt : ndarray of shape (n_k,)
        What bridges leave to doubt on the way from the first k to each.
    tops : ndarray of shape (n_k,)
        Where the posterior of beta is largest.
    """

    score: np.ndarray
    masses: np.ndarray
    heights: np.ndarray
    doubt: np.ndarray
    tops: np.ndarray


def run_race(
    simulation: Simulation, target: LogPosterior, max_sweeps: float = np.inf
) -> tuple[list[Look], Division | None]:
    """Choose the k at which chains are to stand, among all that the prior allows.

    They come in increasing k and are near enough to each other. With a division there are two
    phases.
    """
    every = target.ks
    max_apart = _MAX_APART if target.is_product() else 0.0
    division: Division | None = None
    may_divide = True
    looks: dict[int, Look] = {}
    # Bridges and masses by the names of their pairs, and log Z itself by k.
    known: dict[tuple, Any] = {}
    ks = _thin_out(every, _COARSE_RATIO)
    search, stage = _SEARCH, 0
    new, guesses, reach = ks, np.ones(len(ks)), _MAX_MOVE
    while True:
        if division is None:
            guesses = np.array(
                simulation.each(
                    partial(find_ridge, simulation, target, search, stage),
                    zip(new.tolist(), guesses.tolist(), strict=True),
                )
            )
        looks |= _look(simulation, target, new, guesses, ks, stage, division)
        here = [looks[k] for k in ks.tolist()]
        stand = _compare(target, here, division, known)
        away = stand.tops - [look.pair.beta for look in here]
        far = np.abs(away) > [look.error for look in here]
        if division is not None and far.any() and reach > _CLOSE / 4:
            # A phase far from where it lives says little of where both weigh the same.
            new, guesses = ks[far], (stand.tops - away + np.clip(away, -reach, reach))[far]
            reach, stage = reach / 2, stage + 1
            continue
        behind = find_behind(stand.score, stand.doubt, 4)
        slow = np.array([look.is_slow for look in here])
        is_new = False
        if division is None and slow.any():
            most, best, guess = _find_bounds(simulation, target, here, stand, slow, known)
            matters = slow & (best - most < BEHIND)
            if matters.any() and may_divide:
                reference = here[int(np.argmax(np.where(matters, guess, -np.inf)))]
                division, at_least = _divide(simulation, target, reference, max_sweeps)
                best, is_new, may_divide = max(best, at_least), division is not None, False
            # Bounds that contradict each other, the ladder being off, exclude nothing.
            best = min(best, most.max())
            behind = best - most if np.isfinite(best) else np.zeros(len(ks))
        first, last = _find_ends(behind, slow)
        stage += 1
        tops = _smooth(here) if max_apart > 0 and division is None else stand.tops
        # What is smooth may leave the prior's range, next to beta = 0 for one.
        tops = np.clip(tops, *np.array([target.limits[k] for k in ks.tolist()]).T)
        kept = here[first : last + 1]
        ks, tops = ks[first : last + 1], tops[first : last + 1]
        if is_new:
            # All that may matter are looked at again, in their phases.
            looks, new, guesses = {}, ks, tops
            continue
        if division is not None:
            at = first + int(np.argmax(stand.score[0, first : last + 1]))
            pairs = tuple(pilot.pair for pilot in here[at].pilots)
            division = division._replace(pairs=pairs, log_z=stand.heights[:, :, at])
        apart = [_distance(*ends) for ends in pairwise(kept)]
        wanted = _fill_in(ks, apart, every, max_apart)
        new = wanted[~np.isin(wanted, ks)]
        if len(new) == 0:
            return [k._replace(top=top) for k, top in zip(kept, tops, strict=True)], division
        guesses = _interpolate(ks, tops, new)
        looks = {look.k: look for look in kept}
        ks, search = wanted, _SEARCH[-1:]


def _find_ends(behind: np.ndarray, slow: np.ndarray) -> tuple[int, int]:
    """Return the first and the last place that is kept: of those near, and one more on each side.

    A slow k beyond them was excluded by its bound.
    """
    near = np.flatnonzero(behind < BEHIND)
    first, last = max(near[0] - 1, 0), min(near[-1] + 1, len(behind) - 1)
    first += int(slow[first] and first < near[0])
    last -= int(slow[last] and last > near[-1])
    return first, last


def find_ridge(
    simulation: Simulation,
    target: LogPosterior,
    search: tuple[int, ...],
    stage: int,
    k_and_beta: tuple[int, float],
) -> float:
    """Find the top of the posterior at k, by Newton steps kept within a bracket.

    Where the prior is flat, that is where E[S_k] is the observed S_k. To within about a posterior
    standard deviation of beta; nothing later needs more.
    """
    k, beta = k_and_beta
    low, high = target.limits[k]
    beta, initial = float(np.clip(beta, low, high)), target.labels[simulation.layout.order]
    for turn in range(_MAX_SEARCH if low < high else 0):
        pair = simulation.pair(
            Setting.at(beta, k), [k], (stage, k, turn), initial=initial, n_warmup=_SETTLE
        )
        simulation.run(pair, search[min(turn, len(search) - 1)])
        mean, variance = pair.mean(k) / k, max(pair.variance(k) / k**2, 1e-9)
        margin = 0.5 / np.sqrt(variance)
        step = target.find_step(k, beta, mean, variance)
        if step > 0:
            low = max(low, beta - margin)
        else:
            high = min(high, beta + margin)
        proposal = beta + float(np.clip(step, -_MAX_STEP, _MAX_STEP))
        beta = proposal if low <= proposal <= high else (low + high) / 2
        initial = pair.labels
        # The pilot that comes next need not be nearer than a share of what is close.
        if turn + 1 >= len(search) and abs(step) < max(2 * margin, _CLOSE / 6):
            break
    return float(np.clip(beta, *target.limits[k]))


def _look(
    simulation: Simulation,
    target: LogPosterior,
    new: np.ndarray,
    betas: np.ndarray,
    ks: np.ndarray,
    stage: int,
    division: Division | None,
) -> dict[int, Look]:
    """Look at the k that are new among ``ks``, near their ridges."""
    before, after = np.append(ks[0], ks[:-1]), np.append(ks[1:], ks[-1])

    def run(k_and_beta: tuple[int, float]) -> Look:
        k, beta = k_and_beta
        at = np.searchsorted(ks, k)
        columns = target.ks[(target.ks >= before[at]) & (target.ks <= after[at])]
        if division is not None:
            pilots = tuple(
                simulation.pilot(
                    Setting.at(beta, k), columns, (stage, k, Purpose.PILOT_OF_PHASE + phase),
                    whole=columns, window=window,
                )
                for phase, window in enumerate(division.windows)
            )  # fmt: skip
            # A parabola carries log Z of a phase so far.
            sd = min(k / np.sqrt(max(pilot.pair.variance(k), 1e-12)) for pilot in pilots)
            return Look(pilots, float(beta), min(sd, MAX_REACH))
        column = int(np.searchsorted(columns, k))
        low, high = target.limits[k]
        for turn in range(_MAX_TURNS):
            pilot = simulation.pilot(
                Setting.at(beta, k), columns, (stage, k, Purpose.PILOT + turn), whole=columns
            )
            _, mean, variance = (part[:, [column]] for part in pilot.pair.reweighted)
            sd = float(1 / np.sqrt(max(variance[0, 0], 1e-12)))
            step = target.find_step(k, beta, mean[0, 0], 1 / sd**2)
            reach = min(max(3 * sd, _CLOSE), MAX_REACH)
            top = float(np.clip(beta + np.clip(step, -reach, reach), *target.limits[k]))
            is_near = abs(step) < max(_NEAR * sd, _CLOSE)
            if pilot.is_split or is_near or abs(top - beta) < sd / 4:
                break
            # The search was too short to tell, as it is next to a transition.
            low, high = (beta, high) if step > 0 else (low, beta)
            beta = top if low < top < high else (low + high) / 2
        # A third of a posterior standard deviation does not matter.
        return Look((pilot,), top, sd * float(np.hypot(0.3, find_error(mean[:, 0]) * sd)))

    # The longest, those of the largest k, first.
    found = simulation.each(run, zip(new[::-1].tolist(), betas[::-1].tolist(), strict=True))
    return {look.k: look for look in found}


def _compare(
    target: LogPosterior, looks: list[Look], division: Division | None, known: dict[tuple, Any]
) -> Standing:
    """Bridge from each look to the next, in every phase, and weigh the posterior at each."""
    paths = []
    for phase in range(len(looks[0].pilots)):
        pairs = [look.pilots[phase].pair for look in looks]
        names = [int(pair.keys[-1]) for pair in pairs]
        for name, ends in zip(pairwise(names), pairwise(pairs), strict=True):
            if name not in known:
                known[name] = bridge(*ends)
        paths.append([known[name] for name in pairwise(names)])
    heights = np.array([add_up(path) for path in paths])
    ks = np.array([look.k for look in looks])
    if division is not None:
        tied = looks[int(np.searchsorted(ks, division.pairs[0].k))]
        heights = division.tie(ks, [pilot.pair for pilot in tied.pilots], heights)
    masses, tops = [], []
    for at, look in enumerate(looks):
        # One phase weighs the same wherever its neighbours stand.
        key = ("mass", int(look.pair.keys[-1]))
        if division is not None or key not in known:
            profile = look.profile(tuple(heights[:, :, at] - heights[0, :, at]))
            panels = profile.find_panels(target)
            top = look.top if division is None else profile.find_range(target, panels)[0]
            known[key] = profile.log_total(target, panels), top
        mass, top = known[key]
        masses.append(mass)
        tops.append(top)
    doubt = add_up_doubt(paths)
    found = np.column_stack(masses)
    return Standing(found - heights[0], found, heights, doubt, np.array(tops))


def find_behind(score: np.ndarray, doubt: np.ndarray, n_errors: int = 0) -> np.ndarray:
    """Return how far each k is behind the best in log posterior, at least.

    Parameters
    ----------
    score : ndarray of shape (n_replicates, n_k)
        The log posterior of k up to a constant; row 0 is the estimate.
    doubt : ndarray of shape (n_k,)
        What bridges leave to doubt on the way from some k to each: differences of it count.
    n_errors : int
        How many Monte Carlo errors to allow for.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.posterior.race import find_behind
    >>> find_behind(np.array([[0.0, -5.0]]), doubt=np.array([0.0, 2.0])).tolist()
    [0.0, 3.0]
    """
    best = int(np.argmax(score[0]))
    error = find_error(score - score[:, [best]])
    return score[0, best] - score[0] - n_errors * error - np.abs(doubt - doubt[best])


def _find_bounds(
    simulation: Simulation,
    target: LogPosterior,
    looks: list[Look],
    stand: Standing,
    slow: np.ndarray,
    known: dict[tuple, Any],
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return an upper bound on the log posterior of each k, a lower one on the largest, a guess.

    Every stretch between slow k is placed by log Z itself at one of its k. What was found of log Z
    is kept in ``known``. The guess is for slow k: a bound is off by about so much divided by k.
    """
    bounds = np.array([bound_posterior(target, look.k) for look in looks])
    most, best, off = bounds.copy(), -np.inf, 0.0
    fast = np.flatnonzero(~slow)
    for stretch in np.split(fast, np.flatnonzero(np.diff(fast) > 1) + 1):
        if len(stretch) == 0:
            continue
        score = stand.score[:, stretch]
        placed = [at for at in stretch.tolist() if known.get((looks[at].k,)) is not None]
        top = placed[0] if placed else int(stretch[np.argmax(score[0])])
        k = looks[top].k
        if (k,) not in known:
            known[k,] = log_z_from_zero(
                simulation, looks[top].pair, _ROUGH, _MAX_SWEEPS, (k, Purpose.LOG_Z_ROUGHLY)
            )
        if known[k,] is None:
            continue
        absolute = score + (stand.masses[:, top] - known[k,] - stand.score[:, top])[:, None]
        error = 4 * find_error(absolute) + np.abs(stand.doubt[stretch] - stand.doubt[top])
        most[stretch] = np.minimum(most[stretch], absolute[0] + error)
        if np.max(absolute[0] - error) > best:
            best, at = float(np.max(absolute[0] - error)), int(np.argmax(absolute[0] - error))
            off = (bounds[stretch[at]] - absolute[0, at]) * looks[stretch[at]].k
    return most, best, bounds - off / np.array([look.k for look in looks])


def _divide(
    simulation: Simulation, target: LogPosterior, look: Look, max_sweeps: float
) -> tuple[Division | None, float]:
    """Divide the labels in two, and find log Z of each part at one k.

    Returns
    -------
    division : Division, or None if chains turn out to cross
    best : float
        A lower bound on the log posterior of this k.
    """
    k, most = look.k, _LADDER_SHARE * max_sweeps
    pilots = place_pilots(simulation, k, k, target.beta_max)
    before = simulation.n_sweeps
    ladder = Ladder(simulation, pilots, [k], target.beta_max, most, divide=True)
    work = ladder.first_work()
    while work:
        simulation.advance(work)
        curve = ladder.curve().select((slice(None), 0))
        profile = Profile(k, ((curve,),), (1.0,), (np.zeros(N_REPLICATES),), look.top, look.error)
        panels = profile.find_panels(target)
        top = profile.find_range(target, panels)[0]
        if simulation.n_sweeps - before > most:
            break
        work = ladder.plan(partial(_allow_within, panels[0], panels[-1]))
    total = profile.log_total(target, panels)
    best = float(total[0] - 4 * find_error(total))
    if isinstance(curve, Curve):
        return None, best
    pairs, log_z = [], []
    for rungs, part in zip(ladder.branches, curve.branches, strict=True):
        # Far from the transition a branch goes on with all labels, the other phase being nothing.
        divided = np.array([rung.pair.window.rank > 0 for rung in rungs])
        at = int(np.argmin(np.where(divided, np.abs(part.betas - top), np.inf)))
        pairs.append(rungs[at].pair)
        log_z.append(part.values[:, at])
    return Division(tuple(pair.window for pair in pairs), tuple(pairs), np.array(log_z)), best


def _allow_within(low: float, high: float, beta: np.ndarray) -> np.ndarray:
    return np.where((beta >= low) & (beta <= high), _ROUGH, np.inf)


def bound_posterior(target: LogPosterior, k: int) -> float:
    """Return an upper bound on the log of the posterior of k, not normalised."""
    model = target.model
    weights, n_classes = model.weights, model.n_classes
    # One class, the heaviest, has probability p, and the others share the rest.
    p = np.linspace(1 / n_classes, 1.0, 200)[:, None]
    rest = (1 - p) / (n_classes - 1)
    heaviest = int(np.argmax(weights))
    entropy = entr(p) + (n_classes - 1) * entr(rest)
    energy = weights[heaviest] * p**2 + (weights.sum() - weights[heaviest]) * rest**2

    def log_posterior(beta: np.ndarray) -> np.ndarray:
        log_z = model.n_points * np.max(entropy + beta * energy, axis=0)
        return target.log_weight(k)(beta) - log_z

    panels = find_panels(log_posterior, target.masses[k].panels(N_PANELS))
    return float(logsumexp(integrate(log_posterior, panels)[1]))


def _distance(before: Look, after: Look) -> float:
    """Return the variance of D from the k of one look to that of the next, at the same beta."""
    ks = (before.k, after.k)
    return max(
        float((pair.beta * (pair.series(ks[1]) / ks[1] - pair.series(ks[0]) / ks[0])).var())
        for pair in (pilot.pair for look in (before, after) for pilot in look.pilots)
    )


def _smooth(looks: list[Look]) -> np.ndarray:
    """Return where the ridge is at each k, from its neighbours too where chains are split."""
    tops = np.array([look.top for look in looks])
    if len(looks) < 5:
        return tops
    ks = np.array([look.k for look in looks])
    with warnings.catch_warnings():
        # On many points errors are so small that no spline comes as near as it should.
        warnings.simplefilter("ignore", UserWarning)
        return UnivariateSpline(np.log(ks), tops, [1 / look.error for look in looks])(np.log(ks))


def _thin_out(ks: np.ndarray, ratio: float) -> np.ndarray:
    """Choose values of which each is about ``ratio`` times the one before, first and last too."""
    n_steps = int(np.ceil(np.log(ks[-1] / ks[0]) / np.log(ratio))) + 1
    places = np.searchsorted(ks, np.geomspace(ks[0], ks[-1], n_steps) - 1e-9)
    return ks[np.unique(np.minimum(places, len(ks) - 1))]


def _fill_in(
    ks: np.ndarray,
    apart: list[float],
    every: np.ndarray,
    max_apart: float,
) -> np.ndarray:
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
