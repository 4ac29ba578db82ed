"""Names that a terminal would obey, closed streams, and warnings on the command line."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from bayesknn.cli.errors import print_table
from tests.report.tables import QUICK_OPTIONS, mixed_table, run, two_columns
from tests.report.tables import read_cells as read_table

CLEAR, TITLE, BACKWARDS = "\x1b[2J", "\x1b]0;title\x07", "\u202e"
FIT = ("fit", "t.csv", "--target", "kind", "--out", "out", *QUICK_OPTIONS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_names_do_not_reach_the_terminal_as_they_are(folder):
    frame = mixed_table().rename(columns={"length": f"le{CLEAR}ngth"})
    frame["kind"] = frame["kind"].replace({"plain": TITLE, "<script>alert(1)</script>": BACKWARDS})
    frame.to_csv("t.csv", index=False)
    ran = [run(*FIT), run("predict", "out", "t.csv", "--out", "p.csv")]
    ran += [run("fit", "t.csv", "--target", "other", "--out", "no")]
    assert [each.exit_code for each in ran] == [0, 0, 2]
    for each in ran:
        assert all(c == "\n" or c.isprintable() for c in each.output), each.output
        assert r"\x1b[2J" in each.output or each is ran[1]
    assert r"\x1b]0;title\x07 (30)" in ran[0].output and r"\u202e (30)" in ran[0].output
    # Files hold the names as they are.
    assert f"probability {TITLE}" in pd.read_csv("out/predictions.csv")


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_table_is_made_plain_for_a_terminal_only(capsys, monkeypatch, is_terminal):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    print_table(f"class\n{CLEAR}\n")
    assert capsys.readouterr().out == ("class\n\\x1b[2J\n" if is_terminal else f"class\n{CLEAR}\n")


@pytest.mark.skipif(os.name == "nt", reason="by a shell of Unix")
def test_a_fit_needs_no_streams(folder):
    two_columns().to_csv("t.csv", index=False)
    words = [sys.executable, "-m", "bayesknn", *FIT[:3], "y", *FIT[4:]]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *words])
    assert done.returncode == 0 and (folder / "out" / "report.html").exists()


def test_warnings_of_the_library_are_lines(folder):
    """Those of new categories repeat what a line says of all rows."""
    frame = mixed_table()
    frame.to_csv("t.csv", index=False)
    frame.assign(town=[f"new {i}" for i in range(90)]).to_csv("new.csv", index=False)
    words = ("fit", "t.csv", "--target", "kind", "--out", "out", "--no-compare")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        made = run(*words, "--test", "new.csv")
    assert made.exit_code == 0, made.output
    lines = made.stderr.splitlines()
    assert all(line.startswith(("note: ", "warning: ")) for line in lines), made.stderr
    assert sum("holds categories that training did not see" in line for line in lines) == 1


@pytest.mark.parametrize("zero", [ord("٠"), ord("０"), ord("०")])
def test_digits_of_any_script_are_numbers(tmp_path, zero):
    numbers = np.array([7.25, 12.0, 305.5])
    digits = {ord(str(digit)): chr(zero + digit) for digit in range(10)}
    cells = [str(number).translate(digits) for number in numbers]
    (tmp_path / "t.csv").write_text("\n".join(["x", *cells]), encoding="utf-8")
    table = read_table(tmp_path / "t.csv")
    assert table.frame["x"].tolist() == numbers.tolist()
    assert table.notes == [f"numbers were read in the column 'x' ({cells[0]!r} as 7.25)"]


def test_a_name_that_is_too_long_is_called_so(tmp_path):
    (tmp_path / "t.csv").write_text("a" * 131_073 + "\n1\n")
    with pytest.raises(ValueError, match=r"it has a name of more than 131,072 characters, or a"):
        read_table(tmp_path / "t.csv")


def test_numbers_in_brackets_are_below_zero(tmp_path):
    (tmp_path / "t.csv").write_text("x;z\n1,234.5;a\n(1,234.5);b\n$(7);c\n( 0.5 );d\n(3);(e)\n")
    table = read_table(tmp_path / "t.csv")
    assert table.frame["x"].tolist() == [1234.5, -1234.5, -7, -0.5, -3]
    assert {name: kind.name for name, kind in table.kinds.items()} == {"x": "number", "z": "text"}
    assert table.notes[0].startswith("numbers were read in the column 'x'")
