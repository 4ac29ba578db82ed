"""What a credible interval here covers: measured where the true P(y | x) is known."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.plots.style import COLOURS, INK, tidy
from mixtures import RIPLEY

LEVELS = (0.5, 0.8, 0.95)
LIKELIHOODS = ("coherent", "pseudo", "holmes-adams")
N_SETS = 8
N_NEW = 500
N_DRAWN = 60


def run(out: Path) -> dict[str, str]:
    """Write the table of coverage and the figure, and return the numbers of the text."""
    lines = [
        "| likelihood | n | "
        + " | ".join(f"covered at {level:.0%}" for level in LEVELS)
        + " | mean width at 95% | mean error of the probability |",
        "|---|---:|" + "---:|" * (len(LEVELS) + 2),
    ]
    numbers, drawn = {}, {}
    for likelihood, n in [(each, 250) for each in LIKELIHOODS] + [("pseudo", 1000)]:
        rows, drawn[likelihood, n] = _measure(likelihood, n)
        mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(N_SETS)
        digits = [2] * len(LEVELS) + [3, 3]
        cells = [f"{a:.{d}f} ± {b:.{d}f}" for a, b, d in zip(mean, error, digits, strict=True)]
        lines.append(f"| {likelihood} | {n:,} | {' | '.join(cells)} |")
        name = f"cover_{likelihood.replace('-', '_')}_{n}"
        numbers[name] = f"{mean[len(LEVELS) - 1]:.2f}"
        numbers[f"{name}_width"] = f"{mean[len(LEVELS)]:.3f}"
        numbers[f"{name}_miss"] = f"{mean[len(LEVELS) + 1]:.3f}"
    (out / "coverage.md").write_text("\n".join(lines) + "\n")
    _draw(out / "coverage.png", {each: drawn[each, 250] for each in ("coherent", "pseudo")})
    return numbers | {"cover_sets": str(N_SETS), "cover_new": str(N_NEW)}


def _measure(likelihood: str, n: int):
    """Return coverages, width and error for each data set, and what is drawn of the first."""
    rows, first = [], None
    for seed in range(N_SETS):
        rng = np.random.default_rng(seed)
        X, y = RIPLEY.sample(n, rng)
        new, _ = RIPLEY.sample(N_NEW, rng)
        truth = RIPLEY.probabilities(new)[:, 1]
        clf = BayesianKNeighborsClassifier(likelihood, random_state=seed).fit(X, y)
        stated = clf.predict_proba(new)[:, 1]
        ends = {level: clf.predict_interval(new, level)[:, 1] for level in LEVELS}
        covered = [np.mean((e[:, 0] <= truth) & (truth <= e[:, 1])) for e in ends.values()]
        widest = ends[LEVELS[-1]]
        width, error = np.mean(widest[:, 1] - widest[:, 0]), np.mean(np.abs(stated - truth))
        rows.append([*covered, width, error])
        if first is None:
            first = truth[:N_DRAWN], stated[:N_DRAWN], widest[:N_DRAWN]
    return np.array(rows), first


def _draw(path: Path, cases: dict) -> None:
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    axes = figure.subplots(1, len(cases), sharey=True)
    for ax, (likelihood, (truth, stated, ends)) in zip(axes, cases.items(), strict=True):
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
        ax.set(title=likelihood, xlabel="new points, by stated probability", xticks=[])
        tidy(ax)
    axes[0].set_ylabel("P(class 1)")
    axes[0].legend(frameon=False, fontsize="small", loc="upper left")
    figure.savefig(path)
