"""Two features as a plane: a grid around the points, and the points drawn by class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesknn.plots.style import COLOURS, INK, MARKERS, check_known


class Plane(NamedTuple):
    """A grid over two features.

    Attributes
    ----------
    x, y : ndarray of shape (resolution,)
        Coordinates of the grid.
    grid : ndarray or frame of shape (resolution ** 2, 2)
        Its points, row by row, in the form in which the estimator takes them.
    points : ndarray of shape (n, 2)
        The points it was laid around.
    names : tuple of two str
        Of the features.
    """

    x: np.ndarray
    y: np.ndarray
    grid: Any
    points: np.ndarray
    names: tuple[str, str]


def plane_around(estimator: Any, X: Any, resolution: int, what: str) -> Plane:
    """Lay a grid around points, a margin of 5 % included.

    Parameters
    ----------
    estimator : classifier
        Fitted; if it knows its columns by name, X must be a frame, and so is the grid.
    X : array-like or frame of shape (n, 2)
    resolution : int
        Grid points a side.
    what : str
        The picture, for the errors.

    Returns
    -------
    Plane
    """
    points = np.asarray(X, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"{what} needs two features, X has shape {points.shape}")
    if len(points) == 0 or not np.isfinite(points).all():
        raise ValueError(f"{what} needs points to lay the grid around: X is empty or not finite")
    if resolution < 2:
        raise ValueError(f"resolution must be at least 2, got {resolution}")
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.05 * np.where(high > low, high - low, 1.0)
    x, y = np.linspace(low - margin, high + margin, resolution).T
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x, y)])
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return Plane(x, y, grid, points, ("x1", "x2"))
    if not hasattr(X, "columns"):
        raise ValueError(f"the classifier knows its columns as {list(names)}; pass X as a frame")
    frame = type(X)(dict(zip(names, grid.T, strict=True)))
    return Plane(x, y, frame, points, (str(names[0]), str(names[1])))


def extent(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float, float]:
    """Return the outer edges of the cells around evenly spaced centres, for ``imshow``."""
    half_x, half_y = 0.5 * (x[1] - x[0]), 0.5 * (y[1] - y[0])
    return x[0] - half_x, x[-1] + half_x, y[0] - half_y, y[-1] + half_y


def draw_shades(ax: Any, x: np.ndarray, y: np.ndarray, shades: np.ndarray) -> None:
    """Fill the cells around the points of a grid with colours."""
    ax.imshow(shades, extent=extent(x, y), origin="lower", aspect="auto", interpolation="nearest")


def draw_points(ax: Any, points: Any, labels: Any, classes: np.ndarray) -> None:
    """Draw points with the marker and the colour of their class."""
    points, labels = np.asarray(points, dtype=float), check_known(labels, classes)
    if len(points) != len(labels):
        raise ValueError(f"there are {len(points)} points but {len(labels)} labels")
    for g, label in enumerate(classes):
        ax.plot(
            *points[labels == label].T,
            MARKERS[g],
            color=COLOURS[g],
            markeredgecolor=INK,
            markeredgewidth=0.5,
            markersize=4.0,
            label=f"class {label}",
        )


def draw_borders(
    ax: Any, x: np.ndarray, y: np.ndarray, winners: np.ndarray, n_classes: int
) -> None:
    """Draw the lines between the regions; those of all classes but one are all there are."""
    for g in range(n_classes - 1):
        inside = (winners == g).astype(float)
        if 0 < inside.mean() < 1:
            ax.contour(x, y, inside, [0.5], colors=INK, linewidths=0.9)
