"""Wrong statistics that the tests must notice, one slip each: ``python -m campaigns mutants``.

A mutant is a replacement in a copy of the source, which has to apply exactly once, and the tests
that are meant to fail of it. The copy brings the compiled kernels of the checkout along
(``bayesknn._jit`` knows by the sources which of them still hold), so that a mutant compiles what it
changed and no more. Before the first mutant all these tests must pass on an unchanged copy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaigns.mutant_list import MUTANTS, Mutant

ROOT = Path(__file__).parents[1]
_TIMEOUT = 900


def run(only: str | None = None, show: Callable[[str], None] = print) -> dict[str, Any]:
    """Try every mutant, or those whose name holds a text; return the survivors' names."""
    chosen = [mutant for mutant in MUTANTS if only is None or only in mutant.name]
    begin = time.monotonic()
    survivors: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        sound = copy_source(Path(place) / "sound")
        tests = sorted({test for mutant in chosen for test in mutant.tests})
        ended, told = run_tests(sound, tests)
        if ended != 0:
            raise SystemExit(f"the tests fail without a mutant:\n{told[-2000:]}")
        for number, mutant in enumerate(chosen, 1):
            source = copy_source(Path(place) / "mutant", sound)
            try:
                apply(mutant, source)
                ended, told = run_tests(source, mutant.tests)
            finally:
                shutil.rmtree(source.parent)
            if ended not in (0, 1, -1):
                raise SystemExit(f"{mutant.name}: pytest ended with {ended}:\n{told[-2000:]}")
            by = re.findall(r"^(?:FAILED|ERROR) (\S+)", told, re.MULTILINE)
            verdict = f"killed by {by[0]}" if by else "killed by time"
            if ended == 0:
                survivors.append(mutant.name)
                verdict = "SURVIVES"
            show(f"{number:3d}/{len(chosen)} {mutant.file}: {mutant.name}: {verdict}")
    show(f"survivors: {', '.join(survivors) or 'none'}")
    return {
        "mutants": len(chosen),
        "survivors": survivors,
        "folders": sorted({mutant.file.split("/")[0] for mutant in chosen}),
        "minutes": round((time.monotonic() - begin) / 60, 1),
    }


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


def run_tests(source: Path, tests: list[str] | tuple[str, ...]) -> tuple[int, str]:
    """Run tests of the checkout against a copy of the source; -1 if they take for ever."""
    environment = {**os.environ, "PYTHONPATH": str(source), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider",
               "-p", "campaigns.right_copy", *tests]  # fmt: skip
    try:
        ran = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
            timeout=_TIMEOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, ""
    return ran.returncode, ran.stdout + ran.stderr
