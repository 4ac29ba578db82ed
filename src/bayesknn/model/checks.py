"""Checks on the arguments of the model, shared by everything that takes (beta, k, labels).

Strengths are ``beta >= 0``, labels in ``0..n_classes - 1``, class
weights ``a_g > 0``. Each function returns the argument in the form the kernels expect, or raises
a one-line ``ValueError``. That k fits the graph is checked by ``NeighborGraph.check_k``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.checks import check_count


def check_beta(beta: Any, name: str = "beta") -> float:
    """Return one strength as a float, or say what is wrong with it."""
    if np.ndim(beta) != 0:
        raise ValueError(f"{name} must be one number, got an array of shape {np.shape(beta)}")
    return float(check_betas(beta, name))


def check_betas(beta: Any, name: str = "beta") -> np.ndarray:
    """Return strengths as a float64 array of the shape they came in."""
    try:
        values = np.asarray(beta, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {beta!r}") from None
    bad = ~np.isfinite(values)
    if bad.any():
        raise ValueError(f"{name} must be finite, got {values[bad][0]}")
    bad = values < 0
    if bad.any():
        raise ValueError(f"{name} must be at least 0, got {values[bad][0]}")
    return values


def check_n_classes(n_classes: Any) -> int:
    """Return the number of classes as an int of at least 2."""
    return check_count(n_classes, "n_classes", 2)


def check_class_weight(class_weight: Any, n_classes: int) -> np.ndarray | None:
    """Return the class weights a_g as a float64 array, or ``None`` when there are none."""
    if class_weight is None:
        return None
    try:
        weights = np.ascontiguousarray(class_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"class_weight must be None or {n_classes} numbers, one for each class, "
            f"got {class_weight!r}"
        ) from None
    if weights.shape != (n_classes,):
        raise ValueError(
            f"class_weight must hold {n_classes} numbers, one for each class, "
            f"got an array of shape {np.shape(class_weight)}"
        )
    bad = ~(np.isfinite(weights) & (weights > 0))
    if bad.any():
        g = int(np.argmax(bad))
        raise ValueError(
            f"class_weight must be finite and positive, got {weights[g]} for class {g}"
        )
    return weights


def label_dtype(n_classes: int) -> type[np.unsignedinteger]:
    """Return the unsigned type that the kernels use for labels of ``n_classes`` classes."""
    return np.uint8 if n_classes <= 256 else np.uint32


def check_label_vector(labels: Any, n_points: int, n_classes: int | None = None) -> np.ndarray:
    """Return one label per point as a contiguous unsigned array.

    Parameters
    ----------
    labels : array-like of shape (n_points,)
        Integers in ``0..n_classes - 1``.
    n_points : int
    n_classes : int, optional
        Without it any label from 0 up is accepted.

    Returns
    -------
    ndarray of shape (n_points,), uint8, or uint32 beyond 256 classes
    """
    if np.ndim(labels) != 1:
        raise ValueError(f"labels must be one-dimensional, got shape {np.shape(labels)}")
    return check_label_draws(labels, n_points, n_classes)


def check_label_draws(labels: Any, n_points: int, n_classes: int | None = None) -> np.ndarray:
    """Return one label vector, or a batch of shape (n_draws, n_points), as an unsigned array."""
    array = np.asarray(labels)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"labels must have shape ({n_points},) or (n_draws, {n_points}), got {array.shape}"
        )
    if array.shape[-1] != n_points:
        raise ValueError(
            f"labels must hold one label for each of the {n_points} points, got {array.shape[-1]}"
        )
    if array.dtype == bool:
        array = array.view(np.uint8)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"labels must be integers 0, 1, 2, ..., got dtype {array.dtype}")
    if array.dtype.kind == "f":
        _refuse_where(~np.isfinite(array) | (array != np.floor(array)), array, "be integers")
    top = 2**32 if n_classes is None else n_classes
    if array.size and not (array.min() >= 0 and array.max() < top):
        what = "be 0 or more" if n_classes is None else f"lie in 0..{top - 1} ({top} classes)"
        _refuse_where((array < 0) | (array >= top), array, what)
    if n_classes is None:
        n_classes = int(array.max()) + 1 if array.size else 1
    return np.ascontiguousarray(array, dtype=label_dtype(n_classes))


def _refuse_where(bad: np.ndarray, array: np.ndarray, what: str) -> None:
    """Raise for the first bad entry, if there is one."""
    if not bad.any():
        return
    where = np.unravel_index(int(np.argmax(bad)), bad.shape)
    value = array[where]
    place = f"position {where[-1]}" + (f" of draw {where[0]}" if bad.ndim == 2 else "")
    raise ValueError(f"labels must {what}, got {value} at {place}")
