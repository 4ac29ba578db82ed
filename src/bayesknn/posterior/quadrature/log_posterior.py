"""The posterior of beta at each k, but for log Z, and how it is summed (Section 3).

A likelihood, a prior and a function for log Z go in, masses at nodes of beta come out.
``log P(beta, k | y) = beta / k * S_k(y) + log prior - log Z(beta, k)``, up to a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from bayesknn.likelihood.coherent import CoherentLikelihood
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

    def log_weight(self, k: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return the log posterior at k, but for log Z, as a function of beta."""
        return lambda beta: beta / k * self.observed[k - 1] + self.log_prior(beta, k)

    def place_edges(self, k: int, centre: float, sd: float) -> np.ndarray:
        """Return panels for a posterior at k whose mean and standard deviation these are, about."""
        mass = self.masses[k]
        beside = np.clip(centre + sd * _BESIDE, mass.low, mass.high)
        return np.union1d(mass.panels(_N_PANELS), beside)

    def newton_step(self, k: int, beta: float, mean: float, variance: float) -> float:
        """Return how far from beta the posterior at k has its top, as a parabola of log Z has it.

        ``mean`` and ``variance`` are those of S_k / k at beta.
        """
        newton = (self.observed[k - 1] / k - mean) / variance
        if self.masses[k].is_flat:
            return float(newton)

        def log_z(at: np.ndarray, rows: slice) -> np.ndarray:
            return ((at - beta) * (mean + (at - beta) / 2 * variance))[None]

        edges = self.place_edges(k, beta + newton, 1 / np.sqrt(variance))
        return Profile(self, k, log_z, edges).summarise()[1] - beta

    def is_product(self) -> bool:
        """Whether the prior of beta is the same at every k, so that neighbours are alike."""
        return len({mass.shape_id for mass in self.masses.values()}) == 1


class Profile(NamedTuple):
    """The posterior of beta at one k.

    Attributes
    ----------
    target : LogPosterior
    k : int
    log_z : callable
        ``log_z(beta, rows)`` is log Z in some replicates, of shape (n_rows, n_betas).
    edges : ndarray
        The panels on which the posterior is looked for first.
    """

    target: LogPosterior
    k: int
    log_z: Callable[[np.ndarray, slice], np.ndarray]
    edges: np.ndarray

    def log_posterior(self, beta: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Return the log posterior up to a constant, of shape (n_rows, n_betas)."""
        return self.target.log_weight(self.k)(beta) - self.log_z(beta, rows)

    def find_panels(self, n_panels: int = 1) -> np.ndarray:
        """Put panels where the posterior of beta is."""
        return find_panels(lambda beta: self.log_posterior(beta, slice(1))[0], self.edges, n_panels)

    def weigh(self, panels: np.ndarray) -> np.ndarray:
        """Return the log masses at the nodes of panels in each replicate."""
        return integrate(self.log_posterior, panels)[1]

    def summarise(self) -> tuple[np.ndarray, float, float]:
        """Return the log of the mass at k in every replicate, and top and spread of beta."""
        nodes, widths = place_nodes(self.find_panels())
        log_masses = self.log_posterior(nodes) + np.log(widths)
        masses = softmax(log_masses[0])
        top = float(nodes[np.argmax(masses / widths)])
        sd = float(np.sqrt(masses @ (nodes - masses @ nodes) ** 2))
        return logsumexp(log_masses, axis=1), top, sd
