"""Two Swendsen-Wang chains at one setting of the model, and what they record (Section 3.3).

A model and a setting (beta, k) go in, records of S come out. ``d log Z / d beta`` is ``E[S_k] /
k``, and log Z at any setting follows from S at others (:mod:`bayesknn.log_z.mbar`). Every record
holds S for a few values of k: of the labels, and given the clusters, which has the same mean and
less noise. One chain starts from one class for all and one from random labels, so that a
first-order transition, where each would stay on its side, shows as a disagreement.

Monte Carlo errors come from resampling batches of records (the batch bootstrap). Every estimate of
log Z is computed from averages over records. A replicate computes it from resampled batches of the
same records; the spread over 64 replicates is its error, through whatever it goes: integrals,
reweighting, the posterior itself. Row 0 of an array of replicates is the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bayesknn._utils.jit import hold_interrupts, kernel
from bayesknn._utils.random import START_SWEEP, key_of_sweep
from bayesknn.labels.mixing import autocorrelation_time
from bayesknn.labels.swendsen_wang import (
    colour_points,
    estimate_agreement,
    new_workspace,
    sweep_layers,
)
from bayesknn.model import BoltzmannModel

# One from labels of one class and one from random labels: where they stay apart is a transition.
N_CHAINS = 2
# Sweeps before anything is recorded, at least: more are lost, fewer leave traces of the start.
WARMUP = 40
# A record reads k edges a point and a sweep about 16: sweeps between records share the time.
RANKS_PER_SWEEP = 16
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


class ModelAt(NamedTuple):
    """What sweeps leave as it is, for compiled code: the model at a setting."""

    neighbors: np.ndarray
    ks: np.ndarray
    rates: np.ndarray
    n_classes: int


class Sweeps(NamedTuple):
    """The number of the first sweep, those before the first record, those from one to the next."""

    first: np.uint64
    n_warmup: int
    thin: int


class Records(NamedTuple):
    """What is noted, and the arrays for it; see :meth:`ChainPair.run`."""

    columns: np.ndarray
    of_labels: np.ndarray
    of_clusters: np.ndarray
    components: np.ndarray
    monochrome: np.ndarray


def join(batches: np.ndarray) -> np.ndarray:
    """Average neighbouring batches of each chain, so that a moderate number of long ones is left.

    From shape (n_chains, n_batches, ...) to (n_joined, ...), of all chains. A remainder at the
    beginning is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.chains import join
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
    >>> from bayesknn.log_z.chains import resample
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
    >>> from bayesknn.log_z.chains import standard_error
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


