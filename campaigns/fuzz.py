"""Files and arguments that nobody meant, thousands of them: ``python -m campaigns fuzz``.

A process of its own runs the cases, so that a crash or a hang is a verdict and not the end. One
case in ``OUTSIDE`` is run by a real ``bayesknn`` process too, which must say the same.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from campaigns import cases
from campaigns.cases import Case
from campaigns.verdicts import describe, judge

CORPUS = Path(__file__).parents[1] / "tests" / "campaigns" / "corpus"
FOUND = Path("fuzz-found")
TIMEOUT = 300.0
OUTSIDE = 60
# Of a hundred cases of a round; tables are the most, and the slowest.
SHARES = {"csv": 60, "model": 20, "arguments": 20, "estimator": 20}
_MEMORY = 6_000_000_000


def _serve(pipe: Any, folder: str) -> None:
    """Judge what comes through a pipe until nothing comes any more."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    while True:
        try:
            case, outside = pipe.recv()
        except EOFError:
            return
        pipe.send(judge(case, Path(folder), outside=outside))


def _cpu_seconds(process: Any) -> float:
    """Return what a living process has used of a processor, by Linux."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Judge:
    """A process that judges cases, started again when one of them was its end."""

    def __init__(self) -> None:
        self._process: Any = None

    def __call__(self, case: Case, *, outside: bool = False, timeout: float = TIMEOUT) -> list[str]:
        """Return the faults of a case."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._place = tempfile.TemporaryDirectory(prefix="fuzz-")
            self._process = context.Process(target=_serve, args=(theirs, self._place.name))
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
            fault = f"hang: nothing for {timeout:g} s"
        self.close()
        return [fault]

    def _is_answered(self, timeout: float) -> bool:
        """Wait, for longer where others hardly let the process run."""
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
            self._place.cleanup()


def make_models() -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Fit two models; return them, and the files that command lines name."""
    import pandas
    from click.testing import CliRunner
    from tests.report.tables import mixed_table, two_columns

    from bayesknn.cli import main

    models, files = {}, {}
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
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
    """Files whose content hypothesis need not write out to describe a strategy."""

    def __repr__(self) -> str:
        return f"Bulk({', '.join(self)})"


def strategies() -> dict[str, st.SearchStrategy[Case]]:
    """Return what draws each kind of case."""
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


def draw_cases(strategy: st.SearchStrategy[Case], n: int, seed: int) -> list[Case]:
    """Return n cases, the same for the same seed."""
    drawn: list[Case] = []

    @with_seed(seed)
    @settings(
        max_examples=n, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def collect(case: Case) -> None:
        drawn.append(case)

    collect()
    return drawn


def corpus() -> list[Case]:
    """Return the cases that are kept: a file or line for each fault that was found and mended."""
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


def run(
    minutes: float, seed: int, show: Callable[[str], None] = print, rounds: int | None = None
) -> dict[str, Any]:
    """Judge cases for a while; return how many of each kind, and every distinct fault once."""
    judged: Counter[str] = Counter()
    faults: dict[str, str] = {}
    drawing, judge_case = strategies(), Judge()
    begin, cpu = time.monotonic(), _cpu()

    def look(case: Case, outside: bool = False) -> None:
        found = judge_case(case, outside=outside)
        judged[case.kind] += 1
        judged["outside"] += outside
        for fault in found:
            # Numbers and names apart, it is one fault.
            sort = re.sub(r"\d+|'[^']*'", "_", f"{case.kind}: {fault}")[:90]
            if sort not in faults:
                faults[sort] = fault
                show(f"{case.kind}: {fault}\n    {_keep(case)}")

    for case in corpus():
        look(case)
    begin, cpu, judged = time.monotonic(), _cpu(), Counter()
    done = 0
    while (time.monotonic() - begin < 60 * minutes) if rounds is None else done < rounds:
        for kind, strategy in drawing.items():
            for case in draw_cases(strategy, SHARES[kind] // 10, seed * 100_003 + done):
                look(case, outside=(sum(judged.values()) % OUTSIDE) == OUTSIDE - 1)
        done += 1
        if done % 10 == 0:
            told = ", ".join(f"{n:,} {kind}" for kind, n in judged.items())
            show(f"{(time.monotonic() - begin) / 60:.0f} min: {told}; {len(faults)} faults")
    seconds = time.monotonic() - begin
    judge_case.close()
    return {
        "seed": seed,
        "minutes": round(seconds / 60, 1),
        "cpu_minutes": round((_cpu() - cpu) / 60, 1),
        **{kind: judged[kind] for kind in (*SHARES, "outside")},
        "faults": sorted(faults.values()),
    }


def _cpu() -> float:
    """CPU seconds of this process and of those that it has waited for or that still run."""
    total = time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    total += children.ru_utime + children.ru_stime
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15])) / 100
    return total


def _keep(case: Case) -> str:
    """Write a case that has a fault to a folder; return what to look at."""
    FOUND.mkdir(exist_ok=True)
    told = describe(case)
    stem = hashlib.sha256(told.encode() + b"".join(case.files.values())).hexdigest()[:10]
    (FOUND / f"{stem}.json").write_text(told + "\n", encoding="utf-8")
    for name in ("t.csv", "m.skops"):
        if case.kind in ("csv", "model") and name in case.files:
            (FOUND / f"{stem}.{name.split('.')[1]}").write_bytes(case.files[name])
    return f"{FOUND / stem}: {told[:300]}"
