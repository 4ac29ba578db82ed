"""Why: the most influential training rows, and what each column contributes."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas
from scipy.stats import sem

from bayesknn.predictive.decisions import occlude_columns
from bayesknn.report.analysis import Analysis
from bayesknn.report.columns import NUMERIC, as_measured
from bayesknn.report.predictions import score

# Above this many columns each permutation says next to nothing, and all of them take long.
MAX_IMPORTANCE_COLUMNS = 60


def find_influential(
    analysis: Analysis, at: np.ndarray, n_rows: int
) -> list[list[tuple[int, np.ndarray, np.ndarray]]]:
    """Find the most influential rows of the two likeliest classes, for some predicted rows.

    Parameters
    ----------
    analysis : Analysis
    at : ndarray of shape (m,)
        Positions in ``analysis.predictions``. A training row does not count for itself.
    n_rows : int
        At most how many rows for each class.

    Returns
    -------
    list of m lists of two tuples
        The likelier class first: its number; positions among the training rows, the most
        influential first; and what each adds to the log odds of the class against every other.
    """
    if not len(at):
        return []
    left_out = analysis.test is None
    labels = analysis.training.actual
    points = analysis.model.transform(analysis.predictions.frame.iloc[at])
    # Among this number of the most influential rows each class has some, unless it is very rare.
    n_neighbors = min(len(labels), 1000 + left_out)
    influence_of = analysis.classifier.predict_influence(points, n_neighbors)
    influential = []
    for i, rows, influence in zip(at, *influence_of, strict=True):
        others = (rows >= 0) & ~(left_out & (rows == i))
        rows, influence = rows[others], influence[others]
        likeliest = np.argsort(-analysis.predictions.probabilities[i], kind="stable")[:2]
        mine = [(int(g), np.flatnonzero(labels[rows] == g)[:n_rows]) for g in likeliest]
        influential.append([(g, rows[first], influence[first]) for g, first in mine])
    return influential


def find_contributions(analysis: Analysis, at: np.ndarray) -> list[list[tuple[str, float]]]:
    """Find the columns that contribute most to the class of some predicted rows.

    Parameters
    ----------
    analysis : Analysis
    at : ndarray of shape (m,)
        Positions in ``analysis.predictions``.

    Returns
    -------
    list of m lists of at most four (name, contribution)
        Empty lists where there are more than ``MAX_IMPORTANCE_COLUMNS`` columns.
    """
    kinds = analysis.plan.kinds
    if len(kinds) > MAX_IMPORTANCE_COLUMNS or not len(at):
        return [[] for _ in at]
    n_background = min(max(_count_affordable(analysis, len(at) * len(kinds)), 5), 20)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*categories", UserWarning)
        contributions = occlude_columns(
            analysis.model.pipeline.predict_proba,
            as_measured(analysis.predictions.frame.iloc[at], kinds),
            as_measured(analysis.training.frame, kinds),
            n_background,
        )
    names = list(kinds)
    return [
        [(names[j], float(each[j])) for j in np.argsort(-np.abs(each), kind="stable")[:4]]
        for each in contributions
    ]


class Importance(NamedTuple):
    """What the probabilities lose when a column is permuted.

    Attributes
    ----------
    columns : list of (str, float, float)
        The columns as they are called in the table, the most important first; of each the mean
        increase of the log-loss over the permutations, and its standard error.
    n_rows : int
        How many rows it was measured on.
    on_test : bool
        Whether they are test rows.
    """

    columns: list[tuple[str, float, float]]
    n_rows: int
    on_test: bool


def rank_columns(analysis: Analysis) -> Importance | None:
    """Rank the columns by permutation importance: on test rows of known class, if there are any.

    None where there are more than ``MAX_IMPORTANCE_COLUMNS`` columns.
    """
    from sklearn.inspection import permutation_importance

    kinds = analysis.plan.kinds
    if len(kinds) > MAX_IMPORTANCE_COLUMNS:
        return None
    judged = analysis.judged
    affordable = _count_affordable(analysis, 5 * len(kinds))
    n_repeats = 5 if affordable >= 50 else 3
    rows, weights = judged.draw(max(50, min(affordable, 300)))

    def judge(
        pipeline: Any, X: pandas.DataFrame, labels: np.ndarray, sample_weight: np.ndarray
    ) -> float:
        # A probability of 0 would hide every other row.
        probabilities = np.maximum(pipeline.predict_proba(X), np.finfo(float).eps)
        return -score(probabilities, labels, sample_weight).log_loss

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
        importance = permutation_importance(
            analysis.model.pipeline,
            as_measured(judged.frame.iloc[rows], kinds),
            judged.actual[rows],
            scoring=judge,
            n_repeats=n_repeats,
            random_state=0,
            sample_weight=weights,
        )
    error = sem(importance.importances, axis=1)
    columns = list(zip(kinds, importance.importances_mean, error, strict=True))
    columns.sort(key=lambda column: -column[1])
    return Importance(columns, len(rows), judged is analysis.test)


def _count_affordable(analysis: Analysis, n_each: int) -> int:
    """Return how many rows may each be predicted ``n_each`` times in a few seconds."""
    n_pairs = 2_400_000 if analysis.model.adapter.is_slow else 24_000_000
    return n_pairs // (n_each * len(analysis.training.rows))


class Effect(NamedTuple):
    """Partial dependence: mean class probabilities if all rows had a value in one column.

    Attributes
    ----------
    name : str
        The column.
    values : list
        Numbers or days in order, or the most common categories.
    is_number : bool
    probabilities : ndarray of shape (len(values), n_classes)
        Weighted means over some of the training rows.
    n_rows : int
        How many rows those are.
    """

    name: str
    values: list[Any]
    is_number: bool
    probabilities: np.ndarray
    n_rows: int


def find_effects(analysis: Analysis, names: list[str]) -> list[Effect]:
    """Find the partial dependence of the class probabilities on some columns."""
    kinds = analysis.plan.kinds
    measured = as_measured(analysis.training.frame, kinds)
    affordable = _count_affordable(analysis, 15 * len(names))
    drawn, weights = analysis.training.draw(min(max(affordable, 50), 100))
    rows, n_rows = measured.iloc[drawn], len(drawn)
    effects = []
    for name in names:
        is_number = kinds[name] in NUMERIC
        there = measured[name].dropna()
        # An axis has room for eight names, and a line needs few points.
        values = there.value_counts().index[:8].tolist()
        if is_number:
            parts = np.linspace(0.02, 0.98, 15)
            values = np.unique(np.quantile(there.to_numpy(dtype=np.float64), parts)).tolist()
        table = pandas.concat([rows.assign(**{name: value}) for value in values])
        if not is_number:
            table = table.astype({name: rows[name].dtype})
        probabilities = analysis.model.pipeline.predict_proba(table)
        each = probabilities.reshape(len(values), n_rows, -1)
        means = np.average(each, axis=1, weights=weights)
        if kinds[name] == "date":
            values = list(np.datetime64(0, "D") + np.round(values).astype("timedelta64[D]"))
        effects.append(Effect(name, values, is_number, means, n_rows))
    return effects
