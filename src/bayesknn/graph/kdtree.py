"""A KD-tree whose leaves are blocks of 64 points, laid out for whole-block arithmetic.

The tree is only a way to skip points: order and distances are those of SPEC's notation, to the
bit. A squared distance is the sum over features, in order, of squared differences. Rounding is
monotone, so the same sum over the gaps between a point and a box is never above the sum for any
point in the box, and a box may be skipped by comparing the two without any tolerance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph.ordering import _select
from bayesknn.graph.ties import TieOrder

_LEAF = 64


class KDTree(NamedTuple):
    """Nodes in preorder; a node with L leaves spans 2 L - 1 nodes.

    The left child of node v is v + 1, its right child ``v + 2 * ceil(L / 2)``. Every leaf but the
    last is full, so leaf b holds entries ``64 * b : 64 * (b + 1)`` of ``order``.

    Attributes
    ----------
    order : ndarray of shape (n,), dtype uint32
        Original index of each point in tree order.
    first_leaf, n_leaves : ndarray of shape (n_nodes,), dtype int64
        The leaves under each node.
    low, high : ndarray of shape (n_nodes, p)
        The box around each node's points.
    blocks : ndarray of shape (n_leaves, p, 64)
        Coordinates by leaf and feature; what is missing from the last leaf repeats its last point.
    ranks : ndarray of shape (n,), dtype uint32
        Place of each point in the order of ties, in tree order; rising within a leaf.
    """

    order: np.ndarray
    first_leaf: np.ndarray
    n_leaves: np.ndarray
    low: np.ndarray
    high: np.ndarray
    blocks: np.ndarray
    ranks: np.ndarray

    def in_order(self) -> np.ndarray:
        """Return the points in tree order, (n, p)."""
        n, p = len(self.order), self.blocks.shape[1]
        return self.blocks.transpose(0, 2, 1).reshape(-1, p)[:n]

    def points(self) -> np.ndarray:
        """Return the points the tree was built from, in their own order, (n, p)."""
        found = np.empty((len(self.order), self.blocks.shape[1]))
        found[self.order] = self.in_order()
        return found


def build_tree(points: np.ndarray, ties: TieOrder | None = None) -> KDTree:
    """Split at the median of the widest feature, down to leaves of 64 points.

    Parameters
    ----------
    points : ndarray of shape (n, p), dtype float64
    ties : TieOrder, optional
        Which of two points comes first at equal distance; by default the lower index, as is fine
        for points that are searched for and not searched.

    Returns
    -------
    KDTree

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.kdtree import build_tree
    >>> tree = build_tree(np.arange(100.0)[::-1, None])
    >>> tree.blocks.shape, int(tree.order[0]), int(tree.order[99])
    ((2, 1, 64), 36, 35)
    """
    ranks, first_leaf, n_leaves, low, high, blocks = _build(
        points if ties is None else points[ties.rows]
    )
    order = ranks if ties is None else ties.rows[ranks]
    return KDTree(order, first_leaf, n_leaves, low, high, blocks, ranks)


@kernel
def _build(points):
    """Build over points that come in the order of ties."""
    n, p = points.shape
    n_blocks = (n + _LEAF - 1) // _LEAF
    n_nodes = 2 * n_blocks - 1
    low = np.empty((n_nodes, p))
    high = np.empty((n_nodes, p))
    first_leaf = np.zeros(n_nodes, np.int64)
    n_leaves = np.full(n_nodes, n_blocks)
    order = np.arange(n).astype(np.uint32)
    keys = np.empty(n)
    for node in range(n_nodes):
        start = first_leaf[node] * _LEAF
        stop = min(n, (first_leaf[node] + n_leaves[node]) * _LEAF)
        below, above = low[node], high[node]
        below[:] = np.inf
        above[:] = -np.inf
        for t in range(start, stop):
            for f in range(p):
                value = points[order[t], f]
                if value < below[f]:
                    below[f] = value
                if value > above[f]:
                    above[f] = value
        if n_leaves[node] == 1:
            order[start:stop] = np.sort(order[start:stop])
            continue
        widest = 0
        for f in range(1, p):
            if above[f] - below[f] > above[widest] - below[widest]:
                widest = f
        for t in range(start, stop):
            keys[t] = points[order[t], widest]
        # Equal coordinates are split by the order of ties: with many duplicates the left child
        # then holds the earlier ones, which are those a search wants first.
        n_left = (n_leaves[node] + 1) // 2
        _select(keys, order, start, stop, start + n_left * _LEAF)
        left, right = node + 1, node + 2 * n_left
        first_leaf[left], n_leaves[left] = first_leaf[node], n_left
        first_leaf[right], n_leaves[right] = first_leaf[node] + n_left, n_leaves[node] - n_left
    blocks = np.empty((n_blocks, p, _LEAF))
    for b in range(n_blocks):
        for f in range(p):
            for j in range(_LEAF):
                blocks[b, f, j] = points[order[min(b * _LEAF + j, n - 1)], f]
    return order, first_leaf, n_leaves, low, high, blocks


# The kernels below take whole arrays and a position: a slice would count references, and threads
# that share an array would wait for each other's counting.


@kernel
def _square_distances(blocks, leaf, coordinates, q, squares):
    """Squared distances from point q of ``coordinates`` to the 64 points of a leaf.

    Four features a pass, added in their order, so that the sum is the one of a plain loop.
    """
    b, one, two, three = np.uint64(leaf), np.uint64(1), np.uint64(2), np.uint64(3)
    p = np.uint64(blocks.shape[1])
    f = p & three
    size = np.uint64(_LEAF)
    if f == np.uint64(0):
        for j in range(size):
            squares[j] = 0.0
    elif f == one:
        x0 = coordinates[q, 0]
        for j in range(size):
            d0 = x0 - blocks[b, 0, j]
            squares[j] = d0 * d0
    elif f == two:
        x0, x1 = coordinates[q, 0], coordinates[q, 1]
        for j in range(size):
            d0, d1 = x0 - blocks[b, 0, j], x1 - blocks[b, 1, j]
            squares[j] = d0 * d0 + d1 * d1
    else:
        x0, x1, x2 = coordinates[q, 0], coordinates[q, 1], coordinates[q, 2]
        for j in range(size):
            d0, d1, d2 = x0 - blocks[b, 0, j], x1 - blocks[b, 1, j], x2 - blocks[b, 2, j]
            squares[j] = d0 * d0 + d1 * d1 + d2 * d2
    while f < p:
        f1, f2, f3 = f + one, f + two, f + three
        x0, x1 = coordinates[q, f], coordinates[q, f1]
        x2, x3 = coordinates[q, f2], coordinates[q, f3]
        for j in range(size):
            d0, d1 = x0 - blocks[b, f, j], x1 - blocks[b, f1, j]
            d2, d3 = x2 - blocks[b, f2, j], x3 - blocks[b, f3, j]
            squares[j] = squares[j] + d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3
        f = f + np.uint64(4)


@kernel
def _box_bound(low, high, node, other_low, other_high, other):
    """Lower bound of the squared distance between a point in one box and a point in another."""
    bound = 0.0
    for f in range(low.shape[1]):
        gap = max(low[node, f] - other_high[other, f], other_low[other, f] - high[node, f])
        gap = max(gap, 0.0)
        bound += gap * gap
    return bound


@kernel
def _centre_gap(low, high, node, other_low, other_high, other):
    """How far apart two boxes lie; only decides which of two overlapping boxes goes first."""
    total = 0.0
    for f in range(low.shape[1]):
        gap = (low[node, f] + high[node, f]) - (other_low[other, f] + other_high[other, f])
        total += gap * gap
    return total


@kernel
def _is_left_nearer(low, high, left, right, to_left, to_right, other_low, other_high, other):
    """Whether to search the left box first, given the bounds to both."""
    if to_left != to_right:
        return to_left < to_right
    return _centre_gap(low, high, left, other_low, other_high, other) <= _centre_gap(
        low, high, right, other_low, other_high, other
    )
