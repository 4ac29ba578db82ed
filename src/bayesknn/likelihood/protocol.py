"""What every likelihood of (beta, k) offers, whichever way it is computed (Section 3).

The samplers and the grid of ``bayesknn.posterior`` ask for nothing else, so that each of them
works with the pseudo-likelihood, with that of Holmes and Adams, and with the coherent model.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

# Where log Z comes from: it is part of what is computed exactly, or in a table, or is simulated
# where the posterior is. A product of conditionals has none, and is concave in beta.
LogZSource = Literal["none", "exact", "table", "ridge"]


class Maximum(NamedTuple):
    """Where a likelihood is largest.

    Attributes
    ----------
    k : int
    beta : float
    log_value : float
        The log-likelihood there.
    at_bound : bool
        The likelihood still rises at ``beta_max``: ``beta`` is that bound, not a maximum. This is
        what happens when no point is outvoted by its neighbours. Without a bound ``beta`` is then
        infinite and ``log_value`` is the limit.
    """

    k: int
    beta: float
    log_value: float
    at_bound: bool = False


class Maxima(NamedTuple):
    """Where a likelihood is largest for each k; entry k - 1 of each array belongs to k.

    Attributes
    ----------
    beta, log_value : ndarray of shape (k_max,)
    at_bound : ndarray of shape (k_max,), dtype bool
        As in :class:`Maximum`.
    """

    beta: np.ndarray
    log_value: np.ndarray
    at_bound: np.ndarray

    def best(self) -> Maximum:
        """Return the maximum over k as well, the smallest k where several are equal."""
        at = int(np.argmax(self.log_value))
        return Maximum(
            at + 1, float(self.beta[at]), float(self.log_value[at]), bool(self.at_bound[at])
        )


@runtime_checkable
class Likelihood(Protocol):
    """log f(labels | beta, k) for one set of labels on one graph."""

    @property
    def n_points(self) -> int:
        """Number of training points, n."""
        ...

    @property
    def n_classes(self) -> int:
        """Number of classes, G."""
        ...

    @property
    def k_max(self) -> int:
        """Largest k served."""
        ...

    def log_density(self, beta: Any, k: Any) -> Any:
        """Return log f(y | beta, k); beta and k broadcast, two scalars give a float."""
        ...

    def log_density_grid(self, betas: Any) -> np.ndarray:
        """Return log f(y | beta, k) for every k, of shape (k_max, n_betas)."""
        ...

    def maximize(self, beta_max: float | None = None) -> Maximum:
        """Return the maximum over k and beta in [0, beta_max]."""
        ...
