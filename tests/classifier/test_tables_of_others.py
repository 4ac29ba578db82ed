"""Tables and labels as other libraries hand them on: sparse, with gaps, of Arrow and of Dask."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    PooledNeighborsClassifier,
)
from bayesknn.graph import NeighborGraph

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = (X[:, 0] + 0.5 * RNG.normal(size=N) > 0).astype(int)
BAYESIAN = BayesianKNeighborsClassifier("pseudo", max_neighbors=8, beta_max=4.0, random_state=0)
CLASSICAL = ClassicalKNeighborsClassifier()
POOL = PooledNeighborsClassifier(("evidence",), n_folds=3, random_state=0)
ALL = pytest.mark.parametrize(
    "clf", [BAYESIAN, CLASSICAL, POOL], ids=lambda clf: type(clf).__name__
)


@ALL
def test_sparse_features_are_those_of_the_array(clf):
    words = np.array([["a", "b", "c"][i % 3] for i in range(N)])[:, None]
    dense, thin = (OneHotEncoder(sparse_output=how).fit_transform(words) for how in (False, True))
    expected = clf.fit(dense, Y).predict_proba(dense)
    np.testing.assert_array_equal(clf.fit(thin, Y).predict_proba(thin), expected)
    in_pipeline = make_pipeline(OneHotEncoder(), clf).fit(words, Y)
    np.testing.assert_array_equal(in_pipeline.predict_proba(words), expected)


@ALL
def test_a_sparse_table_that_is_too_large_names_the_option_of_the_encoder(clf):
    huge = sparse.csr_array((N, 10**7))
    with pytest.raises(ValueError, match=r"OneHotEncoder\(.*sparse_output=False\)") as error:
        clf.fit(huge, Y)
    assert "\n" not in str(error.value)


def frames(values):
    """Return the same table of two named columns of each library."""
    columns = {"a": values[:, 0], "b": values[:, 1]}
    table = pa.table(columns)
    return {
        "pandas": pd.DataFrame(columns), "polars": pl.DataFrame(columns), "table": table,
        "batch": table.combine_chunks().to_batches()[0],
    }  # fmt: skip


@ALL
@pytest.mark.parametrize("kind", ["polars", "table", "batch"])
def test_frames_have_names(clf, kind):
    clf.fit(frames(X)[kind], Y)
    assert clf.feature_names_in_.tolist() == ["a", "b"]
    new, others = (frames(values)[kind] for values in (X[:4], X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = clf.predict_contributions(new, background=others)
    clf.fit(frames(X)["pandas"], Y)
    wanted = clf.predict_contributions(frames(X[:4])["pandas"], frames(X)["pandas"])
    np.testing.assert_allclose(found, wanted, atol=1e-10)
    with pytest.raises(ValueError, match="feature names|built on"):
        clf.predict_proba(others.select(["b", "a"]))


@ALL
@pytest.mark.parametrize(
    "labels",
    [
        pa.array(np.array(["no", "yes"])[Y]),
        pa.array(Y == 1),
        pa.array(Y),
        pa.array(np.array(["no", "yes"])[Y]).dictionary_encode(),
        pa.chunked_array([np.array(["no", "yes"])[Y]]),
    ],
    ids=["text", "booleans", "numbers", "dictionary", "chunks"],
)
def test_labels_of_arrow(clf, labels):
    clf.fit(X, labels)
    assert clf.classes_.tolist() in (["no", "yes"], [False, True], [0, 1])
    assert set(clf.predict(X)) <= set(labels.to_pylist())


@ALL
def test_logs_of_probabilities(clf):
    clf.fit(X, Y)
    with np.errstate(divide="ignore"):
        expected = np.log(clf.predict_proba(X))
    np.testing.assert_array_equal(clf.predict_log_proba(X), expected)


def test_the_classical_rule_takes_the_neighbours_that_a_sparse_graph_stores():
    transformer = KNeighborsTransformer(n_neighbors=6, mode="distance")
    pipeline = make_pipeline(transformer, ClassicalKNeighborsClassifier(metric="precomputed"))
    pipeline.fit(X, Y)
    # The transformer counts each point as its own first neighbour.
    assert len(pipeline[-1].loo_errors_) == 6
    assert pipeline.predict(X).shape == (N,)


def test_the_classical_rule_predicts_blocks():
    clf = ClassicalKNeighborsClassifier().fit(X, Y)
    blocks = da.from_array(X, chunks=(25, 2))
    for method in (clf.predict, clf.predict_proba, clf.predict_log_proba):
        found = method(blocks)
        assert isinstance(found, da.Array)
        np.testing.assert_array_equal(found.compute(), method(X))


def with_gaps(n_columns=4):
    values = RNG.normal(size=(N, n_columns))
    values[RNG.random(values.shape) < 0.2] = np.nan
    values[:, 0] = X[:, 0]
    return values


def test_distances_with_gaps_are_those_of_scikit_learn():
    values = with_gaps()
    graph = NeighborGraph.from_points(values, 5, metric="nan_euclidean")
    expected = np.sort(nan_euclidean_distances(values) + np.diag([np.inf] * N), axis=1)[:, :5]
    np.testing.assert_allclose(graph.distances.T, expected, atol=1e-12)
    rule = KNeighborsClassifier(5, metric="nan_euclidean").fit(values, Y)
    ours = ClassicalKNeighborsClassifier(5, metric="nan_euclidean").fit(values, Y)
    new = with_gaps()
    np.testing.assert_allclose(ours.predict_proba(new), rule.predict_proba(new))
    clf = BAYESIAN.set_params(metric="nan_euclidean").fit(values, Y)
    assert clf.predict_proba(new).shape == clf.predict_interval(new)[..., 0].shape == (N, 2)
    BAYESIAN.set_params(metric="euclidean")


def test_points_without_a_common_column_are_no_neighbours():
    values = np.array([[1.0, np.nan], [np.nan, 2.0], [1.0, 2.0], [0.0, 1.0]])
    graph = NeighborGraph.from_points(values, 2, metric="nan_euclidean")
    assert graph.neighbors[:, :2].T.tolist() == [[2, 3], [2, 3]]
    # Also where there are more candidates than are kept while a row is ranked.
    many = np.tile(values[1:2], (500, 1))
    graph = NeighborGraph.from_points(np.r_[values, many], 2, metric="nan_euclidean")
    assert graph.neighbors[:, 0].tolist() == [2, 3]
    message = r"\[1\.0, nan\] has a distance to 2 training points, fewer than the 3"
    with pytest.raises(ValueError, match=message) as error:
        NeighborGraph.from_points(values, 3, metric="nan_euclidean")
    assert "\n" not in str(error.value)
    others = NeighborGraph.from_points(np.r_[values[1:], values[2:3]], 2, metric="nan_euclidean")
    assert others.query([[1.0, np.nan]]).neighbors.shape == (2, 1)
    with pytest.raises(ValueError, match="to 1 training points, fewer than the 2"):
        NeighborGraph.from_points(values[[1, 2, 1]], 2, metric="nan_euclidean").query(values[:1])
