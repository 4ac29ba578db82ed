"""How long a fit takes at the defaults, for the page of those who have a deadline."""

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
    # Beyond, it takes the minute that it allows itself.
    "`BayesianKNeighborsClassifier()`": (BayesianKNeighborsClassifier(random_state=0, n_jobs=1), 2),
}
SIZES = (250, 1_000, 5_000)


def run(out: Path) -> dict[str, str]:
    """Write the table of times."""
    lines = [
        "| " + " | ".join(["", *(f"{n:,} rows" for n in SIZES)]) + " |",
        "|---|" + "---:|" * len(SIZES),
    ]
    for name, (method, n_sizes) in METHODS.items():
        cells = [""] * len(SIZES)
        for at, n in enumerate(SIZES[:n_sizes]):
            X, y = RIPLEY.sample(n, np.random.default_rng(0))
            if at == 0:
                method.fit(X, y)  # compiles
            start = time.process_time()
            method.fit(X, y)
            cells[at] = f"{time.process_time() - start:.2g}"
        lines.append(f"| {name} | {' | '.join(cells)} |")
    (out / "start_times.md").write_text("\n".join(lines) + "\n")
    return {}
