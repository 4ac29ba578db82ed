"""Class probabilities calibrated by the local proportion of each class among the neighbours.

A softmax of ``beta`` times the proportions among the neighbours is a fixed link: its probabilities
need not tend to P(y | x) as n grows. The calibrated probabilities q are, with the weights w of the
nodes (beta_j, k_j) of the posterior::

    S_g = sum_j w_j beta_j / k_j count_g(k_j)              votes of class g around the point
    share_g = (k_eff S_g / sum S + 1 / G) / (k_eff + 1)    k_eff: how many votes that is worth
    q = softmax(t log p + s log share + b z)

t and s, not negative, maximise the leave-one-out log score less a penalty for leaving (1, 0). The
term b_g z, z the standardised log distance to the k-th neighbour, is for classes that differ in
spread, where the neighbours of outliers belong to the denser class; it is kept only if the score
gains clearly.

Where class g makes up p_g of what is to be predicted and n_g / n of the sample, its odds are
multiplied by ``a_g = p_g n / n_g``, which is Bayes' rule for feature values that are distributed
alike within each class. The paper puts the same a_g inside the likelihood instead.

Everything here takes arrays, from whichever classifier they come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import softmax

from bayesknn._utils.jit import kernel
from bayesknn.graph import Incidence
from bayesknn.predictive.averages import RawPrediction
from bayesknn.sureness.conditional_logit import fit_conditional_logit
from bayesknn.sureness.residuals import Pairs

# Nearest rows that each row is paired with, at most. More cost time and memory, fewer make the
# estimate of the correlation less certain.
MOST_PAIRS = 15


class Calibration(NamedTuple):
    """Exponents by which probabilities and local proportions are combined.

    Attributes
    ----------
    t : float
        Exponent of the probability; 1 if it is not changed.
    s : float
        Exponent of the local proportion; 0 if it is not used.
    """

    t: float
    s: float


class DistanceScale(NamedTuple):
    """Distribution of the training points' distances to their k-th neighbour.

    Attributes
    ----------
    sorted_distances : ndarray of shape (n,)
    median : float
    log_mean, log_sd : float
        Of the logs of the distances over the median.
    """

    sorted_distances: np.ndarray
    median: float
    log_mean: float
    log_sd: float

    @classmethod
    def from_distances(cls, distances: Any) -> DistanceScale:
        """Take the training points' distances, themselves left out."""
        values = np.sort(np.asarray(distances, dtype=np.float64))
        # Where half of the points are copies of others, the mean of the rest is the scale.
        median = float(np.median(values)) or float(values.mean()) or 1.0
        logs = np.log(np.maximum(values / median, 1e-3))
        return cls(values, median, float(logs.mean()), float(logs.std()))

    def relative(self, distances: Any) -> np.ndarray:
        """Return distances in units of the median."""
        return np.asarray(distances) / self.median

    def standardise(self, distances: Any) -> np.ndarray:
        """Return the standardised log of distances, at most 3 away from 0: outliers do not pull."""
        logs = np.log(np.maximum(self.relative(distances), 1e-3)) - self.log_mean
        if self.log_sd == 0:
            return np.zeros_like(logs)
        return np.clip(logs / self.log_sd, -3.0, 3.0)

    def typicality(self, distances: Any) -> np.ndarray:
        """Return the share of training points that are at least as far from their neighbours."""
        n = self.sorted_distances.size
        return (n - np.searchsorted(self.sorted_distances, distances, side="left")) / n


def local_share(support: np.ndarray, n_effective: float) -> np.ndarray:
    """Turn votes into shares of the classes, shrunk to equal ones as if by one vote more."""
    n_classes = support.shape[-1]
    total = support.sum(axis=-1, keepdims=True)
    even = np.full_like(support, 1.0 / n_classes)
    parts = np.divide(support, total, out=even, where=total > 0)
    return (n_effective * parts + 1.0 / n_classes) / (n_effective + 1.0)


