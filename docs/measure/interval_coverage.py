"""Coverage of intervals, by classifier: ``python docs/measure interval_coverage``, ten minutes.

Writes ``interval_coverage.json``, which is kept in the repository. Its ``before`` was measured on
the same draws by the code that did not divide pairs by their correlation (3c75d23):
``PYTHONPATH=that/src python docs/measure/interval_coverage.py before``.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from kept import HERE, describe_age, describe_measurement
from mixtures import FLAT, FRESH, QUADRATIC, RING, RIPLEY, SINE, TEN_COLUMNS, UNSEEN, board

FILE = HERE / "interval_coverage.json"
# Those that constants were chosen on.
SEEN = {
    "Ripley's": RIPLEY,
    "sine in one column": SINE,
    "2 × 2 board": board(2),
    "two normal distributions in ten columns": TEN_COLUMNS,
    "class 1 outside, class 0 inside, ten columns": QUADRATIC,
    "P = 1/2 everywhere": FLAT,
    "4 × 4 board": board(4),
    "8 × 8 board": board(8),
    "ring around a core": RING,
}
TABLES = {
    "coverage_seen.md": SEEN,
    "coverage_unseen.md": UNSEEN,
    "coverage_fresh.md": FRESH,
}
KEYS = "now", "before"
MODELS = ("pseudo", "holmes-adams", "coherent", "pool")
SIZES = (250, 1000)
N_SETS, N_NEW = 4, 300
# Coverage below the level by more than this is a miss.
LEVEL, MISS = 0.95, 0.05


def write(key: str = "now") -> None:
    """Measure every distribution, size and classifier."""
    stored = json.loads(FILE.read_text())
    if key == "now":
        stored["measured"] = describe_measurement()
    stored[key] = {
        name: {f"{model}, {n}": _measure(law, model, n) for n in SIZES for model in MODELS}
        for name, law in (SEEN | UNSEEN | FRESH).items()
    }
    FILE.write_text(json.dumps(stored, indent=1) + "\n")


def run(out: Path) -> dict[str, str]:
    """Write the tables, and what the text says of them."""
    stored = json.loads(FILE.read_text())
    columns = [f"{model}, {n}" for n in SIZES for model in MODELS]
    head = " | ".join(columns)
    for path, laws in TABLES.items():
        lines = [f"| distribution | {head} |", "|---|" + "---:|" * len(columns)]
        for law in laws:
            now, before = stored["now"][law], stored["before"][law]
            cells = [_format(now[each], before[each]) for each in columns]
            lines.append(f"| {law} | {' | '.join(cells)} |")
        for words, count in (("mean", _mean), ("missed", _count_missed)):
            cells = [
                _format(*(count(stored[key][law][each] for law in laws) for key in KEYS))
                for each in columns
            ]
            lines.append(f"| **{words}** | {' | '.join(cells)} |")
        (out / path).write_text("\n".join(lines) + "\n")
    missed = {
        (key, laws is FRESH): sum(
            _count_missed(stored[key][law][each] for each in columns)[0] for law in laws
        )
        for key in KEYS
        for laws in (UNSEEN, FRESH)
    }
    wider = [
        stored["now"][law][each][1] - stored["before"][law][each][1]
        for law in SEEN
        for each in columns
    ]
    worst = min(stored["now"][law][each][0] for law in UNSEEN | FRESH for each in columns)
    return {
        "interval_coverage_measured": describe_age(FILE.name),
        "missed_unseen": str(missed["now", False]),
        "missed_unseen_before": str(missed["before", False]),
        "missed_unseen_of": str(len(columns) * len(UNSEEN)),
        "missed_fresh": str(missed["now", True]),
        "missed_fresh_before": str(missed["before", True]),
        "missed_fresh_of": str(len(columns) * len(FRESH)),
        "unseen_laws": str(len(UNSEEN | FRESH)),
        "unseen_sets": str(N_SETS),
        "unseen_new": str(N_NEW),
        "seen_wider": f"{np.mean(wider):.3f}",
        "unseen_worst": f"{worst:.2f}",
    }


def write_case() -> str:
    """Return the number of cases in which intervals cover too little, as an item of Markdown."""
    stored = json.loads(FILE.read_text())["now"]
    cells = [cell for law in FRESH for cell in stored[law].values()]
    (missed,) = _count_missed(cells)
    return (
        f"- **Intervals are empirical,** without a guarantee. On {len(FRESH)} distributions with "
        "known probabilities, on which no constant was chosen, 95 % intervals for the true "
        f"probability covered less than {100 * (LEVEL - MISS):.0f} % in {missed} of {len(cells)} "
        "cases (a case is a distribution, a number of rows and one of four classifiers, the pool "
        "among them). No interval that is valid for every distribution can be narrow where a "
        "column is continuous ([Barber 2020; Lee and Barber 2021](docs/intervals.md))."
    )


def _measure(law, model: str, n: int) -> list[float]:
    """Return coverage and width of the intervals of the truly likeliest class at new points."""
    covered, width = [], []
    for seed in range(N_SETS):
        rng = np.random.default_rng([seed, n])
        sizes = np.zeros(1)
        while sizes.min() < 2:
            X, y = law.sample(n, rng)
            sizes = np.bincount(y, minlength=law.probabilities(X[:1]).shape[1])
        new, _ = law.sample(N_NEW, rng)
        if model == "pool":
            clf = PooledNeighborsClassifier(random_state=seed)
        else:
            # The same K before and after.
            k_max = max(int(sizes.min()), n // (2 * len(sizes)))
            clf = BayesianKNeighborsClassifier(model, max_neighbors=k_max, random_state=seed)
        truth = law.probabilities(new)
        likeliest = np.arange(N_NEW), truth.argmax(axis=1)
        low, high = clf.fit(X, y).predict_interval(new, LEVEL)[likeliest].T
        covered.append(np.mean((low <= truth[likeliest]) & (truth[likeliest] <= high)))
        width.append(np.mean(high - low))
    return [round(float(np.mean(each)), 4) for each in (covered, width)]


def _format(now: list, before: list) -> str:
    """Put numbers beside those of before, in brackets."""
    return " ".join(
        f"{a:.2f} ({b:.2f})" if isinstance(a, float) else f"{a} ({b})"
        for a, b in zip(now, before, strict=True)
    )


def _mean(cells: Iterable[list[float]]) -> list[float]:
    return np.mean(list(cells), axis=0).tolist()


def _count_missed(cells: Iterable[list[float]]) -> list[int]:
    return [sum(covered < LEVEL - MISS for covered, _ in cells)]


if __name__ == "__main__":
    write(*sys.argv[1:])
