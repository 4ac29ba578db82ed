"""Products of conditionals, by their peaks where the prior is flat: against a dense grid."""

import numpy as np
import pytest
from scipy.special import logsumexp

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import HolmesAdamsLikelihood, PseudoLikelihood
from bayesknn.model import ArrayPrior, FunctionPrior, UniformPrior
from bayesknn.model.prior import find_prior_mass
from bayesknn.posterior import grid_posterior
from bayesknn.posterior.peaks import weigh_peaks

K = 12
PRIORS = {
    "uniform": UniformPrior(K, 6.0),
    # Cut in the middle of the mass.
    "cut": UniformPrior(K, 0.8),
    "some k": ArrayPrior([0.0, 1.0, 0.0, *np.linspace(1.0, 3.0, K - 3)], 4.0),
    "falling": FunctionPrior(lambda beta, k: np.exp(-3 * beta) / k, K, 8.0),
    # Away from the likelihood's own peak, and narrower.
    "narrow": FunctionPrior(lambda beta, k: np.exp(-((beta - 0.3) ** 2) / (2 * 0.05**2)), K, 4.0),
}


def make(product, n_classes, weighted, n=120):
    rng = np.random.default_rng(n_classes)
    labels = np.arange(n) % n_classes
    points = rng.normal(size=(n, 2)) + rng.normal(size=(n_classes, 2))[labels]
    weights = np.linspace(0.6, 1.5, n_classes) if weighted else None
    return product(NeighborGraph.from_points(points, K), labels, n_classes, weights)


def sum_densely(likelihood, prior, n_betas=20001):
    """Evidence, P(k), mean and standard deviation of beta by the trapezium rule."""
    betas = np.linspace(0.0, prior.beta_max, n_betas)
    table = likelihood.log_density_grid(betas)
    table += prior.log_density(betas, np.arange(1, K + 1)[:, None]) + np.log(betas[1])
    table[:, [0, -1]] -= np.log(2)
    mass = np.exp(table - logsumexp(table))
    mean = (mass @ betas).sum()
    sd = np.sqrt((mass @ (betas - mean) ** 2).sum())
    return np.array([logsumexp(table), *mass.sum(axis=1), mean, sd])


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("product", [PseudoLikelihood, HolmesAdamsLikelihood])
@pytest.mark.parametrize(("n_classes", "weighted"), [(2, False), (4, False), (3, True)])
def test_the_posterior_is_that_of_a_dense_grid(product, n_classes, weighted, prior):
    likelihood = make(product, n_classes, weighted)
    posterior = grid_posterior(likelihood, prior)
    assert posterior.info["route"] == ("values" if isinstance(prior, FunctionPrior) else "peaks")
    found = np.array(
        [posterior.log_evidence, *posterior.k_probabilities, posterior.beta_mean, posterior.beta_sd]
    )
    np.testing.assert_allclose(found, sum_densely(likelihood, prior), atol=1e-6, rtol=1e-8)


def test_a_k_that_cannot_matter_is_left_out_and_rough_heights_will_do():
    likelihood = make(PseudoLikelihood, 2, False, n=2000)
    prior = UniformPrior(K, 4.0)
    heights = likelihood.maximize_each_k(prior.beta_max).log_value
    ks, _, log_mass = weigh_peaks(likelihood, find_prior_mass(prior))
    best = logsumexp(log_mass, axis=1).max()
    left_out = np.setdiff1d(np.arange(1, K + 1), ks)
    assert left_out.size > 0
    # The bound that let them go holds for the heights found with all precision.
    assert np.all(heights[left_out - 1] - np.log(K) < best - 20.0)
    for k in range(1, K + 1):
        height = likelihood.find_peak(k, 1.0, 4.0, 0.01)[1]
        assert height == pytest.approx(heights[k - 1], abs=1e-3)
