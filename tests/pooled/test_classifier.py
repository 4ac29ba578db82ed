"""The pooled classifier among tables, files and bad input; that it does not leak labels."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io

import bayesknn.pooled.classifier as classifier
from bayesknn import PooledNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.pooled.columns import Columns, Sample
from bayesknn.pooled.features import Neighborhoods, leave_out
from bayesknn.pooled.metrics import METRICS

RIPLEY = load_ripley()
X, Y = RIPLEY.X_train[::3], RIPLEY.y_train[::3]
NEW = RIPLEY.X_test[::50]
QUICK = ("evidence", "discriminant")
ALL = PooledNeighborsClassifier().members


def make(members=QUICK, **parameters):
    return PooledNeighborsClassifier(members, random_state=0, **parameters)


def mixed(n=40, seed=0):
    """Make a table with numbers, categories, truth values and holes in each."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    size = rng.normal(size=n) + y
    colour = np.where(rng.random(n) < 0.3 + 0.4 * y, "red", "blue").tolist()
    table = {
        "size": [None if i == 3 else float(v) for i, v in enumerate(size)],
        "colour": [None if i in (5, 6) else v for i, v in enumerate(colour)],
        "is_old": [bool(v) for v in rng.random(n) < 0.5],
        "constant": [7.0] * n,
    }
    return table, y


def test_columns_of_numbers_and_categories():
    table, _ = mixed()
    columns = Columns()
    rows = columns.fit(pd.DataFrame(table))
    # One coordinate for the size, three levels of colour, two truth values, nothing constant.
    assert rows.source.tolist() == [0, 1, 1, 1, 2, 2]
    np.testing.assert_allclose(rows.points.mean(axis=0), 0, atol=1e-12)
    for j in range(3):
        assert rows.points[:, rows.source == j].var(axis=0).sum() == pytest.approx(1.0)
    assert rows.points[3, 0] == 0.0
    strange = columns.transform(
        pd.DataFrame({"size": [None], "colour": ["green"], "is_old": [None], "constant": [1.0]})
    )
    assert strange.values.tolist() == [[0.0, -1.0, -1.0]]
    assert (strange.points[0, 1:] < 0).all()


def test_mixed_frames_of_pandas_and_polars_are_one():
    table, y = mixed()
    fits = [
        make(ALL).fit(frame(table), y).predict_proba(frame(table))
        for frame in (pd.DataFrame, pl.DataFrame)
    ]
    np.testing.assert_array_equal(*fits)
    rows = [list(row) for row in zip(*table.values(), strict=True)]
    np.testing.assert_array_equal(make(ALL).fit(rows, y).predict_proba(rows), fits[0])


def test_an_unseen_category_and_a_new_hole_are_predicted():
    table, y = mixed()
    clf = make(ALL).fit(pd.DataFrame(table), y)
    new = pd.DataFrame(
        {"size": [0.0, None], "colour": ["green", None], "is_old": [None, True], "constant": [1, 2]}
    )
    proba = clf.predict_proba(new)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_attributes():
    clf = make(ALL).fit(X, Y)
    assert list(clf.pool_weights_) == list(ALL) == list(clf.k_probabilities_)
    assert clf.k_values_[0] == 2 and clf.k_values_[-1] == len(X) // 2
    for name, law in clf.k_probabilities_.items():
        assert law.sum() == pytest.approx(1.0)
        assert law.shape == (
            {"additive": (5,), "boosted": (4,), "smooth": (4,)}.get(name) or clf.k_values_.shape
        )
    assert clf.loo_proba_.shape == (len(X), 2)
    assert clf.loo_log_score_ == pytest.approx(np.log(clf.loo_proba_[np.arange(len(X)), Y]).mean())
    assert clf.feature_relevance_.sum() == pytest.approx(1.0)
    decisions, expected = clf.predict_decision(NEW)
    np.testing.assert_array_equal(decisions, clf.predict(NEW))
    np.testing.assert_allclose(expected, 1 - clf.predict_proba(NEW).max(axis=1))
    assert clf.feature_importances_.sum() == pytest.approx(1.0)
    assert 0 < clf.neighbor_share_ < 1
    np.testing.assert_allclose(clf.predict_log_proba(NEW), np.log(clf.predict_proba(NEW)))
    clf.set_params(members=QUICK).fit(X, Y)
    assert not hasattr(clf, "feature_relevance_") and not hasattr(clf, "feature_importances_")
    assert clf.neighbor_share_ == 1


