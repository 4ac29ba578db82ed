"""Compiled draws of labels at a proposed (beta, k), by any of the three samplers (Section 3.4).

A :class:`Drawer` holds the model, the tools of one sampler and memory. :func:`_draw_labels` draws
z ~ f(. | beta, k) into it, from within a block of moves. What it gives is a function of its key
alone: not of the draws before it, of the memory it works in, or of how far back a perfect draw
was started first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesknn._jit import kernel
from bayesknn.labels.bonds import Scratch, _bond_rate
from bayesknn.labels.couplings import _fill_rows, _list_once
from bayesknn.labels.gibbs import _LARGEST_EXPONENT, _draw_start, _first_slots, _sweep_many
from bayesknn.labels.gibbs_two import (
    _ROW_RATIO,
    _count_ones,
    _sweep_lists,
    _sweep_rows,
    _threshold_table,
)
from bayesknn.labels.perfect_bonds import BondScratch, _draw_bonds
from bayesknn.labels.random import _sweep_key
from bayesknn.labels.swendsen_wang import _sweep

# After a draw that met at once the next begins this much later, after one that did not this much
# earlier: about a quarter of the draws then need a second try, which costs the fewest sweeps.
_LATER, _EARLIER = 2.0**-0.125, 2.0**0.375


class SwendsenWangTools(NamedTuple):
    """What Swendsen-Wang draws need: their start (empty: random), their sweeps, and memory."""

    initial: np.ndarray
    n_sweeps: int
    scratch: Scratch


class PerfectTools(NamedTuple):
    """What perfect draws need.

    ``pull`` is memory for the strengths of the bonds to the heavier class, empty where classes
    weigh the same, and ``past`` holds the number of sweeps with which the next draw begins.
    """

    in_degree: np.ndarray
    pull: np.ndarray
    heavier: int
    max_past: int
    past: np.ndarray
    scratch: BondScratch


class GibbsTools(NamedTuple):
    """What Gibbs draws need: as above, and the edges at each point in order of rank."""

    initial: np.ndarray
    n_sweeps: int
    starts: np.ndarray
    points: np.ndarray
    in_degree: np.ndarray
    weights: np.ndarray
    rows: np.ndarray
    slots: np.ndarray


class Drawer(NamedTuple):
    """The model and one of the samplers, as compiled code takes them.

    ``labels`` receives what is drawn. Two of the three tools are None, so that each sampler is
    compiled on its own. See :class:`bayesknn.likelihood.nodes.Field` for the other fields.
    """

    neighbors: np.ndarray
    n_classes: int
    class_weight: np.ndarray | None
    unit: float
    labels: np.ndarray
    swendsen_wang: SwendsenWangTools | None
    perfect: PerfectTools | None
    gibbs: GibbsTools | None


@kernel
def _draw_labels(drawer, beta, k, key):
    """Draw labels at (beta, k) into ``drawer.labels``; how many points perfect chains left apart.

    ``key`` is uint64. With points apart the labels are not a draw.
    """
    return _dispatch(
        drawer.swendsen_wang, drawer.perfect, drawer.gibbs, drawer, beta * drawer.unit, k, key
    )


@kernel
def _dispatch(swendsen_wang, perfect, gibbs, drawer, beta, k, key):
    # Arguments that are None drop their branch before it is compiled.
    if swendsen_wang is not None:
        return _draw_swendsen_wang(swendsen_wang, drawer, beta, k, key)
    if perfect is not None:
        return _draw_perfect(perfect, drawer, drawer.class_weight, beta, k, key)
    if gibbs is not None:
        return _draw_gibbs(gibbs, drawer, beta, k, key)
    return 0


@kernel
def _start(initial, drawer, key):
    if initial.size > 0:
        drawer.labels[:] = initial
    else:
        _draw_start(drawer.labels, np.uint64(drawer.n_classes), key)


@kernel
def _draw_swendsen_wang(tools, drawer, beta, k, key):
    _start(tools.initial, drawer, key)
    for sweep in range(np.uint64(tools.n_sweeps)):
        _sweep(
            drawer.neighbors, k, beta, drawer.n_classes, drawer.class_weight, key, sweep,
            drawer.labels, tools.scratch,
        )  # fmt: skip
    return 0


@kernel
def _draw_perfect(tools, drawer, class_weight, beta, k, key):
    rate = _bond_rate(beta, k)
    if class_weight is not None:
        # See perfect_bonds.py: the mean weight, and a pull on every point to the heavier class.
        half = rate * abs(class_weight[1] - class_weight[0]) / 2.0
        for i in range(np.uint64(tools.pull.size)):
            tools.pull[i] = half * (k + np.int64(tools.in_degree[k - 1, i]))
        rate *= class_weight.mean()
    first = np.int64(min(max(tools.past[0], 1.0), float(tools.max_past)))
    past, n_apart = _draw_bonds(
        drawer.neighbors, k, rate, drawer.n_classes, tools.pull, tools.heavier, key, np.uint64(0),
        first, tools.max_past, tools.scratch, drawer.labels,
    )  # fmt: skip
    tools.past[0] = past * (_LATER if past == first else _EARLIER)
    return n_apart


@kernel
def _draw_gibbs(tools, drawer, beta, k, key):
    degrees = np.uint32(k) + tools.in_degree[k - 1]
    couplings = _list_once(tools.starts, tools.points, degrees)
    strength = _bond_rate(beta, k)
    _start(tools.initial, drawer, key)
    if drawer.n_classes == 2:
        _sweep_two(tools, strength, degrees, couplings, key, drawer.labels, drawer.class_weight)
    else:
        _sweep_all(tools, strength, degrees, couplings, key, drawer.labels, drawer.class_weight)
    return 0


@kernel
def _sweep_two(tools, strength, degrees, couplings, key, labels, class_weight):
    starts, single_starts, points = couplings
    weighted = class_weight is not None
    table, bases = _threshold_table(strength, tools.weights, degrees, weighted)
    bases += _count_ones(labels, starts, single_starts, points)
    n = labels.size
    if n <= min(_ROW_RATIO * (points.size / n), tools.rows.shape[0]) and table.size <= 2**16:
        tools.rows[:] = np.uint16(0)
        _fill_rows(starts, single_starts, points, tools.rows)
        rows = tools.rows.ravel()
        tools.slots[:n] = bases
        for sweep in range(np.uint64(tools.n_sweeps)):
            _sweep_rows(labels, tools.slots, table, rows, _sweep_key(key, sweep))
    else:
        slots = bases.astype(np.uint32)
        for sweep in range(np.uint64(tools.n_sweeps)):
            stream = _sweep_key(key, sweep)
            _sweep_lists(labels, slots, table, starts, single_starts, points, stream)


@kernel
def _sweep_all(tools, strength, degrees, couplings, key, labels, class_weight):
    starts, single_starts, points = couplings
    n_classes = tools.weights.size
    n_rows = 1 if class_weight is None else n_classes
    width = np.int64(degrees.max()) + 1
    logarithmic = strength * tools.weights.max() * (width - 1) > _LARGEST_EXPONENT
    table = np.empty(n_rows * width)
    for g in range(n_rows):
        for count in range(width):
            weight = strength * tools.weights[g] * count
            table[g * width + count] = weight if logarithmic else math.exp(weight)
    stride = np.uint64(0 if class_weight is None else width)
    slots = _first_slots(labels, n_classes, stride, starts, single_starts, points)
    sums = np.empty(n_classes)
    for sweep in range(np.uint64(tools.n_sweeps)):
        stream = _sweep_key(key, sweep)
        _sweep_many(labels, slots, table, logarithmic, starts, single_starts, points, sums, stream)


@kernel
def _agreement_at(drawer, labels, k, other_k):
    """S of labels at k and at another k."""
    low, high = min(k, other_k), max(k, other_k)
    at_low = _sum_agreement(drawer.neighbors, labels, drawer.class_weight, 0, low)
    at_high = at_low + _sum_agreement(drawer.neighbors, labels, drawer.class_weight, low, high)
    if k < other_k:
        return drawer.unit * at_low, drawer.unit * at_high
    return drawer.unit * at_high, drawer.unit * at_low


@kernel
def _sum_agreement(neighbors, labels, class_weight, first, last):
    """Sum the weights of the agreeing edges of the ranks ``first..last - 1``."""
    total = 0.0
    for rank in range(first, last):
        row = neighbors[rank]
        if class_weight is None:
            count = np.uint32(0)
            for i in range(np.uint64(labels.size)):
                count += np.uint32(labels[i] == labels[row[i]])
            total += np.float64(count)
        else:
            for i in range(np.uint64(labels.size)):
                if labels[i] == labels[row[i]]:
                    total += class_weight[labels[i]]
    return total


@kernel
def _fill_agreement(drawer, beta, k, keys, values):
    for d in range(keys.size):
        _draw_labels(drawer, beta, k, keys[d])
        values[d] = _agreement_at(drawer, drawer.labels, k, k)[0]
