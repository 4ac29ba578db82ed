"""Trees of scikit-learn only propose: their lists are those of brute force, or they are refused."""

import numpy as np
import pytest

from bayesknn.graph import NeighborGraph
from bayesknn.graph.metrics import make_metric
from bayesknn.graph.search import back_ends

SKEWED = np.random.default_rng(0).exponential(size=(1500, 3)) ** 2
LATTICE = np.random.default_rng(1).integers(-6, 7, size=(250, 2)).astype(float)


def assert_equal_graphs(found, expected):
    np.testing.assert_array_equal(found.neighbors, expected.neighbors)
    np.testing.assert_array_equal(found.distances, expected.distances)


@pytest.mark.parametrize(
    ("metric", "params"),
    [
        ("braycurtis", None),
        ("minkowski", {"p": 0.5}),
        ("minkowski", {"p": 1.5}),
        ("manhattan", None),
        ("canberra", None),
        ("sqeuclidean", None),
    ],
)
def test_auto_finds_what_brute_force_finds(metric, params, monkeypatch):
    monkeypatch.setattr(back_ends, "_MANY", 1000)
    brute = NeighborGraph.from_points(SKEWED, 10, metric, params, search="brute")
    assert_equal_graphs(NeighborGraph.from_points(SKEWED, 10, metric, params), brute)


@pytest.mark.parametrize(
    ("metric", "params"),
    [
        ("braycurtis", None),
        ("dice", None),
        ("minkowski", {"p": 0.5}),
        ("sqeuclidean", None),
        ("cosine", None),
        (lambda a, b: float(np.abs(a - b).sum()), None),
    ],
)
def test_a_distance_that_may_break_the_triangle_inequality_gets_no_ball_tree(metric, params):
    assert make_metric(metric, params).candidate_tree("ball_tree", SKEWED) is None
    with pytest.raises(ValueError, match="triangle inequality; use 'brute'"):
        NeighborGraph.from_points(SKEWED, 3, metric, params, search="ball_tree")


def test_a_kd_tree_skips_by_coordinates_and_needs_no_triangle_inequality():
    brute = NeighborGraph.from_points(SKEWED, 10, "minkowski", {"p": 0.5}, search="brute")
    tree = NeighborGraph.from_points(SKEWED, 10, "minkowski", {"p": 0.5}, search="kd_tree")
    assert_equal_graphs(tree, brute)


@pytest.mark.parametrize("scale", [0.0, 1e-145, 1.0])
@pytest.mark.parametrize(
    ("metric", "params"), [("euclidean", None), ("manhattan", None), ("minkowski", {"p": 3})]
)
def test_many_ties_and_duplicates_in_any_unit(metric, params, scale):
    points = LATTICE * scale
    for k in (10, 249):
        brute = NeighborGraph.from_points(points, k, metric, params, search="brute")
        tree = NeighborGraph.from_points(points, k, metric, params, search="ball_tree")
        assert_equal_graphs(tree, brute)
