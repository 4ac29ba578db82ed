"""faiss proposes, and says what part of the neighbours it finds."""

import pickle
import sys

import numpy as np
import pytest

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.graph import NeighborGraph

APPROXIMATE = ["faiss-hnsw", "faiss-ivf"]


def blobs(n=600, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) + 3.0 * rng.integers(0, 3, size=(n, 1))


def assert_same_query(one, other):
    for name in ("neighbors", "distances", "reverse_starts", "reverse_points", "reverse_ranks"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "mahalanobis"])
@pytest.mark.parametrize("search", APPROXIMATE)
def test_an_index_that_sees_every_point_is_exact(search, metric):
    # With as many candidates as there are points nothing can be missed, reverse ones included.
    points = np.round(blobs(300), 1)
    params = {"n_candidates": 300}
    params |= {"n_lists": 4, "n_probes": 4} if search == "faiss-ivf" else {"ef_search": 300}
    found = NeighborGraph.from_points(points, 12, metric, search=search, search_params=params)
    exact = NeighborGraph.from_points(points, 12, metric)
    assert not found.exact
    assert found.recall.value == 1.0 and found.recall.n_queries == 200
    np.testing.assert_array_equal(found.neighbors, exact.neighbors)
    np.testing.assert_array_equal(found.distances, exact.distances)
    new = blobs(40, seed=3)
    assert_same_query(found.query(new), exact.query(new))
    np.testing.assert_array_equal(found.join(new, 5).neighbors, exact.join(new, 5).neighbors)


def test_the_recall_of_a_pool_is_that_of_all_points():
    points, labels = blobs(900, 6), np.repeat([0, 1], [30, 870])
    params = {"n_lists": 20, "n_probes": 1}
    clf = PooledNeighborsClassifier(
        ["robust"], search="faiss-ivf", search_params=params, max_neighbors=20, random_state=0
    ).fit(points, labels)
    recall = clf._views["robust"].space.searched.index.recall
    assert recall.value < 1
    stated = clf.diagnostics_["search"]["robust"]
    assert (stated["recall"], stated["recall_error"]) == (recall.value, recall.error)


def test_recall_is_what_a_full_comparison_says():
    points = blobs(4000, 6)
    params = {"n_lists": 60, "n_probes": 2}
    found = NeighborGraph.from_points(points, 10, search="faiss-ivf", search_params=params)
    exact = NeighborGraph.from_points(points, 10)
    shares = (found.distances <= exact.distances[-1]).mean(axis=0)
    assert found.recall.value < 0.99
    assert abs(found.recall.value - shares.mean()) < 5 * found.recall.error
    assert (np.diff(found.distances, axis=0) >= 0).all()


def test_lists_too_short_to_be_found_are_measured():
    # One list of two is opened, with fewer members than k.
    points = np.append(np.zeros((70, 2)), 1000.0 + np.zeros((10, 2)), axis=0)
    points += np.random.default_rng(0).normal(size=points.shape)
    params = {"n_lists": 2, "n_probes": 1}
    found = NeighborGraph.from_points(points, 30, search="faiss-ivf", search_params=params)
    exact = NeighborGraph.from_points(points, 30)
    np.testing.assert_array_equal(found.neighbors[:, 70:], exact.neighbors[:, 70:])
    query = found.query(points[75:77] + 0.5)
    np.testing.assert_array_equal(query.neighbors, exact.query(points[75:77] + 0.5).neighbors)


