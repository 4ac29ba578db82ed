"""Data, budget, seed and threads of the paper's experiments (Sections 1.2 and 4).

Every sample has its own seed, derived from the seed of the run and the name of the sample. So
results depend neither on the order in which items are computed nor on ``--only``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from bayesknn import datasets
from bayesknn.classical import ClassicalKNeighborsClassifier
from bayesknn.classifier import BayesianKNeighborsClassifier
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, PseudoLikelihood
from bayesknn.model import BoltzmannModel, UniformPrior
from bayesknn.predictive import log_score

BETA_MAX = 4.0
"""Largest beta of the paper's prior, which the authors chose by trial and error."""

# Numbers that determine the running time of the items, for the budgets "tiny", "quick" and "full".
# "tiny" only tests that everything runs, "quick" takes minutes on two cores, "full" has the paper's
# numbers. A pair is the number of burn-in iterations and of iterations kept.
_NUMBERS: dict[str, tuple[Any, Any, Any]] = {
    # Number of chains. The paper ran one; the sd between ours is the standard error of its values.
    "n_chains": (2, 4, 4),
    # Length of the chains with pseudo-likelihood or path sampling; with auxiliary variables; at
    # fixed k.
    "long_chain": ((200, 200), (4000, 10_000), (40_000, 10_000)),
    "perfect_chain": ((50, 100), (1000, 4000), (10_000, 10_000)),
    "fixed_k_chain": ((50, 100), (500, 2000), (10_000, 10_000)),
    # Iterations on the Pima data before the plug-in is replaced by their average; length of the
    # chains after that.
    "pima_first_stage": (50, 2000, 10_000),
    "pima_chain": ((50, 100), (2000, 4000), (30_000, 20_000)),
    # Number of beta values in the path-sampling grid; Gibbs sweeps at each grid point.
    "n_path_betas": (9, 50, 50),
    "path_sweeps": ((20, 60), (500, 1000), (500, 10_000)),
    # Swendsen-Wang sweeps for a converged expectation that others are compared with.
    "reference_sweeps": (60, 1000, 4000),
    # Tolerance for the Monte Carlo error of the exact posterior, see grid_posterior.
    "tolerance": (0.3, 0.05, 0.02),
    # Number of random partitions of the glass data.
    "n_partitions": (3, 100, 200),
    # Number of these partitions on which the paper's chain is run; length of the chain, which a
    # first stage as long as its burn-in precedes.
    "n_glass_chains": (2, 10, 50),
    "glass_chain": ((30, 60), (500, 1500), (10_000, 10_000)),
    # Number of moves that are timed.
    "n_timed": (20, 1000, 50_000),
    # Number of grid points along each axis of a map.
    "resolution": (20, 120, 200),
    # Number of simulated data sets at each (beta, k) for the errors of estimators of beta.
    "n_replicates": (4, 40, 200),
    # Number of perfect draws at each (beta, k).
    "n_perfect": (20, 400, 2000),
    # Number of stratified samples of Ripley's training points.
    "n_surveys": (2, 10, 50),
    # Number of random splits of Ripley's training points into labelled and unlabelled points;
    # sweeps at each beta of a path with missing classes; rows known before sequential prediction.
    "n_splits": (2, 4, 20),
    "missing_sweeps": (10, 100, 1000),
    "n_sequence_start": (235, 150, 25),
    # Number of noise columns added to Ripley's two columns; evidence used for the sets of columns.
    "n_noise_columns": (1, 2, 4),
    "evidence_of_sets": ("pseudo-evidence", "evidence", "evidence"),
    # Number of repetitions of a timing. The shortest time counts.
    "n_timings": (1, 5, 20),
}
BUDGETS = {
    name: SimpleNamespace(**{field: values[at] for field, values in _NUMBERS.items()})
    for at, name in enumerate(("tiny", "quick", "full"))
}


def as_published(y: Any, **params: Any) -> BayesianKNeighborsClassifier:
    """Return an unfitted Bayesian classifier with the paper's settings for given labels.

    The largest k is the size of the smallest class, and a ``class_prior`` enters as the weights a_g
    of the model (Sections 2.2 and 3 of the paper). Pass ``of="parameters"`` to
    ``predict_interval`` and ``predict_zone`` to get the paper's intervals and zones.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of the training points.
    **params
        Further parameters of :class:`bayesknn.BayesianKNeighborsClassifier`, for instance
        ``beta_max=4``, which the paper chose for Ripley's and the Pima data by trial and error.

    Returns
    -------
    BayesianKNeighborsClassifier
        Classifier that has not been fitted.

    Examples
    --------
    >>> from bayesknn.datasets import load_pima
    >>> from bayesknn.paper import as_published
    >>> pima = load_pima()
    >>> clf = as_published(pima.y_train, beta_max=4, random_state=0)
    >>> clf.max_neighbors
    68
    >>> clf.fit(pima.X_train, pima.y_train).predict_zone(pima.X_test[:3], of="parameters").tolist()
    ['Yes', 'No', 'No']
    """
    settings = {"max_neighbors": count_smallest(y), "class_prior_as": "weights", **params}
    return BayesianKNeighborsClassifier(**settings)


