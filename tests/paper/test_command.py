"""Tests of the command ``bayesknn paper``."""

import json

import pytest
from click.testing import CliRunner

from bayesknn.cli.paper import paper
from bayesknn.paper import REGISTRY


def call(*arguments):
    return CliRunner().invoke(paper, [str(each) for each in arguments])


def test_it_writes_and_goes_on(tmp_path):
    out = tmp_path / "new" / "folder"
    arguments = ("--out", out, "--tiny", "--only", "tab:knn-ripley", "--only", "fig:leave1")
    first = call(*arguments)
    assert first.exit_code == 0, first.output
    assert "6 exact" in first.output and "index.html" in first.output
    content = json.loads((out / "comparison.json").read_text())
    assert {row["id"] for row in content["rows"]} == {"tab:knn-ripley", "fig:leave1"}
    assert call(*arguments).output.count("kept") == 2


def test_quiet_is_quiet(tmp_path):
    done = call("--out", tmp_path, "--tiny", "--only", "num:pima-sizes", "--quiet")
    assert (done.exit_code, done.output) == (0, "")


def test_list():
    done = call("--list")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.output.splitlines()] == list(REGISTRY)


def test_errors_are_one_line(tmp_path):
    for arguments in (("--only", "fig:nothing"), ("--jobs", "0"), ("--seed", "-1")):
        done = call("--out", tmp_path, "--tiny", *arguments)
        assert done.exit_code == 2 and "Traceback" not in done.output
        assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").write_text("")
    done = call("--out", tmp_path, "--tiny", "--only", "num:pima-sizes")
    assert done.exit_code == 2 and done.output.count("\n") <= 2 and "--force" in done.output


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted; finished items are kept in --out"),
        (PermissionError(13, "Permission denied", "/x"), 1, "Permission denied: /x"),
    ],
)
def test_it_ends_as_the_other_commands_do(tmp_path, monkeypatch, error, code, line):
    def fail(**options):
        raise error

    monkeypatch.setattr("bayesknn.paper.run.run_paper", fail)
    done = call("--out", tmp_path, "--tiny", "--only", "num:pima-sizes", "--quiet")
    assert done.exit_code == code
    assert done.stderr.startswith(f"Error: {line}") and done.stderr.count("\n") == 1
