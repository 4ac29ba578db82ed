"""List of known faults that are not fixed yet.

A run fails if one of them does not occur in it, because its entry is then out of date.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Known(NamedTuple):
    """An expected fault.

    Attributes
    ----------
    invariance : str
        Name of the invariance, empty for all of them.
    what : str
        Part of the name of the failed comparison.
    reason : str
        Cause of the fault.
    applies : callable
        Function of a case that returns whether the fault can occur in it.
    """

    invariance: str
    what: str
    reason: str
    applies: Callable[[Any], bool] = lambda case: True


def _is_bayesian(case: Any) -> bool:
    return case.options["classifier"] != "pooled"


_OMISSION = (
    "leave-one-out is biased by the omission of the row, whose class is rarer among the others"
)
KNOWN: tuple[Known, ...] = tuple(
    Known("nothing to learn", f": {score}", _OMISSION, _is_bayesian)
    for score in ("error", "AUC", "log-loss")
)
