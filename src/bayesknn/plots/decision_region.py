"""Which class wins where in the plane, with the points (compare the paper's Figures 1 and 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesknn.plots.style import COLOURS, INK, MARKERS, new_axes, tidy


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

    def __init__(self, x, y, winners, classes, feature_names=("x1", "x2")):
        if len(classes) > len(COLOURS):
            raise ValueError(
                f"there are {len(classes)} classes, but only {len(COLOURS)} colours that can be "
                "told apart"
            )
        self.x = x
        self.y = y
        self.winners = winners
        self.classes = classes
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls, estimator: Any, X, y=None, *, resolution: int = 200, ax: Any = None
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
        names = getattr(estimator, "feature_names_in_", None)
        points = np.asarray(X, dtype=float)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"a decision region needs two features, X has shape {points.shape}")
        low, high = points.min(axis=0), points.max(axis=0)
        margin = 0.05 * (high - low)
        x, y_grid = np.linspace(low - margin, high + margin, resolution).T
        grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x, y_grid)])
        # A frame of the same kind, if the estimator knows its columns by name.
        predicted = estimator.predict(grid if names is None else _as_frame(X, grid, names))
        winners = np.searchsorted(estimator.classes_, predicted).reshape(resolution, resolution)
        axes_names = ("x1", "x2") if names is None else tuple(names)
        display = cls(x, y_grid, winners, estimator.classes_, axes_names)
        return display.plot(points, y, ax=ax)

    def plot(self, points=None, labels=None, *, ax: Any = None) -> DecisionRegionDisplay:
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
        from matplotlib.colors import to_rgb

        palette = np.array([to_rgb(colour) for colour in COLOURS])
        pale = 1 - 0.25 * (1 - palette)
        self.ax_.imshow(
            pale[self.winners],
            extent=(*_edges(self.x), *_edges(self.y)),
            origin="lower",
            aspect="auto",
            interpolation="nearest",
        )
        # The borders of all classes but one are all the borders there are.
        for g in range(len(self.classes) - 1):
            inside = (self.winners == g).astype(float)
            if 0 < inside.mean() < 1:
                self.ax_.contour(self.x, self.y, inside, [0.5], colors=INK, linewidths=0.9)
        if points is not None and labels is not None:
            labels = np.asarray(labels)
            for g, label in enumerate(self.classes):
                of_class = points[labels == label]
                self.ax_.plot(
                    *of_class.T,
                    MARKERS[g],
                    color=COLOURS[g],
                    markeredgecolor=INK,
                    markeredgewidth=0.5,
                    markersize=4.5,
                    label=f"class {label}",
                )
            self.ax_.legend(frameon=True, framealpha=0.85, edgecolor="none", loc="best")
        self.ax_.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])
        tidy(self.ax_)
        return self


def _edges(centres: np.ndarray) -> tuple[float, float]:
    """Outer edges of the cells around evenly spaced centres."""
    half = 0.5 * (centres[1] - centres[0])
    return centres[0] - half, centres[-1] + half


def _as_frame(like: Any, grid: np.ndarray, names) -> Any:
    if not hasattr(like, "columns"):
        raise ValueError(f"the classifier knows its columns as {list(names)}; pass X as a frame")
    return type(like)(dict(zip(names, grid.T, strict=True)))
