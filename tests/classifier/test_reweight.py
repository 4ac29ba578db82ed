"""The posterior under another prior, on the graph of a fit: under its own prior it is the fit."""

import numpy as np
import pytest

from bayesknn import BayesianKNeighborsClassifier, sensitivity
from bayesknn.model import UniformPrior

LIKELIHOODS = ("coherent", "pseudo", "holmes-adams")


def draw_step(n=160, p=6):
    """P = .97 or .03 by the sign of one of normal columns, which the distance hardly shows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, (rng.random(n) < np.where(X[:, 0] > 0, 0.97, 0.03)).astype(int)


def fit(likelihood, X, y, prior=None, beta_max=4.0, **settings):
    # Not as many neighbours as would be found by default, for time.
    given = {"max_neighbors": 20, "random_state": 0, "beta_max": beta_max} | settings
    return BayesianKNeighborsClassifier(likelihood, prior=prior, **given).fit(X, y)


def check_equal(first, second, new):
    assert first.diagnostics_.keys() == second.diagnostics_.keys()
    for name, value in first.diagnostics_.items():
        other = second.diagnostics_[name]
        if name == "mcse":
            assert other == pytest.approx(value, rel=1e-6, abs=1e-12)
        elif isinstance(value, float):
            assert other == pytest.approx(value, abs=1e-6)
        else:
            assert other == value, name
    for name in ("loo_proba_", "k_probabilities_", "beta_mean_", "log_evidence_", "beta_max_"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), atol=1e-6)
    np.testing.assert_allclose(first.predict_interval(new), second.predict_interval(new), atol=1e-6)
    np.testing.assert_allclose(first.loo_interval(), second.loo_interval(), atol=1e-6)
    draws = (clf._draws["groups"]["posterior"]["beta"] for clf in (first, second))
    np.testing.assert_allclose(*draws, atol=1e-4)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_the_prior_of_the_fit_gives_the_fit(likelihood):
    """Intervals that allow for a column, draws, diagnostics and warnings included."""
    X, y = draw_step()
    clf = fit(likelihood, X, y)
    assert clf.diagnostics_["misfit_column"] == 0
    assert any("depend on column '0'" in each for each in clf.diagnostics_["warnings"])
    check_equal(clf.reweight(clf.prior_), clf, X[:20] + 0.1)
    # Categories and duplicate rows have a part, too.
    X = np.random.default_rng(1).integers(3, size=(60, 2)).astype(float)
    y = (X[:, 0] > 0).astype(int)
    clf = fit(likelihood, X, y, max_neighbors=6)
    check_equal(clf.reweight(None), clf, X[:20])


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_prior_that_is_zero_at_some_k_is_its_own(likelihood):
    """exp(-inf - -inf) is no ratio: the fit's own prior was refused, and so was sensitivity."""
    X, y = draw_step(60, 2)
    clf = fit(likelihood, X, y, [1.0, 0.0, 1.0, 1.0, 1.0, 0.0], max_neighbors=6)
    check_equal(clf.reweight(clf.prior_), clf, X[:10] + 0.1)
    assert sensitivity(clf)["largest_change"]["as fitted"] < 1e-6
    # The coherent fit has no nodes at a k that its prior excluded; the products have all k.
    if likelihood == "coherent":
        with pytest.raises(ValueError, match="no nodes at 2 k of this prior, 2 to 6"):
            clf.reweight(UniformPrior(6, 4.0))
    else:
        assert clf.reweight(UniformPrior(6, 4.0)).k_probabilities_.min() > 0


@pytest.mark.parametrize("likelihood", ["pseudo", "holmes-adams"])
def test_products_of_conditionals_reach_any_prior_on_the_graph(likelihood):
    """K = 5 of 60, and a larger beta_max: the same numbers as those of a fit with that prior."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1)), np.arange(300) % 2
    X[:, 0] += 2 * y
    clf = fit(likelihood, X, y, max_neighbors=60, beta_max=1.0)
    for prior in (UniformPrior(5, 1.0), UniformPrior(60, 6.0)):
        refitted = fit(likelihood, X, y, prior, "auto", max_neighbors=None)
        other = clf.reweight(prior)
        np.testing.assert_allclose(other.k_probabilities_, refitted.k_probabilities_, atol=1e-6)
        np.testing.assert_allclose(other.loo_proba_, refitted.loo_proba_, atol=1e-6)
        assert other.log_evidence_ == pytest.approx(refitted.log_evidence_)
    with pytest.raises(ValueError, match="ends at k = 60: fit with k up to 61"):
        clf.reweight(UniformPrior(61, 1.0))


def test_warnings_about_the_ends_of_the_prior_follow_the_posterior():
    """A fit with beta_max = 1 warned of it, the same posterior reweighted did not."""
    X, y = np.arange(40.0)[:, None], np.repeat([0, 1], 20)
    for likelihood in ("coherent", "pseudo"):
        wide, narrow = (fit(likelihood, X, y, max_neighbors=4, beta_max=b) for b in (4.0, 1.0))
        other = wide.reweight(UniformPrior(4, 1.0))
        for clf in (narrow, other):
            assert any("beta_max=1" in each for each in clf.diagnostics_["warnings"])


def test_where_the_grid_has_no_nodes_the_error_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1)), np.arange(300) % 2
    X[:, 0] += 2 * y
    clf = fit("coherent", X, y, max_neighbors=60)
    least = int(np.flatnonzero(clf.k_probabilities_)[0]) + 1
    assert least > 1
    with pytest.raises(ValueError, match=f"no nodes at {least - 1} k of this prior, 1 to"):
        clf.reweight(UniformPrior(least - 1, 4.0))


def test_draws_share_no_stream_with_the_user():
    """Draws of random_state=0 are not those of default_rng(0), which may have made the data."""
    X, y = draw_step(60, 2)
    clf = fit("pseudo", X, y, max_neighbors=6)
    other = clf.reweight(UniformPrior(5, 4.0))
    beta = other._draws["groups"]["posterior"]["beta"]
    plain = other.grid_.draw(*beta.shape, np.random.default_rng(0))["beta"]
    assert not np.allclose(beta, plain)
    np.testing.assert_array_equal(
        beta, clf.reweight(UniformPrior(5, 4.0))._draws["groups"]["posterior"]["beta"]
    )
