"""The model as a value: which labels there are, who their neighbours are, what an edge weighs.

``f(y | beta, k) = exp(beta / k * S_k(y)) / Z(beta, k)`` (Section 2.2) is one distribution for each
beta and k; what they have in common is the graph, the number of classes, the class weights and the
labels that are held fixed. Samplers, likelihoods and posteriors take these together, checked once.

Its full conditionals (equation for f(y_i | y_-i) in Section 2.2) are ``P(y_i = g | rest)``
proportional to ``exp(beta / k * a_g * sum_j w_ij 1[y_j = g])``, where w_ij counts the directed
edges between i and j in both directions, so that mutual neighbours count twice, and a_g is 1
without class weights. The predictive rule has the same form (eq. knn-pred).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bayesknn._utils.checks import (
    as_floats,
    check_count,
    check_indices,
    check_label_draws,
    check_label_vector,
    label_dtype,
    show,
)
from bayesknn._utils.jit import kernel
from bayesknn.graph import Graph, NeighborGraph

FREE = -1


@dataclass(frozen=True, eq=False)
class BoltzmannModel:
    """The distribution of the labels on a neighbour graph, given beta and k.

    Parameters
    ----------
    graph : NeighborGraph
        Another :class:`~bayesknn.graph.Graph` serves the two products of conditionals.
    n_classes : int
        At least 2.
    class_weight : array-like of shape (n_classes,), optional
        The weights a_g: a directed edge between two points of class g counts a_g in place of 1.
    fixed : array-like of shape (n,), optional
        The label of each point whose label is given, and -1 for every point that is free. The
        distribution is then that of the free labels given the fixed ones.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import BoltzmannModel
    >>> graph = NeighborGraph.from_points([[0.0], [1.0], [3.0], [7.0]], k_max=2)
    >>> model = BoltzmannModel(graph, n_classes=2)
    >>> model.agreement([0, 0, 0, 1]).tolist()
    [3.0, 6.0]
    >>> model.conditional([0, 0, 0, 1], beta=1.0, k=1)[3].round(4).tolist()
    [0.7311, 0.2689]
    >>> model.fix([0, -1, -1, 1]).is_free.tolist()
    [False, True, True, False]
    """

    graph: NeighborGraph
    n_classes: int
    class_weight: np.ndarray | None = None
    fixed: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.graph, Graph):
            raise ValueError(f"graph must be a NeighborGraph, got {show(self.graph)}")
        n_classes = check_count(self.n_classes, "n_classes", 2)
        object.__setattr__(self, "n_classes", n_classes)
        weight = check_class_weight(self.class_weight, n_classes)
        object.__setattr__(self, "class_weight", _freeze(weight))
        object.__setattr__(self, "fixed", _freeze(self._check_fixed(self.fixed)))

    @property
    def n_points(self) -> int:
        """Number of points, n."""
        return self.graph.n_points

    @property
    def k_max(self) -> int:
        """Largest k of the graph."""
        return self.graph.k_max

    @property
    def label_dtype(self) -> type[np.unsignedinteger]:
        """The unsigned type in which kernels keep labels."""
        return label_dtype(self.n_classes)

    @property
    def unequal_weight(self) -> np.ndarray | None:
        """The class weights where they differ, None where all are the same.

        Classes of one common weight a are the plain model at ``a * beta``, which is faster:
        kernels take ``unequal_weight`` and :attr:`common_weight` times beta.
        """
        weight = self.class_weight
        return None if weight is None or np.all(weight == weight[0]) else weight

    @property
    def common_weight(self) -> float:
        """The weight that all classes share; 1 where there is none, or where they differ."""
        if self.class_weight is None or self.unequal_weight is not None:
            return 1.0
        return float(self.class_weight[0])

    @property
    def weights(self) -> np.ndarray:
        """The class weights, ones where none were given."""
        return np.ones(self.n_classes) if self.class_weight is None else self.class_weight

    @property
    def is_free(self) -> np.ndarray:
        """Which points have a label to be drawn, of shape (n,)."""
        if self.fixed is None:
            return np.ones(self.n_points, bool)
        return self.fixed == FREE

    @cached_property
    def fingerprint(self) -> str:
        """A short text that stands for the values of the model."""
        return fingerprint(
            self.graph.identity, self.n_classes, self.weights, self.is_free,
            np.empty(0) if self.fixed is None else self.fixed,
        )  # fmt: skip

    def fix(self, labels: Any) -> BoltzmannModel:
        """Return the same model with these labels held fixed, -1 where a point is free."""
        return replace(self, fixed=labels)

    def check_labels(self, labels: Any) -> np.ndarray:
        """Return one label for each point as the kernels expect them, or say what is wrong."""
        return check_label_vector(labels, self.n_points, self.n_classes)

    def agreement(self, labels: Any, k: int | None = None) -> Any:
        """Return S_k(labels): the directed edges whose ends share a label, weighted by class.

        Parameters
        ----------
        labels : array-like of shape (n,) or (n_draws, n)
            Integers from 0 up; a batch of label vectors is counted row by row.
        k : int, optional
            Without it, every k from 1 to ``k_max`` along the last axis.

        Returns
        -------
        float, or ndarray of shape (n_draws,), (k_max,) or (n_draws, k_max), dtype float64
        """
        n_ranks = self.k_max if k is None else self.graph.check_k(k)
        checked = check_label_draws(labels, self.n_points, self.n_classes)
        # The edges of k are the first k ranks, so the others need not be looked at.
        ends = [(r, r + 1) for r in range(n_ranks)] if k is None else [(0, n_ranks)]
        neighbors, weight = self.graph.neighbors, self.class_weight
        batch = np.atleast_2d(checked)
        sums = [sum_agreement(neighbors, each, weight, *ranks) for each in batch for ranks in ends]
        totals = np.cumsum(np.array(sums).reshape(len(batch), len(ends)), axis=1)
        if k is not None:
            totals = totals[:, -1]
        return totals if checked.ndim == 2 else totals[0]

    def conditional(self, labels: Any, beta: float, k: int, direction: str = "both") -> np.ndarray:
        """Return the distribution of each label given all the others, of shape (n, n_classes).

        ``direction="forward"`` is the rule of Holmes and Adams, which is no conditional of a joint
        distribution.
        """
        counts = self.graph.counts(self.check_labels(labels), self.n_classes, k, direction)
        return class_probabilities(counts, beta, k, self.class_weight)

    def _check_fixed(self, fixed: Any) -> np.ndarray | None:
        if fixed is None:
            return None
        values = check_indices(fixed, "fixed", self.n_classes - 1, FREE)
        free = values == FREE
        if values.shape == (self.n_points,) and free.all():
            return None
        checked = self.check_labels(np.where(free, 0, values))
        return np.where(free, FREE, checked.astype(np.int64))


def as_model(
    graph: Any, n_classes: int | None = None, class_weight: Any = None, *, may_fix: bool = False
) -> BoltzmannModel:
    """Make a model of what a public function was given, or return the model it was given.

    Parameters
    ----------
    graph : NeighborGraph or BoltzmannModel
        A model says all there is to say: the other arguments are then left out.
    n_classes, class_weight
        As in :class:`BoltzmannModel`; ``n_classes`` is needed with a graph.
    may_fix : bool
        Whether to accept a model with fixed labels. Callers that would redraw those leave it False.

    Returns
    -------
    BoltzmannModel

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model import as_model
    >>> model = as_model(NeighborGraph.from_neighbors([[1, 2, 0]]), n_classes=3)
    >>> as_model(model) is model
    True
    """
    if isinstance(graph, BoltzmannModel):
        if class_weight is not None or n_classes not in (None, graph.n_classes):
            raise ValueError("a BoltzmannModel has its classes and weights; pass no others")
        if graph.fixed is not None and not may_fix:
            raise ValueError("labels of the BoltzmannModel are fixed, which is not possible here")
        return graph
    if n_classes is None:
        raise ValueError("n_classes must be given with a graph")
    return BoltzmannModel(graph, n_classes, class_weight)


def check_setting(
    graph: Any, beta: Any, k: Any, n_classes: int | None = None, class_weight: Any = None,
    *, may_fix: bool = False,
) -> tuple[BoltzmannModel, float, int]:  # fmt: skip
    """Return the model of :func:`as_model`, one beta and one k of its graph, all checked.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.model.boltzmann import check_setting
    >>> check_setting(NeighborGraph.from_neighbors([[1, 2, 0]]), 1.0, 2, n_classes=3)
    Traceback (most recent call last):
    ...
    ValueError: k must be an integer in 1..1 (k_max of this graph), got 2
    """
    model = as_model(graph, n_classes, class_weight, may_fix=may_fix)
    return model, check_beta(beta), model.graph.check_k(k)


def class_probabilities(counts: Any, beta: float, k: int, class_weight: Any = None) -> np.ndarray:
    """Turn class counts into class probabilities: P(g) proportional to exp(beta / k a_g count_g).

    Parameters
    ----------
    counts : array-like of shape (..., n_classes)
        Members of each class among the neighbours. Forward neighbours alone make it the rule of
        Holmes and Adams (eq. knn-intuit), forward and reverse ones together that of the coherent
        model (eqs. knn-cond and knn-pred).
    beta : float
    k : int
    class_weight : array-like of shape (n_classes,), optional
        As in :class:`BoltzmannModel`.

    Returns
    -------
    ndarray of the shape of ``counts``

    Examples
    --------
    >>> from bayesknn.model import class_probabilities
    >>> class_probabilities([3, 1], beta=2.0, k=4).round(4)
    array([0.7311, 0.2689])
    """
    beta, k, fields = check_beta(beta), check_count(k, "k"), as_floats(counts, "counts")
    if fields.ndim == 0 or fields.shape[-1] == 0:
        raise ValueError(f"counts must have shape (..., n_classes), got {fields.shape}")
    weights = check_class_weight(class_weight, fields.shape[-1])
    if weights is not None:
        fields = fields * weights
    relative = np.exp(beta / k * (fields - fields.max(axis=-1, keepdims=True)))
    return relative / relative.sum(axis=-1, keepdims=True)


def fingerprint(*parts: Any) -> str:
    """Hash arrays, numbers and strings to a short text that stands for their values.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.model.boltzmann import fingerprint
    >>> fingerprint(np.arange(3), "a") == fingerprint(np.arange(3), "a")
    True
    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(4))
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        if array.dtype.hasobject:
            raise TypeError(f"cannot take the fingerprint of {type(part).__name__}")
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8))
    return digest.hexdigest()[:32]


