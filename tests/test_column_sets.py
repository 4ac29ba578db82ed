"""The posterior over sets of columns: against sums over all sets, and on labels of nothing."""

import math
import pickle
import warnings
from itertools import chain, combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import skops.io

from bayesknn import BayesianKNeighborsClassifier, ColumnSelector, column_sets
from bayesknn.column_sets import list_sets, log_prior, search_sets, weigh_sets
from bayesknn.datasets import load_ripley
from bayesknn.labels import find_beta_max
from bayesknn.plots import ColumnSetsDisplay

RIPLEY = load_ripley()


def subsets(n_columns):
    return list(
        chain.from_iterable(combinations(range(n_columns), size) for size in range(n_columns + 1))
    )


def table(n_noise, seed, step):
    """Every step-th row of Ripley's training points, with columns that say nothing."""
    X, y = RIPLEY.X_train[::step], RIPLEY.y_train[::step]
    return np.hstack([X, np.random.default_rng(seed).normal(size=(len(y), n_noise))]), y


@pytest.mark.parametrize("most", [1, 3, 5])
def test_the_prior_of_all_sets_sums_to_one_and_every_size_has_the_same(most):
    sets = list_sets(range(5), most)
    assert sets == [each for each in subsets(5) if len(each) <= most]
    prior = np.exp([log_prior(len(each), 5, most) for each in sets])
    by_size = np.bincount([len(each) for each in sets], prior)
    np.testing.assert_allclose(by_size, 1 / (most + 1))


def test_probabilities_and_errors_are_those_of_drawn_evidences():
    rng = np.random.default_rng(0)
    sets = subsets(3)
    values, errors = 2 * rng.normal(size=8), rng.uniform(0, 0.2, size=8)

    def weigh(values):
        evidences = {each: pair for each, *pair in zip(sets, values, errors, strict=True)}
        return weigh_sets(evidences, 3, 3, 3)

    posterior = weigh(values)
    weight = {s: math.exp(v) / math.comb(3, len(s)) for s, v in zip(sets, values, strict=True)}
    total = sum(weight.values())
    for each, p in zip(posterior.sets, posterior.probabilities, strict=True):
        assert p == pytest.approx(weight[each] / total)
    assert (np.diff(posterior.probabilities) <= 0).all()
    for column, p in enumerate(posterior.inclusion):
        assert p == pytest.approx(sum(w for s, w in weight.items() if column in s) / total)
    drawn = [weigh(values + errors * rng.normal(size=8)) for _ in range(2000)]
    spread = np.std([each.inclusion for each in drawn], axis=0)
    np.testing.assert_allclose(posterior.inclusion_errors, spread, rtol=0.2)
    of_set = [dict(zip(each.sets, each.probabilities, strict=True)) for each in drawn]
    for each, error in zip(posterior.sets, posterior.errors, strict=True):
        assert np.std([row[each] for row in of_set]) == pytest.approx(error, rel=0.2, abs=1e-4)


def run_search(evidence, n_columns, seed):
    """Search from the empty set; return the posterior and what it is said to miss."""
    scored = {}

    def score(columns):
        return scored.setdefault(columns, (evidence(columns), 0.0))[0]

    rng = np.random.default_rng(seed)
    missed = search_sets(score, scored, (), range(n_columns), n_columns, rng)
    return weigh_sets(scored, n_columns, n_columns, n_columns), missed


def test_the_search_agrees_with_the_sum_over_all_sets():
    gains = np.array([6.0, 4.0, 1.5, -1, -1, -1.5, -1.5, -2, -2, -1, -2])

    def evidence(columns):
        # The last pair is worth much, and each of the two costs when alone.
        pair = {9, 10} <= set(columns)
        return gains[list(columns)].sum() + 14.0 * pair

    every = {each: (evidence(each), 0.0) for each in subsets(11)}
    truth = weigh_sets(every, 11, 11, 11)
    for seed in range(3):
        posterior, missed = run_search(evidence, 11, seed)
        known = sum(p for s, p in zip(truth.sets, truth.probabilities, strict=True)
                    if s in set(posterior.sets))  # fmt: skip
        assert len(posterior.sets) < 0.6 * len(every)
        assert 1 - known < missed + 0.05 < 0.2
        np.testing.assert_allclose(posterior.inclusion, truth.inclusion, atol=0.1)


def test_a_search_among_too_many_sets_says_how_much_it_missed():
    """Without any evidence every size of a set is equally probable: most sets are not visited."""
    posterior, missed = run_search(lambda columns: 0.0, 13, 0)
    known = sum(math.exp(log_prior(len(each), 13, 13)) for each in posterior.sets)
    assert 1 - known > 0.2
    assert abs(missed - (1 - known)) < 0.3


