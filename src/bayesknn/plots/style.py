"""Colours and markers that survive colour blindness and a black-and-white printer."""

from __future__ import annotations

from typing import Any

# Okabe and Ito's palette; the first two differ in lightness too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
INK = "#222222"


def require_matplotlib() -> None:
    """Say how to get matplotlib if it is not there."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "plots need matplotlib, which is not installed: pip install 'bayesknn[plot]'"
        ) from None


def new_axes(ax: Any = None) -> tuple[Any, Any]:
    """Return a figure and axes, new ones if ``ax`` is None."""
    require_matplotlib()
    if ax is not None:
        return ax.figure, ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")


def tidy(ax: Any) -> None:
    """Take the frame away on the two sides that carry no scale."""
    ax.spines[["top", "right"]].set_visible(False)
