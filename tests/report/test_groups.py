"""Rows that belong together: a fit by groups, from a file to the page."""

import json
from typing import ClassVar

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from bayesknn import PooledNeighborsClassifier
from bayesknn.evaluation.comparison import compare
from bayesknn.evaluation.folds import Folds
from bayesknn.evaluation.scores import average, bound_proportion, measure_area
from bayesknn.report import load_model, write_report
from bayesknn.report.analysis import analyse
from tests.report.tables import PSEUDO, QUICK, QUICK_OPTIONS, draw_visits, run, two_columns


@pytest.fixture(autouse=True)
def few_others(monkeypatch):
    few = {"baseline: class frequencies": DummyClassifier(strategy="prior")}
    monkeypatch.setattr("bayesknn.evaluation.comparison.list_candidates", lambda own: few)


def test_a_fit_by_groups_from_the_file_to_the_page(tmp_path):
    """The class says nothing about new patients: known ones would give it away."""
    draw_visits().to_csv(tmp_path / "train.csv", index=False)
    draw_visits(20, 3, seed=1).to_csv(tmp_path / "test.csv", index=False)
    words = ("fit", tmp_path / "train.csv", "--target", "y", *QUICK_OPTIONS)
    words = (*words, "--test", tmp_path / "test.csv", "--group", "patient")
    summary = json.loads(run(*words, "--compare", "--out", tmp_path / "a", "--json").stdout)
    assert summary["predicts"] == "rows of new patient" and summary["groups"] == {"patient": 30}
    assert summary["dropped"]["patient"] == "it names groups of rows, as you said"
    assert summary["scores"].keys() == {"leave-one-out", "test"}
    own = next(name for name in summary["comparison"] if name.startswith("Bayesian"))
    for scores in (summary["scores"]["leave-one-out"], summary["comparison"][own]):
        assert scores["error"] > 0.25
    lines = run(*words, "--out", tmp_path / "b").stdout.splitlines()
    assert lines[0] == "For: rows of new patient, fitted to 150 rows of 30 patient"
    assert any(text.startswith("Left out by whole patient: 150 rows of 30 pat") for text in lines)
    assert any(text.startswith("Test: 60 rows of 20 patient, error") for text in lines)
    page = (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
    assert "<strong>The predictions are for rows of new patient</strong>" in page
    assert "150 rows in 5 folds of whole patient: each" in page
    groups = load_model(tmp_path / "a").classifier_.groups_
    assert np.array_equal(groups, np.arange(150) // 5)


def test_what_cannot_be_a_group_is_named(tmp_path):
    table = draw_visits(10)
    with pytest.raises(ValueError, match="'patient' has no value in 2 rows .first in row 3.: give"):
        gaps = table.assign(patient=table["patient"].where(~table.index.isin([2, 7])))
        analyse(gaps, "y", settings=QUICK, group="patient")
    alone = analyse(table.assign(patient=range(50)), "y", settings=QUICK, group="patient")
    assert "--group: 'patient' differs in every row: the fit is the same without it" in (
        alone.warnings
    )
    assert not alone.newness
    two = table.assign(y=np.where(np.arange(50) < 2, 2, table["y"]))
    analysis = analyse(two, "y", settings=QUICK, group="patient", compared=True)
    (told,) = [text for text in analysis.warnings if "rows in one group alone" in text]
    assert told.startswith("class 2 has") and "no score uses them (2 rows)" in told
    assert analysis.scores["leave-one-out"].n == 48
    assert any("'2' has 0 groups; cross-validation needs 3" in text for text in analysis.messages)


def test_a_report_of_other_groups_is_refused(tmp_path):
    table = draw_visits()
    X, y, patients = table[["x", "z"]], table["y"], table["patient"]
    plain = PooledNeighborsClassifier(("evidence",), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="fitted without groups.*groups=groups"):
        write_report(plain, X, y, out=tmp_path / "r.html", groups=patients)
    clf = PSEUDO.fit(X, y, groups=patients)
    with pytest.raises(ValueError, match="fitted with other groups"):
        write_report(clf, X, y, out=tmp_path / "r.html", groups=np.arange(150) // 3)
    for groups, name in ((patients, "patient"), (None, "groups")):
        out = write_report(clf, X, y, out=tmp_path / "r.html", groups=groups)
        text = out.read_text(encoding="utf-8")
        assert f"fitted to 150 rows of 30 {name}" in text and f"rows of new {name}" in text


class _Spy(DummyClassifier):
    """A classifier that keeps the groups of its fits."""

    seen: ClassVar[list] = []

    def fit(self, X, y, groups=None):
        self.seen.append(groups)
        return super().fit(X, y)


def test_the_comparison_fits_by_groups(monkeypatch):
    monkeypatch.setattr(
        "bayesknn.evaluation.comparison.list_candidates", lambda own: {"spy": _Spy()}
    )
    table, _Spy.seen = draw_visits(12), []
    groups = np.arange(60) // 5
    compare(table[["x", "z"]], table["y"].to_numpy(), PSEUDO, Folds(groups))
    assert len(_Spy.seen) == 5
    for each in _Spy.seen:
        assert set(np.unique(each, return_counts=True)[1]) == {5}


def test_the_last_rows_are_predicted_without_their_groups():
    groups, order = np.arange(40) // 4, np.arange(40)
    groups[:5] = groups[-1]
    ((fit, last),) = Folds(groups, order).cut(order % 2, order, 5)
    assert last.tolist() == list(range(32, 40)) and not set(groups[fit]) & set(groups[last])


def test_errors_count_groups():
    """Each row ten times is as uncertain as each once."""
    rng = np.random.default_rng(0)
    values, weights, truth = rng.normal(size=30), rng.uniform(1, 2, 30), np.arange(30) % 2 == 0
    again = np.repeat(np.arange(30), 10)
    one = average(values, weights)
    assert average(values[again], weights[again], again) == pytest.approx(one)
    for hits in (values > 0, values > 9):
        one = bound_proportion(hits, np.ones(30))
        assert bound_proportion(hits[again], np.ones(300), again) == pytest.approx(one)
    one = measure_area(truth, values, weights, np.arange(30))
    assert measure_area(truth[again], values[again], weights[again], again) == pytest.approx(one)
    # The two formulas differ by factors n / (n - 1) of the classes.
    assert measure_area(truth, values, weights)[1] == pytest.approx(one[1], rel=0.1)


@pytest.mark.parametrize("has_changed", [True, False])
def test_a_gap_of_the_last_rows_is_told_where_it_is_more_than_chance(has_changed):
    table = two_columns(200)
    y = np.where(np.arange(200) < 160, table["y"], 1) if has_changed else table["y"]
    table = table.assign(day=range(200), y=y)
    analysis = analyse(table, "y", settings=QUICK, model="pseudo", time="day", drop=["day"])
    told = [text for text in analysis.warnings if "predicted worse than left-out rows" in text]
    assert len(told) == has_changed
    assert all(text.startswith("the last rows by day are") for text in told)
