"""The warning that rows of the same value of a column belong together."""

import json

import numpy as np
import pandas as pd
import pytest

from bayesknn.tables.checks import check_table
from bayesknn.tables.kinds import Number
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
    assert told["text"] == (
        "rows of the same 'patient' are alike: if new rows come from new ones, pass --group "
        "patient (groups=... in fit)"
    )
    assert check(table, "--drop", "patient", tmp_path=tmp_path)
    assert not check(table, "--group", "patient", tmp_path=tmp_path)
    assert not check(table, "--ignore", "groups", tmp_path=tmp_path)


def test_independent_rows_are_not_suspected(tmp_path):
    """Neither a measurement in whole numbers, nor a code without meaning."""
    rng = np.random.default_rng(0)
    table = two_columns(300)
    table = table.assign(
        age=np.round(10 * table["x"]), code=rng.integers(0, 60, 300), word=rng.choice(40, 300)
    ).astype({"word": str})
    assert not check(table, tmp_path=tmp_path)


def test_the_check_of_groups_says_why_it_is_skipped():
    measured = pd.DataFrame({"x": np.arange(30) / 7})
    remarks = check_table(measured, {"x": Number()}, np.arange(30) % 2, "y")
    (told,) = [each for each in remarks if each.code == "groups"]
    assert told.severity == "skipped" and told.text.startswith("no column has values that repeat")
