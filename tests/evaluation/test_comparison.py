"""The comparison with other classifiers: on which rows, when there is none, and its errors."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_info, threadpool_limits

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.evaluation import comparison
from bayesknn.evaluation.folds import Folds, draw_rows, halve
from bayesknn.report import analyse
from bayesknn.report.page import render_report
from tests.report.tables import QUICK

POOL = "pooled neighbours"
N = 120
RNG = np.random.default_rng(0)
Y = np.arange(N) % 2
FRAME = pd.DataFrame({"x": RNG.normal(size=N) + 3 * Y, "z": RNG.normal(size=N), "y": Y})


# Two members will do: the others are compared no differently.
OWN = PooledNeighborsClassifier(members=("evidence", "discriminant"), random_state=0)


def compared(labels=Y, rows=slice(None), table=FRAME):
    frame = table[["x", "z"]].iloc[rows]
    return comparison.compare(frame, np.asarray(labels)[rows], OWN)


@pytest.fixture(scope="module")
def found():
    """Compare with the quick ones; test_cli_fit compares with all."""
    few = dict(list(comparison.list_candidates(OWN).items())[:3])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "list_candidates", lambda own: few)
        return compared()


@pytest.fixture
def only_one_other(monkeypatch):
    """Where the others do not matter, there is only the quickest of them."""
    few = {"baseline: class frequencies": DummyClassifier(strategy="prior")}
    monkeypatch.setattr(comparison, "list_candidates", lambda own: few)


@pytest.mark.usefixtures("only_one_other")
def test_on_large_tables_some_rows_are_enough(monkeypatch):
    wanted = compared(rows=draw_rows(Y, 60)).results[POOL]
    monkeypatch.setattr(comparison, "MAX_ROWS", 60)
    some = compared().results[POOL]
    assert some.scores.n == 60
    assert some.scores.error < 0.2
    # The same rows without a limit give the same scores.
    assert some == wanted


@pytest.mark.usefixtures("only_one_other")
def test_a_rare_class_stays_among_the_rows_that_are_drawn(monkeypatch):
    """Of 5 rare rows in 200 all are kept, and scores are those of their true proportion."""
    monkeypatch.setattr(comparison, "MAX_ROWS", 60)
    y = (np.arange(200) >= 195).astype(int)
    x = np.random.default_rng(0).normal(size=200) + 2 * y
    frame = pd.DataFrame({"x": x, "z": x[::-1]})
    groups = np.arange(200) % 10
    for folds in (None, Folds(groups)):
        found = comparison.compare(frame, y, OWN, folds)
        baseline = found.results["baseline: class frequencies"]
        assert baseline.scores.error == pytest.approx(5 / 200)
        # Odds are moved from those of the rows drawn to those of all.
        entropy = -0.025 * np.log(0.025) - 0.975 * np.log(0.975)
        assert baseline.scores.log_loss == pytest.approx(entropy, rel=0.05)


def test_a_draw_keeps_small_classes_and_the_proportions_of_the_others():
    labels = np.repeat([0, 1, 2], [20_000, 9_955, 45])
    drawn = draw_rows(labels, 1000)
    assert np.bincount(labels[drawn]).tolist() == [667, 332, 45]
    assert len(set(drawn.tolist())) == len(drawn)
    np.testing.assert_array_equal(draw_rows(labels[:900], 1000), np.arange(900))
    many = np.arange(10_000) % 200
    assert np.bincount(many[draw_rows(many, 1000)]).tolist() == [5] * 200


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({}, (0, 0)),
        ({"compared": True}, (0, 1)),
        ({"group": "g", "compared": True}, (0, 1)),
        ({"time": "z", "compared": True}, (1, 1)),
    ],
)
def test_what_a_class_of_two_rows_prevents_is_named(options, lines):
    table = FRAME.assign(y=np.where(np.arange(N) < 2, 2, Y), g=np.arange(N) % 7)
    analysis = analyse(table, "y", settings=QUICK, **options)
    unit = "groups" if "group" in options else "rows"
    few = f"class '2' has 2 {unit}; cross-validation needs 3 of each"
    evaluation = [text for text in analysis.warnings if text.endswith(few)]
    compared = [text for text in analysis.messages if text.endswith(few)]
    assert (len(evaluation), len(compared)) == lines
    assert all("rows by z" in text and "other classifiers" not in text for text in evaluation)
    assert all("comparison with other classifiers" in text for text in compared)


def test_the_best_has_the_smallest_log_loss_and_errors_are_those_of_the_rows(found):
    losses = {name: each.scores.log_loss for name, each in found.results.items()}
    own = found.results[POOL]
    assert len(losses) == 4
    others = {name: loss for name, loss in losses.items() if name != POOL}
    assert losses[found.best_other] == min(others.values())
    # Class frequencies: every row has probability 1/2, so its loss does not vary.
    baseline = found.results["baseline: class frequencies"]
    assert baseline.scores.log_loss == pytest.approx(np.log(2))
    assert baseline.standard_errors.log_loss == pytest.approx(0.0, abs=1e-12)
    p = own.scores.error
    assert own.standard_errors.error == pytest.approx(np.sqrt(p * (1 - p) / (N - 1)))
    assert (own.excess, own.excess_error) == (0.0, 0.0)
    assert baseline.excess == pytest.approx(np.log(2) - own.scores.log_loss)
    assert baseline.excess_error == pytest.approx(own.standard_errors.log_loss)


@pytest.mark.usefixtures("only_one_other")
def test_more_rows_help_where_classes_must_be_learnt(found):
    assert (found.half.n_fitted, found.results[POOL].n_fitted) == (48, 96)
    assert 0 < found.half.excess_error < 0.2
    # Harder data: half of the rows are clearly too few.
    table = FRAME.assign(x=FRAME["x"] * np.where(np.arange(N) % 4 < 2, 1, -1))
    assert compared(table=table).half.excess > 0


@pytest.mark.usefixtures("only_one_other")
def test_classifiers_are_compared_in_one_thread_and_the_bar_names_them(monkeypatch):
    """On so few rows threads wait for each other; whoever waits sees for what."""
    shown, threads = [], []

    @contextmanager
    def open_bar(doing, total, **options):
        shown.append((doing, total, options["verbose"]))
        yield lambda steps: threads.append({pool["num_threads"] for pool in threadpool_info()})

    monkeypatch.setattr(comparison, "progress", open_bar)
    own = clone(OWN).set_params(verbose=1)
    with threadpool_limits(2):
        comparison.compare(FRAME[["x", "z"]], Y, own)
    assert shown == [
        ("Comparing with baseline: class frequencies", 5, 1),
        ("Comparing with pooled neighbours", 5, 1),
        ("Fitting to half of the rows", 5, 1),
    ]
    assert threads == [{1}] * 15


@pytest.mark.usefixtures("only_one_other")
def test_of_many_columns_fewer_rows_are_compared(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    frame = pd.DataFrame(rng.normal(size=(400, 8)) + y[:, None]).rename(columns=str)
    for limit, n_rows, n_folds in ((2000, 250, 5), (800, 200, 2)):
        monkeypatch.setattr(comparison, "MAX_CELLS", limit)
        found = comparison.compare(frame, y, OWN)
        assert (found.results[POOL].scores.n, found.n_folds) == (n_rows, n_folds)
        assert (found.half is None) == (n_folds == 2)


@pytest.mark.usefixtures("only_one_other")
def test_large_tables_have_two_folds_and_nothing_on_more_rows(monkeypatch):
    monkeypatch.setattr(comparison, "MAX_CELLS", 2 * N - 1)
    found = compared()
    assert (found.n_folds, found.half) == (2, None)
    analysis = analyse(FRAME, "y", settings=QUICK)
    analysis.comparison = found
    page = render_report(analysis, source="t", command="", files={})
    assert "Not computed: fits to this many columns take too long." in page


def probabilities_left_out(model, X, y, prior, weights):
    """Return cross-validated probabilities, their odds multiplied by p_g over the fold's q_g."""
    p = np.empty((len(y), 2))
    for fit, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        options = {} if weights is None else {"sample_weight": weights[fit]}
        each = clone(model).fit(X[fit], y[fit], **options).predict_proba(X[test])
        sums = np.bincount(y[fit], None if weights is None else weights[fit])
        each = each * (prior if prior is not None else sums) / sums
        p[test] = each / each.sum(axis=1, keepdims=True)
    return p


