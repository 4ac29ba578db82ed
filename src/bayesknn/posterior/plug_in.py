"""The plug-in estimate of the auxiliary-variable scheme, and how it is found (Section 4).

It starts at the maximum of the pseudo-likelihood and is replaced by an average over the chain.
The paper does so once, after 10,000 moves, from a chain that hardly moves while the estimate is
bad; here it is done after every doubling of the number of moves, each time with the moves since
the last. The average is the median of k, which unlike the mean is a value that the chain has
seen, and the mean of beta over the moves that ended there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.likelihood.products import PseudoLikelihood
from bayesknn.model import Prior
from bayesknn.model.checks import check_beta


class PlugIn(NamedTuple):
    """The plug-in estimate and what the next one is made of.

    Attributes
    ----------
    beta : float
    k : int
    counts : ndarray of shape (k_max,), dtype int64
        How many moves have ended at each k since the estimate was last replaced.
    beta_sums : ndarray of shape (k_max,)
        The sum of beta over them.
    """

    beta: float
    k: int
    counts: np.ndarray
    beta_sums: np.ndarray


def first_plug_in(likelihood: CoherentLikelihood, prior: Prior) -> tuple[float, int]:
    """Return the maximum of the pseudo-likelihood among the k that the prior allows."""
    pseudo = PseudoLikelihood(
        likelihood.graph, likelihood.labels, likelihood.n_classes, likelihood.class_weight
    )
    maxima = pseudo.maximize_each_k(prior.beta_max)
    at = int(np.argmax(maxima.log_value[: prior.k_max]))
    return float(maxima.beta[at]), at + 1


def check_plug_in(plug_in: Any, likelihood: CoherentLikelihood) -> tuple[float, int]:
    """Return the user's plug-in as (beta, k), or say what is wrong with it."""
    try:
        beta, k = plug_in
    except (TypeError, ValueError):
        raise ValueError(f"plug_in must be a pair (beta, k), got {plug_in!r}") from None
    return check_beta(beta, "beta of plug_in"), likelihood.graph.check_k(k)


def plan_updates(n_moves: int, n_plug_ins: int) -> tuple[int, ...]:
    """Return after which moves to replace the plug-in: the last, half of it, a quarter, ..."""
    halves = {n_moves >> j for j in range(n_plug_ins)}
    return tuple(sorted(halves - {0}))


@kernel
def _follow(plug_in, beta, k, n_done, updates):
    """Count a move that ended at (beta, k), and replace the plug-in when it is time."""
    if updates.size == 0 or n_done > updates[-1]:
        return plug_in
    counts, beta_sums = plug_in.counts, plug_in.beta_sums
    counts[k - 1] += 1
    beta_sums[k - 1] += beta
    if not np.any(updates == n_done):
        return plug_in
    at = np.searchsorted(2 * np.cumsum(counts), counts.sum())
    beta = beta_sums[at] / counts[at]
    counts[:] = 0
    beta_sums[:] = 0.0
    return PlugIn(beta, at + 1, counts, beta_sums)
