"""Invariance of noise: leave-one-out scores are unbiased if labels do not depend on the columns.

The scores are compared with those of stratified ten-fold cross-validation of the same classifier on
the same rows. If rows are grouped, the folds consist of whole groups.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from campaigns.invariances.compared import Compared

# Number of tables in a sample. More tables detect smaller biases; each table takes eleven fits.
N_TABLES = 20
# Largest difference of mean scores that is not a fault. A smaller margin would report the bias of
# cross-validation itself, a larger one would hide a bias of the same size.
_MARGIN = 0.01
_CLASSIFIERS = {
    "pseudo": BayesianKNeighborsClassifier("pseudo", beta_max=4.0, n_draws=20, random_state=0),
    "calibrated": BayesianKNeighborsClassifier(
        "holmes-adams", beta_max=6.0, n_draws=20, calibrate=True, random_state=0
    ),
    "pooled": PooledNeighborsClassifier(("evidence", "discriminant"), random_state=0),
}
NOTHING = [
    {"classifier": name, "sizes": sizes, "n_tables": N_TABLES}
    for name in _CLASSIFIERS
    for sizes in ("equal", "one to three", "whole groups")
]


class Noise(NamedTuple):
    """Options (classifier, sizes of the classes, number of tables) and a seed."""

    options: dict[str, Any]
    seed: int


def noise(options: dict[str, Any]) -> st.SearchStrategy[Noise]:
    """Return a strategy that draws a seed."""
    return st.integers(0, 2**32 - 1).map(lambda seed: Noise(options, seed))


def nothing_to_learn(case: Noise) -> Iterator[Compared]:
    """Yield whether each statistic of tables of noise is rejected, 1 for a rejection.

    The statistics are the differences of leave-one-out from cross-validated error rate, AUC and
    log-loss, the coverage of the leave-one-out intervals, and warnings about a column that does not
    fit the model. A sample with a doubtful p-value is repeated with four times as many tables, see
    ``tests/statistical.py``.
    """
    from tests.statistical import rejects

    n_tables = case.options["n_tables"]
    for name in ("error", "AUC", "log-loss", "intervals", "misfit"):
        is_off = rejects(lambda n, seed, name=name: _p_value(case, name, n, seed), n_tables)
        yield Compared(f"{case.options}: {name}", float(is_off), 0.0)


_samples: dict[Any, np.ndarray] = {}


def _p_value(case: Noise, name: str, n_tables: int, seed: int) -> float:
    """Return the p-value of one statistic; all statistics use the same sample of tables."""
    key = (*case.options.values(), case.seed, n_tables, seed)
    if key not in _samples:
        seeds = np.random.SeedSequence([case.seed, seed]).spawn(n_tables)
        _samples[key] = np.array([_measure(case.options, each) for each in seeds])
    error, area, loss, inside, misfit = _samples[key].T
    if name == "misfit":
        # The warning may name a column in at most 5 % of tables of noise.
        return float(stats.binom.sf(misfit.sum() - 1, n_tables, 0.05))
    sample = {"error": error, "AUC": area, "log-loss": loss, "intervals": inside - 0.95}[name]
    if name != "intervals":
        # Cross-validation fits only 90 % of the rows, which biases it by up to about the margin. So
        # a mean difference within the margin is not tested.
        sample = sample - np.clip(sample.mean(), -_MARGIN, _MARGIN)
    if np.ptp(sample) == 0:
        return float(np.all(sample >= 0) or name != "intervals")
    side = "less" if name == "intervals" else "two-sided"
    return float(stats.ttest_1samp(sample, 0.0, alternative=side).pvalue)


def _measure(options: dict[str, Any], seed: np.random.SeedSequence) -> tuple[float, ...]:
    """Return the statistics of one table.

    These are the differences of leave-one-out from cross-validated error rate, AUC and log-loss,
    the coverage of the intervals, and whether a warning names a column.
    """
    rng, is_grouped = np.random.default_rng(seed), options["sizes"] == "whole groups"
    n, clf = 60, _CLASSIFIERS[options["classifier"]]
    X = rng.normal(size=(n, 4))
    n_parts = 4 if options["sizes"] == "one to three" else 2
    y = rng.permutation(np.arange(n) % n_parts == 0).astype(int)
    groups, folds = None, StratifiedKFold(10, shuffle=True, random_state=0)
    if is_grouped:
        # Each group has two rows with one label and nearly equal values.
        groups, folds = (
            np.repeat(np.arange(n), 2),
            StratifiedGroupKFold(10, shuffle=True, random_state=0),
        )
        X, y = X[groups] + 0.01 * rng.normal(size=(2 * n, 4)), y[groups]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(clf).fit(X, y, groups=groups)
        crossed = np.empty((len(y), 2))
        for train, test in folds.split(X, y, groups):
            given = None if groups is None else groups[train]
            crossed[test] = clone(clf).fit(X[train], y[train], groups=given).predict_proba(X[test])
    gaps = np.subtract(_score(fitted.loo_proba_, y), _score(crossed, y))
    low, high = np.moveaxis(fitted.loo_interval(), 2, 0)
    frequency = 1 / n_parts
    true_probabilities = np.array([1 - frequency, frequency])
    inside = np.mean((low <= true_probabilities) & (true_probabilities <= high))
    return *gaps, inside, fitted.diagnostics_["misfit_column"] is not None


def _score(p: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Return error rate, AUC and log-loss."""
    error = np.mean(p.argmax(axis=1) != y)
    loss = -np.mean(np.log(p[np.arange(len(y)), y]))
    return float(error), float(roc_auc_score(y, p[:, 1])), float(loss)
