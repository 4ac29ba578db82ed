"""Perfect draws by monotone single-site coupling from the past, two classes (Section 3.4).

The Gibbs sampler of two classes is monotone: the more neighbours of class 1, the likelier class 1,
with any positive class weights. Chains started from all 0 and all 1, "the saturated situations",
and driven by the same numbers stay in order; started further and further back until they have
coalesced at time zero, they return a draw from the model itself.

Both chains are run at once. A word of 64 bits holds a site's label in the lower chain in its low
half and that in the upper chain in its high half, and another word holds the two slots of
``labels/gibbs.py``, so a sweep looks up two thresholds and tells the neighbours of both changes in
one addition. Nothing is stored of the past: the number of a site is a function of
(key, draw, sweep, site).

The number of sweeps explodes where the two phases are far apart; coupling the bonds of the
random-cluster form (:func:`bayesknn.labels.perfect_labels`) is the cure, and this the check on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import key_of_sweep, random_bits
from bayesknn.exceptions import CoalescenceError
from bayesknn.labels.gibbs import list_symmetric_neighbors, threshold_table
from bayesknn.model import BoltzmannModel

_ONE = np.uint64(1)
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)


def perfect_labels_by_sites(
    model: BoltzmannModel,
    beta: float,
    k: int,
    *,
    key: np.uint64,
    n_draws: int = 1,
    max_sweeps: int = 2**16,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw labels of two classes exactly by coupling the labels of single sites.

    Parameters
    ----------
    model : BoltzmannModel
        Of two classes; class weights may differ.
    beta : float
    k : int
    key : numpy.uint64
        Draw d is a function of the key and d alone.
    n_draws : int
    max_sweeps : int
        How far into the past to go before giving up.

    Returns
    -------
    labels : ndarray of shape (n_draws, n), dtype uint8
    n_sweeps : ndarray of shape (n_draws,), dtype int64
        How many sweeps back the chains that met were started, a power of 2.

    Raises
    ------
    CoalescenceError
        If the chains of a draw had not met after ``max_sweeps`` sweeps; no draw is returned then.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels import spawn_keys
    >>> from bayesknn.model import BoltzmannModel
    >>> from bayesknn.paper.single_site_sampling import perfect_labels_by_sites
    >>> ring = BoltzmannModel(NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]]), n_classes=2)
    >>> labels, n_sweeps = perfect_labels_by_sites(ring, 1.0, 1, n_draws=4, key=spawn_keys(0, 1)[0])
    >>> labels.shape, n_sweeps.shape
    ((4, 5), (4,))
    """
    if model.n_classes != 2:
        raise ValueError(f"single-site coupling needs two classes, got {model.n_classes}")
    tables, scratch = site_tables(model, beta, k), site_scratch(model.n_points)
    labels = np.empty((n_draws, model.n_points), np.uint8)
    n_sweeps = np.empty(n_draws, np.int64)
    for d in range(n_draws):
        n_sweeps[d], n_apart = _draw_sites(
            tables, np.uint64(key), np.uint64(d), 1, max_sweeps, scratch, labels[d]
        )
        if n_apart:
            raise CoalescenceError(
                f"draw {d} at beta={beta:g}, k={k}: {n_apart} of {model.n_points} points were "
                f"still apart after a past of {max_sweeps} sweeps; couple bonds instead",
                max_sweeps,
                n_apart,
            )
    return labels, n_sweeps


class SiteTables(NamedTuple):
    """The conditionals of every site, given the neighbours of class 1.

    Attributes
    ----------
    starts, single_starts, points
        The neighbours, see :class:`bayesknn.labels.gibbs.SymmetricNeighbors`.
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
    >>> from bayesknn.paper.single_site_sampling import site_tables
    >>> from bayesknn.model import BoltzmannModel
    >>> model = BoltzmannModel(NeighborGraph.from_neighbors([[1, 0, 1]]), n_classes=2)
    >>> site_tables(model, beta=1.0, k=1).degrees.tolist()
    [2, 3, 1]
    """
    neighbors = list_symmetric_neighbors(model.graph, k)
    table, bases = threshold_table(
        beta / k, model.weights, neighbors.degrees, model.class_weight is not None
    )
    return SiteTables(*neighbors, bases.astype(np.uint64), table)


def site_scratch(n_points: int) -> SiteScratch:
    """Allocate what :func:`_draw_sites` works in.

    Examples
    --------
    >>> from bayesknn.paper.single_site_sampling import site_scratch
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
