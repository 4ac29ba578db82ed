"""Residuals along single columns: what they show, and what intervals make of it."""

import numpy as np
import pytest
from scipy.stats import binom

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.sureness.residuals import Pairs, find_misfit
from tests.statistical import check


def draw_step(n, rng, n_columns=8):
    """P = .02 or .98 by one of uniform columns."""
    X = rng.random((n, n_columns))
    p = np.where(X[:, 2] > 0.5, 0.98, 0.02)
    return X, (rng.random(n) < p).astype(int), p


def test_a_step_in_one_of_eight_columns_is_named_and_covered():
    """At n = 250 0.73 was covered by intervals that know neither votes nor columns."""
    import pandas as pd

    names = [f"x{j}" for j in range(8)]
    covered = []
    for seed in range(3):
        rng = np.random.default_rng([seed, 250])
        X, y, _ = draw_step(250, rng)
        new, _, p = draw_step(200, rng)
        clf = BayesianKNeighborsClassifier("pseudo", random_state=0, max_neighbors=100)
        clf.fit(pd.DataFrame(X, columns=names), y)
        assert clf.diagnostics_["misfit_column"] == "x2" and clf.diagnostics_["misfit_rows"] == 250
        assert any("depend on column 'x2'" in each for each in clf.diagnostics_["warnings"])
        low, high = clf.predict_interval(pd.DataFrame(new, columns=names))[:, 1].T
        covered.append(np.mean((low <= p) & (p <= high)))
    assert np.mean(covered) > 0.85


@pytest.mark.parametrize(("n", "p"), [(60, 4), (300, 12)])
def test_columns_of_noise_are_named_in_at_most_one_table_of_twenty(n, p):
    """The sum over pairs ten rows apart is skewed: 15 % of tables exceed a normal quantile."""

    def p_value(n_tables, seed):
        rng, n_named = np.random.default_rng(seed), 0
        for _ in range(n_tables):
            labels, X = rng.integers(2, size=n), rng.integers(n // 2, size=(n, p))
            misfit = find_misfit(np.full((n, 2), 0.5), labels, X, np.ones(n))
            n_named += misfit is not None and misfit.column is not None
        return binom.sf(n_named - 1, n_tables, 0.05)

    check(p_value, 200)


def test_distances_have_no_columns():
    rng = np.random.default_rng(0)
    X, y, _ = draw_step(60, rng)
    gaps = np.linalg.norm(X[:, None] - X, axis=2)
    clf = BayesianKNeighborsClassifier("pseudo", metric="precomputed").fit(gaps, y)
    assert clf.diagnostics_["misfit_column"] is None and clf.diagnostics_["misfit_rows"] == 0


def test_rows_that_are_sorted_by_class_show_no_dependence_by_themselves():
    """Equal values are not taken in the order of the file."""
    labels = np.repeat([1, 0], 150)
    X = np.tile([0.0, 1.0], 150)[:, None]
    assert find_misfit(np.full((300, 2), 0.5), labels, X, np.ones(300)) is None


def test_rows_that_vote_for_each_other_are_no_pair():
    x = np.arange(40.0)[:, None]
    labels = np.repeat([1, 0], 20)
    near = np.clip(np.arange(40) + np.r_[1:11, -10:0][:, None], 0, 39)
    known = np.full((40, 2), 0.5), labels, x, np.ones(40)
    assert find_misfit(*known).column == 0
    pairs = Pairs(near, lambda i, j, rank: known[0][i])
    assert find_misfit(*known, pairs).column == 0
    assert find_misfit(*known, pairs._replace(voters=near)) is None
    assert find_misfit(*known, pairs._replace(folds=np.arange(40))) is None
    assert find_misfit(*known, groups=np.repeat([3, 4], 20)) is None


def test_the_pool_names_the_column_too():
    rng = np.random.default_rng(3)
    X, y, _ = draw_step(400, rng, 6)
    # Smooth functions follow no step, so that residuals depend on its column.
    clf = PooledNeighborsClassifier(("smooth",), random_state=0).fit(X, y)
    assert clf.diagnostics_["misfit_column"] == 2
    assert any("depend on column '2'" in each for each in clf.diagnostics_["warnings"])


@pytest.mark.parametrize("votes", [20, 200])
def test_votes_that_agree_leave_open_what_so_many_leave(votes):
    """Nobody of k is of the class: P may still be some 2 / k at the level of 95 %."""
    n = 2 * votes
    y = np.repeat([0, 1], n)
    X = np.random.default_rng(0).random((2 * n, 2)) + 1000.0 * y[:, None]
    prior = np.arange(1, votes + 1) == votes
    clf = BayesianKNeighborsClassifier(
        "pseudo", prior=prior.astype(float), max_neighbors=votes, beta_max=20.0, random_state=0
    ).fit(X, y)
    (p, _), ((low, high), _) = (each[0] for each in clf.predict_summary([[1000.5, 1000.5]])[:2])
    print(p, low, high * votes)
    assert low <= p < 1e-3 and 1.7 / votes < high < 2.1 / votes
