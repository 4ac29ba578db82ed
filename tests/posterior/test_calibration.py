"""Simulation-based calibration: truth from the prior, labels from a perfect draw, ranks uniform.

(beta, k) is drawn from the prior and the labels from the model at it, so that the truth and draws
from the posterior given those labels have one law, and the truth takes every rank among them with
the same probability (Cook, Gelman and Rubin 2006; Talts et al. 2018). The ranks of beta, of k, of
beta / k and of the log-likelihood are looked at; the last speaks up where the first two do not.
"""

import numpy as np
import pytest

from bayesknn._utils.random import spawn_keys
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, ExactLikelihood, PseudoLikelihood
from bayesknn.model import UniformPrior
from tests.labels.samplers import perfect_labels
from tests.posterior.label_chain_cases import make_sampler
from tests.posterior.label_chain_twins import log_exchange, run_exchange_twin
from tests.posterior.toy import simulated_posterior
from tests.statistical import check, p_value_of_counts, rejects

K_MAX, BETA_MAX = 5, 2.0
PRIOR = UniformPrior(K_MAX, BETA_MAX)
POINTS = np.random.default_rng(8).normal(size=(60, 2))
GRAPH = NeighborGraph.from_points(POINTS[:16], K_MAX)
LARGER = NeighborGraph.from_points(POINTS, K_MAX)
# A rank is among so many draws, from a chain with so many moves between them.
N_DRAWS, THIN, N_WARMUP = 19, 24, 12


def calibration(draw, graph=GRAPH, n_classes=2):
    """Return a test of ``draw(likelihood, key)``: beta and k of ``N_DRAWS`` draws."""
    model = ExactLikelihood(graph, np.zeros(graph.n_points, int), n_classes)

    def p_value(n_replicates, seed):
        counts = np.zeros((4, N_DRAWS + 1))
        for key in spawn_keys(seed, n_replicates):
            rng = np.random.default_rng(int(key))
            beta, k = rng.uniform(0, BETA_MAX), int(rng.integers(1, K_MAX, endpoint=True))
            labels = perfect_labels(graph, beta, k, n_classes, key=key)[0][0]
            likelihood = CoherentLikelihood(graph, labels, n_classes)
            betas, ks = draw(likelihood, key)
            betas, ks = np.append(betas, beta), np.append(ks, k)
            log_z = [model.log_z.log_normalizer(b, int(j)) for b, j in zip(betas, ks, strict=True)]
            log_likelihood = betas / ks * likelihood.agreement[ks - 1] - log_z
            for row, values in enumerate((betas, ks, betas / ks, log_likelihood)):
                # Equal values are ranked at random.
                order = np.lexsort((rng.random(N_DRAWS + 1), values))
                counts[row, np.flatnonzero(order == N_DRAWS)[0]] += 1
        # Few replicates are counted in wider cells, for the sake of the chi-square law.
        cells = counts if n_replicates >= 25 * (N_DRAWS + 1) else counts.reshape(4, 4, -1).sum(2)
        even = np.full(cells.shape[1], 1 / cells.shape[1])
        smallest = min(p_value_of_counts(row, even) for row in cells)
        return -np.expm1(4 * np.log1p(-min(smallest, 1 - 1e-16)))

    return p_value


def chain_draws(**settings):
    def draw(likelihood, key):
        sampler = make_sampler(likelihood, prior=PRIOR, thin=THIN, n_warmup=N_WARMUP, **settings)
        _, draws = sampler.advance(sampler.init(key), key, 0, N_WARMUP + N_DRAWS)
        return draws["beta"][N_WARMUP:], draws["k"][N_WARMUP:]

    return draw


def grid_draws(cls, **options):
    def draw(likelihood, key):
        likelihood = cls(likelihood.graph, likelihood.labels, likelihood.n_classes, **options)
        posterior = simulated_posterior(likelihood, PRIOR, random_state=int(key))
        return posterior.sample(N_DRAWS, random_state=int(key) + 1)

    return draw


def twin_draws(**mutant):
    def draw(likelihood, key):
        sampler = make_sampler(likelihood, prior=PRIOR, thin=THIN, n_warmup=N_WARMUP)
        beta, k = run_exchange_twin(sampler, key, (N_WARMUP + N_DRAWS) * THIN, **mutant)
        kept = slice((N_WARMUP + 1) * THIN - 1, None, THIN)
        return beta[kept], k[kept]

    return draw


@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_exchange_with_perfect_draws_is_calibrated(n_classes):
    check(calibration(chain_draws(), n_classes=n_classes), 600)


# Every day its chains are compared with the exact posterior in test_auxiliary.
@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_auxiliary_with_perfect_draws_is_calibrated(n_classes):
    # The plug-in is replaced by what the chain has seen of these data, as it is in use.
    draw = chain_draws(plug_in=(1.0, 2), updates=(36, 72, 144))
    check(calibration(draw, n_classes=n_classes), 600)


def test_the_grid_is_calibrated():
    # log Z is the same for all labels.
    exact = ExactLikelihood(LARGER, np.zeros(60, int), 2).log_z
    check(calibration(grid_draws(CoherentLikelihood, table=exact), LARGER), 600)


# Every day the mesh is compared with exact values of log Z in test_grid.
@pytest.mark.slow
def test_the_grid_along_the_ridge_is_calibrated():
    check(calibration(grid_draws(CoherentLikelihood)), 1000)


@pytest.mark.mutant
def test_the_pseudo_likelihood_is_not_calibrated():
    assert rejects(calibration(grid_draws(PseudoLikelihood), LARGER), 1400)


def forgets_the_old_k(model, beta, k, to, z):
    """Take S of the labels drawn at k' for the old setting as well."""
    wrong = beta / k * (model.agreement(z, to.k) - model.agreement(z, k))
    return log_exchange(model, beta, k, to, z) + wrong


# Every day the pseudo-likelihood shows that calibration can fail, and the moments in test_exchange
# that this mutant is noticed: a Python chain for each replicate takes long.
@pytest.mark.slow
def test_a_mutant_of_the_exchange_is_not_calibrated():
    assert rejects(calibration(twin_draws(log_ratio=forgets_the_old_k)), 100)
