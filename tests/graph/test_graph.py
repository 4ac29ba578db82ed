"""The graph itself: prefixes, incidence, counts, copies, order in memory."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesknn import reference
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from tests.graph import twins


def random_graph(seed=0, n=90, k_max=12):
    return NeighborGraph.from_points(np.random.default_rng(seed).normal(size=(n, 2)), k_max)


def test_the_graph_of_a_smaller_k_is_a_prefix():
    points = np.random.default_rng(0).integers(0, 6, size=(90, 2)).astype(float)
    large = NeighborGraph.from_points(points, 20)
    for k in (1, 7, 19):
        small = NeighborGraph.from_points(points, k)
        np.testing.assert_array_equal(small.neighbors, large.neighbors[:k])
        np.testing.assert_array_equal(small.distances, large.distances[:k])


def test_layout():
    graph = random_graph()
    assert graph.neighbors.dtype == np.uint32 and graph.neighbors.flags.c_contiguous
    assert graph.distances.dtype == np.float64 and graph.distances.flags.c_contiguous
    assert not graph.neighbors.flags.writeable and not graph.distances.flags.writeable
    assert (graph.n_points, graph.k_max) == (90, 12)
    assert repr(graph) == "NeighborGraph(n_points=90, k_max=12)"


def test_incidence_of_every_k():
    graph = random_graph()
    starts, points, in_degree = graph.incidence
    for k in range(1, 13):
        edges = [[] for _ in range(90)]
        for i in range(90):
            for j in graph.neighbors[:k, i].tolist():
                edges[i].append(j)
                edges[j].append(i)
        for i in range(90):
            found = points[starts[i] : starts[i] + k + in_degree[k - 1, i]]
            assert sorted(found.tolist()) == sorted(edges[i])


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_training_counts_against_the_twin(seed, n_classes):
    graph = random_graph(seed, n=30, k_max=8)
    labels = np.random.default_rng(seed).integers(0, n_classes, size=30)
    walks = {
        direction: graph.iterate_counts(labels, n_classes, direction=direction)
        for direction in ("both", "forward", "reverse")
    }
    for k in range(1, 9):
        A = reference.adjacency(graph.neighbors.T.astype(int), k)
        forward, backward = (reference.count_classes(B, labels, n_classes) for B in (A, A.T))
        expected = {"both": forward + backward, "forward": forward, "reverse": backward}
        for direction, walk in walks.items():
            reached, counts = next(walk)
            assert reached == k
            np.testing.assert_array_equal(counts, expected[direction])
            np.testing.assert_array_equal(
                graph.counts(labels, n_classes, k, direction), expected[direction]
            )


def test_counts_of_chosen_k_rise():
    graph = random_graph()
    labels = np.arange(90) % 3
    found = {k: counts.copy() for k, counts in graph.iterate_counts(labels, 3, [9, 2])}
    assert list(found) == [2, 9]
    np.testing.assert_array_equal(found[9], graph.counts(labels, 3, 9))


@pytest.mark.parametrize(
    "metric", ["euclidean", "mahalanobis", "gower", "manhattan", "precomputed"]
)
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_answer_the_same(metric, duplicate):
    points = np.random.default_rng(6).normal(size=(70, 2))
    new = np.random.default_rng(7).normal(size=(5, 2))
    if metric == "precomputed":
        points, new = reference.distances(points, points), reference.distances(new, points)
    graph = NeighborGraph.from_points(points, 9, metric)
    before = graph.query(new)
    _ = graph.incidence
    other = duplicate(graph)
    after = other.query(new)
    np.testing.assert_array_equal(other.neighbors, graph.neighbors)
    assert not other.neighbors.flags.writeable
    assert "incidence" not in vars(other) or duplicate is copy.copy
    for name in ("neighbors", "distances", "reverse_starts", "reverse_points", "reverse_ranks"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


def test_the_callers_array_is_not_touched():
    points = np.random.default_rng(0).normal(size=(30, 2))
    kept = points.copy()
    graph = NeighborGraph.from_points(points, 3, search="brute")
    assert points.flags.writeable
    np.testing.assert_array_equal(points, kept)
    lists = np.array([[1, 2, 0]], dtype=np.uint32)
    NeighborGraph.from_neighbors(lists)
    assert lists.flags.writeable
    points[:] = 0.0
    np.testing.assert_array_equal(graph.query(kept).neighbors[0], np.arange(30))


def test_given_lists_serve_everything_but_queries():
    graph = random_graph()
    given_graph = NeighborGraph.from_neighbors(graph.neighbors, graph.distances)
    np.testing.assert_array_equal(given_graph.neighbors, graph.neighbors)
    np.testing.assert_array_equal(given_graph.incidence.points, graph.incidence.points)
    labels = np.arange(90) % 2
    np.testing.assert_array_equal(given_graph.counts(labels, 2, 5), graph.counts(labels, 2, 5))
    assert given_graph.metric is None


def test_ripley_neighbours_are_those_of_scikit_learn():
    from sklearn.neighbors import NearestNeighbors

    data = load_ripley()
    graph = NeighborGraph.from_points(data.X_train, 125)
    distances = (
        NearestNeighbors(n_neighbors=125, algorithm="kd_tree").fit(data.X_train).kneighbors()[0]
    )
    np.testing.assert_allclose(graph.distances.T, distances, rtol=1e-12)
    expected = twins.rank(reference.distances(data.X_train, data.X_train), 125, is_self=True)[0]
    np.testing.assert_array_equal(graph.neighbors, expected)


def test_single_precision_only_leaves_out_who_is_too_far():
    """Distances that single precision cannot tell apart, far from the centre of all points."""
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(400, 5)) * 1e-7 + 1.0, rng.normal(size=(200, 5))])
    neighbors, distances = twins.rank(reference.distances(points, points), 20, is_self=True)
    graph = NeighborGraph.from_points(points, 20, search="kd_tree")
    np.testing.assert_array_equal(graph.neighbors, neighbors)
    np.testing.assert_array_equal(graph.distances, distances)
    single = points.astype(np.float32).astype(float)
    assert np.any(twins.rank(reference.distances(single, single), 20, is_self=True)[0] != neighbors)


@pytest.mark.parametrize("search", ["kd_tree", "blocked", "brute", "ball_tree"])
def test_progress_adds_up_to_the_number_of_points(search):
    points = np.random.default_rng(0).normal(size=(700, 3))
    done = []
    index = NeighborGraph.from_points(points, 5, search=search).index
    index.neighbors(5, advance=done.append)
    assert sum(done) == 700
