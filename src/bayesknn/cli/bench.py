"""``bayesknn bench``: the speed targets of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from bayesknn.cli.outcome import Refusal


@click.command
@click.argument("names", nargs=-1)
def bench(names: tuple[str, ...]) -> None:
    """Measure every speed target, or those of the benchmarks named (source checkout only)."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise Refusal(
            "the benchmarks come with the source, not with the installed package; "
            "run this command from a checkout"
        )
    command = [sys.executable, "-m", "benchmarks", *names]
    sys.exit(subprocess.run(command, cwd=root, check=False).returncode)
