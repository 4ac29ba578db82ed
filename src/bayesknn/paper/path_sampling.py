"""E[S] and log Z by Gibbs path sampling, and the errors of the approximations (Section 3.3)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.integrate import cumulative_trapezoid
from scipy.interpolate import make_interp_spline

from bayesknn._utils.random import spawn_keys
from bayesknn.labels import (
    find_beta_max,
    gibbs_labels,
    perfect_labels,
    swendsen_wang_labels,
)
from bayesknn.likelihood import PseudoLikelihood, log_normalizer
from bayesknn.model import BoltzmannModel
from bayesknn.paper.comparison import Estimate, Result, item
from bayesknn.paper.samples import PAPER_K, gibbs_expectations, gibbs_table, shared
from bayesknn.paper.setting import BETA_MAX, Setting
from bayesknn.plots.style import COLOURS, GREY, INK, LINES, new_figure

_BREAKDOWN_K = (10, 50)
_BREAKDOWN_BETAS = np.arange(0.5, 4.1, 0.5)
# Style of the horizontal line at a reference value.
_LEVEL: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": "--"}


def true_expectation(
    model: BoltzmannModel, beta: float, k: int, key: np.uint64, n_sweeps: int
) -> tuple[float, float]:
    """Return a Swendsen-Wang estimate of E[S_k] / k and its Monte Carlo standard error.

    The estimate averages the conditional expectations of S_k given the clusters.
    """
    _, info = swendsen_wang_labels(model, beta, k, n_draws=n_sweeps, key=key)
    values = info.cluster_agreement / k
    # The autocorrelation time is at most a few sweeps, so the means of 20 batches are nearly
    # independent and their standard deviation gives the standard error.
    batches = np.array([batch.mean() for batch in np.array_split(values, 20)])
    return float(values.mean()), float(batches.std(ddof=1) / np.sqrt(len(batches)))


@shared
def true_expectations(setting: Setting, ks: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Estimate E[S_k] / k by Swendsen-Wang at the paper's values of beta.

    Returns
    -------
    mean, error : ndarray of shape (n_k, n_betas)
        Estimates and their Monte Carlo standard errors.
    """
    betas = gibbs_expectations(setting)[0]
    tasks = [(float(beta), k) for k in ks for beta in betas]
    keys = spawn_keys(setting.seeds("true-" + "-".join(map(str, ks))), len(tasks))
    model, n_sweeps = setting.ripley.model, setting.budget.reference_sweeps
    estimate = partial(true_expectation, model, n_sweeps=n_sweeps)
    estimates = setting.map(estimate, *zip(*tasks, strict=True), keys)
    mean, error = np.array(estimates).T.reshape(2, len(ks), len(betas))
    return mean, error


@item(
    "fig:constappro1",
    limit=lambda mean: mean.value > 245,
    worst=lambda gap: abs(gap.value) > 5 * gap.error,
)
def draw_expectations(setting: Setting) -> Result:
    """Draw E[S] against beta for k = 1 and k = 125 (fig:constappro1)."""
    (betas, means), ends = gibbs_expectations(setting), (1, 125)
    gibbs, (true, errors) = means[[0, -1]], true_expectations(setting, ends)
    fine = np.linspace(0, BETA_MAX, 400)
    figure, axes = new_figure(1, 2, 8.5, 3.6, sharey=True)
    for ax, k, mean, converged in zip(axes[0], ends, gibbs, true, strict=True):
        ax.plot(fine, make_interp_spline(betas, mean, k=2)(fine), color=COLOURS[5],
                linewidth=1, label="Gibbs, second-order spline")  # fmt: skip
        ax.plot(betas, mean, "o-", color=INK, markersize=2.5, linewidth=0.8,
                label="Gibbs, linear")  # fmt: skip
        ax.plot(betas, converged, color=COLOURS[0], linewidth=2, alpha=0.6,
                label="Swendsen-Wang, converged")  # fmt: skip
        ax.axhline(setting.ripley.graph.n_points, **_LEVEL, label="n")
        ax.set(title=f"k = {k}", xlabel="β")
    axes[0, 0].set_ylabel("E[S]  (S divided by k)")
    axes[0, 0].legend(loc="lower right")
    gaps = gibbs - true
    worst = np.argmax(np.abs(gaps[1]))
    estimates = {
        "zero": true[1, 0],
        "limit": Estimate(true[1, -1], errors[1, -1]),
        "gap_1": Estimate(gaps[0, -1], errors[0, -1]),
        "gap_125": Estimate(gaps[1, -1], errors[1, -1]),
        "worst": Estimate(gaps[1, worst], errors[1, worst]),
    }
    return Result(estimates, (figure,))


