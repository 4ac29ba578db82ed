"""Comparison of the ensemble with other methods by test log-loss, on data that need no download.

``python docs/measure prediction`` writes ``prediction.json`` in about twenty minutes. The tables of
the documentation and the passages and figure of the README are made from it. Seeds of simulated
data and of splits are fixed. Every method is tuned on the training rows only.
"""

import json
import time
import warnings
from collections import defaultdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn import datasets as toy
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.datasets import load_glass, load_pima, load_ripley
from kept import HERE, describe_measurement

FILE = HERE / "prediction.json"
N_SPLITS, N_TEST = 2, 1000
NEIGHBORS = ("discriminant", "relevance", "evidence")


def write() -> None:
    """Fit all methods to all data sets and store their scores."""
    if find_spec("lightgbm") is None:
        raise SystemExit("the comparison needs LightGBM: pip install lightgbm")
    compare({name: partial(clone, clf) for name, clf in make_methods().items()}, FILE)


def compare(makers: dict, file: Path, **about: object) -> None:
    """Fit a classifier of each maker to every data set; store log-losses, errors and CPU times.

    Parameters
    ----------
    makers : dict of str to callable
        Function that returns an unfitted classifier, for each method.
    file : Path
        JSON file to write.
    **about
        Further entries of the file.
    """
    losses: dict[str, dict[str, list[float]]] = {}
    errors: dict[str, dict[str, list[float]]] = {}
    seconds: dict[str, float] = defaultdict(float)
    sizes: dict[str, list[int]] = {}
    results = {"measured": describe_measurement(), **about, "n_splits": N_SPLITS, "sizes": sizes}
    results |= {"losses": losses, "errors": errors, "seconds": seconds}
    for split in range(N_SPLITS):
        for name, X, y, X_test, y_test in cut_data(split):
            sizes[name] = [len(y), int(X.shape[1]), len(np.unique(y))]
            for method, make in makers.items():
                start = time.process_time()
                with warnings.catch_warnings(), threadpool_limits(1):
                    warnings.simplefilter("ignore")
                    p = make().fit(X, y).predict_proba(X_test)
                seconds[method] += time.process_time() - start
                # 1e-5 bounds the loss of a method that gives the observed class probability 0.
                p_observed = np.maximum(p[np.arange(len(y_test)), y_test], 1e-5)
                loss, error = -np.log(p_observed).mean(), np.mean(p.argmax(axis=1) != y_test)
                losses.setdefault(name, defaultdict(list))[method].append(float(loss))
                errors.setdefault(name, defaultdict(list))[method].append(float(error))
            text = ", ".join(f"{method} {loss[-1]:.3f}" for method, loss in losses[name].items())
            print(f"{name}, split {split}: {text}", flush=True)
    file.write_text(json.dumps(results, indent=1) + "\n")


def make_methods() -> dict:
    """Return the classifiers by name, those of other libraries tuned by cross-validation."""

    def tune(clf, cv=5, **grid):
        grid = {f"{type(clf).__name__.lower()}__{name}": values for name, values in grid.items()}
        # An SVM has no probabilities before calibration, so it is tuned by its error rate.
        scoring = "accuracy" if isinstance(clf, SVC) else "neg_log_loss"
        return GridSearchCV(make_pipeline(StandardScaler(), clf), grid, scoring=scoring, cv=cv)

    nearest = tune(KNeighborsClassifier(), n_neighbors=[1, 3, 5, 9, 15, 25, 41])
    svm = tune(SVC(), C=[0.1, 1, 10, 100, 1000], gamma=["scale", 0.001, 0.01, 0.1, 1])
    trees = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [4, 15]}
    methods = {
        "the pool": PooledNeighborsClassifier(random_state=0),
        "the pool, neighbours only": PooledNeighborsClassifier(NEIGHBORS, random_state=0),
        "class frequencies": DummyClassifier(strategy="prior"),
        "the paper's pseudo-likelihood": make_pipeline(
            StandardScaler(), BayesianKNeighborsClassifier("pseudo", random_state=0)
        ),
        "kNN, k by CV": nearest,
        "kNN, calibrated": CalibratedClassifierCV(nearest, method="isotonic", cv=5),
        "random forest": RandomForestClassifier(500, min_samples_leaf=2, random_state=0),
        "logistic regression": tune(
            LogisticRegression(max_iter=2000), C=[0.001, 0.01, 0.1, 1, 10, 100]
        ),
        # Temperature scaling has a lower log-loss than sigmoids on most of these data sets.
        "SVM, tuned": CalibratedClassifierCV(svm, method="temperature", cv=5),
        "boosted trees, tuned": tune(
            HistGradientBoostingClassifier(min_samples_leaf=10, random_state=0), cv=3, **trees
        ),
    }
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        trees["num_leaves"] = trees.pop("max_leaf_nodes")
        methods["LightGBM, tuned"] = tune(
            LGBMClassifier(min_child_samples=10, random_state=0, n_jobs=1, verbose=-1),
            cv=3,
            **trees,
        )
    return methods


