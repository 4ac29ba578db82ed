"""Rows that belong together, such as the visits of a patient, where new rows come from new groups.

Labels of one group may be alike beyond what the feature values say. Nothing is assumed about how:
residuals of two rows of one group, each predicted without the labels of the group, have the
correlation::

    rho = sum w_i w_l (y_i - p_i)(y_l - p_l) / sum w_i w_l p (1 - p)     i, l of one group, i != l

so that m of them are worth ``m / (1 + (m - 1) rho)`` rows, the design effect of cluster samples
(Kish 1965): rows where groups have no effect, groups where their rows are alike.
"""

from __future__ import annotations

import numpy as np

from bayesknn._utils.checks import show
from bayesknn._utils.words import count, join


def find_scored(labels: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Return 1 for rows of classes that can be scored, 0 for those of one group alone, (n,).

    Without its group, or without groups its only row, nothing is known of such a class.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.sureness.groups import find_scored
    >>> find_scored(np.array([0, 1, 0, 1, 2]), np.array([0, 0, 1, 1, 0])).tolist()
    [1.0, 1.0, 1.0, 1.0, 0.0]
    """
    classes = labels
    if groups is not None:
        classes = np.unique(np.column_stack([labels, groups]), axis=0)[:, 0]
    is_scored = np.bincount(classes) > 1
    if not is_scored.any():
        what = "rows" if groups is None else "groups"
        raise ValueError(f"no class is in two {what}: no prediction could be compared with labels")
    return is_scored[labels].astype(np.float64)


def name_unscored(classes: np.ndarray, labels: np.ndarray, groups: np.ndarray | None) -> list[str]:
    """Return warnings that name the classes of one row and those of one group, if any."""
    unscored, sizes = find_scored(labels, groups) == 0, np.bincount(labels)
    warned = []
    for is_single, what in ((True, "one row"), (False, "rows in one group alone")):
        of_kind = np.unique(labels[unscored & ((sizes[labels] == 1) == is_single)])
        names = [show(name) for name in classes[of_kind]]
        if names:
            one = len(names) == 1
            which = f"class {names[0]} has" if one else f"classes {join(names)} each have"
            warned.append(
                f"{which} {what}: without these nothing is known of the class, so that no score "
                f"uses them ({count(int(sizes[of_kind].sum()), 'row')})"
            )
    return warned


def correlate_relatives(
    residuals: np.ndarray, variances: np.ndarray, weights: np.ndarray, groups: np.ndarray | None
) -> float:
    """Return the correlation rho of the residuals of one group, in 0..1; 0 without groups.

    Parameters
    ----------
    residuals : ndarray of shape (n, n_classes)
        Of probabilities that use no label of the row's group.
    variances : ndarray of shape (n,)
        Expected sums of their squares.
    weights : ndarray of shape (n,)
    groups : ndarray of shape (n,) or None

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.sureness.groups import correlate_relatives
    >>> residuals = np.array([[0.5, -0.5], [0.5, -0.5], [-0.5, 0.5], [-0.5, 0.5]])
    >>> correlate_relatives(residuals, np.full(4, 0.5), np.ones(4), np.array([0, 0, 1, 1]))
    1.0
    """
    if groups is None:
        return 0.0
    sums = sum_by_group(weights[:, None] * residuals, groups)
    both = (sums**2).sum() - (weights**2 * (residuals**2).sum(axis=1)).sum()
    of_group, spread = (np.bincount(groups, each) for each in (weights, weights * variances))
    scale = of_group @ spread - (weights**2) @ variances
    return float(np.clip(both / scale, 0.0, 1.0)) if scale > 0 else 0.0


def sum_by_group(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Add the rows of each group up, (n_groups, n_columns)."""
    return np.stack([np.bincount(groups, column) for column in values.T], axis=1)


def weigh_relatives(weights: np.ndarray, groups: np.ndarray | None, rho: float) -> np.ndarray:
    """Return weights by which m rows of a group count as ``m / (1 + (m - 1) rho)``."""
    if groups is None:
        return weights
    return weights / (1.0 + (np.bincount(groups)[groups] - 1.0) * rho)


def count_alike(
    neighbors: np.ndarray, n_votes: float, groups: np.ndarray | None, rho: float
) -> float:
    """Return how many of so many neighbours' votes are worth one, at least 1.

    Two voters are of one group as often as two of the nearest neighbours are, and at most as often
    as the sizes of the groups let them.

    Parameters
    ----------
    neighbors : ndarray of shape (n_ranks, n)
        The nearest neighbours of the rows.
    n_votes : float
        Mean number of neighbours that vote.
    groups : ndarray of shape (n,) or None
    rho : float
        Correlation within groups.
    """
    if groups is None or len(neighbors) < 2:
        return 1.0
    voters = groups[neighbors]
    n_ranks = len(voters)
    same = sum(np.count_nonzero(voters[r] == voters[:r]) for r in range(1, n_ranks))
    share = same / (voters.shape[1] * n_ranks * (n_ranks - 1) / 2)
    sizes = np.bincount(groups)
    most = (sizes @ sizes) / sizes.sum() - 1.0
    return 1.0 + rho * min((n_votes - 1.0) * share, most)
