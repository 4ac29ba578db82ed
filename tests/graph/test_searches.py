"""Searches that were removed, and lists of other libraries in their place."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.graph import NeighborGraph

X = np.random.default_rng(0).normal(size=(80, 2))
Y = (X[:, 0] > 0).astype(int)
MODELS = [BayesianKNeighborsClassifier("pseudo", max_neighbors=10), PooledNeighborsClassifier()]


@pytest.mark.parametrize("clf", MODELS)
@pytest.mark.parametrize("search", ["faiss-hnsw", "faiss-ivf"])
def test_a_removed_search_says_what_to_do(clf, search):
    with pytest.raises(ValueError, match="was removed: pass the lists .* metric='precomputed'"):
        clf.set_params(search=search).fit(X, Y)
    clf.set_params(search="auto")


@pytest.mark.parametrize("clf", MODELS)
def test_searches_have_no_parameters(clf):
    with pytest.raises(ValueError, match="search_params must be None: no search has parameters"):
        clf.set_params(search_params={"n_links": 3}).fit(X, Y)
    clf.set_params(search_params=None)
    with pytest.raises(ValueError, match="search_params must be None"):
        NeighborGraph.from_points(X, 3, search_params={"x": 1})


def test_lists_of_another_library_give_the_same_answer():
    """Training rows store K neighbours, new rows all that they may be reverse neighbours of."""
    new = X[:20] + 0.01
    finder = NearestNeighbors(n_neighbors=80).fit(X)
    options = {"max_neighbors": 10, "beta_max": 6.0, "n_draws": 50, "random_state": 0}
    ref = BayesianKNeighborsClassifier("pseudo", **options).fit(X, Y)

    def as_graph(rows, n_stored, drop_first):
        distances, indices = finder.kneighbors(rows, n_stored)
        distances, indices = distances[:, drop_first:], indices[:, drop_first:]
        m, s = indices.shape
        return csr_array((distances.ravel(), indices.ravel(), np.arange(0, m * s + 1, s)), (m, 80))

    clf = BayesianKNeighborsClassifier("pseudo", metric="precomputed", **options)
    clf.fit(as_graph(X, 12, 1), Y)
    found = clf.predict_proba(as_graph(new, 80, 0))
    np.testing.assert_allclose(found, ref.predict_proba(new), atol=1e-10)
