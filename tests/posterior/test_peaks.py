"""Products of conditionals, by their peaks where the prior is flat: against a dense grid."""

import numpy as np
import pytest
from scipy.special import logsumexp

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import HolmesAdamsLikelihood, PseudoLikelihood
from bayesknn.model import ArrayPrior, FunctionPrior, UniformPrior
from bayesknn.posterior import grid_posterior

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
    posterior = grid_posterior(likelihood, prior)
    best = posterior.log_evidence + np.log(posterior.k_probabilities.max())
    left_out = np.setdiff1d(np.arange(1, K + 1), posterior.k_values)
    assert left_out.size > 0
    # The bound that let them go holds for the heights found with all precision.
    assert np.all(heights[left_out - 1] - np.log(K) < best - 20.0)
    for k in range(1, K + 1):
        height = likelihood.find_peak(k, 1.0, 4.0, 0.01)[1]
        assert height == pytest.approx(heights[k - 1], abs=1e-3)


def blobs(n_classes=2, n_flipped=0, distance=100.0, n=40):
    """So many blobs of a class each, in which some labels of the first are the second's."""
    labels = np.repeat(np.arange(n_classes), n)
    rng = np.random.default_rng(5)
    points = rng.normal(size=(len(labels), 2)) + distance * labels[:, None]
    labels[:n_flipped] = 1
    return NeighborGraph.from_points(points, K), labels


# Log f rises to a plateau, has a tail of many beta, a peak, or is largest at 0.
SHAPES = {
    "separated": blobs(),
    "five classes": blobs(5),
    "nearly separated": blobs(distance=5.0),
    "one label off": blobs(n_flipped=1),
    "many points": blobs(distance=2.0, n=500),
    "no structure": (blobs()[0], np.random.default_rng(6).permutation(blobs()[1])),
}


def sum_over_wide_range(likelihood, beta_max):
    """Evidence and mean of beta by the trapezium rule, close together near 0."""
    betas = np.union1d(np.linspace(0, beta_max, 10_001), np.geomspace(1e-3, beta_max, 20_001))
    widths = np.diff(betas, prepend=0.0, append=beta_max)
    table = likelihood.log_density_grid(betas) + np.log((widths[1:] + widths[:-1]) / 2)
    total = logsumexp(table)
    return total - np.log(K * beta_max), (np.exp(table - total) @ betas).sum()


@pytest.mark.parametrize("beta_max", [10.0, 300.0, 1e4])
@pytest.mark.parametrize("product", [PseudoLikelihood, HolmesAdamsLikelihood])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_wide_prior_gives_what_a_dense_grid_gives(shape, product, beta_max):
    """Polynomials through a plateau were used though they had not converged: evidence e^6.4."""
    likelihood = product(*SHAPES[shape])
    posterior = grid_posterior(likelihood, UniformPrior(K, beta_max))
    log_evidence, beta_mean = sum_over_wide_range(likelihood, beta_max)
    # Each is a product of probabilities.
    assert posterior.log_evidence < 0.0
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=2e-4)
    assert posterior.beta_mean == pytest.approx(beta_mean, rel=1e-3)
