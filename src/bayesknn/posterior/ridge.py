"""log Z where the posterior is: along the ridge beta_hat(k) (Section 3.3 done backwards; KERNELS).

Only differences of log Z near the ridge matter to the posterior. For each k the ridge is where
E[S_k] equals the observed S_k. Neighbouring values of k are joined by the trapezium rule with end
correction, ``(E0[D] + E1[D]) / 2 + (V0[D] - V1[D]) / 12`` with
``D = beta1 / k1 * S_k1 - beta0 / k0 * S_k0``, and around the ridge log Z is the integral in beta of
a cubic Hermite curve through E[S_k] / k, whose slope is Var[S_k] / k**2. A first walk over a few k
shows which fall far behind; the others are walked again, every one of them, until the error is
small enough. Errors come from resampled batches of every node, carried through to the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy.interpolate import PchipInterpolator
from scipy.special import logsumexp, softmax

from bayesknn.exceptions import PhaseTransitionWarning
from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.likelihood.nodes import Field, Node, lay_out
from bayesknn.posterior.curves import Curve, integrate_from_zero, integrate_link

N_REPLICATES = 64
# Values of k this far behind in log posterior are dropped.
_BEHIND = 12.0
_COARSE_RATIO = 1.35
# Steps of the search for the ridge: records taken at each.
_SEARCH: tuple[int, ...] = (4, 4, 8, 16)
_PILOT_RECORDS = 48
_FIRST_RECORDS = 128
_WARMUP = 40
# Outer nodes of a curve, in posterior standard deviations from the ridge.
_OUTER = 1.7
_MAX_STEP = 0.5
_MAX_SEARCH = 16
_SETTLE = 10
# A link is trusted while the end correction is below this; see KERNELS, Var(D) about 3.
_MAX_CORRECTION = 0.3
# Shares of k, relative to the largest, below which no further work is done for it.
_MATTERS = 1e-3
_MAX_ROUNDS = 12
_N_GRID = 81
_MAX_TURNS = 6


@dataclass
class Ridge:
    """log Z around the ridge for the values of k that matter.

    Attributes
    ----------
    k_values : ndarray of int
    curves : list of Curve
        log Z(beta, k) - log Z(beta_hat, k) for each of them.
    centres : list of Node
        The nodes on the ridge itself.
    log_normalizers : ndarray of shape (n_replicates, n_k)
        log Z(beta_hat, k) up to a common constant; row 0 is the estimate.
    n_sweeps : int
        Sweeps made in all.
    warnings : list of str
    """

    k_values: np.ndarray
    curves: list[Curve]
    centres: list[Node]
    log_normalizers: np.ndarray
    n_sweeps: int
    warnings: list[str]


class RidgeWalk:
    """Finds the ridge and integrates along it.

    Parameters
    ----------
    likelihood : CoherentLikelihood
    k_max : int
    beta_max : float
    seeds : numpy.random.SeedSequence
    n_jobs : int, optional
        Threads. The result does not depend on them.
    report : callable, optional
        Told after every piece of work, for a progress bar.
    """

    def __init__(
        self,
        likelihood: CoherentLikelihood,
        k_max: int,
        beta_max: float,
        seeds: np.random.SeedSequence,
        n_jobs: int | None = None,
        report: Callable[[float], None] = lambda steps: None,
    ):
        self.report = report
        self.likelihood, self.k_max, self.beta_max = likelihood, k_max, beta_max
        self.seeds, self.n_jobs = seeds, n_jobs
        self.field: Field = lay_out(likelihood.graph, likelihood.n_classes, likelihood.class_weight)
        self.observed = likelihood.agreement
        self.labels = likelihood.labels[self.field.order]
        self.stage = 0
        self.nodes: list[Node] = []

    def each(self, function: Callable, *arguments: Iterable) -> list:
        """Call a function for each set of arguments, in threads."""

        def call(*row):
            result = function(*row)
            self.report(1)
            return result

        calls = (delayed(call)(*row) for row in zip(*arguments, strict=True))
        return Parallel(n_jobs=self.n_jobs, prefer="threads")(calls)

    def node(self, beta: float, k: int, columns: list[int], place: int, initial=None) -> Node:
        """Make a node whose random numbers depend on its place alone."""
        spawn_key = (*self.seeds.spawn_key, self.stage, k, place)
        seeds = np.random.SeedSequence(self.seeds.entropy, spawn_key=spawn_key)
        node = Node(self.field, beta, k, columns, seeds, initial)
        self.nodes.append(node)
        return node

    def find_ridge(self, k: int, beta: float, steps: tuple[int, ...] = _SEARCH) -> float:
        """Find where E[S_k] is the observed S_k, by Newton steps kept within a bracket.

        To within about a posterior standard deviation of beta; nothing later needs more.
        """
        low, high = 0.0, self.beta_max
        target, initial = self.observed[k - 1] / k, self.labels
        for turn in range(_MAX_SEARCH):
            node = self.node(beta, k, [k], turn, initial)
            node.advance(steps[min(turn, len(steps) - 1)], n_warmup=_SETTLE)
            mean, variance = node.mean()[0] / k, max(node.variance()[0] / k**2, 1e-9)
            margin = 0.5 / np.sqrt(variance)
            if mean < target:
                low = max(low, beta - margin)
            else:
                high = min(high, beta + margin)
            step = (target - mean) / variance
            proposal = beta + float(np.clip(step, -_MAX_STEP, _MAX_STEP))
            beta = proposal if low <= proposal <= high else (low + high) / 2
            initial = node.labels
            if turn + 1 >= len(steps) and abs(step) < 2 * margin:
                break
        return float(np.clip(beta, 0.0, self.beta_max))

    def walk(self, log_prior: Callable, tolerance: float) -> Ridge:
        """Walk a few k, then every k that matters until log Z is known to ``tolerance``."""
        grid = np.linspace(0.0, self.beta_max, _N_GRID)
        every = np.arange(1, self.k_max + 1)
        every = every[np.isfinite(log_prior(grid, every[:, None])).any(axis=1)]
        ks, steps = _thin_out(every), _SEARCH
        guesses = np.ones(len(ks))
        while True:
            betas = np.array(
                self.each(lambda k, b, steps=steps: self.find_ridge(k, b, steps), ks, guesses)
            )
            centres = self._centres(ks, betas)
            self.each(lambda node: node.advance(_PILOT_RECORDS, _WARMUP), centres)
            alone = [[node] for node in centres]
            score = self._score(alone, centres, self._join(centres), log_prior)
            behind = score[:, int(np.argmax(score[0])), None] - score
            near = np.flatnonzero(behind[0] < _BEHIND + 4 * behind.std(axis=0))
            # Up to the next k that is known to be far behind, on either side.
            low = ks[near[0] - 1] + 1 if near[0] > 0 else ks[0]
            high = ks[near[-1] + 1] - 1 if near[-1] + 1 < len(ks) else ks[-1]
            wanted = every[(every >= low) & (every <= high)]
            self.stage += 1
            known = np.isin(ks, wanted)
            if known.sum() == len(wanted):
                return self._measure(ks[known], betas[known], log_prior, tolerance)
            guesses = _interpolate(ks, betas, wanted)
            ks, steps = wanted, _SEARCH[2:]

    def _centres(self, ks: np.ndarray, betas: np.ndarray) -> list[Node]:
        """Make a node for each k that also records S for the k before and after it."""
        columns = [sorted(set(ks[max(at - 1, 0) : at + 2].tolist())) for at in range(len(ks))]
        return [self.node(b, k, c, 100) for b, k, c in zip(betas, ks, columns, strict=True)]

    def _join(self, centres: list[Node]) -> np.ndarray:
        """Sum the links: log Z at each centre, up to a constant, in every replicate."""
        total = np.zeros((N_REPLICATES, len(centres)))
        for at in range(1, len(centres)):
            link = integrate_link(centres[at - 1], centres[at], N_REPLICATES)
            total[:, at] = total[:, at - 1] + link.value
        return total

    def _score(self, families, centres, log_normalizers, log_prior) -> np.ndarray:
        """Return the log posterior of each k up to a constant, in every replicate."""
        score = np.empty_like(log_normalizers)
        for at, (family, centre) in enumerate(zip(families, centres, strict=True)):
            k, curve = centre.k, Curve.through(family, centre, N_REPLICATES)
            target = self.observed[k - 1] / k
            top = np.clip(curve.find_top(target), 0.0, self.beta_max)
            local = top + np.linspace(-6, 6, _N_GRID) * curve.sd
            beta = np.sort(np.append(local, np.linspace(0, self.beta_max, _N_GRID)))
            steps = np.maximum(np.diff(beta, append=beta[-1]), 1e-300)
            log_mass = target * beta - curve.log_normalizer(beta) - log_normalizers[:, at, None]
            log_mass += log_prior(beta, k) + np.log(steps)
            score[:, at] = logsumexp(log_mass, axis=1)
        return score

    def _measure(self, ks, betas, log_prior, tolerance) -> Ridge:
        """Add records to the nodes of every k that matters until the posterior is precise."""
        centres = self._centres(ks, betas)
        self.each(lambda node: node.advance(_FIRST_RECORDS, _WARMUP), centres)
        families = [[node] for node in centres]
        n_records, rounds = _FIRST_RECORDS, 0
        while True:
            log_normalizers = self._join(centres)
            score = self._score(families, centres, log_normalizers, log_prior)
            share = softmax(score[0])
            matters = share > _MATTERS * share.max()
            if rounds == 0:
                important = np.flatnonzero(matters)
                made = self.each(self._family, [centres[at] for at in important])
                for at, family in zip(important, made, strict=True):
                    families[at] = family
            elif rounds == _MAX_ROUNDS or _is_precise(np.asarray(ks), score, tolerance):
                break
            else:
                first, last = np.flatnonzero(matters)[[0, -1]]
                busy = [node for family in families[first : last + 1] for node in family]
                self.each(lambda node, n_records=n_records: node.advance(n_records), busy)
                n_records *= 2
            rounds += 1
        self._fill_gaps(families, centres, matters)
        log_normalizers = self._mend(centres, log_normalizers, matters, tolerance)
        words = self._doubts(families)
        for sentence in words:
            warnings.warn(sentence, PhaseTransitionWarning, stacklevel=4)
        curves = [
            Curve.through(family, node, N_REPLICATES)
            for family, node in zip(families, centres, strict=True)
        ]
        n_sweeps = sum(2 * node.n_sweeps for node in self.nodes)
        return Ridge(np.asarray(ks), curves, centres, log_normalizers, n_sweeps, words)

    def _family(self, centre: Node) -> list[Node]:
        """Make the outer nodes in beta of one k."""
        spread = centre.variance()[centre.column(centre.k)] / centre.k**2
        step = min(_OUTER / np.sqrt(max(spread, 1e-12)), self.beta_max / 2)
        family = [centre]
        for place, beta in ((101, centre.beta - step), (102, centre.beta + step)):
            inside = float(np.clip(beta, 0.0, self.beta_max))
            if abs(inside - centre.beta) > step / 4:
                node = self.node(inside, centre.k, [centre.k], place)
                node.advance(centre.n_records, _WARMUP)
                family.append(node)
        return sorted(family, key=lambda node: node.beta)

    def _fill_gaps(self, families, centres, matters) -> None:
        """Add nodes in beta to the families of the k that matter, until none is missing."""
        for turn in range(_MAX_TURNS):
            new = []
            for at in np.flatnonzero(matters):
                curve = Curve.through(families[at], centres[at], N_REPLICATES)
                k = centres[at].k
                gaps = curve.find_gaps(self.observed[k - 1] / k, self.beta_max)
                for place, beta in enumerate(gaps):
                    node = self.node(beta, k, [k], 1000 * (turn + 1) + place)
                    new.append((node, centres[at].n_records))
                    families[at] = sorted([*families[at], node], key=lambda node: node.beta)
            if not new:
                return
            self.each(
                lambda node, n_records: node.advance(n_records, _WARMUP), *zip(*new, strict=True)
            )

    def _mend(self, centres, log_normalizers, matters, tolerance) -> np.ndarray:
        """Replace links that the trapezium rule does not carry by paths from beta = 0."""
        mended = log_normalizers.copy()
        for at in range(1, len(centres)):
            link = integrate_link(centres[at - 1], centres[at], N_REPLICATES)
            step = link.value
            if abs(link.correction) > _MAX_CORRECTION and matters[at - 1 : at + 1].any():
                step = self._from_zero(centres[at], tolerance) - self._from_zero(
                    centres[at - 1], tolerance
                )
            mended[:, at] = mended[:, at - 1] + step
        return mended

    def from_zero_at(self, ridge: Ridge, at: int, tolerance: float) -> np.ndarray:
        """Return log Z itself at the ridge of one k, in every replicate."""
        return self._from_zero(ridge.centres[at], tolerance, max_sweeps=ridge.n_sweeps / 8)

    def _from_zero(self, centre: Node, tolerance: float, max_sweeps=np.inf) -> np.ndarray:
        self.stage += 1
        return integrate_from_zero(centre, self, tolerance, max_sweeps, N_REPLICATES)

    def _doubts(self, families) -> list[str]:
        apart = [(node.k, node.beta) for family in families for node in family if node.is_split()]
        if not apart:
            return []
        k, beta = apart[0]
        return [
            f"chains started from one class and from random labels disagree at {len(apart)} of "
            f"{sum(map(len, families))} settings (first at k={k}, beta={beta:.3f}): the model is "
            "at a first-order transition there and log Z is less certain than its error says"
        ]


def _is_precise(ks: np.ndarray, score: np.ndarray, tolerance: float) -> bool:
    """Whether log posterior and mean of k are known well enough, given its replicates."""
    shares = softmax(score, axis=1)
    share = shares[0]
    # An error common to all k changes nothing, and one on a small share little.
    error = (score - score @ share[:, None]).std(axis=0)
    means = shares @ ks
    sd = np.sqrt(share @ (ks - means[0]) ** 2)
    worst = np.max(error * np.sqrt(share / share.max()))
    return bool(worst <= tolerance and means.std() <= tolerance / 3 * max(sd, 1.0))


def _thin_out(ks: np.ndarray) -> np.ndarray:
    """Choose values that are about a third apart, the first and the last among them."""
    n_steps = int(np.ceil(np.log(ks[-1] / ks[0]) / np.log(_COARSE_RATIO))) + 1
    places = np.searchsorted(ks, np.geomspace(ks[0], ks[-1], n_steps) - 1e-9)
    return ks[np.unique(np.minimum(places, len(ks) - 1))]


def _interpolate(ks: np.ndarray, betas: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    if len(ks) == 1:
        return np.full(len(wanted), betas[0])
    return PchipInterpolator(np.log(ks), betas, extrapolate=True)(np.log(wanted))
