"""Traces and marginal distributions of beta and k (Figures 4, 7, 8, 9 and 13 of the paper).

All functions accept three forms of a posterior: a :class:`~bayesknn.posterior.GridPosterior`; a
DataTree with ``posterior/beta`` and ``posterior/k`` over (chain, draw); and a fitted classifier
that has such a DataTree as ``posterior_``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.interpolate import PchipInterpolator
from sklearn.utils.validation import check_is_fitted

from bayesknn.plots.style import COLOURS, INK, new_grid, tidy, tint

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class PosteriorDisplay:
    """Marginal posterior distributions of beta and k, with the traces of the chains if given.

    Parameters
    ----------
    beta_edges : array-like of shape (n_bins + 1,)
        Edges of the bins of beta.
    beta_density : array-like of shape (n_bins,)
        Posterior density of beta in each bin.
    k_values : array-like of shape (n_k,)
    k_probabilities : array-like of shape (n_k,)
        Posterior probability of each k.
    k_errors : array-like of shape (n_k,), optional
        Monte Carlo standard errors of the probabilities, drawn as bars of one error either way.
    beta_trace, k_trace : array-like of shape (n_chains, n_draws), optional
        Draws of the chains.

    Attributes
    ----------
    figure_, axes_ : matplotlib Figure, ndarray of Axes
        Set by :meth:`plot`. With traces the axes have shape (2, 2): trace and marginal of beta in
        the first row, of k in the second. Without traces they have shape (1, 2): the two marginals.

    Examples
    --------
    >>> from bayesknn.plots import PosteriorDisplay
    >>> display = PosteriorDisplay([1.0, 1.5, 2.0], [0.8, 1.2], [14, 15], [0.6, 0.4])
    >>> display.plot().axes_.shape
    (1, 2)
    """

    k_errors: np.ndarray | None
    beta_trace: np.ndarray | None
    k_trace: np.ndarray | None
    figure_: Figure
    axes_: np.ndarray

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
        self.beta_edges: np.ndarray = np.asarray(beta_edges, dtype=float)
        self.beta_density: np.ndarray = np.asarray(beta_density, dtype=float)
        self.k_values: np.ndarray = np.asarray(k_values)
        self.k_probabilities: np.ndarray = np.asarray(k_probabilities, dtype=float)
        self.k_errors = None if k_errors is None else np.asarray(k_errors, dtype=float)
        self.beta_trace = None if beta_trace is None else np.atleast_2d(beta_trace)
        self.k_trace = None if k_trace is None else np.atleast_2d(k_trace)

    @property
    def beta_middles(self) -> np.ndarray:
        """Middles of the bins of beta."""
        return (self.beta_edges[1:] + self.beta_edges[:-1]) / 2

    @classmethod
    def from_posterior(
        cls, posterior: Any, *, traces: bool | None = None, axes: Any = None
    ) -> PosteriorDisplay:
        """Draw the marginals of a posterior, and the traces of its chains.

        Parameters
        ----------
        posterior : GridPosterior or DataTree
        traces : bool, optional
            Whether to draw the traces. By default they are drawn if the posterior has Markov
            chains: a GridPosterior has none, and draws from a grid are independent.
        axes : sequence of matplotlib Axes, optional
            Four axes, row by row, with traces; two without. A new figure by default.

        Returns
        -------
        PosteriorDisplay
        """
        display = compute_marginals(posterior)
        if traces is None:
            tree = getattr(posterior, "posterior_", posterior)
            traces = not _is_grid(posterior) and tree.attrs.get("algorithm") != "grid"
        if traces:
            display.beta_trace, display.k_trace = get_draws(posterior)
        return display.plot(axes=axes)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, traces: bool | None = None, axes: Any = None
    ) -> PosteriorDisplay:
        """Draw the posterior of a fitted classifier, with ``k_probabilities_`` as marginal of k.

        Parameters
        ----------
        estimator : BayesianKNeighborsClassifier
            Fitted classifier.
        traces : bool, optional
            Whether to draw the traces; by default they are drawn if inference ran Markov chains.
        axes : sequence of matplotlib Axes, optional
            Four axes, row by row, with traces; two without. A new figure by default.

        Returns
        -------
        PosteriorDisplay
        """
        check_is_fitted(estimator, "posterior_")
        return cls.from_posterior(estimator, traces=traces, axes=axes)

    def plot(self, *, axes: Any = None) -> PosteriorDisplay:
        """Draw the marginals, and the traces if the display has any.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            Four axes, row by row, with traces; two without. A new figure by default.

        Returns
        -------
        PosteriorDisplay
            The display itself.
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
        (beta_ax, k_ax), upright = axes, orientation == "vertical"
        fill = {"color": tuple(tint(0.45)[0]), "orientation": orientation}
        beta_ax.stairs(self.beta_density, self.beta_edges, fill=True, **fill)
        outline = {"color": COLOURS[0], "linewidth": 1.0, "orientation": orientation}
        beta_ax.stairs(self.beta_density, self.beta_edges, **outline)
        bars, errors = (k_ax.bar, "yerr") if upright else (k_ax.barh, "xerr")
        style = {"color": tint(0.45)[0], "edgecolor": COLOURS[0], "linewidth": 0.5}
        style |= {"error_kw": {"elinewidth": 0.9, "ecolor": INK}, errors: self.k_errors}
        bars(self.k_values, self.k_probabilities, 0.8, **style)
        # The axis of k ends at the last bar of at least 0.2 % of the height of the highest bar.
        visible = self.k_values[self.k_probabilities > 2e-3 * self.k_probabilities.max()]
        limits = (visible[0] - 1.0, visible[-1] + 1.0)
        ends = self.k_probabilities + (0.0 if self.k_errors is None else self.k_errors)
        density_range = (0.0, 1.05 * self.beta_density.max())
        k_range = (0.0, 1.05 * np.max(ends))
        if upright:
            k_ax.set(xlabel="k", ylabel="P(k | y)", xlim=limits, ylim=k_range)
            beta_ax.set(xlabel=r"$\beta$", ylabel="density", ylim=density_range)
        else:
            k_ax.set(xlabel="P(k | y)", ylim=limits, xlim=k_range)
            beta_ax.set(xlabel="density", xlim=density_range)

    @staticmethod
    def _draw_traces(axes: Any, *traces: Any) -> None:
        beta_ax, k_ax = axes
        for ax, trace in zip(axes, traces, strict=True):
            for chain, draws in enumerate(trace):
                # Rasterising keeps SVG files small: a chain of 50,000 draws has megabytes of paths.
                ax.plot(draws, color=COLOURS[chain % 8], linewidth=0.4, rasterized=True)
            ax.margins(x=0.01)
        beta_ax.set(ylabel=r"$\beta$")
        beta_ax.tick_params(labelbottom=False)
        k_ax.set(xlabel="draw", ylabel="k")


