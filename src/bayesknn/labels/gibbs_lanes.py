"""Many Gibbs chains on one graph, each with its own beta (the Gibbs runs of Section 3.2).

Sixty-four chains go through the sites together, one lane of a vector each. ``gibbs_lanes_two``
does two classes of equal weight in vectors throughout; the kernel here does any number of classes
and any class weights: it counts fields in vectors and then takes each lane's class from tables.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from bayesknn._jit import kernel
from bayesknn._validation import check_count
from bayesknn.graph import NeighborGraph
from bayesknn.labels.autocorrelation import autocorrelation_time
from bayesknn.labels.couplings import list_couplings
from bayesknn.labels.gibbs import _START, _weight_table
from bayesknn.labels.gibbs_lanes_two import _WIDTH, LANES, LARGEST_DEGREE, run_two_lanes
from bayesknn.labels.random import _bits, _sweep_key, _uniform
from bayesknn.labels.vectors import (
    _filled,
    _loaded,
    _store,
    _where_equal,
    _widened,
    aligned_zeros,
)
from bayesknn.model.checks import (
    check_betas,
    check_class_weight,
    check_label_vector,
    check_n_classes,
    label_dtype,
)

_ONE = np.uint64(1)


@dataclass(frozen=True)
class LanesInfo:
    """What a diagnostic needs to know of many Gibbs chains.

    Attributes
    ----------
    n_sweeps : int
        Sweeps made by each chain, warm-up included.
    agreement : ndarray of shape (n_sweeps - n_warmup, n_lanes), dtype float64
        S_k of each chain after each sweep that counts, with class weights if there are any.
    """

    n_sweeps: int
    agreement: np.ndarray

    @property
    def mean_agreement(self) -> np.ndarray:
        """Estimate of E[S_k] at each lane's beta."""
        return self.agreement.mean(axis=0)

    @property
    def variance_agreement(self) -> np.ndarray:
        """Estimate of Var[S_k] at each lane's beta."""
        return self.agreement.var(axis=0)

    @property
    def autocorrelation_time(self) -> np.ndarray:
        """Integrated autocorrelation time of each lane's S_k, in sweeps."""
        return np.array([autocorrelation_time(series) for series in self.agreement.T])

    @property
    def standard_error(self) -> np.ndarray:
        """Monte Carlo standard error of ``mean_agreement``."""
        return np.sqrt(self.variance_agreement * self.autocorrelation_time / len(self.agreement))


