"""How far the lists of the training points reach, and which of them reach a new point.

A training point reaches a new point if that would be among its k nearest for the largest k asked
about; the new point then has a place in its list. A KD-tree whose boxes know how far their points
reach finds them, a block of 64 new points at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._jit import kernel
from bayesknn.graph.kdsearch import _SAME_ROOT
from bayesknn.graph.kdtree import _LEAF, KDTree, _box_bound, _point_bounds, _square_distances


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
    boxes : ndarray of shape (n_nodes,) or None
        The largest of ``squares`` under each node.
    """

    def __init__(self, distances: np.ndarray, tree: KDTree | None):
        order = slice(None) if tree is None else tree.order
        self.lists = np.ascontiguousarray(distances.T[order])
        self.squares = self.boxes = None
        if tree is not None:
            n_blocks = len(tree.blocks)
            radius = self.lists[:, -1]
            self.squares = np.full((n_blocks, _LEAF), -1.0)
            self.squares.ravel()[: len(radius)] = radius * radius * _SAME_ROOT
            self.boxes = _spread_up(tree.first_leaf, tree.n_leaves, self.squares)


class Hits(NamedTuple):
    """What a block of 64 queries holds while its reverse neighbours are searched for.

    Attributes
    ----------
    leaves : ndarray of shape (n_leaves,), dtype int64
        Those that some query may be reached from.
    bounds : ndarray of shape (64, n_leaves)
        Above 0 where a query is out of a leaf's reach.
    members : ndarray of shape (64 * n_leaves,), dtype uint64
        Points, by their place in the tree, that reach the query at hand.
    distances : ndarray of shape (64 * n_leaves,)
        Those from them to the query.
    places : ndarray of shape (64 * n_leaves,), dtype uint64
        How many of their lists come before the query.
    coordinates : ndarray of shape (1, p)
        The query.
    squares : ndarray of shape (64,)
    """

    leaves: np.ndarray
    bounds: np.ndarray
    members: np.ndarray
    distances: np.ndarray
    places: np.ndarray
    coordinates: np.ndarray
    squares: np.ndarray


@kernel
def _spread_up(first_leaf, n_leaves, squares):
    boxes = np.empty(first_leaf.shape[0])
    for node in range(first_leaf.shape[0]):
        first = first_leaf[node]
        boxes[node] = squares[first : first + n_leaves[node]].max()
    return boxes


@kernel
def _make_hits(n_blocks, p):
    return Hits(
        np.empty(n_blocks, np.int64),
        np.empty((_LEAF, n_blocks)),
        np.empty(n_blocks * _LEAF, np.uint64),
        np.empty(n_blocks * _LEAF),
        np.empty(n_blocks * _LEAF, np.uint64),
        np.empty((1, p)),
        np.empty(_LEAF),
    )


@kernel
def _find_leaves(
    first_leaf, n_leaves, low, high, box_reach, query_blocks, query_low, query_high, b, held
):
    """Fill in the leaves within whose reach the box of block b lies; return their number."""
    bounds, block_bounds = held.bounds, held.squares
    stack = np.empty(128, np.int64)
    n_near = 0
    stack[0] = 0
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        if _box_bound(low, high, node, query_low, query_high, b) > box_reach[node]:
            continue
        if n_leaves[node] > 1:
            stack[top] = node + 2 * ((n_leaves[node] + 1) // 2)
            stack[top + 1] = node + 1
            top += 2
            continue
        _point_bounds(query_blocks, b, low, high, node, block_bounds)
        for q in range(_LEAF):
            bounds[q, n_near] = block_bounds[q] - box_reach[node]
        held.leaves[n_near] = first_leaf[node]
        n_near += 1
    return n_near


@kernel
def _find_reached(blocks, reach, lists, query_blocks, b, q, n_near, order, held):
    """Fill in the points that reach query q of block b, and its places; return their number.

    A place at the end of the list is possible: the square let it pass and the distance did not.
    """
    leaves, bounds, members, distances, places, coordinates, squares = held
    n = order.shape[0]
    for f in range(blocks.shape[1]):
        coordinates[0, f] = query_blocks[b, f, q]
    size = np.uint64(0)
    for t in range(n_near):
        if bounds[q, t] > 0:
            continue
        leaf = leaves[t]
        _square_distances(blocks, leaf, coordinates, 0, squares)
        at = np.uint64(leaf)
        n_hits = np.uint64(0)
        for j in range(np.uint64(_LEAF)):
            n_hits += np.uint64(squares[j] <= reach[at, j])
        if n_hits == np.uint64(0):
            continue
        first = at * np.uint64(_LEAF)
        for j in range(np.uint64(min(_LEAF, n - leaf * _LEAF))):
            members[size] = first + j
            distances[size] = squares[j]
            size += np.uint64(squares[j] <= reach[at, j])
    for h in range(size):
        distances[h] = np.sqrt(distances[h])
    _enter(lists, members, distances, size, places)
    return np.int64(size)


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
