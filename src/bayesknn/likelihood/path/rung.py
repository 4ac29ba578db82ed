"""A rung: chains at one (beta, k), and what they say of log Z there and at the k around.

``d log Z / d beta = E[S_k] / k`` needs mean and variance of S_k. The same draws, tilted, say what
they are at the k around (:mod:`bayesknn.likelihood.tilt`).

Chains are first run as pilots. Where nodes go, how far apart records are and how much each node
is trusted is decided from pilot runs alone, which are then forgotten: decisions made on the
records from which log Z is computed would bias it. Records are kept as averages over batches,
long beside the memory of the chain, and errors come from resampling those. A chain that saw no
point disagree does not show how rarely one would: errors are not believed below that of a single
event.
"""

from __future__ import annotations

import numpy as np

from bayesknn.labels.autocorrelation import autocorrelation_time
from bayesknn.likelihood.nodes import Field, Node, share_out
from bayesknn.likelihood.path.curve import N_REPLICATES
from bayesknn.likelihood.tilt import N_SERIES, Tilt, average_tilted, read_tilt

_PILOT_RECORDS = 64
_PILOT_WARMUP = 64
# A pilot goes on until it is so many times as long as the memory, within bounds.
_PILOT_MEMORIES = 20.0
_MAX_PILOT_SWEEPS = 16_384
# Sweeps of a batch, at least, and batches of each chain in a first run.
_MEMORIES_PER_BATCH = 10.0
_MIN_BATCH_SWEEPS = 24
_FIRST_BATCHES = 12
# Batches of each chain that are resampled: shorter ones are joined from twice as many on.
_RESAMPLED_BATCHES = 16
# Records are as far apart as half the memory, within bounds.
_MAX_THIN = 256
_RANKS_PER_SWEEP = 16


