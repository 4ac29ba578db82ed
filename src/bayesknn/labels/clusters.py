"""Connected components of the bonds: a forest in which every root is its cluster's lowest point.

``roots[i] <= i`` always holds, so one pass in index order flattens the whole forest. Bonds are
joined in rounds without unpredictable branches: every bond hooks the higher of two roots to the
lower, the forest is flattened, and the bonds that now lie inside a cluster are dropped. A bond
overwritten by another one of the same root is not lost, it is still there in the next round.
Few bonds are left after three or four rounds; those, and any for which rounds do not help, are
joined one by one.
"""

import numpy as np

from bayesknn._utils.jit import kernel

# Below so many bonds another round over all points costs more than joining them one by one.
_FEW = 16


@kernel
def _isolate(roots):
    """Make every point a cluster of its own."""
    for i in range(np.uint64(roots.size)):
        roots[i] = np.uint32(i)


@kernel
def _join(roots, sources, targets, n_bonds):
    """Join the ends of the bonds, which are roots themselves; both lists are overwritten."""
    while n_bonds > _FEW:
        for e in range(np.uint64(n_bonds)):
            i, j = sources[e], targets[e]
            low, high = (i, j) if i < j else (j, i)
            roots[high] = low
        _flatten(roots)
        n_left = _drop_joined(roots, sources, targets, n_bonds)
        slow = 2 * n_left > n_bonds
        n_bonds = n_left
        if slow:
            break
    for e in range(np.uint64(n_bonds)):
        _join_pair(roots, sources[e], targets[e])


@kernel
def _join_pair(roots, i, j):
    """Join two points, wherever they stand in the forest (Rem's algorithm, with splicing)."""
    above_i, above_j = roots[i], roots[j]
    while above_i != above_j:
        if above_i < above_j:
            i, j, above_i, above_j = j, i, above_j, above_i
        roots[i] = above_j
        if i == above_i:
            break
        i = above_i
        above_i = roots[i]


@kernel
def _flatten(roots):
    """Point every point at its root."""
    for i in range(np.uint64(roots.size)):
        roots[i] = roots[roots[i]]


@kernel
def _drop_joined(roots, sources, targets, n_bonds):
    """Replace the ends of the bonds by their roots, keep those that differ, return how many."""
    kept = np.uint64(0)
    for e in range(np.uint64(n_bonds)):
        i, j = roots[sources[e]], roots[targets[e]]
        sources[kept], targets[kept] = i, j
        kept += np.uint64(i != j)
    return np.int64(kept)
