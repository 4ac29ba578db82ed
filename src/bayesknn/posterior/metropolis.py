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
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from bayesknn.model import Prior, as_prior
from bayesknn.model.boltzmann import fingerprint
from bayesknn.posterior.chains import sample_posterior
from bayesknn.posterior.proposals import (
    BETA_ONLY,
    FREE_SLOT,
    Tuning,
    Walk,
    _acceptance,
    _adapt,
    _beta_of,
    _propose,
    _uniform_at,
    disperse,
    plan_walk,
)

if TYPE_CHECKING:
    import xarray

SCHEMES = ("alternating", "joint", "hybrid-gibbs")
_MAX_STARTS = 1000
_N_PROBES = 64


class LogDensity(Protocol):
    """What the chains ask of a likelihood; every one of :mod:`bayesknn.likelihood` has it."""

    @property
    def k_max(self) -> int:
        """Largest k served."""
        ...

    def log_density(self, beta: Any, k: Any) -> Any:
        """Return log f(y | beta, k), broadcast."""
        ...


class State(NamedTuple):
    """What the next step needs.

    Attributes
    ----------
    theta : float
        logit(beta / beta_max).
    k : int
    log_density : float
        Log of likelihood times prior at (beta, k).
    tuning : Tuning
    """

    theta: float
    k: int
    log_density: float
    tuning: Tuning


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
class MetropolisSampler:
    """A likelihood, a prior and the moves: see :class:`bayesknn.posterior.chains.Sampler`."""

    likelihood: LogDensity
    prior: Prior
    scheme: str
    walk: Walk
    tuning: Tuning
    name = "metropolis"
    prefer = None

    @property
    def n_warmup(self) -> int:
        """Iterations that adapt."""
        return self.walk.n_warmup

    def log_density(self, beta: float, k: int) -> float:
        """Log of likelihood times prior; the likelihood is not asked where the prior is zero."""
        log_prior = self.prior.log_density(beta, k)
        if not log_prior > -math.inf:
            return -math.inf
        return float(log_prior + self.likelihood.log_density(beta, k))

    def log_densities(self, beta: float) -> np.ndarray:
        """Log of likelihood times prior for every k; minus infinity where it is not a number."""
        values = np.array(self.prior.log_density(beta, np.arange(1, self.walk.k_max + 1)))
        for at in np.flatnonzero(values > -math.inf).tolist():
            # One k at a time: likelihoods are at their fastest for a single number.
            values[at] += self.likelihood.log_density(beta, at + 1)
        return np.where(np.isnan(values), -math.inf, values)

    def init(self, key: np.uint64) -> State:
        """Return the first of the dispersed starts where the posterior is positive."""
        for attempt in range(_MAX_STARTS):
            theta, k = disperse(self.walk, key, attempt)
            log_density = self.log_density(_beta_of(theta, self.walk.beta_max), k)
            if math.isfinite(log_density):
                return State(theta, k, log_density, self.tuning)
        raise ValueError(
            f"no start found: the posterior is zero or not a number at {_MAX_STARTS} points drawn "
            f"from k in 1..{self.walk.k_max}, beta in [0, {self.walk.beta_max:g}]; check the prior"
        )

    def step(
        self, state: State, key: np.uint64, iteration: int, log_densities: Any = None
    ) -> tuple[State, Info]:
        """Make one iteration; ``log_densities`` may be the method of that name with a memory."""
        theta, k, log_density, tuning = state
        walk = self.walk
        if self.scheme == "hybrid-gibbs":
            values = (log_densities or self.log_densities)(_beta_of(theta, walk.beta_max))
            k, log_density = _draw_k(values, _uniform_at(key, iteration, FREE_SLOT))
        proposal = _propose(walk, tuning, theta, k, key, iteration)
        proposed = self.log_density(proposal.beta, int(proposal.k))
        acceptance = _acceptance(proposed - log_density + proposal.log_correction)
        accepted = proposal.uniform < acceptance
        if accepted:
            theta, k, log_density = proposal.theta, int(proposal.k), proposed
        tuning = _adapt(walk, tuning, theta, k, acceptance, iteration)
        info = Info(_beta_of(theta, walk.beta_max), k, log_density, accepted, acceptance)
        return State(theta, k, log_density, tuning), info

    def advance(
        self, state: State, key: np.uint64, first: int, last: int
    ) -> tuple[State, dict[str, np.ndarray]]:
        """Make iterations ``first..last - 1``."""
        # beta stays where it is in more than half of the iterations.
        log_densities = lru_cache(maxsize=1)(self.log_densities)
        infos = []
        for iteration in range(first, last):
            state, info = self.step(state, key, iteration, log_densities)
            infos.append(info)
        columns = zip(Info._fields, zip(*infos, strict=True), strict=True)
        return state, {name: np.array(values) for name, values in columns}

    def identity(self) -> dict[str, str]:
        """Return what stands for the run in checkpoints.

        Likelihoods have nothing in common but their values, so some of those stand for the data:
        to nine digits, because machines differ in the last ones.
        """
        rng = np.random.default_rng(0)
        walk, tuning = self.walk, self.tuning
        betas = rng.uniform(0, walk.beta_max, _N_PROBES).tolist()
        ks = rng.integers(1, walk.k_max, _N_PROBES, endpoint=True).tolist()
        points = list(zip(betas, ks, strict=True))
        likelihood = [f"{float(self.likelihood.log_density(*point)):.9g}" for point in points]
        prior = [f"{float(self.prior.log_density(*point)):.9g}" for point in points]
        tau = "adapted" if walk.adapts_tau else f"{math.exp(tuning.log_tau):.9g}"
        r = "adapted" if walk.adapts_r else f"{math.exp(tuning.log_r):.9g}"
        return {
            "data": fingerprint(likelihood),
            "prior": fingerprint([walk.beta_max, walk.k_max], prior),
            "settings": f"scheme={self.scheme}, tau={tau}, r={r}",
        }


