"""A coherent likelihood small enough to enumerate, its posterior by quadrature, and test scores."""

from functools import partial

import numpy as np
from arviz_stats.base import array_stats

from bayesknn import reference
from bayesknn.graph import NeighborGraph
from bayesknn.model import UniformPrior
from bayesknn.posterior import grid_posterior
from tests.model.enumeration import as_reference

BETA_MAX = 4.0

# On small graphs the grid is exact unless it is told to simulate.
simulated_posterior = partial(grid_posterior, exact=False)


class EnumeratedLikelihood:
    """log f(y | beta, k) = beta S_k(y) / k - log Z, with Z summed over every labelling."""

    def __init__(self, seed=0, n_points=8, k_max=5, n_classes=2):
        rng = np.random.default_rng(seed)
        graph = NeighborGraph.from_points(rng.normal(size=(n_points, 2)), k_max)
        self.k_max = k_max
        self.labels = rng.integers(0, n_classes, n_points)
        near, a = as_reference(graph, n_classes)
        every = reference.labellings(n_points, n_classes)
        self.own, self.levels, self.counts = [], [], []
        for k in range(1, k_max + 1):
            self.own.append(reference.agreement(near, a, self.labels, k))
            levels, counts = np.unique(reference.agreement(near, a, every, k), return_counts=True)
            self.levels.append(levels)
            self.counts.append(np.log(counts))

    def log_density(self, beta, k):
        beta, k = np.broadcast_arrays(np.asarray(beta, float), np.asarray(k))
        values = [self._one(b, j) for b, j in zip(beta.flat, k.flat, strict=True)]
        return np.reshape(values, beta.shape) if beta.ndim else values[0]

    def _one(self, beta, k):
        terms = self.counts[k - 1] + beta / k * self.levels[k - 1]
        largest = terms.max()
        return beta / k * self.own[k - 1] - largest - np.log(np.exp(terms - largest).sum())


class NormalRidge:
    """beta given k is normal about centre(k): sharp, so that a fixed step hardly ever moves."""

    def __init__(self, centres, spread, log_weights):
        self.centres = np.asarray(centres, float)
        self.spread = spread
        self.log_weights = np.asarray(log_weights, float)
        self.k_max = len(self.centres)

    def log_density(self, beta, k):
        k = np.asarray(k) - 1
        return self.log_weights[k] - 0.5 * ((beta - self.centres[k]) / self.spread) ** 2


def exact_moments(likelihood, prior=None):
    """E beta, E beta^2 and P(k) for every k, by Gauss-Legendre quadrature."""
    prior = prior or UniformPrior(likelihood.k_max, BETA_MAX)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    beta = prior.beta_max * (nodes + 1) / 2
    k = np.arange(1, prior.k_max + 1)[:, None]
    log_density = likelihood.log_density(*np.broadcast_arrays(beta, k))
    log_density = log_density + prior.log_density(*np.broadcast_arrays(beta, k))
    mass = np.exp(log_density - log_density.max()) * weights
    mass /= mass.sum()
    return np.concatenate([[np.sum(mass * beta), np.sum(mass * beta**2)], mass.sum(axis=1)])


def standard_scores(draws, n_warmup, exact):
    """Scores of the chains' estimates of :func:`exact_moments`, by their own Monte Carlo errors.

    Values of k expected fewer than 300 times have no usable error and are left out.
    """
    beta, k = draws["beta"][:, n_warmup:], draws["k"][:, n_warmup:]
    values = [beta, beta**2]
    means = list(exact[:2])
    for value, share in enumerate(exact[2:], start=1):
        if min(share, 1 - share) * k.size >= 300:
            values.append((k == value).astype(float))
            means.append(share)
    errors = [max(array_stats.mcse(one), 1e-300) for one in values]
    return [
        (one.mean() - mean) / error for one, mean, error in zip(values, means, errors, strict=True)
    ]
