"""What used to pass in silence: leaks, wrong rows, shifts, time, rare classes, odd files."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesknn import PooledNeighborsClassifier
from bayesknn.report import analyse, read_table, write_report
from bayesknn.report.fitted import analyse_fitted
from tests.report.tables import PSEUDO, QUICK, QUICK_OPTIONS, run, two_columns


@pytest.fixture
def fit(tmp_path, monkeypatch):
    """Fit a table quickly, without a page, to the folder out; return what was said."""
    monkeypatch.setattr("bayesknn.report.page.render_report", lambda *_, **__: "<html></html>")

    def fit(table, *options, target="y"):
        path = tmp_path / "train.csv"
        if isinstance(table, str):
            path.write_text(table)
        elif isinstance(table, pd.DataFrame):
            table.to_csv(path, index=False)
        else:
            path = table
        words = ("--target", target, "--out", tmp_path / "out", *QUICK_OPTIONS)
        return run("fit", path, *words, *options)

    return fit


# Leaks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text", "number"])
def test_a_column_that_is_missing_for_a_class_gives_it_away(kind):
    """The cause of death of those who live, and its date."""
    table = two_columns(90)
    causes = pd.Series(np.random.default_rng(0).integers(0, 40, 90)).astype(float)
    if kind == "text":
        causes = causes.map("chapter {:.0f}".format)
    told = "column 'cause' alone predicts 'y' all but perfectly"
    table["cause"] = causes.where(table["y"] == 1)
    warned = analyse(table, "y", impute=True, settings=QUICK).warnings
    assert [text.split(":")[0] for text in warned if "alone predicts" in text] == [told]
    # Missing now and then it says nothing.
    table["cause"] = causes.where(np.arange(90) % 3 > 0)
    warned = analyse(table, "y", impute=True, settings=QUICK).warnings
    assert not [text for text in warned if "alone predicts" in text]


def test_an_error_of_almost_nothing_is_doubted(tmp_path):
    """Two columns that give the class away together, and neither alone."""
    rng = np.random.default_rng(0)
    a, y = rng.integers(0, 2, (2, 200))
    table = pd.DataFrame({"a": 100 * a + rng.normal(size=200), "b": 100 * (a ^ y), "y": y})
    expected = "the leave-one-out error is 0.0 %, almost nothing: check for a column that is known"
    analysis = analyse(table, "y", settings=QUICK)
    assert [text for text in analysis.warnings if expected in text]
    X = table[["a", "b"]].to_numpy(dtype=float)
    fitted = analyse_fitted(PSEUDO.fit(X, y), X, y)
    assert [text for text in fitted.warnings if expected in text]
    plain = analyse(two_columns(), "y", settings=QUICK)
    assert not [text for text in plain.warnings if "almost nothing" in text]


# The rows of write_report --------------------------------------------------------------------


@pytest.mark.parametrize(
    "classifier", [PSEUDO, PooledNeighborsClassifier(members=["evidence"], random_state=0)]
)
def test_rows_that_the_classifier_was_not_fitted_to_are_refused(classifier, tmp_path):
    table = two_columns(80).assign(town=np.arange(80) % 3)
    X, y = np.round(table[["x", "z", "town"]] * 64) / 64, table["y"]  # float32 holds 64ths
    clf = classifier.fit(X[:60], y[:60])
    out, shuffled = tmp_path / "r.html", np.random.default_rng(0).permutation(60)
    others = "pass the training rows as X and y, others as X_test and y_test"
    for rows, problem in (
        (np.arange(60, 80), "X and y have 20 rows, the model was fitted to 60"),
        (shuffled, "y is not what the model was fitted to, or in another order"),
    ):
        with pytest.raises(ValueError, match=f"{problem}: {others}"):
            write_report(clf, X.iloc[rows], y.iloc[rows], out=out, compare=False)
    with pytest.raises(ValueError, match=f"X is not what the model was fitted to, .*: {others}"):
        write_report(clf, X.iloc[shuffled], y[:60], out=out, compare=False)
    with pytest.raises(ValueError, match="y is not what the model was fitted to"):
        write_report(clf, X[:60], y[:60] + 1, out=out, compare=False)
    # The same numbers of another type are the same rows.
    analyse_fitted(clf, X[:60].astype(np.float32), y[:60].to_numpy())


def test_rows_before_a_pipeline_are_compared_by_their_classes(tmp_path):
    table = two_columns(60)
    X, y = table[["x", "z"]], table["y"]
    model = make_pipeline(StandardScaler(), PSEUDO).fit(X, y)
    analyse_fitted(model, X, y)
    with pytest.raises(ValueError, match="y is not what the model was fitted to"):
        write_report(model, X[::-1], y[::-1], out=tmp_path / "r.html", compare=False)


# Predicting ----------------------------------------------------------------------------------


def test_predict_says_what_it_knows(fit, tmp_path):
    table = two_columns(90).assign(
        x=lambda t: 1000 + 100 * t["x"],
        day=pd.date_range("2020-01-01", periods=90).to_numpy()[::-1],
        town=["a ", "b"] * 45,
    )
    assert fit(table[:60]).exit_code == 0
    new = table[60:].assign(x=table["x"] / 1000, town="c", y=7)
    new.to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", tmp_path / "out", tmp_path / "new.csv", "--json")
    summary = json.loads(result.stdout)
    beyond, unseen, unlike, strange = summary["warnings"]
    assert beyond.startswith("each of 2 columns ('x' in 30 of 30 rows, such as ")
    assert "'day' in 30 of 30 rows, such as 2020-01-30 (training: 2020-01-31 to " in beyond
    assert beyond.endswith("holds values outside the range of training")
    assert unseen.startswith("column 'town' holds categories that training did not see in 30 rows")
    assert unlike.startswith("30 of 30 rows are unlike any in training")
    assert strange == (
        "30 rows of a class that training did not see ('7' in 'y') cannot be predicted right"
    )
    assert summary["unlike_training"] == 30
    told = run("predict", tmp_path / "out", tmp_path / "new.csv").stderr.splitlines()
    assert [f"warning: {text}" for text in summary["warnings"]] == told[-4:]
    # Rows like those of training raise no doubts, however their categories are written.
    table[2:60].assign(town=["a", " b"] * 29).to_csv(tmp_path / "same.csv", index=False)
    summary = json.loads(run("predict", tmp_path / "out", tmp_path / "same.csv", "--json").stdout)
    assert summary["warnings"] == summary["messages"] == []


# Time -----------------------------------------------------------------------------


def test_the_page_says_what_was_judged(tmp_path, monkeypatch):
    few = {"baseline: class frequencies": DummyClassifier(strategy="prior")}
    monkeypatch.setattr("bayesknn.evaluation.comparison.list_candidates", lambda own: few)
    table = two_columns(120)
    X, y = table[["x", "z"]], table["y"]
    clf = PSEUDO.fit(X, y)
    out = write_report(clf, X, y, out=tmp_path / "r.html", time=np.arange(120))
    assert "24 last rows: each classifier is fitted to the rows before" in out.read_text("utf-8")


@pytest.mark.parametrize("time", [np.arange(300), np.arange(50), np.full(120, np.nan)])
def test_time_has_a_value_for_each_row(time, tmp_path):
    table = two_columns(120)
    X, y = table[["x", "z"]], table["y"]
    clf = PSEUDO.fit(X, y)
    with pytest.raises(ValueError, match="time must have a date or a number for each of the 120"):
        write_report(clf, X, y, out=tmp_path / "r.html", time=time, compare=False)


def test_the_last_rows_are_judged_and_a_trend_is_told(fit):
    """What the label means changes: rows drawn at random do not show it."""
    table = two_columns(200)
    day = pd.date_range("2010-01-01", periods=200, freq="30D")
    table = table.assign(day=day, y=np.where(np.arange(200) < 160, table["y"], 1))
    table = table.sample(frac=1.0, random_state=0)
    summary = json.loads(fit(table, "--json").stdout)
    (trend,) = [text for text in summary["warnings"] if "change along" in text]
    assert trend.startswith("the classes of 'y' change along 'day', which gives the rows an order")
    assert "pass --time=day" in trend
    summary = json.loads(fit(table, "--time", "day", "--json", "--force").stdout)
    assert not [text for text in summary["warnings"] if "change along" in text]
    last = summary["scores"]["last rows by day"]
    assert last["n"] == 40
    assert last["error"] > 0.2 > summary["scores"]["leave-one-out"]["error"]
    steady = table.assign(day=day)  # in another order than the classes
    warned = json.loads(fit(steady, "--json", "--force").stdout)["warnings"]
    assert not [text for text in warned if "change along" in text]


def test_time_needs_an_order(fit):
    result = fit(two_columns().assign(town=["a", "b"] * 40), "--time", "town")
    assert "train.csv: --time: column 'town' holds neither dates nor numbers" in result.stderr


# Classes of one row --------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("a", "b", "c", "d"), (1, 2, 3, 4)])
def test_classes_of_one_row(fit, names):
    table = two_columns(60)
    table["y"] = np.array(names[:2])[table["y"]].astype(object)
    table.loc[[7, 8], "y"] = names[2:]
    what = f"2 classes of 'y' with one row, {str(names[2])!r}, {str(names[3])!r},"
    summary = json.loads(fit(table, "--json").stdout)
    assert f"{what} are left out (--rare merge makes them one class)" in summary["messages"]
    assert summary["classes"] == {str(names[0]): 29, str(names[1]): 29}
    summary = json.loads(fit(table, "--json", "--force", "--rare", "merge").stdout)
    assert f"{what} are one class, 'other'" in summary["messages"]
    assert summary["classes"]["other"] == 2
    result = fit(table, "--rare", "error", "--force")
    assert result.exit_code == 2
    assert f"train.csv: there are {what} and every class needs two: --rare drop" in result.stderr
    with pytest.warns(UserWarning, match=r"classes .* each have one row"):
        PSEUDO.fit(table[["x", "z"]], table["y"].tolist())


def test_the_classes_are_checked_before_other_columns(fit, monkeypatch):
    table = two_columns(60).assign(y=np.linspace(0, 1, 60))
    monkeypatch.setattr(
        "bayesknn.model_file.table_model.TableModel.learn", lambda *_, **__: pytest.fail("planned")
    )
    assert "this looks like regression" in fit(table).stderr


# Files ---------------------------------------------------------------------------------------


IRIS = "5.1,3.5,1.4,0.2,setosa\n4.9,3.0,1.4,0.2,setosa\n7.0,3.2,4.7,1.4,versicolor\n"


def test_a_missing_header_is_asked_about(fit, tmp_path):
    question = "the column names look like values ('5.1', '3.5'): is the header missing?"
    assert question in fit(IRIS, target="species").stderr
    assert question in fit(IRIS.replace("3.5", "5.1", 1), target="species").stderr.replace(
        "('5.1', '5.1')", "('5.1', '3.5')"
    )
    (tmp_path / "t.csv").write_text(IRIS)
    assert [each.text for each in read_table(tmp_path / "t.csv").remarks] == [f"t.csv: {question}"]
    for names in ("town,2019,2020,2021", "0,1,2,3", "x1,x2,2.5 km,y"):
        (tmp_path / "t.csv").write_text(f"{names}\n1,2,3,4\n")
        assert read_table(tmp_path / "t.csv").remarks == []


def test_other_words_for_missing(fit, tmp_path):
    table = two_columns(60).astype(object)
    table.loc[[3, 4], "x"], table.loc[5, "z"] = "?", -999
    result = fit(table, "--impute")
    assert "column 'x' holds numbers and, in 2 rows, words such as '?' in row 4" in result.stderr
    assert "pass --na '?' if it is a missing value" in result.stderr
    result = fit(table, "--impute", "--na", "?", "--na", "-999")
    assert result.exit_code == 0, result.output
    assert (
        "note: each of 2 columns ('x' in 2 rows, 'z' in 1 row) has no value: filled with its median"
        in result.stderr
    )
    words = ("predict", tmp_path / "out", tmp_path / "train.csv", "--na", "?", "--na=-999")
    assert "each of 2 columns ('x' in 2 rows, 'z' in 1 row) has no value" in run(*words).stderr
    table.to_excel(tmp_path / "t.xlsx", index=False)
    read = read_table(tmp_path / "t.xlsx", missing=["?", "-999"]).frame
    assert read.isna().sum().tolist() == [2, 1, 0]


def test_errors_about_columns_name_the_file(fit, tmp_path):
    table = two_columns(60)
    assert "Error: train.csv: there is no column 'w'" in fit(table, target="w").stderr
    table.drop(columns="z").to_csv(tmp_path / "new.csv", index=False)
    result = fit(table, "--test", tmp_path / "new.csv")
    assert "Error: new.csv: there is no column 'z'" in result.stderr
    assert fit(table).exit_code == 0
    result = run("predict", tmp_path / "out", tmp_path / "new.csv")
    assert "Error: new.csv: there is no column 'z'" in result.stderr


def test_notes_of_one_kind_are_one_line(fit):
    empty = {f"e{j}": np.nan for j in range(38)}
    result = fit(two_columns(60).assign(**empty, unit="cm"))
    listed = ", ".join(f"'e{j}'" for j in range(12))
    assert result.stderr.splitlines() == [
        f"note: each of 38 columns ({listed} and 26 more) is left out: it has no value in any row",
        "note: column 'unit' is left out: it has the same value in every row",
    ]
