"""Counts around new points: those of the twin, whatever finds them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from bayesknn import reference
from bayesknn.graph import NeighborGraph
from tests.graph import twins
from tests.graph.test_query import training_and_new


@given(training_and_new(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_counts_against_the_twin(data, n_classes, seed):
    points, new, k_max = data
    training, rows = reference.distances(points, points), reference.distances(new, points)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, size=len(points))
    ks = rng.integers(1, k_max + 1, size=int(rng.integers(1, 6)))
    expected = [twins.query_counts(training, rows, labels, n_classes, k) for k in ks]
    dense = NeighborGraph.from_points(training, k_max, metric="precomputed")
    asked = [
        (NeighborGraph.from_points(points, k_max, search="kd_tree"), new),
        (NeighborGraph.from_points(points, k_max, search="brute"), new),
        (dense, rows),
    ]
    for graph, X in asked:
        both = graph.query(X).counts(labels, n_classes, ks)
        np.testing.assert_array_equal(both, [forward + back for forward, back in expected])
        alone = graph.query(X, direction="forward").counts(labels, n_classes, ks, "forward")
        np.testing.assert_array_equal(alone, [forward for forward, _ in expected])


@given(
    st.integers(0, 2**32 - 1),
    st.integers(65, 400),
    st.integers(1, 150),
    st.sampled_from(["normal", "tied", "scattered", "circle"]),
)
def test_many_leaves_against_brute_force(seed, n, m, kind):
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
    tree, brute = (
        NeighborGraph.from_points(points, k_max, search=search).query(new)
        for search in ("kd_tree", "brute")
    )
    np.testing.assert_array_equal(tree.neighbors, brute.neighbors)
    for ks in (None, [k_max], np.unique(rng.integers(1, k_max + 1, size=5))):
        np.testing.assert_array_equal(
            tree.counts(labels, n_classes, ks), brute.counts(labels, n_classes, ks)
        )


def test_a_hub_is_reached_by_everybody():
    angles = np.arange(300) * (2 * np.pi / 300)
    points = 50.0 * np.column_stack([np.cos(angles), np.sin(angles)])
    labels = np.arange(300) % 3
    graph = NeighborGraph.from_points(points, 120)
    found = graph.query([[0.0, 0.0]]).counts(labels, 3, [120])
    assert found.sum() == 120 + 300


def test_at_equal_distance_the_training_point_keeps_its_place():
    graph = NeighborGraph.from_points([[0.0], [1.0], [10.0]], 1)
    assert graph.query([[-1.0]]).counts([0, 1, 1], 2).tolist() == [[[1, 0]]]
    assert graph.query([[-0.5]]).counts([0, 1, 1], 2).tolist() == [[[2, 0]]]


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis", "manhattan"])
@pytest.mark.parametrize("direction", ["both", "forward"])
def test_chunks_and_threads_do_not_change_the_counts(metric, direction):
    rng = np.random.default_rng(3)
    points, new = rng.normal(size=(300, 3)), rng.normal(size=(1500, 3))
    labels = rng.integers(0, 4, size=300)
    graph = NeighborGraph.from_points(points, 12, metric=metric)
    whole = graph.query(new, direction=direction).counts(labels, 4, [2, 12, 5], direction)
    for n_jobs, size in ((1, 7), (2, 1100), (2, 1500)):
        parts = list(graph.query_chunks(new, size, n_jobs, direction))
        assert parts[0][0] == slice(0, size)
        counts = [query.counts(labels, 4, [2, 12, 5], direction) for _, query in parts]
        np.testing.assert_array_equal(np.concatenate(counts, 1), whole)


def test_sparse_distances_count_what_is_stored():
    rng = np.random.default_rng(2)
    points, new = rng.normal(size=(60, 2)), rng.normal(size=(10, 2))
    training, rows = reference.distances(points, points), reference.distances(new, points)
    labels = rng.integers(0, 2, size=60)
    graph = NeighborGraph.from_points(training, 15, metric="precomputed")
    stored, dense = graph.query(sparse.csr_array(rows)), graph.query(rows)
    np.testing.assert_array_equal(stored.counts(labels, 2), dense.counts(labels, 2))


def test_bad_arguments_are_refused():
    graph = NeighborGraph.from_points([[0.0], [1.0], [3.0]], 2)
    labels = [0, 1, 1]
    for arguments, message in (
        ((labels, 2, [3]), "k must be an integer in 1..2"),
        ((labels, 2, []), "k_values is empty"),
        (([0, 2, 1], 2), "lie in 0..1 .*got 2 at position 1"),
    ):
        with pytest.raises(ValueError, match=message):
            graph.query([[0.0]]).counts(*arguments)
    with pytest.raises(ValueError, match="chunk_size must be"):
        graph.query_chunks([[0.0]], 0)
    ring = NeighborGraph.from_neighbors([[1, 2, 0]])
    with pytest.raises(ValueError, match="given by its lists"):
        ring.query([[0.0]])
