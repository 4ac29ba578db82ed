"""``bayesknn fit`` and ``bayesknn predict`` on tables as people have them."""

import contextlib
import importlib
import io
import json
import resource
import shlex
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bayesknn.exceptions import CoalescenceError
from bayesknn.posterior import load_posterior
from bayesknn.report import analyse
from bayesknn.report.folder import write_folder
from tests.browser import check_page
from tests.report.tables import QUICK_OPTIONS, SCRIPT, mixed_table, run, two_columns

FILES = ["model.skops", "posterior.nc", "predictions.csv", "report.html"]


def fit(table, out, *options, target="y"):
    return run("fit", table, "--target", target, "--out", out, *QUICK_OPTIONS, *options)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def refused(result, out):
    """One line, exit code 2, nothing written; returns the line."""
    assert result.exit_code == 2, result.output
    assert not out.exists()
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stdout == ""
    return result.stderr


@pytest.fixture
def blank_page(monkeypatch):
    """Where nobody reads the report, it need not be drawn."""
    monkeypatch.setattr("bayesknn.report.page.render_report", lambda *_, **__: "<html></html>")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Fit a table that has everything; the tables and the result are in one folder."""
    folder = tmp_path_factory.mktemp("fit")
    mixed_table().assign(unit="cm").to_csv(folder / "train.csv", index=False)
    mixed_table(30, seed=1).to_parquet(folder / "test.parquet")
    result = fit(folder / "train.csv", folder / "out", "--json", target="kind")
    assert result.exit_code == 0, result.output
    (folder / "summary.json").write_text(result.stdout)
    return folder


def test_it_writes_four_files(folder):
    out = folder / "out"
    assert names(out) == FILES
    frame = pd.read_csv(out / "predictions.csv")
    assert set(frame["basis"]) == {"leave-one-out"}
    assert set(frame["class"]) == {"plain", SCRIPT, "$\\frac{a"}
    assert {f"low {SCRIPT}", f"high {SCRIPT}", f"probability {SCRIPT}"} <= set(frame)
    tree = load_posterior(out / "posterior.nc")
    assert tree["posterior"]["beta"].shape == (4, 200)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert SCRIPT not in page


def test_json_is_for_machines(folder):
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["rows"] == 90
    assert summary["classes"] == {"$\\frac{a": 30, SCRIPT: 30, "plain": 30}
    assert summary["numeric"] == ["length", "<b>width</b>"]
    assert summary["dropped"] == {"unit": "it has the same value in every row"}
    assert 0 <= summary["scores"]["leave-one-out"]["error"] < 0.5
    assert summary["messages"] == ["column 'unit' is left out: it has the same value in every row"]
    assert sorted(summary["files"]) == FILES


def test_the_command_in_the_report_gives_the_same_files(folder, tmp_path):
    summary = json.loads((folder / "summary.json").read_text())
    words = shlex.split(summary["command"])
    assert words[:2] == ["bayesknn", "fit"]
    words[words.index("--out") + 1] = str(tmp_path / "out")
    assert run(*words[1:], "--jobs", 2).exit_code == 0
    for name in ("predictions.csv", "report.html"):
        again, before = ((place / "out" / name).read_text() for place in (tmp_path, folder))
        assert again.replace(str(tmp_path / "out"), str(folder / "out")) == before


def test_an_earlier_result_is_not_overwritten(folder):
    before = (folder / "out" / "report.html").stat().st_mtime_ns
    result = fit(folder / "train.csv", folder / "out", target="kind")
    assert result.exit_code == 2
    assert "out exists; pass --force to replace it" in result.stderr
    assert (folder / "out" / "report.html").stat().st_mtime_ns == before


@pytest.mark.usefixtures("blank_page")
def test_force_replaces_and_quiet_is_quiet(tmp_path):
    two_columns().to_csv(tmp_path / "t.csv", index=False)
    for options in ((), ("--force", "--quiet")):
        result = fit(tmp_path / "t.csv", tmp_path / "out", *options)
        assert result.exit_code == 0, result.output
    assert result.output == ""
    assert names(tmp_path) == ["out", "t.csv"]


@pytest.mark.usefixtures("blank_page")
def test_messages_and_results_are_told(tmp_path):
    table = two_columns(120)
    table.loc[[1, 2], "y"] = np.nan
    table.assign(unit="cm").to_csv(tmp_path / "t.csv", index=False)
    result = fit(tmp_path / "t.csv", tmp_path / "out", "--no-scale")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == [
        "note: 2 rows without a value in 'y' left out: 2, 3",
        "note: column 'unit' is left out: it has the same value in every row",
    ]
    model, columns, classes, baseline, scores = result.stdout.splitlines()[:5]
    assert model == "Model: Bayesian k-nearest neighbours, pseudo likelihood"
    assert columns == "Columns: numbers: x, z; left out: unit"
    assert classes == "Classes: 0 (59), 1 (59)"
    assert baseline == "Baseline: always predicting 0 errs in 50.0 %"
    assert scores.startswith("Leave-one-out: 118 rows, error ")
    assert result.stdout.splitlines()[-1] == f"Report: {tmp_path / 'out' / 'report.html'}"


@pytest.mark.usefixtures("blank_page")
def test_predict_says_what_fit_says_of_the_same_rows(folder, tmp_path):
    predict = ("predict", folder / "out", folder / "test.parquet")
    result = run(*predict, "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    assert "of the 30 new rows are decided: the 95 % interval of one class" in result.stdout
    frame = pd.read_csv(tmp_path / "p.csv")
    result = fit(
        folder / "train.csv", tmp_path / "out", "--test", folder / "test.parquet", target="kind"
    )
    assert "Test: 30 rows, error " in result.stdout
    together = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert set(together["basis"]) == {"new row"}
    pd.testing.assert_frame_equal(frame, together)
    # The same to standard output, and to a folder.
    assert run(*predict).stdout == (tmp_path / "p.csv").read_text()
    assert run(*predict, "--out", tmp_path / "q").exit_code == 0
    assert names(tmp_path / "q") == ["predictions.csv"]
    summary = json.loads(run(*predict, "--json").stdout)
    assert summary["rows"] == 30 and sum(summary["classes"].values()) == 30


def write_losses(path, truths, decisions, losses):
    pd.DataFrame(losses, truths, decisions).to_csv(path, index_label="truth")
    return path


def test_predict_decides_by_the_losses(folder, tmp_path):
    predict = ("predict", folder / "out", folder / "test.parquet")
    plain = pd.read_csv(io.StringIO(run(*predict).stdout))
    classes = [name.removeprefix("probability ") for name in plain if name.startswith("probab")]
    # Rows are the truth, in another order than the columns: to miss the first is dear.
    losses = np.array([[0.0, 8.0, 9.0], [1.0, 0.0, 2.0], [1.5, 1.0, 0.0]])
    order = [2, 0, 1]
    path = write_losses(
        tmp_path / "loss.csv", [classes[g] for g in order], classes, losses[order]
    )  # fmt: skip
    result = run(*predict, "--loss", path, "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    frame = pd.read_csv(tmp_path / "p.csv")
    assert list(frame)[-2:] == ["decision", "decision loss"]
    pd.testing.assert_frame_equal(frame[list(plain)], plain)
    chances = frame[[f"probability {name}" for name in classes]].to_numpy()
    expected, turned = chances @ losses, chances @ losses.T
    np.testing.assert_allclose(frame["decision loss"], expected.min(axis=1), atol=1e-5)
    assert frame["decision"].tolist() == [classes[g] for g in expected.argmin(axis=1)]
    # The losses matter, and so does what is a row of them and what a column.
    assert np.any(expected.argmin(axis=1) != turned.argmin(axis=1))
    assert frame["decision"].tolist() != frame["class"].tolist()
    summary = json.loads(run(*predict, "--loss", path, "--json").stdout)
    assert summary["decisions"] == frame["decision"].value_counts().to_dict()
    assert "decisions" not in json.loads(run(*predict, "--json").stdout)


def test_predict_refuses_losses_of_other_classes(folder, tmp_path):
    out = tmp_path / "p.csv"
    predict = ("predict", folder / "out", folder / "test.parquet", "--out", out)
    path = write_losses(tmp_path / "loss.csv", ["plain", "fancy"], ["plain", "fancy"], np.eye(2))
    line = refused(run(*predict, "--loss", path), out)
    assert "its header holds 'fancy', and has to name each class of the model once" in line
    assert "none.csv cannot be read" in refused(run(*predict, "--loss", tmp_path / "none.csv"), out)


def test_predict_refuses_models_and_tables_that_do_not_fit(folder, tmp_path):
    out = tmp_path / "p.csv"
    test = folder / "test.parquet"
    (tmp_path / "model.skops").write_bytes(b"no model")
    line = refused(run("predict", tmp_path / "model.skops", test, "--out", out), out)
    assert "is not a model of bayesknn fit" in line
    line = refused(run("predict", tmp_path / "none", test, "--out", out), out)
    assert "there is no model at" in line
    two_columns().to_csv(tmp_path / "other.csv", index=False)
    line = refused(run("predict", folder / "out", tmp_path / "other.csv", "--out", out), out)
    assert "there is no column 'length'" in line
    mixed_table(3).assign(length=[1, None, 2]).to_csv(tmp_path / "gap.csv", index=False)
    line = refused(run("predict", folder / "out", tmp_path / "gap.csv", "--out", out), out)
    assert "1 column has missing values: 'length' in 1 of 3 rows (first in row 2)" in line


def test_predict_tells_of_unseen_categories(folder, tmp_path):
    mixed_table(3).assign(town="nowhere").to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", folder / "out", tmp_path / "new.csv")
    assert result.exit_code == 0
    assert (
        "'town' holds categories that training did not see in 3 rows, such as 'nowhere'"
        in result.stderr
    )


@pytest.mark.usefixtures("blank_page")
def test_categories_that_look_like_numbers_stay_categories(tmp_path):
    table = two_columns()
    table["code"] = np.where(table["y"] == 1, "1", "two")
    table.to_csv(tmp_path / "t.csv", index=False)
    assert fit(tmp_path / "t.csv", tmp_path / "out").exit_code == 0
    table[table["y"] == 1].to_csv(tmp_path / "ones.csv", index=False)
    result = run("predict", tmp_path / "out", tmp_path / "ones.csv")
    assert result.exit_code == 0, result.output
    assert "did not see" not in result.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x,z,y\n", "has a header but no rows"),
        (b"", "is empty"),
        (b"x,z,y\n1,caf\xe9,0\n", "is not UTF-8: byte 0xe9 in line 2"),
        (b"x,x,y\n1,2,0\n", "has two columns called 'x', columns 1 and 2"),
        (b"x,z,why\n1,2,0\n", "there is no column 'y'"),
        (b"x,z,y\n1,2,\n3,4,\n", "the target 'y' has no value in any row"),
        (b"x,z,y\n1,2,0\n3,4,0\n5,6,0\n", "y holds only one class, 0"),
        (b"x,z,y\n1,1,0\n1,1,0\n1,1,1\n1,1,1\n", "no column is left to classify by"),
        (b"x,z,y\n1,,0\n2,3,0\n3,4,1\n5,6,1\n", "1 column has missing values: 'z' in 1 of 4 rows"),
        (b"x,z,y\n1,2,0.5\n2,3,0\n", "the target 'y' holds 0.5, a decimal number"),
    ],
)
def test_bad_tables_are_refused_in_a_line(tmp_path, content, message):
    (tmp_path / "t.csv").write_bytes(content)
    out = tmp_path / "deep" / "out"
    assert message in refused(fit(tmp_path / "t.csv", out), out)
    assert names(tmp_path) == ["t.csv"]


def test_other_options_that_are_refused(tmp_path):
    table, out = tmp_path / "t.csv", tmp_path / "out"
    two_columns().to_csv(table, index=False)
    for options, message in (
        (("--metric", "euclidian"), "unknown metric 'euclidian'"),
        (("--metric", "precomputed"), "takes distances, not a table"),
        (("--max-neighbors", "0"), "max_neighbors must be an integer"),
        (("--level", "2"), "level must lie between 0 and 1"),
        (("--inference", "exchange"), "inference='exchange' is for likelihood='coherent'"),
        (("--class-prior", "0=0.5"), "class_prior has no entry for class 1"),
        (("--drop", "w"), "there is no column 'w'"),
        (("--drop", "x", "--keep", "x"), "'x' is named by --drop and by --keep"),
        (("--encoding", "punycode"), "is not PUNYCODE"),
        (("--test", tmp_path / "none.csv"), "none.csv cannot be read: no such file"),
    ):
        assert message in refused(fit(table, out, *options), out)
    assert "CLASS=PROPORTION" in fit(table, out, "--class-prior", "half").stderr
    assert "neither a number nor auto" in fit(table, out, "--beta-max", "big").stderr


@pytest.mark.usefixtures("blank_page")
def test_tables_that_look_odd_and_are_fine(tmp_path):
    table = two_columns().assign(y=lambda frame: np.where(frame["y"] == 1, "café", SCRIPT))
    plain, marked, latin = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv"))
    table.to_csv(plain, index=False)
    table.to_csv(marked, index=True, encoding="utf-8-sig")  # a mark, and pandas' own counter
    table.to_csv(latin, index=False, encoding="latin-1", sep=";", decimal=",")
    outs = []
    for path, options in ((plain, ()), (marked, ()), (latin, ("--encoding", "latin-1"))):
        outs.append(tmp_path / path.stem)
        result = fit(path, outs[-1], *options)
        assert result.exit_code == 0, result.output
    plain, marked, latin = (pd.read_csv(out / "predictions.csv", dtype=str) for out in outs)
    pd.testing.assert_frame_equal(plain, latin)
    # The counter is left out of the model and stands beside its predictions.
    pd.testing.assert_frame_equal(plain, marked.drop(columns="column 1"))


@pytest.mark.parametrize("n", [6_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_large_tables_with_a_thousand_categories(tmp_path, n):
    table = mixed_table(n).assign(unit="cm", number=range(n))
    table["town"] = [f"town {i % 1000}" for i in range(n)]
    table.to_csv(tmp_path / "t.csv", index=False)
    # The defaults of the paper's model but for the length of lists where time is short.
    options = ("--model", "pseudo", "--no-compare")
    options += ("--max-neighbors", "8") if n < 10_000 else ()
    result = run("fit", tmp_path / "t.csv", "--target", "kind", "--out", tmp_path / "out", *options)
    assert result.exit_code == 0, result.output
    assert "has 1,000 categories" in result.stderr
    frame = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert len(frame) == n
    assert (frame["actual"] != frame["class"]).mean() < 0.35
    assert (tmp_path / "out" / "report.html").stat().st_size < 2_000_000


@pytest.mark.parametrize("stage", ["_analyse", "write_results"])
def test_ctrl_c_leaves_nothing_behind(tmp_path, monkeypatch, stage):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    home = "bayesknn.cli.fit" if stage == "_analyse" else "bayesknn.report.folder"
    monkeypatch.setattr(f"{home}.{stage}", interrupt)
    two_columns().to_csv(tmp_path / "train.csv", index=False)
    result = fit(tmp_path / "train.csv", tmp_path / "out")
    assert result.exit_code == 130
    assert "interrupted; nothing was written" in result.stderr
    assert names(tmp_path) == ["train.csv"]


def test_ctrl_c_that_chains_have_answered_is_not_forgotten(tmp_path, monkeypatch):
    def answer(*arguments, **options):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return analyse(*arguments, **options)

    monkeypatch.setattr("bayesknn.report.analysis.analyse", answer)
    two_columns().to_csv(tmp_path / "t.csv", index=False)
    result = fit(tmp_path / "t.csv", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (130, "")
    assert names(tmp_path) == ["t.csv"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (CoalescenceError("did not meet\nin 2 sweeps"), "Error: did not meet in 2 sweeps"),
        (TypeError("no"), "Error: internal error, a fault of bayesknn (TypeError: no); --debug"),
    ],
)
def test_errors_of_ours_are_a_sentence_and_a_traceback_if_asked(tmp_path, monkeypatch, error, line):
    def fail(**options):
        raise error

    monkeypatch.setattr("bayesknn.cli.fit._analyse", fail)
    two_columns().to_csv(tmp_path / "t.csv", index=False)
    result = fit(tmp_path / "t.csv", tmp_path / "out")
    assert result.exit_code == 1
    assert result.stderr.startswith(line) and len(result.stderr.splitlines()) == 1
    result = fit(tmp_path / "t.csv", tmp_path / "out", "--debug")
    assert result.exit_code == 1
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.splitlines()[-1].startswith(line)
    assert names(tmp_path) == ["t.csv"]


@pytest.mark.usefixtures("blank_page")
@pytest.mark.parametrize("yes_no", [("TRUE", "FALSE"), ("true", "false"), ("True", "False")])
def test_truth_values_are_the_same_in_every_file(tmp_path, yes_no):
    # In features and target, as R, SQL and Python write them.
    table = two_columns(60)
    words = np.array(yes_no[::-1])
    table["sunny"] = words[np.where(np.arange(60) % 5, table["y"], 1 - table["y"])]
    table["y"] = words[table["y"]]
    path, out = tmp_path / "t.csv", tmp_path / "out"
    table.to_csv(path, index=False)
    table[::-1].to_csv(tmp_path / "test.csv", index=False)
    result = fit(path, out, "--test", tmp_path / "test.csv", "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["kinds"] == {"x": "number", "z": "number", "sunny": "truth"}
    assert summary["classes"] == {"False": 30, "True": 30}
    assert summary["messages"] == []
    assert summary["scores"]["test"]["error"] < 0.2
    result = run("predict", out, tmp_path / "test.csv")
    assert result.stderr.startswith("note: rows of known class: 60 rows, error ")
    assert len(result.stderr.splitlines()) == 1
    found = pd.read_csv(io.StringIO(result.stdout), dtype=str)
    together = pd.read_csv(out / "predictions.csv", dtype=str)
    pd.testing.assert_frame_equal(found, together)


@pytest.mark.usefixtures("blank_page")
def test_codes_with_leading_zeros_stay_codes(tmp_path):
    table = two_columns(60)
    table["code"] = np.where(np.arange(60) % 5, table["y"], 1 - table["y"])
    table["code"] = "0" + table["code"].astype(str)
    table["y"] = "0" + table["y"].astype(str)
    table.to_csv(tmp_path / "t.csv", index=False)
    table[table["y"] == "01"].assign(code="1").to_csv(tmp_path / "ones.csv", index=False)
    result = fit(tmp_path / "t.csv", tmp_path / "out", "--test", tmp_path / "t.csv", "--json")
    summary = json.loads(result.stdout)
    assert summary["kinds"]["code"] == "text"
    assert summary["classes"] == {"00": 30, "01": 30}
    assert summary["scores"]["test"]["error"] < 0.2
    assert summary["messages"] == [
        "column 'code' holds numbers with leading zeros: they are taken as categories"
    ]
    result = run("predict", tmp_path / "out", tmp_path / "ones.csv")
    assert (
        "'code' holds categories that training did not see in 30 rows, such as '1'" in result.stderr
    )


@pytest.mark.usefixtures("blank_page")
def test_a_footer_changes_nothing_but_a_note(tmp_path):
    table = two_columns(60)
    table.to_csv(tmp_path / "t.csv", index=False)
    with (tmp_path / "t.csv").open("a") as file:
        file.write("Source: survey 2024,,\n")
    result = fit(tmp_path / "t.csv", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert result.stderr == (
        "note: row 61 of t.csv is a footer and left out: 'Source: survey 2024'\n"
    )
    assert result.stdout.splitlines()[1] == "Columns: numbers: x, z"
    result = run("predict", tmp_path / "out", tmp_path / "t.csv")
    assert len(result.stdout.splitlines()) == 61
    assert "row 61 of t.csv is a footer" in result.stderr


def limit_files(size):
    """Let no file grow beyond a size, as if the disk were full."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


