"""Systematic-scan Gibbs sampler of the labels given (beta, k) (Section 3.2 and Section 3.3).

Site i takes class g with probability proportional to ``exp(beta/k * a_g * sum_j w_ij 1[y_j = g])``.
The sums are the local fields. They are kept up to date as labels change, and each site holds
them as slots: positions in a table that was computed once, so that a neighbour's change moves a
slot by its weight and no exponential is taken in a sweep. Here a slot leads to the unnormalised
probability of one class; ``gibbs_two`` does two classes with one slot a site.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesknn._jit import kernel
from bayesknn._validation import check_count
from bayesknn.graph import NeighborGraph
from bayesknn.labels.autocorrelation import autocorrelation_time
from bayesknn.labels.couplings import list_couplings
from bayesknn.labels.gibbs_two import run_two_classes
from bayesknn.labels.random import _bits, _sweep_key, _uniform
from bayesknn.model.checks import (
    check_beta,
    check_class_weight,
    check_label_vector,
    check_n_classes,
    label_dtype,
)

# The starting labels are drawn as if by the sweep before the first.
_START = np.uint64(2**64 - 1)
_ONE = np.uint64(1)
# exp() of more than this is not put in a table: sums of it could overflow.
_LARGEST_EXPONENT = 600.0


class GibbsInfo(NamedTuple):
    """What a diagnostic needs to know of a Gibbs run.

    Attributes
    ----------
    n_sweeps : int
        Sweeps made, warm-up included.
    agreement : ndarray of shape (n_draws,), dtype float64
        S_k of each draw; with class weights, the sum over g of a_g times the edges within g.
    autocorrelation_time : float
        Integrated autocorrelation time of ``agreement``, in draws; NaN if it never moved.
    """

    n_sweeps: int
    agreement: np.ndarray
    autocorrelation_time: float


def gibbs_labels(
    graph: NeighborGraph,
    beta: float,
    k: int,
    n_classes: int,
    *,
    n_draws: int = 1,
    n_warmup: int = 500,
    thin: int = 1,
    initial: np.ndarray | None = None,
    class_weight: np.ndarray | None = None,
    key: np.uint64,
    report: Callable[[float], None] = lambda steps: None,
) -> tuple[np.ndarray, GibbsInfo]:
    """Run one Gibbs chain and keep every ``thin``-th state after the warm-up.

    Parameters
    ----------
    graph : NeighborGraph
    beta : float
    k : int
    n_classes : int
    n_draws : int
    n_warmup : int
        Sweeps before the first ``thin`` sweeps that count; the paper's 500 by default. They do
        not suffice where the chain is slow: compare runs from different ``initial`` labels.
    thin : int
        Sweeps from one draw to the next.
    initial : ndarray of shape (n,), optional
        Labels to start from; drawn uniformly if not given.
    class_weight : ndarray of shape (n_classes,), optional
        The weights a_g.
    key : numpy.uint64
        From :func:`bayesknn.labels.random.spawn_keys`; the same key gives the same draws.
    report : callable, optional
        ``report(sweeps)``: so many are done, all of them at the end.

    Returns
    -------
    labels : ndarray of shape (n_draws, n), uint8, or uint32 beyond 256 classes
    info : GibbsInfo

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.gibbs import gibbs_labels
    >>> from bayesknn.labels.random import spawn_keys
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> labels, info = gibbs_labels(ring, 1.0, 1, 3, n_draws=4, key=spawn_keys(0, 1)[0])
    >>> labels.shape, info.n_sweeps
    ((4, 5), 504)
    """
    beta, k, n_classes = check_beta(beta), graph.check_k(k), check_n_classes(n_classes)
    n_draws = check_count(n_draws, "n_draws")
    n_warmup = check_count(n_warmup, "n_warmup", low=0)
    thin = check_count(thin, "thin")
    class_weight = check_class_weight(class_weight, n_classes)
    couplings = list_couplings(graph, k)
    labels = np.empty(graph.n_points, label_dtype(n_classes))
    if initial is None:
        _draw_start(labels, np.uint64(n_classes), np.uint64(key))
    else:
        labels[:] = check_label_vector(initial, graph.n_points, n_classes)
    draws = np.empty((n_draws, graph.n_points), labels.dtype)
    edge_ends = np.zeros((n_draws, n_classes), np.int64)
    run = (np.uint64(key), np.uint64(n_warmup), np.uint64(thin), draws, edge_ends)
    if n_classes == 2:
        run_two_classes(couplings, beta / k, class_weight, labels, run)
    else:
        _run_many_classes(couplings, beta / k, n_classes, class_weight, labels, run)
    # An edge within a class was counted at both its ends.
    weights = np.ones(n_classes) if class_weight is None else class_weight
    agreement = edge_ends @ weights / 2.0
    time = autocorrelation_time(agreement)
    n_sweeps = n_warmup + n_draws * thin
    report(n_sweeps)
    return draws, GibbsInfo(n_sweeps, agreement, time)


def _run_many_classes(couplings, strength, n_classes, class_weight, labels, run):
    """Build the table and the slots of any number of classes, and run."""
    weights = np.ones(1) if class_weight is None else np.asarray(class_weight, np.float64)
    table, logarithmic = _weight_table(strength * weights, int(couplings.degrees.max()))
    stride = np.uint64(table.shape[1] if len(table) > 1 else 0)
    slots = _first_slots(labels, n_classes, stride, *couplings[:3])
    _run_many(labels, slots, table.ravel(), logarithmic, stride, *couplings[:3], *run)


@kernel
def _draw_start(labels, n_classes, key):
    """Uniform labels, from a stream that no sweep uses."""
    stream = _sweep_key(key, _START)
    for i in range(np.uint64(len(labels))):
        labels[i] = ((_bits(stream, i) >> np.uint64(32)) * n_classes) >> np.uint64(32)


def _weight_table(strengths, largest_degree):
    """Unnormalised weights of a class by its count: a row for each class, or one for all.

    Beyond the range of exp the table holds logarithms, and sweeps take exponentials after all.
    """
    table = np.multiply.outer(strengths, np.arange(largest_degree + 1.0))
    logarithmic = bool(table.max() > _LARGEST_EXPONENT)
    return table if logarithmic else np.exp(table), logarithmic


@kernel
def _first_slots(labels, n_classes, stride, starts, single_starts, points):
    slots = np.zeros(len(labels) * n_classes, np.uint32)
    width = np.uint64(n_classes)
    for i in range(np.uint64(len(labels))):
        for g in range(width):
            slots[i * width + g] = g * stride
        for e in range(starts[i], starts[i + _ONE]):
            step = np.uint32(2 if e < single_starts[i] else 1)
            slots[i * width + np.uint64(labels[points[e]])] += step
    return slots


@kernel
def _choose_of_many(table, logarithmic, slots, first, sums, bits):
    """Invert the cumulated weights of a site whose slots begin at ``first``."""
    width = np.uint64(len(sums))
    largest = 0.0
    if logarithmic:
        for g in range(width):
            largest = max(largest, table[slots[first + g]])
    total = 0.0
    for g in range(width):
        weight = table[slots[first + g]]
        total += np.exp(weight - largest) if logarithmic else weight
        sums[g] = total
    target = _uniform(bits) * total
    label = np.uint64(0)
    for g in range(width - _ONE):
        label += np.uint64(sums[g] <= target)
    return label


@kernel
def _sweep_many(
    labels, slots, table, logarithmic, starts, single_starts, points, sums, sweep_key
):  # fmt: skip
    two, one = np.uint32(2), np.uint32(1)
    width = np.uint64(len(sums))
    for i in range(np.uint64(len(labels))):
        label = _choose_of_many(table, logarithmic, slots, i * width, sums, _bits(sweep_key, i))
        old = np.uint64(labels[i])
        if label != old:
            labels[i] = label
            for e in range(starts[i], single_starts[i]):
                first = np.uint64(points[e]) * width
                slots[first + old] -= two
                slots[first + label] += two
            for e in range(single_starts[i], starts[i + _ONE]):
                first = np.uint64(points[e]) * width
                slots[first + old] -= one
                slots[first + label] += one


@kernel
def _run_many(
    labels, slots, table, logarithmic, stride, starts, single_starts, points,
    key, n_warmup, thin, draws, edge_ends,
):  # fmt: skip
    width = np.uint64(edge_ends.shape[1])
    sums = np.empty(edge_ends.shape[1])
    sweep = np.uint64(0)
    for draw in range(np.uint64(len(draws))):
        while sweep < n_warmup + (draw + _ONE) * thin:
            stream = _sweep_key(key, sweep)
            _sweep_many(
                labels, slots, table, logarithmic, starts, single_starts, points, sums, stream
            )
            sweep += _ONE
        for i in range(np.uint64(len(labels))):
            label = np.uint64(labels[i])
            draws[draw, i] = labels[i]
            edge_ends[draw, label] += np.int64(slots[i * width + label]) - np.int64(label * stride)
