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

from bayesknn._jit import kernel
from bayesknn._validation import check_count
from bayesknn.graph import NeighborGraph
from bayesknn.labels.autocorrelation import autocorrelation_time
from bayesknn.labels.bonds import _bind, new_scratch
from bayesknn.labels.cluster_estimator import _estimate_agreement
from bayesknn.labels.layout import local_layout
from bayesknn.labels.random import _bits, _sweep_key, _uniform
from bayesknn.model.checks import (
    check_beta,
    check_class_weight,
    check_label_vector,
    check_n_classes,
    label_dtype,
)

# Work of one compiled call, about a fifth of a second, so that Ctrl-C is heard between calls.
_OPERATIONS_PER_CALL = 2e8
_START = np.uint64(2**64 - 1)


class SwendsenWangInfo(NamedTuple):
    """What a run of Swendsen-Wang tells about itself.

    Attributes
    ----------
    n_sweeps : int
        Sweeps made in all, warm-up included.
    agreement : ndarray of shape (n_draws,), or (n_draws, k_max) with ``every_k``
        S_k of each draw (with class weights, its weighted sum).
    cluster_agreement : ndarray of the same shape
        Expectation of S_k given the clusters from which the draw was coloured: an estimate of
        E[S_k] with less variance, far less at small beta.
    bond_agreement : ndarray of shape (n_draws,)
        The estimate of S_k that the numbers of bonds give, averaged over the ``thin`` sweeps that
        led to each draw. Noisier than the other two, and free. NaN at beta = 0.
    autocorrelation_time : float
        Integrated autocorrelation time of S_k, counted in kept draws: ``n_draws`` divided by it
        is the effective number of independent draws. NaN where the draws do not tell.
    """

    n_sweeps: int
    agreement: np.ndarray
    cluster_agreement: np.ndarray
    bond_agreement: np.ndarray
    autocorrelation_time: float


def swendsen_wang_labels(
    graph: NeighborGraph,
    beta: float,
    k: int,
    n_classes: int,
    *,
    key: np.uint64,
    n_draws: int = 1,
    n_warmup: int = 200,
    thin: int = 1,
    initial: Any = None,
    class_weight: Any = None,
    every_k: bool = False,
    report: Callable[[float], None] = lambda steps: None,
) -> tuple[np.ndarray, SwendsenWangInfo]:
    """Draw labels given (beta, k) by a Swendsen-Wang chain.

    Parameters
    ----------
    graph : NeighborGraph
    beta : float
        Strength, at least 0.
    k : int
        Number of neighbours, at most ``graph.k_max``.
    n_classes : int
        Number of classes G, at least 2.
    key : numpy.uint64
        One key of :func:`bayesknn.labels.random.spawn_keys`; the result is a function of it.
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
    class_weight : array-like of shape (n_classes,), optional
        The weights a_g of same-label edges of each class.
    every_k : bool
        Record ``agreement`` and ``cluster_agreement`` for every k up to ``graph.k_max``.
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
    >>> from bayesknn.labels.random import spawn_keys
    >>> from bayesknn.labels.swendsen_wang import swendsen_wang_labels
    >>> ring = NeighborGraph.from_neighbors([np.roll(np.arange(100), -1)])
    >>> labels, info = swendsen_wang_labels(
    ...     ring, beta=1.0, k=1, n_classes=2, n_draws=2000, key=spawn_keys(0, 1)[0]
    ... )
    >>> labels.shape
    (2000, 100)
    >>> bool(abs(info.cluster_agreement.mean() - 100 * np.e / (np.e + 1)) < 1)
    True
    """
    beta, k, n_classes = check_beta(beta), graph.check_k(k), check_n_classes(n_classes)
    n_draws = check_count(n_draws, "n_draws")
    n_warmup = check_count(n_warmup, "n_warmup", low=0)
    thin = check_count(thin, "thin")
    weights = check_class_weight(class_weight, n_classes)
    unit = 1.0
    if weights is not None and np.all(weights == weights[0]):
        # One common weight is the plain model at beta * a.
        unit, weights = float(weights[0]), None
    n, n_ranks = graph.n_points, graph.k_max if every_k else k
    neighbors, order = local_layout(graph, n_ranks)
    labels = np.empty(n, label_dtype(n_classes))
    key = np.uint64(key)
    if initial is None:
        # numba hands uint64 back as a plain int, which it would then take for an int64.
        _colour_points(np.uint64(_sweep_key(key, _START)), n_classes, labels)
    else:
        labels[:] = check_label_vector(initial, n, n_classes)[order]

    draws = np.empty((n_draws, n), labels.dtype)
    agreement = np.empty((n_draws, n_ranks if every_k else 1))
    cluster_agreement = np.empty_like(agreement)
    bond_agreement = np.empty(n_draws)
    scratch = new_scratch(labels, n_classes, weights is not None)
    sweep = 0
    for warmup, start, stop in _schedule(
        n_warmup, n_draws, thin, n * (1 + beta * unit), n * n_ranks
    ):
        _run(
            neighbors, n_ranks, order, k, beta * unit, n_classes, weights, key, np.uint64(sweep),
            warmup, thin, labels, scratch, draws[start:stop], agreement[start:stop],
            cluster_agreement[start:stop], bond_agreement[start:stop],
        )  # fmt: skip
        n_more = warmup + (stop - start) * thin
        sweep += n_more
        report(n_more)
    if not every_k:
        agreement, cluster_agreement = agreement[:, 0], cluster_agreement[:, 0]
    series = agreement[:, k - 1] if every_k else agreement
    return draws, SwendsenWangInfo(
        sweep,
        unit * agreement,
        unit * cluster_agreement,
        unit * bond_agreement,
        autocorrelation_time(series),
    )


