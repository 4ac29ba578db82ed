"""The samples that several figures and numbers share, and what they predict (Sections 3 and 4).

All chains are the paper's: joint random-walk moves with tau^2 = .05 and r = 3. The paper ran one
of each; here a few are run, whose spread tells how far one run may be off.

Its auxiliary-variable chains begin "from the pseudo-likelihood estimate", with auxiliary labels
drawn there, "using this very value for the plug-in". The package's chains start from dispersed
points, so that R-hat can tell whether they mix; they refresh the auxiliary labels, which the
paper's do not, and without that a chain that starts away from its plug-in does not move for tens
of thousands of iterations.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesknn.exceptions import MixingWarning
from bayesknn.labels import spawn_keys
from bayesknn.labels.label_sampler import draw_labels, make_label_sampler
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.model import ArrayPrior, BoltzmannModel, Prior, UniformPrior
from bayesknn.paper.gibbs_table import gibbs_table
from bayesknn.paper.item import Estimate
from bayesknn.paper.setting import BETA_MAX, Setting, Study
from bayesknn.posterior import GridPosterior, exchange, grid_posterior, metropolis
from bayesknn.posterior.mcmc.auxiliary import AuxiliarySampler, first_plug_in
from bayesknn.posterior.mcmc.diagnostics import effective_sample_size, mean_error
from bayesknn.posterior.mcmc.label_chains import State
from bayesknn.posterior.mcmc.proposals import plan_walk
from bayesknn.posterior.mcmc.runner import sample_posterior
from bayesknn.posterior.trees import make_tree
from bayesknn.predictive import PosteriorNodes, Predictive

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
        Proportion of the moves accepted after burn-in.
    messages : list of str
        What the sampler warned of.
    """

    beta: np.ndarray
    k: np.ndarray
    n_warmup: int
    acceptance: float
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
        """Return the effective number of draws of one chain, as a proportion."""
        values = self.kept[0 if name == "beta" else 1]
        return effective_sample_size(values) / values.size


def pseudo_draws(setting: Setting) -> Draws:
    """Return the chains on Ripley's pseudo-likelihood (Figure pseudoo)."""
    study = setting.ripley
    return _run_random_walk(setting, "ripley-pseudo", lambda: study.pseudo)


def hybrid_draws(setting: Setting) -> Draws:
    """Return hybrid Gibbs chains on Ripley's pseudo-likelihood (Section 3.1)."""
    study, name = setting.ripley, "ripley-hybrid"
    options = _plan(setting, name, setting.budget.perfect_chain)
    options |= {"n_jobs": None, "scheme": "hybrid-gibbs", "tau": 0.05**0.5}
    return keep_draws(setting, name, lambda: metropolis(study.pseudo, study.prior, **options))


def path_draws(setting: Setting) -> Draws:
    """Return the chains on the likelihood with the path-sampling table (Figure psycho)."""
    return _run_random_walk(setting, "ripley-path", lambda: table_likelihood(setting))


def table_likelihood(setting: Setting) -> CoherentLikelihood:
    """Return Ripley's likelihood with log Z from the paper's path sampling."""
    study = setting.ripley
    table = gibbs_table(setting)
    return CoherentLikelihood(study.graph, study.labels, study.n_classes, table=table)


def auxiliary_draws(
    setting: Setting, label_sampler: str, plug_in: tuple[float, int] = GOOD_PLUG_IN
) -> Draws:
    """Return the auxiliary-variable chains on Ripley's data (Figures imperfecto and perfecto)."""
    study, name = setting.ripley, f"ripley-{label_sampler}-{plug_in[1]}"
    options = _plan(setting, name, setting.budget.perfect_chain)
    return keep_draws(
        setting,
        name,
        lambda: moller(study.coherent, study.prior, label_sampler, plug_in, **options),
    )


