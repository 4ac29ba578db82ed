"""Gower's distance against its twin, on arrays and on frames of pandas and polars."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn.graph import NeighborGraph
from bayesknn.graph.metrics import Gower
from tests.graph import twins

COLOURS = ["red", "green", "blue"]


def gower(rows, points, is_category, weights=None):
    """Gower's distance between lists of values, column by column."""
    weights = [1.0] * len(is_category) if weights is None else weights
    distances = np.zeros((len(rows), len(points)))
    for q, row in enumerate(rows):
        for i, point in enumerate(points):
            total = 0.0
            for f, weight in enumerate(weights):
                if is_category[f]:
                    total += weight * (row[f] != point[f])
                    continue
                column = [other[f] for other in points]
                spread = max(column) - min(column)
                if spread > 0:
                    total += weight * (abs(row[f] - point[f]) / spread)
            distances[q, i] = total / sum(weights)
    return distances


@st.composite
def mixed_rows(draw):
    n = draw(st.integers(3, 15))
    row = st.tuples(
        st.integers(-3, 3).map(lambda v: v * 0.5),
        st.sampled_from(COLOURS),
        st.just(7.0),
        st.booleans(),
        st.floats(-5, 5),
    )
    return draw(st.lists(row, min_size=n, max_size=n))


NAMES = ["size", "colour", "constant", "flag", "weight"]
IS_CATEGORY = [False, True, False, True, False]


def frames(rows):
    columns = dict(zip(NAMES, zip(*rows, strict=True), strict=True))
    plain = pd.DataFrame({name: list(values) for name, values in columns.items()})
    yield plain
    yield plain.astype({"colour": "category"})
    yield plain.astype({"colour": object, "flag": object})
    yield pl.DataFrame({name: list(values) for name, values in columns.items()})
    yield pl.DataFrame({n: list(v) for n, v in columns.items()}).cast({"colour": pl.Categorical})
    yield pl.DataFrame({n: list(v) for n, v in columns.items()}).cast({"colour": pl.Enum(COLOURS)})
    yield [list(row) for row in rows]
    yield np.array([list(row) for row in rows], dtype=object)


@given(mixed_rows(), st.data())
def test_gower_is_its_twin_on_every_kind_of_table(rows, data):
    expected = gower(rows, rows, IS_CATEGORY)
    k = data.draw(st.integers(1, len(rows) - 1))
    neighbors, distances = twins.rank(expected, k, is_self=True)
    for table in frames(rows):
        graph = NeighborGraph.from_points(table, k, metric="gower")
        np.testing.assert_array_equal(graph.neighbors, neighbors)
        np.testing.assert_array_equal(graph.distances, distances)
        np.testing.assert_array_equal(graph.query(table).distances, twins.rank(expected, k)[1])


def test_new_points_are_measured_by_the_training_ranges():
    train = pd.DataFrame({"x": [0.0, 1.0, 10.0], "c": ["a", "b", "a"]})
    new = pd.DataFrame({"x": [20.0, 5.0], "c": ["a", "b"]})
    graph = NeighborGraph.from_points(train, 2, metric="gower")
    rows = [[(2.0 + 0) / 2, (1.9 + 1) / 2, (1.0 + 0) / 2], [(0.5 + 1) / 2, 0.4 / 2, (0.5 + 1) / 2]]
    query = graph.query(new)
    np.testing.assert_allclose(query.distances, np.sort(rows, axis=1)[:, :2].T)
    assert query.neighbors.T.tolist() == [[2, 0], [1, 2]]


def test_a_constant_column_contributes_nothing_even_when_a_new_point_differs():
    graph = NeighborGraph.from_points([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]], 1, metric="gower")
    assert graph.query([[1.0, 99.0]]).distances.tolist() == [[0.0]]


def test_weights_and_numbers_that_are_codes():
    rows = [[0.0, 1.0], [1.0, 2.0], [4.0, 3.0]]
    metric = Gower(categorical=[1], weights=[1.0, 3.0])
    points = metric.fit(rows)
    np.testing.assert_array_equal(
        metric.distances(points, metric.arrange(points)),
        gower(rows, rows, [False, True], [1.0, 3.0]),
    )
    by_name = Gower(categorical=["code"])
    by_name.fit(pd.DataFrame(rows, columns=["x", "code"]))
    assert by_name.is_category_.tolist() == [False, True]


def test_a_category_dtype_of_numbers_is_a_category():
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0], "code": pd.Categorical([3, 1, 3])})
    metric = Gower()
    metric.fit(frame)
    assert metric.is_category_.tolist() == [False, True]


def test_a_declared_category_counts_as_seen():
    dtype = pd.CategoricalDtype(COLOURS)
    train = pd.DataFrame({"c": pd.Series(["red", "green"], dtype=dtype), "x": [0.0, 1.0]})
    new = pd.DataFrame({"c": pd.Series(["blue"], dtype=dtype), "x": [0.0]})
    graph = NeighborGraph.from_points(train, 1, metric="gower")
    assert graph.query(new).distances.tolist() == [[0.5]]
    train = pl.DataFrame({"c": ["red", "green"], "x": [0.0, 1.0]}).cast({"c": pl.Enum(COLOURS)})
    graph = NeighborGraph.from_points(train, 1, metric="gower")
    assert graph.query(pl.DataFrame({"c": ["blue"], "x": [0.0]})).distances.tolist() == [[0.5]]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_an_unseen_category_differs_from_all_others(kind):
    """And the other rows of its batch are as near as without it."""
    train = pd.DataFrame({"colour": ["red", "green", "red"], "x": [0.0, 1.0, 2.0]})
    graph = NeighborGraph.from_points(train, 2, metric="gower")
    message = "column 'colour' holds categories that training did not see in 1 of 2 rows, such as"
    with pytest.warns(UserWarning, match=f"{message} 'pink'"):
        near = graph.query(kind({"colour": ["red", "pink"], "x": [0.0, 1.0]}))
    alone = graph.query(kind({"colour": ["red"], "x": [0.0]}))
    np.testing.assert_array_equal(near.distances[:, 0], alone.distances[:, 0])
    np.testing.assert_allclose(near.distances[:, 1], [0.5, 0.75])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"x": [1.0, 2.0, np.nan], "c": ["a", "b", "a"]}, "NaN in row 2, column 'x'"),
        ({"x": [1.0, 2.0, np.inf], "c": ["a", "b", "a"]}, "inf in row 2, column 'x'"),
        ({"x": [1.0, 2.0, 3.0], "c": ["a", None, "a"]}, "NaN in row 1, column 'c'"),
        ({"x": [1.0, "old", 3.0], "c": ["a", "b", "a"]}, "column 'x' mixes .*'old' in row 1"),
        ({"x": pd.to_datetime(["2020-01-01"] * 3)}, "column 'x' has dtype datetime64"),
    ],
)
def test_bad_tables(table, message):
    with pytest.raises(ValueError, match=message) as raised:
        NeighborGraph.from_points(pd.DataFrame(table), 1, metric="gower")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"categorical": ["colour"]}, "no column 'colour'"),
        ({"categorical": [2]}, "no column 2"),
        ({"weights": [1.0]}, "2 columns need 2 weights"),
        ({"weights": [1.0, -1.0]}, "weight 1 is -1.0"),
        ({"weights": [0.0, 0.0]}, "all weights are 0"),
        ({"ranges": [1.0]}, "metric 'gower' does not take"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        NeighborGraph.from_points([[0.0, 1.0], [1.0, 2.0]], 1, metric="gower", metric_params=params)
