"""The three approximations against each other and the truth (Section 3.5, Figures 10 to 12)."""

from __future__ import annotations

import numpy as np

from bayesknn.paper.drawing import draw_exact_beta, new_figure, shade
from bayesknn.paper.item import Estimate, Item, Quantity, Result
from bayesknn.paper.prediction import predictive
from bayesknn.paper.samples import (
    auxiliary_draws,
    draws_at,
    exact_posterior,
    path_draws,
    prior_at,
    pseudo_draws,
    ripley_posterior,
)
from bayesknn.paper.setting import BETA_MAX, Setting
from bayesknn.plots import ApproximationDisplay, ProbabilityComparisonDisplay
from bayesknn.plots.style import COLOURS, tidy

FIXED_K = (1, 10, 70, 125)
_METHODS = ("pseudo", "path", "perfect")


def fixed_k(setting: Setting) -> Result:
    """Draw the posterior of beta at fixed k (Figure pseudoA)."""
    study = setting.ripley
    figure, axes = new_figure(2, 2, 9.0, 5.6)
    shifts, path_gaps, errors = {}, [], []
    for ax, k in zip(axes.flat, FIXED_K, strict=True):
        found = {method: draws_at(setting, method, k) for method in _METHODS}
        values = {method: draws.kept[0].ravel() for method, draws in found.items()}
        low = min(each.min() for each in values.values())
        high = max(each.max() for each in values.values())
        edges = np.linspace(max(0, low - 0.1), min(BETA_MAX, high + 0.1), 70)
        for method, colour in zip(_METHODS, (COLOURS[5], COLOURS[2], COLOURS[1]), strict=True):
            shade(ax, values[method], edges, colour, method)
        exact = exact_posterior(setting, study, f"ripley-exact-at-{k}", prior_at(study, k))
        draw_exact_beta(ax, exact, "exact")
        ax.set(title=f"k = {k}", xlabel="β", ylabel="density", xlim=(edges[0], edges[-1]))
        tidy(ax)
        shift, path = found["pseudo"].mean("beta"), found["path"].mean("beta")
        shifts[k] = Estimate(shift.value - exact.beta_mean, shift.error)
        path_gaps.append(abs(path.value - exact.beta_mean))
        errors.append(path.error)
    axes[0, 0].legend(frameon=False, fontsize="small", loc="upper right")
    estimates = {f"shift_{k}": shift for k, shift in shifts.items()}
    worst = int(np.argmax(path_gaps))
    estimates["path"] = Estimate(path_gaps[worst], errors[worst])
    grows = [shift.value for shift in shifts.values()]
    estimates["grows"] = Estimate([round(float(each), 2) for each in np.abs(grows)])
    return Result(estimates, {"": figure})


def all_marginals(setting: Setting) -> Result:
    """Draw the marginals of beta and k of the three chains (Figure pseudoB)."""
    pseudo, path = pseudo_draws(setting), path_draws(setting)
    perfect = auxiliary_draws(setting, "perfect")
    exact = ripley_posterior(setting)
    figure, axes = new_figure(2, 1, 7.5, 5.4)
    posteriors = {
        "pseudo-likelihood": pseudo.tree,
        "path sampling": path.tree,
        "perfect sampling": perfect.tree,
        "exact posterior": exact,
    }
    ApproximationDisplay.from_posteriors(posteriors, axes=axes.ravel())
    estimates = {}
    for name in ("beta", "k"):
        found, truth = pseudo.mean(name), (exact.beta_mean if name == "beta" else exact.k_mean)
        estimates[name] = Estimate(found.value - truth, found.error)
    gap = path.mean("k").value - perfect.mean("k").value
    error = (path.mean("k").error ** 2 + perfect.mean("k").error ** 2) ** 0.5
    estimates["path"] = Estimate(gap, error)
    return Result(estimates, {"": figure})