class ChainPair:
    """Two chains at one setting that record S for the values of k in ``columns``.

    Parameters
    ----------
    model : BoltzmannModel
    setting : Setting
    columns : sequence of int
        Which S_k to record, increasing; those of the setting are among them.
    seeds : numpy.random.SeedSequence
        The pair's own; results depend on nothing else.
    initial : ndarray of shape (n,) or (N_CHAINS, n), optional
        Start the chains here instead of from one class and from random labels.
    n_warmup : int
        Sweeps made before anything is recorded.
    thin : int, optional
        Sweeps from one record to the next; by default so many that they take as long as a record.
    length : int
        Records of a batch.
    time : float
        The autocorrelation time in sweeps, as far as it is known beforehand.
    inflation : float
        By how much errors are larger than batches show that are shorter than that.
    window : Window, optional
        Sweeps that leave it are undone, which leaves the restricted distribution as it is.
    components : ndarray of shape (n,), optional
        Which component of the graph each point is in: then the probability that each of them has
        one class throughout is recorded too (:mod:`bayesknn.log_z.path`).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.log_z.chains import ChainPair, Setting
    >>> from bayesknn.model import BoltzmannModel
    >>> ring = NeighborGraph.from_neighbors([np.roll(np.arange(100), -1)])
    >>> model = BoltzmannModel(ring, 2)
    >>> pair = ChainPair(model, Setting.at(1.0, 1), [1], np.random.SeedSequence(0))
    >>> pair.advance(500)
    >>> bool(abs(pair.mean(1) - 100 * np.e / (np.e + 1)) < 1)
    True
    """

    def __init__(
        self,
        model: BoltzmannModel,
        setting: Setting,
        columns: Sequence[int] | np.ndarray,
        seeds: np.random.SeedSequence,
        *,
        initial: np.ndarray | None = None,
        n_warmup: int = WARMUP,
        thin: int | None = None,
        length: int = 1,
        time: float = 1.0,
        inflation: float = 1.0,
        window: Window | None = None,
        components: np.ndarray | None = None,
    ):
        self.model, self.setting = model, setting
        self.columns = np.asarray(columns, dtype=np.int64)
        self.thin = thin or 1 + int(self.columns[-1]) // RANKS_PER_SWEEP
        self.length, self.time, self.inflation = length, time, inflation
        self.window = window or Window()
        self.components = np.empty(0, np.int32) if components is None else components
        self.keys = seeds.generate_state(N_CHAINS + 1, np.uint64)
        self.labels = self._start(initial)
        self.n_warmup = n_warmup + self.thin
        # Those that each of the two has made, with those before the first record.
        self.sweeps_per_chain = 0
        shape = (N_CHAINS, 0, len(self.columns))
        self.of_labels, self.of_clusters = np.empty(shape), np.empty(shape)
        self.monochrome = np.empty((N_CHAINS, 0, 2))

    def _start(self, initial: np.ndarray | None) -> np.ndarray:
        model = self.model
        labels = np.zeros((N_CHAINS, model.n_points), model.label_dtype)
        if initial is not None:
            labels[:] = initial
            return labels
        labels[:] = np.argmax(model.weights)
        # In a window both start on its side.
        is_high = self.window.rank > 0 and self.window.high == np.inf
        for chain in range(2 if is_high else int(self.window.rank == 0), N_CHAINS):
            start = np.uint64(key_of_sweep(self.keys[chain], START_SWEEP))
            colour_points(start, model.n_classes, labels[chain])
        return labels

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

    @property
    def _n_before(self) -> int:
        """Sweeps to make before the next record but those from one record to the next."""
        return 0 if self.n_records else self.n_warmup

    def advance(self, n_records: int) -> None:
        """Add so many records to each chain, or a few more so that they fill batches."""
        self.add([self.run(chain, n_records) for chain in range(N_CHAINS)])

    def run(self, chain: int, n_records: int) -> tuple[np.ndarray, np.ndarray]:
        """Make the sweeps of one chain; chains may run at the same time, before :meth:`add`.

        Returns
        -------
        records : ndarray of shape (2, n_records, n_columns)
            S of the labels, and given the clusters.
        monochrome : ndarray of shape (n_records, 2)
            Of the components: see :func:`_note_monochrome`.
        """
        model, setting = self.model, self.setting
        n_records = -(-n_records // self.length) * self.length
        weight, unit = model.unequal_weight, model.common_weight
        monochrome = np.empty((n_records if self.components.size else 0, 2))
        noted = np.empty((2, n_records, len(self.columns)))
        records = Records(self.columns, noted[0], noted[1], self.components, monochrome)
        labels = self.labels[chain]
        # Room for the candidates of a sweep, about rate * n of them and n * k at most; a sweep with
        # more takes them in parts.
        rate = setting.beta * unit * (1.0 if weight is None else weight.max())
        capacity = int(min(1.1 * rate, sum(setting.ks)) * labels.size) + 1024
        workspace = new_workspace(labels, model.n_classes, weight is not None, capacity)
        ks, rates = np.array(setting.ks), unit * np.array(setting.rates)
        at = ModelAt(model.graph.neighbors, ks, rates, model.n_classes)
        window = Window(self.window.rank, self.window.low / unit, self.window.high / unit)
        sweeps = Sweeps(np.uint64(self.sweeps_per_chain), self._n_before, self.thin)
        with hold_interrupts():
            _advance(at, weight, self.keys[chain], sweeps, window, labels, workspace, records)
        return unit * noted, monochrome

    def add(self, chains: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Append what :meth:`run` returned for each chain to the records."""
        of_labels, of_clusters = np.stack([records for records, _ in chains], axis=1)
        self.sweeps_per_chain += self._n_before + of_labels.shape[1] * self.thin
        self.of_labels = np.concatenate([self.of_labels, of_labels], axis=1)
        self.of_clusters = np.concatenate([self.of_clusters, of_clusters], axis=1)
        monochrome = np.stack([monochrome for _, monochrome in chains])
        self.monochrome = np.concatenate([self.monochrome, monochrome], axis=1)

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
        noise = np.random.default_rng([int(self.keys[-1]), salt]).normal(size=N_REPLICATES)
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
        replicates = resample(self.batch(series), int(self.keys[-1]))
        replicates[1:] = replicates[0] + self.inflation * (replicates[1:] - replicates[0])
        return replicates

    def log_ratios(self) -> np.ndarray:
        """Return log Z at each column's k less that at the k of the chains, at the same beta.

        Of shape (n_replicates, n_columns), by importance sampling: ``log E[exp(D)]`` with
        ``D = beta (S_k' / k' - S_k / k)``, shifted to its mean given the clusters.
        """
        at = int(np.searchsorted(self.columns, self.k))
        beside = [
            s / self.columns - s[..., [at]] / self.k for s in (self.of_labels, self.of_clusters)
        ]
        d, shift = self.beta * beside[0], self.beta * (beside[1] - beside[0])
        top = d.max(axis=(0, 1))
        weights = self.resample(np.exp(d - top))
        # To first order around the estimate: an inflated replicate may be negative.
        return top + np.log(weights[0]) + weights / weights[0] - 1 + self.resample(shift)


@kernel
def _advance(model_at, class_weight, key, sweeps, window, labels, workspace, records):
    """Make sweeps and note what they leave; ``class_weight`` is None or not when compiled."""
    neighbors, ks, rates, n_classes = model_at
    columns = records.columns
    n_ranks = columns[-1]
    agreement, cluster_agreement = np.empty(n_ranks), np.empty(n_ranks)
    of_window, of_window_clusters = np.empty(1), np.empty(1)
    before = labels.copy()
    sweep, n_sweeps = sweeps.first, sweeps.n_warmup
    # The warm-up, then one more round of sweeps for each record.
    for t in range(-1, records.of_labels.shape[0]):
        for _ in range(n_sweeps):
            sweep_layers(
                neighbors, ks, rates, n_classes, class_weight, key, sweep, labels, workspace
            )
            sweep += np.uint64(1)
            if window.rank > 0:
                estimate_agreement(
                    neighbors, window.rank, n_classes, class_weight, labels, workspace,
                    of_window, of_window_clusters,
                )  # fmt: skip
                is_inside = window.low <= of_window[0] < window.high
                # Not as slices, whose checks take long to compile.
                for i in range(labels.size):
                    if is_inside:
                        before[i] = labels[i]
                    else:
                        labels[i] = before[i]
        n_sweeps = sweeps.thin
        if t < 0:
            continue
        estimate_agreement(
            neighbors, n_ranks, n_classes, class_weight, labels, workspace,
            agreement, cluster_agreement,
        )  # fmt: skip
        # Given the clusters and the window colours are not independent.
        source = agreement if window.rank > 0 else cluster_agreement
        for c in range(columns.size):
            records.of_labels[t, c] = agreement[columns[c] - 1]
            records.of_clusters[t, c] = source[columns[c] - 1]
        if records.components.size > 0:
            _note_monochrome(
                n_classes,
                class_weight,
                records.components,
                labels,
                workspace,
                records.monochrome[t],
            )


@kernel
def _note_monochrome(n_classes, class_weight, components, labels, workspace, noted):
    """Note the probability that every component has one class, given the clusters.

    And the number of clusters beyond that of components.
    """
    n_components = 0
    for i in range(components.size):
        n_components = max(n_components, components[i] + 1)
    log_chance = np.zeros((n_components, n_classes))
    n_roots = 0
    for i in range(labels.size):
        if workspace.roots[i] == i:
            n_roots += 1
            if class_weight is not None:
                for g in range(n_classes):
                    log_chance[components[i], g] += np.log(workspace.colour_law[i, g])
    noted[1] = n_roots - n_components
    noted[0] = np.float64(n_classes) ** (n_components - n_roots)
    if class_weight is not None:
        noted[0] = 1.0
        for c in range(n_components):
            noted[0] *= np.exp(log_chance[c]).sum()
