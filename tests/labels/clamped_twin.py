"""Swendsen-Wang with known labels, slowly: a sweep, its exact action on a law, and exact sums.

Every ``mutant`` is one named mistake, for tests that must be shown to catch it.
"""

import itertools
import math
from collections import Counter

import numpy as np
from scipy import stats

from bayesknn import reference
from bayesknn.labels.swendsen_wang import draw_poisson
from tests.labels.swendsen_wang_twin import find_roots, sweep_key, uniform

MUTANTS = [
    "known labels of clusters ignored",
    "bonds without agreement",
    "edges from known points left out",
    "beta not divided by k",
]
LAW_MUTANTS = ["colours whatever the weights", "field ignored"]
MOST_EVENTS = 60


def list_edges(graph, labels, k, direction="both", mutant=None):
    """List the directed edges (i, j, what they count) that touch a free point."""
    is_free = np.asarray(labels) < 0
    found = []
    for i, j in ((i, int(j)) for row in graph.neighbors[:k] for i, j in enumerate(row)):
        forward_only = direction == "forward" or mutant == "edges from known points left out"
        if not (is_free[i] or is_free[j]) or (forward_only and not is_free[i]):
            continue
        found.append((i, j, 0.5 if direction == "forward" and is_free[i] and is_free[j] else 1.0))
    return found


def sweep_free(edges, beta, k, field, key, sweep, labels, mutant=None):
    """Return the labels of the free points after a sweep of :class:`FreeEdges`."""
    stream = sweep_key(key, sweep)
    n_classes, m, class_weight = edges.n_classes, len(edges.free), edges.class_weight
    nodes = [*range(n_classes), *map(int, labels)]
    listed = [(n_classes + i, int(j)) for row in edges.neighbors[:k] for i, j in enumerate(row)]
    n_forward, n_more = len(listed), int(edges.starts[k])
    if mutant != "edges from known points left out":
        listed += zip(edges.sources[:n_more].tolist(), edges.targets[:n_more].tolist(), strict=True)
    heaviest = 1.0 if class_weight is None else max(class_weight)
    rate = beta if mutant == "beta not divided by k" else beta / k
    n_events = draw_poisson(rate * heaviest * len(listed), np.uint64(stream), 0)
    bonds = []
    for e in range(n_events):
        place = int(uniform(stream, m + e) * len(listed))
        i, j = listed[place]
        if nodes[i] != nodes[j] and mutant != "bonds without agreement":
            continue
        keep = edges.free_edge_weight if place < n_forward and j >= n_classes else 1.0
        if class_weight is not None:
            keep *= class_weight[nodes[i]] / heaviest
        if keep == 1.0 or uniform(stream, 2**63 + m + e) < keep:
            bonds.append((i, j))
    roots = find_roots(len(nodes), bonds)
    n_bonds = np.bincount([roots[i] for i, _ in bonds], minlength=len(nodes))
    members = {}
    for i in range(m):
        members.setdefault(roots[n_classes + i], []).append(i)
    for root, points in members.items():
        colour = root
        if root >= n_classes or mutant == "known labels of clusters ignored":
            law = colour_law(n_bonds[root], points, n_classes, class_weight, field, mutant)
            colour = reference.choose(law, uniform(stream, points[0]))
        for i in points:
            nodes[n_classes + i] = colour
    return np.array(nodes[n_classes:])


def colour_law(n_bonds, members, n_classes, class_weight, field, mutant=None):
    logs = np.zeros(n_classes)
    if class_weight is not None and mutant != "colours whatever the weights":
        logs += n_bonds * np.log(class_weight)
    if field is not None and mutant != "field ignored":
        logs += np.asarray(field)[members].sum(axis=0)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def exact_free_law(graph, labels, beta, k, n_classes, class_weight=None, field=None, **direction):
    """Every labelling of the free points, in lexicographic order, and its probability."""
    labels = np.asarray(labels)
    free = np.flatnonzero(labels < 0)
    states = np.array(list(itertools.product(range(n_classes), repeat=len(free))))
    weights = np.ones(n_classes) if class_weight is None else np.asarray(class_weight)
    edges = list_edges(graph, labels, k, **direction)
    logs = np.zeros(len(states))
    for t, state in enumerate(states):
        whole = labels.copy()
        whole[free] = state
        logs[t] = sum(
            beta / k * share * weights[whole[i]] for i, j, share in edges if whole[i] == whole[j]
        )
        if field is not None:
            logs[t] += sum(field[q, g] for q, g in enumerate(state))
    law = np.exp(logs - logs.max())
    return states, law / law.sum()


