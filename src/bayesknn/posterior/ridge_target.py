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
from bayesknn.model.integration import find_panels, integrate, place_nodes
from bayesknn.model.prior import find_prior_mass

Limits = tuple[float, float]

# Panels over the prior's range on which a posterior is looked for first, and their ends beside
# where it should be, in its standard deviations: so near that few have to be halved.
_N_PANELS, _BESIDE = 6, np.array([-8, -5, -3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 5, 8])


class LogPosterior:
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
        self.masses = find_prior_mass(prior)
        self.limits: dict[int, Limits] = {k: (m.low, m.high) for k, m in self.masses.items()}
        self.ks = np.array(list(self.masses))

    def log_weight(self, k: int) -> Callable:
        """Return the log posterior at k, but for log Z, as a function of beta."""
        return lambda beta: beta / k * self.observed[k - 1] + self.log_prior(beta, k)

    def find_panels(
        self, k: int, log_z: Callable, centre: float, sd: float, n_panels: int = 1
    ) -> np.ndarray:
        """Put panels where the posterior of beta at k is, given log Z.

        ``centre`` and ``sd`` say about where that is.
        """
        log_weight, mass = self.log_weight(k), self.masses[k]
        beside = np.clip(centre + sd * _BESIDE, mass.low, mass.high)
        start = np.union1d(mass.panels(_N_PANELS), beside)
        return find_panels(lambda beta: log_weight(beta) - log_z(beta), start, n_panels)

    def find_step(self, k: int, beta: float, mean: float, variance: float) -> float:
        """Return how far from beta the posterior at k has its top, as a parabola of log Z has it.

        ``mean`` and ``variance`` are those of S_k / k at beta.
        """
        newton = (self.observed[k - 1] / k - mean) / variance
        if self.masses[k].is_flat:
            return float(newton)

        def log_z(at: np.ndarray) -> np.ndarray:
            return (at - beta) * (mean + (at - beta) / 2 * variance)

        sd = 1 / np.sqrt(variance)
        nodes, _ = place_nodes(self.find_panels(k, log_z, beta + newton, sd))
        return float(nodes[np.argmax(self.log_weight(k)(nodes) - log_z(nodes))] - beta)

    def is_product(self) -> bool:
        """Whether the prior of beta is the same at every k, so that neighbours are alike."""
        return len({mass.shape for mass in self.masses.values()}) == 1


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

    def find_panels(self, target: LogPosterior, n_panels: int = 1) -> np.ndarray:
        """Put panels where the posterior of beta is."""
        first = self._first()
        return target.find_panels(
            self.k, lambda beta: first.log_z(beta)[0], self.centre, self.sd, n_panels
        )

    def weigh(self, target: LogPosterior, panels: np.ndarray) -> np.ndarray:
        """Return the log masses at the nodes of panels in each replicate."""
        log_weight = target.log_weight(self.k)
        return integrate(lambda beta: log_weight(beta) - self.log_z(beta), panels)[1]

    def log_total(self, target: LogPosterior, panels: np.ndarray) -> np.ndarray:
        """Return the log of the posterior's mass at k in every replicate, up to a constant."""
        log_mass = self.weigh(target, panels)
        top = log_mass.max(axis=1)
        return top + np.log(np.exp(log_mass - top[:, None]).sum(axis=1))

    def find_range(
        self, target: LogPosterior, panels: np.ndarray, depth: float = 0.0
    ) -> tuple[float, float, float]:
        """Return where the posterior of beta has its top, and ends within ``depth`` of that."""
        nodes, _ = place_nodes(panels)
        heights = target.log_weight(self.k)(nodes) - self._first().log_z(nodes)[0]
        heavy = np.flatnonzero(heights >= heights.max() - depth)
        ends = np.concatenate([panels[:1], nodes, panels[-1:]])
        return float(nodes[np.argmax(heights)]), float(ends[heavy[0]]), float(ends[heavy[-1] + 2])
