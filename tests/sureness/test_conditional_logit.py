"""The one conditional logit against a general optimiser and the obvious formula."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from bayesknn.sureness import conditional_logit
from bayesknn.sureness.conditional_logit import fit_conditional_logit

PRIOR = {"b_mean": np.array([1.0, 0.0, 0.3]), "b_sd": np.array([0.5, 2.0, 1.0]), "alpha_sd": 0.7}


def problem(n_classes, n=80, seed=0):
    rng = np.random.default_rng([seed, n_classes])
    features = rng.normal(size=(n, n_classes, 3))
    # The second feature speaks against the truth: its weight is 0.
    truth = np.array([0.8, -1.5, 0.6])
    p = np.exp(log_softmax(features @ truth, axis=1))
    labels = (rng.random(n)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return features, labels, rng.normal(size=n), rng.uniform(0.2, 3.0, size=n)


def log_posterior(theta, features, labels, covariate, weight):
    """Write the formula out."""
    n, _n_classes, _ = features.shape
    alpha, b = theta[:-3], theta[-3:]
    fields = features @ b
    if covariate is not None:
        fields = fields + covariate[:, None] * alpha
    own = log_softmax(fields, axis=1)[np.arange(n), labels]
    penalty = np.sum(((b - PRIOR["b_mean"]) / PRIOR["b_sd"]) ** 2)
    penalty += np.sum((alpha / PRIOR["alpha_sd"]) ** 2)
    return (own if weight is None else weight * own).sum() - penalty / 2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_covariate", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_it_is_the_maximum_that_a_general_optimiser_finds(n_classes, with_covariate, weighted):
    features, labels, covariate, weight = problem(n_classes)
    covariate, weight = covariate if with_covariate else None, weight if weighted else None
    found = fit_conditional_logit(features, labels, covariate=covariate, weight=weight, **PRIOR)
    n_alpha = n_classes if with_covariate else 0
    best = minimize(
        lambda theta: -log_posterior(theta, features, labels, covariate, weight),
        np.append(np.zeros(n_alpha), PRIOR["b_mean"]),
        method="L-BFGS-B",
        bounds=[(None, None)] * n_alpha + [(0.0, None)] * 3,
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    theta = np.append(found.alpha, found.b)
    np.testing.assert_allclose(theta, best.x, atol=1e-4)
    assert found.log_posterior >= -best.fun - 1e-9
    assert found.b[1] == 0.0 and found.b[0] > 0
    value = log_posterior(theta, features, labels, covariate, weight)
    assert found.log_posterior == pytest.approx(value, abs=1e-9)


def test_the_hessian_is_that_of_minus_the_log_posterior():
    features, labels, covariate, weight = problem(3)
    data = features, labels, covariate, weight
    found = fit_conditional_logit(features, labels, covariate=covariate, weight=weight, **PRIOR)
    theta = np.append(found.alpha, found.b)
    h, d = 1e-4, len(theta)
    steps = h * np.eye(d)
    for i in range(d):
        for j in range(d):
            corners = [
                s * t * log_posterior(theta + s * steps[i] + t * steps[j], *data)
                for s in (1, -1)
                for t in (1, -1)
            ]
            expected = -sum(corners) / (4 * h * h)
            assert found.hessian[i, j] == pytest.approx(expected, abs=1e-3)


def test_weights_count_as_copies():
    features, labels, covariate, _ = problem(3)
    copies = 1 + np.arange(len(labels)) % 3
    one = fit_conditional_logit(features, labels, covariate=covariate, weight=copies, **PRIOR)
    rows = np.repeat(np.arange(len(labels)), copies)
    many = fit_conditional_logit(features[rows], labels[rows], covariate=covariate[rows], **PRIOR)
    np.testing.assert_allclose(np.append(one.alpha, one.b), np.append(many.alpha, many.b))


def test_gains_that_rounding_hides_are_not_waited_for():
    """Sums over 100,000 rows have errors of 1e-9: a smaller tolerance took 2,963 passes."""
    passes = []

    def objective(x):
        lucky = 0.0 if passes else 1e-9
        passes.append(x)
        return 6e4 + 500 * (x[0] - 1) ** 2 - lucky, 1000 * (x - 1), np.array([[1000.0]])

    start = np.array([1 + np.sqrt(6e-13)])
    found, _, _ = conditional_logit._minimize(objective, start, np.array([False]))
    assert len(passes) < 5 and found[0] == pytest.approx(1, abs=1e-6)


def test_a_maximum_that_was_not_found_is_told():
    def objective(x):
        return x[0] ** 4, 4 * x**3, np.array([12 * x**2])

    start = np.array([100.0])
    with pytest.warns(ConvergenceWarning, match="conditional logit"):
        conditional_logit._minimize(objective, start, np.array([False]), max_steps=3)


def test_many_intercepts_need_no_features_of_their_own():
    """An indicator for each of 80 classes, at every point and class, would be 26 MB."""
    features, labels, covariate, _ = problem(80, n=500)
    fit_conditional_logit(features[:, :2], labels % 2, covariate=covariate, **PRIOR)  # compiles
    tracemalloc.start()
    try:
        fit_conditional_logit(features, labels, covariate=covariate, **PRIOR)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e6
