"""What a graph leaves out of files, and what it finds again on loading."""

import pickle

import numpy as np
import pytest

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.graph import NeighborGraph

POINTS = np.random.default_rng(0).integers(0, 40, size=(600, 2)).astype(float)
LABELS = np.arange(600) % 3


def assert_same(graph, other):
    np.testing.assert_array_equal(other.neighbors, graph.neighbors)
    np.testing.assert_array_equal(other.distances, graph.distances)
    np.testing.assert_array_equal(other.tied_beyond, graph.tied_beyond)


@pytest.mark.parametrize("tie_order", [0, 1])
@pytest.mark.parametrize(
    ("metric", "search"), [("euclidean", "auto"), ("euclidean", "blocked"), ("manhattan", "auto")]
)
def test_long_lists_are_found_again(metric, search, tie_order):
    # Points on a lattice: many ties, which must be settled as they were.
    graph = NeighborGraph.from_points(
        POINTS, 100, metric, search=search, tie_order=tie_order
    )  # fmt: skip
    text = pickle.dumps(graph)
    assert len(text) < 5 * POINTS.nbytes < graph.neighbors.nbytes
    assert_same(graph, pickle.loads(text))


def test_short_lists_and_lists_that_cannot_be_found_again_are_kept():
    short = NeighborGraph.from_points(POINTS, 10)
    away = np.abs(POINTS[:, None] - POINTS).sum(axis=2)
    given = NeighborGraph.from_points(away, 100, "precomputed")
    alone = NeighborGraph.from_neighbors(given.neighbors, given.distances)
    for graph in (short, given, alone):
        assert graph.__getstate__()["neighbors"] is graph.neighbors
        assert_same(graph, pickle.loads(pickle.dumps(graph)))


def test_files_with_lists_are_read_as_they_are():
    graph = NeighborGraph.from_points(POINTS, 100)
    state = {name: getattr(graph, name) for name in ("distances", "index", "tied_beyond")}
    old = NeighborGraph.__new__(NeighborGraph)
    old.__setstate__({"neighbors": graph.neighbors, **state})
    assert_same(graph, old)


def test_lists_that_come_out_otherwise_are_refused():
    graph = NeighborGraph.from_points(POINTS, 100)
    state = graph.__getstate__() | {"k_max": 99}
    with pytest.raises(ValueError, match="not those of the fit.*fit again"):
        NeighborGraph.__new__(NeighborGraph).__setstate__(state)


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (BayesianKNeighborsClassifier("pseudo", n_draws=10, random_state=0), 15),
        (PooledNeighborsClassifier(random_state=0), 60),
    ],
)
def test_a_saved_classifier_is_a_small_multiple_of_its_points(model, most):
    model.fit(POINTS, LABELS)
    text = pickle.dumps(model)
    assert len(text) < most * (POINTS.nbytes + LABELS.nbytes)
    loaded = pickle.loads(text)
    np.testing.assert_array_equal(
        loaded.predict_proba(POINTS[:20]), model.predict_proba(POINTS[:20])
    )
