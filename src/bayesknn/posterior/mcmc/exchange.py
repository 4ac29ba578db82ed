"""The exchange algorithm of Murray, Ghahramani and MacKay (2006) on (beta, k) (after Section 3.4).

Propose (beta', k'), draw labels z ~ f(. | beta', k') and offer to exchange: (beta', k') takes the
data y and leaves z to (beta, k). The constants Z cancel in

    rho = exp{beta'/k' S_k'(y) - beta/k S_k(y) + beta/k S_k(z) - beta'/k' S_k'(z)}
        * pi(beta', k') Q(k', k) J(theta') / {pi(beta, k) Q(k, k') J(theta)},

and with perfect draws of z the chain has the posterior as its distribution, exactly. Unlike the
scheme of Moller et al. (``auxiliary.py``) it has no plug-in estimate to choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.posterior.mcmc.label_chains import LabelChain, plan_labels, plan_moves
from bayesknn.posterior.mcmc.runner import sample_posterior

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class ExchangeSampler(LabelChain):
    """The exchange algorithm, by the moves of :class:`LabelChain` as they are."""

    name = "exchange"


def exchange(
    likelihood: CoherentLikelihood,
    prior: Any = None,
    *,
    beta_max: float | None = None,
    label_sampler: str = "swendsen-wang",
    n_sweeps: int | None = None,
    scheme: str = "alternating",
    n_chains: int = 4,
    n_draws: int = 5000,
    n_warmup: int = 1000,
    thin: int = 8,
    tau: float | None = None,
    r: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> xarray.DataTree:
    """Sample (beta, k) by the exchange algorithm.

    Parameters
    ----------
    likelihood : CoherentLikelihood
        Its log Z is not used.
    prior, beta_max
        As in :func:`metropolis`.
    label_sampler : {"swendsen-wang", "perfect", "gibbs"}, default="swendsen-wang"
        How labels are drawn in each move. With perfect draws the chain is exact; the others leave
        a bias if ``n_sweeps`` is too small, which is looked for at the end.
    n_sweeps : int, optional
        Sweeps for each draw: 20 of Swendsen-Wang from the data, or the paper's 500 of Gibbs from
        random labels. Perfect draws need no such number.
    scheme : {"alternating", "joint"}, default="alternating"
        Moves of beta and of k by turns, or the paper's move of both at once.
    thin : int, default=8
        Moves from one draw to the next.
    n_chains, n_draws, n_warmup, tau, r, random_state, n_jobs, verbose
        As in :func:`metropolis`.

    Returns
    -------
    xarray.DataTree
        As of :func:`metropolis`.

    Raises
    ------
    SamplingInterrupted
        On Ctrl-C, a ``KeyboardInterrupt`` that holds the draws finished by then.
    CoalescenceError
        If a perfect draw is not found within a past of 65,536 sweeps.

    Warns
    -----
    MixingWarning
        If the chains did not mix, or the labels were drawn with too few sweeps, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import CoherentLikelihood
    >>> from bayesknn.posterior import exchange
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(40) % 2
    >>> points = rng.normal(size=(40, 2)) + 2 * labels[:, None]
    >>> likelihood = CoherentLikelihood(NeighborGraph.from_points(points, k_max=4), labels)
    >>> tree = exchange(
    ...     likelihood, beta_max=4.0, label_sampler="perfect", n_draws=1000, random_state=0
    ... )
    >>> dict(tree["posterior"].sizes)
    {'chain': 4, 'draw': 1000}
    """
    prior, labels = plan_labels(likelihood, prior, beta_max, label_sampler, n_sweeps)
    moves = plan_moves(prior, scheme, n_warmup, thin, tau, r)
    sampler = ExchangeSampler(prior, *moves, likelihood, labels)
    return sample_posterior(sampler, n_chains, n_draws, random_state, n_jobs, verbose)
