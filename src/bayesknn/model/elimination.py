"""Exact log Z(beta, k) and E[S_k] by variable elimination on the symmetrised graph.

``Z = sum_y prod_(i,j) exp(beta / k * w_ij * a_(y_i) * 1[y_i = y_j])`` (Section 2.2, with the class
weights of its last paragraph) is summed one label at a time, in the order of
``elimination_plan.py``. Each step multiplies the tables that mention the label, sums it out, and
leaves a table over the labels it was tied to.

Tables are kept on the linear scale, divided by their largest entry, with the logarithms of the
divisors added up aside. Nothing of weight is lost to underflow: every factor, hence every table,
is largest where all its labels are the class of the largest weight, so an entry that is negligible
in its table is negligible in Z. E[S] is the derivative ``k d log Z / d beta``, carried forward
beside each table; its terms are all positive, so it is as accurate as Z.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph import NeighborGraph
from bayesknn.model.checks import check_betas, check_class_weight, check_n_classes
from bayesknn.model.elimination_order import symmetrise
from bayesknn.model.elimination_plan import EliminationPlan, plan_elimination

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
    log_z, _ = _eliminate(graph, betas, k, n_classes, class_weight, max_bytes)
    return float(log_z[0]) if betas.ndim == 0 else log_z.reshape(betas.shape)


def expected_agreement_exact(
    graph: NeighborGraph,
    beta: Any,
    k: int,
    n_classes: int,
    class_weight: Any = None,
    max_bytes: float = 2**31,
    count_weight: Any = None,
    plan: EliminationPlan | None = None,
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
    count_weight : array-like of shape (n_classes,), optional
        What an edge between two points of class g counts in the average; by default its class
        weight. Ones give the plain number of edges that agree, under the weighted law.
    plan : EliminationPlan, optional
        That of :func:`plan_elimination` for this graph, k and number of classes, if it is at hand.

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
    counts = check_class_weight(count_weight, check_n_classes(n_classes))
    if counts is None:
        counts = _fill_in(class_weight, n_classes)
    _, mean = _eliminate(graph, betas, k, n_classes, class_weight, max_bytes, counts, plan)
    return float(mean[0]) if betas.ndim == 0 else mean.reshape(betas.shape)


def _fill_in(class_weight: Any, n_classes: int) -> np.ndarray:
    weights = check_class_weight(class_weight, n_classes)
    return np.ones(n_classes) if weights is None else weights


def _eliminate(
    graph: Any,
    betas: Any,
    k: Any,
    n_classes: Any,
    class_weight: Any,
    max_bytes: Any,
    counts: Any = None,
    plan: Any = None,
) -> Any:
    k = graph.check_k(k)
    n_classes = check_n_classes(n_classes)
    weights = _fill_in(class_weight, n_classes)
    plan = plan or plan_elimination(graph, k, n_classes)
    plan.check_fits(max_bytes, n_copies=1 if counts is None else 2)
    starts, points, multiplicity = symmetrise(graph, k)
    lengths = np.diff(plan.scope_starts)
    firsts = plan.scopes[plan.scope_starts[:-1][lengths > 0]]
    return _sum_out(
        (plan.order, plan.scope_starts, plan.scopes),
        (starts, points, multiplicity),
        weights,
        weights if counts is None else counts,
        betas.ravel() / k,
        counts is not None,
        plan.peak_entries,
        plan.width,
        # The most tables multiplied at a step, and the most edges of a point.
        int(np.bincount(firsts, minlength=1).max()),
        int(np.add.reduceat(multiplicity, starts[:-1]).max()),
    )


@kernel
def _sum_out(plan, edges, weights, counts, strengths, derive, peak, width, most_tables, most_edges):
    """Return log Z and, if asked, the mean of S with ``counts``, at each strength = beta / k.

    A table over a scope is indexed with the first point of the scope as the lowest digit. The
    first point is the next to be summed out, so in each table used at a step the label that is
    summed out there has stride 1. The index over a scope is split in two, low and high digits,
    so that its place in another table is the sum of two entries looked up.
    """
    order, scope_starts, scopes = plan
    n = len(order)
    n_classes = len(weights)
    heaviest = weights[0]
    for g in range(1, n_classes):
        heaviest = max(heaviest, weights[g])
    n_low_max = 0
    while n_low_max < width and n_classes ** (n_low_max + 1) <= _MAX_LOW_ENTRIES:
        n_low_max += 1
    low_max = n_classes**n_low_max
    high_max = n_classes ** (width - n_low_max)

    values = np.empty(peak)
    slopes = np.empty(peak if derive else 0)
    product = np.empty((n_classes, low_max))
    product_slope = np.empty((n_classes, low_max if derive else 0))
    factor = np.empty((n_classes, most_edges + 1))
    lift = np.empty(n_classes)
    deficit_low = np.empty((n_classes, low_max), np.uint64)
    deficit_high = np.empty((n_classes, high_max), np.uint64)
    offset_low = np.empty((most_tables, low_max), np.uint64)
    offset_high = np.empty((most_tables, high_max), np.uint64)
    pull = np.empty(width, np.int64)
    stride = np.empty(width, np.int64)
    place = np.zeros(n, np.int64)
    # Tables left by earlier steps and not yet used: a stack of steps, and where each begins.
    waiting = np.empty(n, np.int64)
    begins = np.zeros(n + 1, np.int64)

    log_z = np.zeros(len(strengths))
    mean = np.zeros(len(strengths))
    for b in range(len(strengths)):
        strength = strengths[b]
        for g in range(n_classes):
            for d in range(most_edges + 1):
                factor[g, d] = np.exp(-strength * weights[g] * d)
        n_waiting = 0
        for s in range(n):
            v = order[s]
            scope = scopes[scope_starts[s] : scope_starts[s + 1]]
            m = len(scope)
            n_low = min(m, n_low_max)
            low = n_classes**n_low
            high = n_classes ** (m - n_low)
            for q in range(m):
                place[scope[q]] = q

            total = _find_pull(v, edges, scope, place, pull)
            for g in range(n_classes):
                lift[g] = np.exp(strength * (weights[g] - heaviest) * total)
                _spread_deficit(pull, 0, n_low, n_classes, g, deficit_low[g])
                _spread_deficit(pull, n_low, m, n_classes, g, deficit_high[g])

            # The tables that mention v are the last ones on the stack.
            top = begins[n_waiting]
            n_tables = 0
            while n_waiting > 0 and scopes[scope_starts[waiting[n_waiting - 1]]] == v:
                n_waiting -= 1
                t = waiting[n_waiting]
                for q in range(m):
                    stride[q] = 0
                step = n_classes
                for e in range(scope_starts[t] + 1, scope_starts[t + 1]):
                    stride[place[scopes[e]]] = step
                    step *= n_classes
                _spread(stride, 0, n_low, n_classes, 0, offset_low[n_tables])
                _spread(stride, n_low, m, n_classes, begins[n_waiting], offset_high[n_tables])
                n_tables += 1

            largest = 0.0
            for y in range(high):
                for g in range(n_classes):
                    skip = deficit_high[g, y]
                    _multiply_edges(factor[g], lift[g], skip, deficit_low[g], low, product[g])
                    if derive:
                        _derive_edges(
                            counts[g],
                            total,
                            skip,
                            deficit_low[g],
                            low,
                            product[g],
                            product_slope[g],
                        )
                    for u in range(n_tables):
                        first = offset_high[u, y] + np.uint64(g)
                        if derive:
                            _derive_table(
                                values,
                                slopes,
                                first,
                                offset_low[u],
                                low,
                                product[g],
                                product_slope[g],
                            )
                        _multiply_table(values, first, offset_low[u], low, product[g])
                largest = max(largest, _add_classes(product, low, values, top + y * low))
                if derive:
                    _add_classes(product_slope, low, slopes, top + y * low)

            # The new table takes the place of those that were used.
            base = begins[n_waiting]
            size = low * high
            log_z[b] += np.log(largest) + strength * heaviest * total
            _move_down(values, base, top, size, 1.0 / largest)
            if derive:
                _move_down(slopes, base, top, size, 1.0 / largest)
            if m > 0:
                waiting[n_waiting] = s
                n_waiting += 1
                begins[n_waiting] = base + size
            elif derive:
                # The last of a component: its one entry is now 1, so its slope is that of log Z.
                mean[b] += slopes[base]
    return log_z, mean


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
