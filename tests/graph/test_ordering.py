"""Cutting candidates back: the k best stay, and the limit lets in whoever may join them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn.graph.ties import NO_POINT, cut_back


def order(keys, points):
    """Sort pairs by (key, point), the obvious way."""
    return sorted(zip(np.asarray(keys).tolist(), np.asarray(points).tolist(), strict=True))


def cut(keys, k):
    """Cut copies of the keys, numbered by their place, and check what must hold of the result."""
    points = np.arange(len(keys), dtype=np.uint32)[::-1].copy()
    held_keys, held_points = np.array(keys, dtype=float), points.copy()
    left, limit, limit_point = cut_back(held_keys, held_points, len(keys), k)
    assert k <= left <= k + (len(keys) - k) // 4
    every, kept = order(keys, points), order(held_keys[:left], held_points[:left])
    assert kept[:k] == every[:k]
    assert set(kept) <= set(every)
    # Whoever is beyond the limit comes after k of those kept.
    assert kept[k - 1] <= (limit, int(limit_point))
    return left, limit, limit_point


@given(st.integers(0, 2**32 - 1), st.integers(1, 120), st.sampled_from([1e-160, 1e-3, 1.0, 1e150]))
def test_spread_keys(seed, k, scale):
    rng = np.random.default_rng(seed)
    n = k + 64 + k // 4
    power = int(rng.integers(1, 11))
    cut(scale * np.sqrt((rng.normal(size=(n, power)) ** 2).sum(axis=1)), k)


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 40))
def test_tied_keys(seed, k, n_values):
    rng = np.random.default_rng(seed)
    cut(0.1 * rng.integers(0, n_values, size=k + 64 + k // 4), k)


@pytest.mark.parametrize(
    "keys",
    [
        np.zeros(100),
        np.full(100, np.inf),
        np.full(100, 5e-324),
        np.r_[np.zeros(50), np.full(50, np.inf)],
        np.r_[1e-320, np.linspace(1.0, 2.0, 99)],
        np.r_[np.linspace(1.0, 2.0, 99), 0.0],
        np.r_[np.full(99, 1.0), 1e308],
        np.r_[1e308, np.linspace(1.0, 1.7, 98), np.inf],
        np.geomspace(1e-300, 1e300, 100),
    ],
)
@pytest.mark.parametrize("k", [1, 20, 49, 50, 51, 79])
def test_keys_that_no_value_divides_well(keys, k):
    cut(keys, k)
    cut(keys[::-1], k)


def test_both_ways_of_cutting_are_taken():
    assert cut(np.linspace(1.0, 2.0, 189), 100)[2] == NO_POINT
    left, limit, point = cut(np.ones(189), 100)
    assert (left, limit, point) == (100, 1.0, 99)
