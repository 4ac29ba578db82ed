"""The approximations against each other and the exact posterior (Sections 1.3 and 3.5).

Figures 3 and 10 to 12, and what the paper could not show: the exact posterior.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesknn.likelihood import HolmesAdamsLikelihood
from bayesknn.model import UniformPrior
from bayesknn.paper.item import Estimate, Result, make_item
from bayesknn.paper.samples import (
    auxiliary_draws,
    difference,
    draws_at,
    exact_posterior,
    mean_over_runs,
    path_draws,
    predictive,
    prior_at,
    pseudo_draws,
    ripley_posterior,
    score_rule,
)
from bayesknn.paper.setting import Setting
from bayesknn.plots import ZoneMapDisplay
from bayesknn.plots.marginals import beta_range, find_marginals
from bayesknn.plots.style import COLOURS, GREY, INK, LINES, new_figure, tidy
from bayesknn.posterior import GridPosterior, grid_posterior
from bayesknn.predictive import find_zones

_NAMES = {
    "pseudo": "pseudo-likelihood",
    "path": "path sampling",
    "perfect": "perfect draws",
    "gibbs": "500 Gibbs sweeps",
}


def draw_marginals(posteriors: Mapping[str, Any], *axes: Any) -> None:
    """Draw the marginals of beta and, on a second panel, of k under several posteriors."""
    low, high = np.transpose([beta_range(posterior) for posterior in posteriors.values()])
    edges = np.linspace(low.min(), high.max(), 81)
    for at, (name, posterior) in enumerate(posteriors.items()):
        each = find_marginals(posterior, edges)
        style = {"color": COLOURS[at], "linestyle": LINES[at], "linewidth": 1.3, "label": name}
        curves = ((each.beta_middles, each.beta_density), (each.k_values, each.k_probabilities))
        for ax, (x, row) in zip(axes, curves, strict=False):
            # From the last empty value to the next: a line along the axis says nothing.
            heavy = np.flatnonzero(row > 1e-3 * row.max())
            part = slice(max(heavy[0] - 1, 0), heavy[-1] + 2)
            ax.fill_between(x[part], row[part], color=COLOURS[at], alpha=0.18, linewidth=0)
            ax.plot(x[part], row[part], marker="." if len(heavy) == 1 else None, **style)
    names = ((r"$\beta$", "density"), ("k", "P(k | y)"))
    for ax, (xlabel, ylabel) in zip(axes, names, strict=False):
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.set_ylim(bottom=0.0)
        tidy(ax)
    axes[0].legend(frameon=False, loc="upper right")


def draw_zones(setting: Setting) -> Result:
    """Draw the map of Ripley's square from the perfect chain, as the paper's caption says."""
    study = setting.ripley
    rule = predictive(study, auxiliary_draws(setting, "perfect"))
    low, high = study.X_train.min(axis=0) - 0.1, study.X_train.max(axis=0) + 0.1
    size = setting.budget.resolution
    x, y = np.linspace(low, high, size).T
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x, y)])
    probabilities = rule.probabilities(grid).reshape(size, size, 2)
    zones = find_zones(rule.intervals(grid, 0.95)).reshape(size, size)
    figure, axes = new_figure(1, 2, 9.5, 4.0, sharey=True)
    display = ZoneMapDisplay(x, y, probabilities, zones, ["1", "2"])
    display.plot(kind="levels", ax=axes[0, 0])
    display.plot(study.X_train, np.array(["1", "2"])[study.labels], kind="zones", ax=axes[0, 1])
    axes[0, 0].set_title("P(class 2), level sets")
    axes[0, 1].set_title("95 % intervals against one half")
    axes[0, 1].set_ylabel("")
    at_test = find_zones(rule.intervals(study.X_test, 0.95))
    wrong = rule.probabilities(study.X_test).argmax(axis=1) != study.test_labels
    unsure = at_test < 0
    return Result(
        {
            "zones": Estimate(len(np.unique(zones))),
            "area": Estimate(float(np.mean(zones < 0))),
            "unsure": Estimate(float(np.mean(unsure))),
            "error_sure": Estimate(float(np.mean(wrong[~unsure]))),
            "error_unsure": Estimate(float(np.mean(wrong[unsure])) if unsure.any() else 0.0),
        },
        {"": figure},
    )


def fixed_k(setting: Setting) -> Result:
    """Draw the posterior of beta at fixed k (Figure pseudoA)."""
    study = setting.ripley
    figure, axes = new_figure(2, 2, 9.0, 5.6)
    estimates, path_gaps = {}, []
    for ax, k in zip(axes.flat, (1, 10, 70, 125), strict=True):
        found = {name: draws_at(setting, name, k) for name in ("pseudo", "path", "perfect")}
        exact = exact_posterior(setting, study, f"ripley-exact-at-{k}", prior_at(study, k))
        trees = {_NAMES[name]: draws.tree for name, draws in found.items()}
        draw_marginals({"exact": exact, **trees}, ax)
        ax.set_title(f"k = {k}")
        ax.get_legend().remove()
        truth = Estimate(exact.beta_mean)
        estimates[f"shift_{k}"] = difference(found["pseudo"].mean("beta"), truth)
        gap = difference(found["path"].mean("beta"), truth)
        path_gaps.append(gap._replace(value=abs(gap.value)))
    # At the largest k there is room between the methods.
    axes[1, 1].legend(frameon=False, loc="upper center")
    shifts = [round(abs(shift.value), 2) for shift in estimates.values()]
    estimates["grows"] = Estimate(shifts)
    estimates["path"] = max(path_gaps)
    return Result(estimates, {"": figure})


def all_marginals(setting: Setting) -> Result:
    """Draw the marginals of beta and k of the three chains (Figure pseudoB)."""
    pseudo, path = pseudo_draws(setting), path_draws(setting)
    perfect = auxiliary_draws(setting, "perfect")
    exact = ripley_posterior(setting)
    figure, axes = new_figure(2, 1, 7.5, 5.4)
    trees = {"pseudo": pseudo.tree, "path": path.tree, "perfect": perfect.tree}
    posteriors = {_NAMES[name]: tree for name, tree in trees.items()}
    draw_marginals({"exact": exact, **posteriors}, *axes.ravel())
    estimates = {
        "beta": difference(pseudo.mean("beta"), Estimate(exact.beta_mean)),
        "k": difference(pseudo.mean("k"), Estimate(exact.k_mean)),
        "path": difference(path.mean("k"), perfect.mean("k")),
    }
    return Result(estimates, {"": figure})


def compare_probabilities(setting: Setting) -> Result:
    """Draw the class probabilities of the pseudo-likelihood against the exact ones."""
    study = setting.ripley
    perfect = predictive(study, auxiliary_draws(setting, "perfect")).probabilities(study.X_test)
    pseudo = predictive(study, pseudo_draws(setting)).probabilities(study.X_test)
    figure, axes = new_figure(1, 1, 5.0, 4.6)
    n_different = int(np.sum(perfect.argmax(axis=1) != pseudo.argmax(axis=1)))
    ax = axes[0, 0]
    ax.plot([0, 1], [0, 1], color=INK, linewidth=0.8, zorder=1)
    # Beyond these lines from each other, the methods disagree on the class.
    for line in (ax.axhline, ax.axvline):
        line(0.5, color=GREY, linewidth=0.6, linestyle=":", zorder=0)
    ax.plot(perfect[:, 1], pseudo[:, 1], "o", color=COLOURS[1], markersize=3.5, alpha=0.8)
    ax.set(xlabel="P(class 2), perfect sampling", ylabel="P(class 2), pseudo-likelihood")
    ax.set_title(f"{n_different} of {len(perfect)} points change class", fontsize="medium")
    tidy(ax)
    gap = pseudo[:, 0] - perfect[:, 0]
    middle = (perfect[:, 0] > 0.2) & (perfect[:, 0] < 0.8)
    spread = float(np.std(gap[middle]))
    return Result(
        {
            "different": Estimate(n_different),
            "largest": Estimate(float(np.abs(gap).max())),
            "bias": Estimate(float(gap[middle].mean()), spread / max(int(middle.sum()), 1) ** 0.5),
        },
        {"": figure},
    )


def correlations(setting: Setting) -> Result:
    """Compute how beta and k are correlated, under the model and the pseudo-likelihood."""
    found = {}
    for name, study in (("ripley", setting.ripley), ("pima", setting.pima)):
        found[name] = _correlate(exact_posterior(setting, study, f"{name}-exact"))
        found[f"pseudo_{name}"] = _correlate(grid_posterior(study.pseudo, study.prior))
    return Result(found)


def _correlate(posterior: GridPosterior) -> Estimate:
    away = (posterior.betas - posterior.beta_mean) / posterior.beta_sd
    away *= (posterior.k_values[:, None] - posterior.k_mean) / posterior.k_sd
    return Estimate(*map(float, posterior.mean(away)))


def exact_posteriors(setting: Setting) -> Result:
    """Compute the posterior and the pseudo-likelihood's by quadrature."""
    study = setting.ripley
    exact = ripley_posterior(setting)
    pseudo = grid_posterior(study.pseudo, study.prior)
    at_14 = float(exact.k_probabilities[13])
    return Result(
        {
            "beta": Estimate(exact.beta_mean, exact.beta_mean_error),
            "beta_sd": Estimate(exact.beta_sd, exact.beta_mean_error),
            "k": Estimate(exact.k_mean, exact.k_mean_error),
            "k_sd": Estimate(exact.k_sd, exact.k_mean_error),
            "at_14": Estimate(at_14, float(exact.k_probabilities_error[13])),
            "mode": Estimate(int(exact.k_probabilities.argmax()) + 1),
            "pseudo_beta": Estimate(pseudo.beta_mean),
            "pseudo_beta_sd": Estimate(pseudo.beta_sd),
            "pseudo_k": Estimate(pseudo.k_mean),
            "pseudo_k_sd": Estimate(pseudo.k_sd),
        }
    )


