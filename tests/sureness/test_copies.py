"""Intervals where training rows have the very same values as a point."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.sureness.copies import Copies

# Passengers of the Titanic by class, sex and age, survivors and all: seven tenths of them.
TITANIC = {
    ("1st", "female", "adult"): (102, 105), ("1st", "male", "adult"): (44, 127),
    ("2nd", "female", "adult"): (58, 65), ("2nd", "female", "child"): (8, 8),
    ("2nd", "male", "adult"): (8, 119), ("3rd", "female", "adult"): (52, 117),
    ("3rd", "female", "child"): (10, 21), ("3rd", "male", "adult"): (50, 320),
    ("3rd", "male", "child"): (8, 33), ("crew", "female", "adult"): (11, 12),
    ("crew", "male", "adult"): (128, 611),
}  # fmt: skip
CELLS = pd.DataFrame(list(TITANIC), columns=["class", "sex", "age"])
SURVIVED, SIZES = np.array(list(TITANIC.values())).T
WOMEN, CREW = 2, 10
CLASSIFIERS = {
    "pool": PooledNeighborsClassifier(("evidence", "additive"), random_state=0),
    # Calibrated: what the model's own link states may be far off, and its interval reaches it.
    "pseudo": BayesianKNeighborsClassifier(
        "pseudo", metric="gower", calibrate=True, random_state=0
    ),
}


def spread_out(cells, sizes, survived):
    """Return a row for each passenger."""
    rows = cells.loc[np.repeat(np.arange(len(cells)), sizes)].reset_index(drop=True)
    counted = zip(sizes, survived, strict=True)
    return rows, np.concatenate([np.arange(size) < alive for size, alive in counted]).astype(int)


def jeffreys_width(count, n):
    low, high = beta.ppf([[0.025], [0.975]], count + 0.5, n - count + 0.5)
    return high - low


@pytest.fixture(scope="module", params=CLASSIFIERS)
def fitted(request):
    return CLASSIFIERS[request.param].fit(*spread_out(CELLS, SIZES, SURVIVED))


def widest(proba, survived, sizes):
    """Return 1.5 times the width of Jeffreys' interval, and as far beyond it as p is off."""
    known = jeffreys_width(survived, sizes)
    return 1.5 * known + np.maximum(np.abs(proba - survived / sizes) - known / 2, 0)


def test_large_cells_say_what_p_is(fitted):
    proba, intervals, _ = fitted.predict_summary(CELLS)
    low, high = intervals[:, 1].T
    assert ((low <= proba[:, 1]) & (proba[:, 1] <= high)).all()
    np.testing.assert_allclose(intervals[:, 0], 1 - intervals[:, 1, ::-1])
    assert (high - low <= widest(proba[:, 1], SURVIVED, SIZES))[SIZES >= 50].all()
    assert fitted.predict_zone(CELLS)[WOMEN] == 1
    if isinstance(fitted, PooledNeighborsClassifier):
        np.testing.assert_allclose([low[WOMEN], high[WOMEN]], [0.78, 0.96], atol=0.05)
        np.testing.assert_allclose([low[CREW], high[CREW]], [0.18, 0.24], atol=0.03)


def test_saved_models_know_the_copies(fitted):
    read = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(read.predict_interval(CELLS), fitted.predict_interval(CELLS))
    np.testing.assert_array_equal(read.loo_interval(), fitted.loo_interval())


def copies_of(values, labels, class_weight=(0.7, 1.0, 1.6)):
    """Return the copies among rows, each of which weighs as much as its class."""
    weight = np.array(class_weight)[labels]
    return Copies.from_rows(values, labels, weight, len(class_weight)), weight


def test_a_row_left_out_is_no_copy_of_itself(fitted):
    width = np.ptp(fitted.loo_interval()[:, 1], axis=1)
    most = widest(fitted.loo_proba_[:, 1], *np.repeat([SURVIVED, SIZES], SIZES, axis=1))
    assert (width <= most)[np.repeat(SIZES >= 50, SIZES)].mean() > 0.95
    rng = np.random.default_rng(0)
    values, labels = rng.integers(0, 3, (40, 2)) + 0.0, rng.integers(0, 3, 40)
    copies, weight = copies_of(values, labels)
    counts = copies.count_others(labels, weight)
    for i in range(40):
        rest = np.arange(40) != i
        others = copies_of(values[rest], labels[rest])[0].count_new(values[[i]])
        np.testing.assert_allclose(counts[i], others[0], atol=1e-9)


