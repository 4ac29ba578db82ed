"""The classifier on a cluster of two processes says what the one in memory says."""

import os
import signal
import sys
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.distributed import DistributedNeighborsClassifier

N, P, K = 5000, 5, 40


def draw(n, seed):
    """Three classes on a lattice of tenths, with many points in one place."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = np.round(rng.normal(size=(n, P)) + 0.9 * y[:, None], 1)
    X[n // 2 : n // 2 + n // 20] = X[: n // 20]
    X[-n // 50 :] = X[0]
    return X, np.array(["a", "b", "c"])[y]


X, Y = draw(N, 0)
NEW = draw(400, 1)[0]


def as_dask(rows=1300):
    return da.from_array(X, chunks=(rows, P)), da.from_array(Y, chunks=rows)


@pytest.fixture(scope="module")
def in_memory():
    return {
        likelihood: BayesianKNeighborsClassifier(
            likelihood, max_neighbors=K, n_draws=100, random_state=0
        ).fit(X, Y)
        for likelihood in ("pseudo", "holmes-adams")
    }


def assert_same(clf, ref, rows):
    """Fit, probabilities and intervals agree to rounding."""
    assert clf.beta_max_ == ref.beta_max_
    np.testing.assert_allclose(clf.k_probabilities_, ref.k_probabilities_, atol=1e-10)
    np.testing.assert_allclose(clf.beta_mean_, ref.beta_mean_, rtol=1e-11)
    np.testing.assert_allclose(clf.beta_sd_, ref.beta_sd_, rtol=1e-9)
    np.testing.assert_allclose(clf.log_evidence_, ref.log_evidence_, rtol=1e-12)
    new = da.from_array(NEW, chunks=(rows, P))
    proba = clf.predict_proba(new)
    assert proba.chunks[0] == new.chunks[0]
    np.testing.assert_allclose(proba.compute(), ref.predict_proba(NEW), atol=1e-11)
    assert_close(clf.predict(new).compute(), ref.predict(NEW), ref.predict_proba(NEW))
    for of in ("probability", "parameters"):
        ends = clf.predict_interval(new, level=0.9, of=of).compute()
        np.testing.assert_allclose(ends, ref.predict_interval(NEW, level=0.9, of=of), atol=1e-9)
    np.testing.assert_allclose(clf.loo_proba_.compute(), ref.loo_proba_, atol=1e-11)
    assert [*clf.predict_zone(new).compute()] == [*ref.predict_zone(NEW)]
    for name in ("predict_typicality", "predict_log_proba"):
        found = getattr(clf, name)(new).compute()
        np.testing.assert_allclose(found, getattr(ref, name)(NEW), atol=1e-9)
    for of in ("probability", "parameters"):
        np.testing.assert_allclose(clf.loo_interval(of=of), ref.loo_interval(of=of), atol=1e-9)
    np.testing.assert_allclose(clf.predict_counts(new), ref.predict_counts(NEW), rtol=1e-9)
    np.testing.assert_allclose(clf.calibration_, ref.calibration_, rtol=1e-6)
    for name in ("boundary_ties", "misfit_column", "misfit_rows", "warnings", "reason"):
        assert clf.diagnostics_[name] == ref.diagnostics_[name]


@pytest.mark.parametrize("likelihood", ["pseudo", "holmes-adams"])
def test_the_same_answer_as_in_memory(likelihood, client, in_memory):
    clf = DistributedNeighborsClassifier(likelihood, max_neighbors=K, random_state=0)
    assert_same(clf.fit(*as_dask()), in_memory[likelihood], 150)


@pytest.mark.parametrize("rows", [5000, 834])
def test_the_answer_does_not_depend_on_the_blocks(rows, client, in_memory):
    clf = DistributedNeighborsClassifier(max_neighbors=K, random_state=0).fit(*as_dask(rows))
    assert_same(clf, in_memory["pseudo"], 400)


def test_frames_whose_lengths_are_not_known(client, in_memory):
    frame = pd.DataFrame(X, columns=list("vwxyz")).assign(label=Y)
    table = dd.from_pandas(frame, npartitions=3)
    clf = DistributedNeighborsClassifier(max_neighbors=K, random_state=0)
    clf.fit(table[list("vwxyz")], table["label"])
    np.testing.assert_allclose(clf.k_probabilities_, in_memory["pseudo"].k_probabilities_)
    new = dd.from_pandas(pd.DataFrame(NEW, columns=list("vwxyz")), npartitions=2)
    expected = in_memory["pseudo"].predict_proba(NEW)
    np.testing.assert_allclose(clf.predict_proba(new).compute(), expected, atol=1e-11)


def assert_close(found, expected, proba):
    """Batches of other shapes agree to 1e-10, and in names where the first class leads by more."""
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        return
    second, first = np.sort(proba, axis=1)[:, -2:].T
    is_clear = first - second > 1e-9
    assert is_clear.mean() > 0.9
    np.testing.assert_array_equal(found[is_clear], expected[is_clear])


def test_in_memory_classifiers_predict_dask_collections_by_blocks(client, in_memory):
    new = da.from_array(NEW, chunks=(150, P))
    pool = PooledNeighborsClassifier(("evidence", "discriminant"), max_neighbors=20, random_state=0)
    pool.fit(X[:500], Y[:500])
    for clf in (in_memory["pseudo"], pool):
        for name in ("predict", "predict_proba", "predict_interval", "predict_zone"):
            found, expected = getattr(clf, name)(new), getattr(clf, name)(NEW)
            assert isinstance(found, da.Array) and found.chunks[0] == (150, 150, 100)
            assert found.shape == expected.shape and found.dtype == expected.dtype
            assert_close(found.compute(), expected, clf.predict_proba(NEW))
    bad = da.concatenate([new[:150], da.full((10, P), np.nan, chunks=(10, P))])
    with pytest.raises(ValueError, match="in block 1: X has NaN in row 0, column 0"):
        in_memory["pseudo"].predict_proba(bad).compute()


def test_in_memory_classifiers_predict_dask_frames():
    frame = pd.DataFrame(X[:600], columns=list("vwxyz"))
    clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=9, beta_max=4.0, n_draws=100)
    clf.fit(frame, Y[:600])
    new = pd.DataFrame(NEW, columns=list("vwxyz"))
    with dask.config.set(scheduler="synchronous"):
        found = clf.predict_proba(dd.from_pandas(new, npartitions=3)).compute()
    np.testing.assert_allclose(found, clf.predict_proba(new), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["frame", "codes"])
def test_gower_predicts_dask_collections_with_categories(kind):
    # A made-up row, by which shapes are known at once, must hold categories that training has.
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {
            "age": rng.normal(size=90),
            "sex": rng.choice(["f", "m"], size=90),
            "town": pd.Categorical(rng.choice(["x", "y"], size=90)),
        }
    )
    params = None
    if kind == "codes":
        table, params = np.column_stack([table["age"], 3 + np.arange(90) % 4]), {"categorical": [1]}
    clf = BayesianKNeighborsClassifier(
        "pseudo", metric="gower", metric_params=params, max_neighbors=9, beta_max=4.0, n_draws=50
    ).fit(table, np.arange(90) % 2)
    if kind == "codes":
        new = da.from_array(table[:20], chunks=(7, 2))
    else:
        new = dd.from_pandas(table.iloc[:20], npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        for name in ("predict_proba", "predict"):
            found = getattr(clf, name)(new).compute()
            assert_close(found, getattr(clf, name)(table[:20]), clf.predict_proba(table[:20]))


def fit_wrong(points, labels):
    with dask.config.set(scheduler="synchronous"):
        DistributedNeighborsClassifier(max_neighbors=5, beta_max=4.0).fit(points, labels)


def test_bad_blocks_are_named():
    points, labels = as_dask(1000)
    with pytest.raises(ValueError, match="block 0 of X is of unknown size; call X.compute_chunk"):
        fit_wrong(points[points[:, 0] > 0], labels)
    with pytest.raises(ValueError, match="block 0 of y is of unknown size"):
        fit_wrong(points, labels[labels != "a"])
    sizes = (1000, 0, 4000)
    with pytest.raises(ValueError, match="block 1 of X is empty"):
        fit_wrong(da.from_array(X, chunks=(sizes, (P,))), da.from_array(Y, chunks=(sizes,)))
    with pytest.raises(ValueError, match="block 4 has 1000 points but 990 labels; .*y.rechunk"):
        fit_wrong(points, labels[:-10])
    with pytest.raises(ValueError, match="X has 5 blocks and y has 4: block 4 has nothing beside"):
        fit_wrong(points, labels[:4000])
    one_class = np.full(N, "b")
    with pytest.raises(ValueError, match="y holds only one class, 'b'"):
        fit_wrong(points, da.from_array(one_class, chunks=1000))
    holes = X.copy()
    holes[3210, 2] = np.nan
    with pytest.raises(ValueError, match="in block 3: X has NaN in row 210, column 2"):
        fit_wrong(da.from_array(holes, chunks=(1000, P)), labels)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    short = dd.from_pandas(pd.Series(Y[:-1]), npartitions=2)
    with pytest.raises(ValueError, match="block 1 has 2500 points but 2499 labels"):
        fit_wrong(frame, short)


def test_settings_that_do_not_fit():
    points, labels = as_dask(2500)
    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(ValueError, match="likelihood must be one of pseudo, holmes-adams, got"):
            DistributedNeighborsClassifier("coherent").fit(points, labels)
        with pytest.raises(ValueError, match="X is a ndarray; pass a Dask array or frame, or fit"):
            DistributedNeighborsClassifier().fit(X, labels)
        with pytest.raises(ValueError, match="max_neighbors must be"):
            DistributedNeighborsClassifier(max_neighbors=5000).fit(points, labels)
        clf = DistributedNeighborsClassifier(max_neighbors=5, beta_max=4.0).fit(points, labels)
        with pytest.raises(ValueError, match="X has 4 features, but Distributed"):
            clf.predict_proba(points[:, :4])
        assert clf.predict(X[:3]).compute().shape == (3,)


def test_without_dask_a_sentence_names_the_extra(monkeypatch):
    points, labels = as_dask()
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"needs Dask, .* pip install 'bayesknn\[distributed\]'"):
        DistributedNeighborsClassifier().fit(points, labels)


@pytest.mark.parametrize("lost", ["once", pytest.param("twice", marks=pytest.mark.slow)])
def test_a_worker_that_is_killed_changes_nothing(client, in_memory, lost):
    """One of two processes is killed while neighbours are searched for, one before predicting.

    The last test, since it leaves the cluster with new processes.
    """
    killed = []

    def kill(wait_for):
        # As soon as a task of that name has been done, so that something is lost.
        while not any(wait_for in str(key) for key in client.who_has()):
            time.sleep(0.005)
        pids = client.run(os.getpid)
        victim = sorted(pids.values())[len(killed) % 2]
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    clf = DistributedNeighborsClassifier(max_neighbors=K, random_state=0)
    thread = threading.Thread(target=kill, args=("search_own",))
    thread.start()
    clf.fit(*as_dask())
    thread.join()
    assert killed
    if lost == "twice":
        client.wait_for_workers(2)
        victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, signal.SIGKILL)
        assert victim not in killed
    assert_same(clf, in_memory["pseudo"], 150)


def test_a_class_of_one_row():
    """It is in no score here either, so that intervals agree."""
    x, y = X[:300] + np.arange(300)[:, None] / 1e6, Y[:300].copy()
    y[7] = "d"
    options = {"max_neighbors": 10, "beta_max": 4.0}
    with pytest.warns(UserWarning, match="class 'd' has one row"):
        ref = BayesianKNeighborsClassifier("pseudo", **options).fit(x, y)
    clf = DistributedNeighborsClassifier(**options)
    with pytest.warns(UserWarning, match="class 'd' has one row"):
        clf.fit(da.from_array(x, chunks=(150, P)), da.from_array(y, chunks=150))
    assert clf.calibration_ == pytest.approx(ref.calibration_)
