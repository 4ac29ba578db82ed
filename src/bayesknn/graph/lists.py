"""Graphs that are given by their neighbour lists alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.jit import kernel

# Ranks that shape the breadth-first order; more would cost time and change little.
_LINKS = 5


def check_lists(neighbors: Any, distances: Any = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Check rank-major lists and return them as a graph stores them.

    Examples
    --------
    >>> from bayesknn.graph.lists import check_lists
    >>> check_lists([[1, 1, 0]])
    Traceback (most recent call last):
    ...
    ValueError: point 1 stands in its own list, at rank 1
    """
    given = np.asarray(neighbors)
    if given.ndim != 2 or given.size == 0:
        raise ValueError(f"neighbors must have shape (k_max, n), got {given.shape}")
    k_max, n = given.shape
    if k_max >= n:
        raise ValueError(f"k_max={k_max} needs at least {k_max + 1} points, neighbors has {n}")
    if given.dtype.kind not in "iu":
        raise ValueError(f"neighbors must be integers, got {given.dtype}")
    outside = (given < 0) | (given >= n)
    if outside.any():
        r, i = np.argwhere(outside)[0]
        raise ValueError(
            f"point {i} has the neighbour {given[r, i]} at rank {r + 1}, points are 0..{n - 1}"
        )
    lists = np.array(given, dtype=np.uint32, order="C")
    i, r = _find_repeat(lists)
    if i >= 0:
        if lists[r, i] == i:
            raise ValueError(f"point {i} stands in its own list, at rank {r + 1}")
        raise ValueError(f"point {i} has the neighbour {lists[r, i]} twice, again at rank {r + 1}")
    if distances is None:
        return lists, None
    lengths = np.array(distances, dtype=np.float64, order="C")
    if lengths.shape != lists.shape:
        raise ValueError(f"neighbors has shape {lists.shape} but distances {lengths.shape}")
    bad = ~(lengths >= 0)
    bad[1:] |= lengths[1:] < lengths[:-1]
    if bad.any():
        r, i = np.argwhere(bad)[0]
        raise ValueError(
            f"point {i} has the distance {lengths[r, i]} at rank {r + 1}; distances must be >= 0 "
            "and not fall with the rank"
        )
    return lists, lengths


def order_by_links(neighbors: np.ndarray) -> np.ndarray:
    """Return a permutation that puts linked points near each other (reverse Cuthill-McKee).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.lists import order_by_links
    >>> order_by_links(np.array([[2, 3, 0, 1]], dtype=np.uint32)).tolist()
    [3, 1, 2, 0]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    few = neighbors[:_LINKS]
    k, n = few.shape
    starts = np.arange(0, k * n + 1, k)
    links = csr_array((np.ones(k * n, np.int8), few.T.ravel().astype(np.int32), starts), (n, n))
    both = (links + links.T).tocsr()
    return reverse_cuthill_mckee(both, symmetric_mode=True).astype(np.int64)


@kernel
def _find_repeat(neighbors):
    """Return the point and rank of the first entry that is the point itself or stands twice."""
    k_max, n = neighbors.shape
    seen_by = np.full(n, -1)
    for i in range(n):
        seen_by[i] = i
        for r in range(k_max):
            j = neighbors[r, i]
            if seen_by[j] == i:
                return i, r
            seen_by[j] = i
    return -1, -1
