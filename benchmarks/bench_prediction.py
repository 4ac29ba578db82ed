"""The pool against what users would pick instead: test log-loss on data that need no download.

``python -m benchmarks prediction`` writes ``docs/measure/prediction.json``, from which the
documentation makes its table. One partition a data set, seeds fixed beforehand.
"""

import json
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata
from sklearn import datasets as toy
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.datasets import load_glass, load_pima, load_ripley
from benchmarks.harness import Report

FILE = Path(__file__).parents[1] / "docs" / "measure" / "prediction.json"
N_TEST = 1000


def run(report: Report) -> None:
    report.section("Test log-loss: the pool and others")
    losses: dict[str, dict[str, float]] = {}
    sizes = {}
    for name, X, y, X_test, y_test in cut_data():
        losses[name] = {}
        sizes[name] = [len(y), int(X.shape[1]), len(np.unique(y))]
        frequency = np.bincount(y) / len(y)
        losses[name]["class frequencies"] = float(-np.log(frequency[y_test]).mean())
        for method, clf in make_methods().items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                chances = clf.fit(X, y).predict_proba(X_test)
            # A method that holds the truth impossible would lose by infinity.
            true = np.maximum(chances[np.arange(len(y_test)), y_test], 1e-5)
            losses[name][method] = float(-np.log(true).mean())
        text = ", ".join(f"{method} {loss:.3f}" for method, loss in losses[name].items())
        report.console.print(f"{name}: {text}")
    methods = list(make_methods())
    table = np.array([[losses[name][method] for method in methods] for name in losses])
    ranks = np.array([rankdata(row) for row in table]).mean(axis=0)
    for method, loss, rank in zip(methods, table.mean(axis=0), ranks, strict=True):
        report.line(f"{method}, mean log-loss (mean rank {rank:.2f})", loss, "nats")
    best_other = table[:, 1:].mean(axis=0).min()
    report.line("the pool against the best other", table[:, 0].mean() / best_other, at_most=1.0)
    found = {"sizes": sizes, "losses": losses, "ranks": dict(zip(methods, ranks, strict=True))}
    FILE.write_text(json.dumps(found, indent=1) + "\n")


def make_methods() -> dict:
    """Return each method tuned as a user would, ours first."""

    def nearest():
        ks = {"kneighborsclassifier__n_neighbors": [1, 3, 5, 9, 15, 25, 41]}
        pipeline = make_pipeline(StandardScaler(), KNeighborsClassifier())
        return GridSearchCV(pipeline, ks, scoring="neg_log_loss", cv=5)

    svm = GridSearchCV(
        make_pipeline(StandardScaler(), SVC()),
        {"svc__C": [0.5, 2, 10, 50], "svc__gamma": ["scale", 0.03, 0.3]},
        cv=3,
    )
    lines = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        {"logisticregression__C": [0.01, 0.1, 1, 10]},
        scoring="neg_log_loss",
        cv=5,
    )
    methods = {
        "pooled neighbours": PooledNeighborsClassifier(random_state=0),
        "pseudo-likelihood": make_pipeline(
            StandardScaler(), BayesianKNeighborsClassifier("pseudo", random_state=0)
        ),
        "kNN, k by CV": nearest(),
        "kNN, calibrated": CalibratedClassifierCV(nearest(), method="isotonic", cv=3),
        "random forest": RandomForestClassifier(200, min_samples_leaf=2, random_state=0),
        "logistic regression": lines,
        "SVM, tuned": CalibratedClassifierCV(svm, method="sigmoid", cv=3),
        "boosted trees": HistGradientBoostingClassifier(
            learning_rate=0.05, min_samples_leaf=10, random_state=0
        ),
    }
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        methods["LightGBM"] = LGBMClassifier(
            learning_rate=0.05, min_child_samples=10, random_state=0, verbose=-1
        )
    return methods


def cut_data():
    """Yield name, training and test points with labels 0..G-1."""
    for name, load, n in (
        ("iris", toy.load_iris, 90),
        ("wine", toy.load_wine, 106),
        ("breast cancer", toy.load_breast_cancer, 200),
        ("digits", toy.load_digits, 250),
    ):
        X, y = load(return_X_y=True)
        parts = train_test_split(X, y, train_size=n, stratify=y, random_state=0)
        yield name, parts[0], parts[2], parts[1][:N_TEST], parts[3][:N_TEST]
    for name, load in (("Ripley", load_ripley), ("Pima", load_pima), ("glass", load_glass)):
        data = load()
        classes, y = np.unique(data.y_train, return_inverse=True)
        yield name, data.X_train, y, data.X_test, np.searchsorted(classes, data.y_test)
    for number, (name, (draw, n)) in enumerate(LAWS.items()):
        rng = np.random.default_rng([number, 2026])
        X, y = draw(rng, n + N_TEST)
        yield name, X[:n], y[:n], X[n:], y[n:]


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


def _spread(rng, n):
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 5)) * (1 + y)[:, None], y


def _ripley_noise(rng, n):
    ripley = load_ripley()
    X = np.vstack([ripley.X_train, ripley.X_test])[:n]
    y = np.concatenate([ripley.y_train, ripley.y_test])[:n]
    return np.hstack([X, rng.normal(size=(n, 10))]), y


def _nothing(rng, n):
    return rng.normal(size=(n, 8)), (rng.random(n) < 0.35).astype(int)


LAWS = {
    "xor + 4 noise columns": (_xor, 300),
    "circle": (_circle, 200),
    "friedman1": (_friedman, 250),
    "hexagon of six": (_hexagon, 240),
    "shifted means, 10 columns": (_shifted, 200),
    "different spread": (_spread, 200),
    "Ripley + 10 noise columns": (_ripley_noise, 250),
    "no signal": (_nothing, 150),
}
