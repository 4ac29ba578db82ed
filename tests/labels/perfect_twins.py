"""Slow, obvious twins of the perfect samplers, and broken ones by name.

Chains are sets of bonds or lists of labels, connectivity is a plain search, the upper chain really
starts from everything open, and the order of the two chains is asserted after every update. Only
the random numbers come from the package: the twins answer what the kernels should make of them.
"""

import math

import numpy as np
from hypothesis import strategies as st

from bayesknn._utils.random import as_uniform, key_of_sweep, random_bits
from bayesknn.graph import NeighborGraph
from bayesknn.labels.connectivity import _new_forest


def uniform(key, draw, sweep, site) -> float:
    sweep_key = key_of_sweep(np.uint64(key), np.uint64((draw << 32) | sweep))
    return as_uniform(np.uint64(random_bits(np.uint64(sweep_key), np.uint64(site))))


@st.composite
def small_graphs(draw, largest=6):
    """Any neighbour lists, of points that need not lie in a space."""
    n = draw(st.integers(2, largest))
    k_max = draw(st.integers(1, min(3, n - 1)))
    others = [draw(st.permutations([j for j in range(n) if j != i])) for i in range(n)]
    return NeighborGraph.from_neighbors(np.array(others)[:, :k_max].T)


def connected(edges, i, j) -> bool:
    reached, frontier = {i}, [i]
    while frontier:
        v = frontier.pop()
        for a, b in edges:
            for here, there in ((a, b), (b, a)):
                if here == v and there not in reached:
                    reached.add(there)
                    frontier.append(there)
    return j in reached


def clusters(n, edges) -> list[set]:
    parts = [{i} for i in range(n)]
    for a, b in edges:
        joined = [part for part in parts if a in part or b in part]
        parts = [part for part in parts if part not in joined] + [set().union(*joined)]
    return parts


class BondTwin:
    """Coupling from the past on bonds, one bond at a time.

    ``mutant`` is None or what is wrong: "fresh numbers", "one bond per pair",
    "beta not divided by k", "always p", "stale connectivity", "own bond counts",
    "closed at the start of the sweep".
    """

    def __init__(self, graph, beta, k, n_classes, class_weight=None, mutant=None):
        self.n, self.n_classes, self.mutant = graph.n_points, n_classes, mutant
        weights = np.ones(n_classes) if class_weight is None else np.asarray(class_weight)
        strength = beta if mutant == "beta not divided by k" else beta / k
        self.ends = [(i, int(graph.neighbors[r, i])) for i in range(self.n) for r in range(k)]
        if mutant == "one bond per pair":
            self.ends = list({frozenset(ends): ends for ends in self.ends}.values())
        self.n_edges = len(self.ends)
        self.rate = float(strength * weights.mean())
        self.p = [1 - math.exp(-self.rate)] * self.n_edges
        self.heavier = int(np.argmax(weights))
        if np.ptp(weights) > 0:
            degrees = np.bincount(np.array(self.ends).ravel(), minlength=self.n)
            self.ends += [(i, self.n) for i in range(self.n)]
            self.p += list(1 - np.exp(-strength * np.ptp(weights) / 2 * degrees))
        high_halves = _new_forest(self.n + 1)[1::2] >> np.uint64(32)
        self.priority = [int(h) for h in high_halves]

    def heights(self, key, draw, back) -> dict:
        """Return the number of each bond that can open, as a share of its p."""
        heights, counter, bond = {}, 0, 0
        while self.rate > 0:
            # Infinite at the smallest of rates.
            gap = -math.log(1 - uniform(key, draw, back, counter)) / self.rate
            if bond + gap >= self.n_edges:
                break
            bond += math.floor(gap)
            heights[bond] = uniform(key, draw, back, counter + 1)
            bond, counter = bond + 1, counter + 2
        for b in range(self.n_edges, len(self.ends)):
            number = uniform(key, draw, back, 2 * self.n_edges + 2 + b - self.n_edges)
            if number < self.p[b]:
                heights[b] = number / self.p[b]
        return heights

    def sure(self, b) -> float:
        p = self.p[b]
        return 1.0 if self.mutant == "always p" else 1 / (p + (1 - p) * self.n_classes)

    def run(self, key, draw, n_sweeps):
        """Both chains at time zero, started ``n_sweeps`` sweeps back."""
        lower, upper = set(), set(range(len(self.ends)))
        for back in range(n_sweeps, 0, -1):
            fresh = 1000 * n_sweeps if self.mutant == "fresh numbers" else 0
            heights = self.heights(key, draw, back + fresh)
            if self.mutant == "closed at the start of the sweep":
                lower, upper = lower & heights.keys(), upper & heights.keys()
            stale = {False: set(lower), True: set(upper)}
            for b, (i, j) in enumerate(self.ends):
                for is_upper, chain in ((False, lower), (True, upper)):
                    others = stale[is_upper] if self.mutant == "stale connectivity" else chain
                    if self.mutant != "own bond counts":
                        others = others - {b}
                    opens = b in heights and (
                        heights[b] < self.sure(b) or connected([self.ends[o] for o in others], i, j)
                    )
                    chain.discard(b)
                    if opens:
                        chain.add(b)
                assert lower <= upper, "the order of the chains broke"
        return lower, upper

    def labels(self, key, draw, n_sweeps):
        """Labels at time zero, or None if the clusters of the two chains differ."""
        lower, upper = self.run(key, draw, n_sweeps)
        parts = clusters(self.n + 1, [self.ends[b] for b in upper])
        if len(parts) != len(clusters(self.n + 1, [self.ends[b] for b in lower])):
            return None
        labels = np.empty(self.n + 1, int)
        for part in parts:
            root = max(part, key=lambda i: self.priority[i])
            of_part = math.floor(uniform(key, draw, 0, root) * self.n_classes)
            labels[list(part)] = self.heavier if self.n in part else of_part
        return labels[:-1]

    def draw(self, key, draw, n_start=2):
        n_sweeps = n_start
        while (labels := self.labels(key, draw, n_sweeps)) is None:
            n_sweeps *= 2
        return labels


