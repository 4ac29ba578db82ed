"""Measurements that take too long for a build: kept in the repository with their commit.

``python docs/measure NAME`` makes one again. Each carries the commit that it was made at, the day
and the machine; a test fails when the code that it measures is more than ``MAX_AGE`` commits
younger.
"""

import datetime
import os
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MAX_AGE = 50
_PREDICTIONS = ("src/bayesknn/pooled", "src/bayesknn/predictive")
_FITS = tuple(
    f"src/bayesknn/{part}" for part in ("graph", "labels", "likelihood", "log_z", "posterior")
)
# The code that each measures.
CODE = {
    "benchmarks.txt": (*_FITS, "src/bayesknn/distributed"),
    "interval_coverage.json": _PREDICTIONS,
    "prediction.json": _PREDICTIONS,
    "scaling.json": (*_FITS, "src/bayesknn/predictive"),
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


def read_commit(name: str) -> str:
    """Return the commit that a kept measurement carries."""
    stamps = re.findall(r"\bcommit\W+([0-9a-f]{40})\b", (HERE / name).read_text())
    if len(stamps) != 1:
        raise ValueError(f"{name} must carry one commit, and carries {len(stamps)}")
    return stamps[0]


def count_younger_commits(name: str) -> int:
    """Count the commits since a kept measurement to the code that it measures."""
    return int(git("rev-list", "--count", f"{read_commit(name)}..HEAD", "--", *CODE[name]))


def git(*words: str) -> str:
    """Return what git answers."""
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"
