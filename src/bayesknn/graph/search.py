"""Neighbour search: one front, several structures, the same lists to the bit.

Whatever finds the candidates, they are ordered by (distance, key of the row) on distances that
come from the metric's one formula (SPEC, notation). A structure that finds candidates by arithmetic
of its own is asked for a little more than needed, and what it returns is measured again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._validation import check_count, is_sparse
from bayesknn.graph.blocked import is_worth_products, nearest_by_products
from bayesknn.graph.kdsearch import nearest_in_tree
from bayesknn.graph.kdtree import KDTree, build_tree
from bayesknn.graph.metrics import Metric
from bayesknn.graph.ordering import _NOBODY, _rank_rows
from bayesknn.graph.precomputed import Precomputed, find_tied_beyond, rank_sparse
from bayesknn.graph.threads import run_in_threads
from bayesknn.graph.ties import TieOrder, order_ties

SEARCHES = ("auto", "brute", "kd_tree", "ball_tree", "blocked")
# A chunk of distances holds about this many, 16 MB.
_CHUNK = 2**21
# Rounding in a borrowed tree's arithmetic is far below this.
_SLACK = 1e-9
_MORE = 8
# A borrowed tree is trusted with distances whose powers are at least as large and at most as small.
_SMALLEST, _LARGEST = 1e-280, 1e280
# A ball tree skips little in many dimensions, and is asked point by point: measured, it pays only
# on more points than this.
_MANY = 50_000


class SearchIndex:
    """What a graph needs to answer questions about new points.

    Attributes
    ----------
    metric : Metric
        Fitted to the training points.
    search : str
        ``"brute"``, ``"kd_tree"``, ``"ball_tree"`` or ``"blocked"``: what found the graph's
        neighbours.
    points : ndarray of shape (n, p) or None
        The training points as the metric's numbers; None where the tree holds them, and for
        precomputed distances.
    tree : KDTree or None
    tie_order : int
        Which order of the rows settles equal distances.
    """

    def __init__(
        self, metric: Metric, search: str, points: Any, tree: KDTree | None, tie_order: int
    ):
        self.metric = metric
        self.search = search
        self.points = points
        self.tree = tree
        self.tie_order = tie_order

    def __repr__(self) -> str:
        return f"SearchIndex({self.metric!r}, search={self.search!r})"


def find_neighbors(
    X: Any,
    k_max: int,
    metric: Metric,
    search: str = "auto",
    n_jobs: int | None = None,
    tie_order: int = 0,
) -> tuple[np.ndarray, np.ndarray, SearchIndex, np.ndarray]:
    """Find every training point's ``k_max`` nearest others, ordered by (distance, key of the row).

    Parameters
    ----------
    X : array or frame of shape (n, p)
        Training points; a matrix of distances for a precomputed metric.
    k_max : int
        In 1..n-1.
    metric : Metric
        Is fitted here.
    search : {"auto", "brute", "kd_tree", "ball_tree", "blocked"}
    n_jobs : int, optional
        Threads, as in joblib.
    tie_order : int
        Which order of the rows settles equal distances.

    Returns
    -------
    neighbors : ndarray of shape (k_max, n), dtype uint32
    distances : ndarray of shape (k_max, n)
    index : SearchIndex
    tied_beyond : ndarray of shape (n,), dtype bool
        Whether a point outside the list is as near as the last one in it.

    Examples
    --------
    >>> from bayesknn.graph.metrics import Euclidean
    >>> from bayesknn.graph.search import find_neighbors
    >>> points = [[0.0], [1.0], [3.0], [5.0]]
    >>> neighbors, _, index, tied_beyond = find_neighbors(points, 1, Euclidean())
    >>> neighbors.tolist(), index.search, tied_beyond.tolist()
    ([[1, 0, 1, 2]], 'kd_tree', [False, False, True, False])
    """
    if search not in SEARCHES:
        raise ValueError(f"search must be one of {', '.join(SEARCHES)}, got {search!r}")
    k_max = check_count(k_max, "k_max")
    tie_order = check_count(tie_order, "tie_order", 0, 2**32 - 1)
    points = metric.fit(X)
    n = points.shape[0]
    if k_max >= n:
        raise ValueError(f"k_max={k_max} needs at least {k_max + 1} points, X has n_samples = {n}")
    ties = order_ties(n, tie_order)
    # One more than asked for shows whether the last is tied with points that are left out.
    k = min(k_max + 1, n - 1)
    if isinstance(metric, Precomputed):
        if search not in ("auto", "brute"):
            raise ValueError(f"search={search!r} needs points, metric='precomputed' has none")
        index = SearchIndex(metric, "brute", None, None, tie_order)
        if is_sparse(points):
            neighbors, distances = rank_sparse(points, k_max, ties, is_self=True)
            return neighbors, distances, index, find_tied_beyond(points, distances)
        return _split_last(_rank_all(metric, points, points, ties, k, n_jobs), k_max, index)
    found, tree, search = _search(points, ties, k, metric, search, n_jobs)
    if tree is None and isinstance(X, np.ndarray) and np.may_share_memory(points, X):
        points = points.copy()  # The caller may write to X later.
    held = points if tree is None else None
    return _split_last(found, k_max, SearchIndex(metric, search, held, tree, tie_order))


def find_joint_neighbors(
    index: SearchIndex, X: Any, k_max: int, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Find the ``k_max`` nearest others of every training and new point, among all of them.

    See :meth:`bayesknn.graph.NeighborGraph.join`. New points come after equally distant training
    points, as they do where a new point comes alone.
    """
    metric = index.metric
    if isinstance(metric, Precomputed):
        raise ValueError(
            "with metric='precomputed' the distances among new points are not known; fit on the "
            "points themselves, with the name of a metric or a function of two rows"
        )
    known = index.points if index.tree is None else index.tree.points()
    rows = metric.transform(X)
    n, m = len(known), len(rows)
    k_max = check_count(k_max, "k_max", 1, n + m - 1)
    first, last = order_ties(n, index.tie_order), order_ties(m, index.tie_order)
    ties = TieOrder(np.append(first.rows, n + last.rows), np.append(first.ranks, n + last.ranks))
    ties.rows.flags.writeable = ties.ranks.flags.writeable = False
    points = np.concatenate([known, rows])
    return _search(points, ties, k_max, metric, index.search, n_jobs)[0]


