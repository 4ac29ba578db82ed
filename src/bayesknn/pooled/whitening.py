"""Whitening within classes, by the covariance W shrunk towards its diagonal by p / (p + n).

With more coordinates than rows only the space that the training rows span is turned: there W is a
matrix of n by n, and outside it the shrunk covariance is diagonal. Training rows have no part
outside, so that of a new row its length is enough, and distances to training rows are exact. Time
grows with p min(n, p)^2, and memory with p min(n, p).
"""

from __future__ import annotations

import numpy as np


class Whitening:
    """Axes along which Euclidean distances are those of the shrunk covariance within classes.

    Parameters
    ----------
    points : ndarray of shape (n, p)
    labels : ndarray of shape (n,)
    n_classes : int
    is_stretched : bool
        Whether to stretch along the directions in which the class means differ.
    """

    def __init__(self, points: np.ndarray, labels: np.ndarray, n_classes: int, is_stretched: bool):
        n, p = points.shape
        shrink, n_free = p / (p + n), max(n - n_classes, 1)
        residuals = points - _class_means(points, labels, n_classes)[labels]
        variances = (residuals**2).sum(axis=0) / n_free
        self.centre = points.mean(axis=0)
        # Some of the standardised coordinates are constant within classes.
        self.spread = np.sqrt(shrink * variances + 1e-6)
        scaled = (points - self.centre) / self.spread
        self.basis = span_rows(scaled) if p >= n else None
        inner = scaled if self.basis is None else scaled @ self.basis
        means = _class_means(inner, labels, n_classes)
        residuals = inner - means[labels]
        covariance = (1 - shrink) / n_free * (residuals.T @ residuals)
        # Any root of the inverse gives the same distances; this one is the cheapest.
        self.axes = np.linalg.inv(np.linalg.cholesky(covariance + np.eye(len(covariance)))).T
        self.outside = 1.0
        if is_stretched:
            shares = np.bincount(labels, minlength=n_classes) / n
            apart = (means - shares @ means) * np.sqrt(shares)[:, None] @ self.axes
            # As coordinates, not as a matrix of the same distances: KD-trees skip along them.
            _, roots, directions = np.linalg.svd(apart, full_matrices=True)
            values = np.zeros(len(directions))
            values[: len(roots)] = roots**2
            self.axes = self.axes @ directions.T * np.sqrt(values + shrink)
            self.outside = float(np.sqrt(shrink))

    def transform(self, points: np.ndarray) -> np.ndarray:
        """Return the whitened coordinates of rows, old or new."""
        scaled = points - self.centre
        scaled /= self.spread
        if self.basis is None:
            return scaled @ self.axes
        inner = scaled @ self.basis
        # A sum of squares that holds no copy of what may be millions of coordinates.
        outside = np.einsum("ij,ij->i", scaled, scaled) - (inner**2).sum(axis=1)
        outside = np.maximum(outside, 0.0)
        return np.column_stack([inner @ self.axes, self.outside * np.sqrt(outside)])


def span_rows(points: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (p, rank) of the space that rows (n, p) span, p >= n.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.pooled.whitening import span_rows
    >>> rows = np.array([[3.0, 0.0, 4.0], [6.0, 0.0, 8.0]])
    >>> np.abs(span_rows(rows)).round(2).tolist()
    [[0.6], [0.0], [0.8]]
    """
    values, axes = np.linalg.eigh(points @ points.T)
    is_kept = values > 1e-10 * values[-1]  # the others are rounding
    return points.T @ (axes[:, is_kept] / np.sqrt(values[is_kept]))


def _class_means(points: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    return np.array([points[labels == g].mean(axis=0) for g in range(n_classes)])
