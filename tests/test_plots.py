"""The Displays: what they compute, and that they draw on the axes they are given."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from bayesknn import ClassicalKNeighborsClassifier
from bayesknn.datasets import load_glass, load_ripley
from bayesknn.plots import DecisionRegionDisplay, LeaveOneOutDisplay
from bayesknn.plots.style import COLOURS, MARKERS


@pytest.fixture
def ax():
    return Figure().subplots()


def test_leave_one_out_curve_marks_every_minimum(ax):
    display = LeaveOneOutDisplay(np.array([0.3, 0.1, 0.2, 0.1])).plot(ax=ax)
    assert display.best_k.tolist() == [2, 4]
    curve, dots = ax.lines
    assert curve.get_xdata().tolist() == [1, 2, 3, 4]
    assert dots.get_xdata().tolist() == [2, 4]
    assert ax.get_legend().get_texts()[0].get_text() == "minimum 0.100, at 2 values of k"
    assert (display.ax_, display.figure_) == (ax, ax.figure)


def test_leave_one_out_curve_of_a_classifier(ax):
    ripley = load_ripley()
    clf = ClassicalKNeighborsClassifier()
    with pytest.raises(NotFittedError):
        LeaveOneOutDisplay.from_estimator(clf, ax=ax)
    clf.fit(ripley.X_train, ripley.y_train)
    display = LeaveOneOutDisplay.from_estimator(clf, ax=ax)
    np.testing.assert_array_equal(display.errors, clf.loo_errors_)


def test_decision_region_holds_the_predictions(ax):
    ripley = load_ripley()
    clf = ClassicalKNeighborsClassifier(5).fit(ripley.X_train, ripley.y_train)
    display = DecisionRegionDisplay.from_estimator(
        clf, ripley.X_train, ripley.y_train, resolution=12, ax=ax
    )
    for i, j in [(0, 0), (3, 9), (11, 2)]:
        (label,) = clf.predict([[display.x[j], display.y[i]]])
        assert clf.classes_[display.winners[i, j]] == label
    assert (display.x[0], display.x[-1]) < (ripley.X_train[:, 0].min(), np.inf)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["class 0", "class 1"]


def test_decision_region_takes_frames_strings_and_more_classes(ax):
    glass = load_glass(as_frame=True)
    X = glass.X_train[["RI", "Mg"]]
    clf = ClassicalKNeighborsClassifier(3).fit(X, glass.y_train)
    display = DecisionRegionDisplay.from_estimator(clf, X, glass.y_train, resolution=20, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("RI", "Mg")
    assert set(np.unique(display.winners)) <= {0, 1, 2, 3}
    with pytest.raises(ValueError, match="knows its columns as .*pass X as a frame"):
        DecisionRegionDisplay.from_estimator(clf, X.to_numpy(), ax=ax)


def test_decision_region_refuses_what_it_cannot_show(ax):
    clf = ClassicalKNeighborsClassifier(1).fit(np.eye(4)[:, :3], [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"needs two features, X has shape \(4, 3\)"):
        DecisionRegionDisplay.from_estimator(clf, np.eye(4)[:, :3], ax=ax)
    grid = np.arange(9.0)
    with pytest.raises(ValueError, match="9 classes, but only 8 colours"):
        DecisionRegionDisplay(grid, grid, np.zeros((9, 9), dtype=int), np.arange(9))


def test_there_is_a_marker_for_every_colour():
    assert len(COLOURS) == len(MARKERS) == len(set(COLOURS)) == len(set(MARKERS))


def test_new_figure_when_no_axes_are_given():
    import matplotlib.pyplot as plt

    display = LeaveOneOutDisplay(pd.Series([0.2, 0.1])).plot()
    plt.close(display.figure_)
