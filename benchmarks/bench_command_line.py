"""CPU times of commands, relative to the import of their main dependencies.

Each time is the shortest CPU time of several new processes. A busy machine makes both the command
and the imports slower, so that the target is a ratio of the two.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

_YARDSTICK = ("-c", "import sklearn.neighbors, pandas")
_REPEATS = 4
_FIT = """
import numpy as np
from bayesknn import PooledNeighborsClassifier
table = np.loadtxt("wide.csv", delimiter=",", skiprows=1)
PooledNeighborsClassifier(random_state=0).fit(table[:, :-1], table[:, -1])
"""
# The processes write bytecode, even if the shell forbids it, because all caches must be filled.
_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


def _seconds(arguments, folder):
    """Return the CPU time in seconds of a Python process, whatever its exit code."""
    command = [sys.executable, *arguments]
    before = os.times()
    subprocess.run(command, cwd=folder, env=_ENVIRONMENT, capture_output=True, check=False)
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def _write(path, n, p=2):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    points = rng.normal(size=(n, p)) + y[:, None]
    names = ",".join([*(f"x{j}" for j in range(p)), "y"])
    form = ["%.6f"] * p + ["%d"]
    np.savetxt(path, np.column_stack([points, y]), form, ",", header=names, comments="")


def run(report):
    report.section("Command line: seconds of one core in a fresh process, caches warm")
    fit = ("-m", "bayesknn", "fit", "t.csv", "--target", "y", "--force", "--out", "out")
    # Arguments of each command, and the largest allowed ratio of its time to that of the imports.
    cases = {
        "import bayesknn": (("-c", "import bayesknn"), 0.3),
        "import bayesknn; BayesianKNeighborsClassifier().fit": (
            ("-c", "import bayesknn; bayesknn.BayesianKNeighborsClassifier().fit"), 2.0,
        ),
        "bayesknn --help": (("-m", "bayesknn", "--help"), 0.6),
        "bayesknn fit, 56 rows": (fit, 9.0),
        "bayesknn fit, 56 rows, --model coherent": ((*fit, "--model", "coherent"), 14.0),
        "bayesknn fit, no such file": (
            ("-m", "bayesknn", "fit", "none.csv", "--target", "y", "--out", "none"), 0.6,
        ),
        "bayesknn predict, 246 rows": (
            ("-m", "bayesknn", "predict", "out", "new.csv", "--out", "p.csv", "--force"), 4.0,
        ),
    }  # fmt: skip
    wide = ("fit", "wide.csv", "--target", "y", "--no-compare", "--force", "--out", "wide")
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "wide.csv", 1_000, 10)
        _write(Path(folder) / "t.csv", 56)
        _write(Path(folder) / "new.csv", 246)
        commands = {"yardstick": _YARDSTICK, "wide": ("-m", "bayesknn", *wide)}
        commands |= {"python": ("-c", _FIT)} | {what: words for what, (words, _) in cases.items()}
        best = dict.fromkeys(commands, float("inf"))
        for repeat in range(_REPEATS + 1):
            for what, words in commands.items():
                seconds = _seconds(words, folder)
                if repeat:  # The first run fills the caches.
                    best[what] = min(best[what], seconds)
    yardstick = best["yardstick"]
    report.line(
        f"bayesknn fit --no-compare, 1,000 x 10 ({best['wide']:.2f} s)",
        best["wide"] / best["python"],
        at_most=3.0,
        against=f"the pool's fit of these rows in Python, imports included: {best['python']:.2f} s",
    )
    for what, (_, at_most) in cases.items():
        against = f"import sklearn.neighbors, pandas: {yardstick:.2f} s; this: {best[what]:.2f} s"
        report.line(what, best[what] / yardstick, at_most=at_most, against=against)
