"""One result for every route: what it says of k, and how sure it is."""

import numpy as np

from bayesknn.posterior.routes import FittedPosterior


def chain_result(k, ess):
    draws = {"groups": {"posterior": {"beta": np.ones(k.shape), "k": k}}, "attrs": {}}
    return FittedPosterior(draws, None, {"ess": {"beta": ess, "k": ess}})


def test_the_error_of_k_counts_effective_draws_and_not_draws():
    """A mutant that takes every draw for an independent one is far below the truth."""
    rng = np.random.default_rng(0)
    stays, n_chains, n_draws = 50, 400, 1000
    # Blocks of equal draws: each chain is worth n_draws / stays independent ones.
    k = np.repeat(rng.integers(1, 3, (n_chains, n_draws // stays)), stays, axis=1)
    truth = (k == 1).mean(axis=1).std()
    claimed = [chain_result(chain[None], n_draws / stays).k_marginal(3)[1][0] for chain in k[:50]]
    assert 0.8 < np.mean(claimed) / truth < 1.2
    mutant = [chain_result(chain[None], n_draws).k_marginal(3)[1][0] for chain in k[:50]]
    assert np.mean(mutant) / truth < 0.3


def test_probabilities_are_shares_of_draws_at_their_own_k():
    p, error = chain_result(np.array([[1, 1, 3, 3], [3, 3, 3, 1]]), 8.0).k_marginal(4)
    np.testing.assert_allclose(p, [3 / 8, 0, 5 / 8, 0])
    np.testing.assert_allclose(error, np.sqrt(p * (1 - p) / 8))
