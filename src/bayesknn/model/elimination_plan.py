"""The steps of variable elimination and the memory they need, before anything is computed.

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

from bayesknn.graph import NeighborGraph
from bayesknn.model.checks import check_n_classes
from bayesknn.model.elimination_order import order_elimination, symmetrise

# No machine holds a table of more entries: such an order is not planned to its end.
_LOG2_HOPELESS = 42


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
