"""The report's figures, as SVG that takes its ink and its font from the page around it.

Each is one small panel, so that its text can be read on a telephone; the page sets them side by
side where there is room. Legends stand in the page, where names of classes are escaped.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayesknn.plots.style import COLOURS, INK, MARKERS, require_matplotlib, tidy
from bayesknn.report.scores import ReliabilityBin

# Points drawn at most: a file of 1e5 circles is slow to open and shows no more.
MAX_POINTS = 2000
# The same shapes as text, for legends.
GLYPHS = ("●", "▲", "■", "◆", "▼", "✚", "✖", "★")
_SIZE = (4.6, 3.3)
_ACCENT = COLOURS[0]
_WRONG = COLOURS[5]
# Text of the data is never mathematics; a fixed salt keeps the bytes the same.
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "bayesknn",
    "text.parse_math": False,
    "font.size": 10,
    "savefig.dpi": 150,
}


def _styled(draw: Callable[..., str]) -> Callable[..., str]:
    """Draw in this module's style, whatever the user's own settings are."""

    @functools.wraps(draw)
    def styled(*arguments: Any, **options: Any) -> str:
        require_matplotlib()
        import matplotlib as mpl

        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(_STYLE)
            return draw(*arguments, **options)

    return styled


def class_colours(n_classes: int) -> list[str]:
    """Return a colour for each class; the first seven can be told apart by colour-blind eyes."""
    import colorsys

    # Black is left out: it vanishes on a dark page.
    colours = list(COLOURS[:7])
    while len(colours) < n_classes:
        hue = (len(colours) * 0.618034) % 1.0
        red, green, blue = colorsys.hls_to_rgb(hue, 0.5, 0.55)
        colours.append(f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}")
    return colours[:n_classes]


@_styled
def draw_k(k_values: np.ndarray, probabilities: np.ndarray) -> str:
    """Draw the posterior of the number of neighbours."""
    figure, ax = _new()
    # The tail beyond one in ten thousand would press the rest into a corner.
    heavy = np.flatnonzero(probabilities >= 1e-4 * probabilities.max())
    window = slice(max(heavy[0] - 1, 0), heavy[-1] + 2)
    ax.bar(k_values[window], probabilities[window], width=0.8, color=_ACCENT, linewidth=0)
    ax.set(xlabel="number of neighbours k", ylabel="posterior probability")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(axis="y", alpha=0.15, color=INK, linewidth=0.8)
    return _finish(figure, "k", "Bars: the posterior probability of each number of neighbours k")


@_styled
def draw_beta(draws: np.ndarray, interval: tuple[float, float]) -> str:
    """Draw the posterior of the strength beta, its 95 % interval darker."""
    figure, ax = _new()
    low, high = np.quantile(draws, [0.0005, 0.9995])
    if high <= low:
        low, high = low - 0.05, low + 0.05
    edges = np.linspace(low, high, 41)
    heights, edges = np.histogram(draws, edges, density=True)
    centres = 0.5 * (edges[:-1] + edges[1:])
    inside = (centres >= interval[0]) & (centres <= interval[1])
    for mask, alpha in ((inside, 1.0), (~inside, 0.4)):
        ax.bar(
            centres[mask], heights[mask], np.diff(edges)[0] * 0.9, color=_ACCENT, alpha=alpha,
            linewidth=0,
        )  # fmt: skip
    ax.set(xlabel="strength β", ylabel="posterior density", yticks=[])
    return _finish(figure, "beta", "Histogram: the posterior of the strength beta")


@_styled
def draw_zones(
    points: np.ndarray,
    labels: np.ndarray,
    colours: Sequence[str],
    names: tuple[str, str],
    *,
    zones: np.ndarray | None = None,
    grid: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
) -> str:
    """Draw rows in a plane, and where the class is sure.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    labels : ndarray of shape (n,)
        Class numbers.
    colours : sequence of str
        One for each class.
    names : tuple of two str
        Of the axes.
    zones : ndarray of shape (n,), optional
        Class number of each row's zone, -1 for uncertain: a sure row is filled, an uncertain one
        is hollow.
    grid : tuple of ndarrays, optional
        x, y and the zone at each grid point: the plane is tinted by them.
    """
    figure, ax = _new((5.6, 4.4))
    if grid is not None:
        from matplotlib.colors import to_rgb

        x, y, winners = grid
        # The last, which is what -1 takes, is clear: where nothing is sure the page shows through.
        tints = np.array([*((*to_rgb(colour), 0.28) for colour in colours), (0, 0, 0, 0)])
        half_x, half_y = 0.5 * (x[1] - x[0]), 0.5 * (y[1] - y[0])
        extent = (x[0] - half_x, x[-1] + half_x, y[0] - half_y, y[-1] + half_y)
        ax.imshow(tints[winners], extent=extent, origin="lower", aspect="auto")
        for g in range(-1, len(colours) - 1):
            inside = (winners == g).astype(float)
            if 0 < inside.mean() < 1:
                ax.contour(x, y, inside, [0.5], colors=INK, linewidths=0.8)
    shown = _thin(len(points))
    order = np.random.default_rng(0).permutation(shown)
    size = 5.0 if len(shown) < 400 else 3.5
    for sure in (False, True):
        for g, colour in enumerate(colours):
            mine = labels[order] == g
            if zones is not None:
                mine &= (zones[order] >= 0) == sure
            elif not sure:
                continue
            ax.plot(
                *points[order[mine]].T,
                MARKERS[g % len(MARKERS)],
                color=colour,
                markerfacecolor=colour if sure else "none",
                markeredgecolor=INK if sure else colour,
                markeredgewidth=0.4 if sure else 1.0,
                markersize=size,
                alpha=0.9,
                rasterized=len(shown) > 600,
            )
    ax.set(xlabel=_shorten(names[0]), ylabel=_shorten(names[1]))
    return _finish(figure, "zones", f"Rows by class over {names[0]} and {names[1]}")


@_styled
def draw_reliability(bins: Sequence[ReliabilityBin]) -> str:
    """Draw how often the predicted class came true against its probability."""
    figure, ax = _new()
    claimed = np.array([b.claimed for b in bins])
    right = np.array([b.right for b in bins])
    errors = np.array([[b.right - b.low, b.high - b.right] for b in bins]).T
    low = max(0.0, min(claimed.min(), min(b.low for b in bins)) - 0.03)
    ax.plot([low, 1], [low, 1], color=INK, linewidth=1, linestyle=(0, (4, 3)), alpha=0.5)
    ax.errorbar(
        claimed, right, yerr=np.maximum(errors, 0), fmt="o", color=_ACCENT, markersize=5,
        elinewidth=1.4, capsize=0,
    )  # fmt: skip
    ax.set(
        xlabel="probability of the predicted class",
        ylabel="how often it was right",
        xlim=(low, 1.02),
        ylim=(low, 1.02),
    )
    ax.grid(alpha=0.15, color=INK, linewidth=0.8)
    return _finish(figure, "reliability", "How often the predicted class was right, by probability")


@_styled
def draw_confidence(probabilities: np.ndarray, labels: np.ndarray) -> str:
    """Draw how the probability of the predicted class is spread, rows that it missed apart."""
    figure, ax = _new()
    claimed = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    edges = np.linspace(min(1 / probabilities.shape[1], claimed.min()), 1.0, 21)
    ax.hist(
        [claimed[right], claimed[~right]], edges, stacked=True, color=[_ACCENT, _WRONG],
        rwidth=0.9, linewidth=0,
    )  # fmt: skip
    ax.set(xlabel="probability of the predicted class", ylabel="rows")
    ax.grid(axis="y", alpha=0.15, color=INK, linewidth=0.8)
    return _finish(figure, "confidence", "Rows by the probability of their predicted class")


def _new(size: tuple[float, float] = _SIZE) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    ax = figure.subplots()
    for setter in (ax.xaxis.label, ax.yaxis.label):
        setter.set_color(INK)
    ax.tick_params(color=INK, labelcolor=INK, length=3)
    for spine in ax.spines.values():
        spine.set_color(INK)
        spine.set_alpha(0.6)
    tidy(ax)
    ax.set_axisbelow(True)
    return figure, ax


def _finish(figure: Any, name: str, description: str) -> str:
    """Return the figure as an SVG element to stand in a page.

    Its text is text, in the page's font; its ink is the page's, light or dark; and its ids carry
    the figure's name, since an id must be unique in the page.
    """
    from markupsafe import escape

    target = io.StringIO()
    figure.savefig(target, format="svg", transparent=True, metadata={"Date": None})
    svg = target.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace(INK, "currentColor")
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
    head = f'<svg role="img" aria-label="{escape(description)}" '
    return re.sub(r'^<svg (?:width="[^"]*" |height="[^"]*" )*', lambda match: head, svg)


def _thin(n: int) -> np.ndarray:
    """Choose the rows to draw: all of them, or a random sample that is always the same."""
    if n <= MAX_POINTS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, MAX_POINTS, replace=False))


def _shorten(name: str, length: int = 48) -> str:
    return name if len(name) <= length else f"{name[: length - 1]}…"
