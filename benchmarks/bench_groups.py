"""Fits to rows that belong together, relative to fits that ignore the groups.

200 groups of 5 rows in ten columns, with an effect of each group. Groups exclude neighbours, leave
out whole groups and count groups in intervals, which takes time of its own.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from benchmarks.harness import Report, interleave

_N_GROUPS, _SIZE = 200, 5
_MOST = 1.5


def run(report: Report) -> None:
    """Compare both fits of each classifier, in turn."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(_N_GROUPS), _SIZE)
    X = rng.normal(size=(len(groups), 10))
    effect = rng.normal(size=_N_GROUPS)[groups]
    y = (X[:, 0] + effect + rng.logistic(size=len(X)) > 0).astype(int)
    report.section(f"Fits with {_N_GROUPS} groups of {_SIZE} rows, 1 thread")
    classifiers = {
        "the pool": PooledNeighborsClassifier(random_state=0),
        "the pseudo-likelihood": BayesianKNeighborsClassifier("pseudo", random_state=0),
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
        report.line(name, ratio, at_most=_MOST, against="the same fit without groups")
