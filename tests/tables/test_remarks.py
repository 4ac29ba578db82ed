"""Remarks: the same from the command, from JSON and from Python; each can be switched off."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from bayesknn import PooledNeighborsClassifier
from bayesknn.report import TableModel, TablePreparer, analyse, read_table
from bayesknn.tables.remarks import CODES, tell
from tests.report.tables import QUICK, run, two_columns

# The fastest classifier that there is.
ROBUST = PooledNeighborsClassifier(("evidence",), n_folds=2, max_neighbors=4, random_state=0)


@pytest.fixture
def table():
    """Return a table with a leak, a constant column and rows without a class."""
    table = two_columns(60).assign(unit="cm", told=lambda t: np.where(t["y"] == 1, "yes", "no"))
    table["y"] = table["y"].astype(object)
    table.loc[[3, 9], "y"] = None
    return table


def test_the_reference_describes_every_code():
    page = Path(__file__).parents[2] / "docs" / "command_line.md"
    table = page.read_text(encoding="utf-8").partition("## Notes and warnings")[2]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == list(CODES)


def test_all_ways_have_the_same_remarks(table, tmp_path):
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    X, y, _ = read_table(path).split("y")
    remarks = TableModel(classifier=ROBUST).fit(X, y).preparer_.remarks_
    assert {each.code for each in remarks} <= set(CODES)
    assert {(each.code, each.column) for each in remarks} >= {
        ("leak", "told"), ("column-dropped", "unit"), ("classes-unlabelled", ""), ("trend", ""),
    }  # fmt: skip
    checked = run("check", path, "--target", "y", "--json")
    assert checked.exit_code == 0, checked.output
    assert json.loads(checked.stdout)["remarks"] == [each.to_json() for each in remarks]
    lines = run("check", path, "--target", "y").stderr.splitlines()
    wanted = [f"note: {text}" for text in tell(remarks, "note")]
    assert lines == wanted + [f"warning: {text}" for text in tell(remarks, "warning")]
    analysis = analyse(read_table(path), "y", settings=QUICK)
    assert [each for each in analysis.remarks if each in remarks] == remarks


def test_a_check_that_does_not_apply_is_listed(table, tmp_path):
    path = tmp_path / "t.csv"
    table[:12].drop(columns="told").to_csv(path, index=False)
    told = run("check", path, "--target", "y").stdout
    assert "not checked: columns that give the class away need 20 rows" in told
    assert "not checked: no column of dates or of growing numbers has 50 values" in told


def test_a_remark_is_switched_off_by_its_code(table, tmp_path):
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    command = ("check", path, "--target", "y", "--json")
    before = {each["code"] for each in json.loads(run(*command).stdout)["remarks"]}
    after = json.loads(run(*command, "--ignore", "leak").stdout)["remarks"]
    assert before - {each["code"] for each in after} == {"leak"}
    refused = run(*command, "--ignore", "leaks")
    assert refused.exit_code == 2 and "there is no remark 'leaks' to ignore" in refused.stderr
    analysis = analyse(table, "y", settings=QUICK, ignore=["leak", "fit"])
    assert not {"leak", "fit"} & {each.code for each in analysis.remarks}


def test_most_rows_without_a_class_are_a_warning():
    table = two_columns(200).assign(y=lambda t: np.where(np.arange(200) % 9, None, t["y"]))
    _, _, remarks = read_frame(table).split("y")
    (warning,) = tell(remarks, "warning")
    assert warning.startswith("177 rows without a value in 'y' left out, 88 % of the table")


@pytest.mark.parametrize("name", ["?", "unknown", "N/A", "missing"])
def test_a_class_that_looks_like_a_missing_value_is_doubted(name):
    table = two_columns(40).assign(y=["a", "b", name, "a"] * 10)
    X, y, remarks = read_frame(table).split("y")
    (warning,) = tell(remarks, "warning")
    assert repr(name) in warning and "in 10 rows" in warning and f"--na {name!r}" in warning
    assert len(X.frame) == len(y) == 40
    assert tell(read_frame(table.replace(name, "c")).split("y")[2], "warning") == []


def read_frame(frame):
    from bayesknn.tables.table import as_table

    return as_table(frame)


def test_new_rows_that_lack_a_whole_column_are_doubted():
    table = two_columns(60).drop(columns="y")
    preparer = TablePreparer(keeps_missing=True).fit(table)
    new = table.assign(x=np.nan)
    remarks = preparer.examine(new, preparer.measure(new))
    assert [(each.code, each.severity, each.column) for each in remarks] == [
        ("column-empty", "warning", "x")
    ]


def test_text_that_differs_in_every_row_is_used_with_a_warning():
    frame = two_columns(60).drop(columns="y").assign(remark=[f"text {i}" for i in range(60)])
    preparer = TablePreparer().fit(frame)
    assert "remark" in preparer.kinds_
    (warning,) = tell(preparer.remarks_, "warning")
    assert "'remark' holds text that differs in nearly every row" in warning
    assert "--id" in warning and "--drop" in warning
    # By its name it is an identifier, and so are numbers that count by one.
    frame = frame.rename(columns={"remark": "name"}).assign(count=range(7, 67))
    frame["price"] = np.random.default_rng(0).permutation(1000)[:60]
    preparer = TablePreparer().fit(frame)
    assert preparer.identifiers_ == ["name", "count"] and "price" in preparer.kinds_


def test_losses_below_zero_are_doubted(tmp_path):
    from bayesknn.model_file.predictions import doubt_losses

    losses = np.array([[0.0, 5.0], [-2.0, -1.0]])
    (warning,) = doubt_losses(losses, ["ill", "well"])
    assert "'well' where the truth is 'ill' has the loss -2" in warning.text


def test_no_sentence_decides(monkeypatch):
    """With every sentence another one, what the program does is the same."""
    table = two_columns(60).assign(told=lambda t: t["y"])
    before = analyse(table, "y", settings=QUICK)
    monkeypatch.setattr(
        "bayesknn.tables.remarks.say_of_columns", lambda where, *_: [f"alone {list(where)}"]
    )
    after = analyse(table, "y", settings=QUICK)
    assert [each[:3] for each in before.remarks] == [each[:3] for each in after.remarks]
