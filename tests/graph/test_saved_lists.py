"""Transport keeps the lists, files may leave them out, and what was changed is refused."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn._utils.saving import pack, unpack
from bayesknn.graph import NeighborGraph, neighbor_graph

POINTS = np.random.default_rng(0).integers(0, 40, size=(600, 2)).astype(float)
LABELS = np.arange(600) % 3


def assert_same(graph, other):
    np.testing.assert_array_equal(other.neighbors, graph.neighbors)
    np.testing.assert_array_equal(other.distances, graph.distances)
    np.testing.assert_array_equal(other.tied_beyond, graph.tied_beyond)


# Classifiers are sent by joblib as well, in test_citizenship.
@pytest.mark.parametrize(
    "send", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_transport_does_not_search_again(send, monkeypatch):
    graph = NeighborGraph.from_points(POINTS, 100)

    def refuse(*_, **__):
        raise AssertionError("the neighbours were searched for again")

    monkeypatch.setattr(neighbor_graph, "search_all", refuse)
    other = send(graph)
    assert_same(graph, other)
    np.testing.assert_array_equal(
        other.query(POINTS[:9]).neighbors, graph.query(POINTS[:9]).neighbors
    )


@pytest.mark.parametrize(
    ("metric", "search"),
    [
        ("euclidean", "auto"),
        ("euclidean", "kd_tree"),
        ("euclidean", "blocked"),
        ("manhattan", "auto"),
        ("mahalanobis", "auto"),
    ],
)
def test_long_lists_are_left_out_of_files_and_found_again(metric, search):
    # Points on a lattice: many ties, which must be settled as they were.
    graph = NeighborGraph.from_points(POINTS, 100, metric, search=search)
    packed = pack(graph)
    assert len(pickle.dumps(packed)) < 5 * POINTS.nbytes < graph.neighbors.nbytes
    assert_same(graph, unpack(packed))


def test_short_lists_and_lists_that_cannot_be_found_again_are_kept():
    short = NeighborGraph.from_points(POINTS, 10)
    away = np.abs(POINTS[:, None] - POINTS).sum(axis=2)
    given = NeighborGraph.from_points(away, 100, "precomputed")
    alone = NeighborGraph.from_neighbors(given.neighbors, given.distances)
    for graph in (short, given, alone):
        assert graph.state_for_file()["neighbors"] is graph.neighbors
        assert_same(graph, unpack(pack(graph)))


def test_lists_that_come_out_otherwise_are_refused():
    graph = NeighborGraph.from_points(POINTS, 100)
    with pytest.raises(ValueError, match="not those of the fit.*fit again"):
        unpack(pack(graph) | {"k_max": 99})


def change(value, how):
    """Return an array with one entry changed, or other numbers."""
    if callable(how):
        return how(value)
    array = np.array(value)
    array.flat[array.size // 2] = how
    return array


@pytest.mark.parametrize(
    ("metric", "search"),
    [
        ("euclidean", "brute"),
        ("euclidean", "kd_tree"),
        ("mahalanobis", "kd_tree"),
        ("gower", "auto"),
    ],
)
@pytest.mark.parametrize(
    ("path", "how", "message"),
    [
        ("neighbors", 600, r"neighbors must hold integers in 0..599, got 600"),
        ("neighbors", 2**32 - 1, "neighbors must hold integers in 0..599, got 4294967295"),
        ("neighbors", lambda a: a.astype(np.int64) - 600, "in 0..599, got -"),
        ("neighbors", lambda a: a.astype(float), "got float64"),
        ("neighbors", lambda a: a[0], r"shape \(k_max, n\), got \(600,\)"),
        ("neighbors", lambda a: a[:, :500] % 500, "lists of|shape"),
        ("distances", lambda a: a[:5], r"distances must have shape \(10, 600\)"),
        ("tied_beyond", lambda a: a[:5], r"tied_beyond must have shape \(600,\)"),
        ("index/n_points", lambda a: 10**6, "not 1000000 rows"),
        ("index/n_points", lambda a: -600, "n_points must be an integer"),
        ("index/points", lambda a: a[:500], "the saved points are not 600 rows of 2 numbers"),
        ("index/points", lambda a: a[:, :1], "the saved points are not 600 rows"),
        ("index/points", np.nan, "'points' is not finite"),
        ("index/points", lambda a: a.astype(np.int64), "the saved points are not 600 rows"),
        ("index/points", lambda a: None, "the saved points are not 600 rows"),
    ],
)
def test_changed_files_are_refused(path, how, message, metric, search):
    packed = pack(NeighborGraph.from_points(POINTS, 10, metric, search=search))
    *folders, name = path.split("/")
    place = packed
    for folder in folders:
        place = place[folder]
    place[name] = change(place[name], how)
    with pytest.raises(ValueError, match=message):
        unpack(packed)


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("mahalanobis", "centre_"),
        ("mahalanobis", "whitening_"),
        ("gower", "ranges_"),
        ("gower", "weights_"),
        ("gower", "is_category_"),
        ("gower", "categories_"),
    ],
)
def test_changed_metrics_are_refused(metric, name):
    packed = pack(NeighborGraph.from_points(POINTS, 10, metric))
    packed["index"]["metric"][name] = packed["index"]["metric"][name][:1]
    with pytest.raises(ValueError, match="needs 2 entries in|not 600 rows"):
        unpack(packed)
    del packed["index"]["metric"][name]
    with pytest.raises(ValueError, match="cannot be read: AttributeError"):
        unpack(packed)


def test_changed_numbers_of_distances_are_refused():
    away = np.abs(POINTS[:, None] - POINTS).sum(axis=2)
    packed = pack(NeighborGraph.from_points(away, 10, "precomputed"))
    packed["index"]["metric"]["n_features_"] = 700
    with pytest.raises(ValueError, match="there are 600 points, and distances to 700"):
        unpack(packed)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (np.array([[1, 2, 3]]), "in 0..2, got 3"),
        (np.array([[1, -1, 0]]), "in 0..2, got -1"),
        (np.array([[1.0, 2.0, 0.0]]), "got float64"),
    ],
)
def test_graphs_are_not_made_of_lists_that_point_elsewhere(lists, message):
    with pytest.raises(ValueError, match=message):
        NeighborGraph(lists, None)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_sparse_distances_that_point_elsewhere_are_refused(kind):
    away = sparse.csr_array(np.abs(POINTS[:9, None] - POINTS[:9]).sum(axis=2)).asformat(kind)
    for value in (9, 10**6, -1):
        wrong = away.copy()
        wrong.indices[3] = value
        with pytest.raises(ValueError, match="ind(ices|ex values) must be"):
            NeighborGraph.from_points(wrong, 2, "precomputed")


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (BayesianKNeighborsClassifier("pseudo", n_draws=10, random_state=0), 15),
        (PooledNeighborsClassifier(random_state=0), 60),
    ],
)
def test_a_saved_classifier_is_a_small_multiple_of_its_points(model, most):
    model.fit(POINTS, LABELS)
    text = pickle.dumps(model.__getstate__())
    assert len(text) < most * (POINTS.nbytes + LABELS.nbytes)
    loaded = type(model).__new__(type(model))
    loaded.__setstate__(pickle.loads(text))
    np.testing.assert_array_equal(
        loaded.predict_proba(POINTS[:20]), model.predict_proba(POINTS[:20])
    )
