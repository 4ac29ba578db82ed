"""Why a class is predicted: influential training rows, and what the probabilities owe to a column.

What a column contributes to single rows is :func:`bayesknn.predictive.decisions.occlude_columns`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import sem

from bayesknn.evaluation.scores import score
from bayesknn.predictive.decisions import take_rows

# Above this many columns each permutation says next to nothing, and all of them take long.
MAX_IMPORTANCE_COLUMNS = 60


def find_influential(
    classifier: Any,
    points: Any,
    probabilities: np.ndarray,
    labels: np.ndarray,
    n_rows: int,
    at: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> list[list[tuple[int, np.ndarray, np.ndarray]]]:
    """Find the most influential training rows of the two likeliest classes, for some points.

    Parameters
    ----------
    classifier : estimator
        With ``predict_influence``.
    points : array-like or frame of shape (m, p)
    probabilities : ndarray of shape (m, n_classes)
        Their class probabilities.
    labels : ndarray of shape (n,)
        Class indices of the training rows.
    n_rows : int
        At most how many rows for each class.
    at : ndarray of shape (m,), optional
        Where the points are training rows that are left out: their positions. A row does not count
        for itself.
    groups : ndarray of shape (n,), optional
        Group numbers of the training rows. With ``at``, a row does not count for its group.

    Returns
    -------
    list of m lists of two tuples
        The likelier class first: its index; positions among the training rows, the most
        influential first; and what each adds to the log odds of the class against every other.
    """
    # Among this number of the most influential rows each class has some, unless it is very rare.
    groups = np.arange(len(labels)) if groups is None else groups
    left_out = np.full(len(points), -1) if at is None else groups[at]
    n_neighbors = min(len(labels), 1000 + (0 if at is None else int(np.bincount(groups).max())))
    influential = []
    influence_of = classifier.predict_influence(points, n_neighbors)
    for p, own, rows, influence in zip(probabilities, left_out, *influence_of, strict=True):
        others = (rows >= 0) & (groups[rows] != own)
        rows, influence = rows[others], influence[others]
        likeliest = np.argsort(-p, kind="stable")[:2]
        mine = [(int(g), np.flatnonzero(labels[rows] == g)[:n_rows]) for g in likeliest]
        influential.append([(g, rows[first], influence[first]) for g, first in mine])
    return influential


def rank_columns(
    estimator: Any, X: Any, labels: np.ndarray, weights: np.ndarray, n_repeats: int
) -> list[tuple[int, float, float]]:
    """Rank the columns by permutation importance.

    Parameters
    ----------
    estimator : estimator
        Fitted, with ``predict_proba``.
    X : ndarray or pandas.DataFrame of shape (n, p)
    labels : ndarray of shape (n,)
        Class indices.
    weights : ndarray of shape (n,)
    n_repeats : int
        Permutations of each column.

    Returns
    -------
    list of (column index, mean, standard error)
        The most important first; of each the mean increase of the log-loss over the permutations,
        and its standard error.
    """
    from sklearn.inspection import permutation_importance

    def judge(model: Any, X: Any, labels: np.ndarray, sample_weight: np.ndarray) -> float:
        # A probability of 0 would hide every other row.
        probabilities = np.maximum(model.predict_proba(X), np.finfo(float).eps)
        return -score(probabilities, labels, sample_weight).log_loss

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the prediction of the rows has warned
        importance = permutation_importance(
            estimator, X, labels, scoring=judge, n_repeats=n_repeats, random_state=0,
            sample_weight=weights,
        )  # fmt: skip
    each = zip(importance.importances_mean, sem(importance.importances, axis=1), strict=True)
    columns = [(j, float(mean), float(error)) for j, (mean, error) in enumerate(each)]
    return sorted(columns, key=lambda column: -column[1])


class Effect(NamedTuple):
    """Partial dependence: mean class probabilities if all rows had a value in one column.

    Attributes
    ----------
    name : str
        The column.
    values : ndarray or pandas.Index
        Numbers in order, or the most common categories.
    is_number : bool
    probabilities : ndarray of shape (len(values), n_classes)
        Weighted means over the rows.
    n_rows : int
        How many rows those are.
    """

    name: str
    values: Any
    is_number: bool
    probabilities: np.ndarray
    n_rows: int


def find_effect(
    predict_proba: Callable[[Any], np.ndarray],
    rows: Any,
    weights: np.ndarray,
    column: Any,
) -> Effect:
    """Return the partial dependence of the class probabilities on a column.

    Parameters
    ----------
    predict_proba : callable
        Class probabilities of the rows of a frame.
    rows : pandas.DataFrame of shape (n, p)
        Rows to average over.
    weights : ndarray of shape (n,)
        Weights of these rows.
    column : pandas.Series
        Values that the column has in all training rows. Numbers are set to 15 quantiles,
        categories to each of the eight most common ones.
    """
    there, is_number = column.dropna(), column.dtype.kind in "iuf"
    # An axis has room for eight names, and a line needs few points.
    values = there.value_counts().index[:8]
    if is_number:
        parts = np.linspace(0.02, 0.98, 15)
        values = np.unique(np.quantile(there.to_numpy(dtype=np.float64), parts))
    table = take_rows(rows, np.tile(np.arange(len(rows)), len(values)))
    table[column.name] = np.repeat(values, len(rows))
    if not is_number:
        table = table.astype({column.name: rows[column.name].dtype})
    each = predict_proba(table).reshape(len(values), len(rows), -1)
    means = np.average(each, axis=1, weights=weights)
    return Effect(str(column.name), values, is_number, means, len(rows))