def _schedule(n_warmup, n_draws, thin, per_sweep, per_record):
    """Cut a run into calls (warm-up sweeps, first draw, last draw + 1) of bounded work."""
    step = max(1, int(_OPERATIONS_PER_CALL / (10 * per_sweep)))
    for done in range(0, n_warmup, step):
        yield min(step, n_warmup - done), 0, 0
    step = max(1, int(_OPERATIONS_PER_CALL / (10 * thin * per_sweep + per_record)))
    for start in range(0, n_draws, step):
        yield 0, start, min(start + step, n_draws)


@kernel
def _run(
    neighbors, n_ranks, order, k, beta, n_classes, class_weight, key, sweep, n_warmup, thin,
    labels, scratch, draws, agreement, cluster_agreement, bond_agreement,
):  # fmt: skip
    """Make ``n_warmup`` sweeps, then ``thin`` sweeps for each row of ``draws``."""
    for _ in range(n_warmup):
        _sweep(neighbors, k, beta, n_classes, class_weight, key, sweep, labels, scratch)
        sweep += np.uint64(1)
    for d in range(draws.shape[0]):
        total = 0.0
        for _ in range(thin):
            total += _sweep(
                neighbors, k, beta, n_classes, class_weight, key, sweep, labels, scratch
            )
            sweep += np.uint64(1)
        bond_agreement[d] = total / thin
        _estimate_agreement(
            neighbors, n_ranks, n_classes, class_weight, labels, scratch,
            agreement[d], cluster_agreement[d],
        )  # fmt: skip
        draw = draws[d]
        for i in range(np.uint64(labels.size)):
            draw[order[i]] = labels[i]


@kernel
def _sweep(neighbors, k, beta, n_classes, class_weight, key, sweep, labels, scratch):
    """Make one sweep in place, without allocating: a pure function of (key, sweep) and labels.

    ``class_weight`` is None or an array; ``key`` and ``sweep`` are uint64. Leaves the clusters in
    ``scratch.roots``. Returns the estimate of S_k of the labels before the sweep that
    :func:`_bind` gives.
    """
    stream = _sweep_key(key, sweep)
    estimate = _bind(neighbors, k, beta, class_weight, stream, labels, scratch)
    _recolour(n_classes, class_weight, stream, labels, scratch)
    return estimate


@kernel
def _recolour(n_classes, class_weight, stream, labels, scratch):
    """Give every cluster that the bonds have left in ``scratch`` a fresh colour."""
    if class_weight is None:
        _colour_points(stream, n_classes, scratch.colours)
    else:
        _colour_roots(stream, n_classes, scratch)
    roots, colours = scratch.roots, scratch.colours
    for i in range(np.uint64(labels.size)):
        # In index order, so that roots[i] < i is already flat.
        root = roots[roots[i]]
        roots[i] = root
        labels[i] = colours[root]


@kernel
def _colour_points(stream, n_classes, colours):
    """Draw a uniform colour for every point; used where it is a root. Faster than asking which."""
    n_colours = np.float64(n_classes)
    for i in range(np.uint64(colours.size)):
        colours[i] = np.uint32(_uniform(_bits(stream, i)) * n_colours)


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
        u = _uniform(_bits(stream, i))
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
