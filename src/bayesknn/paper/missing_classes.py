"""Joint posterior of (beta, k) and of missing classes; sequential prediction (Section 2.3).

The paper calls a joint model of labelled and unclassified points "mostly unachievable", because a
sum over the G^m vectors of m missing classes is needed. That sum is a second normalising constant.
Let Z_L be the sum of exp(beta S_k / k) over all label vectors that agree with the known labels.
Then

    log f(y_L | beta, k) = log Z_L(beta, k) - log Z(beta, k).

The derivative of log Z_L with respect to beta is the mean of S_k / k over labels drawn with the
known labels fixed; that of log Z is the mean over labels drawn with none fixed. Swendsen-Wang
chains estimate both means along a path of beta from 0, where the difference of the constants is
-n_L log G for n_L known labels. The draws with fixed labels also give the missing classes.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import softmax

from bayesknn._utils.random import as_seed_sequence, spawn_keys
from bayesknn.graph import NeighborGraph
from bayesknn.labels.clamped import clamped_labels, free_edges
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.model import BoltzmannModel, UniformPrior, default_max_neighbors
from bayesknn.model.boltzmann import FREE
from bayesknn.paper.comparison import Estimate, Result, item
from bayesknn.paper.samples import mean_over_runs
from bayesknn.paper.setting import BETA_MAX, Setting, Study, count_smallest
from bayesknn.plots.style import COLOURS, INK, new_figure
from bayesknn.posterior import GridPosterior, grid_posterior
from bayesknn.predictive import PosteriorNodes, Predictive, log_score

# Rows of Ripley's training points that are labelled in the check against the exact value of
# log f(y_L | beta = 2, k = 3), which was computed by variable elimination.
_LABELLED = (
    80, 99, 67, 57, 33, 30, 105, 53, 117, 54, 90, 111,
    206, 226, 241, 196, 155, 172, 180, 231, 163, 128, 221, 132,
)  # fmt: skip
# Number of labelled rows among Ripley's training points when methods are compared.
_N_KNOWN = 50


class MissingClasses(NamedTuple):
    """Posterior of (beta, k) and of the missing classes given partly labelled data.

    Attributes
    ----------
    log_likelihood : ndarray of shape (n_runs, n_k, n_betas)
        Independent estimates of log f(y_L | beta, k).
    weights : ndarray of shape (n_runs, n_k, n_betas)
        Posterior probabilities of the grid cells, under a uniform prior on k and beta.
    probabilities : ndarray of shape (n_runs, m, n_classes)
        Posterior class probabilities of the m points without a label.
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
        Model on the graph of all points, with the known labels fixed.
    ks : array-like of int
        Values of k in increasing order. Each represents the values of k nearest to it.
    betas : array-like of shape (n_betas,)
        Grid of beta in increasing order from 0. The mean of S_k / k is interpolated by a cubic
        spline between its points.
    n_sweeps : int, default=100
        Number of sweeps at each beta, of which the first fifth is discarded as burn-in.
    n_runs : int, default=2
        Number of independent estimates. Every second one goes from the largest beta down, so that
        poor mixing shows as a difference between the estimates.
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
            options: dict[str, Any] = {"n_sweeps": n_sweeps, "is_downward": run % 2 == 1}
            known, labels = _run_path(model, betas, k, key=keys[0, run, at], **options)
            free, _ = _run_path(model.fix(None), betas, k, key=keys[1, run, at], **options)
            slope = CubicSpline(betas, known - free)
            curves[run, at] = slope.antiderivative()(betas) - n_known * np.log(model.n_classes)
            marginals.append(labels)
    # The prior is uniform in k and beta, so the prior probability of a grid cell is proportional to
    # its width in k times its width in beta.
    cells = np.outer(
        np.diff(np.concatenate([ks[:1] - 0.5, (ks[1:] + ks[:-1]) / 2, ks[-1:] + 0.5])),
        np.diff(np.concatenate([betas[:1], (betas[1:] + betas[:-1]) / 2, betas[-1:]])),
    )
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
    """Return the mean of S_k / k at each beta, and the class frequencies of the free points.

    The two have shapes (n_betas,) and (n_betas, m, n_classes).
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
    X: np.ndarray, labels: np.ndarray, n_first: int, seed: int
) -> tuple[np.ndarray, Estimate]:
    """Predict the label of each row from all rows before it, one row after the other.

    The posterior of (beta, k) is recomputed whenever the number of rows has grown by 10 %.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    labels : ndarray of shape (n,)
    n_first : int
        Number of rows whose labels are known before the first prediction.
    seed : int
        Seed of the posteriors and their evidences.

    Returns
    -------
    log_probabilities : ndarray of shape (n - n_first,)
        Log predictive probability of the label of each row.
    difference : Estimate
        Log evidence of all rows minus that of the first ``n_first`` rows.
    """
    n_classes, refit_at, scores = int(labels.max()) + 1, float(n_first), []

    def fit(n: int) -> GridPosterior:
        k_max = default_max_neighbors(np.bincount(labels[:n], minlength=n_classes))
        model = BoltzmannModel(NeighborGraph.from_points(X[:n], k_max), n_classes)
        prior = UniformPrior(k_max, BETA_MAX)
        return grid_posterior(CoherentLikelihood(model, labels[:n]), prior, random_state=seed)

    first = grid = fit(n_first)
    for n in range(n_first, len(X)):
        if n >= 1.1 * refit_at:
            grid, refit_at = fit(n), n
        nodes = PosteriorNodes.from_grid(grid)
        graph = NeighborGraph.from_points(X[:n], int(nodes.k.max()))
        rule = Predictive(BoltzmannModel(graph, n_classes), labels[:n], nodes)
        scores.append(np.log(rule.probabilities(X[n : n + 1])[0, labels[n]]))
    ends = [Estimate(each.log_evidence, each.log_evidence_error) for each in (fit(len(X)), first)]
    return np.array(scores), ends[0] - ends[1]


@item(
    "num:missing-classes",
    unachievable=lambda seconds: seconds.value > 600,
    rise=lambda rise: rise.value < 0,
)
def missing_classes(setting: Setting) -> Result:
    """Compare joint with separate prediction of missing classes, and both with exact values."""
    study = setting.ripley
    estimates: dict[str, Any] = {**_check_against_exact(setting)}
    seeds = setting.seeds("missing-classes").spawn(setting.budget.n_splits)
    rows = [_compare_with_single(study, each, setting.budget.missing_sweeps) for each in seeds]
    names = ("unachievable", "error_single", "error_joint", "loss_single", "loss_joint")
    columns = dict(zip(names, np.array([row[:-1] for row in rows]).T, strict=True))
    columns["rise"] = columns["loss_joint"] - columns["loss_single"]
    for name, values in columns.items():
        estimates[name] = mean_over_runs(values)._replace(run_sd=0.0)
    order = np.random.default_rng(setting.seeds("sequence")).permutation(len(study.labels))
    scores, evidence = score_sequence(
        study.X_train[order], study.labels[order], setting.budget.n_sequence_start, setting.seed
    )
    estimates |= {"ahead": scores.mean(), "sum": scores.sum(), "evidence": evidence}
    single, joint = rows[0][-1]
    figure, ((ax,),) = new_figure(1, 1, 4.6, 4.2)
    ax.plot([0, 1], [0, 1], color=INK, linewidth=0.8)
    ax.plot(single, joint, "o", color=COLOURS[0], markersize=3.5, alpha=0.7)
    ax.set(xlabel="P(class 2), each point alone", ylabel="P(class 2), all points in one graph")
    return Result(estimates, (figure,))


def _check_against_exact(setting: Setting) -> dict[str, Estimate]:
    """Return estimates whose exact values are known by enumeration or variable elimination."""
    study, budget = setting.ripley, setting.budget
    rows = np.array([0, 1, 125, 126, 2, 3, 127, 128])
    known = np.where(np.arange(8) < 4, study.labels[rows], FREE)
    betas = np.linspace(0.0, 3.0, 31)
    options: dict[str, Any] = {"n_sweeps": budget.missing_sweeps, "n_runs": 16}
    graph = NeighborGraph.from_points(study.X_train[rows], 3)
    eight = fit_missing_classes(
        BoltzmannModel(graph, 2, fixed=known), [1, 2, 3], betas,
        random_state=setting.seeds("eight"), **options,
    )  # fmt: skip
    columns = {f"log_f_{k}": eight.log_likelihood[:, k - 1, 15] for k in (1, 2, 3)}
    columns["beta"] = np.einsum("rkb,b->r", eight.weights, betas)
    columns["p_first"] = eight.probabilities[:, 0, 1]
    known = np.full(len(study.labels), FREE)
    known[list(_LABELLED)] = study.labels[list(_LABELLED)]
    ripley = fit_missing_classes(
        study.model.fix(known), [3], np.linspace(0.0, 2.0, 21),
        random_state=setting.seeds("24 labelled"), **options,
    )  # fmt: skip
    columns["log_f_ripley"] = ripley.log_likelihood[:, 0, -1]
    means = {name: mean_over_runs(values) for name, values in columns.items()}
    return {name: mean._replace(run_sd=0.0) for name, mean in means.items()}


def _compare_with_single(study: Study, seeds: Any, n_sweeps: int) -> tuple[Any, ...]:
    """Predict missing classes on one random split, separately and jointly in one graph.

    Returns the CPU time of the joint posterior in seconds; the error rates, then the log-losses, of
    separate and joint prediction; and the pair of their probabilities of the second class.
    """
    rng = np.random.default_rng(seeds)
    order = rng.permutation(len(study.labels))
    rows, others = order[:_N_KNOWN], order[_N_KNOWN:]
    labels, hidden = study.labels[rows], study.labels[others]
    k_max = count_smallest(labels)
    model = BoltzmannModel(NeighborGraph.from_points(study.X_train[rows], k_max), 2)
    grid = grid_posterior(
        CoherentLikelihood(model, labels), UniformPrior(k_max, BETA_MAX), random_state=seeds
    )
    nodes = PosteriorNodes.from_grid(grid)
    single = Predictive(model, labels, nodes).probabilities(study.X_train[others])
    known = np.full(len(study.labels), FREE)
    known[rows] = labels
    # The largest k grows in proportion to the number of points in the graph, so that it covers the
    # same region of the feature space.
    largest = k_max * len(order) // _N_KNOWN
    ks = np.unique(np.geomspace(1, largest, 16).round().astype(np.int64))
    graph = NeighborGraph.from_points(study.X_train, largest)
    start = time.thread_time()
    fit = fit_missing_classes(
        BoltzmannModel(graph, 2, fixed=known), ks, np.linspace(0.0, BETA_MAX, 41),
        n_sweeps=n_sweeps, random_state=seeds,
    )  # fmt: skip
    seconds = time.thread_time() - start
    joint = fit.probabilities.mean(axis=0)[np.argsort(np.argsort(others))]
    errors = [np.mean(each.argmax(axis=1) != hidden) for each in (single, joint)]
    losses = [-log_score(each, hidden) for each in (single, joint)]
    return seconds, *errors, *losses, (single[:, 1], joint[:, 1])
