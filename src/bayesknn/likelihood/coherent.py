"""The coherent likelihood, whose constant Z(beta, k) is not known in closed form (eq. knn).

``log f(y | beta, k) = beta / k * S_k(y) - log Z(beta, k)`` (Section 2.2). The labels enter through
S_k(y) alone. log Z comes from a table: of path sampling (Section 3.3), or exact by variable
elimination, on graphs whose width allows it, such as small ones, or real ones at small k. Without a
table it is simulated where the posterior is, which ``grid_posterior`` does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_choice, show
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.base import Likelihood
from bayesknn.log_z import PathTable, log_normalizer_path
from bayesknn.log_z.log_z import ExactLogZ, GivenLogZ, LogZ, SimulatedLogZ
from bayesknn.model import (
    BoltzmannModel,
    as_model,
    log_evidence_of_frequencies,
    log_normalizer_exact,
)


class CoherentLikelihood(Likelihood):
    """One set of labels under the coherent model.

    Parameters
    ----------
    graph, labels, n_classes, class_weight
        As in :class:`~bayesknn.likelihood.Likelihood`.
    table : PathTable, or object with ``log_normalizer(beta, k)`` and ``k_max``, optional
        log Z on a range of (beta, k), however it was computed. A
        :class:`~bayesknn.likelihood.PathTable` of another graph is refused.

    Attributes
    ----------
    agreement : ndarray of shape (k_max,)
        S_k(y) of the labels; entry k - 1 belongs to k.
    log_z : LogZ

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import CoherentLikelihood
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> likelihood = CoherentLikelihood(ring, [0, 0, 0, 1, 1])
    >>> likelihood.agreement
    array([3.])
    """

    name = "coherent"
    description = (
        "The labels of all rows are one Markov random field (the coherent likelihood). On some "
        "data its probabilities are less sharp than those of the pseudo-likelihood: compare the "
        "log-loss of --model pseudo."
    )
    coherent = True

    def __init__(
        self,
        graph: NeighborGraph | BoltzmannModel,
        labels: Any,
        n_classes: int | None = None,
        class_weight: Any = None,
        table: Any = None,
    ):
        super().__init__(graph, labels, n_classes, class_weight)
        self.agreement: np.ndarray = self.model.agreement(self.labels)
        self.log_z: LogZ = self._take(table)
        if isinstance(self.log_z, PathTable):
            self.log_z.check_graph(self.graph, self.n_classes, self.class_weight)
        self.k_max: int = min(self.k_max, self.log_z.k_max)

    def _take(self, table: Any) -> LogZ:
        if table is None:
            return SimulatedLogZ(self.model)
        if isinstance(table, LogZ):
            return table
        if not hasattr(table, "log_normalizer"):
            raise ValueError(f"table must have log_normalizer(beta, k), got {show(table)}")
        return GivenLogZ(table)

    @classmethod
    def log_evidence_without_neighbors(cls, class_sizes: np.ndarray) -> float:
        """Return the log evidence of labels that are drawn from the class frequencies alone."""
        return log_evidence_of_frequencies(class_sizes)

    def log_z_noise(self, betas: np.ndarray, k: int) -> np.ndarray:
        """Return replicates of log Z at one k less the estimate, (n_replicates, n_betas)."""
        values = self.log_z.replicates(betas, k)
        return values - values[0]

    def _log_density_curve(self, betas: np.ndarray, k: int) -> np.ndarray:
        return betas / k * self.agreement[k - 1] - self.log_z.log_normalizer(betas, k)


class ExactLikelihood(CoherentLikelihood):
    """The coherent likelihood of one set of labels with exact log Z, for every k of the graph.

    The induced width of the graph must allow exact elimination at every k that is asked for; the
    error message tells the width where it does not.

    Parameters
    ----------
    graph, labels, n_classes, class_weight
        As in :class:`~bayesknn.likelihood.Likelihood`.

    Examples
    --------
    On a ring of n points and one neighbour, ``Z = (e^beta + 1)^n + (e^beta - 1)^n``:

    >>> from math import e, log
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import ExactLikelihood
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> likelihood = ExactLikelihood(ring, [0, 0, 0, 1, 1])
    >>> round(likelihood.log_density(1.0, 1), 6)
    -3.587164
    >>> round(3 - log((e + 1) ** 5 + (e - 1) ** 5), 6)
    -3.587164
    """

    def __init__(
        self,
        graph: NeighborGraph | BoltzmannModel,
        labels: Any,
        n_classes: int | None = None,
        class_weight: Any = None,
    ):
        super().__init__(graph, labels, n_classes, class_weight)
        self.log_z: LogZ = ExactLogZ(self.model)


class LogNormalizer(NamedTuple):
    """log Z(beta, k) and its standard error, each a float or an array of the shape of beta."""

    value: Any
    error: Any


def log_normalizer(
    graph: NeighborGraph | BoltzmannModel,
    beta: Any,
    k: int,
    n_classes: int | None = None,
    method: str = "exact",
    class_weight: Any = None,
    *,
    max_bytes: float | None = None,
    tolerance: float | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> LogNormalizer:
    """Compute log Z(beta, k), and how well it is known.

    Parameters
    ----------
    graph, beta, k, n_classes, class_weight
        As in :func:`bayesknn.model.log_normalizer_exact`.
    method : {"exact", "path"}
        ``"exact"``: variable elimination, for graphs of small width (small k). ``"path"``:
        path sampling, for any graph; each call simulates, so ask for all beta at once, or make a
        :func:`~bayesknn.likelihood.path_table` for all k.
    max_bytes : float, optional
        For ``"exact"``: the most memory that the tables may take, 2 GB by default.
    tolerance : float, optional
        For ``"path"``: the standard error that is asked for, .05 by default.
    random_state, n_jobs
        As in :func:`~bayesknn.log_z.log_normalizer_path`; without effect on ``"exact"``.

    Returns
    -------
    value : float, or ndarray of the shape of ``beta``
    error : float, or ndarray of the shape of ``beta``
        The Monte Carlo standard error; 0 for ``"exact"``.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import log_normalizer
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> value, error = log_normalizer(ring, beta=1.0, k=1, n_classes=2)
    >>> round(value, 6), error
    (6.587164, 0.0)
    """
    is_exact = check_choice(method, "method", ("exact", "path")) == "exact"
    name, value = ("tolerance", tolerance) if is_exact else ("max_bytes", max_bytes)
    if value is not None:
        raise ValueError(f"{name} has no effect with method={method!r}; leave it out")
    model = as_model(graph, n_classes, class_weight)
    if is_exact:
        room: dict[str, Any] = {} if max_bytes is None else {"max_bytes": max_bytes}
        log_z = log_normalizer_exact(model, beta, k, **room)
        return LogNormalizer(log_z, 0.0 if np.ndim(log_z) == 0 else np.zeros_like(log_z))
    options: dict[str, Any] = {} if tolerance is None else {"tolerance": tolerance}
    options |= {"random_state": random_state, "n_jobs": n_jobs}
    return LogNormalizer(*log_normalizer_path(model, beta, k, **options))
