"""Bonds of a Swendsen-Wang sweep: which agreeing edges bind their ends (Section 3, SPEC).

The weight of a directed edge whose ends share the class g is ``exp(rate * a_g)``, with
``rate = beta / k`` and ``a_g = 1`` without class weights. Two expansions of it give two ways to
draw the bonds, both exact:

* as events, ``sum over m of (rate * a_g)**m / m!``: an agreeing edge carries Poisson(rate * a_g)
  events, so the candidates are a Poisson process over all ``n * k`` edges. Their number is
  Poisson(n * beta) and each falls on a uniform edge, so a sweep costs about n * beta whatever k,
  and every candidate is placed on its own, with no walk along the edges.
* edge by edge, ``1 + (exp(rate * a_g) - 1)``: an agreeing edge is open with probability
  ``1 - exp(-rate * a_g)``. This costs n * k, which is less where k is small next to beta.

At least one event on an edge has that same probability ``1 - exp(-rate * a_g)``; mutual
neighbours are two directed edges, hence two chances. Candidates are drawn by blocks of points,
so that what is read together lies together.
"""

import math
from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import as_uniform, random_bits
from bayesknn.labels.clusters import _drop_joined, _flatten, _isolate, _join

_BLOCK = 1024
# Measured: beyond so many events an edge, drawing edge by edge is cheaper.
_DENSE = 0.6
# Streams apart from the counters of points and candidates, which stay below 2**61.
_COUNT = np.uint64(1 << 62)
_THIN = np.uint64(1 << 63)
_COUNTERS_PER_BLOCK = np.uint64(1 << 20)
_ONE = np.uint64(1)
_HALF_UNIT = 2.0**-54


class Scratch(NamedTuple):
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
    bond_law : ndarray of shape (2, n_classes)
        With class weights: probability to keep an agreeing candidate of each class, and the log
        weight of a bond of each class.
    colour_law : ndarray of shape (n, n_classes)
        With class weights, after a sweep: the law of the colour of each cluster, at its root.
    marks : ndarray of shape (n,), dtype uint64
        Root and label of each point in one word, for the estimator of E[S].
    """

    roots: np.ndarray
    colours: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    bonds: np.ndarray
    bond_law: np.ndarray
    colour_law: np.ndarray
    marks: np.ndarray


def new_scratch(labels: np.ndarray, n_classes: int, weighted: bool, capacity: int = 0) -> Scratch:
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
    Scratch

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.labels.bonds import new_scratch
    >>> new_scratch(np.zeros(250, np.uint8), n_classes=2, weighted=False).roots.shape
    (250,)
    """
    n = labels.size
    capacity = capacity or 4 * n + 1024
    return Scratch(
        roots=np.zeros(n, np.uint32),
        colours=np.zeros(n, labels.dtype),
        sources=np.empty(capacity, np.uint32),
        targets=np.empty(capacity, np.uint32),
        bonds=np.zeros(n if weighted else 0, np.uint32),
        bond_law=np.zeros((2, n_classes if weighted else 0)),
        colour_law=np.zeros((n if weighted else 0, n_classes)),
        marks=np.zeros(n, np.uint64),
    )


@kernel
def bond_rate(beta, k):
    """Strength of one directed edge; the one place where beta meets k."""
    return beta / np.float64(k)


@kernel
def _open_probability(strength):
    """Probability that an agreeing edge of this strength, rate * a_g, is open."""
    return -math.expm1(-strength)


@kernel
def _is_dense(rate, class_weight):
    """Whether to draw edge by edge rather than by events."""
    if class_weight is not None:
        rate *= class_weight.max()
    return rate > _DENSE


@kernel
def _set_bond_law(rate, class_weight, bond_law):
    """Fill in ``Scratch.bond_law``, the log weights up to a constant common to the classes."""
    heaviest = class_weight.max()
    for g in range(class_weight.size):
        if _is_dense(rate, class_weight):
            strength = rate * class_weight[g]
            bond_law[0, g] = _open_probability(strength)
            excess = rate * (class_weight[g] - heaviest)
            bond_law[1, g] = excess + math.log(_open_probability(strength))
        else:
            # Events come at the rate of the heaviest class and are thinned to their own.
            bond_law[0, g] = class_weight[g] / heaviest
            bond_law[1, g] = math.log(class_weight[g])


