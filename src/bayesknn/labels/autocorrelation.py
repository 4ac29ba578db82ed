"""Integrated autocorrelation time: how many draws of a chain are worth one independent draw."""

from __future__ import annotations

from typing import Any

import numpy as np


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

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.labels.autocorrelation import autocorrelation_time
    >>> noise = np.random.default_rng(0).normal(size=100_000)
    >>> round(autocorrelation_time(noise), 1)
    1.0
    >>> round(autocorrelation_time(np.repeat(noise, 4)))
    4
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
