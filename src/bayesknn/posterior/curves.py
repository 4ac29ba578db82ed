"""log Z in beta at one k: around the ridge, and from beta = 0 (Section 3.3, path sampling).

Both are the integral of the cubic Hermite curve through ``E[S_k] / k`` at the nodes with
``Var[S_k] / k**2`` as its slopes, that is, the trapezium rule with end correction. Every integral
is computed in all replicates of the nodes at once; row 0 is the estimate.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesknn._jit import kernel
from bayesknn.likelihood.nodes import Node
from bayesknn.posterior.support import Limits

if TYPE_CHECKING:
    from bayesknn.posterior.ridge import RidgeWalk

Span = tuple[float, float]

_N_GRID = 161
_N_LOOK = 61
_MAX_LOOKS = 4
# Log posterior, below its top, at which the grid of a k ends, and where nodes are still wanted.
_DEPTH = 18.0
NODE_DEPTH = 4.5
# The outer nodes speak for the posterior this far out, in their own standard deviations, and no
# further than a fixed distance: where labels freeze, E[S] changes over about one unit of beta.
_REACH = 2.0
_MAX_REACH = 1.0
# What the rule gets wrong is a fraction of its correction, and a smaller one of its defect.
_MAX_CORRECTION = 0.25
_MAX_DEFECT = 0.5
# The path from beta = 0.
_FIRST_STEP = 0.125
_PATH_SWEEPS = 64
_PATH_WARMUP = 40
_MAX_NODES = 60


class Curve(NamedTuple):
    """log Z(beta, k) around the ridge, from nodes at k itself or at a k nearby.

    Attributes
    ----------
    k : int
    centre : float
        The beta of the node on the ridge.
    height : ndarray of shape (n_replicates,)
        log Z(centre, k), less that at the nodes' own k.
    betas : ndarray of shape (n_nodes,)
    means, slopes : ndarray of shape (n_replicates, n_nodes)
        E[S_k] / k and Var[S_k] / k**2 at the nodes.
    """

    k: int
    centre: float
    height: np.ndarray
    betas: np.ndarray
    means: np.ndarray
    slopes: np.ndarray

    @classmethod
    def through(cls, nodes: list[Node], centre: Node, n_replicates: int) -> Curve:
        """Take the moments of S at their own k from nodes in increasing beta."""
        return cls.around(nodes, centre, n_replicates, [centre.k])[centre.k]

    @classmethod
    def around(
        cls, nodes: list[Node], centre: Node, n_replicates: int, ks: list[int]
    ) -> dict[int, Curve]:
        """Take the moments of S at several k, which all the nodes record."""
        means, slopes = np.empty((2, len(ks), n_replicates, len(nodes)))
        for at, node in enumerate(nodes):
            tilt, columns = node.tilt(n_replicates), np.searchsorted(node.columns, ks)
            means[:, :, at], slopes[:, :, at] = tilt.mean.T[columns], tilt.variance.T[columns]
        betas = np.array([node.beta for node in nodes])
        heights = centre.tilt(n_replicates).log_ratio.T[np.searchsorted(centre.columns, ks)]
        return {
            k: cls(k, centre.beta, heights[at], betas, means[at], slopes[at])
            for at, k in enumerate(ks)
        }

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

    def log_normalizer(self, beta: np.ndarray, n_rows: int | None = None) -> np.ndarray:
        """Return log Z(beta, k) less that of the nodes' k at the centre: (n_rows, n_betas)."""
        means, slopes = self.means[:n_rows], self.slopes[:n_rows]
        points = np.append(beta, self.centre)
        values = _integrate(self.betas, means, slopes, points)
        return values[:, :-1] + (self.height[:n_rows] - values[:, -1])[:, None]

    def find_gaps(self, span: Span, limits: Limits) -> list[float]:
        """Say where nodes are missing, for a posterior that lies within ``span``.

        They are missing between nodes where the cubic is in doubt, and beyond the outer nodes
        where the straight line would have to carry posterior mass.
        """
        low, high = span
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
        if betas[0] - low > min(reach[0], _MAX_REACH):
            least = limits[0]
            far = (betas[0] + least) / 2 if betas[0] - least > _MAX_REACH else least
            gaps.append(far if reach[0] > _MAX_REACH else max(betas[0] - reach[0], least))
        if high - betas[-1] > min(reach[1], _MAX_REACH):
            most = limits[1]
            gaps.append(most if reach[1] > _MAX_REACH else min(betas[-1] + reach[1], most))
        return gaps


