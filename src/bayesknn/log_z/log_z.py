"""What a likelihood asks of log Z(beta, k), whoever computes it (Section 3.3).

A :class:`LogZ` gives values and, where they have a Monte Carlo error, replicates of them. It is
exact (:class:`ExactLogZ`), a table (:class:`~bayesknn.log_z.table.PathTable`, or an object of the
user's own in a :class:`GivenLogZ`), or not known before somebody simulates it where the posterior
is (:class:`SimulatedLogZ`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate

from bayesknn._utils.jit import kernel
from bayesknn.model import BoltzmannModel, log_normalizer_exact, plan_elimination

# Maximum number of terms of the exact sums at one beta, all k together. Larger values take longer
# than the sweeps that they save (2e5 terms at 30 beta take about .1 s); smaller ones leave a Monte
# Carlo error where the exact sum is cheap.
_FEW_TERMS = 2e5


class LogZ(ABC):
    """log Z(beta, k) on a range of (beta, k)."""

    @property
    @abstractmethod
    def k_max(self) -> int:
        """Largest k served."""

    @abstractmethod
    def log_normalizer(self, beta: Any, k: int) -> Any:
        """Return log Z at one k, of the shape of ``beta``."""

    def replicates(self, beta: Any, k: int) -> np.ndarray:
        """Return log Z at one k, (n_replicates,) + shape of ``beta``.

        The estimate is row 0, and the only row where log Z has no Monte Carlo error.
        """
        return np.asarray(self.log_normalizer(beta, k))[None]


def is_narrow(model: BoltzmannModel, k: int) -> bool:
    """Return whether elimination at k may be cheap, without a plan of it.

    Every point has k neighbours, so that no order of elimination has a smaller width.
    """
    return min(k, model.n_points - 1) * math.log(model.n_classes) <= math.log(_FEW_TERMS)


def find_exact(model: BoltzmannModel, ks: Iterable[int]) -> list[int]:
    """Return those k, of some in increasing order, at which elimination is cheaper than chains.

    They are the first ones: the larger k, the wider is the graph.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.log_z.log_z import find_exact
    >>> from bayesknn.model import BoltzmannModel
    >>> points = np.random.default_rng(0).normal(size=(80, 2))
    >>> find_exact(BoltzmannModel(NeighborGraph.from_points(points, 40), 2), [1, 3, 5, 20, 40])
    [1, 3, 5]
    """
    exact, n_terms = [], 0.0
    for k in ks:
        if not is_narrow(model, k):
            break
        try:
            n_terms += plan_elimination(model, k).n_entries
        except ValueError:
            break
        if n_terms > _FEW_TERMS:
            break
        exact.append(k)
    return exact


class SimulatedLogZ(LogZ):
    """log Z that is simulated where a posterior is, by the grid, and unknown elsewhere."""

    def __init__(self, model: BoltzmannModel):
        self.model: BoltzmannModel = model

    @property
    def k_max(self) -> int:
        """Largest k of the graph."""
        return self.model.k_max

    def log_normalizer(self, beta: Any, k: int) -> Any:
        """Raise ``ValueError``: log Z is unknown before the grid has simulated it."""
        raise ValueError(
            "the coherent likelihood needs log Z: pass table=path_table(...), or use "
            "grid_posterior, which does without"
        )


class GivenLogZ(LogZ):
    """log Z by an object with ``log_normalizer(beta, k)`` and ``k_max``.

    It is taken as exact unless the object has ``replicates(beta, k)`` too.
    """

    def __init__(self, table: Any):
        self.table: Any = table

    @property
    def k_max(self) -> int:
        """That of the object."""
        return int(self.table.k_max)

    def log_normalizer(self, beta: Any, k: int) -> Any:
        """Return log Z at one k, of the shape of ``beta``."""
        return self.table.log_normalizer(beta, k)

    def replicates(self, beta: Any, k: int) -> np.ndarray:
        """Return log Z at one k, (n_replicates,) + shape of ``beta``."""
        if hasattr(self.table, "replicates"):
            return np.asarray(self.table.replicates(beta, k))
        return super().replicates(beta, k)


class ExactLogZ(LogZ):
    """Exact log Z by variable elimination, kept for reuse.

    For each k it is interpolated in beta by Chebyshev polynomials on [0, 1], [1, 2], [2, 4],
    [4, 8], ..., each computed when it is first asked for. log Z is analytic in beta, so a modest
    degree reaches rounding error.
    """

    def __init__(self, model: BoltzmannModel):
        self.model: BoltzmannModel = model
        self._panels: dict[tuple[int, int], np.ndarray] = {}

    @property
    def k_max(self) -> int:
        """Largest k of the graph."""
        return self.model.k_max

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
