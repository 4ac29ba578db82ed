"""Maps of a classifier of two features: predicted class, class probabilities and zones.

A point is in the zone of a class if the interval of that class's probability lies above the
intervals of all other classes (for two classes: above 0.5). If there is no such class, the point is
in the zone of uncertainty. The zone map is Figure 3 of the paper (fig:levelset).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesknn._utils.checks import check_choice, check_count
from bayesknn.plots.style import (
    COLOURS,
    GREY,
    INK,
    MARKERS,
    check_known,
    new_axes,
    tidy,
    tint,
)
from bayesknn.predictive import find_zones

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _MapDisplay:
    """Base class of the maps: a grid over two features, the classes and the axes."""

    figure_: Figure
    ax_: Axes

    def __init__(self, x: Any, y: Any, classes: Any, feature_names: Any) -> None:
        self.x: np.ndarray = np.asarray(x, dtype=float)
        self.y: np.ndarray = np.asarray(y, dtype=float)
        self.classes: np.ndarray = np.asarray(classes)
        if len(self.classes) > len(COLOURS):
            raise ValueError(f"a map shows at most {len(COLOURS)} classes, got {len(self.classes)}")
        self.feature_names = feature_names

    def _make_axes(self, ax: Any) -> None:
        self.figure_, self.ax_ = new_axes(ax)
        self.ax_.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])

    def _draw_points(self, points: Any, labels: Any, handles: list[Any], others: list[Any]) -> None:
        """Draw the points, if given, and the legend.

        The legend lists ``handles``, after the markers of the classes if points are drawn and
        after ``others`` if not.
        """
        if points is not None and labels is not None:
            draw_points(self.ax_, points, labels, self.classes)
            others = self.ax_.get_legend_handles_labels()[0]
        if others:
            self.ax_.legend(
                handles=others + handles, frameon=True, framealpha=0.85, edgecolor="none",
                fontsize="small", borderpad=0.3, loc="lower right",
            )  # fmt: skip
        tidy(self.ax_)


class DecisionRegionDisplay(_MapDisplay):
    """Map of the class predicted at each point of a grid over two features.

    Parameters
    ----------
    x, y : ndarray of shape (resolution,)
        Coordinates of the grid along the two features.
    winners : ndarray of shape (resolution, resolution)
        Index of the predicted class at ``(x[j], y[i])``.
    classes : ndarray of shape (n_classes,)
        Labels of the classes, at most eight.
    feature_names : sequence of two str
        Labels of the two axes.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        Set by :meth:`plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.plots import DecisionRegionDisplay
    >>> grid = np.linspace(0, 1, 5)
    >>> display = DecisionRegionDisplay(grid, grid, np.eye(5, dtype=int), np.array(["a", "b"]))
    >>> display.winners.shape
    (5, 5)
    """

    def __init__(
        self, x: Any, y: Any, winners: Any, classes: Any, feature_names: Any = ("x1", "x2")
    ) -> None:
        super().__init__(x, y, classes, feature_names)
        self.winners: np.ndarray = np.asarray(winners)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, resolution: int = 200, ax: Any = None
    ) -> DecisionRegionDisplay:
        """Predict on a grid that covers the given points, and draw the decision regions.

        Parameters
        ----------
        estimator : classifier
            Classifier fitted to two features.
        X : array-like or frame of shape (n, 2)
            Points that the grid must cover.
        y : array-like of shape (n,), optional
            Labels of these points. If given, the points are drawn.
        resolution : int, default=200
            Number of grid points along each feature.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        DecisionRegionDisplay
        """
        check_is_fitted(estimator)
        x1, x2, grid, points, names = plane_around(estimator, X, resolution, "a decision region")
        predicted = np.searchsorted(estimator.classes_, estimator.predict(grid))
        winners = predicted.reshape(resolution, resolution)
        return cls(x1, x2, winners, estimator.classes_, names).plot(points, y, ax=ax)

    def plot(
        self, points: Any = None, labels: Any = None, *, ax: Any = None
    ) -> DecisionRegionDisplay:
        """Draw the regions and their borders, and labelled points if given.

        Parameters
        ----------
        points : ndarray of shape (n, 2), optional
            Points to draw. Without ``labels`` they are not drawn.
        labels : array-like of shape (n,), optional
            Classes of the points.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        DecisionRegionDisplay
            The display itself.
        """
        self._make_axes(ax)
        draw_shades(self.ax_, self.x, self.y, tint(0.25)[self.winners])
        draw_borders(self.ax_, self.x, self.y, self.winners, len(self.classes))
        self._draw_points(points, labels, [], [])
        return self


class ZoneMapDisplay(_MapDisplay):
    """Map of the class probabilities and zones on a grid over two features.

    Parameters
    ----------
    x, y : ndarray of shape (resolution,)
        Coordinates of the grid along the two features.
    probabilities : array-like of shape (resolution, resolution, n_classes)
        Class probabilities at ``(x[j], y[i])``.
    zones : array-like of shape (resolution, resolution)
        Index of the class whose zone contains ``(x[j], y[i])``, -1 in the zone of uncertainty.
    classes : array-like of shape (n_classes,)
        Labels of the classes, at most eight.
    feature_names : sequence of two str
        Labels of the two axes.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        Set by :meth:`plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.plots import ZoneMapDisplay
    >>> x = np.linspace(0, 1, 50)
    >>> second = np.tile(x, (50, 1))
    >>> zones = np.where(abs(second - 0.5) < 0.1, -1, second > 0.5)
    >>> display = ZoneMapDisplay(x, x, np.dstack([1 - second, second]), zones, ["a", "b"])
    >>> round(display.uncertain_share, 3)
    0.2
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        probabilities: Any,
        zones: Any,
        classes: Any,
        feature_names: Any = ("x1", "x2"),
    ) -> None:
        super().__init__(x, y, classes, feature_names)
        self.probabilities: np.ndarray = np.asarray(probabilities, dtype=float)
        self.zones: np.ndarray = np.asarray(zones).astype(int)

    @property
    def uncertain_share(self) -> float:
        """Proportion of the grid points that are in the zone of uncertainty."""
        return float(np.mean(self.zones < 0))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        level: float = 0.95,
        of: str = "probability",
        kind: str = "both",
        resolution: int = 150,
        ax: Any = None,
    ) -> ZoneMapDisplay:
        """Predict on a grid that covers the given points, and draw the map.

        Parameters
        ----------
        estimator : BayesianKNeighborsClassifier
            Classifier fitted to two features.
        X : array-like or frame of shape (n, 2)
            Points that the grid must cover.
        y : array-like of shape (n,), optional
            Labels of these points. If given, the points are drawn.
        level : float, default=0.95
            Level of the intervals that define the zones.
        of : {"probability", "parameters"}, default="probability"
            Kind of interval, as in ``predict_zone``. ``"parameters"`` gives the zones of the paper.
        kind : {"both", "levels", "zones"}, default="both"
            Layers of the map, see :meth:`plot`.
        resolution : int, default=150
            Number of grid points along each feature.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        ZoneMapDisplay
        """
        check_is_fitted(estimator)
        x1, x2, grid, points, names = plane_around(estimator, X, resolution, "a zone map")
        shape = (resolution, resolution)
        probabilities = estimator.predict_proba(grid).reshape(*shape, -1)
        zones = find_zones(estimator.predict_interval(grid, level, of)).reshape(shape)
        display = cls(x1, x2, probabilities, zones, estimator.classes_, names)
        return display.plot(points, y, kind=kind, ax=ax)

    def plot(
        self,
        points: Any = None,
        labels: Any = None,
        *,
        kind: str = "both",
        levels: Sequence[float] | None = None,
        ax: Any = None,
    ) -> ZoneMapDisplay:
        """Draw the map, and labelled points if given.

        Parameters
        ----------
        points : array-like of shape (n, 2), optional
            Points to draw. Without ``labels`` they are not drawn.
        labels : array-like of shape (n,), optional
            Classes of the points.
        kind : {"both", "levels", "zones"}, default="both"
            ``"levels"`` shades each point in the colour of its most probable class, in proportion
            to the probability, and adds contour lines of the probability. ``"zones"`` fills each
            zone with one colour and hatches the zone of uncertainty. ``"both"`` draws both layers,
            with the shading of ``"levels"``.
        levels : sequence of float, optional
            Probabilities at which contour lines are drawn. With two classes they are contours of
            the second class's probability, with more classes of the highest class probability.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        ZoneMapDisplay
            The display itself.
        """
        check_choice(kind, "kind", ("both", "levels", "zones"))
        self._make_axes(ax)
        self._shade(kind)
        handles = [] if kind == "levels" else [self._hatch()]
        handles += [] if kind == "zones" else [self._draw_levels(levels)]
        self._draw_points(points, labels, handles, self._patches())
        return self

    def _shade(self, kind: str) -> None:
        winners = self.probabilities.argmax(axis=2)
        if kind == "zones":
            shades = tint(0.4)[np.maximum(self.zones, 0)]
        else:
            # The shade is white where all classes are equally probable, and has its full strength
            # of 0.6 where one class has probability 1.
            floor = 1 / len(self.classes)
            strength = (self.probabilities.max(axis=2) - floor) / (1 - floor)
            i, j = np.indices(winners.shape)
            shades = tint(0.6 * strength)[i, j, winners]
        draw_shades(self.ax_, self.x, self.y, shades)
        if len(self.classes) > 2 and kind != "zones":
            draw_borders(self.ax_, self.x, self.y, winners, len(self.classes))

    def _hatch(self) -> Any:
        from matplotlib.patches import Patch

        pale, uncertain = "#E4E4E4", (self.zones < 0).astype(float)
        if uncertain.any():
            style: dict[str, Any] = {"levels": [0.5, 1.5], "colors": [pale], "hatches": ["////"]}
            areas = self.ax_.contourf(self.x, self.y, uncertain, **style)
            areas.set(edgecolor=GREY, linewidth=0.0)
        return Patch(facecolor=pale, edgecolor=GREY, hatch="////", lw=0.0, label="uncertain")

    def _draw_levels(self, levels: Sequence[float] | None) -> Any:
        from matplotlib.lines import Line2D

        if len(self.classes) == 2:
            surface, what = self.probabilities[..., 1], f"P(class {self.classes[1]})"
            levels = (0.1, 0.25, 0.5, 0.75, 0.9) if levels is None else levels
        else:
            surface, what = self.probabilities.max(axis=2), "highest probability"
            levels = (0.6, 0.9) if levels is None else levels
        inside = sorted(each for each in levels if surface.min() < each < surface.max())
        if inside:
            widths = [1.3 if len(self.classes) == 2 and each == 0.5 else 0.7 for each in inside]
            lines = self.ax_.contour(self.x, self.y, surface, inside, colors=INK, linewidths=widths)
            for text in self.ax_.clabel(lines, fontsize="x-small", fmt="%g"):
                # All vertical labels are turned to run upwards. If some ran downwards, 0.6 could be
                # read as 9.0.
                if 260 < text.get_rotation() < 280:
                    text.set_rotation(text.get_rotation() - 180)
        return Line2D([], [], color=INK, linewidth=0.7, label=what)

    def _patches(self) -> list[Any]:
        from matplotlib.patches import Patch

        return [
            Patch(facecolor=tint(0.4)[g], edgecolor=COLOURS[g], label=f"class {label}")
            for g, label in enumerate(self.classes)
        ]


