"""Systematic-scan Gibbs sampler of the labels given (beta, k) (Section 3.2 and Section 3.3).

Site i takes class g with probability proportional to ``exp(beta/k * a_g * sum_j w_ij 1[y_j = g])``.
The sums are the local fields. They are kept up to date as labels change, and each site holds
them as slots: positions in a table that was computed once, so that a neighbour's change moves a
slot by its weight and no exponential is taken in a sweep. With two classes a site has one slot,
which leads to a threshold for 64 random bits; with more it has one for each class, which leads to
the unnormalised probability of the class.

``w_ij = 1[j in N_k(i)] + 1[i in N_k(j)]`` is 0, 1 or 2. Where the lists of the graph hold a
mutual neighbour twice, here every neighbour stands once, the mutual ones first, so that a sweep
touches about half as many points at large k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_count
from bayesknn._utils.jit import kernel
from bayesknn._utils.random import START_SWEEP, as_uniform, key_of_sweep, random_bits, spawn_keys
from bayesknn.graph import NeighborGraph
from bayesknn.labels.mixing import PER_POINT, autocorrelation_time, split_run
from bayesknn.model import BoltzmannModel
from bayesknn.model.checks import check_beta, check_betas

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
    model: BoltzmannModel,
    beta: float,
    k: int,
    *,
    key: np.uint64,
    n_draws: int = 1,
    n_warmup: int = 500,
    thin: int = 1,
    initial: Any = None,
    report: Callable[[float], None] = lambda steps: None,
) -> tuple[np.ndarray, GibbsInfo]:
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
    initial : array-like of shape (n,), optional
        Labels to start from; drawn uniformly if not given.
    report : callable, optional
        ``report(sweeps)``: so many more are done.

    Returns
    -------
    labels : ndarray of shape (n_draws, n), uint8, or uint32 beyond 256 classes
    info : GibbsInfo

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
    beta, n_draws = check_beta(beta), check_count(n_draws, "n_draws")
    run = _GibbsRun(model, k, check_count(n_warmup, "n_warmup", low=0), check_count(thin, "thin"))
    draws = np.empty((n_draws, model.n_points), model.label_dtype)
    labels = run.start(initial, key)
    agreement = run.follow(labels, beta, np.uint64(key), n_draws, draws, report)
    n_sweeps = run.n_warmup + n_draws * run.thin
    return draws, GibbsInfo(n_sweeps, agreement, autocorrelation_time(agreement))


def gibbs_chains(
    model: BoltzmannModel,
    betas: Any,
    k: int,
    *,
    key: np.uint64,
    n_sweeps: int,
    n_warmup: int = 500,
    initial: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Run one Gibbs chain for each beta, all on the same graph, and follow S_k.

    Parameters
    ----------
    model : BoltzmannModel
    betas : array-like of shape (n_chains,)
        The strength of each chain.
    k : int
    key : numpy.uint64
        A chain depends on the key, its place among the betas and its own beta, and on no other.
    n_sweeps : int
        Sweeps after the warm-up; S_k is kept after each of them.
    n_warmup : int
    initial : array-like of shape (n,), optional
        Labels to start from; drawn uniformly and independently if not given.

    Returns
    -------
    labels : ndarray of shape (n_chains, n)
        The last state of each chain.
    agreement : ndarray of shape (n_sweeps, n_chains), dtype float64
        S_k of each chain after each sweep that counts, with class weights if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels import gibbs_chains, spawn_keys
    >>> from bayesknn.model import BoltzmannModel
    >>> ring = BoltzmannModel(NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]]), n_classes=2)
    >>> labels, agreement = gibbs_chains(
    ...     ring, np.linspace(0.0, 2.0, 5), 1, n_sweeps=1000, key=spawn_keys(0, 1)[0]
    ... )
    >>> labels.shape, bool(agreement[:, 0].mean() < agreement[:, -1].mean())
    ((5, 5), True)
    """
    betas = np.atleast_1d(check_betas(betas, "betas")).ravel()
    if betas.size == 0:
        raise ValueError("betas is empty: give at least one beta")
    n_sweeps = check_count(n_sweeps, "n_sweeps")
    run = _GibbsRun(model, k, check_count(n_warmup, "n_warmup", low=0), thin=1)
    keys = spawn_keys(int(key), len(betas))
    labels = np.stack([run.start(initial, chain_key) for chain_key in keys])
    not_kept = np.empty((n_sweeps, 0), labels.dtype)
    series = [
        run.follow(row, float(beta), chain_key, n_sweeps, not_kept)
        for row, beta, chain_key in zip(labels, betas, keys, strict=True)
    ]
    return labels, np.stack(series, axis=1)