def _freeze(array: np.ndarray | None) -> np.ndarray | None:
    """Return a copy that nobody can change."""
    if array is not None:
        array = array.copy()
        array.flags.writeable = False
    return array


def check_beta(beta: Any, name: str = "beta") -> float:
    """Return one strength as a float, or say what is wrong with it."""
    if np.ndim(beta) != 0:
        raise ValueError(f"{name} must be one number, got an array of shape {np.shape(beta)}")
    return float(check_betas(beta, name))


def check_betas(beta: Any, name: str = "beta") -> np.ndarray:
    """Return strengths as a float64 array of the shape they came in."""
    values = as_floats(beta, name)
    bad = ~np.isfinite(values)
    if bad.any():
        raise ValueError(f"{name} must be finite, got {values[bad][0]}")
    bad = values < 0
    if bad.any():
        raise ValueError(f"{name} must be at least 0, got {values[bad][0]}")
    return values


def check_class_weight(class_weight: Any, n_classes: int) -> np.ndarray | None:
    """Return the class weights a_g as a float64 array, or ``None`` when there are none."""
    if class_weight is None:
        return None
    weights = np.ascontiguousarray(as_floats(class_weight, "class_weight"))
    if weights.shape != (n_classes,):
        raise ValueError(
            f"class_weight must hold {n_classes} numbers, one for each class, "
            f"got an array of shape {np.shape(class_weight)}"
        )
    bad = ~(np.isfinite(weights) & (weights > 0))
    if bad.any():
        g = int(np.argmax(bad))
        raise ValueError(
            f"class_weight must be finite and positive, got {weights[g]} for class {g}"
        )
    return weights


@kernel
def sum_agreement(neighbors, labels, class_weight, first, last):
    """Sum the weights of the agreeing edges of the ranks ``first..last - 1``, for compiled code.

    ``class_weight`` is None where an edge counts 1.
    """
    total = 0.0
    for rank in range(first, last):
        row = neighbors[rank]
        # Settled when the function is compiled.
        if class_weight is None:
            count = np.uint32(0)
            for i in range(np.uint64(labels.size)):
                count += np.uint32(labels[i] == labels[row[i]])
            total += np.float64(count)
        else:
            # Integers first, so that the sum does not depend on the order of the points.
            counts = np.zeros(class_weight.size, np.int64)
            for i in range(np.uint64(labels.size)):
                counts[labels[i]] += labels[i] == labels[row[i]]
            for g in range(class_weight.size):
                total += class_weight[g] * counts[g]
    return total
