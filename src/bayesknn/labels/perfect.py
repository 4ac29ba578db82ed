"""Perfect draws of the labels given (beta, k): exact, with no warm-up to choose (Section 3.4).

Two couplings from the past stand behind one function. ``perfect_bonds.py`` couples the bonds of
the random-cluster form, works for any number of classes and at any beta, and is the one to use.
``perfect_sites.py`` couples the labels, is the one the paper describes, and is the check on the
other.

Draw d is a function of the key and of d, so asking for more draws, or for more threads, changes
none of them, and neither does interrupting and asking again. What would bias perfect sampling,
giving up on slow draws and starting others in their place, therefore cannot happen by accident:
the same key gives the same draw or the same :class:`~bayesknn.exceptions.CoalescenceError`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from bayesknn._utils.checks import check_count
from bayesknn.exceptions import CoalescenceError
from bayesknn.labels.layout import local_layout
from bayesknn.labels.perfect_bonds import _draw_bonds_batch, bond_scratch, bond_strengths
from bayesknn.labels.perfect_sites import _draw_sites_batch, site_scratch, site_tables
from bayesknn.model import BoltzmannModel
from bayesknn.model.checks import check_beta

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
    """

    algorithm: str
    n_sweeps: np.ndarray
    agreement: np.ndarray


def perfect_labels(
    model: BoltzmannModel,
    beta: float,
    k: int,
    *,
    key: np.uint64,
    n_draws: int = 1,
    algorithm: str = "auto",
    max_sweeps: int = 2**16,
    n_jobs: int | None = None,
    report: Callable[[float], None] = lambda steps: None,
) -> tuple[np.ndarray, PerfectInfo]:
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
    algorithm : {"auto", "bonds", "sites"}
        "bonds" couples the bonds of the random-cluster form, "sites" the labels themselves (two
        classes, and slow where the labels are strongly dependent). "auto" is "bonds".
    max_sweeps : int
        How far into the past to go before giving up.
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
        If the chains of a draw had not met after ``max_sweeps`` sweeps. No draw is returned then,
        because the draws that are easily made are not representative.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels import perfect_labels, spawn_keys
    >>> from bayesknn.model import BoltzmannModel
    >>> ring = BoltzmannModel(NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]]), n_classes=3)
    >>> labels, info = perfect_labels(ring, 1.0, 1, n_draws=4, key=spawn_keys(0, 1)[0])
    >>> labels.shape, info.algorithm
    ((4, 5), 'bonds')
    """
    model.refuse_fixed("perfect sampling")
    beta, k = check_beta(beta), model.graph.check_k(k)
    n_draws = check_count(n_draws, "n_draws", high=_MOST)
    max_sweeps = check_count(max_sweeps, "max_sweeps", high=_MOST)
    algorithm = _choose_algorithm(algorithm, model)
    prepare = (_prepare_bonds if algorithm == "bonds" else _prepare_sites)(
        model, beta, k, np.uint64(key), max_sweeps
    )
    labels = np.empty((n_draws, model.n_points), model.label_dtype)
    n_sweeps = np.zeros(n_draws, np.int64)
    n_apart = _fill(prepare, labels, n_sweeps, effective_n_jobs(n_jobs), report)
    if n_apart.any():
        draw = int(np.argmax(n_apart > 0))
        past, apart = int(n_sweeps[draw]), int(n_apart[draw])
        advice = "raise max_sweeps, or use Swendsen-Wang, which needs no past but is approximate"
        if algorithm == "sites":
            advice = "use algorithm='bonds', or raise max_sweeps"
        raise CoalescenceError(
            f"draw {draw} at beta={beta:g}, k={k}: {apart} of {model.n_points} points were still "
            f"apart after a past of {past} sweeps; {advice}",
            past,
            apart,
        )
    return labels, PerfectInfo(algorithm, n_sweeps, model.agreement(labels, k))


def _choose_algorithm(algorithm: str, model: BoltzmannModel) -> str:
    if algorithm not in _ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(_ALGORITHMS)}, got {algorithm!r}")
    if algorithm == "sites" and model.n_classes != 2:
        raise ValueError(f"algorithm='sites' needs two classes, got {model.n_classes}; use 'bonds'")
    check_perfect(model)
    return "sites" if algorithm == "sites" else "bonds"


def check_perfect(model: BoltzmannModel) -> None:
    """Raise ``ValueError`` if perfect draws of the model are not known how to make."""
    if model.n_classes > 2 and model.unequal_weight is not None:
        raise ValueError(
            f"perfect draws with class weights that differ need two classes, got "
            f"{model.n_classes}; use 'gibbs' or 'swendsen-wang'"
        )


def _prepare_bonds(
    model: BoltzmannModel, beta: float, k: int, key: np.uint64, max_sweeps: int
) -> _Prepare:
    graph = model.graph
    layout = local_layout(graph, k)
    rate, pull, heavier = bond_strengths(model, beta, k)
    pull = pull[layout.order] if pull.size else pull

    def prepare() -> _MakeDraws:
        scratch = bond_scratch(graph.n_points)

        def make(first: int, n_start: int, labels: np.ndarray, n_sweeps: np.ndarray) -> int:
            rows = labels if layout.neighbors is graph.neighbors else np.empty_like(labels)
            n_apart = _draw_bonds_batch(
                layout.neighbors, k, rate, model.n_classes, pull, heavier, key, np.uint64(first),
                n_start, max_sweeps, scratch, rows, n_sweeps,
            )  # fmt: skip
            if rows is not labels:
                labels[:, layout.order] = rows
            return n_apart

        return make

    return prepare


def _prepare_sites(
    model: BoltzmannModel, beta: float, k: int, key: np.uint64, max_sweeps: int
) -> _Prepare:
    tables = site_tables(model, beta, k)

    def prepare() -> _MakeDraws:
        scratch = site_scratch(model.n_points)

        def make(first: int, n_start: int, labels: np.ndarray, n_sweeps: np.ndarray) -> int:
            return _draw_sites_batch(
                tables, key, np.uint64(first), n_start, max_sweeps, scratch, labels, n_sweeps
            )

        return make

    return prepare


def _fill(
    prepare: _Prepare,
    labels: np.ndarray,
    n_sweeps: np.ndarray,
    n_threads: int,
    report: Callable[[float], None],
) -> np.ndarray:
    """Make every draw, or all up to one that fails; how many points each left apart."""
    n_draws, n_points = labels.shape
    interrupted = threading.Event()
    n_apart = np.zeros(n_draws, np.int64)

    def make_range(begin: int, end: int, n_start: int) -> None:
        make = prepare()
        step = max(1, _WORK_PER_CALL // (n_points * n_start))
        for first in range(begin, end, step):
            if interrupted.is_set():
                return
            part = slice(first, min(first + step, end))
            n_left = make(first, n_start, labels[part], n_sweeps[part])
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
                try:
                    list(threads.map(make_range, bounds[:-1], bounds[1:], starts))
                except KeyboardInterrupt:
                    # The pool waits for its threads, which would go on to their ends.
                    interrupted.set()
                    raise

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
