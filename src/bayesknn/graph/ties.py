"""The order of neighbours: by distance, and at equal distance by the key of the row.

The key of a row is a fixed pseudo-random function of its index, splitmix64, so that the way a
file is sorted favours no class, the lists do not depend on the search structure, and rows that
are added at the end leave the order of the others as it was. Kernels know a point by its rank
among ties, its place in the order of keys. No two are equal, so that the result cannot depend on
the search structure or on the number of threads.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import GOLDEN, mix_bits

NO_POINT = np.uint32(0xFFFFFFFF)


class TieOrder(NamedTuple):
    """The rows in the order of their keys.

    Attributes
    ----------
    rows : ndarray of shape (n,), dtype uint32
        The row that comes t-th.
    ranks : ndarray of shape (n,), dtype uint32
        The place of each row; among equal distances the smaller one wins.
    """

    rows: np.ndarray
    ranks: np.ndarray


@lru_cache(maxsize=4)
def order_ties(n: int) -> TieOrder:
    """Sort the rows 0..n-1, n below 2**32, by their keys."""
    return order_some_ties(np.arange(n))


def order_some_ties(rows: np.ndarray) -> TieOrder:
    """Sort some rows of a table by their keys: the order is that of the whole table.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.ties import order_some_ties, order_ties
    >>> whole, some = order_ties(10), np.array([2, 5, 9])
    >>> bool((some[order_some_ties(some).rows] == whole.rows[np.isin(whole.rows, some)]).all())
    True
    """
    order = np.argsort(key_of_rows(rows)).astype(np.uint32)
    ranks = np.empty(len(rows), np.uint32)
    ranks[order] = np.arange(len(rows), dtype=np.uint32)
    order.flags.writeable = ranks.flags.writeable = False
    return TieOrder(order, ranks)


def key_of_rows(rows: np.ndarray) -> np.ndarray:
    """Return the keys, uint64, of rows given by their numbers.

    Row i has entry i of splitmix64's stream: a bijection, so that no two keys are equal.
    """
    return mix_bits((rows.astype(np.uint64) + np.uint64(1)) * GOLDEN)


@kernel
def _partition(keys, points, low, high):
    """Hoare's partition of ``low..high`` (inclusive) around the median of three."""
    middle = (low + high) >> 1
    if keys[middle] < keys[low] or (keys[middle] == keys[low] and points[middle] < points[low]):
        keys[middle], keys[low] = keys[low], keys[middle]
        points[middle], points[low] = points[low], points[middle]
    if keys[high] < keys[low] or (keys[high] == keys[low] and points[high] < points[low]):
        keys[high], keys[low] = keys[low], keys[high]
        points[high], points[low] = points[low], points[high]
    if keys[high] < keys[middle] or (keys[high] == keys[middle] and points[high] < points[middle]):
        keys[high], keys[middle] = keys[middle], keys[high]
        points[high], points[middle] = points[middle], points[high]
    key, point = keys[middle], points[middle]
    i, j = low, high
    while i <= j:
        while keys[i] < key or (keys[i] == key and points[i] < point):
            i += 1
        while keys[j] > key or (keys[j] == key and points[j] > point):
            j -= 1
        if i <= j:
            keys[i], keys[j] = keys[j], keys[i]
            points[i], points[j] = points[j], points[i]
            i += 1
            j -= 1
    return i, j


@kernel
def select_nth(keys, points, start, stop, nth):
    """Reorder ``start:stop`` so that entry ``nth`` is in place and no later one comes before it."""
    low, high = start, stop - 1
    while low < high:
        i, j = _partition(keys, points, low, high)
        if nth <= j:
            high = j
        elif nth >= i:
            low = i
        else:
            return


