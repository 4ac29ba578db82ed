"""Other classifiers on the same rows, in cross-validation, and whether more rows would help.

The rows are cut into folds; each classifier is fitted to all folds but one and predicts the rest,
with everything it chooses, its k or its weights, chosen on the rows it was fitted to. Folds are of
whole groups where rows belong together, and the last rows are one where they have an order. To see
whether more rows would help, the report's own classifier is also fitted to half of these rows.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import sem

from bayesknn._estimator import params_of_fit
from bayesknn._utils.progress import progress
from bayesknn.report.columns import ColumnPlan, as_words
from bayesknn.report.model import adapt, build_pipeline
from bayesknn.report.predictions import Scores, score_rows

# More rows than this are compared on a random sample of this size: the paper's model takes
# seconds a fold.
MAX_ROWS = 1000
# Rows times columns; the pool takes seconds a fold beyond.
MAX_CELLS = 50_000
# Every class must be in every part, and twice where a classifier is fitted.
MIN_CLASS = 3
BASELINE = "baseline: class frequencies"


class Compared(NamedTuple):
    """What one classifier achieved.

    Attributes
    ----------
    scores : Scores
    standard_errors : Scores
        Of the same, over the rows.
    excess, excess_error : float
        Its log-loss less that of the report's own classifier on the same rows, and the standard
        error of that.
    n_fitted : int
        Rows it was fitted to, on average over the folds.
    """

    scores: Scores
    standard_errors: Scores
    excess: float
    excess_error: float
    n_fitted: int


class Comparison(NamedTuple):
    """Several classifiers on the same rows.

    Attributes
    ----------
    results : dict of str to Compared
        By the name of the classifier.
    n_folds : int
    own : str
        The name of the report's own classifier.
    half : Compared or None
        The report's own classifier, fitted to half of the rows: what it gains by twice as many.
        None where the rows compared have more than ``MAX_CELLS`` values.
    """

    results: dict[str, Compared]
    n_folds: int
    own: str
    half: Compared | None

    @property
    def best_other(self) -> str:
        """The classifier of the smallest log-loss, without the report's own."""
        others = [name for name in self.results if name != self.own]
        return min(others, key=lambda name: self.results[name].scores.log_loss)