@pytest.mark.parametrize("prior", [None, [0.1, 0.9]])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_all_classifiers_have_the_prior_and_the_weights(monkeypatch, prior, is_weighted):
    """By hand, row by row; the rows weigh as the prior and the fit weigh them."""
    logistic = LogisticRegression()
    monkeypatch.setattr(comparison, "list_candidates", lambda own: {"logistic": logistic})
    weights = np.where(np.arange(N) % 3, 1.0, 5.0) if is_weighted else None
    own = clone(OWN).set_params(class_prior=prior)
    prior = None if prior is None else np.array(prior)
    X = FRAME[["x", "z"]]
    found = comparison.compare(X, Y, own, weights=weights, class_prior=prior)
    w = np.ones(N) if weights is None else weights
    if prior is not None:
        w = w * (prior / np.bincount(Y, w))[Y]
    losses = {}
    for name, model in (("logistic", logistic), (POOL, OWN)):
        p = probabilities_left_out(model, X.to_numpy(), Y, prior, weights)
        losses[name] = -np.log(p[np.arange(N), Y])
        scores = found.results[name].scores
        assert scores.log_loss == pytest.approx(np.average(losses[name], weights=w))
        assert scores.error == pytest.approx(np.average(p.argmax(axis=1) != Y, weights=w))
    excess = losses["logistic"] - losses[POOL]
    assert found.results["logistic"].excess == pytest.approx(np.average(excess, weights=w))
    assert found.unweighted == []


