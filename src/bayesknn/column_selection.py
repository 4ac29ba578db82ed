"""Choice of columns in the paper's framework (its Section 5: 'not explored').

Which columns define the distance is part of the model, so the evidence can choose among them. The
search goes forward: the column that raises the score most joins, until none raises it by more than
its error. It cannot see a pure interaction, where each column alone says nothing.

The model has no class intercept, so that where classes are unequal beta explains their frequencies,
and a column of noise may raise the score. A column therefore has to pass a test as well, given the
class counts: with it, neighbours predict the labels better than with its values permuted among the
rows.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from bayesknn._estimator import (
    DocumentedMixin,
    check_column_names,
    check_new_points,
    check_training,
    choose_k_max,
)
from bayesknn._utils.checks import (
    check_choice,
    check_count,
    check_groups,
    check_verbose,
    is_sparse,
)
from bayesknn._utils.progress import progress
from bayesknn._utils.random import as_seed_sequence
from bayesknn._utils.saving import VersionMixin
from bayesknn.classifier import BayesianKNeighborsClassifier
from bayesknn.graph import NeighborGraph
from bayesknn.labels import find_beta_max
from bayesknn.model import log_evidence_of_frequencies
from bayesknn.model.frequencies import frequencies_of_others
from bayesknn.pooled.columns import Columns
from bayesknn.sureness.groups import find_scored


class ColumnSelector(VersionMixin, DocumentedMixin, SelectorMixin, BaseEstimator):
    """Forward choice of the columns that define who is a neighbour.

    Columns are standardised first, and categories become indicators, so that units do not choose.
    A column joins if it raises the score by more than its error, and if neighbours then predict the
    labels better than with its values permuted among the rows: a step of the search among columns
    that say nothing lets one in with a probability of at most 1 %. The best column stays even where
    none passes: ``informative_`` is then False, with a warning.

    Parameters
    ----------
    by : {"evidence", "pseudo-evidence", "loo"}, default="evidence"
        The score: log evidence of the paper's coherent model; that of its pseudo-likelihood, which
        is quicker; or the sum of the leave-one-out log probabilities of the labels under the
        pseudo-likelihood. beta_max, that of all columns together, and K are the same for all
        columns, so that evidences are of one prior.
    max_columns : int, optional
        Stop after this number of columns.
    n_jobs : int, optional
        As in joblib. No result depends on it.
    random_state : None, int, SeedSequence, Generator or RandomState
        For the permutations, and for the Monte Carlo part of the coherent evidence.
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
        The score without any column, by class frequencies alone, which have a uniform prior: their
        evidence, and for the other scores the sum of log(n_g / (n + G - 1)) over the points. Where
        classes are unequal the model, which has no intercept, may stay below it.
    informative_ : bool
        Whether any column passed the test.
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

    order_: np.ndarray
    informative_: bool
    scores_: np.ndarray
    score_errors_: np.ndarray
    null_score_: float
    candidate_scores_: np.ndarray
    candidate_errors_: np.ndarray

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

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> ColumnSelector:
        """Search forward.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Numbers, categories, missing values.
        y : array-like of shape (n,)
            Labels: at least two classes of at least two points.
        groups : array-like of shape (n,), optional
            Rows that belong together, where new rows come from new groups: none is a neighbour of
            another one of its group, and the test permutes whole groups.

        Returns
        -------
        ColumnSelector
            Itself.
        """
        by = check_choice(self.by, "by", ("evidence", "pseudo-evidence", "loo"))
        check_verbose(self.verbose)
        classes, labels = check_training(X, y)
        groups = check_groups(groups, len(labels))
        table = Columns().fit(X)
        columns = np.unique(table.source)
        most = len(columns)
        if self.max_columns is not None:
            most = min(most, check_count(self.max_columns, "max_columns"))
        # One seed for all: the same random numbers make scores easier to compare.
        seed = int(as_seed_sequence(self.random_state).generate_state(1)[0])
        sizes = np.bincount(labels)
        k_max = choose_k_max(None, None, sizes, groups=groups)
        graph = NeighborGraph.from_points(table.points, k_max, n_jobs=self.n_jobs, groups=groups)
        beta_max = find_beta_max(graph, len(classes), random_state=seed).beta_max
        rng = np.random.default_rng(seed)
        start = best = _score_frequencies(by, labels, find_scored(labels, groups))
        order: list[int] = []
        path: list[_Score] = []
        refused: dict[int, _Score] = {}
        is_informative = False
        n_fits = sum(len(columns) - step for step in range(most))
        with progress("Choosing columns", n_fits, verbose=self.verbose) as advance:
            while len(order) < most:
                scores = {}
                for column in (int(c) for c in columns if c not in order):
                    points = table.points[:, np.isin(table.source, [*order, column])]
                    scores[column] = self._score(by, points, labels, groups, beta_max, seed, best)
                    advance(1)
                ranked = sorted(scores, key=lambda c: -scores[c].value)
                rest = table.points[:, np.isin(table.source, order)]
                for column in ranked:
                    error = np.hypot(scores[column].error, best.error * (by != "loo"))
                    if order and scores[column].value - best.value <= error:
                        continue
                    new = table.points[:, table.source == column]
                    # One step in a hundred lets a column in if all of them are noise.
                    if _beats_permuted(new, rest, labels, groups, 100 * len(ranked) - 1, rng):
                        is_informative = True
                        break
                else:
                    if order:
                        refused = scores
                        break
                    column = ranked[0]
                order.append(column)
                best = scores[column]
                path.append(best)
        if not is_informative:
            warnings.warn(
                "no column says more about the classes than its own values permuted among the "
                "rows; the best is kept, as a classifier needs one",
                stacklevel=2,
            )
        check_column_names(self, X)
        self._params_of_fit = self.get_params(deep=False)
        self.order_, self.informative_ = np.array(order), is_informative
        self.scores_, self.score_errors_ = np.array([score[:2] for score in path]).T
        self.null_score_ = start.value
        self.candidate_scores_, self.candidate_errors_ = np.full((2, self.n_features_in_), np.nan)
        for column, score in refused.items():
            self.candidate_scores_[column], self.candidate_errors_[column] = score[:2]
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
        if is_sparse(X):
            return X.tocsr()[:, kept]
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
        self, by: str, points: np.ndarray, labels: np.ndarray, groups: np.ndarray | None,
        beta_max: float, seed: int, best: _Score,
    ) -> _Score:  # fmt: skip
        clf = BayesianKNeighborsClassifier(
            "coherent" if by == "evidence" else "pseudo",
            "grid",
            beta_max=beta_max,
            n_jobs=self.n_jobs,
            random_state=seed,
        ).fit(points, labels, groups=groups)
        if by != "loo":
            return _Score(clf.log_evidence_, clf.log_evidence_error_)
        each = np.log(clf.loo_proba_[np.arange(len(labels)), labels])
        each *= find_scored(labels, groups)
        rises = each - best.each
        if groups is not None:
            rises = np.bincount(groups, rises)
        return _Score(float(each.sum()), float(np.sqrt(len(rises)) * rises.std()), each)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.classifier_tags = None
        return tags


