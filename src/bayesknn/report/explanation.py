"""Why: the training rows that speak for each class, and what each column is worth."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from bayesknn.report.analysis import Analysis
from bayesknn.report.columns import as_measured

# Of the most influential rows, those among which each class's are looked for.
_MAX_INFLUENTIAL = 1000
# Rows to judge columns on, and permutations: fewer where there are many columns to permute and
# training rows to compare with. The pool takes ten times as long for each comparison.
_FEWEST_ROWS, _MOST_ROWS = 50, 300
_MAX_COMPARED, _MAX_COMPARED_POOLED = 24_000_000, 2_400_000
_FEWEST_REPEATS, _MOST_REPEATS = 3, 5
# Above this many columns each permutation says next to nothing, and all of them take long.
MAX_IMPORTANCE_COLUMNS = 60


class Speakers(NamedTuple):
    """The training rows that add most to the log odds of a class at a row.

    Attributes
    ----------
    label : int
        The number of the class.
    rows : ndarray of shape (s,)
        Positions among the training rows, the most influential first.
    influence : ndarray of shape (s,)
        What each adds to the log odds of the class against every other.
    """

    label: int
    rows: np.ndarray
    influence: np.ndarray


def find_speakers(analysis: Analysis, at: np.ndarray, n_speakers: int) -> list[list[Speakers]]:
    """Find who speaks for the two likeliest classes of some of the predicted rows.

    Parameters
    ----------
    analysis : Analysis
    at : ndarray of shape (m,)
        Positions in ``analysis.predictions``. A training row does not speak for itself.
    n_speakers : int
        At most how many rows for each class.

    Returns
    -------
    list of m lists of two Speakers
        The likelier class first.
    """
    left_out = analysis.test is None
    frame = analysis.frame if left_out else analysis.test_frame
    labels = analysis.training.actual
    points = analysis.model.transform(as_measured(frame.iloc[at], analysis.plan.kinds))
    n_neighbors = min(len(labels), _MAX_INFLUENTIAL + left_out)
    found = analysis.classifier.predict_influence(points, n_neighbors)
    speakers = []
    for i, rows, influence in zip(at, *found, strict=True):
        others = (rows >= 0) & ~(left_out & (rows == i))
        rows, influence = rows[others], influence[others]
        likeliest = np.argsort(-analysis.predictions.probabilities[i], kind="stable")[:2]
        mine = [(int(g), np.flatnonzero(labels[rows] == g)[:n_speakers]) for g in likeliest]
        speakers.append([Speakers(g, rows[which], influence[which]) for g, which in mine])
    return speakers


class Importance(NamedTuple):
    """What the probabilities lose when a column is permuted.

    Attributes
    ----------
    names : list of str
        The columns as they are called in the table, the most important first.
    mean, error : ndarray of shape (p,)
        Mean increase of the log-loss over the permutations, and its standard error.
    n_rows : int
        How many rows it was measured on.
    on_test : bool
        Whether they are test rows.
    """

    names: list[str]
    mean: np.ndarray
    error: np.ndarray
    n_rows: int
    on_test: bool


def rank_columns(analysis: Analysis) -> Importance | None:
    """Rank the columns by permutation importance: on test rows of known class, if there are any.

    None where there are more than ``MAX_IMPORTANCE_COLUMNS`` columns.
    """
    from sklearn.inspection import permutation_importance
    from sklearn.metrics import log_loss

    kinds = analysis.plan.kinds
    if len(kinds) > MAX_IMPORTANCE_COLUMNS:
        return None
    frame, labels = analysis.frame, analysis.training.actual
    test, on_test = analysis.test, False
    if test is not None and test.actual is not None and np.count_nonzero(test.actual >= 0) > 1:
        frame, labels, on_test = analysis.test_frame, test.actual, True
    rows = np.flatnonzero(labels >= 0)
    compared = _MAX_COMPARED_POOLED if analysis.is_pooled else _MAX_COMPARED
    affordable = compared // (_MOST_REPEATS * len(kinds) * len(analysis.frame))
    n_repeats = _MOST_REPEATS if affordable >= _FEWEST_ROWS else _FEWEST_REPEATS
    n_rows = min(len(rows), max(_FEWEST_ROWS, min(affordable, _MOST_ROWS)))
    rows = np.sort(np.random.default_rng(0).choice(rows, n_rows, replace=False))
    measured = as_measured(frame.iloc[rows], kinds)
    numbers = range(len(analysis.training.classes))

    def judge(pipeline: Any, columns: Any, truth: np.ndarray) -> float:
        return -log_loss(truth, pipeline.predict_proba(columns), labels=numbers)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
        found = permutation_importance(
            analysis.model.pipeline, measured, labels[rows],
            scoring=judge, n_repeats=n_repeats, random_state=0,
        )  # fmt: skip
    mean = found.importances_mean
    error = found.importances.std(axis=1, ddof=1) / np.sqrt(n_repeats)
    order = np.argsort(-mean, kind="stable")
    names = list(measured.columns)
    return Importance([names[j] for j in order], mean[order], error[order], len(rows), on_test)
