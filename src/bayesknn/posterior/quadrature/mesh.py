"""log Z where the posterior is, from chains that stand around its modes beta_hat(k) (Section 3.3).

Candidates go in, the posterior of beta at each k that matters comes out. Only differences of log Z
near the mode curve matter. A first search has chosen some k
(:mod:`~bayesknn.posterior.quadrature.which_k`); pairs of chains stand beside the mode of each, and
all their draws together give log Z at every (beta, k) that they reach
(:mod:`bayesknn.log_z.mbar`), at the k between them too. Where posterior mass rests on few draws,
chains are added; then all run until the posterior is precise.

Where a first-order transition lies among the k that matter, there is a mesh in each of two phases
of the labels, and log Z is that of both together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from bayesknn._utils.random import Purpose
from bayesknn.log_z.chains import ChainPair
from bayesknn.log_z.estimate import Curve
from bayesknn.log_z.mbar import BETA_SCALE, MAX_VARIANCE, combine
from bayesknn.log_z.records import N_CHAINS, Setting, standard_error
from bayesknn.log_z.simulation import FEW_SWEEPS, SWEEPS, Simulation, Work
from bayesknn.model import log_normalizer_exact
from bayesknn.model.integration import place_nodes
from bayesknn.posterior.quadrature.log_posterior import LogPosterior, Profile
from bayesknn.posterior.quadrature.which_k import MAX_LOG_DEFICIT, Candidate, Division

# In posterior standard deviations of beta: how far from the mode chains stand, how far apart the
# nodes of a curve of log Z are, and how far out they go. Wider is less work and rests on fewer
# draws in between.
_ASIDE, _STEP, _OUT = 1.3, 0.7, 4.2
# Posterior mass rests on few independent draws if there are fewer than this, and so much may: fewer
# chains against an error that is itself not known.
_FEW_DRAWS, _LITTLE = 20.0, 2e-3
# Minimum number of independent draws at a node where exact log Z fixes the constant that all
# estimates share. Smaller values leave the evidence with a larger error than a path from beta = 0
# has; larger ones leave exact values unused.
_MANY_DRAWS = 100.0
# Depth in log posterior at which the curve of a k may end, and the log deficit from which a k is
# not worked on any more: a thousandth of the mass is left out or known less well.
_DEPTH = 7.0
# How often chains are added at most: an end where that does not help.
_MAX_TURNS = 10
# Rounds of more records at most, where a tolerance was given and sweeps have no other limit.
_MAX_ROUNDS = 12
# Nodes may be further apart the further they are from the top, as a share of the way: a posterior
# of separated classes reaches to the end of its prior, however far that is.
_WIDER = 1 / 3


class Estimate(NamedTuple):
    """The posterior as far as the records tell.

    Attributes
    ----------
    profiles : list of Profile
        Of each k, with log Z up to a common constant.
    panels : list of ndarray
        Where the posterior of beta is at each k.
    score : ndarray of shape (n_replicates, n_k)
        The log posterior of each k, up to a constant.
    values : list of ndarray of shape (n_phases, n_nodes)
        log Z of each phase at the nodes of each k.
    n_effective : list of ndarray of shape (n_phases, n_nodes)
        Independent draws at the nodes.
    of_pairs : ndarray of shape (n_replicates, n_pairs)
        log Z at the chains of the first phase, up to the same constant.
    is_absolute : bool
        The constant is 0: log Z itself is known.
    is_settled : bool
        Newton's method converged in every phase.
    """

    profiles: list[Profile]
    panels: list[np.ndarray]
    score: np.ndarray
    values: list[np.ndarray]
    n_effective: list[np.ndarray]
    of_pairs: np.ndarray
    is_absolute: bool
    is_settled: bool


class Place(NamedTuple):
    """Where chains are to stand: in which phase and at which setting.

    ``pilot`` ran nearby, and ``sweeps`` are what each chain makes to begin with.
    """

    phase: int
    setting: Setting
    pilot: ChainPair
    sweeps: int = SWEEPS


class Mesh:
    """Chains around the mode curve, in every phase of the labels.

    Parameters
    ----------
    simulation : Simulation
    target : LogPosterior
    candidates : list of Candidate
        At the k that the search has chosen, in increasing order.
    tolerance : float
        Error allowed on the log posterior of the k that matter.
    max_sweeps : float
        About how many sweeps the simulation may make in all.
    division : Division, optional
        The two phases, if there are two.
    exact_ks : list of int
        The first of the k that may matter at which log Z is computed exactly; none where there are
        two phases.

    Attributes
    ----------
    ks : ndarray of int
        All k that may matter.
    nodes : dict of int to ndarray
        By k, where log Z is computed.
    phases : list of list of ChainPair
    estimate : Estimate
        The posterior as far as the records tell.
    excess : float
        The largest of the errors of log posterior and mean of k, as a multiple of what is allowed.
    """

    estimate: Estimate
    excess: float

    def __init__(
        self,
        simulation: Simulation,
        target: LogPosterior,
        candidates: list[Candidate],
        tolerance: float,
        max_sweeps: float,
        division: Division | None = None,
        exact_ks: Sequence[int] = (),
    ):
        self.simulation, self.target, self.tolerance = simulation, target, tolerance
        self.max_sweeps, self.division, self.candidates = max_sweeps, division, candidates
        self.ks, self.exact_ks = choose_ks(target, candidates), exact_ks
        searched = [candidate.k for candidate in candidates]
        self._log_z: dict[int, np.ndarray] = {}
        self.columns = np.union1d(self.ks, searched)
        tops = np.interp(self.ks, searched, [candidate.top for candidate in candidates])
        sds = np.interp(self.ks, searched, [candidate.sd for candidate in candidates])
        self.tops = dict(zip(self.ks.tolist(), tops.tolist(), strict=True))
        self.nodes = {
            k: _place_nodes(top, sd, target.limits[k])
            for (k, top), sd in zip(self.tops.items(), sds.tolist(), strict=True)
        }
        self.phases: list[list[ChainPair]] = [[] for _ in candidates[0].pilots]
        self._n_turns = self._n_rounds = 0

    def plan(self) -> Work:
        """Return the first records, then those of chains that are missing, then more of all."""
        if not self.phases[0]:
            return self._place_chains()
        n_left = self.max_sweeps - self.simulation.n_sweeps
        while True:
            self.estimate = self._weigh()
            self._n_turns += 1
            if self._n_turns >= _MAX_TURNS:
                break
            work, has_more_nodes = self._grow(may_run=n_left >= 0)
            if work:
                return work
            if not has_more_nodes:
                break
        score = self.estimate.score
        self.excess = judge(self.ks, score, self.tolerance)
        self._n_rounds += 1
        if self._n_rounds > _MAX_ROUNDS:
            return []
        matters = self.ks[score[0] > score[0].max() - _DEPTH]
        if self.division is not None:
            # The weight of one phase relative to the other comes from where log Z itself is known.
            matters = np.union1d(matters, self.division.k)
        pairs = [
            pair for phase in self.phases for pair in phase if matters[0] <= pair.k <= matters[-1]
        ]
        return self.simulation.extend(pairs, self.excess, n_left)

    @property
    def _best(self) -> int:
        """Position of the k with the largest posterior."""
        return int(np.argmax(self.estimate.score[0]))

    @property
    def reference(self) -> tuple[ChainPair, np.ndarray]:
        """A pair near the mode of the best k, and log Z there up to the common constant."""
        best = int(self.ks[self._best])
        away = [abs(pair.k - best) + (len(pair.setting.ks) - 1) for pair in self.phases[0]]
        at = int(np.argmin(away))
        return self.phases[0][at], self.estimate.of_pairs[:, at]

    @property
    def reached(self) -> float:
        """Largest beta followed at the best k if the posterior goes on beyond, else infinity."""
        nodes = self.nodes[int(self.ks[self._best])]
        return float(nodes[-1]) if self._goes_on(self._best)[1] else np.inf

    def _place_chains(self) -> Work:
        """Create chains beside each mode and between k whose draws do not overlap."""
        places = []
        for phase in range(len(self.phases)):
            for at, candidate in enumerate(self.candidates):
                places += self._place_beside_mode(phase, candidate)
                if at:
                    places += self._place_between(phase, self.candidates[at - 1], candidate)
        # Of each chain in its first run, even if batches are then shorter than they should be:
        # errors that are known badly against rounds that cannot be made.
        left = (self.max_sweeps - self.simulation.n_sweeps) / 3
        self._max_first = max(left / (N_CHAINS * len(places)), FEW_SWEEPS)
        return [self._make(place) for place in places]

    def _place_beside_mode(self, phase: int, candidate: Candidate) -> list[Place]:
        """Return where chains are to stand on both sides of a mode."""
        low, high = self.target.limits[candidate.k]
        pilot = candidate.pilots[phase].pair
        centre, sd = candidate.top, candidate.sd
        if self.division is not None:
            centre = np.clip(centre + sd * self.division.offsets[phase], low, high)
            sd = sd * self.division.spreads[phase]
        aside = min(_ASIDE * sd, (high - low) / 2)
        betas = np.unique(np.clip([centre - aside, centre + aside], low, high))
        sweeps = SWEEPS if candidate.log_deficit < _DEPTH else FEW_SWEEPS
        return [Place(phase, Setting.at(beta, candidate.k), pilot, sweeps) for beta in betas]

    def _place_between(self, phase: int, before: Candidate, after: Candidate) -> list[Place]:
        """Return where chains are to stand between two k whose draws do not overlap."""
        ks, rates = (before.k, after.k), (before.top / before.k, after.top / after.k)
        pilots = [candidate.pilots[phase].pair for candidate in (before, after)]
        variances = [
            (rates[1] * pair.series(ks[1]) - rates[0] * pair.series(ks[0])).var() for pair in pilots
        ]
        n_parts = min(int(np.ceil(np.sqrt(max(variances) / MAX_VARIANCE))), 16)
        slower = max(pilots, key=lambda pilot: pilot.time)
        return [
            Place(phase, Setting(ks, (rates[0] * (1 - share), rates[1] * share)), slower)
            for share in np.arange(1, n_parts) / n_parts
        ]

    def _make(self, place: Place) -> tuple[ChainPair, int]:
        """Make chains where they are to stand, and say how many records to begin with."""
        phase, setting, pilot, sweeps = place
        task = self.simulation.new_chain_pair(
            setting, self.columns, (Purpose.MESH, setting.ks[-1], sum(map(len, self.phases))),
            pilot.time, min(sweeps, self._max_first), self._max_first,
            initial=pilot.labels, window=pilot.window,
        )  # fmt: skip
        self.phases[phase].append(task[0])
        return task

    def _weigh(self) -> Estimate:
        """Weigh the posterior at each k with what the records say now."""
        targets = [Setting.at(beta, k) for k in self.nodes for beta in self.nodes[k].tolist()]
        ends = np.cumsum([len(nodes) for nodes in self.nodes.values()])
        # Where log Z is known, in two phases; anywhere, in one.
        ties, known = [self.phases[0][0].setting], np.zeros((1, 1))
        if self.division is not None:
            ties = [Setting.at(beta, self.division.k) for beta in self.division.betas.tolist()]
            known = self.division.log_z(self.division.betas)
        values, n_effective, of_pairs, is_settled = [], [], [], True
        for at, phase in enumerate(self.phases):
            combined = combine(phase, [*targets, ties[at]])
            constant = (known[at] - combined.of_targets[:, -1])[:, None]
            values.append(np.split(combined.of_targets + constant, ends, axis=1))
            n_effective.append(np.split(combined.n_effective, ends))
            of_pairs.append(combined.of_pairs + constant)
            is_settled &= combined.is_settled
        is_absolute = self.division is not None
        if self.exact_ks:
            constant, is_absolute = self._put_exact(values[0], n_effective[0])
            of_pairs[0] += constant[:, None]
        profiles, panels, scores = [], [], []
        for at, (k, nodes) in enumerate(self.nodes.items()):
            edges = np.clip(self.target.masses[k].panels(2), nodes[0], nodes[-1])
            log_z = Curve([(nodes, part[at]) for part in values])
            profiles.append(Profile(self.target, k, log_z, np.union1d(nodes, edges)))
            panels.append(profiles[at].find_panels())
            scores.append(logsumexp(profiles[at].weigh(panels[at]), axis=1))
        return Estimate(
            profiles,
            panels,
            np.column_stack(scores),
            [np.array([part[at][0] for part in values]) for at in range(len(self.ks))],
            [np.array([part[at] for part in n_effective]) for at in range(len(self.ks))],
            of_pairs[0],
            is_absolute,
            is_settled,
        )

    def _put_exact(
        self, values: list[np.ndarray], n_effective: list[np.ndarray]
    ) -> tuple[np.ndarray, bool]:
        """Add a constant that makes log Z absolute, and put exact log Z where it is known.

        The constant is exact log Z less its estimate at that node of an exact k to which most
        independent draws contribute. Where even that node has few draws the constant would add
        noise, and nothing is changed.

        Parameters
        ----------
        values : list of ndarray of shape (n_replicates, n_nodes)
            log Z up to a constant at the nodes of each k; changed in place.
        n_effective : list of ndarray of shape (n_nodes,)

        Returns
        -------
        constant : ndarray of shape (n_replicates,)
        is_absolute : bool
        """
        rows = range(len(self.exact_ks))
        best = max(rows, key=lambda at: n_effective[at].max())
        node = int(np.argmax(n_effective[best]))
        if n_effective[best][node] < _MANY_DRAWS:
            return np.zeros(len(values[0])), False
        exact = [self._exact(k) for k in self.exact_ks]
        constant = exact[best][node] - values[best][:, node]
        for at in range(len(values)):
            values[at] = values[at] + constant[:, None]
        for at in rows:
            values[at] = np.tile(exact[at], (len(constant), 1))
        return constant, True

    def _exact(self, k: int) -> np.ndarray:
        """Return exact log Z at the nodes of k."""
        nodes = self.nodes[k]
        if k not in self._log_z or len(self._log_z[k]) != len(nodes):
            self._log_z[k] = np.array(log_normalizer_exact(self.simulation.model, nodes, k))
        return self._log_z[k]

    def _grow(self, may_run: bool) -> tuple[Work, bool]:
        """Let curves go on that end too early, and add chains where mass rests on few draws.

        Returns
        -------
        work : list of (ChainPair, int)
            First records of the chains that are added.
        has_more_nodes : bool
            A curve goes on.
        """
        work: Work = []
        state, n_nodes = self.estimate, sum(map(len, self.nodes.values()))
        score = state.score[0]
        for at in np.flatnonzero(score > score.max() - _DEPTH).tolist():
            k, values = int(self.ks[at]), state.values[at]
            nodes, log_z = self.nodes[k], logsumexp(values, axis=0)
            fine, widths = place_nodes(state.panels[at])
            log_posterior = state.profiles[at].log_posterior(fine, slice(1))[0]
            # The mass around each node, as a share of all.
            mass = np.exp(log_posterior - log_posterior.max()) * widths
            nearest = np.searchsorted((nodes[1:] + nodes[:-1]) / 2, fine)
            mass = np.bincount(nearest, mass / mass.sum(), len(nodes))
            share = np.exp(score[at] - logsumexp(score))
            for phase, (part, n_draws) in enumerate(
                zip(values, state.n_effective[at], strict=True)
            ):
                rare = np.where(n_draws < _FEW_DRAWS, share * mass * np.exp(part - log_z), 0.0)
                if may_run and rare.sum() > _LITTLE:
                    setting = Setting.at(nodes[int(np.argmax(rare))], k)
                    nearest_k = min(self.candidates, key=lambda candidate: abs(candidate.k - k))
                    place = Place(phase, setting, nearest_k.pilots[phase].pair)
                    work.append(self._make(place))
            matters, limits = mass > np.exp(-_DEPTH), np.array(self.target.limits[k])
            goes_on = self._goes_on(at)
            self.nodes[k] = _add_nodes(nodes, log_z, matters, goes_on, limits, self.tops[k])
        return work, sum(map(len, self.nodes.values())) > n_nodes

    def _goes_on(self, at: int) -> np.ndarray:
        """Return whether mass may lie below the first node of a k, and above the last."""
        k, state = int(self.ks[at]), self.estimate
        nodes, mass = self.nodes[k], self.target.masses[k]
        log_f = nodes / k * self.target.observed[k - 1] - logsumexp(state.values[at], axis=0)
        fine = place_nodes(state.panels[at])[0]
        # Beyond the ends, with the most that the prior has.
        enough = state.profiles[at].log_posterior(fine, slice(1)).max() - _DEPTH - mass.log_top
        goes_on = (log_f[[0, -1]] > enough) | (log_f[[0, -1]] > log_f[[1, -2]])
        return goes_on & (nodes[[0, -1]] != (mass.low, mass.high))


def choose_ks(target: LogPosterior, candidates: list[Candidate]) -> np.ndarray:
    """Return all k that may matter, given what the search found at some of them."""
    searched = np.array([candidate.k for candidate in candidates])
    ks = target.ks[(target.ks >= searched[0]) & (target.ks <= searched[-1])]
    # Between two k of the search all is taken to change evenly.
    log_deficits = np.interp(ks, searched, [candidate.log_deficit for candidate in candidates])
    return ks[log_deficits < MAX_LOG_DEFICIT]


def _place_nodes(top: float, sd: float, limits: tuple[float, float]) -> np.ndarray:
    low, high = max(top - _OUT * sd, limits[0]), min(top + _OUT * sd, limits[1])
    return np.linspace(low, high, max(int(np.ceil((high - low) / (_STEP * sd))), 5) + 1)


def _add_nodes(
    nodes: np.ndarray,
    log_z: np.ndarray,
    matters: np.ndarray,
    goes_on: np.ndarray,
    limits: np.ndarray,
    top: float,
) -> np.ndarray:
    """Add nodes where they are too far apart for the curvature of log Z, and beyond the ends."""
    steps = np.diff(nodes)
    bends = np.diff(np.diff(log_z) / steps) / ((steps[1:] + steps[:-1]) / 2)
    sds = 1 / np.sqrt(np.maximum(bends, 1e-12))
    longest = np.maximum(BETA_SCALE, _WIDER * np.abs(nodes - top))
    sds = np.minimum(np.concatenate([sds[:1], sds, sds[-1:]]), longest)
    wide = steps > np.minimum(sds[1:], sds[:-1])
    wide &= matters[1:] | matters[:-1]
    more = [nodes, nodes[:-1][wide] + steps[wide] / 2]
    for end, sign in ((0, -1), (-1, 1)):
        if goes_on[end] and sds[end] > BETA_SCALE:
            # Labels are frozen: on to the end of the prior, each step a share of the way.
            first, last = abs(nodes[end] - top), abs(limits[end] - top)
            n_more = int(np.ceil(np.log(last / first) / np.log1p(_STEP * _WIDER)))
            more += [top + sign * np.geomspace(first, last, n_more + 1)[:-1], limits[[end]]]
        elif goes_on[end]:
            more.append(nodes[end] + sign * _STEP * sds[end] * np.arange(1, 5))
    longer = np.sort(np.clip(np.concatenate(more), *limits))
    return longer[np.append(True, np.diff(longer) > 1e-6 * steps.min())]


def judge(ks: np.ndarray, score: np.ndarray, tolerance: float) -> float:
    """Return the largest of the errors of log posterior and mean of k, beside what is allowed."""
    shares = softmax(score, axis=1)
    share = shares[0]
    # An error common to all k changes nothing, and one on a small share little.
    error = standard_error(score - score @ share[:, None]) * np.sqrt(share / share.max())
    means = shares @ ks
    sd = np.sqrt(share @ (ks - means[0]) ** 2)
    of_mean = standard_error(means) / (max(sd, 1.0) / 3)
    return float(max(error.max(), of_mean) / tolerance)
