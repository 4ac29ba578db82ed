"""Queries about new points: forward and reverse neighbours, counts for every k."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors

from bayesknn import reference
from bayesknn.graph import NeighborGraph
from bayesknn.graph.search.brute import rank_reverse
from tests.graph import twins


def pairs_of(query):
    """List the reverse neighbours of each new point as (rank, point) pairs."""
    cuts = query.reverse_starts[1:-1]
    return [
        list(zip(ranks.tolist(), points.tolist(), strict=True))
        for ranks, points in zip(
            np.split(query.reverse_ranks, cuts), np.split(query.reverse_points, cuts), strict=True
        )
    ]


def assert_answers(query, training, rows, k_max):
    neighbors, distances = twins.rank(rows, k_max)
    np.testing.assert_array_equal(query.neighbors, neighbors)
    np.testing.assert_array_equal(query.distances, distances)
    assert pairs_of(query) == twins.reverse(training, rows, k_max)


@st.composite
def training_and_new(draw):
    n, m, p = draw(st.integers(3, 20)), draw(st.integers(1, 8)), draw(st.integers(1, 4))
    values = st.integers(0, draw(st.integers(1, 3))).map(float)
    step = draw(st.sampled_from([1.0, 0.1]))
    return (
        draw(arrays(np.float64, (n, p), elements=values)) * step,
        draw(arrays(np.float64, (m, p), elements=values)) * step,
        draw(st.integers(1, n - 1)),
    )


@given(training_and_new(), st.integers(0, 2**32 - 1))
def test_query_against_the_twin(data, seed):
    points, new, k_max = data
    training, rows = reference.distances(points, points), reference.distances(new, points)
    labels = np.random.default_rng(seed).integers(0, 3, size=len(points))
    graphs = [NeighborGraph.from_points(points, k_max, search=s) for s in ("kd_tree", "brute")]
    queries = [graph.query(new) for graph in graphs]
    dense = NeighborGraph.from_points(training, k_max, metric="precomputed")
    queries.append(dense.query(rows))
    stored = sparse.csr_array(
        (
            rows.ravel(),
            np.tile(np.arange(len(points)), len(new)),
            np.arange(0, rows.size + 1, len(points)),
        ),
        shape=rows.shape,
    )
    queries.append(dense.query(stored))
    for query in queries:
        assert_answers(query, training, rows, k_max)
    every = queries[0].counts(labels, 3)
    assert every.shape == (k_max, len(new), 3)
    for k in range(1, k_max + 1):
        forward, backward = twins.query_counts(training, rows, labels, 3, k)
        np.testing.assert_array_equal(every[k - 1], forward + backward)
        np.testing.assert_array_equal(queries[1].counts(labels, 3, [k], "forward")[0], forward)
        np.testing.assert_array_equal(queries[2].counts(labels, 3, k, "reverse")[0], backward)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(65, 300),
    st.integers(1, 150),
    st.sampled_from(["normal", "tied", "scattered"]),
)
def test_many_leaves(seed, n, m, kind):
    rng = np.random.default_rng(seed)
    p, k_max = int(rng.integers(1, 11)), int(rng.integers(1, 40))
    if kind == "scattered":
        # Points far from the rest reach far beyond their boxes.
        points, new = rng.standard_cauchy(size=(n, p)), 3 * rng.standard_cauchy(size=(m, p))
    else:
        points, new = rng.normal(size=(n, p)), 2 * rng.normal(size=(m, p))
    if kind == "tied":
        points, new = np.round(points), np.round(new)
    query = NeighborGraph.from_points(points, k_max).query(new)
    assert_answers(
        query, reference.distances(points, points), reference.distances(new, points), k_max
    )


def test_lonely_points_reach_beyond_their_boxes():
    rng = np.random.default_rng(4)
    crowd = rng.normal(size=(1500, 2))
    lonely = 100.0 * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    points = np.vstack([crowd, lonely])
    new = np.vstack([1.4 * lonely, 0.6 * lonely, rng.normal(size=(5, 2))])
    training, rows = reference.distances(points, points), reference.distances(new, points)
    graph = NeighborGraph.from_points(points, 4)
    assert_answers(graph.query(new), training, rows, 4)
    # One at a time, for a block of queries that spans all boxes skips none.
    for part, query in graph.query_chunks(new, chunk_size=1):
        assert pairs_of(query) == pairs_of(graph.query(new))[part]
    assert (1, 1500) in pairs_of(graph.query(new))[0]


def test_a_new_point_far_away_has_no_reverse_neighbours():
    graph = NeighborGraph.from_points(np.arange(10.0)[:, None], 3)
    query = graph.query([[1e6]])
    assert query.reverse_starts.tolist() == [0, 0]
    assert query.neighbors.T.tolist() == [[9, 8, 7]]


def test_at_equal_distance_the_training_point_keeps_its_place():
    # Points 0 and 1 are at distance 1, and so is the new point from point 0.
    graph = NeighborGraph.from_points([[0.0], [1.0], [10.0]], 1)
    query = graph.query([[-1.0]])
    assert pairs_of(query) == [[]]
    # A mutant that lets the new point in at equality would find point 0.
    assert 1.0 <= graph.distances[0, 0]


def test_a_hub_is_the_first_neighbour_of_everybody():
    # More than sixteen entries of one rank: the branch of long runs.
    angles = np.arange(100) * (2 * np.pi / 100)
    points = 50.0 * np.column_stack([np.cos(angles), np.sin(angles)])
    graph = NeighborGraph.from_points(points, 60)
    rows = reference.distances(np.zeros((1, 2)), points)
    assert_answers(graph.query([[0.0, 0.0]]), reference.distances(points, points), rows, 60)


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis", "manhattan", "gower", "cosine"])
def test_chunks_and_threads_do_not_change_the_answers(metric):
    rng = np.random.default_rng(3)
    points, new = rng.normal(size=(300, 3)), rng.normal(size=(150, 3))
    graph = NeighborGraph.from_points(points, 12, metric=metric)
    whole = graph.query(new)
    labels = rng.integers(0, 4, size=300)
    counts = whole.counts(labels, 4)
    for n_jobs, size in ((1, 7), (2, 40), (2, None)):
        for rows, part in graph.query_chunks(new, chunk_size=size, n_jobs=n_jobs):
            np.testing.assert_array_equal(part.neighbors, whole.neighbors[:, rows])
            np.testing.assert_array_equal(part.distances, whole.distances[:, rows])
            assert pairs_of(part) == pairs_of(whole)[rows]
            np.testing.assert_array_equal(part.counts(labels, 4), counts[:, rows])


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis", "manhattan", "gower"])
def test_a_training_point_asked_about_again_is_at_distance_zero_from_itself(metric):
    points = np.random.default_rng(8).normal(size=(40, 3))
    query = NeighborGraph.from_points(points, 5, metric=metric).query(points)
    np.testing.assert_array_equal(query.neighbors[0], np.arange(40))
    np.testing.assert_array_equal(query.distances[0], 0.0)


def test_sparse_queries_count_what_is_stored():
    rng = np.random.default_rng(2)
    points, new = rng.normal(size=(60, 2)), rng.normal(size=(10, 2))
    transformer = KNeighborsTransformer(mode="distance", n_neighbors=20, algorithm="kd_tree")
    stored = transformer.fit_transform(points)
    graph = NeighborGraph.from_points(stored, 15, metric="precomputed")
    with pytest.warns(UserWarning, match="are likely not stored"):
        query = graph.query(transformer.transform(new))
    whole = NeighborGraph.from_points(points, 15).query(new)
    np.testing.assert_array_equal(query.neighbors, whole.neighbors)
    np.testing.assert_allclose(query.distances, whole.distances, rtol=0, atol=1e-10)
    for some, full in zip(pairs_of(query), pairs_of(whole), strict=True):
        assert set(some) <= set(full)


@pytest.mark.parametrize("p", [2, 6])
@pytest.mark.parametrize("stored", [30, 60, 150])
def test_a_warning_says_how_many_reverse_neighbours_sparse_rows_lack(p, stored):
    rng = np.random.default_rng([p, stored])
    points, new = rng.normal(size=(3000, p)), rng.normal(size=(300, p))
    graph = NeighborGraph.from_points(points, 30)
    whole = graph.query(new)
    near = NearestNeighbors(n_neighbors=stored, algorithm="kd_tree").fit(points)
    given = NeighborGraph.from_points(
        near.kneighbors_graph(mode="distance"), 30, metric="precomputed"
    )
    rows = near.kneighbors_graph(new, mode="distance")
    with pytest.warns(UserWarning, match="likely not stored") as caught:
        given.query(rows)
    # Of all, and not stored: the error of the mean over 300 new points is about a tenth.
    every, lacking = map(float, re.findall(r"(\d+\.\d)(?= training| are)", str(caught[0].message)))
    assert len(caught) == 1
    truth = len(whole.reverse_points) / 300
    missing = truth - len(given_reverse(given, rows)) / 300
    assert abs(lacking - missing) < 0.25 * missing + 0.1
    assert abs(every - truth) < 0.1 * truth


def given_reverse(graph, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return graph.query(rows).reverse_points


def test_rows_that_store_all_that_counts_are_not_warned_of():
    rng = np.random.default_rng(7)
    points, new = rng.normal(size=(500, 2)), rng.normal(size=(20, 2))
    graph = NeighborGraph.from_points(points, 10)
    rows = reference.distances(new, points)
    given = NeighborGraph.from_points(reference.distances(points, points), 10, metric="precomputed")
    farthest = np.sort(rows, axis=1)[:, 9].max()
    kept = sparse.csr_array(np.where(rows <= max(graph.distances.max(), farthest), rows, 0.0))
    assert kept.nnz < rows.size
    assert pairs_of(given.query(kept)) == pairs_of(graph.query(new))
    few = sparse.csr_array(np.where(rows <= np.sort(rows, axis=1)[:, 9:10], rows, 0.0))
    given.query(few, direction="forward")
    with pytest.warns(UserWarning, match="likely not stored"):
        given.query(few)


@given(st.integers(0, 2**32 - 1), st.integers(1, 140))
def test_places_are_those_of_a_plain_search(seed, width):
    rng = np.random.default_rng(seed)
    lists = np.sort(rng.integers(0, 2 * width, size=(20, width)), axis=1).astype(float)
    members = rng.integers(0, 20, size=70)
    distances = rng.integers(-1, 2 * width + 1, size=70).astype(float)
    names = rng.permutation(20).astype(np.uint32)
    queries, entries = rank_reverse(np.arange(70), members, distances, lists, names)
    places = np.array(
        [np.searchsorted(lists[i], d, "right") for i, d in zip(members, distances, strict=True)]
    )
    expected = np.flatnonzero(places < width)
    np.testing.assert_array_equal(queries, expected)
    np.testing.assert_array_equal(entries >> 32, places[expected] + 1)
    np.testing.assert_array_equal(entries & 0xFFFFFFFF, names[members[expected]])


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "precomputed", "sparse"])
def test_forward_alone_is_the_forward_half(metric):
    rng = np.random.default_rng(6)
    points, new = rng.normal(size=(90, 2)), rng.normal(size=(20, 2))
    if metric in ("precomputed", "sparse"):
        points, new = reference.distances(points, points), reference.distances(new, points)
    if metric == "sparse":
        points, new = sparse.csr_array(points), sparse.csr_array(new)
        metric = "precomputed"
    graph = NeighborGraph.from_points(points, 7, metric=metric)
    forward = graph.query(new, direction="forward")
    assert "radii" not in vars(graph)
    both = graph.query(new)
    np.testing.assert_array_equal(forward.neighbors, both.neighbors)
    np.testing.assert_array_equal(forward.distances, both.distances)
    labels = rng.integers(0, 2, size=90)
    np.testing.assert_array_equal(
        forward.counts(labels, 2, direction="forward"), both.counts(labels, 2, direction="forward")
    )
    for ask in (
        lambda: forward.counts(labels, 2),
        lambda: forward.counts(labels, 2, direction="reverse"),
        lambda: forward.reverse_starts,
        lambda: forward.reverse_points,
        lambda: forward.reverse_ranks,
    ):
        with pytest.raises(ValueError, match="direction='forward' and knows no reverse"):
            ask()
    for rows, part in graph.query_chunks(new, 8, direction="forward"):
        np.testing.assert_array_equal(part.neighbors, both.neighbors[:, rows])
        assert part._reverse is None


def test_k_values_come_back_in_the_order_asked():
    rng = np.random.default_rng(1)
    query = NeighborGraph.from_points(rng.normal(size=(50, 2)), 9).query(rng.normal(size=(4, 2)))
    labels = rng.integers(0, 2, size=50)
    every = query.counts(labels, 2)
    np.testing.assert_array_equal(query.counts(labels, 2, [7, 2, 7]), every[[6, 1, 6]])


def test_memory_is_bounded_when_there_are_many_new_points():
    import tracemalloc

    rng = np.random.default_rng(0)
    graph = NeighborGraph.from_points(rng.normal(size=(2000, 2)), 10, metric="manhattan")
    new = rng.normal(size=(20_000, 2))
    labels = np.zeros(2000, dtype=int)
    graph.query(new[:10])
    tracemalloc.start()
    for _, query in graph.query_chunks(new, chunk_size=1000):
        query.counts(labels, 1, [10])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The full matrix of distances would take 320 MB.
    assert peak < 60e6


@pytest.mark.parametrize("k", [3, 20, 90])
def test_candidates_never_outgrow_their_memory(k):
    # The box of one block of new points covers all leaves, which then come in their own order: to
    # a new point on the right each is nearer than those before, and offers all of its points.
    rng = np.random.default_rng(8)
    points, new = rng.normal(size=(1000, 1)), rng.normal(size=(64, 1))
    tree, brute = (
        NeighborGraph.from_points(points, k, search=search).query(new)
        for search in ("kd_tree", "brute")
    )
    for name in ("neighbors", "distances", "reverse_starts", "reverse_points", "reverse_ranks"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(brute, name))
