"""What a person waits for at the command line, beside the imports that no fit can do without.

Seconds of processor time of a fresh process, the fastest of several: a busy machine makes them
longer, and the yardstick as well, which is why the ratio stands beside them.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

_YARDSTICK = ("-c", "import sklearn.neighbors, pandas")
_REPEATS = 4
# Python's own cache is one of those that are warm, whatever the shell says.
_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


def _seconds(arguments, folder):
    """Processor time of a Python process; a file that is not there is an error, as it should be."""
    command = [sys.executable, *arguments]
    before = os.times()
    subprocess.run(command, cwd=folder, env=_ENVIRONMENT, capture_output=True, check=False)
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def _write(path, n):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    points = rng.normal(size=(n, 2)) + y[:, None]
    np.savetxt(
        path, np.column_stack([points, y]), ["%.6f", "%.6f", "%d"], ",", header="x,z,y", comments=""
    )


def run(report):
    report.section("Command line: seconds of one core in a fresh process, caches warm")
    fit = ("-m", "bayesknn", "fit", "t.csv", "--target", "y", "--force", "--out", "out")
    # With how many times the yardstick's time each may take.
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
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "t.csv", 56)
        _write(Path(folder) / "new.csv", 246)
        commands = {"yardstick": _YARDSTICK} | {what: words for what, (words, _) in cases.items()}
        best = dict.fromkeys(commands, float("inf"))
        for repeat in range(_REPEATS + 1):
            for what, words in commands.items():
                seconds = _seconds(words, folder)
                if repeat:  # the first fills the caches
                    best[what] = min(best[what], seconds)
    yardstick = best["yardstick"]
    for what, (_, at_most) in cases.items():
        against = f"import sklearn.neighbors, pandas: {yardstick:.2f} s; this: {best[what]:.2f} s"
        report.line(what, best[what] / yardstick, at_most=at_most, against=against)
