"""Detection of faults: run a case of the fuzzer and describe everything that is wrong."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

from campaigns.cases import Case

_LINES = ("note: ", "warning: ", "Error: ", "Usage: ", "Try ")
_FILES = {"predictions.csv", "model.skops", "report.html"}


def find_faults(case: Case, folder: Path, *, outside: bool = False) -> list[str]:
    """Run a case in an empty folder and return a description of each of its faults.

    Parameters
    ----------
    case : Case
    folder : Path
        Empty folder; it is empty again afterwards.
    outside : bool
        Whether to run the command in a separate process too, which must give the same output.
    """
    if case.kind == "estimator":
        return _check_estimator(case)
    if case.kind == "call":
        from campaigns.invariances.engine import check_call

        return check_call(*case.words)
    for name, content in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    before = _list(folder)
    here = Path.cwd()
    os.chdir(folder)
    try:
        faults, result = _check_command(case, before)
        if outside and not faults:
            _clear(folder, set(case.files))
            faults = _check_outside(case, result)
    finally:
        os.chdir(here)
        _clear(folder)
    return faults


def _check_command(case: Case, before: set[str]) -> tuple[list[str], tuple[int, str]]:
    """Return the faults of a command, and its exit code and output."""
    from click.testing import CliRunner

    from bayesknn.cli import main

    result = CliRunner().invoke(main, list(case.words), prog_name="bayesknn")
    code, faults = result.exit_code, []
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        faults.append(f"traceback: {type(error).__name__}: {error}")
    if "internal error" in result.stderr or (
        "Traceback" in result.stderr and "--debug" not in case.words
    ):
        faults.append(f"internal error: {result.stderr.strip()[-300:]}")
    stray = [line for line in result.stderr.splitlines() if not line.startswith(_LINES)]
    # A damaged model file may contain numbers that make NumPy warn.
    is_expected = case.kind == "model" or "--debug" in case.words or "Usage: " in result.stderr
    if stray and not is_expected:
        # The path of installed packages differs between machines.
        line = re.sub(r"\S*/site-packages/", "", stray[0])
        faults.append(f"stray line: {line[:300]}")
    if code not in (0, 2) and not faults and not _is_excused(result.stderr):
        faults.append(f"exit code {code}: {result.stderr.strip()[-300:]}")
    new = _list(Path()) - before
    if left := [name for name in new if ".partial" in name]:
        faults.append(f"left behind: {left[0]}")
    if code == 2:
        faults += _check_rejection(case, result.stderr, result.stdout, new)
    elif code == 0 and "--help" not in case.words:
        if case.words[0] == "fit":
            faults += _check_fit(case)
        # A model file with changed numbers may predict anything.
        elif (case.kind, case.expect) == ("model", "either"):
            pass
        elif "--json" not in case.words and "--out" not in case.words:
            faults += _check_predictions(result.stdout)
    if case.expect == "accepted" and code != 0:
        faults.append(f"rejected although valid: {result.stderr.strip()[-300:]}")
    if case.expect == "refused" and code != 2:
        faults.append(f"not rejected: exit code {code}")
    return faults, (code, result.stdout)


def _is_excused(stderr: str) -> bool:
    """Return whether exit code 1 is right: a limit of the file system, or no coalescence."""
    return "did not meet" in stderr or "coalesce" in stderr or "File name too long" in stderr


def _check_rejection(case: Case, stderr: str, stdout: str, new: set[str]) -> list[str]:
    """Return the faults of a rejection, which must be one line and leave no output or files."""
    faults = []
    lines = stderr.strip().splitlines()
    errors = [line for line in lines if line.startswith("Error: ")]
    if len(errors) != 1 or not lines[-1].startswith("Error: "):
        faults.append(f"rejected with other than one line: {stderr.strip()[:300]}")
    elif len(errors[0]) > 2000:
        faults.append(f"an error message of {len(errors[0]):,} characters")
    if stdout.strip():
        faults.append(f"rejected, but it printed {stdout[:100]!r}")
    if new:
        faults.append(f"rejected, but it wrote {sorted(new)[0]}")
    if case.kind == "arguments" and errors:
        message = errors[0].lower().replace("_", "-")
        message += message.replace(" ", "-")
        words = [w.strip("-").lower().replace("_", "-") for w in case.words[1:]]
        known = ("model", "target", "out", "column", "table", "missing", "y holds")
        if not any(w and w in message for w in (*words, *known)):
            faults.append(f"names no argument: {errors[0]}")
    return faults


def _check_fit(case: Case) -> list[str]:
    """Return the faults of the files that a fit wrote and of predictions with its model."""
    words = case.words
    out = Path(words[len(words) - 1 - words[::-1].index("--out") + 1])
    files = {entry.name for entry in out.iterdir()}
    if files - {"posterior.nc"} != _FILES:
        return [f"partial result: {sorted(files)}"]
    faults = _check_predictions((out / "predictions.csv").read_text(encoding="utf-8"))
    if not (out / "report.html").read_text(encoding="utf-8").rstrip().endswith("</html>"):
        faults.append("partial result: report.html")
    if case.kind == "csv":
        predict = ["predict", str(out), "t.csv"]
        if "--encoding" in words:
            predict += ["--encoding", words[words.index("--encoding") + 1]]
        faults += [
            f"predict of the training table: {fault}"
            for fault in _check_command(Case("csv", tuple(predict), {}, "accepted"), set())[0]
            if not fault.startswith("left behind")
        ]
    return faults


def _check_predictions(text: str) -> list[str]:
    """Return the faults of the probabilities and intervals in the text of predictions.csv."""
    import pandas

    frame = pandas.read_csv(io.StringIO(text), keep_default_na=False, na_values=[])
    names = [name for name in frame if str(name).startswith("probability ")]
    if not len(frame) or len(names) < 2:
        return ["partial result: predictions without rows or classes"]
    try:
        p = frame[names].to_numpy(dtype=float)
    except ValueError:
        return ["probabilities that are not numbers"]
    faults = []
    if not np.all(np.isfinite(p)) or p.min() < 0 or np.any(np.abs(p.sum(axis=1) - 1) > 1e-4):
        faults.append("probabilities that do not sum to 1")
    for name in names:
        g = name.removeprefix("probability ")
        if f"low {g}" in frame:
            low, high = (frame[f"{end} {g}"].to_numpy(dtype=float) for end in ("low", "high"))
            if not (np.all(low <= high + 1e-6) and low.min() >= -1e-6 and high.max() <= 1 + 1e-6):
                faults.append("an interval with low above high, or outside 0..1")
    return faults


def _check_outside(case: Case, result: tuple[int, str]) -> list[str]:
    """Return the differences of a run in a separate process from a result in this one."""
    code, stdout = result
    command = [sys.executable, "-W", "default", "-m", "bayesknn", *case.words]
    try:
        again = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except (ValueError, UnicodeError):  # An argument has a null byte, which no shell can pass.
        return []
    if again.returncode != code:
        return [f"exit code {code} inside and {again.returncode} outside: {again.stderr[-300:]}"]
    if "Traceback" in again.stderr and "--debug" not in case.words:
        return [f"traceback outside: {again.stderr[-300:]}"]
    words = [re.sub(r'"seconds": [\d.]+', "", text).split() for text in (stdout, again.stdout)]
    # Words are compared, not lines, because help is wrapped at the width of the terminal.
    if words[0] != words[1]:
        return ["the output differs in a separate process"]
    return []


def _check_estimator(case: Case) -> list[str]:
    """Fit an estimator to 24 rows of two classes, predict five, and return the faults."""
    import bayesknn

    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    X = rng.normal(size=(24, 2)) + 2 * y[:, None]
    if case.parameters.get("metric") == "precomputed" and case.parameters.get("likelihood"):
        X = np.linalg.norm(X[:, None] - X[None], axis=2)
    parameters = dict(case.parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fitted = getattr(bayesknn, case.words[0])(**parameters).fit(X, y)
            if case.words[0] == "ColumnSelector":
                chosen = fitted.transform(X)
                return [] if chosen.shape[0] == 24 else ["rows were lost"]
            p = fitted.predict_proba(X[:5])
        except bayesknn.CoalescenceError:
            return []
        except (ValueError, TypeError) as error:
            # scikit-learn raises TypeError for parameters, and so may a callable that is no metric.
            if any(name in str(error) for name in parameters):
                return []
            return [f"names no argument: {type(error).__name__}: {error}"]
        except Exception as error:
            return [f"traceback: {type(error).__name__}: {error}"]
    if p.shape != (5, 2) or not np.all(np.isfinite(p)) or np.any(np.abs(p.sum(axis=1) - 1) > 1e-9):
        return ["probabilities that do not sum to 1"]
    return []


def _list(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def _clear(folder: Path, keep: set[str] = frozenset()) -> None:
    kept = {name.split("/")[0] for name in keep}
    for entry in folder.iterdir():
        if entry.name not in kept:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def describe(case: Case) -> str:
    """Return the words, expected outcome and parameters of a case as one line of JSON."""
    fields = {"words": case.words, "expect": case.expect}
    if case.parameters:
        fields["parameters"] = {name: repr(value) for name, value in case.parameters.items()}
    return json.dumps(fields, ensure_ascii=False)
