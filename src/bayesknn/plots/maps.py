"""A classifier of two features as a map: which class wins where, and where it is sure.

A point belongs to the zone of a class if the interval of that class's probability lies above those
of all others (for two classes: does not contain 0.5), and to the zone of uncertainty if there is no
such class: the paper's Figure 'levelset'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesknn.plots.plane import draw_borders, draw_points, draw_shades, plane_around
from bayesknn.plots.style import COLOURS, GREY, INK, check_classes, new_axes, tidy, tint
from bayesknn.predictive import find_zones


class _MapDisplay:
    """A grid over two features and the classes of its points."""

    def __init__(self, x: Any, y: Any, classes: Any, feature_names: Any) -> None:
        self.x = np.asarray(x, dtype=float)
        self.y = np.asarray(y, dtype=float)
        self.classes = check_classes(classes)
        self.feature_names = feature_names

    def _make_axes(self, ax: Any) -> None:
        self.figure_, self.ax_ = new_axes(ax)
        self.ax_.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])

    def _draw_points(self, points: Any, labels: Any, handles: list[Any], others: list[Any]) -> None:
        """Draw the points if there are any, and a legend of them or of the other handles."""
        if points is not None and labels is not None:
            draw_points(self.ax_, points, labels, self.classes)
            others = self.ax_.get_legend_handles_labels()[0]
        if others:
            self.ax_.legend(
                handles=others + handles, framealpha=0.85, edgecolor="none", fontsize="small",
                borderpad=0.3, loc="lower right",
            )  # fmt: skip
        tidy(self.ax_)


class DecisionRegionDisplay(_MapDisplay):
    """The class a classifier of two features predicts at each point of a grid.

    Parameters
    ----------
    x, y : ndarray of shape (resolution,)
        The grid's coordinates.
    winners : ndarray of shape (resolution, resolution)
        Number of the class at ``(x[j], y[i])``.
    classes : ndarray of shape (n_classes,)
        The labels the numbers stand for; at most eight.
    feature_names : sequence of two str
        Names of the axes.

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
        self.winners = np.asarray(winners)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, resolution: int = 200, ax: Any = None
    ) -> DecisionRegionDisplay:
        """Predict on a grid around the points, and draw.

        Parameters
        ----------
        estimator : classifier
            Fitted on two features.
        X : array-like or frame of shape (n, 2)
            The points the grid must cover.
        y : array-like of shape (n,), optional
            Their labels; the points are drawn if given.
        resolution : int, default=200
            Grid points a side.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        DecisionRegionDisplay
        """
        check_is_fitted(estimator)
        plane = plane_around(estimator, X, resolution, "a decision region")
        predicted = estimator.predict(plane.grid)
        winners = np.searchsorted(estimator.classes_, predicted).reshape(resolution, resolution)
        display = cls(plane.x, plane.y, winners, estimator.classes_, plane.names)
        return display.plot(plane.points, y, ax=ax)

    def plot(
        self, points: Any = None, labels: Any = None, *, ax: Any = None
    ) -> DecisionRegionDisplay:
        """Draw the regions, their borders, and the points if both arguments are given.

        Parameters
        ----------
        points : ndarray of shape (n, 2), optional
            Points to draw.
        labels : array-like of shape (n,), optional
            Their classes.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        DecisionRegionDisplay
            Itself.
        """
        self._make_axes(ax)
        draw_shades(self.ax_, self.x, self.y, tint(0.25)[self.winners])
        draw_borders(self.ax_, self.x, self.y, self.winners, len(self.classes))
        self._draw_points(points, labels, [], [])
        return self


