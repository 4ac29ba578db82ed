"""Exact log Z(beta, k) and E[S_k] by variable elimination on the symmetrised graph.

``Z = sum_y prod_(i,j) exp(beta / k * w_ij * a_(y_i) * 1[y_i = y_j])`` (Section 2.2, with the class
weights of its last paragraph) is summed one label at a time, in the order of
``elimination_order.py``. Each step multiplies the tables that mention the label, sums it out, and
leaves a table over the labels it was tied to.

Tables are kept on the linear scale, divided by their largest entry, with the logarithms of the
divisors added up aside. Nothing of weight is lost to underflow: every factor, hence every table,
is largest where all its labels are the class of the largest weight, so an entry that is negligible
in its table is negligible in Z. E[S] is the derivative ``k d log Z / d beta``, carried forward
beside each table; its terms are all positive, so it is as accurate as Z.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph import NeighborGraph
from bayesknn.model.checks import check_betas, check_class_weight, check_n_classes
from bayesknn.model.elimination_order import plan_elimination, symmetrise

# The low digits of a table's index are looped over inside, within the first-level cache.
_MAX_LOW_ENTRIES = 1024


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
    n_low_max = 0
    while n_low_max < width and n_classes ** (n_low_max + 1) <= _MAX_LOW_ENTRIES:
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
