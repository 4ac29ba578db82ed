"""The way from a table to predictions: which rows, which basis, what is told."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from bayesknn.evaluation.folds import Folds, FoldsError
from bayesknn.model import UniformPrior
from bayesknn.model_file.adapters import PosteriorAdapter
from bayesknn.model_file.predictions import Predictions
from bayesknn.report import analyse
from bayesknn.report.page import render_report
from tests.report.tables import QUICK, mixed_table, two_columns


@pytest.fixture(scope="module")
def found():
    table = two_columns()
    return analyse(table, "y", table, settings=QUICK)


def test_training_rows_are_left_out_one_by_one(found):
    training, clf = found.training, found.classifier
    np.testing.assert_array_equal(training.probabilities, clf.loo_proba_)
    assert training.basis == "leave-one-out"
    low, high = training.intervals[..., 0], training.intervals[..., 1]
    assert np.all((low <= training.probabilities) & (training.probabilities <= high))
    # New rows at the same places know their own labels, so these are other numbers.
    assert not np.allclose(training.probabilities, found.test.probabilities)


def test_the_table_of_predictions(found):
    frame = found.predictions.to_frame()
    assert list(frame) == [
        "row", "basis", "actual", "class", "probability 0", "low 0", "high 0", "probability 1",
        "low 1", "high 1", "zone", "expected loss",
    ]  # fmt: skip
    assert frame["row"].tolist() == list(range(1, 81))
    assert set(frame["basis"]) == {"new row"}
    np.testing.assert_allclose(frame["probability 0"] + frame["probability 1"], 1.0)
    likely = frame[["probability 0", "probability 1"]].max(axis=1)
    np.testing.assert_allclose(frame["expected loss"], 1 - likely)
    sure = frame["zone"] != "undecided"
    assert 0 < sure.sum() < 80
    assert (frame["zone"][sure] == frame["class"][sure]).all()
    clf = found.classifier
    points = found.model.preparer_.transform(found.test.frame)
    zones = [str(zone) for zone in clf.predict_zone(points)]
    assert zones == frame["zone"].tolist()


def test_identifiers_are_kept_whatever_they_are_called():
    p = np.array([[0.75, 0.25]])
    names = ["row", "decision", "decision loss", "probability a", "class", "id class", "basis"]
    table = Predictions(
        np.array(["a", "b"]), p, np.stack([p, p], axis=2), identifiers=names,
        frame=pd.DataFrame([names], [1], names), loss=1 - np.eye(2),
    ).to_frame()  # fmt: skip
    assert table["decision"].tolist() == ["a"] and table["row"].tolist() == [1]
    assert table["probability a"].tolist() == [0.75]
    # Each under a name that is not taken.
    assert table.iloc[0, 1 : 1 + len(names)].tolist() == names
    assert table.columns.is_unique


def test_a_class_called_undecided_is_not_a_zone():
    p = np.array([[0.75, 0.25]])
    wide = np.stack([0 * p, 0 * p + 1], axis=2)
    for names, zone in ((["a", "b"], "undecided"), (["undecided", "(undecided)"], "((undecided))")):
        table = Predictions(np.array(names), p, wide, frame=pd.DataFrame(index=[1])).to_frame()
        assert (table["class"][0], table["zone"][0]) == (names[0], zone)


def test_rows_without_a_class_are_left_out_and_told():
    table = mixed_table()
    table.loc[[3, 7], "kind"] = None
    analysis = analyse(table, "kind", settings=QUICK)
    assert analysis.messages == ["2 rows without a value in 'kind' left out: 4, 8"]
    assert len(analysis.training.rows) == 88
    assert not {4, 8} & set(analysis.training.rows.tolist())


def test_missing_values_are_filled_and_told():
    table = mixed_table()
    table.loc[[3, 7], "length"] = np.nan
    table.loc[[5], "town"] = None
    analysis = analyse(table, "kind", impute=True, settings=QUICK)
    assert analysis.messages == [
        "column 'length' has no value in 2 rows: filled with its median",
        "column 'town' has no value in 1 row: filled with a category of its own",
    ]


def test_test_rows_of_unknown_class_or_category_are_told():
    table = mixed_table()
    test = mixed_table(6, seed=1).assign(town="nowhere")
    test.loc[0, "kind"] = "unheard of"
    analysis = analyse(
        table, "kind", test, settings={**QUICK, "max_neighbors": 40, "beta_max": 8.0}
    )
    assert analysis.test.actual[0] == -1
    assert [text.split(":")[0] for text in analysis.warnings] == [
        "column 'town' of the test table holds categories that training did not see in 6 rows, "
        "such as 'nowhere'",
        "1 test row of a class that training did not see ('unheard of' in 'kind') cannot be "
        "predicted right",
    ]


def test_a_test_table_without_the_target_has_no_scores():
    table = two_columns()
    analysis = analyse(table, "y", table[["z", "x"]], settings=QUICK)
    assert set(analysis.scores) == {"leave-one-out"}
    assert "actual" not in analysis.predictions.to_frame()
    # Columns are known by name.
    same = analyse(table, "y", table, settings=QUICK)
    np.testing.assert_array_equal(same.test.probabilities, analysis.test.probabilities)


@pytest.mark.parametrize("kind", ["numbers", "words"])
def test_test_rows_without_a_class_do_not_take_the_score_from_the_others(kind):
    table = two_columns()
    if kind == "words":
        table["y"] = np.where(table["y"] == 1, "b", "a")
    test = table.copy()
    test["y"] = test["y"].astype(object)
    test.loc[[0, 5], "y"] = None
    test["y"] = test["y"].astype("float64" if kind == "numbers" else object)
    analysis = analyse(table, "y", test, settings=QUICK)
    whole = analyse(table, "y", table.drop([0, 5]), settings=QUICK)
    assert analysis.scores["test"] == whole.scores["test"]
    assert analysis.scores["test"].n == 78
    message = "2 of 80 test rows without a value in 'y': predicted and not scored"
    assert analysis.messages == [message]
    frame = analysis.predictions.to_frame()
    assert len(frame) == 80 and frame["actual"][0] == ""
    assert message.replace("'", "&#39;") in render_report(
        analysis, source="t", command="", files={}
    )
    analysis = analyse(table, "y", test.assign(y=np.nan), settings=QUICK)
    assert set(analysis.scores) == {"leave-one-out"}
    assert analysis.messages == [
        "80 of 80 test rows without a value in 'y': predicted and not scored"
    ]


def test_dates_are_measured_and_may_be_axes():
    table = two_columns()
    days = np.datetime64("2024-01-01") + np.round(10 * table["x"]).astype("timedelta64[D]")
    dated = table.assign(x=days)
    analysis = analyse(dated, "y", dated, settings=QUICK)
    assert analysis.preparer.kinds_ == {"x": "date", "z": "number"}
    whole = table.assign(x=np.round(10 * table["x"]))
    same = analyse(whole, "y", whole, settings=QUICK)
    np.testing.assert_allclose(analysis.test.probabilities, same.test.probabilities)
    page = render_report(analysis, source="t", command="", files={})
    assert "days, standardised" in page and "2023-12-" in page


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (None, "The prior is uniform over k from 1 to 8 and β from 0 to"),
        (UniformPrior(8, 4.0), "The prior is uniform over k from 1 to 8 and β from 0 to 4."),
        (np.arange(1.0, 9.0), "The prior is not uniform: it was given, over k from 1"),
        (lambda beta, k: np.exp(-beta) + 0 * k, "The prior is not uniform: it was given, over k"),
    ],
)
def test_the_report_says_what_the_prior_is(prior, words):
    analysis = analyse(two_columns(), "y", settings={**QUICK, "max_neighbors": 8, "prior": prior})
    assert words in render_report(analysis, source="t", command="", files={})


def test_the_relevance_is_that_of_the_column_it_stands_beside(monkeypatch):
    """Words come after numbers where a classifier takes them, whatever their order in the table."""
    table = two_columns(120)
    words = pd.DataFrame({"word": np.where(table["y"] == 1, "a", "b")})
    words.loc[:8, "word"] = "b"
    noise = np.random.default_rng(0).normal(size=(120, 2))
    table = words.assign(first=noise[:, 0], second=noise[:, 1], y=table["y"])
    settings = {"members": ("relevance", "evidence"), "random_state": 0}
    analysis = analyse(table, "y", model="pooled", settings=settings)
    assert analysis.model.adapter.summarise()["relevance"]["word"] > 0.8
    # On the page where columns are too many to permute each.
    monkeypatch.setattr("bayesknn.evaluation.explanation.MAX_IMPORTANCE_COLUMNS", 2)
    page = render_report(analysis, source="t", command="", files={})
    assert re.search(r"relative relevance</th>.*?<td>(\w+)</td>", page, re.DOTALL)[1] == "word"


@pytest.mark.parametrize(("n", "ends"), [(100, (3, 98)), (1000, (25, 975))])
def test_the_interval_of_k_has_a_fortieth_of_the_posterior_on_either_side(n, ends):
    """Equal probabilities: the smallest k with 2.5 % and with 97.5 % at or below it."""
    posterior = SimpleNamespace(
        get_params=lambda deep: {"likelihood": "pseudo"},
        k_values_=np.arange(1, n + 1),
        k_probabilities_=np.full(n, 1 / n),
    )
    low, high = PosteriorAdapter(posterior).k_interval
    # One k more or less where a cumulative sum meets the level up to rounding.
    assert abs(low - ends[0]) <= (n == 1000) and abs(high - ends[1]) <= (n == 1000)


def test_a_name_in_a_warning_does_not_hide_that_the_error_is_too_small():
    """Classes change along a target called 'alone', and another column gives it away."""
    rng = np.random.default_rng(0)
    y = (np.arange(120) + 30 * rng.normal(size=120) > 60).astype(int)
    days = np.datetime64("2024-01-01") + np.arange(120)
    halves = np.where(y == 1, 8.0, -8.0) + rng.normal(size=120)
    table = pd.DataFrame({"day": days, "u": halves + 20 * rng.normal(size=120)})
    table["v"], table["lives_alone"] = halves - table["u"], y
    warnings = analyse(table, "lives_alone", model="pooled", settings={"random_state": 0}).warnings
    assert any("change along 'day'" in text for text in warnings)
    assert not any("alone predicts" in text for text in warnings)
    assert any("almost nothing: check for a column" in text for text in warnings)


def test_a_test_table_that_lacks_a_column_is_found_out_first(monkeypatch):
    monkeypatch.setattr("sklearn.pipeline.Pipeline.fit", lambda *_: pytest.fail("too late"))
    with pytest.raises(ValueError, match="there is no column 'z'"):
        analyse(two_columns(), "y", two_columns()[["x"]], settings=QUICK)


@pytest.mark.parametrize("compared", [False, True])
def test_without_two_classes_before_the_last_rows_there_is_no_evaluation_on_them(compared):
    """The remark is the one of too few rows of a class, which ends no fit either."""
    table = two_columns(80).sort_values("y", kind="stable")[:50].assign(day=range(50))
    analysis = analyse(table, "y", settings=QUICK, time="day", drop=["day"], compared=compared)
    told = [each for each in analysis.remarks if each.code == "comparison-skipped"]
    assert [each.severity for each in told] == ["warning", "note"][: 1 + compared]
    assert "no evaluation on last rows by day: without the rows to be predicted" in told[0].text
    assert not analysis.apart and analysis.comparison is None


def test_rows_without_a_time_are_counted():
    table = two_columns(80).assign(day=np.where(np.arange(80) < 77, np.arange(80.0), np.nan))
    options = {"settings": QUICK, "time": "day", "drop": ["day"]}
    analysis = analyse(table, "y", **options)
    (told,) = (each for each in analysis.remarks if each.code == "comparison-skipped")
    assert told.text == "the evaluation on last rows by day leaves out 3 rows without a value"
    assert analysis.scores["last rows by day"].n == 77 - 4 * 77 // 5
    # No row is left to evaluate on if the rows with a time have weight 0.
    with pytest.raises(FoldsError, match="no row has a date or a number by day"):
        Folds(order=table["day"], by=" by day").cut(table["y"].to_numpy(), np.arange(77, 80), 2)


def test_class_priors_are_given_by_name():
    table = two_columns()
    settings = {**QUICK, "class_prior": {"0": 0.25, "1": 0.75}}
    analysis = analyse(table, "y", settings=settings)
    np.testing.assert_allclose(analysis.classifier.class_weight_, [0.5, 1.5])
    for prior, message in (
        ({"0": 0.5, "1": 0.4, "2": 0.1}, r"an entry for '2', which is not a class; .* \[0, 1\]"),
        ({"0": 1.0}, "class_prior has no entry for class 1"),
    ):
        with pytest.raises(ValueError, match=message):
            analyse(table, "y", settings={**QUICK, "class_prior": prior})


def test_the_column_that_residuals_depend_on_is_called_by_its_name():
    """Where a model's own columns are an array, with indicators among them."""
    rng = np.random.default_rng(0)
    noise = {f"noise{j}": rng.random(400) for j in range(7)}
    step = rng.random(400)
    y = (rng.random(400) < np.where(step > 0.5, 0.97, 0.03)).astype(int)
    table = pd.DataFrame({**noise, "the step": step, "y": y})
    analysis = analyse(table, "y", settings={**QUICK, "max_neighbors": 60})
    assert any("depend on column 'the step'" in text for text in analysis.warnings)