def metropolis(
    likelihood: LogDensity,
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
    checkpoint: str | os.PathLike | None = None,
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
        Iterations that adapt tau and r and are left out of the posterior.
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
        In ArviZ's layout: ``posterior`` (beta, k over chain and draw), ``sample_stats``,
        ``observed_data``, and the same of warm-up.

    Warns
    -----
    MixingWarning
        If the chains did not mix, in words.

    Examples
    --------
    A likelihood with a ridge, known in closed form:

    >>> from bayesknn.posterior import metropolis
    >>> class Ridge:
    ...     k_max = 5
    ...     def log_density(self, beta, k):
    ...         return -8 * (beta - 1 - 0.2 * k) ** 2
    >>> tree = metropolis(Ridge(), beta_max=4.0, n_draws=2000, random_state=0)
    >>> abs(float(tree["posterior"]["beta"].mean()) - 1.6) < 0.1
    True
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}, got {scheme!r}")
    prior = as_prior(prior, likelihood.k_max, beta_max)
    if scheme == "hybrid-gibbs" and r is not None:
        raise ValueError("r has no use in scheme='hybrid-gibbs', which tries every k; leave it out")
    schedule = "joint" if scheme == "joint" else "alternating"
    walk, tuning = plan_walk(prior.beta_max, prior.k_max, schedule, n_warmup, tau, r)
    if scheme == "hybrid-gibbs":
        walk = walk._replace(schedule=BETA_ONLY)
    sampler = MetropolisSampler(likelihood, prior, scheme, walk, tuning)
    return sample_posterior(
        sampler,
        n_chains=n_chains,
        n_draws=n_draws,
        random_state=random_state,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        verbose=verbose,
        labels=getattr(likelihood, "labels", None),
        attrs={"scheme": scheme, "beta_max": walk.beta_max, "k_max": walk.k_max},
    )


def _draw_k(log_densities: np.ndarray, u: float) -> tuple[int, float]:
    """Draw k from its full conditional; also return the log density there."""
    cumulated = np.cumsum(np.exp(log_densities - log_densities.max()))
    at = int(np.searchsorted(cumulated, u * cumulated[-1], side="right"))
    at = min(at, len(log_densities) - 1)
    return at + 1, float(log_densities[at])
