"""How far the lists of the training points reach, and which of them reach a new point.

A training point reaches a new point if that would be among its k nearest for the largest k asked
about; the new point then has a place in its list. Leaves that know how far their points reach find
them, for a group of new points that lie together at a time; those out of reach are left out by
single precision (:mod:`bayesknn.graph.rounded`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph.kdsearch import _SAME_ROOT
from bayesknn.graph.kdtree import _LEAF, KDTree
from bayesknn.graph.rounded import (
    _GROUP,
    _UNIT,
    Rounded,
    _bound_points,
    _square_distance,
    _square_singles,
)


class Reach:
    """How far each training point's list reaches, arranged for finding reverse neighbours.

    Parameters
    ----------
    distances : ndarray of shape (k_max, n)
        Of a graph.
    tree : KDTree or None
        Over the same points, where there is one.

    Attributes
    ----------
    lists : ndarray of shape (n, k_max)
        Each point's sorted distances, in tree order.
    squares : ndarray of shape (n_leaves, 64) or None
        Squares beyond which a point cannot be reached, by leaf; -1 for what pads the last.
    """

    def __init__(self, distances: np.ndarray, tree: KDTree | None):
        order = slice(None) if tree is None else tree.order
        self.lists = np.ascontiguousarray(distances.T[order])
        self.squares = None
        self._radii: np.ndarray | None = None
        if tree is not None:
            n_blocks = len(tree.blocks)
            radius = self.lists[:, -1]
            self.squares = np.full((n_blocks, _LEAF), -1.0)
            self.squares.ravel()[: len(radius)] = radius * radius * _SAME_ROOT

    def radii(self, rounded: Rounded) -> np.ndarray:
        """Return how far each point reaches, scaled and rounded up, (n_leaves, 64), float32."""
        assert self.squares is not None
        if self._radii is None:
            self._radii = np.full(self.squares.shape, np.inf, np.float32)
            if rounded.scale > 0.0:
                longest = np.sqrt(np.maximum(self.squares, 0.0)) * rounded.scale
                self._radii[:] = longest * (1 + 8 * _UNIT)
        return self._radii


# Pairs of a new point and one that reaches it that are dealt with at a time; a leaf may add this
# many at most.
_FULL = _GROUP * _LEAF * _LEAF


class Hits(NamedTuple):
    """Pairs of a query of a group and a training point that reaches it.

    Attributes
    ----------
    queries : ndarray of shape (2 * _FULL,), dtype int64
    members : ndarray of shape (2 * _FULL,), dtype uint64
        Training points by their place in the tree.
    distances : ndarray of shape (2 * _FULL,)
        Those between them.
    places : ndarray of shape (2 * _FULL,), dtype uint64
        How many of the members' lists come before the query.
    """

    queries: np.ndarray
    members: np.ndarray
    distances: np.ndarray
    places: np.ndarray


@kernel
def _make_hits():
    size = 2 * _FULL
    return Hits(
        np.empty(size, np.int64),
        np.empty(size, np.uint64),
        np.empty(size),
        np.empty(size, np.uint64),
    )


@kernel
def _find_reached(blocks, rounded, lists, reach, radii, group, size, leaf, held):
    """Fill in who reaches the first ``size`` queries of a group, from a leaf on, and their places.

    Returns how many they are and the leaf to go on from. A place at the end of the list is
    possible: the square let it pass and the distance did not.
    """
    queries, members, distances, places = held
    coordinates, single, query_blocks, slack, bounds = group
    rounded_blocks, low, high = rounded[:3]
    n, n_leaves, p = lists.shape[0], blocks.shape[0], blocks.shape[1]
    slacks = np.empty(_GROUP, np.float32)
    slacks[:] = 0.0
    for q in range(size):
        slacks[q // _LEAF] = max(slacks[q // _LEAF], np.float32(slack[q] * (1 + 8 * _UNIT)))
    stretch = np.float32(1 + (p + 16) * _UNIT)
    limits, singles = np.empty(_LEAF, np.float32), np.empty(_LEAF, np.float32)
    point_bounds = np.empty(_LEAF, np.float32)
    near = np.empty(_LEAF + 1, np.uint64)
    found = np.uint64(0)
    while leaf < n_leaves and found <= np.uint64(_FULL):
        at = np.uint64(leaf)
        width = np.uint64(min(_LEAF, n - leaf * _LEAF))
        furthest = np.float32(0.0)
        for j in range(width):
            furthest = max(furthest, radii[at, j])
        for s in range((size + _LEAF - 1) // _LEAF):
            widest = (furthest + slacks[s]) * (furthest + slacks[s]) * stretch
            if bounds[s, at] > widest:
                continue
            _bound_points(query_blocks, s, low, high, leaf, point_bounds)
            n_near = np.uint64(0)
            for j in range(np.uint64(min(_LEAF, size - s * _LEAF))):
                near[n_near] = j
                n_near += np.uint64(point_bounds[j] <= widest)
            for j in range(np.uint64(_LEAF)):
                longest = radii[at, j] + slacks[s]
                limits[j] = longest * longest * stretch
            for e in range(n_near):
                q = np.uint64(s * _LEAF) + near[e]
                _square_singles(rounded_blocks, leaf, single, q, singles)
                n_hits = np.uint32(0)
                for j in range(np.uint64(_LEAF)):
                    n_hits += np.uint32(singles[j] <= limits[j])
                if n_hits == np.uint32(0):
                    continue
                for j in range(width):
                    if singles[j] <= limits[j]:
                        square = _square_distance(blocks, leaf, j, coordinates, q)
                        queries[found] = q
                        members[found] = at * np.uint64(_LEAF) + j
                        distances[found] = np.sqrt(square)
                        found += np.uint64(square <= reach[at, j])
        leaf += 1
    _enter(lists, members, distances, found, places)
    return np.int64(found), leaf


@kernel
def _enter(lists, members, distances, size, places):
    """Fill in how many of each member's sorted list come before a new point at its distance.

    Members take each step of the search together, so that none waits for another's list to come
    from memory; and there is no branch to guess wrong: the part that may hold the place is halved.
    """
    one = np.uint64(1)
    n_hits = np.uint64(size)
    for h in range(n_hits):
        places[h] = 0
    rest = np.uint64(lists.shape[1])
    while rest > one:
        half = rest >> one
        for h in range(n_hits):
            further = places[h] + half
            is_before = lists[members[h], further - one] <= distances[h]
            places[h] = further if is_before else places[h]
        rest -= half
    for h in range(n_hits):
        places[h] += np.uint64(lists[members[h], places[h]] <= distances[h])