def test_classifiers_that_take_no_weights_are_named(monkeypatch):
    plain = BayesianKNeighborsClassifier("pseudo", max_neighbors=10, beta_max=4.0, random_state=0)
    monkeypatch.setattr(comparison, "list_candidates", lambda own: {"plain": plain})
    weights = np.where(np.arange(N) % 3, 1.0, 0.0)
    X = FRAME[["x", "z"]]
    rows = np.flatnonzero(weights)
    found = comparison.compare(X, Y, OWN, weights=weights)
    # A row of weight 0 is in no fit and in no score.
    wanted = comparison.compare(X.iloc[rows], Y[rows], OWN)
    assert found == wanted and found.unweighted == []
    found = comparison.compare(X, Y, OWN, weights=1 + weights)
    assert found.unweighted == ["plain"]


@pytest.mark.usefixtures("only_one_other")
def test_a_prior_is_given_to_the_classes_that_a_fold_has():
    """The last class is in one group alone: the fit without that group has two classes."""
    y = np.where(np.arange(N) < 4, 2, Y)
    prior = np.array([0.2, 0.3, 0.5])
    own = BayesianKNeighborsClassifier(
        "pseudo", max_neighbors=10, beta_max=4.0, class_prior=prior, random_state=0
    )
    groups = np.where(y == 2, 4, np.arange(N) % 4)
    found = comparison.compare(
        FRAME[["x", "z"]], y, own, Folds(groups),
        class_prior=prior,
    )  # fmt: skip
    # Half of the weight is of rows that no fit can predict.
    assert found.results[found.own].scores.error > 0.5


def test_parts_of_the_rows_keep_every_class():
    labels = np.repeat([0, 1], [40, 3])
    kept = halve(labels, np.arange(43))
    assert np.bincount(labels[kept]).tolist() == [20, 2]
    assert len(set(kept)) == len(kept)


class _Frequencies(ClassifierMixin, BaseEstimator):
    """Class frequencies of the fit, by a classifier that takes no weights."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.p_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.p_, (len(X), 1))


@pytest.mark.parametrize("prior", [None, np.array([0.2, 0.8])])
def test_odds_of_a_fit_without_weights_are_moved_to_the_weighted_frequencies(monkeypatch, prior):
    """Three quarters of the weight is of one class, whatever a fit without weights predicts."""
    monkeypatch.setattr(comparison, "list_candidates", lambda own: {"plain": _Frequencies()})
    weights = np.where(Y == 1, 3.0, 1.0)
    found = comparison.compare(FRAME[["x", "z"]], Y, OWN, weights=weights, class_prior=prior)
    q = 0.75 if prior is None else 0.8
    entropy = -q * np.log(q) - (1 - q) * np.log(1 - q)
    assert found.results["plain"].scores.log_loss == pytest.approx(entropy)
    assert found.unweighted == ["plain"]
