"""Columns in extreme units: the same distances, or an error that names the column."""

import warnings

import numpy as np
import pandas as pd
import pytest

from bayesknn import BayesianKNeighborsClassifier, ClassicalKNeighborsClassifier
from bayesknn.graph import NeighborGraph
from bayesknn.graph.metrics import Mahalanobis

X = np.random.default_rng(0).normal(size=(40, 3))


def measure(metric, points):
    numbers = metric.fit(points)
    return metric.distances(numbers, metric.arrange(numbers))


@pytest.mark.parametrize("units", [2.0**480, 2.0**-480, [1.0, 2.0**480, 2.0**-480]])
def test_mahalanobis_does_not_change_with_units(units):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distances = measure(Mahalanobis(), X * units)
    np.testing.assert_allclose(distances, measure(Mahalanobis(), X), rtol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 2.0**480, 2.0**-480])
def test_mahalanobis_with_a_constant_column_in_extreme_units(unit):
    for constant in (0.0, 0.1, 5e149):
        points = X * unit
        points[:, 1] = constant
        with pytest.warns(UserWarning, match=r"rank 2 of 3\); column 1 is constant"):
            found = measure(Mahalanobis(), points)
        np.testing.assert_allclose(found, measure(Mahalanobis(), X[:, [0, 2]]), rtol=1e-10)


def test_mahalanobis_names_what_overflows():
    metric = Mahalanobis()
    metric.fit(pd.DataFrame(X * 1e-140, columns=["a", "b", "c"]))
    new = np.zeros((2, 3))
    new[1, 2] = 1e300
    with pytest.raises(ValueError, match=r"X has 1e\+300 in row 1, column 'c'.*rescale it"):
        metric.transform(new)
    with pytest.raises(ValueError, match=r"in row 1, column 'whitened \d'.*rescale it"):
        metric.transform(new * 1e-280)
    with pytest.raises(ValueError, match="whose square vanishes"):
        NeighborGraph.from_points(X, 1, "mahalanobis", {"VI": 1e-320 * np.eye(3)})


def test_gower_names_the_column_that_overflows():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [-1e308, 0.0, 1e308]})
    with pytest.raises(ValueError, match=r"X has -1e\+308 in row 0, column 'b'.*rescale"):
        NeighborGraph.from_points(table, 1, "gower")
    with pytest.raises(ValueError, match="weight 0 is 1e"):
        NeighborGraph.from_points(X, 1, "gower", {"weights": [1e308] * 3})


@pytest.mark.parametrize("metric", ["euclidean", "minkowski", "seuclidean", "cosine"])
def test_squares_that_overflow_or_vanish_are_refused(metric):
    with pytest.raises(ValueError, match=r"X has .*e\+19\d in row \d+, column \d, whose square"):
        NeighborGraph.from_points(X * 1e199, 3, metric)
    with pytest.raises(ValueError, match=r"differ by \S+e-200 at most, whose square vanishes"):
        NeighborGraph.from_points(X * 1e-200, 3, metric)


@pytest.mark.parametrize("unit", [1e145, 1e-145])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "gower"])
def test_units_that_are_allowed_give_the_same_neighbours(metric, unit):
    expected = NeighborGraph.from_points(X, 5, metric).neighbors
    found = NeighborGraph.from_points(X * unit, 5, metric).neighbors
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "clf", [BayesianKNeighborsClassifier("pseudo", beta_max=4.0), ClassicalKNeighborsClassifier()]
)
def test_new_points_whose_squares_overflow_are_refused(clf):
    clf.fit(X, np.arange(40) % 2)
    new = np.zeros((2, 3))
    new[1, 2] = -1e200
    with pytest.raises(ValueError, match=r"X has -1e\+200 in row 1, column 2, whose square"):
        clf.predict(new)


def test_other_powers_that_overflow_are_refused():
    with pytest.raises(ValueError, match="gives inf between the points"):
        NeighborGraph.from_points(X * 1e120, 3, "minkowski", {"p": 3})


def test_constant_columns_have_no_units():
    assert NeighborGraph.from_points(np.full((5, 2), 1e-300), 2).n_points == 5