class Profile(NamedTuple):
    """log Z(beta, k) at one k as an average of curves, that of nodes before k and after it.

    Attributes
    ----------
    curves : tuple of Curve
    shares : tuple of float
        What each counts; they sum to one.
    """

    curves: tuple[Curve, ...]
    shares: tuple[float, ...] = (1.0,)

    @property
    def k(self) -> int:
        """The k that the curves are of."""
        return self.curves[0].k

    def log_normalizer(self, beta: np.ndarray, n_rows: int | None = None) -> np.ndarray:
        """Return the average of what the curves say, of shape (n_rows, n_betas)."""
        values = [
            share * curve.log_normalizer(beta, n_rows)
            for share, curve in zip(self.shares, self.curves, strict=True)
        ]
        return functools.reduce(np.add, values)

    def find_span(self, log_weight: Callable, limits: Limits, depth: float = _DEPTH) -> Span:
        """Find where a log posterior, ``log_weight - log Z``, is within ``depth`` of its top.

        ``limits`` are those of :func:`bayesknn.posterior.support.find_limits`.
        """
        centre = sum(s * c.centre for s, c in zip(self.shares, self.curves, strict=True))
        sd = min(*(curve.sd for curve in self.curves), limits[1])
        for _ in range(_MAX_LOOKS):
            near = np.clip(centre + np.linspace(-9, 9, _N_LOOK) * sd, *limits)
            beta = np.unique(np.append(near, np.linspace(*limits, _N_LOOK)))
            log_posterior = log_weight(beta) - self.log_normalizer(beta, n_rows=1)[0]
            top = beta[np.argmax(log_posterior)]
            if abs(top - centre) <= 3 * sd:
                break
            # With a prior far from the ridge the first look may miss a narrow top.
            centre = top
        heavy = np.flatnonzero(log_posterior > log_posterior.max() - depth)
        return beta[max(heavy[0] - 1, 0)], beta[min(heavy[-1] + 1, len(beta) - 1)]

    def weigh(
        self, log_weight: Callable, span: Span, n_betas: int = _N_GRID
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lay a grid over the posterior of beta proportional to exp(log_weight(beta)) / Z(beta).

        Returns
        -------
        beta : ndarray of shape (n_betas,)
            Evenly spaced over ``span``.
        log_mass : ndarray of shape (n_replicates, n_betas)
            The log posterior, with the weights of the trapezium rule.
        """
        beta = np.linspace(*span, n_betas)
        log_mass = log_weight(beta) - self.log_normalizer(beta) + np.log(beta[1] - beta[0])
        log_mass[:, [0, -1]] -= np.log(2)
        return beta, log_mass


@kernel
def _integrate(betas, means, slopes, points):
    """Integrate the mean from the first node; beyond the outer nodes it is a straight line."""
    n_rows, n_nodes = means.shape
    values = np.empty((n_rows, points.size))
    places = np.searchsorted(betas, points, side="right") - 1
    heights = np.zeros(n_nodes)
    for row in range(n_rows):
        mean, slope = means[row], slopes[row]
        for j in range(n_nodes - 1):
            step = betas[j + 1] - betas[j]
            piece = (mean[j] + mean[j + 1]) / 2 + step * (slope[j] - slope[j + 1]) / 12
            heights[j + 1] = heights[j] + step * piece
        for p in range(points.size):
            j = min(max(places[p], 0), n_nodes - 1)
            x = points[p] - betas[j]
            if places[p] < 0 or places[p] == n_nodes - 1:
                # Left of the first node or right of the last: value and slope of that node.
                values[row, p] = heights[j] + x * (mean[j] + x / 2 * slope[j])
            else:
                values[row, p] = heights[j] + _hermite_integral(
                    x, betas[j + 1] - betas[j], mean[j], mean[j + 1], slope[j], slope[j + 1]
                )
    return values


@kernel
def _hermite_integral(x, step, mean0, mean1, slope0, slope1):
    """Integrate from 0 to x the cubic on [0, step] with these ends and slopes."""
    t = x / step
    t2 = t * t
    t3, t4 = t2 * t, t2 * t2
    return step * (
        mean0 * (t4 / 2 - t3 + t)
        + mean1 * (t3 - t4 / 2)
        + step * slope0 * (t4 / 4 - 2 * t3 / 3 + t2 / 2)
        + step * slope1 * (t4 / 4 - t3 / 3)
    )


def integrate_from_zero(
    centre: Node, walk: RidgeWalk, tolerance: float, max_sweeps: float, n_replicates: int
) -> tuple[np.ndarray, bool]:
    """Integrate log Z at k from beta = 0, where it is n log G, up to a node, in every replicate.

    Nodes are added where the end correction says that the curve bends by more than the noise
    hides, and all of them run until the error meets the tolerance or ``max_sweeps`` are made. At
    beta = 0 every point is a cluster, so that node knows its mean exactly. Also says whether there
    is a first-order transition on the way, as far as the chains tell.
    """
    k, beta = centre.k, centre.beta
    start = walk.field.neighbors.shape[1] * np.log(walk.field.n_classes)
    if beta == 0.0:
        return np.full(n_replicates, start), False
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
    return total, any(node.is_split() for node in family)


def _count_sweeps(nodes: list[Node]) -> int:
    return sum(len(node.labels) * node.n_sweeps for node in nodes)
