"""What the two kinds of intervals cover: measured where the true P(y | x) is known."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.plots.style import COLOURS, INK, tidy
from mixtures import FLAT, QUADRATIC, RING, RIPLEY, SINE, TEN_COLUMNS, board

LEVELS = (0.5, 0.8, 0.95)
CASES = (("coherent", 250), ("pseudo", 250), ("holmes-adams", 250), ("pseudo", 1000))
DISTRIBUTIONS = {
    "Ripley's": RIPLEY,
    "sine in one column": SINE,
    "2 × 2 board": board(2),
    "two normal distributions in ten columns": TEN_COLUMNS,
    "P = 1/2 everywhere": FLAT,
    "4 × 4 board": board(4),
    "8 × 8 board": board(8),
    "ring around a core": RING,
}
# Of the pool: distributions, sizes and how many training sets of each.
POOL_LAWS = {
    "Ripley's": RIPLEY,
    "two normal distributions in ten columns": TEN_COLUMNS,
    "class 1 outside, class 0 inside, ten columns": QUADRATIC,
}
POOL_SIZES, POOL_SETS = (1000, 4000), 4
QUANTITIES = (
    "of the *parameters*, covered at 95%",
    "its width",
    *(f"of the *probability*, covered at {level:.0%}" for level in LEVELS),
    "its width at 95%",
    "error of the stated probability",
    "error of the pooled probability",
)
N_SETS = 6
N_NEW = 400
N_DRAWN = 60
# Batches whose class 1 is counted, their size, and their proportions of class 1.
N_BATCHES = 40
BATCH = 200
PROPORTIONS = (0.5, 0.2)


def run(out: Path) -> dict[str, str]:
    """Write the tables of coverage and the figure, and return the numbers of the text."""
    numbers = {"cover_sets": str(N_SETS), "cover_new": str(N_NEW)}
    drawn, columns = {}, []
    for likelihood, n in CASES:
        rows, drawn[likelihood, n] = _measure(RIPLEY, likelihood, n)
        columns.append(_cells(rows))
        mean = rows.mean(axis=0)
        name = f"cover_{likelihood.replace('-', '_')}_{n}"
        numbers[f"{name}_parameters"] = f"{mean[0]:.2f}"
        numbers[f"{name}_probability"] = f"{mean[4]:.2f}"
        numbers[f"{name}_width"] = f"{mean[5]:.2f}"
    lines = [
        "| | "
        + " | ".join(
            f"{likelihood}, n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{n:,}" for likelihood, n in CASES
        )
        + " |",
        "|---|" + "---:|" * len(CASES),
        *(
            f"| {name} | {' | '.join(cells)} |"
            for name, cells in zip(QUANTITIES, zip(*columns, strict=True), strict=True)
        ),
    ]
    (out / "coverage.md").write_text("\n".join(lines) + "\n")
    lines = [
        "| distribution | *parameters* covered | *probability* covered | width |",
        "|---|---:|---:|---:|",
    ]
    for name, distribution in DISTRIBUTIONS.items():
        rows, _ = _measure(distribution, "pseudo", 250)
        mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(N_SETS)
        cells = " | ".join(f"{mean[at]:.2f} ± {error[at]:.2f}" for at in (0, 4, 5))
        lines.append(f"| {name} | {cells} |")
    copied, _ = _measure(RIPLEY, "pseudo", 250, n_copied=250)
    some, _ = _measure(RIPLEY, "pseudo", 250, n_copied=25)
    numbers["cover_copied_width"] = f"{copied[:, 5].mean():.2f}"
    numbers["cover_some_copied_width"] = f"{some[:, 5].mean():.2f}"
    (out / "coverage_distributions.md").write_text("\n".join(lines) + "\n")
    _draw(out / "coverage.png", drawn["pseudo", 250])
    _count(out / "counts_shifted.md")
    _measure_pool(out / "coverage_pool.md")
    counts = {"count_batches": str(N_BATCHES), "count_size": str(BATCH)}
    return numbers | counts | {"pool_sets": str(POOL_SETS)}


def _cells(rows: np.ndarray) -> list[str]:
    mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(N_SETS)
    digits = [2, 3, *[2] * len(LEVELS), 3, 3, 3]
    return [f"{a:.{d}f} ± {b:.{d}f}" for a, b, d in zip(mean, error, digits, strict=True)]


def _measure(distribution: Any, likelihood: str, n: int, n_copied: int = 0):
    """Return coverages, widths and errors for each data set, and what is drawn of the first."""
    rows, first = [], None
    for seed in range(N_SETS):
        rng = np.random.default_rng(seed)
        X, y = distribution.sample(n, rng)
        new, _ = distribution.sample(N_NEW, rng)
        X, y = np.concatenate([X, X[:n_copied]]), np.concatenate([y, y[:n_copied]])
        truth = distribution.probabilities(new)[:, 1]
        clf = BayesianKNeighborsClassifier(likelihood, random_state=seed).fit(X, y)
        stated = clf.predict_proba(new)[:, 1]
        pooled = clf.set_params(calibrate=True).fit(X, y).predict_proba(new)[:, 1]
        narrow = clf.predict_interval(new, of="parameters")[:, 1]
        wide = {level: clf.predict_interval(new, level)[:, 1] for level in LEVELS}
        rows.append([
            _covers(narrow, truth), np.mean(np.ptp(narrow, axis=1)),
            *(_covers(ends, truth) for ends in wide.values()), np.mean(np.ptp(wide[0.95], axis=1)),
            np.mean(np.abs(stated - truth)), np.mean(np.abs(pooled - truth)),
        ])  # fmt: skip
        if first is None:
            first = (
                truth[:N_DRAWN],
                {
                    "of the parameters": (stated[:N_DRAWN], narrow[:N_DRAWN]),
                    "of the true probability": (pooled[:N_DRAWN], wide[0.95][:N_DRAWN]),
                },
            )
    return np.array(rows), first


def _measure_pool(path: Path) -> None:
    """Write a table of what the pool's intervals cover."""
    lines = ["| distribution | n | covered at 95% | width | error |", "|---|---:|---:|---:|---:|"]
    for name, law in POOL_LAWS.items():
        for n in POOL_SIZES:
            rows = []
            for seed in range(POOL_SETS):
                rng = np.random.default_rng([seed, n])
                clf = PooledNeighborsClassifier(random_state=seed).fit(*law.sample(n, rng))
                new, _ = law.sample(N_NEW, rng)
                found = clf.predict_summary(new)
                truth, ends = law.probabilities(new)[:, 1], found.intervals[:, 1]
                error = np.mean(np.abs(found.probabilities[:, 1] - truth))
                rows.append([_covers(ends, truth), np.mean(np.ptp(ends, axis=1)), error])
            errors = np.std(rows, axis=0, ddof=1) / np.sqrt(POOL_SETS)
            pairs = zip(np.mean(rows, axis=0), errors, strict=True)
            cells = " | ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in pairs)
            lines.append(f"| {name} | {n:,} | {cells} |")
    path.write_text("\n".join(lines) + "\n")


