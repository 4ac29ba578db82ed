"""Priors: normalised, broadcast, picklable, and clear about bad input."""

import math
import pickle

import numpy as np
import pytest
from scipy.integrate import quad

from bayesknn.model import (
    ArrayPrior,
    FunctionPrior,
    UniformPrior,
    as_prior,
    default_max_neighbors,
)


def triangular(beta, k):
    return beta * (3 - beta) / k


def make_priors():
    rng = np.random.default_rng(0)
    return [
        UniformPrior(4, 3.0),
        ArrayPrior([1, 0, 2, 5], 3.0),
        ArrayPrior(rng.random((4, 7)), 3.0),
        FunctionPrior(triangular, 4, 3.0),
    ]


@pytest.mark.parametrize("prior", make_priors(), ids=lambda prior: type(prior).__name__)
class TestEveryPrior:
    def test_integrates_to_one(self, prior):
        total = 0.0
        for k in range(1, 5):
            corners = np.linspace(0, 3, 7)[1:-1]
            total += quad(lambda b, k=k: np.exp(prior.log_density(b, k)), 0, 3, points=corners)[0]
        assert total == pytest.approx(1, rel=1e-7)

    def test_is_minus_infinity_outside(self, prior):
        outside = [(-0.1, 1), (3.1, 1), (1.0, 0), (1.0, 5), (1.0, 1.5), (np.nan, 1), (1.0, np.nan)]
        for beta, k in outside:
            assert prior.log_density(beta, k) == -np.inf

    def test_broadcasts(self, prior):
        beta = np.linspace(-1, 4, 11)
        k = np.arange(6)[:, None]
        table = prior.log_density(beta, k)
        assert table.shape == (6, 11)
        expected = [[float(prior.log_density(b, j)) for b in beta] for j in range(6)]
        np.testing.assert_allclose(table, expected, rtol=1e-13)
        assert prior.log_density(1.0, 1).shape == ()

    def test_survives_pickling(self, prior):
        again = pickle.loads(pickle.dumps(prior))
        assert repr(again) == repr(prior)
        assert again.log_density(1.0, 3) == prior.log_density(1.0, 3)

    def test_is_a_prior(self, prior):
        assert as_prior(prior, k_max=4) is as_prior(prior, 4, prior.beta_max) is prior
        with pytest.raises(ValueError, match="beta_max=99.0 contradicts the prior"):
            as_prior(prior, k_max=4, beta_max=99.0)
        with pytest.raises(ValueError, match="prior reaches k=4, but k is at most 3 here"):
            as_prior(prior, k_max=3)


def test_uniform():
    assert UniformPrior(125, 4.0).log_density(2.0, 7) == pytest.approx(-np.log(500))


def test_array_over_k():
    prior = as_prior([3, 1], k_max=2, beta_max=2.0)
    np.testing.assert_allclose(np.exp(prior.log_density([0.0, 2.0], 1)), 3 / 4 / 2)


def test_array_over_k_and_beta_is_linear_between_its_columns():
    prior = as_prior([[0.0, 2.0, 0.0]], k_max=1, beta_max=2.0)
    np.testing.assert_allclose(
        np.exp(prior.log_density([0.0, 0.25, 0.5, 1.0, 1.75, 2.0], 1)),
        [0, 0.25, 0.5, 1, 0.25, 0],
        atol=1e-15,
    )


def scalar_only(beta, k):
    return math.exp(-beta) if beta < 1 and k > 1 else 0.5


@pytest.mark.parametrize(
    ("function", "same"),
    [
        (lambda beta, k: 1.0, lambda beta, k: np.ones(np.broadcast(beta, k).shape)),
        (lambda beta, k: 1 / k, lambda beta, k: 1 / k + 0 * beta),
        (scalar_only, lambda beta, k: np.where((beta < 1) & (k > 1), np.exp(-beta), 0.5)),
    ],
)
def test_functions_of_numbers_and_constants(function, same):
    one, other = (as_prior(f, k_max=3, beta_max=2.0) for f in (function, same))
    beta = np.linspace(0, 2, 9)
    k = np.arange(1, 4)[:, None]
    np.testing.assert_allclose(one.log_density(beta, k), other.log_density(beta, k), rtol=1e-12)


def test_a_function_may_vanish_in_places():
    prior = as_prior(lambda beta, k: np.where(k == 2, 1.0, 0.0), k_max=3, beta_max=2.0)
    np.testing.assert_allclose(np.exp(prior.log_density(1.0, [1, 2, 3])), [0, 0.5, 0])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([1.0, -1.0], "prior must be finite and not negative, got -1.0 at k=2"),
        ([1.0, np.nan], "prior must be finite and not negative, got nan at k=2"),
        ([[1.0, 1.0, 1.0], [1.0, np.inf, 1.0]], r"got inf at k=2, beta=2$"),
        ([0.0, 0.0], "prior is zero everywhere"),
        (lambda beta, k: 0 * beta, "prior is zero everywhere"),
        (lambda beta, k: 1 - beta, r"not negative, got -\d\.\d+ at k=1, beta=1\.0"),
        (lambda beta, k: np.full(np.shape(beta), np.nan), "got nan at k=1, beta="),
        ([1.0, 1.0, 1.0], r"prior must have 2 rows, one for each k in 1..2, got 3"),
        ([[1.0], [1.0]], r"with at least 2 columns, got \(2, 1\)"),
        (np.ones((2, 2, 2)), r"got \(2, 2, 2\)"),
        ([], r"got \(0,\)"),
        (3.0, r"got \(\)"),
        ("uniform", "prior must be an array of numbers, a function or None"),
    ],
)
def test_bad_priors(prior, message):
    with pytest.raises(ValueError, match=message):
        as_prior(prior, k_max=2, beta_max=4.0)


@pytest.mark.parametrize("beta_max", [0.0, -1.0, np.nan, np.inf, "auto"])
@pytest.mark.parametrize("prior", [None, [1.0, 1.0], lambda beta, k: 1.0])
def test_bad_beta_max(prior, beta_max):
    with pytest.raises(ValueError, match="beta_max must be"):
        as_prior(prior, k_max=2, beta_max=beta_max)


@pytest.mark.parametrize("k_max", [0, -1, 2.5])
def test_bad_k_max(k_max):
    with pytest.raises(ValueError, match="k_max must be"):
        UniformPrior(k_max, 4.0)


def test_an_error_inside_a_users_function_is_shown():
    with pytest.raises(ZeroDivisionError):
        as_prior(lambda beta, k: 1 // 0, k_max=2, beta_max=4.0)


def test_default_max_neighbors():
    """The paper's on its sets; rare classes, one or ten, do not set it for the others."""
    assert default_max_neighbors([125, 125]) == 125
    assert default_max_neighbors([132, 68]) == 68
    assert default_max_neighbors([2, 3]) == 2
    assert default_max_neighbors([1, 1]) == 1
    assert default_max_neighbors([125, 125, 5]) == 61
    assert default_max_neighbors([125, 125] + 10 * [2]) == 57
    # Many small classes: 2 sqrt(n), from 400 rows on.
    assert default_max_neighbors([20] * 20) == 40
    assert default_max_neighbors([3] * 400) == 69
    assert default_max_neighbors([5] * 40) == 15
    assert default_max_neighbors([6] * 10) == 6
    assert default_max_neighbors([10**6, 10**6]) == 10
    assert default_max_neighbors([10**8, 10**8]) == 1
    assert default_max_neighbors([4000, 4000]) == 500
