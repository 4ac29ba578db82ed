"""Sweeps of 64 two-class Gibbs chains, one lane of a vector each (Section 3.2).

At a site each lane's neighbours of class 1 are counted, ``exp(-beta/k * |difference|)`` is
approximated in 16-bit integers and compared with 16 random bits. How far the approximation can be
off is known, because ``_lane_constants`` measures it for every field that can occur: the few
lanes that come so close are decided by 64 random bits against the thresholds of ``gibbs_two``.
The law of what is drawn is therefore that of a single chain; the approximation only says how
often the slow comparison is needed, for about one lane in 4000.

Fields are counted afresh at each site: among 64 chains some lane changes nearly always, and
reading a neighbour's lanes costs half as much as updating them.
"""

import numpy as np

from bayesknn._jit import kernel
from bayesknn.labels.gibbs_two import _threshold
from bayesknn.labels.random import _bits, _sweep_key
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
    _where_less,
    _widened,
    _widened_signed,
)

LANES = 64
# Differences are signed 16-bit numbers.
LARGEST_DEGREE = 32767
_ONE = np.uint64(1)
_WIDTH = np.uint64(LANES)
_WORDS = np.uint64(LANES // 4)
# Where the words that settle close decisions begin in a sweep's stream.
_CLOSE = np.uint64(2**40)
# 1 - 2**-f is f (c1 - f (c2 - f c3)) in units of 2**-16, within 5 units for f in [0, 1].
_C1, _C2, _C3 = 45332, 15184, 2624
_DEEPEST = 15.99


def run_two_lanes(couplings, strengths, edges, labels, run):
    """Run 64 chains with two classes of equal weight; ``edges`` holds their S_k."""
    constants, thresholds, slack = _lane_constants(strengths, int(couplings.degrees.max()))
    _sweep_two_repeatedly(labels, *couplings, constants, thresholds, slack, edges, *run)


@kernel
def _lane_constants(strengths, largest):
    """Per-lane constants of the approximation, the exact thresholds, and how far apart they are.

    Sizes up to ``limit`` are multiplied to fill 16 bits, then by ``factor``, which leaves
    ``size * strength / log(2)`` with 12 fractional bits in the upper half of the product. Beyond
    the limit the ratio is below 2**-15 or so, and the limit serves.
    """
    constants = np.empty(3 * LANES, np.uint16)
    thresholds = np.empty((LANES, largest + 1), np.uint64)
    for lane in range(LANES):
        rate = strengths[lane] / np.log(2.0)
        limit = largest
        if rate * largest > _DEEPEST:
            limit = max(1, int(_DEEPEST / rate))
        while limit > 1 and rate * 2.0**28 > 65535.0 * (65535 // limit):
            limit -= 1 + limit // 64
        multiplier = 65535 // limit
        constants[lane] = limit
        constants[LANES + lane] = multiplier
        constants[2 * LANES + lane] = np.uint16(min(rate * 2.0**28 / multiplier + 0.5, 65535.0))
        for size in range(largest + 1):
            thresholds[lane, size] = _threshold(strengths[lane] * size)
    # The approximate comparison is monotone in the random half-word. So if it is off by no more
    # than ``slack`` at the half-word in which the exact threshold falls, then every other
    # half-word that it decides otherwise than the threshold lies within ``slack`` too.
    slack = 0
    ratios = np.empty(LANES, np.uint16)
    for size in range(largest + 1):
        _store(ratios, 0, _approximate_ratio(_filled(size, 16, 64), constants))
        for lane in range(LANES):
            half = np.int64(thresholds[lane, size] >> np.uint64(48))
            carry = (half * np.int64(ratios[lane])) >> 16
            slack = max(slack, int(abs(carry - (65535 - half))))
    return constants, thresholds, slack


@kernel
def _approximate_ratio(size, constants):
    """``exp(-strength * size)`` in units of 2**-16, for a vector of sizes."""
    limit, multiplier = _loaded(constants, 0, 64), _loaded(constants, 64, 64)
    scaled = _smaller(size, limit) * multiplier
    exponent = _high_product(scaled, _loaded(constants, 128, 64))
    fraction = exponent << 4
    fall = _C2 - _high_product(fraction, _C3)
    fall = _C1 - _high_product(fraction, fall)
    fall = _high_product(fraction, fall)
    return (fall ^ 65535) >> (exponent >> 12)


@kernel
def _compare(difference, half, constants, slack):
    """Label of each lane by 16 random bits, and a flag for each lane too close to call.

    The bits are mirrored where class 0 is in the majority. Then the majority wins if
    ``half * (1 + ratio) < 1``, that is if ``half * ratio < 1 - half``.
    """
    negative = _where_below(difference, 0)
    ratio = _approximate_ratio((difference ^ negative) - negative, constants)
    half = half ^ negative
    carry, room = _high_product(half, ratio), half ^ 65535
    majority = _where_less(carry, room)
    close = _flags(_where_less(carry - room + slack, 2 * slack + 1))
    return _narrowed((majority ^ negative) & 1, 8), close


@kernel
def _count_ones(labels, points, first, last):
    """Lanes of class 1 among the points listed, one by one in bytes that cannot overflow."""
    total = _filled(0, 16, 64)
    while first < last:
        stop = min(first + np.uint64(255), last)
        part = _filled(0, 8, 64)
        for e in range(first, stop):
            part = part + _loaded(labels, np.uint64(points[e]) * _WIDTH, 64)
        total = total + _widened(part, 16)
        first = stop
    return total


@kernel
def _settle(close, labels, site, first_site, differences, thresholds, sweep_key):
    """Decide the lanes flagged in ``close`` by 64 bits, the upper 16 being those already seen."""
    place = first_site + site
    for lane in range(_WIDTH):
        if (close >> lane) & _ONE:
            word = _bits(sweep_key, place * _WORDS + (lane >> np.uint64(2)))
            upper = (word >> (np.uint64(16) * (lane & np.uint64(3)))) << np.uint64(48)
            lower = _bits(sweep_key, _CLOSE + place * _WIDTH + lane) >> np.uint64(16)
            difference = np.int64(differences[lane])
            if difference >= 0:
                label = (upper | lower) < thresholds[lane, difference]
            else:
                label = ~(upper | lower) >= thresholds[lane, -difference]
            labels[site * _WIDTH + lane] = label


@kernel
def _sweep_two(
    labels, starts, single_starts, points, degrees, constants, thresholds, slack, edges,
    differences, first_site, sweep_key,
):  # fmt: skip
    # S_k changes by the difference where a label does; 16 bits hold the sum over so many sites.
    n_safe = np.uint64(LARGEST_DEGREE // (thresholds.shape[1] - 1))
    n = np.uint64(len(degrees))
    done = np.uint64(0)
    while done < n:
        stop = min(done + n_safe, n)
        change = _filled(0, 16, 64)
        for i in range(done, stop):
            ones = _count_ones(labels, points, starts[i], single_starts[i])
            ones = ones + ones + _count_ones(labels, points, single_starts[i], starts[i + _ONE])
            difference = ones + ones - degrees[i]
            words = _bits(sweep_key, _counting(64, 16) + (first_site + i) * _WORDS)
            new, close = _compare(difference, _split(words, 16), constants, slack)
            old = _loaded(labels, i * _WIDTH, 64)
            _store(labels, i * _WIDTH, new)
            if close != 0:
                _store(differences, 0, difference)
                _settle(close, labels, i, first_site, differences, thresholds, sweep_key)
                new = _loaded(labels, i * _WIDTH, 64)
            change = change + _widened_signed(new - old, 16) * difference
        _store(edges, 0, _loaded(edges, 0, 64) + _widened_signed(change, 64))
        done = stop


@kernel
def _sweep_two_repeatedly(
    labels, starts, single_starts, points, degrees, constants, thresholds, slack, edges,
    first_site, key, n_warmup, series,
):  # fmt: skip
    differences = np.empty(LANES, np.int16)
    for sweep in range(n_warmup + np.uint64(len(series))):
        _sweep_two(
            labels, starts, single_starts, points, degrees, constants, thresholds, slack, edges,
            differences, first_site, _sweep_key(key, sweep),
        )  # fmt: skip
        if sweep >= n_warmup:
            for lane in range(_WIDTH):
                series[sweep - n_warmup, lane] = edges[lane]
