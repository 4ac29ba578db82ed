"""log Z at the far end of a path, where most components of the graph have one class (SPEC, Facts).

Call a labelling plain if every connected component of the graph of k has one class throughout.
The plain labellings weigh ``W(beta) = prod over components c of sum over g of exp(beta a_g n_c)``
together, so ``log Z = log W - log P(plain)`` at every beta, with no limit taken. Given the
clusters of a Swendsen-Wang sweep the colours are independent, and the probability that the
labelling is plain is known: ``G ** (components - clusters)`` without class weights. Its average
is an estimate of P(plain) that is precise once there are only a few clusters too many. The path
can therefore stop there: no tail is cut off.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

from bayesknn._jit import kernel
from bayesknn.labels.bonds import new_scratch
from bayesknn.labels.swendsen_wang import sweep_clusters
from bayesknn.likelihood.nodes import Field
from bayesknn.likelihood.path.rung import Rung, join, resample

_MEMORIES_PER_BATCH = 10.0
_FEWEST_BATCHES = 8
_PROBE = 64


def find_components(field: Field, k: int) -> np.ndarray:
    """Return which connected component of the graph of k each position is in.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood.nodes import lay_out
    >>> from bayesknn.likelihood.path.ends import find_components
    >>> pairs = NeighborGraph.from_neighbors([[1, 0, 3, 2]])
    >>> find_components(lay_out(pairs, 2, None), k=1)
    array([0, 0, 1, 1], dtype=int32)
    """
    n = field.neighbors.shape[1]
    ends = (np.tile(np.arange(n), k), field.neighbors[:k].ravel())
    edges = coo_array((np.ones(n * k, np.int8), ends), shape=(n, n))
    return connected_components(edges, directed=False)[1]


def log_plain_weight(field: Field, components: np.ndarray, beta: float) -> float:
    """Return log W(beta), the total weight of the plain labellings.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood.nodes import lay_out
    >>> from bayesknn.likelihood.path.ends import find_components, log_plain_weight
    >>> field = lay_out(NeighborGraph.from_neighbors([[1, 0, 3, 2]]), 2, None)
    >>> round(log_plain_weight(field, find_components(field, k=1), beta=1.0), 6)
    5.386294
    """
    sizes = np.bincount(components)
    if field.class_weight is None:
        return float(beta * field.unit * sizes.sum() + len(sizes) * np.log(field.n_classes))
    return float(logsumexp(beta * np.outer(sizes, field.class_weight), axis=1).sum())


class End:
    """The chains of a rung, carried on to estimate P(plain) there.

    Parameters
    ----------
    rung : Rung
        Its chains move on when these do.
    components : ndarray of shape (n,)
        From :func:`find_components`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood.nodes import lay_out
    >>> from bayesknn.likelihood.path.ends import End, find_components
    >>> from bayesknn.likelihood.path.rung import Rung, join, resample
    >>> field = lay_out(NeighborGraph.from_neighbors([np.roll(np.arange(20), -1)]), 2, None)
    >>> rung = Rung(field, 3.0, 1, 1, np.random.SeedSequence(0))
    >>> rung.scout()
    >>> end = End(rung, find_components(field, 1))
    >>> end.scout()
    >>> end.advance(2000)
    >>> exact = np.log((np.exp(3) + 1) ** 20 + (np.exp(3) - 1) ** 20)
    >>> bool(abs(end.log_normalizer()[0] - exact) < 0.2)
    True
    """

    def __init__(self, rung: Rung, components: np.ndarray):
        self.rung, self.components = rung, components
        self.n_components = int(components.max()) + 1
        self.log_weight = log_plain_weight(rung.node.field, components, rung.beta)
        self.chance = np.empty((len(rung.node.labels), 0))
        self.log_spread = float("nan")

    def scout(self) -> None:
        """Run a pilot, which tells how noisy a record is.

        ``log_spread`` is about log(1 + relative variance) of a record. It comes from the mean
        number of clusters too many, as if that were Poisson: where a few records dominate the
        others, their own variance does not show it.
        """
        surplus = self._run(_PROBE)[1] - self.n_components
        self.log_spread = float(surplus.mean() * (1 - 1 / self.rung.node.field.n_classes) ** 2)

    @property
    def noise(self) -> float:
        """The variance of log Z times the number of records, by the pilot."""
        spread = float(np.expm1(self.log_spread)) + 1 / (2 * _PROBE)
        return spread * max(self.rung.memory, 1.0)

    @property
    def n_records(self) -> int:
        """Records of both chains together."""
        return self.chance.size

    def advance(self, n_records: int) -> None:
        """Run on, a sweep for each record, until there are this many or more."""
        n_more = -(-(n_records - self.n_records) // len(self.chance))
        if n_more > 0:
            self.chance = np.concatenate([self.chance, self._run(n_more)[0]], axis=1)

    def _run(self, n_records: int) -> tuple[np.ndarray, np.ndarray]:
        node = self.rung.node
        field = node.field
        chance, n_clusters = np.empty((2, len(node.labels), n_records))
        scratch = new_scratch(node.labels[0], field.n_classes, field.class_weight is not None)
        for chain in range(len(node.labels)):
            _record_plain(
                field.neighbors, node.k, node.beta * field.unit, field.n_classes,
                field.class_weight, node.keys[chain], np.uint64(node.n_sweeps),
                self.components, self.n_components, node.labels[chain], scratch,
                chance[chain], n_clusters[chain],
            )  # fmt: skip
        node.n_sweeps += n_records
        return chance, n_clusters

    def log_normalizer(self) -> np.ndarray:
        """Return log Z at the rung in every replicate."""
        n_chains, n_records = self.chance.shape
        wanted = int(np.ceil(_MEMORIES_PER_BATCH * self.rung.memory))
        length = min(wanted, n_records // _FEWEST_BATCHES)
        used = self.chance[:, n_records % length :]
        batches = used.reshape(n_chains, -1, length).mean(axis=2)
        rng = np.random.default_rng([int(self.rung.node.keys[-1]), 1])
        averages = resample(batches, rng)
        averages[1:] += averages[0] * rng.normal(size=len(averages) - 1) / self.n_records
        values = self.log_weight - np.log(np.maximum(averages, 1e-300))
        # The log of a mean is on average too low by half the mean's relative variance.
        joined = join(batches)
        return values - joined.var(ddof=1) / len(joined) / averages[0] ** 2 / 2


@kernel
def _record_plain(
    neighbors, k, beta, n_classes, class_weight, key, sweep, components, n_components,
    labels, scratch, chance, n_clusters,
):  # fmt: skip
    """Make a sweep for each record; note P(plain) given its clusters, and their number."""
    n_laws = 1 if class_weight is None else n_classes
    log_chance = np.empty((n_components, n_laws))
    for t in range(chance.size):
        sweep_clusters(neighbors, k, beta, n_classes, class_weight, key, sweep, labels, scratch)
        sweep += np.uint64(1)
        n_roots = 0
        log_chance[:] = 0.0
        for i in range(labels.size):
            if scratch.roots[i] == i:
                n_roots += 1
                if class_weight is not None:
                    for g in range(n_classes):
                        log_chance[components[i], g] += np.log(scratch.colour_law[i, g])
        n_clusters[t] = n_roots
        if class_weight is None:
            chance[t] = np.float64(n_classes) ** (n_components - n_roots)
        else:
            chance[t] = 1.0
            for c in range(n_components):
                chance[t] *= np.exp(log_chance[c]).sum()
