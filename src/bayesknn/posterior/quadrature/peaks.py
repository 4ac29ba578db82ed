"""The posterior of (beta, k) where log f(y | beta, k) is concave in beta (eqs. jointHA and psudoL).

A product of conditionals and a flat prior go in, log masses at nodes of beta come out. A product of
conditionals has one peak in beta for each k, found in a few steps of Newton's method. Around it log
f is so smooth that a polynomial gives it at any node: one that has its value, slope and curvature
at a handful of Chebyshev points, twice as many until the last coefficients vanish. A k costs five
or nine evaluations of the likelihood, and none but the search for its peak where the height of its
peak, times all of the prior's mass, is still too small to matter.

Where classes are separated log f rises to a plateau, and under a wide prior no polynomial follows
both. Then plain panels are used instead, which are halved where that is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.polynomial.chebyshev import chebder, chebvander

from bayesknn.likelihood.conditionals import ConditionalProduct
from bayesknn.model.integration import N_PANELS, place_nodes
from bayesknn.model.prior import Mass

# What is left out, in all, beside the best k: exp(-22) for each k, and as much for the tails.
NEGLIGIBLE = 22.0
# Error of a peak's place in units of its width, and error allowed on log f.
_PRECISION, _TOLERANCE = 0.01, 1e-8
# Part of the drop that must be reached: the tails beyond hold little.
_SLACK = 0.85
# Intervals between Chebyshev points, first and last.
_FEWEST, _MOST = 4, 32


def weigh_peaks(
    likelihood: ConditionalProduct, masses: dict[int, Mass]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return each k that matters, panels over its mass, and the log masses at their nodes.

    None if log f of some k is no polynomial of a degree that is worth its evaluations.

    Parameters
    ----------
    likelihood : ConditionalProduct
    masses : dict of int to Mass
        Of a prior that is flat in beta at every k.

    Returns
    -------
    k_values : ndarray of shape (n_k,)
    edges : ndarray of shape (n_k, n_panels + 1)
    log_mass : ndarray of shape (n_k, 8 * n_panels)
    """
    peaks = _Peaks(likelihood, masses)
    for k in masses:
        peaks.find_peak(k)
    promising = sorted(peaks.heights, key=peaks.bound, reverse=True)
    # The best tells which of the others matter.
    if not (peaks.weigh(promising[:1]) and peaks.weigh(promising[1:])):
        return None
    kept = sorted(peaks.weighed)
    edges, log_masses = zip(*(peaks.weighed[k] for k in kept), strict=True)
    return np.array(kept), np.array(edges), np.array(log_masses)


