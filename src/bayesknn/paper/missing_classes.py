"""The joint posterior of (beta, k) and of missing classes, and labels that come one by one.

Section 2.3 calls a joint model of labelled and unclassified points "mostly unachievable", as there
are G^m vectors of missing classes. Their sum is a second normalising constant. With Z_L the sum of
exp(beta S_k / k) over all labels that agree with the known ones,

    log f(y_L | beta, k) = log Z_L(beta, k) - log Z(beta, k),

and the derivative of either log Z in beta is the mean of S_k / k over labels drawn with the known
ones held fixed, or with none. Swendsen-Wang chains draw both, along a path of beta from 0, where
the difference is -n_L log G for n_L known labels. The same draws give the missing classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import softmax

from bayesknn._utils.random import as_seed_sequence, spawn_keys
from bayesknn.graph import NeighborGraph
from bayesknn.labels.clamped import clamped_labels, free_edges
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.model import BoltzmannModel, default_max_neighbors
from bayesknn.posterior import grid_posterior
from bayesknn.predictive import PosteriorNodes, Predictive

# Labelled rows of Ripley's training points of which `check` knows exact values.
_LABELLED = (
    80, 99, 67, 57, 33, 30, 105, 53, 117, 54, 90, 111,
    206, 226, 241, 196, 155, 172, 180, 231, 163, 128, 221, 132,
)  # fmt: skip
# Rows of Ripley's training points whose labels are known where methods are compared.
_N_KNOWN = 50


class MissingClasses(NamedTuple):
    """What partly labelled data say about (beta, k) and about the missing classes.

    Attributes
    ----------
    log_likelihood : ndarray of shape (n_runs, n_k, n_betas)
        Estimates of log f(y_L | beta, k), one for each pair of chains.
    weights : ndarray of shape (n_runs, n_k, n_betas)
        Posterior masses, under a uniform prior on the k and on the range of beta.
    probabilities : ndarray of shape (n_runs, m, n_classes)
        Posterior class probabilities of the points without a label.
    """

    log_likelihood: np.ndarray
    weights: np.ndarray
    probabilities: np.ndarray


def fit_missing_classes(
    model: BoltzmannModel,
    ks: Any,
    betas: Any,
    *,
    n_sweeps: int = 100,
    n_runs: int = 2,
    random_state: Any = None,
) -> MissingClasses:
    """Estimate the joint posterior of (beta, k) and of the missing classes.

    Parameters
    ----------
    model : BoltzmannModel
        On the graph of all points, the known labels fixed.
    ks : array-like of int
        The k to consider.
    betas : array-like of shape (n_betas,)
        From 0 up, as close as the mean of S_k / k needs to be known.
    n_sweeps : int, default=100
        Sweeps at each beta; the first fifth is left out.
    n_runs : int, default=2
        Independent estimates; every second one runs down from the largest beta, so that chains
        which do not mix show as a difference.
    random_state : None, int, SeedSequence, Generator or RandomState

    Returns
    -------
    MissingClasses
    """
    ks, betas = np.asarray(ks), np.asarray(betas, dtype=np.float64)
    n_known = int(np.sum(~model.is_free))
    keys = spawn_keys(as_seed_sequence(random_state), 2 * n_runs * len(ks)).reshape(2, n_runs, -1)
    curves = np.empty((n_runs, len(ks), len(betas)))
    marginals = []
    for run in range(n_runs):
        for at, k in enumerate(ks.tolist()):
            how: dict[str, Any] = {"n_sweeps": n_sweeps, "is_downward": run % 2 == 1}
            known, labels = _run_path(model, betas, k, key=keys[0, run, at], **how)
            free, _ = _run_path(model.fix(None), betas, k, key=keys[1, run, at], **how)
            slope = CubicSpline(betas, known - free)
            curves[run, at] = slope.antiderivative()(betas) - n_known * np.log(model.n_classes)
            marginals.append(labels)
    # Trapezium rule in beta, as the prior is uniform.
    cells = np.gradient(betas) * np.where((betas == betas[0]) | (betas == betas[-1]), 0.5, 1.0)
    weights = softmax(curves + np.log(cells), axis=(1, 2))
    by_k = np.stack(marginals).reshape(n_runs, len(ks), *marginals[0].shape)
    return MissingClasses(curves, weights, np.einsum("rkb,rkbmg->rmg", weights, by_k))


def _run_path(
    model: BoltzmannModel,
    betas: np.ndarray,
    k: int,
    *,
    n_sweeps: int,
    is_downward: bool,
    key: np.uint64,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of S_k / k at each beta, and the class frequencies of each free point.

    The second has shape (n_betas, m, n_classes).
    """
    edges, step = free_edges(model), -1 if is_downward else 1
    path = np.repeat(betas[::step], n_sweeps)
    ones = np.ones(len(path), np.int64)
    start = np.random.default_rng(int(key)).integers(model.n_classes, size=len(edges.free))
    if is_downward:
        start[:] = 0
    draws = clamped_labels(edges, path, k * ones, ones, key=key, initial=start)
    labels = np.empty((len(path), model.n_points), draws.dtype)
    if model.fixed is not None:
        labels[:] = np.maximum(model.fixed, 0)
    labels[:, edges.free] = draws
    shape, kept = (len(betas), n_sweeps), slice(n_sweeps // 5, None)
    agreement = model.agreement(labels, k).reshape(shape)[::step, kept].mean(axis=1) / k
    by_beta = draws.reshape(*shape, -1)[::step, kept]
    frequencies = [(by_beta == g).mean(axis=1) for g in range(model.n_classes)]
    return agreement, np.stack(frequencies, axis=-1)


def score_sequence(
    X: np.ndarray, labels: np.ndarray, n_first: int, prior_of: Any, random_state: Any = None
) -> tuple[np.ndarray, list[float]]:
    """Predict each row from the rows before it, the label revealed before the next one comes.

    The posterior of (beta, k) is computed again whenever there are a tenth more rows.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    labels : ndarray of shape (n,)
    n_first : int
        Rows that are known before the first prediction.
    prior_of : callable
        Takes the largest k, returns the prior.
    random_state : None, int, SeedSequence, Generator or RandomState

    Returns
    -------
    log_probabilities : ndarray of shape (n - n_first,)
        Of the label of each row, given those before it.
    log_evidences : list of float
        Of the first ``n_first`` rows, and of all rows.
    """
    n_classes, refit_at, scores = int(labels.max()) + 1, float(n_first), []

    def fit(n: int) -> tuple[PosteriorNodes, float]:
        k_max = default_max_neighbors(np.bincount(labels[:n], minlength=n_classes))
        model = BoltzmannModel(NeighborGraph.from_points(X[:n], k_max), n_classes)
        likelihood = CoherentLikelihood(model, labels[:n])
        grid = grid_posterior(likelihood, prior_of(k_max), random_state=random_state)
        return PosteriorNodes.from_grid(grid), grid.log_evidence

    evidences = []
    for n in range(n_first, len(X)):
        if n >= refit_at:
            nodes, evidence = fit(n)
            evidences.append(evidence)
            refit_at = 1.1 * n
        graph = NeighborGraph.from_points(X[:n], int(nodes.k.max()))
        rule = Predictive(BoltzmannModel(graph, n_classes), labels[:n], nodes)
        scores.append(np.log(rule.probabilities(X[n : n + 1])[0, labels[n]]))
    return np.array(scores), [evidences[0], fit(len(X))[1]]
