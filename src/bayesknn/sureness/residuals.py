"""Residuals of leave-one-out probabilities: their correlation, and the columns they depend on.

Given the feature values the labels are independent. So where p_i and p_j use neither y_i nor y_j,
the expected product of the residuals y_i - p_i and y_j - p_j is that of the errors P_i - p_i and
P_j - p_j. Over pairs of near rows, and summed over the classes, with w_ij = w_i w_j::

    v = sum w_ij (y_i - p_i)(y_j - p_j) / sum w_ij p_i (1 - p_i)       se its standard error

is the part of p (1 - p) that the errors of the two rows have in common. Smoothing is off in
proportion to how P differs from its mean, so errors of two rows are about as much alike as their
probabilities are, and the mean squared error is v divided by the correlation of these::

    rho = sum w_ij (p_i - m)(p_j - m) / sum w_ij (p_i - m)^2           m the mean of p

Where many columns do not matter, rows that are near by the distance are not near in the one that
does. Rows that are near along a single column c show its effect: v_c and se_c are the same as v and
se over pairs up to 3, or up to 10, rows apart in the order of the column. Intervals allow for a
column if z_c = v_c / se_c exceeds z_0, the normal quantile at 5 % divided by the number of columns.
A v_c barely above it is mostly chance, so that it is reduced to (1 - (z_0 / z_c)^2) v_c. The
effects of these columns are added. The mean squared error that intervals allow for is the part
``bound`` of p (1 - p)::

    near     = max(v, 0) / rho + min(v, 0) + se
    cautious = min((max(v, 0) + se) / rho, s)
    column   = sum_c v_c (1 - (z_0 / z_c)^2) + se_c of the largest z_c     the larger of both gaps
    bound    = min(max(1.5 / votes, near, cautious, column), 1/2)

with rho at least 1/5 and at most 1, and s = sum w_ij (p_i - m)^2 / sum w_ij p_i (1 - p_i) the
largest error that is in proportion to p - m. If v is not distinguishable from 0, the variance of
the mean of so many votes remains, 1.5 / votes. The constants are empirical; ``docs/intervals.md``
has what was measured.

A warning names the column with the largest z_c, relative to a stricter limit that noise exceeds in
at most 5 % of tables: see :func:`find_misfit`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, ndtri

from bayesknn._utils.jit import kernel
from bayesknn.sureness.groups import correlate_relatives, count_alike, weigh_relatives

# Upper limit of the squared error as a part of p (1 - p): the interval is then nearly [0, 1].
MAX_BOUND = 0.5
# Lower limit of the correlation rho that v is divided by. Smaller values widen intervals where
# pairs have little in common, larger ones miss part of the error in many dimensions.
_MIN_LIKENESS = 0.2
# Largest distances, in rows, of pairs along a column. Few rows show jumps, many show slopes.
_GAPS = (3, 10)
# Rows on which columns are examined. More take time, fewer miss small effects: with 20,000 an
# effect of .5 % of p (1 - p) is significant.
MAX_ROWS = 20_000
# Levels of how near to 0 or 1 a probability is, each half as far as the one before.
_N_LEVELS = 40


class Pairs(NamedTuple):
    """Near rows, and predictions for one of them that do not use the label of the other.

    Attributes
    ----------
    neighbors : ndarray of shape (n_ranks, n)
        ``neighbors[r, i]`` is the neighbour of row i at rank r + 1.
    predict_without_pair : callable
        ``predict_without_pair(i, j, rank)`` returns the leave-one-out probabilities, of shape
        (n, n_classes), of rows i that do not use the labels of rows j either, where j is the
        neighbour of i at that rank or i that of j.
    voters : ndarray of shape (n_voters, n) or None
        Rows whose labels have a part in each row's probabilities: no pair with it along a column.
        Of more than ``MAX_ROWS`` rows those of :func:`examined_rows` are enough.
    folds : ndarray of shape (n,) or None
        Rows of different folds are no pair along a column.
    nearest : ndarray of shape (n_nearest, n) or None
        Where rows belong to groups, the nearest of each row, if these are not ``neighbors``.
    """

    neighbors: np.ndarray
    predict_without_pair: Callable[[np.ndarray, np.ndarray, int], np.ndarray]
    voters: np.ndarray | None = None
    folds: np.ndarray | None = None
    nearest: np.ndarray | None = None


class ResidualCorrelation(NamedTuple):
    """Correlation of the residuals of near rows.

    Attributes
    ----------
    value, error : float
        The estimate v and its standard error; NaN without pairs.
    bound : float
        Mean squared error that intervals allow for, as a part of p (1 - p).
    n_votes : float
        Number of votes that a probability rests on.
    column : int or None
        Column on which the residuals depend most, None where no column is significant at 5 %.
    error_rates : ndarray of shape (n_levels,)
        Entry j is the error rate of leave-one-out probabilities within 2^-j of 0 or 1.
    within : float
        Correlation of the residuals of one group, 0 without groups.
    """

    value: float
    error: float
    bound: float
    n_votes: float = float("inf")
    column: int | None = None
    error_rates: np.ndarray = np.ones(_N_LEVELS)
    within: float = 0.0


class Misfit(NamedTuple):
    """Dependence of residuals on single columns.

    Attributes
    ----------
    column : int or None
        The most significant column, None where none is significant at 5 %.
    bound : float
        Mean squared error that the columns show together, as a part of p (1 - p).
    """

    column: int | None
    bound: float


def correlate_residuals(
    probabilities: np.ndarray,
    labels: np.ndarray,
    pairs: Pairs | None,
    n_votes: float,
    *,
    columns: np.ndarray | None,
    weights: np.ndarray,
    groups: np.ndarray | None,
) -> ResidualCorrelation:
    """Estimate the mean squared error of probabilities from the residuals of near rows.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
        Leave-one-out probabilities.
    labels : ndarray of shape (n,)
        Class indices.
    pairs : Pairs or None
        None where no two rows can be predicted without each other's labels.
    n_votes : float
        Mean number of neighbours that vote.
    columns : ndarray of shape (n, p) or None
        Feature values, along which pairs are formed too; category codes are values. Of more than
        ``MAX_ROWS`` rows those of :func:`examined_rows` are enough.
    weights : ndarray of shape (n,)
        A pair counts the product of the weights of its rows.
    groups : ndarray of shape (n,) or None
        Rows of one group are no pair, and together they count less than as many others.

    Returns
    -------
    ResidualCorrelation
    """
    truth, variances = np.eye(probabilities.shape[1])[labels], _variances(probabilities)
    votes = n_votes * effective_part(weights)
    within = correlate_relatives(truth - probabilities, variances, weights, groups)
    if pairs is not None:
        nearest = pairs.neighbors if pairs.nearest is None else pairs.nearest
        votes /= count_alike(nearest, n_votes, groups, within)
    rates = _error_rates(truth, probabilities, weigh_relatives(weights, groups, within))
    if pairs is None:
        nan = float("nan")
        return ResidualCorrelation(nan, nan, MAX_BOUND, votes, error_rates=rates, within=within)
    rows = np.arange(len(labels))
    away = probabilities - probabilities.mean(axis=0)
    scale = alike = signal = 0.0
    products = np.empty(pairs.neighbors.shape)
    for r, j in enumerate(pairs.neighbors):
        ours = truth - pairs.predict_without_pair(rows, j, r + 1)
        theirs = truth[j] - pairs.predict_without_pair(j, rows, r + 1)
        both = weights * weights[j]
        if groups is not None:
            both = both * (groups != groups[j])
        products[r] = both * (ours * theirs).sum(axis=1)
        scale += both @ variances
        alike += both @ (away * away[j]).sum(axis=1)
        signal += both @ (away**2).sum(axis=1)
    scale = max(scale, 1e-300)
    squares = (_add_by_groups(products, groups, rows, pairs.neighbors) ** 2).sum()
    value, error = np.clip(products.sum() / scale, -1.0, 1.0), np.sqrt(2.0 * squares) / scale
    likeness = np.clip(alike / max(signal, 1e-300), _MIN_LIKENESS, 1.0)
    near = max(value, 0.0) / likeness + min(value, 0.0) + error
    # An error in proportion to p - m is at most the variance of p, which is small where P is flat.
    cautious = min((max(value, 0.0) + error) / likeness, signal / scale)
    bound = max(1.5 / votes, near, cautious)
    misfit = None
    if columns is not None:
        misfit = find_misfit(probabilities, labels, columns, weights, pairs, groups)
    if misfit is not None:
        bound = max(bound, misfit.bound)
    column = None if misfit is None else misfit.column
    bound = min(float(bound), MAX_BOUND)
    return ResidualCorrelation(float(value), float(error), bound, votes, column, rates, within)


def _add_by_groups(
    products: np.ndarray, groups: np.ndarray | None, i: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Return the products, those of rows of the same two groups added up."""
    if groups is None:
        return products
    codes = groups[i].astype(np.int64) * (int(groups.max()) + 1) + groups[j]
    _, index = np.unique(codes, return_inverse=True)
    return np.bincount(index.ravel(), products.ravel())


