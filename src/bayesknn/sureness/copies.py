"""Training rows that have the very same values as a point: they say by themselves what P is there.

In a table of few distinct rows, of categories for instance, no smoothing is needed to know P in one
of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Copies(NamedTuple):
    """The distinct rows among the training rows.

    Attributes
    ----------
    values : ndarray of shape (n_distinct, p)
        In the order of their bytes, by which rows are looked up; 0 for -0.
    totals : ndarray of shape (n_distinct, n_classes)
        Weight of the training rows of each class.
    squares : ndarray of shape (n_distinct,)
        Of their weights, added up.
    place : ndarray of shape (n,)
        Which of the distinct rows each training row is.
    groups : ndarray of shape (n,) or None
        Groups of the training rows, see :meth:`among_groups`.
    within : float
        Correlation of the labels of one group, by which its copies count less than as many others:
        the products of their weights enter ``squares``, each times the correlation.
    rows : ndarray of shape (n,) or None
        Which training rows these are, rising, if they are a sample: the others have no copies.
    """

    values: np.ndarray
    totals: np.ndarray
    squares: np.ndarray
    place: np.ndarray
    groups: np.ndarray | None = None
    within: float = 0.0
    rows: np.ndarray | None = None

    @classmethod
    def from_rows(
        cls, values: np.ndarray, labels: np.ndarray, weight: np.ndarray, n_classes: int
    ) -> Copies | None:
        """Take training rows (n, p), their class numbers and weights; None if all are distinct."""
        keys = _as_keys(values + 0.0)
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        if len(first) == len(place):
            return None
        totals = np.zeros((len(first), n_classes))
        np.add.at(totals, (place, labels), weight)
        return cls(values[first] + 0.0, totals, np.bincount(place, weight**2), place)

    def count_new(self, values: np.ndarray) -> np.ndarray:
        """Count the copies of new rows by class, (m, n_classes), as rows of equal weight.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesknn.sureness.copies import Copies
        >>> rows, labels = np.array([[1.0], [1.0], [2.0]]), np.array([0, 1, 1])
        >>> copies = Copies.from_rows(rows, labels, np.array([3.0, 1.0, 1.0]), 2)
        >>> copies.count_new(np.array([[1.0], [2.0], [3.0]])).round(3).tolist()
        [[1.2, 0.4], [0.0, 1.0], [0.0, 0.0]]
        """
        known, wanted = _as_keys(self.values), _as_keys(values + 0.0)
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        is_known = known[at] == wanted
        return _make_even(self.totals[at] * is_known[:, None], self.squares[at])

    def among_groups(self, weight: np.ndarray, groups: np.ndarray | None, within: float) -> Copies:
        """Return the same where training rows belong to groups, whose labels are correlated."""
        if groups is None:
            return self
        cells, cell = np.unique(self.place * (groups.max() + 1.0) + groups, return_inverse=True)
        place_of_cell = np.zeros(len(cells), np.int64)
        place_of_cell[cell] = self.place
        squares = np.bincount(place_of_cell, _square_cells(cell, weight, within))
        return self._replace(squares=squares, groups=groups, within=within)

    def count_others(self, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Count the copies of each training row, (n, n_classes), without itself or its group."""
        n_classes = self.totals.shape[1]
        if self.rows is not None:
            counts = np.zeros((len(labels), n_classes))
            some = self._replace(rows=None)
            counts[self.rows] = some.count_others(labels[self.rows], weight[self.rows])
            return counts
        cell = np.arange(len(labels))
        if self.groups is not None:
            cell = np.unique(
                self.place * (self.groups.max() + 1.0) + self.groups, return_inverse=True
            )[1]
        own = np.zeros((cell.max() + 1, n_classes))
        np.add.at(own, (cell, labels), weight)
        squares = _square_cells(cell, weight, self.within)
        return _make_even(
            self.totals[self.place] - own[cell], self.squares[self.place] - squares[cell]
        )


def _as_keys(values: np.ndarray) -> np.ndarray:
    """Return the bytes of each row as one value that sorts."""
    rows = np.ascontiguousarray(values)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()


def _square_cells(cell: np.ndarray, weight: np.ndarray, within: float) -> np.ndarray:
    """Add up ``w_i w_l`` times the correlation of rows i and l, over the rows of each cell."""
    sums, squares = np.bincount(cell, weight), np.bincount(cell, weight**2)
    return (1.0 - within) * squares + within * sums**2


def _make_even(totals: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Bring weights of the classes to the effective number of rows, (sum w)^2 / sum w^2."""
    total = totals.sum(axis=1)
    per_weight = np.divide(total, squares, out=np.zeros_like(total), where=squares > 0)
    return np.maximum(totals, 0.0) * per_weight[:, None]
