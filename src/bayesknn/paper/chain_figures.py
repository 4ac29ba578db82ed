"""The paper's chains on (beta, k), one method after the other (Sections 2.1, 3.2 to 3.4 and 4).

Metropolis-Hastings on the pseudo-likelihood and on the path-sampling table; auxiliary variables
with perfect and with Gibbs draws; the latter on the Pima data.
"""

from __future__ import annotations

import math
import time
from itertools import product
from typing import Any

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import HolmesAdamsLikelihood
from bayesknn.paper.item import Estimate, Result, make_item
from bayesknn.paper.samples import (
    BAD_PLUG_IN,
    GOOD_PLUG_IN,
    Draws,
    auxiliary_draws,
    catch_mixing_warnings,
    difference,
    exact_posterior,
    mean_over_runs,
    moller,
    path_draws,
    pima_draws,
    pseudo_draws,
    ripley_posterior,
    score_rule,
)
from bayesknn.paper.setting import BETA_MAX, Setting
from bayesknn.plots import PosteriorDisplay
from bayesknn.plots.marginals import find_marginals
from bayesknn.plots.style import COLOURS, INK, new_figure
from bayesknn.posterior import GridPosterior, grid_posterior


def holmes_adams_sum(setting: Setting) -> Result:
    """Sum the Holmes-Adams product over all labels of two points (Section 2.1)."""
    pair = NeighborGraph.from_neighbors([[1, 0]])
    total = math.fsum(
        math.exp(HolmesAdamsLikelihood(pair, labels, 2).log_density(1.0, 1))
        for labels in product((0, 1), repeat=2)
    )
    return Result({"sum": Estimate(total)})


def pseudo_maximum(setting: Setting) -> Result:
    """Find the maximum of the pseudo-likelihood."""
    ripley = setting.ripley.pseudo.maximize(BETA_MAX)
    pima = setting.pima.pseudo.maximize(BETA_MAX)
    return Result(
        {
            "k": Estimate(ripley.k),
            "beta": Estimate(ripley.beta),
            "more": Estimate(ripley.beta),
            "value": Estimate(ripley.log_value),
            "pima_k": Estimate(pima.k),
            "pima_beta": Estimate(pima.beta),
            "pima_value": Estimate(pima.log_value),
        }
    )


def pseudo_chain(setting: Setting) -> Result:
    """Draw the chain on the pseudo-likelihood (Figure pseudoo)."""
    exact = grid_posterior(setting.ripley.pseudo, setting.ripley.prior)
    return _chain(pseudo_draws(setting), exact, "quadrature")


def path_chain(setting: Setting) -> Result:
    """Draw the chain on the path-sampling table (Figure psycho)."""
    draws, other = path_draws(setting), pseudo_draws(setting)
    result = _chain(draws, ripley_posterior(setting), "exact posterior")
    ratio = draws.effective("k") / other.effective("k")
    result.estimates["mixing"] = Estimate(ratio)
    return result


def _chain(draws: Draws, exact: GridPosterior, label: str) -> Result:
    figure, _ = _draw_chain(draws, exact, label)
    estimates = {
        "beta": draws.mean("beta"),
        "k": draws.mean("k"),
        "acceptance": Estimate(draws.acceptance),
    }
    return Result(estimates, {"": figure}, draws.messages)


def bad_chain(setting: Setting) -> Result:
    """Draw the perfect chain with the pseudo-likelihood plug-in (Figure imperfecto)."""
    draws = auxiliary_draws(setting, "perfect", BAD_PLUG_IN)
    figure, _ = _draw_chain(draws, ripley_posterior(setting))
    good = auxiliary_draws(setting, "perfect")
    estimates = {
        "rejection": Estimate(1 - draws.acceptance),
        "good": Estimate(1 - good.acceptance),
        "k": draws.mean("k"),
        "beta": draws.mean("beta"),
    }
    return Result(estimates, {"": figure}, draws.messages)


def good_chains(setting: Setting) -> Result:
    """Draw the perfect and the Gibbs chains with the better plug-in (Figure perfecto)."""
    found = {name: auxiliary_draws(setting, name) for name in ("perfect", "gibbs")}
    figures, notes = {}, []
    for name, draws in found.items():
        figures[name], axes = _draw_chain(draws, ripley_posterior(setting))
        axes[0, 0].set_title("perfect draws" if name == "perfect" else "500 Gibbs sweeps")
        notes += [f"{name}: {message}" for message in draws.messages]
    means = {name: draws.mean("k") for name, draws in found.items()}
    return Result(
        {
            "beta": found["perfect"].mean("beta"),
            "k": means["perfect"],
            "gibbs_beta": found["gibbs"].mean("beta"),
            "gibbs_k": means["gibbs"],
            "same": difference(means["gibbs"], means["perfect"]),
        },
        figures,
        notes,
    )


def running_times(setting: Setting) -> Result:
    """Time one chain of each kind, one thread, and scale to the paper's 50,000 moves."""

    def make() -> dict[str, float]:
        return {name: _minutes(setting, name) for name in ("gibbs", "perfect")}

    minutes = {name: float(value) for name, value in setting.keep("times", make).items()}
    return Result(
        {
            "gibbs": Estimate(minutes["gibbs"]),
            "perfect": Estimate(minutes["perfect"]),
            "ratio": Estimate(minutes["perfect"] / minutes["gibbs"]),
        }
    )


