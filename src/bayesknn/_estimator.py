"""What the classifiers have in common: checks at fit and predict, and scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesknn._utils.blocks import by_blocks
from bayesknn._utils.checks import (
    check_choice,
    check_count,
    check_fraction,
    check_groups,
    check_labels,
    check_level,
    check_n_features,
    check_points,
    column_names,
    count_rows,
    fill_in,
    is_arrow,
    is_sparse,
    refuse_lazy,
)
from bayesknn._utils.extras import require
from bayesknn._utils.jit import announce_compiling
from bayesknn.graph.precomputed import count_stored
from bayesknn.likelihood import LIKELIHOODS
from bayesknn.model import Prior, as_prior, default_max_neighbors
from bayesknn.predictive import Summary, decide, find_zones
from bayesknn.predictive.averages import RawPrediction, include
from bayesknn.predictive.decisions import name_actions, name_zones, occlude_columns
from bayesknn.sureness.calibration import shift_intervals, shift_probabilities
from bayesknn.sureness.groups import find_scored
from bayesknn.sureness.intervals import KINDS_OF_INTERVAL, IntervalModel
from bayesknn.sureness.residuals import MAX_ROWS

if TYPE_CHECKING:
    # scikit-learn has no types: what of its callbacks users and fits need.
    class CallbackSupportMixin:
        """Takes callbacks."""

        def set_callbacks(self, *callbacks: Any) -> Self:
            """Set the callbacks that the fit calls."""

    def with_callbacks[**P, R](method: Callable[P, R]) -> Callable[P, R]:
        """Return the method, with callbacks around it."""

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # scikit-learn before 1.9

        class CallbackSupportMixin:
            """Stands where scikit-learn has no callbacks."""

        def with_callbacks(method):
            """Return the method as it is."""
            return method


def params_of_fit(estimator: Any) -> dict[str, Any]:
    """Return the parameters that an estimator was fitted with; the current ones before any fit.

    Parameters that ``set_params`` changed take effect at the next fit, so that whatever describes
    a fit reads them here. Files leave them out.
    """
    params: dict[str, Any] | None = getattr(estimator, "_params_of_fit", None)
    return estimator.get_params(deep=False) if params is None else params


def check_training(
    X: Any, y: Any, groups: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the sorted classes, and class index and group number of each row."""
    refuse_lazy(X)
    classes, labels = check_labels(y, count_rows(X))
    groups = check_groups(groups, len(labels))
    find_scored(labels, groups)  # raises ValueError before any work if no row can be scored
    return classes, labels, groups


def check_column_names(estimator: Any, X: Any, reset: bool = True) -> None:
    """Keep number and names of the columns of X, or compare them with those of the fit."""
    if is_arrow(X) and not hasattr(X, "to_batches"):
        # scikit-learn reads the names of Arrow tables and not of record batches.
        X = require("pyarrow", "record batches need", "report").Table.from_batches([X])
    validate_data(estimator, X, skip_check_array=True, reset=reset)


def check_new_points(estimator: Any, X: Any) -> None:
    """Refuse an unfitted estimator, and points that have not its columns."""
    check_is_fitted(estimator)
    refuse_lazy(X)
    shape = X.shape if hasattr(X, "shape") else np.asarray(X, dtype=object).shape
    if len(shape) < 2:
        check_points(X)  # says how to reshape
    if column_names(X) is None:
        # Before scikit-learn warns that the columns, too few or too many, have no names.
        check_n_features(shape[1], estimator.n_features_in_, type(estimator).__name__)
    check_column_names(estimator, X, reset=False)


# Address at which docs/ is published.
DOCUMENTATION = "https://bayesknn.readthedocs.io/en/stable"


class DocumentedMixin:
    """An estimator whose HTML representation links to its page of the reference."""

    _doc_link_module = "bayesknn"
    _doc_link_template = f"{DOCUMENTATION}/api/bayesknn.{{estimator_name}}.html"