class Rung:
    """Chains at one (beta, k) that know S at a few k around.

    Parameters
    ----------
    field : Field
    beta : float
    k : int
    k_last : int
        The pilot looks at k and at those up to this one.
    seeds : numpy.random.SeedSequence
        Its own.

    Attributes
    ----------
    node : Node
    memory : float
        Sweeps that are worth one independent draw, by the pilot.
    noise : float
        By the pilot, the variance of the mean of S_k / k times the number of records.
    is_split : bool
        Whether the chain from one class and the one from random labels stayed apart, at a
        first-order transition.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood.nodes import lay_out
    >>> from bayesknn.likelihood.path.rung import Rung
    >>> ring = NeighborGraph.from_neighbors([np.roll(np.arange(100), -1)])
    >>> rung = Rung(lay_out(ring, 2, None), 1.0, 1, 1, np.random.SeedSequence(0))
    >>> rung.scout()
    >>> rung.settle([1])
    >>> rung.advance(4000)
    >>> mean = rung.moments(1).mean
    >>> bool(abs(mean[0] - 100 * np.e / (np.e + 1)) < 6 * mean[1:].std())
    True
    """

    def __init__(self, field: Field, beta: float, k: int, k_last: int, seeds):
        self.k, self.beta = k, beta
        self.node = Node(field, beta, k, np.arange(k, k_last + 1), seeds)
        self.memory, self.noise = float("nan"), float("nan")
        self.is_split = False
        self._tilt: Tilt | None = None

    def scout(self) -> None:
        """Run the pilot."""
        node = self.node
        node.advance(_PILOT_RECORDS, _PILOT_WARMUP)
        while True:
            self.memory = node.thin * self._find_memory()
            n_sweeps = node.n_records * node.thin
            self.is_split = node.is_split()
            is_slow = n_sweeps < _PILOT_MEMORIES * self.memory or self.is_split
            if not is_slow or n_sweeps >= _MAX_PILOT_SWEEPS:
                break
            node.advance(3 * node.n_records)
        # Noise that was not seen may be there, of the size of one point that disagrees.
        unseen = 1 / (2 * node.n_records)
        spread = (node.of_clusters[:, :, node.column(self.k)] / self.k).var() + unseen
        self.noise = float(spread * max(self.memory / node.thin, 1.0))

    def _find_memory(self) -> float:
        series = self.node.of_labels[:, :, self.node.column(self.k)]
        times = [autocorrelation_time(each) for each in series]
        return float(np.nanmax([1.0, *times]))

    def pilot_mean(self) -> float:
        """Return the pilot's mean of S_k / k."""
        return float(self.node.mean()[0] / self.k)

    def pilot_variance(self) -> float:
        """Return the pilot's variance of S_k / k."""
        return float(self.node.variance()[0] / self.k**2)

    def pilot_distances(self) -> np.ndarray:
        """Return the pilot's variance of D for each k that it looked at, its own first."""
        x = self.node.of_labels / self.node.columns
        return (self.beta * (x - x[:, :, :1])).var(axis=(0, 1))

    def settle(self, columns) -> None:
        """Forget the pilot's records; from now on look at these k, the own one among them."""
        node = self.node
        self.columns = np.asarray(columns)
        self.own = int(np.searchsorted(self.columns, self.k))
        seen = node.mean()
        # Any constants do, as long as they are near and do not change.
        self.centre = np.interp(self.columns, node.columns, seen / node.columns)
        node.columns = self.columns
        shape = (len(node.labels), 0, len(self.columns))
        node.of_labels, node.of_clusters = np.empty(shape), np.empty(shape)
        before = node.thin
        thin = max(1 + int(self.columns[-1]) // _RANKS_PER_SWEEP, int(self.memory / 2))
        node.thin = min(thin, _MAX_THIN)
        # Records that are further apart say more each.
        per_record = max(self.memory / node.thin, 1.0) / max(self.memory / before, 1.0)
        self.noise *= per_record
        sweeps = max(_MIN_BATCH_SWEEPS, _MEMORIES_PER_BATCH * self.memory)
        self.length = int(np.ceil(sweeps / node.thin))
        self.batches = np.empty((len(node.labels), 0, len(self.columns), N_SERIES))

    @property
    def n_records(self) -> int:
        """Records of both chains together."""
        return self.batches.shape[0] * self.batches.shape[1] * self.length

    @property
    def fewest_records(self) -> int:
        """How many records a first run makes."""
        return _FIRST_BATCHES * len(self.node.labels) * self.length

    @property
    def cost(self) -> float:
        """What a record costs, in the time that one rank of neighbours takes to read."""
        return float(self.columns[-1] + _RANKS_PER_SWEEP * self.node.thin)

    def advance(self, n_records: int) -> None:
        """Run on until there are this many records or more."""
        n_chains = len(self.node.labels)
        n_more = int(np.ceil((n_records - self.n_records) / (self.length * n_chains)))
        if n_more <= 0:
            return
        self.node.advance(n_more * self.length)
        batches = average_tilted(
            self.node.of_labels, self.node.of_clusters, self.columns, self.centre, self.own,
            self.beta, n_more,
        )  # fmt: skip
        self.node.forget()
        self.batches = np.concatenate([self.batches, batches], axis=1)
        self._tilt = None

    def measure_noise(self) -> float:
        """Return the variance of the mean of S_k / k times the number of records."""
        batches = join(self.batches[:, :, self.own, 0])
        seen = batches.var(ddof=1) / len(batches)
        return float(self.n_records * seen + 1 / self.n_records)

    def moments(self, k: int) -> Tilt:
        """Return what the records say of one of the columns: arrays of length n_replicates."""
        if self._tilt is None:
            rng = np.random.default_rng([int(self.node.keys[-1]), 0])
            averages = resample(self.batches, rng)
            # All k see about the same events.
            unseen = 2 * rng.normal(size=(N_REPLICATES - 1, 1)) / self.n_records
            averages[1:, :, 0] += unseen
            self._tilt = read_tilt(averages, self.own, self.beta, self.centre)
        at = int(np.searchsorted(self.columns, k))
        return Tilt(*(part[:, at] for part in self._tilt))


def join(batches: np.ndarray) -> np.ndarray:
    """Average neighbouring batches of each chain, so that a moderate number of long ones is left.

    Parameters
    ----------
    batches : ndarray of shape (n_chains, n_batches, ...)

    Returns
    -------
    ndarray of shape (n_joined, ...)
        Of all chains. A remainder at the beginning is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.likelihood.path.rung import join
    >>> join(np.arange(80.0).reshape(2, 40)).shape
    (40,)
    """
    n_chains, n_batches = batches.shape[:2]
    n_joined = max(1, n_batches // _RESAMPLED_BATCHES)
    used = batches[:, n_batches % n_joined :]
    shape = (-1, n_joined, *batches.shape[2:])
    return used.reshape(shape).mean(axis=1)


def resample(batches: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Average over batches, in row 0, and over resampled ones, in every other replicate.

    Parameters
    ----------
    batches : ndarray of shape (n_chains, n_batches, ...)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_replicates, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.likelihood.path.rung import resample
    >>> resample(np.arange(8.0).reshape(2, 4), np.random.default_rng(0))[0]
    np.float64(3.5)
    """
    joined = join(batches)
    spread = share_out(rng, len(joined), N_REPLICATES) - 1 / len(joined)
    return batches.mean(axis=(0, 1)) + np.tensordot(spread, joined, axes=1)
