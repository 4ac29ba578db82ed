"""Checks on the arguments of counts: which k, whose labels, which direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn._utils.checks import check_count

DIRECTIONS = ("both", "forward", "reverse")


def check_k_values(k_values: Any, k_max: int) -> np.ndarray:
    """Return the wanted k as an int64 array; None stands for every k in 1..k_max.

    Examples
    --------
    >>> from bayesknn.graph.arguments import check_k_values
    >>> check_k_values([3, 1], 5).tolist()
    [3, 1]
    """
    if k_values is None:
        return np.arange(1, k_max + 1)
    values = [check_count(k, "k", 1, k_max) for k in np.atleast_1d(k_values).tolist()]
    if not values:
        raise ValueError("k_values is empty")
    return np.array(values, dtype=np.int64)


def check_class_numbers(labels: Any, n_points: int, n_classes: int) -> np.ndarray:
    """Return class numbers as a uint32 array, all in ``0..n_classes - 1``.

    Examples
    --------
    >>> from bayesknn.graph.arguments import check_class_numbers
    >>> check_class_numbers([0, 3], 2, 2)
    Traceback (most recent call last):
    ...
    ValueError: labels must be class numbers in 0..1, got 3 at position 1
    """
    check_count(n_classes, "n_classes")
    numbers = np.asarray(labels)
    if numbers.shape != (n_points,):
        raise ValueError(f"there are {n_points} points but labels of shape {numbers.shape}")
    if numbers.dtype.kind not in "biu":
        raise ValueError(f"labels must be class numbers in 0..{n_classes - 1}, got {numbers.dtype}")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < n_classes):
        position = int(np.argmax((numbers < 0) | (numbers >= n_classes)))
        raise ValueError(
            f"labels must be class numbers in 0..{n_classes - 1}, got {numbers[position]} at "
            f"position {position}"
        )
    return numbers.astype(np.uint32)


def check_direction(direction: str) -> None:
    """Refuse a direction that is not one of ``DIRECTIONS``."""
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
