"""The posterior of beta at each k, but for log Z, and how it is summed (Section 3).

``log P(beta, k | y) = beta / k * S_k(y) + log prior - log Z(beta, k)``, up to a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.log_z.curve import Coexistence, Curve
from bayesknn.model import Prior
from bayesknn.posterior.support import Limits, find_limits

# The step, as a share of beta_max, over which the prior's slope is taken.
_NUDGE = 1e-3
# Values of beta at which priors of two k are compared, and at which a posterior is looked for.
_N_COMPARED, _N_LOOK, _MAX_LOOKS = 33, 61, 4
# So many of them are to lie where the posterior is, unless that is narrower than this.
_MIN_HEAVY, _NARROW = 8, 1e-9
# Log posterior, below its top, at which the grid of a k ends.
_DEPTH = 18.0


class Target:
    """What a posterior is, but for log Z.

    Parameters
    ----------
    likelihood : CoherentLikelihood
    prior : Prior
    """

    def __init__(self, likelihood: CoherentLikelihood, prior: Prior):
        self.labels, self.observed = likelihood.labels, likelihood.agreement
        self.model, self.log_prior = likelihood.model, prior.log_density
        self.beta_max = prior.beta_max
        self.limits: dict[int, Limits] = find_limits(prior.log_density, prior.k_max, prior.beta_max)
        self.ks = np.array(list(self.limits))

    def log_weight(self, k: int) -> Callable:
        """Return the log posterior at k, but for log Z, as a function of beta."""
        return lambda beta: beta / k * self.observed[k - 1] + self.log_prior(beta, k)

    def mean_wanted(self, k: int, beta: float) -> float:
        """Return what E[S_k] / k is where the posterior at k has its top, as seen from beta."""
        nudge = _NUDGE * self.beta_max
        ends = np.clip([beta - nudge, beta + nudge], *self.limits[k])
        heights = self.log_prior(ends, k)
        is_flat = ends[0] == ends[1] or not np.isfinite(heights).all()
        pull = 0.0 if is_flat else np.diff(heights)[0] / np.diff(ends)[0]
        return float(self.observed[k - 1] / k + pull)

    def is_product(self) -> bool:
        """Whether the prior of beta is the same at every k, so that neighbours are alike."""
        if len(set(self.limits.values())) > 1:
            return False
        beta = np.linspace(*self.limits[self.ks[0]], _N_COMPARED)
        heights = self.log_prior(beta, self.ks[:, None])
        return np.allclose(heights - heights[:, :1], heights[0] - heights[0, 0], atol=1e-6)


class Profile(NamedTuple):
    """log Z(beta, k) at one k: in each phase of the labels an average of curves, those of anchors.

    There is one phase, all labels, but at a first-order transition, where there are two and Z is
    the sum over them.

    Attributes
    ----------
    k : int
    phases : tuple of tuple of Curve or Coexistence
        Of leading shape (n_replicates,): those of the anchors before k and after it.
    shares : tuple of float
        What each anchor counts; they sum to one.
    rises : tuple of ndarray of shape (n_replicates,)
        By how much log Z of each phase is above its curves; that of the first is zero.
    centre, sd : float
        Where the posterior of beta is, about.
    """

    k: int
    phases: tuple[tuple[Curve | Coexistence, ...], ...]
    shares: tuple[float, ...]
    rises: tuple[np.ndarray, ...]
    centre: float
    sd: float

    def log_z(self, beta: np.ndarray) -> np.ndarray:
        """Return log Z, of shape (n_replicates, n_betas)."""
        parts = [
            sum(share * curve(beta) for share, curve in zip(self.shares, curves, strict=True))
            + rise[:, None]
            for curves, rise in zip(self.phases, self.rises, strict=True)
        ]
        return parts[0] if len(parts) == 1 else np.logaddexp(*parts)

    def _first(self) -> Profile:
        """Return the estimate alone, without its replicates."""
        one = slice(1)
        phases = tuple(tuple(curve.select(one) for curve in curves) for curves in self.phases)
        return self._replace(phases=phases, rises=tuple(rise[one] for rise in self.rises))

    def find_span(self, target: Target, depth: float = _DEPTH) -> Limits:
        """Find where the log posterior is within ``depth`` of its top."""
        limits, log_weight = target.limits[self.k], target.log_weight(self.k)
        if limits[0] == limits[1]:
            return limits
        first = self._first()
        centre, sd = self.centre, min(self.sd, limits[1])
        for _ in range(_MAX_LOOKS):
            near = np.clip(centre + np.linspace(-9, 9, _N_LOOK) * sd, *limits)
            beta = np.unique(np.append(near, np.linspace(*limits, _N_LOOK)))
            log_posterior = log_weight(beta) - first.log_z(beta)[0]
            top = beta[np.argmax(log_posterior)]
            if abs(top - centre) <= 3 * sd:
                break
            # With a prior far from the ridge the first look may miss a narrow top.
            centre = top
        while True:
            heavy = np.flatnonzero(log_posterior > log_posterior.max() - depth)
            low, high = beta[max(heavy[0] - 1, 0)], beta[min(heavy[-1] + 1, len(beta) - 1)]
            if len(heavy) >= _MIN_HEAVY or high - low < _NARROW * high:
                return low, high
            # At a transition the top is a spike between two slopes.
            beta = np.linspace(low, high, _N_LOOK)
            log_posterior = log_weight(beta) - first.log_z(beta)[0]

    def weigh(self, target: Target, span: Limits, n_betas: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a grid over the posterior of beta and the log mass of its cells in each replicate.

        By the trapezium rule, which is all but exact on a smooth bell. A prior on one beta alone
        is a sum of one term.
        """
        beta = np.linspace(*span, n_betas)
        log_mass = target.log_weight(self.k)(beta) - self.log_z(beta)
        if span[0] == span[1]:
            return beta, log_mass - np.log(n_betas)
        log_mass += np.log(beta[1] - beta[0])
        log_mass[:, [0, -1]] -= np.log(2)
        return beta, log_mass

    def find_top(self, target: Target, span: Limits) -> float:
        """Find where the posterior of beta is largest within a span."""
        beta = np.linspace(*span, _N_LOOK)
        return float(
            beta[np.argmax(target.log_weight(self.k)(beta) - self._first().log_z(beta)[0])]
        )

    def log_total(self, target: Target, span: Limits, n_betas: int = 41) -> np.ndarray:
        """Return the log of the posterior's mass at k in every replicate, up to a constant."""
        log_mass = self.weigh(target, span, n_betas)[1]
        top = log_mass.max(axis=1)
        return top + np.log(np.exp(log_mass - top[:, None]).sum(axis=1))
