"""Distances that the user has computed: a full matrix, or scikit-learn's sparse neighbour graph.

In a sparse graph a stored entry is a distance, an explicit zero included, and what is not stored
is unknown. The lists of a graph built from one are therefore as good as the stored neighbours:
a tie at the end of a row's entries was broken by whoever made them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bayesknn._utils.checks import check_points, is_sparse
from bayesknn._utils.jit import kernel
from bayesknn.graph.ties import TieOrder, new_sort_workspace, select_nth, sort_pairs


def check_distances(X: Any) -> Any:
    """Return a matrix of distances, a sparse one as CSR, or say which entry is none."""
    if not is_sparse(X):
        distances = check_points(X)
        if distances.min() < 0:
            row, column = np.argwhere(distances < 0)[0]
            _refuse_negative(distances[row, column], row, column)
        return distances
    if X.shape[0] == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    if X.dtype.kind not in "biuf":
        raise ValueError(f"the sparse graph holds {X.dtype}, it must hold distances")
    # scipy looks whether positions are within the matrix only where it is asked to.
    if hasattr(X, "check_format"):
        X.check_format(full_check=True)
    entries, graph = X.tocoo(), X.tocsr().astype(np.float64)
    graph.sum_duplicates()
    if graph.nnz < entries.nnz:
        places = np.column_stack([entries.row, entries.col])
        places, counts = np.unique(places, axis=0, return_counts=True)
        row, column = places[counts > 1][0]
        raise ValueError(
            f"the sparse graph stores the entry [{row}, {column}] twice; keep one distance"
        )
    bad = np.flatnonzero(~(np.isfinite(entries.data) & (entries.data >= 0)))
    if len(bad):
        row, column, value = (part[bad[0]] for part in (entries.row, entries.col, entries.data))
        if value < 0:
            _refuse_negative(value, row, column)
        what = "NaN" if np.isnan(value) else str(value)
        raise ValueError(f"the sparse graph has {what} at [{row}, {column}]")
    return graph


def _refuse_negative(value: float, row: int, column: int) -> None:
    raise ValueError(
        f"the distance matrix, which X is with metric='precomputed', has a negative entry, {value} "
        f"at [{row}, {column}]"
    )


def check_symmetric(distances: np.ndarray) -> None:
    """Refuse training distances that differ from one direction to the other, or from themselves."""
    # In strips, so that a large matrix is not copied.
    largest, tolerance = distances.max(), 1e-8
    n = len(distances)
    strip = max(1, 2**22 // n)
    for start in range(0, n, strip):
        here = distances[start : start + strip]
        there = distances[:, start : start + strip].T
        apart = np.abs(here - there) > tolerance * np.maximum(here, there)
        # Entries that are both nothing but rounding, next to the largest distance, may differ.
        apart &= np.maximum(here, there) > tolerance * largest
        if apart.any():
            row, column = np.argwhere(apart)[0]
            row += start
            raise ValueError(
                f"the distance matrix is not symmetric: {distances[row, column]} at "
                f"[{row}, {column}] but {distances[column, row]} at [{column}, {row}]"
            )
    nonzero = np.flatnonzero(np.diag(distances) > tolerance * largest)
    if len(nonzero):
        i = nonzero[0]
        raise ValueError(
            f"the distance matrix has {distances[i, i]} at [{i}, {i}], a point is at distance 0 "
            "from itself; these look like similarities"
        )


def count_stored(X: Any, groups: np.ndarray | None = None) -> int:
    """Return how many neighbours outside its own group every row of a sparse graph stores.

    Without groups, how many besides the point itself.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import kneighbors_graph
    >>> from bayesknn.graph.precomputed import count_stored
    >>> count_stored(kneighbors_graph(np.array([[0.0], [1.0], [3.0]]), 2, mode="distance"))
    2
    """
    entries = X.tocoo()
    groups = np.arange(X.shape[0]) if groups is None else groups
    others = entries.row[groups[entries.row] != groups[entries.col]]
    return int(np.bincount(others, minlength=X.shape[0]).min())


def rank_sparse(
    graph: Any, k: int, ties: TieOrder, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rank the stored neighbours of each row of a CSR graph by (distance, rank among ties).

    Parameters
    ----------
    graph : CSR array of shape (m, n)
        Stored entries are distances, zeros included.
    k : int
        Every row must store at least k neighbours.
    ties : TieOrder
        Of the columns.
    groups : ndarray of shape (n,), dtype uint32, optional
        Where row i is the point of column i: columns of its own group are left out.

    Returns
    -------
    neighbors : ndarray of shape (k, m), dtype uint32
    distances : ndarray of shape (k, m)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import kneighbors_graph
    >>> from bayesknn.graph.precomputed import rank_sparse
    >>> from bayesknn.graph.ties import order_ties
    >>> graph = kneighbors_graph(np.array([[0.0], [1.0], [3.0]]), 2, mode="distance")
    >>> rank_sparse(graph, 1, order_ties(3), np.arange(3, dtype=np.uint32))[0]
    array([[1, 0, 1]], dtype=uint32)
    """
    starts, indices = graph.indptr.astype(np.int64), graph.indices.astype(np.uint32)
    neighbors = np.empty((k, graph.shape[0]), np.uint32)
    distances = np.empty(neighbors.shape)
    of_points = np.empty(0, np.uint32) if groups is None else groups
    short = _rank_stored(starts, indices, graph.data, ties, of_points, neighbors, distances)
    if short >= 0:
        stored = indices[starts[short] : starts[short + 1]]
        n_stored, besides = len(stored), ""
        if groups is not None:
            n_stored = int(np.sum(groups[stored] != groups[short]))
            is_grouped = np.bincount(groups).max() > 1
            besides = " outside its own group" if is_grouped else " besides the point itself"
        raise ValueError(
            f"row {short} of the sparse graph stores {n_stored} neighbours{besides}, k_max={k} "
            f"needs at least {k}"
        )
    return neighbors, distances