def count_smallest(y: Any) -> int:
    """Return the number of points in the smallest class, which is the paper's largest k."""
    return int(np.unique(np.asarray(y), return_counts=True)[1].min())


class Study:
    """A data set with the paper's settings: unscaled covariates and Euclidean distances.

    Parameters
    ----------
    data : Bunch
        Result of a function of :mod:`bayesknn.datasets`.

    Attributes
    ----------
    X_train, X_test : ndarray
    labels, test_labels : ndarray of int
        Class indices of the training and the test points.
    classes : list of str
        Names of the classes.
    k_max : int
        Largest k of the paper's prior, the size of the smallest class.
    prior : UniformPrior
        Prior of the paper, uniform on 1..k_max and [0, 4].

    Examples
    --------
    >>> from bayesknn.datasets import load_pima
    >>> from bayesknn.paper.setting import Study
    >>> Study(load_pima()).classes
    ['No', 'Yes']
    """

    def __init__(self, data: Any):
        classes, self.labels = np.unique(data.y_train, return_inverse=True)
        self.classes = [str(name) for name in classes]
        self.test_labels = np.searchsorted(classes, data.y_test)
        self.X_train = np.asarray(data.X_train, dtype=np.float64)
        self.X_test = np.asarray(data.X_test, dtype=np.float64)
        self.k_max = count_smallest(self.labels)
        self.prior = UniformPrior(self.k_max, BETA_MAX)

    @cached_property
    def graph(self) -> NeighborGraph:
        """Neighbours of the training points up to the largest k."""
        return NeighborGraph.from_points(self.X_train, self.k_max)

    @cached_property
    def model(self) -> BoltzmannModel:
        """Boltzmann model of the labels on this graph."""
        return BoltzmannModel(self.graph, len(self.classes))

    @cached_property
    def coherent(self) -> CoherentLikelihood:
        """Likelihood of the paper's joint model eq:knn."""
        return CoherentLikelihood(self.model, self.labels)

    @cached_property
    def pseudo(self) -> PseudoLikelihood:
        """Pseudo-likelihood eq:psudoL."""
        return PseudoLikelihood(self.model, self.labels)

    def error_rate(self, probabilities: np.ndarray) -> float:
        """Return the proportion of test points whose most probable class is wrong."""
        return float(np.mean(probabilities.argmax(axis=1) != self.test_labels))

    def classical_error(self, rule: ClassicalKNeighborsClassifier) -> float:
        """Fit a classical rule and return its test error rate."""
        predicted = rule.fit(self.X_train, self.labels).predict(self.X_test)
        return float(np.mean(predicted != self.test_labels))

    def log_loss(self, probabilities: np.ndarray) -> float:
        """Return the mean over the test points of minus the log probability of their class."""
        return -log_score(probabilities, self.test_labels)


class Setting:
    """Data, budget, seed and threads; every experiment gets them as its only argument.

    Parameters
    ----------
    budget : {"tiny", "quick", "full"}
    seed : int, default=0
    n_jobs : int, optional
        Number of threads. Only running times depend on it.
    """

    def __init__(self, budget: str = "tiny", seed: int = 0, n_jobs: int | None = None):
        self.budget = BUDGETS[budget]
        self.seed = seed
        self.n_jobs = n_jobs

    def seeds(self, name: str) -> np.random.SeedSequence:
        """Return the SeedSequence of the sample with this name."""
        return np.random.SeedSequence(self.seed, spawn_key=(zlib.crc32(name.encode()),))

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Return the results of a function called in threads, as the built-in ``map`` calls it."""
        calls = (delayed(function)(*each) for each in zip(*arguments, strict=True))
        return Parallel(n_jobs=self.n_jobs, require="sharedmem")(calls)

    @cached_property
    def ripley(self) -> Study:
        """Ripley's synthetic data with the paper's settings."""
        return Study(datasets.load_ripley())

    @cached_property
    def pima(self) -> Study:
        """Pima diabetes data with the paper's settings."""
        return Study(datasets.load_pima())
