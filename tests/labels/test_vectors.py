"""Explicit vectors against NumPy, lane by lane."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesknn._jit import kernel
from bayesknn.labels.vectors import (
    _counting,
    _filled,
    _flags,
    _high_product,
    _loaded,
    _narrowed,
    _smaller,
    _split,
    _store,
    _where_below,
    _where_equal,
    _where_less,
    _widened,
    _widened_signed,
    aligned_zeros,
)

N = 64
lanes = st.lists(st.integers(0, 2**16 - 1), min_size=N, max_size=N).map(
    lambda values: np.array(values, np.uint16)
)


@kernel
def _operate(a, b, scalar, out):
    x, y = _loaded(a, 0, 64), _loaded(b, 0, 64)
    _store(out[0], 0, x + y)
    _store(out[1], 0, x - y)
    _store(out[2], 0, x * y)
    _store(out[3], 0, x ^ y)
    _store(out[4], 0, x & y)
    _store(out[5], 0, x << (y & 15))
    _store(out[6], 0, x >> (y & 15))
    _store(out[7], 0, _high_product(x, y))
    _store(out[8], 0, _smaller(x, y))
    _store(out[9], 0, _where_less(x, y))
    _store(out[10], 0, _where_equal(x, y))
    _store(out[11], 0, _where_below(x, y))
    _store(out[12], 0, scalar - x)
    _store(out[13], 0, x + scalar)
    _store(out[14], 0, _filled(scalar, 16, 64))
    _store(out[15], 0, _counting(16, 64))


@settings(deadline=None, max_examples=50)
@given(lanes, lanes, st.integers(0, 2**16 - 1))
def test_operators(a, b, scalar):
    b[::5] = a[::5]
    out = np.zeros((16, N), np.uint16)
    _operate(a, b, scalar, out)
    x, y, constant = a.astype(np.uint64), b.astype(np.uint64), np.uint64(scalar)
    expected = [
        x + y, x - y, x * y, x ^ y, x & y, x << (y & 15), x >> (y & 15), (x * y) >> 16,
        np.minimum(x, y), 0 - (x < y), 0 - (x == y), 0 - (a.view(np.int16) < b.view(np.int16)),
        constant - x, x + constant, np.full(N, scalar), np.arange(N),
    ]  # fmt: skip
    for row, values in zip(out, expected, strict=True):
        np.testing.assert_array_equal(row, np.asarray(values).astype(np.uint16))


@kernel
def _convert(a, words, wide, wide_signed, narrow, halves):
    x = _loaded(a, 0, 64)
    _store(wide, 0, _widened(x, 32))
    _store(wide_signed, 0, _widened_signed(x, 64))
    _store(narrow, 0, _narrowed(x, 8))
    _store(halves, 0, _split(_loaded(words, 0, 16), 16))
    return _flags(_where_less(x, 1000))


@settings(deadline=None, max_examples=50)
@given(lanes)
def test_conversions(a):
    words = a.view(np.uint64)
    wide, wide_signed = np.zeros(N, np.uint32), np.zeros(N, np.int64)
    narrow, halves = np.zeros(N, np.uint8), np.zeros(N, np.uint16)
    flags = _convert(a, words, wide, wide_signed, narrow, halves)
    np.testing.assert_array_equal(wide, a)
    np.testing.assert_array_equal(wide_signed, a.view(np.int16))
    np.testing.assert_array_equal(narrow, a.astype(np.uint8))
    expected = [int(words[lane // 4]) >> 16 * (lane % 4) & 0xFFFF for lane in range(N)]
    np.testing.assert_array_equal(halves, expected)
    assert flags == sum(1 << lane for lane in range(N) if a[lane] < 1000)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float64])
def test_aligned_zeros(dtype):
    for shape in [(1,), (7, 64), (250, 256)]:
        array = aligned_zeros(shape, dtype)
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous
        assert not array.any()
