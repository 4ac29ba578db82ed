"""The sufficient statistic S_k(y): directed edges whose ends share a label (Section 2.2).

The model is ``f(y | beta, k) = exp(beta / k * S_k(y)) / Z(beta, k)``. Because the edges of every
smaller k come first in the graph, one pass over them gives S_k for every k. At beta = 0, one end of
every thermodynamic path (Section 3.3), the labels are independent and uniform, and the variance of
S_k is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph import NeighborGraph
from bayesknn.model.checks import check_class_weight, check_label_draws, check_n_classes


def agreement(
    graph: NeighborGraph, labels: Any, k: int | None = None, class_weight: Any = None
) -> np.ndarray | int | float:
    """Count the directed edges whose ends share a label: S_k(y).

    Parameters
    ----------
    graph : NeighborGraph
    labels : array-like of shape (n,) or (n_draws, n)
        Integers from 0 up; a batch of label vectors is counted row by row.
    k : int, optional
        One number of neighbours; without it, every k from 1 to ``graph.k_max``.
    class_weight : array-like of shape (n_classes,), optional
        As in :class:`BoltzmannModel`.

    Returns
    -------
    ndarray of shape (k_max,) or (n_draws, k_max)
        Entry k - 1 is S_k; int64, or float64 with class weights. With ``k`` the last axis is
        gone: an int (float with weights) for one label vector, shape (n_draws,) for a batch.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import agreement
    >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0], [7.0]], k_max=2)
    >>> agreement(graph, [0, 0, 0, 1])
    array([3, 6])
    >>> agreement(graph, [0, 0, 1, 1], k=1, class_weight=[0.5, 2.0])
    3.0
    """
    n_ranks = graph.k_max if k is None else graph.check_k(k)
    # The edges of k are the first k ranks, so the others need not be looked at.
    neighbors = graph.neighbors[:n_ranks]
    n_classes = None
    if class_weight is not None:
        n_classes = len(np.atleast_1d(np.asarray(class_weight)))
        class_weight = check_class_weight(class_weight, check_n_classes(n_classes))
    checked = check_label_draws(labels, graph.n_points, n_classes)
    totals = _add_up(neighbors, np.atleast_2d(checked), class_weight)
    if class_weight is None:
        totals = totals.astype(np.int64)
    if k is not None:
        totals = totals[:, -1]
    if checked.ndim == 2:
        return totals
    return totals[0] if k is None else totals[0].item()


def agreement_variance_at_zero(
    graph: NeighborGraph, k: int, n_classes: int, class_weight: Any = None
) -> float:
    """Return Var[S_k] at beta = 0.

    ``S_k`` is the sum over pairs of ``w_ij a_y 1[y_i = y_j = y]``. Pairs without a common point
    are independent; with equal weights all pairs are uncorrelated.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import agreement_variance_at_zero
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 0]])
    >>> agreement_variance_at_zero(ring, k=1, n_classes=2)
    1.0
    """
    k, n_classes = graph.check_k(k), check_n_classes(n_classes)
    weights = check_class_weight(class_weight, n_classes)
    a = np.ones(n_classes) if weights is None else weights
    n = graph.n_points
    heads = graph.neighbors[:k].astype(np.int64).ravel()
    tails = np.tile(np.arange(n), k)
    # A mutual pair is two directed edges, of weight 2 together: its square counts 4, not 2.
    is_mutual = np.isin(tails * n + heads, heads * n + tails)
    squares_of_edges = 1.0 + is_mutual
    sum_of_squares = squares_of_edges.sum()
    mean = a.sum() / n_classes**2
    variance = sum_of_squares * (np.sum(a**2) / n_classes**2 - mean**2)
    shared = np.sum(a**2) / n_classes**3 - mean**2
    degrees = k + np.bincount(heads, minlength=n)
    # Each pair is met from both its ends.
    return float(variance + shared * (np.sum(degrees.astype(np.float64) ** 2) - 2 * sum_of_squares))


@kernel
def sum_agreement(neighbors, labels, class_weight, first, last):
    """Sum the weights of the agreeing edges of the ranks ``first..last - 1``, for compiled code.

    ``class_weight`` is None where an edge counts 1.
    """
    total = 0.0
    for rank in range(first, last):
        row = neighbors[rank]
        # Settled when the function is compiled.
        if class_weight is None:
            count = np.uint32(0)
            for i in range(np.uint64(labels.size)):
                count += np.uint32(labels[i] == labels[row[i]])
            total += np.float64(count)
        else:
            # Integers first, so that the sum does not depend on the order of the points.
            counts = np.zeros(class_weight.size, np.int64)
            for i in range(np.uint64(labels.size)):
                counts[labels[i]] += labels[i] == labels[row[i]]
            for g in range(class_weight.size):
                total += class_weight[g] * counts[g]
    return total


@kernel
def _add_up(neighbors, batch, class_weight):
    totals = np.empty((batch.shape[0], neighbors.shape[0]))
    for d in range(batch.shape[0]):
        total = 0.0
        for rank in range(neighbors.shape[0]):
            total += sum_agreement(neighbors, batch[d], class_weight, rank, rank + 1)
            totals[d, rank] = total
    return totals