def warn_of_missing(rows: Any, neighbors: np.ndarray, distances: np.ndarray) -> None:
    """Warn where sparse rows of new points likely lack reverse neighbours.

    A training point i has the new point x among its k nearest where ``d(i, x) < d_(k)(i)``, and is
    counted only if ``d(i, x)`` is stored. In the training graph, whose edges i to j are all known,
    a part of them is longer than t times ``d_(k)(j)``; a row that stores distances up to t times
    its own k-th lacks about the same part of its reverse neighbours.

    Parameters
    ----------
    rows : CSR array of shape (m, n)
    neighbors, distances : ndarray of shape (k_max, n)
        The lists of the training points.
    """
    k, radii = len(distances), distances[-1]
    # A million edges and a thousand rows are enough for an estimate.
    n, some = len(radii), slice(None, None, -(-distances.size // 10**6))
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = distances[:, some] / radii[neighbors[:, some]]
    lengths = np.sort(np.nan_to_num(lengths, posinf=np.inf), axis=None)
    sorted_radii = np.sort(radii)
    counted, missing = 0.0, 0.0
    sample = range(0, rows.shape[0], -(-rows.shape[0] // 1000))
    for q in sample:
        stored = slice(rows.indptr[q], rows.indptr[q + 1])
        row, members = rows.data[stored], radii[rows.indices[stored]]
        if len(row) < k:
            return  # Too few for the lists themselves, which says so.
        kth, last = np.partition(row, k - 1)[k - 1], row.max()
        ratio = last / kth if kth > 0 else np.inf
        beyond = 1 - np.searchsorted(lengths, ratio, side="right") / lengths.size
        n_found = np.count_nonzero(row < members)
        at_most = n - np.searchsorted(sorted_radii, last, side="right") - np.sum(members > last)
        missing += min(n_found * beyond / (1 - beyond), at_most) if beyond < 1 else at_most
        counted += n_found
    # As many as a 500th of k move a probability by less than a thousandth.
    if missing > 0.002 * k * len(sample):
        missing, counted = missing / len(sample), counted / len(sample)
        warnings.warn(
            f"sparse rows store {np.diff(rows.indptr).mean():.0f} distances of a new point: of "
            f"about {counted + missing:.1f} training points that would have it among their {k} "
            f"nearest, {missing:.1f} are likely not stored, and are not counted; store every "
            f"distance below {sorted_radii[-1]:.4g}, or as many as fit, to count them",
            UserWarning,
            stacklevel=4,
        )


def find_tied_beyond(graph: Any, distances: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return whether a stored neighbour outside a row's list is as near as the last one in it."""
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    is_near = (graph.data <= distances[-1][rows]) & (groups[graph.indices] != groups[rows])
    return np.bincount(rows[is_near], minlength=graph.shape[0]) > len(distances)


@kernel
def _rank_stored(starts, indices, data, ties, groups, neighbors, distances):
    """Fill the lists; return the first row with too few entries, or -1."""
    k, m = neighbors.shape
    rows, ranks = ties
    longest = 0
    for q in range(m):
        longest = max(longest, starts[q + 1] - starts[q])
    keys = np.empty(longest)
    points = np.empty(longest, np.uint32)
    workspace = new_sort_workspace(k)
    for q in range(m):
        n_stored = 0
        for e in range(starts[q], starts[q + 1]):
            if groups.size == 0 or groups[indices[e]] != groups[q]:
                keys[n_stored], points[n_stored] = data[e], ranks[indices[e]]
                n_stored += 1
        if n_stored < k:
            return q
        if n_stored > k:
            select_nth(keys, points, 0, n_stored, k - 1)
        sort_pairs(keys, points, k, workspace)
        neighbors[:, q] = rows[points[:k]]
        distances[:, q] = keys[:k]
    return -1
