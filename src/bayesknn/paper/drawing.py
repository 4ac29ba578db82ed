"""What the paper's figures have in common: a chain beside the exact posterior, lines with names."""

from __future__ import annotations

from typing import Any

from bayesknn.paper.samples import Draws
from bayesknn.plots import PosteriorDisplay
from bayesknn.plots.marginals import find_marginals
from bayesknn.plots.style import GREY, INK, new_figure
from bayesknn.posterior import GridPosterior


def draw_chain(draws: Draws, exact: GridPosterior, label: str = "exact posterior") -> Any:
    """Draw the trace of the first chain and the marginals of all over the exact ones.

    Parameters
    ----------
    draws : Draws
    exact : GridPosterior
        Drawn as a line.
    label : str
        What the line is.

    Returns
    -------
    figure, axes : matplotlib Figure, ndarray of shape (2, 2)
    """
    figure, axes = new_figure(2, 2, 8.5, 5.0, sharey="row", width_ratios=(2, 1))
    found, truth = find_marginals(draws.tree), find_marginals(exact)
    PosteriorDisplay(**found._asdict(), beta_trace=draws.beta[:1], k_trace=draws.k[:1]).plot(
        axes=axes
    )
    for ax in axes[:, 0]:
        ax.axvspan(0, draws.n_warmup, color="0.93", linewidth=0, zorder=0)
    axes[1, 0].set(xlabel="iteration (burn-in shaded)", ylim=(0, None))
    middles = (truth.beta_edges[1:] + truth.beta_edges[:-1]) / 2
    axes[0, 1].plot(truth.beta_density, middles, color=INK, linewidth=1.2, label=label)
    axes[0, 1].set_xlim(0, 1.1 * max(truth.beta_density.max(), found.beta_density.max()))
    shown = truth.k_probabilities > 1e-3
    axes[1, 1].plot(
        truth.k_probabilities[shown], truth.k_values[shown], "o-", color=INK, markersize=2.5,
        linewidth=0.8,
    )  # fmt: skip
    axes[1, 1].set_xlim(0, 1.1 * max(truth.k_probabilities.max(), found.k_probabilities.max()))
    axes[1, 1].set_ylim(0, max(draws.k[0].max(), truth.k_values[shown].max()) + 2)
    axes[0, 1].legend(frameon=False, fontsize="small", loc="upper right")
    return figure, axes


def mark_line(ax: Any, value: float, text: str) -> None:
    """Draw a level line with its name at the right end."""
    ax.axhline(value, color=GREY, linewidth=0.8, linestyle="--")
    ax.annotate(
        text, (1, value), (-2, 2), ("axes fraction", "data"), "offset points",
        ha="right", fontsize="small", color="0.35",
    )  # fmt: skip