@kernel
def cut_back(keys, points, n, k):
    """Cut n pairs back to about k; return how many are left, and the limit for further ones.

    The k best are among those left, and k of these come before or at the limit, a pair of key and
    point. Most often a few whole passes find a key with about k others below: they only count,
    which is quick, and there is no branch to guess wrong. Where keys crowd, as with many ties,
    exactly the k best are left.
    """
    size, wanted = np.uint64(n), np.uint64(k)
    enough = wanted + np.uint64((n - k) // 4)
    # The limit is sought between a key that is too low and, once one is found, one too high.
    low, high, limit = 0.0, np.inf, keys[0]
    # A handful of tries is enough where keys are spread at all.
    for _ in range(12):
        n_below = np.uint64(0)
        for t in range(size):
            n_below += np.uint64(keys[t] <= limit)
        if wanted <= n_below <= enough:
            kept = np.uint64(0)
            for t in range(size):
                # Written in any case, and written over by the next if it is not to stay.
                key, point = keys[t], points[t]
                keys[kept], points[kept] = key, point
                kept += np.uint64(key <= limit)
            return np.int64(kept), limit, NO_POINT
        if n_below < wanted:
            low = limit
            limit = 2 * limit if high == np.inf else low + (high - low) / 2
        else:
            high = limit
            limit = low + (high - low) / 2
    select_nth(keys, points, np.int64(0), n, k - 1)
    return np.int64(k), keys[k - 1], points[k - 1]


@kernel
def _split(keys, points, n):
    """Quicksort down to runs that are short enough for insertion."""
    lows = np.empty(64, np.int64)
    highs = np.empty(64, np.int64)
    top = 0
    low, high = np.int64(0), n - 1
    while True:
        while high - low > 12:
            i, j = _partition(keys, points, low, high)
            # The longer part waits, which bounds the stack by log2(n).
            if j - low < high - i:
                lows[top], highs[top] = i, high
                high = j
            else:
                lows[top], highs[top] = low, j
                low = i
            top += 1
        if top == 0:
            break
        top -= 1
        low, high = lows[top], highs[top]


class SortWorkspace(NamedTuple):
    """Memory in which n pairs are sorted."""

    keys: np.ndarray
    points: np.ndarray
    slots: np.ndarray


@kernel
def new_sort_workspace(n):
    """Allocate what :func:`sort_pairs` works in."""
    return SortWorkspace(np.empty(n), np.empty(n, np.uint32), np.empty(n + 1, np.int64))


@kernel
def sort_pairs(keys, points, n, workspace):
    """Sort the first n pairs.

    Distances of neighbours are spread out well enough that a slot by value nearly sorts them, and
    insertion does the rest. Where they are not, as with many ties, quicksort takes its place.
    """
    sorted_keys, sorted_points, slots = workspace
    lowest, highest = keys[0], keys[0]
    for t in range(1, n):
        lowest, highest = min(lowest, keys[t]), max(highest, keys[t])
    scale = (n - 1) / (highest - lowest) if lowest < highest < np.inf else 0.0
    is_spread = 0.0 < scale < np.inf
    if is_spread:
        for t in range(n + 1):
            slots[t] = 0
        for t in range(n):
            slot = np.uint64((keys[t] - lowest) * scale) + np.uint64(1)
            slots[slot] += 1
            is_spread &= slots[slot] <= 24
    if not is_spread:
        _split(keys, points, n)
    else:
        for t in range(1, n):
            slots[t] += slots[t - 1]
        for t in range(n):
            slot = np.uint64((keys[t] - lowest) * scale)
            sorted_keys[slots[slot]], sorted_points[slots[slot]] = keys[t], points[t]
            slots[slot] += 1
        # Not as slices, whose checks take long to compile.
        for t in range(n):
            keys[t], points[t] = sorted_keys[t], sorted_points[t]
    for t in range(1, n):
        key, point = keys[t], points[t]
        s = t - 1
        while s >= 0 and (keys[s] > key or (keys[s] == key and points[s] > point)):
            keys[s + 1], points[s + 1] = keys[s], points[s]
            s -= 1
        keys[s + 1], points[s + 1] = key, point


def rank_rows(distances: np.ndarray, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k points of the smallest distances in each row, and these distances.

    NumPy sorts. A compiled kernel is at most twice as fast, and compiling it takes over a second.

    Parameters
    ----------
    distances : ndarray of shape (m, n)
        Columns in the order of ties.
    rows : ndarray of shape (n,)
        The point of each column.
    k : int

    Returns
    -------
    points, smallest : ndarray of shape (m, k)
    """
    m, n = distances.shape
    points = np.broadcast_to(rows, (m, n))
    if 2 * k < n:
        # Only the k nearest, and what is tied with the last of them, are sorted.
        is_near = distances <= np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
        counts = is_near.sum(axis=1)
        is_filled = np.arange(counts.max(initial=k)) < counts[:, None]
        near, nearest = np.full(is_filled.shape, np.inf), np.zeros(is_filled.shape, rows.dtype)
        near[is_filled], nearest[is_filled] = distances[is_near], points[is_near]
        distances, points = near, nearest
    order = np.argsort(distances, axis=1)
    ranked = np.take_along_axis(distances, order, 1)
    # A stable sort keeps the order of ties, and takes three times as long where there are none.
    is_tied = (ranked[:, 1:] == ranked[:, :-1]).any(axis=1)
    order[is_tied] = np.argsort(distances[is_tied], axis=1, kind="stable")
    return np.take_along_axis(points, order[:, :k], 1), ranked[:, :k]