def plane_around(estimator: Any, X: Any, resolution: int, what: str) -> tuple[Any, ...]:
    """Return a grid that covers points with a margin of 5 % of their range on each side.

    Parameters
    ----------
    estimator : classifier
        Fitted classifier. If it was fitted to a frame, X must be a frame and the grid is one too.
    X : array-like or frame of shape (n, 2)
        Points to cover.
    resolution : int
        Number of grid points along each feature.
    what : str
        Name of the figure for error messages, such as "a zone map".

    Returns
    -------
    x, y : ndarray of shape (resolution,)
        Coordinates of the grid along the two features.
    grid : ndarray or frame of shape (resolution ** 2, 2)
        Grid points as input of the estimator, with the first feature changing fastest.
    points : ndarray of shape (n, 2)
        X as an array.
    names : tuple of two str
        Names of the features.
    """
    points = np.asarray(X, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"{what} needs X with two columns, got shape {points.shape}")
    if len(points) == 0 or not np.isfinite(points).all():
        raise ValueError(f"{what} needs rows of finite values, but X is empty or not finite")
    check_count(resolution, "resolution", low=2)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.05 * np.where(high > low, high - low, 1.0)
    x, y = np.linspace(low - margin, high + margin, resolution).T
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x, y)])
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return x, y, grid, points, ("x1", "x2")
    if not hasattr(X, "columns"):
        raise ValueError(f"the classifier was fitted to the columns {list(names)}; pass a frame")
    frame = type(X)(dict(zip(names, grid.T, strict=True)))
    return x, y, frame, points, (str(names[0]), str(names[1]))


