"""Exact neighbours among points that lie in several blocks (Section 1.1, block by block).

The lists of a block's points start with those among themselves; then every other block is
searched for nearer ones, and the two lists are merged by (distance, key of the row in the whole
table), so that the result is that of one search over all points to the bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph.kdsearch import nearest_in_tree
from bayesknn.graph.kdtree import KDTree, build_tree
from bayesknn.graph.ties import key_of_rows, order_ties


class Block(NamedTuple):
    """Some of the training points, ready to be searched.

    Attributes
    ----------
    first : int
        Number of its first row in the whole table.
    tree : KDTree
        Holds the points; ties are settled as in the whole table.
    labels : ndarray of shape (n,), unsigned
        Class numbers.
    """

    first: int
    tree: KDTree
    labels: np.ndarray


class BlockLists(NamedTuple):
    """The nearest points of some rows, as far as blocks were searched.

    Attributes
    ----------
    neighbors : ndarray of shape (k, m), dtype uint32
        Rows of the whole table.
    distances : ndarray of shape (k, m)
        Infinite where fewer than k points were seen.
    labels : ndarray of shape (k, m), unsigned
        The neighbours' class numbers.
    """

    neighbors: np.ndarray
    distances: np.ndarray
    labels: np.ndarray


def make_block(points: np.ndarray, labels: np.ndarray, first: int) -> Block:
    """Build the tree of a block.

    Parameters
    ----------
    points : ndarray of shape (n, p), dtype float64
    labels : ndarray of shape (n,), unsigned
    first : int
    """
    return Block(first, build_tree(points, order_ties(len(points), 0, first)), labels)


def search_block(
    queries: KDTree | None, block: Block, k: int, lists: BlockLists | None = None
) -> BlockLists:
    """Add what a block holds to the lists of some points.

    Parameters
    ----------
    queries : KDTree or None
        Over the points whose neighbours are wanted; None for the block's own points, each without
        itself.
    block : Block
    k : int
    lists : BlockLists, optional
        What other blocks gave.

    Returns
    -------
    BlockLists

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.distributed.block_lists import make_block, search_block
    >>> labels = np.zeros(2, np.uint8)
    >>> left = make_block(np.array([[0.0], [1.0]]), labels, first=0)
    >>> right = make_block(np.array([[1.5], [9.0]]), labels, first=2)
    >>> lists = search_block(None, left, 1)
    >>> search_block(left.tree, right, 1, lists).neighbors.tolist()
    [[1, 2]]
    """
    m = len((block.tree if queries is None else queries).order)
    limits = np.full(m, np.inf) if lists is None else lists.distances[-1]
    limits = np.ascontiguousarray(limits)
    rows, distances = nearest_in_tree(block.tree, queries, k, limits=limits)
    found = BlockLists(rows + np.uint32(block.first), distances, block.labels[rows])
    return found if lists is None else merge_lists(lists, found)


def merge_lists(one: BlockLists, other: BlockLists) -> BlockLists:
    """Return the k nearest of both, by (distance, key of the row)."""
    keys = key_of_rows(one.neighbors), key_of_rows(other.neighbors)
    merged = BlockLists(*(np.empty_like(part) for part in one))
    _merge(*one, keys[0], *other, keys[1], *merged)
    return merged


@kernel
def _merge(
    rows_a, distances_a, labels_a, keys_a, rows_b, distances_b, labels_b, keys_b,
    rows, distances, labels,
):  # fmt: skip
    k, m = rows.shape
    for q in range(m):
        a = b = 0
        for r in range(k):
            near, other = distances_a[a, q], distances_b[b, q]
            if near < other or (near == other and keys_a[a, q] <= keys_b[b, q]):
                rows[r, q], distances[r, q] = rows_a[a, q], near
                labels[r, q] = labels_a[a, q]
                a += 1
            else:
                rows[r, q], distances[r, q] = rows_b[b, q], other
                labels[r, q] = labels_b[b, q]
                b += 1


def cast_labels(n_classes: int) -> Any:
    """Return the narrowest type that holds class numbers."""
    return np.uint8 if n_classes <= 2**8 else np.uint16 if n_classes <= 2**16 else np.uint32