def compare_probabilities(setting: Setting) -> Result:
    """Draw the class probabilities of the pseudo-likelihood against the exact ones."""
    study = setting.ripley
    perfect = predictive(study, auxiliary_draws(setting, "perfect")).probabilities(study.X_test)
    pseudo = predictive(study, pseudo_draws(setting)).probabilities(study.X_test)
    figure, axes = new_figure(1, 1, 5.0, 4.6)
    names = ("perfect sampling", "pseudo-likelihood")
    display = ProbabilityComparisonDisplay(perfect, pseudo, ["1", "2"], names)
    display.plot(ax=axes[0, 0])
    gap = pseudo[:, 0] - perfect[:, 0]
    middle = (perfect[:, 0] > 0.2) & (perfect[:, 0] < 0.8)
    spread = float(np.std(gap[middle]))
    return Result(
        {
            "different": Estimate(display.n_different),
            "largest": Estimate(float(np.abs(gap).max())),
            "bias": Estimate(float(gap[middle].mean()), spread / max(int(middle.sum()), 1) ** 0.5),
        },
        {"": figure},
    )


ITEMS = [
    Item(
        "fig:pseudoA", "Posterior of β at fixed k", "Figure 10, Section 3.5", fixed_k,
        {
            **{
                f"shift_{k}": Quantity(
                    f"pseudo-likelihood mean of β less the exact one at k = {k}",
                    None, 2, remark="The line in the figure is the exact posterior.")
                for k in FIXED_K
            },
            "grows": Quantity(
                f"size of those differences at k = {', '.join(map(str, FIXED_K))}",
                "the larger k is, the worse is this discrepancy", 2,
                holds=lambda far: far.value == sorted(far.value),
                why="From k = 10 on it grows; at k = 1 the pseudo-likelihood is off the other "
                "way."),
            "path": Quantity("largest distance of the path-sampling mean of β from it",
                             "path sampling strongly coincides with the perfect sampling", 2,
                             holds=lambda gap: gap.value < 0.05 + 3 * gap.error,
                             why="Gibbs chains that have not converged bias log Z where the "
                             "posterior lies at this k."),
        },
        "Approximations to the posterior distribution of β by the pseudo (red), the path (green) "
        "and the perfect (yellow) schemes for k = 1, 10, 70, 125; 20,000 iterations, 10,000 "
        "burn-in.",
        ("n_chains", "fixed_k_chain", "n_path_betas", "path_sweeps"),
    ),
    Item(
        "fig:pseudoB", "Posteriors of β and k side by side", "Figure 11, Section 3.5",
        all_marginals,
        {
            "beta": Quantity("pseudo-likelihood mean of β less the exact one",
                             "β is significantly overestimated by the pseudo-likelihood", 3,
                             holds=lambda gap: gap.value > 3 * gap.error),
            "k": Quantity("pseudo-likelihood mean of k less the exact one",
                          "k is significantly overestimated by the pseudo-likelihood", 1,
                          holds=lambda gap: gap.value > 3 * gap.error),
            "path": Quantity("path-sampling mean of k less the perfect one",
                             "the correspondence between path and perfect is not absolute for k",
                             2, holds=lambda gap: abs(gap.value) > 3 * gap.error,
                             why="Here the two means of k agree within their Monte Carlo "
                             "errors."),
        },
        "Comparison of the posterior distributions of β (top) and k (bottom) for the three "
        "approximations.",
        ("n_chains", "long_chain", "perfect_chain"),
    ),
    Item(
        "fig:proba-compa", "Class probabilities of two methods", "Figure 12, Section 3.5",
        compare_probabilities,
        {
            "different": Quantity("test points of 1000 that are classified differently",
                                  "a large number of different classifications", 0,
                                  holds=lambda n: n.value >= 10,
                                  why="The probabilities differ in the middle of the range, but "
                                  "hardly any of them on the two sides of one half."),
            "largest": Quantity("largest difference of P(y = 1)",
                                "the discrepancy may be substantial", 2,
                                holds=lambda gap: gap.value > 0.1),
            "bias": Quantity("mean difference of P(y = 1) where it is between .2 and .8",
                             "no clear bias direction in using pseudo-likelihood", 3,
                             holds=lambda gap: abs(gap.value) <= 3 * gap.error,
                             why="There is a mean difference in the middle of the range, though "
                             "a small one."),
        },
        "Comparison of the class probabilities P(y = 1 | x) estimated at each point of the test "
        "sample.",
        ("n_chains", "long_chain", "perfect_chain"),
    ),
]  # fmt: skip
