"""What a search back end is: built from points, asked about all of them and about new ones.

A back end is saved and loaded as the points and their metric; trees are built again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from bayesknn._utils.checks import check_count, check_groups
from bayesknn.graph.metrics import Metric
from bayesknn.graph.ties import TieOrder, order_ties

# Lists of shape (k, m): neighbours, uint32, and distances.
Lists = tuple[np.ndarray, np.ndarray]
# Starts, points and ranks, as :class:`bayesknn.graph.NeighborQuery` has them.
Reverse = tuple[np.ndarray, np.ndarray, np.ndarray]
Advance = Callable[[float], object]


class SearchIndex:
    """What a graph is found by, and what answers about new points.

    Parameters
    ----------
    points : ndarray of shape (n, p)
        Training points as the metric's numbers.
    metric : Metric
        Fitted to them.
    ties : TieOrder, optional
        Who comes first at equal distance, where it is not the usual order.
    groups : ndarray of shape (n,), dtype uint32, optional
        Group numbers from 0: no point is a neighbour of another one of its group.

    Attributes
    ----------
    name : str
        As users write it.
    n_points : int
    """

    name: ClassVar[str]
    metric: Metric
    n_points: int
    groups: np.ndarray | None
    _points: Any

    def __init__(
        self,
        points: np.ndarray,
        metric: Metric,
        ties: TieOrder | None = None,
        groups: np.ndarray | None = None,
    ):
        self.metric = metric
        self.groups = groups
        self.n_points = points.shape[0]
        self._ties = ties
        self._build(points)

    @property
    def ties(self) -> TieOrder:
        """Who comes first at equal distance."""
        return order_ties(self.n_points) if self._ties is None else self._ties

    @property
    def group_of_points(self) -> np.ndarray:
        """Group of every point, (n,); without groups, one of its own."""
        return np.arange(self.n_points, dtype=np.uint32) if self.groups is None else self.groups

    @property
    def n_relatives(self) -> int:
        """Number of points in the largest group, 1 without groups."""
        return 1 if self.groups is None else int(np.bincount(self.groups).max())

    @property
    def points(self) -> np.ndarray | None:
        """The training points as the metric's numbers; None for precomputed distances."""
        return self._points

    def arrange_radii(self, distances: np.ndarray) -> Any:
        """Arrange the distances of training points to their neighbours for :meth:`query`.

        Parameters
        ----------
        distances : ndarray of shape (n_k, n)
        """
        return np.ascontiguousarray(distances.T)

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Find every training point's k nearest others outside its own group.

        Parameters
        ----------
        k : int
            At most ``n - n_relatives``.
        n_jobs : int, optional
            Threads, as in joblib. The result does not depend on it.
        advance : callable, optional
            Called with the number of points done since the last call.

        Returns
        -------
        neighbors : ndarray of shape (k, n), dtype uint32
        distances : ndarray of shape (k, n)
        """
        raise NotImplementedError

    def query(
        self, rows: Any, k: int, radii: Any, n_jobs: int | None = None
    ) -> tuple[Lists, Reverse | None]:
        """Find the k nearest training points of new ones, and those that reach them.

        Parameters
        ----------
        rows : ndarray of shape (m, p)
            New points as the metric's numbers.
        k : int
        radii : object or None
            How far the training points' lists reach, as :meth:`arrange_radii` returns it; None
            where reverse neighbours are not wanted.
        n_jobs : int, optional

        Returns
        -------
        forward : (neighbors, distances)
        reverse : (starts, points, ranks) or None
        """
        raise NotImplementedError

    def _build(self, points: Any) -> None:
        """Keep what is needed of the points."""
        self._points = points

    def __getstate__(self) -> dict[str, Any]:
        # What is quickly built from the points again is left out.
        kept = ("metric", "n_points", "points", "groups")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        points = state["points"]
        self.metric = state["metric"]
        self.n_points = check_count(state["n_points"], "n_points")
        self._ties = None
        # Files of earlier versions know of no groups.
        self.groups = check_groups(state.get("groups"), self.n_points)
        self.metric.check_saved(points, self.n_points)
        self._build(points)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.metric!r}, n_points={self.n_points})"
