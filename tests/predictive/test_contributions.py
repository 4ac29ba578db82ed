"""What each column contributes to a row's class, in every classifier."""

import numpy as np
import pandas as pd
import pytest

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    PooledNeighborsClassifier,
)

RNG = np.random.default_rng(0)
Y = np.arange(60) % 2
X = np.column_stack([RNG.normal(size=60) + 4 * Y, RNG.normal(size=60)])
MODELS = {
    "pseudo": BayesianKNeighborsClassifier("pseudo", max_neighbors=8, beta_max=4.0),
    "pool": PooledNeighborsClassifier(members=("evidence", "additive"), random_state=0),
    "classical": ClassicalKNeighborsClassifier(9),
}


@pytest.mark.parametrize("name", ["pseudo", "pool"])
def test_they_are_what_the_log_odds_lose_with_the_value_of_another(name):
    """On average over the others, for the class that the row is predicted to be of."""
    clf = MODELS[name].fit(X, Y)
    rows, others = RNG.normal(size=(4, 2)) + [2.0, 0.0], X[20:27]

    def log_odds(table):
        return np.log(clf.predict_proba(table)).dot([-1, 1])

    sign = np.where(clf.predict(rows) == 1, 1, -1)
    for j, found in enumerate(clf.predict_contributions(rows, others).T):
        replaced = np.repeat(rows[:, None], len(others), axis=1)
        replaced[:, :, j] = others[:, j]
        lost = log_odds(rows) - log_odds(replaced.reshape(-1, 2)).reshape(4, -1).mean(axis=1)
        np.testing.assert_allclose(found, sign * lost, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("as_frame", [False, True])
def test_the_column_that_separates_the_classes_contributes(name, as_frame):
    table = pd.DataFrame(X, columns=["x", "z"]) if as_frame else X
    clf = MODELS[name].fit(table, Y)
    found = clf.predict_contributions(table)
    assert found.shape == X.shape and np.isfinite(found).all()
    assert found[:, 0].mean() > 5 * abs(found[:, 1].mean())
    # The same rows again, given as others.
    np.testing.assert_array_equal(clf.predict_contributions(table[:3], table), found[:3])


def test_categories_are_replaced_as_numbers_are():
    town = np.where(Y, "Rome", "Oslo")
    table = pd.DataFrame({"town": pd.Categorical(town), "x": X[:, 1]})
    clf = PooledNeighborsClassifier(members=("evidence", "discriminant"), random_state=0).fit(
        table, Y
    )
    found = clf.predict_contributions(table.iloc[:4], table)
    assert (found[:, 0] > np.abs(found[:, 1])).all()


def test_whole_numbers_take_the_values_of_others_unrounded():
    clf = MODELS["pseudo"].fit(X, Y)
    whole, others = np.array([[4, 0], [0, 1]]), X[:9]
    found = clf.predict_contributions(whole, others)
    np.testing.assert_array_equal(found, clf.predict_contributions(whole.astype(float), others))


def test_what_has_no_contribution_is_refused():
    clf = MODELS["pseudo"].fit(X, Y)
    with pytest.raises(ValueError, match="one row needs others to compare with"):
        clf.predict_contributions(X[:1])
    with pytest.raises(ValueError, match="n_background must be an integer >= 1"):
        clf.predict_contributions(X, n_background=0)
    distances = np.abs(X[:, :1] - X[:, 0])
    clf = BayesianKNeighborsClassifier("pseudo", metric="precomputed", max_neighbors=8)
    with pytest.raises(ValueError, match="no columns that contribute"):
        clf.fit(distances, Y).predict_contributions(distances)
