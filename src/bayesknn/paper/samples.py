"""The samples that several figures and numbers share, and what they predict (Sections 3 and 4).

All chains are the paper's: joint random-walk moves with tau^2 = .05 and r = 3. The paper ran one
of each; here a few are run, whose spread tells how far one run may be off.

Its auxiliary-variable chains begin "from the pseudo-likelihood estimate", with auxiliary labels
drawn there, "using this very value for the plug-in". The package's chains start from dispersed
points, so that R-hat can tell whether they mix; they refresh the auxiliary labels, which the
paper's do not, and without that a chain that starts away from its plug-in does not move for tens
of thousands of iterations.

Its path sampling estimates E[S_k] / k at equally spaced beta in [0, 4] for k = 1, 10, 20, ..., 110,
125 by systematic-scan Gibbs sampling from random labels, 10,000 sweeps after 500. At beta = 0 it is
known, n / G. log Z = n log G + the integral, by the trapezium rule; between grid points it is
bilinear. The text calls the grid 50 x 12, the caption of Figure constappro2 names these 13 values
of k. The chains do not converge at large beta, which is one of the things to see.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.integrate import cumulative_trapezoid

from bayesknn._utils.random import spawn_keys
from bayesknn.exceptions import MixingWarning
from bayesknn.labels import gibbs_labels
from bayesknn.labels.label_sampler import LabelSampler, draw_labels
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.model import ArrayPrior, BoltzmannModel, Prior, UniformPrior
from bayesknn.paper.comparison import Estimate
from bayesknn.paper.setting import BETA_MAX, Setting, Study
from bayesknn.posterior import GridPosterior, exchange, grid_posterior, metropolis
from bayesknn.posterior.mcmc.auxiliary import AuxiliarySampler, AuxiliaryState, first_plug_in
from bayesknn.posterior.mcmc.diagnostics import effective_sample_size, mean_error
from bayesknn.posterior.mcmc.proposals import plan_walk
from bayesknn.posterior.mcmc.runner import sample_posterior
from bayesknn.posterior.trees import make_tree
from bayesknn.predictive import PosteriorNodes, Predictive

# The paper's first plug-in for Ripley's data, (beta, k), is the maximum of the pseudo-likelihood;
# its second one was found by the chain with the first.
BAD_PLUG_IN, GOOD_PLUG_IN = (2.28, 53), (1.45, 13)
# Its standard deviation of moves of theta.
TAU = 0.05**0.5
# What several items need is computed once: of one run, these are fewer.
shared = lru_cache(maxsize=16)
# The values of k of its path sampling.
PAPER_K = (1, *range(10, 111, 10), 125)


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
    n_warmup: int = 0
    acceptance: float = 0.0
    messages: list[str] = field(default_factory=list)

    @property
    def kept(self) -> dict[str, np.ndarray]:
        """Beta and k of shape (n_chains, n_draws) after burn-in."""
        return {"beta": self.beta[:, self.n_warmup :], "k": self.k[:, self.n_warmup :]}

    @property
    def tree(self) -> Any:
        """The draws after burn-in in ArviZ's layout."""
        return make_tree(self.kept)

    def mean(self, name: str) -> Estimate:
        """Return the posterior mean of "beta" or "k".

        The spread is that of one chain, measured by its own Monte Carlo error or by how far the
        chains are apart, whichever is larger: stuck chains do not know their error.
        """
        values = self.kept[name]
        one = float(np.mean([mean_error(chain[None]) for chain in values]))
        apart = float(values.mean(axis=1).std(ddof=1))
        spread = max(one, apart)
        return Estimate(float(values.mean()), spread / len(values) ** 0.5, spread)

    def effective(self, name: str) -> float:
        """Return the effective number of draws of one chain, as a proportion."""
        return effective_sample_size(self.kept[name]) / self.kept[name].size


def run_chains(
    setting: Setting, name: str, sample: Callable[..., Any], length: tuple[int, int], **options: Any
) -> Draws:
    """Run chains from the seeds that belong to their name.

    Parameters
    ----------
    setting : Setting
    name : str
    sample : callable
        A sampler of :mod:`bayesknn.posterior` with its likelihood and its prior.
    length : (int, int)
        Iterations of burn-in, and those that are kept.
    **options
        For the sampler.
    """
    tree, messages = catch_mixing_warnings(
        lambda: sample(
            n_chains=setting.budget.n_chains, n_warmup=length[0], n_draws=length[1],
            random_state=setting.seeds(name), **options,
        )
    )  # fmt: skip
    parts = [tree[group] for group in ("warmup_posterior", "posterior")]
    beta, k = (np.hstack([part[each].values for part in parts]) for each in ("beta", "k"))
    acceptance = float(tree["sample_stats"]["accepted"].mean())
    return Draws(beta, k, parts[0].sizes["draw"], acceptance, messages)


