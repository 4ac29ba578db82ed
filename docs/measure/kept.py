"""Measurements that take too long for a build: kept in the repository with their commit.

``python docs/measure NAME`` makes one again. Each carries the commit that it was made at, the day
and the machine. The pages show its age: the number of commits to the measured code since then.
``python docs/measure/kept.py`` lists the ages and fails if one is above ``MAX_AGE``; the release
workflow runs it, ``make test`` does not.
"""

import datetime
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Commits. A smaller limit makes releases wait for measurements of up to an hour; a larger one lets
# the pages show numbers of code that is gone.
MAX_AGE = 50
_PREDICTIONS = tuple(f"src/bayesknn/{part}" for part in ("pooled", "predictive", "sureness"))
_FITS = tuple(
    f"src/bayesknn/{part}" for part in ("graph", "labels", "likelihood", "log_z", "posterior")
)
# The code that each measures.
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
    """Return the commit that is measured, the day and the machine.

    What is measured must be committed: the commit would name other code.
    """
    if git("status", "--porcelain", "--", "src", "benchmarks", "docs/measure/*.py"):
        raise SystemExit("commit what is to be measured first: git status shows changes")
    return {
        "commit": git("rev-parse", "HEAD"),
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {_processor()}",
    }


def read_stamp(name: str) -> tuple[str, str]:
    """Return the commit and the day that a kept measurement carries."""
    text = (HERE / name).read_text()
    stamps = [
        re.findall(rf"\b{word}\W+({form})\b", text)
        for word, form in (("commit", "[0-9a-f]{40}"), ("date", r"\d{4}-\d\d-\d\d"))
    ]
    if [len(found) for found in stamps] != [1, 1]:
        raise ValueError(f"{name} must carry one commit and one date; it carries {stamps}")
    return stamps[0][0], stamps[1][0]


def count_younger_commits(name: str) -> int | None:
    """Return the number of commits to the measured code since a kept measurement.

    None without the history, or if the history lacks the commit.
    """
    since = f"{read_stamp(name)[0]}..HEAD"
    try:
        return int(git("rev-list", "--count", since, "--", *CODE[name]))
    except (OSError, subprocess.CalledProcessError):
        return None


def describe_age(name: str) -> str:
    """Return commit, day and age of a kept measurement, as a phrase for the pages."""
    commit, day = read_stamp(name)
    age = count_younger_commits(name)
    since = "" if age is None else f", {age} commits to the measured code ago"
    return f"commit {commit[:12]} of {day}{since}"


def list_ages(most: int = MAX_AGE) -> bool:
    """Print the age of every kept measurement; return whether one is unknown or above the most."""
    is_old = False
    for name in CODE:
        age = count_younger_commits(name)
        is_old |= age is None or age > most
        print(f"{name}: {describe_age(name)}; allowed: {most}")
    return is_old


def git(*words: str) -> str:
    """Return what git answers."""
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"


if __name__ == "__main__":
    sys.exit(list_ages())
