"""Other classifiers on the same rows, in cross-validation, and whether more rows would help.

The rows are cut into folds; each classifier is fitted to all folds but one and predicts the rest,
with everything it chooses, its k or its weights, chosen on the rows it was fitted to. Folds are of
whole groups where rows belong together, and the last rows are one where they have an order. To see
whether more rows would help, the report's own classifier is also fitted to half of these rows.

Rows have the weights that they have in the other scores of the report. Classifiers that take
weights are fitted with those of ``sample_weight``; where ``class_prior`` was given, the predicted
odds of every classifier are multiplied by the same factors a_g.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bayesknn._estimator import params_of_fit
from bayesknn._utils.progress import progress
from bayesknn.report.columns import ColumnPlan, as_words
from bayesknn.report.model import adapt, build_pipeline
from bayesknn.report.predictions import Scores, average, draw_rows, score_rows, weigh_rows
from bayesknn.sureness.calibration import shift_probabilities

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
    unweighted : list of str
        Classifiers that were fitted without the rows' weights because they take none.
    """

    results: dict[str, Compared]
    n_folds: int
    own: str
    half: Compared | None
    unweighted: list[str]

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
    weights: Any = None,
    class_prior: Any = None,
    scale: bool = True,
    others: bool = True,
) -> Comparison:
    """Compare the pool and the paper's model with what users would pick instead.

    Parameters
    ----------
    frame : pandas.DataFrame
        The columns in use, measured (:func:`as_measured`).
    classes : ndarray of shape (n,)
        Each has at least ``MIN_CLASS`` rows whose weight is not 0.
    plan : ColumnPlan
    own : sklearn.pipeline.Pipeline
        The report's model, fitted or not; the others have its seed and number of threads.
    folds : Folds, optional
        Which rows are judged together.
    weights : ndarray of shape (n,), optional
        Weights of the rows in fits and scores, all 1 by default. Rows of weight 0 are left out.
    class_prior : ndarray of shape (n_classes,), optional
        Class frequencies where the classifiers are used, if they are not those of training.
    scale : bool
        Whether numbers are standardised, for those others that do not do it themselves.
    others : bool
        Whether to compare other classifiers as well.

    Returns
    -------
    Comparison
    """
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    verbose, params = own[-1].verbose, params_of_fit(own[-1])
    own = clone(own)
    own[-1].set_params(**params | {"verbose": 0})
    own_name = adapt(own[-1]).name
    labels = np.unique(classes, return_inverse=True)[1]
    weights = np.ones(len(labels)) if weights is None else weights
    rows = np.flatnonzero(weights > 0)
    frequencies = np.bincount(labels[rows], weights[rows]) / weights[rows].sum()
    # Of many columns fewer rows, but enough to tell classifiers apart.
    n_rows = min(MAX_ROWS, max(MAX_CELLS // frame.shape[1], 200))
    rows = rows[draw_rows(labels[rows], n_rows)]
    frame, labels, weights = as_words(frame.iloc[rows]), labels[rows], weights[rows]
    # Rows were drawn by class, more of a rare class than of others: weights undo this.
    drawn = frequencies / (np.bincount(labels, weights) / weights.sum())
    goal = frequencies if class_prior is None else class_prior
    score_weights = weigh_rows(labels, goal, weights)
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

    predicted = np.concatenate([test for _, test in cut])
    is_weighted = bool(np.ptp(weights) > 0)

    def fit(model: Any, at: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return a model fitted to rows, and the factors for the odds that it predicts."""
        seen = np.unique(labels[at])
        ratios, options = drawn[seen], {}
        if class_prior is not None:
            sums = np.bincount(labels[at], weights[at], len(class_prior))
            ratios = (class_prior / np.where(sums > 0, sums, 1.0))[seen]
        if model is own and class_prior is not None:
            # It multiplies the odds itself.
            prior = class_prior[seen] / class_prior[seen].sum()
            model, ratios = clone(model), np.ones(len(seen))
            model[-1].set_params(class_prior=prior)
        if is_weighted and has_fit_parameter(model[-1], "sample_weight"):
            options[f"{model.steps[-1][0]}__sample_weight"] = weights[at]
        return clone(model).fit(frame.iloc[at], classes[rows[at]], **options), ratios

    def judge(doing: str, model: Any, folds: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Score each row that is predicted (:func:`score_rows`)."""
        with progress(doing, len(folds), verbose=verbose, delay=0.5) as advance:
            p = _cross_validate(
                partial(fit, model), frame, np.unique(classes[rows]), folds, advance
            )
        return score_rows(p, labels[predicted])

    scores = {name: judge(f"Comparing with {name}", each, cut) for name, each in candidates.items()}

    def sum_up(each: np.ndarray, folds: list[tuple[np.ndarray, np.ndarray]]) -> Compared:
        """Return means over the rows and their standard errors, NaN where a loss is infinite."""
        with np.errstate(invalid="ignore"):
            excess = each[:, 1] - scores[own_name][:, 1]
            means, errors = average(each, score_weights[predicted])
            mean, error = average(excess, score_weights[predicted])
        n, n_fitted = len(each), round(np.mean([len(fit) for fit, _ in folds]))
        means, errors = Scores(n, *means.tolist()), Scores(n, *errors.tolist())
        return Compared(means, errors, float(mean), float(error), n_fitted)

    half = None
    if others and not is_large:
        halves = [(_halve(labels, fitted), test) for fitted, test in cut]
        half = sum_up(judge("Fitting to half of the rows", own, halves), halves)
    results = {name: sum_up(each, cut) for name, each in scores.items()}
    takes = {
        name: has_fit_parameter(each[-1], "sample_weight") for name, each in candidates.items()
    }
    unweighted = [name for name in results if is_weighted and not takes[name]]
    return Comparison(results, len(cut), own_name, half, unweighted)


def _cross_validate(
    fit: Any, frame: Any, names: np.ndarray, folds: Any, advance: Any
) -> np.ndarray:
    """Return the class probabilities of the rows of each fold, by a model fitted without them.

    ``fit(rows)`` returns the model and the factors for its odds; ``names`` are the classes in
    their order.
    """
    from threadpoolctl import threadpool_limits

    parts = []
    # On so few rows a second thread waits longer than it works.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report's own fit has warned of the same
        for train, test in folds:
            fitted, ratios = fit(train)
            probabilities = np.zeros((len(test), len(names)))
            seen = np.searchsorted(names, fitted.classes_)
            predicted = fitted.predict_proba(frame.iloc[test])
            probabilities[:, seen] = shift_probabilities(predicted, ratios)
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
