"""Distributions of points and labels with a known P(y | x), for measurements of coverage."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax


class Mixture(NamedTuple):
    """Equally frequent classes, each an equal mixture of spherical normal distributions."""

    centres: tuple
    variance: float

    def sample(self, n, rng):
        """Draw n points and their labels."""
        y = rng.integers(len(self.centres), size=n)
        of_class = np.array(self.centres)[y]
        component = rng.integers(of_class.shape[1], size=n)
        means = of_class[np.arange(n), component]
        return means + np.sqrt(self.variance) * rng.normal(size=means.shape), y

    def probabilities(self, X):
        """Return the true class probabilities at the points."""
        gaps = X[:, None, None, :] - np.array(self.centres)[None]
        densities = np.exp(-0.5 * (gaps**2).sum(axis=3) / self.variance).sum(axis=2)
        return densities / densities.sum(axis=1, keepdims=True)


class Pattern(NamedTuple):
    """Two classes with a given P(class 1 | x), and x uniform in the unit cube by default."""

    n_columns: int
    probability: Callable[[np.ndarray], np.ndarray]
    draw: Callable = np.random.Generator.random

    def sample(self, n, rng):
        """Draw n points and their labels."""
        X = self.draw(rng, size=(n, self.n_columns))
        return X, (rng.random(n) < self.probability(X)).astype(int)

    def probabilities(self, X):
        """Return the true class probabilities at the points."""
        p = self.probability(X)
        return np.stack([1 - p, p], axis=1)


class Classes(NamedTuple):
    """Any number of classes with given log odds as functions of x; x is standard normal."""

    n_columns: int
    fields: Callable[[np.ndarray], np.ndarray]

    def sample(self, n, rng):
        """Draw n points and their labels."""
        X = rng.normal(size=(n, self.n_columns))
        cumulative = np.cumsum(self.probabilities(X), axis=1)[:, :-1]
        return X, (rng.random(n)[:, None] > cumulative).sum(axis=1)

    def probabilities(self, X):
        """Return the true class probabilities at the points."""
        return softmax(self.fields(X), axis=1)


def board(cells: int) -> Pattern:
    """Return a chess board of ``cells`` by ``cells`` fields with P(class 1) = 0.9 and 0.1."""
    return Pattern(
        2, lambda X: np.where(np.floor(cells * X).sum(axis=1) % 2 == 0, 0.9, 0.1)
    )  # fmt: skip


def _ring(X):
    radius = np.hypot(*(X - 0.5).T)
    return np.where((radius < 0.15) | (radius > 0.3), 0.9, 0.1)


SINE = Pattern(1, lambda X: 0.5 + 0.4 * np.sin(4 * np.pi * X[:, 0]))
FLAT = Pattern(2, lambda X: np.full(len(X), 0.5))
# P(class 1) is 0.9 in a disc and outside a larger disc, and 0.1 in the ring between the two.
RING = Pattern(2, _ring)
# Normal points in ten columns, with class 1 far from the centre.
QUADRATIC = Pattern(
    10, lambda X: expit(0.5 * ((X**2).sum(axis=1) - 10)), np.random.Generator.standard_normal
)
_STEP = 1.0 / np.sqrt(10)
TEN_COLUMNS = Mixture((((-_STEP,) * 10,), ((_STEP,) * 10,)), 1.0)
# The distribution that Ripley's points were drawn from (Ripley 1994).
RIPLEY = Mixture((((-0.7, 0.3), (0.3, 0.3)), ((-0.3, 0.7), (0.4, 0.7))), 0.03)
_normal = np.random.Generator.standard_normal
# Centres of twelve overlapping classes, on a grid of three by four.
_CENTRES = np.array([(a, b) for a in (-1.2, 0.0, 1.2) for b in (-1.5, -0.5, 0.5, 1.5)])
_ANGLES, _TENTHS = np.pi / 4 * np.arange(8), np.pi / 5 * np.arange(10)
# Distributions that were inspected during the development of the intervals. No constant was chosen
# on them.
UNSEEN = {
    "a step from 0.03 to 0.97 in one of six columns": Pattern(
        6, lambda X: np.where(X[:, 0] > 0, 0.97, 0.03), _normal
    ),
    "a slope in one of twelve columns": Pattern(12, lambda X: expit(3 * X[:, 0]), _normal),
    "a 2 × 2 board in two of six columns": Pattern(
        6, lambda X: np.where(X[:, 0] * X[:, 1] > 0, 0.9, 0.1), _normal
    ),
    "stairs of 0.02, 0.5 and 0.98, two columns": Pattern(
        2, lambda X: np.array([0.02, 0.5, 0.98])[np.floor(3 * X[:, 0]).astype(int)]
    ),
    "few positives: a bump of 0.5 on 0.002": Pattern(
        2, lambda X: 0.002 + 0.5 * np.exp(-((X - 0.4) ** 2).sum(axis=1) / 0.01)
    ),
    "few positives: a slope, 2 % in all": Pattern(3, lambda X: expit(2 * X[:, 0] - 5.5), _normal),
    "waves that grow shorter, one column": Pattern(
        1, lambda X: 0.5 + 0.45 * np.sin(12 * X[:, 0] ** 3)
    ),
    "twelve classes, two columns": Classes(
        2, lambda X: -4 * ((X[:, None] - _CENTRES) ** 2).sum(axis=2)
    ),
    "three classes of 90, 8 and 2 %, four columns": Classes(
        4,
        lambda X: np.column_stack([0 * X[:, 0], 1.5 * X[:, 0] - 3.4, 1.5 * X[:, 1] - 4.8]),
    ),
}
# Distributions that were written after the intervals were finished. No constant was chosen on them.
FRESH = {
    "eight classes around a circle, three columns more": Classes(
        5,
        lambda X: 4 * X[:, :2] @ np.array([np.cos(_ANGLES), np.sin(_ANGLES)]),
    ),
    "0.8 in a corner, 0.005 elsewhere, five columns": Pattern(
        5, lambda X: np.where((X[:, 0] > 0.75) & (X[:, 1] > 0.75), 0.8, 0.005)
    ),
    "smooth to the left, jagged to the right, two columns": Pattern(
        2, lambda X: 0.5 + 0.45 * np.sin(np.where(X[:, 0] < 0.5, 4, 40) * X.sum(axis=1))
    ),
    "a step from 0.05 to 0.95 in one of ten columns": Pattern(
        10, lambda X: np.where(X[:, 3] > 0.4, 0.95, 0.05)
    ),
    "few positives about two points, four columns": Pattern(
        4,
        lambda X: (
            0.003
            + 0.6
            * sum(np.exp(-2 * ((X[:, :2] - c) ** 2).sum(axis=1)) for c in ((1, 1), (-1.5, 0))) ** 3
        ),
        _normal,
    ),
    "ten classes, two of four columns": Classes(
        4, lambda X: 2.5 * X[:, :2] @ np.array([np.cos(_TENTHS), np.sin(_TENTHS)]) + _TENTHS % 2
    ),
    # The distributions below were added later, when the intervals were changed to divide pairs by
    # their correlation and to add up the effects of columns.
    "a slope along two of fifteen columns": Pattern(
        15, lambda X: expit(2 * X[:, 0] - 2 * X[:, 1]), _normal
    ),
    "three waves added, five columns": Pattern(
        5, lambda X: expit(1.2 * np.sin(3 * X[:, :3]).sum(axis=1)), _normal
    ),
    "a band of 0.9 in 0.1, three columns": Pattern(
        3, lambda X: np.where(np.abs(X[:, 0]) < 0.5, 0.9, 0.1), _normal
    ),
    "a slope that bends with another column, eight columns": Pattern(
        8, lambda X: expit(2 * X[:, 0] * (1 + X[:, 1])), _normal
    ),
    "four classes, a column for each, six columns": Classes(6, lambda X: 2 * X[:, :4]),
    "heavy tails, four columns": Pattern(
        4, lambda X: expit(X[:, 0] + X[:, 1]), lambda rng, size: rng.standard_t(3, size)
    ),
    "a step from 0.05 to 0.95 along the sum of two of twelve columns": Pattern(
        12, lambda X: np.where(X[:, 0] + X[:, 1] > 0, 0.95, 0.05), _normal
    ),
    "five columns of four values, two of them with an effect": Pattern(
        5,
        lambda X: np.where((X[:, 0] + X[:, 1]) % 2 == 0, 0.85, 0.15),
        lambda rng, size: rng.integers(4, size=size).astype(float),
    ),
}