def gibbs_lanes(
    graph: NeighborGraph,
    betas: np.ndarray,
    k: int,
    n_classes: int,
    *,
    n_sweeps: int,
    n_warmup: int = 500,
    initial: np.ndarray | None = None,
    class_weight: np.ndarray | None = None,
    n_threads: int = 1,
    key: np.uint64,
) -> tuple[np.ndarray, LanesInfo]:
    """Run one Gibbs chain for each beta, all on the same graph, and follow S_k.

    Parameters
    ----------
    graph : NeighborGraph
    betas : ndarray of shape (n_lanes,)
        The strength of each chain. Chains come in blocks of 64, so 50 cost as much as 64.
    k : int
    n_classes : int
    n_sweeps : int
        Sweeps after the warm-up; S_k is kept after each of them.
    n_warmup : int
    initial : ndarray of shape (n,) or (n_lanes, n), optional
        Labels to start from; drawn uniformly and independently if not given.
    class_weight : ndarray of shape (n_classes,), optional
    n_threads : int
        Blocks of 64 chains that run at the same time. Does not change the result.
    key : numpy.uint64
        A chain depends on the key, its place among the betas and its own beta, and on no other.

    Returns
    -------
    labels : ndarray of shape (n_lanes, n)
        The last state of each chain.
    info : LanesInfo

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.gibbs_lanes import gibbs_lanes
    >>> from bayesknn.labels.random import spawn_keys
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> betas = np.linspace(0.0, 2.0, 50)
    >>> labels, info = gibbs_lanes(ring, betas, 1, 2, n_sweeps=1000, key=spawn_keys(0, 1)[0])
    >>> labels.shape
    (50, 5)
    >>> bool(info.mean_agreement[0] < info.mean_agreement[-1])
    True
    """
    k, n_classes = graph.check_k(k), check_n_classes(n_classes)
    betas = np.atleast_1d(check_betas(betas, "betas")).ravel()
    if betas.size == 0:
        raise ValueError("betas is empty: give at least one beta")
    n_sweeps = check_count(n_sweeps, "n_sweeps")
    n_warmup = check_count(n_warmup, "n_warmup", low=0)
    class_weight = check_class_weight(class_weight, n_classes)
    n, n_lanes = graph.n_points, len(betas)
    if initial is not None:
        check_label_vector(np.ravel(initial), np.size(initial), n_classes)
    n_blocks = -(-n_lanes // LANES)
    strengths = np.zeros(n_blocks * LANES)
    strengths[:n_lanes] = np.asarray(betas, np.float64) / k
    couplings = list_couplings(graph, k)
    series = np.empty((n_blocks, n_sweeps, LANES))
    labels = np.empty((n_blocks * LANES, n), label_dtype(n_classes))

    def run_block(block: int) -> None:
        lanes = slice(block * LANES, (block + 1) * LANES)
        state = aligned_zeros((n * LANES,), labels.dtype)
        _draw_starts(state, np.uint64(n_classes), np.uint64(block * n), np.uint64(key))
        if initial is not None:
            given = np.broadcast_to(initial, (n_lanes, n))[lanes]
            state.reshape(n, LANES)[:, : len(given)] = given.T
        run = (np.uint64(block * n), np.uint64(key), np.uint64(n_warmup), series[block])
        edges = _count_edges(state, n_classes, *couplings[:3])
        if n_classes == 2 and class_weight is None and couplings.degrees.max() <= LARGEST_DEGREE:
            run_two_lanes(couplings, strengths[lanes], edges.sum(axis=1), state, run)
        else:
            _run_many_lanes(couplings, strengths[lanes], class_weight, edges, state, run)
        labels[lanes] = state.reshape(n, LANES).T

    if n_threads == 1:
        for block in range(n_blocks):
            run_block(block)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(run_block, range(n_blocks)))
    agreement = np.concatenate(series, axis=1)[:, :n_lanes]
    return labels[:n_lanes], LanesInfo(n_warmup + n_sweeps, agreement)


def _run_many_lanes(couplings, strengths, class_weight, edges, labels, run):
    """Run 64 chains with any classes; ``edges`` holds each one's edges within each class."""
    weights = np.ones(1) if class_weight is None else np.asarray(class_weight, np.float64)
    largest = int(couplings.degrees.max())
    table, logarithmic = _weight_table(np.multiply.outer(strengths, weights).ravel(), largest)
    stride = np.uint64(largest + 1 if len(weights) > 1 else 0)
    class_weights = np.broadcast_to(weights, edges.shape[1]).copy()
    tables = (table.ravel(), logarithmic, stride, class_weights)
    _sweep_many_repeatedly(labels, *couplings, *tables, edges, *run)


@kernel
def _draw_starts(labels, n_classes, first_site, key):
    """Uniform labels in every lane, from a stream that no sweep uses."""
    stream = _sweep_key(key, _START)
    for m in range(np.uint64(len(labels))):
        bits = _bits(stream, first_site * _WIDTH + m)
        labels[m] = ((bits >> np.uint64(32)) * n_classes) >> np.uint64(32)


@kernel
def _count_class(label, labels, points, first, last):
    """Lanes of one class among the points listed."""
    total = _filled(0, 32, 64)
    while first < last:
        stop = min(first + np.uint64(255), last)
        part = _where_equal(_loaded(labels, np.uint64(points[first]) * _WIDTH, 64), label)
        for e in range(first + _ONE, stop):
            part = part + _where_equal(_loaded(labels, np.uint64(points[e]) * _WIDTH, 64), label)
        # A mask is -1, so the bytes have counted down from 0.
        total = total + _widened(0 - part, 32)
        first = stop
    return total


