"""Tests of the paper's chains, its table of log Z, its expectations and the scores of rules."""

import numpy as np
import pytest
from scipy import stats

from bayesknn._utils.random import spawn_keys
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import log_normalizer
from bayesknn.model import BoltzmannModel, expected_agreement_exact
from bayesknn.paper.path_sampling import true_expectation
from bayesknn.paper.samples import (
    Draws,
    FixedK,
    exact_posterior,
    gibbs_means,
    gibbs_table,
    ripley_draws,
    score_rule,
)
from bayesknn.paper.setting import Setting
from tests.statistical import check, rejects


@pytest.fixture(scope="module")
def setting():
    return Setting("tiny", n_jobs=1)


def test_the_papers_chain_starts_at_its_plug_in(setting):
    for plug_in in ((1.45, 13), (2.28, 53)):
        draws = ripley_draws(setting, "perfect", plug_in)
        assert np.all(np.abs(draws.k[:, 0] - plug_in[1]) <= 3)


def test_the_table_is_bilinear(setting):
    table = gibbs_table(setting)
    assert (table.k_max, table.beta_max) == (125, 4.0)
    beta = 0.75 * table.betas[2] + 0.25 * table.betas[3]
    for k, low, high, weight in ((10, 10, 10, 0.0), (13, 10, 20, 0.3), (120, 110, 125, 2 / 3)):
        edges = [
            table.log_normalizer(table.betas[2:4], edge) @ [0.75, 0.25] for edge in (low, high)
        ]
        expected = (1 - weight) * edges[0] + weight * edges[1]
        assert table.log_normalizer(beta, k) == pytest.approx(expected, rel=1e-12)


def test_the_papers_table_starts_at_n_log_2_and_rises(setting):
    table = gibbs_table(setting)
    assert table.log_normalizers.shape == (125, setting.budget.n_path_betas)
    assert np.allclose(table.log_normalizers[:, 0], 250 * np.log(2))
    assert np.all(np.diff(table.log_normalizers, axis=1) > 0)


def p_value_of_gibbs_means(n_classes, divide_twice=False):
    graph = NeighborGraph.from_points(np.random.default_rng(1).normal(size=(30, 2)), k_max=3)
    betas, ks = np.linspace(0, 1, 5), np.array([1, 3])
    exact = np.array([expected_agreement_exact(graph, betas, k, n_classes) / k for k in ks])
    if divide_twice:
        exact /= ks[:, None]

    model = BoltzmannModel(graph, n_classes)

    def p_value(n_runs, seed):
        keys = spawn_keys(seed, n_runs * len(ks)).reshape(n_runs, len(ks))
        runs = np.array(
            [
                [
                    gibbs_means(model, betas, k, key, (100, 300))
                    for k, key in zip(ks, row, strict=True)
                ]
                for row in keys
            ]
        )
        assert np.all(runs[:, :, 0] == 30 / n_classes)
        errors = runs[..., 1:].std(axis=0, ddof=1) / n_runs**0.5
        scores = (runs.mean(axis=0) - exact)[:, 1:] / errors
        return min(1.0, scores.size * 2 * stats.t.sf(np.abs(scores).max(), n_runs - 1))

    return p_value


@pytest.mark.parametrize("n_classes", [2, 4])
def test_gibbs_means_are_the_expectations(n_classes):
    check(p_value_of_gibbs_means(n_classes), 40)


def test_dividing_by_k_twice_is_rejected():
    assert rejects(p_value_of_gibbs_means(2, divide_twice=True), 40)


@pytest.mark.parametrize("k", [1, 3])
def test_expectations_are_the_slope_of_exact_log_z(setting, k):
    graph, beta, step = setting.ripley.graph, 1.5, 1e-4
    low, high = (log_normalizer(graph, b, k, 2).value for b in (beta - step, beta + step))
    model = setting.ripley.model

    def p_value(n_draws, seed, bias=0.0):
        runs = [true_expectation(model, beta, k, key, n_draws) for key in spawn_keys(seed, 4)]
        means, errors = np.array(runs).T
        score = np.sum(means + bias - (high - low) / (2 * step)) / np.sqrt(np.sum(errors**2))
        # Each of the four standard errors has 19 degrees of freedom, from 20 batches.
        return 2 * stats.t.sf(abs(score), 4 * 19)

    check(p_value, 2000)
    # The mutant has a bias of 2, about 1 % of the 250 points.
    assert rejects(lambda n, seed: p_value(n, seed, bias=2.0), 2000)


def test_the_error_of_a_mean_includes_the_differences_between_chains():
    beta = np.array([[0.5] * 3 + [1.0] * 50, [0.5] * 3 + [3.0] * 50])
    draws = Draws(beta, np.full(beta.shape, 5), 3)
    mean = draws.mean("beta")
    assert mean.value == 2.0 and np.isclose(mean.run_sd, 2**0.5) and np.isclose(mean.error, 1.0)
    assert draws.mean("k") == (5.0, 0.0, 0.0)
    assert draws.kept["beta"].shape == (2, 50)


def test_scores_of_chains_and_of_grids(setting):
    study = setting.ripley
    for posterior in (ripley_draws(setting, "pseudo"), exact_posterior(setting)):
        error = score_rule(study, posterior, study.error_rate)
        loss = score_rule(study, posterior, study.log_loss)
        assert 0.07 < error.value < 0.11 and 0.2 < loss.value < 0.3
        assert loss.error > 0
    assert error.run_sd == loss.run_sd == 0  # the last posterior is a grid, which has no runs


def test_k_can_be_fixed(setting):
    pseudo = setting.ripley.pseudo
    fixed = FixedK(pseudo, 10)
    assert fixed.log_density(1.2, 1) == pseudo.log_density(1.2, 10)
    assert fixed.k_max == 1
