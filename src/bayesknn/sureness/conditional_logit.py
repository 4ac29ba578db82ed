"""The conditional logit of McFadden (1974), which calibration, links and pools have in common.

With features x of every class at every point, P(g) is proportional to
``exp(alpha_g c + sum_f b_f x_gf)``. b must not be negative, and b and alpha have normal priors. The
log posterior is concave, and Newton's method with bounds (Bertsekas 1982) finds its maximum.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning


class ConditionalLogit(NamedTuple):
    """A fitted conditional logit.

    Attributes
    ----------
    alpha : ndarray of shape (n_classes,)
        Weights of the covariate; of shape (0,) without one.
    b : ndarray of shape (n_features,)
    log_posterior : float
        Log likelihood less ``(alpha / sd)^2 / 2`` and ``((b - mean) / sd)^2 / 2`` of all weights.
    hessian : ndarray of shape (d, d)
        Of minus ``log_posterior`` in (alpha, b).
    """

    alpha: np.ndarray
    b: np.ndarray
    log_posterior: float
    hessian: np.ndarray


def fit_conditional_logit(
    features: np.ndarray,
    labels: np.ndarray,
    *,
    b_mean: Any,
    b_sd: Any,
    covariate: np.ndarray | None = None,
    alpha_sd: float = 1.0,
    weight: np.ndarray | None = None,
) -> ConditionalLogit:
    """Find the most probable weights, those of the features not below 0.

    Parameters
    ----------
    features : ndarray of shape (n, n_classes, n_features)
    labels : ndarray of shape (n,)
        Class numbers.
    b_mean, b_sd : float or array-like of shape (n_features,)
        Prior means, not negative, and standard deviations of the features' weights.
    covariate : ndarray of shape (n,), optional
        The c, which has a weight alpha_g for every class; all ones for intercepts.
    alpha_sd : float
        Prior standard deviation of these weights, whose mean is 0.
    weight : ndarray of shape (n,), optional
        How much each point counts.

    Returns
    -------
    ConditionalLogit
    """
    n, n_classes, n_features = features.shape
    n_alpha = 0 if covariate is None else n_classes
    mean = np.zeros(n_alpha + n_features)
    mean[n_alpha:] = b_mean
    precision = np.full(mean.size, alpha_sd**-2.0)
    precision[n_alpha:] = np.asarray(b_sd, dtype=np.float64) ** -2.0
    is_bounded = np.arange(mean.size) >= n_alpha
    data = (
        np.ascontiguousarray(features, dtype=np.float64),
        np.ones(n) if covariate is None else np.asarray(covariate, dtype=np.float64),
        labels.astype(np.int64),
        np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64),
    )

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        value, gradient, hessian = _lose(theta, *data)
        pull = precision * (theta - mean)
        value += 0.5 * pull @ (theta - mean)
        return value, gradient + pull, hessian + np.diag(precision)

    theta, value, hessian = _minimize(objective, mean, is_bounded)
    return ConditionalLogit(theta[:n_alpha], theta[n_alpha:], -value, hessian)


def _minimize(
    objective: Any, start: np.ndarray, is_bounded: np.ndarray, max_steps: int = 100
) -> Any:
    """Minimise a strictly convex function; return the minimiser, the minimum and the Hessian."""
    x = start
    value, gradient, hessian = objective(x)
    # A dozen steps are the rule.
    for _ in range(max_steps):
        free = ~is_bounded | (x > 0) | (gradient < 0)
        step = np.zeros_like(x)
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        promised = step @ gradient / max(abs(value), 100.0)
        # Rounding hides such a part of the log posterior, or of that of a hundred labels: steps
        # that promise less cannot be judged. It is far below what a single label moves it by.
        if promised < 1e-12:
            break
        for halving in range(40):
            moved = x - step * 0.5**halving
            moved = np.where(is_bounded, np.maximum(moved, 0.0), moved)
            tried = objective(moved)
            if tried[0] <= value - 1e-4 * gradient @ (x - moved):
                break
        else:
            break
        x, (value, gradient, hessian) = moved, tried
    if not promised < 1e-6:
        warnings.warn(
            "Newton's method did not find the maximum of a conditional logit: probabilities or "
            "intervals may be off",
            ConvergenceWarning,
            stacklevel=3,
        )
    return x, value, hessian


def _lose(
    theta: np.ndarray,
    features: np.ndarray,
    covariate: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return minus the log likelihood, its gradient and its Hessian; theta may be without alpha."""
    n_features, rows = features.shape[2], np.arange(len(labels))
    n_alpha = len(theta) - n_features
    logits = features @ theta[n_alpha:]
    if n_alpha > 0:
        logits += covariate[:, None] * theta[:n_alpha]
    logits -= logits.max(axis=1, keepdims=True)
    p = np.exp(logits)
    total = p.sum(axis=1)
    value = float(weight @ (np.log(total) - logits[rows, labels]))
    p /= total[:, None]
    mass = weight[:, None] * p
    residuals = mass.copy()
    residuals[rows, labels] -= weight
    gradient = residuals.ravel() @ features.reshape(-1, n_features)
    away = features - p[:, None] @ features
    pulled = mass[..., None] * away
    hessian = pulled.reshape(-1, n_features).T @ away.reshape(-1, n_features)
    if n_alpha > 0:
        across = (covariate @ pulled.reshape(len(rows), -1)).reshape(n_alpha, n_features)
        around = (covariate**2)[:, None] * mass
        among = np.diag(around.sum(axis=0)) - around.T @ p
        gradient = np.append(covariate @ residuals, gradient)
        hessian = np.block([[among, across], [across.T, hessian]])
    return value, gradient, hessian