def test_set_probabilities_follow_from_the_evidence_of_a_classifier_for_each_set():
    X, y = table(1, 0, 4)
    selector = ColumnSelector("pseudo-evidence", random_state=0).fit(X, y)
    Z, new = (X - X.mean(axis=0)) / X.std(axis=0), X[:5] + 0.1
    Z_new = (new - X.mean(axis=0)) / X.std(axis=0)
    whole = BayesianKNeighborsClassifier("pseudo").fit(Z, y)
    seed = int(np.random.SeedSequence(0).generate_state(1)[0])
    beta_max = find_beta_max(whole.graph_, 2, random_state=seed).beta_max
    logs, probabilities = {(): selector.null_score_}, {(): np.full((5, 2), 0.5)}
    sizes = np.bincount(y)
    probabilities[()] = np.tile((sizes + 1) / (sizes.sum() + 2), (5, 1))
    for each in subsets(3)[1:]:
        clf = BayesianKNeighborsClassifier("pseudo", beta_max=beta_max).fit(Z[:, each], y)
        logs[each] = clf.log_evidence_
        probabilities[each] = clf.predict_proba(Z_new[:, each])
    weight = {each: math.exp(v + log_prior(len(each), 3, 3)) for each, v in logs.items()}
    total = sum(weight.values())
    expected = {each: w / total for each, w in weight.items()}
    assert selector.set_probabilities_ == pytest.approx(expected, rel=1e-6)
    inclusion = [sum(p for s, p in expected.items() if j in s) for j in range(3)]
    np.testing.assert_allclose(selector.inclusion_probabilities_, inclusion, rtol=1e-6)
    assert selector.missed_probability_ == 0.0
    assert not selector.inclusion_errors_.any() and not any(selector.set_errors_.values())
    averaged = sum(p * probabilities[each] for each, p in expected.items())
    # The sets beyond 99 % of the posterior are left out.
    np.testing.assert_allclose(selector.predict_proba(new), averaged, atol=0.01)
    trusted = ["bayesknn.column_selection.ColumnSelector"]
    loaded = skops.io.loads(skops.io.dumps(selector), trusted=trusted)
    for other in (pickle.loads(pickle.dumps(selector)), loaded):
        np.testing.assert_array_equal(other.predict_proba(new), selector.predict_proba(new))
        assert other.set_probabilities_ == selector.set_probabilities_


def test_evidence_carries_its_monte_carlo_error_into_the_inclusion():
    X, y = table(1, 1, 5)
    selector = ColumnSelector(max_columns=2, random_state=0).fit(X[:, 1:], y)
    assert set(selector.set_probabilities_) == {(), (0,), (1,), (0, 1)}
    assert selector.inclusion_probabilities_[0] > 0.99
    assert 0 < selector.inclusion_errors_[1] < 0.2
    assert sum(selector.set_probabilities_.values()) == pytest.approx(1)


@pytest.mark.parametrize("by", ["pseudo-evidence", "evidence"])
def test_many_columns_are_searched(by, monkeypatch):
    """As with more than eight columns, but quicker: four, and no more than eight sets at once."""
    monkeypatch.setattr(column_sets, "_ALL", 8)
    X, y = table(2, 0, 8)
    searched = ColumnSelector(by, random_state=0).fit(X, y)
    assert 0 <= searched.missed_probability_ < 0.1
    monkeypatch.undo()
    if by == "pseudo-evidence":
        full = ColumnSelector(by, random_state=0).fit(X, y)
        assert len(searched.set_probabilities_) <= len(full.set_probabilities_) == 16
        np.testing.assert_allclose(
            searched.inclusion_probabilities_, full.inclusion_probabilities_, atol=0.02
        )


def mean_inclusion(by, minority, n, p, n_tables):
    """Return the mean posterior probability of a column over tables of noise."""
    y, means = np.arange(n) < minority * n, []
    for seed in range(n_tables):
        X = np.random.default_rng(seed).normal(size=(n, p))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            selector = ColumnSelector(by, random_state=seed).fit(X, y)
        means.append(selector.inclusion_probabilities_.mean())
    return np.mean(means), np.std(means) / n_tables**0.5


def test_noise_is_included_less_than_the_prior_includes_it():
    mean, error = mean_inclusion("pseudo-evidence", 0.2, 50, 2, 12)
    assert mean + error < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("by", ["pseudo-evidence", "evidence"])
@pytest.mark.parametrize("minority", [0.5, 0.15])
def test_noise_is_included_less_than_the_prior_includes_it_on_100_tables(by, minority):
    mean, error = mean_inclusion(by, minority, 40, 2, 100)
    assert mean + 3 * error < 0.5


def test_the_leave_one_out_score_has_no_posterior():
    X, y = table(0, 0, 5)
    selector = ColumnSelector("pseudo-evidence").fit(X, y)
    assert hasattr(selector, "predict_proba")
    selector.set_params(by="loo").fit(X, y)
    assert not hasattr(selector, "predict_proba")
    with pytest.raises(AttributeError, match="by='loo' has no posterior over sets"):
        _ = selector.set_probabilities_
    assert not hasattr(selector, "inclusion_probabilities_")


def test_the_filled_part_of_a_row_is_the_inclusion_probability():
    sets = {(0, 2): 0.6, (0,): 0.3, (): 0.1}
    display = ColumnSetsDisplay(["a", "b", "c"], sets, [0.9, 0.0, 0.6], [0.01, 0.0, 0.0]).plot()
    filled = np.zeros(3)
    for bars in display.ax_.collections:
        for path in bars.get_paths():
            box = path.get_extents()
            filled[round((box.y0 + box.y1) / 2)] += box.width
    np.testing.assert_allclose(filled, [0.9, 0.0, 0.6])
    labels = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert labels == ["a  0.90 ± 0.01", "b  0.00", "c  0.60"]
    X, y = table(0, 0, 5)
    ColumnSetsDisplay.from_estimator(ColumnSelector("pseudo-evidence").fit(X, y))
    plt.close("all")
