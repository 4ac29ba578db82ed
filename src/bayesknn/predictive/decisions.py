"""What to do with class probabilities: zones, decisions under a loss, scores, explanations.

Zones are those of Figure levelset, decisions the Bayes rule of Section 3.1. Its 0-1 loss has the
posterior expected loss ``1 - P(y = g_hat)``, where the paper's formula has an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bayesknn._utils.checks import as_floats, check_label_vector, is_arrow, show


def find_zones(intervals: Any) -> np.ndarray:
    """Find the class of which the points are sure, if there is one.

    A point is sure of the class whose interval lies above the interval of every other class. The
    intervals of two classes mirror each other about 0.5, so this is the paper's rule for them:
    uncertain where the interval contains 0.5.

    Parameters
    ----------
    intervals : array-like of shape (m, n_classes, 2)
        Lower and upper ends, as :meth:`Predictive.intervals` returns them.

    Returns
    -------
    ndarray of shape (m,), dtype int64
        The class number, or -1 for an uncertain point.

    Examples
    --------
    >>> from bayesknn.predictive import find_zones
    >>> find_zones([[[0.6, 0.9], [0.1, 0.4]], [[0.4, 0.7], [0.3, 0.6]]]).tolist()
    [0, -1]
    """
    ends = as_floats(intervals, "intervals")
    if ends.ndim != 3 or ends.shape[1] < 2 or ends.shape[2] != 2:
        raise ValueError(f"intervals must have shape (m, n_classes, 2), got {ends.shape}")
    lower, upper = ends[..., 0], ends[..., 1]
    # Only the class with the highest lower end can lie above all others.
    best = np.argmax(lower, axis=1)
    others = np.where(np.arange(lower.shape[1]) == best[:, None], -np.inf, upper)
    return np.where(lower.max(axis=1) > others.max(axis=1), best, -1)


def name_zones(classes: np.ndarray, *others: Any) -> np.ndarray:
    """Return what the zones are called: the classes, then what is said where none is sure.

    Entry -1, the last of ``others``, is thus what :func:`find_zones` says of an uncertain point.
    """
    names = np.empty(len(classes) + len(others), dtype=object)
    names[: len(classes)] = np.asarray(classes).tolist()
    for at, other in enumerate(others, start=len(classes)):
        if any(other == name for name in names[:at].tolist()):
            raise ValueError(
                f"{show(other)} is the name of a class; pass another word for points of no sure "
                "class"
                if at == len(classes)
                else f"{show(other)} has two meanings; pass another word for one of them"
            )
        names[at] = other
    return names


def name_actions(classes: np.ndarray, loss: Any, actions: Any = None) -> tuple[Any, np.ndarray]:
    """Return a table of losses, and what the decisions in its rows are called.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    loss : None, array-like of shape (n_actions, n_classes), or mapping
        A mapping has a row for the name of each action.
    actions : sequence, optional
        Names of all rows, or of those that follow the rows of the classes.

    Returns
    -------
    table : array-like or None
        As :func:`decide` takes it.
    names : ndarray of shape (n_actions,)
    """
    n_classes = len(classes)
    if loss is None:
        if actions is not None:
            raise ValueError("actions are the rows of a loss: pass loss as well")
        return None, classes
    if isinstance(loss, Mapping):
        if actions is not None:
            raise ValueError("loss names its actions by its keys: leave actions out")
        actions, loss = list(loss), [_order_row(row, classes) for row in loss.values()]
    n_rows = len(np.atleast_1d(np.asarray(loss, dtype=object)))
    if actions is None:
        if n_rows != n_classes:
            raise ValueError(
                f"loss must have {n_classes} rows, one for each class, got {n_rows}; name further "
                "decisions in actions, or those of all rows"
            )
        return loss, classes
    names = list(actions)
    if len(names) == n_rows - n_classes:
        names = [*classes.tolist(), *names]
    if len(names) != n_rows:
        raise ValueError(
            f"actions must name the {n_rows} rows of loss, or the rows after those of the "
            f"{n_classes} classes, got {len(names)} names"
        )
    for at, name in enumerate(names):
        if any(name == other for other in names[:at]):
            raise ValueError(f"two rows of loss are called {show(name)}")
    if names == classes.tolist():
        return loss, classes
    named = np.empty(n_rows, dtype=object)
    named[:] = names
    return loss, named


def _order_row(row: Any, classes: np.ndarray) -> Any:
    if not isinstance(row, Mapping):
        return row
    missing = [name for name in classes.tolist() if name not in row]
    if missing:
        raise ValueError(f"a row of loss has no entry for class {show(missing[0])}")
    return [row[name] for name in classes.tolist()]


def decide(probabilities: Any, loss: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Take the decision of least expected loss.

    Parameters
    ----------
    probabilities : array-like of shape (m, n_classes)
    loss : array-like of shape (n_actions, n_classes), optional
        ``loss[a, g]`` is the loss of decision a where the truth is g. Decisions may be more or
        fewer than classes: a further row can stand for abstaining. By default a wrong class
        costs 1.

    Returns
    -------
    decisions : ndarray of shape (m,), dtype int64
        Row of ``loss``; by default the class number. The lowest of equally good ones.
    expected_loss : ndarray of shape (m,)
        By default ``1 - P(y = decision)``.

    Examples
    --------
    >>> from bayesknn.predictive import decide
    >>> decisions, expected_loss = decide([[0.75, 0.25], [0.25, 0.75]])
    >>> decisions.tolist(), expected_loss.tolist()
    ([0, 1], [0.25, 0.25])

    To miss class 1 is ten times as bad as a false alarm:

    >>> decide([[0.75, 0.25]], loss=[[0, 10], [1, 0]])[0].tolist()
    [1]
    """
    values = _check_probabilities(probabilities)
    if loss is None:
        decisions = np.argmax(values, axis=1)
        return decisions, 1.0 - np.take_along_axis(values, decisions[:, None], axis=1)[:, 0]
    table = as_floats(loss, "loss")
    n_classes = values.shape[1]
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] != n_classes:
        raise ValueError(
            f"loss must have a row for each decision and {n_classes} columns, one for each class, "
            f"got shape {table.shape}"
        )
    if not np.isfinite(table).all():
        action, g = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"loss must be finite, got {table[action, g]} for decision {action} and class {g}"
        )
    expected = values @ table.T
    decisions = np.argmin(expected, axis=1)
    return decisions, np.take_along_axis(expected, decisions[:, None], axis=1)[:, 0]