def pool_with_share(
    log_probabilities: np.ndarray,
    log_share: np.ndarray,
    calibration: Calibration,
    spread: np.ndarray | None,
    z: np.ndarray,
) -> np.ndarray:
    """Return the pooled probabilities.

    Parameters
    ----------
    log_probabilities, log_share : ndarray of shape (m, n_classes)
    calibration : Calibration
    spread : ndarray of shape (n_classes,) or None
        The b_g.
    z : ndarray of shape (m,)
        Standardised log distances.

    Returns
    -------
    ndarray of shape (m, n_classes)
    """
    fields = calibration.t * log_probabilities + calibration.s * log_share
    if spread is not None:
        fields += z[..., None] * spread
    return softmax(fields, axis=-1)


def safe_log(values: np.ndarray) -> np.ndarray:
    """Return the log, of 1e-300 where a value is smaller."""
    return np.log(np.maximum(values, 1e-300))


def fit_calibration(
    loo: np.ndarray,
    share: np.ndarray,
    labels: np.ndarray,
    z: np.ndarray,
    weight: np.ndarray,
) -> tuple[Calibration, np.ndarray | None]:
    """Choose the exponents by the leave-one-out log score.

    Parameters
    ----------
    loo, share : ndarray of shape (n, n_classes)
        Leave-one-out probabilities and local shares.
    labels : ndarray of shape (n,)
        Class numbers.
    z : ndarray of shape (n,)
        Standardised log distances; if all are 0 there is no term for unequal spread.
    weight : ndarray of shape (n,)
        How much each point counts, where the sample is to stand for other class frequencies.

    Returns
    -------
    calibration : Calibration
    spread : ndarray of shape (n_classes,) or None
        The b_g, where they gain enough.
    """
    n_classes = loo.shape[1]
    features = np.stack([safe_log(loo), safe_log(share)], axis=2)
    # Standard deviations of .5 for (t - 1, s) and .25 for b are weak against a hundred points.
    prior: dict[str, Any] = {"b_mean": (1.0, 0.0), "b_sd": 0.5, "weight": weight}
    fit, spread = fit_conditional_logit(features, labels, **prior), None
    if np.any(z):
        richer = fit_conditional_logit(features, labels, covariate=z, alpha_sd=0.25, **prior)
        # What as many free parameters gain by chance is half of their number.
        if richer.log_posterior > fit.log_posterior + 2 * (n_classes - 1):
            fit, spread = richer, richer.alpha
    return Calibration(*fit.b.tolist()), spread


