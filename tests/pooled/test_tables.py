"""What tables hold: ordered and many categories, codes, class frequencies, counts, extremes."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.datasets import load_iris

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.pooled.columns import Columns

ALL = PooledNeighborsClassifier().members
NEIGHBORS = ("discriminant", "relevance", "evidence")


def test_ordered_categories_stay_in_order():
    """Shuffled names of sizes: trees cut an ordered column by its order, others by indicators."""
    sizes = ["tiny", "small", "middle", "large", "huge"]
    values = pd.Categorical(np.array(sizes)[np.arange(100) % 5], sizes, ordered=True)
    columns = Columns()
    table = columns.fit(pd.DataFrame({"size": values}))
    points, source = table.in_order()
    np.testing.assert_array_equal(points[:, 0], np.arange(100) % 5)
    assert source.tolist() == [0] and table.points.shape == (100, 5)
    unordered = Columns().fit(pd.DataFrame({"size": values.as_unordered()}))
    assert unordered.in_order()[0].shape == (100, 5)
    # New rows need not say that they are ordered.
    again = columns.transform(pd.DataFrame({"size": ["huge", "tiny", None]}))
    assert again.in_order()[0].ravel().tolist() == [4, 0, -1]


@pytest.mark.parametrize("which", [["code"], [0], np.array([True, False])])
def test_codes_are_categories_where_that_is_said(which):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"code": rng.integers(4, size=80), "x": rng.normal(size=80)})
    y = (frame["code"].isin([1, 2]).to_numpy() ^ (rng.random(80) < 0.2)).astype(int)
    as_text = frame.assign(code=[f"c{v}" for v in frame["code"]])
    clf = PooledNeighborsClassifier(NEIGHBORS, categorical_features=which, random_state=0)
    found = clf.fit(frame, y).predict_proba(frame)
    clf.set_params(categorical_features=None)
    np.testing.assert_allclose(found, clf.fit(as_text, y).predict_proba(as_text))
    assert np.abs(clf.fit(frame, y).predict_proba(frame) - found).max() > 0.01


@pytest.mark.parametrize(
    ("fitted", "asked"),
    [
        (["0", "1", "2"], [0, 1, 2]),
        (["0", "1", "2"], [0.0, 1.0, 2.0]),
        ([0.0, 1.0, 2.0], ["0", "1", " 2"]),
        (["a", "b ", "c"], ["a ", "b", " c"]),
        (["True", "False", "False"], [True, False, False]),
        ([True, False, False], ["True", "False", "False"]),
        ([True, False, False], [1.0, 0.0, 0.0]),
    ],
)
def test_what_is_the_same_as_text_is_the_same_category(fitted, asked):
    """Codes that a file gives as text and a program as numbers are no new categories."""
    x = np.tile([0.0, 1.0, 3.0], 10) + np.repeat(np.arange(10.0), 3)
    frames = [pd.DataFrame({"x": x, "code": each * 10}) for each in (fitted, asked)]
    y = np.append(x[1:] > 5, False) ^ (np.arange(30) % 3 == 0)
    gower = {"metric": "gower", "metric_params": {"categorical": ["code"]}}
    for clf in (
        PooledNeighborsClassifier(["discriminant"], categorical_features=["code"], random_state=0),
        BayesianKNeighborsClassifier("pseudo", max_neighbors=5, beta_max=4.0, **gower),
    ):
        first, second = map(clf.fit(frames[0], y).predict_proba, frames)
        np.testing.assert_allclose(first, second)


def test_a_column_of_new_categories_is_warned_of():
    frame = pd.DataFrame({"x": np.arange(8.0), "town": list("abababab")})
    clf = PooledNeighborsClassifier(["discriminant"], random_state=0).fit(frame, list("ababbaab"))
    expected = "column 'town' holds categories .* in 6 of 8 rows, such as 'c' and 'd': .* none of"
    with pytest.warns(UserWarning, match=expected):
        clf.predict(frame.assign(town=list("cdcdcdab")))
    clf.predict(frame.assign(town=list("cdcdabab")))  # not most of them


def test_of_many_categories_the_rare_are_one():
    frame = pd.DataFrame({"row": [f"id {i}" for i in range(800)], "x": np.arange(800.0)})
    table = Columns().fit(frame)
    assert table.points.shape[1] == 1  # nothing is left of a column that names rows
    towns = [f"town {i // 20}" for i in range(700)] + [f"farm {i}" for i in range(100)]
    columns = Columns()
    table = columns.fit(frame.assign(row=towns))
    assert table.points.shape == (800, 32)
    assert table.points[:, :31].var(axis=0).sum() == pytest.approx(1.0)
    code = columns.transform(pd.DataFrame({"row": ["farm 3", "elsewhere"], "x": [0, 0]})).values
    assert code[0, 0] == code[1, 0] == 30
    # Rows that were chosen for being rare are no news: each of them was seen.
    columns.transform(frame.assign(row=towns)[700:])
    with pytest.warns(UserWarning, match="in 100 of 100 rows, .*: they count as rare ones"):
        columns.transform(frame[:100].assign(row=[f"isle {i}" for i in range(100)]))


def test_missing_categories_are_called_so_in_a_warning():
    columns = Columns()
    columns.fit(pd.DataFrame({"town": ["a", "b"] * 20}))
    with pytest.warns(UserWarning, match="in 3 of 4 rows, such as a missing value and 'c':"):
        columns.transform(pd.DataFrame({"town": [None, "c", None, "a"]}))


def test_class_prior_is_an_offset():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    clf = PooledNeighborsClassifier(("discriminant",), random_state=0)
    plain, ends = clf.fit(X, y).predict_proba(X), clf.predict_interval(X)
    clf.set_params(class_prior={0: 0.9, 1: 0.1})
    shifted = clf.fit(X, y).predict_proba(X)
    offset = np.log(0.1 / 0.9) - np.log(y.mean() / (1 - y.mean()))
    np.testing.assert_allclose(logit(shifted[:, 1]) - logit(plain[:, 1]), offset)
    moved = clf.predict_interval(X)
    inside = (moved[:, 1] > 1e-9) & (moved[:, 1] < 1 - 1e-9)
    gaps = logit(moved[:, 1][inside]) - logit(ends[:, 1][inside])
    assert inside.mean() > 0.5
    np.testing.assert_allclose(gaps, offset, rtol=1e-6)
    assert clf.predict_counts(X)[1, 0] < 0.5 * y.sum()
    np.testing.assert_allclose(clf.loo_proba_.sum(axis=1), 1)
    assert clf.loo_interval().shape == (200, 2, 2)


def test_class_prior_of_the_weighted_frequencies_changes_nothing():
    """The frequencies of training are those of the weights, not those of the rows."""
    X, y = load_iris(return_X_y=True)
    weights = np.random.default_rng(0).choice([0.5, 4.0], 150) * (1 + y)
    shares = np.bincount(y, weights) / weights.sum()
    plain = PooledNeighborsClassifier(("evidence",), random_state=0).fit(X, y, weights)
    given = PooledNeighborsClassifier(("evidence",), class_prior=shares, random_state=0)
    given.fit(X, y, weights)
    np.testing.assert_allclose(given.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_allclose(given.loo_proba_, plain.loo_proba_)


def test_extremes():
    """Twenty rows, thirty classes, categories only, columns without any value."""
    rng = np.random.default_rng(0)
    cases = {
        "twenty rows": (rng.normal(size=(20, 3)), np.arange(20) % 2),
        "thirty classes": (
            rng.normal(size=(90, 4)) + (np.arange(90) % 30)[:, None],
            np.arange(90) % 30,
        ),
        "categories": (
            pd.DataFrame({c: rng.choice(list("abc"), 60) for c in "xyz"}),
            np.arange(60) % 3,
        ),
        "no value": (
            np.column_stack([np.full(60, np.nan), rng.normal(size=60)]),
            np.arange(60) % 2,
        ),
        "no category": (
            pd.DataFrame({"word": [None] * 60, "x": rng.normal(size=60)}),
            np.arange(60) % 2,
        ),
    }
    for name, (X, y) in cases.items():
        clf = PooledNeighborsClassifier(random_state=0).fit(X, y)
        proba = clf.predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1, err_msg=name)
        assert proba.min() > 0 and np.isfinite(clf.loo_log_score_), name
        ends = clf.predict_interval(X)
        assert (ends[..., 0] <= proba).all() and (proba <= ends[..., 1]).all(), name
        assert ((clf.predict_typicality(X) >= 0) & (clf.predict_typicality(X) <= 1)).all()


def test_companions_alone_have_intervals_and_typicality():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = (X[:, 0] > 0).astype(int)
    clf = PooledNeighborsClassifier(("additive", "boosted"), random_state=0).fit(X, y)
    assert clf.neighbor_share_ == 0 and clf.predict_typicality([[90.0, 90, 90]]) < 0.05
    assert (clf.predict_influence(X[:2])[0] == -1).all()
    assert clf.score(X, y) > 0.9 and clf.loo_interval().shape == (150, 2, 2)


def test_refusals_name_what_was_wrong():
    with pytest.raises(ValueError, match="no class is in two rows"):
        PooledNeighborsClassifier().fit(np.eye(3), ["a", "b", "c"])
    clf = PooledNeighborsClassifier(("evidence",)).fit(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="joint draws.*BayesianKNeighborsClassifier"):
        clf.predict_counts(np.eye(4), prevalence="free")
    with pytest.raises(ValueError, match="prevalence must be one of"):
        clf.predict_counts(np.eye(4), prevalence="some")


def draw_law(law, rng, n):
    """Rows and labels of a law with a known P."""
    if law == "slope":
        X = rng.normal(size=(n, 3))
        p = expit(1.5 * X[:, 0])
    elif law == "ring":
        X = rng.normal(size=(n, 2))
        p = expit(3 * (np.hypot(*X.T) - 1.2))
    else:
        X = rng.random((n, 2))
        p = np.where((X[:, 0] > 0.5) == (X[:, 1] > 0.5), 0.8, 0.2)
    return X, (rng.random(n) < p).astype(int)


def cover_counts(law, n_fits, members, class_prior=None, n_out_of_9=9):
    """Share of batches of 200 whose count of class 1 lies in its 90 % interval.

    ``n_out_of_9`` of class 1 are kept in a batch.
    """
    covered = []
    for seed in range(n_fits):
        rng = np.random.default_rng([seed, 11])
        X, y = draw_law(law, rng, 60)
        clf = PooledNeighborsClassifier(members, class_prior=class_prior, random_state=seed)
        new, truth = draw_law(law, rng, 200)
        kept = (truth == 0) | (rng.integers(9, size=200) < n_out_of_9)
        _, low, high = clf.fit(X, y).predict_counts(new[kept])[1]
        covered.append(low <= truth[kept].sum() <= high)
    return np.mean(covered)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["slope", "ring", "board"])
def test_counts_in_a_batch_are_covered(law):
    """Between 0.85 and 0.95, give or take the Monte Carlo error of 240 batches.

    A fit's batches share its errors, so that every fit has one: the standard error is 0.019 at 0.9
    and 0.014 at 0.95.
    """
    assert 0.85 - 0.02 <= cover_counts(law, 240, ALL) <= 0.95 + 0.02


def test_counts_in_a_batch_are_covered_by_neighbors():
    """Quick: an interval of sums without the error of leave-one-out covers about 0.7 here."""
    assert cover_counts("slope", 60, ("discriminant",)) > 0.78


def test_counts_follow_the_class_frequencies_that_are_given():
    """Balanced in training, nine to one in the batch: covered by those who are told."""
    assert cover_counts("slope", 60, ("discriminant",), [0.9, 0.1], n_out_of_9=1) > 0.78
    assert cover_counts("slope", 60, ("discriminant",), None, n_out_of_9=1) < 0.2


def test_numbers_as_text_are_rejected():
    """NumPy makes text of all columns if one holds text; whole numbers of a frame may be codes."""
    rows = np.array([[f"{i}.5", str(i % 3), "ab"[i % 2]] for i in range(12)])
    with pytest.raises(
        ValueError, match=r"column 0 holds numbers as text, such as '0\.5': convert"
    ):
        Columns().fit(rows)
    assert Columns([0, 1]).fit(rows).is_category.all()
    frame = pd.DataFrame(rows, columns=["x", "code", "word"])
    with pytest.raises(ValueError, match="column 'x' holds numbers as text"):
        Columns().fit(frame)
    assert Columns().fit(frame[["code", "word"]]).is_category.all()
