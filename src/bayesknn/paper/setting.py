"""What every experiment of the paper is given: data, budget, seed, threads (Sections 1.2 and 4).

The seed of each sample is made from the run's seed and the sample's name, so that neither the
order in which items are asked for nor ``--only`` changes a result. What is finished is kept in the
folder of the run, stamped with the version, the budget and the seed, and the next run goes on from
there; what bears another stamp counts as not there.
"""

from __future__ import annotations

import io
import json
import shutil
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from bayesknn import datasets
from bayesknn._version import __version__
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, PseudoLikelihood
from bayesknn.model import UniformPrior
from bayesknn.predictive import log_score
from bayesknn.report.folder import write_file

BETA_MAX = 4.0
"""The paper's, settled on by trial and error."""
WORK = "paper-work"


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
}
BUDGETS = {
    name: SimpleNamespace(name=name, **{field: values[at] for field, values in _NUMBERS.items()})
    for at, name in enumerate(("tiny", "quick", "full"))
}


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
        """Size of the smallest class, the most that the paper allows."""
        return int(np.bincount(self.labels).min())

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
        """Return the proportion of test points whose most probable class is not theirs."""
        return float(np.mean(probabilities.argmax(axis=1) != self.test_labels))

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
    folder : Path, optional
        Where samples are kept; one that is removed at the end by default.
    """

    def __init__(
        self,
        budget: str = "tiny",
        seed: int = 0,
        n_jobs: int | None = None,
        folder: Path | None = None,
    ):
        self.budget = BUDGETS[budget]
        self.seed = seed
        self.n_jobs = n_jobs
        if folder is None:
            folder = Path(mkdtemp(prefix="bayesknn-paper-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.store = Store(folder, self.budget, seed)

    def seeds(self, name: str) -> np.random.SeedSequence:
        """Return the seeds that belong to a name."""
        return np.random.SeedSequence(self.seed, spawn_key=(zlib.crc32(name.encode()),))

    def keep(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, np.ndarray]:
        """Return the arrays kept under a name, made now if they are not there."""
        return self.store.keep(name, make)

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Call a function for each of the arguments, in threads; return what it returned."""
        calls = (delayed(function)(*each) for each in zip(*arguments, strict=True))
        return Parallel(n_jobs=self.n_jobs, require="sharedmem")(calls)

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


class Store:
    """The folder of a run.

    Parameters
    ----------
    folder : Path
    budget : namespace
        One of ``BUDGETS``.
    seed : int
    """

    def __init__(self, folder: Path, budget: SimpleNamespace, seed: int):
        self.folder = folder
        self.stamp: dict[str, Any] = {
            "version": __version__,
            "budget": budget.name,
            # What the name stands for may change between versions under development.
            "numbers": f"{zlib.crc32(repr(budget).encode()):08x}",
            "seed": seed,
        }
        self._arrays: dict[str, dict[str, np.ndarray]] = {}

    def keep(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, np.ndarray]:
        """Return the arrays kept under a name, made now if they are not there."""
        if name not in self._arrays:
            found = self._load_arrays(name)
            if found is None:
                found = {key: np.asarray(value) for key, value in make().items()}
                self._save_arrays(name, found)
            self._arrays[name] = found
        return self._arrays[name]

    def load_result(self, slug: str) -> dict[str, Any] | None:
        """Return what was kept of a finished item, or None."""
        try:
            kept = json.loads((self.folder / WORK / f"{slug}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(kept, dict) or kept.get("stamp") != self.stamp:
            return None
        return kept if all((self.folder / path).is_file() for path in kept["figures"]) else None

    def save_result(self, slug: str, kept: dict[str, Any]) -> None:
        """Keep a finished item."""
        text = json.dumps({"stamp": self.stamp, **kept}, indent=1)
        self.write(f"{WORK}/{slug}.json", text.encode())

    def forget(self, slugs: list[str]) -> None:
        """Delete what was kept of some items, and all samples, which they may share."""
        work = self.folder / WORK
        for path in [work / f"{slug}.json" for slug in slugs] + list(work.glob("*.npz")):
            path.unlink(missing_ok=True)

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the folder, whole or not at all."""
        with write_file(self.folder / name, force=True) as path:
            path.write_bytes(content)

    def _load_arrays(self, name: str) -> dict[str, np.ndarray] | None:
        try:
            with np.load(self.folder / WORK / f"{name}.npz", allow_pickle=False) as archive:
                arrays = {key: archive[key] for key in archive.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None
        stamp = str(arrays.pop("stamp", ""))
        return arrays if stamp == json.dumps(self.stamp) else None

    def _save_arrays(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, stamp=json.dumps(self.stamp), **arrays)
        self.write(f"{WORK}/{name}.npz", content.getvalue())
