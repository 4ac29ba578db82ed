"""A product of conditionals that is given by its sums: the points themselves are elsewhere."""

from __future__ import annotations

from typing import Any

from bayesknn.likelihood.deficits import Deficits
from bayesknn.likelihood.products import ConditionalProduct


class SummedProduct(ConditionalProduct):
    """The pseudo-likelihood, or that of Holmes and Adams, from tables of every k.

    Parameters
    ----------
    deficits : list of Deficits
        Entry k - 1 belongs to k; of all points together.
    n_points, n_classes : int
    """

    def __init__(self, deficits: list[Deficits], n_points: int, n_classes: int):
        self._deficits = deficits
        self._n_points, self._n_classes = n_points, n_classes

    @property
    def n_points(self) -> int:
        """Number of training points, n."""
        return self._n_points

    @property
    def n_classes(self) -> int:
        """Number of classes, G."""
        return self._n_classes

    @property
    def class_weight(self) -> None:
        """There are no weights."""
        return None

    @property
    def k_max(self) -> int:
        """Largest k served."""
        return len(self._deficits)

    def _check_k(self, k: Any) -> int:
        if not 1 <= k <= self.k_max:
            raise ValueError(f"k must be an integer in 1..{self.k_max}, got {k}")
        return int(k)
