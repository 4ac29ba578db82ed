"""The distances of the pool: five ways to say which points are near.

Each class has the same shape. ``fit`` learns from the training rows and their labels, ``transform``
returns points whose distance, by ``norm``, is the metric. To add one, write
such a class and enter it in ``METRICS``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.pooled.columns import Sample, Table
from bayesknn.pooled.random_trees import find_importances
from bayesknn.pooled.whitening import Whitening

# Weight of the prior shares in the class shares along a column, in points.
_PRIOR_POINTS = 5.0
# Columns with at most so many values are counted value by value.
_FEW_VALUES = 10
# Shares along a column are smoothed on at most so many groups of neighbouring ranks.
_MAX_GROUPS = 256
# Columns are ranked by trees of at most so many rows, and by this many over the root of the rows:
# trees of more rows are surer and take longer.
_TREE_ROWS, _TREES_TIMES_ROOT = 10_000, 3_200
# City-block lists take all pairs. On more rows than this the distance is Euclidean: the search
# would take longer than all else, and on 8,000 rows the log-loss was the same within .0003.
_MANY_ROWS = 5_000
# What a column without relevance still weighs, the mean being about 1.
_LEAST_WEIGHT = 0.02


class NormalScores:
    """Numbers by the normal quantile of their rank, indicators as they are."""

    def fit(self, table: Table) -> NormalScores:
        """Keep the values of the training columns in order."""
        self.sorted_ = np.sort(table.points[:, ~table.is_indicator].T, axis=1)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return the scores of rows, old or new."""
        from scipy.special import ndtri

        scores, n = table.points.copy(), self.sorted_.shape[1]
        ranks = _rank_columns(self.sorted_, scores[:, ~table.is_indicator])
        scores[:, ~table.is_indicator] = ndtri(np.clip(ranks, 0.5, n + 0.5) / (n + 1))
        return scores


class Metric:
    """What the metrics have in common: the norm of their points."""

    def norm(self, n: int) -> str:
        """Return the distance of the points, on n training rows."""
        return "euclidean"


class Robust(Metric):
    """City-block distance of normal scores: it sees no labels, and outliers move it little."""

    def fit(self, sample: Sample, seed: int) -> Robust:
        """Learn the ranks."""
        self.scores_ = NormalScores().fit(sample.table)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return normal scores."""
        return self.scores_.transform(table)

    def norm(self, n: int) -> str:
        """Return city-block distance, but of many rows."""
        return "manhattan" if n <= _MANY_ROWS else "euclidean"


class Within(Metric):
    """Euclidean after whitening by the covariance within classes."""

    _is_stretched = False

    def fit(self, sample: Sample, seed: int) -> Within:
        """Learn the whitening."""
        points, labels = sample.table.points, sample.labels
        self.whitening_ = Whitening(points, labels, sample.n_classes, self._is_stretched)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return whitened points."""
        return self.whitening_.transform(table.points)


class Discriminant(Within):
    """Whitened, then stretched along the directions in which the class means differ."""

    _is_stretched = True


class Relevance(Metric):
    """Normal scores, each column weighted by what extremely randomised trees see in it.

    A column counts by how much its importance exceeds the mean importance of permuted copies,
    which say nothing about the labels.
    """

    def fit(self, sample: Sample, seed: int) -> Relevance:
        """Learn ranks and weights."""
        self.scores_ = NormalScores().fit(sample.table)
        self.source_ = sample.table.source
        rng = np.random.default_rng(seed)
        n, p = sample.table.points.shape
        if n > _TREE_ROWS:
            sample = sample.take(rng.choice(n, _TREE_ROWS, replace=False))
        points = sample.table.points
        both = np.hstack([points, rng.permuted(points, axis=0)])
        n_trees = round(_TREES_TIMES_ROOT / np.sqrt(len(points)))
        importance = find_importances(
            both, sample.labels, sample.weights, sample.n_classes, n_trees, seed
        )
        excess = np.maximum(importance[:p] - importance[p:].mean(), 0.0)
        total = excess.sum()
        self.relevance_ = excess / total if total > 0 else np.full(p, 1 / p)
        self.root_weights_ = np.sqrt(p * self.relevance_ + _LEAST_WEIGHT)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return weighted normal scores."""
        return self.scores_.transform(table) * self.root_weights_


class ColumnShares:
    """Each column as the class shares along it: one coordinate for two classes, else one a class.

    The coordinate of value x is ``sqrt((C_g + 5 pi_g) / (N + 5))``, with C_g and N the class counts
    near x in that column and pi the class shares.
    """

    def fit(self, sample: Sample) -> ColumnShares:
        """Learn the shares along each column."""
        table = sample.table
        self.curves_ = [
            _trace_shares(column, sample, bool(is_category))
            for column, is_category in zip(table.values.T, table.is_category, strict=True)
        ]
        # The column that each coordinate comes from.
        widths = [curve[1].shape[1] for curve in self.curves_]
        self.source_ = np.repeat(table.value_source, widths)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return the shares where these rows are."""
        coordinates = np.empty((len(table.values), len(self.source_)))
        stop = 0
        for x, curve in zip(table.values.T, self.curves_, strict=True):
            start, stop = stop, stop + curve[1].shape[1]
            _read_shares(x, *curve, coordinates[:, start:stop])
        return coordinates


