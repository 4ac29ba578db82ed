"""Tables, figure and text of the comparison of the ensemble with other methods.

The results are in prediction.json, written by ``python docs/measure prediction``, and in
prediction_autogluon.json, written by ``python docs/measure autogluon``.
"""

import json
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import rankdata

from bayesknn.plots.style import COLOURS, GREY, INK, tidy
from comparison import FILE, SIMULATED
from kept import HERE, describe_age

OURS, NEIGHBORS = "the pool", "the pool, neighbours only"
FREQUENCIES = "class frequencies"
PAPER = "the paper's pseudo-likelihood"


class Comparison(NamedTuple):
    """Results of the comparison, averaged over splits.

    Attributes
    ----------
    sets : list of str
        Names of the data sets.
    sizes : dict of str to list of int
        Numbers of training rows, columns and classes of each set.
    methods : list of str
    losses, errors : ndarray of shape (n_sets, n_methods)
        Test log-losses and error rates.
    seconds : ndarray of shape (n_methods,)
        Mean CPU time of a fit.
    autogluon : str
        Version and time limit of AutoGluon.
    """

    sets: list[str]
    sizes: dict[str, list[int]]
    methods: list[str]
    losses: np.ndarray
    errors: np.ndarray
    seconds: np.ndarray
    autogluon: str

    def of(self, method: str) -> np.ndarray:
        """Return the log-losses of a method, shape (n_sets,)."""
        return self.losses[:, self.methods.index(method)]


def read() -> Comparison:
    """Return the results in prediction.json and prediction_autogluon.json as one comparison."""
    ours = json.loads(FILE.read_text())
    theirs = json.loads((HERE / "prediction_autogluon.json").read_text())
    sets, methods = list(ours["losses"]), [*ours["seconds"], *theirs["seconds"]]
    values = {
        key: [[np.mean((ours[key][s] | theirs[key][s])[m]) for m in methods] for s in sets]
        for key in ("losses", "errors")
    }
    seconds = np.array([*ours["seconds"].values(), *theirs["seconds"].values()])
    about = f"{theirs['version']}, {theirs['preset']}, at most {theirs['time_limit']} s a fit"
    n_fits = len(sets) * ours["n_splits"]
    return Comparison(
        sets, ours["sizes"], methods, np.array(values["losses"]), np.array(values["errors"]),
        seconds / n_fits, about,
    )  # fmt: skip


