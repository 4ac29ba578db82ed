"""Integrals of E[S] between nodes: along beta, from one k to the next, and from beta = 0.

All three are the trapezium rule with end correction, which is the integral of the cubic Hermite
curve through the means with the variances as slopes: ``d E[S_k] / d beta`` is ``Var[S_k] / k``.
Every integral is computed in all replicates of the nodes at once; row 0 is the estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesknn.likelihood.nodes import Node
from bayesknn.model import agreement_variance_at_zero, expected_agreement_at_zero

if TYPE_CHECKING:
    from bayesknn.posterior.ridge import RidgeWalk

_FIRST_STEP = 0.125
_FIRST_RECORDS = 128
_MAX_CORRECTION = 0.3
_MAX_NODES = 200
# What the rule gets wrong is a fraction of its correction, and matters above a few hundredths.
_MAX_CURVE_CORRECTION = 0.15
_NO_MASS = -5.0
_WARMUP = 40


class Link(NamedTuple):
    """log Z(node1) - log Z(node0) in every replicate, and the end correction in it."""

    value: np.ndarray
    correction: float


def integrate_link(before: Node, after: Node, n_replicates: int) -> Link:
    """Integrate between the settings of two nodes that each record S for both values of k."""
    means, variances = [], []
    for node in (before, after):
        weights = np.zeros(len(node.columns))
        weights[node.column(after.k)] += after.beta / after.k
        weights[node.column(before.k)] -= before.beta / before.k
        moments = node.replicate(n_replicates)
        means.append(moments.mean @ weights)
        variances.append(moments.covariance @ weights @ weights)
    correction = (variances[0] - variances[1]) / 12
    return Link((means[0] + means[1]) / 2 + correction, float(correction[0]))


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
    def sd(self) -> float:
        """Posterior standard deviation of beta at this k if the prior is flat."""
        at = int(np.searchsorted(self.betas, self.centre))
        return float(1 / np.sqrt(max(self.slopes[0, at], 1e-12)))

    def find_top(self, target: float) -> float:
        """Return the beta at which E[S_k] / k is ``target``, by one Newton step."""
        at = int(np.searchsorted(self.betas, self.centre))
        return self.centre + (target - self.means[0, at]) / max(self.slopes[0, at], 1e-9)

    def find_gaps(self, target: float, beta_max: float) -> list[float]:
        """Say where nodes are missing, for a posterior proportional to exp(beta * target) / Z.

        They are missing between nodes where the end correction is not small, and beyond the outer
        nodes where the straight line would have to carry posterior mass.
        """
        corrections = np.abs(np.diff(self.betas) ** 2 * np.diff(self.slopes[0]) / 12)
        middles = (self.betas[1:] + self.betas[:-1]) / 2
        gaps = middles[corrections > _MAX_CURVE_CORRECTION].tolist()
        low, high = max(0.0, self.centre - 6 * self.sd), min(beta_max, self.centre + 6 * self.sd)
        grid = np.linspace(low, high, 101)
        log_posterior = grid * target - self.log_normalizer(grid)[0]
        log_posterior -= log_posterior.max()
        for outer, sign in ((0, -1), (-1, 1)):
            reach = 2 / np.sqrt(max(self.slopes[0, outer], 1e-12))
            beyond = sign * (grid - self.betas[outer]) > reach / 2
            if np.any(log_posterior[beyond] > _NO_MASS):
                gaps.append(float(np.clip(self.betas[outer] + sign * reach, low, high)))
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

    Nodes are added where the end correction says that the curve bends, and all of them run until
    the error meets the tolerance or ``max_sweeps`` are made.
    """
    k, beta = centre.k, centre.beta
    field = walk.field
    n = field.neighbors.shape[1]
    start = n * np.log(field.n_classes)
    if beta == 0.0:
        return np.full(n_replicates, start)
    n_steps = max(2, int(np.ceil(beta / _FIRST_STEP)))
    betas = np.linspace(0, beta, n_steps + 1)[1:-1]
    nodes = [walk.node(b, k, [k], 200 + at) for at, b in enumerate(betas)]
    n_records = min(centre.n_records, _FIRST_RECORDS)
    walk.each(lambda node: node.advance(n_records, _WARMUP), nodes)
    family = [*nodes, centre]
    while True:
        curve = _add_zero(Curve.through(family, centre, n_replicates), walk)
        steps = np.diff(curve.betas)
        corrections = np.abs(steps**2 * np.diff(curve.slopes[0]) / 12)
        bent = np.flatnonzero(corrections > _MAX_CORRECTION)
        if len(bent) == 0 or len(family) + len(bent) > _MAX_NODES:
            break
        middles = (curve.betas[bent] + curve.betas[bent + 1]) / 2
        new = [walk.node(b, k, [k], 200 + len(family) + at) for at, b in enumerate(middles)]
        walk.each(lambda node: node.advance(n_records, _WARMUP), new)
        family = sorted([*family, *new], key=lambda node: node.beta)
    while True:
        total = start - curve.log_normalizer(np.zeros(1))[:, 0]
        spent = sum(node.n_sweeps for node in family)
        if total.std() <= tolerance or 2 * spent > max_sweeps:
            return total
        walk.each(lambda node: node.advance(node.n_records), family[:-1])
        curve = _add_zero(Curve.through(family, centre, n_replicates), walk)


def _add_zero(curve: Curve, walk: RidgeWalk) -> Curve:
    """Put the exact mean and variance at beta = 0 before the first node."""
    field, k = walk.field, curve.k
    mean = (
        expected_agreement_at_zero(
            field.neighbors.shape[1], k, field.n_classes, walk.likelihood.class_weight
        )
        / k
    )
    slope = (
        agreement_variance_at_zero(
            walk.likelihood.graph, k, field.n_classes, walk.likelihood.class_weight
        )
        / k**2
    )
    rows = len(curve.means)
    return curve._replace(
        betas=np.append(0.0, curve.betas),
        means=np.column_stack([np.full(rows, mean), curve.means]),
        slopes=np.column_stack([np.full(rows, slope), curve.slopes]),
    )
