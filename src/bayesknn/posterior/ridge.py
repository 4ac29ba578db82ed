"""log Z where the posterior is: along the ridge beta_hat(k) (Section 3.3 done backwards; KERNELS).

Only differences of log Z near the ridge matter to the posterior. For each k the ridge is where
E[S_k] equals the observed S_k. Neighbouring values of k are joined there
(:mod:`bayesknn.posterior.links`), and around it log Z is integrated in beta
(:mod:`bayesknn.posterior.curves`). The values of k are raced: a short look at a few of them shows
which are far behind, a look at all those left drops more, and only the k that matter are measured
until the error is small enough. Errors come from resampled batches of every node, carried through
to the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy.interpolate import PchipInterpolator
from scipy.special import softmax

from bayesknn.exceptions import PhaseTransitionWarning
from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.likelihood.nodes import BATCHES_PER_CHAIN, N_CHAINS, Field, Node, lay_out
from bayesknn.posterior.curves import Curve, integrate_from_zero
from bayesknn.posterior.links import Link, Station, integrate_link, place_stations
from bayesknn.posterior.support import Limits, find_limits

N_REPLICATES = 64
# Values of k this far behind in log posterior are dropped; of a link's defect, this part counts
# as doubt about its value.
_BEHIND = 12.0
_DOUBT = 0.125
_COARSE_RATIO = 1.35
# Steps of the search for the ridge: records taken at each.
_SEARCH: tuple[int, ...] = (4, 4, 8)
_MAX_SEARCH = 16
_MAX_STEP = 0.5
_SETTLE = 10
_WARMUP = 40
_PILOT_SWEEPS = 64
# Recorded sweeps of a node on the ridge, and of the others, before the first judgement.
_RIDGE_SWEEPS = 512
_OTHER_SWEEPS = 256
# Nodes further than this from the ridge are made anew; outer nodes of a curve are placed this far
# out, both in posterior standard deviations.
_OFF_RIDGE = 0.75
_OUTER = 1.7
# Shares of k, relative to the largest, below which no further work is done for it.
_MATTERS = 1e-3
# Lever, relative to the longest, from which on a k moves the mean, and the growth of the records
# from one round to the next.
_COUNTS = 0.02
_GROWTH = (0.25, 1.0)
_MAX_ROUNDS = 12
# A round that leaves more than this of the least error so far got nowhere; so many end the walk.
_PROGRESS = 0.95
_MAX_IDLE = 3
# Errors are themselves estimated: a little above what was asked for is not worth a word.
_SLACK = 1.5
_MAX_TURNS = 10
_MAX_PARTS = 12
# The step, as a share of beta_max, over which the prior's slope is taken.
_NUDGE = 1e-3
# The trapezium rule is all but exact on a smooth bell; narrow priors are seen to at the end.
_N_BETAS = 61


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
        # Sweeps of every piece of work; nodes themselves are let go of when done with.
        self.spent: list[int] = []

    def each(self, function: Callable, *arguments: Iterable) -> list:
        """Call a function for each set of arguments, in threads."""

        def call(*row):
            result = function(*row)
            self.report(1)
            return result

        calls = (delayed(call)(*row) for row in zip(*arguments, strict=True))
        return Parallel(n_jobs=self.n_jobs, require="sharedmem")(calls)

    def advance(
        self,
        nodes: list[Node],
        n_sweeps: int | None = None,
        n_warmup: int = 0,
        growth: float = 1.0,
    ) -> None:
        """Add the records of so many sweeps, or ``growth`` times as many records as each node has.

        Every chain is a piece of work of its own for the threads. At large k records are far
        apart; there are never so few that a batch would have none.
        """

        def run(node, chain):
            if n_sweeps is None:
                return node.run(chain, int(np.ceil(growth * node.n_records)), n_warmup)
            return node.run(chain, max(-(-n_sweeps // node.thin), BATCHES_PER_CHAIN), n_warmup)

        pairs = [(node, chain) for node in nodes for chain in range(N_CHAINS)]
        records = self.each(lambda pair: run(*pair), pairs)
        for at, node in enumerate(nodes):
            before = node.n_sweeps
            node.add(records[N_CHAINS * at : N_CHAINS * (at + 1)], n_warmup)
            self.spent.append(N_CHAINS * (node.n_sweeps - before))

    def node(self, beta: float, k: int, columns: list[int], place: int, initial=None) -> Node:
        """Make a node whose random numbers depend on its place alone."""
        return Node(self.field, beta, k, columns, self._seed(k, place), initial)

    def _seed(self, k: int, place: int) -> np.random.SeedSequence:
        spawn_key = (*self.seeds.spawn_key, self.stage, k, place)
        return np.random.SeedSequence(self.seeds.entropy, spawn_key=spawn_key)

    def find_ridge(self, k: int, beta: float, steps: tuple[int, ...]) -> float:
        """Find the top of the posterior at k, by Newton steps kept within a bracket.

        Where the prior is flat, that is where E[S_k] is the observed S_k.

        To within about a posterior standard deviation of beta; nothing later needs more.
        """
        low, high = self.limits[k]
        beta, initial = float(np.clip(beta, low, high)), self.labels
        for turn in range(_MAX_SEARCH):
            node = self.node(beta, k, [k], turn, initial)
            node.advance(steps[min(turn, len(steps) - 1)], n_warmup=_SETTLE)
            self.spent.append(N_CHAINS * node.n_sweeps)
            mean, variance = node.mean()[0] / k, max(node.variance()[0] / k**2, 1e-9)
            margin = 0.5 / np.sqrt(variance)
            target = self._target(k, beta)
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
        return float(np.clip(beta, *self.limits[k]))

    def walk(self, log_prior: Callable, tolerance: float) -> Ridge:
        """Race the values of k, then measure those that matter to ``tolerance``."""
        self.log_prior = log_prior
        self.limits = find_limits(log_prior, self.k_max, self.beta_max)
        every = np.array(list(self.limits))
        ks, steps = _thin_out(every), _SEARCH
        guesses = np.ones(len(ks))
        while True:
            betas = self.each(lambda k, b, steps=steps: self.find_ridge(k, b, steps), ks, guesses)
            centres = self._centres(ks, betas)
            self.advance(centres, _PILOT_SWEEPS, _WARMUP)
            curves = [Curve.through([node], node, N_REPLICATES) for node in centres]
            tops = [
                curve.find_top(self._target(curve.k, curve.centre), self.limits[curve.k])
                for curve in curves
            ]
            near = self._find_near(centres, curves)
            # Up to the next k that is known to be far behind, on either side.
            low = ks[near[0] - 1] + 1 if near[0] > 0 else ks[0]
            high = ks[near[-1] + 1] - 1 if near[-1] + 1 < len(ks) else ks[-1]
            wanted = every[(every >= low) & (every <= high)]
            self.stage += 1
            kept = np.flatnonzero(np.isin(ks, wanted))
            if len(kept) == len(wanted):
                return self._measure([self._recentre(centres[a], tops[a]) for a in kept], tolerance)
            guesses = _interpolate(ks, np.array(tops), wanted)
            ks, steps = wanted, _SEARCH[-1:]

    def _target(self, k: int, beta: float) -> float:
        """Return what E[S_k] / k is where the posterior at k has its top, as seen from beta."""
        nudge = _NUDGE * self.beta_max
        ends = np.clip([beta - nudge, beta + nudge], *self.limits[k])
        heights = self.log_prior(ends, k)
        pull = np.diff(heights)[0] / np.diff(ends)[0] if np.isfinite(heights).all() else 0.0
        return float(self.observed[k - 1] / k + pull)

    def log_weight(self, k: int) -> Callable:
        """Return the log posterior at k, but for log Z, as a function of beta."""
        return lambda beta: beta / k * self.observed[k - 1] + self.log_prior(beta, k)

    def _centres(self, ks: np.ndarray, betas: list[float]) -> list[Node]:
        """Make a node for each k that also records S for the k before and after it."""
        columns = [sorted(set(ks[max(at - 1, 0) : at + 2].tolist())) for at in range(len(ks))]
        return [self.node(b, k, c, 100) for b, k, c in zip(betas, ks, columns, strict=True)]

    def _recentre(self, node: Node, top: float) -> Node:
        """Keep a node that is near the ridge, and make another in place of one that is not."""
        sd = node.k / np.sqrt(max(node.variance()[node.column(node.k)], 1e-12))
        if abs(top - node.beta) <= _OFF_RIDGE * sd:
            return node
        return self.node(top, node.k, node.columns.tolist(), 103)

    def _find_near(self, centres: list[Node], curves: list[Curve]) -> np.ndarray:
        """Say which k are not known to be far behind the best."""
        links = self._link(centres, [[]] * len(centres))
        score = self._score(curves, links)
        doubt = _DOUBT * np.cumsum([0.0] + [link.defect for link in links])
        best = int(np.argmax(score[0]))
        behind = score[:, best, None] - score
        margin = _BEHIND + 4 * behind.std(axis=0) + np.abs(doubt - doubt[best])
        return np.flatnonzero(behind[0] < margin)

    def _link(self, centres: list[Node], stations: list[list[Station]]) -> list[Link]:
        """Integrate from each centre to the next; ``stations[at]`` lie before centre ``at``."""
        return [
            integrate_link(before, after, N_REPLICATES, between)
            for before, after, between in zip(centres, centres[1:], stations[1:], strict=False)
        ]

    def _weigh(self, curve: Curve) -> np.ndarray:
        """Return the log posterior of a k, but for log Z on its ridge, in every replicate."""
        _, log_mass = curve.weigh(self.log_weight(curve.k), self.limits[curve.k], _N_BETAS)
        top = log_mass.max(axis=1)
        return top + np.log(np.exp(log_mass - top[:, None]).sum(axis=1))

    def _score(self, curves: list[Curve], links: list[Link]) -> np.ndarray:
        """Return the log posterior of each k up to a constant, in every replicate."""
        return np.column_stack([self._weigh(curve) for curve in curves]) - _add_up(links)

    def _measure(self, centres: list[Node], tolerance: float) -> Ridge:
        """Add nodes and records for every k that matters until the posterior is precise."""
        ks = np.array([node.k for node in centres])
        self.advance([node for node in centres if not node.n_records], _PILOT_SWEEPS, _WARMUP)
        families = [[node] for node in centres]
        stations: list[list[Station]] = [[] for _ in centres]
        curves: list[Curve] = [Curve.through([node], node, N_REPLICATES) for node in centres]
        score = self._score(curves, self._link(centres, stations))
        hopeful = score[0] + 3 * (score - score[:, [np.argmax(score[0])]]).std(axis=0)
        hopeful = np.flatnonzero(hopeful > score[0].max() + np.log(_MATTERS))
        self.advance([centres[at] for at in hopeful], _RIDGE_SWEEPS - _PILOT_SWEEPS)
        masses, changed = score, set(range(len(ks)))
        rounds = turns = idle = 0
        least = np.inf
        while True:
            links = self._link(centres, stations)
            for at in changed:
                curves[at] = Curve.through(families[at], centres[at], N_REPLICATES)
                masses[:, at] = self._weigh(curves[at])
            score = masses - _add_up(links)
            share = softmax(score[0])
            matters = np.flatnonzero(share > _MATTERS * share.max())
            turns += 1
            if turns < _MAX_TURNS:
                grown = self._grow(centres, families, stations, curves, links, matters, changed)
                if grown is not None:
                    changed = grown
                    continue
            excess, imprecise = _judge(ks, score, tolerance)
            # Where chains stay apart, more records do not help.
            idle = 0 if excess < _PROGRESS * least else idle + 1
            least = min(least, excess)
            if rounds == _MAX_ROUNDS or excess <= 1.0 or idle == _MAX_IDLE:
                break
            # From the best k to any other leads a chain of links, and all of it must be precise.
            chain = np.append(imprecise, np.argmax(share))
            way = range(chain.min(), chain.max() + 1)
            nodes = [node for at in imprecise for node in families[at]]
            nodes += [centres[at] for at in way if at not in imprecise]
            nodes += [stop.node for at in way[1:] for stop in stations[at]]
            self.advance(nodes, growth=float(np.clip(excess**2 - 1.0, *_GROWTH)))
            changed = {*imprecise.tolist(), *way}
            rounds += 1
        words = self._doubts(families)
        for sentence in words:
            warnings.warn(sentence, PhaseTransitionWarning, stacklevel=4)
        if excess > _SLACK:
            words.append(
                f"after {sum(self.spent)} sweeps the errors of P(k) and of the mean of k are still "
                f"up to {excess:.2g} times what was asked for"
            )
        return Ridge(ks, curves, centres, _add_up(links), sum(self.spent), words)

    def _grow(
        self, centres, families, stations, curves, links, matters, changed
    ) -> set[int] | None:
        """Add the nodes that curves and links of the k that matter still lack.

        Only curves that have changed are looked at. Returns the places of those that have new
        nodes or were not looked at, or None if no node was lacking.
        """
        new: list[Node] = []
        # One that does not matter now may do so later; it is then still to be looked at.
        grown = {at for at in changed.difference(matters.tolist()) if len(families[at]) > 1}
        for at in matters:
            if len(families[at]) > 1 and at not in changed:
                continue
            curve, k = curves[at], curves[at].k
            if len(families[at]) == 1:
                gaps = _outer_nodes(curve, self.limits[k])
            else:
                gaps = curve.find_gaps(self.log_weight(k), self.limits[k])
            place = 1000 + len(families[at])
            made = [self.node(beta, k, [k], place + more) for more, beta in enumerate(gaps)]
            families[at] = sorted([*families[at], *made], key=lambda node: node.beta)
            new += made
            if made:
                grown.add(int(at))
        for at in range(matters[0] + 1, matters[-1] + 1):
            n_parts = len(stations[at]) + 1
            wanted = min(n_parts * links[at - 1].n_parts, _MAX_PARTS)
            if wanted > n_parts:
                before, after = centres[at - 1 : at + 1]
                seeds = [self._seed(after.k, 500 + _MAX_PARTS * n_parts + p) for p in range(wanted)]
                stations[at] = place_stations(before, after, wanted, seeds)
                new += [stop.node for stop in stations[at]]
        self.advance(new, _OTHER_SWEEPS, _WARMUP)
        return grown if new else None

    def from_zero_at(self, ridge: Ridge, at: int, tolerance: float) -> np.ndarray:
        """Return log Z itself at the ridge of one k, in every replicate."""
        self.stage += 1
        max_sweeps = ridge.n_sweeps / 8
        return integrate_from_zero(ridge.centres[at], self, tolerance, max_sweeps, N_REPLICATES)

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


def _add_up(links: list[Link]) -> np.ndarray:
    """Sum the links: log Z at each centre, up to a constant, in every replicate."""
    steps = [np.zeros(N_REPLICATES), *(link.value for link in links)]
    return np.cumsum(steps, axis=0).T


def _outer_nodes(curve: Curve, limits: Limits) -> list[float]:
    """Choose the first two nodes beside the one on the ridge."""
    step = min(_OUTER * curve.sd, (limits[1] - limits[0]) / 2)
    outer = np.clip([curve.centre - step, curve.centre + step], *limits)
    return [float(beta) for beta in outer if abs(beta - curve.centre) > step / 4]


def _judge(ks: np.ndarray, score: np.ndarray, tolerance: float) -> tuple[float, np.ndarray]:
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


def _thin_out(ks: np.ndarray) -> np.ndarray:
    """Choose values that are about a third apart, the first and the last among them."""
    n_steps = int(np.ceil(np.log(ks[-1] / ks[0]) / np.log(_COARSE_RATIO))) + 1
    places = np.searchsorted(ks, np.geomspace(ks[0], ks[-1], n_steps) - 1e-9)
    return ks[np.unique(np.minimum(places, len(ks) - 1))]


def _interpolate(ks: np.ndarray, betas: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    if len(ks) == 1:
        return np.full(len(wanted), betas[0])
    return PchipInterpolator(np.log(ks), betas, extrapolate=True)(np.log(wanted))
