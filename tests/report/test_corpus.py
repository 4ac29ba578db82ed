"""Real tables, cut down: what each of them did in silence once, it does no more."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesknn import PooledNeighborsClassifier
from bayesknn.report import write_report
from tests.report.tables import PSEUDO, QUICK_OPTIONS, run

CORPUS = Path(__file__).parent / "corpus"


@pytest.fixture
def fit(tmp_path, monkeypatch):
    """Fit a file of the corpus quickly, without a page; return what was said and the summary."""
    monkeypatch.setattr("bayesknn.report.page.render_report", lambda *_, **__: "<html></html>")

    def fit(name, target, *options):
        words = (CORPUS / name, "--target", target, "--out", tmp_path / "out", "--impute")
        result = run("fit", *words, *QUICK_OPTIONS, *options, "--json", "--force")
        return result, json.loads(result.stdout) if result.exit_code == 0 else None

    return fit


@pytest.mark.parametrize(
    ("name", "target", "columns"),
    [("flchain.csv", "death", "'chapter' alone"), ("nhefs.csv", "death", "'yrdth' alone")],
)
def test_a_column_filled_in_after_the_class_is_named(fit, name, target, columns):
    _, summary = fit(name, target)
    assert any(columns in text and "all but perfectly" in text for text in summary["warnings"])


def test_shuffled_rows_and_test_rows_are_no_training_rows(tmp_path):
    table = pd.read_csv(CORPUS / "penguins.csv")
    X, y = table.filter(like="_mm"), table["species"]
    clf = PSEUDO.fit(X[:60], y[:60])
    shuffled = np.random.default_rng(0).permutation(60)
    for rows in (shuffled, np.arange(60, 90)):
        with pytest.raises(ValueError, match="others as X_test and y_test"):
            write_report(clf, X.iloc[rows], y.iloc[rows], out=tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def test_categories_are_the_same_whatever_their_type():
    """Written as words for training and as numbers at prediction, or with spaces."""
    table = pd.read_csv(CORPUS / "titanic.csv")
    X = table[["class", "sex"]].apply(lambda column: column.astype("category").cat.codes)
    clf = PooledNeighborsClassifier(["discriminant"], categorical_features=[0, 1], random_state=0)
    probabilities = clf.fit(X.astype(str), table["survived"]).predict_proba(X)
    assert probabilities[:, 1].max() > 0.5 > probabilities[:, 1].min()
    for same in (X.astype(str), X.astype(float), X.astype(str) + " "):
        np.testing.assert_allclose(clf.predict_proba(same), probabilities)
    expected = "column 'class' holds categories .* in 160 of 160 rows, such as '3rd class' and 'cre"
    with pytest.warns(UserWarning, match=expected):
        clf.predict(X.assign(**{"class": table["class"]}))


def test_a_roc_curve_has_the_area_that_is_written_below_it(tmp_path):
    """In steps through tied probabilities it lay below the diagonal."""
    table = pd.read_csv(CORPUS / "titanic.csv")
    X, y = table.drop(columns="survived"), table["survived"]
    clf = PooledNeighborsClassifier(["discriminant"], random_state=0).fit(X[:80], y[:80])
    parts = (X[:80], y[:80], X[80:], y[80:])
    page = write_report(clf, *parts, out=tmp_path / "r.html", compare=False)
    text = page.read_text(encoding="utf-8")
    drawing, caption = re.search(
        r"recall over false positive rate.*?</svg>(.*?AUC\) ([\d.]+))", text, re.DOTALL
    ).group(0, 2)
    # Of the lines, the frame has four corners, guessing is dashed, and the curve has the others.
    paths = [np.array(re.findall(r"[ML] ?([-\d.]+) ([-\d.]+)", path), dtype=float)
             for path in re.findall(r'<path d="([^"]+)"[^>]*clip-path', drawing)]  # fmt: skip
    guess, (x, y) = paths[0], paths[1].T
    (left, bottom), (right, top) = guess
    area = np.trapezoid((y - bottom) / (top - bottom), (x - left) / (right - left))
    assert area == pytest.approx(float(caption), abs=0.005)


def test_rows_in_another_unit_are_noticed(fit, tmp_path):
    fit("penguins.csv", "species")
    new = pd.read_csv(CORPUS / "penguins-in-kg.csv")
    new.assign(species="Emperor").to_csv(tmp_path / "new.csv", index=False)
    for file, strange in ((CORPUS / "penguins-in-kg.csv", False), (tmp_path / "new.csv", True)):
        summary = json.loads(run("predict", tmp_path / "out", file, "--json").stdout)
        beyond, unlike, *others = summary["warnings"]
        assert beyond.startswith("column 'body_mass_g' holds values outside the range of training")
        assert "in 30 of 30 rows" in beyond
        assert unlike.startswith("30 of 30 rows are unlike any in training")
        assert summary["unlike_training"] == 30
        assert ["30 rows of a class that training did not see ('Emperor'" in other
                for other in others] == [True] * strange  # fmt: skip


def test_the_training_file_is_no_test(fit, tmp_path):
    fit("penguins.csv", "species")
    summary = json.loads(run("predict", tmp_path / "out", CORPUS / "penguins.csv", "--json").stdout)
    (told,) = summary["warnings"]
    assert told.startswith("these are the rows that the model was fitted to")
    table = pd.read_csv(CORPUS / "penguins.csv")
    table[::-1].to_csv(tmp_path / "new.csv", index=False)
    summary = json.loads(run("predict", tmp_path / "out", tmp_path / "new.csv", "--json").stdout)
    assert not [text for text in summary["warnings"] if "fitted to" in text]


def test_a_date_along_which_the_classes_change_is_told(fit):
    _, summary = fit("weather.csv", "weather")
    (trend,) = [text for text in summary["warnings"] if "change along 'date'" in text]
    assert "--time=date" in trend
    _, summary = fit("weather.csv", "weather", "--time", "date")
    assert not [text for text in summary["warnings"] if "change along" in text]
    assert summary["scores"]["last rows by date"]["n"] == 42


def test_classes_of_one_row_are_left_out_and_named(fit):
    what = "4 classes of 'manufacturer' with one row, 'jeep', 'land rover', 'mercury', 'pontiac',"
    _, summary = fit("mpg.csv", "manufacturer")
    assert sum(summary["classes"].values()) == 66
    assert any(note.startswith(f"{what} are left out") for note in summary["messages"])
    _, summary = fit("mpg.csv", "manufacturer", "--rare", "merge")
    assert summary["classes"]["other"] == 4
    result, _ = fit("mpg.csv", "manufacturer", "--rare", "error")
    assert result.exit_code == 2 and f"mpg.csv: there are {what}" in result.stderr


def test_a_sheet_is_chosen_by_its_name(fit, tmp_path):
    _, summary = fit("penguins.xlsx", "species", "--sheet", "penguins")
    assert summary["rows"] == 90
    options = ("--sheet", "penguins", "--json")
    predicted = run("predict", tmp_path / "out", CORPUS / "penguins.xlsx", *options)
    assert json.loads(predicted.stdout)["rows"] == 90
    result, _ = fit("penguins.xlsx", "species", "--sheet", "birds")
    expected = "penguins.xlsx has no sheet 'birds'; it has 'about', 'penguins'"
    assert result.exit_code == 2 and expected in result.stderr


def test_a_first_row_of_values_is_no_header(fit):
    result, _ = fit("iris-without-header.csv", "species")
    expected = "the column names look like values ('5.1', '3.5'): is the header missing?"
    assert result.exit_code == 2 and expected in result.stderr


def test_other_words_for_missing_are_given(fit):
    result, _ = fit("biopsy.csv", "class")
    assert result.exit_code == 2
    assert re.search(r"biopsy.csv: column 'V6' .* in 4 rows, words such as '\?'", result.stderr)
    assert "pass --na '?' if it is a missing value" in result.stderr
    _, summary = fit("biopsy.csv", "class", "--na", "?")
    assert summary["kinds"]["V6"] == "number"
