"""Run of the invariances: draw cases in two processes, shrink failing ones, report the faults."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import batched
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from campaigns.invariances.compared import Compared
from campaigns.invariances.engine import close_runner
from campaigns.invariances.known import KNOWN
from campaigns.invariances.registry import INVARIANCES

OUTPUT = Path("invariances-found")
# Tasks of one pool of processes. More take more memory, about 10 MB each; fewer cost the start of
# processes. A pool that replaces its processes one by one may hang (CPython issue 115634).
_N_TASKS = 150


class Outcome(NamedTuple):
    """Results of the cases of one row of options.

    Attributes
    ----------
    name : str
        Name of the invariance.
    n_cases, n_comparisons : int
        Numbers of cases and comparisons, without those of shrinking.
    known : Counter
        Number of faults that each entry of ``KNOWN`` explains, by its index.
    fault : str
        Failed comparisons of the smallest failing case, empty if no case failed.
    """

    name: str
    n_cases: int
    n_comparisons: int
    known: Counter[int]
    fault: str


def find_faults(name: str, case: Any) -> tuple[list[Compared], int]:
    """Return the failed comparisons of a case and the number of all its comparisons."""
    faults, n_comparisons = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for compared in INVARIANCES[name].check(case):
                n_comparisons += 1
                faults += [compared] * compared.is_fault
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__} in {Path(where.filename).name}: {error}"
            faults.append(Compared(what, math.inf, 0.0))
    return faults, n_comparisons


def match_known(name: str, case: Any, fault: Compared) -> int | None:
    """Return the index of the entry of ``KNOWN`` that explains a fault, or None."""
    for i, each in enumerate(KNOWN):
        if each.invariance in ("", name) and each.what in fault.what and each.applies(case):
            return i
    return None


def run_row(name: str, row: int, n_cases: int, seed: int, shrink: bool = True) -> Outcome:
    """Draw and check cases of one row of options."""
    options = INVARIANCES[name].rows[row]
    known: Counter[int] = Counter()
    counts, last = [0, 0], [None, ""]
    has_failed = False

    # The row is part of the seed, so that rows have different cases.
    @hypothesis.seed(seed * 1000 + row)
    @settings(
        max_examples=n_cases,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(INVARIANCES[name].draw(options))
    def look(case: Any) -> None:
        nonlocal has_failed
        faults, n_comparisons = find_faults(name, case)
        positions = [match_known(name, case, fault) for fault in faults]
        if not has_failed:
            counts[0] += INVARIANCES[name].size
            counts[1] += n_comparisons
            known.update(set(positions) - {None})
        unknown = [fault for fault, i in zip(faults, positions, strict=True) if i is None]
        if unknown:
            has_failed, last[:] = True, [case, "\n".join(map(_describe, unknown))]
        assert not unknown

    try:
        look()
    except AssertionError:
        return Outcome(name, *counts, known, _write(name, row, *last))
    return Outcome(name, *counts, known, "")


def _describe(fault: Compared) -> str:
    return f"{fault.what}: difference {fault.difference:.3g}, allowed {fault.tolerance:g}"


def _write(name: str, row: int, case: Any, fault: str) -> str:
    """Write a failing case to ``invariances-found``; return its folder and its faults."""
    folder = OUTPUT / name / str(row)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fault.txt").write_text(f"{fault}\n\n{case}\n", encoding="utf-8")
    (folder / "case.pickle").write_bytes(pickle.dumps(case))
    return f"{folder}:\n{fault}"


def run(
    n_cases: int = 2000, seed: int = 0, only: str = "", show: Callable[[str], None] = print
) -> dict[str, Any]:
    """Check cases of all invariances, or of those whose name contains ``only``.

    Returns
    -------
    dict
        Numbers of cases, comparisons and faults of each invariance, and the faults.
    """
    names = [name for name in INVARIANCES if only in name]
    tasks = []
    for name in names:
        n_rows = len(INVARIANCES[name].rows)
        per_row = math.ceil(n_cases / len(INVARIANCES) / n_rows / INVARIANCES[name].size)
        tasks += [(name, row, per_row, seed) for row in range(n_rows)]
    outcomes: list[Outcome] = []
    context = multiprocessing.get_context("spawn")
    # Tasks are sorted by row, so that every invariance starts early and its faults show early.
    tasks.sort(key=lambda task: task[1])
    for some in batched(tasks, _N_TASKS):
        with ProcessPoolExecutor(2, context) as pool:
            for future in as_completed([pool.submit(_run_row_of_pool, *task) for task in some]):
                outcomes.append(future.result())
                n_faults = sum(bool(each.fault) for each in outcomes)
                drawn = sum(each.n_cases for each in outcomes)
                show(f"{len(outcomes)}/{len(tasks)} rows, {drawn:,} cases, {n_faults} faults")
    return sum_up(outcomes, names)


def _run_row_of_pool(*task: Any) -> Outcome:
    """Run a row; leave no process behind, for which the end of a process of the pool would wait."""
    try:
        return run_row(*task)
    finally:
        close_runner()


def sum_up(outcomes: list[Outcome], names: list[str]) -> dict[str, Any]:
    """Return the numbers of cases, comparisons and faults of each invariance, and the faults.

    An entry of ``KNOWN`` that explains no fault counts as a fault, because it is out of date.
    """
    table = {
        name: {
            "cases": sum(each.n_cases for each in outcomes if each.name == name),
            "comparisons": sum(each.n_comparisons for each in outcomes if each.name == name),
            "faults": sum(bool(each.fault) for each in outcomes if each.name == name),
            "known": sum(each.known.total() for each in outcomes if each.name == name),
        }
        for name in names
    }
    seen = sum((each.known for each in outcomes), Counter())
    outdated = [
        f"{each.invariance}: {each.what!r} no longer fails: remove it from KNOWN"
        for i, each in enumerate(KNOWN)
        if each.invariance in ("", *names) and not seen[i]
    ]
    faults = [each.fault for each in outcomes if each.fault] + outdated
    return {"invariances": table, "faults": faults}
