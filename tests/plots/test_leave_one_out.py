"""The leave-one-out error curve."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from bayesknn import BayesianKNeighborsClassifier, ClassicalKNeighborsClassifier
from bayesknn.plots import LeaveOneOutDisplay


def test_leave_one_out_curve_marks_every_minimum(ax):
    display = LeaveOneOutDisplay(np.array([0.3, 0.1, 0.2, 0.1])).plot(ax=ax)
    assert display.best_k.tolist() == [2, 4]
    curve, dots = ax.lines
    assert curve.get_xdata().tolist() == [1, 2, 3, 4]
    assert curve.get_ydata().tolist() == [0.3, 0.1, 0.2, 0.1]
    assert dots.get_xdata().tolist() == [2, 4]
    assert ax.get_legend().get_texts()[0].get_text() == "minimum 0.100, at 2 values of k"
    assert (display.ax_, display.figure_, display.probability_ax_) == (ax, ax.figure, None)


def test_the_posterior_of_k_stands_below_the_curve(ax):
    display = LeaveOneOutDisplay([0.3, 0.1, 0.2], [1, 3], [0.25, 0.75]).plot(ax=ax)
    bars = display.probability_ax_.patches
    assert [bar.get_height() for bar in bars] == [0.25, 0.75]
    assert [bar.get_x() + bar.get_width() / 2 for bar in bars] == pytest.approx([1, 3])
    # In parts of the height of the picture, which both axes share.
    bottom, top = ax.get_ylim()
    lowest = (0.1 - bottom) / (top - bottom)
    assert 0.75 / display.probability_ax_.get_ylim()[1] < lowest
    assert min(ax.get_yticks()) >= 0


def test_leave_one_out_curve_of_a_classical_classifier(ax, ripley):
    clf = ClassicalKNeighborsClassifier()
    with pytest.raises(NotFittedError):
        LeaveOneOutDisplay.from_estimator(clf, ax=ax)
    clf.fit(ripley.X_train, ripley.y_train)
    display = LeaveOneOutDisplay.from_estimator(clf, ax=ax)
    np.testing.assert_array_equal(display.errors, clf.loo_errors_)


def test_leave_one_out_curve_of_a_bayesian_classifier(ax, ripley, clf):
    with pytest.raises(NotFittedError):
        LeaveOneOutDisplay.from_estimator(BayesianKNeighborsClassifier(), ax=ax)
    display = LeaveOneOutDisplay.from_estimator(clf, ax=ax)
    classical = ClassicalKNeighborsClassifier().fit(ripley.X_train, ripley.y_train)
    np.testing.assert_array_equal(display.errors, classical.loo_errors_)
    heights = [bar.get_height() for bar in display.probability_ax_.patches]
    np.testing.assert_array_equal(heights, clf.k_probabilities_)


def test_leave_one_out_takes_a_series_and_refuses_nonsense():
    assert LeaveOneOutDisplay(pd.Series([0.2, 0.1])).plot().best_k.tolist() == [2]
    with pytest.raises(ValueError, match=r"one rate for each k, got shape \(0,\)"):
        LeaveOneOutDisplay([])
    with pytest.raises(ValueError, match="must be equally long"):
        LeaveOneOutDisplay([0.1, 0.2], [1, 2], [1.0])
    with pytest.raises(ValueError, match="must be equally long"):
        LeaveOneOutDisplay([0.1, 0.2], [1, 2])
