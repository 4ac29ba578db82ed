"""No point has a neighbour of its own group, whoever searches."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

from bayesknn import reference
from bayesknn.graph import NeighborGraph
from bayesknn.graph.ties import order_ties


def make_points(n=300, p=3, seed=0):
    """Points with many equal distances, in groups of 1 to about 15."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 6, size=(n, p)).astype(float), rng.integers(0, 40, size=n)


def sort_others(distances, groups, k):
    """Sort the points of other groups by (distance, key), as the slow twin of every search."""
    ranks, lists = order_ties(len(groups)).ranks, []
    for i, row in enumerate(distances):
        order = np.lexsort((ranks, row))
        lists.append(order[groups[order] != groups[i]])
    k_next = [row[some[k]] == row[some[k - 1]] for row, some in zip(distances, lists, strict=True)]
    return np.array([some[:k] for some in lists]).T, np.array(k_next)


def store_all(distances):
    n = len(distances)
    places = np.tile(np.arange(n), n), np.arange(0, n * n + 1, n)
    return csr_array((distances.ravel(), *places), (n, n))


@pytest.mark.parametrize("search", ["auto", "brute", "kd_tree", "ball_tree", "blocked"])
def test_every_exact_search_gives_the_lists_of_a_sort(search):
    X, groups = make_points()
    expected, tied = sort_others(reference.distances(X, X), groups, 60)
    graph = NeighborGraph.from_points(X, 60, search=search, groups=groups)
    assert np.array_equal(graph.neighbors, expected)
    assert np.array_equal(graph.tied_beyond, tied)
    # Without groups there are relatives among the neighbours.
    plain = NeighborGraph.from_points(X, 60, search=search).neighbors
    assert np.any(groups[plain] == groups)


@pytest.mark.parametrize("arrange", [np.asarray, store_all], ids=["dense", "sparse"])
def test_given_distances_are_ranked_without_the_own_group(arrange):
    X, groups = make_points(120)
    distances = reference.distances(X, X)
    expected, tied = sort_others(distances, groups, 30)
    given = {"metric": "precomputed", "groups": groups}
    graph = NeighborGraph.from_points(arrange(distances), 30, **given)
    assert np.array_equal(graph.neighbors, expected)
    assert np.array_equal(graph.tied_beyond, tied)


def test_a_sparse_graph_must_store_neighbors_of_other_groups():
    graph = store_all(np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0))))
    groups = [0, 0, 0, 0, 1, 2]
    assert NeighborGraph.from_points(graph, 2, metric="precomputed", groups=groups).k_max == 2
    short = graph.toarray()
    short[0, 5] = 0
    short = csr_array(short)
    with pytest.raises(ValueError, match="row 0 .* stores 1 neighbours outside its own group"):
        NeighborGraph.from_points(short, 2, metric="precomputed", groups=groups)


def test_new_points_have_no_relatives_and_may_be_neighbors_of_each_other():
    X, groups = make_points(80)
    graph = NeighborGraph.from_points(X, 10, groups=groups)
    new = X[:3] + 0.25
    plain = NeighborGraph.from_points(X, 10)
    assert np.array_equal(graph.query(new).neighbors, plain.query(new).neighbors)
    joint = graph.join(new, 20)
    own = np.append(groups, [100, 101, 102])
    assert np.all(own[joint.neighbors] != own)
    assert np.any(joint.neighbors[:, 80:] >= 80)
    assert np.any(joint.neighbors[:, :80] >= 80)


def test_some_points_keep_their_groups_and_a_saved_graph_too():
    X, groups = make_points(100)
    graph = NeighborGraph.from_points(X, 20, groups=groups)
    rows = np.arange(0, 100, 2)
    expected = NeighborGraph.from_points(X[rows], 10, groups=groups[rows])
    assert np.array_equal(graph.take(rows, 10).neighbors, expected.neighbors)
    saved = pickle.loads(pickle.dumps(graph))
    assert np.array_equal(saved.groups, graph.groups)
    assert np.array_equal(saved.neighbors, graph.neighbors)


def test_groups_of_one_point_are_none():
    X, _ = make_points(60)
    graph = NeighborGraph.from_points(X, 10, groups=[f"row {i}" for i in range(60)])
    assert graph.groups is None
    assert np.array_equal(graph.neighbors, NeighborGraph.from_points(X, 10).neighbors)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 1, 2], "each of the 4 rows"),
        ([1, 1, 1, 1], "one group"),
        (["a", None, "b", "b"], "None in row 1"),
        ([1.0, 1.0, np.nan, 2.0], "nan in row 2"),
        ([1, 1, 1, 2], "k_max=2 is too large: the largest group has 3 of 4 rows"),
    ],
)
def test_impossible_groups_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        NeighborGraph.from_points([[0.0], [1.0], [2.0], [3.0]], 2, groups=groups)
