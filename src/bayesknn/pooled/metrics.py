"""The distances of the pool: five ways to say which points are near.

Each class has the same shape. ``fit`` learns from the training rows and their labels, ``transform``
returns points whose distance, Euclidean but for ``choose_norm``, is the metric. To add one, write
such a class and enter it in ``METRICS``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.pooled.columns import Sample, Table
from bayesknn.pooled.random_trees import find_importances

# Weight of the prior shares in the class shares along a column, in points.
_PRIOR_POINTS = 5.0
# Columns with at most so many values are counted value by value.
_FEW_VALUES = 10
# Shares along a column are smoothed on at most so many groups of neighbouring ranks.
_MAX_GROUPS = 256
# Columns are ranked by trees of at most so many rows, and by fewer trees the more rows each has:
# the rows of all trees are the time, and the mean over trees is as sure.
_N_TREES, _TREE_ROWS, _ROWS_OF_ALL_TREES = 100, 10_000, 300_000
# City-block lists take all pairs. On more rows than this the distance is Euclidean: the search
# would take longer than all else, and on 8,000 rows the log-loss was the same within .0003.
_MANY_ROWS = 5_000
# What a column without relevance still weighs, the mean being about 1.
_LEAST_WEIGHT = 0.02


class NormalScores:
    """Numbers by the normal quantile of their rank, indicators as they are."""

    def fit(self, table: Table) -> NormalScores:
        """Keep the values of the training columns, and how many rows are below each."""
        self.curves_ = []
        for column in table.points.T:
            values, counts = np.unique(column, return_counts=True)
            self.curves_.append((values, np.append(0, np.cumsum(counts))))
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return the scores of rows, old or new."""
        from scipy.special import ndtri

        scores = table.points.copy()
        for j in np.flatnonzero(~table.is_indicator):
            values, below = self.curves_[j]
            n, at = below[-1], np.searchsorted(values, scores[:, j])
            is_there = values[np.minimum(at, len(values) - 1)] == scores[:, j]
            rank = np.clip((below[at] + below[at + is_there] + 1) / 2, 0.5, n + 0.5)
            scores[:, j] = ndtri(rank / (n + 1))
        return scores


class Robust:
    """City-block distance of normal scores: it sees no labels, and outliers move it little."""

    def fit(self, sample: Sample, seed: int) -> Robust:
        """Learn the ranks."""
        self.scores_ = NormalScores().fit(sample.table)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return normal scores."""
        return self.scores_.transform(table)


class Within:
    """Euclidean after whitening by the covariance within classes."""

    def fit(self, sample: Sample, seed: int) -> Within:
        """Learn the whitening."""
        self.axes_ = whiten(sample.table.points, sample.labels, sample.n_classes)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return whitened points."""
        return table.points @ self.axes_


class Discriminant:
    """Whitened, then stretched along the directions in which the class means differ."""

    def fit(self, sample: Sample, seed: int) -> Discriminant:
        """Learn the directions."""
        self.axes_ = discriminate(sample.table.points, sample.labels, sample.n_classes)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return discriminant coordinates."""
        return table.points @ self.axes_


class Relevance:
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
        n_trees = min(_N_TREES, _ROWS_OF_ALL_TREES // len(points))
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
        return np.hstack(
            [_read_shares(x, *curve) for x, curve in zip(table.values.T, self.curves_, strict=True)]
        )


class Evidence:
    """For additive truth: each column becomes the class shares along it, then as Discriminant."""

    def fit(self, sample: Sample, seed: int) -> Evidence:
        """Learn the shares along each column, and the directions."""
        self.shares_ = ColumnShares().fit(sample)
        raw = self.shares_.transform(sample.table)
        self.centre_, self.scale_ = raw.mean(axis=0), float(raw.std(axis=0).max()) or 1.0
        scaled = (raw - self.centre_) / self.scale_
        self.axes_ = discriminate(scaled, sample.labels, sample.n_classes)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return discriminant coordinates of the shares."""
        return (self.shares_.transform(table) - self.centre_) / self.scale_ @ self.axes_


