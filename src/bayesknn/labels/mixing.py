"""How a chain of labels is run, and how well it mixes.

Long runs are split into compiled calls of bounded work, so that Ctrl-C is heard between them. The
integrated autocorrelation time says how many draws are worth one independent draw, and chains from
different starts are compared by their means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_count

# Elementary operations of one call, about a fifth of a second.
_OPERATIONS_PER_CALL = 2e8
# Operations that a sweep takes for a point, or for a bond, beside its neighbours.
PER_POINT = 10
# Standard errors between the means of chains from two starts that are too many to be chance.
TOO_FAR_APART = 5.0


class DrawInfo(NamedTuple):
    """What a sampler of labels tells about its draws.

    Attributes
    ----------
    n_sweeps : int, or ndarray of shape (n_draws,)
        Sweeps of a chain in all, warm-up included. Of each perfect draw how many sweeps back the
        chains that met were started: the past is doubled until they meet, and after the first few
        draws begins where those say it costs least.
    agreement : ndarray of shape (n_draws,)
        S_k of each draw, weighted by class; of another k if asked for.
    cluster_agreement : ndarray of shape (n_draws,) or None
        Of Swendsen-Wang, the expectation of S_k given the clusters from which the draw was
        coloured: an estimate of E[S_k] with less variance, far less at small beta.
    """

    n_sweeps: Any
    agreement: np.ndarray
    cluster_agreement: Any = None


def check_run(
    key: Any, n_draws: Any, n_warmup: Any = 0, thin: Any = 1
) -> tuple[Any, int, int, int]:
    """Return the key of a run as uint64 and its numbers of draws and sweeps, checked."""
    return (
        np.uint64(check_count(key, "key", 0, 2**64 - 1)),
        check_count(n_draws, "n_draws"),
        check_count(n_warmup, "n_warmup", 0),
        check_count(thin, "thin"),
    )


def split_run(
    n_warmup: int,
    n_draws: int,
    thin: int,
    per_sweep: float,
    per_draw: float,
    advance: Callable[[float], None] = lambda sweeps: None,
) -> Iterator[tuple[np.uint64, int, slice]]:
    """Yield the number of the first sweep, the warm-up sweeps and the draws of each call.

    Parameters
    ----------
    n_warmup, n_draws, thin : int
        ``n_warmup`` sweeps, then a draw after every ``thin`` sweeps.
    per_sweep, per_draw : float
        Operations of a sweep, and of a draw beside its sweeps.
    advance : callable, optional
        Called after each call with the number of its sweeps.

    Examples
    --------
    >>> from bayesknn.labels.mixing import split_run
    >>> [(int(sweep), n, part.stop) for sweep, n, part in split_run(3, 3, 1, 1e8, 0.0)]
    [(0, 2, 0), (2, 1, 0), (3, 0, 2), (5, 0, 3)]
    """
    step = max(1, int(_OPERATIONS_PER_CALL / per_sweep))
    calls = [(min(step, n_warmup - n), slice(0, 0)) for n in range(0, n_warmup, step)]
    step = max(1, int(_OPERATIONS_PER_CALL / (thin * per_sweep + per_draw)))
    calls += [(0, slice(n, min(n + step, n_draws))) for n in range(0, n_draws, step)]
    sweep = 0
    for warmup, part in calls:
        yield np.uint64(sweep), warmup, part
        n_sweeps = warmup + (part.stop - part.start) * thin
        sweep += n_sweeps
        advance(n_sweeps)


def autocorrelation_time(series: Any) -> float:
    """Estimate ``1 + 2 * (rho_1 + rho_2 + ...)`` of a stationary series.

    Lags are summed in pairs while the pairs are positive, each held to no more than the one
    before (Geyer's initial monotone sequence): later correlations are noise. An estimate from
    fewer than about 50 times as many values as it says is too low more often than not.

    Parameters
    ----------
    series : array-like of shape (n_draws,)
        One number per draw, for instance S_k.

    Returns
    -------
    float
        In draws; about 1 for independent ones. NaN for fewer than 4 values, or equal ones.
    """
    values = np.asarray(series, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"series must be one-dimensional, got shape {values.shape}")
    n = values.size
    if n < 4 or not np.all(np.isfinite(values)) or values.min() == values.max():
        return float("nan")
    values = values - values.mean()
    length = 1 << (2 * n - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(values, length)) ** 2
    covariances = np.fft.irfft(spectrum, length)[: n - n % 2]
    pairs = (covariances[0::2] + covariances[1::2]) / covariances[0]
    n_positive = int(np.argmax(pairs <= 0)) if np.any(pairs <= 0) else pairs.size
    total = 2.0 * np.minimum.accumulate(pairs[:n_positive]).sum() - 1.0
    # A chain that swings from side to side sums to less than 1, but not to less than 1 / n.
    return float(max(total, 1.0 / n))


def difference_in_errors(
    first: np.ndarray, second: np.ndarray, times: tuple[float, float] = (1.0, 1.0)
) -> float:
    """Return the difference of two means in standard errors.

    Parameters
    ----------
    first, second : ndarray of shape (n_draws,)
    times : tuple of float
        Autocorrelation times.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.labels.mixing import difference_in_errors
    >>> round(difference_in_errors(np.array([0.0, 2.0] * 50), np.array([1.0, 3.0] * 50)), 2)
    7.07
    """
    apart = abs(first.mean() - second.mean())
    parts = zip((first, second), times, strict=True)
    variance = sum(values.var() * time / len(values) for values, time in parts)
    if variance == 0.0:
        return 0.0 if apart == 0.0 else math.inf
    return float(apart / math.sqrt(variance))
