"""Exact log Z(beta, k) and E[S_k] by variable elimination on the symmetrised graph.

``Z = sum_y prod_(i,j) exp(beta / k * w_ij * a_(y_i) * 1[y_i = y_j])`` (Section 2.2, with the class
weights of its last paragraph) is summed one label at a time. Each step multiplies the tables that
mention the label, sums it out, and leaves a table over the labels it was tied to.

**The order.** Summing out a point joins all its remaining neighbours and leaves a table over them,
``n_classes ** width`` entries for ``width`` neighbours, so the order decides everything. Min-fill
takes the point whose neighbours need the fewest new edges among them. Connected components are
ordered one by one. The table that a point leaves is used where the first of its remaining
neighbours is summed out, and how much room the tables take is known in advance.

**The sums.** Tables are kept on the linear scale, divided by their largest entry, with the
logarithms of the divisors added up aside. Nothing of weight is lost to underflow: every factor,
hence every table, is largest where all its labels are the class of the largest weight, so an entry
that is negligible in its table is negligible in Z. E[S] is the derivative of log Z in ``beta / k``,
by a complex step (Squire and Trapp 1998): the imaginary part of ``log Z(beta / k + i h)`` over h
loses no digits to a difference, however small h is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import coo_array

from bayesknn._utils.checks import check_positive
from bayesknn.graph import NeighborGraph, find_components
from bayesknn.model.boltzmann import BoltzmannModel, as_model, check_betas

# The search keeps a byte for every pair of points of a component: a quarter of a gigabyte.
_MAX_COMPONENT = 2**14


def log_normalizer_exact(
    graph: NeighborGraph | BoltzmannModel,
    beta: Any,
    k: int,
    n_classes: int | None = None,
    class_weight: Any = None,
    max_bytes: float = 2**31,
) -> np.ndarray | float:
    """Sum over every label vector exactly: log Z(beta, k).

    Parameters
    ----------
    graph : NeighborGraph or BoltzmannModel
        With a model, ``n_classes`` and ``class_weight`` are left out.
    beta : float or array-like
        A whole curve shares one elimination order.
    k : int
        Small: the cost grows exponentially with the induced width of the graph of k.
    n_classes, class_weight
        As in :class:`BoltzmannModel`.
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
    model, betas = as_model(graph, n_classes, class_weight), check_betas(beta)
    log_z = _eliminate(model, betas, k, max_bytes)
    return float(log_z[0]) if betas.ndim == 0 else log_z.reshape(betas.shape)


