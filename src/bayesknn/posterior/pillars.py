"""The pillars of the ridge: log Z at some values of k, and by tilting at those between (KERNELS).

A pillar is a family of nodes at one k: one on the ridge, from which log Z is integrated to the next
pillar (:mod:`bayesknn.posterior.links`), and others around it in beta
(:mod:`bayesknn.posterior.curves`). What a pillar's draws say of a k nearby is exact but for noise
(:mod:`bayesknn.likelihood.tilt`); a k between two pillars takes the average of what both say.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import softmax

from bayesknn.exceptions import PhaseTransitionWarning
from bayesknn.likelihood.nodes import Node
from bayesknn.posterior.curves import NODE_DEPTH, Curve, Profile, Span
from bayesknn.posterior.judge import find_behind, judge
from bayesknn.posterior.links import Link, Station, integrate_link, place_stations
from bayesknn.posterior.support import Limits

if TYPE_CHECKING:
    from bayesknn.posterior.ridge import RidgeWalk

N_REPLICATES = 32
# Values of k this far behind in log posterior are dropped.
BEHIND = 12.0
# Sweeps of a new node before its records count, and of one that starts where another stood.
WARMUP, _RESETTLE = 40, 16
# Recorded sweeps of a first look at a k.
PILOT_SWEEPS = 64
# Recorded sweeps of a node on the ridge, and of the others, before the first judgement.
_RIDGE_SWEEPS = 512
_OTHER_SWEEPS = 128
# Nodes further than this from the ridge are made anew; outer nodes of a pillar are placed this far
# out, both in posterior standard deviations.
_OFF_RIDGE = 0.25
_OUTER = 2.0
# Shares of k, relative to the largest, below which no further work is done for it.
_MATTERS = 1e-3
# Growth of the records from one round to the next.
_GROWTH = (0.25, 1.0)
_MAX_ROUNDS = 12
# A round that leaves more than this of the least error so far got nowhere; so many end the walk.
_PROGRESS = 0.95
_MAX_IDLE = 3
# Errors are themselves estimated: a little above what was asked for is not worth a word.
_SLACK = 1.5
_MAX_TURNS = 10
_MAX_PARTS = 12
# The trapezium rule is all but exact on a smooth bell; narrow priors are seen to at the end.
_N_BETAS = 41


@dataclass
class Ridge:
    """log Z around the ridge for the values of k that matter.

    Attributes
    ----------
    k_values : ndarray of int
    profiles : list of Profile
        log Z(beta, k) for each of them, less the average of log Z at the centres it came from.
    spans : list of (float, float)
        Where the posterior of beta lies at each of them.
    log_normalizers : ndarray of shape (n_replicates, n_k)
        That average, up to a common constant; row 0 is the estimate.
    anchor : Node
        A node on the ridge, near the best k.
    anchor_height : ndarray of shape (n_replicates,)
        log Z there, up to the same constant.
    n_sweeps : int
        Sweeps made in all.
    warnings : list of str
    """

    k_values: np.ndarray
    profiles: list[Profile]
    spans: list[Span]
    log_normalizers: np.ndarray
    anchor: Node
    anchor_height: np.ndarray
    n_sweeps: int
    warnings: list[str]


class Pilot(NamedTuple):
    """A first look at one k.

    Attributes
    ----------
    node : Node
        Near the ridge.
    top : float
        Where the ridge is, as far as the node tells.
    mass : ndarray of shape (n_replicates,)
        The log posterior of k, but for log Z at the node.
    """

    node: Node
    top: float
    mass: np.ndarray


@dataclass
class Pillar:
    """Nodes at one k.

    Attributes
    ----------
    centre : Node
        The one on the ridge.
    top : float
        Where the ridge is, as far as known when the pillar was made.
    family : list of Node
        All of them, in increasing beta.
    stations : list of Station
        Those on the way from the pillar before.
    """

    centre: Node
    top: float
    family: list[Node]
    stations: list[Station]

    @property
    def k(self) -> int:
        """The pillar's own k."""
        return self.centre.k


