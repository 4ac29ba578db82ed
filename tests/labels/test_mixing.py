"""The integrated autocorrelation time on series whose time is known."""

import numpy as np
import pytest

from bayesknn.labels.mixing import autocorrelation_time


def autoregression(phi, n, seed):
    noise = np.random.default_rng(seed).normal(size=n)
    values = np.empty(n)
    values[0] = noise[0] / np.sqrt(1 - phi**2)
    for t in range(1, n):
        values[t] = phi * values[t - 1] + noise[t]
    return values


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9])
def test_autoregression(phi):
    n, exact = 100_000, (1 + phi) / (1 - phi)
    estimate = autocorrelation_time(autoregression(phi, n, seed=1))
    # Sokal's standard error, with a window of 5 times; six of them, and the bias of the window.
    error = exact * np.sqrt(2 * (2 * 5 * max(exact, 1) + 1) / n)
    assert abs(estimate - exact) < 6 * error + 0.02 * exact


@pytest.mark.parametrize("series", [[], [1.0, 2.0, 1.0], np.ones(100), [1.0, np.nan, 2.0, 3.0]])
def test_nothing_to_tell(series):
    assert np.isnan(autocorrelation_time(series))


def test_swinging_series_stays_positive():
    assert 0 < autocorrelation_time(np.tile([0.0, 1.0], 50)) < 0.1


def test_scale_and_place_do_not_matter():
    series = autoregression(0.7, 1000, seed=2)
    moved = autocorrelation_time(1e6 * series + 1e9)
    assert moved == pytest.approx(autocorrelation_time(series), rel=1e-6)


def test_batches_are_refused():
    with pytest.raises(ValueError, match="one-dimensional"):
        autocorrelation_time(np.zeros((2, 10)))
