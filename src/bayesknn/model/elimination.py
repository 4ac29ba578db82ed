"""Exact log Z(beta, k) and E[S_k] by variable elimination on the symmetrised graph.

``Z = sum_y prod_(i,j) exp(beta / k * w_ij * a_(y_i) * 1[y_i = y_j])`` (Section 2.2, with the class
weights of its last paragraph) is summed one label at a time. Each step multiplies the tables that
mention the label, sums it out, and leaves a table over the labels it was tied to.

**The order.** Summing out a point joins all its remaining neighbours and leaves a table over them,
``n_classes ** width`` entries for ``width`` neighbours, so the order decides everything. Min-fill
takes the point whose neighbours need the fewest new edges among them. Connected components are
ordered one by one. In the elimination tree the parent of a point is the first of its remaining
neighbours to be summed out: the table that the point leaves is used at the parent's step. Any order
that takes children before parents does the same sums. Post-order is used here, so the tables that
wait form a stack, with the children that need the most room first, which keeps the stack low (Liu
1986). Its greatest height is known in advance.

**The sums.** Tables are kept on the linear scale, divided by their largest entry, with the
logarithms of the divisors added up aside. Nothing of weight is lost to underflow: every factor,
hence every table, is largest where all its labels are the class of the largest weight, so an entry
that is negligible in its table is negligible in Z. E[S] is the derivative ``k d log Z / d beta``,
carried forward beside each table; its terms are all positive, so it is as accurate as Z.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph import NeighborGraph, find_components
from bayesknn.model.checks import check_betas, check_class_weight, check_n_classes

# The search keeps a bit for every pair of points of a component.
_MAX_COMPONENT = 2**15


def log_normalizer_exact(
    graph: NeighborGraph,
    beta: Any,
    k: int,
    n_classes: int,
    class_weight: Any = None,
    max_bytes: float = 2**31,
) -> np.ndarray | float:
    """Sum over every label vector exactly: log Z(beta, k).

    Parameters
    ----------
    graph : NeighborGraph
    beta : float or array-like
        A whole curve shares one elimination order.
    k : int
        Small: the cost grows exponentially with the induced width of the graph of k.
    n_classes : int
    class_weight : array-like of shape (n_classes,), optional
    max_bytes : float
        The most memory that the tables may take.

    Returns
    -------
    float, or ndarray of the shape of ``beta``

    Raises
    ------
    ValueError
        If the tables would not fit; the message tells the induced width.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import log_normalizer_exact
    >>> ring = NeighborGraph.from_neighbors([np.roll(np.arange(100), -1)])
    >>> round(log_normalizer_exact(ring, beta=1.0, k=1, n_classes=2), 6)
    131.326169
    """
    betas = check_betas(beta)
    log_z, _ = _eliminate(graph, betas, k, n_classes, class_weight, max_bytes, derive=False)
    return float(log_z[0]) if betas.ndim == 0 else log_z.reshape(betas.shape)


def expected_agreement_exact(
    graph: NeighborGraph,
    beta: Any,
    k: int,
    n_classes: int,
    class_weight: Any = None,
    max_bytes: float = 2**31,
) -> np.ndarray | float:
    """Average S_k over every label vector exactly: E[S_k] at (beta, k).

    Parameters
    ----------
    graph : NeighborGraph
    beta : float or array-like
    k : int
    n_classes : int
    class_weight : array-like of shape (n_classes,), optional
    max_bytes : float
        The most memory that the tables may take: twice as much as for log Z.

    Returns
    -------
    float, or ndarray of the shape of ``beta``

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import expected_agreement_exact
    >>> ring = NeighborGraph.from_neighbors([np.roll(np.arange(100), -1)])
    >>> expected_agreement_exact(ring, beta=[0.0, 1.0], k=1, n_classes=2).round(4).tolist()
    [50.0, 73.1059]
    """
    betas = check_betas(beta)
    _, mean = _eliminate(graph, betas, k, n_classes, class_weight, max_bytes, derive=True)
    return float(mean[0]) if betas.ndim == 0 else mean.reshape(betas.shape)


def _eliminate(
    graph: NeighborGraph,
    betas: np.ndarray,
    k: int,
    n_classes: int,
    class_weight: Any,
    max_bytes: float,
    derive: bool,
) -> tuple[np.ndarray, np.ndarray]:
    k, n_classes = graph.check_k(k), check_n_classes(n_classes)
    weights = check_class_weight(class_weight, n_classes)
    plan = plan_elimination(graph, k, n_classes)
    plan.check_fits(max_bytes, n_copies=2 if derive else 1)
    edges = symmetrise(graph, k)
    firsts = plan.scopes[plan.scope_starts[:-1][np.diff(plan.scope_starts) > 0]]
    sizes = (
        plan.peak_entries,
        plan.width,
        # The most tables multiplied at a step, and the most edges of a point.
        int(np.bincount(firsts, minlength=1).max()),
        int(np.add.reduceat(edges[2], edges[0][:-1]).max()),
    )
    return _sum_out(
        (plan.order, plan.scope_starts, plan.scopes), edges,
        np.ones(n_classes) if weights is None else weights, betas.ravel() / k, derive, sizes,
    )  # fmt: skip


class _Tables(NamedTuple):
    """Memory of the sum over all labels.

    Attributes
    ----------
    values, slopes : ndarray
        Tables left by earlier steps and not yet used, one after another, and their derivatives.
    waiting, begins : ndarray
        The stack of steps that left them, and where each begins.
    product, product_slope : ndarray
        What a step multiplies, for each class of its point and the low digits of its scope.
    factor : ndarray
        The weight of a point's edges by class and by how many of them disagree.
    lift : ndarray
        How much less than the heaviest a class weighs, for all edges of the point.
    deficit_low, deficit_high : ndarray
        Edges that disagree, by class and by the low and the high digits.
    offset_low, offset_high : ndarray
        Where the digits stand in each table that is multiplied.
    pull, stride, place : ndarray
        Weights of the edges to the scope, strides in a table, and positions in the scope.
    """

    values: np.ndarray
    slopes: np.ndarray
    waiting: np.ndarray
    begins: np.ndarray
    product: np.ndarray
    product_slope: np.ndarray
    factor: np.ndarray
    lift: np.ndarray
    deficit_low: np.ndarray
    deficit_high: np.ndarray
    offset_low: np.ndarray
    offset_high: np.ndarray
    pull: np.ndarray
    stride: np.ndarray
    place: np.ndarray


@kernel
def _allocate(n, n_classes, n_low_max, derive, sizes):
    peak, width, most_tables, most_edges = sizes
    low, high = n_classes**n_low_max, n_classes ** (width - n_low_max)
    return _Tables(
        np.empty(peak), np.empty(peak if derive else 0),
        np.empty(n, np.int64), np.zeros(n + 1, np.int64),
        np.empty((n_classes, low)), np.empty((n_classes, low if derive else 0)),
        np.empty((n_classes, most_edges + 1)), np.empty(n_classes),
        np.empty((n_classes, low), np.uint64), np.empty((n_classes, high), np.uint64),
        np.empty((most_tables, low), np.uint64), np.empty((most_tables, high), np.uint64),
        np.empty(width, np.int64), np.empty(width, np.int64), np.zeros(n, np.int64),
    )  # fmt: skip


@kernel
def _sum_out(plan, edges, weights, strengths, derive, sizes):
    """Return log Z and, if asked, the mean of S, at each strength = beta / k.

    A table over a scope is indexed with the first point of the scope as the lowest digit. The
    first point is the next to be summed out, so in each table used at a step the label that is
    summed out there has stride 1. The index over a scope is split in two, low and high digits,
    so that its place in another table is the sum of two entries looked up.
    """
    order, scope_starts, scopes = plan
    n, n_classes, width = len(order), len(weights), sizes[1]
    heaviest = weights.max()
    # The low digits of a table's index are looped over inside, within the first-level cache.
    n_low_max = 0
    while n_low_max < width and n_classes ** (n_low_max + 1) <= 1024:
        n_low_max += 1
    tables = _allocate(n, n_classes, n_low_max, derive, sizes)
    log_z = np.zeros(len(strengths))
    mean = np.zeros(len(strengths))
    for b in range(len(strengths)):
        strength = strengths[b]
        for g in range(n_classes):
            for d in range(tables.factor.shape[1]):
                tables.factor[g, d] = np.exp(-strength * weights[g] * d)
        n_waiting = 0
        for s in range(n):
            scope = scopes[scope_starts[s] : scope_starts[s + 1]]
            m = len(scope)
            n_low = min(m, n_low_max)
            low, high = n_classes**n_low, n_classes ** (m - n_low)
            for q in range(m):
                tables.place[scope[q]] = q
            total = _find_pull(order[s], edges, scope, tables.place, tables.pull)
            for g in range(n_classes):
                tables.lift[g] = np.exp(strength * (weights[g] - heaviest) * total)
                _spread_deficit(tables.pull, 0, n_low, n_classes, g, tables.deficit_low[g])
                _spread_deficit(tables.pull, n_low, m, n_classes, g, tables.deficit_high[g])
            top = tables.begins[n_waiting]
            n_tables = _take_tables(plan, order[s], n_waiting, m, n_low, n_classes, tables)
            n_waiting -= n_tables
            largest = 0.0
            for y in range(high):
                _multiply(y, low, n_tables, total, weights, derive, tables)
                at = top + y * low
                largest = max(largest, _add_classes(tables.product, low, tables.values, at))
                if derive:
                    _add_classes(tables.product_slope, low, tables.slopes, at)

            # The new table takes the place of those that were used.
            base = tables.begins[n_waiting]
            size = low * high
            log_z[b] += np.log(largest) + strength * heaviest * total
            _move_down(tables.values, base, top, size, 1.0 / largest)
            if derive:
                _move_down(tables.slopes, base, top, size, 1.0 / largest)
            if m > 0:
                tables.waiting[n_waiting] = s
                n_waiting += 1
                tables.begins[n_waiting] = base + size
            elif derive:
                # The last of a component: its one entry is now 1, so its slope is that of log Z.
                mean[b] += tables.slopes[base]
    return log_z, mean


@kernel
def _take_tables(plan, v, n_waiting, m, n_low, n_classes, tables):
    """Find the tables that mention v, which are the last ones on the stack; return how many.

    ``offset_low`` and ``offset_high`` then say where the digits of the scope stand in each.
    """
    _, scope_starts, scopes = plan
    stride, place = tables.stride, tables.place
    n_tables = 0
    while n_waiting > 0 and scopes[scope_starts[tables.waiting[n_waiting - 1]]] == v:
        n_waiting -= 1
        t = tables.waiting[n_waiting]
        for q in range(m):
            stride[q] = 0
        step = n_classes
        for e in range(scope_starts[t] + 1, scope_starts[t + 1]):
            stride[place[scopes[e]]] = step
            step *= n_classes
        begin = tables.begins[n_waiting]
        _spread(stride, 0, n_low, n_classes, 0, tables.offset_low[n_tables])
        _spread(stride, n_low, m, n_classes, begin, tables.offset_high[n_tables])
        n_tables += 1
    return n_tables


@kernel
def _multiply(y, low, n_tables, total, weights, derive, tables):
    """Multiply edges and tables at the high digits y, for every class and all low digits."""
    for g in range(len(weights)):
        product, slope = tables.product[g], tables.product_slope[g]
        skip, deficit_low = tables.deficit_high[g, y], tables.deficit_low[g]
        _multiply_edges(tables.factor[g], tables.lift[g], skip, deficit_low, low, product)
        if derive:
            _derive_edges(weights[g], total, skip, deficit_low, low, product, slope)
        for u in range(n_tables):
            first, offset_low = tables.offset_high[u, y] + np.uint64(g), tables.offset_low[u]
            if derive:
                _derive_table(tables.values, tables.slopes, first, offset_low, low, product, slope)
            _multiply_table(tables.values, first, offset_low, low, product)


@kernel
def _find_pull(v, edges, scope, place, pull):
    """Weights of the edges from v to the points of its scope; returns their sum."""
    starts, points, multiplicity = edges
    m = len(scope)
    total = 0
    for q in range(m):
        pull[q] = 0
    for e in range(starts[v], starts[v + 1]):
        q = place[points[e]]
        # A point that is gone has a stale place.
        if q < m and scope[q] == points[e]:
            pull[q] = multiplicity[e]
            total += multiplicity[e]
    return total


@kernel
def _spread(stride, begin, end, n_classes, first, out):
    """Where each combination of the digits begin..end stands in a table of these strides."""
    out[0] = np.uint64(first)
    size = 1
    for q in range(begin, end):
        for d in range(1, n_classes):
            for x in range(size):
                out[d * size + x] = out[x] + np.uint64(d * stride[q])
        size *= n_classes


@kernel
def _spread_deficit(pull, begin, end, n_classes, g, out):
    """Edges to labels other than g, for each combination of the labels begin..end."""
    out[0] = np.uint64(0)
    size = 1
    for q in range(begin, end):
        # Downwards, because the entries of d = 0 are those that the others are made from.
        for d in range(n_classes - 1, -1, -1):
            more = np.uint64(pull[q]) if d != g else np.uint64(0)
            for x in range(size):
                out[d * size + x] = out[x] + more
        size *= n_classes


@kernel
def _multiply_edges(factor, lift, skip, deficit_low, low, product):
    for x in range(np.uint64(low)):
        product[x] = lift * factor[skip + deficit_low[x]]


@kernel
def _derive_edges(weight, total, skip, deficit_low, low, product, product_slope):
    for x in range(np.uint64(low)):
        n_agree = np.float64(total) - np.float64(skip + deficit_low[x])
        product_slope[x] = weight * n_agree * product[x]


@kernel
def _multiply_table(values, first, offset_low, low, product):
    for x in range(np.uint64(low)):
        product[x] *= values[first + offset_low[x]]


@kernel
def _derive_table(values, slopes, first, offset_low, low, product, product_slope):
    for x in range(np.uint64(low)):
        entry = first + offset_low[x]
        product_slope[x] = product_slope[x] * values[entry] + product[x] * slopes[entry]


@kernel
def _add_classes(product, low, out, begin):
    largest = 0.0
    for x in range(np.uint64(low)):
        total = product[0, x]
        for g in range(np.uint64(1), np.uint64(len(product))):
            total += product[g, x]
        out[np.uint64(begin) + x] = total
        largest = max(largest, total)
    return largest


@kernel
def _move_down(values, base, top, size, scale):
    for x in range(np.uint64(size)):
        values[np.uint64(base) + x] = values[np.uint64(top) + x] * scale


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
    # No machine holds a table of more entries: such an order is not planned to its end.
    max_width = int(42 / np.log2(n_classes))
    order, width = order_elimination(graph, k, max_width)
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


def order_elimination(graph: NeighborGraph, k: int, max_width: int) -> tuple[np.ndarray, int]:
    """Order the points by min-fill, and say which induced width the order has.

    Parameters
    ----------
    graph : NeighborGraph
    k : int
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
    >>> from bayesknn.model.elimination import order_elimination
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> order_elimination(ring, k=1, max_width=20)[1]
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
        rows = _join_neighbors(starts, points, component, local)
        order = np.empty(len(component), np.int64)
        widths.append(_order_by_min_fill(rows, max_width, order))
        orders.append(component[order])
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
    >>> from bayesknn.model.elimination import symmetrise
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
def _order_by_min_fill(rows, max_width, order):
    """Order one component into ``order`` (local numbers); return its width."""
    m = len(rows)
    degree, fill = np.empty(m, np.int64), np.empty(m, np.int64)
    neighbors, stale = np.empty(m, np.int64), np.zeros(m, np.bool_)
    alive = np.ones(m, np.bool_)
    for a in range(m):
        degree[a] = _count_bits(rows, a)
        fill[a] = _count_fill(rows, a, degree[a])
    width = 0
    hopeless = False
    for step in range(m):
        v = _choose_next(alive, degree if hopeless else fill, degree)
        order[step] = v
        alive[v] = False
        n_neighbors = _list_bits(rows, v, neighbors)
        width = max(width, n_neighbors)
        hopeless |= n_neighbors > max_width
        if n_neighbors == m - step - 1:
            # The rest are all joined to each other, or soon will be: any order will do.
            for a in range(m):
                if alive[a]:
                    step += 1
                    order[step] = a
            return width
        _take_out(rows, v, neighbors[:n_neighbors], degree)
        if not hopeless:
            _mark_stale(rows, v, neighbors[:n_neighbors], fill[v] > 0, stale)
            for a in range(m):
                if stale[a]:
                    stale[a] = False
                    fill[a] = _count_fill(rows, a, degree[a])
    return width


@kernel
def _choose_next(alive, fill, degree):
    """Return the point of least fill among those that are left, of least degree among equals."""
    chosen = -1
    for a in range(len(alive)):
        if alive[a] and (
            chosen < 0
            or fill[a] < fill[chosen]
            or (fill[a] == fill[chosen] and degree[a] < degree[chosen])
        ):
            chosen = a
    return chosen


@kernel
def _take_out(rows, v, neighbors, degree):
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
