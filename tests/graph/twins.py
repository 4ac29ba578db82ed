"""Neighbour lists and reverse neighbours of the reference, laid out as the graph has them."""

import numpy as np

from bayesknn import reference


def rank(distances, k, is_self=False):
    """Return the k nearest of every row and their distances, rank by rank."""
    lists = reference.neighbours(distances) if is_self else reference.rank(distances)
    return lists[:, :k].T, np.take_along_axis(distances, lists, axis=1)[:, :k].T


def reverse(training, rows, k_max):
    """For each new point the (rank, training point) pairs, by the condition for every k."""
    kth = rank(training, k_max, is_self=True)[1]
    joined = rows[:, None, :] < kth
    return [
        sorted((int(np.argmax(one[:, i])) + 1, int(i)) for i in np.flatnonzero(one.any(axis=0)))
        for one in joined
    ]


def query_counts(training, rows, labels, n_classes, k):
    """Forward and reverse class counts of new points at one k."""
    counts = [reference.count_new(training, row, labels, n_classes, k) for row in rows]
    return np.swapaxes(counts, 0, 1)
