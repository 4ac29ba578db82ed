"""The forest of recent bonds against the plain search of the reference."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayesknn import reference
from bayesknn.labels.perfect import (
    are_connected,
    connect,
    find_root,
    new_forest,
)


@st.composite
def streams(draw):
    """Points, and bonds that arrive one per unit of time."""
    n = draw(st.integers(2, 12))
    point = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(point, point), min_size=1, max_size=60))


def priorities(n):
    return [int(h) for h in new_forest(n)[1::2] >> np.uint64(32)]


@given(stream=streams(), window=st.integers(1, 40))
def test_window_of_bonds(stream, window):
    n, bonds = stream
    forest, priority = new_forest(n), priorities(n)
    for t, (i, j) in enumerate(bonds):
        now, since = np.uint64(100 + t), np.uint64(100 + t - window + 1)
        connect(forest, np.uint64(i), np.uint64(j), now, since)
        recent = np.array(bonds[max(0, t - window + 1) : t + 1])
        lowest = reference.find_clusters(n, recent)
        for v in range(n):
            root = max(np.flatnonzero(lowest == lowest[v]), key=lambda w: priority[w])
            assert find_root(forest, np.uint64(v), since) == root
            expected = reference.is_connected(i, v, recent)
            assert are_connected(forest, np.uint64(i), np.uint64(v), since) == expected


def test_priorities_differ_and_paths_stay_short():
    n = 4096
    forest = new_forest(n)
    assert len(set(priorities(n))) == n
    # A path, bond by bond in order, is the worst stream for a forest without priorities.
    for t in range(n - 1):
        connect(forest, np.uint64(t), np.uint64(t + 1), np.uint64(10 + t), np.uint64(1))
    steps = []
    for i in range(n):
        v, count = i, 0
        while forest[2 * v] > 0:
            v, count = int(forest[2 * v + 1] & np.uint64(0xFFFFFFFF)), count + 1
        steps.append(count)
    assert np.mean(steps) < 4 * np.log(n)
