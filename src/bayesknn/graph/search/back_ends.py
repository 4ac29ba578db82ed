"""Which back end finds the neighbours: the names users write, and what "auto" means by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.checks import check_choice, check_count, check_groups, is_sparse
from bayesknn._utils.extras import SEARCHES
from bayesknn._utils.progress import progress
from bayesknn.graph.metrics import Metric, Precomputed
from bayesknn.graph.precomputed import find_tied_beyond
from bayesknn.graph.search.blocked import BlockedSearch, is_worth_blocking
from bayesknn.graph.search.brute import (
    BallTreeSearch,
    BruteSearch,
    PrecomputedSearch,
    ScikitLearnKDTreeSearch,
)
from bayesknn.graph.search.kd_tree import TreeSearch
from bayesknn.graph.search.search_index import Lists, SearchIndex
from bayesknn.graph.ties import TieOrder, order_ties

# A ball tree skips little in many dimensions, and is asked point by point: measured, it pays only
# on more points than this.
_MANY = 50_000


def find_neighbors(
    X: Any,
    k_max: int,
    metric: Metric,
    search: str = "auto",
    n_jobs: int | None = None,
    verbose: int = 0,
    groups: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, SearchIndex, np.ndarray]:
    """Find every training point's ``k_max`` nearest others, ordered by (distance, key of the row).

    Parameters
    ----------
    X : array or frame of shape (n, p)
        Training points; a matrix of distances for a precomputed metric.
    k_max : int
        In 1..n-1; with groups at most n less the size of the largest.
    metric : Metric
        Is fitted here.
    search : str
        One of ``SEARCHES``.
    n_jobs : int, optional
        Threads, as in joblib.
    verbose : int
        Above 0, a bar is shown once two seconds have passed.
    groups : ndarray of shape (n,), dtype uint32, optional
        Group numbers from 0; no point of a group is a neighbour of another one.

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
    >>> from bayesknn.graph.search.back_ends import find_neighbors
    >>> points = [[0.0], [1.0], [3.0], [5.0]]
    >>> neighbors, _, index, tied_beyond = find_neighbors(points, 1, Euclidean())
    >>> neighbors.tolist(), index.name, tied_beyond.tolist()
    ([[1, 0, 1, 2]], 'brute', [False, False, True, False])
    """
    k_max = check_count(k_max, "k_max")
    index = build_index(X, metric, search, groups)
    n = index.n_points
    if k_max >= n:
        raise ValueError(f"k_max={k_max} needs at least {k_max + 1} points, X has n_samples = {n}")
    if k_max > n - index.n_relatives:
        raise ValueError(
            f"k_max={k_max} is too large: the largest group has {index.n_relatives} of {n} rows, "
            f"whose neighbours are the other {n - index.n_relatives}"
        )
    if search == "auto" and isinstance(index, TreeSearch):
        if is_worth_blocking(index.tree, min(k_max + 1, n - 1)):
            index = BlockedSearch.from_tree(index)
    neighbors, distances, tied_beyond = search_all(index, k_max, n_jobs, verbose)
    return neighbors, distances, index, tied_beyond


def search_all(
    index: SearchIndex, k_max: int, n_jobs: int | None = None, verbose: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find every training point's ``k_max`` nearest others, and whether the last is tied.

    Parameters
    ----------
    index, k_max, n_jobs, verbose
        As in :func:`find_neighbors`.

    Returns
    -------
    neighbors, distances, tied_beyond : ndarray
        As :func:`find_neighbors` returns them.
    """
    if isinstance(index, PrecomputedSearch) and is_sparse(index.given):
        neighbors, distances = index.neighbors(k_max)
        return neighbors, distances, find_tied_beyond(index.given, distances, index.group_of_points)
    # One more than asked for shows whether the last is tied with points that are left out.
    k = min(k_max + 1, index.n_points - index.n_relatives)
    with progress("Finding neighbours", index.n_points, verbose=verbose) as advance:
        neighbors, distances = index.neighbors(k, n_jobs, advance)
    check_reach(index.metric, index.points, distances[:k_max])
    tied_beyond = (distances[k_max:] == distances[k_max - 1]).any(axis=0)
    return neighbors[:k_max], distances[:k_max], tied_beyond


def check_reach(metric: Metric, rows: Any, distances: np.ndarray) -> None:
    """Raise ValueError if a row has fewer neighbours at a finite distance than were asked for."""
    short = np.flatnonzero(np.isinf(distances[-1]))
    if len(short):
        n_near = np.isfinite(distances[:, short[0]]).sum()
        raise ValueError(
            f"metric {metric.name!r}: {metric.decode(rows[short[0]])} has a distance "
            f"to {n_near} training points, fewer than the {len(distances)} neighbours asked for: "
            "ask for fewer, or leave the row out"
        )


