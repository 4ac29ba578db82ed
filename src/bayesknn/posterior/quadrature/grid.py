"""The posterior of (beta, k) by quadrature, with no Markov chain on them (Section 3).

A likelihood and a prior go in, a :class:`GridPosterior` comes out. (beta, k) is two-dimensional:
given log f(y | beta, k) on a grid the posterior is a sum, and the evidence comes with it. For the
coherent model log Z is simulated where the posterior is (:mod:`bayesknn.posterior.quadrature.mesh`)
or comes from a table, and is exact at those k where that is cheap; a likelihood that can be
computed is evaluated. Where log Z has a Monte Carlo
error, the posterior is computed in every replicate of it, and any mean under the posterior carries
the spread as its error.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from bayesknn._utils.checks import as_floats, check_count, check_indices, check_positive
from bayesknn._utils.progress import progress
from bayesknn._utils.random import Purpose, as_seed_sequence, seeds_for
from bayesknn.exceptions import MixingWarning, PhaseTransitionWarning
from bayesknn.likelihood.base import Likelihood
from bayesknn.likelihood.coherent import ExactLikelihood
from bayesknn.log_z.along_beta import log_z_at
from bayesknn.log_z.log_z import SimulatedLogZ, find_exact, is_narrow
from bayesknn.log_z.records import standard_error
from bayesknn.log_z.simulation import Simulation
from bayesknn.model import Prior, as_prior
from bayesknn.model.boltzmann import check_betas
from bayesknn.model.integration import (
    N_PANELS,
    find_panels,
    integrate,
    make_equal,
    place_cells,
    place_nodes,
)
from bayesknn.model.prior import Mass, find_prior_mass
from bayesknn.posterior.quadrature.log_posterior import LogPosterior
from bayesknn.posterior.quadrature.mesh import Mesh, choose_ks
from bayesknn.posterior.quadrature.peaks import NEGLIGIBLE, weigh_peaks
from bayesknn.posterior.quadrature.which_k import MAX_LOG_DEFICIT, CandidateSearch
from bayesknn.posterior.trees import make_tree

if TYPE_CHECKING:
    import xarray

# Errors allowed on log P(k) by default, and from how many points on the second one.
_TOLERANCE, _LARGE_TOLERANCE, _MANY = 0.05, 0.1, 5_000
# Sweeps, and points times sweeps, that are made by default, of whatever kind: a few seconds on
# hundreds of points, about a minute on thousands. Many classes need them: with 3e5 the mean of beta
# of 20 classes was off by several of its errors.
_MAX_SWEEPS, _MAX_WORK = 1e6, 4e9
# Errors are themselves estimated: a little above what was asked for is not worth a word.
_SLACK = 1.5


@dataclass(frozen=True)
class GridPosterior:
    """The posterior of (beta, k) as weights on a grid, each k with its own values of beta.

    Attributes
    ----------
    k_values : ndarray of shape (n_k,)
        The values of k with a share worth keeping.
    betas : ndarray of shape (n_k, n_betas)
    weights : ndarray of shape (n_k, n_betas)
        They sum to one.
    replicates : ndarray of shape (n_replicates, n_k, n_betas)
        The weights under resampled values of log Z; empty where log Z is exact.
    k_max : int
    log_evidence, log_evidence_error : float
        The log of the integral of the likelihood under the prior; NaN where it was not asked for.
    info : dict
        What was done: ``n_sweeps`` of all chains, first candidates included, ``tolerance``,
        ``warnings``.
    cells : ndarray of shape (n_k, n_betas + 1)
        Where the cells begin and end of which the weights are the masses, each with its beta in
        it. By default they meet half-way between two beta and end at the first and the last.
    """

    k_values: np.ndarray
    betas: np.ndarray
    weights: np.ndarray
    replicates: np.ndarray
    k_max: int
    log_evidence: float = float("nan")
    log_evidence_error: float = float("nan")
    info: dict[str, Any] = field(default_factory=dict)
    cells: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        k_max = check_count(self.k_max, "k_max")
        k_values = check_indices(self.k_values, "k_values", k_max, 1)
        betas, weights = check_betas(self.betas, "betas"), as_floats(self.weights, "weights")
        replicates, cells = as_floats(self.replicates, "replicates"), as_floats(self.cells, "cells")
        shape = (len(np.atleast_1d(k_values)), *betas.shape[1:])
        for name, array, ends in (
            ("betas", betas, (shape,)),
            ("weights", weights, (shape,)),
            ("replicates", replicates, ((len(replicates), *shape),)),
            ("cells", cells, ((0,), (shape[0], betas.shape[-1] + 1))),
        ):
            if k_values.ndim != 1 or len(shape) != 2 or array.shape not in ends:
                raise ValueError(
                    f"{name} of shape {array.shape} does not suit {shape[0]} k_values and betas of "
                    f"shape {betas.shape}"
                )
        if not (np.all(weights >= 0) and np.isclose(weights.sum(), 1.0)):
            raise ValueError(f"weights must not be negative and sum to one, not {weights.sum()}")
        if self.cells.size == 0:
            inner = (self.betas[:, 1:] + self.betas[:, :-1]) / 2
            cells = np.column_stack([self.betas[:, 0], inner, self.betas[:, -1]])
            object.__setattr__(self, "cells", cells)

    def mean(self, values: Any) -> tuple[Any, Any]:
        """Return the posterior mean of a quantity and its Monte Carlo error.

        Parameters
        ----------
        values : array-like of shape (n_k, n_betas, ...)
            The quantity at every point of the grid.

        Returns
        -------
        mean, error : float, or ndarray of the trailing shape
        """
        values = np.asarray(values, dtype=np.float64)
        # Not by tensordot, whose threads take longer to wake than this takes.
        mean = np.einsum("kb,kb...->...", self.weights, values)
        if len(self.replicates) == 0:
            return mean, np.zeros_like(mean)
        return mean, np.tensordot(self.replicates, values, axes=2).std(axis=0)

    @property
    def k_probabilities(self) -> np.ndarray:
        """P(k | y) for k = 1..k_max."""
        probabilities = np.zeros(self.k_max)
        probabilities[self.k_values - 1] = self.weights.sum(axis=1)
        return probabilities

    @property
    def k_probabilities_error(self) -> np.ndarray:
        """Monte Carlo error of each P(k | y)."""
        errors = np.zeros(self.k_max)
        if len(self.replicates):
            errors[self.k_values - 1] = self.replicates.sum(axis=2).std(axis=0)
        return errors

    @property
    def beta_mean(self) -> float:
        """E[beta | y]."""
        return float(self.mean(self.betas)[0])

    @property
    def beta_mean_error(self) -> float:
        """Monte Carlo error of E[beta | y]."""
        return float(self.mean(self.betas)[1])

    @property
    def beta_sd(self) -> float:
        """Posterior standard deviation of beta."""
        return float(np.sqrt(self.mean((self.betas - self.beta_mean) ** 2)[0]))

    def beta_cdf(self, beta: Any) -> np.ndarray:
        """Return P(beta is at most so much | y); within a cell beta is uniform.

        Parameters
        ----------
        beta : array-like

        Returns
        -------
        ndarray of the shape of ``beta``
        """
        beta = check_betas(beta)[..., None, None]
        low, high = self.cells[:, :-1], self.cells[:, 1:]
        # Cells beyond a range that was truncated have no width.
        fraction = np.clip((beta - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)
        return np.einsum("kb,...kb->...", self.weights, fraction)

    @property
    def k_mean(self) -> float:
        """E[k | y]."""
        return float(self.k_probabilities @ np.arange(1, self.k_max + 1))

    @property
    def k_mean_error(self) -> float:
        """Monte Carlo error of E[k | y]."""
        return float(self.mean(np.broadcast_to(self.k_values[:, None], self.betas.shape))[1])

    @property
    def k_sd(self) -> float:
        """Posterior standard deviation of k."""
        squares = (np.arange(1, self.k_max + 1) - self.k_mean) ** 2
        return float(np.sqrt(self.k_probabilities @ squares))

    def sample(self, n_draws: int, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw (beta, k) independently from the posterior.

        beta is uniform within its cell, so that draws are not tied to the grid.

        Returns
        -------
        beta : ndarray of shape (n_draws,)
        k : ndarray of shape (n_draws,), dtype int64
        """
        n_draws = check_count(n_draws, "n_draws")
        rng = np.random.default_rng(as_seed_sequence(random_state))
        chosen = rng.choice(self.weights.size, size=n_draws, p=self.weights.ravel())
        row, column = np.divmod(chosen, self.betas.shape[1])
        low, high = self.cells[row, column], self.cells[row, column + 1]
        return low + (high - low) * rng.random(n_draws), self.k_values[row]

    def draw(self, n_chains: int, n_draws: int, random_state: Any = None) -> dict[str, np.ndarray]:
        """Draw as :meth:`sample` does, for :func:`bayesknn.posterior.make_tree`.

        Returns
        -------
        dict of str to ndarray of shape (n_chains, n_draws)
            ``beta``, ``k`` and ``log_posterior``.
        """
        n_chains, n_draws = check_count(n_chains, "n_chains"), check_count(n_draws, "n_draws")
        beta, k = self.sample(n_chains * n_draws, random_state)
        draws = {"beta": beta, "k": k, "log_posterior": self.log_density(beta, k)}
        return {name: values.reshape(n_chains, n_draws) for name, values in draws.items()}

    def log_density(self, beta: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the log of the posterior's density at some (beta, k): that of their cells.

        Parameters
        ----------
        beta, k : ndarray of shape (m,)

        Returns
        -------
        ndarray of shape (m,)
            Minus infinity outside the cells.
        """
        beta, k = np.broadcast_arrays(np.atleast_1d(check_betas(beta)), as_floats(k, "k"))
        with np.errstate(divide="ignore"):
            # Cells beyond a range that was cut have no width.
            table = np.log(self.weights / np.maximum(np.diff(self.cells, axis=1), 1e-300))
        values = np.full(len(beta), -np.inf)
        for row, cells in enumerate(self.cells):
            where = (k == self.k_values[row]) & (beta >= cells[0]) & (beta <= cells[-1])
            column = np.searchsorted(cells, beta[where], side="right") - 1
            values[where] = table[row, np.minimum(column, table.shape[1] - 1)]
        return values

    def reweight(self, prior: Prior, new: Prior) -> GridPosterior:
        """Return the posterior under another prior, from the likelihood that is on the grid.

        Parameters
        ----------
        prior : Prior
            The one it was computed with.
        new : Prior
            The other one.

        Returns
        -------
        GridPosterior
            With the evidence under the new prior.

        Raises
        ------
        ValueError
            If the new prior has much of its posterior where this grid has no values.
        """
        kept, end = self.k_values <= new.k_max, min(prior.beta_max, new.beta_max)
        ks, betas, cells = self.k_values[kept], self.betas[kept], self.cells[kept]
        betas = np.minimum(betas, end)
        # A cell that the new range cuts keeps the part below.
        ratio = np.clip((end - cells[:, :-1]) / np.diff(cells, axis=1), 0.0, 1.0)
        with np.errstate(invalid="ignore"):
            # NaN, which no comparison below is true of, where the fit's prior was 0.
            ratio = ratio * _prior_ratio(prior, new, betas, ks[:, None])
            weights, replicates = self.weights[kept] * ratio, self.replicates[:, kept] * ratio
        total, totals = weights.sum(), replicates.sum(axis=(1, 2))
        missing = np.setdiff1d(np.arange(1, new.k_max + 1), ks)
        at_missing = _prior_ratio(prior, new, min(self.beta_mean, end), missing)
        unknown = np.exp(-MAX_LOG_DEFICIT) * self.weights.sum(axis=1).max() * at_missing.sum()
        beyond = self._bound_beyond(prior.beta_max, new.beta_max - prior.beta_max)
        if not unknown + beyond < 0.01 * total:
            missing = missing[at_missing > 0]
            gap = ""
            if unknown >= 0.01 * total and len(missing):
                gap = (
                    f"it has no nodes at {len(missing)} k of this prior, {missing[0]} to "
                    f"{missing[-1]}, which the fit's prior excluded or the labels made improbable; "
                )
            raise ValueError(
                f"the grid does not reach: {gap}much of the posterior may lie at k or beta of "
                f"which the fit (k_max={prior.k_max}, beta_max={prior.beta_max:g}) has nothing; "
                "fit with this prior"
            )
        spread = np.log(totals).std() if len(totals) else 0.0
        log_evidence = self.log_evidence + float(np.log(total))
        error = float(np.hypot(self.log_evidence_error, spread))
        return GridPosterior(
            ks, betas, weights / total, replicates / totals[:, None, None], new.k_max,
            log_evidence, error, self.info, np.minimum(cells, end),
        )  # fmt: skip

    def _bound_beyond(self, beta_max: float, more: float) -> float:
        """Bound what lies beyond beta_max, as log f is concave in beta and its slope only falls."""
        before, last = (self.weights[:, -2:] / np.diff(self.cells[:, -3:], axis=1)).T
        at_end = (self.cells[:, -1] >= beta_max) & (last > 0)
        if more <= 0 or not at_end.any():
            return 0.0
        with np.errstate(divide="ignore", over="ignore"):
            growth = np.maximum(last / before, 1.0) ** (more / np.diff(self.betas[:, -2:])[:, 0])
        return float(np.sum((more * last * growth)[at_end]))

    def to_tree(
        self,
        n_chains: int = 4,
        n_draws: int = 1000,
        *,
        labels: Any = None,
        random_state: Any = None,
    ) -> xarray.DataTree:
        """Draw independently from the posterior, laid out as the chains lay out theirs.

        Parameters
        ----------
        n_chains, n_draws : int
        labels : array-like of shape (n,), optional
            The observed labels, for the group ``observed_data``.
        random_state : None, int, SeedSequence, Generator or RandomState

        Returns
        -------
        xarray.DataTree
            ``posterior/beta`` and ``posterior/k`` over (chain, draw).
        """
        evidence = {name: getattr(self, name) for name in ("log_evidence", "log_evidence_error")}
        draws = self.draw(n_chains, n_draws, random_state)
        return make_tree(draws, labels=labels, attrs={**evidence, **self.info})


def grid_posterior(
    likelihood: Likelihood,
    prior: Any = None,
    *,
    beta_max: float | None = None,
    tolerance: float | None = None,
    evidence: bool = True,
    exact: bool = True,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> GridPosterior:
    """Compute the posterior of (beta, k) by quadrature.

    Parameters
    ----------
    likelihood : Likelihood
        A :class:`~bayesknn.likelihood.CoherentLikelihood` without a table needs log Z, which is
        simulated where the posterior is; anything else is evaluated on the grid.
    prior : Prior, array-like, callable, optional
        Uniform on {1..k_max} x [0, beta_max] by default.
    beta_max : float, optional
        Needed unless ``prior`` is a :class:`~bayesknn.model.Prior`, which knows it.
    tolerance : float, optional
        Monte Carlo error allowed on the log posterior of the k that matter: by default .05, and
        .1 from 5,000 points on, or what about a minute on one core gives if that is more. For a
        number there is no such limit, but for one of twelve rounds, each of which may make four
        times as much of what was done. ``info["warnings"]`` says where the error is larger than
        asked for.
    evidence : bool
        Whether to compute the evidence too. A simulated log Z takes a path from beta = 0, of
        which the error is brought to four times ``tolerance``, or as low as a quarter of all
        sweeps gets it: its log grows with n, and so does its error. Where log Z is exact at one of
        the k that matter, no path is needed and the error is that of the posterior.
    exact : bool
        Whether log Z is computed exactly at those small k where that is cheaper than a simulation:
        on few points these may be all k.
    random_state : None, int, SeedSequence, Generator or RandomState
    n_jobs : int, optional
        Threads. The result does not depend on them.
    verbose : int
        Above 0, a count of the nodes visited is shown once two seconds have passed.

    Returns
    -------
    GridPosterior

    Warns
    -----
    PhaseTransitionWarning
        A first-order transition lies among the k that matter, and the sweeps allowed did not bring
        the errors down to what was asked for.
    MixingWarning
        The search for the k that matter used up its part of the sweeps before it was sure.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import PseudoLikelihood
    >>> from bayesknn.posterior import grid_posterior
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(60) % 2
    >>> graph = NeighborGraph.from_points(rng.normal(size=(60, 2)) + 2 * labels[:, None], k_max=20)
    >>> posterior = grid_posterior(PseudoLikelihood(graph, labels), beta_max=4.0)
    >>> round(float(posterior.k_probabilities.sum()), 6)
    1.0
    """
    prior = as_prior(prior, likelihood.k_max, beta_max)
    if tolerance is not None:
        tolerance = check_positive(tolerance, "tolerance")
    if not isinstance(getattr(likelihood, "log_z", None), SimulatedLogZ):
        return _from_values(likelihood, prior)
    ks = list(find_prior_mass(prior)) if exact else []
    if ks and is_narrow(likelihood.model, ks[-1]) and find_exact(likelihood.model, ks) == ks:
        return _from_values(ExactLikelihood(likelihood.model, likelihood.labels), prior)
    max_sweeps = np.inf
    if tolerance is None:
        tolerance = choose_tolerance(likelihood.n_points)
        max_sweeps = min(_MAX_SWEEPS, _MAX_WORK / likelihood.n_points)
    # The name of the random numbers: another would change every result.
    seeds = seeds_for(random_state, "ridge", likelihood.fingerprint)
    with (
        progress("Simulating log Z", verbose=verbose) as advance,
        Simulation(likelihood.model, seeds, n_jobs, advance) as simulation,
    ):
        return _from_simulation(
            simulation, likelihood, prior, tolerance, max_sweeps, evidence, exact
        )


def _prior_ratio(prior: Prior, new: Prior, beta: Any, k: Any) -> np.ndarray:
    """Return the new density over that of the fit: 0 where the new one is, even if both are."""
    above, below = new.log_density(beta, k), prior.log_density(beta, k)
    with np.errstate(invalid="ignore"):
        return np.exp(np.where(np.isneginf(above), -np.inf, above - below))


def choose_tolerance(n_points: int) -> float:
    """Return the error on log P(k) that is allowed by default.

    On many points sweeps take long, and beta is known so well that k hardly matters to anything.

    Examples
    --------
    >>> from bayesknn.posterior.quadrature.grid import choose_tolerance
    >>> choose_tolerance(250), choose_tolerance(100_000)
    (0.05, 0.1)
    """
    return _TOLERANCE if n_points < _MANY else _LARGE_TOLERANCE


def _from_simulation(
    simulation: Simulation,
    likelihood: Any,
    prior: Prior,
    tolerance: float,
    max_sweeps: float,
    evidence: bool,
    exact: bool,
) -> GridPosterior:
    """Simulate log Z where the posterior is; the arguments are those of :func:`grid_posterior`."""
    target = LogPosterior(likelihood, prior)
    search = CandidateSearch(simulation, target, max_sweeps)
    candidates = search.run()
    exact_ks: list[int] = []
    if exact and search.division is None:
        ks = choose_ks(target, candidates).tolist()
        exact_ks = find_exact(likelihood.model, ks)
        if exact_ks == ks:
            posterior = _from_values(
                ExactLikelihood(likelihood.model, likelihood.labels), prior, ks
            )
            return replace(posterior, info={**posterior.info, "n_sweeps": simulation.n_sweeps})
    # The search has a part of the sweeps, but never all; another is for the evidence.
    most = max(0.85 * max_sweeps, simulation.n_sweeps + max_sweeps / 5)
    mesh = Mesh(simulation, target, candidates, tolerance, most, search.division, exact_ks)
    simulation.run(mesh)
    profiles, is_absolute = mesh.estimate.profiles, mesh.estimate.is_absolute
    edges = make_equal([profile.find_panels(N_PANELS) for profile in profiles])
    log_posterior = [profile.weigh(row) for profile, row in zip(profiles, edges, strict=True)]
    weights, totals = _normalize(np.stack(log_posterior, axis=1))
    log_evidence, error = float("nan"), float("nan")
    if evidence and not is_absolute:
        pair, log_z_there = mesh.reference
        # It is not a ratio of near things: less precisely than those.
        log_z = log_z_at(
            simulation, pair.k, pair.beta, 4 * tolerance,
            min(simulation.n_sweeps, max_sweeps) / 4, key=(Purpose.LOG_Z,),
        )  # fmt: skip
        totals -= log_z - log_z_there
    if evidence or is_absolute:
        log_evidence, error = float(totals[0]), float(standard_error(totals))
    words = _describe_limits(search, mesh)
    is_divided = search.division is not None
    if search.is_cut or (is_divided and mesh.excess > _SLACK):
        kind = PhaseTransitionWarning if is_divided else MixingWarning
        warnings.warn("; ".join(words), kind, stacklevel=3)
    info = {
        "route": "simulation",
        "n_sweeps": simulation.n_sweeps,
        "tolerance": tolerance,
        "warnings": words,
    }
    ks = np.array([profile.k for profile in profiles])
    return GridPosterior(
        ks, place_nodes(edges)[0], weights[0], weights[1:], prior.k_max, log_evidence, error, info,
        place_cells(edges),
    )  # fmt: skip


def _describe_limits(search: CandidateSearch, mesh: Mesh) -> list[str]:
    """Return in words what the posterior does not know as well as it should."""
    words = []
    if search.division is not None:
        words.append(
            "a first-order transition lies among the k that matter: log Z there is the sum of two "
            "parts, disordered and ordered labels, and what one weighs beside the other is known "
            "less well than the rest"
        )
    if search.is_cut:
        words.append(
            "the search for the k that matter ended before it was sure, with its share of the "
            f"{search.max_sweeps:.0f} sweeps that are made by default, so that P(k) and the "
            "evidence may be off by more than their errors: a tolerance has no such end"
        )
    if not mesh.estimate.is_settled:
        words.append(
            "log Z from all draws together did not settle: P(k) and its error may be wrong"
        )
    if mesh.reached < np.inf:
        words.append(
            f"the posterior of beta was followed up to {mesh.reached:.3g} only, and goes on to "
            f"beta_max={search.target.beta_max:.3g}: labels agree with their neighbours, so that "
            "beta has no upper bound but that of the prior; a smaller beta_max gives an answer"
        )
    if mesh.excess > _SLACK:
        words.append(
            f"after {search.simulation.n_sweeps} sweeps the errors of P(k) and of the mean of k "
            f"are still up to {mesh.excess:.2g} times what was asked for"
        )
    return words


def _from_values(likelihood: Any, prior: Prior, only: Sequence[int] | None = None) -> GridPosterior:
    """Evaluate the likelihood where each k has its mass; at some k, if the others do not matter."""
    masses = find_prior_mass(prior)
    if only is not None:
        masses = {k: masses[k] for k in only}
    peaks = None
    # A likelihood of the user's own need not say: it is evaluated.
    if getattr(likelihood, "is_concave", False) and all(mass.is_flat for mass in masses.values()):
        peaks = weigh_peaks(likelihood, masses)
    ks, edges, table = peaks or _weigh_values(likelihood, prior, masses)
    betas = place_nodes(edges)[0]
    # The estimate first, then the same under every replicate of log Z.
    noise = getattr(likelihood, "log_z_noise", lambda beta, k: np.zeros((1, len(beta))))
    noises = [noise(beta, k) for k, beta in zip(ks.tolist(), betas, strict=True)]
    weights, totals = _normalize(table - np.stack(noises, axis=1))
    info: dict[str, Any] = {"route": "peaks" if peaks else "values", "warnings": []}
    return GridPosterior(
        ks, betas, weights[0], weights[1:], prior.k_max, float(totals[0]),
        float(standard_error(totals)), info, place_cells(edges),
    )  # fmt: skip


def _weigh_values(
    likelihood: Likelihood, prior: Prior, masses: dict[int, Mass]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Put panels where each k has its mass; return those k, the panels, and the log masses."""

    def log_posterior(k: int, beta: np.ndarray) -> np.ndarray:
        return likelihood.log_density(beta, np.full(len(beta), k)) + prior.log_density(beta, k)

    panels, scores = {}, {}
    for k, mass in masses.items():
        panels[k] = find_panels(partial(log_posterior, k), mass.panels(N_PANELS), N_PANELS)
        scores[k] = logsumexp(integrate(partial(log_posterior, k), panels[k])[1])
    kept = [k for k in masses if scores[k] > max(scores.values()) - NEGLIGIBLE]
    edges = make_equal([panels[k] for k in kept])
    rows = [
        integrate(partial(log_posterior, k), row)[1] for k, row in zip(kept, edges, strict=True)
    ]
    return np.array(kept), edges, np.array(rows)


def _normalize(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Turn log weights of shape (n_replicates, n_k, n_betas) into weights that sum to one.

    Also returns the log of the sums they had.
    """
    top = table.max(axis=(1, 2))
    weights = np.exp(table - top[:, None, None])
    totals = weights.sum(axis=(1, 2))
    return weights / totals[:, None, None], top + np.log(totals)
