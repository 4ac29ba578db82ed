"""Swendsen-Wang for models between two k, ``exp(sum over j of rate_j * S_k_j)`` (Section 3.3).

Such models lie on the way from one k to another, where log Z is integrated. Every layer j is the
graph of its own k. Events come independently on each, Poisson(rate_j * a_g) on an agreeing edge
of class g (:mod:`bayesknn.labels.bonds`), so that the candidates of all layers together are those
of the sum, and a sweep costs about n times the sum of ``rate_j * k_j``. All layers read the same
lists of neighbours.
"""

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import key_of_sweep
from bayesknn.labels.bonds import (
    _BLOCK,
    _join_pending,
    _keep_agreeing,
    _place_events,
    _poisson,
    _set_bond_law,
)
from bayesknn.labels.clusters import _isolate
from bayesknn.labels.swendsen_wang import _recolour


@kernel
def sweep_layers(neighbors, ks, rates, n_classes, class_weight, key, sweep, labels, scratch):
    """Make one sweep in place; a single layer is the model of ``sweep_clusters``.

    Where that draws by events too, the random numbers are the same.
    """
    stream = key_of_sweep(key, sweep)
    _bind_layers(neighbors, ks, rates, class_weight, stream, labels, scratch)
    _recolour(n_classes, class_weight, stream, labels, scratch)


@kernel
def _bind_layers(neighbors, ks, rates, class_weight, stream, labels, scratch):
    """Draw the events of every layer given the labels and join what they bind."""
    n, capacity = labels.size, scratch.sources.size
    n_blocks = (n + _BLOCK - 1) // _BLOCK
    keep_probability, heaviest = None, 1.0
    if class_weight is not None:
        scratch.bonds[:] = np.uint32(0)
        # The law of events, whatever their rate.
        _set_bond_law(0.0, class_weight, scratch.bond_law)
        keep_probability, heaviest = scratch.bond_law[0], class_weight.max()
    _isolate(scratch.roots)
    n_pending, is_first = 0, True
    candidate = np.uint64(n)
    for layer in range(ks.size):
        k = ks[layer]
        for block in range(n_blocks):
            start = block * _BLOCK
            size = min(_BLOCK, n - start)
            mean = rates[layer] * heaviest * (size * k)
            n_candidates = _poisson(mean, stream, layer * n_blocks + block)
            done = 0
            while done < n_candidates:
                if n_pending == capacity:
                    _join_pending(scratch, n_pending, is_first)
                    n_pending, is_first = 0, False
                count = min(n_candidates - done, capacity - n_pending)
                _place_events(start, size, k, count, stream, candidate, scratch, n_pending)
                n_pending += _keep_agreeing(
                    neighbors, count, keep_probability,
                    stream, candidate, labels, scratch, n_pending,
                )  # fmt: skip
                done += count
                candidate += np.uint64(count)
    _join_pending(scratch, n_pending, is_first)
