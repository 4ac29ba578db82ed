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

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import entr, logsumexp

from bayesknn._utils.random import Purpose
from bayesknn.log_z.bridge import Step, add_up, add_up_doubt, bridge
from bayesknn.log_z.chains import ChainPair, Setting, Window
from bayesknn.log_z.curve import Coexistence, Curve
from bayesknn.log_z.ladder import climb, log_z_from_zero
from bayesknn.log_z.mbar import REACH
from bayesknn.log_z.resampling import find_error
from bayesknn.log_z.simulation import Pilot, Simulation
from bayesknn.model.integration import N_PANELS, find_panels, integrate
from bayesknn.posterior.ridge_target import LogPosterior, Profile

# Values of k this far behind in log posterior are dropped: fewer k against what they hold in all.
BEHIND = 12.0
# From one k of the first looks to the next: fewer looks against a best k that hides between two.
_COARSE_RATIO = 1.35
# Variance of D from one k to the next up to which their draws speak for those between: fewer chains
# against fewer draws in between.
_MAX_APART = 2.0
# Steps of the search for the ridge: records taken at each after so many sweeps, steps at most and
# how long. A search that ends too early costs a pilot, which is some ten times as long as a step.
_SEARCH, _SETTLE, _MAX_SEARCH, _MAX_STEP = 8, 10, 16, 0.5
# A pilot further from the ridge than this, in posterior standard deviations and in beta, is made
# anew, so often at most: pilots against parabolas of log Z that reach too far.
_NEAR, _CLOSE, _MAX_TURNS = 2.0, 0.03, 8
# Of log Z at the k that the others are compared with, the error that will do, and the sweeps that
# may be made for it: sweeps against k that are kept because nothing excludes them.
_ROUGH, _MAX_SWEEPS = 1.0, 4e4
# Share of all sweeps that a ladder may take, which has some dozens of pairs: what one phase weighs
# beside the other against all else.
_LADDER_SHARE = 1 / 8