class _Score(NamedTuple):
    """A score, its error, and the points' shares in it where it is a sum over them."""

    value: float
    error: float
    each: np.ndarray | float = 0.0


def _score_frequencies(by: str, labels: np.ndarray, scored: np.ndarray) -> _Score:
    """Return the score of the class frequencies alone."""
    sizes = np.bincount(labels)
    if by == "evidence":
        return _Score(log_evidence_of_frequencies(sizes), 0.0)
    each = np.log(frequencies_of_others(sizes))[labels] * scored
    return _Score(float(each.sum()), 0.0, each)


def _beats_permuted(
    new: np.ndarray,
    rest: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray | None,
    n_permuted: int,
    rng: np.random.Generator,
) -> bool:
    """Test whether a column predicts the labels better than each permutation of its rows does.

    Where rows belong to groups, these are permuted.
    """
    sizes, scored = np.bincount(labels), find_scored(labels, groups)
    # With more neighbours the test is no clearer, and takes longer.
    ks = np.arange(1, min(choose_k_max(None, None, sizes, groups=groups), 50) + 1)[:, None]
    # Of 1, 3 and 10 neighbours that the class frequencies stand for, 3 have the most power.
    prior = 3.0 * frequencies_of_others(sizes)[labels]

    def measure(column: np.ndarray) -> float:
        """Return the log score of the neighbours' frequencies, leaving one out, at the best k."""
        points = np.hstack([rest, column])
        neighbors = NeighborGraph.from_points(points, len(ks), groups=groups).neighbors
        votes = np.cumsum(labels[neighbors] == labels, axis=0)
        return float((np.log((votes + prior) / (ks + 3.0)) @ scored).max())

    observed = measure(new)
    # The first that is as good ends it, so that noise takes few.
    return all(measure(new[_permute(groups, len(new), rng)]) < observed for _ in range(n_permuted))


def _permute(groups: np.ndarray | None, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows in random order; of groups, each one's rows in place of another one's."""
    if groups is None:
        return rng.permutation(n)
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    rows = np.empty(n, np.int64)
    for group, other in enumerate(rng.permutation(len(members))):
        # A smaller group fills a larger one's places by coming again.
        rows[members[group]] = np.resize(members[other], len(members[group]))
    return rows
