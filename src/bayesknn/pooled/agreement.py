"""Agreement of the parts of a pool that was read from a file, before compiled code reads any.

Compiled code does not look where it reads. The sizes of all parts therefore follow here from the
columns, the classes and the training labels, and every other part is checked against these: what a
part says of its own size is never taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.checks import check_indices
from bayesknn.graph.metrics import make_metric
from bayesknn.pooled.boosting import Trees
from bayesknn.pooled.columns import Table
from bayesknn.pooled.features import Neighborhoods
from bayesknn.pooled.kernels import Kernel
from bayesknn.pooled.member import Member
from bayesknn.pooled.metrics import METRICS
from bayesknn.pooled.views import VIEWS, BoostedView, EstimatorView, NeighborView


def check_parts(pool: Any) -> None:
    """Raise ValueError if the parts of a fitted pool do not fit each other.

    Parameters
    ----------
    pool : PooledNeighborsClassifier
        As it was read; its parts may be of any type.
    """
    try:
        _check_parts(pool)
    except ValueError:
        raise
    except Exception as error:
        # A part of another type fails in any way.
        raise ValueError(f"the saved model was changed: {error!r}") from error


def _check_parts(pool: Any) -> None:
    for part in pool._columns.parts:
        if part is not None and part["levels"] is not None:
            _require(part["shares"], (len(part["levels"]),), "shares")
    # Two rows, which no array of one row stands for.
    table, n_classes = pool._columns.make_central(2), len(pool.classes_)
    leader = pool._views[pool._leader].space
    check_indices(leader.labels, "labels", n_classes - 1)
    n, n_settings = len(leader.labels), {}
    for name, view in pool._views.items():
        if name in METRICS:
            _agree(type(view) is NeighborView and type(view.metric) is METRICS[name], name)
            _check_space(view.space, leader.labels, n_classes, view.metric.transform(table))
            n_settings[name] = len(view.space.k_values)
        elif name == "boosted":
            _agree(type(view) is BoostedView, name)
            n_settings[name] = _check_trees(view, table, n_classes)
        elif name not in VIEWS:
            _agree(type(view) is EstimatorView and name in dict(_find_pairs(pool.members)), name)
            _require(view.features(table), (1, 2, n_classes, 1), name)
            n_settings[name] = 1
        else:
            _agree(type(view) is VIEWS[name], name)
            n_settings[name] = len(view.slopes)
            n_outputs = 1 if n_classes == 2 else n_classes
            _require(view.starts, (n_settings[name], n_outputs), "starts")
            _agree(view.slopes.shape[1] == n_outputs, "slopes")
            _agree(name != "smooth" or type(view.kernel) is Kernel, name)
            _require(view.features(table), (n_settings[name], 2, n_classes, 1), name)
    names = pool._members.keys()
    known = VIEWS.keys() | dict(_find_pairs(pool.members)).keys()
    _agree(names == pool.pool_weights_.keys() and names <= known, "members")
    for name, member in pool._members.items():
        _agree(type(member) is Member and np.isfinite(pool.pool_weights_[name]), name)
        if name in n_settings:
            _require(member.alpha, (n_settings[name], n_classes), "alpha")
            _require(member.b, (n_settings[name], 1 + (name in METRICS)), "b")
            _require(member.k_weights, (n_settings[name],), "k_weights")
        else:
            _agree(pool.pool_weights_[name] == 0, name)
    check_indices(pool._reach_at, "place", n_settings[pool._leader] - 1)
    n_given, left_out = len(pool._labels), pool._left_out
    check_indices(pool._labels, "labels", n_classes - 1)
    _require(check_indices(pool._order.rows, "rows", n_given - 1), (n,), "rows")
    _require(check_indices(pool._order.classes, "classes", n_classes - 1), (n_classes,), "classes")
    for weights in (pool._weights, pool._score_weights):
        _require(weights, (n_given,), "weights")
    _require(left_out.distances, (n_given,), "leave-one-out distances")
    of_class = [left_out.probabilities, left_out.variances]
    of_class += [] if left_out.copies is None else [left_out.copies]
    for array in of_class:
        _require(array, (n_given, n_classes), "leave-one-out probabilities")
    if (copies := pool._interval_model.copies) is not None:
        n_distinct = len(copies.values)
        _require(copies.values, (n_distinct, table.values.shape[1]), "copies")
        _require(copies.totals, (n_distinct, n_classes), "copies")
        _require(copies.squares, (n_distinct,), "copies")
        _require(check_indices(copies.place, "copies", n_distinct - 1), (n,), "copies")
        if copies.groups is not None:
            _require(check_indices(copies.groups, "groups", n - 1), (n,), "groups")
    if pool.groups_ is not None:
        _require(check_indices(pool.groups_, "groups", n_given - 1), (n_given,), "groups")


def _find_pairs(members: Any) -> list[tuple[str, Any]]:
    """Return the members that the user gave, as names and classifiers."""
    return [member for member in members if isinstance(member, tuple)]


def _check_space(
    space: Neighborhoods, labels: np.ndarray, n_classes: int, rows: np.ndarray
) -> None:
    """Check a metric's training points against the labels, and against rows of the metric."""
    n = len(labels)
    searched = space.searched
    _agree(np.array_equal(searched.labels, labels), "labels")
    # A list of k + 1 neighbours has at most n - 1, and none is longer than the last.
    check_indices(space.k_values, "k_values", min(int(space.k_values[-1]), n - 2), 1)
    _require(space.weights, (n,), "weights")
    _require(space.reach, (n, len(space.k_values)), "reach")
    _agree(searched.norm == "euclidean", "norm")
    _agree(searched.n_classes == n_classes, "classes")
    _require(searched.index.points, (n, rows.shape[1]), "points")
    _agree(repr(searched.index.metric) == repr(make_metric(searched.norm)), "metric")


def _check_trees(view: BoostedView, table: Table, n_classes: int) -> int:
    """Check boosted trees, which must end, and return how many numbers of rounds there are."""
    points, source = table.in_order()
    _agree(type(view.trees) is Trees and np.array_equal(view.source, source), "source")
    n_outputs = 1 if n_classes == 2 else n_classes
    _require(view.start, (n_outputs,), "start")
    n_trees, n_nodes = view.trees.values.shape
    for name, array in view.trees._asdict().items():
        _require(array, (n_trees, n_nodes), name)
    check_indices(view.trees.features, "features", points.shape[1] - 1)
    children = check_indices(view.trees.children, "children", n_nodes - 2)
    _agree(bool(((children == 0) | (children > np.arange(n_nodes))).all()), "children")
    check_indices(view.rounds, "rounds", n_trees // n_outputs, 1)
    return len(view.rounds)


def _require(array: Any, shape: tuple[int, ...], name: str) -> None:
    """Raise ValueError unless a part is an array of numbers of a shape."""
    is_array = isinstance(array, np.ndarray) and array.dtype.kind in "fiu"
    if not is_array or array.shape != shape:
        actual = getattr(array, "shape", type(array).__name__)
        raise ValueError(f"the saved model was changed: {name} must be {shape}, not {actual}")


def _agree(condition: bool, name: str) -> None:
    """Raise ValueError with the name of a part that does not fit the others."""
    if not condition:
        raise ValueError(f"the saved model was changed: {name!r} does not fit the other parts")
