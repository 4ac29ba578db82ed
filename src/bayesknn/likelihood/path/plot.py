"""E[S] / k along the path and log Z over (beta, k) (the paper's Figures 4 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bayesknn.likelihood.path.table import PathTable

_N_BETAS = 201
_N_CURVES = 5
# Even in lightness, so that it reads the same to colour-blind eyes and in grey.
_COLOUR_MAP = "cividis"


def plot_table(table: PathTable, k_values: Any, axes: Any) -> Any:
    """Draw the two pictures; see :meth:`PathTable.plot`."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "plots need matplotlib, which is not installed: pip install 'bayesknn[plot]'"
        ) from None
    if axes is None:
        _, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    if k_values is None:
        k_values = np.unique(np.rint(np.geomspace(1, table.k_max, _N_CURVES)).astype(int))
    betas = np.linspace(0.0, table.beta_max, _N_BETAS)
    _draw_curves(axes[0], table, betas, k_values, plt.get_cmap(_COLOUR_MAP))
    _draw_surface(axes[1], table, betas)
    return np.asarray(axes)


def _draw_curves(ax: Any, table: PathTable, betas: np.ndarray, k_values: Any, colours: Any) -> None:
    styles = ("-", "--", "-.", ":")
    for at, k in enumerate(k_values):
        colour = colours(0.8 * at / max(len(k_values) - 1, 1))
        values = table.expected_agreement(betas, int(k))
        ax.plot(betas, values, color=colour, linestyle=styles[at % 4], lw=1.8, label=f"k = {k}")
    ax.set(xlabel="beta", ylabel="E[S] / k", xlim=(0.0, table.beta_max))
    ax.legend(frameon=False, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)


def _draw_surface(ax: Any, table: PathTable, betas: np.ndarray) -> None:
    ks = np.arange(1, table.k_max + 1)
    surface = np.array([table.log_normalizer(betas, int(k)) for k in ks])
    mesh = ax.pcolormesh(betas, ks, surface, shading="nearest", cmap=_COLOUR_MAP, rasterized=True)
    if table.k_max > 1:
        ax.contour(betas, ks, surface, levels=10, colors="white", linewidths=0.6)
    ax.figure.colorbar(mesh, ax=ax, label="log Z")
    ax.set(xlabel="beta", ylabel="number of neighbours k")
