"""Forward choice of columns: which it finds, where it stops, what it cannot see."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

from bayesknn import ClassicalKNeighborsClassifier, ColumnSelector
from bayesknn.column_selection import _beats_permuted
from bayesknn.datasets import load_ripley
from bayesknn.model import log_evidence_of_frequencies
from bayesknn.plots import ColumnPathDisplay

RIPLEY = load_ripley()


def with_noise(n_noise, seed, rows=slice(None)):
    """Ripley's two columns, then columns that say nothing."""
    X, y = RIPLEY.X_train[rows], RIPLEY.y_train[rows]
    return np.hstack([X, np.random.default_rng(seed).normal(size=(len(y), n_noise))]), y


def test_evidence_finds_the_two_columns_of_ripley():
    X, y = with_noise(1, 0, slice(None, None, 2))
    selector = ColumnSelector(random_state=0).fit(X, y)
    assert set(selector.order_) == {0, 1}
    assert selector.get_support(indices=True).tolist() == [0, 1]
    assert (np.diff(selector.scores_) > selector.score_errors_[1:]).all()
    assert selector.scores_[0] > selector.null_score_ == log_evidence_of_frequencies([63, 62])
    assert selector.informative_
    # What was refused does not exceed the last score by more than the errors.
    rise = np.nanmax(selector.candidate_scores_) - selector.scores_[-1]
    assert rise <= np.nanmax(selector.candidate_errors_) + selector.score_errors_[-1]


def count_informative(by, minority, n_runs):
    """Count the runs in which a column of noise is taken for more than that."""
    n, n_taken = 120, 0
    y = np.arange(n) < minority * n
    for seed in range(n_runs):
        X = np.random.default_rng(seed).normal(size=(n, 4))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            selector = ColumnSelector(by, random_state=seed).fit(X, y)
        assert selector.informative_ == (not any("no column says" in str(w.message) for w in said))
        assert len(selector.order_) == 1 or selector.informative_
        n_taken += selector.informative_
    return n_taken


# Either of the first two steps lets noise in with a probability of .01 at most: three in 20 runs
# with one of .007, two in 6 with one of .006.
@pytest.mark.parametrize("minority", [0.5, 0.15, 0.05])
def test_noise_is_not_selected_where_classes_are_unequal(minority):
    assert count_informative("loo", minority, 6) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("by", ["evidence", "pseudo-evidence"])
@pytest.mark.parametrize("minority", [0.5, 0.15, 0.05])
def test_noise_is_not_selected_by_evidence(by, minority):
    assert count_informative(by, minority, 20) <= 2


def test_evidence_takes_the_true_column_alone_where_classes_are_unequal():
    """Before, columns of noise joined it: beta explained the frequencies."""
    rng = np.random.default_rng(0)
    y = np.arange(100) < 8
    X = np.column_stack([rng.normal(size=100) + 3 * y, rng.normal(size=(100, 2))])
    selector = ColumnSelector("pseudo-evidence", random_state=0).fit(X, y)
    assert selector.order_.tolist() == [0]


@pytest.mark.slow
def test_evidence_is_not_fooled_by_ten_columns_of_noise():
    right = 0
    for seed in range(10):
        X, y = with_noise(10, seed)
        right += set(ColumnSelector(random_state=seed, n_jobs=2).fit(X, y).order_) == {0, 1}
    assert right >= 8


@pytest.mark.parametrize("by", ["pseudo-evidence", "loo"])
def test_the_quick_scores_find_them_too(by):
    X, y = with_noise(2, 1)
    selector = ColumnSelector(by).fit(X, y)
    assert {0, 1} <= set(selector.order_)
    assert (np.diff(selector.scores_) > 0).all()
    errors = selector.score_errors_
    assert (errors > 0).all() if by == "loo" else (errors == 0).all()


def test_forward_search_cannot_see_a_pure_interaction():
    """On a chess board each column alone says nothing, so that the first is chosen by accident."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(150, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    both = ColumnSelector("pseudo-evidence").fit(X, y)
    with pytest.warns(UserWarning, match="no column says more"):
        one = ColumnSelector("pseudo-evidence", max_columns=1).fit(X, y)
    assert one.scores_[0] < one.null_score_ + 3 < both.scores_[-1] - 20


def test_frames_pipelines_and_names():
    X, y = with_noise(1, 2, slice(None, None, 3))
    names = ["a", "b", "noise"]
    for frame in (pd.DataFrame, pl.DataFrame):
        table = frame(dict(zip(names, X.T, strict=True)))
        selector = ColumnSelector("pseudo-evidence", max_columns=2).fit(table, y)
        chosen = selector.transform(table)
        assert type(chosen) is frame
        assert list(chosen.columns) == selector.get_feature_names_out().tolist()
    pipeline = make_pipeline(ColumnSelector("pseudo-evidence"), ClassicalKNeighborsClassifier())
    assert pipeline.fit(table, y).score(table, y) > 0.8
    mixed = pd.DataFrame({"size": X[:, 1], "sign": np.where(X[:, 0] > 0, "+", "-")})
    mixed.loc[3, "size"] = np.nan
    assert ColumnSelector("pseudo-evidence").fit(mixed, y).order_[0] == 0


def test_bad_parameters_are_named():
    X, y = with_noise(0, 0)
    with pytest.raises(ValueError, match="by must be one of evidence, pseudo-evidence, loo"):
        ColumnSelector("aic").fit(X, y)
    with pytest.raises(ValueError, match="max_columns must be an integer >= 1"):
        ColumnSelector(max_columns=0).fit(X, y)
    with pytest.raises(ValueError, match="verbose must be an integer >= 0"):
        ColumnSelector(verbose="x").fit(X, y)


def test_the_path_is_drawn():
    X, y = with_noise(1, 3)
    display = ColumnPathDisplay.from_estimator(ColumnSelector("pseudo-evidence").fit(X, y))
    labels = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert labels[:3] == ["none", "+ column 1", "+ column 0"]
    assert display.ax_.get_ylabel() == "log pseudo-evidence"
    # This score has no errors: neither the points nor the legend have bars.
    assert not any(marks.has_yerr for marks in display.ax_.containers)
    display = ColumnPathDisplay.from_estimator(ColumnSelector("loo").fit(X, y))
    assert all(marks.has_yerr for marks in display.ax_.containers)
    plt.close("all")


def test_groups_are_permuted_whole_and_are_no_neighbors():
    """A column that tells visits of a patient apart says nothing of a new patient."""
    n_named = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(40), 4)
        own, effect = rng.normal(size=(2, 40))[:, groups]
        y = (rng.random(160) < 1 / (1 + np.exp(-3 * effect))).astype(int)
        given = own[:, None], np.empty((160, 0)), y
        n_named.append([_beats_permuted(*given, each, 99, rng) for each in (None, groups)])
    # By chance one in a hundred.
    assert np.sum(n_named, axis=0)[0] == 5 and np.sum(n_named, axis=0)[1] < 3
    X = np.column_stack([own, 4 * effect])
    selector = ColumnSelector("pseudo-evidence", random_state=0).fit(X, y, groups=groups)
    assert selector.order_.tolist() == [1]
