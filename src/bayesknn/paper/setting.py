"""What every experiment of the paper is given: data, budget, seed, threads (Sections 1.2 and 4).

The seed of each sample is made from the run's seed and the sample's name, so that neither the
order in which items are asked for nor ``--only`` changes a result.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bayesknn import datasets
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, PseudoLikelihood
from bayesknn.model import UniformPrior
from bayesknn.model.prior import default_max_neighbors
from bayesknn.paper.budget import BUDGETS, Budget
from bayesknn.paper.store import Store

BETA_MAX = 4.0
"""The paper's, settled on by trial and error."""


@dataclass(frozen=True)
class Study:
    """A data set as the paper uses it: raw covariates, Euclidean distances.

    Attributes
    ----------
    X_train, X_test : ndarray
    labels, test_labels : ndarray of int
        Numbers of the classes.
    classes : list of str
    """

    X_train: np.ndarray
    labels: np.ndarray
    X_test: np.ndarray
    test_labels: np.ndarray
    classes: list[str]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def k_max(self) -> int:
        """Size of the smallest class."""
        return default_max_neighbors(self.labels, self.n_classes)

    @cached_property
    def graph(self) -> NeighborGraph:
        """The training points' neighbours up to the largest k."""
        return NeighborGraph.from_points(self.X_train, self.k_max)

    @cached_property
    def coherent(self) -> CoherentLikelihood:
        """The coherent model's likelihood, without its constant."""
        return CoherentLikelihood(self.graph, self.labels, self.n_classes)

    @cached_property
    def pseudo(self) -> PseudoLikelihood:
        """The pseudo-likelihood."""
        return PseudoLikelihood(self.graph, self.labels, self.n_classes)

    @cached_property
    def prior(self) -> UniformPrior:
        """The paper's prior."""
        return UniformPrior(self.k_max, BETA_MAX)

    def error_rate(self, probabilities: np.ndarray) -> float:
        """Share of the test points whose most probable class is not theirs."""
        return float(np.mean(probabilities.argmax(axis=1) != self.test_labels))

    def log_loss(self, probabilities: np.ndarray) -> float:
        """Mean of minus the log probability of the test points' classes."""
        own = probabilities[np.arange(len(self.test_labels)), self.test_labels]
        return float(-np.mean(np.log(own)))


class Setting:
    """What a function of the registry is given.

    Parameters
    ----------
    budget : str or Budget, default="tiny"
    seed : int, default=0
    n_jobs : int, optional
        Threads; no result depends on them but the running times.
    folder : Path, optional
        Where samples are kept; in memory by default.

    Examples
    --------
    >>> from bayesknn.paper.setting import Setting
    >>> setting = Setting("tiny")
    >>> setting.ripley.k_max, setting.pima.k_max
    (125, 68)
    """

    def __init__(
        self,
        budget: str | Budget = "tiny",
        seed: int = 0,
        n_jobs: int | None = None,
        folder: Path | None = None,
    ):
        self.budget = BUDGETS[budget] if isinstance(budget, str) else budget
        self.seed = seed
        self.n_jobs = n_jobs
        self.store = Store(folder, self.budget, seed)

    def seeds(self, name: str) -> np.random.SeedSequence:
        """Return the seeds that belong to a name."""
        return np.random.SeedSequence(self.seed, spawn_key=(zlib.crc32(name.encode()),))

    def keep(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, np.ndarray]:
        """Return the arrays kept under a name, made now if they are not there."""
        return self.store.keep(name, make)

    @cached_property
    def ripley(self) -> Study:
        """Ripley's synthetic data."""
        return make_study(datasets.load_ripley())

    @cached_property
    def pima(self) -> Study:
        """The Pima diabetes data."""
        return make_study(datasets.load_pima())


def make_study(data: Any) -> Study:
    """Give numbers to the classes of a data set.

    Examples
    --------
    >>> from bayesknn.datasets import load_pima
    >>> from bayesknn.paper.setting import make_study
    >>> make_study(load_pima()).classes
    ['No', 'Yes']
    """
    classes, labels = np.unique(data.y_train, return_inverse=True)
    return Study(
        np.asarray(data.X_train, dtype=np.float64),
        labels,
        np.asarray(data.X_test, dtype=np.float64),
        np.searchsorted(classes, data.y_test),
        [str(name) for name in classes],
    )
