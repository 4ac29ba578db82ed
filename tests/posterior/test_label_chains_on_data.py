"""The exchange and auxiliary-variable chains on Ripley's data and on four classes of glass."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from bayesknn.datasets import load_glass, load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.model import UniformPrior
from bayesknn.posterior import auxiliary, diagnose, exchange, grid_posterior
from tests.statistical import check, p_value_of_z

RIPLEY_PRIOR = UniformPrior(125, 4.0)
# SPEC's values of E beta, E k and P(k = 14), and how far they may be from the truth themselves.
RIPLEY, ROUNDING = np.array([1.457, 15.0, 0.28]), np.array([0.001, 0.05, 0.01])
# For the tests of every day: short, so that R-hat may complain, but right within their errors.
short_runs = pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")


def ripley():
    data = load_ripley()
    graph = NeighborGraph.from_points(data.X_train, k_max=125)
    return CoherentLikelihood(graph, np.asarray(data.y_train))


def glass():
    data = load_glass()
    labels = np.unique(data.y_train, return_inverse=True)[1]
    k_max = int(np.bincount(labels).min())
    graph = NeighborGraph.from_points(np.asarray(data.X_train, float), k_max)
    return CoherentLikelihood(graph, labels), UniformPrior(k_max, 4.0)


def summarise(tree, ks):
    """Means, and their Monte Carlo errors, of beta, of k and of k being each of some values."""
    beta, k = tree["posterior"]["beta"].values, tree["posterior"]["k"].values
    series = [beta, k.astype(float), *((k == one).astype(float) for one in ks)]
    return np.array([s.mean() for s in series]), np.array([array_stats.mcse(s) for s in series])


def assert_ripley(tree):
    found = diagnose(tree)
    assert found.messages == []
    assert min(found.ess.values()) > 3000
    # The tolerances are five to nine Monte Carlo errors.
    means, _ = summarise(tree, [14])
    np.testing.assert_array_less(np.abs(means - RIPLEY), [0.01, 0.3, 0.04])


@pytest.mark.slow
def test_exchange_on_ripley_with_the_defaults():
    assert_ripley(exchange(ripley(), RIPLEY_PRIOR, random_state=0, n_jobs=2))


@pytest.mark.slow
@pytest.mark.parametrize("sample", [exchange, auxiliary])
def test_perfect_draws_on_ripley_with_the_defaults(sample):
    tree = sample(ripley(), RIPLEY_PRIOR, label_sampler="perfect", random_state=0, n_jobs=2)
    assert_ripley(tree)


@short_runs
@pytest.mark.parametrize(
    ("sample", "options"),
    [(exchange, {}), (auxiliary, {"n_first_stage": 60})],
    ids=["exchange", "auxiliary"],
)
def test_ripley_in_a_short_run(sample, options):
    likelihood = ripley()

    def p_value(n_draws, seed):
        tree = sample(
            likelihood, RIPLEY_PRIOR, n_warmup=150, n_draws=n_draws, random_state=seed, n_jobs=2,
            **options,
        )  # fmt: skip
        means, errors = summarise(tree, [14])
        return p_value_of_z((means - RIPLEY) / np.hypot(errors, ROUNDING))

    check(p_value, 500)


def agreement_with_grid(sample, label_sampler, likelihood, prior, **options):
    grid = grid_posterior(likelihood, prior, tolerance=0.02, evidence=False, random_state=0)
    ks = np.flatnonzero(grid.k_probabilities > 0.02) + 1
    exact = np.array([grid.beta_mean, grid.k_mean, *grid.k_probabilities[ks - 1]])
    errors = [grid.beta_mean_error, grid.k_mean_error, *grid.k_probabilities_error[ks - 1]]

    def p_value(n_draws, seed):
        tree = sample(
            likelihood, prior, label_sampler=label_sampler, n_draws=n_draws, random_state=seed,
            **options,
        )  # fmt: skip
        means, own = summarise(tree, ks)
        return p_value_of_z((means - exact) / np.hypot(own, errors))

    return p_value


@short_runs
@pytest.mark.parametrize(
    ("sample", "n_draws"),
    [
        (exchange, 800),
        pytest.param(exchange, 1500, marks=pytest.mark.slow),
        pytest.param(auxiliary, 1500, marks=pytest.mark.slow),
    ],
)
def test_four_classes_agree_with_the_grid(sample, n_draws):
    p_value = agreement_with_grid(sample, "swendsen-wang", *glass(), n_warmup=300, n_jobs=2)
    check(p_value, n_draws)


# The auxiliary chain may stand still for long on four classes, and says so; its errors know.
@short_runs
@pytest.mark.slow
@pytest.mark.parametrize("sample", [exchange, auxiliary])
def test_four_classes_with_perfect_draws_agree_with_the_grid(sample):
    check(agreement_with_grid(sample, "perfect", *glass(), n_jobs=2), 5000)
