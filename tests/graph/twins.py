"""Slow, obvious twins of the graph's kernels."""

import numpy as np


def euclidean(rows, points):
    """Sum in the order of the features."""
    rows, points = np.asarray(rows, float), np.asarray(points, float)
    squares = np.zeros((len(rows), len(points)))
    for f in range(points.shape[1]):
        squares += (rows[:, None, f] - points[None, :, f]) ** 2
    return np.sqrt(squares)


def key(row):
    """Key of a row, splitmix64, by which equal distances are settled; in plain integers."""
    bits = (row + 1) * 0x9E3779B97F4A7C15 % 2**64
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % 2**64
    return bits ^ (bits >> 31)


def rank(distances, k, is_self=False):
    """Find the k nearest of every row: sort the whole row by (distance, key)."""
    distances = np.array(distances, dtype=float)
    n = distances.shape[1]
    by_key = np.array(sorted(range(n), key=key))
    lists = []
    for q, row in enumerate(distances):
        order = by_key[np.argsort(row[by_key], kind="stable")]
        lists.append(order[order != q][:k] if is_self else order[:k])
    neighbors = np.array(lists, dtype=np.int64).reshape(len(distances), min(k, n)).T
    return neighbors, np.take_along_axis(distances, neighbors.T, axis=1).T


def reverse(training, rows, k_max):
    """For each new point the (rank, training point) pairs, by the condition for every k."""
    near = rank(training, k_max, is_self=True)[1]
    found = []
    for row in rows:
        pairs = []
        for i, distance in enumerate(row):
            joined = [k for k in range(1, k_max + 1) if distance < near[k - 1, i]]
            if joined:
                pairs.append((min(joined), i))
        found.append(sorted(pairs))
    return found


def query_counts(training, rows, labels, n_classes, k, k_max):
    """Forward and reverse class counts of new points at one k."""
    labels = np.asarray(labels)
    forward = np.zeros((len(rows), n_classes), int)
    backward = np.zeros((len(rows), n_classes), int)
    near = rank(training, k_max, is_self=True)[1]
    nearest = rank(rows, k_max)[0]
    for q, row in enumerate(rows):
        for r in range(k):
            forward[q, labels[nearest[r, q]]] += 1
        for i, distance in enumerate(row):
            if distance < near[k - 1, i]:
                backward[q, labels[i]] += 1
    return forward, backward


def training_counts(neighbors, labels, n_classes, k):
    """Forward and reverse class counts of the training points at one k."""
    n = neighbors.shape[1]
    forward = np.zeros((n, n_classes), int)
    backward = np.zeros((n, n_classes), int)
    for i in range(n):
        for r in range(k):
            j = neighbors[r, i]
            forward[i, labels[j]] += 1
            backward[j, labels[i]] += 1
    return forward, backward


def gower(rows, points, is_category, weights=None):
    """Gower's distance between lists of values, column by column."""
    p = len(is_category)
    weights = [1.0] * p if weights is None else weights
    found = np.zeros((len(rows), len(points)))
    for q, row in enumerate(rows):
        for i, point in enumerate(points):
            total = 0.0
            for f in range(p):
                if is_category[f]:
                    total += weights[f] * (row[f] != point[f])
                    continue
                column = [other[f] for other in points]
                spread = max(column) - min(column)
                if spread > 0:
                    total += weights[f] * (abs(row[f] - point[f]) / spread)
            found[q, i] = total / sum(weights)
    return found


def squares_only(points, k):
    """Order by the squares, a named mutant: two squares may share one distance."""
    squares = np.zeros((len(points), len(points)))
    for f in range(points.shape[1]):
        squares += (points[:, None, f] - points[None, :, f]) ** 2
    return rank(squares, k, is_self=True)[0]