@kernel
def _count_fields(site, labels, starts, single_starts, points, counts):
    """Local fields of one site: for each class, for each lane."""
    first, middle, last = starts[site], single_starts[site], starts[site + _ONE]
    for g in range(np.uint64(len(counts)) // _WIDTH):
        twice = _count_class(g, labels, points, first, middle)
        once = _count_class(g, labels, points, middle, last)
        _store(counts, g * _WIDTH, twice + twice + once)


@kernel
def _count_edges(labels, n_classes, starts, single_starts, points):
    """Directed edges within each class, for each lane."""
    counts = np.empty(n_classes * LANES, np.uint32)
    ends = np.zeros((LANES, n_classes), np.int64)
    for i in range(np.uint64(len(single_starts))):
        _count_fields(i, labels, starts, single_starts, points, counts)
        for lane in range(_WIDTH):
            label = np.uint64(labels[i * _WIDTH + lane])
            ends[lane, label] += np.int64(counts[label * _WIDTH + lane])
    return ends // 2


@kernel
def _choose_lanes(table, logarithmic, stride, counts, sums, scratch, chosen, place, sweep_key):
    """Invert the cumulated weights of one site in every lane, as ``_choose_of_many`` does."""
    n_classes = np.uint64(len(counts)) // _WIDTH
    size = np.uint64(len(table)) // _WIDTH
    largest, targets = scratch[0], scratch[1]
    scratch[:] = 0.0
    if logarithmic:
        for g in range(n_classes):
            for lane in range(_WIDTH):
                count = np.uint64(counts[g * _WIDTH + lane])
                largest[lane] = max(largest[lane], table[lane * size + g * stride + count])
    for g in range(n_classes):
        for lane in range(_WIDTH):
            weight = table[lane * size + g * stride + np.uint64(counts[g * _WIDTH + lane])]
            if logarithmic:
                weight = np.exp(weight - largest[lane])
            targets[lane] += weight
            sums[g * _WIDTH + lane] = targets[lane]
    for lane in range(_WIDTH):
        targets[lane] *= _uniform(_bits(sweep_key, place * _WIDTH + lane))
        chosen[lane] = 0
    for g in range(n_classes - _ONE):
        for lane in range(_WIDTH):
            chosen[lane] += np.uint32(sums[g * _WIDTH + lane] <= targets[lane])


@kernel
def _sweep_many(
    labels, starts, single_starts, points, table, logarithmic, stride, edges,
    counts, sums, scratch, chosen, first_site, sweep_key,
):  # fmt: skip
    for i in range(np.uint64(len(single_starts))):
        _count_fields(i, labels, starts, single_starts, points, counts)
        _choose_lanes(
            table, logarithmic, stride, counts, sums, scratch, chosen, first_site + i, sweep_key
        )
        for lane in range(_WIDTH):
            old, new = np.uint64(labels[i * _WIDTH + lane]), np.uint64(chosen[lane])
            edges[lane, old] -= np.int64(counts[old * _WIDTH + lane])
            edges[lane, new] += np.int64(counts[new * _WIDTH + lane])
            labels[i * _WIDTH + lane] = new


@kernel
def _sweep_many_repeatedly(
    labels, starts, single_starts, points, degrees, table, logarithmic, stride, class_weights,
    edges, first_site, key, n_warmup, series,
):  # fmt: skip
    n_classes = len(class_weights)
    counts = np.empty(n_classes * LANES, np.uint32)
    sums = np.empty(n_classes * LANES)
    scratch = np.empty((2, LANES))
    chosen = np.empty(LANES, np.uint32)
    for sweep in range(n_warmup + np.uint64(len(series))):
        _sweep_many(
            labels, starts, single_starts, points, table, logarithmic, stride, edges,
            counts, sums, scratch, chosen, first_site, _sweep_key(key, sweep),
        )  # fmt: skip
        if sweep >= n_warmup:
            for lane in range(_WIDTH):
                total = 0.0
                for g in range(n_classes):
                    total += class_weights[g] * edges[lane, g]
                series[sweep - n_warmup, lane] = total