def choose_norm(name: str, n: int) -> str:
    """Return the distance of a metric's points, on n training rows."""
    return "manhattan" if name == "robust" and n <= _MANY_ROWS else "euclidean"


def whiten(points: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return axes that make the covariance within classes the identity.

    It is shrunk towards its diagonal by p / (p + n).
    """
    n, p = points.shape
    shrink = p / (p + n)
    residuals = points - _class_means(points, labels, n_classes)[labels]
    within = residuals.T @ residuals / max(n - n_classes, 1)
    covariance = (1 - shrink) * within + shrink * np.diag(np.diag(within)) + 1e-6 * np.eye(p)
    # Any root of the inverse gives the same distances; this one is the cheapest.
    return np.linalg.inv(np.linalg.cholesky(covariance)).T


def discriminate(points: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return whitening axes turned to the class means' directions and stretched along them."""
    n, p = points.shape
    white = whiten(points, labels, n_classes)
    means = _class_means(points @ white, labels, n_classes)
    shares = np.bincount(labels, minlength=n_classes) / n
    apart = (means - shares @ means) * np.sqrt(shares)[:, None]
    # As coordinates, not as a matrix of the same distances: KD-trees skip along coordinates.
    _, roots, axes = np.linalg.svd(apart, full_matrices=True)
    values = np.zeros(p)
    values[: len(roots)] = roots**2
    return white @ axes.T * np.sqrt(values + p / (p + n))


def _class_means(points: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    return np.array([points[labels == g].mean(axis=0) for g in range(n_classes)])


def _trace_shares(
    column: np.ndarray, sample: Sample, is_category: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Return places along a column, coordinates there, those of no value, and the kind."""
    weights, n_classes, prior = sample.weights, sample.n_classes, sample.class_shares
    places, group = np.unique(column, return_inverse=True)
    counts = np.bincount(group, weights)
    n = weights.sum()
    is_smooth = not is_category and len(places) > _FEW_VALUES
    if len(places) > _MAX_GROUPS and is_smooth:
        # Equal shares of the rows, and never one value in two groups.
        merged = np.ceil(np.cumsum(counts)) - 1
        _, merged = np.unique(merged * _MAX_GROUPS // n, return_inverse=True)
        group = merged[group]
        counts = np.bincount(group, weights)
        places = np.bincount(group, weights * column) / counts
    cells = np.bincount(group * n_classes + sample.labels, weights, len(places) * n_classes)
    by_class = cells.reshape(len(places), n_classes)
    if is_smooth:
        ranks = np.cumsum(counts) - (counts - 1) / 2
        sd = max(n**0.8 / 4, 5.0)
        by_class = np.exp(-0.5 * ((ranks[:, None] - ranks) / sd) ** 2) @ by_class
    total = by_class.sum(axis=1, keepdims=True)
    shares = np.sqrt((by_class + _PRIOR_POINTS * prior) / (total + _PRIOR_POINTS))
    unseen = np.sqrt(prior)
    if n_classes == 2:  # The other class says the same.
        shares, unseen = shares[:, 1:], unseen[1:]
    if len(places) == 2:
        apart = float(np.linalg.norm(shares[1] - shares[0]))
        shares, unseen = np.array([[0.0], [apart]]), np.array([apart / 2])
    return places, shares, unseen, is_category


def _read_shares(
    x: np.ndarray, places: np.ndarray, shares: np.ndarray, unseen: np.ndarray, is_category: bool
) -> np.ndarray:
    if not is_category:
        return np.column_stack([np.interp(x, places, share) for share in shares.T])
    at = np.minimum(np.searchsorted(places, x), len(places) - 1)
    return np.where((places[at] == x)[:, None], shares[at], unseen)


METRICS: dict[str, Any] = {
    "robust": Robust,
    "within": Within,
    "discriminant": Discriminant,
    "relevance": Relevance,
    "evidence": Evidence,
}
