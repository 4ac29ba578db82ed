"""The sufficient statistic S_k(y): directed edges whose ends share a label (Section 2.2).

The model is ``f(y | beta, k) = exp(beta / k * S_k(y)) / Z(beta, k)``. Because the edges of every
smaller k come first in the graph, one pass over them gives S_k for every k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._jit import kernel
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
        The weights a_g: an edge between two points of class g counts a_g in place of 1.

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
    batch = np.atleast_2d(checked)
    if class_weight is None:
        totals = _count_agreement(neighbors, batch)
    else:
        # Integer counts first, so that the result does not depend on the order of the edges.
        totals = _count_agreement_by_class(neighbors, batch, n_classes) @ class_weight
    if k is not None:
        totals = totals[:, -1]
    if checked.ndim == 2:
        return totals
    return totals[0] if k is None else totals[0].item()


@kernel
def _count_agreement(neighbors, batch):
    k_max, n = neighbors.shape
    n_draws = batch.shape[0]
    totals = np.empty((n_draws, k_max), np.int64)
    for d in range(n_draws):
        labels = batch[d]
        total = np.int64(0)
        for r in range(k_max):
            row = neighbors[r]
            count = np.uint32(0)
            for i in range(np.uint64(n)):
                count += np.uint32(labels[i] == labels[row[i]])
            total += count
            totals[d, r] = total
    return totals


@kernel
def _count_agreement_by_class(neighbors, batch, n_classes):
    k_max, n = neighbors.shape
    n_draws = batch.shape[0]
    totals = np.zeros((n_draws, k_max, n_classes), np.float64)
    for d in range(n_draws):
        labels = batch[d]
        counts = np.zeros(n_classes, np.int64)
        for r in range(k_max):
            row = neighbors[r]
            for i in range(np.uint64(n)):
                counts[labels[i]] += labels[i] == labels[row[i]]
            totals[d, r] = counts
    return totals
