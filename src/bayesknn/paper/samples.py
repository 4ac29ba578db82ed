"""Chains, posteriors and predictions that several figures and numbers use (Sections 3 and 4).

All chains are those of the paper: joint random-walk moves with tau^2 = 0.05 and r = 3. The paper
ran one chain of each kind. Here several are run, and the standard deviation between them is the
standard error of a result of one chain.

The paper's auxiliary-variable chains start "from the pseudo-likelihood estimate", with auxiliary
labels drawn at this value, "using this very value for the plug-in". The chains of
:mod:`bayesknn.posterior` differ in two ways. They start from dispersed values, which R-hat needs.
They also refresh the auxiliary labels, because otherwise a chain that starts far from its plug-in
does not move for tens of thousands of iterations.

The paper's path sampling estimates E[S_k] / k at equally spaced beta in [0, 4] for k = 1, 10, 20,
..., 110, 125, by systematic-scan Gibbs sampling from random labels: 500 sweeps of burn-in and
10,000 more. At beta = 0 the expectation is known to be n / G. The integral in log Z = n log G +
integral is computed by the trapezium rule, and log Z is interpolated bilinearly between grid
points. The paper's text calls the grid 50 x 12, but the caption of fig:constappro2 lists these 13
values of k. The chains do not converge at large beta; the figures show the resulting errors.
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
from bayesknn.labels.sampling import LabelSampler, draw_labels
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

# Plug-in values (beta, k) of the paper for Ripley's data: first the maximum of the
# pseudo-likelihood, then the estimate from the chain with the first plug-in.
BAD_PLUG_IN, GOOD_PLUG_IN = (2.28, 53), (1.45, 13)
# Standard deviation of the paper's random-walk steps of theta.
TAU = 0.05**0.5
# Decorator that caches results which several items use. One run has fewer than 16 of each kind, so
# that none is computed twice; more would keep the memory of earlier runs.
shared = lru_cache(maxsize=16)
# Values of k in the paper's path sampling.
PAPER_K = (1, *range(10, 111, 10), 125)


@dataclass(frozen=True)
class Draws:
    """Chains on (beta, k), burn-in included.

    Attributes
    ----------
    beta, k : ndarray of shape (n_chains, n_warmup + n_draws)
    n_warmup : int
    acceptance : float
        Proportion of moves accepted after burn-in.
    messages : list of str
        Warnings of the sampler about poor mixing.
    """

    beta: np.ndarray
    k: np.ndarray
    n_warmup: int = 0
    acceptance: float = 0.0
    messages: list[str] = field(default_factory=list)

    @property
    def kept(self) -> dict[str, np.ndarray]:
        """Draws of beta and k after burn-in, each of shape (n_chains, n_draws)."""
        return {"beta": self.beta[:, self.n_warmup :], "k": self.k[:, self.n_warmup :]}

    @property
    def tree(self) -> Any:
        """Draws after burn-in as a DataTree in the layout of ArviZ."""
        return make_tree(self.kept)

    def mean(self, name: str) -> Estimate:
        """Return the posterior mean of "beta" or "k".

        ``run_sd`` is the larger of two estimates of the standard error of one chain: its Monte
        Carlo error, and the standard deviation of the means of the chains. The Monte Carlo error
        of a stuck chain is too small.
        """
        values = self.kept[name]
        within = float(np.mean([mean_error(chain[None]) for chain in values]))
        between = float(values.mean(axis=1).std(ddof=1))
        run_sd = max(within, between)
        return Estimate(float(values.mean()), run_sd / len(values) ** 0.5, run_sd)

    def effective(self, name: str) -> float:
        """Return the effective sample size of "beta" or "k" as a proportion of the draws."""
        return effective_sample_size(self.kept[name]) / self.kept[name].size


def run_chains(
    setting: Setting, name: str, sample: Callable[..., Any], length: tuple[int, int], **options: Any
) -> Draws:
    """Run chains with the seeds derived from their name, and return their draws.

    Parameters
    ----------
    setting : Setting
    name : str
        Name of the chains.
    sample : callable
        Sampler of :mod:`bayesknn.posterior` with its likelihood and prior as fixed arguments.
    length : (int, int)
        Number of burn-in iterations and of iterations kept.
    **options
        Further arguments of the sampler.
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
    """Call a sampler without arguments; return its result and its mixing warnings as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = sample()
    return result, [str(w.message) for w in caught if issubclass(w.category, MixingWarning)]


@shared
def ripley_draws(setting: Setting, method: str, plug_in: tuple[float, int] = GOOD_PLUG_IN) -> Draws:
    """Return the draws of one of the paper's chains on Ripley's data.

    Parameters
    ----------
    setting : Setting
    method : {"pseudo", "path", "hybrid", "perfect", "gibbs"}
        ``"pseudo"``: random walk with the pseudo-likelihood (fig:pseudoo). ``"path"``: random walk
        with log Z from path sampling (fig:psycho). ``"hybrid"``: hybrid Gibbs sampler with the
        pseudo-likelihood (Section 3.1). ``"perfect"`` and ``"gibbs"``: auxiliary variables with
        perfect or Gibbs draws (fig:imperfecto and fig:perfecto).
    plug_in : (float, int)
        Plug-in (beta, k) of the auxiliary variables; other methods ignore it.
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
    """Return the draws of the Gibbs chains on the Pima data (Section 4).

    The first stage, after which the plug-in is replaced, is part of the burn-in.
    """
    budget = setting.budget
    return run_chains(
        setting, "pima-gibbs", partial(moller, setting.pima, "gibbs"), budget.pima_chain,
        n_first_stage=budget.pima_first_stage, n_jobs=setting.n_jobs,
    )  # fmt: skip