def bias_of_path(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return the error of Gibbs path sampling in log Z, and the standard error of its last column.

    The two have shapes (n_k, n_betas) and (n_k,).
    """
    betas, means = gibbs_expectations(setting)
    true, errors = true_expectations(setting, PAPER_K)
    bias = cumulative_trapezoid(means - true, betas, initial=0.0)
    return bias, betas[1] * np.sqrt(np.sum(errors**2, axis=1))


@item("fig:constappro2", explained=lambda rate: rate.value > 0.99)
def draw_surface(setting: Setting) -> Result:
    """Draw log Z over (beta, k) (fig:constappro2)."""
    model, table = setting.ripley.model, gibbs_table(setting)
    figure, ((left, right),) = new_figure(1, 2, 9.0, 3.6)
    betas, every_k = np.linspace(0, BETA_MAX, 121), np.arange(1, table.k_max + 1)
    log_z = np.array([table.log_normalizer(betas, int(k)) for k in every_k])
    filled = left.contourf(betas, every_k, log_z, 16, cmap="cividis")
    figure.colorbar(filled, ax=left, label="log Z")
    left.set(xlabel="β", ylabel="k", title="Gibbs path sampling, bilinear")
    bias, error = bias_of_path(setting)
    for at, k in enumerate((1, 10, 50, 125)):
        style = {"color": COLOURS[at], "linestyle": LINES[at], "label": f"k = {k}"}
        right.plot(table.betas, bias[PAPER_K.index(k)], **style)
    right.set(xlabel="β", ylabel="error of log Z", title="Gibbs less Swendsen-Wang")
    right.legend(loc="lower left")
    estimates = {
        "explained": 1 - np.mean((log_z - log_z.mean(axis=0)) ** 2) / np.var(log_z),
        "zero": table.log_normalizer(0.0, 50) - model.n_points * np.log(model.n_classes),
        "bias_10": Estimate(bias[1, -1], error[1]),
        "bias_50": Estimate(bias[5, -1], error[5]),
    }
    return Result(estimates, (figure,))


@item("ref:log-z")
def exact_constants(setting: Setting) -> Result:
    """Compute log Z exactly by variable elimination, which is feasible for small k."""
    return Result(
        {
            f"k={k}, beta={beta:g}": log_normalizer(setting.ripley.graph, beta, k, 2).value
            for k in (1, 3, 5)
            for beta in (1.0, 2.0, 4.0)
        }
    )


@item("num:beta-max")
def largest_beta(setting: Setting) -> Result:
    """Compute the largest beta that the package's default prior allows on Ripley's data."""
    rule = find_beta_max(setting.ripley.graph, 2, random_state=setting.seeds("beta-max"))
    return Result({"beta_max": rule.beta_max})


def replicate(setting: Setting) -> np.ndarray:
    """Simulate data sets at each (beta, k), and estimate beta from the perfect draws.

    Returns
    -------
    ndarray of shape (3, n_k, n_betas, n_replicates)
        In the first row S / k of labels after 500 Gibbs sweeps from random labels. In the other two
        rows the estimates of beta from perfect draws, truncated at 4: by maximum pseudo-likelihood
        and by maximum likelihood.
    """
    size, curves = setting.budget.n_replicates, true_expectations(setting, PAPER_K)[0]
    path_betas = gibbs_expectations(setting)[0]

    def run(task: tuple[int, float], pair: np.ndarray) -> tuple[list[Any], list[Any], list[Any]]:
        k, beta = task
        model = BoltzmannModel(setting.ripley.graph.up_to(k), 2)
        gibbs = [
            gibbs_labels(model, beta, k, n_warmup=499, key=key)[1].agreement[0] / k
            for key in spawn_keys(int(pair[0]), size)
        ]
        labels, info = perfect_labels(model, beta, k, key=pair[1], n_draws=size)
        pseudo = [
            min(PseudoLikelihood(model, each).maximize_each_k(BETA_MAX).beta[k - 1], BETA_MAX)
            for each in labels
        ]
        # The likelihood is largest where E[S] equals the observed S. E[S] increases with beta, so
        # that beta is found by inverting its curve.
        curve = np.maximum.accumulate(curves[PAPER_K.index(k)])
        likelihood = np.interp(info.agreement / k, curve, path_betas)
        return gibbs, pseudo, likelihood.tolist()

    tasks = [(k, beta) for k in _BREAKDOWN_K for beta in _BREAKDOWN_BETAS.tolist()]
    keys = spawn_keys(setting.seeds("breakdown"), 2 * len(tasks)).reshape(-1, 2)
    values = np.array(setting.map(run, tasks, keys)).reshape(len(_BREAKDOWN_K), -1, 3, size)
    return np.moveaxis(values, 2, 0)


@item(
    "extra:breakdown",
    path_10=lambda gap: -18.5 < gap.value < -6.5,
    path_50=lambda gap: -18.5 < gap.value < -6.5,
)
def breakdown(setting: Setting) -> Result:
    """Draw the errors of Gibbs sampling, path sampling and estimates of beta against beta."""
    betas, values = _BREAKDOWN_BETAS, replicate(setting)
    means, sds = values.mean(axis=3), values.std(axis=3, ddof=1)
    errors = sds / values.shape[3] ** 0.5
    path_betas, _ = gibbs_expectations(setting)
    true, true_errors = true_expectations(setting, PAPER_K)
    bias, bias_errors = bias_of_path(setting)
    figure, axes = new_figure(2, 2, 9.0, 6.6)
    estimates: dict[str, Estimate] = {}
    for at, k in enumerate(_BREAKDOWN_K):
        row, style = PAPER_K.index(k), {"color": COLOURS[at], "linestyle": LINES[at]}
        axes[0, 0].errorbar(
            betas, means[0, at] - np.interp(betas, path_betas, true[row]), 2 * errors[0, at],
            marker="o", markersize=4, capsize=2, label=f"k = {k}", **style,
        )  # fmt: skip
        axes[0, 1].plot(path_betas, bias[row], label=f"k = {k}", **style)
        # A small shift of beta keeps the bars of one method from hiding those of the other.
        for method, name, line, colour, shift in (
            (2, "maximum likelihood", "o-", COLOURS[0], -0.04),
            (1, "maximum pseudo-likelihood", "^--", COLOURS[5], 0.04),
        ):
            axes[1, at].errorbar(
                betas + shift, means[method, at] - betas, sds[method, at], fmt=line, color=colour,
                markersize=4, capsize=2, linewidth=1, label=name,
            )  # fmt: skip
        axes[1, at].set(
            xlabel="true β", ylabel="error of the estimate, mean and sd", ylim=(-1.1, 1.3),
            title=f"estimates of β at k = {k}",
        )  # fmt: skip
        estimates |= {
            f"truth_{k}": Estimate(true[row, -1], true_errors[row, -1]),
            f"gibbs_{k}": Estimate(means[0, at, -1], errors[0, at, -1]),
            f"path_{k}": Estimate(bias[row, -1], bias_errors[row]),
            f"pseudo_{k}": Estimate(means[1, at, 2] - betas[2], errors[1, at, 2]),
        }
    axes[0, 0].set(xlabel="β", ylabel="error of E[S]", title="500 Gibbs sweeps")
    axes[0, 1].set(xlabel="β", ylabel="error of log Z", title="Gibbs path sampling")
    for ax in axes.flat:
        ax.axhline(0.0, **_LEVEL, label="no error")
        ax.legend(loc="lower left")
    return Result(estimates, (figure,))
