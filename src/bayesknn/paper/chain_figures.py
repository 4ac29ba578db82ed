"""Figures and numbers of the paper's Markov chains on (beta, k) (Sections 2.1, 3.2 to 3.4 and 4).

On Ripley's data the chains are Metropolis-Hastings with the pseudo-likelihood, Metropolis-Hastings
with log Z from path sampling, and auxiliary variables with perfect or Gibbs draws. On the Pima data
there is one chain, auxiliary variables with Gibbs draws.
"""

from __future__ import annotations

import math
import time
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import HolmesAdamsLikelihood
from bayesknn.model import BoltzmannModel
from bayesknn.paper.comparison import ALLOWED, Estimate, Result, is_zero, item
from bayesknn.paper.samples import (
    BAD_PLUG_IN,
    GOOD_PLUG_IN,
    Draws,
    catch_mixing_warnings,
    exact_posterior,
    mean_over_runs,
    moller,
    pima_draws,
    ripley_draws,
)
from bayesknn.paper.setting import BETA_MAX, Setting
from bayesknn.plots.posterior import compute_marginals
from bayesknn.plots.style import COLOURS, INK, new_figure
from bayesknn.posterior import GridPosterior, grid_posterior


@item(
    "num:no-joint",
    three=lambda gap: gap.value > 0,
    ripley=lambda proportion: proportion.value > 0,
    coherent=lambda gap: gap.value < 1e-12,
)
def no_joint(setting: Setting) -> Result:
    """Show that the conditionals eq:knn-intuit have no joint distribution (Section 2.1).

    Under a joint distribution f and with all other labels fixed, a change of y_j changes the log
    odds of y_i by ``log f(1, 1) f(0, 0) / f(1, 0) f(0, 1)``, where the arguments are y_i and y_j. A
    change of y_i changes the log odds of y_j by the same amount. So a joint distribution does not
    exist if the two amounts differ.
    """
    model = BoltzmannModel(NeighborGraph.from_points([[0.0], [1.0], [3.0]], k_max=1), 2)

    def asymmetry(direction: str) -> float:
        """Return the largest difference between the effect of y_j on y_i and of y_i on y_j."""
        effects = []
        for changed in np.eye(3, dtype=int):
            p = [model.conditional(labels, 1.0, 1, direction) for labels in (changed, 0 * changed)]
            effects.append(np.subtract(*(np.log(each[:, 1] / each[:, 0]) for each in p)))
        return np.abs(np.subtract(effects, np.transpose(effects))).max()

    neighbors = setting.ripley.graph.neighbors[:13].T
    mutual = [i in neighbors[j] for i, near in enumerate(neighbors) for j in near]
    three, coherent = asymmetry("forward"), asymmetry("both")
    return Result({"three": three, "ripley": 1 - np.mean(mutual), "coherent": coherent})


@item("num:holmes-adams")
def holmes_adams_sum(setting: Setting) -> Result:
    """Compute the sum of the Holmes-Adams product over all labels of two points (Section 2.1)."""
    pair = NeighborGraph.from_neighbors([[1, 0]])
    total = math.fsum(
        math.exp(HolmesAdamsLikelihood(pair, labels, 2).log_density(1.0, 1))
        for labels in product((0, 1), repeat=2)
    )
    return Result({"sum": total})


@item("num:pseudo-maximum")
def pseudo_maximum(setting: Setting) -> Result:
    """Compute the maximum of the pseudo-likelihood for Ripley's and the Pima data."""
    estimates: dict[str, Any] = {}
    for study, prefix in ((setting.ripley, ""), (setting.pima, "pima_")):
        at = study.pseudo.maximize(BETA_MAX)
        values = {"k": at.k, "beta": at.beta, "value": at.log_value}
        estimates |= {prefix + name: value for name, value in values.items()}
    return Result({**estimates, "more": estimates["beta"]})


@item("fig:pseudoo", mixing=lambda percent: percent.value < 5)
def pseudo_chain(setting: Setting) -> Result:
    """Draw the Metropolis-Hastings chain with the pseudo-likelihood (fig:pseudoo)."""
    exact = grid_posterior(setting.ripley.pseudo, setting.ripley.prior)
    draws = ripley_draws(setting, "pseudo")
    figure, _ = _draw_chain(draws, exact, "quadrature")
    estimates = _describe_chain(draws) | {
        "acceptance": draws.acceptance,
        "mixing": 100 * draws.effective("k"),
        "hybrid": 100 * ripley_draws(setting, "hybrid").effective("k"),
    }
    return Result(estimates, (figure,), draws.messages)


@item("fig:psycho", mixing=lambda ratio: ratio.value > 1)
def path_chain(setting: Setting) -> Result:
    """Draw the Metropolis-Hastings chain with log Z from path sampling (fig:psycho)."""
    draws = ripley_draws(setting, "path")
    figure, _ = _draw_chain(draws, exact_posterior(setting))
    ratio = draws.effective("k") / ripley_draws(setting, "pseudo").effective("k")
    estimates = _describe_chain(draws) | {"acceptance": draws.acceptance, "mixing": ratio}
    return Result(estimates, (figure,), draws.messages)


@item("fig:imperfecto", rejection=lambda rate: rate.value > 0.9, good=lambda rate: rate.value < 0.9)
def bad_chain(setting: Setting) -> Result:
    """Draw the perfect chain with the pseudo-likelihood plug-in (fig:imperfecto)."""
    draws, good = ripley_draws(setting, "perfect", BAD_PLUG_IN), ripley_draws(setting, "perfect")
    figure, _ = _draw_chain(draws, exact_posterior(setting))
    rejections = {"rejection": 1 - draws.acceptance, "good": 1 - good.acceptance}
    return Result(_describe_chain(draws) | rejections, (figure,), draws.messages)


