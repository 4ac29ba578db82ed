"""The accept-reject step that helps single-site perfect sampling at large beta (Section 3.4).

The paper overcomes the explosion of the computing time "by using an additional accept-reject step
based on smaller values of beta". Draw y perfectly at beta0 < beta and accept it with probability
``exp(-(beta - beta0) / k * (S_max - S(y)))``, where S_max is the value of S when all labels agree
(in the heaviest class, with class weights); otherwise draw again. What is accepted is a perfect
draw at beta. Connected components of the graph are independent under the model, so each is
accepted on its own.

The probability of accepting is ``Z(beta) / Z(beta0) * exp(-(beta - beta0) / k * S_max)``, that is
the exponential of minus the integral over (beta0, beta) of ``E[S_max - S] / k``. It is of use
where almost all labels agree already at beta0, or where components are small; elsewhere it falls
exponentially with n, and no choice of beta0 helps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bayesknn._jit import kernel
from bayesknn.exceptions import CoalescenceError
from bayesknn.graph import NeighborGraph
from bayesknn.labels.perfect_sites import (
    SiteScratch,
    _draw_sites,
    site_scratch,
    site_tables,
)
from bayesknn.labels.random import _bits, _sweep_key, _uniform

_DRAW_SHIFT = np.uint64(32)
# How far back a pilot may go before its beta0 is called too slow, and how finely beta0 is tried.
_PILOT_SWEEPS = 256
_N_PILOTS = 15
# Pilots use draw numbers that no draw reaches.
_PILOT = np.uint64(2**32 - 1)


class Rejection(NamedTuple):
    """What decides whether a proposal made at beta0 is taken.

    Attributes
    ----------
    neighbors : ndarray of shape (k, n), dtype uint32
    strength : float
        ``(beta - beta0) / k``.
    weights : ndarray of shape (2,)
        The class weights, ones without them.
    components : ndarray of shape (n,), dtype int32
        The connected component of each point.
    """

    neighbors: np.ndarray
    strength: float
    weights: np.ndarray
    components: np.ndarray


class RejectionScratch(NamedTuple):
    """Memory that a draw works in."""

    sites: SiteScratch
    proposal: np.ndarray
    shortfalls: np.ndarray
    waiting: np.ndarray


def rejection_step(
    graph: NeighborGraph,
    beta: float,
    proposal_beta: float,
    k: int,
    class_weight: np.ndarray | None = None,
) -> Rejection:
    """Prepare the step that turns draws at ``proposal_beta`` into draws at ``beta``.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.perfect_rejection import rejection_step
    >>> graph = NeighborGraph.from_neighbors([[1, 0, 3, 2]])
    >>> rejection_step(graph, beta=2.0, proposal_beta=1.5, k=1).components.tolist()
    [0, 0, 1, 1]
    """
    n = graph.n_points
    targets = graph.neighbors[:k].T.ravel()
    edges = csr_array((np.ones(n * k, np.uint8), targets, np.arange(0, n * k + 1, k)), shape=(n, n))
    _, components = connected_components(edges, directed=False)
    weights = np.ones(2) if class_weight is None else np.asarray(class_weight, np.float64)
    return Rejection(graph.neighbors[:k], (beta - proposal_beta) / k, weights, components)


def rejection_scratch(rejection: Rejection) -> RejectionScratch:
    """Allocate what :func:`_draw_by_rejection` works in.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.perfect_rejection import rejection_scratch, rejection_step
    >>> graph = NeighborGraph.from_neighbors([[1, 0, 3, 2]])
    >>> step = rejection_step(graph, beta=2.0, proposal_beta=1.5, k=1)
    >>> rejection_scratch(step).waiting.shape
    (2,)
    """
    n, n_components = rejection.components.size, int(rejection.components.max()) + 1
    return RejectionScratch(
        site_scratch(n),
        np.empty(n, np.uint8),
        np.empty(n_components),
        np.empty(n_components, np.bool_),
    )


def choose_proposal_beta(
    graph: NeighborGraph,
    beta: float,
    k: int,
    class_weight: np.ndarray | None,
    key: np.uint64,
    max_sweeps: int,
) -> float:
    """Return the largest of beta * 15/16, 14/16, ..., 1/16 at which a pilot draw meets soon.

    Pilots have numbers of their own, so the choice does not bear on the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.perfect_rejection import choose_proposal_beta
    >>> graph = NeighborGraph.from_neighbors([[1, 0, 3, 2]])
    >>> choose_proposal_beta(graph, 1.6, 1, None, np.uint64(1), max_sweeps=1024)
    1.5
    """
    n_sweeps = min(max_sweeps, _PILOT_SWEEPS)
    scratch, labels = site_scratch(graph.n_points), np.empty(graph.n_points, np.uint8)
    n_apart = 0
    for pilot in range(_N_PILOTS, 0, -1):
        proposal_beta = beta * pilot / (_N_PILOTS + 1)
        tables = site_tables(graph, proposal_beta, k, class_weight)
        _, n_apart = _draw_sites(
            tables, key, _PILOT - np.uint64(pilot), n_sweeps, n_sweeps, scratch, labels
        )
        if n_apart == 0:
            return proposal_beta
    raise CoalescenceError(
        f"no smaller beta was found at which the chains meet within {n_sweeps} sweeps, "
        f"down to {beta / (_N_PILOTS + 1):g}; use algorithm='bonds'",
        n_sweeps,
        n_apart,
    )


@kernel
def _measure_shortfalls(rejection, labels, shortfalls):
    """S_max - S of every component."""
    heaviest = rejection.weights.max()
    shortfalls[:] = 0.0
    for r in range(rejection.neighbors.shape[0]):
        row = rejection.neighbors[r]
        for i in range(np.uint64(labels.size)):
            same = labels[i] == labels[row[i]]
            reached = rejection.weights[labels[i]] if same else 0.0
            shortfalls[rejection.components[i]] += heaviest - reached


@kernel
def _draw_by_rejection(
    rejection, tables, key, draw, n_start, max_sweeps, max_tries, scratch, labels
):
    """Make one perfect draw; return the longest past, the points not done and the tries.

    The points not done are those that were apart when a proposal ran out of past, with 0 for the
    tries, or those of components that were refused ``max_tries`` times; if there are any the
    labels mean nothing.
    """
    waiting, proposal = scratch.waiting, scratch.proposal
    waiting[:] = True
    longest, n_left = 0, labels.size
    for attempt in range(max_tries):
        number = draw * np.uint64(max_tries) + np.uint64(attempt)
        n_sweeps, n_apart = _draw_sites(
            tables, key, number, n_start, max_sweeps, scratch.sites, proposal
        )
        longest = max(longest, n_sweeps)
        if n_apart > 0:
            return longest, n_apart, 0
        _measure_shortfalls(rejection, proposal, scratch.shortfalls)
        # Sweeps are counted from 1, which leaves the numbers of sweep 0 to the decisions.
        stream = _sweep_key(key, number << _DRAW_SHIFT)
        # A component keeps taking proposals until one is accepted, and that one stays.
        for i in range(np.uint64(labels.size)):
            if waiting[rejection.components[i]]:
                labels[i] = proposal[i]
        for c in range(np.uint64(waiting.size)):
            chance = np.exp(-rejection.strength * scratch.shortfalls[c])
            waiting[c] = waiting[c] and _uniform(_bits(stream, c)) >= chance
        n_left = 0
        for i in range(np.uint64(labels.size)):
            n_left += waiting[rejection.components[i]]
        if n_left == 0:
            return longest, 0, attempt + 1
    return longest, n_left, max_tries


@kernel
def _draw_by_rejection_batch(
    rejection, tables, key, first, n_start, max_sweeps, max_tries, scratch, labels, n_sweeps,
    n_tries,
):  # fmt: skip
    """Make the draws ``first``, ``first + 1``, ... into the rows of labels, until one fails.

    Returns how many points of the last draw were not done.
    """
    for d in range(labels.shape[0]):
        n_sweeps[d], n_left, n_tries[d] = _draw_by_rejection(
            rejection, tables, key, first + np.uint64(d), n_start, max_sweeps, max_tries, scratch,
            labels[d],
        )  # fmt: skip
        if n_left > 0:
            return n_left
    return 0
