"""Classes of one row: fitted by every classifier, and used in no score."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    ColumnSelector,
    PooledNeighborsClassifier,
    check_intervals,
)
from bayesknn.model_file.adapters import adapt

ALONE = 3


@pytest.fixture(scope="module")
def table():
    """Two classes of 20 rows; one row among the first is the only one of class 'c'."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 20)
    X = rng.normal(size=(40, 2)) + 1.5 * (y == "b")[:, None]
    y[ALONE] = "c"
    return X, y


LIKELIHOODS = [
    ("pseudo", {}),
    ("holmes-adams", {"calibrate": True}),
    ("coherent", {"max_neighbors": 2, "beta_max": 2.0}),
]


@pytest.mark.parametrize(("likelihood", "options"), LIKELIHOODS)
def test_the_row_is_left_out_like_others_and_is_in_no_score(table, likelihood, options):
    X, y = table
    given = {"beta_max": 3.0, "max_neighbors": 8, "n_draws": 100, "random_state": 0} | options
    clf = BayesianKNeighborsClassifier(likelihood, **given)
    with pytest.warns(UserWarning, match=r"class 'c' has one row: .* \(1 row\)"):
        clf.fit(X, y)
    assert any("class 'c' has one row" in each for each in clf.diagnostics_["warnings"])
    own = np.log(clf.loo_proba_[np.arange(40), np.searchsorted(clf.classes_, y)])
    assert clf.loo_log_score_ == pytest.approx(np.delete(own, ALONE).mean())
    # Without its label no neighbour is of its class, so that this is the least probable one.
    assert clf.loo_proba_[ALONE, 2] == clf.loo_proba_[ALONE].min()
    assert clf.loo_proba_[ALONE, 2] < clf.predict_proba(X[[ALONE]])[0, 2]
    low, high = clf.loo_interval()[ALONE].T
    assert np.all((low <= clf.loo_proba_[ALONE]) & (clf.loo_proba_[ALONE] <= high))


@pytest.mark.filterwarnings("ignore:class .* one row")
def test_what_is_learned_from_left_out_scores_does_not_use_the_row(table):
    """Numbers of a class in a batch are corrected by the residuals of the other rows."""
    X, y = table
    given = {"beta_max": 3.0, "max_neighbors": 8, "calibrate": True, "random_state": 0}
    clf = BayesianKNeighborsClassifier("pseudo", **given).fit(X, y)
    residuals = np.delete((y == "b") - clf.loo_proba_[:, 1], ALONE)
    mean = clf.predict_proba(X)[:, 1].sum() + len(X) * residuals.mean()
    assert clf.predict_counts(X)[1, 0] == pytest.approx(mean)
    # Drawn labels may lack the class, or have it in one row again.
    result = check_intervals(clf, X, y, n_repeats=2, random_state=0, verbose=0)
    assert 0.0 < result.coverage <= 1.0


def test_the_others_take_such_classes(table):
    X, y = table
    with pytest.warns(UserWarning, match="class 'c' has one row"):
        classical = ClassicalKNeighborsClassifier(1).fit(X, y)
    wrong = [np.argmin(np.delete(((X - x) ** 2).sum(axis=1), i)) for i, x in enumerate(X)]
    errors = [y[j + (j >= i)] != y[i] for i, j in enumerate(wrong)]
    assert classical.loo_errors_[0] == pytest.approx(np.delete(errors, ALONE).mean())
    assert classical.predict(X[[ALONE]]) == ["c"]
    for by in ("pseudo-evidence", "loo"):
        selector = ColumnSelector(by, random_state=0).fit(X, y)
        assert np.isfinite(selector.scores_).all()
        assert selector.informative_


@pytest.mark.filterwarnings("ignore:class .* one row", "ignore:The least populated class")
def test_cross_validation_of_a_rare_class(table):
    X, y = table
    y = np.where(np.arange(40) == 30, "c", y)
    for clf in (
        BayesianKNeighborsClassifier("pseudo", max_neighbors=5, beta_max=3.0),
        ClassicalKNeighborsClassifier(),
    ):
        assert np.isfinite(cross_val_score(clf, X, y, cv=2)).all()


@pytest.mark.filterwarnings("ignore:class .* one row")
def test_the_report_scores_the_rows_that_the_classifier_does(table):
    X, y = table
    prior = {"a": 0.6, "b": 0.3, "c": 0.1}
    for clf in (
        BayesianKNeighborsClassifier("pseudo", beta_max=3.0, class_prior=prior),
        PooledNeighborsClassifier(("evidence",), class_prior=prior, random_state=0),
    ):
        adapter = adapt(clf.fit(X, y))
        assert np.flatnonzero(adapter.score_weights == 0).tolist() == [ALONE]
        np.testing.assert_allclose(adapter.class_prior, list(prior.values()))


def test_a_table_of_such_classes_alone_is_rejected(table):
    X, _ = table
    with pytest.raises(ValueError, match="no class is in two rows"):
        BayesianKNeighborsClassifier().fit(X, np.arange(40))
