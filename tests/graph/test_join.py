"""The graph of training and new points together, against plain sorting."""

import numpy as np
import pytest

from bayesknn.graph import NeighborGraph
from bayesknn.graph.search.kd_tree import build_tree
from bayesknn.graph.ties import order_ties


def sort_plainly(distances, n, k):
    """Sort by (distance, new or not, rank among ties), every point left out of its own."""
    total = len(distances)
    ranks = np.append(order_ties(n).ranks, n + order_ties(total - n).ranks)
    lists = [[j for j in np.lexsort((ranks, distances[i])) if j != i][:k] for i in range(total)]
    return np.transpose(lists)


def sample(kind, n=40, m=150):
    rng = np.random.default_rng([n, m])
    if kind == "lattice":
        points = rng.integers(0, 5, size=(n + m, 2)).astype(float)
    else:
        points = rng.normal(size=(n + m, 2)) * [1.0, 30.0]
    return points[:n], points[n:]


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("search", ["kd_tree", "brute", "ball_tree"])
@pytest.mark.parametrize("kind", ["plain", "lattice"])
def test_lists_are_those_of_plain_sorting(kind, search, n_jobs):
    X, new = sample(kind)
    graph = NeighborGraph.from_points(X, 5, search=search)
    joint = graph.join(new, 60, n_jobs)
    points = np.concatenate([X, new])
    distances = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    np.testing.assert_array_equal(joint.neighbors, sort_plainly(distances, len(X), 60))


@pytest.mark.parametrize("metric", ["mahalanobis", "gower", "seuclidean", "manhattan"])
def test_the_metric_is_the_one_fitted_to_the_training_points(metric):
    X, new = sample("plain")
    new = new * [4.0, 0.2]
    graph = NeighborGraph.from_points(X, 5, metric=metric)
    fitted = graph.metric
    rows = np.concatenate([fitted.transform(X), fitted.transform(new)])
    distances = fitted.distances(rows, fitted.arrange(rows))
    joint = graph.join(new, 30)
    np.testing.assert_array_equal(joint.neighbors, sort_plainly(distances, len(X), 30))
    if metric != "manhattan":
        # Fitted to all points it would be another one.
        refitted = NeighborGraph.from_points(np.concatenate([X, new]), 30, metric=metric)
        assert np.mean(refitted.neighbors != joint.neighbors) > 0.1


@pytest.mark.parametrize("kind", ["plain", "lattice"])
def test_one_new_point_joins_as_a_query_says(kind):
    X, new = sample(kind)
    graph = NeighborGraph.from_points(X, 7)
    query = graph.query(new)
    for q in range(20):
        joint = graph.join(new[q : q + 1], 7)
        np.testing.assert_array_equal(joint.neighbors[:, -1], query.neighbors[:, q])
        reverse = slice(query.reverse_starts[q], query.reverse_starts[q + 1])
        found = np.argwhere(joint.neighbors[:, :-1] == len(X))
        expected = np.column_stack(
            [query.reverse_ranks[reverse] - 1, query.reverse_points[reverse]]
        )
        np.testing.assert_array_equal(found, expected)


def test_a_tree_gives_its_points_back():
    points = np.random.default_rng(0).normal(size=(200, 3))
    np.testing.assert_array_equal(build_tree(points, order_ties(200)).points(), points)


def test_graphs_that_cannot_place_new_points_say_so():
    X, new = sample("plain")
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    with pytest.raises(ValueError, match="distances among new points are not known"):
        NeighborGraph.from_points(distances, 3, metric="precomputed").join(distances[:2], 3)
    with pytest.raises(ValueError, match="given by its lists cannot place new points"):
        NeighborGraph.from_neighbors([[1, 0]]).join([[0.0]], 1)
    with pytest.raises(ValueError, match="k_max"):
        NeighborGraph.from_points(X, 3).join(new[:2], 42)