def run(out: Path) -> dict[str, str]:
    """Write the tables, the figure and the text; return the numbers of the pages."""
    data = read()
    losses, methods, sets = data.losses, data.methods, data.sets
    ours = data.of(OURS)
    ranks = np.array([rankdata(row) for row in losses])
    rows = [
        "| method | mean log-loss | difference from the pool (standard error) | mean rank "
        "| sets with the smallest log-loss | error rate, % | CPU s per fit |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for j in np.argsort(losses.mean(axis=0)):
        more = losses[:, j] - ours
        error = more.std(ddof=1) / np.sqrt(len(sets))
        rows.append(
            f"| {methods[j]} | {losses[:, j].mean():.3f} | {more.mean():.3f} ({error:.3f}) "
            f"| {ranks[:, j].mean():.2f} | {np.sum(ranks[:, j] == 1)} "
            f"| {100 * data.errors[:, j].mean():.1f} | {data.seconds[j]:.1f} |"
        )
    (out / "prediction.md").write_text("\n".join(rows) + "\n")
    rows = [f"| data | n, p, G | {' | '.join(methods)} |", "|---|---|" + "---:|" * len(methods)]
    for name, row in zip(sets, losses, strict=True):
        cells = [f"**{loss:.3f}**" if loss == row.min() else f"{loss:.3f}" for loss in row]
        # No-break spaces keep the three sizes on one line.
        sizes = ",\N{NO-BREAK SPACE}".join(map(str, data.sizes[name]))
        rows.append(f"| {name} | {sizes} | {' | '.join(cells)} |")
    (out / "prediction_sets.md").write_text("\n".join(rows) + "\n")
    (out / "prediction_case.md").write_text(write_case(data))
    draw(data).savefig(out / "prediction.png")
    others = [j for j, method in enumerate(methods) if method not in (OURS, NEIGHBORS)]
    gaps = ours - losses[:, others].min(axis=1)
    worst = int(np.argmax(gaps))
    winner = methods[others[int(np.argmin(losses[worst, others]))]]
    nothing = sets.index("no signal")
    alone = data.of(NEIGHBORS)
    gains = np.argsort(alone - ours)[::-1]
    excess = ours[nothing] - data.of(FREQUENCIES)[nothing]
    return {
        "prediction_measured": describe_age(FILE.name),
        "prediction_sets": str(len(sets)),
        "prediction_autogluon": data.autogluon,
        "prediction_wins": str(int(np.sum(gaps < 0))),
        "prediction_worst": f"{sets[worst]} ({winner}, by {gaps[worst]:.3f})",
        "prediction_no_signal": f"{excess:.3f}",
        "prediction_companions": " and ".join(
            f"{sets[j]} ({alone[j]:.3f} to {ours[j]:.3f})" for j in gains[:2]
        ),
        "prediction_neighbors": str(int(np.sum(alone < losses[:, others].min(axis=1)))),
    }


def write_case(data: Comparison) -> str:
    """Return the results and limits of the comparison, as a Markdown list."""
    others = [j for j, method in enumerate(data.methods) if method not in (OURS, NEIGHBORS)]
    means = dict(zip(data.methods, data.losses.mean(axis=0), strict=True))
    rows = [size[0] for size in data.sizes.values()]
    order = sorted((data.methods[j] for j in others), key=means.get)
    named = [PAPER, "AutoGluon", "LightGBM, tuned", "boosted trees, tuned", "kNN, k by CV"]
    best = next(method for method in order if method not in named)
    leads = np.sum(data.of(OURS) < data.losses[:, others].min(axis=1))
    more = data.of("AutoGluon") - data.of(OURS)
    error = more.std(ddof=1) / np.sqrt(len(more))
    ours = data.methods.index(OURS)
    fewer = np.sum(data.errors[:, others].min(axis=1) < data.errors[:, ours])
    seconds = dict(zip(data.methods, data.seconds, strict=True))
    listed = ", ".join(
        f"{words} {means[method]:.3f}"
        for method, words in (
            (NEIGHBORS, "its neighbours alone"),
            (PAPER, "the paper's pseudo-likelihood"),
            ("kNN, k by CV", "k nearest neighbours with k by cross-validation"),
            ("AutoGluon", f"AutoGluon ({data.autogluon})"),
            (best, _in_words(best)),
            ("LightGBM, tuned", "tuned LightGBM"),
        )
    )
    simulated = sum(name in SIMULATED for name in data.sets)
    items = (
        f"- **Log-loss.** Mean test log-loss on {len(rows)} data sets of {min(rows)} to "
        f"{max(rows)} rows: the pool {means[OURS]:.3f}, {listed}. AutoGluon's is larger by "
        f"{more.mean():.3f} before rounding (standard error {error:.3f}); the pool has the "
        f"smallest of all {len(others) + 1} methods on {leads} sets.",
        f"- **Limits of this comparison.** {simulated} of the {len(rows)} sets are simulated. None "
        "was held back: the pool's base models and the prior of its exponents were chosen on "
        "these sets and others (docs/pool.md). "
        f"Another method makes fewer errors on {fewer} sets. On 100,000 rows and more, "
        "boosted trees are many times faster; text and images are not for the pool.",
        f"- **Cost of a fit.** {seconds[OURS]:.1f} CPU seconds, with nothing to tune; AutoGluon "
        f"{seconds['AutoGluon']:.0f}, {_in_words(best)} {seconds[best]:.1f}, tuned LightGBM "
        f"{seconds['LightGBM, tuned']:.1f}.",
    )
    return "".join(textwrap.fill(item, 118, subsequent_indent="  ") + "\n" for item in items)


def _in_words(method: str) -> str:
    """Return the name of a method for running text: ``tuned SVM`` for ``SVM, tuned``."""
    name, comma, words = method.partition(", ")
    return f"{words} {name}" if comma else name


def draw(data: Comparison) -> Figure:
    """Draw the mean log-loss of each method, with its CPU time as text.

    The background is white, so that the figure is legible on dark pages too.
    """
    figure = Figure(figsize=(7.6, 3.9), layout="constrained", facecolor="white")
    ax = figure.subplots()
    tidy(ax)
    means = data.losses.mean(axis=0)
    # Class frequencies are omitted, because their log-loss is at least twice that of any method.
    order = [j for j in np.argsort(-means) if data.methods[j] != FREQUENCIES]
    more = data.losses - data.of(OURS)[:, None]
    errors = more.std(axis=0, ddof=1) / np.sqrt(len(data.sets))
    for y, j in enumerate(order):
        colour = COLOURS[0] if data.methods[j] in (OURS, NEIGHBORS) else GREY
        ax.errorbar(means[j], y, xerr=errors[j], fmt="o", color=colour, capsize=3)
        ax.annotate(
            f"{data.seconds[j]:.2g} s", (1.0, y), xycoords=("axes fraction", "data"), ha="right",
            va="center", color=INK,
        )  # fmt: skip
    ax.set_yticks(range(len(order)), [data.methods[j] for j in order], color=INK)
    ax.set(
        xlim=(None, means[order[0]] + 0.07),
        xlabel="mean test log-loss; bars: standard error of the difference from the pool",
        title=f"{len(data.sets)} data sets: lower is better; right: CPU seconds of a fit",
    )
    return figure
