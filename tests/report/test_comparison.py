"""The comparison with other classifiers: on which rows, when there is none, and its errors."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.report import analyse, build_pipeline, comparison, plan_columns
from bayesknn.report.page import render_report
from tests.report.tables import QUICK

POOL = "pooled neighbours"
N = 120
RNG = np.random.default_rng(0)
Y = np.arange(N) % 2
FRAME = pd.DataFrame({"x": RNG.normal(size=N) + 3 * Y, "z": RNG.normal(size=N), "y": Y})
PLAN = plan_columns(FRAME, "y")


# Two members will do: the others are compared no differently.
OWN = PooledNeighborsClassifier(members=("robust", "within"), random_state=0)


def compared(labels=Y, rows=slice(None), table=FRAME):
    frame = table[["x", "z"]].iloc[rows]
    return comparison.compare(frame, np.asarray(labels)[rows], PLAN, build_pipeline(PLAN, OWN))


@pytest.fixture(scope="module")
def found():
    """Compare with the quick ones; test_cli_fit compares with all."""
    few = dict(list(comparison._list_candidates(OWN).items())[:3])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "_list_candidates", lambda own: few)
        return compared()


@pytest.fixture
def only_one_other(monkeypatch):
    """Where the others do not matter, there is only the quickest of them."""
    few = {"baseline: class frequencies": DummyClassifier(strategy="prior")}
    monkeypatch.setattr(comparison, "_list_candidates", lambda own: few)


@pytest.mark.usefixtures("only_one_other")
def test_on_large_tables_some_rows_are_enough(monkeypatch):
    rows = np.random.default_rng(0).choice(N, 60, replace=False)
    wanted = compared(rows=rows).results[POOL]
    monkeypatch.setattr(comparison, "MAX_ROWS", 60)
    some = compared().results[POOL]
    assert some.scores.n == 60
    assert some.scores.error < 0.2
    # The same rows without a limit give the same scores.
    assert some == wanted


@pytest.mark.parametrize("limit", [N, 60])
def test_classes_of_few_rows_are_not_compared(monkeypatch, limit):
    monkeypatch.setattr(comparison, "MAX_ROWS", limit)
    # Enough of the rare class in the table, none among the rows that are chosen.
    left_out = np.setdiff1d(np.arange(N), np.random.default_rng(0).choice(N, 60, replace=False))
    labels = np.zeros(N, int)
    labels[left_out[: comparison.MIN_CLASS - (limit == N)]] = 1
    assert compared(labels) is None


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
        comparison.compare(FRAME[["x", "z"]], Y, PLAN, build_pipeline(PLAN, own))
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
    plan = plan_columns(frame.assign(y=y), "y")
    for limit, n_rows, n_folds in ((2000, 250, 5), (800, 200, 2)):
        monkeypatch.setattr(comparison, "MAX_CELLS", limit)
        found = comparison.compare(frame, y, plan, build_pipeline(plan, OWN))
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


@pytest.mark.usefixtures("only_one_other")
def test_the_classifier_of_the_report_is_compared_with_its_own_settings():
    """Those that are given by class too, as a prior is."""
    prior = {"no": 0.9, "yes": 0.1}
    classes = np.array(["no", "yes"])[Y]
    plain = BayesianKNeighborsClassifier("pseudo", max_neighbors=10, beta_max=4.0, random_state=0)
    given = clone(plain).set_params(class_prior=prior)
    losses = []
    for own in (plain, given):
        found = comparison.compare(FRAME[["x", "z"]], classes, PLAN, build_pipeline(PLAN, own))
        assert found.own == "Bayesian kNN (Cucala et al. 2009), pseudo likelihood"
        losses.append(found.results[found.own].scores.log_loss)
        assert np.isfinite(found.half.excess)
    # Half of the rows are of either class, so the prior costs.
    assert losses[1] > losses[0]


def test_parts_of_the_rows_keep_every_class():
    labels = np.repeat([0, 1], [40, 3])
    kept = comparison._halve(labels, np.arange(43))
    assert np.bincount(labels[kept]).tolist() == [20, 2]
    assert len(set(kept)) == len(kept)