class ContributionsMixin(DocumentedMixin):
    """What follows from ``predict_proba`` in every classifier."""

    predict_proba: Callable[[Any], np.ndarray]

    @by_blocks
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logs of what :meth:`predict_proba` returns, minus infinity for 0.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
            As :meth:`predict_proba` takes it.

        Returns
        -------
        ndarray of shape (m, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict_contributions(
        self, X: Any, background: Any = None, n_background: int = 20
    ) -> np.ndarray:
        """Return what each column contributes to the log odds of each row's predicted class.

        By occlusion: the log odds of the row, less their mean where the column has the values of
        other rows and all other columns are unchanged. Columns that say the same stand in for
        each other, so that neither seems to contribute, and contributions do not add up to the
        log odds.

        Parameters
        ----------
        X : array-like or pandas frame of shape (m, p)
        background : array-like or pandas frame of shape (n, p), optional
            The other rows, such as those of training; X itself by default.
        n_background : int, default=20
            How many of them are used, drawn at random, always the same ones.

        Returns
        -------
        ndarray of shape (m, p)
            Positive where the column's value speaks for the class. Probabilities within 1e-6 of
            0 and 1 count as that.

        Examples
        --------
        >>> from bayesknn import BayesianKNeighborsClassifier
        >>> X = [[0, 5], [1, 3], [2, 4], [10, 4], [11, 5], [12, 3]]
        >>> clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=2, beta_max=4.0)
        >>> clf = clf.fit(X, ["a", "a", "a", "b", "b", "b"])
        >>> first, second = clf.predict_contributions([[1, 4]], background=X)[0]
        >>> bool(first > second)
        True
        """
        check_is_fitted(self)
        if params_of_fit(self).get("metric") == "precomputed":
            raise ValueError("a matrix of distances has no columns that contribute")
        check_count(n_background, "n_background", 1)
        check_new_points(self, X)
        if background is None:
            if count_rows(X) == 1:
                raise ValueError("one row needs others to compare with: pass background=X_train")
            background = X
        check_new_points(self, background)
        if column_names(X) is None or type(X) is not type(background):
            # A float does not fit into an array of integers, nor a word into one of numbers.
            X, background = (
                np.array(fill_in(each) if is_sparse(each) else each, dtype=object)
                for each in (X, background)
            )
        # Predictions of a classifier on Dask collections are not computed yet.
        return occlude_columns(
            lambda rows: np.asarray(self.predict_proba(rows)), X, background, n_background
        )


class DecisionMixin(ContributionsMixin):
    """What follows from raw predictions in either classifier.

    A raw prediction is before calibration and ``class_prior``. With a level it has credible
    intervals of that level.
    """

    classes_: np.ndarray
    diagnostics_: dict[str, Any]
    loo_proba_: np.ndarray
    # Raw predictions of new points, and of the training points, each left out.
    _describe_new: Callable[[Any, float | None], RawPrediction]
    _describe_left_out: Callable[[float | None], RawPrediction]
    # Interval model of the training rows; factors of the odds, from ``class_prior``.
    _interval_model: IntervalModel
    _odds_ratio: Any
    _is_calibrated = False
    _kinds_of_interval: tuple[str, ...] = KINDS_OF_INTERVAL

    @by_blocks
    def predict_interval(self, X: Any, level: float = 0.95, of: str = "probability") -> np.ndarray:
        """Return an interval of each class probability.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (m, p)
            As :meth:`predict_proba` takes it.
        level : float, default=0.95
            Proportion of points whose interval is to cover the truth; or, of parameters, the
            posterior probability inside, half of the rest on either side.
        of : {"probability", "parameters"}, default="probability"
            ``"probability"`` is an interval for the true P(y | x), which carries what the sample
            and the smoothing leave unknown; of the Bayesian classifier it is about the probability
            of ``calibrate=True``. It is [0, 1] where the neighbours are farther than any training
            point's. ``"parameters"`` is the paper's credible interval, which carries the
            uncertainty about beta and k alone; the pool has none.

        Returns
        -------
        ndarray of shape (m, n_classes, 2)
            Lower and upper ends; widened, if need be, to hold what :meth:`predict_proba` returns.
        """
        return self.predict_summary(X, level, of).intervals

    def predict_summary(self, X: Any, level: float = 0.95, of: str = "probability") -> Summary:
        """Return probabilities, intervals and typicality from one search for neighbours.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (m, p)
            As :meth:`predict_proba` takes it.
        level, of
            As in :meth:`predict_interval`.

        Returns
        -------
        Summary
            With ``probabilities``, ``intervals`` and ``typicality``: what
            :meth:`predict_proba`, :meth:`predict_interval` and :meth:`predict_typicality` return.
        """
        return self._summarise(lambda level: self._describe_new(X, level), level, of)

    def loo_interval(self, level: float = 0.95, of: str = "probability") -> np.ndarray:
        """Return an interval of each class probability of the training points, left out.

        Parameters
        ----------
        level : float, default=0.95
        of : {"probability", "parameters"}, default="probability"
            As in :meth:`predict_interval`; of parameters, under their posterior without the point.

        Returns
        -------
        ndarray of shape (n, n_classes, 2)
            Lower and upper ends, around ``loo_proba_``.
        """
        return self._summarise(self._describe_left_out, level, of).intervals

    @property
    def residual_correlation_(self) -> float:
        """Correlation of the residuals of near rows."""
        check_is_fitted(self)
        return self._interval_model.correlation.value

    @property
    def residual_correlation_error_(self) -> float:
        """Standard error of ``residual_correlation_``."""
        check_is_fitted(self)
        return self._interval_model.correlation.error

    def _adjust(self, raw: RawPrediction) -> np.ndarray:
        """Return probabilities as users get them: calibrated if asked for, with the offset."""
        p = self._interval_model.calibrate(raw) if self._is_calibrated else raw.probabilities
        return shift_probabilities(p, self._odds_ratio)

    def _summarise(self, describe: Callable[[Any], RawPrediction], level: Any, of: Any) -> Summary:
        """Return what users get; intervals are widened where they do not hold the probability."""
        check_is_fitted(self)
        check_choice(of, "of", self._kinds_of_interval)
        level = check_level(level)
        raw = describe(level if of == "parameters" else None)
        stated, ends, inside = self._adjust(raw), raw.intervals, raw.probabilities
        if ends is None:
            ends, inside = self._interval_model.intervals(raw, level)
        intervals = include(shift_intervals(ends, inside, self._odds_ratio), stated)
        return Summary(stated, intervals, self._interval_model.scale.typicality(raw.distances))

    def _describe_misfit(self, labels: Sequence[str | int], what: str, advice: str = "") -> None:
        """Name the column on which the residuals still depend, whose effect ``what`` misses."""
        at = self._interval_model.correlation.column
        label = None if at is None else labels[at]
        self.diagnostics_["misfit_column"] = label
        # Of more rows a sample is examined.
        self.diagnostics_["misfit_rows"] = min(len(self.loo_proba_), MAX_ROWS) if labels else 0
        if label is not None:
            self.diagnostics_["warnings"].append(
                f"the residuals still depend on column {str(label)!r}: {what} misses part of its "
                f"effect, and intervals are wider for it{advice}"
            )

    @by_blocks
    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class, the first in ``classes_`` where several are.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
            As :meth:`predict_proba` takes it.

        Returns
        -------
        ndarray of shape (m,)
        """
        winners = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[winners]

    def predict_decision(
        self, X: Any, loss: Any = None, actions: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the decision of least expected loss, and that loss.

        Parameters
        ----------
        X : array-like or frame of shape (m, p)
            As :meth:`predict_proba` takes it.
        loss : array-like of shape (n_actions, n_classes) or dict, optional
            ``loss[a][g]`` is the loss of decision a when class g is true, in the order of
            ``classes_``. With a row for each class, row a decides for class a; further rows are
            further actions, such as to abstain. A dict has the rows by the names of the actions.
            By default 1 for every error, so that the expected loss is the probability of being
            wrong.
        actions : sequence, optional
            What the rows of ``loss`` are called, where they are not the classes alone: the names
            of all rows, or of those after the rows of the classes.

        Returns
        -------
        decisions : ndarray of shape (m,)
            Names of actions: ``classes_``, or with other actions among them dtype object.
        expected_loss : ndarray of shape (m,)

        Examples
        --------
        A wrong class costs 1, and to ask an expert costs 0.2:

        >>> from bayesknn import BayesianKNeighborsClassifier
        >>> clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=2, beta_max=4.0)
        >>> clf = clf.fit([[0], [1], [2], [10], [11], [12]], ["a", "a", "a", "b", "b", "b"])
        >>> loss = [[0, 1], [1, 0], [0.2, 0.2]]
        >>> clf.predict_decision([[1.2], [6.0]], loss, actions=["ask"])[0].tolist()
        ['a', 'ask']
        """
        check_is_fitted(self)
        table, names = name_actions(self.classes_, loss, actions)
        decisions, expected = decide(np.asarray(self.predict_proba(X)), table)
        return names[decisions], expected

    @by_blocks
    def predict_zone(
        self,
        X: Any,
        level: float = 0.95,
        uncertain: Any = "undecided",
        of: str = "probability",
        unfamiliar: float = 0.0,
    ) -> np.ndarray:
        """Return the class whose interval lies above that of every other, or ``uncertain``.

        Where a class is named, the data show that it is the likeliest there, not that a decision
        for it will be right: that is its probability. A decided row is no prediction set of
        conformal prediction, whose coverage is guaranteed: the tutorial "Guarantees by MAPIE"
        compares them.

        Parameters
        ----------
        X : array-like, frame or sparse graph of shape (m, p)
        level : float, default=0.95
            Of the intervals.
        uncertain : object, default="undecided"
            What to say where no class leads; none of ``classes_``.
        of : {"probability", "parameters"}, default="probability"
            Of what the intervals are, see :meth:`predict_interval`. ``"parameters"``, of the
            Bayesian classifier, is the paper's rule: it decides more often and is less often right.
        unfamiliar : float, default=0.0
            Points with a typicality below it are ``"unfamiliar"``, see
            :meth:`predict_typicality`; at 0 no point is.

        Returns
        -------
        ndarray of shape (m,), dtype object
        """
        check_is_fitted(self)
        unfamiliar = check_fraction(unfamiliar, "unfamiliar")
        others = ("unfamiliar", uncertain) if unfamiliar > 0 else (uncertain,)
        names = name_zones(self.classes_, *others)
        summary = self.predict_summary(X, level, of)
        zones = find_zones(summary.intervals)
        return names[np.where(summary.typicality < unfamiliar, len(self.classes_), zones)]


def choose_k_max(
    max_neighbors: Any,
    prior: Any,
    class_sizes: np.ndarray,
    graph: Any = None,
    groups: np.ndarray | None = None,
) -> int:
    """Return K: as asked for, as the prior has it, or by default.

    The default is at most the number of neighbours that each row of ``graph`` stores, if X is a
    sparse graph of distances, and at most the number of rows outside the largest group.
    """
    most = int(class_sizes.sum()) - (1 if groups is None else int(np.bincount(groups).max()))
    if max_neighbors is not None:
        return check_count(max_neighbors, "max_neighbors", 1, most)
    if isinstance(prior, Prior):
        return check_count(prior.k_max, "k_max of the prior", 1, most)
    k_max = min(default_max_neighbors(class_sizes), most)
    if is_sparse(graph) and graph.shape[0] == graph.shape[1]:
        return max(1, min(k_max, count_stored(graph, groups)))
    return k_max


def choose_prior(
    prior: Any, beta_max: Any, k_max: int, likelihood: str, find_beta_max: Callable[[], Any]
) -> Prior:
    """Return the prior on (beta, k); ``find_beta_max`` is asked for ``beta_max="auto"``."""
    if isinstance(beta_max, str):
        if beta_max != "auto":
            raise ValueError(f"beta_max must be a positive number or 'auto', got {beta_max!r}")
        beta_max = None
        if not isinstance(prior, Prior):
            beta_max = find_beta_max().beta_max * LIKELIHOODS[likelihood].beta_scale
    return as_prior(prior, k_max, beta_max)


@contextmanager
def follow_stages(estimator: Any, X: Any, y: Any, n_stages: int) -> Iterator[Callable[[str], Any]]:
    """Tell scikit-learn's callbacks about the stages of a fit, and users why the first is slow.

    Parameters
    ----------
    estimator : CallbackSupportMixin
        Its ``fit`` is decorated with ``with_callbacks``.
    X, y
        The training data.
    n_stages : int
        How many stages there are at most.

    Yields
    ------
    stage : callable
        ``with stage("neighbours"):`` around each of them.
    """

    @contextmanager
    def follow(task: Any) -> Iterator[None]:
        task.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        try:
            yield
        finally:
            task.call_on_fit_task_end(estimator=estimator, X=X, y=y)

    with announce_compiling():
        if not hasattr(estimator, "_init_callback_context"):
            yield lambda name: nullcontext()
            return
        context = estimator._init_callback_context(max_subtasks=n_stages)
        with follow(context):
            yield lambda name: follow(context.subcontext(task_name=name))
