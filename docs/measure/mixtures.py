"""Distributions with a known P(y | x): mixtures of normal ones, and patterns in a square."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit


class Mixture(NamedTuple):
    """Two classes, equally frequent, each an equal mixture of round normal distributions."""

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
    """Points uniform in the unit cube, or as drawn, and P(class 1) a function of x."""

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


def board(cells: int) -> Pattern:
    """Return a chess board of ``cells`` by ``cells`` fields, with P = .9 and .1."""
    return Pattern(
        2, lambda X: np.where(np.floor(cells * X).sum(axis=1) % 2 == 0, 0.9, 0.1)
    )  # fmt: skip


def _far_out(X):
    radius = np.hypot(*(X - 0.5).T)
    return np.where((radius < 0.15) | (radius > 0.3), 0.9, 0.1)


SINE = Pattern(1, lambda X: 0.5 + 0.4 * np.sin(4 * np.pi * X[:, 0]))
FLAT = Pattern(2, lambda X: np.full(len(X), 0.5))
# A ring of one class around a core of the other, which lies inside more of its own.
RING = Pattern(2, _far_out)
# Class 1 far from the centre, normal points in ten columns.
QUADRATIC = Pattern(
    10, lambda X: expit(0.5 * ((X**2).sum(axis=1) - 10)), np.random.Generator.standard_normal
)
_STEP = 1.0 / np.sqrt(10)
TEN_COLUMNS = Mixture((((-_STEP,) * 10,), ((_STEP,) * 10,)), 1.0)
# The distribution that Ripley's points were drawn from (Ripley 1994).
RIPLEY = Mixture((((-0.7, 0.3), (0.3, 0.3)), ((-0.3, 0.7), (0.4, 0.7))), 0.03)
