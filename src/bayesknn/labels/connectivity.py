"""Which points are connected by bonds that were refreshed within the last sweep.

Coupling from the past on bonds (see ``perfect.py``) refreshes every bond once a sweep, in
the same order, so the bonds that are open at any moment form a window of time: those opened since
the moment one sweep ago. Two points are connected in the window if and only if the spanning
forest that prefers recent bonds joins them by bonds that are all in the window. That forest is
kept here, and nothing is ever searched or deleted: a bond that leaves the window simply stops
counting.

Every point carries a link to another point and the time of that link. Links lead to points of
higher priority, and along a path of links times go down. At any threshold, following the links
that are as recent as the threshold ends at the point of highest priority in the cluster.
Priorities are a fixed scramble of the point's number, which keeps paths about log n long
whatever the data.

A forest is one array of uint64: entry ``2 i`` is the time of i's link (0: none), entry
``2 i + 1`` the priority of i in its high half and the point linked to in its low half.
"""

import numpy as np

from bayesknn._utils.jit import kernel

_LOW_HALF = np.uint64(0xFFFFFFFF)


@kernel
def new_forest(n_points):
    """Allocate the forest of ``n_points`` points, all apart."""
    forest = np.empty(2 * n_points, np.uint64)
    for i in range(np.uint64(n_points)):
        # A bijection of 32 bits (multiplications by odd numbers, shifts), so priorities differ.
        h = i ^ (i >> np.uint64(16))
        h = (h * np.uint64(0x7FEB352D)) & _LOW_HALF
        h ^= h >> np.uint64(15)
        h = (h * np.uint64(0x846CA68B)) & _LOW_HALF
        h ^= h >> np.uint64(16)
        forest[i + i] = np.uint64(0)
        forest[i + i + np.uint64(1)] = (h << np.uint64(32)) | i
    return forest


@kernel
def disconnect_all(forest):
    """Forget every bond."""
    for i in range(np.uint64(forest.size // 2)):
        forest[i + i] = np.uint64(0)


@kernel
def find_root(forest, i, since):
    """Point of highest priority among those connected to i by bonds not older than ``since``."""
    while forest[i + i] >= since:
        i = forest[i + i + np.uint64(1)] & _LOW_HALF
    return i


@kernel
def are_connected(forest, i, j, since):
    """Whether bonds not older than ``since`` connect i and j."""
    link_i, link_j = forest[i + i + np.uint64(1)], forest[j + j + np.uint64(1)]
    # The one of lower priority moves up, so that paths are followed only to where they meet.
    while i != j:
        if link_i < link_j:
            if forest[i + i] < since:
                return False
            i = link_i & _LOW_HALF
            link_i = forest[i + i + np.uint64(1)]
        else:
            if forest[j + j] < since:
                return False
            j = link_j & _LOW_HALF
            link_j = forest[j + j + np.uint64(1)]
    return True


@kernel
def connect(forest, i, j, now, since):
    """Add a bond at time ``now``, later than all others; those older than ``since`` may be lost."""
    time = now
    while True:
        # Connect what i and j belong to at this time.
        while forest[i + i] >= time:
            i = forest[i + i + np.uint64(1)] & _LOW_HALF
        while forest[j + j] >= time:
            j = forest[j + j + np.uint64(1)] & _LOW_HALF
        if i == j:
            return
        link_i, link_j = forest[i + i + np.uint64(1)], forest[j + j + np.uint64(1)]
        if link_i > link_j:
            i, j = j, i
            link_i = link_j
        older = forest[i + i]
        forest[i + i] = time
        forest[i + i + np.uint64(1)] = (link_i & ~_LOW_HALF) | j
        if older < since:
            return
        # The link that was replaced still connects, at its own time, what it led to.
        time = older
        i, j = j, link_i & _LOW_HALF