class _GibbsRun:
    """What chains on one graph of k share: its neighbours, and how long they run."""

    def __init__(self, model: BoltzmannModel, k: int, n_warmup: int, thin: int):
        model.refuse_fixed("Gibbs sampling")
        self.model, self.k = model, model.graph.check_k(k)
        self.n_warmup, self.thin = n_warmup, thin
        self.neighbors = list_symmetric_neighbors(model.graph, self.k)

    def start(self, initial: Any, key: np.uint64) -> np.ndarray:
        """Return the labels that a chain starts from."""
        if initial is not None:
            return self.model.check_labels(initial).astype(self.model.label_dtype)
        labels = np.empty(self.model.n_points, self.model.label_dtype)
        draw_start(labels, np.uint64(self.model.n_classes), np.uint64(key))
        return labels

    def follow(
        self,
        labels: np.ndarray,
        beta: float,
        key: np.uint64,
        n_draws: int,
        draws: np.ndarray,
        report: Callable[[float], None] = lambda steps: None,
    ) -> np.ndarray:
        """Run a chain on ``labels``, in place; return S_k of its draws and keep them in ``draws``.

        Rows of ``draws`` that are empty keep nothing.
        """
        model, n = self.model, self.model.n_points
        law = GibbsLaw(
            self.neighbors, beta * model.common_weight / self.k,
            model.weights / model.common_weight, model.unequal_weight is not None,
        )  # fmt: skip
        edge_ends = np.zeros((n_draws, model.n_classes), np.int64)
        per_sweep = PER_POINT * n * model.n_classes + len(self.neighbors.points)
        sweep = 0
        for n_warmup, first, last in split_run(self.n_warmup, n_draws, self.thin, per_sweep, n):
            run_gibbs(
                law, labels, key, np.uint64(sweep), n_warmup, self.thin, draws[first:last],
                edge_ends[first:last],
            )  # fmt: skip
            n_more = n_warmup + (last - first) * self.thin
            sweep += n_more
            report(n_more)
        # An edge within a class was counted at both its ends.
        return edge_ends @ model.weights / 2.0


class SymmetricNeighbors(NamedTuple):
    """The neighbours of each point in the graph of one k, with weight 2 or 1.

    Attributes
    ----------
    starts : ndarray of shape (n + 1,), dtype uint64
        The neighbours of i are the entries ``starts[i] : starts[i + 1]`` of ``points``.
    single_starts : ndarray of shape (n,), dtype uint64
        Entries from ``starts[i]`` up to here have weight 2, those from here on weight 1.
    points : ndarray, dtype uint32
    degrees : ndarray of shape (n,), dtype uint32
        The sum over j of w_ij, that is k plus the number of points that have i as neighbour.
    """

    starts: np.ndarray
    single_starts: np.ndarray
    points: np.ndarray
    degrees: np.ndarray


class GibbsLaw(NamedTuple):
    """The conditionals of all sites at one (beta, k).

    Attributes
    ----------
    neighbors : SymmetricNeighbors
    strength : float
        beta / k.
    weights : ndarray of shape (n_classes,)
    weighted : bool
        Whether the weights differ.
    """

    neighbors: SymmetricNeighbors
    strength: float
    weights: np.ndarray
    weighted: bool


