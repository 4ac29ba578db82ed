"""Swendsen-Wang written out slowly and plainly, from the same random numbers as the kernel.

Every ``mutant`` is one named mistake, for tests that must be shown to catch it.
"""

import math

import numpy as np

from bayesknn.labels.swendsen_wang import _BLOCK, draw_poisson

MASK = 2**64 - 1
MUTANTS = [
    "each pair bound once",
    "beta not divided by k",
    "bonds without agreement",
    "last rank never drawn",
    "colours reused between sweeps",
]
WEIGHT_MUTANTS = ["weights without thinning", "colours whatever the bonds"]


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def sweep_key(key, sweep):
    return mix((int(key) + (sweep + 1) * 0xD1342543DE82EF95) & MASK)


def uniform(stream, site):
    return (mix((stream + (site + 1) * 0x9E3779B97F4A7C15) & MASK) >> 11) * 2.0**-53


def sweep_labels(neighbors, k, beta, n_classes, class_weight, key, sweep, labels, mutant=None):
    """Return the labels after a sweep, the root of every point, and the number of bonds."""
    stream = sweep_key(key, sweep)
    bonds = draw_bonds(neighbors, k, beta, class_weight, stream, labels, mutant)
    roots = find_roots(neighbors.shape[1], bonds)
    if mutant == "colours reused between sweeps":
        stream = sweep_key(key, 0)
    if mutant == "colours whatever the bonds":
        class_weight = None
    bond_weights = weigh_bond(class_weight)
    n_bonds = np.bincount([roots[i] for i, _ in bonds], minlength=len(roots))
    colours = {}
    for root in sorted(set(roots)):
        u = uniform(stream, root)
        if class_weight is None:
            colours[root] = int(u * n_classes)
        else:
            colours[root] = invert(u, colour_law(n_bonds[root], bond_weights))
    return np.array([colours[root] for root in roots], labels.dtype), roots, len(bonds)


def draw_bonds(neighbors, k, beta, class_weight, stream, labels, mutant=None):
    """List the bonds (source, target) of the agreeing edges."""
    n = neighbors.shape[1]
    rate = beta if mutant == "beta not divided by k" else beta / k
    heaviest = 1.0 if class_weight is None else max(class_weight)
    pairs = {(i, int(j)) for row in neighbors[:k] for i, j in enumerate(row)}
    bonds = []
    candidate = n
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        count = draw_poisson(rate * heaviest * (size * k), np.uint64(stream), start // _BLOCK)
        for site in range(candidate, candidate + count):
            x = uniform(stream, site) * size
            ranks = k - 1 if mutant == "last rank never drawn" else k
            i = start + int(x)
            j = int(neighbors[int((x - int(x)) * ranks), i])
            g = labels[i]
            if g != labels[j] and mutant != "bonds without agreement":
                continue
            if mutant == "each pair bound once" and i > j and (j, i) in pairs:
                continue
            weight = 1.0 if class_weight is None else class_weight[g]
            keep = class_weight is None or uniform(stream, 2**63 + site) < weight / heaviest
            if keep or mutant == "weights without thinning":
                bonds.append((i, j))
        candidate += count
    return bonds


def find_roots(n, bonds):
    """Lowest point of every point's connected component."""
    adjacent = [[] for _ in range(n)]
    for i, j in bonds:
        adjacent[i].append(j)
        adjacent[j].append(i)
    roots = [-1] * n
    for root in range(n):
        stack = [root] if roots[root] < 0 else []
        while stack:
            i = stack.pop()
            if roots[i] < 0:
                roots[i] = root
                stack.extend(adjacent[i])
    return roots


def weigh_bond(class_weight):
    """Log weight of one bond in each class, the largest subtracted."""
    if class_weight is None:
        return None
    return [math.log(a / max(class_weight)) for a in class_weight]


def colour_law(n_bonds, log_weights):
    weights = [math.exp(n_bonds * w) for w in log_weights]
    return [w / sum(weights) for w in weights]


def invert(u, law):
    for g, p in enumerate(law[:-1]):
        if u < p:
            return g
        u -= p
    return len(law) - 1
