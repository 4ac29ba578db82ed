"""The command line: what the demo prints and writes, and how commands refuse."""

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from bayesknn import __version__
from bayesknn.cli import main


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "deep" / "down"
    return run("demo", "--out", str(folder)), folder


def test_demo_prints_the_published_tables_and_ours(demo_run):
    result, _ = demo_run
    assert result.exit_code == 0, result.output
    rows = re.findall(r"^ +(\d+) +(0\.\d{3}) +(0\.\d{3})$", result.output, re.MULTILINE)
    assert len(rows) == 12
    assert all(published == ours for _, published, ours in rows)
    assert ("17", "0.087", "0.087") in rows
    assert ("66", "0.208", "0.208") in rows
    assert "least error 0.116 at k = 17, 18, 35, 36, 45, 46, 51, 52, 53, 54" in result.output
    assert "least error 0.235 at k = 57, 58, 59, 60, 61, 62, 63, 64, 65, 66" in result.output


def test_demo_writes_a_picture_of_each_kind(demo_run):
    _, folder = demo_run
    assert (folder / "ripley.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "ripley.svg").read_text(encoding="utf-8")
    # It stands in the README.
    assert (folder / "ripley.png").stat().st_size < 200_000


def test_demo_does_not_replace_pictures_in_a_named_folder(demo_run):
    _, folder = demo_run
    (folder / "ripley.png").write_text("mine")
    refused = run("demo", "--out", str(folder))
    assert refused.exit_code == 2
    assert "ripley.png exists; pass --force to replace it" in refused.output
    assert (folder / "ripley.png").read_text() == "mine"
    forced = run("demo", "--out", str(folder), "--force", "--quiet")
    assert (forced.exit_code, forced.output) == (0, "")
    assert (folder / "ripley.png").read_bytes().startswith(b"\x89PNG")


def test_demo_repeats_in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo-output").mkdir()
    (tmp_path / "demo-output" / "ripley.png").write_text("an earlier demo")
    assert run("demo", "--quiet").exit_code == 0
    first = (tmp_path / "demo-output" / "ripley.svg").read_bytes()
    assert run("demo", "--quiet").exit_code == 0
    assert (tmp_path / "demo-output" / "ripley.svg").read_bytes() == first


def test_demo_without_matplotlib_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("demo", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "pip install 'bayesknn[plot]'" in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["fit", "predict", "paper"])
def test_planned_commands_do_not_pretend(command):
    for arguments in ([], ["data.csv", "--label", "y"]):
        result = run(command, *arguments)
        assert result.exit_code == 2
        assert f"bayesknn {command} is not built yet" in result.output
        assert len(result.output.splitlines()) == 1
    assert re.search(rf"^  {command} +Not built yet", run("--help").output, re.MULTILINE)


def test_bench_runs_the_checkout_s_benchmarks():
    command = [sys.executable, "-m", "bayesknn.cli", "bench", "no-such-benchmark"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert "no benchmark called no-such-benchmark" in result.stdout


def test_bench_outside_a_checkout_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("bayesknn.cli.__file__", str(tmp_path / "a" / "b" / "cli.py"))
    result = run("bench")
    assert result.exit_code == 2
    assert "run this command from a checkout" in result.output


def test_version():
    assert __version__ in run("--version").output
