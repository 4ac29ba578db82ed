"""The smooth member against kernel logistic regression on all rows, and what it is made for."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from bayesknn import PooledNeighborsClassifier
from bayesknn.pooled.columns import Columns, Sample, Settings
from bayesknn.pooled.kernels import decompose
from bayesknn.pooled.views import SmoothView
from tests.pooled import dense
from tests.pooled.test_companions import as_sample, draw

SETTINGS = Settings(np.array([2]), 0, None, "auto")


def centre(kernels, weights):
    """Return kernels between rows (first n) and points, centred, of mean 1 on the diagonal."""
    shares, n = weights / weights.sum(), len(weights)
    for kernel in kernels:
        known = kernel[:, :n]
        about = kernel - shares @ kernel - (known @ shares)[:, None] + shares @ known @ shares
        yield about / (shares @ np.diag(about))


def make_kernel(X, new, weights):
    """Return the kernel (n, n + m) of standardised numbers by its definition, with cdist."""
    X, every = np.clip(X, -4, 4), np.clip(np.vstack([X, new]), -4, 4)
    shares = weights / weights.sum()
    between = cdist(X, every, "sqeuclidean")
    h = shares @ between[:, : len(X)] @ shares
    square = (1 + X @ every.T / np.sqrt(X.shape[1])) ** 2
    return sum(centre([square, np.exp(-between / (2 * h))], weights)) / 2


def fit_dual(kernel, y, weights, n_classes, c):
    """Return log odds (n + m, n_classes) of kernel logistic regression by its dual weights."""
    n = len(y)
    truth = np.eye(n_classes)[y]

    def loss(flat):
        dual, starts = flat[:-n_classes].reshape(n, n_classes), flat[-n_classes:]
        odds = kernel[:, :n] @ dual + starts
        p = dense.softmax(odds, axis=1)
        value = -weights @ np.log((p * truth).sum(axis=1))
        value += np.sum(dual * (kernel[:, :n] @ dual)) / (2 * c)
        rest = weights[:, None] * (p - truth)
        slope = kernel[:, :n] @ (rest + dual / c)
        return value, np.append(slope.ravel(), rest.sum(axis=0))

    flat = minimize(
        loss, np.zeros((n + 1) * n_classes), jac=True, options={"maxiter": 5000, "gtol": 1e-6}
    ).x
    return kernel.T @ flat[:-n_classes].reshape(n, n_classes) + flat[-n_classes:]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_kernel_logistic_regression(n_classes):
    """One output for two classes is as two opposite ones of half its size, at half the penalty."""
    X, y = draw(60, n_classes, 1)
    X[5, 0] = 20.0
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=60)
    X, new = (X - X.mean(0)) / X.std(0), X[::6] + 0.1
    columns = Columns()
    table = columns.fit(X)
    sample = as_sample(X, y, weights)
    space = decompose(sample, 0)
    kernel = make_kernel(X, new, weights)
    functions = [space.transform(each) for each in (table, columns.transform(new))]
    np.testing.assert_allclose(functions[0] @ np.vstack(functions).T, kernel, atol=1e-6)
    features = SmoothView(sample, SETTINGS, space).features(columns.transform(new))
    assert features.shape == (4, len(new), n_classes, 1)
    for t, c in enumerate((0.1, 1.0)):
        odds = fit_dual(kernel, y, weights, n_classes, c / (2 if n_classes == 2 else 1))
        logs = np.log(dense.softmax(odds[60:], axis=1))
        np.testing.assert_allclose(features[t, ..., 0], logs, atol=5e-3)


def test_landmarks_and_functions_are_few_and_labels_have_no_part():
    X, y = draw(700, 3, 2)
    sample = as_sample(X, y)
    space = decompose(sample, 3)
    assert space.kernel.landmarks.shape == (300, 5) and space.axes.shape[1] <= 100
    other = decompose(sample._replace(labels=y[::-1]), 3)
    np.testing.assert_array_equal(space.axes, other.axes)
    # These functions vary most: together they hold nearly all of the variance, which is 1.
    at_landmarks = space.transform(sample.table)
    assert 0.95 < np.sum(at_landmarks.var(axis=0)) < 1.1


def test_equal_eigenvalues_are_kept_or_dropped_together():
    """Rows at the corners of a cross in 120 columns: all functions but a few vary equally."""
    X = np.vstack([np.eye(120), -np.eye(120)])
    space = decompose(as_sample(X, np.arange(240) % 2), 0)
    assert space.axes.shape[1] < 100
    X, y = draw(40, 2, 0)
    X[:] = 1.0
    assert np.isfinite(decompose(as_sample(X, y), 0).axes).all()


def test_rows_that_are_fitted_hold_every_class():
    """A regression on 80,000 / 2 rows of 48,000: every class is among them, in its proportion."""
    X, y = draw(48_000, 2, 0, p=3)
    y[:] = 0
    y[:9_600] = 1
    rare = y.copy()
    rare[1:9_600] = 0
    for labels, least, most in ((y, 0.19, 0.21), (rare, 1e-5, 1e-3)):
        sample = as_sample(X, labels)
        view = SmoothView(sample, SETTINGS, decompose(sample, 0))
        mean = np.exp(view.features(sample.table)[0, :, 1, 0]).mean()
        assert least < mean < most


def test_whole_weights_are_repeated_rows():
    X, y = draw(150, 3, 2)
    weights = 1 + np.arange(150) % 3
    again = np.repeat(np.arange(150), weights)
    columns = Columns()
    table = columns.fit(X)
    once = Sample(table, y, weights.astype(float), 3)
    often = Sample(table.take(again), y[again], np.ones(len(again)), 3)
    views = [SmoothView(each, SETTINGS, decompose(each, 0)) for each in (once, often)]
    features = [view.features(table) for view in views]
    np.testing.assert_allclose(*features, atol=5e-3)
    plain = once._replace(weights=np.ones(150))
    unweighted = SmoothView(plain, SETTINGS, decompose(plain, 0)).features(table)
    assert np.abs(unweighted - features[0]).max() > 0.1


def test_classes_that_follow_products_are_its_own():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 6))
    y = (X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.3 * rng.normal(size=300) > 0).astype(int)
    clf = PooledNeighborsClassifier(random_state=0).fit(X, y)
    scores = clf.member_log_scores_
    assert max(scores, key=scores.get) == "smooth"
    assert max(clf.pool_weights_, key=clf.pool_weights_.get) == "smooth"
