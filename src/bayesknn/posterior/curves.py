"""log Z in beta at one k: around the ridge, and from beta = 0 (Section 3.3, path sampling).

Both are the integral of the cubic Hermite curve through ``E[S_k] / k`` at the nodes with
``Var[S_k] / k**2`` as its slopes, that is, the trapezium rule with end correction. Every integral
is computed in all replicates of the nodes at once; row 0 is the estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesknn.likelihood.nodes import Node
from bayesknn.posterior.support import Limits

if TYPE_CHECKING:
    from bayesknn.posterior.ridge import RidgeWalk

_N_GRID = 161
_N_LOOK = 61
# Log posterior, below its top, at which the grid of a k ends, and where nodes are still wanted.
_DEPTH = 18.0
_NODE_DEPTH = 4.5
# The outer nodes speak for the posterior this far out, in their own standard deviations, and no
# further than a fixed distance: where labels freeze, E[S] changes over about one unit of beta.
_REACH = 2.0
_MAX_REACH = 1.0
# What the rule gets wrong is a fraction of its correction, and a smaller one of its defect.
_MAX_CORRECTION = 0.15
_MAX_DEFECT = 0.5
# The path from beta = 0.
_FIRST_STEP = 0.125
_PATH_SWEEPS = 64
_PATH_WARMUP = 40
_MAX_NODES = 60


class Curve(NamedTuple):
    """log Z(beta, k) - log Z(beta_hat, k) for one k, around the ridge.

    Attributes
    ----------
    k : int
    centre : float
        beta_hat.
    betas : ndarray of shape (n_nodes,)
    means, slopes : ndarray of shape (n_replicates, n_nodes)
        E[S_k] / k and Var[S_k] / k**2 at the nodes.
    """

    k: int
    centre: float
    betas: np.ndarray
    means: np.ndarray
    slopes: np.ndarray

    @classmethod
    def through(cls, nodes: list[Node], centre: Node, n_replicates: int) -> Curve:
        """Take the moments of nodes of one k, in increasing beta."""
        k = centre.k
        means, slopes = [], []
        for node in nodes:
            column = node.column(k)
            moments = node.replicate(n_replicates)
            means.append(moments.mean[:, column] / k)
            slopes.append(moments.covariance[:, column, column] / k**2)
        betas = np.array([node.beta for node in nodes])
        return cls(k, centre.beta, betas, np.array(means).T, np.array(slopes).T)

    @property
    def _at(self) -> int:
        return int(np.searchsorted(self.betas, self.centre))

    @property
    def sd(self) -> float:
        """Posterior standard deviation of beta at this k if the prior is flat."""
        return float(1 / np.sqrt(max(self.slopes[0, self._at], 1e-12)))

    def find_top(self, target: float, limits: Limits) -> float:
        """Return the beta at which E[S_k] / k is ``target``, by one Newton step."""
        step = (target - self.means[0, self._at]) * self.sd**2
        reach = min(3 * self.sd, _MAX_REACH)
        return float(np.clip(self.centre + np.clip(step, -reach, reach), *limits))

    def weigh(
        self, log_weight: Callable, limits: Limits, n_betas: int = _N_GRID
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lay a grid over the posterior of beta proportional to exp(log_weight(beta)) / Z(beta).

        ``limits`` are those of :func:`bayesknn.posterior.support.find_limits`, here as below.

        Returns
        -------
        beta : ndarray of shape (n_betas,)
            Evenly spaced over all but a negligible part of the mass.
        log_mass : ndarray of shape (n_replicates, n_betas)
            The log posterior, with the weights of the trapezium rule.
        """
        low, high = self._find_span(log_weight, limits, _DEPTH)
        beta = np.linspace(low, high, n_betas)
        log_mass = log_weight(beta) - self.log_normalizer(beta) + np.log(beta[1] - beta[0])
        log_mass[:, [0, -1]] -= np.log(2)
        return beta, log_mass

    def _find_span(self, log_weight: Callable, limits: Limits, depth: float):
        """Find the range of beta over which the log posterior is within ``depth`` of its top."""
        estimate = self._replace(means=self.means[:1], slopes=self.slopes[:1])
        # Twice: with a prior far from the ridge the first look may miss a narrow top.
        centre, sd = self.centre, min(self.sd, limits[1])
        for _ in range(2):
            near = np.clip(centre + np.linspace(-9, 9, _N_LOOK) * sd, *limits)
            beta = np.unique(np.append(near, np.linspace(*limits, _N_LOOK)))
            log_posterior = log_weight(beta) - estimate.log_normalizer(beta)[0]
            centre = beta[np.argmax(log_posterior)]
        heavy = np.flatnonzero(log_posterior > log_posterior.max() - depth)
        return beta[max(heavy[0] - 1, 0)], beta[min(heavy[-1] + 1, len(beta) - 1)]

    def find_gaps(self, log_weight: Callable, limits: Limits) -> list[float]:
        """Say where nodes are missing, for a posterior proportional to exp(log_weight) / Z.

        They are missing between nodes where the cubic is in doubt, and beyond the outer nodes
        where the straight line would have to carry posterior mass.
        """
        low, high = self._find_span(log_weight, limits, _NODE_DEPTH)
        betas, slopes = self.betas, self.slopes
        steps = np.diff(betas)
        corrections = np.abs(steps**2 * np.diff(slopes[0]) / 12)
        # The rise of the mean is the integral of the slope: two accounts of the same thing.
        defects = steps * np.diff(self.means) - steps**2 * (slopes[:, 1:] + slopes[:, :-1]) / 2
        doubtful = np.abs(defects[0]) - 3 * defects.std(axis=0) > _MAX_DEFECT
        doubtful |= corrections > _MAX_CORRECTION
        doubtful &= (betas[1:] > low) & (betas[:-1] < high)
        gaps = ((betas[1:] + betas[:-1]) / 2)[doubtful].tolist()
        reach = _REACH / np.sqrt(np.maximum(slopes[0, [0, -1]], 1e-12))
        if betas[0] - low > 0.75 * min(reach[0], _MAX_REACH):
            least = limits[0]
            far = (betas[0] + least) / 2 if betas[0] - least > _MAX_REACH else least
            gaps.append(far if reach[0] > _MAX_REACH else max(betas[0] - reach[0], least))
        if high - betas[-1] > 0.75 * min(reach[1], _MAX_REACH):
            most = limits[1]
            gaps.append(most if reach[1] > _MAX_REACH else min(betas[-1] + reach[1], most))
        return gaps

    def log_normalizer(self, beta: np.ndarray) -> np.ndarray:
        """Return log Z(beta, k) - log Z(beta_hat, k), of shape (n_replicates, n_betas)."""
        points = np.append(beta, self.centre)
        antiderivative = self._antiderivative(points)
        return antiderivative[:, :-1] - antiderivative[:, -1:]

    def _antiderivative(self, beta: np.ndarray) -> np.ndarray:
        """Integrate the mean from the first node; beyond the outer nodes it is a straight line."""
        betas, means, slopes = self.betas, self.means, self.slopes
        steps = np.diff(betas)
        pieces = steps * (means[:, 1:] + means[:, :-1]) / 2
        pieces += steps**2 * (slopes[:, :-1] - slopes[:, 1:]) / 12
        heights = np.concatenate([np.zeros((len(means), 1)), np.cumsum(pieces, axis=1)], axis=1)
        at = np.clip(np.searchsorted(betas, beta, side="right") - 1, 0, len(betas) - 1)
        # Left of the first node or right of the last: value, slope and curvature of that node.
        distance = beta - betas[at]
        values = heights[:, at] + distance * means[:, at] + distance**2 / 2 * slopes[:, at]
        inner = (beta > betas[0]) & (beta < betas[-1])
        if inner.any():
            left = at[inner]
            values[:, inner] = heights[:, left] + _hermite_integral(
                distance[inner], steps[left], means[:, left], means[:, left + 1],
                slopes[:, left], slopes[:, left + 1],
            )  # fmt: skip
        return values