@kernel
def _bind(neighbors, k, beta, class_weight, stream, labels, scratch):
    """Draw the bonds given the labels and join what they bind.

    Afterwards ``roots[i] <= i`` lead to the lowest point of each cluster, not yet flattened, and
    with class weights ``bonds[i]`` counts the bonds whose source is i.
    """
    n, capacity = labels.size, scratch.sources.size
    rate = bond_rate(beta, k)
    dense = _is_dense(rate, class_weight)
    keep_probability, heaviest = None, 1.0
    if class_weight is not None:
        scratch.bonds[:] = np.uint32(0)
        _set_bond_law(rate, class_weight, scratch.bond_law)
        keep_probability, heaviest = scratch.bond_law[0], class_weight.max()
    _isolate(scratch.roots)
    n_pending, is_first = 0, True
    candidate = np.uint64(n)
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        n_candidates = size * k
        if not dense:
            n_candidates = _poisson(rate * heaviest * n_candidates, stream, start // _BLOCK)
        done = 0
        while done < n_candidates:
            if n_pending == capacity:
                _join_pending(scratch, n_pending, is_first)
                n_pending, is_first = 0, False
            count = min(n_candidates - done, capacity - n_pending)
            if dense:
                rank, skip = done // size, done % size
                count = min(count, size - skip)
                kept = _keep_open(
                    neighbors[rank], start + skip, count, rate, keep_probability,
                    stream, candidate, labels, scratch, n_pending,
                )  # fmt: skip
            else:
                _place_events(start, size, k, count, stream, candidate, scratch, n_pending)
                kept = _keep_agreeing(
                    neighbors, count, keep_probability,
                    stream, candidate, labels, scratch, n_pending,
                )  # fmt: skip
            n_pending += kept
            done += count
            candidate += np.uint64(count)
    _join_pending(scratch, n_pending, is_first)


@kernel
def _join_pending(scratch, n_pending, is_first):
    """Join the bonds listed so far; after the first time their ends need not be roots."""
    roots, sources, targets = scratch.roots, scratch.sources, scratch.targets
    if not is_first:
        _flatten(roots)
        n_pending = _drop_joined(roots, sources, targets, n_pending)
    _join(roots, sources, targets, n_pending)


@kernel
def _place_events(start, size, k, count, stream, candidate, scratch, at):
    """Put ``count`` candidates on uniform edges of a block: the source, and the rank as target.

    The whole part of ``u * size`` is the point and the fraction, times k, the rank. Rounding moves
    the probability of an edge by a relative ``size * k / 2**53`` at most.
    """
    n_sources, n_ranks, first = np.float64(size), np.float64(k), np.uint32(start)
    sources, targets = scratch.sources[at : at + count], scratch.targets[at : at + count]
    for e in range(np.uint64(count)):
        x = as_uniform(random_bits(stream, candidate + e)) * n_sources
        i = np.uint32(x)
        sources[e] = first + i
        targets[e] = np.uint32((x - np.float64(i)) * n_ranks)


@kernel
def _keep_agreeing(neighbors, count, keep_probability, stream, candidate, labels, scratch, at):
    """Move the events whose ends agree to the front, without branches, which mispredict."""
    sources, targets = scratch.sources[at : at + count], scratch.targets[at : at + count]
    # A loop of nothing but reads, so that many of them are under way at once.
    for e in range(np.uint64(count)):
        targets[e] = neighbors[targets[e], sources[e]]
    kept = np.uint64(0)
    for e in range(np.uint64(count)):
        i, j = sources[e], targets[e]
        sources[kept], targets[kept] = i, j
        keep = labels[i] == labels[j]
        if keep_probability is not None:
            u = as_uniform(random_bits(stream, _THIN + candidate + e))
            keep &= u < keep_probability[labels[i]]
            scratch.bonds[i] += np.uint32(keep)
        kept += np.uint64(keep)
    return np.int64(kept)


@kernel
def _keep_open(row, first, count, rate, keep_probability, stream, candidate, labels, scratch, at):
    """List the open edges of one rank of a block, each drawn on its own."""
    sources, targets = scratch.sources[at : at + count], scratch.targets[at : at + count]
    offset = np.uint64(first)
    # Two loops, since the first one vectorises and the second does not.
    if keep_probability is None:
        p = _open_probability(rate)
        for e in range(np.uint64(count)):
            targets[e] = np.uint32(as_uniform(random_bits(stream, candidate + e)) < p)
    else:
        for e in range(np.uint64(count)):
            p = keep_probability[labels[offset + e]]
            targets[e] = np.uint32(as_uniform(random_bits(stream, candidate + e)) < p)
    kept = np.uint64(0)
    for e in range(np.uint64(count)):
        i = offset + e
        j, is_open = row[i], targets[e]
        sources[kept], targets[kept] = np.uint32(i), j
        keep = np.uint32(labels[i] == labels[j]) & is_open
        if keep_probability is not None:
            scratch.bonds[i] += keep
        kept += np.uint64(keep)
    return np.int64(kept)


@kernel
def _poisson(mean, stream, block):
    """Draw a Poisson number, exactly: products of uniforms below 10, transformed rejection above.

    The rejection is Hormann's PTRS (Insurance: Mathematics and Economics 12, 1993).
    """
    counter = _COUNT + np.uint64(block) * _COUNTERS_PER_BLOCK
    if mean < 10.0:
        floor, product, number = math.exp(-mean), 1.0, -1
        while product > floor or number < 0:
            product *= as_uniform(random_bits(stream, counter))
            counter += _ONE
            number += 1
        return number
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_quick = 0.9277 - 3.6224 / (b - 2.0)
    while True:
        # In this order it is exact and never reaches one half.
        u = (as_uniform(random_bits(stream, counter)) - 0.5) + _HALF_UNIT
        v = 1.0 - as_uniform(random_bits(stream, counter + _ONE))
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
