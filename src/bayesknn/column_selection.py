"""Choice of columns in the paper's framework (its Section 5: 'not explored').

Which columns define the distance is part of the model, so the evidence can choose among them. The
search goes forward: the column that raises the score most joins, until none raises it by more than
its error. It cannot see a pure interaction, where each column alone says nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesknn._estimator import check_new_points, check_training
from bayesknn._utils.checks import check_choice, check_count, check_verbose
from bayesknn._utils.progress import progress
from bayesknn._utils.random import as_seed_sequence
from bayesknn._utils.saving import VersionMixin
from bayesknn.classifier import BayesianKNeighborsClassifier
from bayesknn.pooled.columns import Columns

_SCORES = ("evidence", "pseudo-evidence", "loo")


class ColumnSelector(VersionMixin, SelectorMixin, BaseEstimator):
    """Forward choice of the columns that define who is a neighbour.

    Columns are standardised first, and categories become indicators, so that units do not choose.
    The best column stays even where it says nothing.

    Parameters
    ----------
    by : {"evidence", "pseudo-evidence", "loo"}, default="evidence"
        The score: log evidence of the paper's coherent model, which rarely lets a column in that
        says nothing; that of its pseudo-likelihood, quicker and more generous; or the sum of the
        leave-one-out log probabilities of the labels under the pseudo-likelihood.
    max_columns : int, optional
        Stop after this number of columns.
    n_jobs : int, optional
        As in joblib. No result depends on it.
    random_state : None, int, SeedSequence, Generator or RandomState
        For the Monte Carlo part of the coherent evidence.
    verbose : int, default=0
        Above 0, a search that takes more than two seconds shows its progress.

    Attributes
    ----------
    order_ : ndarray of int
        The chosen columns, in the order in which they came.
    scores_ : ndarray of shape (n_chosen,)
        The score with the columns so far.
    score_errors_ : ndarray of shape (n_chosen,)
        Monte Carlo errors of the evidence, 0 for the pseudo-evidence, which has none; for ``"loo"``
        the standard error of the rise to each score.
    null_score_ : float
        The score without any column: all classes equally likely.
    candidate_scores_, candidate_errors_ : ndarray of shape (n_features_in_,)
        Those of the last step, of the columns that were refused; NaN for the chosen.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If X had names that are all strings.

    See Also
    --------
    bayesknn.plots.ColumnPathDisplay : Draws the path of the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn import ColumnSelector
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> noise = np.random.default_rng(0).normal(size=(250, 1))
    >>> X = np.hstack([noise, ripley.X_train])
    >>> ColumnSelector("pseudo-evidence").fit(X, ripley.y_train).order_.tolist()
    [2, 1]
    """

    def __init__(
        self,
        by: str = "evidence",
        *,
        max_columns: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.by = by
        self.max_columns = max_columns
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> ColumnSelector:
        """Search forward.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Numbers, categories, missing values.
        y : array-like of shape (n,)
            Labels: at least two classes of at least two points.

        Returns
        -------
        ColumnSelector
            Itself.
        """
        by = check_choice(self.by, "by", _SCORES)
        check_verbose(self.verbose)
        classes, labels = check_training(X, y)
        table = Columns().fit(X)
        columns = np.unique(table.source)
        most = len(columns)
        if self.max_columns is not None:
            most = min(most, check_count(self.max_columns, "max_columns"))
        # One seed for all: the same random numbers make scores easier to compare.
        seed = int(as_seed_sequence(self.random_state).generate_state(1)[0])
        start = best = _Score(-len(labels) * np.log(len(classes)), 0.0, None)
        order: list[int] = []
        path: list[_Score] = []
        refused: dict[int, _Score] = {}
        n_fits = sum(len(columns) - step for step in range(most))
        with progress("Choosing columns", n_fits, verbose=self.verbose) as advance:
            while len(order) < most:
                found = {}
                for column in (int(c) for c in columns if c not in order):
                    points = table.points[:, np.isin(table.source, [*order, column])]
                    found[column] = self._score(by, points, labels, seed, best)
                    advance(1)
                column = max(found, key=lambda c: found[c].value)
                rise = found[column].value - best.value
                if order and rise <= np.hypot(found[column].error, best.error * (by != "loo")):
                    refused = found
                    break
                order.append(column)
                best = found[column]
                path.append(best)
        validate_data(self, X, skip_check_array=True)
        self.order_ = np.array(order)
        self.scores_ = np.array([score.value for score in path])
        self.score_errors_ = np.array([score.error for score in path])
        self.null_score_ = start.value
        self.candidate_scores_ = np.full(self.n_features_in_, np.nan)
        self.candidate_errors_ = np.full(self.n_features_in_, np.nan)
        for column, score in refused.items():
            self.candidate_scores_[column] = score.value
            self.candidate_errors_[column] = score.error
        return self

    def transform(self, X: Any) -> Any:
        """Return the chosen columns, in the order of X.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)

        Returns
        -------
        array or frame of shape (m, n_chosen)
            Of the kind that X is: a frame keeps its names and dtypes.
        """
        check_new_points(self, X)
        kept = self.get_support(indices=True)
        if hasattr(X, "iloc"):
            return X.iloc[:, kept]
        if hasattr(X, "columns") and hasattr(X, "select"):
            return X.select([X.columns[j] for j in kept])
        Columns().fit(X)  # refuses what is not a table
        return np.asarray(X)[:, kept]

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.order_] = True
        return mask

    def _score(
        self, by: str, points: np.ndarray, labels: np.ndarray, seed: int, best: _Score
    ) -> _Score:
        clf = BayesianKNeighborsClassifier(
            "coherent" if by == "evidence" else "pseudo",
            "grid",
            n_jobs=self.n_jobs,
            random_state=seed,
        ).fit(points, labels)
        if by != "loo":
            return _Score(clf.log_evidence_, clf.log_evidence_error_, None)
        each = np.log(clf.loo_proba_[np.arange(len(labels)), labels])
        rises = each - (best.value / len(labels) if best.each is None else best.each)
        return _Score(float(each.sum()), float(np.sqrt(len(labels)) * rises.std()), each)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.classifier_tags = None
        return tags


class _Score(NamedTuple):
    """A score, its error, and the points' shares in it where it is a sum over them."""

    value: float
    error: float
    each: np.ndarray | None