def pima_draws(setting: Setting) -> Draws:
    """Return the Gibbs chains on the Pima data; burn-in includes the first stage (Section 4)."""
    study, budget = setting.pima, setting.budget
    options = _plan(setting, "pima-gibbs", budget.pima_chain)
    options["n_first_stage"] = budget.pima_first_stage
    return keep_draws(
        setting, "pima-gibbs", lambda: moller(study.coherent, study.prior, "gibbs", **options)
    )


def _plan(setting: Setting, name: str, chain: tuple[int, int]) -> dict[str, Any]:
    """Return how many chains of which length are run, and from which seeds."""
    return {
        "n_chains": setting.budget.n_chains,
        "n_warmup": chain[0],
        "n_draws": chain[1],
        "random_state": setting.seeds(name),
        "n_jobs": setting.n_jobs,
    }


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
        fields = ("k_values", "betas", "weights", "replicates", "k_max", "cells")
        return {field: getattr(found, field) for field in fields}

    kept: dict[str, Any] = {**setting.keep(name, make)}
    return GridPosterior(**{**kept, "k_max": int(kept["k_max"])})


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
    study, name = setting.ripley, f"ripley-{method}-at-{k}"
    options = _plan(setting, name, setting.budget.fixed_k_chain) | {"tau": 0.05**0.5, "r": 1}
    prior = prior_at(study, k)

    def sample() -> Any:
        if method == "perfect":
            # Moves of beta and of k by turns: those of k have no prior, and cost nothing.
            return exchange(study.coherent, prior, label_sampler="perfect", thin=2, **options)
        likelihood: Any = study.pseudo
        if method == "path":
            likelihood = table_likelihood(setting)
        # One process: the moves are cheap, and starting others is not.
        options["n_jobs"] = None
        return metropolis(FixedK(likelihood, k), UniformPrior(1, BETA_MAX), **options)

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
        tree, messages = catch_mixing_warnings(sample)
        parts = [tree[group] for group in ("warmup_posterior", "posterior")]
        return {
            "beta": np.concatenate([part["beta"].values for part in parts], axis=1),
            "k": np.concatenate([part["k"].values for part in parts], axis=1),
            "n_warmup": parts[0].sizes["draw"],
            "acceptance": float(tree["sample_stats"]["accepted"].mean()),
            "messages": np.array(messages, dtype=str),
        }

    kept = setting.keep(name, make)
    return Draws(
        kept["beta"],
        kept["k"],
        int(kept["n_warmup"]),
        float(kept["acceptance"]),
        [str(message) for message in kept["messages"]],
    )


