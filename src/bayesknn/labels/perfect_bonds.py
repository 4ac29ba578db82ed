"""Perfect draws by coupling from the past on bonds, for any number of classes (Section 3.4).

The paper notes that perfect sampling beyond two classes "has not yet been achieved". In its
random-cluster form the model is monotone for every G: each directed edge is a bond, open or
closed, mutual neighbours being two bonds, and the weight of a configuration is
``prod p^open (1 - p)^closed * G^clusters`` with ``p = 1 - exp(-beta / k)``. Giving every cluster a
uniform class of its own turns it into a draw of the labels.

The heat-bath of one bond opens it with probability p if its ends are connected by other open
bonds, and with probability ``p / (p + (1 - p) G)`` if not. More open bonds never make it less
likely to open, so chains started all open and all closed, driven by the same numbers, enclose
every other chain; started far enough back they have met by time zero (Propp and Wilson, 1996).
The clusters need to be the same at time zero, not the bonds.

A sweep costs about n * beta whatever k: only bonds whose number falls below p can open, and the
gaps between them are geometric. All the others close when their turn comes, which is when they
leave the window of ``connectivity.py``. Nothing is stored of the past: the numbers of a sweep are
a function of (key, draw, sweep), and going further back replays them.

Two classes with weights a_0 and a_1 are the same model with the mean weight and a pull on every
point towards the heavier class, ``exp(beta / k * |a_1 - a_0| / 2 * degree_i)``, because a directed
edge within class 1 counts ``(a_0 + a_1) / 2 + (a_1 - a_0) / 2`` and one within class 0 the
difference. The pull is a bond from each point to one more point, whose class is the heavier; that
is monotone as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import as_uniform, key_of_sweep, random_bits
from bayesknn.labels.bonds import _open_probability, bond_rate
from bayesknn.labels.connectivity import _connect, _connected, _new_forest, _part_all, _root
from bayesknn.model import BoltzmannModel

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_DRAW_SHIFT = np.uint64(32)


class BondScratch(NamedTuple):
    """Memory that a draw works in, allocated once and used for any beta, k and key.

    Attributes
    ----------
    lower, upper : ndarray of shape (2 * (n + 1),), dtype uint64
        The forests of the two chains, with one point more than the graph for the pull.
    roots : ndarray of shape (n + 1,), dtype uint32
        After a draw: a point that stands for the cluster of each point.
    """

    lower: np.ndarray
    upper: np.ndarray
    roots: np.ndarray


def bond_scratch(n_points: int) -> BondScratch:
    """Allocate what :func:`_draw_bonds` works in.

    Examples
    --------
    >>> from bayesknn.labels.perfect_bonds import bond_scratch
    >>> bond_scratch(250).roots.shape
    (251,)
    """
    size = n_points + 1
    return BondScratch(_new_forest(size), _new_forest(size), np.empty(size, np.uint32))


def bond_strengths(model: BoltzmannModel, beta: float, k: int) -> tuple[float, np.ndarray, int]:
    """Turn (beta, k) and class weights into the strengths of the bonds.

    Parameters
    ----------
    model : BoltzmannModel
        Its weights are all equal, or of two classes.
    beta : float
    k : int

    Returns
    -------
    rate : float
        Strength of a bond between neighbours.
    pull : ndarray of shape (n,) or (0,)
        Strength of each point's bond to the heavier class; empty with equal weights.
    heavier : int
        That class.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.perfect_bonds import bond_strengths
    >>> from bayesknn.model import BoltzmannModel
    >>> model = BoltzmannModel(NeighborGraph.from_neighbors([[1, 0, 1]]), 2, [1.0, 1.5])
    >>> bond_strengths(model, 2.0, 1)
    (2.5, array([1. , 1.5, 0.5]), 1)
    """
    rate = float(bond_rate(beta, k))
    weights = model.unequal_weight
    if weights is None:
        return rate * model.common_weight, np.empty(0), 0
    degrees = k + np.bincount(model.graph.neighbors[:k].ravel(), minlength=model.n_points)
    pull = rate * abs(weights[1] - weights[0]) / 2.0 * degrees
    return rate * float(weights.mean()), pull, int(np.argmax(weights))


@kernel
def _sure_share(p, n_classes):
    """Of the numbers that can open a bond, those below p, the share that opens it in any case."""
    return 1.0 / (p + (1.0 - p) * n_classes)


@kernel
def _update_bond(lower, upper, i, j, now, since, share, sure, first, split):
    """Heat-bath of one bond of both chains; whether it opens in the upper chain alone.

    ``share`` is the bond's number as a share of the largest that can open it; below ``sure`` it
    opens even if nothing else connects its ends.
    """
    if share < sure:
        _connect(upper, i, j, now, since)
        if split:
            _connect(lower, i, j, now, since)
        return False
    if split and _connected(lower, i, j, since):
        _connect(lower, i, j, now, since)
        _connect(upper, i, j, now, since)
        return False
    # In its first sweep the upper chain takes every bond that can open: starting from all open it
    # could take no more.
    if first or _connected(upper, i, j, since):
        _connect(upper, i, j, now, since)
        return split
    return False


@kernel
def _sweep_bonds(neighbors, k, rate, n_classes, pull, sweep_key, start, first, split, scratch):
    """Refresh every bond once; the time of the last one open in the upper chain alone, or 0.

    Time advances by one per bond. The bonds of point 0 come first, nearest neighbour first, then
    those of point 1, and so on, and the pull on every point at the end.
    """
    lower, upper = scratch.lower, scratch.upper
    n, n_ranks = np.uint64(neighbors.shape[1]), np.uint64(k)
    n_bonds = n * n_ranks
    length = n_bonds + np.uint64(pull.size)
    sure = _sure_share(_open_probability(rate), n_classes)
    scale, end = -1.0 / rate if rate > 0.0 else -np.inf, np.float64(n_bonds)
    last_apart = _ZERO
    bond, counter = _ZERO, _ZERO
    while True:
        # The number of bonds passed over, whose own numbers are too large to open them.
        gap = np.log(1.0 - as_uniform(random_bits(sweep_key, counter))) * scale
        if not gap < end:
            break
        bond += np.uint64(gap)
        if bond >= n_bonds:
            break
        share = as_uniform(random_bits(sweep_key, counter + _ONE))
        counter += _TWO
        i = bond // n_ranks
        j = np.uint64(neighbors[bond - i * n_ranks, i])
        now = start + bond
        since = now - length + _ONE
        if _update_bond(lower, upper, i, j, now, since, share, sure, first, split):
            last_apart = now
        bond += _ONE
    for point in range(np.uint64(pull.size)):
        p = _open_probability(pull[point])
        number = as_uniform(random_bits(sweep_key, _TWO * n_bonds + _TWO + point))
        if number < p:
            now = start + n_bonds + point
            since = now - length + _ONE
            sure = _sure_share(p, n_classes)
            if _update_bond(lower, upper, point, n, now, since, number / p, sure, first, split):
                last_apart = now
    return last_apart


@kernel
def _run_bonds(neighbors, k, rate, n_classes, pull, key, draw, n_sweeps, scratch):
    """Run both chains from ``n_sweeps`` sweeps back; how many points have not met at time zero."""
    lower, upper, roots = scratch.lower, scratch.upper, scratch.roots
    length = np.uint64(neighbors.shape[1]) * np.uint64(k) + np.uint64(pull.size)
    _part_all(lower)
    _part_all(upper)
    # Time starts late enough for "one sweep ago" never to reach back to 0, which means no link.
    start = length + _ONE
    split = True
    for back in range(n_sweeps, 0, -1):
        sweep_key = key_of_sweep(key, (draw << _DRAW_SHIFT) | np.uint64(back))
        last_apart = _sweep_bonds(
            neighbors, k, rate, n_classes, pull, sweep_key, start, back == n_sweeps, split, scratch
        )
        # With no bond that is open in one chain only the chains are one, and stay so.
        split = split and last_apart >= start
        start += length
    since = start - length
    n_apart = 0
    for i in range(np.uint64(roots.size)):
        root = _root(upper, i, since)
        roots[i] = np.uint32(root)
        if split and _root(lower, i, since) != root:
            n_apart += 1
    return n_apart


@kernel
def _colour_clusters(n_classes, heavier, key, draw, roots, labels):
    """Give every cluster a uniform class; the one of the extra point has the heavier class."""
    # Sweeps are counted from 1, which leaves the numbers of sweep 0 to the classes.
    sweep_key = key_of_sweep(key, draw << _DRAW_SHIFT)
    for i in range(np.uint64(labels.size)):
        root = np.uint64(roots[i])
        if root == np.uint64(roots[labels.size]):
            labels[i] = heavier
        else:
            labels[i] = np.uint64(as_uniform(random_bits(sweep_key, root)) * n_classes)


@kernel
def _draw_bonds(
    neighbors, k, rate, n_classes, pull, heavier, key, draw, n_start, max_sweeps, scratch, labels
):
    """Make one perfect draw; return how far back it began and how many points were apart.

    The labels depend on ``key`` and ``draw`` alone, not on ``n_start``, the past that is tried
    first and then doubled. When points are still apart at ``max_sweeps`` the labels are not
    touched. ``rate`` is beta / k, times the common class weight if there is one; ``pull`` is empty,
    or the strength of each point's bond to the class ``heavier`` (two classes only).
    """
    n_sweeps = min(n_start, max_sweeps)
    while True:
        n_apart = _run_bonds(neighbors, k, rate, n_classes, pull, key, draw, n_sweeps, scratch)
        if n_apart == 0:
            _colour_clusters(n_classes, heavier, key, draw, scratch.roots, labels)
        if n_apart == 0 or n_sweeps == max_sweeps:
            return n_sweeps, n_apart
        n_sweeps = min(2 * n_sweeps, max_sweeps)


@kernel
def _draw_bonds_batch(
    neighbors, k, rate, n_classes, pull, heavier, key, first, n_start, max_sweeps, scratch, labels,
    n_sweeps,
):  # fmt: skip
    """Make the draws ``first``, ``first + 1``, ... into the rows of labels, until one fails.

    Returns how many points of the last draw were apart.
    """
    for d in range(labels.shape[0]):
        n_sweeps[d], n_apart = _draw_bonds(
            neighbors, k, rate, n_classes, pull, heavier, key, first + np.uint64(d), n_start,
            max_sweeps, scratch, labels[d],
        )  # fmt: skip
        if n_apart > 0:
            return n_apart
    return 0
