"""log Z from one setting to another: bridge sampling between two pairs of chains (Section 3.3).

With ``D`` the difference of the two log weights, ``log Z1 - log Z0`` is the c at which
``E0[1 / (1 + exp(c - D))] = E1[1 / (1 + exp(D - c))]`` (Bennett 1976; Meng and Wong 1996): exact
but for noise wherever the two laws overlap. S given the clusters lowers the noise: its mean is
that of S. Where they do not overlap, the integral of E[D] along the path between them is all there
is: the trapezium rule with end correction, ``(E0[D] + E1[D]) / 2 + (V0[D] - V1[D]) / 12``, which
may be off by as much as its correction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from bayesknn.log_z.chains import ChainPair, Setting
from bayesknn.log_z.resampling import N_REPLICATES, find_error

# Overlap (1/4 for equal laws, .04 for normal ones with a variance of D of 9) that is enough.
ENOUGH = 0.04


class Step(NamedTuple):
    """log Z(after) - log Z(before) in every replicate, and how far it can be trusted.

    Attributes
    ----------
    value : ndarray of shape (n_replicates,)
    overlap : float
        Of the two laws, at most 1/4.
    doubt : float
        By how much the value may be off beyond its noise, as a guess.
    """

    value: np.ndarray
    overlap: float
    doubt: float


def bridge(before: ChainPair, after: ChainPair) -> Step:
    """Return log Z at the setting of one pair less that at another's.

    Both keep whole records of S at the k of both settings.
    """
    moments, labels, surplus = [], [], []
    for pair in (before, after):
        d = _difference(pair.series, before.setting, after.setting)
        d_clusters = _difference(pair.cluster_series, before.setting, after.setting)
        centre = d.mean()
        series = np.stack([d_clusters - centre, d - centre, (d - centre) ** 2], axis=-1)
        of_clusters, of_labels, squares = pair.resample(series).T
        moments.append((centre + of_clusters, squares - of_labels**2))
        surplus.append(centre + of_labels - moments[-1][0])
        labels.append(d)
    (mean0, variance0), (mean1, variance1) = moments
    correction = (variance0 - variance1) / 12
    trapezium = (mean0 + mean1) / 2 + correction
    c, is_found = _solve(labels[0].ravel(), labels[1].ravel(), float(trapezium[0]))
    shares = [expit(labels[0] - c), expit(c - labels[1])]
    of_shares = [
        pair.resample(np.stack([share, share * (1 - share)], axis=-1)).T
        for pair, share in zip((before, after), shares, strict=True)
    ]
    slope = of_shares[0][1] + of_shares[1][1]
    overlap = float(slope[0]) / 2
    if not is_found or overlap < ENOUGH:
        defect = mean1 - mean0 - (variance0 + variance1) / 2
        beyond_noise = max(abs(defect[0]) - 3 * find_error(defect), 0.0)
        # What is noise in the correction is noise in the value, too.
        doubt = max(abs(correction[0]) - 2 * find_error(correction), beyond_noise / 8)
        return Step(trapezium, min(overlap, ENOUGH / 2), float(doubt))
    value = c + (of_shares[0][0] - of_shares[1][0]) / np.maximum(slope, slope[0] / 4)
    return Step(value - (surplus[0] + surplus[1]) / 2, overlap, 0.0)


def _difference(series: Callable[[int], np.ndarray], before: Setting, after: Setting) -> np.ndarray:
    """Return D of every record, of shape (n_chains, n_records)."""
    parts = [rate * series(k) for k, rate in zip(after.ks, after.rates, strict=True)]
    parts += [-rate * series(k) for k, rate in zip(before.ks, before.rates, strict=True)]
    return np.sum(parts, axis=0)


def _solve(d0: np.ndarray, d1: np.ndarray, c: float) -> tuple[float, bool]:
    """Find the c of Bennett's equation by Newton's method within a bracket."""
    low, high = min(d0.min(), d1.min()) - 1.0, max(d0.max(), d1.max()) + 1.0
    c = min(max(c, low), high)
    for _ in range(60):
        share0, share1 = expit(d0 - c), expit(c - d1)
        gap = share0.mean() - share1.mean()
        low, high = (c, high) if gap > 0 else (low, c)
        slope = (share0 * (1 - share0)).mean() + (share1 * (1 - share1)).mean()
        following = c + gap / max(slope, 1e-300)
        if abs(following - c) < 1e-9 * max(1.0, abs(c)):
            return following, True
        c = following if low < following < high else (low + high) / 2
    return c, False


def add_up(steps: list[Step]) -> np.ndarray:
    """Sum steps: log Z at each end of them less that at the first, (n_replicates, n_steps + 1)."""
    return np.cumsum([np.zeros(N_REPLICATES), *(step.value for step in steps)], axis=0).T


def add_up_doubt(paths: list[list[Step]]) -> np.ndarray:
    """Sum what steps leave to doubt on the way to each end of them: the largest of all paths."""
    return np.max([np.cumsum([0.0] + [step.doubt for step in path]) for path in paths], axis=0)
