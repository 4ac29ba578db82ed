"""One result for every route: what it says of k, and how sure it is."""

import numpy as np
import pytest

from bayesknn import BayesianKNeighborsClassifier


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
def test_probabilities_are_shares_of_draws_and_their_errors_count_effective_ones():
    """Draws of a chain hang together: taken as independent they would claim too small errors."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    points = rng.normal(size=(60, 2)) + labels[:, None]
    clf = BayesianKNeighborsClassifier(
        "pseudo", inference="metropolis", max_neighbors=6, beta_max=4.0, n_chains=2, n_draws=400,
        random_state=0,
    ).fit(points, labels)  # fmt: skip
    k = clf.posterior_["posterior/k"].values
    p = np.array([np.mean(k == one) for one in range(1, 7)])
    np.testing.assert_allclose(clf.k_probabilities_, p)
    n_effective = clf.diagnostics_["ess"]["k"]
    assert n_effective < k.size / 2
    np.testing.assert_allclose(clf.k_probabilities_error_, np.sqrt(p * (1 - p) / n_effective))


@pytest.mark.parametrize("likelihood", ["pseudo", "holmes-adams", "coherent"])
def test_a_posterior_without_an_upper_end_is_warned_of(likelihood):
    """Separated classes: all large beta are equally probable, and 2 % lie in the last 2 %."""
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 2
    noise = rng.normal(size=(24, 2))

    def warns(points, beta_max):
        options = {"max_neighbors": 3, "beta_max": beta_max, "random_state": 0}
        clf = BayesianKNeighborsClassifier(likelihood, **options).fit(points, labels)
        return any(
            "does not fall towards beta_max" in each for each in clf.diagnostics_["warnings"]
        )

    assert warns(noise + 20 * labels[:, None], 1000.0)
    assert not warns(noise + labels[:, None], 1000.0)


def test_warnings_about_the_ends_do_not_depend_on_draws():
    """One draw a chain says nothing about a twentieth of the posterior; the grid does."""
    labels = np.arange(60) % 2
    points = np.random.default_rng(0).normal(size=(60, 2)) + 2 * labels[:, None]
    made = [
        BayesianKNeighborsClassifier(
            "pseudo", max_neighbors=6, beta_max=1.0, n_draws=n_draws, n_chains=1, random_state=seed
        )
        .fit(points, labels)
        .diagnostics_["warnings"]
        for seed, n_draws in ((0, 1), (1, 1), (0, 5000))
    ]
    assert made[0] == made[1] == made[2] and "within 2 % of beta_max=1" in made[0][0]
