"""Posteriors of the same data side by side (the paper's Figures comparing the approximations)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesknn.plots.marginals import Marginals, beta_range, find_marginals
from bayesknn.plots.style import COLOURS, LINES, new_grid, tidy


class ApproximationDisplay:
    """Marginals of beta and of k under several posteriors.

    Parameters
    ----------
    marginals : mapping of str to Marginals
        Of each posterior by name, at most eight.

    Attributes
    ----------
    figure_, axes_ : matplotlib objects
        Set by :meth:`plot`; one panel for each parameter drawn.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.likelihood import HolmesAdamsLikelihood, PseudoLikelihood
    >>> from bayesknn.plots import ApproximationDisplay
    >>> from bayesknn.posterior import grid_posterior
    >>> ripley = load_ripley()
    >>> graph = NeighborGraph.from_points(ripley.X_train, k_max=60)
    >>> posteriors = {
    ...     kind.__name__: grid_posterior(kind(graph, ripley.y_train), beta_max=4.0)
    ...     for kind in (PseudoLikelihood, HolmesAdamsLikelihood)
    ... }
    >>> ApproximationDisplay.from_posteriors(posteriors).axes_.shape
    (2,)
    """

    def __init__(self, marginals: Mapping[str, Marginals]) -> None:
        if not 1 <= len(marginals) <= len(COLOURS):
            raise ValueError(
                f"from 1 to {len(COLOURS)} posteriors can be told apart, got {len(marginals)}"
            )
        self.marginals = dict(marginals)

    @classmethod
    def from_posteriors(
        cls,
        posteriors: Mapping[str, Any],
        *,
        parameters: Sequence[str] = ("beta", "k"),
        n_bins: int = 80,
        axes: Any = None,
    ) -> ApproximationDisplay:
        """Draw posteriors by name.

        Parameters
        ----------
        posteriors : mapping of str to GridPosterior, DataTree or fitted classifier
            At most eight.
        parameters : sequence of {"beta", "k"}, default=("beta", "k")
            What to draw, a panel each.
        n_bins : int, default=80
            Bins of beta over the range of all posteriors.
        axes : sequence of matplotlib Axes, optional
            One for each parameter; a new figure by default.

        Returns
        -------
        ApproximationDisplay
        """
        if not posteriors:
            raise ValueError("there are no posteriors to compare")
        low, high = np.transpose([beta_range(posterior) for posterior in posteriors.values()])
        edges = np.linspace(low.min(), high.max(), n_bins + 1)
        marginals = {name: find_marginals(each, edges) for name, each in posteriors.items()}
        return cls(marginals).plot(parameters=parameters, axes=axes)

    def plot(
        self, *, parameters: Sequence[str] = ("beta", "k"), axes: Any = None
    ) -> ApproximationDisplay:
        """Draw the marginals.

        Parameters
        ----------
        parameters : sequence of {"beta", "k"}, default=("beta", "k")
            What to draw, a panel each.
        axes : sequence of matplotlib Axes, optional
            One for each parameter; a new figure by default.

        Returns
        -------
        ApproximationDisplay
            Itself.
        """
        known = ("beta", "k")
        if not parameters or not set(parameters) <= set(known):
            raise ValueError(f"parameters must be taken from {known}, got {parameters!r}")
        height = 2.4 * len(parameters)
        self.figure_, grid = new_grid(axes, len(parameters), 1, figsize=(6.4, height))
        self.axes_ = grid[:, 0]
        for ax, parameter in zip(self.axes_, parameters, strict=True):
            for at, (name, each) in enumerate(self.marginals.items()):
                if parameter == "beta":
                    _draw(ax, at, name, each.beta_middles, each.beta_density)
                    ax.set(xlabel=r"$\beta$", ylabel="density")
                else:
                    _draw(ax, at, name, each.k_values, each.k_probabilities)
                    ax.set(xlabel="k", ylabel="P(k | y)")
            ax.set_ylim(bottom=0.0)
        self.axes_[0].legend(frameon=False, loc="upper right")
        for ax in self.axes_:
            tidy(ax)
        return self


def _draw(ax: Any, at: int, name: str, x: np.ndarray, row: np.ndarray) -> None:
    # From the last empty value to the next: a line along the axis says nothing.
    heavy = np.flatnonzero(row > 1e-3 * row.max())
    part = slice(max(heavy[0] - 1, 0), heavy[-1] + 2)
    marker = "." if len(heavy) == 1 else None
    style = {"color": COLOURS[at], "linestyle": LINES[at], "linewidth": 1.3, "marker": marker}
    ax.fill_between(x[part], row[part], color=COLOURS[at], alpha=0.18, linewidth=0)
    ax.plot(x[part], row[part], label=name, **style)
