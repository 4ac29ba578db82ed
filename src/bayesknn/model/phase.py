"""The phase transition, and the beta_max beyond which the model is black or white (Section 3).

For large beta all neighbours agree, and the labels no longer tell one beta from another. What is
followed is the share of directed edges whose ends agree, ``E[S_k] / (n k)``: it rises from
``1 / G`` at beta = 0 to 1. The model of k counts as black or white where that share has gone 98 %
of the way, which for two classes is where one edge in a hundred disagrees. beta_max is the smallest
beta beyond which this holds for every k, rounded up to two digits: the prior is one rectangle for
all k, so the slowest k decides. As a rule that is k = 2, whose graph is long chains and small
pieces hanging together by single edges.

The 98 % is a convention, not a result. It was set so that Ripley's data get a range like the
paper's, which settled on 4 by trial and error: exact curves there give 3.6, 4.2, 4.7 and 5.6 at
95, 97, 98 and 99 %, each time with k = 2 decisive. Agreement with the paper is thus no evidence
for the rule. ``threshold`` changes it.

The share grows with beta, since its derivative is a variance. Near the threshold disagreements
are isolated and become rarer exponentially, so the crossing is interpolated in their logarithm.
With class weights the share is still the plain count of edges that agree: weights say which colour
wins, not whether there is one colour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from bayesknn._utils.checks import check_count
from bayesknn.model.checks import check_n_classes

Simulate = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]

_FIRST_BETA = 4.0
_MAX_DOUBLINGS = 12
_N_REFINEMENTS = 4
_NEARLY = 0.7
# How far beyond beta_max the curve is drawn.
_MARGIN = 1.25
# Smaller errors and disagreements than these are not told apart.
_LEAST_ERROR = 1e-4
_LEAST_DISAGREEMENT = 1e-6


@dataclass(frozen=True, eq=False)
class PhaseCurve:
    """The share of neighbours that agree, as simulated, and the beta_max that it gives.

    Attributes
    ----------
    k, beta : ndarray of shape (n_simulations,)
        Where the model was simulated, sorted by k, then by beta.
    agreement, error : ndarray of shape (n_simulations,)
        The share of directed edges whose ends agree there, and its Monte Carlo error.
    n_classes : int
    threshold : float
        The part of the way from ``1 / n_classes`` to 1 at which the model is black or white.
    k_values : ndarray
        The different k.
    crossings : ndarray of the shape of ``k_values``
        The beta at which each k reaches the threshold; but for the slowest k, a guess where there
        is no curve for plotting.
    crossing_errors : ndarray of the shape of ``k_values``
        Monte Carlo errors of the crossings.
    beta_max : float
        The largest crossing, as found before the curve was added, rounded up to two digits.
    """

    k: np.ndarray
    beta: np.ndarray
    agreement: np.ndarray
    error: np.ndarray
    n_classes: int
    threshold: float
    k_values: np.ndarray
    crossings: np.ndarray
    crossing_errors: np.ndarray
    beta_max: float

    @property
    def decisive_k(self) -> int:
        """The k that reaches the threshold last."""
        return int(self.k_values[np.argmax(self.crossings)])

    @property
    def agreement_threshold(self) -> float:
        """The threshold as a share of edges that agree, for a line in a plot."""
        return self.threshold + (1 - self.threshold) / self.n_classes

    def curve(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return beta, agreement and error of one k, beta increasing."""
        if k not in self.k_values:
            raise ValueError(f"k={k} was not simulated, only k in {self.k_values.tolist()}")
        rows = self.k == k
        return self.beta[rows], self.agreement[rows], self.error[rows]


def choose_k_values(k_max: int, n_values: int = 5) -> np.ndarray:
    """Choose a few k that stand for all of 1..k_max: 1, 2, 3, then log-spaced ones.

    The small ones differ most from each other, and one of them is usually the slowest.

    Examples
    --------
    >>> from bayesknn.model import choose_k_values
    >>> choose_k_values(125).tolist()
    [1, 2, 3, 19, 125]
    """
    k_max = check_count(k_max, "k_max")
    n_values = check_count(n_values, "n_values", 4)
    spaced = np.geomspace(min(3, k_max), k_max, n_values - 2).round()
    values = np.unique(np.concatenate([[1, 2, 3], spaced])).astype(np.int64)
    return values[values <= k_max]


