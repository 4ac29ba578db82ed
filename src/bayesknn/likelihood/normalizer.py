"""The normalising constant Z(beta, k) of the coherent model, by whichever method (Section 3.3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.log_z import log_normalizer_path
from bayesknn.model import log_normalizer_exact


class LogNormalizer(NamedTuple):
    """log Z(beta, k) and its standard error, each a float or an array of the shape of beta."""

    value: Any
    error: Any


def log_normalizer(
    graph: NeighborGraph,
    beta: Any,
    k: int,
    n_classes: int,
    method: str = "exact",
    class_weight: Any = None,
    **options: Any,
) -> LogNormalizer:
    """Compute log Z(beta, k), and how well it is known.

    Parameters
    ----------
    graph : NeighborGraph
    beta : float or array-like
    k : int
    n_classes : int
    method : {"exact", "path"}
        ``"exact"``: variable elimination, for graphs of small width (small k). ``"path"``:
        path sampling, for any graph; each call simulates, so ask for all beta at once, or make a
        :func:`~bayesknn.likelihood.path_table` for all k.
    class_weight : array-like of shape (n_classes,), optional
    **options
        Passed to the method: ``max_bytes`` for ``"exact"``; ``tolerance``, ``random_state`` and
        ``n_jobs`` for ``"path"``.

    Returns
    -------
    value : float, or ndarray of the shape of ``beta``
    error : float, or ndarray of the shape of ``beta``
        The Monte Carlo standard error; 0 for ``"exact"``.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import log_normalizer
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> value, error = log_normalizer(ring, beta=1.0, k=1, n_classes=2)
    >>> round(value, 6), error
    (6.587164, 0.0)
    """
    if method == "exact":
        value = log_normalizer_exact(
            graph, beta, k, n_classes, class_weight=class_weight, **options
        )
        return LogNormalizer(value, 0.0 if np.ndim(value) == 0 else np.zeros_like(value))
    if method == "path":
        found = log_normalizer_path(graph, beta, k, n_classes, class_weight, **options)
        return LogNormalizer(*found)
    raise ValueError(f"method must be 'exact' or 'path', got {method!r}")
