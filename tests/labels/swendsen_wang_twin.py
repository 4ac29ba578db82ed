"""Bonds from the random numbers of the Swendsen-Wang kernel; the reference makes labels of them.

Every ``mutant`` is one named mistake, for tests that must be shown to catch it.
"""

import numpy as np

from bayesknn import reference
from bayesknn.labels.swendsen_wang import draw_poisson
from tests.labels.cases import bits, sweep_key
from tests.model.enumeration import as_reference

# Points whose events are drawn together: it settles which number belongs to which event.
BLOCK = 1024
MUTANTS = [
    "each pair bound once",
    "beta not divided by k",
    "bonds without agreement",
    "last rank never drawn",
    "colours reused between sweeps",
]
WEIGHT_MUTANTS = ["weights without thinning", "colours whatever the bonds"]


def uniform(stream, site):
    return (bits(stream, site) >> 11) * 2.0**-53


def sweep_labels(graph, k, beta, n_classes, class_weight, key, sweep, labels, mutant=None):
    """Return the labels after a sweep, and the root of every point."""
    near, a = as_reference(graph, n_classes, class_weight)
    stream = sweep_key(key, sweep)
    bonds = draw_bonds(near, k, beta, a, stream, labels, mutant)
    if mutant == "colours reused between sweeps":
        stream = sweep_key(key, 0)
    if mutant == "colours whatever the bonds":
        a = np.ones(n_classes)
    u = [uniform(stream, site) for site in range(len(near))]
    i, r = np.nonzero(bonds)
    roots = reference.find_clusters(len(near), np.column_stack([i, near[i, r]]))
    return reference.colour_clusters(near, a, bonds, u), roots


def draw_bonds(near, k, beta, a, stream, labels, mutant=None):
    """Return the number of bonds on each edge: the kernel's events where labels agree, thinned."""
    n = len(near)
    rate = beta if mutant == "beta not divided by k" else beta / k
    mutual = {(i, j) for i in range(n) for j in near[i, :k].tolist()}
    bonds = np.zeros((n, k), int)
    candidate = n
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        count = draw_poisson(rate * max(a) * (size * k), np.uint64(stream), start // BLOCK)
        for site in range(candidate, candidate + count):
            x = uniform(stream, site) * size
            ranks = k - 1 if mutant == "last rank never drawn" else k
            i, r = start + int(x), int((x - int(x)) * ranks)
            j = int(near[i, r])
            if labels[i] != labels[j] and mutant != "bonds without agreement":
                continue
            if mutant == "each pair bound once" and i > j and (j, i) in mutual:
                continue
            keep = np.ptp(a) == 0 or uniform(stream, 2**63 + site) < a[labels[i]] / max(a)
            bonds[i, r] += keep or mutant == "weights without thinning"
        candidate += count
    return bonds


def find_roots(n, bonds):
    """Return the lowest point of every point's connected component, of bonds (source, target)."""
    return reference.find_clusters(n, np.array(bonds, int).reshape(-1, 2)).tolist()