def draws_at(setting: Setting, method: str, k: int) -> Draws:
    """Return draws of beta at a fixed k (fig:pseudoA).

    Parameters
    ----------
    setting : Setting
    method : {"pseudo", "path", "perfect"}
    k : int
    """
    study = setting.ripley
    sample: Callable[..., Any]
    if method == "perfect":
        # exchange alternates moves of beta and of k. The prior rejects every move of k before
        # labels are drawn, so thin=2 keeps one draw for each move of beta.
        sample = partial(
            exchange, study.coherent, _prior_at(study, k), label_sampler="perfect", thin=2,
            n_jobs=setting.n_jobs,
        )  # fmt: skip
    else:
        likelihood = study.pseudo if method == "pseudo" else table_likelihood(setting)
        # n_jobs is not passed, because these moves take less time than starting processes.
        sample = partial(metropolis, FixedK(likelihood, k), UniformPrior(1, BETA_MAX))
    name, length = f"ripley-{method}-at-{k}", setting.budget.fixed_k_chain
    return run_chains(setting, name, sample, length, tau=TAU, r=1)


@dataclass(frozen=True)
class FixedK:
    """Likelihood of beta at a fixed k."""

    likelihood: Any
    k: int
    k_max: int = 1

    def log_density(self, beta: Any, k: Any) -> Any:
        """Return the log-likelihood at beta and the fixed k."""
        return self.likelihood.log_density(beta, self.k)


def _prior_at(study: Study, k: int | None) -> Prior:
    """Return the paper's prior, restricted to one value of k if it is given."""
    return study.prior if k is None else ArrayPrior(np.eye(study.k_max)[k - 1], BETA_MAX)


@shared
def exact_posterior(setting: Setting, data: str = "ripley", k: int | None = None) -> GridPosterior:
    """Return the exact posterior by quadrature, conditional on k if it is given."""
    study, name = getattr(setting, data), f"{data}-exact" + (f"-at-{k}" if k else "")
    return grid_posterior(
        study.coherent, _prior_at(study, k), tolerance=setting.budget.tolerance, evidence=False,
        random_state=setting.seeds(name), n_jobs=setting.n_jobs,
    )  # fmt: skip