def push(law, states, graph, labels, beta, k, n_classes, class_weight, field, direction, mutant):
    """Send a law over the labellings of the free points through one sweep, exactly."""
    labels = np.asarray(labels)
    free = np.flatnonzero(labels < 0)
    position = {int(i): q for q, i in enumerate(free)}
    edges = list_edges(graph, labels, k, direction, mutant)
    weights = np.ones(n_classes) if class_weight is None else np.asarray(class_weight)
    rate = beta if mutant == "beta not divided by k" else beta / k
    after = np.zeros((n_classes,) * len(free))
    for probability, state in zip(law, states, strict=True):
        whole = labels.copy()
        whole[free] = state
        agreeing = [
            (i, j, rate * share * weights[whole[i]])
            for i, j, share in edges
            if whole[i] == whole[j] or mutant == "bonds without agreement"
        ]
        for choice in itertools.product([False, True], repeat=len(agreeing)):
            p, bonds = probability, []
            for (i, j, strength), is_open in zip(agreeing, choice, strict=True):
                p *= -math.expm1(-strength) if is_open else math.exp(-strength)
                if is_open:
                    bonds.append((i, j, strength))
            # Known points first, so that the root of a cluster that holds one is known.
            order = [*np.flatnonzero(labels >= 0), *free]
            rank = {int(i): r for r, i in enumerate(order)}
            roots = find_roots(len(labels), [(rank[i], rank[j]) for i, j, _ in bonds])
            roots = {i: int(order[roots[rank[i]]]) for i in rank}
            names = sorted({roots[int(i)] for i in free})
            spread = p
            for root in names:
                if root not in position and mutant != "known labels of clusters ignored":
                    colours = np.eye(n_classes)[labels[root]]
                else:
                    members = [position[int(i)] for i in free if roots[int(i)] == root]
                    events = count_events([s for i, _, s in bonds if roots[i] == root])
                    colours = sum(
                        q * colour_law(n, members, n_classes, class_weight, field, mutant)
                        for n, q in enumerate(events)
                    )
                spread = np.multiply.outer(spread, colours)
            for colours in itertools.product(range(n_classes), repeat=len(names)):
                reached = tuple(colours[names.index(roots[int(i)])] for i in free)
                after[reached] += spread[colours]
    return after.ravel()


def count_events(strengths):
    """Law of the number of events on open edges, each at least one."""
    total = np.ones(1)
    for strength in strengths:
        events = stats.poisson.pmf(np.arange(MOST_EVENTS), strength)
        events[0] = 0.0
        total = np.convolve(total, events / events.sum())[:MOST_EVENTS]
    return total


def log_sum(graph, labels, beta, k, n_classes, tilt=0.0):
    """Log of the sum over the free labels of exp(beta / k S + tilt * (free labels of class 1)).

    By variable elimination on arrays, least neighbours first.
    """
    labels = np.asarray(labels)
    left = set(np.flatnonzero(labels < 0).tolist())
    factors = [((i,), tilt * (np.arange(n_classes) == 1)) for i in left]
    pairs = Counter(
        (min(i, j), max(i, j)) for row in graph.neighbors[:k] for i, j in enumerate(row.tolist())
    )
    constant = 0.0
    for (i, j), count in pairs.items():
        strength = beta / k * count
        if labels[i] >= 0 and labels[j] >= 0:
            constant += strength * (labels[i] == labels[j])
        elif labels[i] < 0 and labels[j] < 0:
            factors.append(((i, j), strength * np.eye(n_classes)))
        else:
            known, other = (i, j) if labels[i] >= 0 else (j, i)
            factors.append(((other,), strength * (np.arange(n_classes) == labels[known])))
    around = {v: {v} for v in left}
    for variables, _ in factors:
        for v in variables:
            around[v].update(variables)
    while around:
        v = min(around, key=lambda v: (len(around[v]), v))
        scope = (v, *sorted(around.pop(v) - {v}))
        table = np.zeros((n_classes,) * len(scope))
        for variables, log_factor in [f for f in factors if v in f[0]]:
            shape = [n_classes if u in variables else 1 for u in scope]
            order = np.argsort([scope.index(u) for u in variables])
            table = table + np.transpose(log_factor, order).reshape(shape)
        factors = [f for f in factors if v not in f[0]]
        summed = np.logaddexp.reduce(table, axis=0)
        for u in scope[1:]:
            around[u] = around[u] - {v} | set(scope[1:])
        if len(scope) == 1:
            constant += float(summed)
        else:
            factors.append((scope[1:], summed))
    return constant
