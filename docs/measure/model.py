"""Figures of the model page: neighbours, draws of labels, agreement, posterior and zones."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.labels import sample_labels
from bayesknn.model import BoltzmannModel
from bayesknn.plots import PosteriorDisplay, ZoneMapDisplay
from bayesknn.plots.style import COLOURS, GREY, INK, MARKERS, tidy

K = 14
BETAS = (0.0, 0.8, 1.4, 2.0)
N_DRAWS = 200


def run(out: Path) -> dict[str, str]:
    """Draw the figures and return the numbers of the model page."""
    ripley = load_ripley()
    graph = NeighborGraph.from_points(ripley.X_train, k_max=K)
    _draw_neighbours(out / "neighbours.png")
    _draw_labels(out / "labels.png", graph, ripley.X_train)
    observed, matched = _draw_agreement(out / "agreement.png", graph, ripley.y_train)
    clf = BayesianKNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
    PosteriorDisplay.from_estimator(clf).figure_.savefig(out / "posterior.png")
    figure = Figure(figsize=(9.0, 3.9), layout="constrained")
    for ax, kind in zip(figure.subplots(1, 2), ("levels", "zones"), strict=True):
        ZoneMapDisplay.from_estimator(
            clf, ripley.X_train, ripley.y_train, of="parameters", kind=kind, ax=ax
        )
    figure.savefig(out / "zones.png")
    return {
        "model_k": str(K),
        "observed_share": f"{observed:.2f}",
        "matched_beta": f"{matched:.2f}",
        "ripley_beta": f"{clf.beta_mean_:.2f}",
        "ripley_k": f"{clf.k_values_ @ clf.k_probabilities_:.0f}",
        "ripley_beta_max": f"{clf.beta_max_:.1f}",
    }


def _draw_neighbours(path: Path) -> None:
    """Draw arrows from seven points to their two nearest; one point is neighbour of no other."""
    points = np.array(
        [[0.0, 0.0], [0.9, 0.25], [0.35, 0.85], [1.9, 0.9], [2.6, 0.15], [2.75, 1.05], [4.3, 0.6]]
    )
    labels = np.array([0, 0, 0, 1, 1, 1, 0])
    graph = NeighborGraph.from_points(points, k_max=2)
    arrows = {(i, int(j)) for i in range(len(points)) for j in graph.neighbors[:2, i]}
    figure = Figure(figsize=(6.0, 2.3), layout="constrained")
    ax = figure.subplots()
    for i, j in arrows:
        mutual = (j, i) in arrows
        ax.annotate(
            "",
            points[j],
            points[i],
            arrowprops={
                "arrowstyle": "<|-|>" if mutual else "-|>",
                "color": INK if mutual else GREY,
                "linewidth": 1.6 if mutual else 0.9,
                "shrinkA": 8,
                "shrinkB": 8,
                "mutation_scale": 9,
            },
        )
    for g in (0, 1):
        ax.plot(*points[labels == g].T, MARKERS[g], color=COLOURS[g], markersize=11, mec=INK)
    # Offsets in points that keep the number of each point clear of its arrows.
    offsets = [(-14, -3), (8, -4), (-3, 9), (-14, -3), (-3, -16), (8, 3), (8, -3)]
    for i, point in enumerate(points):
        ax.annotate(str(i), point, offsets[i], textcoords="offset points", fontsize=8, color=INK)
    ax.set(xlim=(-0.3, 4.6), ylim=(-0.35, 1.35), aspect="equal")
    ax.axis("off")
    figure.savefig(path)


def _draw_labels(path: Path, graph: NeighborGraph, points: np.ndarray) -> None:
    figure = Figure(figsize=(9.0, 2.5), layout="constrained")
    for ax, beta in zip(figure.subplots(1, len(BETAS)), BETAS, strict=True):
        drawn = sample_labels(graph, beta, K, 2, method="perfect", random_state=3)[0]
        for g in (0, 1):
            marks = points[drawn == g].T
            ax.plot(*marks, MARKERS[g], color=COLOURS[g], markersize=3.2, mec=INK, mew=0.3)
        ax.set(title=rf"$\beta$ = {beta:g}", xticks=[], yticks=[])
        for spine in ax.spines.values():
            spine.set_color(GREY)
    figure.savefig(path)


def _draw_agreement(path: Path, graph: NeighborGraph, labels: np.ndarray) -> tuple[float, float]:
    """Draw the proportion of agreeing edges against beta.

    Returns the observed proportion, and the beta at which its mean under the model is equal to it.
    """
    betas = np.linspace(0, 2.4, 25)
    n_edges, model = graph.n_points * K, BoltzmannModel(graph, 2)
    proportions = np.array(
        [
            model.agreement(sample_labels(
                graph, beta, K, 2, method="perfect", n_draws=N_DRAWS, random_state=7
            ), K) / n_edges
            for beta in betas
        ]
    )  # fmt: skip
    mean, (low, high) = proportions.mean(axis=1), np.quantile(proportions, [0.05, 0.95], axis=1)
    observed = float(model.agreement(labels, K) / n_edges)
    matched = float(np.interp(observed, np.maximum.accumulate(mean), betas))
    figure = Figure(figsize=(5.2, 3.2), layout="constrained")
    ax = figure.subplots()
    ax.fill_between(
        betas, low, high, color=COLOURS[0], alpha=0.2, linewidth=0, label="90% of draws"
    )
    ax.plot(betas, mean, color=COLOURS[0], label="mean of the model")
    ax.axhline(observed, color=COLOURS[5], linestyle="--", label="Ripley's labels")
    ax.plot([matched, matched], [0.45, observed], color=INK, linewidth=0.8, linestyle=":")
    ax.set(
        xlabel=r"$\beta$",
        ylabel="proportion of edges that agree",
        xlim=(0, betas[-1]),
        ylim=(0.45, 1.02),
    )
    ax.legend(frameon=False, loc="lower right", fontsize="small")
    tidy(ax)
    figure.savefig(path)
    return observed, matched