def list_symmetric_neighbors(graph: NeighborGraph, k: int) -> SymmetricNeighbors:
    """List each point's neighbours in either direction, once each, mutual ones first.

    Parameters
    ----------
    graph : NeighborGraph
    k : int

    Returns
    -------
    SymmetricNeighbors

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.gibbs import list_symmetric_neighbors
    >>> graph = NeighborGraph.from_neighbors([[1, 0, 1]])
    >>> neighbors = list_symmetric_neighbors(graph, 1)
    >>> neighbors.points.tolist(), neighbors.degrees.tolist()
    ([1, 0, 2, 1], [2, 3, 1])
    """
    incidence = graph.incidence
    degrees = np.uint32(k) + incidence.in_degree[k - 1]
    starts, single_starts, points = list_once(incidence.starts, incidence.points, degrees)
    return SymmetricNeighbors(starts, single_starts, points, degrees)


@kernel
def list_once(incident_starts, incident, degrees):
    """Return the first three parts of :class:`SymmetricNeighbors`, for compiled code."""
    n = len(degrees)
    starts = np.zeros(n + 1, np.uint64)
    single_starts = np.zeros(n, np.uint64)
    points = np.empty(np.int64(degrees.sum()) + 1, np.uint32)
    # sight[j] = 2i + 1 once i has met j, 2i + 2 once it has met j in the other direction too.
    # Written without branches, which could not be predicted: every point is put at the end of
    # the list, and the end moves on only if the point belongs there.
    sight = np.zeros(n, np.uint64)
    end = np.uint64(0)
    for i in range(np.uint64(n)):
        once = np.uint64(2) * i + _ONE
        first = np.uint64(incident_starts[i])
        last = first + np.uint64(degrees[i])
        for e in range(first, last):
            j = incident[e]
            points[end] = j
            again = np.uint64(sight[j] == once)
            end += again
            sight[j] = once + again
        single_starts[i] = end
        for e in range(first, last):
            j = incident[e]
            points[end] = j
            end += np.uint64(sight[j] == once)
        starts[i + _ONE] = end
    return starts, single_starts, points[: np.int64(end)].copy()


@kernel
def run_gibbs(law, labels, key, sweep, n_warmup, thin, draws, edge_ends):
    """Make ``n_warmup`` sweeps, then ``thin`` sweeps for each row of ``edge_ends``.

    A run may be cut anywhere: what goes on is ``labels`` and the number of sweeps done, ``sweep``.
    ``edge_ends`` receives the ends of edges within each class, ``draws`` the labels if its rows
    have room for them.
    """
    if len(law.weights) == 2:
        _run_two_classes(law, labels, key, sweep, n_warmup, thin, draws, edge_ends)
    else:
        _run_many_classes(law, labels, key, sweep, n_warmup, thin, draws, edge_ends)


@kernel
def _run_two_classes(law, labels, key, sweep, n_warmup, thin, draws, edge_ends):
    neighbors, degrees = law.neighbors, law.neighbors.degrees
    table, bases = threshold_table(law.strength, law.weights, degrees, law.weighted)
    slots = (bases + _count_ones(labels, neighbors)).astype(np.uint32)
    for draw in range(-1, len(edge_ends)):
        for _ in range(n_warmup if draw < 0 else thin):
            sweep_two(labels, slots, table, neighbors, key_of_sweep(key, sweep))
            sweep += _ONE
        if draw >= 0:
            for i in range(np.uint64(len(labels))):
                label = np.uint64(labels[i])
                ones = np.int64(slots[i]) - bases[i]
                edge_ends[draw, label] += ones if label == 1 else np.int64(degrees[i]) - ones
            _keep(labels, draws[draw])


