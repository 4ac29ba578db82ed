"""The pseudo-likelihood: the product of the model's full conditionals (Section 3.2, eq. psudoL).

The counts of class g around i take in the k nearest neighbours of i and the points that have i
among their k nearest; mutual neighbours count twice. It is the leave-one-out score of the
predictive rule, cheap and well behaved in prediction, but as a law of (beta, k) it is another one
than that of the model: on Ripley's data its k is three times as large.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.products import ConditionalProduct


class PseudoLikelihood(ConditionalProduct):
    """The pseudo-likelihood of one set of labels, for every k of the graph.

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
    >>> from bayesknn.likelihood import PseudoLikelihood
    >>> ripley = load_ripley()
    >>> graph = NeighborGraph.from_points(ripley.X_train, k_max=125)
    >>> likelihood = PseudoLikelihood(graph, ripley.y_train)
    >>> maximum = likelihood.maximize()
    >>> maximum.k, round(maximum.beta, 4), round(maximum.log_value, 4)
    (53, 2.2805, -71.7523)
    >>> round(likelihood.log_density(1.5, 15), 4)
    -79.0863
    """

    direction = "both"


def log_pseudo_likelihood(
    graph: NeighborGraph,
    labels: Any,
    beta: Any,
    k: Any = None,
    n_classes: int | None = None,
    class_weight: Any = None,
) -> np.ndarray | float:
    """Compute the log pseudo-likelihood at (beta, k), or at beta for every k.

    For many values on the same labels build a :class:`PseudoLikelihood` once.

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
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import log_pseudo_likelihood
    >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0], [7.0]], k_max=2)
    >>> round(log_pseudo_likelihood(graph, [0, 0, 0, 1], beta=1.0, k=2), 4)
    -1.843
    >>> log_pseudo_likelihood(graph, [0, 0, 0, 1], beta=1.0).round(4)
    array([-2.1819, -1.843 ])
    """
    likelihood = PseudoLikelihood(graph, labels, n_classes, class_weight)
    return likelihood.log_density_grid(beta) if k is None else likelihood.log_density(beta, k)