class Look(NamedTuple):
    """A first look at one k.

    Attributes
    ----------
    pilots : tuple of Pilot
        Near the ridge, one for each phase.
    top, error : float
        Where the ridge is, as far as the pilots tell, and how far off that may be.
    sd : float
        About the posterior standard deviation of beta, of all phases together.
    behind : float
        By how much it is behind the best in log posterior, at least.
    """

    pilots: tuple[Pilot, ...]
    top: float
    error: float
    sd: float = REACH
    behind: float = 0.0

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

    def profile(self, target: LogPosterior, rises: np.ndarray) -> Profile:
        """Return the posterior of beta by parabolas of log Z around the pilots.

        ``rises`` of shape (n_phases, n_replicates) is by how much log Z of each phase at its pilot
        is above that of the first.
        """
        pairs = [pilot.pair for pilot in self.pilots]
        moments = [
            (rise, pair.beta, *pair.moments()) for rise, pair in zip(rises, pairs, strict=True)
        ]

        def log_z(beta: np.ndarray, rows: slice) -> np.ndarray:
            parts = []
            for rise, centre, mean, variance in moments:
                away = beta - centre
                bent = np.multiply.outer(variance[rows], away**2 / 2)
                parts.append(rise[rows, None] + np.multiply.outer(mean[rows], away) + bent)
            return parts[0] if len(parts) == 1 else np.logaddexp(*parts)

        sd = float(1 / np.sqrt(max(moments[0][3][0], 1e-12)))
        return Profile(target, self.k, log_z, target.place_edges(self.k, self.pair.beta, sd))


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
    looks : list of Look
    score : ndarray of shape (n_replicates, n_k)
        The log posterior of each k, up to a constant.
    heights : ndarray of shape (n_phases, n_replicates, n_k)
        log Z of each phase at the pilots, up to a common constant.
    doubt : ndarray of shape (n_k,)
        What bridges leave to doubt on the way from the first k to each.
    tops, sds : ndarray of shape (n_k,)
        Where the posterior of beta is largest, and its standard deviation.
    """

    looks: list[Look]
    score: np.ndarray
    heights: np.ndarray
    doubt: np.ndarray
    tops: np.ndarray
    sds: np.ndarray


class Race:
    """The k that may matter, and what is known of them.

    Parameters
    ----------
    simulation : Simulation
    target : LogPosterior
    max_sweeps : float
        About how many sweeps may be made in all.

    Attributes
    ----------
    ks : ndarray of int
        Those left in the race, in increasing order.
    looks : dict of int to Look
        By k.
    division : Division or None
        The two phases of the labels, where there are two.
    new, guesses : ndarray
        Which k are to be looked at next, and about where their ridge is.
    """

    def __init__(self, simulation: Simulation, target: LogPosterior, max_sweeps: float = np.inf):
        self.simulation, self.target, self.max_sweeps = simulation, target, max_sweeps
        self.ks = self.new = _thin_out(target.ks, _COARSE_RATIO)
        self.guesses = np.ones(len(self.ks))
        self.looks: dict[int, Look] = {}
        self.division: Division | None = None
        self._may_divide, self._stage = True, 0
        # Looks in phases that are off the ridge are moved by so much at most, then by half of it.
        self._reach = 4 * _CLOSE
        # Bridges by the names of their pairs, and log Z itself by k.
        self._bridges: dict[tuple[int, int], Step] = {}
        self._log_z: dict[int, np.ndarray | None] = {}

    def run(self) -> list[Look]:
        """Choose the k at which chains are to stand, among all that the prior allows.

        They come in increasing k and are near enough to each other.
        """
        while len(self.new):
            self._look()
            stand = self._compare()
            if not self._move(stand):
                self._drop(stand)
        return [self.looks[k] for k in self.ks.tolist()]

    def _look(self) -> None:
        """Look at the k that are new, near their ridges."""
        places = list(zip(self.new.tolist(), self.guesses.tolist(), strict=True))
        look: Callable[[tuple[int, float]], Look] = self._look_at_ridge
        if self.division is not None:
            look = partial(self._look_in_phases, self.division.windows)
        # The longest, those of the largest k, first.
        found = self.simulation.each(look, places[::-1])
        self.looks |= {each.k: each for each in found}
        self._stage += 1

    def _find_columns(self, k: int) -> np.ndarray:
        """Return the k up to the neighbours in the race on both sides."""
        at, every = int(np.searchsorted(self.ks, k)), self.target.ks
        before, after = self.ks[max(at - 1, 0)], self.ks[min(at + 1, len(self.ks) - 1)]
        return every[(every >= before) & (every <= after)]

    def _look_in_phases(self, windows: tuple[Window, ...], place: tuple[int, float]) -> Look:
        k, beta = place
        columns = self._find_columns(k)
        pilots = tuple(
            self.simulation.pilot(
                Setting.at(beta, k), columns, (self._stage, k, Purpose.PILOT_OF_PHASE + phase),
                whole=columns, window=window,
            )
            for phase, window in enumerate(windows)
        )  # fmt: skip
        # A parabola carries log Z of a phase so far.
        sd = min(find_sd(pilot.pair) for pilot in pilots)
        return Look(pilots, float(beta), sd)

    def _look_at_ridge(self, place: tuple[int, float]) -> Look:
        k, target, columns = place[0], self.target, self._find_columns(place[0])
        beta = find_ridge(self.simulation, target, self._stage, place)
        low, high = target.limits[k]
        for turn in range(_MAX_TURNS):
            pilot = self.simulation.pilot(
                Setting.at(beta, k), columns, (self._stage, k, Purpose.PILOT + turn), whole=columns
            )
            mean, variance = pilot.pair.moments()
            sd = float(1 / np.sqrt(max(variance[0], 1e-12)))
            step = target.find_step(k, beta, mean[0], 1 / sd**2)
            reach = min(max(3 * sd, _CLOSE), REACH)
            top = float(np.clip(beta + np.clip(step, -reach, reach), *target.limits[k]))
            is_near = abs(step) < max(_NEAR * sd, _CLOSE)
            if pilot.is_split or is_near or abs(top - beta) < sd / 4:
                break
            # The search was too short to tell, as it is next to a transition.
            low, high = (beta, high) if step > 0 else (low, beta)
            beta = top if low < top < high else (low + high) / 2
        # A third of a posterior standard deviation does not matter.
        return Look((pilot,), top, sd * float(np.hypot(0.3, find_error(mean) * sd)))

    def _compare(self) -> Standing:
        """Bridge from each look to the next, in every phase, and weigh the posterior at each."""
        looks = [self.looks[k] for k in self.ks.tolist()]
        paths = []
        for phase in range(len(looks[0].pilots)):
            path = []
            for ends in pairwise(look.pilots[phase].pair for look in looks):
                name = (int(ends[0].keys[-1]), int(ends[1].keys[-1]))
                if name not in self._bridges:
                    self._bridges[name] = bridge(*ends)
                path.append(self._bridges[name])
            paths.append(path)
        heights = np.array([add_up(path) for path in paths])
        if self.division is not None:
            tied = self.looks[self.division.pairs[0].k]
            pairs = [pilot.pair for pilot in tied.pilots]
            heights = self.division.tie(self.ks, pairs, heights)
        score, tops, sds = -heights[0], np.empty(len(looks)), np.empty(len(looks))
        for at, look in enumerate(looks):
            profile = look.profile(self.target, heights[:, :, at] - heights[0, :, at])
            log_mass, tops[at], sd = profile.summarise()
            score[:, at] += log_mass
            if self.division is None:
                tops[at] = look.top
            sds[at] = min(sd, REACH)
        return Standing(looks, score, heights, add_up_doubt(paths), tops, sds)

    def _move(self, stand: Standing) -> bool:
        """Look again at k whose phases were seen too far from where they weigh the same."""
        away = stand.tops - [look.pair.beta for look in stand.looks]
        far = np.abs(away) > [look.error for look in stand.looks]
        if self.division is None or not far.any() or self._reach <= _CLOSE / 4:
            return False
        moved = stand.tops - away + np.clip(away, -self._reach, self._reach)
        self.new, self.guesses, self._reach = self.ks[far], moved[far], self._reach / 2
        return True

    def _drop(self, stand: Standing) -> None:
        """Drop what is behind, and look between what is left where it is too far apart."""
        behind = find_behind(stand.score, stand.doubt, 4)
        slow = np.array([look.is_slow for look in stand.looks])
        was_divided = self.division is not None
        if not was_divided and slow.any():
            behind = self._bound(stand, slow)
        first, last = _find_ends(behind, slow)
        kept = slice(first, last + 1)
        self.ks, tops = self.ks[kept], stand.tops[kept]
        looks = [
            look._replace(top=top, sd=sd, behind=back)
            for look, top, sd, back in zip(
                stand.looks[kept], tops, stand.sds[kept], behind[kept], strict=True
            )
        ]
        self.looks = {look.k: look for look in looks}
        if self.division is not None and not was_divided:
            # All that may matter are looked at again, in their phases.
            self.new, self.guesses = self.ks, tops
            return
        if self.division is not None:
            at = first + int(np.argmax(stand.score[0, kept]))
            pairs = tuple(pilot.pair for pilot in stand.looks[at].pilots)
            self.division = self.division._replace(pairs=pairs, log_z=stand.heights[:, :, at])
        apart = [_distance(*ends) for ends in pairwise(looks)]
        max_apart = _MAX_APART if self.target.is_product() else 0.0
        wanted = _fill_in(self.ks, apart, self.target.ks, max_apart)
        self.new = wanted[~np.isin(wanted, self.ks)]
        self.guesses = _interpolate(self.ks, tops, self.new)
        self.ks = wanted

    def _bound(self, stand: Standing, slow: np.ndarray) -> np.ndarray:
        """Return how far each k is behind by bounds alone; divide the labels if that is needed."""
        most, best, guess = self._find_bounds(stand, slow)
        matters = slow & (best - most < BEHIND)
        if matters.any() and self._may_divide:
            look = stand.looks[int(np.argmax(np.where(matters, guess, -np.inf)))]
            self.division, at_least = _divide(self.simulation, self.target, look, self.max_sweeps)
            best, self._may_divide = max(best, at_least), False
        # Bounds that contradict each other, the ladder being off, exclude nothing.
        best = min(best, most.max())
        return best - most if np.isfinite(best) else np.zeros(len(most))

    def _find_bounds(
        self, stand: Standing, slow: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Return upper bounds on the log posterior of each k, a lower one on the largest, guesses.

        Every stretch between slow k is placed by log Z itself at one of its k. The guess is for
        slow k: a bound is off by about so much divided by k.
        """
        bounds = np.array([bound_posterior(self.target, k) for k in self.ks.tolist()])
        most, best, off = bounds.copy(), -np.inf, 0.0
        fast = np.flatnonzero(~slow)
        for stretch in np.split(fast, np.flatnonzero(np.diff(fast) > 1) + 1):
            if len(stretch) == 0:
                continue
            score = stand.score[:, stretch]
            placed = [at for at in stretch if self._log_z.get(int(self.ks[at])) is not None]
            top = int(placed[0] if placed else stretch[np.argmax(score[0])])
            log_z = self._find_log_z(stand.looks[top].pair)
            if log_z is None:
                continue
            absolute = score + (stand.heights[0, :, top] - log_z)[:, None]
            error = 4 * find_error(absolute) + np.abs(stand.doubt[stretch] - stand.doubt[top])
            most[stretch] = np.minimum(most[stretch], absolute[0] + error)
            at = int(np.argmax(absolute[0] - error))
            if absolute[0, at] - error[at] > best:
                best = float(absolute[0, at] - error[at])
                off = (bounds[stretch[at]] - absolute[0, at]) * self.ks[stretch[at]]
        return most, best, bounds - off / self.ks

    def _find_log_z(self, pair: ChainPair) -> np.ndarray | None:
        """Return log Z at a pair, roughly; None if a transition lies on the way."""
        k = pair.k
        if k not in self._log_z:
            self._log_z[k] = log_z_from_zero(
                self.simulation, pair, _ROUGH, _MAX_SWEEPS, (k, Purpose.LOG_Z_ROUGHLY)
            )
        return self._log_z[k]


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
    simulation: Simulation, target: LogPosterior, stage: int, place: tuple[int, float]
) -> float:
    """Find the top of the posterior at k, by Newton steps kept within a bracket.

    Where the prior is flat, that is where E[S_k] is the observed S_k. To within about a posterior
    standard deviation of beta; nothing later needs more.
    """
    k, beta = place
    low, high = target.limits[k]
    beta, initial = float(np.clip(beta, low, high)), target.labels
    for turn in range(_MAX_SEARCH if low < high else 0):
        pair = simulation.pair(
            Setting.at(beta, k), [k], (stage, k, turn), initial=initial, n_warmup=_SETTLE
        )
        simulation.advance([(pair, _SEARCH)])
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
        if abs(step) < max(2 * margin, _CLOSE / 6):
            break
    return float(np.clip(beta, *target.limits[k]))


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
    edges = target.place_edges(look.k, look.top, look.error)

    def weigh(curve: Curve | Coexistence) -> Profile:
        return Profile(target, look.k, lambda beta, rows: curve.select(rows)(beta), edges)

    def allow(curve: Curve | Coexistence, beta: np.ndarray) -> np.ndarray:
        panels = weigh(curve).find_panels()
        return np.where((beta >= panels[0]) & (beta <= panels[-1]), _ROUGH, np.inf)

    ladder, curve = climb(simulation, look.k, target.beta_max, _LADDER_SHARE * max_sweeps, allow)
    total, top, _ = weigh(curve).summarise()
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


def find_sd(pair: ChainPair) -> float:
    """Return the posterior standard deviation of beta at the pair's k if the prior is flat."""
    return min(float(pair.k / np.sqrt(max(pair.variance(pair.k), 1e-12))), REACH)


def _distance(before: Look, after: Look) -> float:
    """Return the variance of D from the k of one look to that of the next, at the same beta."""
    return max(
        pilot.pair.distance(other.k)
        for look, other in ((before, after), (after, before))
        for pilot in look.pilots
    )


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