class PaperSampler(AuxiliarySampler):
    """Auxiliary-variable sampler whose chains start at the plug-in, as in the paper."""

    def init(self, key: np.uint64) -> AuxiliaryState:
        """Return the state with the plug-in value of (beta, k) and labels drawn at it."""
        beta, k = self.plug_in
        theta = math.log(beta / (self.walk.beta_max - beta))
        sampler = self.label_sampler.compiled()
        n_unequal = draw_labels(sampler, beta, k, spawn_keys(int(key), 1)[0])
        state = self.start(theta, k)
        assert n_unequal == 0, "the bonds coalesce within tens of sweeps at any beta"
        assert state is not None, "the prior is positive at the plug-in"
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
    """Run the paper's auxiliary-variable chains, without refreshing of the auxiliary labels.

    Parameters
    ----------
    study : Study
    label_sampler : {"perfect", "gibbs"}
        Sampler of the auxiliary labels: exact draws, or 500 Gibbs sweeps.
    plug_in : tuple of (beta, k), optional
        Plug-in value; the maximum of the pseudo-likelihood by default.
    n_first_stage : int
        Number of iterations of a first stage, whose average replaces the plug-in; 0 for no first
        stage.
    n_warmup : int
        Number of burn-in iterations after the first stage.
    **options
        Arguments ``n_chains``, ``n_draws``, ``random_state`` and ``n_jobs`` of
        :func:`bayesknn.posterior.auxiliary`.

    Returns
    -------
    xarray.DataTree
        Draws; its warm-up includes the first stage.
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
    """Table of log Z over (beta, k) with linear interpolation in beta.

    Attributes
    ----------
    betas : ndarray of shape (n_betas,)
    log_normalizers : ndarray of shape (k_max, n_betas)
        Row k - 1 has log Z at k. Rows between the paper's values of k are linear interpolations.
    """

    betas: np.ndarray
    log_normalizers: np.ndarray

    @property
    def k_max(self) -> int:
        """Largest k of the table."""
        return len(self.log_normalizers)

    @property
    def beta_max(self) -> float:
        """Largest beta of the table."""
        return float(self.betas[-1])

    def log_normalizer(self, beta: Any, k: int) -> Any:
        """Return the interpolated log Z(beta, k)."""
        return np.interp(beta, self.betas, self.log_normalizers[k - 1])


@shared
def gibbs_expectations(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return the paper's values of beta, (n_betas,), and E[S_k] / k at them, (n_k, n_betas)."""
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
        Values of beta. The first is 0, where the expectation is known.
    k : int
    key : numpy.uint64
    n_sweeps : (int, int)
        Number of burn-in sweeps and of sweeps kept.

    Returns
    -------
    list of float
        Estimate at each beta.
    """
    means, (n_warmup, n_kept) = [model.n_points / model.n_classes], n_sweeps
    for beta, chain_key in zip(betas[1:], spawn_keys(int(key), len(betas) - 1), strict=True):
        _, info = gibbs_labels(model, beta, k, n_draws=n_kept, n_warmup=n_warmup, key=chain_key)
        means.append(info.agreement.mean() / k)
    return means


def gibbs_table(setting: Setting) -> BilinearTable:
    """Return the path-sampling table of log Z on Ripley's graph."""
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
    """Return the test error rate of the coherent rule at one k, for two classes.

    With two classes the predicted class does not depend on beta, so beta = 1 is used.
    """
    one = Draws(np.ones((1, 1)), np.full((1, 1), k))
    return study.error_rate(predict(study, one))


def predictive(
    study: Study, posterior: Draws | GridPosterior, direction: str = "both"
) -> Predictive:
    """Return the predictive rule that averages over a posterior.

    Parameters
    ----------
    study : Study
    posterior : Draws or GridPosterior
    direction : {"both", "forward"}
        ``"both"`` counts forward and reverse neighbours, as in the paper; ``"forward"`` counts
        forward neighbours only, as Holmes and Adams do.
    """
    if isinstance(posterior, GridPosterior):
        nodes = PosteriorNodes.from_grid(posterior)
    else:
        nodes = PosteriorNodes.from_draws(*posterior.kept.values())
    return Predictive(study.model, study.labels, nodes, direction=direction)


def predict(study: Study, posterior: Draws | GridPosterior, direction: str = "both") -> np.ndarray:
    """Return the class probabilities of the test points, shape (n_test, n_classes)."""
    return predictive(study, posterior, direction).probabilities(study.X_test)


def score_rule(
    study: Study, posterior: Draws | GridPosterior, score: Callable[[np.ndarray], float]
) -> Estimate:
    """Return a score of the test probabilities, such as ``study.error_rate``, with its error.

    For chains, ``run_sd`` is the standard deviation of the scores of single chains. For a grid, the
    error is the standard deviation of the scores over posteriors with resampled log Z.
    """
    parts: list[Any]
    if isinstance(posterior, GridPosterior):
        # Sixteen replicates estimate the standard deviation to within about 18 %.
        parts = [replace(posterior, weights=weights) for weights in posterior.replicates[1:17]]
    else:
        pairs = zip(posterior.beta[:, None], posterior.k[:, None], strict=True)
        parts = [replace(posterior, beta=beta, k=k) for beta, k in pairs]
    value = score(predict(study, posterior))
    runs = mean_over_runs([score(predict(study, part)) for part in parts])
    if isinstance(posterior, GridPosterior):
        return Estimate(value, runs.run_sd)
    return runs._replace(value=value)


def mean_over_runs(values: Any) -> Estimate:
    """Return the mean of values from independent runs, its standard error and the sd of one run.

    Examples
    --------
    >>> from bayesknn.paper.samples import mean_over_runs
    >>> mean_over_runs([1.0, 3.0, 2.0, 2.0]).value
    2.0
    """
    run_sd = float(np.std(values, ddof=1))
    return Estimate(float(np.mean(values)), run_sd / len(values) ** 0.5, run_sd)
