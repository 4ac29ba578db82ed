"""The exchange algorithm of Murray, Ghahramani and MacKay (2006) on (beta, k) (after Section 3.4).

Propose (beta', k'), draw labels z ~ f(. | beta', k') and offer to exchange: (beta', k') takes the
data y and leaves z to (beta, k). The constants Z cancel in

    rho = exp{beta'/k' S_k'(y) - beta/k S_k(y) + beta/k S_k(z) - beta'/k' S_k'(z)}
        * pi(beta', k') Q(k', k) J(theta') / {pi(beta, k) Q(k, k') J(theta)},

and with perfect draws of z the chain has the posterior as its distribution, exactly. Unlike the
scheme of Moller et al. (``auxiliary.py``) it has no plug-in estimate to choose. A move of either is
composed of the same parts: :func:`offer` proposes (beta', k') and draws z there, a log ratio is
computed, and the proposal is taken or left. Moves are made in compiled blocks; ``thin`` moves make
one iteration of :mod:`~bayesknn.posterior.mcmc.runner`. Random numbers of a move are a function of
(key, move), so that blocks may be cut anywhere. A uniform prior and one given by an array become a
table that compiled code interpolates; any other is a function in Python, which is called before
every move, a block of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_choice, check_count
from bayesknn._utils.jit import kernel
from bayesknn._utils.random import random_bits
from bayesknn.exceptions import CoalescenceError
from bayesknn.labels.sampling import (
    MAX_PAST,
    CompiledSampler,
    LabelSampler,
    agreement_at,
    draw_labels,
)
from bayesknn.labels.swendsen_wang import bond_rate
from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.model import ArrayPrior, Prior, UniformPrior, as_prior
from bayesknn.posterior.mcmc.proposals import (
    FREE_SLOT,
    Proposal,
    Walk,
    accept_and_adapt,
    acceptance_probability,
    beta_of,
    iteration_key,
    plan_walk,
    propose,
)
from bayesknn.posterior.mcmc.runner import Sampler, State, sample_posterior

if TYPE_CHECKING:
    import xarray

DRAW_SLOT = FREE_SLOT


class Offer(NamedTuple):
    """A proposal, for which labels have been drawn.

    Attributes
    ----------
    to : Proposal
    log_prior : float
        At the proposal; labels are drawn where it is finite.
    log_others : float
        Log ratio of priors, proposals and Jacobians: what any acceptance ratio contains.
    n_apart : int
        Points on which perfect chains did not meet: with any, the labels are not a draw.
    """

    to: Proposal
    log_prior: float
    log_others: float
    n_apart: int


class Problem(NamedTuple):
    """What stays the same for all moves of a run, as compiled code takes it.

    Attributes
    ----------
    observed : ndarray of shape (k_max,)
        S_k of the data.
    table : ndarray
        The prior; see :func:`tabulate_prior`.
    walk : Walk
    """

    observed: np.ndarray
    table: np.ndarray
    walk: Walk


@dataclass(frozen=True)
class ExchangeSampler(Sampler):
    """A chain that draws labels; see :class:`bayesknn.posterior.mcmc.runner.Sampler`.

    Attributes
    ----------
    label_sampler : LabelSampler
    """

    label_sampler: LabelSampler
    name = "exchange"
    # What is noted of every move: where it ended, whether and how probably it was accepted.
    columns: ClassVar[tuple[str, ...]] = ("beta", "k", "accepted", "acceptance")
    prefer = "threads"

    def start(self, theta: float, k: int) -> Any:
        """Return the state at (theta, k), or None where the prior is zero."""
        log_prior = float(self.prior.log_density(beta_of(theta, self.walk.beta_max), k))
        if not math.isfinite(log_prior):
            return None
        return State(theta, k, log_prior, self.tuning)

    def run(
        self, state: Any, key: np.uint64, block: tuple[int, int], problem: Problem,
        sampler: CompiledSampler, moves: np.ndarray,
    ) -> tuple[Any, int]:  # fmt: skip
        """Make a block of moves; return the state and how many points are apart."""
        return run_exchange(state, key, block, problem, sampler, moves)

    def advance(
        self, state: Any, key: np.uint64, first: int, last: int
    ) -> tuple[Any, dict[str, np.ndarray]]:
        """Make iterations ``first..last - 1``, of ``thin`` moves each."""
        first, last = first * self.thin, last * self.thin
        moves = np.empty((last - first, len(self.columns)))
        sampler = self.label_sampler.compiled()
        table = tabulate_prior(self.prior)
        problem = Problem(self.likelihood.agreement, table, self.walk)
        step = last - first if table.size else 1
        for move in range(first, last, step):
            if table.size == 0:
                to = propose(self.walk, state.tuning, state.theta, state.k, key, move)
                log_prior = float(self.prior.log_density(to.beta, to.k))
                problem = problem._replace(table=np.full((self.walk.k_max, 1), log_prior))
            part = moves[move - first : move - first + step]
            state, n_apart = self.run(state, key, (move, move + step), problem, sampler, part)
            if n_apart:
                beta = beta_of(state.theta, self.walk.beta_max)
                raise CoalescenceError(
                    f"a perfect draw at beta={beta:g}, k={state.k}: {n_apart} of "
                    f"{self.likelihood.n_points} points were still apart after a past of "
                    f"{MAX_PAST} sweeps; lower beta_max, or use label_sampler='swendsen-wang', "
                    "which needs no past but is approximate",
                    MAX_PAST,
                    n_apart,
                )
        kept = dict(zip(self.columns, moves[self.thin - 1 :: self.thin].T, strict=True))
        for name in ("accepted", "acceptance"):
            values = moves[:, self.columns.index(name)]
            kept[name] = values.reshape(-1, self.thin).mean(axis=1)
        for name in {"k", "plug_in_k"} & kept.keys():
            kept[name] = kept[name].astype(np.int64)
        return state, kept

    def describe_data(self) -> str:
        """Return a text that stands for the model and the labels."""
        return self.likelihood.fingerprint

    def attrs(self) -> dict[str, Any]:
        """Return what the result should tell about the run."""
        return {**super().attrs(), "label_sampler": self.label_sampler.method}

    def find_problems(self, draws: Mapping[str, np.ndarray], keys: np.ndarray) -> list[str]:
        """Return a sentence if the labels depend on where their sweeps started."""
        beta, k = draws["beta"], draws["k"]
        # A hundredth of the draws of the run look for a bias, within limits.
        n_probes = int(np.clip(0.01 * beta.size * self.thin, 64, 1024))
        seeds = np.random.SeedSequence(keys.tolist())
        mode = int(np.bincount(k.ravel()).argmax())
        centre = float(beta[k == mode].mean())
        return self.label_sampler.find_bias(centre, mode, seeds.generate_state(n_probes, np.uint64))


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
    sampler = plan_exchange(
        likelihood, prior, beta_max, label_sampler=label_sampler, n_sweeps=n_sweeps, scheme=scheme,
        n_warmup=n_warmup, thin=thin, tau=tau, r=r,
    )  # fmt: skip
    how = {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose}
    return sample_posterior(sampler, n_chains, n_draws, **how)


def plan_exchange(
    likelihood: CoherentLikelihood,
    prior: Any,
    beta_max: float | None = None,
    *,
    label_sampler: str = "swendsen-wang",
    n_sweeps: int | None = None,
    scheme: str = "alternating",
    n_warmup: int = 1000,
    thin: int = 8,
    tau: float | None = None,
    r: int | None = None,
) -> ExchangeSampler:
    """Return the sampler of :func:`exchange`, which has the same arguments."""
    if not likelihood.coherent:
        raise ValueError(
            "drawing labels needs the coherent model: pass a CoherentLikelihood, not "
            f"{type(likelihood).__name__}, or use metropolis"
        )
    sampler = LabelSampler(likelihood.model, likelihood.labels, label_sampler, n_sweeps)
    prior = as_prior(prior, likelihood.model.k_max, beta_max)
    check_choice(scheme, "scheme", ("alternating", "joint"))
    n_warmup, thin = check_count(n_warmup, "n_warmup", low=0), check_count(thin, "thin")
    walk, tuning = plan_walk(prior.beta_max, prior.k_max, scheme, n_warmup * thin, tau, r)
    return ExchangeSampler(prior, walk, tuning, thin, likelihood, sampler)


def tabulate_prior(prior: Prior) -> np.ndarray:
    """Return the density for each k, in equal steps of beta; empty where only Python knows it.

    Of shape (k_max, n_betas). A density that does not depend on beta has one column, its log.
    """
    if type(prior) is ArrayPrior and prior.values.ndim == 2:
        return np.array(prior.values)
    if type(prior) in (UniformPrior, ArrayPrior):
        return prior.log_density(0.0, np.arange(1, prior.k_max + 1))[:, None]
    return np.empty((0, 0))


@kernel
def _log_prior(table, beta_max, beta, k):
    """Log density at (beta, k), by linear interpolation in beta."""
    row = table[k - 1]
    if row.size == 1:
        return row[0]
    last = row.size - 1
    place = beta * (last / beta_max)
    column = min(np.int64(place), last - 1)
    fraction = place - column
    density = row[column] * (1.0 - fraction) + row[column + 1] * fraction
    return math.log(density) if density > 0.0 else -math.inf


@kernel
def offer(walk, tuning, at, key, move, problem, sampler):
    """Propose (beta', k') from ``at``, (theta, k, log prior), and draw labels there."""
    theta, k, log_prior = at
    to = propose(walk, tuning, theta, k, key, move)
    to_prior = _log_prior(problem.table, walk.beta_max, to.beta, to.k)
    n_apart = 0
    if to_prior > -math.inf:
        stream = random_bits(iteration_key(key, move), np.uint64(DRAW_SLOT))
        n_apart = draw_labels(sampler, to.beta, to.k, stream)
    return Offer(to, to_prior, to_prior - log_prior + to.log_correction, n_apart)


@kernel
def log_exchange(sampler, observed, beta, k, to):
    """Log ratio of the two ways to hand out the data and the labels drawn."""
    drawn, to_drawn = agreement_at(sampler, sampler.labels, k, to.k)
    gain = bond_rate(to.beta, to.k) * (observed[to.k - 1] - to_drawn)
    return gain - bond_rate(beta, k) * (observed[k - 1] - drawn)


@kernel
def note(moves, at, walk, theta, k, accepted, acceptance):
    """Note where a move ended and how it went, in the first columns."""
    moves[at, 0], moves[at, 1] = beta_of(theta, walk.beta_max), k
    moves[at, 2], moves[at, 3] = accepted, acceptance


@kernel
def run_exchange(state, key, block, problem, sampler, moves):
    """Make the moves from the first of a block up to the last; return the state and n_apart."""
    theta, k, log_prior, tuning = state
    walk, (first, last) = problem.walk, block
    for move in range(first, last):
        to, to_prior, others, n_apart = offer(
            walk, tuning, (theta, k, log_prior), key, move, problem, sampler
        )
        if n_apart > 0:
            return State(to.theta, to.k, log_prior, tuning), n_apart
        acceptance = 0.0
        if to_prior > -math.inf:
            beta = beta_of(theta, walk.beta_max)
            ratio = log_exchange(sampler, problem.observed, beta, k, to)
            acceptance = acceptance_probability(ratio + others)
        accepted, theta, k, tuning = accept_and_adapt(
            walk, tuning, theta, k, to, acceptance, acceptance, move
        )
        if accepted:
            log_prior = to_prior
        note(moves, move - first, walk, theta, k, accepted, acceptance)
    return State(theta, k, log_prior, tuning), 0
