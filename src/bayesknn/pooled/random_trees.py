"""Which columns matter, by extremely randomised trees (Geurts, Ernst and Wehenkel 2006).

In each node a few columns are drawn, each is cut at a uniform place between its ends there, and
the cut that lowers the Gini impurity most is kept. A column's importance in a tree is its share of
what all cuts lower the impurity by. Compiled here because on a small table scikit-learn's forest
spends a millisecond a tree before it looks at the data, and the pool grows 600.
"""

from __future__ import annotations

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import as_uniform, key_of_sweep, random_bits


def find_importances(
    points: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    n_classes: int,
    n_trees: int,
    seed: int,
) -> np.ndarray:
    """Return the mean importance of each column over trees that see all rows.

    Parameters
    ----------
    points : ndarray of shape (n, p)
    labels, weights : ndarray of shape (n,)
    n_classes, n_trees, seed : int

    Returns
    -------
    ndarray of shape (p,)
        With sum 1 at most: trees without a cut count as 0.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.pooled.random_trees import find_importances
    >>> points = np.random.default_rng(0).normal(size=(100, 2))
    >>> labels = (points[:, 1] > 0).astype(int)
    >>> bool(find_importances(points, labels, np.ones(100), 2, 50, seed=0)[1] > 0.6)
    True
    """
    columns = np.ascontiguousarray(points.T)
    importances = np.zeros((n_trees, len(columns)))
    for tree in range(n_trees):
        key = key_of_sweep(np.uint64(seed), np.uint64(tree))
        _grow(columns, labels, weights, n_classes, np.uint64(key), importances[tree])
    return importances.mean(axis=0)


@kernel
def _grow(columns, labels, weights, n_classes, key, importance):
    """Grow a tree, node by node, and add up what its cuts lower the impurity by."""
    p, n = columns.shape
    n_drawn = max(int(np.sqrt(p)), 1)
    rows = np.arange(n)
    features = np.arange(p)
    starts, stops = np.empty(n, np.int64), np.empty(n, np.int64)
    starts[0], stops[0] = 0, n
    waiting = 1
    n_random = np.uint64(0)
    counts, left = np.empty(n_classes), np.empty(n_classes)
    while waiting > 0:
        waiting -= 1
        node = rows[starts[waiting] : stops[waiting]]
        counts[:] = 0
        for i in node:
            counts[labels[i]] += weights[i]
        size = counts.sum()
        # Sums of squared counts over sizes: the larger, the purer.
        before = (counts**2).sum() / size
        if size < 6 or counts.max() == size:
            continue
        best, best_feature, best_cut = before, -1, 0.0
        n_varying = 0
        for t in range(p):
            if t >= n_drawn and n_varying > 0:
                break
            bits = random_bits(key, n_random)
            other = t + np.int64(bits % np.uint64(p - t))
            features[t], features[other] = features[other], features[t]
            u = as_uniform(random_bits(key, n_random + np.uint64(1)))
            n_random += np.uint64(2)
            column = columns[features[t]]
            varies, cut = _draw_cut(column, node, u)
            n_varying += varies
            after = _find_purity(column, node, cut, labels, weights, counts, left)
            if varies and after > best:
                best, best_feature, best_cut = after, features[t], cut
        if best_feature < 0:
            continue
        importance[best_feature] += best - before
        column = columns[best_feature]
        middle = 0
        for t in range(len(node)):
            if column[node[t]] <= best_cut:
                node[t], node[middle] = node[middle], node[t]
                middle += 1
        start = starts[waiting]
        starts[waiting + 1], stops[waiting + 1] = start + middle, start + len(node)
        stops[waiting] = start + middle
        waiting += 2
    total = importance.sum()
    if total > 0:
        importance /= total


@kernel
def _draw_cut(column, node, u):
    """Return whether a column varies in a node, and the place at u between its ends there."""
    low = high = column[node[0]]
    for i in node:
        low, high = min(low, column[i]), max(high, column[i])
    return low < high, low + u * (high - low)


@kernel
def _find_purity(column, node, cut, labels, weights, counts, left):
    """Return how pure a cut makes a node; 0 if it leaves less than three rows on one side."""
    left[:] = 0
    for i in node:
        if column[i] <= cut:
            left[labels[i]] += weights[i]
    size, n_left = counts.sum(), left.sum()
    if min(n_left, size - n_left) < 3:
        return 0.0
    return (left**2).sum() / n_left + ((counts - left) ** 2).sum() / (size - n_left)
