"""Which route to the posterior: likelihood x inference (docs/methods.md).

A target and a schedule go in, a :class:`FittedPosterior` comes out: draws as arrays, the grid if
there is one, and a :class:`Report`. ``likelihood`` is the
likelihood used, ``inference`` how its posterior is computed. The coherent model has all four
routes: ``"metropolis"`` on it is the paper's path-sampling chain (a log Z table, then a random
walk), ``"auxiliary"`` its perfect or Gibbs chain. A likelihood that can be computed has no constant
to get around, so only ``"grid"`` and ``"metropolis"`` make sense for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_choice
from bayesknn._utils.random import seeds_for
from bayesknn.labels.sampling import METHODS as LABEL_SAMPLERS
from bayesknn.likelihood import LIKELIHOODS, PathTable, path_table
from bayesknn.model import BoltzmannModel, Prior
from bayesknn.posterior.mcmc.auxiliary import plan_auxiliary
from bayesknn.posterior.mcmc.exchange import plan_exchange
from bayesknn.posterior.mcmc.metropolis import plan_metropolis
from bayesknn.posterior.mcmc.runner import Sampler, run_sampler
from bayesknn.posterior.quadrature.grid import GridPosterior, choose_tolerance, grid_posterior
from bayesknn.posterior.trees import lay_out_draws

INFERENCES = ("auto", "grid", "metropolis", "auxiliary", "exchange")
# The tail of the prior's range that the posterior must stay out of: further in, it is warned of
# priors that change nothing; further out, not of some that do.
_EDGE = 0.98
# Mass beyond beta_max, extrapolated and relative to the posterior, above which the posterior counts
# as flat. Smaller values warn of tails that fall slowly, larger ones miss plateaus at some k only.
_FLAT = 0.5


class Target(NamedTuple):
    """What the posterior is about.

    Attributes
    ----------
    likelihood : str
        One of :data:`bayesknn.likelihood.LIKELIHOODS`.
    model : BoltzmannModel
    labels : ndarray of shape (n,)
    prior : Prior
    """

    likelihood: str
    model: BoltzmannModel
    labels: np.ndarray
    prior: Prior

    def make_likelihood(self, **options: Any) -> Any:
        """Return the likelihood of the labels."""
        return LIKELIHOODS[self.likelihood](self.model, self.labels, **options)


class Schedule(NamedTuple):
    """How long chains run; the grid makes as many independent draws."""

    n_chains: int = 4
    n_draws: int = 5000
    n_warmup: int = 1000


class Report(NamedTuple):
    """Method by which a posterior was computed, and its accuracy.

    Attributes
    ----------
    likelihood, inference : str
    ess, mcse : dict of str to float
        Effective sample size of ``beta`` and ``k``, and Monte Carlo error of their means.
    log_normalizer_error : float
        Monte Carlo error of log Z.
    warnings : list of str
    rhat : dict of str to float, or None
        Of chains; a sum over a grid has no R-hat, and accepts nothing.
    acceptance : list of float, or None
        Proportion of moves that each chain accepted.
    label_sampler : str or None
        Of chains that draw labels.
    """

    likelihood: str
    inference: str
    ess: dict[str, float]
    mcse: dict[str, float]
    log_normalizer_error: float
    warnings: list[str]
    rhat: dict[str, float] | None = None
    acceptance: list[float] | None = None
    label_sampler: str | None = None

    def describe(self, **more: Any) -> dict[str, Any]:
        """Return the entries of ``diagnostics_`` about the posterior, and those of ``more``."""
        known = {name: value for name, value in self._asdict().items() if value is not None}
        return {**known, "warnings": list(self.warnings), **more}


class FittedPosterior(NamedTuple):
    """A posterior, and how it was reached.

    Attributes
    ----------
    draws : dict
        As :func:`bayesknn.posterior.trees.restore_tree` takes it.
    grid : GridPosterior or None
        None where chains were run.
    report : Report
    """

    draws: dict[str, Any]
    grid: GridPosterior | None
    report: Report

    @property
    def beta(self) -> np.ndarray:
        """Draws of beta, of shape (n_chains, n_draws)."""
        return self.draws["groups"]["posterior"]["beta"]

    @property
    def k(self) -> np.ndarray:
        """Draws of k, of shape (n_chains, n_draws)."""
        return self.draws["groups"]["posterior"]["k"]

    def k_marginal(self, k_max: int) -> tuple[np.ndarray, np.ndarray]:
        """Return P(k | y) for k = 1..k_max, and the Monte Carlo errors.

        Draws of a chain are worth as many independent ones as their effective sample size says.
        """
        if self.grid is not None:
            return self.grid.k_probabilities, self.grid.k_probabilities_error
        p = np.bincount(self.k.ravel(), minlength=k_max + 1)[1:] / self.k.size
        return p, np.sqrt(p * (1 - p) / self.report.ess["k"])

    def beta_cdf(self, beta: np.ndarray) -> np.ndarray:
        """Return P(beta is at most so much | y)."""
        if self.grid is not None:
            return self.grid.beta_cdf(beta)
        return np.mean(self.beta.ravel() <= np.asarray(beta)[..., None], axis=-1)

    def beta_moments(self) -> tuple[float, float]:
        """Return the posterior mean and standard deviation of beta."""
        if self.grid is not None:
            return self.grid.beta_mean, self.grid.beta_sd
        return float(self.beta.mean()), float(self.beta.std())


def choose_inference(likelihood: str, inference: str, n_points: int) -> tuple[str, str]:
    """Return the inference to use and the reason for it, or say why there is none.

    Examples
    --------
    >>> from bayesknn.posterior.routes import choose_inference
    >>> choose_inference("pseudo", "auto", 250)[0]
    'grid'
    >>> choose_inference("pseudo", "exchange", 250)
    Traceback (most recent call last):
    ...
    ValueError: inference='exchange' is for likelihood='coherent'; the pseudo likelihood has no...
    """
    check_choice(likelihood, "likelihood", LIKELIHOODS)
    check_choice(inference, "inference", INFERENCES)
    is_coherent = LIKELIHOODS[likelihood].coherent
    if not is_coherent and inference in ("auxiliary", "exchange"):
        raise ValueError(
            f"inference={inference!r} is for likelihood='coherent'; the {likelihood} likelihood "
            "has no unknown constant: use 'grid' or 'metropolis'"
        )
    if inference != "auto":
        return inference, "asked for"
    if not is_coherent:
        return "grid", "the likelihood can be computed, so the posterior is a sum over a grid"
    return "grid", (
        f"{n_points} points: log Z where the posterior is takes seconds to a minute and its error "
        f"is known, so no chain is needed; {choose_tolerance(n_points)} is allowed on log P(k)"
    )


def compute_posterior(
    target: Target,
    inference: str,
    label_sampler: str = "swendsen-wang",
    schedule: Schedule | None = None,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> FittedPosterior:
    """Compute the posterior of (beta, k) by the route asked for.

    Parameters
    ----------
    target : Target
    inference : {"grid", "metropolis", "auxiliary", "exchange"}
        As :func:`choose_inference` returns it.
    label_sampler : {"swendsen-wang", "perfect", "gibbs"}
        What draws labels in ``"auxiliary"`` and ``"exchange"``.
    schedule : Schedule, optional
    random_state : None, int, SeedSequence, Generator or RandomState
    n_jobs : int, optional
        The result does not depend on it.
    verbose : int

    Returns
    -------
    FittedPosterior
    """
    check_choice(label_sampler, "label_sampler", LABEL_SAMPLERS)
    schedule = schedule or Schedule()
    how = {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose}
    if inference == "grid":
        likelihood = target.make_likelihood()
        grid = grid_posterior(likelihood, target.prior, **how)
        return _draw_from_grid(grid, target, likelihood, schedule, random_state)
    return _by_chains(target, inference, label_sampler, schedule, how)


def reweight_posterior(
    grid: GridPosterior, prior: Prior, target: Target, schedule: Schedule, random_state: Any
) -> FittedPosterior:
    """Return the posterior under the prior of ``target``, from that of a fit under another one.

    The coherent likelihood is known where the grid of the fit has nodes. The two products of
    conditionals are computed again, which takes no simulation.

    Parameters
    ----------
    grid : GridPosterior
        Of the fit.
    prior : Prior
        Of the fit.
    target : Target
        With the graph and the labels of the fit, and the other prior.
    schedule : Schedule
    random_state : None, int, SeedSequence, Generator or RandomState
        That of the fit gives the draws of the fit under the same prior.

    Returns
    -------
    FittedPosterior

    Raises
    ------
    ValueError
        If the graph, or the grid of the coherent likelihood, does not reach.
    """
    if target.prior.k_max > prior.k_max:
        raise ValueError(
            f"the graph of the fit ends at k = {prior.k_max}: fit with k up to {target.prior.k_max}"
        )
    likelihood = target.make_likelihood()
    if LIKELIHOODS[target.likelihood].coherent:
        grid = grid.reweight(prior, target.prior)
    else:
        grid = grid_posterior(likelihood, target.prior)
    return _draw_from_grid(grid, target, likelihood, schedule, random_state)


def _finish(fitted: FittedPosterior, target: Target) -> FittedPosterior:
    """Return the posterior with the warnings that its values call for."""
    warnings = [*fitted.report.warnings, *_describe_ends(fitted, target)]
    return fitted._replace(report=fitted.report._replace(warnings=warnings))


def _describe_ends(fitted: FittedPosterior, target: Target) -> list[str]:
    """Return warnings about a posterior that lies at an end of the prior's range."""
    prior, warnings = target.prior, []
    # At these fractions of beta_max.
    below = fitted.beta_cdf(prior.beta_max * np.array([1 - _EDGE, 0.8, 0.9, _EDGE]))
    edge = float(1.0 - below[3])
    if edge > 0.05:
        warnings.append(
            f"{100 * edge:.0f} % of the posterior lies within 2 % of beta_max="
            f"{prior.beta_max:.3g}: the labels agree with their neighbours as well as the "
            "prior lets them, and a larger beta_max would change the answer"
        )
    elif _extrapolate_tail(below[2] - below[1], 1.0 - below[2]) > _FLAT:
        warnings.append(
            f"the posterior of beta does not fall towards beta_max={prior.beta_max:.3g}: "
            "large beta fit the labels equally well, so the prior alone bounds beta, and its mean "
            "and intervals follow from beta_max"
        )
    if below[0] > 0.5:
        warnings.append(
            "beta is all but 0: under this likelihood the labels are as good as independent of "
            "their neighbours, and all classes are about as probable everywhere; unequal class "
            "weights may do that"
        )
    k_max = prior.k_max
    # A tenth; three at least, as P(k) is uneven where k is small, and half of them at most.
    n_last = max(k_max // 10, min(3, (k_max + 1) // 2))
    edge = float(fitted.k_marginal(k_max)[0][-n_last:].sum())
    part = n_last / k_max
    # So much of the mass that the prior gives to the others leans on the largest k. With a single
    # k the two sides are both 1, up to rounding error.
    if k_max < target.model.n_points - 1 and edge >= part + 0.3 * (1 - part) - 1e-9:
        last = f"the last {n_last} k, {k_max - n_last + 1} to" if n_last > 1 else "the largest k,"
        warnings.append(
            f"{100 * edge:.0f} % of the posterior lies in {last} {k_max}: more neighbours would "
            "be used if max_neighbors let them"
        )
    return warnings


def _extrapolate_tail(before: float, last: float) -> float:
    """Return the mass beyond the range, given that of its last two tenths.

    They are continued as a geometric series.
    """
    # Draws of chains do not tell how less than a hundredth falls.
    if last < 0.01:
        return 0.0
    return float(last**2 / (before - last)) if before > last else np.inf


def _draw_from_grid(
    grid: GridPosterior, target: Target, likelihood: Any, schedule: Schedule, random_state: Any
) -> FittedPosterior:
    """Return a posterior that is known on a grid, with draws from it."""
    seeds = seeds_for(random_state, "draws from the grid", likelihood.fingerprint)
    draws = grid.draw(schedule.n_chains, schedule.n_draws, seeds)
    n_draws = float(draws["k"].size)
    attrs = {"algorithm": "grid", "beta_max": target.prior.beta_max, "k_max": target.prior.k_max}
    report = Report(
        target.likelihood,
        "grid",
        # The draws are independent.
        ess={"beta": n_draws, "k": n_draws},
        mcse={"beta": grid.beta_mean_error, "k": grid.k_mean_error},
        log_normalizer_error=_largest_error(grid),
        warnings=[str(sentence) for sentence in grid.info.get("warnings", [])],
    )
    draws = lay_out_draws(draws, labels=target.labels, attrs=attrs)
    return _finish(FittedPosterior(draws, grid, report), target)


def _largest_error(grid: GridPosterior) -> float:
    """Return the Monte Carlo error of log P(k), the largest among the k that matter."""
    if len(grid.replicates) == 0:
        return 0.0
    replicates = grid.replicates.sum(axis=2)
    probabilities = grid.weights.sum(axis=1)
    matters = probabilities > 0.01 * probabilities.max()
    return float(np.log(replicates[:, matters]).std(axis=0).max())


def _by_chains(
    target: Target, inference: str, label_sampler: str, schedule: Schedule, how: dict[str, Any]
) -> FittedPosterior:
    """Return a posterior by chains."""
    table, prior = None, target.prior
    if inference == "metropolis" and LIKELIHOODS[target.likelihood].coherent:
        table = path_table(
            target.model, k_max=prior.k_max, beta_max=prior.beta_max, labels=target.labels,
            prior=prior, **how,
        )  # fmt: skip
    likelihood = target.make_likelihood(**({} if table is None else {"table": table}))
    n_warmup = schedule.n_warmup
    sampler: Sampler
    if inference == "metropolis":
        sampler = plan_metropolis(likelihood, prior, n_warmup=n_warmup)
    else:
        plan = plan_exchange if inference == "exchange" else plan_auxiliary
        sampler = plan(likelihood, prior, label_sampler=label_sampler, n_warmup=n_warmup)
    draws, diagnostics = run_sampler(sampler, schedule.n_chains, schedule.n_draws, **how)
    report = Report(
        target.likelihood,
        inference,
        diagnostics.ess,
        diagnostics.mcse,
        0.0 if table is None else _error_at_best(table, draws["groups"]),
        diagnostics.messages,
        diagnostics.rhat,
        diagnostics.acceptance.tolist(),
        None if inference == "metropolis" else label_sampler,
    )
    return _finish(FittedPosterior(draws, None, report), target)


def _error_at_best(table: PathTable, groups: dict[str, dict[str, np.ndarray]]) -> float:
    """Return the standard error of log Z at the draw with the largest posterior."""
    best = int(np.argmax(groups["sample_stats"]["log_posterior"]))
    beta, k = (groups["posterior"][name].flat[best] for name in ("beta", "k"))
    return float(table.error(float(beta), int(k)))
