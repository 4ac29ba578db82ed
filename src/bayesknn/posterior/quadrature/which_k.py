"""Which k can matter to the posterior, from pilot runs at some of them.

A posterior but for log Z goes in; the k that can matter come out, each with its pilots. The mode
curve is where E[S_k] equals the observed S_k. Pilots stand near it at a few k, log Z is followed
from each to the next by the trapezium rule, and k with a large log deficit are dropped; more are
put between the others until neighbours are alike.

Where chains are slow there is a first-order transition, or something near to one, and their means
say little. Such a k is given up at once only if a bound without any simulation says so: log Z is at
least that of independent labels with the same class probabilities p at every point,
``n H(p) + beta * n * sum over g of a_g p_g**2`` for any p (Gibbs and Bogoliubov), which on graphs
with many neighbours is all but an equality. If slow k are left, the search goes on in two phases:
the labels are divided by their agreement with the nearest neighbours, the same for all k, chains
mix fast within each phase, and log Z is followed from k to k within it. What one phase weighs
beside the other comes from both ends of the path in beta at one k
(:mod:`bayesknn.log_z.along_beta`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import entr, logsumexp, softmax

from bayesknn._utils.random import Purpose
from bayesknn.log_z.along_beta import Path, log_z_at
from bayesknn.log_z.chains import ChainPair
from bayesknn.log_z.estimate import Curve, step_between
from bayesknn.log_z.mbar import BETA_SCALE
from bayesknn.log_z.records import N_CHAINS, N_REPLICATES, Setting, Window, standard_error
from bayesknn.log_z.simulation import FEWEST_PILOT_SWEEPS, MAX_SWEEPS, Pilot, Simulation
from bayesknn.model.integration import N_PANELS, find_panels, integrate
from bayesknn.posterior.quadrature.log_posterior import LogPosterior, Profile

# Values of k whose log posterior is this much lower are dropped: fewer k against what they hold.
MAX_LOG_DEFICIT = 12.0
# A pilot further from the mode than this in beta is made anew: pilots against parabolas of log Z
# that reach too far.
_CLOSE = 0.03
# Of log Z at the k that the others are compared with, the error that will do: sweeps against k that
# are kept because nothing excludes them.
_ROUGH = 1.0
# Share of all sweeps that a path may take, which has some dozens of pairs, and its pilots: what one
# phase weighs beside the other against all else.
_PATH_SHARE = 1 / 4


class Candidate(NamedTuple):
    """A k that may matter, and its pilots.

    Attributes
    ----------
    pilots : tuple of Pilot
        Near the mode, one for each phase.
    top, error : float
        Where the mode is, as far as the pilots tell, and how far off that may be.
    sd : float
        About the posterior standard deviation of beta, of all phases together.
    log_deficit : float
        By how much its log posterior is below that of the best k, at least.
    """

    pilots: tuple[Pilot, ...]
    top: float
    error: float
    sd: float = BETA_SCALE
    log_deficit: float = 0.0

    @property
    def pair(self) -> ChainPair:
        """The chains of the first pilot."""
        return self.pilots[0].pair

    @property
    def k(self) -> int:
        """The k itself."""
        return self.pair.k

    @property
    def is_slow(self) -> bool:
        """Whether chains cross too rarely for their means to say much."""
        return any(pilot.is_slow for pilot in self.pilots)

    def profile(self, target: LogPosterior, log_z: np.ndarray) -> Profile:
        """Return the posterior of beta by parabolas of log Z around the pilots.

        ``log_z`` of shape (n_phases, n_replicates) is that of each phase at its pilot, up to a
        constant.
        """
        pairs = [pilot.pair for pilot in self.pilots]
        moments = [
            (at_pilot, pair.beta, *pair.moments())
            for at_pilot, pair in zip(log_z, pairs, strict=True)
        ]

        def parabola(beta: np.ndarray, rows: slice) -> np.ndarray:
            parts = []
            for at_pilot, centre, mean, variance in moments:
                away = beta - centre
                bent = np.multiply.outer(variance[rows], away**2 / 2)
                parts.append(at_pilot[rows, None] + np.multiply.outer(mean[rows], away) + bent)
            return logsumexp(parts, axis=0)

        sd = float(1 / np.sqrt(max(moments[0][3][0], 1e-12)))
        return Profile(target, self.k, parabola, target.place_edges(self.k, self.pair.beta, sd))


class Division(NamedTuple):
    """The labels in two phases, and log Z itself in each at one k.

    Attributes
    ----------
    windows : tuple of Window
    k : int
    curve : Curve
        log Z at that k.
    betas : ndarray of shape (n_phases,)
        The mean of beta in that part of the posterior of k which is due to each phase: far from
        there few labellings of the phase are likely, and chains within its window hardly move.
    offsets, spreads : ndarray of shape (n_phases,)
        How far those means are from where the posterior of k is largest, and the standard
        deviations there, in standard deviations of the whole.
    sd : float
        The standard deviation of beta at that k.
    """

    windows: tuple[Window, ...]
    k: int
    curve: Curve
    betas: np.ndarray
    offsets: np.ndarray
    spreads: np.ndarray
    sd: float

    def log_z(self, betas: np.ndarray) -> np.ndarray:
        """Return log Z of each phase, each at its own beta, of shape (n_phases, n_replicates)."""
        return np.array([self.curve.of_phase(at, betas[[at]])[:, 0] for at in range(len(betas))])


class Comparison(NamedTuple):
    """How k compare, as far as their pilots tell.

    Attributes
    ----------
    candidates : list of Candidate
    score : ndarray of shape (n_replicates, n_k)
        The log posterior of each k, up to a constant.
    log_z : ndarray of shape (n_phases, n_replicates, n_k)
        log Z of each phase at the pilots, up to a common constant.
    discretisation_error : ndarray of shape (n_k,)
        That of log Z, added up over the steps from the first k to each.
    tops, sds : ndarray of shape (n_k,)
        Where the posterior of beta is largest, and its standard deviation.
    """

    candidates: list[Candidate]
    score: np.ndarray
    log_z: np.ndarray
    discretisation_error: np.ndarray
    tops: np.ndarray
    sds: np.ndarray


class CandidateSearch:
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
        Those left in the search, in increasing order.
    candidates : dict of int to Candidate
        By k.
    division : Division or None
        The two phases of the labels, where there are two.
    new, guesses : ndarray
        Which k are to have pilots next, and about where their mode is.
    is_cut : bool
        The search had to end before it was sure, as its share of the sweeps was made.
    """

    def __init__(self, simulation: Simulation, target: LogPosterior, max_sweeps: float = np.inf):
        self.simulation, self.target, self.max_sweeps = simulation, target, max_sweeps
        self.ks = self.new = _thin_out(target.ks)
        self.guesses = np.ones(len(self.ks))
        self.candidates: dict[int, Candidate] = {}
        self.division: Division | None = None
        self._may_divide, self._stage, self.is_cut = True, 0, False
        self._max_pilot = np.inf
        # Pilots in phases that are off the mode are moved by so much at most, then by half of it.
        self._max_move = 4 * _CLOSE
        # log Z itself by k.
        self._log_z: dict[int, np.ndarray | None] = {}

    def run(self) -> list[Candidate]:
        """Choose the k at which chains are to stand, among all that the prior allows.

        They come in increasing k and are near enough to each other.
        """
        while len(self.new):
            self._run_pilots()
            comparison = self._compare()
            is_over, was_divided = self._n_left <= 0, self.division is not None
            wants_more = self._move(comparison)
            if is_over or not wants_more:
                self._drop(comparison)
            # Once the labels are divided, all k have pilots in both phases.
            if is_over and was_divided == (self.division is not None):
                self.is_cut |= wants_more or len(self.new) > 0
                self.ks, self.new = np.array(list(self.candidates)), self.new[:0]
        return [self.candidates[k] for k in self.ks.tolist()]

    @property
    def _n_left(self) -> float:
        """Sweeps that the search may still make: two thirds of all are for it."""
        return 2 / 3 * self.max_sweeps - self.simulation.n_sweeps

    def _run_pilots(self) -> None:
        """Run pilots at the k that are new, near their modes."""
        places = list(zip(self.new.tolist(), self.guesses.tolist(), strict=True))
        n_phases = 1 if self.division is None else len(self.division.windows)
        # Half of what is left: more leave nothing to later ones.
        share = self._n_left / (2 * N_CHAINS * n_phases * len(places))
        # Of each chain, decided before any of them runs: nothing may depend on threads.
        self._max_pilot = max(share, FEWEST_PILOT_SWEEPS)
        pilot: Callable[[tuple[int, float]], Candidate] = self._pilot_at_mode
        if self.division is not None:
            pilot = partial(self._pilot_in_phases, self.division)
        # The longest, those of the largest k, first.
        candidates = self.simulation.map(pilot, places[::-1])
        self.candidates |= {candidate.k: candidate for candidate in candidates}
        self._stage += 1

    def _columns_around(self, k: int) -> np.ndarray:
        """Return the k up to the neighbours in the search on both sides."""
        at, every = int(np.searchsorted(self.ks, k)), self.target.ks
        before, after = self.ks[max(at - 1, 0)], self.ks[min(at + 1, len(self.ks) - 1)]
        return every[(every >= before) & (every <= after)]

    def _pilot_in_phases(self, division: Division, place: tuple[int, float]) -> Candidate:
        k, beta = place
        columns = self._columns_around(k)
        betas = np.clip(beta + division.sd * division.offsets, *self.target.limits[k]).tolist()
        pilots = tuple(
            self.simulation.pilot(
                Setting.at(betas[phase], k), columns,
                (self._stage, k, Purpose.PILOT_OF_PHASE + phase), self._max_pilot, window=window,
            )
            for phase, window in enumerate(division.windows)
        )  # fmt: skip
        # A parabola carries log Z of a phase so far: a posterior standard deviation.
        variance = max(*(pilot.pair.variance(k) for pilot in pilots), 1e-12)
        return Candidate(pilots, float(beta), min(float(k / np.sqrt(variance)), BETA_SCALE))

    def _pilot_at_mode(self, place: tuple[int, float]) -> Candidate:
        k, target, columns = place[0], self.target, self._columns_around(place[0])
        beta = self._find_mode(place)
        low, high = target.limits[k]
        n_left = self._max_pilot
        for turn in range(8):
            pilot = self.simulation.pilot(
                Setting.at(beta, k), columns, (self._stage, k, Purpose.PILOT + turn), n_left
            )
            n_left -= pilot.pair.sweeps_per_chain
            mean, variance = pilot.pair.moments()
            sd = float(1 / np.sqrt(max(variance[0], 1e-12)))
            step = target.newton_step(k, beta, mean[0], 1 / sd**2)
            trust_radius = min(max(3 * sd, _CLOSE), BETA_SCALE)
            top = float(
                np.clip(beta + np.clip(step, -trust_radius, trust_radius), *target.limits[k])
            )
            is_near = abs(step) < max(2 * sd, _CLOSE)
            if pilot.is_split or is_near or abs(top - beta) < sd / 4 or n_left <= 0:
                break
            # The search was too short to tell, as it is next to a transition.
            low, high = (beta, high) if step > 0 else (low, beta)
            beta = top if low < top < high else (low + high) / 2
        # A third of a posterior standard deviation does not matter.
        return Candidate((pilot,), top, sd * float(np.hypot(0.3, standard_error(mean) * sd)))

    def _find_mode(self, place: tuple[int, float]) -> float:
        """Find the top of the posterior at k, by Newton steps kept within a bracket.

        Where the prior is flat, that is where E[S_k] is the observed S_k. To within about a
        posterior standard deviation of beta; nothing later needs more.
        """
        k, beta, target = *place, self.target
        low, high = target.limits[k]
        beta, initial = float(np.clip(beta, low, high)), target.labels
        # A search that ends too early costs a pilot, which is some ten times as long as a step.
        for turn in range(16 if low < high else 0):
            pair = self.simulation.pair(
                Setting.at(beta, k), [k], (self._stage, k, turn), initial=initial, n_warmup=10
            )
            self.simulation.add_records([(pair, 8)])
            mean, variance = pair.mean(k) / k, max(pair.variance(k) / k**2, 1e-9)
            margin = 0.5 / np.sqrt(variance)
            step = target.newton_step(k, beta, mean, variance)
            if step > 0:
                low = max(low, beta - margin)
            else:
                high = min(high, beta + margin)
            proposal = beta + float(np.clip(step, -0.5, 0.5))
            beta = proposal if low <= proposal <= high else (low + high) / 2
            initial = pair.labels
            # The pilot that comes next need not be nearer than a share of what is close.
            if abs(step) < max(2 * margin, _CLOSE / 6):
                break
        return float(np.clip(beta, *target.limits[k]))

    def _compare(self) -> Comparison:
        """Follow log Z from each candidate to the next, in every phase, and weigh the posterior."""
        candidates = [self.candidates[k] for k in self.ks.tolist()]
        phases, errors = [], []
        for phase in range(len(candidates[0].pilots)):
            pairs = [candidate.pilots[phase].pair for candidate in candidates]
            steps = [(np.zeros(N_REPLICATES), 0.0), *(step_between(*at) for at in pairwise(pairs))]
            phases.append(np.cumsum([growth for growth, _ in steps], axis=0).T)
            errors.append(np.cumsum([error for _, error in steps]))
        log_z = np.array(phases)
        if self.division is not None:
            at = int(np.searchsorted(self.ks, self.division.k))
            betas = np.array([pilot.pair.beta for pilot in candidates[at].pilots])
            known = self.division.log_z(betas)
            log_z += (known - log_z[:, :, at])[:, :, None]
        score, tops, sds = -log_z[0], np.empty(len(candidates)), np.empty(len(candidates))
        for at, candidate in enumerate(candidates):
            profile = candidate.profile(self.target, log_z[:, :, at] - log_z[0, :, at])
            log_mass, tops[at], sd = profile.summarise()
            score[:, at] += log_mass
            if self.division is None:
                tops[at] = candidate.top
            sds[at] = min(sd, BETA_SCALE)
        return Comparison(candidates, score, log_z, np.max(errors, axis=0), tops, sds)

    def _move(self, comparison: Comparison) -> bool:
        """Run pilots again at k whose phases were seen too far from where the posterior is."""
        away = comparison.tops - [candidate.top for candidate in comparison.candidates]
        far = np.abs(away) > [candidate.error for candidate in comparison.candidates]
        if self.division is None or not far.any() or self._max_move <= _CLOSE / 4:
            return False
        moved = comparison.tops - away + np.clip(away, -self._max_move, self._max_move)
        self.new, self.guesses, self._max_move = self.ks[far], moved[far], self._max_move / 2
        return True

    def _drop(self, comparison: Comparison) -> None:
        """Drop k whose log deficit is large; add others between those left that are far apart."""
        deficits = log_deficits(comparison.score, comparison.discretisation_error)
        slow = np.array([candidate.is_slow for candidate in comparison.candidates])
        was_divided = self.division is not None
        if not was_divided and slow.any():
            deficits = self._bound(comparison, slow)
        first, last = _find_ends(deficits, slow)
        if self.division is not None:
            # Where log Z itself is known.
            tied = int(np.searchsorted(self.ks, self.division.k))
            first, last = min(first, tied), max(last, tied)
        kept = slice(first, last + 1)
        self.ks, tops = self.ks[kept], comparison.tops[kept]
        candidates = [
            candidate._replace(top=top, sd=sd, log_deficit=deficit)
            for candidate, top, sd, deficit in zip(
                comparison.candidates[kept], tops, comparison.sds[kept], deficits[kept], strict=True
            )
        ]
        self.candidates = {candidate.k: candidate for candidate in candidates}
        if self.division is not None and not was_divided:
            # All that may matter have pilots again, in their phases.
            self.new, self.guesses = self.ks, tops
            return
        apart = [_distance(*ends) for ends in pairwise(candidates)]
        # Fewer chains against fewer draws in between.
        max_apart = 2.0 if self.target.is_product() else 0.0
        wanted = _fill_in(self.ks, apart, self.target.ks, max_apart)
        self.new = wanted[~np.isin(wanted, self.ks)]
        self.guesses = _interpolate(self.ks, tops, self.new)
        self.ks = wanted

    def _bound(self, comparison: Comparison, slow: np.ndarray) -> np.ndarray:
        """Return log deficits by bounds alone; divide the labels if that is needed."""
        most, best, guess = self._bounds(comparison, slow)
        matters = slow & (best - most < MAX_LOG_DEFICIT)
        if matters.any() and self._may_divide:
            candidate = comparison.candidates[int(np.argmax(np.where(matters, guess, -np.inf)))]
            self.division, at_least = _divide(
                self.simulation, self.target, candidate, self.max_sweeps
            )
            best, self._may_divide = max(best, at_least), False
        # If the bounds are inconsistent, keep every k.
        best = min(best, most.max())
        return best - most if np.isfinite(best) else np.zeros(len(most))

    def _bounds(
        self, comparison: Comparison, slow: np.ndarray
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
            score = comparison.score[:, stretch]
            placed = [at for at in stretch if self._log_z.get(int(self.ks[at])) is not None]
            top = int(placed[0] if placed else stretch[np.argmax(score[0])])
            log_z = self._rough_log_z(comparison.candidates[top].pair)
            if log_z is None:
                continue
            absolute = score + (comparison.log_z[0, :, top] - log_z)[:, None]
            error = 4 * standard_error(absolute) + np.abs(
                comparison.discretisation_error[stretch] - comparison.discretisation_error[top]
            )
            most[stretch] = np.minimum(most[stretch], absolute[0] + error)
            at = int(np.argmax(absolute[0] - error))
            if absolute[0, at] - error[at] > best:
                best = float(absolute[0, at] - error[at])
                off = (bounds[stretch[at]] - absolute[0, at]) * self.ks[stretch[at]]
        return most, best, bounds - off / self.ks

    def _rough_log_z(self, pair: ChainPair) -> np.ndarray | None:
        """Return log Z at a pair, roughly; None if a transition lies on the way."""
        k = pair.k
        if k not in self._log_z:
            most = min(4e4, _PATH_SHARE / 2 * self.max_sweeps)
            self._log_z[k] = log_z_at(
                self.simulation, k, pair.beta, _ROUGH, most,
                may_divide=False, key=(Purpose.LOG_Z_ROUGHLY,),
            )  # fmt: skip
        return self._log_z[k]


def _find_ends(deficits: np.ndarray, slow: np.ndarray) -> tuple[int, int]:
    """Return the first and the last place that is kept: of those near, and one more on each side.

    A slow k beyond them was excluded by its bound.
    """
    near = np.flatnonzero(deficits < MAX_LOG_DEFICIT)
    first, last = max(near[0] - 1, 0), min(near[-1] + 1, len(deficits) - 1)
    first += int(slow[first] and first < near[0])
    last -= int(slow[last] and last > near[-1])
    return first, last


def log_deficits(score: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return by how much the log posterior of each k is below that of the best, at least.

    Four Monte Carlo errors are allowed for.

    Parameters
    ----------
    score : ndarray of shape (n_replicates, n_k)
        The log posterior of k up to a constant; row 0 is the estimate.
    error : ndarray of shape (n_k,)
        The discretisation error from some k to each: differences of it count.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.posterior.quadrature.which_k import log_deficits
    >>> log_deficits(np.array([[0.0, -5.0]]), error=np.array([0.0, 2.0])).tolist()
    [0.0, 3.0]
    """
    best = int(np.argmax(score[0]))
    noise = 4 * standard_error(score - score[:, [best]])
    return score[0, best] - score[0] - noise - np.abs(error - error[best])


def _divide(
    simulation: Simulation, target: LogPosterior, candidate: Candidate, max_sweeps: float
) -> tuple[Division | None, float]:
    """Divide the labels in two, and find log Z of each part at one k.

    Returns
    -------
    division : Division, or None if chains turn out to cross
    best : float
        A lower bound on the log posterior of this k.
    """
    edges = target.place_edges(candidate.k, candidate.top, candidate.error)

    def weigh(curve: Curve) -> Profile:
        return Profile(target, candidate.k, curve, edges)

    def allow(beta: np.ndarray) -> np.ndarray:
        panels = weigh(path.curves[candidate.k]).find_panels()
        return np.where((beta >= panels[0]) & (beta <= panels[-1]), _ROUGH, np.inf)

    most = min(_PATH_SHARE * max_sweeps, MAX_SWEEPS)
    path = Path(simulation, candidate.k, target.beta_max, _ROUGH, most, divide="slow")
    path.allow = allow
    simulation.run(path)
    curve = path.curves[candidate.k]
    profile = weigh(curve)
    total, top, sd = profile.summarise()
    best = float(total[0] - 4 * standard_error(total))
    if not path.windows:
        return None, best
    nodes, log_masses = integrate(
        lambda beta: profile.log_posterior(beta, slice(1))[0], profile.find_panels()
    )
    log_z = np.array([curve.of_phase(at, nodes, slice(1))[0] for at in range(len(path.windows))])
    masses = softmax(log_masses + log_z - curve(nodes, slice(1)), axis=1)
    betas = masses @ nodes
    spreads = np.sqrt(masses @ nodes**2 - betas**2)
    division = Division(
        path.windows, candidate.k, curve, betas, (betas - top) / sd, spreads / sd, sd
    )
    return division, best


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


def _distance(before: Candidate, after: Candidate) -> float:
    """Return the variance of D from one k to the next, at the same beta."""
    return max(
        pilot.pair.distance(other.k)
        for candidate, other in ((before, after), (after, before))
        for pilot in candidate.pilots
    )


def _thin_out(ks: np.ndarray) -> np.ndarray:
    """Choose values of which each is about 1.35 times the one before, first and last too.

    A larger ratio is fewer pilots against a best k that hides between two.
    """
    n_steps = int(np.ceil(np.log(ks[-1] / ks[0]) / np.log(1.35))) + 1
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
