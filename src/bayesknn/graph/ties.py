"""Who comes first at equal distance: the row with the smaller key (SPEC, notation).

The key of a row is a fixed pseudo-random function of its index, splitmix64, so that the way a
file is sorted favours no class, the lists do not depend on the search structure, and rows that
are added at the end leave the order of the others as it was.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np


class TieOrder(NamedTuple):
    """The rows in the order of their keys.

    Attributes
    ----------
    rows : ndarray of shape (n,), dtype uint32
        The row that comes t-th.
    ranks : ndarray of shape (n,), dtype uint32
        The place of each row; among equal distances the smaller one wins.
    """

    rows: np.ndarray
    ranks: np.ndarray


@lru_cache(maxsize=4)
def order_ties(n: int, tie_order: int = 0, first: int = 0) -> TieOrder:
    """Sort the rows 0..n-1 by their keys.

    Parameters
    ----------
    n : int
        Below 2**32.
    tie_order : int
        In 0..2**32 - 1; each value is another order.
    first : int
        Number of the first row where these are a block of more: the order is that of the whole.

    Examples
    --------
    >>> from bayesknn.graph.ties import order_ties
    >>> order_ties(5).rows.tolist(), order_ties(4).rows.tolist()
    ([2, 4, 1, 0, 3], [2, 1, 0, 3])
    """
    keys = key_of_rows(np.arange(first, first + n, dtype=np.uint64), tie_order)
    rows = np.argsort(keys).astype(np.uint32)
    ranks = np.empty(n, np.uint32)
    ranks[rows] = np.arange(n, dtype=np.uint32)
    rows.flags.writeable = ranks.flags.writeable = False
    return TieOrder(rows, ranks)


def key_of_rows(rows: np.ndarray, tie_order: int = 0) -> np.ndarray:
    """Return the keys, uint64, of rows given by their numbers."""
    return _mix(rows.astype(np.uint64) + np.uint64(tie_order << 32))


def _mix(counters: np.ndarray) -> np.ndarray:
    """Entry of splitmix64's stream at each counter: a bijection, so that no two keys are equal."""
    bits = (counters + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
