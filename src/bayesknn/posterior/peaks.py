"""The posterior of (beta, k) where log f(y | beta, k) is concave in beta (eqs. jointHA and psudoL).

A product of conditionals has one peak in beta for each k, found in a few steps of Newton's method.
Around it log f is so smooth that a polynomial gives it on any grid: one that has its value, slope
and curvature at a handful of Chebyshev points, twice as many until the last coefficients vanish. A
k costs five or nine looks at the likelihood, and none but the climb where the height of its peak,
times all of the prior's mass, is still too small to matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import comb

import numpy as np
from numpy.polynomial.chebyshev import chebder, chebval, chebvander

from bayesknn.likelihood.products import ConditionalProduct
from bayesknn.model import Prior

# What is left out, in all, beside the best k: exp(-22) for each k, and as much for the tails.
_NEGLIGIBLE = 22.0
# Error of a peak's place in units of its width, and error allowed on log f.
_PRECISION, _TOLERANCE = 0.01, 1e-8
# Part of the drop that must be reached: the tails beyond hold little.
_SLACK = 0.85
# So many k are weighed at once; the likelihood of each is a call of its own.
_BATCH = 64
# Intervals between Chebyshev points, first and last.
_FEWEST, _MOST = 4, 32
# Every so many k are looked at first, so that the others may be left early.
_STRIDE = 16
# Gregory's coefficients of the differences at the ends, of order 0, 1, ...
_GREGORY = (1 / 2, 1 / 12, 1 / 24, 19 / 720, 3 / 160, 863 / 60480)
# The grid is narrowed until this many points carry a k's mass.
_MIN_HEAVY = 24


def weigh_peaks(
    likelihood: ConditionalProduct, prior: Prior, n_betas: int = 161
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each k that matters, an even grid of beta over its mass, and the log masses there.

    Parameters
    ----------
    likelihood : ConditionalProduct
    prior : Prior
    n_betas : int
        Points of each grid.

    Returns
    -------
    k_values : ndarray of shape (n_k,)
    betas, log_mass : ndarray of shape (n_k, n_betas)
        Log likelihood plus log prior plus the log weight of the rule of :func:`even_weights`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import PseudoLikelihood
    >>> from bayesknn.model import UniformPrior
    >>> from bayesknn.posterior.peaks import weigh_peaks
    >>> ripley = load_ripley()
    >>> graph = NeighborGraph.from_points(ripley.X_train, k_max=125)
    >>> likelihood = PseudoLikelihood(graph, ripley.y_train)
    >>> k, beta, log_mass = weigh_peaks(likelihood, UniformPrior(125, 4.0))
    >>> mass = np.exp(log_mass)
    >>> round(float((beta * mass).sum() / mass.sum()), 3)
    2.447
    """
    ks = np.arange(1, prior.k_max + 1)
    log_prior = prior.log_density(np.linspace(0.0, prior.beta_max, n_betas), ks[:, None])
    # Between two points of this grid a prior may rise a little above both.
    top = log_prior.max(axis=1) + np.log(prior.beta_max) + 1.0
    # Where log f has fallen by this the prior cannot make up for it.
    with np.errstate(invalid="ignore"):
        slopes = np.where(np.isfinite(top), log_prior.max(axis=1) - log_prior.min(axis=1), 0.0)
    flat = log_prior[:, 0] if np.all(slopes == 0.0) else None
    ascent = _Ascent(likelihood, prior, top, _NEGLIGIBLE + slopes.max(), n_betas, flat)
    possible = ks[np.isfinite(top)]
    for k in possible[::_STRIDE].tolist():
        ascent.climb(k)
    ascent.weigh([max(ascent.heights, key=ascent.bound)])
    for k in possible.tolist():
        if k not in ascent.heights:
            ascent.climb(k)
    promising = sorted(ascent.heights, key=ascent.bound, reverse=True)
    for first in range(0, len(promising), _BATCH):
        ascent.weigh(promising[first : first + _BATCH])
    kept = sorted(ascent.found)
    betas, log_masses = zip(*(ascent.found[k] for k in kept), strict=True)
    return np.array(kept), np.array(betas), np.array(log_masses)


