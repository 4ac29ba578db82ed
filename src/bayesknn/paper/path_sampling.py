"""E[S] and log Z by Gibbs path sampling, and where it and its rivals break down (Section 3.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import cumulative_trapezoid

from bayesknn.graph import NeighborGraph
from bayesknn.labels import (
    find_beta_max,
    gibbs_labels,
    perfect_labels,
    spawn_keys,
    swendsen_wang_labels,
)
from bayesknn.likelihood import PseudoLikelihood, log_normalizer
from bayesknn.model import BoltzmannModel
from bayesknn.paper.gibbs_table import PAPER_K, gibbs_expectations, gibbs_table
from bayesknn.paper.item import Estimate, Result, make_item
from bayesknn.paper.setting import BETA_MAX, Setting
from bayesknn.plots.style import COLOURS, GREY, INK, LINES, new_figure, tidy

_BREAKDOWN_K = (10, 50)
_BREAKDOWN_BETAS = np.arange(0.5, 4.1, 0.5)


def true_expectation(
    graph: NeighborGraph, beta: float, k: int, n_classes: int, key: np.uint64, n_sweeps: int
) -> tuple[float, float]:
    """Estimate E[S_k] / k by Swendsen-Wang from the clusters; also return the error."""
    model = BoltzmannModel(graph, n_classes)
    _, info = swendsen_wang_labels(model, beta, k, n_draws=n_sweeps, key=key)
    values = info.cluster_agreement / k
    # Autocorrelation is at most a few sweeps: means of 20 batches are nearly independent.
    batches = np.array([batch.mean() for batch in np.array_split(values, 20)])
    return float(values.mean()), float(batches.std(ddof=1) / np.sqrt(len(batches)))


def true_expectations(setting: Setting, ks: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Estimate E[S_k] / k by Swendsen-Wang on the paper's values of beta.

    Returns
    -------
    dict
        ``mean`` and ``error`` of shape (n_k, n_betas).
    """
    study = setting.ripley
    betas = gibbs_expectations(setting)["betas"]
    name = "true-" + "-".join(map(str, ks))

    def make() -> dict[str, np.ndarray]:
        tasks = [(float(beta), k) for k in ks for beta in betas]
        keys = spawn_keys(setting.seeds(name), len(tasks))

        def estimate(task: tuple[float, int], key: np.uint64) -> tuple[float, float]:
            n_sweeps = setting.budget.reference_sweeps
            return true_expectation(study.graph, *task, study.n_classes, key, n_sweeps)

        found = setting.map(estimate, tasks, keys)
        mean, error = np.array(found).T.reshape(2, len(ks), len(betas))
        return {"mean": mean, "error": error}

    return setting.keep(name, make)


def draw_expectations(setting: Setting) -> Result:
    """Draw E[S] against beta for k = 1 and k = 125 (Figure constappro1)."""
    from scipy.interpolate import make_interp_spline

    study = setting.ripley
    found = gibbs_expectations(setting)
    betas, ends = found["betas"], (1, 125)
    truth = true_expectations(setting, ends)
    figure, axes = new_figure(1, 2, 8.5, 3.6, sharey=True)
    gaps = {}
    for ax, k, true, error in zip(axes[0], ends, truth["mean"], truth["error"], strict=True):
        gibbs = found["mean"][PAPER_K.index(k)]
        fine = np.linspace(0, BETA_MAX, 400)
        ax.plot(fine, make_interp_spline(betas, gibbs, k=2)(fine), color=COLOURS[5],
                linewidth=1, label="Gibbs, second-order spline")  # fmt: skip
        ax.plot(betas, gibbs, "o-", color=INK, markersize=2.5, linewidth=0.8,
                label="Gibbs, linear")  # fmt: skip
        ax.plot(betas, true, color=COLOURS[0], linewidth=2, alpha=0.6,
                label="Swendsen-Wang, converged")  # fmt: skip
        _mark_line(ax, study.graph.n_points, "n")
        ax.set(title=f"k = {k}", xlabel="β")
        tidy(ax)
        gaps[k] = Estimate(float(gibbs[-1] - true[-1]), float(error[-1]))
    axes[0, 0].set_ylabel("E[S]  (S divided by k)")
    axes[0, 0].legend(frameon=False, fontsize="small", loc="lower right")
    worst = int(np.argmax(np.abs(found["mean"][-1] - truth["mean"][1])))
    return Result(
        {
            "zero": Estimate(float(truth["mean"][1, 0])),
            "limit": Estimate(float(truth["mean"][1, -1]), float(truth["error"][1, -1])),
            "gap_1": gaps[1],
            "gap_125": gaps[125],
            "worst": Estimate(
                float(found["mean"][-1][worst] - truth["mean"][1][worst]),
                float(truth["error"][1][worst]),
            ),
        },
        {"": figure},
    )