def expected_agreement_exact(
    graph: NeighborGraph | BoltzmannModel,
    beta: Any,
    k: int,
    n_classes: int | None = None,
    class_weight: Any = None,
    max_bytes: float = 2**31,
) -> np.ndarray | float:
    """Average S_k over every label vector exactly: E[S_k] at (beta, k).

    Parameters
    ----------
    graph, beta, k, n_classes, class_weight, max_bytes
        As in :func:`log_normalizer_exact`; the tables take twice as much memory.

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
    model, betas = as_model(graph, n_classes, class_weight), check_betas(beta)
    # 1e-20 is far below double precision relative to any real part, and does not underflow.
    step = 1e-20
    mean = _eliminate(model, betas, k, max_bytes, step).imag / step
    return float(mean[0]) if betas.ndim == 0 else mean.reshape(betas.shape)


def _eliminate(
    model: BoltzmannModel, betas: np.ndarray, k: int, max_bytes: float, step: float = 0.0
) -> np.ndarray:
    """Return log Z at all betas, moved off the real axis by a step of beta / k if there is one."""
    max_bytes = check_positive(max_bytes, "max_bytes")
    plan = plan_elimination(model, k)
    # Complex numbers take twice the room.
    n_bytes = (16.0 if step else 8.0) * plan.peak_entries
    if n_bytes > max_bytes:
        needed = f"{n_bytes / 1e9:.3g} GB of memory in all where {max_bytes / 1e9:.3g} are allowed"
        _refuse(plan.k, plan.n_classes, plan.width, needed)
    strengths = betas.ravel() / plan.k + (1j * step if step else 0.0)
    # As many strengths at a time as fill a few megabytes: small tables are not worth a call each.
    n_parts = -(-strengths.size // max(1, 2**18 // plan.peak_entries))
    edges = symmetrise(model.graph, plan.k)
    parts = np.array_split(strengths, max(n_parts, 1))
    return np.concatenate([_sum_out(plan, edges, model.weights, part) for part in parts])


def _sum_out(
    plan: EliminationPlan,
    edges: tuple[np.ndarray, np.ndarray, np.ndarray],
    weights: np.ndarray,
    strengths: np.ndarray,
) -> np.ndarray:
    """Return log Z at each strength = beta / k.

    A table has an axis for the strengths and one for each point of its scope, in the order in
    which these are summed out. The point of a step therefore has the first axis of every table
    that is used there, and the others are lined up by axes of length 1.
    """
    starts, points, multiplicity = edges
    n_classes, heaviest = len(weights), weights.max()
    # An edge counts at most 1 in the tables; what it counts for the heaviest class is set aside.
    deficits = np.diag(weights) - heaviest
    log_z = np.zeros_like(strengths)
    waiting: dict[int, list[tuple[list[int], np.ndarray]]] = {v: [] for v in plan.order.tolist()}
    for v, scope in zip(plan.order.tolist(), plan.scopes, strict=True):
        used = []
        for e in range(starts[v], starts[v + 1]):
            # The others are gone, and have left their edges to v in a table.
            if points[e] in scope:
                log_z += strengths * heaviest * multiplicity[e]
                factor = np.exp(strengths[:, None, None] * (multiplicity[e] * deficits))
                used.append(_align(factor, [points[e]], scope))
        used += [_align(table, others, scope) for others, table in waiting.pop(v)]
        total: Any = math.prod(table[:, 0] for table in used)
        for g in range(1, n_classes):
            total += math.prod(table[:, g] for table in used)
        if scope:
            largest = total.real.reshape(len(strengths), -1).max(axis=1)
            total /= largest.reshape(-1, *(1 for _ in scope))
            log_z += np.log(largest)
            waiting[scope[0]].append((scope[1:], total))
        else:
            log_z += np.log(total)
    return log_z


def _align(table: np.ndarray, points: list[int], scope: list[int]) -> np.ndarray:
    """Give a table axes of length 1 for those points of a scope that it does not mention."""
    n_strengths, n_classes = table.shape[:2]
    shape = [n_classes if point in points else 1 for point in scope]
    return table.reshape(n_strengths, n_classes, *shape)


@dataclass(frozen=True, eq=False)
class EliminationPlan:
    """What is summed out when, over which points each step leaves a table, and what it costs.

    Attributes
    ----------
    order : ndarray of shape (n,), dtype int64
        Points in the order in which their labels are summed out.
    scopes : list of list of int
        The points over which each step leaves a table, in the order in which they are summed out.
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
    scopes: list[list[int]]
    k: int
    n_classes: int
    width: int
    n_entries: int
    peak_entries: int


def plan_elimination(
    graph: NeighborGraph | BoltzmannModel, k: int, n_classes: int | None = None
) -> EliminationPlan:
    """Plan the exact sum over all labels of the graph of k.

    Parameters
    ----------
    graph : NeighborGraph or BoltzmannModel
        With a model, ``n_classes`` is left out.
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
    model = as_model(graph, n_classes)
    graph, n_classes, k = model.graph, model.n_classes, model.graph.check_k(k)
    # No machine holds a table of more entries: such an order is not planned to its end.
    max_width = int(42 / np.log2(n_classes))
    order, scopes = order_elimination(graph, k, max_width)
    width = max(map(len, scopes))
    if width > max_width:
        _refuse(k, n_classes, width, "more than any machine holds")
    sizes = [n_classes ** len(scope) for scope in scopes]
    held = peak = 0
    used_at = dict.fromkeys(order, 0)
    for v, scope, size in zip(order, scopes, sizes, strict=True):
        # A sum over the classes so far, the product for the next one, and what it is made from.
        peak = max(peak, held + 3 * size)
        held -= used_at[v]
        if scope:
            used_at[scope[0]] += size
            held += size
    n_entries = n_classes * sum(sizes)
    return EliminationPlan(np.array(order), scopes, k, n_classes, width, n_entries, peak)


def _refuse(k: int, n_classes: int, width: int, needed: str) -> NoReturn:
    raise ValueError(
        f"exact elimination at k={k} has induced width {width}, a table of {n_classes}^{width} "
        f"entries: {needed}; use a smaller k or a sampling method"
    )


def order_elimination(
    graph: NeighborGraph, k: int, max_width: int
) -> tuple[list[int], list[list[int]]]:
    """Order the points by min-fill.

    Parameters
    ----------
    graph : NeighborGraph
    k : int
    max_width : int
        An order of larger induced width is of no use. It is finished by least degree, which takes
        less time, so that its width can still be told.

    Returns
    -------
    order : list of int
    scopes : list of list of int
        The points over which each step leaves a table, in the order in which they are summed out.
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
    orders: list[int] = []
    scopes: list[list[int]] = []
    for component in components:
        local[component] = np.arange(len(component))
        joined = [
            sum(1 << b for b in local[points[starts[i] : starts[i + 1]]].tolist())
            for i in component.tolist()
        ]
        order, later = _order_by_min_fill(joined, max_width)
        position = {a: step for step, a in enumerate(order)}
        orders += component[order].tolist()
        scopes += [component[sorted(scope, key=position.__getitem__)].tolist() for scope in later]
    return orders, scopes


