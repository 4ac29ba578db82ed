"""Choice of columns in the paper's framework (its Section 5: 'not explored').

Which columns define the distance is part of the model, so the evidence can choose among them, in
two ways:

1. A forward search chooses one set: the column that raises the score most joins, until none raises
   it by more than its error. The search cannot see a pure interaction, where each column alone says
   nothing.
2. The posterior over sets of columns, :mod:`bayesknn.column_sets`, says how sure a choice is.

The model has no class intercept, so that where classes are unequal beta explains their frequencies,
and a column of noise may raise the score. A column therefore has to pass a test as well, given the
class counts: with it, neighbours predict the labels better than with its values permuted among the
rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
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
    check_verbose,
    is_sparse,
)
from bayesknn._utils.progress import progress
from bayesknn._utils.random import as_seed_sequence
from bayesknn._utils.saving import VersionMixin
from bayesknn.column_sets import ColumnSet, SetPosterior, list_sets, search_sets, weigh_sets
from bayesknn.graph import NeighborGraph
from bayesknn.labels import find_beta_max
from bayesknn.likelihood import CoherentLikelihood, PseudoLikelihood
from bayesknn.model import (
    BoltzmannModel,
    UniformPrior,
    log_evidence_of_frequencies,
)
from bayesknn.model.frequencies import frequencies_of_others
from bayesknn.pooled.columns import Columns, Table
from bayesknn.posterior import grid_posterior
from bayesknn.predictive import PosteriorNodes, Predictive
from bayesknn.sureness.groups import find_scored

# Part of the posterior over sets that `predict_proba` averages over, and that the coherent evidence
# weighs again after a search by pseudo-evidence. A larger part takes more sets, of less and less
# probability.
_MASS = 0.99
# Largest number of sets that the coherent evidence weighs again: about a minute at 200 rows.
_MOST_COHERENT = 64


class ColumnSelector(VersionMixin, DocumentedMixin, SelectorMixin, BaseEstimator):
    """Forward choice of the columns that define who is a neighbour, and how sure it is.

    Columns are standardised first, and categories become indicators, so that units do not choose.
    A column joins if it raises the score by more than its error, and if neighbours then predict the
    labels better than with its values permuted among the rows: a step of the search among columns
    that say nothing lets one in with a probability of at most 1 %. The best column stays even where
    none passes: ``informative_`` is then False, with a warning.

    By either evidence the posterior over sets of columns is computed as well, the empty set among
    them, under which labels do not depend on X. Every number of columns is equally probable
    beforehand, and so are all sets of one number. All sets are scored if there are at most 256 of
    them (eight columns). Otherwise Metropolis chains search by pseudo-evidence, and the
    coherent evidence, if asked for, weighs the likeliest of the sets again.

    Parameters
    ----------
    by : {"evidence", "pseudo-evidence", "loo"}, default="evidence"
        The score: log evidence of the paper's coherent model; that of its pseudo-likelihood, which
        is quicker; or the sum of the leave-one-out log probabilities of the labels under the
        pseudo-likelihood. beta_max, that of all columns together, and K are the same for all
        columns, so that evidences are of one prior.
    max_columns : int, optional
        Stop after this number of columns; no set has more.
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
    inclusion_probabilities_, inclusion_errors_ : ndarray of shape (n_features_in_,)
        By either evidence: the posterior probability that a column is in the set, and its Monte
        Carlo error. It is 0 for a constant column.
    set_probabilities_, set_errors_ : dict of tuple of int to float
        By either evidence: P(set | y) of every set that was scored, the likeliest first, and its
        Monte Carlo error. The empty set is ``()``.
    missed_probability_ : float
        By either evidence: the estimated posterior probability of the sets that were not scored, 0
        if all of them were. After a search by pseudo-evidence it is a probability under the
        pseudo-likelihood.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If X had names that are all strings.

    See Also
    --------
    bayesknn.plots.ColumnPathDisplay : Draws the path of the scores.
    bayesknn.plots.ColumnSetsDisplay : Draws the posterior over sets of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn import ColumnSelector
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> noise = np.random.default_rng(0).normal(size=(250, 1))
    >>> X = np.hstack([noise, ripley.X_train])
    >>> selector = ColumnSelector("pseudo-evidence", random_state=0).fit(X, ripley.y_train)
    >>> selector.order_.tolist(), selector.inclusion_probabilities_.round(2).tolist()
    ([2, 1], [0.0, 1.0, 1.0])
    >>> max(selector.set_probabilities_, key=selector.set_probabilities_.get)
    (1, 2)
    """

    classes_: np.ndarray
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
        """Search forward, and weigh sets of columns by either evidence.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Numbers, categories, missing values.
        y : array-like of shape (n,)
            Labels: at least two classes, one of them of at least two points.
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
        classes, labels, groups = check_training(X, y, groups)
        reader = Columns()
        table = reader.fit(X)
        columns = np.unique(table.source).tolist()
        most = len(columns)
        if self.max_columns is not None:
            most = min(most, check_count(self.max_columns, "max_columns"))
        seed = int(as_seed_sequence(self.random_state).generate_state(1)[0])
        rng = np.random.default_rng(seed)
        with progress("Choosing columns", verbose=self.verbose) as advance:
            scores = _Scores(by, table, labels, groups, seed, self.n_jobs, advance)
            path = _search_forward(scores, columns, most, rng)
            posterior = None
            if by != "loo":
                posterior = _weigh(scores, columns, most, path.order, len(reader.parts), rng)
        if not path.is_informative:
            warnings.warn(
                "no column says more about the classes than its own values permuted among the "
                "rows; the best is kept, as a classifier needs one",
                stacklevel=2,
            )
        check_column_names(self, X)
        self._params_of_fit = self.get_params(deep=False)
        self.classes_, self.null_score_ = classes, scores(()).value
        self.order_, self.informative_ = np.array(path.order), path.is_informative
        self.scores_, self.score_errors_ = np.array([score[:2] for score in path.scores]).T
        self.candidate_scores_, self.candidate_errors_ = np.full((2, self.n_features_in_), np.nan)
        for column, score in path.refused.items():
            self.candidate_scores_[column], self.candidate_errors_[column] = score[:2]
        self._keep_posterior(posterior, scores, reader)
        return self

    def _keep_posterior(
        self, posterior: SetPosterior | None, scores: _Scores, reader: Columns
    ) -> None:
        """Set the attributes that follow from the posterior over sets, and what predicts by it."""
        names = ("inclusion_probabilities_", "inclusion_errors_", "missed_probability_", "_sets")
        for name in names:  # What an earlier fit may have left.
            self.__dict__.pop(name, None)
        if posterior is None:
            return
        self.inclusion_probabilities_ = posterior.inclusion
        self.inclusion_errors_ = posterior.inclusion_errors
        self.missed_probability_ = posterior.missed
        n_kept = posterior.n_likeliest(_MASS)
        self._sets = [list(columns) for columns in posterior.sets]
        self._set_values = np.array([posterior.probabilities, posterior.errors])
        self._reader, self._points, self._source = reader, scores.table.points, scores.table.source
        self._labels, self._groups = scores.labels, scores.groups
        self._nodes = [scores.fit(columns)[1] for columns in posterior.sets[:n_kept]]

    @property
    def set_probabilities_(self) -> dict[ColumnSet, float]:
        """P(set | y) of every set that was scored, the likeliest first."""
        return self._by_set(0)

    @property
    def set_errors_(self) -> dict[ColumnSet, float]:
        """Monte Carlo error of each P(set | y)."""
        return self._by_set(1)

    def _by_set(self, row: int) -> dict[ColumnSet, float]:
        check_is_fitted(self)
        if not hasattr(self, "_sets"):
            raise AttributeError("by='loo' has no posterior over sets of columns: use an evidence")
        values = self._set_values[row].tolist()
        return {tuple(columns): value for columns, value in zip(self._sets, values, strict=True)}

    @available_if(lambda self: hasattr(self, "_sets") or not hasattr(self, "order_"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Average the class probabilities of new points over the sets of columns.

        The likeliest sets that hold 99 % of the posterior are averaged over, each by its own
        posterior of (beta, k); the empty set gives the class frequencies.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)

        Returns
        -------
        ndarray of shape (m, n_classes)
            In the order of ``classes_``.
        """
        check_new_points(self, X)
        new, sizes = self._reader.transform(X).points, np.bincount(self._labels)
        weights = self._set_values[0, : len(self._nodes)]
        total = np.zeros((len(new), len(sizes)))
        for columns, nodes, weight in zip(self._sets, self._nodes, weights, strict=False):
            if nodes is None:
                total += weight * (sizes + 1) / np.sum(sizes + 1)
                continue
            some = np.isin(self._source, columns)
            points, k_max = self._points[:, some], int(nodes.k.max())
            graph = NeighborGraph.from_points(points, k_max, groups=self._groups)
            rule = Predictive(BoltzmannModel(graph, len(sizes)), self._labels, nodes)
            total += weight * rule.probabilities(new[:, some])
        return total / weights.sum()

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.target_tags.required = True
        # Of `predict_proba`; the selector itself is a transformer.
        tags.classifier_tags = ClassifierTags()
        return tags


class _Score(NamedTuple):
    """A score, its error, and the sum's term of each point for the leave-one-out score."""

    value: float
    error: float
    each: np.ndarray | None = None

    def relative_to(self, other: _Score, groups: np.ndarray | None) -> _Score:
        """Return the score with the error of the rise from another one, if it is a sum.

        Rows of a group are not independent, and are added up.
        """
        if self.each is None or other.each is None:
            return self
        rises = self.each - other.each
        if groups is not None:
            rises = np.bincount(groups, rises)
        return self._replace(error=float(np.sqrt(len(rises)) * rises.std()))


class _Scores:
    """The score of any set of columns, computed once."""

    def __init__(
        self,
        by: str,
        table: Table,
        labels: np.ndarray,
        groups: np.ndarray | None,
        seed: int,
        n_jobs: int | None,
        advance: Callable[[float], None],
    ):
        self.table, self.labels, self.groups, self.seed = table, labels, groups, seed
        self.n_jobs, self.advance, self.scored = n_jobs, advance, find_scored(labels, groups)
        sizes = np.bincount(labels)
        k_max = choose_k_max(None, None, sizes, groups=groups)
        graph = NeighborGraph.from_points(table.points, k_max, n_jobs=n_jobs, groups=groups)
        beta_max = find_beta_max(graph, len(sizes), random_state=seed).beta_max
        # The same prior for all sets: evidences under different ones cannot be compared.
        self.prior = UniformPrior(graph.k_max, beta_max)
        self._begin(by)

    def _begin(self, by: str) -> None:
        self.by = by
        # Posteriors take memory, and few of those of a search are needed again.
        self.fit = lru_cache(maxsize=256)(self._fit)
        self.known: dict[ColumnSet, _Score] = {(): _score_frequencies(by, self.labels, self.scored)}

    def by_pseudo_evidence(self) -> _Scores:
        """Return scores of the same table by pseudo-evidence."""
        if self.by == "pseudo-evidence":
            return self
        other = copy(self)
        other._begin("pseudo-evidence")
        return other

    def __call__(self, columns: Iterable[int]) -> _Score:
        """Return the score of a set."""
        key = tuple(sorted(columns))
        if key not in self.known:
            self.known[key] = self.fit(key)[0]
            self.advance(1)
        return self.known[key]

    def _fit(self, columns: ColumnSet) -> tuple[_Score, PosteriorNodes | None]:
        """Return the score of a set and its posterior of (beta, k), None for the empty set."""
        if not columns:
            return self.known[()], None
        points = self.table.points[:, np.isin(self.table.source, columns)]
        graph = NeighborGraph.from_points(
            points, self.prior.k_max, n_jobs=self.n_jobs, groups=self.groups
        )
        model = BoltzmannModel(graph, int(self.labels.max()) + 1)
        kind = CoherentLikelihood if self.by == "evidence" else PseudoLikelihood
        likelihood = kind(model, self.labels)
        grid = grid_posterior(likelihood, self.prior, random_state=self.seed, n_jobs=self.n_jobs)
        nodes = PosteriorNodes.from_grid(grid)
        if self.by != "loo":
            return _Score(grid.log_evidence, grid.log_evidence_error), nodes
        left_out = Predictive(model, self.labels, nodes).leave_one_out()[0].probabilities
        each = np.log(left_out[np.arange(len(self.labels)), self.labels]) * self.scored
        return _Score(float(each.sum()), 0.0, each), nodes


def _score_frequencies(by: str, labels: np.ndarray, scored: np.ndarray) -> _Score:
    """Return the score of the class frequencies alone."""
    sizes = np.bincount(labels)
    if by == "evidence":
        return _Score(log_evidence_of_frequencies(sizes), 0.0)
    each = np.log(frequencies_of_others(sizes))[labels] * scored
    return _Score(float(each.sum()), 0.0, each if by == "loo" else None)


class _Path(NamedTuple):
    """The chosen columns in order, the score at each step, and the scores of the refused."""

    order: list[int]
    scores: list[_Score]
    refused: dict[int, _Score]
    is_informative: bool


def _search_forward(
    scores: _Scores, columns: list[int], most: int, rng: np.random.Generator
) -> _Path:
    """Add the column that raises the score most until none passes."""
    path, table = _Path([], [], {}, False), scores.table
    best = scores(())
    while len(path.order) < most:
        candidates = {
            column: scores([*path.order, column]).relative_to(best, scores.groups)
            for column in columns
            if column not in path.order
        }
        ranked = sorted(candidates, key=lambda column: -candidates[column].value)
        rest = table.points[:, np.isin(table.source, path.order)]
        for column in ranked:
            score = candidates[column]
            error = np.hypot(score.error, 0.0 if score.each is not None else best.error)
            if path.order and score.value - best.value <= error:
                continue
            new = table.points[:, table.source == column]
            # One step in a hundred lets a column in if all of them are noise.
            n_permuted = 100 * len(ranked) - 1
            if _beats_permuted(new, rest, scores.labels, scores.groups, n_permuted, rng):
                path = path._replace(is_informative=True)
                break
        else:
            if path.order:
                return path._replace(refused=candidates)
            column = ranked[0]
        best = candidates[column]
        path.order.append(column)
        path.scores.append(best)
    return path


def _weigh(
    scores: _Scores, columns: list[int], most: int, start: list[int], width: int,
    rng: np.random.Generator,
) -> SetPosterior:  # fmt: skip
    """Return the posterior over sets: of all of them, or of those that a search visits."""

    def weigh(some: _Scores) -> SetPosterior:
        known = {each: score[:2] for each, score in some.known.items()}
        return weigh_sets(known, len(columns), most, width)

    every = list_sets(columns, most)
    if every is not None:
        for each in every:
            scores(each)
        return weigh(scores)
    quick = scores.by_pseudo_evidence()
    missed = search_sets(lambda each: quick(each).value, quick.known, start, columns, most, rng)
    posterior = weigh(quick)
    if scores is not quick:
        n_kept = min(posterior.n_likeliest(_MASS), _MOST_COHERENT)
        for each in posterior.sets[:n_kept]:
            scores(each)
        is_known = [each in scores.known for each in posterior.sets]
        missed += (1 - missed) * float(posterior.probabilities[np.logical_not(is_known)].sum())
        posterior = weigh(scores)
    return replace(posterior, missed=missed)


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
