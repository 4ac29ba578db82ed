"""Strategies of cases for the invariances: a table, a classifier and its options.

Most faults occur in combinations of two options. So the options of a case are a row of a pairwise
covering array, in which every two levels of two factors occur together at least once. Hypothesis
draws the number of rows of the table, its columns and the seed of its values.
"""

from __future__ import annotations

import zlib
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pandas
from hypothesis import strategies as st

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    PooledNeighborsClassifier,
)

_TABLE = {
    "n_classes": (2, 3, 5, 8),
    "sizes": ("equal", "unequal", "rare"),
    "rows": ("distinct", "duplicates", "duplicates of another class"),
}
FACTORS: dict[str, dict[str, tuple[Any, ...]]] = {
    "bayesian": {
        "likelihood": ("pseudo", "holmes-adams", "coherent"),
        "metric": ("euclidean", "manhattan", "mahalanobis", "gower"),
        "class_prior_as": (None, "offset", "weights"),
        "prior": (None, "falling", "narrow"),
        "calibrate": (False, True),
        "search": ("auto", "kd_tree", "blocked"),
        "beta_max": (4.0, "auto"),
        **_TABLE,
    },
    "pooled": {
        "members": ("neighbours", "companions", "one", "all"),
        "columns": ("numbers", "mixed", "categories"),
        "class_prior": (False, True),
        "sample_weight": (None, "unequal", "with zeros"),
        "search": ("auto", "kd_tree"),
        **_TABLE,
    },
    "classical": {
        "n_neighbors": ("loo", 1, 4),
        "metric": ("euclidean", "manhattan", "mahalanobis", "gower"),
        **_TABLE,
    },
}
_MEMBERS = {
    "neighbours": ("evidence", "discriminant"),
    "companions": ("additive", "boosted", "smooth"),
    "one": ("evidence",),
    "all": ("discriminant", "relevance", "evidence", "additive", "boosted", "smooth"),
}
NUMBERS, CATEGORIES = ("number", "skewed", "whole"), ("text", "ordered", "boolean")


class Case(NamedTuple):
    """Training rows, new rows and an unfitted classifier.

    Attributes
    ----------
    options : dict of str to object
        Row of the covering array.
    frame : pandas.DataFrame
        Training rows.
    y : ndarray of shape (n,)
        Labels of the training rows.
    new : pandas.DataFrame
        New rows with the same columns; the first two are training rows.
    classifier : estimator
        Unfitted classifier.
    weights : ndarray of shape (n,) or None
        ``sample_weight`` of the fit.
    seed : int
        Seed of random choices in the check of an invariance.
    """

    options: dict[str, Any]
    frame: pandas.DataFrame
    y: np.ndarray
    new: pandas.DataFrame
    classifier: Any
    weights: np.ndarray | None
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        """New random generator with the seed of the case."""
        return np.random.default_rng(self.seed)

    @property
    def frequencies(self) -> dict[Any, float]:
        """Weighted class frequencies of the training rows, by label."""
        classes, labels = np.unique(self.y, return_inverse=True)
        totals = np.bincount(labels, self.weights)
        return dict(zip(classes.tolist(), (totals / totals.sum()).tolist(), strict=True))


