"""Draws of the labels by Swendsen-Wang, for any number of classes (Section 3).

The model ``f(y) = exp(beta / k * S_k(y)) / Z`` is a Potts model on the neighbour graph. A sweep
draws bonds on edges whose ends agree, finds the clusters that they bind, and gives every cluster a
fresh colour: uniform over the classes, or, with class weights, class g with probability
proportional to the bond weight of g to the power of the number of bonds in the cluster. Both steps
are exact conditional draws, so the model's distribution is invariant, and the clusters are
independent given the bonds.

**Bonds.** The weight of a directed edge whose ends share the class g is ``exp(rate * a_g)``, with
``rate = beta / k`` and ``a_g = 1`` without class weights. It is expanded as
``sum over m of (rate * a_g)**m / m!``: an agreeing edge carries Poisson(rate * a_g) events, so the
candidates are a Poisson process over all ``n * k`` edges. Their number is Poisson(n * beta) and
each falls on a uniform edge, so a sweep costs about n * beta whatever k, and every candidate is
placed on its own, with no walk along the edges. Mutual neighbours are two directed edges, hence two
chances. Candidates are drawn by blocks of points, so that what is read together lies together.

**Layers.** Models between two k, ``exp(sum over j of rate_j * S_k_j)``, lie on the way from one k
to another, where log Z is integrated (Section 3.3). Every layer j is the graph of its own k, and
events come independently on each, so that the candidates of all layers together are those of the
sum. All layers read the same lists of neighbours.

**Clusters.** A forest in which every root is its cluster's lowest point: ``roots[i] <= i`` always
holds, so one pass in index order flattens it. Bonds are joined in rounds without unpredictable
branches: every bond hooks the higher of two roots to the lower, the forest is flattened, and the
bonds that now lie inside a cluster are dropped. A bond overwritten by another one of the same root
is not lost, it is still there in the next round. Few bonds are left after three or four rounds;
those, and any for which rounds do not help, are joined one by one.

**The estimator of E[S_k].** Given the clusters, ends in one cluster agree with probability 1 and
others with probability 1/G, so ``sum over edges of (same cluster ? 1 : 1/G)`` has the expectation
of S_k and less variance. With class weights the colours of a cluster C have a distribution P_C:
ends in one cluster count ``sum_g P_C(g) a_g`` and others ``sum_g P_C(g) P_D(g) a_g``. Edges are
rank-major, so running totals are S_1, S_2, and so on.

Random numbers of a sweep: counter i < n colours the cluster whose lowest point is i, counter
n + m belongs to candidate m.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_count
from bayesknn._utils.jit import inline_kernel, kernel
from bayesknn._utils.random import START_SWEEP, as_uniform, key_of_sweep, random_bits
from bayesknn.labels.mixing import PER_POINT, DrawInfo, check_run, split_run
from bayesknn.model import BoltzmannModel
from bayesknn.model.boltzmann import check_setting

# Points whose candidates are drawn together: few enough for their lists to stay in the cache.
_BLOCK = 1024
# Streams apart from the counters of points and candidates, which stay below 2**61: the number of
# events of each block, and the thinning of events.
_COUNT, _COUNTERS_PER_BLOCK = np.uint64(1 << 62), np.uint64(1 << 20)
THINNING = np.uint64(1 << 63)


class Workspace(NamedTuple):
    """Memory that a sweep works in, allocated once and good for any beta and k.

    Attributes
    ----------
    roots : ndarray of shape (n,), dtype uint32
        After a sweep: the lowest point of each point's cluster.
    colours : ndarray of shape (n,), dtype of the labels
    sources, targets : ndarray of one length, dtype uint32
        Candidates and bonds. Any length works; up to the number of candidates, longer is faster.
    bonds : ndarray of shape (n,), dtype uint32
        With class weights, after a sweep: the number of bonds of each cluster, at its root.
    colour_law : ndarray of shape (n, n_classes)
        With class weights, after a sweep: the distribution of the colour of each cluster, at its
        root.
    marks : ndarray of shape (n,), dtype uint64
        Root and label of each point in one word, for the estimator of E[S].
    """

    roots: np.ndarray
    colours: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    bonds: np.ndarray
    colour_law: np.ndarray
    marks: np.ndarray


def new_workspace(
    labels: np.ndarray, n_classes: int, weighted: bool, capacity: int = 0
) -> Workspace:
    """Allocate what a sweep of these labels needs.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    n_classes : int
    weighted : bool
        Whether there are class weights.
    capacity : int, optional
        Length of the lists of candidates; enough for beta up to 4 by default.

    Returns
    -------
    Workspace
    """
    n = labels.size
    capacity = capacity or 4 * n + 1024
    return Workspace(
        roots=np.zeros(n, np.uint32),
        colours=np.zeros(n, labels.dtype),
        sources=np.empty(capacity, np.uint32),
        targets=np.empty(capacity, np.uint32),
        bonds=np.zeros(n if weighted else 0, np.uint32),
        colour_law=np.zeros((n if weighted else 0, n_classes)),
        marks=np.zeros(n, np.uint64),
    )


class _Chain(NamedTuple):
    """The model at one (beta, k) as the kernels take it, and the largest k whose S is recorded."""

    neighbors: np.ndarray
    ks: np.ndarray
    rates: np.ndarray
    n_classes: int
    recorded_k: int


def swendsen_wang_labels(
    model: BoltzmannModel,
    beta: float,
    k: int,
    *,
    key: np.uint64,
    n_draws: int = 1,
    n_warmup: int = 200,
    thin: int = 1,
    initial: Any = None,
    recorded_k: int | None = None,
    advance: Callable[[float], None] = lambda steps: None,
) -> tuple[np.ndarray, DrawInfo]:
    """Draw labels given (beta, k) by a Swendsen-Wang chain.

    Parameters
    ----------
    model : BoltzmannModel
    beta : float
        Strength, at least 0.
    k : int
        Number of neighbours, at most ``model.k_max``.
    key : numpy.uint64
        One key of :func:`bayesknn._utils.random.spawn_keys`; the result is a function of it.
    n_draws : int
        Label vectors to keep.
    n_warmup : int
        Sweeps made before the first one that can be kept. With two classes the chain forgets its
        start within tens of sweeps. With more it can take thousands near the phase transition:
        compare chains started from ``initial`` of one class with chains started at random.
    thin : int
        Sweeps from one kept draw to the next.
    initial : array-like of shape (n,) or int, optional
        Labels to start from, or one class for all points; independent and uniform by default.
    recorded_k : int, optional
        Record S of the graph of this k, at most ``k``, which is the default. What is recorded
        costs n ``recorded_k`` a draw, next to about n beta for a sweep.
    advance : callable, optional
        Called with the number of sweeps done since the last call.

    Returns
    -------
    labels : ndarray of shape (n_draws, n), uint8, or uint32 beyond 256 classes
    info : DrawInfo

    Examples
    --------
    On a ring of n points E[S] at beta is n e^beta / (e^beta + 1) for two classes, nearly:

    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn._utils.random import spawn_keys
    >>> from bayesknn.labels import swendsen_wang_labels
    >>> from bayesknn.model import BoltzmannModel
    >>> ring = BoltzmannModel(NeighborGraph.from_neighbors([np.roll(np.arange(100), -1)]), 2)
    >>> labels, info = swendsen_wang_labels(
    ...     ring, beta=1.0, k=1, n_draws=2000, key=spawn_keys(0, 1)[0]
    ... )
    >>> labels.shape
    (2000, 100)
    >>> bool(abs(info.cluster_agreement.mean() - 100 * np.e / (np.e + 1)) < 1)
    True
    """
    model, beta, k = check_setting(model, beta, k)
    key, n_draws, n_warmup, thin = check_run(key, n_draws, n_warmup, thin)
    recorded_k = k if recorded_k is None else check_count(recorded_k, "recorded_k", 1, k)
    weight, unit = model.unequal_weight, model.common_weight
    n, n_classes = model.n_points, model.n_classes
    labels = start_labels(model, initial, key)
    # Arrays, as of the chains of log Z, so that one sweep is compiled for both.
    at = np.array([k]), np.array([bond_rate(beta * unit, k)])
    chain = _Chain(model.graph.neighbors, *at, n_classes, recorded_k)
    draws, agreement = np.empty((n_draws, n), labels.dtype), np.empty((n_draws, 2))
    workspace = new_workspace(labels, n_classes, weight is not None)
    costs = PER_POINT * n * (1 + beta * unit), n * recorded_k
    for sweep, warmup, part in split_run(n_warmup, n_draws, thin, *costs, advance):
        records = draws[part], agreement[part]
        _run(chain, weight, key, sweep, warmup, thin, labels, workspace, *records)
    return draws, DrawInfo(n_warmup + n_draws * thin, *(unit * agreement.T))


def start_labels(model: BoltzmannModel, initial: Any, key: np.uint64) -> np.ndarray:
    """Return the labels that a chain starts from, as :func:`swendsen_wang_labels` takes them."""
    labels = np.empty(model.n_points, model.label_dtype)
    if initial is None:
        # numba hands uint64 back as a plain int, which it would then take for an int64.
        colour_points(np.uint64(key_of_sweep(key, START_SWEEP)), model.n_classes, labels)
    elif np.ndim(initial) == 0:
        labels[:] = check_count(initial, "initial", 0, model.n_classes - 1)
    else:
        labels[:] = model.check_labels(initial)
    return labels


@kernel
def _run(chain, class_weight, key, sweep, n_warmup, thin, labels, workspace, draws, agreement):
    """Make ``n_warmup`` sweeps, then ``thin`` sweeps for each draw."""
    for d in range(-1, draws.shape[0]):
        for _ in range(n_warmup if d < 0 else thin):
            sweep_layers(
                chain.neighbors, chain.ks, chain.rates, chain.n_classes, class_weight,
                key, sweep, labels, workspace,
            )  # fmt: skip
            sweep += np.uint64(1)
        if d < 0:
            continue
        estimate_agreement(
            chain.neighbors, chain.recorded_k, chain.n_classes, class_weight, labels,
            workspace, agreement[d, :1], agreement[d, 1:],
        )  # fmt: skip
        # Not as a slice, whose checks take a second to compile.
        for i in range(labels.size):
            draws[d, i] = labels[i]


@kernel
def sweep_clusters(neighbors, k, beta, n_classes, class_weight, key, sweep, labels, workspace):
    """Make one sweep in place, without allocating: a pure function of (key, sweep) and labels.

    ``class_weight`` is None or an array; ``key`` and ``sweep`` are uint64. Leaves the clusters in
    ``workspace.roots``.
    """
    rates = (bond_rate(beta, k),)
    sweep_layers(neighbors, (k,), rates, n_classes, class_weight, key, sweep, labels, workspace)


@inline_kernel
def sweep_layers(neighbors, ks, rates, n_classes, class_weight, key, sweep, labels, workspace):
    """Make one sweep of the model with a layer for each of ``ks``, in place."""
    stream = key_of_sweep(key, sweep)
    _bind(neighbors, ks, rates, class_weight, stream, labels, workspace)
    _recolour(n_classes, class_weight, stream, labels, workspace)


@kernel
def bond_rate(beta, k):
    """Strength of one directed edge; the one place where beta meets k."""
    return beta / np.float64(k)


@kernel
def open_probability(strength):
    """Probability that an agreeing edge of this strength, rate * a_g, is open."""
    return -math.expm1(-strength)


@kernel
def _bind(neighbors, ks, rates, class_weight, stream, labels, workspace):
    """Draw the bonds of every layer given the labels and join what they bind.

    Afterwards ``roots[i] <= i`` lead to the lowest point of each cluster, not yet flattened, and
    with class weights ``bonds[i]`` counts the bonds whose source is i.
    """
    n, capacity, heaviest = labels.size, workspace.sources.size, 1.0
    if class_weight is not None:
        # Events come at the rate of the heaviest class and are thinned to their own.
        heaviest = class_weight.max()
        workspace.bonds[:] = np.uint32(0)
    isolate(workspace.roots)
    # Not a bare 0, for which numba would compile what it calls a second time.
    n_pending = n_joined = np.int64(0)
    candidate = np.uint64(n)
    n_blocks = (n + _BLOCK - 1) // _BLOCK
    for part in range(len(ks) * n_blocks):
        layer, start = part // n_blocks, (part % n_blocks) * _BLOCK
        k, size = ks[layer], min(_BLOCK, n - start)
        n_candidates = draw_poisson(rates[layer] * heaviest * (size * k), stream, part)
        while n_candidates > 0:
            if n_pending == capacity:
                _join_pending(workspace, n_pending, n_joined)
                n_joined += n_pending
                n_pending = np.int64(0)
            count = min(n_candidates, capacity - n_pending)
            sources = workspace.sources[n_pending : n_pending + count]
            targets = workspace.targets[n_pending : n_pending + count]
            _place_events(start, size, k, stream, candidate, sources, targets)
            n_pending += _keep_agreeing(
                neighbors, class_weight, labels, workspace.bonds, stream, candidate, sources,
                targets,
            )  # fmt: skip
            n_candidates -= count
            candidate += np.uint64(count)
    _join_pending(workspace, n_pending, n_joined)


@inline_kernel
def _place_events(start, size, k, stream, candidate, sources, targets):
    """Put candidates on uniform edges of a block: the source, and the rank as target.

    The whole part of ``u * size`` is the point and the fraction, times k, the rank. Rounding moves
    the probability of an edge by a relative ``size * k / 2**53`` at most.
    """
    n_sources, n_ranks, first = np.float64(size), np.float64(k), np.uint32(start)
    for e in range(np.uint64(sources.size)):
        x = as_uniform(random_bits(stream, candidate + e)) * n_sources
        i = np.uint32(x)
        sources[e] = first + i
        targets[e] = np.uint32((x - np.float64(i)) * n_ranks)


@inline_kernel
def _keep_agreeing(neighbors, class_weight, labels, bonds, stream, candidate, sources, targets):
    """Move the events whose ends agree to the front, without branches, which mispredict."""
    heaviest = 1.0 if class_weight is None else class_weight.max()
    # A loop of nothing but reads, so that many of them are under way at once.
    for e in range(np.uint64(sources.size)):
        targets[e] = neighbors[targets[e], sources[e]]
    kept = np.uint64(0)
    for e in range(np.uint64(sources.size)):
        i, j = sources[e], targets[e]
        sources[kept], targets[kept] = i, j
        keep = labels[i] == labels[j]
        if class_weight is not None:
            u = as_uniform(random_bits(stream, THINNING + candidate + e))
            keep &= u < class_weight[labels[i]] / heaviest
            bonds[i] += np.uint32(keep)
        kept += np.uint64(keep)
    return np.int64(kept)


@kernel
def draw_poisson(mean, stream, block):
    """Draw a Poisson number, exactly: products of uniforms below 10, transformed rejection above.

    The rejection is Hormann's PTRS (Insurance: Mathematics and Economics 12, 1993).
    """
    counter = _COUNT + np.uint64(block) * _COUNTERS_PER_BLOCK
    if mean < 10.0:
        floor, product, number = math.exp(-mean), 1.0, -1
        while product > floor or number < 0:
            product *= as_uniform(random_bits(stream, counter))
            counter += np.uint64(1)
            number += 1
        return number
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_quick = 0.9277 - 3.6224 / (b - 2.0)
    while True:
        # In this order it is exact and never reaches one half.
        u = (as_uniform(random_bits(stream, counter)) - 0.5) + 2.0**-54
        v = 1.0 - as_uniform(random_bits(stream, counter + np.uint64(1)))
        counter += np.uint64(2)
        edge = 0.5 - abs(u)
        number = math.floor((2.0 * a / edge + b) * u + mean + 0.43)
        if edge >= 0.07 and v <= v_quick:
            return np.int64(number)
        if number < 0 or (edge < 0.013 and v > edge):
            continue
        log_ratio = number * math.log(mean) - mean - math.lgamma(number + 1.0)
        if math.log(v * inverse_alpha / (a / (edge * edge) + b)) <= log_ratio:
            return np.int64(number)


@kernel
def _join_pending(workspace, n_pending, n_joined):
    """Join the bonds that are listed; after others have been joined their ends may not be roots."""
    roots, sources, targets = workspace.roots, workspace.sources, workspace.targets
    if n_joined > 0:
        _flatten(roots)
        n_pending = _drop_joined(roots, sources, targets, n_pending)
    _join(roots, sources, targets, n_pending)


@inline_kernel
def isolate(roots):
    """Make every point a cluster of its own."""
    for i in range(np.uint64(roots.size)):
        roots[i] = np.uint32(i)


@inline_kernel
def _join(roots, sources, targets, n_bonds):
    """Join the ends of the bonds, which are roots themselves; both lists are overwritten."""
    # Measured: for fewer bonds another round over all points costs more than joining them singly.
    while n_bonds > 16:
        for e in range(np.uint64(n_bonds)):
            i, j = sources[e], targets[e]
            low, high = (i, j) if i < j else (j, i)
            roots[high] = low
        _flatten(roots)
        n_left = _drop_joined(roots, sources, targets, n_bonds)
        slow = 2 * n_left > n_bonds
        n_bonds = n_left
        if slow:
            break
    for e in range(np.uint64(n_bonds)):
        join_pair(roots, sources[e], targets[e])


@kernel
def join_pair(roots, i, j):
    """Join two points, wherever they stand in the forest (Rem's algorithm, with splicing)."""
    above_i, above_j = roots[i], roots[j]
    while above_i != above_j:
        if above_i < above_j:
            i, j, above_i, above_j = j, i, above_j, above_i
        roots[i] = above_j
        if i == above_i:
            break
        i = above_i
        above_i = roots[i]


@kernel
def _flatten(roots):
    """Point every point at its root."""
    for i in range(np.uint64(roots.size)):
        roots[i] = roots[roots[i]]


@kernel
def _drop_joined(roots, sources, targets, n_bonds):
    """Replace the ends of the bonds by their roots, keep those that differ, return how many."""
    kept = np.uint64(0)
    for e in range(np.uint64(n_bonds)):
        i, j = roots[sources[e]], roots[targets[e]]
        sources[kept], targets[kept] = i, j
        kept += np.uint64(i != j)
    return np.int64(kept)


@inline_kernel
def _recolour(n_classes, class_weight, stream, labels, workspace):
    """Give every cluster that the bonds have left in ``workspace`` a fresh colour."""
    if class_weight is None:
        colour_points(stream, n_classes, workspace.colours)
    else:
        _colour_roots(class_weight, stream, workspace)
    roots, colours = workspace.roots, workspace.colours
    for i in range(np.uint64(labels.size)):
        # In index order, so that roots[i] < i is already flat.
        root = roots[roots[i]]
        roots[i] = root
        labels[i] = colours[root]


@kernel
def colour_points(stream, n_classes, colours):
    """Draw a uniform colour for every point; used where it is a root. Faster than asking which."""
    n_colours = np.float64(n_classes)
    for i in range(np.uint64(colours.size)):
        colours[i] = np.uint32(as_uniform(random_bits(stream, i)) * n_colours)


@kernel
def _colour_roots(class_weight, stream, workspace):
    """Draw the colour of every cluster given its number of bonds."""
    roots, bonds, log_weights = workspace.roots, workspace.bonds, np.log(class_weight)
    n = np.uint64(roots.size)
    for i in range(n):
        root = roots[roots[i]]
        roots[i] = root
        if root != i:
            bonds[root] += bonds[i]
    for i in range(n):
        if roots[i] != i:
            continue
        probabilities = workspace.colour_law[i]
        if bonds[i] == 0:
            # Most clusters are single points, where the exponentials would tell nothing.
            probabilities[:] = 1.0 / probabilities.size
        else:
            # The weight of a bond to the power of their number.
            for g in range(probabilities.size):
                probabilities[g] = bonds[i] * log_weights[g]
            normalise_logs(probabilities)
        workspace.colours[i] = choose_class(probabilities, as_uniform(random_bits(stream, i)))


@kernel
def normalise_logs(probabilities):
    """Turn the logarithms of weights into probabilities, in place."""
    most, total = probabilities.max(), 0.0
    for g in range(np.uint64(probabilities.size)):
        probabilities[g] = math.exp(probabilities[g] - most)
        total += probabilities[g]
    for g in range(np.uint64(probabilities.size)):
        probabilities[g] /= total


@kernel
def choose_class(probabilities, u):
    """Invert the cumulated probabilities at a uniform number."""
    chosen = np.uint64(0)
    while chosen < np.uint64(probabilities.size - 1) and u >= probabilities[chosen]:
        u -= probabilities[chosen]
        chosen += np.uint64(1)
    return np.uint32(chosen)


@kernel
def estimate_agreement(
    neighbors, n_ranks, n_classes, class_weight, labels, workspace, agreement, cluster_agreement
):
    """Fill in S_k of the labels and its expectation given the clusters they were coloured from.

    Entry k - 1 of both outputs belongs to k; outputs of length 1 receive k = ``n_ranks`` alone.
    To be called right after a sweep, with its ``workspace``.
    """
    n, last = labels.size, agreement.size - 1
    total, cluster_total = 0.0, 0.0
    if class_weight is None:
        _mark(labels, workspace.roots, workspace.marks)
    for rank in range(n_ranks):
        if class_weight is None:
            agree, same = _count_rank(neighbors[rank], workspace.marks)
            total += agree
            cluster_total += same + (n - same) / n_classes
        else:
            sums = _sum_rank(neighbors[rank], n_classes, class_weight, labels, workspace)
            total += sums[0]
            cluster_total += sums[1]
        agreement[min(rank, last)] = total
        cluster_agreement[min(rank, last)] = cluster_total


@inline_kernel
def _mark(labels, roots, marks):
    """Put root and label in one word, so that an edge reads one word and not two."""
    for i in range(np.uint64(labels.size)):
        marks[i] = np.uint64(roots[i]) << np.uint64(32) | np.uint64(labels[i])


@inline_kernel
def _count_rank(row, marks):
    """Count the edges of one rank whose ends agree, and those inside a cluster."""
    agree, same = np.uint64(0), np.uint64(0)
    for i in range(np.uint64(row.size)):
        difference = marks[i] ^ marks[row[i]]
        agree += np.uint64(np.uint32(difference) == np.uint32(0))
        same += np.uint64(difference == np.uint64(0))
    return np.int64(agree), np.int64(same)


@kernel
def _sum_rank(row, n_classes, class_weight, labels, workspace):
    """Sum the weights of the agreeing edges of one rank, and their expectation."""
    roots, colour_law = workspace.roots, workspace.colour_law
    total, cluster_total = 0.0, 0.0
    for i in range(np.uint64(labels.size)):
        j = row[i]
        if labels[i] == labels[j]:
            total += class_weight[labels[i]]
        first, second = colour_law[roots[i]], colour_law[roots[j]]
        same = roots[i] == roots[j]
        for g in range(np.uint64(n_classes)):
            cluster_total += class_weight[g] * first[g] * (1.0 if same else second[g])
    return total, cluster_total
