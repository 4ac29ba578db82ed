"""Mixtures of normal laws, where the true P(y | x) is known."""

from typing import NamedTuple

import numpy as np


class Mixture(NamedTuple):
    """Two classes, equally frequent, each an equal mixture of round normal laws."""

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


# The law that Ripley's points were drawn from (Ripley 1994).
RIPLEY = Mixture((((-0.7, 0.3), (0.3, 0.3)), ((-0.3, 0.7), (0.4, 0.7))), 0.03)
