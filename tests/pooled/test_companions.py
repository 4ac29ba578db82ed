"""The members without neighbours against scikit-learn; weights; what must not leak."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import bayesknn.pooled.classifier as classifier
from bayesknn import PooledNeighborsClassifier
from bayesknn.pooled.boosting import add_trees, grow_trees
from bayesknn.pooled.columns import Columns, Sample, Settings
from bayesknn.pooled.kernels import decompose
from bayesknn.pooled.views import AdditiveView, BoostedView, SmoothView
from tests.pooled import dense
from tests.pooled.test_classifier import find_gains

SETTINGS = Settings(np.array([2]), 0, None, "auto")


def draw(n, n_classes, seed, p=5):
    """Rows whose classes follow from two columns together and one of whole numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, 1] = np.round(X[:, 1])
    noisy = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    return X, np.digitize(noisy, np.linspace(-0.5, 0.5, n_classes - 1))


def as_sample(X, y, weights=None):
    weights = np.ones(len(y)) if weights is None else weights.astype(float)
    return Sample(Columns().fit(X), y, weights, int(y.max()) + 1)


def build(view, sample):
    """Return a fitted view of a sample that is in no folds."""
    return view(sample, SETTINGS, decompose(sample, 0) if view is SmoothView else None)


def cut_into_bins(X):
    """Return the bin of each value, by the rule of newer scikit-learn; 1.7 cuts elsewhere."""
    bins = np.empty_like(X)
    for column, into in zip(X.T, bins.T, strict=True):
        cuts = np.unique(column)
        if len(cuts) > 255:
            shares = np.linspace(0, 100, 256)[1:-1]
            cuts = np.percentile(column, shares, method="averaged_inverted_cdf")
        into[:] = np.searchsorted(cuts, column)
    return bins


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [200, 3001])
def test_boosted_trees_are_those_of_scikit_learn(n, n_classes):
    """Theirs keep gradients in single precision: equal up to that, far from a tie.

    With and without more values than bins. 3,000 rows would be two thirds of 255 bins to the row,
    where rounding puts two of their cuts a row further and a tree may then be another one.
    """
    X, y = draw(n, n_classes, 0)
    bins = cut_into_bins(X)
    theirs = HistGradientBoostingClassifier(
        max_leaf_nodes=8, min_samples_leaf=10, l2_regularization=1.0, early_stopping=False
    ).fit(bins, y)
    staged = list(theirs.staged_predict_proba(bins))
    start, trees, gains = grow_trees(X, y, np.ones(n), n_classes, 100)
    rounds = np.array([1, 15, 100])
    for t, raw in zip(rounds, add_trees(X, start, trees, rounds), strict=True):
        if n_classes == 2:
            raw = np.hstack([np.zeros((n, 1)), raw])
        np.testing.assert_allclose(dense.softmax(raw, axis=1), staged[t - 1], atol=1e-6)
    assert gains.argmax() == 0 and gains.min() > 0


def test_trees_of_a_wide_table_draw_their_columns():
    X, y = draw(60, 2, 0, p=300)
    gains = [grow_trees(X, y, np.ones(60), 2, 5, seed)[2] for seed in (0, 0, 1)]
    np.testing.assert_array_equal(gains[0], gains[1])
    assert (gains[0] != gains[2]).any()


def test_a_column_may_be_constant_outside_a_fold():
    X, y = draw(40, 3, 5)
    X[:, 3] = np.arange(40) == 7
    clf = PooledNeighborsClassifier(("evidence", "additive"), random_state=0).fit(X, y)
    assert np.isfinite(clf.loo_proba_).all()