def catch_mixing_warnings(sample: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Call a sampler; return its result and what it warned of, which belongs on the page."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = sample()
    return result, [str(w.message) for w in caught if issubclass(w.category, MixingWarning)]


def _run_random_walk(setting: Setting, name: str, likelihood: Callable[[], Any]) -> Draws:
    options = _plan(setting, name, setting.budget.long_chain)
    options |= {"n_jobs": None, "scheme": "joint", "tau": 0.05**0.5, "r": 3}
    return keep_draws(
        setting, name, lambda: metropolis(likelihood(), setting.ripley.prior, **options)
    )


class PaperSampler(AuxiliarySampler):
    """Chains that start at the plug-in."""

    def init(self, key: np.uint64) -> State:
        """Return the plug-in with labels drawn there."""
        beta, k = self.plug_in
        theta = math.log(beta / (self.walk.beta_max - beta))
        sampler = self.label_sampler.compiled()
        n_apart = draw_labels(sampler, beta, k, spawn_keys(int(key), 1)[0])
        state = self.start(theta, k)
        assert n_apart == 0, "the bonds meet within tens of sweeps at any beta"
        assert state is not None, "the plug-in is where the prior is positive"
        return state._replace(labels=sampler.labels.copy())


def moller(
    likelihood: CoherentLikelihood,
    prior: Prior,
    label_sampler: str,
    plug_in: tuple[float, int] | None = None,
    *,
    n_first_stage: int = 0,
    n_warmup: int,
    **options: Any,
) -> Any:
    """Run the paper's chains: joint moves, tau^2 = .05, r = 3, no refreshing.

    Parameters
    ----------
    likelihood : CoherentLikelihood
    prior : Prior
    label_sampler : {"perfect", "gibbs"}
        Gibbs draws take 500 sweeps.
    plug_in : tuple of (beta, k), optional
        The maximum of the pseudo-likelihood by default.
    n_first_stage : int
        Iterations after which the plug-in is replaced by the average over them; 0 for never.
    n_warmup : int
    **options
        ``n_chains``, ``n_draws``, ``random_state``, ``n_jobs``: as in
        :func:`bayesknn.posterior.auxiliary`.

    Returns
    -------
    xarray.DataTree
        Warm-up includes the first stage.
    """
    walk, tuning = plan_walk(prior.beta_max, prior.k_max, "joint", n_first_stage + n_warmup)
    sampler = PaperSampler(
        prior,
        walk,
        tuning,
        thin=1,
        likelihood=likelihood,
        label_sampler=make_label_sampler(likelihood.model, likelihood.labels, label_sampler),
        plug_in=first_plug_in(likelihood, prior) if plug_in is None else plug_in,
        updates=(n_first_stage,) if n_first_stage else (),
        n_refresh=0,
    )
    return sample_posterior(sampler, **options)


def error_at(study: Study, k: int) -> float:
    """Return the error rate of the rule at one k; of two classes it does not depend on beta."""
    nodes = PosteriorNodes.from_draws(np.ones((1, 1)), np.full((1, 1), k))
    rule = Predictive(BoltzmannModel(study.graph, study.n_classes), study.labels, nodes)
    return study.error_rate(rule.probabilities(study.X_test))


def predictive(
    study: Study, posterior: Draws | GridPosterior, direction: str = "both"
) -> Predictive:
    """Return the rule that averages over a posterior.

    Parameters
    ----------
    study : Study
    posterior : Draws or GridPosterior
    direction : {"both", "forward"}
        Forward is the rule of Holmes and Adams.
    """
    if isinstance(posterior, GridPosterior):
        nodes = PosteriorNodes.from_grid(posterior)
    else:
        nodes = PosteriorNodes.from_draws(*posterior.kept)
    model = BoltzmannModel(study.graph, study.n_classes)
    return Predictive(model, study.labels, nodes, direction=direction)


def score_rule(
    study: Study, posterior: Draws | GridPosterior, score: Callable[[np.ndarray], float]
) -> Estimate:
    """Return a score of the probabilities of the test points, such as ``study.error_rate``.

    With chains, the spread is that of the rules of single chains; with a grid, the error is the
    spread of the rules of replicates of log Z.
    """

    def score_one(posterior: Draws | GridPosterior) -> float:
        return score(predictive(study, posterior).probabilities(study.X_test))

    if isinstance(posterior, GridPosterior):
        none = posterior.replicates[:0]
        # Sixteen of them tell the spread well enough.
        some = [replace(posterior, weights=w, replicates=none) for w in posterior.replicates[1:17]]
        found = mean_over_runs(map(score_one, some), score_one(posterior))
        return Estimate(found.value, found.spread)
    pairs = zip(posterior.beta[:, None], posterior.k[:, None], strict=True)
    chains = [replace(posterior, beta=beta, k=k) for beta, k in pairs]
    return mean_over_runs(map(score_one, chains), score_one(posterior))


def mean_over_runs(values: Iterable[float], value: float | None = None) -> Estimate:
    """Return the mean over runs, or ``value`` in its place, with the error and spread of runs.

    Examples
    --------
    >>> from bayesknn.paper.samples import mean_over_runs
    >>> mean_over_runs([1.0, 3.0, 2.0, 2.0]).value
    2.0
    """
    runs = np.array(list(values))
    value = float(runs.mean()) if value is None else value
    if len(runs) < 2:
        return Estimate(value)
    spread = float(runs.std(ddof=1))
    return Estimate(value, spread / len(runs) ** 0.5, spread)


def difference(first: Estimate, second: Estimate) -> Estimate:
    """Return first less second, which are independent."""
    return Estimate(first.value - second.value, math.hypot(first.error, second.error))