def draw_surface(setting: Setting) -> Result:
    """Draw log Z over (beta, k) (Figure constappro2)."""
    study = setting.ripley
    table = gibbs_table(setting)
    figure, axes = new_figure(1, 2, 9.0, 3.6)
    betas = np.linspace(0, BETA_MAX, 121)
    every_k = np.arange(1, table.k_max + 1)
    log_z = np.array([table.log_normalizer(betas, int(k)) for k in every_k])
    filled = axes[0, 0].contourf(betas, every_k, log_z, 16, cmap="cividis")
    figure.colorbar(filled, ax=axes[0, 0], label="log Z")
    axes[0, 0].set(xlabel="β", ylabel="k", title="Gibbs path sampling, bilinear")
    found, truth = gibbs_expectations(setting), true_expectations(setting, PAPER_K)
    bias = cumulative_trapezoid(found["mean"] - truth["mean"], found["betas"], initial=0.0)
    for at, k in enumerate((1, 10, 50, 125)):
        style = {"color": COLOURS[at], "linestyle": LINES[at], "label": f"k = {k}"}
        axes[0, 1].plot(found["betas"], bias[PAPER_K.index(k)], **style)
    axes[0, 1].set(xlabel="β", ylabel="error of log Z", title="Gibbs less Swendsen-Wang")
    axes[0, 1].legend(frameon=False, fontsize="small", loc="lower left")
    tidy(axes[0, 1])
    explained = 1 - np.mean((log_z - log_z.mean(axis=0)) ** 2) / np.var(log_z)
    error = np.sqrt(np.sum((truth["error"] * found["betas"][1]) ** 2, axis=1))
    at_zero = study.graph.n_points * np.log(study.n_classes)
    return Result(
        {
            "explained": Estimate(float(explained)),
            "zero": Estimate(float(table.log_normalizer(0.0, 50) - at_zero)),
            "bias_10": Estimate(float(bias[1, -1]), float(error[1])),
            "bias_50": Estimate(float(bias[5, -1]), float(error[5])),
        },
        {"": figure},
    )


def exact_constants(setting: Setting) -> Result:
    """Compute log Z exactly, by variable elimination, where the graph is narrow enough."""
    study = setting.ripley
    return Result(
        {
            f"k={k}, beta={beta:g}": Estimate(log_normalizer(study.graph, beta, k, 2).value)
            for k in (1, 3, 5)
            for beta in (1.0, 2.0, 4.0)
        }
    )


def find_range(setting: Setting) -> Result:
    """Find the beta beyond which almost all neighbours agree."""

    def make() -> dict[str, float]:
        study = setting.ripley
        found = find_beta_max(study.graph, study.n_classes, random_state=setting.seeds("beta-max"))
        return {"beta_max": found.beta_max}

    return Result({"beta_max": Estimate(float(setting.keep("beta-max", make)["beta_max"]))})


def replicate(setting: Setting) -> dict[str, np.ndarray]:
    """Draw data sets at each (beta, k) and estimate beta from them; draw by 500 Gibbs sweeps.

    Returns
    -------
    dict
        Arrays of shape (n_k, n_betas, n_replicates): ``gibbs``, S_k / k of a draw by Gibbs sampling
        from random labels; ``pseudo`` and ``likelihood``, the estimates of beta from a perfect
        draw by the maximum of either, at most 4.
    """
    study, size = setting.ripley, setting.budget.n_replicates
    path_betas = gibbs_expectations(setting)["betas"]
    curves = true_expectations(setting, PAPER_K)["mean"]

    def run(task: tuple[int, float], pair: np.ndarray) -> tuple[list, list, list]:
        k, beta = task
        model = BoltzmannModel(NeighborGraph.from_neighbors(study.graph.neighbors[:k]), 2)
        gibbs = [
            gibbs_labels(model, beta, k, n_warmup=499, key=key)[1].agreement[0] / k
            for key in spawn_keys(int(pair[0]), size)
        ]
        labels, info = perfect_labels(model, beta, k, key=pair[1], n_draws=size)
        pseudo = [
            min(PseudoLikelihood(model, each).maximize_each_k(BETA_MAX).beta[k - 1], BETA_MAX)
            for each in labels
        ]
        # E[S] grows with beta: the likelihood's maximum is where it meets S.
        curve = np.maximum.accumulate(curves[PAPER_K.index(k)])
        likelihood = np.interp(info.agreement / k, curve, path_betas)
        return gibbs, pseudo, likelihood.tolist()

    def make() -> dict[str, Any]:
        tasks = [(k, beta) for k in _BREAKDOWN_K for beta in _BREAKDOWN_BETAS.tolist()]
        keys = spawn_keys(setting.seeds("breakdown"), 2 * len(tasks)).reshape(-1, 2)
        found = np.array(setting.map(run, tasks, keys)).reshape(len(_BREAKDOWN_K), -1, 3, size)
        return dict(zip(("gibbs", "pseudo", "likelihood"), np.moveaxis(found, 2, 0), strict=True))

    return setting.keep("breakdown", make)


