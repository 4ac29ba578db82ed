"""Growth of time and memory with n: ``python docs/measure scaling``, an hour.

It writes ``scaling.json``, which is stored in the repository. Each case is measured in a separate
process, with one thread and compiled kernels in the cache. Times are CPU times, which depend little
on other work of the machine.
"""

import itertools
import json
import subprocess
import sys
from pathlib import Path

from kept import HERE, describe_age, describe_measurement

FILE = HERE / "scaling.json"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
LIKELIHOODS = ("pseudo", "holmes-adams", "coherent")
MAX_NEIGHBORS = 50
N_NEW = 10_000
DIMENSIONS = (2, 10)

_ONE = """
import json, pathlib, sys, time
import numpy as np
from bayesknn import BayesianKNeighborsClassifier
sys.path.insert(0, {here!r})
from mixtures import RIPLEY, Mixture

CLOUDS = Mixture(np.random.default_rng(0).normal(0, 2, size=(2, 5, {p})).tolist(), 1.0)

def fit(n, m):
    rng = np.random.default_rng(0)
    distribution = RIPLEY if {p} == 2 else CLOUDS
    X, y = distribution.sample(n, rng)
    new, _ = distribution.sample(m, rng)
    start = time.process_time()
    clf = BayesianKNeighborsClassifier(
        {likelihood!r}, max_neighbors={max_neighbors}, n_jobs=1, random_state=0
    ).fit(X, y)
    fitted = time.process_time()
    clf.predict_proba(new)
    return clf, fitted - start, time.process_time() - fitted

fit(300, 10)
clf, fit_seconds, predict_seconds = fit({n}, {m})
lines = pathlib.Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(json.dumps(dict(
    likelihood={likelihood!r}, n={n}, p={p}, k_max=len(clf.k_values_),
    fit_seconds=fit_seconds, predict_seconds=predict_seconds, peak_megabytes=peak / 1024,
    beta_mean=clf.beta_mean_, k_mean=float(clf.k_values_ @ clf.k_probabilities_),
)))
"""


def measure(likelihood: str, n: int, p: int) -> dict:
    """Return times, peak memory and posterior means of one case, run in a separate process."""
    code = _ONE.format(
        here=str(Path(__file__).parent),
        likelihood=likelihood,
        max_neighbors=MAX_NEIGHBORS,
        n=n,
        p=p,
        m=N_NEW,
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def write() -> None:
    """Measure all likelihoods, sizes and numbers of columns, and store the results."""
    about = describe_measurement()
    rows = []
    for case in itertools.product(LIKELIHOODS, SIZES, DIMENSIONS):
        rows.append(measure(*case))
        print(rows[-1], flush=True)
    FILE.write_text(json.dumps({"measured": about, "rows": rows}, indent=1) + "\n")


def run(out: Path) -> dict[str, str]:
    """Write the table of the stored results and return the numbers of the text."""
    kept = json.loads(FILE.read_text())
    lines = [
        "| likelihood | n | p | E k | fit, CPU s | 10,000 predictions, CPU s | peak memory, MB |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['likelihood']} | {row['n']:,} | {row['p']} | {row['k_mean']:,.0f} "
        f"| {row['fit_seconds']:.3g} | {row['predict_seconds']:.2g} "
        f"| {row['peak_megabytes']:,.0f} |"
        for row in kept["rows"]
    ]
    (out / "scaling.md").write_text("\n".join(lines) + "\n")
    return {
        "scaling_machine": kept["measured"]["machine"],
        "scaling_measured": describe_age(FILE.name),
        "scaling_k": str(MAX_NEIGHBORS),
    }
