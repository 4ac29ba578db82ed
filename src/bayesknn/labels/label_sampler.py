"""Labels drawn within a move at a proposed (beta, k), by any of the three samplers (Section 3.4).

The exchange and auxiliary-variable chains ask for z ~ f(. | beta', k') in every move. Perfect
draws make them exact. Swendsen-Wang sweeps start from the observed labels, whose S is about that
of z where the posterior is, and Gibbs sweeps from random labels; too few of either leave a bias,
which :meth:`LabelSampler.find_bias` looks for.

:func:`draw_labels` is called from compiled moves. What it gives is a function of its key alone:
not of the draws before it, of the memory it works in, or of how far back a perfect draw was
started first.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np
from numba.extending import overload

from bayesknn._utils.checks import check_choice, check_count
from bayesknn._utils.jit import kernel
from bayesknn._utils.random import START_SWEEP, key_of_sweep
from bayesknn.graph import Incidence
from bayesknn.labels.gibbs import Edges, SiteConditionals, run_gibbs
from bayesknn.labels.mixing import TOO_FAR_APART, difference_in_errors
from bayesknn.labels.perfect import (
    BondWorkspace,
    check_perfect,
    draw_perfectly,
    new_bond_workspace,
    weigh_bonds,
)
from bayesknn.labels.sampling import METHODS
from bayesknn.labels.swendsen_wang import (
    Workspace,
    bond_rate,
    colour_points,
    new_workspace,
    sweep_clusters,
)
from bayesknn.model import BoltzmannModel
from bayesknn.model.boltzmann import sum_agreement

MAX_PAST = 2**16


class SwendsenWangTools(NamedTuple):
    """What Swendsen-Wang draws need: their start (empty: random), their sweeps, and memory."""

    initial: np.ndarray
    n_sweeps: int
    workspace: Workspace


class PerfectTools(NamedTuple):
    """What perfect draws need: degrees, with how many sweeps the next draw begins, and memory."""

    in_degree: np.ndarray
    max_past: int
    past: np.ndarray
    workspace: BondWorkspace


class GibbsTools(NamedTuple):
    """What Gibbs draws need: as above, and the edges at each point in order of rank."""

    initial: np.ndarray
    n_sweeps: int
    incidence: Incidence
    weights: np.ndarray


class CompiledSampler(NamedTuple):
    """The model and one of the samplers, as compiled code takes them.

    ``labels`` receives what is drawn. ``class_weight`` is None where classes weigh the same,
    ``unit`` each. The type of ``tools`` says which sampler it is.
    """

    neighbors: np.ndarray
    n_classes: int
    class_weight: np.ndarray | None
    unit: float
    labels: np.ndarray
    tools: SwendsenWangTools | PerfectTools | GibbsTools


class LabelSampler:
    """A sampler of labels for chains on (beta, k).

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
        self.method = check_choice(str(method).replace("_", "-"), "label_sampler", METHODS)
        if self.method == "perfect":
            check_perfect(model)
            if n_sweeps is not None:
                raise ValueError("n_sweeps has no use with perfect draws, which know when to stop")
        elif n_sweeps is None:
            n_sweeps = 500 if self.method == "gibbs" else 20
        self.n_sweeps = 0 if n_sweeps is None else check_count(n_sweeps, "n_sweeps")
        self.model = model
        self.observed = model.check_labels(observed).astype(model.label_dtype)

    def compiled(self, initial: np.ndarray | None = None) -> CompiledSampler:
        """Allocate what one thread needs; sweeps may start elsewhere, random where empty."""
        model = self.model
        if initial is None:
            initial = self.observed[:0] if self.method == "gibbs" else self.observed
        tools: SwendsenWangTools | PerfectTools | GibbsTools
        if self.method == "swendsen-wang":
            tools = self.swendsen_wang(self.n_sweeps)._replace(initial=initial)
        elif self.method == "perfect":
            in_degree = model.graph.incidence.in_degree
            workspace = new_bond_workspace(model.n_points)
            tools = PerfectTools(in_degree, MAX_PAST, np.full(1, 8.0), workspace)
        else:
            weights = model.weights / model.common_weight
            tools = GibbsTools(initial, self.n_sweeps, model.graph.incidence, weights)
        return CompiledSampler(
            model.graph.neighbors, model.n_classes, model.unequal_weight, model.common_weight,
            self.observed.copy(), tools,
        )  # fmt: skip

    def swendsen_wang(self, n_sweeps: int) -> SwendsenWangTools:
        """Allocate what Swendsen-Wang sweeps need, whatever the sampler."""
        weighted = self.model.unequal_weight is not None
        workspace = new_workspace(self.observed, self.model.n_classes, weighted)
        return SwendsenWangTools(self.observed, n_sweeps, workspace)

    def find_bias(self, beta: float, k: int, keys: np.ndarray) -> list[str]:
        """Say whether draws at (beta, k) still know where their sweeps started.

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
def sweep_labels(sampler, tools, beta, k, key, labels):
    """Move other labels than the sampler's by Swendsen-Wang sweeps at (beta, k)."""
    for sweep in range(np.uint64(tools.n_sweeps)):
        sweep_clusters(
            sampler.neighbors, k, beta * sampler.unit, sampler.n_classes, sampler.class_weight,
            key, sweep, labels, tools.workspace,
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
def _start(initial, sampler, key):
    if initial.size > 0:
        for i in range(np.uint64(initial.size)):
            sampler.labels[i] = initial[i]
    else:
        colour_points(key_of_sweep(key, START_SWEEP), sampler.n_classes, sampler.labels)


@kernel
def _draw_swendsen_wang(tools, sampler, _class_weight, beta, k, key):
    _start(tools.initial, sampler, key)
    sweep_labels(sampler, tools, beta, k, key, sampler.labels)
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
def _draw_gibbs(tools, sampler, class_weight, beta, k, key):
    starts, points, in_degree = tools.incidence
    edges, rate = Edges(starts, points, np.uint32(k) + in_degree[k - 1]), bond_rate(beta, k)
    sites = SiteConditionals(edges, rate * sampler.unit, tools.weights, class_weight is not None)
    _start(tools.initial, sampler, key)
    nothing = np.empty((0, 0), sampler.labels.dtype)
    ends = np.empty((0, 0), np.int64)
    run_gibbs(sites, sampler.labels, key, np.uint64(0), tools.n_sweeps, 1, nothing, ends)
    return 0


_DRAWS = {
    SwendsenWangTools: _draw_swendsen_wang,
    PerfectTools: _draw_perfect,
    GibbsTools: _draw_gibbs,
}


@kernel
def _fill_agreement(sampler, beta, k, keys, values):
    for d in range(keys.size):
        draw_labels(sampler, beta, k, keys[d])
        values[d] = agreement_at(sampler, sampler.labels, k, k)[0]
