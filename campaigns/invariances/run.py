"""Draw cases of every invariance in two processes, shrink what fails and sum up."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from campaigns.invariances.compared import Compared
from campaigns.invariances.known import KNOWN
from campaigns.invariances.registry import INVARIANCES

FOUND = Path("invariances-found")


class Outcome(NamedTuple):
    """Results of the cases of one row of options.

    Attributes
    ----------
    name : str
        The invariance.
    n_cases, n_comparisons : int
        Before shrinking.
    known : Counter
        Faults listed in ``KNOWN``, by their position in it.
    fault : str
        The comparisons that failed in the smallest case, empty if none did.
    """

    name: str
    n_cases: int
    n_comparisons: int
    known: Counter[int]
    fault: str


def find_faults(name: str, case: Any) -> tuple[list[Compared], int]:
    """Return the comparisons of a case that fail, and how many were made."""
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
    """Return the position in ``KNOWN`` of what explains a fault, or None."""
    for i, each in enumerate(KNOWN):
        if each.invariance in ("", name) and each.what in fault.what and each.applies(case):
            return i
    return None


def run_row(name: str, row: int, n_cases: int, seed: int, shrink: bool = True) -> Outcome:
    """Draw cases of one row of options."""
    options = INVARIANCES[name].rows[row]
    known: Counter[int] = Counter()
    counts, last = [0, 0], [None, ""]
    has_failed = False

    # Hypothesis' simplest case comes first: a row of its own is enough for other values.
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
            has_failed, last[:] = True, [case, "\n".join(map(_say, unknown))]
        assert not unknown

    try:
        look()
    except AssertionError:
        return Outcome(name, *counts, known, _write(name, row, *last))
    return Outcome(name, *counts, known, "")


def _say(fault: Compared) -> str:
    return f"{fault.what}: {fault.difference:.3g}, allowed {fault.tolerance:g}"


def _write(name: str, row: int, case: Any, fault: str) -> str:
    """Write a case to ``invariances-found``; return what is wrong with it."""
    folder = FOUND / name / str(row)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fault.txt").write_text(f"{fault}\n\n{case}\n", encoding="utf-8")
    (folder / "case.pickle").write_bytes(pickle.dumps(case))
    return f"{folder}:\n{fault}"


def run(
    n_cases: int = 2000, seed: int = 0, only: str = "", show: Callable[[str], None] = print
) -> dict[str, Any]:
    """Draw cases of every invariance, or of those whose name holds a text; return the summary."""
    names = [name for name in INVARIANCES if only in name]
    tasks = []
    for name in names:
        n_rows = len(INVARIANCES[name].rows)
        per_row = math.ceil(n_cases / len(INVARIANCES) / n_rows / INVARIANCES[name].size)
        tasks += [(name, row, per_row, seed) for row in range(n_rows)]
    outcomes: list[Outcome] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context, max_tasks_per_child=100) as pool:
        # Rows of all invariances take turns, so that a fault shows early.
        futures = [pool.submit(run_row, *task) for task in sorted(tasks, key=lambda task: task[1])]
        for future in as_completed(futures):
            outcomes.append(future.result())
            n_faults = sum(bool(each.fault) for each in outcomes)
            drawn = sum(each.n_cases for each in outcomes)
            show(f"{len(outcomes)}/{len(tasks)} rows, {drawn:,} cases, {n_faults} faults")
    return sum_up(outcomes, names)


def sum_up(outcomes: list[Outcome], names: list[str]) -> dict[str, Any]:
    """Return cases, comparisons and faults of every invariance; a known fault must be seen."""
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
    mended = [
        f"{each.invariance}: {each.what!r} no longer fails: remove it from KNOWN"
        for i, each in enumerate(KNOWN)
        if each.invariance in ("", *names) and not seen[i]
    ]
    faults = [each.fault for each in outcomes if each.fault] + mended
    return {"invariances": table, "faults": faults}