class Pillars:
    """Measures log Z at the pillars and between them.

    Parameters
    ----------
    walk : RidgeWalk
    pilots : list of Pilot
        One for each pillar, in increasing k; each records S for all k up to the pillars beside it.
    every : ndarray of int
        The values of k that the prior allows.
    """

    def __init__(self, walk: RidgeWalk, pilots: list[Pilot], every: np.ndarray):
        self.walk = walk
        self.pillars = [Pillar(pilot.node, pilot.top, [pilot.node], []) for pilot in pilots]
        own = np.array([pillar.k for pillar in self.pillars])
        self.ks = every[(every >= own[0]) & (every <= own[-1])]
        self.shares = _share(own, self.ks)
        self.profiles: list[Any] = [None] * len(self.ks)
        self.spans: list[Any] = [None] * len(self.ks)
        self.masses = np.empty((N_REPLICATES, len(self.ks)))
        self.curves: dict[int, dict[int, Curve]] = {}
        self.links: list[Any] = [None] * (len(own) - 1)
        # Sweeps of the nodes that each link was made of.
        self.made_of: list[list[int]] = [[]] * (len(own) - 1)

    def measure(self, tolerance: float, max_sweeps: float = np.inf) -> Ridge:
        """Add nodes and records for every k that matters until the posterior is precise.

        Or until about so many sweeps have been made in all.
        """
        score = self._score(set(range(len(self.pillars))))
        changed = self._serving(self._behind(score, n_errors=3) < -np.log(_MATTERS))
        self._drop(self._behind(score, n_errors=4) > BEHIND)
        self._settle(sorted(changed))
        rounds = turns = idle = 0
        least = np.inf
        while True:
            score = self._score(changed)
            share = softmax(score[0])
            serving = self._serving(self._behind(score) < -np.log(_MATTERS))
            turns += 1
            if turns < _MAX_TURNS:
                changed = self._grow(sorted(serving))
                if changed:
                    continue
            excess, imprecise = judge(self.ks, score, tolerance)
            # Where chains stay apart, more records do not help.
            idle = 0 if excess < _PROGRESS * least else idle + 1
            least = min(least, excess)
            is_over = rounds == _MAX_ROUNDS or sum(self.walk.spent) > max_sweeps
            if is_over or excess <= 1.0 or idle == _MAX_IDLE:
                break
            working = self._serving(imprecise)
            # From the best k to any other leads a chain of links, and all of it must be precise.
            chain = [*working, *self._serving(share == share.max())]
            way = range(min(chain), max(chain) + 1)
            nodes = [node for at in working for node in self.pillars[at].family]
            nodes += [self.pillars[at].centre for at in way if at not in working]
            nodes += [stop.node for at in way[1:] for stop in self.pillars[at].stations]
            self.walk.advance(nodes, growth=float(np.clip(excess**2 - 1.0, *_GROWTH)))
            changed = {*working, *way}
            rounds += 1
        return self._conclude(int(np.argmax(share)), excess)

    def _behind(self, score: np.ndarray, n_errors: int = 0) -> np.ndarray:
        """Return how far each k is behind the best, at least."""
        return find_behind(score, add_up_doubts(self.links) @ self.shares, n_errors)

    def _drop(self, which: np.ndarray) -> None:
        """Say no more of these k, if they lie at the ends."""
        first, last = np.flatnonzero(~which)[[0, -1]]
        kept = slice(first, last + 1)
        self.ks, self.profiles, self.spans = self.ks[kept], self.profiles[kept], self.spans[kept]
        self.shares, self.masses = self.shares[:, kept], self.masses[:, kept]

    def _serving(self, which: np.ndarray) -> set[int]:
        """Return the places of the pillars that speak for these k."""
        return set(np.flatnonzero(self.shares[:, which].any(axis=1)).tolist())

    def _served(self, place: int) -> np.ndarray:
        """Return the k that a pillar speaks for, its own always among them."""
        return np.union1d(self.ks[self.shares[place] > 0], self.pillars[place].k)

    def _score(self, changed: set[int]) -> np.ndarray:
        """Return the log posterior of each k up to a constant, in every replicate.

        Only what comes from pillars that have changed is computed anew.
        """
        for place in changed:
            pillar, ks = self.pillars[place], self._served(place).tolist()
            self.curves[place] = Curve.around(pillar.family, pillar.centre, N_REPLICATES, ks)
        for at, k in enumerate(self.ks.tolist()):
            serving = np.flatnonzero(self.shares[:, at]).tolist()
            if changed.isdisjoint(serving):
                continue
            curves = tuple(self.curves[place][k] for place in serving)
            profile = Profile(curves, tuple(self.shares[serving, at].tolist()))
            self.profiles[at] = profile
            self.masses[:, at], self.spans[at] = weigh(profile, self.walk, self.spans[at])
        for at, (before, after) in enumerate(pairwise(self.pillars)):
            ends = (before.centre, after.centre)
            made_of = [node.n_sweeps for node in (*ends, *(stop.node for stop in after.stations))]
            if self.made_of[at] != made_of:
                self.links[at] = integrate_link(*ends, N_REPLICATES, after.stations)
                self.made_of[at] = made_of
        return self.masses - add_up(self.links) @ self.shares

    def _settle(self, places: list[int]) -> None:
        """Bring the centres of pillars that may matter on to the ridge, and measure there."""
        walk, moved, outer = self.walk, [], []
        walk.settle_on(max(int(pillar.centre.columns[-1]) for pillar in self.pillars))
        for at in places:
            pillar, node = self.pillars[at], self.pillars[at].centre
            sd = node.k / np.sqrt(max(node.variance()[node.column(node.k)], 1e-12))
            elsewhere = node.field.neighbors is not walk.field.neighbors
            if elsewhere or abs(pillar.top - node.beta) > _OFF_RIDGE * sd:
                # Pilots have the points in their own order.
                labels = node.labels[:, walk.field.order] if elsewhere else node.labels
                pillar.centre = walk.node(pillar.top, node.k, node.columns, 103, labels)
                pillar.family = [pillar.centre]
                moved.append(pillar.centre)
            limits = walk.limits[node.k]
            outer += self._join(at, _outer_nodes(pillar.centre.beta, sd, limits))
        walk.advance(moved, PILOT_SWEEPS, _RESETTLE)
        walk.advance([self.pillars[at].centre for at in places], _RIDGE_SWEEPS - PILOT_SWEEPS)
        walk.advance(outer, _OTHER_SWEEPS, WARMUP)
        self._forget_spans(places)

    def _forget_spans(self, places: list[int]) -> None:
        """Look again where the posterior lies: new nodes may show mass where there was none."""
        for at in np.flatnonzero(self.shares[places].any(axis=0)):
            self.spans[at] = None

    def _join(self, at: int, betas: list[float]) -> list[Node]:
        """Add nodes to a pillar, not yet advanced."""
        pillar, columns = self.pillars[at], self._served(at)
        place = 1000 + len(pillar.family)
        made = [
            self.walk.node(beta, pillar.k, columns, place + more) for more, beta in enumerate(betas)
        ]
        pillar.family = sorted([*pillar.family, *made], key=lambda node: node.beta)
        return made

    def _grow(self, places: list[int]) -> set[int]:
        """Add the nodes that pillars and the links between them still lack.

        Returns the places of the pillars that have new nodes.
        """
        walk, new, grown = self.walk, [], set()
        for at in places:
            pillar = self.pillars[at]
            k, limits = pillar.k, walk.limits[pillar.k]
            curve = self.curves[at][k]
            if len(pillar.family) == 1:
                gaps = _outer_nodes(curve.centre, curve.sd, limits)
            else:
                span = Profile((curve,)).find_span(walk.log_weight(k), limits, NODE_DEPTH)
                gaps = curve.find_gaps(span, limits)
            made = self._join(at, gaps)
            new += made
            if made:
                grown.add(at)
        for at in range(places[0] + 1, places[-1] + 1):
            n_parts = len(self.pillars[at].stations) + 1
            wanted = min(n_parts * self.links[at - 1].n_parts, _MAX_PARTS)
            if wanted > n_parts:
                before, after = (pillar.centre for pillar in self.pillars[at - 1 : at + 1])
                seeds = [walk.seed(after.k, 500 + _MAX_PARTS * n_parts + p) for p in range(wanted)]
                self.pillars[at].stations = place_stations(before, after, wanted, seeds)
                new += [stop.node for stop in self.pillars[at].stations]
                grown.add(at)
        walk.advance(new, _OTHER_SWEEPS, WARMUP)
        self._forget_spans(sorted(grown))
        return grown

    def _conclude(self, best: int, excess: float) -> Ridge:
        n_sweeps = sum(self.walk.spent)
        words = self._doubts()
        for sentence in words:
            warnings.warn(sentence, PhaseTransitionWarning, stacklevel=5)
        if excess > _SLACK:
            words.append(
                f"after {n_sweeps} sweeps the errors of P(k) and of the mean of k are still "
                f"up to {excess:.2g} times what was asked for"
            )
        heights = add_up(self.links)
        at = int(np.argmax(self.shares[:, best]))
        return Ridge(
            self.ks, self.profiles, self.spans, heights @ self.shares,
            self.pillars[at].centre, heights[:, at], n_sweeps, words,
        )  # fmt: skip

    def _doubts(self) -> list[str]:
        nodes = [node for pillar in self.pillars for node in pillar.family]
        apart = [node for node in nodes if node.is_split()]
        if not apart:
            return []
        return [
            f"chains started from one class and from random labels disagree at {len(apart)} of "
            f"{len(nodes)} settings (first at k={apart[0].k}, beta={apart[0].beta:.3f}): the model "
            "is at a first-order transition there and log Z is less certain than its error says"
        ]


