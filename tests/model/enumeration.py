"""The reference's exact sums over every label vector, for a graph and class weights or None."""

import numpy as np

from bayesknn import reference


def as_reference(graph, n_classes, class_weight=None):
    """Return ``near`` and ``a`` of :mod:`bayesknn.reference`."""
    a = np.ones(n_classes) if class_weight is None else np.asarray(class_weight, dtype=float)
    return graph.neighbors.T.astype(int), a


def exact_law(graph, beta, k, n_classes, class_weight=None):
    """List every label vector, the last point changing fastest, and its probability."""
    return reference.distribution(*as_reference(graph, n_classes, class_weight), beta, k)


def enumerate_log_normalizer(graph, beta, k, n_classes, class_weight=None):
    """Log Z(beta, k), a float or an array of the shape of beta."""
    return _at_each(reference.log_normalizer, graph, beta, k, n_classes, class_weight)


def enumerate_expected_agreement(graph, beta, k, n_classes, class_weight=None):
    """E[S_k] at (beta, k), a float or an array of the shape of beta."""
    return _at_each(reference.mean_agreement, graph, beta, k, n_classes, class_weight)


def _at_each(function, graph, beta, k, n_classes, class_weight):
    near, a = as_reference(graph, n_classes, class_weight)
    return np.vectorize(lambda one: function(near, a, one, k))(beta)[()]


def state_index(labels, n_classes):
    """Return the row of :func:`exact_law` at which labels stand."""
    labels = np.asarray(labels, dtype=np.int64)
    return labels @ n_classes ** np.arange(labels.shape[-1])[::-1]
