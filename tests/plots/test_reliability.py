"""Tests of the reliability diagram."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.exceptions import NotFittedError

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.plots import ReliabilityDisplay


def draw_predictions(n_classes, m=300):
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet(np.ones(n_classes), m)
    return np.array([rng.choice(n_classes, p=row) for row in probabilities]), probabilities


def test_two_classes_agree_with_scikit_learn():
    y, probabilities = draw_predictions(2)
    display = ReliabilityDisplay.from_predictions(y, probabilities)
    observed, predicted = calibration_curve(y, probabilities[:, 1], n_bins=10)
    np.testing.assert_allclose(display.observed, observed)
    np.testing.assert_allclose(display.predicted, predicted)
    assert display.counts.sum() == len(y)
    assert display.name == "class 1"


def test_intervals_are_the_exact_binomial_ones():
    y, probabilities = draw_predictions(2)
    display = ReliabilityDisplay.from_predictions(y, probabilities, edges=7, level=0.9)
    for at, n in enumerate(display.counts):
        test = binomtest(round(display.observed[at] * n), n)
        interval = test.proportion_ci(0.9, method="exact")
        np.testing.assert_allclose([display.lower[at], display.upper[at]], interval)


def test_the_ends_of_the_intervals_at_none_and_all():
    display = ReliabilityDisplay([0, 0.5, 1], [0.2, 0.8], [0.0, 1.0], [5, 5], "a")
    assert (display.lower[0], display.upper[1]) == (0.0, 1.0)
    assert 0 < display.upper[0] < 1 and 0 < display.lower[1] < 1


def test_what_is_drawn_is_what_was_computed():
    axes = Figure().subplots(2, 1)
    display = ReliabilityDisplay(
        [0, 0.5, 0.7, 1], [0.2, np.nan, 0.8], [0.25, np.nan, 1.0], [8, 0, 4], "a"
    ).plot(axes=axes)
    assert display.axes_.tolist() == axes.tolist()
    _identity, curve = axes[0].lines
    np.testing.assert_array_equal(curve.get_xydata(), [[0.2, 0.25], [0.8, 1.0]])
    bars = axes[0].collections[0].get_segments()
    np.testing.assert_allclose(bars[0][:, 1], [display.lower[0], display.upper[0]])
    steps = axes[1].patches[-1].get_data()
    assert steps.values.tolist() == [8, 0, 4] and steps.edges.tolist() == [0, 0.5, 0.7, 1]


def test_of_more_classes_the_top_one():
    y, probabilities = draw_predictions(3)
    top = ReliabilityDisplay.from_predictions(y, probabilities, edges=[0, 0.6, 1.0])
    assert top.name == "most probable class"
    sure = probabilities.max(axis=1) >= 0.6
    hits = probabilities.argmax(axis=1) == y
    np.testing.assert_allclose(top.observed, [hits[~sure].mean(), hits[sure].mean()])


def test_probabilities_of_zero_and_one_are_in_the_outer_bins():
    display = ReliabilityDisplay.from_predictions([0, 1], [[1.0, 0.0], [0.0, 1.0]], edges=4)
    assert display.counts.tolist() == [1, 0, 0, 1]
    assert np.isnan(display.observed[1])


def test_a_classifier_on_test_points_and_by_leave_one_out(clf, ripley):
    display = ReliabilityDisplay.from_estimator(clf, ripley.X_test, ripley.y_test, edges=5)
    second = clf.predict_proba(ripley.X_test)[:, 1]
    assert display.counts.tolist() == np.histogram(second, np.linspace(0, 1, 6))[0].tolist()
    display = ReliabilityDisplay.from_leave_one_out(clf, ripley.y_train, kind="top")
    assert display.counts.sum() == len(ripley.y_train)
    hits = clf.classes_[clf.loo_proba_.argmax(axis=1)] == ripley.y_train
    assert np.nansum(display.observed * display.counts) == pytest.approx(hits.sum())


def test_bad_input_raises(clf, ripley):
    y, probabilities = [0, 1], np.full((2, 2), 0.5)
    draw = ReliabilityDisplay.from_predictions
    with pytest.raises(NotFittedError):
        ReliabilityDisplay.from_leave_one_out(BayesianKNeighborsClassifier(), y)
    with pytest.raises(ValueError, match=r"must have shape \(10, 2\), .*got \(250, 2\)"):
        ReliabilityDisplay.from_leave_one_out(clf, ripley.y_train[:10])
    with pytest.raises(ValueError, match="kind must be one of auto, top, got 'all'"):
        draw(y, probabilities, kind="all")
    with pytest.raises(ValueError, match="2 is not one of the classes"):
        draw([0, 2], probabilities, [0, 1])
    with pytest.raises(ValueError, match="at least one point"):
        draw([], np.empty((0, 2)), [0, 1])
    with pytest.raises(ValueError, match="edges must be an integer >= 1, got 0"):
        draw(y, probabilities, edges=0)
    with pytest.raises(ValueError, match="must increase monotonically"):
        draw(y, probabilities, edges=[0, 1, 0.5])
    with pytest.raises(ValueError, match="from 0.5 to 0.5 do not lie in the bins, .*from 0.6 to 1"):
        draw(y, probabilities, edges=[0.6, 1])
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 95"):
        draw(y, probabilities, level=95)