def build_index(
    X: Any,
    metric: Metric,
    search: str = "auto",
    groups: np.ndarray | None = None,
) -> SearchIndex:
    """Make points searchable, without searching for their own neighbours.

    Parameters
    ----------
    X, metric, search, groups
        As in :func:`find_neighbors`.

    Returns
    -------
    SearchIndex

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.metrics import Euclidean
    >>> from bayesknn.graph.search import build_index
    >>> index = build_index([[0.0], [1.0], [3.0]], Euclidean())
    >>> (_, distances), _ = index.query(np.array([[2.5]]), k=2, radii=None)
    >>> distances.tolist()
    [[0.5], [1.5]]
    """
    if str(search).startswith("faiss"):
        raise ValueError(
            f"search={search!r} was removed: pass the lists that faiss finds as a sparse graph of "
            "distances, with metric='precomputed'; docs/scaling.md shows how"
        )
    check_choice(search, "search", SEARCHES)
    points = metric.fit(X)
    kind = _find_kind(search, metric, points)
    # The caller may write to X later; given distances are not looked at again.
    if kind is not PrecomputedSearch and isinstance(X, np.ndarray):
        points = points.copy() if np.may_share_memory(points, X) else points
    return kind(points, metric, groups=groups)


def find_joint_neighbors(
    index: SearchIndex, X: Any, k_max: int, n_jobs: int | None = None
) -> Lists:
    """Find the ``k_max`` nearest others of every training and new point, among all of them.

    See :meth:`bayesknn.graph.NeighborGraph.join`. New points come after equally distant training
    points, as they do where a new point comes alone.
    """
    metric, known = index.metric, index.points
    if known is None:
        raise ValueError(
            "with metric='precomputed' the distances among new points are not known; fit on the "
            "points themselves, with the name of a metric or a function of two rows"
        )
    rows = metric.transform(X)
    n, m = len(known), len(rows)
    k_max = check_count(k_max, "k_max", 1, n + m - index.n_relatives)
    groups = None
    if index.groups is not None:
        # Each new point is a group of its own.
        alone = index.groups.max() + np.arange(1, m + 1, dtype=np.uint32)
        groups = np.append(index.groups, alone)
    first, last = order_ties(n), order_ties(m)
    ties = TieOrder(np.append(first.rows, n + last.rows), np.append(first.ranks, n + last.ranks))
    ties.rows.flags.writeable = ties.ranks.flags.writeable = False
    points = np.concatenate([known, rows])
    lists = _find_kind("auto", metric, points)(points, metric, ties, groups).neighbors(
        k_max, n_jobs
    )
    check_reach(metric, points, lists[1])
    return lists


def find_neighbors_among(index: SearchIndex, rows: np.ndarray, k_max: int) -> Lists | None:
    """Find the ``k_max`` nearest of some training points among these; None without the points.

    See :meth:`bayesknn.graph.NeighborGraph.take`.
    """
    points, metric = index.points, index.metric
    if points is None:
        return None
    some = np.ascontiguousarray(points[rows])
    groups = None if index.groups is None else check_groups(index.groups[rows], len(rows))
    lists = _find_kind("auto", metric, some)(some, metric, groups=groups).neighbors(k_max)
    check_reach(metric, some, lists[1])
    return lists


def _find_kind(search: str, metric: Metric, points: Any) -> type[SearchIndex]:
    if isinstance(metric, Precomputed):
        if search not in ("auto", "brute"):
            raise ValueError(f"search={search!r} needs points, metric='precomputed' has none")
        return PrecomputedSearch
    if search == "auto":
        search = _choose(metric, points)
    if search == "blocked" and not metric.is_euclidean:
        raise ValueError(f"search={search!r} does not serve metric {metric.name!r}; use 'brute'")
    kinds: dict[str, type[SearchIndex]] = {
        "brute": BruteSearch,
        "ball_tree": BallTreeSearch,
        "blocked": BlockedSearch,
        "kd_tree": TreeSearch if metric.is_euclidean else ScikitLearnKDTreeSearch,
    }
    return kinds[search]


def _choose(metric: Metric, points: np.ndarray) -> str:
    """Return what is fastest."""
    n, p = points.shape
    if metric.is_euclidean:
        # On few points measuring every pair is faster than walking a tree, or in a plane as fast
        # but for new points, and there is much less to compile on first use.
        return "kd_tree" if n > 1_000 else "brute"
    is_named = isinstance(getattr(metric, "metric", None), str)
    if is_named and n > _MANY and p <= 6 and metric.candidate_tree("ball_tree", points[:2]):
        return "ball_tree"
    return "brute"
