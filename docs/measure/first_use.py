"""CPU times of a first fit, of a later fit and of the command.

``python docs/measure first_use`` writes ``first_use.json``, which is stored in the repository. It
takes about three minutes.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer

from kept import HERE, describe_age, describe_measurement

FILE = HERE / "first_use.json"
N_ROWS = 300
_DATA = "from sklearn.datasets import load_breast_cancer as load; X, y = load(return_X_y=True)"
_FITS = {
    "paper": (
        "from bayesknn.datasets import load_ripley; from bayesknn.paper import as_published; "
        "data = load_ripley(); "
        "as_published(data.y_train, random_state=0, n_jobs=1).fit(data.X_train, data.y_train)"
    ),
    "pool": (
        f"{_DATA}; from bayesknn import PooledNeighborsClassifier; "
        "PooledNeighborsClassifier(random_state=0, n_jobs=1)."
        f"fit(X[:{N_ROWS}], y[:{N_ROWS}])"
    ),
}


def write() -> None:
    """Measure each fit in two new processes, the first with an empty cache, and the commands."""
    seconds = {}
    with tempfile.TemporaryDirectory() as name:
        folder, environment = Path(name), dict(os.environ, OMP_NUM_THREADS="1")
        for fit, code in _FITS.items():
            environment["NUMBA_CACHE_DIR"] = str(folder / fit)
            for time in ("first", "later"):
                seconds[f"{fit}_{time}"] = _time([sys.executable, "-c", code], environment)
        frame = load_breast_cancer(as_frame=True).frame
        frame[:N_ROWS].to_csv(folder / "train.csv", index=False)
        frame[N_ROWS:].to_csv(folder / "new.csv", index=False)
        fit = ["-m", "bayesknn", "fit", "train.csv", "--target", "target", "--test", "new.csv"]
        fit = [sys.executable, *fit, "--quiet", "--jobs", "1", "--out"]
        demo = [sys.executable, "-m", "bayesknn", "demo", "--quiet"]
        environment["NUMBA_CACHE_DIR"] = str(folder / "commands")
        seconds["demo_first"] = _time(demo, environment, folder)
        seconds["demo_later"] = _time(demo, environment, folder)
        _time([*fit, "warm"], environment, folder)
        seconds["command"] = _time([*fit, "result"], environment, folder)
        seconds["command_alone"] = _time([*fit, "alone", "--no-compare"], environment, folder)
    rounded = {name: round(each, 2) for name, each in seconds.items()}
    stored = {"measured": describe_measurement(), "seconds": rounded}
    FILE.write_text(json.dumps(stored, indent=1) + "\n")


def read() -> dict[str, float]:
    """Return the CPU time of each measurement in seconds."""
    return json.loads(FILE.read_text())["seconds"]


def run(_out: Path) -> dict[str, str]:
    """Return the differences in CPU time between a first and a later fit, for the pages."""
    seconds = read()
    paper, pool = (seconds[f"{fit}_first"] - seconds[f"{fit}_later"] for fit in _FITS)
    return {
        "first_use_paper": f"{paper:.0f}",
        "first_use_pool": f"{pool:.0f}",
        "first_use_measured": describe_age(FILE.name),
    }


def _time(command: list[str], environment: dict[str, str], folder: Path | None = None) -> float:
    """Run a command and return the CPU time of its processes in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
