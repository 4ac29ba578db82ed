"""Tests of the maps of decision regions and zones."""

import numpy as np
import polars as pl
import pytest
from matplotlib.contour import QuadContourSet
from sklearn.exceptions import NotFittedError

from bayesknn import BayesianKNeighborsClassifier, ClassicalKNeighborsClassifier
from bayesknn.datasets import load_glass
from bayesknn.plots import DecisionRegionDisplay, ZoneMapDisplay


def ramp(n_classes=2):
    """Return a map in which P(second class) is x, with uncertainty for x within 0.1 of 0.5."""
    x = np.linspace(0, 1, 50)
    second = np.tile(x, (40, 1))
    zones = np.where(abs(second - 0.5) < 0.1, -1, second > 0.5)
    probabilities = np.zeros((40, 50, n_classes))
    probabilities[..., 0], probabilities[..., 1] = 1 - second, second
    return ZoneMapDisplay(x, np.linspace(0, 1, 40), probabilities, zones, list("abc")[:n_classes])


def contour_sets(ax):
    return [each for each in ax.collections if isinstance(each, QuadContourSet)]


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_level_sets_of_two_classes_are_where_the_probability_has_them(ax):
    ramp().plot(kind="levels", levels=[0.25, 0.5], ax=ax)
    (lines,) = contour_sets(ax)
    assert lines.levels.tolist() == [0.25, 0.5]
    for level, path in zip(lines.levels, lines.get_paths(), strict=True):
        np.testing.assert_allclose(path.vertices[:, 0], level)
    assert legend_of(ax) == ["class a", "class b", "P(class b)"]


def test_upright_labels_of_level_sets_run_up_the_page(ax):
    ramp().plot(kind="levels", ax=ax)
    labels = [text for text in ax.texts if text.get_text()]
    assert sorted(text.get_text() for text in labels) == ["0.1", "0.25", "0.5", "0.75", "0.9"]
    np.testing.assert_allclose([text.get_rotation() for text in labels], 90)


def test_the_zone_of_uncertainty_is_hatched_where_it_is(ax):
    display = ramp().plot(kind="zones", ax=ax)
    (areas,) = contour_sets(ax)
    assert areas.hatches == ["////"]
    x = np.concatenate([path.vertices[:, 0] for path in areas.get_paths()])
    assert 0.38 < x.min() < 0.42 and 0.58 < x.max() < 0.62
    assert display.uncertain_share == pytest.approx(0.2)
    assert legend_of(ax) == ["class a", "class b", "uncertain"]


def test_shades_are_darker_where_the_probability_is_higher(ax):
    ramp().plot(ax=ax)
    (image,) = ax.images
    lightness = np.asarray(image.get_array()).mean(axis=2)[0]
    assert np.all(np.diff(lightness[:24]) > 0) and np.all(np.diff(lightness[26:]) < 0)
    assert len(contour_sets(ax)) == 2


def test_a_map_without_uncertainty_has_no_hatching_and_no_level(ax):
    probabilities = np.zeros((5, 5, 2))
    probabilities[..., 0] = 1.0
    x = np.arange(5.0)
    display = ZoneMapDisplay(x, x, probabilities, np.zeros((5, 5)), ["a", "b"]).plot(ax=ax)
    assert display.uncertain_share == 0 and not contour_sets(ax)


def test_more_classes_have_borders_and_levels_of_the_highest_probability(ax):
    ramp(3).plot(kind="levels", levels=[0.7], ax=ax)
    *borders, levels = contour_sets(ax)
    assert len(borders) == 2
    x = np.unique(levels.get_paths()[0].vertices[:, 0].round(3))
    assert np.allclose(x, [0.3, 0.7], atol=0.002)
    assert legend_of(ax)[-1] == "highest probability"


def test_the_map_of_a_classifier_is_its_predictions(ax, clf, ripley):
    display = ZoneMapDisplay.from_estimator(
        clf, ripley.X_train, ripley.y_train, resolution=30, ax=ax
    )
    rows = [(0, 0), (12, 17), (15, 15), (29, 3)]
    points = np.array([[display.x[j], display.y[i]] for i, j in rows])
    np.testing.assert_allclose(
        [display.probabilities[at] for at in rows], clf.predict_proba(points)
    )
    names = np.array([*clf.classes_, "undecided"], dtype=object)
    assert [names[display.zones[at]] for at in rows] == clf.predict_zone(points).tolist()
    assert 0 < display.uncertain_share < 0.3
    assert legend_of(ax) == ["class 0", "class 1", "uncertain", "P(class 1)"]
    wide = ZoneMapDisplay.from_estimator(clf, ripley.X_train, level=0.5, resolution=30)
    assert wide.uncertain_share < display.uncertain_share


