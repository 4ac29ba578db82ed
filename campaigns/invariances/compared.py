"""Comparison of two results: its name, the difference and the tolerance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

# Largest absolute differences allowed: between equal calls; between calls with other types or
# orders of input; between batches of new rows; after reweighting; after scaling the weights.
# Smaller values would report rounding errors as faults, larger ones would hide faults.
BITS, ROUNDING, NEW_ROWS, AFTER_REWEIGHT, WEIGHTS = 0.0, 1e-8, 1e-10, 1e-6, 1e-7


class Compared(NamedTuple):
    """One comparison.

    Attributes
    ----------
    what : str
        Name of the comparison.
    difference, tolerance : float
        The comparison is a fault if the difference exceeds the tolerance or is NaN.
    """

    what: str
    difference: float
    tolerance: float

    @property
    def is_fault(self) -> bool:
        """Whether the difference exceeds the tolerance or is NaN."""
        return not self.difference <= self.tolerance


def compare(
    first: dict[str, Any], second: dict[str, Any], tolerance: float, change: str
) -> Iterator[Compared]:
    """Yield the comparison of each named result that is in both dictionaries."""
    for name in [name for name in first if name in second]:
        yield Compared(f"{change}: {name}", find_difference(first[name], second[name]), tolerance)


def find_difference(first: Any, second: Any) -> float:
    """Return the largest absolute difference; infinity if shapes or non-numeric values differ."""
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape:
        return np.inf
    if a.dtype.kind in "OUST" or b.dtype.kind in "OUST":
        return 0.0 if a.tolist() == b.tolist() else np.inf
    a, b = a.astype(float), b.astype(float)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return float(np.where(same, 0.0, np.abs(a - np.where(same, a, b))).max(initial=0.0))
