"""Bounds on the posterior of k: above the exact one, and of use at a first-order transition."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_digits

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, ExactLikelihood
from bayesknn.model import UniformPrior
from bayesknn.posterior import grid_posterior
from bayesknn.posterior.bounds import bound_posterior, find_possible
from bayesknn.posterior.pillars import N_REPLICATES, Pilot
from bayesknn.posterior.ridge import RidgeWalk
from bayesknn.posterior.support import find_limits
from tests.posterior.test_grid import small_data

BETA_MAX = 5.6


def start_walk(likelihood, beta_max=BETA_MAX):
    walk = RidgeWalk(likelihood, likelihood.k_max, beta_max, np.random.SeedSequence(0))
    walk.log_prior = UniformPrior(likelihood.k_max, beta_max).log_density
    walk.limits = find_limits(walk.log_prior, likelihood.k_max, beta_max)
    return walk


@pytest.mark.parametrize("arguments", [(2,), (3,), (3, 60, 4, 1.2, True), (2, 60, 4, 0.1)])
def test_no_k_has_more_than_its_bound(arguments):
    data = small_data(*arguments)
    betas = np.linspace(0, BETA_MAX, 801)
    table = ExactLikelihood(*data).log_density_grid(betas)
    table += UniformPrior(4, BETA_MAX).log_density(betas, np.arange(1, 5)[:, None])
    exact = logsumexp(table, axis=1) + np.log(betas[1])
    walk = start_walk(CoherentLikelihood(*data))
    bounds = np.array([bound_posterior(walk, k) for k in range(1, 5)])
    assert np.all(bounds >= exact)
    # One that is always above would tell nothing.
    assert np.all(bounds < exact + 60 * np.log(3))


def digits(k_max=300):
    points, labels = load_digits(return_X_y=True)
    points, labels = points[::2], labels[::2]
    return CoherentLikelihood(NeighborGraph.from_points(points, k_max=k_max), labels)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ten_classes_get_one_answer_whatever_the_seed(seed):
    # At large k the model has a first-order transition, and log Z along the ridge is lost there.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = grid_posterior(digits(), beta_max=BETA_MAX, random_state=seed, evidence=False)
    assert posterior.info["warnings"] == []
    assert posterior.k_mean < 10
    assert posterior.k_values[-1] < 50
    assert 3.5 < posterior.beta_mean < 5.0


def test_without_a_transition_nothing_is_said():
    likelihood = CoherentLikelihood(*small_data(2))
    walk = start_walk(likelihood)
    pilots = []
    for k in (1, 2, 3, 4):
        node = walk.node(1.2, k, [k], k)
        node.advance(400, n_warmup=50)
        pilots.append(Pilot(node, 1.2, np.zeros(N_REPLICATES)))
    assert find_possible(walk, pilots, np.zeros(4)) is None
    # As it would look if the last two had been.
    for pilot in pilots[2:]:
        pilot.node.of_clusters[1] = 0.0
    first, last = find_possible(walk, pilots, np.array([0.0, 1.0, 50.0, 50.0]))
    assert first <= 1 <= last
