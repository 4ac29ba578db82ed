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


def percent(share: float, digits: int = 0) -> str:
    r"""Return a share in per cent, as text that no line is broken in.

    Examples
    --------
    >>> from bayesknn.report.scores import percent
    >>> percent(0.125, 1), percent(0.9999)
    ('12.5\xa0%', '>99\xa0%')
    """
    step = 10.0 ** (-2 - digits)
    # Nearly all is not all, and next to nothing is not nothing.
    if 0 < share < step / 2:
        return f"<{100 * step:.{digits}f}\xa0%"
    if 1 - step / 2 < share < 1:
        return f">{100 * (1 - step):.{digits}f}\xa0%"
    return f"{100 * share:.{digits}f}\xa0%"


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

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.report.scores import score
    >>> found = score(np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([0, 0]))
    >>> found.error, round(found.log_loss, 3), round(found.brier, 3)
    (0.5, 0.57, 0.4)
    """
    known = labels >= 0
    rows = np.flatnonzero(known)
    own = probabilities[rows, labels[rows]]
    with np.errstate(divide="ignore"):
        log_loss = float(-np.log(own).mean()) if len(rows) else float("nan")
    indicator = np.eye(probabilities.shape[1])[labels[rows]]
    squared = ((probabilities[rows] - indicator) ** 2).sum(axis=1)
    return Scores(
        len(labels),
        float(np.mean(probabilities.argmax(axis=1) != labels)),
        log_loss,
        float(squared.mean()) if len(rows) else float("nan"),
    )
