"""Laws of (x, y) with a known P(y | x), and the draws of them that coverage was measured on."""

import numpy as np


def _two(p1):
    return np.column_stack([1 - p1, p1])


class Direct:
    """x uniform on the unit cube, then y from P(. | x)."""

    def __init__(self, n_columns, probabilities):
        self.n_columns, self.probabilities = n_columns, probabilities

    def sample(self, n, rng):
        X = rng.uniform(0.0, 1.0, size=(n, self.n_columns))
        chances = self.probabilities(X)
        return X, (rng.random(n)[:, None] > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)


class Normals:
    """Classes equally frequent, each an equal mixture of round normal laws about its centres."""

    def __init__(self, centres, variances):
        self.centres = [np.atleast_2d(np.asarray(c, float)) for c in centres]
        self.variances = np.broadcast_to(np.asarray(variances, float), (len(self.centres),))

    def sample(self, n, rng):
        n_classes = len(self.centres)
        y = rng.choice(n_classes, size=n, p=np.full(n_classes, 1 / n_classes))
        p = self.centres[0].shape[1]
        X = np.empty((n, p))
        for g, c in enumerate(self.centres):
            at = np.flatnonzero(y == g)
            X[at] = c[rng.integers(len(c), size=at.size)]
            X[at] += np.sqrt(self.variances[g]) * rng.normal(size=(at.size, p))
        return X, y

    def probabilities(self, X):
        logs = []
        for c, variance in zip(self.centres, self.variances, strict=True):
            squares = ((X[:, None, :] - c[None]) ** 2).sum(axis=2) / variance
            inside = np.logaddexp.reduce(-0.5 * squares, axis=1) - np.log(len(c))
            logs.append(inside - 0.5 * X.shape[1] * np.log(variance))
        logs = np.array(logs).T
        relative = np.exp(logs - logs.max(axis=1, keepdims=True))
        return relative / relative.sum(axis=1, keepdims=True)


def _apart(n_columns, distance):
    u = np.full(n_columns, distance / 2 / np.sqrt(n_columns))
    return [[-u], [u]]


def _hexagon(radius):
    angles = np.pi / 3 * np.arange(6)
    return [[[radius * np.cos(t), radius * np.sin(t)]] for t in angles]


LAWS = {
    "ripley": Normals([[(-0.7, 0.3), (0.3, 0.3)], [(-0.3, 0.7), (0.4, 0.7)]], 0.03),
    "sine1": Direct(1, lambda X: _two(0.5 + 0.4 * np.sin(4 * np.pi * X[:, 0]))),
    "xor": Direct(2, lambda X: _two(np.where((X[:, 0] < 0.5) == (X[:, 1] < 0.5), 0.9, 0.1))),
    "lda10": Normals(_apart(10, 2.0), 1.0),
    "mix6": Normals(_hexagon(1.5), 0.4),
    "sep": Normals([[(-2.5, 0.0)], [(2.5, 0.0)]], 1.0),
    "spread10": Normals([[np.zeros(10)], [np.zeros(10)]], (1.0, 2.0)),
}


def draw(law, n, seed, m=400):
    """Return training points and labels, new points, their true P, and K."""
    rng, law = np.random.default_rng([seed, n]), LAWS[law]
    n_classes = law.probabilities(law.sample(2, np.random.default_rng(0))[0]).shape[1]
    while True:
        X, y = law.sample(n, rng)
        sizes = np.bincount(y, minlength=n_classes)
        if sizes.min() >= 2:
            break
    new, _ = law.sample(m, rng)
    return X, y, new, law.probabilities(new), int(min(sizes.min(), n - 1, 500))