def locate_beta_max(
    simulate: Simulate,
    k_values: Iterable[int],
    n_classes: int,
    *,
    threshold: float = 0.98,
    n_betas: int = 12,
) -> PhaseCurve:
    """Find the smallest beta beyond which the model is black or white for every k.

    Parameters
    ----------
    simulate : callable
        ``simulate(betas, k)`` returns two arrays of the shape of ``betas``: the mean share of
        directed edges whose ends agree, E[S_k] / (n k) without class weights in S, and its Monte
        Carlo error (zeros if it is exact).
    k_values : iterable of int
        A few k that stand for the range of the prior, see :func:`choose_k_values`.
    n_classes : int
    threshold : float
        The part of the way from ``1 / n_classes`` to 1 at which the model counts as black or
        white.
    n_betas : int
        How many more points of each k's curve are simulated for plotting, evenly spaced from 0 to
        a little beyond beta_max, which does not depend on them.

    Returns
    -------
    PhaseCurve

    Examples
    --------
    A ring of n points at k = 1, for which the share that agree is ``1 / (1 + exp(-beta))``:

    >>> import numpy as np
    >>> from bayesknn.model import locate_beta_max
    >>> def simulate(betas, k):
    ...     return 1 / (1 + np.exp(-betas)), np.zeros(len(betas))
    >>> curve = locate_beta_max(simulate, k_values=[1], n_classes=2)
    >>> curve.beta_max, curve.crossings.round(2).tolist()
    (4.6, [4.6])
    """
    n_classes = check_n_classes(n_classes)
    n_betas = check_count(n_betas, "n_betas", 0)
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must lie strictly between 0 and 1, got {threshold}")
    search = _Search(simulate, k_values, n_classes, 1 - threshold)
    search.bracket()
    # Between far points a crossing is a guess: those that may be the slowest get a point there. A
    # k that has crossed where another has not is none of them.
    guesses = {k: search.cross(k)[0] for k in search.k_values}
    latest = max(search.last_below(k) for k in search.k_values)
    for k, guess in guesses.items():
        if guess > _NEARLY * max(guesses.values()) and search.first_above(k) > latest:
            search.add(k, [guess])
    for _ in range(_N_REFINEMENTS):
        k, crossing = search.find_slowest()
        search.add(k, [crossing])
    _, slowest = search.find_slowest()
    grid = np.linspace(0.0, _MARGIN * slowest, n_betas + 1)[1:]
    for k in search.k_values if n_betas else ():
        search.add(k, grid)
    return search.conclude(slowest)


