"""Mutants, each with one statistical error that tests must detect: ``python -m campaigns mutants``.

A mutant is a replacement of text in a copy of the source, with the tests that must fail because of
it. The text must occur exactly once, or the campaign stops. The copy includes the cached kernels,
except those that the mutant makes stale, so that only these are recompiled. Tests run in forked
children of a process that has imported the dependencies but not the package. They must pass on the
original source before a mutant is tried.
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
# Longest time of the tests of a mutant in seconds; a mutant that takes longer counts as killed.
_TIMEOUT = 900
_HEAVY = ("numba", "scipy.stats", "scipy.optimize", "sklearn.base", "pandas", "xarray", "joblib",
          "pytest", "arviz_stats", "h5netcdf")  # fmt: skip


def run(only: str | None = None, show: Callable[[str], None] = print) -> dict[str, Any]:
    """Try all mutants, or those whose name contains ``only``.

    Returns
    -------
    dict of str to list of str
        Names of the mutants under ``killed`` and ``survivors``.
    """
    forget_stale_kernels(_PACKAGE)
    for name in _HEAVY:
        importlib.import_module(name)
    chosen = [mutant for mutant in MUTANTS if only is None or only in mutant.name]
    killed: list[str] = []
    survivors: list[str] = []
    sound: set[tuple[str, ...]] = set()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for mutant in chosen:
            if mutant.tests not in sound:
                code, output = run_tests(ROOT / "src", mutant.tests)
                if code != 0:
                    raise SystemExit(f"{mutant.tests} fail without a mutant:\n{output[-2000:]}")
                sound.add(mutant.tests)
            source = copy_source(Path(folder) / "mutant")
            try:
                apply(mutant, source)
                code, output = run_tests(source, mutant.tests)
            finally:
                shutil.rmtree(source.parent)
            if code not in (0, 1, -signal.SIGALRM):
                raise SystemExit(f"{mutant.name}: pytest ended with {code}:\n{output[-2000:]}")
            failed = re.findall(r"^FAILED (\S+)", output, re.MULTILINE)
            verdict = f"killed by {failed[0]}" if failed else "killed by time"
            if code == 0:
                verdict = "SURVIVES"
            (survivors if code == 0 else killed).append(mutant.name)
            n_tried = len(killed) + len(survivors)
            show(f"{n_tried:3d}/{len(chosen)} {mutant.file}: {mutant.name}: {verdict}")
    show(f"survivors: {', '.join(survivors) or 'none'}")
    return {"killed": killed, "survivors": survivors}


def copy_source(folder: Path, source: Path = ROOT / "src") -> Path:
    """Copy the package and its cached kernels to a folder, and return the path of the copy.

    The files are hard links. To change one, remove it and write a new one.
    """
    shutil.copytree(source, folder / "src", copy_function=os.link)
    return folder / "src"


def apply(mutant: Mutant, source: Path) -> None:
    """Apply the replacement of a mutant to a copy of the source."""
    path = source / "bayesknn" / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(
            f"{mutant.name}: {mutant.old!r} must occur once in {mutant.file}, "
            f"got {text.count(mutant.old)} times"
        )
    path.unlink()
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    forget_stale_kernels(source / "bayesknn")


def run_tests(source: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """Run tests of the checkout in a forked child that imports a copy of the source.

    Returns the exit code of pytest, or minus the signal that ended it, and its output.
    """
    with tempfile.TemporaryFile("w+") as log:
        child = os.fork()
        if not child:
            _run_pytest(source, tests, log.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        log.seek(0)
        return code, log.read()


def _run_pytest(source: Path, tests: tuple[str, ...], log: int) -> None:
    """Run pytest in this process, with output to a file descriptor, and end the process."""
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
