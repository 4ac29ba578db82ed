"""In which order to sum the labels out, by min-fill, and what that order costs.

Variable elimination (see ``elimination.py``) sums the labels out one at a time. Summing out a
point joins all its remaining neighbours and leaves a table over them, ``n_classes ** width``
entries for ``width`` neighbours, so the order decides everything. Min-fill takes the point whose
neighbours need the fewest new edges among them. Connected components are ordered one by one.

In the elimination tree the parent of a point is the first of its remaining neighbours to be
summed out: the table that the point leaves is used at the parent's step. Any order that takes
children before parents does the same sums. Post-order is used here, so the tables that wait form
a stack, with the children that need the most room first, which keeps the stack low (Liu 1986).
Its greatest height is known in advance.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from bayesknn._utils.jit import inline_kernel, kernel
from bayesknn.graph import NeighborGraph, find_components
from bayesknn.model.checks import check_n_classes

# Ways of breaking ties that are tried, where a better order saves more time than it costs.
_N_TRIES = 8
_CHEAP_ENTRIES = 2.0**17
_HOPELESS_ENTRIES = 2.0**36
# No machine holds a table of more entries: such an order is not planned to its end.
_LOG2_HOPELESS = 42
# The search keeps a bit for every pair of points of a component.
_MAX_COMPONENT = 2**15


@dataclass(frozen=True, eq=False)
class EliminationPlan:
    """What is summed out when, over which points each step leaves a table, and what it costs.

    Attributes
    ----------
    order : ndarray of shape (n,), dtype int64
        Points in the order in which their labels are summed out.
    scope_starts : ndarray of shape (n + 1,), dtype int64
    scopes : ndarray, dtype int64
        ``scopes[scope_starts[s] : scope_starts[s + 1]]`` are the points over which step s leaves
        a table, in the order in which they are summed out later.
    k, n_classes : int
        What the plan was made for.
    width : int
        The induced width: the size of the largest scope.
    n_entries : int
        Terms added up in all, which measures the time.
    peak_entries : int
        Table entries held at once, which measures the memory.
    """

    order: np.ndarray
    scope_starts: np.ndarray
    scopes: np.ndarray
    k: int
    n_classes: int
    width: int
    n_entries: int
    peak_entries: int

    def check_fits(self, max_bytes: float, n_copies: int = 1) -> None:
        """Raise ``ValueError`` if the tables, ``n_copies`` times over, exceed ``max_bytes``."""
        n_bytes = 8.0 * n_copies * self.peak_entries
        if n_bytes > max_bytes:
            needed = (
                f"{_in_words(n_bytes)} of memory in all where {_in_words(max_bytes)} are allowed"
            )
            _refuse(self.k, self.n_classes, self.width, needed)


def plan_elimination(graph: NeighborGraph, k: int, n_classes: int) -> EliminationPlan:
    """Plan the exact sum over all labels of the graph of k.

    Parameters
    ----------
    graph : NeighborGraph
    k : int
    n_classes : int

    Returns
    -------
    EliminationPlan

    Raises
    ------
    ValueError
        If the induced width is beyond what any machine could hold.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import plan_elimination
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> plan = plan_elimination(ring, k=1, n_classes=2)
    >>> plan.width, plan.n_entries
    (2, 30)
    """
    k = graph.check_k(k)
    n_classes = check_n_classes(n_classes)
    max_width = int(_LOG2_HOPELESS / np.log2(n_classes))
    order, width = order_elimination(graph, k, n_classes, max_width)
    if width > max_width:
        _refuse(k, n_classes, width, "more than any machine holds")
    starts, points, _ = symmetrise(graph, k)
    scopes = _find_scopes(starts, points, order)
    sizes = [n_classes ** len(scope) for scope in scopes]
    postorder, peak = _stack_up(scopes, sizes)
    in_turn = [scopes[s] for s in postorder]
    return EliminationPlan(
        order=order[postorder],
        scope_starts=np.cumsum([0] + [len(scope) for scope in in_turn]),
        scopes=order[np.fromiter(itertools.chain.from_iterable(in_turn), np.int64)],
        k=k,
        n_classes=n_classes,
        width=width,
        n_entries=n_classes * sum(sizes),
        peak_entries=peak,
    )


def _refuse(k: int, n_classes: int, width: int, needed: str) -> NoReturn:
    raise ValueError(
        f"exact elimination at k={k} has induced width {width}, a table of {n_classes}^{width} "
        f"entries: {needed}; use a smaller k or a sampling method"
    )


def _in_words(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.4g} TB"


def _find_scopes(starts: Any, points: Any, order: Any) -> Any:
    """Scopes of the steps, as increasing step numbers (symbolic elimination).

    The scope of a step is what remains of its point's neighbours and of its children's scopes.
    """
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    later = position[points].tolist()
    inherited: list[set[int]] = [set() for _ in order]
    scopes = []
    for s, i in enumerate(order.tolist()):
        scope = inherited[s]
        scope.update(t for t in later[starts[i] : starts[i + 1]] if t > s)
        scope.discard(s)
        scopes.append(sorted(scope))
        if scope:
            inherited[scopes[s][0]] |= scope
    return scopes


def _stack_up(scopes: Any, sizes: Any) -> Any:
    """Post-order of the elimination tree, and the greatest number of entries held at once."""
    n = len(scopes)
    children: list[list[int]] = [[] for _ in range(n)]
    roots: list[int] = []
    peak = [0] * n
    # Parents have greater numbers than their children, so one sweep goes up the tree.
    for s in range(n):
        children[s].sort(key=lambda c: sizes[c] - peak[c])
        held = 0
        for c in children[s]:
            peak[s] = max(peak[s], held + peak[c])
            held += sizes[c]
        peak[s] = max(peak[s], held + sizes[s])
        siblings = children[scopes[s][0]] if scopes[s] else roots
        siblings.append(s)
    # A stack that lists parents before children, the last child first: post-order backwards.
    backwards = []
    stack = roots
    while stack:
        s = stack.pop()
        backwards.append(s)
        stack.extend(children[s])
    return backwards[::-1], max(peak)


def order_elimination(
    graph: NeighborGraph, k: int, n_classes: int, max_width: int
) -> tuple[np.ndarray, int]:
    """Order the points by min-fill, and say which induced width the order has.

    Parameters
    ----------
    graph : NeighborGraph
    k : int
    n_classes : int
        What an order costs is the number of table entries, which depends on it.
    max_width : int
        Beyond it an order is of no use and is finished in a cheaper way, by least degree, so
        that its width can still be told.

    Returns
    -------
    order : ndarray of shape (n,), dtype int64
    width : int

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model.elimination_order import order_elimination
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> order_elimination(ring, k=1, n_classes=2, max_width=20)[1]
    2
    """
    starts, points, _ = symmetrise(graph, k)
    which = find_components(graph.neighbors[:k])
    components = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    largest = max(map(len, components))
    if largest > _MAX_COMPONENT:
        raise ValueError(
            f"the graph of k={k} has a connected component of {largest} points, too many for exact "
            f"elimination (at most {_MAX_COMPONENT}); use a smaller k or a sampling method"
        )
    local = np.empty(graph.n_points, np.int64)
    orders, widths = [], []
    for component in components:
        local[component] = np.arange(len(component))
        order, width = _order_component(starts, points, component, local, n_classes, max_width)
        orders.append(order)
        widths.append(width)
    return np.concatenate(orders), max(widths)


def symmetrise(graph: NeighborGraph, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """List each point's distinct neighbours in either direction, with the weights w_ij.

    Returns
    -------
    starts : ndarray of shape (n + 1,), dtype int64
    points : ndarray, dtype int64
        ``points[starts[i] : starts[i + 1]]`` are the neighbours of i, in increasing order.
    weights : ndarray, dtype int64
        1, or 2 where each is among the k nearest of the other.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model.elimination_order import symmetrise
    >>> graph = NeighborGraph.from_neighbors([[1, 0, 1]])
    >>> starts, points, weights = symmetrise(graph, k=1)
    >>> starts.tolist(), points.tolist(), weights.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1], [2, 2, 1, 1])
    """
    n = graph.n_points
    sources = np.tile(np.arange(n, dtype=np.int64), k)
    targets = graph.neighbors[:k].ravel().astype(np.int64)
    codes = np.concatenate([sources * n + targets, targets * n + sources])
    codes, weights = np.unique(codes, return_counts=True)
    starts = np.searchsorted(codes, np.arange(n + 1) * n)
    return starts, codes % n, weights


def _order_component(
    starts: np.ndarray,
    points: np.ndarray,
    component: np.ndarray,
    local: np.ndarray,
    n_classes: int,
    max_width: int,
) -> tuple[np.ndarray, int]:
    """Order the points of a component, ``local`` their numbers within it; also its width."""
    m = len(component)
    with np.errstate(over="ignore"):
        powers = float(n_classes) ** np.arange(m + 1)
    rows = _join_neighbors(starts, points, component, local)
    best, best_width, best_order = np.inf, 0, component
    for attempt in range(_N_TRIES):
        order = np.empty(m, np.int64)
        entries, width = _order_by_min_fill(rows.copy(), powers, max_width, attempt, best, order)
        if attempt == 0 or entries < best:
            best, best_width, best_order = entries, width, component[order]
        if not _CHEAP_ENTRIES * m / 256 < best < _HOPELESS_ENTRIES:
            break
    return best_order, best_width


@kernel
def _join_neighbors(starts, points, component, local):
    """Return a matrix of bits: bit b of row a tells that a and b of the component are joined."""
    m = len(component)
    rows = np.zeros((m, (m + 63) // 64), np.uint64)
    for a in range(m):
        i = component[a]
        for e in range(starts[i], starts[i + 1]):
            b = local[points[e]]
            rows[a, b >> 6] |= np.uint64(1) << np.uint64(b & 63)
    return rows


@kernel
def _order_by_min_fill(rows, powers, max_width, attempt, give_up, order):
    """Order one component into ``order`` (local numbers); return its table entries and width.

    ``powers`` are those of the number of classes. Returns infinity as soon as the entries exceed
    ``give_up``.
    """
    m = len(rows)
    degree, fill = np.empty(m, np.int64), np.empty(m, np.int64)
    neighbors, stale = np.empty(m, np.int64), np.zeros(m, np.bool_)
    alive = np.ones(m, np.bool_)
    for a in range(m):
        degree[a] = _count_bits(rows, a)
        fill[a] = _count_fill(rows, a, degree[a])
    entries = 0.0
    width = 0
    hopeless = False
    for step in range(m):
        v = _choose_next(alive, degree if hopeless else fill, degree, attempt)
        order[step] = v
        alive[v] = False
        n_neighbors = _list_bits(rows, v, neighbors)
        width = max(width, n_neighbors)
        entries += powers[n_neighbors + 1]
        if entries > give_up:
            return np.inf, width
        hopeless |= n_neighbors > max_width
        if n_neighbors == m - step - 1:
            # The rest are all joined to each other, or soon will be: any order will do.
            for a in range(m):
                if alive[a]:
                    step += 1
                    order[step] = a
                    entries += powers[m - step]
            return entries, width
        _eliminate(rows, v, neighbors[:n_neighbors], degree)
        if not hopeless:
            _mark_stale(rows, v, neighbors[:n_neighbors], fill[v] > 0, stale)
            for a in range(m):
                if stale[a]:
                    stale[a] = False
                    fill[a] = _count_fill(rows, a, degree[a])
    return entries, width


@kernel
def _choose_next(alive, fill, degree, attempt):
    """Return the point of least score among those that are left."""
    chosen = -1
    least = np.uint64(0)
    for a in range(len(alive)):
        if alive[a]:
            score = _score(fill[a], degree[a], a, attempt)
            if chosen < 0 or score < least:
                chosen = a
                least = score
    return chosen


@kernel
def _eliminate(rows, v, neighbors, degree):
    """Join the neighbours of v to each other, and take v out."""
    one = np.uint64(1)
    for u in neighbors:
        for w in range(rows.shape[1]):
            rows[u, w] |= rows[v, w]
        rows[u, u >> 6] &= ~(one << np.uint64(u & 63))
        rows[u, v >> 6] &= ~(one << np.uint64(v & 63))
        degree[u] = _count_bits(rows, u)


@kernel
def _mark_stale(rows, v, neighbors, has_new_edges, stale):
    """Mark whose fill has changed: the neighbours, and who is joined to both ends of a new edge."""
    one = np.uint64(1)
    for u in neighbors:
        stale[u] = True
    if not has_new_edges:
        return
    for u in neighbors:
        for w in range(rows.shape[1]):
            word = rows[u, w]
            while word:
                bit = word & (~word + one)
                word ^= bit
                b = (w << 6) + np.int64(_count_ones(bit - one))
                if not stale[b] and _joined_twice(rows, b, v):
                    stale[b] = True


@inline_kernel
def _score(fill, degree, a, attempt):
    """Least fill first; ties by degree, or in an arbitrary order that each attempt changes."""
    if attempt == 0:
        tie = np.uint64(degree)
    else:
        tie = (np.uint64(a) + np.uint64(1)) * np.uint64(attempt) * np.uint64(0x9E3779B97F4A7C15)
        tie = (tie ^ (tie >> np.uint64(29))) >> np.uint64(34)
    return (np.uint64(fill) << np.uint64(32)) | tie


@kernel
def _count_ones(word):
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel
def _count_bits(rows, a):
    total = np.uint64(0)
    for w in range(rows.shape[1]):
        total += _count_ones(rows[a, w])
    return np.int64(total)


@kernel
def _list_bits(rows, a, out):
    n_bits = 0
    one = np.uint64(1)
    for w in range(rows.shape[1]):
        word = rows[a, w]
        while word:
            bit = word & (~word + one)
            word ^= bit
            out[n_bits] = (w << 6) + np.int64(_count_ones(bit - one))
            n_bits += 1
    return n_bits


@kernel
def _joined_twice(rows, b, v):
    """Whether b is joined to at least two of the neighbours of v."""
    total = np.uint64(0)
    for w in range(rows.shape[1]):
        total += _count_ones(rows[b, w] & rows[v, w])
    return total >= np.uint64(2)


@kernel
def _count_fill(rows, a, degree):
    """Pairs of neighbours of a that are not joined."""
    one = np.uint64(1)
    missing = np.uint64(0)
    n_words = rows.shape[1]
    for w in range(n_words):
        word = rows[a, w]
        while word:
            bit = word & (~word + one)
            word ^= bit
            u = (w << 6) + np.int64(_count_ones(bit - one))
            for x in range(n_words):
                missing += _count_ones(rows[a, x] & ~rows[u, x])
    # Each neighbour was also counted as not joined to itself.
    return (np.int64(missing) - degree) // 2
