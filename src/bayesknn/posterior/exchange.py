"""The exchange algorithm of Murray, Ghahramani and MacKay (2006) on (beta, k) (after Section 3.4).

Propose (beta', k'), draw labels z ~ f(. | beta', k') and offer to exchange: (beta', k') takes the
data y and leaves z to (beta, k). The constants Z cancel in

    rho = exp{beta'/k' S_k'(y) - beta/k S_k(y) + beta/k S_k(z) - beta'/k' S_k'(z)}
        * pi(beta', k') Q(k', k) J(theta') / {pi(beta, k) Q(k, k') J(theta)},

and with perfect draws of z the chain has the posterior as its law, exactly. Unlike the scheme of
Moller et al. (``auxiliary.py``) it has no plug-in estimate to choose.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesknn._jit import kernel
from bayesknn._validation import check_count
from bayesknn.labels.bonds import _bond_rate
from bayesknn.labels.random import _bits
from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.model import as_prior
from bayesknn.posterior.auxiliary_labels import plan_label_draws
from bayesknn.posterior.chains import sample_posterior
from bayesknn.posterior.compiled_prior import _log_prior
from bayesknn.posterior.drawer import _agreement_at, _draw_labels
from bayesknn.posterior.label_chains import DRAW_SLOT, LabelChain
from bayesknn.posterior.proposals import (
    Tuning,
    _acceptance,
    _adapt,
    _beta_of,
    _iteration_key,
    _propose,
    plan_walk,
)

if TYPE_CHECKING:
    import xarray


class State(NamedTuple):
    """What the next move needs.

    Attributes
    ----------
    theta : float
        logit(beta / beta_max).
    k : int
    log_prior : float
        At (beta, k).
    tuning : Tuning
    """

    theta: float
    k: int
    log_prior: float
    tuning: Tuning


@dataclass(frozen=True)
class ExchangeSampler(LabelChain):
    """The exchange algorithm; see :class:`bayesknn.posterior.chains.Sampler`."""

    name = "exchange"

    def start(self, theta: float, k: int, log_prior: float) -> State:
        """Return the state at (theta, k)."""
        return State(theta, k, log_prior, self.tuning)

    def run(self, state, key, first, last, problem, given, drawer, moves):
        """Make the moves ``first..last - 1``."""
        return _run_exchange(state, key, first, last, problem, given, drawer, moves)


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
    checkpoint: str | os.PathLike | None = None,
    verbose: int = 0,
) -> xarray.DataTree:
    """Sample (beta, k) by the exchange algorithm.

    Parameters
    ----------
    likelihood : CoherentLikelihood
        Its table of log Z is not used.
    prior : Prior, array-like, callable, optional
        It sets the range of k and beta. Uniform on {1..k_max} x [0, beta_max] by default.
    beta_max : float, optional
        Needed unless ``prior`` knows it.
    label_sampler : {"swendsen-wang", "perfect", "gibbs"}, default="swendsen-wang"
        How labels are drawn in each move. With perfect draws the chain is exact; the others leave
        a bias if ``n_sweeps`` is too small, which is looked for at the end.
    n_sweeps : int, optional
        Sweeps for each draw: 20 of Swendsen-Wang from the data, or the paper's 500 of Gibbs from
        random labels. Perfect draws need no such number.
    scheme : {"alternating", "joint"}, default="alternating"
        Moves of beta and of k by turns, or the paper's move of both at once.
    n_chains : int, default=4
    n_draws : int, default=5000
        Draws of each chain, after warm-up.
    n_warmup : int, default=1000
        Draws at the beginning that adapt tau and r and are left out of the posterior.
    thin : int, default=8
        Moves from one draw to the next.
    tau : float, optional
        Standard deviation of the walk on logit(beta / beta_max). ``None`` adapts it during
        warm-up; joint moves take the paper's, the square root of .05.
    r : int, optional
        Reach of the walk on k. ``None`` adapts it during warm-up; joint moves take the paper's, 3.
    random_state : None, int, SeedSequence, Generator or RandomState
    n_jobs : int, optional
        As in joblib; the result is the same for any number.
    checkpoint : path, optional
        Where to keep what is finished; a run with the same arguments goes on from there.
    verbose : int, default=0
        0 for silence.

    Returns
    -------
    xarray.DataTree
        In ArviZ's layout: ``posterior`` (beta, k over chain and draw), ``sample_stats`` (the share
        of the moves accepted), ``observed_data``, and the same of warm-up.

    Raises
    ------
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
    label_draws = plan_label_draws(likelihood, label_sampler, n_sweeps)
    prior = as_prior(prior, likelihood.graph.k_max, beta_max)
    thin = check_count(thin, "thin")
    walk, tuning = plan_walk(prior.beta_max, prior.k_max, scheme, n_warmup, tau, r)
    walk = walk._replace(n_warmup=walk.n_warmup * thin)
    sampler = ExchangeSampler(likelihood, prior, label_draws, walk, tuning, thin)
    tree = sample_posterior(
        sampler,
        n_chains=n_chains,
        n_draws=n_draws,
        random_state=random_state,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        verbose=verbose,
        labels=likelihood.labels,
        attrs=sampler.attrs(),
    )
    sampler.warn(tree)
    return tree


@kernel
def _log_exchange(observed, beta, k, to_beta, to_k, drawn_k, drawn_to_k):
    """Log ratio of the two ways to hand out the data and the labels drawn."""
    gain = _bond_rate(to_beta, to_k) * (observed[to_k - 1] - drawn_to_k)
    return gain - _bond_rate(beta, k) * (observed[k - 1] - drawn_k)


@kernel
def _run_exchange(state, key, first, last, problem, given, drawer, moves):
    observed, table, walk = problem
    theta, k, log_prior, tuning = state
    beta = _beta_of(theta, walk.beta_max)
    for move in range(first, last):
        to = _propose(walk, tuning, theta, k, key, move)
        to_log_prior = given[0] if given.size else _log_prior(table, walk.beta_max, to.beta, to.k)
        acceptance = 0.0
        if to_log_prior > -math.inf:
            draw_key = _bits(_iteration_key(key, move), np.uint64(DRAW_SLOT))
            n_apart = _draw_labels(drawer, to.beta, to.k, draw_key)
            if n_apart > 0:
                return State(to.theta, to.k, log_prior, tuning), n_apart
            drawn_k, drawn_to_k = _agreement_at(drawer, drawer.labels, k, to.k)
            log_ratio = _log_exchange(observed, beta, k, to.beta, to.k, drawn_k, drawn_to_k)
            log_ratio += to_log_prior - log_prior
            acceptance = _acceptance(log_ratio + to.log_correction)
        accepted = to.uniform < acceptance
        if accepted:
            theta, beta, k, log_prior = to.theta, to.beta, to.k, to_log_prior
        tuning = _adapt(walk, tuning, theta, k, acceptance, move)
        at = move - first
        moves.beta[at], moves.k[at] = beta, k
        moves.accepted[at], moves.acceptance[at] = accepted, acceptance
    return State(theta, k, log_prior, tuning), 0