def against_exact(setting: Setting) -> Result:
    """Judge every approximation by the exact posterior, and all of them on the test set."""
    study = setting.ripley
    exact = ripley_posterior(setting)
    holmes_adams = grid_posterior(
        HolmesAdamsLikelihood(study.graph, study.labels, study.n_classes),
        # Forward neighbours alone count half as much: a prior up to 4 would cut it off.
        UniformPrior(study.k_max, 10.0),
    )
    chains = {
        "pseudo": pseudo_draws(setting),
        "path": path_draws(setting),
        "perfect": auxiliary_draws(setting, "perfect"),
        "gibbs": auxiliary_draws(setting, "gibbs"),
    }
    figure, axes = new_figure(2, 1, 7.5, 5.6)
    shown = {_NAMES[name]: draws.tree for name, draws in chains.items()}
    draw_marginals({"exact": exact, **shown, "Holmes and Adams": holmes_adams}, *axes.ravel())
    estimates = {}
    for name, draws in chains.items():
        _, k = draws.kept
        apart = [_distance(chain, exact) for chain in k]
        estimates[f"distance_{name}"] = mean_over_runs(apart, _distance(k.ravel(), exact))
        estimates[f"loss_{name}"] = score_rule(study, draws, study.log_loss)
    forward = predictive(study, holmes_adams, "forward").probabilities(study.X_test)
    estimates["error_exact"] = score_rule(study, exact, study.error_rate)
    estimates["loss_exact"] = score_rule(study, exact, study.log_loss)
    estimates["error_ha"] = Estimate(study.error_rate(forward))
    estimates["loss_ha"] = Estimate(study.log_loss(forward))
    return Result(estimates, {"": figure})