@pytest.mark.parametrize("search", APPROXIMATE)
def test_the_answer_does_not_depend_on_threads(search):
    points, new = blobs(3000, 8), blobs(100, 8, seed=1)
    one, two = (
        NeighborGraph.from_points(points, 10, search=search, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.neighbors, two.neighbors)
    assert_same_query(one.query(new, n_jobs=1), two.query(new, n_jobs=2))


@pytest.mark.parametrize("search", [*APPROXIMATE, "kd_tree", "ball_tree", "brute"])
def test_an_index_saved_and_loaded_answers_the_same(search):
    points, new = blobs(500, 3), blobs(50, 3, seed=1)
    graph = NeighborGraph.from_points(points, 8, search=search)
    loaded = pickle.loads(pickle.dumps(graph))
    assert loaded.exact == graph.exact and loaded.recall == graph.recall
    assert loaded.index.name == search
    assert_same_query(loaded.query(new), graph.query(new))
    again = pickle.loads(pickle.dumps(loaded))  # before it was ever opened
    assert_same_query(again.query(new), graph.query(new))


@pytest.mark.parametrize("search", APPROXIMATE)
def test_a_saved_classifier_answers_the_same(search, tmp_path):
    import skops.io

    X, y = blobs(300), np.arange(300) % 2
    clf = BayesianKNeighborsClassifier(
        "pseudo", search=search, max_neighbors=15, n_draws=100, random_state=0
    ).fit(X, y)
    skops.io.dump(clf, tmp_path / "model.skops")
    loaded = skops.io.load(tmp_path / "model.skops", trusted=[BayesianKNeighborsClassifier])
    new = blobs(20, seed=4)
    np.testing.assert_array_equal(loaded.predict_proba(new), clf.predict_proba(new))
    found = clf.diagnostics_["search"]
    assert found["name"] == search and not found["exact"]
    assert 0.9 < found["recall"] <= 1.0 and found["recall_error"] >= 0.0
    assert any("is approximate: it found" in sentence for sentence in clf.diagnostics_["warnings"])


def test_exact_searches_give_the_same_classifier():
    X, y, new = np.round(blobs(300), 1), np.arange(300) % 3, blobs(20, seed=4)
    fits = [
        BayesianKNeighborsClassifier(
            "pseudo", search=search, max_neighbors=15, n_draws=100, random_state=0
        ).fit(X, y)
        for search in ("auto", "brute", "ball_tree", "blocked")
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.predict_proba(new), fits[0].predict_proba(new))
        assert other.diagnostics_["search"]["exact"]


def test_the_pool_takes_a_search_too():
    X, y, new = blobs(200), np.arange(200) % 2, blobs(20, seed=4)
    made = {
        search: PooledNeighborsClassifier(
            ("robust", "within"), search=search, max_neighbors=15, random_state=0
        ).fit(X, y)
        for search in ("auto", "brute", "faiss-hnsw")
    }
    auto = made["auto"].predict_proba(new)
    np.testing.assert_array_equal(made["brute"].predict_proba(new), auto)
    # So few points are all found.
    np.testing.assert_allclose(made["faiss-hnsw"].predict_proba(new), auto, atol=0.02)
    assert made["faiss-hnsw"].diagnostics_["search"]["robust"]["name"] == "faiss-hnsw"
    assert len(made["faiss-hnsw"].diagnostics_["warnings"]) == 2
    assert made["auto"].diagnostics_["warnings"] == []


@pytest.mark.parametrize("search", APPROXIMATE)
def test_without_faiss_a_sentence_names_the_extra(search, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"needs faiss, .* pip install 'bayesknn\[ann\]'"):
        NeighborGraph.from_points(blobs(), 5, search=search)


def test_searches_that_do_not_fit():
    points = blobs(50)
    with pytest.raises(ValueError, match="search must be one of auto, brute, .*, got 'faiss'"):
        NeighborGraph.from_points(points, 5, search="faiss")
    with pytest.raises(ValueError, match="Euclidean and city-block distances, not for metric 'can"):
        NeighborGraph.from_points(points, 5, metric="canberra", search="faiss-hnsw")
    with pytest.raises(ValueError, match="'kd_tree' does not take the parameter 'ef_search' in"):
        NeighborGraph.from_points(points, 5, search="kd_tree", search_params={"ef_search": 3})
    with pytest.raises(ValueError, match="search_params must be a dict or None, got"):
        NeighborGraph.from_points(points, 5, search="faiss-ivf", search_params=[1])
    with pytest.raises(ValueError, match=r"search_params\['n_probes'\] must be"):
        NeighborGraph.from_points(points, 5, search="faiss-ivf", search_params={"n_probes": 0.5})