def _search(
    points: np.ndarray, ties: TieOrder, k: int, metric: Metric, search: str, n_jobs: int | None
) -> tuple[tuple[np.ndarray, np.ndarray], KDTree | None, str]:
    """Return the lists of every point, our own tree where there is one, and the search taken."""
    if search in ("auto", "kd_tree", "blocked") and metric.is_euclidean:
        tree = build_tree(points, ties)
        if search == "auto":
            search = "blocked" if is_worth_products(points, tree, k) else "kd_tree"
        found = None
        if search == "blocked":
            found = _rank_by_products(metric, points, ties, tree, k, n_jobs)
        return found or nearest_in_tree(tree, None, k, n_jobs), tree, search
    if search == "blocked":
        raise ValueError(f"search='blocked' does not serve metric {metric.name!r}; use 'brute'")
    if search == "auto":
        search = _choose(metric, points)
    if search == "brute":
        return _rank_all(metric, points, points, ties, k, n_jobs), None, search
    return _rank_candidates(metric, points, ties, k, search), None, search


def _split_last(found: tuple[np.ndarray, np.ndarray], k_max: int, index: SearchIndex) -> Any:
    neighbors, distances = found
    tied_beyond = (distances[k_max:] == distances[k_max - 1]).any(axis=0)
    return neighbors[:k_max], distances[:k_max], index, tied_beyond


def _choose(metric: Metric, points: np.ndarray) -> str:
    """Return what is fastest for a metric that is not Euclidean."""
    is_named = isinstance(getattr(metric, "metric", None), str)
    if is_named and points.shape[0] > _MANY and points.shape[1] <= 6:
        return "ball_tree" if metric.candidate_tree("ball_tree", points[:2]) else "brute"
    return "brute"


