"""The decision region, and the plane it shares with the zone map."""

import numpy as np
import polars as pl
import pytest

from bayesknn import ClassicalKNeighborsClassifier
from bayesknn.datasets import load_glass
from bayesknn.plots import DecisionRegionDisplay
from bayesknn.plots.plane import plane_around


def test_decision_region_holds_the_predictions(ax, ripley):
    clf = ClassicalKNeighborsClassifier(5).fit(ripley.X_train, ripley.y_train)
    display = DecisionRegionDisplay.from_estimator(
        clf, ripley.X_train, ripley.y_train, resolution=12, ax=ax
    )
    for i, j in [(0, 0), (3, 9), (11, 2)]:
        (label,) = clf.predict([[display.x[j], display.y[i]]])
        assert clf.classes_[display.winners[i, j]] == label
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["class 0", "class 1"]
    for g, line in enumerate(ax.lines):
        np.testing.assert_array_equal(line.get_xydata(), ripley.X_train[ripley.y_train == g])


def test_the_grid_covers_the_points_with_a_margin(ripley):
    plane = plane_around(None, ripley.X_train, 20, "a map")
    for axis, column in zip((plane.x, plane.y), ripley.X_train.T, strict=True):
        span = column.max() - column.min()
        np.testing.assert_allclose(
            [axis[0], axis[-1]], [column.min() - 0.05 * span, column.max() + 0.05 * span]
        )


def test_a_feature_with_one_value_still_has_a_grid():
    plane = plane_around(None, [[1.0, 7.0], [2.0, 7.0]], 3, "a map")
    assert plane.y.tolist() == [6.95, 7.0, 7.05]


def test_decision_region_takes_frames_strings_and_more_classes(ax):
    glass = load_glass(as_frame=True)
    X = glass.X_train[["RI", "Mg"]]
    clf = ClassicalKNeighborsClassifier(3).fit(X, glass.y_train)
    display = DecisionRegionDisplay.from_estimator(clf, X, glass.y_train, resolution=20, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("RI", "Mg")
    assert set(np.unique(display.winners)) <= {0, 1, 2, 3}
    again = DecisionRegionDisplay.from_estimator(clf, pl.from_pandas(X), resolution=20, ax=ax)
    np.testing.assert_array_equal(again.winners, display.winners)
    with pytest.raises(ValueError, match="knows its columns as .*pass X as a frame"):
        DecisionRegionDisplay.from_estimator(clf, X.to_numpy(), ax=ax)


def test_decision_region_refuses_what_it_cannot_show(ax):
    clf = ClassicalKNeighborsClassifier(1).fit(np.eye(4)[:, :3], [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"needs two features, X has shape \(4, 3\)"):
        DecisionRegionDisplay.from_estimator(clf, np.eye(4)[:, :3], ax=ax)
    with pytest.raises(ValueError, match="X is empty or not finite"):
        plane_around(clf, np.empty((0, 2)), 5, "a map")
    with pytest.raises(ValueError, match="X is empty or not finite"):
        plane_around(clf, [[0.0, np.nan]], 5, "a map")
    with pytest.raises(ValueError, match="resolution must be at least 2, got 1"):
        plane_around(clf, [[0.0, 1.0]], 1, "a map")
    grid = np.arange(9.0)
    with pytest.raises(ValueError, match="9 classes, but only 8 colours"):
        DecisionRegionDisplay(grid, grid, np.zeros((9, 9), dtype=int), np.arange(9))
    display = DecisionRegionDisplay(grid, grid, np.zeros((9, 9), dtype=int), np.array(["a", "b"]))
    with pytest.raises(ValueError, match="2 points but 1 labels"):
        display.plot(np.zeros((2, 2)), ["a"], ax=ax)
    with pytest.raises(ValueError, match="'c' is a label of no class; the classes are"):
        display.plot(np.zeros((2, 2)), ["a", "c"], ax=ax)
