"""Counts around new points without lists: those of the twin, and those of the lists."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bayesknn.graph import NeighborGraph
from bayesknn.graph.queries import NeighborCounter
from tests.graph import twins
from tests.graph.test_query import training_and_new


@settings(max_examples=150, deadline=None)
@given(training_and_new(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_counts_against_the_twin(data, n_classes, seed):
    points, new, k_max = data
    training, rows = twins.euclidean(points, points), twins.euclidean(new, points)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, size=len(points))
    ks = rng.integers(1, k_max + 1, size=int(rng.integers(1, 6)))
    expected = [twins.query_counts(training, rows, labels, n_classes, k, k_max) for k in ks]
    dense = NeighborGraph.from_points(training, k_max, metric="precomputed")
    asked = [
        (NeighborGraph.from_points(points, k_max, search="kd_tree"), new),
        (NeighborGraph.from_points(points, k_max, search="brute"), new),
        (dense, rows),
    ]
    for graph, X in asked:
        both = NeighborCounter(graph, labels, n_classes, ks).count(X)
        np.testing.assert_array_equal(both, [forward + back for forward, back in expected])
        alone = NeighborCounter(graph, labels, n_classes, ks, "forward").count(X)
        np.testing.assert_array_equal(alone, [forward for forward, _ in expected])


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(65, 400),
    st.integers(1, 150),
    st.sampled_from(["normal", "tied", "scattered", "circle"]),
)
def test_many_leaves_against_the_lists(seed, n, m, kind):
    rng = np.random.default_rng(seed)
    p, k_max = int(rng.integers(1, 11)), int(rng.integers(1, min(n, 130)))
    draw = rng.standard_cauchy if kind == "scattered" else rng.normal
    points, new = draw(size=(n, p)), 2 * draw(size=(m, p))
    if kind == "tied":
        points, new = np.round(points), np.round(new)
    if kind == "circle":
        # Squares that differ in the last bit and share one root.
        angles = rng.uniform(0, 2 * np.pi, size=n)
        points = np.column_stack([np.cos(angles), np.sin(angles)])
        new = np.vstack([np.zeros((1, 2)), points[:m]])
    n_classes = int(rng.integers(1, 30))
    labels = rng.integers(0, n_classes, size=n)
    graph = NeighborGraph.from_points(points, k_max)
    query = graph.query(new)
    for ks in (None, [k_max], np.unique(rng.integers(1, k_max + 1, size=5))):
        for direction in ("both", "forward"):
            counter = NeighborCounter(graph, labels, n_classes, ks, direction)
            np.testing.assert_array_equal(
                counter.count(new), query.counts(labels, n_classes, ks, direction)
            )


def test_a_hub_is_reached_by_everybody():
    angles = np.arange(300) * (2 * np.pi / 300)
    points = 50.0 * np.column_stack([np.cos(angles), np.sin(angles)])
    labels = np.arange(300) % 3
    graph = NeighborGraph.from_points(points, 120)
    found = NeighborCounter(graph, labels, 3, [120]).count([[0.0, 0.0]])
    assert found.sum() == 120 + 300


def test_at_equal_distance_the_training_point_keeps_its_place():
    graph = NeighborGraph.from_points([[0.0], [1.0], [10.0]], 1)
    assert NeighborCounter(graph, [0, 1, 1], 2).count([[-1.0]]).tolist() == [[[1, 0]]]
    assert NeighborCounter(graph, [0, 1, 1], 2).count([[-0.5]]).tolist() == [[[2, 0]]]


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis", "manhattan"])
@pytest.mark.parametrize("direction", ["both", "forward"])
def test_chunks_and_threads_do_not_change_the_counts(metric, direction):
    rng = np.random.default_rng(3)
    points, new = rng.normal(size=(300, 3)), rng.normal(size=(1500, 3))
    labels = rng.integers(0, 4, size=300)
    graph = NeighborGraph.from_points(points, 12, metric=metric)
    rank = 7
    counter = NeighborCounter(graph, labels, 4, [2, 12, 5], direction, rank)
    whole = counter.count(new)
    np.testing.assert_array_equal(counter.count(new, n_jobs=2), whole)
    for n_jobs, size in ((1, 7), (2, 1100)):
        parts = list(counter.count_chunks(new, size, n_jobs))
        assert parts[0][0] == slice(0, size)
        np.testing.assert_array_equal(np.concatenate([part[1] for part in parts], 1), whole)
        distances = np.concatenate([part[2] for part in parts])
        np.testing.assert_array_equal(distances, graph.query(new).distances[rank - 1])


def test_sparse_distances_count_what_is_stored():
    rng = np.random.default_rng(2)
    points, new = rng.normal(size=(60, 2)), rng.normal(size=(10, 2))
    training, rows = twins.euclidean(points, points), twins.euclidean(new, points)
    labels = rng.integers(0, 2, size=60)
    graph = NeighborGraph.from_points(training, 15, metric="precomputed")
    counter = NeighborCounter(graph, labels, 2)
    np.testing.assert_array_equal(counter.count(sparse.csr_array(rows)), counter.count(rows))


def test_only_the_wanted_distances_are_kept_and_none_for_forward_neighbours():
    rng = np.random.default_rng(6)
    points, labels = rng.normal(size=(90, 2)), rng.integers(0, 2, size=90)
    graph = NeighborGraph.from_points(points, 30)
    forward = NeighborCounter(graph, labels, 2, [4, 20], "forward")
    forward.count(points)
    assert "_radii" not in vars(forward)
    both = NeighborCounter(graph, labels, 2, [4, 20])
    expected = both.count(points)
    assert both._radii.shape == (90, 2)
    assert "radii" not in vars(graph)
    again = pickle.loads(pickle.dumps(both))
    assert "_radii" not in vars(again)
    np.testing.assert_array_equal(again.count(points), expected)


def test_bad_arguments_are_refused():
    graph = NeighborGraph.from_points([[0.0], [1.0], [3.0]], 2)
    labels = [0, 1, 1]
    for arguments, message in (
        ((labels, 2, [3]), "k must be an integer in 1..2"),
        ((labels, 2, []), "k_values is empty"),
        (([0, 2, 1], 2), "class numbers in 0..1, got 2 at position 1"),
        ((labels, 2, None, "reverse"), "direction must be one of both, forward"),
    ):
        with pytest.raises(ValueError, match=message):
            NeighborCounter(graph, *arguments)
    with pytest.raises(ValueError, match="chunk_size must be"):
        NeighborCounter(graph, labels, 2).count_chunks([[0.0]], 0)
    ring = NeighborGraph.from_neighbors([[1, 2, 0]])
    with pytest.raises(ValueError, match="given by its lists"):
        NeighborCounter(ring, labels, 2).count([[0.0]])