def test_unequal_weights_are_worth_fewer_copies():
    X, y = spread_out(CELLS, SIZES, SURVIVED)
    clf = PooledNeighborsClassifier(("evidence",), random_state=0)
    even = clf.fit(X, y, np.full(len(y), 3.0)).predict_interval(CELLS)
    np.testing.assert_allclose(even, clf.fit(X, y).predict_interval(CELLS))
    weight = np.where(np.arange(len(y)) % 10 == 0, 30.0, 1.0)
    clf.fit(X, y, weight)
    assert np.ptp(clf.predict_interval(CELLS)[CREW, 1]) > 1.5 * np.ptp(even[CREW, 1])


def test_tables_without_copies_have_none():
    ripley = load_ripley()
    clf = BayesianKNeighborsClassifier("pseudo", random_state=0)
    clf.fit(ripley.X_train, ripley.y_train)
    assert clf._describe_new(ripley.X_train, None).copies is None
    assert clf._describe_left_out(None).copies is None


def test_new_values_have_no_copies():
    known, _ = copies_of(np.array([[0.0], [-0.0], [1.0]]), [0, 1, 1], (1.0, 1.0))
    copies = known.count_new(np.array([[0.0], [2.0]]))
    np.testing.assert_array_equal(copies, [[1, 1], [0, 0]])


def test_rows_are_looked_up_as_in_a_dictionary():
    rng = np.random.default_rng(0)
    values, labels = rng.integers(-2, 3, (300, 3)) / 3.0, rng.integers(0, 2, 300)
    copies, _ = copies_of(values, labels, (1.0, 1.0))
    new = np.vstack([values[::7], -values[::7], [[9.0, 9.0, 9.0], [-9.0, 0.0, 0.0]]])
    rows = {}
    for row, label in zip(values.tolist(), labels, strict=True):
        rows.setdefault(tuple(row), np.zeros(2))[label] += 1
    expected = [rows.get(tuple(row), np.zeros(2)) for row in new.tolist()]
    np.testing.assert_array_equal(copies.count_new(new), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("shape", [(4, 3), (3, 5, 4)])
def test_intervals_cover_in_random_cells(name, shape):
    """Cells of very unequal size, each with a P of its own; new points from the same cells."""
    covered, ratios = [], []
    for seed in range(20):
        rng = np.random.default_rng([seed, len(shape)])
        cells = pd.DataFrame(np.argwhere(np.ones(shape)), columns=list("abc")[: len(shape)])
        cells = cells.astype(str)
        n_cells = len(cells)
        truth, shares = rng.random(n_cells), rng.dirichlet(np.full(n_cells, 0.7))
        sizes = rng.multinomial(600, shares)
        counts = rng.binomial(sizes, truth)
        clf = CLASSIFIERS[name].fit(*spread_out(cells, sizes, counts))
        seen = np.flatnonzero(sizes)
        ends = clf.predict_interval(cells.loc[seen])[:, 1]
        of_rows = clf.loo_interval()[:, 1], np.repeat(truth, sizes)
        hits = [(low <= p) & (p <= high) for (low, high), p in (
            (ends.T, truth[seen]), (of_rows[0].T, of_rows[1])
        )]  # fmt: skip
        covered.append([hits[0] @ shares[seen] / shares[seen].sum(), hits[1].mean()])
        width = jeffreys_width(counts, sizes)[seen]
        ratios += (np.ptp(ends, axis=1) / width)[sizes[seen] >= 50].tolist()
    mean, error = np.mean(covered, axis=0), np.std(covered, axis=0) / np.sqrt(len(covered))
    assert (mean > 0.93 - 2 * error).all()
    assert np.mean(ratios) < 1.5
