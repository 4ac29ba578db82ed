"""Checks on the arguments of the model, shared by everything that takes (beta, k).

Strengths are ``beta >= 0``, class weights ``a_g > 0``. Each function returns the argument in the
form the kernels expect, or raises a one-line ``ValueError``. That k fits the graph is checked by
``NeighborGraph.check_k``, labels by ``_utils.checks.check_label_vector``.
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
