"""Colours, markers and lines that survive colour blindness and a black-and-white printer."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from bayesknn._utils.checks import show
from bayesknn._utils.extras import require

# Okabe and Ito's palette; the first two differ in lightness too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
# One for each colour, so that curves are told apart without it.
LINES: tuple[Any, ...] = (
    "-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 3)), (0, (3, 1)),
)  # fmt: skip
INK = "#222222"
GREY = "#8C8C8C"
# For letters that the figure's own font lacks: matplotlib takes the first of these that has one.
# The last, which matplotlib brings since 3.11, has a box for every letter.
FONTS = (
    "DejaVu Sans", "Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR",
    "WenQuanYi Micro Hei", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Nirmala UI",
    "Arial Unicode MS", "STIXGeneral", "Last Resort High-Efficiency",
)  # fmt: skip


def require_matplotlib() -> None:
    """Say how to get matplotlib if it is not there."""
    require("matplotlib", "plots need", "plot")


def new_axes(ax: Any) -> tuple[Any, Any]:
    """Return a figure and axes, new ones if ``ax`` is None."""
    figure, axes = new_grid(None if ax is None else [ax], 1, 1)
    return figure, axes[0, 0]


def new_grid(axes: Any, n_rows: int, n_columns: int, **options: Any) -> tuple[Any, np.ndarray]:
    """Return a figure and a grid of axes, new ones if ``axes`` is None.

    Parameters
    ----------
    axes : sequence of matplotlib Axes, or None
        In reading order; there must be ``n_rows * n_columns`` of them.
    n_rows, n_columns : int
    **options
        For ``subplots``, where the axes are new.

    Returns
    -------
    figure, axes : matplotlib figure, ndarray of shape (n_rows, n_columns)
    """
    require_matplotlib()
    if axes is None:
        import matplotlib.pyplot as plt

        return plt.subplots(n_rows, n_columns, layout="constrained", squeeze=False, **options)
    axes = np.asarray(axes, dtype=object)
    if axes.size != n_rows * n_columns:
        raise ValueError(
            f"this picture takes {n_rows} x {n_columns} axes, got {axes.size}: "
            f"pass figure.subplots({n_rows}, {n_columns})"
        )
    axes = axes.reshape(n_rows, n_columns)
    return axes[0, 0].figure, axes


def new_figure(n_rows: int, n_columns: int, width: float, height: float, **options: Any) -> Any:
    """Return a figure without a window, and its axes as an array of that shape."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **options)


def tidy(ax: Any) -> None:
    """Finish axes: no frame on the two sides that carry no scale, and fonts for any script."""
    from matplotlib.font_manager import fontManager
    from matplotlib.text import Text

    ax.spines[["top", "right"]].set_visible(False)
    there = set(fontManager.get_font_names())
    for text in ax.findobj(Text):
        if not text.get_text().isascii():
            families = (*text.get_fontfamily(), *FONTS)
            text.set_fontfamily([name for name in families if name in there or name not in FONTS])


def render(figure: Any, kind: str, dpi: int) -> bytes:
    """Return a figure as the content of a "png" or "svg" file.

    Without a date and with a fixed salt, so that the same numbers give the same bytes.
    """
    import matplotlib as mpl

    content = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
    with mpl.rc_context({"svg.hashsalt": "bayesknn"}):
        figure.savefig(content, format=kind, dpi=dpi, metadata=metadata)
    return content.getvalue()


def tint(strength: Any) -> np.ndarray:
    """Return the palette mixed with white, as an array of shape (..., n_colours, 3).

    Parameters
    ----------
    strength : float or ndarray
        1 is the colour itself, 0 is white.
    """
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(colour) for colour in COLOURS])
    return 1 - np.asarray(strength)[..., None, None] * (1 - palette)


def check_known(labels: Any, classes: np.ndarray) -> np.ndarray:
    """Return the labels as an array, if every one of them is a class."""
    labels = np.asarray(labels)
    strange = labels[~np.isin(labels, classes)]
    if len(strange):
        raise ValueError(
            f"{show(strange[0])} is a label of no class; the classes are {classes.tolist()}"
        )
    return labels