class _Peaks:
    """The peaks so far, and the log masses of those that were weighed."""

    def __init__(self, likelihood: ConditionalProduct, masses: dict[int, Mass]):
        self.likelihood, self.masses = likelihood, masses
        self.beta_max = next(iter(masses.values())).high
        self.heights: dict[int, float] = {}
        self.peaks: dict[int, tuple[float, float]] = {}
        self.weighed: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.best = -np.inf
        self._start = min(1.0, self.beta_max / 2)

    def bound(self, k: int) -> float:
        """Return what the log mass of k cannot exceed."""
        return self.heights[k] + self.masses[k].log_mass

    def find_peak(self, k: int) -> None:
        beta, self.heights[k], width = self.likelihood.find_peak(
            k, self._start, self.beta_max, _PRECISION
        )
        self.peaks[k] = beta, width
        if beta > 0.0:
            self._start = beta

    def weigh(self, ks: list[int]) -> bool:
        """Weigh each k in turn, up to the first that is too low to matter.

        False, and nothing weighed, if polynomials did not converge.
        """
        ks = [k for k in ks if self.matters(k)]
        new = {}
        for low, high, coefficients, at in self._fit(np.array(ks, dtype=np.int64)):
            edges = np.linspace(low, high, N_PANELS + 1, axis=1)
            curves = coefficients @ _basis(coefficients.shape[1])
            log_masses = curves + np.log(place_nodes(edges)[1])
            for i, k in enumerate(np.array(ks)[at].tolist()):
                new[k] = edges[i], log_masses[i] + self.masses[k].log_top
        if len(new) < len(ks):
            return False
        for k in ks:
            if not self.matters(k):
                break
            self.weighed[k] = new[k]
            self.best = max(self.best, float(np.logaddexp.reduce(new[k][1])))
        return True

    def matters(self, k: int) -> bool:
        return bool(self.bound(k) >= self.best - NEGLIGIBLE)

    def _fit(
        self, ks: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield ranges of beta, Chebyshev coefficients of log f there, and of which k they are.

        The ranges reach to where log f is far below its peak. Those k of which as many coefficients
        are enough come together; those of which the most are too few do not come.
        """
        upper, differentiate = self.beta_max, self.likelihood.differentiate
        peaks, widths = np.array([self.peaks[k] for k in ks.tolist()]).reshape(-1, 2).T
        heights = np.array([self.heights[k] for k in ks.tolist()])
        enough = -_SLACK * NEGLIGIBLE
        # By the curvature at the peak; a tail that falls more slowly is followed further.
        below = np.minimum(np.sqrt(2 * NEGLIGIBLE) * widths, upper)
        above = below.copy()
        # Of each k, log f beside its peak and two derivatives at each point.
        values = np.empty((len(ks), 3, _FEWEST + 1))
        at = np.arange(len(ks))
        while len(at):
            low, high = np.maximum(peaks - below, 0.0), np.minimum(peaks + above, upper)
            nodes = low[:, None] + (high - low)[:, None] * _chebyshev(_FEWEST)
            for i, k in zip(at.tolist(), ks[at].tolist(), strict=True):
                values[i] = differentiate(nodes[i], k)
                values[i, 0] -= heights[i]
            further_down = (low > 0.0) & (values[:, 0, 0] > enough)
            further_up = ~further_down & (high < upper) & (values[:, 0, -1] > enough)
            below[further_down] *= 1.5
            above[further_up] *= 1.5
            at = np.flatnonzero(further_down | further_up)
        n, at = _FEWEST, np.arange(len(ks))
        while len(at):
            # Derivatives on [-1, 1], where the polynomials live.
            scales = ((high - low)[at, None] / 2) ** np.arange(3)
            coefficients = (values * scales[:, :, None]).reshape(len(at), -1) @ _fit_matrix(n).T
            last = coefficients[:, -max(2, coefficients.shape[1] // 4) :]
            rough = np.abs(last).max(axis=1) > _TOLERANCE
            coefficients[:, 0] += heights[at]
            done = at[~rough]
            yield low[done], high[done], coefficients[~rough], done
            if n == _MOST:
                break
            at, known, n = at[rough], values[rough], 2 * n
            nodes = low[:, None] + (high - low)[:, None] * _chebyshev(n)
            values = np.empty((len(at), 3, n + 1))
            values[:, :, ::2] = known
            for row, i in zip(values, at.tolist(), strict=True):
                row[:, 1::2] = differentiate(nodes[i, 1::2], int(ks[i]))
                row[0, 1::2] -= heights[i]


@cache
def _chebyshev(n: int) -> np.ndarray:
    """Chebyshev's points of the second kind on [0, 1], rising; those of n are among those of 2n."""
    points = (1 - np.cos(np.pi * np.arange(n + 1) / n)) / 2
    points[[0, -1]] = 0.0, 1.0
    return points


@cache
def _fit_matrix(n: int) -> np.ndarray:
    """Return what gives Chebyshev's coefficients from values, slopes and curvatures at the points.

    All values come first, then all slopes; the polynomial has one coefficient for each of them.
    """
    x, size = 2 * _chebyshev(n) - 1, 3 * (n + 1)
    return np.linalg.inv(
        np.vstack([chebvander(x, size - 1 - m) @ chebder(np.eye(size), m) for m in range(3)])
    )


@cache
def _basis(size: int) -> np.ndarray:
    """Return Chebyshev's polynomials, a row each, at the nodes of even panels of [-1, 1]."""
    return chebvander(place_nodes(np.linspace(-1.0, 1.0, N_PANELS + 1))[0], size - 1).T
