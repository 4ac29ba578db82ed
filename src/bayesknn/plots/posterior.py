"""The posterior of beta and k: traces and marginals (the paper's Figures of the chains)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesknn.plots.marginals import find_draws, find_marginals, is_grid
from bayesknn.plots.style import COLOURS, INK, new_grid, tidy, tint


class PosteriorDisplay:
    """Marginals of beta and k, beside the traces of the chains if there are any.

    Parameters
    ----------
    beta_edges : array-like of shape (n_bins + 1,)
    beta_density : array-like of shape (n_bins,)
        Posterior density of beta in each bin.
    k_values : array-like of shape (n_k,)
    k_probabilities : array-like of shape (n_k,)
    k_errors : array-like of shape (n_k,), optional
        Monte Carlo errors of the probabilities, drawn as bars of one error either way.
    beta_trace, k_trace : array-like of shape (n_chains, n_draws), optional
        The chains.

    Attributes
    ----------
    figure_, axes_ : matplotlib objects
        Set by :meth:`plot`: (trace, marginal) of beta above those of k, or without traces the
        two marginals side by side.

    Examples
    --------
    >>> from bayesknn.plots import PosteriorDisplay
    >>> display = PosteriorDisplay([1.0, 1.5, 2.0], [0.8, 1.2], [14, 15], [0.6, 0.4])
    >>> display.plot().axes_.shape
    (1, 2)
    """

    def __init__(
        self,
        beta_edges: Any,
        beta_density: Any,
        k_values: Any,
        k_probabilities: Any,
        *,
        k_errors: Any = None,
        beta_trace: Any = None,
        k_trace: Any = None,
    ) -> None:
        self.beta_edges = np.asarray(beta_edges, dtype=float)
        self.beta_density = np.asarray(beta_density, dtype=float)
        self.k_values = np.asarray(k_values)
        self.k_probabilities = np.asarray(k_probabilities, dtype=float)
        self.k_errors = None if k_errors is None else np.asarray(k_errors, dtype=float)
        if (beta_trace is None) != (k_trace is None):
            raise ValueError("pass both beta_trace and k_trace, or neither")
        self.beta_trace = None if beta_trace is None else np.atleast_2d(beta_trace)
        self.k_trace = None if k_trace is None else np.atleast_2d(k_trace)
        if len(self.beta_edges) != len(self.beta_density) + 1:
            raise ValueError(
                f"beta_edges must be one longer than beta_density, got {len(self.beta_edges)} "
                f"and {len(self.beta_density)}"
            )
        if self.k_values.shape != self.k_probabilities.shape:
            raise ValueError(
                f"k_values and k_probabilities must be equally long, got shapes "
                f"{self.k_values.shape} and {self.k_probabilities.shape}"
            )

    @classmethod
    def from_posterior(
        cls, posterior: Any, *, traces: bool | None = None, axes: Any = None
    ) -> PosteriorDisplay:
        """Draw a posterior.

        Parameters
        ----------
        posterior : GridPosterior or DataTree
        traces : bool, optional
            Whether to draw the chains. By default yes, unless the draws are independent: a
            GridPosterior has no chains at all.
        axes : sequence of matplotlib Axes, optional
            2 x 2 with traces, two without; a new figure by default.

        Returns
        -------
        PosteriorDisplay
        """
        beta_trace = k_trace = None
        if traces is None:
            traces = not is_grid(posterior) and not _is_independent(posterior)
        if traces:
            beta_trace, k_trace = find_draws(posterior)
        marginals = find_marginals(posterior)._asdict()
        return cls(**marginals, beta_trace=beta_trace, k_trace=k_trace).plot(axes=axes)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, traces: bool | None = None, axes: Any = None
    ) -> PosteriorDisplay:
        """Draw the posterior of a fitted classifier, P(k) as in its ``k_probabilities_``.

        Parameters
        ----------
        estimator : BayesianKNeighborsClassifier
            Fitted.
        traces : bool, optional
            Whether to draw the chains; by default where there are chains.
        axes : sequence of matplotlib Axes, optional
            2 x 2 with traces, two without; a new figure by default.

        Returns
        -------
        PosteriorDisplay
        """
        check_is_fitted(estimator, "posterior_")
        return cls.from_posterior(estimator, traces=traces, axes=axes)

    def plot(self, *, axes: Any = None) -> PosteriorDisplay:
        """Draw the marginals, and the traces if there are any.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            2 x 2 with traces, two without; a new figure by default.

        Returns
        -------
        PosteriorDisplay
            Itself.
        """
        if self.beta_trace is None:
            self.figure_, self.axes_ = new_grid(axes, 1, 2, figsize=(6.4, 2.8))
            self._draw_marginals(self.axes_[0], "vertical")
        else:
            self.figure_, self.axes_ = new_grid(axes, 2, 2, sharey="row", width_ratios=(2, 1))
            self._draw_marginals(self.axes_[:, 1], "horizontal")
            self._draw_traces(self.axes_[:, 0], self.beta_trace, self.k_trace)
        for ax in self.axes_.flat:
            tidy(ax)
        return self

    def _draw_marginals(self, axes: Any, orientation: str) -> None:
        beta_ax, k_ax = axes
        upright = orientation == "vertical"
        fill = {"color": tuple(tint(0.45)[0]), "orientation": orientation}
        beta_ax.stairs(self.beta_density, self.beta_edges, fill=True, **fill)
        outline = {"color": COLOURS[0], "linewidth": 1.0, "orientation": orientation}
        beta_ax.stairs(self.beta_density, self.beta_edges, **outline)
        bars, errors = (k_ax.bar, "yerr") if upright else (k_ax.barh, "xerr")
        bars(
            self.k_values,
            self.k_probabilities,
            0.8,
            color=tint(0.45)[0],
            edgecolor=COLOURS[0],
            linewidth=0.5,
            error_kw={"elinewidth": 0.9, "ecolor": INK, "capsize": 0},
            **{errors: self.k_errors},
        )
        # Bars that would hardly be seen are beyond the edge of the picture.
        drawn = self.k_values[self.k_probabilities > 2e-3 * self.k_probabilities.max()]
        limits = (drawn[0] - 1.0, drawn[-1] + 1.0)
        for ax, highest in ((beta_ax, self.beta_density.max()), (k_ax, self._highest_bar())):
            (ax.set_ylim if upright else ax.set_xlim)(0.0, 1.05 * highest)
        if upright:
            k_ax.set(xlabel="k", ylabel="P(k | y)", xlim=limits)
            beta_ax.set(xlabel=r"$\beta$", ylabel="density")
        else:
            k_ax.set(xlabel="P(k | y)", ylim=limits)
            beta_ax.set(xlabel="density")

    def _highest_bar(self) -> float:
        errors = 0.0 if self.k_errors is None else self.k_errors
        return float(np.max(self.k_probabilities + errors))

    @staticmethod
    def _draw_traces(axes: Any, *traces: Any) -> None:
        beta_ax, k_ax = axes
        for ax, trace in zip(axes, traces, strict=True):
            for chain, draws in enumerate(trace):
                # As pixels: a chain of 50,000 draws would be megabytes of vectors.
                ax.plot(draws, color=COLOURS[chain % 8], linewidth=0.4, rasterized=True)
            ax.margins(x=0.01)
        beta_ax.set(ylabel=r"$\beta$")
        beta_ax.tick_params(labelbottom=False)
        k_ax.set(xlabel="draw", ylabel="k")


def _is_independent(posterior: Any) -> bool:
    """Whether the draws were made from a grid, without a chain."""
    tree = getattr(posterior, "posterior_", posterior)
    return getattr(tree, "attrs", {}).get("algorithm") == "grid"
