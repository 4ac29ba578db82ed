"""Colours, markers and lines that can be distinguished by colour-blind readers and in grey."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from bayesknn._utils.checks import show
from bayesknn._utils.extras import require

# The palette of Okabe and Ito for colour-blind readers. Its first two colours differ in lightness
# too, so that two classes can be distinguished in a grey print.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
# One line style for each colour, so that curves can be distinguished without colours.
LINES: tuple[Any, ...] = (
    "-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 3)), (0, (3, 1)),
)  # fmt: skip
INK = "#222222"
GREY = "#8C8C8C"
# Fallback fonts: matplotlib draws a letter that the figure's font lacks with the first font of this
# list that has it. The last one is part of matplotlib 3.11 and draws a box for every letter.
FONTS = (
    "DejaVu Sans", "Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR",
    "WenQuanYi Micro Hei", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Nirmala UI",
    "Arial Unicode MS", "STIXGeneral", "Last Resort High-Efficiency",
)  # fmt: skip


def require_matplotlib() -> None:
    """Raise ImportError with the command that installs matplotlib if it is missing."""
    require("matplotlib", "plots need", "plot")


def new_axes(ax: Any) -> tuple[Any, Any]:
    """Return ``ax`` and its figure, or a new figure with one axes if ``ax`` is None."""
    figure, axes = new_grid(None if ax is None else [ax], 1, 1)
    return figure, axes[0, 0]


def new_grid(axes: Any, n_rows: int, n_columns: int, **options: Any) -> tuple[Any, np.ndarray]:
    """Return the given axes as a grid, or a new figure with such a grid if ``axes`` is None.

    Parameters
    ----------
    axes : sequence of matplotlib Axes, or None
        ``n_rows * n_columns`` axes, row by row.
    n_rows, n_columns : int
    **options
        Arguments of ``matplotlib.pyplot.subplots``, used only for a new figure.

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
            f"this figure needs {n_rows} x {n_columns} axes, got {axes.size}: "
            f"pass figure.subplots({n_rows}, {n_columns})"
        )
    axes = axes.reshape(n_rows, n_columns)
    return axes[0, 0].figure, axes


def new_figure(n_rows: int, n_columns: int, width: float, height: float, **options: Any) -> Any:
    """Return a new figure outside pyplot and its axes, shape (n_rows, n_columns).

    ``width`` and ``height`` are in inches. Such a figure opens no window and needs no closing.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **options)


def tidy(ax: Any) -> None:
    """Remove the top and right frame lines of axes and set fallback fonts for non-ASCII text."""
    from matplotlib.font_manager import fontManager
    from matplotlib.text import Text

    ax.spines[["top", "right"]].set_visible(False)
    installed = set(fontManager.get_font_names())
    for text in ax.findobj(Text):
        if not text.get_text().isascii():
            families = (*text.get_fontfamily(), *FONTS)
            text.set_fontfamily(
                [each for each in families if each in installed or each not in FONTS]
            )


def render(figure: Any, kind: str, dpi: int) -> bytes:
    """Return the content of a "png" or "svg" file of a figure.

    The file has no date and its SVG ids use a fixed salt, so that equal figures give equal bytes.
    """
    import matplotlib as mpl

    content = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
    with mpl.rc_context({"svg.hashsalt": "bayesknn"}):
        figure.savefig(content, format=kind, dpi=dpi, metadata=metadata)
    return content.getvalue()


def tint(strength: Any) -> np.ndarray:
    """Return the colours of the palette mixed with white, as RGB of shape (..., n_colours, 3).

    Parameters
    ----------
    strength : float or ndarray of any shape
        Proportion of the colour in the mixture: 1 gives the colour itself, 0 gives white.
    """
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(colour) for colour in COLOURS])
    return 1 - np.asarray(strength)[..., None, None] * (1 - palette)


def check_known(labels: Any, classes: np.ndarray) -> np.ndarray:
    """Return the labels as an array; raise ValueError if one of them is not in ``classes``."""
    labels = np.asarray(labels)
    unknown = labels[~np.isin(labels, classes)]
    if len(unknown):
        raise ValueError(
            f"{show(unknown[0])} is not one of the classes, which are {classes.tolist()}"
        )
    return labels
