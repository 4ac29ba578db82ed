"""The command line: its commands, the demo, and how they end."""

import html
import json
import re
import shlex
import signal
import sys
import weakref

import click
import pytest
from click.testing import CliRunner

from bayesknn import BayesianKNeighborsClassifier, __version__
from bayesknn.cli import main
from bayesknn.cli.demo import draw
from bayesknn.cli.errors import Command, debug_option
from bayesknn.datasets import load_ripley
from tests.report.tables import QUICK_OPTIONS, two_columns

DEMO_FILES = {
    "model.skops", "posterior.nc", "predictions.csv", "report.html", "ripley.png", "ripley.svg",
    "test.csv", "train.csv",
}  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "deep" / "down"
    return run("demo", "--out", str(folder)), folder


def test_demo_prints_the_published_tables_and_ours(demo_run):
    result, folder = demo_run
    assert result.exit_code == 0, result.output
    rows = re.findall(r"^ +(\d+) +(0\.\d{3}) +(0\.\d{3})$", result.output, re.MULTILINE)
    assert len(rows) == 12
    assert all(published == ours for _, published, ours in rows)
    assert ("17", "0.087", "0.087") in rows
    assert ("66", "0.208", "0.208") in rows
    assert "least error 0.116 at k = 17, 18, 35, 36, 45, 46, 51, 52, 53, 54" in result.output
    assert "least error 0.235 at k = 57, 58, 59, 60, 61, 62, 63, 64, 65, 66" in result.output
    rows = re.findall(
        r"^ +(pseudo|coherent) +0\.08\d +(0\.\d{3}) +(0\.\d{3})$", result.output, re.M
    )
    assert [name for name, _, _ in rows] == ["pseudo", "coherent"]
    # SPEC: .085 and .224 for the pseudo-likelihood, .092 to .094 and .258 for the coherent one.
    assert rows[0][1:] == ("0.085", "0.224")
    assert 0.088 <= float(rows[1][1]) <= 0.098
    # Why it is not the published one.
    assert ".084 needs k of 24 or more" in " ".join(result.output.split())
    assert f"Report:  {folder / 'report.html'}" in result.output


