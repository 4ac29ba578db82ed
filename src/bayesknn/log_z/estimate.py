"""Estimates of log Z along a sequence of chains, and at its far end (Section 3.3, path sampling).

Records of chains go in, log Z comes out in every replicate. From one pair of chains to the next
log Z follows by MBAR where their draws overlap (:mod:`bayesknn.log_z.mbar`). Where they do not, the
slope E[S] / k is integrated: along beta by a spline through the means, from k to k by the trapezium
rule with its end correction. All functions depend on their arguments alone.

At the far end most components of the graph have one class. Call a labelling monochrome if every
connected component of the graph of k has. These labellings weigh
``W(beta) = prod over components c of sum over g of exp(beta a_g n_c)`` together, so
``log Z = log W - log P(monochrome)`` at every beta, with no limit taken. Given the clusters of a
Swendsen-Wang sweep the colours are independent, and the probability of a monochrome labelling is
known: ``G ** (components - clusters)`` without class weights. Its average is an estimate of
P(monochrome) that is precise once there are only a few clusters too many. A path can therefore
stop there: no tail is cut off.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.interpolate import BSpline, CubicSpline, PchipInterpolator, make_interp_spline
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from bayesknn.log_z.chains import ChainPair
from bayesknn.log_z.mbar import MAX_VARIANCE, combine
from bayesknn.log_z.records import N_REPLICATES, Records, Setting, join, standard_error
from bayesknn.model import BoltzmannModel


class Curve:
    """log Z along beta in every replicate, through its values at nodes in each phase.

    Where chains do not cross between disordered and ordered labels, ``Z`` is the sum of the two
    phases, each of which is smooth: a quintic spline goes through log Z of each at its own nodes.

    Parameters
    ----------
    phases : sequence of (ndarray of shape (n_nodes,), ndarray of shape (n_replicates, n_nodes))
        Increasing beta, and log Z there.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.estimate import Curve
    >>> beta = np.linspace(0.0, 2.0, 9)
    >>> Curve([(beta, beta[None] ** 3)])(np.array([0.3, 1.0])).round(6).tolist()
    [[0.027, 1.0]]
    """

    def __init__(self, phases: Sequence[tuple[np.ndarray, np.ndarray]]):
        self.phases = [
            make_interp_spline(nodes, values.T, k=min(5, len(nodes) - 1))
            for nodes, values in phases
        ]

    def __call__(self, beta: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Return log Z in some replicates, of shape (n_rows, n_betas)."""
        parts = [self.of_phase(at, beta, rows) for at in range(len(self.phases))]
        return parts[0] if len(parts) == 1 else np.logaddexp(*parts)

    def of_phase(self, at: int, beta: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Return log Z of one phase; beyond its nodes it goes on as a straight line.

        There it is next to nothing: the slope of the disordered phase is the smaller one.
        """
        spline = self.phases[at]
        spline = BSpline.construct_fast(spline.t, spline.c[:, rows], spline.k)
        inside = np.clip(beta, spline.t[0], spline.t[-1])
        values = spline(inside)
        if np.any(inside != beta):
            values = values + (beta - inside)[:, None] * spline(inside, 1)
        return values.T

    def derivatives(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return log Z and its first two derivatives within the nodes, (n_replicates, n_betas)."""
        log_z = np.array([self.of_phase(at, beta) for at in range(len(self.phases))])
        total = logsumexp(log_z, axis=0)
        inside = [np.clip(beta, spline.t[0], spline.t[-1]) for spline in self.phases]
        first, second = (
            np.array([s(at, order).T for s, at in zip(self.phases, inside, strict=True)])
            for order in (1, 2)
        )
        share = np.exp(log_z - total)
        mean = (share * first).sum(axis=0)
        return total, mean, (share * (second + (first - mean) ** 2)).sum(axis=0)


def are_far(before: Records, after: Records) -> bool:
    """Return whether the draws of two pairs at the same k overlap too little for MBAR."""
    variance = max(pair.variance(pair.k) for pair in (before, after))
    return bool(variance * (after.setting.rates[0] - before.setting.rates[0]) ** 2 > MAX_VARIANCE)


def follow(pairs: Sequence[Records], far: Sequence[bool]) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes along beta at one k, and log Z at each less that at the first pair.

    Parameters
    ----------
    pairs : sequence of Records
        By increasing beta.
    far : sequence of bool
        Whether the draws of each pair and the next are taken as too far apart for MBAR. Pilots
        decide it: a decision by these records would bias log Z.

    Returns
    -------
    nodes : ndarray of shape (n_nodes,)
        The beta of all pairs, and one between two of them whose draws overlap.
    log_z : ndarray of shape (n_replicates, n_nodes)
        Their variance includes the discretisation error.
    """
    nodes, log_z = [pairs[0].beta], [np.zeros((N_REPLICATES, 1))]
    if any(far):
        growth, errors = integrate_means(pairs)
        # The same noise at each step: errors of one sign add up.
        growth += np.outer(pairs[0].noise(3), errors)
    for at, (before, after) in enumerate(pairwise(pairs)):
        if far[at]:
            values = growth[:, [at]]
        else:
            nodes.append((before.beta + after.beta) / 2)
            targets = [before.setting, Setting.at(nodes[-1], before.k), after.setting]
            both = combine([before, after], targets)
            if not both.is_settled:
                warnings.warn(
                    f"log Z between beta = {before.beta:.3g} and {after.beta:.3g} did not settle: "
                    "it and its error may be wrong",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            values = both.of_targets[:, 1:] - both.of_targets[:, :1]
        nodes.append(after.beta)
        log_z.append(log_z[-1][:, -1:] + values)
    return np.array(nodes), np.concatenate(log_z, axis=1)


def integrate_means(pairs: Sequence[Records]) -> tuple[np.ndarray, np.ndarray]:
    """Integrate E[S_k] / k along beta from each pair to the next, by a spline through the means.

    Variances, which are its slopes, are much noisier on many points.

    Returns
    -------
    growth : ndarray of shape (n_replicates, n_pairs - 1)
    errors : ndarray of shape (n_pairs - 1,)
        Discretisation error: by how much a stiffer curve through the same means differs.
    """
    betas = np.array([pair.beta for pair in pairs])
    means = np.array([pair.resample(pair.cluster_series(pair.k) / pair.k) for pair in pairs])
    smooth = np.diff(CubicSpline(betas, means).antiderivative()(betas), axis=0)
    stiff = np.diff(PchipInterpolator(betas, means[:, 0]).antiderivative()(betas))
    return smooth.T, np.abs(smooth[:, 0] - stiff)


def step_between(before: Records, after: Records) -> tuple[np.ndarray, float]:
    """Return by how much log Z grows from one pair to another, and the discretisation error.

    With D the difference of the two log weights it is the integral of E[D] from one to the other:
    by the trapezium rule with end correction, ``(E0[D] + E1[D]) / 2 + (V0[D] - V1[D]) / 12``,
    which may be off by as much as its correction, beyond its noise. Both record S at the k of both.
    """
    means, variances = [], []
    for pair in (before, after):
        d, of_clusters = (
            after.beta / after.k * series(after.k) - before.beta / before.k * series(before.k)
            for series in (pair.series, pair.cluster_series)
        )
        centre = d.mean()
        averages = pair.resample(np.stack([of_clusters, (d - centre) ** 2], axis=-1))
        means.append(averages[:, 0])
        variances.append(averages[:, 1])
    correction = (variances[0] - variances[1]) / 12
    defect = means[1] - means[0] - (variances[0] + variances[1]) / 2
    beyond_noise = max(abs(defect[0]) - 3 * standard_error(defect), 0.0)
    # Noise in the correction is noise in the value, too.
    error = max(abs(correction[0]) - 2 * standard_error(correction), beyond_noise / 8)
    return (means[0] + means[1]) / 2 + correction, float(error)


def compare_ks(pair: Records, ks: np.ndarray) -> np.ndarray:
    """Return log Z at some k less that at the k of a pair, at its beta: (n_replicates, n_k).

    MBAR of one pair is importance sampling, ``log E[exp(D)]``.
    """
    targets = [Setting.at(pair.beta, k) for k in (pair.k, *ks)]
    log_z = combine([pair], targets).of_targets
    return log_z[:, 1:] - log_z[:, :1]


def log_monochrome_weight(model: BoltzmannModel, components: np.ndarray, beta: float) -> float:
    """Return log W(beta), the total weight of the monochrome labellings."""
    sizes = np.bincount(components)
    return float(logsumexp(beta * np.outer(sizes, model.weights), axis=1).sum())


def excess_clusters(pair: Records) -> float:
    """Return about log(1 + relative variance) of a record of P(monochrome).

    It comes from the mean number of clusters too many, as if that were Poisson: where a few
    records dominate the others, their own variance does not show it.
    """
    return float(pair.monochrome[:, :, 1].mean() * (1 - 1 / pair.model.n_classes) ** 2)


def log_z_from_monochrome(pair: ChainPair) -> np.ndarray:
    """Return log Z at a pair that records P(monochrome), in every replicate."""
    chance = pair.monochrome[:, :, 0]
    averages = pair.resample(chance)
    averages += averages[0] * pair.noise_floor(1)
    weight = log_monochrome_weight(pair.model, pair.components, pair.beta)
    # The log of a mean is on average too low by half the mean's relative variance.
    batches = join(pair.batch(chance))
    bias = batches.var(ddof=1) / len(batches) / averages[0] ** 2 / 2
    return weight - np.log(np.maximum(averages, averages[0] / 20)) - bias
