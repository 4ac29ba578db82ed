"""A node: short Swendsen-Wang chains at one (beta, k), and what they say of S (Section 3.3).

``d log Z / d beta`` is ``E[S_k] / k``, and log Z between any two settings is the integral of the
mean of their difference; nodes are where such integrals are evaluated. Every record holds S for a
few values of k: of the labels, from which variances come, and given the clusters, which has the
same mean and less noise. One chain starts from one class for all and one from random labels, so
that a first-order transition, where each would stay on its side, shows as a disagreement.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesknn._jit import kernel
from bayesknn.labels.bonds import new_scratch
from bayesknn.labels.cluster_estimator import estimate_agreement
from bayesknn.labels.layers import sweep_layers
from bayesknn.labels.layout import local_layout
from bayesknn.labels.random import key_of_sweep
from bayesknn.labels.swendsen_wang import colour_points, sweep_clusters
from bayesknn.likelihood.tilt import Tilt, average_tilted, read_tilt
from bayesknn.model.checks import label_dtype

N_CHAINS = 2
BATCHES_PER_CHAIN = 8
_SPLIT_ERRORS = 5.0
_SPLIT_SHARE = 0.2
_START = np.uint64(2**64 - 1)
# A record reads k edges a point and a sweep about 16: sweeps between records share the time.
_RANKS_PER_SWEEP = 16
_ROOM = 1.1


class Field(NamedTuple):
    """The model without its labels, laid out for the kernels.

    Attributes
    ----------
    neighbors : ndarray of shape (n_ranks, n)
    order : ndarray of shape (n,)
        The point at each position.
    n_classes : int
    class_weight : ndarray or None
        ``None`` where all classes weigh the same.
    unit : float
        Then that common weight: the model is the plain one at ``unit * beta``.
    """

    neighbors: np.ndarray
    order: np.ndarray
    n_classes: int
    class_weight: np.ndarray | None
    unit: float


def lay_out(
    graph, n_classes: int, class_weight: np.ndarray | None, n_ranks: int | None = None
) -> Field:
    """Prepare a graph for nodes.

    Parameters
    ----------
    graph : NeighborGraph
    n_classes : int
    class_weight : ndarray of shape (n_classes,), optional
    n_ranks : int, optional
        Copy this many ranks at most where the points are relabelled, all by default; 0 leaves the
        graph as it is.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood.nodes import lay_out
    >>> lay_out(NeighborGraph.from_neighbors([[1, 2, 0]]), n_classes=2, class_weight=None).unit
    1.0
    """
    unit = 1.0
    if class_weight is not None and np.all(class_weight == class_weight[0]):
        unit, class_weight = float(class_weight[0]), None
    if n_ranks == 0:
        order = np.arange(graph.n_points, dtype=np.uint32)
        return Field(graph.neighbors, order, n_classes, class_weight, unit)
    layout = local_layout(graph, n_ranks or graph.k_max)
    return Field(layout.neighbors, layout.order, n_classes, class_weight, unit)


class Node:
    """Chains at one (beta, k) that record S for the values of k in ``columns``.

    Parameters
    ----------
    field : Field
    beta : float
    k : int
    columns : sequence of int
        Which S_k to record, increasing.
    seeds : numpy.random.SeedSequence
        The node's own; results depend on nothing else.
    initial : ndarray of shape (n,) or (N_CHAINS, n), optional
        Start the chains here instead of from one class and from random labels.
    layers : (ndarray of int, ndarray of float), optional
        Some k and a rate for each: the model is then ``exp(sum of rate * S_k)``, in place of that
        of beta and k, see :mod:`bayesknn.labels.layers`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood.nodes import Node, lay_out
    >>> ring = NeighborGraph.from_neighbors([np.roll(np.arange(100), -1)])
    >>> node = Node(lay_out(ring, 2, None), 1.0, 1, [1], np.random.SeedSequence(0))
    >>> node.advance(500, n_warmup=50)
    >>> bool(abs(node.mean()[0] - 100 * np.e / (np.e + 1)) < 1)
    True
    """

    def __init__(
        self,
        field: Field,
        beta: float,
        k: int,
        columns: Any,
        seeds: np.random.SeedSequence,
        initial: np.ndarray | None = None,
        layers: tuple[np.ndarray, np.ndarray] | None = None,
    ):
        self.field, self.beta, self.k = field, float(beta), int(k)
        self.layers = None if layers is None else (layers[0], field.unit * layers[1])
        self.columns = np.asarray(columns, dtype=np.int64)
        self.keys = seeds.generate_state(N_CHAINS + 1, np.uint64)
        self.n_sweeps = 0
        self.thin = 1 + int(self.columns[-1]) // _RANKS_PER_SWEEP
        n, dtype = field.neighbors.shape[1], label_dtype(field.n_classes)
        self.labels = np.zeros((N_CHAINS, n), dtype)
        if initial is None:
            start = np.uint64(key_of_sweep(self.keys[1], _START))
            colour_points(start, field.n_classes, self.labels[1])
        else:
            self.labels[:] = initial
        shape = (N_CHAINS, 0, len(self.columns))
        self.of_labels, self.of_clusters = np.empty(shape), np.empty(shape)
        self._tilt: tuple[tuple[int, int], Tilt] | None = None
        self._shares = np.empty((0, 0))

    @property
    def n_records(self) -> int:
        """Records of each chain."""
        return self.of_labels.shape[1]

    def column(self, k: int) -> int:
        """Where S_k stands among the columns."""
        at = int(np.searchsorted(self.columns, k))
        if at == len(self.columns) or self.columns[at] != k:
            raise KeyError(f"S at k={k} is not recorded, only at {self.columns.tolist()}")
        return at

    def advance(self, n_records: int, n_warmup: int = 0) -> None:
        """Make ``n_warmup`` sweeps and add ``n_records`` records to each chain."""
        self.add([self.run(chain, n_records, n_warmup) for chain in range(N_CHAINS)], n_warmup)

    def run(self, chain: int, n_records: int, n_warmup: int = 0) -> np.ndarray:
        """Make the sweeps of one chain; chains may run at the same time, before :meth:`add`.

        Returns
        -------
        records : ndarray of shape (2, n_records, n_columns)
            S of the labels, and given the clusters.
        """
        field = self.field
        records = np.empty((2, n_records, len(self.columns)))
        n, rate = self.labels.shape[1], self.beta * field.unit
        if field.class_weight is not None:
            rate *= field.class_weight.max()
        # Room for the candidates of a sweep, about rate * n of them and n * k at most.
        scratch = new_scratch(
            self.labels[0], field.n_classes, field.class_weight is not None,
            capacity=int(min(_ROOM * rate, self.k) * n) + 1024,
        )  # fmt: skip
        _advance(
            field.neighbors, int(self.columns[-1]), self.columns, self.k, self.beta * field.unit,
            self.layers, field.n_classes, field.class_weight, self.keys[chain],
            np.uint64(self.n_sweeps), n_warmup, self.thin, self.labels[chain], scratch,
            records[0], records[1],
        )  # fmt: skip
        return field.unit * records

    def add(self, chains: list[np.ndarray], n_warmup: int = 0) -> None:
        """Append what :meth:`run` returned for each chain to the records."""
        of_labels, of_clusters = np.stack(chains, axis=1)
        self.n_sweeps += n_warmup + of_labels.shape[1] * self.thin
        self.of_labels = np.concatenate([self.of_labels, of_labels], axis=1)
        self.of_clusters = np.concatenate([self.of_clusters, of_clusters], axis=1)

    def forget(self) -> None:
        """Drop the records, keep the chains where they are."""
        self.of_labels, self.of_clusters = self.of_labels[:, :0], self.of_clusters[:, :0]
        self._tilt = None

    def mean(self) -> np.ndarray:
        """Return the estimate of E[S] for each column."""
        return self.of_clusters.mean(axis=(0, 1))

    def variance(self) -> np.ndarray:
        """Return the estimate of Var[S] for each column."""
        return self.of_labels.var(axis=(0, 1))

    def is_split(self) -> bool:
        """Whether the chain from one class and the one from random labels stay apart.

        Both beyond chance and by a share of the edges that only a transition explains.
        """
        batches = _batch(self.of_clusters)[:, :, self.column(self.k)]
        error = np.sqrt(np.sum(batches.var(axis=1, ddof=1)) / batches.shape[1])
        apart = self.distance()
        return bool(apart > _SPLIT_ERRORS * error / self._n_edges and apart > _SPLIT_SHARE)

    def distance(self) -> float:
        """Return how far apart the two chains are on average, as a share of the edges."""
        first, second = self.of_clusters[:, :, self.column(self.k)].mean(axis=1)
        return float(abs(first - second) / self._n_edges)

    @property
    def _n_edges(self) -> float:
        """S_k where all labels agree."""
        return self.k * self.labels.shape[1] * self.field.unit

    def combine(self, weights: np.ndarray, n_replicates: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of a weighted sum of the columns, in every replicate."""
        clusters, labels = self.of_clusters @ weights, self.of_labels @ weights
        centre = labels.mean()
        series = np.stack([clusters - centre, labels - centre, (labels - centre) ** 2], axis=-1)
        of_clusters, of_labels, squares = self._resample(_batch(series), n_replicates).T
        return centre + of_clusters, squares - of_labels**2

    def tilt(self, n_replicates: int) -> Tilt:
        """Return what the records say of every column's k at this beta, in every replicate."""
        # A node is asked again for every k around it.
        made_of = (n_replicates, self.n_sweeps)
        if self._tilt is None or self._tilt[0] != made_of:
            own, centre = self.column(self.k), self.mean() / self.columns
            batches = average_tilted(
                self.of_labels, self.of_clusters, self.columns, centre, own, self.beta,
                BATCHES_PER_CHAIN,
            )  # fmt: skip
            averages = self._resample(batches, n_replicates)
            self._tilt = made_of, read_tilt(averages, own, self.beta, centre)
        return self._tilt[1]

    def _resample(self, batches: np.ndarray, n_replicates: int) -> np.ndarray:
        """Resample whole batches of records, so that the spread is the Monte Carlo error.

        Row 0 is the mean itself, and all calls resample alike.
        """
        if len(self._shares) != n_replicates:
            rng = np.random.default_rng(int(self.keys[-1]))
            self._shares = share_out(rng, N_CHAINS * BATCHES_PER_CHAIN, n_replicates)
        return np.tensordot(self._shares, batches.reshape(-1, *batches.shape[2:]), axes=1)