def _count(path: Path) -> None:
    """Write a table of counts in batches with the class frequencies of training and with others."""
    lines = [
        "| proportion of class 1 in the batch | `prevalence=` | mean count minus true count "
        "| covered at 90% | width |",
        "|---:|---|---:|---:|---:|",
    ]
    for rate in PROPORTIONS:
        found: dict[str, list] = {"training": [], "free": []}
        for seed in range(N_BATCHES):
            rng = np.random.default_rng([seed, 5])
            clf = BayesianKNeighborsClassifier("pseudo", random_state=seed)
            clf.fit(*RIPLEY.sample(250, rng))
            X, y = RIPLEY.sample(10 * BATCH, rng)
            truth = rng.binomial(BATCH, rate)
            rows = np.concatenate([np.flatnonzero(y == 0)[truth:BATCH], np.flatnonzero(y)[:truth]])
            for prevalence, some in found.items():
                counts = clf.predict_counts(X[rows], prevalence=prevalence, random_state=seed)
                mean, low, high = counts[1]
                some.append((mean - truth, low <= truth <= high, high - low))
        for prevalence, some in found.items():
            error, covered, width = np.mean(some, axis=0)
            lines.append(
                f'| {rate:.1f} | `"{prevalence}"` | {error:+.0f} | {covered:.2f} | {width:.0f} |'
            )
    path.write_text("\n".join(lines) + "\n")


def _covers(ends: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))


def _draw(path: Path, case: tuple) -> None:
    truth, kinds = case
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    axes = figure.subplots(1, len(kinds), sharey=True)
    for ax, (kind, (stated, ends)) in zip(axes, kinds.items(), strict=True):
        order = np.argsort(stated)
        at = np.arange(len(order))
        low, high = ends[order].T
        inside = (low <= truth[order]) & (truth[order] <= high)
        ax.vlines(at, low, high, color=COLOURS[0], linewidth=3.5, alpha=0.45, label="95% interval")
        ax.plot(at, stated[order], "_", color=COLOURS[0], markersize=4, label="stated probability")
        points = {"markersize": 4.5, "linestyle": "", "markeredgecolor": INK}
        ax.plot(
            at[inside], truth[order][inside], "o", color="white", markeredgewidth=0.8,
            label="truth, inside", **points,
        )  # fmt: skip
        ax.plot(
            at[~inside], truth[order][~inside], "o", color=COLOURS[5], markeredgewidth=0.4,
            label="truth, outside", **points,
        )  # fmt: skip
        ax.set(title=kind, xlabel="new points, by stated probability", xticks=[])
        tidy(ax)
    axes[0].set_ylabel("P(class 1)")
    axes[0].legend(frameon=False, fontsize="small", loc="upper left")
    figure.savefig(path)
