"""Comparison of the paper's approximations with the exact posterior (Sections 1.3 and 3.5).

This module has Figures 3 and 10 to 12. The paper did not have the exact posterior.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesknn.likelihood import HolmesAdamsLikelihood
from bayesknn.model import UniformPrior
from bayesknn.paper.comparison import Estimate, Result, is_positive, is_zero, item
from bayesknn.paper.samples import (
    Draws,
    draws_at,
    exact_posterior,
    mean_over_runs,
    predict,
    predictive,
    ripley_draws,
    score_rule,
)
from bayesknn.paper.setting import Setting
from bayesknn.plots import ZoneMapDisplay
from bayesknn.plots.posterior import beta_range, compute_marginals
from bayesknn.plots.style import COLOURS, GREY, INK, LINES, new_figure
from bayesknn.posterior import GridPosterior, grid_posterior
from bayesknn.predictive import find_zones

_NAMES = {
    "pseudo": "pseudo-likelihood",
    "path": "path sampling",
    "perfect": "perfect draws",
    "gibbs": "500 Gibbs sweeps",
}


def draw_marginals(posteriors: Mapping[str, Any], *axes: Any) -> None:
    """Draw the marginals of several posteriors: of beta on the first axes, of k on the second.

    Parameters
    ----------
    posteriors : mapping of str to Draws or a posterior of :mod:`bayesknn.posterior`
        Posterior of each name in the legend. A method name of ``ripley_draws`` is shown in words.
    *axes : matplotlib Axes
        One or two axes.
    """
    shown = {
        _NAMES.get(name, name): each.tree if isinstance(each, Draws) else each
        for name, each in posteriors.items()
    }
    low, high = np.transpose([beta_range(posterior) for posterior in shown.values()])
    edges = np.linspace(low.min(), high.max(), 81)
    for at, (name, posterior) in enumerate(shown.items()):
        each = compute_marginals(posterior, edges)
        style = {"color": COLOURS[at], "linestyle": LINES[at], "linewidth": 1.3, "label": name}
        curves = ((each.beta_middles, each.beta_density), (each.k_values, each.k_probabilities))
        for ax, (x, row) in zip(axes, curves, strict=False):
            # A curve ends one step beyond the values above 0.1 % of its maximum, so that no line
            # runs along the axis.
            visible = np.flatnonzero(row > 1e-3 * row.max())
            part = slice(max(visible[0] - 1, 0), visible[-1] + 2)
            ax.fill_between(x[part], row[part], color=COLOURS[at], alpha=0.18, linewidth=0)
            ax.plot(x[part], row[part], marker="." if len(visible) == 1 else None, **style)
    names = ((r"$\beta$", "density"), ("k", "P(k | y)"))
    for ax, (xlabel, ylabel) in zip(axes, names, strict=False):
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.set_ylim(bottom=0.0)
    axes[0].legend(loc="upper right", fontsize="medium")


@item("fig:levelset")
def draw_zones(setting: Setting) -> Result:
    """Draw class probabilities and zones of Ripley's data from the perfect chain (fig:levelset)."""
    study, size = setting.ripley, setting.budget.resolution
    rule = predictive(study, ripley_draws(setting, "perfect"))
    low, high = study.X_train.min(axis=0) - 0.1, study.X_train.max(axis=0) + 0.1
    x, y = np.linspace(low, high, size).T
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x, y)])
    probabilities = rule.probabilities(grid).reshape(size, size, 2)
    zones = find_zones(rule.intervals(grid, 0.95)).reshape(size, size)
    figure, ((left, right),) = new_figure(1, 2, 9.5, 4.0, sharey=True)
    display = ZoneMapDisplay(x, y, probabilities, zones, ["1", "2"])
    display.plot(kind="levels", ax=left)
    display.plot(study.X_train, np.array(["1", "2"])[study.labels], kind="zones", ax=right)
    left.set_title("P(class 2), level sets")
    right.set(title="95 % intervals above, below and around 0.5", ylabel="")
    is_uncertain = find_zones(rule.intervals(study.X_test, 0.95)) < 0
    is_wrong = rule.probabilities(study.X_test).argmax(axis=1) != study.test_labels
    estimates = {
        "zones": len(np.unique(zones)),
        "area": display.uncertain_share,
        "unsure": np.mean(is_uncertain),
        "error_sure": np.mean(is_wrong[~is_uncertain]),
        "error_unsure": np.mean(is_wrong[is_uncertain]) if is_uncertain.any() else 0.0,
    }
    return Result(estimates, (figure,))


