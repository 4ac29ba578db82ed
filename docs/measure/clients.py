"""Table of other libraries that work with the classifiers, from the records of ``tests/clients``.

``python docs/measure clients`` runs these tests and writes ``clients.json``, which is stored in the
repository. It needs the libraries of the extra ``clients``.
"""

import json
import os
import subprocess
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from kept import HERE, ROOT, describe_age, describe_measurement

FILE = HERE / "clients.json"
NAMES = {"bayesian": "Bayesian", "pooled": "pool", "classical": "classical", "": "one of them"}
# Libraries that are not tested, with the reason. The page describes a manual test of MLflow.
NOT_TRIED = {
    "dalex": "requires pandas 2",
    "mlflow": "requires 60 further packages; see below",
    "alibi": "requires TensorFlow",
    "torchcp": "requires PyTorch",
    "yellowbrick": "does not recognise classifiers of scikit-learn 1.9",
    "dice-ml": "requires XGBoost and LightGBM",
}


def write() -> None:
    """Run the tests and store their records."""
    about = describe_measurement()
    command = [sys.executable, "-m", "pytest", "-q", "-m", "client", ROOT / "tests" / "clients"]
    # check=False, because a library that fails is shown in the table too.
    subprocess.run(command, env=os.environ | {"CLIENTS_RECORD": str(FILE)}, check=False)
    records = json.loads(FILE.read_text())
    FILE.write_text(json.dumps({"measured": about, **records}, indent=1) + "\n")


def write_table() -> str:
    """Return a table of the cases: library, version, and classifiers that work or fail."""
    records = json.loads(FILE.read_text())["records"]
    case = itemgetter("library", "version", "tried")
    lines = ["| library | version | tried | works with | fails with |", "|---|---|---|---|---|"]
    for (library, version, tried), each in groupby(sorted(records, key=case), case):
        rows = list(each)
        good, bad = (
            ", ".join(
                dict.fromkeys(
                    NAMES[row["with"]] + (f" ({row['reason']})" if row["reason"] else "")
                    for row in rows
                    if row["works"] is works
                )
            )
            for works in (True, False)
        )
        lines.append(f"| {library} | {version} | {tried} | {good} | {bad} |")
    return "\n".join(lines) + "\n"


def run(out: Path) -> dict[str, str]:
    """Write the table and return the numbers of the text."""
    (out / "clients.md").write_text(write_table())
    not_tried = "; ".join(f"{name} ({why})" for name, why in NOT_TRIED.items())
    measured = json.loads(FILE.read_text())
    libraries = {row["library"] for row in measured["records"]}
    return {
        "clients_libraries": str(len(libraries)),
        "clients_python": measured["python"],
        "clients_measured": describe_age(FILE.name),
        "clients_not_tried": not_tried,
    }
