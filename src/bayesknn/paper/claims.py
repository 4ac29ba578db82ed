"""Checks of statements in the paper's text that no figure shows (Sections 2.2, 3, 3.2 and 3.4)."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from bayesknn._utils.random import spawn_keys
from bayesknn.graph import NeighborGraph
from bayesknn.labels import gibbs_labels, perfect_labels
from bayesknn.model import BoltzmannModel
from bayesknn.paper.comparison import Estimate, Result, item
from bayesknn.paper.samples import GOOD_PLUG_IN, exact_posterior, mean_over_runs
from bayesknn.paper.setting import BETA_MAX, Setting, as_published
from bayesknn.plots.style import COLOURS, INK, new_figure
from bayesknn.posterior import GridPosterior, grid_posterior

# Numbers of points in the graphs on which Gibbs sampling is timed.
_SIZES = (500, 1000, 2000, 4000, 8000)
# Rows of the second class in a stratified sample, out of the 125 among Ripley's training points.
_N_SAMPLED = 25


@item("num:symmetric", ring=lambda gap: gap.value < 1e-12)
def symmetric_neighbours(setting: Setting) -> Result:
    """Compare the conditionals eq:knn-cond at beta with eq:knn-intuit at 2 beta (Section 2.2)."""
    site = np.arange(12)
    ring = NeighborGraph.from_neighbors([(site + 1) % 12, (site - 1) % 12])
    labels = np.random.default_rng(setting.seeds("symmetric")).integers(3, size=12)
    ripley, study = setting.ripley.model, setting.ripley

    def gap(model: BoltzmannModel, labels: np.ndarray, k: int) -> float:
        """Return the largest absolute difference between the two conditionals."""
        both = model.conditional(labels, 1.0, k, "both")
        return float(np.abs(both - model.conditional(labels, 2.0, k, "forward")).max())

    estimates = {
        "ring": gap(BoltzmannModel(ring, 3), labels, 2),
        "ripley": gap(ripley, study.labels, GOOD_PLUG_IN[1]),
    }
    return Result(estimates)


@item("num:weights", gain=lambda gain: gain.value > 2 * gain.error)
def stratified_survey(setting: Setting) -> Result:
    """Compare fits with and without class weights on samples with few rows of one class."""
    study, half = setting.ripley, {0: 0.5, 1: 0.5}
    settings: dict[str, dict[str, Any]] = {
        "plain": {},
        "weights": {"class_prior": half},
        "offset": {"class_prior": half, "class_prior_as": "offset"},
    }

    def score(seeds: Any) -> list[list[float]]:
        """Return the test error rate and log-loss of each classifier fitted to one sample."""
        first, second = (np.flatnonzero(study.labels == g) for g in (0, 1))
        sampled = np.random.default_rng(seeds).choice(second, _N_SAMPLED, replace=False)
        rows = np.concatenate([first, sampled])
        X, y = study.X_train[rows], study.labels[rows]
        make = partial(as_published, y, likelihood="pseudo", beta_max=BETA_MAX, random_state=0)
        fits = [make(**each).fit(X, y) for each in settings.values()]
        probabilities = [clf.predict_proba(study.X_test) for clf in fits]
        return [[study.error_rate(p), study.log_loss(p)] for p in probabilities]

    surveys = setting.seeds("survey").spawn(setting.budget.n_surveys)
    errors, losses = np.moveaxis(np.array([score(seeds) for seeds in surveys]), 2, 0)
    columns = {"gain": errors[:, 0] - errors[:, 1]}
    for what, values in (("error", errors), ("loss", losses)):
        columns |= {f"{what}_{name}": row for name, row in zip(settings, values.T, strict=True)}
    means = {name: mean_over_runs(values) for name, values in columns.items()}
    return Result({name: mean._replace(run_sd=0.0) for name, mean in means.items()})


@item("num:black-or-white", larger_1=lambda proportion: proportion.value > 0.95)
def black_or_white(setting: Setting) -> Result:
    """Compute agreement and size of the larger class in perfect draws at beta = 4."""
    model, n_draws = setting.ripley.model, setting.budget.n_perfect
    estimates, figures = {}, []
    for k, key in zip((1, 125), spawn_keys(setting.seeds("black-or-white"), 2), strict=True):
        labels, info = perfect_labels(
            model, BETA_MAX, k, key=key, n_draws=n_draws, n_jobs=setting.n_jobs
        )
        ones = labels.mean(axis=1)
        agreement = info.agreement / (k * model.n_points)
        for name, values in (("agree", agreement), ("larger", np.maximum(ones, 1 - ones))):
            estimates[f"{name}_{k}"] = mean_over_runs(values)._replace(run_sd=0.0)
        figures.append((k, labels[0]))
    figure, axes = new_figure(1, 2, 8.5, 3.7, sharex=True, sharey=True)
    for ax, (k, drawn) in zip(axes[0], figures, strict=True):
        for g, marker in ((0, "o"), (1, "^")):
            points = setting.ripley.X_train[drawn == g]
            ax.plot(*points.T, marker, color=COLOURS[g], markersize=4, label=f"class {g + 1}")
        ax.set(title=f"one perfect draw at k = {k}, β = {BETA_MAX:g}", xlabel="x1")
    axes[0, 0].set_ylabel("x2")
    axes[0, 0].legend(loc="lower right")
    return Result(estimates, (figure,))


@item("num:information", pseudo=lambda proportion: proportion.value > 0.1)
def information_on_k(setting: Setting) -> Result:
    """Compute the size of the 95 % credible set of k, as a proportion of all values of k."""
    study = setting.ripley
    pseudo = grid_posterior(study.pseudo, study.prior)
    return Result({"pseudo": _size_of_set(pseudo), "exact": _size_of_set(exact_posterior(setting))})


def _size_of_set(posterior: GridPosterior) -> float:
    """Return the smallest proportion of the values of k with a total probability of 95 %."""
    cumulative = np.cumsum(np.sort(posterior.k_probabilities)[::-1])
    return float(np.searchsorted(cumulative, 0.95) + 1) / len(cumulative)


@item("num:linear-time", slope=lambda slope: abs(slope.value - 1) < 0.2)
def time_of_gibbs(setting: Setting) -> Result:
    """Time 500 Gibbs sweeps on graphs of 500 to 8,000 points, and fit the exponent of n."""
    beta, k = GOOD_PLUG_IN
    rng = np.random.default_rng(setting.seeds("linear-time"))
    seconds = []
    for n in _SIZES:
        model = BoltzmannModel(NeighborGraph.from_points(rng.normal(size=(n, 2)), k), 2)
        sample = partial(gibbs_labels, model, beta, k, n_warmup=499, key=np.uint64(n))
        sample()  # The first call compiles or loads the compiled function.
        times = []
        for _ in range(setting.budget.n_timings):
            start = time.thread_time()
            sample()
            times.append(time.thread_time() - start)
        seconds.append(min(times))
    slope, _ = np.polyfit(np.log(_SIZES), np.log(seconds), 1)
    figure, ((ax,),) = new_figure(1, 1, 5.6, 3.4)
    ax.loglog(_SIZES, seconds, "o", color=COLOURS[0], label="measured")
    line = seconds[0] * np.array(_SIZES) / _SIZES[0]
    ax.loglog(_SIZES, line, color=INK, linewidth=0.8, label="linear in n")
    ax.set_xticks(_SIZES, [f"{n:,}" for n in _SIZES])
    ax.set_yticks(line, [f"{each:.2g}" for each in line])
    ax.minorticks_off()
    ax.set(xlabel="points n", ylabel="CPU seconds of 500 sweeps")
    ax.legend(loc="upper left")
    return Result({"slope": Estimate(slope)}, (figure,))
