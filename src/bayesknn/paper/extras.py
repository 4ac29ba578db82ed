"""What the paper could not show: the exact posterior, and perfect draws of four classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.datasets import load_glass
from bayesknn.exceptions import CoalescenceError
from bayesknn.labels import perfect_labels, spawn_keys
from bayesknn.likelihood import HolmesAdamsLikelihood, log_normalizer
from bayesknn.model import BoltzmannModel, UniformPrior
from bayesknn.paper.drawing import new_figure
from bayesknn.paper.item import Estimate, Item, Quantity, Result, independent
from bayesknn.paper.prediction import measure_error, measure_log_loss, predictive
from bayesknn.paper.samples import auxiliary_draws, path_draws, pseudo_draws, ripley_posterior
from bayesknn.paper.setting import Setting, make_study
from bayesknn.plots import ApproximationDisplay
from bayesknn.plots.style import COLOURS, INK, tidy
from bayesknn.posterior import GridPosterior, grid_posterior

_FOUR_K = 3
# Forward neighbours alone count half as much, so that a prior up to 4 would cut this law off.
_HOLMES_ADAMS_MAX = 10.0
_STEP = 1e-3


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
        UniformPrior(study.k_max, _HOLMES_ADAMS_MAX),
    )
    chains = {
        "pseudo": pseudo_draws(setting),
        "path": path_draws(setting),
        "perfect": auxiliary_draws(setting, "perfect"),
        "gibbs": auxiliary_draws(setting, "gibbs"),
    }
    names = {
        "pseudo": "pseudo-likelihood",
        "path": "path sampling",
        "perfect": "perfect draws",
        "gibbs": "500 Gibbs sweeps",
    }
    figure, axes = new_figure(2, 1, 7.5, 5.6)
    shown = {names[name]: draws.tree for name, draws in chains.items()}
    ApproximationDisplay.from_posteriors(
        {**shown, "Holmes and Adams": holmes_adams, "exact": exact}, axes=axes.ravel()
    )
    estimates = {}
    for name, draws in chains.items():
        shares = [
            _distance(np.bincount(k, minlength=exact.k_max + 1)[1:] / len(k), exact)
            for k in draws.kept[1]
        ]
        spread = float(np.std(shares, ddof=1))
        pooled = np.bincount(draws.kept[1].ravel(), minlength=exact.k_max + 1)[1:]
        estimates[f"distance_{name}"] = Estimate(
            _distance(pooled / pooled.sum(), exact), spread / len(shares) ** 0.5, spread
        )
        estimates[f"loss_{name}"] = measure_log_loss(study, draws)
    forward = predictive(study, holmes_adams, "forward").probabilities(study.X_test)
    estimates["error_exact"] = measure_error(study, exact)
    estimates["loss_exact"] = measure_log_loss(study, exact)
    estimates["error_ha"] = Estimate(study.error_rate(forward))
    estimates["loss_ha"] = Estimate(study.log_loss(forward))
    return Result(estimates, {"": figure})


def _distance(shares: np.ndarray, exact: GridPosterior) -> float:
    """Return the total variation distance of a law of k from the exact one."""
    return float(0.5 * np.abs(shares - exact.k_probabilities).sum())


def perfect_four(setting: Setting) -> Result:
    """Draw labels of four classes perfectly and compare them with exact expectations."""
    study = make_study(load_glass(0))
    n_draws = setting.budget.n_perfect
    betas = np.linspace(0.5, 4.0, 8)

    def make() -> dict[str, np.ndarray]:
        keys = spawn_keys(setting.seeds("perfect-four"), 2 * len(betas))
        four, two = BoltzmannModel(study.graph, 4), BoltzmannModel(study.graph, 2)
        columns: dict[str, list[float]] = {name: [] for name in ("mean", "error", "four", "two")}
        for beta, key, other in zip(betas.tolist(), keys[::2], keys[1::2], strict=True):
            _, info = perfect_labels(
                four, beta, _FOUR_K, key=key, n_draws=n_draws, n_jobs=setting.n_jobs
            )
            columns["mean"].append(info.agreement.mean() / _FOUR_K)
            columns["error"].append(info.agreement.std(ddof=1) / _FOUR_K / n_draws**0.5)
            columns["four"].append(float(np.median(info.n_sweeps)))
            try:
                _, info = perfect_labels(
                    two, beta, _FOUR_K, key=other, n_draws=min(n_draws, 20),
                    algorithm="sites", max_sweeps=2**12, n_jobs=setting.n_jobs,
                )  # fmt: skip
                columns["two"].append(float(np.median(info.n_sweeps)))
            except CoalescenceError:
                columns["two"].append(float("nan"))
        return {name: np.array(column) for name, column in columns.items()}

    found = setting.keep("perfect-four", make)
    truth = np.array([_expected(study.graph, beta) for beta in betas.tolist()])
    scores = (found["mean"] - truth) / found["error"]
    figure, axes = new_figure(1, 2, 9.0, 3.6)
    axes[0, 0].plot(betas, truth, color=INK, linewidth=1, label="exact, by elimination")
    axes[0, 0].errorbar(betas, found["mean"], 3 * found["error"], fmt="o", color=COLOURS[0],
                        markersize=4, capsize=2, label="perfect draws, 3 errors")  # fmt: skip
    axes[0, 0].set(xlabel="β", ylabel="E[S]  (S divided by k)",
                   title=f"four classes, glass graph, k = {_FOUR_K}")  # fmt: skip
    axes[0, 0].legend(frameon=False, fontsize="small", loc="lower right")
    axes[0, 1].semilogy(betas, found["four"], "o-", color=COLOURS[0], label="bonds, G = 4")
    axes[0, 1].semilogy(betas, found["two"], "^--", color=COLOURS[1],
                        label="labels, G = 2 (the paper's)")  # fmt: skip
    axes[0, 1].set(
        xlabel="β", ylabel="sweeps until the chains meet, median", title="cost of a draw"
    )
    axes[0, 1].legend(frameon=False, fontsize="small", loc="upper left")
    met = np.flatnonzero(np.isfinite(found["two"]))
    if len(met) < len(betas):
        last = met[-1] if len(met) else 0
        axes[0, 1].annotate("then more than 4096", (betas[last], found["two"][last]), (8, -3),
                            textcoords="offset points", fontsize="small")  # fmt: skip
    for ax in axes[0]:
        tidy(ax)
    ceiling = found["two"][-1]
    return Result(
        {
            "classes": Estimate(4),
            "score": Estimate(float(np.abs(scores).max())),
            "sweeps": Estimate(found["four"].max()),
            "labels": Estimate("more than 4096" if np.isnan(ceiling) else float(ceiling)),
        },
        {"": figure},
    )


def _expected(graph: Any, beta: float) -> float:
    """Return E[S_k] / k, the slope of the exact log Z."""
    low, high = (log_normalizer(graph, b, _FOUR_K, 4).value for b in (beta - _STEP, beta + _STEP))
    return (high - low) / (2 * _STEP)


ITEMS = [
    Item(
        "ref:posterior", "The exact posterior on Ripley's data", "not in the paper",
        exact_posteriors,
        {
            "beta": independent("posterior mean of β", 1.457, 3),
            "beta_sd": independent("posterior standard deviation of β", 0.098, 3),
            "k": independent("posterior mean of k", 15.0, 1),
            "k_sd": independent("posterior standard deviation of k", 3.9, 1),
            "at_14": independent("posterior probability of k = 14", 0.28, 2),
            "mode": independent("most probable k", 14, 0),
            "pseudo_beta": independent("mean of β, pseudo-likelihood", 2.447, 3),
            "pseudo_beta_sd": independent("sd of β, pseudo-likelihood", 0.429, 3),
            "pseudo_k": independent("mean of k, pseudo-likelihood", 55.1, 1),
            "pseudo_k_sd": independent("sd of k, pseudo-likelihood", 11.5, 1),
        },
        "(β, k) is two-dimensional: given log Z on a grid the posterior is a sum, with no Markov "
        "chain at all.",
        ("tolerance",),
    ),
    Item(
        "extra:exact-posterior", "Every approximation against the exact posterior",
        "not in the paper", against_exact,
        {
            **{
                f"distance_{name}": Quantity(
                    f"total variation distance of P(k) from the exact one: {words}", None, 2)
                for name, words in (
                    ("pseudo", "pseudo-likelihood"), ("path", "path sampling"),
                    ("perfect", "perfect draws"), ("gibbs", "500 Gibbs sweeps"))
            },
            "error_exact": independent("test error rate, exact posterior", 0.093, 3),
            "loss_exact": independent("test log-loss, exact posterior", 0.258, 3),
            "loss_pseudo": independent("test log-loss, pseudo-likelihood chain", 0.224, 3),
            "loss_path": Quantity("test log-loss, path-sampling chain", None, 3),
            "loss_perfect": Quantity("test log-loss, perfect chain", None, 3),
            "loss_gibbs": Quantity("test log-loss, Gibbs chain", None, 3),
            "error_ha": Quantity(
                "test error rate, Holmes and Adams, β up to 10", None, 3,
                remark="The .084 that the paper gives for its perfect chain, perhaps by chance."),
            "loss_ha": independent(
                "test log-loss, Holmes and Adams, β up to 10", 0.215, 3,
                remark="The coherent posterior is the right answer about (β, k), and yet it "
                "predicts less well here than the two that are not."),
        },
        "Which of the three approximations is how far off, now that the exact posterior is known.",
        ("n_chains", "long_chain", "perfect_chain", "tolerance"),
    ),
    Item(
        "extra:perfect-four", "Perfect sampling of four classes", "after Section 3.4",
        perfect_four,
        {
            "classes": Quantity(
                "classes drawn perfectly",
                "the extension to more than G = 2 classes has not yet been achieved", 0,
                holds=lambda found: found.value <= 2,
                why="The random-cluster form of the model is a monotone system for every G: "
                "couple the bonds from the past, then colour each cluster."),
            "score": Quantity("largest of 8 distances from the exact E[S], in standard errors",
                              None, 1, remark="About 2 is what chance alone would give."),
            "sweeps": Quantity("most sweeps until the bonds meet, median over draws", None, 0),
            "labels": Quantity("sweeps until the labels meet at β = 4, G = 2", None, 0,
                               remark="The paper's coupling slows down at large β; that of the "
                               "bonds does not."),
        },
        "The extension of the perfect sampling scheme to more than G = 2 classes has not yet been "
        "achieved.",
        ("n_perfect",),
    ),
]  # fmt: skip
