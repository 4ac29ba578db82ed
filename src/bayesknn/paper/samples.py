"""The samples that several figures and numbers share: one chain, or one table, each (Section 3).

All chains are the paper's: joint random-walk moves with tau^2 = .05 and r = 3. The paper ran one
of each; here a few are run, whose spread tells how far one run may be off.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesknn.exceptions import MixingWarning
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.model import ArrayPrior, UniformPrior
from bayesknn.paper.gibbs_table import gibbs_table
from bayesknn.paper.item import Estimate
from bayesknn.paper.moller import moller
from bayesknn.paper.setting import BETA_MAX, Setting, Study
from bayesknn.posterior import GridPosterior, exchange, grid_posterior, metropolis
from bayesknn.posterior.diagnostics import effective_sample_size, mean_error
from bayesknn.posterior.trees import make_tree

WALK: dict[str, Any] = {"scheme": "joint", "tau": 0.05**0.5, "r": 3}
BAD_PLUG_IN = (2.28, 53)
"""The paper's first plug-in for Ripley's data, (beta, k): the maximum of the pseudo-likelihood."""
GOOD_PLUG_IN = (1.45, 13)
"""The paper's second one, found by the chain with the first."""


@dataclass(frozen=True)
class Draws:
    """Chains on (beta, k), burn-in included.

    Attributes
    ----------
    beta, k : ndarray of shape (n_chains, n_warmup + n_draws)
    n_warmup : int
    acceptance : float
        Share of the moves accepted after burn-in.
    seconds : float
        How long all of them took.
    messages : list of str
        What the sampler warned of.
    """

    beta: np.ndarray
    k: np.ndarray
    n_warmup: int
    acceptance: float
    seconds: float
    messages: list[str]

    @property
    def kept(self) -> tuple[np.ndarray, np.ndarray]:
        """Beta and k of shape (n_chains, n_draws) after burn-in."""
        return self.beta[:, self.n_warmup :], self.k[:, self.n_warmup :]

    @property
    def tree(self) -> Any:
        """The draws after burn-in in ArviZ's layout."""
        beta, k = self.kept
        return make_tree({"beta": beta, "k": k})

    def mean(self, name: str) -> Estimate:
        """Return the posterior mean of "beta" or "k".

        The spread is that of one chain, measured by its own Monte Carlo error or by how far the
        chains are apart, whichever is larger: stuck chains do not know their error.
        """
        values = self.kept[0 if name == "beta" else 1]
        one = float(np.mean([mean_error(chain[None]) for chain in values]))
        apart = float(values.mean(axis=1).std(ddof=1)) if len(values) > 1 else 0.0
        spread = max(one, apart)
        return Estimate(float(values.mean()), spread / len(values) ** 0.5, spread)

    def effective(self, name: str) -> float:
        """Return the effective number of draws of one chain, as a share of its draws."""
        values = self.kept[0 if name == "beta" else 1]
        return effective_sample_size(values) / values.size


def pseudo_draws(setting: Setting) -> Draws:
    """Return the chains on Ripley's pseudo-likelihood (Figure pseudoo)."""
    study = setting.ripley
    return _long(setting, "ripley-pseudo", lambda: study.pseudo)


def path_draws(setting: Setting) -> Draws:
    """Return the chains on the likelihood with the path-sampling table (Figure psycho)."""
    return _long(setting, "ripley-path", lambda: table_likelihood(setting))


def table_likelihood(setting: Setting) -> CoherentLikelihood:
    """Return Ripley's likelihood with log Z from the paper's path sampling."""
    study = setting.ripley
    table = gibbs_table(setting)
    return CoherentLikelihood(study.graph, study.labels, study.n_classes, table=table)


def auxiliary_draws(
    setting: Setting, label_sampler: str, plug_in: tuple[float, int] = GOOD_PLUG_IN
) -> Draws:
    """Return the auxiliary-variable chains on Ripley's data (Figures imperfecto and perfecto)."""
    study, budget = setting.ripley, setting.budget
    name = f"ripley-{label_sampler}-{plug_in[1]}"
    n_warmup, n_draws = budget.perfect_chain
    return keep_draws(
        setting,
        name,
        lambda: moller(
            study.coherent, study.prior, label_sampler, plug_in, n_chains=budget.n_chains,
            n_warmup=n_warmup, n_draws=n_draws, random_state=setting.seeds(name),
            n_jobs=setting.n_jobs,
        ),
    )  # fmt: skip


