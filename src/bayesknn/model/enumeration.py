"""The exact law of the labels by listing every one of them (Section 2.2, for tiny n).

This is the slow, obvious oracle: all ``n_classes ** n`` label vectors are written down and
weighed. Samplers are compared with its probabilities, variable elimination with its log Z.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.model.arguments import check_beta, check_betas, check_class_weight, check_n_classes
from bayesknn.model.statistics import agreement

MAX_STATES = 2**20


def exact_law(
    graph: NeighborGraph, beta: float, k: int, n_classes: int, class_weight: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """List every label vector and its probability under the model.

    Parameters
    ----------
    graph : NeighborGraph
        With few points: at most ``2**20`` label vectors are listed.
    beta : float
    k : int
    n_classes : int
    class_weight : array-like of shape (n_classes,), optional

    Returns
    -------
    states : ndarray of shape (n_classes ** n, n)
        In lexicographic order, the last point changing fastest; :func:`state_index` goes back.
    probabilities : ndarray of shape (n_classes ** n,)

    Examples
    --------
    Two points, each the other's neighbour, agree with probability ``e^2b / (1 + e^2b)``:

    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import exact_law
    >>> graph = NeighborGraph.from_neighbors([[1, 0]])
    >>> states, probabilities = exact_law(graph, beta=np.log(3.0) / 2, k=1, n_classes=2)
    >>> states.tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> probabilities.round(6).tolist()
    [0.375, 0.125, 0.125, 0.375]
    """
    beta = check_beta(beta)
    states = list_states(graph.n_points, n_classes)
    totals = _agreement_of_states(graph, states, k, n_classes, class_weight)
    log_weights = beta / k * totals
    return states, np.exp(log_weights - _log_sum(log_weights))


def enumerate_log_normalizer(
    graph: NeighborGraph, beta: Any, k: int, n_classes: int, class_weight: Any = None
) -> np.ndarray | float:
    """Sum over every label vector: log Z(beta, k).

    Parameters
    ----------
    graph : NeighborGraph
        With few points: at most ``2**20`` label vectors are listed.
    beta : float or array-like
    k : int
    n_classes : int
    class_weight : array-like of shape (n_classes,), optional

    Returns
    -------
    float, or ndarray of the shape of ``beta``

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import enumerate_log_normalizer
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 0]])
    >>> round(enumerate_log_normalizer(ring, beta=1.0, k=1, n_classes=2), 6)
    5.297642
    """
    betas = check_betas(beta)
    states = list_states(graph.n_points, n_classes)
    totals = _agreement_of_states(graph, states, k, n_classes, class_weight)
    values = [_log_sum(b / k * totals) for b in betas.ravel()]
    return float(values[0]) if betas.ndim == 0 else np.reshape(values, betas.shape)


def enumerate_expected_agreement(
    graph: NeighborGraph, beta: Any, k: int, n_classes: int, class_weight: Any = None
) -> np.ndarray | float:
    """Average S_k over every label vector: E[S_k] at (beta, k).

    Parameters
    ----------
    graph : NeighborGraph
        With few points: at most ``2**20`` label vectors are listed.
    beta : float or array-like
    k : int
    n_classes : int
    class_weight : array-like of shape (n_classes,), optional

    Returns
    -------
    float, or ndarray of the shape of ``beta``

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import enumerate_expected_agreement
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 0]])
    >>> round(enumerate_expected_agreement(ring, beta=0.0, k=1, n_classes=2), 6)
    2.0
    """
    betas = check_betas(beta)
    states = list_states(graph.n_points, n_classes)
    totals = _agreement_of_states(graph, states, k, n_classes, class_weight)
    values = []
    for b in betas.ravel():
        log_weights = b / k * totals
        values.append(np.exp(log_weights - _log_sum(log_weights)) @ totals)
    return float(values[0]) if betas.ndim == 0 else np.reshape(values, betas.shape)


def list_states(n_points: int, n_classes: int) -> np.ndarray:
    """List every label vector in lexicographic order, the last point changing fastest.

    Examples
    --------
    >>> from bayesknn.model.enumeration import list_states
    >>> list_states(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    n_classes = check_n_classes(n_classes)
    if n_classes**n_points > MAX_STATES:
        raise ValueError(
            f"{n_points} points and {n_classes} classes have {n_classes}^{n_points} label vectors, "
            f"too many to list (at most {MAX_STATES}); use log_normalizer_exact for log Z"
        )
    codes = np.arange(n_classes**n_points)[:, None]
    return (codes // n_classes ** np.arange(n_points)[::-1] % n_classes).astype(np.uint8)


def state_index(labels: Any, n_classes: int) -> np.ndarray:
    """Return the row of :func:`list_states` (and :func:`exact_law`) at which labels stand.

    Examples
    --------
    >>> from bayesknn.model import state_index
    >>> state_index([[0, 0, 1], [1, 1, 0]], n_classes=2)
    array([1, 6])
    """
    labels = np.asarray(labels, dtype=np.int64)
    return labels @ n_classes ** np.arange(labels.shape[-1])[::-1]


def _agreement_of_states(graph, states, k, n_classes, class_weight):
    weights = check_class_weight(class_weight, n_classes)
    return np.asarray(agreement(graph, states, graph.check_k(k), weights), dtype=np.float64)


def _log_sum(log_weights):
    largest = log_weights.max()
    return largest + np.log(np.exp(log_weights - largest).sum())
