"""Swendsen-Wang with some labels given: draws of the free ones (Section 3).

The model is ``f(y) = exp(beta / k * S_k(y)) / Z`` and part of y is known. Only edges that touch a
free point matter then, and the known points of a class act as one: a bond joins equal labels, so
clusters of different known classes never meet. The sweep therefore walks a small graph of its own:
nodes ``0..G-1`` stand for the known points of each class, node ``G + i`` is the i-th free point.

An edge whose ends share the class g carries Poisson(beta / k * a_g) events, each of which binds its
ends. A cluster that holds a class node has that class. Any other gets class g with probability
proportional to ``a_g`` to the power of its number of events, times the product of its points'
``exp(field)`` where there is one. Both steps are exact conditional draws. The roots of clusters are
their lowest nodes, so a class node is a root. A sweep costs about beta times the number of free
points, whatever k and however many labels are known.

Random numbers of a sweep: counter i colours the cluster whose lowest free point is i, counter m + e
places event e, and the same with the highest bit thins it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_choice, check_label_vector, label_dtype
from bayesknn._utils.jit import kernel
from bayesknn._utils.random import as_uniform, key_of_sweep, random_bits
from bayesknn.graph.queries import DIRECTIONS
from bayesknn.labels.mixing import DrawInfo, check_run
from bayesknn.labels.swendsen_wang import (
    THINNING,
    choose_class,
    draw_poisson,
    isolate,
    join_pair,
    normalise_logs,
    start_labels,
)
from bayesknn.model import BoltzmannModel
from bayesknn.model.boltzmann import check_setting


class FreeEdges(NamedTuple):
    """The edges that touch a free point, between nodes; the graph of every k is a prefix.

    Attributes
    ----------
    free : ndarray of shape (m,), dtype int64
        The free points, in rising order.
    n_classes : int
    neighbors : ndarray of shape (k_max, m), dtype uint32
        ``neighbors[r, i]`` is the node at rank r + 1 of the i-th free point.
    starts : ndarray of shape (k_max + 1,), dtype int64
        The first ``starts[k]`` entries of what follows belong to the graph of k.
    sources, targets : ndarray, dtype uint32
        Edges from the nodes of known points to those of free ones, sorted by rank.
    free_edge_weight : float
        What an edge between two free points counts, in [0, 1].
    class_weight : ndarray of shape (n_classes,) or None
        The model's.
    """

    free: np.ndarray
    n_classes: int
    neighbors: np.ndarray
    starts: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    free_edge_weight: float
    class_weight: np.ndarray | None

    @property
    def n_nodes(self) -> int:
        """Classes and free points."""
        return self.n_classes + len(self.free)


def free_edges(model: BoltzmannModel, direction: str = "both") -> FreeEdges:
    """Collect the edges that touch a free point.

    Parameters
    ----------
    model : BoltzmannModel
        Of all points, the known labels fixed.
    direction : {"both", "forward"}
        With ``"forward"`` the edges of known points are left out, so that a free point among known
        ones counts its own neighbours alone: the rule of Holmes and Adams. An edge between two
        free points, which both of them count, then counts one half.

    Returns
    -------
    FreeEdges
    """
    check_choice(direction, "direction", DIRECTIONS[:2])
    graph, n_classes, is_free = model.graph, model.n_classes, model.is_free
    free, known = np.flatnonzero(is_free), np.flatnonzero(~is_free)
    if len(free) == 0:
        raise ValueError("every label is fixed: there is nothing to draw")
    nodes = np.zeros(len(is_free), np.uint32)
    if model.fixed is not None:
        nodes[known] = model.fixed[known]
    nodes[free] = n_classes + np.arange(len(free), dtype=np.uint32)
    starts = np.zeros(graph.k_max + 1, np.int64)
    sources, targets = [], []
    for rank in range(graph.k_max if direction == "both" else 0):
        row = graph.neighbors[rank, known]
        joins = is_free[row]
        sources.append(nodes[known[joins]])
        targets.append(nodes[row[joins]])
        starts[rank + 1] = starts[rank] + len(sources[-1])
    return FreeEdges(
        free,
        n_classes,
        nodes[graph.neighbors[:, free]],
        starts,
        np.concatenate([np.empty(0, np.uint32), *sources]),
        np.concatenate([np.empty(0, np.uint32), *targets]),
        1.0 if direction == "both" else 0.5,
        model.class_weight,
    )


def clamped_labels(
    edges: FreeEdges,
    beta: np.ndarray,
    k: np.ndarray,
    n_sweeps: np.ndarray,
    *,
    key: np.uint64,
    initial: Any,
    field: np.ndarray | None = None,
    advance: Callable[[float], None] = lambda sweeps: None,
) -> np.ndarray:
    """Run one chain along a sequence of (beta, k), and keep the free labels at each.

    Parameters
    ----------
    edges : FreeEdges
    beta, k, n_sweeps : ndarray of shape (n_draws,)
        Draw t is kept after ``n_sweeps[t]`` sweeps at ``(beta[t], k[t])`` from the one before.
    key : numpy.uint64
        One key of :func:`bayesknn._utils.random.spawn_keys`; the draws are a function of it.
    initial : array-like of shape (m,)
        Labels of the free points to start from.
    field : ndarray of shape (m, n_classes), optional
        Added to the log weight of each class at each free point.
    advance : callable, optional
        Called with the number of sweeps done since the last call.

    Returns
    -------
    ndarray of shape (n_draws, m)
        uint8, or uint32 beyond 256 classes.
    """
    n_classes, m = edges.n_classes, len(edges.free)
    nodes = np.arange(edges.n_nodes).astype(label_dtype(n_classes))
    nodes[n_classes:] = check_label_vector(initial, m, n_classes)
    n, weights = edges.n_nodes, edges.class_weight
    workspace = Workspace(np.zeros(n, np.uint32), np.zeros(n, np.uint32), np.zeros((n, n_classes)))
    draws = np.empty((len(beta), m), nodes.dtype)
    sweep, key = 0, np.uint64(key)
    # A call for each draw, so that Ctrl-C is heard in between.
    for draw, *place, n_more in zip(draws, beta, k, n_sweeps, strict=True):
        _run(edges, tuple(place), n_more, weights, field, key, np.uint64(sweep), nodes, workspace)
        draw[:] = nodes[n_classes:]
        sweep += int(n_more)
        advance(int(n_more))
    return draws


def fixed_labels(
    model: BoltzmannModel,
    beta: float,
    k: int,
    *,
    key: np.uint64,
    n_draws: int = 1,
    n_warmup: int = 200,
    thin: int = 1,
    initial: Any = None,
    advance: Callable[[float], None] = lambda sweeps: None,
) -> tuple[np.ndarray, DrawInfo]:
    """Draw the labels of a model given those that it fixes, by a Swendsen-Wang chain.

    Parameters
    ----------
    model : BoltzmannModel
        With at least one free point.
    beta, k, key, n_draws, n_warmup, thin, initial, advance
        As in :func:`bayesknn.labels.swendsen_wang_labels`; of ``initial`` the free points count.

    Returns
    -------
    labels : ndarray of shape (n_draws, n), uint8, or uint32 beyond 256 classes
        Fixed and free ones.
    info : DrawInfo
        S_k counts all edges, those between fixed points too.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn._utils.random import spawn_keys
    >>> from bayesknn.labels.clamped import fixed_labels
    >>> from bayesknn.model import BoltzmannModel
    >>> ring = BoltzmannModel(NeighborGraph.from_neighbors([[1, 2, 3, 0]]), 2)
    >>> labels, _ = fixed_labels(ring.fix([0, -1, 1, -1]), 1.0, 1, key=spawn_keys(0, 1)[0])
    >>> labels[:, [0, 2]].tolist()
    [[0, 1]]
    """
    model, beta, k = check_setting(model, beta, k, may_fix=True)
    key, n_draws, n_warmup, thin = check_run(key, n_draws, n_warmup, thin)
    edges = free_edges(model)
    start = start_labels(model, initial, key)
    n_sweeps = np.full(n_draws, thin)
    n_sweeps[0] += n_warmup
    at = np.full(n_draws, beta), np.full(n_draws, k)
    labels = np.tile(start, (n_draws, 1))
    if model.fixed is not None:
        labels[:, ~model.is_free] = model.fixed[~model.is_free]
    labels[:, edges.free] = clamped_labels(
        edges, *at, n_sweeps, key=key, initial=start[edges.free], advance=advance
    )
    return labels, DrawInfo(n_warmup + n_draws * thin, model.agreement(labels, k))


class Workspace(NamedTuple):
    """Memory that a sweep works in.

    Attributes
    ----------
    roots : ndarray of shape (n_nodes,), dtype uint32
        After a sweep: the lowest node of each node's cluster.
    bonds : ndarray of shape (n_nodes,), dtype uint32
        The events of each cluster, at its root.
    log_weights : ndarray of shape (n_nodes, n_classes)
        The log weights of a cluster's classes, at its root.
    """

    roots: np.ndarray
    bonds: np.ndarray
    log_weights: np.ndarray


@kernel
def _run(edges, place, n_sweeps, class_weight, field, key, sweep, nodes, workspace):
    """Make sweeps at ``place``, (beta, k), of the labels in ``nodes``."""
    beta, k = place
    for _ in range(n_sweeps):
        stream = key_of_sweep(key, sweep)
        _bind(edges, beta, k, class_weight, stream, nodes, workspace)
        _colour(edges.n_classes, class_weight, field, stream, nodes, workspace)
        sweep += np.uint64(1)


@kernel
def _bind(edges, beta, k, class_weight, stream, nodes, workspace):
    """Draw the events given the labels and join the ends they bind."""
    roots, bonds = workspace.roots, workspace.bonds
    isolate(roots)
    bonds[:] = np.uint32(0)
    m, first = np.uint64(len(edges.free)), np.uint32(edges.n_classes)
    n_forward = m * np.uint64(k)
    n_edges = np.float64(n_forward + np.uint64(edges.starts[k]))
    heaviest = 1.0 if class_weight is None else class_weight.max()
    n_events = draw_poisson(beta / k * heaviest * n_edges, stream, 0)
    for e in range(np.uint64(n_events)):
        edge = np.uint64(as_uniform(random_bits(stream, m + e)) * n_edges)
        keep = 1.0
        if edge < n_forward:
            rank = edge // m
            place = edge - rank * m
            i, j = np.uint32(place) + first, edges.neighbors[rank, place]
            if j >= first:
                keep = edges.free_edge_weight
        else:
            i, j = edges.sources[edge - n_forward], edges.targets[edge - n_forward]
        if nodes[i] != nodes[j]:
            continue
        if class_weight is not None:
            keep *= class_weight[nodes[i]] / heaviest
        if keep < 1.0 and as_uniform(random_bits(stream, THINNING + m + e)) >= keep:
            continue
        bonds[i] += np.uint32(1)
        join_pair(roots, i, j)


@kernel
def _colour(n_classes, class_weight, field, stream, nodes, workspace):
    """Give clusters without a class node a colour by their events and their points' fields."""
    roots, bonds, log_weights = workspace.roots, workspace.bonds, workspace.log_weights
    first, n = np.uint64(n_classes), np.uint64(roots.size)
    for v in range(first, n):
        # In rising order, so that roots[v] < v is already flat.
        root = roots[roots[v]]
        roots[v] = root
        if root == v:
            log_weights[v] = 0.0
        else:
            bonds[root] += bonds[v]
        if field is not None and root >= first:
            for g in range(first):
                log_weights[root, g] += field[v - first, g]
    for v in range(first, n):
        root = roots[v]
        if root == v:
            u = as_uniform(random_bits(stream, v - first))
            if class_weight is not None:
                for g in range(first):
                    log_weights[v, g] += bonds[v] * math.log(class_weight[g])
            if class_weight is None and field is None:
                nodes[v] = np.uint32(u * n_classes)
            else:
                normalise_logs(log_weights[v])
                nodes[v] = choose_class(log_weights[v], u)
        else:
            nodes[v] = nodes[root]
