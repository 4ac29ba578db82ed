"""Bad input gets a one-line error that names the column, row or value, and nothing else happens."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from bayesknn._utils.checks import check_labels, check_points
from bayesknn.graph import NeighborGraph

X = np.arange(12.0).reshape(6, 2) ** 1.5
D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))


def refuses(message, function, *args, error=ValueError, **kwargs):
    with pytest.raises(error, match=message) as raised:
        function(*args, **kwargs)
    assert "\n" not in str(raised.value)


def changed(array, row, column, value):
    array = np.array(array)
    array[row, column] = value
    return array


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (changed(X, 3, 1, np.nan), "X has NaN in row 3, column 1"),
        (changed(X, 2, 0, np.inf), "X has inf in row 2, column 0"),
        (changed(X, 2, 0, -np.inf), "X has -inf in row 2, column 0"),
        (pd.DataFrame(changed(X, 3, 1, np.nan), columns=["a", "b"]), "NaN in row 3, column 'b'"),
        (pl.DataFrame({"a": [1.0, None, 2.0]}), "NaN in row 1, column 'a'"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), "column 'b' holds 'x' in row 0"),
        (pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), "column 'b' holds 'x' in row 0"),
        (pd.DataFrame({"a": [1.0, "old"]}), "column 'a' holds 'old' in row 1"),
        ([[1.0, 2.0], [1.0, "two"]], "column 1 holds 'two' in row 1"),
        (np.array([["1", "2"], ["3", "4"]]), "column 0 holds '1' in row 0"),
        (pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), "NaN in row 1, column 'a'"),
        (pd.DataFrame({"d": pd.to_datetime(["2020-01-01"])}), "column 'd' has dtype datetime64"),
        ([[1.0], [2.0, 3.0]], "rows have different lengths"),
        (X + 1j, "Complex data not supported"),
        (np.array([[1 + 1j]], dtype=object), "Complex data not supported"),
        (np.empty((0, 2)), r"0 sample\(s\)"),
        (np.empty((5, 0)), r"0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of 1 is required."),
        (X[0], "Reshape your data"),
        (sparse.csr_array((10**5, 10**4)), r"8\.0 GB.*sparse_output=False"),
        (np.ma.masked_greater(X, 30.0), "X has a masked value in row 5, column 0"),
        (pl.DataFrame({"a": [1.0, 2.0]}).lazy(), r"X is a LazyFrame; pass X.collect\(\)"),
        ([[10**400]], "column 0 holds a value too large"),
    ],
)
def test_points(points, message):
    for metric in ("euclidean", "mahalanobis", "manhattan"):
        refuses(message, NeighborGraph.from_points, points, 1, metric=metric)


def test_something_that_is_no_number_at_all_is_a_type_error():
    # scikit-learn's estimator checks ask for this type and these words.
    table = X.astype(object)
    table[0, 1] = {"a": 1}
    refuses(
        r"column 1: .*argument must be .* string.* number", check_points, table, error=TypeError
    )


@pytest.mark.parametrize("k_max", [0, -1, 1.5, "3", True, None])
def test_k_max(k_max):
    refuses("k_max must be an integer >= 1", NeighborGraph.from_points, X, k_max)


@pytest.mark.parametrize("metric", ["euclidean", "gower", "manhattan"])
def test_fewer_points_than_neighbours(metric):
    refuses("k_max=6 needs at least 7 points", NeighborGraph.from_points, X, 6, metric=metric)
    refuses("n_samples = 1", NeighborGraph.from_points, X[:1], 1, metric="euclidean")


def test_unknown_names():
    refuses("unknown metric 'euclidian'; known are", NeighborGraph.from_points, X, 1, "euclidian")
    refuses("unknown metric 3", NeighborGraph.from_points, X, 1, 3)
    refuses("search must be one of", NeighborGraph.from_points, X, 1, search="tree")
    refuses("does not take .*'p'", NeighborGraph.from_points, X, 1, "euclidean", {"p": 2})
    refuses("manhattan", NeighborGraph.from_points, X, 1, "manhattan", {"nonsense": 2})
    refuses("minkowski", NeighborGraph.from_points, X, 1, "minkowski", {"p": -1})
    refuses("haversine", NeighborGraph.from_points, np.ones((4, 3)), 1, "haversine")
    for metric in ("gower", "cosine"):
        refuses(
            "does not serve", NeighborGraph.from_points, X, 1, metric=metric, search="ball_tree"
        )
    refuses("has none", NeighborGraph.from_points, D, 1, "precomputed", search="kd_tree")


def test_a_metric_that_gives_no_distance():
    zero = changed(X, 0, slice(None), 0.0)
    refuses("metric 'cosine' gives nan", NeighborGraph.from_points, zero, 1, "cosine")
    refuses("metric '<lambda>' gives -1.0", NeighborGraph.from_points, X, 1, lambda a, b: -1.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"V": np.eye(3)},
            r"metric 'mahalanobis': V has shape \(3, 3\), the points have 2 features",
        ),
        (
            {"V": [[1.0, 0.5], [0.1, 1.0]]},
            r"metric 'mahalanobis': V is not symmetric: 0.5 at \[0, 1\] but 0.1",
        ),
        (
            {"VI": [[1.0, 2.0], [2.0, 1.0]]},
            "metric 'mahalanobis': VI is not positive semi-definite",
        ),
        ({"VI": [[1.0, np.nan], [np.nan, 1.0]]}, r"metric 'mahalanobis': VI has nan at \[0, 1\]"),
        ({"V": "wide"}, "metric 'mahalanobis': V is not a matrix of numbers"),
        ({"V": np.eye(2), "VI": np.eye(2)}, "V or VI, not both"),
    ],
)
def test_mahalanobis_parameters(params, message):
    refuses(message, NeighborGraph.from_points, X, 1, "mahalanobis", params)


def test_mahalanobis_of_equal_points():
    refuses("all points are equal", NeighborGraph.from_points, np.ones((5, 2)), 1, "mahalanobis")


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (D[:5], r"shape \(5, 6\), it must be square"),
        (changed(D, 1, 4, 9.5), r"not symmetric: 9.5 at \[1, 4\] but .* at \[4, 1\]"),
        (changed(D, 1, 4, -0.5), r"metric='precomputed', has a negative entry, -0.5 at \[1, 4\]"),
        (changed(D, 1, 4, np.nan), "NaN in row 1, column 4"),
        (changed(D, 1, 4, np.inf), "inf in row 1, column 4"),
        (changed(D, 2, 2, 3.0), r"3.0 at \[2, 2\].*look like similarities"),
        (sparse.csr_array(changed(D, 1, 4, -0.5)), r"negative entry, -0.5 at \[1, 4\]"),
        (sparse.csr_array(changed(D, 1, 4, np.nan)), r"NaN at \[1, 4\]"),
        (sparse.csr_array(D[:5]), r"shape \(5, 6\), it must be square"),
        (sparse.csr_array(D + 0j), "complex"),
    ],
)
def test_precomputed(matrix, message):
    refuses(message, NeighborGraph.from_points, matrix, 2, "precomputed")


def test_precomputed_rounding_is_forgiven():
    rounded = D * (1 + 1e-13 * np.triu(np.ones_like(D)))
    assert NeighborGraph.from_points(rounded, 2, "precomputed").n_points == 6


def test_sparse_graphs_that_store_too_little():
    full = np.array(D)
    full[4, [0, 1, 2]] = 0.0
    refuses(
        r"row 4 of the sparse graph stores 2 neighbours besides the point itself, k_max=3",
        NeighborGraph.from_points, sparse.csr_array(full), 3, "precomputed",
    )  # fmt: skip
    graph = NeighborGraph.from_points(D, 3, "precomputed")
    new = sparse.csr_array(np.array([[1.0, 2.0, 3.0, 0, 0, 0], [1.0, 2.0, 0, 0, 0, 0]]))
    refuses("row 1 of the sparse graph stores 2 neighbours, k_max=3", graph.query, new)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_a_sparse_graph_that_stores_an_entry_twice(kind):
    rows, columns = (index.ravel() for index in np.indices(D.shape))
    entries = (np.append(D.ravel(), 0.5), np.append(columns, 3), [0, 6, 13, 19, 25, 31, 37])
    # The second 3 belongs to row 1, which ends at entry 13.
    order = np.insert(np.arange(36), 12, 36)
    twice = sparse.csr_array((entries[0][order], entries[1][order], entries[2]), shape=D.shape)
    if kind == "csc":
        twice = twice.tocsc()
    if kind == "coo":
        twice = sparse.coo_array((entries[0], (np.append(rows, 1), entries[1])), shape=D.shape)
    message = r"the sparse graph stores the entry \[1, 3\] twice"
    refuses(message, NeighborGraph.from_points, twice, 2, "precomputed")
    refuses(message, NeighborGraph.from_points(D, 2, "precomputed").query, twice)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr"])
def test_sparse_graphs_of_every_format(kind):
    graph = NeighborGraph.from_points(sparse.csr_array(D).asformat(kind), 5, "precomputed")
    np.testing.assert_array_equal(
        graph.neighbors, NeighborGraph.from_points(D, 5, "precomputed").neighbors
    )


def test_a_graph_of_connections_is_not_one_of_distances():
    with pytest.warns(UserWarning, match="mode='distance'"):
        NeighborGraph.from_points(sparse.csr_array(np.ones((4, 4))), 2, "precomputed")


def test_a_mask_that_hides_nothing_is_no_mask():
    np.testing.assert_array_equal(check_points(np.ma.masked_array(X)), X)
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    for metric in ("euclidean", "gower"):
        graph = NeighborGraph.from_points(frame, 2, metric)
        refuses("X is a LazyFrame", graph.query, frame.lazy())
        refuses("a masked value in row 5", graph.query, np.ma.masked_greater(X, 30.0))


@pytest.mark.parametrize("k", [None, [1], np.nan, np.True_, True, "2", 0, 3, 1.5, np.ones((9, 9))])
def test_k(k):
    graph = NeighborGraph.from_points(X, 2)
    refuses(r"k must be an integer in 1\.\.2 \(k_max of this graph\), got ", graph.check_k, k)
    assert type(graph.check_k(np.uint8(2))) is int


def test_metric_params():
    refuses(r"metric_params must be a dict or None, got \[1\]",
            NeighborGraph.from_points, X, 1, "euclidean", [1])  # fmt: skip
    refuses(r"metric 'mahalanobis' does not take all of metric_params, \['W'\]",
            NeighborGraph.from_points, X, 1, "mahalanobis", {"W": 1})  # fmt: skip
    refuses(r"metric 'dist' does not take metric_params: math\.dist\(\) takes no keyword",
            NeighborGraph.from_points, X, 1, math.dist, {"x": 1}, error=TypeError)  # fmt: skip


def test_queries():
    graph = NeighborGraph.from_points(X, 2)
    refuses("direction must be one of both, forward", graph.query, X, direction="reverse")
    refuses("direction must be one of both, forward", graph.query_chunks, X, direction=None)
    refuses("X has 3 features, but NeighborGraph is expecting 2", graph.query, np.ones((2, 3)))
    refuses(r"0 sample\(s\)", graph.query, np.empty((0, 2)))
    refuses("NaN in row 0, column 1", graph.query, [[0.0, np.nan]])
    refuses("column 1 holds 'a'", graph.query, [[0.0, "a"]])
    refuses("Reshape", graph.query, [0.0, 1.0])
    refuses("chunk_size must be", graph.query_chunks, X, chunk_size=0)
    refuses(r"0 sample\(s\)", graph.query_chunks, np.empty((0, 2)))
    graph = NeighborGraph.from_points(D, 2, "precomputed")
    refuses("X has 5 features, but NeighborGraph is expecting 6", graph.query, D[:, :5])
    refuses(r"0 sample\(s\)", graph.query, np.empty((0, 6)))
    refuses(r"0 sample\(s\)", graph.query, sparse.csr_array((0, 6)))
    refuses("negative entry", graph.query, -D)
    refuses("has no points", NeighborGraph.from_neighbors([[1, 0]]).query, X)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("metric", ["euclidean", "gower"])
def test_column_names(kind, metric):
    graph = NeighborGraph.from_points(kind({"a": X[:, 0], "b": X[:, 1]}), 2, metric)
    one = [1.0]
    refuses("X lacks the column 'a'", graph.query, kind({"c": one, "b": one}))
    wider = kind({"a": one, "b": one, "c": one})
    refuses(r"X has the columns \['a', 'b', 'c'\]; NeighborGraph was built on", graph.query, wider)
    refuses(r"X has the columns \['b', 'a'\]", graph.query, kind({"b": one, "a": one}))
    np.testing.assert_array_equal(
        graph.query(kind({"a": X[:, 0], "b": X[:, 1]})).neighbors, graph.query(X).neighbors
    )


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[1, 2, 2]], "point 2 stands in its own list, at rank 1"),
        ([[1, 0, 0], [1, 2, 1]], "point 0 has the neighbour 1 twice, again at rank 2"),
        ([[1, 0, 3]], "point 2 has the neighbour 3 at rank 1, points are 0..2"),
        ([[1, 0, -1]], "point 2 has the neighbour -1 at rank 1"),
        ([[1.0, 0.0, 0.0]], "neighbors must be integers"),
        ([1, 0], r"shape \(k_max, n\)"),
        ([[1], [0]], "k_max=2 needs at least 3 points"),
    ],
)
def test_given_lists(lists, message):
    refuses(message, NeighborGraph.from_neighbors, lists)


def test_given_distances():
    lists = [[1, 0, 1], [2, 2, 0]]
    one = [[1.0, 1.0, 1.0]]
    message = r"distances must have shape \(2, 3\), got \(1, 3\)"
    refuses(message, NeighborGraph.from_neighbors, lists, one)
    falling = [[1.0, 1.0, 2.0], [2.0, 2.0, 1.0]]
    refuses("point 2 has the distance 1.0 at rank 2", NeighborGraph.from_neighbors, lists, falling)
    negative = [[1.0, -1.0, 2.0], [2.0, 2.0, 3.0]]
    refuses("point 1 has the distance -1.0", NeighborGraph.from_neighbors, lists, negative)


def test_counts():
    graph = NeighborGraph.from_points(X, 2)
    labels = [0, 1, 0, 1, 0, 1]
    for counts in (graph.query(X).counts, lambda *a: graph.counts(*a, 1)):
        refuses("one label for each of the 6 points, got 5", counts, labels[:5], 2)
        refuses("lie in 0..1 .*, got 2 at position 5", counts, [0, 1, 0, 1, 0, 2], 2)
        refuses("lie in 0..1 .*, got -1 at position 0", counts, [-1, 1, 0, 1, 0, 0], 2)
        refuses("be integers, got 0.5 at", counts, np.array(labels) / 2.0, 2)
        refuses("n_classes must be", counts, labels, 0)
    refuses("k must be an integer in 1..2", graph.query(X).counts, labels, 2, [1, 3])
    refuses("k_values is empty", graph.query(X).counts, labels, 2, [])
    refuses("k must be an integer in 1..2", graph.counts, labels, 2, 3)
    refuses("direction must be one of", graph.query(X).counts, labels, 2, None, "back")
    refuses("direction must be one of", graph.counts, labels, 2, 1, "back")
    refuses("k must be", graph.iterate_counts, labels, 2, [0])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "a", "a"], "only one class, 'a'"),
        ([0.0, np.nan, 1.0], "y has NaN in row 1"),
        ([0.0, np.inf, 1.0], "y has inf in row 1"),
        (["a", None, "b"], "y has NaN in row 1"),
        (pd.Series(["a", None, "b"]), "y has NaN in row 1"),
        (pd.Series(pd.array([1, None, 2], dtype="Int64")), "y has NaN in row 1"),
        (pl.Series(["a", None, "b"]), "y has NaN in row 1"),
        ([0.5, 1.0, 1.0], "Unknown label type: continuous; y has 0.5 in row 0"),
        ([1, "a", 1], "y mixes labels of types int, str"),
        ([], "y is empty"),
        (None, "requires y to be passed, but the target y is None"),
        (np.ones((3, 2)), r"y should be a 1d array, got an array of shape \(3, 2\)"),
        ([1j, 1.0, 1.0], "Complex data not supported"),
        (sparse.csr_array(np.ones((3, 1))), "sparse"),
        ("aab", "y is 'aab'; it must hold one label"),
        ([0, [1, 2], 1], r"y has \[1, 2\] in row 1; it must hold one label"),
        (np.array(["2020", "NaT", "2021"], dtype="datetime64[D]"), "y has NaN in row 1"),
        (pd.Series(pd.to_datetime(["2020", None, "2021"])), "y has NaN in row 1"),
        (np.ma.masked_array([0, 1, 1], [False, True, False]), "y is masked in row 1"),
        (pl.DataFrame({"y": [0, 1]}).lazy(), r"y is a LazyFrame; pass y.collect\(\)"),
    ],
)
def test_labels(labels, message):
    refuses(message, check_labels, labels)


def test_mismatched_lengths():
    refuses("X has 6 rows but y has 4 labels", check_labels, [0, 1, 0, 1], 6)


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", "a"],
        [True, False, True, False],
        [2.0, 1.0, 2.0, 1.0],
        np.array(["b", "a", "b", "a"], dtype=object),
        pd.Series(["b", "a", "b", "a"], dtype="category"),
        pl.Series(["b", "a", "b", "a"]),
    ],
)
def test_good_labels(labels):
    classes, numbers = check_labels(labels, 4)
    assert numbers.tolist() == [1, 0, 1, 0]
    assert classes[numbers].tolist() == list(labels)
