"""Marginal distributions of beta and of k, whatever form the posterior of (beta, k) has.

A posterior is a :class:`~bayesknn.posterior.GridPosterior`, or a DataTree with ``posterior/beta``
and ``posterior/k`` over (chain, draw), or a classifier that has the latter as ``posterior_``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator


class Marginals(NamedTuple):
    """The two marginals.

    Attributes
    ----------
    beta_edges : ndarray of shape (n_bins + 1,)
    beta_density : ndarray of shape (n_bins,)
        Posterior probability of each bin over its width.
    k_values, k_probabilities : ndarray of shape (n_k,)
    k_errors : ndarray of shape (n_k,) or None
        Monte Carlo error of the probabilities, where it is known.
    """

    beta_edges: np.ndarray
    beta_density: np.ndarray
    k_values: np.ndarray
    k_probabilities: np.ndarray
    k_errors: np.ndarray | None

    @property
    def beta_middles(self) -> np.ndarray:
        """Middles of the bins of beta."""
        return (self.beta_edges[1:] + self.beta_edges[:-1]) / 2


def find_marginals(posterior: Any, beta_edges: Any = None) -> Marginals:
    """Return the marginals of a posterior.

    Parameters
    ----------
    posterior : GridPosterior, DataTree or fitted classifier
    beta_edges : array-like of shape (n_bins + 1,), optional
        Chosen from the posterior by default.

    Returns
    -------
    Marginals
    """
    if beta_edges is None:
        beta_edges = _choose_edges(posterior)
    beta_edges = np.asarray(beta_edges, dtype=float)
    mass = _beta_mass(posterior, beta_edges)
    return Marginals(beta_edges, mass / np.diff(beta_edges), *_k_marginal(posterior))


def beta_range(posterior: Any) -> tuple[float, float]:
    """Return the range of beta that holds all but 1e-4 of the posterior on either side."""
    if is_grid(posterior):
        order = np.argsort(posterior.betas, axis=None)
        betas, below = posterior.betas.ravel()[order], np.cumsum(posterior.weights.ravel()[order])
        low, high = np.searchsorted(below, [1e-4, 1 - 1e-4])
        return float(betas[max(low - 1, 0)]), float(betas[min(high + 1, len(betas) - 1)])
    beta, _ = find_draws(posterior)
    return float(beta.min()), float(beta.max())


def find_draws(posterior: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the draws of beta and k, each of shape (n_chains, n_draws)."""
    tree = getattr(posterior, "posterior_", posterior)
    try:
        group = tree["posterior"]
        beta, k = np.asarray(group["beta"], dtype=float), np.asarray(group["k"])
    except (KeyError, TypeError, IndexError):
        raise ValueError(
            "a posterior is a GridPosterior, a DataTree with posterior/beta and posterior/k, or a "
            f"fitted classifier with posterior_; got a {type(posterior).__name__}"
        ) from None
    if beta.ndim != 2 or beta.shape != k.shape or beta.size == 0:
        raise ValueError(
            f"beta and k must be over (chain, draw), got shapes {beta.shape} and {k.shape}"
        )
    return beta, k


def is_grid(posterior: Any) -> bool:
    """Whether the posterior is given by weights on a grid."""
    return hasattr(posterior, "weights") and hasattr(posterior, "betas")


def _choose_edges(posterior: Any) -> np.ndarray:
    low, high = beta_range(posterior)
    if is_grid(posterior):
        # There is no noise to smooth: enough bins that the steps are not seen.
        return np.linspace(low, high, 301)
    beta, _ = find_draws(posterior)
    if low == high:
        return np.array([low - 0.05, low + 0.05])
    edges = np.histogram_bin_edges(beta, bins="fd")
    return edges if len(edges) <= 61 else np.linspace(low, high, 61)


def _beta_mass(posterior: Any, edges: np.ndarray) -> np.ndarray:
    if not is_grid(posterior):
        beta, _ = find_draws(posterior)
        return np.histogram(beta, bins=edges)[0] / beta.size
    # The weights are the masses of cells. In a cell the density is not taken as constant: bins
    # that are narrower would show its steps.
    mass = np.zeros(len(edges) - 1)
    for cells, weights in zip(posterior.cells, posterior.weights, strict=True):
        below = PchipInterpolator(cells, np.append(0.0, np.cumsum(weights)))
        mass += np.diff(below(np.clip(edges, cells[0], cells[-1])))
    return mass


def _k_marginal(posterior: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    if is_grid(posterior):
        ks = np.arange(1, posterior.k_max + 1)
        errors = posterior.k_probabilities_error if len(posterior.replicates) else None
        return ks, posterior.k_probabilities, errors
    if hasattr(posterior, "k_probabilities_"):
        errors = getattr(posterior, "k_probabilities_error_", None)
        return np.asarray(posterior.k_values_), np.asarray(posterior.k_probabilities_), errors
    _, k = find_draws(posterior)
    ks = np.arange(k.min(), k.max() + 1)
    return ks, np.bincount((k - k.min()).ravel().astype(int)) / k.size, None
