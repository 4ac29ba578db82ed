"""The distances of the pool: three ways to measure which points are near.

Each class has the same shape. ``fit`` learns from the training rows and their labels, ``transform``
returns points whose Euclidean distance is the metric. To add one, write such a class and
enter it in ``METRICS``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.graph.metrics import whiten_rows
from bayesknn.pooled.columns import Sample, Table

# Shares along a column are smoothed on at most so many groups of neighbouring ranks.
_MAX_GROUPS = 256
# Trees that rank the columns, and rows that they see at most. Against trees of our own, up to 600
# a fit, 25 change the mean log-loss by .0004 on 113 sets and by .016 at most, and probabilities
# depend as little on the seed; 50 change it by .0003 and take twice as long.
_N_TREES, _TREE_ROWS = 25, 10_000


class Discriminant:
    """Whitened within classes, then stretched along the directions in which class means differ."""

    def fit(self, sample: Sample, seed: int) -> Discriminant:
        """Learn the whitening."""
        self.whitening_ = Whitening(sample.table.points, sample.labels, sample.n_classes)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return whitened points."""
        return self.whitening_.transform(table.points)


class Relevance:
    """Normal scores, each column weighted by what extremely randomised trees see in it.

    Numbers become the normal quantile of their rank, indicators stay as they are. A column counts
    by how much its importance exceeds the mean importance of permuted copies, which say nothing
    about the labels.
    """

    def fit(self, sample: Sample, seed: int) -> Relevance:
        """Learn ranks and weights."""
        from sklearn.ensemble import ExtraTreesClassifier

        table = sample.table
        self.sorted_ = np.sort(table.points[:, ~table.is_indicator].T, axis=1)
        self.source_ = table.source
        rng = np.random.default_rng(seed)
        n, p = table.points.shape
        if n > _TREE_ROWS:
            sample = sample.take(rng.choice(n, _TREE_ROWS, replace=False))
        points = sample.table.points
        both = np.hstack([points, rng.permuted(points, axis=0)])
        trees = ExtraTreesClassifier(
            # Leaves of at least three rows, by their weights, whose mean is 1.
            _N_TREES,
            min_weight_fraction_leaf=min(3 / len(points), 0.5),
            random_state=seed,
        )
        importance = trees.fit(both, sample.labels, sample.weights).feature_importances_
        excess = np.maximum(importance[:p] - importance[p:].mean(), 0.0)
        total = excess.sum()
        self.relevance_ = excess / total if total > 0 else np.full(p, 1 / p)
        # A column without relevance still weighs a little, the mean being about 1.
        self.root_weights_ = np.sqrt(p * self.relevance_ + 0.02)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return the weighted scores of rows, old or new."""
        from scipy.special import ndtri

        scores, n = table.points.copy(), self.sorted_.shape[1]
        for j, column in zip(np.flatnonzero(~table.is_indicator), self.sorted_, strict=True):
            below, upto = (
                np.searchsorted(column, scores[:, j], side) for side in ("left", "right")
            )
            ranks = np.clip((below + upto + 1) / 2, 0.5, n + 0.5)
            scores[:, j] = ndtri(ranks / (n + 1))
        return scores * self.root_weights_


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
        parts = zip(table.values.T, self.curves_, strict=True)
        return np.hstack([_read_shares(x, *curve) for x, curve in parts])


class Evidence:
    """For additive truth: each column becomes the class shares along it, then as Discriminant."""

    def fit(self, sample: Sample, seed: int) -> Evidence:
        """Learn the shares along each column, and the directions."""
        self.shares_ = ColumnShares().fit(sample)
        points = self.shares_.transform(sample.table)
        self.scale_ = float(points.std(axis=0).max()) or 1.0
        points /= self.scale_
        self.whitening_ = Whitening(points, sample.labels, sample.n_classes)
        return self

    def transform(self, table: Table) -> np.ndarray:
        """Return discriminant coordinates of the shares."""
        return self.whitening_.transform(self.shares_.transform(table) / self.scale_)


def _trace_shares(
    column: np.ndarray, sample: Sample, is_category: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Return places along a column, coordinates there, those of no value, and the kind."""
    prior = sample.class_shares
    places, by_class = _count_along(column, sample, is_category)
    total = by_class.sum(axis=1, keepdims=True)
    shares = np.sqrt((by_class + 5 * prior) / (total + 5))
    unseen = np.sqrt(prior)
    if len(prior) == 2:  # The other class says the same.
        shares, unseen = shares[:, 1:], unseen[1:]
    if len(places) == 2:
        apart = float(np.linalg.norm(shares[1] - shares[0]))
        shares, unseen = np.array([[0.0], [apart]]), np.array([apart / 2])
    return places, shares, unseen, is_category