def _rank_all(
    metric: Metric, rows: Any, points: Any, ties: TieOrder, k: int, n_jobs: int | None
) -> Any:
    """Measure every pair, a chunk of rows at a time."""
    n = rows.shape[0]
    neighbors = np.empty((k, n), np.uint32)
    ranked = np.empty((k, n))
    arranged = metric.arrange(points)
    own = np.arange(n, dtype=np.uint32)

    def rank(start: Any, stop: Any) -> None:
        found = metric.distances(rows[start:stop], arranged)
        _rank_rows(found, ties, own[start:stop], start, neighbors, ranked)

    run_in_threads(rank, n, max(1, _CHUNK // n), n_jobs)
    return neighbors, ranked


def _rank_by_products(
    metric: Metric, points: np.ndarray, ties: TieOrder, tree: KDTree, k: int, n_jobs: int | None
) -> Any:
    """Measure candidates from matrix products; None where too many points cannot be told apart."""
    neighbors, distances, left = nearest_by_products(points, tree, k, n_jobs)
    if len(left) == len(points):
        return None
    _rank_some(metric, points, ties, left.astype(np.uint32), neighbors, distances)
    return neighbors, distances


def _rank_candidates(
    metric: Metric, points: np.ndarray, ties: TieOrder, k: int, search: str
) -> Any:
    """Let a scikit-learn tree propose, then order by the metric's own distances."""
    tree = metric.candidate_tree(search, points)
    if tree is None:
        why = ", which is not known to keep the triangle inequality" * (search == "ball_tree")
        raise ValueError(
            f"search={search!r} does not serve metric {metric.name!r}{why}; use 'brute'"
        )
    n = len(points)
    neighbors = np.empty((k, n), np.uint32)
    ranked = np.empty((k, n))
    left = []
    # The point itself is one of the k + 1. All that lie as far as the last are wanted, since the
    # tree settles ties in an order of its own; a few more show where the ties end.
    asked = min(n, k + 1 + _MORE)
    for start in range(0, n, _CHUNK // asked + 1):
        rows = points[start : start + _CHUNK // asked + 1]
        reached, proposed = tree.query(rows, asked)
        radius = reached[:, k] * (1.0 + _SLACK)
        is_trusted = _is_trusted(metric, radius)
        is_open = (reached[:, -1] <= radius) & (asked < n) & is_trusted
        if is_open.any():
            proposed = list(proposed)
            wider = tree.query_radius(rows[is_open], radius[is_open])
            for position, more in zip(np.flatnonzero(is_open), wider, strict=True):
                proposed[position] = more
        for q, candidates in enumerate(proposed):
            i = start + q
            # Where a distance overflows, the tree fills up with a point that stands there already.
            candidates = np.unique(candidates).astype(np.uint32)
            own = np.searchsorted(candidates, i)
            is_there = own < len(candidates) and candidates[own] == i
            if not is_trusted[q] or len(candidates) - is_there < k:
                left.append(i)
                continue
            found = metric.distances(rows[q : q + 1], metric.arrange(points[candidates]))
            skip = np.array([own if is_there else _NOBODY], dtype=np.uint32)
            some = TieOrder(ties.rows, ties.ranks[candidates])
            some.ranks.flags.writeable = (
                False  # As all others are: one compiled kernel serves them.
            )
            _rank_rows(found, some, skip, i, neighbors, ranked)
    _rank_some(metric, points, ties, np.array(left, dtype=np.uint32), neighbors, ranked)
    return neighbors, ranked


def _is_trusted(metric: Metric, radius: np.ndarray) -> np.ndarray:
    """Whether the tree could tell distances near these apart: no power of them under- or overflows.

    At distance 0 there is nothing to tell, but what underflows looks the same.
    """
    p = float(getattr(metric, "params", {}).get("p", 2))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        power = radius ** (max(p, 2.0) if np.isfinite(p) else 2.0)
    return (power > _SMALLEST) & (power < _LARGEST)


def _rank_some(
    metric: Metric,
    points: np.ndarray,
    ties: TieOrder,
    which: np.ndarray,
    neighbors: Any,
    ranked: Any,
) -> None:
    """Measure every pair of a few rows."""
    if len(which) == 0:
        return
    arranged = metric.arrange(points)
    chunk = max(1, _CHUNK // len(points))
    for start in range(0, len(which), chunk):
        own = which[start : start + chunk]
        near = np.empty((len(neighbors), len(own)), np.uint32)
        far = np.empty(near.shape)
        _rank_rows(metric.distances(points[own], arranged), ties, own, 0, near, far)
        neighbors[:, own], ranked[:, own] = near, far
