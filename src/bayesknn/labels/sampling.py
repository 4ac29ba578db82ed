"""One front for the three samplers of the labels given (beta, k) (Section 3).

The chains are run twice: half of the draws come from one started with random labels and half from
one started with a single class. Where the two do not meet, as at the first-order transitions of
three and more classes, the user is told.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_choice, check_count
from bayesknn._utils.progress import progress
from bayesknn._utils.random import as_seed_sequence, spawn_keys
from bayesknn.exceptions import CoalescenceError, MixingWarning
from bayesknn.graph import NeighborGraph
from bayesknn.labels.clamped import fixed_labels
from bayesknn.labels.gibbs import gibbs_labels
from bayesknn.labels.mixing import TOO_FAR_APART, autocorrelation_time, difference_in_errors
from bayesknn.labels.perfect import MOST_SWEEPS, perfect_labels
from bayesknn.labels.swendsen_wang import swendsen_wang_labels
from bayesknn.model import BoltzmannModel
from bayesknn.model.boltzmann import check_setting

METHODS = ("swendsen-wang", "perfect", "gibbs")


class SampleInfo(NamedTuple):
    """What :func:`sample_labels` did.

    Attributes
    ----------
    method : str
    n_sweeps : int
        Sweeps made in all, warm-up included; for perfect draws, the sum of ``coalescence``.
    agreement : ndarray of shape (n_draws,)
        S_k of each draw, weighted by class.
    autocorrelation_time : float
        Of ``agreement``, in draws: ``n_draws`` divided by it is the number of independent draws
        that the sample is worth. 1 for perfect draws; NaN where the draws do not tell.
    coalescence : ndarray of shape (n_draws,), or None
        For perfect draws: how many sweeps back the chains that met were started.
    disagreement : float
        Of the two chains' mean S_k, in standard errors; NaN with one chain or few draws.
    """

    method: str
    n_sweeps: int
    agreement: np.ndarray
    autocorrelation_time: float
    coalescence: np.ndarray | None
    disagreement: float


def sample_labels(
    graph: NeighborGraph | BoltzmannModel,
    beta: float,
    k: int,
    n_classes: int | None = None,
    method: str = "swendsen-wang",
    n_draws: int = 1,
    thin: int | None = None,
    random_state: Any = None,
    class_weight: Any = None,
    *,
    n_warmup: int | None = None,
    initial: Any = None,
    max_sweeps: int = 2**16,
    n_jobs: int | None = None,
    return_info: bool = False,
    verbose: int = 0,
) -> Any:
    """Draw labels of the training points from the model at (beta, k).

    Parameters
    ----------
    graph : NeighborGraph or BoltzmannModel
        With a model, which has its classes and weights, ``n_classes`` is left out. Labels that it
        fixes are held, which takes ``method="swendsen-wang"``.
    beta : float
        Strength, at least 0.
    k : int
        Number of neighbours, in ``1..graph.k_max``.
    n_classes : int
        At least 2.
    method : {"swendsen-wang", "perfect", "gibbs"}
        "perfect" draws are independent and exact. "swendsen-wang" is a chain that moves whole
        clusters, the fastest. "gibbs" is the paper's chain, which gets stuck at large beta.
    n_draws : int
    thin : int, optional
        Sweeps from one draw of a chain to the next, 10 by default; perfect draws need none.
    random_state : None, int, SeedSequence, Generator or RandomState
    class_weight : array-like of shape (n_classes,), optional
        As in :class:`bayesknn.model.BoltzmannModel`.
    n_warmup : int, optional
        Sweeps of a chain before its first draw: 500 for Gibbs, as in the paper, 200 for
        Swendsen-Wang.
    initial : array-like of shape (n,), optional
        Start one chain from these labels, in place of two from random and from equal labels.
    max_sweeps : int
        How far into the past perfect sampling goes before it gives up with
        :class:`~bayesknn.exceptions.CoalescenceError`.
    n_jobs : int, optional
        Threads over perfect draws; the draws do not depend on it.
    return_info : bool
        Also return a :class:`SampleInfo`.
    verbose : int
        Above 0, a progress bar is shown once two seconds have passed. It counts sweeps, or perfect
        draws.

    Returns
    -------
    labels : ndarray of shape (n_draws, n)
        uint8, or uint32 beyond 256 classes.
    info : SampleInfo
        Only with ``return_info``.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.labels import sample_labels
    >>> rng = np.random.default_rng(0)
    >>> graph = NeighborGraph.from_points(rng.normal(size=(60, 2)), k_max=10)
    >>> labels, info = sample_labels(
    ...     graph, beta=1.5, k=10, n_classes=4, method="perfect", n_draws=5, random_state=0,
    ...     return_info=True,
    ... )
    >>> labels.shape, info.coalescence.shape
    ((5, 60), (5,))
    """
    method = check_choice(str(method).replace("_", "-"), "method", METHODS)
    model, beta, k = check_setting(graph, beta, k, n_classes, class_weight, may_fix=True)
    if model.fixed is not None and method != "swendsen-wang":
        raise ValueError(f"fixed labels need method='swendsen-wang', got {method!r}")
    n_draws = check_count(n_draws, "n_draws")
    thin = check_count(10 if thin is None else thin, "thin")
    max_sweeps = check_count(max_sweeps, "max_sweeps", high=MOST_SWEEPS)
    keys = spawn_keys(random_state, 2)
    if method == "perfect":
        if initial is not None:
            raise ValueError("initial is for chains; perfect draws have no start")
        how: dict[str, Any] = {"n_draws": n_draws, "max_sweeps": max_sweeps, "n_jobs": n_jobs}
        with progress("Drawing labels", total=n_draws, verbose=verbose) as advance:
            labels, drawn = perfect_labels(model, beta, k, key=keys[0], advance=advance, **how)
        pasts = drawn.n_sweeps
        info = SampleInfo(method, int(pasts.sum()), drawn.agreement, 1.0, pasts, np.nan)
        return (labels, info) if return_info else labels
    if n_warmup is None:
        n_warmup = 500 if method == "gibbs" else 200
    schedule = n_draws, check_count(n_warmup, "n_warmup", low=0), thin
    return _run_chains((model, beta, k), method, schedule, keys, initial, return_info, verbose)


def _run_chains(
    at: tuple[BoltzmannModel, float, int],
    method: str,
    schedule: tuple[int, int, int],
    keys: np.ndarray,
    initial: Any,
    return_info: bool,
    verbose: int,
) -> Any:
    """Draw labels by one chain, or by two from different starts, and warn where they disagree."""
    (model, beta, k), (n_draws, n_warmup, thin) = at, schedule
    run: Callable[..., Any] = gibbs_labels if method == "gibbs" else swendsen_wang_labels
    if model.fixed is not None:
        run = fixed_labels
    starts = [initial]
    if initial is None and n_draws > 1:
        starts = [None, np.zeros(model.n_points, np.int64)]
    options = {"n_warmup": n_warmup, "thin": thin}
    if run is swendsen_wang_labels and not return_info:
        # Chains are compared by who agrees with the nearest neighbour, which costs n a draw.
        options["recorded_k"] = 1
    n_each = np.diff(np.linspace(0, n_draws, len(starts) + 1).astype(int)).tolist()
    n_sweeps = len(starts) * n_warmup + n_draws * thin
    with progress("Drawing labels", total=n_sweeps, verbose=verbose) as advance:
        runs = [
            run(model, beta, k, n_draws=n, initial=start, key=key, advance=advance, **options)
            for start, n, key in zip(starts, n_each, keys, strict=False)
        ]
    labels = np.concatenate([draws for draws, _ in runs])
    series = [info.agreement for _, info in runs]
    info = _describe_chains(method, n_sweeps, series)
    if info.disagreement > TOO_FAR_APART:
        _warn(info, series, f"beta={beta:g}, k={k}", options.get("recorded_k", k))
    elif return_info and n_draws >= 50 and np.isnan(info.autocorrelation_time):
        warnings.warn(
            f"the autocorrelation time is unknown: S_{k} is the same in all draws of a "
            f"{method} chain at beta={beta:g}, k={k}",
            MixingWarning,
            stacklevel=3,
        )
    return (labels, info) if return_info else labels


def draw_each(
    model: BoltzmannModel, beta: np.ndarray, k: np.ndarray, random_state: Any = None,
    verbose: int = 0,
) -> tuple[np.ndarray, dict[str, Any]]:  # fmt: skip
    """Draw labels once at each of many (beta, k).

    Parameters
    ----------
    model : BoltzmannModel
    beta, k : ndarray of shape (n_draws,)
    random_state : None, int, SeedSequence, Generator or RandomState
    verbose : int

    Returns
    -------
    labels : ndarray of shape (n_draws, n)
        Perfect draws; or, where the chains of one of them do not meet, all by Swendsen-Wang, since
        those that meet soon are not representative.
    info : dict
        ``label_sampler``, ``n_sweeps`` of each draw (0 for perfect draws), and ``disagreement`` of
        S_k / k, in standard errors, between draws started from random and from equal labels.

    Warns
    -----
    MixingWarning
        If that is large.
    """
    n, seeds = len(beta), as_seed_sequence(random_state).spawn(2 * len(beta))

    def draw(method: str, seeds: list[Any], *starts: Any) -> np.ndarray:
        with progress("Drawing labels", total=n, verbose=verbose) as advance:
            for d, start in zip(range(n), cycle(starts), strict=False):
                options = {"random_state": seeds[d], "initial": start, "n_warmup": 200, "thin": 1}
                labels[d] = sample_labels(model, beta[d], int(k[d]), method=method, **options)
                advance(1)
        return labels

    labels = np.empty((n, model.n_points), model.label_dtype)
    if model.n_classes == 2 or model.unequal_weight is None:
        with suppress(CoalescenceError):
            how = {"label_sampler": "perfect", "n_sweeps": 0, "disagreement": 0.0}
            return draw("perfect", seeds[:n], None), how
    draw("swendsen-wang", seeds[n:], None, np.zeros(model.n_points, np.int64))
    totals = np.array([model.agreement(*each) for each in zip(labels, k, strict=True)]) / k
    apart = difference_in_errors(totals[::2], totals[1::2]) if n >= 50 else np.nan
    if apart > TOO_FAR_APART:
        words = (
            "labels drawn by Swendsen-Wang sweeps know whether they started from random or from "
            f"equal labels ({apart:.0f} standard errors); trust them little"
        )
        warnings.warn(words, MixingWarning, stacklevel=3)
    how = {"label_sampler": "swendsen-wang", "n_sweeps": 201, "disagreement": float(apart)}
    return labels, how


def _describe_chains(method: str, n_sweeps: int, series: list[np.ndarray]) -> SampleInfo:
    """Tell how well one chain mixes, or how well two agree if their draws are enough to say."""
    times, apart = [autocorrelation_time(one) for one in series], np.nan
    if len(series) == 2 and min(map(len, series)) >= 50:
        # A chain that never moves has no variance, which its time would multiply.
        first, second = np.fmax(1.0, times)
        apart = difference_in_errors(series[0], series[1], (first, second))
    time = float(np.average(times, weights=[len(one) for one in series]))
    return SampleInfo(method, n_sweeps, np.concatenate(series), time, None, apart)


def _warn(info: SampleInfo, series: list[np.ndarray], place: str, recorded_k: int) -> None:
    first, second = (one.mean() for one in series)
    warnings.warn(
        f"{info.method} chains started from random and from equal labels have not met at {place} "
        f"(mean S_{recorded_k} {first:.6g} and {second:.6g}, {info.disagreement:.0f} standard "
        "errors apart); use method='perfect' or more n_warmup",
        MixingWarning,
        stacklevel=4,
    )
