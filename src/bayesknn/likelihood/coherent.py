"""The coherent likelihood, whose constant Z(beta, k) is not known in closed form (eq. knn).

``log f(y | beta, k) = beta / k * S_k(y) - log Z(beta, k)`` (Section 2.2). The labels enter through
S_k(y) alone. log Z comes from a table: of path sampling (Section 3.3), or exact by variable
elimination, on graphs whose width allows it, such as small ones, or real ones at small k. Without a
table it is simulated where the posterior is, which ``grid_posterior`` does.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate

from bayesknn._utils.checks import check_choice, show
from bayesknn._utils.jit import kernel
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.base import Likelihood, LogZSource
from bayesknn.log_z import log_normalizer_path
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
        if table is not None and not hasattr(table, "log_normalizer"):
            raise ValueError(f"table must have log_normalizer(beta, k), got {show(table)}")
        check_graph = getattr(table, "check_graph", None)
        if check_graph is not None:
            check_graph(self.graph, self.n_classes, self.class_weight)
        self.table: Any = table
        self.log_z_source: LogZSource = "simulation" if table is None else "table"
        if table is not None:
            self.k_max: int = min(self.k_max, table.k_max)

    @classmethod
    def log_evidence_without_neighbors(cls, class_sizes: np.ndarray) -> float:
        """Return the log evidence of labels that are drawn from the class frequencies alone."""
        return log_evidence_of_frequencies(class_sizes)

    def log_z_noise(self, betas: np.ndarray, k: int) -> np.ndarray:
        """Return replicates of log Z at one k less the estimate, (n_replicates, n_betas).

        The estimate itself is row 0, and the only one where log Z has no Monte Carlo error.
        """
        replicates = getattr(self.table, "replicates", None)
        if replicates is None:
            return np.zeros((1, len(betas)))
        values = replicates(betas, k)
        return values - values[0]

    def _log_density_curve(self, betas: np.ndarray, k: int) -> np.ndarray:
        if self.table is None:
            raise ValueError(
                "the coherent likelihood needs log Z: pass table=path_table(...), or use "
                "grid_posterior, which does without"
            )
        return betas / k * self.agreement[k - 1] - self.table.log_normalizer(betas, k)


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
        self.table: ExactTable = ExactTable(self.model)
        self.log_z_source: LogZSource = "table"


class ExactTable:
    """Exact log Z, kept for reuse.

    For each k it is interpolated in beta by Chebyshev polynomials on [0, 1], [1, 2], [2, 4],
    [4, 8], ..., each computed when it is first asked for. log Z is analytic in beta, so a modest
    degree reaches rounding error.
    """

    def __init__(self, model: BoltzmannModel):
        self.model: BoltzmannModel = model
        self.k_max: int = model.k_max
        self._panels: dict[tuple[int, int], np.ndarray] = {}

    def log_normalizer(self, beta: Any, k: int) -> np.ndarray:
        """Return log Z at one k, of the shape of ``beta``."""
        betas = np.asarray(beta)
        values = [self._log_normalizer_at(b, k) for b in betas.ravel().tolist()]
        return np.reshape(values, betas.shape)

    def _log_normalizer_at(self, beta: float, k: int) -> float:
        # beta = m * 2**panel with m in [1/2, 1), so that panel 1 is [1, 2).
        panel = max(math.frexp(beta)[1], 0)
        low, high = (0.0, 1.0) if panel == 0 else (2.0 ** (panel - 1), 2.0**panel)
        if (k, panel) not in self._panels:
            self._panels[k, panel] = self._interpolate(k, low, high)
        return _sum_chebyshev(self._panels[k, panel], (2.0 * beta - low - high) / (high - low))

    def _interpolate(self, k: int, low: float, high: float) -> np.ndarray:
        """Return the Chebyshev coefficients of log Z between two beta."""
        model = self.model

        def log_z(x: Any) -> Any:
            betas = 0.5 * (low + high + (high - low) * x)
            return log_normalizer_exact(model, betas, k)

        # The degree is doubled until the last coefficients are as small as the rounding of log Z.
        for degree in (32, 64, 128, 256, 512, 1024):
            coefficients = chebinterpolate(log_z, degree)
            if np.abs(coefficients[-4:]).max() <= 1e-14 * np.abs(coefficients).max():
                break
        return coefficients


@kernel
def _sum_chebyshev(coefficients, x):
    """Sum the series at x in [-1, 1] by Clenshaw's recurrence."""
    last = 0.0
    before = 0.0
    for degree in range(coefficients.size - 1, 0, -1):
        last, before = coefficients[degree] + 2.0 * x * last - before, last
    return coefficients[0] + x * last - before


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
