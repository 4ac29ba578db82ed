"""Full conditional laws of the labels (equation for f(y_i | y_-i) in Section 2.2).

``P(y_i = g | rest)`` is proportional to ``exp(beta / k * a_g * sum_j w_ij 1[y_j = g])``, where
w_ij counts the directed edges between i and j in both directions, so that mutual neighbours count
twice, and a_g is 1 without class weights. The predictive rule has the same form (eq. knn-pred).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.model.checks import (
    check_beta,
    check_class_weight,
    check_label_vector,
    check_n_classes,
)


def class_probabilities(counts: Any, beta: float, k: int, class_weight: Any = None) -> np.ndarray:
    """Turn class counts into class probabilities: P(g) proportional to exp(beta / k a_g count_g).

    Parameters
    ----------
    counts : array-like of shape (..., n_classes)
        Members of each class among the neighbours. Forward neighbours alone make it the rule of
        Holmes and Adams (eq. knn-intuit), forward and reverse ones together that of the coherent
        model (eqs. knn-cond and knn-pred).
    beta : float
    k : int
    class_weight : array-like of shape (n_classes,), optional
        The weights a_g.

    Returns
    -------
    ndarray of the shape of ``counts``

    Examples
    --------
    >>> from bayesknn.model import class_probabilities
    >>> class_probabilities([3, 1], beta=2.0, k=4).round(4)
    array([0.7311, 0.2689])
    """
    beta = check_beta(beta)
    fields = np.asarray(counts, dtype=np.float64)
    weights = check_class_weight(class_weight, fields.shape[-1])
    if weights is not None:
        fields = fields * weights
    relative = np.exp(beta / k * (fields - fields.max(axis=-1, keepdims=True)))
    return relative / relative.sum(axis=-1, keepdims=True)


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
    n_classes = check_n_classes(n_classes)
    labels = check_label_vector(labels, graph.n_points, n_classes)
    counts = graph.counts(labels, n_classes, k)
    if site is not None:
        if isinstance(site, bool) or int(site) != site or not 0 <= site < graph.n_points:
            raise ValueError(f"site must be an integer in 0..{graph.n_points - 1}, got {site}")
        counts = counts[int(site)]
    return class_probabilities(counts, beta, k, check_class_weight(class_weight, n_classes))
