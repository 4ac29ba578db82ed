"""Forensic glass over many random partitions, because the paper's was not published (Section 4)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bayesknn.classical import ClassicalKNeighborsClassifier
from bayesknn.datasets import load_glass
from bayesknn.paper.comparison import Estimate, Result, item, read_published
from bayesknn.paper.samples import Draws, catch_mixing_warnings, mean_over_runs, moller, predict
from bayesknn.paper.setting import Setting, Study
from bayesknn.plots.style import COLOURS, INK, LINES, new_figure
from bayesknn.posterior import grid_posterior


def partition_errors(seeds: Any) -> dict[str, float]:
    """Compare the methods on one random partition of the glass data.

    Parameters
    ----------
    seeds : SeedSequence
        One for the partition and one for the posterior are made from it.

    Returns
    -------
    dict
        Error rates ``knn`` (17 neighbours), ``loo`` (k chosen by leave-one-out) and ``bayes``;
        the k that leave-one-out chose, ``loo_k``; the posterior mean of k, ``k``.
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
    """Return the error rate of the paper's chain on one random partition.

    Parameters
    ----------
    seeds : SeedSequence
        As in :func:`partition_errors`: the same one gives the same partition.
    chain : (int, int)
        Iterations before those that count, and these; the plug-in is replaced after as many as
        come first.
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
    """Compare the methods over partitions."""
    n = setting.budget.n_partitions
    rows = setting.map(partition_errors, setting.seeds("glass").spawn(n))
    errors = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    # Spawned anew: a sequence remembers what it has spawned.
    some = setting.seeds("glass").spawn(setting.budget.n_glass_chains)
    one = partial(chain_error, chain=setting.budget.glass_chain)
    # Around all threads: they share the filters of warnings.
    chain = np.array(catch_mixing_warnings(lambda: setting.map(one, some))[0])
    counts = np.bincount(errors["loo_k"].astype(int), minlength=18)
    at_17 = counts[17] / n
    gap = mean_over_runs(chain - errors["bayes"][: len(chain)])
    estimates = {
        **{name: mean_over_runs(errors[name]) for name in ("knn", "bayes", "loo", "k")},
        "chain": mean_over_runs(chain),
        "chain_gap": gap._replace(spread=0.0),
        "gain": mean_over_runs(errors["knn"] - errors["bayes"]),
        "loo_k": counts.argmax(),
        "at_17": Estimate(at_17, np.sqrt(at_17 * (1 - at_17) / n)),
        "smaller": np.mean(errors["k"] < 17),
    }
    notes = [
        f"{n} random partitions of 89 and 96 rows; the paper's chain, with 500 Gibbs sweeps a "
        f"move, on the first {len(chain)}."
    ]
    return Result(estimates, (_draw(errors),), notes)


def _draw(errors: dict[str, np.ndarray]) -> Any:
    """Draw the error rates, and two of them against each other."""
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