@dataclass(frozen=True)
class Calibrator:
    """Calibration of probabilities that neighbours vote for, by leave-one-out.

    Build one with :meth:`fit`.

    Attributes
    ----------
    calibration : Calibration
    spread : ndarray of shape (n_classes,) or None
        Weights of the distance, where classes differ in spread.
    scale : DistanceScale
        Of the training rows.
    votes_by_rank : ndarray of shape (k_max,)
        Mean vote of a neighbour at each rank, ``beta / k`` over the k that reach it.
    """

    calibration: Calibration
    spread: np.ndarray | None
    scale: DistanceScale
    votes_by_rank: np.ndarray

    @classmethod
    def fit(
        cls,
        left_out: RawPrediction,
        labels: np.ndarray,
        votes_by_rank: np.ndarray,
        weights: np.ndarray,
    ) -> Calibrator:
        """Choose the exponents by the predictions of the training rows, each left out.

        Parameters
        ----------
        left_out : RawPrediction
        labels : ndarray of shape (n,)
            Class indices.
        votes_by_rank : ndarray of shape (k_max,)
        weights : ndarray of shape (n,)
            Weights of the rows.

        Returns
        -------
        Calibrator
        """
        scale = DistanceScale.from_distances(left_out.distances)
        z = scale.standardise(left_out.distances)
        share = local_share(left_out.votes, _effective_number(votes_by_rank))
        calibration, spread = fit_calibration(left_out.probabilities, share, labels, z, weights)
        return cls(calibration, spread, scale, votes_by_rank)

    def calibrate(self, raw: RawPrediction) -> np.ndarray:
        """Return the calibrated probabilities, of shape (m, n_classes)."""
        z = self.scale.standardise(raw.distances)
        return self._pool(safe_log(raw.probabilities), raw.votes, z)

    def find_pairs(
        self,
        left_out: RawPrediction,
        labels: np.ndarray,
        neighbors: np.ndarray,
        n_votes: float,
        class_weight: np.ndarray,
        reverse: bool,
        groups: np.ndarray | None = None,
        incidence: Incidence | None = None,
    ) -> Pairs:
        """Pair the training rows with their nearest, whose votes can be taken out.

        Parameters
        ----------
        left_out : RawPrediction
        labels : ndarray of shape (n,)
        neighbors : ndarray of shape (k_max, n)
            Neighbours by rank. Without groups the first ``MOST_PAIRS`` will do if the pairs' voters
            are replaced.
        n_votes : float
            Mean number of neighbours that vote.
        class_weight : ndarray of shape (n_classes,)
            Factors a_g of the votes.
        reverse : bool
            Whether a neighbour votes in both directions.
        groups : ndarray of shape (n,), optional
            Group numbers of the rows: the votes of the whole group of a row are taken out.
        incidence : Incidence, optional
            Edges in both directions, where there are groups and a neighbour votes in both.

        Returns
        -------
        Pairs
        """
        by_rank, n_classes = self.votes_by_rank, len(class_weight)
        log_loo, z = safe_log(left_out.probabilities), self.scale.standardise(left_out.distances)
        n_voters = self._count_voters()
        if groups is not None:
            edges = _list_forward(neighbors) if incidence is None else incidence
            of_groups = _sum_votes(by_rank[:n_voters], edges, groups, labels, n_classes)
        # One row for each class: the vote of a neighbour of that class.
        vote_matrix = np.diag(class_weight) * (2.0 if reverse else 1.0)

        def predict_without_pair(i: np.ndarray, j: np.ndarray, rank: int) -> np.ndarray:
            if groups is None:
                vote = by_rank[rank - 1] * vote_matrix[labels[j]]
            else:
                vote = look_up(of_groups, i, groups[j], n_classes) * class_weight
            less = vote.sum(axis=1, keepdims=True) / n_classes
            return self._pool(log_loo[i] - (vote - less), left_out.votes[i] - vote, z[i])

        n_ranks = int(np.clip(int(n_votes / 5), 3, MOST_PAIRS))
        n_ranks = min(n_ranks, len(by_rank), len(neighbors))
        return Pairs(neighbors[:n_ranks], predict_without_pair, self.list_voters(neighbors))

    def list_voters(self, neighbors: np.ndarray) -> np.ndarray:
        """Return the neighbours by rank whose votes count."""
        return neighbors[: self._count_voters()]

    def _count_voters(self) -> int:
        # A rank counts as a voter if its vote is above a hundredth of that of the first rank.
        by_rank = self.votes_by_rank
        return int(np.count_nonzero(by_rank > 0.01 * by_rank[0]))

    def _pool(self, log_probabilities: np.ndarray, votes: np.ndarray, z: np.ndarray) -> np.ndarray:
        share = local_share(np.maximum(votes, 0.0), _effective_number(self.votes_by_rank))
        return pool_with_share(log_probabilities, safe_log(share), self.calibration, self.spread, z)


def _list_forward(neighbors: np.ndarray) -> Incidence:
    """Return the edges of each row to its own neighbours."""
    k_max, n = neighbors.shape
    starts = np.arange(n + 1) * k_max
    return Incidence(starts, neighbors.T.ravel(), np.zeros_like(neighbors))


