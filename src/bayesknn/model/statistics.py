"""The sufficient statistic S_k(y): directed edges whose ends share a label (Section 2.2).

The model is ``f(y | beta, k) = exp(beta / k * S_k(y)) / Z(beta, k)``. Because the edges of every
smaller k come first in the graph, one pass over them gives S_k for every k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.checks import check_label_draws
from bayesknn._utils.jit import kernel
from bayesknn.graph import NeighborGraph
from bayesknn.model.checks import check_class_weight, check_n_classes


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