def _count_along(
    column: np.ndarray, sample: Sample, is_category: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return places along a column and the class counts there, smoothed where they are many."""
    places, group = np.unique(column, return_inverse=True)
    # Of at most ten values each is counted by itself.
    is_smooth = not is_category and len(places) > 10
    if is_smooth and len(places) > _MAX_GROUPS:
        # Equal shares of the rows, and never one value in two groups.
        below = np.cumsum(np.bincount(group, sample.weights))
        merged = (np.ceil(below) - 1) * _MAX_GROUPS // below[-1]
        group = np.unique(merged, return_inverse=True)[1][group]
        sizes = np.bincount(group, sample.weights)
        places = np.bincount(group, sample.weights * column) / sizes
    by_class = np.zeros((len(places), sample.n_classes))
    np.add.at(by_class, (group, sample.labels), sample.weights)
    if is_smooth:
        counts = by_class.sum(axis=1)
        ranks = np.cumsum(counts) - (counts - 1) / 2
        sd = max(sample.weights.sum() ** 0.8 / 4, 5.0)
        by_class = np.exp(-0.5 * ((ranks[:, None] - ranks) / sd) ** 2) @ by_class
    return places, by_class


def _read_shares(
    x: np.ndarray, places: np.ndarray, shares: np.ndarray, unseen: np.ndarray, is_category: bool
) -> np.ndarray:
    """Return the coordinates (m, n_shares) at values of a column."""
    if not is_category:
        return np.column_stack([np.interp(x, places, each) for each in shares.T])
    at = np.minimum(np.searchsorted(places, x), len(places) - 1)
    return np.where((places[at] == x)[:, None], shares[at], unseen)


class Whitening:
    """Axes of the shrunk covariance within classes, stretched along differences of class means.

    The covariance W is shrunk towards its diagonal by p / (p + n). With more coordinates than rows
    only the space that the training rows span is turned: there W is a matrix of n by n, and outside
    it the shrunk covariance is diagonal. Training rows have no part outside, so that of a new row
    its length is enough, and distances to training rows are exact. Time grows with p min(n, p)^2,
    and memory with p min(n, p).

    Parameters
    ----------
    points : ndarray of shape (n, p)
    labels : ndarray of shape (n,)
    n_classes : int
    """

    def __init__(self, points: np.ndarray, labels: np.ndarray, n_classes: int):
        n, p = points.shape
        shrink, n_free = p / (p + n), max(n - n_classes, 1)
        residuals = points - _class_means(points, labels, n_classes)[labels]
        variances = (residuals**2).sum(axis=0) / n_free
        self.centre = points.mean(axis=0)
        # Some of the standardised coordinates are constant within classes.
        self.spread = np.sqrt(shrink * variances + 1e-6)
        scaled = (points - self.centre) / self.spread
        self.basis = span_rows(scaled) if p >= n else None
        inner = scaled if self.basis is None else scaled @ self.basis
        means = _class_means(inner, labels, n_classes)
        residuals = inner - means[labels]
        covariance = (1 - shrink) / n_free * (residuals.T @ residuals)
        # Any root of the inverse gives the same distances; this one is the cheapest.
        axes = np.linalg.inv(np.linalg.cholesky(covariance + np.eye(len(covariance)))).T
        shares = np.bincount(labels, minlength=n_classes) / n
        apart = (means - shares @ means) * np.sqrt(shares)[:, None] @ axes
        # Coordinates, and no matrix of the same distances, because KD-trees skip along coordinates.
        _, roots, directions = np.linalg.svd(apart, full_matrices=True)
        values = np.zeros(len(directions))
        values[: len(roots)] = roots**2
        self.axes = axes @ directions.T * np.sqrt(values + shrink)
        self.outside = float(np.sqrt(shrink))

    def transform(self, points: np.ndarray) -> np.ndarray:
        """Return the whitened coordinates of rows, old or new."""
        turned = self.axes if self.basis is None else self.basis
        inner = _turn(points, self.centre, turned / self.spread[:, None])
        if self.basis is None:
            return inner
        scaled = points - self.centre
        scaled /= self.spread
        # A sum of squares that holds no copy of what may be millions of coordinates.
        outside = np.einsum("ij,ij->i", scaled, scaled) - (inner**2).sum(axis=1)
        outside = np.maximum(outside, 0.0)
        axes = _turn(inner, np.zeros(inner.shape[1]), self.axes)
        return np.column_stack([axes, self.outside * np.sqrt(outside)])


def _turn(points: np.ndarray, centre: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Return ``(points - centre) @ axes``; equal rows are equal whatever other rows there are."""
    return whiten_rows(np.ascontiguousarray(points), centre, np.ascontiguousarray(axes))


def span_rows(points: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (p, rank) of the space that rows (n, p) span, p >= n.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.pooled.metrics import span_rows
    >>> rows = np.array([[3.0, 0.0, 4.0], [6.0, 0.0, 8.0]])
    >>> np.abs(span_rows(rows)).round(2).tolist()
    [[0.6], [0.0], [0.8]]
    """
    values, axes = np.linalg.eigh(points @ points.T)
    is_kept = values > 1e-10 * values[-1]  # the others are rounding
    return points.T @ (axes[:, is_kept] / np.sqrt(values[is_kept]))


def _class_means(points: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    return np.array([points[labels == g].mean(axis=0) for g in range(n_classes)])


METRICS: dict[str, Any] = {
    "discriminant": Discriminant,
    "relevance": Relevance,
    "evidence": Evidence,
}
