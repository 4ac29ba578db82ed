"""The conditional logit of McFadden (1974), which calibration, links and pools have in common.

With features x of every class at every point, P(g) is proportional to
``exp(alpha_g c + sum_f b_f x_gf)``. b must not be negative, and b and alpha have normal priors. The
log posterior is concave, and Newton's method with bounds (Bertsekas 1982) finds its maximum.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bayesknn._utils.jit import kernel

# Part of the log posterior, or of that of a hundred labels, that rounding hides: steps that promise
# less cannot be judged. It is far below what a single label moves it by.
_TOLERANCE = 1e-12
# Where more than this part is still promised in the end, the maximum was not found. A dozen steps
# are the rule.
_LARGE, _MAX_STEPS = 1e-6, 100


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


def _minimize(objective: Any, start: np.ndarray, is_bounded: np.ndarray) -> Any:
    """Minimise a strictly convex function; return where, its value and its Hessian there."""
    x = start
    value, gradient, hessian = objective(x)
    for _ in range(_MAX_STEPS):
        free = ~is_bounded | (x > 0) | (gradient < 0)
        step = np.zeros_like(x)
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        promised = step @ gradient / max(abs(value), 100.0)
        if promised < _TOLERANCE:
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
    if not promised < _LARGE:
        warnings.warn(
            "Newton's method did not find the maximum of a conditional logit: probabilities or "
            "intervals may be off",
            ConvergenceWarning,
            stacklevel=3,
        )
    return x, value, hessian


@kernel
def _lose(theta, features, covariate, labels, weight):
    """Minus the log likelihood, its gradient and its Hessian; theta may be without alpha.

    The Hessian of alpha is a diagonal less products of probabilities, the only part whose cost
    grows with the square of the number of classes.
    """
    n, n_classes, n_features = features.shape
    n_alpha = theta.shape[0] - n_features
    value = 0.0
    gradient, hessian = np.zeros(theta.shape[0]), np.zeros((theta.shape[0], theta.shape[0]))
    p, mean = np.empty(n_classes), np.empty(n_features)
    for i in range(n):
        y, w, c = labels[i], weight[i], covariate[i]
        top = -np.inf
        for g in range(n_classes):
            p[g] = c * theta[g] if n_alpha > 0 else 0.0
            for f in range(n_features):
                p[g] += features[i, g, f] * theta[n_alpha + f]
            top = max(top, p[g])
        value += w * (top - p[y])
        total = 0.0
        for g in range(n_classes):
            p[g] = math.exp(p[g] - top)
            total += p[g]
        value += w * math.log(total)
        mean[:] = 0.0
        for g in range(n_classes):
            p[g] /= total
            for f in range(n_features):
                mean[f] += p[g] * features[i, g, f]
        for f in range(n_features):
            gradient[n_alpha + f] += w * (mean[f] - features[i, y, f])
        for g in range(n_classes):
            for f in range(n_features):
                around = w * p[g] * (features[i, g, f] - mean[f])
                if n_alpha > 0:
                    hessian[g, n_alpha + f] += c * around
                for e in range(n_features):
                    hessian[n_alpha + f, n_alpha + e] += around * (features[i, g, e] - mean[e])
        if n_alpha > 0:
            gradient[y] -= w * c
            for g in range(n_classes):
                term = w * c * p[g]
                gradient[g] += term
                hessian[g, g] += c * term
                for h in range(g + 1):
                    hessian[g, h] -= c * term * p[h]
    for g in range(n_alpha):
        # Not as slices, whose checks take long to compile.
        for h in range(g):
            hessian[h, g] = hessian[g, h]
        for h in range(n_alpha, theta.shape[0]):
            hessian[h, g] = hessian[g, h]
    return value, gradient, hessian