def _find_quantile(level: float, products: np.ndarray, gap: int) -> float:
    """Return a quantile of the standardised sum of products of rows up to ``gap`` rows apart.

    Residuals are independent, but one residual is in many products, so that the sum is skewed: its
    third cumulant counts the triangles of pairs. Its distribution is approximated by the gamma
    distribution of the same skewness.
    """
    squares = products**2
    n_pairs = squares.sum() ** 2 / (squares**2).sum()
    shape = 4.0 * n_pairs / (3.0 * (gap - 1)) ** 2
    return float((gammaincinv(shape, level) - shape) / np.sqrt(shape))


def _variances(probabilities: np.ndarray) -> np.ndarray:
    """Return the expected sum of squared residuals of each row, (n,)."""
    return (probabilities * (1.0 - probabilities)).sum(axis=1)


def _error_rates(truth: np.ndarray, probabilities: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return for each level the error rate of predictions at least as near to 0 or 1.

    One error is added, which counts in two classes, so that a rate over few rows is not near 0. The
    rate of a level is at most that of the levels below. See :class:`ResidualCorrelation`.
    """
    wrong = weight[:, None] * np.where(probabilities > 0.5, 1.0 - truth, truth)
    every = np.broadcast_to(weight[:, None], wrong.shape)
    levels = level_of(probabilities).ravel()
    n_wrong, n = (
        np.cumsum(np.bincount(levels, each.ravel(), _N_LEVELS)[::-1])[::-1]
        for each in (wrong, every)
    )
    return np.minimum.accumulate((n_wrong + 2.0) / (n + 2.0))


def level_of(probabilities: np.ndarray) -> np.ndarray:
    """Return j where a probability is within 2^-j of 0 or 1, but not within 2^-(j + 1)."""
    far = np.maximum(np.minimum(probabilities, 1.0 - probabilities), 2.0**-_N_LEVELS)
    return np.clip(-np.log2(far), 0, _N_LEVELS - 1).astype(np.int64)


def find_misfit(
    probabilities: np.ndarray,
    labels: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    pairs: Pairs | None = None,
    groups: np.ndarray | None = None,
) -> Misfit | None:
    """Estimate the squared error that pairs of rows along single columns show.

    Of more than ``MAX_ROWS`` rows a sample of so many is examined, the same one for every table of
    as many rows.

    Parameters
    ----------
    probabilities, labels, columns, weights, groups
        As :func:`correlate_residuals` takes them.
    pairs : Pairs, optional
        Whose labels have a part in whose probabilities.

    Returns
    -------
    Misfit or None
        None if no column exceeds z_0. A column is named if its z_c exceeds the quantile of
        :func:`_find_quantile` at 5 % divided by the number of columns and of gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.sureness.residuals import find_misfit
    >>> x = np.random.default_rng(0).random((200, 2))
    >>> labels, even = (x[:, 1] > 0.5).astype(int), np.full((200, 2), 0.5)
    >>> find_misfit(even, labels, x, np.ones(200)).column
    1
    """
    n, p = len(labels), columns.shape[1]
    rows = examined_rows(n)
    values = columns[rows] if len(columns) == n else columns
    truth, variances = np.eye(probabilities.shape[1])[labels], _variances(probabilities)
    residuals = truth - probabilities
    voters, folds = (None, None) if pairs is None else (pairs.voters, pairs.folds)
    folds = np.zeros(n, np.int64) if folds is None else folds
    if voters is not None and voters.shape[1] == n:
        voters = voters[:, rows]
    # Nearly every group has a voter: their votes are taken out instead.
    without = None
    if groups is not None and voters is not None and pairs is not None:
        without, voters = pairs.predict_without_pair, None
    least = ndtri(1.0 - 0.05 / max(p, 1))
    level = 1.0 - 0.05 / max(len(_GAPS) * p, 1)
    sums, errors, largest = (np.zeros(len(_GAPS)) for _ in range(3))
    column, ratio = None, 1.0
    for c in range(p):
        places = np.lexsort((values[:, c], folds[rows]))
        order = rows[places]
        is_voter = np.zeros((max(_GAPS), len(rows)), np.bool_)
        if voters is not None:
            position = np.full(n, -1)
            position[order] = np.arange(len(rows))
            _mark_voters(voters, places, position, is_voter)
        gaps = np.arange(1, min(max(_GAPS), len(rows) - 1) + 1)
        i = np.concatenate([order[:-gap] for gap in gaps])
        j = np.concatenate([order[gap:] for gap in gaps])
        taken = folds[i] == folds[j]
        taken &= ~np.concatenate([is_voter[gap - 1, :-gap] for gap in gaps])
        if groups is not None:
            taken &= groups[i] != groups[j]
        gap_of = np.repeat(gaps, len(rows) - gaps)[taken]
        i, j = i[taken], j[taken]
        both, ours, theirs = weights[i] * weights[j], residuals[i], residuals[j]
        if without is not None:
            # One call for all pairs: each looks up the votes of groups, which takes a while.
            ours, theirs = truth[i] - without(i, j, 0), truth[j] - without(j, i, 0)
        products = both * (ours * theirs).sum(axis=1)
        scales = both * (variances[i] + variances[j]) / 2
        # The first of the two groups comes first, so that a pair of groups has one number.
        swap = np.zeros(len(i), np.bool_) if groups is None else groups[i] > groups[j]
        first, second = np.where(swap, j, i), np.where(swap, i, j)
        for at, gap in enumerate(_GAPS):
            near = gap_of <= gap
            merged = _add_by_groups(products[near], groups, first[near], second[near])
            total, error = products[near].sum(), float(np.sqrt((merged**2).sum()))
            if gap < len(rows) and total > least * error:
                z, scale = total / error, scales[near].sum()
                sums[at] += total / scale * (1.0 - (least / z) ** 2)
                if z > largest[at]:
                    largest[at], errors[at] = z, error / scale
                if z > ratio * (quantile := _find_quantile(level, merged, gap)):
                    column, ratio = c, z / quantile
    if not largest.any():
        return None
    return Misfit(column, float((sums + errors).max()))


def examined_rows(n: int) -> np.ndarray:
    """Return the rows, of n, on which columns are examined: all, or a sample of ``MAX_ROWS``.

    Equal values come in an order that owes nothing to the labels: a file may be sorted by them.
    """
    return np.random.default_rng(0).permutation(n)[:MAX_ROWS]


@kernel
def _mark_voters(voters, places, position, is_voter):
    """Mark pairs of a row and its voter, by their gap and the position of the first of the two."""
    for r in range(voters.shape[0]):
        for own in range(places.size):
            at = position[voters[r, places[own]]]
            gap = at - own
            if at < 0:
                continue
            if 0 < gap <= is_voter.shape[0]:
                is_voter[gap - 1, own] = True
            elif 0 < -gap <= is_voter.shape[0]:
                is_voter[-gap - 1, at] = True


def effective_part(weight: np.ndarray) -> float:
    """Return the effective number of weighted rows, (sum w)^2 / sum w^2, over their number.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.sureness.residuals import effective_part
    >>> effective_part(np.array([2.0, 2.0])), effective_part(np.array([3.0, 1.0]))
    (1.0, 0.8)
    """
    return float(weight.mean() ** 2 / (weight**2).mean())
