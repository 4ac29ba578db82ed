"""Figures of the page on the ensemble: link functions, reverse neighbours, and b >= 0."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bayesknn import PooledNeighborsClassifier
from bayesknn.datasets import load_pima
from bayesknn.graph import NeighborGraph
from bayesknn.plots.style import COLOURS, GREY, LINES, MARKERS, tidy


def run(out: Path) -> dict[str, str]:
    """Draw the figures; return the standard deviation of probabilities between seeds."""
    _draw_links().savefig(out / "pool_links.png")
    _draw_reverse().savefig(out / "pool_reverse.png")
    _draw_clamp().savefig(out / "pool_clamp.png")
    return {"pool_seed": f"{_vary_seed(5):.3f}", "pool_seed_20": f"{_vary_seed(20):.3f}"}


def _vary_seed(n_folds: int) -> float:
    """Return the standard deviation of predicted probabilities over six seeds on the Pima data."""
    pima = load_pima()
    proba = [
        PooledNeighborsClassifier(n_folds=n_folds, random_state=seed)
        .fit(pima.X_train, pima.y_train)
        .predict_proba(pima.X_test)
        for seed in range(6)
    ]
    return float(np.sqrt(np.var(proba, axis=0, ddof=1).mean()))


def _figure(n_axes: int = 1):
    figure = Figure(figsize=(3.4 * n_axes, 3.1), layout="constrained")
    axes = figure.subplots(1, n_axes, squeeze=False)[0]
    for ax in axes:
        tidy(ax)
    return figure, axes


def _draw_links() -> Figure:
    """Draw the probability against the class proportion among the neighbours, for both links."""
    figure, axes = _figure(2)
    proportion = np.linspace(0, 1, 201)
    for ax in axes:
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, label="the proportion itself")
        ax.set(xlabel="proportion of the class among the neighbours", xlim=(0, 1), ylim=(0, 1))
    for beta, colour, line in zip((1, 2, 4), COLOURS, LINES, strict=False):
        p = 1 / (1 + np.exp(-2 * beta * (2 * proportion - 1)))
        axes[0].plot(proportion, p, color=colour, linestyle=line, label=f"β = {beta}, any k")
    for k, colour, line in zip((1, 5, 50), COLOURS, LINES, strict=False):
        p = (0.5 + 2 * k * proportion) / (1 + 2 * k)
        axes[1].plot(proportion, p, color=colour, linestyle=line, label=f"k = {k}")
    axes[0].set(title="exp(β U / k)", ylabel="probability")
    axes[1].set(title="1/G + U, the urn")
    for ax in axes:
        ax.legend(frameon=False, loc="upper left")
    return figure


def _draw_reverse() -> Figure:
    """Draw a point whose forward and reverse neighbours differ."""
    rng = np.random.default_rng(1)
    dense = 0.45 * rng.normal(size=(60, 2))
    angle = rng.uniform(0.3 * np.pi, 1.7 * np.pi, size=25)
    sparse = rng.uniform(1.5, 3.2, size=(25, 1)) * np.column_stack([np.cos(angle), np.sin(angle)])
    X, y = np.vstack([dense, sparse]), np.repeat([0, 1], [60, 25])
    point = np.array([[-1.25, 0.1]])
    query = NeighborGraph.from_points(X, 5).query(point)
    figure = Figure(figsize=(6.8, 4.3), layout="constrained")
    axes = figure.subplots(1, 2)
    chosen = (query.neighbors[:, 0], query.reverse_points)
    titles = ("its five nearest neighbours", "points that have it among their five nearest")
    for ax, rows, title in zip(axes, chosen, titles, strict=True):
        for row in rows:
            ax.plot(*np.vstack([point, X[row]]).T, color=GREY, linewidth=0.8, zorder=0)
        for g in (0, 1):
            ax.scatter(*X[y == g].T, s=14, color=COLOURS[g], marker=MARKERS[g])
        ax.scatter(*point.T, s=70, color="black", marker="*")
        ax.set(title=title, xticks=[], yticks=[], aspect="equal")
        for spine in ax.spines.values():
            spine.set_color(GREY)
    return figure


def _draw_clamp() -> Figure:
    """Draw the mean count of a point's class minus that of the other, for random labels."""
    figure, (ax,) = _figure()
    n, k_values, n_sets = 60, np.arange(1, 60), 300
    y = np.arange(n) % 2
    gaps = np.zeros(len(k_values))
    for seed in range(n_sets):
        X = np.random.default_rng(seed).normal(size=(n, 1))
        graph = NeighborGraph.from_points(X, n - 1)
        for t, (_, counts) in enumerate(graph.iterate_counts(y, 2, k_values)):
            gaps[t] += (counts[np.arange(n), y] - counts[np.arange(n), 1 - y]).mean() / n_sets
    ax.axhline(0, color=GREY, linewidth=1)
    ax.plot(k_values, gaps, color=COLOURS[0])
    ax.set(
        xlabel=f"number of neighbours k, of {n} points",
        ylabel="count of the point's class minus the other",
        title="labels independent of X",
    )
    return figure