def _distance(k: np.ndarray, exact: GridPosterior) -> float:
    """Return the total variation distance of draws of k from their exact distribution."""
    found = np.bincount(k, minlength=exact.k_max + 1)[1:] / len(k)
    return float(0.5 * np.abs(found - exact.k_probabilities).sum())


ITEMS = [
    make_item("fig:levelset", draw_zones),
    make_item(
        "fig:pseudoA",
        fixed_k,
        grows=lambda shifts: shifts.value == sorted(shifts.value),
        path=lambda gap: gap.value < 0.05 + 3 * gap.error,
    ),
    make_item(
        "fig:pseudoB",
        all_marginals,
        beta=lambda gap: gap.value > 3 * gap.error,
        k=lambda gap: gap.value > 3 * gap.error,
        path=lambda gap: abs(gap.value) > 3 * gap.error,
    ),
    make_item("num:beta-over-k", correlations, ripley=lambda r: r.value > 3 * r.error),
    make_item(
        "fig:proba-compa",
        compare_probabilities,
        different=lambda n: n.value >= 10,
        largest=lambda gap: gap.value > 0.1,
        bias=lambda gap: abs(gap.value) <= 3 * gap.error,
    ),
    make_item("ref:posterior", exact_posteriors),
    make_item("extra:exact-posterior", against_exact),
]
