"""The neighbour graph of the training points, for every k at once (Sections 1.2 and 2.2).

Neighbours are ordered by (distance, key of the row) and stored rank-major: all first neighbours,
then all second neighbours, and so on. The directed edges of the graph for k are therefore the first
``k * n`` entries, and nothing is built again when k changes. The symmetrised graph is kept the
same way: each point's incident edges, in either direction, are sorted by rank.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import (
    check_choice,
    check_count,
    check_groups,
    check_indices,
    check_label_vector,
    check_search_params,
    count_rows,
    is_sparse,
)
from bayesknn._utils.jit import kernel
from bayesknn._utils.progress import progress
from bayesknn.graph.base import Graph, Summarise, map_parts
from bayesknn.graph.metrics import Metric, make_metric
from bayesknn.graph.precomputed import warn_of_missing
from bayesknn.graph.queries import DIRECTIONS, NeighborQuery, check_k_values
from bayesknn.graph.search.back_ends import (
    check_reach,
    find_joint_neighbors,
    find_neighbors,
    find_neighbors_among,
    search_all,
)
from bayesknn.graph.search.search_index import SearchIndex


class Incidence(NamedTuple):
    """Directed edges that touch each point, in either direction, sorted by rank.

    They are the weights of the model (Section 2.2): ``w_ij`` counts the directed edges between i
    and j, so mutual neighbours have weight 2.

    The edges of point i in the graph of k are the entries
    ``starts[i] : starts[i] + k + in_degree[k - 1, i]`` of ``points``; a mutual neighbour stands
    there twice, which is its weight 2.

    Attributes
    ----------
    starts : ndarray of shape (n + 1,), dtype int64
    points : ndarray of shape (2 * n * k_max,), dtype uint32
        The other end of each edge.
    in_degree : ndarray of shape (k_max, n), dtype uint32
        Entry [k - 1, i]: how many points have i among their k nearest.
    """

    starts: np.ndarray
    points: np.ndarray
    in_degree: np.ndarray


class NeighborGraph(Graph):
    """Every point's neighbours, sorted once up to ``k_max``.

    Build one with :meth:`from_points`, or with :meth:`from_neighbors` from given lists.

    Attributes
    ----------
    neighbors : ndarray of shape (k_max, n), dtype uint32
        ``neighbors[r, i]`` is the neighbour of i at rank r + 1. Read-only.
    distances : ndarray of shape (k_max, n) or None
        The distances to them. ``None`` for a graph given by its lists alone.
    index : SearchIndex or None
        What answers queries: the metric, the points and the search structure.
    tied_beyond : ndarray of shape (n,), dtype bool, or None
        Whether a point outside a list of ``k_max`` is as near as the last one in it; ``None`` for
        a graph given by its lists, which does not know.
    """

    def __init__(
        self,
        neighbors: np.ndarray,
        distances: np.ndarray | None,
        index: SearchIndex | None = None,
        tied_beyond: np.ndarray | None = None,
    ):
        if np.ndim(neighbors) != 2:
            raise ValueError(f"neighbors must have shape (k_max, n), got {np.shape(neighbors)}")
        k_max, n = np.shape(neighbors)
        check_indices(neighbors, "neighbors", n - 1)
        for name, array, shape in (
            ("distances", distances, (k_max, n)), ("tied_beyond", tied_beyond, (n,)),
        ):  # fmt: skip
            if array is not None and np.shape(array) != shape:
                raise ValueError(f"{name} must have shape {shape}, got {np.shape(array)}")
        if index is not None and index.n_points != n:
            raise ValueError(f"there are lists of {n} points, and {index.n_points} points")
        self.neighbors: np.ndarray = np.ascontiguousarray(neighbors, np.uint32)
        self.distances: np.ndarray | None = None
        self.index = index
        self.tied_beyond = tied_beyond
        self.neighbors.flags.writeable = False
        if distances is not None:
            self.distances = np.ascontiguousarray(distances, np.float64)
            self.distances.flags.writeable = False

    @classmethod
    def from_points(
        cls,
        X: Any,
        k_max: int,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        search: str = "auto",
        n_jobs: int | None = None,
        search_params: None = None,
        verbose: int = 0,
        groups: Any = None,
    ) -> NeighborGraph:
        """Find every point's ``k_max`` nearest others, ordered by (distance, key of the row).

        Equal distances are ordered by a fixed pseudo-random key of the row, so that the order of
        the rows in a file favours no class.

        Parameters
        ----------
        X : array or frame of shape (n, p)
            Training points. For ``metric="precomputed"`` a symmetric (n, n) matrix of distances,
            or a sparse graph of distances as scikit-learn's ``kneighbors_graph`` and
            ``KNeighborsTransformer`` make it with ``mode="distance"``; its rows must store at
            least ``k_max`` neighbours each, besides the point itself.
        k_max : int
            Largest k the graph shall serve, in 1..n-1; with ``groups`` at most n less the number of
            rows in the largest.
        metric : str or callable
            ``"euclidean"``; ``"nan_euclidean"``, over the columns that two points both have;
            ``"mahalanobis"``, by the covariance of X; ``"gower"``, for numbers and categories;
            ``"precomputed"``; any metric name of scikit-learn; or a function of
            two rows.
        metric_params : dict, optional
            Parameters of the metric, as in scikit-learn. Gower takes ``categorical`` and
            ``weights``.
        search : str
            How neighbours are found. ``"brute"``, ``"kd_tree"``, ``"ball_tree"`` and
            ``"blocked"`` are exact, and their lists are the same to the bit. ``"blocked"`` is for
            Euclidean distances in many dimensions: candidates by matrix products in single
            precision, measured again. ``"auto"``: up to 1,000 points it
            measures every pair; on more it tries on a few whether a tree could skip the others, and
            takes products where it could not.
        n_jobs : int, optional
            Threads, as in joblib. The lists are the same whatever it is.
        search_params : None
            No search has parameters now: anything else is an error.
        verbose : int
            Above 0, a bar is shown once two seconds have passed.
        groups : array-like of shape (n,), optional
            The group of each row, such as the patient of a visit: no row is a neighbour of another
            one of its group.

        Returns
        -------
        NeighborGraph

        Examples
        --------
        >>> from bayesknn.graph import NeighborGraph
        >>> X = [[0.0], [1.0], [1.0], [5.0]]
        >>> graph = NeighborGraph.from_points(X, k_max=2)
        >>> graph.neighbors.T.tolist()
        [[2, 1], [2, 0], [1, 0], [2, 1]]
        >>> NeighborGraph.from_points(X, k_max=2, groups=list("abbc")).neighbors.T.tolist()
        [[2, 1], [0, 3], [0, 3], [2, 1]]
        >>> graph.distances.T.tolist()
        [[1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [4.0, 4.0]]
        """
        check_search_params(search_params)
        fitted = make_metric(metric, metric_params)
        of_rows = check_groups(groups, None if groups is None else count_rows(X))
        return cls(*find_neighbors(X, k_max, fitted, search, n_jobs, verbose, of_rows))

    @classmethod
    def from_neighbors(cls, neighbors: Any, distances: Any = None) -> NeighborGraph:
        """Take the lists as given.

        Parameters
        ----------
        neighbors : array-like of int, shape (k_max, n)
            ``neighbors[r][i]`` is the neighbour of i at rank r + 1: not i, and none twice.
        distances : array-like of shape (k_max, n), optional
            The distances to them, not falling with the rank.

        Returns
        -------
        NeighborGraph
            It serves everything but queries about new points.

        Examples
        --------
        >>> from bayesknn.graph import NeighborGraph
        >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 0]])
        >>> ring.n_points, ring.k_max
        (4, 1)
        """
        return cls(*_check_lists(neighbors, distances))

    @property
    def metric(self) -> Metric | None:  # type: ignore[override]
        """The metric, fitted to the training points; None for a graph given by its lists."""
        return None if self.index is None else self.index.metric

    @property
    def groups(self) -> np.ndarray | None:  # type: ignore[override]
        """Group numbers of the rows, (n,), None without groups."""
        return None if self.index is None else self.index.groups

    @property
    def n_points(self) -> int:  # type: ignore[override]
        """Number of training points, n."""
        return self.neighbors.shape[1]

    @property
    def k_max(self) -> int:  # type: ignore[override]
        """Largest k the graph serves."""
        return self.neighbors.shape[0]

    @property
    def search_name(self) -> str:  # type: ignore[override]
        """Name of the search that found the neighbours."""
        return "given" if self.index is None else self.index.name

    @property
    def identity(self) -> np.ndarray:
        """The lists themselves."""
        return self.neighbors

    def gather(self) -> NeighborGraph:
        """Return itself."""
        return self

    def get_neighbors(self, k: int, rows: Any = None) -> np.ndarray:
        """Return the k nearest of all points, or of some, of shape (k, n_rows)."""
        lists = self.neighbors[: self.check_k(k)]
        return lists if rows is None else lists[:, check_indices(rows, "rows", self.n_points - 1)]

    def get_distances(self, k: int) -> np.ndarray:
        """Return the distance of every point to its k-th neighbour, (n,); 0 if not known."""
        k = self.check_k(k)
        return np.zeros(self.n_points) if self.distances is None else self.distances[k - 1]

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

        See :meth:`Graph.map_counts`.
        """

        def walk() -> Iterator[np.ndarray]:
            pairs = self.iterate_counts(labels, n_classes, k_values, direction)
            return (counts for _, counts in pairs)

        values = []
        with progress(words, total=self.n_points, verbose=verbose) as advance:
            for part in map_parts(summarise, walk, labels, self.groups, max_rows):
                values.append(part)
                advance(len(part[0]))
        return values

    def up_to(self, k: int) -> NeighborGraph:
        """Return the graph of the k nearest neighbours: a prefix of the lists, not a copy.

        Parameters
        ----------
        k : int
            In 1..k_max.

        Examples
        --------
        >>> from bayesknn.graph import NeighborGraph
        >>> graph = NeighborGraph.from_points([[0.0], [1.0], [2.0], [7.0]], k_max=2)
        >>> graph.up_to(1).tied_beyond.tolist()
        [False, True, False, False]
        """
        k, distances = self.check_k(k), self.distances
        if k == self.k_max:
            return self
        graph = NeighborGraph.__new__(NeighborGraph)
        graph.neighbors, graph.index = self.neighbors[:k], self.index
        graph.distances = graph.tied_beyond = None
        if distances is not None:
            graph.distances, graph.tied_beyond = distances[:k], distances[k - 1] == distances[k]
        return graph

    def count_boundary_ties(self, k: int) -> int:
        """Count the points whose k-th neighbour is no nearer than one that is left out.

        For these points, keys of the rows decide who is a neighbour at k and the data do not.

        Parameters
        ----------
        k : int
            In 1..k_max.

        Examples
        --------
        >>> from bayesknn.graph import NeighborGraph
        >>> graph = NeighborGraph.from_points([[0.0], [1.0], [2.0], [7.0]], k_max=2)
        >>> graph.count_boundary_ties(1), graph.count_boundary_ties(2)
        (1, 0)
        """
        k = self.check_k(k)
        if self.distances is None:
            raise ValueError("a graph given by its lists alone does not know of ties")
        tied = self.up_to(k).tied_beyond
        return 0 if tied is None else int(np.count_nonzero(tied))

    @cached_property
    def incidence(self) -> Incidence:
        """The symmetrised graph of every k, built on first use."""
        in_degree = _count_in_degrees(self.neighbors)
        degrees = self.k_max + in_degree[-1].astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(degrees)])
        return Incidence(starts, _list_incident(self.neighbors, starts), in_degree)

    @cached_property
    def radii(self) -> Any:
        """How far every point's list reaches, as the search wants it; built on first use."""
        if self.index is None or self.distances is None:
            raise ValueError("a graph given by its lists does not know how far they reach")
        return self.index.arrange_radii(self.distances)

    def query(self, X: Any, n_jobs: int | None = None, direction: str = "both") -> NeighborQuery:
        """Find the neighbours of new points, and the training points they would join.

        Parameters
        ----------
        X : array or frame of shape (m, p)
            New points, with the columns of the training points. For ``metric="precomputed"``
            their distances to the training points, (m, n), dense or sparse. In a sparse matrix
            what is not stored is unknown: a training point counts as a reverse neighbour only
            where its distance is stored, so store every distance below the training point's own
            ``k_max``-th for exact counts; where many are likely missing, a warning says how many.
        n_jobs : int, optional
            Threads, as in joblib. The result does not depend on it.
        direction : {"both", "forward"}
            ``"forward"`` leaves out the training points that they would join, which is faster.

        Returns
        -------
        NeighborQuery

        Examples
        --------
        >>> from bayesknn.graph import NeighborGraph
        >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0], [7.0]], k_max=2)
        >>> graph.query([[4.0], [0.0]]).neighbors.T.tolist()
        [[2, 1], [0, 1]]
        """
        return self._query_rows(self._check_new(X, direction), n_jobs, direction)

    def query_chunks(
        self,
        X: Any,
        chunk_size: int | None = None,
        n_jobs: int | None = None,
        direction: str = "both",
    ) -> Iterator[tuple[slice, NeighborQuery]]:
        """Query about many new points in bounded memory.

        Parameters
        ----------
        X : array or frame of shape (m, p)
            As in :meth:`query`; checked as a whole before the first chunk.
        chunk_size : int, optional
            New points at a time; by default as many as fill about 64 MB.
        n_jobs : int, optional
            Threads, as in joblib.
        direction : {"both", "forward"}
            As in :meth:`query`.

        Yields
        ------
        rows : slice
            Which rows of X.
        query : NeighborQuery

        Examples
        --------
        >>> from bayesknn.graph import NeighborGraph
        >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0]], k_max=1)
        >>> for rows, query in graph.query_chunks([[4.0], [0.0], [1.5]], chunk_size=2):
        ...     print(rows, query.neighbors.tolist())
        slice(0, 2, None) [[2, 0]]
        slice(2, 3, None) [[1]]
        """
        rows = self._check_new(X, direction)
        if chunk_size is None:
            # 64 MB: forward and reverse lists take about 12 + 8 bytes a neighbour.
            chunk_size = max(2**26 // (20 * self.k_max), 64)
        size, m = check_count(chunk_size, "chunk_size"), rows.shape[0]
        slices = [slice(start, min(start + size, m)) for start in range(0, m, size)]
        return ((part, self._query_rows(rows[part], n_jobs, direction)) for part in slices)

    def _check_new(self, X: Any, direction: str) -> Any:
        """Return new points as the numbers of the metric, or say what is wrong with them."""
        check_choice(direction, "direction", DIRECTIONS[:2])
        if self.index is None:
            raise ValueError(
                "this graph was given by its lists and has no points that new ones could be "
                "measured from; build it with NeighborGraph.from_points"
            )
        rows = self.index.metric.transform(X)
        if direction == "both" and is_sparse(rows) and self.distances is not None:
            warn_of_missing(rows, self.neighbors, self.distances)
        return rows

    def _query_rows(self, rows: Any, n_jobs: int | None, direction: str) -> NeighborQuery:
        assert self.index is not None
        radii = self.radii if direction == "both" else None
        forward, reverse = self.index.query(rows, self.k_max, radii, n_jobs)
        check_reach(self.index.metric, rows, forward[1])
        return NeighborQuery(*forward, reverse, self.n_points)

    def join(self, X: Any, k_max: int, n_jobs: int | None = None) -> NeighborGraph:
        """Return the graph of the training points and new ones together, the new ones last.

        Parameters
        ----------
        X : array or frame of shape (m, p)
            New points, with the columns of the training points.
        k_max : int
            Largest k of the new graph, in 1..n+m-1; with groups at most n + m less the largest.
        n_jobs : int, optional
            Threads, as in joblib.

        Returns
        -------
        NeighborGraph
            Distances are measured as the training points had the metric fitted. At equal distance
            training points come first. Rows of one group are no neighbours; new points belong to no
            group, and may be. It serves everything but queries.

        Examples
        --------
        >>> from bayesknn.graph import NeighborGraph
        >>> graph = NeighborGraph.from_points([[0.0], [4.0], [9.0]], k_max=1)
        >>> graph.join([[5.0], [1.0]], k_max=1).neighbors.tolist()
        [[4, 3, 3, 1, 0]]
        """
        if self.index is None:
            raise ValueError("a graph given by its lists cannot place new points")
        return NeighborGraph(*find_joint_neighbors(self.index, X, k_max, n_jobs))

    def take(self, rows: Any, k_max: int) -> NeighborGraph | None:
        """Return the graph of some of the training points, as if there were no others.

        Parameters
        ----------
        rows : array-like of int
            Which points.
        k_max : int
            Largest k of the new graph, at most the number of rows less that of the largest group.

        Returns
        -------
        NeighborGraph or None
            In the metric as it was fitted to all points; it serves everything but queries. None
            where the graph does not know the points themselves.

        Examples
        --------
        >>> from bayesknn.graph import NeighborGraph
        >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0], [7.0]], k_max=1)
        >>> graph.take([0, 2, 3], k_max=1).neighbors.tolist()
        [[1, 0, 1]]
        """
        rows = check_indices(rows, "rows", self.n_points - 1)
        k_max = check_count(k_max, "k_max", 1, self.most_among(rows))
        lists = None if self.index is None else find_neighbors_among(self.index, rows, k_max)
        return None if lists is None else NeighborGraph(*lists)

    def most_among(self, rows: Any) -> int:
        """Return the largest k_max of a graph of some of the training points alone."""
        rows, groups = check_indices(rows, "rows", self.n_points - 1), self.groups
        return len(rows) - (1 if groups is None else int(np.bincount(groups[rows]).max()))

    def counts(self, labels: Any, n_classes: int, k: int, direction: str = "both") -> np.ndarray:
        """Count each class around each training point, itself left out, in the graph of k.

        Parameters
        ----------
        labels : array of shape (n,)
            Class numbers 0..n_classes-1.
        n_classes : int
        k : int
            In 1..k_max.
        direction : {"both", "forward", "reverse"}
            Forward: its k nearest; reverse: the points that have it among their k nearest.

        Returns
        -------
        ndarray of shape (n, n_classes), dtype int32

        Examples
        --------
        >>> from bayesknn.graph import NeighborGraph
        >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0]], k_max=1)
        >>> graph.counts([0, 1, 1], n_classes=2, k=1).tolist()
        [[0, 2], [2, 1], [0, 1]]
        """
        k = self.check_k(k)
        return next(self.iterate_counts(labels, n_classes, [k], direction))[1]

    def iterate_counts(
        self, labels: Any, n_classes: int, k_values: Any = None, direction: str = "both"
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the class counts of :meth:`counts` for many k, in rising order.

        Each edge is looked at once, so all k together cost no more than the largest.

        Parameters
        ----------
        labels, n_classes, direction
            As in :meth:`counts`.
        k_values : sequence of int, optional
            Every k in 1..k_max by default.

        Yields
        ------
        k : int
        counts : ndarray of shape (n, n_classes), dtype int32
            One array, updated in place from one k to the next: copy it to keep it.

        Examples
        --------
        >>> from bayesknn.graph import NeighborGraph
        >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0]], k_max=2)
        >>> [(k, int(counts.sum())) for k, counts in graph.iterate_counts([0, 1, 1], 2)]
        [(1, 6), (2, 12)]
        """
        check_count(n_classes, "n_classes")
        labels = check_label_vector(labels, self.n_points, n_classes).astype(np.uint32)
        wanted = np.sort(check_k_values(k_values, self.k_max))
        check_choice(direction, "direction", DIRECTIONS)
        return _walk_counts(self.neighbors, labels, n_classes, wanted.tolist(), direction)

    def example_row(self) -> list[Any] | None:
        """Return a row that :meth:`query` takes, None where there are no columns."""
        points = None if self.index is None else self.index.points
        return None if points is None or self.metric is None else self.metric.decode(points[0])

    def __getstate__(self) -> dict[str, Any]:
        # What is built on demand is left out: it is larger than the graph and quick to rebuild.
        kept = ("neighbors", "distances", "index", "tied_beyond")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        index = state["index"]
        lists = state["neighbors"], state["distances"], state["tied_beyond"]
        if lists[0] is None and index is not None:
            k_max = check_count(state["k_max"], "k_max", 1, index.n_points - index.n_relatives)
            lists = search_all(index, k_max)
        NeighborGraph.__init__(self, lists[0], lists[1], index, lists[2])
        if "checksum" in state and state["checksum"] != self._digest():
            raise ValueError(
                "the neighbours found on loading are not those of the fit: the file was changed, "
                "or this machine measures distances otherwise; fit again"
            )

    def state_for_file(self) -> dict[str, Any]:
        """Return what a file holds: long lists are left out, and found again on loading."""
        state = self.__getstate__()
        if self._is_longer_than_points():
            state |= {"neighbors": None, "distances": None, "tied_beyond": None}
            state |= {"k_max": self.k_max, "checksum": self._digest()}
        return state

    def _is_longer_than_points(self) -> bool:
        """Whether the lists take more room than the points that they can be found from again."""
        points = None if self.index is None else self.index.points
        if points is None or self.distances is None:
            return False
        # Short lists are kept in any case: 128 kB are no burden to a file.
        return self.neighbors.nbytes + self.distances.nbytes > 2**17 + points.nbytes

    def _digest(self) -> str:
        """Return a digest of the lists."""
        return hashlib.sha256(np.ascontiguousarray(self.neighbors).data).hexdigest()

    def __repr__(self) -> str:
        return f"NeighborGraph(n_points={self.n_points}, k_max={self.k_max})"


def find_components(neighbors: np.ndarray) -> np.ndarray:
    """Return which connected component of the symmetrised graph each point is in.

    Parameters
    ----------
    neighbors : ndarray of shape (k, n)
        The first k ranks of a graph.

    Returns
    -------
    ndarray of shape (n,), dtype int32

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph, find_components
    >>> find_components(NeighborGraph.from_neighbors([[1, 0, 3, 2]]).neighbors)
    array([0, 0, 1, 1], dtype=int32)
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if np.ndim(neighbors) != 2 or np.size(neighbors) == 0:
        raise ValueError(f"neighbors must have shape (k, n), got {np.shape(neighbors)}")
    k, n = np.shape(neighbors)
    neighbors = check_indices(neighbors, "neighbors", n - 1)
    targets, starts = neighbors.T.ravel().astype(np.int32), np.arange(0, k * n + 1, k)
    links = csr_array((np.ones(k * n, np.int8), targets, starts), (n, n))
    return connected_components(links, directed=False)[1]