class _Search:
    """What has been simulated so far, and what it says about the crossings."""

    def __init__(self, simulate: Simulate, k_values: Iterable[int], n_classes: int, level: float):
        self.simulate = simulate
        self.k_values = sorted({check_count(k, "k_values") for k in k_values})
        if not self.k_values:
            raise ValueError("k_values is empty: give at least one k")
        self.n_classes = n_classes
        self.level = level
        self.points: dict[int, list[tuple[float, float, float]]] = {k: [] for k in self.k_values}

    def add(self, k: int, betas: Iterable[float]) -> None:
        betas = np.asarray(betas, dtype=np.float64)
        mean, error = (np.asarray(a, dtype=np.float64) for a in self.simulate(betas, k))
        if mean.shape != betas.shape or error.shape != betas.shape:
            raise ValueError(
                f"simulate must return a mean and an error for each of {len(betas)} betas, "
                f"got shapes {mean.shape} and {error.shape}"
            )
        for value in (*mean, *error):
            if not 0 <= value <= 1 + 1e-9:
                raise ValueError(f"simulate must return shares and errors in [0, 1], got {value}")
        self.points[k].extend(zip(betas.tolist(), mean.tolist(), error.tolist(), strict=True))

    def disagreement(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Beta, the part of the way left to go, and its error; beta = 0 is known."""
        beta, agreement, error = np.array([(0.0, 1 / self.n_classes, 0.0), *self.points[k]]).T
        order = np.argsort(beta, kind="stable")
        scale = self.n_classes / (self.n_classes - 1)
        return beta[order], (1 - agreement[order]) * scale, error[order] * scale

    def bracket(self) -> None:
        """Simulate every k below and above its threshold, doubling or halving beta."""
        top = _FIRST_BETA
        below = self._below(self.k_values, top)
        if not below:
            for _ in range(_MAX_DOUBLINGS):
                top /= 2
                if self._below(self.k_values, top):
                    break
            return
        for _ in range(_MAX_DOUBLINGS):
            top *= 2
            below = self._below(below, top)
            if not below:
                return
        raise ValueError(
            f"at k={below[0]} neighbours still disagree at beta={top:g}: "
            "the model does not become black or white, so beta_max must be given"
        )

    def last_below(self, k: int) -> float:
        """Return the largest beta at which k was seen below its threshold."""
        beta, left, _ = self.disagreement(k)
        return float(beta[left > self.level].max())

    def first_above(self, k: int) -> float:
        """Return the smallest beta at which k was seen above its threshold."""
        beta, left, _ = self.disagreement(k)
        return float(beta[left <= self.level].min())

    def _below(self, k_values: list[int], beta: float) -> list[int]:
        for k in k_values:
            self.add(k, [beta])
        scale = self.n_classes / (self.n_classes - 1)
        return [k for k in k_values if (1 - self.points[k][-1][1]) * scale > self.level]

    def cross(self, k: int) -> tuple[float, float]:
        """Return where k crosses the threshold, and the Monte Carlo error of that beta."""
        # Imported here because it takes longer to import than all of this package.
        from scipy.optimize import isotonic_regression

        beta, left, error = self.disagreement(k)
        spread = np.maximum(error, _LEAST_ERROR)
        # The truth decreases in beta; the simulations need not.
        fitted = isotonic_regression(left, weights=spread**-2, increasing=False).x
        log_fitted = np.log(np.maximum(fitted, _LEAST_DISAGREEMENT))

        def find_beta(log_left: float) -> float:
            return float(np.interp(-log_left, -log_fitted, beta))

        level = np.log(self.level)
        crossing = find_beta(level)
        # The noise near the crossing, and the steepness over a range that is wide beside it.
        after = int(np.clip(np.count_nonzero(log_fitted > level), 1, len(beta) - 1))
        gap = beta[after] - beta[after - 1]
        # A beta that was simulated twice may stand on both sides.
        share = (crossing - beta[after - 1]) / gap if gap > 0 else 0.5
        noise = np.hypot((1 - share) * error[after - 1], share * error[after])
        high = min(level + np.log(4), level / 2)
        low = max(level - np.log(4), log_fitted[-1])
        steepness = (high - low) / (find_beta(low) - find_beta(high))
        return crossing, float(noise / self.level / steepness)

    def find_slowest(self) -> tuple[int, float]:
        crossings = {k: self.cross(k)[0] for k in self.k_values}
        return max(crossings.items(), key=lambda item: item[1])

    def conclude(self, slowest: float) -> PhaseCurve:
        rows = [(k, *point) for k in self.k_values for point in sorted(self.points[k])]
        k, beta, agreement, error = np.array(rows).T
        crossings, errors = np.array([self.cross(k) for k in self.k_values]).T
        return PhaseCurve(
            k=k.astype(np.int64),
            beta=beta,
            agreement=agreement,
            error=error,
            n_classes=self.n_classes,
            threshold=1 - self.level,
            k_values=np.array(self.k_values),
            crossings=crossings,
            crossing_errors=errors,
            beta_max=_round_up(slowest),
        )


def _round_up(value: float) -> float:
    """Round up to two significant digits."""
    exponent = int(np.floor(np.log10(value))) - 1
    digits = np.ceil(value * 10.0**-exponent - 1e-9)
    return float(digits * 10.0**exponent) if exponent >= 0 else float(digits / 10.0**-exponent)