def occlude_columns(
    predict_proba: Callable[[Any], np.ndarray], X: Any, background: Any, n_background: int = 20
) -> np.ndarray:
    """Return what each column contributes to the log odds of each row's most probable class.

    By occlusion: the values of one column are replaced by those of other rows, all else unchanged;
    what the log odds lose by it, on average, is what the column contributes.

    Parameters
    ----------
    predict_proba : callable
        Class probabilities of the rows of a table such as X.
    X : ndarray, or frame of pandas, polars or pyarrow, of shape (m, p)
    background : table of the same kind, of shape (n, p)
        Rows whose values take the place of those of X.
    n_background : int, default=20
        How many of them, drawn at random, always the same ones.

    Returns
    -------
    ndarray of shape (m, p)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive.decisions import occlude_columns
    >>> def by_first(X):
    ...     p = 1 / (1 + np.exp(-X[:, 0]))
    ...     return np.column_stack([1 - p, p])
    >>> occlude_columns(by_first, np.array([[2.0, 9.0]]), np.array([[-1.0, 0.0]])).round(6).tolist()
    [[3.0, 0.0]]
    """
    m, p = X.shape
    n = min(n_background, len(background))
    drawn = np.random.default_rng(0).choice(len(background), n, replace=False)
    background = take_rows(background, drawn)
    winners = predict_proba(X).argmax(axis=1)
    each = np.repeat(np.arange(m), n)

    def log_odds(table: Any, labels: np.ndarray) -> np.ndarray:
        mine = predict_proba(table)[np.arange(len(labels)), labels]
        # Less is as good as impossible; log odds stay finite.
        mine = np.clip(mine, 1e-6, 1 - 1e-6)
        return np.log(mine / (1 - mine))

    contributions = np.repeat(log_odds(X, winners)[:, None], p, axis=1)
    for j in range(p):
        table = _replace(take_rows(X, each), j, take_rows(background, np.tile(np.arange(n), m)))
        contributions[:, j] -= log_odds(table, winners[each]).reshape(m, n).mean(axis=1)
    return contributions


def take_rows(table: Any, rows: np.ndarray) -> Any:
    """Return some rows of an array or of a frame of pandas, polars or pyarrow."""
    if hasattr(table, "iloc"):
        return table.iloc[rows].reset_index(drop=True)
    return table.take(rows) if is_arrow(table) else table[rows]


def _replace(table: Any, j: int, other: Any) -> Any:
    """Return a table with column j of another one of its kind."""
    if is_arrow(table):
        return table.set_column(j, table.schema.field(j), other.column(j))
    if hasattr(table, "with_columns"):
        return table.with_columns(other.to_series(j))
    if hasattr(table, "isetitem"):
        table.isetitem(j, other.iloc[:, j].array)
    else:
        table[:, j] = other[:, j]
    return table


def log_score(probabilities: Any, labels: Any, weight: np.ndarray | None = None) -> float:
    """Return the mean log probability of the true labels; the higher the better.

    Parameters
    ----------
    probabilities : array-like of shape (m, n_classes)
    labels : array-like of shape (m,)
        Class numbers.
    weight : ndarray of shape (m,), optional
        How much each row counts in the mean.

    Returns
    -------
    float
        Minus infinity where a true label was held impossible.

    Examples
    --------
    >>> from bayesknn.predictive import log_score
    >>> round(log_score([[0.5, 0.5], [0.2, 0.8]], [0, 1]), 4)
    -0.4581
    """
    values = _check_probabilities(probabilities)
    truth = check_label_vector(labels, *values.shape)
    if len(truth) == 0:
        raise ValueError("there is no label to score")
    if weight is not None:
        weight = as_floats(weight, "weight")
        if weight.shape != truth.shape or not (weight >= 0).all() or not 0 < weight.sum() < np.inf:
            raise ValueError(
                f"weight must be {len(truth)} numbers of at least 0, not all 0, got {show(weight)}"
            )
    with np.errstate(divide="ignore"):
        logs = np.log(values[np.arange(len(truth)), truth])
    return float(np.average(logs, weights=weight))


def _check_probabilities(probabilities: Any) -> np.ndarray:
    values = as_floats(probabilities, "probabilities")
    if values.ndim != 2 or values.shape[1] < 2:
        raise ValueError(f"probabilities must have shape (m, n_classes), got {values.shape}")
    # Probabilities that were added up elsewhere may leave 0..1 by a rounding error.
    bad = ~((values >= -1e-9) & (values <= 1 + 1e-9))
    if bad.any():
        row, g = np.argwhere(bad)[0]
        raise ValueError(
            f"probabilities must lie in 0..1, got {values[row, g]} in row {row}, class {g}"
        )
    totals = values.sum(axis=1)
    off = np.abs(totals - 1) > 1e-6
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(f"probabilities must sum to 1, got {totals[row]:.6g} in row {row}")
    return values