class Evidence(Metric):
    """For additive truth: each column becomes the class shares along it, then as Discriminant."""

    def fit(self, sample: Sample, seed: int) -> Evidence:
        """Learn the shares along each column, and the directions."""
        self.shares_ = ColumnShares().fit(sample)
        points = self.shares_.transform(sample.table)
        self.scale_ = float(points.std(axis=0).max()) or 1.0
        points /= self.scale_
        self.whitening_ = Whitening(points, sample.labels, sample.n_classes, is_stretched=True)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return discriminant coordinates of the shares."""
        points = self.shares_.transform(table)
        points /= self.scale_
        return self.whitening_.transform(points)


def _trace_shares(
    column: np.ndarray, sample: Sample, is_category: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Return places along a column, coordinates there, those of no value, and the kind."""
    prior = sample.class_shares
    places, by_class = _count_along(column, sample.labels, sample.weights, len(prior), is_category)
    total = by_class.sum(axis=1, keepdims=True)
    shares = np.sqrt((by_class + _PRIOR_POINTS * prior) / (total + _PRIOR_POINTS))
    unseen = np.sqrt(prior)
    if len(prior) == 2:  # The other class says the same.
        shares, unseen = shares[:, 1:], unseen[1:]
    if len(places) == 2:
        apart = float(np.linalg.norm(shares[1] - shares[0]))
        shares, unseen = np.array([[0.0], [apart]]), np.array([apart / 2])
    return places, np.ascontiguousarray(shares), unseen, is_category


def _count_along(
    column: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    n_classes: int,
    is_category: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return places along a column and the class counts there, smoothed where they are many."""
    order = np.argsort(column)
    values, labels, weights = column[order], labels[order], weights[order]
    is_new = np.append(False, values[1:] != values[:-1])
    group = np.cumsum(is_new)
    is_smooth = not is_category and group[-1] >= _FEW_VALUES
    if is_smooth and group[-1] >= _MAX_GROUPS:
        # Equal shares of the rows, and never one value in two groups.
        below = np.cumsum(weights)
        upto = np.append(below[np.flatnonzero(is_new) - 1], below[-1])
        part = (np.ceil(upto) - 1) * _MAX_GROUPS // below[-1]
        group = np.append(0, np.cumsum(np.diff(part) != 0))[group]
    counts = np.bincount(group, weights)
    cells = np.bincount(group * n_classes + labels, weights, len(counts) * n_classes)
    by_class = cells.reshape(-1, n_classes)
    # The weighted mean, from the first value on: one that is alone keeps its bits.
    first = values[np.searchsorted(group, np.arange(len(counts)))]
    places = first + np.bincount(group, weights * (values - first[group])) / counts
    if is_smooth:
        ranks = np.cumsum(counts) - (counts - 1) / 2
        sd = max(weights.sum() ** 0.8 / 4, 5.0)
        by_class = np.exp(-0.5 * ((ranks[:, None] - ranks) / sd) ** 2) @ by_class
    return places, by_class


@kernel
def _read_shares(x, places, shares, unseen, is_category, coordinates):
    """Fill in the coordinates (m, n_shares) at values of a column."""
    last = len(places) - 1
    for i in range(len(x)):
        at = np.searchsorted(places, x[i])
        low, high = max(at - 1, 0), min(at, last)
        width = places[high] - places[low]
        part = (x[i] - places[low]) / width if width > 0 else 0.0
        # Not as rows, whose checks take long to compile.
        for g in range(shares.shape[1]):
            if not is_category:
                coordinates[i, g] = (1 - part) * shares[low, g] + part * shares[high, g]
            else:
                coordinates[i, g] = shares[high, g] if places[high] == x[i] else unseen[g]


def _rank_columns(columns: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the mid-rank of each value, (m, p), among sorted columns, (p, n)."""
    ranks = np.empty(points.shape)
    for j, column in enumerate(columns):
        below, upto = (np.searchsorted(column, points[:, j], side) for side in ("left", "right"))
        ranks[:, j] = (below + upto + 1) / 2
    return ranks


METRICS: dict[str, Any] = {
    "robust": Robust,
    "within": Within,
    "discriminant": Discriminant,
    "relevance": Relevance,
    "evidence": Evidence,
}
