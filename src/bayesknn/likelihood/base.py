"""What every likelihood of (beta, k) offers, and what they share (Section 3).

The samplers and the grid of ``bayesknn.posterior`` ask for nothing but :class:`Likelihood`, so that
each of them works with the pseudo-likelihood, with that of Holmes and Adams, and with the coherent
model. :class:`BaseLikelihood` checks the graph and its labels and broadcasts over (beta, k): a
likelihood is written by saying what one k gives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.model import BoltzmannModel, as_model
from bayesknn.model.boltzmann import fingerprint
from bayesknn.model.checks import check_beta, check_betas, check_label_vector

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


class BaseLikelihood:
    """One set of labels on one graph, and log f(y | beta, k) for all k of the graph.

    Parameters
    ----------
    graph : NeighborGraph or BoltzmannModel
        A model has its classes and weights: then the other arguments are left out.
    labels : array-like of shape (n,)
        Integers in ``0..n_classes - 1``.
    n_classes : int, optional
        By default the largest label plus one.
    class_weight : array-like of shape (n_classes,), optional
        The weights a_g: a neighbour of class g counts a_g in place of 1.
    """

    # Whether it is the law of the model itself, or something that stands in for it.
    coherent = False
    log_z_source: LogZSource = "exact"

    def __init__(
        self,
        graph: NeighborGraph | BoltzmannModel,
        labels: Any,
        n_classes: int | None = None,
        class_weight: Any = None,
    ):
        if n_classes is None and not isinstance(graph, BoltzmannModel):
            n_classes = int(check_label_vector(labels, graph.n_points).max()) + 1
            if n_classes < 2:
                raise ValueError("labels hold class 0 alone; pass n_classes, at least 2")
        self.model = as_model(graph, n_classes, class_weight)
        self.model.refuse_fixed("a likelihood")
        self.labels = self.model.check_labels(labels)

    @property
    def graph(self) -> NeighborGraph:
        """The neighbour graph."""
        return self.model.graph

    @property
    def n_points(self) -> int:
        """Number of training points, n."""
        return self.model.n_points

    @property
    def n_classes(self) -> int:
        """Number of classes, G."""
        return self.model.n_classes

    @property
    def class_weight(self) -> np.ndarray | None:
        """The weights a_g, or None."""
        return self.model.class_weight

    @property
    def k_max(self) -> int:
        """Largest k served."""
        return self.model.k_max

    @cached_property
    def fingerprint(self) -> str:
        """A short text that stands for the model and the labels."""
        return fingerprint(self.model.fingerprint, self.labels)

    def log_z_noise(self, betas: np.ndarray, k: int) -> np.ndarray:
        """Return replicates of log Z at one k less the estimate, (n_replicates, n_betas).

        The estimate itself is row 0, and the only one where log Z has no Monte Carlo error.
        """
        return np.zeros((1, len(betas)))

    def log_density(self, beta: Any, k: Any) -> Any:
        """Return log f(y | beta, k).

        Parameters
        ----------
        beta : float or array-like
        k : int or array-like
            Broadcast against ``beta``.

        Returns
        -------
        float, or ndarray of the common shape
        """
        # Metropolis asks for one value 50,000 times: the common case goes straight through.
        if isinstance(beta, float) and (type(k) is int or isinstance(k, np.integer)):
            if 0.0 <= beta < math.inf and 1 <= k <= self.k_max:
                return self._log_density_at(beta, int(k))
        betas = check_betas(beta)
        try:
            betas, ks = np.broadcast_arrays(betas, k)
        except ValueError:
            raise ValueError(
                f"beta and k cannot be broadcast together: shapes {betas.shape} and {np.shape(k)}"
            ) from None
        values = np.empty(betas.shape)
        for one_k in np.unique(ks):
            where = ks == one_k
            values[where] = self._log_density_curve(betas[where], self._check_k(one_k))
        return float(values) if values.ndim == 0 else values

    def log_density_grid(self, betas: Any) -> np.ndarray:
        """Return log f(y | beta, k) for every k.

        Parameters
        ----------
        betas : array-like of shape (n_betas,)
            Or of any other shape, which then takes the place of ``(n_betas,)``.

        Returns
        -------
        ndarray of shape (k_max, n_betas)
            Row k - 1 belongs to k.
        """
        betas = check_betas(betas, "betas")
        flat = betas.ravel()
        values = np.empty((self.k_max, flat.size))
        for at in range(self.k_max):
            values[at] = self._log_density_curve(flat, at + 1)
        return values.reshape(self.k_max, *betas.shape)

    def maximize_each_k(self, beta_max: float | None = None) -> Maxima:
        """Return the maximum over beta in [0, beta_max] for every k.

        Parameters
        ----------
        beta_max : float, optional
            Without it there is no bound; ``beta`` is then infinite where there is no maximum.

        Returns
        -------
        Maxima
        """
        if beta_max is not None:
            beta_max = check_beta(beta_max, "beta_max")
            if beta_max == 0.0:
                raise ValueError("beta_max must be positive, got 0.0")
        upper = math.inf if beta_max is None else beta_max
        found = list(self._climb_each_k(upper))
        beta, log_value, at_bound = (np.array(column) for column in zip(*found, strict=True))
        return Maxima(beta, log_value, at_bound)

    def maximize(self, beta_max: float | None = None) -> Maximum:
        """Return the maximum over every k and beta in [0, beta_max].

        Parameters
        ----------
        beta_max : float, optional
            Without it there is no bound; ``beta`` is then infinite where there is no maximum.

        Returns
        -------
        Maximum
            ``at_bound`` tells that the likelihood still rises there.
        """
        return self.maximize_each_k(beta_max).best()

    def _check_k(self, k: Any) -> int:
        k = self.graph.check_k(k)
        if k > self.k_max:
            raise ValueError(f"k must be an integer in 1..{self.k_max}, got {k}")
        return k

    def _log_density_at(self, beta: float, k: int) -> float:
        raise NotImplementedError

    def _log_density_curve(self, betas: np.ndarray, k: int) -> np.ndarray:
        raise NotImplementedError

    def _climb_each_k(self, upper: float) -> Iterator[tuple[float, float, bool]]:
        """Yield (beta, log value, whether beta is the bound) for k = 1, 2, ..., k_max."""
        raise NotImplementedError