def _walk_counts(
    neighbors: np.ndarray, labels: np.ndarray, n_classes: int, k_values: list[int], direction: str
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (k, class counts around each training point) for rising k.

    They are the sums of the full conditionals (Section 2.2): the members of each class among the k
    nearest of a point, and those that have the point among their k nearest.
    """
    counts = np.zeros((neighbors.shape[1], n_classes), np.int32)
    points, reached = np.arange(len(counts), dtype=np.uint32), 0
    # The type is that of the lists, or numba would compile the called functions a second time.
    points.flags.writeable = False
    for k in k_values:
        for row in neighbors[reached:k]:
            if direction != "reverse":
                add_edges(points, labels[row], counts)
            if direction != "forward":
                add_edges(row, labels, counts)
        reached = k
        yield k, counts


def _check_lists(neighbors: Any, distances: Any = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Check rank-major lists and return them as a graph stores them."""
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
    # A point and its list, whose places are then the ranks.
    rows = np.column_stack([np.arange(n, dtype=np.uint32), lists.T])
    ordered = np.sort(rows, axis=1)
    repeats = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
    if len(repeats):
        i, e = repeats[0]
        r = np.flatnonzero(rows[i] == ordered[i, e])[1]
        if ordered[i, e] == i:
            raise ValueError(f"point {i} stands in its own list, at rank {r}")
        raise ValueError(f"point {i} has the neighbour {ordered[i, e]} twice, again at rank {r}")
    if distances is None:
        return lists, None
    lengths = np.array(distances, dtype=np.float64, order="C")
    bad = ~(lengths >= 0)
    bad[1:] |= lengths[1:] < lengths[:-1]
    if bad.any():
        r, i = np.argwhere(bad)[0]
        raise ValueError(
            f"point {i} has the distance {lengths[r, i]} at rank {r + 1}; distances must be >= 0 "
            "and not fall with the rank"
        )
    return lists, lengths


@kernel
def add_edges(points, labels, counts):
    """Count the labels of the other ends of edges at these points."""
    for e in range(points.size):
        counts[points[e], labels[e]] += np.int32(1)


@kernel
def _count_in_degrees(neighbors):
    k_max, n = neighbors.shape
    counts = np.zeros((k_max, n), np.uint32)
    for r in range(k_max):
        if r > 0:
            counts[r] = counts[r - 1]
        for i in range(n):
            counts[r, neighbors[r, i]] += np.uint32(1)
    return counts


@kernel
def _list_incident(neighbors, starts):
    k_max, n = neighbors.shape
    points = np.empty(starts[n], np.uint32)
    ends = starts[:n].copy()
    # Rank by rank, so that every prefix of a point's list is the list of a smaller k.
    for r in range(k_max):
        for i in range(n):
            j = neighbors[r, i]
            points[ends[i]] = j
            ends[i] += 1
            points[ends[j]] = np.uint32(i)
            ends[j] += 1
    return points
