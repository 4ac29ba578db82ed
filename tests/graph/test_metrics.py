"""Metrics against scikit-learn, NumPy and obvious twins."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import pairwise_distances

from bayesknn import reference
from bayesknn.graph import NeighborGraph
from bayesknn.graph.metrics import (
    Euclidean,
    Mahalanobis,
    Precomputed,
    ScikitLearnMetric,
    make_metric,
)
from bayesknn.graph.search.back_ends import _choose
from tests.graph import twins


def blobs(n=60, p=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def measure(metric, points):
    numbers = metric.fit(points)
    return metric.distances(numbers, metric.arrange(numbers))


def test_euclidean_is_the_twin_to_the_bit():
    for p in (1, 2, 3, 4, 5, 8, 17):
        points = blobs(30, p)
        np.testing.assert_array_equal(
            measure(Euclidean(), points), reference.distances(points, points)
        )


def test_mahalanobis_is_the_formula():
    points = blobs() @ np.array([[2.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 0.1]])
    inverse = np.linalg.inv(np.cov(points, rowvar=False))
    expected = pairwise_distances(points, metric="mahalanobis", VI=inverse)
    np.testing.assert_allclose(measure(Mahalanobis(), points), expected, rtol=1e-9, atol=1e-9)
    for params in ({"VI": inverse}, {"V": np.cov(points, rowvar=False)}):
        np.testing.assert_allclose(
            measure(Mahalanobis(**params), points), expected, rtol=1e-9, atol=1e-9
        )


def test_mahalanobis_measures_queries_by_the_training_covariance():
    points, new = blobs(), 5.0 + blobs(7, seed=1)
    query = NeighborGraph.from_points(points, 4, metric="mahalanobis").query(new)
    inverse = np.linalg.inv(np.cov(points, rowvar=False))
    rows = pairwise_distances(new, points, metric="mahalanobis", VI=inverse)
    np.testing.assert_array_equal(query.neighbors, twins.rank(rows, 4)[0])


def test_mahalanobis_does_not_depend_on_units():
    points = blobs()
    scaled = points * np.array([1e-9, 1.0, 1e9])
    np.testing.assert_allclose(
        measure(Mahalanobis(), scaled), measure(Mahalanobis(), points), rtol=1e-9, atol=1e-12
    )


def test_a_singular_covariance_takes_the_pseudo_inverse_and_says_so():
    points = blobs()
    points[:, 2] = points[:, 0] + points[:, 1]
    with pytest.warns(UserWarning, match=r"singular \(rank 2 of 3\).*pseudo-inverse"):
        found = measure(Mahalanobis(), points)
    inverse = np.linalg.pinv(np.cov(points, rowvar=False), rcond=1e-10)
    gaps = points[:, None] - points[None]
    expected = np.sqrt(np.maximum(np.einsum("ijf,fg,ijg->ij", gaps, inverse, gaps), 0))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    points[:, 2] = 4.0
    with pytest.warns(UserWarning, match="column 2 is constant"):
        measure(Mahalanobis(), points)


@pytest.mark.parametrize(
    ("metric", "params"),
    [
        ("manhattan", None),
        ("chebyshev", None),
        ("minkowski", {"p": 3}),
        ("minkowski", {"p": 1.5, "w": np.array([1.0, 2.0, 0.5])}),
        ("canberra", None),
        ("braycurtis", None),
        ("seuclidean", None),
        ("cosine", None),
        ("correlation", None),
        ("sqeuclidean", None),
    ],
)
def test_names_mean_what_they_mean_in_scikit_learn(metric, params):
    points = np.abs(blobs())
    params = params or {}
    found = measure(ScikitLearnMetric(metric, **params), points)
    np.testing.assert_allclose(
        found, pairwise_distances(points, metric=metric, **params), rtol=1e-7, atol=1e-9
    )
    graph = NeighborGraph.from_points(points, 5, metric=metric, metric_params=params)
    np.testing.assert_array_equal(graph.neighbors, twins.rank(found, 5, is_self=True)[0])


def test_seuclidean_keeps_the_training_variances():
    points = blobs()
    query = NeighborGraph.from_points(points, 3, metric="seuclidean").query(100 * points[:5])
    rows = pairwise_distances(
        100 * points[:5], points, metric="seuclidean", V=points.var(axis=0, ddof=1)
    )
    np.testing.assert_allclose(query.distances, np.sort(rows, axis=1)[:, :3].T)


def weighted_l1(a, b, weight=1.0):
    return weight * float(np.abs(a - b).sum())


@pytest.mark.parametrize("search", ["auto", "brute"])
def test_a_callable_with_its_parameters(search):
    points = np.random.default_rng(4).integers(0, 4, size=(40, 2)).astype(float)
    graph = NeighborGraph.from_points(
        points, 6, metric=weighted_l1, metric_params={"weight": 2.0}, search=search
    )
    plain = NeighborGraph.from_points(points, 6, metric="manhattan")
    np.testing.assert_array_equal(graph.neighbors, plain.neighbors)
    np.testing.assert_array_equal(graph.distances, 2 * plain.distances)
    np.testing.assert_array_equal(graph.query(points).neighbors, plain.query(points).neighbors)


def test_scikit_learns_default_name_is_euclidean():
    assert isinstance(make_metric("minkowski"), Euclidean)
    assert isinstance(make_metric("minkowski", {"p": 2}), Euclidean)
    assert isinstance(make_metric("l2"), Euclidean)


@pytest.mark.parametrize("params", [{"p": 2, "z": 1}, {"z": 1}, {"p": 3, "z": 1}])
def test_a_parameter_that_minkowski_does_not_have(params):
    with pytest.raises(ValueError, match="'minkowski' does not take the parameter 'z'"):
        make_metric("minkowski", params)


def test_a_metric_given_as_an_object_is_not_changed():
    metric = Mahalanobis()
    first = NeighborGraph.from_points(blobs(), 3, metric=metric)
    before = first.query(blobs(5, seed=2))
    NeighborGraph.from_points(7.0 * blobs(30, 2, seed=1), 3, metric=metric)
    assert vars(metric) == vars(Mahalanobis())
    np.testing.assert_array_equal(first.query(blobs(5, seed=2)).distances, before.distances)
    with pytest.raises(ValueError, match=r"metric_params does not go with Mahalanobis\(\)"):
        NeighborGraph.from_points(blobs(), 3, metric=metric, metric_params={"V": np.eye(3)})


def test_a_subclass_of_precomputed_is_precomputed():
    class Renamed(Precomputed):
        name = "travel times"

    distances = measure(Euclidean(), blobs())
    graph = NeighborGraph.from_points(csr_array(distances), 4, metric=Renamed())
    np.testing.assert_array_equal(graph.neighbors, twins.rank(distances, 4, is_self=True)[0])


def test_a_graph_knows_its_metric():
    graph = NeighborGraph.from_points(blobs(), 3, metric="mahalanobis")
    assert graph.metric.name == "mahalanobis"
    assert graph.index.name == "brute"


def test_what_auto_chooses_where_distances_are_not_euclidean():
    many, few = np.zeros((60_000, 2)), np.zeros((100, 2))
    assert _choose(make_metric("manhattan"), few) == "brute"
    assert _choose(make_metric("manhattan"), many) == "ball_tree"
    for metric in ("cosine", "gower", weighted_l1):
        assert _choose(make_metric(metric), many) == "brute"
