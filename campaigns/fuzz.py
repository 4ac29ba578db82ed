"""Fuzzing with malformed files and arguments drawn by Hypothesis; run by ``tests/campaigns``.

The cases run in a separate process, so that a crash or a hang is reported as a fault and does not
end the campaign.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaigns import cases
from campaigns.cases import Case
from campaigns.verdicts import describe, find_faults

if TYPE_CHECKING:
    from hypothesis import strategies as st

CORPUS = Path(__file__).parents[1] / "tests" / "campaigns" / "corpus"
OUTPUT = Path("fuzz-found")
# Longest time of a case in seconds. A shorter one reports slow cases as hangs.
TIMEOUT = 300.0
# Address space of the process in bytes. Less fails for valid cases; more may exhaust the machine.
_MEMORY = 6_000_000_000


def _serve(pipe: Any, folder: str) -> None:
    """Receive cases from a pipe and send back their faults, until the pipe is closed."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    while True:
        try:
            case, outside = pipe.recv()
        except EOFError:
            return
        pipe.send(find_faults(case, Path(folder), outside=outside))


def _cpu_seconds(process: Any) -> float:
    """Return the CPU time in seconds that a running process has used, from /proc on Linux."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class CaseRunner:
    """Separate process that runs cases; it is restarted after a crash or a hang."""

    def __init__(self) -> None:
        self._process: Any = None

    def __call__(self, case: Case, *, outside: bool = False, timeout: float = TIMEOUT) -> list[str]:
        """Return the faults of a case."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
            self._process = context.Process(target=_serve, args=(theirs, self._folder.name))
            self._process.start()
            theirs.close()
        self._pipe.send((case, outside))
        try:
            if self._is_answered(timeout):
                return self._pipe.recv()
        except EOFError:
            self._process.join()
            fault = f"crash: the process ended with {self._process.exitcode}"
        else:
            fault = f"hang: no answer for {timeout:g} s"
        self.close()
        return [fault]

    def _is_answered(self, timeout: float) -> bool:
        """Return whether an answer arrives in time.

        The timeout is extended while the process has used some CPU time but less than ``timeout``
        seconds, as on a busy machine.
        """
        first = before = _cpu_seconds(self._process)
        while not self._pipe.poll(timeout):
            now = _cpu_seconds(self._process)
            if now == before or now > first + timeout:
                return False
            before = now
        return True

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
            self._process = None
            self._folder.cleanup()


def make_models() -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Fit two models; return the model files by name, and the files that command lines refer to."""
    import pandas
    from click.testing import CliRunner
    from tests.report.tables import mixed_table, two_columns

    from bayesknn.cli import main

    models, files = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        two_columns(30).to_csv(here / "model.csv", index=False)
        mixed_table(30).rename(columns={"kind": "y"}).to_csv(here / "pool.csv", index=False)
        for name, options in (("model", cases.QUICK), ("pool", cases.POOLED)):
            words = ["fit", str(here / f"{name}.csv"), "--target", "y", "--out", str(here / name)]
            result = CliRunner().invoke(main, [*words, *options])
            assert result.exit_code == 0, result.output
            models[name] = (here / name / "model.skops").read_bytes()
            files[f"{name}.csv"] = (here / f"{name}.csv").read_bytes()
    files["t.csv"] = files["model.csv"]
    files["test.csv"] = two_columns(12, seed=1).to_csv(index=False).encode()
    files["bad.csv"] = b"x,z\n1,\n\xff,2\n"
    losses = pandas.DataFrame({"truth": [0, 1], "0": [0, 1], "1": [5, 0]})
    files["loss.csv"] = losses.to_csv(index=False).encode()
    for name, content in models.items():
        files[f"{name}/model.skops"] = content
    return models, files


class Bulk(dict):
    """Dictionary of files with a short ``repr``, which Hypothesis prints to describe a strategy."""

    def __repr__(self) -> str:
        return f"Bulk({', '.join(self)})"


def strategies() -> dict[str, st.SearchStrategy[Case]]:
    """Return the strategy that draws cases of each kind."""
    models, files = map(Bulk, make_models())
    tables = {name: content for name, content in files.items() if name.endswith(".csv")}
    return {
        "csv": cases.csv_files(),
        "model": cases.model_files(models).map(
            lambda case: case._replace(files={**tables, **case.files})
        ),
        "arguments": cases.command_lines(files),
        "estimator": cases.estimators(),
    }


def corpus() -> list[Case]:
    """Return the stored cases, one for each fault that was found and fixed."""
    kept = []
    for path in sorted(CORPUS.glob("csv/*/*.csv")):
        options = cases.POOLED if path.name.endswith(".pooled.csv") else cases.QUICK
        if path.name.startswith("impute"):
            options = (*options, "--impute")
        kept.append(Case("csv", cases.fit_words(*options), {"t.csv": path.read_bytes()},
                         path.parent.name))  # fmt: skip
    table = {"model.csv": (CORPUS / "model.csv").read_bytes()}
    for path in sorted(CORPUS.glob("models/*.skops")):
        words = ("predict", "m.skops", "model.csv")
        kept.append(Case("model", words, {**table, "m.skops": path.read_bytes()}, "refused"))
    for line in (CORPUS / "arguments.txt").read_text(encoding="utf-8").splitlines():
        expect, *words = line.split("\t")
        files = {"t.csv": table["model.csv"]}
        kept.append(Case("arguments", tuple(words), files, expect))
    return kept


def keep(case: Case) -> str:
    """Write the files of a case with a fault to ``fuzz-found``; return their folder and the case.

    Hypothesis shrinks a failing case and calls this function each time, so that the files of the
    smallest case remain.
    """
    folder = OUTPUT / case.kind
    for name, content in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return f"{folder}: {describe(case)}"