def test_slopes_of_a_wide_table_are_those_of_all_its_coordinates():
    """They are found in the space that the rows span, where the ridge keeps them."""
    X, y = draw(30, 3, 1, p=40)
    X = (X - X.mean(0)) / X.std(0)
    view = AdditiveView(as_sample(X, y), SETTINGS)
    points = np.hstack([dense.evidence(X, y, 3, X)[0], np.clip(X, -4, 4), np.clip(X, -4, 4) ** 2])
    points = (points - points.mean(0)) / points.std(0)
    twin = LogisticRegression(C=0.1, max_iter=1000, tol=1e-8).fit(points, y)
    logs = np.maximum(twin.predict_log_proba(points), np.log(1e-5))
    np.testing.assert_allclose(view.features(Columns().fit(X))[2, ..., 0], logs, atol=5e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_additive_member_is_a_regression_on_shares_numbers_and_squares(n_classes):
    X, y = draw(90, n_classes, 1)
    X[5, 0] = 20.0
    X = (X - X.mean(0)) / X.std(0)
    new = X[::7] + 0.2
    found = AdditiveView(as_sample(X, y), SETTINGS)
    table = Columns()
    table.fit(X)
    features = found.features(table.transform(new))
    assert features.shape == (5, len(new), n_classes, 1)
    known, asked = (
        np.hstack([shares, np.clip(rows, -4, 4), np.clip(rows, -4, 4) ** 2])
        for shares, rows in zip(dense.evidence(X, y, n_classes, new), (X, new), strict=True)
    )
    known, asked = ((rows - known.mean(0)) / known.std(0) for rows in (known, asked))
    twin = LogisticRegression(C=0.1, max_iter=1000, tol=1e-8).fit(known, y)
    logs = twin.predict_log_proba(asked)
    np.testing.assert_allclose(features[2, ..., 0], np.maximum(logs, np.log(1e-5)), atol=5e-3)


def test_whole_weights_are_repeated_rows():
    """Boosted trees and the additive regression."""
    X, y = draw(150, 3, 2)
    weights = 1 + np.arange(150) % 3
    again = np.repeat(np.arange(150), weights)
    once, often = as_sample(X, y, weights), as_sample(X[again], y[again])
    tables = Columns(), Columns()
    for table, rows in zip(tables, (X, X[again]), strict=True):
        table.fit(rows)
    for view, error in ((BoostedView, 1e-9), (AdditiveView, 5e-3)):
        features = [
            view(sample, SETTINGS).features(table.transform(X[:40]))
            for sample, table in zip((once, often), tables, strict=True)
        ]
        np.testing.assert_allclose(*features, atol=error)
        plain = view(as_sample(X, y), SETTINGS).features(tables[0].transform(X[:40]))
        assert np.abs(plain - features[0]).max() > 0.1


def test_weights_move_every_member():
    X, y = draw(120, 2, 3)
    heavy = np.where(y == 1, 5.0, 1.0)
    for name in classifier.VIEWS:
        clf = PooledNeighborsClassifier((name,), random_state=0)
        plain = clf.fit(X, y).predict_proba(X)[:, 1].mean()
        assert clf.fit(X, y, sample_weight=heavy).predict_proba(X)[:, 1].mean() > plain + 0.1
    same = clf.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(clf.fit(X, y, np.ones(120)).predict_proba(X), same)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(7), r"sample_weight must have shape \(120,\)"),
        (np.arange(120) - 1, "sample_weight is -1 in row 0; weights must not be negative"),
        (np.zeros(120), "sample_weight is zero in every row"),
        (np.where(np.arange(120) == 5, np.nan, 1), "sample_weight is nan in row 5"),
    ],
)
def test_bad_weights_are_named(weights, message):
    X, y = draw(120, 2, 3)
    with pytest.raises(ValueError, match=message):
        PooledNeighborsClassifier(("evidence",)).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("name", ["additive", "boosted", "smooth"])
def test_a_companion_that_had_seen_the_labels_would_leak(name, monkeypatch):
    """Permuted labels are predicted as soon as a view is judged on rows that it was fitted to."""
    honest = classifier.leave_folds_out

    def seen_features(judged, sample, settings, folds):
        if judged != name:  # The metric by which places are judged.
            return honest(judged, sample, settings, folds)
        shared = honest(judged, sample, settings, folds)[1]
        return classifier.VIEWS[name](sample, settings, shared).features(sample.table), shared

    monkeypatch.setattr(classifier, "leave_folds_out", seen_features)
    gain, error = find_gains((name,))
    assert gain > 3 * error


def test_features_are_log_probabilities():
    X, y = draw(120, 3, 4)
    for view in (AdditiveView, BoostedView, SmoothView):
        sample = as_sample(X, y)
        logs = build(view, sample).features(sample.table)[..., 0]
        assert logs.min() >= np.log(1e-5)
        np.testing.assert_allclose(log_softmax(logs, axis=2), logs, atol=1e-4)
