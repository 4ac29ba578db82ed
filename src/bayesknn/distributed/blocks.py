"""Neighbours and class counts among points that lie in several blocks.

The lists of a block's points start with those among themselves; then every other block is
searched for nearer ones, and the two lists are merged by (distance, key of the row in the whole
table), so that the result is that of one search over all points to the bit (Section 1.1).

The edge from i to its neighbour j at rank r counts for i, whose block has the list, and for j: it
is sent to the block of j as (j, r, label of i). A block that has received its edges knows the
counts around its points for every k, in both directions (Section 2.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph.neighbor_graph import add_edges
from bayesknn.graph.search.kd_tree import (
    KDTree,
    Queries,
    arrange_queries,
    build_tree,
    measure_radii,
    nearest_in_tree,
    reverse_in_tree,
)
from bayesknn.graph.ties import key_of_rows, order_ties
from bayesknn.likelihood.deficits import Deficits, add_deficits, count_deficits


class Block(NamedTuple):
    """Some of the training points, ready to be searched.

    Attributes
    ----------
    first : int
        Number of its first row in the whole table.
    tree : KDTree
        Holds the points; ties are broken as in the whole table.
    labels : ndarray of shape (n,), unsigned
        Class numbers.
    radii : TreeRadii or None
        How far its points' lists reach, at the k that are wanted: for finding reverse neighbours.
    """

    first: int
    tree: KDTree
    labels: np.ndarray
    radii: Any = None


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
    return Block(first, build_tree(points, order_ties(len(points), first)), labels)


def search_block(
    queries: Queries | None, block: Block, k: int, lists: BlockLists | None = None
) -> BlockLists:
    """Add what a block holds to the lists of some points.

    Parameters
    ----------
    queries : Queries or None
        The points whose neighbours are wanted; None for the block's own points, each without
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
    >>> from bayesknn.distributed.blocks import make_block, search_block, search_other
    >>> labels = np.zeros(2, np.uint8)
    >>> left = make_block(np.array([[0.0], [1.0]]), labels, first=0)
    >>> right = make_block(np.array([[1.5], [9.0]]), labels, first=2)
    >>> lists = search_block(None, left, 1)
    >>> search_other(left, right, 1, lists).neighbors.tolist()
    [[1, 2]]
    """
    m = len((block.tree if queries is None else queries).order)
    limits = np.full(m, np.inf) if lists is None else lists.distances[-1]
    limits = np.ascontiguousarray(limits)
    rows, distances = nearest_in_tree(block.tree, queries, k, limits=limits)
    here = BlockLists(rows + np.uint32(block.first), distances, block.labels[rows])
    return here if lists is None else merge_lists(lists, here)


def search_other(own: Block, other: Block, k: int, lists: BlockLists) -> BlockLists:
    """Add what another block holds to the lists of a block's own points."""
    return search_block(Queries(own.tree.order, own.tree.blocks), other, k, lists)


def merge_lists(one: BlockLists, other: BlockLists) -> BlockLists:
    """Return the k nearest of both, by (distance, key of the row)."""
    merged = BlockLists(*(np.empty_like(part) for part in one))
    _merge(one, key_of_rows(one.neighbors), other, key_of_rows(other.neighbors), merged)
    return merged


class Edges(NamedTuple):
    """Edges that end in one block, sorted by rank.

    Attributes
    ----------
    starts : ndarray of shape (k + 1,), dtype int64
        Those of rank r + 1 are ``starts[r] : starts[r + 1]``.
    targets : ndarray, dtype uint32
        Rows of the block.
    labels : ndarray, unsigned
        Of the points that they come from.
    """

    starts: np.ndarray
    targets: np.ndarray
    labels: np.ndarray


def send_edges(block: Block, lists: BlockLists, firsts: np.ndarray) -> list[Edges]:
    """Sort a block's edges by the block that they end in.

    Parameters
    ----------
    block : Block
    lists : BlockLists
        Of the block's points.
    firsts : ndarray of shape (n_blocks,)
        First rows of all blocks.

    Returns
    -------
    list of Edges
        One for each block.
    """
    k, m = lists.neighbors.shape
    target = np.searchsorted(firsts, lists.neighbors, side="right") - 1
    ranks = np.broadcast_to(np.arange(k)[:, None], (k, m))
    sources = np.broadcast_to(block.labels, (k, m))
    sent = []
    for b, first in enumerate(firsts):
        here = target == b
        starts = np.searchsorted(ranks[here], np.arange(k + 1))
        rows = lists.neighbors[here] - np.uint32(first)
        sent.append(Edges(starts.astype(np.int64), rows, sources[here]))
    return sent


