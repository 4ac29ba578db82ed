"""Class counts around points of several blocks, in both directions (Section 2.2, block by block).

The edge from i to its neighbour j at rank r counts for i, whose block has the list, and for j: it
is sent to the block of j as (j, r, label of i). A block that has received its edges knows the
counts around its points for every k.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.distributed.block_lists import Block, BlockLists, search_block
from bayesknn.graph.kdtree import build_tree
from bayesknn.graph.reach import Reach
from bayesknn.graph.reverse import reverse_in_tree
from bayesknn.likelihood.deficits import Deficits, add_deficits, count_deficits


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


def send_edges(lists: BlockLists, labels: np.ndarray, firsts: np.ndarray) -> list[Edges]:
    """Sort a block's edges by the block that they end in.

    Parameters
    ----------
    lists : BlockLists
        Of the block's points.
    labels : ndarray of shape (m,)
        Their labels.
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
    sources = np.broadcast_to(labels, (k, m))
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
    reached = 0
    for k in k_values:
        _add_forward(lists.labels, reached, k, counts)
        for edges in received:
            start, stop = edges.starts[reached], edges.starts[k]
            _add_reverse(edges.targets, edges.labels, start, stop, counts)
        reached = k
        yield counts


def tabulate_block(
    lists: BlockLists, labels: np.ndarray, received: Sequence[Edges], n_classes: int
) -> list[Deficits]:
    """Return what a block adds to the likelihood of every k."""
    walk = walk_counts(lists, received, n_classes, range(1, len(lists.neighbors) + 1))
    return list(count_deficits(walk, labels, n_classes))


def add_tables(parts: Sequence[list[Deficits]]) -> list[Deficits]:
    """Add up what several blocks add to the likelihood of every k."""
    return [add_deficits(at_k) for at_k in zip(*parts, strict=True)]


class Station(NamedTuple):
    """A block as new points see it.

    Attributes
    ----------
    block : Block
    reach : Reach
        How far its points' lists reach, at the k that are wanted.
    """

    block: Block
    reach: Reach


class Visit(NamedTuple):
    """What new points know of the blocks that they have been to.

    Attributes
    ----------
    lists : BlockLists
    reverse : ndarray of shape (n_k, m, n_classes), dtype int32
        Counts of the training points that would have the new point among their k nearest.
    """

    lists: BlockLists
    reverse: np.ndarray


def make_station(block: Block, lists: BlockLists, k_values: np.ndarray) -> Station:
    """Keep of a block what new points ask for."""
    return Station(block, Reach(lists.distances[k_values - 1], block.tree))


def visit_block(
    points: np.ndarray, station: Station, k_values: np.ndarray, n_classes: int, both: bool,
    before: Visit | None,
) -> Visit:  # fmt: skip
    """Take new points to one more block.

    Parameters
    ----------
    points : ndarray of shape (m, p), dtype float64
    station : Station
    k_values : ndarray of int
        Rising.
    n_classes : int
    both : bool
        Whether reverse neighbours count.
    before : Visit or None
        What they know already.

    Returns
    -------
    Visit
    """
    queries = build_tree(points)
    k = int(k_values[-1])
    lists = search_block(queries, station.block, k, None if before is None else before.lists)
    reverse = np.zeros((len(k_values), len(points), n_classes), np.int32)
    if both:
        starts, members, places = reverse_in_tree(station.block.tree, station.reach, queries)
        _add_members(starts, members, places, station.block.labels, reverse)
        np.cumsum(reverse, axis=0, out=reverse)
        if before is not None:
            reverse += before.reverse
    return Visit(lists, reverse)


def count_around(visit: Visit, k_values: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the counts of both directions, of shape (n_k, m, n_classes)."""
    walk = walk_counts(visit.lists, (), n_classes, k_values.tolist())
    return np.stack([forward + reverse for forward, reverse in zip(walk, visit.reverse)])  # noqa: B905


@kernel
def _add_forward(labels, start, stop, counts):
    for r in range(start, stop):
        for i in range(labels.shape[1]):
            counts[i, labels[r, i]] += np.int32(1)


@kernel
def _add_reverse(targets, labels, start, stop, counts):
    for e in range(start, stop):
        counts[targets[e], labels[e]] += np.int32(1)


@kernel
def _add_members(starts, members, places, labels, counts):
    """Count members at the first k that they belong to."""
    for q in range(starts.shape[0] - 1):
        for e in range(starts[q], starts[q + 1]):
            counts[np.int64(places[e]) - 1, q, labels[members[e]]] += np.int32(1)