def symmetrise(graph: NeighborGraph, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """List each point's distinct neighbours in either direction, with the weights w_ij.

    Returns
    -------
    starts : ndarray of shape (n + 1,), dtype int64
    points : ndarray, dtype int64
        ``points[starts[i] : starts[i + 1]]`` are the neighbours of i, in increasing order.
    weights : ndarray, dtype int64
        1, or 2 where each is among the k nearest of the other.
    """
    n = graph.n_points
    ends = np.tile(np.arange(n), k), graph.neighbors[:k].ravel().astype(np.int64)
    edges = coo_array((np.ones(n * k, np.int64), ends), shape=(n, n)).tocsr()
    both = (edges + edges.T).sorted_indices()
    return both.indptr.astype(np.int64), both.indices.astype(np.int64), both.data


def _order_by_min_fill(joined: list[int], max_width: int) -> tuple[list[int], list[list[int]]]:
    """Return the order of one component, and the neighbours of each point when its turn comes.

    Bit b of ``joined[a]`` is set if a and b are neighbours; the list is overwritten.
    """

    def cost(a: int) -> tuple[int, int, int]:
        """Return twice the number of pairs of neighbours that are not joined, and the degree."""
        near = joined[a]
        degree = near.bit_count()
        if is_hopeless:
            return degree, degree, a
        n_joined = sum((near & joined[b]).bit_count() for b in _list_bits(near))
        return degree * (degree - 1) - n_joined, degree, a

    is_hopeless = False
    costs = [cost(a) for a in range(len(joined))]
    heap, alive = sorted(costs), (1 << len(joined)) - 1
    order: list[int] = []
    scopes: list[list[int]] = []
    while heap:
        entry = heappop(heap)
        v = entry[2]
        # The cost of a point may have changed since the entry was made.
        if entry != costs[v] or not alive >> v & 1:
            continue
        alive ^= 1 << v
        near = joined[v]
        order.append(v)
        scopes.append(_list_bits(near))
        if near == alive:
            # The rest are all joined to each other, or soon will be: any order will do.
            rest = scopes[-1]
            return order + rest, scopes + [rest[at + 1 :] for at in range(len(rest))]
        if len(scopes[-1]) > max_width and not is_hopeless:
            is_hopeless = True
            costs = [cost(a) for a in range(len(joined))]
            heap = sorted(costs)
        once, twice = 0, near
        for u in scopes[-1]:
            joined[u] = (joined[u] | near) & ~(1 << u | 1 << v)
            twice |= once & joined[u]
            once |= joined[u]
        # The cost of the neighbours has changed, and that of every point joined to two of them.
        for a in scopes[-1] if is_hopeless else _list_bits(twice & alive):
            costs[a] = cost(a)
            heappush(heap, costs[a])
    return order, scopes


def _list_bits(mask: int) -> list[int]:
    """Return the positions of the bits that are set, in increasing order."""
    bits = []
    while mask:
        low = mask & -mask
        bits.append(low.bit_length() - 1)
        mask ^= low
    return bits