@pytest.mark.parametrize("name", ["relevance", "additive", "boosted"])
def test_importances_are_by_input_column(name):
    table, y = mixed(200)
    clf = make((name,)).fit(pd.DataFrame(table), y)
    found = clf.feature_importances_
    assert found.shape == (4,) and found.sum() == pytest.approx(1.0)
    # Size and colour say something, whether a thing is old nothing, and a constant cannot.
    assert found[:2].min() > found[2] and found[3] == 0
    if name == "relevance":
        np.testing.assert_allclose(clf.feature_relevance_, found)


def test_no_metric_is_searched_twice(monkeypatch):
    clf, asked = make().fit(X, Y), []
    search = Neighborhoods.search
    monkeypatch.setattr(Neighborhoods, "search", lambda *given: asked.append(1) or search(*given))
    summary = clf.predict_summary(NEW)
    assert len(asked) == sum(weight > 0 for weight in clf.pool_weights_.values()) == 2
    asked.clear()
    # The leading metric says how usual a place is.
    np.testing.assert_array_equal(clf.predict_typicality(NEW), summary.typicality)
    assert len(asked) == 1


def test_threads_and_files_give_the_same_bits():
    clf = make(ALL).fit(X, Y)
    proba = clf.predict_proba(NEW)
    threaded = make(ALL, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(threaded.predict_proba(NEW), proba)
    np.testing.assert_array_equal(threaded.loo_proba_, clf.loo_proba_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(NEW), proba)
    saved = skops.io.dumps(clf)
    trusted = ["bayesknn.pooled.classifier.PooledNeighborsClassifier"]
    assert set(skops.io.get_untrusted_types(data=saved)) <= set(trusted)
    np.testing.assert_array_equal(skops.io.loads(saved, trusted).predict_proba(NEW), proba)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"members": ("evidence", "euclid")},
            "each of members must be one of discriminant, relevance",
        ),
        ({"members": "evidence"}, "members must be a sequence of"),
        ({"members": ()}, "at least one member"),
        ({"members": ("evidence", "evidence")}, "none twice"),
        ({"members": ("within", "boosted")}, "the member 'within' was removed, because"),
        ({"categorical_features": ["size"]}, "names 'size', a column that X has not"),
        ({"categorical_features": [2]}, "names 2, a column that X has not"),
        ({"categorical_features": [True]}, "is a mask of 1 columns, X has 2"),
        ({"categorical_features": "x"}, "categorical_features must be a sequence"),
        ({"n_folds": 1}, "n_folds must be an integer >= 2"),
        ({"max_neighbors": 0}, "max_neighbors must be an integer in 1..83"),
        ({"n_jobs": "x"}, "n_jobs must be None"),
        ({"n_jobs": 2.5}, "n_jobs must be None"),
        ({"verbose": "x"}, "verbose must be"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        PooledNeighborsClassifier(**parameters).fit(X, Y)


def test_infinities_are_named():
    table = pd.DataFrame({"a": [1.0, 2.0, np.inf, 4.0], "b": [1.0, 2.0, 3.0, 5.0]})
    with pytest.raises(ValueError, match="X has inf in row 2, column 'a'"):
        make().fit(table, [0, 0, 1, 1])


@pytest.mark.parametrize("n_folds", [2, 5])
def test_the_smallest_tables_and_tied_points(n_folds):
    """Four points; all points in one place; a class of two."""
    for points, y in (
        ([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]),
        ([[1.0]] * 6, [0, 0, 0, 0, 1, 1]),
        ([[i % 2, i % 3] for i in range(20)], [0] * 18 + [1] * 2),
    ):
        clf = make(ALL, n_folds=n_folds).fit(points, y)
        proba = clf.predict_proba([points[0], points[-1]])
        assert np.isfinite(proba).all() and (proba > 0).all()
        assert np.isfinite(clf.loo_log_score_)
    # With nothing to tell the classes apart, their frequencies are left.
    same = make().fit([[1.0]] * 60, [0] * 45 + [1] * 15).predict_proba([[1.0]])
    np.testing.assert_allclose(same, [[0.75, 0.25]], atol=0.05)


def test_huge_and_tiny_units_change_nothing():
    plain = make().fit(X, Y).predict_proba(NEW)
    scale = np.array([2.0**900, 2.0**-900])
    np.testing.assert_allclose(make().fit(X * scale, Y).predict_proba(NEW * scale), plain)


def find_gains(members):
    """Gains on the class frequencies, row by row, where labels are permuted at random."""
    gains = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(90, 40)), rng.permutation(np.arange(90) % 3 == 0).astype(int)
        proba = PooledNeighborsClassifier(members, random_state=seed).fit(X, y).loo_proba_
        gains.append(np.log(proba[np.arange(90), y] / np.where(y == 1, 1 / 3, 2 / 3)))
    return np.mean(gains), np.std(gains) / np.sqrt(np.size(gains))


