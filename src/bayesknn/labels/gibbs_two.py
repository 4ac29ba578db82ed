"""Gibbs sweeps with two classes: one threshold for 64 random bits per local field (Section 3.2).

The table of thresholds is computed once. A site's slot is the position in it that belongs to the
present labels of its neighbours; when a neighbour changes, the slot moves by the weight of the
pair. The graph comes as lists of neighbours or, for few points, as dense rows of weights that are
added to all slots at once. Both give the same labels.
"""

import numpy as np

from bayesknn._utils.jit import inline_kernel, kernel
from bayesknn._utils.random import key_of_sweep, random_bits
from bayesknn.labels.couplings import _dense_rows

_ONE = np.uint64(1)
_FULL = np.uint64(2**64 - 1)
# Dense rows pay off while a row is at most so many times longer than a list of neighbours.
_ROW_RATIO = 16
_ROW_POINTS = 1000


@kernel
def prefers_rows(couplings):
    """Whether dense rows are better than lists."""
    n = len(couplings[3])
    return n <= min(_ROW_RATIO * (len(couplings[2]) / n), _ROW_POINTS)


@kernel
def run_two_classes(
    couplings, strength, weights, weighted, dense, labels, key, sweep, n_warmup, thin, draws,
    edge_ends,
):  # fmt: skip
    """Run a chain of two classes; see :func:`bayesknn.labels.gibbs.run_gibbs`."""
    starts, single_starts, points, degrees = couplings
    table, bases = _threshold_table(strength, weights, degrees, weighted)
    first = bases + _count_ones(labels, starts, single_starts, points)
    run = (bases, degrees, key, sweep, n_warmup, thin, draws, edge_ends)
    if dense and table.size <= 2**16:
        rows = _dense_rows(starts, single_starts, points)
        slots = first.astype(np.uint16)
        _repeat(labels, slots, table, rows, starts, single_starts, points, *run)
    else:
        wide = first.astype(np.uint32)
        _repeat(labels, wide, table, None, starts, single_starts, points, *run)


@kernel
def _threshold(log_odds):
    """Of the 2**64 words, how many choose class 1: exact to a part in 2**53, and symmetric."""
    rarer = np.uint64(2.0**64 / (1.0 + np.exp(abs(log_odds))))
    if log_odds <= 0:
        return rarer
    return _FULL if rarer == 0 else _FULL - rarer + _ONE


@kernel
def _threshold_table(strength, weights, degrees, weighted):
    """Thresholds, and for each site the slot that it has when no neighbour is of class 1.

    With equal weights only the difference of the two counts matters, which is even or odd with
    the degree: two rows of the table serve every site. With class weights each degree that
    occurs has a row of its own.
    """
    n = len(degrees)
    largest = np.int64(degrees.max())
    bases = np.empty(n, np.int64)
    if not weighted:
        half = largest // 2 + 1
        size = 2 * half + 1
        table = np.empty(2 * size, np.uint64)
        for odd in range(2):
            for m in range(size):
                difference = 2 * (m - half) + odd
                table[odd * size + m] = _threshold(strength * weights[0] * difference)
        for i in range(n):
            parity = np.int64(degrees[i]) % 2
            bases[i] = parity * size + half - (np.int64(degrees[i]) + parity) // 2
        return table, bases
    row_starts = np.full(largest + 1, -1)
    size = np.int64(0)
    for i in range(n):
        if row_starts[degrees[i]] < 0:
            row_starts[degrees[i]] = size
            size += np.int64(degrees[i]) + 1
        bases[i] = row_starts[degrees[i]]
    table = np.empty(size, np.uint64)
    for degree in range(largest + 1):
        if row_starts[degree] >= 0:
            for ones in range(degree + 1):
                log_odds = strength * (weights[1] * ones - weights[0] * (degree - ones))
                table[row_starts[degree] + ones] = _threshold(log_odds)
    return table, bases


@kernel
def _count_ones(labels, starts, single_starts, points):
    """Local field of class 1: the weighted number of neighbours that have it."""
    counts = np.zeros(len(labels), np.int64)
    for i in range(np.uint64(len(labels))):
        for e in range(starts[i], starts[i + _ONE]):
            if labels[points[e]] == 1:
                counts[i] += 2 if e < single_starts[i] else 1
    return counts


@inline_kernel
def _choose_of_two(table, slot, bits):
    return bits < table[slot]


@kernel
def _sweep_lists(labels, slots, table, starts, single_starts, points, sweep_key):
    for i in range(np.uint64(len(labels))):
        label = np.uint8(_choose_of_two(table, np.uint64(slots[i]), random_bits(sweep_key, i)))
        if label != labels[i]:
            # A step of 1 or -1 (modulo 2**32) rather than two loops: which cannot be predicted.
            step = np.uint32(label) - np.uint32(labels[i])
            labels[i] = label
            for e in range(starts[i], single_starts[i]):
                slots[points[e]] += np.uint32(2) * step
            for e in range(single_starts[i], starts[i + _ONE]):
                slots[points[e]] += step


@kernel
def _sweep_rows(labels, slots, table, rows, sweep_key):
    for i in range(np.uint64(len(labels))):
        label = np.uint8(_choose_of_two(table, np.uint64(slots[i]), random_bits(sweep_key, i)))
        if label != labels[i]:
            step = np.uint16(label) - np.uint16(labels[i])
            labels[i] = label
            row = rows[i]
            for j in range(np.uint64(len(slots))):
                slots[j] = np.uint16(slots[j] + row[j] * step)


@kernel
def _record_two(labels, slots, bases, degrees, draws, edge_ends, draw):
    ends = np.int64(0)
    of_ones = np.int64(0)
    for i in range(np.uint64(len(labels))):
        ones = np.int64(slots[i]) - bases[i]
        if labels[i] == 1:
            of_ones += ones
        else:
            ends += np.int64(degrees[i]) - ones
    edge_ends[draw, 0] = ends
    edge_ends[draw, 1] = of_ones
    if draws.shape[1] > 0:
        draws[draw] = labels


@kernel
def _repeat(
    labels, slots, table, rows, starts, single_starts, points, bases, degrees,
    key, sweep, n_warmup, thin, draws, edge_ends,
):  # fmt: skip
    for draw in range(-1, len(edge_ends)):
        for _ in range(n_warmup if draw < 0 else thin):
            stream = key_of_sweep(key, sweep)
            # Settled when the function is compiled.
            if rows is None:
                _sweep_lists(labels, slots, table, starts, single_starts, points, stream)
            else:
                _sweep_rows(labels, slots, table, rows, stream)
            sweep += _ONE
        if draw >= 0:
            _record_two(labels, slots, bases, degrees, draws, edge_ends, draw)
