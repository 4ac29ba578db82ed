"""Coverage and width of both kinds of intervals, for distributions with known P(y | x)."""

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
# Distributions, sizes and number of training sets of each, for the intervals of the ensemble.
POOL_DISTRIBUTIONS = {
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
    "error of the predicted probability",
    "error of the calibrated probability",
)
N_SETS = 6
N_NEW = 400
N_DRAWN = 60
# Number of batches in which class 1 is counted, their size, and their proportions of class 1.
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
    """Return coverages, widths and errors of each data set, and the points drawn in the figure."""
    rows, first = [], None
    for seed in range(N_SETS):
        rng = np.random.default_rng(seed)
        X, y = distribution.sample(n, rng)
        new, _ = distribution.sample(N_NEW, rng)
        X, y = np.concatenate([X, X[:n_copied]]), np.concatenate([y, y[:n_copied]])
        true_p = distribution.probabilities(new)[:, 1]
        clf = BayesianKNeighborsClassifier(likelihood, random_state=seed).fit(X, y)
        predicted = clf.predict_proba(new)[:, 1]
        calibrated = clf.set_params(calibrate=True).fit(X, y).predict_proba(new)[:, 1]
        narrow = clf.predict_interval(new, of="parameters")[:, 1]
        wide = {level: clf.predict_interval(new, level)[:, 1] for level in LEVELS}
        rows.append([
            _covers(narrow, true_p), np.mean(np.ptp(narrow, axis=1)),
            *(_covers(ends, true_p) for ends in wide.values()), np.mean(np.ptp(wide[0.95], axis=1)),
            np.mean(np.abs(predicted - true_p)), np.mean(np.abs(calibrated - true_p)),
        ])  # fmt: skip
        if first is None:
            first = (
                true_p[:N_DRAWN],
                {
                    "of the parameters": (predicted[:N_DRAWN], narrow[:N_DRAWN]),
                    "of the true probability": (calibrated[:N_DRAWN], wide[0.95][:N_DRAWN]),
                },
            )
    return np.array(rows), first


def _measure_pool(path: Path) -> None:
    """Write a table of coverage, width and error of the ensemble's intervals."""
    lines = ["| distribution | n | covered at 95% | width | error |", "|---|---:|---:|---:|---:|"]
    for name, distribution in POOL_DISTRIBUTIONS.items():
        for n in POOL_SIZES:
            rows = []
            for seed in range(POOL_SETS):
                rng = np.random.default_rng([seed, n])
                clf = PooledNeighborsClassifier(random_state=seed).fit(*distribution.sample(n, rng))
                new, _ = distribution.sample(N_NEW, rng)
                summary = clf.predict_summary(new)
                true_p, ends = distribution.probabilities(new)[:, 1], summary.intervals[:, 1]
                error = np.mean(np.abs(summary.probabilities[:, 1] - true_p))
                rows.append([_covers(ends, true_p), np.mean(np.ptp(ends, axis=1)), error])
            errors = np.std(rows, axis=0, ddof=1) / np.sqrt(POOL_SETS)
            pairs = zip(np.mean(rows, axis=0), errors, strict=True)
            cells = " | ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in pairs)
            lines.append(f"| {name} | {n:,} | {cells} |")
    path.write_text("\n".join(lines) + "\n")


def _count(path: Path) -> None:
    """Write a table of counts in batches with the training class frequencies and with others."""
    lines = [
        "| proportion of class 1 in the batch | `prevalence=` | mean count minus true count "
        "| covered at 90% | width |",
        "|---:|---|---:|---:|---:|",
    ]
    for rate in PROPORTIONS:
        counted: dict[str, list] = {"training": [], "free": []}
        for seed in range(N_BATCHES):
            rng = np.random.default_rng([seed, 5])
            clf = BayesianKNeighborsClassifier("pseudo", random_state=seed)
            clf.fit(*RIPLEY.sample(250, rng))
            X, y = RIPLEY.sample(10 * BATCH, rng)
            n = rng.binomial(BATCH, rate)
            rows = np.concatenate([np.flatnonzero(y == 0)[n:BATCH], np.flatnonzero(y)[:n]])
            for prevalence, results in counted.items():
                counts = clf.predict_counts(X[rows], prevalence=prevalence, random_state=seed)
                mean, low, high = counts[1]
                results.append((mean - n, low <= n <= high, high - low))
        for prevalence, results in counted.items():
            error, covered, width = np.mean(results, axis=0)
            lines.append(
                f'| {rate:.1f} | `"{prevalence}"` | {error:+.0f} | {covered:.2f} | {width:.0f} |'
            )
    path.write_text("\n".join(lines) + "\n")


def _covers(ends: np.ndarray, true_p: np.ndarray) -> float:
    return float(np.mean((ends[:, 0] <= true_p) & (true_p <= ends[:, 1])))


def _draw(path: Path, case: tuple) -> None:
    true_p, kinds = case
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    axes = figure.subplots(1, len(kinds), sharey=True)
    for ax, (kind, (predicted, ends)) in zip(axes, kinds.items(), strict=True):
        order = np.argsort(predicted)
        at = np.arange(len(order))
        low, high = ends[order].T
        inside = (low <= true_p[order]) & (true_p[order] <= high)
        ax.vlines(at, low, high, color=COLOURS[0], linewidth=3.5, alpha=0.45, label="95% interval")
        style = {"color": COLOURS[0], "markersize": 4, "label": "predicted probability"}
        ax.plot(at, predicted[order], "_", **style)
        points = {"markersize": 4.5, "linestyle": "", "markeredgecolor": INK}
        ax.plot(
            at[inside], true_p[order][inside], "o", color="white", markeredgewidth=0.8,
            label="true probability, inside", **points,
        )  # fmt: skip
        ax.plot(
            at[~inside], true_p[order][~inside], "o", color=COLOURS[5], markeredgewidth=0.4,
            label="true probability, outside", **points,
        )  # fmt: skip
        ax.set(title=kind, xlabel="new points, by predicted probability", xticks=[])
        tidy(ax)
    axes[0].set_ylabel("P(class 1)")
    axes[0].legend(frameon=False, fontsize="small", loc="upper left")
    figure.savefig(path)