@item(
    "fig:pseudoA",
    grows=lambda shifts: shifts.value == sorted(shifts.value),
    path=lambda gap: gap.value < 0.05 + 3 * gap.error,
)
def fixed_k(setting: Setting) -> Result:
    """Draw the posterior of beta at four fixed values of k (fig:pseudoA)."""
    figure, axes = new_figure(2, 2, 9.0, 5.6)
    shifts, path_gaps = {}, []
    for ax, k in zip(axes.flat, (1, 10, 70, 125), strict=True):
        chains = {name: draws_at(setting, name, k) for name in ("pseudo", "path", "perfect")}
        exact = exact_posterior(setting, k=k)
        draw_marginals({"exact": exact, **chains}, ax)
        ax.set_title(f"k = {k}")
        ax.get_legend().remove()
        exact_mean = Estimate(exact.beta_mean)
        shifts[f"shift_{k}"] = chains["pseudo"].mean("beta") - exact_mean
        gap = chains["path"].mean("beta") - exact_mean
        path_gaps.append(gap._replace(value=abs(gap.value)))
    # The panel of the largest k has room for the legend between the curves.
    axes[1, 1].legend(loc="upper center", fontsize="medium")
    grows = [round(abs(shift.value), 2) for shift in shifts.values()]
    return Result({**shifts, "grows": grows, "path": max(path_gaps)}, (figure,))


@item("fig:pseudoB", beta=is_positive, k=is_positive, path=lambda gap: not is_zero(gap))
def all_marginals(setting: Setting) -> Result:
    """Draw the marginals of beta and k of the paper's three methods (fig:pseudoB)."""
    exact = exact_posterior(setting)
    chains = {name: ripley_draws(setting, name) for name in ("pseudo", "path", "perfect")}
    figure, axes = new_figure(2, 1, 7.5, 5.4)
    draw_marginals({"exact": exact, **chains}, *axes.ravel())
    estimates = {
        "beta": chains["pseudo"].mean("beta") - Estimate(exact.beta_mean),
        "k": chains["pseudo"].mean("k") - Estimate(exact.k_mean),
        "path": chains["path"].mean("k") - chains["perfect"].mean("k"),
    }
    return Result(estimates, (figure,))


@item(
    "fig:proba-compa",
    different=lambda n: n.value >= 10,
    largest=lambda gap: gap.value > 0.1,
    bias=is_zero,
)
def compare_probabilities(setting: Setting) -> Result:
    """Draw class probabilities by pseudo-likelihood against perfect sampling (fig:proba-compa)."""
    perfect = predict(setting.ripley, ripley_draws(setting, "perfect"))
    pseudo = predict(setting.ripley, ripley_draws(setting, "pseudo"))
    n_different = np.sum(perfect.argmax(axis=1) != pseudo.argmax(axis=1))
    figure, ((ax,),) = new_figure(1, 1, 5.0, 4.6)
    ax.plot([0, 1], [0, 1], color=INK, linewidth=0.8, zorder=1)
    # The lines at 0.5 bound the two quadrants in which the methods predict different classes.
    for line in (ax.axhline, ax.axvline):
        line(0.5, color=GREY, linewidth=0.6, linestyle=":", zorder=0)
    ax.plot(perfect[:, 1], pseudo[:, 1], "o", color=COLOURS[1], markersize=3.5, alpha=0.8)
    ax.set(xlabel="P(class 2), perfect sampling", ylabel="P(class 2), pseudo-likelihood")
    ax.set_title(f"{n_different} of {len(perfect)} predicted classes differ", fontsize="medium")
    gap = pseudo[:, 0] - perfect[:, 0]
    middle = gap[(perfect[:, 0] > 0.2) & (perfect[:, 0] < 0.8)]
    bias = Estimate(middle.mean(), middle.std() / max(len(middle), 1) ** 0.5)
    largest = np.abs(gap).max()
    return Result({"different": n_different, "largest": largest, "bias": bias}, (figure,))


