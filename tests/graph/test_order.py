"""Order, ties and duplicates are the same for every search structure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.neighbors import KNeighborsTransformer

from bayesknn import reference
from bayesknn.graph import NeighborGraph
from tests.graph import twins

SEARCHES = ("auto", "brute", "kd_tree", "ball_tree")


@st.composite
def tied_points(draw, max_points=30):
    """Small-integer grids with duplicated points: most distances are tied."""
    n = draw(st.integers(2, max_points))
    p = draw(st.integers(1, 6))
    side = draw(st.integers(1, 3))
    points = draw(arrays(np.float64, (n, p), elements=st.integers(0, side).map(float)))
    # Steps that are not exact in binary make ties that hold only in the last bit.
    return points * draw(st.sampled_from([1.0, 0.1, 1e-3, 1e149, 1e-150]))


def assert_same(graph, points, k):
    matrix = reference.distances(points, points)
    neighbors, distances = twins.rank(matrix, k, is_self=True)
    np.testing.assert_array_equal(graph.neighbors, neighbors)
    np.testing.assert_array_equal(graph.distances, distances)


@given(tied_points(), st.data())
def test_every_structure_sorts_by_distance_and_key(points, data):
    k = data.draw(st.integers(1, len(points) - 1))
    for search in SEARCHES:
        graph = NeighborGraph.from_points(points, k, search=search)
        assert_same(graph, points, k)
    matrix = reference.distances(points, points)
    graph = NeighborGraph.from_points(matrix, k, metric="precomputed")
    assert_same(graph, points, k)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(65, 400), st.integers(1, 9), st.booleans())
def test_many_leaves(seed, n, p, is_tied):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, size=(n, p)) * 0.1 if is_tied else rng.normal(size=(n, p))
    k = int(rng.integers(1, n))
    for search in ("kd_tree", "brute"):
        assert_same(NeighborGraph.from_points(points, k, search=search), points, k)
    k = min(k, 40)
    assert_same(NeighborGraph.from_points(points, k, search="ball_tree"), points, k)


def test_two_squares_with_one_root():
    # On a circle the squared distances to the centre differ in the last bit, their roots do not.
    angles = np.linspace(0.0, 2 * np.pi, 700)
    points = np.vstack([[0.0, 0.0], np.column_stack([np.cos(angles), np.sin(angles)])])
    for k in (5, 50, 400):
        for search in SEARCHES:
            assert_same(NeighborGraph.from_points(points, k, search=search), points, k)
    # Ordered by the squares, a named mutant.
    squares = sum((column[:, None] - column) ** 2 for column in points.T)
    mutant = twins.rank(squares, 50, is_self=True)[0]
    assert np.any(mutant != twins.rank(reference.distances(points, points), 50, is_self=True)[0])


def test_a_shuffled_lattice_ties_across_boxes():
    # Four neighbours at distance 1, many of them just across the edge of another box.
    side = np.arange(45.0)
    lattice = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    points = np.random.default_rng(0).permutation(lattice)
    for k in (1, 2, 6):
        assert_same(NeighborGraph.from_points(points, k), points, k)


def test_all_points_equal():
    points = np.zeros((300, 3))
    graph = NeighborGraph.from_points(points, 4)
    assert_same(graph, points, 4)
    first = sorted(range(300), key=reference.key)[:5]
    assert graph.neighbors[:, first[0]].tolist() == first[1:]
    assert graph.neighbors[:, first[4]].tolist() == first[:4]


@pytest.mark.parametrize("search", ["kd_tree", "brute"])
def test_threads_do_not_change_the_lists(search):
    rng = np.random.default_rng(5)
    points = rng.integers(0, 12, size=(2500, 3)).astype(float)
    one = NeighborGraph.from_points(points, 30, search=search, n_jobs=1)
    two = NeighborGraph.from_points(points, 30, search=search, n_jobs=2)
    np.testing.assert_array_equal(one.neighbors, two.neighbors)
    np.testing.assert_array_equal(one.distances, two.distances)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "canberra", "hamming"])
def test_trees_of_scikit_learn_agree_with_brute_force(metric):
    rng = np.random.default_rng(11)
    points = rng.integers(0, 4, size=(200, 3)) * 0.1
    brute = NeighborGraph.from_points(points, 20, metric=metric, search="brute")
    searches = ["ball_tree", "kd_tree"] if metric in ("manhattan", "chebyshev") else ["ball_tree"]
    for search in searches:
        graph = NeighborGraph.from_points(points, 20, metric=metric, search=search)
        np.testing.assert_array_equal(graph.neighbors, brute.neighbors)
        np.testing.assert_array_equal(graph.distances, brute.distances)


@pytest.mark.parametrize("seed", range(4))
def test_sparse_graphs_from_scikit_learn_equal_dense(seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 5, size=(80, 2)).astype(float)
    # All neighbours are stored, so no tie is settled by scikit-learn; duplicates are stored zeros.
    transformer = KNeighborsTransformer(mode="distance", n_neighbors=79, algorithm="kd_tree")
    stored = transformer.fit_transform(points)
    assert (stored.data == 0).sum() > 80
    sparse = NeighborGraph.from_points(stored, 60, metric="precomputed")
    assert_same(sparse, points, 60)
    without_self = transformer.kneighbors_graph(mode="distance")
    assert_same(NeighborGraph.from_points(without_self, 60, metric="precomputed"), points, 60)
    np.testing.assert_array_equal(sparse.neighbors, NeighborGraph.from_points(points, 60).neighbors)
