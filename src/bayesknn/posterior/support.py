"""Where a prior on (beta, k) is positive (Section 3: uniform unless the user says otherwise).

A prior is known by its values alone, so its support is looked for on a grid of beta, on a finer
one for a k where that finds nothing, and its ends by bisection.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Limits = tuple[float, float]

_N_COARSE, _N_FINE = 81, 1281
_N_HALVINGS = 40


def find_limits(log_prior: Callable, k_max: int, beta_max: float) -> dict[int, Limits]:
    """Find between which beta the prior of each k is positive.

    Parameters
    ----------
    log_prior : callable
        ``log_prior(beta, k)``, broadcast.
    k_max : int
    beta_max : float

    Returns
    -------
    dict of int to (float, float)
        By k, for those k that the prior allows: the ends of the support.

    Raises
    ------
    ValueError
        If the prior is zero wherever it was looked at.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.posterior.support import find_limits
    >>> find_limits(lambda beta, k: np.where((beta >= 1.0) & (k == 2), 0.0, -np.inf), 3, 4.0)
    {2: (1.0, 4.0)}
    """
    beta = np.linspace(0.0, beta_max, _N_COARSE)
    ks = np.arange(1, k_max + 1)
    found = np.isfinite(log_prior(beta, ks[:, None]))
    limits = {}
    for k, inside in zip(ks.tolist(), found, strict=True):
        ends = _find_ends(lambda beta, k=k: np.isfinite(log_prior(beta, k)), beta, inside)
        if ends is not None:
            limits[k] = ends
    if not limits:
        raise ValueError(
            "the prior is zero or not a number wherever it was looked at in "
            f"k=1..{k_max}, beta in [0, {beta_max:g}]; check it"
        )
    return limits


def _find_ends(is_inside: Callable, beta: np.ndarray, inside: np.ndarray) -> Limits | None:
    if not inside.any():
        beta = np.linspace(0.0, beta[-1], _N_FINE)
        inside = is_inside(beta)
    where = np.flatnonzero(inside)
    if len(where) == 0:
        return None
    first, last = where[0], where[-1]
    return (
        _bisect(is_inside, beta[max(first - 1, 0)], beta[first]),
        _bisect(is_inside, beta[min(last + 1, len(beta) - 1)], beta[last]),
    )


def _bisect(is_inside: Callable, outer: float, inner: float) -> float:
    """Move a point of the support out to its edge, which lies between the two."""
    if outer == inner:
        return float(inner)
    for _ in range(_N_HALVINGS):
        middle = (outer + inner) / 2
        if is_inside(middle):
            inner = middle
        else:
            outer = middle
    return float(inner)
