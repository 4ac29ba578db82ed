"""Perfect draws of the labels given (beta, k): exact, with no warm-up to choose (Section 3.4).

Two couplings from the past stand behind one function. ``perfect_bonds.py`` couples the bonds of
the random-cluster form, works for any number of classes and at any beta, and is the one to use.
``perfect_sites.py`` couples the labels, is the one the paper describes, and is the check on the
other; ``perfect_rejection.py`` is the paper's help for it at large beta.

Draw d is a function of the key and of d, so asking for more draws, or for more threads, changes
none of them, and neither does interrupting and asking again. What would bias perfect sampling,
giving up on slow draws and starting others in their place, therefore cannot happen by accident:
the same key gives the same draw or the same :class:`~bayesknn.exceptions.CoalescenceError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from bayesknn._validation import check_count
from bayesknn.exceptions import CoalescenceError
from bayesknn.graph import NeighborGraph
from bayesknn.labels.layout import local_layout
from bayesknn.labels.perfect_bonds import _draw_bonds_batch, bond_scratch, bond_strengths
from bayesknn.labels.perfect_rejection import (
    _draw_by_rejection_batch,
    choose_proposal_beta,
    rejection_scratch,
    rejection_step,
)
from bayesknn.labels.perfect_sites import _draw_sites_batch, site_scratch, site_tables
from bayesknn.model.checks import (
    check_beta,
    check_class_weight,
    check_n_classes,
    label_dtype,
)
from bayesknn.model.statistics import agreement

# A thread's own function that makes draws, and what prepares one.
_MakeDraws = Callable[..., int]
_Prepare = Callable[[], _MakeDraws]

_ALGORITHMS = ("auto", "bonds", "sites")
# Draws that find out with how long a past to begin.
_N_PILOTS = 8
# Draws and sweeps share a counter of 64 bits.
_MOST = 2**31
# Updates of a point per call of a kernel, about half a second, so that Ctrl-C is heard in between.
_WORK_PER_CALL = 2**22


class PerfectInfo(NamedTuple):
    """What a diagnostic needs to know of perfect draws.

    Attributes
    ----------
    algorithm : str
        "bonds" or "sites".
    n_sweeps : ndarray of shape (n_draws,), dtype int64
        How many sweeps back the chains that met were started. The past is doubled until they
        meet; after the first few draws it begins where those say it costs least.
    agreement : ndarray of shape (n_draws,), dtype float64
        S_k of each draw; with class weights, the sum over g of a_g times the edges within g.
    n_tries : ndarray of shape (n_draws,), dtype int64
        Proposals made by the accept-reject step; ones without it.
    proposal_beta : float
        The beta of the proposals; the beta asked for without the accept-reject step.
    """

    algorithm: str
    n_sweeps: np.ndarray
    agreement: np.ndarray
    n_tries: np.ndarray
    proposal_beta: float


def perfect_labels(
    graph: NeighborGraph,
    beta: float,
    k: int,
    n_classes: int,
    *,
    key: np.uint64,
    n_draws: int = 1,
    class_weight: Any = None,
    algorithm: str = "auto",
    max_sweeps: int = 2**16,
    proposal_beta: float | str | None = None,
    max_tries: int = 1000,
    n_jobs: int | None = None,
    report: Callable[[float], None] = lambda steps: None,
) -> tuple[np.ndarray, PerfectInfo]:
    """Draw label vectors exactly from the model, by coupling from the past.

    Parameters
    ----------
    graph : NeighborGraph
    beta : float
    k : int
    n_classes : int
    key : numpy.uint64
        From :func:`bayesknn.labels.random.spawn_keys`. Draw d is a function of the key and d alone;
        with ``proposal_beta``, of ``max_tries`` too.
    n_draws : int
    class_weight : array-like of shape (n_classes,), optional
        The weights a_g; weights that differ are possible with two classes only.
    algorithm : {"auto", "bonds", "sites"}
        "bonds" couples the bonds of the random-cluster form, "sites" the labels themselves (two
        classes, and slow where the labels are strongly dependent). "auto" is "bonds".
    max_sweeps : int
        How far into the past to go before giving up.
    proposal_beta : float or "auto", optional
        With "sites": draw at this smaller beta and accept with the probability that makes the draw
        exact at ``beta``, see ``perfect_rejection.py``. "auto" takes the largest beta that a pilot
        finds quick.
    max_tries : int
        How many proposals to make before giving up.
    n_jobs : int, optional
        Threads over the draws, as in joblib. The draws do not depend on it.
    report : callable, optional
        ``report(draws)``: so many more are made; any thread calls it.

    Returns
    -------
    labels : ndarray of shape (n_draws, n), uint8, or uint32 beyond 256 classes
    info : PerfectInfo

    Raises
    ------
    CoalescenceError
        If the chains of a draw had not met after ``max_sweeps`` sweeps or its proposals were
        refused ``max_tries`` times. No draw is returned then, because the draws that are easily
        made are not representative.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels.perfect import perfect_labels
    >>> from bayesknn.labels.random import spawn_keys
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> labels, info = perfect_labels(ring, 1.0, 1, 3, n_draws=4, key=spawn_keys(0, 1)[0])
    >>> labels.shape, info.algorithm
    ((4, 5), 'bonds')
    """
    beta, k, n_classes = check_beta(beta), graph.check_k(k), check_n_classes(n_classes)
    n_draws = check_count(n_draws, "n_draws", high=_MOST)
    max_sweeps = check_count(max_sweeps, "max_sweeps", high=_MOST)
    max_tries = check_count(max_tries, "max_tries", high=_MOST)
    weights = check_class_weight(class_weight, n_classes)
    algorithm = _choose_algorithm(algorithm, n_classes, weights, proposal_beta)
    key = np.uint64(key)
    reached = beta
    if algorithm == "bonds":
        prepare = _prepare_bonds(graph, beta, k, n_classes, weights, key, max_sweeps)
    elif proposal_beta is None:
        prepare = _prepare_sites(graph, beta, k, weights, key, max_sweeps)
    else:
        if n_draws * max_tries > _MOST:
            raise ValueError(f"n_draws * max_tries must be at most {_MOST}")
        if isinstance(proposal_beta, str) and proposal_beta == "auto":
            proposal_beta = choose_proposal_beta(graph, beta, k, weights, key, max_sweeps)
        reached = check_beta(proposal_beta, "proposal_beta")
        if reached > beta:
            raise ValueError(f"proposal_beta must be at most beta = {beta:g}, got {reached:g}")
        prepare = _prepare_rejection(graph, beta, reached, k, weights, key, max_sweeps, max_tries)
    labels = np.empty((n_draws, graph.n_points), label_dtype(n_classes))
    n_sweeps, n_tries = np.zeros(n_draws, np.int64), np.ones(n_draws, np.int64)
    n_apart = _fill(prepare, labels, n_sweeps, n_tries, effective_n_jobs(n_jobs), report)
    if n_apart.any():
        draw = int(np.argmax(n_apart > 0))
        past, apart = int(n_sweeps[draw]), int(n_apart[draw])
        what = f"were still apart after a past of {past} sweeps"
        advice = "raise max_sweeps, or use Swendsen-Wang, which needs no past but is approximate"
        if proposal_beta is not None and n_tries[draw] > 0:
            what = f"were refused in all of {max_tries} proposals"
            advice = "use algorithm='bonds'"
        elif algorithm == "sites":
            advice = "use algorithm='bonds', or raise max_sweeps"
        raise CoalescenceError(
            f"draw {draw} at beta={beta:g}, k={k}: {apart} of {graph.n_points} points {what}; "
            f"{advice}",
            past,
            apart,
        )
    totals = np.asarray(agreement(graph, labels, k, weights), np.float64)
    return labels, PerfectInfo(algorithm, n_sweeps, totals, n_tries, reached)


def _choose_algorithm(algorithm, n_classes, weights, proposal_beta) -> str:
    if algorithm not in _ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(_ALGORITHMS)}, got {algorithm!r}")
    if algorithm == "sites" and n_classes != 2:
        raise ValueError(f"algorithm='sites' needs two classes, got {n_classes}; use 'bonds'")
    if algorithm != "sites" and proposal_beta is not None:
        raise ValueError("proposal_beta is for algorithm='sites'; 'bonds' has no need of it")
    if n_classes > 2 and weights is not None and np.ptp(weights) > 0:
        raise ValueError(
            f"perfect draws with class weights that differ need two classes, got {n_classes}; "
            "use Gibbs or Swendsen-Wang"
        )
    return "sites" if algorithm == "sites" else "bonds"


def _prepare_bonds(graph, beta, k, n_classes, weights, key, max_sweeps) -> _Prepare:
    layout = local_layout(graph, k)
    rate, pull, heavier = bond_strengths(graph, beta, k, weights)
    pull = pull[layout.order] if pull.size else pull

    def prepare() -> _MakeDraws:
        scratch = bond_scratch(graph.n_points)

        def make(first, n_start, labels, n_sweeps, n_tries) -> int:
            rows = labels if layout.neighbors is graph.neighbors else np.empty_like(labels)
            n_apart = _draw_bonds_batch(
                layout.neighbors, k, rate, n_classes, pull, heavier, key, np.uint64(first),
                n_start, max_sweeps, scratch, rows, n_sweeps,
            )  # fmt: skip
            if rows is not labels:
                labels[:, layout.order] = rows
            return n_apart

        return make

    return prepare


def _prepare_sites(graph, beta, k, weights, key, max_sweeps) -> _Prepare:
    tables = site_tables(graph, beta, k, weights)

    def prepare() -> _MakeDraws:
        scratch = site_scratch(graph.n_points)

        def make(first, n_start, labels, n_sweeps, n_tries) -> int:
            return _draw_sites_batch(
                tables, key, np.uint64(first), n_start, max_sweeps, scratch, labels, n_sweeps
            )

        return make

    return prepare


def _prepare_rejection(
    graph, beta, proposal_beta, k, weights, key, max_sweeps, max_tries
) -> _Prepare:
    tables = site_tables(graph, proposal_beta, k, weights)
    step = rejection_step(graph, beta, proposal_beta, k, weights)

    def prepare() -> _MakeDraws:
        scratch = rejection_scratch(step)

        def make(first, n_start, labels, n_sweeps, n_tries) -> int:
            return _draw_by_rejection_batch(
                step, tables, key, np.uint64(first), n_start, max_sweeps, max_tries, scratch,
                labels, n_sweeps, n_tries,
            )  # fmt: skip

        return make

    return prepare


def _fill(prepare: _Prepare, labels, n_sweeps, n_tries, n_threads: int, report) -> np.ndarray:
    """Make every draw, or all up to one that fails; how many points each left apart."""
    n_draws, n_points = labels.shape
    n_apart = np.zeros(n_draws, np.int64)

    def make_range(begin: int, end: int, n_start: int) -> None:
        make = prepare()
        step = max(1, _WORK_PER_CALL // (n_points * n_start))
        for first in range(begin, end, step):
            part = slice(first, min(first + step, end))
            n_left = make(first, n_start, labels[part], n_sweeps[part], n_tries[part])
            if n_left > 0:
                # The draws after the one that failed have not been started.
                failed = first + int(np.flatnonzero(n_sweeps[part])[-1])
                n_apart[failed] = n_left
                return
            report(part.stop - part.start)

    def make_all(begin: int, end: int, n_start: int) -> None:
        bounds = np.linspace(begin, end, min(n_threads, end - begin) + 1).astype(int).tolist()
        if len(bounds) == 2:
            make_range(begin, end, n_start)
        else:
            with ThreadPoolExecutor(len(bounds) - 1) as threads:
                starts = [n_start] * (len(bounds) - 1)
                list(threads.map(make_range, bounds[:-1], bounds[1:], starts))

    n_pilots = min(n_draws, _N_PILOTS)
    # Where chains meet soon they do so in about log n sweeps.
    make_all(0, n_pilots, 2 ** int(math.log2(max(math.log2(n_points), 4.0))))
    if n_draws > n_pilots and not n_apart.any():
        make_all(n_pilots, n_draws, _best_start(n_sweeps[:n_pilots]))
    return n_apart


def _best_start(pasts: np.ndarray) -> int:
    """Return the past with which to begin that would have cost these draws the fewest sweeps."""
    starts = np.unique(pasts)[:, None]
    # A past that is too short costs all its doublings on the way to the one that does.
    costs = np.where(pasts <= starts, starts, 2 * pasts - starts)
    return int(starts[np.argmin(costs.sum(axis=1)), 0])
