"""E[S_k] from the clusters of a Swendsen-Wang sweep, for every k at once (SPEC, KERNELS).

Given the clusters, ends in one cluster agree with probability 1 and others with probability 1/G,
so ``sum over edges of (same cluster ? 1 : 1/G)`` has the expectation of S_k and less variance.
With class weights the colours of a cluster C have a law P_C: ends in one cluster count
``sum_g P_C(g) a_g`` and others ``sum_g P_C(g) P_D(g) a_g``. Edges are rank-major, so running
totals are S_1, S_2, and so on.
"""

import numpy as np

from bayesknn._utils.jit import kernel


@kernel
def estimate_agreement(
    neighbors, n_ranks, n_classes, class_weight, labels, scratch, agreement, cluster_agreement
):
    """Fill in S_k of the labels and its expectation given the clusters they were coloured from.

    Entry k - 1 of both outputs belongs to k; outputs of length 1 receive k = ``n_ranks`` alone.
    To be called right after a sweep, with its ``scratch``.
    """
    n, last = labels.size, agreement.size - 1
    total, cluster_total = 0.0, 0.0
    if class_weight is None:
        _mark(labels, scratch.roots, scratch.marks)
    for rank in range(n_ranks):
        if class_weight is None:
            agree, same = _count_rank(neighbors[rank], scratch.marks)
            total += agree
            cluster_total += same + (n - same) / n_classes
        else:
            sums = _sum_rank(neighbors[rank], n_classes, class_weight, labels, scratch)
            total += sums[0]
            cluster_total += sums[1]
        agreement[min(rank, last)] = total
        cluster_agreement[min(rank, last)] = cluster_total


@kernel
def _mark(labels, roots, marks):
    """Put root and label in one word, so that an edge reads one word and not two."""
    for i in range(np.uint64(labels.size)):
        marks[i] = np.uint64(roots[i]) << np.uint64(32) | np.uint64(labels[i])


@kernel
def _count_rank(row, marks):
    """Count the edges of one rank whose ends agree, and those inside a cluster."""
    agree, same = np.uint64(0), np.uint64(0)
    for i in range(np.uint64(row.size)):
        difference = marks[i] ^ marks[row[i]]
        agree += np.uint64(np.uint32(difference) == np.uint32(0))
        same += np.uint64(difference == np.uint64(0))
    return np.int64(agree), np.int64(same)


@kernel
def _sum_rank(row, n_classes, class_weight, labels, scratch):
    """Sum the weights of the agreeing edges of one rank, and their expectation."""
    roots, colour_law = scratch.roots, scratch.colour_law
    total, cluster_total = 0.0, 0.0
    for i in range(np.uint64(labels.size)):
        j = row[i]
        if labels[i] == labels[j]:
            total += class_weight[labels[i]]
        law, other = colour_law[roots[i]], colour_law[roots[j]]
        same = roots[i] == roots[j]
        for g in range(np.uint64(n_classes)):
            cluster_total += class_weight[g] * law[g] * (1.0 if same else other[g])
    return total, cluster_total