def test_the_map_of_four_classes_in_a_frame(ax):
    glass = load_glass(as_frame=True)
    X = glass.X_train[["RI", "Mg"]]
    clf = BayesianKNeighborsClassifier("pseudo", beta_max=4.0, n_draws=100, random_state=0)
    clf.fit(X, glass.y_train)
    display = ZoneMapDisplay.from_estimator(clf, X, glass.y_train, resolution=25, ax=ax)
    assert display.probabilities.shape == (25, 25, 4)
    np.testing.assert_allclose(display.probabilities.sum(axis=2), 1)
    winners = display.probabilities.argmax(axis=2)
    is_decided = display.zones >= 0
    np.testing.assert_array_equal(display.zones[is_decided], winners[is_decided])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("RI", "Mg")


def test_bad_input_raises(ax, clf):
    with pytest.raises(NotFittedError):
        ZoneMapDisplay.from_estimator(BayesianKNeighborsClassifier(), np.eye(2), ax=ax)
    with pytest.raises(
        ValueError, match=r"a zone map needs X with two columns, got shape \(4, 3\)"
    ):
        ZoneMapDisplay.from_estimator(clf, np.eye(4)[:, :3], ax=ax)
    with pytest.raises(ValueError, match="kind must be one of both, levels, zones, got 'map'"):
        ramp().plot(kind="map", ax=ax)


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
    clf = ClassicalKNeighborsClassifier(1).fit(ripley.X_train, ripley.y_train)
    display = DecisionRegionDisplay.from_estimator(clf, ripley.X_train, resolution=20)
    for axis, column in zip((display.x, display.y), ripley.X_train.T, strict=True):
        span = column.max() - column.min()
        np.testing.assert_allclose(
            [axis[0], axis[-1]], [column.min() - 0.05 * span, column.max() + 0.05 * span]
        )


def test_a_feature_with_one_value_still_has_a_grid():
    X = [[1.0, 7.0], [2.0, 7.0], [3.0, 7.0], [4.0, 7.0]]
    clf = ClassicalKNeighborsClassifier(1).fit(X, [0, 0, 1, 1])
    display = DecisionRegionDisplay.from_estimator(clf, X, resolution=3)
    assert display.y.tolist() == [6.95, 7.0, 7.05]


def test_decision_region_takes_frames_strings_and_more_classes(ax):
    glass = load_glass(as_frame=True)
    X = glass.X_train[["RI", "Mg"]]
    clf = ClassicalKNeighborsClassifier(3).fit(X, glass.y_train)
    display = DecisionRegionDisplay.from_estimator(clf, X, glass.y_train, resolution=20, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("RI", "Mg")
    assert set(np.unique(display.winners)) <= {0, 1, 2, 3}
    again = DecisionRegionDisplay.from_estimator(clf, pl.from_pandas(X), resolution=20, ax=ax)
    np.testing.assert_array_equal(again.winners, display.winners)
    with pytest.raises(ValueError, match="fitted to the columns .*pass a frame"):
        DecisionRegionDisplay.from_estimator(clf, X.to_numpy(), ax=ax)


def test_decision_region_of_bad_input_raises(ax):
    clf = ClassicalKNeighborsClassifier(1).fit(np.eye(4)[:, :3], [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"needs X with two columns, got shape \(4, 3\)"):
        DecisionRegionDisplay.from_estimator(clf, np.eye(4)[:, :3], ax=ax)
    for X in (np.empty((0, 2)), [[0.0, np.nan]]):
        with pytest.raises(ValueError, match="X is empty or not finite"):
            DecisionRegionDisplay.from_estimator(clf, X, ax=ax)
    with pytest.raises(ValueError, match="resolution must be an integer >= 2, got 1"):
        DecisionRegionDisplay.from_estimator(clf, [[0.0, 1.0]], resolution=1, ax=ax)
    grid = np.arange(9.0)
    with pytest.raises(ValueError, match="at most 8 classes, got 9"):
        DecisionRegionDisplay(grid, grid, np.zeros((9, 9), dtype=int), np.arange(9))
    display = DecisionRegionDisplay(grid, grid, np.zeros((9, 9), dtype=int), np.array(["a", "b"]))
    with pytest.raises(ValueError, match="each point needs one label, got 2 and 1"):
        display.plot(np.zeros((2, 2)), ["a"], ax=ax)
    with pytest.raises(ValueError, match="'c' is not one of the classes, which are"):
        display.plot(np.zeros((2, 2)), ["a", "c"], ax=ax)
