"""Posterior over sets of columns of x, which Section 5 of the paper calls "not explored"."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bayesknn.column_selection import ColumnSelector
from bayesknn.paper.comparison import Estimate, Result, item
from bayesknn.paper.setting import Setting, Study, as_published
from bayesknn.plots import ColumnSetsDisplay


@item("extra:columns", ripley_true=lambda p: p.value > 0.9)
def choose_columns(setting: Setting) -> Result:
    """Compute inclusion probabilities, and test log-losses with and without averaging over sets."""
    ripley, pima = setting.ripley, setting.pima
    rng = np.random.default_rng(setting.seeds("noise columns"))
    n_noise = setting.budget.n_noise_columns
    X, X_test = (
        np.hstack([each, rng.normal(size=(len(each), n_noise))])
        for each in (ripley.X_train, ripley.X_test)
    )
    selector = _select(setting.budget.evidence_of_sets, X, ripley, setting)
    p, errors = selector.inclusion_probabilities_, selector.inclusion_errors_
    least, most = int(np.argmin(p[:2])), 2 + int(np.argmax(p[2:]))
    estimates: dict[str, Any] = {
        "ripley_true": Estimate(p[least], errors[least]),
        "ripley_noise": Estimate(p[most], errors[most]),
        **_losses("ripley", selector, X, X_test, ripley),
    }
    selector = _select("pseudo-evidence", pima.X_train, pima, setting)
    estimates |= _losses("pima", selector, pima.X_train, pima.X_test, pima)
    for name, probability in zip(_PIMA, selector.inclusion_probabilities_, strict=True):
        estimates[f"pima_{name}"] = probability
    display = ColumnSetsDisplay(
        _PIMA, selector.set_probabilities_, selector.inclusion_probabilities_, np.zeros(len(_PIMA))
    ).plot()
    display.ax_.set_title("Pima, by pseudo-evidence")
    return Result(estimates, (display.figure_,))


_PIMA = ("npreg", "glu", "bp", "skin", "bmi", "ped", "age")


def _select(by: str, X: np.ndarray, study: Study, setting: Setting) -> ColumnSelector:
    with warnings.catch_warnings():
        # The selector warns if no column passes its permutation test. The inclusion probabilities
        # that are reported contain this information.
        warnings.simplefilter("ignore", UserWarning)
        return ColumnSelector(by, random_state=setting.seed, n_jobs=setting.n_jobs).fit(
            X, study.labels
        )


def _losses(
    name: str, selector: ColumnSelector, X: np.ndarray, X_test: np.ndarray, study: Study
) -> dict[str, float]:
    """Return test log-losses averaged over sets, of the most probable set, and of all columns."""
    # The columns are standardised, as in the selector, so that their units have no influence.
    center, scale = X.mean(axis=0), X.std(axis=0)
    likelihood = "coherent" if selector.by == "evidence" else "pseudo"
    losses = {f"{name}_averaged": study.log_loss(selector.predict_proba(X_test))}
    mode = list(next(each for each in selector.set_probabilities_ if each))
    for what, columns in (("likeliest", mode), ("all", list(range(X.shape[1])))):
        rows, new = (((each - center) / scale)[:, columns] for each in (X, X_test))
        clf = as_published(study.labels, likelihood=likelihood, random_state=0)
        losses[f"{name}_{what}"] = study.log_loss(clf.fit(rows, study.labels).predict_proba(new))
    return losses
