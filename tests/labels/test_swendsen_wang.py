"""The compiled Swendsen-Wang sweep against its plain twin, its arguments and its information."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn import reference
from bayesknn._utils.random import spawn_keys
from bayesknn.graph import NeighborGraph
from bayesknn.labels.swendsen_wang import new_workspace, sweep_clusters
from tests.labels import swendsen_wang_twin as twin
from tests.labels.cases import sweep_key
from tests.labels.samplers import swendsen_wang_labels
from tests.model.enumeration import as_reference

KEY = spawn_keys(3, 1)[0]


def random_graph(n, k_max, seed):
    points = np.random.default_rng(seed).normal(size=(n, 2))
    return NeighborGraph.from_points(points, k_max)


def compare_with_twin(graph, k, beta, n_classes, class_weight, key, sweep, labels, capacity):
    workspace = new_workspace(labels, n_classes, class_weight is not None, capacity)
    expected, roots = twin.sweep_labels(graph, k, beta, n_classes, class_weight, key, sweep, labels)
    arguments = (graph.neighbors, k, beta, n_classes, class_weight, key, np.uint64(sweep))
    sweep_clusters(*arguments, labels, workspace)
    np.testing.assert_array_equal(workspace.roots, roots)
    np.testing.assert_array_equal(labels, expected)


@given(data=st.data())
def test_same_labels_as_the_twin(data):
    n = data.draw(st.integers(2, 30), "n")
    k_max = data.draw(st.integers(1, n - 1), "k_max")
    k = data.draw(st.integers(1, k_max), "k")
    n_classes = data.draw(st.integers(2, 5), "n_classes")
    beta = data.draw(st.sampled_from([0.0, 0.01, 0.4, 1.0, 1.5, 4.0, 30.0]), "beta")
    seed = data.draw(st.integers(0, 2**32), "seed")
    sweep = data.draw(st.integers(0, 10**6), "sweep")
    capacity = data.draw(st.sampled_from([1, 7, 10_000]), "capacity")
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 2.0, n_classes) if data.draw(st.booleans(), "weighted") else None
    labels = rng.integers(0, n_classes, n).astype(np.uint8)
    graph = random_graph(n, k_max, seed)
    key = rng.integers(2**64, dtype=np.uint64)
    compare_with_twin(graph, k, beta, n_classes, weights, key, sweep, labels, capacity)


@pytest.mark.parametrize("capacity", [200, 0])
@pytest.mark.parametrize("beta", [1.2, 3.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_same_labels_as_the_twin_across_blocks(beta, weighted, capacity):
    rng = np.random.default_rng(5)
    graph = random_graph(2500, 5, seed=5)
    weights = np.array([0.7, 1.0, 1.2]) if weighted else None
    labels = rng.integers(0, 3, 2500).astype(np.uint8)
    compare_with_twin(graph, 5, beta, 3, weights, KEY, 2, labels, capacity)


def test_many_classes():
    graph = random_graph(40, 4, seed=1)
    labels, _ = swendsen_wang_labels(graph, 1.0, 4, 1000, key=KEY, n_draws=50)
    assert labels.dtype == np.uint32
    assert labels.max() > 255


PATH = np.append(np.arange(1, 500), 498)


@pytest.mark.parametrize(
    "neighbors",
    [
        [PATH],
        [499 - PATH[::-1]],
        [[499] * 499 + [0]],
        [[1] + [0] * 499],
        [(500 - np.arange(500)) % 500, 499 - np.arange(500)],
    ],
    ids=["path", "path backwards", "star at the highest", "star at the lowest", "zigzag"],
)
def test_clusters_of_awkward_shapes(neighbors):
    """Of one class and with strong bonds all of a graph is bound, in one round or in many."""
    own = np.arange(500)
    # Two points of the zigzag stand across from themselves.
    graph = NeighborGraph.from_neighbors(np.where(neighbors == own, own + 1, neighbors))
    for beta in (0.5, 3.0, 60.0):
        compare_with_twin(graph, graph.k_max, beta, 2, None, KEY, 1, np.zeros(500, np.uint8), 0)


@pytest.mark.parametrize("class_weight", [None, [0.6, 1.1, 1.4]])
def test_information_describes_the_draws(class_weight):
    graph = random_graph(60, 12, seed=2)
    options = dict(key=KEY, n_draws=20, n_warmup=7, thin=3, class_weight=class_weight)
    labels, info = swendsen_wang_labels(graph, 1.3, 5, 3, **options)
    assert labels.shape == (20, 60)
    assert info.n_sweeps == 7 + 20 * 3
    near, a = as_reference(graph, 3, class_weight)
    np.testing.assert_allclose(info.agreement, reference.agreement(near, a, labels, 5))


@pytest.mark.parametrize("class_weight", [None, [0.6, 1.1, 1.4]])
@pytest.mark.parametrize("beta", [0.8, 4.0])
def test_cluster_estimator_is_the_expectation_given_the_clusters(class_weight, beta):
    graph, k = random_graph(25, 4, seed=4), 3
    initial = np.random.default_rng(1).integers(0, 3, 25)
    options = dict(key=KEY, n_warmup=0, initial=initial, class_weight=class_weight)
    near, a = as_reference(graph, 3, class_weight)
    _, roots = twin.sweep_labels(graph, k, beta, 3, class_weight, KEY, 0, initial)
    bonds = twin.draw_bonds(near, k, beta, a, sweep_key(KEY, 0), initial).sum(axis=1)
    law = reference.softmax(np.bincount(roots, bonds, minlength=25)[:, None] * np.log(a))
    expected = 0.0
    for recorded_k, row in enumerate(graph.neighbors[:k], 1):
        for one, other in zip(roots, roots[row], strict=True):
            expected += (a * law[one] * (1.0 if one == other else law[other])).sum()
        _, info = swendsen_wang_labels(graph, beta, k, 3, recorded_k=recorded_k, **options)
        np.testing.assert_allclose(info.cluster_agreement, expected)


def test_the_chain_can_be_cut_anywhere(monkeypatch):
    graph = random_graph(50, 6, seed=6)
    options = dict(key=KEY, n_draws=30, n_warmup=20, thin=2)
    labels, info = swendsen_wang_labels(graph, 1.0, 6, 2, **options)
    monkeypatch.setattr("bayesknn.labels.mixing._OPERATIONS_PER_CALL", 1.0)
    cut, cut_info = swendsen_wang_labels(graph, 1.0, 6, 2, **options)
    np.testing.assert_array_equal(cut, labels)
    np.testing.assert_array_equal(cut_info.cluster_agreement, info.cluster_agreement)
    # More warm-up is the same chain, kept from later on.
    late, _ = swendsen_wang_labels(graph, 1.0, 6, 2, key=KEY, n_draws=10, n_warmup=60, thin=2)
    np.testing.assert_array_equal(late, labels[20:])


def test_initial_labels_are_where_the_chain_starts():
    graph = random_graph(30, 3, seed=7)
    initial = np.random.default_rng(0).integers(0, 2, 30)
    labels, _ = swendsen_wang_labels(graph, 0.7, 3, 2, key=KEY, n_warmup=0, initial=initial)
    expected, _ = twin.sweep_labels(graph, 3, 0.7, 2, None, KEY, 0, initial)
    np.testing.assert_array_equal(labels[0], expected)


def test_equal_weights_are_a_change_of_beta():
    graph = random_graph(40, 5, seed=8)
    weighted, info = swendsen_wang_labels(
        graph, 1.0, 5, 3, key=KEY, n_draws=10, class_weight=[1.5, 1.5, 1.5]
    )
    plain, plain_info = swendsen_wang_labels(graph, 1.5, 5, 3, key=KEY, n_draws=10)
    np.testing.assert_array_equal(weighted, plain)
    np.testing.assert_allclose(info.agreement, 1.5 * plain_info.agreement)


def test_same_labels_whatever_the_number_of_threads():
    graph = random_graph(300, 10, seed=9)

    def draw(key):
        return swendsen_wang_labels(graph, 1.4, 10, 3, key=key, n_draws=20)[0]

    keys = spawn_keys(11, 8)
    alone = [draw(key) for key in keys]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(draw, keys))
    np.testing.assert_array_equal(together, alone)
    assert not np.array_equal(alone[0], alone[1])
