"""The class counts around every point, for every k, in the form that likelihoods are summed from.

The conditional of y_i, in the coherent model (eq. knn-cond) as in that of Holmes and Adams
(eq. knn-intuit), is a softmax of ``b * field[i, g]`` with ``b = beta / k`` and ``field`` the class
counts among i's neighbours, times the class weight if there is one. Write the deficit of a class
at i as the largest field there less its own. Then::

    sum_i log P(y_i | rest) = -b * shortfall - sum_i log(sum_g exp(-b * deficit[i, g]))

where the shortfall is the sum of the deficits of the points' own labels. Nothing here can
overflow, and the second sum does not ask which class is which, so that points with the same
sorted deficits are added up once, with their number. With two classes and no weights each k is
left with a histogram of abs(count_0 - count_1): about k rows, whatever n.

The counts of k + 1 are those of k and one rank more, so one walk over the graph serves every k.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.model import BoltzmannModel


class Deficits(NamedTuple):
    """What the conditionals of all points at one k depend on.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_classes - 1)
        The distinct vectors of deficits, in ascending order, without the 0 of the largest field;
        uint16 or uint32, with class weights float64.
    multiplicity : ndarray of shape (n_rows,), dtype uint32
        How many points have each.
    shortfall : float
        Sum over the points of the deficit of their own label; 0 when nobody is outvoted.
    largest : int or None
        The largest deficit; ``None`` with class weights, where deficits are no integers.
    """

    rows: np.ndarray
    multiplicity: np.ndarray
    shortfall: float
    largest: int | None


def tabulate_deficits(model: BoltzmannModel, labels: np.ndarray, direction: str) -> list[Deficits]:
    """Return the deficits of every k; entry k - 1 belongs to k.

    Parameters
    ----------
    model : BoltzmannModel
    labels : ndarray of shape (n,), unsigned
        As ``model.check_labels`` returns them.
    direction : {"both", "forward"}
        Whether the points that have i among their k nearest count, as in
        :meth:`bayesknn.graph.NeighborGraph.counts`.

    Returns
    -------
    list of Deficits
    """
    weights = None if model.class_weight is None else model.weights
    summarise = partial(_tabulate_part, model.n_classes, weights)
    parts = model.graph.map_counts(summarise, labels, model.n_classes, direction=direction)
    tables = [table for _, table in parts]
    return tables[0] if len(tables) == 1 else [add_deficits(at_k) for at_k in zip(*tables)]  # noqa: B905


def _tabulate_part(
    n_classes: int, weights: np.ndarray | None, walk: Any, labels: np.ndarray, *_: Any
) -> list[Deficits]:
    return list(count_deficits(walk, labels, n_classes, weights))


def count_deficits(
    walk: Iterable[np.ndarray],
    labels: np.ndarray,
    n_classes: int,
    weights: np.ndarray | None = None,
) -> Iterator[Deficits]:
    """Yield the deficits for one array of class counts after another.

    Parameters
    ----------
    walk : iterable of ndarray of shape (n, n_classes), dtype int32
        The counts around the points, for one k after another.
    labels : ndarray of shape (n,), unsigned
        Of the points themselves.
    n_classes : int
    weights : ndarray of shape (n_classes,), optional
        The class weights.

    Yields
    ------
    Deficits
    """
    n, weighted = len(labels), weights is not None
    factors = np.ones(n_classes, np.uint32) if weights is None else weights
    row = np.empty(n_classes - 1, np.float64 if weighted else np.uint32)
    bits = row.view(np.uint64) if weighted else row
    rows = np.empty((n, n_classes - 1), row.dtype)
    multiplicity = np.empty(n, np.uint32)
    # One type for every number of classes spares a compilation.
    labels = labels.astype(np.uint32)
    n_bits = (2 * n - 1).bit_length()
    slots = np.empty(1 << n_bits, np.uint32)
    for counts in walk:
        n_rows, shortfall, largest = _merge_points(
            counts.view(np.uint32), labels, factors, row, bits, slots, n_bits, rows, multiplicity
        )
        kept = rows[:n_rows], multiplicity[:n_rows].copy()
        yield _lay_out(*kept, float(shortfall), largest, weighted)


def add_deficits(parts: Sequence[Deficits]) -> Deficits:
    """Put the deficits of disjoint sets of points at one k together.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.likelihood.deficits import Deficits, add_deficits
    >>> one = Deficits(np.array([[1], [3]], np.uint16), np.array([5, 2], np.uint32), 4.0, 3)
    >>> both = add_deficits([one, one])
    >>> both.rows.ravel().tolist(), both.multiplicity.tolist(), both.shortfall
    ([1, 3], [10, 4], 8.0)
    """
    weighted = parts[0].largest is None
    kind = np.float64 if weighted else np.uint32
    rows, at = np.unique(
        np.concatenate([part.rows.astype(kind) for part in parts]), axis=0, return_inverse=True
    )
    multiplicity = np.zeros(len(rows), np.uint32)
    np.add.at(multiplicity, at.ravel(), np.concatenate([part.multiplicity for part in parts]))
    shortfall = sum(part.shortfall for part in parts)
    return _lay_out(rows, multiplicity, shortfall, rows.max(), weighted)


def _lay_out(rows: Any, multiplicity: Any, shortfall: float, largest: Any, weighted: bool) -> Any:
    # Hubs aside, a deficit fits two bytes.
    narrow = not weighted and largest < 2**16
    return Deficits(
        rows.astype(np.uint16 if narrow else rows.dtype),
        multiplicity,
        shortfall,
        None if weighted else int(largest),
    )


@kernel
def _merge_points(counts, labels, weights, row, bits, slots, n_bits, rows, multiplicity):
    """Fill ``rows`` and ``multiplicity``; ``bits`` is the memory of ``row`` as integers."""
    n_classes = np.uint64(counts.shape[1])
    mask = np.uint64(slots.size - 1)
    shift = np.uint64(64 - n_bits)
    one = np.uint64(1)
    # A slot of the hash table holds the number of a row plus one, or zero.
    slots[:] = 0
    n_rows = np.uint64(0)
    # Integers without class weights, floats with them.
    shortfall = weights[0] * counts[0, 0] * 0
    largest = row[0] * 0
    for i in range(np.uint64(counts.shape[0])):
        leader = np.uint64(0)
        best = weights[0] * counts[i, 0]
        for g in range(one, n_classes):
            field = weights[g] * counts[i, g]
            if field > best:
                best = field
                leader = np.uint64(g)
        shortfall += best - weights[labels[i]] * counts[i, labels[i]]
        # Sorted by insertion: most classes are absent around a point, so little moves.
        size = np.uint64(0)
        for g in range(n_classes):
            if g != leader:
                deficit = best - weights[g] * counts[i, g]
                at = size
                while at > 0 and row[at - one] > deficit:
                    row[at] = row[at - one]
                    at -= one
                row[at] = deficit
                size += one
        largest = max(largest, row[size - one])
        slot = _hash(bits) >> shift
        while True:
            number = np.uint64(slots[slot])
            if number == 0:
                for g in range(size):
                    rows[n_rows, g] = row[g]
                multiplicity[n_rows] = 1
                n_rows += one
                slots[slot] = n_rows
                break
            if _equal(rows[number - one], row):
                multiplicity[number - one] += np.uint32(1)
                break
            slot = (slot + one) & mask
    return n_rows, shortfall, largest


@kernel
def _hash(bits):
    # Multiplication carries upwards only, so the high bits are the ones to use.
    value = np.uint64(0)
    for g in range(np.uint64(bits.size)):
        value = (value ^ np.uint64(bits[g])) * np.uint64(0x9E3779B97F4A7C15)
        value ^= value >> np.uint64(32)
    return value * np.uint64(0x9E3779B97F4A7C15)


@kernel
def _equal(first, second):
    for g in range(np.uint64(first.size)):
        if first[g] != second[g]:
            return False
    return True
