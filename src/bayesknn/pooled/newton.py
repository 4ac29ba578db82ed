"""Newton's method where some coordinates must not fall below 0 (Bertsekas 1982)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_MAX_STEPS = 100
_TOLERANCE = 1e-10


def minimize(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]],
    start: np.ndarray,
    is_bounded: np.ndarray,
) -> np.ndarray:
    """Minimise a strictly convex function.

    Parameters
    ----------
    objective : callable
        Returns value, gradient and Hessian.
    start : ndarray of shape (d,)
    is_bounded : ndarray of shape (d,), dtype bool
        Which coordinates must be >= 0.

    Returns
    -------
    ndarray of shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.pooled.newton import minimize
    >>> def bowl(x):
    ...     return 0.5 * ((x + 1) ** 2).sum(), x + 1, np.eye(2)
    >>> minimize(bowl, np.zeros(2), np.array([True, False])).tolist()
    [0.0, -1.0]
    """
    x = start
    value, gradient, hessian = objective(x)
    for _ in range(_MAX_STEPS):
        free = ~is_bounded | (x > 0) | (gradient < 0)
        step = np.zeros_like(x)
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        if step @ gradient < _TOLERANCE:
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
    return x