class Folds(NamedTuple):
    """Which rows are judged together, if any are.

    Attributes
    ----------
    groups : array-like of shape (n,) or None
        Which rows belong together: folds are of whole groups.
    order : array-like of shape (n,) or None
        Dates or numbers: the last fifth of the rows is predicted from those before.
    by : str
        The column that says so, as in ``" of patient"``.
    """

    groups: Any = None
    order: Any = None
    by: str = ""

    @property
    def name(self) -> str:
        """What the rows are, if they are judged together."""
        if self.groups is not None and self.order is not None:
            raise ValueError("rows are judged by whole groups or by time: give one of them")
        if self.groups is not None:
            return f"whole groups{self.by}"
        return "" if self.order is None else f"last rows{self.by}"

    def cut(
        self, labels: np.ndarray, rows: np.ndarray, n_folds: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the rows to fit and the rows to predict of each fold.

        Parameters
        ----------
        labels : ndarray of shape (m,)
            Class numbers of the rows to cut.
        rows : ndarray of shape (m,)
            Their numbers among all rows.
        n_folds : int
        """
        from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

        if self.order is not None:
            order = np.asarray(self.order)[rows]
            known = np.flatnonzero(order == order)  # what is missing has no place
            start = np.sort(order[known])[4 * len(known) // 5]
            folds = [(known[order[known] < start], known[order[known] >= start])]
        else:
            kind, names = StratifiedKFold, None
            if self.groups is not None:
                kind, names = StratifiedGroupKFold, np.asarray(self.groups)[rows].astype(str)
                n_folds = min(n_folds, len(np.unique(names)))
                if n_folds < 2:
                    raise ValueError("all rows are of one group: there is no other to be judged by")
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The least populated class", UserWarning)
                splitter = kind(n_folds, shuffle=True, random_state=0)
                folds = list(splitter.split(rows, labels, names))
        # A class of which one row is left is not learned.
        folds = [(fit[np.bincount(labels[fit])[labels[fit]] > 1], test) for fit, test in folds]
        if any(len(np.unique(labels[fit])) < 2 for fit, _ in folds):
            raise ValueError(
                "without the rows to be predicted there are not two classes of two rows"
            )
        return folds


def compare(
    frame: Any,
    classes: np.ndarray,
    plan: ColumnPlan,
    own: Any,
    folds: Folds | None = None,
    *,
    scale: bool = True,
    others: bool = True,
) -> Comparison | None:
    """Compare the pool and the paper's model with what users would pick instead.

    Parameters
    ----------
    frame : pandas.DataFrame
        The columns in use, measured (:func:`as_measured`).
    classes : ndarray of shape (n,)
    plan : ColumnPlan
    own : sklearn.pipeline.Pipeline
        The report's model, fitted or not; the others have its seed and number of threads.
    folds : Folds, optional
        Which rows are judged together.
    scale : bool
        Whether numbers are standardised, for those others that do not do it themselves.
    others : bool
        Whether to compare other classifiers as well.

    Returns
    -------
    Comparison or None
        None if the smallest class has fewer than ``MIN_CLASS`` rows.
    """
    from sklearn.base import clone

    verbose = own[-1].verbose
    own = clone(own)
    own[-1].set_params(verbose=0)
    own_name = adapt(own[-1]).name
    labels = np.unique(classes, return_inverse=True)[1]
    rows = np.arange(len(labels))
    # Of many columns fewer rows, but enough to tell classifiers apart.
    n_rows = min(MAX_ROWS, max(MAX_CELLS // frame.shape[1], 200))
    if len(rows) > n_rows:
        rows = np.random.default_rng(0).choice(len(rows), n_rows, replace=False)
    if np.bincount(labels[rows], minlength=labels.max() + 1).min() < MIN_CLASS:
        return None
    frame, labels = as_words(frame.iloc[rows]), labels[rows]
    # If these are still too many values there are as few fits as can be.
    is_large = frame.size > MAX_CELLS
    n_folds = min(2 if is_large else 5, int(np.bincount(labels).min()))
    cut = (folds or Folds()).cut(labels, rows, n_folds)
    candidates = {own_name: own}
    if others:
        candidates = {
            name: build_pipeline(plan, each, scale=scale, impute=True)
            for name, each in _list_candidates(own[-1]).items()
        } | candidates

    def judge(doing: str, model: Any, folds: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Score each row that is predicted (:func:`score_rows`)."""
        with progress(doing, len(folds), verbose=verbose, delay=0.5) as advance:
            p = _cross_validate(model, frame, classes[rows], folds, advance)
        return score_rows(p, labels[np.concatenate([test for _, test in folds])])

    scores = {name: judge(f"Comparing with {name}", each, cut) for name, each in candidates.items()}

    def sum_up(each: np.ndarray, folds: list[tuple[np.ndarray, np.ndarray]]) -> Compared:
        """Return means over the rows and their standard errors, NaN where a loss is infinite."""
        with np.errstate(invalid="ignore"):
            excess = each[:, 1] - scores[own_name][:, 1]
            errors = Scores(len(each), *sem(each).tolist())
            means = Scores(len(each), *each.mean(axis=0).tolist())
            n_fitted = round(np.mean([len(fit) for fit, _ in folds]))
            return Compared(means, errors, float(excess.mean()), float(sem(excess)), n_fitted)

    half = None
    if others and not is_large:
        halves = [(_halve(labels, fitted), test) for fitted, test in cut]
        half = sum_up(judge("Fitting to half of the rows", own, halves), halves)
    results = {name: sum_up(each, cut) for name, each in scores.items()}
    return Comparison(results, len(cut), own_name, half)


def _cross_validate(
    model: Any, frame: Any, classes: np.ndarray, folds: Any, advance: Any
) -> np.ndarray:
    """Return the class probabilities of the rows of each fold, by the model fitted without them."""
    from sklearn.base import clone
    from threadpoolctl import threadpool_limits

    # In the order of the class numbers.
    names = np.unique(classes)
    parts = []
    # On so few rows a second thread waits longer than it works.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report's own fit has warned of the same
        for train, test in folds:
            fitted = clone(model).fit(frame.iloc[train], classes[train])
            probabilities = np.zeros((len(test), len(names)))
            seen = np.searchsorted(names, fitted.classes_)
            probabilities[:, seen] = fitted.predict_proba(frame.iloc[test])
            parts.append(probabilities)
            advance(1)
    return np.concatenate(parts)


def _halve(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return half of the rows, half of each class and at least two of it."""
    rows = np.random.default_rng(0).permutation(rows)
    kept = [
        mine[: max(2, round(len(mine) / 2))]
        for mine in (rows[labels[rows] == g] for g in np.unique(labels))
    ]
    return np.sort(np.concatenate(kept))


def _list_candidates(own: Any) -> dict[str, Any]:
    """Return what users would pick instead, by name, with the seed and the threads of one's own."""
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    import bayesknn

    seed = own.random_state if isinstance(own.random_state, int) else 0
    shared: dict[str, Any] = {"random_state": seed, "n_jobs": own.n_jobs}
    likelihood = params_of_fit(own).get("likelihood", "pseudo")
    classical = bayesknn.ClassicalKNeighborsClassifier(n_jobs=own.n_jobs)
    bayesian = bayesknn.BayesianKNeighborsClassifier(likelihood, **shared)
    pool = bayesknn.PooledNeighborsClassifier(**shared)
    return {
        BASELINE: DummyClassifier(strategy="prior"),
        "classical kNN, k by leave-one-out": classical,
        "logistic regression": LogisticRegression(max_iter=1000),
        "random forest (100 trees)": RandomForestClassifier(100, **shared),
        "gradient boosting": HistGradientBoostingClassifier(early_stopping=True, random_state=seed),
        adapt(bayesian).name: bayesian,
        adapt(pool).name: pool,
    }