@item("num:beta-over-k", ripley=is_positive)
def correlations(setting: Setting) -> Result:
    """Compute the posterior correlation of beta and k, exact and by pseudo-likelihood."""
    estimates = {}
    for name, study in (("ripley", setting.ripley), ("pima", setting.pima)):
        estimates[name] = _correlate(exact_posterior(setting, name))
        estimates[f"pseudo_{name}"] = _correlate(grid_posterior(study.pseudo, study.prior))
    return Result(estimates)


def _correlate(posterior: GridPosterior) -> Estimate:
    product = (posterior.betas - posterior.beta_mean) / posterior.beta_sd
    product *= (posterior.k_values[:, None] - posterior.k_mean) / posterior.k_sd
    return Estimate(*posterior.mean(product))


@item("ref:posterior")
def exact_posteriors(setting: Setting) -> Result:
    """Compute the exact and the pseudo-likelihood posterior by quadrature."""
    exact = exact_posterior(setting)
    pseudo = grid_posterior(setting.ripley.pseudo, setting.ripley.prior)
    estimates: dict[str, Any] = {}
    for name in ("beta", "k"):
        error = getattr(exact, f"{name}_mean_error")
        for suffix, field in (("", f"{name}_mean"), ("_sd", f"{name}_sd")):
            estimates[name + suffix] = Estimate(getattr(exact, field), error)
            estimates[f"pseudo_{name}{suffix}"] = getattr(pseudo, field)
    estimates["at_14"] = Estimate(exact.k_probabilities[13], exact.k_probabilities_error[13])
    estimates["mode"] = exact.k_probabilities.argmax() + 1
    return Result(estimates)


@item("extra:exact-posterior")
def against_exact(setting: Setting) -> Result:
    """Compare every approximation with the exact posterior, and compute its test scores."""
    study = setting.ripley
    exact = exact_posterior(setting)
    # Holmes and Adams count forward neighbours only, so that their beta is about twice as large
    # and a prior up to 4 would truncate its posterior.
    wide = UniformPrior(study.k_max, 10.0)
    holmes_adams = grid_posterior(HolmesAdamsLikelihood(study.model, study.labels), wide)
    chains = {name: ripley_draws(setting, name) for name in _NAMES}
    figure, axes = new_figure(2, 1, 7.5, 5.6)
    posteriors = {"exact": exact, **chains, "Holmes and Adams": holmes_adams}
    draw_marginals(posteriors, *axes.ravel())
    estimates: dict[str, Any] = {}
    for name, draws in chains.items():
        k = draws.kept["k"]
        distances = [_distance(chain, exact) for chain in k]
        estimates[f"distance_{name}"] = mean_over_runs(distances)._replace(
            value=_distance(k.ravel(), exact)
        )
        estimates[f"loss_{name}"] = score_rule(study, draws, study.log_loss)
    forward = predict(study, holmes_adams, "forward")
    for name, score in (("error", study.error_rate), ("loss", study.log_loss)):
        estimates[f"{name}_exact"] = score_rule(study, exact, score)
        estimates[f"{name}_ha"] = score(forward)
    return Result(estimates, (figure,))


def _distance(k: np.ndarray, exact: GridPosterior) -> float:
    """Return the total variation distance between draws of k and the exact posterior of k."""
    frequencies = np.bincount(k, minlength=exact.k_max + 1)[1:] / len(k)
    return float(0.5 * np.abs(frequencies - exact.k_probabilities).sum())
