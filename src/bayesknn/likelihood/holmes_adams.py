"""The product likelihood of Holmes and Adams (2002), for comparison (Section 2.1, eq. jointHA).

Each factor is the softmax of ``beta / k`` times the class counts among the k nearest neighbours of
i, and no others: forward neighbours only. The factors are not the conditionals of any joint law,
and the product is not normalised: over all labels of two points it adds up to
``2 (1 + e^(2 beta / k)) / (1 + e^(beta / k))^2``. Its predictive rule is the same softmax of
the counts among the k nearest training points of x: ``class_probabilities``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.products import ConditionalProduct


class HolmesAdamsLikelihood(ConditionalProduct):
    """The 2002 product likelihood of one set of labels, for every k of the graph.

    Parameters
    ----------
    graph : NeighborGraph
    labels : array-like of shape (n,)
        Integers in ``0..n_classes - 1``.
    n_classes : int, optional
        By default the largest label plus one.
    class_weight : array-like of shape (n_classes,), optional
        The weights a_g: a neighbour of class g counts a_g in place of 1.
    n_jobs : int, optional
        Threads that count the labels, as in joblib. The result is the same whatever it is.

    Examples
    --------
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import HolmesAdamsLikelihood
    >>> ripley = load_ripley()
    >>> graph = NeighborGraph.from_points(ripley.X_train, k_max=125)
    >>> likelihood = HolmesAdamsLikelihood(graph, ripley.y_train)
    >>> maximum = likelihood.maximize()
    >>> maximum.k, round(maximum.beta, 4), round(maximum.log_value, 4)
    (66, 5.698, -70.9978)
    """

    direction = "forward"


def log_holmes_adams(
    graph: NeighborGraph,
    labels: Any,
    beta: Any,
    k: Any = None,
    n_classes: int | None = None,
    class_weight: Any = None,
) -> np.ndarray | float:
    """Compute the log of the 2002 product likelihood at (beta, k), or at beta for every k.

    For many values on the same labels build a :class:`HolmesAdamsLikelihood` once.

    Parameters
    ----------
    graph : NeighborGraph
    labels : array-like of shape (n,)
        Integers in ``0..n_classes - 1``.
    beta : float or array-like
    k : int or array-like, optional
        Broadcast against ``beta``. Without it, every k from 1 to ``graph.k_max``.
    n_classes : int, optional
        By default the largest label plus one.
    class_weight : array-like of shape (n_classes,), optional

    Returns
    -------
    float, or ndarray of the common shape of ``beta`` and ``k``
        Without ``k`` of shape ``(k_max,) + shape of beta``, entry k - 1 for k.

    Examples
    --------
    The product is not a probability: it adds up to more than one over the labels of two points.

    >>> from math import exp
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import log_holmes_adams
    >>> pair = NeighborGraph.from_neighbors([[1, 0]])
    >>> every = ([0, 0], [0, 1], [1, 0], [1, 1])
    >>> round(sum(exp(log_holmes_adams(pair, y, 1.0, 1, n_classes=2)) for y in every), 4)
    1.2136
    """
    likelihood = HolmesAdamsLikelihood(graph, labels, n_classes, class_weight)
    return likelihood.log_density_grid(beta) if k is None else likelihood.log_density(beta, k)
