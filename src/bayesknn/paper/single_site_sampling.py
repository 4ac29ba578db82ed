"""Perfect draws by monotone single-site coupling from the past, two classes (Section 3.4).

The Gibbs sampler of two classes is monotone: the more neighbours of class 1, the likelier class 1,
with any positive class weights. Chains started from all 0 and all 1, "the saturated situations",
and driven by the same numbers stay in order; started further and further back until they have
coalesced at time zero, they return a draw from the model itself.

Nothing is stored of the past: the number of a site is a function of (key, draw, sweep, site).

The number of sweeps explodes where the two phases are far apart; coupling the bonds of the
random-cluster form (:func:`bayesknn.labels.perfect_labels`) is the cure, and this the check on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import key_of_sweep
from bayesknn.exceptions import CoalescenceError
from bayesknn.labels.gibbs import (
    Edges,
    list_edges,
    sweep_two,
    threshold_table,
)
from bayesknn.model import BoltzmannModel


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
    """
    if model.n_classes != 2:
        raise ValueError(f"single-site coupling needs two classes, got {model.n_classes}")
    tables = site_tables(model, beta, k)
    labels = np.empty((n_draws, model.n_points), np.uint8)
    n_sweeps = np.empty(n_draws, np.int64)
    for d in range(n_draws):
        labels[d], n_sweeps[d], n_apart = draw_by_sites(tables, key, d, 1, max_sweeps)
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
    edges : Edges
    table : ndarray, dtype uint64
        For each slot, the number below which 64 random bits choose class 1.
    bases : ndarray of shape (n,), dtype int64
        The slot of a site none of whose neighbours has class 1; every neighbour that has it moves
        the slot by its weight.
    """

    edges: Edges
    table: np.ndarray
    bases: np.ndarray


def site_tables(model: BoltzmannModel, beta: float, k: int) -> SiteTables:
    """Tabulate the conditionals of two classes at one (beta, k)."""
    edges = list_edges(model.graph, k)
    is_weighted = model.class_weight is not None
    return SiteTables(edges, *threshold_table(beta / k, model.weights, edges.degrees, is_weighted))


def draw_by_sites(
    tables: SiteTables, key: np.uint64, draw: int, n_start: int, max_sweeps: int
) -> tuple[np.ndarray, int, int]:
    """Return the labels of one draw, how far back it began, and how many sites were apart.

    The labels of a draw depend on ``key`` and ``draw`` alone, not on ``n_start``, the past that is
    tried first and then doubled. They are no draw if sites are still apart at ``max_sweeps``.
    """
    lower, upper = np.empty((2, len(tables.bases)), np.uint8)
    n_sweeps = min(n_start, max_sweeps)
    while True:
        run_both(tables, np.uint64(key), np.uint64(draw), n_sweeps, lower, upper)
        n_apart = int(np.count_nonzero(lower != upper))
        if n_apart == 0 or n_sweeps == max_sweeps:
            return lower, n_sweeps, n_apart
        n_sweeps = min(2 * n_sweeps, max_sweeps)


@kernel
def run_both(tables, key, draw, n_sweeps, lower, upper):
    """Run the chains from all 0 and from all 1 to time zero, with the same numbers."""
    edges, table, bases = tables
    lower[:], upper[:] = 0, 1
    lower_slots = bases.astype(np.uint32)
    upper_slots = (bases + edges.degrees).astype(np.uint32)
    for back in range(n_sweeps, 0, -1):
        stream = key_of_sweep(key, (draw << np.uint64(32)) | np.uint64(back))
        sweep_two(lower, lower_slots, table, edges, stream)
        sweep_two(upper, upper_slots, table, edges, stream)
