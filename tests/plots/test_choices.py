"""Tests of the leave-one-out error curve."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from bayesknn import ClassicalKNeighborsClassifier
from bayesknn.plots import LeaveOneOutDisplay


def test_leave_one_out_curve_marks_every_minimum(ax):
    display = LeaveOneOutDisplay(np.array([0.3, 0.1, 0.2, 0.1])).plot(ax=ax)
    assert display.best_k.tolist() == [2, 4]
    curve, dots = ax.lines
    assert curve.get_xdata().tolist() == [1, 2, 3, 4]
    assert curve.get_ydata().tolist() == [0.3, 0.1, 0.2, 0.1]
    assert dots.get_xdata().tolist() == [2, 4]
    assert ax.get_legend().get_texts()[0].get_text() == "minimum 0.100, at 2 values of k"
    assert (display.ax_, display.figure_) == (ax, ax.figure)


def test_leave_one_out_curve_of_a_classical_classifier(ax, ripley):
    clf = ClassicalKNeighborsClassifier()
    with pytest.raises(NotFittedError):
        LeaveOneOutDisplay.from_estimator(clf, ax=ax)
    clf.fit(ripley.X_train, ripley.y_train)
    display = LeaveOneOutDisplay.from_estimator(clf, ax=ax)
    np.testing.assert_array_equal(display.errors, clf.loo_errors_)


def test_leave_one_out_takes_a_series():
    assert LeaveOneOutDisplay(pd.Series([0.2, 0.1])).plot().best_k.tolist() == [2]
