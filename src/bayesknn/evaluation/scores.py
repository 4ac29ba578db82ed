"""Scores of class probabilities, with errors and weights.

Every score is a weighted mean over rows. The weights make a row stand for several rows, or give the
classes other proportions (:func:`weigh_rows`); equal weights give the plain means.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from bayesknn.sureness.groups import sum_by_group


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

    def __str__(self) -> str:
        return (
            f"{self.n:,} rows, error {100 * self.error:.1f} %, log-loss {self.log_loss:.3f}, "
            f"Brier score {self.brier:.3f}"
        )

    def to_json(self) -> dict[str, float | None]:
        """Return the scores by name as JSON has them, None for what is not finite."""
        return {name: each if np.isfinite(each) else None for name, each in self._asdict().items()}


def score(probabilities: np.ndarray, labels: np.ndarray, weights: Any = None) -> Scores:
    """Return the mean scores of class probabilities.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
    labels : ndarray of shape (n,)
        Class indices; rows with -1, a class that training did not see, count as errors and are
        left out of the other two scores.
    weights : ndarray of shape (n,), optional
        Positive weights of the rows, all 1 by default.

    Returns
    -------
    Scores
    """
    weights = np.ones(len(labels)) if weights is None else weights
    each = score_rows(probabilities, labels)
    known = labels >= 0
    log_loss, brier = np.nan, np.nan
    if known.any():
        log_loss, brier = np.average(each[known, 1:], axis=0, weights=weights[known])
    error = np.average(each[:, 0], weights=weights)
    return Scores(len(labels), float(error), float(log_loss), float(brier))


def score_rows(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Score each row: whether it is wrong, its log-loss and its Brier score.

    Returns
    -------
    ndarray of shape (n, 3)
        The last two are NaN for rows with -1, a class that training did not see.
    """
    scores = np.full((len(labels), 3), np.nan)
    scores[:, 0] = probabilities.argmax(axis=1) != labels
    rows = np.flatnonzero(labels >= 0)
    with np.errstate(divide="ignore"):
        scores[rows, 1] = -np.log(probabilities[rows, labels[rows]])
    indicator = np.eye(probabilities.shape[1])[labels[rows]]
    scores[rows, 2] = ((probabilities[rows] - indicator) ** 2).sum(axis=1)
    return scores


def measure_area(
    truth: np.ndarray, scores: np.ndarray, weights: np.ndarray, groups: Any = None
) -> tuple[float, float]:
    """Return the weighted area under the ROC curve and its standard error (DeLong).

    Where rows belong to groups, the deviations of a group are added up over both classes.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.evaluation.scores import measure_area
    >>> truth, scores = np.array([0, 0, 1, 1]) == 1, np.array([0.1, 0.4, 0.35, 0.8])
    >>> area, error = measure_area(truth, scores, np.ones(4))
    >>> area, round(error, 3)
    (0.75, 0.354)
    """
    values, at = np.unique(scores, return_inverse=True)

    def find_below(mine: np.ndarray) -> np.ndarray:
        """Return the proportion of the rows of the other class with a lower score, ties half."""
        others = np.bincount(at[~mine], weights[~mine], len(values))
        return ((np.cumsum(others) - others / 2) / others.sum())[at[mine]]

    areas = [average(find_below(mine), weights[mine]) for mine in (truth, ~truth)]
    area = float(areas[0][0])
    if groups is None:
        return area, float(np.hypot(areas[0][1], areas[1][1]))
    parts = np.zeros(len(truth))
    # The area of the second class is 1 - area: its deviations have the other sign.
    for mine, (mean, _), sign in zip((truth, ~truth), areas, (1.0, -1.0), strict=True):
        parts[mine] = sign * (find_below(mine) - mean) * weights[mine] / weights[mine].sum()
    n = len(np.unique(groups))
    return area, float(np.sqrt(n / max(n - 1, 1) * (np.bincount(groups, parts) ** 2).sum()))


def average(values: np.ndarray, weights: np.ndarray, groups: Any = None) -> tuple[Any, Any]:
    """Return the weighted mean over rows and its standard error.

    Equal weights give the mean and the standard deviation over the square root of n. A single row,
    or an infinite value, has an error of NaN.

    Parameters
    ----------
    values : ndarray of shape (n,) or (n, n_columns)
    weights : ndarray of shape (n,)
    groups : ndarray of shape (n,), optional
        Numbers of the groups of the rows: deviations of a group are added up before they are
        squared.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.evaluation.scores import average
    >>> mean, error = average(np.array([0.0, 1.0, 5.0]), np.array([1.0, 1.0, 0.0]))
    >>> float(mean), float(error)
    (0.5, 0.5)
    """
    mean = np.average(values, axis=0, weights=weights)
    n_equal = count_equal(weights, groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = _vary_mean(values - mean, weights, groups) * n_equal / (n_equal - 1)
        return mean, np.sqrt(variance)


def _vary_mean(deviations: np.ndarray, weights: np.ndarray, groups: Any) -> Any:
    """Return the variance of a weighted mean of independent rows, or of independent groups."""
    shares = weights / weights.sum()
    if groups is None:
        return shares**2 @ deviations**2
    parts = (shares * deviations.T).T.reshape(len(shares), -1)
    sums = (sum_by_group(parts, groups) ** 2).sum(axis=0)
    return sums if deviations.ndim > 1 else sums[0]


def count_equal(weights: np.ndarray, groups: Any = None) -> float:
    """Return the number of equally weighted rows, or groups, whose mean is as variable (Kish)."""
    if groups is not None:
        weights = np.bincount(groups, weights)
    return float(weights.sum() ** 2 / (weights @ weights))


def bound_proportion(
    hits: np.ndarray, weights: np.ndarray, groups: Any = None
) -> tuple[float, float, float]:
    """Return the weighted proportion of hits and the ends of its 95 % interval (Wilson).

    The interval is that of as many equally weighted rows as have the variance of the weighted
    proportion, or as :func:`count_equal` returns if that is fewer. Where rows belong to groups,
    the variance is that of groups; without hits, groups are counted.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.evaluation.scores import bound_proportion
    >>> [round(each, 4) for each in bound_proportion(np.arange(10) < 2, np.ones(10))]
    [0.2, 0.0567, 0.5098]
    """
    p = float(np.average(hits, weights=weights))
    variance = float(_vary_mean(hits - p, weights, groups))
    if variance > 0:
        n = min(count_equal(weights), p * (1 - p) / variance)
    else:
        n = count_equal(weights, groups)
    z = float(ndtri(0.975))
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return p, float(max(centre - half, 0.0)), float(min(centre + half, 1.0))


def weigh_rows(labels: np.ndarray, proportions: Any, weights: np.ndarray) -> np.ndarray:
    """Return weights of mean 1 that give the classes their proportions.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Class indices; negative ones, where the class is not known, have weight 1.
    proportions : ndarray of shape (n_classes,) or None
        Proportions to have; None keeps those of ``weights``.
    weights : ndarray of shape (n,)
        Weights within the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.evaluation.scores import weigh_rows
    >>> weigh_rows(np.array([0, 0, 0, 1]), np.array([0.5, 0.5]), np.ones(4)).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """
    weighed, known = np.ones(len(labels)), labels >= 0
    if known.any():
        mine, given = labels[known], weights[known]
        if proportions is not None:
            sums = np.bincount(mine, given, len(proportions))
            given = given * (proportions / np.where(sums > 0, sums, 1.0))[mine]
        weighed[known] = given / given.mean()
    return weighed