class ZoneMapDisplay(_MapDisplay):
    """Class probabilities and zones of a classifier of two features.

    Parameters
    ----------
    x, y : ndarray of shape (resolution,)
        The grid's coordinates.
    probabilities : array-like of shape (resolution, resolution, n_classes)
        Class probabilities at ``(x[j], y[i])``.
    zones : array-like of shape (resolution, resolution)
        Number of the class whose zone it is, -1 for the zone of uncertainty.
    classes : array-like of shape (n_classes,)
        The labels the numbers stand for; at most eight.
    feature_names : sequence of two str
        Names of the axes.

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
        self.probabilities = np.asarray(probabilities, dtype=float)
        self.zones = np.asarray(zones).astype(int)
        shape = (len(self.y), len(self.x))
        if self.probabilities.shape != (*shape, len(self.classes)) or self.zones.shape != shape:
            raise ValueError(
                f"a grid of {shape} and {len(self.classes)} classes does not fit probabilities of "
                f"shape {self.probabilities.shape} and zones of shape {self.zones.shape}"
            )

    @property
    def uncertain_share(self) -> float:
        """Part of the grid that is in the zone of uncertainty."""
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
        """Predict on a grid around the points, and draw.

        Parameters
        ----------
        estimator : BayesianKNeighborsClassifier
            Fitted on two features.
        X : array-like or frame of shape (n, 2)
            The points the grid must cover.
        y : array-like of shape (n,), optional
            Their labels; the points are drawn if given.
        level : float, default=0.95
            Of the intervals.
        of : {"probability", "parameters"}, default="probability"
            Of what the intervals are, as in ``predict_zone``; ``"parameters"`` is the paper's rule.
        kind : {"both", "levels", "zones"}, default="both"
            What to draw, see :meth:`plot`.
        resolution : int, default=150
            Grid points a side.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ZoneMapDisplay
        """
        check_is_fitted(estimator)
        plane = plane_around(estimator, X, resolution, "a zone map")
        shape = (resolution, resolution)
        probabilities = estimator.predict_proba(plane.grid).reshape(*shape, -1)
        zones = find_zones(estimator.predict_interval(plane.grid, level, of))
        display = cls(
            plane.x, plane.y, probabilities, zones.reshape(shape), estimator.classes_, plane.names
        )
        return display.plot(plane.points, y, kind=kind, ax=ax)

    def plot(
        self,
        points: Any = None,
        labels: Any = None,
        *,
        kind: str = "both",
        levels: Sequence[float] | None = None,
        ax: Any = None,
    ) -> ZoneMapDisplay:
        """Draw the map, and the points if both arguments are given.

        Parameters
        ----------
        points : array-like of shape (n, 2), optional
            Points to draw.
        labels : array-like of shape (n,), optional
            Their classes.
        kind : {"both", "levels", "zones"}, default="both"
            ``"levels"``: the colour of the likeliest class, the deeper the likelier it is, with
            level sets of the probability; ``"zones"``: the zones in flat colours, that of
            uncertainty hatched; or both on top of each other.
        levels : sequence of float, optional
            The level sets. Of two classes they are of the second's probability, of more they are
            of the highest probability.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ZoneMapDisplay
            Itself.
        """
        kinds = ("both", "levels", "zones")
        if kind not in kinds:
            raise ValueError(f"kind must be one of {kinds}, got {kind!r}")
        self._make_axes(ax)
        handles: list[Any] = []
        self._shade(kind)
        if kind != "levels":
            handles += self._hatch()
        if kind != "zones":
            handles += self._draw_levels(levels)
        self._draw_points(points, labels, handles, self._patches())
        return self

    def _shade(self, kind: str) -> None:
        winners = self.probabilities.argmax(axis=2)
        if kind == "zones":
            shades = tint(0.4)[np.maximum(self.zones, 0)]
        else:
            # From white, where all classes are equally likely, to the full tint at certainty.
            floor = 1 / len(self.classes)
            sureness = (self.probabilities.max(axis=2) - floor) / (1 - floor)
            shades = np.take_along_axis(tint(0.6 * sureness), winners[..., None, None], axis=2)[
                :, :, 0
            ]
        draw_shades(self.ax_, self.x, self.y, shades)
        if len(self.classes) > 2 and kind != "zones":
            draw_borders(self.ax_, self.x, self.y, winners, len(self.classes))

    def _hatch(self) -> list[Any]:
        from matplotlib.patches import Patch

        pale, hatch = "#E4E4E4", "////"
        uncertain = (self.zones < 0).astype(float)
        if uncertain.any():
            areas = self.ax_.contourf(
                self.x, self.y, uncertain, [0.5, 1.5], colors=[pale], hatches=[hatch]
            )
            areas.set(edgecolor=GREY, linewidth=0.0)
        return [Patch(facecolor=pale, edgecolor=GREY, hatch=hatch, lw=0.0, label="uncertain")]

    def _draw_levels(self, levels: Sequence[float] | None) -> list[Any]:
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
                # Of the upright ones all run up the page, or 0.6 is read as 9.0.
                if 260 < text.get_rotation() < 280:
                    text.set_rotation(text.get_rotation() - 180)
        return [Line2D([], [], color=INK, linewidth=0.7, label=what)]

    def _patches(self) -> list[Any]:
        from matplotlib.patches import Patch

        return [
            Patch(facecolor=tint(0.4)[g], edgecolor=COLOURS[g], label=f"class {label}")
            for g, label in enumerate(self.classes)
        ]