@pytest.mark.parametrize("size", [1_000, 20_000])
def test_a_full_disk_leaves_nothing_but_a_sentence(tmp_path, monkeypatch, size):
    def fill(*arguments, **options):
        limit_files(size)
        return "<html></html>"

    # The last step before anything is written.
    monkeypatch.setattr("bayesknn.report.page.render_report", fill)
    two_columns(60).to_csv(tmp_path / "t.csv", index=False)
    try:
        result = fit(tmp_path / "t.csv", tmp_path / "deep" / "out")
    finally:
        limit_files(resource.RLIM_INFINITY)
    assert (result.exit_code, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1 and "too large" in result.stderr
    assert names(tmp_path) == ["t.csv"]


@pytest.mark.usefixtures("blank_page")
def test_two_at_once_are_not_both_told_of_success(tmp_path):
    two_columns(60).to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    with write_folder(out, own=FILES):
        result = fit(tmp_path / "t.csv", out)
        assert result.exit_code == 2
        assert "another process is writing to" in result.stderr
    assert fit(tmp_path / "t.csv", tmp_path / "other").exit_code == 0


def test_all_work_is_done_under_a_progress_bar(tmp_path, monkeypatch):
    """Counted, not timed: a bar that is open for all of it leaves no silence between its parts."""
    opened, under = [], {}

    @contextlib.contextmanager
    def open_bar(description, total=None, **options):
        opened.append(description)
        yield lambda steps: None
        opened.remove(description)

    def follow(home, name):
        real = getattr(importlib.import_module(home), name)

        def run(*arguments, **options):
            under[name] = list(opened)
            return real(*arguments, **options)

        monkeypatch.setattr(f"{home}.{name}", run)

    monkeypatch.setattr("bayesknn._utils.progress.progress", open_bar)
    follow("bayesknn.tables.files", "read_table")
    follow("bayesknn.report.analysis", "analyse")
    follow("bayesknn.report.page", "render_report")
    follow("bayesknn.report.folder", "write_results")
    two_columns(60).to_csv(tmp_path / "t.csv", index=False)
    assert fit(tmp_path / "t.csv", tmp_path / "out").exit_code == 0
    assert len(under) == 4
    for bars in under.values():
        assert bars == ["Fitting, predicting and writing the report"]
    assert opened == []


def test_what_cannot_work_is_found_before_anything_heavy_is_imported(tmp_path):
    two_columns(60).to_csv(tmp_path / "t.csv", index=False)
    arguments = {
        "fit": ["t.csv", "--target", "y", "--out", "out"],
        "predict": ["out", "t.csv"],
    }
    cases = (
        ("fit", ["none.csv", "--target", "y", "--out", "out"], "none.csv cannot be read: no such"),
        ("fit", [*arguments["fit"], "--test", "none.csv"], "none.csv cannot be read: no such"),
        ("fit", ["t.csv", "--target", "y", "--out", "t.csv"], "t.csv is not a folder"),
        ("fit", ["t.csv", "--target", "y", "--out", "t.csv/out"], "a file is in its way"),
        ("fit", [*arguments["fit"], "--jobs", "0"], "0 is not a number of threads"),
        ("fit", [*arguments["fit"], "--jobs", "1000000"], "1000000 is not a number of threads"),
        ("fit", [*arguments["fit"], "--seed", "-1"], "-1 is not in the range"),
        ("fit", [*arguments["fit"], "--sep", "ab"], "'ab' separates no fields"),
        ("predict", arguments["predict"], "there is no model at out"),
        ("predict", ["t.csv", "none.csv"], "none.csv cannot be read: no such"),
        ("predict", [*arguments["predict"], "--jobs", "x"], "x is not a number of threads"),
    )
    code = (
        "import sys; from click.testing import CliRunner; from bayesknn.cli import main\n"
        f"for command, words, message in {cases!r}:\n"
        "    result = CliRunner().invoke(main, [command, *words])\n"
        "    assert result.exit_code == 2, result.output\n"
        "    assert message in result.stderr, result.stderr\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert {"numpy", "pandas", "sklearn", "numba"}.isdisjoint(ran.stdout.split())
    assert names(tmp_path) == ["t.csv"]


BASE_INSTALL = """
import sys
from importlib.abc import MetaPathFinder

EXTRAS = {"pandas", "pyarrow", "matplotlib", "jinja2", "markupsafe", "skops", "arviz_plots"}

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from bayesknn.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    "arguments",
    [["fit", "t.csv", "--target", "y", "--out", "out"], ["predict", "model", "t.csv"], ["demo"]],
)
def test_a_base_install_names_the_extra(tmp_path, arguments):
    two_columns(60).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "model").write_text("")
    ran = subprocess.run(
        [sys.executable, "-c", BASE_INSTALL, *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1
    assert "not installed: pip install 'bayesknn[report]'" in ran.stderr
    assert names(tmp_path) == ["model", "t.csv"]


@pytest.mark.usefixtures("blank_page")
def test_options_take_several_columns_at_once(tmp_path):
    table = two_columns(60).assign(a=np.arange(60) % 3, b=np.arange(60) % 4, c="u")
    table.to_csv(tmp_path / "t.csv", index=False, sep="#")
    options = ("--categorical", "a,b", "--drop", "c, z", "--sep", "#", "--json")
    result = fit(tmp_path / "t.csv", tmp_path / "out", *options)
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["kinds"] == {"x": "number", "a": "text", "b": "text"}
    assert run("predict", tmp_path / "out", tmp_path / "t.csv", "--sep", "#").exit_code == 0


@pytest.fixture(scope="module")
def pooled(tmp_path_factory):
    """Fit a table with missing values by the defaults of the command."""
    folder = tmp_path_factory.mktemp("pooled")
    table = mixed_table(60)
    table.loc[3, "length"], table.loc[5, "town"] = np.nan, None
    table.to_csv(folder / "train.csv", index=False)
    mixed_table(12, seed=1).to_csv(folder / "test.csv", index=False)
    result = run(
        "fit", folder / "train.csv", "--target", "kind", "--test", folder / "test.csv", "--out",
        folder / "out", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return folder, json.loads(result.stdout)


def test_the_default_is_the_pool_and_it_is_compared(pooled):
    folder, summary = pooled
    assert names(folder / "out") == ["model.skops", "predictions.csv", "report.html"]
    assert sorted(summary["files"]) == names(folder / "out")
    assert summary["model"] == "pooled"
    assert set(summary["relevance"]) == {"length", "<b>width</b>", "town"}
    assert summary["messages"][0] == "column 'length' has no value in 1 row: filled with its mean"
    compared = summary["comparison"]
    assert [name.split(",")[0] for name in compared] == [
        "baseline: class frequencies", "classical kNN", "logistic regression",
        "random forest (100 trees)", "gradient boosting", "Bayesian kNN (Cucala et al. 2009)",
        "pooled neighbours",
    ]  # fmt: skip
    # Three classes of equal size.
    assert compared["baseline: class frequencies"]["log_loss"] == pytest.approx(np.log(3))
    assert compared["pooled neighbours"]["log_loss"] < 1.0
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    for text in ("Comparison with other classifiers", "Members of the ensemble", "discriminant"):
        assert text in page
    assert "Posterior of k and β" not in page
    assert SCRIPT not in page


def test_a_saved_pool_predicts_what_it_predicted(pooled):
    folder, _ = pooled
    result = run("predict", folder / "out", folder / "test.csv")
    assert result.exit_code == 0, result.output
    found = pd.read_csv(io.StringIO(result.stdout))
    together = pd.read_csv(folder / "out" / "predictions.csv")
    pd.testing.assert_frame_equal(found, together)
    assert {"low plain", "high plain", "zone"} <= set(found)


def test_the_report_of_a_pool_in_a_browser(pooled):
    found = check_page(pooled[0] / "out" / "report.html", 400)
    # Three effects: the few test rows are one group for calibration.
    assert len(found.figures) == 3
    assert "There is no diagram: these rows are too few" in found.text


@pytest.mark.usefixtures("blank_page")
def test_no_option_changes_the_model_in_silence(tmp_path):
    table, out = tmp_path / "t.csv", tmp_path / "out"
    two_columns(60).to_csv(table, index=False)
    words = ("fit", table, "--target", "y", "--out", out)
    refusal = "is an option of the paper's models, not of the pool: pass --model coherent"
    for options, message in (
        (("--model", "pooled", "--beta-max", "3"), f"--beta-max {refusal}"),
        (("--no-scale",), f"--no-scale {refusal}"),
        (("--impute",), f"--impute {refusal}"),
        (("--metric", "gower"), f"--metric {refusal}"),
        (("--inference", "grid"), f"--inference {refusal}"),
        (("--chains", "2"), f"--chains {refusal}"),
        (("--likelihood", "pseudo"), "No such option"),
    ):
        result = run(*words, *options)
        assert result.exit_code == 2 and message in result.stderr
    quick = ("--max-neighbors", "8", "--draws", "200", "--no-compare", "--json")
    result = run(*words, "--model", "pseudo", *quick)
    assert json.loads(result.stdout)["model"] == "pseudo"
    result = run(*words, "--model", "coherent", "--metric", "gower", *quick, "--force")
    assert json.loads(result.stdout)["model"] == "coherent"


@pytest.mark.parametrize("model", ["pseudo", "pooled"])
def test_how_neighbours_are_found_can_be_chosen(tmp_path, model):
    two_columns(120).to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    common = ("fit", tmp_path / "t.csv", "--target", "y", "--out", out, "--no-compare", "--json")
    result = run(*common, "--model", model, "--max-neighbors", 5, "--search", "kd_tree")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    searches = summary["search"].values() if model == "pooled" else [summary["search"]]
    assert {search["name"] for search in searches} >= {"kd_tree"}
    assert "--search kd_tree" in summary["command"]


def test_searches_are_those_of_the_graph(tmp_path):
    two_columns().to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    assert "'--search'" in fit(tmp_path / "t.csv", out, "--search", "guess").stderr