def cut_data(split: int):
    """Yield the name of each set, its training and test points, and labels in 0..G-1."""
    for number, (name, (draw, n)) in enumerate(SIMULATIONS.items()):
        rng = np.random.default_rng([number, split, 2026])
        X, y = draw(rng, n + N_TEST)
        yield name, X[:n], y[:n], X[n:], y[n:]
    for name, load, n in (
        ("iris", toy.load_iris, 90),
        ("wine", toy.load_wine, 106),
        ("breast cancer", toy.load_breast_cancer, 200),
        ("Ripley", partial(_load_whole, load_ripley), 250),
        ("Pima", partial(_load_whole, load_pima), 200),
        ("glass", partial(_load_whole, load_glass), 89),
        ("digits", toy.load_digits, 250),
    ):
        X, y = load(return_X_y=True)
        parts = train_test_split(X, y, train_size=n, stratify=y, random_state=split)
        yield name, parts[0], parts[2], parts[1][:N_TEST], parts[3][:N_TEST]


def _load_whole(load, return_X_y):
    data = load()
    y = np.concatenate([data.y_train, data.y_test])
    return np.vstack([data.X_train, data.X_test]), np.unique(y, return_inverse=True)[1]


def _toss(rng, log_odds):
    return (rng.random(len(log_odds)) < expit(log_odds)).astype(int)


def _xor(rng, n):
    X = rng.uniform(-1, 1, size=(n, 6))
    return X, _toss(rng, 2.2 * np.sign(X[:, 0] * X[:, 1]))


def _circle(rng, n):
    X = rng.normal(size=(n, 2))
    return X, _toss(rng, 8 * (np.hypot(*X.T) - 1.2))


def _friedman(rng, n):
    X = rng.uniform(size=(n, 10))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    return X, (f + 5 * X[:, 4] + rng.normal(size=n) > 14.4).astype(int)


def _hexagon(rng, n):
    y = rng.integers(6, size=n)
    angle = np.pi / 3 * y
    centres = 1.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    return centres + np.sqrt(0.4) * rng.normal(size=(n, 2)), y


def _shifted(rng, n):
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 10)) + (2 * y - 1)[:, None] / np.sqrt(10), y


def _variances(rng, n):
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 5)) * (1 + y)[:, None], y


def _ripley_noise(rng, n):
    X, y = _load_whole(load_ripley, True)
    order = rng.permutation(len(y))[:n]
    return np.hstack([X[order], rng.normal(size=(n, 10))]), y[order]


def _nothing(rng, n):
    return rng.normal(size=(n, 8)), (rng.random(n) < 0.35).astype(int)


# Function that draws each simulated set, and its number of training rows.
SIMULATIONS = {
    "xor + 4 noise columns": (_xor, 300),
    "circle": (_circle, 200),
    "friedman1": (_friedman, 250),
    "hexagon of six": (_hexagon, 240),
    "shifted means, 10 columns": (_shifted, 200),
    "different spread": (_variances, 200),
    "Ripley + 10 noise columns": (_ripley_noise, 250),
    "no signal": (_nothing, 150),
}
# Names of all simulated sets. Ripley's published data were simulated too.
SIMULATED = {*SIMULATIONS, "Ripley"}