def _sum_votes(
    by_rank: np.ndarray, edges: Incidence, groups: np.ndarray, labels: np.ndarray, n_classes: int
) -> csr_array:
    """Return the votes for each class that each row has from each group.

    A sparse array of shape (n, n_groups * n_classes): the class varies fastest.
    """
    # Edges of rank r + 1 to a row: its own neighbour, and the rows whose neighbour it is.
    n_ranks = min(by_rank.size, edges.in_degree.shape[0])
    in_degree = edges.in_degree[:n_ranks].astype(np.int64)
    n_edges = 1 + np.diff(in_degree, axis=0, prepend=0)
    starts = np.append(0, np.cumsum(n_edges.sum(axis=0)))
    votes = np.repeat(np.tile(by_rank[:n_ranks], len(labels)), n_edges.T.ravel())
    skipped = np.repeat(edges.starts[:-1] - starts[:-1], np.diff(starts))
    points = edges.points[skipped + np.arange(starts[-1])]
    columns = groups[points] * n_classes + labels[points]
    shape = (len(labels), (int(groups.max()) + 1) * n_classes)
    summed = csr_array((votes, columns, starts), shape=shape)
    summed.sum_duplicates()
    return summed


def look_up(table: csr_array, rows: np.ndarray, groups: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the votes of one group in rows of a table (:func:`_sum_votes`), (n_rows, n_classes).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from bayesknn.sureness.calibration import look_up
    >>> table = csr_array([[0.0, 2.0, 0.0, 3.0], [4.0, 0.0, 0.0, 0.0]])
    >>> look_up(table, np.array([0, 1, 0]), np.array([1, 1, 0]), 2).tolist()
    [[0.0, 3.0], [0.0, 0.0], [0.0, 2.0]]
    """
    values = np.zeros((len(rows), n_classes))
    first = groups.astype(np.int64) * n_classes
    _look_up(table.indptr, table.indices, table.data, rows, first, values)
    return values


@kernel
def _look_up(starts, columns, values, rows, first, taken):
    """Copy the entries of some rows of a sparse array, from a column on, to rows of ``taken``."""
    for q in range(rows.size):
        at, end = starts[rows[q]], starts[rows[q] + 1]
        at += np.searchsorted(columns[at:end], first[q])
        while at < end and columns[at] < first[q] + taken.shape[1]:
            taken[q, columns[at] - first[q]] = values[at]
            at += 1


def _effective_number(votes: np.ndarray) -> float:
    """Return the number of equal votes with the same variance, (sum v)^2 / sum v^2."""
    return float(votes.sum() ** 2 / max((votes**2).sum(), 1e-300))


def shift_probabilities(probabilities: np.ndarray, ratios: np.ndarray | None) -> np.ndarray:
    """Multiply the odds of each class.

    Parameters
    ----------
    probabilities : ndarray of shape (m, n_classes)
    ratios : ndarray of shape (n_classes,) or None

    Returns
    -------
    ndarray of shape (m, n_classes)
    """
    if ratios is None:
        return probabilities
    shifted = probabilities * ratios
    shifted /= shifted.sum(axis=-1, keepdims=True)
    return shifted


def shift_intervals(
    intervals: np.ndarray, probabilities: np.ndarray, ratios: np.ndarray | None
) -> np.ndarray:
    """Move the ends of intervals on the logit scale as the probabilities inside them move.

    Against all other classes together, whose mean ratio is r_g, the odds of class g are multiplied
    by a_g / r_g. With more than two classes that is not a_g alone.

    Parameters
    ----------
    intervals : ndarray of shape (m, n_classes, 2)
    probabilities : ndarray of shape (m, n_classes)
        Before the shift, inside the intervals.
    ratios : ndarray of shape (n_classes,) or None

    Returns
    -------
    ndarray of shape (m, n_classes, 2)
    """
    if ratios is None:
        return intervals
    others = (probabilities @ ratios)[..., None] - ratios * probabilities
    rest = np.maximum(1.0 - probabilities, 0.0)
    mean_ratio = np.divide(others, rest, out=np.ones_like(rest), where=rest > 1e-12)
    # An empty rest has no ratio of its own; its odds are infinite either way.
    factor = (ratios / np.maximum(mean_ratio, 1e-300))[..., None]
    return factor * intervals / (factor * intervals + (1.0 - intervals))