def _hermite_integral(x, step, mean0, mean1, slope0, slope1):
    """Integrate from 0 to x the cubic on [0, step] with these ends and slopes."""
    t = x / step
    t2, t3, t4 = t**2, t**3, t**4
    return step * (
        mean0 * (t4 / 2 - t3 + t)
        + mean1 * (t3 - t4 / 2)
        + step * slope0 * (t4 / 4 - 2 * t3 / 3 + t2 / 2)
        + step * slope1 * (t4 / 4 - t3 / 3)
    )


def integrate_from_zero(
    centre: Node, walk: RidgeWalk, tolerance: float, max_sweeps: float, n_replicates: int
) -> np.ndarray:
    """Integrate log Z at k from beta = 0, where it is n log G, up to a node, in every replicate.

    Nodes are added where the end correction says that the curve bends by more than the noise
    hides, and all of them run until the error meets the tolerance or ``max_sweeps`` are made. At
    beta = 0 every point is a cluster, so that node knows its mean exactly.
    """
    k, beta = centre.k, centre.beta
    start = walk.field.neighbors.shape[1] * np.log(walk.field.n_classes)
    if beta == 0.0:
        return np.full(n_replicates, start)
    n_steps = max(2, int(np.ceil(beta / _FIRST_STEP)))
    family, missing = [centre], np.linspace(0, beta, n_steps + 1)[:-1]
    while True:
        new = [walk.node(b, k, [k], 200 + len(family) + at) for at, b in enumerate(missing)]
        walk.advance(new, _PATH_SWEEPS, _PATH_WARMUP)
        family = sorted([*family, *new], key=lambda node: node.beta)
        curve = Curve.through(family, centre, n_replicates)
        total = start - curve.log_normalizer(np.zeros(1))[:, 0]
        doubt = np.abs(np.diff(curve.betas) ** 2 * np.diff(curve.slopes[0]) / 12) / 10
        bent = np.flatnonzero(doubt > max(tolerance, total.std()) / 4)
        if len(bent) == 0 or len(family) + len(bent) > _MAX_NODES:
            break
        missing = (curve.betas[bent] + curve.betas[bent + 1]) / 2
    while total.std() > tolerance and 2 * _count_sweeps(family[:-1]) < max_sweeps:
        walk.advance(family[:-1])
        curve = Curve.through(family, centre, n_replicates)
        total = start - curve.log_normalizer(np.zeros(1))[:, 0]
    return total


def _count_sweeps(nodes: list[Node]) -> int:
    return sum(len(node.labels) * node.n_sweeps for node in nodes)
