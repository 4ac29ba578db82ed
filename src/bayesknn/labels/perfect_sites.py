"""Perfect draws by monotone single-site coupling from the past, two classes (Section 3.4).

The Gibbs sampler of two classes is monotone: the more neighbours of class 1, the likelier class 1,
with any positive class weights. Chains started from all 0 and all 1, "the saturated situations",
and driven by the same numbers stay in order; started further and further back until they have
coalesced at time zero, they return a draw from the model itself.

Both chains are run at once. A word of 64 bits holds a site's label in the lower chain in its low
half and that in the upper chain in its high half, and another word holds the two slots of
``gibbs_two.py``, so a sweep looks up two thresholds and tells the neighbours of both changes in one
addition. Nothing is stored of the past: the number of a site is a function of
(key, draw, sweep, site).

The number of sweeps explodes where the two phases are far apart; ``perfect_bonds.py`` is the cure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import key_of_sweep, random_bits
from bayesknn.labels.couplings import list_couplings
from bayesknn.labels.gibbs_two import _threshold_table
from bayesknn.model import BoltzmannModel

_ONE = np.uint64(1)
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)


class SiteTables(NamedTuple):
    """The conditionals of every site, given the neighbours of class 1.

    Attributes
    ----------
    starts, single_starts, points
        The neighbours, see :class:`bayesknn.labels.couplings.Couplings`.
    degrees : ndarray of shape (n,), dtype uint32
    bases : ndarray of shape (n,), dtype uint64
        The slot of a site none of whose neighbours has class 1; every neighbour that has it moves
        the slot by its weight.
    table : ndarray, dtype uint64
        For each slot, the number below which 64 random bits choose class 1.
    """

    starts: np.ndarray
    single_starts: np.ndarray
    points: np.ndarray
    degrees: np.ndarray
    bases: np.ndarray
    table: np.ndarray


class SiteScratch(NamedTuple):
    """Memory that a draw works in: the two labels and the two slots of every site."""

    pairs: np.ndarray
    slots: np.ndarray


def site_tables(model: BoltzmannModel, beta: float, k: int) -> SiteTables:
    """Tabulate the conditionals of two classes.

    Parameters
    ----------
    model : BoltzmannModel
        Of two classes.
    beta : float
    k : int

    Returns
    -------
    SiteTables

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.perfect_sites import site_tables
    >>> from bayesknn.model import BoltzmannModel
    >>> model = BoltzmannModel(NeighborGraph.from_neighbors([[1, 0, 1]]), n_classes=2)
    >>> site_tables(model, beta=1.0, k=1).degrees.tolist()
    [2, 3, 1]
    """
    couplings = list_couplings(model.graph, k)
    table, bases = _threshold_table(
        beta / k, model.weights, couplings.degrees, model.class_weight is not None
    )
    return SiteTables(*couplings, bases.astype(np.uint64), table)


def site_scratch(n_points: int) -> SiteScratch:
    """Allocate what :func:`_draw_sites` works in.

    Examples
    --------
    >>> from bayesknn.labels.perfect_sites import site_scratch
    >>> site_scratch(250).pairs.shape
    (250,)
    """
    return SiteScratch(np.empty(n_points, np.uint64), np.empty(n_points, np.uint64))


@kernel
def _sweep_sites(tables, sweep_key, scratch):
    """Update every site of both chains with the same numbers."""
    pairs, slots = scratch.pairs, scratch.slots
    for i in range(np.uint64(pairs.size)):
        bits = random_bits(sweep_key, i)
        low = np.uint64(bits < tables.table[slots[i] & _LOW_HALF])
        high = np.uint64(bits < tables.table[slots[i] >> _HALF])
        pair = low | (high << _HALF)
        if pair != pairs[i]:
            # Both halves move at once; a half that falls borrows from nobody, because a slot
            # never goes below zero.
            change = pair - pairs[i]
            pairs[i] = pair
            middle = tables.single_starts[i]
            for e in range(tables.starts[i], middle):
                slots[tables.points[e]] += change + change
            for e in range(middle, tables.starts[i + _ONE]):
                slots[tables.points[e]] += change


@kernel
def _run_sites(tables, key, draw, n_sweeps, scratch):
    """Run both chains from ``n_sweeps`` sweeps back; how many sites have not met at time zero."""
    pairs, slots = scratch.pairs, scratch.slots
    for i in range(np.uint64(pairs.size)):
        pairs[i] = _ONE << _HALF
        base = tables.bases[i]
        slots[i] = base | ((base + np.uint64(tables.degrees[i])) << _HALF)
    for back in range(n_sweeps, 0, -1):
        _sweep_sites(tables, key_of_sweep(key, (draw << _HALF) | np.uint64(back)), scratch)
    n_apart = 0
    for i in range(np.uint64(pairs.size)):
        n_apart += (pairs[i] & _LOW_HALF) != (pairs[i] >> _HALF)
    return n_apart


@kernel
def _draw_sites(tables, key, draw, n_start, max_sweeps, scratch, labels):
    """Make one perfect draw; return how far back it began and how many sites were apart.

    The labels depend on ``key`` and ``draw`` alone, not on ``n_start``, the past that is tried
    first and then doubled. When sites are still apart at ``max_sweeps`` the labels are not touched.
    """
    n_sweeps = min(n_start, max_sweeps)
    while True:
        n_apart = _run_sites(tables, key, draw, n_sweeps, scratch)
        if n_apart == 0:
            for i in range(np.uint64(labels.size)):
                labels[i] = scratch.pairs[i] & _ONE
        if n_apart == 0 or n_sweeps == max_sweeps:
            return n_sweeps, n_apart
        n_sweeps = min(2 * n_sweeps, max_sweeps)


@kernel
def _draw_sites_batch(tables, key, first, n_start, max_sweeps, scratch, labels, n_sweeps):
    """Make the draws ``first``, ``first + 1``, ... into the rows of labels, until one fails.

    Returns how many sites of the last draw were apart.
    """
    for d in range(labels.shape[0]):
        n_sweeps[d], n_apart = _draw_sites(
            tables, key, first + np.uint64(d), n_start, max_sweeps, scratch, labels[d]
        )
        if n_apart > 0:
            return n_apart
    return 0
