"""Benchmarks that a page shows: ``python docs/measure benchmarks``, a quarter of an hour."""

import subprocess
import sys

from kept import HERE, ROOT, describe_measurement

FILE = HERE / "benchmarks.txt"
NAMES = ("graph", "large", "dask")


def write() -> None:
    """Run the benchmarks and store their output, even if a target is missed."""
    about = describe_measurement()
    command = [sys.executable, "-m", "benchmarks", *NAMES]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode > 1:
        raise SystemExit("a benchmark stopped with an error; nothing was written")
    lines = [f"{name}: {value}" for name, value in about.items()]
    FILE.write_text("\n".join(["python -m benchmarks " + " ".join(NAMES), *lines, done.stdout]))
