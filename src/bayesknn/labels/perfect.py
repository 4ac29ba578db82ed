"""Perfect draws of the labels given (beta, k): exact, with no warm-up to choose (Section 3.4).

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
leave the window below. Nothing is stored of the past: the numbers of a sweep are
a function of (key, draw, sweep), and going further back replays them.

Two classes with weights a_0 and a_1 are the same model with the mean weight and a pull on every
point towards the heavier class, ``exp(beta / k * |a_1 - a_0| / 2 * degree_i)``, because a directed
edge within class 1 counts ``(a_0 + a_1) / 2 + (a_1 - a_0) / 2`` and one within class 0 the
difference. The pull is a bond from each point to one more point, whose class is the heavier; that
is monotone as well.

Draw d is a function of the key and of d, so asking for more draws, or for more threads, changes
none of them, and neither does interrupting and asking again. What would bias perfect sampling,
giving up on slow draws and starting others in their place, therefore cannot happen by accident:
the same key gives the same draw or the same :class:`~bayesknn.exceptions.CoalescenceError`.

**Which points are connected.** Every bond is refreshed once a sweep, in the same order, so the
bonds that are open at any moment form a window of time: those opened since the moment one sweep
ago. Two points are connected in the window if and only if the spanning forest that prefers recent
bonds joins them by bonds that are all in the window. That forest is kept, and nothing is ever
searched or deleted: a bond that leaves the window simply stops counting. Every point carries a link
to another point and the time of that link. Links lead to points of higher priority, and along a
path of links times go down. At any threshold, following the links that are as recent as the
threshold ends at the point of highest priority in the cluster. Priorities are a fixed scramble of
the point's number, which keeps paths about log n long whatever the data. A forest is one array of
uint64: entry ``2 i`` is the time of i's link (0: none), entry ``2 i + 1`` the priority of i in its
high half and the point linked to in its low half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from bayesknn._utils.checks import check_count
from bayesknn._utils.jit import kernel, run_in_threads
from bayesknn._utils.random import as_uniform, key_of_sweep, random_bits
from bayesknn.exceptions import CoalescenceError
from bayesknn.labels.mixing import DrawInfo, check_run
from bayesknn.labels.swendsen_wang import bond_rate, open_probability
from bayesknn.model import BoltzmannModel
from bayesknn.model.boltzmann import check_setting

# Updates of a point per call of a kernel, about half a second, so that Ctrl-C is heard in between.
_WORK_PER_CALL = 2**22
# Largest past of a draw: draws and sweeps share a counter of 64 bits.
MOST_SWEEPS = 2**31
_LOW_HALF = np.uint64(0xFFFFFFFF)


class RandomCluster(NamedTuple):
    """The model at one (beta, k) in its random-cluster form.

    Attributes
    ----------
    neighbors : ndarray of shape (k_max, n), dtype uint32
    k : int
    rate : float
        Strength of a bond between neighbours: beta / k, times the mean class weight.
    n_classes : int
    pull : ndarray of shape (n,) or (0,)
        Strength of each point's bond to the heavier class; empty with equal weights.
    heavier : int
        That class.
    """

    neighbors: np.ndarray
    k: int
    rate: float
    n_classes: int
    pull: np.ndarray
    heavier: int


class BondWorkspace(NamedTuple):
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


def new_bond_workspace(n_points: int) -> BondWorkspace:
    """Allocate what :func:`draw_perfectly` works in."""
    size = n_points + 1
    return BondWorkspace(new_forest(size), new_forest(size), np.empty(size, np.uint32))


def perfect_labels(
    model: BoltzmannModel,
    beta: float,
    k: int,
    *,
    key: np.uint64,
    n_draws: int = 1,
    max_sweeps: int = 2**16,
    n_jobs: int | None = None,
    advance: Callable[[float], None] = lambda steps: None,
) -> tuple[np.ndarray, DrawInfo]:
    """Draw label vectors exactly from the model, by coupling from the past.

    Parameters
    ----------
    model : BoltzmannModel
        Class weights that differ are possible with two classes only.
    beta : float
    k : int
    key : numpy.uint64
        From :func:`bayesknn._utils.random.spawn_keys`. Draw d is a function of the key and d alone.
    n_draws : int
    max_sweeps : int
        How far into the past to go before giving up.
    n_jobs : int, optional
        Threads over the draws, as in joblib. The draws do not depend on it.
    advance : callable, optional
        Called, by any thread, with the number of draws made since the last call.

    Returns
    -------
    labels : ndarray of shape (n_draws, n), uint8, or uint32 beyond 256 classes
    info : DrawInfo

    Raises
    ------
    CoalescenceError
        If the chains of a draw had not met after ``max_sweeps`` sweeps. No draw is returned then,
        because the draws that are easily made are not representative.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn._utils.random import spawn_keys
    >>> from bayesknn.labels import perfect_labels
    >>> from bayesknn.model import BoltzmannModel
    >>> ring = BoltzmannModel(NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]]), n_classes=3)
    >>> labels, info = perfect_labels(ring, 1.0, 1, n_draws=4, key=spawn_keys(0, 1)[0])
    >>> labels.shape, info.n_sweeps.shape
    ((4, 5), (4,))
    """
    model, beta, k = check_setting(model, beta, k)
    key, n_draws, *_ = check_run(key, n_draws)
    max_sweeps = check_count(max_sweeps, "max_sweeps", high=MOST_SWEEPS)
    check_perfect(model)
    bonds = random_cluster(model, beta, k)
    labels = np.empty((n_draws, model.n_points), model.label_dtype)
    n_sweeps, n_apart = np.zeros((2, n_draws), np.int64)

    def make_draws(first: int, last: int, n_start: int) -> None:
        def make_part(start: int, stop: int) -> None:
            part = slice(first + start, first + stop)
            # Parts are begun in their order: those before one that fails have begun.
            if not n_apart.any():
                _draw_batch(
                    bonds, key, np.uint64(part.start), n_start, max_sweeps,
                    new_bond_workspace(model.n_points), labels[part], n_sweeps[part], n_apart[part],
                )  # fmt: skip

        n_each = -(-(last - first) // effective_n_jobs(n_jobs))
        step = min(_WORK_PER_CALL // (model.n_points * n_start), n_each)
        run_in_threads(make_part, last - first, max(1, step), n_jobs, advance)

    # The first few draws find out with how long a past the others begin. Where chains meet soon
    # they do so in about log n sweeps.
    n_pilots = min(n_draws, 8)
    make_draws(0, n_pilots, 2 ** int(math.log2(max(math.log2(model.n_points), 4.0))))
    if not n_apart.any():
        make_draws(n_pilots, n_draws, _best_start(n_sweeps[:n_pilots]))
    if n_apart.any():
        draw = int(np.argmax(n_apart > 0))
        past, apart = int(n_sweeps[draw]), int(n_apart[draw])
        raise CoalescenceError(
            f"draw {draw} at beta={beta:g}, k={k}: {apart} of {model.n_points} points were still "
            f"apart after a past of {past} sweeps; raise max_sweeps, or use Swendsen-Wang, which "
            "needs no past but is approximate",
            past,
            apart,
        )
    return labels, DrawInfo(n_sweeps, model.agreement(labels, k))


def check_perfect(model: BoltzmannModel) -> None:
    """Raise ``ValueError`` if perfect draws of the model are not known how to make."""
    if model.n_classes > 2 and model.unequal_weight is not None:
        raise ValueError(
            f"perfect draws with class weights that differ need two classes, got "
            f"{model.n_classes}; use 'gibbs' or 'swendsen-wang'"
        )


def random_cluster(model: BoltzmannModel, beta: float, k: int) -> RandomCluster:
    """Turn (beta, k) and class weights into the strengths of the bonds.

    Parameters
    ----------
    model : BoltzmannModel
        Its weights are all equal, or of two classes.
    beta : float
    k : int

    Returns
    -------
    RandomCluster
    """
    weight, n = model.unequal_weight, model.n_points
    degrees = k + np.bincount(model.graph.neighbors[:k].ravel(), minlength=n)
    rate = float(bond_rate(beta, k)) * model.common_weight
    return weigh_bonds(model.graph.neighbors, k, rate, model.n_classes, weight, degrees)


@kernel
def weigh_bonds(neighbors, k, rate, n_classes, class_weight, degrees):
    """Find the strengths of the bonds from that of an edge of weight 1; see the top of the file."""
    pull, heavier = np.empty(0), 0
    if class_weight is not None:
        pull = rate * abs(class_weight[1] - class_weight[0]) / 2.0 * degrees
        rate *= class_weight.mean()
        heavier = int(np.argmax(class_weight))
    return RandomCluster(neighbors, k, rate, n_classes, pull, heavier)


def _best_start(pasts: np.ndarray) -> int:
    """Return the past with which to begin that would have cost these draws the fewest sweeps."""
    starts = np.unique(pasts)[:, None]
    # A past that is too short costs all its doublings on the way to the one that does.
    costs = np.where(pasts <= starts, starts, 2 * pasts - starts)
    return int(starts[np.argmin(costs.sum(axis=1)), 0])


@kernel
def _sure_fraction(p, n_classes):
    """Of the numbers that can open a bond, those below p, the fraction that always opens it."""
    return 1.0 / (p + (1.0 - p) * n_classes)


@kernel
def _update_bond(workspace, i, j, now, since, fraction, sure, first, split):
    """Heat-bath of one bond of both chains; whether it opens in the upper chain alone.

    ``fraction`` is the bond's number as a fraction of the largest that can open it; below ``sure``
    it opens even if nothing else connects its ends.
    """
    lower, upper = workspace.lower, workspace.upper
    if fraction < sure:
        connect(upper, i, j, now, since)
        if split:
            connect(lower, i, j, now, since)
        return False
    if split and are_connected(lower, i, j, since):
        connect(lower, i, j, now, since)
        connect(upper, i, j, now, since)
        return False
    # In its first sweep the upper chain takes every bond that can open: starting from all open it
    # could take no more.
    if first or are_connected(upper, i, j, since):
        connect(upper, i, j, now, since)
        return split
    return False


@kernel
def _sweep_bonds(bonds, sweep_key, start, first, split, workspace):
    """Refresh every bond once; the time of the last one open in the upper chain alone, or 0.

    Time advances by one per bond. The bonds of point 0 come first, nearest neighbour first, then
    those of point 1, and so on, and the pull on every point at the end.
    """
    neighbors, pull, rate = bonds.neighbors, bonds.pull, bonds.rate
    n, n_ranks = np.uint64(neighbors.shape[1]), np.uint64(bonds.k)
    n_bonds = n * n_ranks
    length = n_bonds + np.uint64(pull.size)
    sure = _sure_fraction(open_probability(rate), bonds.n_classes)
    scale, end = -1.0 / rate if rate > 0.0 else -np.inf, np.float64(n_bonds)
    last_apart = np.uint64(0)
    bond, counter = np.uint64(0), np.uint64(0)
    while True:
        # The number of bonds passed over, whose own numbers are too large to open them.
        gap = np.log(1.0 - as_uniform(random_bits(sweep_key, counter))) * scale
        if not gap < end:
            break
        bond += np.uint64(gap)
        if bond >= n_bonds:
            break
        fraction = as_uniform(random_bits(sweep_key, counter + np.uint64(1)))
        counter += np.uint64(2)
        i = bond // n_ranks
        j = np.uint64(neighbors[bond - i * n_ranks, i])
        now = start + bond
        since = now - length + np.uint64(1)
        if _update_bond(workspace, i, j, now, since, fraction, sure, first, split):
            last_apart = now
        bond += np.uint64(1)
    for point in range(np.uint64(pull.size)):
        p = open_probability(pull[point])
        number = as_uniform(random_bits(sweep_key, np.uint64(2) * n_bonds + np.uint64(2) + point))
        if number < p:
            now = start + n_bonds + point
            since = now - length + np.uint64(1)
            sure = _sure_fraction(p, bonds.n_classes)
            if _update_bond(workspace, point, n, now, since, number / p, sure, first, split):
                last_apart = now
    return last_apart


@kernel
def _run_bonds(bonds, key, draw, n_sweeps, workspace):
    """Run both chains from ``n_sweeps`` sweeps back; how many points have not met at time zero."""
    lower, upper, roots = workspace.lower, workspace.upper, workspace.roots
    length = np.uint64(bonds.neighbors.shape[1]) * np.uint64(bonds.k) + np.uint64(bonds.pull.size)
    disconnect_all(lower)
    disconnect_all(upper)
    # Time starts late enough for "one sweep ago" never to reach back to 0, which means no link.
    start = length + np.uint64(1)
    split = True
    for back in range(n_sweeps, 0, -1):
        sweep_key = key_of_sweep(key, (draw << np.uint64(32)) | np.uint64(back))
        last_apart = _sweep_bonds(bonds, sweep_key, start, back == n_sweeps, split, workspace)
        # With no bond that is open in one chain only the chains are one, and stay so.
        split = split and last_apart >= start
        start += length
    since = start - length
    n_apart = 0
    for i in range(np.uint64(roots.size)):
        root = find_root(upper, i, since)
        roots[i] = np.uint32(root)
        if split and find_root(lower, i, since) != root:
            n_apart += 1
    return n_apart


@kernel
def _colour_clusters(bonds, key, draw, roots, labels):
    """Give every cluster a uniform class; the one of the extra point has the heavier class."""
    # Sweeps are counted from 1, which leaves the numbers of sweep 0 to the classes.
    sweep_key = key_of_sweep(key, draw << np.uint64(32))
    for i in range(np.uint64(labels.size)):
        root = np.uint64(roots[i])
        if root == np.uint64(roots[labels.size]):
            labels[i] = bonds.heavier
        else:
            labels[i] = np.uint64(as_uniform(random_bits(sweep_key, root)) * bonds.n_classes)


@kernel
def draw_perfectly(bonds, key, draw, n_start, max_sweeps, workspace, labels):
    """Make one perfect draw; return how far back it began and how many points were apart.

    The labels depend on ``key`` and ``draw`` alone, not on ``n_start``, the past that is tried
    first and then doubled. When points are still apart at ``max_sweeps`` the labels are not
    touched.
    """
    n_sweeps = min(n_start, max_sweeps)
    while True:
        n_apart = _run_bonds(bonds, key, draw, n_sweeps, workspace)
        if n_apart == 0:
            _colour_clusters(bonds, key, draw, workspace.roots, labels)
        if n_apart == 0 or n_sweeps == max_sweeps:
            return n_sweeps, n_apart
        n_sweeps = min(2 * n_sweeps, max_sweeps)


@kernel
def _draw_batch(bonds, key, first, n_start, max_sweeps, workspace, labels, n_sweeps, n_apart):
    """Make the draws ``first``, ``first + 1``, ... into the rows of labels, until one fails."""
    for d in range(labels.shape[0]):
        n_sweeps[d], n_apart[d] = draw_perfectly(
            bonds, key, first + np.uint64(d), n_start, max_sweeps, workspace, labels[d]
        )
        if n_apart[d] > 0:
            return


@kernel
def new_forest(n_points):
    """Allocate the forest of ``n_points`` points, all apart."""
    forest = np.empty(2 * n_points, np.uint64)
    for i in range(np.uint64(n_points)):
        # A bijection of 32 bits (multiplications by odd numbers, shifts), so priorities differ.
        h = i ^ (i >> np.uint64(16))
        h = (h * np.uint64(0x7FEB352D)) & _LOW_HALF
        h ^= h >> np.uint64(15)
        h = (h * np.uint64(0x846CA68B)) & _LOW_HALF
        h ^= h >> np.uint64(16)
        forest[i + i] = np.uint64(0)
        forest[i + i + np.uint64(1)] = (h << np.uint64(32)) | i
    return forest


@kernel
def disconnect_all(forest):
    """Forget every bond."""
    for i in range(np.uint64(forest.size // 2)):
        forest[i + i] = np.uint64(0)


@kernel
def find_root(forest, i, since):
    """Point of highest priority among those connected to i by bonds not older than ``since``."""
    while forest[i + i] >= since:
        i = forest[i + i + np.uint64(1)] & _LOW_HALF
    return i


@kernel
def are_connected(forest, i, j, since):
    """Whether bonds not older than ``since`` connect i and j."""
    link_i, link_j = forest[i + i + np.uint64(1)], forest[j + j + np.uint64(1)]
    # The one of lower priority moves up, so that paths are followed only to where they meet.
    while i != j:
        if link_i < link_j:
            if forest[i + i] < since:
                return False
            i = link_i & _LOW_HALF
            link_i = forest[i + i + np.uint64(1)]
        else:
            if forest[j + j] < since:
                return False
            j = link_j & _LOW_HALF
            link_j = forest[j + j + np.uint64(1)]
    return True


@kernel
def connect(forest, i, j, now, since):
    """Add a bond at time ``now``, later than all others; those older than ``since`` may be lost."""
    time = now
    while True:
        # Connect what i and j belong to at this time.
        while forest[i + i] >= time:
            i = forest[i + i + np.uint64(1)] & _LOW_HALF
        while forest[j + j] >= time:
            j = forest[j + j + np.uint64(1)] & _LOW_HALF
        if i == j:
            return
        link_i, link_j = forest[i + i + np.uint64(1)], forest[j + j + np.uint64(1)]
        if link_i > link_j:
            i, j = j, i
            link_i = link_j
        older = forest[i + i]
        forest[i + i] = time
        forest[i + i + np.uint64(1)] = (link_i & ~_LOW_HALF) | j
        if older < since:
            return
        # The link that was replaced still connects, at its own time, what it led to.
        time = older
        i, j = j, link_i & _LOW_HALF
