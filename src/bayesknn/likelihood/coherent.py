"""The coherent likelihood, whose constant Z(beta, k) is not known (Section 2.2, eq. knn).

``log f(y | beta, k) = beta / k * S_k(y) - log Z(beta, k)``. The labels enter through S_k(y) alone.
log Z comes from a table, or else from simulation along the ridge, which ``grid_posterior`` does:
``log_z_source`` says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize_scalar

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.base import BaseLikelihood


class LogNormalizerTable(Protocol):
    """What a table of log Z offers, however it was computed."""

    @property
    def k_max(self) -> int:
        """Largest k it serves."""
        ...

    @property
    def beta_max(self) -> float:
        """Largest beta it serves."""
        ...

    def log_normalizer(self, beta: Any, k: int) -> Any:
        """Return log Z at one k and one or more beta."""
        ...


class CoherentLikelihood(BaseLikelihood):
    """One set of labels under the coherent model.

    Parameters
    ----------
    graph : NeighborGraph
    labels : array-like of shape (n,)
        Integers in ``0..n_classes - 1``.
    n_classes : int, optional
        By default the largest label plus one.
    class_weight : array-like of shape (n_classes,), optional
        The weights a_g: a directed edge within class g counts a_g in place of 1.
    table : PathTable, or object with ``log_normalizer(beta, k)``, optional
        log Z on a range of (beta, k), however it was computed. A
        :class:`~bayesknn.likelihood.PathTable` of another graph is refused.

    Attributes
    ----------
    agreement : ndarray of shape (k_max,)
        S_k(y) of the labels; entry k - 1 belongs to k.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import CoherentLikelihood
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> likelihood = CoherentLikelihood(ring, [0, 0, 0, 1, 1])
    >>> likelihood.agreement
    array([3.])
    """

    coherent = True

    def __init__(
        self,
        graph: NeighborGraph,
        labels: Any,
        n_classes: int | None = None,
        class_weight: Any = None,
        table: LogNormalizerTable | None = None,
    ):
        super().__init__(graph, labels, n_classes, class_weight)
        self.agreement = self.model.agreement(self.labels)
        check_graph = getattr(table, "check_graph", None)
        if check_graph is not None:
            check_graph(self.graph, self.n_classes, self.class_weight)
        self.table = table
        self.log_z_source = "ridge" if table is None else "table"

    @property
    def k_max(self) -> int:
        """Largest k served."""
        if self.table is None:
            return self.graph.k_max
        return min(self.graph.k_max, self.table.k_max)

    def log_z_noise(self, betas: np.ndarray, k: int) -> np.ndarray:
        """Return replicates of log Z at one k less the estimate, (n_replicates, n_betas)."""
        replicates = getattr(self.table, "replicates", None)
        if replicates is None:
            return super().log_z_noise(betas, k)
        values = replicates(betas, k)
        return values - values[0]

    def _log_density_at(self, beta: float, k: int) -> float:
        return float(self._log_density_curve(np.array([beta]), k)[0])

    def _log_density_curve(self, betas: np.ndarray, k: int) -> np.ndarray:
        if self.table is None:
            raise ValueError(
                "the coherent likelihood needs log Z: pass table=path_table(...), or use "
                "grid_posterior, which does without"
            )
        return betas / k * self.agreement[k - 1] - self.table.log_normalizer(betas, k)

    def _climb_each_k(self, upper: float) -> Iterator[tuple[float, float, bool]]:
        if self.table is not None:
            upper = min(upper, self.table.beta_max)
        for k in range(1, self.k_max + 1):
            # The log-likelihood is concave in beta, since log Z is convex.
            found = minimize_scalar(
                lambda beta, k=k: -self._log_density_at(float(beta), k),
                bounds=(0.0, upper),
                method="bounded",
                options={"xatol": 1e-6},
            )
            at_bound = upper - found.x < 1e-5 * upper
            yield float(found.x), float(-found.fun), bool(at_bound)
