"""What every experiment of the paper is given: data, budget, seed, threads (Sections 1.2 and 4).

The seed of each sample is made from the run's seed and the sample's name, so that neither the
order in which items are asked for nor ``--only`` changes a result.
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
"""The paper's, settled on by trial and error."""

# The numbers that decide how long each item takes: "tiny" shows that everything runs, "quick" takes
# minutes on two cores, and "full" has the paper's own. Pairs are burn-in and what is kept.
_NUMBERS: dict[str, tuple[Any, Any, Any]] = {
    # Chains like each of the paper's, which ran one; their spread is the error of its values.
    "n_chains": (2, 4, 4),
    # On the pseudo-likelihood and the path table; of auxiliary variables; at fixed k.
    "long_chain": ((200, 200), (4000, 10_000), (40_000, 10_000)),
    "perfect_chain": ((50, 100), (1000, 4000), (10_000, 10_000)),
    "fixed_k_chain": ((50, 100), (500, 2000), (10_000, 10_000)),
    # Iterations after which the plug-in is replaced, and the chains on Pima that follow.
    "pima_first_stage": (50, 2000, 10_000),
    "pima_chain": ((50, 100), (2000, 4000), (30_000, 20_000)),
    # Values of beta of the path-sampling grid, and Gibbs sweeps at each of its points.
    "n_path_betas": (9, 50, 50),
    "path_sweeps": ((20, 60), (500, 1000), (500, 10_000)),
    # Swendsen-Wang sweeps wherever a true expectation is needed.
    "reference_sweeps": (60, 1000, 4000),
    # Monte Carlo error asked of the exact posterior.
    "tolerance": (0.3, 0.05, 0.02),
    # Random partitions of the glass data.
    "n_partitions": (3, 100, 200),
    # Those that the paper's chain is run on, and its length after as many iterations again.
    "n_glass_chains": (2, 10, 50),
    "glass_chain": ((30, 60), (500, 1500), (10_000, 10_000)),
    # Moves that are timed.
    "n_timed": (20, 1000, 50_000),
    # Points a side of the maps.
    "resolution": (20, 120, 200),
    # Data sets drawn for each beta where estimators are studied.
    "n_replicates": (4, 40, 200),
    # Perfect draws of the four-class experiment at each beta.
    "n_perfect": (20, 400, 2000),
    # Stratified samples of Ripley's training points.
    "n_surveys": (2, 10, 50),
    # Partitions of Ripley's training points into labelled ones and others, sweeps at each beta of a
    # path with missing classes, and rows known before the first prediction in a sequence.
    "n_splits": (2, 4, 20),
    "missing_sweeps": (10, 100, 1000),
    "n_sequence_start": (235, 150, 25),
    # Columns of noise beside Ripley's two, and the evidence that sets with them are scored by.
    "n_noise_columns": (1, 2, 4),
    "evidence_of_sets": ("pseudo-evidence", "evidence", "evidence"),
    # Repetitions of which the fastest is taken as the time of 500 Gibbs sweeps.
    "n_timings": (1, 5, 20),
}
BUDGETS = {
    name: SimpleNamespace(**{field: values[at] for field, values in _NUMBERS.items()})
    for at, name in enumerate(("tiny", "quick", "full"))
}


def as_published(y: Any, **params: Any) -> BayesianKNeighborsClassifier:
    """Return the Bayesian classifier, not fitted, with the paper's settings for given labels.

    The largest k is the size of the smallest class, and a ``class_prior`` acts as the weights a_g
    inside the model (the paper, Sections 2.2 and 3). The paper's intervals and zones are those of
    ``predict_interval`` and ``predict_zone`` with ``of="parameters"``.

    Parameters
    ----------
    y : array-like of shape (n,)
        The labels that the classifier will be fitted to.
    **params
        Further parameters of :class:`bayesknn.BayesianKNeighborsClassifier`, for instance
        ``beta_max=4``, which the paper chose for Ripley's and the Pima data by trial and error.

    Returns
    -------
    BayesianKNeighborsClassifier

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
    """Return the size of the smallest class, the paper's largest k."""
    return int(np.unique(np.asarray(y), return_counts=True)[1].min())


class Study:
    """A data set as the paper uses it: raw covariates, Euclidean distances.

    Parameters
    ----------
    data : Bunch
        As the functions of :mod:`bayesknn.datasets` return it.

    Attributes
    ----------
    X_train, X_test : ndarray
    labels, test_labels : ndarray of int
        Numbers of the classes.
    classes : list of str
    k_max : int
        Size of the smallest class, the largest k that the paper allows.
    prior : UniformPrior
        The paper's.

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
        """The training points' neighbours up to the largest k."""
        return NeighborGraph.from_points(self.X_train, self.k_max)

    @cached_property
    def model(self) -> BoltzmannModel:
        """The model of the labels on this graph."""
        return BoltzmannModel(self.graph, len(self.classes))

    @cached_property
    def coherent(self) -> CoherentLikelihood:
        """The coherent model's likelihood, without its constant."""
        return CoherentLikelihood(self.model, self.labels)

    @cached_property
    def pseudo(self) -> PseudoLikelihood:
        """The pseudo-likelihood."""
        return PseudoLikelihood(self.model, self.labels)

    def error_rate(self, probabilities: np.ndarray) -> float:
        """Return the proportion of test points whose most probable class is not theirs."""
        return float(np.mean(probabilities.argmax(axis=1) != self.test_labels))

    def classical_error(self, rule: ClassicalKNeighborsClassifier) -> float:
        """Fit a rule and return the proportion of test points that it gets wrong."""
        predicted = rule.fit(self.X_train, self.labels).predict(self.X_test)
        return float(np.mean(predicted != self.test_labels))

    def log_loss(self, probabilities: np.ndarray) -> float:
        """Return the mean of minus the log probability of the test points' classes."""
        return -log_score(probabilities, self.test_labels)


class Setting:
    """What the function of an item is given.

    Parameters
    ----------
    budget : {"tiny", "quick", "full"}
    seed : int, default=0
    n_jobs : int, optional
        Threads; no result depends on them but the running times.
    """

    def __init__(self, budget: str = "tiny", seed: int = 0, n_jobs: int | None = None):
        self.budget = BUDGETS[budget]
        self.seed = seed
        self.n_jobs = n_jobs

    def seeds(self, name: str) -> np.random.SeedSequence:
        """Return the seeds that belong to a name."""
        return np.random.SeedSequence(self.seed, spawn_key=(zlib.crc32(name.encode()),))

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Call a function for each of the arguments, in threads; return what it returned."""
        calls = (delayed(function)(*each) for each in zip(*arguments, strict=True))
        return Parallel(n_jobs=self.n_jobs, require="sharedmem")(calls)

    @cached_property
    def ripley(self) -> Study:
        """Ripley's synthetic data."""
        return Study(datasets.load_ripley())

    @cached_property
    def pima(self) -> Study:
        """The Pima diabetes data."""
        return Study(datasets.load_pima())
