"""Tests of the classical rule: numbers of the paper, ties and error messages."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from bayesknn import ClassicalKNeighborsClassifier, reference
from bayesknn.datasets import load_pima, load_ripley

neighbour_labels = st.integers(2, 5).flatmap(
    lambda n_classes: st.tuples(
        st.just(n_classes), st.lists(st.integers(0, n_classes - 1), min_size=1, max_size=24)
    )
)


@given(neighbour_labels)
def test_vote_is_decided_by_decreasing_k(case):
    n_classes, votes = case
    # Two distant rows of each class are added, which fit requires. No k in the test includes them.
    labels = np.array(votes + 2 * list(range(n_classes)))
    X = np.arange(len(labels), dtype=float)[:, None]
    for k in range(1, len(votes) + 1):
        clf = ClassicalKNeighborsClassifier(k, max_neighbors=k).fit(X, labels)
        assert clf.predict([[-1.0]])[0] == reference.vote(labels, k)
        # The decisive counts are those of the largest number of neighbours, at most k, without a
        # tie. The predicted probabilities must be proportional to them.
        counts = [np.bincount(votes[:fewer], minlength=n_classes) for fewer in range(k, 0, -1)]
        decisive = next(each for each in counts if np.sum(each == each.max()) == 1)
        np.testing.assert_allclose(clf.predict_proba([[-1.0]])[0], decisive / decisive.sum())


@given(st.integers(0, 10), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_leave_one_out_is_the_vote_of_the_others(more, n_classes, seed):
    rng = np.random.default_rng(seed)
    labels = np.append(np.repeat(np.arange(n_classes), 2), rng.integers(0, n_classes, size=more))
    n = len(labels)
    # Points on a coarse lattice have duplicates and equal distances.
    points = rng.integers(0, 3, size=(n, 2)).astype(float)
    errors = ClassicalKNeighborsClassifier(1, max_neighbors=n - 1).fit(points, labels).loo_errors_
    near = reference.neighbours(reference.distances(points, points))
    expected = [reference.leave_one_out_error(near, labels, k) for k in range(1, n)]
    np.testing.assert_allclose(errors, expected, rtol=1e-12)


def test_leave_one_out_equals_refitting_without_the_point():
    ripley = load_ripley()
    X, y = ripley.X_train[::5], ripley.y_train[::5]
    clf = ClassicalKNeighborsClassifier(max_neighbors=12).fit(X, y)
    for k in (1, 2, 7, 12):
        wrong = 0
        for i in range(len(y)):
            is_other = np.arange(len(y)) != i
            refitted = ClassicalKNeighborsClassifier(k).fit(X[is_other], y[is_other])
            wrong += refitted.predict(X[i : i + 1])[0] != y[i]
        assert clf.loo_errors_[k - 1] == wrong / len(y)


# Error rates in the paper's Tables 1 and 2, and the values of k that its text mentions.
TABLES = [
    (load_ripley, {1: 0.150, 3: 0.134, 15: 0.095, 17: 0.087, 31: 0.084, 54: 0.081}),
    (load_pima, {1: 0.316, 3: 0.229, 15: 0.226, 31: 0.211, 57: 0.205, 66: 0.208}),
]
LEAVE_ONE_OUT = [
    (load_ripley, 125, 0.116, [17, 18, 35, 36, 45, 46, 51, 52, 53, 54]),
    (load_pima, 68, 0.235, list(range(57, 67))),
]


@pytest.mark.parametrize(("load", "errors"), TABLES)
def test_test_errors_of_the_paper(load, errors):
    data = load()
    for k, published in errors.items():
        clf = ClassicalKNeighborsClassifier(n_neighbors=k).fit(data.X_train, data.y_train)
        error = np.mean(clf.predict(data.X_test) != data.y_test)
        assert f"{error:.3f}" == f"{published:.3f}"


@pytest.mark.parametrize(("load", "k_max", "lowest", "where"), LEAVE_ONE_OUT)
def test_leave_one_out_sets_of_the_paper(load, k_max, lowest, where):
    data = load()
    clf = ClassicalKNeighborsClassifier(n_neighbors="loo").fit(data.X_train, data.y_train)
    errors = clf.loo_errors_
    assert errors.shape == (k_max,)
    assert errors.min() == lowest
    assert (np.flatnonzero(errors == errors.min()) + 1).tolist() == where
    assert clf.n_neighbors_ == clf.k_ == where[0]


def test_odd_k_and_two_classes_agree_with_scikit_learn():
    pima = load_pima()
    ours = ClassicalKNeighborsClassifier(15).fit(pima.X_train, pima.y_train)
    theirs = KNeighborsClassifier(15).fit(pima.X_train, pima.y_train)
    np.testing.assert_array_equal(ours.predict(pima.X_test), theirs.predict(pima.X_test))
    np.testing.assert_allclose(ours.predict_proba(pima.X_test), theirs.predict_proba(pima.X_test))


def test_a_tie_goes_to_the_class_that_led_before_it():
    X, y = [[0.0], [1.0], [2.0], [3.0], [8.0], [9.0]], ["b", "a", "a", "b", "a", "b"]
    # The labels of the neighbours of 0.1 are b, a, a, b, with ties at k = 2 and 4.
    expected = {1: "b", 2: "b", 3: "a", 4: "a"}
    for k, winner in expected.items():
        clf = ClassicalKNeighborsClassifier(k).fit(X, y)
        assert clf.predict([[0.1]]) == [winner]
    # The proportions are those at k = 3, because the vote at k = 4 is tied.
    np.testing.assert_allclose(clf.predict_proba([[0.1]]), [[2 / 3, 1 / 3]])


def test_a_given_k_keeps_its_leave_one_out_errors():
    ripley = load_ripley()
    chosen = ClassicalKNeighborsClassifier().fit(ripley.X_train, ripley.y_train)
    short = ClassicalKNeighborsClassifier(5).fit(ripley.X_train, ripley.y_train)
    long = ClassicalKNeighborsClassifier(5, max_neighbors=9).fit(ripley.X_train, ripley.y_train)
    np.testing.assert_array_equal(short.loo_errors_, chosen.loo_errors_[:5])
    np.testing.assert_array_equal(long.loo_errors_, chosen.loo_errors_[:9])
    assert long.n_neighbors_ == 5
    np.testing.assert_array_equal(long.predict(ripley.X_test), short.predict(ripley.X_test))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_give_what_arrays_give(frame):
    pima = load_pima()
    train, test = (
        frame(dict(zip(pima.feature_names, X.T, strict=True))) for X in (pima.X_train, pima.X_test)
    )
    y = pd.Series(pima.y_train) if frame is pd.DataFrame else pl.Series(pima.y_train)
    arrays = ClassicalKNeighborsClassifier().fit(pima.X_train, pima.y_train)
    frames = ClassicalKNeighborsClassifier().fit(train, y)
    assert frames.feature_names_in_.tolist() == pima.feature_names
    assert frames.n_features_in_ == arrays.n_features_in_ == 7
    np.testing.assert_array_equal(frames.loo_errors_, arrays.loo_errors_)
    np.testing.assert_array_equal(frames.predict(test), arrays.predict(pima.X_test))
    assert not hasattr(arrays, "feature_names_in_")


def test_precomputed_distances_give_what_points_give():
    ripley = load_ripley()

    def distances(A, B):
        return np.sqrt(((A[:, None] - B[None]) ** 2).sum(axis=2))

    points = ClassicalKNeighborsClassifier().fit(ripley.X_train, ripley.y_train)
    matrix = ClassicalKNeighborsClassifier(metric="precomputed")
    assert matrix.__sklearn_tags__().input_tags.pairwise
    matrix.fit(distances(ripley.X_train, ripley.X_train), ripley.y_train)
    np.testing.assert_array_equal(matrix.loo_errors_, points.loo_errors_)
    np.testing.assert_array_equal(
        matrix.predict(distances(ripley.X_test, ripley.X_train)), points.predict(ripley.X_test)
    )


def test_categories_vote_through_gower():
    X = pd.DataFrame(
        {"size": [1.0, 1.1, 3.0, 3.1] * 3, "colour": ["red", "red", "blue", "blue"] * 3}
    )
    y = ["a", "a", "b", "b"] * 3
    clf = ClassicalKNeighborsClassifier(3, metric="gower").fit(X, y)
    assert clf.predict(X).tolist() == y


def test_default_length_of_the_curve():
    ripley = load_ripley()
    clf = ClassicalKNeighborsClassifier().fit(ripley.X_train, ripley.y_train)
    assert len(clf.loo_errors_) == 125
    asked = ClassicalKNeighborsClassifier(max_neighbors=20).fit(ripley.X_train, ripley.y_train)
    assert len(asked.loo_errors_) == 20


X_GOOD = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.2], [3.0, 3.0], [3.1, 3.0], [3.0, 3.2]])
Y_GOOD = np.array([0, 0, 0, 1, 1, 1])


def with_entry(value):
    X = X_GOOD.astype(object)
    X[3, 1] = value
    return X


BAD_TRAINING = {
    "single class": (X_GOOD, [4] * 6, {}, "only one class, 4"),
    "classes of size 1": (X_GOOD, list("abcdef"), {}, "no class is in two rows"),
    "NaN": (with_entry(np.nan).astype(float), Y_GOOD, {}, "NaN in row 3, column 1"),
    "inf": (with_entry(np.inf).astype(float), Y_GOOD, {}, "inf in row 3, column 1"),
    "string": (with_entry("tall"), Y_GOOD, {}, "column 1 holds 'tall' in row 3"),
    "mismatched lengths": (X_GOOD, Y_GOOD[:5], {}, "X has 6 rows but y has 5 labels"),
    "too many neighbours": (X_GOOD, Y_GOOD, {"n_neighbors": 6}, r"1\.\.5, got 6.*X has 6 rows"),
    "no neighbours": (X_GOOD, Y_GOOD, {"n_neighbors": 0}, r"n_neighbors.*1\.\.5, got 0"),
    "fractional": (X_GOOD, Y_GOOD, {"n_neighbors": 2.5}, r"n_neighbors.*got 2\.5"),
    "unknown rule": (X_GOOD, Y_GOOD, {"n_neighbors": "cv"}, "got 'cv'.*\"loo\""),
    "max too large": (X_GOOD, Y_GOOD, {"max_neighbors": 6}, r"max_neighbors.*1\.\.5, got 6"),
    "max below k": (
        X_GOOD, Y_GOOD, {"n_neighbors": 4, "max_neighbors": 2},
        r"max_neighbors must be at least n_neighbors \(4\), got 2",
    ),
    "array of k": (X_GOOD, Y_GOOD, {"n_neighbors": np.array([1, 2])}, "n_neighbors must be"),
    "lazy frame": (pl.DataFrame(X_GOOD).lazy(), Y_GOOD, {}, r"X is a LazyFrame; pass X.collect"),
    "masked": (np.ma.masked_equal(X_GOOD, X_GOOD[2, 1]), Y_GOOD, {}, "masked value in row"),
    "text for y": (X_GOOD, "aaabbb", {}, "y is 'aaabbb'"),
    "metric_params": (X_GOOD, Y_GOOD, {"metric_params": [1]}, r"metric_params .* got \[1\]"),
    "unknown metric": (X_GOOD, Y_GOOD, {"metric": "crow"}, "crow"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TRAINING)
def test_bad_training_data_gets_one_line(case):
    X, y, options, message = BAD_TRAINING[case]
    clf = ClassicalKNeighborsClassifier(**options)
    with pytest.raises(ValueError, match=message) as error:
        clf.fit(X, y)
    assert "\n" not in str(error.value)
    assert not hasattr(clf, "loo_errors_")


@pytest.mark.parametrize(
    ("X", "y", "options"),
    [
        (np.ones((6, 3)), [4] * 6, {}),
        (np.full((6, 3), np.nan), Y_GOOD, {}),
        (np.arange(18.0).reshape(6, 3), Y_GOOD, {"n_neighbors": 9}),
        (np.arange(18.0).reshape(6, 3), Y_GOOD, {"metric": "crow"}),
        (pd.DataFrame(np.ones((6, 3)), columns=["a", "b", "c"]), Y_GOOD[:5], {}),
    ],
)
def test_a_fit_that_raises_keeps_the_previous_fit(X, y, options):
    names = pd.DataFrame(X_GOOD, columns=["height", "weight"])
    for good in (X_GOOD, names):
        clf = ClassicalKNeighborsClassifier().fit(good, Y_GOOD)
        before, expected = dict(vars(clf)), clf.predict_proba(good)
        with pytest.raises(ValueError):  # noqa: PT011 - the test above has the messages
            clf.set_params(**options).fit(X, y)
        clf.set_params(**{name: before[name] for name in options})
        assert vars(clf).keys() == before.keys()
        np.testing.assert_array_equal(clf.predict_proba(good), expected)


def test_too_few_columns_raise_without_a_warning_about_names():
    clf = ClassicalKNeighborsClassifier().fit(
        pd.DataFrame(X_GOOD, columns=["height", "weight"]), Y_GOOD
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="X has 1 features, but .* is expecting 2"):
            clf.predict(X_GOOD[:, :1])


def test_predicting_looks_for_no_reverse_neighbours():
    clf = ClassicalKNeighborsClassifier().fit(X_GOOD, Y_GOOD)
    clf.predict_proba(X_GOOD)
    assert "reach" not in vars(clf._voters)


def test_a_bad_column_is_called_by_its_name():
    X = pd.DataFrame(X_GOOD.copy(), columns=["height", "weight"])
    X.loc[2, "weight"] = np.nan
    with pytest.raises(ValueError, match="NaN in row 2, column 'weight'"):
        ClassicalKNeighborsClassifier().fit(X, Y_GOOD)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 3)), "X has 3 features, but .* is expecting 2 features"),
        (np.zeros((0, 2)), r"0 sample\(s\)"),
        ([[0.0, np.nan]], "NaN in row 0, column 1"),
        ([["0", "tall"]], "column 0 holds '0' in row 0"),
        ([0.0, 1.0], "Expected 2D array"),
    ],
)
@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_bad_new_points_get_one_line(X, message, method):
    clf = ClassicalKNeighborsClassifier().fit(X_GOOD, Y_GOOD)
    with pytest.raises(ValueError, match=message) as error:
        getattr(clf, method)(X)
    assert "\n" not in str(error.value)


def test_fitting_changes_no_parameter_and_no_data():
    X, y = X_GOOD.copy(), Y_GOOD.copy()
    clf = ClassicalKNeighborsClassifier()
    before = clf.get_params()
    clf.fit(X, y).predict(X)
    assert clf.get_params() == before
    np.testing.assert_array_equal(X, X_GOOD)
    np.testing.assert_array_equal(y, Y_GOOD)
    assert re.match(r"ClassicalKNeighborsClassifier\(", repr(clf))
