"""Number of each class in a batch of new points, from probabilities and leave-one-out residuals."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from bayesknn.sureness.groups import sum_by_group


def counts_of_probabilities(
    probabilities: np.ndarray,
    loo: np.ndarray,
    labels: np.ndarray,
    level: float,
    weight: np.ndarray,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Estimate the number of each class in a batch that has the class frequencies of training.

    The sum of the probabilities p is corrected by the mean r of the leave-one-out residuals, as in
    the difference estimator of survey sampling. For m new and n training points the variance is
    ``sum p (1 - p)``, of the labels given p, and ``m^2 mean(residual^2) / n``, of r.

    Parameters
    ----------
    probabilities : ndarray of shape (m, n_classes)
        Of the new points.
    loo : ndarray of shape (n, n_classes)
        Of the training points, each left out.
    labels : ndarray of shape (n,)
        Class numbers of the training points.
    level : float
        Of the interval, from the normal distribution; its ends are whole numbers.
    weight : ndarray of shape (n,)
        How much each training point counts: not all as much where the batch has other class
        frequencies.
    groups : ndarray of shape (n,), optional
        Group numbers of the training points, whose residuals are then added up before they are
        squared. The new points are taken to be of different groups.

    Returns
    -------
    ndarray of shape (n_classes, 3)
        Mean, low and high.
    """
    m, n_classes = probabilities.shape
    share = (weight / weight.sum())[:, None]
    residuals = np.eye(n_classes)[labels] - loo
    mean = probabilities.sum(axis=0) + m * (share * residuals).sum(axis=0)
    mean = np.clip(mean, 0.0, m)
    variance = (probabilities * (1.0 - probabilities)).sum(axis=0)
    parts = share * residuals
    if groups is not None:
        parts = sum_by_group(parts, groups)
    variance += m**2 * (parts**2).sum(axis=0)
    half = ndtri((1.0 + level) / 2) * np.sqrt(variance)
    low = np.minimum(np.rint(mean - half), np.floor(mean))
    high = np.maximum(np.rint(mean + half), np.ceil(mean))
    return np.column_stack([mean, np.clip([low, high], 0.0, m).T])
