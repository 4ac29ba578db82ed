"""What every likelihood of (beta, k) offers, and what they share (Section 3).

The samplers and the grid of ``bayesknn.posterior`` ask for nothing but :class:`Likelihood`, so that
each of them works with the pseudo-likelihood, with that of Holmes and Adams, and with the coherent
model. It checks the graph and its labels and broadcasts over (beta, k): a likelihood is written by
saying what one k gives.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from bayesknn._utils.checks import check_k, check_label_vector
from bayesknn.graph import NeighborGraph
from bayesknn.model import BoltzmannModel, as_model
from bayesknn.model.boltzmann import check_betas, fingerprint
from bayesknn.model.frequencies import frequencies_of_others


class Likelihood:
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
        As in :class:`bayesknn.model.BoltzmannModel`.

    Attributes
    ----------
    model : BoltzmannModel
    graph, class_weight, n_points, n_classes
        The model's.
    labels : ndarray of shape (n,)
    k_max : int
        Largest k served.
    """

    # What users call it, if they can choose it, and what the report says about it.
    name: str = ""
    description = ""
    # Whether it is the distribution of the model itself, or an approximation.
    coherent = False
    # Whether the points that have i among their k nearest count at i ("both") or not ("forward").
    direction = "both"
    # What the largest beta of the coherent model is multiplied by.
    beta_scale: float = 1.0
    # Whether log f is concave in beta and ``differentiate`` gives its derivatives: the grid then
    # finds its maximum by Newton's method.
    is_concave: bool = False

    graph: NeighborGraph
    class_weight: np.ndarray | None
    n_points: int
    n_classes: int
    k_max: int

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
        self.model: BoltzmannModel = as_model(graph, n_classes, class_weight)
        model = self.model
        self.labels: np.ndarray = model.check_labels(labels)
        self.graph, self.class_weight = model.graph, model.class_weight
        self.n_points, self.n_classes, self.k_max = model.n_points, model.n_classes, model.k_max

    @cached_property
    def fingerprint(self) -> str:
        """A short text that stands for the model and the labels."""
        return fingerprint(self.model.fingerprint, self.labels)

    @classmethod
    def log_evidence_without_neighbors(cls, class_sizes: np.ndarray) -> float:
        """Return what stands for the evidence of labels that know the class frequencies alone."""
        return float(class_sizes @ np.log(frequencies_of_others(class_sizes)))

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
            k = check_k(one_k, self.k_max, "this likelihood")
            values[where] = self._log_density_curve(betas[where], k)
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

    def _log_density_at(self, beta: float, k: int) -> float:
        return float(self._log_density_curve(np.array([beta]), k)[0])

    def _log_density_curve(self, betas: np.ndarray, k: int) -> np.ndarray:
        raise NotImplementedError
