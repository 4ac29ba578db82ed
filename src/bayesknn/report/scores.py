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
