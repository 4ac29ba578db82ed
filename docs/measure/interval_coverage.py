"""Coverage of intervals of all classifiers: ``python docs/measure interval_coverage``, ten minutes.

It writes ``interval_coverage.json``, which is stored in the repository. Its ``before`` was measured
on the same draws with commit 3c75d23, which did not divide pairs by their correlation:
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
# Distributions on which constants of the intervals were chosen.
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
# Level of the intervals, and the shortfall of coverage above which a case counts as missed. A
# smaller shortfall would count chance deviations in 1,200 points.
LEVEL, MISS = 0.95, 0.05


def write(key: str = "now") -> None:
    """Measure all distributions, sizes and classifiers."""
    stored = json.loads(FILE.read_text())
    if key == "now":
        stored["measured"] = describe_measurement()
    stored[key] = {
        name: {f"{model}, {n}": _measure(distribution, model, n) for n in SIZES for model in MODELS}
        for name, distribution in (SEEN | UNSEEN | FRESH).items()
    }
    FILE.write_text(json.dumps(stored, indent=1) + "\n")


def run(out: Path) -> dict[str, str]:
    """Write the tables and return the numbers of the text."""
    stored = json.loads(FILE.read_text())
    columns = [f"{model}, {n}" for n in SIZES for model in MODELS]
    head = " | ".join(columns)
    for path, names in TABLES.items():
        lines = [f"| distribution | {head} |", "|---|" + "---:|" * len(columns)]
        for name in names:
            now, before = stored["now"][name], stored["before"][name]
            cells = [_format(now[each], before[each]) for each in columns]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        for title, count in (("mean", _mean), ("missed", _count_missed)):
            cells = [
                _format(*(count(stored[key][name][each] for name in names) for key in KEYS))
                for each in columns
            ]
            lines.append(f"| **{title}** | {' | '.join(cells)} |")
        (out / path).write_text("\n".join(lines) + "\n")
    missed = {
        (key, names is FRESH): sum(
            _count_missed(stored[key][name][each] for each in columns)[0] for name in names
        )
        for key in KEYS
        for names in (UNSEEN, FRESH)
    }
    wider = [
        stored["now"][name][each][1] - stored["before"][name][each][1]
        for name in SEEN
        for each in columns
    ]
    worst = min(stored["now"][name][each][0] for name in UNSEEN | FRESH for each in columns)
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
    """Return the number of cases with too low coverage, as an item of a Markdown list."""
    stored = json.loads(FILE.read_text())["now"]
    cells = [cell for name in FRESH for cell in stored[name].values()]
    (missed,) = _count_missed(cells)
    return (
        f"- **Intervals are empirical,** without a guarantee. On {len(FRESH)} distributions with "
        "known probabilities, on which no constant was chosen, 95 % intervals for the true "
        f"probability covered less than {100 * (LEVEL - MISS):.0f} % in {missed} of {len(cells)} "
        "cases (a case is a distribution, a number of rows and one of four classifiers, the pool "
        "among them). No interval that is valid for every distribution can be narrow where a "
        "column is continuous ([Barber 2020; Lee and Barber 2021](docs/intervals.md))."
    )


def _measure(distribution, model: str, n: int) -> list[float]:
    """Return coverage and mean width of intervals at new points.

    The intervals are those of the class with the highest true probability at each point.
    """
    covered, width = [], []
    for seed in range(N_SETS):
        rng = np.random.default_rng([seed, n])
        sizes = np.zeros(1)
        while sizes.min() < 2:
            X, y = distribution.sample(n, rng)
            sizes = np.bincount(y, minlength=distribution.probabilities(X[:1]).shape[1])
        new, _ = distribution.sample(N_NEW, rng)
        if model == "pool":
            clf = PooledNeighborsClassifier(random_state=seed)
        else:
            # K is given, because the defaults of the two compared commits differ.
            k_max = max(int(sizes.min()), n // (2 * len(sizes)))
            clf = BayesianKNeighborsClassifier(model, max_neighbors=k_max, random_state=seed)
        true_p = distribution.probabilities(new)
        best = np.arange(N_NEW), true_p.argmax(axis=1)
        low, high = clf.fit(X, y).predict_interval(new, LEVEL)[best].T
        covered.append(np.mean((low <= true_p[best]) & (true_p[best] <= high)))
        width.append(np.mean(high - low))
    return [round(float(np.mean(each)), 4) for each in (covered, width)]


def _format(now: list, before: list) -> str:
    """Return the numbers of a cell of a table, each with the earlier one in parentheses."""
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
