"""The report's figures: those of ``plots``, as SVG with the ink and the font of the page around it.

Each is one small panel, so that its text can be read on a telephone; the page sets them side by
side where there is room. Legends stand in the page, where names of classes are escaped.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from bayesknn._utils.words import shorten
from bayesknn.plots.style import COLOURS, INK, MARKERS, new_figure, require_matplotlib, tidy

# The same shapes as text, for legends.
GLYPHS = ("●", "▲", "■", "◆", "▼", "✚", "✖", "★")


@contextmanager
def _page_style() -> Iterator[None]:
    """Draw as the page does, whatever the user's own settings are."""
    require_matplotlib()
    from matplotlib import style

    inked = ("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    # Text is text, in the page's font, and text of the data is never mathematics.
    text = {"svg.fonttype": "none", "text.parse_math": False}
    with style.context(dict.fromkeys(inked, INK) | text, after_reset=True):
        yield


def class_colours(n_classes: int) -> list[str]:
    """Return a colour for each class; the first seven can be told apart by colour-blind eyes."""
    import colorsys

    from matplotlib.colors import to_hex

    hues = [(g * 0.618034) % 1.0 for g in range(7, n_classes)]
    others = [to_hex(colorsys.hls_to_rgb(hue, 0.5, 0.55)) for hue in hues]
    # Black is left out: it vanishes on a dark page.
    return [*COLOURS[:7], *others][:n_classes]


@_page_style()
def draw_posterior(classifier: Any) -> tuple[str, str]:
    """Draw the posterior of the number of neighbours k and of the strength beta."""
    from bayesknn.plots import PosteriorDisplay

    (beta_figure, beta_ax), (k_figure, k_ax) = _new(), _new()
    PosteriorDisplay.from_estimator(classifier, traces=False, axes=[beta_ax, k_ax])
    beta_ax.set(xlabel="strength β", ylabel="posterior density", yticks=[])
    k_ax.set(xlabel="number of neighbours k", ylabel="posterior probability")
    k_ax.xaxis.get_major_locator().set_params(integer=True)
    return (
        _as_svg(k_figure, "k", "Bars: the posterior probability of each number of neighbours k"),
        _as_svg(beta_figure, "beta", "Histogram: the posterior of the strength beta"),
    )


@_page_style()
def draw_map(
    axes: tuple[np.ndarray, np.ndarray],
    probabilities: np.ndarray,
    zones: np.ndarray,
    points: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str],
) -> str:
    """Draw class probabilities and zones over two columns, and rows as points.

    Parameters
    ----------
    axes : tuple of two ndarray of shape (s,)
        The values of the columns on a grid.
    probabilities : ndarray of shape (s * s, n_classes)
        At most seven classes. The first column's value changes fastest.
    zones : ndarray of shape (s * s,)
        Index of the class whose zone it is, -1 for none.
    points : ndarray of shape (n, 2)
    labels : ndarray of shape (n,)
        Class indices.
    names : sequence of two str
        The columns.
    """
    from bayesknn.plots import ZoneMapDisplay

    side, (figure, ax) = len(axes[0]), _new()
    classes, names = np.arange(probabilities.shape[1]), [shorten(name, 46) for name in names]
    surface = probabilities.reshape(side, side, -1)
    display = ZoneMapDisplay(*axes, surface, zones.reshape(side, side), classes, names)
    display.plot(points, labels, ax=ax)
    ax.get_legend().remove()
    ax.set(xlim=axes[0][[0, -1]], ylim=axes[1][[0, -1]])
    return _as_svg(figure, "map", "Map of class probabilities and zones over two columns")


