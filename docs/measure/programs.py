"""Cost of a saved model in a program: latency of one row, time to load, file size and memory."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

MODELS = {
    "`PooledNeighborsClassifier()`": "PooledNeighborsClassifier(random_state=0)",
    '`BayesianKNeighborsClassifier("pseudo")`': (
        'BayesianKNeighborsClassifier("pseudo", random_state=0)'
    ),
    "`BayesianKNeighborsClassifier()`": "BayesianKNeighborsClassifier(random_state=0)",
}
N_ROWS, N_REPEATS = 300, 30

_FIT = """
from sklearn.datasets import load_breast_cancer
from skops.io import dump
from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
X, y = load_breast_cancer(return_X_y=True)
clf = {model}.fit(X[:{n}], y[:{n}])
clf.predict_interval(X[{n}:]), clf.predict_proba(X[{n}:])  # compiles the functions of prediction
dump(clf, {file!r})
"""
_SERVE = """
import json, pathlib, statistics, time
from sklearn.datasets import load_breast_cancer
import bayesknn
from skops.io import get_untrusted_types, load
rows = load_breast_cancer().data[{n}:]
start = time.process_time()
clf = load({file!r}, trusted=get_untrusted_types(file={file!r}))
clf.predict_proba(rows[:1]), clf.predict_interval(rows[:1])
seconds = dict(load=time.process_time() - start)
for name in ("predict_proba", "predict_interval"):
    times = []
    for row in rows[:{repeats}]:
        start = time.process_time()
        getattr(clf, name)(row[None])
        times.append(time.process_time() - start)
    seconds[name] = statistics.median(times)
start = time.process_time()
clf.predict_proba(rows)
seconds["batch"] = (time.process_time() - start) / len(rows)
lines = pathlib.Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(json.dumps(seconds | dict(peak=peak / 1024)))
"""


def run(out: Path) -> dict[str, str]:
    """Write the table with a saved model of each classifier."""
    lines = [
        "| classifier | file, MB | first prediction in a new process, CPU s | one row: "
        "`predict_proba`, ms | `predict_interval`, ms | a row of a batch, ms | peak memory, MB |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.skops"
        for name, model in MODELS.items():
            parts = {"model": model, "n": N_ROWS, "file": str(file), "repeats": N_REPEATS}
            _run(_FIT.format(**parts))
            served = json.loads(_run(_SERVE.format(**parts)))
            lines.append(
                f"| {name} | {file.stat().st_size / 1e6:.2f} | {served['load']:.2f} "
                f"| {1e3 * served['predict_proba']:.1f} | {1e3 * served['predict_interval']:.1f} "
                f"| {1e3 * served['batch']:.2f} | {served['peak']:.0f} |"
            )
    (out / "programs.md").write_text("\n".join(lines) + "\n")
    return {"programs_rows": str(N_ROWS), "programs_repeats": str(N_REPEATS)}


def _run(code: str) -> str:
    """Run Python code in a separate process and return its output."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout
