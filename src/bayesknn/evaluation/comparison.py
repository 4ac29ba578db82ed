"""Other classifiers on the same rows, in cross-validation, and whether more rows would help.

The rows are cut into folds; each classifier is fitted to all folds but one and predicts the rest,
with everything it chooses, its k or its weights, chosen on the rows it was fitted to. Where rows
belong together, folds are of whole groups, and classifiers that take groups are fitted with them;
where rows have an order, the last ones are one fold. To see
whether more rows would help, the evaluated classifier is also fitted to half of these rows.

Rows have the weights that they have in the other scores. Classifiers that take weights are fitted
with those of ``sample_weight``; where ``class_prior`` was given, the predicted odds of every
classifier are multiplied by the same factors a_g.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from bayesknn._estimator import params_of_fit
from bayesknn._utils.progress import progress
from bayesknn.evaluation.folds import Folds, draw_rows, halve
from bayesknn.evaluation.scores import Scores, average, score_rows, weigh_rows
from bayesknn.predictive.decisions import take_rows
from bayesknn.sureness.calibration import shift_probabilities

# More rows than this are compared on a random sample of this size: the paper's model takes
# seconds a fold.
MAX_ROWS = 1000
# Rows times columns; the pool takes seconds a fold beyond.
MAX_CELLS = 50_000
# Every class must be in every part, and twice where a classifier is fitted.
MIN_CLASS = 3
BASELINE = "baseline: class frequencies"
# Of each fold the positions of the rows to fit, and of those to predict.
Parts = list[tuple[np.ndarray, np.ndarray]]


class Compared(NamedTuple):
    """What one classifier achieved.

    Attributes
    ----------
    scores : Scores
    standard_errors : Scores
        Of the same, over the rows, or over their groups.
    excess, excess_error : float
        Its log-loss less that of the evaluated classifier on the same rows, and the standard
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
        The name of the evaluated classifier.
    half : Compared or None
        The evaluated classifier, fitted to half of the rows: what it gains by twice as many.
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
        """The classifier of the smallest log-loss, without the evaluated one."""
        others = [name for name in self.results if name != self.own]
        return min(others, key=lambda name: self.results[name].scores.log_loss)


def compare(
    X: Any,
    classes: np.ndarray,
    own: Any,
    folds: Folds | None = None,
    *,
    prepare: Callable[[Any], Any] | None = None,
    weights: Any = None,
    class_prior: Any = None,
    others: bool = True,
) -> Comparison:
    """Compare a classifier with what users would pick instead, in cross-validation.

    Parameters
    ----------
    X : ndarray or pandas.DataFrame of shape (n, p)
    classes : ndarray of shape (n,)
        Each class has at least ``MIN_CLASS`` rows whose weight is not 0.
    own : classifier, or Pipeline that ends with one
        The evaluated classifier, fitted or not; the others have its seed and number of threads.
    folds : Folds, optional
        Which rows are predicted together.
    prepare : callable, optional
        Returns an estimator that takes X, given a classifier that takes numbers. By default a
        classifier takes X.
    weights : ndarray of shape (n,), optional
        Weights of the rows in fits and scores, all 1 by default. Rows of weight 0 are left out.
    class_prior : ndarray of shape (n_classes,), optional
        Class frequencies where the classifiers are used, if they are not those of training.
    others : bool
        Whether to compare other classifiers, and a fit to half of the rows, as well.

    Returns
    -------
    Comparison
    """
    name, own, verbose = name_classifier(_last(own)), _make_quiet(own), _last(own).verbose
    folds = folds or Folds()
    task = _Task(X, classes, own, weights, class_prior, folds.groups)
    # If these are still too many values there are as few fits as can be.
    is_large = task.X.shape[0] * task.X.shape[1] > MAX_CELLS
    n_folds = min(2 if is_large else 5, int(np.bincount(task.labels).min()))
    parts = folds.cut(task.labels, task.rows, n_folds)
    candidates = {name: own}
    if others:
        each = list_candidates(_last(own))
        candidates = {n: prepare(clf) if prepare else clf for n, clf in each.items()} | candidates
    losses = {
        n: task.score(f"Comparing with {n}", m, parts, verbose) for n, m in candidates.items()
    }
    half = None
    if others and not is_large:
        halves = [(halve(task.labels, fitted), test) for fitted, test in parts]
        scored = task.score("Fitting to half of the rows", own, halves, verbose)
        half = task.sum_up(scored, losses[name], halves)
    results = {n: task.sum_up(each, losses[name], parts) for n, each in losses.items()}
    is_weighted = bool(np.ptp(task.weights) > 0)
    unweighted = [n for n in results if is_weighted and not _takes_weights(candidates[n])]
    return Comparison(results, len(parts), name, half, unweighted)


class _Task:
    """The rows that classifiers are compared on, and the class frequencies that they predict for.

    At most ``MAX_ROWS`` rows are drawn by class, fewer where columns are many.

    Attributes
    ----------
    X : ndarray or pandas.DataFrame of shape (m, p)
        The rows.
    rows : ndarray of shape (m,)
        Their positions among all rows.
    classes, labels : ndarray of shape (m,)
        Their classes, and the indices of these.
    weights, score_weights : ndarray of shape (m,)
        Weights in fits, and weights in scores, which give the classes their ``frequencies``.
    frequencies : ndarray of shape (n_classes,)
        Class frequencies to predict for: those given as ``class_prior``, or those of all rows.
    own : estimator
        The evaluated classifier, which multiplies the odds by itself if it is given a class_prior.
    groups : ndarray of shape (m,) or None
        Numbers of the groups of the rows.
    """

    def __init__(
        self, X: Any, classes: np.ndarray, own: Any, weights: Any, class_prior: Any, groups: Any
    ):
        labels = np.unique(classes, return_inverse=True)[1]
        weights = np.ones(len(labels)) if weights is None else weights
        rows = np.flatnonzero(weights > 0)
        frequencies = np.bincount(labels[rows], weights[rows]) / weights[rows].sum()
        self.has_prior = class_prior is not None
        self.frequencies = np.asarray(class_prior) if self.has_prior else frequencies
        n_rows = min(MAX_ROWS, max(MAX_CELLS // X.shape[1], 200))
        self.rows = rows = rows[draw_rows(labels[rows], n_rows)]
        self.X, self.classes, self.own = take_rows(X, rows), classes[rows], own
        self.labels, self.weights = labels[rows], weights[rows]
        self.groups = None
        if groups is not None:
            self.groups = np.unique(np.asarray(groups)[rows], return_inverse=True)[1]
        self.score_weights = weigh_rows(self.labels, self.frequencies, self.weights)

    def fit(self, model: Any, at: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return a clone fitted to some of the rows, and the factors for the odds it predicts."""
        seen, has_weights = np.unique(self.labels[at]), _takes_weights(model)
        # Without a prior the odds are moved from the rows drawn to all rows, not from each fold.
        among = at if self.has_prior else slice(None)
        used = self.weights if has_weights else np.ones(len(self.weights))
        ratios = self.frequencies[seen]
        if self.has_prior and model is self.own:
            model = clone(model)
            _last(model).set_params(class_prior=ratios / ratios.sum())
            ratios = np.ones(len(seen))
        else:
            ratios = ratios / np.bincount(self.labels[among], used[among])[seen]
        options, step = {}, f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
        if has_weights and np.ptp(self.weights) > 0:
            options[f"{step}sample_weight"] = self.weights[at]
        if self.groups is not None and has_fit_parameter(_last(model), "groups"):
            pairs = np.unique([self.labels[at], self.groups[at]], axis=1)
            # Of classes of one group each nothing would be left to learn from.
            if np.bincount(pairs[0]).max() > 1:
                options[f"{step}groups"] = self.groups[at]
        return clone(model).fit(take_rows(self.X, at), self.classes[at], **options), ratios

    def score(self, doing: str, model: Any, folds: Parts, verbose: int) -> np.ndarray:
        """Return the scores of each predicted row (:func:`score_rows`), fold after fold."""
        names, parts = np.unique(self.classes), []
        with (
            progress(doing, len(folds), verbose=verbose, delay=0.5) as advance,
            # On so few rows a second thread waits longer than it works.
            threadpool_limits(1),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # the fit to all rows has warned of the same
            for train, test in folds:
                fitted, ratios = self.fit(model, train)
                probabilities = np.zeros((len(test), len(names)))
                seen = np.searchsorted(names, fitted.classes_)
                predicted = fitted.predict_proba(take_rows(self.X, test))
                probabilities[:, seen] = shift_probabilities(predicted, ratios)
                parts.append(score_rows(probabilities, self.labels[test]))
                advance(1)
        return np.concatenate(parts)

    def sum_up(self, scores: np.ndarray, own: np.ndarray, folds: Parts) -> Compared:
        """Return means over the rows and their standard errors, NaN where a loss is infinite."""
        at = np.concatenate([test for _, test in folds])
        weights, groups = self.score_weights[at], None if self.groups is None else self.groups[at]
        with np.errstate(invalid="ignore"):
            means, errors = average(scores, weights, groups)
            mean, error = average(scores[:, 1] - own[:, 1], weights, groups)
        n, n_fitted = len(scores), round(np.mean([len(fit) for fit, _ in folds]))
        means, errors = Scores(n, *means.tolist()), Scores(n, *errors.tolist())
        return Compared(means, errors, float(mean), float(error), n_fitted)


def _last(model: Any) -> Any:
    """Return the classifier itself, or the last step of a pipeline."""
    return model[-1] if isinstance(model, Pipeline) else model


def _make_quiet(own: Any) -> Any:
    """Return a clone with the parameters that the classifier was fitted with, and no messages."""
    params, own = params_of_fit(_last(own)), clone(own)
    _last(own).set_params(**params | {"verbose": 0})
    return own


def _takes_weights(model: Any) -> bool:
    return bool(has_fit_parameter(_last(model), "sample_weight"))


def name_classifier(classifier: Any) -> str:
    """Return what tables of scores call one of the two classifiers that can be evaluated."""
    likelihood = params_of_fit(classifier).get("likelihood")
    if likelihood is None:
        return "pooled neighbours"
    return f"Bayesian kNN (Cucala et al. 2009), {likelihood} likelihood"


def list_candidates(own: Any) -> dict[str, Any]:
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
        name_classifier(bayesian): bayesian,
        name_classifier(pool): pool,
    }
