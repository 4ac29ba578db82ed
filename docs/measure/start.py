"""CPU times of fits with default settings, for the page that helps to choose a method."""

import time
from pathlib import Path

import numpy as np

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from mixtures import RIPLEY

METHODS = {
    "`PooledNeighborsClassifier()`": (PooledNeighborsClassifier(random_state=0, n_jobs=1), 3),
    '`BayesianKNeighborsClassifier("pseudo")`': (
        BayesianKNeighborsClassifier("pseudo", random_state=0, n_jobs=1),
        3,
    ),
    # The largest size is omitted, because the fit then uses its whole limit of about a minute.
    "`BayesianKNeighborsClassifier()`": (BayesianKNeighborsClassifier(random_state=0, n_jobs=1), 2),
}
SIZES = (250, 1_000, 5_000)


def run(out: Path) -> dict[str, str]:
    """Write the table of CPU times in seconds."""
    lines = [
        "| " + " | ".join(["", *(f"{n:,} rows" for n in SIZES)]) + " |",
        "|---|" + "---:|" * len(SIZES),
    ]
    for name, (method, n_sizes) in METHODS.items():
        cells = [""] * len(SIZES)
        for at, n in enumerate(SIZES[:n_sizes]):
            X, y = RIPLEY.sample(n, np.random.default_rng(0))
            if at == 0:
                method.fit(X, y)  # The first fit compiles.
            start = time.process_time()
            method.fit(X, y)
            cells[at] = f"{time.process_time() - start:.2g}"
        lines.append(f"| {name} | {' | '.join(cells)} |")
    (out / "start_times.md").write_text("\n".join(lines) + "\n")
    return {}
