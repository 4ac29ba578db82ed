"""Times of fits with ``groups``, relative to fits without.

The table has 200 groups of 5 rows, ten columns and an effect of each group. Groups take additional
time, because neighbours of the same group are excluded, whole groups are omitted in leave-one-out,
and intervals count groups instead of rows.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from benchmarks.harness import Report, interleave

_N_GROUPS, _SIZE = 200, 5
# Largest allowed ratio of the time with groups to that without.
_MAX_RATIO = 1.5


def run(report: Report) -> None:
    """Compare fits with and without groups for each classifier."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(_N_GROUPS), _SIZE)
    X = rng.normal(size=(len(groups), 10))
    effect = rng.normal(size=_N_GROUPS)[groups]
    y = (X[:, 0] + effect + rng.logistic(size=len(X)) > 0).astype(int)
    report.section(f"Fits with {_N_GROUPS} groups of {_SIZE} rows, 1 thread")
    classifiers = {
        "ensemble": PooledNeighborsClassifier(random_state=0),
        "pseudo-likelihood": BayesianKNeighborsClassifier("pseudo", random_state=0),
    }
    for name, clf in classifiers.items():
        with threadpool_limits(1):
            seconds = interleave(
                {
                    "groups": lambda clf=clf: clf.fit(X, y, groups=groups),
                    "rows": lambda clf=clf: clf.fit(X, y),
                },
                repeats=3,
            )
        ratio = seconds["groups"] / seconds["rows"]
        report.line(name, ratio, at_most=_MAX_RATIO, against="the same fit without groups")
