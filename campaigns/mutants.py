"""Wrong statistics that the tests must notice, one slip each: ``python -m campaigns mutants``.

A mutant is a replacement in a copy of the source, which has to apply exactly once, and the tests
that are meant to fail of it. The copy brings the compiled kernels of the checkout along, but for
those that the mutant made stale, so that it compiles what it changed and no more. Tests run in
children of a process that has imported all but the package. They must pass before a mutant is made,
and a mutant that can no longer be made ends the campaign.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaigns.mutant_list import MUTANTS, Mutant
from campaigns.stale_kernels import forget_stale_kernels

ROOT = Path(__file__).parents[1]
_PACKAGE = ROOT / "src" / "bayesknn"
_TIMEOUT = 900
_HEAVY = ("numba", "scipy.stats", "scipy.optimize", "sklearn.base", "pandas", "xarray", "joblib",
          "pytest", "arviz_stats", "h5netcdf")  # fmt: skip


def run(only: str | None = None, show: Callable[[str], None] = print) -> dict[str, Any]:
    """Try every mutant, or those whose name holds a text; return the survivors' names."""
    forget_stale_kernels(_PACKAGE)
    for name in _HEAVY:
        importlib.import_module(name)
    chosen = [mutant for mutant in MUTANTS if only is None or only in mutant.name]
    killed: list[str] = []
    survivors: list[str] = []
    sound: set[tuple[str, ...]] = set()
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        for mutant in chosen:
            if mutant.tests not in sound:
                ended, told = run_tests(ROOT / "src", mutant.tests)
                if ended != 0:
                    raise SystemExit(f"{mutant.tests} fail without a mutant:\n{told[-2000:]}")
                sound.add(mutant.tests)
            source = copy_source(Path(place) / "mutant")
            try:
                apply(mutant, source)
                ended, told = run_tests(source, mutant.tests)
            finally:
                shutil.rmtree(source.parent)
            if ended not in (0, 1, -signal.SIGALRM):
                raise SystemExit(f"{mutant.name}: pytest ended with {ended}:\n{told[-2000:]}")
            by = re.findall(r"^FAILED (\S+)", told, re.MULTILINE)
            verdict = f"killed by {by[0]}" if by else "killed by time"
            if ended == 0:
                verdict = "SURVIVES"
            (survivors if ended == 0 else killed).append(mutant.name)
            n_tried = len(killed) + len(survivors)
            show(f"{n_tried:3d}/{len(chosen)} {mutant.file}: {mutant.name}: {verdict}")
    show(f"survivors: {', '.join(survivors) or 'none'}")
    return {"killed": killed, "survivors": survivors}


def copy_source(place: Path, source: Path = ROOT / "src") -> Path:
    """Copy the package and its compiled kernels, as links: whoever writes replaces the file."""
    shutil.copytree(source, place / "src", copy_function=os.link)
    return place / "src"


def apply(mutant: Mutant, source: Path) -> None:
    """Make the replacement in a copy of the source."""
    path = source / "bayesknn" / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(
            f"{mutant.name}: {mutant.old!r} stands {text.count(mutant.old)} times in {mutant.file}"
        )
    path.unlink()
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    forget_stale_kernels(source / "bayesknn")


def run_tests(source: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """Run tests of the checkout against a copy of the source, in a child.

    Returns the exit code of pytest, or minus the signal that ended it, and what it printed.
    """
    with tempfile.TemporaryFile("w+") as log:
        child = os.fork()
        if not child:
            _run_pytest(source, tests, log.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        log.seek(0)
        return code, log.read()


def _run_pytest(source: Path, tests: tuple[str, ...], log: int) -> None:
    """Never return."""
    code = 99
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        signal.alarm(_TIMEOUT)
        os.chdir(ROOT)
        sys.path.insert(0, str(source))
        import pytest

        import bayesknn

        assert bayesknn.__file__.startswith(str(source)), bayesknn.__file__
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)
