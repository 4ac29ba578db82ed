"""Training points that would have a new point among their k nearest (SPEC, predictive).

A new point x takes rank ``r = 1 + #{neighbours j of l : d(l, j) <= d(l, x)}`` in training point
l's list: at equal distance the training point keeps its place. x is then among the k nearest of l
for every k >= r, which is the condition ``d(l, x) < d_(k)(l)``. Entries are sorted by (rank,
index), so that those of any k are a prefix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph.kdtree import _LEAF, KDTree
from bayesknn.graph.reach import Reach, _enter, _find_reached, _make_hits
from bayesknn.graph.rounded import _GROUP, Rounded, _load, _make_group, round_tree
from bayesknn.graph.threads import run_in_threads

_LEAVES_A_TASK = 16
_SHIFT = np.uint64(32)


def reverse_in_tree(
    tree: KDTree,
    reach: Reach,
    queries: KDTree,
    n_jobs: int | None = None,
    rounded: Rounded | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find reverse neighbours by a KD-tree whose leaves know how far their points reach.

    Parameters
    ----------
    tree : KDTree
        Over the training points.
    reach : Reach
    queries : KDTree
        Over the new points.
    n_jobs : int, optional
        Threads, as in joblib.
    rounded : Rounded, optional
        The tree in single precision, where it is known already.

    Returns
    -------
    starts : ndarray of shape (m + 1,), dtype int64
        New point q's entries are ``starts[q] : starts[q + 1]``.
    points : ndarray, dtype uint32
        Training points, by (rank, index).
    ranks : ndarray, dtype uint32
        Rank, from 1, that the new point takes in their lists.
    """
    rounded = round_tree(tree) if rounded is None else rounded
    radii = reach.radii(rounded)
    parts: list[Any] = [None] * -(-len(queries.blocks) // _LEAVES_A_TASK)

    def search(start: Any, stop: Any) -> None:
        parts[start // _LEAVES_A_TASK] = _search_reverse(
            tree.order, tree.blocks, rounded, reach.lists, reach.squares, radii,
            queries.blocks, start, stop, len(queries.order),
        )  # fmt: skip

    run_in_threads(search, len(queries.blocks), _LEAVES_A_TASK, n_jobs)
    return assemble(parts, queries.order)


def reverse_in_rows(rows: np.ndarray, lists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find reverse neighbours from full rows of distances.

    Parameters
    ----------
    rows : ndarray of shape (m, n)
        Distances from new points to training points.
    lists : ndarray of shape (n, k_max)
        Each training point's sorted distances.

    Returns
    -------
    counts : ndarray of shape (m,), dtype int64
    entries : ndarray, dtype uint64
        Packed (rank, index), for :func:`assemble`.
    """
    return _scan_rows(rows, lists)


def reverse_in_sparse(
    starts: np.ndarray, indices: np.ndarray, data: np.ndarray, lists: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find reverse neighbours among the stored entries of a CSR graph."""
    return _scan_stored(starts, indices, data, lists)


def assemble(
    parts: list[tuple[np.ndarray, np.ndarray]], order: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join the parts, whose queries come in ``order``, into one CSR layout by query.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.reverse import assemble
    >>> entries = np.array([(2 << 32) + 7, (1 << 32) + 5], dtype=np.uint64)
    >>> starts, points, ranks = assemble([(np.array([1, 1]), entries)], np.array([1, 0]))
    >>> starts.tolist(), points.tolist(), ranks.tolist()
    ([0, 1, 2], [5, 7], [1, 2])
    """
    counts = np.concatenate([part[0] for part in parts])
    entries = np.concatenate([part[1] for part in parts])
    sizes = np.empty(len(order), np.int64)
    sizes[order] = counts
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    points = np.empty(len(entries), np.uint32)
    ranks = np.empty(len(entries), np.uint32)
    _unpack(counts, entries, order.astype(np.int64), starts, points, ranks)
    return starts, points, ranks


@kernel
def _sort_by_rank(entries, start, stop, spare, slots):
    """Sort packed entries by rank, stably, and return ``spare``, longer if need be.

    Ranks are few and their entries spread over them, so they are counted into place.
    """
    spare = _grow(spare, stop - start)
    for r in range(slots.shape[0]):
        slots[r] = 0
    for e in range(start, stop):
        slots[entries[e] >> _SHIFT] += 1
    for r in range(1, slots.shape[0]):
        slots[r] += slots[r - 1]
    for e in range(stop - 1, start - 1, -1):
        rank = entries[e] >> _SHIFT
        slots[rank] -= 1
        spare[slots[rank]] = entries[e]
    for e in range(stop - start):
        entries[start + e] = spare[e]
    return spare


@kernel
def _sort_entries(entries, start, stop, spare, slots):
    """Sort packed entries by (rank, index) and return ``spare``, longer if need be."""
    spare = _sort_by_rank(entries, start, stop, spare, slots)
    first = start
    while first < stop:
        last = start + slots[(entries[first] >> _SHIFT) + np.uint64(1)]
        if last - first > 16:
            entries[first:last].sort()
        else:
            for e in range(first + 1, last):
                entry = entries[e]
                s = e - 1
                while s >= first and entries[s] > entry:
                    entries[s + 1] = entries[s]
                    s -= 1
                entries[s + 1] = entry
        first = last
    return spare


@kernel
def _grow(entries, needed):
    if needed <= entries.shape[0]:
        return entries
    longer = np.empty(max(needed, 2 * entries.shape[0]), np.uint64)
    for e in range(entries.shape[0]):
        longer[e] = entries[e]
    return longer


@kernel
def _search_reverse(
    order, blocks, rounded, lists, reach, radii, query_blocks, start, stop, m
):  # fmt: skip
    k_max = lists.shape[1]
    counts = np.zeros(min(stop * _LEAF, m) - start * _LEAF, np.int64)
    entries = np.empty(counts.shape[0] * k_max, np.uint64)
    spare, slots = np.empty(2 * k_max, np.uint64), np.empty(k_max + 2, np.int64)
    group = _make_group(blocks.shape[1], blocks.shape[0])
    held = _make_hits()
    queries, members, places = held.queries, held.members, held.places
    # Of a group, as they are found: the entries and the queries that they belong to.
    found, whose = np.empty(4096, np.uint64), np.empty(4096, np.uint64)
    ends = np.empty(_GROUP * _LEAF + 1, np.int64)
    total = 0
    for b in range(start, stop, _GROUP):
        size = min(_LEAF * min(_GROUP, stop - b), m - b * _LEAF)
        _load(query_blocks, b, size, rounded, group)
        n_found, leaf = 0, 0
        ends[:] = 0
        while leaf < blocks.shape[0]:
            n_hits, leaf = _find_reached(
                blocks, rounded, lists, reach, radii, group, size, leaf, held
            )
            found, whose = _grow(found, n_found + n_hits), _grow(whose, n_found + n_hits)
            for h in range(n_hits):
                # Beyond the list, where the square alone let it pass.
                if places[h] < np.uint64(k_max):
                    rank = places[h] + np.uint64(1)
                    found[n_found] = (rank << _SHIFT) | np.uint64(order[members[h]])
                    whose[n_found] = np.uint64(queries[h])
                    ends[queries[h] + 1] += 1
                    n_found += 1
        entries = _grow(entries, total + n_found)
        first = (b - start) * _LEAF
        for q in range(size):
            counts[first + q] = ends[q + 1]
            ends[q + 1] += ends[q]
        for e in range(n_found):
            entries[total + ends[whose[e]]] = found[e]
            ends[whose[e]] += 1
        for q in range(size):
            spare = _sort_entries(entries, total, total + counts[first + q], spare, slots)
            total += counts[first + q]
    return counts, entries[:total].copy()


@kernel
def _scan_rows(rows, lists):
    m, n = rows.shape
    k_max = lists.shape[1]
    counts = np.zeros(m, np.int64)
    entries = np.empty(m * k_max, np.uint64)
    spare, slots = np.empty(2 * k_max, np.uint64), np.empty(k_max + 2, np.int64)
    members, places, distances = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n)
    total = 0
    for q in range(m):
        size = 0
        for i in range(n):
            if rows[q, i] < lists[i, k_max - 1]:
                members[size], distances[size] = np.uint64(i), rows[q, i]
                size += 1
        _enter(lists, members, distances, size, places)
        entries = _grow(entries, total + size)
        for h in range(size):
            entries[total + h] = ((places[h] + np.uint64(1)) << _SHIFT) | members[h]
        spare = _sort_by_rank(entries, total, total + size, spare, slots)
        counts[q] = size
        total += size
    return counts, entries[:total].copy()


@kernel
def _scan_stored(starts, indices, data, lists):
    m, n = starts.shape[0] - 1, lists.shape[0]
    k_max = lists.shape[1]
    counts = np.zeros(m, np.int64)
    entries = np.empty(data.shape[0], np.uint64)
    spare, slots = np.empty(2 * k_max, np.uint64), np.empty(k_max + 2, np.int64)
    members, places, distances = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n)
    total = 0
    for q in range(m):
        size = 0
        for e in range(starts[q], starts[q + 1]):
            if data[e] < lists[indices[e], k_max - 1]:
                members[size], distances[size] = np.uint64(indices[e]), data[e]
                size += 1
        _enter(lists, members, distances, size, places)
        for h in range(size):
            entries[total + h] = ((places[h] + np.uint64(1)) << _SHIFT) | members[h]
        spare = _sort_entries(entries, total, total + size, spare, slots)
        counts[q] = size
        total += size
    return counts, entries[:total].copy()


@kernel
def _unpack(counts, entries, order, starts, points, ranks):
    source = 0
    for t in range(order.shape[0]):
        target = starts[order[t]]
        for e in range(counts[t]):
            points[target + e] = np.uint32(entries[source] & np.uint64(0xFFFFFFFF))
            ranks[target + e] = np.uint32(entries[source] >> _SHIFT)
            source += 1
