"""Ages of the measurements that are stored in the repository, because they take too long.

``python docs/measure NAME`` repeats a measurement. Each file contains the commit that was measured,
the date and the machine. The age of a measurement is the number of commits to the measured code
since then; the pages show it. ``python docs/measure/kept.py`` lists the ages and fails if one
exceeds ``MAX_AGE``. It is part of the release workflow, not of ``make test``.
"""

import datetime
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Largest age of a measurement in a release, in commits to the measured code. A smaller limit makes
# releases wait for measurements of up to an hour; with a larger one the pages show numbers of code
# that no longer exists.
MAX_AGE = 50
_PREDICTIONS = tuple(f"src/bayesknn/{part}" for part in ("pooled", "predictive", "sureness"))
_FITS = tuple(
    f"src/bayesknn/{part}" for part in ("graph", "labels", "likelihood", "log_z", "posterior")
)
# Paths of the code that each file measures.
CODE = {
    "benchmarks.txt": (*_FITS, "src/bayesknn/distributed"),
    "clients.json": ("src/bayesknn/pooled", "src/bayesknn/predictive", "tests/clients"),
    "first_use.json": (*_FITS, *_PREDICTIONS),
    "groups.json": (*_FITS, *_PREDICTIONS),
    "interval_coverage.json": _PREDICTIONS,
    "left_out.json": ("src/bayesknn/pooled",),
    "prediction.json": _PREDICTIONS,
    "scaling.json": (*_FITS, "src/bayesknn/predictive"),
    "verdicts.json": (*_FITS, "src/bayesknn/paper"),
}


def describe_measurement() -> dict[str, str]:
    """Return the current commit, the date and the machine.

    The measured code must be committed, or the commit would not identify it.
    """
    if git("status", "--porcelain", "--", "src", "benchmarks", "docs/measure/*.py"):
        raise SystemExit("the code to be measured has uncommitted changes; commit them first")
    return {
        "commit": git("rev-parse", "HEAD"),
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {_processor()}",
    }


def read_stamp(name: str) -> tuple[str, str]:
    """Return the commit and the date in the file of a stored measurement."""
    text = (HERE / name).read_text()
    stamps = [
        re.findall(rf"\b{word}\W+({form})\b", text)
        for word, form in (("commit", "[0-9a-f]{40}"), ("date", r"\d{4}-\d\d-\d\d"))
    ]
    if [len(matches) for matches in stamps] != [1, 1]:
        raise ValueError(f"{name} must contain one commit and one date, got {stamps}")
    return stamps[0][0], stamps[1][0]


def count_younger_commits(name: str) -> int | None:
    """Return the number of commits to the measured code since a stored measurement.

    It is None if git has no history or the history does not contain the commit.
    """
    since = f"{read_stamp(name)[0]}..HEAD"
    try:
        return int(git("rev-list", "--count", since, "--", *CODE[name]))
    except (OSError, subprocess.CalledProcessError):
        return None


def describe_age(name: str) -> str:
    """Return commit, date and age of a stored measurement, as text for the pages."""
    commit, day = read_stamp(name)
    age = count_younger_commits(name)
    since = "" if age is None else f", {age} commits to the measured code ago"
    return f"commit {commit[:12]} of {day}{since}"


def list_ages(most: int = MAX_AGE) -> bool:
    """Print the ages of all stored measurements; return whether one is unknown or too old."""
    is_old = False
    for name in CODE:
        age = count_younger_commits(name)
        is_old |= age is None or age > most
        print(f"{name}: {describe_age(name)}; allowed: {most}")
    return is_old


def git(*words: str) -> str:
    """Return the output of a git command."""
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"


if __name__ == "__main__":
    sys.exit(list_ages())
