"""From class counts to what is said of points: the rule at (beta, k), averaged over their law.

It knows no points and no graph, so that counts may come from anywhere.
"""

from __future__ import annotations

import numpy as np

from bayesknn.predictive.averages import average, average_replicates, moments, sum_votes
from bayesknn.predictive.intervals import find_intervals
from bayesknn.predictive.leave_one_out import leave_one_out
from bayesknn.predictive.nodes import PosteriorNodes
from bayesknn.predictive.quadrature import condense
from bayesknn.predictive.sureness import Description


class PredictiveRule:
    """Eq. trupred for counts of the classes around points.

    Parameters
    ----------
    nodes : PosteriorNodes
    class_weight : ndarray of shape (n_classes,), optional

    Attributes
    ----------
    k_values : ndarray of int
        The k, rising, at which counts are wanted.
    rank : int
        Rank of the neighbour whose distance tells how usual a place is: the mean of k, rounded.
    n_replicates : int
        Replicates of the weights, for Monte Carlo errors.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive import PosteriorNodes, PredictiveRule
    >>> rule = PredictiveRule(PosteriorNodes([4], [2.0], [1.0]))
    >>> rule.average(np.array([[[3, 1]]], dtype=np.int32)).round(4).tolist()
    [[0.7311, 0.2689]]
    """

    def __init__(self, nodes: PosteriorNodes, class_weight: np.ndarray | None = None):
        self.nodes = nodes
        self.class_weight = class_weight
        steepness = 1.0 if class_weight is None else float(class_weight.max())
        self._condensed = condense(nodes, steepness)
        self.k_values = self._condensed.k_values
        self.rank = round(nodes.k_mean)
        self.n_replicates = len(self._condensed.replicates)

    def average(self, counts: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return class probabilities, of shape (m, n_classes).

        Parameters
        ----------
        counts : ndarray of shape (n_k, m, n_classes), dtype int32
            For each of ``k_values``.
        n_jobs : int, optional
            Threads. The result does not depend on it.
        """
        return average(counts, self._condensed, self.class_weight, n_jobs)

    def find_errors(self, counts: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return the Monte Carlo errors of the probabilities that log Z brings."""
        if self.n_replicates == 0:
            return np.zeros(counts.shape[1:])
        return average_replicates(counts, self._condensed, self.class_weight, n_jobs).std(axis=2)

    def describe(
        self,
        counts: np.ndarray,
        distances: np.ndarray,
        level: float | None = None,
        n_jobs: int | None = None,
    ) -> Description:
        """Say all that can be said of points, with credible intervals if a level is given.

        Parameters
        ----------
        counts : ndarray of shape (n_k, m, n_classes), dtype int32
        distances : ndarray of shape (m,)
            To the neighbours at ``rank``.
        level : float, optional
        n_jobs : int, optional
        """
        means, variances = moments(counts, self._condensed, self.class_weight, n_jobs)
        votes = sum_votes(counts, self._condensed, self.class_weight)
        cut = None if level is None else self.cut(counts, level, means, n_jobs=n_jobs)
        return Description(means, variances, votes, distances, cut)

    def describe_left_out(
        self,
        counts: np.ndarray,
        distances: np.ndarray,
        labels: np.ndarray,
        n_jobs: int | None = None,
    ) -> tuple[Description, np.ndarray]:
        """Say the same of training points given the labels of all others.

        Returns
        -------
        Description
        share : ndarray of shape (m,)
            Part of the posterior that the reweighted nodes of each point are worth.
        """
        means, variances, share = leave_one_out(
            counts, labels, self._condensed, self.class_weight, n_jobs
        )
        votes = sum_votes(counts, self._condensed, self.class_weight)
        return Description(means, variances, votes, distances), share

    def cut(
        self,
        counts: np.ndarray,
        level: float,
        mean: np.ndarray,
        own: np.ndarray | None = None,
        n_jobs: int | None = None,
    ) -> np.ndarray:
        """Return credible intervals, of shape (m, n_classes, 2), widened to hold the mean.

        Parameters
        ----------
        counts : ndarray of shape (n_k, m, n_classes), dtype int32
        level : float
        mean : ndarray of shape (m, n_classes)
        own : ndarray of shape (m,), optional
            Own labels of training points, which their intervals are not to have seen.
        n_jobs : int, optional
        """
        found = find_intervals(counts, self.nodes, self.class_weight, level, n_jobs, own)
        np.minimum(found[..., 0], mean, out=found[..., 0])
        np.maximum(found[..., 1], mean, out=found[..., 1])
        return found