@kernel
def _keep(labels, row):
    """Copy the labels into a row, unless it is empty."""
    for i in range(np.uint64(len(row))):
        row[i] = labels[i]


@kernel
def draw_start(labels, n_classes, key):
    """Uniform labels, from a stream that no sweep uses."""
    stream = key_of_sweep(key, START_SWEEP)
    for i in range(np.uint64(len(labels))):
        labels[i] = ((random_bits(stream, i) >> np.uint64(32)) * n_classes) >> np.uint64(32)


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
def _count_ones(labels, neighbors):
    """Local field of class 1: the weighted number of neighbours that have it."""
    counts = np.zeros(len(labels), np.int64)
    for i in range(np.uint64(len(labels))):
        for e in range(neighbors.starts[i], neighbors.starts[i + _ONE]):
            if labels[neighbors.points[e]] == 1:
                counts[i] += 2 if e < neighbors.single_starts[i] else 1
    return counts


@kernel
def sweep_two(labels, slots, table, neighbors, stream):
    """Update every site of a chain of two classes."""
    starts, single_starts, points, _ = neighbors
    for i in range(np.uint64(len(labels))):
        label = np.uint8(random_bits(stream, i) < table[np.uint64(slots[i])])
        if label != labels[i]:
            # A step of 1 or -1 (modulo 2**32) rather than two loops: which cannot be predicted.
            step = np.uint32(label) - np.uint32(labels[i])
            labels[i] = label
            for e in range(starts[i], single_starts[i]):
                slots[points[e]] += np.uint32(2) * step
            for e in range(single_starts[i], starts[i + _ONE]):
                slots[points[e]] += step


@kernel
def _weight_table(strength, weights, weighted, largest_degree, largest_exponent):
    """Unnormalised weights of a class by its count: a row for each class, or one for all.

    Beyond the range of exp the table holds logarithms, and sweeps take exponentials after all.
    Also returns whether it does, and how far apart the rows of two classes are.
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
def _first_slots(labels, n_classes, stride, neighbors):
    slots = np.zeros(len(labels) * n_classes, np.uint32)
    width = np.uint64(n_classes)
    for i in range(np.uint64(len(labels))):
        for g in range(width):
            slots[i * width + g] = g * stride
        for e in range(neighbors.starts[i], neighbors.starts[i + _ONE]):
            step = np.uint32(2 if e < neighbors.single_starts[i] else 1)
            slots[i * width + np.uint64(labels[neighbors.points[e]])] += step
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
def _sweep_many(labels, slots, table, logarithmic, neighbors, sums, stream):
    starts, single_starts, points, _ = neighbors
    two, one = np.uint32(2), np.uint32(1)
    width = np.uint64(len(sums))
    for i in range(np.uint64(len(labels))):
        bits = random_bits(stream, i)
        label = _choose_of_many(table, logarithmic, slots, i * width, sums, bits)
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
def _run_many_classes(law, labels, key, sweep, n_warmup, thin, draws, edge_ends):
    neighbors, n_classes = law.neighbors, len(law.weights)
    table, logarithmic, stride = _weight_table(
        law.strength, law.weights, law.weighted, np.int64(neighbors.degrees.max()),
        _LARGEST_EXPONENT,
    )  # fmt: skip
    slots = _first_slots(labels, n_classes, stride, neighbors)
    sums, width = np.empty(n_classes), np.uint64(n_classes)
    for draw in range(-1, len(edge_ends)):
        for _ in range(n_warmup if draw < 0 else thin):
            stream = key_of_sweep(key, sweep)
            _sweep_many(labels, slots, table, logarithmic, neighbors, sums, stream)
            sweep += _ONE
        if draw >= 0:
            for i in range(np.uint64(len(labels))):
                label = np.uint64(labels[i])
                ends = np.int64(slots[i * width + label]) - np.int64(label * stride)
                edge_ends[draw, label] += ends
            _keep(labels, draws[draw])
