"""Two Swendsen-Wang chains at one setting of the model, which add to its records (Section 3.3).

A model and a setting (beta, k) go in, records of S come out (:mod:`bayesknn.log_z.records`). One
chain starts from one class for all and one from random labels, so that a first-order transition,
where each would stay on its side, shows as a disagreement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import hold_interrupts, kernel
from bayesknn._utils.random import START_SWEEP, key_of_sweep
from bayesknn.labels.swendsen_wang import (
    colour_points,
    estimate_agreement,
    new_workspace,
    sweep_layers,
)
from bayesknn.log_z.records import N_CHAINS, Records, Setting, Window
from bayesknn.model import BoltzmannModel

# Sweeps before anything is recorded, at least: more are lost, fewer leave traces of the start.
WARMUP = 40
# A record reads k edges a point and a sweep about 16: sweeps between records share the time.
RANKS_PER_SWEEP = 16


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


class Noted(NamedTuple):
    """What is noted, and the arrays for it; see :meth:`ChainPair.run`."""

    columns: np.ndarray
    of_labels: np.ndarray
    of_clusters: np.ndarray
    components: np.ndarray
    monochrome: np.ndarray


class ChainPair(Records):
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
    components : ndarray of shape (n,), optional
        Which component of the graph each point is in: then the probability that each of them has
        one class throughout is recorded too (:mod:`bayesknn.log_z.estimate`).
    **options
        As of :class:`~bayesknn.log_z.records.Records`. ``thin`` is by default so large that sweeps
        take as long as a record. Sweeps that leave ``window`` are undone, which leaves the
        restricted distribution as it is.

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
        components: np.ndarray | None = None,
        **options: Any,
    ):
        self.keys = seeds.generate_state(N_CHAINS + 1, np.uint64)
        # By default so many sweeps that they take as long as a record.
        options.setdefault("thin", 1 + int(columns[-1]) // RANKS_PER_SWEEP)
        super().__init__(model, setting, np.asarray(columns), int(self.keys[-1]), **options)
        self.components = np.empty(0, np.int32) if components is None else components
        self.labels = self._start(initial)
        self.n_warmup = n_warmup + self.thin
        # Those that each of the two has made, with those before the first record.
        self.sweeps_per_chain = 0

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
        records = Noted(self.columns, noted[0], noted[1], self.components, monochrome)
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
