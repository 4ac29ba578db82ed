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
    """

    values: np.ndarray
    totals: np.ndarray
    squares: np.ndarray
    place: np.ndarray

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

    def count_others(self, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Count the copies of each training row, (n, n_classes), itself left out."""
        point = np.zeros((len(labels), self.totals.shape[1]))
        point[np.arange(len(labels)), labels] = weight
        return _make_even(self.totals[self.place] - point, self.squares[self.place] - weight**2)


def _as_keys(values: np.ndarray) -> np.ndarray:
    """Return the bytes of each row as one value that sorts."""
    rows = np.ascontiguousarray(values)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()


def _make_even(totals: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Bring weights of the classes to the effective number of rows, (sum w)^2 / sum w^2."""
    total = totals.sum(axis=1)
    per_weight = np.divide(total, squares, out=np.zeros_like(total), where=squares > 0)
    return np.maximum(totals, 0.0) * per_weight[:, None]
