"""Full conditional laws of the labels (equation for f(y_i | y_-i) in Section 2.2).

``P(y_i = g | rest)`` is proportional to ``exp(beta / k * a_g * sum_j w_ij 1[y_j = g])``, where
w_ij counts the directed edges between i and j in both directions, so that mutual neighbours count
twice, and a_g is 1 without class weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._jit import kernel
from bayesknn.graph import NeighborGraph
from bayesknn.model.arguments import (
    check_beta,
    check_class_weight,
    check_label_vector,
    check_n_classes,
)


def count_fields(graph: NeighborGraph, labels: Any, k: int, n_classes: int) -> np.ndarray:
    """Count each point's edges to each class, in both directions.

    Parameters
    ----------
    graph : NeighborGraph
    labels : array-like of shape (n,)
    k : int
    n_classes : int

    Returns
    -------
    ndarray of shape (n, n_classes), dtype int64
        Entry [i, g] is ``sum_j w_ij 1[y_j = g]``.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import count_fields
    >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0]], k_max=1)
    >>> count_fields(graph, [0, 0, 1], k=1, n_classes=2).tolist()
    [[2, 0], [2, 1], [1, 0]]
    """
    k = graph.check_k(k)
    n_classes = check_n_classes(n_classes)
    labels = check_label_vector(labels, graph.n_points, n_classes)
    starts, points, in_degree = graph.incidence
    return _count_fields(starts, points, in_degree[k - 1], labels, k, n_classes)


def conditional_probabilities(
    graph: NeighborGraph,
    labels: Any,
    beta: float,
    k: int,
    n_classes: int,
    class_weight: Any = None,
    site: int | None = None,
) -> np.ndarray:
    """Return the law of each label given all the others.

    Parameters
    ----------
    graph : NeighborGraph
    labels : array-like of shape (n,)
    beta : float
    k : int
    n_classes : int
    class_weight : array-like of shape (n_classes,), optional
    site : int, optional
        One point; without it, all of them.

    Returns
    -------
    ndarray of shape (n, n_classes), or (n_classes,) with ``site``

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import conditional_probabilities
    >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0]], k_max=1)
    >>> conditional_probabilities(graph, [0, 0, 1], beta=1.0, k=1, n_classes=2).round(4).tolist()
    [[0.8808, 0.1192], [0.7311, 0.2689], [0.7311, 0.2689]]
    """
    beta = check_beta(beta)
    fields = count_fields(graph, labels, k, n_classes)
    weights = check_class_weight(class_weight, n_classes)
    if site is not None:
        if isinstance(site, bool) or int(site) != site or not 0 <= site < graph.n_points:
            raise ValueError(f"site must be an integer in 0..{graph.n_points - 1}, got {site}")
        fields = fields[int(site)]
    exponents = beta / k * (fields if weights is None else fields * weights)
    likeliness = np.exp(exponents - exponents.max(axis=-1, keepdims=True))
    return likeliness / likeliness.sum(axis=-1, keepdims=True)


@kernel
def _count_fields(starts, points, in_degree, labels, k, n_classes):
    n = len(labels)
    fields = np.zeros((n, n_classes), np.int64)
    for i in range(np.uint64(n)):
        begin = np.uint64(starts[i])
        for e in range(begin, begin + np.uint64(k) + np.uint64(in_degree[i])):
            fields[i, labels[points[e]]] += 1
    return fields
