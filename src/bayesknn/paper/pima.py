"""The Pima diabetes study (Section 4, Figure perfindian)."""

from __future__ import annotations

import numpy as np

from bayesknn.paper.drawing import draw_chain, new_figure
from bayesknn.paper.item import Estimate, Item, Quantity, Result, independent
from bayesknn.paper.prediction import measure_error
from bayesknn.paper.samples import exact_posterior, pima_draws
from bayesknn.paper.setting import BETA_MAX, Setting
from bayesknn.plots.style import COLOURS


def pima_chain(setting: Setting) -> Result:
    """Draw the Gibbs chain (Figure perfindian)."""
    draws = pima_draws(setting)
    exact = exact_posterior(setting, setting.pima, "pima-exact")
    figure, axes = new_figure(2, 2, 8.5, 5.0, width_ratios=(1.4, 1))
    draw_chain(axes, draws, exact, BETA_MAX)
    axes[1, 0].set_ylim(0, setting.pima.k_max + 1)
    axes[1, 0].axhspan(57, 66, color=COLOURS[1], alpha=0.35, linewidth=0, zorder=0.5)
    axes[1, 0].annotate("chosen by leave-one-out", (0.01, 61.5), xycoords=("axes fraction", "data"),
                        va="center", fontsize="small")  # fmt: skip
    shares = np.mean((draws.kept[1] >= 57) & (draws.kept[1] <= 66), axis=1)
    error = float(shares.std(ddof=1) / len(shares) ** 0.5)
    return Result(
        {
            "avoided": Estimate(float(shares.mean()), error),
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
            "error": measure_error(setting.pima, pima_draws(setting)),
            "exact": measure_error(setting.pima, exact),
            "multiple": Estimate([69 / 332, 70 / 332]),
        }
    )


ITEMS = [
    Item(
        "fig:perfindian", "Pima: the Gibbs chain", "Figure 13, Section 4", pima_chain,
        {
            "avoided": Quantity(
                "posterior share of k in 57..66, chosen by leave-one-out (10 of 68 values)",
                "the simulated values of k tend to avoid the region found by cross-validation", 3,
                holds=lambda share: share.value < 10 / 68,
                why="Our chain visits that region more often than the prior would."),
            "k": Quantity("posterior mean of k, Gibbs chain", None, 1),
            "beta": Quantity("posterior mean of β, Gibbs chain", None, 3),
            "exact_k": Quantity("posterior mean of k, quadrature", None, 1),
            "exact_beta": Quantity("posterior mean of β, quadrature", None, 3),
        },
        "Pima Indian diabetes study, 50,000 iterations of the Gibbs-Møller scheme, τ² = 0.05, "
        "r = 3, β_max = 4, K = 68.",
        ("n_chains", "pima_first_stage", "pima_chain"),
    ),
    Item(
        "num:error-pima", "Error rate on Pima", "Section 4", pima_error,
        {
            "error": Quantity("test error rate, Gibbs chain", 0.209,
                              why="The published figure is no multiple of 1/332, so that it "
                              "cannot be the error of one averaged rule; ours is."),
            "exact": independent("test error rate, quadrature", 0.214),
            "multiple": Quantity("possible error rates next to .209", None, 4,
                                 remark="69 and 70 of 332 test women."),
        },
        "Over the final 20,000 iterations, the prediction error is 0.209.",
        ("n_chains", "pima_first_stage", "pima_chain"),
    ),
]  # fmt: skip
