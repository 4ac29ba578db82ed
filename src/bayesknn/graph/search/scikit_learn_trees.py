"""scikit-learn's trees for metrics that have one: they propose, and the metric's formula decides.

A structure that finds candidates by arithmetic of its own is asked for a little more than needed,
and what it returns is measured again. New points are measured against every training point.
"""

from __future__ import annotations

import numpy as np

from bayesknn.graph.metrics import Metric
from bayesknn.graph.search.brute import CHUNK, BruteSearch, rank_some
from bayesknn.graph.search.search_index import Advance, Lists
from bayesknn.graph.ties import _NOBODY, TieOrder, _rank_rows

# Rounding in a tree's own arithmetic is far below this.
_SLACK = 1e-9


class BallTreeSearch(BruteSearch):
    """scikit-learn's ball tree, for distances that keep the triangle inequality."""

    name = "ball_tree"

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Let the tree propose, then order by the metric's own distances."""
        return _rank_candidates(self.metric, self.points, self.ties, k, self.name, advance)


class ScikitLearnKDTreeSearch(BallTreeSearch):
    """scikit-learn's KD-tree, for distances that grow with every coordinate's difference."""

    name = "kd_tree"


def _rank_candidates(
    metric: Metric, points: np.ndarray, ties: TieOrder, k: int, search: str, advance: Advance | None
) -> Lists:
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
    asked = min(n, k + 1 + 8)
    for start in range(0, n, CHUNK // asked + 1):
        rows = points[start : start + CHUNK // asked + 1]
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
        if advance is not None:
            advance(len(rows))
    rank_some(metric, points, ties, np.array(left, dtype=np.uint32), neighbors, ranked)
    return neighbors, ranked


def _is_trusted(metric: Metric, radius: np.ndarray) -> np.ndarray:
    """Whether the tree could tell distances near these apart: no power of them under- or overflows.

    At distance 0 there is nothing to tell, but what underflows looks the same.
    """
    p = float(getattr(metric, "params", {}).get("p", 2))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        power = radius ** (max(p, 2.0) if np.isfinite(p) else 2.0)
    return (power > 1e-280) & (power < 1e280)
