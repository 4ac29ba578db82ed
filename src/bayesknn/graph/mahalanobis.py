"""Mahalanobis distance: Euclidean after whitening by a covariance.

Columns are first divided by a power of two near their largest value. That changes no bit of the
result, and keeps squares from overflowing or vanishing where the units are extreme.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph.metrics import Euclidean


class Mahalanobis(Euclidean):
    """Euclidean distance after whitening by the covariance of the training points.

    Parameters
    ----------
    V : array of shape (p, p), optional
        A covariance to use in place of the training points' own.
    VI : array of shape (p, p), optional
        The inverse of a covariance, as scikit-learn takes it.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.mahalanobis import Mahalanobis
    >>> metric = Mahalanobis(V=np.diag([4.0, 1.0]))
    >>> points = metric.fit([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> metric.distances(points[:1], metric.arrange(points))
    array([[0., 1., 1.]])
    """

    name = "mahalanobis"
    _by_feature = ("exponents_", "centre_", "whitening_")

    def __init__(self, V: Any = None, VI: Any = None):
        if V is not None and VI is not None:
            raise ValueError("metric 'mahalanobis' takes V or VI, not both")
        self.V = V
        self.VI = VI

    def fit(self, X: Any) -> np.ndarray:
        """Learn the whitening and return the whitened points."""
        points = super().fit(X)
        p = points.shape[1]
        is_own = self.V is None and self.VI is None
        # A given V or VI is in the units of the points, which are then left as they are.
        self.exponents_ = _exponents(points) if is_own else np.zeros(p, dtype=np.int64)
        scaled = np.ldexp(points, -self.exponents_)
        is_constant = (scaled == scaled[0]).all(axis=0)
        with np.errstate(over="ignore"):
            centre = scaled.mean(axis=0)
        # The mean of equal numbers may be off by a rounding, and that of huge ones overflow.
        self.centre_ = np.where(is_constant | ~np.isfinite(centre), scaled[0], centre)
        if self.VI is not None:
            values, axes = np.linalg.eigh(_check_form(self.VI, "VI", p))
            keep = values > values.max(initial=0.0) * p * np.finfo(float).eps
            self.whitening_ = axes[:, keep] * np.sqrt(values[keep])
        elif self.V is not None:
            self.whitening_ = self._invert_root(_check_form(self.V, "V", p), "the covariance V")
        else:
            if len(points) < 2:
                raise ValueError("metric 'mahalanobis' needs at least 2 points for a covariance")
            covariance = np.atleast_2d(np.cov(scaled, rowvar=False))
            covariance[is_constant] = covariance[:, is_constant] = 0.0
            self.whitening_ = self._invert_root(covariance, "the covariance of the training points")
        return self._whiten(points)

    def transform(self, X: Any) -> np.ndarray:
        """Whiten new points as the training points were."""
        return self._whiten(super().transform(X))

    def _whiten(self, points: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            scaled = np.ldexp(points, -self.exponents_)
        white = _whiten(scaled, self.centre_, self.whitening_)
        if not np.isfinite(white).all():
            row = int(np.argwhere(~np.isfinite(white))[0][0])
            j = int(np.argmax(np.abs(scaled[row])))
            raise ValueError(
                f"X has {points[row, j]} in row {row}, column {self._names()[j]!r}, which "
                "overflows in metric 'mahalanobis'; rescale it"
            )
        return white

    def decode(self, numbers: np.ndarray) -> list:
        """Return the centre, which stands for any point."""
        return np.ldexp(self.centre_, self.exponents_).tolist()

    def _n_numbers(self) -> int:
        return self.whitening_.shape[1]

    def _names(self) -> list[Any]:
        return self.feature_names_ or list(range(self.n_features_))

    def _invert_root(self, covariance: np.ndarray, what: str) -> np.ndarray:
        p = len(covariance)
        smallest = p * np.finfo(float).eps
        scale = np.sqrt(np.diag(covariance))
        # Rank is judged on the correlations, which do not change with the units of a column.
        if np.all(scale > 0):
            values, axes = np.linalg.eigh(covariance / np.outer(scale, scale))
            if values.min() > smallest:
                return axes / scale[:, None] / np.sqrt(values)
        # The pseudo-inverse does depend on the units: all columns get one power of two.
        exponents = self.exponents_ - self.exponents_[scale > 0].max(initial=-(2**20))
        exponents[scale == 0] = 0
        values, axes = np.linalg.eigh(np.ldexp(covariance, exponents[:, None] + exponents))
        keep = values > values.max(initial=0.0) * max(smallest, 1e-14)
        constant = np.flatnonzero(scale == 0)
        why = f"; column {self._names()[constant[0]]!r} is constant" if len(constant) else ""
        if not keep.any():
            raise ValueError(f"{what} is zero: all points are equal{why}")
        warnings.warn(
            f"{what} is singular (rank {int(keep.sum())} of {p}){why}; "
            "the pseudo-inverse is used in place of the inverse",
            UserWarning,
            stacklevel=2,
        )
        axes[constant] = 0.0
        return np.ldexp(axes[:, keep] / np.sqrt(values[keep]), exponents[:, None])


def _exponents(points: np.ndarray) -> np.ndarray:
    """Return, by column, the power of two that lies just above the largest magnitude."""
    return np.frexp(np.abs(points).max(axis=0))[1].astype(np.int64)


def _check_form(matrix: Any, name: str, p: int) -> np.ndarray:
    name = f"metric 'mahalanobis': {name}"
    try:
        form = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not a matrix of numbers: {error}") from None
    if form.shape != (p, p):
        raise ValueError(f"{name} has shape {form.shape}, the points have {p} features")
    if not np.isfinite(form).all():
        row, column = np.argwhere(~np.isfinite(form))[0]
        raise ValueError(f"{name} has {form[row, column]} at [{row}, {column}]")
    if not np.allclose(form, form.T, rtol=1e-8, atol=1e-12 * np.abs(form).max()):
        row, column = np.unravel_index(np.argmax(np.abs(form - form.T)), form.shape)
        raise ValueError(
            f"{name} is not symmetric: {form[row, column]} at [{row}, {column}] but "
            f"{form[column, row]} at [{column}, {row}]"
        )
    lowest = float(np.linalg.eigvalsh(form).min())
    if lowest < -1e-10 * np.abs(form).max():
        raise ValueError(f"{name} is not positive semi-definite: it has the eigenvalue {lowest:g}")
    return form


@kernel
def _whiten(points, centre, whitening):
    """``(points - centre) @ whitening``, each row by itself.

    A matrix product may add in another order for another number of rows, and a training point
    that is asked about again would then not be at distance 0 from itself.
    """
    n, p = points.shape
    rank = whitening.shape[1]
    white = np.zeros((n, rank))
    for i in range(n):
        for f in range(p):
            x = points[i, f] - centre[f]
            for c in range(rank):
                white[i, c] += x * whitening[f, c]
    return white
