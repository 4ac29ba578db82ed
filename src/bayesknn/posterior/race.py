"""Which k can matter to the posterior: a first look at some of them (KERNELS, the race).

For each k the ridge is where E[S_k] equals the observed S_k. Pilots stand near the ridge of a few
k, log Z is bridged from each to the next, and k that are far behind are dropped; more are put
between the others until neighbours are alike.

Where a pilot's chains stay apart or are very split, there is a first-order transition, and no
bridge leads past it. Such a k is given up only if a bound without any simulation says so: log Z is
at least that of independent labels with the same class probabilities p at every point,
``n H(p) + beta * n * sum over g of a_g p_g**2`` for any p (Gibbs and Bogoliubov), which on graphs
with many neighbours is all but an equality. It is compared with log Z itself at the best k on this
side, integrated from beta = 0.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator, UnivariateSpline
from scipy.special import entr, logsumexp

from bayesknn.log_z.bridge import Step, add_up, bridge
from bayesknn.log_z.chains import ChainPair, Setting
from bayesknn.log_z.curve import Curve
from bayesknn.log_z.ladder import log_z_from_zero
from bayesknn.log_z.simulation import Pilot, Simulation
from bayesknn.posterior.ridge_target import Profile, Target

# Values of k this far behind in log posterior are dropped.
BEHIND = 12.0
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
_N_BOUND = 801
# Of log Z at the k that the others are compared with, the error that will do, and the sweeps that
# may be made for it.
_ROUGH, _MAX_SWEEPS = 1.0, 4e4


class Look(NamedTuple):
    """A first look at one k.

    Attributes
    ----------
    pilot : Pilot
        Near the ridge.
    top, error : float
        Where the ridge is, as far as the pilot tells, and how far off that may be.
    mass : ndarray of shape (n_replicates,)
        The log posterior of k, but for log Z at the pilot.
    """

    pilot: Pilot
    top: float
    error: float
    mass: np.ndarray

    @property
    def pair(self) -> ChainPair:
        """The chains of the pilot."""
        return self.pilot.pair


def run_race(simulation: Simulation, target: Target) -> list[Look]:
    """Choose the k at which chains are to stand, among all that the prior allows.

    They come in increasing k and are near enough to each other.
    """
    every = target.ks
    max_apart = _MAX_APART if target.is_product() else 0.0
    looks: dict[int, Look] = {}
    absolute: dict[int, np.ndarray | None] = {}
    steps: dict[tuple[int, int], Step] = {}
    ks, search, stage = _thin_out(every), _SEARCH, 0
    new, guesses = ks, np.ones(len(ks))
    while True:
        betas = simulation.each(
            lambda at, n=new, g=guesses, s=search, t=stage: find_ridge(
                simulation, target, int(n[at]), float(g[at]), s, t
            ),
            range(len(new)),
        )
        looks |= _look(simulation, target, new, betas, ks, stage)
        here = [looks[k] for k in ks.tolist()]
        for before, after in pairwise(ks.tolist()):
            if (before, after) not in steps:
                steps[before, after] = bridge(looks[before].pair, looks[after].pair)
        path = [steps[pair] for pair in pairwise(ks.tolist())]
        split = np.array([look.pilot.is_split for look in here])
        behind = _find_behind(here, path) if not split.any() else np.full(len(ks), np.inf)
        if split.any():
            behind = _find_behind_absolutely(simulation, target, here, path, split, absolute)
        near = np.flatnonzero(behind < BEHIND)
        first, last = max(near[0] - 1, 0), min(near[-1] + 1, len(ks) - 1)
        # A split k beyond the ends was excluded by its bound.
        first += int(split[first] and first < near[0])
        last -= int(split[last] and last > near[-1])
        stage += 1
        kept = here[first : last + 1]
        apart = [_distance(*ends) for ends in pairwise(kept)]
        wanted = _fill_in(ks[first : last + 1], apart, every, max_apart)
        new = wanted[~np.isin(wanted, ks)]
        tops = _smooth(here) if max_apart > 0 else np.array([look.top for look in here])
        if len(new) == 0:
            return [look._replace(top=top) for look, top in zip(kept, tops[first:], strict=False)]
        guesses = _interpolate(ks, tops, new)
        looks = {look.pair.k: look for look in kept}
        # On many points the labels of those that are dropped take memory.
        del here
        ks, search = wanted, _SEARCH[-1:]


def find_ridge(
    simulation: Simulation, target: Target, k: int, beta: float, search: tuple[int, ...], stage: int
) -> float:
    """Find the top of the posterior at k, by Newton steps kept within a bracket.

    Where the prior is flat, that is where E[S_k] is the observed S_k. To within about a posterior
    standard deviation of beta; nothing later needs more.
    """
    low, high = target.limits[k]
    beta, initial = float(np.clip(beta, low, high)), target.labels[simulation.layout.order]
    for turn in range(_MAX_SEARCH if low < high else 0):
        pair = simulation.pair(
            Setting.at(beta, k), [k], (stage, k, turn), initial=initial, n_warmup=_SETTLE
        )
        pair.advance(search[min(turn, len(search) - 1)])
        mean, variance = pair.mean(k) / k, max(pair.variance(k) / k**2, 1e-9)
        margin = 0.5 / np.sqrt(variance)
        wanted = target.mean_wanted(k, beta)
        if mean < wanted:
            low = max(low, beta - margin)
        else:
            high = min(high, beta + margin)
        step = (wanted - mean) / variance
        proposal = beta + float(np.clip(step, -_MAX_STEP, _MAX_STEP))
        beta = proposal if low <= proposal <= high else (low + high) / 2
        initial = pair.labels
        if turn + 1 >= len(search) and abs(step) < 2 * margin:
            break
    return float(np.clip(beta, *target.limits[k]))


def _look(simulation, target: Target, new, betas, ks, stage) -> dict[int, Look]:
    """Look at the k that are new among ``ks``, near their ridges."""
    before, after = np.append(ks[0], ks[:-1]), np.append(ks[1:], ks[-1])

    def run(k_and_beta: tuple[int, float]) -> Look:
        k, beta = k_and_beta
        at = np.searchsorted(ks, k)
        columns = target.ks[(target.ks >= before[at]) & (target.ks <= after[at])]
        column = int(np.searchsorted(columns, k))
        low, high = target.limits[k]
        for turn in range(_MAX_TURNS):
            pilot = simulation.pilot(
                Setting.at(beta, k), columns, (stage, k, 100 + turn), whole=columns
            )
            _, mean, variance = (part[:, [column]] for part in pilot.pair.reweighted)
            sd = float(1 / np.sqrt(max(variance[0, 0], 1e-12)))
            away = (target.mean_wanted(k, beta) - mean[0, 0]) * sd
            reach = min(max(3 * sd, _CLOSE), MAX_REACH)
            top = float(np.clip(beta + np.clip(away * sd, -reach, reach), *target.limits[k]))
            is_near = abs(away) < _NEAR or abs(away * sd) < _CLOSE
            if pilot.is_split or is_near or abs(top - beta) < sd / 4:
                break
            # The search was too short to tell, as it is next to a transition.
            low, high = (beta, high) if away > 0 else (low, beta)
            beta = top if low < top < high else (low + high) / 2
        curve = Curve(np.array([pilot.pair.beta]), np.zeros_like(mean), mean, variance)
        profile = Profile(k, (curve,), (1.0,), pilot.pair.beta, sd)
        # A third of a posterior standard deviation does not matter.
        error = sd * np.hypot(0.3, mean.std() * sd)
        return Look(pilot, top, error, profile.log_total(target, profile.find_span(target)))

    found = simulation.each(run, zip(new.tolist(), betas, strict=True))
    simulation.n_sweeps += sum(2 * look.pair.n_sweeps for look in found)
    return {look.pair.k: look for look in found}


def _find_behind(looks: list[Look], path: list[Step]) -> np.ndarray:
    """Return how far each k is behind the best in log posterior, at least."""
    score = np.column_stack([look.mass for look in looks]) - add_up(path)
    doubt = np.cumsum([0.0] + [step.doubt for step in path])
    return find_behind(score, doubt, 4)


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
    error = (score - score[:, [best]]).std(axis=0)
    return score[0, best] - score[0] - n_errors * error - np.abs(doubt - doubt[best])


def _find_behind_absolutely(simulation, target, looks, path, split, absolute) -> np.ndarray:
    """Do the same where some k are at a transition: bridges do not lead past those.

    Every stretch between them is placed by log Z itself at the best of its k, and every k at a
    transition by an upper bound of its posterior. What was found of log Z is kept in ``absolute``.
    """
    bounds = np.array([bound_posterior(target, look.pair.k) for look in looks])
    behind = -bounds
    best, error = -np.inf, 0.0
    fast = np.flatnonzero(~split)
    for stretch in np.split(fast, np.flatnonzero(np.diff(fast) > 1) + 1):
        if len(stretch) == 0:
            continue
        here = [looks[at] for at in stretch]
        steps = path[stretch[0] : stretch[-1]]
        score = np.column_stack([look.mass for look in here]) - add_up(steps)
        known = [at for at, look in enumerate(here) if absolute.get(look.pair.k) is not None]
        top = known[0] if known else int(np.argmax(score[0]))
        k = here[top].pair.k
        if k not in absolute:
            absolute[k] = log_z_from_zero(
                simulation, here[top].pair, _ROUGH, _MAX_SWEEPS, (k, 1000)
            )
        log_z = absolute[k]
        if log_z is None:
            continue
        best_here = int(np.argmax(score[0]))
        height = here[top].mass - log_z + score[:, best_here] - score[:, top]
        behind[stretch] = _find_behind(here, steps) - height[0]
        if height[0] > best:
            best, error = height[0], 4 * height.std()
    if best == -np.inf:
        return np.zeros(len(looks))
    return behind + best - error


def bound_posterior(target: Target, k: int) -> float:
    """Return an upper bound on the log of the posterior of k, not normalised."""
    model = target.model
    weights, n_classes = model.weights, model.n_classes
    beta = np.linspace(*target.limits[k], _N_BOUND)
    # One class, the heaviest, has probability p, and the others share the rest.
    p = np.linspace(1 / n_classes, 1.0, 200)[:, None]
    rest = (1 - p) / (n_classes - 1)
    heaviest = int(np.argmax(weights))
    entropy = entr(p) + (n_classes - 1) * entr(rest)
    energy = weights[heaviest] * p**2 + (weights.sum() - weights[heaviest]) * rest**2
    log_z = model.n_points * np.max(entropy + beta * energy, axis=0)
    log_posterior = target.log_weight(k)(beta) - log_z
    if beta[0] == beta[-1]:
        return float(log_posterior[0])
    return float(logsumexp(log_posterior) + np.log(beta[1] - beta[0]))


def _distance(before: Look, after: Look) -> float:
    """Return the variance of D from the k of one look to that of the next, at the same beta."""
    ks = (before.pair.k, after.pair.k)
    return max(
        float((pair.beta * (pair.series(ks[1]) / ks[1] - pair.series(ks[0]) / ks[0])).var())
        for pair in (before.pair, after.pair)
    )


def _smooth(looks: list[Look]) -> np.ndarray:
    """Return where the ridge is at each k, from its neighbours too where chains are split."""
    tops = np.array([look.top for look in looks])
    if len(looks) < 5:
        return tops
    ks = np.array([look.pair.k for look in looks])
    return UnivariateSpline(np.log(ks), tops, [1 / look.error for look in looks])(np.log(ks))


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
