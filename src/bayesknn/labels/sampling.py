"""One front for the three samplers of the labels given (beta, k) (Section 3).

:func:`sample_labels` draws at one (beta, k). The chains are run twice: half of the draws come from
one started with random labels and half from one started with a single class. Where the two do not
meet, as at the first-order transitions of three and more classes, the user is told.

:class:`LabelSampler` draws within the moves of a chain on (beta, k) (Section 3.4), where
:func:`draw_labels` is called from compiled code. What that gives is a function of its key alone:
not of the draws before it, of the memory it works in, or of how far back a perfect draw was
started first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle
from typing import Any, NamedTuple, no_type_check

import numpy as np
from numba.extending import overload

from bayesknn._utils.checks import check_choice, check_count
from bayesknn._utils.jit import kernel
from bayesknn._utils.progress import progress
from bayesknn._utils.random import START_SWEEP, as_seed_sequence, key_of_sweep, spawn_keys
from bayesknn.exceptions import CoalescenceError, MixingWarning
from bayesknn.graph import Incidence, NeighborGraph
from bayesknn.labels.clamped import fixed_labels
from bayesknn.labels.gibbs import Edges, SiteConditionals, gibbs_labels, run_gibbs
from bayesknn.labels.mixing import TOO_FAR_APART, autocorrelation_time, difference_in_errors
from bayesknn.labels.perfect import (
    MOST_SWEEPS,
    BondWorkspace,
    check_perfect,
    draw_perfectly,
    new_bond_workspace,
    perfect_labels,
    weigh_bonds,
)
from bayesknn.labels.swendsen_wang import (
    Workspace,
    bond_rate,
    colour_points,
    new_workspace,
    sweep_clusters,
    swendsen_wang_labels,
)
from bayesknn.model import BoltzmannModel
from bayesknn.model.boltzmann import check_setting, sum_agreement

MAX_PAST = 2**16


class Method(NamedTuple):
    """A way to draw labels.

    Attributes
    ----------
    run : callable
        Draws at one (beta, k).
    n_warmup : int
        Sweeps of a chain before its first draw; the paper's 500 for Gibbs.
    n_sweeps : int
        Sweeps of a draw within a move. Swendsen-Wang forgets its start within a few sweeps for two
        classes; Gibbs takes the paper's 500.
    """

    run: Callable[..., Any]
    n_warmup: int
    n_sweeps: int


METHODS = {
    "swendsen-wang": Method(swendsen_wang_labels, 200, 20),
    "perfect": Method(perfect_labels, 0, 0),
    "gibbs": Method(gibbs_labels, 500, 500),
}


def check_method(method: Any, name: str, model: BoltzmannModel) -> str:
    """Return the name of a way to draw labels; raise ValueError unless it suits the model."""
    method = check_choice(str(method).replace("_", "-"), name, METHODS)
    if model.fixed is not None and method != "swendsen-wang":
        raise ValueError(f"fixed labels need {name}='swendsen-wang', got {method!r}")
    if method == "perfect":
        check_perfect(model)
    return method


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
    initial : array-like of shape (n,) or int, optional
        Start one chain from these labels, or from one class for all points, in place of two from
        random and from equal labels.
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
    model, beta, k = check_setting(graph, beta, k, n_classes, class_weight, may_fix=True)
    method = check_method(method, "method", model)
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
        n_warmup = METHODS[method].n_warmup
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
    run = METHODS[method].run if model.fixed is None else fixed_labels
    starts = [initial]
    if initial is None and n_draws > 1:
        starts = [None, 0]
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
    draw("swendsen-wang", seeds[n:], None, 0)
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


class PerfectTools(NamedTuple):
    """Tools of perfect draws: degrees, the first number of sweeps of the next draw, and memory."""

    in_degree: np.ndarray
    max_past: int
    past: np.ndarray
    workspace: BondWorkspace


class CompiledSampler(NamedTuple):
    """The model and one of the samplers, as compiled code takes them.

    ``labels`` receives what is drawn. ``class_weight`` is None where classes weigh the same,
    ``unit`` each. ``n_sweeps`` sweeps start from the labels ``initial``, random ones where that is
    empty. The type of ``tools`` decides which sampler is compiled.
    """

    neighbors: np.ndarray
    n_classes: int
    class_weight: np.ndarray | None
    unit: float
    labels: np.ndarray
    initial: np.ndarray
    n_sweeps: int
    tools: Workspace | PerfectTools | Incidence


class LabelSampler:
    """Draws of labels within the moves of a chain on (beta, k).

    The exchange and auxiliary-variable chains ask for z ~ f(. | beta', k') in every move. Perfect
    draws make them exact. Swendsen-Wang sweeps start from the observed labels, whose S is about
    that of z where the posterior is, and Gibbs sweeps from random labels; too few of either leave a
    bias, which :meth:`find_bias` looks for.

    Parameters
    ----------
    model : BoltzmannModel
    observed : array-like of shape (n,)
        The data, where Swendsen-Wang starts; Gibbs starts from random labels.
    method : {"swendsen-wang", "perfect", "gibbs"}
    n_sweeps : int, optional
        Of each draw, by default 20 for Swendsen-Wang, which forgets its start within a few sweeps
        for two classes, and the paper's 500 for Gibbs; perfect draws have none.
    """

    def __init__(
        self, model: BoltzmannModel, observed: Any, method: str, n_sweeps: int | None = None
    ):
        self.model, self.method = model, check_method(method, "label_sampler", model)
        if self.method == "perfect" and n_sweeps is not None:
            raise ValueError("n_sweeps has no use with perfect draws, which know when to stop")
        default = METHODS[self.method].n_sweeps
        self.n_sweeps = default if n_sweeps is None else check_count(n_sweeps, "n_sweeps")
        self.observed = model.check_labels(observed).astype(model.label_dtype)

    def compiled(self, initial: np.ndarray | None = None) -> CompiledSampler:
        """Allocate what one thread needs; sweeps may start elsewhere, random where empty."""
        model = self.model
        if initial is None:
            initial = self.observed[:0] if self.method == "gibbs" else self.observed
        tools: Workspace | PerfectTools | Incidence = model.graph.incidence
        if self.method == "swendsen-wang":
            tools = self.new_workspace()
        elif self.method == "perfect":
            forests, in_degree = new_bond_workspace(model.n_points), model.graph.incidence.in_degree
            tools = PerfectTools(in_degree, MAX_PAST, np.full(1, 8.0), forests)
        return CompiledSampler(
            model.graph.neighbors, model.n_classes, model.unequal_weight, model.common_weight,
            self.observed.copy(), initial, self.n_sweeps, tools,
        )  # fmt: skip

    def new_workspace(self) -> Workspace:
        """Allocate what Swendsen-Wang sweeps need, whatever the sampler."""
        weighted = self.model.unequal_weight is not None
        return new_workspace(self.observed, self.model.n_classes, weighted)

    def find_bias(self, beta: float, k: int, keys: np.ndarray) -> list[str]:
        """Return how far draws at (beta, k) still depend on where their sweeps started.

        Parameters
        ----------
        beta : float
        k : int
        keys : ndarray of shape (n_draws,), dtype uint64

        Returns
        -------
        list of str
            A sentence if S_k depends on the start; empty if not, and for perfect draws.
        """
        if self.method == "perfect":
            return []
        starts = {
            "where they start": None,
            "the observed labels": self.observed,
            "random labels": self.observed[:0],
            "a single class": np.zeros_like(self.observed),
        }
        parts = np.array_split(np.asarray(keys, np.uint64), len(starts))
        series = []
        for start, part in zip(starts.values(), parts, strict=True):
            series.append(np.empty(len(part)))
            _fill_agreement(self.compiled(start), float(beta), int(k), part, series[-1])
        for name, other in zip(starts, series, strict=True):
            if difference_in_errors(series[0], other) > TOO_FAR_APART:
                return [
                    f"{self.n_sweeps} {self.method} sweeps are too few at beta={beta:.3g}, k={k}: "
                    f"the labels drawn agree on {series[0].mean():.5g} edges, those started from "
                    f"{name} on {other.mean():.5g}; raise n_sweeps or use label_sampler='perfect'"
                ]
        return []


@kernel
def draw_labels(sampler, beta, k, key):
    """Draw labels at (beta, k) into ``sampler.labels``; how many points perfect chains left apart.

    ``key`` is uint64. With points apart the labels are not a draw.
    """
    return _draw(sampler.tools, sampler, sampler.class_weight, beta, k, key)


@kernel
def sweep_labels(sampler, n_sweeps, workspace, beta, k, key, labels):
    """Move labels by Swendsen-Wang sweeps at (beta, k)."""
    for sweep in range(np.uint64(n_sweeps)):
        sweep_clusters(
            sampler.neighbors, k, beta * sampler.unit, sampler.n_classes, sampler.class_weight,
            key, sweep, labels, workspace,
        )  # fmt: skip


@kernel
def agreement_at(sampler, labels, k, other_k):
    """S of labels at k and at another k."""
    low, high = min(k, other_k), max(k, other_k)
    at_low = sum_agreement(sampler.neighbors, labels, sampler.class_weight, 0, low)
    at_high = at_low + sum_agreement(sampler.neighbors, labels, sampler.class_weight, low, high)
    if k < other_k:
        return sampler.unit * at_low, sampler.unit * at_high
    return sampler.unit * at_high, sampler.unit * at_low


@no_type_check
def _draw(tools, *_arguments):
    """Draw labels as :func:`draw_labels` does; compiled code calls the function for these tools."""
    raise NotImplementedError


@overload(_draw)
@no_type_check
def _choose_draw(tools, *_arguments):
    draw = _DRAWS[tools.instance_class]
    return lambda tools, *_arguments: draw(tools, *_arguments)


@kernel
def _start(sampler, key):
    if sampler.initial.size > 0:
        sampler.labels[:] = sampler.initial
    else:
        colour_points(key_of_sweep(key, START_SWEEP), sampler.n_classes, sampler.labels)


@kernel
def _draw_swendsen_wang(workspace, sampler, _class_weight, beta, k, key):
    _start(sampler, key)
    sweep_labels(sampler, sampler.n_sweeps, workspace, beta, k, key, sampler.labels)
    return 0


@kernel
def _draw_perfect(tools, sampler, class_weight, beta, k, key):
    rate, degrees = bond_rate(beta * sampler.unit, k), k + tools.in_degree[k - 1].astype(np.int64)
    bonds = weigh_bonds(sampler.neighbors, k, rate, sampler.n_classes, class_weight, degrees)
    first = np.int64(min(max(tools.past[0], 1.0), float(tools.max_past)))
    past, n_apart = draw_perfectly(
        bonds, key, np.uint64(0), first, tools.max_past, tools.workspace, sampler.labels
    )
    # The next draw begins a little later after one that met at once, else earlier: about a quarter
    # of the draws then need a second try, which costs the fewest sweeps.
    tools.past[0] = past * (2.0**-0.125 if past == first else 2.0**0.375)
    return n_apart


@kernel
def _draw_gibbs(incidence, sampler, class_weight, beta, k, key):
    starts, points, in_degree = incidence
    edges, rate = Edges(starts, points, np.uint32(k) + in_degree[k - 1]), bond_rate(beta, k)
    weights = np.ones(sampler.n_classes)
    if class_weight is not None:
        weights[:] = class_weight
    sites = SiteConditionals(edges, rate * sampler.unit, weights, class_weight is not None)
    _start(sampler, key)
    nothing = np.empty((0, 0), sampler.labels.dtype)
    ends = np.empty((0, 0), np.int64)
    run_gibbs(sites, sampler.labels, key, np.uint64(0), sampler.n_sweeps, 1, nothing, ends)
    return 0


_DRAWS = {
    Workspace: _draw_swendsen_wang,
    PerfectTools: _draw_perfect,
    Incidence: _draw_gibbs,
}


@kernel
def _fill_agreement(sampler, beta, k, keys, values):
    for d in range(keys.size):
        draw_labels(sampler, beta, k, keys[d])
        values[d] = agreement_at(sampler, sampler.labels, k, k)[0]
