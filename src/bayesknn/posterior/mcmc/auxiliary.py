"""The auxiliary-variable scheme of Moller, Pettitt, Reeves and Berthelsen (2006) (Section 3.4).

A chain on (beta, k, z) whose distribution is the posterior of (beta, k) times the plug-in
distribution of the auxiliary labels, g(z) = f(z | beta_hat, k_hat). With (beta', k') it proposes z'
~ f(. | beta', k'), so that the constants Z cancel in (the paper's first factor should read
Z(beta,k)/Z(beta',k'))

    rho = exp{beta'/k' S_k'(y) - beta/k S_k(y) + beta_hat/k_hat (S_k_hat(z') - S_k_hat(z))
              + beta/k S_k(z) - beta'/k' S_k'(z')}
        * pi(beta', k') Q(k', k) J(theta') / {pi(beta, k) Q(k, k') J(theta)}.

The plug-in starts at the maximum of the pseudo-likelihood and is replaced by an average over the
chain in a first stage (Section 4). The paper does so once, after 10,000 moves, from a chain that
hardly moves while the estimate is bad; here it is done after every doubling of the number of moves,
each time with the moves since the last. The average is the median of k, which unlike the mean is a
value that the chain has seen, and the mean of beta over the moves that ended there. Wherever it is,
the chain is right, but with g far from f(. | beta, k) it sticks: a z that g finds likely and f does
not is not given up for thousands of moves. Given (beta, k) the distribution of z is g itself, so
each move here first refreshes z by a few Swendsen-Wang sweeps at the plug-in, which leave g
invariant. That costs little and frees the chain; without them (``n_refresh=0``) the scheme is the
one of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_count
from bayesknn._utils.jit import kernel
from bayesknn._utils.random import random_bits
from bayesknn.labels.sampling import CompiledSampler, agreement_at, sweep_labels
from bayesknn.labels.swendsen_wang import bond_rate
from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.likelihood.conditionals import PseudoLikelihood
from bayesknn.model import Prior
from bayesknn.model.boltzmann import check_beta
from bayesknn.posterior.mcmc.exchange import (
    DRAW_SLOT,
    ExchangeSampler,
    Problem,
    log_exchange,
    note,
    offer,
    plan_exchange,
)
from bayesknn.posterior.mcmc.proposals import (
    Tuning,
    accept_and_adapt,
    acceptance_probability,
    beta_of,
    iteration_key,
)
from bayesknn.posterior.mcmc.runner import sample_posterior

if TYPE_CHECKING:
    import xarray


REFRESH_SLOT = DRAW_SLOT + 1


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


class AuxiliaryState(NamedTuple):
    """What the next move needs; the first four as in :class:`State`.

    Attributes
    ----------
    plug_in : PlugIn
    labels : ndarray of shape (n,)
        The auxiliary labels z.
    """

    theta: float
    k: int
    log_density: float
    tuning: Tuning
    plug_in: PlugIn
    labels: np.ndarray


@dataclass(frozen=True)
class AuxiliarySampler(ExchangeSampler):
    """The auxiliary-variable scheme, by the moves of :class:`ExchangeSampler` with another ratio.

    Attributes
    ----------
    plug_in : tuple of (float, int)
        The first (beta_hat, k_hat).
    updates : tuple of int
        The numbers of moves after which it is replaced.
    n_refresh : int
    """

    plug_in: tuple[float, int]
    updates: tuple[int, ...]
    n_refresh: int
    name = "auxiliary"
    columns = (*ExchangeSampler.columns, "plug_in_beta", "plug_in_k")

    def start(self, theta: float, k: int) -> AuxiliaryState | None:
        """Return the state at (theta, k), with the data as the auxiliary labels."""
        state = super().start(theta, k)
        if state is None:
            return None
        counts, beta_sums = np.zeros(self.walk.k_max, np.int64), np.zeros(self.walk.k_max)
        plug_in = PlugIn(*self.plug_in, counts, beta_sums)
        theta, k, log_prior, tuning = state
        labels = self.label_sampler.observed
        return AuxiliaryState(theta, k, log_prior, tuning, plug_in, labels)

    def run(
        self, state: AuxiliaryState, key: np.uint64, block: tuple[int, int], problem: Problem,
        sampler: CompiledSampler, moves: np.ndarray,
    ) -> tuple[AuxiliaryState, int]:  # fmt: skip
        """Make a block of moves; return the state and how many points are apart."""
        beta, k, counts, beta_sums = state.plug_in
        # Moves write to these.
        plug_in = PlugIn(beta, k, counts.copy(), beta_sums.copy())
        state = state._replace(labels=state.labels.copy(), plug_in=plug_in)
        refresh = self.n_refresh, self.label_sampler.new_workspace()
        updates = np.array(self.updates, np.int64)
        return run_auxiliary(state, key, block, problem, sampler, refresh, updates, moves)

    def find_problems(self, draws: Mapping[str, np.ndarray], keys: np.ndarray) -> list[str]:
        """Return sentences about chains that stood still, and about the labels drawn."""
        return _find_stuck_chains(draws) + super().find_problems(draws, keys)


def auxiliary(
    likelihood: CoherentLikelihood,
    prior: Any = None,
    *,
    beta_max: float | None = None,
    label_sampler: str = "swendsen-wang",
    n_sweeps: int | None = None,
    plug_in: tuple[float, int] | None = None,
    n_first_stage: int = 500,
    n_plug_ins: int = 6,
    n_refresh: int = 3,
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
    """Sample (beta, k) by the auxiliary-variable scheme of Moller et al.

    Parameters
    ----------
    likelihood : CoherentLikelihood
        Its log Z is not used.
    prior, beta_max, label_sampler, n_sweeps, scheme, thin
        As in :func:`exchange`.
    plug_in : tuple of (beta, k), optional
        The estimate to plug in; there is no first stage then. By default it is found in the first
        stage, starting from the maximum of the pseudo-likelihood.
    n_first_stage : int, default=500
        Draws, before ``n_warmup``, in which each chain finds its plug-in. They are left out of
        the posterior too.
    n_plug_ins : int, default=6
        How often the plug-in is replaced by the average since it was last replaced: at the end
        of the first stage, half-way, a quarter of the way, and so on. 1 is the paper's way.
    n_refresh : int, default=3
        Swendsen-Wang sweeps at the plug-in that refresh the auxiliary labels before each move.
        0 is the paper's way.
    n_chains, n_draws, n_warmup, tau, r, random_state, n_jobs, verbose
        As in :func:`metropolis`.

    Returns
    -------
    xarray.DataTree
        As of :func:`metropolis`.

    Raises
    ------
    SamplingInterrupted, CoalescenceError
        As in :func:`exchange`.

    Warns
    -----
    MixingWarning
        If the chains did not mix, stood still for long, or the labels were drawn with too few
        sweeps, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import CoherentLikelihood
    >>> from bayesknn.posterior import auxiliary
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(40) % 2
    >>> points = rng.normal(size=(40, 2)) + 2 * labels[:, None]
    >>> likelihood = CoherentLikelihood(NeighborGraph.from_points(points, k_max=4), labels)
    >>> tree = auxiliary(likelihood, beta_max=4.0, n_draws=1000, random_state=0)
    >>> dict(tree["posterior"].sizes)
    {'chain': 4, 'draw': 1000}
    """
    sampler = plan_auxiliary(
        likelihood, prior, beta_max, plug_in=plug_in, n_first_stage=n_first_stage,
        n_plug_ins=n_plug_ins, n_refresh=n_refresh, label_sampler=label_sampler, n_sweeps=n_sweeps,
        scheme=scheme, n_warmup=n_warmup, thin=thin, tau=tau, r=r,
    )  # fmt: skip
    how = {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose}
    return sample_posterior(sampler, n_chains, n_draws, **how)


def plan_auxiliary(
    likelihood: CoherentLikelihood,
    prior: Any,
    beta_max: float | None = None,
    *,
    plug_in: tuple[float, int] | None = None,
    n_first_stage: int = 500,
    n_plug_ins: int = 6,
    n_refresh: int = 3,
    n_warmup: int = 1000,
    thin: int = 8,
    **settings: Any,
) -> AuxiliarySampler:
    """Return the sampler of :func:`auxiliary`, which has the same arguments."""
    n_warmup = check_count(n_warmup, "n_warmup", low=0)
    n_refresh = check_count(n_refresh, "n_refresh", low=0)
    updates: tuple[int, ...] = ()
    if plug_in is None:
        n_first_stage = check_count(n_first_stage, "n_first_stage")
        n_plug_ins = check_count(n_plug_ins, "n_plug_ins")
        updates = plan_updates(n_first_stage * check_count(thin, "thin"), n_plug_ins)
        n_warmup += n_first_stage
    moves = plan_exchange(likelihood, prior, beta_max, n_warmup=n_warmup, thin=thin, **settings)
    if plug_in is None:
        estimate = first_plug_in(likelihood, moves.prior)
    else:
        estimate = check_plug_in(plug_in, likelihood)
    return AuxiliarySampler(**vars(moves), plug_in=estimate, updates=updates, n_refresh=n_refresh)


def first_plug_in(likelihood: CoherentLikelihood, prior: Prior) -> tuple[float, int]:
    """Return the maximum of the pseudo-likelihood among the k that the prior allows."""
    maxima = PseudoLikelihood(likelihood.model, likelihood.labels).maximize_each_k(prior.beta_max)
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


def _find_stuck_chains(draws: Mapping[str, np.ndarray]) -> list[str]:
    """Return sentences about chains that stood still for long, which R-hat may not show."""
    sentences = []
    for chain, (beta, k) in enumerate(zip(draws["beta"], draws["k"], strict=True)):
        moved = np.flatnonzero((np.diff(beta) != 0) | (np.diff(k) != 0))
        longest = int(np.diff(np.concatenate([[-1], moved, [len(k) - 1]])).max())
        if longest > max(0.02 * len(k), 20):
            beta_hat, k_hat = (draws[name][chain, -1] for name in ("plug_in_beta", "plug_in_k"))
            sentences.append(
                f"chain {chain} stood still for {longest} of its {len(k)} draws: its auxiliary "
                f"labels suit the plug-in (beta={beta_hat:.3g}, k={k_hat}) and not "
                "the posterior; raise n_first_stage or n_refresh, pass a better plug_in, or "
                "use exchange, which needs none"
            )
    return sentences


@kernel
def _update_plug_in(plug_in, beta, k, n_done, updates):
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


@kernel
def _log_auxiliary(sampler, observed, labels, plug_in, beta, k, to):
    """Log ratio of the likelihoods, of g and of the proposals of the labels.

    ``labels`` are the auxiliary ones, which those drawn may replace.
    """
    kept, at_plug_in = agreement_at(sampler, labels, k, plug_in.k)
    drawn, drawn_at_plug_in = agreement_at(sampler, sampler.labels, to.k, plug_in.k)
    gain = bond_rate(to.beta, to.k) * (observed[to.k - 1] - drawn)
    loss = bond_rate(beta, k) * (observed[k - 1] - kept)
    return gain - loss + bond_rate(plug_in.beta, plug_in.k) * (drawn_at_plug_in - at_plug_in)


@kernel
def run_auxiliary(state, key, block, problem, sampler, refresh, updates, moves):
    """Make the moves from the first of a block up to the last; return the state and n_apart."""
    theta, k, log_prior, tuning, plug_in, labels = state
    walk, observed, (first, last) = problem.walk, problem.observed, block
    for move in range(first, last):
        refresh_key = random_bits(iteration_key(key, move), np.uint64(REFRESH_SLOT))
        sweep_labels(sampler, *refresh, plug_in.beta, plug_in.k, refresh_key, labels)
        to, to_prior, others, n_apart = offer(
            walk, tuning, (theta, k, log_prior), key, move, problem, sampler
        )
        if n_apart > 0:
            return AuxiliaryState(to.theta, to.k, log_prior, tuning, plug_in, labels), n_apart
        acceptance, exchanged = 0.0, 0.0
        if to_prior > -math.inf:
            beta = beta_of(theta, walk.beta_max)
            ratio = _log_auxiliary(sampler, observed, labels, plug_in, beta, k, to)
            acceptance = acceptance_probability(ratio + others)
            # Steps are tuned to what the exchange algorithm would accept: how often this chain
            # does depends on its plug-in, and where that is bad no step would be short enough.
            if move < walk.n_warmup:
                ratio = log_exchange(sampler, observed, beta, k, to)
                exchanged = acceptance_probability(ratio + others)
        accepted, theta, k, tuning = accept_and_adapt(
            walk, tuning, theta, k, to, acceptance, exchanged, move
        )
        if accepted:
            log_prior = to_prior
            labels[:] = sampler.labels
        note(moves, move - first, walk, theta, k, accepted, acceptance)
        plug_in = _update_plug_in(plug_in, beta_of(theta, walk.beta_max), k, move + 1, updates)
        moves[move - first, 4], moves[move - first, 5] = plug_in.beta, plug_in.k
    return AuxiliaryState(theta, k, log_prior, tuning, plug_in, labels), 0
