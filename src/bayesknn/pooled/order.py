"""One order of rows, columns and classes for every table that holds the same values.

Folds and trees draw random numbers by position. A fit therefore puts its rows, columns and classes
in an order that depends on what they hold, so that another order of the same table, other names of
columns or classes and other units give the same arrays. Ranks decide, which are whole numbers and
do not depend on units. Not covered: a negative factor, which reverses ranks; other names of
categories, where they are all that tells rows apart; other names of classes, where rows of
different classes are equal in every column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._utils.checks import Column
from bayesknn.pooled.columns import rank_values


class Order(NamedTuple):
    """Positions in a table, in the order that a fit uses.

    Attributes
    ----------
    rows : ndarray of int64
        Rows of positive weight, sorted by the first column, rows of equal values by the next, and
        so on; rows that are equal in all columns by class index, weight and what their groups hold.
    columns : ndarray of int64
        Numbers before categories, those first whose ranks differ most between the classes; by name
        where that is equal, by position where columns have no names.
    classes : ndarray of int64
        Class indices, by the first row of each class.
    groups : ndarray of int64
        Of ``rows``: equal where rows are equal in all columns, in class and in weight.
    """

    rows: np.ndarray
    columns: np.ndarray
    classes: np.ndarray
    groups: np.ndarray

    def by_class(self, values: np.ndarray) -> np.ndarray:
        """Return values whose last axis follows the fit's order of classes, by class index."""
        return values[..., np.argsort(self.classes)]

    def average_equal_rows(self, values: np.ndarray) -> np.ndarray:
        """Return values of the rows (n, ...), of equal rows their mean, whatever their folds."""
        starts = np.flatnonzero(np.diff(self.groups, prepend=-1))
        sizes = np.diff(starts, append=len(values))
        means = np.add.reduceat(values, starts) / sizes.reshape(-1, *[1] * (values.ndim - 1))
        return np.repeat(means, sizes, axis=0)


def find_order(
    columns: list[Column],
    labels: np.ndarray,
    weights: np.ndarray,
    groups: np.ndarray | None = None,
) -> Order:
    """Return the order of a training table.

    Parameters
    ----------
    columns : list of Column
    labels : ndarray of shape (n,)
        Class indices.
    weights : ndarray of shape (n,)
        Rows of weight 0 are left out.
    groups : ndarray of shape (n,), optional
        Group numbers of rows.

    Returns
    -------
    Order

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn._utils.checks import read_columns
    >>> from bayesknn.pooled.order import find_order
    >>> columns = read_columns([[5, 2.5], [5, 0.5], [5, 1.5]])
    >>> order = find_order(columns, np.array([0, 1, 0]), np.ones(3))
    >>> order.columns.tolist(), order.rows.tolist(), order.classes.tolist()
    ([1, 0], [1, 2, 0], [1, 0])
    """
    rows = np.flatnonzero(weights > 0)
    labels, weights = labels[rows], weights[rows]
    ranks = [rank_values(column)[rows] for column in columns]
    by_separation = sorted(
        range(len(columns)),
        key=lambda j: (*_describe_column(columns[j], ranks[j], labels), columns[j].label),
    )
    group = np.zeros(len(rows), np.int64)
    weight_ranks = np.unique(weights, return_inverse=True)[1]
    for each in (*(ranks[j] for j in by_separation), labels, weight_ranks):
        if group.max() == len(rows) - 1:
            break  # all rows differ
        group = np.unique(group * (each.max() + 1) + each, return_inverse=True)[1]
    if groups is not None:
        # Rows that are still equal are told apart by how many relatives they have and which.
        places = np.unique(groups[rows], return_inverse=True)[1]
        held = np.column_stack([np.bincount(places), np.bincount(places, group)])[places]
        each = np.unique(held, axis=0, return_inverse=True)[1].ravel()
        group = np.unique(group * (each.max() + 1) + each, return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    classes, first = np.unique(labels[order], return_index=True)
    return Order(rows[order], np.array(by_separation), classes[np.argsort(first)], group[order])


def _describe_column(column: Column, ranks: np.ndarray, labels: np.ndarray) -> tuple[int, ...]:
    """Return whole numbers that say how well a column separates the classes, the best first.

    They do not depend on the order of rows, the names of classes, units or names of categories.
    """
    if column.is_category:
        pairs = np.unique(ranks * (labels.max() + 1) + labels, return_counts=True)[1]
        return 1, -int((pairs**2).sum()), len(pairs)
    sums = np.zeros((2, labels.max() + 1), np.int64)
    for total, each in zip(sums, (ranks, ranks**2), strict=True):
        np.add.at(total, labels, each)
    # As Python's integers, whose squares do not overflow.
    return 0, *(-sum(each**2 for each in total.tolist()) for total in sums)