@pytest.mark.parametrize("members", [*((name,) for name in ALL), ALL], ids="-".join)
def test_permuted_labels_are_not_predicted(members):
    """Over permutations the gain on the class frequencies is none within its standard error."""
    gain, error = find_gains(members)
    assert gain < 4.3 * error


@pytest.mark.parametrize("name", ["discriminant", "evidence"])
def test_plain_leave_one_out_would_leak(name, monkeypatch):
    """Permuted labels are predicted as soon as metrics have seen the labels that they judge."""

    def seen_features(name, sample, settings, folds):
        metric = METRICS[name]().fit(sample, settings.seed)
        places = [metric.transform(sample.table)] * (folds.max() + 1)
        return leave_out(places, sample, "euclidean", settings, folds)

    monkeypatch.setattr(classifier, "leave_folds_out", seen_features)
    gain, error = find_gains((name,))
    assert gain > 4.3 * error


@pytest.mark.parametrize("n_columns", [2, 12])
@pytest.mark.parametrize("name", ["discriminant", "evidence"])
def test_a_row_has_the_same_coordinates_in_every_batch(name, n_columns):
    """Equal rows are at distance 0, not at a rounding error, whose logarithm would count."""
    rng = np.random.default_rng(0)
    X = np.array(list("abcdef"))[rng.integers(0, 6, (40, n_columns))]
    table = Columns().fit(X)
    metric = METRICS[name]().fit(Sample(table, np.arange(40) % 3, np.ones(40), 3), 0)
    together = metric.transform(table)
    for i in range(40):
        np.testing.assert_array_equal(metric.transform(table.take([i])), together[[i]])


@pytest.mark.parametrize("factor", [1e-9, 0.3, 7.0, 1e12])
def test_a_factor_of_all_weights_changes_nothing(factor):
    """Trees choose between splits of equal gain by the last digits of the weights."""
    rng = np.random.default_rng(1)
    y = np.arange(80) % 3
    X = pd.DataFrame({"a": rng.integers(0, 3, 80), "b": rng.integers(0, 4, 80)}).astype(str)
    X["c"] = rng.normal(size=80).round(1)
    weights, clf = rng.uniform(0.5, 2.0, 80), PooledNeighborsClassifier(("relevance",))
    plain = clf.set_params(random_state=0).fit(X, y, weights).predict_proba(X)
    scaled = clf.fit(X, y, factor * weights).predict_proba(X)
    np.testing.assert_allclose(scaled, plain, atol=1e-7)