def pima_draws(setting: Setting) -> Draws:
    """Return the Gibbs chains on the Pima data; burn-in includes the first stage (Section 4)."""
    study, budget = setting.pima, setting.budget
    n_warmup, n_draws = budget.pima_chain
    return keep_draws(
        setting,
        "pima-gibbs",
        lambda: moller(
            study.coherent, study.prior, "gibbs", n_first_stage=budget.pima_first_stage,
            n_chains=budget.n_chains, n_warmup=n_warmup, n_draws=n_draws,
            random_state=setting.seeds("pima-gibbs"), n_jobs=setting.n_jobs,
        ),
    )  # fmt: skip


def exact_posterior(setting: Setting, study: Study, name: str, prior: Any = None) -> GridPosterior:
    """Return the posterior by quadrature: what the chains should find."""

    def make() -> dict[str, Any]:
        found = grid_posterior(
            study.coherent,
            study.prior if prior is None else prior,
            tolerance=setting.budget.tolerance,
            evidence=False,
            random_state=setting.seeds(name),
            n_jobs=setting.n_jobs,
        )
        return {
            each: getattr(found, each)
            for each in ("k_values", "betas", "weights", "replicates", "k_max")
        }

    kept = setting.keep(name, make)
    return GridPosterior(
        kept["k_values"], kept["betas"], kept["weights"], kept["replicates"], int(kept["k_max"])
    )


def ripley_posterior(setting: Setting) -> GridPosterior:
    """Return the exact posterior of Ripley's data."""
    return exact_posterior(setting, setting.ripley, "ripley-exact")


def draws_at(setting: Setting, method: str, k: int) -> Draws:
    """Return chains of beta at a fixed k (Figure pseudoA).

    Parameters
    ----------
    setting : Setting
    method : {"pseudo", "path", "perfect"}
    k : int
    """
    study, budget = setting.ripley, setting.budget
    name = f"ripley-{method}-at-{k}"
    n_warmup, n_draws = budget.fixed_k_chain
    options: dict[str, Any] = {
        "n_chains": budget.n_chains,
        "n_warmup": n_warmup,
        "n_draws": n_draws,
        "tau": WALK["tau"],
        "random_state": setting.seeds(name),
    }
    prior = prior_at(study, k)

    def sample() -> Any:
        if method == "perfect":
            # Moves of beta and of k by turns: those of k have no prior, and cost nothing.
            return exchange(
                study.coherent, prior, label_sampler="perfect", thin=2, r=1,
                n_jobs=setting.n_jobs, **options,
            )  # fmt: skip
        likelihood: Any = study.pseudo
        if method == "path":
            likelihood = table_likelihood(setting)
        return metropolis(FixedK(likelihood, k), UniformPrior(1, BETA_MAX), r=1, **options)

    return keep_draws(setting, name, sample)


@dataclass(frozen=True)
class FixedK:
    """A likelihood of beta alone, at the k given."""

    likelihood: Any
    k: int
    k_max: int = 1

    def log_density(self, beta: Any, k: Any) -> Any:
        """Return the log-likelihood at beta and the fixed k."""
        return self.likelihood.log_density(beta, self.k)


def prior_at(study: Study, k: int) -> ArrayPrior:
    """Return the prior that knows k."""
    return ArrayPrior(np.eye(study.k_max)[k - 1], BETA_MAX)


def keep_draws(setting: Setting, name: str, sample: Callable[[], Any]) -> Draws:
    """Return chains kept under a name, sampled now if they are not there."""

    def make() -> dict[str, Any]:
        start = time.perf_counter()
        tree, messages = quietly(sample)
        parts = [tree[group] for group in ("warmup_posterior", "posterior")]
        return {
            "beta": np.concatenate([part["beta"].values for part in parts], axis=1),
            "k": np.concatenate([part["k"].values for part in parts], axis=1),
            "n_warmup": parts[0].sizes["draw"],
            "acceptance": float(tree["sample_stats"]["accepted"].mean()),
            "seconds": time.perf_counter() - start,
            "messages": np.array(messages, dtype=str),
        }

    kept = setting.keep(name, make)
    return Draws(
        kept["beta"],
        kept["k"],
        int(kept["n_warmup"]),
        float(kept["acceptance"]),
        float(kept["seconds"]),
        [str(message) for message in kept["messages"]],
    )


def quietly(sample: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Call a sampler; return its result and what it warned of, which belongs on the page."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = sample()
    return result, [str(w.message) for w in caught if issubclass(w.category, MixingWarning)]


def _long(setting: Setting, name: str, likelihood: Callable[[], Any]) -> Draws:
    budget = setting.budget
    n_warmup, n_draws = budget.long_chain
    # One process: the moves are cheap, and starting others is not.
    return keep_draws(
        setting,
        name,
        lambda: metropolis(
            likelihood(), setting.ripley.prior, n_chains=budget.n_chains, n_warmup=n_warmup,
            n_draws=n_draws, random_state=setting.seeds(name), **WALK,
        ),
    )  # fmt: skip
