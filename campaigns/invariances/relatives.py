"""Rows that belong together: labels of relatives move a left-out probability as little as its own.

Relatives are copies of a row, with its label but for one. A fit that lets them be neighbours, or
fits anything to their labels, follows a label of theirs at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from campaigns.invariances.cases import Case
from campaigns.invariances.compared import Compared
from campaigns.invariances.laws import fit

# Rows of a case that have relatives, copies of each, and rows whose labels are changed. More of the
# last take longer, two fits each.
_N_ROWS, _N_COPIES, _N_CHANGED = 40, 3, 4


def groups(case: Case) -> Iterator[Compared]:
    """Change the label of a row, or of one relative, and compare how far the row moves.

    Either change moves the posterior or the folds a little. The mean over some rows may be twice as
    large for relatives, and .02 more where both are next to nothing.
    """
    rng = case.rng
    some = rng.permutation(len(case.y))[:_N_ROWS]
    # Every class stays in two groups when a label is changed.
    few = [g for g in np.unique(case.y) if np.sum(case.y[some] == g) < 3]
    some = some[~np.isin(case.y[some], few)]
    if len(np.unique(case.y[some])) < 2:
        return
    relatives = np.repeat(np.arange(len(some)), _N_COPIES)
    rows = some[relatives]
    frame, y = case.frame.iloc[rows].reset_index(drop=True), case.y[rows]
    weights = None if case.weights is None else np.maximum(case.weights, 1.0)[rows]
    given = {"weights": weights, "groups": relatives, "class_prior": None}
    first = fit(case, frame, y, **given).loo_proba_
    moved = np.zeros((2, _N_CHANGED))
    for at, group in enumerate(rng.permutation(len(some))[:_N_CHANGED]):
        row = group * _N_COPIES
        for kind, changed in enumerate((row, row + 1)):
            other = y.copy()
            other[changed] = rng.choice(np.setdiff1d(y, y[changed]))
            proba = fit(case, frame, other, **given).loo_proba_
            moved[kind, at] = np.abs(proba[row] - first[row]).max()
    own, of_relatives = moved.mean(axis=1)
    yield Compared("a relative's label", float(of_relatives), float(2 * own + 0.02))
