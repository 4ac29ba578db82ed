"""How it compares: the probabilities of several classifiers for rows that they have not seen.

The rows are cut into folds; each classifier is fitted to all folds but one and predicts the rest,
with everything it chooses, its k or its weights, chosen on the rows it was fitted to.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from bayesknn.report.columns import ColumnPlan
from bayesknn.report.pipeline import build_pipeline
from bayesknn.report.scores import Scores, score

PAPER, POOL = "Bayesian kNN of the paper", "pooled neighbours"
N_FOLDS = 5
# More rows than this are compared on so many of them, chosen at random: it is a look to the side,
# and the paper's model takes seconds a fold.
MAX_ROWS = 1000
# Every class must be in every part, and twice where a classifier is fitted.
MIN_CLASS = 3


class Comparison(NamedTuple):
    """Scores of several classifiers on the same rows.

    Attributes
    ----------
    scores : dict of str to Scores
        By the name of the classifier.
    n_folds : int
    """

    scores: dict[str, Scores]
    n_folds: int


def compare(
    frame: Any,
    classes: np.ndarray,
    plan: ColumnPlan,
    likelihood: str,
    *,
    scale: bool,
    seed: Any,
    n_jobs: Any = None,
) -> Comparison | None:
    """Compare the pool and the paper's model with what users would pick instead.

    Parameters
    ----------
    frame : pandas.DataFrame
        The columns in use, measured (:func:`as_measured`).
    classes : ndarray of shape (n,)
    plan : ColumnPlan
    likelihood : str
        Of the paper's model.
    scale : bool
        Whether numbers are standardised, for those that do not do it themselves.
    seed : int
        For the folds and for those who draw.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    Comparison or None
        None if the smallest class has fewer than ``MIN_CLASS`` rows.
    """
    from sklearn.model_selection import StratifiedKFold

    names, labels = np.unique(classes, return_inverse=True)
    if np.bincount(labels).min() < MIN_CLASS:
        return None
    rows = np.arange(len(labels))
    if len(rows) > MAX_ROWS:
        rows = np.random.default_rng(0).choice(len(rows), MAX_ROWS, replace=False)
        if np.bincount(labels[rows], minlength=len(names)).min() < MIN_CLASS:
            return None
    frame, labels = frame.iloc[rows], labels[rows]
    n_folds = min(N_FOLDS, int(np.bincount(labels).min()))
    folds = list(
        StratifiedKFold(n_folds, shuffle=True, random_state=0).split(np.empty(len(rows)), labels)
    )
    found = {}
    for name, classifier in _candidates(likelihood, seed, n_jobs).items():
        probabilities = np.empty((len(rows), len(names)))
        for train, test in folds:
            if classifier is None:
                probabilities[test] = np.bincount(labels[train]) / len(train)
                continue
            pipeline = build_pipeline(plan, classifier, scale=scale, impute=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a fit that is only looked at from the side
                pipeline.fit(frame.iloc[train], labels[train])
                probabilities[test] = pipeline.predict_proba(frame.iloc[test])
        found[name] = score(probabilities, labels)
    return Comparison(found, n_folds)


def _candidates(likelihood: str, seed: Any, n_jobs: Any) -> dict[str, Any]:
    from sklearn.linear_model import LogisticRegression

    from bayesknn import (
        BayesianKNeighborsClassifier,
        ClassicalKNeighborsClassifier,
        PooledNeighborsClassifier,
    )

    shared = {"random_state": seed, "n_jobs": n_jobs}
    return {
        "class frequencies": None,
        "classical kNN, k by leave-one-out": ClassicalKNeighborsClassifier("loo", n_jobs=n_jobs),
        "logistic regression": LogisticRegression(max_iter=1000),
        f"{PAPER}, {likelihood} likelihood": BayesianKNeighborsClassifier(likelihood, **shared),
        POOL: PooledNeighborsClassifier(**shared),
    }