def cover(factors: dict[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return a pairwise covering array, found by a greedy search.

    Each row has a level of every factor; any two levels of two factors are together in some row.
    """
    missing = {
        ((one, i), (other, j))
        for one, other in combinations(factors, 2)
        for i in range(len(factors[one]))
        for j in range(len(factors[other]))
    }
    rows = []
    while missing:
        row = dict(min(missing))
        for name in (name for name in factors if name not in row):
            gains = np.zeros(len(factors[name]))
            for level, each in product(range(len(gains)), row.items()):
                gains[level] += bool({((name, level), each), (each, (name, level))} & missing)
            row[name] = int(np.argmax(gains))
        missing -= {(a, b) for a in row.items() for b in row.items()}
        rows.append({name: factors[name][row[name]] for name in factors})
    return rows


ROWS = [{"kind": kind, **row} for kind, factors in FACTORS.items() for row in cover(factors)]


@st.composite
def cases(draw: st.DrawFn, options: dict[str, Any]) -> Case:
    """Draw a case with the given options."""
    seed, n_classes = draw(st.integers(0, 2**32 - 1)), options["n_classes"]
    # Hypothesis often draws the seed 0, so the options are part of the seed of the table.
    rng = np.random.default_rng([seed, zlib.crc32(repr(options).encode())])
    is_slow = options.get("likelihood") == "coherent" or options.get("members") == "all"
    n = draw(st.one_of(st.integers(30, 60), st.integers(61, 90 if is_slow else 300)))
    y = _draw_classes(rng, max(n, 5 * n_classes), n_classes, options["sizes"])
    kinds = draw(st.lists(st.sampled_from(_choose_kinds(options)), min_size=1, max_size=4))
    # A column of continuous numbers avoids equal distances between distinct rows.
    if options.get("columns") != "categories":
        kinds = ["number", *kinds]
    may_lack = options["kind"] == "pooled" and draw(st.booleans())
    n_new = 8
    labels = np.concatenate([y, rng.integers(0, n_classes, n_new)])
    table = {f"{kind} {j}": _column(kind, labels, rng) for j, kind in enumerate(kinds)}
    if options["kind"] == "pooled" and draw(st.booleans()):
        table["constant"] = np.full(len(labels), 7.0)
    frame = pandas.DataFrame(table)
    if may_lack:
        _remove_values(frame, rng)
    frame, new = frame[: len(y)], frame[len(y) :].reset_index(drop=True)
    if options["rows"] != "distinct":
        frame, y = _repeat_rows(frame, y, rng, options["rows"] == "duplicates")
    new.iloc[:2] = frame.iloc[:2].to_numpy(dtype=object)
    new = new.astype(frame.dtypes)
    names = np.array([f"class {g}" for g in range(n_classes)]) if draw(st.booleans()) else None
    classes = y if names is None else names[y]
    weights = None
    if options.get("sample_weight"):
        weights = rng.integers(1, 5, len(y)).astype(float)
        if options["sample_weight"] == "with zeros":
            weights[rng.random(len(y)) < 0.1] = 0.0
    classifier = _make_classifier(options, np.unique(classes), rng)
    return Case(options, frame, classes, new, classifier, weights, seed)


def _draw_classes(rng: np.random.Generator, n: int, n_classes: int, sizes: str) -> np.ndarray:
    """Return class indices with at least four rows of each class, and four of a rare class."""
    y = np.arange(n) % n_classes
    least = np.arange(n) < 4 * n_classes
    if sizes == "unequal":
        y = np.where(least, y, np.minimum(rng.geometric(0.5, n) - 1, n_classes - 1))
    elif sizes == "rare":
        y = np.where(least, y, np.arange(n) % (n_classes - 1) + 1)
    return rng.permutation(y)


def _choose_kinds(options: dict[str, Any]) -> tuple[str, ...]:
    if options.get("columns", "numbers") == "mixed" or options.get("metric") == "gower":
        # Gower's distance treats ordered categories as unordered, so only the ensemble gets them.
        return NUMBERS + (CATEGORIES if options["kind"] == "pooled" else CATEGORIES[:1])
    return CATEGORIES if options.get("columns") == "categories" else NUMBERS[:2]


def _column(kind: str, labels: np.ndarray, rng: np.random.Generator) -> Any:
    """Return a column whose values depend on the class, with noise."""
    n = len(labels)
    noisy = np.where(rng.random(n) < 0.6, labels, rng.integers(0, labels.max() + 1, n))
    if kind == "number":
        # Values are rounded to six decimals, because Excel files store 15 digits of a number.
        return np.round(rng.normal(size=n) + rng.choice([0.0, 0.5, 1.5]) * labels, 6)
    if kind == "skewed":
        return np.round(np.exp(rng.normal(size=n) + 0.3 * labels), 6)
    if kind == "whole":
        return (rng.integers(0, 6, n) + noisy).astype(float)
    if kind == "boolean":
        return noisy % 2 == 1
    words = np.array([f"level {v}" for v in range(labels.max() + 1)])
    if kind == "ordered":
        return pandas.Categorical(words[noisy], categories=words, ordered=True)
    return words[noisy].astype(object)


def _remove_values(frame: pandas.DataFrame, rng: np.random.Generator) -> None:
    for name in frame:
        if frame[name].dtype != bool and frame[name].nunique() > 1:
            frame.loc[rng.random(len(frame)) < 0.1, name] = None


def _repeat_rows(
    frame: pandas.DataFrame, y: np.ndarray, rng: np.random.Generator, same_class: bool
) -> tuple[pandas.DataFrame, np.ndarray]:
    """Append copies of six rows, with their labels or with random ones."""
    rows = rng.integers(0, len(frame), 6)
    labels = y[rows] if same_class else rng.permutation(y)[:6]
    frame = pandas.concat([frame, frame.iloc[rows]], ignore_index=True)
    return frame, np.concatenate([y, labels])


def _make_classifier(options: dict[str, Any], classes: np.ndarray, rng: Any) -> Any:
    frequencies = dict(
        zip(classes.tolist(), rng.dirichlet(np.full(len(classes), 5.0)), strict=True)
    )
    if options["kind"] == "classical":
        return ClassicalKNeighborsClassifier(options["n_neighbors"], metric=options["metric"])
    if options["kind"] == "pooled":
        return PooledNeighborsClassifier(
            _MEMBERS[options["members"]],
            class_prior=frequencies if options["class_prior"] else None,
            search=options["search"],
            random_state=0,
        )
    metric, search, k_max = options["metric"], options["search"], 12
    if options["likelihood"] == "coherent":
        k_max = 5
    if metric not in ("euclidean", "mahalanobis"):
        search = "auto"
    prior = {None: None, "falling": 1 / np.arange(1, k_max + 1), "narrow": np.arange(k_max) < 3}
    return BayesianKNeighborsClassifier(
        options["likelihood"],
        metric=metric,
        search=search,
        max_neighbors=k_max,
        beta_max=options["beta_max"],
        prior=None if options["prior"] is None else prior[options["prior"]].astype(float),
        class_prior=frequencies if options["class_prior_as"] else None,
        class_prior_as=options["class_prior_as"] or "offset",
        calibrate=options["calibrate"],
        n_draws=50,
        random_state=0,
    )
