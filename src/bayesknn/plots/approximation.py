"""Posteriors of the same data side by side (the paper's Figures comparing the approximations)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesknn.plots.marginals import beta_range, find_marginals
from bayesknn.plots.style import COLOURS, LINES, new_grid, tidy


class ApproximationDisplay:
    """Marginals of beta and of k under several posteriors.

    Parameters
    ----------
    beta_edges : array-like of shape (n_bins + 1,)
        Common to all.
    beta_densities : mapping of str to array-like of shape (n_bins,)
        Density of beta in each bin, for each posterior by name.
    k_values : array-like of shape (n_k,)
        Common to all.
    k_probabilities : mapping of str to array-like of shape (n_k,)
        P(k) for each posterior, by the same names.

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

    def __init__(
        self,
        beta_edges: Any,
        beta_densities: Mapping[str, Any],
        k_values: Any,
        k_probabilities: Mapping[str, Any],
    ) -> None:
        if list(beta_densities) != list(k_probabilities):
            raise ValueError(
                f"beta_densities and k_probabilities name different posteriors: "
                f"{list(beta_densities)} and {list(k_probabilities)}"
            )
        if not 1 <= len(beta_densities) <= len(COLOURS):
            raise ValueError(
                f"from 1 to {len(COLOURS)} posteriors can be told apart, got {len(beta_densities)}"
            )
        self.beta_edges = np.asarray(beta_edges, dtype=float)
        self.beta_densities = {name: np.asarray(row) for name, row in beta_densities.items()}
        self.k_values = np.asarray(k_values)
        self.k_probabilities = {name: np.asarray(row) for name, row in k_probabilities.items()}
        for name in beta_densities:
            sizes = len(self.beta_densities[name]) + 1, len(self.k_probabilities[name])
            if sizes != (len(self.beta_edges), len(self.k_values)):
                raise ValueError(f"{name!r} does not fit beta_edges and k_values")

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
        ranges = [beta_range(posterior) for posterior in posteriors.values()]
        edges = np.linspace(min(r[0] for r in ranges), max(r[1] for r in ranges), n_bins + 1)
        marginals = {name: find_marginals(each, edges) for name, each in posteriors.items()}
        first = min(m.k_values[0] for m in marginals.values())
        last = max(m.k_values[-1] for m in marginals.values())
        probabilities = {name: np.zeros(last - first + 1) for name in marginals}
        for name, each in marginals.items():
            probabilities[name][each.k_values - first] = each.k_probabilities
        densities = {name: each.beta_density for name, each in marginals.items()}
        display = cls(edges, densities, np.arange(first, last + 1), probabilities)
        return display.plot(parameters=parameters, axes=axes)

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
            if parameter == "beta":
                middles = (self.beta_edges[1:] + self.beta_edges[:-1]) / 2
                self._draw(ax, self.beta_densities, middles)
                ax.set(xlabel=r"$\beta$", ylabel="density")
            else:
                self._draw(ax, self.k_probabilities, self.k_values)
                ax.set(xlabel="k", ylabel="P(k | y)")
        self.axes_[0].legend(frameon=False, loc="upper right")
        for ax in self.axes_:
            tidy(ax)
        return self

    def _draw(self, ax: Any, rows: Mapping[str, np.ndarray], x: np.ndarray) -> None:
        for at, (name, row) in enumerate(rows.items()):
            # From the last empty value to the next: a line along the axis says nothing.
            heavy = np.flatnonzero(row > 1e-3 * row.max())
            part = slice(max(heavy[0] - 1, 0), heavy[-1] + 2)
            ax.fill_between(x[part], row[part], color=COLOURS[at], alpha=0.18, linewidth=0)
            ax.plot(
                x[part],
                row[part],
                color=COLOURS[at],
                linestyle=LINES[at],
                linewidth=1.3,
                marker="." if len(heavy) == 1 else None,
                label=name,
            )
        ax.set_ylim(bottom=0.0)