def weigh(profile: Profile, walk: RidgeWalk, span: Span | None = None) -> tuple[np.ndarray, Span]:
    """Return the log posterior of a k, but for log Z at its centres, and where its beta lies.

    In every replicate. Where the span is known, it is not looked for again.
    """
    log_weight = walk.log_weight(profile.k)
    span = span or profile.find_span(log_weight, walk.limits[profile.k])
    log_mass = profile.weigh(log_weight, span, _N_BETAS)[1]
    top = log_mass.max(axis=1)
    return top + np.log(np.exp(log_mass - top[:, None]).sum(axis=1)), span


def add_up(links: list[Link]) -> np.ndarray:
    """Sum the links: log Z at each centre, up to a constant, in every replicate."""
    steps = [np.zeros(N_REPLICATES), *(link.value for link in links)]
    return np.cumsum(steps, axis=0).T


def add_up_doubts(links: list[Link]) -> np.ndarray:
    """Sum what the links leave to doubt, up to each centre."""
    return np.cumsum([0.0] + [link.doubt for link in links])


def _share(own: np.ndarray, ks: np.ndarray) -> np.ndarray:
    """Say how much each pillar counts for each k: of the two beside it, the nearer one more."""
    shares = np.zeros((len(own), len(ks)))
    after = np.minimum(np.searchsorted(own, ks), len(own) - 1)
    before = np.maximum(after - 1, 0)
    distance = np.maximum(own[after] - own[before], 1)
    weight = (own[after] - ks) / distance
    columns = np.arange(len(ks))
    shares[before, columns] += weight
    shares[after, columns] += 1 - weight
    return shares


def _outer_nodes(centre: float, sd: float, limits: Limits) -> list[float]:
    """Choose the first two nodes beside the one on the ridge."""
    step = min(_OUTER * sd, (limits[1] - limits[0]) / 2)
    outer = np.clip([centre - step, centre + step], *limits)
    return [float(beta) for beta in outer if abs(beta - centre) > step / 4]
