"""The Bayesian classifier among others: frames, pipelines, searches, callbacks and files."""

import copy
import pickle
from importlib.util import find_spec

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    PooledNeighborsClassifier,
)
from bayesknn.datasets import load_glass, load_pima, load_ripley
from bayesknn.graph import neighbor_graph
from bayesknn.model import UniformPrior

RIPLEY = load_ripley()
X, Y = RIPLEY.X_train[::3], RIPLEY.y_train[::3]
NEW = RIPLEY.X_test[::20]
# Quick, and the same bits every time.
QUICK = {
    "likelihood": "pseudo", "max_neighbors": 12, "beta_max": 4.0, "n_draws": 500, "random_state": 0,
}  # fmt: skip
TYPE = "bayesknn.classifier.BayesianKNeighborsClassifier"


def make(**parameters):
    return BayesianKNeighborsClassifier(**QUICK | parameters)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_give_what_arrays_give(frame):
    pima = load_pima()
    train, test = (
        frame(dict(zip(pima.feature_names, part.T, strict=True)))
        for part in (pima.X_train, pima.X_test)
    )
    series = pd.Series(pima.y_train) if frame is pd.DataFrame else pl.Series(pima.y_train)
    arrays, frames = make().fit(pima.X_train, pima.y_train), make().fit(train, series)
    assert frames.feature_names_in_.tolist() == pima.feature_names
    np.testing.assert_array_equal(
        frames.predict_proba(test), arrays.predict_proba(pima.X_test)
    )  # fmt: skip
    with pytest.raises(ValueError, match="feature names"):
        frames.predict(test[test.columns[::-1]])


def test_categories_through_gower_in_either_frame():
    table = {"size": np.arange(30.0), "colour": ["red", "blue", "red"] * 10}
    y = np.repeat(["a", "b"], 15)
    fits = [
        make(metric="gower").fit(frame(table), y).predict_proba(frame(table))
        for frame in (pd.DataFrame, pl.DataFrame)
    ]
    np.testing.assert_array_equal(*fits)


def test_sparse_graphs_of_the_neighbours_transformer():
    """A graph that stores every distance gives what the points give."""
    points = make(max_neighbors=None).fit(X, Y)
    pipeline = make_pipeline(
        KNeighborsTransformer(n_neighbors=len(X) - 1, mode="distance"),
        make(max_neighbors=None, metric="precomputed"),
    ).fit(X, Y)
    np.testing.assert_allclose(pipeline.predict_proba(NEW), points.predict_proba(NEW), atol=1e-6)
    short = make_pipeline(
        KNeighborsTransformer(n_neighbors=7, mode="distance"),
        make(max_neighbors=None, metric="precomputed"),
    ).fit(X, Y)
    assert short[-1].k_values_.tolist() == list(range(1, 8))
    assert short[-1].__sklearn_tags__().input_tags.sparse
    with pytest.warns(UserWarning, match="are likely not stored"):
        np.testing.assert_allclose(short.predict_proba(NEW).sum(axis=1), 1.0)