@item("fig:perfecto", same=is_zero)
def good_chains(setting: Setting) -> Result:
    """Draw the perfect and the Gibbs chains with the better plug-in (fig:perfecto)."""
    perfect, gibbs = (ripley_draws(setting, name) for name in ("perfect", "gibbs"))
    estimates = _describe_chain(perfect) | _describe_chain(gibbs, "gibbs_")
    estimates["same"] = estimates["gibbs_k"] - estimates["k"]
    figures, notes = [], []
    for draws, name in ((perfect, "perfect draws"), (gibbs, "500 Gibbs sweeps")):
        figure, axes = _draw_chain(draws, exact_posterior(setting))
        axes[0, 0].set_title(name)
        figures.append(figure)
        notes += [f"{name}: {message}" for message in draws.messages]
    return Result(estimates, figures, notes)


def _describe_chain(draws: Draws, prefix: str = "") -> dict[str, Any]:
    return {prefix + name: draws.mean(name) for name in ("beta", "k")}


@item(
    "num:times",
    perfect=lambda minutes: minutes.value > 7 * 24 * 60,
    ratio=lambda ratio: ratio.value > 10,
)
def running_times(setting: Setting) -> Result:
    """Time one Gibbs and one perfect chain on one thread, scaled to 50,000 moves, in minutes."""
    minutes = {}
    for name in ("gibbs", "perfect"):
        sample = partial(
            moller, setting.ripley, name, GOOD_PLUG_IN, n_chains=1, n_warmup=0, n_jobs=1,
            random_state=setting.seeds(f"time-{name}"),
        )  # fmt: skip
        for n_draws in (10, setting.budget.n_timed):  # The first call compiles.
            start = time.perf_counter()
            catch_mixing_warnings(partial(sample, n_draws=n_draws))
            minutes[name] = (time.perf_counter() - start) * 50_000 / n_draws / 60
    return Result({**minutes, "ratio": minutes["perfect"] / minutes["gibbs"]})


@item("fig:perfindian", avoided=lambda rate: rate.value + ALLOWED * rate.error < 10 / 68)
def pima_chain(setting: Setting) -> Result:
    """Draw the Gibbs chain on the Pima data (fig:perfindian)."""
    draws = pima_draws(setting)
    exact = exact_posterior(setting, "pima")
    figure, axes = _draw_chain(draws, exact)
    axes[1, 0].set_ylim(0, setting.pima.k_max + 1)
    axes[1, 0].axhspan(57, 66, color=COLOURS[1], alpha=0.35, linewidth=0, zorder=0.5)
    style = {"transform": axes[1, 0].get_yaxis_transform(), "va": "center", "fontsize": "small"}
    axes[1, 0].text(0.01, 61.5, "chosen by leave-one-out", **style)
    k, every_k = draws.kept["k"], exact.k_values[:, None]
    is_chosen = np.ones_like(exact.betas) * ((every_k >= 57) & (every_k <= 66))
    estimates = _describe_chain(draws) | {
        "avoided": Estimate(*exact.mean(is_chosen)),
        "avoided_chain": mean_over_runs(np.mean((k >= 57) & (k <= 66), axis=1)),
        "exact_k": Estimate(exact.k_mean, exact.k_mean_error),
        "exact_beta": Estimate(exact.beta_mean, exact.beta_mean_error),
    }
    return Result(estimates, (figure,), draws.messages)


def _draw_chain(draws: Draws, exact: GridPosterior, label: str = "exact posterior") -> Any:
    """Draw the trace of the first chain, and the marginals of all chains and of an exact posterior.

    Parameters
    ----------
    draws : Draws
        Chains, drawn as histograms.
    exact : GridPosterior
        Posterior to compare with, drawn as a line.
    label : str
        Name of the line in the legend.

    Returns
    -------
    figure, axes : matplotlib Figure, ndarray of shape (2, 2)
    """
    figure, axes = new_figure(2, 2, 8.5, 5.0, sharey="row", width_ratios=(2, 1))
    drawn, target = compute_marginals(draws.tree), compute_marginals(exact)
    drawn.beta_trace, drawn.k_trace = draws.beta[:1], draws.k[:1]
    drawn.plot(axes=axes)
    for ax in axes[:, 0]:
        ax.axvspan(0, draws.n_warmup, color="0.93", linewidth=0, zorder=0)
    axes[1, 0].set(xlabel="iteration (burn-in shaded)", ylim=(0, None))
    axes[0, 1].plot(target.beta_density, target.beta_middles, color=INK, linewidth=1.2, label=label)
    axes[0, 1].set_xlim(0, 1.1 * max(target.beta_density.max(), drawn.beta_density.max()))
    axes[0, 1].legend(loc="upper right")
    shown = target.k_probabilities > 1e-3
    axes[1, 1].plot(
        target.k_probabilities[shown], target.k_values[shown], "o-", color=INK, markersize=2.5,
        linewidth=0.8,
    )  # fmt: skip
    axes[1, 1].set_xlim(0, 1.1 * max(target.k_probabilities.max(), drawn.k_probabilities.max()))
    axes[1, 1].set_ylim(0, max(draws.k[0].max(), target.k_values[shown].max()) + 2)
    return figure, axes