class _Ascent:
    """The peaks found so far, and the log masses of those that were weighed."""

    def __init__(
        self,
        likelihood: ConditionalProduct,
        prior: Prior,
        top: np.ndarray,
        drop: float,
        n_betas: int,
        flat: np.ndarray | None,
    ):
        self.likelihood, self.prior, self.top = likelihood, prior, top
        self.drop, self.n_betas, self.flat = drop, n_betas, flat
        self.heights: dict[int, float] = {}
        self.peaks: dict[int, tuple[float, float]] = {}
        self.found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.best = -np.inf
        self._start = min(1.0, prior.beta_max / 2)

    def bound(self, k: int) -> float:
        """Return what the log mass of k cannot exceed."""
        return self.heights[k] + self.top[k - 1]

    def climb(self, k: int) -> None:
        floor = self.best - _NEGLIGIBLE - self.top[k - 1]
        beta, self.heights[k], width = self.likelihood.climb(
            k, self._start, self.prior.beta_max, _PRECISION, floor
        )
        self.peaks[k] = beta, width
        if beta > 0.0:
            self._start = beta

    def weigh(self, ks: list[int]) -> None:
        """Weigh each k in turn, up to the first that is too low to matter."""
        ks = [k for k in ks if self.matters(k) and k not in self.found]
        found = {}
        for low, high, coefficients, at in self._fit(np.array(ks, dtype=np.int64)):
            betas = np.linspace(low, high, self.n_betas, axis=1)
            curves = coefficients @ _even_basis(coefficients.shape[1], self.n_betas)
            log_masses = self._add_prior(curves, betas, np.array(ks)[at])
            for i, k in enumerate(np.array(ks)[at].tolist()):
                found[k] = self._narrow(k, betas[i], log_masses[i], coefficients[i])
        for k in ks:
            if not self.matters(k):
                break
            self.found[k] = found[k]
            self.best = max(self.best, float(np.logaddexp.reduce(found[k][1])))

    def matters(self, k: int) -> bool:
        return bool(self.bound(k) >= self.best - _NEGLIGIBLE)

    def _narrow(
        self, k: int, betas: np.ndarray, log_mass: np.ndarray, coefficients: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take a finer grid where the prior moves the mass: the polynomial serves for it, too."""
        low, high = betas[0], betas[-1]
        while True:
            heavy = (log_mass > log_mass.max() - _NEGLIGIBLE).nonzero()[0]
            first, last = max(heavy[0] - 1, 0), min(heavy[-1] + 1, self.n_betas - 1)
            if last - first >= _MIN_HEAVY:
                return betas, log_mass
            betas = np.linspace(betas[first], betas[last], self.n_betas)
            curve = chebval((2 * betas - low - high) / (high - low), coefficients)
            log_mass = self._add_prior(curve[None], betas[None], np.array([k]))[0]

    def _add_prior(self, curves: np.ndarray, betas: np.ndarray, ks: np.ndarray) -> np.ndarray:
        """Return log masses: log f plus log prior plus the log weight of each point."""
        if self.flat is not None:
            log_prior = self.flat[ks - 1][:, None]
        else:
            log_prior = self.prior.log_density(betas, ks[:, None])
        steps = betas[:, 1] - betas[:, 0]
        return curves + log_prior + np.log(steps[:, None] * even_weights(self.n_betas))

    def _fit(
        self, ks: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield ranges of beta, Chebyshev coefficients of log f there, and of which k they are.

        The ranges reach to where log f is below its peak by ``drop``. Those k of which as many
        coefficients are enough come together.
        """
        upper, expand = self.prior.beta_max, self.likelihood.expand
        peaks, widths = np.array([self.peaks[k] for k in ks.tolist()]).reshape(-1, 2).T
        heights = np.array([self.heights[k] for k in ks.tolist()])
        enough = -_SLACK * self.drop
        # By the curvature at the peak; a tail that falls more slowly is followed further.
        below = np.minimum(np.sqrt(2 * self.drop) * widths, upper)
        above = below.copy()
        # Of each k, log f beside its peak and two derivatives at each point.
        looks = np.empty((len(ks), 3, _FEWEST + 1))
        at = np.arange(len(ks))
        while len(at):
            low, high = np.maximum(peaks - below, 0.0), np.minimum(peaks + above, upper)
            nodes = low[:, None] + (high - low)[:, None] * _chebyshev(_FEWEST)
            for i, k in zip(at.tolist(), ks[at].tolist(), strict=True):
                looks[i] = expand(nodes[i], k)
                looks[i, 0] -= heights[i]
            further_down = (low > 0.0) & (looks[:, 0, 0] > enough)
            further_up = ~further_down & (high < upper) & (looks[:, 0, -1] > enough)
            below[further_down] *= 1.5
            above[further_up] *= 1.5
            at = np.flatnonzero(further_down | further_up)
        n, at = _FEWEST, np.arange(len(ks))
        while len(at):
            # Derivatives on [-1, 1], where the polynomials live.
            scales = ((high - low)[at, None] / 2) ** np.arange(3)
            coefficients = (looks * scales[:, :, None]).reshape(len(at), -1) @ _fit_matrix(n).T
            last = coefficients[:, -max(2, coefficients.shape[1] // 4) :]
            rough = (np.abs(last).max(axis=1) > _TOLERANCE) & (n < _MOST)
            coefficients[:, 0] += heights[at]
            done = at[~rough]
            yield low[done], high[done], coefficients[~rough], done
            at, known, n = at[rough], looks[rough], 2 * n
            nodes = low[:, None] + (high - low)[:, None] * _chebyshev(n)
            looks = np.empty((len(at), 3, n + 1))
            looks[:, :, ::2] = known
            for look, i in zip(looks, at.tolist(), strict=True):
                look[:, 1::2] = expand(nodes[i, 1::2], int(ks[i]))
                look[0, 1::2] -= heights[i]


@cache
def even_weights(n: int) -> np.ndarray:
    """Return the weights of Gregory's rule on n even points one apart.

    The trapezium rule, of which the ends are corrected by differences up to the fifth. It is no
    better than that where the mass lies inside, and is needed where beta_max or 0 cuts it.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.posterior.peaks import even_weights
    >>> x = np.linspace(0.0, 1.0, 41)
    >>> round(float(even_weights(41) @ np.exp(-8 * x) / 40 / (1 - np.exp(-8.0)) * 8), 6)
    1.0
    """
    weights = np.ones(n)
    ends = np.zeros(len(_GREGORY) + 1)
    for order, coefficient in enumerate(_GREGORY):
        for at in range(order + 1):
            ends[at] -= coefficient * (-1) ** at * comb(order, at)
    weights[: len(ends)] += ends
    weights[-len(ends) :] += ends[::-1]
    return weights


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
def _even_basis(size: int, n_betas: int) -> np.ndarray:
    """Return Chebyshev's polynomials, a row each, at even points of [-1, 1]."""
    return chebvander(np.linspace(-1.0, 1.0, n_betas), size - 1).T
