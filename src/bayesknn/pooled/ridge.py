"""Ridge logistic regressions at several penalties, each begun at the one before it.

With two classes there is one output, the log odds of the second class, otherwise one a class. The
loss is the weighted sum of -log P(label), plus ``|slopes|^2 / (2 C)``. L-BFGS minimises its mean
over rows in coordinates in which the Hessian is about the identity. scikit-learn's regression takes
three times as long with two classes and about as long with more. It stops so far from the minimum
that rounding errors of the points change log odds by .1 at small penalties.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_softmax

from bayesknn._utils.jit import one_blas_thread
from bayesknn.pooled.columns import Sample

# Gradient of the mean loss at which it ends, and iterations at most. More iterations come closer to
# the minimum where penalties are small, and let rounding errors grow.
_TOLERANCE, _MAX_ITERATIONS = 1e-5, 60


def fit_ridge(
    points: np.ndarray, sample: Sample, penalties: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Fit regressions of the labels on points.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    sample : Sample
        Labels and weights of the points.
    penalties : tuple of float
        Values of C, as in scikit-learn, the smallest first.

    Returns
    -------
    slopes : ndarray of shape (n_penalties, n_outputs, d)
    intercepts : ndarray of shape (n_penalties, n_outputs)
    """
    from scipy.optimize import minimize

    shares = sample.weights / sample.weights.sum()
    n_outputs = 1 if sample.n_classes == 2 else sample.n_classes
    variances = shares @ (points - shares @ points) ** 2
    # The mean of p (1 - p) over classes of equal probability.
    curvature = (sample.n_classes - 1) / sample.n_classes**2
    with_ones = np.column_stack([points, np.ones(len(points))])
    theta = np.zeros((with_ones.shape[1], n_outputs))
    fits = []
    for c in penalties:
        penalty = np.append(np.full(len(variances), 1 / (c * sample.weights.sum())), 0.0)
        scale = 1 / np.sqrt(curvature * np.append(variances, 1.0) + penalty)[:, None]
        problem = with_ones * scale.T, sample.labels, shares, penalty[:, None] * scale**2
        options = {"gtol": _TOLERANCE, "ftol": 0.0, "maxiter": _MAX_ITERATIONS, "maxcor": 20}
        with one_blas_thread():
            start = (theta / scale).ravel()
            minimum = minimize(_lose, start, problem, "L-BFGS-B", jac=True, options=options)
        theta = minimum.x.reshape(theta.shape) * scale
        fits.append(theta.T)
    every = np.array(fits)
    return every[:, :, :-1], every[:, :, -1]


def _lose(
    flat: np.ndarray,
    points: np.ndarray,
    labels: np.ndarray,
    shares: np.ndarray,
    penalty: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Return the mean loss and its gradient at raveled theta (d + 1, n_outputs)."""
    theta = flat.reshape(points.shape[1], -1)
    odds = points @ theta
    if odds.shape[1] == 1:
        value = shares @ (np.logaddexp(0.0, odds[:, 0]) - labels * odds[:, 0])
        residuals = expit(odds)
        residuals[:, 0] -= labels
    else:
        rows = np.arange(len(labels))
        logs = log_softmax(odds, axis=1)
        value = -shares @ logs[rows, labels]
        residuals = np.exp(logs)
        residuals[rows, labels] -= 1.0
    gradient = points.T @ (shares[:, None] * residuals) + penalty * theta
    return value + 0.5 * float(np.sum(penalty * theta**2)), gradient.ravel()
