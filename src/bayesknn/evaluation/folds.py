"""Rows drawn by class, and folds of rows, of whole groups, or by time."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

# Rows that a rare class keeps when rows are drawn. Fewer make its part of a score a matter of
# chance; more take the place of rows of the other classes.
_FEWEST_DRAWN = 50


def draw_rows(labels: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the positions of about ``n_rows`` rows, drawn by class; all of them if they are fewer.

    A class has its proportion of the rows, and at least ``_FEWEST_DRAWN`` of its own where the
    classes are few.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.evaluation.folds import draw_rows
    >>> labels = np.repeat([0, 1], [29_955, 45])
    >>> np.bincount(labels[draw_rows(labels, 1000)])
    array([998,  45])
    """
    if len(labels) <= n_rows:
        return np.arange(len(labels))
    sizes = np.bincount(labels)
    least = max(min(_FEWEST_DRAWN, n_rows // (2 * int(np.count_nonzero(sizes)))), 3)
    wanted = np.minimum(sizes, np.maximum(np.rint(sizes * (n_rows / len(labels))), least))
    order = np.random.default_rng(0).permutation(len(labels))
    parts = [order[labels[order] == g][: int(n)] for g, n in enumerate(wanted)]
    return np.sort(np.concatenate(parts))


class FoldsError(ValueError):
    """The error of rows that cannot be divided into rows to fit and rows to predict."""


class Folds(NamedTuple):
    """Which rows are judged together, if any are.

    Attributes
    ----------
    groups : array-like of shape (n,) or None
        Which rows belong together: folds are of whole groups.
    order : array-like of shape (n,) or None
        Dates or numbers: the last fifth of the rows is predicted from those before, and not from
        rows of its groups.
    by : str
        The column of the order, as in ``" by day"``.
    """

    groups: Any = None
    order: Any = None
    by: str = ""

    @property
    def name(self) -> str:
        """Description of the rows, if the last ones are evaluated."""
        return "" if self.order is None else f"last rows{self.by}"

    def cut(
        self, labels: np.ndarray, rows: np.ndarray, n_folds: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return positions within ``rows``, not row numbers: those to fit and to predict, by fold.

        Parameters
        ----------
        labels : ndarray of shape (m,)
            Class numbers of the rows to cut.
        rows : ndarray of shape (m,)
            Their numbers among all rows.
        n_folds : int

        Returns
        -------
        list of tuple of (fit, predicted) positions
            Raise FoldsError if the rows to fit are not of two classes.
        """
        from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

        if self.order is not None:
            order = np.asarray(self.order)[rows]
            known = np.flatnonzero(order == order)  # what is missing has no place
            if not len(known):
                raise FoldsError(f"no row has a date or a number{self.by}")
            start = np.sort(order[known])[4 * len(known) // 5]
            fit, last = known[order[known] < start], known[order[known] >= start]
            if self.groups is not None:
                names = np.asarray(self.groups)[rows]
                fit = fit[~np.isin(names[fit], names[last])]
            folds = [(fit, last)]
        else:
            kind, names = StratifiedKFold, None
            if self.groups is not None:
                kind, names = StratifiedGroupKFold, np.asarray(self.groups)[rows]
                n_folds = min(n_folds, len(np.unique(names)))
                if n_folds < 2:
                    raise FoldsError("all rows are of one group: there is no other to be judged by")
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The least populated class", UserWarning)
                splitter = kind(n_folds, shuffle=True, random_state=0)
                folds = list(splitter.split(rows, labels, names))
        # A class of which one row is left is not learned.
        folds = [(fit[np.bincount(labels[fit])[labels[fit]] > 1], test) for fit, test in folds]
        if any(len(np.unique(labels[fit])) < 2 for fit, _ in folds):
            also = " and the others of their groups" if self.groups is not None else ""
            raise FoldsError(
                f"without the rows to be predicted{also} there are not two classes of two rows"
            )
        return folds


def halve(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return half of the rows, half of each class and at least two of it."""
    rows = np.random.default_rng(0).permutation(rows)
    kept = [
        mine[: max(2, round(len(mine) / 2))]
        for mine in (rows[labels[rows] == g] for g in np.unique(labels))
    ]
    return np.sort(np.concatenate(kept))
