"""Other classifiers on the same rows, in cross-validation, and whether more rows would help.

The rows are cut into folds; each classifier is fitted to all folds but one and predicts the rest,
with everything it chooses, its k or its weights, chosen on the rows it was fitted to. For the
learning curve the report's own classifier is fitted to parts of these rows as well.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from bayesknn.report.columns import ColumnPlan
from bayesknn.report.pipeline import build_pipeline
from bayesknn.report.scores import Scores, score, score_rows, standard_errors

PAPER, POOL = "Bayesian kNN of the paper", "pooled neighbours"
N_FOLDS = 5
# More rows than this are compared on so many of them, chosen at random: the paper's model takes
# seconds a fold.
MAX_ROWS = 1000
MAX_CELLS = 50_000
# Every class must be in every part, and twice where a classifier is fitted.
MIN_CLASS = 3
# Parts of a fold's training rows for the learning curve.
_PARTS = (0.25, 0.5)


class Compared(NamedTuple):
    """What one classifier achieved.

    Attributes
    ----------
    scores : Scores
    standard_errors : Scores
        Of the same, over the rows.
    """

    scores: Scores
    standard_errors: Scores


class LearningCurve(NamedTuple):
    """Scores of the report's classifier, fitted to fewer rows.

    Attributes
    ----------
    sizes : list of int
        Rows it was fitted to, on average over the folds.
    log_loss, error : list of float
        And the standard error over the rows.
    last_gain, last_gain_error : float
        By how much the last increase in rows reduced the log-loss, and its standard error.
    """

    sizes: list[int]
    log_loss: list[float]
    error: list[float]
    last_gain: float
    last_gain_error: float


class Comparison(NamedTuple):
    """Several classifiers on the same rows.

    Attributes
    ----------
    found : dict of str to Compared
        By the name of the classifier.
    n_folds : int
    curve : LearningCurve
    """

    found: dict[str, Compared]
    n_folds: int
    curve: LearningCurve

    @property
    def best(self) -> str:
        """The classifier of the smallest log-loss."""
        return min(self.found, key=lambda name: self.found[name].scores.log_loss)


def compare(
    frame: Any,
    classes: np.ndarray,
    plan: ColumnPlan,
    own: Any,
    likelihood: str,
    *,
    scale: bool,
    seed: Any,
    n_jobs: Any = None,
    advance: Any = lambda steps: None,
) -> Comparison | None:
    """Compare the pool and the paper's model with what users would pick instead.

    Parameters
    ----------
    frame : pandas.DataFrame
        The columns in use, measured (:func:`as_measured`).
    classes : ndarray of shape (n,)
    plan : ColumnPlan
    own : estimator
        The report's classifier, for the learning curve.
    likelihood : str
        Of the paper's model.
    scale : bool
        Whether numbers are standardised, for those that do not do it themselves.
    seed : int
        For the folds and for those who draw.
    n_jobs : int, optional
        Threads.
    advance : callable
        Told the part of the work that was done.

    Returns
    -------
    Comparison or None
        None if the smallest class has fewer than ``MIN_CLASS`` rows.
    """
    from sklearn.base import clone

    names, labels = np.unique(classes, return_inverse=True)
    rows = np.arange(len(labels))
    if len(rows) > MAX_ROWS:
        rows = np.random.default_rng(0).choice(len(rows), MAX_ROWS, replace=False)
    frame, labels = frame.iloc[rows], labels[rows]
    if np.bincount(labels, minlength=len(names)).min() < MIN_CLASS:
        return None
    folds = _cut_folds(labels, frame.shape[1])
    candidates = _list_candidates(likelihood, seed, n_jobs)
    part = 1.0 / (len(candidates) + 2)

    def predict(classifier: Any, folds: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        probabilities = np.empty((len(rows), len(names)))
        for train, test in folds:
            pipeline = build_pipeline(plan, clone(classifier), scale=scale, impute=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the report's own fit has warned of the same
                pipeline.fit(frame.iloc[train], labels[train])
                probabilities[test] = pipeline.predict_proba(frame.iloc[test])
            advance(part / len(folds))
        return probabilities

    found = {name: predict(each, folds) for name, each in candidates.items()}
    curve = [predict(own, [(_thin(labels, rows, p), test) for rows, test in folds]) for p in _PARTS]
    curve.append(found[_name_of(own, likelihood)])
    return Comparison(
        {name: Compared(score(p, labels), standard_errors(p, labels)) for name, p in found.items()},
        len(folds),
        _draw_curve(curve, labels, np.mean([len(train) for train, _ in folds])),
    )


def _cut_folds(labels: np.ndarray, n_columns: int) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import StratifiedKFold

    # Fits to many columns take long: of those there are as few as can be.
    n_folds = N_FOLDS if len(labels) * n_columns <= MAX_CELLS else 2
    n_folds = min(n_folds, int(np.bincount(labels).min()))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    return list(folds.split(np.empty(len(labels)), labels))


def _thin(labels: np.ndarray, rows: np.ndarray, part: float) -> np.ndarray:
    """Return a part of the rows, the same part of each class and at least two of it."""
    rows = np.random.default_rng(0).permutation(rows)
    kept = [
        mine[: max(2, round(part * len(mine)))]
        for mine in (rows[labels[rows] == g] for g in np.unique(labels))
    ]
    return np.sort(np.concatenate(kept))


def _draw_curve(curve: list[np.ndarray], labels: np.ndarray, n_train: float) -> LearningCurve:
    losses = [score_rows(probabilities, labels)[:, 1] for probabilities in curve]
    gain = losses[-2] - losses[-1]
    return LearningCurve(
        [round(part * n_train) for part in (*_PARTS, 1.0)],
        [float(loss.mean()) for loss in losses],
        [float(loss.std(ddof=1) / np.sqrt(len(loss))) for loss in losses],
        float(gain.mean()),
        float(gain.std(ddof=1) / np.sqrt(len(gain))),
    )


def _name_of(classifier: Any, likelihood: str) -> str:
    if type(classifier).__name__ == "PooledNeighborsClassifier":
        return POOL
    return f"{PAPER}, {likelihood} likelihood"


def _list_candidates(likelihood: str, seed: Any, n_jobs: Any) -> dict[str, Any]:
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    from bayesknn import (
        BayesianKNeighborsClassifier,
        ClassicalKNeighborsClassifier,
        PooledNeighborsClassifier,
    )

    shared = {"random_state": seed, "n_jobs": n_jobs}
    return {
        "baseline: class frequencies": DummyClassifier(strategy="prior"),
        "classical kNN, k by leave-one-out": ClassicalKNeighborsClassifier("loo", n_jobs=n_jobs),
        "logistic regression": LogisticRegression(max_iter=1000),
        "random forest (300 trees)": RandomForestClassifier(300, **shared),
        "gradient boosting": HistGradientBoostingClassifier(random_state=seed),
        f"{PAPER}, {likelihood} likelihood": BayesianKNeighborsClassifier(likelihood, **shared),
        POOL: PooledNeighborsClassifier(**shared),
    }
