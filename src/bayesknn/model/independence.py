"""Mean and variance of S_k at beta = 0, where the labels are independent and uniform (Section 3.3).

One end of every thermodynamic path: value and slope of E[S_k] there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.model.checks import check_class_weight, check_n_classes


def expected_agreement_at_zero(
    n_points: int, k: int, n_classes: int, class_weight: Any = None
) -> float:
    """Return E[S_k] at beta = 0, where the labels are independent and uniform.

    It is ``n k / G``, and with class weights ``n k sum(a) / G**2`` (SPEC corrects the paper's
    ``n / 2``).

    Examples
    --------
    >>> from bayesknn.model import expected_agreement_at_zero
    >>> expected_agreement_at_zero(n_points=250, k=3, n_classes=2)
    375.0
    """
    n_classes = check_n_classes(n_classes)
    weights = check_class_weight(class_weight, n_classes)
    mean_weight = 1.0 if weights is None else float(weights.mean())
    return n_points * k * mean_weight / n_classes


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
