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
        places: dict[bytes, int] = {}
        place = np.array([places.setdefault(key, len(places)) for key in _as_keys(values)])
        if len(places) == len(place):
            return None
        totals = np.zeros((len(places), n_classes))
        np.add.at(totals, (place, labels), weight)
        first = np.unique(place, return_index=True)[1]
        return cls(values[first], totals, np.bincount(place, weight**2), place)

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
        places = {key: place for place, key in enumerate(_as_keys(self.values))}
        at = np.array([places.get(key, -1) for key in _as_keys(values)])
        return _make_even(self.totals[at] * (at >= 0)[:, None], self.squares[at])

    def count_others(self, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Count the copies of each training row, (n, n_classes), itself left out."""
        point = np.zeros((len(labels), self.totals.shape[1]))
        point[np.arange(len(labels)), labels] = weight
        return _make_even(self.totals[self.place] - point, self.squares[self.place] - weight**2)


def _as_keys(values: np.ndarray) -> list[bytes]:
    """Return rows as what dictionaries take; -0 is 0."""
    return [row.tobytes() for row in values + 0.0]


def _make_even(totals: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Bring weights of the classes to the effective number of rows, (sum w)^2 / sum w^2."""
    total = totals.sum(axis=1)
    per_weight = np.divide(total, squares, out=np.zeros_like(total), where=squares > 0)
    return np.maximum(totals, 0.0) * per_weight[:, None]