def draw_shades(ax: Any, x: np.ndarray, y: np.ndarray, shades: np.ndarray) -> None:
    """Fill the cell around each grid point with its colour in ``shades``."""
    half_x, half_y = 0.5 * (x[1] - x[0]), 0.5 * (y[1] - y[0])
    extent = (x[0] - half_x, x[-1] + half_x, y[0] - half_y, y[-1] + half_y)
    ax.imshow(shades, extent=extent, origin="lower", aspect="auto", interpolation="nearest")


def draw_points(ax: Any, points: Any, labels: Any, classes: np.ndarray) -> None:
    """Draw each point with the marker and the colour of its class."""
    points, labels = np.asarray(points, dtype=float), check_known(labels, classes)
    if len(points) != len(labels):
        raise ValueError(f"each point needs one label, got {len(points)} and {len(labels)}")
    for g, label in enumerate(classes):
        style = {"color": COLOURS[g], "markersize": 4.0, "label": f"class {label}"}
        edge = {"markeredgecolor": INK, "markeredgewidth": 0.5}
        ax.plot(*points[labels == label].T, MARKERS[g], **style, **edge)


def draw_borders(
    ax: Any, x: np.ndarray, y: np.ndarray, winners: np.ndarray, n_classes: int
) -> None:
    """Draw the borders between the regions of different predicted classes."""
    # Every border separates two classes, so the outlines of all classes but the last include it.
    for g in range(n_classes - 1):
        inside = (winners == g).astype(float)
        if 0 < inside.mean() < 1:
            ax.contour(x, y, inside, [0.5], colors=INK, linewidths=0.9)
