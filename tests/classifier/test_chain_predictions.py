"""Chains and the grid are two ways to one posterior, so a classifier predicts alike by either."""

import functools

import numpy as np
import pytest
from scipy import stats

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.model import BoltzmannModel, UniformPrior
from bayesknn.posterior import exchange
from bayesknn.predictive import PosteriorNodes, Predictive
from tests.predictive.problems import probabilities_and_errors
from tests.statistical import check, p_value_of_z, rejects

RIPLEY = load_ripley()
K_MAX, BETA_MAX = 125, 4.0
N_CHAINS, N_DRAWS, N_WARMUP = 12, 150, 100
# What shows half the deviation.
N_DRAWS_FULL = 400
# So short that R-hat may complain, but right within their errors.
pytestmark = pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")


def of_truth(probabilities):
    """Probabilities of the test points' true classes."""
    return probabilities[np.arange(len(RIPLEY.y_test)), RIPLEY.y_test]


@functools.cache
def fit(inference, seed, n_draws=N_DRAWS):
    clf = BayesianKNeighborsClassifier(
        inference=inference, max_neighbors=K_MAX, beta_max=BETA_MAX, n_chains=N_CHAINS,
        n_draws=n_draws, n_warmup=N_WARMUP, random_state=seed, n_jobs=2,
    )  # fmt: skip
    return clf.fit(RIPLEY.X_train, RIPLEY.y_train)


def predict_by_chain(tree, stretch=1.0, direction="both"):
    """Predict the true classes from the draws of each chain by itself."""
    graph = NeighborGraph.from_points(RIPLEY.X_train, K_MAX)
    found = []
    for beta, k in zip(tree["posterior/beta"].values, tree["posterior/k"].values, strict=True):
        nodes = PosteriorNodes.from_draws(stretch * beta, k)
        parts = Predictive(BoltzmannModel(graph, 2), RIPLEY.y_train, nodes, direction=direction)
        found.append(of_truth(parts.probabilities(RIPLEY.X_test)))
    return np.array(found)


def compare_with_grid(predicted, by_chain, seed):
    """Return the p-value of log-loss and mean probability of the truth against the grid's.

    Both are linear in the predictions, the log-loss to first order, so that they have no bias
    from the noise of a chain, and chains that are independent tell the error.
    """
    # A stream of its own: the chains have the children of the plain seed.
    grid = fit("grid", seed + 500_009)
    probabilities, errors = map(of_truth, probabilities_and_errors(grid, RIPLEY.X_test))
    weights = np.array([1 / probabilities, np.ones_like(probabilities)]) / len(probabilities)
    away = weights @ (predicted - probabilities)
    spread = (by_chain @ weights.T).std(axis=0, ddof=1) / np.sqrt(N_CHAINS)
    # The error of a sum is at most the sum of the errors.
    t = np.abs(away) / np.hypot(spread, weights @ errors)
    return p_value_of_z(stats.norm.isf(stats.t.sf(t, N_CHAINS - 1)))


@pytest.mark.parametrize(
    ("inference", "n_draws"),
    [
        ("exchange", N_DRAWS),
        pytest.param("exchange", N_DRAWS_FULL, marks=pytest.mark.slow),
        pytest.param("auxiliary", N_DRAWS_FULL, marks=pytest.mark.slow),
    ],
)
def test_chains_predict_what_the_grid_predicts(inference, n_draws):
    def p_value(n_draws, seed):
        clf = fit(inference, seed, n_draws)
        predicted = of_truth(clf.predict_proba(RIPLEY.X_test))
        return compare_with_grid(predicted, predict_by_chain(clf.posterior_), seed)

    check(p_value, n_draws)


# What is predicted from these draws of a right posterior, but wrongly.
@pytest.mark.parametrize(
    ("mutant", "n_draws"),
    [
        ({"direction": "forward"}, N_DRAWS),
        ({"stretch": 1.1}, N_DRAWS),
        pytest.param({"stretch": 1.05}, N_DRAWS_FULL, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_mutants_without_reverse_neighbours_or_with_beta_off_are_rejected(mutant, n_draws):
    def p_value(n_draws, seed):
        by_chain = predict_by_chain(fit("exchange", seed, n_draws).posterior_, **mutant)
        return compare_with_grid(by_chain.mean(axis=0), by_chain, seed)

    assert rejects(p_value, n_draws)


@pytest.mark.slow
def test_the_mutant_whose_labels_remember_their_start_is_rejected():
    graph = NeighborGraph.from_points(RIPLEY.X_train, K_MAX)
    likelihood = CoherentLikelihood(graph, RIPLEY.y_train)

    def p_value(n_draws, seed):
        tree = exchange(
            likelihood, UniformPrior(K_MAX, BETA_MAX), label_sampler="gibbs", n_sweeps=4,
            n_chains=N_CHAINS, n_draws=n_draws, n_warmup=N_WARMUP, random_state=seed, n_jobs=2,
        )  # fmt: skip
        by_chain = predict_by_chain(tree)
        return compare_with_grid(by_chain.mean(axis=0), by_chain, seed)

    assert rejects(p_value, N_DRAWS_FULL)