def walk_counts(
    lists: BlockLists, received: Sequence[Edges], n_classes: int, k_values: Sequence[int]
) -> Iterator[np.ndarray]:
    """Yield the class counts around a block's points for rising k.

    Parameters
    ----------
    lists : BlockLists
    received : sequence of Edges
        From every block; none where reverse neighbours do not count.
    n_classes : int
    k_values : sequence of int
        Rising.

    Yields
    ------
    ndarray of shape (m, n_classes), dtype int32
        One array, updated in place.
    """
    counts = np.zeros((lists.neighbors.shape[1], n_classes), np.int32)
    rows, reached = np.arange(len(counts), dtype=np.uint32), 0
    for k in k_values:
        for labels in lists.labels[reached:k]:
            add_edges(rows, labels, counts)
        for edges in received:
            new = slice(edges.starts[reached], edges.starts[k])
            add_edges(edges.targets[new], edges.labels[new], counts)
        reached = k
        yield counts


def tabulate_block(
    block: Block, lists: BlockLists, received: Sequence[Edges], n_classes: int
) -> list[Deficits]:
    """Return what a block adds to the likelihood of every k."""
    walk = walk_counts(lists, received, n_classes, range(1, len(lists.neighbors) + 1))
    return list(count_deficits(walk, block.labels, n_classes))


def add_tables(parts: Sequence[list[Deficits]]) -> list[Deficits]:
    """Add up what several blocks add to the likelihood of every k."""
    return [add_deficits(at_k) for at_k in zip(*parts, strict=True)]


class NewPointLists(NamedTuple):
    """Neighbours of new points in the blocks searched so far.

    Attributes
    ----------
    lists : BlockLists
    reverse : ndarray of shape (n_k, m, n_classes), dtype int32
        Counts of the training points that would have the new point among their k nearest.
    """

    lists: BlockLists
    reverse: np.ndarray


def add_radii(block: Block, lists: BlockLists, k_values: np.ndarray) -> Block:
    """Add to a block what finding reverse neighbours needs."""
    return block._replace(radii=measure_radii(block.tree, lists.distances[k_values - 1]))


def search_new_points(
    points: np.ndarray, block: Block, k_values: np.ndarray, n_classes: int, both: bool,
    before: NewPointLists | None,
) -> NewPointLists:  # fmt: skip
    """Search one more block for the neighbours of new points.

    Parameters
    ----------
    points : ndarray of shape (m, p), dtype float64
    block : Block
        With radii.
    k_values : ndarray of int
        Rising.
    n_classes : int
    both : bool
        Whether reverse neighbours count.
    before : NewPointLists or None
        From the blocks before.

    Returns
    -------
    NewPointLists
    """
    queries = arrange_queries(points)
    k = int(k_values[-1])
    lists = search_block(queries, block, k, None if before is None else before.lists)
    reverse = np.zeros((len(k_values), len(points), n_classes), np.int32)
    if both:
        starts, members, places = reverse_in_tree(block.tree, block.radii, queries)
        # At the first k that they belong to, and then at all after it.
        asked = np.repeat(np.arange(len(points)), np.diff(starts))
        np.add.at(reverse, (places - 1, asked, block.labels[members]), 1)
        np.cumsum(reverse, axis=0, out=reverse)
        if before is not None:
            reverse += before.reverse
    return NewPointLists(lists, reverse)


def count_around(near: NewPointLists, k_values: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the counts of both directions, of shape (n_k, m, n_classes)."""
    walk = walk_counts(near.lists, (), n_classes, k_values.tolist())
    return np.stack([forward + reverse for forward, reverse in zip(walk, near.reverse)])  # noqa: B905


@kernel
def _merge(one, one_keys, other, other_keys, merged):
    near_rows, near, near_labels = one
    far_rows, far, far_labels = other
    rows, distances, labels = merged
    k, m = rows.shape
    for q in range(m):
        a = b = 0
        for r in range(k):
            x, y = near[a, q], far[b, q]
            if x < y or (x == y and one_keys[a, q] <= other_keys[b, q]):
                rows[r, q], distances[r, q], labels[r, q] = near_rows[a, q], x, near_labels[a, q]
                a += 1
            else:
                rows[r, q], distances[r, q], labels[r, q] = far_rows[b, q], y, far_labels[b, q]
                b += 1