@_page_style()
def draw_reliability(probabilities: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> str:
    """Draw how often the likeliest class came true against its probability, and of how many rows.

    Nothing is drawn where there are not two groups of rows to compare.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
    labels : ndarray of shape (n,)
        Class numbers.
    weights : ndarray of shape (n,)
    """
    from bayesknn.plots import ReliabilityDisplay

    classes = np.arange(probabilities.shape[1])
    # No class of G is the likeliest with a probability below 1/G.
    edges = np.linspace(np.floor(10 / len(classes)) / 10, 1.0, 11)
    edges = merge_bins(probabilities.max(axis=1), edges)
    if len(edges) < 3:
        return ""
    figure, axes = _new(n_rows=2, sharex=True, height_ratios=(3, 1))
    ReliabilityDisplay.from_predictions(
        labels, probabilities, classes, kind="top", edges=edges, sample_weight=weights, axes=axes
    )
    axes[0].get_legend().remove()
    axes[0].set(ylabel="observed accuracy")
    axes[1].set(xlabel="predicted probability of the predicted class", ylabel="rows")
    return _as_svg(figure, "reliability", "How often the likeliest class was right, by probability")


@_page_style()
def draw_curves(truth: np.ndarray, probabilities: np.ndarray, weights: np.ndarray) -> list[str]:
    """Draw a ROC curve and a precision-recall curve, each beside what guessing gives."""
    from sklearn import metrics

    curves_of = {"y_true": truth, "y_score": probabilities, "sample_weight": weights}
    false_rate, recall, _ = metrics.roc_curve(**curves_of)
    precision, recalled, _ = metrics.precision_recall_curve(**curves_of)
    curves = []
    for name, style, x, y, guess, labels in (
        # Between thresholds a ROC curve is straight: tied rows are called in any order.
        ("roc", "default", false_rate, recall, (0, 1), ("false positive rate", "recall")),
        # Recall falls along the arrays.
        (
            "pr",
            "steps-post",
            recalled,
            precision,
            [np.average(truth, weights=weights)] * 2,
            ("recall", "precision"),
        ),
    ):
        figure, ax = _new()
        ax.plot((0, 1), guess, "--", color=INK, linewidth=1, alpha=0.6)
        ax.plot(x, y, color=COLOURS[0], drawstyle=style)
        ax.set(xlabel=labels[0], ylabel=labels[1], xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        curves.append(_as_svg(figure, name, f"Curve of {labels[1]} over {labels[0]}"))
    return curves


@_page_style()
def draw_effect(effect: Any, classes: Sequence[int], colours: Sequence[str], number: int) -> str:
    """Draw mean class probabilities over the values of a column.

    Parameters
    ----------
    effect : Effect
    classes : sequence of int
        The classes to draw.
    colours : sequence of str
        One for each class there is.
    number : int
        Of the figure in its section.
    """
    figure, ax = _new()
    at = effect.values if effect.is_number else np.arange(len(effect.values))
    for g in classes:
        line = "-" if effect.is_number else ""
        marker = MARKERS[g % len(MARKERS)]
        ax.plot(at, effect.probabilities[:, g], f"{marker}{line}", color=colours[g], markersize=4.5)
    if np.asarray(effect.values).dtype.kind == "M":
        ax.tick_params(axis="x", rotation=30)
    elif effect.is_number:
        whole = np.all(np.mod(effect.values, 1) == 0)
        ax.xaxis.get_major_locator().set_params(integer=bool(whole))
    if not effect.is_number:
        names = [shorten(str(value), 12) for value in effect.values]
        ax.set_xticks(at, names, rotation=30 if len(names) > 4 else 0)
        ax.set_xlim(-0.5, len(names) - 0.5)
    ax.set(xlabel=shorten(effect.name, 46), ylabel="mean probability", ylim=(-0.02, 1.02))
    return _as_svg(figure, f"effect{number}", f"Mean class probabilities over {effect.name}")


def merge_bins(values: np.ndarray, edges: np.ndarray, fewest: int = 10) -> np.ndarray:
    """Return edges of bins that hold at least ``fewest`` values, or all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.report.figures import merge_bins
    >>> merge_bins(np.repeat([0.1, 0.6, 0.9], [3, 9, 20]), np.array([0, 0.25, 0.5, 0.75, 1]))
    array([0.  , 0.75, 1.  ])
    """
    kept = [edges[0]]
    for edge in edges[1:-1]:
        if np.count_nonzero((values >= kept[-1]) & (values < edge)) >= fewest:
            kept.append(edge)
    while len(kept) > 1 and np.count_nonzero(values >= kept[-1]) < fewest:
        kept.pop()
    return np.array([*kept, edges[-1]])


def _new(n_rows: int = 1, **options: Any) -> tuple[Any, Any]:
    figure, axes = new_figure(n_rows, 1, 4.6, 3.3, **options)
    for ax in axes[:, 0]:
        tidy(ax)
        ax.set_axisbelow(True)
    return figure, axes[:, 0] if n_rows > 1 else axes[0, 0]


def _as_svg(figure: Any, name: str, description: str) -> str:
    """Return the figure as an SVG element to stand in a page.

    The page's style sheet gives it its width and, for INK, its colour; its ids carry the figure's
    name, since an id must be unique in the page.
    """
    import matplotlib as mpl
    from markupsafe import Markup

    target = io.StringIO()
    with warnings.catch_warnings(), mpl.rc_context({"svg.hashsalt": name}):
        # The reader's browser has fonts of its own.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.draw_without_rendering()
        for number, artist in enumerate(figure.findobj()):
            artist.set_gid(f"{name}-{number}")
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(target, format="svg", transparent=True, metadata=nothing)
    svg = target.getvalue()
    picture = Markup('<div role="img" aria-label="{}">{}</div>')
    return picture.format(description, Markup(svg[svg.index("<svg") :]))
