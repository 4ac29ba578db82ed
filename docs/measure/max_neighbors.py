"""Choice of the default K: log-loss of the pseudo-likelihood by K, on simulated and real tables.

``python docs/measure max_neighbors`` writes max_neighbors.json in about ten minutes on one core. A
single neighbour search suffices for all K, because the posterior under a uniform prior on {1..K} is
a mixture of the posteriors at fixed k, weighted by their evidence.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from bayesknn.datasets import load_glass, load_pima, load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.labels import find_beta_max
from bayesknn.likelihood import PseudoLikelihood
from kept import HERE, describe_measurement

FILE = HERE / "max_neighbors.json"
N_REPEATS, N_TEST = 6, 400
# Number of grid points of beta for the posterior at a fixed k, and number of its quantiles over
# which predictions are averaged.
N_BETAS, N_QUANTILES = 160, 10
LARGEST = 200

Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Rule = Callable[[np.ndarray], float]


def smallest_or_typical(sizes: np.ndarray) -> float:
    """Return the size of the smallest class or, if larger, half the mean class size of a point."""
    return max(sizes.min(), sizes @ sizes // (2 * sizes.sum()))


def at_least(factor: float, power: float = 0.5) -> Rule:
    """Return a rule: ``smallest_or_typical``, but at least ``factor * n ** power``."""
    return lambda sizes: max(smallest_or_typical(sizes), factor * sizes.sum() ** power)


def at_least_in_many_rows(sizes: np.ndarray) -> float:
    """Return ``smallest_or_typical``, but at least the smaller of 2 √n and (n - 80) / 8."""
    n = sizes.sum()
    return max(smallest_or_typical(sizes), min(2 * n**0.5, (n - 80) / 8))


RULES: dict[str, Rule] = {
    "smallest or typical class": smallest_or_typical,
    "at least √n": at_least(1.0),
    "at least 2 √n": at_least(2.0),
    "at least 3 √n": at_least(3.0),
    "at least 40": at_least(40.0, 0.0),
    "at least n / 10": at_least(0.1, 1.0),
    "at least 2 √n in many rows": at_least_in_many_rows,
    "at least twice the mean class": lambda sizes: max(
        smallest_or_typical(sizes), 2 * sizes.mean() if len(sizes) > 2 else 0
    ),
}
BEFORE, CHOSEN = "smallest or typical class", "at least 2 √n in many rows"


def simulate(n_classes: int, mean_size: int, p: int, separation: float, kind: str) -> Any:
    """Return a function that draws training and test points of normal classes from a seed."""

    def draw(seed: int) -> Data:
        rng = np.random.default_rng(seed)
        proportions = {
            "equal": np.ones(n_classes),
            "one large": np.r_[n_classes, np.ones(n_classes - 1)],
        }[kind]
        proportions = proportions / proportions.sum()
        # Every class has at least two points; the sizes beyond that are random.
        sizes = rng.multinomial(n_classes * (mean_size - 2), proportions) + 2
        centres = separation * rng.normal(size=(n_classes, p))
        y = np.repeat(np.arange(n_classes), sizes)
        y_test = rng.choice(n_classes, N_TEST, p=sizes / sizes.sum())
        X, X_test = (centres[labels] + rng.normal(size=(len(labels), p)) for labels in (y, y_test))
        return X, y, X_test, y_test

    return draw


def divide(X: np.ndarray, y: np.ndarray, n: int) -> Any:
    """Return a function that draws n standardised training rows, and test rows, from a seed.

    Classes with one training row are dropped.
    """

    def draw(seed: int) -> Data:
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:n], order[n:]
        names, sizes = np.unique(y[train], return_counts=True)
        names = names[sizes > 1]
        train, test = (rows[np.isin(y[rows], names)] for rows in (train, test))
        scale = StandardScaler().fit(X[train])
        X_train, X_test = scale.transform(X[train]), scale.transform(X[test])
        return X_train, np.searchsorted(names, y[train]), X_test, np.searchsorted(names, y[test])

    return draw


def make_sets() -> Iterator[tuple[str, Any]]:
    """Yield the name of each set and the function that draws it from a seed."""
    for n_classes in (2, 3, 5, 8, 12, 20, 50):
        for mean_size in (6, 20, 50):
            if not 12 <= n_classes * mean_size <= 1000:
                continue
            for p, separation in ((2, 1.0), (2, 3.0), (8, 1.0)):
                for kind in ("equal", "one large"):
                    about = f"{kind}, p = {p}, separation {separation:g}"
                    draw = simulate(n_classes, mean_size, p, separation, kind)
                    yield f"{n_classes} classes of {mean_size}, {about}", draw
    for name, load, sizes in (
        ("iris", load_iris, (30, 100)),
        ("wine", load_wine, (30, 100)),
        ("breast cancer", load_breast_cancer, (30, 100, 400)),
        ("digits", load_digits, (60, 100, 200, 400)),
    ):
        X, y = load(return_X_y=True)
        for n in sizes:
            yield f"{name}, {n} rows", divide(X, y, n)
    for name, load in (("Ripley", load_ripley), ("Pima", load_pima), ("glass", load_glass)):
        data = load()
        X, y = np.vstack([data.X_train, data.X_test]), np.r_[data.y_train, data.y_test]
        yield name, divide(X, np.unique(y, return_inverse=True)[1], len(data.y_train))


def measure_losses(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, k_max: int
) -> np.ndarray:
    """Return the test log-loss for each K up to ``k_max``, shape (k_max,)."""
    n_classes = int(y.max()) + 1
    graph = NeighborGraph.from_points(X, k_max)
    beta_max = find_beta_max(graph, n_classes, random_state=0).beta_max
    betas = (np.arange(N_BETAS) + 0.5) / N_BETAS * beta_max
    log_likelihood = PseudoLikelihood(graph, y, n_classes).log_density_grid(betas)
    log_evidence = logsumexp(log_likelihood, axis=1)
    log_p = np.empty((k_max, len(y_test)))
    levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    for at, counts in enumerate(graph.query(X_test).counts(y, n_classes)):
        quantiles = np.interp(levels, np.cumsum(softmax(log_likelihood[at])), betas)
        ahead = (counts - counts[np.arange(len(y_test)), y_test][:, None]) / (at + 1)
        each = [-logsumexp(beta * ahead, axis=1) for beta in quantiles]
        log_p[at] = logsumexp(each, axis=0) - np.log(N_QUANTILES)
    joint = np.logaddexp.accumulate(log_evidence[:, None] + log_p, axis=0)
    return -(joint - np.logaddexp.accumulate(log_evidence)[:, None]).mean(axis=1)


def write() -> None:
    """Measure all sets and store the mean log-loss of each rule."""
    measured = describe_measurement()
    sets: dict[str, Any] = {}
    for name, draw in make_sets():
        losses = []
        for seed in range(N_REPEATS):
            data = draw(seed)
            sizes = np.bincount(data[1])
            largest = [min(int(rule(sizes)), LARGEST, sizes.sum() - 1) for rule in RULES.values()]
            if min(largest) == max(largest):
                break
            losses.append(measure_losses(*data, max(largest))[np.array(largest) - 1])
        if len(losses) < N_REPEATS:
            print(name, "omitted: all rules give the same K", flush=True)
            continue
        more = np.array(losses) - np.array(losses)[:, :1]
        sets[name] = {
            "loss": np.mean(losses, axis=0).round(4).tolist(),
            "more": more.mean(axis=0).round(4).tolist(),
            "error": (more.std(axis=0, ddof=1) / np.sqrt(N_REPEATS)).round(4).tolist(),
        }
        print(name, *sets[name]["more"], flush=True)
    about = {"measured": measured, "n_repeats": N_REPEATS, "rules": list(RULES), "sets": sets}
    FILE.write_text(json.dumps(about, indent=1) + "\n")
