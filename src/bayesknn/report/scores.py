"""How good the probabilities were: error, log-loss, Brier score and reliability.

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


class ReliabilityBin(NamedTuple):
    """Rows that were given a similar probability for their predicted class.

    Attributes
    ----------
    n : int
        Rows in the bin.
    claimed : float
        Mean probability of the predicted class.
    right : float
        Share of the rows for which it came true.
    low, high : float
        Wilson's 95 % interval for that share.
    """

    n: int
    claimed: float
    right: float
    low: float
    high: float


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


def reliability(
    probabilities: np.ndarray, labels: np.ndarray, n_bins: int = 10
) -> list[ReliabilityBin]:
    """Compare the probability of the predicted class with how often it came true.

    The bins hold equally many rows, so that each point of the diagram is worth the same; rows with
    equal probabilities stay together.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
    labels : ndarray of shape (n,)
        Class numbers.
    n_bins : int, default=10
        At most so many bins, and no fewer than about ten rows in each.

    Returns
    -------
    list of ReliabilityBin

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.report.scores import reliability
    >>> p = np.repeat([[0.9, 0.1], [0.4, 0.6]], 10, axis=0)
    >>> [(b.n, round(b.claimed, 2), b.right) for b in reliability(p, np.repeat([0, 1], 10))]
    [(10, 0.6, 1.0), (10, 0.9, 1.0)]
    """
    claimed = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    n_bins = max(1, min(n_bins, len(labels) // 10))
    # Grouped by rank of the claim, where equal claims have equal ranks.
    levels = np.sort(claimed)
    bins = np.searchsorted(levels, claimed) * n_bins // len(labels)
    found = []
    for b in np.unique(bins):
        inside = bins == b
        n, share = int(inside.sum()), float(right[inside].mean())
        found.append(ReliabilityBin(n, float(claimed[inside].mean()), share, *_wilson(share, n)))
    return found


def _wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return float(max(0.0, centre - half)), float(min(1.0, centre + half))
