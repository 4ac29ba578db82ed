"""The rungs of one k, from beta = 0 to where log Z is known again (Section 3.3).

``log Z(beta) = n log G + integral of E[S_k] / k``, by the trapezium rule with end correction,
``(E0 + E1) / 2 + (V0 - V1) / 12`` for a step of length one, since the slope of the mean is the
variance. At beta = 0 both are known; at the far end log Z is estimated on its own (``ends.py``).
What the integral misses there is the closure error, and is spread over the steps in proportion to
their variances: that is least squares.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.nodes import Field
from bayesknn.likelihood.path.curve import N_REPLICATES, Curve
from bayesknn.likelihood.path.ends import End, find_components
from bayesknn.likelihood.path.rung import Rung
from bayesknn.model import agreement_variance_at_zero, expected_agreement_at_zero

# Rungs stand on a lattice of which so many places reach beta_max; each k starts with so few.
COARSE = 8
_HALVINGS = 9
TOP = COARSE * 2**_HALVINGS
_FEWEST_END_RECORDS = 512


class Ladder:
    """Rungs at one k that carry log Z from beta = 0 to the far end.

    Parameters
    ----------
    graph : NeighborGraph
    field : Field
        The same graph, laid out.
    k : int
    k_last : int
        Pilots look at k and at those up to this one.
    beta_max : float
    seeds : numpy.random.SeedSequence
        Rungs take theirs from it by (k, place), so that nothing depends on the order of work.

    Attributes
    ----------
    rungs : dict of int to Rung
        By place on the lattice, in increasing order.
    end : End
        At the last rung.
    """

    end: End

    def __init__(
        self,
        graph: NeighborGraph,
        field: Field,
        k: int,
        k_last: int,
        beta_max: float,
        seeds: np.random.SeedSequence,
    ):
        self.graph, self.field, self.k, self.k_last = graph, field, k, k_last
        self.beta_max, self.seeds = beta_max, seeds
        self.rungs: dict[int, Rung] = {}
        weight = field.class_weight
        self.weight = np.full(field.n_classes, field.unit) if weight is None else weight
        self._zero: dict[int, tuple[float, float]] = {}

    @cached_property
    def components(self) -> np.ndarray:
        """Which component of the graph of k each position is in."""
        return find_components(self.field, self.k)

    def at_zero(self, k: int) -> tuple[float, float]:
        """Return mean and variance of S_k / k at beta = 0."""
        if k not in self._zero:
            n_classes = self.field.n_classes
            mean = expected_agreement_at_zero(self.graph.n_points, k, n_classes, self.weight)
            variance = agreement_variance_at_zero(self.graph, k, n_classes, self.weight)
            self._zero[k] = (mean / k, variance / k**2)
        return self._zero[k]

    def scout(self, place: int) -> tuple[int, Rung]:
        """Run the pilot of a rung at a place of the lattice, which then is to be added."""
        spawn_key = (*self.seeds.spawn_key, self.k, place)
        seeds = np.random.SeedSequence(self.seeds.entropy, spawn_key=spawn_key)
        beta = place * self.beta_max / TOP
        rung = Rung(self.field, beta, self.k, self.k_last, seeds)
        rung.scout()
        return place, rung

    def add(self, rungs: list[tuple[int, Rung]]) -> None:
        """Add rungs that have run their pilots."""
        self.rungs = dict(sorted([*self.rungs.items(), *rungs]))

    def end_here(self) -> float:
        """Let the path end at the last rung for now; return how noisy a record is there."""
        self.end = End(self.rungs[max(self.rungs)], self.components)
        self.end.scout()
        return self.end.log_spread

    def settle(self, columns) -> None:
        """Forget the pilots' records; from now on look at these k."""
        for rung in self.rungs.values():
            rung.settle(columns)

    @property
    def betas(self) -> np.ndarray:
        """Beta of every rung, and of 0 before them."""
        return np.array([0.0, *(rung.beta for rung in self.rungs.values())])

    @property
    def noise(self) -> np.ndarray:
        """By the pilots, variance times records of what each rung adds to log Z; of the end, last.

        A rung counts for half the distance between its neighbours.
        """
        return self._weigh([rung.noise for rung in self.rungs.values()])

    def measure_noise(self) -> np.ndarray:
        """Return the same by the records themselves."""
        return self._weigh([rung.measure_noise() for rung in self.rungs.values()])

    def _weigh(self, noise: list[float]) -> np.ndarray:
        betas = self.betas
        reach = np.append(betas[2:], betas[-1]) - betas[:-1]
        return np.append((reach / 2) ** 2 * np.array(noise), self.end.noise)

    @property
    def counts(self) -> np.ndarray:
        """Records of every rung, and of the end."""
        return np.array([*(r.n_records for r in self.rungs.values()), self.end.n_records], float)

    @property
    def fewest(self) -> np.ndarray:
        """How many records every rung, and the end, need at least."""
        first = [rung.fewest_records for rung in self.rungs.values()]
        return np.array([*first, _FEWEST_END_RECORDS * max(self.end.rung.memory / 5, 1)], float)

    @property
    def cost(self) -> np.ndarray:
        """What a record of every rung, and of the end, costs."""
        return np.array([*(rung.cost for rung in self.rungs.values()), self.end.rung.cost])

    def advance(self, at: int, n_records: int) -> None:
        """Run a rung on, counted from 0, or the end if ``at`` is the number of rungs."""
        if at == len(self.rungs):
            self.end.advance(n_records)
        else:
            list(self.rungs.values())[at].advance(n_records)

    def _integrate(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the integral over each step, and what they miss at the end, in every replicate."""
        mean, variance = self.at_zero(self.k)
        moments = [rung.moments(self.k) for rung in self.rungs.values()]
        means = np.stack([np.full(N_REPLICATES, mean), *(m.mean for m in moments)], axis=1)
        variances = np.stack([np.full(N_REPLICATES, variance), *(m.variance for m in moments)], 1)
        step = np.diff(self.betas)
        rises = step * (means[:, :-1] + means[:, 1:]) / 2 - step**2 * np.diff(variances) / 12
        start = self.graph.n_points * np.log(self.field.n_classes)
        return rises, self.end.log_normalizer() - start - rises.sum(axis=1)

    def curve(self, k: int) -> Curve:
        """Return log Z at one of the columns, at every rung."""
        rises, missing = self._integrate()
        # The weights depend on pilots alone: a run that happened to see little spread would
        # otherwise be trusted too much.
        variance = self.noise / self.counts
        of_steps = np.append(0.0, variance[:-2]) / 2 + variance[:-1] / 2
        of_steps[-1] += variance[-2] / 2
        rises = rises + np.outer(missing, of_steps / (of_steps.sum() + variance[-1]))
        moments = [rung.moments(k) for rung in self.rungs.values()]
        heights = np.cumsum(rises, axis=1) + np.stack([m.log_ratio for m in moments], axis=1)
        start = self.graph.n_points * np.log(self.field.n_classes)
        columns = (heights + start, [m.mean for m in moments], [m.variance for m in moments])
        firsts = (start, *self.at_zero(k))
        rows = []
        for first, column in zip(firsts, columns, strict=True):
            column = column if isinstance(column, np.ndarray) else np.stack(column, axis=1)
            rows.append(np.column_stack([np.full(N_REPLICATES, first), column]))
        return Curve(self.betas, *rows)

    def closure(self) -> float:
        """Return the closure error in standard errors."""
        missing = self._integrate()[1]
        return float(missing[0] / max(missing[1:].std(), 1e-12))

    @property
    def n_sweeps(self) -> int:
        """Sweeps made in all."""
        return sum(2 * rung.node.n_sweeps for rung in self.rungs.values())
