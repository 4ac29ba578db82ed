"""Ties in distance: counted, told, and averaged over orders of the rows."""

import pickle

import numpy as np
import pytest
from scipy.stats import ttest_ind

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley
from tests.graph.titanic import expand_titanic

RIPLEY = load_ripley()
PSEUDO = {"likelihood": "pseudo", "max_neighbors": 20, "beta_max": 4.0, "n_draws": 50}


def fit_sorted(sign, **settings):
    X, y = expand_titanic()
    rows = np.argsort(sign * y, kind="stable")
    return BayesianKNeighborsClassifier(**PSEUDO, **settings).fit(X[rows], y[rows])


def test_ties_are_counted_and_told():
    clf = fit_sorted(1)
    k = int(np.argmax(clf.k_probabilities_)) + 1
    assert clf.diagnostics_["boundary_ties"] == clf.graph_.count_boundary_ties(k) > 2000
    assert any(
        "of 2201 points have neighbours that are no" in w for w in clf.diagnostics_["warnings"]
    )
    free = BayesianKNeighborsClassifier(**PSEUDO).fit(RIPLEY.X_train, RIPLEY.y_train)
    assert free.diagnostics_["boundary_ties"] == 0
    assert not any("tie_orders" in words for words in free.diagnostics_["warnings"])


def test_a_file_sorted_by_class_predicts_no_more_of_the_first():
    """Dead first against survivors first, eight orders each: the same up to what orders do."""
    kinds = np.unique(expand_titanic()[0], axis=0)
    survival = []
    for sign in (1, -1):
        clf = fit_sorted(sign, tie_orders=8)
        each = [one._predictive.probabilities(kinds)[:, 1].mean() for one in (clf, *clf._others)]
        assert np.mean(each) == pytest.approx(clf.predict_proba(kinds)[:, 1].mean())
        survival.append(each)
    assert ttest_ind(*survival, equal_var=False).pvalue > 1e-5


def test_without_ties_every_order_is_the_same():
    one = BayesianKNeighborsClassifier(**PSEUDO).fit(RIPLEY.X_train, RIPLEY.y_train)
    many = BayesianKNeighborsClassifier(**PSEUDO, tie_orders=3).fit(RIPLEY.X_train, RIPLEY.y_train)
    X = RIPLEY.X_test[:50]
    np.testing.assert_allclose(many.predict_proba(X), one.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(many.predict_interval(X), one.predict_interval(X), atol=1e-12)
    np.testing.assert_allclose(many.loo_proba_, one.loo_proba_, atol=1e-12)
    np.testing.assert_allclose(many.loo_interval(), one.loo_interval(), atol=1e-12)
    np.testing.assert_allclose(many.k_probabilities_, one.k_probabilities_, atol=1e-12)
    assert many.log_evidence_ == pytest.approx(one.log_evidence_)
    assert (many.beta_mean_, many.beta_sd_) == pytest.approx((one.beta_mean_, one.beta_sd_))
    assert many.posterior_["posterior"].sizes["chain"] == 3 * 4


def test_what_is_averaged():
    X = np.random.default_rng(0).integers(0, 3, size=(60, 3)).astype(float)
    y = (X.sum(axis=1) + np.arange(60) % 2 > 3).astype(int)
    clf = BayesianKNeighborsClassifier(**PSEUDO, tie_orders=3).fit(X, y)
    fits = []
    for order in range(3):
        one = BayesianKNeighborsClassifier(**PSEUDO)
        one._tie_order = order
        fits.append(one.fit(X, y))
    assert len({one.beta_mean_ for one in fits}) == 3
    new = X[:20] + 0.5
    mean = np.mean([one.predict_proba(new) for one in fits], axis=0)
    np.testing.assert_allclose(clf.predict_proba(new), mean, atol=1e-12)
    ends = np.array([one.predict_interval(new, of="parameters") for one in fits])
    hull = np.stack([ends[..., 0].min(axis=0), ends[..., 1].max(axis=0)], axis=-1)
    np.testing.assert_allclose(clf.predict_interval(new, of="parameters"), hull)
    low, high = np.moveaxis(clf.predict_interval(new), 2, 0)
    assert np.all(low <= high) and clf.loo_interval().shape == (60, 2, 2)
    assert clf.posterior_["log_likelihood/labels"].sizes["chain"] == 12
    laws = np.array([one.k_probabilities_ for one in fits])
    np.testing.assert_allclose(clf.k_probabilities_, laws.mean(axis=0))
    moments = np.array([[f.beta_mean_, f.beta_sd_**2 + f.beta_mean_**2] for f in fits]).mean(axis=0)
    assert clf.beta_mean_ == pytest.approx(moments[0])
    assert clf.beta_sd_ == pytest.approx(np.sqrt(moments[1] - moments[0] ** 2))
    evidence = np.mean(np.exp([one.log_evidence_ - clf.log_evidence_ for one in fits]))
    assert evidence == pytest.approx(1.0)
    assert clf.diagnostics_["tie_orders"]["beta_mean"] == pytest.approx(
        [one.beta_mean_ for one in fits]
    )
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(new), clf.predict_proba(new))


@pytest.mark.parametrize("bad", [0, 1.5, "all"])
def test_bad_numbers_of_orders(bad):
    clf = BayesianKNeighborsClassifier(**PSEUDO, tie_orders=bad)
    with pytest.raises(ValueError, match="tie_orders must be an integer >= 1"):
        clf.fit(RIPLEY.X_train, RIPLEY.y_train)
