"""What chains at one setting recorded, and the estimates from it with their errors (Section 3.3).

``d log Z / d beta`` is ``E[S_k] / k``, and log Z at any setting follows from S at others
(:mod:`bayesknn.log_z.mbar`). Every record holds S for a few values of k: of the labels, and given
the clusters, which has the same mean and less noise. :class:`Records` is made of arrays alone;
:class:`~bayesknn.log_z.chains.ChainPair` runs the chains that add to it.

Monte Carlo errors come from resampling batches of records (the batch bootstrap). Every estimate of
log Z is computed from averages over records. A replicate computes it from resampled batches of the
same records; the spread over 64 replicates is its error, through whatever it goes: integrals,
reweighting, the posterior itself. Row 0 of an array of replicates is the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bayesknn.labels.mixing import autocorrelation_time
from bayesknn.model import BoltzmannModel

# One from labels of one class and one from random labels: where they stay apart is a transition.
N_CHAINS = 2
# The estimate itself, and resampled versions of it: 64 give an error to within a tenth, and all
# that follows from log Z is computed as often.
N_REPLICATES = 1 + 64


class Setting(NamedTuple):
    """A distribution of the labels, ``exp(sum over j of rates[j] * S_ks[j])``.

    With one k it is that of ``beta = rate * k``; with two it lies between two k.
    """

    ks: tuple[int, ...]
    rates: tuple[float, ...]

    @classmethod
    def at(cls, beta: float, k: int) -> Setting:
        """Return the model at (beta, k)."""
        return cls((int(k),), (float(beta) / k,))

    @property
    def beta(self) -> float:
        """The strength of all layers together."""
        return sum(rate * k for rate, k in zip(self.rates, self.ks, strict=True))


class Window(NamedTuple):
    """The labels with ``low <= S_rank < high``, to which chains are held; all if rank is 0."""

    rank: int = 0
    low: float = 0.0
    high: float = 0.0


def join(batches: np.ndarray) -> np.ndarray:
    """Average neighbouring batches of each chain, so that a moderate number of long ones is left.

    From shape (n_chains, n_batches, ...) to (n_joined, ...), of all chains. A remainder at the
    beginning is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.records import join
    >>> join(np.arange(80.0).reshape(2, 40)).shape
    (40,)
    """
    n_batches = batches.shape[1]
    # So many that their spread is known to an eighth, and so few that they are long.
    length = max(1, n_batches // 16)
    used = batches[:, n_batches % length :]
    return used.reshape(-1, length, *batches.shape[2:]).mean(axis=1)


def resample(batches: np.ndarray, key: int) -> np.ndarray:
    """Average over batches, in row 0, and over resampled ones, in every other replicate.

    From shape (n_chains, n_batches, ...) to (n_replicates, ...). The same key and number of batches
    resample alike.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.records import resample
    >>> resample(np.arange(8.0).reshape(2, 4), key=0)[0]
    np.float64(3.5)
    """
    joined = join(batches)
    # Not a matrix product: threads of BLAS would get in the way of those of the chains.
    changes = np.einsum("rm,m...->r...", _shares(key, len(joined)), joined)
    return batches.mean(axis=(0, 1)) + changes


def standard_error(replicates: np.ndarray) -> np.ndarray:
    """Return the Monte Carlo error of an estimate, from its replicates along the first axis.

    The spread of those that were resampled; the estimate itself, row 0, is not one of them. Where
    there is no other row, the estimate has no error.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.records import standard_error
    >>> float(standard_error(np.array([9.0, 1.0, 3.0])))
    1.0
    """
    return replicates[1:].std(axis=0) if len(replicates) > 1 else np.zeros_like(replicates[0])


@lru_cache(maxsize=512)
def _shares(key: int, m: int) -> np.ndarray:
    """Return by how much the share of each of m batches is changed in every replicate."""
    counts = np.random.default_rng(key).multinomial(m, np.full(m, 1 / m), N_REPLICATES)
    counts[0] = 1
    # Resampling m batches shows (m - 1) / m of the variance of their mean; and as the variance is
    # itself estimated from m batches, scores have Student's law, of variance (m - 1) / (m - 3).
    return (counts - 1) / m * np.sqrt(m / max(m - 3, 1))


def error_inflation(time: float, batch_sweeps: float) -> float:
    """Return by how much errors are larger than batches of so many sweeps show.

    ``time`` is the autocorrelation time in sweeps; one that is unknown inflates nothing.
    """
    return float(np.sqrt(np.fmax(1.0, time / batch_sweeps)))


@dataclass(eq=False)
class Records:
    """Records of S by two chains at one setting, for the values of k in ``columns``.

    Parameters
    ----------
    model : BoltzmannModel
    setting : Setting
    columns : sequence of int
        Of which k S_k was recorded, increasing; those of the setting are among them.
    key : int
        Of the random numbers by which batches are resampled.
    thin : int
        Sweeps from one record to the next.
    length : int
        Records of a batch.
    time : float
        The autocorrelation time in sweeps, as far as it is known beforehand.
    inflation : float
        By how much errors are larger than batches show that are shorter than that.
    window : Window, optional
        The labels to which the chains were held.

    Attributes
    ----------
    of_labels, of_clusters : ndarray of shape (N_CHAINS, n_records, n_columns)
        S of the labels, and given the clusters.
    monochrome : ndarray of shape (N_CHAINS, n_records or 0, 2)
        The probability that each component of the graph has one class throughout, and the number of
        clusters beyond that of components.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.log_z.records import Records, Setting
    >>> from bayesknn.model import BoltzmannModel
    >>> model = BoltzmannModel(NeighborGraph.from_neighbors([[1, 2, 0]]), 2)
    >>> records = Records(model, Setting.at(1.0, 1), [1], key=0)
    >>> records.of_labels = records.of_clusters = np.array([[[0.0], [2.0]], [[3.0], [1.0]]])
    >>> records.mean(1), records.variance(1)
    (1.5, 1.25)
    """

    model: BoltzmannModel
    setting: Setting
    columns: np.ndarray
    key: int
    thin: int = 1
    length: int = 1
    time: float = 1.0
    inflation: float = 1.0
    window: Window = field(default_factory=Window)

    def __post_init__(self) -> None:
        self.columns = np.asarray(self.columns, dtype=np.int64)
        shape = (N_CHAINS, 0, len(self.columns))
        self.of_labels, self.of_clusters = np.empty(shape), np.empty(shape)
        self.monochrome = np.empty((N_CHAINS, 0, 2))

    @property
    def k(self) -> int:
        """The last k of the setting."""
        return self.setting.ks[-1]

    @property
    def beta(self) -> float:
        """The beta of the setting."""
        return self.setting.beta

    @property
    def n_records(self) -> int:
        """Records of each chain."""
        return self.of_labels.shape[1]

    def series(self, k: int) -> np.ndarray:
        """Return S_k of the labels in every record, of shape (N_CHAINS, n_records)."""
        return self.of_labels[:, :, int(np.searchsorted(self.columns, k))]

    def cluster_series(self, k: int) -> np.ndarray:
        """Return S_k given the clusters in every record, of shape (N_CHAINS, n_records)."""
        return self.of_clusters[:, :, int(np.searchsorted(self.columns, k))]

    def mean(self, k: int) -> float:
        """Return the estimate of E[S_k]."""
        return float(self.cluster_series(k).mean())

    def variance(self, k: int) -> float:
        """Return the estimate of Var[S_k]."""
        return float(self.series(k).var())

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of S_k / k in every replicate."""
        x, of_clusters = self.series(self.k) / self.k, self.cluster_series(self.k) / self.k
        centre = x.mean()
        averages = self.resample(np.stack([of_clusters, (x - centre) ** 2], axis=-1))
        return averages[:, 0] + self.noise_floor(2), averages[:, 1]

    def noise_floor(self, salt: int) -> np.ndarray:
        """Return an error of S / k in every replicate, even where all records are equal.

        A chain that saw no point disagree does not show how rarely one would: the error is that
        of a single event. All k see about the same events.
        """
        return self.noise(salt) / (N_CHAINS * self.n_records) * self.model.weights.max()

    def noise(self, salt: int) -> np.ndarray:
        """Return a standard normal number for every replicate but the estimate."""
        noise = np.random.default_rng([self.key, salt]).normal(size=N_REPLICATES)
        noise[0] = 0.0
        return noise

    def distance(self, k: int) -> float:
        """Return the variance of D from the k of the chains to another at the same beta."""
        return float((self.beta * (self.series(k) / k - self.series(self.k) / self.k)).var())

    @property
    def n_effective(self) -> float:
        """The number of independent draws with the same variance of the mean."""
        return N_CHAINS * self.n_records * self.thin / max(self.time, self.thin)

    def autocorrelation_time(self) -> float:
        """Return the autocorrelation time in sweeps, NaN where the records do not show it.

        It is at least the time between two records.
        """
        series = self.series(self.k)
        if np.all(series == self._max_agreement):
            # Every edge agrees: each sweep draws the classes of all components anew.
            return float(self.thin)
        times = np.array([autocorrelation_time(chain) for chain in series])
        if self.window.rank:
            # Sweeps that leave the window are rejected, and a chain whose sweeps all are stands
            # still: its time is at least its length.
            moves = np.count_nonzero(np.diff(series), axis=1)
            times = np.fmax(times, self.n_records / (1 + moves))
        if np.isnan(times).all():
            return float("nan")
        return self.thin * max(1.0, float(np.nanmax(times)))

    @property
    def _max_agreement(self) -> float:
        """S_k where all labels are of the heaviest class."""
        return float(self.k * self.model.n_points * self.model.weights.max())

    @property
    def is_split(self) -> bool:
        """Whether the chain from one class and the one from random labels stay apart.

        Both beyond chance and by a share of the edges that only a transition explains.
        """
        series = self.cluster_series(self.k)
        first, second = self.batch(series).mean(axis=1)
        joined = join(self.batch(series)).reshape(N_CHAINS, -1)
        error = np.sqrt(np.sum(joined.var(axis=1, ddof=1) / joined.shape[1]))
        error *= self.error_inflation(self.autocorrelation_time())
        return bool(abs(first - second) > max(5 * error, 0.1 * self._max_agreement))

    def error_inflation(self, time: float) -> float:
        """Return by how much errors are larger than shown by batches as long as they are now."""
        n_joined = len(join(self.batch(self.series(self.k)))) / N_CHAINS
        return error_inflation(time, self.n_records * self.thin / n_joined)

    def batch(self, series: np.ndarray) -> np.ndarray:
        """Average series of records over the batches."""
        n_batches = series.shape[1] // self.length
        return series.reshape(N_CHAINS, n_batches, self.length, *series.shape[2:]).mean(axis=2)

    def resample(self, series: np.ndarray) -> np.ndarray:
        """Average series of records, of shape (N_CHAINS, n_records, ...), in every replicate.

        All calls between two additions resample alike.
        """
        replicates = resample(self.batch(series), self.key)
        replicates[1:] = replicates[0] + self.inflation * (replicates[1:] - replicates[0])
        return replicates
