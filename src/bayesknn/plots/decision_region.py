"""Which class wins where in the plane, with the points (compare the paper's Figures 1 and 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesknn.plots.plane import draw_borders, draw_points, extent, plane_around
from bayesknn.plots.style import check_classes, new_axes, tidy, tint


class DecisionRegionDisplay:
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
        self.x = x
        self.y = y
        self.winners = winners
        self.classes = check_classes(classes)
        self.feature_names = feature_names

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
        self.figure_, self.ax_ = new_axes(ax)
        self.ax_.imshow(
            tint(0.25)[self.winners],
            extent=extent(self.x, self.y),
            origin="lower",
            aspect="auto",
            interpolation="nearest",
        )
        draw_borders(self.ax_, self.x, self.y, self.winners, len(self.classes))
        if points is not None and labels is not None:
            draw_points(self.ax_, points, labels, self.classes)
            self.ax_.legend(frameon=True, framealpha=0.85, edgecolor="none", loc="lower right")
        self.ax_.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])
        tidy(self.ax_)
        return self
