"""Neighbours by matrix products in single precision: candidates only, the lists are exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn import reference
from bayesknn.graph import NeighborGraph
from bayesknn.graph.search import blocked
from tests.graph import twins


@pytest.fixture(autouse=True)
def small_strips(monkeypatch):
    """Many strips, at a size where everything can be checked."""
    monkeypatch.setattr(blocked, "_STRIP", 2048)


def draw_points(rng, n, p, kind):
    points = rng.normal(size=(n, p))
    if kind == "tied":
        return np.round(points)
    if kind == "far":
        # Far from the origin and spread over many orders of magnitude.
        return 1e6 + points * 10.0 ** rng.uniform(-6, 3, size=(n, 1))
    if kind == "lattice":
        return 0.1 * rng.integers(0, 3, size=(n, p))
    return points


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 200),
    st.sampled_from([1, 3, 17, 64]),
    st.sampled_from(["normal", "tied", "far", "lattice"]),
)
def test_lists_are_those_of_the_twin(seed, n, p, kind):
    rng = np.random.default_rng(seed)
    points = draw_points(rng, n, p, kind)
    k = int(rng.integers(1, n))
    neighbors, distances = twins.rank(reference.distances(points, points), k, is_self=True)
    graph = NeighborGraph.from_points(points, k, search="blocked", n_jobs=int(rng.integers(1, 3)))
    np.testing.assert_array_equal(graph.neighbors, neighbors)
    np.testing.assert_array_equal(graph.distances, distances)


@pytest.mark.parametrize("scale", [0.0, 1e-150, 1e-30, 1.0, 1e30, 1e149])
def test_units_do_not_matter(scale):
    points = np.random.default_rng(1).normal(size=(150, 20)) * scale
    points[:5] *= 1e-160
    graph = NeighborGraph.from_points(points, 9, search="blocked")
    tree = NeighborGraph.from_points(points, 9, search="kd_tree")
    np.testing.assert_array_equal(graph.neighbors, tree.neighbors)
    np.testing.assert_array_equal(graph.distances, tree.distances)


def test_differences_below_single_precision_are_told_apart():
    # Distances that differ by 1e-9 of themselves: single precision sees one value, the bound says
    # so, and a mutant that trusts it takes the wrong ones.
    rng = np.random.default_rng(2)
    points = np.zeros((60, 4))
    points[1:, 0] = 1.0 + rng.permutation(59) * 1e-9
    expected = twins.rank(reference.distances(points, points), 5, is_self=True)[0]
    graph = NeighborGraph.from_points(points, 5, search="blocked")
    np.testing.assert_array_equal(graph.neighbors, expected)
    single = reference.distances(points.astype(np.float32), points.astype(np.float32))
    assert np.any(twins.rank(single, 5, is_self=True)[0] != expected)


def test_without_the_margin_neighbours_are_lost(monkeypatch):
    """A named mutant: single precision is off by more than nothing.

    How a BLAS rounds differs from one processor to the next, so that an error is put in: 32 units
    of each coordinate change a square by at most 128 units of the two points' squares, and the
    margin of 300 columns is 312. Points on a lattice are tied at every rank: any error that is
    not allowed for takes the wrong ones.
    """
    rng = np.random.default_rng(3)
    points = np.zeros((400, 300))
    points[:, :8] = rng.integers(0, 3, size=(400, 8))
    expected = twins.rank(reference.distances(points, points), 20, is_self=True)[0]
    exact = blocked.round_points

    def round_worse(points):
        single = exact(points)
        errors = 32 * 2.0**-24 * rng.choice([-1.0, 1.0], size=single.shape)
        return (single * (1.0 + errors)).astype(np.float32)

    def search():
        return NeighborGraph.from_points(points, 20, search="blocked").neighbors

    monkeypatch.setattr(blocked, "round_points", round_worse)
    np.testing.assert_array_equal(search(), expected)
    monkeypatch.setattr(blocked, "rounding_margin", lambda p: 0.0)
    assert np.any(search() != expected)


def test_points_that_single_precision_cannot_tell_apart():
    crowd = np.ones((600, 3))
    crowd[:40] = np.random.default_rng(4).normal(size=(40, 3))
    few = np.random.default_rng(5).normal(size=(2500, 3))
    few[:250] = few[0]
    for points in (crowd, few):
        graph = NeighborGraph.from_points(points, 5, search="blocked")
        expected = NeighborGraph.from_points(points, 5, search="kd_tree")
        np.testing.assert_array_equal(graph.neighbors, expected.neighbors)
        np.testing.assert_array_equal(graph.distances, expected.distances)


def test_auto_takes_products_where_a_tree_can_skip_nothing():
    rng = np.random.default_rng(6)
    many = rng.normal(size=(2100, 80))
    flat = np.column_stack([rng.normal(size=(2100, 2)), np.zeros((2100, 78))])
    for points, search in ((many, "blocked"), (flat, "kd_tree"), (many[:1000], "brute")):
        graph = NeighborGraph.from_points(points, 5)
        assert graph.index.name == search
        new = points[:7] + 0.01
        brute = NeighborGraph.from_points(points, 5, search="brute")
        np.testing.assert_array_equal(graph.neighbors, brute.neighbors)
        np.testing.assert_array_equal(graph.query(new).neighbors, brute.query(new).neighbors)


def test_other_metrics_have_no_products():
    with pytest.raises(ValueError, match="search='blocked' does not serve metric 'manhattan'"):
        NeighborGraph.from_points(np.eye(5), 2, "manhattan", search="blocked")
