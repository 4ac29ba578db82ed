"""Records at one k that speak for another: the averages against the plain formulas."""

import numpy as np

from bayesknn.log_z.resampling import resample
from bayesknn.log_z.reweighting import average_reweighted, read_reweighted


def test_reweighted_moments_are_those_of_the_records():
    """Log Z(k') - log Z(k) = log E[exp(beta (S_k' / k' - S_k / k))], and the mean given k'."""
    rng = np.random.default_rng(0)
    columns, beta, own = np.array([2, 3, 5]), 1.3, 1
    records = rng.integers(20, 40, size=(2, 60, 3)) * columns / 3.0
    x = records / columns
    averages = average_reweighted(records, records, columns, x.mean(axis=(0, 1)), own, beta, 60)
    found = read_reweighted(averages.mean(axis=(0, 1))[None], own, beta, x.mean(axis=(0, 1)))
    weights = np.exp(beta * (x - x[..., [own]]))
    mean = (weights * x).sum(axis=(0, 1)) / weights.sum(axis=(0, 1))
    square = (weights * x**2).sum(axis=(0, 1)) / weights.sum(axis=(0, 1))
    np.testing.assert_allclose(found[0][0], np.log(weights.mean(axis=(0, 1))), atol=1e-10)
    np.testing.assert_allclose(found[1][0], mean, rtol=1e-12)
    np.testing.assert_allclose(found[2][0], square - mean**2, rtol=1e-9)


def test_resampled_errors_are_those_of_the_mean():
    """Over many sets of m batches: the variance of replicates is (m - 1) / (m - 3) of the mean's.

    The mean over 400 sets has a standard error of (2 / 39 / 400)^1/2 = 1.1 %, and the finite number
    of replicates adds as much: 10 % is more than six of both.
    """
    rng = np.random.default_rng(1)
    batches = rng.normal(size=(400, 2, 20))
    found = [resample(one, key=int(key)) for key, one in enumerate(batches)]
    ratio = np.mean([replicates[1:].var() for replicates in found]) * 40
    assert abs(ratio / (39 / 37) - 1) < 0.1
    assert all(replicates[0] == one.mean() for replicates, one in zip(found, batches, strict=True))
