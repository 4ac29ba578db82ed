"""The exact law of the labels by listing every one of them (Section 2.2, for tiny n).

The slow, obvious oracle: all ``n_classes ** n`` label vectors are written down and weighed.
Samplers are compared with its probabilities, variable elimination with its log Z.
"""

import numpy as np
from scipy.special import logsumexp

from bayesknn.model import agreement

MAX_STATES = 2**20


def exact_law(graph, beta, k, n_classes, class_weight=None, fixed=None):
    """List every label vector, the last point changing fastest, and its probability.

    With ``fixed`` (labels, -1 where a point is free) the law is the conditional one.
    """
    states = list_states(graph.n_points, n_classes)
    log_weights = beta / k * _totals(graph, states, k, class_weight)
    if fixed is not None:
        fixed = np.asarray(fixed)
        log_weights = np.where(((states == fixed) | (fixed < 0)).all(axis=1), log_weights, -np.inf)
    return states, np.exp(log_weights - logsumexp(log_weights))


def enumerate_log_normalizer(graph, beta, k, n_classes, class_weight=None):
    """Log Z(beta, k), a float or an array of the shape of beta."""
    totals = _totals(graph, list_states(graph.n_points, n_classes), k, class_weight)
    values = logsumexp(np.multiply.outer(np.asarray(beta) / k, totals), axis=-1)
    return float(values) if np.ndim(beta) == 0 else values


def enumerate_expected_agreement(graph, beta, k, n_classes, class_weight=None):
    """E[S_k] at (beta, k), a float or an array of the shape of beta."""
    totals = _totals(graph, list_states(graph.n_points, n_classes), k, class_weight)
    log_weights = np.multiply.outer(np.asarray(beta) / k, totals)
    law = np.exp(log_weights - logsumexp(log_weights, axis=-1, keepdims=True))
    return float(law @ totals) if np.ndim(beta) == 0 else law @ totals


def list_states(n_points, n_classes):
    """Every label vector in lexicographic order."""
    assert n_classes**n_points <= MAX_STATES
    codes = np.arange(n_classes**n_points)[:, None]
    return (codes // n_classes ** np.arange(n_points)[::-1] % n_classes).astype(np.uint8)


def state_index(labels, n_classes):
    """Return the row of :func:`list_states` at which labels stand."""
    labels = np.asarray(labels, dtype=np.int64)
    return labels @ n_classes ** np.arange(labels.shape[-1])[::-1]


def _totals(graph, states, k, class_weight):
    return np.asarray(agreement(graph, states, k, class_weight), dtype=np.float64)
