"""What the paper's figures have in common: chains as traces and marginals, histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.paper.samples import Draws
from bayesknn.plots.style import COLOURS, GREY, INK, MARKERS, tidy
from bayesknn.posterior import GridPosterior

# A trace has no more points than a picture has columns, three times over.
_MOST_POINTS = 4000


def new_figure(n_rows: int, n_columns: int, width: float, height: float, **options: Any) -> Any:
    """Return a figure without a window, and its axes as an array of that shape."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **options)


def draw_points(ax: Any, points: np.ndarray, labels: np.ndarray, size: float = 4.0) -> None:
    """Draw points of the plane, one marker a class."""
    for g in range(int(labels.max()) + 1):
        ax.plot(
            *points[labels == g].T,
            MARKERS[g],
            color=COLOURS[g],
            markeredgecolor="white",
            markeredgewidth=0.3,
            markersize=size,
            label=f"class {g + 1}",
        )


def draw_chain(
    axes: Any, draws: Draws, exact: GridPosterior, beta_max: float, label: str = "exact posterior"
) -> None:
    """Draw the first chain and the marginals of all, over 2 x 2 axes, as the paper does.

    Parameters
    ----------
    axes : ndarray of shape (2, 2)
    draws : Draws
    exact : GridPosterior
        Drawn over the marginals.
    beta_max : float
    label : str
        What the line is.
    """
    beta, k = draws.kept
    low, high = _window(beta, exact, beta_max)
    step = max(1, draws.beta.shape[1] // _MOST_POINTS)
    place = np.arange(0, draws.beta.shape[1], step)
    for ax, values, name in ((axes[0, 0], draws.beta, "β"), (axes[1, 0], draws.k, "k")):
        ax.axvspan(0, draws.n_warmup, color="0.93", linewidth=0, zorder=0)
        ax.plot(place, values[0, ::step], color=COLOURS[0], linewidth=0.5, rasterized=True)
        ax.set(xlabel="iteration (burn-in shaded)", ylabel=name, xlim=(0, draws.beta.shape[1]))
    axes[1, 0].set_ylim(0, None)
    edges = np.linspace(low, high, 41)
    axes[0, 1].hist(beta.ravel(), edges, density=True, color=COLOURS[4], label="chains")
    draw_exact_beta(axes[0, 1], exact, label)
    top = int(k.max()) + 2
    shares = np.bincount(k.ravel(), minlength=top) / k.size
    axes[1, 1].bar(np.arange(top), shares, 0.9, color=COLOURS[4])
    ks = np.arange(1, exact.k_max + 1)
    shown = exact.k_probabilities > 1e-3
    axes[1, 1].plot(
        ks[shown], exact.k_probabilities[shown], "o-", color=INK, markersize=2.5, linewidth=0.8
    )
    top = max(top, int(ks[shown].max()) + 2)
    axes[0, 1].set(xlabel="β", ylabel="density", xlim=(low, high))
    axes[1, 1].set(xlabel="k", ylabel="probability", xlim=(0, top))
    # Room above the curve for the legend.
    axes[0, 1].set_ylim(0, 1.35 * axes[0, 1].get_ylim()[1])
    axes[0, 1].legend(frameon=False, fontsize="small", loc="upper right", ncols=2,
                      handlelength=1.0, columnspacing=0.9)  # fmt: skip
    for ax in axes.flat:
        tidy(ax)


def draw_exact_beta(ax: Any, exact: GridPosterior, label: str = "exact posterior") -> None:
    """Draw the exact marginal density of beta."""
    low, high = exact.betas.min(), exact.betas.max()
    grid = np.linspace(low, high, 400)
    density = np.zeros(len(grid))
    for beta, weight in zip(exact.betas, exact.weights, strict=True):
        density += np.interp(grid, beta, weight / (beta[1] - beta[0]), left=0.0, right=0.0)
    ax.plot(grid, density, color=INK, linewidth=1.2, label=label)


def shade(ax: Any, values: np.ndarray, edges: np.ndarray, colour: str, label: str) -> None:
    """Draw a histogram as a filled outline, so that several can be seen at once."""
    heights, _ = np.histogram(values, edges, density=True)
    ax.stairs(heights, edges, fill=True, color=colour, alpha=0.35)
    ax.stairs(heights, edges, color=colour, linewidth=1.2, label=label)


def mark_line(ax: Any, value: float, text: str) -> None:
    """Draw a level line with its name at the right end."""
    ax.axhline(value, color=GREY, linewidth=0.8, linestyle="--")
    ax.annotate(
        text, (1, value), (-2, 2), ("axes fraction", "data"), "offset points",
        ha="right", fontsize="small", color="0.35",
    )  # fmt: skip


def _window(beta: np.ndarray, exact: GridPosterior, beta_max: float) -> tuple[float, float]:
    heavy = exact.betas[exact.weights > 2e-3 * exact.weights.max()]
    low, high = min(beta.min(), heavy.min()), max(beta.max(), heavy.max())
    margin = 0.1 * (high - low) + 0.05
    return max(0.0, low - margin), min(beta_max, high + margin)
