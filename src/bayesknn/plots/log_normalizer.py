"""log Z over (beta, k), and the Monte Carlo error of it (the paper's Figure 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.plots.style import COLOUR_MAP, INK, new_axes
from bayesknn.plots.table_values import check_k_values, check_surface, choose_betas, tabulate

_MAX_ROWS = 125


class LogNormalizerDisplay:
    """The log normalizing constant as a map over (beta, k), with contours.

    Parameters
    ----------
    betas : array-like of shape (n_betas,)
    k_values : array-like of shape (n_k,)
    log_normalizers : array-like of shape (n_k, n_betas)
    errors : array-like of shape (n_k, n_betas), optional
        Their Monte Carlo errors, for ``plot(kind="error")``.

    Attributes
    ----------
    figure_, ax_, colorbar_ : matplotlib objects
        Set by :meth:`plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.plots import LogNormalizerDisplay
    >>> betas = np.linspace(0, 4, 41)
    >>> values = np.tile(100 * np.logaddexp(0, betas), (3, 1))
    >>> LogNormalizerDisplay(betas, [1, 2, 3], values).plot().colorbar_.ax.get_ylabel()
    'log Z'
    """

    def __init__(self, betas: Any, k_values: Any, log_normalizers: Any, errors: Any = None) -> None:
        self.betas = np.asarray(betas, dtype=float)
        self.k_values = np.asarray(k_values)
        self.log_normalizers = check_surface(
            log_normalizers, self.betas, self.k_values, "log_normalizers"
        )
        self.errors = None
        if errors is not None:
            self.errors = check_surface(errors, self.betas, self.k_values, "errors")

    @classmethod
    def from_table(
        cls,
        table: Any,
        k_values: Any = None,
        *,
        n_betas: int = 101,
        kind: str = "value",
        ax: Any = None,
    ) -> LogNormalizerDisplay:
        """Draw a table of log Z.

        Parameters
        ----------
        table : PathTable
            Or anything with ``log_normalizer(beta, k)``, ``beta_max`` and ``k_max``, and
            ``error(beta, k)`` where there is one.
        k_values : sequence of int, optional
            All of the table by default, or an even 125 of them.
        n_betas : int, default=101
            Values of beta, from 0 to ``beta_max``.
        kind : {"value", "error"}, default="value"
            Whether log Z or its Monte Carlo error is drawn.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        LogNormalizerDisplay
        """
        betas = choose_betas(table, n_betas)
        if k_values is None:
            n_rows = min(table.k_max, _MAX_ROWS)
            k_values = np.unique(np.rint(np.linspace(1, table.k_max, n_rows)).astype(int))
        k_values = check_k_values(table, k_values)
        values = tabulate(table.log_normalizer, betas, k_values)
        errors = tabulate(table.error, betas, k_values) if hasattr(table, "error") else None
        return cls(betas, k_values, values, errors).plot(kind=kind, ax=ax)

    def plot(
        self, *, kind: str = "value", n_contours: int = 9, ax: Any = None
    ) -> LogNormalizerDisplay:
        """Draw the map.

        Parameters
        ----------
        kind : {"value", "error"}, default="value"
            Whether log Z or its Monte Carlo error is drawn.
        n_contours : int, default=9
            About how many contours to draw over log Z; the error has none, being noise.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        LogNormalizerDisplay
            Itself.
        """
        if kind not in ("value", "error"):
            raise ValueError(f"kind must be 'value' or 'error', got {kind!r}")
        surface = self.log_normalizers if kind == "value" else self.errors
        if surface is None:
            raise ValueError("there are no errors to draw: pass errors")
        self.figure_, self.ax_ = new_axes(ax)
        mesh = self.ax_.pcolormesh(
            self.betas, self.k_values, surface, shading="nearest", cmap=COLOUR_MAP, rasterized=True
        )
        label = "log Z" if kind == "value" else "Monte Carlo error of log Z"
        self.colorbar_ = self.figure_.colorbar(mesh, ax=self.ax_, label=label)
        if kind == "value" and n_contours and len(self.k_values) > 1:
            self._draw_contours(n_contours)
        self.ax_.set(xlabel=r"$\beta$", ylabel="k")
        return self

    def _draw_contours(self, n_contours: int) -> None:
        from matplotlib.ticker import MaxNLocator

        low, high = self.log_normalizers.min(), self.log_normalizers.max()
        levels = MaxNLocator(n_contours + 1).tick_values(low, high)
        # White is not seen on the light end of the colours, nor ink on the dark one.
        colours = ["white" if level < (low + high) / 2 else INK for level in levels]
        lines = self.ax_.contour(
            self.betas,
            self.k_values,
            self.log_normalizers,
            levels=levels,
            colors=colours,
            linewidths=0.7,
        )
        # The scale tells which contour is which.
        self.colorbar_.add_lines(lines)
