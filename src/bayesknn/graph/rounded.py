"""A KD-tree's points in single precision, by which most of them are seen to be too far.

With u = 2^-24 and coordinates, less a centre, scaled to at most 1, a coordinate is rounded by at
most u, the difference of two by u more of itself, and a sum of p squares by (p + 1) u: where the
distance is at most D, the computed square is at most
``(D (1 + 2 u) + 2 u (|x| + sqrt p))^2 (1 + (p + 2) u)``, x the query. Whoever is above that is not
looked at again; all others are measured in double precision. Rounding is monotone, so the box
around rounded points is the rounded box, and the same holds for the gaps between a query and a box.

Queries come in groups of a few blocks of 64 that lie together: a leaf that is fetched from memory
serves them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.graph.kdtree import _LEAF, KDTree

# Blocks of queries in a group: more share what is fetched, and need room in the processor's cache.
_GROUP = 4
_UNIT = 2.0**-24
# Squares of what is much smaller or larger under- or overflow, in double precision, too.
_SMALLEST, _LARGEST = 1e-130, 1e150


class Rounded(NamedTuple):
    """The points of a tree in single precision.

    Attributes
    ----------
    blocks : ndarray of shape (n_leaves, p, 64), dtype float32
        As those of the tree, less the centre and scaled.
    low, high : ndarray of shape (p, n_leaves), dtype float32
        The boxes around them.
    centre : ndarray of shape (p,)
    scale : float
        A power of two; 0 where squares leave the range, so that all distances are to be measured.
    """

    blocks: np.ndarray
    low: np.ndarray
    high: np.ndarray
    centre: np.ndarray
    scale: float


class Group(NamedTuple):
    """Queries of up to ``_GROUP`` neighbouring blocks.

    Attributes
    ----------
    coordinates : ndarray of shape (n_queries, p)
    single : ndarray of shape (n_queries, p), dtype float32
        As the rounded points are.
    blocks : ndarray of shape (n_blocks, p, 64), dtype float32
        The same by block and feature.
    slack : ndarray of shape (n_queries,)
        What rounding may add to a scaled distance.
    bounds : ndarray of shape (n_blocks, n_leaves), dtype float32
        Lower bounds of the squares from a block's queries to the points of a leaf.
    """

    coordinates: np.ndarray
    single: np.ndarray
    blocks: np.ndarray
    slack: np.ndarray
    bounds: np.ndarray


def round_tree(tree: KDTree) -> Rounded:
    """Round a tree's points.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph.kdtree import build_tree
    >>> from bayesknn.graph.rounded import round_tree
    >>> rounded = round_tree(build_tree(np.array([[1.0], [2.0], [5.0]])))
    >>> rounded.blocks[0, 0, :3].tolist(), rounded.centre.tolist(), rounded.scale
    ([-0.5, -0.25, 0.5], [3.0], 0.25)
    """
    low, high = tree.low[0], tree.high[0]
    centre = low + (high - low) / 2
    largest = np.maximum(high - centre, centre - low).max()
    is_within = _SMALLEST < largest < _LARGEST
    scale = float(2.0 ** -np.frexp(largest)[1]) if is_within else 0.0
    blocks = np.zeros(tree.blocks.shape, np.float32)
    for start in range(0, len(blocks) if is_within else 0, 256):
        part = slice(start, start + 256)
        blocks[part] = (tree.blocks[part] - centre[:, None]) * scale
    least, most = (np.ascontiguousarray(end(axis=2).T) for end in (blocks.min, blocks.max))
    return Rounded(blocks, least, most, centre, scale)


@kernel
def _make_group(p, n_leaves):
    size = _GROUP * _LEAF
    return Group(
        np.empty((size, p)),
        np.empty((size, p), np.float32),
        np.empty((_GROUP, p, _LEAF), np.float32),
        np.empty(size),
        np.empty((_GROUP, n_leaves), np.float32),
    )


@kernel
def _load(query_blocks, first, size, rounded, group):
    """Fill in ``size`` queries, those of the blocks from ``first`` on, and the bounds."""
    coordinates, single, blocks, slack, bounds = group
    _, low, high, centre, scale = rounded
    p = coordinates.shape[1]
    n_blocks = (size + _LEAF - 1) // _LEAF
    for s in range(n_blocks):
        for f in range(p):
            for j in range(_LEAF):
                # What is missing from the last block repeats its last query.
                x = query_blocks[first + s, f, j]
                coordinates[s * _LEAF + j, f] = x
                blocks[s, f, j] = (x - centre[f]) * scale
                single[s * _LEAF + j, f] = blocks[s, f, j]
        _bound_leaves(low, high, blocks, s, bounds)
    for q in range(n_blocks * _LEAF):
        length = 0.0
        for f in range(p):
            scaled = (coordinates[q, f] - centre[f]) * scale
            length += scaled * scaled
        slack[q] = 2 * _UNIT * (np.sqrt(length) + np.sqrt(p))


@kernel
def _find_limit(square, p, scale, slack):
    """Return what the square in single precision does not exceed where the square is this."""
    if scale == 0.0:
        return np.float32(np.inf)
    longest = np.sqrt(square) * scale * (1 + 4 * _UNIT) + slack
    return np.float32(longest * longest * (1 + (p + 4) * _UNIT))


@kernel
def _bound_leaves(low, high, query_blocks, s, bounds):
    """Lower bounds of the squares from the box of block s to those of all leaves."""
    n_leaves, zero = np.uint64(low.shape[1]), np.float32(0.0)
    for leaf in range(n_leaves):
        bounds[s, leaf] = zero
    for f in range(low.shape[0]):
        below = above = query_blocks[s, f, 0]
        for j in range(1, _LEAF):
            x = query_blocks[s, f, j]
            below, above = min(below, x), max(above, x)
        for leaf in range(n_leaves):
            gap = max(max(low[f, leaf] - above, below - high[f, leaf]), zero)
            bounds[s, leaf] += gap * gap


@kernel
def _bound_points(query_blocks, s, low, high, leaf, bounds):
    """Lower bounds of the squares from the 64 queries of block s to the box of a leaf."""
    size, zero = np.uint64(_LEAF), np.float32(0.0)
    for j in range(size):
        bounds[j] = zero
    for f in range(np.uint64(low.shape[0])):
        below, above = low[f, leaf], high[f, leaf]
        for j in range(size):
            gap = max(max(below - query_blocks[s, f, j], query_blocks[s, f, j] - above), zero)
            bounds[j] += gap * gap


# Products may be added without rounding first: the bound holds all the more.
@kernel(fastmath={"contract"})  # type: ignore[call-arg]
def _square_singles(blocks, leaf, single, q, squares):  # type: ignore[no-untyped-def]
    """Squares from query q to the 64 points of a leaf, two features a pass."""
    b, one, size = np.uint64(leaf), np.uint64(1), np.uint64(_LEAF)
    p = np.uint64(blocks.shape[1])
    f = p & one
    if f == one:
        x0 = single[q, 0]
        for j in range(size):
            d0 = x0 - blocks[b, 0, j]
            squares[j] = d0 * d0
    else:
        for j in range(size):
            squares[j] = np.float32(0.0)
    while f < p:
        g = f + one
        x0, x1 = single[q, f], single[q, g]
        for j in range(size):
            d0, d1 = x0 - blocks[b, f, j], x1 - blocks[b, g, j]
            squares[j] = squares[j] + d0 * d0 + d1 * d1
        f = g + one


@kernel
def _square_distance(blocks, leaf, j, coordinates, q):
    """Squared distance to one point of a leaf: the sum of ``_square_distances``."""
    b = np.uint64(leaf)
    total = 0.0
    for f in range(np.uint64(blocks.shape[1])):
        gap = coordinates[q, f] - blocks[b, f, j]
        total += gap * gap
    return total
