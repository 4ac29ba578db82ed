"""Metropolis-Hastings on (beta, k) for any likelihood that can be computed (Section 3.1).

Three schemes. ``"joint"`` is the paper's random walk: beta on the logit scale and k by Q_r, both
at once. ``"alternating"`` makes the same moves by turns, tuned in warm-up. ``"hybrid-gibbs"``
draws k from its full conditional, which takes all K likelihoods, and then makes a Metropolis step
on beta. The acceptance probability is that of the paper,

    rho = f(y | beta', k') pi(beta', k') Q_r(k', k) J(theta')
        / f(y | beta, k)   pi(beta, k)   Q_r(k, k') J(theta).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_choice
from bayesknn.model import as_prior
from bayesknn.model.boltzmann import fingerprint
from bayesknn.posterior.mcmc.proposals import (
    FREE_SLOT,
    SCHEDULES,
    accept_and_adapt,
    acceptance_probability,
    beta_of,
    plan_walk,
    propose,
    uniform_at,
)
from bayesknn.posterior.mcmc.runner import Sampler, State, sample_posterior

if TYPE_CHECKING:
    import xarray


class Info(NamedTuple):
    """What a diagnostic needs about one step.

    Attributes
    ----------
    beta : float
    k : int
    log_posterior : float
        Where the step ended, up to a constant.
    accepted : bool
    acceptance : float
        Probability with which the proposal was to be accepted.
    """

    beta: float
    k: int
    log_posterior: float
    accepted: bool
    acceptance: float


@dataclass(frozen=True)
class MetropolisSampler(Sampler):
    """Metropolis-Hastings on a likelihood; see :class:`bayesknn.posterior.mcmc.runner.Sampler`."""

    name = "metropolis"

    def log_density(self, beta: float, k: int) -> float:
        """Log of likelihood times prior; the likelihood is not asked where the prior is zero."""
        log_prior = self.prior.log_density(beta, k)
        if not log_prior > -math.inf:
            return -math.inf
        return float(log_prior + self.likelihood.log_density(beta, k))

    def start(self, theta: float, k: int) -> State | None:
        """Return the state at (theta, k), or None where the posterior is zero."""
        log_density = self.log_density(beta_of(theta, self.walk.beta_max), k)
        return State(theta, k, log_density, self.tuning) if math.isfinite(log_density) else None

    def step(self, state: State, key: np.uint64, iteration: int) -> tuple[State, Info]:
        """Make one iteration."""
        theta, k, log_density, tuning = state
        to = propose(self.walk, tuning, theta, k, key, iteration)
        proposed = self.log_density(to.beta, int(to.k))
        acceptance = acceptance_probability(proposed - log_density + to.log_correction)
        accepted, theta, k, tuning = accept_and_adapt(
            self.walk, tuning, theta, k, to, acceptance, acceptance, iteration
        )
        log_density = proposed if accepted else log_density
        info = Info(beta_of(theta, self.walk.beta_max), int(k), log_density, accepted, acceptance)
        return State(theta, int(k), log_density, tuning), info

    def advance(
        self, state: State, key: np.uint64, first: int, last: int
    ) -> tuple[State, dict[str, np.ndarray]]:
        """Make iterations ``first..last - 1``."""
        infos = []
        for iteration in range(first, last):
            state, info = self.step(state, key, iteration)
            infos.append(info)
        columns = zip(Info._fields, zip(*infos, strict=True), strict=True)
        return state, {name: np.array(values) for name, values in columns}

    def describe_data(self) -> str:
        """Return a text that stands for the likelihood.

        Functions have nothing in common but their values, so some of those do: to nine digits,
        because machines differ in the last ones.
        """
        rng = np.random.default_rng(0)
        betas = rng.uniform(0, self.walk.beta_max, 64).tolist()
        ks = rng.integers(1, self.walk.k_max, 64, endpoint=True).tolist()
        values = [self.likelihood.log_density(*at) for at in zip(betas, ks, strict=True)]
        return fingerprint([f"{float(value):.9g}" for value in values])


@dataclass(frozen=True)
class HybridGibbsSampler(MetropolisSampler):
    """A draw of k from its full conditional, and a Metropolis step of beta."""

    def log_densities(self, beta: float) -> np.ndarray:
        """Log of likelihood times prior for every k; minus infinity where it is not a number."""
        values = np.array(self.prior.log_density(beta, np.arange(1, self.walk.k_max + 1)))
        for at in np.flatnonzero(values > -math.inf).tolist():
            # One k at a time: likelihoods are at their fastest for a single number.
            values[at] += self.likelihood.log_density(beta, at + 1)
        return np.where(np.isnan(values), -math.inf, values)

    def step(self, state: State, key: np.uint64, iteration: int) -> tuple[State, Info]:
        """Make one iteration."""
        values = self._memory(beta_of(state.theta, self.walk.beta_max))
        k, log_density = _draw_k(values, uniform_at(key, iteration, FREE_SLOT))
        return super().step(state._replace(k=k, log_density=log_density), key, iteration)

    @cached_property
    def _memory(self) -> Callable[[float], np.ndarray]:
        """``log_densities`` that knows its last result: beta often stays where it is."""
        return lru_cache(maxsize=1)(self.log_densities)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_memory"}


def metropolis(
    likelihood: Any,
    prior: Any = None,
    *,
    beta_max: float | None = None,
    scheme: str = "alternating",
    n_chains: int = 4,
    n_draws: int = 5000,
    n_warmup: int = 1000,
    tau: float | None = None,
    r: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> xarray.DataTree:
    """Sample (beta, k) by Metropolis-Hastings.

    Parameters
    ----------
    likelihood : object
        Anything with ``k_max`` and ``log_density(beta, k)``.
    prior : Prior, array-like, callable, optional
        It sets the range of k and beta. Uniform on {1..k_max} x [0, beta_max] by default.
    beta_max : float, optional
        Needed unless ``prior`` knows it.
    scheme : {"alternating", "joint", "hybrid-gibbs"}, default="alternating"
        Moves of beta and of k by turns, the paper's move of both at once, or k from its full
        conditional and a move of beta.
    n_chains : int, default=4
    n_draws : int, default=5000
        Draws of each chain, after warm-up.
    n_warmup : int, default=1000
        Draws at the beginning that adapt tau and r and are left out of the posterior.
    tau : float, optional
        Standard deviation of the walk on logit(beta / beta_max). ``None`` adapts it during
        warm-up; joint moves take the paper's, the square root of .05.
    r : int, optional
        Largest step of the walk on k. ``None`` adapts it during warm-up; joint moves take the
        paper's, 3.
    random_state : None, int, SeedSequence, Generator or RandomState
        The data are mixed in: two data sets never share their random numbers.
    n_jobs : int, optional
        As in joblib; the result is the same for any number.
    verbose : int, default=0
        0 for silence.

    Returns
    -------
    xarray.DataTree
        In ArviZ's layout: ``posterior`` (beta, k over chain and draw), ``sample_stats`` (what the
        moves did), ``observed_data``, and the same of warm-up.

    Raises
    ------
    SamplingInterrupted
        On Ctrl-C, a ``KeyboardInterrupt`` that holds the draws finished by then.

    Warns
    -----
    MixingWarning
        If the chains did not mix, in words.

    Examples
    --------
    A likelihood whose modes lie on a curve, known in closed form:

    >>> from bayesknn.posterior import metropolis
    >>> class Ridge:
    ...     k_max = 5
    ...     def log_density(self, beta, k):
    ...         return -8 * (beta - 1 - 0.2 * k) ** 2
    >>> tree = metropolis(Ridge(), beta_max=4.0, n_draws=2000, random_state=0)
    >>> abs(float(tree["posterior"]["beta"].mean()) - 1.6) < 0.1
    True
    """
    sampler = plan_metropolis(
        likelihood, prior, beta_max, scheme=scheme, n_warmup=n_warmup, tau=tau, r=r
    )
    how = {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose}
    return sample_posterior(sampler, n_chains, n_draws, **how)


def plan_metropolis(
    likelihood: Any,
    prior: Any,
    beta_max: float | None = None,
    *,
    scheme: str = "alternating",
    n_warmup: int = 1000,
    tau: float | None = None,
    r: int | None = None,
) -> MetropolisSampler:
    """Return the sampler of :func:`metropolis`, which has the same arguments."""
    check_choice(scheme, "scheme", SCHEDULES)
    prior = as_prior(prior, likelihood.k_max, beta_max)
    if scheme == "hybrid-gibbs" and r is not None:
        raise ValueError("r has no use in scheme='hybrid-gibbs', which tries every k; leave it out")
    walk, tuning = plan_walk(prior.beta_max, prior.k_max, scheme, n_warmup, tau, r)
    cls = HybridGibbsSampler if scheme == "hybrid-gibbs" else MetropolisSampler
    return cls(prior, walk, tuning, 1, likelihood)


def _draw_k(log_densities: np.ndarray, u: float) -> tuple[int, float]:
    """Draw k from its full conditional; also return the log density there."""
    cumulated = np.cumsum(np.exp(log_densities - log_densities.max()))
    at = int(np.searchsorted(cumulated, u * cumulated[-1], side="right"))
    at = min(at, len(log_densities) - 1)
    return at + 1, float(log_densities[at])
