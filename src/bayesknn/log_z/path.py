"""log Z at one k for every beta, from both ends (Section 3.3, path sampling).

A simulation and a k go in, a curve of log Z comes out, or its value at one pair of chains.

``log Z(0) = n log G``, and at the far end log Z is known again. Pairs of chains stand between, near
enough to each other that their draws overlap, and the draws of each pair and the next give log Z
from one to the other (:mod:`bayesknn.log_z.mbar`; those further away have little to add, and all
together would take longer than the chains). What is missing at the far end is the closure error,
and log Z at each beta is corrected by the part of it that its own error explains: that is least
squares. At one beta alone E[S] / k, the slope of log Z, is integrated from 0, and no far end is
needed.

At the far end most components of the graph have one class. Call a labelling monochrome if every
connected component of the graph of k has. These labellings weigh
``W(beta) = prod over components c of sum over g of exp(beta a_g n_c)`` together, so
``log Z = log W - log P(monochrome)`` at every beta, with no limit taken. Given the clusters of a
Swendsen-Wang sweep the colours are independent, and the probability of a monochrome labelling is
known: ``G ** (components - clusters)`` without class weights. Its average is an estimate of
P(monochrome) that is precise once there are only a few clusters too many. The path can therefore
stop there: no tail is cut off.

At a first-order transition chains do not cross between disordered and ordered labels in any
reasonable time. There the labels are divided by their agreement with the nearest neighbours, and
``Z = Z_disordered + Z_ordered``: each phase is a distribution of its own, within which chains mix
fast, the first is tied to beta = 0 and the second to the far end, so that nothing has to cross.

Where chains stand, how far apart their records are and how much each is trusted is decided by
pilots, which are then forgotten.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import BSpline, CubicSpline, PchipInterpolator, make_interp_spline
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from bayesknn._utils.random import Purpose
from bayesknn.graph import find_components
from bayesknn.labels.mixing import autocorrelation_time
from bayesknn.log_z.chains import ChainPair
from bayesknn.log_z.mbar import MAX_VARIANCE, combine
from bayesknn.log_z.records import N_CHAINS, N_REPLICATES, Setting, Window, join, standard_error
from bayesknn.log_z.simulation import FEWEST_PILOT_SWEEPS, SWEEPS, Pilot, Simulation
from bayesknn.model import BoltzmannModel

# By how much records grow from one round to the next, and rounds at most: less growth costs rounds,
# more overshoots, and where errors do not fall as they should there is an end.
GROWTH, MAX_ROUNDS = (0.25, 3.0), 12
# Sweeps of each chain of a path at least: fewer leave its error unknown, more overrun the limit.
_PATH_SWEEPS = 64


class Curve:
    """log Z along beta in every replicate, through its values at nodes in each phase.

    Where chains do not cross between disordered and ordered labels, ``Z`` is the sum of the two
    phases, each of which is smooth: a quintic spline goes through log Z of each at its own nodes.

    Parameters
    ----------
    phases : sequence of (ndarray of shape (n_nodes,), ndarray of shape (n_replicates, n_nodes))
        Increasing beta, and log Z there.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.path import Curve
    >>> beta = np.linspace(0.0, 2.0, 9)
    >>> Curve([(beta, beta[None] ** 3)])(np.array([0.3, 1.0])).round(6).tolist()
    [[0.027, 1.0]]
    """

    def __init__(self, phases: Sequence[tuple[np.ndarray, np.ndarray]]):
        self.phases = [
            make_interp_spline(nodes, values.T, k=min(5, len(nodes) - 1))
            for nodes, values in phases
        ]

    def __call__(self, beta: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Return log Z in some replicates, of shape (n_rows, n_betas)."""
        parts = [self.of_phase(at, beta, rows) for at in range(len(self.phases))]
        return parts[0] if len(parts) == 1 else np.logaddexp(*parts)

    def of_phase(self, at: int, beta: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Return log Z of one phase; beyond its nodes it goes on as a straight line.

        There it is next to nothing: the slope of the disordered phase is the smaller one.
        """
        spline = self.phases[at]
        spline = BSpline.construct_fast(spline.t, spline.c[:, rows], spline.k)
        inside = np.clip(beta, spline.t[0], spline.t[-1])
        values = spline(inside)
        if np.any(inside != beta):
            values = values + (beta - inside)[:, None] * spline(inside, 1)
        return values.T

    def derivatives(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return log Z and its first two derivatives within the nodes, (n_replicates, n_betas)."""
        log_z = np.array([self.of_phase(at, beta) for at in range(len(self.phases))])
        total = logsumexp(log_z, axis=0)
        inside = [np.clip(beta, spline.t[0], spline.t[-1]) for spline in self.phases]
        first, second = (
            np.array([s(at, order).T for s, at in zip(self.phases, inside, strict=True)])
            for order in (1, 2)
        )
        share = np.exp(log_z - total)
        mean = (share * first).sum(axis=0)
        return total, mean, (share * (second + (first - mean) ** 2)).sum(axis=0)


class Path:
    """Chains along beta at one k that carry log Z from beta = 0 to the far end.

    Parameters
    ----------
    simulation : Simulation
    pilots : list of Pilot
        From :func:`place_pilots`.
    columns : sequence of int
        The k of which log Z is wanted, that of the chains among them.
    max_sweeps : float
        About how many sweeps the first run may make in all.
    divide : bool
        Divide the labels in two where chains are slow too, not only where they stay apart.

    Attributes
    ----------
    phases : list of list of ChainPair
        One phase, or disordered and ordered labels; in each the chains by increasing beta.
    windows : tuple of Window
        The two phases, if there are two.
    curves : dict of int to Curve
        log Z at each column's k.
    missing : ndarray of shape (n_replicates,)
        What is missing at the far end.
    """

    def __init__(
        self,
        simulation: Simulation,
        pilots: list[Pilot],
        columns: Sequence[int] | np.ndarray,
        max_sweeps: float = np.inf,
        divide: bool = False,
    ):
        self.simulation, self.columns = simulation, np.asarray(columns)
        self.k = pilots[0].pair.k
        self.windows: tuple[Window, ...] = ()
        self.curves: dict[int, Curve] = {}
        pairs = [pilot.pair for pilot in pilots]
        apart = [p.pair for p in pilots if p.is_split or (divide and p.is_slow)]
        phases = self._divide(pairs, apart) if apart else [list(map(_place_at, pairs))]
        # Of each chain in the first run.
        most = max(max_sweeps / (2 * N_CHAINS * sum(map(len, phases))), _PATH_SWEEPS)
        work = [[self._make(place, most) for place in places] for places in phases]
        self.phases = [[pair for pair, _ in phase] for phase in work]
        simulation.add_records(chain.from_iterable(work))
        self.update()

    def _make(self, place: _Place, most: float) -> tuple[ChainPair, int]:
        key = (self.k, _name(place.beta), place.stream)
        return self.simulation.new_chain_pair(
            Setting.at(place.beta, self.k), self.columns, key, place.time,
            min(SWEEPS, most), most, **place.options,
        )  # fmt: skip

    def _divide(self, pilots: list[ChainPair], apart: list[ChainPair]) -> list[list[_Place]]:
        """Divide the labels in two: disordered and ordered ones, where pilots stay apart."""
        rank = int(apart[0].columns[0])
        order = np.concatenate([pilot.series(rank).ravel() for pilot in apart])
        # Quantiles further out are noisier, further in they may lie in one phase.
        middle = float(np.mean(np.quantile(order, (0.02, 0.98))))
        self.windows = (Window(rank, -np.inf, middle), Window(rank, middle, np.inf))
        s = np.concatenate([pilot.series(self.k).ravel() / self.k for pilot in apart])
        parts = [s[order < middle], s[order >= middle]]
        # A phase whose share of Z is exp(-14) is nothing: chains go on to there.
        width = 14 / abs(parts[1].mean() - parts[0].mean())
        betas = [pilot.beta for pilot in pilots]
        first = max((b for b in betas if b <= apart[0].beta - width), default=0.0)
        last = min((b for b in betas if b >= apart[-1].beta + width), default=betas[-1])
        inside = []
        for at, (window, part) in enumerate(zip(self.windows, parts, strict=True)):
            n_steps = max(int(np.ceil((last - first) * part.std() / np.sqrt(MAX_VARIANCE))), 4)
            time = max(_time_within(pilot, window) for pilot in apart)
            betas = np.linspace(first, last, n_steps + 1)[1 - at :][:n_steps].tolist()
            inside.append([_Place(beta, time, 2 + at, {"window": window}) for beta in betas])
        # Beyond, where the other phase is nothing, chains have all labels.
        below = [_place_at(pilot) for pilot in pilots if pilot.beta <= first]
        above = [_place_at(pilot) for pilot in pilots if pilot.beta >= last]
        return [below + inside[0], inside[1] + above]

    def update(self) -> None:
        """Compute the curves, and what is missing at the far end, from all records so far."""
        model = self.simulation.model
        nodes, log_z = zip(*map(self._add_up, self.phases), strict=True)
        log_z = [log_z[0] + model.n_points * np.log(model.n_classes), *log_z[1:]]
        missing = self.missing = log_z_from_monochrome(self.phases[-1][-1]) - log_z[-1][:, -1]
        if self.windows:
            log_z[1] = log_z[1] + missing[:, None]
        else:
            noise, of_missing = log_z[0][1:] - log_z[0][0], missing[1:] - missing[0]
            share = -(of_missing @ noise) / (of_missing @ of_missing)
            log_z[0] = log_z[0] + np.outer(missing, np.clip(share, 0.0, 1.0))
        # Of other k it differs by what is smooth in beta.
        ratios = [
            make_interp_spline([pair.beta for pair in pairs], [p.log_ratios() for p in pairs])(at)
            for at, pairs in zip(nodes, self.phases, strict=True)
        ]
        for at, k in enumerate(self.columns.tolist()):
            phases = zip(nodes, log_z, ratios, strict=True)
            self.curves[k] = Curve([(x, log_z + r[:, :, at].T) for x, log_z, r in phases])

    def _add_up(self, pairs: list[ChainPair]) -> tuple[np.ndarray, np.ndarray]:
        """Return nodes along a phase, and log Z there less that at the first, (n_replicates, n)."""
        betas, log_z = [pairs[0].beta], [np.zeros((N_REPLICATES, 1))]
        for before, after in pairwise(pairs):
            middle = (before.beta + after.beta) / 2
            targets = [before.setting, Setting.at(middle, self.k), after.setting]
            both = combine([before, after], targets)
            if not both.is_settled:
                warnings.warn(
                    f"log Z between beta = {before.beta:.3g} and {after.beta:.3g} did not settle: "
                    "it and its error may be wrong",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            values = both.of_targets
            log_z.append(values[:, 1:] - values[:, :1] + log_z[-1][:, -1:])
            betas += [middle, after.beta]
        return np.array(betas), np.concatenate(log_z, axis=1)

    def closure(self) -> float:
        """Return what is missing at the far end in standard errors; NaN at a transition."""
        if self.windows:
            return float("nan")
        return float(self.missing[0] / max(standard_error(self.missing), 1e-12))

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
        curves = self.curves.values()
        knots = [spline.t for curve in curves for spline in curve.phases]
        betas = np.unique(np.concatenate(knots))
        limits = allowed(betas)
        if not np.isfinite(limits).any():
            return []
        errors = np.max([standard_error(curve(betas)) for curve in curves], axis=0)
        excess = float(np.max(errors / limits)) ** 2
        if excess <= 1.0:
            return []
        growth = np.clip(excess - 1, *GROWTH)
        return [
            (pair, int(np.ceil(growth * pair.n_records))) for pairs in self.phases for pair in pairs
        ]


def place_pilots(
    simulation: Simulation,
    k: int,
    k_last: int,
    beta_max: float,
    max_sweeps: float = np.inf,
    divide: bool = False,
) -> list[Pilot]:
    """Run pilots at k: an even grid, what lies beyond beta_max, then halves of what is too long.

    They record k and those up to ``k_last``, and make about ``max_sweeps`` in all: a part of what
    is left each time, as it is not known how many times there will be. With ``divide`` there are no
    more between slow ones, where the labels will be divided.
    """
    components = find_components(simulation.model.graph.neighbors[:k])
    # Phases are told apart by the agreement with the nearest neighbours: fewer than 16 tell them
    # apart less well, more are slow to count after every sweep.
    columns = np.unique([min(k, 16), *range(k, k_last + 1)])
    last = simulation.n_sweeps + max_sweeps

    def run_each(betas: list[float]) -> list[Pilot]:
        # More than a part of the sweeps left would leave nothing to later ones.
        most = (last - simulation.n_sweeps) / (4 * N_CHAINS * len(betas))
        most = max(most, FEWEST_PILOT_SWEEPS)
        return _run_pilots(simulation, k, betas, columns, (k,), most, components=components)

    # With fewer intervals they may step over a transition.
    pilots = run_each(np.linspace(0.0, beta_max, 9).tolist())
    step = beta_max / 8
    # A noisier end of the path would be a shorter one.
    while excess_clusters(pilots[-1].pair) > 0.7:
        pilots += run_each([pilots[-1].pair.beta + step])
        step *= 1.4
    while True:
        new = [
            (before.pair.beta + after.pair.beta) / 2
            for before, after in pairwise(pilots)
            if _are_far(before, after, divide)
        ]
        if not new:
            return pilots
        pilots = sorted([*pilots, *run_each(new)], key=lambda each: each.pair.beta)


def _are_far(before: Pilot, after: Pilot, divide: bool) -> bool:
    """Say whether draws overlap too little; at a transition the labels are divided instead."""
    if any(each.is_split or (divide and each.is_slow) for each in (before, after)):
        return False
    variance = max(each.pair.variance(each.pair.k) for each in (before, after))
    gap = after.pair.setting.rates[0] - before.pair.setting.rates[0]
    return variance * gap**2 > MAX_VARIANCE


def _time_within(pilot: ChainPair, window: Window) -> float:
    """Return the autocorrelation time within a window, from the part of a pilot inside it.

    At least that of a record, which is also assumed where fewer than 50 are inside: within a window
    chains mix fast, whereas the time of the whole pilot is that of changes between the windows.
    """
    times = [1.0]
    for order, series in zip(pilot.series(window.rank), pilot.series(pilot.k), strict=True):
        inside = series[(order >= window.low) & (order < window.high)]
        if len(inside) >= 50:
            times.append(autocorrelation_time(inside))
    return pilot.thin * float(np.nanmax(times))


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
    tolerance or ``max_sweeps`` are made; the discretisation error is part of it.
    None if a first-order transition lies on the way, or chains that may be at one: they cross so
    rarely that their means are off by more than their errors say.
    """
    model, k = simulation.model, last.k
    may_be_slow |= simulation.is_continuous
    start = model.n_points * np.log(model.n_classes)
    if last.beta == 0.0:
        return np.full(N_REPLICATES, start)

    end = simulation.n_sweeps + max_sweeps

    def run_each(betas: list[float]) -> list[Pilot]:
        most = (end - simulation.n_sweeps) / (N_CHAINS * len(betas))
        return _run_pilots(simulation, k, betas, [k], (*key, k), most, length=4)

    # Shorter steps cost sweeps, longer ones may pass over a bend.
    n_steps = max(2, int(np.ceil(4 * last.beta)))
    path = run_each(np.linspace(0.0, last.beta, n_steps + 1)[:-1].tolist())
    while True:
        if any(pilot.is_split or (pilot.is_slow and not may_be_slow) for pilot in path):
            return None
        pairs = [*(pilot.pair for pilot in path), last]
        total, discretisation = _integrate(pairs)
        is_smooth = discretisation.sum() < max(tolerance, float(standard_error(total))) / 2
        if is_smooth or simulation.n_sweeps > end:
            break
        # The worst first.
        bent = np.flatnonzero(discretisation > discretisation.max() / 4)
        new = run_each([(pairs[at].beta + pairs[at + 1].beta) / 2 for at in bent])
        path = sorted([*path, *new], key=lambda pilot: pilot.pair.beta)
    left = end - simulation.n_sweeps
    if standard_error(total) > tolerance / 2 and left > 0:
        most = max(left / (2 * len(path)), _PATH_SWEEPS)
        pairs = [
            simulation.new_chain_pair(
                pair.setting, [k], (*key, k, _name(pair.beta), 1), pair.time, _PATH_SWEEPS, most,
                initial=pair.labels,
            )[0]
            for pair in pairs[:-1]
        ]  # fmt: skip
        n_records = [max(int(most / 2 / pair.thin), pair.length) for pair in pairs]
        while True:
            simulation.add_records(zip(pairs, n_records, strict=True))
            total, discretisation = _integrate([*pairs, last])
            excess = (standard_error(total) / tolerance) ** 2
            if excess <= 1.0 or simulation.n_sweeps > end - left / 2:
                break
            growth = float(np.clip(excess - 1, 0.25, 1.0))
            n_records = [int(np.ceil(growth * pair.n_records)) for pair in pairs]
    return start + total + discretisation.sum() * last.noise(3)


def _integrate(pairs: list[ChainPair]) -> tuple[np.ndarray, np.ndarray]:
    """Integrate E[S_k] / k along beta from each pair to the next, by a spline through the means.

    Variances, which are its slopes, are much noisier on many points.

    Returns
    -------
    total : ndarray of shape (n_replicates,)
    discretisation : ndarray of shape (n_pairs - 1,)
        Its error: by how much a stiffer curve through the same means differs in each interval.
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

    Past chains that are slow, too, if there are sweeps for a path. It has at most so many pairs
    because the square of the integral of the standard deviation of S / k is at most beta times that
    of the variance, by which E[S] / k grows.
    """
    model, k = simulation.model, pair.k
    growth = pair.mean(k) / k - model.n_points * model.weights.mean() / model.n_classes
    n_pairs = np.sqrt(pair.beta * max(growth, 0.0) / MAX_VARIANCE)
    log_z = log_z_from_zero(
        simulation, pair, tolerance, max_sweeps, (Purpose.LOG_Z,),
        may_be_slow=n_pairs * N_CHAINS * SWEEPS > max_sweeps,
    )  # fmt: skip
    if log_z is not None:
        return log_z
    _, curve = follow_path(
        simulation, k, beta_max, max_sweeps, lambda curve, beta: np.full(beta.shape, tolerance)
    )
    return curve(np.array([pair.beta]))[:, 0]


def follow_path(
    simulation: Simulation,
    k: int,
    beta_max: float,
    max_sweeps: float,
    allow: Callable[[Curve, np.ndarray], np.ndarray],
) -> tuple[Path, Curve]:
    """Run a path at one k, divided in two where chains are slow, and return its curve too.

    Until the errors are what ``allow(curve, beta)`` says, or about ``max_sweeps`` are made, and as
    many by pilots.
    """
    pilots = place_pilots(simulation, k, k, beta_max, max_sweeps, divide=True)
    before = simulation.n_sweeps
    path = Path(simulation, pilots, [k], max_sweeps, divide=True)
    while True:
        curve = path.curves[k]
        work = path.plan(partial(allow, curve))
        if not work or simulation.n_sweeps - before > max_sweeps:
            return path, curve
        simulation.add_records(work)
        path.update()


class _Place(NamedTuple):
    """Where chains are to stand, and the key of their random numbers beside k and beta."""

    beta: float
    time: float
    stream: int
    options: dict[str, Any]


def _place_at(pilot: ChainPair) -> _Place:
    """Return where a pilot stood, for the chains that are recorded there."""
    options = {"initial": pilot.labels, "components": pilot.components}
    return _Place(pilot.beta, pilot.time, 1, options)


def _run_pilots(
    simulation: Simulation,
    k: int,
    betas: list[float],
    columns: Sequence[int] | np.ndarray,
    key: tuple[int, ...],
    most: float,
    **options: Any,
) -> list[Pilot]:
    """Run pilots at k, each chain of which makes about so many sweeps at most."""

    def run(beta: float) -> Pilot:
        return simulation.pilot(Setting.at(beta, k), columns, (*key, _name(beta)), most, **options)

    return simulation.map(run, betas)


def _name(beta: float) -> int:
    """Return a number that stands for a beta in the keys of random numbers."""
    return round(beta * 2**40)


def log_monochrome_weight(model: BoltzmannModel, components: np.ndarray, beta: float) -> float:
    """Return log W(beta), the total weight of the monochrome labellings."""
    sizes = np.bincount(components)
    return float(logsumexp(beta * np.outer(sizes, model.weights), axis=1).sum())


def excess_clusters(pair: ChainPair) -> float:
    """Return about log(1 + relative variance) of a record of P(monochrome).

    It comes from the mean number of clusters too many, as if that were Poisson: where a few
    records dominate the others, their own variance does not show it.
    """
    return float(pair.monochrome[:, :, 1].mean() * (1 - 1 / pair.model.n_classes) ** 2)


def log_z_from_monochrome(pair: ChainPair) -> np.ndarray:
    """Return log Z at a pair that records P(monochrome), in every replicate."""
    chance = pair.monochrome[:, :, 0]
    averages = pair.resample(chance)
    averages += averages[0] * pair.noise_floor(1)
    weight = log_monochrome_weight(pair.model, pair.components, pair.beta)
    # The log of a mean is on average too low by half the mean's relative variance.
    batches = join(pair.batch(chance))
    bias = batches.var(ddof=1) / len(batches) / averages[0] ** 2 / 2
    return weight - np.log(np.maximum(averages, averages[0] / 20)) - bias
