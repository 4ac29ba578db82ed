"""Invariance of groups: labels of a row's group do not influence its leave-one-out probability.

Each group consists of copies of one row. If the rows of a group were neighbours of each other, or
if anything else were fitted to their labels, the leave-one-out probability of a row would follow a
change of another label in its group.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from campaigns.invariances.cases import Case
from campaigns.invariances.compared import Compared
from campaigns.invariances.laws import fit

# Number of groups, rows in each group, and groups in which a label is changed. A larger third
# number makes the means more precise and costs two fits for each group.
_N_ROWS, _N_COPIES, _N_CHANGED = 40, 3, 4


def groups(case: Case) -> Iterator[Compared]:
    """Yield the effect of a label in the group of a row on the row's leave-one-out probability.

    The tolerance is twice the effect of the row's own label, plus 0.02. Both labels have a small
    effect through the posterior or the folds. Effects are averaged over several rows.
    """
    rng = case.rng
    chosen = rng.permutation(len(case.y))[:_N_ROWS]
    # Classes in fewer than three groups are dropped, so that every class is still in two groups
    # when a label is changed.
    rare = [g for g in np.unique(case.y) if np.sum(case.y[chosen] == g) < 3]
    chosen = chosen[~np.isin(case.y[chosen], rare)]
    if len(np.unique(case.y[chosen])) < 2:
        return
    group_of_row = np.repeat(np.arange(len(chosen)), _N_COPIES)
    rows = chosen[group_of_row]
    frame, y = case.frame.iloc[rows].reset_index(drop=True), case.y[rows]
    weights = None if case.weights is None else np.maximum(case.weights, 1.0)[rows]
    given = {"weights": weights, "groups": group_of_row, "class_prior": None}
    first = fit(case, frame, y, **given).loo_proba_
    effects = np.zeros((2, _N_CHANGED))
    for at, group in enumerate(rng.permutation(len(chosen))[:_N_CHANGED]):
        row = group * _N_COPIES
        # Both changes give the same label, so that they differ only in the row that is changed.
        label = rng.choice(np.setdiff1d(y, y[row : row + 2]))
        for kind, changed in enumerate((row, row + 1)):
            other = y.copy()
            other[changed] = label
            proba = fit(case, frame, other, **given).loo_proba_
            effects[kind, at] = np.abs(proba[row] - first[row]).max()
    of_itself, of_group = effects.mean(axis=1)
    yield Compared("a label of the group", float(of_group), float(2 * of_itself + 0.02))
