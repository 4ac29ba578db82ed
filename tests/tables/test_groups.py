"""The warning that rows of the same value of a column belong together."""

import json

import numpy as np
import pandas as pd
import pytest

from bayesknn.tables.checks import check_table
from bayesknn.tables.preparer import TablePreparer
from tests.report.tables import draw_visits, run, two_columns


def check(table, *words, tmp_path):
    table.to_csv(tmp_path / "t.csv", index=False)
    remarks = json.loads(
        run("check", tmp_path / "t.csv", "--target", "y", "--json", *words).stdout
    )["remarks"]
    return [each for each in remarks if each["code"] == "groups" and each["severity"] == "warning"]


@pytest.mark.parametrize("codes", ["numbers", "words", "by class"])
def test_rows_that_belong_together_are_suspected(tmp_path, codes):
    table = draw_visits()
    if codes == "words":
        table["patient"] = [f"P {code}" for code in table["patient"]]
    elif codes == "by class":  # cases are numbered first
        table = table.sort_values(["y", "patient"])
        table["patient"] = pd.factorize(table["patient"])[0]
    (told,) = check(table, tmp_path=tmp_path)
    assert told["column"] == "patient"
    assert told["text"].startswith("rows of the same 'patient' are alike")
    assert told["text"].endswith(
        "if new rows come from new ones, pass --group patient (groups=... in fit)"
    )
    assert check(table, "--drop", "patient", tmp_path=tmp_path)
    assert not check(table, "--group", "patient", tmp_path=tmp_path)
    assert not check(table, "--ignore", "groups", tmp_path=tmp_path)


def test_the_warning_has_the_left_out_error_with_and_without_rows_of_the_group(tmp_path):
    """The class belongs to the patient: it is known from other visits, and a guess without them."""
    (told,) = check(draw_visits(100, noise=0.01), tmp_path=tmp_path)
    details = told["details"]
    assert details["error_with"] < 0.1 and details["error_without"] > 0.3
    assert details["seconds"] > 0
    both = (
        f"nearest neighbours: left-out error {100 * details['error_with']:.1f} % with other rows "
        f"of the same 'patient' among the neighbours, {100 * details['error_without']:.1f} % "
        "without"
    )
    assert both in told["text"]


def test_errors_are_left_out_where_there_are_none_to_compare(tmp_path):
    """One of two classes is of one group: without the group nothing is known of it."""
    table = draw_visits()
    first = (table["patient"] == table["patient"][0]).astype(int)
    (told,) = check(table.assign(y=first), tmp_path=tmp_path)
    assert told["text"].startswith("rows of the same 'patient' are alike: ")
    assert set(told["details"]) == {"seconds"}


def test_groups_that_are_ignored_are_not_searched_for():
    table = draw_visits()
    codes = []
    for ignore in ([], ["groups"]):
        preparer = TablePreparer(ignore=ignore)
        measured = preparer.learn(table.drop(columns="y"))
        remarks = check_table(preparer, measured, table["y"].to_numpy(), "y")
        codes.append({each.code for each in remarks})
    assert codes[0] - codes[1] == {"groups"}


def test_independent_rows_are_not_suspected(tmp_path):
    """Neither a measurement in whole numbers, nor a code without meaning."""
    rng = np.random.default_rng(0)
    table = two_columns(300)
    table = table.assign(
        age=np.round(10 * table["x"]), code=rng.integers(0, 60, 300), word=rng.choice(40, 300)
    ).astype({"word": str})
    assert not check(table, tmp_path=tmp_path)


def test_the_check_of_groups_says_why_it_is_skipped():
    preparer = TablePreparer()
    measured = preparer.learn(pd.DataFrame({"x": np.arange(30) / 7}))
    remarks = check_table(preparer, measured, np.arange(30) % 2, "y")
    (told,) = [each for each in remarks if each.code == "groups"]
    assert told.severity == "skipped" and told.text.startswith("no column has values that repeat")