class SiteTwin:
    """Coupling from the past on the labels of two classes, one site at a time.

    ``mutant`` is None or what is wrong: "fresh numbers", "beta not divided by k",
    "no reverse neighbours", "tie-break through |h|", "weights of the other class".
    """

    def __init__(self, graph, beta, k, class_weight=None, mutant=None):
        self.n, self.mutant = graph.n_points, mutant
        self.weights = np.ones(2) if class_weight is None else np.asarray(class_weight)
        if mutant == "weights of the other class":
            self.weights = self.weights[::-1]
        self.strength = beta if mutant == "beta not divided by k" else beta / k
        self.incident = [[] for _ in range(self.n)]
        for i in range(self.n):
            for j in graph.neighbors[:k, i]:
                self.incident[i].append(int(j))
                if mutant != "no reverse neighbours":
                    self.incident[int(j)].append(i)

    def chance(self, labels, i) -> float:
        """Probability of class 1 given the others."""
        ones = sum(labels[j] for j in self.incident[i])
        zeros = len(self.incident[i]) - ones
        return 1 / (
            1 + math.exp(self.strength * (self.weights[0] * zeros - self.weights[1] * ones))
        )

    def run(self, key, draw, n_sweeps):
        chains = [[0] * self.n, [1] * self.n]
        for back in range(n_sweeps, 0, -1):
            sweep = back + (1000 * n_sweeps if self.mutant == "fresh numbers" else 0)
            for i in range(self.n):
                u = uniform(key, draw, sweep, i)
                for labels in chains:
                    chance = self.chance(labels, i)
                    labels[i] = int(u < chance)
                    if self.mutant == "tie-break through |h|":
                        likelier = int(chance >= 0.5)
                        labels[i] = likelier if u < max(chance, 1 - chance) else 1 - likelier
                assert chains[0][i] <= chains[1][i], "the order of the chains broke"
        return chains

    def draw(self, key, draw, n_start=2):
        n_sweeps = n_start
        while True:
            lower, upper = self.run(key, draw, n_sweeps)
            if lower == upper:
                return np.array(lower)
            n_sweeps *= 2