def test_pipeline_and_searches():
    pipeline = make_pipeline(StandardScaler(), make())
    grid = {"bayesiankneighborsclassifier__likelihood": ["pseudo", "holmes-adams"]}
    search = GridSearchCV(pipeline, grid, scoring="neg_log_loss", cv=3).fit(X, Y)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_estimator_.predict(NEW).shape == (len(NEW),)
    proba = cross_val_predict(pipeline, X, Y, method="predict_proba", cv=3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_calibration_and_stacking():
    calibrated = CalibratedClassifierCV(make(), cv=3).fit(X, Y)
    np.testing.assert_allclose(calibrated.predict_proba(NEW).sum(axis=1), 1.0)
    stack = StackingClassifier([("bayes", make()), ("line", LogisticRegression())], cv=3)
    assert stack.fit(X, Y).score(RIPLEY.X_test, RIPLEY.y_test) > 0.8


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
def test_threads_give_the_same_bits():
    for inference, likelihood in (("metropolis", "pseudo"), ("grid", "coherent")):
        fits = [
            make(
                likelihood=likelihood, inference=inference, n_jobs=n_jobs, n_chains=2,
                n_draws=500, n_warmup=200,
            ).fit(X, Y)
            for n_jobs in (None, 2)
        ]  # fmt: skip
        assert fits[0].posterior_.identical(fits[1].posterior_)
        np.testing.assert_array_equal(*(clf.predict_proba(NEW) for clf in fits))


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_the_back_end_of_joblib_does_not_matter(backend):
    glass = load_glass()
    clf = BayesianKNeighborsClassifier(random_state=0)
    alone = clf.fit(glass.X_train, glass.y_train).predict_proba(glass.X_test)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        among_others = clf.fit(glass.X_train, glass.y_train).predict_proba(glass.X_test)
    np.testing.assert_array_equal(alone, among_others)


def test_a_fit_leaves_its_parameters_alone():
    clf = make()
    before = clf.get_params()
    assert clf.fit(X, Y).get_params() == before
    assert clone(clf).get_params() == before


def test_callbacks_hear_of_every_stage():
    class Listener:
        def __init__(self):
            self.heard = []

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            self.heard.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.heard.append(context.task_name)

    if find_spec("sklearn.callback") is None:
        # An older scikit-learn: there is nobody to tell.
        assert not hasattr(make().fit(X, Y), "set_callbacks")
        return
    listener = Listener()
    make().set_callbacks(listener).fit(X, Y)
    stages = ["neighbours", "beta_max", "posterior", "leave-one-out"]
    assert listener.heard == [*stages, "fit", "teardown"]
    # One that fails has an end too, and so has the fit.
    listener = Listener()
    with pytest.raises(ValueError, match="beta_max must be"):
        make(beta_max="wide").set_callbacks(listener).fit(X, Y)
    assert listener.heard == ["neighbours", "beta_max", "fit", "teardown"]


def test_html_says_which_model_it_is():
    html = make().fit(X, Y)._repr_html_()
    assert "BayesianKNeighborsClassifier" in html and "pseudo" in html


def fitted_in_many_ways():
    categories = pd.DataFrame({"size": np.arange(30.0), "colour": ["red", "blue", "red"] * 10})
    names = np.repeat(["a", "b"], 15)
    distances = np.abs(X[:, :1] - X[:, 0])
    new_distances = np.abs(NEW[:, :1] - X[:, 0])
    glass = load_glass()
    chains = {"n_chains": 2, "n_draws": 300, "n_warmup": 200}
    yield "pseudo", make(), X, Y, NEW
    yield "coherent", make(likelihood="coherent"), X, Y, NEW
    yield "chains", make(inference="metropolis", **chains), X, Y, NEW
    yield "mahalanobis", make(metric="mahalanobis"), X, Y, NEW
    yield "manhattan", make(metric="manhattan"), X, Y, NEW
    yield "gower", make(metric="gower"), categories, names, categories
    yield "precomputed", make(metric="precomputed"), distances, Y, new_distances
    yield "prior", make(prior=UniformPrior(5, 3.0), max_neighbors=None, beta_max="auto"), X, Y, NEW
    yield "class-prior", make(class_prior=[0.2, 0.8], calibrate=True), X, Y, NEW
    yield "weights", make(class_prior=[0.2, 0.8], class_prior_as="weights"), X, Y, NEW
    yield (
        "frame",
        make(),
        pd.DataFrame(X, columns=["a", "b"]),
        Y,
        pd.DataFrame(NEW, columns=["a", "b"]),
    )
    yield "four", make(max_neighbors=None), glass.X_train, glass.y_train, glass.X_test


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
@pytest.mark.parametrize(
    ("clf", "train", "labels", "new"),
    [pytest.param(*case[1:], id=case[0]) for case in fitted_in_many_ways()],
)
def test_files_bring_back_the_same_classifier(clf, train, labels, new):
    clf = clone(clf).fit(train, labels)
    blob = skops.io.dumps(clf)
    assert skops.io.get_untrusted_types(data=blob) == [TYPE]
    for loaded in (skops.io.loads(blob, trusted=[TYPE]), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(loaded.predict_proba(new), clf.predict_proba(new))
        for of in ("probability", "parameters"):
            np.testing.assert_array_equal(
                loaded.predict_interval(new, of=of), clf.predict_interval(new, of=of)
            )
        assert loaded.predict_zone(new).tolist() == clf.predict_zone(new).tolist()
        assert loaded.posterior_.identical(clf.posterior_)
        assert loaded.diagnostics_ == clf.diagnostics_
        np.testing.assert_array_equal(loaded.loo_proba_, clf.loo_proba_)


@pytest.mark.parametrize("likelihood", ["pseudo", "holmes-adams"])
def test_parameters_set_after_the_fit_do_not_change_what_is_saved(likelihood):
    clf = make(likelihood=likelihood).fit(X, Y)
    expected = clf.predict_proba(NEW)
    other = {"pseudo": "holmes-adams", "holmes-adams": "coherent"}[likelihood]
    clf.set_params(likelihood=other, metric="manhattan")
    for again in (clf, copy.deepcopy(clf), skops.io.loads(skops.io.dumps(clf), trusted=[TYPE])):
        np.testing.assert_array_equal(again.predict_proba(NEW), expected)


def send_by_joblib(clf):
    return joblib.Parallel(n_jobs=2)(joblib.delayed(copy.copy)(clf) for _ in range(2))[1]


@pytest.fixture(
    scope="module",
    params=[
        make(),
        PooledNeighborsClassifier(members=("evidence", "discriminant"), random_state=0),
        ClassicalKNeighborsClassifier(30),
    ],
    ids=lambda clf: type(clf).__name__,
)
def with_long_lists(request):
    """Fit once what is sent in every way; longer lists than points are left out of files."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 2))
    labels = (points[:, 0] + rng.normal(size=3000) > 0).astype(int)
    return clone(request.param).fit(points, labels)


@pytest.mark.parametrize(
    "send", [copy.copy, copy.deepcopy, lambda clf: pickle.loads(pickle.dumps(clf)), send_by_joblib]
)
def test_copies_and_workers_do_not_search_the_neighbours_again(with_long_lists, send, monkeypatch):
    clf = with_long_lists
    if hasattr(clf, "calibration_"):
        expected = clf.calibration_

    def refuse(*_, **__):
        raise AssertionError("the neighbours were searched for again")

    with monkeypatch.context() as patch:
        patch.setattr(neighbor_graph, "search_all", refuse)
        other = send(clf)
    np.testing.assert_array_equal(other.predict_proba(NEW), clf.predict_proba(NEW))
    if hasattr(clf, "calibration_"):
        assert other._interval_model is not None and other.calibration_ == expected
    if hasattr(clf, "graph_"):  # A file does leave them out; the pool keeps none.
        assert len(pickle.dumps(clf.__getstate__())) < len(pickle.dumps(clf))


def test_numbers_that_were_changed_in_a_file_are_refused():
    state = make().fit(X, Y).__getstate__()
    nodes = state["_nodes"]
    for name, value, message in (
        ("k", nodes["k"] - 3, "k must hold integers of at least 1"),
        ("k", nodes["k"] + 10**6, "k must be an integer in 1..12"),
        ("weight", -nodes["weight"], "must not be negative"),
    ):
        changed = state | {"_nodes": nodes | {name: value}}
        with pytest.raises(ValueError, match=message):
            BayesianKNeighborsClassifier().__setstate__(changed)
    with pytest.raises(ValueError, match="labels must lie in 0..1"):
        BayesianKNeighborsClassifier().__setstate__(state | {"_labels": state["_labels"] + 7})
    state = ClassicalKNeighborsClassifier(3).fit(X, Y).__getstate__()
    with pytest.raises(ValueError, match="labels must lie in 0..1"):
        ClassicalKNeighborsClassifier().__setstate__(state | {"_labels": state["_labels"] + 7})


def test_unfitted_classifiers_are_saved_too():
    clf = make(inference="grid")
    loaded = skops.io.loads(skops.io.dumps(clf), trusted=[TYPE])
    assert loaded.get_params() == clf.get_params()


def test_a_file_cannot_name_any_other_class():
    from bayesknn._utils.saving import unpack

    names = ("Popen", "subprocess.Popen", "bayesknn.__main__.main", "bayesknn.graph.metrics.np",
             "bayesknn.graph.of_the_future.Graph", "bayesknn.graph.metrics.Any")  # fmt: skip
    for name in names:
        with pytest.raises(ValueError, match=f"{name}', which is not a class of bayesknn"):
            unpack({"bayesknn class": name, "args": "ls"})


def test_the_posterior_is_in_the_layout_of_arviz(tmp_path):
    import arviz_stats

    from bayesknn.posterior import load_posterior, save_posterior

    clf = make(n_draws=5000).fit(X, Y)
    tree = clf.posterior_
    assert dict(tree["posterior"].sizes) == {"chain": 4, "draw": 5000}
    # ArviZ's loo fails on log-likelihoods that are the same in all draws: there are none.
    assert {"posterior", "sample_stats", "observed_data"} == set(tree.children)
    summary = arviz_stats.summary(tree)
    assert abs(float(summary.loc["beta", "mean"]) - clf.beta_mean_) < 0.05
    save_posterior(tree, tmp_path / "posterior.nc")
    assert load_posterior(tmp_path / "posterior.nc").identical(tree)