def share_out(rng: np.random.Generator, n_batches: int, n_replicates: int) -> np.ndarray:
    """Return the share of every batch in every replicate; in replicate 0 all have the same.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.likelihood.nodes import share_out
    >>> shares = share_out(np.random.default_rng(0), n_batches=4, n_replicates=100)
    >>> shares[0].tolist(), bool(np.allclose(shares.sum(axis=1), 1))
    ([0.25, 0.25, 0.25, 0.25], True)
    """
    counts = rng.multinomial(n_batches, np.full(n_batches, 1 / n_batches), n_replicates)
    # Resampling m batches shows (m - 1) / m of their variance.
    shares = 1 + (counts - 1) * np.sqrt(n_batches / (n_batches - 1))
    shares[0] = 1
    return shares / n_batches


def _batch(series: np.ndarray) -> np.ndarray:
    """Mean of each of the batches that a chain's records are cut into."""
    length = series.shape[1] // BATCHES_PER_CHAIN
    used = series[:, series.shape[1] - length * BATCHES_PER_CHAIN :]
    shape = (series.shape[0], BATCHES_PER_CHAIN, length, *series.shape[2:])
    return used.reshape(shape).mean(axis=2)


@kernel
def _advance(
    neighbors, n_ranks, columns, k, beta, layers, n_classes, class_weight, key, sweep, n_warmup,
    thin, labels, scratch, of_labels, of_clusters,
):  # fmt: skip
    agreement, cluster_agreement = np.empty(n_ranks), np.empty(n_ranks)
    n_sweeps = n_warmup
    # The warm-up, then one more round of sweeps for each record.
    for t in range(-1, of_labels.shape[0]):
        for _ in range(n_sweeps):
            if layers is None:
                sweep_clusters(
                    neighbors, k, beta, n_classes, class_weight, key, sweep, labels, scratch
                )
            else:
                sweep_layers(
                    neighbors, layers[0], layers[1], n_classes, class_weight, key, sweep,
                    labels, scratch,
                )  # fmt: skip
            sweep += np.uint64(1)
        n_sweeps = thin
        if t < 0:
            continue
        estimate_agreement(
            neighbors, n_ranks, n_classes, class_weight, labels, scratch,
            agreement, cluster_agreement,
        )  # fmt: skip
        for c in range(columns.size):
            of_labels[t, c] = agreement[columns[c] - 1]
            of_clusters[t, c] = cluster_agreement[columns[c] - 1]
