"""The data sets and test error rates: Tables 1 and 2, Figures 1 and 2 (Sections 1.2 and 4).

The classical rule is not random, so that its published error rates are reproduced to the last
decimal. The Bayesian rules average over chains. The paper's partition of the glass data was not
published, so that the methods are compared over many random partitions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bayesknn.classical import ClassicalKNeighborsClassifier
from bayesknn.datasets import load_glass
from bayesknn.paper.comparison import Estimate, Result, item, published_rates, read_published
from bayesknn.paper.samples import (
    Draws,
    catch_mixing_warnings,
    error_at,
    exact_posterior,
    mean_over_runs,
    moller,
    pima_draws,
    predict,
    ripley_draws,
    score_rule,
)
from bayesknn.paper.setting import Setting, Study
from bayesknn.plots import LeaveOneOutDisplay
from bayesknn.plots.maps import draw_points
from bayesknn.plots.style import COLOURS, INK, LINES, new_figure
from bayesknn.posterior import grid_posterior


@item("fig:ripley")
def draw_data(setting: Setting) -> Result:
    """Draw the training and the test points (Figure 1)."""
    study = setting.ripley
    figure, axes = new_figure(1, 2, 8.0, 3.6, sharex=True, sharey=True)
    for ax, points, labels, name in (
        (axes[0, 0], study.X_train, study.labels, "training"),
        (axes[0, 1], study.X_test, study.test_labels, "test"),
    ):
        draw_points(ax, points, labels + 1, np.array([1, 2]))
        ax.set(title=f"{len(labels)} {name} points", xlabel="x1")
    axes[0, 0].set_ylabel("x2")
    axes[0, 0].legend(loc="lower right")
    n_train, n_test = len(study.labels), len(study.test_labels)
    sizes = np.bincount(study.labels)
    return Result({"n_train": n_train, "n_test": n_test, "sizes": sizes}, (figure,))


def _table(setting: Setting, data: str, id: str) -> Result:
    """Compute the test error rates of Table 1 or 2, and draw them with those at other k."""
    study, ks = getattr(setting, data), list(published_rates(id))
    every_k = sorted({*ks, *range(5, study.k_max + 1, 5)})
    errors = {k: study.classical_error(ClassicalKNeighborsClassifier(k)) for k in every_k}
    figure, ((ax,),) = new_figure(1, 1, 6.0, 3.2)
    ax.plot(list(errors), list(errors.values()), ".-", color=INK, linewidth=1, label="other k")
    ax.plot(ks, [errors[k] for k in ks], "o", color=COLOURS[5], label="k of the table")
    ax.set(xlabel="number of neighbours k", ylabel="test error rate")
    ax.legend(loc="upper right", fontsize="medium")
    return Result({f"k={k}": errors[k] for k in ks}, (figure,))


for _data, _id in (("ripley", "tab:knn-ripley"), ("pima", "tab:knn-indian")):
    item(_id)(partial(_table, data=_data, id=_id))


def _leave_one_out(study: Study) -> Result:
    rule = ClassicalKNeighborsClassifier("loo").fit(study.X_train, study.labels)
    figure, ((ax,),) = new_figure(1, 1, 6.0, 3.4)
    display = LeaveOneOutDisplay.from_estimator(rule, ax=ax)
    return Result({"best": display.best_k, "least": display.errors.min()}, (figure,))


@item("fig:leave1")
def ripley_leave_one_out(setting: Setting) -> Result:
    """Draw the leave-one-out curve (Figure 2)."""
    result = _leave_one_out(setting.ripley)
    result.estimates["n_best"] = Estimate(len(result.estimates["best"].value))
    return result


@item("num:loo-pima")
def pima_leave_one_out(setting: Setting) -> Result:
    """Compute the k that minimise the leave-one-out error on the Pima data (Section 4)."""
    return _leave_one_out(setting.pima)


@item("num:pima-sizes")
def pima_sizes(setting: Setting) -> Result:
    """Count rows, columns and diabetics of the Pima data (Section 4)."""
    study = setting.pima
    train, test = ([len(y), np.sum(y == 1)] for y in (study.labels, study.test_labels))
    n_covariates = study.X_train.shape[1]
    n = train[0] + test[0]
    return Result({"n": n, "n_covariates": n_covariates, "train": train, "test": test})


@item("num:glass-sizes")
def glass_sizes(setting: Setting) -> Result:
    """Count rows, columns and classes of the glass data (Section 4)."""
    merged, raw = load_glass(0), load_glass(0, classes="raw")
    return Result(
        {
            "covariates": merged.X_train.shape[1],
            "classes": len(raw.target_names),
            "merged": len(merged.target_names),
            "split": [len(merged.y_train), len(merged.y_test)],
        }
    )


@item("num:error-pima")
def pima_error(setting: Setting) -> Result:
    """Compute test error rates on the Pima data with the exact posterior and the Gibbs chain."""
    study, draws = setting.pima, pima_draws(setting)
    exact = exact_posterior(setting, "pima")
    errors = np.array([error_at(study, k) for k in range(1, study.k_max + 1)])
    error = score_rule(study, exact, study.error_rate)
    return Result(
        {
            "error": error,
            "exact": error,
            "chain": score_rule(study, draws, study.error_rate),
            "average": mean_over_runs(errors[draws.kept["k"] - 1].mean(axis=1)),
            "exact_average": errors @ exact.k_probabilities,
        }
    )


def _error_of(setting: Setting, method: str) -> Result:
    study = setting.ripley
    return Result({"error": score_rule(study, ripley_draws(setting, method), study.error_rate)})


for _method in ("pseudo", "path"):
    item(f"num:error-{_method}")(partial(_error_of, method=_method))


@item("num:error-perfect")
def perfect_error(setting: Setting) -> Result:
    """Compute test error rates with the exact posterior and with the perfect chain.

    The published value is compared with the exact posterior, whose Monte Carlo error is small with
    every budget. The standard error of short chains would hide a real difference.
    """
    study, draws = setting.ripley, ripley_draws(setting, "perfect")
    error = score_rule(study, exact_posterior(setting), study.error_rate)
    return Result({"error": error, "chain": score_rule(study, draws, study.error_rate)})


@item("num:error-by-k")
def error_by_k(setting: Setting) -> Result:
    """Compute the test error rate of the coherent rule at each k, and draw it."""
    exact, every_k = exact_posterior(setting), range(1, 61)
    errors = {k: error_at(setting.ripley, k) for k in every_k}
    figure, ((upper,), (lower,)) = new_figure(2, 1, 6.5, 4.6, sharex=True, height_ratios=(2, 1))
    upper.plot(
        every_k, errors.values(), ".-", color=INK, linewidth=1, label="coherent rule at one k"
    )
    published = read_published()["num:error-perfect"]["numbers"]["error"]["paper"]
    upper.axhline(published, color=COLOURS[5], linestyle="--", linewidth=1.2, label="published")
    upper.set(ylabel="test error rate", ylim=(0.075, 0.125))
    upper.legend(loc="upper right")
    lower.bar(every_k, exact.k_probabilities[:60], color=COLOURS[1], width=0.9)
    lower.set(xlabel="number of neighbours k", ylabel="posterior of k")
    is_above = np.ones_like(exact.betas) * (exact.k_values[:, None] >= 25)
    estimates: dict[str, Any] = {f"k={k}": errors[k] for k in published_rates("num:error-by-k")}
    return Result(estimates | {"above": Estimate(*exact.mean(is_above))}, (figure,))


def partition_errors(seeds: Any) -> dict[str, float]:
    """Return the test error rates of the methods on one random partition of the glass data.

    Parameters
    ----------
    seeds : SeedSequence
        Source of the seeds of the partition and of the posterior.

    Returns
    -------
    dict of str to float
        Error rates ``knn`` (17 neighbours), ``loo`` (k chosen by leave-one-out) and ``bayes``;
        the k chosen by leave-one-out, ``loo_k``; the posterior mean of k, ``k``.
    """
    split, draw = seeds.spawn(2)
    study = Study(load_glass(np.random.default_rng(split)))
    posterior = grid_posterior(
        study.coherent, study.prior, tolerance=0.1, evidence=False, random_state=draw, n_jobs=1
    )
    errors = {"bayes": study.error_rate(predict(study, posterior)), "k": posterior.k_mean}
    chosen = ClassicalKNeighborsClassifier("loo", max_neighbors=40)
    for name, rule in (("knn", ClassicalKNeighborsClassifier(17)), ("loo", chosen)):
        errors[name] = study.classical_error(rule)
    return errors | {"loo_k": chosen.n_neighbors_}


def chain_error(seeds: Any, chain: tuple[int, int]) -> float:
    """Return the test error rate of the paper's chain on one random partition of the glass data.

    Parameters
    ----------
    seeds : SeedSequence
        Equal seeds give the same partition as in :func:`partition_errors`.
    chain : (int, int)
        Number of burn-in iterations and of iterations kept. A first stage as long as the burn-in
        precedes both; its average becomes the plug-in.
    """
    split, draw = seeds.spawn(2)
    study = Study(load_glass(np.random.default_rng(split)))
    tree = moller(
        study, "gibbs", n_first_stage=chain[0], n_warmup=chain[0], n_draws=chain[1], n_chains=1,
        random_state=draw, n_jobs=1,
    )  # fmt: skip
    draws = Draws(tree["posterior"]["beta"].values, tree["posterior"]["k"].values)
    return study.error_rate(predict(study, draws))


@item("num:glass", smaller=lambda rate: rate.value > 0.95)
def glass_errors(setting: Setting) -> Result:
    """Compare the test error rates of the methods over random partitions of the glass data."""
    n = setting.budget.n_partitions
    rows = setting.map(partition_errors, setting.seeds("glass").spawn(n))
    errors = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    # A new SeedSequence spawns the same children again, so the chains run on the first partitions.
    first = setting.seeds("glass").spawn(setting.budget.n_glass_chains)
    one = partial(chain_error, chain=setting.budget.glass_chain)
    # Threads share the warning filters, so warnings are caught around all threads together.
    chain = np.array(catch_mixing_warnings(lambda: setting.map(one, first))[0])
    counts = np.bincount(errors["loo_k"].astype(int), minlength=18)
    at_17 = counts[17] / n
    gap = mean_over_runs(chain - errors["bayes"][: len(chain)])
    estimates = {
        **{name: mean_over_runs(errors[name]) for name in ("knn", "bayes", "loo", "k")},
        "chain": mean_over_runs(chain),
        "chain_gap": gap._replace(run_sd=0.0),
        "gain": mean_over_runs(errors["knn"] - errors["bayes"]),
        "loo_k": counts.argmax(),
        "at_17": Estimate(at_17, np.sqrt(at_17 * (1 - at_17) / n)),
        "smaller": np.mean(errors["k"] < 17),
    }
    notes = [
        f"{n} random partitions into 89 training and 96 test rows. The paper's chain, with 500 "
        f"Gibbs sweeps in each move, was run on the first {len(chain)}."
    ]
    return Result(estimates, (_draw(errors),), notes)


def _draw(errors: dict[str, np.ndarray]) -> Any:
    """Draw histograms of the error rates, and Bayesian error rates against 17 neighbours."""
    numbers = read_published()["num:glass"]["numbers"]
    published = {name: numbers[name]["paper"] for name in ("knn", "bayes")}
    figure, ((left, right),) = new_figure(1, 2, 9.5, 3.8)
    edges = np.arange(0.145, 0.66, 0.03)
    names = {"knn": "17 neighbours", "loo": "k by leave-one-out", "bayes": "Bayesian"}
    for at, (name, label) in enumerate(names.items()):
        style = {"color": COLOURS[at], "linestyle": LINES[at]}
        left.hist(errors[name], edges, histtype="stepfilled", alpha=0.3, color=COLOURS[at])
        left.hist(errors[name], edges, histtype="step", linewidth=1.4, label=label, **style)
        if name in published:
            left.axvline(published[name], linewidth=1.0, **style)
    left.set(xlabel="test error rate (vertical lines: published)", ylabel="partitions")
    left.legend(loc="upper right")
    both = (errors["knn"], errors["bayes"])
    right.plot(*both, "o", color=COLOURS[0], alpha=0.5, markersize=4)
    ends = [min(map(np.min, both)) - 0.02, max(map(np.max, both)) + 0.02]
    right.plot(ends, ends, color=INK, linewidth=0.8)
    right.plot(*published.values(), "*", color=COLOURS[5], markersize=13, label="published")
    right.set(xlabel="error rate of 17 neighbours", ylabel="error rate, Bayesian")
    right.legend(loc="upper left")
    return figure
