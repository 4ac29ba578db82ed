"""The pool on neighbour lists against its dense twin, and the numbers published for the recipe."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from bayesknn import PooledNeighborsClassifier
from bayesknn._utils.checks import read_columns
from bayesknn.pooled.columns import Columns, Sample, Settings
from bayesknn.pooled.features import Neighborhoods, leave_out
from bayesknn.pooled.member import fit_link, fit_member, fit_weights
from bayesknn.pooled.metrics import METRICS
from bayesknn.pooled.order import find_order
from bayesknn.pooled.views import assign_folds
from tests.pooled import dense

ALL = PooledNeighborsClassifier().members
LABEL_METRICS = ("discriminant", "evidence")


def blobs(n, p, n_classes, seed, few_values=False):
    """Overlapping classes of equal size; some columns take few values."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, p)) + 1.2 * rng.normal(size=(n_classes, p))[y]
    if few_values:
        X[:, -2] = np.round(X[:, -2])
        X[:, -1] = X[:, -1] > 0
    return (X - X.mean(0)) / X.std(0), y


def as_sample(X, y, columns=None):
    """Rows of equal weight as the metrics take them."""
    return Sample((columns or Columns()).fit(X), y, np.ones(len(y)), int(y.max()) + 1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_features_of_lists_are_those_of_all_distances(n_classes):
    X, y = blobs(90, 3, n_classes, 0)
    new = blobs(40, 3, n_classes, 1)[0]
    k_values = np.array([2, 3, 7, 20, 44])
    sample, settings = as_sample(X, y), Settings(k_values, 0, None, "auto")
    # Coordinates that differ from fold to fold, as learned ones do.
    rng = np.random.default_rng(2)
    folds = assign_folds(y, 5, rng)
    places = [X @ (np.eye(3) + 0.1 * rng.normal(size=(3, 3))) for _ in range(5)]
    twin, *lists = dense.left_out_features(places, y, n_classes, k_values, folds)
    found, reach = leave_out(places, sample, "euclidean", settings, folds)
    np.testing.assert_allclose(found, twin, atol=1e-12)
    twin = dense.features(X, y, n_classes, k_values, new, *lists)
    found, bandwidths = Neighborhoods(X, sample, "euclidean", settings, reach).new_features(new)
    np.testing.assert_allclose(found, twin, atol=1e-12)
    near = np.sort(dense.cdist(new, X), axis=1)
    np.testing.assert_allclose(bandwidths, near[:, k_values - 1], atol=1e-12)


@pytest.mark.parametrize("name", LABEL_METRICS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_metrics_give_the_distances_of_the_recipe(name, n_classes):
    X, y = blobs(60, 5, n_classes, 2, few_values=True)
    new = X[::7] + 0.3
    columns = Columns()
    metric = METRICS[name]().fit(as_sample(X, y, columns), 0)
    points = metric.transform(columns.transform(new))
    twin = dense.embed(name, X, y, n_classes, new, 0)[1]
    between = dense.cdist(points, points)
    np.testing.assert_allclose(between, dense.cdist(twin, twin), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", LABEL_METRICS)
def test_of_more_columns_than_rows_only_the_space_of_the_rows_is_kept(name):
    """Distances to the training rows are exact, also of rows outside that space."""
    X, y = blobs(30, 50, 3, 2, few_values=True)
    new = blobs(9, 50, 3, 3)[0]
    columns = Columns()
    table = columns.fit(X)
    metric = METRICS[name]().fit(Sample(table, y, np.ones(30), 3), 0)
    known, asked = metric.transform(table), metric.transform(columns.transform(new))
    assert known.shape[1] <= 30
    twin, new_twin = dense.embed(name, X, y, 3, new, 0)
    expected = dense.cdist(new_twin, twin)
    np.testing.assert_allclose(dense.cdist(asked, known), expected, rtol=1e-6)


def test_a_wide_table_needs_little_memory():
    """500 columns of 3 classes are 1,500 shares: a square matrix of them would be 18 MB."""
    X, y = blobs(40, 500, 3, 4)
    clf = PooledNeighborsClassifier(("discriminant", "evidence", "additive"), random_state=0)
    clf.fit(X[:, :5], y)  # imports and compiles
    tracemalloc.start()
    try:
        clf.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 18e6


def test_relevance_weighs_as_the_recipe_does():
    X, y = blobs(80, 4, 2, 3)
    metric = METRICS["relevance"]().fit(as_sample(X, y), 5)
    p, u = 4, metric.relevance_
    assert u.sum() == pytest.approx(1.0) and (u >= 0).all()
    np.testing.assert_allclose(metric.root_weights_**2, p * u + 0.02)
    noise = np.hstack([X[:, :1] * 0.1 + y[:, None], np.random.default_rng(0).normal(size=(80, 3))])
    found = METRICS["relevance"]().fit(as_sample(noise, y), 5).relevance_
    assert found[0] > 0.9


def test_the_seed_moves_relevance_little():
    """By about .03 on 60 rows, by which probabilities change less than by the folds."""
    X, y = blobs(60, 6, 3, 0)
    fits = [METRICS["relevance"]().fit(as_sample(X, y), seed).relevance_ for seed in range(12)]
    assert np.std(fits, axis=0).mean() < 0.05


@pytest.mark.parametrize("seed", range(4))
def test_links_are_the_bounded_maximum(seed):
    """Newton's method against quasi-Newton, with b clamped at 0 in some of the cases."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=70)
    features = rng.normal(size=(70, 3, 2))
    features[np.arange(70), y, seed % 2] += 1.0
    features[np.arange(70), y, 1 - seed % 2] -= 0.3
    alpha, b, loo = fit_link(features, y, np.ones(len(y)))
    theta, twin = dense.fit_link(features, y)
    np.testing.assert_allclose(np.r_[alpha, b], theta, atol=2e-5)
    np.testing.assert_allclose(loo, twin, atol=2e-4)
    assert b.min() == 0.0


def test_the_step_that_leaves_a_point_out_is_close_to_leaving_it_out():
    X, y = blobs(60, 2, 2, 4)
    features = dense.left_out_features([X] * 60, y, 2, np.array([8]), np.arange(60))[0][0]
    alpha, b, loo = fit_link(features, y, np.ones(len(y)))
    plain = log_softmax(alpha + features @ b, axis=1)
    exact = np.empty_like(plain)
    for i in range(60):
        # The others of its class take over its weight.
        weights = np.delete(np.where(y == y[i], 30 / 29, 1.0), i)
        alpha, b, _ = fit_link(np.delete(features, i, 0), np.delete(y, i), weights)
        exact[i] = log_softmax(alpha + features[i] @ b)
    # Not of every point: where one alone keeps a parameter from its end, a step is not enough.
    assert np.median(np.abs(loo - exact)) < 0.2 * np.median(np.abs(plain - exact))


def test_weights_of_the_pool_are_the_bounded_maximum():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=80)
    logs = rng.normal(size=(4, 80, 2))
    logs[0, np.arange(80), y] += 1.0
    logs[1, np.arange(80), y] -= 1.0
    proba = dense.softmax(logs, axis=2)
    weights = fit_weights(proba, y, np.ones(80))
    np.testing.assert_allclose(weights, dense.fit_pool(np.log(proba), y), atol=1e-4)
    assert weights[1] == 0.0 and weights[0] > 0.5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_whole_pool_is_that_of_the_dense_twin(n_classes):
    X, y = blobs(90, 4, n_classes, 6, few_values=True)
    new = blobs(50, 4, n_classes, 7)[0]
    # In the order that the fit uses, which the folds of the twin follow.
    order = find_order(read_columns(X), y, np.ones(90))
    X, new, y = X[order.rows][:, order.columns], new[:, order.columns], y[order.rows]
    y = np.argsort(order.classes)[y]
    clf = PooledNeighborsClassifier(LABEL_METRICS, random_state=3).fit(X, y)
    seed = np.random.SeedSequence(3).generate_state(1)[0]
    folds = assign_folds(y, 5, np.random.default_rng(seed))
    twin, weights = dense.predict(X, y, new, folds, LABEL_METRICS)
    np.testing.assert_allclose(clf.predict_proba(new), twin, atol=1e-3)
    np.testing.assert_allclose(list(clf.pool_weights_.values()), weights, atol=1e-2)


def test_k_probabilities_follow_the_leave_one_out_score():
    X, y = blobs(60, 2, 2, 8)
    features = dense.left_out_features([X] * 60, y, 2, np.array([2, 5, 20]), np.arange(60))[0]
    member, loo = fit_member(features, y, np.ones(60))
    logs = np.array([fit_link(one, y, np.ones(60))[2] for one in features])
    scores = logs[:, np.arange(60), y].sum(axis=1)
    np.testing.assert_allclose(np.diff(np.log(member.k_weights)), np.diff(scores))
    # The row that is predicted has no part in its own weights of k: others of its class stand in.
    own = logs[:, np.arange(60), y]
    for i in (0, 17, 59):
        weights = np.delete(np.where(y == y[i], 30 / 29, 1.0), i)
        without = softmax(np.delete(own, i, axis=1) @ weights)
        np.testing.assert_allclose(loo[i], without @ np.exp(logs[:, i]))


# Training rows and the log-loss published for neighbours alone, mean of the splits 0, 1, 2.
ROWS = {
    "iris": (load_iris, 90, (0.0385 + 0.0271 + 0.0282) / 3),
    "wine": (load_wine, 106, (0.0435 + 0.0087 + 0.0108) / 3),
    "breast_cancer": (load_breast_cancer, 341, (0.0973 + 0.0677 + 0.0944) / 3),
    "digits": (load_digits, 250, (0.1739 + 0.1207 + 0.1676) / 3),
}


@pytest.mark.parametrize(
    "name", ["iris", *(pytest.param(n, marks=pytest.mark.slow) for n in list(ROWS)[1:])]
)
def test_published_rows(name):
    load, n, published = ROWS[name]
    X, y = load(return_X_y=True)
    losses = []
    for split in range(3):
        parts = train_test_split(X, y, train_size=n, stratify=y, random_state=split)
        for members in (dense.METRICS, ALL):
            clf = PooledNeighborsClassifier(members, random_state=split).fit(parts[0], parts[2])
            losses.append(log_loss(parts[3], clf.predict_proba(parts[1])))
    neighbors, pool = np.reshape(losses, (3, 2)).mean(axis=0)
    assert abs(neighbors - published) < 0.01, losses
    # Members without neighbours gain nothing on these tables, and must cost little.
    assert pool < published + 0.01, losses
