"""Chains along beta that give log Z at one k (Section 3.3, path sampling).

A simulation and a k go in, a curve of log Z comes out, or its value at one beta.

``log Z(0) = n log G``. Pairs of chains run at increasing beta, and log Z follows from each to the
next (:mod:`bayesknn.log_z.estimate`). A path that is to serve every beta goes on to the far end,
where log Z is known again. The difference there is the closure error, and log Z at each beta is
corrected by the part of it that its own error explains: that is least squares. A path to one beta
ends at it.

At a first-order transition chains do not cross between disordered and ordered labels in any
reasonable time. There the labels are divided by their agreement with the nearest neighbours, and
``Z = Z_disordered + Z_ordered``: each phase is a distribution of its own, within which chains mix
fast, the first is tied to beta = 0 and the second to the far end, so that nothing has to cross.

At which beta chains run, how far apart their records are and how much each is trusted is decided by
pilots, which are left out of the estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.interpolate import make_interp_spline

from bayesknn.graph import find_components
from bayesknn.labels.mixing import autocorrelation_time
from bayesknn.log_z.chains import ChainPair
from bayesknn.log_z.estimate import (
    Curve,
    are_far,
    compare_ks,
    excess_clusters,
    follow,
    integrate_means,
    log_z_from_monochrome,
)
from bayesknn.log_z.mbar import MAX_VARIANCE
from bayesknn.log_z.records import N_CHAINS, N_REPLICATES, Setting, Window, standard_error
from bayesknn.log_z.simulation import (
    FEW_SWEEPS,
    FEWEST_PILOT_SWEEPS,
    SWEEPS,
    Pilot,
    Simulation,
    Work,
)

# Multiple of the error asked for, above which there is a warning. Errors are themselves estimated:
# a smaller value warns of noise, a larger one hides a tolerance that was missed.
_SLACK = 1.2

Allow = Callable[[np.ndarray], np.ndarray]
Divide = Literal["never", "split", "slow"]


class _Place(NamedTuple):
    """Setting of a pair of chains that is to run.

    ``stream`` tells its random numbers from those of other pairs at the same k and beta. The pilot
    is the one that ran there, if one did.
    """

    beta: float
    time: float
    stream: int
    options: dict[str, Any]
    pilot: ChainPair | None = None


class Path:
    """Chains along beta at one k, from beta = 0 to ``end``.

    Parameters
    ----------
    simulation : Simulation
    k : int
    end : float
    tolerance : float
        Error of log Z that is allowed up to ``end``.
    max_sweeps : float
        About how many sweeps may be made, half of them by pilots.
    to_far_end : bool
        Go on beyond ``end`` to where log Z is known again.
    divide : {"never", "split", "slow"}
        Divide the labels in two where chains stay apart, or where they are slow too.
    key : tuple of int
        Of the random numbers, beside k and beta.

    Attributes
    ----------
    allow : callable
        ``allow(betas)`` is the error allowed at some beta, infinite where it does not matter: by
        default the tolerance up to ``end``.
    pilots : list of Pilot
        By increasing beta.
    columns : sequence of int
        The k of which log Z is wanted, that of the chains among them.
    phases : list of list of ChainPair
        One phase, or disordered and ordered labels; in each the chains by increasing beta.
    windows : tuple of Window
        The two phases, if there are two.
    curves : dict of int to Curve
        log Z at each column's k.
    missing : ndarray of shape (n_replicates,)
        log Z at the far end less the estimate there from beta = 0, or of the second phase.
    """

    def __init__(
        self,
        simulation: Simulation,
        k: int,
        end: float,
        tolerance: float,
        max_sweeps: float,
        *,
        to_far_end: bool = True,
        divide: Divide = "split",
        key: tuple[int, ...] = (),
    ):
        self.simulation, self.k, self.end = simulation, k, end
        self.allow: Allow = lambda betas: np.where(betas <= end * (1 + 1e-9), tolerance, np.inf)
        self.max_sweeps, self.to_far_end, self.divide = max_sweeps, to_far_end, divide
        self.key = (*key, k)
        self.columns: Sequence[int] | np.ndarray = [k]
        self.pilots: list[Pilot] = []
        self.phases: list[list[ChainPair]] = []
        self.windows: tuple[Window, ...] = ()
        self.curves: dict[int, Curve] = {}

    def plan(self) -> Work:
        """Return the first records of all chains, then more where errors are too large."""
        if not self.phases:
            if not self.pilots:
                self.run_pilots()
            return self.place()
        self.update()
        return self.refine()

    @property
    def _n_sweeps(self) -> int:
        """Sweeps that pilots and chains of this path have made."""
        pairs = [*(pilot.pair for pilot in self.pilots), *chain.from_iterable(self.phases)]
        return N_CHAINS * sum(pair.sweeps_per_chain for pair in pairs)

    @property
    def apart(self) -> list[ChainPair]:
        """The pilots between which the labels are to be divided."""
        return [p.pair for p in self.pilots if p.is_split or (self.divide == "slow" and p.is_slow)]

    def run_pilots(self, k_last: int | None = None) -> None:
        """Run pilots: an even grid, what lies beyond its end, then halves of what is too long.

        They record k and those up to ``k_last``. There are no more between pilots that stay apart,
        where the labels will be divided.
        """
        simulation, k = self.simulation, self.k
        components = find_components(simulation.model.graph.neighbors[:k])
        # Phases are told apart by the agreement with the nearest neighbours: fewer than 16 tell
        # them apart less well, more are slow to count after every sweep.
        columns = np.unique([min(k, 16), *range(k, (k_last or k) + 1)])

        def run_each(betas: list[float]) -> list[Pilot]:
            # More than a part of the sweeps left would leave nothing to later ones.
            left = self.max_sweeps / 2 - self._n_sweeps
            most = max(left / (4 * N_CHAINS * len(betas)), FEWEST_PILOT_SWEEPS)

            def run(beta: float) -> Pilot:
                key = (*self.key, _name(beta))
                return simulation.pilot(
                    Setting.at(beta, k), columns, key, most, components=components
                )

            return simulation.map(run, betas)

        # Fewer intervals may step over a transition.
        self.pilots = run_each(np.linspace(0.0, self.end, 9).tolist())
        step = self.end / 8
        while True:
            apart = self.apart
            if apart and self.divide == "never":
                return
            self.to_far_end |= bool(apart)
            # A noisier end of the path would be a shorter one.
            while self.to_far_end and excess_clusters(self.pilots[-1].pair) > 0.7:
                self.pilots += run_each([self.pilots[-1].pair.beta + step])
                step *= 1.4
            pairs = [pilot.pair for pilot in self.pilots]
            far = np.array([not {*ends} & {*apart} and are_far(*ends) for ends in pairwise(pairs)])
            if not self.to_far_end:
                # A path to one beta may be integrated where few sweeps are left: the worst first.
                errors = integrate_means(pairs)[1] * far
                far &= (errors >= errors.max() / 4) & (self._n_sweeps <= self.max_sweeps / 2)
            if not far.any():
                return
            new = [(pairs[at].beta + pairs[at + 1].beta) / 2 for at in np.flatnonzero(far)]
            self.pilots = sorted([*self.pilots, *run_each(new)], key=lambda each: each.pair.beta)

    def place(self, columns: Sequence[int] | np.ndarray | None = None) -> Work:
        """Create the chains from which log Z is computed, and return their first records."""
        self.columns = self.columns if columns is None else columns
        pairs, apart = [pilot.pair for pilot in self.pilots], self.apart
        phases = self._divide(pairs, apart) if apart else [list(map(_place_at, pairs))]
        # Records of each chain in the first run.
        left = self.max_sweeps - self._n_sweeps
        most = max(left / (2 * N_CHAINS * sum(map(len, phases))), FEW_SWEEPS)
        self._far = [
            [bool(a.pilot and b.pilot and are_far(a.pilot, b.pilot)) for a, b in pairwise(phase)]
            for phase in phases
        ]
        work = [[self._make(place, most) for place in phase] for phase in phases]
        self.phases = [[pair for pair, _ in phase] for phase in work]
        return list(chain.from_iterable(work))

    def _make(self, place: _Place, most: float) -> tuple[ChainPair, int]:
        return self.simulation.new_chain_pair(
            Setting.at(place.beta, self.k), self.columns,
            (*self.key, _name(place.beta), place.stream), place.time,
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
        """Compute the curves, and the difference at the far end, from all records so far."""
        model = self.simulation.model
        nodes, parts = zip(*map(follow, self.phases, self._far), strict=True)
        log_z = [parts[0] + model.n_points * np.log(model.n_classes), *parts[1:]]
        self.missing = np.zeros(N_REPLICATES)
        if self.to_far_end:
            self.missing = log_z_from_monochrome(self.phases[-1][-1]) - log_z[-1][:, -1]
        if self.windows:
            log_z[1] = log_z[1] + self.missing[:, None]
        elif self.to_far_end:
            noise, of_missing = log_z[0][1:] - log_z[0][0], self.missing[1:] - self.missing[0]
            share = -(of_missing @ noise) / (of_missing @ of_missing)
            log_z[0] = log_z[0] + np.outer(self.missing, np.clip(share, 0.0, 1.0))
        self.curves[self.k] = Curve(list(zip(nodes, log_z, strict=True)))
        others = np.setdiff1d(self.columns, self.k)
        if len(others) == 0:
            return
        # The curve of another k differs by a function that is smooth in beta.
        ratios = [
            make_interp_spline([p.beta for p in pairs], [compare_ks(p, others) for p in pairs])(at)
            for at, pairs in zip(nodes, self.phases, strict=True)
        ]
        for at, k in enumerate(others.tolist()):
            phases = zip(nodes, log_z, ratios, strict=True)
            self.curves[k] = Curve([(x, log_z + r[:, :, at].T) for x, log_z, r in phases])

    def closure(self) -> float:
        """Return the difference at the far end in standard errors; NaN at a transition."""
        if self.windows:
            return float("nan")
        return float(self.missing[0] / max(standard_error(self.missing), 1e-12))

    def find_fault(self, betas: np.ndarray) -> tuple[float, list[str]]:
        """Return the largest error at some beta as a multiple of what is allowed, and a warning.

        There is no warning, but an empty list, if the error is hardly larger than allowed.
        """
        limits, errors = self.allow(betas), standard_error(self.curves[self.k](betas))
        at = int(np.argmax(errors / limits))
        excess = float(errors[at] / limits[at])
        sentence = (
            f"log Z is known only to {errors[at]:.2g} at k={self.k}, beta={betas[at]:.3f}, where "
            f"{limits[at]:.2g} was asked for: the chains there are slow, or all sweeps of a path "
            "were made; allow a larger tolerance or a smaller k_max"
        )
        return excess, [sentence] if excess > _SLACK else []

    def refine(self) -> Work:
        """Plan what brings the errors down to what is allowed."""
        curves = self.curves.values()
        knots = [spline.t for curve in curves for spline in curve.phases]
        betas = np.unique(np.concatenate([*knots, [self.end]]))
        errors = np.max([standard_error(curve(betas)) for curve in curves], axis=0)
        pairs = list(chain.from_iterable(self.phases))
        n_left = self.max_sweeps - self._n_sweeps
        return self.simulation.extend(pairs, float(np.max(errors / self.allow(betas))), n_left)


def log_z_at(
    simulation: Simulation,
    k: int,
    beta: float,
    tolerance: float,
    max_sweeps: float,
    *,
    may_divide: bool = True,
    key: tuple[int, ...] = (),
) -> np.ndarray | None:
    """Return log Z at one (beta, k) in every replicate.

    Its error meets the tolerance, or about ``max_sweeps`` are made. None if chains stay apart on
    the way, and the labels may not be divided. Slow chains are accepted where the sweeps are too
    few for a path in two phases. It has at most ``n_pairs`` pairs, because the square of the
    integral of the standard deviation of S / k is at most beta times that of the variance, by which
    E[S] / k grows.
    """
    model = simulation.model
    if beta == 0.0:
        return np.full(N_REPLICATES, model.n_points * np.log(model.n_classes))
    growth = model.n_points * (model.weights.max() - model.weights.mean() / model.n_classes)
    n_pairs = np.sqrt(beta * growth / MAX_VARIANCE)
    divide: Divide = "never"
    if may_divide:
        is_affordable = n_pairs * N_CHAINS * SWEEPS <= max_sweeps
        divide = "slow" if is_affordable and not simulation.is_continuous else "split"

    path = Path(
        simulation, k, beta, tolerance, max_sweeps, to_far_end=False, divide=divide, key=key
    )
    path.run_pilots()
    if path.apart and not may_divide:
        return None
    simulation.run(path)
    return path.curves[k](np.array([beta]))[:, 0]


def _place_at(pilot: ChainPair) -> _Place:
    """Return the place of a pilot, for the chains that replace it."""
    options = {"initial": pilot.labels, "components": pilot.components}
    return _Place(pilot.beta, pilot.time, 1, options, pilot)


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


def _name(beta: float) -> int:
    """Return a number that stands for a beta in the keys of random numbers."""
    return round(beta * 2**40)
