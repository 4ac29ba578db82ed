"""Compile, before anybody waits for it, what fits and predictions with default settings use."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.jit import count_compiled


class Compiled(NamedTuple):
    """Functions that one step of :func:`warmup` compiled, and its time.

    Attributes
    ----------
    what : str
        The fit and predictions that ran.
    n_functions : int
        Functions that were compiled. 0 if all were in numba's cache.
    seconds : float
        CPU seconds that compiling took.
    """

    what: str
    n_functions: int
    seconds: float


def warmup() -> list[Compiled]:
    """Compile the functions that fits and predictions with default settings use.

    Run once after an installation, for example while a container image is built, so that no later
    fit has to wait for the compiler. The functions go to numba's cache on disk. Where no folder can
    be written, they stay compiled in this process only.

    Returns
    -------
    list of Compiled
        For each classifier, and for the search on more than 1,000 rows: the number of functions
        that were compiled and the CPU seconds that this took.

    Examples
    --------
    >>> from bayesknn import warmup
    >>> [step.what for step in warmup()]
    ['BayesianKNeighborsClassifier', 'PooledNeighborsClassifier', 'search on more than 1,000 rows']
    >>> sum(step.n_functions for step in warmup())
    0
    """
    steps = {
        "BayesianKNeighborsClassifier": _fit_paper_model,
        "PooledNeighborsClassifier": _fit_pool,
        "search on more than 1,000 rows": _search_tree,
    }
    results = []
    for what, run in steps.items():
        with count_compiled() as compiled, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
        results.append(Compiled(what, compiled.n_functions, compiled.seconds))
    return results


def _fit_paper_model() -> None:
    from bayesknn.classifier import BayesianKNeighborsClassifier

    points, classes = _draw_points(40)
    for labels in (classes > 0, classes):  # two classes, and more
        clf = BayesianKNeighborsClassifier(random_state=0)
        _use(clf.fit(points, labels), points)


def _fit_pool() -> None:
    from bayesknn.pooled import PooledNeighborsClassifier

    points, classes = _draw_points(60)
    codes = classes % 2
    for table, is_category in ((points, None), (np.column_stack([points, codes]), [2])):
        clf = PooledNeighborsClassifier(categorical_features=is_category, random_state=0)
        _use(clf.fit(table, classes), table)


def _use(clf: Any, points: np.ndarray) -> None:
    clf.predict_interval(points[:2])
    clf.predict_zone(points[:2])


def _search_tree() -> None:
    from bayesknn.graph import NeighborGraph

    points, classes = _draw_points(1_100)
    graph = NeighborGraph.from_points(points, 5)
    graph.query(points[:100]).counts(classes, 3)


def _draw_points(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n points of three overlapping classes, and these."""
    rng = np.random.default_rng(0)
    classes = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + classes[:, None], classes