def test_demo_writes_pictures_a_report_and_what_it_was_made_from(demo_run):
    _, folder = demo_run
    assert {entry.name for entry in folder.iterdir()} == DEMO_FILES
    assert (folder / "ripley.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "ripley.svg").read_text(encoding="utf-8")
    # It stands in the README.
    assert (folder / "ripley.png").stat().st_size < 200_000
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f'bayesknn fit {folder / "train.csv"} <span class="nowrap">--target</span> class' in page


def test_the_command_on_the_report_of_the_demo_writes_the_same_report(demo_run, monkeypatch):
    _, folder = demo_run
    page = (folder / "report.html").read_text(encoding="utf-8")
    told = html.unescape(re.sub("<[^>]*>", "", re.search(r"<pre>(bayesknn fit.*?)</pre>", page)[1]))
    monkeypatch.chdir(folder.parent)
    result = run(*shlex.split(told)[1:])
    assert result.exit_code == 0, result.output
    again = (folder.parent / "ripley-report" / "report.html").read_text(encoding="utf-8")
    # Only the place of the model file differs.
    assert again == page.replace(str(folder / "model.skops"), "ripley-report/model.skops")


def test_demo_draws_level_sets_zones_and_the_posterior():
    ripley = load_ripley()
    clf = BayesianKNeighborsClassifier("pseudo", random_state=0)
    clf.fit(ripley.X_train, ripley.y_train)
    levels, zones, beta, k = draw(clf, ripley.X_train, ripley.y_train).axes
    assert "Level sets" in levels.get_title() and "Zones" in zones.get_title()
    # The numbers next to the lines are labels of level sets; only zones are hatched.
    assert levels.texts and not zones.texts
    hatched = [each.get_hatch() for each in zones.get_legend().get_patches()]
    assert any(hatched) and not any(p.get_hatch() for p in levels.get_legend().get_patches())
    assert [bar.get_height() for bar in k.patches] == pytest.approx(clf.k_probabilities_)
    assert "β" in beta.get_title()


def test_demo_does_not_replace_what_is_in_a_named_folder(demo_run):
    _, folder = demo_run
    refused = run("demo", "--out", str(folder))
    assert refused.exit_code == 2
    assert "down exists; pass --force to replace it" in refused.output
    (folder / "notes.txt").write_text("mine")
    refused = run("demo", "--out", str(folder), "--force")
    (folder / "notes.txt").unlink()
    assert refused.exit_code == 2
    assert "holds 'notes.txt', which is not a file of this command" in refused.output


def test_demo_repeats_in_its_own_folder(tmp_path, monkeypatch, demo_run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo-output").mkdir()
    (tmp_path / "demo-output" / "ripley.png").write_text("an earlier demo")
    result = run("demo", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    for name in ("ripley.svg", "predictions.csv"):
        ours = (tmp_path / "demo-output" / name).read_bytes()
        assert ours == (demo_run[1] / name).read_bytes()


@pytest.mark.parametrize(
    ("module", "extra"), [("matplotlib", "plot"), ("skops", "report"), ("jinja2", "report")]
)
def test_demo_says_what_to_install(tmp_path, monkeypatch, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    result = run("demo", "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert f"pip install 'bayesknn[{extra}]'" in result.output
    assert list(tmp_path.iterdir()) == []


def test_every_command_has_help_and_is_listed():
    listing = run("--help").output
    told = dict(re.findall(r"^  (\w+) +(\w.+)$", listing.partition("Commands:")[2], re.MULTILINE))
    assert told == {
        "demo": "Run an example on Ripley's data; no files are needed.",
        "fit": "Fit a table, and write predictions, model and report.",
        "check": "Look for what is wrong with a table, without a fit.",
        "predict": "Classify the rows of a table with a saved model.",
        "warmup": "Compile what fits use, once after an installation.",
        "paper": "Reproduce the figures, tables and numbers of the paper.",
    }
    for name in told:
        assert run(name, "--help").exit_code == 0


def test_a_command_that_is_not_there_is_guessed():
    result = run("fitt")
    assert result.exit_code == 2
    assert "No such command 'fitt'" in result.output


@pytest.fixture
def fit(tmp_path, monkeypatch):
    """Run the command fit, with something else in the place of the analysis if there is any."""
    table = tmp_path / "a b.csv"
    two_columns(60).assign(w=1, **{"x'y": 2}).to_csv(table, index=False)

    def fit(*options, analyse=None):
        if analyse is not None:
            monkeypatch.setattr("bayesknn.report.analysis.analyse", analyse)
        else:
            monkeypatch.setattr("bayesknn.report.page.render_report", lambda *_, **__: "<html>")
        words = [str(table), "--target", "y", "--out", str(tmp_path / "out"), *QUICK_OPTIONS]
        return words, run("fit", *words, *options)

    return fit


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("two\n  lines"), 2, "two lines"),
        (PermissionError(13, "Permission denied", "/x"), 1, "Permission denied: /x"),
        (MemoryError(), 1, "not enough memory; a smaller --max-neighbors needs less"),
        (ModuleNotFoundError("no soap"), 1, "no soap"),
    ],
)
def test_errors_are_one_line(fit, error, code, message):
    def fail(*arguments, **options):
        raise error

    _, result = fit(analyse=fail)
    assert (result.exit_code, result.stdout) == (code, "")
    assert re.fullmatch(f"Error: .*{message}.*\n", result.stderr)


def test_no_option_is_advised_that_a_command_does_not_have():
    @click.command(cls=Command)
    @debug_option
    def fail():
        raise MemoryError

    result = CliRunner().invoke(fail)
    assert (result.exit_code, result.stderr) == (1, "Error: there is not enough memory\n")


def test_a_command_is_repeated_word_for_word(fit):
    words = ["--drop", "x'y", "--drop", "w", "--no-scale", "--level", "0.9"]
    first, result = fit("--jobs", "2", *words, "--json", "--jobs=1")
    first[0] = f"'{first[0]}'"
    told = """ --drop 'x'"'"'y' --drop w --no-scale --level 0.9"""
    assert json.loads(result.stdout)["command"] == f"bayesknn fit {' '.join(first)}{told}"


def test_version():
    assert __version__ in run("--version").output


def test_an_interrupt_within_a_callback_is_remembered_and_not_told_at_length(fit):
    """Python ignores what is raised there, and prints a traceback."""

    class Thing:
        pass

    def interrupt(*arguments, **options):
        thing = Thing()
        held = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
        del thing
        assert held() is None

    _, result = fit(analyse=interrupt)
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "Error: interrupted; nothing was written\n"
