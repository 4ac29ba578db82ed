"""The interface of neighbour graphs, wherever their points are held.

The likelihood, leave-one-out and prediction use counts of the classes around points and never the
points themselves. A graph in memory and a graph over the blocks of a Dask collection offer both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesknn._utils.checks import check_k
from bayesknn.graph.metrics import Metric

if TYPE_CHECKING:
    from bayesknn.graph.neighbor_graph import NeighborGraph

# Returns a value for some training points from an iterator over their class counts for rising k,
# their labels, and where groups of them begin (None without groups).
Summarise = Callable[[Iterator[np.ndarray], np.ndarray, "np.ndarray | None"], Any]


class Graph:
    """Neighbours of n training points, ordered by (distance, key of the row), up to ``k_max``.

    Attributes
    ----------
    n_points, k_max : int
    groups : ndarray of shape (n,) or None
        Group indices of the points.
    metric : Metric or None
    search_name : str
        Name of the search that found the neighbours.
    """

    n_points: int
    k_max: int
    groups: np.ndarray | None
    metric: Metric | None
    search_name: str

    def check_k(self, k: int) -> int:
        """Return k as an int; raise ValueError unless this graph has so many neighbours."""
        return check_k(k, self.k_max, "this graph")

    @property
    def identity(self) -> np.ndarray:
        """An array that differs between graphs of different lists."""
        raise NotImplementedError

    def up_to(self, k: int) -> Graph:
        """Return the graph of at most k neighbours, so that nothing searches further."""
        raise NotImplementedError

    def gather(self) -> NeighborGraph:
        """Return the same graph in memory."""
        raise NotImplementedError

    def example_row(self) -> list[Any] | None:
        """Return a row that new points may look like, None where any numbers do."""
        return None

    def take(self, rows: Any, k_max: int) -> NeighborGraph | None:
        """Return the graph of some of the training points, as if there were no others."""
        raise NotImplementedError

    def most_among(self, rows: Any) -> int:
        """Return the largest k_max of a graph of some of the training points alone."""
        raise NotImplementedError

    def get_neighbors(self, k: int, rows: Any = None) -> np.ndarray:
        """Return the k nearest of all points, or of some, of shape (k, n_rows)."""
        raise NotImplementedError

    def get_distances(self, k: int) -> np.ndarray:
        """Return the distance of every point to its k-th neighbour, (n,); 0 if not known."""
        raise NotImplementedError

    def count_boundary_ties(self, k: int) -> int:
        """Count the points whose k-th neighbour is no nearer than one that is left out."""
        raise NotImplementedError

    def map_counts(
        self,
        summarise: Summarise,
        labels: np.ndarray,
        n_classes: int,
        k_values: Any = None,
        direction: str = "both",
        max_rows: int | None = None,
        verbose: int = 0,
        words: str = "Counting classes",
    ) -> list[tuple[np.ndarray, Any]]:
        """Apply a function to the class counts around parts of the training points.

        Parameters
        ----------
        summarise : callable
            Called with the counts of a part, an iterator over arrays of shape (n_rows, n_classes)
            for rising k that may be one array updated in place, the labels of its rows, and where
            groups begin among them. It can be pickled.
        labels : ndarray of shape (n,), unsigned
            Class indices of all training points.
        n_classes : int
        k_values : sequence of int, optional
            Every k in 1..k_max by default.
        direction : {"both", "forward"}
            As in :meth:`NeighborGraph.counts`.
        max_rows : int, optional
            Largest number of rows in a part. Groups are not divided.
        verbose : int
            Above 0, a bar is shown once two seconds have passed.
        words : str
            Description of the work.

        Returns
        -------
        list of (rows, value)
            The rows of each part, which together are all rows once, and its value.
        """
        raise NotImplementedError


def map_parts(
    summarise: Summarise,
    walk: Callable[[], Iterator[np.ndarray]],
    labels: np.ndarray,
    groups: np.ndarray | None,
    max_rows: int | None,
) -> Iterator[tuple[np.ndarray, Any]]:
    """Yield the rows of each part of the points of a walk, and what a function makes of the part.

    The walk is repeated for every part. Points come group by group, or in their own order.
    """
    n = len(labels)
    order, ends = np.arange(n), np.arange(n + 1)
    if groups is not None:
        order = np.argsort(groups, kind="stable")
        ends = np.append(0, np.cumsum(np.bincount(groups)))
    size, first = n if max_rows is None else max_rows, 0
    while first < len(ends) - 1:
        last = max(first + 1, np.searchsorted(ends, ends[first] + size, "right") - 1)
        part = slice(ends[first], ends[last])
        starts = None if groups is None else ends[first : last + 1] - ends[first]
        rows: Any = part if groups is None else order[part]
        counts = (each[rows] for each in walk())
        yield order[part], summarise(counts, labels[rows], starts)
        first = last