def catch_mixing_warnings(sample: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Call a sampler; return its result and what it warned of, which belongs on the page."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = sample()
    return result, [str(w.message) for w in caught if issubclass(w.category, MixingWarning)]


@shared
def ripley_draws(setting: Setting, method: str, plug_in: tuple[float, int] = GOOD_PLUG_IN) -> Draws:
    """Return chains on Ripley's data.

    Parameters
    ----------
    setting : Setting
    method : {"pseudo", "path", "hybrid", "perfect", "gibbs"}
        A random walk on the pseudo-likelihood (Figure pseudoo) or on the path-sampling table
        (Figure psycho); hybrid Gibbs on the pseudo-likelihood (Section 3.1); auxiliary variables
        with perfect or Gibbs draws (Figures imperfecto and perfecto).
    plug_in : (float, int)
        Of the auxiliary variables.
    """
    study, name, length = setting.ripley, f"ripley-{method}", setting.budget.perfect_chain
    sample: Callable[..., Any]
    if method in ("perfect", "gibbs"):
        sample = partial(moller, study, method, plug_in, n_jobs=setting.n_jobs)
        name += f"-{plug_in[1]}"
    elif method == "hybrid":
        sample = partial(metropolis, study.pseudo, study.prior, scheme="hybrid-gibbs", tau=TAU)
    else:
        likelihood = study.pseudo if method == "pseudo" else table_likelihood(setting)
        sample = partial(metropolis, likelihood, study.prior, scheme="joint", tau=TAU, r=3)
        length = setting.budget.long_chain
    return run_chains(setting, name, sample, length)


@shared
def pima_draws(setting: Setting) -> Draws:
    """Return the Gibbs chains on the Pima data; burn-in includes the first stage (Section 4)."""
    budget = setting.budget
    return run_chains(
        setting, "pima-gibbs", partial(moller, setting.pima, "gibbs"), budget.pima_chain,
        n_first_stage=budget.pima_first_stage, n_jobs=setting.n_jobs,
    )  # fmt: skip


def draws_at(setting: Setting, method: str, k: int) -> Draws:
    """Return chains of beta at a fixed k (Figure pseudoA).

    Parameters
    ----------
    setting : Setting
    method : {"pseudo", "path", "perfect"}
    k : int
    """
    study = setting.ripley
    sample: Callable[..., Any]
    if method == "perfect":
        # Moves of beta and of k by turns: those of k have no prior, and cost nothing.
        sample = partial(
            exchange, study.coherent, _prior_at(study, k), label_sampler="perfect", thin=2,
            n_jobs=setting.n_jobs,
        )  # fmt: skip
    else:
        likelihood = study.pseudo if method == "pseudo" else table_likelihood(setting)
        # One process: the moves are cheap, and starting others is not.
        sample = partial(metropolis, FixedK(likelihood, k), UniformPrior(1, BETA_MAX))
    name, length = f"ripley-{method}-at-{k}", setting.budget.fixed_k_chain
    return run_chains(setting, name, sample, length, tau=TAU, r=1)


@dataclass(frozen=True)
class FixedK:
    """A likelihood of beta alone, at the k given."""

    likelihood: Any
    k: int
    k_max: int = 1

    def log_density(self, beta: Any, k: Any) -> Any:
        """Return the log-likelihood at beta and the fixed k."""
        return self.likelihood.log_density(beta, self.k)


def _prior_at(study: Study, k: int | None) -> Prior:
    """Return the paper's prior, or that which knows k."""
    return study.prior if k is None else ArrayPrior(np.eye(study.k_max)[k - 1], BETA_MAX)


@shared
def exact_posterior(setting: Setting, data: str = "ripley", k: int | None = None) -> GridPosterior:
    """Return the posterior by quadrature, at a fixed k if one is given: what chains should find."""
    study, name = getattr(setting, data), f"{data}-exact" + (f"-at-{k}" if k else "")
    return grid_posterior(
        study.coherent, _prior_at(study, k), tolerance=setting.budget.tolerance, evidence=False,
        random_state=setting.seeds(name), n_jobs=setting.n_jobs,
    )  # fmt: skip


class PaperSampler(AuxiliarySampler):
    """Chains that start at the plug-in."""

    def init(self, key: np.uint64) -> AuxiliaryState:
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
    study: Study,
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
    study : Study
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
    likelihood, prior = study.coherent, study.prior
    walk, tuning = plan_walk(prior.beta_max, prior.k_max, "joint", n_first_stage + n_warmup)
    sampler = PaperSampler(
        prior,
        walk,
        tuning,
        thin=1,
        likelihood=likelihood,
        label_sampler=LabelSampler(likelihood.model, likelihood.labels, label_sampler),
        plug_in=first_plug_in(likelihood, prior) if plug_in is None else plug_in,
        updates=(n_first_stage,) if n_first_stage else (),
        n_refresh=0,
    )
    return sample_posterior(sampler, **options)


@dataclass(frozen=True)
class BilinearTable:
    """log Z on a grid, linear in between.

    Attributes
    ----------
    betas : ndarray of shape (n_betas,)
    log_normalizers : ndarray of shape (k_max, n_betas)
        At every k, those between the paper's already interpolated.
    """

    betas: np.ndarray
    log_normalizers: np.ndarray

    @property
    def k_max(self) -> int:
        """Largest k served."""
        return len(self.log_normalizers)

    @property
    def beta_max(self) -> float:
        """Largest beta served."""
        return float(self.betas[-1])

    def log_normalizer(self, beta: Any, k: int) -> Any:
        """Return log Z(beta, k)."""
        return np.interp(beta, self.betas, self.log_normalizers[k - 1])


@shared
def gibbs_expectations(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return the paper's values of beta, and E[S_k] / k there, of shape (n_k, n_betas)."""
    budget, model = setting.budget, setting.ripley.model
    betas = np.linspace(0.0, BETA_MAX, budget.n_path_betas)
    estimate = partial(gibbs_means, model, betas, n_sweeps=budget.path_sweeps)
    keys = spawn_keys(setting.seeds("gibbs-path"), len(PAPER_K))
    return betas, np.array(setting.map(estimate, PAPER_K, keys))


def gibbs_means(
    model: BoltzmannModel, betas: np.ndarray, k: int, key: np.uint64, n_sweeps: tuple[int, int]
) -> list[float]:
    """Estimate E[S_k] / k by one Gibbs chain for each beta.

    Parameters
    ----------
    model : BoltzmannModel
    betas : ndarray of shape (n_betas,)
        The first is 0, where the expectation is known.
    k : int
    key : numpy.uint64
    n_sweeps : (int, int)
        Before counting, and counted.

    Returns
    -------
    list of float
    """
    means, (n_warmup, n_counted) = [model.n_points / model.n_classes], n_sweeps
    for beta, own in zip(betas[1:], spawn_keys(int(key), len(betas) - 1), strict=True):
        _, info = gibbs_labels(model, beta, k, n_draws=n_counted, n_warmup=n_warmup, key=own)
        means.append(info.agreement.mean() / k)
    return means


def gibbs_table(setting: Setting) -> BilinearTable:
    """Return the paper's table of log Z on Ripley's graph."""
    betas, means = gibbs_expectations(setting)
    model = setting.ripley.model
    rows = model.n_points * np.log(model.n_classes) + cumulative_trapezoid(
        means, betas, initial=0.0
    )
    every_k = np.arange(1, setting.ripley.k_max + 1)
    columns = [np.interp(every_k, PAPER_K, column) for column in rows.T]
    return BilinearTable(betas, np.array(columns).T)


def table_likelihood(setting: Setting) -> CoherentLikelihood:
    """Return Ripley's likelihood with log Z from the paper's path sampling."""
    study = setting.ripley
    return CoherentLikelihood(study.model, study.labels, table=gibbs_table(setting))


def error_at(study: Study, k: int) -> float:
    """Return the error rate of the rule at one k; of two classes it does not depend on beta."""
    one = Draws(np.ones((1, 1)), np.full((1, 1), k))
    return study.error_rate(predict(study, one))


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
        nodes = PosteriorNodes.from_draws(*posterior.kept.values())
    return Predictive(study.model, study.labels, nodes, direction=direction)


def predict(study: Study, posterior: Draws | GridPosterior, direction: str = "both") -> np.ndarray:
    """Return the class probabilities of the test points."""
    return predictive(study, posterior, direction).probabilities(study.X_test)


def score_rule(
    study: Study, posterior: Draws | GridPosterior, score: Callable[[np.ndarray], float]
) -> Estimate:
    """Return a score of the probabilities of the test points, such as ``study.error_rate``.

    With chains, the spread is that of the rules of single chains; with a grid, the error is the
    spread of the rules of replicates of log Z.
    """
    parts: list[Any]
    if isinstance(posterior, GridPosterior):
        # Sixteen of them tell the spread well enough.
        parts = [replace(posterior, weights=weights) for weights in posterior.replicates[1:17]]
    else:
        pairs = zip(posterior.beta[:, None], posterior.k[:, None], strict=True)
        parts = [replace(posterior, beta=beta, k=k) for beta, k in pairs]
    value = score(predict(study, posterior))
    runs = mean_over_runs([score(predict(study, part)) for part in parts])
    if isinstance(posterior, GridPosterior):
        return Estimate(value, runs.spread)
    return runs._replace(value=value)


def mean_over_runs(values: Any) -> Estimate:
    """Return the mean over runs, its error, and the spread of single runs.

    Examples
    --------
    >>> from bayesknn.paper.samples import mean_over_runs
    >>> mean_over_runs([1.0, 3.0, 2.0, 2.0]).value
    2.0
    """
    spread = float(np.std(values, ddof=1))
    return Estimate(float(np.mean(values)), spread / len(values) ** 0.5, spread)
