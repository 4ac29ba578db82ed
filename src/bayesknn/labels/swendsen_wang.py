"""Draws of the labels by Swendsen-Wang, for any number of classes (Section 3; SPEC, KERNELS).

The model ``f(y) = exp(beta / k * S_k(y)) / Z`` is a Potts model on the neighbour graph. A sweep
draws the bonds given the labels (:mod:`bayesknn.labels.bonds`), finds the clusters they bind
(:mod:`bayesknn.labels.clusters`), and gives every cluster a fresh colour: uniform over the
classes, or, with class weights, class g with probability proportional to the bond weight of g to
the power of the number of bonds in the cluster. Both steps are exact conditional draws, so the
model's law is invariant, and the clusters are independent given the bonds.

Random numbers of a sweep: counter i < n colours the cluster whose lowest point is i, counter
n + m belongs to candidate m.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_count
from bayesknn._utils.jit import kernel
from bayesknn._utils.random import as_uniform, key_of_sweep, random_bits
from bayesknn.labels.autocorrelation import autocorrelation_time
from bayesknn.labels.bonds import _bind, new_scratch
from bayesknn.labels.cluster_estimator import estimate_agreement
from bayesknn.labels.layout import local_layout
from bayesknn.labels.slices import cut_run
from bayesknn.model import BoltzmannModel
from bayesknn.model.checks import check_beta

# Operations that a sweep takes for a point or a bond.
_PER_BOND = 10
_START = np.uint64(2**64 - 1)


class SwendsenWangInfo(NamedTuple):
    """What a run of Swendsen-Wang tells about itself.

    Attributes
    ----------
    n_sweeps : int
        Sweeps made in all, warm-up included.
    agreement : ndarray of shape (n_draws,)
        S_k of each draw (with class weights, its weighted sum); of another k if asked for.
    cluster_agreement : ndarray of shape (n_draws,)
        Expectation of S_k given the clusters from which the draw was coloured: an estimate of
        E[S_k] with less variance, far less at small beta.
    autocorrelation_time : float
        Integrated autocorrelation time of S_k, counted in kept draws: ``n_draws`` divided by it
        is the effective number of independent draws. NaN where the draws do not tell.
    """

    n_sweeps: int
    agreement: np.ndarray
    cluster_agreement: np.ndarray
    autocorrelation_time: float


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
    report: Callable[[float], None] = lambda steps: None,
) -> tuple[np.ndarray, SwendsenWangInfo]:
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
    initial : array-like of shape (n,), optional
        Labels to start from; independent and uniform by default.
    recorded_k : int, optional
        Record S of the graph of this k, at most ``k``, which is the default. What is recorded
        costs n ``recorded_k`` a draw, next to about n beta for a sweep.
    report : callable, optional
        ``report(sweeps)``: so many more are done.

    Returns
    -------
    labels : ndarray of shape (n_draws, n), uint8, or uint32 beyond 256 classes
    info : SwendsenWangInfo

    Examples
    --------
    On a ring of n points E[S] at beta is n e^beta / (e^beta + 1) for two classes, nearly:

    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels import spawn_keys, swendsen_wang_labels
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
    model.refuse_fixed("this sampler")
    beta, k = check_beta(beta), model.graph.check_k(k)
    n_ranks = k if recorded_k is None else check_count(recorded_k, "recorded_k", 1, k)
    n_draws = check_count(n_draws, "n_draws")
    n_warmup = check_count(n_warmup, "n_warmup", low=0)
    thin = check_count(thin, "thin")
    weight, unit = model.unequal_weight, model.common_weight
    n, n_classes = model.n_points, model.n_classes
    neighbors, order = local_layout(model.graph, k)
    labels = np.empty(n, model.label_dtype)
    key = np.uint64(key)
    if initial is None:
        # numba hands uint64 back as a plain int, which it would then take for an int64.
        colour_points(np.uint64(key_of_sweep(key, _START)), n_classes, labels)
    else:
        labels[:] = model.check_labels(initial)[order]

    draws = np.empty((n_draws, n), labels.dtype)
    agreement, cluster_agreement = np.empty((2, n_draws, 1))
    scratch = new_scratch(labels, n_classes, weight is not None)
    sweep, per_sweep = 0, _PER_BOND * n * (1 + beta * unit)
    for warmup, start, stop in cut_run(n_warmup, n_draws, thin, per_sweep, n * n_ranks):
        _run(
            neighbors, n_ranks, order, k, beta * unit, n_classes, weight, key, np.uint64(sweep),
            warmup, thin, labels, scratch, draws[start:stop], agreement[start:stop],
            cluster_agreement[start:stop],
        )  # fmt: skip
        n_more = warmup + (stop - start) * thin
        sweep += n_more
        report(n_more)
    series = unit * agreement[:, 0]
    clusters = unit * cluster_agreement[:, 0]
    return draws, SwendsenWangInfo(sweep, series, clusters, autocorrelation_time(series))


@kernel
def _run(
    neighbors, n_ranks, order, k, beta, n_classes, class_weight, key, sweep, n_warmup, thin,
    labels, scratch, draws, agreement, cluster_agreement,
):  # fmt: skip
    """Make ``n_warmup`` sweeps, then ``thin`` sweeps for each row of ``draws``."""
    for d in range(-1, draws.shape[0]):
        for _ in range(n_warmup if d < 0 else thin):
            sweep_clusters(neighbors, k, beta, n_classes, class_weight, key, sweep, labels, scratch)
            sweep += np.uint64(1)
        if d < 0:
            continue
        estimate_agreement(
            neighbors, n_ranks, n_classes, class_weight, labels, scratch,
            agreement[d], cluster_agreement[d],
        )  # fmt: skip
        draw = draws[d]
        for i in range(np.uint64(labels.size)):
            draw[order[i]] = labels[i]


@kernel
def sweep_clusters(neighbors, k, beta, n_classes, class_weight, key, sweep, labels, scratch):
    """Make one sweep in place, without allocating: a pure function of (key, sweep) and labels.

    ``class_weight`` is None or an array; ``key`` and ``sweep`` are uint64. Leaves the clusters in
    ``scratch.roots``.
    """
    stream = key_of_sweep(key, sweep)
    _bind(neighbors, k, beta, class_weight, stream, labels, scratch)
    _recolour(n_classes, class_weight, stream, labels, scratch)


@kernel
def _recolour(n_classes, class_weight, stream, labels, scratch):
    """Give every cluster that the bonds have left in ``scratch`` a fresh colour."""
    if class_weight is None:
        colour_points(stream, n_classes, scratch.colours)
    else:
        _colour_roots(stream, n_classes, scratch)
    roots, colours = scratch.roots, scratch.colours
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
def _colour_roots(stream, n_classes, scratch):
    """Draw the colour of every cluster given its number of bonds."""
    roots, bonds = scratch.roots, scratch.bonds
    n = np.uint64(roots.size)
    for i in range(n):
        root = roots[roots[i]]
        roots[i] = root
        if root != i:
            bonds[root] += bonds[i]
    for i in range(n):
        if roots[i] != i:
            continue
        law = scratch.colour_law[i]
        _set_colour_law(bonds[i], scratch.bond_law[1], law)
        u = as_uniform(random_bits(stream, i))
        colour = 0
        while colour < n_classes - 1 and u >= law[colour]:
            u -= law[colour]
            colour += 1
        scratch.colours[i] = np.uint32(colour)


@kernel
def _set_colour_law(n_bonds, log_weights, law):
    """Fill in the law of a cluster's colour: weight of a bond to the power of their number."""
    if n_bonds == 0:
        # Most clusters are single points, where the exponentials would tell nothing.
        law[:] = 1.0 / law.size
        return
    most = log_weights.max()
    total = 0.0
    for g in range(law.size):
        law[g] = math.exp(n_bonds * (log_weights[g] - most))
        total += law[g]
    for g in range(law.size):
        law[g] /= total
