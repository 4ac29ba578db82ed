"""How sure probabilities are: pooled with local shares, with intervals, and how usual a place is.

``Description`` is what one look at the neighbours of some points gives. ``Sureness`` is learned
from the description of the training points, each left out, and applied to that of new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesknn.predictive.calibration import (
    Calibration,
    DistanceScale,
    fit_calibration,
    local_share,
    pool,
    safe_log,
)
from bayesknn.predictive.nodes import PosteriorNodes
from bayesknn.predictive.true_probability import (
    ResidualCorrelation,
    choose_n_neighbors,
    correlate_residuals,
    find_probability_intervals,
)

# Of the true probability, or of what (beta, k) leave open.
KINDS_OF_INTERVAL = ("probability", "parameters")


class Description(NamedTuple):
    """What the neighbours of m points say.

    Attributes
    ----------
    probabilities : ndarray of shape (m, n_classes)
        Averaged over the law of (beta, k).
    variances : ndarray of shape (m, n_classes)
        Of the probabilities under that law.
    votes : ndarray of shape (m, n_classes)
        What speaks for each class: the mean of ``beta / k`` times its count.
    distances : ndarray of shape (m,)
        To the neighbour at the mean of k, rounded.
    intervals : ndarray of shape (m, n_classes, 2) or None
        Credible ones, if a level was given.
    """

    probabilities: np.ndarray
    variances: np.ndarray
    votes: np.ndarray
    distances: np.ndarray
    intervals: np.ndarray | None = None


class Summary(NamedTuple):
    """What users are told about m points.

    Attributes
    ----------
    probabilities : ndarray of shape (m, n_classes)
    intervals : ndarray of shape (m, n_classes, 2)
    typicality : ndarray of shape (m,)
    """

    probabilities: np.ndarray
    intervals: np.ndarray
    typicality: np.ndarray


@dataclass(frozen=True)
class Sureness:
    """How to pool probabilities, and how far they are off.

    Build one with :meth:`from_leave_one_out`.

    Attributes
    ----------
    calibration : Calibration
    spread : ndarray of shape (n_classes,) or None
        The weights of the distance, where classes differ in spread.
    correlation : ResidualCorrelation
    scale : DistanceScale
    n_effective : float
        How many votes the local shares are worth.
    """

    calibration: Calibration
    spread: np.ndarray | None
    correlation: ResidualCorrelation
    scale: DistanceScale
    n_effective: float

    @classmethod
    def from_leave_one_out(
        cls,
        left_out: Description,
        labels: np.ndarray,
        neighbors: np.ndarray,
        nodes: PosteriorNodes,
        *,
        reverse: bool = True,
        class_weight: np.ndarray | None = None,
    ) -> Sureness:
        """Learn from the training points, each predicted without its label.

        Parameters
        ----------
        left_out : Description
            Of the training points.
        labels : ndarray of shape (n,)
            Their class numbers.
        neighbors : ndarray of shape (k_max, n)
            Their neighbours by rank.
        nodes : PosteriorNodes
        reverse : bool
            Whether a neighbour votes in both directions.
        class_weight : ndarray of shape (n_classes,), optional
            The weights a_g inside the likelihood, whose probabilities are meant for other class
            frequencies than the sample's: each point then counts a_g here, too.

        Returns
        -------
        Sureness
        """
        n_classes = left_out.probabilities.shape[1]
        weight = None if class_weight is None else class_weight[labels]
        votes_of = np.ones(n_classes) if class_weight is None else class_weight
        by_rank = nodes.votes_by_rank
        n_effective = float(by_rank.sum() ** 2 / max((by_rank**2).sum(), 1e-300))
        scale = DistanceScale.from_distances(left_out.distances)
        z = scale.standardise(left_out.distances)
        share = local_share(left_out.votes, n_effective)
        calibration, spread = fit_calibration(left_out.probabilities, share, labels, z, weight)
        log_loo, log_share = safe_log(left_out.probabilities), safe_log(share)
        # One row for each class: what a neighbour of that class says.
        says = np.diag(votes_of)
        doubled = 2.0 if reverse else 1.0

        def without(i: np.ndarray, j: np.ndarray, rank: int) -> np.ndarray:
            vote = doubled * by_rank[rank - 1] * says[labels[j]]
            less = vote.sum(axis=1, keepdims=True) / n_classes
            share = local_share(np.maximum(left_out.votes[i] - vote, 0.0), n_effective)
            return pool(log_loo[i] - (vote - less), safe_log(share), calibration, spread, z[i])

        n_ranks = min(choose_n_neighbors(nodes.k_mean), len(by_rank), len(neighbors))
        pooled = pool(log_loo, log_share, calibration, spread, z)
        correlation = correlate_residuals(
            labels, neighbors[:n_ranks], without, pooled, nodes.k_mean, weight
        )
        return cls(calibration, spread, correlation, scale, n_effective)

    def pool(self, description: Description) -> np.ndarray:
        """Return the pooled probabilities, of shape (m, n_classes)."""
        return pool(
            safe_log(description.probabilities),
            safe_log(local_share(description.votes, self.n_effective)),
            self.calibration,
            self.spread,
            self.scale.standardise(description.distances),
        )

    def intervals(self, description: Description, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return intervals for the true probabilities, and the pooled ones inside them."""
        pooled = self.pool(description)
        found = find_probability_intervals(
            pooled,
            description.variances,
            self.correlation.bound,
            self.scale.relative(description.distances),
            self.scale.exceeds_all(description.distances),
            level,
            self.scale.sorted_distances.size,
        )
        # They are about the pooled ones, shrunk by what n points leave open.
        np.minimum(found[..., 0], pooled, out=found[..., 0])
        np.maximum(found[..., 1], pooled, out=found[..., 1])
        return found, pooled
