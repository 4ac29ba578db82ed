"""E[S_k] / k against beta, the curve that path sampling integrates (the paper's Figure 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.plots.style import COLOUR_MAP, GREY, LINES, new_axes, tidy
from bayesknn.plots.table_values import (
    agreement_errors,
    check_k_values,
    check_surface,
    choose_betas,
    tabulate,
)

_N_CURVES = 5
# Standard errors either side that the band covers.
_BAND = 2.0


class ExpectedAgreementDisplay:
    """Expected number of neighbours that agree, over k, as a function of beta for several k.

    Parameters
    ----------
    betas : array-like of shape (n_betas,)
    k_values : array-like of shape (n_k,)
    values : array-like of shape (n_k, n_betas)
        E[S_k] / k.
    errors : array-like of shape (n_k, n_betas), optional
        Their Monte Carlo errors; a band of two errors either side is drawn, often narrower than
        the line.
    limits : tuple of two float, optional
        The values at beta = 0 and as beta grows: n / G and n in the model without class weights.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        Set by :meth:`plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.plots import ExpectedAgreementDisplay
    >>> betas = np.linspace(0, 4, 41)
    >>> ring = 10 * np.exp(2 * betas) / (1 + np.exp(2 * betas))
    >>> display = ExpectedAgreementDisplay(betas, [1], [ring], limits=(5, 10)).plot()
    >>> display.ax_.get_ylabel()
    'E[S] / k'
    """

    def __init__(
        self, betas: Any, k_values: Any, values: Any, errors: Any = None, *, limits: Any = None
    ) -> None:
        self.betas = np.asarray(betas, dtype=float)
        self.k_values = np.asarray(k_values)
        self.values = check_surface(values, self.betas, self.k_values, "values")
        self.errors = None
        if errors is not None:
            self.errors = check_surface(errors, self.betas, self.k_values, "errors")
        self.limits = limits

    @classmethod
    def from_table(
        cls, table: Any, k_values: Any = None, *, n_betas: int = 201, ax: Any = None
    ) -> ExpectedAgreementDisplay:
        """Draw the curves of a table of log Z.

        Parameters
        ----------
        table : PathTable
            Or anything with ``expected_agreement(beta, k)``, ``beta_max`` and ``k_max``.
        k_values : sequence of int, optional
            Up to five from 1 to ``k_max`` by default.
        n_betas : int, default=201
            Values of beta, from 0 to ``beta_max``.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ExpectedAgreementDisplay
        """
        betas = choose_betas(table, n_betas)
        if k_values is None:
            k_values = np.unique(np.rint(np.geomspace(1, table.k_max, _N_CURVES)).astype(int))
        k_values = check_k_values(table, k_values)
        values = tabulate(table.expected_agreement, betas, k_values)
        errors = agreement_errors(table, betas, k_values)
        limits = None
        if hasattr(table, "n_points") and getattr(table, "class_weight", None) is None:
            limits = (table.n_points / table.n_classes, table.n_points)
        return cls(betas, k_values, values, errors, limits=limits).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ExpectedAgreementDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ExpectedAgreementDisplay
            Itself.
        """
        self.figure_, self.ax_ = new_axes(ax)
        import matplotlib as mpl

        shades = mpl.colormaps[COLOUR_MAP](np.linspace(0.0, 0.8, len(self.k_values)))
        for limit in self.limits or ():
            self.ax_.axhline(limit, color=GREY, linewidth=0.6, zorder=0)
        for at, k in enumerate(self.k_values):
            if self.errors is not None:
                reach = _BAND * self.errors[at]
                self.ax_.fill_between(
                    self.betas,
                    self.values[at] - reach,
                    self.values[at] + reach,
                    color=shades[at],
                    alpha=0.25,
                    linewidth=0,
                )
            self.ax_.plot(
                self.betas,
                self.values[at],
                color=shades[at],
                linestyle=LINES[at % len(LINES)],
                linewidth=1.4,
                label=f"k = {k}",
            )
        self.ax_.set(xlabel=r"$\beta$", ylabel="E[S] / k")
        self.ax_.margins(x=0.0)
        self.ax_.legend(frameon=False, loc="center right")
        tidy(self.ax_)
        return self
