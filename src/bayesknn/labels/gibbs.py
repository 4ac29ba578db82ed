"""Systematic-scan Gibbs sampler of the labels given (beta, k) (Sections 3.3 and 3.4).

Site i takes class g with probability proportional to ``exp(beta/k * a_g * sum_j w_ij 1[y_j = g])``.
The sums are the local fields. They are kept up to date as labels change, and each site holds
them as slots: positions in a table that was computed once, so that a neighbour's change moves a
slot by its weight and no exponential is taken in a sweep. With two classes a site has one slot,
which leads to a threshold for 64 random bits; with more it has one for each class, which leads to
the unnormalised probability of the class.

``w_ij = 1[j in N_k(i)] + 1[i in N_k(j)]`` is 0, 1 or 2: a mutual neighbour stands twice in the
lists of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import as_uniform, key_of_sweep, random_bits
from bayesknn.graph import NeighborGraph
from bayesknn.labels.mixing import PER_POINT, DrawInfo, check_run, split_run
from bayesknn.labels.swendsen_wang import start_labels
from bayesknn.model import BoltzmannModel
from bayesknn.model.boltzmann import check_setting

_ONE = np.uint64(1)


def gibbs_labels(
    model: BoltzmannModel,
    beta: float,
    k: int,
    *,
    key: np.uint64,
    n_draws: int = 1,
    n_warmup: int = 500,
    thin: int = 1,
    initial: Any = None,
    advance: Callable[[float], None] = lambda steps: None,
) -> tuple[np.ndarray, DrawInfo]:
    """Run one Gibbs chain and keep every ``thin``-th state after the warm-up.

    Parameters
    ----------
    model : BoltzmannModel
    beta : float
    k : int
    key : numpy.uint64
        From :func:`bayesknn._utils.random.spawn_keys`; the same key gives the same draws.
    n_draws : int
    n_warmup : int
        Sweeps before the first ``thin`` sweeps that count; the paper's 500 by default. They do
        not suffice where the chain is slow: compare runs from different ``initial`` labels.
    thin : int
        Sweeps from one draw to the next.
    initial : array-like of shape (n,) or int, optional
        Labels to start from, or one class for all points; independent and uniform by default.
    advance : callable, optional
        Called with the number of sweeps done since the last call.

    Returns
    -------
    labels : ndarray of shape (n_draws, n), uint8, or uint32 beyond 256 classes
    info : DrawInfo

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.gibbs import gibbs_labels
    >>> from bayesknn._utils.random import spawn_keys
    >>> from bayesknn.model import BoltzmannModel
    >>> ring = BoltzmannModel(NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]]), n_classes=3)
    >>> labels, info = gibbs_labels(ring, 1.0, 1, n_draws=4, key=spawn_keys(0, 1)[0])
    >>> labels.shape, info.n_sweeps
    ((4, 5), 504)
    """
    model, beta, k = check_setting(model, beta, k)
    key, n_draws, n_warmup, thin = check_run(key, n_draws, n_warmup, thin)
    n = model.n_points
    labels = start_labels(model, initial, key)
    sites = SiteConditionals(
        list_edges(model.graph, k), beta * model.common_weight / k,
        model.weights / model.common_weight, model.unequal_weight is not None,
    )  # fmt: skip
    draws = np.empty((n_draws, n), labels.dtype)
    edge_ends = np.zeros((n_draws, model.n_classes), np.int64)
    costs = n * (PER_POINT * model.n_classes + 2 * k), n
    for sweep, warmup, part in split_run(n_warmup, n_draws, thin, *costs, advance):
        run_gibbs(sites, labels, key, sweep, warmup, thin, draws[part], edge_ends[part])
    # An edge within a class was counted at both its ends.
    agreement = edge_ends @ model.weights / 2.0
    return draws, DrawInfo(n_warmup + n_draws * thin, agreement)


class Edges(NamedTuple):
    """The edges at each point of the graph of one k, in either direction.

    Attributes
    ----------
    starts : ndarray of shape (n + 1,), dtype int64
    points : ndarray, dtype uint32
        Entries ``starts[i] : starts[i] + degrees[i]`` are the other ends of the edges of i.
    degrees : ndarray of shape (n,), dtype uint32
        The sum over j of w_ij, that is k plus the number of points that have i as neighbour.
    """

    starts: np.ndarray
    points: np.ndarray
    degrees: np.ndarray


def list_edges(graph: NeighborGraph, k: int) -> Edges:
    """Take the edges of the graph of k."""
    starts, points, in_degree = graph.incidence
    return Edges(starts, points, np.uint32(k) + in_degree[k - 1])


class SiteConditionals(NamedTuple):
    """The conditionals of all sites at one (beta, k).

    Attributes
    ----------
    edges : Edges
    strength : float
        beta / k.
    weights : ndarray of shape (n_classes,)
    weighted : bool
        Whether the weights differ.
    """

    edges: Edges
    strength: float
    weights: np.ndarray
    weighted: bool


@kernel
def run_gibbs(sites, labels, key, sweep, n_warmup, thin, draws, edge_ends):
    """Make ``n_warmup`` sweeps, then ``thin`` sweeps for each row of ``edge_ends``.

    A run may be cut anywhere: what goes on is ``labels`` and the number of sweeps done, ``sweep``.
    ``edge_ends`` receives the ends of edges within each class, ``draws`` the labels if its rows
    have room for them.
    """
    if len(sites.weights) == 2:
        _run_two_classes(sites, labels, key, sweep, n_warmup, thin, draws, edge_ends)
    else:
        _run_many_classes(sites, labels, key, sweep, n_warmup, thin, draws, edge_ends)


@kernel
def _run_two_classes(sites, labels, key, sweep, n_warmup, thin, draws, edge_ends):
    edges, degrees = sites.edges, sites.edges.degrees
    table, bases = threshold_table(sites.strength, sites.weights, degrees, sites.weighted)
    slots = (bases + _count_ones(labels, edges)).astype(np.uint32)
    for draw in range(-1, len(edge_ends)):
        for _ in range(n_warmup if draw < 0 else thin):
            sweep_two(labels, slots, table, edges, key_of_sweep(key, sweep))
            sweep += _ONE
        if draw >= 0:
            for i in range(np.uint64(len(labels))):
                label = np.uint64(labels[i])
                ones = np.int64(slots[i]) - bases[i]
                edge_ends[draw, label] += ones if label == 1 else np.int64(degrees[i]) - ones
            draws[draw] = labels


@kernel
def _threshold(log_odds):
    """Of the 2**64 words, how many choose class 1: exact to a part in 2**53, and symmetric."""
    rarer = np.uint64(2.0**64 / (1.0 + np.exp(abs(log_odds))))
    if log_odds <= 0:
        return rarer
    largest = np.uint64(2**64 - 1)
    return largest if rarer == 0 else largest - rarer + _ONE


@kernel
def threshold_table(strength, weights, degrees, weighted):
    """Thresholds, and for each site the slot that it has when no neighbour is of class 1.

    With equal weights only the difference of the two counts matters, which is even or odd with
    the degree: two rows of the table serve every site. With class weights each degree that
    occurs has a row of its own.
    """
    n = len(degrees)
    largest = np.int64(degrees.max())
    bases = np.empty(n, np.int64)
    if not weighted:
        half = largest // 2 + 1
        size = 2 * half + 1
        table = np.empty(2 * size, np.uint64)
        for odd in range(2):
            for m in range(size):
                difference = 2 * (m - half) + odd
                table[odd * size + m] = _threshold(strength * weights[0] * difference)
        for i in range(n):
            parity = np.int64(degrees[i]) % 2
            bases[i] = parity * size + half - (np.int64(degrees[i]) + parity) // 2
        return table, bases
    row_starts = np.full(largest + 1, -1)
    size = np.int64(0)
    for i in range(n):
        if row_starts[degrees[i]] < 0:
            row_starts[degrees[i]] = size
            size += np.int64(degrees[i]) + 1
        bases[i] = row_starts[degrees[i]]
    table = np.empty(size, np.uint64)
    for degree in range(largest + 1):
        if row_starts[degree] >= 0:
            for ones in range(degree + 1):
                log_odds = strength * (weights[1] * ones - weights[0] * (degree - ones))
                table[row_starts[degree] + ones] = _threshold(log_odds)
    return table, bases


@kernel
def _count_ones(labels, edges):
    """Local field of class 1: the edges to neighbours that have it."""
    counts = np.zeros(len(labels), np.int64)
    for i in range(np.uint64(len(labels))):
        for e in range(edges.starts[i], edges.starts[i] + edges.degrees[i]):
            counts[i] += labels[edges.points[e]] == 1
    return counts


@kernel
def sweep_two(labels, slots, table, edges, stream):
    """Update every site of a chain of two classes."""
    starts, points, degrees = edges
    for i in range(np.uint64(len(labels))):
        label = np.uint8(random_bits(stream, i) < table[np.uint64(slots[i])])
        if label != labels[i]:
            # A step of 1 or -1 (modulo 2**32) rather than two loops: which cannot be predicted.
            step = np.uint32(label) - np.uint32(labels[i])
            labels[i] = label
            first = np.uint64(starts[i])
            for e in range(first, first + np.uint64(degrees[i])):
                slots[points[e]] += step


@kernel
def _weight_table(strength, weights, weighted, largest_degree, largest_exponent):
    """Unnormalised weights of a class by its count: a row for each class, or one for all.

    Where sums of exp could overflow the table holds logarithms, and sweeps take exponentials after
    all. Also returns whether it does, and how far apart the rows of two classes are.
    """
    n_rows = len(weights) if weighted else 1
    width = largest_degree + 1
    logarithmic = strength * weights.max() * largest_degree > largest_exponent
    table = np.empty(n_rows * width)
    for g in range(n_rows):
        for count in range(width):
            weight = strength * weights[g] * count
            table[g * width + count] = weight if logarithmic else math.exp(weight)
    return table, logarithmic, np.uint64(width if weighted else 0)


@kernel
def _first_slots(labels, n_classes, stride, edges):
    slots = np.zeros(len(labels) * n_classes, np.uint32)
    width = np.uint64(n_classes)
    for i in range(np.uint64(len(labels))):
        for g in range(width):
            slots[i * width + g] = g * stride
        for e in range(edges.starts[i], edges.starts[i] + edges.degrees[i]):
            slots[i * width + np.uint64(labels[edges.points[e]])] += np.uint32(1)
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
    target = as_uniform(bits) * total
    label = np.uint64(0)
    for g in range(width - _ONE):
        label += np.uint64(sums[g] <= target)
    return label


@kernel
def _sweep_many(labels, slots, table, logarithmic, edges, sums, stream):
    starts, points, degrees = edges
    width = np.uint64(len(sums))
    for i in range(np.uint64(len(labels))):
        bits = random_bits(stream, i)
        label = _choose_of_many(table, logarithmic, slots, i * width, sums, bits)
        old = np.uint64(labels[i])
        if label != old:
            labels[i] = label
            first = np.uint64(starts[i])
            for e in range(first, first + np.uint64(degrees[i])):
                at = np.uint64(points[e]) * width
                slots[at + old] -= np.uint32(1)
                slots[at + label] += np.uint32(1)


@kernel
def _run_many_classes(sites, labels, key, sweep, n_warmup, thin, draws, edge_ends):
    edges, n_classes = sites.edges, len(sites.weights)
    table, logarithmic, stride = _weight_table(
        sites.strength, sites.weights, sites.weighted,
        np.int64(edges.degrees.max()), 600.0,
    )  # fmt: skip
    slots = _first_slots(labels, n_classes, stride, edges)
    sums, width = np.empty(n_classes), np.uint64(n_classes)
    for draw in range(-1, len(edge_ends)):
        for _ in range(n_warmup if draw < 0 else thin):
            stream = key_of_sweep(key, sweep)
            _sweep_many(labels, slots, table, logarithmic, edges, sums, stream)
            sweep += _ONE
        if draw >= 0:
            for i in range(np.uint64(len(labels))):
                label = np.uint64(labels[i])
                ends = np.int64(slots[i * width + label]) - np.int64(label * stride)
                edge_ends[draw, label] += ends
            draws[draw] = labels
