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
from bayesknn.model import BoltzmannModel
from bayesknn.paper.item import Estimate, Result, make_item, read_published
from bayesknn.paper.samples import (
    BAD_PLUG_IN,
    GOOD_PLUG_IN,
    Draws,
    auxiliary_draws,
    catch_mixing_warnings,
    difference,
    error_at,
    exact_posterior,
    hybrid_draws,
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
from bayesknn.plots.style import COLOURS, INK, new_figure, tidy
from bayesknn.posterior import GridPosterior, grid_posterior


def no_joint(setting: Setting) -> Result:
    """Look for a joint distribution of the intuitive conditionals (Section 2.1).

    Under any joint distribution the log odds of y_i move with y_j by
    ``log f(1, 1) f(0, 0) / f(1, 0) f(0, 1)``, the other labels held, and those of y_j with y_i by
    the same.
    """
    graph = NeighborGraph.from_points([[0.0], [1.0], [3.0]], k_max=1)
    model = BoltzmannModel(graph, 2)

    def find_asymmetry(direction: str) -> float:
        """Return by how much more a label moves another than it is moved by it."""
        moves = []
        for moved in np.eye(3, dtype=int):
            p = [model.conditional(labels, 1.0, 1, direction) for labels in (moved, 0 * moved)]
            moves.append(np.subtract(*(np.log(each[:, 1] / each[:, 0]) for each in p)))
        return float(np.abs(np.subtract(moves, np.transpose(moves))).max())

    neighbors = setting.ripley.graph.neighbors[:13].T
    mutual = [i in neighbors[j] for i, near in enumerate(neighbors) for j in near]
    return Result(
        {
            "three": Estimate(find_asymmetry("forward")),
            "ripley": Estimate(1 - float(np.mean(mutual))),
            "coherent": Estimate(find_asymmetry("both")),
        }
    )


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
    draws = pseudo_draws(setting)
    result = _chain(draws, exact, "quadrature")
    result.estimates["mixing"] = Estimate(100 * draws.effective("k"))
    result.estimates["hybrid"] = Estimate(100 * hybrid_draws(setting).effective("k"))
    return result


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
    study, draws = setting.pima, pima_draws(setting)
    exact = exact_posterior(setting, study, "pima-exact")
    errors = np.array([error_at(study, k) for k in range(1, study.k_max + 1)])
    return Result(
        {
            "error": score_rule(study, draws, study.error_rate),
            "exact": score_rule(study, exact, study.error_rate),
            "average": mean_over_runs(errors[draws.kept[1] - 1].mean(axis=1)),
            "exact_average": Estimate(float(errors @ exact.k_probabilities)),
        }
    )


def error_by_k(setting: Setting) -> Result:
    """Compute the error of the rule at each k, beside the posterior of k and what was published."""
    study, exact = setting.ripley, ripley_posterior(setting)
    errors = np.array([error_at(study, k) for k in range(1, 61)])
    figure, axes = new_figure(2, 1, 6.5, 4.6, sharex=True, height_ratios=(2, 1))
    (top, below), every_k = axes[:, 0], np.arange(1, 61)
    top.plot(every_k, errors, ".-", color=INK, linewidth=1, label="coherent rule at one k")
    published = read_published()["num:error-perfect"]["numbers"]["error"]["paper"]
    top.axhline(published, color=COLOURS[5], linestyle="--", linewidth=1.2, label="published")
    top.set(ylabel="test error rate", ylim=(0.075, 0.125))
    top.legend(frameon=False, fontsize="small", loc="upper right")
    below.bar(every_k, exact.k_probabilities[:60], color=COLOURS[1], width=0.9)
    below.set(xlabel="number of neighbours k", ylabel="posterior of k")
    tidy(top)
    tidy(below)
    numbers = read_published()["num:error-by-k"]["numbers"]
    asked = [int(name.removeprefix("k=")) for name in numbers if name.startswith("k=")]
    estimates = {f"k={k}": Estimate(float(errors[k - 1])) for k in asked}
    is_above = np.ones_like(exact.betas) * (exact.k_values[:, None] >= 25)
    estimates["above"] = Estimate(*map(float, exact.mean(is_above)))
    return Result(estimates, {"": figure})


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
    make_item(
        "num:no-joint",
        no_joint,
        three=lambda gap: gap.value > 0,
        ripley=lambda share: share.value > 0,
    ),
    make_item("num:holmes-adams", holmes_adams_sum),
    make_item("num:pseudo-maximum", pseudo_maximum),
    make_item("fig:pseudoo", pseudo_chain, mixing=lambda n: n.value < 5),
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
    make_item("num:error-by-k", error_by_k),
    make_item(
        "num:times",
        running_times,
        perfect=lambda minutes: minutes.value > 7 * 24 * 60,
        ratio=lambda ratio: ratio.value > 10,
    ),
    make_item("fig:perfindian", pima_chain, avoided=lambda rate: rate.value < 10 / 68),
    make_item("num:error-pima", pima_error),
]