def _minutes(setting: Setting, label_sampler: str) -> float:
    study, n_timed = setting.ripley, setting.budget.n_timed

    def sample(n_draws: int) -> None:
        catch_mixing_warnings(
            lambda: moller(
                study.coherent, study.prior, label_sampler, GOOD_PLUG_IN, n_chains=1, n_warmup=0,
                n_draws=n_draws, random_state=setting.seeds(f"time-{label_sampler}"), n_jobs=1,
            )
        )  # fmt: skip

    sample(10)  # compiles
    start = time.perf_counter()
    sample(n_timed)
    return (time.perf_counter() - start) * 50_000 / n_timed / 60


def pima_chain(setting: Setting) -> Result:
    """Draw the Gibbs chain on the Pima data (Figure perfindian)."""
    draws = pima_draws(setting)
    exact = exact_posterior(setting, setting.pima, "pima-exact")
    figure, axes = _draw_chain(draws, exact)
    axes[1, 0].set_ylim(0, setting.pima.k_max + 1)
    axes[1, 0].axhspan(57, 66, color=COLOURS[1], alpha=0.35, linewidth=0, zorder=0.5)
    axes[1, 0].annotate(
        "chosen by leave-one-out", (0.01, 61.5), xycoords=("axes fraction", "data"), va="center",
        fontsize="small",
    )  # fmt: skip
    chosen = np.mean((draws.kept[1] >= 57) & (draws.kept[1] <= 66), axis=1)
    return Result(
        {
            "avoided": mean_over_runs(chosen),
            "k": draws.mean("k"),
            "beta": draws.mean("beta"),
            "exact_k": Estimate(exact.k_mean, exact.k_mean_error),
            "exact_beta": Estimate(exact.beta_mean, exact.beta_mean_error),
        },
        {"": figure},
        draws.messages,
    )


def pima_error(setting: Setting) -> Result:
    """Predict with the Gibbs chain, and with the exact posterior."""
    exact = exact_posterior(setting, setting.pima, "pima-exact")
    return Result(
        {
            "error": score_rule(setting.pima, pima_draws(setting), setting.pima.error_rate),
            "exact": score_rule(setting.pima, exact, setting.pima.error_rate),
            "multiple": Estimate([69 / 332, 70 / 332]),
        }
    )


def _error_of(setting: Setting, draws: Draws) -> Result:
    return Result({"error": score_rule(setting.ripley, draws, setting.ripley.error_rate)})


def _draw_chain(draws: Draws, exact: GridPosterior, label: str = "exact posterior") -> Any:
    """Draw the trace of the first chain and the marginals of all over the exact ones.

    Parameters
    ----------
    draws : Draws
    exact : GridPosterior
        Drawn as a line.
    label : str
        What the line is.

    Returns
    -------
    figure, axes : matplotlib Figure, ndarray of shape (2, 2)
    """
    figure, axes = new_figure(2, 2, 8.5, 5.0, sharey="row", width_ratios=(2, 1))
    found, truth = find_marginals(draws.tree), find_marginals(exact)
    PosteriorDisplay(**found._asdict(), beta_trace=draws.beta[:1], k_trace=draws.k[:1]).plot(
        axes=axes
    )
    for ax in axes[:, 0]:
        ax.axvspan(0, draws.n_warmup, color="0.93", linewidth=0, zorder=0)
    axes[1, 0].set(xlabel="iteration (burn-in shaded)", ylim=(0, None))
    axes[0, 1].plot(truth.beta_density, truth.beta_middles, color=INK, linewidth=1.2, label=label)
    axes[0, 1].set_xlim(0, 1.1 * max(truth.beta_density.max(), found.beta_density.max()))
    shown = truth.k_probabilities > 1e-3
    axes[1, 1].plot(
        truth.k_probabilities[shown], truth.k_values[shown], "o-", color=INK, markersize=2.5,
        linewidth=0.8,
    )  # fmt: skip
    axes[1, 1].set_xlim(0, 1.1 * max(truth.k_probabilities.max(), found.k_probabilities.max()))
    axes[1, 1].set_ylim(0, max(draws.k[0].max(), truth.k_values[shown].max()) + 2)
    axes[0, 1].legend(frameon=False, fontsize="small", loc="upper right")
    return figure, axes


ITEMS = [
    make_item("num:holmes-adams", holmes_adams_sum),
    make_item("num:pseudo-maximum", pseudo_maximum),
    make_item("fig:pseudoo", pseudo_chain),
    make_item("num:error-pseudo", lambda setting: _error_of(setting, pseudo_draws(setting))),
    make_item("fig:psycho", path_chain, mixing=lambda ratio: ratio.value > 1),
    make_item("num:error-path", lambda setting: _error_of(setting, path_draws(setting))),
    make_item(
        "fig:imperfecto",
        bad_chain,
        rejection=lambda rate: rate.value > 0.9,
        good=lambda rate: rate.value < 0.9,
    ),
    make_item("fig:perfecto", good_chains, same=lambda gap: abs(gap.value) <= 3 * gap.error),
    make_item(
        "num:error-perfect",
        lambda setting: _error_of(setting, auxiliary_draws(setting, "perfect")),
    ),
    make_item(
        "num:error-gibbs", lambda setting: _error_of(setting, auxiliary_draws(setting, "gibbs"))
    ),
    make_item(
        "num:times",
        running_times,
        perfect=lambda minutes: minutes.value > 7 * 24 * 60,
        ratio=lambda ratio: ratio.value > 10,
    ),
    make_item("fig:perfindian", pima_chain, avoided=lambda rate: rate.value < 10 / 68),
    make_item("num:error-pima", pima_error),
]
