"""Why a row got its class, by column: occlusion.

The values of one column are replaced by those of other rows, all else unchanged; what the log odds
of the row's class lose by it, on average, is what the column contributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def occlude_columns(
    predict_proba: Callable[[Any], np.ndarray], X: Any, background: Any, n_background: int = 20
) -> np.ndarray:
    """Return what each column contributes to the log odds of each row's most probable class.

    Parameters
    ----------
    predict_proba : callable
        Class probabilities of the rows of a table such as X.
    X : ndarray or pandas.DataFrame of shape (m, p)
    background : ndarray or pandas.DataFrame of shape (n, p)
        Rows whose values take the place of those of X.
    n_background : int, default=20
        How many of them, drawn at random, always the same ones.

    Returns
    -------
    ndarray of shape (m, p)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive.contributions import occlude_columns
    >>> def by_first(X):
    ...     p = 1 / (1 + np.exp(-X[:, 0]))
    ...     return np.column_stack([1 - p, p])
    >>> occlude_columns(by_first, np.array([[2.0, 9.0]]), np.array([[-1.0, 0.0]])).round(6).tolist()
    [[3.0, 0.0]]
    """
    is_frame = hasattr(X, "iloc")
    m, p = X.shape
    n = min(n_background, len(background))
    drawn = np.random.default_rng(0).choice(len(background), n, replace=False)
    background = background.iloc[drawn] if is_frame else background[drawn]
    winners = predict_proba(X).argmax(axis=1)
    each = np.repeat(np.arange(m), n)

    def log_odds(table: Any, labels: np.ndarray) -> np.ndarray:
        mine = predict_proba(table)[np.arange(len(labels)), labels]
        # Less is as good as impossible; log odds stay finite.
        mine = np.clip(mine, 1e-6, 1 - 1e-6)
        return np.log(mine / (1 - mine))

    contributions = np.repeat(log_odds(X, winners)[:, None], p, axis=1)
    for j in range(p):
        table = X.iloc[each].reset_index(drop=True) if is_frame else X[each]
        if is_frame:
            table.isetitem(j, background.iloc[np.tile(np.arange(n), m), j].array)
        else:
            table[:, j] = np.tile(background[:, j], m)
        contributions[:, j] -= log_odds(table, winners[each]).reshape(m, n).mean(axis=1)
    return contributions