def compute_marginals(posterior: Any, beta_edges: Any = None) -> PosteriorDisplay:
    """Return a display with the marginals of a posterior, without drawing it.

    Parameters
    ----------
    posterior : GridPosterior, DataTree or fitted classifier
    beta_edges : array-like of shape (n_bins + 1,), optional
        Edges of the bins of beta; by default chosen from the posterior.

    Returns
    -------
    PosteriorDisplay
    """
    edges = _choose_edges(posterior) if beta_edges is None else beta_edges
    if not _is_grid(posterior):
        beta, k = get_draws(posterior)
        density = np.histogram(beta, edges, density=True)[0]
        if hasattr(posterior, "k_probabilities_"):
            ks, probabilities = posterior.k_values_, posterior.k_probabilities_
            errors = posterior.k_probabilities_error_
        else:
            ks, counts = np.arange(k.min(), k.max() + 1), np.bincount(k.ravel())
            probabilities, errors = counts[k.min() :] / k.size, None
        return PosteriorDisplay(edges, density, ks, probabilities, k_errors=errors)
    # The weights of a grid are the probabilities of its cells. Interpolating their cumulative sum
    # gives a density that varies within a cell; a constant one would show as steps in the finer
    # bins of the figure.
    mass = np.zeros(len(edges) - 1)
    for cells, weights in zip(posterior.cells, posterior.weights, strict=True):
        cumulative = PchipInterpolator(cells, np.append(0.0, np.cumsum(weights)))
        mass += np.diff(cumulative(np.clip(edges, cells[0], cells[-1])))
    ks = np.arange(1, posterior.k_max + 1)
    errors = posterior.k_probabilities_error if len(posterior.replicates) else None
    density = mass / np.diff(edges)
    return PosteriorDisplay(edges, density, ks, posterior.k_probabilities, k_errors=errors)


def beta_range(posterior: Any) -> tuple[float, float]:
    """Return the range of beta to plot: the 1e-4 and 1 - 1e-4 quantiles, or the range of draws."""
    if _is_grid(posterior):
        order = np.argsort(posterior.betas, axis=None)
        betas = posterior.betas.ravel()[order]
        cumulative = np.cumsum(posterior.weights.ravel()[order])
        low, high = np.searchsorted(cumulative, [1e-4, 1 - 1e-4])
        return float(betas[max(low - 1, 0)]), float(betas[min(high + 1, len(betas) - 1)])
    beta, _ = get_draws(posterior)
    return float(beta.min()), float(beta.max())


def get_draws(posterior: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the draws of beta and k, each of shape (n_chains, n_draws)."""
    tree = getattr(posterior, "posterior_", posterior)
    try:
        group = tree["posterior"]
        return np.asarray(group["beta"], dtype=float), np.asarray(group["k"])
    except (KeyError, TypeError, IndexError):
        raise ValueError(
            "posterior must be a GridPosterior, a DataTree with posterior/beta and posterior/k, or "
            f"a fitted classifier with posterior_, got a {type(posterior).__name__}"
        ) from None


def _is_grid(posterior: Any) -> bool:
    """Return whether a posterior is given by weights on a grid."""
    return hasattr(posterior, "weights")


def _choose_edges(posterior: Any) -> np.ndarray:
    low, high = beta_range(posterior)
    if _is_grid(posterior):
        # A grid has no Monte Carlo noise, so bins may be too narrow for steps to be visible.
        return np.linspace(low, high, 301)
    edges = np.histogram_bin_edges(get_draws(posterior)[0], bins="fd")
    return edges if len(edges) <= 61 else np.linspace(low, high, 61)