def breakdown(setting: Setting) -> Result:
    """Draw the three errors against beta."""
    path, truth = gibbs_expectations(setting), true_expectations(setting, PAPER_K)
    betas, found = _BREAKDOWN_BETAS, replicate(setting)
    bias = cumulative_trapezoid(path["mean"] - truth["mean"], path["betas"], initial=0.0)
    errors = path["betas"][1] * np.sqrt(np.sum(truth["error"] ** 2, axis=1))
    figure, axes = new_figure(2, 2, 9.0, 6.6)
    estimates: dict[str, Estimate] = {}
    for at, k in enumerate(_BREAKDOWN_K):
        row, style = PAPER_K.index(k), {"color": COLOURS[at], "linestyle": LINES[at]}
        mean, error = _mean_of(found["gibbs"][at])
        expected = np.interp(betas, path["betas"], truth["mean"][row])
        axes[0, 0].errorbar(
            betas, mean - expected, 2 * error, marker="o", markersize=4, capsize=2,
            label=f"k = {k}", **style,
        )  # fmt: skip
        axes[0, 1].plot(path["betas"], bias[row], label=f"k = {k}", **style)
        _draw_estimates(axes[1, at], {name: values[at] for name, values in found.items()})
        axes[1, at].set_title(f"estimates of β at k = {k}")
        last = float(truth["mean"][row, -1]), float(truth["error"][row, -1])
        estimates[f"truth_{k}"] = Estimate(*last)
        estimates[f"gibbs_{k}"] = Estimate(float(mean[-1]), float(error[-1]))
        estimates[f"path_{k}"] = Estimate(float(bias[row, -1]), float(errors[row]))
        mean, error = _mean_of(found["pseudo"][at])
        estimates[f"pseudo_{k}"] = Estimate(float(mean[2] - betas[2]), float(error[2]))
    axes[0, 0].set(xlabel="β", ylabel="E[S] less the truth", title="500 Gibbs sweeps")
    axes[0, 1].set(xlabel="β", ylabel="log Z less the truth", title="Gibbs path sampling")
    for ax in axes.flat:
        _mark_line(ax, 0.0, "truth")
        ax.legend(frameon=False, fontsize="small", loc="lower left")
        tidy(ax)
    return Result(estimates, {"": figure})


def _draw_estimates(ax: Any, found: dict[str, np.ndarray]) -> None:
    # Side by side, or one would hide the other.
    for key, line, colour, shift in (
        ("likelihood", "o-", COLOURS[0], -0.04),
        ("pseudo", "^--", COLOURS[5], 0.04),
    ):
        name = "maximum likelihood" if key == "likelihood" else "maximum pseudo-likelihood"
        mean, sd = found[key].mean(axis=1), found[key].std(axis=1, ddof=1)
        ax.errorbar(
            _BREAKDOWN_BETAS + shift, mean - _BREAKDOWN_BETAS, sd, fmt=line, color=colour,
            markersize=4, capsize=2, linewidth=1, label=name,
        )  # fmt: skip
    ax.set(xlabel="true β", ylabel="estimate less β, mean and sd", ylim=(-1.1, 1.3))


def _mean_of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.mean(axis=1), values.std(axis=1, ddof=1) / values.shape[1] ** 0.5


def _mark_line(ax: Any, value: float, text: str) -> None:
    """Draw a level line with its name at the right end."""
    ax.axhline(value, color=GREY, linewidth=0.8, linestyle="--")
    ax.annotate(
        text, (1, value), (-2, 2), ("axes fraction", "data"), "offset points",
        ha="right", fontsize="small", color="0.35",
    )  # fmt: skip


ITEMS = [
    make_item("num:beta-max", find_range),
    make_item(
        "fig:constappro1",
        draw_expectations,
        limit=lambda found: found.value > 245,
        worst=lambda gap: abs(gap.value) > 5 * gap.error,
    ),
    make_item("fig:constappro2", draw_surface, explained=lambda rate: rate.value > 0.99),
    make_item("ref:log-z", exact_constants),
    make_item(
        "extra:breakdown",
        breakdown,
        path_10=lambda gap: -18.5 < gap.value < -6.5,
        path_50=lambda gap: -18.5 < gap.value < -6.5,
    ),
]
