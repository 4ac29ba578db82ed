"""Path sampling: the table of log Z(beta, k) for all k and beta (Section 3.3, sec:path).

A graph and the number of classes go in, a :class:`~bayesknn.log_z.table.PathTable` comes out. The
paper estimates E[S] by Gibbs sampling on a 50 x 12 grid and integrates by the trapezium rule
(:mod:`bayesknn.paper.samples`). Here chains are Swendsen-Wang, which do not get stuck at large
beta, both ends of the path are used (:mod:`bayesknn.log_z.along_beta`), small k are computed
exactly, and there are paths at some k, near enough to each other that the k between follow from
both neighbours by importance sampling. They run on until the error is small enough where it
matters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from bayesknn._utils.checks import check_positive
from bayesknn._utils.progress import progress
from bayesknn._utils.random import seeds_for
from bayesknn.exceptions import MixingWarning
from bayesknn.graph import NeighborGraph
from bayesknn.log_z.along_beta import Path
from bayesknn.log_z.estimate import Curve
from bayesknn.log_z.log_z import find_exact
from bayesknn.log_z.records import N_REPLICATES, standard_error
from bayesknn.log_z.simulation import MAX_SWEEPS, Simulation, Work
from bayesknn.log_z.table import PathTable, take_fingerprint
from bayesknn.model import (
    BoltzmannModel,
    Prior,
    as_model,
    as_prior,
    log_normalizer_exact,
)
from bayesknn.model.boltzmann import check_betas
from bayesknn.model.integration import N_PANELS, find_panels, integrate
from bayesknn.model.prior import find_prior_mass

# Steps of the grid of a table, at least, and where there is a transition. They are even up to a
# beta at which most labels are frozen; beyond, each is as long as before for its beta. More steps
# are a larger table, fewer an error between them.
_N_STEPS, _N_FINE_STEPS, _EVEN = 64, 512, 4.0


def path_table(
    graph: NeighborGraph | BoltzmannModel,
    n_classes: int | None = None,
    *,
    k_max: int | None = None,
    beta_max: float = 4.0,
    labels: Any = None,
    prior: Any = None,
    class_weight: Any = None,
    tolerance: float = 0.05,
    exact: bool = True,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> PathTable:
    """Compute log Z(beta, k) for k = 1..k_max and beta in [0, beta_max].

    Parameters
    ----------
    graph : NeighborGraph
    n_classes : int
    k_max : int, optional
        By default that of the graph.
    beta_max : float
    labels : array-like of shape (n,), optional
        Where the posterior of (beta, k) given these labels is, ``tolerance`` is met; elsewhere
        log Z is known less well, as :meth:`PathTable.error` tells. Without labels the tolerance
        is met everywhere.
    prior : Prior, array-like or callable, optional
        With ``labels``: the prior of that posterior, on k up to ``k_max`` and beta up to
        ``beta_max``; uniform by default.
    class_weight : array-like of shape (n_classes,), optional
        The weights a_g: a directed edge within class g counts a_g in place of 1.
    tolerance : float
        Standard error of log Z that is asked for.
    exact : bool
        Whether to compute log Z exactly at those small k where that is cheap.
    random_state : None, int, SeedSequence, Generator or RandomState
    n_jobs : int, optional
        Threads, as in joblib. The table does not depend on them.
    verbose : int
        Above 0, a count of the runs made is shown once two seconds have passed.

    Returns
    -------
    PathTable

    Warns
    -----
    MixingWarning
        If the tolerance was not reached.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import path_table
    >>> graph = NeighborGraph.from_points(np.random.default_rng(0).normal(size=(40, 2)), k_max=6)
    >>> table = path_table(graph, n_classes=3, random_state=0)
    >>> table.log_normalizer([0.0, 1.0], k=4).round(1).tolist()
    [43.9, 59.9]
    >>> table.error(1.0, k=6) < 0.06
    True
    """
    model = as_model(graph, n_classes, class_weight)
    k_max = model.k_max if k_max is None else model.graph.check_k(k_max)
    beta_max = check_positive(beta_max, "beta_max")
    tolerance = check_positive(tolerance, "tolerance")
    prior = as_prior(prior, k_max, None if isinstance(prior, Prior) else beta_max)
    if prior.beta_max > beta_max:
        raise ValueError(
            f"the prior reaches beta={prior.beta_max:g}, the table beta_max={beta_max:g}; raise "
            "beta_max or lower that of the prior"
        )
    observed = None if labels is None else model.agreement(model.check_labels(labels))
    seeds = seeds_for(random_state, "log Z table", model.fingerprint)
    with (
        progress("Following the path", verbose=verbose) as advance,
        Simulation(model, seeds, n_jobs, advance) as simulation,
    ):
        design = Everywhere(simulation, k_max, beta_max, tolerance, observed, prior)
        if exact:
            design.eliminate()
        simulation.run(design)
    faults = [path.find_fault(design.betas) for path in design.paths.values()]
    words = max(faults, default=(0.0, []))[1]
    for sentence in words:
        warnings.warn(sentence, MixingWarning, stacklevel=2)
    return PathTable(
        n_points=model.n_points,
        n_classes=model.n_classes,
        beta_max=beta_max,
        class_weight=model.class_weight,
        fingerprint=take_fingerprint(model.graph, k_max, model.n_classes, model.class_weight),
        n_sweeps=simulation.n_sweeps,
        warnings=tuple(words),
        **design.tabulate(),
    )


def log_normalizer_path(
    graph: NeighborGraph | BoltzmannModel,
    beta: Any,
    k: int,
    n_classes: int | None = None,
    class_weight: Any = None,
    *,
    tolerance: float = 0.05,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> tuple[Any, Any]:
    """Estimate log Z(beta, k) at one k by path sampling.

    Parameters
    ----------
    graph : NeighborGraph
    beta : float or array-like
        All values are served by one path, up to the largest.
    k : int
    n_classes : int
    class_weight : array-like of shape (n_classes,), optional
    tolerance : float
        Standard error that is asked for.
    random_state : None, int, SeedSequence, Generator or RandomState
    n_jobs : int, optional
        Threads, as in joblib. The result does not depend on them.

    Returns
    -------
    value, error : float, or ndarray of the shape of ``beta``

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.log_z.path_table import log_normalizer_path
    >>> ring = NeighborGraph.from_neighbors([np.roll(np.arange(50), -1)])
    >>> value, error = log_normalizer_path(ring, 2.0, k=1, n_classes=2, random_state=0)
    >>> bool(abs(value - 50 * np.log(np.e**2 + 1)) < 6 * error)
    True
    """
    model = as_model(graph, n_classes, class_weight)
    k, betas = model.graph.check_k(k), check_betas(beta)
    tolerance = check_positive(tolerance, "tolerance")
    beta_max = float(betas.max(initial=0.0))
    if beta_max == 0.0:
        values, errors = np.full(betas.shape, model.n_points * np.log(model.n_classes)), 0.0 * betas
    else:
        seeds = seeds_for(random_state, "log Z", model.fingerprint)
        with Simulation(model, seeds, n_jobs) as simulation:
            path = Path(simulation, k, beta_max, tolerance, MAX_SWEEPS)
            simulation.run(path)
        replicates = path.curves[k](betas.ravel())
        values = replicates[0].reshape(betas.shape)
        errors = standard_error(replicates).reshape(betas.shape)
        for sentence in path.find_fault(betas.ravel())[1]:
            warnings.warn(sentence, MixingWarning, stacklevel=2)
    return (float(values), float(errors)) if betas.ndim == 0 else (values, errors)


class Everywhere:
    """Paths along beta at some k, which give log Z of k = 1..k_max for every beta up to beta_max.

    Parameters
    ----------
    simulation : Simulation
    k_max : int
    beta_max, tolerance : float
    observed : ndarray of shape (k_max,), optional
        S_k of the labels for whose posterior log Z is wanted; without it log Z is wanted
        everywhere.
    prior : Prior, optional
        Of that posterior.

    Attributes
    ----------
    known : dict of int to Curve
        What was computed exactly, by k.
    paths : dict of int to Path
        What was simulated, by k.
    """

    def __init__(
        self,
        simulation: Simulation,
        k_max: int,
        beta_max: float,
        tolerance: float,
        observed: Any = None,
        prior: Any = None,
    ):
        self.simulation, self.k_max, self.beta_max = simulation, k_max, beta_max
        self.tolerance, self.observed, self.prior = tolerance, observed, prior
        self.known: dict[int, Curve] = {}
        self.paths: dict[int, Path] = {}
        self._grown: list[Path] = []

    def eliminate(self) -> None:
        """Compute log Z exactly at k = 1, 2, ... as long as that is cheap.

        On a grid; what is between follows by splines.
        """
        model = self.simulation.model
        ks = find_exact(model, range(1, self.k_max + 1))
        betas = _place_betas(self.beta_max, _N_STEPS)

        def compute(k: int) -> Curve:
            log_z = log_normalizer_exact(model, betas, k)
            return Curve([(betas, np.tile(log_z, (N_REPLICATES, 1)))])

        self.known = dict(zip(ks, self.simulation.map(compute, ks), strict=True))

    def plan(self) -> Work:
        """Return the first records of all paths, then more where errors are too large."""
        if len(self.known) == self.k_max:
            return []
        if not self.paths:
            return self._place_paths()
        for path in self._grown:
            path.update()
        self._set_limits()
        work = {path: path.refine() for path in self.paths.values()}
        self._grown = [path for path, tasks in work.items() if tasks]
        return list(chain.from_iterable(work.values()))

    def _place_paths(self) -> Work:
        """Run the pilots of paths from the first k that is not known, and place their chains."""
        k = len(self.known) + 1
        while True:
            last = min(self.k_max, max(k + 1, int(1.3 * k)))
            path = self.paths[k] = Path(
                self.simulation, k, self.beta_max, self.tolerance, MAX_SWEEPS
            )
            path.run_pilots(last)
            if k == self.k_max:
                break
            k = self._find_next(path)
        ks, self._grown = list(self.paths), list(self.paths.values())
        work = []
        for before, k, after in zip([ks[0], *ks], ks, [*ks[1:], ks[-1]], strict=False):
            columns = np.unique([*range(before + 1, k), k, *range(k + 1, after)])
            work += self.paths[k].place(columns)
        return work

    def _find_next(self, path: Path) -> int:
        """Return the next k that needs a path: near enough for importance sampling.

        That is where the variance of D is .8 at most: more is fewer paths, and noise between them.
        """
        pairs = [pilot.pair for pilot in path.pilots if pilot.pair.beta <= self.beta_max]
        ks = pairs[0].columns[pairs[0].columns >= path.k].tolist()
        distances = [max(pair.distance(other) for pair in pairs) for other in ks]
        is_near = np.minimum.accumulate(np.array(distances) <= 0.8)
        return path.k + max(1, int(np.count_nonzero(is_near)) - 1)

    def _set_limits(self) -> None:
        """Allow larger errors along each path where the posterior of the labels is small."""
        if self.observed is None:
            return
        scores, low, high = self.weigh()
        # A k that is far below the best may have larger errors.
        log_deficits = scores[0].max() - scores[0]
        limits = self.tolerance * np.exp(np.clip((log_deficits - 5.0) / 2, 0, 50))

        def allow(at: np.ndarray, betas: np.ndarray) -> np.ndarray:
            inside = (betas[:, None] >= low[at]) & (betas[:, None] <= high[at])
            return np.where(inside, limits[at], np.inf).min(axis=1)

        for path in self.paths.values():
            path.allow = partial(allow, np.asarray(path.columns) - 1)

    def tabulate(self) -> dict[str, np.ndarray]:
        """Return the arrays of a table, by the names of its fields."""
        ks = range(1, self.k_max + 1)
        rows = [self._mix(k, lambda curve: np.array(curve.derivatives(self.betas))) for k in ks]
        values, means, slopes = (np.stack(part, axis=1) for part in zip(*rows, strict=True))
        closure = [self.paths[k].closure() if k in self.paths else np.nan for k in ks]
        arrays = {
            "betas": self.betas,
            "log_normalizers": values,
            "means": means,
            "slopes": slopes,
            "closure": np.array(closure),
            "is_exact": np.isin(ks, list(self.known)),
        }
        if self.observed is not None:
            probabilities = softmax(self.weigh()[0], axis=1)
            arrays["k_probabilities"] = probabilities[0]
            arrays["k_probabilities_error"] = standard_error(probabilities)
        return arrays

    def weigh(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return log P(k | y) up to a constant, (n_replicates, n_k), and where its beta lies."""
        scores = np.full((N_REPLICATES, self.k_max), -np.inf)
        low, high = np.zeros(self.k_max), np.full(self.k_max, self.beta_max)
        for k, mass in find_prior_mass(self.prior).items():
            log_posterior = partial(self._log_posterior, k)
            estimate = partial(log_posterior, rows=0)
            nodes, log_masses = integrate(
                log_posterior, find_panels(estimate, mass.panels(N_PANELS))
            )
            scores[:, k - 1] = logsumexp(log_masses, axis=1)
            values = estimate(nodes)
            heavy = nodes[values >= values.max() - 8.0]
            low[k - 1], high[k - 1] = heavy[0], heavy[-1]
        return scores, low, high

    def _log_posterior(self, k: int, beta: np.ndarray, rows: Any = slice(None)) -> np.ndarray:
        """Return the log posterior at k, not normalised, in some replicates."""
        log_weight = self.observed[k - 1] / k * beta + self.prior.log_density(beta, k)
        return log_weight - self.log_z(k, beta)[rows]

    @property
    def betas(self) -> np.ndarray:
        """A grid up to beta_max that is as fine as the chains stand."""
        n_steps = _N_STEPS
        for path in self.paths.values():
            betas = np.array([pair.beta for pair in path.phases[0]])
            lengths = np.clip(betas[1:], min(_EVEN, self.beta_max), self.beta_max)
            n_steps = max(n_steps, round((lengths / np.diff(betas)).max()))
            n_steps = max(n_steps, _N_FINE_STEPS * bool(path.windows))
        return _place_betas(self.beta_max, n_steps)

    def log_z(self, k: int, betas: np.ndarray) -> np.ndarray:
        """Return log Z at one k in every replicate, of shape (n_replicates, n_betas)."""
        return self._mix(k, lambda curve: curve(betas))

    def _mix(self, k: int, read: Callable[[Curve], np.ndarray]) -> np.ndarray:
        """Read the curve of k; between two paths each counts by how near it is."""
        if k in self.known:
            return read(self.known[k])
        ks = np.array(list(self.paths))
        after = int(ks[np.searchsorted(ks, k)])
        values = read(self.paths[after].curves[k])
        if after == k:
            return values
        before = int(ks[np.searchsorted(ks, k) - 1])
        share = (k - before) / (after - before)
        return share * values + (1 - share) * read(self.paths[before].curves[k])


def _place_betas(beta_max: float, n_steps: int) -> np.ndarray:
    """Return a grid from 0 to beta_max with so many steps up to where most labels are frozen."""
    even = np.linspace(0.0, min(beta_max, _EVEN), n_steps + 1)
    n_more = max(int(np.ceil(n_steps * np.log(beta_max / _EVEN))), 0)
    return np.append(even, np.geomspace(_EVEN, beta_max, n_more + 1)[1:])
