"""How good the probabilities were: error, log-loss and Brier score.

Leave-one-out probabilities of the training rows, or the probabilities of test rows whose class is
known, are compared with what happened. The pseudo-likelihood is the leave-one-out log score, so
the numbers here are the ones the model itself is judged by.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Scores(NamedTuple):
    """Scores of class probabilities against the classes that came true.

    Attributes
    ----------
    n : int
        Rows scored.
    error : float
        Share of rows whose most probable class is not theirs.
    log_loss : float
        Mean of minus the log probability of the row's class.
    brier : float
        Mean squared distance between the probabilities and the class's indicator.
    """

    n: int
    error: float
    log_loss: float
    brier: float


def score(probabilities: np.ndarray, labels: np.ndarray) -> Scores:
    """Score class probabilities.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
    labels : ndarray of shape (n,)
        Class numbers; rows with -1, a class that training did not see, count as errors and are
        left out of the other two scores.

    Returns
    -------
    Scores
    """
    each = score_rows(probabilities, labels)
    known = labels >= 0
    log_loss, brier = each[known, 1:].mean(axis=0) if known.any() else (np.nan, np.nan)
    return Scores(len(labels), float(each[:, 0].mean()), float(log_loss), float(brier))


def standard_errors(probabilities: np.ndarray, labels: np.ndarray) -> Scores:
    """Return the standard errors of :func:`score` over the rows; NaN where a loss is infinite."""
    with np.errstate(invalid="ignore"):
        spread = score_rows(probabilities, labels).std(axis=0, ddof=1) / np.sqrt(len(labels))
    return Scores(len(labels), *map(float, spread))


def score_rows(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Score each row: whether it is wrong, its log-loss and its Brier score.

    Returns
    -------
    ndarray of shape (n, 3)
        The last two are NaN for rows with -1, a class that training did not see.
    """
    found = np.full((len(labels), 3), np.nan)
    found[:, 0] = probabilities.argmax(axis=1) != labels
    rows = np.flatnonzero(labels >= 0)
    with np.errstate(divide="ignore"):
        found[rows, 1] = -np.log(probabilities[rows, labels[rows]])
    indicator = np.eye(probabilities.shape[1])[labels[rows]]
    found[rows, 2] = ((probabilities[rows] - indicator) ** 2).sum(axis=1)
    return found


def measure_area(truth: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Return the area under the ROC curve and its standard error (DeLong).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.report.scores import measure_area
    >>> area, error = measure_area(np.array([0, 0, 1, 1]) == 1, np.array([0.1, 0.4, 0.35, 0.8]))
    >>> area, round(error, 3)
    (0.75, 0.354)
    """
    from scipy.stats import rankdata

    ranks, n = rankdata(scores), len(scores)
    # Of each row, the share of the rows of the other class that it is ranked right against.
    above = [(ranks[mine] - rankdata(scores[mine])) / (n - mine.sum()) for mine in (truth, ~truth)]
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(sum(each.var() / (len(each) - 1) for each in above))
    return float(above[0].mean()), float(error)
