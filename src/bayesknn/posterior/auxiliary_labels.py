"""Which sampler draws the labels of the exchange and auxiliary-variable chains (Section 3.4).

Both chains ask for z ~ f(. | beta', k') in every move. Perfect draws make them exact.
Swendsen-Wang sweeps start from the observed labels, whose S is about that of z where the
posterior is, and Gibbs sweeps from random labels; too few of either leave a bias, which
:meth:`LabelDraws.doubts` looks for. ``drawer.py`` makes the draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesknn._validation import check_count
from bayesknn.graph import NeighborGraph
from bayesknn.labels.bonds import new_scratch
from bayesknn.labels.gibbs_two import _ROW_POINTS
from bayesknn.labels.perfect_bonds import bond_scratch
from bayesknn.labels.vectors import aligned_zeros
from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.likelihood.nodes import Field, lay_out
from bayesknn.model.checks import label_dtype
from bayesknn.posterior.drawer import (
    Drawer,
    GibbsTools,
    PerfectTools,
    SwendsenWangTools,
    _fill_agreement,
)

LABEL_SAMPLERS = ("swendsen-wang", "perfect", "gibbs")
# Swendsen-Wang forgets its start within a few sweeps for two classes; the paper's Gibbs sweeps.
_N_SWEEPS = {"swendsen-wang": 20, "gibbs": 500, "perfect": 0}
_MAX_PAST = 2**16
_FIRST_PAST = 8.0
# Standard errors between the mean S of draws from two starts that are too many to be chance.
_DISAGREEMENT = 5.0


@dataclass(frozen=True)
class LabelDraws:
    """A sampler of labels for the chains of one likelihood.

    Attributes
    ----------
    method : {"swendsen-wang", "perfect", "gibbs"}
    n_sweeps : int
        Of each draw; 0 for perfect draws.
    graph : NeighborGraph
    field : Field
        The model as this sampler walks it.
    observed : ndarray of shape (n,)
        The data, in the order of the field.
    initial : ndarray of shape (n,) or (0,)
        Where sweeps start; empty for random labels.
    """

    method: str
    n_sweeps: int
    graph: NeighborGraph
    field: Field
    observed: np.ndarray
    initial: np.ndarray

    def drawer(self) -> Drawer:
        """Allocate what one thread needs."""
        field, n = self.field, self.graph.n_points
        labels = self.observed.copy()
        weights = np.ones(field.n_classes) if field.class_weight is None else field.class_weight
        weighted = field.class_weight is not None
        swendsen_wang = perfect = gibbs = None
        if self.method == "swendsen-wang":
            swendsen_wang = self.swendsen_wang(self.n_sweeps)
        elif self.method == "perfect":
            in_degree = np.zeros((1, n), np.uint32)
            if weighted:
                in_degree = self.graph.incidence.in_degree[:, field.order]
            perfect = PerfectTools(
                in_degree=in_degree,
                pull=np.zeros(n if weighted else 0),
                heavier=int(np.argmax(weights)),
                max_past=_MAX_PAST,
                past=np.full(1, _FIRST_PAST),
                scratch=bond_scratch(n),
            )
        else:
            incidence = self.graph.incidence
            width = -(-n // 32) * 32 if n <= _ROW_POINTS and field.n_classes == 2 else 0
            gibbs = GibbsTools(
                initial=self.initial,
                n_sweeps=self.n_sweeps,
                starts=incidence.starts,
                points=incidence.points,
                in_degree=incidence.in_degree,
                weights=weights,
                rows=aligned_zeros((n if width else 0, width), np.uint16),
                slots=aligned_zeros((width,), np.uint16),
            )
        return Drawer(
            field.neighbors, field.n_classes, field.class_weight, field.unit, labels,
            swendsen_wang, perfect, gibbs,
        )  # fmt: skip

    def swendsen_wang(self, n_sweeps: int) -> SwendsenWangTools:
        """Allocate what Swendsen-Wang sweeps need, whatever the sampler."""
        weighted = self.field.class_weight is not None
        scratch = new_scratch(self.observed, self.field.n_classes, weighted)
        return SwendsenWangTools(self.initial, n_sweeps, scratch)

    def sample_agreement(self, beta: float, k: int, keys: np.ndarray) -> np.ndarray:
        """Draw labels at (beta, k) with each of the keys and return their S_k."""
        drawer, values = self.drawer(), np.empty(len(keys))
        _fill_agreement(drawer, float(beta), int(k), np.asarray(keys, np.uint64), values)
        return values

    def doubts(self, beta: float, k: int, keys: np.ndarray) -> list[str]:
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
        parts = np.array_split(keys, 4)
        starts = {
            "the observed labels": self.observed,
            "random labels": self.observed[:0],
            "a single class": np.zeros_like(self.observed),
        }
        own = self.sample_agreement(beta, k, parts[0])
        for (name, start), part in zip(starts.items(), parts[1:], strict=True):
            other = replace(self, initial=start).sample_agreement(beta, k, part)
            if _standard_score(own, other) > _DISAGREEMENT:
                return [
                    f"{self.n_sweeps} {self.method} sweeps are too few at beta={beta:.3g}, k={k}: "
                    f"the labels drawn agree on {own.mean():.5g} edges, those started from {name} "
                    f"on {other.mean():.5g}; raise n_sweeps or use label_sampler='perfect'"
                ]
        return []

    def describe(self) -> str:
        """Say which sampler this is, for checkpoints."""
        return f"label_sampler={self.method}, n_sweeps={self.n_sweeps}"


def plan_label_draws(
    likelihood: CoherentLikelihood, method: str, n_sweeps: Any = None
) -> LabelDraws:
    """Choose and prepare the sampler of the labels.

    Parameters
    ----------
    likelihood : CoherentLikelihood
    method : {"swendsen-wang", "perfect", "gibbs"}
    n_sweeps : int, optional
        By default 20 for Swendsen-Wang and the paper's 500 for Gibbs; perfect draws have none.

    Returns
    -------
    LabelDraws

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import CoherentLikelihood
    >>> from bayesknn.posterior.auxiliary_labels import plan_label_draws
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
    >>> plan_label_draws(CoherentLikelihood(ring, [0, 0, 0, 1, 1]), "gibbs").n_sweeps
    500
    """
    method = str(method).replace("_", "-")
    if method not in LABEL_SAMPLERS:
        raise ValueError(
            f"label_sampler must be one of {', '.join(LABEL_SAMPLERS)}, got {method!r}"
        )
    if not isinstance(likelihood, CoherentLikelihood):
        raise ValueError(
            "drawing labels needs the coherent model: pass a CoherentLikelihood, not "
            f"{type(likelihood).__name__}, or use metropolis"
        )
    if n_sweeps is None:
        n_sweeps = _N_SWEEPS[method]
    elif method == "perfect":
        raise ValueError("n_sweeps has no use with perfect draws, which know when to stop")
    n_sweeps = check_count(n_sweeps, "n_sweeps", low=0 if method == "perfect" else 1)
    graph = likelihood.graph
    field = lay_out(graph, likelihood.n_classes, likelihood.class_weight)
    if method == "gibbs":
        # Its lists of neighbours are those of the graph itself.
        order = np.arange(graph.n_points, dtype=np.uint32)
        field = field._replace(neighbors=graph.neighbors, order=order)
    if method == "perfect" and field.class_weight is not None and field.n_classes > 2:
        raise ValueError(
            f"perfect draws with class weights that differ need two classes, got "
            f"{field.n_classes}; use label_sampler='swendsen-wang'"
        )
    observed = likelihood.labels[field.order].astype(label_dtype(field.n_classes))
    initial = observed if method == "swendsen-wang" else observed[:0]
    return LabelDraws(method, n_sweeps, graph, field, observed, initial)


def _standard_score(values: np.ndarray, others: np.ndarray) -> float:
    """Difference of two means in standard errors."""
    apart = abs(values.mean() - others.mean())
    error = math.sqrt(values.var() / len(values) + others.var() / len(others))
    return float(apart / error) if error > 0.0 else (math.inf if apart > 0.0 else 0.0)
